// Pipes from a user's point of view: the output, its order, the text of exceptions, and the timely stop of sources.
// The cases are the same as in crates/millstream/tests/pipe.rs, the tests of the Rust library.

#include "millstream/pipe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

/// The lines "0", "1", … of a command, in several batches.
ms::command numbers(unsigned count) { return ms::command{"seq", "0", std::to_string(count - 1)}; }

std::uint64_t number(std::string_view line) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (failed != std::errc() || end != line.data() + line.size())
        throw std::invalid_argument("no number: " + std::string(line));
    return value;
}

template <class Thrown = ms::error, class Act>
Thrown thrown_by(Act act) {
    try {
        act();
    } catch (const Thrown &thrown) {
        return thrown;
    }
    throw std::logic_error("this should have failed");
}

/// An exception that does not derive from std::exception.
struct oddity {};

TEST(Pipe, StagesBetweenRecordsAndValuesInOneChain) {
    ms::writer out(ms::to_memory{});
    const ms::pipe_summary summary =
        ms::pipe(numbers(100'000))
            .lines()
            .skip(1)
            .filter([](std::string_view line) { return line.ends_with('7'); })
            .map(number)
            .filter([](std::uint64_t n) { return n % 3 == 0; })
            .flat_map([](std::uint64_t n) {
                return std::vector{n, n + 1};
            })
            .scan_state(std::uint64_t{0}, [](std::uint64_t &sum, std::uint64_t n) { return sum += n; })
            .rewrite([](std::uint64_t sum, std::string &to) { to += std::to_string(sum); })
            .map([](std::string_view text) { return text.substr(0, 3); })
            .write_to(out);
    std::string expected;
    std::uint64_t sum = 0;
    for (std::uint64_t n = 7; n < 100'000; n += 10)
        for (std::uint64_t m = n; n % 3 == 0 && m <= n + 1; ++m)
            expected += std::to_string(sum += m).substr(0, 3) + "\n";
    out.close();
    EXPECT_EQ(out.memory(), expected);
    EXPECT_EQ(summary.records, 100'000);
    EXPECT_EQ(summary.items, std::count(expected.begin(), expected.end(), '\n'));
    EXPECT_FALSE(summary.ended_early);
    ASSERT_EQ(summary.commands.size(), 1);
    EXPECT_TRUE(summary.commands[0].success());
}

TEST(Pipe, ValuesThatOnlyMove) {
    using box = std::unique_ptr<std::uint64_t>;
    const auto boxed = [](std::string_view line) { return std::make_unique<std::uint64_t>(number(line)); };
    std::vector<box> all = ms::pipe(numbers(1000))
                               .lines()
                               .map(boxed)
                               .filter([](const box &n) { return *n % 2 == 0; })
                               .inspect([](const box &n) { EXPECT_EQ(*n % 2, 0); })
                               .filter_map([](box n) { return *n > 10 ? std::optional(std::move(n)) : std::nullopt; })
                               .cut("cut")
                               .flat_map([](box n) {
                                   std::vector<box> both;
                                   both.push_back(std::make_unique<std::uint64_t>(*n + 1));
                                   both.push_back(std::move(n));
                                   return both;
                               })
                               .then(ms::stages<box>().take(3).boxed("take"))
                               .collect();
    ASSERT_EQ(all.size(), 3);
    EXPECT_EQ(*all[0], 13);
    EXPECT_EQ(*all[1], 12);
    EXPECT_EQ(*all[2], 15);
}

TEST(Pipe, PartsOfRecordsAndNewBytes) {
    auto pieces = [](std::string_view line, auto next) {
        for (std::size_t at = 0; at <= line.size();) {
            const std::size_t end = std::min(line.find(' ', at), line.size());
            next(line.substr(at, end - at));
            at = end + 1;
        }
    };
    auto twice = [](std::string_view word, std::string &to) { to.append(word).append(word); };
    const strings words = ms::pipe(ms::memory{"one two\nthree\n"})
                              .lines()
                              .pieces(pieces)
                              .rewrite(twice)
                              .cut("what is rewritten lives as long as its batch")
                              .collect();
    EXPECT_EQ(words, (strings{"oneone", "twotwo", "threethree"}));
    EXPECT_EQ(ms::pipe(ms::memory{"abcdef"}).frames(ms::framer::fixed(2)).collect(), (strings{"ab", "cd", "ef"}));
}

TEST(Pipe, Folds) {
    const std::string all =
        ms::pipe(ms::memory{"a\nb\n"}).lines().fold(std::string("-"), [](std::string text, std::string_view line) {
            return std::move(text.append(line));
        });
    EXPECT_EQ(all, "-ab");
    std::size_t bytes = 0;
    ms::pipe(ms::memory{"a\nbc\n"}).lines().for_each([&](std::string_view line) { bytes += line.size(); });
    EXPECT_EQ(bytes, 3);
}

TEST(Pipe, BoxedAndCutStagesDoWhatFusedOnesDo) {
    std::vector<ms::stage<>> chosen;
    for (const char digit : {'1', '2', '3'})
        chosen.push_back(ms::stages()
                             .filter([digit](std::string_view line) { return line.find(digit) != line.npos; })
                             .boxed(std::string("digit ") + digit));
    EXPECT_EQ(chosen[1].name(), "digit 2");
    auto boxed = ms::pipe(numbers(50'000)).lines().then_all(std::move(chosen)).cut("all").take(40);
    const strings lines =
        ms::pipe(numbers(50'000))
            .lines()
            .filter([](std::string_view line) {
                return line.find('1') != line.npos && line.find('2') != line.npos && line.find('3') != line.npos;
            })
            .take(40)
            .collect();
    EXPECT_EQ(boxed.collect(), lines);
    EXPECT_EQ(lines.size(), 40);
    EXPECT_TRUE(boxed.summary().ended_early);
}

TEST(Pipe, TenThousandBoxedStagesWork) {
    std::vector<ms::stage<>> stages;
    for (int i = 0; i < 10'000; ++i)
        stages.push_back(ms::stages().inspect([](std::string_view) {}).boxed("none"));
    EXPECT_EQ(ms::pipe(numbers(10)).lines().then_all(std::move(stages)).count(), 10);
}

TEST(Pipe, TakeMakesNoErrorOfACommandThatFailsLater) {
    for (int i = 0; i < 200; ++i)
        EXPECT_EQ(ms::pipe(ms::command{"sh", "-c", "seq 2; exit 3"}).lines().take(1).collect(), strings{"1"});
}

TEST(Pipe, TakeEndsASourceThatNeverWould) {
    auto pipe = ms::pipe(ms::command{"yes"}).lines().take(3);
    EXPECT_EQ(pipe.collect(), (strings{"y", "y", "y"}));
    EXPECT_TRUE(pipe.summary().ended_early);
    EXPECT_EQ(pipe.summary().items, 3);
    EXPECT_EQ(pipe.summary().commands.size(), 1);
    EXPECT_EQ(pipe.count(), 0) << "it has ended, and says nothing else";
}

TEST(Pipe, NothingIsReadForTheSakeOfTakeNothing) {
    const auto fill = [](std::span<char>) -> std::size_t { throw std::logic_error("nothing is requested"); };
    EXPECT_EQ(ms::pipe(ms::callback{fill}).lines().take(0).count(), 0);
}

TEST(Pipe, AFailingCommandIsAnErrorAfterAllItWrote) {
    unsigned seen = 0;
    auto pipe = ms::pipe(ms::shell{"seq 1 50000; exit 3"}).lines().cut("all");
    const ms::error error = thrown_by([&] { pipe.for_each([&](std::string_view) { ++seen; }); });
    EXPECT_EQ(error.kind(), ms::errc::command_failed);
    EXPECT_EQ(pipe.last_error()->kind(), ms::errc::command_failed);
    EXPECT_EQ(seen, 50'000);
}

TEST(Pipe, WhatASourceOfYoursThrowsComesOutAsItself) {
    int calls = 0;
    const auto fill = [&calls](std::span<char> space) -> std::size_t {
        if (++calls > 1)
            throw oddity();
        std::ranges::copy(std::string_view("a\nb\n"), space.begin());
        return 4;
    };
    strings seen;
    auto pipe = ms::pipe(ms::callback{fill}).lines();
    EXPECT_THROW(pipe.for_each([&](std::string_view line) { seen.emplace_back(line); }), oddity);
    EXPECT_EQ(seen, (strings{"a", "b"}));
}

/// Every stage that can fail does so at every record. In each case, earlier records have reached the sink.
TEST(Pipe, WhatComesBeforeAFailingRecordReachesTheSink) {
    constexpr unsigned count = 40;
    for (std::uint64_t bad = 0; bad < count; ++bad) {
        for (int way = 0; way < 7; ++way) {
            std::vector<std::uint64_t> seen;
            const auto see = [&](std::string_view line) { seen.push_back(number(line)); };
            const auto fails = [bad](std::string_view line) {
                if (number(line) == bad)
                    throw std::out_of_range("no good");
                return true;
            };
            const auto copied = [&](std::string_view line) {
                fails(line);
                return std::string(line);
            };
            const auto run = [&](auto pipe, auto sink) {
                EXPECT_STREQ(thrown_by<std::out_of_range>([&] { pipe.for_each(sink); }).what(), "no good");
                EXPECT_EQ(pipe.last_error()->kind(), ms::errc::stage_failed);
                EXPECT_EQ(pipe.last_error()->record(), bad) << "way " << way;
                EXPECT_EQ(pipe.last_error()->found(), "no good");
                EXPECT_EQ(thrown_by([&] { pipe.run(); }).kind(), ms::errc::closed);
            };
            auto lines = ms::pipe(numbers(count)).lines();
            switch (way) {
            case 0:
                run(std::move(lines).map(copied), see);
                break;
            case 1:
                run(std::move(lines).map(copied).cut("a"), see);
                break;
            case 2:
                run(std::move(lines).inspect(fails), see);
                break;
            case 3:
                run(std::move(lines).then(ms::stages().filter(fails).boxed("b")), see);
                break;
            case 4:
                run(std::move(lines).batch(7).rewrite(
                        [&](std::string_view line, std::string &to) { to += copied(line); }),
                    see);
                break;
            case 5: {
                std::vector<ms::stage<>> both;
                both.push_back(ms::stages().filter(fails).boxed("a"));
                both.push_back(ms::stages().filter([](std::string_view) { return true; }).boxed("b"));
                run(std::move(lines).then_all(std::move(both)).cut("c"), see);
                break;
            }
            default:
                run(std::move(lines), [&](std::string_view line) {
                    fails(line);
                    see(line);
                });
            }
            std::vector<std::uint64_t> before(bad);
            std::iota(before.begin(), before.end(), 0);
            EXPECT_EQ(seen, before) << "way " << way;
        }
    }
}

TEST(Pipe, ALaterStageMayFailAtAnEarlierRecord) {
    const auto stage = [](std::uint64_t bad) {
        return ms::stages()
            .inspect([bad](std::string_view line) {
                if (number(line) == bad)
                    throw std::out_of_range("bad " + std::to_string(bad));
            })
            .boxed("stage");
    };
    std::vector<ms::stage<>> stages;
    stages.push_back(stage(12));
    stages.push_back(stage(5));
    std::vector<std::uint64_t> seen;
    auto pipe = ms::pipe(numbers(20)).lines().then_all(std::move(stages));
    const auto thrown = thrown_by<std::out_of_range>(
        [&] { pipe.for_each([&](std::string_view line) { seen.push_back(number(line)); }); });
    EXPECT_STREQ(thrown.what(), "bad 5");
    EXPECT_EQ(pipe.last_error()->record(), 5);
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Pipe, AnErrorOfTheLibraryIsToldWhereItIs) {
    const auto checked = [](std::string_view line) {
        ms::check_text(line);
        return line.size();
    };
    ms::reader reader(ms::memory{"one\n\xfe\n"}, {.name = "text"});
    const ms::error error = thrown_by([&] { ms::pipe(std::move(reader)).lines().map(checked).run(); });
    EXPECT_EQ(error.kind(), ms::errc::utf8_invalid);
    EXPECT_EQ(error.record(), 1);
    EXPECT_EQ(error.offset(), 4);
    EXPECT_EQ(error.name(), "text");
}

TEST(Pipe, FailingRecordsArePassedOverOrKept) {
    const std::string input = "1\nx\r\n\n4\n\xfe";
    auto skipping = ms::pipe(ms::memory{input}).lines().on_error(ms::on_error::skip).map(number);
    EXPECT_EQ(skipping.collect(), (std::vector<std::uint64_t>{1, 4}));
    EXPECT_EQ(skipping.summary().failed, 3);

    for (const bool is_boxed : {false, true}) {
        ms::writer bad(ms::to_memory{});
        std::vector<std::uint64_t> kept;
        auto lines = ms::pipe(ms::memory{input}).lines().quarantine(bad);
        if (is_boxed)
            kept = std::move(lines).cut("a").then(ms::stages().map(number).boxed("number")).collect();
        else
            kept = std::move(lines).map(number).collect();
        EXPECT_EQ(kept, (std::vector<std::uint64_t>{1, 4}));
        bad.close();
        EXPECT_EQ(bad.memory(), "x\r\n\n\xfe");
    }
}

TEST(Pipe, WhatIsNoErrorIsAlwaysTheEnd) {
    auto pipe = ms::pipe(numbers(10)).lines().on_error(ms::on_error::skip).inspect([](std::string_view line) {
        if (line == "3")
            throw std::runtime_error("passed over");
        if (line == "5")
            throw oddity();
    });
    std::vector<std::uint64_t> seen;
    EXPECT_THROW(pipe.for_each([&](std::string_view line) { seen.push_back(number(line)); }), oddity);
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1, 2, 4}));
    EXPECT_EQ(pipe.last_error()->kind(), ms::errc::stage_panicked);
    EXPECT_EQ(pipe.last_error()->record(), 5);
    EXPECT_EQ(pipe.summary().failed, 1);

    auto full = ms::pipe(numbers(10)).lines().on_error(ms::on_error::skip).map([](std::string_view) -> int {
        throw std::bad_alloc();
    });
    EXPECT_THROW(full.run(), std::bad_alloc);
    auto sink = ms::pipe(numbers(10)).lines().on_error(ms::on_error::skip);
    EXPECT_THROW(sink.for_each([](std::string_view) { throw std::runtime_error("sink"); }), std::runtime_error);
}

TEST(Pipe, ASinkThatFailsEndsThePipe) {
    const auto full = [](std::span<const char>) -> std::size_t { throw std::runtime_error("full"); };
    ms::writer out(ms::callback{full});
    auto pipe = ms::pipe(numbers(200'000)).lines();
    EXPECT_THROW(pipe.write_to(out), std::runtime_error);
    EXPECT_GT(pipe.last_error()->record(), 0);
    ms::writer device(ms::path{"/dev/full"});
    auto teed = ms::pipe(numbers(200'000)).lines().on_error(ms::on_error::skip).cut("a").tee(device);
    const ms::error error = thrown_by([&] { teed.run(); });
    EXPECT_EQ(error.kind(), ms::errc::io);
    EXPECT_EQ(error.system_errno(), ENOSPC);
    EXPECT_EQ(error.name(), "/dev/full");
    EXPECT_EQ(teed.summary().failed, 0);
}

TEST(Pipe, TeeAndWritePutTheTerminatorOfTheFramer) {
    ms::writer copy(ms::to_memory{});
    ms::writer out(ms::to_memory{});
    ms::pipe(ms::memory{"a; b; c"})
        .frames(ms::framer::delimiter("; "))
        .tee(copy)
        .filter([](std::string_view item) { return item != "b"; })
        .write_to(out);
    copy.close();
    out.close();
    EXPECT_EQ(copy.memory(), "a; b; c; ");
    EXPECT_EQ(out.memory(), "a; c; ");
    ms::writer sizes(ms::to_memory{});
    ms::pipe(ms::memory{"a\nbc\n"}).lines().map([](std::string_view line) { return line.size(); }).write_to(sizes);
    sizes.close();
    EXPECT_EQ(sizes.memory(), "1\n2\n");
}

TEST(Pipe, ACancelledPipeGoesOnWhereItWas) {
    ms::cancel_token token;
    auto pipe = ms::pipe(numbers(100'000)).lines().cancel(token).batch(10);
    std::uint64_t seen = 0;
    const ms::error error = thrown_by([&] {
        pipe.for_each([&](std::string_view line) {
            EXPECT_EQ(number(line), seen);
            if (++seen == 50'005)
                token.cancel();
        });
    });
    EXPECT_EQ(error.kind(), ms::errc::cancelled);
    EXPECT_TRUE(seen >= 50'005 && seen < 50'015) << "a batch has at most ten records: " << seen;
    token.reset();
    EXPECT_EQ(pipe.count(), 100'000 - seen);
}

TEST(Pipe, MergedReadersKeepTheirOwnOrderAndAllMustSucceed) {
    const auto opened = [](std::initializer_list<const char *> lines) {
        std::vector<ms::reader> readers;
        for (const char *line : lines)
            readers.emplace_back(ms::shell{line});
        return readers;
    };
    auto lines = ms::merge(opened({"seq 0 2 19998", "seq 1 2 19999", "true"})).lines().map(number).collect();
    for (const std::uint64_t parity : {0U, 1U}) {
        std::vector<std::uint64_t> own;
        std::copy_if(lines.begin(), lines.end(), std::back_inserter(own), [&](auto n) { return n % 2 == parity; });
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    }
    std::sort(lines.begin(), lines.end());
    std::vector<std::uint64_t> expected(20'000);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(lines, expected);

    EXPECT_EQ(thrown_by([&] {
                  ms::merge(opened({"seq 9", "exit 4"})).lines().run();
              }).kind(),
              ms::errc::command_failed);
    EXPECT_EQ(ms::merge({}).lines().count(), 0);
}

/// The silent source ends only after the record of the other source has passed.
TEST(Pipe, ASilentReaderIsPassedOver) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::vector<ms::reader> readers;
    readers.emplace_back(ms::fd{ends[0]});
    readers.emplace_back(ms::memory{"now\n"});
    strings seen;
    ms::merge(std::move(readers)).lines().for_each([&](std::string_view line) {
        seen.emplace_back(line);
        if (line == "now") {
            EXPECT_EQ(::write(ends[1], "late\n", 5), 5);
            ::close(ends[1]);
        }
    });
    EXPECT_EQ(seen, (strings{"now", "late"}));
}

TEST(Pipe, MeasuresWhereTheTimeGoes) {
    auto pipe = ms::pipe(ms::memory{"1\n2\n"})
                    .lines()
                    .measured()
                    .cut("lines")
                    .then(ms::stages().map(number).boxed("parse"))
                    .filter([](std::uint64_t n) { return n > 1; })
                    .cut("filter");
    EXPECT_EQ(pipe.run().items, 1);
    const ms::pipe_stats stats = pipe.stats();
    ASSERT_EQ(stats.stages.size(), 3);
    EXPECT_EQ(stats.stages[0].name, "lines");
    EXPECT_EQ(stats.stages[0].items, 2);
    EXPECT_EQ(stats.stages[0].bytes, 2);
    EXPECT_EQ(stats.stages[1].name, "parse");
    EXPECT_EQ(stats.stages[1].items, 2);
    EXPECT_EQ(stats.stages[1].bytes, 0) << "the size of a value is unknown";
    EXPECT_EQ(stats.stages[2].items, 1);
    EXPECT_GT(stats.elapsed.count(), 0);
}

TEST(Pipe, ClosesWhereverItIs) {
    auto pipe = ms::pipe(ms::command{"yes"}).lines().inspect([](std::string_view) {});
    EXPECT_EQ(pipe.close().commands.size(), 1);
    EXPECT_EQ(pipe.count(), 0);
}

// ---- several threads ----

TEST(PipeParallel, ResultsAreInOrder) {
    for (const std::size_t threads : {1U, 2U, 4U}) {
        std::uint64_t expected = 0;
        const ms::pipe_summary summary =
            ms::pipe(numbers(50'000))
                .lines()
                .parallel(threads,
                          [](auto stages) {
                              return std::move(stages)
                                  .map(number)
                                  .filter([](std::uint64_t n) { return n % 2 == 0; })
                                  .flat_map([](std::uint64_t n) {
                                      return std::vector{n, n + 1};
                                  })
                                  .rewrite([](std::uint64_t n, std::string &to) { to += std::to_string(n); });
                          })
                .for_each([&](std::string_view text) { EXPECT_EQ(number(text), expected++); });
        EXPECT_EQ(expected, 50'000U);
        EXPECT_EQ(summary.items, 50'000U);
    }
}

TEST(PipeParallel, AnExceptionComesAfterAllEarlierResults) {
    for (const std::uint64_t bad : {0U, 1U, 777U, 29'999U}) {
        std::uint64_t next = 0;
        auto pipe = ms::pipe(numbers(30'000)).lines().parallel(3, [&](auto stages) {
            return std::move(stages).map([bad](std::string_view line) {
                if (number(line) >= bad)
                    throw std::out_of_range("too large");
                return number(line);
            });
        });
        EXPECT_THROW(pipe.for_each([&](std::uint64_t n) { EXPECT_EQ(n, next++); }), std::out_of_range);
        EXPECT_EQ(next, bad);
        EXPECT_EQ(pipe.last_error()->record(), bad);
        EXPECT_EQ(thrown_by([&] { pipe.run(); }).code(), ms::errc::closed);
    }
}

TEST(PipeParallel, RecordsAreSkippedAndThePipeEndsEarly) {
    ms::writer bad(ms::to_memory{});
    const strings all = ms::pipe(ms::memory{"1\nx\n2\ny\n3\n4\n"})
                            .lines()
                            .quarantine(bad)
                            .parallel(2, [](auto stages) { return std::move(stages).map(number); })
                            .map([](std::uint64_t n) { return std::to_string(n); })
                            .take(3)
                            .collect();
    EXPECT_EQ(all, (strings{"1", "2", "3"}));
    bad.close();
    EXPECT_EQ(bad.memory(), "x\ny\n");
    EXPECT_EQ(thrown_by([] {
                  (void)ms::pipe(ms::memory{""}).lines().parallel(0, [](auto stages) { return stages; });
              }).code(),
              ms::errc::argument_invalid);
}

// ---- commands in the middle ----

TEST(PipeThrough, StagesGoOnWithTheOutput) {
    const strings all = ms::pipe(numbers(20))
                            .lines()
                            .filter([](std::string_view line) { return line.size() > 1; })
                            .map([](std::string_view line) { return line.substr(1); })
                            .through({"sort", "-rn"})
                            .lines()
                            .map([](std::string_view line) { return number(line) * 2; })
                            .through({"head", "-n", "3"})
                            .lines()
                            .map([](std::string_view line) { return std::string(line) + "!"; })
                            .collect();
    EXPECT_EQ(all, (strings{"18!", "16!", "14!"}));
    // More than fits into the pipes, and several sources.
    std::vector<ms::reader> readers;
    readers.emplace_back(numbers(200'000));
    readers.emplace_back(numbers(200'000));
    EXPECT_EQ(ms::merge(std::move(readers)).lines().through({"cat"}).lines().count(), 400'000U);
    EXPECT_EQ(ms::pipe(ms::memory{"a;b"}).frames(ms::framer::delimiter(";")).through({"cat"}).lines().collect(),
              strings{"a;b;"});
    EXPECT_EQ(ms::pipe(ms::memory{""}).lines().through({"cat"}).lines().count(), 0U);
}

TEST(PipeThrough, ErrorsComeAfterTheOutput) {
    strings found;
    const auto keep = [&](std::string_view line) { found.emplace_back(line); };
    auto bad = ms::pipe(numbers(20))
                   .lines()
                   .inspect([](std::string_view line) {
                       if (line == "3")
                           throw std::out_of_range("mine");
                   })
                   .through({"cat"})
                   .lines();
    EXPECT_THROW(bad.for_each(keep), std::out_of_range);
    EXPECT_EQ(found, (strings{"0", "1", "2"}));
    found.clear();
    auto source = ms::pipe(ms::command{"sh", "-c", "seq 3; exit 3"}).lines().through({"cat"}).lines();
    EXPECT_EQ(thrown_by([&] { source.for_each(keep); }).code(), ms::errc::command_failed);
    EXPECT_EQ(found, (strings{"1", "2", "3"}));
    found.clear();
    auto command = ms::pipe(numbers(20)).lines().through({"sh", "-c", "head -n 2; exit 3"}).lines();
    EXPECT_EQ(thrown_by([&] { command.for_each(keep); }).code(), ms::errc::command_failed);
    EXPECT_EQ(found, (strings{"0", "1"}));
    EXPECT_EQ(thrown_by([&] { (void)ms::pipe(numbers(2)).lines().through({"no-such-program"}); }).code(),
              ms::errc::command_not_started);
    ms::writer skipped(ms::to_memory{});
    const strings good = ms::pipe(ms::memory{"1\nx\n2\n"})
                             .lines()
                             .quarantine(skipped)
                             .map([](std::string_view line) { return ms::column<int>(line, 0); })
                             .through({"cat"})
                             .lines()
                             .collect();
    EXPECT_EQ(good, (strings{"1", "2"}));
    skipped.close();
    EXPECT_EQ(skipped.memory(), "x\n");
}

TEST(PipeThrough, NothingIsLeftRunning) {
    // A source that waits for ever, and a command that does.
    const ms::command quiet{"sh", "-c", "echo one; exec sleep 1000"};
    EXPECT_EQ(ms::pipe(quiet).lines().through({"cat"}).lines().take(1).count(), 1U);
    EXPECT_EQ(ms::pipe(ms::command{"yes"}).lines().through({"head", "-n", "1"}).lines().count(), 1U);
    EXPECT_EQ(ms::pipe(ms::command{"yes"}).lines().through({"cat"}).lines().take(1).count(), 1U);
    (void)ms::pipe(quiet).lines().through({"sleep", "1000"});
}

// ---- several operations at once ----

TEST(Pipe, AnErrorInAPartOfALineHasItsColumn) {
    const auto fails = [](auto stage) {
        auto pipe = ms::pipe(ms::memory{"a,1\nb,2\nc,x\n"}, {.name = "it"}).lines().map(stage);
        EXPECT_THROW(pipe.run(), ms::error);
        EXPECT_EQ(pipe.last_error()->line(), 3U);
        EXPECT_EQ(pipe.last_error()->record(), 2U);
        EXPECT_EQ(pipe.last_error()->name(), "it");
        return *pipe.last_error();
    };
    const ms::error of_line = fails([](std::string_view line) { return ms::column<int>(line, 1, ','); });
    EXPECT_EQ(of_line.column(), 3U);
    EXPECT_EQ(of_line.offset(), 10U);
    EXPECT_NE(std::string(of_line.what()).find("found x, expected"), std::string::npos);
    EXPECT_NE(std::string(of_line.what()).find(", at line 3, column 3; "), std::string::npos) << of_line.what();
    const ms::error of_part = fails([](std::string_view line) { return ms::column<int>(line.substr(2), 0, ','); });
    EXPECT_EQ(of_part.column(), 3U);
    EXPECT_EQ(of_part.offset(), 10U);
    // A copy is no part of the line.
    const ms::error of_copy = fails([](std::string_view line) {
        const std::string copy(line.substr(2));
        return ms::column<int>(copy, 0, ',');
    });
    EXPECT_EQ(of_copy.column(), std::nullopt);
    EXPECT_EQ(of_copy.offset(), 8U);
}

TEST(PipeAsync, ResultsAreInOrderAndOperationsAreLimited) {
    for (const std::size_t most : {1U, 3U, 100U}) {
        std::atomic<std::size_t> present = 0, seen = 0;
        const auto start = [&](std::string_view line) {
            ++present;
            return std::async(std::launch::async, [&, n = number(line)] {
                for (std::size_t now = present, before = seen;
                     now > before && !seen.compare_exchange_weak(before, now);) {
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(n % 3));
                --present;
                return n;
            });
        };
        std::uint64_t expected = 0;
        const ms::pipe_summary summary =
            ms::pipe(numbers(300)).lines().map_async(most, start).for_each([&](std::uint64_t n) {
                EXPECT_EQ(n, expected++);
            });
        EXPECT_EQ(summary.items, 300U);
        EXPECT_LE(seen, most);
        EXPECT_EQ(present, 0U);
    }
}

TEST(PipeAsync, SeveralOperationsAreInProgressAtOnce) {
    // Each of the two operations waits for the other one.
    std::atomic<int> present = 0;
    const auto meet = [&](std::string_view) {
        return std::async(std::launch::async, [&] {
            ++present;
            while (present < 2)
                std::this_thread::yield();
            return std::make_unique<int>(present);
        });
    };
    EXPECT_EQ(ms::pipe(ms::memory{"a\nb\n"}).lines().map_async(2, meet).count(), 2U);
}

TEST(PipeAsync, OperationsAreInProgressOverBatches) {
    // Each of the three operations waits for the other ones, and each is for another batch.
    std::atomic<int> present = 0;
    const auto meet = [&](std::string_view) {
        return std::async(std::launch::async, [&] {
            ++present;
            while (present % 3 != 0)
                std::this_thread::yield();
            return int{present};
        });
    };
    EXPECT_EQ(ms::pipe(ms::memory{"a\nb\nc\n"}).lines().batch(1).map_async(3, meet).count(), 3U);
    std::vector<ms::stage<std::string_view, int>> boxed;
    boxed.push_back(ms::stages().map_async(3, meet).boxed("meet"));
    EXPECT_EQ(ms::pipe(ms::memory{"a\nb\nc\n"}).lines().batch(1).cut("before").then(std::move(boxed[0])).count(), 3U);
    EXPECT_EQ(present, 6);
}

TEST(PipeAsync, ResultsArePassedOnWhileTheSourceHasNoData) {
    // The command continues when it gets the result for its first line.
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ms::command waits{"sh", "-c", "echo one; read line; echo $line"};
    waits.stdin_from(ends[0]);
    const auto later = [](std::string_view line) {
        return std::async(std::launch::async, [line = std::string(line)] { return line + "!"; });
    };
    // Without `wait_for`, too.
    struct only_get {
        std::future<std::string> inner;
        std::string get() { return inner.get(); }
    };
    const auto later_too = [&](std::string_view line) { return only_get{later(line)}; };
    strings found;
    const auto answer = [&](std::string_view result) {
        found.emplace_back(result);
        if (found.size() == 1) {
            EXPECT_EQ(::write(ends[1], "two\n", 4), 4);
        }
    };
    ms::pipe(waits).lines().map_async(8, later).for_each(answer);
    EXPECT_EQ(found, (strings{"one!", "two!"}));
    found.clear();
    ms::pipe(waits).lines().map_async(8, later_too).for_each(answer);
    EXPECT_EQ(found, (strings{"one!", "two!"}));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(PipeAsync, ErrorsComeAfterTheResultsOfEarlierBatches) {
    const auto later = [](std::string_view line) { return std::async(std::launch::deferred, number, line); };
    // `line` refers to a batch that has ended, so the operation has a copy.
    const auto kept = [&](std::string_view line) {
        return std::async(std::launch::deferred, [line = std::string(line)] { return number(line); });
    };
    std::vector<std::uint64_t> found;
    const auto keep = [&](std::uint64_t n) { found.push_back(n); };
    // Of the source.
    auto failing = ms::pipe(ms::command{"sh", "-c", "seq 5; exit 3"}).lines().batch(1).map_async(8, kept);
    EXPECT_EQ(thrown_by([&] { failing.for_each(keep); }).code(), ms::errc::command_failed);
    EXPECT_EQ(found, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
    // Of the operation, of a stage before it, and of one after it; each names its own record.
    for (const char *where : {"operation", "before", "after"}) {
        found.clear();
        auto pipe =
            ms::pipe(ms::memory{"1\n2\n3\nx\n5\n6\n7\n8\n"}, {.name = "it"})
                .lines()
                .batch(1)
                .inspect([&](std::string_view line) {
                    if (where[0] == 'b' && line == "x")
                        throw std::runtime_error("before");
                })
                .map_async(3, [&](std::string_view line) { return kept(where[0] == 'a' && line == "x" ? "4" : line); })
                .inspect([&](std::uint64_t n) {
                    if (n == 4)
                        throw std::runtime_error("after");
                });
        EXPECT_THROW(pipe.for_each(keep), std::exception) << where;
        EXPECT_EQ(found, (std::vector<std::uint64_t>{1, 2, 3})) << where;
        ASSERT_NE(pipe.last_error(), nullptr);
        EXPECT_EQ(pipe.last_error()->record(), 3U) << where;
        EXPECT_EQ(pipe.last_error()->line(), 4U) << where;
        EXPECT_EQ(pipe.last_error()->offset(), 6U) << where;
        EXPECT_EQ(pipe.last_error()->name(), "it") << where;
    }
    // Skipped records, from the stages before and after, in their order, from several sources.
    for (const std::size_t most : {1U, 2U, 5U, 100U}) {
        std::vector<ms::reader> readers;
        readers.emplace_back(ms::memory{"1\nx\n3\nskip\ny\n6\n"});
        readers.emplace_back(ms::memory{"7\nz\nskip\n9\n"});
        ms::writer bad(ms::to_memory{});
        auto pipe = ms::merge(std::move(readers))
                        .lines()
                        .batch(2)
                        .quarantine(bad)
                        .inspect([](std::string_view line) {
                            if (line == "skip")
                                throw std::runtime_error("skip");
                        })
                        .map_async(most, kept);
        std::vector<std::uint64_t> all = pipe.collect();
        std::sort(all.begin(), all.end());
        EXPECT_EQ(all, (std::vector<std::uint64_t>{1, 3, 6, 7, 9}));
        EXPECT_EQ(pipe.summary().failed, 5U);
        bad.close();
        EXPECT_EQ(bad.memory(), "x\nz\nskip\nskip\ny\n") << most;
    }
    // A pipe that was cancelled loses nothing.
    ms::cancel_token token;
    found.clear();
    auto pipe = ms::pipe(ms::memory{"1\n2\n3\n4\n"}).lines().batch(1).cancel(token).map_async(2, kept);
    EXPECT_EQ(thrown_by([&] {
                  pipe.for_each([&](std::uint64_t n) {
                      found.push_back(n);
                      token.cancel();
                  });
              }).code(),
              ms::errc::cancelled);
    token.reset();
    pipe.for_each(keep);
    EXPECT_EQ(found, (std::vector<std::uint64_t>{1, 2, 3, 4}));
    // An end in the middle.
    EXPECT_EQ(ms::pipe(numbers(2'000)).lines().batch(7).take(1'000).map_async(9, later).take(500).count(), 500U);
    EXPECT_EQ(ms::pipe(numbers(2'000)).lines().batch(7).take(500).map_async(9, kept).count(), 500U);
}

TEST(PipeAsync, AnExceptionComesAfterAllEarlierResults) {
    for (const bool at_start : {true, false}) {
        for (const std::uint64_t bad : {0U, 1U, 777U, 1'999U}) {
            std::uint64_t next = 0;
            const auto fails = [bad](std::uint64_t n) {
                if (n >= bad)
                    throw std::out_of_range("too large");
                return n;
            };
            auto pipe = ms::pipe(numbers(2'000)).lines().map_async(4, [&](std::string_view line) {
                const std::uint64_t n = number(line);
                if (at_start)
                    fails(n);
                return std::async(std::launch::deferred, fails, n);
            });
            EXPECT_THROW(pipe.for_each([&](std::uint64_t n) { EXPECT_EQ(n, next++); }), std::out_of_range);
            EXPECT_EQ(next, bad);
            EXPECT_EQ(pipe.last_error()->record(), bad);
            EXPECT_EQ(thrown_by([&] { pipe.run(); }).code(), ms::errc::closed);
        }
    }
}

TEST(PipeAsync, RecordsAreSkippedAndThePipeEndsEarly) {
    ms::writer bad(ms::to_memory{});
    const auto later = [](std::string_view line) { return std::async(std::launch::deferred, number, line); };
    const strings all = ms::pipe(ms::memory{"1\nx\n2\ny\n3\n4\n"})
                            .lines()
                            .quarantine(bad)
                            .filter([](std::string_view line) { return line != "2"; })
                            .map_async(2, later)
                            .map([](std::uint64_t n) { return std::to_string(n); })
                            .take(2)
                            .collect();
    EXPECT_EQ(all, (strings{"1", "3"}));
    bad.close();
    EXPECT_EQ(bad.memory(), "x\ny\n");
    EXPECT_EQ(thrown_by([&] { (void)ms::pipe(ms::memory{""}).lines().map_async(0, later); }).code(),
              ms::errc::argument_invalid);
    EXPECT_EQ(ms::pipe(ms::memory{""}).lines().map_async(1, later).count(), 0U);
}

TEST(PipeParallel, SeveralThreadsCallTheFunctionsWithAllSignalsBlocked) {
    // Each of the two calls waits for the other one.
    std::atomic<int> present = 0;
    std::atomic<bool> blocked = true;
    const auto caller = std::this_thread::get_id();
    ms::pipe(ms::memory{"a\nb\n"})
        .lines()
        .parallel(2,
                  [&](auto stages) {
                      return std::move(stages).inspect([&](std::string_view) {
                          ++present;
                          while (present < 2)
                              std::this_thread::yield();
                          sigset_t now;
                          ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
                          if (std::this_thread::get_id() != caller && ::sigismember(&now, SIGTERM) != 1)
                              blocked = false;
                      });
                  })
        .run();
    EXPECT_EQ(present, 2);
    EXPECT_TRUE(blocked);
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    EXPECT_EQ(::sigismember(&now, SIGTERM), 0);
}

} // namespace
