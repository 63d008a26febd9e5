// Buffers between a program and its own io function: a drop-in replacement for `SmartBuffer.hpp` and
// `AsyncSmartBuffer.hpp`. Only the #include has to be changed.
//
//     SyncIOReadBuffer        reads through a buffer: a number of bytes, or up to a character
//     SyncIOLazyWriteBuffer   writes through a buffer, as late as it can
//     AsyncIOReadBuffer       like SyncIOReadBuffer, with an io that completes later
//     AsyncIOWriteBuffer
//     millstream::Extractor, <<       numbers and words instead of bytes
//     millstream::LockedReadBuffer    for several threads
//     millstream::LockedWriteBuffer   for several threads, with a flush after a while
//
// Guarantees:
// - No data is lost. Bytes that io delivered can be read, and accepted bytes are written or still in the buffer, even
//   if io throws, moves fewer bytes than requested, or accepts no more.
// - There is no recursion: neither long reads nor handlers that start further requests deepen the stack.
// - io is called with at most the capacity of the buffer, and only with the buffer's own memory.
//
// These classes know only the io function and do not open or poll anything. `reader.hpp` and `writer.hpp` do.
//
// Needs C++17 and no library. This file can be copied. It compiles with g++, clang++ and mingw-w64.

#ifndef MILLSTREAM_SMART_BUFFER_HPP
#define MILLSTREAM_SMART_BUFFER_HPP

#if __cplusplus <= 201402L
#error "millstream/smart_buffer.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#define MILLSTREAM_HAS_SPAN 1
#endif

// mingw-w64 with Windows' own threads has neither std::mutex nor std::thread before GCC 13. There the asynchronous pair
// takes no lock, and the variants for several threads are missing.
#if !defined(__GLIBCXX__) || defined(_GLIBCXX_HAS_GTHREADS)
#include <condition_variable>
#include <thread>
#define MILLSTREAM_HAS_THREADS 1
#endif

namespace millstream {

/// An error between a buffer and its io: io reports more bytes than requested (for example the -1 of a failed read(2)),
/// or it accepts no more while bytes remain to be written.
struct BufferError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace buffer_detail {

/// The largest count that fits into `SizeType`.
template <class SizeType>
constexpr std::size_t largest() {
    constexpr auto size_type = static_cast<std::uintmax_t>(std::numeric_limits<SizeType>::max());
    constexpr auto size = static_cast<std::uintmax_t>(std::numeric_limits<std::size_t>::max());
    return static_cast<std::size_t>(size_type < size ? size_type : size);
}

/// A length as the caller passes it. A negative one is an invalid argument.
template <class SizeType>
std::size_t length_of(const SizeType &len) {
    static_assert(std::is_integral_v<SizeType> && !std::is_same_v<SizeType, bool>, "SizeType is an integer");
    if constexpr (std::is_signed_v<SizeType>) {
        if (len < 0) {
            throw std::invalid_argument("millstream: a length of " + std::to_string(len));
        }
    }
    if (static_cast<std::uintmax_t>(len) > largest<SizeType>()) {
        throw std::invalid_argument("millstream: a length of " + std::to_string(len) +
                                    " is more than the address space");
    }
    return static_cast<std::size_t>(len);
}

/// Checks the result of io, which was called for `asked` bytes, and returns the number of bytes moved.
template <class SizeType, class Result>
std::size_t moved(const Result &result, std::size_t asked) {
    if constexpr (std::is_integral_v<Result> && !std::is_same_v<Result, bool>) {
        // A negative number is much too large as an unsigned one.
        if (static_cast<std::uintmax_t>(result) > asked) {
            throw BufferError("millstream: io moved " + std::to_string(result) + " bytes when asked for " +
                              std::to_string(asked));
        }
        return static_cast<std::size_t>(result);
    } else {
        static_assert(std::is_convertible_v<Result, SizeType>, "io returns how many bytes it has moved");
        return moved<SizeType>(static_cast<SizeType>(result), asked);
    }
}

/// Copies; also accepts null pointers with a length of 0.
inline void copy(char *to, const char *from, std::size_t len) {
    if (len > 0) {
        std::memcpy(to, from, len);
    }
}

/// A fixed piece of memory and the bytes in it. All index arithmetic of this file is here.
///
///     consumed    bytes            spare capacity
///     [ ........ | xxxxxxxxxxxxx | ............... ]
///     0          begin           end       capacity     begin <= end, and both are 0 when there are no bytes
///
/// The original uses a ring buffer; the behaviour is the same here. Remaining bytes are moved to the start of the
/// memory before new bytes arrive. There are few of them, because programs take everything except an incomplete record.
class Window {
  public:
    explicit Window(std::size_t capacity) : memory_(new char[capacity]), capacity_(capacity) {}

    std::size_t capacity() const { return capacity_; }
    std::size_t size() const { return end_ - begin_; }
    std::size_t vacancy() const { return size() < capacity_ ? capacity_ - size() : 0; }
    const char *bytes() const { return memory_.get() + begin_; }
    char *bytes() { return memory_.get() + begin_; }

    /// Returns the memory after the bytes, which has `vacancy()` bytes. Moves the bytes to the start.
    char *space() {
        if (begin_ > 0) {
            std::memmove(memory_.get(), bytes(), size());
            end_ -= begin_;
            begin_ = 0;
        }
        return memory_.get() + end_;
    }

    /// Adds the first `len` bytes of `space()` to the bytes.
    void commit(std::size_t len) { end_ += len; }

    /// Drops the first `len` bytes.
    void consume(std::size_t len) {
        begin_ += len;
        if (begin_ == end_) {
            begin_ = end_ = 0;
        }
    }

    /// Moves the first `len` bytes, or all if there are fewer, to `out`. Returns their number.
    std::size_t take(char *out, std::size_t len) {
        len = std::min(len, size());
        copy(out, bytes(), len);
        consume(len);
        return len;
    }

    /// Appends the first `len` bytes at `data`, or as many as fit. Returns their number.
    std::size_t put(const char *data, std::size_t len) {
        len = std::min(len, vacancy());
        if (end_ + len > capacity_) {
            space();
        }
        copy(memory_.get() + end_, data, len);
        end_ += len;
        return len;
    }

    /// Undoes `take`s: inserts the `len` bytes at `data` before the others, in larger memory if necessary.
    void put_back(const char *data, std::size_t len) {
        if (len == 0) {
            return;
        }
        const std::size_t total = len + size();
        std::unique_ptr<char[]> memory(new char[std::max(total, capacity_)]);
        copy(memory.get(), data, len);
        copy(memory.get() + len, bytes(), size());
        memory_ = std::move(memory);
        begin_ = 0;
        end_ = total;
    }

  private:
    std::unique_ptr<char[]> memory_;
    std::size_t capacity_; // the capacity promised to users; the memory is larger after some put_back
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// Whether a character ends a record according to `Ender`.
template <class Ender>
using IsEnder = std::enable_if_t<std::is_invocable_r_v<bool, Ender &, const char &>>;

/// The length of the first record in `bytes`, its ender included.
inline std::optional<std::size_t> length_till(std::string_view bytes, char ender) {
    const std::size_t at = bytes.find(ender); // memchr
    return at == std::string_view::npos ? std::nullopt : std::optional<std::size_t>(at + 1);
}

template <class Ender, class = IsEnder<Ender>>
std::optional<std::size_t> length_till(std::string_view bytes, Ender &ender) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (std::invoke(ender, bytes[at])) {
            return at + 1;
        }
    }
    return std::nullopt;
}

} // namespace buffer_detail
} // namespace millstream

/// Reads through a buffer from an io function that is passed with every read.
///
/// `io(char *to, const SizeType &len)` writes up to `len` bytes to `to` and returns their number; 0 means that there
/// are no more. Any callable of this form works. It is called with the free part of the buffer, never with the caller's
/// memory. It may throw: the exception passes through, and the buffer contains the bytes from before the read and
/// everything that io has delivered since. (`size()` exceeds `capacity()` until these bytes are read; they are lost
/// only if memory is exhausted, with std::bad_alloc.) After a 0, the next read calls io again.
///
///     auto io = [](char *to, std::size_t len) { return std::fread(to, 1, len, stdin); };
///     SyncIOReadBuffer<std::size_t> buffer(1024);
///     char line[128];
///     std::size_t len = buffer.readUntil(line, io, '\n');
///
/// Not thread-safe; use millstream::LockedReadBuffer.
template <class SizeType>
struct SyncIOReadBuffer {
    using IOInterface = std::function<SizeType(char *, const SizeType &)>;

    /// Creates a buffer of `size` bytes. Throws std::invalid_argument if that is 0.
    SyncIOReadBuffer(const SizeType &size)
        : window_(millstream::buffer_detail::length_of(size)) { // implicit, as in the original
        if (size == 0) {
            throw std::invalid_argument("millstream: a buffer of 0 bytes");
        }
    }

    SyncIOReadBuffer(const SyncIOReadBuffer &) = delete;
    SyncIOReadBuffer &operator=(const SyncIOReadBuffer &) = delete;

    /// Reads `len` bytes to `out`. Returns the number of bytes, which is less than `len` only at the end.
    template <class Io>
    SizeType read(char *out, const SizeType &len, Io &&io) {
        return static_cast<SizeType>(read_bytes(out, millstream::buffer_detail::length_of(len), io));
    }

    /// Reads up to and including the first `ender`, a character or a predicate of characters, to `out`, which has to be
    /// large enough. Returns the number of bytes. At the end of the input, it reads the remaining bytes without
    /// `ender`.
    ///
    /// Records longer than the maximum of `SizeType` are returned in pieces: the first has that length and no `ender`.
    template <class Io>
    SizeType readUntil(char *out, Io &&io, const char &ender) {
        return static_cast<SizeType>(read_until(out, millstream::buffer_detail::largest<SizeType>(), io, ender));
    }
    template <class Io, class Ender, class = millstream::buffer_detail::IsEnder<Ender>>
    SizeType readUntil(char *out, Io &&io, Ender &&ender) {
        return static_cast<SizeType>(read_until(out, millstream::buffer_detail::largest<SizeType>(), io, ender));
    }

#ifdef MILLSTREAM_HAS_SPAN
    /// Fills `out`. Returns the number of bytes, which is smaller than `out` only at the end.
    template <class Io>
    std::size_t read(std::span<char> out, Io &&io) {
        return read_bytes(out.data(), out.size(), io);
    }

    /// Reads up to and including the first `ender`, but at most the size of `out`. Longer records are returned in
    /// pieces: the first ones fill `out` and have no `ender`.
    template <class Io>
    std::size_t readUntil(std::span<char> out, Io &&io, const char &ender) {
        return read_until(out.data(), out.size(), io, ender);
    }
    template <class Io, class Ender, class = millstream::buffer_detail::IsEnder<Ender>>
    std::size_t readUntil(std::span<char> out, Io &&io, Ender &&ender) {
        return read_until(out.data(), out.size(), io, ender);
    }
#endif

    /// Returns the length of the first record in the buffer, including its `ender`, if the buffer contains it
    /// completely. Does not call io.
    std::optional<SizeType> findLengthTill(const char &ender) const { return find(ender); }
    template <class Ender, class = millstream::buffer_detail::IsEnder<Ender>>
    std::optional<SizeType> findLengthTill(Ender &&ender) const {
        return find(ender);
    }

    /// Calls io for as many bytes as fit. Returns the number of bytes: 0 at the end, or if the buffer is full.
    template <class Io>
    SizeType fill(Io &&io) {
        const auto vacant = static_cast<SizeType>(window_.vacancy());
        if (vacant == 0) {
            return 0;
        }
        char *const to = window_.space();
        const std::size_t got =
            millstream::buffer_detail::moved<SizeType>(std::invoke(io, to, vacant), window_.vacancy());
        window_.commit(got);
        return static_cast<SizeType>(got);
    }

    /// The bytes in the buffer, valid until the next call that is not const.
    std::string_view buffer() const { return {window_.bytes(), window_.size()}; }

    /// Drops the first `len` bytes of `buffer()`; throws std::invalid_argument if there are fewer.
    void consume(std::size_t len) {
        if (len > window_.size()) {
            throw std::invalid_argument("millstream: consume more bytes than the buffer contains");
        }
        window_.consume(len);
    }

    bool empty() const { return window_.size() == 0; }
    bool full() const { return window_.vacancy() == 0; }
    /// The number of bytes in the buffer, at most the maximum of `SizeType`.
    SizeType size() const {
        return static_cast<SizeType>(std::min(window_.size(), millstream::buffer_detail::largest<SizeType>()));
    }
    /// The capacity of the buffer.
    SizeType capacity() const { return static_cast<SizeType>(window_.capacity()); }
    /// The free space of the buffer.
    SizeType vacancy() const { return static_cast<SizeType>(window_.vacancy()); }

  private:
    template <class Io>
    std::size_t read_bytes(char *out, std::size_t len, Io &io) {
        std::size_t got = 0;
        try {
            // First takes the buffered bytes, then fills the buffer repeatedly until the rest has arrived.
            bool more = window_.size() >= len || full() || fill(io) > 0;
            while (more && window_.size() < len - got) {
                got += window_.take(out + got, window_.size());
                more = fill(io) > 0;
            }
            return got + window_.take(out + got, len - got);
        } catch (...) {
            window_.put_back(out, got);
            throw;
        }
    }

    template <class Io, class Ender>
    std::size_t read_until(char *out, std::size_t len, Io &io, Ender &ender) {
        std::size_t got = 0;
        try {
            do {
                const std::string_view bytes = buffer().substr(0, len - got);
                if (const auto found = millstream::buffer_detail::length_till(bytes, ender)) {
                    return got + window_.take(out + got, *found);
                }
                got += window_.take(out + got, bytes.size());
            } while (got < len && fill(io) > 0);
            return got;
        } catch (...) {
            window_.put_back(out, got);
            throw;
        }
    }

    template <class Ender>
    std::optional<SizeType> find(Ender &ender) const {
        const auto found = millstream::buffer_detail::length_till(
            buffer().substr(0, millstream::buffer_detail::largest<SizeType>()), ender);
        return found ? std::optional<SizeType>(static_cast<SizeType>(*found)) : std::nullopt;
    }

    millstream::buffer_detail::Window window_;
};

namespace millstream::buffer_detail {

/// The types that `<<` and `>>` treat as numbers: all integers, including bytes, and floats, but neither characters nor
/// bool.
template <class T>
constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> &&
                           !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;

/// The maximum length of the text of any number.
constexpr std::size_t number_len = 64;

inline char *append(char *to, std::string_view text) { return std::copy(text.begin(), text.end(), to); }

inline char *format(char *to, bool value) { return append(to, value ? "true" : "false"); }

template <class T, class = std::enable_if_t<is_number<T>>>
char *format(char *to, T value) {
    if constexpr (std::is_integral_v<T>) {
        return std::to_chars(to, to + number_len, value).ptr;
    } else {
        static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "long double is not supported");
        // The shortest digits that read back as the same number: 1.0, 0.00001, 1.5e-7, 1e16.
        if (std::isnan(value)) {
            return append(to, "NaN");
        }
        if (std::signbit(value)) {
            *to++ = '-';
            value = -value;
        }
        if (std::isinf(value)) {
            return append(to, "inf");
        }
        char scientific[number_len]; // d[.ddd]e[+-]dd
        const char *const end =
            std::to_chars(scientific, scientific + number_len, value, std::chars_format::scientific).ptr;
        const char *const mark = std::find(const_cast<const char *>(scientific), end, 'e');
        int exponent = 0;
        std::from_chars(mark + (mark[1] == '+' ? 2 : 1), end, exponent);
        if (exponent < -5 || exponent >= 16) {
            to = append(to, {scientific, static_cast<std::size_t>(mark + 1 - scientific)});
            return std::to_chars(to, to + number_len, exponent).ptr;
        }
        char digits[number_len];
        char *const digits_end = std::remove_copy(const_cast<const char *>(scientific), mark, digits, '.');
        std::string_view text(digits, static_cast<std::size_t>(digits_end - digits));
        if (exponent < 0) {
            to = append(to, "0.");
            to = std::fill_n(to, -exponent - 1, '0');
            return append(to, text);
        }
        const auto whole = static_cast<std::size_t>(exponent) + 1;
        if (text.size() <= whole) {
            to = append(to, text);
            to = std::fill_n(to, whole - text.size(), '0');
            return append(to, ".0");
        }
        to = append(to, text.substr(0, whole));
        *to++ = '.';
        return append(to, text.substr(whole));
    }
}

} // namespace millstream::buffer_detail

/// Writes through a buffer to its own io, as late as possible: when the data does not fit, at `flush`, and in the
/// destructor.
///
/// `io(char *from, const SizeType &len)`, or with `const char *`, accepts up to `len` bytes and returns their number,
/// or returns void if it accepts all of them. It is called again for the rest; 0 means that it accepts no more. It may
/// throw: the exception passes through, and bytes that it has not accepted stay in the buffer.
///
///     SyncIOLazyWriteBuffer<std::size_t> buffer(
///         1024, [](const char *from, std::size_t len) { return std::fwrite(from, 1, len, stdout); });
///     buffer.write("Hello", 5);
///     buffer << ' ' << 42 << '\n';
///     buffer.close();
///
/// Not thread-safe; use millstream::LockedWriteBuffer.
template <class SizeType>
struct SyncIOLazyWriteBuffer {
    using DataWriter = std::function<SizeType(char *, const SizeType &)>;
    using Clock = std::chrono::steady_clock;

    /// A buffer of `size` bytes. Throws std::invalid_argument if that is 0.
    template <class Io, class = std::enable_if_t<std::is_invocable_v<std::decay_t<Io> &, char *, const SizeType &>>>
    SyncIOLazyWriteBuffer(const SizeType &size, Io &&io)
        : window_(millstream::buffer_detail::length_of(size)), io_(counting(std::forward<Io>(io))) {
        if (size == 0) {
            throw std::invalid_argument("millstream: a buffer of 0 bytes");
        }
    }

    SyncIOLazyWriteBuffer(const SyncIOLazyWriteBuffer &) = delete;
    SyncIOLazyWriteBuffer &operator=(const SyncIOLazyWriteBuffer &) = delete;

    /// Flushes and ignores errors; `close` reports them.
    ~SyncIOLazyWriteBuffer() {
        try {
            flush();
        } catch (...) { // a destructor cannot report errors
        }
    }

    /// Accepts `len` bytes. Returns the number of accepted bytes, which is smaller only if io accepts no more.
    ///
    /// Fills the buffer to its last byte before it calls io: for a buffer of 12 bytes, two writes of 6 bytes do not
    /// call io, and the third write first writes those 12. If io throws, `accepted()` returns how many bytes were
    /// accepted.
    SizeType write(const char *data, const SizeType &len) {
        return static_cast<SizeType>(write_bytes(data, millstream::buffer_detail::length_of(len)));
    }

#ifdef MILLSTREAM_HAS_SPAN
    std::size_t write(std::span<const char> data) { return write_bytes(data.data(), data.size()); }
#endif

    /// Writes the content of the buffer. Returns the number of bytes that io has accepted; `empty()` returns whether
    /// all were.
    SizeType flush() {
        std::size_t taken = 0;
        while (!empty()) {
            const std::size_t now = io_(window_.bytes(), window_.size());
            if (now == 0) {
                break;
            }
            window_.consume(now);
            written_ += now;
            taken += now;
        }
        return static_cast<SizeType>(taken);
    }

    /// Flushes, and throws millstream::BufferError if io does not accept everything. After a successful `close`, a
    /// write is a std::logic_error.
    void close() {
        flush();
        if (!empty()) {
            throw millstream::BufferError("millstream: io accepted no more, " + std::to_string(window_.size()) +
                                          " bytes are not written");
        }
        closed_ = true;
    }

    /// From now on, a write that finds bytes older than `interval` in the buffer writes all of them and its own. 0
    /// disables this.
    ///
    /// There is no thread: after the last write, bytes stay in the buffer until an event loop or
    /// millstream::LockedWriteBuffer checks `due()`.
    void flushEvery(Clock::duration interval) {
        interval_ = std::min<Clock::duration>(interval, std::chrono::hours(24 * 365)); // a year: no sum overflows
        oldest_ = Clock::now();
    }

    /// The time at which the oldest byte in the buffer becomes older than the interval; nothing if there is no byte or
    /// no interval.
    std::optional<Clock::time_point> due() const {
        return empty() || !timed() ? std::nullopt : std::optional(oldest_ + interval_);
    }

    /// Writes a number, a character or a bool; throws millstream::BufferError if io accepts no more. Integers are
    /// decimal, including those of one byte; floats have the fewest digits that read back the same (1.0, 1.5e-7, inf,
    /// NaN).
    template <class T, class = std::enable_if_t<millstream::buffer_detail::is_number<T> || std::is_same_v<T, bool>>>
    SyncIOLazyWriteBuffer &operator<<(T value) {
        char text[millstream::buffer_detail::number_len];
        const char *const end = millstream::buffer_detail::format(text, value);
        return *this << std::string_view(text, static_cast<std::size_t>(end - text));
    }
    SyncIOLazyWriteBuffer &operator<<(char character) { return *this << std::string_view(&character, 1); }
    SyncIOLazyWriteBuffer &operator<<(std::string_view text) {
        const std::size_t taken = write_bytes(text.data(), text.size());
        if (taken < text.size()) {
            throw millstream::BufferError("millstream: io accepted no more, only " + std::to_string(taken) + " of " +
                                          std::to_string(text.size()) + " bytes were accepted");
        }
        return *this;
    }

    bool empty() const { return window_.size() == 0; }
    bool full() const { return window_.vacancy() == 0; }
    /// The bytes in the buffer.
    SizeType size() const { return static_cast<SizeType>(window_.size()); }
    /// The capacity of the buffer.
    SizeType capacity() const { return static_cast<SizeType>(window_.capacity()); }
    /// The free space of the buffer.
    SizeType vacancy() const { return static_cast<SizeType>(window_.vacancy()); }

    /// The number of bytes that io has accepted so far.
    std::uint64_t written() const { return written_; }
    /// The number of bytes that were accepted so far: those written, and those in the buffer.
    std::uint64_t accepted() const { return written_ + window_.size(); }

  private:
    /// Wraps `io` in a function that returns the number of bytes that it has accepted.
    template <class Io>
    static auto counting(Io &&io) {
        return [io = std::decay_t<Io>(std::forward<Io>(io))](char *from, std::size_t size) mutable -> std::size_t {
            const auto len = static_cast<SizeType>(size);
            if constexpr (std::is_void_v<std::invoke_result_t<decltype(io) &, char *, const SizeType &>>) {
                std::invoke(io, from, len);
                return size;
            } else {
                return millstream::buffer_detail::moved<SizeType>(std::invoke(io, from, len), size);
            }
        };
    }

    std::size_t write_bytes(const char *data, std::size_t len) {
        if (closed_) {
            throw std::logic_error("millstream: a write after close");
        }
        std::size_t taken = put(data, len);
        for (bool open = true; taken < len && open;) {
            flush();
            open = empty();
            taken += put(data + taken, len - taken);
        }
        if (timed() && !empty() && Clock::now() - oldest_ >= interval_) {
            flush();
        }
        return taken;
    }

    bool timed() const { return interval_ > Clock::duration::zero(); }

    /// Stores as much as fits, and keeps the time of the oldest byte.
    std::size_t put(const char *data, std::size_t len) {
        if (timed() && empty()) {
            oldest_ = Clock::now();
        }
        return window_.put(data, len);
    }

    millstream::buffer_detail::Window window_;
    std::function<std::size_t(char *, std::size_t)> io_;
    std::uint64_t written_ = 0;
    Clock::duration interval_{0};
    Clock::time_point oldest_;
    bool closed_ = false;
};

namespace millstream::buffer_detail {

#ifdef MILLSTREAM_HAS_THREADS
using Mutex = std::mutex;
#else
struct Mutex {
    void lock() {}
    void unlock() {}
};
#endif

/// Holds a mutex, except while it is released.
class Lock {
  public:
    explicit Lock(Mutex &mutex) : mutex_(mutex) { mutex_.lock(); }
    ~Lock() { mutex_.unlock(); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;

    /// Calls `function` without the mutex.
    template <class Function>
    void released(Function &&function) {
        struct Again {
            Mutex &mutex;
            ~Again() { mutex.lock(); }
        };
        mutex_.unlock();
        const Again again{mutex_};
        function();
    }

  private:
    Mutex &mutex_;
};

/// The common part of the asynchronous pair: requests in a queue, one request to io at a time, and answers in order.
///
/// `Side` is the part that differs. For the first request, it defines whether the request is finished (`settle`), what
/// to request from io (`question`, a function that is called with the handler of the answer), and what an answer does
/// (`answered`).
///
/// The buffer and all handlers that were passed to io share the state, so that an answer after the buffer is destroyed
/// finds valid memory and is ignored. No foreign function (io, handlers, their destructors) is called with the mutex
/// held. Only the outermost call does the work, in a loop: a nested call, or a call from another thread at the same
/// time, only leaves a request or an answer for it. So the stack does not deepen, and handlers are called one by one.
template <class Side>
struct Conversation : std::enable_shared_from_this<Conversation<Side>> {
    using Size = typename Side::Size;
    using Handler = std::function<void(const Size &)>;
    using Request = typename Side::Request;

    template <class... Arguments>
    explicit Conversation(Arguments &&...arguments) : side(std::forward<Arguments>(arguments)...) {}

    void ask(Request request) {
        Visit visit(*this);
        requests.push_back(std::move(request));
        side.queued(requests);
        work(visit);
    }

    /// Called when the buffer is destroyed: drops the requests, or leaves that to the running loop.
    void abandon() {
        Visit visit(*this);
        abandoned = true;
        if (!working) {
            visit.forgotten.swap(requests);
        }
    }

    template <class Look>
    auto look(Look &&at) {
        Lock lock(mutex);
        return at(side.window);
    }

    Side side;

  private:
    /// A call with the mutex held. When it ends, the mutex is released first, then foreign functions are destroyed, and
    /// this object last: a handler may have destroyed the buffer, and io its copy of the handler.
    struct Visit {
        std::shared_ptr<Conversation> alive;
        std::deque<Request> forgotten;
        Lock lock;

        explicit Visit(Conversation &self) : alive(self.shared_from_this()), lock(self.mutex) {}
    };

    void work(Visit &visit) {
        if (working) {
            return;
        }
        working = true;
        struct Done { // also after an exception
            Conversation &self;
            Visit &visit;
            ~Done() {
                self.working = false;
                if (self.abandoned) {
                    visit.forgotten.swap(self.requests);
                }
            }
        } const done{*this, visit};
        while (!abandoned && !waiting && !requests.empty()) {
            if (side.settle(requests)) {
                Request request = std::move(requests.front());
                requests.pop_front();
                visit.lock.released([&request] {
                    const Request settled = std::move(request); // destroyed before the lock is acquired again
                    settled.handler(static_cast<Size>(settled.moved));
                });
            } else {
                question(visit.lock);
            }
        }
    }

    /// Sends the request to io. If io throws, the next call that starts the loop sends it again.
    void question(Lock &lock) {
        const std::uint64_t number = ++questions;
        waiting = true;
        try {
            auto put = side.question(requests);
            lock.released([&] {
                put([self = this->shared_from_this(), number](const Size &result) { self->answer(number, result); });
            });
        } catch (...) {
            waiting = false;
            ++questions; // its answer no longer counts
            throw;
        }
    }

    void answer(std::uint64_t number, const Size &result) {
        Visit visit(*this);
        if (abandoned || !waiting || number != questions) {
            return; // too late, or a second time
        }
        const std::size_t count = moved<Size>(result, side.asked());
        waiting = false;
        side.answered(requests, count);
        work(visit);
    }

    Mutex mutex;
    std::deque<Request> requests;
    std::uint64_t questions = 0;
    bool waiting = false;   // a request is pending
    bool working = false;   // a call is in the loop
    bool abandoned = false; // the buffer is gone
};

template <class SizeType>
struct ReadSide {
    using Size = SizeType;
    using Handler = std::function<void(const SizeType &)>;
    using Io = std::function<void(char *, const SizeType &, const Handler &)>;
    struct Request {
        char *out;
        std::size_t len;
        Io io;
        Handler handler;
        std::size_t moved = 0;
        bool ended = false;
    };

    explicit ReadSide(std::size_t capacity) : window(capacity) {}

    bool settle(std::deque<Request> &requests) {
        Request &first = requests.front();
        first.moved += window.take(first.out + first.moved, first.len - first.moved);
        return first.moved == first.len || first.ended;
    }

    auto question(std::deque<Request> &requests) {
        // The first request stays in place until the loop that calls this continues.
        return [&io = requests.front().io, to = window.space(),
                len = static_cast<SizeType>(asked())](const Handler &handler) { io(to, len, handler); };
    }

    void queued(std::deque<Request> &) {}

    std::size_t asked() const { return window.vacancy(); }

    void answered(std::deque<Request> &requests, std::size_t count) {
        window.commit(count);
        requests.front().ended = count == 0;
    }

    Window window;
};

template <class SizeType>
struct WriteSide {
    using Size = SizeType;
    using Handler = std::function<void(const SizeType &)>;
    using Io = std::function<void(const char *, const SizeType &, const Handler &)>;
    struct Request {
        const char *data;
        std::size_t len;
        Handler handler;
        std::size_t buffered = 0; // the number of bytes that were put into the buffer
        std::size_t moved = 0;    // the number of those that io has accepted
        bool ended = false;
    };

    WriteSide(std::size_t capacity, Io function) : window(capacity), io(std::move(function)) {}

    bool settle(std::deque<Request> &requests) {
        const Request &first = requests.front();
        return first.moved == first.len || first.ended;
    }

    /// Bytes that fit are copied immediately, even while io has the bytes before them, which do not move: see
    /// `question`.
    void queued(std::deque<Request> &requests) {
        const auto last = requests.rbegin();
        const auto before = std::next(last);
        if (before == requests.rend() || before->ended || before->buffered == before->len) {
            put(*last);
        }
    }

    /// Fills the buffer from as many requests as fit, so that small ones that arrived together are written together.
    auto question(std::deque<Request> &requests) {
        window.space(); // moves the bytes to the start, so that all free space is after them
        for (Request &request : requests) {
            put(request);
            if (window.vacancy() == 0) {
                break;
            }
        }
        asked_of_io = window.size();
        const char *const from = window.bytes();
        return
            [this, from, len = static_cast<SizeType>(asked_of_io)](const Handler &handler) { io(from, len, handler); };
    }

    std::size_t asked() const { return asked_of_io; }

    /// The buffer contains the bytes of the first requests, in order. If io accepts no more, all requests end: if a
    /// later one continued, the output would have a gap.
    void answered(std::deque<Request> &requests, std::size_t count) {
        if (count == 0) {
            window.consume(window.size());
            for (Request &request : requests) {
                request.ended = true;
            }
            return;
        }
        window.consume(count);
        for (Request &request : requests) {
            const std::size_t of_this = std::min(count, request.buffered - request.moved);
            request.moved += of_this;
            count -= of_this;
            if (count == 0) {
                break;
            }
        }
    }

    void put(Request &request) {
        request.buffered += window.put(request.data + request.buffered, request.len - request.buffered);
    }

    Window window;
    Io io;
    std::size_t asked_of_io = 0; // the buffer may contain more by now
};

} // namespace millstream::buffer_detail

/// Reads through a buffer from an asynchronous io.
///
/// `io(char *to, const SizeType &len, const ReadResultHandler &handler)` writes up to `len` bytes to `to` and calls a
/// copy of `handler` once with their number, at any time: before it returns, later, or from another thread. 0 means
/// that there are no more. A second call for the same request is ignored, and so is a call after the buffer is
/// destroyed (the memory at `to` lives as long as a copy of `handler`). If the count is greater than `len`, the handler
/// throws millstream::BufferError, and the call does not count as an answer.
///
/// Reads are queued and answered in order. Handlers are called one at a time, from the call that delivers the answer. A
/// handler may read again, and may destroy the buffer. An exception of io or of a handler propagates out of the call
/// that invoked it; the queue stays in order and continues with the next call of `read` or of an io handler.
///
/// When the buffer is destroyed, unanswered reads are dropped: their handlers are not called. The destructor does not
/// wait: a handler or io that another thread is running may still run after it, so the objects that it uses must live
/// long enough.
template <class SizeType>
struct AsyncIOReadBuffer {
    using ReadResultHandler = std::function<void(const SizeType &)>;
    using IOInterface = std::function<void(char *, const SizeType &, const ReadResultHandler &)>;

    /// A buffer of `size` bytes; 0 counts as 1.
    AsyncIOReadBuffer(const SizeType &size) // implicit, as in the original
        : state_(std::make_shared<State>(std::max<std::size_t>(millstream::buffer_detail::length_of(size), 1))) {}
    ~AsyncIOReadBuffer() { state_->abandon(); }
    AsyncIOReadBuffer(const AsyncIOReadBuffer &) = delete;
    AsyncIOReadBuffer &operator=(const AsyncIOReadBuffer &) = delete;

    /// Reads `len` bytes to `out`, which has to stay valid until `handler` is called with the number of bytes, which is
    /// less than `len` only if io delivers no more.
    void read(char *out, const SizeType &len, const IOInterface &io, const ReadResultHandler &handler) {
        state_->ask({out, millstream::buffer_detail::length_of(len), io, handler});
    }

#ifdef MILLSTREAM_HAS_SPAN
    /// Fills `out`, at most up to the maximum of `SizeType`.
    void read(std::span<char> out, const IOInterface &io, const ReadResultHandler &handler) {
        state_->ask({out.data(), std::min(out.size(), millstream::buffer_detail::largest<SizeType>()), io, handler});
    }
#endif

    bool empty() const { return size() == 0; }
    bool full() const { return vacancy() == 0; }
    /// The bytes in the buffer, available to the next read.
    SizeType size() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.size()); });
    }
    SizeType capacity() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.capacity()); });
    }
    SizeType vacancy() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.vacancy()); });
    }

  private:
    using State = millstream::buffer_detail::Conversation<millstream::buffer_detail::ReadSide<SizeType>>;
    std::shared_ptr<State> state_;
};

/// Writes through a buffer to an asynchronous io.
///
/// `io(const char *from, const SizeType &len, const WriteResultHandler &handler)` accepts up to `len` bytes and calls a
/// copy of `handler` with their number, under the same rules as the io of AsyncIOReadBuffer. 0 means that it accepts no
/// more: then every write in the queue is answered with the number of its accepted bytes, and only a new write calls io
/// again.
///
/// Writes do not wait until the buffer is full. The buffer is the unit of one call of io: it contains a part of a large
/// write, or the small writes that arrived while io was busy.
template <class SizeType>
struct AsyncIOWriteBuffer {
    using WriteResultHandler = std::function<void(const SizeType &)>;
    using IOInterface = std::function<void(const char *, const SizeType &, const WriteResultHandler &)>;

    /// A buffer of `size` bytes; 0 counts as 1.
    AsyncIOWriteBuffer(const SizeType &size, const IOInterface &io)
        : state_(std::make_shared<State>(std::max<std::size_t>(millstream::buffer_detail::length_of(size), 1), io)) {}
    ~AsyncIOWriteBuffer() { state_->abandon(); }
    AsyncIOWriteBuffer(const AsyncIOWriteBuffer &) = delete;
    AsyncIOWriteBuffer &operator=(const AsyncIOWriteBuffer &) = delete;

    /// Writes the `len` bytes at `data`. Calls `handler` with the number of bytes that io has accepted, which is less
    /// than `len` only if it accepts no more. The bytes have to stay valid until then; only those that fit are copied
    /// immediately.
    void write(const char *data, const SizeType &len, const WriteResultHandler &handler) {
        state_->ask({data, millstream::buffer_detail::length_of(len), handler});
    }

#ifdef MILLSTREAM_HAS_SPAN
    /// Writes `data`, at most as many bytes as `SizeType` can represent.
    void write(std::span<const char> data, const WriteResultHandler &handler) {
        state_->ask({data.data(), std::min(data.size(), millstream::buffer_detail::largest<SizeType>()), handler});
    }
#endif

    bool empty() const { return size() == 0; }
    bool full() const { return vacancy() == 0; }
    /// The bytes in the buffer, which io has not accepted yet.
    SizeType size() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.size()); });
    }
    SizeType capacity() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.capacity()); });
    }
    SizeType vacancy() const {
        return state_->look([](const auto &window) { return static_cast<SizeType>(window.vacancy()); });
    }

  private:
    using State = millstream::buffer_detail::Conversation<millstream::buffer_detail::WriteSide<SizeType>>;
    std::shared_ptr<State> state_;
};

namespace millstream {

using ::AsyncIOReadBuffer;
using ::AsyncIOWriteBuffer;
using ::SyncIOLazyWriteBuffer;
using ::SyncIOReadBuffer;

/// Reads numbers, words and characters from a read buffer, separated by white space.
///
///     SyncIOReadBuffer<std::size_t> buffer(1024);
///     millstream::Extractor in(buffer, [](char *to, std::size_t len) { return std::fread(to, 1, len, stdin); });
///     for (std::uint32_t a, b; in >> a >> b;) { ... }
///
/// At the end of the input, `>>` changes nothing, and the extractor is false from then on; io is not called again. Text
/// that is not a number throws std::invalid_argument, and a number that does not fit throws std::out_of_range, with the
/// text that was found. The variable is unchanged, and the next `>>` continues after the text. If io throws, the
/// exception passes through, and the next `>>` continues at the same position.
///
/// Integers are decimal, with an optional sign, and those of one byte are numbers too; floats are decimal or
/// scientific, inf or nan. 1e999 does not fit, and 1e-999 is 0. Bytes that are not used stay in the buffer.
template <class Buffer, class Io>
class Extractor {
  public:
    /// The maximum length of a word, 64 MiB, which limits memory. A longer word is a std::length_error.
    static constexpr std::size_t longest_word = std::size_t{64} << 20;

    Extractor(Buffer &buffer, Io io) : buffer_(buffer), io_(std::move(io)) {}

    /// Whether all requested values were found.
    explicit operator bool() const { return !missing_; }

    template <class T, class = std::enable_if_t<buffer_detail::is_number<T>>>
    Extractor &operator>>(T &value) {
        if (find_word()) {
            parse(value);
        }
        return *this;
    }

    Extractor &operator>>(std::string &word) {
        if (find_word()) {
            word = word_;
        }
        return *this;
    }

    /// The next character that is not white space.
    Extractor &operator>>(char &character) {
        if (skip_space()) {
            character = buffer_.buffer().front();
            buffer_.consume(1);
        }
        return *this;
    }

  private:
    static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

    bool more() {
        ended_ = ended_ || buffer_.fill(io_) == 0;
        return !ended_;
    }

    /// Returns whether there is a word; the buffer then starts with it.
    bool skip_space() {
        do {
            const std::string_view bytes = buffer_.buffer();
            const auto word = std::find_if_not(bytes.begin(), bytes.end(), is_space);
            buffer_.consume(static_cast<std::size_t>(word - bytes.begin()));
        } while (buffer_.empty() && more());
        missing_ = buffer_.empty();
        return !missing_;
    }

    /// Returns whether there is a word, which is stored in `word_`. A word that an exception
    /// of io interrupted is continued.
    bool find_word() {
        if (complete_) {
            word_.clear();
        }
        if (word_.empty() && !skip_space()) {
            return false;
        }
        complete_ = false;
        do {
            const std::string_view bytes = buffer_.buffer();
            const auto end = std::find_if(bytes.begin(), bytes.end(), is_space);
            const auto len = static_cast<std::size_t>(end - bytes.begin());
            if (len > longest_word - word_.size()) {
                throw std::length_error("millstream: a word of more than " + std::to_string(longest_word) + " bytes");
            }
            word_.append(bytes.data(), len);
            buffer_.consume(len);
        } while (buffer_.empty() && more());
        complete_ = true;
        return true;
    }

    template <class T>
    void parse(T &value) const {
        const char *begin = word_.data();
        const char *const end = begin + word_.size();
        // A plus sign is accepted, which std::from_chars does not do. It accepts "nan(...)", which numbers elsewhere in
        // Millstream are not.
        if (*begin == '+' && word_.size() > 1 && begin[1] != '-') {
            ++begin;
        }
        T number{};
        std::from_chars_result result = std::from_chars(begin, end, number);
        if constexpr (std::is_floating_point_v<T>) {
            if (result.ec == std::errc::result_out_of_range && !is_large()) {
                number = *begin == '-' ? -T(0) : T(0); // the nearest number
                result.ec = std::errc();
            }
        }
        if (result.ptr != end || result.ec == std::errc::invalid_argument || end[-1] == ')') {
            throw std::invalid_argument("millstream: not a number: " + found());
        }
        if (result.ec == std::errc::result_out_of_range) {
            throw std::out_of_range("millstream: a number that does not fit: " + found());
        }
        value = number;
    }

    /// Whether a decimal number outside the range of floats is too large, and not too close to 0. std::from_chars does
    /// not report this.
    bool is_large() const {
        const std::size_t mark = std::min(word_.find_first_of("eE"), word_.size());
        const std::size_t point = std::min(word_.find('.'), mark);
        const std::size_t first =
            word_.find_first_of("123456789"); // there is such a digit, because 0 can be represented
        // The position of the first significant digit relative to the point: 1 for units, 2 for tens, 0 for tenths.
        const auto places =
            first < point ? static_cast<long long>(point - first) : 1 - static_cast<long long>(first - point);
        long long exponent = 0;
        if (mark < word_.size()) {
            const char *const digits = word_.data() + mark + (word_[mark + 1] == '+' ? 2 : 1);
            if (std::from_chars(digits, word_.data() + word_.size(), exponent).ec != std::errc()) {
                return word_[mark + 1] != '-';
            }
        }
        return exponent > -places;
    }

    /// Formats the word for a message: its start, in printable characters.
    std::string found() const {
        static constexpr std::size_t longest = 64;
        std::string text = "\"";
        for (const char c : word_.substr(0, longest)) {
            if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
                text += c;
            } else {
                static constexpr char digits[] = "0123456789abcdef";
                const auto byte = static_cast<unsigned char>(c);
                text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
            }
        }
        return text + (word_.size() > longest ? "\"..." : "\"");
    }

    Buffer &buffer_;
    Io io_;
    std::string word_;
    bool complete_ = true;
    bool ended_ = false;
    bool missing_ = false;
};

#ifdef MILLSTREAM_HAS_THREADS

/// A thread-safe SyncIOReadBuffer: each call, including io, has exclusive access to the buffer. So two threads get
/// different, complete records.
template <class SizeType>
class LockedReadBuffer {
  public:
    explicit LockedReadBuffer(const SizeType &size) : buffer_(size) {}

    /// Like the members of SyncIOReadBuffer, with `char *` and a length, or a span.
    template <class... Arguments>
    auto read(Arguments &&...arguments) {
        const std::lock_guard lock(mutex_);
        return buffer_.read(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments>
    auto readUntil(Arguments &&...arguments) {
        const std::lock_guard lock(mutex_);
        return buffer_.readUntil(std::forward<Arguments>(arguments)...);
    }

    /// Calls `function` with the SyncIOReadBuffer, for several calls that belong together. Neither it nor io may use
    /// this object: they would deadlock.
    template <class Function>
    decltype(auto) with(Function &&function) {
        const std::lock_guard lock(mutex_);
        return std::invoke(std::forward<Function>(function), buffer_);
    }

  private:
    std::mutex mutex_;
    SyncIOReadBuffer<SizeType> buffer_;
};

/// A thread-safe SyncIOLazyWriteBuffer: each call has exclusive access to the buffer, so the bytes of one `write` are
/// contiguous in the output.
///
/// With an interval, no byte stays in the buffer for longer: a separate thread writes bytes that are due, so that
/// thread also calls io. The next `write`, `flush`, `close` or `with` rethrows an exception of io on that thread once;
/// until then the thread pauses.
template <class SizeType>
class LockedWriteBuffer {
    using Buffer = SyncIOLazyWriteBuffer<SizeType>;

  public:
    using Clock = typename Buffer::Clock;

    template <class Io>
    LockedWriteBuffer(const SizeType &size, Io &&io) : buffer_(size, std::forward<Io>(io)) {}

    template <class Io>
    LockedWriteBuffer(const SizeType &size, Io &&io, typename Clock::duration interval)
        : buffer_(size, std::forward<Io>(io)) {
        buffer_.flushEvery(interval);
        thread_ = std::thread([this] { flush_what_is_due(); });
    }

    LockedWriteBuffer(const LockedWriteBuffer &) = delete;
    LockedWriteBuffer &operator=(const LockedWriteBuffer &) = delete;

    ~LockedWriteBuffer() {
        if (thread_.joinable()) {
            {
                const std::lock_guard lock(mutex_);
                stopping_ = true;
            }
            changed_.notify_one();
            thread_.join();
        }
    }

    /// Like the members of SyncIOLazyWriteBuffer, with a length, or a span.
    template <class... Arguments>
    auto write(Arguments &&...arguments) {
        return with([&](Buffer &buffer) { return buffer.write(std::forward<Arguments>(arguments)...); });
    }
    SizeType flush() {
        return with([](Buffer &buffer) { return buffer.flush(); });
    }
    void close() {
        with([](Buffer &buffer) { buffer.close(); });
    }

    /// Calls `function` with the SyncIOLazyWriteBuffer, for several calls that belong together: `out.with([&](auto
    /// &buffer) { buffer << name << ' ' << count << '\n'; });`. Neither it nor io may use this object: they would
    /// deadlock.
    template <class Function>
    decltype(auto) with(Function &&function) {
        const std::lock_guard lock(mutex_);
        if (failure_) {
            changed_.notify_one(); // the thread tries again
            std::rethrow_exception(std::exchange(failure_, nullptr));
        }
        struct Wake { // also needed after an exception, because accepted bytes are due too
            LockedWriteBuffer &self;
            const std::optional<typename Clock::time_point> before = self.buffer_.due();
            ~Wake() {
                const auto due = self.buffer_.due();
                if (due && (!before || *due < *before)) { // the thread sleeps for longer
                    self.changed_.notify_one();
                }
            }
        } const wake{*this};
        return std::invoke(std::forward<Function>(function), buffer_);
    }

  private:
    void flush_what_is_due() {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
            const auto due = buffer_.due();
            if (!due || failure_) {
                changed_.wait(lock);
            } else if (Clock::now() < *due) {
                changed_.wait_until(lock, *due);
            } else {
                try {
                    buffer_.flush();
                    if (!buffer_.empty()) {
                        throw BufferError("millstream: io accepted no more, " + std::to_string(buffer_.size()) +
                                          " bytes are not written");
                    }
                } catch (...) {
                    failure_ = std::current_exception();
                }
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    Buffer buffer_;
    std::exception_ptr failure_; // the thread's exception until it is reported
    bool stopping_ = false;
    std::thread thread_;
};

#endif // MILLSTREAM_HAS_THREADS

} // namespace millstream

#undef MILLSTREAM_HAS_SPAN
#undef MILLSTREAM_HAS_THREADS

#endif // C++17
#endif // MILLSTREAM_SMART_BUFFER_HPP
