// The variants of the drop-in for several threads.

#include "millstream/smart_buffer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ms = millstream;

namespace {

using namespace std::chrono_literals;

constexpr int threads = 4;
constexpr int count = 2000;

template <class Function>
void in_threads(Function function) {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&function, i] { function(i); });
    }
    for (std::thread &thread : running) {
        thread.join();
    }
}

TEST(LockedWriting, EachWriteIsInOnePiece) {
    std::string output;
    {
        ms::LockedWriteBuffer<std::uint32_t> buffer(
            10, [&](const char *from, std::uint32_t len) { output.append(from, len); });
        in_threads([&](int thread) {
            const std::string line = std::string(25, static_cast<char>('a' + thread)) + "\n";
            for (int i = 0; i < count; ++i) {
                if (i % 2 == 0) {
                    buffer.write(line.data(), 26U);
                } else {
                    buffer.with([&](auto &locked) { locked << line.substr(0, 10) << line.substr(10); });
                }
            }
        });
        buffer.close();
    }
    ASSERT_EQ(output.size(), 26U * threads * count);
    for (std::size_t at = 0; at < output.size(); at += 26) {
        ASSERT_EQ(output.substr(at, 26), std::string(25, output[at]) + "\n");
    }
}

TEST(LockedReading, EachRecordComesToOneThread) {
    std::string input;
    for (int i = 0; i < threads * count; ++i) {
        input += std::to_string(i) + "\n";
    }
    std::size_t given = 0;
    const auto io = [&](char *to, std::uint32_t len) {
        const std::size_t got = input.copy(to, len, given);
        given += got;
        return static_cast<std::uint32_t>(got);
    };
    ms::LockedReadBuffer<std::uint32_t> buffer(16);
    std::vector<std::vector<std::string>> records(threads);
    in_threads([&](int thread) {
        char out[16];
        while (const std::uint32_t len = buffer.readUntil(static_cast<char *>(out), io, '\n')) {
            records[static_cast<std::size_t>(thread)].emplace_back(out, len);
        }
    });
    std::set<int> seen;
    for (const auto &of_thread : records) {
        for (const std::string &record : of_thread) {
            ASSERT_EQ(record.back(), '\n');
            EXPECT_TRUE(seen.insert(std::stoi(record)).second);
        }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(threads * count));
    EXPECT_TRUE(buffer.with([](auto &locked) { return locked.empty(); }));
    char none[1];
    EXPECT_EQ(buffer.read(static_cast<char *>(none), 1U, io), 0U);
}

/// Waits until `done`, for a minute at most.
template <class Done>
bool eventually(Done done) {
    for (int i = 0; i < 6000; ++i) {
        if (done()) {
            return true;
        }
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

TEST(LockedWriting, WhatIsDueIsWrittenThoughNobodyCalls) {
    std::mutex mutex;
    std::string output;
    ms::LockedWriteBuffer<std::uint32_t> buffer(
        100,
        [&](const char *from, std::uint32_t len) {
            const std::lock_guard lock(mutex);
            output.append(from, len);
        },
        2ms);
    for (const char *text : {"one", "onetwo"}) {
        buffer.write(text + output.size(), 3U);
        EXPECT_TRUE(eventually([&] {
            const std::lock_guard lock(mutex);
            return output == text;
        }));
    }
}

TEST(LockedWriting, AShorterIntervalCountsForWhatIsBufferedAlready) {
    std::atomic<std::size_t> written{0};
    const auto io = [&](const char *, std::size_t len) { written += len; };
    ms::LockedWriteBuffer<std::size_t> buffer(100, io, 1h);
    std::this_thread::sleep_for(20ms); // the thread sleeps, and again with the hour before it
    buffer.write("hello", std::size_t{5});
    std::this_thread::sleep_for(20ms);
    buffer.with([](auto &locked) { locked.flushEvery(1ms); });
    for (int i = 0; i < 10000 && written == 0; ++i) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(written, 5U);
}

TEST(LockedWriting, WhatGoesWrongInTheThreadIsToldOnce) {
    std::atomic<int> calls{0};
    std::atomic<bool> broken{true};
    std::string output;
    {
        ms::LockedWriteBuffer<std::uint32_t> buffer(
            100,
            [&](const char *from, std::uint32_t len) {
                ++calls;
                if (broken) {
                    throw std::runtime_error("no");
                }
                output.append(from, len);
            },
            1ms);
        buffer.write("abc", 3U);
        EXPECT_TRUE(eventually([&] { return calls > 0; }));
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(calls, 1) << "no call until a reader or writer is woken";
        broken = false;
        EXPECT_THROW(buffer.write("def", 3U), std::runtime_error);
        EXPECT_TRUE(eventually([&] { return calls > 1; })) << "and then it tries again";
        buffer.write("ghi", 3U);
        buffer.close();
    }
    EXPECT_EQ(output, "abcghi");
}

TEST(LockedWriting, AThreadWhoseIoTakesNoMoreSaysSo) {
    ms::LockedWriteBuffer<std::uint32_t> buffer(
        100, [](const char *, std::uint32_t) { return 0; }, 1ms);
    buffer.write("abc", 3U);
    EXPECT_TRUE(eventually([&] {
        try {
            buffer.with([](auto &) {});
            return false;
        } catch (const ms::BufferError &) {
            return true;
        }
    }));
}

TEST(LockedWriting, AnEndBeforeAnythingIsDueWritesEverything) {
    std::string output;
    {
        ms::LockedWriteBuffer<std::uint32_t> buffer(
            100, [&](const char *from, std::uint32_t len) { output.append(from, len); }, 1h);
        buffer.write("abc", 3U);
        EXPECT_EQ(output, "");
    }
    EXPECT_EQ(output, "abc");
}

} // namespace
