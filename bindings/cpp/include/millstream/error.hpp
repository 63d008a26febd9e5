// millstream/error.hpp: what can go wrong. The kinds and their codes are those of Millstream in every language.
//
//     try {
//         sum(ms::in);
//     } catch (const ms::error &e) {
//         if (e.kind() == ms::error_kind::number_overflow) ...     // e.offset(), e.found(), e.expected()
//         std::fprintf(stderr, "%s\n", e.what());
//     }
//
// Without exceptions (-fno-exceptions), an error prints its message as one line to standard error and ends the program
// by exit(1).
//
// C++17; needs no library.
#ifndef MILLSTREAM_ERROR_HPP
#define MILLSTREAM_ERROR_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ms {

/// The kinds of error, with codes that never change their meaning. (Those that C++ alone can meet; the others have no
/// name here yet, and their codes are kept free for them.)
enum class error_kind : std::uint32_t {
    /// The operating system refused a read, a write or another call.
    io = 1,
    /// A record, a line or a word is longer than the record limit.
    record_too_long = 6,
    /// The reading side closed the pipe or connection.
    broken_pipe = 16,
    /// The writer gave up after an earlier error.
    closed = 19,
    /// Where a number or a word of a type should be, there is something else.
    number_invalid = 21,
    /// A number does not fit its type.
    number_overflow = 22,
    /// The input ended where a value was expected.
    value_missing = 23,
};

/// The name of a kind, the same in every language.
constexpr std::string_view name(error_kind kind) noexcept {
    switch (kind) {
    case error_kind::io:
        return "io";
    case error_kind::record_too_long:
        return "record_too_long";
    case error_kind::broken_pipe:
        return "broken_pipe";
    case error_kind::closed:
        return "closed";
    case error_kind::number_invalid:
        return "number_invalid";
    case error_kind::number_overflow:
        return "number_overflow";
    case error_kind::value_missing:
        return "value_missing";
    }
    return "unknown";
}

/// What an error knows; what does not apply is absent or empty.
struct error_details {
    error_kind kind{};
    /// Of the source or sink: `standard input`, `standard output`, `file descriptor 5`.
    std::string name;
    /// What was there, and what should have been.
    std::string found, expected;
    /// The system's error number; 0 if it was not the system.
    int system = 0;
    /// Of the first byte of what is wrong, from the beginning of the stream.
    std::optional<std::uint64_t> offset;
    /// In which line that is; the first is 0.
    std::optional<std::uint64_t> record;
    /// How many bytes of a sink have been given to the system.
    std::optional<std::uint64_t> written;
};

namespace detail {

/// One line: what was found, what was expected, and where.
inline std::string message(const error_details &d) {
    std::string text = d.name.empty() ? "" : d.name + ": ";
    for (char byte : ms::name(d.kind))
        text += byte == '_' ? ' ' : byte;
    if (!d.found.empty())
        text += ": found " + d.found;
    if (!d.expected.empty())
        text += (d.found.empty() ? ": expected " : ", expected ") + d.expected;
    if (d.system != 0)
        text += ": " + std::generic_category().message(d.system);
    if (d.offset)
        text += ", at byte " + std::to_string(*d.offset);
    if (d.record)
        text += ", record " + std::to_string(*d.record) + " (the first is 0)";
    if (d.written)
        text += ", " + std::to_string(*d.written) + " bytes are safely written";
    return text;
}

} // namespace detail

/// An error: a kind with its fixed code, where, what was found and what was expected.
class error : public std::runtime_error {
  public:
    explicit error(error_details details)
        : std::runtime_error(detail::message(details)),
          details_(std::make_shared<const error_details>(std::move(details))) {}

    error_kind kind() const noexcept { return details_->kind; }
    /// The fixed number of the kind.
    std::uint32_t code() const noexcept { return static_cast<std::uint32_t>(details_->kind); }
    /// The name of the source or sink.
    const std::string &name() const noexcept { return details_->name; }
    const std::string &found() const noexcept { return details_->found; }
    const std::string &expected() const noexcept { return details_->expected; }
    /// The system's error number; 0 if it was not the system.
    int system() const noexcept { return details_->system; }
    std::optional<std::uint64_t> offset() const noexcept { return details_->offset; }
    /// The number of the line; the first is 0.
    std::optional<std::uint64_t> record() const noexcept { return details_->record; }
    /// How many bytes the system has taken.
    std::optional<std::uint64_t> written() const noexcept { return details_->written; }

  private:
    std::shared_ptr<const error_details> details_; // so that copying an error cannot fail
};

namespace detail {

/// Throws the error; without exceptions, prints it and ends the program.
[[noreturn]] inline void fail(error_details details) {
#ifdef __cpp_exceptions
    throw error(std::move(details));
#else
    std::fprintf(stderr, "%s\n", message(details).c_str());
    std::exit(1);
#endif
}

} // namespace detail
} // namespace ms

#endif // MILLSTREAM_ERROR_HPP
