// Common parts of all headers that use the C ABI: handles that free themselves, codes that become exceptions, text for
// C. This header is internal.
//
// C++20; needs libmillstream, and so does every header that includes this one.
#ifndef MILLSTREAM_BOUNDARY_HPP
#define MILLSTREAM_BOUNDARY_HPP

#if __cplusplus <= 201703L
#error "millstream/boundary.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream.h>
#include <millstream/error.hpp>

namespace millstream::detail {

/// A handle of the C ABI, freed by its own function.
template <class T, void (*Free)(T *)>
struct freed_by {
    void operator()(T *handle) const noexcept { Free(handle); }
};

template <class T, void (*Free)(T *)>
using handle = std::unique_ptr<T, freed_by<T, Free>>;

/// The bytes of a text. (A std::string_view is not a range for std::span in libc++ 14.)
inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string text_or_nothing(const char *text) { return text != nullptr ? text : ""; }

inline command_end copied(const millstream_command_end &end) {
    command_end copy;
    copy.argv.assign(end.argv, end.argv + end.argc);
    copy.status = end.status == MILLSTREAM_STATUS_EXITED     ? command_status::exited
                  : end.status == MILLSTREAM_STATUS_SIGNALED ? command_status::signaled
                                                             : command_status::unknown;
    copy.value = end.value;
    copy.stderr_tail.assign(end.stderr_tail, end.stderr_tail_len);
    return copy;
}

inline std::vector<command_end> copied(const millstream_command_end *ends, std::size_t count) {
    std::vector<command_end> copies;
    copies.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        copies.push_back(copied(ends[i]));
    return copies;
}

/// Creates the exception for a failed call, about a `text` in memory if that is given. Takes ownership of the handle;
/// if it is null, only the code is known.
inline millstream::error taken(millstream_code code, millstream_error *raw, const char *text = nullptr) {
    const handle<millstream_error, millstream_error_free> error(raw);
    error_details details;
    details.kind = static_cast<errc>(code);
    details.text = text;
    if (error != nullptr) {
        details.name = text_or_nothing(millstream_error_name(raw));
        details.expected = text_or_nothing(millstream_error_expected(raw));
        details.found = text_or_nothing(millstream_error_found(raw));
        details.path = text_or_nothing(millstream_error_path(raw));
        details.message = text_or_nothing(millstream_error_message(raw));
        details.system_errno = millstream_error_errno(raw);
        std::uint64_t number = 0;
        if (millstream_error_offset(raw, &number))
            details.offset = number;
        if (millstream_error_record(raw, &number))
            details.record = number;
        if (millstream_error_line(raw, &number))
            details.line = number;
        if (millstream_error_column(raw, &number))
            details.column = number;
        if (millstream_error_written(raw, &number))
            details.written = number;
        if (millstream_command_end end{}; millstream_error_command(raw, &end))
            details.command = copied(end);
    }
    return millstream::error(std::move(details));
}

/// Calls a function of the C ABI whose last argument receives an error, and throws that error.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
    millstream_error *error = nullptr;
    if (const millstream_code code = function(arguments..., &error); code != MILLSTREAM_OK)
        fail(taken(code, error));
}

/// Calls a function of the C ABI that creates a handle, and throws its error.
template <class Handle, class Function, class... Arguments>
Handle made(Function function, Arguments... arguments) {
    typename Handle::pointer raw = nullptr;
    call(function, arguments..., &raw);
    return Handle(raw);
}

/// Text for C, which ends at a NUL; a NUL inside the text is reported as `argument_invalid`.
inline std::string c_text(std::string_view text) {
    if (text.find('\0') != text.npos) {
        error_details details;
        details.kind = errc::argument_invalid;
        details.found = "a NUL inside \"" + std::string(text.substr(0, text.find('\0'))) + "...\"";
        details.expected = "text without one";
        fail(std::move(details));
    }
    return std::string(text);
}

inline std::string c_path(const std::filesystem::path &path) { return c_text(path.native()); }

/// Converts the time of an option to nanoseconds; a negative time is an error.
inline std::uint64_t c_time(std::chrono::nanoseconds time) {
    if (time.count() < 0) {
        error_details details;
        details.kind = errc::invalid_option;
        details.found = "a time of " + std::to_string(time.count()) + " ns";
        details.expected = "0 or more";
        fail(std::move(details));
    }
    return static_cast<std::uint64_t>(time.count());
}

/// A user callback, whose address stays the same when its reader or writer moves.
///
/// No exception may pass through the library. So a callback's exception is stored here, the callback reports a failure
/// to the library, and the call that returns this failure rethrows the exception. This may be a later call than the one
/// that ran the callback, for example if a writer's sink has accepted part of a record, or a reader has records to
/// deliver first.
class callback_holder {
  public:
    virtual ~callback_holder() = default;

    /// Runs a callback that returns a number of bytes. If it throws, the result is an error number for the library.
    template <class Callback>
    std::ptrdiff_t run(Callback callback) noexcept {
        try {
            return static_cast<std::ptrdiff_t>(callback());
        } catch (...) {
            thrown_ = std::current_exception();
            return -std::ptrdiff_t{EIO};
        }
    }

    /// Returns the exception if `error` reports it, and marks it as reported.
    std::exception_ptr take(const millstream::error &error) noexcept {
        // The library sees every exception as this error.
        const bool is_callback = error.code() == errc::io && error.system_errno() == EIO;
        return is_callback ? std::exchange(thrown_, nullptr) : nullptr;
    }

  private:
    std::exception_ptr thrown_;
};

/// The state that a reader or writer keeps between calls: the last error, and the exception of its callback.
class outcome {
  public:
    /// Calls a function of the C ABI, sets `code` to the result, and returns true if it succeeded.
    template <class Function, class... Arguments>
    bool call(std::error_code &code, Function function, Arguments... arguments) noexcept {
        millstream_error *error = nullptr;
        const millstream_code result = function(arguments..., &error);
        if (result == MILLSTREAM_OK) [[likely]] {
            code.clear();
            return true;
        }
        set(taken(result, error), code);
        return false;
    }

    /// Stores an error and drops the previous one.
    void set(const millstream::error &error, std::error_code &code) noexcept {
        last_ = error;
        code = error.code();
        thrown_ = callback_ != nullptr ? callback_->take(error) : nullptr;
    }

    /// Stores the error of a call and throws it.
    [[noreturn]] void fail(millstream_code result, millstream_error *error) {
        std::error_code code;
        set(taken(result, error), code);
        raise();
    }

    /// Runs a function that reports through a `std::error_code`, and throws instead.
    template <class Act>
    auto throwing(Act act) {
        std::error_code code;
        if constexpr (std::is_void_v<decltype(act(code))>) {
            act(code);
            if (code) [[unlikely]]
                raise();
        } else {
            auto result = act(code);
            if (code) [[unlikely]]
                raise();
            return result;
        }
    }

    const millstream::error *last() const noexcept { return last_ ? &*last_ : nullptr; }
    std::exception_ptr thrown() const noexcept { return thrown_; }
    void keep(std::shared_ptr<callback_holder> callback) noexcept { callback_ = std::move(callback); }
    std::shared_ptr<callback_holder> release() noexcept { return std::move(callback_); }

  private:
    [[noreturn]] void raise() {
        if (thrown_ != nullptr)
            std::rethrow_exception(std::exchange(thrown_, nullptr));
        detail::fail(*last_);
    }

    std::optional<millstream::error> last_;
    std::exception_ptr thrown_; // the exception of the callback, if that was the last error
    std::shared_ptr<callback_holder> callback_;
};

} // namespace millstream::detail

#endif // C++20
#endif // MILLSTREAM_BOUNDARY_HPP
