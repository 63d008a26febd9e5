// Tests of errors: codes as std::error_code, and the exception with the details.

#include "millstream/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>

namespace ms = millstream;

namespace {

static_assert(std::is_error_code_enum_v<ms::errc>);
static_assert(std::is_nothrow_copy_constructible_v<ms::error> && std::is_nothrow_copy_assignable_v<ms::error>);

TEST(Error, CodesCompareWithTheirKindAndWithTheStandardsWords) {
    const std::error_code code = ms::errc::broken_pipe;
    EXPECT_EQ(code, ms::errc::broken_pipe);
    EXPECT_NE(code, ms::errc::io);
    EXPECT_EQ(code, std::errc::broken_pipe);
    EXPECT_EQ(code.value(), 16);
    EXPECT_STREQ(code.category().name(), "millstream");
    EXPECT_EQ(make_error_code(ms::errc::stalled), std::errc::timed_out);
    EXPECT_EQ(make_error_code(ms::errc::argument_invalid), std::errc::invalid_argument);
    EXPECT_NE(make_error_code(ms::errc::io), std::errc::io_error);
}

TEST(Error, EveryKindHasItsOwnText) {
    std::set<std::string> texts;
    for (int code = 1; code <= static_cast<int>(ms::errc::source_changed); ++code)
        EXPECT_TRUE(texts.insert(ms::category().message(code)).second) << code;
    EXPECT_EQ(ms::category().message(4),
              "command failed; find out why it failed, or accept its failure with `allow_failure`");
    EXPECT_EQ(ms::category().message(0), "error 0");
    EXPECT_EQ(ms::category().message(1000), "error 1000");
}

TEST(Error, HaveTheNamesOfEveryLanguage) {
    EXPECT_EQ(ms::name(ms::errc::io), "io");
    EXPECT_EQ(ms::name(ms::errc::argument_invalid), "argument_invalid");
    EXPECT_EQ(ms::name(ms::errc::source_changed), "source_changed");
    EXPECT_EQ(ms::name(ms::errc{}), "");
}

TEST(Error, ASentenceIsMadeFromTheDetails) {
    ms::error_details details;
    details.kind = ms::errc::number_invalid;
    details.name = "numbers.txt";
    details.found = "\"12x\"";
    details.expected = "a u32";
    details.offset = 17;
    details.record = 2;
    const ms::error error(details);
    EXPECT_STREQ(error.what(), "numbers.txt: number invalid: found \"12x\", expected a u32, at byte 17, record 2 "
                               "(the first is 0); check the input at this position, the separator and the type");
    EXPECT_EQ(error.code(), ms::errc::number_invalid);
    EXPECT_EQ(error.kind(), ms::errc::number_invalid);
    EXPECT_EQ(error.name(), "numbers.txt");
    EXPECT_EQ(error.offset(), 17U);
    EXPECT_EQ(error.record(), 2U);
    EXPECT_EQ(error.line(), std::nullopt);
    EXPECT_EQ(error.path(), "");
    EXPECT_EQ(error.written(), std::nullopt);
    EXPECT_EQ(error.command(), nullptr);

    details.line = 3;
    details.column = 5;
    EXPECT_STREQ(ms::error(details).what(),
                 "numbers.txt: number invalid: found \"12x\", expected a u32, at line 3, column 5; check the input at "
                 "this position, the separator and the type");

    ms::error_details missing;
    missing.kind = ms::errc::key_missing;
    missing.path = "a.b";
    missing.offset = 7;
    EXPECT_STREQ(ms::error(missing).what(), "key missing, in a.b, at byte 7; check the path");
    EXPECT_EQ(ms::error(missing).path(), "a.b");

    ms::error_details refused;
    refused.kind = ms::errc::io;
    refused.system_errno = ENOSPC;
    refused.written = 3;
    EXPECT_STREQ(ms::error(refused).what(), "io: No space left on device (os error 28), 3 bytes had been written; "
                                            "free space, or write elsewhere");
    ms::error_details stage;
    stage.kind = ms::errc::stage_failed;
    stage.found = "bad record";
    stage.line = 3;
    stage.advice = "skip it";
    EXPECT_STREQ(ms::error(stage).what(), "stage failed: bad record, at line 3; skip it");
    ms::error_details expected;
    expected.kind = ms::errc::value_missing;
    expected.expected = "a u8";
    EXPECT_STREQ(ms::error(expected).what(),
                 "value missing: expected a u8; check whether the input was cut short, or request fewer values");
}

TEST(Error, IsCaughtAsASystemErrorAndStillAnswersWhenMovedFrom) {
    ms::error_details details;
    details.message = "as the library says it";
    details.command = ms::command_end{{"sh", "-c", "exit 3"}, ms::command_status::exited, 3, "oops\n"};
    ms::error first(details);
    const ms::error second(std::move(first));
    EXPECT_STREQ(first.what(), second.what()); // NOLINT: that is what is tested
    try {
        throw second;
    } catch (const std::system_error &error) {
        EXPECT_EQ(error.code(), ms::errc::internal);
        EXPECT_STREQ(error.what(), "as the library says it");
    }
    ASSERT_NE(second.command(), nullptr);
    EXPECT_EQ(second.command()->argv.back(), "exit 3");
    EXPECT_FALSE(second.command()->success());
}

} // namespace
