// Tests of remote objects as sources and sinks, with tools/object-server.

#include "millstream/remote.hpp"
#include "millstream/columns.hpp"
#include "millstream/pipe.hpp"
#include "millstream/reader.hpp"
#include "millstream/writer.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace ms = millstream;

namespace {

static_assert(ms::source<ms::remote> && ms::source<const ms::remote &> && ms::sink<ms::remote &>);

/// A running store, which ends when its standard input is closed.
class store {
  public:
    store() : reader_(ms::command{MILLSTREAM_TOOLS "/object-server"}.stdin_from(ends_.read)) {
        ::close(ends_.read);
        address_ = reader_.next_line().value();
    }
    ~store() {
        ::close(ends_.write);
        reader_.close();
    }
    store(const store &) = delete;
    store &operator=(const store &) = delete;

    ms::remote object(const std::string &key) const {
        return ms::remote("s3://bucket/" + key, {.endpoint = address_, .anonymous = true});
    }
    std::string web(const std::string &key) const { return address_ + "/bucket/" + key; }

  private:
    struct pipe_ends {
        int read, write;
        pipe_ends() {
            std::array<int, 2> both{};
            EXPECT_EQ(::pipe2(both.data(), O_CLOEXEC), 0);
            read = both[0];
            write = both[1];
        }
    };
    pipe_ends ends_{};
    ms::reader reader_;
    std::string address_{};
};

std::string all(const ms::remote &object) {
    std::string text;
    for (std::string_view line : ms::lines(object))
        text += std::string(line) + '\n';
    return text;
}

TEST(Remote, ObjectsAreWrittenAndRead) {
    const store store;
    for (const char *key : {"a", "a b#%.gz", "long.zst"}) {
        ms::remote object = store.object(key);
        std::string text;
        ms::writer writer(object.header("Content-Type", "text/plain"));
        for (int i = 0; i < 300'000; ++i) {
            writer.print(i, '\n');
            text += std::to_string(i) + '\n';
        }
        EXPECT_EQ(error_of([&] { ms::reader(store.object(key)); }).code(), ms::errc::open_failed) << key;
        writer.close();
        EXPECT_EQ(all(object), text) << key;
    }
    ms::reader reader(store.object("a"));
    EXPECT_EQ(reader.name(), "s3://bucket/a");
    EXPECT_EQ(ms::pipe(store.object("a")).lines().count(), 300'000U);
}

TEST(Remote, AnObjectThatIsNotClosedDoesNotAppear) {
    const store store;
    {
        ms::writer writer(store.object("a"));
        writer.write("one\n");
        writer.abort();
    }
    EXPECT_EQ(error_of([&] { ms::reader(store.object("a")); }).code(), ms::errc::open_failed);
    ms::writer writer(store.object("a"), {.existing = ms::existing::create_new});
    writer.close();
    EXPECT_EQ(error_of([&] {
                  static_cast<void>(ms::writer(store.object("a"), {.existing = ms::existing::create_new}));
              }).code(),
              ms::errc::already_exists);
}

TEST(Remote, ABodyThatIsCutIsAnErrorAfterItsRecords) {
    const store store;
    ms::writer writer(store.object("a"));
    writer.write("one\ntwo\nthree\nfour\n").close();
    ms::reader reader(ms::remote(store.web("cut/a")));
    EXPECT_EQ(reader.next_line(), "one");
    EXPECT_EQ(reader.next_line(), "two");
    const ms::error error = error_of([&] { reader.next_line(); });
    EXPECT_EQ(error.code(), ms::errc::remote_failed);
    EXPECT_NE(std::string(error.what()).find("/bucket/cut/a"), std::string::npos) << error.what();
}

TEST(Remote, TypesFromAllRecords) {
    const store store;
    ms::writer writer(store.object("late.csv"));
    writer.write("n\n");
    for (int i = 0; i < 20'000; ++i)
        writer.write("1\n");
    writer.write("2.5\n").close();
    ms::columns_options options;
    options.infer = ms::infer_all;
    ms::columns columns(store.object("late.csv"), options);
    EXPECT_EQ(columns.schema(), R"({"fields":[{"name":"n","type":"float64"}]})");
    while (columns.next()) {
    }
    EXPECT_EQ(columns.rows(), 20'001U);
    const ms::error error = error_of([&] { ms::columns(ms::remote(store.web("once/late.csv")), options); });
    EXPECT_EQ(error.code(), ms::errc::invalid_option);
    EXPECT_NE(error.found().find("an object without ranges or a strong ETag"), std::string::npos) << error.what();
}

TEST(Remote, HeadersArriveAndAreNotShown) {
    const store store;
    ms::remote object(store.web("headers?token=s3cret"), {.idle_timeout = std::chrono::seconds(5)});
    EXPECT_NE(all(object.header("Authorization", "s3cret")).find("\nauthorization: s3cret\n"), std::string::npos);
    const ms::error error = error_of([&] { ms::reader(object.header("a b", "s3cret")); });
    EXPECT_EQ(error.code(), ms::errc::invalid_option);
    EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
}

TEST(Remote, WhatCannotWorkIsRefused) {
    EXPECT_EQ(error_of([] { static_cast<void>(ms::writer(ms::remote("http://127.0.0.1/a"))); }).code(),
              ms::errc::unsupported);
    EXPECT_EQ(error_of([] { ms::reader(ms::remote("gs://bucket")); }).code(), ms::errc::invalid_option);
    EXPECT_EQ(error_of([] { ms::reader(ms::remote("s3://bucket/a", {.connections = 0})); }).code(),
              ms::errc::invalid_option);
    EXPECT_EQ(error_of([] { static_cast<void>(ms::writer(ms::remote("s3://bucket/a", {.part_size = 1}))); }).code(),
              ms::errc::invalid_option);
}

} // namespace
