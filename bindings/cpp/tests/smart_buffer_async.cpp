// Tests of AsyncIOReadBuffer and AsyncIOWriteBuffer: requests in order, an io that answers at any time, and a flat
// stack.

#include "millstream/smart_buffer.hpp"

#if defined(__has_feature) // of clang++, which defines no macros for its sanitizers
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MILLSTREAM_SANITIZED
#endif
#endif

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ms = millstream;

namespace {

using Reader = AsyncIOReadBuffer<std::uint32_t>;
using Writer = AsyncIOWriteBuffer<std::uint32_t>;
using ReadHandler = Reader::ReadResultHandler;
using WriteHandler = Writer::WriteResultHandler;

/// Runs tasks one after another on its own thread, until it is destroyed.
class Worker {
  public:
    ~Worker() {
        post([this] { stopped_ = true; });
        thread_.join();
    }
    void post(std::function<void()> task) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

  private:
    void run() {
        while (!stopped_) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !tasks_.empty(); });
            const auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool stopped_ = false; // used only by the thread
    std::thread thread_{[this] { run(); }};
};

/// Lets the test's thread wait for another one.
class Signal {
  public:
    void set() {
        const std::lock_guard lock(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    bool wait() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return set_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
};

/// An io for a string that keeps the request until the test requests an answer.
struct SlowSource {
    std::string rest;
    std::vector<std::uint32_t> asked{};
    char *to = nullptr;
    ReadHandler handler{};

    Reader::IOInterface io() {
        return [this](char *space, const std::uint32_t &len, const ReadHandler &answer) {
            asked.push_back(len);
            to = space;
            handler = answer;
        };
    }
    void answer(std::size_t most = SIZE_MAX) {
        const std::size_t count = std::min({most, rest.size(), std::size_t{asked.back()}});
        rest.copy(to, count);
        rest.erase(0, count);
        const ReadHandler last = handler;
        last(static_cast<std::uint32_t>(count));
    }
};

/// A sink that keeps the request until the test requests an answer.
struct SlowSink {
    std::string output{};
    std::vector<std::string> calls{};
    WriteHandler handler{};

    Writer::IOInterface io() {
        return [this](const char *from, const std::uint32_t &len, const WriteHandler &answer) {
            calls.emplace_back(from, len);
            handler = answer;
        };
    }
    void answer(std::size_t most = SIZE_MAX) {
        const std::size_t count = std::min(most, calls.back().size());
        output.append(calls.back(), 0, count);
        const WriteHandler last = handler;
        last(static_cast<std::uint32_t>(count));
    }
};

/// A handler that stores its arguments.
auto note(std::vector<std::uint32_t> &results) {
    return [&results](const std::uint32_t &len) { results.push_back(len); };
}

TEST(AsyncReading, AnIoThatAnswersAtOnce) {
    std::string rest = "HelloWorld";
    int calls = 0;
    const auto io = [&](char *to, const std::uint32_t &len, const ReadHandler &handler) {
        ++calls;
        const std::size_t count = rest.copy(to, len);
        rest.erase(0, count);
        handler(static_cast<std::uint32_t>(count));
    };
    Reader buffer(2);
    char out[10];
    std::vector<std::uint32_t> results;
    buffer.read(out, 10, io, note(results));
    EXPECT_EQ(results, std::vector<std::uint32_t>{10});
    EXPECT_EQ(std::string(out, 10), "HelloWorld");
    EXPECT_EQ(calls, 5);
    buffer.read(out, 1, io, note(results));
    EXPECT_EQ(results.back(), 0U) << "io gives no more";
}

TEST(AsyncReading, ReadsAreQueuedAndAnsweredInOrder) {
    SlowSource source{"abcdefghij"};
    Reader buffer(4);
    char out[12];
    std::vector<std::uint32_t> results;
    buffer.read(out, 3, source.io(), note(results));
    buffer.read(out + 3, 3, source.io(), note(results));
    buffer.read(out + 6, 0, source.io(), note(results));
    buffer.read(out + 6, 6, source.io(), note(results));
    EXPECT_EQ(source.asked.size(), 1U) << "one question at a time";
    EXPECT_EQ(results.size(), 0U);
    source.answer();
    EXPECT_EQ(results, std::vector<std::uint32_t>{3});
    source.answer(1);
    EXPECT_EQ(results.size(), 1U) << "5 of 6 bytes";
    source.answer();
    EXPECT_EQ(results, (std::vector<std::uint32_t>{3, 3, 0}));
    source.answer();
    EXPECT_EQ(results.size(), 3U);
    source.answer(0);
    EXPECT_EQ(results, (std::vector<std::uint32_t>{3, 3, 0, 4}));
    EXPECT_EQ(std::string(out, 10), "abcdefghij");
    EXPECT_EQ(source.asked, (std::vector<std::uint32_t>{4, 4, 4, 4, 4}));
}

TEST(AsyncReading, TellsHowFullItIs) {
    SlowSource source{"abcdef"};
    Reader buffer(4);
    char out[1];
    std::vector<std::uint32_t> results;
    buffer.read(out, 1, source.io(), note(results));
    EXPECT_TRUE(buffer.empty());
    source.answer();
    EXPECT_EQ(buffer.size(), 3U);
    EXPECT_EQ(buffer.vacancy(), 1U);
    EXPECT_EQ(buffer.capacity(), 4U);
    EXPECT_FALSE(buffer.full());
    EXPECT_EQ(Reader(0).capacity(), 1U) << "0 counts as 1";
    EXPECT_EQ(Writer(0, SlowSink{}.io()).capacity(), 1U);
}

TEST(AsyncReading, HeadersAndMessagesFromHandlers) {
    // The header of a message contains its length, and each handler continues reading; io answers on another thread.
    std::string rest = "10HelloWorld08ByeWorld09HaleLujah";
    std::atomic<int> calls{0};
    Signal done;
    std::vector<std::string> messages;
    char text[16] = {};
    std::function<void()> read_header;
    auto buffer = std::make_unique<Reader>(200);
    Worker worker;
    const auto io = [&](char *to, const std::uint32_t &len, const ReadHandler &handler) {
        ++calls;
        worker.post([&rest, to, len, handler] {
            const std::size_t count = rest.copy(to, len);
            rest.erase(0, count);
            handler(static_cast<std::uint32_t>(count));
        });
    };
    read_header = [&] {
        buffer->read(text, 2, io, [&](const std::uint32_t &len) {
            if (len == 0) {
                done.set();
                return;
            }
            const auto length = static_cast<std::uint32_t>(std::stoul(std::string(text, 2)));
            buffer->read(text, length, io, [&](const std::uint32_t &got) {
                messages.emplace_back(text, got);
                read_header();
            });
        });
    };
    read_header();
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(messages, (std::vector<std::string>{"HelloWorld", "ByeWorld", "HaleLujah"}));
    EXPECT_EQ(calls, 2) << "all of it, and the end";
}

TEST(AsyncReading, AnswersThatDoNotCount) {
    SlowSource source{"abcdef"};
    char out[8] = {};
    std::vector<std::uint32_t> results;
    auto buffer = std::make_unique<Reader>(4);
    buffer->read(out, 2, source.io(), note(results));
    EXPECT_THROW(source.handler(5), ms::BufferError) << "more than was asked for";
    EXPECT_EQ(results.size(), 0U);
    const ReadHandler first = source.handler;
    source.answer();
    EXPECT_EQ(results, std::vector<std::uint32_t>{2});
    first(4); // a second time
    EXPECT_EQ(buffer->size(), 2U);
    buffer->read(out, 5, source.io(), note(results));
    first(4); // while another request is open
    EXPECT_EQ(results.size(), 1U);

    buffer.reset();
    source.answer(); // the buffer is destroyed, but its memory still exists
    EXPECT_EQ(results.size(), 1U);
}

TEST(AsyncReading, AHandlerMayDestroyTheBuffer) {
    auto buffer = std::make_unique<Reader>(4);
    const auto io = [](char *to, const std::uint32_t &len, const ReadHandler &handler) {
        std::fill_n(to, len, 'x');
        handler(len);
    };
    char out[8];
    std::vector<std::uint32_t> results;
    buffer->read(out, 3, io, [&](const std::uint32_t &) {
        buffer->read(out, 3, io, note(results));
        buffer.reset();
    });
    EXPECT_EQ(results.size(), 0U) << "forgotten";

    // This also applies if only a handler in the queue keeps the buffer alive, and if that handler throws.
    const auto shared = std::make_shared<std::shared_ptr<Reader>>(std::make_shared<Reader>(4));
    SlowSource source{"abcd"};
    (*shared)->read(out, 3, source.io(), [shared](const std::uint32_t &) {
        shared->reset();
        throw std::runtime_error("gone");
    });
    EXPECT_THROW(source.answer(), std::runtime_error);
    EXPECT_FALSE(*shared);
}

TEST(AsyncReading, ExceptionsPassThroughAndTheQueueGoesOn) {
    SlowSource source{"abcdef"};
    Reader buffer(4);
    char out[8];
    std::vector<std::uint32_t> results;
    const auto throws = [](const std::uint32_t &) { throw std::runtime_error("a handler"); };
    const auto no_io = [](char *, const std::uint32_t &, const ReadHandler &) { throw std::runtime_error("an io"); };
    buffer.read(out, 2, source.io(), throws);
    buffer.read(out, 2, source.io(), note(results));
    EXPECT_THROW(source.answer(), std::runtime_error);
    EXPECT_EQ(results.size(), 0U);
    buffer.read(out, 0, source.io(), note(results));
    EXPECT_EQ(results, (std::vector<std::uint32_t>{2, 0}));

    int calls = 0;
    const auto io = [&](char *to, const std::uint32_t &len, const ReadHandler &handler) {
        if (++calls == 1) {
            throw std::runtime_error("for now");
        }
        source.io()(to, len, handler);
    };
    EXPECT_THROW(buffer.read(out, 2, io, note(results)), std::runtime_error);
    buffer.read(out, 0, no_io, note(results)); // repeats the first request
    source.answer();
    EXPECT_EQ(results, (std::vector<std::uint32_t>{2, 0, 2, 0}));
}

TEST(AsyncReading, WhatIsForgottenIsDestroyed) {
    // An io that stores its handler, and thereby the state that owns the io. After that, a handler that throws.
    const auto token = std::make_shared<int>();
    for (const bool throws : {false, true}) {
        auto buffer = std::make_unique<Reader>(4);
        ReadHandler answer;
        char out[8];
        buffer->read(
            out, 4, [&](char *, const std::uint32_t &, const ReadHandler &handler) { answer = handler; },
            [&](const std::uint32_t &) {
                buffer.reset();
                if (throws) {
                    throw std::runtime_error("gone");
                }
            });
        buffer->read(
            out, 4, [kept = ReadHandler(answer), token](char *, const std::uint32_t &, const ReadHandler &) {},
            [token](const std::uint32_t &) {});
        if (throws) {
            EXPECT_THROW(answer(4), std::runtime_error);
        } else {
            answer(4);
        }
        EXPECT_EQ(buffer, nullptr);
    }
    EXPECT_EQ(token.use_count(), 1);
}

TEST(AsyncWriting, AnIoThatAnswersAtOnce) {
    std::vector<std::string> calls;
    Writer buffer(10, [&](const char *from, const std::uint32_t &len, const WriteHandler &handler) {
        calls.emplace_back(from, len);
        handler(len);
    });
    std::vector<std::uint32_t> results;
    buffer.write("Hello, World!", 13, note(results));
    EXPECT_EQ(results, std::vector<std::uint32_t>{13});
    EXPECT_EQ(calls, (std::vector<std::string>{"Hello, Wor", "ld!"}));
    buffer.write("", 0, note(results));
    EXPECT_EQ(results.back(), 0U);
    EXPECT_EQ(calls.size(), 2U) << "nothing is not written";
}

TEST(AsyncWriting, SmallWritesThatCameMeanwhileGoTogether) {
    SlowSink sink;
    Writer buffer(8, sink.io());
    std::vector<std::uint32_t> results;
    buffer.write("one ", 4, note(results));
    buffer.write("two ", 4, note(results));
    buffer.write("three ", 6, note(results));
    EXPECT_EQ(sink.calls, std::vector<std::string>{"one "});
    EXPECT_TRUE(buffer.full()) << "the bytes that fit are copied immediately";
    EXPECT_THROW(sink.handler(5), ms::BufferError) << "more than was asked, though there is more in the buffer";
    sink.answer();
    EXPECT_EQ(results, std::vector<std::uint32_t>{4});
    EXPECT_EQ(sink.calls.back(), "two thre");
    EXPECT_TRUE(buffer.full());
    sink.answer(2); // part of the first of them
    EXPECT_EQ(sink.calls.back(), "o three ");
    EXPECT_EQ(results.size(), 1U);
    sink.answer();
    EXPECT_EQ(results, (std::vector<std::uint32_t>{4, 4, 6}));
    EXPECT_EQ(sink.output, "one two three ");
    EXPECT_TRUE(buffer.empty());
}

TEST(AsyncWriting, WhatFitsNeedNotStay) {
    SlowSink sink;
    Writer buffer(8, sink.io());
    std::vector<std::uint32_t> results;
    for (const char *text : {"one ", "two "}) {
        std::string passing(text);
        buffer.write(passing.data(), 4, note(results));
        passing.assign(4, '?');
    }
    sink.answer(3);
    EXPECT_EQ(sink.calls.back(), " two ");
    std::string passing("abc");
    buffer.write(passing.data(), 3, note(results));
    passing.assign(3, '?');
    EXPECT_EQ(sink.calls.back(), " two ") << "its bytes are where they were";
    sink.answer();
    sink.answer();
    EXPECT_EQ(sink.output, "one two abc");
    EXPECT_EQ(results, (std::vector<std::uint32_t>{4, 4, 3}));
}

TEST(AsyncWriting, AnIoThatTakesNoMoreLeavesNoHole) {
    SlowSink sink;
    Writer buffer(4, sink.io());
    std::vector<std::uint32_t> results;
    const auto again = [&](const std::uint32_t &len) {
        results.push_back(len);
        buffer.write("again", 5, note(results));
    };
    buffer.write("abcdef", 6, again);
    buffer.write("later", 5, note(results));
    sink.answer();
    sink.answer(1);
    EXPECT_EQ(sink.calls.back(), "flat");
    sink.answer(0);
    EXPECT_EQ(results, (std::vector<std::uint32_t>{5, 0})) << "all that were in the queue are answered";
    EXPECT_EQ(sink.calls.back(), "agai") << "a new one asks again";
    sink.answer();
    sink.answer();
    EXPECT_EQ(results, (std::vector<std::uint32_t>{5, 0, 5}));
    EXPECT_EQ(sink.output, "abcdeagain");
}

TEST(AsyncWriting, AnswersAfterTheBufferIsGone) {
    SlowSink sink;
    std::vector<std::uint32_t> results;
    auto buffer = std::make_unique<Writer>(4, sink.io());
    buffer->write("abc", 3, note(results));
    buffer.reset();
    sink.answer();
    EXPECT_EQ(results.size(), 0U);
}

/// Calls `function` on a thread whose stack is too small for a thousand nested calls.
void on_a_small_stack(std::function<void()> function) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    pthread_t thread;
    const auto run = [](void *argument) -> void * {
        (*static_cast<std::function<void()> *>(argument))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &function), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

// Sanitizers make each request about twenty times slower; a tenth of the requests would overflow that stack too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MILLSTREAM_SANITIZED)
constexpr int chain = 100'000;
#else
constexpr int chain = 1'000'000;
#endif

TEST(AsyncBuffers, AMillionChainedRequestsTakeNoStack) {
    int reads = 0;
    int writes = 0;
    on_a_small_stack([&] {
        Reader reader(3);
        char out[4];
        const Reader::IOInterface give = [](char *to, const std::uint32_t &len, const ReadHandler &handler) {
            std::fill_n(to, len, 'x');
            handler(len);
        };
        std::function<void(const std::uint32_t &)> read_on = [&](const std::uint32_t &) {
            if (++reads < chain) {
                reader.read(out, 4, give, std::cref(read_on));
            }
        };
        reader.read(out, 4, give, read_on);

        Writer writer(3, [](const char *, const std::uint32_t &len, const WriteHandler &handler) { handler(len); });
        std::function<void(const std::uint32_t &)> write_on = [&](const std::uint32_t &) {
            if (++writes < chain) {
                writer.write("abcd", 4, std::cref(write_on));
            }
        };
        writer.write("abcd", 4, write_on);
    });
    EXPECT_EQ(reads, chain);
    EXPECT_EQ(writes, chain);
}

TEST(AsyncBuffers, ARequestOfManyBuffersTakesNoStack) {
    std::uint32_t got = 0;
    on_a_small_stack([&] {
        const std::uint32_t len = 200'000;
        std::string out(len, '?');
        Reader reader(1);
        reader.read(
            out.data(), len,
            [](char *to, const std::uint32_t &, const ReadHandler &handler) {
                *to = 'x';
                handler(1);
            },
            [&](const std::uint32_t &result) { got = result; });
        EXPECT_EQ(out, std::string(len, 'x'));
    });
    EXPECT_EQ(got, 200'000U);
}

/// Requests from several threads, answered by one more: every byte arrives once, and the bytes of each thread arrive
/// in order.
TEST(AsyncBuffers, RequestsFromSeveralThreads) {
    constexpr std::size_t threads = 3;
    constexpr std::size_t count = 2000;
    std::string output;
    std::atomic<std::size_t> answered{0};
    Signal done;
    {
        Worker worker;
        Writer buffer(16, [&](const char *from, const std::uint32_t &len, const WriteHandler &handler) {
            worker.post([&output, from, len, handler] {
                const std::uint32_t some = std::min(len, 7U);
                output.append(from, some);
                handler(some);
            });
        });
        std::vector<std::thread> writers;
        static constexpr char letters[threads + 1] = "abc";
        for (std::size_t i = 0; i < threads; ++i) {
            writers.emplace_back([&, i] {
                for (std::size_t n = 0; n < count; ++n) {
                    buffer.write(letters + i, 1, [&](const std::uint32_t &) {
                        if (++answered == threads * count) {
                            done.set();
                        }
                    });
                }
            });
        }
        for (std::thread &writer : writers) {
            writer.join();
        }
        ASSERT_TRUE(done.wait());
    }
    EXPECT_EQ(output.size(), threads * count);
    EXPECT_EQ(std::count(output.begin(), output.end(), 'b'), static_cast<std::ptrdiff_t>(count));

    // Reading: each numbered record arrives complete at exactly one thread.
    std::string rest;
    for (std::size_t n = 0; n < threads * count; ++n) {
        rest += std::to_string(100'000 + n);
    }
    std::vector<std::string> records(threads * count, std::string(6, '?'));
    answered = 0;
    Signal read;
    {
        Worker worker;
        std::size_t given = 0;
        Reader buffer(16);
        const auto io = [&](char *to, const std::uint32_t &len, const ReadHandler &handler) {
            worker.post([&, to, len, handler] {
                const std::size_t got = rest.copy(to, len, given);
                given += got;
                handler(static_cast<std::uint32_t>(got));
            });
        };
        std::vector<std::thread> readers;
        for (std::size_t i = 0; i < threads; ++i) {
            readers.emplace_back([&, i] {
                for (std::size_t n = 0; n < count; ++n) {
                    buffer.read(records[i * count + n].data(), 6, io, [&](const std::uint32_t &) {
                        if (++answered == threads * count) {
                            read.set();
                        }
                    });
                }
            });
        }
        for (std::thread &reader : readers) {
            reader.join();
        }
        ASSERT_TRUE(read.wait());
    }
    std::sort(records.begin(), records.end());
    std::string all;
    for (const std::string &record : records) {
        all += record;
    }
    EXPECT_EQ(all, rest);
}

/// Any sequence of requests has the same results as a string, in order, for any answers of io at any time.
TEST(AsyncBuffers, AreLikeAString) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
        std::string text(1 + below(3000), ' ');
        for (char &c : text) {
            c = static_cast<char>('a' + below(26));
        }
        std::vector<std::function<void()>> later; // at most one, because io gets one request at a time
        const auto answer = [&](std::function<void()> now) {
            if (below(2) == 0) {
                now();
            } else {
                later.push_back(std::move(now));
            }
        };

        Reader reader(static_cast<std::uint32_t>(below(40)));
        std::size_t given = 0;
        const Reader::IOInterface give = [&](char *to, const std::uint32_t &len, const ReadHandler &handler) {
            answer([&, to, len, handler] {
                const std::size_t count = std::min({1 + below(len), text.size() - given, std::size_t{len}});
                text.copy(to, count, given);
                given += count;
                handler(static_cast<std::uint32_t>(count));
            });
        };
        std::string output;
        Writer writer(static_cast<std::uint32_t>(below(40)),
                      [&](const char *from, const std::uint32_t &len, const WriteHandler &handler) {
                          answer([&, from, len, handler] {
                              const std::size_t count = 1 + below(len);
                              output.append(from, count);
                              handler(static_cast<std::uint32_t>(count));
                          });
                      });

        // Each read that is answered is written; the end of the input ends the reads.
        std::deque<std::string> memory; // must not move
        std::size_t written = 0;
        bool ended = false;
        const auto read_on = [&] {
            std::string &piece = memory.emplace_back(1 + below(100), '?');
            reader.read(piece.data(), static_cast<std::uint32_t>(piece.size()), give, [&](const std::uint32_t &len) {
                ended = len < piece.size();
                piece.resize(len);
                writer.write(piece.data(), len, [&, len](const std::uint32_t &taken) {
                    EXPECT_EQ(taken, len);
                    written += taken;
                });
            });
        };
        while (!ended || !later.empty()) {
            if (!ended && below(2) == 0) {
                read_on();
            }
            if (!later.empty()) {
                const std::size_t which = below(later.size());
                const auto now = later[which];
                later.erase(later.begin() + static_cast<std::ptrdiff_t>(which));
                now();
            }
            ASSERT_LE(later.size(), 2U) << "one question of the reader, one of the writer";
        }
        ASSERT_EQ(output, text);
        ASSERT_EQ(written, text.size());
    }
}

} // namespace
