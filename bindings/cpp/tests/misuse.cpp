// Mistakes in the use of readers, writers and pipes, and hosts in an unusual state: errors, but no crash and no lost
// data.

#include "millstream/pipe.hpp"
#include "millstream/shared.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ms = millstream;

namespace {

template <class Act>
std::error_code code_of(Act act) {
    try {
        act();
    } catch (const ms::error &error) {
        return error.code();
    }
    return {};
}

std::uint64_t count(ms::reader &reader) {
    std::uint64_t count = 0;
    while (reader.next_line())
        ++count;
    return count;
}

TEST(Misuse, ClosingAgainAndUsingWhatIsClosed) {
    ms::reader reader(ms::command{"seq", "3"});
    reader.close();
    EXPECT_EQ(code_of([&] { reader.next_line(); }), ms::errc::closed);
    EXPECT_EQ(code_of([&] { reader.close(); }), ms::errc::closed);
    ms::writer writer(ms::to_memory{});
    writer.print("kept").close();
    EXPECT_EQ(code_of([&] { writer.print("lost"); }), ms::errc::closed);
    EXPECT_EQ(code_of([&] { writer.close(); }), ms::errc::closed);
    EXPECT_EQ(writer.memory(), "kept");
    auto pipe = ms::pipe(ms::command{"yes"}).lines().map_async(2, [](std::string_view line) {
        return std::async(std::launch::deferred, [text = std::string(line)] { return text; });
    });
    pipe.close();
    EXPECT_EQ(pipe.count(), 0U);
    pipe.close();
}

TEST(Misuse, ObjectsThatWereMovedFrom) {
    ms::reader reader(ms::memory{"one\n"}), other = std::move(reader);
    EXPECT_NE(code_of([&] { reader.next_line(); }), std::error_code()); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(count(other), 1U);
    ms::writer writer(ms::to_memory{}), owner = std::move(writer);
    EXPECT_NE(code_of([&] { writer.print("x").flush(); }), std::error_code()); // NOLINT(bugprone-use-after-move)
    owner.close();
}

TEST(Misuse, OpenedInOneThreadAndUsedInAnother) {
    ms::reader reader(ms::command{"seq", "1000"});
    EXPECT_EQ(reader.next_line(), "1");
    std::uint64_t counted = 0;
    std::thread([&] { counted = count(reader); }).join();
    EXPECT_EQ(counted, 999U);
    std::thread([moved = std::move(reader)]() mutable { moved.close(); }).join();
}

TEST(Misuse, DestroyedInTheMiddle) {
    for (int i = 0; i < 20; ++i) {
        ms::reader reader(ms::command{"yes"});
        EXPECT_EQ(reader.next_line(), "y");
        std::uint64_t seen = 0;
        auto pipe = ms::pipe(std::move(reader)).lines().parallel(3, [](auto stages) {
            return std::move(stages).map([](std::string_view line) { return line.size(); });
        });
        EXPECT_THROW(pipe.for_each([&](std::size_t) {
            if (++seen == 10)
                throw std::runtime_error("enough");
        }),
                     std::runtime_error);
        EXPECT_EQ(seen, 10U);
    }
}

TEST(Misuse, AForkedChildLeavesTheParentsStreamsAlone) {
    ms::reader reader(ms::command{"sh", "-c", "seq 100000; exit 0"});
    EXPECT_EQ(reader.next_line(), "1");
    ms::writer writer(ms::to_memory{});
    writer.print("begun ");
    const pid_t child = ::fork();
    if (child == 0) {
        // The child has its own streams, and does not run the destructors of its parent's.
        std::uint64_t own = 0;
        const bool works = !code_of([&] {
            ms::reader numbers(ms::command{"seq", "3"});
            own = count(numbers);
        });
        ::_exit(works && own == 3 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(count(reader), 99'999U);
    writer.print("ended").close();
    EXPECT_EQ(writer.memory(), "begun ended");
}

TEST(Misuse, SignalsThatTheHostMasksDoNotReachCommandsMasked) {
    sigset_t all, before;
    ::sigfillset(&all);
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    ms::reader status(ms::command{"grep", "SigBlk", "/proc/self/status"});
    const std::string blocked(status.next_line().value_or(""));
    // Closing has to stop it with SIGTERM.
    ms::reader endless(ms::command{"sleep", "1000"});
    endless.close();
    const std::uint64_t lines =
        ms::pipe(ms::command{"seq", "1000"})
            .lines()
            .parallel(
                2, [](auto stages) { return std::move(stages).map([](std::string_view line) { return line.size(); }); })
            .count();
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, &before, &now);
    EXPECT_EQ(lines, 1000U);
    EXPECT_EQ(::sigismember(&now, SIGTERM), 1) << "the host's mask is unchanged";
#ifdef __linux__
    EXPECT_EQ(blocked.substr(blocked.find_last_not_of("0123456789abcdef") + 1), "0000000000000000");
#endif
}

} // namespace
