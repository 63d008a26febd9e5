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

#include <millstream/descriptor.hpp>
#include <millstream/error.hpp>
#include <millstream/put.hpp>

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
