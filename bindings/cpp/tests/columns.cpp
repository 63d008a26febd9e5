// Tests of columns: the shared vectors, values of every type, nulls, errors and streams.

#include "millstream/columns.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

static_assert(std::movable<ms::columns> && !std::copyable<ms::columns>);
static_assert(std::movable<ms::column_batch> && !std::copyable<ms::column_batch>);
static_assert(ms::column_value<bool> && ms::column_value<std::chrono::sys_days> && !ms::column_value<std::string>);

ms::columns_options with_schema(std::string schema) {
    ms::columns_options options;
    options.schema = std::move(schema);
    return options;
}

ms::columns columns_of(const char *text, const ms::columns_options &options = {}) {
    return ms::columns(ms::memory{text}, options);
}

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

ms::columns_options options_of(const std::string &words) {
    ms::columns_options options;
    for (const std::string &word : split(words, " ")) {
        if (word.starts_with("null="))
            options.nulls.push_back(word.substr(5));
        else if (word.starts_with("first="))
            options.infer = std::stoul(word.substr(6));
        else if (word.starts_with("type=")) {
            std::string type = word.substr(5);
            std::replace(type.begin(), type.end(), '_', ' ');
            options.schema = R"({"fields": [{"name": "value", "type": ")" + type + "\"}]}";
        } else {
            options.special_numbers = options.special_numbers || word == "special";
            options.decimals = options.decimals || word == "decimals";
            EXPECT_TRUE(word == "special" || word == "decimals" || word == "default") << word;
        }
    }
    return options;
}

/// The values of a column as the vectors print them, for the types whose values C++ prints alike.
std::optional<strings> printed(const ms::column_batch &batch) {
    strings values;
    const auto print = [&]<class T>(const ms::column_view<T> &column, auto text) {
        for (std::size_t row = 0; row < column.size(); ++row)
            values.push_back(column.is_null(row) ? "null" : text(column[row]));
    };
    const std::string type = batch.type(0);
    const auto number = [](auto value) { return std::to_string(value); };
    if (type == "int64")
        print(batch.column<std::int64_t>(0), number);
    else if (type == "uint64")
        print(batch.column<std::uint64_t>(0), number);
    else if (type == "int8")
        print(batch.column<std::int8_t>(0), number);
    else if (type == "uint8")
        print(batch.column<std::uint8_t>(0), number);
    else if (type == "bool")
        print(batch.column<bool>(0), [](bool value) { return std::string(value ? "true" : "false"); });
    else if (type == "string")
        print(batch.column<std::string_view>(0), [](std::string_view value) { return std::string(value); });
    else if (type.starts_with("decimal128"))
        print(batch.column<ms::decimal128>(0), [](const ms::decimal128 &value) { return value.str(); });
    else
        return std::nullopt;
    return values;
}

TEST(Columns, Vectors) {
    std::ifstream file(MILLSTREAM_VECTORS "/infer.tsv");
    std::size_t cases = 0;
    std::size_t compared = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.starts_with('#'))
            continue;
        const strings parts = split(line, "\t");
        ASSERT_EQ(parts.size(), 6U) << line;
        SCOPED_TRACE(parts[0]);
        ++cases;
        std::string text = "value,end\n";
        strings expected;
        // The second field keeps lines with an empty field from being blank.
        const bool is_a_minus = parts[0] == "only_a_minus";
        if (parts[2] != "-" || is_a_minus) {
            for (const std::string &field : split(parts[2], " | "))
                text += unescaped(field) + ",\n";
        }
        if (parts[4] != "-" || is_a_minus) {
            for (const std::string &value : split(parts[4], " | "))
                expected.push_back(unescaped(value));
        }
        std::string end = "end";
        std::size_t rows = 0;
        strings found;
        bool is_printed = true;
        try {
            ms::columns columns{ms::memory{text}, options_of(parts[1])};
            EXPECT_TRUE(columns.schema().starts_with(R"({"fields":[{"name":"value","type":")" + parts[3] + '"'))
                << columns.schema();
            for (const ms::column_batch &batch : columns) {
                rows += batch.rows();
                EXPECT_EQ(batch.type(0), parts[3]);
                if (const auto more = printed(batch))
                    found.insert(found.end(), more->begin(), more->end());
                else
                    is_printed = false;
            }
        } catch (const ms::error &error) {
            end = name(error.kind());
        }
        EXPECT_EQ(rows, expected.size());
        EXPECT_EQ(end, parts[5]);
        if (is_printed) {
            EXPECT_EQ(found, expected);
            ++compared;
        }
    }
    EXPECT_GT(cases, 90U);
    EXPECT_GT(compared, cases / 2);
}

TEST(Columns, TypedViews) {
    const std::string schema = R"json({"fields": [
        {"name": "a", "type": "int16"}, {"name": "b", "type": "float32"}, {"name": "c", "type": "float64"},
        {"name": "d", "type": "bool"}, {"name": "e", "type": "binary"}, {"name": "f", "type": "date32"},
        {"name": "g", "type": "time64[us]"}, {"name": "h", "type": "timestamp[ms, UTC]"},
        {"name": "i", "type": "decimal128(38, 2)"}, {"name": "j", "type": "time64[ns]"}]})json";
    auto options = with_schema(schema);
    options.nulls = {"NA"};
    auto columns = columns_of("a,b,c,d,e,f,g,h,i,j\n"
                              "-300,0.5,1e5,true,xy,1970-01-03,00:00:01,1970-01-01T02:00:01.5+02:00,-12.5,00:00:00.5\n"
                              "NA,NA,NA,NA,NA,NA,NA,NA,NA,NA\n"
                              "7,1,2,false,,1969-12-31,23:59:59,2024-02-29T00:00:00Z,0.05,00:00:00\n",
                              options);
    EXPECT_EQ(columns.names(), (strings{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
    auto found = columns.next();
    ASSERT_TRUE(found);
    const ms::column_batch batch = std::move(*found);
    EXPECT_EQ(batch.rows(), 3U);
    EXPECT_EQ(batch.names(), columns.names());
    for (std::size_t i = 0; i < batch.names().size(); ++i)
        EXPECT_EQ(batch.raw().children[i]->null_count, 1) << i;

    const auto a = batch.column<std::int16_t>("a");
    EXPECT_EQ(a.size(), 3U);
    EXPECT_EQ(a.null_count(), 1U);
    EXPECT_TRUE(!a.empty() && !a.is_null(0) && a.is_null(1) && !a.is_null(2));
    EXPECT_EQ(a.values().size(), 3U);
    EXPECT_EQ(a.values()[0], -300);
    EXPECT_EQ(a.value(0), std::optional<std::int16_t>(static_cast<std::int16_t>(-300)));
    EXPECT_EQ(a.value(1), std::nullopt);
    EXPECT_EQ(batch.column<float>("b")[0], 0.5F);
    EXPECT_EQ(batch.column<double>("c").values()[0], 1e5);
    const auto d = batch.column<bool>("d");
    EXPECT_TRUE(d[0] && !d[2]);
    const auto e = batch.column<std::span<const std::byte>>("e");
    EXPECT_EQ(e[0].size(), 2U);
    EXPECT_EQ(e[0][1], std::byte{'y'});
    EXPECT_TRUE(e[2].empty());
    EXPECT_EQ(batch.column<std::chrono::sys_days>("f")[0], std::chrono::sys_days(std::chrono::days(2)));
    EXPECT_EQ(batch.column<std::int32_t>("f").values()[2], -1);
    EXPECT_EQ(batch.column<std::chrono::microseconds>("g")[0], std::chrono::seconds(1));
    EXPECT_EQ(batch.column<std::chrono::nanoseconds>("j")[0], std::chrono::milliseconds(500));
    using milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;
    EXPECT_EQ(batch.column<milliseconds>("h")[0], milliseconds(std::chrono::milliseconds(1500)));
    EXPECT_EQ(batch.column<std::int64_t>("h").values()[0], 1500);
    EXPECT_EQ(batch.type(7), "timestamp[ms, UTC]");
    EXPECT_EQ(batch.column<ms::decimal128>("i")[0].str(), "-12.50");
    EXPECT_EQ(batch.column<ms::decimal128>("i")[2].str(), "0.05");
    EXPECT_FALSE(columns.next());
    EXPECT_EQ(columns.rows(), 3U);

    // A view of another type, and a column that does not exist.
    const auto wrong = error_of([&] { batch.column<std::int64_t>("a"); });
    EXPECT_EQ(wrong.kind(), ms::errc::argument_invalid);
    EXPECT_EQ(wrong.found(), "the type int16");
    EXPECT_EQ(wrong.path(), "a");
    EXPECT_EQ(wrong.name(), "memory");
    EXPECT_EQ(error_of([&] { batch.column<std::chrono::nanoseconds>("g"); }).found(), "the type time64[us]");
    EXPECT_EQ(error_of([&] { batch.column<std::chrono::sys_seconds>("h"); }).path(), "h");
    EXPECT_EQ(error_of([&] { batch.column<std::uint16_t>("a"); }).kind(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([&] { batch.column<bool>(10); }).kind(), ms::errc::argument_invalid);
    const auto missing = error_of([&] { batch.column<bool>("x"); });
    EXPECT_EQ(missing.kind(), ms::errc::key_missing);
    EXPECT_TRUE(missing.expected().starts_with("one of \"a\", \"b\"")) << missing.expected();
}

constexpr const char *one_number = R"({"fields":[{"name":"n","type":"int64"}]})";

TEST(Columns, Options) {
    ms::columns_options options;
    options.dialect.delimiter = ';';
    options.nulls = {"", "n a", "100%"};
    options.threads = 2;
    auto columns = columns_of("s;n\nx;1\n;\nn a;3\n100%;4\n", options);
    EXPECT_EQ(columns.schema(), R"({"fields":[{"name":"s","type":"string"},{"name":"n","type":"int64"}]})");
    const auto batch = columns.next();
    const auto s = batch->column<std::string_view>("s");
    EXPECT_EQ(strings(s.begin(), s.end())[0], "x");
    EXPECT_EQ(s.null_count(), 3U);

    options = {};
    options.format = ms::columns_format::lines;
    auto lines = columns_of("a,b\n\nc\n", options);
    const auto batch_of_lines = lines.next();
    const auto text = batch_of_lines->column<std::string_view>("line");
    EXPECT_EQ(strings(text.begin(), text.end()), (strings{"a,b", "", "c"}));
    options.format = ms::columns_format::tsv;
    EXPECT_EQ(columns_of("a\tb\n1\t2\n", options).names(), (strings{"a", "b"}));
    options = {};
    options.header = false;
    options.infer = std::nullopt;
    options.ragged = ms::csv_ragged::pad;
    auto padded = columns_of("1,2\n3\n", options);
    EXPECT_EQ(padded.schema(), R"({"fields":[{"name":"0","type":"string"},{"name":"1","type":"string"}]})");
    EXPECT_TRUE(padded.next()->column<std::string_view>(1).is_null(1));
    options.ragged = ms::csv_ragged::collect;
    EXPECT_EQ(error_of([&] { columns_of("1,2\n3\n", options); }).kind(), ms::errc::invalid_option);
    EXPECT_EQ(error_of([] { columns_of("a,a\n"); }).kind(), ms::errc::shape_mismatch);
    const std::string with_nul("a\0b\n1\n", 6);
    EXPECT_EQ(error_of([&] { ms::columns(ms::memory{with_nul}); }).found(), "a NUL in the name of a column");
    // No column is asked for.
    EXPECT_EQ(columns_of("a\n1\n2\n", with_schema(R"({"fields": []})")).next()->rows(), 2U);
    EXPECT_EQ(error_of([] { columns_of("a\n", with_schema("[]")); }).kind(), ms::errc::json_invalid);
    options.infer = 0;
    EXPECT_EQ(error_of([&] { columns_of("a\n", options); }).kind(), ms::errc::invalid_option);
}

TEST(Columns, TypesFromAllRecords) {
    ms::columns_options options;
    std::string text = "n\n";
    for (int i = 0; i < 20'000; ++i)
        text += "1\n";
    text += "2.5\n";
    EXPECT_EQ(columns_of(text.c_str(), options).schema(), one_number);
    options.infer = ms::infer_all;
    auto columns = columns_of(text.c_str(), options);
    EXPECT_EQ(columns.schema(), R"({"fields":[{"name":"n","type":"float64"}]})");
    while (columns.next()) {
    }
    EXPECT_EQ(columns.rows(), 20'001U);
    const auto error = error_of([&] { ms::columns(ms::command{"echo", "n"}, options); });
    EXPECT_EQ(error.kind(), ms::errc::invalid_option);
    EXPECT_NE(error.found().find("types from all records of a command"), std::string::npos) << error.what();
    EXPECT_NE(error.expected().find("infer from a number of records"), std::string::npos) << error.what();
}

TEST(Columns, Errors) {
    auto columns = columns_of("n\n1\n2\nx\n4\n", with_schema(one_number));
    std::int64_t sum = 0;
    const auto error = error_of([&] {
        for (const ms::column_batch &batch : columns) {
            const auto values = batch.column<std::int64_t>("n").values();
            sum = std::accumulate(values.begin(), values.end(), sum);
        }
    });
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(error.kind(), ms::errc::number_invalid);
    EXPECT_EQ(error.line(), 4U);
    EXPECT_EQ(error.column(), 1U);
    EXPECT_EQ(error.path(), "n");
    EXPECT_FALSE(columns.next());

    auto options = with_schema(one_number);
    options.on_bad = ms::on_bad_record::skip;
    auto skipping = columns_of("n\n1\n2\nx\n4,5\n\"6\n", options);
    while (skipping.next()) {
    }
    EXPECT_EQ(skipping.rows(), 2U);
    EXPECT_EQ(skipping.rejected(), 3U);
    const std::vector<ms::reject> &rejects = skipping.rejects();
    ASSERT_EQ(rejects.size(), 3U);
    EXPECT_EQ(rejects[0].error.kind(), ms::errc::number_invalid);
    EXPECT_EQ(rejects[0].error.line(), 4U);
    EXPECT_EQ(rejects[0].error.path(), "n");
    EXPECT_EQ(rejects[0].raw, "x");
    EXPECT_EQ(rejects[1].raw, "4,5");
    EXPECT_EQ(rejects[2].raw, "\"6\n");
    EXPECT_EQ(skipping.rejects().size(), 3U);

    // An inferred type.
    std::string text = "n\n";
    for (int i = 0; i < 200'000; ++i)
        text += "1234567\n";
    text += "x\n";
    const auto late = error_of([&] {
        for (const ms::column_batch &batch : ms::columns(ms::memory{text}))
            EXPECT_GT(batch.rows(), 0U);
    });
    EXPECT_EQ(late.kind(), ms::errc::shape_mismatch);
    EXPECT_EQ(late.line(), 200'002U);
    EXPECT_NE(late.expected().find("increase infer"), std::string::npos);
}

TEST(Columns, Json) {
    ms::columns_options options;
    options.format = ms::columns_format::jsonl;
    options.on_bad = ms::on_bad_record::skip;
    auto lines = columns_of("{\"id\":1,\"price\":0.5}\n{\"id\":2,\"id\":3}\n{\"id\":null}\n", options);
    EXPECT_EQ(lines.schema(), R"({"fields":[{"name":"id","type":"int64"},{"name":"price","type":"float64"}]})");
    const auto batch = lines.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->column<std::int64_t>("id")[0], 1);
    EXPECT_TRUE(batch->column<std::int64_t>("id").is_null(1));
    EXPECT_EQ(batch->column<double>("price").value(0), std::optional<double>(0.5));
    ASSERT_EQ(lines.rejects().size(), 1U);
    EXPECT_EQ(lines.rejects()[0].error.kind(), ms::errc::json_invalid);
    EXPECT_EQ(lines.rejects()[0].error.line(), 2U);
    EXPECT_EQ(lines.rejects()[0].raw, "{\"id\":2,\"id\":3}");

    options = {};
    options.format = ms::columns_format::json;
    options.decimals = true;
    options.duplicates = ms::duplicates::last;
    auto elements = columns_of(R"([{"id": 1.50, "id": 2.5}, {"id": 3}])", options);
    EXPECT_EQ(elements.next()->column<ms::decimal128>("id")[0].str(), "2.5");
    options.duplicates = ms::duplicates::first;
    ms::reader_options reading;
    reading.json_elements = "/a/items";
    ms::columns inner(ms::memory{R"({"a": {"items": [{"id": 1, "id": 2}]}})"}, options, reading);
    EXPECT_EQ(inner.next()->column<std::int64_t>("id")[0], 1);
    EXPECT_FALSE(inner.next());
    options.nulls = {"NA"};
    EXPECT_EQ(error_of([&] { columns_of("[]", options); }).kind(), ms::errc::invalid_option);
    // The document is checked to its end.
    options.nulls = {};
    options.schema = one_number;
    ms::columns broken(ms::memory{R"([{"n": 1}, {"n": 2)"}, options);
    EXPECT_EQ(broken.next()->rows(), 1U);
    EXPECT_EQ(error_of([&] { broken.next(); }).name(), "memory");
}

TEST(Columns, CommandsAndCancelling) {
    ms::columns failing(ms::shell{"echo n; echo 1; exit 3"}, with_schema(one_number));
    EXPECT_TRUE(failing.next());
    EXPECT_EQ(error_of([&] { failing.next(); }).kind(), ms::errc::command_failed);
    {
        ms::columns early(ms::shell{"yes"});
        EXPECT_TRUE(early.next());
        early.close();
        EXPECT_EQ(error_of([&] { early.next(); }).kind(), ms::errc::closed);
    }
    ms::cancel_token token;
    ms::columns_options lines;
    lines.format = ms::columns_format::lines;
    lines.threads = 1;
    ms::reader_options reading;
    reading.cancel = &token;
    ms::columns waiting(ms::shell{"echo 1; exec sleep 60"}, lines, reading);
    token.cancel();
    EXPECT_EQ(error_of([&] { waiting.next(); }).kind(), ms::errc::cancelled);
    token.reset();
    EXPECT_EQ(waiting.next()->rows(), 1U);
}

TEST(Columns, StreamsOfArrow) {
    auto columns = columns_of("n\n1\n2\nx\n", with_schema(one_number));
    ArrowArrayStream stream{};
    columns.stream(&stream);
    ArrowSchema schema{};
    ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
    EXPECT_STREQ(schema.children[0]->name, "n");
    schema.release(&schema);
    ArrowArray batch{};
    ASSERT_EQ(stream.get_next(&stream, &batch), 0);
    EXPECT_EQ(batch.length, 2);
    batch.release(&batch);
    EXPECT_NE(stream.get_next(&stream, &batch), 0);
    EXPECT_NE(std::string(stream.get_last_error(&stream)).find("at line 4, column 1"), std::string::npos);
    EXPECT_EQ(error_of([&] { columns.throw_failure(); }).line(), 4U);
    columns.throw_failure(); // thrown already
    EXPECT_EQ(columns.rows(), 2U);
    stream.release(&stream);

    auto moved = columns_of("n\n1\n");
    auto other = std::move(moved);
    ArrowArray raw = std::move(*other.next()).release();
    EXPECT_EQ(raw.length, 1);
    raw.release(&raw);
    other = columns_of("n\n1\n2\n");
    const auto kept = other.next();
    EXPECT_EQ(kept->raw().length, 2);
    EXPECT_EQ(kept->raw_schema().n_children, 1);
}

TEST(Columns, DecimalsAsText) {
    EXPECT_EQ((ms::decimal128{0, 0, 0}).str(), "0");
    EXPECT_EQ((ms::decimal128{0, 0, 2}).str(), "0.00");
    EXPECT_EQ((ms::decimal128{5, 0, 1}).str(), "0.5");
    EXPECT_EQ((ms::decimal128{~std::uint64_t{0}, -1, 0}).str(), "-1");
    EXPECT_EQ((ms::decimal128{~std::uint64_t{0}, 0, 0}).str(), "18446744073709551615");
    EXPECT_EQ((ms::decimal128{0, 1, 3}).str(), "18446744073709551.616");
}

} // namespace
