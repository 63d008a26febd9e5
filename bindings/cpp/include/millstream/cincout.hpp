// millstream/cincout.hpp: faster std::cin and std::cout for programs that exist. The program stays as it is, except for
//
//     #include <iostream>     which becomes     #include <millstream/cincout.hpp>
//
// The program prints the same bytes and flushes at the same points. It can still use printf and scanf in between.
//
// How it works: `cin` and `cout` become macros for objects of two classes that derive from std::istream and
// std::ostream. They use the buffers of stdin and stdout, as std::cin and std::cout do by default. Common operations
// work on these buffers directly if that gives the same result; all others are iostream's own.
//
// These operations are fast:
//   - `>>` to short, int, long, long long, their unsigned types, float, double, char and std::string;
//   - std::getline to std::string;
//   - `<<` of these types, std::string_view and C strings; of float and double also with std::fixed;
//   - std::endl, and setting the format (std::setw, std::setprecision, std::setfill, std::fixed, std::hex and others).
//
// A number or word is extracted quickly if it is complete in the buffer and valid. Everything else is as with iostream,
// and as fast: other formats, such as a width or std::hex; tests of the state, `ignore`, `get`, `peek`, `getline` of an
// array, `read`, `write`, `tie`, `exceptions`, `imbue`, `rdbuf`, manipulators, operators of your own types, functions
// that take a std::ostream &. std::cerr and std::clog are those of iostream.
//
// These uses are compile errors:
//   - an operator << of your own for a type of the library that is fast here, such as std::string or char;
//   - a call of an operator as a member, such as `cout.operator<<(1)`;
//   - an expression in which `cout` and another stream must have the same type, such as `condition ? cout : file`: use
//     a reference, `std::ostream &out = cout;`.
//
// Differences:
//   - If standard output cannot be written (because of a full disk or a closed descriptor) or standard input cannot be
//     read, an iostream program does not notice unless it tests for it. Here, one line on standard error reports it at
//     the end, and the program exits with status 1.
//   - After `sync_with_stdio(false)`, the streams still share the buffers of stdin and stdout, because this costs
//     nothing here. std::cout of files that do not include this header has its own buffer then, so include it in all.
//   - As with iostream, each extraction from `cin` first flushes `cout`, which is slow in programs that alternate
//   between
//     the two; `cin.tie(nullptr)` turns it off.
//
// Needs C++17, libstdc++ and glibc, and no library to link. With other standard libraries, it includes only <iostream>.
// Do not use it with millstream/stdio.hpp in one program: millstream::in and millstream::out have other buffers.
#ifndef MILLSTREAM_CINCOUT_HPP
#define MILLSTREAM_CINCOUT_HPP

#if __cplusplus <= 201402L
#error "millstream/cincout.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <iostream>

#if defined(__GLIBCXX__) && defined(__GLIBC__)

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iomanip>
#include <ios>
#include <istream>
#include <limits>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>

#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include <millstream/error.hpp>
#include <millstream/input.hpp>
#include <millstream/numbers.h>
#include <millstream/put.hpp>

namespace millstream::cincout {

/// Holds the lock of a stdio stream, which is recursive, if the program has several threads.
class stdio_lock {
  public:
    MILLSTREAM_HOT explicit stdio_lock(std::FILE *file) : file_(is_needed() ? file : nullptr) {
        if (file_ != nullptr)
            ::flockfile(file_);
    }
    stdio_lock(const stdio_lock &) = delete;
    stdio_lock &operator=(const stdio_lock &) = delete;
    MILLSTREAM_HOT ~stdio_lock() {
        if (file_ != nullptr)
            ::funlockfile(file_);
    }

  private:
    MILLSTREAM_HOT static bool is_needed() {
#if __has_include(<sys/single_threaded.h>)
        return __libc_single_threaded == 0;
#else
        return true;
#endif
    }

    std::FILE *file_;
};

/// The stdio stream as a std::streambuf without a buffer of its own, like that of std::cin and std::cout.
///
/// `readable` and `writable` are the windows on stdio's buffer that glibc's own inline functions (getc_unlocked,
/// putc_unlocked) use; the fields have had these names and meanings in each version of glibc. A window is empty if
/// stdio has to act: at the start, if a buffer is used up, at a terminal, for wide characters.
class stdio_buffer final : public std::streambuf {
  public:
    explicit stdio_buffer(std::FILE *file) : file_(file) {}

    std::FILE *file() const { return file_; }
    /// The error number of the last failure, or 0.
    int error() const { return error_; }
    /// Whether white space and numbers are those of the "C" locale.
    bool is_classic() const { return is_classic_; }

    MILLSTREAM_HOT std::string_view readable() const {
        return {file_->_IO_read_ptr,
                file_->_mode > 0 ? 0 : static_cast<std::size_t>(file_->_IO_read_end - file_->_IO_read_ptr)};
    }
    /// Removes the bytes of `readable` before `at`, at least one.
    MILLSTREAM_HOT void consume_to(const char *at) {
        last_ = traits_type::to_int_type(at[-1]);
        file_->_IO_read_ptr += at - file_->_IO_read_ptr;
    }

    MILLSTREAM_HOT char *space() const { return file_->_IO_write_ptr; }
    MILLSTREAM_HOT std::size_t space_size() const {
        return file_->_mode > 0 || file_->_IO_write_end < file_->_IO_write_ptr
                   ? 0
                   : static_cast<std::size_t>(file_->_IO_write_end - file_->_IO_write_ptr);
    }
    MILLSTREAM_HOT void commit(std::size_t count) { file_->_IO_write_ptr += count; }
    MILLSTREAM_HOT bool is_flushed() const { return file_->_IO_write_ptr == file_->_IO_write_base; }

  private:
    std::FILE *file_;
    int_type last_ = traits_type::eof(); // the last byte that was read, for `unget`
    int error_ = 0;
    bool is_classic_ = true;

    template <class T>
    T noted(T result, bool failed) {
        if (failed && std::ferror(file_) != 0)
            error_ = errno;
        return result;
    }

    void imbue(const std::locale &locale) override { is_classic_ = locale == std::locale::classic(); }

    int_type underflow() override {
        const int byte = noted(std::getc(file_), true);
        return std::ungetc(byte, file_); // of EOF, too, it returns EOF
    }
    int_type uflow() override { return last_ = noted(std::getc(file_), true); }
    int_type pbackfail(int_type byte) override {
        const int_type back = traits_type::eq_int_type(byte, traits_type::eof()) ? last_ : byte;
        last_ = traits_type::eof();
        return std::ungetc(back, file_);
    }
    std::streamsize xsgetn(char *to, std::streamsize count) override {
        const std::size_t got = std::fread(to, 1, static_cast<std::size_t>(count), file_);
        last_ = got == 0 ? traits_type::eof() : traits_type::to_int_type(to[got - 1]);
        return noted(static_cast<std::streamsize>(got), true);
    }
    int_type overflow(int_type byte) override {
        const int result =
            traits_type::eq_int_type(byte, traits_type::eof()) ? std::fflush(file_) : std::putc(byte, file_);
        return noted(result, result == EOF);
    }
    std::streamsize xsputn(const char *from, std::streamsize count) override {
        const std::size_t put = std::fwrite(from, 1, static_cast<std::size_t>(count), file_);
        return noted(static_cast<std::streamsize>(put), true);
    }
    int sync() override {
        const int result = std::fflush(file_);
        return noted(result, result != 0);
    }
    pos_type seekoff(off_type by, std::ios_base::seekdir from, std::ios_base::openmode) override {
        const int whence = from == std::ios_base::beg ? SEEK_SET : from == std::ios_base::cur ? SEEK_CUR : SEEK_END;
        return ::fseeko(file_, by, whence) == 0 ? pos_type(::ftello(file_)) : pos_type(off_type(-1));
    }
    pos_type seekpos(pos_type to, std::ios_base::openmode which) override {
        return seekoff(off_type(to), std::ios_base::beg, which);
    }
};

constexpr auto usual_flags = std::ios_base::skipws | std::ios_base::dec;

/// std::cout, with fast insertion of common types.
class ostream final : public std::ostream {
  public:
    explicit ostream(stdio_buffer *buffer) : std::ostream(buffer), buffer_(*buffer) {}

    /// Puts a part into stdio's buffer if iostream would put the same bytes there. Returns whether it did.
    template <class Part>
    MILLSTREAM_HOT bool put_quickly(const Part &part, std::ios_base::fmtflags extra_flags = {}) {
        if (!MILLSTREAM_LIKELY(is_plain(extra_flags)))
            return false;
        const stdio_lock lock(buffer_.file());
        if (!MILLSTREAM_LIKELY(part.max_size() <= buffer_.space_size()))
            return false;
        buffer_.commit(part.put(buffer_.space()));
        return true;
    }

    /// Whether nothing has to be flushed before the program waits for input.
    MILLSTREAM_HOT bool is_flushed() const { return rdbuf() == &buffer_ && buffer_.is_flushed(); }

    /// Hides the members of std::ostream, so that the functions below have the same rank as those of your own types.
    void operator<<(const stdio_lock &) = delete;

  private:
    stdio_buffer &buffer_;

    MILLSTREAM_HOT bool is_plain(std::ios_base::fmtflags extra_flags) const {
        return good() && (flags() & ~extra_flags) == usual_flags && width() == 0 && tie() == nullptr &&
               rdbuf() == &buffer_ && buffer_.is_classic();
    }
};

/// std::cin, with fast extraction of common types.
class istream final : public std::istream {
  public:
    istream(stdio_buffer *buffer, ostream *tied) : std::istream(buffer), buffer_(*buffer), out_(*tied) { tie(tied); }

    /// Calls `take(from, end)` with the bytes in stdio's buffer after white space, which returns how far it extracted,
    /// or null if it did not. Returns whether it did.
    template <class Take>
    MILLSTREAM_HOT bool take_quickly(Take take) {
        if (!MILLSTREAM_LIKELY(good() && flags() == usual_flags && width() == 0 && rdbuf() == &buffer_ &&
                               buffer_.is_classic()))
            return false;
        if (tie() != nullptr && !(tie() == &out_ && out_.is_flushed()))
            tie()->flush();
        const stdio_lock lock(buffer_.file());
        const std::string_view bytes = buffer_.readable();
        const char *const stop = bytes.data() + bytes.size();
        const char *const at = take(millstream_skip_space(bytes.data(), stop), stop);
        if (!MILLSTREAM_LIKELY(at != nullptr))
            return false;
        buffer_.consume_to(at);
        return true;
    }
    /// Does what std::getline does, a buffer at a time. Returns false if it did nothing.
    bool take_line(std::string &line, char last) {
        if (rdbuf() != &buffer_)
            return false;
        const sentry ready(*this, true);
        if (!ready)
            return true;
        const stdio_lock lock(buffer_.file());
        line.clear();
        for (;;) {
            const std::string_view bytes = buffer_.readable();
            const std::size_t size = bytes.find(last);
            line.append(bytes.substr(0, size));
            if (size != bytes.npos) {
                buffer_.consume_to(bytes.data() + size + 1);
                return true;
            }
            if (!bytes.empty()) {
                buffer_.consume_to(bytes.data() + bytes.size());
                continue;
            }
            if (traits_type::eq_int_type(buffer_.sgetc(), traits_type::eof())) // fills stdio's buffer
                return setstate(line.empty() ? eofbit | failbit : eofbit), true;
            const char byte = traits_type::to_char_type(buffer_.sbumpc());
            if (byte == last)
                return true;
            line.push_back(byte);
        }
    }

    /// Hides the members of std::istream.
    void operator>>(const stdio_lock &) = delete;

  private:
    stdio_buffer &buffer_;
    ostream &out_;
};

/// Constructs the standard streams. Clang initializes inline variables before the object of <iostream> that does the
/// same, but `lasting` needs std::cerr. While this object exists, the other one does not flush standard output at the
/// end of the program, so `at_exit` does, which knows the reason of a failure.
inline const std::ios_base::Init standard_streams;

/// The streams. They are never destroyed, so that the destructors of static objects can use them.
struct streams {
    stdio_buffer in_buffer{stdin}, out_buffer{stdout};
    ostream out{&out_buffer};
    istream in{&in_buffer, &out};
    streams() = default;
    streams(const streams &) = delete;
    // Clang 14 calls an implicit destructor in the constructor below, but does not define it.
    ~streams() {} // NOLINT(modernize-use-equals-default)
};
union lasting_streams {
    streams object;
    lasting_streams() : object() { std::cerr.tie(&object.out); }
    ~lasting_streams() {}
};
inline lasting_streams lasting;

/// An object whose destructor reports at the end of the program that standard output or input has failed.
struct last_check {
    last_check() {} // constructed at run time, because older objects are destroyed later
    last_check(const last_check &) = delete;
    last_check &operator=(const last_check &) = delete;
    ~last_check() {
        const bool flushed = std::fflush(stdout) == 0;
        if (!flushed || std::ferror(stdout) != 0)
            fail(flushed ? lasting.object.out_buffer.error() : errno, STDOUT_FILENO);
        if (std::ferror(stdin) != 0)
            fail(lasting.object.in_buffer.error(), STDIN_FILENO);
    }

  private:
    [[noreturn]] static void fail(int system_errno, int fd) {
        error_details details;
        details.kind = system_errno == EPIPE ? errc::broken_pipe : errc::io;
        details.name = detail::descriptor_name(fd);
        details.system_errno = system_errno;
        std::fprintf(stderr, "%s\n", detail::sentence(details).c_str());
        std::fflush(nullptr);
        ::_exit(1); // exit() is already running, with another status
    }
};
inline const last_check at_exit;

// The operators. Each takes a std::ostream & or std::istream &, as the operators of your own types do, so that the best
// operator is the same one as with iostream. They are found only for objects of the two classes above, because only
// these belong to this namespace. They return these classes where iostream's return the stream itself.

inline ostream &ours(std::ostream &out) { return static_cast<ostream &>(out); }
inline istream &ours(std::istream &in) { return static_cast<istream &>(in); }

template <class T>
MILLSTREAM_HOT ostream &insert_integer(std::ostream &out, T value) {
    if (!MILLSTREAM_LIKELY(ours(out).put_quickly(detail::number_part<T>{value})))
        out.operator<<(value);
    return ours(out);
}
inline ostream &operator<<(std::ostream &out, short value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, unsigned short value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, int value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, unsigned value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, long value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, unsigned long value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, long long value) { return insert_integer(out, value); }
inline ostream &operator<<(std::ostream &out, unsigned long long value) { return insert_integer(out, value); }

#ifdef __cpp_lib_to_chars

/// A finite number with `precision` digits, as printf formats it with %f or %g.
struct real_part {
    static constexpr int most_precise = 64;
    double value;
    int precision;
    bool is_fixed;
    std::size_t max_size() const {
        return (is_fixed ? std::size_t{std::numeric_limits<double>::max_exponent10} : 8) + 4 + most_precise;
    }
    std::size_t put(char *to) const {
        const auto format = is_fixed ? std::chars_format::fixed : std::chars_format::general;
        return static_cast<std::size_t>(std::to_chars(to, to + max_size(), value, format, precision).ptr - to);
    }
};

inline ostream &operator<<(std::ostream &out, double value) {
    const std::streamsize precision = out.precision();
    const bool is_fixed = (out.flags() & std::ios_base::fixed) != 0;
    if (!std::isfinite(value) || precision < 0 || precision > real_part::most_precise ||
        !ours(out).put_quickly(real_part{value, static_cast<int>(precision), is_fixed}, std::ios_base::fixed))
        out.operator<<(value);
    return ours(out);
}

#else
inline ostream &operator<<(std::ostream &out, double value) { return out.operator<<(value), ours(out); }
#endif
inline ostream &operator<<(std::ostream &out, float value) { return operator<<(out, static_cast<double>(value)); }

inline ostream &operator<<(std::ostream &out, char value) {
    if (!MILLSTREAM_LIKELY(ours(out).put_quickly(detail::char_part{value})))
        std::operator<<(out, value);
    return ours(out);
}
MILLSTREAM_HOT ostream &insert_text(std::ostream &out, std::string_view text) {
    if (!MILLSTREAM_LIKELY(ours(out).put_quickly(detail::text_part{text})))
        std::operator<<(out, text);
    return ours(out);
}
inline ostream &operator<<(std::ostream &out, const char *text) {
    if (MILLSTREAM_LIKELY(text != nullptr))
        return insert_text(out, text);
    std::operator<<(out, text);
    return ours(out);
}
inline ostream &operator<<(std::ostream &out, const std::string &text) { return insert_text(out, text); }
inline ostream &operator<<(std::ostream &out, std::string_view text) { return insert_text(out, text); }

inline std::ostream &operator<<(std::ostream &out, std::ostream &(*manipulate)(std::ostream &)) {
    if (manipulate == &std::endl<char, std::char_traits<char>> && ours(out).put_quickly(detail::char_part{'\n'}))
        return out.flush();
    return manipulate(out);
}
inline ostream &operator<<(std::ostream &out, std::ios &(*manipulate)(std::ios &)) {
    return manipulate(out), ours(out);
}
inline ostream &operator<<(std::ostream &out, std::ios_base &(*manipulate)(std::ios_base &)) {
    return manipulate(out), ours(out);
}
inline ostream &operator<<(std::ostream &out, decltype(std::setw(0)) width) {
    return std::operator<<(out, width), ours(out);
}
inline ostream &operator<<(std::ostream &out, decltype(std::setprecision(0)) precision) {
    return std::operator<<(out, precision), ours(out);
}
inline ostream &operator<<(std::ostream &out, decltype(std::setfill(' ')) fill) {
    return std::operator<<(out, fill), ours(out);
}

// The other members of std::ostream.
inline ostream &operator<<(std::ostream &out, bool value) { return out.operator<<(value), ours(out); }
inline ostream &operator<<(std::ostream &out, long double value) { return out.operator<<(value), ours(out); }
inline ostream &operator<<(std::ostream &out, const void *value) { return out.operator<<(value), ours(out); }
inline ostream &operator<<(std::ostream &out, std::nullptr_t) { return out.operator<<(nullptr), ours(out); }
inline ostream &operator<<(std::ostream &out, std::streambuf *from) { return out.operator<<(from), ours(out); }
#if __cplusplus > 202002L
inline ostream &operator<<(std::ostream &out, const volatile void *value) {
    return out.operator<<(const_cast<const void *>(value)), ours(out);
}
#endif

template <class T>
MILLSTREAM_HOT istream &extract_integer(std::istream &in, T &value) {
    const auto take = [&](const char *at, const char *end) {
        const bool taken = detail::scan_number(&at, end, MILLSTREAM_MORE_MAY_COME, value) == MILLSTREAM_SCANNED;
        return taken ? at : nullptr;
    };
    if (!ours(in).take_quickly(take))
        in.operator>>(value);
    return ours(in);
}
inline istream &operator>>(std::istream &in, short &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, unsigned short &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, int &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, unsigned &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, long &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, unsigned long &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, long long &value) { return extract_integer(in, value); }
inline istream &operator>>(std::istream &in, unsigned long long &value) { return extract_integer(in, value); }

template <class T>
MILLSTREAM_HOT istream &extract_real(std::istream &in, T &value) {
#ifdef __cpp_lib_to_chars
    const auto take = [&](const char *at, const char *end) -> const char * {
        // Other input may be a name or a hexadecimal number, which from_chars treats differently.
        if (end - at < 2 || static_cast<unsigned char>(at[*at == '-'] - '0') > 9)
            return nullptr;
        T found = 0;
        const auto [stop, problem] = std::from_chars(at, end, found);
        if (problem != std::errc{} || stop == end || !millstream_is_space(*stop))
            return nullptr;
        value = found;
        return stop;
    };
    if (ours(in).take_quickly(take))
        return ours(in);
#endif
    in.operator>>(value);
    return ours(in);
}
inline istream &operator>>(std::istream &in, float &value) { return extract_real(in, value); }
inline istream &operator>>(std::istream &in, double &value) { return extract_real(in, value); }

inline istream &operator>>(std::istream &in, char &value) {
    const auto take = [&](const char *at, const char *end) { return at == end ? nullptr : (value = *at, at + 1); };
    if (!ours(in).take_quickly(take))
        std::operator>>(in, value);
    return ours(in);
}
inline istream &operator>>(std::istream &in, std::string &word) {
    const auto take = [&](const char *at, const char *end) {
        const char *stop = at;
        while (stop != end && !millstream_is_space(*stop))
            ++stop;
        return stop == end ? nullptr : (word.assign(at, stop), stop);
    };
    if (!ours(in).take_quickly(take))
        std::operator>>(in, word);
    return ours(in);
}

inline istream &getline(istream &in, std::string &line, char last = '\n') {
    if (!in.take_line(line, last))
        std::getline(static_cast<std::istream &>(in), line, last);
    return in;
}

inline std::istream &operator>>(std::istream &in, std::istream &(*manipulate)(std::istream &)) {
    return manipulate(in);
}
inline istream &operator>>(std::istream &in, std::ios &(*manipulate)(std::ios &)) { return manipulate(in), ours(in); }
inline istream &operator>>(std::istream &in, std::ios_base &(*manipulate)(std::ios_base &)) {
    return manipulate(in), ours(in);
}

// The other members of std::istream.
inline istream &operator>>(std::istream &in, bool &value) { return in.operator>>(value), ours(in); }
inline istream &operator>>(std::istream &in, long double &value) { return in.operator>>(value), ours(in); }
inline istream &operator>>(std::istream &in, void *&value) { return in.operator>>(value), ours(in); }
inline istream &operator>>(std::istream &in, std::streambuf *to) { return in.operator>>(to), ours(in); }

inline istream &millstream_cin = lasting.object.in;
inline ostream &millstream_cout = lasting.object.out;

} // namespace millstream::cincout

// What the macros below make of `std::cin`. Programs may not add names to this namespace, but no implementation and no
// other library can have these.
namespace std {
using ::millstream::cincout::getline;
using ::millstream::cincout::millstream_cin;
using ::millstream::cincout::millstream_cout;
} // namespace std

#define cin millstream_cin
#define cout millstream_cout

#endif // libstdc++ and glibc
#endif // C++17
#endif // MILLSTREAM_CINCOUT_HPP
