// Splits bytes into records: framers define records, and batches contain many of them.
//
//     millstream::framer framer = millstream::framer::delimiter(";");
//     millstream::batch batch = framer.batch("one;two;thr", millstream::extent::part); // one, two
//     for (std::string_view record : batch)
//         use(record);
//
// A framer finds the ends of records. It does no input or output and keeps no state between calls, so a different
// framer may be used for the next record. Only one thread at a time may use a framer. Readers use framers, and framers
// work on any memory.
#ifndef MILLSTREAM_FRAME_HPP
#define MILLSTREAM_FRAME_HPP

#if __cplusplus <= 201703L
#error "millstream/frame.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <millstream/boundary.hpp>
#include <millstream/enums.hpp>

namespace millstream {

/// Whether the delimiter is part of the record.
enum class delimited : std::uint32_t {
    trimmed = MILLSTREAM_DELIMITED_TRIMMED, ///< It is removed; for lines, a carriage return before it is removed too.
    untrimmed = MILLSTREAM_DELIMITED_UNTRIMMED, ///< It is part of the record.
};

/// The part of a stream to which some bytes belong.
enum class extent {
    part,  ///< More bytes follow: an unfinished record at the end waits for them.
    whole, ///< These are the last bytes: an incomplete record at the end is a record, or an error.
};

/// The bytes that end a line of CSV.
enum class csv_line_end {
    any,  ///< LF, CRLF and CR, also mixed.
    lf,   ///< LF; a CR is content.
    crlf, ///< CRLF; any other CR or LF is content.
    cr,   ///< CR; an LF is content.
};

/// The dialect of CSV. The default is RFC 4180 with any line end.
struct csv_dialect {
    /// The byte between two fields.
    char delimiter = ',';
    /// The byte around fields that contain delimiters, line ends or quotes.
    std::optional<char> quote = '"';
    /// The byte that makes the next byte content.
    std::optional<char> escape = std::nullopt;
    /// Whether two quotes in a quoted field are one quote of its content.
    bool doubled_quotes = true;
    /// The byte that makes a line a comment if it is the first one.
    std::optional<char> comment = std::nullopt;
    /// The bytes that end a line.
    csv_line_end line_end = csv_line_end::any;
    /// Whether a blank line is a record of one empty field; otherwise it is skipped.
    bool blank_records = false;
    /// Whether a quote in a field that does not begin with one is content; otherwise it is an error.
    bool literal_quotes = false;
    /// Whether a byte order mark of UTF-8 is skipped, and one of UTF-16 is an error; otherwise they are content.
    bool detect_mark = true;
};

/// How newline-delimited JSON is read.
struct json_lines_options {
    /// Whether each line that is not blank is checked to be one value in UTF-8.
    bool check = false;
    /// The maximum number of arrays and objects inside each other in lines that are checked.
    std::size_t depth = 128;
};

namespace detail {

/// The dialect as the C ABI parses it.
inline std::string text_of(const csv_dialect &dialect) {
    constexpr std::array<std::string_view, 4> line_ends = {"any", "lf", "crlf", "cr"};
    std::string text;
    const auto add = [&text](std::string_view name, std::string_view value) {
        text.append(name).append("=").append(value).append(" ");
    };
    const auto add_byte = [&add](std::string_view name, std::optional<char> byte) {
        constexpr std::string_view digits = "0123456789abcdef";
        const auto number = static_cast<unsigned char>(byte.value_or('\0'));
        add(name, byte ? std::string{digits[number / 16], digits[number % 16]} : "none");
    };
    add_byte("delimiter", dialect.delimiter);
    add_byte("quote", dialect.quote);
    add_byte("escape", dialect.escape);
    add("doubled_quotes", dialect.doubled_quotes ? "on" : "off");
    add_byte("comment", dialect.comment);
    add("line_end", line_ends[static_cast<std::size_t>(dialect.line_end)]);
    add("blank_records", dialect.blank_records ? "on" : "off");
    add("literal_quotes", dialect.literal_quotes ? "on" : "off");
    add("detect_mark", dialect.detect_mark ? "on" : "off");
    return text;
}

} // namespace detail

/// No limit.
inline constexpr std::size_t all_records = std::numeric_limits<std::size_t>::max();

/// The part of a record that is not its content: bytes at the front, bytes at the end, a carriage return before those.
using trim = millstream_trim;

/// Records in one borrowed block of memory: a random-access range of their contents.
///
/// A batch of a reader is valid until the next non-const call on that reader.
class batch {
  public:
    class iterator;

    /// Creates an empty batch.
    batch() noexcept = default;
    /// Creates a batch from the C ABI's struct.
    explicit batch(const millstream_batch &raw) noexcept : raw_(raw) {}

    /// The number of records.
    std::size_t size() const noexcept { return raw_.count; }
    bool empty() const noexcept { return raw_.count == 0; }

    /// The content of a record; `index` must be less than the size.
    std::string_view operator[](std::size_t index) const noexcept {
        const char *record = nullptr;
        std::size_t len = 0;
        millstream_batch_record(&raw_, index, &record, &len);
        return {record, len};
    }

    /// The record with its delimiter or length; `index` must be less than the size.
    std::string_view untrimmed(std::size_t index) const noexcept {
        return {raw_.bytes + raw_.offsets[index], raw_.offsets[index + 1] - raw_.offsets[index]};
    }

    iterator begin() const noexcept;
    iterator end() const noexcept;

    /// The memory that the offsets point into.
    std::span<const char> bytes() const noexcept { return {raw_.bytes, raw_.len}; }
    /// Ascending offsets, one more than there are records: record i is bytes()[offsets()[i]] up to bytes()[offsets()[i
    /// + 1]], including delimiter or length.
    std::span<const std::uint32_t> offsets() const noexcept {
        return {raw_.offsets, raw_.offsets != nullptr ? raw_.count + 1 : 0};
    }
    /// The part of each record that is not its content.
    millstream::trim trim() const noexcept { return raw_.trim; }
    /// Whether the last record ends with its delimiter (true if records have none). All others do.
    bool terminated() const noexcept { return raw_.terminated; }
    /// The position of the batch in the stream, in bytes.
    std::uint64_t offset() const noexcept { return raw_.offset; }
    /// The number of its first record; the stream's first is 0.
    std::uint64_t first_record() const noexcept { return raw_.first_record; }
    /// The line number of the first record (the first is 1); nothing if it or an earlier record of the stream is not a
    /// line.
    std::optional<std::uint64_t> first_line() const noexcept {
        return raw_.first_line == 0 ? std::nullopt : std::optional(raw_.first_line);
    }

    /// The C ABI's struct.
    const millstream_batch &get() const noexcept { return raw_; }

  private:
    millstream_batch raw_{};
};

/// Iterates over the records of a batch, which must outlive it.
class batch::iterator {
  public:
    using iterator_category = std::input_iterator_tag; // its reference is a value
    using iterator_concept = std::random_access_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using reference = std::string_view;
    using pointer = void;

    iterator() noexcept = default;
    iterator(const batch &batch, std::size_t index) noexcept : batch_(&batch), index_(index) {}

    std::string_view operator*() const noexcept { return (*batch_)[index_]; }
    std::string_view operator[](difference_type by) const noexcept { return *(*this + by); }

    iterator &operator++() noexcept {
        ++index_;
        return *this;
    }
    iterator operator++(int) noexcept { return {*batch_, index_++}; }
    iterator &operator--() noexcept {
        --index_;
        return *this;
    }
    iterator operator--(int) noexcept { return {*batch_, index_--}; }
    iterator &operator+=(difference_type by) noexcept {
        index_ += static_cast<std::size_t>(by);
        return *this;
    }
    iterator &operator-=(difference_type by) noexcept { return *this += -by; }

    friend iterator operator+(iterator it, difference_type by) noexcept { return it += by; }
    friend iterator operator+(difference_type by, iterator it) noexcept { return it += by; }
    friend iterator operator-(iterator it, difference_type by) noexcept { return it -= by; }
    friend difference_type operator-(const iterator &left, const iterator &right) noexcept {
        return static_cast<difference_type>(left.index_) - static_cast<difference_type>(right.index_);
    }
    friend bool operator==(const iterator &left, const iterator &right) noexcept { return left.index_ == right.index_; }
    friend auto operator<=>(const iterator &left, const iterator &right) noexcept {
        return left.index_ <=> right.index_;
    }

  private:
    const batch *batch_ = nullptr;
    std::size_t index_ = 0;
};

inline batch::iterator batch::begin() const noexcept { return {*this, 0}; }
inline batch::iterator batch::end() const noexcept { return {*this, size()}; }

static_assert(std::random_access_iterator<batch::iterator>);

/// Finds the ends of records.
class framer {
  public:
    /// Records are lines, which end with a line feed. The last line need not end with one.
    static framer lines(delimited delimited = delimited::trimmed) {
        return made(millstream_framer_lines, static_cast<millstream_delimited>(delimited));
    }

    /// Records end with these bytes, of which there is at least one. The last record need not end with them.
    static framer delimiter(std::string_view bytes, delimited delimited = delimited::trimmed) {
        return made(millstream_framer_delimiter, static_cast<const void *>(bytes.data()), bytes.size(),
                    static_cast<millstream_delimited>(delimited));
    }

    /// Records end after each byte for which `ends` returns true. `ends` is called only during this call, once for each
    /// of the 256 byte values. Its exceptions are rethrown.
    template <std::predicate<unsigned char> Ends>
    static framer predicate(Ends ends, delimited delimited = delimited::trimmed) {
        std::array<bool, 256> answers{};
        for (std::size_t byte = 0; byte < answers.size(); ++byte)
            answers[byte] = static_cast<bool>(ends(static_cast<unsigned char>(byte)));
        const auto answer = [](void *user, std::uint8_t byte) { return static_cast<const bool *>(user)[byte]; };
        return made(millstream_framer_predicate, static_cast<millstream_predicate>(answer),
                    static_cast<void *>(answers.data()), static_cast<millstream_delimited>(delimited));
    }

    /// Records have `len` bytes. A stream that ends inside a record is reported as `frame_truncated`.
    static framer fixed(std::size_t len) { return made(millstream_framer_fixed, len); }

    /// Records are preceded by their length, an unsigned number of `width` bytes: 1, 2, 4 or 8. A stream that ends
    /// inside a record is reported as `frame_truncated`.
    static framer length_prefixed(std::size_t width, std::endian order = std::endian::little,
                                  prefix_counts counts = prefix_counts::payload) {
        const millstream_endian endian =
            order == std::endian::little ? MILLSTREAM_ENDIAN_LITTLE : MILLSTREAM_ENDIAN_BIG;
        return made(millstream_framer_length_prefixed, width, endian, static_cast<millstream_prefix_counts>(counts));
    }

    /// Records are consecutive BSON documents, as written by mongodump; see `millstream::bson::documents`. All bytes of
    /// a document are content. An impossible length is reported as `length_invalid`, a document that does not end with
    /// 0 is
    /// `document_invalid`, and a stream that ends inside a document is reported as `frame_truncated`.
    static framer bson() { return made(millstream_framer_bson); }

    /// Records are those of CSV; see `csv_dialect`. All lines are records, so that together they are the input;
    /// `millstream::rows` leaves out blank lines and comments, and has the fields. A quote that the dialect does not
    /// allow is reported as `csv_invalid`.
    static framer csv(const csv_dialect &dialect = {}) {
        return made(millstream_framer_csv, detail::text_of(dialect).c_str());
    }

    /// Records are lines of newline-delimited JSON. All lines are records, so that together they are the input; `skips`
    /// is true for blank lines. A line that is checked and is not one value is reported as `json_invalid` or
    /// `too_deep`. The elements of an array are records by `reader_options::json_elements`.
    static framer json_lines(const json_lines_options &options = {}) {
        return made(millstream_framer_json_lines, options.check, options.depth);
    }

    /// Returns whether the content of a record that this framer has found is not a record of the format: a blank line
    /// of newline-delimited JSON or of CSV, or a comment of CSV.
    bool skips(std::string_view content) const {
        bool skips = false;
        detail::call(millstream_framer_skips, handle_.get(), static_cast<const void *>(content.data()), content.size(),
                     &skips);
        return skips;
    }

    /// Returns at most `max` complete records at the front of `input`. They are valid as long as the input, until the
    /// next call with this framer. The records before an invalid one are delivered first; the next call, which starts
    /// at the invalid record, reports it.
    millstream::batch batch(std::span<const std::byte> input, extent extent, std::size_t max = all_records) {
        millstream_batch found{};
        detail::call(millstream_framer_batch, handle_.get(), static_cast<const void *>(input.data()), input.size(),
                     extent == extent::whole, max, &found);
        return millstream::batch(found);
    }
    /// Like the first form, but reports a failure through `code`; then the batch is empty.
    millstream::batch batch(std::span<const std::byte> input, extent extent, std::size_t max,
                            std::error_code &code) noexcept {
        millstream_batch found{};
        const millstream_code result = millstream_framer_batch(handle_.get(), input.data(), input.size(),
                                                               extent == extent::whole, max, &found, nullptr);
        code.clear();
        if (result != MILLSTREAM_OK)
            code = static_cast<errc>(result);
        return millstream::batch(found);
    }
    /// Like the first form, for text; the NUL of a literal is excluded.
    millstream::batch batch(std::string_view input, extent extent, std::size_t max = all_records) {
        return batch(detail::bytes_of(input), extent, max);
    }
    millstream::batch batch(std::string_view input, extent extent, std::size_t max, std::error_code &code) noexcept {
        return batch(detail::bytes_of(input), extent, max, code);
    }

    /// The bytes to write after a record's content so that this framer finds it again: a newline for lines. They are
    /// empty if no suffix is needed or the content includes it, and valid as long as the framer.
    std::string_view terminator() const noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        millstream_framer_terminator(handle_.get(), &bytes, &len, nullptr);
        return {bytes, len};
    }

    /// The C ABI's framer, which this object keeps.
    millstream_framer *get() noexcept { return handle_.get(); }

  private:
    using handle_type = detail::handle<millstream_framer, millstream_framer_free>;

    explicit framer(handle_type handle) noexcept : handle_(std::move(handle)) {}

    template <class Function, class... Arguments>
    static framer made(Function function, Arguments... arguments) {
        return framer(detail::made<handle_type>(function, arguments...));
    }

    handle_type handle_;
};

/// Throws `utf8_invalid`, with the position of the invalid byte, if a record is not UTF-8.
inline void check_text(std::string_view record) {
    detail::call(millstream_check_text, static_cast<const void *>(record.data()), record.size());
}

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_FRAME_HPP
