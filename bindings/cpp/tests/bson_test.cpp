// Tests of BSON: views of documents, conversion from and to user-defined types, and streams.

#include "millstream/bson.hpp"

#include "error_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace ms = millstream;

namespace test {

enum class colour { red, green };

// A type with its own encoding.
void ms_bson_encode(ms::bson::builder &to, std::optional<std::string_view> key, const colour &from) {
    to.put(key, from == colour::red ? "red" : "green");
}
void ms_bson_decode(const ms::bson::value &from, colour &to) {
    const auto name = from.as<std::string_view>();
    if (name != "red" && name != "green")
        from.fail(ms::errc::shape_mismatch, std::string(name), "red or green");
    to = name == "red" ? colour::red : colour::green;
}

struct point {
    double x = 0;
    double y = 0;
    friend bool operator==(const point &, const point &) = default;
};
MS_BSON_FIELDS(point, x, y)

struct shape {
    std::string name;
    std::vector<point> points;
    std::optional<int> layer;
    std::optional<std::vector<std::string>> tags;
    std::map<std::string, std::int64_t> counts;
    test::colour colour = colour::red;
    bool closed = false;
    std::uint8_t opacity = 255;
    ms::bson::date_time made{};
    ms::bson::object_id id{};
    friend bool operator==(const shape &, const shape &) = default;
};
MS_BSON_FIELDS(shape, name, points, layer, tags, counts, colour, closed, opacity, made, id)

struct name_only {
    std::string_view name;
};
MS_BSON_FIELDS(name_only, name)

// A type whose members have other names in documents, and a type derived from a type with fields.
struct user {
    ms::bson::object_id id{};
    std::string name;
    std::array<double, 2> place{};
    std::chrono::sys_seconds born{};
    friend bool operator==(const user &, const user &) = default;
};
MS_BSON_FIELDS(user, MS_BSON_FIELD_AS(id, "_id"), name, place, MS_BSON_FIELD_AS(born, "born on"))

struct point_in_space : point {
    double z = 0;
};

// Fails after it has appended half of its members.
struct half {
    int after = 0;
};
void ms_bson_encode(ms::bson::builder &to, std::optional<std::string_view> key, const half &from) {
    key ? to.open_array(*key) : to.push_array();
    for (int i = 0; i < from.after; ++i)
        to.push(i);
    throw std::domain_error("half of it");
}

struct holder {
    int before = 1;
    std::vector<half> halves;
};
MS_BSON_FIELDS(holder, before, halves)

} // namespace test

namespace {

namespace bson = ms::bson;
using namespace std::literals;

static_assert(std::ranges::input_range<const bson::document> && std::ranges::input_range<const bson::array>);
static_assert(std::copyable<bson::document> && std::movable<bson::builder> && !std::copyable<bson::builder>);

/// {"a": {"b": [1, 2]}, "c": null, "d": 3}
constexpr std::string_view nested = "\x2d\0\0\0\x03"
                                    "a\0\x1b\0\0\0\x04"
                                    "b\0\x13\0\0\0\x10"
                                    "0\0\1\0\0\0\x10"
                                    "1\0\2\0\0\0\0\0\x0a"
                                    "c\0\x10"
                                    "d\0\3\0\0\0\0"sv;

// Views cannot be taken from temporaries.
template <class Owner>
concept lends = requires(Owner owner) {
    std::forward<Owner>(owner).view();
}
&&requires(Owner owner) { std::forward<Owner>(owner)["key"]; }
&&requires(Owner owner) { std::forward<Owner>(owner).begin(); };
static_assert(lends<const bson::owned_document &> && !lends<bson::owned_document>);
// The fields of a base class are not the fields of a derived class.
static_assert(bson::detail::has_fields<test::point> && !bson::detail::has_fields<test::point_in_space>);
static_assert(std::is_constructible_v<bson::document, const std::string &>);
static_assert(!std::is_constructible_v<bson::document, std::string>);

TEST(Document, FindsMembers) {
    const bson::document document(nested);
    document.check();
    EXPECT_EQ(document["d"].as<int>(), 3);
    EXPECT_EQ(document["a"]["b"][1].as<int>(), 2);
    EXPECT_EQ(document.at_path("a.b.0").as<std::int64_t>(), 1);
    EXPECT_EQ(document.find_keys({"a", "b", "1"})->as<double>(), 2);
    EXPECT_EQ(document.get<int>("d"), 3);
    EXPECT_EQ(document.get<int>("e"), std::nullopt);
    EXPECT_EQ(document["a"].get<int>("e"), std::nullopt);
    EXPECT_FALSE(document.find("e") || document.find_path("a.e") || document.find_path("d.e"));
    EXPECT_TRUE(document["c"].is_null());
    EXPECT_EQ(document["c"].as<std::optional<int>>(), std::nullopt);
    EXPECT_EQ(document["d"].as<std::optional<int>>(), 3);
    EXPECT_EQ(document["a"].type(), bson::type::document);
    EXPECT_EQ(document["a"]["b"].offset(), 14U);
    EXPECT_EQ(document.at_offset(100)["a"]["b"].offset(), 114U);
    EXPECT_EQ(document["d"].payload().size(), 4U);
    EXPECT_EQ(document, bson::document::first(std::as_bytes(std::span(nested))));
    EXPECT_TRUE(bson::value().is_null());

    const ms::error missing = error_of([&] { document["a"]["x"]; });
    EXPECT_EQ(missing.code(), ms::errc::key_missing);
    EXPECT_EQ(missing.path(), "a.x");
    EXPECT_EQ(error_of([&] { document.at_path("a.b.9"); }).path(), "a.b.9");
    EXPECT_EQ(error_of([&] { document["a"]["b"][2]; }).path(), "a.b.2");
    const ms::error mismatch = error_of([&] { document["a"]["b"][1].as<std::string_view>(); });
    EXPECT_EQ(mismatch.code(), ms::errc::shape_mismatch);
    EXPECT_EQ(mismatch.path(), "a.b.1");
    EXPECT_EQ(mismatch.offset(), 28U);
    EXPECT_EQ(error_of([&] { document["d"]["e"]; }).code(), ms::errc::shape_mismatch);
    EXPECT_EQ(error_of([&] { document["d"].as<bson::array>(); }).path(), "d");
    EXPECT_EQ(error_of([&] { document["a"].as<bson::array>(); }).code(), ms::errc::shape_mismatch);
    EXPECT_EQ(error_of([&] { bson::value().as<int>(); }).code(), ms::errc::key_missing);
}

TEST(Document, IsARangeOfMembers) {
    const bson::document document(nested);
    std::string keys;
    for (const auto &[key, value] : document) {
        keys.append(key).append(value.is_null() ? "- " : " ");
    }
    EXPECT_EQ(keys, "a c- d ");
    int sum = 0;
    for (const bson::value &value : document["a"]["b"].as<bson::array>())
        sum += value.as<int>();
    EXPECT_EQ(sum, 3);
    EXPECT_TRUE(bson::document("\5\0\0\0\0"sv).empty());
    for (const auto &member : bson::document("\5\0\0\0\0"sv))
        FAIL() << member.key;
}

TEST(Document, IsReadByItsRules) {
    const std::string after = std::string(nested) + "x";
    EXPECT_EQ(error_of([&] { bson::document{after}; }).code(), ms::errc::document_invalid);
    EXPECT_EQ(bson::document(after, {.strictness = bson::strictness::lenient}).size(), nested.size());
    EXPECT_EQ(error_of([&] { bson::document(nested, {.depth = 2}).check(); }).path(), "a.b");
    EXPECT_EQ(error_of([&] { bson::document(nested, {.depth = 2})["a"]["b"][0]; }).code(), ms::errc::too_deep);
    const std::string_view bad = "\x0e\0\0\0\2s\0\2\0\0\0\xff\0\0"sv;
    EXPECT_EQ(error_of([&] { bson::document(bad).find("s"); }).code(), ms::errc::utf8_invalid);
    EXPECT_EQ(bson::document(bad, {.utf8 = bson::utf8::lossy})["s"].as<std::string>(), "\xff");
}

TEST(Value, IsEveryTypeOfItsOwn) {
    const bson::object_id id{{std::byte{1}, std::byte{2}}};
    const bson::decimal128 decimal{{std::byte{7}}};
    const bson::date_time now{std::chrono::milliseconds(1234567890123)};
    const std::array bytes{std::byte{3}, std::byte{4}};
    bson::builder builder;
    builder.append("float", 1.5F).append("text", "Gr\xc3\xbc\xc3\x9f"s).append("bool", true).append("date", now);
    builder.append("id", id).append("decimal", decimal).append("binary", bson::binary{4, bytes});
    builder.append("bytes", std::vector<std::byte>(3)).append("regex", bson::regex{"a+", "i"});
    builder.append("code", bson::code{"f()"}).append("symbol", bson::symbol{"s"}).append("null", std::nullopt);
    builder.append("min", bson::min_key_value{}).append("max", bson::max_key_value{});
    builder.append("timestamp", bson::timestamp{17, 4}).append("char", "x").append("none", std::optional<int>());
    const bson::document document = builder.finish();
    document.check();
    EXPECT_EQ(document["float"].as<float>(), 1.5F);
    EXPECT_EQ(document["text"].as<std::string_view>(), "Gr\xc3\xbc\xc3\x9f");
    EXPECT_TRUE(document["bool"].as<bool>());
    EXPECT_EQ(document["date"].as<bson::date_time>(), now);
    EXPECT_EQ(document["id"].as<bson::object_id>(), id);
    EXPECT_EQ(document["decimal"].as<bson::decimal128>(), decimal);
    EXPECT_EQ(document["binary"].as<bson::binary>().subtype, 4);
    EXPECT_EQ(document["binary"].as<std::vector<std::byte>>(), std::vector(bytes.begin(), bytes.end()));
    EXPECT_EQ(document["bytes"].as<std::span<const std::byte>>().size(), 3U);
    EXPECT_EQ(document["regex"].as<bson::regex>(), (bson::regex{"a+", "i"}));
    EXPECT_EQ(document["code"].as<bson::code>(), bson::code{"f()"});
    EXPECT_EQ(document["code"].as<std::string>(), "f()");
    EXPECT_EQ(document["symbol"].as<bson::symbol>(), bson::symbol{"s"});
    EXPECT_EQ(document["null"].as<bson::null_value>(), bson::null_value{});
    EXPECT_EQ(document["min"].as<bson::min_key_value>(), bson::min_key_value{});
    EXPECT_EQ(document["max"].as<bson::max_key_value>(), bson::max_key_value{});
    EXPECT_EQ(document["timestamp"].as<bson::timestamp>(), (bson::timestamp{17, 4}));
    EXPECT_TRUE(document["none"].is_null());
    for (const char *key : {"float", "text", "bool", "date", "id", "binary", "regex", "null", "min", "timestamp"}) {
        SCOPED_TRACE(key);
        const auto refuses = [&](auto as) {
            const ms::error error = error_of([&] { as(document[key]); });
            EXPECT_EQ(error.code(), ms::errc::shape_mismatch);
            EXPECT_EQ(error.path(), key);
        };
        refuses([](const bson::value &value) { value.as<bson::decimal128>(); });
        refuses([](const bson::value &value) { value.as<bson::symbol>(); });
        refuses([](const bson::value &value) { value.as<bson::max_key_value>(); });
        refuses([](const bson::value &value) { value.as<test::point>(); });
    }

    // Every value is written in the form in which it was read.
    bson::builder copy;
    for (const auto &[key, value] : document)
        copy.append(key, value);
    EXPECT_EQ(copy.finish(), document);
    copy.clear().append_members(document);
    EXPECT_EQ(copy.finish(), document);
}

TEST(Value, IsAnIntegerOnlyIfItFits) {
    bson::builder builder;
    builder.append("big", std::int64_t{1} << 40).append("small", -1).append("half", 0.5).append("two", 2.0);
    builder.append("byte", std::uint8_t{200}).append("most", std::numeric_limits<std::int64_t>::max());
    const bson::document document = builder.finish();
    EXPECT_EQ(document["big"].as<std::uint64_t>(), std::uint64_t{1} << 40);
    EXPECT_EQ(document["byte"].as<std::uint8_t>(), 200);
    EXPECT_EQ(document["two"].as<short>(), 2);
    EXPECT_EQ(document["small"].as<long long>(), -1);
    EXPECT_EQ(document["small"].as<double>(), -1);
    const auto refuses = [&]<class T>(const char *key, T) {
        const ms::error error = error_of([&] { static_cast<void>(document[key].as<T>()); });
        EXPECT_EQ(error.code(), ms::errc::value_out_of_range) << key;
        EXPECT_EQ(error.path(), key);
        EXPECT_TRUE(error.offset().has_value());
    };
    refuses("big", int{});
    refuses("big", std::uint32_t{});
    refuses("small", unsigned{});
    refuses("small", std::uint64_t{});
    refuses("small", std::uint8_t{});
    refuses("half", int{});
    refuses("half", short{});
    refuses("byte", std::int8_t{});
    refuses("most", double{});
    EXPECT_EQ(error_of([&] { builder.clear().append("u", ~std::uint64_t{}); }).code(), ms::errc::value_out_of_range);
}

TEST(Value, IsNumbersThatLieInABinary) {
    const std::vector<float> floats{1.5F, -2, 3};
    for (const std::size_t shift : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
        bson::builder builder;
        builder.append("pad", std::string(shift, 'x')).append("data", std::span<const float>(floats));
        const bson::document document = builder.finish();
        const bson::value data = document["data"];
        const auto view = data.as<bson::numbers<float>>();
        ASSERT_EQ(view.size(), 3U);
        EXPECT_EQ(view[1], -2);
        EXPECT_EQ(view.to_vector(), floats);
        static_assert(std::ranges::random_access_range<bson::numbers<float>> &&
                      std::ranges::sized_range<bson::numbers<float>>);
        EXPECT_TRUE(std::ranges::equal(view, floats));
        EXPECT_EQ(*std::ranges::max_element(view), 3);
        EXPECT_EQ(view.end()[-1], 3);
        float sum = 0;
        for (const float number : view)
            sum += number;
        EXPECT_EQ(sum, 2.5F);
        EXPECT_EQ(data.as<std::vector<float>>(), floats);
        if (view.span())
            EXPECT_EQ(data.as<std::span<const float>>()[0], 1.5F);
        else
            EXPECT_EQ(error_of([&] { data.as<std::span<const float>>(); }).code(), ms::errc::unsupported);
        EXPECT_EQ(view.span().has_value(), reinterpret_cast<std::uintptr_t>(data.payload().data() + 5) % 4 == 0);
        EXPECT_EQ(error_of([&] { data.as<std::vector<double>>(); }).code(), ms::errc::shape_mismatch);
        EXPECT_EQ(error_of([&] { data.as<bson::numbers<double>>(); }).path(), "data");
        EXPECT_EQ(data.as<std::vector<std::uint8_t>>().size(), 12U);
        EXPECT_EQ((data.as<std::array<float, 3>>()), (std::array{1.5F, -2.0F, 3.0F}));
        EXPECT_EQ(error_of([&] { data.as<std::array<float, 4>>(); }).code(), ms::errc::shape_mismatch);
        // The address of an empty range does not matter.
        builder.clear().append("pad", std::string(shift, 'x')).append("data", std::span<const double>());
        const bson::document none = builder.finish();
        EXPECT_TRUE(none["data"].as<std::span<const double>>().empty());
        EXPECT_TRUE(none["data"].as<bson::numbers<double>>().to_vector().empty());
    }
    bson::builder builder;
    builder.append("list", std::vector<double>{1, 2.5}).append("none", std::vector<int>());
    EXPECT_EQ(builder.finish()["list"].as<std::vector<double>>(), (std::vector<double>{1, 2.5}));
    EXPECT_TRUE(builder.finish()["none"].as<std::vector<int>>().empty());
}

test::shape example() {
    test::shape shape;
    shape.name = "triangle";
    shape.points = {{1, 2}, {3, 4.5}, {-1, 0}};
    shape.tags = {{"a", "b"}};
    shape.counts = {{"x", 1}, {"y", std::int64_t{1} << 33}};
    shape.colour = test::colour::green;
    shape.closed = true;
    shape.opacity = 7;
    shape.made = bson::date_time(std::chrono::milliseconds(1));
    shape.id.bytes[3] = std::byte{9};
    return shape;
}

TEST(Fields, AreDecodedAndEncoded) {
    const test::shape shape = example();
    bson::builder builder;
    const bson::document document = bson::encode(builder, shape);
    document.check();
    EXPECT_EQ(document.as<test::shape>(), shape);
    EXPECT_EQ(document.as<test::name_only>().name, "triangle");
    EXPECT_EQ(document["points"].as<std::vector<test::point>>(), shape.points);
    EXPECT_EQ(document["points"][1].as<test::point>(), shape.points[1]);
    EXPECT_TRUE(document["layer"].is_null());
    using map = std::map<std::string, double>;
    EXPECT_EQ((document["points"][1].as<std::unordered_map<std::string, double>>()["y"]), 4.5);
    EXPECT_EQ((document["counts"].as<map>()["x"]), 1);
}

TEST(Fields, MayHaveOtherNames) {
    test::user user;
    user.id = bson::object_id::make();
    user.name = "Ann";
    user.place = {1.5, -2};
    user.born = std::chrono::sys_seconds(std::chrono::seconds(-86400));
    bson::builder builder;
    const bson::document document = bson::encode(builder, user);
    EXPECT_EQ(document["_id"].as<bson::object_id>(), user.id);
    EXPECT_EQ(document["born on"].as<bson::date_time>().time_since_epoch().count(), -86400000);
    EXPECT_EQ(document.as<test::user>(), user);
    EXPECT_FALSE(document.find("id"));
}

TEST(Value, IsATimeOfAnyUnit) {
    using namespace std::chrono;
    const auto time = [](std::int64_t ms) { return bson::date_time(milliseconds(ms)); };
    bson::builder builder;
    builder.append("ns", sys_time<nanoseconds>(1'000'001ns)).append("before", sys_time<microseconds>(-1us));
    builder.append("day", sys_days(days(2))).append("half", time(1500)).append("far", time(9'300'000'000'000'000));
    const bson::document document = builder.finish();
    EXPECT_EQ(document["ns"].as<bson::date_time>(), time(1));
    EXPECT_EQ(document["ns"].as<system_clock::time_point>(), system_clock::time_point(1ms));
    EXPECT_EQ(document["before"].as<bson::date_time>(), time(-1));
    EXPECT_EQ(document["day"].as<sys_days>(), sys_days(days(2)));
    EXPECT_EQ(document["half"].as<sys_time<microseconds>>(), sys_time<microseconds>(1500ms));
    EXPECT_EQ(error_of([&] { document["half"].as<sys_seconds>(); }).path(), "half");
    EXPECT_EQ(error_of([&] { document["far"].as<sys_time<nanoseconds>>(); }).code(), ms::errc::value_out_of_range);
    EXPECT_EQ(document["far"].as<sys_seconds>(), sys_seconds(9'300'000'000'000s));
    const ms::error error = error_of([&] { builder.clear().append("end", sys_seconds(seconds::max())); });
    EXPECT_EQ(error.code(), ms::errc::value_out_of_range);
    EXPECT_EQ(error.path(), "end");
}

TEST(Value, HasATextOfItsOwn) {
    const std::string_view digits = "57e193d7a9cc81b4027498b5";
    EXPECT_EQ(bson::object_id::from_string(digits).to_string(), digits);
    EXPECT_NE(bson::object_id::make(), bson::object_id::make());
    EXPECT_EQ(bson::decimal128::from_string("1.50").to_string(), "1.50");
    EXPECT_EQ(bson::decimal128::from_string("-inf").to_string(), "-Infinity");
    EXPECT_EQ(error_of([&] { bson::object_id::from_string("57e1"); }).code(), ms::errc::text_invalid);
    EXPECT_EQ(error_of([&] { bson::decimal128::from_string("1.2.3"); }).offset(), 3U);
}

TEST(Fields, InAnyOrderAndOnceEach) {
    bson::builder builder;
    builder.append("z", 1).append("y", 2).append("x", 3).append("y", "wrong type, but not the first");
    EXPECT_EQ(builder.finish().as<test::point>(), (test::point{3, 2}));
    builder.clear().open_document("in").append("x", 1).close();
    const ms::error missing = error_of([&] { static_cast<void>(builder.finish()["in"].as<test::point>()); });
    EXPECT_EQ(missing.code(), ms::errc::key_missing);
    EXPECT_EQ(missing.path(), "in.y");
    builder.clear().open_document("in").append("x", 1).append("y", "2").close();
    const ms::error mismatch = error_of([&] { static_cast<void>(builder.finish()["in"].as<test::point>()); });
    EXPECT_EQ(mismatch.code(), ms::errc::shape_mismatch);
    EXPECT_EQ(mismatch.path(), "in.y");
    builder.clear().append("colour", "blue");
    const ms::error blue = error_of([&] { static_cast<void>(builder.finish()["colour"].as<test::colour>()); });
    EXPECT_EQ(blue.path(), "colour");
    EXPECT_EQ(blue.found(), "blue");
}

TEST(Builder, RefusesWhatCannotBeAndChangesNothing) {
    bson::builder builder;
    EXPECT_EQ(error_of([&] { builder.push(1); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([&] { builder.close(); }).code(), ms::errc::argument_invalid);
    EXPECT_EQ(error_of([&] { builder.append("a\0b"sv, 1); }).code(), ms::errc::value_out_of_range);
    EXPECT_EQ(error_of([&] { builder.append("a", "\xff"); }).code(), ms::errc::utf8_invalid);
    builder.open_array("list").push(1).push("two").push_document().append("three", 3).close().push_array().close();
    EXPECT_EQ(error_of([&] { builder.finish(); }).code(), ms::errc::argument_invalid);
    builder.close().append("", "empty key");
    const bson::document document = builder.finish();
    EXPECT_EQ(document.at_path("list.2.three").as<int>(), 3);
    EXPECT_EQ(document[""].as<std::string>(), "empty key");
    EXPECT_EQ(document.at_path("\"\"").as<std::string>(), "empty key");
    EXPECT_EQ(error_of([&] { builder.append("late", 1); }).code(), ms::errc::closed);
    EXPECT_NE(builder.get(), nullptr);
}

TEST(Builder, AppendsAllOfAValueOrNothing) {
    bson::builder builder;
    builder.append("before", 1).open_array("list").push(1);
    const std::vector<std::uint64_t> numbers{1, ~std::uint64_t{}};
    EXPECT_THROW(builder.push(numbers), ms::error);
    EXPECT_THROW(builder.push(std::array{numbers, numbers}), ms::error);
    EXPECT_THROW(builder.push(test::half{3}), std::domain_error);
    EXPECT_THROW(builder.push(std::vector{test::half{3}}), std::domain_error);
    EXPECT_THROW(builder.push(test::holder{1, {{2}}}), std::domain_error);
    builder.push(2).close();
    EXPECT_THROW(builder.append("map", std::map<std::string, std::uint64_t>{{"a", 1}, {"b", ~0ULL}}), ms::error);
    EXPECT_THROW(append_fields(builder, test::holder{1, {{2}}}), std::domain_error);
    // A document whose second member is invalid.
    const std::string_view bad = "\x13\0\0\0\x10x\0\1\0\0\0\x77y\0\2\0\0\0\0"sv;
    EXPECT_EQ(error_of([&] { builder.append_members(bson::document(bad)); }).code(), ms::errc::document_invalid);
    builder.append("after", 2);
    const bson::document document = builder.finish();
    document.check();
    EXPECT_EQ(bson::to_json(document), R"({"before":1,"list":[1,2],"after":2})");
}

TEST(Builder, SaysWhatIsWrong) {
    bson::builder builder;
    builder.open_document("in").open_array("list").push(1);
    const ms::error text = error_of([&] { builder.push(std::map<std::string, std::string>{{"name", "\xff"}}); });
    EXPECT_EQ(text.code(), ms::errc::utf8_invalid);
    EXPECT_EQ(text.path(), "in.list.1.name");
    EXPECT_EQ(error_of([&] { builder.push("\xff"); }).path(), "in.list.1");
}

TEST(Callbacks, ThrowThroughWhatUsesThem) {
    struct full : std::runtime_error {
        using std::runtime_error::runtime_error;
    };
    const auto sink = [](std::span<const char>) -> std::size_t { throw full("it is full"); };
    bson::builder builder;
    builder.append("n", std::string(100, 'n'));
    ms::writer one(ms::callback{sink}, {.capacity = 16});
    EXPECT_THROW(
        {
            builder.write(one);
            builder.append("n", 1).write(one);
            one.flush();
        },
        full);
    bson::builder again;
    again.append("n", std::string(100, 'n'));
    ms::writer two(ms::callback{sink}, {.capacity = 16});
    EXPECT_THROW(again.write(two), full);
    EXPECT_THROW(bson::write_json(two, bson::document(nested)), full);

    const auto source = [](std::span<char>) -> std::size_t { throw full("no bytes"); };
    ms::reader reader(ms::callback{source});
    EXPECT_THROW(bson::owned_document::read(reader), full);
    // Other errors are unchanged.
    ms::reader cut(ms::memory{std::string(nested.substr(0, 20))});
    EXPECT_EQ(error_of([&] { bson::owned_document::read(cut); }).code(), ms::errc::document_truncated);
}

TEST(OwnedDocument, IsMadeOfExtendedJson) {
    const auto document =
        bson::owned_document::from_json(R"({"n":1,"list":[{"$date":{"$numberLong":"-1"}},2.5],"name":"Ann"})");
    EXPECT_EQ(document["n"].as<int>(), 1);
    EXPECT_EQ(document.at_path("list.0").as<bson::date_time>().time_since_epoch().count(), -1);
    EXPECT_EQ(document.as<test::name_only>().name, "Ann");
    EXPECT_EQ(document.get<int>("m"), std::nullopt);
    EXPECT_FALSE(document.find("m"));
    EXPECT_EQ(bson::to_json(document.view()), R"({"n":1,"list":[{"$date":{"$numberLong":"-1"}},2.5],"name":"Ann"})");
    EXPECT_EQ(
        bson::to_json(document["list"].as<bson::array>()[1].as<double>() == 2.5 ? document.view()
                                                                                : bson::document(nested),
                      bson::json::canonical),
        R"({"n":{"$numberInt":"1"},"list":[{"$date":{"$numberLong":"-1"}},{"$numberDouble":"2.5"}],"name":"Ann"})");
    const ms::error bad = error_of([] { bson::owned_document::from_json(R"({"a":[1,{"$oid":"no"}]})"); });
    EXPECT_EQ(bad.code(), ms::errc::text_invalid);
    EXPECT_EQ(bad.path(), "a.1");
    EXPECT_TRUE(bad.offset().has_value());
}

TEST(OwnedDocument, KeepsItsMemory) {
    const auto copy = [] {
        bson::builder builder;
        bson::owned_document made(builder.append("n", 7).finish());
        bson::owned_document moved(std::move(made));
        return moved;
    }();
    EXPECT_EQ(copy["n"].as<int>(), 7);
    EXPECT_EQ(copy.bytes().size(), 12U);

    // A copy has the same rules and the same offset.
    const std::string_view bad = "\x0e\0\0\0\2s\0\2\0\0\0\xff\0\0"sv;
    const bson::owned_document lossy(bson::document(bad, {.utf8 = bson::utf8::lossy}).at_offset(1000));
    EXPECT_EQ(lossy["s"].as<std::string>(), "\xff");
    EXPECT_EQ(lossy.view().offset(), 1000U);

    const auto path = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-two.bson");
    {
        ms::writer file(ms::path{path});
        file.write(copy.bytes()).write(copy.bytes());
        file.close();
    }
    const auto mapped = bson::owned_document::mapped(path, {.strictness = bson::strictness::lenient});
    mapped.check_length();
    EXPECT_EQ(mapped["n"].as<int>(), 7);
    EXPECT_EQ(bson::document::first(mapped.bytes().subspan(mapped.view().size()))["n"].as<int>(), 7);
    int mapped_documents = 0;
    for (const bson::document &document : bson::documents(ms::mapped{path}))
        mapped_documents += document["n"].as<int>() == 7;
    EXPECT_EQ(mapped_documents, 2);
    ms::reader reader(ms::path{path});
    EXPECT_EQ(error_of([&] { bson::owned_document::read(reader, 11); }).code(), ms::errc::memory_limit);
    for (int i = 0; i < 2; ++i) {
        const auto document = bson::owned_document::read(reader);
        EXPECT_EQ((*document)["n"].as<int>(), 7);
    }
    EXPECT_FALSE(bson::owned_document::read(reader));
    std::filesystem::resize_file(path, 1);
    EXPECT_EQ(error_of([&] { mapped.check_length(); }).code(), ms::errc::source_shrank);
    std::filesystem::remove(path);
    EXPECT_EQ(error_of([&] { bson::owned_document::mapped(path); }).code(), ms::errc::open_failed);
}

/// Documents {"n": 0}, {"n": 1}, … as bytes.
std::string numbered(int count) {
    ms::writer writer(ms::to_memory{});
    bson::builder builder;
    for (int n = 0; n < count; ++n)
        builder.append("n", n).write(writer);
    writer.close();
    return std::string(writer.memory());
}

TEST(Documents, AreARange) {
    bson::documents all(ms::memory{numbered(50000)});
    int next = 0;
    for (const bson::document &document : all) {
        ASSERT_EQ(document.offset(), 12U * static_cast<unsigned>(next));
        ASSERT_EQ(document["n"].as<int>(), next++);
        if (next == 100)
            break;
    }
    bson::documents rest(std::move(all)); // continues at the same position
    for (const bson::document &document : rest)
        ASSERT_EQ(document["n"].as<int>(), next++);
    EXPECT_EQ(next, 50000);
    EXPECT_EQ(rest.next(), std::nullopt);
    EXPECT_EQ(rest.skipped().count, 0U);
    EXPECT_EQ(rest.position().bytes, 12U * 50000);
    EXPECT_EQ(rest.position().records, 50000U);

    // A document after a header that was read with other functions.
    ms::reader reader(ms::memory{"header\n" + numbered(2)});
    EXPECT_EQ(reader.next_line(), "header");
    bson::documents after(std::move(reader));
    EXPECT_EQ(after.next()->offset(), 7U);
}

TEST(Documents, SayWhereTheyAre) {
    bson::documents all(ms::memory{numbered(3)}, {}, {.name = "numbers"});
    EXPECT_EQ(all.name(), "numbers");
    EXPECT_EQ(all.position().records, 0U);
    EXPECT_EQ(all.next()->record(), 0U);
    EXPECT_EQ(all.position().bytes, 12U); // although the library has read ahead
    const bson::document second = *all.next();
    EXPECT_EQ(all.position().records, 2U);
    EXPECT_EQ(second.record(), 1U);
    EXPECT_EQ(bson::document(nested).record(), std::nullopt);
    const auto placed = [](const ms::error &error) {
        EXPECT_EQ(error.name(), "numbers");
        EXPECT_EQ(error.record(), 1U);
        return error.code();
    };
    EXPECT_EQ(placed(error_of([&] { second["m"]; })), ms::errc::key_missing);
    EXPECT_EQ(placed(error_of([&] { second["n"].as<std::string>(); })), ms::errc::shape_mismatch);
    EXPECT_EQ(placed(error_of([&] { second["n"].as<bson::document>(); })), ms::errc::shape_mismatch);
    EXPECT_EQ(placed(error_of([&] { second.as<test::point>(); })), ms::errc::key_missing);
    EXPECT_EQ(placed(error_of([&] { second["n"].fail(ms::errc::unsupported, "1", "2"); })), ms::errc::unsupported);
    all.close();
    EXPECT_EQ(error_of([&] { all.next(); }).code(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { all.close(); }).code(), ms::errc::closed);
    EXPECT_EQ(all.name(), "numbers");
    bson::documents failing(ms::shell{"echo; exit 3"});
    EXPECT_EQ(error_of([&] { failing.next(); }).code(), ms::errc::command_failed);
}

TEST(Documents, EndWithTheErrorOfTheirSource) {
    const std::string two = numbered(2);
    bson::documents cut(ms::memory{two.substr(0, 20)});
    EXPECT_EQ((*cut.next())["n"].as<int>(), 0);
    const ms::error error = error_of([&] { cut.next(); });
    EXPECT_EQ(error.code(), ms::errc::frame_truncated);
    EXPECT_EQ(cut.next(), std::nullopt);

    bool first = true;
    bson::documents thrown(ms::callback{[&](std::span<char> space) {
        if (!std::exchange(first, false))
            throw std::out_of_range("not now");
        return two.copy(space.data(), space.size());
    }});
    EXPECT_TRUE(thrown.next() && thrown.next());
    EXPECT_THROW(thrown.next(), std::out_of_range);
    EXPECT_EQ(error_of([] { bson::documents{ms::reader()}; }).code(), ms::errc::argument_invalid);
}

TEST(Documents, PassOverWhatIsWrongAndTellIt) {
    std::string bytes = numbered(4);
    bytes[12 + 4] = '\x77';
    bson::documents lazy(ms::memory{bytes});
    EXPECT_TRUE(lazy.next());
    EXPECT_EQ(error_of([document = *lazy.next()] { document["n"]; }).offset(), 16U);
    bson::documents strict(ms::memory{bytes}, {.checking = bson::checking::ahead});
    EXPECT_TRUE(strict.next());
    EXPECT_EQ(error_of([&] { strict.next(); }).code(), ms::errc::document_invalid);

    bson::documents skipping(ms::memory{bytes}, {.on_bad = bson::on_bad::skip});
    int sum = 0;
    for (const bson::document &document : skipping)
        sum += document["n"].as<int>();
    EXPECT_EQ(sum, 0 + 2 + 3);
    const bson::skipped skipped = skipping.skipped();
    EXPECT_EQ(skipped.count, 1U);
    EXPECT_EQ(skipped.bytes, 12U);
    ASSERT_EQ(skipped.places.size(), 1U);
    EXPECT_EQ(skipped.places[0].offset, 12U);
    EXPECT_EQ(skipped.places[0].record, 1U);
    EXPECT_EQ(skipped.places[0].kind, ms::errc::document_invalid);
    EXPECT_EQ(skipped.places[0].wrong_at, 16U);
}

std::string unhex(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
}

/// Writes a document member by member, with access to every value.
void copy(bson::builder &to, const bson::document &from) {
    for (const auto &[key, value] : from) {
        if (value.type() == bson::type::document) {
            to.open_document(key);
            copy(to, value.as<bson::document>());
            to.close();
        } else {
            to.append(key, value);
        }
    }
}

/// The lines of a table, each of which has four columns. They are explained in the file.
std::vector<std::vector<std::string>> rows(const std::string &name) {
    std::ifstream file(MILLSTREAM_VECTORS "/" + name);
    EXPECT_TRUE(file) << name;
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        std::vector<std::string> &row = rows.emplace_back();
        std::istringstream columns(line);
        for (std::string text; std::getline(columns, text, '\t');)
            row.push_back(text);
        EXPECT_EQ(row.size(), 4U) << line;
        row.resize(4);
    }
    return rows;
}

TEST(Vectors, Paths) {
    const auto cases = rows("bson_paths.tsv");
    for (const auto &column : cases) {
        SCOPED_TRACE(column[0]);
        const std::string bytes = unhex(column[1]);
        const bson::document document(bytes);
        const auto found = document.find_path(column[2]);
        ASSERT_EQ(found.has_value(), column[3] != "-");
        if (found) {
            bson::builder builder;
            EXPECT_EQ(bson::to_json(builder.append("v", *found).finish(), bson::json::canonical),
                      "{\"v\":" + column[3] + "}");
        }
    }
    EXPECT_GT(cases.size(), 15U);

    // By positions, one after another.
    const std::string odd = unhex("23000000046100"
                                  "1b000000"
                                  "10310001000000"
                                  "0362000c0000001030000300000000"
                                  "0000");
    const bson::array array = bson::document(odd)["a"].as<bson::array>();
    EXPECT_EQ(array[0].as<int>(), 1);
    EXPECT_EQ(array[1]["0"].as<int>(), 3);
    EXPECT_EQ(bson::document(odd)["a"][1]["0"].as<int>(), 3);
    EXPECT_FALSE(array.find(2));
    EXPECT_EQ(array.as_document().at_path("1.0").as<int>(), 3);
    EXPECT_EQ(error_of([&] { array[2]; }).path(), "a.2");
}

TEST(Vectors, Decimals) {
    const auto cases = rows("decimal128.tsv");
    for (const auto &column : cases) {
        SCOPED_TRACE(column[0]);
        if (column[2] == "error") {
            EXPECT_EQ(error_of([&] { bson::decimal128::from_string(column[1]); }).code(), ms::errc::text_invalid);
            continue;
        }
        bson::decimal128 number;
        unhex(column[2]).copy(reinterpret_cast<char *>(number.bytes.data()), number.bytes.size());
        EXPECT_EQ(number.to_string(), column[3] == "=" ? column[1] : column[3]);
        if (column[1] != "-") {
            EXPECT_EQ(bson::decimal128::from_string(column[1]), number);
        }
    }
    EXPECT_GT(cases.size(), 50U);
}

TEST(Vectors, Bson) {
    int good = 0;
    int bad = 0;
    for (const auto &column : rows("bson.tsv")) {
        SCOPED_TRACE(column[0]);
        const std::string bytes = unhex(column[1]);
        if (column[2].starts_with("error ")) {
            ++bad;
            const ms::error error = error_of([&] { bson::document(bytes).check(); });
            EXPECT_EQ(ms::name(error.kind()), column[2].substr(6));
            continue;
        }
        ++good;
        const bson::document document(bytes);
        document.check();
        EXPECT_EQ(bson::to_json(document, bson::json::canonical), column[2]);
        EXPECT_EQ(bson::to_json(document), column[3] == "=" ? column[2] : column[3]);
        const auto from_json = bson::owned_document::from_json(column[2]);
        EXPECT_EQ(from_json.view(), document);
        bson::builder builder;
        copy(builder, document);
        EXPECT_EQ(builder.finish(), document);
    }
    EXPECT_TRUE(good > 20 && bad > 10) << good << ' ' << bad;
}

} // namespace
