// Writers pass bytes, text and numbers to a sink.
//
//     millstream::writer writer(millstream::path{"squares.txt.gz"});
//     for (int i = 0; i < 1000; ++i)
//         writer.print(i, ' ', i * i, '\n');
//     writer.close(); // now the file is complete; after a failure, this would have thrown
//
// A write that fails has accepted none of its bytes; a write that succeeds has accepted all of them. It is certain that
// accepted bytes have reached the sink only after `close` has succeeded. A file appears complete then, or not at all.
//
// Member functions that can fail have two forms. One throws `millstream::error`, or the exception of your callback. The
// other takes a `std::error_code &` as its last argument (`print`: as its first), does not throw, and stores the
// details in `last_error()`. `println`, `<<`, `get`, and `print` of your own types have only the throwing form.
//
// Writing to a pipe or connection without a reader is `broken_pipe` in a program that ignores SIGPIPE; the signal kills
// other programs. The library never changes signal dispositions.
//
// Different threads may use different writers at the same time; only one thread at a time may use a writer. For several
// threads, use `millstream::shared_writer`, in shared.hpp.
#ifndef MILLSTREAM_WRITER_HPP
#define MILLSTREAM_WRITER_HPP

#if __cplusplus <= 201703L
#error "millstream/writer.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>
#include <millstream/options.hpp>
#include <millstream/put.hpp>
#include <millstream/sink.hpp>

namespace millstream {

/// The types that put.hpp can convert to text, and types with their own `ms_put`.
template <class Part>
concept printable = detail::is_part<Part>;

/// How a writer ended.
struct writer_end {
    /// The number of bytes that were accepted.
    std::uint64_t bytes = 0;
    /// The number of bytes passed to the system, after encoding.
    std::uint64_t written = 0;
    /// How the command ended, if the sink was a command.
    std::vector<command_end> commands;
};

namespace detail {

using writer_options_handle = handle<millstream_writer_options, millstream_writer_options_free>;

inline writer_options_handle made(const writer_options &options) {
    auto handle = made<writer_options_handle>(millstream_writer_options_new);
    set(options, handle.get());
    return handle;
}

} // namespace detail

namespace bson::detail {
struct io;
}

/// Writes to a sink. It can be moved but not copied. A default-constructed or moved-from writer is not open: its calls
/// fail with `argument_invalid`.
///
/// If the writer was not closed, the destructor finishes it as far as possible without reporting errors: it writes the
/// content of the buffer, and a command gets the end of its input and a short time to exit. But the output is not
/// complete: a file that appears only if it is complete does not appear, and a compressed stream gets no end. Unless
/// NDEBUG is defined or an exception is being thrown, a line on standard error reports that data is lost in this way.
class [[nodiscard]] writer {
  public:
    /// Creates a writer that is not open.
    writer() noexcept = default;

    /// Opens a sink.
    template <sink Sink>
    explicit writer(Sink &&sink, const writer_options &options = {}) {
        detail::given_away given(sink);
        const auto handle = detail::made(options);
        detail::writer_opening opening;
        opening.options = handle.get();
        given.taken();
        open(std::forward<Sink>(sink), opening);
        outcome_.keep(std::move(opening.callback));
        handle_ = std::move(opening.writer);
        window_.writer = handle_.get();
        if constexpr (std::is_same_v<std::remove_cvref_t<Sink>, path>)
            appears_when_closed_ = options.existing.value_or(existing::replace) == existing::replace &&
                                   options.partial.value_or(partial::remove) == partial::remove;
    }

    /// Opens a sink; if that fails, `code` has the reason and the writer is not open.
    template <sink Sink>
    writer(Sink &&sink, const writer_options &options, std::error_code &code) {
        code.clear();
        try {
            *this = writer(std::forward<Sink>(sink), options);
        } catch (const error &failure) {
            outcome_.set(failure, code);
        }
    }
    template <sink Sink>
    writer(Sink &&sink, std::error_code &code) : writer(std::forward<Sink>(sink), writer_options{}, code) {}

    writer(writer &&other) noexcept
        : outcome_(std::move(other.outcome_)), handle_(std::move(other.handle_)),
          window_(std::exchange(other.window_, millstream_output{})), appears_when_closed_(other.appears_when_closed_) {
    }
    writer &operator=(writer &&other) noexcept {
        finish();
        handle_ = std::move(other.handle_); // first, because the handle that is freed now may still call back
        outcome_ = std::move(other.outcome_);
        window_ = std::exchange(other.window_, millstream_output{});
        appears_when_closed_ = other.appears_when_closed_;
        return *this;
    }
    ~writer() { finish(); }

    // ---- bytes ----

    /// Writes all bytes. After an error, none of them was accepted, and the call may be repeated. If the sink fails
    /// after part of a large write, the rest is kept, the call succeeds, and the next call reports the error.
    writer &write(std::span<const std::byte> bytes) {
        if (bytes.size() <= small)
            return print(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
        outcome_.throwing([&](std::error_code &code) { write(bytes, code); });
        return *this;
    }
    void write(std::span<const std::byte> bytes, std::error_code &code) noexcept {
        if (bytes.size() <= small)
            print(code, std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
        else
            call(code, millstream_writer_write, static_cast<const void *>(bytes.data()), bytes.size());
    }
    /// Like the first form, for text; the NUL of a literal is excluded.
    writer &write(std::string_view text) { return write(detail::bytes_of(text)); }
    void write(std::string_view text, std::error_code &code) noexcept { write(detail::bytes_of(text), code); }

    /// Returns at least `least` bytes of space to fill; their content is arbitrary. `commit` accepts bytes of the
    /// space; any other call invalidates it. The buffer grows for a record that is longer than it.
    [[nodiscard]] std::span<char> space(std::size_t least) {
        return outcome_.throwing([&](std::error_code &code) { return space(least, code); });
    }
    [[nodiscard]] std::span<char> space(std::size_t least, std::error_code &code) noexcept {
        char *space = nullptr;
        std::size_t len = 0;
        call(code, millstream_writer_space, least, &space, &len);
        return {space, len};
    }

    /// Accepts the first `count` bytes of the space.
    void commit(std::size_t count) {
        outcome_.throwing([&](std::error_code &code) { commit(count, code); });
    }
    void commit(std::size_t count, std::error_code &code) noexcept { call(code, millstream_writer_commit, count); }

    // ---- text and numbers ----

    /// Prints the parts one after another: text, characters, numbers, and the parts of put.hpp: `millstream::hex(x)`,
    /// `millstream::pad(x, 8)`, `millstream::fixed(y, 2)`, `millstream::json(name)`, … All of them are accepted, or
    /// none after an error.
    ///
    /// `ms_put(writer, value)` in the namespace of your own type prints it; a template that prints to any `out` works
    /// for `millstream::output` too. Text that this function has printed stays accepted if a later part fails.
    template <class... Parts>
    writer &print(const Parts &...parts) {
        if constexpr ((printable<Parts> && ...))
            put(detail::as_part(parts)...);
        else
            (print_one(parts), ...);
        return *this;
    }
    template <printable... Parts>
    void print(std::error_code &code, const Parts &...parts) noexcept {
        code.clear();
        if ((detail::is_null_text(parts) || ...)) [[unlikely]]
            code = errc::argument_invalid;
        else if (!put_quickly(detail::as_part(parts)...)) [[unlikely]]
            put_slowly(code, detail::as_part(parts)...);
    }

    /// Prints the parts and ends the line.
    template <class... Parts>
    writer &println(const Parts &...parts) {
        return print(parts..., '\n');
    }

    /// Prints one part.
    template <class Part>
    writer &operator<<(const Part &part) {
        return print(part);
    }

    /// Passes all accepted bytes to the system. A compressed stream can then be decoded up to this point. After an
    /// error no data is lost: the next call tries again.
    writer &flush() {
        outcome_.throwing([&](std::error_code &code) { flush(code); });
        return *this;
    }
    void flush(std::error_code &code) noexcept { call(code, millstream_writer_flush); }

    // ---- position and progress ----

    /// Whether a writer was opened; also true after `close`.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// The name of the sink in error messages.
    std::string_view name() const noexcept {
        const char *name = millstream_writer_name(handle_.get());
        return name != nullptr ? name : std::string_view();
    }

    /// The number of bytes accepted so far, including those in the buffer.
    std::uint64_t accepted() const noexcept {
        return count(millstream_writer_accepted) + static_cast<std::uint64_t>(window_.at - window_.start);
    }
    /// The number of bytes passed to the system so far, after encoding.
    std::uint64_t written() const noexcept { return count(millstream_writer_written); }
    /// The time spent in the sink so far; 0 once the writer is closed.
    std::chrono::nanoseconds waited() const noexcept {
        return std::chrono::nanoseconds(count(millstream_writer_waited_ns));
    }

    /// Writes the remaining bytes, ends the stream, and completes the output: a file gets its name, and the writer
    /// waits for a command. The result remains available. A second call is reported as `closed`; a command that did not
    /// succeed is
    /// `command_failed`. An error's `written()` is the number of bytes that the sink accepted.
    writer_end close() {
        return outcome_.throwing([&](std::error_code &code) { return close(code); });
    }
    writer_end close(std::error_code &code) {
        call(code, millstream_writer_close);
        const millstream_command_end *ends = nullptr;
        std::size_t ends_count = 0;
        millstream_writer_command_ends(handle_.get(), &ends, &ends_count, nullptr);
        return {accepted(), written(), detail::copied(ends, ends_count)};
    }

    /// Aborts: the content of the buffer is discarded, a file that appears only if it is complete does not appear, and
    /// a compressed stream gets no end. It never waits for the sink to accept data. Later calls fail with `closed`.
    void abort() noexcept {
        window_ = millstream_output{};
        window_.writer = handle_.get();
        millstream_writer_abort(handle_.get(), nullptr);
    }

    /// Everything written to `to_memory`, after the writer is closed; valid while the writer exists. Empty before that,
    /// and for any other sink.
    std::string_view memory() const noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        millstream_writer_taken_memory(handle_.get(), &bytes, &len, nullptr);
        return {bytes, len};
    }

    /// The details of the last failure; null if there was none. Valid until the next failure.
    const error *last_error() const noexcept { return outcome_.last(); }

    /// The exception of a callback, for code that uses `std::error_code`: the failing call has reported `io`. Null if
    /// the last failure had another cause.
    std::exception_ptr callback_exception() const noexcept { return outcome_.thrown(); }

    /// The C ABI's writer, which this object still owns. It has received all bytes that were accepted so far.
    millstream_writer *get() {
        outcome_.throwing([&](std::error_code &code) { end_window(code); });
        return handle_.get();
    }

  private:
    friend class shared_writer;     // which takes all of it
    friend struct bson::detail::io; // which rethrows the exception of its callback

    using handle_type = detail::handle<millstream_writer, millstream_writer_free>;

    /// Data up to this size is copied into the window.
    static constexpr std::size_t small = 4096;

    template <class... Parts>
    void put(const Parts &...parts) {
        if (!put_quickly(parts...)) [[unlikely]]
            outcome_.throwing([&](std::error_code &code) { put_slowly(code, parts...); });
    }

    /// Puts the parts into the buffer if they fit and no other action is needed.
    template <class... Parts>
    bool put_quickly(const Parts &...parts) noexcept {
        const std::uint64_t needed = detail::max_size_of(parts...);
        if (needed > static_cast<std::size_t>(window_.end - window_.at) || !window_.collects) [[unlikely]]
            return false;
        put_here(parts...);
        return true;
    }

    template <class... Parts>
    void put_slowly(std::error_code &code, const Parts &...parts) noexcept {
        // At least 1, which requires an open window, so that the writer can act even on 0 bytes.
        const std::size_t needed = detail::as_size(std::max<std::uint64_t>(1, detail::max_size_of(parts...)));
        window_.record = window_.at;
        if (outcome_.call(code, millstream_output_reserve, &window_, needed)) {
            put_here(parts...);
            outcome_.call(code, millstream_output_commit, &window_);
        }
    }

    template <class... Parts>
    void put_here(const Parts &...parts) noexcept {
        std::size_t count = 0; // not a pointer, so that the processor can add the lengths in parallel
        ((count += parts.put(window_.at + count)), ...);
        window_.at += count;
    }

    /// The end of a writer that may not be closed: reports data that is certainly lost, in programs that are debugged.
    void finish() noexcept {
        std::error_code code;
#ifdef NDEBUG
        end_window(code);
#else
        if (handle_ == nullptr || std::uncaught_exceptions() != 0) {
            end_window(code);
            return;
        }
        flush(code);
        if (code && code != errc::closed)
            std::fprintf(stderr, "millstream: a writer was destroyed without close() and has lost data: %s\n",
                         last_error()->what());
        else if (!code && appears_when_closed_ && accepted() != 0)
            std::fprintf(stderr,
                         "millstream: a writer was destroyed without close(), so its file does not appear: %s\n",
                         millstream_writer_name(handle_.get()));
#endif
    }

    /// Accepts the bytes in the window and returns the writer to the functions of the C ABI.
    bool end_window(std::error_code &code) noexcept { return outcome_.call(code, millstream_output_end, &window_); }

    /// Calls a non-const function of the C ABI.
    template <class Function, class... Arguments>
    bool call(std::error_code &code, Function function, Arguments... arguments) noexcept {
        return end_window(code) && outcome_.call(code, function, handle_.get(), arguments...);
    }

    template <class Part>
    void print_one(const Part &part) {
        if constexpr (printable<Part>)
            print(part);
        else
            ms_put(*this, part);
    }

    template <class Function>
    std::uint64_t count(Function function) const noexcept {
        std::uint64_t count = 0;
        function(handle_.get(), &count, nullptr);
        return count;
    }

    // Objects that the library calls back must outlive the handle: members are destroyed from the last to the first.
    detail::outcome outcome_;
    handle_type handle_;
    // Space in the writer's buffer, to which prints write without a library call. If the writer collects bytes until
    // its buffer is full, the window stays open from one print to the next.
    millstream_output window_{};
    bool appears_when_closed_ = false; // a file that does not appear without `close`
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_WRITER_HPP
