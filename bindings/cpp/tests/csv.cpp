// Tests of CSV: the shared vectors, rows, headers and errors.

#include "millstream/csv.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <ranges>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

static_assert(std::ranges::random_access_range<ms::row>);
static_assert(std::movable<ms::rows> && !std::copyable<ms::rows>);

/// Splits a text.
strings split(std::string text, const std::string &separator) {
    strings parts;
    for (std::size_t at = 0; (at = text.find(separator)) != text.npos; text.erase(0, at + separator.size()))
        parts.push_back(text.substr(0, at));
    parts.push_back(text);
    return parts;
}

/// Undoes `\n`, `\xHH` and the like.
std::string unescaped(const std::string &text) {
    std::string bytes;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '\\') {
            bytes.push_back(text[at]);
            continue;
        }
        const char letter = text.at(++at);
        if (letter == 'x') {
            bytes.push_back(static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16)));
            at += 2;
        } else {
            bytes.push_back(letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter == 't' ? '\t' : letter);
        }
    }
    return bytes;
}

ms::csv_dialect dialect_of(const std::string &words) {
    ms::csv_dialect dialect;
    for (const std::string &word : split(words, " ")) {
        const std::string name = word.substr(0, word.find('='));
        const std::string value = word.substr(std::min(word.find('='), word.size() - 1) + 1);
        const auto byte = [&] { return static_cast<char>(std::stoi(value, nullptr, 16)); };
        const auto byte_or_none = [&] { return value == "none" ? std::nullopt : std::optional(byte()); };
        if (name == "delimiter")
            dialect.delimiter = byte();
        else if (name == "quote")
            dialect.quote = byte_or_none();
        else if (name == "escape")
            dialect.escape = byte_or_none();
        else if (name == "comment")
            dialect.comment = byte_or_none();
        else if (name == "ends")
            dialect.line_end = value == "lf"     ? ms::csv_line_end::lf
                               : value == "crlf" ? ms::csv_line_end::crlf
                                                 : ms::csv_line_end::cr;
        else if (word == "doubled=off")
            dialect.doubled_quotes = false;
        else if (word == "stray=literal")
            dialect.literal_quotes = true;
        else if (word == "blank=records")
            dialect.blank_records = true;
        else if (word == "mark=content")
            dialect.detect_mark = false;
        else
            EXPECT_EQ(word, "default");
    }
    return dialect;
}

/// Uses a reader whose source delivers `piece` bytes at a time.
ms::reader in_pieces(const std::string &input, std::size_t piece) {
    const auto fill = [&input, piece, at = std::size_t{0}](std::span<char> space) mutable {
        const std::size_t count = std::min({piece, space.size(), input.size() - at});
        input.copy(space.data(), count, at);
        at += count;
        return count;
    };
    return ms::reader(ms::callback{fill}, {.capacity = 8, .decode = ms::decode::off});
}

ms::rows rows_of(std::string_view text, const ms::csv_dialect &dialect = {}) {
    return ms::rows(ms::reader(ms::memory{std::string(text)}, {.name = "t.csv"}), dialect);
}

strings fields_of(const ms::row &row) { return {row.begin(), row.end()}; }

TEST(Csv, Vectors) {
    std::ifstream file(MILLSTREAM_VECTORS "/csv.tsv");
    ASSERT_TRUE(file);
    int cases = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        const strings column = split(line, "\t");
        ASSERT_EQ(column.size(), 5U) << line;
        SCOPED_TRACE(column[0]);
        const std::string input = unescaped(column[2]);
        std::vector<strings> expected;
        if (column[3] != "-") {
            for (const std::string &record : split(column[3], " / ")) {
                strings &row = expected.emplace_back();
                for (const std::string &field : split(record, " | "))
                    row.push_back(unescaped(field));
            }
        }
        for (std::size_t piece = 1; piece <= input.size() + 1; ++piece) {
            SCOPED_TRACE("in pieces of " + std::to_string(piece));
            std::vector<strings> found;
            std::string end = "end";
            try {
                for (const ms::row &row : ms::rows(in_pieces(input, piece), dialect_of(column[1])))
                    found.push_back(fields_of(row));
            } catch (const ms::error &error) {
                end = std::string(ms::name(error.kind())) + " at " + std::to_string(error.offset().value());
            }
            EXPECT_EQ(found, expected);
            EXPECT_EQ(end, column[4]);
        }
        ++cases;
    }
    EXPECT_GT(cases, 40);
}

constexpr std::string_view people = "id,\"the name\"\n1,\"a, b\"\n\n2,\"say \"\"hi\"\"\"\n";

TEST(Csv, FieldsByPositionAndByName) {
    ms::rows rows = rows_of(people);
    EXPECT_EQ(rows.header(), (strings{"id", "the name"}));
    strings found;
    for (const ms::row &row : rows) {
        EXPECT_EQ(row.size(), 2U);
        EXPECT_EQ(row[0], row["id"]);
        found.emplace_back(row["the name"]);
    }
    EXPECT_EQ(found, (strings{"a, b", "say \"hi\""}));
    EXPECT_EQ(rows.index("the name"), 1U);
    EXPECT_FALSE(rows.next().has_value());

    ms::rows equal = rows_of("a,b,a\n1,2,3\n");
    EXPECT_EQ(equal.index("a"), 2U);
    EXPECT_EQ((*equal.begin())["a"], "3");
    ms::rows empty = rows_of("\n");
    EXPECT_EQ(empty.header(), strings{});
}

TEST(Csv, TheHeaderBelongsToTheReader) {
    ms::rows rows = rows_of("id,n\n1,a\n2,b\n3,c\n");
    for (int loop = 1; loop <= 2; ++loop) {
        EXPECT_EQ(rows.header(), (strings{"id", "n"}));
        for (const ms::row &row : rows) {
            EXPECT_EQ(row["id"], std::to_string(loop));
            break;
        }
    }
    ms::rows moved = std::move(rows);
    EXPECT_EQ(moved.next().value()["n"], "c");
}

TEST(Csv, AnotherReaderContinuesAfterTheLastRecord) {
    ms::rows rows = rows_of("id,n\n\n1,a\n# x\n\n2,b\n3,c\n", {.comment = '#'});
    rows.header();
    EXPECT_EQ(rows.next().value()["n"], "a");
    EXPECT_EQ(rows.position().bytes, 10U);
    EXPECT_EQ(rows.position().records, 3U);
    EXPECT_EQ(rows.reader().next_line(), "# x");
    EXPECT_EQ(rows.next().value()["n"], "b");
    EXPECT_TRUE(rows.skip_record());
    EXPECT_FALSE(rows.next().has_value());
    EXPECT_EQ(rows.position().bytes, 23U);
}

TEST(Csv, ARecordWithAnotherNumberOfFields) {
    ms::rows rows = rows_of("a,b\n\n1,2\n3\n4,5\n");
    rows.header();
    EXPECT_EQ(fields_of(rows.next().value()), (strings{"1", "2"}));
    const ms::error error = error_of([&] { rows.next(); });
    EXPECT_EQ(error.kind(), ms::errc::field_count_mismatch);
    EXPECT_EQ(error.name(), "t.csv");
    EXPECT_EQ(error.record(), 3U);
    EXPECT_EQ(error.offset(), 9U);
    EXPECT_EQ(error.found(), "1 field");
    EXPECT_EQ(error.expected(), "2, as in the header");
    // The records after it can be read.
    EXPECT_EQ(rows.next().value()["b"], "5");
    // Without a header, any number is accepted.
    std::vector<std::size_t> sizes;
    for (const ms::row &row : rows_of("a,b\n1\n1,2,3\n"))
        sizes.push_back(row.size());
    EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 1, 3}));
}

TEST(Csv, MissingFieldsAreEmptyIfRaggedRecordsArePadded) {
    ms::rows rows = rows_of("a,b,c\n1\n1,2,3\n1,2,3,4\n,x\n");
    rows.ragged(ms::csv_ragged::pad).header();
    const ms::row first = rows.next().value();
    EXPECT_EQ(fields_of(first), (strings{"1", "", ""}));
    EXPECT_EQ(first["c"], "");
    EXPECT_EQ(fields_of(rows.next().value()), (strings{"1", "2", "3"}));
    // No data is dropped.
    EXPECT_EQ(error_of([&] { rows.next(); }).found(), "4 fields");
    ms::rows moved = std::move(rows);
    EXPECT_EQ(fields_of(moved.next().value()), (strings{"", "x", ""}));
}

TEST(Csv, AdditionalFieldsAreKeptIfRaggedRecordsAreCollected) {
    ms::rows rows = rows_of("a,b\n1\n1,2,3,4\n1,2\n");
    rows.ragged(ms::csv_ragged::collect).header();
    EXPECT_EQ(fields_of(rows.next().value()), (strings{"1", ""}));
    const ms::row row = rows.next().value();
    EXPECT_EQ(fields_of(row), (strings{"1", "2", "3", "4"}));
    EXPECT_EQ(row["b"], "2");
    EXPECT_EQ(fields_of(rows.next().value()), (strings{"1", "2"}));
}

TEST(Csv, ErrorsOfNamesAndOptions) {
    ms::rows rows = rows_of("a,b\n1,2\n");
    const ms::error unread = error_of([&] { (void)(*rows.begin())["a"]; });
    EXPECT_EQ(unread.found(), "a name of a field, and the header was not read");
    EXPECT_NE(std::string_view(unread.what()).find("; call `header` before the first record"), std::string_view::npos);
    rows = rows_of("a,b\n1,2\n");
    const ms::error error = error_of([&] { rows.index("c"); });
    EXPECT_EQ(error.kind(), ms::errc::key_missing);
    EXPECT_EQ(error.found(), "no field \"c\" in the header");
    EXPECT_EQ(error.expected(), "one of \"a\", \"b\"");
    EXPECT_EQ(error_of([] { ms::framer::csv({.delimiter = '"'}); }).found(),
              "the byte '\\\"' as the delimiter and as the quote");
    EXPECT_EQ(error_of([] { ms::framer::csv({.comment = '\n'}); }).kind(), ms::errc::invalid_option);
    EXPECT_EQ(error_of([] {
                  for (const ms::row &row : ms::rows(ms::shell{"echo a,b; exit 3"}))
                      EXPECT_EQ(row.size(), 2U);
              }).kind(),
              ms::errc::command_failed);
}

} // namespace
