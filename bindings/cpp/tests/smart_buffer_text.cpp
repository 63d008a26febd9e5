// Tests of `>>` and `<<` of the drop-in: reading numbers and words, writing numbers and text.

#include "millstream/smart_buffer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace ms = millstream;

namespace {

/// Calls `use` with an ms::Extractor for `in`, with buffers and pieces of many sizes.
template <class Use>
void extract(const std::string &text, Use use) {
    for (const std::size_t capacity : {1U, 2U, 3U, 7U, 64U, 4096U}) {
        for (const std::size_t most : {1U, 2U, 5U, 4096U}) {
            SCOPED_TRACE("a buffer of " + std::to_string(capacity) + ", pieces of " + std::to_string(most));
            std::size_t given = 0;
            SyncIOReadBuffer<std::size_t> buffer(capacity);
            ms::Extractor in(buffer, [&](char *to, std::size_t len) {
                const std::size_t count = text.copy(to, std::min(len, most), given);
                given += count;
                return count;
            });
            use(in);
        }
    }
}

template <class T>
std::string text_of(T value) {
    std::string text;
    SyncIOLazyWriteBuffer<std::uint32_t>(8, [&](const char *from, std::uint32_t len) { text.append(from, len); })
        << value;
    return text;
}

TEST(Extracting, NumbersUntilTheEnd) {
    extract("3\n1 -2\t +3  0004\r\n4294967295", [](auto &in) {
        int a = 0;
        int b = 0;
        int c = 0;
        int d = 0;
        std::uint8_t first = 0;
        std::uint32_t last = 0;
        ASSERT_TRUE(in >> first >> a >> b >> c >> d >> last);
        EXPECT_EQ(first, 3) << "a number, not a character";
        EXPECT_EQ(a, 1);
        EXPECT_EQ(b, -2);
        EXPECT_EQ(c, 3);
        EXPECT_EQ(d, 4);
        EXPECT_EQ(last, 4294967295U);
        EXPECT_FALSE(in >> a);
        EXPECT_EQ(a, 1) << "unchanged";
    });
}

TEST(Extracting, AllWidths) {
    extract("-128 127 255 -32768 65535 -9223372036854775808 18446744073709551615", [](auto &in) {
        signed char a{};
        signed char b{};
        unsigned char c{};
        short d{};
        unsigned short e{};
        long long f{};
        unsigned long long g{};
        ASSERT_TRUE(in >> a >> b >> c >> d >> e >> f >> g);
        EXPECT_EQ(a, -128);
        EXPECT_EQ(b, 127);
        EXPECT_EQ(c, 255);
        EXPECT_EQ(d, -32768);
        EXPECT_EQ(e, 65535);
        EXPECT_EQ(f, std::numeric_limits<long long>::min());
        EXPECT_EQ(g, std::numeric_limits<unsigned long long>::max());
    });
}

TEST(Extracting, Floats) {
    extract("1.5 -2 +.25 1e300 inf -nan 1. 3e-7", [](auto &in) {
        double x[8] = {};
        for (double &value : x) {
            ASSERT_TRUE(in >> value);
        }
        EXPECT_EQ(x[0], 1.5);
        EXPECT_EQ(x[1], -2);
        EXPECT_EQ(x[2], 0.25);
        EXPECT_EQ(x[3], 1e300);
        EXPECT_TRUE(std::isinf(x[4]));
        EXPECT_TRUE(std::isnan(x[5]));
        EXPECT_EQ(x[6], 1);
        EXPECT_EQ(x[7], 3e-7);
        float f = 0;
        EXPECT_FALSE(in >> f);
    });
}

TEST(Extracting, FloatsThatNoFloatCanHold) {
    const double inf = std::numeric_limits<double>::infinity();
    const std::string zeros(400, '0');
    const std::pair<std::string, double> cases[] = {
        {"1e999", inf},
        {"-1e999", -inf},
        {"+2E+999", inf},
        {"1e-999", 0.0},
        {"-1e-999", -0.0},
        {"1" + zeros, inf},
        {"0." + zeros + "1", 0.0},
        {"." + zeros + "1", 0.0},
        {"0." + zeros + "1e999", inf},
        {"1" + zeros + ".5e-999", 0.0},
        {"1e99999999999999999999", inf},
        {"-1e-99999999999999999999", -0.0},
    };
    for (const auto &[text, expected] : cases) {
        extract(text, [text = text, expected = expected](auto &in) {
            double value = 5;
            if (std::isinf(expected)) {
                EXPECT_THROW(in >> value, std::out_of_range) << text;
                EXPECT_EQ(value, 5) << text;
                return;
            }
            ASSERT_TRUE(in >> value) << text;
            EXPECT_EQ(value, expected) << text;
            EXPECT_EQ(std::signbit(value), std::signbit(expected)) << text;
        });
    }
}

TEST(Extracting, WordsAndCharacters) {
    extract("  key = value\n", [](auto &in) {
        std::string key;
        std::string value = "?";
        char equals = 0;
        ASSERT_TRUE(in >> key >> equals >> value);
        EXPECT_EQ(key, "key");
        EXPECT_EQ(equals, '=');
        EXPECT_EQ(value, "value");
        EXPECT_FALSE(in >> value);
        EXPECT_FALSE(in >> equals);
        EXPECT_EQ(value, "value");
    });
}

TEST(Extracting, WhatIsNoNumberIsAnError) {
    for (const char *text : {"x", "1x", "-", "+", "+-1", "--1", "1.0", "0x10", "99999999999999999999x", "nan"}) {
        extract(std::string(text) + " 7", [&](auto &in) {
            int value = 5;
            EXPECT_THROW(in >> value, std::invalid_argument) << text;
            EXPECT_EQ(value, 5);
            EXPECT_TRUE(in >> value) << "what follows can be read";
            EXPECT_EQ(value, 7);
        });
    }
    extract("-0 nan(1)", [](auto &in) {
        unsigned value = 5;
        EXPECT_THROW(in >> value, std::invalid_argument) << "no sign for what has none";
        double real = 5;
        EXPECT_THROW(in >> real, std::invalid_argument);
    });
}

TEST(Extracting, WhatDoesNotFitIsAnError) {
    extract("256 -129 2147483648 8", [](auto &in) {
        std::uint8_t byte = 5;
        signed char small = 5;
        int number = 5;
        EXPECT_THROW(in >> byte, std::out_of_range);
        EXPECT_THROW(in >> small, std::out_of_range);
        EXPECT_THROW(in >> number, std::out_of_range);
        EXPECT_EQ(number, 5);
        EXPECT_TRUE(in >> byte);
        EXPECT_EQ(byte, 8);
    });
}

TEST(Extracting, AnErrorSaysWhatWasFound) {
    extract("a\"\x01\xff" + std::string(100, 'z'), [](auto &in) {
        int value;
        try {
            in >> value;
            FAIL();
        } catch (const std::invalid_argument &error) {
            EXPECT_EQ(std::string(error.what()),
                      "millstream: not a number: \"a\\x22\\x01\\xff" + std::string(60, 'z') + "\"...");
        }
    });
}

TEST(Extracting, AWordThatAnExceptionCutIsCompleted) {
    const std::string text = "  123456 rest";
    std::size_t given = 0;
    int calls = 0;
    SyncIOReadBuffer<std::uint32_t> buffer(2);
    ms::Extractor in(buffer, [&](char *to, std::uint32_t len) {
        if (++calls % 2 == 0) {
            throw std::runtime_error("every other time");
        }
        const std::size_t count = text.copy(to, len, given);
        given += count;
        return count;
    });
    int value = 0;
    int thrown = 0;
    while (value == 0) {
        try {
            in >> value;
        } catch (const std::runtime_error &) {
            ++thrown;
        }
    }
    EXPECT_EQ(value, 123456);
    EXPECT_GT(thrown, 2);
}

TEST(Extracting, TheEndIsAskedForOnce) {
    int calls = 0;
    SyncIOReadBuffer<std::uint32_t> buffer(8);
    ms::Extractor in(buffer, [&](char *to, std::uint32_t) {
        *to = '1';
        return ++calls == 1 ? 1 : 0;
    });
    int value = 0;
    EXPECT_TRUE(in >> value);
    EXPECT_FALSE(in >> value);
    EXPECT_FALSE(in >> value);
    EXPECT_EQ(calls, 2) << "a terminal would want another Ctrl-D";
}

TEST(Inserting, NumbersAndText) {
    std::string text;
    {
        SyncIOLazyWriteBuffer<std::uint32_t> out(5,
                                                 [&](const char *from, std::uint32_t len) { text.append(from, len); });
        const std::string string = "string";
        out << "Hello, " << 42 << '\t' << string << ' ' << std::string_view("view") << -1L << ' ' << true << false
            << '\n';
        const std::uint8_t byte = 65;
        const signed char small = -65;
        out << byte << small << std::numeric_limits<std::uint64_t>::max();
    }
    EXPECT_EQ(text, "Hello, 42\tstring view-1 truefalse\n65-6518446744073709551615");
}

TEST(Inserting, Floats) {
    EXPECT_EQ(text_of(0.0), "0.0");
    EXPECT_EQ(text_of(-0.0), "-0.0");
    EXPECT_EQ(text_of(1.0), "1.0");
    EXPECT_EQ(text_of(-1.5), "-1.5");
    EXPECT_EQ(text_of(0.1), "0.1");
    EXPECT_EQ(text_of(0.1F), "0.1");
    EXPECT_EQ(text_of(100.0), "100.0");
    EXPECT_EQ(text_of(123456.75), "123456.75");
    EXPECT_EQ(text_of(0.00001), "0.00001");
    EXPECT_EQ(text_of(0.0000123), "0.0000123");
    EXPECT_EQ(text_of(0.00000999), "9.99e-6");
    EXPECT_EQ(text_of(1e-7), "1e-7");
    EXPECT_EQ(text_of(1.5e-7), "1.5e-7");
    EXPECT_EQ(text_of(1e15), "1000000000000000.0");
    EXPECT_EQ(text_of(9007199254740993.0), "9007199254740992.0");
    EXPECT_EQ(text_of(1e16), "1e16");
    EXPECT_EQ(text_of(1.25e16), "1.25e16");
    EXPECT_EQ(text_of(std::numeric_limits<double>::max()), "1.7976931348623157e308");
    EXPECT_EQ(text_of(std::numeric_limits<double>::denorm_min()), "5e-324");
    EXPECT_EQ(text_of(std::numeric_limits<float>::max()), "3.4028235e38");
    EXPECT_EQ(text_of(std::numeric_limits<double>::infinity()), "inf");
    EXPECT_EQ(text_of(-std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(text_of(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Inserting, WhatGoesOutComesIn) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t bits = random() >> (i % 64);
        const auto integer = static_cast<std::int64_t>(bits);
        double real;
        std::memcpy(&real, &bits, sizeof real);
        const std::string text = text_of(integer) + " " + text_of(real) + "\n";
        SyncIOReadBuffer<std::uint32_t> buffer(64);
        std::size_t given = 0;
        ms::Extractor in(buffer, [&](char *to, std::uint32_t len) {
            const std::size_t count = text.copy(to, len, given);
            given += count;
            return count;
        });
        std::int64_t integer_again = 0;
        double real_again = 0;
        ASSERT_TRUE(in >> integer_again >> real_again) << text;
        ASSERT_EQ(integer_again, integer);
        ASSERT_TRUE(real_again == real || (std::isnan(real_again) && std::isnan(real))) << text;
    }
}

/// The vectors that all languages share, one line at a time: name, kind, value, expected.
std::vector<std::vector<std::string>> vectors(const std::string &file) {
    std::ifstream lines(MILLSTREAM_VECTORS "/" + file);
    std::vector<std::vector<std::string>> all;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty() && line[0] != '#') {
            std::istringstream columns(line);
            all.emplace_back(4);
            for (std::string &column : all.back()) {
                std::getline(columns, column, '\t');
            }
        }
    }
    EXPECT_GT(all.size(), 50U) << file;
    return all;
}

std::string from_hex(const std::string &hex) {
    std::string bytes;
    for (std::size_t at = 0; at < hex.size(); at += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    }
    return bytes;
}

/// Calls `use` with a zero of the type with this name in the vectors, if `<<` and `>>` support it.
template <class Use>
void with_type(const std::string &type, Use use) {
    const auto one = [&](const char *name, auto zero) {
        if (type == name) {
            use(zero);
        }
    };
    one("u8", std::uint8_t{});
    one("u16", std::uint16_t{});
    one("u32", std::uint32_t{});
    one("u64", std::uint64_t{});
    one("i8", std::int8_t{});
    one("i16", std::int16_t{});
    one("i32", std::int32_t{});
    one("i64", std::int64_t{});
    one("f32", float{});
    one("f64", double{});
}

/// Parses a value in the form of the vectors: decimal, or the bits of a float.
template <class T>
T put_value(const std::string &column) {
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
        const std::uint64_t bits = std::stoull(column, nullptr, 16);
        const auto half = static_cast<std::uint32_t>(bits);
        std::memcpy(&value, sizeof value == sizeof half ? static_cast<const void *>(&half) : &bits, sizeof value);
    } else {
        std::from_chars(column.data(), column.data() + column.size(), value);
    }
    return value;
}

TEST(Vectors, Put) {
    int run = 0;
    for (const auto &columns : vectors("put.tsv")) {
        with_type(columns[1], [&](auto zero) {
            EXPECT_EQ(text_of(put_value<decltype(zero)>(columns[2])), from_hex(columns[3])) << columns[0];
            ++run;
        });
    }
    EXPECT_GT(run, 100);
}

TEST(Vectors, Scan) {
    int run = 0;
    for (const auto &columns : vectors("scan.tsv")) {
        with_type(columns[1], [&](auto value) {
            using Value = decltype(value);
            const auto add = [](std::string &all, const std::string &word) { all += (all.empty() ? "" : " ") + word; };
            std::string expected;
            std::istringstream words(columns[3]);
            for (std::string word; words >> word;) {
                // The vectors contain several forms of floats, so values are compared.
                const bool real = std::is_floating_point_v<Value> && word.find('_') == word.npos;
                add(expected, real ? text_of(std::is_same_v<Value, float>
                                                 ? static_cast<Value>(std::strtof(word.c_str(), nullptr))
                                                 : static_cast<Value>(std::strtod(word.c_str(), nullptr)))
                                   : word);
            }
            extract(from_hex(columns[2]), [&](auto &in) {
                std::string found;
                try {
                    while (in >> value) {
                        add(found, text_of(value));
                    }
                } catch (const std::invalid_argument &) {
                    add(found, "number_invalid");
                } catch (const std::out_of_range &) {
                    add(found, "number_overflow");
                }
                EXPECT_EQ(found, expected) << columns[0];
            });
            ++run;
        });
    }
    EXPECT_GT(run, 100);
}

} // namespace
