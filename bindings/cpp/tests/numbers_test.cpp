// Tests of millstream/numbers.h: every method of printing and scanning digits, compared with a simple implementation
// and the standard library.

#include <millstream/numbers.h>

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED false
#endif

namespace {

// ---- Printing -----------------------------------------------------------------------------------------------------

struct Way {
    const char *name;
    size_t (*digits)(char *, uint64_t);
};

// The methods that this CPU supports.
std::vector<Way> ways() {
    std::vector<Way> all{{"plain", millstream_digits_plain}, {"what is called", millstream_digits}};
#ifdef MILLSTREAM_SWAR
    all.push_back({"portable", millstream_digits_portable});
#endif
#ifdef MILLSTREAM_IFMA
    if (millstream_has_ifma())
        all.push_back({"ifma", millstream_digits_ifma});
#endif
    return all;
}

template <class T>
std::string by_library(T value) {
    char text[48];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// The output of `write` in a heap block of exactly the required size, so that a sanitizer detects an excess byte.
template <class Write>
std::string written(size_t size, Write write) {
    auto block = std::make_unique<char[]>(size);
    char *end = write(block.get());
    return {block.get(), end};
}

std::string digits_by(const Way &way, uint64_t value) {
    return written(MILLSTREAM_NUMBER_SLACK, [&](char *to) { return to + way.digits(to, value); });
}

// Boundary values, and random numbers of every length in bits.
std::vector<uint64_t> interesting() {
    std::vector<uint64_t> values;
    for (unsigned exponent = 0; exponent < 20; exponent++)
        for (uint64_t nearby = 0; nearby < 5; nearby++)
            values.push_back(millstream_power_of_10(exponent) + nearby - 2);
    std::mt19937_64 random(1);
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (uint64_t nearby = 0; nearby < 5; nearby++)
            values.push_back((UINT64_MAX >> (64 - bits)) + nearby - 2);
        for (int i = 0; i < 300; i++)
            values.push_back(random() >> (64 - bits));
    }
    return values;
}

TEST(Digits, EveryWayAgreesWithTheLibrary) {
    for (const Way &way : ways()) {
        SCOPED_TRACE(way.name);
        for (uint64_t value = 0; value < 20000; value++)
            ASSERT_EQ(digits_by(way, value), by_library(value));
        for (uint64_t value : interesting())
            ASSERT_EQ(digits_by(way, value), by_library(value));
    }
}

#ifdef MILLSTREAM_IFMA
TEST(Digits, EveryNumberOfEightDigitsByIfma) {
    if (!millstream_has_ifma())
        GTEST_SKIP() << "this processor has no AVX-512 IFMA";
    // A decimal counter runs in parallel, as the lower half of sixteen digits, which always has all eight digits.
    char counted[] = "1000000000000000";
    char made[MILLSTREAM_NUMBER_SLACK];
    // Sanitizers do not check assembly, and they make the rest slow.
    const uint64_t count = SANITIZED ? 1000000 : 100000000;
    for (uint64_t low = 0; low < count; low++) {
        millstream_digits_ifma(made, UINT64_C(1000000000000000) + low);
        if (memcmp(made, counted, 16) != 0)
            FAIL() << "found " << std::string_view(made, 16) << ", expected " << counted;
        char *digit = counted + 15;
        for (; *digit == '9'; --digit)
            *digit = '0';
        ++*digit;
    }
}

TEST(Digits, TheEnvironmentAsksForAWay) {
    auto way_for = [](const char *asked) {
        if (asked)
            setenv("MILLSTREAM_DIGITS", asked, 1);
        else
            unsetenv("MILLSTREAM_DIGITS");
        *millstream_digits_way() = MILLSTREAM_DIGITS_UNKNOWN;
        EXPECT_EQ(written(MILLSTREAM_NUMBER_SLACK, [](char *to) { return millstream_put_u32(to, 1234567890); }),
                  "1234567890");
        return *millstream_digits_way();
    };
    int best = millstream_has_ifma() ? MILLSTREAM_DIGITS_IFMA : MILLSTREAM_DIGITS_PORTABLE;
    EXPECT_EQ(way_for("plain"), MILLSTREAM_DIGITS_PLAIN);
    EXPECT_EQ(way_for("portable"), MILLSTREAM_DIGITS_PORTABLE);
    EXPECT_EQ(way_for("ifma"), best);
    EXPECT_EQ(way_for("roman"), best);
    EXPECT_EQ(way_for(nullptr), best);
}
#endif

template <class T, class Put>
void expect_put(Put put, T value) {
    EXPECT_EQ(written(MILLSTREAM_NUMBER_SLACK, [&](char *to) { return put(to, value); }), by_library(value));
}

TEST(Put, EveryType) {
    for (uint64_t value : interesting()) {
        expect_put<uint64_t>(millstream_put_u64, value);
        expect_put<uint32_t>(millstream_put_u32, static_cast<uint32_t>(value));
        expect_put<int64_t>(millstream_put_i64, static_cast<int64_t>(value));
        expect_put<int64_t>(millstream_put_i64, static_cast<int64_t>(0 - value));
        expect_put<int32_t>(millstream_put_i32, static_cast<int32_t>(value));
        expect_put<int32_t>(millstream_put_i32, static_cast<int32_t>(0 - value));
    }
}

std::string by_printf(const char *format, uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

TEST(Put, Hexadecimal) {
    for (uint64_t value : interesting())
        EXPECT_EQ(written(MILLSTREAM_NUMBER_SLACK, [&](char *to) { return millstream_put_hex_u64(to, value); }),
                  by_printf("%" PRIx64, value));
}

TEST(Put, Padded) {
    for (uint64_t value : interesting())
        for (int width : {0, 1, 7, 20, 29}) {
            auto padded = [&](auto put, auto number, char fill) {
                size_t bytes = static_cast<size_t>(width);
                return written(bytes + MILLSTREAM_NUMBER_SLACK, [&](char *to) { return put(to, number, bytes, fill); });
            };
            char expected[64];
            std::snprintf(expected, sizeof expected, "%*" PRIu64, width, value);
            EXPECT_EQ(padded(millstream_put_u64_padded, value, ' '), expected);
            std::snprintf(expected, sizeof expected, "%0*" PRIu64, width, value);
            EXPECT_EQ(padded(millstream_put_u64_padded, value, '0'), expected);
            auto number = static_cast<int64_t>(value);
            std::snprintf(expected, sizeof expected, "%*" PRId64, width, number);
            EXPECT_EQ(padded(millstream_put_i64_padded, number, ' '), expected);
            std::snprintf(expected, sizeof expected, "%0*" PRId64, width, number);
            EXPECT_EQ(padded(millstream_put_i64_padded, number, '0'), expected);
        }
}

#ifdef __SIZEOF_INT128__
std::string digits_of(millstream_u128 value) {
    std::string text;
    do
        text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    while ((value /= 10) != 0);
    return text;
}

TEST(Put, Of128Bits) {
    std::mt19937_64 random(2);
    auto check = [](millstream_u128 value) {
        EXPECT_EQ(written(MILLSTREAM_NUMBER_SLACK_128, [&](char *to) { return millstream_put_u128(to, value); }),
                  digits_of(value));
        auto number = static_cast<millstream_i128>(value);
        EXPECT_EQ(written(MILLSTREAM_NUMBER_SLACK_128, [&](char *to) { return millstream_put_i128(to, number); }),
                  number < 0 ? "-" + digits_of(0 - value) : digits_of(value));
    };
    for (int shift = 0; shift < 128; shift++)
        for (int i = 0; i < 50; i++)
            check(((static_cast<millstream_u128>(random()) << 64) | random()) >> shift);
    millstream_u128 power = 1;
    for (int exponent = 0; exponent < 39; exponent++, power *= 10)
        for (unsigned nearby = 0; nearby < 3; nearby++)
            check(power + nearby - 1);
}
#endif

// ---- Scanning -----------------------------------------------------------------------------------------------------

// The result of a scan, for comparisons.
std::string outcome(int result, const char *begin, const char *at, const std::string &value) {
    switch (result) {
    case MILLSTREAM_SCANNED:
        return value + " in " + std::to_string(at - begin) + " bytes";
    case MILLSTREAM_SCAN_MORE:
        return "more";
    case MILLSTREAM_SCAN_INVALID:
        return "invalid";
    default:
        return "overflow";
    }
}

// The rule of the header in simple form: a token is everything up to white space.
template <class T>
std::string expected(std::string_view text, millstream_extent extent) {
    size_t length = text.find_first_of(" \t\n\v\f\r");
    bool ended = length != text.npos;
    std::string_view token = text.substr(0, length);
    std::string_view digits = token;
    if (!digits.empty() && (digits[0] == '+' || (std::is_signed_v<T> && digits[0] == '-')))
        digits.remove_prefix(1);
    bool only_digits = digits.find_first_not_of("0123456789") == digits.npos;
    if (!ended && only_digits && extent == MILLSTREAM_MORE_MAY_COME)
        return "more";
    if (!only_digits || digits.empty())
        return "invalid";
    T value{};
    if (token[0] == '+')
        token.remove_prefix(1);
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc{})
        return "overflow";
    return by_library(value) + " in " + std::to_string(ended ? length : text.size()) + " bytes";
}

template <class T>
using Scan = int (*)(const char **, const char *, T *);

template <class T>
void check_scan(std::string_view text, Scan<T> scan, millstream_extent extent) {
    // The text is in a block of exactly its size, so that a read at or past its end is detected.
    auto block = std::make_unique<char[]>(text.size());
    std::copy(text.begin(), text.end(), block.get());
    const char *at = block.get();
    T value = 77;
    int result = scan(&at, block.get() + text.size(), &value);
    EXPECT_EQ(outcome(result, block.get(), at, by_library(value)), expected<T>(text, extent))
        << testing::PrintToString(text);
    if (result != MILLSTREAM_SCANNED) {
        EXPECT_EQ(at, block.get());
        EXPECT_EQ(value, 77);
    }
}

void check_all_scans(std::string_view text) {
    check_scan<uint32_t>(text, millstream_scan_u32, MILLSTREAM_MORE_MAY_COME);
    check_scan<uint64_t>(text, millstream_scan_u64, MILLSTREAM_MORE_MAY_COME);
    check_scan<int32_t>(text, millstream_scan_i32, MILLSTREAM_MORE_MAY_COME);
    check_scan<int64_t>(text, millstream_scan_i64, MILLSTREAM_MORE_MAY_COME);
    check_scan<uint32_t>(text, millstream_scan_last_u32, MILLSTREAM_ALL_IS_HERE);
    check_scan<uint64_t>(text, millstream_scan_last_u64, MILLSTREAM_ALL_IS_HERE);
    check_scan<int32_t>(text, millstream_scan_last_i32, MILLSTREAM_ALL_IS_HERE);
    check_scan<int64_t>(text, millstream_scan_last_i64, MILLSTREAM_ALL_IS_HERE);
}

TEST(Scan, EveryEndOfEveryToken) {
    std::vector<std::string> tokens{"",
                                    "+",
                                    "-",
                                    "+-1",
                                    "--1",
                                    "0",
                                    "-0",
                                    "+0",
                                    "00",
                                    "1.0",
                                    "1,2",
                                    "1e",
                                    "\xb2",
                                    "x",
                                    "1x",
                                    "/1",
                                    "1:",
                                    "1/",
                                    "0x10",
                                    "12345678z",
                                    "1-",
                                    "1+",
                                    "+1",
                                    "-1",
                                    "٣",
                                    "1_",
                                    "\x80",
                                    "1\x80",
                                    "123456789012345678901z"};
    for (uint64_t limit : {UINT64_C(255), UINT64_C(2147483647), UINT64_C(2147483648), UINT64_C(4294967295),
                           UINT64_C(9223372036854775807), UINT64_C(9223372036854775808), UINT64_MAX})
        for (const char *sign : {"", "-", "+"})
            for (const char *zeros : {"", "0", "0000000", "00000000000000000000000000000000000000000"})
                for (uint64_t value : {limit - 1, limit, limit + 1})
                    tokens.push_back(sign + std::string(zeros) + by_library(value));
    tokens.push_back("18446744073709551616");
    tokens.push_back("-9223372036854775809");
    tokens.push_back("99999999999999999999");
    tokens.push_back("100000000000000000000");
    for (const std::string &token : tokens)
        for (char space : {' ', '\t', '\n', '\v', '\f', '\r'}) {
            std::string text = token + space + "987654321 123456789 987654321 123456789";
            for (size_t size = 0; size <= text.size(); size++)
                check_all_scans(std::string_view(text).substr(0, size));
        }
}

TEST(Scan, RandomDigitsOfEveryLength) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 10000; i++) {
        std::string text;
        if (random() % 4 == 0)
            text += "+-"[random() % 2];
        for (uint64_t digits = random() % 24; digits > 0; digits--)
            text += static_cast<char>('0' + random() % 10);
        text += random() % 8 == 0 ? static_cast<char>(random()) : " \n"[random() % 2];
        // The following bytes must not matter.
        for (int more = 0; more < 40; more++)
            text += static_cast<char>(random() % 2 ? '0' + random() % 10 : random());
        check_all_scans(text);
    }
}

TEST(Scan, TheFastWayIsThePlainOne) {
    std::mt19937_64 random(4);
    const char alphabet[] = "0123456789012345678901234567890123456789 \n+-a\xff";
    for (int i = 0; i < 300000; i++) {
        char text[48];
        for (char &byte : text)
            byte = alphabet[random() % (sizeof alphabet - 1)];
        uint64_t most = random() >> (random() % 64);
        uint64_t most_negative = random() % 2 ? most + 1 : 0;
        const char *at = text, *at_plain = text;
        uint64_t magnitude = 0;
        int negative = 0;
        millstream_scanned plain{};
        int result = millstream_scan_token(&at, text + sizeof text, most, most_negative, MILLSTREAM_MORE_MAY_COME,
                                           &magnitude, &negative);
        int result_plain =
            millstream_scan_plain(&at_plain, text + sizeof text, most, most_negative, MILLSTREAM_MORE_MAY_COME, &plain);
        ASSERT_EQ(result, result_plain) << std::string_view(text, sizeof text);
        ASSERT_EQ(at, at_plain) << std::string_view(text, sizeof text);
        ASSERT_EQ(magnitude, static_cast<uint64_t>(plain.magnitude));
        ASSERT_EQ(negative, plain.negative);
    }
}

TEST(Scan, SkipsWhiteSpaceOnly) {
    for (int value = 0; value < 256; value++) {
        char text[] = {' ', '\n', static_cast<char>(value), 'x'};
        bool space = value == ' ' || (value >= 9 && value <= 13);
        EXPECT_EQ(millstream_skip_space(text, text + 4), text + (space ? 3 : 2));
        EXPECT_EQ(millstream_skip_space(text, text + 2), text + 2);
    }
}

#ifdef __SIZEOF_INT128__
TEST(Scan, Of128Bits) {
    auto scan_u = [](std::string_view text) {
        const char *at = text.data();
        millstream_u128 value = 0;
        int result = millstream_scan_u128(&at, at + text.size(), MILLSTREAM_ALL_IS_HERE, &value);
        return outcome(result, text.data(), at, digits_of(value));
    };
    auto scan_i = [](std::string_view text) {
        const char *at = text.data();
        millstream_i128 value = 0;
        int result = millstream_scan_i128(&at, at + text.size(), MILLSTREAM_ALL_IS_HERE, &value);
        auto magnitude = static_cast<millstream_u128>(value);
        return outcome(result, text.data(), at, value < 0 ? "-" + digits_of(0 - magnitude) : digits_of(magnitude));
    };
    EXPECT_EQ(scan_u("340282366920938463463374607431768211455"), "340282366920938463463374607431768211455 in 39 bytes");
    EXPECT_EQ(scan_u("340282366920938463463374607431768211456"), "overflow");
    EXPECT_EQ(scan_u("-1"), "invalid");
    EXPECT_EQ(scan_u("+18446744073709551616\n"), "18446744073709551616 in 21 bytes");
    EXPECT_EQ(scan_i("170141183460469231731687303715884105727"), "170141183460469231731687303715884105727 in 39 bytes");
    EXPECT_EQ(scan_i("170141183460469231731687303715884105728"), "overflow");
    EXPECT_EQ(scan_i("-170141183460469231731687303715884105728"),
              "-170141183460469231731687303715884105728 in 40 bytes");
    EXPECT_EQ(scan_i("-170141183460469231731687303715884105729"), "overflow");
}
#endif

} // namespace
