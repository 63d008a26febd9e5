// Tests of JSON: the shared vectors, as lines and as elements of documents.

#include "millstream/frame.hpp"
#include "millstream/reader.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

/// Splits a text.
strings split(std::string text, const std::string &separator) {
    strings parts;
    for (std::size_t at = 0; (at = text.find(separator)) != text.npos; text.erase(0, at + separator.size()))
        parts.push_back(text.substr(0, at));
    parts.push_back(text);
    return parts;
}

/// Undoes `\n`, `\xHH`, `\[N]` and the like.
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
        } else if (letter == '[' || letter == ']') {
            const std::size_t end = text.find(']', at + 1);
            bytes.append(static_cast<std::size_t>(std::stoi(text.substr(at + 1, end - at - 1))), letter);
            at = end;
        } else {
            bytes.push_back(letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter == 't' ? '\t' : letter);
        }
    }
    return bytes;
}

/// Uses a reader whose source delivers `piece` bytes at a time.
ms::reader in_pieces(const std::string &input, std::size_t piece, ms::reader_options options) {
    const auto fill = [&input, piece, at = std::size_t{0}](std::span<char> space) mutable {
        const std::size_t count = std::min({piece, space.size(), input.size() - at});
        input.copy(space.data(), count, at);
        at += count;
        return count;
    };
    options.capacity = 8;
    options.decode = ms::decode::off;
    return ms::reader(ms::callback{fill}, options);
}

TEST(Json, Vectors) {
    std::ifstream file(MILLSTREAM_VECTORS "/json.tsv");
    ASSERT_TRUE(file);
    int cases = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        const strings column = split(line, "\t");
        ASSERT_EQ(column.size(), 5U) << line;
        SCOPED_TRACE(column[0]);
        const std::string input = unescaped(column[2]);
        strings expected;
        if (column[3] != "-") {
            for (const std::string &record : split(column[3], " / "))
                expected.push_back(unescaped(record));
        }
        const bool is_document = column[1].rfind("elements ", 0) == 0;
        ms::framer framer =
            is_document ? ms::framer::delimiter("\x1e") : ms::framer::json_lines({.check = column[1] == "checked"});
        ms::reader_options options;
        if (is_document)
            options.json_elements = unescaped(column[1].substr(9));
        for (std::size_t piece = 1; piece <= input.size() + 1; piece += piece < 9 ? 1 : piece) {
            SCOPED_TRACE("in pieces of " + std::to_string(piece));
            strings found;
            std::string end = "end";
            try {
                ms::reader reader = in_pieces(input, piece, options);
                while (const auto record = reader.next_frame(framer)) {
                    if (!framer.skips(*record))
                        found.emplace_back(*record);
                }
            } catch (const ms::error &error) {
                end = std::string(ms::name(error.kind())) + " at " + std::to_string(error.offset().value());
            }
            EXPECT_EQ(found, expected);
            EXPECT_EQ(end, column[4]);
        }
        ++cases;
    }
    EXPECT_GT(cases, 120);
}

TEST(Json, InvalidLinesAreSkipped) {
    ms::reader reader(ms::memory{"1\n{\n[[2]]\n3"}, {.name = "a.jsonl"});
    ms::framer lines = ms::framer::json_lines({.check = true, .depth = 1});
    EXPECT_EQ(reader.next_frame(lines), "1");
    const ms::error invalid = error_of([&] { reader.next_frame(lines); });
    EXPECT_EQ(invalid.kind(), ms::errc::json_invalid);
    EXPECT_EQ(invalid.line(), 2U);
    EXPECT_TRUE(reader.skip_record(lines));
    EXPECT_EQ(error_of([&] { reader.next_frame(lines); }).kind(), ms::errc::too_deep);
    EXPECT_TRUE(reader.skip_record(lines));
    EXPECT_EQ(reader.next_frame(lines), "3");
    EXPECT_FALSE(ms::framer::lines().skips(""));
}

} // namespace
