// Readers take bytes, records and numbers from a source.
//
//     for (std::string_view line : millstream::lines(millstream::command{"samtools", "view", "-h", path}))
//         use(line);
//     // Here the command has succeeded. If it had failed, the loop would have thrown after the last line.
//
// The end of the stream means that the source succeeded: a command that exits with a non-zero status is an error,
// which is reported after all bytes that it wrote have been delivered. An error is reported once; after it, the reader
// is at its end, unless `millstream::is_resumable` returns true.
//
// Member functions that can fail have two forms. One throws `millstream::error`, or the exception of your callback. The
// other takes a `std::error_code &` as its last argument, does not throw, and stores the details in `last_error()`.
// Loops over ranges, `values()`, and `scan` of several values have only the throwing form.
//
// The reader owns the bytes of lines, records and batches, which are valid until the next non-const call on it.
// Different threads may use different readers at the same time; only one thread at a time may use a reader.
#ifndef MILLSTREAM_READER_HPP
#define MILLSTREAM_READER_HPP

#if __cplusplus <= 201703L
#error "millstream/reader.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <chrono>
#include <iterator>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>
#include <millstream/command.hpp>
#include <millstream/format.hpp>
#include <millstream/frame.hpp>
#include <millstream/options.hpp>
#include <millstream/scan.hpp>
#include <millstream/source.hpp>

namespace millstream {

/// Whether the next records require a wait. The values that require no wait come first.
enum class waits : std::uint32_t {
    no = MILLSTREAM_WAITS_NO,           ///< There is data, or the end, or an error to report.
    unknown = MILLSTREAM_WAITS_UNKNOWN, ///< Unknown, as with a callback.
    yes = MILLSTREAM_WAITS_YES,         ///< There is no data.
};

/// The position of a reader: bytes consumed, after decoding, and records taken or skipped.
struct position {
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
};

/// The progress of a reader.
struct progress {
    /// Bytes consumed, after decoding.
    std::uint64_t bytes = 0;
    /// Records taken or skipped.
    std::uint64_t records = 0;
    /// Bytes read from the source, before decoding.
    std::uint64_t source_bytes = 0;
    /// The total number of bytes of the source, if known.
    std::optional<std::uint64_t> source_size;
    millstream::format format = millstream::format::none;
    /// The time since the reader was opened.
    std::chrono::nanoseconds elapsed{};
    /// The time that the consumer has waited for bytes.
    std::chrono::nanoseconds waited{};
    /// The length of the longest record so far in bytes, with its delimiter or prefix.
    std::uint64_t longest_record = 0;
};

namespace detail {

inline progress copied(const millstream_progress &from) {
    progress to;
    to.bytes = from.bytes;
    to.records = from.records;
    to.source_bytes = from.source_bytes;
    if (from.source_size_known)
        to.source_size = from.source_size;
    to.format = static_cast<format>(from.format);
    to.elapsed = std::chrono::nanoseconds(from.elapsed_ns);
    to.waited = std::chrono::nanoseconds(from.waited_ns);
    to.longest_record = from.longest_record;
    return to;
}

using observer = std::function<void(const progress &)>;

inline void observe(void *user, const millstream_progress *at) noexcept {
    (*static_cast<const observer *>(user))(copied(*at));
}

using reader_options_handle = handle<millstream_reader_options, millstream_reader_options_free>;

/// Creates the options of the C ABI; `kept` stores the observer while the reader exists.
inline reader_options_handle made(const reader_options &options, std::unique_ptr<observer> &kept) {
    auto handle = made<reader_options_handle>(millstream_reader_options_new);
    auto *to = handle.get();
    set(options, to);
    if (options.observer) {
        kept = std::make_unique<observer>(options.observer);
        call(millstream_reader_options_set_observer, to, c_time(options.observer_interval), &observe,
             static_cast<void *>(kept.get()));
    }
    return handle;
}

} // namespace detail

template <scannable... Values>
class value_range;

class columns;

namespace bson {
class documents;
namespace detail {
struct io;
}
} // namespace bson

/// Reads a source. It can be moved but not copied. A default-constructed or moved-from reader is not open: its calls
/// fail with `argument_invalid`.
///
/// The destructor closes the reader without reporting errors. It may take two seconds if a command has to be stopped.
class reader {
  public:
    /// Creates a reader that is not open.
    reader() noexcept = default;

    /// Opens a source.
    template <source Source>
    explicit reader(Source &&source, const reader_options &options = {}) {
        detail::given_away given(source);
        const auto handle = detail::made(options, observer_);
        detail::reader_opening opening;
        opening.options = handle.get();
        given.taken();
        open(std::forward<Source>(source), opening);
        outcome_.keep(std::move(opening.callback));
        handle_ = std::move(opening.reader);
        window_.reader = handle_.get();
    }

    /// Opens a source; if that fails, `code` has the reason and the reader is not open.
    template <source Source>
    reader(Source &&source, const reader_options &options, std::error_code &code) {
        code.clear();
        try {
            *this = reader(std::forward<Source>(source), options);
        } catch (const error &failure) {
            outcome_.set(failure, code);
        }
    }
    template <source Source>
    reader(Source &&source, std::error_code &code) : reader(std::forward<Source>(source), reader_options{}, code) {}

    reader(reader &&other) noexcept
        : outcome_(std::move(other.outcome_)), observer_(std::move(other.observer_)), handle_(std::move(other.handle_)),
          window_(std::exchange(other.window_, millstream_input{})) {}
    reader &operator=(reader &&other) noexcept {
        handle_ = std::move(other.handle_); // first, because the handle that is closed now may still call back
        observer_ = std::move(other.observer_);
        outcome_ = std::move(other.outcome_);
        window_ = std::exchange(other.window_, millstream_input{});
        return *this;
    }
    ~reader() = default;

    // ---- bytes ----

    /// Reads at least one more byte after the unread ones and returns the number of new bytes; 0 is the end, and means
    /// that the source succeeded. If more bytes than the record limit are unread, this is `record_too_long`; the bytes
    /// can be consumed.
    std::size_t fill() {
        return outcome_.throwing([&](std::error_code &code) { return fill(code); });
    }
    std::size_t fill(std::error_code &code) noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        std::size_t added = 0;
        call(code, millstream_reader_fill, &bytes, &len, &added);
        return added;
    }

    /// The unread bytes in the buffer.
    std::span<const char> buffer() const noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        end_window();
        millstream_reader_buffer(handle_.get(), &bytes, &len, nullptr);
        return {bytes, len};
    }

    /// Removes `count` bytes from the front of the unread ones. The bytes after them do not move. A count larger than
    /// the number of unread bytes is reported as `argument_invalid`.
    void consume(std::size_t count) {
        outcome_.throwing([&](std::error_code &code) { consume(count, code); });
    }
    void consume(std::size_t count, std::error_code &code) noexcept { call(code, millstream_reader_consume, count); }

    /// Copies between one and `space.size()` bytes to `space`, which must not be empty, and returns their number; 0 is
    /// the end, and means that the source succeeded.
    std::size_t read(std::span<char> space) {
        return outcome_.throwing([&](std::error_code &code) { return read(space, code); });
    }
    std::size_t read(std::span<char> space, std::error_code &code) noexcept {
        std::size_t len = 0;
        call(code, millstream_reader_read, static_cast<void *>(space.data()), space.size(), &len);
        return len;
    }

    // ---- records: these return nothing at the end, which means that the source succeeded ----

    /// Returns the next line, without its line feed or carriage return and line feed. For many lines,
    /// `millstream::lines` is faster.
    std::optional<std::string_view> next_line() {
        return outcome_.throwing([&](std::error_code &code) { return next_line(code); });
    }
    std::optional<std::string_view> next_line(std::error_code &code) noexcept {
        return record(code, millstream_reader_next_line);
    }

    /// Returns the bytes before the next `delimiter`, or before the end.
    std::optional<std::string_view> read_until(char delimiter) {
        return outcome_.throwing([&](std::error_code &code) { return read_until(delimiter, code); });
    }
    std::optional<std::string_view> read_until(char delimiter, std::error_code &code) noexcept {
        return record(code, millstream_reader_read_until, delimiter);
    }

    /// Returns the next record, as found and trimmed by `framer`.
    std::optional<std::string_view> next_frame(framer &framer) {
        return outcome_.throwing([&](std::error_code &code) { return next_frame(framer, code); });
    }
    std::optional<std::string_view> next_frame(framer &framer, std::error_code &code) noexcept {
        return record(code, millstream_reader_next_frame, framer.get());
    }

    /// Returns the next records, as many as are available but at most `max`, which is at least 1. It waits for one
    /// record but never for a second. The records before an invalid one are delivered first.
    std::optional<batch> next_batch(framer &framer, std::size_t max = all_records) {
        return outcome_.throwing([&](std::error_code &code) { return next_batch(framer, max, code); });
    }
    std::optional<batch> next_batch(framer &framer, std::size_t max, std::error_code &code) noexcept {
        millstream_batch found{};
        call(code, millstream_reader_next_batch, framer.get(), max, &found);
        return found.count > 0 ? std::optional(batch(found)) : std::nullopt;
    }

    /// Marks the last `count` records of the last batch as unread, for a loop over single records that stops in the
    /// middle of a batch. `argument_invalid` if that batch had fewer records, or if the reader was used after it.
    void give_back(std::size_t count) {
        outcome_.throwing([&](std::error_code &code) { give_back(count, code); });
    }
    void give_back(std::size_t count, std::error_code &code) noexcept {
        call(code, millstream_reader_give_back, count);
    }

    /// Skips one record of any length, and returns whether there was one. After `record_too_long`, it skips the record
    /// that was too long, and the reader continues after it.
    bool skip_record(framer &framer) {
        return outcome_.throwing([&](std::error_code &code) { return skip_record(framer, code); });
    }
    bool skip_record(framer &framer, std::error_code &code) noexcept {
        bool skipped = false;
        call(code, millstream_reader_skip_record, framer.get(), &skipped);
        return skipped;
    }

    /// Skips what the buffer has of one record, without reading, and returns whether that was all of it. Otherwise the
    /// next call of this function or of `skip_record` skips the rest. For programs that wait for `waits_for`
    /// themselves:
    ///
    ///     while (!reader.skip_buffered(framer))
    ///         reader.fill();
    bool skip_buffered(framer &framer) {
        return outcome_.throwing([&](std::error_code &code) { return skip_buffered(framer, code); });
    }
    bool skip_buffered(framer &framer, std::error_code &code) noexcept {
        bool skipped = false;
        call(code, millstream_reader_skip_buffered, framer.get(), &skipped);
        return skipped;
    }

    /// Returns a token of the C ABI that interrupts waits of this reader, in addition to that of its options, for
    /// pipes.
    detail::handle<millstream_cancel_token, millstream_cancel_token_free> interrupter() {
        return detail::made<detail::handle<millstream_cancel_token, millstream_cancel_token_free>>(
            millstream_reader_interrupter, handle_.get());
    }

    // ---- numbers and words ----

    /// Returns the next number or several numbers: `scan<int>()` returns a `std::optional<int>`, `scan<int, double>()`
    /// a `std::optional<std::tuple<int, double>>`. Returns nothing if only white space is left, which means that the
    /// source succeeded. If only some of several numbers exist, this is `value_missing`.
    ///
    /// Types are the integers of 32 and 64 bits, float and double. Numbers are separated by white space and are never
    /// truncated or wrapped: a token that is not a number of the type is reported as `number_invalid`, and a number
    /// that is too large is `number_overflow`. The token is not consumed then, and the error repeats until the token is
    /// read in another way, for example with `next_word`.
    template <scannable First, scannable... Rest>
    auto scan() -> std::optional<detail::values_of<First, Rest...>> {
        First first{};
        if (!scan_one(first)) [[unlikely]]
            return std::nullopt;
        if constexpr (sizeof...(Rest) == 0) {
            return first;
        } else {
            std::tuple<First, Rest...> values{first, Rest{}...};
            std::apply([&](First &, Rest &...rest) { (scan_one(rest, false), ...); }, values);
            return values;
        }
    }
    /// Like `scan` for one number; a failure is reported through `code`.
    template <scannable Value>
    std::optional<Value> scan(std::error_code &code) noexcept {
        detail::scanned_as<Value> value{};
        bool end = false;
        outcome_.call(code, detail::scan_in_window<detail::scanned_as<Value>>, &window_, &value, &end);
        return !code && !end ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }

    /// Returns the next number of a list with exactly one `separator`, or a line end, between two numbers.
    template <scannable Value>
    std::optional<Value> scan_delimited(char separator) {
        return outcome_.throwing([&](std::error_code &code) { return scan_delimited<Value>(separator, code); });
    }
    template <scannable Value>
    std::optional<Value> scan_delimited(char separator, std::error_code &code) noexcept {
        detail::scanned_as<Value> value{};
        bool end = false;
        call(code, detail::scan_by_call<detail::scanned_as<Value>>(), detail::c_separator(separator), &value, &end);
        return !code && !end ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }

    /// Returns the number in one column of the next line (the first column is 0), or nothing at the end. Columns are
    /// separated by exactly one `separator` or, without one, by any amount of white space. The other columns need not
    /// contain numbers. Quotes have no meaning: for CSV with quotes use `millstream::rows`.
    ///
    ///     while (std::optional<double> score = reader.next_column<double>(2, '\t'))
    ///         sum += *score;
    ///
    /// After `number_invalid`, `number_overflow` or `value_missing` (fewer columns), which have the line and the column
    /// in bytes, the line has been read, and the next call continues after it.
    template <scannable Value>
    std::optional<Value> next_column(std::size_t column, std::optional<char> separator = std::nullopt) {
        return outcome_.throwing([&](std::error_code &code) { return next_column<Value>(column, separator, code); });
    }
    template <scannable Value>
    std::optional<Value> next_column(std::size_t column, std::optional<char> separator,
                                     std::error_code &code) noexcept {
        detail::scanned_as<Value> value{};
        bool end = false;
        call(code, detail::next_column_by_call<detail::scanned_as<Value>>(), column, detail::c_separator(separator),
             &value, &end);
        return !code && !end ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }

    /// All numbers, or tuples of them, up to the end: a single-pass range over this reader.
    ///
    ///     for (auto [key, value] : reader.values<std::uint32_t, double>()) …
    template <scannable... Values>
    value_range<Values...> values() noexcept;

    /// Returns the next word: the bytes up to the next white space or the end.
    std::optional<std::string_view> next_word() {
        return outcome_.throwing([&](std::error_code &code) { return next_word(code); });
    }
    std::optional<std::string_view> next_word(std::error_code &code) noexcept {
        return word(code, millstream_input_next_word);
    }

    /// Returns the rest of the line, without blanks and tabs before it and without its line end. Right after a number
    /// or a word, it is the rest of their line, which may be empty, even if the input ends without a line end.
    std::optional<std::string_view> rest_of_line() {
        return outcome_.throwing([&](std::error_code &code) { return rest_of_line(code); });
    }
    std::optional<std::string_view> rest_of_line(std::error_code &code) noexcept {
        return word(code, millstream_input_rest_of_line);
    }

    // ---- position and progress ----

    /// Whether a reader was opened; also true after `close`.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// The name of the source in error messages.
    std::string_view name() const noexcept {
        const char *name = millstream_reader_name(handle_.get());
        return name != nullptr ? name : std::string_view();
    }

    /// The position of the reader; after closing, the final position. The records of a batch count as soon as it is
    /// returned.
    millstream::position position() const noexcept {
        millstream::position at;
        end_window();
        millstream_reader_position(handle_.get(), &at.bytes, &at.records, nullptr);
        return at;
    }

    /// Whether the stream has ended: a call has reported the end, or an error after which there is nothing more. If
    /// not, closing the reader stops its commands.
    bool has_ended() const noexcept {
        end_window();
        return millstream_reader_has_ended(handle_.get());
    }

    /// Returns whether the next batch requires a wait, for programs that read from several readers in turn. Only useful
    /// between two batches.
    millstream::waits waits() const noexcept {
        end_window();
        return static_cast<millstream::waits>(millstream_reader_waits(handle_.get()));
    }

    /// Returns the file descriptor that becomes readable when fill() has data to read or has reached the end, for an
    /// event loop; -1 if there is no such descriptor. The reader owns it, and no other code may read it.
    int waits_for() const noexcept {
        end_window();
        return millstream_reader_waits_for(handle_.get());
    }

    /// How long an event loop that waits for waits_for() may wait now, before it calls stall(): the stall timeout, or
    /// the rest of the total timeout if that is shorter. Without a timeout it is the longest time that there is.
    std::chrono::nanoseconds wait_limit() const noexcept {
        constexpr std::uint64_t most = std::chrono::nanoseconds::max().count();
        return std::chrono::nanoseconds(
            static_cast<std::int64_t>(std::min(millstream_reader_wait_limit_ns(handle_.get()), most)));
    }

    /// Stops reading with `stalled`, or with `timed_out` if the total timeout has passed. The next call reports that
    /// when no complete record is left. This is for an event loop that has waited for waits_for() longer than
    /// wait_limit(). Without a timeout it does nothing.
    void stall() {
        outcome_.throwing([&](std::error_code &code) { stall(code); });
    }
    void stall(std::error_code &code) noexcept { call(code, millstream_reader_stall); }

    /// The progress of the reader; after closing, the final progress.
    millstream::progress progress() const noexcept {
        millstream_progress at{};
        end_window();
        millstream_reader_progress(handle_.get(), &at, nullptr);
        return detail::copied(at);
    }

    /// Returns how all commands of the source ended. This is available after the end, after an error of a command, and
    /// after `close`.
    std::vector<command_end> command_ends() {
        const millstream_command_end *ends = nullptr;
        std::size_t count = 0;
        end_window();
        millstream_reader_command_ends(handle_.get(), &ends, &count, nullptr);
        return detail::copied(ends, count);
    }

    /// Stops reading at the current position; the position remains available. If the stream has not ended, the library
    /// closes its side of the pipe; a command that still runs after one second gets SIGTERM, and after another second
    /// SIGKILL. Its status is not an error then. An error that ended reading is reported again, unless it was `stalled`
    /// or `timed_out`; a second call is `closed`.
    void close() {
        outcome_.throwing([&](std::error_code &code) { close(code); });
    }
    void close(std::error_code &code) noexcept { call(code, millstream_reader_close); }

    /// Stops reading at the current position without waiting. A running command gets SIGTERM immediately; if it still
    /// runs after two seconds, a thread of the library kills it with SIGKILL. Later calls fail with `closed`, and the
    /// destructor does not wait.
    void abort() {
        outcome_.throwing([&](std::error_code &code) { abort(code); });
    }
    void abort(std::error_code &code) noexcept { call(code, millstream_reader_abort); }

    /// The details of the last failure; null if there was none. Valid until the next failure.
    const error *last_error() const noexcept { return outcome_.last(); }

    /// The exception of a callback, for code that uses `std::error_code`: the failing call has reported `io`. Null if
    /// the last failure had another cause.
    std::exception_ptr callback_exception() const noexcept { return outcome_.thrown(); }

    /// The C ABI's reader, which this object still owns. All scanned input is consumed there.
    millstream_reader *get() noexcept {
        end_window();
        return handle_.get();
    }

  private:
    friend class bson::documents;   // which takes all of it
    friend class columns;           // the same
    friend struct bson::detail::io; // which rethrows the exception of its callback

    using handle_type = detail::handle<millstream_reader, millstream_reader_free>;

    template <class Function, class... Arguments>
    std::optional<std::string_view> record(std::error_code &code, Function function, Arguments... arguments) noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        call(code, function, arguments..., &bytes, &len);
        return bytes != nullptr ? std::optional(std::string_view(bytes, len)) : std::nullopt;
    }

    template <class Function>
    std::optional<std::string_view> word(std::error_code &code, Function function) noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        outcome_.call(code, function, &window_, &bytes, &len);
        return bytes != nullptr ? std::optional(std::string_view(bytes, len)) : std::nullopt;
    }

    /// Sets `to` to the next number; returns false at the end, which is an error unless `may_end`.
    template <class Value>
    bool scan_one(Value &to, bool may_end = true) {
        detail::scanned_as<Value> value{};
        bool end = false;
        millstream_error *error = nullptr;
        const millstream_code result =
            detail::scan_in_window<detail::scanned_as<Value>>(&window_, &value, may_end ? &end : nullptr, &error);
        if (result != MILLSTREAM_OK) [[unlikely]]
            outcome_.fail(result, error);
        to = static_cast<Value>(value);
        return !end;
    }

    /// Consumes the scanned input and returns the reader to the functions of the C ABI. The window's own data is always
    /// valid, so this does not fail.
    void end_window() const noexcept { millstream_input_end(&window_, nullptr); }

    /// Calls a non-const function of the C ABI.
    template <class Function, class... Arguments>
    bool call(std::error_code &code, Function function, Arguments... arguments) noexcept {
        end_window();
        return outcome_.call(code, function, handle_.get(), arguments...);
    }

    // Objects that the library calls back must outlive the handle: members are destroyed from the last to the first.
    detail::outcome outcome_;
    std::unique_ptr<detail::observer> observer_;
    handle_type handle_;
    // Unread bytes, from which numbers and words are taken without a library call. Queries of the reader's position
    // close the window, which does not change their results.
    mutable millstream_input window_{};
};

/// The numbers of a reader, one (or one tuple) after another; see `reader::values`. The reader must outlive it.
template <scannable... Values>
class value_range {
  public:
    explicit value_range(reader &reader) noexcept : reader_(&reader) {}

    /// Refers to a value. All iterators of a reader share one position.
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = detail::values_of<Values...>;
        using difference_type = std::ptrdiff_t;

        explicit iterator(reader &reader) : reader_(&reader), value_(reader.scan<Values...>()) {}

        const value_type &operator*() const noexcept { return *value_; }
        iterator &operator++() {
            value_ = reader_->scan<Values...>();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.value_; }

      private:
        reader *reader_;
        std::optional<value_type> value_;
    };

    /// Continues with the value after the last one that was returned.
    iterator begin() const { return iterator(*reader_); }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

  private:
    reader *reader_;
};

template <scannable... Values>
value_range<Values...> reader::values() noexcept {
    return value_range<Values...>(*this);
}

// ---- ranges ----

/// A single-pass range of the contents of a reader's records.
///
///     auto lines = millstream::lines(source);
///     for (std::string_view line : lines)
///         if (line.empty())
///             break;
///     for (std::string_view line : lines) … // continues after the empty line
///
/// The end of the range means that the source succeeded; otherwise advancing past the last record throws once. The
/// content of a record is valid until the next record is requested. Records are taken from the library in batches, so
/// the work for each record is inlined here. The range owns its reader; it can be moved, but not during iteration.
class records {
  public:
    class iterator;

    records(millstream::reader reader, millstream::framer framer) noexcept
        : reader_(std::move(reader)), framer_(std::move(framer)) {}

    // A range that was moved from has no reader and no batch.
    records(records &&other) noexcept
        : reader_(std::move(other.reader_)), framer_(std::move(other.framer_)),
          batch_(std::exchange(other.batch_, batch())), next_(std::exchange(other.next_, 0)) {}
    records &operator=(records &&other) noexcept {
        reader_ = std::move(other.reader_);
        framer_ = std::move(other.framer_);
        batch_ = std::exchange(other.batch_, batch());
        next_ = std::exchange(other.next_, 0);
        return *this;
    }
    ~records() = default;

    /// Continues with the record after the last one that was returned.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// Returns the next record, or nothing at the end.
    std::optional<std::string_view> next() {
        if (next_ == batch_.size()) [[unlikely]] {
            forget();
            batch_ = reader_.next_batch(framer_).value_or(batch());
        }
        return take();
    }
    std::optional<std::string_view> next(std::error_code &code) noexcept {
        code.clear();
        if (next_ == batch_.size()) [[unlikely]] {
            forget();
            batch_ = reader_.next_batch(framer_, all_records, code).value_or(batch());
        }
        return take();
    }

    /// Skips the next record, of any length, and returns whether there was one. After `record_too_long`, it skips the
    /// record that was too long, and the iteration can continue.
    bool skip_record() { return skip_waiting() || reader_.skip_record(framer_); }
    bool skip_record(std::error_code &code) noexcept {
        code.clear();
        return skip_waiting() || reader_.skip_record(framer_, code);
    }

    /// The position in the stream, after the last record delivered.
    millstream::position position() const noexcept {
        if (batch_.empty())
            return reader_.position();
        return {batch_.offset() + batch_.offsets()[next_] - batch_.offsets()[0], batch_.first_record() + next_};
    }

    /// The reader, which continues after the last record that was returned. Call this again after continuing with the
    /// range.
    millstream::reader &reader() noexcept {
        if (next_ < batch_.size()) {
            std::error_code code; // no error: no call has used the reader since its batch
            reader_.give_back(batch_.size() - next_, code);
        }
        forget();
        return reader_;
    }

  private:
    /// Drops the batch, whose memory the reader is about to reuse.
    void forget() noexcept {
        batch_ = batch();
        next_ = 0;
    }

    /// Skips a record of the batch. If none is left there, the batch is dropped.
    bool skip_waiting() noexcept {
        if (next_ < batch_.size()) {
            ++next_;
            return true;
        }
        forget();
        return false;
    }

    std::optional<std::string_view> take() noexcept {
        return next_ < batch_.size() ? std::optional(batch_[next_++]) : std::nullopt;
    }

    millstream::reader reader_;
    millstream::framer framer_;
    batch batch_;
    std::size_t next_ = 0;
};

/// Refers to a record of a range, which must not move. All iterators of a range share one position.
class records::iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    explicit iterator(records &range) : range_(&range), record_(range.next()) {}

    std::string_view operator*() const noexcept { return *record_; }
    iterator &operator++() {
        record_ = range_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.record_; }

  private:
    records *range_;
    std::optional<std::string_view> record_;
};

inline records::iterator records::begin() { return iterator(*this); }

/// A single-pass range of the batches of a reader. Each is valid until the next one is requested. The end of the range
/// means that the source succeeded; otherwise advancing past the last batch throws once.
class batch_range {
  public:
    class iterator;

    batch_range(millstream::reader reader, millstream::framer framer, std::size_t max) noexcept
        : reader_(std::move(reader)), framer_(std::move(framer)), max_(max) {}

    /// Continues with the batch after the last one that was returned.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// Returns the next batch, or nothing at the end.
    std::optional<batch> next() { return reader_.next_batch(framer_, max_); }
    std::optional<batch> next(std::error_code &code) noexcept { return reader_.next_batch(framer_, max_, code); }

    /// The reader, to query its progress.
    millstream::reader &reader() noexcept { return reader_; }

  private:
    millstream::reader reader_;
    millstream::framer framer_;
    std::size_t max_;
};

/// Refers to a batch of a range, which must not move.
class batch_range::iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = batch;
    using difference_type = std::ptrdiff_t;

    explicit iterator(batch_range &range) : range_(&range), batch_(range.next()) {}

    const batch &operator*() const noexcept { return *batch_; }
    iterator &operator++() {
        batch_ = range_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return !it.batch_; }

  private:
    batch_range *range_;
    std::optional<batch> batch_;
};

inline batch_range::iterator batch_range::begin() { return iterator(*this); }

/// The lines of a source, without their line feed or carriage return and line feed.
template <source Source>
records lines(Source &&source, const reader_options &options = {}) {
    return records(reader(std::forward<Source>(source), options), framer::lines());
}
/// The lines of a reader from its current position.
inline records lines(reader reader) { return records(std::move(reader), framer::lines()); }

/// The records of a source, as found and trimmed by a framer.
template <source Source>
records frames(Source &&source, framer framer, const reader_options &options = {}) {
    return records(reader(std::forward<Source>(source), options), std::move(framer));
}
/// The records of a reader from its current position.
inline records frames(reader reader, framer framer) { return records(std::move(reader), std::move(framer)); }

/// The records of a source in batches of at most `max`.
template <source Source>
batch_range batches(Source &&source, framer framer, std::size_t max = all_records, const reader_options &options = {}) {
    return batch_range(reader(std::forward<Source>(source), options), std::move(framer), max);
}
/// The records of a reader from its current position, in batches of at most `max`.
inline batch_range batches(reader reader, framer framer, std::size_t max = all_records) {
    return batch_range(std::move(reader), std::move(framer), max);
}

static_assert(std::input_iterator<records::iterator> && std::input_iterator<batch_range::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, records::iterator>);

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_READER_HPP
