// Errors: one table of codes, the same in every language, and one exception that knows the details.
//
//     try {
//         for (std::string_view line : ms::lines(ms::command{"sort", "names.txt"}))
//             use(line);
//     } catch (const ms::error &error) {
//         if (error.code() == ms::errc::command_failed)
//             std::cerr << error.command()->stderr_tail;
//         std::cerr << error.what() << '\n'; // what was found, where, and what to do about it
//     }
//
// `ms::error` is a `std::system_error`, whose category is named "millstream"; so codes also travel as
// `std::error_code`.
//
// Without exceptions (-fno-exceptions), an error that would be thrown is printed as one line to standard error, and
// ends the program by exit(1).
//
// C++17; needs no library.
#ifndef MILLSTREAM_ERROR_HPP
#define MILLSTREAM_ERROR_HPP

#include <array>
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

namespace ms {

/// The kinds of error. The numbers never change their meaning; later versions may add some.
enum class errc : int {
    io = 1,                     ///< The operating system refused a read, a write or another call.
    open_failed = 2,            ///< A source or sink could not be opened.
    command_not_started = 3,    ///< A command could not be started.
    command_failed = 4,         ///< A command exited with a status other than 0, or died by a signal.
    command_status_unknown = 5, ///< How a command ended cannot be known.
    record_too_long = 6,        ///< A record is longer than the record limit.
    frame_truncated = 7,        ///< The stream ended inside a record of fixed or announced length.
    length_invalid = 8,         ///< A length prefix that no record can have.
    utf8_invalid = 9,           ///< Text was asked for, and the bytes are not UTF-8.
    decode_damaged = 10,        ///< Compressed data is damaged.
    decode_truncated = 11,      ///< Compressed data ends too early.
    decode_limit = 12,          ///< Compressed data grows beyond the limit on output size or ratio.
    stalled = 13,               ///< Nothing arrived, or nothing was taken, for longer than the time limit.
    cancelled = 14,             ///< A cancel token was triggered. Nothing is lost: the next call goes on.
    source_shrank = 15,         ///< A file became shorter while it was read.
    broken_pipe = 16,           ///< The reading side closed the pipe or connection.
    invalid_option = 17,        ///< An option has a value that it cannot have.
    unsupported = 18,           ///< This build or system cannot do that.
    closed = 19,                ///< The reader or writer is closed, or gave up after an earlier error.
    internal = 20,              ///< A mistake of the library's.
    number_invalid = 21,        ///< Where a number or a word of a type should be, there is something else.
    number_overflow = 22,       ///< A number does not fit its type.
    value_missing = 23,         ///< The input ended where a value was expected.
    argument_invalid = 24,      ///< An argument that a call cannot take.
    document_invalid = 25,      ///< Bytes that are no BSON document.
    document_truncated = 26,    ///< A BSON document, or something in it, is longer than the bytes that there are.
    too_deep = 27,              ///< Documents and arrays are nested deeper than the limit.
    key_missing = 28,           ///< A document has no member of this name, or an array no element of this number.
    shape_mismatch = 29,        ///< A value has another type than was asked for, or a document other members.
    value_out_of_range = 30,    ///< A value does not fit the type that was asked for.
    text_invalid = 31,          ///< Text that is no Extended JSON, object id, date or decimal number.
    julia_invalid = 32,         ///< What a file of BSON.jl says of its Julia values cannot be.
    memory_limit = 33,          ///< Going on would take more memory than allowed.
    stage_panicked = 34,        ///< A stage of a pipe panicked, or threw what was no error.
    stage_failed = 35,          ///< A stage of a pipe said that it could not do its work on a record.
};

namespace detail {

/// A kind's name in snake case and what the user can do about it.
struct kind_text {
    std::string_view name;
    std::string_view advice;
};

/// In the order of the codes; the first is 1. (A test compares this with the library's table.)
inline constexpr std::array<kind_text, 35> kind_texts{{
    {"io", "see the system's message"},
    {"open_failed", "check the name and the permissions"},
    {"command_not_started", "check that the program exists, is executable and is in PATH"},
    {"command_failed", "see its standard error; allow_failure accepts such a command"},
    {"command_status_unknown", "do not ignore SIGCHLD and do not wait for other people's children"},
    {"record_too_long", "raise the record limit, or skip this record and go on"},
    {"frame_truncated", "the input was cut short, or the frame's size is wrong"},
    {"length_invalid", "check width, byte order and whether the length counts itself"},
    {"utf8_invalid", "read the record as bytes"},
    {"decode_damaged", "get the file again; what was good has been delivered"},
    {"decode_truncated", "get the file again; what was good has been delivered"},
    {"decode_limit", "raise the limit if the source is trusted"},
    {"stalled", "raise the time limit, or find out what the other side waits for"},
    {"cancelled", "go on, or close"},
    {"source_shrank", "do not truncate a file that is being read"},
    {"broken_pipe", "the consumer has gone: stop writing"},
    {"invalid_option", "see the accepted values"},
    {"unsupported", "see the documentation of the call"},
    {"closed", "nothing more can be read or written"},
    {"internal", "please report it with the message"},
    {"number_invalid", "check the input there, the separator and the type"},
    {"number_overflow", "use a wider type, or check the input there"},
    {"value_missing", "the input was cut short, or fewer values should be asked for"},
    {"argument_invalid", "see what the call expects"},
    {"document_invalid", "check what wrote the document"},
    {"document_truncated", "the input was cut short, or a length in it is wrong"},
    {"too_deep", "raise the depth limit if the source is trusted"},
    {"key_missing", "check the path"},
    {"shape_mismatch", "ask for the type that is there, or check what wrote the document"},
    {"value_out_of_range", "use a wider type, or check what wrote the document"},
    {"text_invalid", "check the text there"},
    {"julia_invalid", "check what wrote the file; its plain document can still be read"},
    {"memory_limit", "raise the limit if the source is trusted"},
    {"stage_panicked", "mend the stage; the message above, on standard error, says where it is"},
    {"stage_failed", "check the record, or have such records skipped or kept aside"},
}};

/// The texts of a kind; empty for a number that this header does not know.
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

    /// What the standard library has a word for compares equal to it: `ec == std::errc::broken_pipe`.
    std::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<errc>(code)) {
        case errc::broken_pipe:
            return std::errc::broken_pipe;
        case errc::stalled:
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

/// So that an `errc` becomes a `std::error_code`, and compares with one.
inline std::error_code make_error_code(errc kind) noexcept { return {static_cast<int>(kind), category()}; }

/// The name of a kind in snake case, the same in every language.
constexpr std::string_view name(errc kind) noexcept { return detail::text_of(static_cast<int>(kind)).name; }

/// Whether the reader that reported this goes on: after `cancelled` by the next call, after `record_too_long` by
/// `skip_record`, after `number_invalid` and `number_overflow` by taking what is there by other means. After any other
/// error comes a plain end.
constexpr bool is_resumable(errc kind) noexcept {
    return kind == errc::cancelled || kind == errc::record_too_long || kind == errc::number_invalid ||
           kind == errc::number_overflow;
}

/// How a command ended.
enum class command_status {
    exited,   ///< It exited; the value is its exit status.
    signaled, ///< It was ended by a signal; the value is the signal's number.
    unknown,  ///< The system would not say; the value is 0.
};

/// A command that ended: what ran, how it ended, the last it said.
struct command_end {
    /// The command and its arguments, as started.
    std::vector<std::string> argv;
    command_status status = command_status::unknown;
    /// The exit status or the signal's number.
    int value = 0;
    /// The last 4 KiB of its standard error, where that was the library's to see. Any bytes.
    std::string stderr_tail;

    /// Exit status 0.
    bool success() const noexcept { return status == command_status::exited && value == 0; }
};

/// What an error knows. Everything but the kind may be missing: texts are empty then.
struct error_details {
    errc kind = errc::internal;
    /// The source or sink: a path, a command line, an address.
    std::string name;
    /// What was expected, and what was found instead.
    std::string expected;
    std::string found;
    /// Where in the stream, in bytes from its start (after decoding).
    std::optional<std::uint64_t> offset;
    /// Which record; the first is 0.
    std::optional<std::uint64_t> record;
    /// Which value in a BSON document: its keys from the outermost on, with dots between them.
    std::string path;
    /// Of a writer's error: how many bytes the system has taken for certain.
    std::optional<std::uint64_t> written;
    /// Which command ended, and how.
    std::optional<command_end> command;
    /// The system's error number, or 0 if it was not the system that reported this.
    int system_errno = 0;
    /// All of it in a sentence; made from the rest if it is empty.
    std::string message;
};

namespace detail {

/// The sentence that the library would make of these details, for errors that are not about a command.
inline std::string sentence(const error_details &error) {
    const kind_text text = text_of(static_cast<int>(error.kind));
    std::string out;
    if (!error.name.empty())
        out.append(error.name).append(": ");
    for (const char c : text.name)
        out.push_back(c == '_' ? ' ' : c);
    if (!error.found.empty())
        out.append(": found ").append(error.found);
    if (!error.expected.empty())
        out.append(error.found.empty() ? ": expected " : ", expected ").append(error.expected);
    if (error.system_errno != 0) {
        out.append(": ").append(std::system_category().message(error.system_errno));
        out.append(" (os error ").append(std::to_string(error.system_errno)).append(")");
    }
    if (!error.path.empty())
        out.append(", in ").append(error.path);
    if (error.offset)
        out.append(", at byte ").append(std::to_string(*error.offset));
    if (error.record)
        out.append(", record ").append(std::to_string(*error.record)).append(" (the first is 0)");
    if (error.written)
        out.append(", ").append(std::to_string(*error.written)).append(" bytes are safely written");
    return out.append("; ").append(text.advice);
}

} // namespace detail

/// What went wrong, where, and what to do about it. `code()` is of the category "millstream", `what()` a sentence.
/// Copies share the details, so copying never throws.
class error : public std::system_error {
  public:
    /// An error with these details.
    explicit error(error_details details) : std::system_error(make_error_code(details.kind)) {
        if (details.message.empty())
            details.message = detail::sentence(details);
        details_ = std::make_shared<const error_details>(std::move(details));
    }

    // Copies only: one that was moved from could not answer.
    error(const error &) = default;
    error &operator=(const error &) = default;

    /// All of it in a sentence: what was found, what was expected, where, and what to do.
    const char *what() const noexcept override { return details_->message.c_str(); }
    /// The kind, which `code()` has as its value.
    errc kind() const noexcept { return details_->kind; }
    /// The source or sink: a path, a command line, an address. Empty if there is none.
    const std::string &name() const noexcept { return details_->name; }
    /// What was expected, or nothing.
    const std::string &expected() const noexcept { return details_->expected; }
    /// What was found instead, or nothing.
    const std::string &found() const noexcept { return details_->found; }
    /// Where in the stream, in bytes from its start (after decoding).
    std::optional<std::uint64_t> offset() const noexcept { return details_->offset; }
    /// Which record; the first is 0.
    std::optional<std::uint64_t> record() const noexcept { return details_->record; }
    /// Which value in a BSON document: its keys from the outermost on, with dots between them. Empty if it is not about
    /// one.
    const std::string &path() const noexcept { return details_->path; }
    /// Of a writer's error: how many bytes the system has taken for certain.
    std::optional<std::uint64_t> written() const noexcept { return details_->written; }
    /// Which command ended, and how; null if the error is not about a command. It lives as long as any copy of this.
    const command_end *command() const noexcept { return details_->command ? &*details_->command : nullptr; }
    /// The system's error number, or 0 if it was not the system that reported this.
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
} // namespace ms

template <>
struct std::is_error_code_enum<ms::errc> : std::true_type {};

#endif // MILLSTREAM_ERROR_HPP
