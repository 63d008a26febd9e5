// The overloads of the drop-in that take std::span (C++20): they end where their memory ends.

#include "millstream/smart_buffer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace {

TEST(Spans, AReadEndsWhereItsMemoryEnds) {
    std::string rest = "short\na line that is longer than ten\nend";
    const auto io = [&](char *to, std::uint8_t len) {
        const std::size_t count = rest.copy(to, len);
        rest.erase(0, count);
        return static_cast<std::uint8_t>(count);
    };
    SyncIOReadBuffer<std::uint8_t> buffer(16);
    std::array<char, 10> out{};
    std::vector<std::string> pieces;
    while (const std::size_t got = buffer.readUntil(std::span(out), io, '\n')) {
        pieces.emplace_back(out.data(), got);
    }
    EXPECT_EQ(pieces, (std::vector<std::string>{"short\n", "a line tha", "t is longe", "r than ten", "\n", "end"}));

    rest = "abcdef";
    std::vector<char> four(4);
    EXPECT_EQ(buffer.read(std::span(four), io), 4U);
    EXPECT_EQ(buffer.readUntil(std::span(four), io, [](const char &c) { return c == 'e'; }), 1U);
    EXPECT_EQ(buffer.read(four, io), 1U) << "a container does too";
    EXPECT_EQ(buffer.readUntil(std::span<char>(), io, '\n'), 0U);
}

TEST(Spans, AReadIsNotBoundByTheTypeOfSizes) {
    const auto io = [](char *to, std::uint8_t len) {
        std::fill_n(to, len, 'x');
        return len;
    };
    SyncIOReadBuffer<std::uint8_t> buffer(100);
    std::string out(1000, '?');
    EXPECT_EQ(buffer.read(std::span(out), io), 1000U);
    EXPECT_EQ(out, std::string(1000, 'x'));
}

TEST(Spans, NothingIsLostWhenIoThrows) {
    int calls = 0;
    const auto io = [&](char *to, std::uint8_t len) {
        if (++calls == 6) {
            throw std::runtime_error("for now");
        }
        std::fill_n(to, len, 'x');
        return len;
    };
    SyncIOReadBuffer<std::uint8_t> buffer(100);
    std::string out(1000, '?');
    EXPECT_THROW(buffer.read(std::span(out), io), std::runtime_error);
    EXPECT_EQ(buffer.buffer().size(), 500U);
    EXPECT_EQ(buffer.size(), 255) << "as far as it can be said";
    EXPECT_EQ(buffer.findLengthTill('?'), std::nullopt);
    buffer.consume(300);
    EXPECT_EQ(buffer.size(), 200);
    EXPECT_EQ(buffer.read(std::span(out), io), 1000U);
    EXPECT_EQ(out, std::string(1000, 'x'));
    EXPECT_EQ(calls, 14) << "200 bytes were there, 800 were read";
}

TEST(Spans, Writes) {
    std::string output;
    const std::string data(1000, 'x');
    {
        SyncIOLazyWriteBuffer<std::uint8_t> buffer(
            100, [&](const char *from, std::uint8_t len) { output.append(from, len); });
        EXPECT_EQ(buffer.write(std::span(data)), 1000U);
        EXPECT_EQ(buffer.size(), 100);
    }
    EXPECT_EQ(output, data);
}

TEST(Spans, TheAsynchronousPair) {
    std::string output;
    AsyncIOWriteBuffer<std::uint32_t> writer(3, [&](const char *from, const std::uint32_t &len, const auto &handler) {
        output.append(from, len);
        handler(len);
    });
    AsyncIOReadBuffer<std::uint32_t> reader(3);
    std::array<char, 7> out{};
    reader.read(
        std::span(out),
        [](char *to, const std::uint32_t &len, const auto &handler) {
            std::fill_n(to, len, 'x');
            handler(len);
        },
        [&](const std::uint32_t &len) {
            writer.write(std::span<const char>(out).first(len), [](const std::uint32_t &) {});
        });
    EXPECT_EQ(output, "xxxxxxx");
}

} // namespace
