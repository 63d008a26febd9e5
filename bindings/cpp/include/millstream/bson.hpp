// BSON: documents read in place, and conversion from and to your types.
//
//     struct person {
//         std::string name;
//         std::int64_t age = 0;
//         std::optional<std::string> mail;
//     };
//     MS_BSON_FIELDS(person, name, age, mail)
//
//     for (millstream::bson::document document : millstream::bson::documents(millstream::path{"people.bson.gz"})) {
//         auto name = document["name"].as<std::string_view>();       // a part of the document
//         auto city = document.get<std::string>("city");              // a std::optional
//         auto zip = document.at_path("address.zip").as<int>();
//         auto all = document.as<person>();
//         for (auto [key, value] : document)
//             …
//     }
//
// A `document` and a `value` are views: they are cheap to copy, and valid as long as the underlying memory exists
// unchanged. In a stream, they are valid until the next document; `owned_document` owns its memory. Values are parsed
// when they are accessed and are not cached: each lookup scans the members before the one that it finds.
//
// Errors are thrown as `millstream::error`, with the key path and the byte: `shape_mismatch` for a value of another
// type, `key_missing`, `value_out_of_range`, `document_invalid`, …
//
// Any number of threads may use views; only one thread at a time may use a stream or a builder.
#ifndef MILLSTREAM_BSON_HPP
#define MILLSTREAM_BSON_HPP

#if __cplusplus <= 201703L
#error "millstream/bson.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <millstream/boundary.hpp>
#include <millstream/bson_type.hpp>
#include <millstream/reader.hpp>
#include <millstream/writer.hpp>

namespace millstream::bson {

// ---- values without a C++ type ----

/// A point in time: milliseconds since 1970, UTC.
using date_time = std::chrono::sys_time<std::chrono::milliseconds>;

/// A 12-byte object id.
struct object_id {
    std::array<std::byte, 12> bytes{};

    /// Creates a unique id from the time, this process and a counter.
    static object_id make() {
        object_id made;
        millstream::detail::call(millstream_bson_object_id_new, static_cast<void *>(made.bytes.data()));
        return made;
    }
    /// Parses 24 hexadecimal digits in upper or lower case; other text is reported as `text_invalid`.
    static object_id from_string(std::string_view text) {
        object_id read;
        millstream::detail::call(millstream_bson_object_id_from_text, text.data(), text.size(),
                                 static_cast<void *>(read.bytes.data()));
        return read;
    }
    /// Returns the 24 hexadecimal digits.
    std::string to_string() const {
        std::array<char, MILLSTREAM_BSON_OBJECT_ID_TEXT> text{};
        millstream::detail::call(millstream_bson_object_id_to_text, static_cast<const void *>(bytes.data()),
                                 text.data());
        return text.data();
    }

    friend bool operator==(const object_id &, const object_id &) = default;
    friend std::strong_ordering operator<=>(const object_id &a, const object_id &b) noexcept {
        return std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) <=> 0;
    }
};

/// MongoDB's internal timestamp.
struct timestamp {
    std::uint32_t seconds = 0;   ///< Since 1970.
    std::uint32_t increment = 0; ///< A counter of the operations within that second.
    friend auto operator<=>(const timestamp &, const timestamp &) = default;
};

/// A 128-bit decimal floating point number (IEEE 754-2008, binary integer significand): its bytes, the lowest first.
struct decimal128 {
    std::array<std::byte, 16> bytes{};

    /// Parses text such as "1.50", "1E+6", "NaN" or "-Infinity". Other text, or a number that would have to be rounded,
    /// is reported as `text_invalid`.
    static decimal128 from_string(std::string_view text) {
        decimal128 read;
        millstream::detail::call(millstream_bson_decimal128_from_text, text.data(), text.size(),
                                 static_cast<void *>(read.bytes.data()));
        return read;
    }
    /// Returns the text, with all digits.
    std::string to_string() const {
        std::array<char, MILLSTREAM_BSON_DECIMAL128_TEXT> text{};
        millstream::detail::call(millstream_bson_decimal128_to_text, static_cast<const void *>(bytes.data()),
                                 text.data());
        return text.data();
    }

    /// The same bytes.
    friend bool operator==(const decimal128 &, const decimal128 &) = default;
};

/// Borrowed bytes with a subtype: 0 is generic, 4 is a UUID.
struct binary {
    std::uint8_t subtype = 0;
    std::span<const std::byte> bytes;
};

/// A borrowed regular expression: the pattern, and a letter for each option.
struct regex {
    std::string_view pattern;
    std::string_view options;
    friend bool operator==(const regex &, const regex &) = default;
};

/// Borrowed JavaScript, which is treated as text and never executed.
struct code {
    std::string_view text;
    friend bool operator==(const code &, const code &) = default;
};

/// A borrowed symbol (deprecated).
struct symbol {
    std::string_view text;
    friend bool operator==(const symbol &, const symbol &) = default;
};

/// Types for null, and for the values that compare lower and higher than all others.
struct null_value {
    friend bool operator==(null_value, null_value) = default;
};
struct min_key_value {
    friend bool operator==(min_key_value, min_key_value) = default;
};
struct max_key_value {
    friend bool operator==(max_key_value, max_key_value) = default;
};

/// Which deviations from the specification are accepted, if the data can be read at all.
enum class strictness : std::uint32_t {
    /// Keys of arrays are ignored, and duplicate keys are allowed: lookups find the first.
    standard = MILLSTREAM_BSON_STRICTNESS_STANDARD,
    /// Also accepts bytes after a document, booleans other than 0 and 1, and a wrong inner length of the old binary
    /// subtype.
    lenient = MILLSTREAM_BSON_STRICTNESS_LENIENT,
    /// Keys of arrays must be "0", "1", and so on, and duplicate keys are errors.
    strict = MILLSTREAM_BSON_STRICTNESS_STRICT,
};

/// What to do if text or a key is not UTF-8.
enum class utf8 : std::uint32_t {
    checked = MILLSTREAM_BSON_UTF8_CHECKED, ///< Reports `utf8_invalid`.
    lossy = MILLSTREAM_BSON_UTF8_LOSSY,     ///< The bytes are returned unchanged; Extended JSON has U+FFFD instead.
};

/// The rules for reading a document: `document(bytes, {.strictness = millstream::bson::strictness::strict})`.
struct rules {
    /// The maximum nesting depth of documents and arrays, the outermost included: at most 1,000.
    std::uint32_t depth = 200;
    bson::strictness strictness = bson::strictness::standard;
    bson::utf8 utf8 = bson::utf8::checked;
};

class value;
class array;
class document;
class builder;

/// Names exactly one type: MS_BSON_FIELDS of a class does not apply to classes derived from it.
template <class T>
struct fields_of {};

namespace detail {

/// Calls that use the user's reader or writer. Exceptions of its callback are rethrown.
struct io {
    template <class Stream, class Function, class... Arguments>
    static void call(Stream &stream, Function function, Arguments... arguments) {
        stream.outcome_.throwing([&](std::error_code &code) { stream.outcome_.call(code, function, arguments...); });
    }
};

inline millstream_bson_rules raw(const rules &rules) noexcept {
    return {rules.depth != 0 ? rules.depth : 1, static_cast<millstream_bson_strictness>(rules.strictness),
            static_cast<millstream_bson_utf8>(rules.utf8)};
}

/// A key for C, where null means that there is none.
inline const char *raw(std::string_view key) noexcept { return key.data() != nullptr ? key.data() : ""; }

inline std::span<const std::byte> bytes_of(const char *bytes, std::size_t len) noexcept {
    return {reinterpret_cast<const std::byte *>(bytes), len};
}

/// The kinds of types that `as` and `append` distinguish.
template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_a<Template<Arguments...>, Template> = true;

template <class T>
concept character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool> && !character<T>;

/// A number type whose arrays can be stored in a binary.
template <class T>
concept number = integer<T> || std::same_as<T, float> || std::same_as<T, double>;

template <class T>
inline constexpr bool is_number_span = false;
template <class T>
inline constexpr bool is_number_span<std::span<const T>> = number<T>;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t Size>
inline constexpr bool is_std_array<std::array<T, Size>> = true;

/// A time point of the system clock in whole units that are a multiple or a fraction of a millisecond.
template <class T>
inline constexpr bool is_time = false;
template <std::integral Count, class Period>
inline constexpr bool is_time<std::chrono::sys_time<std::chrono::duration<Count, Period>>> =
    std::ratio_divide<Period, std::milli>::num == 1 || std::ratio_divide<Period, std::milli>::den == 1;

/// A map with string keys: std::map<std::string, T> and similar types.
template <class T>
concept map_by_name = requires(T map, typename T::key_type key, typename T::mapped_type value) {
    requires std::same_as<typename T::key_type, std::string>;
    map.insert_or_assign(std::move(key), std::move(value));
};

/// A type with MS_BSON_FIELDS.
template <class T>
concept has_fields = requires {
    ms_bson_fields(fields_of<T>());
};

template <class>
inline constexpr bool never = false;

/// A member of a class, and its name in documents.
template <class Class, class Member>
struct field {
    std::string_view name;
    Member Class::*member;
};
template <class Class, class Member>
field(const char *, Member Class::*) -> field<Class, Member>;

/// Removes everything that was appended during its lifetime, unless `keep` is called.
class undo {
  public:
    explicit undo(millstream_bson_builder *builder) : builder_(builder) {
        millstream::detail::call(millstream_bson_builder_mark, builder_, &mark_);
    }
    undo(const undo &) = delete;
    undo &operator=(const undo &) = delete;
    ~undo() {
        if (builder_ != nullptr)
            millstream_bson_builder_rollback(builder_, &mark_, nullptr);
    }

    void keep() noexcept { builder_ = nullptr; }

  private:
    millstream_bson_builder *builder_;
    millstream_bson_mark mark_{};
};

} // namespace detail

/// A random-access range of numbers that are stored in a document as a binary, at any address and without a copy.
template <detail::number Number>
class numbers {
  public:
    explicit numbers(const millstream_bson_numbers &raw) noexcept : raw_(raw) {}

    std::size_t size() const noexcept { return raw_.count; }
    bool empty() const noexcept { return raw_.count == 0; }

    /// The number at a position, which is less than the size.
    Number operator[](std::size_t index) const noexcept {
        std::array<std::byte, sizeof(Number)> bytes;
        std::memcpy(bytes.data(), static_cast<const std::byte *>(raw_.items) + index * sizeof(Number), sizeof(Number));
        if constexpr (std::endian::native == std::endian::big)
            std::reverse(bytes.begin(), bytes.end());
        return std::bit_cast<Number>(bytes);
    }

    /// Numbers in place, one after another: a range with random access, as the algorithms of std::ranges need it. It is
    /// valid as long as the document's memory.
    class iterator {
      public:
        using iterator_concept = std::random_access_iterator_tag;
        using iterator_category = std::input_iterator_tag; // because `*` returns a value
        using value_type = Number;
        using difference_type = std::ptrdiff_t;
        using reference = Number;
        using pointer = void;

        iterator() noexcept = default;
        iterator(const millstream_bson_numbers &raw, difference_type at) noexcept : raw_(raw), at_(at) {}

        Number operator*() const noexcept { return numbers(raw_)[static_cast<std::size_t>(at_)]; }
        Number operator[](difference_type by) const noexcept { return *(*this + by); }
        iterator &operator+=(difference_type by) noexcept {
            at_ += by;
            return *this;
        }
        iterator &operator-=(difference_type by) noexcept { return *this += -by; }
        iterator &operator++() noexcept { return *this += 1; }
        iterator &operator--() noexcept { return *this -= 1; }
        iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
        iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }
        friend iterator operator+(iterator at, difference_type by) noexcept { return at += by; }
        friend iterator operator+(difference_type by, iterator at) noexcept { return at += by; }
        friend iterator operator-(iterator at, difference_type by) noexcept { return at -= by; }
        friend difference_type operator-(const iterator &a, const iterator &b) noexcept { return a.at_ - b.at_; }
        friend bool operator==(const iterator &a, const iterator &b) noexcept { return a.at_ == b.at_; }
        friend auto operator<=>(const iterator &a, const iterator &b) noexcept { return a.at_ <=> b.at_; }

      private:
        millstream_bson_numbers raw_{};
        difference_type at_ = 0;
    };
    iterator begin() const noexcept { return iterator(raw_, 0); }
    iterator end() const noexcept { return iterator(raw_, static_cast<std::ptrdiff_t>(raw_.count)); }

    /// All numbers in place, if they are aligned and the processor is little-endian.
    std::optional<std::span<const Number>> span() const noexcept {
        if (!raw_.usable)
            return std::nullopt;
        return std::span(static_cast<const Number *>(raw_.items), raw_.count);
    }

    /// A copy.
    std::vector<Number> to_vector() const {
        std::vector<Number> copy(raw_.count);
        if constexpr (std::endian::native == std::endian::little) {
            if (!copy.empty())
                std::memcpy(copy.data(), raw_.items, copy.size() * sizeof(Number));
        } else {
            for (std::size_t i = 0; i < copy.size(); ++i)
                copy[i] = (*this)[i];
        }
        return copy;
    }

  private:
    millstream_bson_numbers raw_{};
};

/// A value in place in a document. Copies are cheap, and valid for as long as the document's memory is.
class value {
  public:
    /// No value.
    value() noexcept = default;
    value(const millstream_bson_document &document, const millstream_bson_value &raw) noexcept
        : document_(document), raw_(raw) {}

    bson::type type() const noexcept { return static_cast<bson::type>(raw_.type); }

    /// Null, undefined, or no value at all.
    bool is_null() const noexcept {
        return raw_.type == MILLSTREAM_BSON_TYPE_NULL || raw_.type == MILLSTREAM_BSON_TYPE_UNDEFINED ||
               raw_.type == MILLSTREAM_BSON_TYPE_NOTHING;
    }

    /// The value as a C++ type:
    ///
    /// - `bool`, `date_time`, `timestamp`, `object_id`, `decimal128`, `regex`, `null_value`: that type;
    /// - other `std::chrono::sys_time`s, of whole units: a date that is representable exactly;
    /// - integers, `float` and `double`: any number that this type represents exactly (for `float`, the nearest);
    /// - `std::string_view` and `std::string`: a string, code or symbol; the view is part of the document;
    /// - `binary`, `std::span<const std::byte>`, `std::vector<std::byte>`: a binary;
    /// - `numbers<T>`, `std::span<const T>`: a binary as numbers, not copied; the span is `unsupported` if the address
    ///   is not aligned for a `T`;
    /// - `document`, `array`, `value`: a view;
    /// - `std::vector<T>`: an array of `T`, or, for numbers, also a binary; `std::array<T, N>`: likewise, with exactly
    ///   `N` elements;
    /// - `std::map<std::string, T>` and similar types: a document;
    /// - `std::optional<T>`: empty for null and undefined;
    /// - types with MS_BSON_FIELDS, and types with `void ms_bson_decode(const millstream::bson::value &, T &)` in their
    /// namespace.
    template <class T>
    T as() const;

    /// Finds a value inside a document, like the members of `document`, or by position inside an array.
    value operator[](std::string_view key) const;
    value operator[](std::size_t index) const;
    template <class T>
    std::optional<T> get(std::string_view key) const;

    /// The bytes of the document after the key, with lengths and terminators.
    std::span<const std::byte> payload() const noexcept { return detail::bytes_of(raw_.payload, raw_.payload_len); }
    /// Its position, in bytes from the start of the stream, or of the outermost document.
    std::uint64_t offset() const noexcept {
        return raw_.payload == nullptr ? document_.offset
                                       : document_.offset + static_cast<std::uint64_t>(raw_.payload - document_.bytes);
    }

    /// The C ABI's structs for the value and for its document.
    const millstream_bson_value &raw() const noexcept { return raw_; }
    const millstream_bson_document &raw_document() const noexcept { return document_; }

    /// Throws an error for this value, with its path and offset.
    [[noreturn]] void fail(errc kind, std::string found, std::string expected) const;

  private:
    template <class Function, class... Results>
    void call(Function function, Results... results) const {
        millstream::detail::call(function, &document_, &raw_, results...);
    }

    template <detail::integer T>
    T as_integer() const;
    template <class T>
    T as_list() const;
    template <class T>
    T as_array() const;
    template <class T>
    T as_time() const;
    template <class T>
    T as_map() const;

    millstream_bson_document document_{};
    millstream_bson_value raw_{};
};

/// A member of a document: `for (auto [key, value] : document)`.
struct member {
    std::string_view key;
    bson::value value;
};

/// Iterates over the members of a document. It gets many from the library at a time.
class member_iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = member;
    using difference_type = std::ptrdiff_t;

    explicit member_iterator(const millstream_bson_document &document) : document_(document) { more(); }

    member operator*() const noexcept {
        const millstream_bson_element &element = elements_[next_];
        return {{element.key, element.key_len}, {document_, element.value}};
    }
    member_iterator &operator++() {
        if (++next_ == count_)
            more();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const member_iterator &it, std::default_sentinel_t) noexcept { return it.count_ == 0; }

  private:
    void more() {
        next_ = 0;
        millstream::detail::call(millstream_bson_members, static_cast<const millstream_bson_document *>(&document_),
                                 &at_, elements_.data(), elements_.size(), &count_);
    }

    millstream_bson_document document_;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    std::size_t count_ = 0;
    std::array<millstream_bson_element, 16> elements_;
};

/// A document in place. Copies are cheap, and valid as long as the memory.
class document {
  public:
    /// The document that consists of these bytes. Only its frame is checked: the length and the terminator. Bytes after
    /// it are `document_invalid`, unless the rules are lenient.
    explicit document(std::span<const std::byte> bytes, const bson::rules &rules = {}) {
        borrow(millstream_bson_borrow, bytes, rules);
    }
    explicit document(std::string_view bytes, const bson::rules &rules = {})
        : document(millstream::detail::bytes_of(bytes), rules) {}
    // Temporary memory is not accepted.
    explicit document(std::string &&, const bson::rules & = {}) = delete;
    explicit document(std::vector<std::byte> &&, const bson::rules & = {}) = delete;
    /// The C ABI's struct for a document.
    explicit document(const millstream_bson_document &raw) noexcept : raw_(raw) {}

    /// The document at the front of these bytes; its size is the position of the next one, if there is one.
    static document first(std::span<const std::byte> bytes, const bson::rules &rules = {}) {
        document found{millstream_bson_document{}};
        found.borrow(millstream_bson_borrow_first, bytes, rules);
        return found;
    }

    /// Checks every byte: types, lengths, terminators, UTF-8, depth, and what the rules require.
    void check() const { millstream::detail::call(millstream_bson_check, &raw_); }

    /// The first member with this name; `key_missing` if there is none.
    value operator[](std::string_view key) const {
        return value(raw_, must(millstream_bson_member, detail::raw(key), key.size()));
    }
    /// The same, or nothing if there is none.
    std::optional<value> find(std::string_view key) const {
        return perhaps(millstream_bson_member, detail::raw(key), key.size());
    }
    /// The member with this name as a C++ type, see `value::as`; empty if there is none.
    template <class T>
    std::optional<T> get(std::string_view key) const {
        const std::optional<value> found = find(key);
        return found ? std::optional<T>(found->template as<T>()) : std::nullopt;
    }

    /// The value at the end of a path such as "items.3.price". In arrays, keys are positions, regardless of the stored
    /// keys. A key that is empty or contains a dot or a quote is written as a JSON string. `key_missing` if there is
    /// none.
    value at_path(std::string_view path) const {
        return value(raw_, must(millstream_bson_find, millstream::detail::c_text(path).c_str()));
    }
    /// The same, or nothing if there is none.
    std::optional<value> find_path(std::string_view path) const {
        return perhaps(millstream_bson_find, millstream::detail::c_text(path).c_str());
    }
    /// The value at the end of a key path, which are taken literally.
    std::optional<value> find_keys(std::initializer_list<const char *> keys) const {
        return perhaps(millstream_bson_find_keys, keys.begin(), keys.size());
    }
    /// The member at a position (the first is 0), or nothing if there is none. The members before it are skipped.
    std::optional<value> find_at(std::size_t position) const { return perhaps(millstream_bson_element_at, position); }

    /// The whole document as a C++ type with MS_BSON_FIELDS or as a map.
    template <class T>
    T as() const;

    /// Iterates over the members in order.
    member_iterator begin() const { return member_iterator(raw_); }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// The bytes, including length and terminator.
    std::span<const std::byte> bytes() const noexcept { return detail::bytes_of(raw_.bytes, raw_.len); }
    /// The number of bytes.
    std::size_t size() const noexcept { return raw_.len; }
    /// Whether it is empty.
    bool empty() const noexcept { return raw_.len <= 5; }
    /// Its position, in bytes from the start of the stream, or of the outermost document.
    std::uint64_t offset() const noexcept { return raw_.offset; }
    /// The number of its record in its stream (the first is 0), or nothing if it does not come from a stream.
    std::optional<std::uint64_t> record() const noexcept {
        return raw_.name != nullptr ? std::optional(raw_.record) : std::nullopt;
    }
    /// The same document, at this byte of its stream.
    document at_offset(std::uint64_t offset) const noexcept {
        document same = *this;
        same.raw_.offset = offset;
        return same;
    }

    /// The C ABI's struct for it.
    const millstream_bson_document &raw() const noexcept { return raw_; }

    /// The same bytes.
    friend bool operator==(const document &left, const document &right) noexcept {
        return left.size() == right.size() && std::memcmp(left.raw_.bytes, right.raw_.bytes, left.size()) == 0;
    }

  private:
    template <class Function>
    void borrow(Function function, std::span<const std::byte> bytes, const bson::rules &rules) {
        const millstream_bson_rules raw = detail::raw(rules);
        millstream::detail::call(function, static_cast<const void *>(bytes.data()), bytes.size(), &raw, &raw_);
    }

    template <class Function, class... Arguments>
    millstream_bson_value must(Function function, Arguments... arguments) const {
        millstream_bson_value found;
        millstream::detail::call(function, &raw_, arguments..., &found, static_cast<bool *>(nullptr));
        return found;
    }

    template <class Function, class... Arguments>
    std::optional<value> perhaps(Function function, Arguments... arguments) const {
        millstream_bson_value found;
        bool there = false;
        millstream::detail::call(function, &raw_, arguments..., &found, &there);
        return there ? std::optional(value(raw_, found)) : std::nullopt;
    }

    friend class array;

    millstream_bson_document raw_{};
};

/// An array in place: a range of values, whose keys are ignored.
class array {
  public:
    explicit array(const document &as_document) noexcept : document_(as_document) {}

    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = value;
        using difference_type = std::ptrdiff_t;

        explicit iterator(const document &document) : members_(document.begin()) {}

        value operator*() const noexcept { return (*members_).value; }
        iterator &operator++() {
            ++members_;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &it, std::default_sentinel_t end) noexcept { return it.members_ == end; }

      private:
        member_iterator members_;
    };

    iterator begin() const { return iterator(document_); }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// The element at a position; `key_missing` if there is none. The elements before it are skipped.
    value operator[](std::size_t position) const {
        return value(document_.raw_, document_.must(millstream_bson_element_at, position));
    }
    /// The same, or nothing if there is none.
    std::optional<value> find(std::size_t position) const { return document_.find_at(position); }
    bool empty() const noexcept { return document_.empty(); }
    /// The same bytes as a document.
    const document &as_document() const noexcept { return document_; }

  private:
    document document_;
};

static_assert(std::input_iterator<member_iterator> && std::input_iterator<array::iterator>);

inline void value::fail(errc kind, std::string found, std::string expected) const {
    error_details details;
    details.kind = kind;
    details.found = std::move(found);
    details.expected = std::move(expected);
    details.offset = offset();
    // The library finds the path when it creates an error.
    millstream_error *error = nullptr;
    const millstream_code code =
        millstream_bson_expect(&document_, &raw_, static_cast<millstream_bson_type>(0), &error);
    if (code != MILLSTREAM_OK) {
        const millstream::error known = millstream::detail::taken(code, error);
        details.path = known.path();
        details.name = known.name();
        details.record = known.record();
    }
    millstream::detail::fail(std::move(details));
}

inline value value::operator[](std::string_view key) const { return as<document>()[key]; }
inline value value::operator[](std::size_t index) const { return as<array>()[index]; }

template <class T>
std::optional<T> value::get(std::string_view key) const {
    return as<document>().template get<T>(key);
}

template <detail::integer T>
T value::as_integer() const {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8) {
        std::uint64_t number = 0;
        call(millstream_bson_as_u64, &number);
        return static_cast<T>(number);
    } else if constexpr (std::signed_integral<T> && sizeof(T) == 4) {
        std::int32_t number = 0;
        call(millstream_bson_as_i32, &number);
        return static_cast<T>(number);
    } else {
        std::int64_t number = 0;
        call(millstream_bson_as_i64, &number);
        if (!std::in_range<T>(number))
            fail(errc::value_out_of_range, std::to_string(number),
                 "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                     std::to_string(std::numeric_limits<T>::max()));
        return static_cast<T>(number);
    }
}

template <class T>
T value::as_list() const {
    using item = typename T::value_type;
    if constexpr (std::same_as<item, std::byte>) {
        const auto bytes = as<binary>().bytes;
        return T(bytes.begin(), bytes.end());
    } else {
        if constexpr (detail::number<item>)
            if (type() == bson::type::binary)
                return as<numbers<item>>().to_vector();
        T list;
        for (const value &element : as<array>())
            list.push_back(element.as<item>());
        return list;
    }
}

template <class T>
T value::as_array() const {
    using item = typename T::value_type;
    T array{};
    std::size_t count = 0;
    const auto take = [&](const auto &items, auto convert) {
        for (const auto &found : items) {
            if (count < array.size())
                array[count] = convert(found);
            ++count;
        }
    };
    const auto same = [](auto found) { return found; };
    if constexpr (std::same_as<item, std::byte>) {
        take(as<binary>().bytes, same);
    } else if (detail::number<item> && type() == bson::type::binary) {
        if constexpr (detail::number<item>)
            take(as<numbers<item>>().to_vector(), same);
    } else {
        take(as<bson::array>(), [](const value &element) { return element.as<item>(); });
    }
    if (count != array.size())
        fail(errc::shape_mismatch, std::to_string(count) + " values", std::to_string(array.size()));
    return array;
}

template <class T>
T value::as_time() const {
    using unit = typename T::duration;
    using scale = std::ratio_divide<typename unit::period, std::milli>; // this many milliseconds are one
    std::int64_t ms = 0;
    call(millstream_bson_as_date_time, &ms);
    const auto refuse = [&] {
        fail(errc::value_out_of_range, std::to_string(ms) + " ms", "a time that its type can represent");
    };
    std::int64_t count = ms / scale::num;
    if (ms % scale::num != 0 || count > std::numeric_limits<std::int64_t>::max() / scale::den ||
        count < std::numeric_limits<std::int64_t>::min() / scale::den)
        refuse();
    count *= scale::den;
    if (!std::in_range<typename unit::rep>(count))
        refuse();
    return T(unit(static_cast<typename unit::rep>(count)));
}

template <class T>
T value::as_map() const {
    return as<document>().template as<T>();
}

template <class T>
T value::as() const {
    if constexpr (requires(T & to) { ms_bson_decode(*this, to); }) {
        T to{};
        ms_bson_decode(*this, to);
        return to;
    } else if constexpr (std::same_as<T, value>) {
        return *this;
    } else if constexpr (std::same_as<T, bool>) {
        bool truth = false;
        call(millstream_bson_as_bool, &truth);
        return truth;
    } else if constexpr (detail::integer<T>) {
        return as_integer<T>();
    } else if constexpr (std::floating_point<T>) {
        double number = 0;
        call(millstream_bson_as_f64, &number);
        return static_cast<T>(number);
    } else if constexpr (std::same_as<T, std::string_view> || std::same_as<T, std::string>) {
        const char *text = nullptr;
        std::size_t len = 0;
        call(millstream_bson_as_text, &text, &len);
        return T(text, len);
    } else if constexpr (std::same_as<T, binary>) {
        const void *bytes = nullptr;
        std::size_t len = 0;
        call(millstream_bson_as_binary, &bytes, &len);
        return {raw_.subtype, {static_cast<const std::byte *>(bytes), len}};
    } else if constexpr (std::same_as<T, std::span<const std::byte>>) {
        return as<binary>().bytes;
    } else if constexpr (std::same_as<T, object_id> || std::same_as<T, decimal128>) {
        const char *bytes = nullptr;
        if constexpr (std::same_as<T, object_id>)
            call(millstream_bson_as_object_id, &bytes);
        else
            call(millstream_bson_as_decimal128, &bytes);
        T copy;
        std::memcpy(copy.bytes.data(), bytes, copy.bytes.size());
        return copy;
    } else if constexpr (std::same_as<T, date_time>) {
        std::int64_t ms = 0;
        call(millstream_bson_as_date_time, &ms);
        return date_time(std::chrono::milliseconds(ms));
    } else if constexpr (detail::is_time<T>) {
        return as_time<T>();
    } else if constexpr (std::same_as<T, timestamp>) {
        timestamp found;
        call(millstream_bson_as_timestamp, &found.seconds, &found.increment);
        return found;
    } else if constexpr (std::same_as<T, regex>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_REGEX);
        return {{raw_.bytes, raw_.len}, {raw_.more, raw_.more_len}};
    } else if constexpr (std::same_as<T, code>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_CODE);
        return {{raw_.bytes, raw_.len}};
    } else if constexpr (std::same_as<T, symbol>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_SYMBOL);
        return {{raw_.bytes, raw_.len}};
    } else if constexpr (std::same_as<T, null_value>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_NULL);
        return {};
    } else if constexpr (std::same_as<T, min_key_value>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_MIN_KEY);
        return {};
    } else if constexpr (std::same_as<T, max_key_value>) {
        call(millstream_bson_is, MILLSTREAM_BSON_TYPE_MAX_KEY);
        return {};
    } else if constexpr (std::same_as<T, document> || std::same_as<T, array>) {
        if constexpr (std::same_as<T, array>)
            call(millstream_bson_is, MILLSTREAM_BSON_TYPE_ARRAY);
        else if (raw_.type != MILLSTREAM_BSON_TYPE_CODE_WITH_SCOPE && raw_.type != MILLSTREAM_BSON_TYPE_ARRAY)
            call(millstream_bson_is, MILLSTREAM_BSON_TYPE_DOCUMENT);
        millstream_bson_document inner;
        call(millstream_bson_enter, &inner);
        return T(document(inner));
    } else if constexpr (detail::is_a<T, numbers>) {
        using item = decltype(std::declval<T>()[0]);
        millstream_bson_numbers found;
        call(millstream_bson_as_numbers, sizeof(item), &found);
        return T(found);
    } else if constexpr (detail::is_number_span<T>) {
        const auto span = as<numbers<typename T::value_type>>().span();
        if (!span)
            fail(errc::unsupported, "numbers at an unaligned address",
                 "an aligned one, or millstream::bson::numbers, or a copy");
        return *span;
    } else if constexpr (detail::is_a<T, std::optional>) {
        return is_null() ? T() : T(as<typename T::value_type>());
    } else if constexpr (detail::is_a<T, std::vector>) {
        return as_list<T>();
    } else if constexpr (detail::is_std_array<T>) {
        return as_array<T>();
    } else if constexpr (detail::has_fields<T> || detail::map_by_name<T>) {
        return as_map<T>();
    } else {
        static_assert(detail::never<T>, "this type is unknown: give it MS_BSON_FIELDS or ms_bson_decode");
    }
}

namespace detail {

/// Decodes one field.
template <class T, class Field>
void decode_field(T &to, const Field &field, const value &from) {
    to.*field.member = from.as<std::remove_cvref_t<decltype(to.*field.member)>>();
}

/// Decodes a document as a type with fields. Fields usually are in the order in which they are declared, so the next
/// one is tried first. Keys that are not declared are ignored; for duplicate keys, the first value is used.
template <class T>
T decode_fields(const document &from) {
    T to{};
    const auto fields = ms_bson_fields(fields_of<T>());
    constexpr std::size_t count = std::tuple_size_v<decltype(fields)>;
    std::array<bool, count> seen{};
    std::size_t expected = 0;
    const auto take = [&]<std::size_t... I>(std::string_view key, const value &value, std::index_sequence<I...>) {
        const auto is = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
            if (seen[Index] || std::get<Index>(fields).name != key)
                return false;
            decode_field(to, std::get<Index>(fields), value);
            seen[Index] = true;
            expected = Index + 1;
            return true;
        };
        const std::size_t next = expected;
        if (!((I == next && is(std::integral_constant<std::size_t, I>{})) || ...))
            static_cast<void>((is(std::integral_constant<std::size_t, I>{}) || ...));
    };
    for (const auto &[key, value] : from)
        take(key, value, std::make_index_sequence<count>{});
    const auto miss = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
        const auto &field = std::get<Index>(fields);
        if constexpr (!is_a<std::remove_cvref_t<decltype(to.*field.member)>, std::optional>)
            if (!seen[Index])
                decode_field(to, field, from[field.name]); // the member does not exist, so this throws
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (miss(std::integral_constant<std::size_t, I>{}), ...); }
    (std::make_index_sequence<count>{});
    return to;
}

} // namespace detail

template <class T>
T document::as() const {
    if constexpr (detail::has_fields<T>) {
        return detail::decode_fields<T>(*this);
    } else if constexpr (detail::map_by_name<T>) {
        T map;
        for (const auto &[key, value] : *this)
            map.emplace(std::string(key), value.template as<typename T::mapped_type>());
        return map;
    } else {
        static_assert(detail::never<T>, "not the type of a whole document: give it MS_BSON_FIELDS");
    }
}

// ---- writing ----

/// Writes documents member by member, into reused memory.
///
///     millstream::bson::builder builder;
///     builder.append("name", "Ann").open_array("scores").push(1.5).push(2).close();
///     builder.write(writer);            // and starts again
///
/// Values are those that `value::as` returns: numbers, text, times, vectors, maps, types with MS_BSON_FIELDS, and types
/// with `void ms_bson_encode(millstream::bson::builder &, std::optional<std::string_view> key, const T &)` in their
/// namespace. An integer of 32 bits or less is written as int32, others as int64; an unsigned one that does not fit is
/// `value_out_of_range`. A `std::optional` without a value is null. Times are rounded down to milliseconds.
///
/// After an exception, the builder is in the state before the call: no value is partially appended.
class builder {
  public:
    builder() : handle_(millstream::detail::made<handle_type>(millstream_bson_builder_new)) {}

    /// Appends a member to the open document.
    template <class T>
    builder &append(std::string_view key, const T &value) {
        put(key, value);
        return *this;
    }
    /// Appends a value to the open array.
    template <class T>
    builder &push(const T &value) {
        put(std::nullopt, value);
        return *this;
    }
    /// Calls `append` if there is a key, otherwise `push`.
    template <class T>
    void put(std::optional<std::string_view> key, const T &value);

    /// Appends all members of a document; into an array, their values.
    builder &append_members(const document &from) {
        detail::undo undo(handle_.get());
        std::array<millstream_bson_element, 16> members;
        std::size_t at = 0;
        std::size_t count = 0;
        for (;;) {
            millstream::detail::call(millstream_bson_members, &from.raw(), &at, members.data(), members.size(), &count);
            if (count == 0) {
                undo.keep();
                return *this;
            }
            millstream::detail::call(millstream_bson_builder_append_members, handle_.get(), members.data(), count,
                                     static_cast<std::size_t *>(nullptr));
        }
    }

    builder &open_document(std::string_view key) { return open(key, MILLSTREAM_BSON_TYPE_DOCUMENT); }
    builder &open_array(std::string_view key) { return open(key, MILLSTREAM_BSON_TYPE_ARRAY); }
    builder &push_document() { return open(std::nullopt, MILLSTREAM_BSON_TYPE_DOCUMENT); }
    builder &push_array() { return open(std::nullopt, MILLSTREAM_BSON_TYPE_ARRAY); }

    /// Closes the document or array that was opened last.
    builder &close() {
        millstream::detail::call(millstream_bson_builder_close, handle_.get());
        return *this;
    }

    /// Finishes the document. The view is valid until the next call on the builder. The builder accepts no more values
    /// until `clear`.
    document finish() {
        const char *bytes = nullptr;
        std::size_t len = 0;
        millstream::detail::call(millstream_bson_builder_finish, handle_.get(), &bytes, &len);
        return document(detail::bytes_of(bytes, len));
    }

    /// Finishes the document, writes it, and starts an empty one. If the writer reports an error, it has accepted none
    /// of the bytes, and the call may be repeated.
    void write(writer &writer) { detail::io::call(writer, millstream_bson_builder_write, handle_.get(), writer.get()); }

    /// Starts again with an empty document and keeps the memory.
    builder &clear() {
        millstream::detail::call(millstream_bson_builder_clear, handle_.get());
        return *this;
    }

    /// The C ABI's builder, which this object keeps.
    millstream_bson_builder *get() noexcept { return handle_.get(); }

  private:
    using handle_type = millstream::detail::handle<millstream_bson_builder, millstream_bson_builder_free>;
    using optional_key = std::optional<std::string_view>;

    builder &open(optional_key key, millstream_bson_type type) {
        millstream::detail::call(millstream_bson_builder_open, handle_.get(), key ? detail::raw(*key) : nullptr,
                                 key ? key->size() : 0, type);
        return *this;
    }

    /// Runs a function that appends in several calls. Either all of them take effect, or none.
    template <class Act>
    void wholly(Act act) {
        detail::undo undo(handle_.get());
        act();
        undo.keep();
    }

    /// Appends a document or an array with the members that `act` appends.
    template <class Act>
    void put_inside(optional_key key, millstream_bson_type type, Act act) {
        wholly([&] {
            open(key, type);
            act();
            close();
        });
    }

    void put_raw(optional_key key, const millstream_bson_value &value) {
        millstream::detail::call(millstream_bson_builder_append, handle_.get(), key ? detail::raw(*key) : nullptr,
                                 key ? key->size() : 0, &value);
    }

    void put_bytes(optional_key key, millstream_bson_type type, const void *bytes, std::size_t len) {
        put_raw(key, millstream_bson_value_of_bytes(type, bytes, len));
    }

    void put_integer(optional_key key, millstream_bson_type type, std::int64_t integer) {
        put_raw(key, millstream_bson_value_of_integer(type, integer));
    }

    /// A number that BSON cannot represent.
    [[noreturn]] static void refuse(optional_key key, std::string found, std::string expected) {
        error_details details;
        details.kind = errc::value_out_of_range;
        details.found = std::move(found);
        details.expected = std::move(expected);
        details.path = key.value_or("");
        millstream::detail::fail(std::move(details));
    }

    handle_type handle_;
};

template <class T>
void builder::put(std::optional<std::string_view> key, const T &value) {
    if constexpr (requires { ms_bson_encode(*this, key, value); }) {
        wholly([&] { ms_bson_encode(*this, key, value); });
    } else if constexpr (std::same_as<T, bool>) {
        put_integer(key, MILLSTREAM_BSON_TYPE_BOOL, value);
    } else if constexpr (detail::integer<T>) {
        if constexpr (std::unsigned_integral<T> && sizeof(T) == 8)
            if (!std::in_range<std::int64_t>(value))
                refuse(key, std::to_string(value), "at most 9223372036854775807");
        const bool is_small = sizeof(T) < 4 || (sizeof(T) == 4 && std::signed_integral<T>);
        put_integer(key, is_small ? MILLSTREAM_BSON_TYPE_INT32 : MILLSTREAM_BSON_TYPE_INT64,
                    static_cast<std::int64_t>(value));
    } else if constexpr (std::floating_point<T>) {
        millstream_bson_value number = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_DOUBLE);
        number.number = static_cast<double>(value);
        put_raw(key, number);
    } else if constexpr (std::convertible_to<const T &, std::string_view>) {
        const std::string_view text = value;
        put_bytes(key, MILLSTREAM_BSON_TYPE_STRING, text.data(), text.size());
    } else if constexpr (std::same_as<T, binary>) {
        millstream_bson_value bytes =
            millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_BINARY, value.bytes.data(), value.bytes.size());
        bytes.subtype = value.subtype;
        put_raw(key, bytes);
    } else if constexpr (std::convertible_to<const T &, std::span<const std::byte>>) {
        put(key, binary{0, value});
    } else if constexpr (detail::is_number_span<T>) {
        static_assert(std::endian::native == std::endian::little, "numbers are written with the lowest byte first");
        put(key, binary{0, std::as_bytes(value)});
    } else if constexpr (std::same_as<T, object_id>) {
        put_bytes(key, MILLSTREAM_BSON_TYPE_OBJECT_ID, value.bytes.data(), value.bytes.size());
    } else if constexpr (std::same_as<T, decimal128>) {
        put_bytes(key, MILLSTREAM_BSON_TYPE_DECIMAL128, value.bytes.data(), value.bytes.size());
    } else if constexpr (std::same_as<T, date_time>) {
        put_integer(key, MILLSTREAM_BSON_TYPE_DATE_TIME, value.time_since_epoch().count());
    } else if constexpr (detail::is_time<T>) {
        using scale = std::ratio_divide<typename T::duration::period, std::milli>;
        const auto count = value.time_since_epoch().count();
        if (std::cmp_greater(count, std::numeric_limits<std::int64_t>::max() / scale::num) ||
            std::cmp_less(count, std::numeric_limits<std::int64_t>::min() / scale::num))
            refuse(key, std::to_string(count) + " units of " + std::to_string(scale::num) + " ms", "64 bits of ms");
        const auto ms = static_cast<std::int64_t>(count) * scale::num;
        put(key, date_time(std::chrono::milliseconds(ms / scale::den - (ms % scale::den < 0 ? 1 : 0))));
    } else if constexpr (std::same_as<T, timestamp>) {
        put_integer(key, MILLSTREAM_BSON_TYPE_TIMESTAMP,
                    static_cast<std::int64_t>(std::uint64_t{value.seconds} << 32 | value.increment));
    } else if constexpr (std::same_as<T, regex>) {
        millstream_bson_value both =
            millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_REGEX, value.pattern.data(), value.pattern.size());
        both.more = value.options.data();
        both.more_len = value.options.size();
        put_raw(key, both);
    } else if constexpr (std::same_as<T, code>) {
        put_bytes(key, MILLSTREAM_BSON_TYPE_CODE, value.text.data(), value.text.size());
    } else if constexpr (std::same_as<T, symbol>) {
        put_bytes(key, MILLSTREAM_BSON_TYPE_SYMBOL, value.text.data(), value.text.size());
    } else if constexpr (std::same_as<T, null_value> || std::same_as<T, std::nullopt_t>) {
        put_raw(key, millstream_bson_value_of(MILLSTREAM_BSON_TYPE_NULL));
    } else if constexpr (std::same_as<T, min_key_value>) {
        put_raw(key, millstream_bson_value_of(MILLSTREAM_BSON_TYPE_MIN_KEY));
    } else if constexpr (std::same_as<T, max_key_value>) {
        put_raw(key, millstream_bson_value_of(MILLSTREAM_BSON_TYPE_MAX_KEY));
    } else if constexpr (std::same_as<T, bson::value>) {
        put_raw(key, value.raw());
    } else if constexpr (std::same_as<T, document>) {
        put_bytes(key, MILLSTREAM_BSON_TYPE_DOCUMENT, value.bytes().data(), value.size());
    } else if constexpr (std::same_as<T, array>) {
        const document &same = value.as_document();
        put_bytes(key, MILLSTREAM_BSON_TYPE_ARRAY, same.bytes().data(), same.size());
    } else if constexpr (detail::is_a<T, std::optional>) {
        if (value)
            put(key, *value);
        else
            put(key, null_value{});
    } else if constexpr (detail::has_fields<T>) {
        put_inside(key, MILLSTREAM_BSON_TYPE_DOCUMENT, [&] { append_fields(*this, value); });
    } else if constexpr (detail::map_by_name<T>) {
        put_inside(key, MILLSTREAM_BSON_TYPE_DOCUMENT, [&] {
            for (const auto &[name, item] : value)
                append(name, item);
        });
    } else if constexpr (detail::is_a<T, std::vector> || detail::is_std_array<T>) {
        put_inside(key, MILLSTREAM_BSON_TYPE_ARRAY, [&] {
            for (const auto &item : value)
                push(item);
        });
    } else {
        static_assert(detail::never<T>, "this type is unknown: give it MS_BSON_FIELDS or ms_bson_encode");
    }
}

/// Appends the fields of a type with MS_BSON_FIELDS to the open document: all of them, or none after an error.
template <detail::has_fields T>
void append_fields(builder &to, const T &from) {
    detail::undo undo(to.get());
    std::apply([&](const auto &...field) { (to.append(field.name, from.*field.member), ...); },
               ms_bson_fields(fields_of<T>()));
    undo.keep();
}

/// Encodes a type with MS_BSON_FIELDS as a document in the memory of a builder, which is valid until the next use of
/// the builder.
template <detail::has_fields T>
document encode(builder &builder, const T &from) {
    builder.clear();
    append_fields(builder, from);
    return builder.finish();
}

// ---- documents that own their memory, and Extended JSON ----

/// The two forms of Extended JSON. Both are accepted when reading, even mixed.
enum class json : std::uint32_t {
    /// Numbers are JSON numbers, and dates in the years 1970 to 9999 are text: 1, {"$date":"1970-01-01T00:00:00Z"}.
    relaxed = MILLSTREAM_BSON_JSON_RELAXED,
    /// Every type is kept: {"$numberInt":"1"}, {"$date":{"$numberLong":"0"}}.
    canonical = MILLSTREAM_BSON_JSON_CANONICAL,
};

/// A document that owns its memory: a mapped file, a copy, or a document from a reader or from Extended JSON. It can be
/// moved but not copied; its views are valid during its lifetime, even after a move.
class owned_document {
  public:
    /// Maps a file of one or more documents. Bytes are read when they are accessed, so this takes the same time for any
    /// size. No process may shrink or change the file while it is mapped: accessing bytes that no longer exist kills
    /// the process with SIGBUS.
    static owned_document mapped(const std::filesystem::path &path, const rules &rules = {}) {
        return made(millstream_bson_mapped, rules, millstream::detail::c_path(path).c_str());
    }
    /// A copy.
    explicit owned_document(std::span<const std::byte> bytes, const rules &rules = {})
        : owned_document(made(millstream_bson_copy, rules, static_cast<const void *>(bytes.data()), bytes.size())) {}
    /// Copies a document with its rules and its offset.
    explicit owned_document(const document &document)
        : owned_document(millstream::detail::made<handle_type>(millstream_bson_copy_document, &document.raw())) {}

    /// Reads one document of at most `limit` bytes, and leaves the reader after it. Returns nothing at the end of the
    /// stream. A longer document is reported as `memory_limit`.
    static std::optional<owned_document> read(reader &reader, std::size_t limit = 0x7fffffff, const rules &rules = {}) {
        const millstream_bson_rules raw = detail::raw(rules);
        millstream_bson_owned *read = nullptr;
        detail::io::call(reader, millstream_bson_read, reader.get(), limit, &raw, &read);
        return read != nullptr ? std::optional(owned_document(handle_type(read))) : std::nullopt;
    }

    /// Parses Extended JSON in canonical, relaxed or mixed form. Errors are reported as `text_invalid`, with the path
    /// and the offset in the text.
    static owned_document from_json(std::string_view text, const rules &rules = {}) {
        return made(millstream_bson_from_json, rules, text.data(), text.size());
    }

    /// The document; for a mapped file, the first one. For mapped files, the rules define whether bytes may follow it.
    document view() const && = delete;
    document view() const & {
        millstream_bson_document found;
        millstream::detail::call(millstream_bson_owned_document, handle_.get(), &found);
        return document(found);
    }
    /// All the bytes: for a mapped file, those of every document.
    std::span<const std::byte> bytes() const && = delete;
    std::span<const std::byte> bytes() const & {
        const char *bytes = nullptr;
        std::size_t len = 0;
        millstream::detail::call(millstream_bson_owned_bytes, handle_.get(), &bytes, &len);
        return detail::bytes_of(bytes, len);
    }
    /// Throws `source_shrank` if a mapped file has become shorter.
    void check_length() const { millstream::detail::call(millstream_bson_owned_check_length, handle_.get()); }

    // The members of `document`. Views cannot be taken from a temporary.
    value operator[](std::string_view key) const && = delete;
    value operator[](std::string_view key) const & { return view()[key]; }
    std::optional<value> find(std::string_view key) const && = delete;
    std::optional<value> find(std::string_view key) const & { return view().find(key); }
    value at_path(std::string_view path) const && = delete;
    value at_path(std::string_view path) const & { return view().at_path(path); }
    template <class T>
    std::optional<T> get(std::string_view key) const {
        return view().template get<T>(key);
    }
    template <class T>
    T as() const {
        return view().template as<T>();
    }
    member_iterator begin() const && = delete;
    member_iterator begin() const & { return view().begin(); }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

  private:
    using handle_type = millstream::detail::handle<millstream_bson_owned, millstream_bson_owned_free>;

    explicit owned_document(handle_type handle) noexcept : handle_(std::move(handle)) {}

    template <class Function, class... Arguments>
    static owned_document made(Function function, const rules &rules, Arguments... arguments) {
        const millstream_bson_rules raw = detail::raw(rules);
        return owned_document(millstream::detail::made<handle_type>(function, arguments..., &raw));
    }

    handle_type handle_;
};

/// Writes a document as Extended JSON, on one line without a line end. After an error, the writer has accepted none of
/// it.
inline void write_json(writer &writer, const document &document, json form = json::relaxed) {
    detail::io::call(writer, millstream_bson_write_json, &document.raw(), static_cast<millstream_bson_json>(form),
                     writer.get());
}

/// A document as Extended JSON, on one line.
inline std::string to_json(const document &document, json form = json::relaxed) {
    writer text(to_memory{});
    write_json(text, document, form);
    text.close();
    return std::string(text.memory());
}

// ---- streams ----

/// What to do with an invalid document of a stream.
enum class on_bad : std::uint32_t {
    stop = MILLSTREAM_BSON_ON_BAD_STOP, ///< Report an error and stop.
    /// Skip it; `skipped` reports where it was. If its length is wrong, the stream searches for the next bytes that are
    /// very likely documents. Documents are checked beforehand.
    skip = MILLSTREAM_BSON_ON_BAD_SKIP,
};

/// When the content of a document is checked.
enum class checking : std::uint32_t {
    on_access = MILLSTREAM_BSON_CHECKING_ON_ACCESS, ///< When a value is accessed.
    ahead = MILLSTREAM_BSON_CHECKING_AHEAD,         ///< Before the document is returned.
};

/// A part of a stream that was skipped.
struct skipped_place {
    std::uint64_t offset = 0;   ///< Its position, in bytes from the start of the stream.
    std::uint64_t size = 0;     ///< Its length in bytes.
    std::uint64_t record = 0;   ///< The number of the record; the first is 0.
    errc kind{};                ///< The kind of the error.
    std::uint64_t wrong_at = 0; ///< The position of the error, in bytes from the start of the stream.
};

/// The parts of a stream that were skipped.
struct skipped {
    std::uint64_t count = 0;           ///< The number of parts.
    std::uint64_t bytes = 0;           ///< Their total size in bytes.
    std::vector<skipped_place> places; ///< The first 1,000 parts.
};

/// How to read a stream of documents.
struct stream_options {
    bson::rules rules{};
    bson::on_bad on_bad = bson::on_bad::stop;
    bson::checking checking = bson::checking::on_access;
};

/// Consecutive documents, from any source: a single-pass range.
///
///     const millstream::command dump{"mongodump", "--out", "-"};
///     for (millstream::bson::document document : millstream::bson::documents(dump))
///         …
///
/// The end of the range means that the source succeeded; otherwise advancing past the last document throws once.
/// Each document is valid until the next one is requested; an error about a member contains the record. The reader's
/// `record_limit` limits the size of a document. The range owns its reader; it can be moved, but not during iteration.
class documents {
  public:
    class iterator;

    /// Reads the documents that a reader has not delivered yet.
    explicit documents(millstream::reader reader, const stream_options &options = {}) : reader_(std::move(reader)) {
        const millstream_bson_rules rules = detail::raw(options.rules);
        reader_.end_window();
        // The library owns the reader now, even if the call fails.
        handle_ = millstream::detail::made<handle_type>(millstream_bson_documents_new, reader_.handle_.release(),
                                                        &rules, static_cast<millstream_bson_on_bad>(options.on_bad),
                                                        static_cast<millstream_bson_checking>(options.checking));
    }
    /// Reads the documents of a source.
    template <source Source>
    explicit documents(Source &&source, const stream_options &options = {}, const reader_options &reading = {})
        : documents(millstream::reader(std::forward<Source>(source), reading), options) {}

    documents(documents &&other) noexcept
        : reader_(std::move(other.reader_)), handle_(std::move(other.handle_)),
          batch_(std::exchange(other.batch_, {})) {}
    documents &operator=(documents &&other) noexcept {
        handle_ = std::move(other.handle_); // first, because the handle that is freed now may still call back
        reader_ = std::move(other.reader_);
        batch_ = std::exchange(other.batch_, {});
        return *this;
    }
    ~documents() = default;

    /// Continues with the document after the last one that was returned.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// Returns the next document, or nothing at the end.
    std::optional<document> next() {
        if (batch_.empty()) [[unlikely]] {
            const millstream_bson_document *found = nullptr;
            std::size_t count = 0;
            detail::io::call(reader_, millstream_bson_documents_next, handle_.get(), &found, &count);
            batch_ = {found, count};
        }
        if (batch_.empty())
            return std::nullopt;
        const document next(batch_.front());
        batch_ = batch_.subspan(1);
        return next;
    }

    /// The name of the source in error messages.
    std::string_view name() const noexcept {
        const char *name = millstream_bson_documents_name(handle_.get());
        return name != nullptr ? name : std::string_view();
    }
    /// The position in the stream, after the last document delivered. Each skipped part counts as a record.
    millstream::position position() const {
        if (!batch_.empty())
            return {batch_.front().offset, batch_.front().record};
        millstream::position at;
        millstream::detail::call(millstream_bson_documents_position, handle_.get(), &at.bytes, &at.records);
        return at;
    }

    /// Stops reading at the current position, like `millstream::reader::close`. The position and the skipped parts
    /// remain available.
    void close() {
        batch_ = {};
        detail::io::call(reader_, millstream_bson_documents_close, handle_.get());
    }

    /// The parts that were skipped so far.
    bson::skipped skipped() const {
        millstream_bson_skipped raw;
        millstream::detail::call(millstream_bson_documents_skipped, handle_.get(), &raw);
        bson::skipped copy{raw.count, raw.bytes, {}};
        for (const millstream_bson_skipped_place &place : std::span(raw.places, raw.places_count))
            copy.places.push_back(
                {place.offset, place.len, place.record, static_cast<errc>(place.code), place.wrong_at});
        return copy;
    }

  private:
    using handle_type = millstream::detail::handle<millstream_bson_documents, millstream_bson_documents_free>;

    // The objects that the handle below uses. Objects that the library calls back must outlive the handle; members are
    // destroyed from the last to the first.
    millstream::reader reader_;
    handle_type handle_;
    std::span<const millstream_bson_document> batch_;
};

/// Refers to a document of a range, which must not move. All iterators of a range share one position.
class documents::iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = document;
    using difference_type = std::ptrdiff_t;

    explicit iterator(documents &range) : range_(&range), document_(range.next()) {}

    const document &operator*() const noexcept { return *document_; }
    iterator &operator++() {
        document_ = range_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.document_; }

  private:
    documents *range_;
    std::optional<document> document_;
};

inline documents::iterator documents::begin() { return iterator(*this); }

static_assert(std::input_iterator<documents::iterator>);

} // namespace millstream::bson

/// Declares which members of a struct are fields of its documents: write
/// MS_BSON_FIELDS(person, name, age, mail) after the struct, in its namespace. Then `as<person>()` decodes and `append`
/// encodes it. A missing field is reported as `key_missing`, unless it is a `std::optional`. There may be at most 64
/// fields. A derived class needs its own declaration.
///
/// MS_BSON_FIELD_AS(member, "name") declares a field with another name in documents:
///
///     MS_BSON_FIELDS(person, name, MS_BSON_FIELD_AS(id, "_id"), mail)
#define MS_BSON_FIELDS(Type, ...)                                                                                      \
    [[maybe_unused]] constexpr auto ms_bson_fields(::millstream::bson::fields_of<Type>) noexcept {                     \
        using ms_bson_type = Type;                                                                                     \
        return std::make_tuple(MS_BSON_EACH(__VA_ARGS__));                                                             \
    }
#define MS_BSON_FIELD_AS(member, name) (member, name)

// Processes the fields one after another by expanding the list repeatedly.
#define MS_BSON_EACH(...) MS_BSON_AGAIN(MS_BSON_ONE(__VA_ARGS__))
#define MS_BSON_ONE(field, ...) MS_BSON_FIELD(field) __VA_OPT__(, MS_BSON_NEXT MS_BSON_PARENTHESES(__VA_ARGS__))
#define MS_BSON_NEXT() MS_BSON_ONE
#define MS_BSON_PARENTHESES ()
#define MS_BSON_AGAIN(...) MS_BSON_AGAIN_1(MS_BSON_AGAIN_1(MS_BSON_AGAIN_1(MS_BSON_AGAIN_1(__VA_ARGS__))))
#define MS_BSON_AGAIN_1(...) MS_BSON_AGAIN_2(MS_BSON_AGAIN_2(MS_BSON_AGAIN_2(MS_BSON_AGAIN_2(__VA_ARGS__))))
#define MS_BSON_AGAIN_2(...) MS_BSON_AGAIN_3(MS_BSON_AGAIN_3(MS_BSON_AGAIN_3(MS_BSON_AGAIN_3(__VA_ARGS__))))
#define MS_BSON_AGAIN_3(...) __VA_ARGS__

// A field is `member` or `(member, "name")`. In the second case MS_BSON_PAIR_IN is called, which puts another macro in
// second position.
#define MS_BSON_FIELD(field) MS_BSON_SECOND(MS_BSON_PAIR_IN field, MS_BSON_FIELD_PLAIN, )(field)
#define MS_BSON_PAIR_IN(member, name) , MS_BSON_FIELD_PAIR
#define MS_BSON_SECOND(...) MS_BSON_SECOND_OF(__VA_ARGS__)
#define MS_BSON_SECOND_OF(first, second, ...) second
#define MS_BSON_FIELD_PLAIN(member)                                                                                    \
    ::millstream::bson::detail::field { #member, &ms_bson_type::member }
#define MS_BSON_FIELD_PAIR(pair) MS_BSON_FIELD_NAMED pair
#define MS_BSON_FIELD_NAMED(member, name)                                                                              \
    ::millstream::bson::detail::field { name, &ms_bson_type::member }

#endif // C++20
#endif // MILLSTREAM_BSON_HPP
