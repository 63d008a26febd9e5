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
