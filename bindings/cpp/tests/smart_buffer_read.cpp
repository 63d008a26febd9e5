// Tests of SyncIOReadBuffer: behaviour that programs for the original rely on, and new behaviour.

#include "millstream/smart_buffer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace ms = millstream;

namespace {

/// An io for a string, which returns at most `most` bytes per call and stores its arguments.
struct Source {
    std::string rest;
    std::size_t most = SIZE_MAX;
    std::vector<std::size_t> asked{};

    template <class SizeType>
    SizeType give(char *to, SizeType len) {
        asked.push_back(len);
        const std::size_t count = std::min({static_cast<std::size_t>(len), most, rest.size()});
        rest.copy(to, count);
        rest.erase(0, count);
        return static_cast<SizeType>(count);
    }
};

/// The usual form of io.
auto io_of(Source &source) {
    return [&source](char *to, const std::uint32_t len) { return source.give(to, len); };
}

bool is_newline(const char &c) { return c == '\n'; }

TEST(Reading, UpToACharacterWithTheCharacter) {
    Source source{"Hello\nWorld!"};
    SyncIOReadBuffer<std::uint32_t> buffer(10);
    char out[20];
    ASSERT_EQ(buffer.readUntil(out, io_of(source), '\n'), 6U);
    EXPECT_EQ(std::string(out, 6), "Hello\n");
    ASSERT_EQ(buffer.readUntil(out, io_of(source), '\n'), 6U) << "what there is at the end";
    EXPECT_EQ(std::string(out, 6), "World!");
    EXPECT_EQ(buffer.readUntil(out, io_of(source), '\n'), 0U);
}

TEST(Reading, UpToWhatAPredicateSays) {
    Source source{"a1b22c"};
    SyncIOReadBuffer<std::uint32_t> buffer(4);
    char out[20];
    ASSERT_EQ(buffer.readUntil(out, io_of(source), [](char c) { return c == '1' || c == '2'; }), 2U);
    const std::function<bool(const char &)> is_letter = [](const char &c) { return c >= 'a'; };
    ASSERT_EQ(buffer.readUntil(out, io_of(source), is_letter), 1U);
    ASSERT_EQ(buffer.readUntil(out, io_of(source), is_newline), 3U);
    EXPECT_EQ(std::string(out, 3), "22c");
}

TEST(Reading, ALineLongerThanTheBuffer) {
    Source source{"Hello!World"};
    SyncIOReadBuffer<std::uint32_t> buffer(5);
    char out[6];
    ASSERT_EQ(buffer.readUntil(out, io_of(source), '!'), 6U);
    EXPECT_EQ(std::string(out, 6), "Hello!");
}

TEST(Reading, SoManyBytes) {
    Source source{"HelloWorld"};
    SyncIOReadBuffer<std::uint32_t> buffer(5);
    char out[20];
    ASSERT_EQ(buffer.read(out, 7, io_of(source)), 7U);
    EXPECT_EQ(std::string(out, 7), "HelloWo");
    EXPECT_EQ(buffer.read(out, 0, io_of(source)), 0U);
    ASSERT_EQ(buffer.read(out, 20, io_of(source)), 3U) << "fewer at the end, and none of them lost";
    EXPECT_EQ(std::string(out, 3), "rld");
    EXPECT_EQ(buffer.read(out, 1, io_of(source)), 0U);
}

TEST(Reading, AsksForTheVacancyAndNeverForMore) {
    Source source{"abcdefghijklmnopqrst"};
    SyncIOReadBuffer<std::uint32_t> buffer(5);
    char out[20];
    buffer.read(out, 3, io_of(source));
    buffer.read(out, 4, io_of(source)); // two are left, three are free
    EXPECT_EQ(source.asked, (std::vector<std::size_t>{5, 3}));
    EXPECT_EQ(buffer.size(), 1U);
    ASSERT_EQ(buffer.read(out, 12, io_of(source)), 12U);
    EXPECT_EQ(std::string(out, 12), "hijklmnopqrs");
    EXPECT_EQ(source.asked, (std::vector<std::size_t>{5, 3, 4, 5, 5})) << "one bufferful after the other";
}

TEST(Reading, TellsHowFullItIs) {
    Source source{"abcdefgh"};
    SyncIOReadBuffer<std::uint32_t> buffer(8);
    EXPECT_TRUE(buffer.empty());
    EXPECT_FALSE(buffer.full());
    EXPECT_EQ(buffer.capacity(), 8U);
    EXPECT_EQ(buffer.vacancy(), 8U);
    EXPECT_EQ(buffer.fill(io_of(source)), 8U);
    EXPECT_TRUE(buffer.full());
    EXPECT_EQ(buffer.fill(io_of(source)), 0U) << "no space";
    EXPECT_EQ(source.asked.size(), 1U);
    char out[8];
    buffer.read(out, 3, io_of(source));
    EXPECT_EQ(buffer.size(), 5U);
    EXPECT_EQ(buffer.vacancy(), 3U);
    EXPECT_EQ(buffer.buffer(), "defgh");
    buffer.consume(5);
    EXPECT_TRUE(buffer.empty());
    EXPECT_THROW(buffer.consume(1), std::invalid_argument);
}

TEST(Reading, FindsWithinTheBufferOnly) {
    Source source{"ab\ncd\n"};
    SyncIOReadBuffer<std::uint32_t> buffer(5);
    EXPECT_EQ(buffer.findLengthTill('\n'), std::nullopt);
    buffer.fill(io_of(source));
    const std::optional<std::uint32_t> length = buffer.findLengthTill('\n');
    EXPECT_EQ(length, 3U);
    EXPECT_EQ(buffer.findLengthTill(is_newline), 3U);
    buffer.consume(3);
    EXPECT_EQ(buffer.findLengthTill('\n'), std::nullopt) << "it is in the source, not in the buffer";
    EXPECT_EQ(buffer.findLengthTill([](const char &c) { return c == 'd'; }), 2U);
}

TEST(Reading, AnyCallableIsAnIo) {
    char out[4];
    SyncIOReadBuffer<std::size_t> sizes(4);
    const auto with_size = [](char *to, std::size_t len) {
        std::fill_n(to, len, 'x');
        return len;
    };
    EXPECT_EQ(sizes.read(out, 4, with_size), 4U);
    const SyncIOReadBuffer<std::size_t>::IOInterface function = with_size;
    EXPECT_EQ(sizes.read(out, 4, function), 4U);
    // An io with another size type and its own state, which returns a signed number as read(2) does.
    EXPECT_EQ(sizes.read(out, 4,
                         [left = 2](char *to, const std::uint32_t &) mutable {
                             *to = 'y';
                             return left-- > 0 ? 1 : 0;
                         }),
              2U);
}

TEST(Reading, ABufferOfNothingIsRefused) {
    EXPECT_THROW(SyncIOReadBuffer<std::uint32_t>(0), std::invalid_argument);
    EXPECT_THROW(SyncIOReadBuffer<int>(-1), std::invalid_argument);
    SyncIOReadBuffer<int> buffer(1);
    char out[1];
    EXPECT_THROW(buffer.read(out, -1, [](char *, int) { return 0; }), std::invalid_argument);
}

TEST(Reading, AnIoThatClaimsTooMuchIsAnError) {
    SyncIOReadBuffer<std::uint32_t> buffer(4);
    char out[4];
    EXPECT_THROW(buffer.read(out, 4, [](char *, std::uint32_t len) { return len + 1; }), ms::BufferError);
    EXPECT_THROW(buffer.read(out, 4, [](char *, std::uint32_t) { return -1; }), ms::BufferError);
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.read(out, 4,
                          [](char *to, std::uint32_t len) {
                              std::fill_n(to, len, 'x');
                              return len;
                          }),
              4U);
}

TEST(Reading, NothingIsLostWhenIoThrows) {
    // When io throws, more bytes than the capacity have been copied to the caller; the next read starts with them.
    for (const bool by_line : {false, true}) {
        Source source{"abcdefghijkl\nrest"};
        SyncIOReadBuffer<std::uint32_t> buffer(4);
        int calls = 0;
        const auto io = [&](char *to, std::uint32_t len) {
            if (++calls == 3) {
                throw std::runtime_error("for now");
            }
            return source.give(to, len);
        };
        char out[20];
        EXPECT_THROW(by_line ? buffer.readUntil(out, io, '\n') : buffer.read(out, 13, io), std::runtime_error);
        EXPECT_EQ(buffer.size(), 8U);
        EXPECT_TRUE(buffer.full());
        EXPECT_EQ(buffer.vacancy(), 0U);
        std::fill_n(out, 20, '?');
        ASSERT_EQ(by_line ? buffer.readUntil(out, io, '\n') : buffer.read(out, 13, io), 13U);
        EXPECT_EQ(std::string(out, 13), "abcdefghijkl\n");
        ASSERT_EQ(buffer.read(out, 20, io), 4U);
        EXPECT_EQ(std::string(out, 4), "rest");
    }
}

TEST(Reading, NothingIsLostWhenThePredicateThrows) {
    Source source{"abcdef"};
    SyncIOReadBuffer<std::uint32_t> buffer(2);
    char out[8];
    EXPECT_THROW(buffer.readUntil(out, io_of(source),
                                  [](const char &c) { return c == 'e' ? throw std::runtime_error("an e") : false; }),
                 std::runtime_error);
    ASSERT_EQ(buffer.readUntil(out, io_of(source), '\n'), 6U);
    EXPECT_EQ(std::string(out, 6), "abcdef");
}

TEST(Reading, WhatASmallSizeCannotCountComesInPieces) {
    Source source{std::string(300, 'x') + "\n"};
    const auto io = [&](char *to, std::uint8_t len) { return source.give(to, len); };
    SyncIOReadBuffer<std::uint8_t> buffer(255);
    char out[300];
    EXPECT_EQ(buffer.readUntil(out, io, '\n'), 255);
    EXPECT_EQ(buffer.readUntil(out, io, '\n'), 46);
    EXPECT_EQ(out[45], '\n');
    EXPECT_EQ(buffer.readUntil(out, io, '\n'), 0);
}

TEST(Reading, AReadOfManyBuffersTakesNoStack) {
    const std::size_t len = 4 << 20;
    Source source{std::string(1, 'x')};
    SyncIOReadBuffer<std::uint32_t> buffer(1);
    std::string out(len, '?');
    const auto io = [](char *to, std::uint32_t) {
        *to = 'x';
        return 1U;
    };
    ASSERT_EQ(buffer.read(out.data(), static_cast<std::uint32_t>(len), io), len);
    EXPECT_EQ(out, std::string(len, 'x'));
}

/// Any sequence of calls has the same results as the same calls on a string, for any behaviour of io.
TEST(Reading, IsLikeAString) {
    for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
        std::string input(below(2000), ' ');
        for (char &c : input) {
            c = "ab\n"[below(3)];
        }
        const std::size_t most = 1 + below(100);
        const bool throws = below(2) == 0;

        std::size_t delivered = 0;
        std::size_t expected = 0; // the position of the reads
        const auto io = [&](char *to, const std::uint16_t &len) -> std::uint16_t {
            if (throws && below(4) == 0) {
                throw 1;
            }
            const std::size_t count = std::min({1 + below(most), std::size_t{len}, input.size() - delivered});
            input.copy(to, count, delivered);
            delivered += count;
            return static_cast<std::uint16_t>(count);
        };
        SyncIOReadBuffer<std::uint16_t> buffer(static_cast<std::uint16_t>(1 + below(64)));

        while (expected < input.size()) {
            std::string out(2001, '?');
            const char ender = "abx"[below(3)];
            std::size_t len = below(200);
            std::size_t got = 0;
            try {
                switch (below(3)) {
                case 0:
                    got = buffer.read(out.data(), static_cast<std::uint16_t>(len), io);
                    len = std::min(len, input.size() - expected);
                    break;
                case 1:
                    got = buffer.readUntil(out.data(), io, ender);
                    len = std::min(input.find(ender, expected), input.size() - 1) + 1 - expected;
                    break;
                default:
                    got = buffer.readUntil(out.data(), io, [&](const char &c) { return c == ender; });
                    len = std::min(input.find(ender, expected), input.size() - 1) + 1 - expected;
                }
                ASSERT_EQ(got, len);
                ASSERT_EQ(out.substr(0, got), input.substr(expected, got));
                ASSERT_EQ(out[got], '?') << "nothing beyond";
                expected += got;
            } catch (int) { // the state is unchanged, except for the bytes that io delivered
            }
            ASSERT_EQ(buffer.size(), delivered - expected);
            ASSERT_EQ(buffer.buffer(), input.substr(expected, delivered - expected));
            const auto found = buffer.findLengthTill('a');
            ASSERT_EQ(found ? *found : 0, buffer.buffer().find('a') + 1);
        }
        EXPECT_EQ(delivered, input.size());
    }
}

} // namespace
