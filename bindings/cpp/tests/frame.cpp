// Tests of framers and batches, and the shared vectors: every case with a framer alone and with a reader, split into
// pieces.

#include "millstream/frame.hpp"
#include "millstream/reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

static_assert(std::ranges::random_access_range<const ms::batch>);
static_assert(std::ranges::sized_range<const ms::batch>);
static_assert(std::movable<ms::framer> && !std::copyable<ms::framer>);

void append(strings &to, const ms::batch &batch) {
    for (const std::string_view record : batch)
        to.emplace_back(record);
}

strings contents(const ms::batch &batch) {
    strings records;
    append(records, batch);
    return records;
}

TEST(Batch, IsARangeOfContents) {
    ms::framer framer = ms::framer::lines();
    const ms::batch batch = framer.batch("one\r\n\ntwo\nthr", ms::extent::whole);
    ASSERT_EQ(batch.size(), 4U);
    EXPECT_EQ(contents(batch), (strings{"one", "", "two", "thr"}));
    EXPECT_EQ(batch[2], "two");
    EXPECT_EQ(batch.untrimmed(0), "one\r\n");
    EXPECT_EQ(batch.untrimmed(3), "thr");
    EXPECT_FALSE(batch.terminated());
    EXPECT_EQ(batch.trim().tail, 1U);
    EXPECT_TRUE(batch.trim().carriage_return);
    EXPECT_TRUE(std::ranges::equal(batch.offsets(), std::vector<std::uint32_t>{0, 5, 6, 10, 13}));
    EXPECT_EQ(batch.bytes().size(), 13U);
    EXPECT_EQ(batch.offset(), 0U);
    EXPECT_EQ(batch.first_record(), 0U);
    EXPECT_EQ(std::ranges::count(batch, ""), 1);
    EXPECT_EQ(*(batch.end() - 1), "thr");
    EXPECT_EQ(batch.end() - batch.begin(), 4);
    EXPECT_TRUE(batch.begin() < batch.end());
}

TEST(Batch, OfNothingIsEmpty) {
    const ms::batch batch;
    EXPECT_TRUE(batch.empty());
    EXPECT_TRUE(batch.begin() == batch.end());
    EXPECT_TRUE(batch.offsets().empty());
}

TEST(Framer, WaitsForTheRestOfARecordInAPart) {
    ms::framer framer = ms::framer::delimiter("--");
    EXPECT_EQ(contents(framer.batch("a--b-", ms::extent::part)), strings{"a"});
    EXPECT_EQ(contents(framer.batch("a--b-", ms::extent::whole)), (strings{"a", "b-"}));
    EXPECT_EQ(contents(framer.batch("a--b--c--", ms::extent::part, 2)), (strings{"a", "b"}));
}

TEST(Framer, OfAPredicateThrowsWhatThatThrows) {
    ms::framer framer = ms::framer::predicate([](unsigned char byte) { return byte == ',' || byte == ';'; });
    EXPECT_EQ(contents(framer.batch("a,b;c", ms::extent::whole)), (strings{"a", "b", "c"}));
    EXPECT_THROW(ms::framer::predicate([](unsigned char) -> bool { throw std::out_of_range("no"); }),
                 std::out_of_range);
}

TEST(Framer, ReportsWhatCannotBe) {
    const auto code_of = [](auto make) {
        try {
            make();
        } catch (const ms::error &error) {
            return error.kind();
        }
        return ms::errc{};
    };
    EXPECT_EQ(code_of([] { ms::framer::delimiter(""); }), ms::errc::invalid_option);
    EXPECT_EQ(code_of([] { ms::framer::fixed(0); }), ms::errc::invalid_option);
    EXPECT_EQ(code_of([] { ms::framer::length_prefixed(3); }), ms::errc::argument_invalid);

    ms::framer framer = ms::framer::fixed(4);
    EXPECT_EQ(code_of([&] { framer.batch("123", ms::extent::whole); }), ms::errc::frame_truncated);
    std::error_code code;
    EXPECT_TRUE(framer.batch("123", ms::extent::whole, 1, code).empty());
    EXPECT_EQ(code, ms::errc::frame_truncated);
    EXPECT_EQ(framer.batch("1234", ms::extent::whole, 1, code).size(), 1U);
    EXPECT_FALSE(code);
}

TEST(Text, IsCheckedForUtf8) {
    ms::check_text("gr\xc3\xbc\xc3\x9f");
    try {
        ms::check_text("gr\xfc");
        FAIL() << "these bytes are no text";
    } catch (const ms::error &error) {
        EXPECT_EQ(error.code(), ms::errc::utf8_invalid);
    }
}

// ---- the shared vectors ----

std::string unhex(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
}

strings split(const std::string &text, char delimiter) {
    strings parts{""};
    for (const char c : text)
        c == delimiter ? parts.emplace_back() : parts.back() += std::string(1, c);
    return parts;
}

std::string utf8(unsigned long code_point) {
    if (code_point < 0x80)
        return {static_cast<char>(code_point)};
    std::string tail;
    unsigned long first = 0x3f;
    for (; code_point > first; code_point >>= 6, first >>= 1)
        tail.insert(tail.begin(), static_cast<char>(0x80 | (code_point & 0x3f)));
    return static_cast<char>((~first << 1 & 0xff) | code_point) + tail;
}

/// Returns the framer that a case describes.
ms::framer framer_of(const std::string &words) {
    const strings word = split(words, ' ');
    const auto delimited = word.back() == "untrimmed" ? ms::delimited::untrimmed : ms::delimited::trimmed;
    if (word[0] == "lines")
        return ms::framer::lines(delimited);
    if (word[0] == "byte" || word[0] == "bytes")
        return ms::framer::delimiter(unhex(word[1]), delimited);
    if (word[0] == "char")
        return ms::framer::delimiter(utf8(std::stoul(word[1], nullptr, 16)), delimited);
    if (word[0] == "any-of") {
        const std::string set = unhex(word[1]);
        return ms::framer::predicate([&](unsigned char byte) { return set.find(static_cast<char>(byte)) != set.npos; },
                                     delimited);
    }
    if (word[0] == "bson")
        return ms::framer::bson();
    if (word[0] == "fixed")
        return ms::framer::fixed(std::stoul(word[1]));
    if (word[0] == "prefix")
        return ms::framer::length_prefixed(
            std::stoul(word[1].substr(1)) / 8, word[2] == "big" ? std::endian::big : std::endian::little,
            word[3] == "itself" ? ms::prefix_counts::itself : ms::prefix_counts::payload);
    throw std::invalid_argument("no framer: " + words);
}

/// The records up to the end or an error, and the outcome.
struct found {
    strings records;
    std::string end = "end";
    bool operator==(const found &) const = default;
};

void PrintTo(const found &found, std::ostream *out) {
    for (const std::string &record : found.records)
        *out << testing::PrintToString(record) << ", ";
    *out << found.end;
}

/// Asks `next` for records until it reports the end or throws.
template <class Next>
found all(Next next) {
    found found;
    try {
        while (next(found.records)) {
        }
    } catch (const ms::error &error) {
        found.end = ms::detail::text_of(static_cast<int>(error.kind())).name;
    }
    return found;
}

/// Uses the framer alone, with the whole input.
found by_framer(const std::string &words, const std::string &input, std::size_t max) {
    ms::framer framer = framer_of(words);
    std::string_view rest = input;
    return all([&](strings &records) {
        const ms::batch batch = framer.batch(rest, ms::extent::whole, max);
        append(records, batch);
        if (!batch.empty())
            rest.remove_prefix(batch.offsets().back());
        return !batch.empty();
    });
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

/// A length over the limit is an error immediately; skipping the record shows that it is also missing.
template <class Take>
found by_reader(ms::reader &reader, ms::framer &framer, Take take) {
    return all([&](strings &records) {
        try {
            return take(records);
        } catch (const ms::error &error) {
            if (error.code() != ms::errc::record_too_long)
                throw;
            return reader.skip_record(framer);
        }
    });
}

TEST(Vectors, Frames) {
    std::ifstream file(MILLSTREAM_VECTORS "/frames.tsv");
    ASSERT_TRUE(file);
    int cases = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        const strings column = split(line, '\t');
        ASSERT_EQ(column.size(), 5U) << line;
        SCOPED_TRACE(column[0]);
        const std::string &words = column[1];
        const std::string input = unhex(column[2]);
        found expected;
        if (column[3] != "-")
            for (const std::string &record : split(column[3], ','))
                expected.records.push_back(unhex(record));
        expected.end = column[4];
        // The framer has no record limit, so a record with a huge length is only incomplete.
        if (expected.end == "end") {
            for (const std::size_t max : {std::size_t{1}, std::size_t{2}, ms::all_records})
                EXPECT_EQ(by_framer(words, input, max), expected);
        }
        for (std::size_t piece = 1; piece <= input.size() + 1; piece += piece < 5 ? 1 : piece) {
            SCOPED_TRACE("in pieces of " + std::to_string(piece));
            ms::framer framer = framer_of(words);
            ms::reader one = in_pieces(input, piece);
            EXPECT_EQ(by_reader(one, framer,
                                [&](strings &records) {
                                    const auto record = one.next_frame(framer);
                                    if (record)
                                        records.emplace_back(*record);
                                    return record.has_value();
                                }),
                      expected);
            for (const std::size_t max : {std::size_t{2}, ms::all_records}) {
                ms::reader many = in_pieces(input, piece);
                EXPECT_EQ(by_reader(many, framer,
                                    [&](strings &records) {
                                        const auto batch = many.next_batch(framer, max);
                                        if (batch)
                                            append(records, *batch);
                                        return batch.has_value();
                                    }),
                          expected);
            }
        }
        ++cases;
    }
    EXPECT_GT(cases, 50);
}

} // namespace
