// Tests of shared writers: every record of every thread arrives complete and exactly once, and failures are reported.

#include "millstream/shared.hpp"
#include "millstream/reader.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ms = millstream;

// ThreadSanitizer does not recognise the library's locks, which are system calls, so it checks only the headers.
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
extern "C" const char *__tsan_default_suppressions();
extern "C" const char *__tsan_default_suppressions() { return "called_from_lib:libmillstream.so\n"; }
#endif
#endif

namespace {

static_assert(std::movable<ms::shared_writer> && !std::copyable<ms::shared_writer>);

constexpr int threads = 4;
constexpr int records = 1000;

/// Lets several threads write records with `write(thread, record)`; each contains the numbers of the thread and the
/// record.
template <class Write>
void write_all(Write write) {
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
        running.emplace_back([thread, &write] {
            for (int i = 0; i < records; ++i)
                write(std::to_string(thread) + ' ' + std::to_string(i) + '\n');
        });
    for (std::thread &thread : running)
        thread.join();
}

/// All records of all threads have arrived, and each thread's records are in order.
void expect_all(ms::reader reader) {
    std::vector<int> next(threads);
    int count = 0;
    for (const auto &[thread, i] : reader.values<int, int>()) {
        ASSERT_TRUE(thread >= 0 && thread < threads);
        ASSERT_EQ(i, next[static_cast<std::size_t>(thread)]++);
        ++count;
    }
    EXPECT_EQ(count, threads * records);
}

TEST(SharedWriter, HasEveryRecordOnce) {
    const auto path = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-shared");
    const ms::shared_writer writer(ms::path{path}, {.capacity = 100});
    write_all([&](const std::string &record) { writer.write_record(record); });
    writer.close();
    expect_all(ms::reader(ms::path{path}));
    std::filesystem::remove(path);
    EXPECT_EQ(error_of([&] { writer.write_record("late\n"); }).code(), ms::errc::closed);
}

TEST(SharedWriter, PrintsAllPartsAsOneRecord) {
    std::string taken;
    const ms::shared_writer writer(ms::callback{[&](std::span<const char> bytes) {
        taken.append(bytes.data(), bytes.size());
        return bytes.size();
    }});
    const std::string long_text(1000, 'x');
    writer.print("a ", 1, ' ', ms::hex(255), '\n');
    writer.println(long_text, true);
    EXPECT_EQ(error_of([&] { writer.print("lost", static_cast<const char *>(nullptr)); }).code(),
              ms::errc::argument_invalid);
    writer.close();
    EXPECT_EQ(taken, "a 1 ff\n" + long_text + "true\n");
}

TEST(SharedWriter, GoesOnBehindWhatItsWriterHasAccepted) {
    std::string taken;
    ms::writer first(ms::callback{[&](std::span<const char> bytes) {
        taken.append(bytes.data(), bytes.size());
        return bytes.size();
    }});
    first.print("one ", 1, '\n');
    ms::shared_writer second(std::move(first));
    EXPECT_FALSE(first); // NOLINT: that is what is tested
    const std::byte bytes[] = {std::byte{'2'}, std::byte{'\n'}};
    second.write_record(bytes);
    const ms::shared_writer third = std::move(second);
    third.write_record("three\n");
    third.flush();
    EXPECT_EQ(taken, "one 1\n2\nthree\n");
    EXPECT_TRUE(third);
    EXPECT_FALSE(second); // NOLINT: as above
    EXPECT_EQ(error_of([&] { second.write_record("x"); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([] { (void)ms::shared_writer{ms::writer()}; }).code(), ms::errc::argument_invalid);
}

// Each failing call throws the callback's exception, and repeating only that call neither loses nor duplicates data.
TEST(SharedWriter, ThrowsWhatItsCallbackThrows) {
    std::string taken;
    int calls = 0;
    const ms::shared_writer writer(ms::callback{[&](std::span<const char> bytes) {
                                       if (++calls % 3 == 0)
                                           throw std::out_of_range("not now");
                                       const std::size_t len = calls % 3 == 2 ? 1 : bytes.size();
                                       taken.append(bytes.data(), len);
                                       return len;
                                   }},
                                   {.flush_policy = ms::flush_policy::line});
    std::atomic<int> failures = 0;
    write_all([&](const std::string &record) {
        for (;;) {
            try {
                return writer.write_record(record);
            } catch (const std::out_of_range &) {
                ++failures;
            }
        }
    });
    EXPECT_GT(failures, threads * records / 10);
    try {
        writer.close();
    } catch (const std::out_of_range &) { // for the last record, which was accepted
        writer.close();
    }
    expect_all(ms::reader(ms::memory{taken}));
}

TEST(SharedWriter, TellsByACode) {
    const ms::shared_writer writer(ms::path{"/dev/full"});
    std::error_code code = ms::errc::internal;
    writer.write_record("one\n", code);
    EXPECT_FALSE(code);
    writer.flush(code);
    EXPECT_EQ(code, ms::errc::io);
    writer.close(code);
    EXPECT_EQ(code, ms::errc::io);
    EXPECT_EQ(error_of([&] { writer.close(); }).system_errno(), ENOSPC);
}

} // namespace
