// Millstream 0.1.0: millstream/stdio.hpp in one file, to paste or to copy. Licence: MIT or Apache-2.0.
// Written by tools/single-header; change the headers it is made of, not this file.
#if defined(__GNUC__) && __INCLUDE_LEVEL__ > 0 // unless it is pasted: no warnings that only your options ask for
#pragma GCC system_header
#endif

// millstream/stdio.hpp: millstream::in and millstream::out, fast standard input and output.
//
//     #include <millstream/stdio.hpp>
//
//     int main() {
//         unsigned a, b;
//         while (millstream::in >> a >> b)
//             millstream::out.print(a > b ? a : b, '\n');       // or: millstream::out << (a > b ? a : b) << '\n';
//     }
//
// There is no library to link: use these headers, or a single file to paste (single/millstream_stdio.hpp). put.hpp
// describes what can be printed, input.hpp what can be read and what is an error, and output.hpp when bytes are
// written.
//
// An error that the program does not catch, such as invalid input or a full disk, ends it with one line on standard
// error and status 1, after millstream::out and stdio's buffers have been flushed; static objects are not destroyed
// then. For other exceptions, and if the program calls std::set_terminate, everything is as without this header.
//
// When main returns or exit() is called, millstream::out is flushed: after the destructors of static objects that are
// defined below the first #include of this header, and after atexit functions that main has registered. If this fails
// (because of a full disk or a closed pipe), one line on standard error reports it, stdio's buffers are flushed, and
// the program exits with status 1 instead of its own status; atexit functions and static objects that are older than
// this header's are skipped then. Later output is written immediately. _exit, quick_exit, abort and signals do not
// flush, so call millstream::out.flush() before them.
//
// millstream::out has its own buffer, separate from those of printf and std::cout, and millstream::in has its own
// buffer, separate from those of scanf and std::cin. Use only one of them for each stream, or flush one before using
// the other; inputs cannot be mixed.
//
// Only one thread at a time may use millstream::in and millstream::out, because a read may flush.
//
// Needs C++17 and works with g++ and clang++, on POSIX and, with mingw-w64, on Windows (see descriptor.hpp).
#ifndef MILLSTREAM_STDIO_HPP
#define MILLSTREAM_STDIO_HPP

#if __cplusplus <= 201402L
#error "millstream/stdio.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cstdio>
#include <exception>

// millstream/descriptor.hpp: the system functions for input.hpp and output.hpp: reads, writes and waits.
//
// Works on POSIX, and on Windows with mingw-w64. On Windows, descriptors stay in their mode, like those of stdio: in
// text mode, the default, the C library converts line ends. For raw bytes, call `_setmode(fd, _O_BINARY)` before
// anything is read or printed.
//
// Needs C++17 and no library.
#ifndef MILLSTREAM_DESCRIPTOR_HPP
#define MILLSTREAM_DESCRIPTOR_HPP

#if __cplusplus <= 201402L
#error "millstream/descriptor.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cstddef>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#ifndef _WIN32
#include <poll.h>
#endif

namespace millstream::detail {

/// The maximum number of bytes per call: Linux accepts less than 2 GiB, and other systems accept no more than that.
constexpr std::size_t most_in_a_call = std::size_t{1} << 30;

#ifdef _WIN32
using system_size = unsigned;
/// Descriptors of Windows' C library block, so there is nothing to wait for.
inline void wait_to_read(int) noexcept {}
inline void wait_to_write(int) noexcept {}
#else
using system_size = std::size_t;
/// Waits until a non-blocking descriptor can be used again. Errors are returned by the next read or write.
inline void wait_for(int fd, short events) noexcept {
    struct pollfd one = {fd, events, 0};
    (void)::poll(&one, 1, -1);
}
inline void wait_to_read(int fd) noexcept { wait_for(fd, POLLIN); }
inline void wait_to_write(int fd) noexcept { wait_for(fd, POLLOUT); }
#endif

/// Like read(2) and write(2): returns the number of bytes, or -1 with errno set.
inline ssize_t read_some(int fd, char *to, std::size_t space) noexcept {
    return ::read(fd, to, static_cast<system_size>(space < most_in_a_call ? space : most_in_a_call));
}
inline ssize_t write_some(int fd, const char *from, std::size_t count) noexcept {
    return ::write(fd, from, static_cast<system_size>(count < most_in_a_call ? count : most_in_a_call));
}

inline std::string descriptor_name(int fd) {
    switch (fd) {
    case STDIN_FILENO:
        return "standard input";
    case STDOUT_FILENO:
        return "standard output";
    case STDERR_FILENO:
        return "standard error";
    default:
        return "file descriptor " + std::to_string(fd);
    }
}

} // namespace millstream::detail

#endif // C++17
#endif // MILLSTREAM_DESCRIPTOR_HPP
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

// Generated by `cargo xtask generate` from the sources of the library; do not edit.
//
// The kinds of error, of `error.hpp`.
#ifndef MILLSTREAM_ERRC_HPP
#define MILLSTREAM_ERRC_HPP

#if __cplusplus <= 201402L
#error "millstream/errc.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <array>
#include <string_view>

namespace millstream {

/// The kinds of error. The numbers never change their meaning; later versions may add some.
enum class errc : int {
    /// The operating system refused a read, a write or another call.
    io = 1,
    /// A source or sink could not be opened.
    open_failed = 2,
    /// A command could not be started.
    command_not_started = 3,
    /// A command exited with a non-zero status or was killed by a signal. All of its output was delivered.
    command_failed = 4,
    /// The exit status of a command is unknown (SIGCHLD is ignored, or another part of the program waited for it).
    command_status_unknown = 5,
    /// A record is longer than the record limit.
    record_too_long = 6,
    /// The stream ended inside a record of fixed or announced length.
    frame_truncated = 7,
    /// A length prefix is invalid.
    length_invalid = 8,
    /// Text was requested, and the bytes are not UTF-8.
    utf8_invalid = 9,
    /// Compressed data is damaged.
    decode_damaged = 10,
    /// Compressed data ends too early.
    decode_truncated = 11,
    /// Compressed data grows beyond the limit on output size or ratio.
    decode_limit = 12,
    /// No bytes arrived, or no bytes were accepted, for longer than the time limit.
    stalled = 13,
    /// A cancel token was triggered. No data is lost: the next call continues.
    cancelled = 14,
    /// A file became shorter while it was read.
    source_shrank = 15,
    /// The reading side closed the pipe or connection.
    broken_pipe = 16,
    /// An option has an invalid value.
    invalid_option = 17,
    /// This build or platform does not support the operation.
    unsupported = 18,
    /// The reader or writer is closed, or failed earlier.
    closed = 19,
    /// A thread of the library ended unexpectedly.
    internal = 20,
    /// The input contains something other than a value of the requested type.
    number_invalid = 21,
    /// A number does not fit its type.
    number_overflow = 22,
    /// The input ended where a value was expected.
    value_missing = 23,
    /// An invalid argument of a call across a language boundary, such as a null pointer.
    argument_invalid = 24,
    /// Bytes that are not a BSON document: an invalid type, length or terminator.
    document_invalid = 25,
    /// A BSON document, or a value in it, is longer than the available bytes, or a JSON document ends too early.
    document_truncated = 26,
    /// Documents and arrays are nested deeper than the limit.
    too_deep = 27,
    /// A document has no member of this name, or an array no element at this position.
    key_missing = 28,
    /// A value is not of the requested type, or a document has other members.
    shape_mismatch = 29,
    /// A value does not fit the requested type.
    value_out_of_range = 30,
    /// Text that is not valid Extended JSON, or not a valid object id, date or decimal number.
    text_invalid = 31,
    /// A BSON.jl file describes Julia values that cannot exist.
    julia_invalid = 32,
    /// Continuing would take more memory than the limit allows.
    memory_limit = 33,
    /// A stage of a pipe panicked, or threw a value that is not an error. Earlier records have been passed on.
    stage_panicked = 34,
    /// A stage of a pipe reported that it could not process a record.
    stage_failed = 35,
    /// A file changed while it was read: the delivered bytes may be a mixture of its old and new content.
    source_changed = 36,
    /// Reading took longer than its total time limit. Everything read before was delivered.
    timed_out = 37,
    /// A CSV file has a quote where its dialect allows none, a quoted field without an end, or bytes of UTF-16.
    csv_invalid = 38,
    /// A CSV record has more or fewer fields than the first one.
    field_count_mismatch = 39,
    /// Text that is not valid JSON.
    json_invalid = 40,
    /// A server failed, broke a connection, or answered something other than what was requested.
    remote_failed = 41,
    /// The answer to the request that completes an object was lost, so the object may or may not have been written.
    outcome_unknown = 42,
    /// The file or object exists, and was to be created.
    already_exists = 43,
    /// A source ended, but its bytes or records are not the expected ones.
    content_mismatch = 44,
    /// A job that writes a directory is not complete, or its manifest or one of its parts is missing, damaged or
    /// changed.
    job_incomplete = 45,
};

namespace detail {

/// A kind's name in snake case and what the user can do about it.
struct kind_text {
    std::string_view name;
    std::string_view advice;
};

/// In the order of the codes; the first is 1.
inline constexpr std::array<kind_text, 45> kind_texts{{
    {"io", "see the operating system's message"},
    {"open_failed", "check the name and the permissions"},
    {"command_not_started", "check that the program exists, is executable and is in PATH"},
    {"command_failed", "find out why it failed, or accept its failure with `allow_failure`"},
    {"command_status_unknown", "leave SIGCHLD at its default and do not wait for processes you did not start"},
    {"record_too_long", "raise `record_limit`; call `skip_record` to continue after this record"},
    {"frame_truncated", "check whether the input was cut short or the frame size is wrong"},
    {"length_invalid", "check width, byte order and whether the length counts itself"},
    {"utf8_invalid", "read the record as bytes"},
    {"decode_damaged", "fetch the file again; all data before this point has been delivered"},
    {"decode_truncated", "fetch the file again; all data before this point has been delivered"},
    {"decode_limit", "raise `decode_limit`, `decode_ratio` or `decode_memory` if the source is trusted"},
    {"stalled", "raise `stall_timeout`, or find out what the other side is waiting for"},
    {"cancelled", "continue, or close"},
    {"source_shrank", "do not truncate a file that is being read"},
    {"broken_pipe", "stop writing: the reader has closed the pipe or connection"},
    {"invalid_option", "correct the option or the argument"},
    {"unsupported", "see the documentation of this call"},
    {"closed", "open a new reader or writer"},
    {"internal", "report this message as a bug"},
    {"number_invalid", "check the input at this position, the separator and the type"},
    {"number_overflow", "use a wider type, or check the input at this position"},
    {"value_missing", "check whether the input was cut short, or request fewer values"},
    {"argument_invalid", "check the arguments of the call"},
    {"document_invalid", "check the program that wrote the document"},
    {"document_truncated", "check whether the input was cut short or contains a wrong length"},
    {"too_deep", "check the program that wrote the document; raise `depth` if the source is trusted"},
    {"key_missing", "check the path"},
    {"shape_mismatch", "request the type that was found, or check the program that wrote the document"},
    {"value_out_of_range", "use a wider type, or check the program that wrote the document"},
    {"text_invalid", "check the text at this position"},
    {"julia_invalid", "check the program that wrote the file; it can still be read as a plain document"},
    {"memory_limit", "raise the limit if the source is trusted"},
    {"stage_panicked", "fix the stage; the panic message on standard error shows where"},
    {"stage_failed", "check the record; skip failing records with `on_error`"},
    {"source_changed", "read the file again while no other program writes to it"},
    {"timed_out", "raise `total_timeout`, or find out why it takes so long"},
    {"csv_invalid", "check the file at this position, or choose the dialect in which it was written"},
    {"field_count_mismatch", "check the record, or choose how such records are read"},
    {"json_invalid", "check the program that wrote the text"},
    {"remote_failed", "check the server and the connection, then try again"},
    {"outcome_unknown", "look at the object before you write it again"},
    {"already_exists", "choose another name, or remove what exists"},
    {"content_mismatch", "get the source again, or check `expect_bytes`, `expect_hash` and `expect_records`"},
    {"job_incomplete", "see millstream commit --help, or write the output again"},
}};

} // namespace detail

} // namespace millstream

#endif
#endif

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
// millstream/input.hpp: numbers, words and lines from a file descriptor.
//
//     millstream::input in{fd};
//     int n;
//     in >> n;                                      // required: a missing value is an error
//     while (in >> a >> b) ...                      // both or neither; if neither, the loop ends
//     for (std::string_view line : in.lines()) ...
//
// Values are separated by any amount of white space. The forms of numbers are described in numbers.h: all integer types
// (including signed char and unsigned char, which is uint8_t), with checks for overflow; float and double like
// std::from_chars, with an optional `+`; 1e999 is out of range, and 1e-999 is 0. A char is one byte that is not white
// space; a std::string is a word.
//
// Invalid input is immediately an error (millstream::error) and never a value: `12x` and `1.5` are not ints, 300 is not
// a uint8_t. The error contains the byte and the line, what was found and what was expected. Invalid input is not
// consumed: reading the same value again fails again, and `word` or `line` reads the text.
//
// The end of the input is not an error if you test for it: the tested expression (`if`, `while`, `!`) becomes false. It
// is an error (value_missing) if a value is required, that is, without a test, and between values that are read
// together. So a program without tests stops at truncated input instead of continuing with old values.
//
// After a number, `line` returns the rest of its line: white space is consumed with the value that follows it.
//
// Bytes are read through a window on a buffer of 256 KiB, which grows for long words and lines up to the record limit
// of 64 MiB. Interrupted reads, short reads and reads from a non-blocking descriptor without data are continued. Before
// an input reads from anything but a regular file, or reports an error, it flushes the output to which it is tied
// (millstream::in is tied to millstream::out), so that the user sees a prompt.
//
// An input neither opens nor closes the descriptor, and it knows only that the bytes ended, not why. It reads ahead, so
// other readers of the descriptor do not get the buffered bytes. Only one thread at a time may use an input.
//
// Needs C++17 and no library.
#ifndef MILLSTREAM_INPUT_HPP
#define MILLSTREAM_INPUT_HPP

#if __cplusplus <= 201402L
#error "millstream/input.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

/*
 * millstream/numbers.h: scans and prints whole numbers in memory. C99 and C++17; no library to link.
 *
 *     char text[MILLSTREAM_NUMBER_SLACK];
 *     char *end = millstream_put_u32(text, 1234);            // "1234", four bytes, no '\0'
 *
 *     const char *at = "17 4", *limit = at + 4;
 *     uint32_t value;
 *     if (millstream_scan_u32(&at, limit, &value) == MILLSTREAM_SCANNED) ...    // 17; `at` is at the space
 *
 * The format is that of every language of Millstream (vectors/put.tsv and vectors/scan.tsv): decimal digits, `-`
 * for negative numbers, lower-case hexadecimal without a prefix. No function here allocates memory, does I/O,
 * depends on the locale, or keeps state, except for one word per program that stores what the processor supports.
 *
 * It does not support floating-point numbers: for C they are in the library (millstream.h), for C++ in stdio.hpp.
 *
 * Two ways to make digits, which give the same bytes, and a third for comparison:
 *   - ifma      x86-64 with AVX-512 IFMA and VBMI: sixteen digits at once, without a branch;
 *   - portable  any little-endian processor and a compiler that supports GNU C: four digits at once,
 *                from a table of 40 KiB;
 *   - plain     one digit after another: for all others, and as the reference of the tests.
 * On x86-64 (Linux and similar systems) the processor decides, when the first number is printed. There the environment
 * variable MILLSTREAM_DIGITS=ifma|portable|plain selects one way, as the tests do; a way that the processor does not
 * support, and any other value, is ignored. With the macro MILLSTREAM_NO_DISPATCH defined only the portable
 * (or plain) way is available, and neither processor nor environment is queried.
 *
 * Any number of threads may call any function here at the same time.
 */
#ifndef MILLSTREAM_NUMBERS_H
#define MILLSTREAM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In C++, an inline function of a header must be the same one in all files, hence not static. */
#ifdef __cplusplus
#define MILLSTREAM_INLINE inline
#define MILLSTREAM_FUNCTION inline
#else
#define MILLSTREAM_INLINE static inline
#define MILLSTREAM_FUNCTION static
#endif

/* MILLSTREAM_SWAR: eight bytes at a time. The first byte in memory must be the lowest one. */
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MILLSTREAM_SWAR 1
#define MILLSTREAM_HOT MILLSTREAM_INLINE __attribute__((always_inline))
#define MILLSTREAM_COLD MILLSTREAM_FUNCTION __attribute__((noinline, cold, unused))
#define MILLSTREAM_LIKELY(condition) __builtin_expect(!!(condition), 1)
/* MILLSTREAM_ASSEMBLY: not with MemorySanitizer, which does not see what it writes. */
#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#define MILLSTREAM_NO_ASSEMBLY 1
#endif
#endif
#if defined(__x86_64__) && !defined(MILLSTREAM_NO_ASSEMBLY)
#define MILLSTREAM_ASSEMBLY 1
#if defined(__LP64__) && !defined(MILLSTREAM_NO_DISPATCH)
#define MILLSTREAM_IFMA 1
#endif
#endif
#else
#define MILLSTREAM_HOT MILLSTREAM_INLINE
#define MILLSTREAM_COLD MILLSTREAM_INLINE
#define MILLSTREAM_LIKELY(condition) (condition)
#endif

#ifdef MILLSTREAM_IFMA
#include <stdlib.h> /* getenv */
#endif

#ifdef __cplusplus
extern "C++" { /* also when a C++ file includes this inside of extern "C" */
#endif

enum {
    /* The number of bytes that must be writable at `to` for any number of up to 64 bits. */
    MILLSTREAM_NUMBER_SLACK = 24,
    /* The number of bytes for 128 bits. */
    MILLSTREAM_NUMBER_SLACK_128 = 48
};

/* If the compiler has integers of 128 bits, they are printed and scanned too. */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 millstream_u128;
__extension__ typedef __int128 millstream_i128;
typedef millstream_u128 millstream_widest;
#else
typedef uint64_t millstream_widest;
#endif

/* ---- Printing: how many digits ------------------------------------------------------------------------------- */

/* 10^exponent, for 0 to 19. */
MILLSTREAM_HOT uint64_t millstream_power_of_10(unsigned exponent) {
    static const uint64_t powers[20] = {UINT64_C(1),
                                        UINT64_C(10),
                                        UINT64_C(100),
                                        UINT64_C(1000),
                                        UINT64_C(10000),
                                        UINT64_C(100000),
                                        UINT64_C(1000000),
                                        UINT64_C(10000000),
                                        UINT64_C(100000000),
                                        UINT64_C(1000000000),
                                        UINT64_C(10000000000),
                                        UINT64_C(100000000000),
                                        UINT64_C(1000000000000),
                                        UINT64_C(10000000000000),
                                        UINT64_C(100000000000000),
                                        UINT64_C(1000000000000000),
                                        UINT64_C(10000000000000000),
                                        UINT64_C(100000000000000000),
                                        UINT64_C(1000000000000000000),
                                        UINT64_C(10000000000000000000)};
    return powers[exponent];
}

/* ---- Printing: the plain way --------------------------------------------------------------------------------- */

/* Writes the digits of `value` at `to`, and no other bytes; returns their number. */
MILLSTREAM_INLINE size_t millstream_digits_plain(char *to, uint64_t value) {
    char reversed[20];
    size_t count = 0, i;
    do {
        reversed[count++] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    for (i = 0; i < count; i++)
        to[i] = reversed[count - 1 - i];
    return count;
}

/* ---- Printing: the portable way ------------------------------------------------------------------------------ */

#ifdef MILLSTREAM_SWAR

/* Returns the index of the highest bit that is set; at least one must be set. */
MILLSTREAM_HOT unsigned millstream_highest_bit(uint64_t value) {
#ifdef MILLSTREAM_ASSEMBLY
    /* The instruction waits for the old value of its target. Compilers often use the register of the last number's
     * length, and then each number waits for the previous one: 6.9 ns a record instead of 3.7. A zeroed register has no
     * dependency. */
    uint64_t index = 0;
    __asm__("bsr {%1, %0|%0, %1}" : "+r"(index) : "r"(value) : "cc");
    return (unsigned)index;
#else
    return 63 - (unsigned)__builtin_clzll(value);
#endif
}

/* Returns the number of decimal digits of `value` < 10^8. */
MILLSTREAM_HOT unsigned millstream_count_digits(uint32_t value) {
    /* By highest bit: the smaller of the two possible numbers, in the upper half, and a lower half that makes the sum
     * carry if `value` reaches the power of ten between them. */
#define MILLSTREAM_COUNT(most, power) (UINT64_C(most) << 32) - power
#define MILLSTREAM_COUNTS(most, power)                                                                                 \
    MILLSTREAM_COUNT(most, power), MILLSTREAM_COUNT(most, power), MILLSTREAM_COUNT(most, power)
    static const uint64_t counts[27] = {
        MILLSTREAM_COUNTS(2, 10),      MILLSTREAM_COUNT(2, 10),        MILLSTREAM_COUNTS(3, 100),
        MILLSTREAM_COUNTS(4, 1000),    MILLSTREAM_COUNTS(5, 10000),    MILLSTREAM_COUNT(5, 10000),
        MILLSTREAM_COUNTS(6, 100000),  MILLSTREAM_COUNTS(7, 1000000),  MILLSTREAM_COUNTS(8, 10000000),
        MILLSTREAM_COUNT(8, 10000000), MILLSTREAM_COUNTS(9, 100000000)};
#undef MILLSTREAM_COUNTS
#undef MILLSTREAM_COUNT
    return (unsigned)((value + counts[millstream_highest_bit(value | 1)]) >> 32);
}

/* Returns the eight digits of `value` < 10^8, including leading zeros, the first one in the lowest byte. */
MILLSTREAM_HOT uint64_t millstream_eight_digits(uint32_t value) {
    /* The four digits of each number below 10,000. With a table of pairs, a record would take 15 more instructions. */
#define MILLSTREAM_10(n)                                                                                               \
    n, n + (1 << 24), n + (2 << 24), n + (3 << 24), n + (4 << 24), n + (5 << 24), n + (6 << 24), n + (7 << 24),        \
        n + (8 << 24), n + (9 << 24)
#define MILLSTREAM_100(n)                                                                                              \
    MILLSTREAM_10(n), MILLSTREAM_10(n + (1 << 16)), MILLSTREAM_10(n + (2 << 16)), MILLSTREAM_10(n + (3 << 16)),        \
        MILLSTREAM_10(n + (4 << 16)), MILLSTREAM_10(n + (5 << 16)), MILLSTREAM_10(n + (6 << 16)),                      \
        MILLSTREAM_10(n + (7 << 16)), MILLSTREAM_10(n + (8 << 16)), MILLSTREAM_10(n + (9 << 16))
#define MILLSTREAM_1000(n)                                                                                             \
    MILLSTREAM_100(n), MILLSTREAM_100(n + 0x100), MILLSTREAM_100(n + 0x200), MILLSTREAM_100(n + 0x300),                \
        MILLSTREAM_100(n + 0x400), MILLSTREAM_100(n + 0x500), MILLSTREAM_100(n + 0x600), MILLSTREAM_100(n + 0x700),    \
        MILLSTREAM_100(n + 0x800), MILLSTREAM_100(n + 0x900)
    static const uint32_t four[10000] = {MILLSTREAM_1000(0x30303030), MILLSTREAM_1000(0x30303031),
                                         MILLSTREAM_1000(0x30303032), MILLSTREAM_1000(0x30303033),
                                         MILLSTREAM_1000(0x30303034), MILLSTREAM_1000(0x30303035),
                                         MILLSTREAM_1000(0x30303036), MILLSTREAM_1000(0x30303037),
                                         MILLSTREAM_1000(0x30303038), MILLSTREAM_1000(0x30303039)};
#undef MILLSTREAM_10
#undef MILLSTREAM_100
#undef MILLSTREAM_1000
    uint32_t high = value / 10000;
    return four[high] | (uint64_t)four[value - 10000 * high] << 32;
}

/* Returns the last `count` of eight digits, the first one in the lowest byte; `count` is 1 to 8. */
MILLSTREAM_HOT uint64_t millstream_last_digits(uint64_t eight, unsigned count) {
    return eight >> ((0 - 8 * count) & 63);
}

/* Writes sixteen digits of `value` < 10^16. */
MILLSTREAM_HOT void millstream_sixteen_digits(char *to, uint64_t value) {
    uint32_t high = (uint32_t)(value / 100000000), low = (uint32_t)(value % 100000000);
    uint64_t first = millstream_eight_digits(high), second = millstream_eight_digits(low);
    memcpy(to, &first, 8);
    memcpy(to + 8, &second, 8);
}

/* The rare cases that the two fast ways below do not handle. They are not inlined. */
MILLSTREAM_COLD size_t millstream_digits_long(char *to, uint64_t value) {
    uint32_t top = (uint32_t)(value / UINT64_C(10000000000000000));
    unsigned count = millstream_count_digits(top);
    uint64_t text = millstream_last_digits(millstream_eight_digits(top), count);
    memcpy(to, &text, 8);
    millstream_sixteen_digits(to + count, value % UINT64_C(10000000000000000));
    return count + 16;
}

/* Writes the digits of `value` at `to`, where MILLSTREAM_NUMBER_SLACK bytes are writable; returns their number. */
MILLSTREAM_HOT size_t millstream_digits_portable(char *to, uint64_t value) {
    unsigned count;
    uint64_t text;
    if (value < 100000000) {
        count = millstream_count_digits((uint32_t)value);
        text = millstream_last_digits(millstream_eight_digits((uint32_t)value), count);
        memcpy(to, &text, 8);
        return count;
    }
    if (value < UINT64_C(10000000000000000)) {
        uint32_t high = (uint32_t)(value / 100000000), low = (uint32_t)(value % 100000000);
        count = millstream_count_digits(high);
        text = millstream_last_digits(millstream_eight_digits(high), count);
        memcpy(to, &text, 8);
        text = millstream_eight_digits(low);
        memcpy(to + count, &text, 8);
        return count + 8;
    }
    return millstream_digits_long(to, value);
}

#endif /* MILLSTREAM_SWAR */

/* ---- Printing: AVX-512 IFMA ---------------------------------------------------------------------------------- */

#ifdef MILLSTREAM_IFMA

/* Returns whether this processor, and the system on it, supports millstream_digits_ifma. */
MILLSTREAM_INLINE int millstream_has_ifma(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vbmi");
}

/* gcc refuses these names if it may not use the registers itself. */
#ifdef __AVX512F__
#define MILLSTREAM_CLOBBERED "xmm16", "xmm17", "xmm18", "xmm19"
#else
#define MILLSTREAM_CLOBBERED
#endif

/*
 * Writes the digits of `value` at `to`, where MILLSTREAM_NUMBER_SLACK bytes are writable; returns their number.
 *
 * The idea: digit j of n < 10^8, counted from the left, is the first digit of the fraction n / 10^(8-j). A fraction is
 * kept as 52 bits, since the processor multiplies eight 52-bit numbers at once and returns either half of the products:
 *
 *     fraction = low 52 bits of (n * floor(2^52 / 10^(8-j))) + bias
 *     digit    = high bits of (fraction * 10), plus '0'
 *
 * The reciprocals are rounded down, by d < 1, so that the product is too small by n * d < 10^8 * d. The bias
 * compensates for that; it must be more than 10^8 * d and less than 2^52 / 10^(8-j), the distance to the next multiple.
 * For j = 0, d is 0.274 and the distance 45,035,996, so 40,000,000 is between them; for all others 100,000,000 is. (The
 * tests also try every n.)
 *
 * Both halves of a sixteen-digit number are computed in parallel. At the end one permutation selects the digits of
 * both; the offset of its index table skips leading zeros.
 *
 * Why assembly and not intrinsics: a function that uses other instructions than its caller cannot be inlined, and a
 * call costs as much as the digits (3.9 ns a record against 2.2). It changes only registers from 16 on, which compilers
 * that may not use AVX-512 do not know, and which need no `vzeroupper`. Each instruction is given in both dialects,
 * {AT&T|Intel}, since -masm=intel is only visible to the assembler.
 */
MILLSTREAM_HOT size_t millstream_digits_ifma(char *to, uint64_t value) {
    /* Loads that cross a cache line would cost a fifth of the time. */
    static const struct __attribute__((aligned(64))) {
        uint64_t reciprocal[8], bias[8];
        uint64_t zero, ten;
        unsigned char pick[32], least[54];
    } k = {{UINT64_C(45035996), UINT64_C(450359962), UINT64_C(4503599627), UINT64_C(45035996273),
            UINT64_C(450359962737), UINT64_C(4503599627370), UINT64_C(45035996273704), UINT64_C(450359962737049)},
           {40000000, 100000000, 100000000, 100000000, 100000000, 100000000, 100000000, 100000000},
           '0',
           10,
           {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120,
            0, 0, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,   0,   0},
           {0, 0, 0, 1, 1, 1, 2,  2,  2,  3,  3,  3,  3,  4,  4,  4,  5,  5,  5,  6,  6,  6,  6,  7,  7,  7,  8,
            8, 8, 9, 9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15, 15, 16}};
    size_t count;
    uint64_t high, low;
    typedef char sixteen[16];
    if (!MILLSTREAM_LIKELY(value < UINT64_C(10000000000000000)))
        return millstream_digits_long(to, value);
    /* The number of digits or one less; 0 has as many as 1, and no even number is the last before one with more. */
    count = k.least[millstream_highest_bit(value | 1)];
    count += (value | 1) >= millstream_power_of_10((unsigned)count);
    high = value / 100000000;
    low = value % 100000000;
    __asm__("vmovdqu64 {%[bias], %%zmm16|zmm16, %[bias]}\n\t"
            "vmovdqu64 {%[bias], %%zmm17|zmm17, %[bias]}\n\t"
            "vpbroadcastq {%[high], %%zmm18|zmm18, %[high]}\n\t"
            "vpbroadcastq {%[low], %%zmm19|zmm19, %[low]}\n\t"
            /* the fractions */
            "vpmadd52luq {%[reciprocal], %%zmm18, %%zmm16|zmm16, zmm18, %[reciprocal]}\n\t"
            "vpmadd52luq {%[reciprocal], %%zmm19, %%zmm17|zmm17, zmm19, %[reciprocal]}\n\t"
            "vpbroadcastq {%[zero], %%zmm18|zmm18, %[zero]}\n\t"
            "vmovdqa64 {%%zmm18, %%zmm19|zmm19, zmm18}\n\t"
            /* the digits, each in the lowest of eight bytes */
            "vpmadd52huq {%[ten]%{1to8%}, %%zmm16, %%zmm18|zmm18, zmm16, %[ten]%{1to8%}}\n\t"
            "vpmadd52huq {%[ten]%{1to8%}, %%zmm17, %%zmm19|zmm19, zmm17, %[ten]%{1to8%}}\n\t"
            "vmovdqu8 {%[pick], %%xmm16|xmm16, %[pick]}\n\t"
            "vpermi2b {%%zmm19, %%zmm18, %%zmm16|zmm16, zmm18, zmm19}\n\t"
            "vmovdqu8 {%%xmm16, %[text]|%[text], xmm16}"
            : [text] "=m"(*(sixteen *)(void *)to)
            : [bias] "m"(k.bias), [reciprocal] "m"(k.reciprocal), [high] "r"(high), [low] "r"(low), [zero] "m"(k.zero),
              [ten] "m"(k.ten), [pick] "m"(*(const sixteen *)(const void *)(k.pick + 16 - count))
            : MILLSTREAM_CLOBBERED);
#undef MILLSTREAM_CLOBBERED
    return count;
}

/* The ways to make digits that can be selected at run time. */
enum { MILLSTREAM_DIGITS_UNKNOWN, MILLSTREAM_DIGITS_PLAIN, MILLSTREAM_DIGITS_PORTABLE, MILLSTREAM_DIGITS_IFMA };

MILLSTREAM_INLINE int millstream_choose_digits(void) {
    const char *asked = getenv("MILLSTREAM_DIGITS");
    if (asked && strcmp(asked, "plain") == 0)
        return MILLSTREAM_DIGITS_PLAIN;
    if ((asked && strcmp(asked, "portable") == 0) || !millstream_has_ifma())
        return MILLSTREAM_DIGITS_PORTABLE;
    return MILLSTREAM_DIGITS_IFMA;
}

/* The way that this program uses; unknown before the first call of millstream_digits_unusual. */
MILLSTREAM_HOT int *millstream_digits_way(void) {
    static int way = MILLSTREAM_DIGITS_UNKNOWN;
    return &way;
}

/* Prints the first number of a program, which selects the way, and all numbers if the plain way is selected. */
MILLSTREAM_COLD size_t millstream_digits_unusual(char *to, uint64_t value) {
    /* Threads that are here at the same time select the same way. */
    int way = millstream_choose_digits();
    __atomic_store_n(millstream_digits_way(), way, __ATOMIC_RELAXED);
    if (way == MILLSTREAM_DIGITS_IFMA)
        return millstream_digits_ifma(to, value);
    if (way == MILLSTREAM_DIGITS_PORTABLE)
        return millstream_digits_portable(to, value);
    return millstream_digits_plain(to, value);
}

#endif /* MILLSTREAM_IFMA */

/* ---- Printing: the functions to call ------------------------------------------------------------------------- */

/* Writes the digits of `value` at `to`, where MILLSTREAM_NUMBER_SLACK bytes are writable; returns their number. */
MILLSTREAM_HOT size_t millstream_digits(char *to, uint64_t value) {
#if defined(MILLSTREAM_IFMA)
    int way = __atomic_load_n(millstream_digits_way(), __ATOMIC_RELAXED);
    /* There is no hint about likelihood: compilers optimise rare code for size, with real divisions. */
    if (way == MILLSTREAM_DIGITS_IFMA)
        return millstream_digits_ifma(to, value);
    if (MILLSTREAM_LIKELY(way == MILLSTREAM_DIGITS_PORTABLE))
        return millstream_digits_portable(to, value);
    return millstream_digits_unusual(to, value);
#elif defined(MILLSTREAM_SWAR)
    return millstream_digits_portable(to, value);
#else
    return millstream_digits_plain(to, value);
#endif
}

/* Writes a signed number, with a `-` for negative ones. */
MILLSTREAM_HOT size_t millstream_digits_signed(char *to, int64_t value) {
    size_t sign = value < 0;
    *to = '-'; /* overwritten by the first digit if positive */
    return sign + millstream_digits(to + sign, sign ? 0 - (uint64_t)value : (uint64_t)value);
}

/*
 * Each of the following writes a number at `to` and returns the end of its text; there is no '\0' after it.
 * MILLSTREAM_NUMBER_SLACK bytes must be writable at `to`, whatever the value: those after the text may change.
 */
MILLSTREAM_HOT char *millstream_put_u32(char *to, uint32_t value) { return to + millstream_digits(to, value); }

MILLSTREAM_HOT char *millstream_put_u64(char *to, uint64_t value) { return to + millstream_digits(to, value); }

MILLSTREAM_HOT char *millstream_put_i32(char *to, int32_t value) { return to + millstream_digits_signed(to, value); }

MILLSTREAM_HOT char *millstream_put_i64(char *to, int64_t value) { return to + millstream_digits_signed(to, value); }

/* Writes hexadecimal digits in lower case, without a prefix. */
MILLSTREAM_INLINE char *millstream_put_hex_u64(char *to, uint64_t value) {
    unsigned shift = 60;
    while (shift != 0 && value >> shift == 0)
        shift -= 4;
    for (;;) {
        *to++ = "0123456789abcdef"[value >> shift & 15];
        if (shift == 0)
            return to;
        shift -= 4;
    }
}

/* Writes a number right-aligned in `width` bytes, padded with `fill`: width + MILLSTREAM_NUMBER_SLACK bytes must be
 * writable. */
MILLSTREAM_INLINE char *millstream_put_u64_padded(char *to, uint64_t value, size_t width, char fill) {
    char digits[MILLSTREAM_NUMBER_SLACK];
    size_t count = millstream_digits(digits, value);
    size_t gap = width > count ? width - count : 0;
    memset(to, fill, gap);
    memcpy(to + gap, digits, count);
    return to + gap + count;
}

/* As above, for signed numbers; the sign is one of the `width` bytes. Zeros follow it, any other fill precedes it. */
MILLSTREAM_INLINE char *millstream_put_i64_padded(char *to, int64_t value, size_t width, char fill) {
    char text[MILLSTREAM_NUMBER_SLACK];
    size_t count, gap;
    if (fill == '0' && value < 0) {
        *to++ = '-';
        return millstream_put_u64_padded(to, 0 - (uint64_t)value, width != 0 ? width - 1 : 0, fill);
    }
    count = millstream_digits_signed(text, value);
    gap = width > count ? width - count : 0;
    memset(to, fill, gap);
    memcpy(to + gap, text, count);
    return to + gap + count;
}

#ifdef __SIZEOF_INT128__
/* 128 bits: MILLSTREAM_NUMBER_SLACK_128 bytes must be writable at `to`. */
MILLSTREAM_INLINE char *millstream_put_u128(char *to, millstream_u128 value) {
    const uint64_t part = millstream_power_of_10(19);
    if (value <= UINT64_MAX)
        return millstream_put_u64(to, (uint64_t)value);
    to = millstream_put_u128(to, value / part);
    return millstream_put_u64_padded(to, (uint64_t)(value % part), 19, '0');
}

MILLSTREAM_INLINE char *millstream_put_i128(char *to, millstream_i128 value) {
    if (value < 0)
        *to++ = '-';
    return millstream_put_u128(to, value < 0 ? 0 - (millstream_u128)value : (millstream_u128)value);
}
#endif

/* ---- Scanning ------------------------------------------------------------------------------------------------ */

/*
 * A token is the text between white space: the bytes 9 to 13 and 32. A number is an optional sign and at least one
 * digit, with any number of leading zeros; a `-` is for signed types. Any other token is
 * MILLSTREAM_SCAN_INVALID, even if it is also too large.
 */
enum {
    MILLSTREAM_SCANNED,      /* the value is there, and the position is after the token */
    MILLSTREAM_SCAN_MORE,    /* the token goes to the end of what there is: get more, or see `_last` */
    MILLSTREAM_SCAN_INVALID, /* not a number of this type */
    MILLSTREAM_SCAN_OVERFLOW /* a number that is too large or too small for this type */
};

MILLSTREAM_HOT int millstream_is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* Returns the first byte at or after `at` that is not white space, or `end` if there is none. */
MILLSTREAM_HOT const char *millstream_skip_space(const char *at, const char *end) {
    while (at != end && millstream_is_space(*at))
        ++at;
    return at;
}

/* Whether no bytes will follow `end`. */
typedef enum { MILLSTREAM_MORE_MAY_COME, MILLSTREAM_ALL_IS_HERE } millstream_extent;

/* The result for the digits of a token, before they become a number of some type. */
typedef struct {
    millstream_widest magnitude;
    int negative;
} millstream_scanned;

/*
 * Scans one token, byte by byte: the reference for the fast way below, and used for all rare cases. The magnitude may
 * be at most `most`, or `most_negative` after a `-`; 0 there means an unsigned type. Only MILLSTREAM_SCANNED moves
 * `*at` and writes `*out`.
 */
MILLSTREAM_INLINE int millstream_scan_plain(const char **at, const char *end, millstream_widest most,
                                            millstream_widest most_negative, millstream_extent extent,
                                            millstream_scanned *out) {
    const char *p = *at;
    const char *digits;
    millstream_widest magnitude = 0;
    int negative = 0, overflow = 0;
    if (p != end && (*p == '+' || (*p == '-' && most_negative != 0)))
        negative = *p++ == '-';
    if (negative)
        most = most_negative;
    for (digits = p; p != end && *p >= '0' && *p <= '9'; ++p) {
        unsigned digit = (unsigned)(*p - '0');
        if (magnitude > most / 10 || magnitude * 10 > most - digit)
            overflow = 1;
        else
            magnitude = magnitude * 10 + digit;
    }
    if (p == end && extent == MILLSTREAM_MORE_MAY_COME)
        return MILLSTREAM_SCAN_MORE;
    if (p == digits || (p != end && !millstream_is_space(*p)))
        return MILLSTREAM_SCAN_INVALID;
    if (overflow)
        return MILLSTREAM_SCAN_OVERFLOW;
    *at = p;
    out->magnitude = magnitude;
    out->negative = negative;
    return MILLSTREAM_SCANNED;
}

#ifdef MILLSTREAM_SWAR

/* Returns the eight bytes at `p`, with digits converted to their values. */
MILLSTREAM_HOT uint64_t millstream_load_digits(const char *p) {
    uint64_t bytes;
    memcpy(&bytes, p, 8);
    return bytes ^ UINT64_C(0x3030303030303030);
}

/* Returns the number of leading digits of `loaded`. */
MILLSTREAM_HOT unsigned millstream_leading_digits(uint64_t loaded) {
    /* Values above 9 reach the highest bit of their byte. A carry affects only bytes after it. */
    uint64_t others = ((loaded + UINT64_C(0x7676767676767676)) | loaded) & UINT64_C(0x8080808080808080);
    return others == 0 ? 8 : (unsigned)__builtin_ctzll(others) >> 3;
}

/* Returns the value of the first `count` <= 8 digits of `loaded`. */
MILLSTREAM_HOT uint64_t millstream_join_digits(uint64_t loaded, unsigned count) {
    /* Others are shifted out, zeros are shifted in; in two steps, since a shift by 64 is undefined. */
    uint64_t v = loaded << (4 * (8 - count)) << (4 * (8 - count));
    /* Neighbours are combined: eight digits to four numbers, to two, to one. */
    v = (v * (1 + (10 << 8))) >> 8 & UINT64_C(0x00ff00ff00ff00ff);
    v = (v * (1 + (100 << 16))) >> 16 & UINT64_C(0x0000ffff0000ffff);
    return (v * (1 + (UINT64_C(10000) << 32))) >> 32;
}

#endif /* MILLSTREAM_SWAR */

/* Does what millstream_scan_plain does, for up to 64 bits. */
MILLSTREAM_HOT int millstream_scan_token(const char **at, const char *end, uint64_t most, uint64_t most_negative,
                                         millstream_extent extent, uint64_t *magnitude_out, int *negative_out) {
    millstream_scanned scanned = {0, 0};
    int result;
#ifdef MILLSTREAM_SWAR
    /* A sign, twenty digits, the byte after them, and the reach of the last of three loads. */
    if (MILLSTREAM_LIKELY(end - *at >= 32)) {
        const char *p = *at;
        int negative = most_negative != 0 && *p == '-';
        uint64_t loaded, magnitude;
        unsigned count;
        p += negative;
        loaded = millstream_load_digits(p);
        count = millstream_leading_digits(loaded);
        magnitude = millstream_join_digits(loaded, count);
        if (count == 8) {
            unsigned more;
            loaded = millstream_load_digits(p + 8);
            more = millstream_leading_digits(loaded);
            magnitude = magnitude * millstream_power_of_10(more) + millstream_join_digits(loaded, more);
            count += more;
            if (count == 16) {
                int overflow;
                loaded = millstream_load_digits(p + 16);
                more = millstream_leading_digits(loaded);
                overflow = more > 4 || __builtin_mul_overflow(magnitude, millstream_power_of_10(more), &magnitude);
                overflow |= __builtin_add_overflow(magnitude, millstream_join_digits(loaded, more), &magnitude);
                if (overflow)
                    goto rare;
                count += more;
            }
        }
        p += count;
        if (MILLSTREAM_LIKELY(count != 0 && magnitude <= (negative ? most_negative : most) &&
                              millstream_is_space(*p))) {
            *at = p;
            *magnitude_out = magnitude;
            *negative_out = negative;
            return MILLSTREAM_SCANNED;
        }
    rare:;
    }
#endif
    result = millstream_scan_plain(at, end, most, most_negative, extent, &scanned);
    *magnitude_out = (uint64_t)scanned.magnitude;
    *negative_out = scanned.negative;
    return result;
}

/*
 * Scans a number of at most `most`, of an unsigned type. `*at` is the token's first byte, after white space.
 * Only MILLSTREAM_SCANNED moves `*at` and writes `*out`.
 */
MILLSTREAM_HOT int millstream_scan_unsigned(const char **at, const char *end, uint64_t most, millstream_extent extent,
                                            uint64_t *out) {
    uint64_t magnitude;
    int negative;
    int result = millstream_scan_token(at, end, most, 0, extent, &magnitude, &negative);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = magnitude;
    return result;
}

/* Scans a number of a signed type, between `-most - 1` and `most`. */
MILLSTREAM_HOT int millstream_scan_signed(const char **at, const char *end, int64_t most, millstream_extent extent,
                                          int64_t *out) {
    uint64_t magnitude;
    int negative;
    int result = millstream_scan_token(at, end, (uint64_t)most, (uint64_t)most + 1, extent, &magnitude, &negative);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return result;
}

/*
 * Each of the following scans the number whose token begins at `*at`, white space having been skipped, and reads no
 * byte at or after `end`. Only MILLSTREAM_SCANNED moves `*at`, to the byte after the token, and writes `*out`.
 *
 * The plain names are for a window on a stream: a token that touches `end` may be incomplete, and gives
 * MILLSTREAM_SCAN_MORE. Those in `_last` are for input that ends there, such as the last bytes of a file, or a string.
 */
MILLSTREAM_HOT int millstream_scan_u64(const char **at, const char *end, uint64_t *out) {
    return millstream_scan_unsigned(at, end, UINT64_MAX, MILLSTREAM_MORE_MAY_COME, out);
}

MILLSTREAM_HOT int millstream_scan_last_u64(const char **at, const char *end, uint64_t *out) {
    return millstream_scan_unsigned(at, end, UINT64_MAX, MILLSTREAM_ALL_IS_HERE, out);
}

MILLSTREAM_HOT int millstream_scan_i64(const char **at, const char *end, int64_t *out) {
    return millstream_scan_signed(at, end, INT64_MAX, MILLSTREAM_MORE_MAY_COME, out);
}

MILLSTREAM_HOT int millstream_scan_last_i64(const char **at, const char *end, int64_t *out) {
    return millstream_scan_signed(at, end, INT64_MAX, MILLSTREAM_ALL_IS_HERE, out);
}

MILLSTREAM_HOT int millstream_scan_u32(const char **at, const char *end, uint32_t *out) {
    uint64_t value = 0;
    int result = millstream_scan_unsigned(at, end, UINT32_MAX, MILLSTREAM_MORE_MAY_COME, &value);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = (uint32_t)value;
    return result;
}

MILLSTREAM_HOT int millstream_scan_last_u32(const char **at, const char *end, uint32_t *out) {
    uint64_t value = 0;
    int result = millstream_scan_unsigned(at, end, UINT32_MAX, MILLSTREAM_ALL_IS_HERE, &value);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = (uint32_t)value;
    return result;
}

MILLSTREAM_HOT int millstream_scan_i32(const char **at, const char *end, int32_t *out) {
    int64_t value = 0;
    int result = millstream_scan_signed(at, end, INT32_MAX, MILLSTREAM_MORE_MAY_COME, &value);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = (int32_t)value;
    return result;
}

MILLSTREAM_HOT int millstream_scan_last_i32(const char **at, const char *end, int32_t *out) {
    int64_t value = 0;
    int result = millstream_scan_signed(at, end, INT32_MAX, MILLSTREAM_ALL_IS_HERE, &value);
    if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
        *out = (int32_t)value;
    return result;
}

#ifdef __SIZEOF_INT128__
/* Scans 128 bits, byte by byte. */
MILLSTREAM_INLINE int millstream_scan_u128(const char **at, const char *end, millstream_extent extent,
                                           millstream_u128 *out) {
    millstream_scanned scanned;
    int result = millstream_scan_plain(at, end, ~(millstream_u128)0, 0, extent, &scanned);
    if (result == MILLSTREAM_SCANNED)
        *out = scanned.magnitude;
    return result;
}

MILLSTREAM_INLINE int millstream_scan_i128(const char **at, const char *end, millstream_extent extent,
                                           millstream_i128 *out) {
    const millstream_u128 most = ~(millstream_u128)0 >> 1;
    millstream_scanned scanned;
    int result = millstream_scan_plain(at, end, most, most + 1, extent, &scanned);
    if (result == MILLSTREAM_SCANNED)
        *out = (millstream_i128)(scanned.negative ? 0 - scanned.magnitude : scanned.magnitude);
    return result;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* MILLSTREAM_NUMBERS_H */
// millstream/output.hpp: writes text and numbers to a file descriptor.
//
//     millstream::output log{fd};
//     log.print("Hello, ", i, '\t');
//     log << max(a, b) << '\n';
//     log.flush();
//
// Bytes are collected in a buffer of 64 KiB (256 KiB for a pipe) and written when it is full, at `flush`, and at the
// end; for a terminal also at each line end. put.hpp describes how values become text. A print checks once whether all
// its parts fit, and then writes without further checks.
//
// Short writes, interrupted writes and writes to a full non-blocking descriptor are continued, so that no byte is lost
// or written twice. A failed write throws millstream::error, which contains the number of bytes that the system
// accepted; a broken pipe has its own kind (if SIGPIPE is ignored; otherwise it kills the program). After a failed
// write the output is closed, and each further print fails. A print that fails has printed none of its parts, unless it
// is larger than the buffer or has parts with their own hook.
//
// An output neither opens nor closes the descriptor. Only one thread at a time may use an output. Bytes in the buffer
// are duplicated if the process forks, so flush before a fork.
//
// Needs C++17 and no library.
#ifndef MILLSTREAM_OUTPUT_HPP
#define MILLSTREAM_OUTPUT_HPP

#if __cplusplus <= 201402L
#error "millstream/output.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

// millstream/put.hpp: converts values to text, as parts of millstream::out.print(...), and defines formats such as hex.
//
//     using namespace millstream;
//     out.println(pad(x, 8), ' ', hex(y), ' ', fixed(z, 2), ' ', json(name));
//
// The text of a value, which is the same in every language of Millstream:
//
//   char                        that byte
//   std::string, string_view,   their bytes; of a literal or an array those before its first
//     "literal", const char *    '\0'; a null pointer is an error (argument_invalid), and nullptr does not compile
//   all other integers          decimal, signed char and unsigned char (uint8_t) too; 128 bits if the compiler has them
//   float, double               the shortest text that reads back as the same number: 1.0, 0.1, 1e16, 1.5e-7, NaN, inf
//   bool                        true or false
//   hex(x)                      lower-case hexadecimal without a prefix; of negative numbers, two's complement
//   pad(x, width)               an integer with spaces in front
//   zero_fill(x, width)         an integer with zeros in front, after its sign
//   fixed(x, digits)            this many digits after the point, rounded from the exact value; width and digits count
//                               as 65535 if they are more
//   json(text)                  a quoted string; bytes that are not UTF-8 become U+FFFD
//
// To print your own type, define `void ms_put(millstream::output &out, const your_type &value)` in its namespace; it
// prints to `out`. (Types that convert to std::string_view do not need it.)
//
// Each part has a maximum size (`max_size`) and writes itself into that space (`put`): print adds the sizes and checks
// once whether there is enough space. Sizes always have 64 bits, so that their sum cannot overflow: it is a small
// multiple of the bytes in memory and of bounded widths. Users of stdio.hpp need neither parts nor sizes.
//
// Needs C++17 and no library. Floating-point numbers need a standard library whose std::to_chars supports them
// (libstdc++ of gcc 11 and later).
#ifndef MILLSTREAM_PUT_HPP
#define MILLSTREAM_PUT_HPP

#if __cplusplus <= 201402L
#error "millstream/put.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>


namespace millstream {
namespace detail {

/// Integers that are numbers: not bool, and no character types except the two that are bytes.
template <class T>
inline constexpr bool is_number =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
    !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;

#ifdef __cpp_char8_t
template <>
inline constexpr bool is_number<char8_t> = false;
#endif

// The language mode determines whether the standard library treats them as integers.
#ifdef __SIZEOF_INT128__
template <>
inline constexpr bool is_number<millstream_u128> = true;
template <>
inline constexpr bool is_number<millstream_i128> = true;
#endif

template <class T>
inline constexpr bool is_signed_number = is_number<T> &&T(-1) < T(0);

/// The unsigned type for negation and hexadecimal, with 64 or 128 bits.
template <class T>
using magnitude_of = std::conditional_t<sizeof(T) <= 8, std::uint64_t, millstream_widest>;

/// Writes the digits of a magnitude; returns their number.
MILLSTREAM_HOT std::size_t put_digits(char *to, std::uint64_t value) { return millstream_digits(to, value); }
#ifdef __SIZEOF_INT128__
inline std::size_t put_digits(char *to, millstream_u128 value) {
    return static_cast<std::size_t>(millstream_put_u128(to, value) - to);
}
#endif

/// The largest width, and the largest number of digits after the decimal point, as in every language of Millstream.
inline constexpr std::size_t most_wide = UINT16_MAX;
constexpr std::uint16_t as_width(std::size_t width) {
    return static_cast<std::uint16_t>(width < most_wide ? width : most_wide);
}

/// The space that parts need one after another.
template <class... Parts>
MILLSTREAM_HOT std::uint64_t max_size_of(const Parts &...parts) {
    return (std::uint64_t{0} + ... + parts.max_size());
}

/// Converts a space to a size; larger than any memory if it exceeds the range of a size.
MILLSTREAM_HOT std::size_t as_size(std::uint64_t size) {
    return size < SIZE_MAX ? static_cast<std::size_t>(size) : SIZE_MAX;
}

/// The space that digits and a sign need.
template <class T>
inline constexpr std::size_t max_number_size = sizeof(T) <= 8 ? MILLSTREAM_NUMBER_SLACK : MILLSTREAM_NUMBER_SLACK_128;

// ---- The parts ----------------------------------------------------------------------------------------------------

struct text_part {
    std::string_view text;
    MILLSTREAM_HOT std::size_t max_size() const { return text.size(); }
    MILLSTREAM_HOT std::size_t put(char *to) const {
        if (!text.empty()) // the address may be null
            std::memcpy(to, text.data(), text.size());
        return text.size();
    }
};

struct char_part {
    char byte;
    MILLSTREAM_HOT std::size_t max_size() const { return 1; }
    MILLSTREAM_HOT std::size_t put(char *to) const {
        *to = byte;
        return 1;
    }
};

template <class T>
struct number_part {
    T value;
    MILLSTREAM_HOT std::size_t max_size() const { return max_number_size<T>; }
    MILLSTREAM_HOT std::size_t put(char *to) const {
        using magnitude = magnitude_of<T>;
        if constexpr (is_signed_number<T>) {
            const std::size_t sign = value < 0;
            *to = '-'; // the first digit may overwrite it
            const auto bits = static_cast<magnitude>(value);
            return sign + put_digits(to + sign, sign != 0 ? 0 - bits : bits);
        } else {
            return put_digits(to, static_cast<magnitude>(value));
        }
    }
};

template <class T>
struct hex_part {
    T value;
    std::size_t max_size() const { return 2 * sizeof(T); }
    std::size_t put(char *to) const {
        auto bits = static_cast<magnitude_of<T>>(value);
        if constexpr (sizeof(T) < 8)
            bits &= (std::uint64_t{1} << (8 * sizeof(T))) - 1;
        std::size_t count = 1;
        for (auto rest = bits >> 4; rest != 0; rest >>= 4)
            ++count;
        for (std::size_t i = count; i-- > 0; bits >>= 4)
            to[i] = "0123456789abcdef"[static_cast<unsigned>(bits) & 15];
        return count;
    }
};

template <class T>
struct padded_part {
    T value;
    std::uint16_t width;
    char fill;
    std::size_t max_size() const { return width + max_number_size<T>; }
    std::size_t put(char *to) const {
        char digits[max_number_size<T>];
        const std::size_t count = number_part<T>{value}.put(digits);
        const std::size_t gap = width > count ? width - count : 0;
        const std::size_t sign = fill == '0' && digits[0] == '-'; // the sign is before zeros and after spaces
        std::memcpy(to, digits, sign);
        std::memset(to + sign, fill, gap);
        std::memcpy(to + sign + gap, digits + sign, count - sign);
        return count + gap;
    }
};

/// Writes `NaN`, `inf` or `-inf`; returns 0 if the value is none of them.
inline std::size_t put_special(char *to, double value) {
    const std::string_view text = std::isnan(value) ? "NaN" : !std::isinf(value) ? "" : value < 0 ? "-inf" : "inf";
    return text_part{text}.put(to);
}

/// The standard library produces the shortest digits in scientific notation; the layout is defined here.
template <class T>
struct real_part {
    T value;
    std::size_t max_size() const { return 32; }
    std::size_t put(char *to) const {
        if (const std::size_t count = put_special(to, static_cast<double>(value)))
            return count;
        char digits[32]; // [-]d[.ddd]e(+|-)dd[d]
        char *end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
        char *from = digits, *const begin = to;
        if (*from == '-')
            *to++ = *from++;
        char *mark = end - 1; // the e
        while (*mark != 'e')
            --mark;
        int exponent = 0;
        std::from_chars(mark + (mark[1] == '+' ? 2 : 1), end, exponent);
        if (from + 1 != mark) { // all digits in a row, the point at `from` overwritten
            from[1] = from[0];
            ++from;
        }
        const auto count = static_cast<int>(mark - from);
        const bool plain = -5 <= exponent && exponent < 16;
        const int before = !plain ? 1 : exponent < 0 ? 0 : exponent + 1; // digits before the point
        if (before == 0) {
            *to++ = '0';
            *to++ = '.';
            to = repeat(to, '0', -exponent - 1);
            to = copy(to, from, count);
        } else if (count <= before) {
            to = copy(to, from, count);
            to = repeat(to, '0', before - count);
            if (plain)
                to = copy(to, ".0", 2);
        } else {
            to = copy(to, from, before);
            *to++ = '.';
            to = copy(to, from + before, count - before);
        }
        if (!plain) {
            *to++ = 'e';
            to += number_part<int>{exponent}.put(to);
        }
        return static_cast<std::size_t>(to - begin);
    }

  private:
    static char *copy(char *to, const char *from, int count) {
        std::memcpy(to, from, static_cast<std::size_t>(count));
        return to + count;
    }
    static char *repeat(char *to, char byte, int count) {
        std::memset(to, byte, static_cast<std::size_t>(count));
        return to + count;
    }
};

struct fixed_part {
    double value;
    std::uint16_t digits;
    std::size_t max_size() const { return std::size_t{std::numeric_limits<double>::max_exponent10} + 4 + digits; }
    std::size_t put(char *to) const {
        if (const std::size_t count = put_special(to, value))
            return count;
        return static_cast<std::size_t>(
            std::to_chars(to, to + max_size(), value, std::chars_format::fixed, digits).ptr - to);
    }
};

/// Returns the number of bytes of the first UTF-8 character of `text`, according to Unicode's table of well-formed
/// sequences. Returns 0 if it is invalid; then `bad` is the number of bytes that one U+FFFD replaces.
inline std::size_t utf8_length(std::string_view text, std::size_t &bad) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    bad = 1;
    if (first < 0x80)
        return 1;
    const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length == 0)
        return 0;
    for (std::size_t i = 1; i < length; bad = ++i) {
        // The second byte shows overlong forms, surrogates and values above U+10FFFF.
        const unsigned char least = i != 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const unsigned char most = i != 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (i == text.size() || byte(i) < least || byte(i) > most)
            return 0;
    }
    return length;
}

struct json_part {
    std::string_view text;
    std::uint64_t max_size() const { return std::uint64_t{6} * text.size() + 2; }
    std::size_t put(char *to) const {
        char *const begin = to;
        *to++ = '"';
        for (std::string_view rest = text; !rest.empty();) {
            std::size_t bad = 0, length = utf8_length(rest, bad);
            if (length == 0) {
                to += text_part{"\xef\xbf\xbd"}.put(to); // U+FFFD
                length = bad;
            } else if (length == 1) {
                to = put_ascii(to, rest[0]);
            } else {
                to += text_part{rest.substr(0, length)}.put(to);
            }
            rest.remove_prefix(length);
        }
        *to++ = '"';
        return static_cast<std::size_t>(to - begin);
    }

  private:
    static char *put_ascii(char *to, char byte) {
        const std::string_view named = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
        const std::size_t at = named.find(byte);
        if (at != named.npos) {
            *to++ = '\\';
            *to++ = letters[at];
        } else if (static_cast<unsigned char>(byte) < 0x20) {
            to += text_part{"\\u00"}.put(to);
            *to++ = static_cast<char>('0' + (byte >> 4));
            *to++ = "0123456789abcdef"[byte & 15];
        } else {
            *to++ = byte;
        }
        return to;
    }
};

// ---- From values to parts -----------------------------------------------------------------------------------------

/// A type with its own hook, or without a text form.
struct no_part {};

template <class T>
inline constexpr bool is_part_already = false;
template <class T>
inline constexpr bool is_part_already<hex_part<T>> = true;
template <class T>
inline constexpr bool is_part_already<padded_part<T>> = true;
template <>
inline constexpr bool is_part_already<fixed_part> = true;
template <>
inline constexpr bool is_part_already<json_part> = true;

template <class T>
inline constexpr bool is_char_array = false;
template <std::size_t N>
inline constexpr bool is_char_array<char[N]> = true;

/// The content of an array before its first '\0', or the whole array.
MILLSTREAM_HOT std::string_view until_zero(const char *text, std::size_t size) {
    if (MILLSTREAM_LIKELY(text[size - 1] == '\0'))
        return text; // compilers know the length of a literal
    const void *const zero = std::memchr(text, '\0', size);
    return {text, zero == nullptr ? size : static_cast<std::size_t>(static_cast<const char *>(zero) - text)};
}

/// A pointer to characters, which may be null.
template <class T>
inline constexpr bool is_text_pointer = std::is_same_v<T, const char *> || std::is_same_v<T, char *>;

template <class T>
constexpr bool is_null_text([[maybe_unused]] const T &value) {
    if constexpr (is_text_pointer<T>)
        return value == nullptr;
    else
        return false;
}

[[noreturn, gnu::noinline, gnu::cold]] inline void fail_null_text() {
    error_details details;
    details.kind = errc::argument_invalid;
    details.found = "a null pointer";
    details.expected = "text to print";
    fail(std::move(details));
}

template <class T>
MILLSTREAM_HOT auto as_part(const T &value) {
    if constexpr (is_part_already<T>)
        return value;
    else if constexpr (std::is_same_v<T, bool>)
        return text_part{value ? "true" : "false"};
    else if constexpr (std::is_same_v<T, char>)
        return char_part{value};
    else if constexpr (is_number<T>)
        return number_part<T>{value};
    else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
        return real_part<T>{value};
    else if constexpr (is_char_array<T>)
        return text_part{until_zero(value, std::extent_v<T>)};
    else if constexpr (is_text_pointer<T>)
        return MILLSTREAM_LIKELY(value != nullptr) ? text_part{value} : (fail_null_text(), text_part{});
    else if constexpr (std::is_convertible_v<const T &, std::string_view> && !std::is_same_v<T, std::nullptr_t>)
        return text_part{std::string_view(value)};
    else
        return no_part{};
}

template <class T>
inline constexpr bool is_part = !std::is_same_v<decltype(as_part(std::declval<const T &>())), no_part>;

} // namespace detail

/// Lower-case hexadecimal: millstream::hex(255) is ff.
template <class T>
constexpr detail::hex_part<T> hex(T value) {
    static_assert(detail::is_number<T>, "hex is for integers");
    return {value};
}

/// Right-aligned with spaces: millstream::pad(42, 5) is "   42". Widths above 65535 and negative widths count as 65535.
template <class T>
constexpr detail::padded_part<T> pad(T value, std::size_t width) {
    static_assert(detail::is_number<T>, "pad is for integers");
    return {value, detail::as_width(width), ' '};
}

/// With leading zeros after the sign, which is included in the width: millstream::zero_fill(-42, 5) is -0042. Widths
/// work as in `pad`.
template <class T>
constexpr detail::padded_part<T> zero_fill(T value, std::size_t width) {
    static_assert(detail::is_number<T>, "zero_fill is for integers");
    return {value, detail::as_width(width), '0'};
}

/// `digits` digits after the decimal point: millstream::fixed(1.005, 2) is 1.00, because the number is slightly less. A
/// negative number of digits counts as 0, and a number above 65535 as 65535.
constexpr detail::fixed_part fixed(double value, int digits) {
    return {value, digits < 0 ? std::uint16_t{0} : detail::as_width(static_cast<std::size_t>(digits))};
}

/// A quoted JSON string. `text` must live until it is printed.
constexpr detail::json_part json(std::string_view text) { return {text}; }

} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_PUT_HPP

namespace millstream {

class output;

namespace detail {

template <class T, class = void>
inline constexpr bool has_hook = false;
template <class T>
inline constexpr bool has_hook<T, std::void_t<decltype(ms_put(std::declval<output &>(), std::declval<const T &>()))>> =
    true;

} // namespace detail

/// Writes characters to an output: for std::format_to, fmt::format_to and the algorithms.
class inserter {
  public:
    using iterator_category = std::output_iterator_tag;
    using value_type = void;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = void;

    explicit inserter(output &out) noexcept : out_(&out) {}
    inserter &operator=(char byte);
    inserter &operator*() noexcept { return *this; }
    inserter &operator++() noexcept { return *this; }
    inserter operator++(int) noexcept { return *this; }

  private:
    output *out_;
};

/// Writes text and numbers to a file descriptor: see the top of this file.
class output {
  public:
    /// Creates an output for a descriptor that is open and stays open while the output is used. It costs nothing before
    /// the first print.
    explicit constexpr output(int fd) noexcept : fd_(fd) {}

    output(const output &) = delete;
    output &operator=(const output &) = delete;

    /// Flushes without reporting errors; call `flush` before to get them.
    ~output() {
        (void)try_flush();
        std::free(begin_);
    }

    /// Prints the parts one after another.
    template <class... Parts>
    MILLSTREAM_HOT output &print(const Parts &...parts) {
        if constexpr ((detail::is_part<Parts> && ...))
            put(detail::as_part(parts)...);
        else
            (print_one(parts), ...);
        return *this;
    }

    /// Prints the parts and ends the line.
    template <class... Parts>
    MILLSTREAM_HOT output &println(const Parts &...parts) {
        return print(parts..., '\n');
    }

    template <class Part>
    MILLSTREAM_HOT output &operator<<(const Part &part) {
        return print(part);
    }

    /// Manipulators: millstream::endl, millstream::flush.
    output &operator<<(output &(*manipulate)(output &)) { return manipulate(*this); }

    /// Writes raw bytes. Large blocks bypass the buffer.
    output &write(std::string_view bytes) {
        if (MILLSTREAM_LIKELY(bytes.size() <= static_cast<std::size_t>(end_ - at_)))
            at_ += detail::text_part{bytes}.put(at_);
        else
            write_slowly(bytes);
        return *this;
    }
    output &write(const void *bytes, std::size_t count) { return write({static_cast<const char *>(bytes), count}); }
#ifdef __cpp_lib_span
    template <class T, std::size_t Extent>
    output &write(std::span<T, Extent> values) {
        static_assert(std::is_trivially_copyable_v<T>, "write is for plain bytes");
        return write(values.data(), values.size_bytes());
    }
#endif

    /// An output iterator for fmt::format_to(out.inserter(), "{:>8}", x) and std::format_to.
    millstream::inserter inserter() noexcept { return millstream::inserter(*this); }

    /// Writes all bytes to the system.
    output &flush() {
        if (!try_flush())
            fail();
        return *this;
    }

    int fd() const noexcept { return fd_; }

    /// Writes all bytes to the system, and from now on every print immediately. Returns false if this failed: the
    /// reason is in errno, and the bytes are kept for the next attempt. This is for code that must not throw; otherwise
    /// use `flush`.
    [[nodiscard]] bool flush_finally() noexcept {
        if (when_ != flushes::never_again) {
            when_ = flushes::at_once;
            end_ = at_;
        }
        return try_flush();
    }

    /// Writes all bytes to the system. Returns false if the system does not accept them: the reason is in errno, and
    /// the bytes are kept for the next attempt.
    [[nodiscard]] bool try_flush() noexcept {
        char *from = begin_;
        while (from != at_ && send(from, static_cast<std::size_t>(at_ - from))) {
        }
        const auto rest = static_cast<std::size_t>(at_ - from);
        if (rest != 0 && from != begin_)
            std::memmove(begin_, from, rest);
        at_ = begin_ + rest;
        end_ = when_ == flushes::when_full ? capacity_end_ : at_;
        return rest == 0;
    }

    /// The error of this output for errno.
    error_details describe() const {
        error_details details;
        details.system_errno = errno;
        details.kind = details.system_errno == EPIPE ? errc::broken_pipe : errc::io;
        details.name = detail::descriptor_name(fd_);
        details.written = written_;
        return details;
    }

  private:
    /// When the buffer is written.
    enum class flushes : unsigned char { undecided, when_full, at_line_ends, at_once, never_again };

    static constexpr std::size_t small_buffer = std::size_t{64} << 10;
    static constexpr std::size_t pipe_buffer = std::size_t{256} << 10;

    //   begin_        at_           end_ <= capacity_end_
    //   [ accepted    | free        |                   ]
    //
    // Text that fits between at_ and end_ needs no further check. If some action follows every print (such as a flush
    // at a terminal's line end), end_ equals at_, so that no text fits.
    char *at_ = nullptr;
    char *end_ = nullptr;
    char *begin_ = nullptr;
    char *capacity_end_ = nullptr;
    std::uint64_t written_ = 0;
    int fd_;
    flushes when_ = flushes::undecided;

    template <class... Parts>
    MILLSTREAM_HOT void put(const Parts &...parts) {
        const std::uint64_t needed = detail::max_size_of(parts...);
        const bool fits = needed <= static_cast<std::size_t>(end_ - at_);
        // One assignment for both branches, so that compilers keep the position in a register from print to print:
        // waiting for its last store would take longer than printing a number.
        at_ = MILLSTREAM_LIKELY(fits) ? put_at(at_, parts...) : put_slowly(parts...);
    }

    template <class... Parts>
    MILLSTREAM_HOT static char *put_at(char *to, Parts... parts) {
        std::size_t count = 0; // not a pointer, so that the processor can add the lengths in parallel
        ((count += parts.put(to + count)), ...);
        return to + count;
    }

    template <class... Parts>
    [[gnu::noinline, gnu::cold]] char *put_slowly(Parts... parts) {
        const std::uint64_t needed = detail::max_size_of(parts...);
        make_space(needed);
        if (needed <= static_cast<std::size_t>(capacity_end_ - at_)) {
            char *const from = at_;
            at_ = put_at(at_, parts...);
            after(from);
        } else {
            (put_large(parts), ...);
        }
        return at_;
    }

    // Parts that are together too large for the buffer.
    void put_large(const detail::text_part &part) { write(part.text); }
    template <class Part>
    void put_large(const Part &part) {
        std::string text(detail::as_size(part.max_size()), '\0');
        text.resize(part.put(text.data()));
        write(text);
    }

    template <class Part>
    void print_one(const Part &part) {
        if constexpr (detail::is_part<Part>) {
            put(detail::as_part(part));
        } else {
            static_assert(detail::has_hook<Part>, "define for this type: void ms_put(millstream::output &, const T &)");
            ms_put(*this, part);
        }
    }

    [[gnu::noinline, gnu::cold]] void write_slowly(std::string_view bytes) {
        make_space(bytes.size());
        if (bytes.size() <= static_cast<std::size_t>(capacity_end_ - at_)) {
            char *const from = at_;
            at_ += detail::text_part{bytes}.put(at_);
            after(from);
            return;
        }
        flush();
        const char *from = bytes.data();
        const char *const end = from + bytes.size();
        while (from != end)
            if (!send(from, static_cast<std::size_t>(end - from)))
                fail();
    }

    /// Called after parts that did not fit between at_ and end_.
    void after(const char *from) {
        const auto count = static_cast<std::size_t>(at_ - from);
        if (when_ == flushes::when_full)
            return;
        end_ = at_;
        if (when_ == flushes::at_once || std::memchr(from, '\n', count) != nullptr)
            flush();
    }

    /// Makes `needed` bytes available between at_ and capacity_end_, if the buffer is large enough.
    void make_space(std::uint64_t needed) {
        if (when_ == flushes::undecided)
            prepare();
        if (when_ == flushes::never_again) {
            error_details details = describe();
            details.kind = errc::closed;
            details.system_errno = 0;
            detail::fail(std::move(details));
        }
        if (needed > static_cast<std::size_t>(capacity_end_ - at_))
            flush();
    }

    void prepare() {
        struct stat status;
        const bool pipe = ::fstat(fd_, &status) == 0 && S_ISFIFO(status.st_mode);
        const std::size_t capacity = pipe ? pipe_buffer : small_buffer;
#ifdef F_SETPIPE_SZ
        if (pipe && ::fcntl(fd_, F_GETPIPE_SZ) < (1 << 20))
            (void)::fcntl(fd_, F_SETPIPE_SZ, 1 << 20); // it does not matter if this fails
#endif
        begin_ = static_cast<char *>(std::malloc(capacity));
        if (begin_ == nullptr) {
            errno = ENOMEM;
            detail::fail(describe());
        }
        when_ = ::isatty(fd_) == 1 ? flushes::at_line_ends : flushes::when_full;
        at_ = begin_;
        capacity_end_ = begin_ + capacity;
        end_ = when_ == flushes::when_full ? capacity_end_ : at_;
    }

    /// Writes some bytes to the system and moves `from` after them. Returns false if the system accepted none, with the
    /// reason in errno.
    bool send(const char *&from, std::size_t count) noexcept {
        for (;;) {
            const ssize_t sent = detail::write_some(fd_, from, count);
            if (sent > 0) {
                from += sent;
                written_ += static_cast<std::uint64_t>(sent);
                return true;
            }
            if (sent == 0)
                errno = EIO;
            else if (errno == EINTR)
                continue;
            else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                detail::wait_to_write(fd_);
                continue;
            }
            return false;
        }
    }
    bool send(char *&from, std::size_t count) noexcept {
        const char *constant = from;
        const bool sent = send(constant, count);
        from += constant - from;
        return sent;
    }

    /// Reports errno once and drops unwritten bytes.
    [[noreturn, gnu::noinline, gnu::cold]] void fail() {
        error_details details = describe();
        when_ = flushes::never_again;
        at_ = end_ = begin_;
        detail::fail(std::move(details));
    }
};

inline inserter &inserter::operator=(char byte) {
    out_->print(byte);
    return *this;
}

/// out << millstream::endl ends the line and flushes, out << millstream::flush flushes. '\n' is usually better.
inline output &endl(output &out) { return out.print('\n').flush(); }
inline output &flush(output &out) { return out.flush(); }

} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_OUTPUT_HPP

namespace millstream {

class input;

namespace detail {

/// Counts line ends, eight bytes at a time.
inline std::uint64_t count_lines(const char *from, const char *to) {
    constexpr std::uint64_t ones = UINT64_C(0x0101010101010101);
    std::uint64_t count = 0;
    while (to - from >= 8) {
        std::uint64_t sums =
            0; // eight sums of one byte each; after at most 31 words, their total still fits in one byte
        for (int i = 0; i < 31 && to - from >= 8; i++, from += 8) {
            std::uint64_t word;
            std::memcpy(&word, from, 8);
            word ^= ones * '\n'; // zero where a line ends
            const std::uint64_t others = ((word & ones * 0x7f) + ones * 0x7f) | word;
            sums += ~others >> 7 & ones;
        }
        count += sums * ones >> 56;
    }
    for (; from != to; ++from)
        count += *from == '\n';
    return count;
}

/// Formats text for a message: without control characters, and shortened.
inline std::string show(std::string_view token) {
    constexpr std::size_t most = 64;
    std::string text;
    for (char byte : token.substr(0, most)) {
        if (byte >= ' ' && byte <= '~' && byte != '\\') {
            text += byte;
        } else {
            text += "\\x";
            text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
            text += "0123456789abcdef"[byte & 15];
        }
    }
    return token.size() > most ? text + "..." : text;
}

enum class verdict { good, invalid, overflow };

inline verdict as_verdict(int scanned) {
    return scanned == MILLSTREAM_SCANNED         ? verdict::good
           : scanned == MILLSTREAM_SCAN_OVERFLOW ? verdict::overflow
                                                 : verdict::invalid;
}

template <class T>
inline constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
inline constexpr bool is_short_number = is_number<T> && sizeof(T) <= 8;

/// Scans a number at `*at`, like numbers.h.
template <class T>
MILLSTREAM_HOT int scan_number(const char **at, const char *end, millstream_extent extent, T &value) {
    int result;
    if constexpr (!is_short_number<T>) {
#ifdef __SIZEOF_INT128__
        if constexpr (is_signed_number<T>)
            result = millstream_scan_i128(at, end, extent, &value);
        else
            result = millstream_scan_u128(at, end, extent, &value);
#endif
    } else if constexpr (is_signed_number<T>) {
        std::int64_t wide = 0;
        result = millstream_scan_signed(at, end, std::numeric_limits<T>::max(), extent, &wide);
        if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
            value = static_cast<T>(wide);
    } else {
        std::uint64_t wide = 0;
        result = millstream_scan_unsigned(at, end, std::numeric_limits<T>::max(), extent, &wide);
        if (MILLSTREAM_LIKELY(result == MILLSTREAM_SCANNED))
            value = static_cast<T>(wide);
    }
    return result;
}

/// Whether a decimal number that is out of range is too large. (from_chars does not report this.)
inline bool is_large(std::string_view number) {
    long scale = 0; // of the first digit that is not 0
    bool found = false, point = false;
    std::size_t i = 0;
    for (; i < number.size() && (number[i] | 0x20) != 'e'; i++) {
        if (number[i] == '.')
            point = true;
        else if (number[i] >= '1' && number[i] <= '9')
            found = true;
        if (number[i] >= '0' && number[i] <= '9') {
            if (found && !point)
                ++scale;
            else if (!found && point)
                --scale;
        }
    }
    if (i == number.size())
        return scale > 0;
    const bool plus = i + 1 < number.size() && number[i + 1] == '+';
    long exponent = 0;
    const char *const end = number.data() + number.size();
    if (std::from_chars(number.data() + i + (plus ? 2 : 1), end, exponent).ec != std::errc{})
        return number[i + 1] != '-';
    return exponent > -scale;
}

/// Parses the value of a complete token.
template <class T>
verdict parse(std::string_view token, T &value) {
    const char *at = token.data();
    const char *const end = at + token.size();
    if constexpr (is_number<T>) {
        for (char byte : token) // bytes that end a token in numbers.h, but not a field
            if (millstream_is_space(byte))
                return verdict::invalid;
        return as_verdict(scan_number(&at, end, MILLSTREAM_ALL_IS_HERE, value));
    } else {
        static_assert(is_real<T>);
        const bool negative = !token.empty() && token[0] == '-';
        if (negative || (!token.empty() && token[0] == '+'))
            token.remove_prefix(1);
        // No second sign, and no `nan(what)`.
        if (token.empty() || token[0] == '-' || token.back() == ')')
            return verdict::invalid;
        T magnitude = 0;
        const auto [stop, problem] = std::from_chars(token.data(), end, magnitude);
        if (problem == std::errc::invalid_argument || stop != end)
            return verdict::invalid;
        if (problem == std::errc::result_out_of_range) {
            if (is_large(token))
                return verdict::overflow;
            magnitude = 0; // the nearest number
        }
        value = negative ? -magnitude : magnitude;
        return verdict::good;
    }
}

/// The expected part of an error.
template <class T>
std::string expected() {
    if constexpr (is_number<T>) {
        char text[2 * MILLSTREAM_NUMBER_SLACK_128];
        constexpr bool negative = is_signed_number<T>;
        const auto most =
            static_cast<T>(negative ? (magnitude_of<T>(1) << (8 * sizeof(T) - 1)) - 1 : ~magnitude_of<T>(0));
        std::string range(text, number_part<T>{static_cast<T>(negative ? -most - 1 : 0)}.put(text));
        range += " to ";
        range.append(text, number_part<T>{most}.put(text));
        return "an integer (" + range + ")";
    } else if constexpr (is_real<T>) {
        return "a number";
    } else if constexpr (std::is_same_v<T, char>) {
        return "a character";
    } else {
        return "a value";
    }
}

template <class T, class = void>
inline constexpr bool has_scan_hook = false;
template <class T>
inline constexpr bool has_scan_hook<T, std::void_t<decltype(ms_scan(std::declval<input &>(), std::declval<T &>()))>> =
    true;

} // namespace detail

/// Reads numbers, words and lines from a file descriptor: see the top of this file.
///
/// To read your own type, define `bool ms_scan(millstream::input &in, your_type &value)` in its namespace, usually as
/// `return in.scan(value.x, value.y);`.
class input {
  public:
    class extraction;
    class line_range;

    /// Creates an input for a descriptor that is open and stays open while the input is used. The input flushes `tied`,
    /// if any, before it waits. It costs nothing before the first use.
    explicit constexpr input(int fd, output *tied = nullptr) noexcept : tied_(tied), fd_(fd) {}

    input(const input &) = delete;
    input &operator=(const input &) = delete;
    ~input() { std::free(begin_); }

    /// Reads one value: see `extraction` for the behaviour at the end.
    template <class T>
    extraction operator>>(T &value);

    /// Reads all values; returns false if the input ended before the first. If the input ends after the first, this is
    /// an error.
    template <class T, class... More>
    MILLSTREAM_HOT bool scan(T &value, More &...more) {
        if (!get(value))
            return false;
        ((get(more) ? void() : miss<More>()), ...);
        return true;
    }

    /// Like `scan`, for numbers separated by one byte (usually a comma) or a line end: `1,2\n3` holds three. The
    /// separator after a value is consumed with it. Blanks belong to the field, and an empty field is not a number.
    template <class T, class... More>
    bool scan_delimited(char separator, T &value, More &...more) {
        if (!get_delimited(separator, value))
            return false;
        ((get_delimited(separator, more) ? void() : miss<More>()), ...);
        return true;
    }

    /// Returns the next value, which is required: `auto n = in.require<int>();`.
    template <class T>
    MILLSTREAM_HOT T require() {
        T value{};
        if (!get(value))
            miss<T>();
        return value;
    }

    /// Reads the next word: everything up to white space. Returns false at the end. The word is valid until the next
    /// call.
    bool word(std::string_view &word) {
        if (!find_token(word, record_limit_))
            return false;
        at_ += word.size();
        return true;
    }
    /// Returns the next word, which is required. It is valid until the next call.
    std::string_view word() {
        std::string_view found;
        if (!word(found))
            miss("a word");
        return found;
    }

    /// Reads the next line, or the rest of the current one, without its end (`\n` or `\r\n`). Returns false at the end;
    /// a last line without a line feed counts as a line. The line is valid until the next call.
    bool line(std::string_view &line) {
        std::size_t size = 0;
        const char *end = nullptr;
        while ((end = find_line_end(size)) == nullptr) {
            size = unread();
            if (!fill()) {
                check_length(size, record_limit_);
                line = {at_, size};
                at_ += size;
                ended_ = size == 0;
                return size != 0;
            }
        }
        size = static_cast<std::size_t>(end - at_);
        const std::size_t content = size - (size != 0 && end[-1] == '\r');
        check_length(content, record_limit_);
        line = {at_, content};
        at_ += size + 1;
        return true;
    }
    bool line(std::string &line) {
        std::string_view found;
        const bool there = this->line(found);
        line = found;
        return there;
    }
    /// Returns the next line, which is required. It is valid until the next call.
    std::string_view line() {
        std::string_view found;
        if (!line(found))
            miss("a line");
        return found;
    }

    /// All lines: `for (std::string_view line : in.lines())`. Each is valid until the next.
    line_range lines();

    /// Returns whether the end has not been reached yet.
    explicit operator bool() const noexcept { return !ended_; }

    /// The buffered bytes, for your own parser. `fill` reads more, and `consume` removes them.
    std::string_view buffer() const noexcept { return {at_, unread()}; }

    /// Reads more bytes after those of `buffer`, which may move. Returns false at the end of the input.
    bool fill() {
        if (at_end_)
            return false;
        make_space();
        if (tied_ != nullptr && is_interactive_)
            tied_->flush();
        const ssize_t count = receive();
        if (count < 0) {
            error_details details = at(at_);
            details.kind = errc::io;
            details.system_errno = errno;
            at_end_ = true; // an error is reported once, and the end after that
            fail(std::move(details));
        }
        at_end_ = count == 0;
        end_ += count;
        return !at_end_;
    }

    /// Removes `count` bytes from the front of `buffer`.
    void consume(std::size_t count) noexcept { at_ += count < unread() ? count : unread(); }

    /// The maximum number of bytes of a word, or of a line without its end: 64 MiB by default. For numbers, the limit
    /// is at least 1024. Longer input is an error (record_too_long), which is repeated until the limit is raised.
    void set_record_limit(std::size_t bytes) noexcept { record_limit_ = bytes; }

    int fd() const noexcept { return fd_; }

  private:
    static constexpr std::size_t usual_capacity = std::size_t{256} << 10;

    //   begin_        at_           end_          begin_ + capacity_
    //   [ consumed    | the window  | free        ]
    const char *at_ = nullptr;
    const char *end_ = nullptr;
    char *begin_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t record_limit_ = std::size_t{64} << 20;
    std::uint64_t offset_ = 0;     // of begin_ in the stream
    std::uint64_t lines_ = 0;      // that ended before begin_
    std::uint64_t line_start_ = 0; // the offset of the line of begin_
    output *tied_;
    int fd_;
    bool is_interactive_ =
        true; // not a regular file: another program may wait for this program's output before it writes more
    bool at_end_ = false; // there are no bytes after end_
    bool ended_ = false;  // a value was requested at the end

    std::size_t unread() const noexcept { return static_cast<std::size_t>(end_ - at_); }

    /// Reads one value; returns false at the end.
    template <class T>
    MILLSTREAM_HOT bool get(T &value) {
        if constexpr (detail::is_short_number<T>) {
            const char *p = millstream_skip_space(at_, end_);
            if (MILLSTREAM_LIKELY(detail::scan_number(&p, end_, MILLSTREAM_MORE_MAY_COME, value) ==
                                  MILLSTREAM_SCANNED)) {
                at_ = p;
                return true;
            }
        } else if constexpr (detail::is_real<T>) {
            const char *const p = millstream_skip_space(at_, end_);
            // Other input may be a name, which from_chars treats differently.
            if (MILLSTREAM_LIKELY(end_ - p >= 2 && is_digit(p[*p == '-']))) {
                T found;
                const auto [stop, problem] = std::from_chars(p, end_, found);
                if (problem == std::errc{} && stop != end_ && millstream_is_space(*stop)) {
                    at_ = stop;
                    value = found;
                    return true;
                }
            }
        }
        return get_slowly(value);
    }

    static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

    template <class T>
    [[gnu::noinline]] bool get_slowly(T &value) {
        if constexpr (detail::is_number<T> || detail::is_real<T>) {
            std::string_view token;
            if (!find_token(token, longest_number()))
                return false;
            check(token, value);
            at_ += token.size();
            return true;
        } else if constexpr (std::is_same_v<T, char>) {
            if (!find_value())
                return false;
            value = *at_++;
            return true;
        } else if constexpr (std::is_same_v<T, std::string>) {
            std::string_view found;
            if (!word(found))
                return false;
            value = found;
            return true;
        } else {
            static_assert(detail::has_scan_hook<T>, "define for this type: bool ms_scan(millstream::input &, T &)");
            return ms_scan(*this, value);
        }
    }

    template <class T>
    bool get_delimited(char separator, T &value) {
        static_assert(detail::is_number<T> || detail::is_real<T>, "scan_delimited is for numbers");
        std::size_t size = 0;
        for (;;) {
            while (size != unread() && at_[size] != separator && at_[size] != '\n')
                ++size;
            if (size != unread() || !fill())
                break;
        }
        if (unread() == 0) {
            ended_ = true;
            return false;
        }
        const bool crlf = size != unread() && at_[size] == '\n' && size != 0 && at_[size - 1] == '\r';
        check_length(size - crlf, longest_number());
        check({at_, size - crlf}, value);
        consume(size + 1);
        return true;
    }

    /// Parses the value of a token; throws an error if it has none.
    template <class T>
    void check(std::string_view token, T &value) {
        const detail::verdict verdict = detail::parse(token, value);
        if (verdict == detail::verdict::good)
            return;
        error_details details = at(token.data());
        details.kind = verdict == detail::verdict::overflow ? errc::number_overflow : errc::number_invalid;
        details.found = token.empty() ? "an empty field" : detail::show(token);
        details.expected = detail::expected<T>();
        fail(std::move(details));
    }

    /// Skips white space; returns false at the end.
    bool find_value() {
        while ((at_ = millstream_skip_space(at_, end_)) == end_)
            if (!fill()) {
                ended_ = true;
                return false;
            }
        return true;
    }

    /// Finds the next word, of at most `most` bytes, without consuming it; returns false at the end. No byte is scanned
    /// twice.
    bool find_token(std::string_view &token, std::size_t most) {
        if (!find_value())
            return false;
        std::size_t size = 0;
        for (;;) {
            while (size != unread() && !millstream_is_space(at_[size]))
                ++size;
            if (size != unread() || !fill())
                break;
        }
        check_length(size, most);
        token = {at_, size};
        return true;
    }

    /// Finds the line end after the first `size` bytes.
    const char *find_line_end(std::size_t size) const {
        return size == unread() ? nullptr : static_cast<const char *>(std::memchr(at_ + size, '\n', unread() - size));
    }

    /// The limit for numbers, so that a small record limit applies only to words and lines, and numbers do not depend
    /// on how their bytes arrive.
    std::size_t longest_number() const noexcept { return record_limit_ < 1024 ? 1024 : record_limit_; }

    /// Throws if the token at at_, which has `size` bytes without an end so far, exceeds `most`.
    void check_length(std::size_t size, std::size_t most) {
        if (!MILLSTREAM_LIKELY(size <= most))
            fail_too_long(size, most);
    }

    [[noreturn, gnu::noinline, gnu::cold]] void fail_too_long(std::size_t size, std::size_t most) {
        error_details details = at(at_);
        details.kind = errc::record_too_long;
        details.found = std::to_string(size) + " bytes without the end of the record";
        details.expected = "at most " + std::to_string(most) + " bytes";
        fail(std::move(details));
    }

    /// Makes space after end_, by moving bytes over consumed ones or by enlarging the buffer.
    void make_space() {
        const std::size_t kept = unread();
        if (kept > longest_number() && kept - longest_number() > 2) // two of the bytes may be a line end
            fail_too_long(kept, record_limit_);
        if (at_ != begin_) {
            lines_ += detail::count_lines(begin_, at_);
            line_start_ = line_start(at_);
            offset_ += static_cast<std::uint64_t>(at_ - begin_);
            std::memmove(begin_, at_, kept);
        }
        if (kept == capacity_) {
            if (begin_ == nullptr) {
                struct stat status;
                is_interactive_ = ::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode);
            }
            const std::size_t wanted = capacity_ == 0 ? usual_capacity : 2 * capacity_;
            char *const grown = static_cast<char *>(std::realloc(begin_, wanted));
            if (grown == nullptr) {
                at_ = begin_;
                end_ = begin_ + kept;
                error_details details = at(at_);
                details.kind = errc::io;
                details.system_errno = ENOMEM;
                fail(std::move(details));
            }
            begin_ = grown;
            capacity_ = wanted;
        }
        at_ = begin_;
        end_ = begin_ + kept;
    }

    /// Reads into the space after end_; returns the number of bytes, 0 at the end, or a negative number with errno set.
    ssize_t receive() noexcept {
        char *const to = begin_ + (end_ - begin_);
        const std::size_t space = capacity_ - static_cast<std::size_t>(end_ - begin_);
        for (;;) {
            const ssize_t count = detail::read_some(fd_, to, space);
            if (count >= 0)
                return count;
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                detail::wait_to_read(fd_);
            else if (errno != EINTR)
                return count;
        }
    }

    /// The details of an error at `p`: source and position.
    error_details at(const char *p) const {
        error_details details;
        details.name = detail::descriptor_name(fd_);
        details.offset = offset_ + static_cast<std::uint64_t>(p - begin_);
        details.record = lines_ + detail::count_lines(begin_, p);
        details.line = *details.record + 1;
        details.column = *details.offset - line_start(p) + 1;
        return details;
    }

    /// The offset of the start of the line that contains `p`.
    std::uint64_t line_start(const char *p) const noexcept {
        const std::string_view before(begin_, static_cast<std::size_t>(p - begin_));
        const std::size_t newline = before.rfind('\n');
        return newline == std::string_view::npos ? line_start_ : offset_ + newline + 1;
    }

    /// Throws the error that the input ended where a value is required.
    template <class T>
    [[noreturn, gnu::noinline, gnu::cold]] void miss() {
        miss(detail::expected<T>());
    }
    [[noreturn]] void miss(std::string expected) {
        error_details details = at(end_);
        details.kind = errc::value_missing;
        details.found = "the end of the input";
        details.expected = std::move(expected);
        fail(std::move(details));
    }

    /// Flushes earlier output before an error is thrown, because an uncaught error ends the program without a last
    /// flush.
    [[noreturn, gnu::cold]] void fail(error_details details) {
        if (tied_ != nullptr)
            (void)tied_->try_flush();
        detail::fail(std::move(details));
    }
};

/// The result of `in >> a >> b`, until the end of the statement. In a condition (`if`, `while` or `!`), it is false if
/// the input ended before the first value. Without a condition, this is an error (value_missing). If the input ended
/// between two values, it is always an error.
///
/// There is one exception: in a destructor that runs during stack unwinding, a missing first value without a test is
/// not reported, and the variable keeps its value, because a second exception would end the program. In such
/// destructors, use a test, or use `require` and catch its exceptions.
class input::extraction {
  public:
    extraction(const extraction &) = delete;
    extraction &operator=(const extraction &) = delete;

    template <class T>
    MILLSTREAM_HOT extraction &operator>>(T &value) {
        if (MILLSTREAM_LIKELY(missing_ == nullptr) && !in_.get(value))
            in_.miss<T>();
        return *this;
    }

    MILLSTREAM_HOT explicit operator bool() const noexcept {
        const bool there = missing_ == nullptr;
        missing_ = nullptr; // the caller has tested it
        return there;
    }

    MILLSTREAM_HOT ~extraction() noexcept(false) {
        // During stack unwinding, the error being thrown is the one to report.
        if (!MILLSTREAM_LIKELY(missing_ == nullptr) && std::uncaught_exceptions() == 0)
            (in_.*missing_)();
    }

  private:
    friend class input;
    using report = void (input::*)();
    MILLSTREAM_HOT extraction(input &in, report missing) : in_(in), missing_(missing) {}

    input &in_;
    mutable report missing_; // the input that reports a missing first value; null if there is one or it was tested
};

template <class T>
MILLSTREAM_HOT input::extraction input::operator>>(T &value) {
    return {*this, MILLSTREAM_LIKELY(get(value)) ? nullptr : &input::miss<T>};
}

/// A single-pass range of the lines of an input.
class input::line_range {
  public:
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        using pointer = const std::string_view *;
        using reference = std::string_view;

        iterator() noexcept = default;
        explicit iterator(input &in) : in_(&in) { ++*this; }
        std::string_view operator*() const noexcept { return line_; }
        pointer operator->() const noexcept { return &line_; }
        iterator &operator++() {
            if (!in_->line(line_))
                in_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &a, const iterator &b) noexcept { return a.in_ == b.in_; }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return a.in_ != b.in_; }

      private:
        input *in_ = nullptr; // null at the end
        std::string_view line_;
    };

    explicit line_range(input &in) noexcept : in_(&in) {}
    iterator begin() const { return iterator(*in_); }
    iterator end() const noexcept { return {}; }

  private:
    input *in_;
};

inline input::line_range input::lines() { return line_range(*this); }

} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_INPUT_HPP

namespace millstream {
namespace detail {

/// An object that is never destroyed: other static objects may use it in their destructors.
template <class T>
union lasting {
    T object;
    template <class... Arguments>
    constexpr explicit lasting(Arguments... arguments) : object(arguments...) {}
    ~lasting() {}
};

inline lasting<output> lasting_out{STDOUT_FILENO};
inline lasting<input> lasting_in{STDIN_FILENO, &lasting_out.object};

} // namespace detail

/// Standard output.
inline output &out = detail::lasting_out.object;
/// Standard input. Flushes millstream::out before it reads from anything but a regular file.
inline input &in = detail::lasting_in.object;

namespace detail {

/// Reports an error on standard error, and ends the program at once.
[[noreturn]] inline void end_with(const char *message) {
    std::fprintf(stderr, "%s\n", message);
    std::fflush(nullptr);
    ::_exit(1); // exit() may be running already, with another status
}

#ifdef __cpp_exceptions
inline std::terminate_handler other_terminate_handler = nullptr;

/// The terminate handler: ends the program for an error that is not caught.
inline void end_with_uncaught() {
    try {
        if (const std::exception_ptr thrown = std::current_exception())
            std::rethrow_exception(thrown);
    } catch (const error &uncaught) {
        (void)out.flush_finally();
        end_with(uncaught.what());
    } catch (...) {
    }
    other_terminate_handler();
}
#endif

/// An object whose destructor does the last flush.
struct last_flush {
    last_flush() { // at run time, because older objects are destroyed later
#ifdef __cpp_exceptions
        other_terminate_handler = std::set_terminate(end_with_uncaught);
#endif
    }
    last_flush(const last_flush &) = delete;
    last_flush &operator=(const last_flush &) = delete;
    ~last_flush() {
        if (out.flush_finally())
            return;
        end_with(sentence(out.describe()).c_str());
    }
};

inline const last_flush at_exit;

} // namespace detail
} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_STDIO_HPP

#ifndef MILLSTREAM_NO_MS // define it where `ms` is the name of something else
namespace ms = millstream;
#endif
