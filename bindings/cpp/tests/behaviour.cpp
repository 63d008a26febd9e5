// The shared vectors of behaviour: detection of compression, limits, defaults of options.

#include "millstream/csv.hpp"
#include "millstream/reader.hpp"
#include "millstream/writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <stdlib.h>

namespace ms = millstream;

namespace {

using strings = std::vector<std::string>;

strings split(const std::string &text, char delimiter) {
    strings parts{""};
    for (const char c : text)
        c == delimiter ? parts.emplace_back() : parts.back() += std::string(1, c);
    return parts;
}

std::string unhex(const std::string &hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

/// Reads a whole file.
std::string content(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<strings> cases(const std::string &file) {
    std::ifstream lines(MILLSTREAM_VECTORS "/" + file);
    std::vector<strings> cases;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty() && line[0] != '#')
            cases.push_back(split(line, '\t'));
    EXPECT_FALSE(cases.empty()) << file;
    return cases;
}

class directory {
  public:
    directory() {
        std::string name = (std::filesystem::temp_directory_path() / "millstream-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    directory(const directory &) = delete;
    directory &operator=(const directory &) = delete;
    ~directory() { std::filesystem::remove_all(path_); }
    std::filesystem::path operator/(const std::string &name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

std::string written(const std::filesystem::path &path, const std::string &bytes) {
    ms::writer writer(ms::path{path});
    writer.write(bytes);
    writer.close();
    return content(path);
}

std::string all_of(ms::reader reader) {
    std::string bytes;
    while (reader.fill() > 0) {
        const std::span<const char> buffer = reader.buffer();
        bytes.append(buffer.data(), buffer.size());
        reader.consume(buffer.size());
    }
    return bytes;
}

/// Returns the name of the error kind with which a call fails, or `end`.
template <class Call>
std::string end_of(Call call) {
    try {
        call();
        return "end";
    } catch (const ms::error &error) {
        return std::string(ms::detail::text_of(static_cast<int>(error.kind())).name);
    }
}

TEST(Vectors, Sniff) {
    for (const strings &column : cases("sniff.tsv")) {
        SCOPED_TRACE(column[0]);
        const directory here;
        const std::filesystem::path path = here / column[2];
        const std::string input = unhex(column[3]), output = unhex(column[4]);
        std::string found;
        EXPECT_EQ(end_of([&] {
                      if (column[1] == "read") {
                          std::ofstream(path, std::ios::binary) << input;
                          found = all_of(ms::reader(ms::path{path}));
                      } else {
                          found = written(path, input).substr(0, output.size());
                      }
                  }),
                  column[5]);
        if (column[5] == "end") {
            EXPECT_EQ(found, output);
        }
    }
}

std::optional<ms::framer> framer_of(const std::string &words) {
    const strings word = split(words, ' ');
    const auto delimited = word.back() == "untrimmed" ? ms::delimited::untrimmed : ms::delimited::trimmed;
    if (word[0] == "lines")
        return ms::framer::lines(delimited);
    if (word[0] == "byte" || word[0] == "bytes")
        return ms::framer::delimiter(unhex(word[1]), delimited);
    if (word[0] == "any-of") {
        const std::string set = unhex(word[1]);
        return ms::framer::predicate([&](unsigned char byte) { return set.find(static_cast<char>(byte)) != set.npos; },
                                     delimited);
    }
    if (word[0] == "bson")
        return ms::framer::bson();
    if (word[0] == "csv")
        return ms::framer::csv();
    if (word[0] == "fixed")
        return ms::framer::fixed(std::stoul(word[1]));
    if (word[0] == "prefix")
        return ms::framer::length_prefixed(
            std::stoul(word[1].substr(1)) / 8, word[2] == "big" ? std::endian::big : std::endian::little,
            word[3] == "itself" ? ms::prefix_counts::itself : ms::prefix_counts::payload);
    return std::nullopt; // a character, which C++ stores as bytes
}

TEST(Vectors, Limits) {
    for (const strings &column : cases("limits.tsv")) {
        SCOPED_TRACE(column[0]);
        std::optional<ms::framer> framer = framer_of(column[1]);
        if (!framer)
            continue;
        strings expected, found;
        if (column[4] != "-")
            for (const std::string &record : split(column[4], ','))
                expected.push_back(unhex(record));
        ms::reader reader(ms::memory{unhex(column[3])},
                          {.record_limit = std::stoul(column[2]), .decode = ms::decode::off});
        EXPECT_EQ(end_of([&] {
                      while (const auto record = reader.next_frame(*framer))
                          found.emplace_back(*record);
                  }),
                  column[5]);
        EXPECT_EQ(found, expected);
    }
}

std::string shown(std::optional<std::uint64_t> number) { return number ? std::to_string(*number) : "-"; }

TEST(Vectors, Places) {
    for (const strings &column : cases("places.tsv")) {
        SCOPED_TRACE(column[0]);
        ms::reader reader(ms::memory{unhex(column[3])},
                          {.record_limit = std::stoul(column[2]), .decode = ms::decode::off});
        try {
            if (column[1] == "scan u32") {
                while (reader.scan<std::uint32_t>()) {
                }
            } else if (column[1] == "rows") {
                ms::rows rows(std::move(reader));
                rows.header();
                while (rows.next()) {
                }
            } else {
                ms::framer framer = framer_of(column[1]).value();
                while (reader.next_frame(framer)) {
                }
            }
            ADD_FAILURE() << "no error";
        } catch (const ms::error &error) {
            EXPECT_EQ(ms::name(error.kind()), column[4]);
            EXPECT_EQ(
                (strings{shown(error.offset()), shown(error.record()), shown(error.line()), shown(error.column())}),
                strings(column.begin() + 5, column.end()));
        }
    }
}

std::string yes(bool is_so) { return is_so ? "yes" : "no"; }

/// Returns the default of an option, as determined from behaviour; nothing if C++ lacks the option.
std::optional<std::string> default_of(const std::string &option) {
    const directory here;
    const std::string zipped = unhex("1f8b080000000000020333e4020053fc516702000000");
    const std::filesystem::path file = here / "file.gz";
    const auto fails = [](auto call) { return end_of(call) != "end"; };
    const auto is_decoded = [](ms::reader reader) { return yes(reader.next_line() == "1"); };
    const auto is_long = [&](std::size_t size) {
        ms::reader reader(ms::memory{std::string(size, 'x')});
        return fails([&] { reader.next_line(); });
    };
    if (option == "record_limit")
        return !is_long(64U << 20) && is_long((64U << 20) + 1) ? "67108864" : "another";
    if (option == "keep_delimiter") {
        ms::framer framer = ms::framer::lines();
        return yes(ms::reader(ms::memory{"1\n"}).next_frame(framer) != "1");
    }
    if (option == "prefix_order") {
        ms::framer framer = ms::framer::length_prefixed(4);
        ms::reader reader(ms::memory{std::string("\1\0\0\0a", 5)});
        return fails([&] { reader.next_frame(framer); }) ? "big" : "little";
    }
    if (option == "prefix_counts") {
        ms::framer framer = ms::framer::length_prefixed(1);
        return ms::reader(ms::memory{"\2ab"}).next_frame(framer) == "ab" ? "payload" : "itself";
    }
    if (option == "decode_file") {
        std::ofstream(file, std::ios::binary) << zipped;
        return is_decoded(ms::reader(ms::path{file}));
    }
    if (option == "decode_memory")
        return is_decoded(ms::reader(ms::memory{zipped}));
    if (option == "decode_command")
        return is_decoded(ms::reader(ms::command{"sh", "-c", "echo 1 | gzip"}));
    if (option == "decode_callback") {
        const auto fill = [&, at = std::size_t{0}](std::span<char> space) mutable {
            const std::size_t count = zipped.copy(space.data(), space.size(), at);
            at += count;
            return count;
        };
        return is_decoded(ms::reader(ms::callback{fill}));
    }
    if (option == "command_failure")
        return fails([] { ms::reader(ms::command{"false"}).next_line(); }) ? "error" : "allowed";
    if (option == "command_stdin")
        return ms::reader(ms::command{"cat"}).next_line() ? "something" : "nothing";
    if (option == "encode_file")
        return written(file, "1\n").starts_with("\x1f\x8b") ? "by name" : "no";
    if (option == "encode_memory") {
        ms::writer writer{ms::to_memory{}};
        writer.write("1\n");
        writer.close();
        return yes(writer.memory() != "1\n");
    }
    if (option == "existing_file") {
        written(here / "a", "before");
        return written(here / "a", "after") == "after" ? "replaced" : "appended";
    }
    if (option == "unfinished_file") {
        {
            ms::writer writer(ms::path{here / "b"});
            writer.write("1");
        }
        return std::filesystem::exists(here / "b") ? "kept" : "removed";
    }
    if (option == "on_error")
        return std::nullopt; // stages throw their own exceptions
    ADD_FAILURE() << "no test for the option " << option;
    return std::nullopt;
}

TEST(Vectors, Defaults) {
    for (const strings &column : cases("defaults.tsv")) {
        SCOPED_TRACE(column[0]);
        const std::optional<std::string> found = default_of(column[0]);
        if (found) {
            EXPECT_EQ(*found, column[1]);
        }
    }
}

} // namespace
