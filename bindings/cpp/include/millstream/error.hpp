// Errors: one table of codes, the same in every language, and one exception that has the details.
//
//     try {
//         for (std::string_view line : millstream::lines(millstream::command{"sort", "names.txt"}))
//             use(line);
//     } catch (const millstream::error &error) {
//         if (error.code() == millstream::errc::command_failed)
//             std::cerr << error.command()->stderr_tail;
//         std::cerr << error.what() << '\n'; // what was found, where, and what to do about it
//     }
//
// `millstream::error` is a `std::system_error` whose category is named "millstream", so codes can also be passed as
// `std::error_code`.
//
// Without exceptions (-fno-exceptions), an error that would be thrown is printed as one line to standard error, and the
// program ends with exit(1).
//
// Needs C++17 and no library.
#ifndef MILLSTREAM_ERROR_HPP
#define MILLSTREAM_ERROR_HPP

#if __cplusplus <= 201402L
#error "millstream/error.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream/errc.hpp>

namespace millstream {

namespace detail {

/// The texts of a kind, which are empty for a number that this header does not know.
constexpr kind_text text_of(int code) noexcept {
    const auto index = static_cast<std::size_t>(code) - 1;
    return code >= 1 && index < kind_texts.size() ? kind_texts[index] : kind_text{};
}

class category_of_millstream final : public std::error_category {
  public:
    const char *name() const noexcept override { return "millstream"; }

    std::string message(int code) const override {
        const kind_text text = text_of(code);
        if (text.name.empty())
            return "error " + std::to_string(code);
        std::string message(text.name);
        for (char &c : message)
            c = c == '_' ? ' ' : c;
        return message.append("; ").append(text.advice);
    }

    /// Kinds with a counterpart in the standard library compare equal to it: `ec == std::errc::broken_pipe`.
    std::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<errc>(code)) {
        case errc::broken_pipe:
            return std::errc::broken_pipe;
        case errc::stalled:
        case errc::timed_out:
            return std::errc::timed_out;
        case errc::cancelled:
            return std::errc::operation_canceled;
        case errc::unsupported:
            return std::errc::not_supported;
        case errc::invalid_option:
        case errc::argument_invalid:
            return std::errc::invalid_argument;
        case errc::number_overflow:
        case errc::value_out_of_range:
            return std::errc::result_out_of_range;
        default:
            return {code, *this};
        }
    }
};

} // namespace detail

/// The category of the codes in `errc`, named "millstream".
inline const std::error_category &category() noexcept {
    static const detail::category_of_millstream instance;
    return instance;
}

/// Converts an `errc` to a `std::error_code`, and makes the two comparable.
inline std::error_code make_error_code(errc kind) noexcept { return {static_cast<int>(kind), category()}; }

/// The name of a kind in snake case, the same in every language.
constexpr std::string_view name(errc kind) noexcept { return detail::text_of(static_cast<int>(kind)).name; }

/// Whether the reader that reported this can continue: after `cancelled` with the next call, after `record_too_long`
/// with `skip_record`, after `number_invalid` and `number_overflow` by reading the input in another way. After any
/// other error, the reader is at its end.
constexpr bool is_resumable(errc kind) noexcept {
    return kind == errc::cancelled || kind == errc::record_too_long || kind == errc::number_invalid ||
           kind == errc::number_overflow;
}

/// How a command ended.
enum class command_status {
    exited,   ///< The command exited; the value is its exit status.
    signaled, ///< A signal killed the command; the value is the signal's number.
    unknown,  ///< The system did not report it; the value is 0.
};

/// A command that ended: the command line, how it ended, and its last output.
struct command_end {
    /// The command and its arguments, as started.
    std::vector<std::string> argv;
    command_status status = command_status::unknown;
    /// The exit status or the signal's number.
    int value = 0;
    /// The last bytes of its standard error (4 KiB by default), if the library read it. Any bytes.
    std::string stderr_tail;

    /// Whether the exit status is 0.
    bool success() const noexcept { return status == command_status::exited && value == 0; }
};

/// The details of an error. Everything except the kind may be missing; then texts are empty.
struct error_details {
    errc kind = errc::internal;
    /// The source or sink: a path, a command line, an address.
    std::string name;
    /// What was expected, and what was found instead.
    std::string expected;
    std::string found;
    /// The position in the stream, in bytes from its start (after decoding).
    std::optional<std::uint64_t> offset;
    /// Which record; the first is 0.
    std::optional<std::uint64_t> record;
    /// Which line of a text; the first is 1.
    std::optional<std::uint64_t> line;
    /// The column in the line, in bytes; the first is 1.
    std::optional<std::uint64_t> column;
    /// For an error about a text in memory: the text, from whose start `offset` and `column` are counted.
    const char *text = nullptr;
    /// Which value in a BSON document: its keys from the outermost on, separated by dots.
    std::string path;
    /// For a writer's error: how many bytes the system has certainly accepted.
    std::optional<std::uint64_t> written;
    /// The command that ended, and how.
    std::optional<command_end> command;
    /// The system's error number, or 0 if the error did not come from the system.
    int system_errno = 0;
    /// The whole error in one sentence; if it is empty, it is created from the other details.
    std::string message;
    /// The advice in a sentence that is created; by default that of the kind.
    const char *advice = nullptr;
};

namespace detail {

/// Returns what to do about an error.
inline std::string_view advice_on(const error_details &error) noexcept {
    if (error.advice != nullptr)
        return error.advice;
    if (error.kind == errc::io && error.system_errno == ENOSPC)
        return "free space, or write elsewhere";
    return text_of(static_cast<int>(error.kind)).advice;
}

/// Creates the sentence that the library would create from these details, for errors that are not about a command.
inline std::string sentence(const error_details &error) {
    const kind_text text = text_of(static_cast<int>(error.kind));
    std::string out;
    if (!error.name.empty())
        out.append(error.name).append(": ");
    for (const char c : text.name)
        out.push_back(c == '_' ? ' ' : c);
    // A stage that failed is quoted.
    const bool is_of_stage = error.kind == errc::stage_failed || error.kind == errc::stage_panicked;
    if (!error.found.empty())
        out.append(is_of_stage ? ": " : ": found ").append(error.found);
    if (!error.expected.empty())
        out.append(error.found.empty() ? ": expected " : ", expected ").append(error.expected);
    if (error.system_errno != 0) {
        out.append(": ").append(std::system_category().message(error.system_errno));
        out.append(" (os error ").append(std::to_string(error.system_errno)).append(")");
    }
    if (!error.path.empty())
        out.append(", in ").append(error.path);
    if (error.line)
        out.append(", at line ").append(std::to_string(*error.line));
    if (error.column)
        out.append(error.line ? ", column " : ", at column ").append(std::to_string(*error.column));
    if (error.offset && !error.line && !error.column)
        out.append(", at byte ").append(std::to_string(*error.offset));
    if (error.record && !error.line)
        out.append(", record ").append(std::to_string(*error.record)).append(" (the first is 0)");
    if (error.written)
        out.append(", ").append(std::to_string(*error.written)).append(" bytes had been written");
    return out.append("; ").append(advice_on(error));
}

} // namespace detail

/// Describes what went wrong, where, and what to do about it. `code()` has the category "millstream"; `what()` is a
/// sentence. Copies share the details, so copying never throws.
class error : public std::system_error {
  public:
    /// Creates an error with these details.
    explicit error(error_details details) : std::system_error(make_error_code(details.kind)) {
        if (details.message.empty())
            details.message = detail::sentence(details);
        details_ = std::make_shared<const error_details>(std::move(details));
    }

    // Copies only, because a moved-from error would have no details.
    error(const error &) = default;
    error &operator=(const error &) = default;

    /// The whole error in one sentence: what was found, what was expected, where, and what to do.
    const char *what() const noexcept override { return details_->message.c_str(); }
    /// The kind, which is the value of `code()`.
    errc kind() const noexcept { return details_->kind; }
    /// The source or sink: a path, a command line, an address. Empty if there is none.
    const std::string &name() const noexcept { return details_->name; }
    /// What was expected, or nothing.
    const std::string &expected() const noexcept { return details_->expected; }
    /// What was found instead, or nothing.
    const std::string &found() const noexcept { return details_->found; }
    /// The position in the stream, in bytes from its start (after decoding).
    std::optional<std::uint64_t> offset() const noexcept { return details_->offset; }
    /// Which record; the first is 0.
    std::optional<std::uint64_t> record() const noexcept { return details_->record; }
    /// Which line of a text; the first is 1. Known if all records up to this one were lines or records of CSV.
    std::optional<std::uint64_t> line() const noexcept { return details_->line; }
    /// The column in the line, in bytes; the first is 1.
    std::optional<std::uint64_t> column() const noexcept { return details_->column; }
    /// For an error about a text in memory, such as one of `millstream::column`: the text, which may no longer exist,
    /// from whose start `offset` and `column` are counted. Otherwise null.
    const char *text() const noexcept { return details_->text; }
    /// Which value in a BSON document: its keys from the outermost on, separated by dots. Empty if it is not about a
    /// value.
    const std::string &path() const noexcept { return details_->path; }
    /// For a writer's error: how many bytes the system has certainly accepted.
    std::optional<std::uint64_t> written() const noexcept { return details_->written; }
    /// The command that ended, and how; null if the error is not about a command. It is valid as long as any copy of
    /// this error.
    const command_end *command() const noexcept { return details_->command ? &*details_->command : nullptr; }
    /// The system's error number, or 0 if the error did not come from the system.
    int system_errno() const noexcept { return details_->system_errno; }

  private:
    std::shared_ptr<const error_details> details_;
};

namespace detail {

/// Throws; without exceptions, prints the error and ends the program.
[[noreturn]] inline void fail(const error &error) {
#ifdef __cpp_exceptions
    throw error;
#else
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
#endif
}

[[noreturn]] inline void fail(error_details details) { fail(error(std::move(details))); }

} // namespace detail
} // namespace millstream

template <>
struct std::is_error_code_enum<millstream::errc> : std::true_type {};

#endif // C++17
#endif // MILLSTREAM_ERROR_HPP
