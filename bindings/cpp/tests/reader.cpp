// Tests of readers: every source, bytes and records, ranges, and errors.

#include "millstream/reader.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

// clang++ 14 cannot compile the ranges of g++ 12's standard library.
#if !defined(__clang__) || __clang_major__ >= 16
#define HAS_VIEWS 1
#include <ranges>
#endif

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

static_assert(std::movable<ms::reader> && !std::copyable<ms::reader>);
static_assert(std::movable<ms::records> && !std::copyable<ms::records>);
static_assert(std::ranges::input_range<ms::records> && !std::ranges::forward_range<ms::records>);
static_assert(std::same_as<std::ranges::range_reference_t<ms::records>, std::string_view>);
static_assert(std::ranges::input_range<ms::batch_range>);
static_assert(ms::source<ms::path> && ms::source<const ms::command &> && ms::source<ms::memory &>);
static_assert(!ms::source<int> && !ms::source<const char *> && !ms::source<ms::reader>);

/// A file that is removed at the end of the test.
class temporary {
  public:
    explicit temporary(const std::string &name, const std::string &content = {})
        : path_(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-" + name)) {
        std::ofstream(path_, std::ios::binary) << content;
    }
    ~temporary() { std::filesystem::remove(path_); }
    temporary(const temporary &) = delete;
    temporary &operator=(const temporary &) = delete;
    const std::filesystem::path &path() const { return path_; }

  private:
    std::filesystem::path path_;
};

strings all(ms::records records) {
    strings lines;
    for (const std::string_view line : records)
        lines.emplace_back(line);
    return lines;
}

ms::command quiet(std::string_view script) {
    ms::command command{"sh", "-c", script};
    command.stderr_to(ms::stderr_to::capture);
    return command;
}

// ---- sources ----

TEST(Source, Path) {
    const temporary file("lines", "one\ntwo\r\nthr");
    EXPECT_EQ(all(ms::lines(ms::path{file.path()})), (strings{"one", "two", "thr"}));
    const ms::error error = error_of([] { ms::lines(ms::path{"/nonexistent/file"}); });
    EXPECT_EQ(error.code(), ms::errc::open_failed);
    EXPECT_EQ(error.name(), "/nonexistent/file");
    EXPECT_EQ(error.system_errno(), ENOENT);
}

TEST(Source, TextWithANulInsideIsRefused) {
    using std::string_literals::operator""s;
    EXPECT_EQ(error_of([] { ms::reader(ms::path{"a\0b"s}); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([] { ms::command{"echo", "a\0b"s}; }).code(), ms::errc::argument_invalid);
    std::error_code code;
    const ms::reader reader(ms::path{"a\0b"s}, code);
    EXPECT_EQ(code, ms::errc::argument_invalid);
    EXPECT_EQ(reader.last_error()->found(), "a NUL inside \"a...\"");
}

TEST(Source, Mapped) {
    const temporary file("mapped", "one\ntwo\n");
    EXPECT_EQ(all(ms::lines(ms::mapped{file.path()})), (strings{"one", "two"}));
}

TEST(Source, Descriptors) {
    const temporary file("fd", "one\ntwo\n");
    const int number = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(number, 0);
    EXPECT_EQ(all(ms::lines(ms::borrowed_fd{number})), (strings{"one", "two"}));
    ASSERT_EQ(::lseek(number, 0, SEEK_SET), 0) << "a borrowed descriptor stays open";
    EXPECT_EQ(all(ms::lines(ms::fd{number})), (strings{"one", "two"}));
    EXPECT_EQ(::fcntl(number, F_GETFD), -1) << "a given one is closed";
    EXPECT_EQ(error_of([&] { ms::reader(ms::fd{number}); }).code(), ms::errc::open_failed);
}

TEST(Source, ADescriptorThatWasGivenIsClosedWhateverFails) {
    const auto opened = [] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); };
    const auto is_open = [](int number) { return ::fcntl(number, F_GETFD) != -1; };
    using namespace std::string_literals;
    int number = opened();
    EXPECT_THROW(ms::reader(ms::fd{number}, {.name = "a\0b"s}), ms::error); // before the library is called
    EXPECT_FALSE(is_open(number));
    number = opened();
    EXPECT_THROW(ms::reader(ms::fd{number}, {.capacity = 0}), ms::error);
    EXPECT_FALSE(is_open(number));
    number = opened();
    EXPECT_THROW(ms::reader(ms::borrowed_fd{number}, {.name = "a\0b"s}), ms::error);
    EXPECT_TRUE(is_open(number));
    ::close(number);
}

TEST(Source, StandardInput) {
    const temporary file("stdin", "one\n");
    const int saved = ::dup(0);
    const int number = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(::dup2(number, 0), 0);
    EXPECT_EQ(all(ms::lines(ms::standard_input{})), strings{"one"});
    ::dup2(saved, 0);
    ::close(saved);
    ::close(number);
}

TEST(Source, Sockets) {
    const temporary place("socket");
    std::filesystem::remove(place.path());
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    place.path().native().copy(local.sun_path, sizeof local.sun_path - 1);
    sockaddr_in remote{};
    remote.sin_family = AF_INET;
    remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    /// Listens, sends two lines to the first client, and closes.
    const auto serve = [](int listener, auto &address, auto use) {
        socklen_t len = sizeof address;
        ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr *>(&address), len), 0);
        ASSERT_EQ(::listen(listener, 1), 0);
        ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &len), 0);
        std::thread server([listener] {
            const int connection = ::accept(listener, nullptr, nullptr);
            EXPECT_EQ(::write(connection, "one\ntwo\n", 8), 8);
            ::close(connection);
        });
        use();
        server.join();
        ::close(listener);
    };
    serve(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), local, [&] {
        EXPECT_EQ(all(ms::lines(ms::unix_socket{place.path()})), (strings{"one", "two"}));
    });
    serve(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), remote, [&] {
        const std::string address = "127.0.0.1:" + std::to_string(ntohs(remote.sin_port));
        EXPECT_EQ(all(ms::lines(ms::tcp{address})), (strings{"one", "two"}));
    });
}

TEST(Source, Memory) {
    const ms::memory kept{"one\ntwo\n"};
    EXPECT_EQ(all(ms::lines(kept)), (strings{"one", "two"}));
    EXPECT_EQ(all(ms::lines(ms::memory{std::string(100000, 'x')})), strings{std::string(100000, 'x')});
    const std::string text = "one\ntwo\n";
    ms::reader reader(ms::lent_memory{text});
    reader.fill();
    EXPECT_EQ(reader.buffer().data(), text.data()) << "no copy is made";
    EXPECT_EQ(all(ms::lines(ms::lent_memory{})), strings{});
}

TEST(Source, Commands) {
    EXPECT_EQ(all(ms::lines(ms::command{"printf", "%s\n", "a b", "$c"})), (strings{"a b", "$c"}));
    const strings words{"printf", "%s\n", "one"};
    EXPECT_EQ(all(ms::lines(ms::command(words).arg("two"))), (strings{"one", "two"}));
    EXPECT_EQ(all(ms::lines(ms::command{"sh", "-c", "echo $FIRST-$SECOND; pwd"}
                                .env_clear()
                                .env("FIRST", "1")
                                .env("SECOND", "2")
                                .env_remove("SECOND")
                                .current_dir("/"))),
              (strings{"1-", "/"}));
    EXPECT_EQ(all(ms::lines(ms::shell{"seq 3 | tail -n 1"})), strings{"3"});
    EXPECT_EQ(all(ms::lines(ms::pipeline(ms::command{"seq", "3"}, ms::command{"tail", "-n", "1"}))), strings{"3"});
    std::vector<ms::command> commands;
    commands.push_back(ms::command{"seq", "2"});
    EXPECT_EQ(all(ms::lines(ms::pipeline(std::move(commands)))), (strings{"1", "2"}));
    EXPECT_EQ(error_of([] { ms::reader(ms::command{"/nonexistent/program"}); }).code(), ms::errc::command_not_started);
    EXPECT_EQ(error_of([] { ms::reader(ms::command{}); }).code(), ms::errc::invalid_option);
}

TEST(Source, ACommandIsWaitedForByAnEventLoop) {
    ms::reader reader(ms::command{"echo", "one"});
    EXPECT_GE(reader.waits_for(), 0);
    while (reader.fill() > 0) {
    }
    EXPECT_EQ(reader.waits_for(), -1);
    EXPECT_EQ(ms::reader(ms::memory{"one"}).waits_for(), -1);
}

TEST(Source, KnowsWhetherItHasEnded) {
    ms::reader reader(ms::command{"echo", "one"});
    EXPECT_EQ(reader.next_line(), "one");
    EXPECT_FALSE(reader.has_ended());
    EXPECT_FALSE(reader.next_line());
    EXPECT_TRUE(reader.has_ended());
}

TEST(Source, AnEventLoopThatHasWaitedForTooLong) {
    ms::reader reader(ms::command{"sleep", "60"}, {.stall_timeout = std::chrono::minutes(1)});
    reader.stall();
    EXPECT_EQ(error_of([&] { reader.next_line(); }).code(), ms::errc::stalled);
}

TEST(Source, ACommandsStandardInput) {
    const temporary file("input", "from a file\n");
    const int number = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(all(ms::lines(ms::command{"cat"}.stdin_from(number))), strings{"from a file"});
    ::close(number);
    EXPECT_EQ(all(ms::lines(ms::command{"cat"}.stdin_from(ms::stdin_from::null))), strings{});
    EXPECT_EQ(all(ms::lines(ms::command{"cat"}.stdin_from(ms::path{file.path()}))), strings{"from a file"});
    EXPECT_EQ(error_of([&] { ms::reader(ms::command{"cat"}.stdin_from(ms::path{"/nowhere/none"})); }).code(),
              ms::errc::open_failed);
    EXPECT_EQ(error_of([&] { ms::command{"cat"}.stdin_from(number); }).code(), ms::errc::open_failed);
}

TEST(Source, ACommandsInputThatIsMadeWhileItRuns) {
    // More than fits into the pipes.
    strings numbers;
    for (int i = 0; i < 300'000; i++)
        numbers.push_back(std::to_string(i) + "\n");
    const auto count = [](ms::command &command) {
        std::size_t lines = 0;
        for (std::string_view line : ms::lines(command)) {
            EXPECT_EQ(line, std::to_string(lines++));
        }
        return lines;
    };
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(numbers)), numbers.size()) << "a range that exists elsewhere";
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(strings(numbers))), numbers.size()) << "a range that is moved";
    const std::array<const char *, 3> parts{"0", "", "\n1"};
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(parts)), 2U);
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(std::vector<std::string_view>())), 0U);
    EXPECT_EQ(count(ms::command{"head", "-n", "2"}.stdin_from(numbers)), 2U) << "it need not read all";
    int next = 0;
    const auto fill = [&](std::span<char> space) {
        return next == 1'000 ? 0 : std::to_string(next++).append("\n").copy(space.data(), space.size());
    };
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(ms::callback{fill})), 1'000U);

    const temporary file("stream", std::accumulate(numbers.begin(), numbers.end(), std::string()));
    std::ifstream stream(file.path());
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(stream)), numbers.size());
    std::istringstream text("0\n1");
    EXPECT_EQ(count(ms::command{"cat"}.stdin_from(text)), 2U);
    // Input that has arrived is passed on.
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    for (int end : ends)
        ::fcntl(end, F_SETFD, FD_CLOEXEC); // the command must not keep the pipe open
    std::ifstream waiting("/dev/fd/" + std::to_string(ends[0]));
    ASSERT_EQ(::write(ends[1], "0\n", 2), 2);
    ms::reader answers(ms::command{"cat"}.stdin_from(waiting));
    EXPECT_EQ(answers.next_line(), "0");
    ::close(ends[1]);
    EXPECT_EQ(answers.next_line(), std::nullopt);
    ::close(ends[0]);

    // An exception follows all output, whether or not the command fails.
    for (const char *line : {"cat", "cat; exit 3"}) {
        next = 0;
        ms::command failing{"sh", "-c", line};
        failing.stdin_from(ms::callback{
            [&](std::span<char> space) { return next == 3 ? throw std::out_of_range("mine") : fill(space); }});
        ms::reader reader(ms::pipeline(std::move(failing), ms::command{"cat"}));
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(reader.next_line(), std::to_string(i));
        }
        EXPECT_THROW(reader.next_line(), std::out_of_range);
    }
    ms::command used{"cat"};
    used.stdin_from(strings{"0\n"});
    EXPECT_EQ(count(used), 1U);
    EXPECT_EQ(error_of([&] { count(used); }).code(), ms::errc::argument_invalid);
}

// ---- callbacks ----

TEST(Callback, FillsTheReader) {
    const auto fill = [left = 3](std::span<char> space) mutable -> std::size_t {
        if (left-- == 0)
            return 0;
        space[0] = 'x';
        space[1] = '\n';
        return 2;
    };
    EXPECT_EQ(all(ms::lines(ms::callback{fill})), (strings{"x", "x", "x"}));
}

TEST(Callback, WhatItThrowsIsThrownByTheCall) {
    const auto fill = [first = true](std::span<char> space) mutable -> std::size_t {
        if (!std::exchange(first, false))
            throw std::out_of_range("enough");
        space[0] = 'a';
        space[1] = '\n';
        return 2;
    };
    ms::records lines = ms::lines(ms::callback{fill});
    EXPECT_EQ(lines.next(), "a");
    EXPECT_THROW(lines.next(), std::out_of_range);
    EXPECT_EQ(lines.next(), std::nullopt) << "reported once";

    ms::reader reader{ms::callback{fill}};
    ms::reader moved = std::move(reader);
    std::error_code code;
    EXPECT_EQ(moved.next_line(code), "a");
    EXPECT_FALSE(code);
    EXPECT_EQ(moved.next_line(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::io);
    ASSERT_NE(moved.callback_exception(), nullptr);
    EXPECT_THROW(std::rethrow_exception(moved.callback_exception()), std::out_of_range);
}

TEST(Callback, WhatItThrewIsNotThrownByACallThatFailsForAnotherReason) {
    ms::reader reader{ms::callback{[first = true](std::span<char> space) mutable -> std::size_t {
        if (!std::exchange(first, false))
            throw std::out_of_range("enough");
        std::ranges::copy(std::string_view("word\n"), space.begin());
        return 5;
    }}};
    reader.fill();
    std::error_code code;
    reader.fill(code);
    EXPECT_EQ(code, ms::errc::io);
    EXPECT_NE(reader.callback_exception(), nullptr);
    EXPECT_EQ(error_of([&] { reader.consume(99999); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(reader.callback_exception(), nullptr);
    EXPECT_EQ(reader.last_error()->code(), ms::errc::argument_invalid);
}

TEST(Callback, WhatItThrowsIsThrownByTheCallThatReportsIt) {
    ms::reader reader{ms::callback{[first = true](std::span<char> space) mutable -> std::size_t {
        if (!std::exchange(first, false))
            throw std::out_of_range("enough");
        std::ranges::copy(std::string_view("1 2 3"), space.begin());
        return 5;
    }}};
    EXPECT_EQ(reader.scan<int>(), 1);
    EXPECT_EQ(reader.scan<int>(), 2);
    EXPECT_THROW(reader.scan<int>(), std::out_of_range) << "the 3 may go on";
}

TEST(Callback, ThatSaysMoreThanItWasAskedForIsAnError) {
    ms::reader reader(ms::callback{[](std::span<char> space) { return space.size() + 1; }});
    EXPECT_THROW(reader.fill(), ms::error);
}

// ---- failures ----

TEST(Failure, OfACommandComesAfterAllItsLines) {
    strings lines;
    ms::records range = ms::lines(quiet("echo one; printf two; echo oops >&2; exit 3"));
    const ms::error error = error_of([&] {
        for (const std::string_view line : range)
            lines.emplace_back(line);
    });
    // The unterminated line is not a record; its bytes are still available, and the error shows them.
    EXPECT_EQ(lines, (strings{"one"}));
    const std::span<const char> rest = range.reader().buffer();
    EXPECT_EQ(std::string(rest.begin(), rest.end()), "two");
    EXPECT_NE(std::string(error.what()).find("two"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ms::errc::command_failed);
    ASSERT_NE(error.command(), nullptr);
    EXPECT_EQ(error.command()->argv[0], "sh");
    EXPECT_EQ(error.command()->status, ms::command_status::exited);
    EXPECT_EQ(error.command()->value, 3);
    EXPECT_EQ(error.command()->stderr_tail, "oops\n");
    EXPECT_EQ(error.offset(), 7U);
    EXPECT_NE(std::string(error.what()).find("exited with status 3"), std::string::npos) << error.what();
}

TEST(Failure, IsReportedAgainByClose) {
    ms::reader reader(quiet("echo one; exit 3"));
    EXPECT_EQ(error_of([&] {
                  while (reader.next_line()) {
                  }
              }).code(),
              ms::errc::command_failed);
    EXPECT_EQ(reader.next_line(), std::nullopt);
    EXPECT_EQ(error_of([&] { reader.close(); }).code(), ms::errc::command_failed);
}

TEST(Failure, IsNoneOfASourceThatIsReadNoFurther) {
    // The command may or may not have failed by then, so this is repeated.
    for (int i = 0; i < 200; ++i) {
        ms::reader reader(quiet("seq 2; exit 3"));
        EXPECT_EQ(reader.next_line(), "1");
        if (i % 4 == 0)
            ::usleep(3000);
        EXPECT_NO_THROW(reader.close());
    }
}

TEST(Failure, OfAPipelinesMemberByABrokenPipeIsNone) {
    EXPECT_EQ(all(ms::lines(ms::pipeline(ms::command{"yes"}, ms::command{"head", "-n", "3"}))),
              (strings{"y", "y", "y"}));
    EXPECT_EQ(all(ms::lines(ms::pipeline(ms::command{"sh", "-c", "exit 141"}, ms::command{"echo", "x"}))),
              strings{"x"});
    EXPECT_EQ(error_of([] {
                  all(ms::lines(ms::pipeline(ms::command{"yes"}, ms::command{"sh", "-c", "exit 3"})));
              }).code(),
              ms::errc::command_failed);
}

TEST(Failure, OfAKilledCommand) {
    ms::records lines = ms::lines(quiet("echo one; kill -KILL $$"));
    EXPECT_EQ(lines.next(), "one");
    const ms::error error = error_of([&] { lines.next(); });
    EXPECT_EQ(error.command()->status, ms::command_status::signaled);
    EXPECT_EQ(error.command()->value, SIGKILL);
    ASSERT_EQ(lines.reader().command_ends().size(), 1U);
    EXPECT_EQ(lines.reader().command_ends()[0].value, SIGKILL);
    EXPECT_EQ(lines.next(), std::nullopt) << "reported once, then a plain end";
}

TEST(Failure, ThatIsAllowedIsNone) {
    ms::command command = quiet("echo one; exit 3");
    command.allow_failure();
    ms::reader reader(command);
    EXPECT_EQ(reader.next_line(), "one");
    EXPECT_EQ(reader.next_line(), std::nullopt);
    reader.close();
    ASSERT_EQ(reader.command_ends().size(), 1U);
    EXPECT_EQ(reader.command_ends()[0].value, 3);
    EXPECT_FALSE(reader.command_ends()[0].success());
}

TEST(Failure, IsWhatTheListsOfSuccessesExclude) {
    ms::command command = quiet("read line; echo $line; exit $line");
    command.success_statuses({0, 3}).success_signals({9}).stdin_from("3\n");
    ms::reader reader(command);
    EXPECT_EQ(reader.next_line(), "3");
    EXPECT_EQ(reader.next_line(), std::nullopt);
    ms::reader failing(command.stdin_from("4\n"));
    EXPECT_EQ(failing.next_line(), "4");
    std::error_code code;
    failing.next_line(code);
    EXPECT_EQ(code, ms::errc::command_failed);
}

TEST(Failure, HasAsMuchOfStandardErrorAsIsKept) {
    ms::command command{"sh", "-c", "echo 12345 >&2; exit 3"};
    ms::reader reader(command.stderr_to(ms::stderr_to::capture).stderr_limit(3));
    std::error_code code;
    reader.next_line(code);
    EXPECT_EQ(code, ms::errc::command_failed);
    ASSERT_EQ(reader.command_ends().size(), 1U);
    EXPECT_EQ(reader.command_ends()[0].stderr_tail, "45\n");
}

TEST(Failure, ToEndInTime) {
    ms::command command = quiet("trap '' TERM; exec sleep 60");
    command.stop_signal(2).stop_grace(std::chrono::nanoseconds(0)).process_group(ms::process_group::own);
    ms::reader reader(command, {.total_timeout = std::chrono::milliseconds(50)});
    EXPECT_LE(reader.wait_limit(), std::chrono::milliseconds(50));
    std::error_code code;
    reader.next_line(code);
    EXPECT_EQ(code, ms::errc::timed_out);
    EXPECT_EQ(code, std::errc::timed_out);
    EXPECT_EQ(ms::reader(ms::memory{"one"}).wait_limit(), std::chrono::nanoseconds::max());
}

TEST(Failure, OfATruncatedGzipFile) {
    std::string compressed;
    for (ms::reader gzip(ms::shell{"seq 1000 | gzip"}, {.decode = ms::decode::off}); gzip.fill() > 0;) {
        const std::span<const char> bytes = gzip.buffer();
        compressed.append(bytes.data(), bytes.size());
        gzip.consume(bytes.size());
    }
    const temporary whole("whole.gz", compressed);
    EXPECT_EQ(all(ms::lines(ms::path{whole.path()})).size(), 1000U);
    const temporary cut("cut.gz", compressed.substr(0, compressed.size() / 2));
    ms::records lines = ms::lines(ms::path{cut.path()});
    const ms::error error = error_of([&] {
        for (const std::string_view line : lines)
            EXPECT_FALSE(line.empty());
    });
    EXPECT_EQ(error.code(), ms::errc::decode_truncated);
    EXPECT_EQ(error.name(), cut.path());
}

TEST(Failure, OfARecordThatIsTooLongCanBeSkipped) {
    const std::string input = "one\n" + std::string(1000, 'x') + "\ntwo\n";
    ms::records lines = ms::lines(ms::memory{input}, {.record_limit = 100});
    strings found;
    for (bool done = false; !done;) {
        try {
            for (const std::string_view line : lines)
                found.emplace_back(line);
            done = true;
        } catch (const ms::error &error) {
            ASSERT_EQ(error.code(), ms::errc::record_too_long);
            ASSERT_TRUE(ms::is_resumable(error.kind()));
            EXPECT_EQ(error.record(), 1U);
            EXPECT_TRUE(lines.skip_record());
        }
    }
    EXPECT_EQ(found, (strings{"one", "two"}));
    EXPECT_EQ(lines.position().records, 3U);

    ms::records again = ms::lines(ms::memory{input}, {.record_limit = 100});
    std::error_code code;
    EXPECT_EQ(again.next(code), "one");
    EXPECT_EQ(again.next(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::record_too_long);
    EXPECT_TRUE(again.skip_record(code));
    EXPECT_FALSE(code);
    EXPECT_EQ(again.next(code), "two");
}

TEST(Failure, IsToldByACode) {
    std::error_code code = ms::errc::internal;
    ms::reader reader(quiet("echo one; exit 3"), code);
    EXPECT_FALSE(code);
    EXPECT_EQ(reader.last_error(), nullptr);
    EXPECT_EQ(reader.next_line(code), "one");
    EXPECT_FALSE(code);
    EXPECT_EQ(reader.next_line(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::command_failed);
    ASSERT_NE(reader.last_error(), nullptr);
    EXPECT_EQ(reader.last_error()->command()->value, 3);
    EXPECT_EQ(reader.next_line(code), std::nullopt);
    EXPECT_FALSE(code);

    ms::reader nothing(ms::path{"/nonexistent/file"}, code);
    EXPECT_EQ(code, ms::errc::open_failed);
    EXPECT_EQ(nothing.last_error()->system_errno(), ENOENT);
    EXPECT_FALSE(nothing);
    EXPECT_EQ(nothing.fill(code), 0U);
    EXPECT_EQ(code, ms::errc::argument_invalid);

    ms::records lines = ms::lines(ms::reader(quiet("echo one; exit 3")));
    EXPECT_EQ(lines.next(code), "one");
    EXPECT_FALSE(code);
    EXPECT_EQ(lines.next(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::command_failed);
}

TEST(Failure, OfAnOptionIsAnError) {
    EXPECT_EQ(error_of([] { ms::reader(ms::memory{}, {.capacity = 0}); }).code(), ms::errc::invalid_option);
    for (const auto time : {std::chrono::seconds(0), std::chrono::seconds(-1)})
        EXPECT_EQ(error_of([=] { ms::reader(ms::memory{}, {.stall_timeout = time}); }).code(),
                  ms::errc::invalid_option);
    const auto unknown = static_cast<ms::decode>(77);
    EXPECT_EQ(error_of([=] { ms::reader(ms::memory{}, {.decode = unknown}); }).code(), ms::errc::invalid_option);
}

TEST(Failure, HasTheWordsOfTheLibrarysTable) {
    std::uint32_t code = 1;
    for (; millstream_code_name(static_cast<millstream_code>(code)) != nullptr; ++code) {
        SCOPED_TRACE(code);
        const auto number = static_cast<millstream_code>(code);
        EXPECT_EQ(ms::detail::text_of(static_cast<int>(code)).name, std::string_view(millstream_code_name(number)));
        EXPECT_EQ(ms::detail::text_of(static_cast<int>(code)).advice, std::string_view(millstream_code_advice(number)));
        EXPECT_EQ(ms::is_resumable(static_cast<ms::errc>(code)), millstream_code_is_resumable(number));
    }
    EXPECT_EQ(code - 1, ms::detail::kind_texts.size());
    // The library creates messages with the same wording.
    const ms::error error = error_of([] { ms::reader(ms::path{"/nonexistent/file"}); });
    ms::error_details details;
    details.kind = error.kind();
    details.name = error.name();
    details.system_errno = error.system_errno();
    EXPECT_STREQ(ms::error(details).what(), error.what());
}

// ---- bytes ----

TEST(Reader, GivesBytes) {
    ms::reader reader(ms::memory{"one two three"});
    EXPECT_TRUE(reader.buffer().empty());
    EXPECT_EQ(reader.fill(), 13U);
    EXPECT_EQ(std::string_view(reader.buffer().data(), 3), "one");
    reader.consume(4);
    EXPECT_EQ(reader.position().bytes, 4U);
    char space[4];
    EXPECT_EQ(reader.read(space), 4U);
    EXPECT_EQ(std::string_view(space, 4), "two ");
    EXPECT_EQ(error_of([&] { reader.consume(6); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([&] { reader.read({}); }).code(), ms::errc::argument_invalid);
    reader.consume(5);
    EXPECT_EQ(reader.fill(), 0U);
    std::error_code code = ms::errc::internal;
    EXPECT_EQ(reader.read(space, code), 0U);
    EXPECT_FALSE(code);
}

TEST(Reader, GivesRecordsOneAtATime) {
    ms::reader reader(ms::memory{"one\ntwo;3,4;\n\nlast"});
    EXPECT_EQ(reader.next_line(), "one");
    EXPECT_EQ(reader.read_until(';'), "two");
    ms::framer commas = ms::framer::delimiter(",");
    EXPECT_EQ(reader.next_frame(commas), "3");
    EXPECT_TRUE(reader.skip_record(commas));
    EXPECT_EQ(reader.next_line(), std::nullopt);
    EXPECT_FALSE(reader.skip_record(commas));
    EXPECT_EQ(reader.position().records, 4U);
    ms::reader waiting(ms::command{"echo", "1,2"});
    while (!waiting.skip_buffered(commas))
        waiting.fill();
    EXPECT_EQ(waiting.next_line(), "2");
    std::error_code code;
    EXPECT_FALSE(waiting.skip_buffered(commas, code));
    EXPECT_FALSE(code);
    ms::reader empty(ms::memory{"\n"});
    EXPECT_EQ(empty.next_line(), "") << "an empty line is not the end";
    EXPECT_EQ(empty.next_line(), std::nullopt);
}

TEST(Reader, Moves) {
    ms::reader first(ms::memory{"one\ntwo\n"}, {.name = "my bytes"});
    EXPECT_EQ(first.next_line(), "one");
    ms::reader second = std::move(first);
    EXPECT_EQ(second.next_line(), "two");
    EXPECT_EQ(second.name(), "my bytes");
    EXPECT_FALSE(first); // NOLINT: that is what is tested
    EXPECT_EQ(first.name(), "");
    EXPECT_EQ(error_of([&] { first.next_line(); }).code(), ms::errc::argument_invalid);
    first = ms::reader(ms::memory{"three\n"});
    EXPECT_EQ(first.next_line(), "three");
}

TEST(Reader, GivesAColumnOfEachLine) {
    ms::reader reader(ms::memory{"ann 31 0.5\nbob x1\neve\n\n zoe  7"}, {.name = "people"});
    EXPECT_EQ(reader.next_column<int>(1), 31);
    const ms::error error = error_of([&] { reader.next_column<long>(1); });
    EXPECT_EQ(std::string(error.what()).substr(0, 41), "people: number invalid: found x1, expecte");
    EXPECT_EQ(error.line(), 2U);
    EXPECT_EQ(error.column(), 5U);
    EXPECT_EQ(error.offset(), 15U);
    std::error_code code;
    EXPECT_EQ(reader.next_column<float>(1, std::nullopt, code), std::nullopt);
    EXPECT_EQ(code, ms::errc::value_missing);
    EXPECT_EQ(error_of([&] { reader.next_column<double>(0); }).code(), ms::errc::value_missing);
    EXPECT_EQ(reader.next_column<std::uint64_t>(1), 7U);
    EXPECT_EQ(reader.next_column<std::uint32_t>(1), std::nullopt);
    ms::reader fields(ms::memory{"a,,3\n"});
    EXPECT_EQ(fields.next_column<int>(2, ','), 3);

    EXPECT_EQ(ms::column<unsigned>("a,b;7", 1, ';'), 7U);
    EXPECT_EQ(ms::column<double>("a  0.25 c", 1), 0.25);
    EXPECT_EQ(error_of([&] { ms::column<int>("a 99999999999", 1); }).code(), ms::errc::number_overflow);
    EXPECT_EQ(error_of([&] { ms::column<int>("a", 1); }).code(), ms::errc::value_missing);
}

TEST(Reader, Closes) {
    ms::reader reader(ms::command{"yes"});
    EXPECT_EQ(reader.next_line(), "y");
    reader.close();
    EXPECT_EQ(reader.position().records, 1U);
    ASSERT_EQ(reader.command_ends().size(), 1U);
    EXPECT_EQ(reader.command_ends()[0].status, ms::command_status::signaled);
    EXPECT_EQ(error_of([&] { reader.close(); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { reader.next_line(); }).code(), ms::errc::closed);
}

TEST(Reader, TellsHowItGetsOn) {
    std::vector<std::uint64_t> heard;
    const temporary file("progress", "one\ntwo\n");
    ms::reader reader(ms::path{file.path()}, {.observer = [&](const ms::progress &at) { heard.push_back(at.bytes); }});
    ms::reader moved = std::move(reader);
    while (moved.next_line()) {
    }
    const ms::progress progress = moved.progress();
    EXPECT_EQ(progress.bytes, 8U);
    EXPECT_EQ(progress.records, 2U);
    EXPECT_EQ(progress.source_bytes, 8U);
    EXPECT_EQ(progress.source_size, 8U);
    EXPECT_EQ(progress.format, ms::format::none);
    EXPECT_GT(progress.elapsed.count(), 0);
    EXPECT_EQ(progress.longest_record, 4U);
    ASSERT_FALSE(heard.empty());
    EXPECT_EQ(heard.back(), 8U);
}

TEST(Reader, TakesEveryOption) {
    const ms::cancel_token token;
    ms::reader reader(ms::memory{"one\n"}, {.capacity = 4096,
                                            .read_ahead = ms::read_ahead::off,
                                            .read_ahead_capacity = std::pair{1U << 20, 1U << 22},
                                            .latency = ms::latency::low,
                                            .record_limit = 100,
                                            .decode = ms::decode::automatic,
                                            .decode_limit = 1000,
                                            .decode_ratio = 10,
                                            .decode_memory = 1U << 20,
                                            .stall_timeout = std::chrono::seconds(10),
                                            .follow = ms::follow::no,
                                            .pin = ms::pin::content,
                                            .cancel = &token,
                                            .name = "all of them"});
    EXPECT_EQ(reader.next_line(), "one");
    EXPECT_EQ(reader.name(), "all of them");
}

TEST(Reader, IsCancelledAndGoesOn) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const ms::cancel_token token;
    ms::reader reader(ms::fd{pipe[0]}, {.cancel = &token});
    std::thread other([&] { token.cancel(); });
    const ms::error error = error_of([&] { reader.next_line(); });
    other.join();
    EXPECT_EQ(error.code(), std::errc::operation_canceled);
    EXPECT_TRUE(token.is_cancelled());
    token.reset();
    EXPECT_FALSE(token.is_cancelled());
    ASSERT_EQ(::write(pipe[1], "one\n", 4), 4);
    EXPECT_EQ(reader.next_line(), "one");
    ::close(pipe[1]);
    EXPECT_EQ(reader.next_line(), std::nullopt);
}

TEST(Reader, StallsAreErrors) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ms::reader reader(ms::fd{pipe[0]}, {.stall_timeout = std::chrono::milliseconds(20)});
    EXPECT_EQ(error_of([&] { reader.fill(); }).code(), ms::errc::stalled);
    ::close(pipe[1]);
}

// ---- numbers and words ----

TEST(Scan, GivesNumbersAndWords) {
    ms::reader reader(ms::memory{"1 -2\n3 4.5 word  and the rest \nnext line\n 7"});
    EXPECT_EQ((reader.scan<unsigned, long long>()), (std::tuple(1U, -2LL)));
    EXPECT_EQ(reader.scan<std::int32_t>(), 3);
    EXPECT_EQ(reader.scan<double>(), 4.5);
    EXPECT_EQ(reader.next_word(), "word");
    EXPECT_EQ(reader.position().bytes, 15U);
    EXPECT_EQ(reader.rest_of_line(), "and the rest ");
    EXPECT_EQ(reader.next_line(), "next line") << "what was scanned is consumed";
    EXPECT_EQ(reader.scan<std::uint64_t>(), 7U);
    EXPECT_EQ(reader.scan<std::uint64_t>(), std::nullopt);
    EXPECT_EQ(reader.next_word(), std::nullopt);
    EXPECT_EQ(reader.rest_of_line(), std::nullopt);
}

TEST(Scan, ReportsWhatIsNoNumberUntilItIsTaken) {
    ms::reader reader(ms::memory{"1\n12x 5000000000 2"});
    EXPECT_EQ(reader.scan<int>(), 1);
    for (int again = 0; again < 2; ++again) {
        const ms::error error = error_of([&] { reader.scan<int>(); });
        EXPECT_EQ(error.code(), ms::errc::number_invalid);
        EXPECT_EQ(error.found(), "12x");
        EXPECT_EQ(error.offset(), 2U);
    }
    EXPECT_EQ(reader.next_word(), "12x");
    std::error_code code;
    EXPECT_EQ(reader.scan<int>(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::number_overflow);
    EXPECT_EQ(reader.last_error()->found(), "5000000000");
    EXPECT_EQ(reader.scan<std::int64_t>(code), 5000000000);
    EXPECT_FALSE(code);
    const ms::error missing = error_of([&] { reader.scan<int, int>(); });
    EXPECT_EQ(missing.code(), ms::errc::value_missing);
}

TEST(Scan, TakesListsWithADelimiter) {
    ms::reader reader(ms::memory{"1,2\n3"});
    EXPECT_EQ(reader.scan_delimited<int>(','), 1);
    EXPECT_EQ(reader.scan_delimited<int>(','), 2);
    EXPECT_EQ(reader.scan_delimited<int>(','), 3);
    EXPECT_EQ(reader.scan_delimited<int>(','), std::nullopt);
    ms::reader wrong(ms::memory{"1,x"});
    EXPECT_EQ(wrong.scan_delimited<int>(','), 1);
    EXPECT_EQ(error_of([&] { wrong.scan_delimited<int>(','); }).code(), ms::errc::number_invalid);
}

TEST(Scan, GoesOnInAMovedReader) {
    ms::reader first(ms::memory{"1 2 3"});
    EXPECT_EQ(first.scan<int>(), 1);
    ms::reader second = std::move(first);
    EXPECT_EQ(second.scan<int>(), 2);
    first = std::move(second);
    EXPECT_EQ(first.scan<int>(), 3);
    EXPECT_EQ(error_of([&] { second.scan<int>(); }).code(), ms::errc::argument_invalid);
}

TEST(Values, AreARange) {
    static_assert(std::ranges::input_range<ms::value_range<int>>);
    ms::reader reader(ms::command{"seq", "200000"});
    std::uint64_t sum = 0;
    for (const std::uint64_t value : reader.values<std::uint64_t>())
        sum += value;
    EXPECT_EQ(sum, 200000ULL * 200001 / 2);
    EXPECT_EQ(reader.position().bytes, 1288895U);

    ms::reader pairs(ms::memory{"1 0.5 2 0.25"});
    double product = 0;
    for (const auto &[factor, value] : pairs.values<int, double>())
        product += factor * value;
    EXPECT_EQ(product, 1.0);

    ms::reader failing(quiet("echo 1 2; exit 3"));
    std::vector<int> values;
    EXPECT_EQ(error_of([&] {
                  for (const int value : failing.values<int>())
                      values.push_back(value);
              }).code(),
              ms::errc::command_failed);
    EXPECT_EQ(values, (std::vector<int>{1, 2}));
}

// ---- ranges ----

TEST(Lines, GoOnBehindTheLastOne) {
    ms::records lines = ms::lines(ms::memory{"head\n\nbody\nend\n"});
    for (const std::string_view line : lines)
        if (line.empty())
            break;
    EXPECT_EQ(lines.position().bytes, 6U);
    EXPECT_EQ(lines.position().records, 2U);
    EXPECT_TRUE(lines.skip_record());
    strings rest;
    for (const std::string_view line : lines)
        rest.emplace_back(line);
    EXPECT_EQ(rest, strings{"end"});
    EXPECT_EQ(lines.position().records, 4U);
    EXPECT_FALSE(lines.skip_record());
    std::error_code code = ms::errc::internal;
    EXPECT_FALSE(lines.skip_record(code));
    EXPECT_FALSE(code);
}

TEST(Lines, TheirReaderGoesOnBehindTheLastOne) {
    ms::records lines = ms::lines(ms::memory{"head\na\nb\nc\nd\n"});
    for (const std::string_view line : lines)
        if (line == "head")
            break;
    EXPECT_EQ(lines.reader().next_line(), "a");
    EXPECT_EQ(lines.next(), "b");
    EXPECT_EQ(lines.position().records, 3U);
    EXPECT_EQ(lines.reader().position().records, 3U);
    EXPECT_EQ(lines.next(), "c");
    EXPECT_EQ(lines.reader().buffer().size(), 2U);
    EXPECT_EQ(lines.next(), "d");
    EXPECT_EQ(lines.next(), std::nullopt);
}

TEST(Lines, GoOnInARangeThatTheyMovedTo) {
    ms::records first = ms::lines(ms::memory{"1\n2\n3\n4\n"});
    EXPECT_EQ(first.next(), "1");
    ms::records second = std::move(first);
    EXPECT_EQ(second.next(), "2");
    EXPECT_EQ(error_of([&] { first.next(); }).code(), ms::errc::argument_invalid); // NOLINT: that is what is tested
    EXPECT_EQ(first.position().records, 0U);
    first = std::move(second);
    EXPECT_EQ(first.next(), "3");
    EXPECT_EQ(error_of([&] { second.next(); }).code(), ms::errc::argument_invalid); // NOLINT: as above
    first = ms::lines(ms::memory{"other\n"});
    EXPECT_EQ(first.next(), "other");
    EXPECT_EQ(first.next(), std::nullopt);
}

TEST(Lines, OfAReaderBeginWhereItIs) {
    ms::reader reader(ms::memory{"head\nbody\nend\n"});
    EXPECT_EQ(reader.next_line(), "head");
    EXPECT_EQ(all(ms::lines(std::move(reader))), (strings{"body", "end"}));
}

TEST(Lines, AreAllThere) {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    for (const std::string_view line : ms::lines(ms::command{"seq", "200000"})) {
        sum += std::stoull(std::string(line));
        ++count;
    }
    EXPECT_EQ(count, 200000U);
    EXPECT_EQ(sum, 200000ULL * 200001 / 2);
}

TEST(Frames, AreFoundByAFramer) {
    EXPECT_EQ(all(ms::frames(ms::memory{"a;b;c"}, ms::framer::delimiter(";"))), (strings{"a", "b", "c"}));
    EXPECT_EQ(all(ms::frames(ms::reader(ms::memory{"aabbcc"}), ms::framer::fixed(2))), (strings{"aa", "bb", "cc"}));
    EXPECT_EQ(all(ms::frames(ms::memory{"a\r\nb\n"}, ms::framer::lines(ms::delimited::untrimmed))),
              (strings{"a\r\n", "b\n"}));
}

TEST(Batches, CoverTheStream) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    for (const ms::batch &batch : ms::batches(ms::command{"seq", "100000"}, ms::framer::lines(), 1000)) {
        EXPECT_LE(batch.size(), 1000U);
        EXPECT_EQ(batch.first_record(), count);
        EXPECT_EQ(batch.offset(), bytes);
        count += batch.size();
        bytes += batch.offsets().back() - batch.offsets().front();
    }
    EXPECT_EQ(count, 100000U);
    EXPECT_EQ(bytes, 588895U);
    ms::batch_range failing = ms::batches(ms::reader(quiet("echo one; exit 3")), ms::framer::lines());
    std::error_code code;
    EXPECT_EQ(failing.next(code)->size(), 1U);
    EXPECT_EQ(failing.next(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::command_failed);
    EXPECT_EQ(failing.reader().position().records, 1U);
}

#ifdef HAS_VIEWS
TEST(Lines, WorkWithViews) {
    auto lines = ms::lines(ms::memory{"1\n\n22\n333\n4444\n"});
    std::vector<std::size_t> lengths;
    for (const std::size_t length : lines | std::views::filter([](auto line) { return !line.empty(); }) |
                                        std::views::transform([](auto line) { return line.size(); }) |
                                        std::views::take(3))
        lengths.push_back(length);
    EXPECT_EQ(lengths, (std::vector<std::size_t>{1, 2, 3}));

    strings dropped;
    for (const std::string_view line : ms::lines(ms::command{"seq", "5"}) | std::views::drop(3))
        dropped.emplace_back(line);
    EXPECT_EQ(dropped, (strings{"4", "5"}));
}

TEST(Lines, ThrowThroughViews) {
    auto lines = ms::lines(quiet("seq 3; exit 3")) | std::views::transform([](auto line) { return line.size(); });
    std::size_t count = 0;
    EXPECT_EQ(error_of([&] {
                  for (const std::size_t length : lines)
                      count += length;
              }).code(),
              ms::errc::command_failed);
    EXPECT_EQ(count, 3U);
}
#endif

} // namespace
