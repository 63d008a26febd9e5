// Tests that the examples print the expected output.

#include "millstream/reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ms = millstream;

namespace {

constexpr const char *reads = "printf '@HD\\tVN:1.6\\nr1\\t0\\tchr2\\t7\\nr2\\t0\\tchr1\\t9\\nr3\\t0\\tchr2\\t9\\n'";

TEST(SamtoolsLike, CountsWhatTheCommandPrints) {
    std::vector<std::string> lines;
    for (const std::string_view line : ms::lines(ms::command{SAMTOOLS_LIKE, "sh", "-c", reads}))
        lines.emplace_back(line);
    EXPECT_EQ(lines, (std::vector<std::string>{"chr1\t1", "chr2\t2"}));
}

TEST(SamtoolsLike, PrintsNoCountsWhenTheCommandFails) {
    ms::command command{SAMTOOLS_LIKE, "sh", "-c", reads + std::string("; echo truncated file >&2; exit 2")};
    ms::records lines = ms::lines(command.stderr_to(ms::stderr_to::capture));
    std::error_code code;
    EXPECT_EQ(lines.next(code), std::nullopt);
    EXPECT_EQ(code, ms::errc::command_failed);
    const ms::command_end &end = *lines.reader().last_error()->command();
    EXPECT_EQ(end.value, 1);
    EXPECT_NE(end.stderr_tail.find("exited with status 2"), std::string::npos) << end.stderr_tail;
    EXPECT_NE(end.stderr_tail.find("last line of standard error: truncated file"), std::string::npos)
        << end.stderr_tail;
}

TEST(People, ThereAndBack) {
    const std::string pipe =
        "printf '%s\\n' '{\"name\":\"Ann\",\"age\":41,\"mail\":\"a@x\"}' "
        "'{\"name\":\"Bob\",\"age\":17}' '{\"name\":\"Eve\",\"age\":17,\"mail\":\"e@x\",\"more\":[]}' | " PEOPLE
        " | " PEOPLE " --back";
    std::vector<std::string> lines;
    for (const std::string_view line : ms::lines(ms::shell{pipe}))
        lines.emplace_back(line);
    EXPECT_EQ(lines, (std::vector<std::string>{R"({"name":"Ann","age":41,"mail":"a@x"})", R"({"name":"Eve"})"}));
}

TEST(People, SaysWhatIsMissing) {
    ms::records lines = ms::lines(ms::command{"sh", "-c", R"(echo '{"name":"Ann"}' | )" PEOPLE " 2>&1"});
    EXPECT_NE(lines.next().value().find("key missing"), std::string_view::npos);
}

constexpr const char *in_a_new_directory = "cd \"$(mktemp -d)\" && trap 'rm -rf \"$PWD\"' EXIT; ";

TEST(SlowRequests, PrintsTheSlowOnesAndKeepsWhatIsNone) {
    const std::string line =
        SLOW_REQUESTS " 100 printf '/a 7\\n/b 101\\nwhat?\\n/c 3000\\n' 2>&1; cat slow_requests.rejected";
    std::vector<std::string> lines;
    for (const std::string_view found : ms::lines(ms::shell{in_a_new_directory + line}))
        lines.emplace_back(found);
    EXPECT_EQ(lines, (std::vector<std::string>{"/b", "/c", "2 of 4 requests were slow", "what?"}));
}

TEST(SlowRequests, FailsWithItsCommand) {
    const std::string line = SLOW_REQUESTS " 100 sh -c 'echo /b 101; exit 2' 2>&1; echo $?; ls";
    std::vector<std::string> lines;
    for (const std::string_view found : ms::lines(ms::shell{in_a_new_directory + line}))
        lines.emplace_back(found);
    ASSERT_GE(lines.size(), 2);
    EXPECT_EQ(lines.back(), "1");
    EXPECT_NE(lines[lines.size() - 2].find("exited with status 2"), std::string::npos) << lines[0];
}

TEST(CsvPeople, PrintsTwoColumnsAndThePlaceOfAnError) {
    const std::string line =
        "printf 'id,age,name\\n1,41,Ann\\n2,17,\"Bob, Jr.\"\\n3,\"5\\n\"x,Eve\\n' >people.csv; " CSV_PEOPLE
        " 2>&1; echo $?";
    std::vector<std::string> lines;
    for (const std::string_view found : ms::lines(ms::shell{in_a_new_directory + line}))
        lines.emplace_back(found);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[0] + "|" + lines[1] + "|" + lines[3], "Ann is 41|Bob, Jr. is 17|1");
    EXPECT_NE(lines[2].find("people.csv: csv invalid: found 'x' after a closing quote"), std::string::npos) << lines[2];
    EXPECT_NE(lines[2].find("at line 5, column 2"), std::string::npos) << lines[2];
}

// Returns what this program of the example prints, its standard error included.
std::string typical(std::string_view arguments) {
    std::string text;
    for (const std::string_view line : ms::lines(ms::shell{in_a_new_directory + std::string(arguments)}))
        text.append(line) += '\n';
    return text;
}

TEST(Typical, ReportsACommandThatFailed) {
    const std::string text = typical(TYPICAL " failing 'echo a; echo b; echo oops >&2; exit 3' 2>/dev/null");
    EXPECT_EQ(text.find("2 lines, then: the command"), 0) << text;
    EXPECT_NE(text.find("\nstatus 3, oops\n"), std::string::npos) << text;
}

TEST(Typical, WritesTheChosenLinesCompressed) {
    const std::string text = typical("printf 'a,NO\nb,SE\nc,NO\n' | gzip >in.gz; " TYPICAL " filter in.gz out.zst; "
                                     "od -An -tx1 -N4 out.zst; " TYPICAL " filter out.zst out.txt; cat out.txt");
    EXPECT_EQ(text, " 28 b5 2f fd\na,NO\nc,NO\n");
}

TEST(Typical, PrintsAllResultsBeforeAFailure) {
    EXPECT_EQ(typical("printf '1\n2\nx\n4\n' >in.txt; " TYPICAL " parallel in.txt"),
              "1\n2\nnot a number in record 2\n");
}

TEST(Typical, AddsTheNumbersOfAnArray) {
    // {"values": [1.5, 2.5]}, twice
    EXPECT_EQ(
        typical(
            "for i in 1 2; do printf '\\050\\0\\0\\0\\004values\\0\\033\\0\\0\\0"
            "\\0010\\0\\0\\0\\0\\0\\0\\0\\370\\077\\0011\\0\\0\\0\\0\\0\\0\\0\\004\\100\\0\\0'; done >in.bson; " TYPICAL
            " arrays in.bson"),
        "4\n4\n");
}

TEST(Typical, StopsACommandThatHangs) {
    EXPECT_EQ(typical(TYPICAL " hanging 'echo a; exec sleep 1000'"), "a\ntoo late\n");
}

} // namespace
