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

#include <millstream/descriptor.hpp>
#include <millstream/error.hpp>
#include <millstream/numbers.h>
#include <millstream/output.hpp>

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
