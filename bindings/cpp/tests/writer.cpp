// Tests of writers: every sink, bytes and text, and errors.

#include "millstream/writer.hpp"
#include "millstream/reader.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace ms = millstream;

namespace {

static_assert(std::movable<ms::writer> && !std::copyable<ms::writer>);
static_assert(ms::sink<ms::path> && ms::sink<ms::to_memory> && ms::sink<const ms::command &>);
static_assert(!ms::sink<ms::memory> && !ms::sink<int> && !ms::sink<ms::writer>);

/// A path for a file that is removed at the end of the test.
class temporary {
  public:
    explicit temporary(const std::string &name)
        : path_(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-" + name)) {}
    ~temporary() { std::filesystem::remove(path_); }
    temporary(const temporary &) = delete;
    temporary &operator=(const temporary &) = delete;
    const std::filesystem::path &path() const { return path_; }
    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    std::filesystem::path path_;
};

// ---- sinks ----

TEST(Sink, APathAppearsWhenTheWriterIsClosed) {
    const temporary file("whole");
    ms::writer writer(ms::path{file.path()});
    writer.write("one\n").print("two", '\n');
    EXPECT_FALSE(std::filesystem::exists(file.path()));
    const ms::writer_end end = writer.close();
    EXPECT_EQ(end.bytes, 8U);
    EXPECT_EQ(end.written, 8U);
    EXPECT_TRUE(end.commands.empty());
    EXPECT_EQ(file.content(), "one\ntwo\n");
    EXPECT_EQ(writer.name(), file.path());

    { ms::writer(ms::path{file.path()}).print("never closed"); }
    EXPECT_EQ(file.content(), "one\ntwo\n") << "and not otherwise";
    ms::writer more(ms::path{file.path()}, {.existing = ms::existing::append});
    more.print(3).close();
    EXPECT_EQ(file.content(), "one\ntwo\n3");
    { ms::writer(ms::path{file.path()}, {.partial = ms::partial::keep}).print("kept"); }
    EXPECT_EQ(file.content(), "kept");
}

TEST(Sink, AMappedFileHasItsTrueLength) {
    const temporary file("mapped");
    ms::writer writer(ms::mapped{file.path()}, {.durability = ms::durability::data});
    writer.print("one\n").close();
    EXPECT_EQ(file.content(), "one\n");
}

TEST(Sink, APipeIsLentPages) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ms::writer writer(ms::fd{pipe[1]}, {.lend_pages = ms::lend_pages::consumer_copies});
    writer.print("one\n").flush();
    EXPECT_EQ(ms::reader(ms::fd{pipe[0]}).next_line(), "one");
}

TEST(Sink, APathIsCompressedByItsName) {
    const temporary file("numbers.gz");
    ms::writer writer(ms::path{file.path()}, {.level = 9});
    for (int i = 0; i < 1000; ++i)
        writer.println(i);
    const ms::writer_end end = writer.close();
    EXPECT_EQ(end.bytes, 3890U);
    EXPECT_LT(end.written, end.bytes);
    int next = 0;
    for (const std::string_view line : ms::lines(ms::path{file.path()}))
        EXPECT_EQ(line, std::to_string(next++));
    EXPECT_EQ(next, 1000);
}

TEST(Sink, Descriptors) {
    const temporary file("fd");
    const int number = ::open(file.path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ms::writer(ms::borrowed_fd{number}).print("one\n").close();
    EXPECT_NE(::fcntl(number, F_GETFD), -1) << "a borrowed descriptor stays open";
    (void)ms::writer(ms::fd{number}).print("two\n").close();
    EXPECT_EQ(::fcntl(number, F_GETFD), -1) << "a given one is closed";
    EXPECT_EQ(file.content(), "one\ntwo\n");
    EXPECT_EQ(error_of([&] { (void)ms::writer(ms::fd{number}); }).code(), ms::errc::open_failed);
}

TEST(Sink, ADescriptorThatWasGivenIsClosedWhateverFails) {
    const int number = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    EXPECT_THROW((void)ms::writer(ms::fd{number}, {.name = std::string(1, '\0')}), ms::error);
    EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(Sink, StandardOutput) {
    const temporary file("stdout");
    const int saved = ::dup(1);
    const int number = ::open(file.path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(::dup2(number, 1), 0);
    ms::writer(ms::standard_output{}).print("to standard output\n").close();
    ::dup2(saved, 1);
    ::close(saved);
    ::close(number);
    EXPECT_EQ(file.content(), "to standard output\n");
}

TEST(Sink, Commands) {
    const temporary file("sorted");
    ms::writer writer(ms::command{"sort", "-n", "-o", file.path().string()});
    writer.print(10, '\n', 9, '\n');
    const ms::writer_end end = writer.close();
    EXPECT_EQ(file.content(), "9\n10\n");
    ASSERT_EQ(end.commands.size(), 1U);
    EXPECT_TRUE(end.commands[0].success());

    const int number = ::open(file.path().c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    ms::writer copy(ms::command{"cat"}.stdout_to(number));
    copy.print("copied");
    copy.close();
    ::close(number);
    EXPECT_EQ(file.content(), "copied");
    ms::writer(ms::command{"cat"}.stdout_to(ms::stdout_to::null)).print("this is discarded\n").close();
}

TEST(Sink, Sockets) {
    const temporary place("socket");
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    place.path().native().copy(local.sun_path, sizeof local.sun_path - 1);
    sockaddr_in remote{};
    remote.sin_family = AF_INET;
    remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The connection buffers the data until it is accepted, and the writer does not wait until the peer closes, so
    // one thread is sufficient.
    const ms::writer_options options{.linger = std::chrono::nanoseconds(0)};
    const auto serve = [](int listener, auto &address, auto write) {
        socklen_t len = sizeof address;
        ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr *>(&address), len), 0);
        ASSERT_EQ(::listen(listener, 1), 0);
        ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &len), 0);
        write();
        EXPECT_EQ(ms::lines(ms::fd{::accept(listener, nullptr, nullptr)}).next(), "hello");
        ::close(listener);
    };
    serve(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), local,
          [&] { ms::writer(ms::unix_socket{place.path()}, options).print("hello\n").close(); });
    serve(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), remote, [&] {
        const ms::tcp peer{"127.0.0.1:" + std::to_string(ntohs(remote.sin_port))};
        ms::writer(peer, options).print("hello\n").close();
    });
    EXPECT_EQ(error_of([&] { (void)ms::writer(ms::to_memory{}, options); }).code(), ms::errc::invalid_option);
}

TEST(Sink, ThatIsGivenUpIsNotWaitedFor) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ms::writer writer(ms::fd{ends[1]}, {.capacity = 1 << 24});
    writer.write(std::string(1 << 22, 'x')); // more than a pipe can contain, and no process reads it
    writer.print("small");
    writer.abort();
    EXPECT_EQ(error_of([&] { writer.print("more").flush(); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { writer.close(); }).code(), ms::errc::closed);
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 0);
    ::close(ends[0]);
}

TEST(Sink, MemoryAndNowhere) {
    ms::writer memory(ms::to_memory{});
    memory.print("kept");
    EXPECT_EQ(memory.memory(), "");
    memory.close();
    EXPECT_EQ(memory.memory(), "kept");
    ms::writer nowhere(ms::nowhere{});
    nowhere.print("gone");
    EXPECT_EQ(nowhere.close().bytes, 4U);
    EXPECT_EQ(nowhere.memory(), "");
}

// ---- callbacks ----

TEST(Callback, TakesBytes) {
    std::string taken;
    const auto take = [&](std::span<const char> bytes) {
        taken.append(bytes.data(), 1); // one at a time is enough
        return std::size_t{1};
    };
    ms::writer writer(ms::callback{take}, {.capacity = 4});
    ms::writer moved = std::move(writer);
    moved.print("one two three");
    moved.close();
    EXPECT_EQ(taken, "one two three");
}

TEST(Callback, WhatItThrowsIsThrownByTheCallAndNothingIsLost) {
    std::string taken;
    bool refuses = true;
    const auto take = [&](std::span<const char> bytes) {
        if (refuses)
            throw std::out_of_range("not now");
        taken.append(bytes.data(), bytes.size());
        return bytes.size();
    };
    ms::writer writer(ms::callback{take});
    writer.print("one");
    EXPECT_THROW(writer.flush(), std::out_of_range);
    std::error_code code;
    writer.flush(code);
    EXPECT_EQ(code, ms::errc::io);
    EXPECT_EQ(writer.last_error()->system_errno(), EIO);
    EXPECT_THROW(std::rethrow_exception(writer.callback_exception()), std::out_of_range);
    refuses = false;
    writer.print(" two");
    writer.close();
    EXPECT_EQ(taken, "one two");
    // The destructor writes as much as possible and reports no error, even if the callback throws.
    refuses = true;
    { ms::writer(ms::callback{take}).print("three"); }
}

// If the sink has accepted part of a record, the record is accepted, and the next call reports the error: a caller that
// repeats only failed calls neither loses nor duplicates data.
TEST(Callback, ThatTakesPartAndThenFailsDoublesNothing) {
    for (const bool writes : {false, true}) {
        std::string taken;
        int calls = 0;
        const auto take = [&](std::span<const char> bytes) {
            const int turn = ++calls % 4;
            if (turn == 0)
                throw std::out_of_range("not now");
            const std::size_t len = turn == 3 ? 1 : bytes.size();
            taken.append(bytes.data(), len);
            return len;
        };
        ms::writer writer(ms::callback{take}, {.flush_policy = ms::flush_policy::line});
        std::string expected;
        int failures = 0;
        for (int i = 0; i < 100; ++i) {
            const std::string record = "record " + std::to_string(i) + '\n';
            for (bool accepted = false; !accepted;) {
                try {
                    if (writes)
                        writer.write(record);
                    else
                        writer.print("record ", i, '\n');
                    accepted = true;
                    expected += record;
                } catch (const std::out_of_range &) {
                    ++failures;
                }
                ASSERT_EQ(writer.accepted(), expected.size());
            }
        }
        EXPECT_GT(failures, 10);
        writer.close();
        EXPECT_EQ(taken, expected);
    }
}

// ---- text ----

TEST(Writer, PrintsParts) {
    ms::writer writer(ms::to_memory{});
    const std::string text = "text";
    writer.print("literal ", text, ' ', std::string_view("view"), ' ', 1, ' ', -2, ' ', 3U, ' ', true, ' ', 0.5, '\n');
    writer.print(std::numeric_limits<std::int64_t>::min(), ' ', std::numeric_limits<std::uint64_t>::max(), '\n');
    writer.println(ms::hex(255), ' ', ms::pad(7, 3), ' ', ms::zero_fill(-7, 4), ' ', ms::fixed(2.5, 2), ' ',
                   ms::json("a\"b"));
    writer << "x = " << 42 << '\n';
    writer.print();
    writer.close();
    EXPECT_EQ(writer.memory(), "literal text view 1 -2 3 true 0.5\n"
                               "-9223372036854775808 18446744073709551615\n"
                               "ff   7 -007 2.50 \"a\\\"b\"\n"
                               "x = 42\n");
}

TEST(Writer, PrintsWhatIsLargerThanItsBuffer) {
    const std::string large(100000, 'x');
    ms::writer writer(ms::to_memory{}, {.capacity = 16});
    std::string expected;
    for (int i = 0; i < 100; ++i) {
        writer.print(i, ' ');
        expected += std::to_string(i) + ' ';
    }
    writer.print(large, 1, large);
    writer.close();
    EXPECT_EQ(writer.memory(), expected + large + '1' + large);
}

TEST(Writer, BoundsWidths) {
    ms::writer writer(ms::to_memory{}, {.capacity = 16});
    writer.print(ms::pad(42, SIZE_MAX), ms::zero_fill(-7, SIZE_MAX - 23),
                 ms::fixed(0.5, std::numeric_limits<int>::max()));
    writer.close();
    EXPECT_EQ(writer.memory(),
              std::string(65533, ' ') + "42-" + std::string(65533, '0') + "70.5" + std::string(65534, '0'));
}

struct point {
    int x, y;
};
template <class Out>
void ms_put(Out &out, const point &point) {
    out.print('(', point.x, ", ", point.y, ')');
}

TEST(Writer, PrintsYourOwnTypes) {
    ms::writer writer(ms::to_memory{});
    writer.print("at ", point{1, -2}, '\n');
    writer << point{3, 4};
    writer.close();
    EXPECT_EQ(writer.memory(), "at (1, -2)\n(3, 4)");
}

// ---- bytes ----

TEST(Writer, LendsSpace) {
    ms::writer writer(ms::to_memory{}, {.capacity = 8});
    const std::span<char> space = writer.space(100);
    ASSERT_GE(space.size(), 100U);
    std::fill_n(space.begin(), 100, 'a');
    writer.commit(100);
    writer.print("b");
    EXPECT_EQ(writer.accepted(), 101U);
    EXPECT_EQ(error_of([&] { writer.commit(writer.space(1).size() + 1); }).code(), ms::errc::argument_invalid);
    const std::byte bytes[2] = {std::byte{'c'}, std::byte{0}};
    writer.write(bytes);
    writer.close();
    EXPECT_EQ(writer.memory(), std::string(100, 'a') + "bc" + '\0');
    EXPECT_EQ(writer.accepted(), 103U);
}

TEST(Writer, HandsOnAsToldBy) {
    std::string taken;
    const auto take = [&](std::span<const char> bytes) {
        taken.append(bytes.data(), bytes.size());
        return bytes.size();
    };
    ms::writer lines(ms::callback{take}, {.flush_policy = ms::flush_policy::line});
    lines.print("one");
    EXPECT_EQ(taken, "");
    lines.print(" two\nthr");
    EXPECT_EQ(taken, "one two\n");
    lines.print("ee").flush();
    EXPECT_EQ(taken, "one two\nthree");
    EXPECT_EQ(lines.written(), 13U);
    lines.close();

    taken.clear();
    ms::writer full(ms::callback{take}, {.flush_policy = ms::flush_policy::when_full});
    full.print("one\n");
    EXPECT_EQ(taken, "");
    EXPECT_EQ(full.accepted(), 4U);
    EXPECT_EQ(full.written(), 0U);
    full.close();
    EXPECT_EQ(taken, "one\n");
}

TEST(Writer, HandsOnAfterADelay) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ms::writer writer(ms::fd{pipe[1]}, {.flush_delay = std::chrono::milliseconds(1)});
    writer.print("one\n");
    EXPECT_EQ(ms::reader(ms::fd{pipe[0]}).next_line(), "one"); // without a flush
}

TEST(Writer, Moves) {
    ms::writer first(ms::to_memory{});
    first.print("one");
    ms::writer second = std::move(first);
    second.print(" two");
    EXPECT_FALSE(first); // NOLINT: that is what is tested
    EXPECT_EQ(error_of([&] { first.print(1); }).code(), ms::errc::argument_invalid);
    first = std::move(second);
    first.print(" three").close();
    EXPECT_EQ(first.memory(), "one two three");
}

TEST(Writer, TakesEveryOption) {
    const ms::cancel_token token;
    ms::writer writer(ms::to_memory{}, {.capacity = 100,
                                        .flush_policy = ms::flush_policy::line,
                                        .encode = ms::encode::zstd,
                                        .level = 1,
                                        .existing = ms::existing::replace,
                                        .partial = ms::partial::remove,
                                        .stall_timeout = std::chrono::seconds(10),
                                        .cancel = &token,
                                        .name = "my bytes"});
    EXPECT_EQ(writer.name(), "my bytes");
    EXPECT_GE(writer.waited().count(), 0);
    writer.print("one\n").close();
    EXPECT_EQ(ms::lines(ms::memory{std::string(writer.memory())}).next(), "one");
}

// ---- failures ----

TEST(Failure, OfACommandIsReportedByClose) {
    ms::writer writer(
        ms::command{"sh", "-c", "cat >/dev/null; echo oops >&2; exit 3"}.stderr_to(ms::stderr_to::capture));
    writer.print("one\n");
    const ms::error error = error_of([&] { writer.close(); });
    EXPECT_EQ(error.code(), ms::errc::command_failed);
    EXPECT_EQ(error.command()->value, 3);
    EXPECT_EQ(error.command()->stderr_tail, "oops\n");
    EXPECT_EQ(error.written(), 4U);
    EXPECT_EQ(error_of([&] { writer.print(1); }).code(), ms::errc::closed);
}

TEST(Failure, OfAFullDiskSaysHowMuchIsSafe) {
    ms::writer writer(ms::path{"/dev/full"});
    writer.print("one\n");
    const ms::error error = error_of([&] { writer.flush(); });
    EXPECT_EQ(error.code(), ms::errc::io);
    EXPECT_EQ(error.system_errno(), ENOSPC);
    EXPECT_EQ(error.written(), 0U);
    EXPECT_EQ(error.name(), "/dev/full");
}

TEST(Failure, NamesTheDescriptorThatWasGiven) {
    const int number = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ms::writer writer(ms::borrowed_fd{number});
    writer.print("one\n");
    EXPECT_EQ(error_of([&] { writer.flush(); }).name(), "file descriptor " + std::to_string(number));
    ::close(number);
}

TEST(Failure, IsToldByACode) {
    std::error_code code = ms::errc::internal;
    ms::writer writer(ms::path{"/dev/full"}, code);
    EXPECT_FALSE(code);
    code = ms::errc::internal;
    writer.print(code, "one", 1);
    EXPECT_FALSE(code);
    writer.write("two", code);
    EXPECT_FALSE(code);
    writer.flush(code);
    EXPECT_EQ(code, ms::errc::io);
    EXPECT_EQ(writer.last_error()->system_errno(), ENOSPC);
    const ms::writer_end end = writer.close(code);
    EXPECT_EQ(code, ms::errc::io);
    EXPECT_EQ(end.bytes, 7U);
    EXPECT_EQ(end.written, 0U);

    ms::writer nothing(ms::path{"/nonexistent/file"}, code);
    EXPECT_EQ(code, ms::errc::open_failed);
    EXPECT_FALSE(nothing);
    EXPECT_EQ(nothing.last_error()->name(), "/nonexistent/file");
    nothing.print(code, 1);
    EXPECT_EQ(code, ms::errc::argument_invalid);
    code.clear();
    nothing.print(code, "");
    EXPECT_EQ(code, ms::errc::argument_invalid) << "also for no bytes";
}

TEST(Failure, OfAnOptionIsAnError) {
    EXPECT_EQ(error_of([] { (void)ms::writer(ms::to_memory{}, {.capacity = 0}); }).code(), ms::errc::invalid_option);
    for (const ms::writer_options &options : {ms::writer_options{.flush_delay = std::chrono::seconds(-1)},
                                              ms::writer_options{.stall_timeout = std::chrono::seconds(-1)},
                                              ms::writer_options{.linger = std::chrono::seconds(-1)}})
        EXPECT_EQ(error_of([&] { (void)ms::writer(ms::nowhere{}, options); }).code(), ms::errc::invalid_option);
    EXPECT_EQ(error_of([] { (void)ms::writer(ms::to_memory{}, {.encode = ms::encode::gzip, .level = 77}); }).code(),
              ms::errc::invalid_option);
}

// ---- a forgotten close ----

TEST(Writer, ReportsDataThatIsLostWithoutClose) {
    const temporary file("forgotten");
    testing::internal::CaptureStderr();
    {
        ms::writer writer(ms::path{file.path()});
        writer.print("lost");
    }
    const std::string file_lost = testing::internal::GetCapturedStderr();
    EXPECT_NE(file_lost.find("without close(), so its file does not appear: " + file.path().string()),
              std::string::npos)
        << file_lost;

    testing::internal::CaptureStderr();
    {
        ms::writer writer(ms::callback{[](std::span<const char>) -> std::size_t { throw std::runtime_error("no"); }});
        writer.print("lost");
    }
    const std::string bytes_lost = testing::internal::GetCapturedStderr();
    EXPECT_NE(bytes_lost.find("without close() and has lost data: "), std::string::npos) << bytes_lost;
}

TEST(Writer, ReportsNothingIfNothingIsLost) {
    const temporary file("complete");
    testing::internal::CaptureStderr();
    ms::writer(ms::path{file.path()}).print("closed").close();
    ms::writer(ms::path{file.path()}).print("aborted").abort();
    ms::writer(ms::path{file.path()}, {.existing = ms::existing::append}).print("appended");
    { const ms::writer unused(ms::path{file.path()}); }
    try {
        ms::writer writer(ms::path{file.path()});
        writer.print("lost, and the exception says why");
        throw std::runtime_error("why");
    } catch (const std::runtime_error &) {
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(file.content(), "closedappended");
}

// ---- misuse ----

TEST(Writer, RefusesCallsAfterItsEnd) {
    ms::writer writer(ms::to_memory{});
    writer.print("x").close();
    EXPECT_EQ(error_of([&] { writer.close(); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { writer.print("y"); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { writer.flush(); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { (void)writer.space(1); }).code(), ms::errc::closed);
    ms::writer moved = std::move(writer);
    EXPECT_EQ(moved.memory(), "x");
    EXPECT_FALSE(writer); // NOLINT: that is what is tested
    EXPECT_EQ(error_of([&] { writer.print("y"); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([&] { writer.close(); }).code(), ms::errc::argument_invalid);
    writer.abort();
}

} // namespace
