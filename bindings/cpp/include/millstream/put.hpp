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

#include <millstream/error.hpp>
#include <millstream/numbers.h>

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
