// Records of CSV, lines and JSON as typed columns, in the memory format of Apache Arrow.
//
//     millstream::columns people(millstream::path{"people.csv"});
//     for (const millstream::column_batch &batch : people)
//         for (std::int64_t age : batch.column<std::int64_t>("age").values())
//             sum += age;
//     // Here the source has succeeded; otherwise the loop would have thrown after the last batch.
//
// `docs/types.md` has the rules of types. A value that does not fit its column is an error with its place or, by
// option, a bad record that is left out and counted; it never becomes null.
#ifndef MILLSTREAM_COLUMNS_HPP
#define MILLSTREAM_COLUMNS_HPP

#if __cplusplus <= 201703L
#error "millstream/columns.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millstream/frame.hpp>
#include <millstream/reader.hpp>

namespace millstream {

/// What records are.
enum class columns_format : std::uint32_t {
    csv,   ///< Records of CSV.
    tsv,   ///< Records of CSV with tabs as delimiters.
    lines, ///< Lines, which are one column of text, `line`.
    jsonl, ///< Lines of JSON, which are objects.
    json, ///< The elements of an array of a JSON document: by default the document, or `reader_options::json_elements`.
};

/// Which member of an object of JSON is taken of several with the same name.
enum class duplicates : std::uint32_t {
    error, ///< None: the record is bad.
    first, ///< The first one.
    last,  ///< The last one.
};

/// What to do with a bad record: one that is not valid, or has a value that does not fit its column.
enum class on_bad_record : std::uint32_t {
    stop, ///< The error follows the rows before it.
    skip, ///< It is left out: `columns::rejected` counts it, and `columns::rejects` has it.
};

/// A bad record that was left out.
struct reject {
    millstream::error error; ///< The reason, with the place.
    std::string raw;         ///< The record without its line end.
};

/// For `columns_options::infer`: types are inferred from all records.
inline constexpr std::size_t infer_all = static_cast<std::size_t>(-1);

/// The options of columns.
struct columns_options {
    columns_format format = columns_format::csv;
    /// The dialect of CSV; the delimiter of `tsv` is a tab.
    csv_dialect dialect = {};
    /// Whether the first record of CSV names the columns; otherwise their names are 0, 1, ….
    bool header = true;
    /// The number of records from which types are inferred; without it, columns are text, and those of JSON the text of
    /// their values. With `infer_all`, all records are read by the constructor, and then again from the same version of
    /// the source: a regular file given by its path, memory, or an object with a strong ETag on a server with ranges.
    /// Any other source is refused with `errc::invalid_option`.
    std::optional<std::size_t> infer = 10'000;
    /// The columns and their types as JSON, which are not inferred then: see `columns::schema`.
    std::optional<std::string> schema = std::nullopt;
    /// Texts that are null outside quotes. JSON has a null of its own.
    std::vector<std::string> nulls = {};
    /// Whether NaN, inf and -inf are numbers.
    bool special_numbers = false;
    /// Whether inferred numbers with a fraction are decimals instead of floating point numbers.
    bool decimals = false;
    millstream::duplicates duplicates = millstream::duplicates::error;
    csv_ragged ragged = csv_ragged::error;
    on_bad_record on_bad = on_bad_record::stop;
    /// The number of threads that turn records into columns; by default that of the processors.
    std::optional<std::size_t> threads = std::nullopt;
};

/// A number of up to 38 digits: the 128-bit integer of `high` and `low`, divided by 10 to the power of `scale`.
struct decimal128 {
    std::uint64_t low = 0;
    std::int64_t high = 0;
    int scale = 0;

    friend bool operator==(const decimal128 &, const decimal128 &) noexcept = default;

    /// The digits, such as -12.50 for a scale of 2.
    std::string str() const {
        const bool is_negative = high < 0;
        std::uint64_t upper = static_cast<std::uint64_t>(high);
        std::uint64_t lower = low;
        if (is_negative) {
            lower = ~lower + 1;
            upper = ~upper + (lower == 0 ? 1 : 0);
        }
        std::array<std::uint64_t, 4> parts = {upper >> 32, upper & 0xffffffff, lower >> 32, lower & 0xffffffff};
        std::string digits; // the last one first
        while (parts != std::array<std::uint64_t, 4>{} || digits.size() <= static_cast<std::size_t>(scale)) {
            std::uint64_t rest = 0;
            for (std::uint64_t &part : parts) {
                const std::uint64_t whole = (rest << 32) | part;
                part = whole / 10;
                rest = whole % 10;
            }
            digits.push_back(static_cast<char>('0' + rest));
        }
        if (scale > 0)
            digits.insert(static_cast<std::size_t>(scale), ".");
        if (is_negative)
            digits.push_back('-');
        return {digits.rbegin(), digits.rend()};
    }
};

namespace detail {

/// The options as the C ABI parses them.
inline std::string text_of(const columns_options &options) {
    constexpr std::array<std::string_view, 5> formats = {"csv", "tsv", "lines", "jsonl", "json"};
    constexpr std::array<std::string_view, 3> members = {"error", "first", "last"};
    constexpr std::array<std::string_view, 3> ragged = {"error", "pad", "collect"};
    std::string text;
    const auto add = [&text](std::string_view name, std::string_view value) {
        text.append(name).append("=").append(value).append(" ");
    };
    const auto on = [](bool is_on) { return is_on ? "on" : "off"; };
    add("format", formats[static_cast<std::size_t>(options.format)]);
    if (options.format == columns_format::csv || options.format == columns_format::tsv) {
        csv_dialect dialect = options.dialect;
        if (options.format == columns_format::tsv && dialect.delimiter == csv_dialect{}.delimiter)
            dialect.delimiter = '\t';
        text += text_of(dialect);
        text += " ";
    }
    add("header", on(options.header));
    if (options.infer == infer_all)
        add("infer", "all");
    else
        add("infer", options.infer ? std::to_string(*options.infer) : "off");
    for (const std::string &null : options.nulls) {
        constexpr std::string_view digits = "0123456789abcdef";
        std::string escaped;
        for (const char byte : null) {
            const auto number = static_cast<unsigned char>(byte);
            escaped += {'%', digits[number / 16], digits[number % 16]};
        }
        add("null", escaped);
    }
    add("special_numbers", on(options.special_numbers));
    add("decimals", on(options.decimals));
    add("duplicates", members[static_cast<std::size_t>(options.duplicates)]);
    add("ragged", ragged[static_cast<std::size_t>(options.ragged)]);
    add("on_bad", options.on_bad == on_bad_record::skip ? "skip" : "stop");
    if (options.threads)
        add("threads", std::to_string(*options.threads));
    return text;
}

/// The options of the reader of a source.
inline reader_options reading_for(const columns_options &options, reader_options reading) {
    if (options.format == columns_format::json && !reading.json_elements)
        reading.json_elements = "";
    return reading;
}

/// Structures of Arrow, which are released by their own function.
template <class Structure>
class arrow_owner {
  public:
    arrow_owner() noexcept = default;
    arrow_owner(arrow_owner &&other) noexcept : raw_(std::exchange(other.raw_, Structure{})) {}
    arrow_owner &operator=(arrow_owner &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~arrow_owner() {
        if (raw_.release != nullptr)
            raw_.release(&raw_);
    }

    Structure &operator*() noexcept { return raw_; }
    const Structure &operator*() const noexcept { return raw_; }
    Structure *operator->() noexcept { return &raw_; }
    const Structure *operator->() const noexcept { return &raw_; }

  private:
    Structure raw_{};
};

/// The name of a type in `docs/types.md` for a format of Arrow.
inline std::string type_name(std::string_view format) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 18> names = {{
        {"n", "null"},
        {"b", "bool"},
        {"c", "int8"},
        {"C", "uint8"},
        {"s", "int16"},
        {"S", "uint16"},
        {"i", "int32"},
        {"I", "uint32"},
        {"l", "int64"},
        {"L", "uint64"},
        {"f", "float32"},
        {"g", "float64"},
        {"u", "string"},
        {"z", "binary"},
        {"tdD", "date32"},
        {"+s", "struct"},
        {"ttu", "time64[us]"},
        {"ttn", "time64[ns]"},
    }};
    for (const auto &[code, name] : names) {
        if (code == format)
            return std::string(name);
    }
    const std::string rest(format.size() > 4 ? format.substr(4) : std::string_view());
    if (format.starts_with("d:")) {
        const std::string digits(format.substr(2));
        const std::size_t comma = digits.find(',');
        return "decimal128(" + digits.substr(0, comma) + ", " + digits.substr(std::min(comma, digits.size() - 1) + 1) +
               ")";
    }
    if (format.starts_with("ts") && format.size() > 3) {
        const std::string unit = format[2] == 's' ? "s" : std::string{format[2], 's'};
        return "timestamp[" + unit + (rest.empty() ? "" : ", " + rest) + "]";
    }
    return format == "+l" ? "list" : std::string(format);
}

/// How values of a C++ type are stored in an array of Arrow: whether a format has this type, and the value at an index.
template <class T>
struct arrow_value;

template <class T>
inline const T *arrow_buffer(const ArrowArray &array, std::size_t number) noexcept {
    return static_cast<const T *>(array.buffers[number]);
}

inline bool arrow_bit(const ArrowArray &array, std::size_t number, std::size_t index) noexcept {
    return ((arrow_buffer<std::uint8_t>(array, number)[index / 8] >> (index % 8)) & 1) != 0;
}

template <class T>
requires(std::integral<T> || std::floating_point<T>) struct arrow_value<T> {
    static bool has(std::string_view format) noexcept {
        if constexpr (std::same_as<T, float>)
            return format == "f";
        else if constexpr (std::same_as<T, double>)
            return format == "g";
        constexpr std::string_view letters = std::is_signed_v<T> ? "csil" : "CSIL";
        constexpr std::size_t power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        if (std::integral<T> && format == letters.substr(power, 1))
            return true;
        // The number of days, or of parts of a second.
        return (std::same_as<T, std::int32_t> && format == "tdD") ||
               (std::same_as<T, std::int64_t> && (format.starts_with("ts") || format.starts_with("tt")));
    }
    static T get(const ArrowArray &array, std::size_t index, std::string_view) noexcept {
        return arrow_buffer<T>(array, 1)[index];
    }
};

template <>
struct arrow_value<bool> {
    static bool has(std::string_view format) noexcept { return format == "b"; }
    static bool get(const ArrowArray &array, std::size_t index, std::string_view) noexcept {
        return arrow_bit(array, 1, index);
    }
};

template <>
struct arrow_value<std::string_view> {
    static bool has(std::string_view format) noexcept { return format == "u"; }
    static std::string_view get(const ArrowArray &array, std::size_t index, std::string_view) noexcept {
        const std::int32_t *offsets = arrow_buffer<std::int32_t>(array, 1) + index;
        return {arrow_buffer<char>(array, 2) + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0])};
    }
};

template <>
struct arrow_value<std::span<const std::byte>> {
    static bool has(std::string_view format) noexcept { return format == "z"; }
    static std::span<const std::byte> get(const ArrowArray &array, std::size_t index,
                                          std::string_view format) noexcept {
        return bytes_of(arrow_value<std::string_view>::get(array, index, format));
    }
};

template <>
struct arrow_value<decimal128> {
    static bool has(std::string_view format) noexcept { return format.starts_with("d:"); }
    static decimal128 get(const ArrowArray &array, std::size_t index, std::string_view format) noexcept {
        const auto *parts = arrow_buffer<std::uint64_t>(array, 1) + 2 * index;
        int scale = 0;
        for (const char digit : format.substr(format.find(',') + 1))
            scale = 10 * scale + (digit - '0');
        return {parts[0], static_cast<std::int64_t>(parts[1]), scale};
    }
};

template <class Duration>
struct arrow_value<std::chrono::sys_time<Duration>> {
    using period = typename Duration::period;
    static constexpr bool is_date = std::ratio_equal_v<period, std::chrono::days::period>;
    static constexpr char unit = std::ratio_equal_v<period, std::ratio<1>> ? 's'
                                 : std::ratio_equal_v<period, std::milli>  ? 'm'
                                 : std::ratio_equal_v<period, std::micro>  ? 'u'
                                                                           : 'n';

    static bool has(std::string_view format) noexcept {
        return is_date ? format == "tdD" : format.starts_with("ts") && format.size() > 2 && format[2] == unit;
    }
    static std::chrono::sys_time<Duration> get(const ArrowArray &array, std::size_t index, std::string_view) noexcept {
        using stored = std::conditional_t<is_date, std::int32_t, std::int64_t>;
        const stored count = arrow_buffer<stored>(array, 1)[index];
        return std::chrono::sys_time<Duration>(Duration(static_cast<typename Duration::rep>(count)));
    }
};

template <class Duration>
requires(std::same_as<Duration, std::chrono::microseconds> ||
         std::same_as<Duration, std::chrono::nanoseconds>) struct arrow_value<Duration> {
    static bool has(std::string_view format) noexcept {
        return format == (std::same_as<Duration, std::chrono::microseconds> ? "ttu" : "ttn");
    }
    static Duration get(const ArrowArray &array, std::size_t index, std::string_view) noexcept {
        return Duration(arrow_buffer<std::int64_t>(array, 1)[index]);
    }
};

} // namespace detail

/// A type that a column can have in C++:
///
/// - integers, `float` and `double` of the same size as in Arrow; `std::int32_t` also for the days of a date, and
///   `std::int64_t` for the number of units of a time or timestamp;
/// - `bool`; `std::string_view` for string and json; `std::span<const std::byte>` for binary; `decimal128`;
/// - `std::chrono::sys_days` for dates; `std::chrono::sys_time` of seconds to nanoseconds for timestamps of this unit,
/// in
///   UTC if they have a zone; `std::chrono::microseconds` and `nanoseconds` for the time since midnight.
template <class T>
concept column_value = requires(const ArrowArray &array) {
    { detail::arrow_value<T>::get(array, std::size_t{}, std::string_view{}) } -> std::same_as<T>;
};

/// The values of a column of a batch, valid while the batch is.
template <column_value T>
class column_view {
  public:
    class iterator;

    column_view(const ArrowArray &array, const char *format) noexcept : array_(&array), format_(format) {}

    /// The number of rows.
    std::size_t size() const noexcept { return static_cast<std::size_t>(array_->length); }
    bool empty() const noexcept { return array_->length == 0; }
    /// The number of nulls.
    std::size_t null_count() const noexcept { return static_cast<std::size_t>(array_->null_count); }
    bool is_null(std::size_t row) const noexcept {
        return array_->buffers[0] != nullptr && !detail::arrow_bit(*array_, 0, at(row));
    }

    /// The value of a row, which must be less than the size. If it is null, this is any value.
    T operator[](std::size_t row) const noexcept { return detail::arrow_value<T>::get(*array_, at(row), format_); }
    /// The value of a row, or nothing if it is null.
    std::optional<T> value(std::size_t row) const noexcept {
        return is_null(row) ? std::nullopt : std::optional<T>((*this)[row]);
    }
    /// The values of all rows as an array. Where a row is null, this is any value.
    std::span<const T> values() const noexcept requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
        return {detail::arrow_buffer<T>(*array_, 1) + array_->offset, size()};
    }

    /// All values, as `operator[]` returns them.
    iterator begin() const noexcept { return iterator(*this, 0); }
    iterator end() const noexcept { return iterator(*this, size()); }

  private:
    std::size_t at(std::size_t row) const noexcept { return static_cast<std::size_t>(array_->offset) + row; }

    const ArrowArray *array_;
    const char *format_;
};

/// Refers to a value of a column.
template <column_value T>
class column_view<T>::iterator {
  public:
    using iterator_concept = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    iterator(const column_view &column, std::size_t row) noexcept : column_(column), row_(row) {}

    T operator*() const noexcept { return (*column_)[row_]; }
    iterator &operator++() noexcept {
        ++row_;
        return *this;
    }
    iterator operator++(int) noexcept {
        iterator before = *this;
        ++row_;
        return before;
    }
    friend bool operator==(const iterator &one, const iterator &other) noexcept { return one.row_ == other.row_; }

  private:
    std::optional<column_view> column_;
    std::size_t row_ = 0;
};

namespace detail {

/// The columns of a source, which its batches share.
struct columns_schema {
    arrow_owner<ArrowSchema> raw;
    std::string source;
    std::vector<std::string> names;
};

} // namespace detail

/// Some rows of all columns. It owns its memory, and can be moved to another thread.
class column_batch {
  public:
    column_batch(std::shared_ptr<const detail::columns_schema> schema, detail::arrow_owner<ArrowArray> array) noexcept
        : schema_(std::move(schema)), array_(std::move(array)) {}

    /// The number of rows.
    std::size_t rows() const noexcept { return static_cast<std::size_t>(array_->length); }
    /// The names of the columns.
    const std::vector<std::string> &names() const noexcept { return schema_->names; }

    /// The position of the column with this name. A name that does not exist is reported as `key_missing`.
    std::size_t index(std::string_view name) const {
        for (std::size_t i = 0; i < schema_->names.size(); ++i) {
            if (schema_->names[i] == name)
                return i;
        }
        error_details details = refused("no column \"" + std::string(name) + "\"", errc::key_missing);
        for (const std::string &one : schema_->names)
            details.expected.append(details.expected.empty() ? "one of \"" : ", \"").append(one).append("\"");
        detail::fail(std::move(details));
    }

    /// The type of a column in the words of `docs/types.md`, such as int64.
    std::string type(std::size_t index) const { return detail::type_name(schema_->raw->children[index]->format); }

    /// The values of a column. If it has another type than `T`, this is reported as `argument_invalid`.
    template <column_value T>
    column_view<T> column(std::size_t index) const {
        if (index >= schema_->names.size()) {
            error_details details = refused("column " + std::to_string(index), errc::argument_invalid);
            details.expected = "less than the number of columns, " + std::to_string(schema_->names.size());
            detail::fail(std::move(details));
        }
        const char *format = schema_->raw->children[index]->format;
        if (!detail::arrow_value<T>::has(format)) {
            error_details details = refused("the type " + type(index), errc::argument_invalid);
            details.path = schema_->names[index];
            details.expected = "the type of the view: see `column_value` for the type in C++";
            detail::fail(std::move(details));
        }
        return {*array_->children[index], format};
    }
    template <column_value T>
    column_view<T> column(std::string_view name) const {
        return column<T>(index(name));
    }

    /// The batch as a struct array of Arrow, whose children are the columns, and its type.
    const ArrowArray &raw() const noexcept { return *array_; }
    const ArrowSchema &raw_schema() const noexcept { return *schema_->raw; }
    /// Gives the struct array away, which its new owner releases.
    ArrowArray release() &&noexcept { return std::exchange(*array_, ArrowArray{}); }

  private:
    error_details refused(std::string found, errc kind) const {
        error_details details;
        details.kind = kind;
        details.name = schema_->source;
        details.found = std::move(found);
        return details;
    }

    std::shared_ptr<const detail::columns_schema> schema_;
    detail::arrow_owner<ArrowArray> array_;
};

/// A single-pass range of the records of a reader as batches of columns, each a `column_batch`.
///
/// The end of the range means that the source succeeded; otherwise advancing past the last batch throws once. The range
/// owns its reader; it can be moved, but not during iteration.
class columns {
  public:
    class iterator;

    /// Reads the records that a reader has not delivered yet. The header and the records from which types are inferred
    /// are read here. For `columns_format::json`, the reader has the option `json_elements`.
    explicit columns(millstream::reader reader, const columns_options &options = {}) : reader_(std::move(reader)) {
        const std::string text = detail::text_of(options);
        const std::string schema = detail::c_text(options.schema.value_or(""));
        reader_.end_window();
        // The library owns the reader now, even if the call fails.
        millstream_reader *raw = reader_.handle_.release();
        millstream_columns *made = nullptr;
        call(millstream_columns_new, raw, text.c_str(), options.schema ? schema.c_str() : nullptr, &made);
        handle_.reset(made);
        detail::columns_schema all;
        call(millstream_columns_schema, handle_.get(), &*all.raw);
        all.source = name();
        for (std::int64_t i = 0; i < all.raw->n_children; ++i)
            all.names.emplace_back(all.raw->children[i]->name);
        schema_ = std::make_shared<const detail::columns_schema>(std::move(all));
    }
    /// Reads the records of a source.
    template <source Source>
    explicit columns(Source &&source, const columns_options &options = {}, const reader_options &reading = {})
        : columns(millstream::reader(std::forward<Source>(source), detail::reading_for(options, reading)), options) {}

    columns(columns &&other) noexcept = default;
    columns &operator=(columns &&other) noexcept {
        handle_ = std::move(other.handle_); // first, because the handle that is freed now may still call back
        reader_ = std::move(other.reader_);
        schema_ = std::move(other.schema_);
        rejects_ = std::move(other.rejects_);
        return *this;
    }
    ~columns() = default;

    /// Continues with the batch after the last one that was returned.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// Returns the next batch, or nothing at the end. It has at least one row, unless many bad records precede it. The
    /// rows before an error come first; after `cancelled`, the next call continues.
    std::optional<column_batch> next() {
        detail::arrow_owner<ArrowArray> batch;
        call(millstream_columns_next, handle_.get(), &*batch);
        if (batch->release == nullptr)
            return std::nullopt;
        return column_batch(schema_, std::move(batch));
    }

    /// The names of the columns.
    const std::vector<std::string> &names() const noexcept { return schema_->names; }
    /// The columns and their types as JSON, which `columns_options::schema` takes.
    std::string_view schema() const noexcept { return view(millstream_columns_schema_json(handle_.get())); }
    /// The name of the source in error messages.
    std::string_view name() const noexcept { return view(millstream_columns_name(handle_.get())); }
    /// The number of rows of all batches so far.
    std::uint64_t rows() const { return counts().first; }
    /// The number of bad records that were left out so far.
    std::uint64_t rejected() const { return counts().second; }

    /// The first 1,000 bad records that were left out so far.
    const std::vector<reject> &rejects() {
        while (true) {
            millstream_error *reason = nullptr;
            const char *raw = nullptr;
            std::size_t len = 0;
            detail::call(millstream_columns_next_reject, handle_.get(), &reason, &raw, &len);
            if (reason == nullptr)
                return rejects_;
            rejects_.push_back({detail::taken(millstream_error_code(reason), reason), std::string(raw, len)});
        }
    }

    /// Creates a stream of the remaining batches for a library that reads Arrow's C stream interface. It must be
    /// released before this object is destroyed, whose counts include the rows of the stream.
    void stream(ArrowArrayStream *to) const { detail::call(millstream_columns_stream, handle_.get(), to); }
    /// Throws the last error that a stream has reported, with all its details, unless it was thrown already.
    void throw_failure() { call(millstream_columns_failure, handle_.get()); }

    /// Stops reading at the current position, like `millstream::reader::close`. Batches stay valid.
    void close() { call(millstream_columns_close, handle_.get()); }

  private:
    using handle_type = detail::handle<millstream_columns, millstream_columns_free>;

    /// Throws the exception of the reader's callback, if that is the cause of an error.
    template <class Function, class... Arguments>
    void call(Function function, Arguments... arguments) {
        reader_.outcome_.throwing([&](std::error_code &code) { reader_.outcome_.call(code, function, arguments...); });
    }

    static std::string_view view(const char *text) noexcept { return text != nullptr ? text : std::string_view(); }

    std::pair<std::uint64_t, std::uint64_t> counts() const {
        std::pair<std::uint64_t, std::uint64_t> found;
        detail::call(millstream_columns_counts, handle_.get(), &found.first, &found.second);
        return found;
    }

    millstream::reader reader_; // its callbacks
    handle_type handle_;        // freed before them
    std::shared_ptr<const detail::columns_schema> schema_;
    std::vector<reject> rejects_;
};

/// Refers to a batch of a range, which must not move. All iterators of a range share one position.
class columns::iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = column_batch;
    using difference_type = std::ptrdiff_t;

    explicit iterator(columns &range) : range_(&range), batch_(range.next()) {}

    column_batch &operator*() const noexcept { return *batch_; }
    iterator &operator++() {
        batch_ = range_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.batch_; }

  private:
    columns *range_;
    mutable std::optional<column_batch> batch_;
};

inline columns::iterator columns::begin() { return iterator(*this); }

static_assert(std::input_iterator<columns::iterator>);
static_assert(std::forward_iterator<column_view<std::string_view>::iterator>);

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_COLUMNS_HPP
