// Tests of SyncIOLazyWriteBuffer: behaviour that programs for the original rely on, and new behaviour.

#include "millstream/smart_buffer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ms = millstream;

namespace {

using namespace std::chrono_literals;

/// The arguments of every call of an io.
using Calls = std::vector<std::string>;

auto io_into(Calls &calls) {
    return [&calls](const char *from, std::uint32_t len) {
        calls.emplace_back(from, len);
        return len;
    };
}

TEST(Writing, FillsTheBufferToItsLastByteAndWritesWhenMoreHasToGoIn) {
    Calls calls;
    SyncIOLazyWriteBuffer<std::uint32_t> buffer(12, io_into(calls));
    EXPECT_EQ(buffer.write("Hello!", 6), 6U);
    EXPECT_EQ(buffer.write("Hello!", 6), 6U);
    EXPECT_TRUE(buffer.full());
    EXPECT_EQ(calls, Calls{});
    EXPECT_EQ(buffer.write("World!", 6), 6U);
    EXPECT_EQ(calls, Calls{"Hello!Hello!"});
    EXPECT_EQ(buffer.flush(), 6U);
    EXPECT_EQ(calls, (Calls{"Hello!Hello!", "World!"}));
    EXPECT_EQ(buffer.flush(), 0U);
    EXPECT_EQ(calls.size(), 2U) << "nothing is not written";
}

TEST(Writing, KeepsTheLastBufferfulOfALongWrite) {
    Calls calls;
    SyncIOLazyWriteBuffer<std::uint32_t> one(1, io_into(calls));
    EXPECT_EQ(one.write("Hello", 5), 5U);
    EXPECT_EQ(calls, (Calls{"H", "e", "l", "l"}));
    EXPECT_EQ(one.flush(), 1U);

    calls.clear();
    SyncIOLazyWriteBuffer<std::uint32_t> ten(10, io_into(calls));
    EXPECT_EQ(ten.write("Hello, World!", 13), 13U);
    EXPECT_EQ(calls, Calls{"Hello, Wor"});
    EXPECT_EQ(ten.size(), 3U);
    EXPECT_EQ(ten.vacancy(), 7U);
    EXPECT_EQ(ten.capacity(), 10U);
    EXPECT_EQ(ten.accepted(), 13U);
    EXPECT_EQ(ten.written(), 10U);
}

TEST(Writing, TheDestructorFlushes) {
    Calls calls;
    { SyncIOLazyWriteBuffer<std::uint32_t>(10, io_into(calls)).write("bye", 3); }
    EXPECT_EQ(calls, Calls{"bye"});
}

TEST(Writing, TheDestructorDoesNotThrow) {
    SyncIOLazyWriteBuffer<std::uint32_t>(10, [](char *, std::uint32_t) {
        throw std::runtime_error("no");
    }).write("lost", 4);
}

TEST(Writing, AnyCallableIsAnIo) {
    std::string output;
    {
        // A callback that takes `char *` and returns nothing accepts all bytes.
        SyncIOLazyWriteBuffer<std::size_t> buffer(4, [&](char *from, std::size_t len) { output.append(from, len); });
        EXPECT_EQ(buffer.write("abcdef", 6), 6U);
        EXPECT_EQ(buffer.flush(), 2U);
    }
    const std::function<std::uint32_t(char *, const std::uint32_t &)> function = [&](char *from,
                                                                                     const std::uint32_t &len) {
        output.append(from, len);
        return len;
    };
    SyncIOLazyWriteBuffer<std::uint32_t>(4, function).write("gh", 2);
    const SyncIOLazyWriteBuffer<std::uint32_t>::DataWriter writer = function;
    SyncIOLazyWriteBuffer<std::uint32_t>(4, writer).write("ij", 2);
    // An io with another size type and its own state, which returns a signed number as write(2) does.
    SyncIOLazyWriteBuffer<std::size_t>(4, [&output, count = 0](const char *from, unsigned) mutable {
        output += *from;
        return ++count == 0 ? 0 : 1;
    }).write("kl", 2);
    EXPECT_EQ(output, "abcdefghijkl");
}

TEST(Writing, ABufferOfNothingIsRefused) {
    Calls calls;
    EXPECT_THROW(SyncIOLazyWriteBuffer<std::uint32_t>(0, io_into(calls)), std::invalid_argument);
    EXPECT_THROW(SyncIOLazyWriteBuffer<int>(-1, [](char *, int) {}), std::invalid_argument);
}

TEST(Writing, AnIoThatTakesLittleIsCalledAgain) {
    Calls calls;
    SyncIOLazyWriteBuffer<std::uint32_t> buffer(8, [&](const char *from, std::uint32_t len) {
        calls.emplace_back(from, std::min(len, 3U));
        return std::min(len, 3U);
    });
    EXPECT_EQ(buffer.write("12345678", 8), 8U);
    EXPECT_EQ(buffer.flush(), 8U);
    EXPECT_EQ(calls, (Calls{"123", "456", "78"}));
}

TEST(Writing, AnIoThatTakesNoMoreLeavesTheRest) {
    std::string output;
    std::size_t willing = 10;
    const auto io = [&](const char *from, std::uint32_t len) {
        const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(len, willing));
        output.append(from, count);
        willing -= count;
        return count;
    };
    SyncIOLazyWriteBuffer<std::uint32_t> buffer(8, io);
    EXPECT_EQ(buffer.write("abcdefghijklmnopqrstuvwxyz", 26), 18U) << "the bytes that io took and those that fit";
    EXPECT_EQ(output, "abcdefghij");
    EXPECT_TRUE(buffer.full());
    EXPECT_EQ(buffer.flush(), 0U);
    EXPECT_EQ(buffer.write("z", 1), 0U);
    EXPECT_THROW(buffer.close(), ms::BufferError);
    EXPECT_THROW(buffer << 'z', ms::BufferError);
    willing = 3;
    EXPECT_EQ(buffer.flush(), 3U);
    EXPECT_EQ(buffer.write("stuvwxyz", 8), 3U);
    willing = 100;
    EXPECT_EQ(buffer.write("vwxyz", 5), 5U);
    buffer.close();
    EXPECT_EQ(output, "abcdefghijklmnopqrstuvwxyz");
    EXPECT_THROW(buffer.write("!", 1), std::logic_error);
}

TEST(Writing, AnIoThatClaimsTooMuchIsAnError) {
    SyncIOLazyWriteBuffer<std::uint32_t> more(4, [](char *, std::uint32_t len) { return len + 1; });
    more.write("abc", 3);
    EXPECT_THROW(more.flush(), ms::BufferError);
    EXPECT_EQ(more.size(), 3U);
    SyncIOLazyWriteBuffer<std::uint32_t> failed(4, [](char *, std::uint32_t) { return -1; });
    failed.write("abc", 3);
    EXPECT_THROW(failed.close(), ms::BufferError);
}

TEST(Writing, NothingIsLostOrRepeatedWhenIoThrows) {
    std::string output;
    int calls = 0;
    SyncIOLazyWriteBuffer<std::uint32_t> buffer(4, [&](const char *from, std::uint32_t len) {
        if (++calls == 2) {
            throw std::runtime_error("for now");
        }
        output.append(from, std::min(len, 3U));
        return std::min(len, 3U);
    });
    const std::string text = "abcdefghij";
    EXPECT_THROW(buffer.write(text.data(), 10), std::runtime_error);
    EXPECT_EQ(output, "abc");
    const auto accepted = static_cast<std::size_t>(buffer.accepted());
    EXPECT_EQ(accepted, 4U);
    EXPECT_EQ(buffer.write(text.data() + accepted, 6), 6U);
    buffer.close();
    EXPECT_EQ(output, text);
}

TEST(Writing, ASmallSizeDoesNotOverflow) {
    std::string output;
    const auto io = [&](const char *from, std::uint8_t len) {
        output.append(from, len);
        return len;
    };
    SyncIOLazyWriteBuffer<std::uint8_t> buffer(255, io);
    const std::string text(255, 'x');
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(buffer.write(text.data(), 250), 250);
    }
    buffer << text << text; // more than an 8-bit size can represent
    buffer.close();
    EXPECT_EQ(output, std::string(3010, 'x'));
}

TEST(Writing, AFlushIntervalWritesWhatIsOld) {
    Calls calls;
    SyncIOLazyWriteBuffer<std::uint32_t> buffer(100, io_into(calls));
    EXPECT_EQ(buffer.due(), std::nullopt);
    buffer.flushEvery(1h);
    EXPECT_EQ(buffer.due(), std::nullopt) << "there is nothing to write";
    buffer.write("a", 1);
    const auto due = buffer.due();
    ASSERT_TRUE(due);
    buffer.write("b", 1);
    EXPECT_EQ(buffer.due(), due) << "the oldest byte counts";
    EXPECT_EQ(calls, Calls{});

    buffer.flushEvery(1ms);
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(calls, Calls{}) << "no call";
    buffer.write("c", 1);
    EXPECT_EQ(calls, Calls{"abc"});
    EXPECT_EQ(buffer.due(), std::nullopt);

    buffer.flushEvery(0ms);
    buffer.write("d", 1);
    std::this_thread::sleep_for(2ms);
    buffer.write("e", 1);
    EXPECT_EQ(calls.size(), 1U);
    buffer.flushEvery(std::chrono::steady_clock::duration::max());
    EXPECT_TRUE(buffer.due());
}

/// Any sequence of calls writes the accepted bytes in order, as late as possible.
TEST(Writing, IsLikeAString) {
    for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
        const bool shy = below(2) == 0; // accepts some bytes or none, or throws
        std::string output;
        const auto io = [&](char *from, const std::uint16_t &len) -> std::uint16_t {
            if (shy && below(8) == 0) {
                throw 1;
            }
            const std::size_t count = shy ? below(len + 1U) : len;
            output.append(from, count);
            std::fill_n(from, count, '#'); // its memory is the buffer's, not the caller's
            return static_cast<std::uint16_t>(count);
        };
        const std::size_t capacity = 1 + below(64);
        std::string accepted;
        {
            SyncIOLazyWriteBuffer<std::uint16_t> buffer(static_cast<std::uint16_t>(capacity), io);
            for (int i = 0; i < 50; ++i) {
                std::string data(below(200), static_cast<char>('a' + below(26)));
                const std::size_t before = accepted.size();
                try {
                    accepted += data.substr(0, buffer.write(data.data(), static_cast<std::uint16_t>(data.size())));
                    if (below(10) == 0) {
                        buffer.flush();
                    }
                } catch (int) {
                    if (accepted.size() == before) {
                        accepted += data.substr(0, static_cast<std::size_t>(buffer.accepted()) - before);
                    }
                }
                ASSERT_EQ(buffer.accepted(), accepted.size());
                ASSERT_EQ(buffer.written(), output.size());
                ASSERT_EQ(accepted.substr(0, output.size()), output);
                ASSERT_LE(buffer.size(), capacity);
                if (!shy) {
                    ASSERT_EQ(accepted.size(), before + data.size());
                }
            }
            while (buffer.accepted() > buffer.written()) {
                try {
                    buffer.flush();
                } catch (int) {
                }
            }
            buffer.close();
        }
        EXPECT_EQ(output, accepted);
    }
}

} // namespace
