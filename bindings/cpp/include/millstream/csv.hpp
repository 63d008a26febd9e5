// Records of CSV as fields, by position or by the names of the header.
//
//     millstream::rows people(millstream::path{"people.csv"});
//     people.header(); // the first record
//     for (const millstream::row &person : people)
//         std::cout << person["name"] << " is " << person["age"] << '\n';
//     // Here the source has succeeded; otherwise the loop would have thrown after the last record.
//
// `docs/csv.md` defines the format and the options of `csv_dialect`.
#ifndef MILLSTREAM_CSV_HPP
#define MILLSTREAM_CSV_HPP

#if __cplusplus <= 201703L
#error "millstream/csv.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <concepts>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millstream/frame.hpp>
#include <millstream/reader.hpp>

namespace millstream {

namespace detail {

/// The names of a header and the name of its source.
struct csv_header {
    std::string source;
    std::vector<std::string> names;

    /// The position of the last field with this name.
    std::size_t index(std::string_view name) const {
        const auto found = std::find(names.rbegin(), names.rend(), name);
        if (found != names.rend())
            return static_cast<std::size_t>(names.rend() - found) - 1;
        error_details details;
        details.kind = errc::key_missing;
        details.name = source;
        if (names.empty()) {
            details.found = "a name of a field, and the header was not read";
            details.expected = "a call of `header` before the first record";
            details.advice = "call `header` before the first record, or use the position of the field";
        } else {
            details.found = "no field \"" + std::string(name) + "\" in the header";
            details.advice = "check the name, and that the first record is the header";
        }
        for (const std::string &one : names)
            details.expected.append(details.expected.empty() ? "one of \"" : ", \"").append(one).append("\"");
        fail(std::move(details));
    }
};

} // namespace detail

/// The fields of a record of CSV: a contiguous range of their contents, without quotes and escape characters. It is
/// valid until the next record is requested.
class row {
  public:
    row(std::span<const std::string_view> fields, const detail::csv_header &header) noexcept
        : fields_(fields), header_(&header) {}

    /// The number of fields.
    std::size_t size() const noexcept { return fields_.size(); }
    bool empty() const noexcept { return fields_.empty(); }
    auto begin() const noexcept { return fields_.begin(); }
    auto end() const noexcept { return fields_.end(); }

    /// The field at a position, which must be less than the size.
    std::string_view operator[](std::size_t index) const noexcept { return fields_[index]; }
    /// The field with this name in the header, and the last one if names are equal. A name that the header does not
    /// have is reported as `key_missing`. In a loop over many records, `rows::index` is faster.
    template <std::convertible_to<std::string_view> Name>
    std::string_view operator[](const Name &name) const {
        return fields_[header_->index(name)];
    }

  private:
    std::span<const std::string_view> fields_;
    const detail::csv_header *header_;
};

/// A single-pass range of the records of CSV of a reader, each as a `row`. Blank lines and comments are skipped.
///
/// The end of the range means that the source succeeded; otherwise advancing past the last record throws once. The
/// range owns its reader; it can be moved, but not during iteration.
class rows {
  public:
    class iterator;

    /// The records of a source.
    template <source Source>
    explicit rows(Source &&source, const csv_dialect &dialect = {}, const reader_options &options = {})
        : rows(millstream::reader(std::forward<Source>(source), options), dialect) {}
    /// The records of a reader from its current position.
    explicit rows(millstream::reader reader, const csv_dialect &dialect = {})
        : reader_(std::move(reader)), framer_(framer::csv(dialect)) {}

    // A range that was moved from has no reader and no batch.
    rows(rows &&other) noexcept
        : reader_(std::move(other.reader_)), framer_(std::move(other.framer_)), header_(std::move(other.header_)),
          batch_(std::exchange(other.batch_, batch())), raw_(std::exchange(other.raw_, millstream_rows{})),
          fields_(std::move(other.fields_)), padded_(std::move(other.padded_)), next_(std::exchange(other.next_, 0)),
          ragged_(other.ragged_) {}
    rows &operator=(rows &&other) noexcept {
        reader_ = std::move(other.reader_);
        framer_ = std::move(other.framer_);
        header_ = std::move(other.header_);
        batch_ = std::exchange(other.batch_, batch());
        raw_ = std::exchange(other.raw_, millstream_rows{});
        fields_ = std::move(other.fields_);
        padded_ = std::move(other.padded_);
        next_ = std::exchange(other.next_, 0);
        ragged_ = other.ragged_;
        return *this;
    }
    ~rows() = default;

    /// What to do with a record that has another number of fields than the header. By default it is an error. With
    /// `csv_ragged::pad` missing fields are empty, and a record with more fields is still an error; with
    /// `csv_ragged::collect` it keeps them. If the header is not read, records may have any number of fields.
    rows &ragged(csv_ragged ragged) noexcept {
        ragged_ = ragged;
        return *this;
    }

    /// The names of the fields: the first call takes the next record as the header, and later calls return the same
    /// names. Records after it must have the same number of fields, unless `ragged` allows others: another number is
    /// reported as `field_count_mismatch`, and the next call continues after this record. The names are empty if there
    /// is no record.
    const std::vector<std::string> &header() {
        if (header_.names.empty()) {
            if (const auto first = next(); first) {
                header_.source = detail::text_or_nothing(millstream_reader_name(reader_.get()));
                header_.names.assign(first->begin(), first->end());
            }
        }
        return header_.names;
    }

    /// The position of the last field with this name in the header. A name that the header does not have is reported as
    /// `key_missing`.
    std::size_t index(std::string_view name) {
        header();
        return header_.index(name);
    }

    /// Continues with the record after the last one that was returned.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// Returns the next record, or nothing at the end.
    std::optional<row> next() {
        while (next_ == raw_.count) {
            forget();
            const auto found = reader_.next_batch(framer_);
            if (!found)
                return std::nullopt;
            batch_ = *found;
            split();
        }
        const std::size_t index = next_++;
        const std::size_t start = raw_.starts[index];
        const std::size_t count = raw_.starts[index + 1] - start;
        if (!header_.names.empty() && count != header_.names.size()) [[unlikely]]
            return padded(index, start, count);
        return row(std::span(fields_).subspan(start, count), header_);
    }

    /// Skips the next line, of any length, which may be a blank line or a comment, and returns whether there was one.
    /// After `record_too_long`, it skips the record that was too long, and the iteration can continue.
    bool skip_record() { return reader().skip_record(framer_); }

    /// The position in the stream, after the last record that was returned.
    millstream::position position() const noexcept {
        if (batch_.empty())
            return reader_.position();
        const std::size_t used = used_lines();
        return {batch_.offset() + batch_.offsets()[used] - batch_.offsets()[0], batch_.first_record() + used};
    }

    /// The reader, which continues after the last record that was returned. Call this again after continuing with the
    /// range.
    millstream::reader &reader() noexcept {
        if (const std::size_t used = used_lines(); used < batch_.size()) {
            std::error_code code; // no error: no call has used the reader since its batch
            reader_.give_back(batch_.size() - used, code);
        }
        forget();
        return reader_;
    }

  private:
    /// Drops the batch, whose memory the reader is about to reuse.
    void forget() noexcept {
        batch_ = batch();
        raw_ = millstream_rows{};
        next_ = 0;
    }

    void split() {
        detail::call(millstream_framer_rows, framer_.get(), &batch_.get(), &raw_);
        fields_.clear();
        for (const millstream_field &field : std::span(raw_.fields, raw_.starts[raw_.count]))
            fields_.emplace_back(field.bytes, field.len);
    }

    /// The number of lines of the batch up to the last record that was returned.
    std::size_t used_lines() const noexcept { return next_ > 0 ? raw_.records[next_ - 1] + 1 : 0; }

    /// The record with empty fields in place of those that are missing, if that is allowed.
    row padded(std::size_t index, std::size_t start, std::size_t count) {
        detail::call(millstream_reader_check_fields, reader_.get(), raw_.records[index], count, header_.names.size(),
                     static_cast<millstream_csv_ragged>(ragged_));
        const auto found = std::span(fields_).subspan(start, count);
        padded_.assign(found.begin(), found.end());
        padded_.resize(std::max(count, header_.names.size()));
        return row(padded_, header_);
    }

    millstream::reader reader_;
    framer framer_;
    detail::csv_header header_;
    batch batch_;
    millstream_rows raw_{};
    std::vector<std::string_view> fields_;
    /// The last record that had fewer fields than the header.
    std::vector<std::string_view> padded_;
    std::size_t next_ = 0;
    csv_ragged ragged_ = csv_ragged::error;
};

/// Refers to a record of a range, which must not move. All iterators of a range share one position.
class rows::iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = row;
    using difference_type = std::ptrdiff_t;

    explicit iterator(rows &range) : range_(&range), row_(range.next()) {}

    const row &operator*() const noexcept { return *row_; }
    iterator &operator++() {
        row_ = range_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.row_; }

  private:
    rows *range_;
    std::optional<row> row_;
};

inline rows::iterator rows::begin() { return iterator(*this); }

static_assert(std::input_iterator<rows::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, rows::iterator>);

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_CSV_HPP
