// Readers: bytes, records and numbers out of a source.
//
//     for (std::string_view line : ms::lines(ms::command{"samtools", "view", "-h", path}))
//         use(line);
//     // Here the command has succeeded. Had it failed, the loop would have thrown after its last line.
//
// The end of the stream means that the source succeeded: a command that exits with a status other than 0 is an error,
// after every byte it wrote has been delivered. An error is reported once; after it comes a plain end, unless
// `ms::is_resumable`.
//
// Members that can fail have two forms. One throws `ms::error`, or what a callback of yours threw. The other takes a
// `std::error_code &` as its last argument, throws nothing, and leaves the details in `last_error()`. What goes from
// one value to the next by itself only throws: loops over ranges, `values()`, and `scan` of several values at once.
//
// The bytes of lines, records and batches stay the reader's: they are valid until the next call on it that is not
// const. Different readers may be used by different threads at the same time; one reader, by one thread at a time.
#ifndef MILLSTREAM_READER_HPP
#define MILLSTREAM_READER_HPP

#include <iterator>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>
#include <millstream/command.hpp>
#include <millstream/frame.hpp>
#include <millstream/scan.hpp>
#include <millstream/source.hpp>

namespace ms {

/// Whether a thread reads ahead while the consumer works.
enum class read_ahead : std::uint32_t {
    /// Measured while the stream runs: only while both sides wait in turn, or a decoder and the consumer work.
    automatic = MILLSTREAM_READ_AHEAD_AUTO,
    /// From the start, but for a source that must stay on the caller's thread: a callback, a followed file.
    on = MILLSTREAM_READ_AHEAD_ON,
    /// Never.
    off = MILLSTREAM_READ_AHEAD_OFF,
};

/// Whether a read of a fast pipe may be put off by up to 0.3 ms, so that it gets more.
enum class latency : std::uint32_t {
    normal = MILLSTREAM_LATENCY_NORMAL, ///< Yes, at 64 MB/s and more.
    low = MILLSTREAM_LATENCY_LOW,       ///< No.
};

/// Whether compressed sources are decoded.
enum class decode : std::uint32_t {
    automatic = MILLSTREAM_DECODE_AUTO, ///< gzip, bgzf and zstd are recognised by their first bytes.
    off = MILLSTREAM_DECODE_OFF,        ///< Bytes are delivered as they are: right for a binary protocol.
};

/// What happens at the end of a regular file.
enum class follow : std::uint32_t {
    no = MILLSTREAM_FOLLOW_NO,           ///< It is the end.
    growing = MILLSTREAM_FOLLOW_GROWING, ///< The reader waits for the file to grow, until it is cancelled or closed.
};

/// How a source is compressed.
enum class format : std::uint32_t {
    none = MILLSTREAM_FORMAT_NONE, ///< Not at all, or not known yet, or by a format that this header does not know.
    gzip = MILLSTREAM_FORMAT_GZIP,
    bgzf = MILLSTREAM_FORMAT_BGZF, ///< gzip in blocks, as samtools and tabix write it.
    zstd = MILLSTREAM_FORMAT_ZSTD,
};

/// Whether the next records have to be waited for. What need not be waited for comes first.
enum class waits : std::uint32_t {
    no = MILLSTREAM_WAITS_NO,           ///< There is something, or the end, or an error to be told.
    unknown = MILLSTREAM_WAITS_UNKNOWN, ///< Nobody can say, as with a callback.
    yes = MILLSTREAM_WAITS_YES,         ///< Nothing is there.
};

/// Where a reader is: bytes consumed, after decoding, and records taken or skipped.
struct position {
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
};

/// How a reader gets on.
struct progress {
    /// Bytes consumed, after decoding.
    std::uint64_t bytes = 0;
    /// Records taken or skipped.
    std::uint64_t records = 0;
    /// Bytes read from the source, before decoding.
    std::uint64_t source_bytes = 0;
    /// How many of these there are in all, if that is known.
    std::optional<std::uint64_t> source_size;
    ms::format format = ms::format::none;
    /// Since the reader was opened.
    std::chrono::nanoseconds elapsed{};
    /// For how long the consumer has waited for bytes.
    std::chrono::nanoseconds waited{};
    /// The longest record so far, in bytes, with its delimiter or prefix.
    std::uint64_t longest_record = 0;
};

/// How to read: `ms::reader(source, {.record_limit = 1 << 20, .decode = ms::decode::off})`. What is not given is as
/// usual.
struct reader_options {
    /// The buffer's size at first, 256 KiB. It grows for a longer record.
    std::optional<std::size_t> capacity{};
    std::optional<ms::read_ahead> read_ahead{};
    /// How many bytes are read ahead: at first, and at most, when both sides turn out to stall in turn. 4 and 16 MiB.
    std::optional<std::pair<std::size_t, std::size_t>> read_ahead_capacity{};
    std::optional<ms::latency> latency{};
    /// The longest record, in bytes without its delimiter or prefix: 64 MiB. A longer one is `record_too_long`.
    std::optional<std::size_t> record_limit{};
    /// Usually `off` for sockets and callbacks, `automatic` for everything else.
    std::optional<ms::decode> decode{};
    /// How much compressed data may grow: to this many bytes, and to this many for a compressed one (from the first
    /// decoded MiB on). 0 is no limit. Over it: `decode_limit`.
    std::uint64_t decode_limit_bytes = 0;
    std::uint64_t decode_limit_ratio = 0;
    /// How long a source that waits for somebody may deliver nothing, or a command take to exit. Longer is `stalled`.
    std::optional<std::chrono::nanoseconds> stall_timeout{};
    std::optional<ms::follow> follow{};
    /// Ends waits. It need not outlive the reader.
    const cancel_token *cancel = nullptr;
    /// Called before a read, not more often than every `observe_every`, and at the end: on the thread that uses the
    /// reader, and not while the source makes it wait. It must not throw: that ends the program by std::terminate.
    std::function<void(const progress &)> observer{};
    std::chrono::nanoseconds observe_every{};
    /// What errors call the source, instead of a name made from what it is.
    std::string name{};
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

/// The options of the C ABI; `kept` is where the observer is found as long as the reader exists.
inline reader_options_handle made(const reader_options &options, std::unique_ptr<observer> &kept) {
    auto handle = made<reader_options_handle>(millstream_reader_options_new);
    auto *to = handle.get();
    if (options.capacity)
        call(millstream_reader_options_set_capacity, to, *options.capacity);
    if (options.read_ahead)
        call(millstream_reader_options_set_read_ahead, to, static_cast<millstream_read_ahead>(*options.read_ahead));
    if (options.read_ahead_capacity)
        call(millstream_reader_options_set_read_ahead_capacity, to, options.read_ahead_capacity->first,
             options.read_ahead_capacity->second);
    if (options.latency)
        call(millstream_reader_options_set_latency, to, static_cast<millstream_latency>(*options.latency));
    if (options.record_limit)
        call(millstream_reader_options_set_record_limit, to, *options.record_limit);
    if (options.decode)
        call(millstream_reader_options_set_decode, to, static_cast<millstream_decode>(*options.decode));
    if (options.decode_limit_bytes != 0 || options.decode_limit_ratio != 0)
        call(millstream_reader_options_set_decode_limit, to, options.decode_limit_bytes, options.decode_limit_ratio);
    if (options.stall_timeout)
        call(millstream_reader_options_set_stall_timeout_ns, to, c_time(*options.stall_timeout));
    if (options.follow)
        call(millstream_reader_options_set_follow, to, static_cast<millstream_follow>(*options.follow));
    if (options.cancel != nullptr)
        call(millstream_reader_options_set_cancel, to, options.cancel->get());
    if (options.observer) {
        kept = std::make_unique<observer>(options.observer);
        call(millstream_reader_options_set_observer, to, c_time(options.observe_every), &observe,
             static_cast<void *>(kept.get()));
    }
    if (!options.name.empty())
        call(millstream_reader_options_set_name, to, c_text(options.name).c_str());
    return handle;
}

} // namespace detail

template <scannable... Values>
class value_range;

namespace bson {
class documents;
namespace detail {
struct io;
}
} // namespace bson

/// Reads a source. Moves, and cannot be copied. One that was made from nothing or moved from is not open: its calls
/// fail with `argument_invalid`.
///
/// The destructor closes it; how that ends nobody hears. It may take two seconds where a command has to be stopped.
class reader {
  public:
    /// Not open.
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

    /// Opens a source; if that fails, `code` says why and the reader is not open.
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
        handle_ = std::move(other.handle_); // before the rest: what is closed now may still call back
        observer_ = std::move(other.observer_);
        outcome_ = std::move(other.outcome_);
        window_ = std::exchange(other.window_, millstream_input{});
        return *this;
    }
    ~reader() = default;

    // ---- bytes ----

    /// Reads at least one more byte behind the unread ones and returns how many; 0 is the end, and says that the source
    /// succeeded. `record_too_long` when more bytes than the record limit are unread, which can be consumed.
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

    /// The unread bytes that are there.
    std::span<const char> buffer() const noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        end_window();
        millstream_reader_buffer(handle_.get(), &bytes, &len, nullptr);
        return {bytes, len};
    }

    /// Takes `count` bytes from the front of the unread ones. Those behind them stay where they are. More than there
    /// are is `argument_invalid`.
    void consume(std::size_t count) {
        outcome_.throwing([&](std::error_code &code) { consume(count, code); });
    }
    void consume(std::size_t count, std::error_code &code) noexcept { call(code, millstream_reader_consume, count); }

    /// Copies at least one byte, and at most `room.size()` of them, to `room`, which is not empty, and returns how
    /// many; 0 is the end, and says that the source succeeded.
    std::size_t read(std::span<char> room) {
        return outcome_.throwing([&](std::error_code &code) { return read(room, code); });
    }
    std::size_t read(std::span<char> room, std::error_code &code) noexcept {
        std::size_t len = 0;
        call(code, millstream_reader_read, static_cast<void *>(room.data()), room.size(), &len);
        return len;
    }

    // ---- records: nothing at the end, which says that the source succeeded ----

    /// The next line, without its line feed or carriage return and line feed. For many lines, `ms::lines` is faster.
    std::optional<std::string_view> next_line() {
        return outcome_.throwing([&](std::error_code &code) { return next_line(code); });
    }
    std::optional<std::string_view> next_line(std::error_code &code) noexcept {
        return record(code, millstream_reader_next_line);
    }

    /// The bytes before the next `delimiter`, or before the end.
    std::optional<std::string_view> read_until(char delimiter) {
        return outcome_.throwing([&](std::error_code &code) { return read_until(delimiter, code); });
    }
    std::optional<std::string_view> read_until(char delimiter, std::error_code &code) noexcept {
        return record(code, millstream_reader_read_until, delimiter);
    }

    /// The next record, as `framer` finds and trims it.
    std::optional<std::string_view> next_frame(framer &framer) {
        return outcome_.throwing([&](std::error_code &code) { return next_frame(framer, code); });
    }
    std::optional<std::string_view> next_frame(framer &framer, std::error_code &code) noexcept {
        return record(code, millstream_reader_next_frame, framer.get());
    }

    /// The next records, as many as are there but at most `max`, which is at least 1: waits for one, never for a
    /// second. The records before a bad one are delivered first.
    std::optional<batch> next_batch(framer &framer, std::size_t max = all_records) {
        return outcome_.throwing([&](std::error_code &code) { return next_batch(framer, max, code); });
    }
    std::optional<batch> next_batch(framer &framer, std::size_t max, std::error_code &code) noexcept {
        millstream_batch found{};
        call(code, millstream_reader_next_batch, framer.get(), max, &found);
        return found.count > 0 ? std::optional(batch(found)) : std::nullopt;
    }

    /// Skips one record, however long it is, and returns whether there was one. After `record_too_long` it is the one
    /// that was too long, and the reader goes on behind it.
    bool skip_record(framer &framer) {
        return outcome_.throwing([&](std::error_code &code) { return skip_record(framer, code); });
    }
    bool skip_record(framer &framer, std::error_code &code) noexcept {
        bool skipped = false;
        call(code, millstream_reader_skip_record, framer.get(), &skipped);
        return skipped;
    }

    // ---- numbers and words ----

    /// The next number, or the next few of them: `scan<int>()` gives a `std::optional<int>`, `scan<int, double>()` a
    /// `std::optional<std::tuple<int, double>>`. Nothing at the end, with nothing but white space left, which says that
    /// the source succeeded; `value_missing` if only the first ones of several are there.
    ///
    /// Types are the integers of 32 and 64 bits, float and double. Numbers are separated by white space; none is cut or
    /// wraps: a token that is no number of the type is `number_invalid`, one that is too large `number_overflow`.
    /// Nothing is consumed then, and the error comes again until the token is taken by other means, such as
    /// `next_word`.
    template <scannable First, scannable... Rest>
    auto scan() -> std::optional<detail::values_of<First, Rest...>> {
        First first{};
        if (!scan_one(first)) [[unlikely]]
            return std::nullopt;
        if constexpr (sizeof...(Rest) == 0) {
            return first;
        } else {
            std::tuple<First, Rest...> values{first, Rest{}...};
            std::apply([&](First &, Rest &...rest) { ((scan_one(rest) || miss()), ...); }, values);
            return values;
        }
    }
    /// The same for one number; a failure is told by `code`.
    template <scannable Value>
    std::optional<Value> scan(std::error_code &code) noexcept {
        detail::scanned_as<Value> value{};
        bool end = false;
        outcome_.call(code, detail::scan_in_window<detail::scanned_as<Value>>, &window_, &value, &end);
        return !code && !end ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }

    /// The next number of a list with exactly one `separator`, or a line end, between two of them.
    template <scannable Value>
    std::optional<Value> scan_delimited(char separator) {
        return outcome_.throwing([&](std::error_code &code) { return scan_delimited<Value>(separator, code); });
    }
    template <scannable Value>
    std::optional<Value> scan_delimited(char separator, std::error_code &code) noexcept {
        detail::scanned_as<Value> value{};
        bool end = false;
        call(code, detail::scan_by_call<detail::scanned_as<Value>>(),
             std::int32_t{static_cast<unsigned char>(separator)}, &value, &end);
        return !code && !end ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }

    /// All numbers, or tuples of them, up to the end: a single-pass range over this reader.
    ///
    ///     for (auto [key, value] : reader.values<std::uint32_t, double>()) …
    template <scannable... Values>
    value_range<Values...> values() noexcept;

    /// The next word: the bytes up to the next white space or the end.
    std::optional<std::string_view> next_word() {
        return outcome_.throwing([&](std::error_code &code) { return next_word(code); });
    }
    std::optional<std::string_view> next_word(std::error_code &code) noexcept {
        return word(code, millstream_input_next_word);
    }

    /// The rest of the line, without blanks and tabs in front of it and without its line end. Right after a number or a
    /// word it is the rest of their line, which may be empty, also where the input ends without a line end.
    std::optional<std::string_view> rest_of_line() {
        return outcome_.throwing([&](std::error_code &code) { return rest_of_line(code); });
    }
    std::optional<std::string_view> rest_of_line(std::error_code &code) noexcept {
        return word(code, millstream_input_rest_of_line);
    }

    // ---- where we are ----

    /// Whether there is a reader at all; so also after `close`.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// What errors call the source.
    std::string_view name() const noexcept {
        const char *name = millstream_reader_name(handle_.get());
        return name != nullptr ? name : std::string_view();
    }

    /// Where the reader is; once it is closed, where it was. The records of a batch count as soon as it is there.
    ms::position position() const noexcept {
        ms::position at;
        end_window();
        millstream_reader_position(handle_.get(), &at.bytes, &at.records, nullptr);
        return at;
    }

    /// Whether the next batch has to be waited for: for those who read from several readers in turn. Only of use
    /// between two batches.
    ms::waits waits() const noexcept {
        end_window();
        return static_cast<ms::waits>(millstream_reader_waits(handle_.get()));
    }

    /// The file descriptor that becomes readable when fill() has something to read or has come to the end, for an event
    /// loop; -1 where there is none to wait for. It is the reader's, and nobody else may read it.
    int waits_for() const noexcept {
        end_window();
        return millstream_reader_waits_for(handle_.get());
    }

    /// How the reader gets on; once it is closed, how it did.
    ms::progress progress() const noexcept {
        millstream_progress at{};
        end_window();
        millstream_reader_progress(handle_.get(), &at, nullptr);
        return detail::copied(at);
    }

    /// How the source's commands ended, all of them: after the end, after an error that was theirs, and after `close`.
    std::vector<command_end> command_ends() {
        const millstream_command_end *ends = nullptr;
        std::size_t count = 0;
        end_window();
        millstream_reader_command_ends(handle_.get(), &ends, &count, nullptr);
        return detail::copied(ends, count);
    }

    /// Ends the reading, wherever it is; the reader can still be asked where it was. At the end of the stream that is
    /// all. Before it, the library's side of the pipe is closed; a command that is still there after a second gets
    /// SIGTERM, and after another one SIGKILL. How it ends then is no error. `command_failed` if it had failed by
    /// itself before this; `closed` if this has been called before.
    void close() {
        outcome_.throwing([&](std::error_code &code) { close(code); });
    }
    void close(std::error_code &code) noexcept { call(code, millstream_reader_close); }

    /// The details of the last failure; null if there was none. Valid until the next failure.
    const error *last_error() const noexcept { return outcome_.last(); }

    /// What a callback threw, for those who use `std::error_code`: the failing call has said `io`. Null if the last
    /// failure was another one.
    std::exception_ptr callback_exception() const noexcept { return outcome_.thrown(); }

    /// The reader of the C ABI, which stays this object's. All that was scanned is consumed there.
    millstream_reader *get() noexcept {
        end_window();
        return handle_.get();
    }

  private:
    friend class bson::documents;   // which takes all of it
    friend struct bson::detail::io; // which throws what its callback has thrown

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

    /// Gives the next number to `to`; false at the end.
    template <class Value>
    bool scan_one(Value &to) {
        detail::scanned_as<Value> value{};
        bool end = false;
        millstream_error *error = nullptr;
        const millstream_code result =
            detail::scan_in_window<detail::scanned_as<Value>>(&window_, &value, &end, &error);
        if (result != MILLSTREAM_OK) [[unlikely]]
            outcome_.fail(result, error);
        to = static_cast<Value>(value);
        return !end;
    }

    /// Reports that some of several numbers are not there.
    [[noreturn]] bool miss() {
        error_details details;
        details.kind = errc::value_missing;
        details.name = name();
        details.offset = position().bytes;
        details.record = position().records;
        detail::fail(std::move(details));
    }

    /// Consumes what was scanned, and gives the reader back to the functions of the C ABI. What the window says of
    /// itself cannot be wrong, so this does not fail.
    void end_window() const noexcept { millstream_input_end(&window_, nullptr); }

    /// Calls a function of the C ABI that is not const.
    template <class Function, class... Arguments>
    bool call(std::error_code &code, Function function, Arguments... arguments) noexcept {
        end_window();
        return outcome_.call(code, function, handle_.get(), arguments...);
    }

    // What the library calls back must outlive the handle: members are destroyed from the last to the first.
    detail::outcome outcome_;
    std::unique_ptr<detail::observer> observer_;
    handle_type handle_;
    // Unread bytes, out of which numbers and words are taken without a call of the library. It is closed where the
    // reader is asked where it is, which does not change what it says.
    mutable millstream_input window_{};
};

/// The numbers of a reader, one (or one tuple) after another; see `reader::values`. The reader must outlive it.
template <scannable... Values>
class value_range {
  public:
    explicit value_range(reader &reader) noexcept : reader_(&reader) {}

    /// Stands on a value. There is one place in a reader, whatever the iterators.
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

    /// Goes on with the value behind the last one that was given.
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

/// The records of a reader, one after another: a single-pass range of their contents.
///
///     auto lines = ms::lines(source);
///     for (std::string_view line : lines)
///         if (line.empty())
///             break;
///     for (std::string_view line : lines) … // goes on behind the empty line
///
/// The end of the range says that the source succeeded; otherwise going on throws, once, after the last record. Each
/// content is valid until the next one is asked for. Records are taken from the library in batches, so what is done for
/// each is inlined here. The range owns its reader; it moves, but not while it is being gone through.
class records {
  public:
    class iterator;

    records(ms::reader reader, ms::framer framer) noexcept : reader_(std::move(reader)), framer_(std::move(framer)) {}

    // A range that was moved from has no reader, and no batch of it either.
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

    /// Goes on with the record behind the last one that was given.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// The next record, or nothing at the end.
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

    /// Skips the next record, however long it is, and returns whether there was one: after `record_too_long` the one
    /// that was too long. Then the range can be gone on with.
    bool skip_record() { return skip_waiting() || reader_.skip_record(framer_); }
    bool skip_record(std::error_code &code) noexcept {
        code.clear();
        return skip_waiting() || reader_.skip_record(framer_, code);
    }

    /// Where the stream is: behind the last record that was given.
    ms::position position() const noexcept {
        if (batch_.empty())
            return reader_.position();
        return {batch_.offset() + batch_.offsets()[next_] - batch_.offsets()[0], batch_.first_record() + next_};
    }

    /// The reader, to ask it how it gets on. What it is made to read is missing here, and its unread bytes lie behind
    /// the records that wait here.
    ms::reader &reader() noexcept { return reader_; }

  private:
    /// The batch is the reader's, and about to be gone.
    void forget() noexcept {
        batch_ = batch();
        next_ = 0;
    }

    /// Skips a record of the batch. If none is left there, the batch is forgotten.
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

    ms::reader reader_;
    ms::framer framer_;
    batch batch_;
    std::size_t next_ = 0;
};

/// Stands on a record of a range, which must stay where it is. There is one place in a range, whatever the iterators.
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

/// The batches of a reader, one after another: a single-pass range of `ms::batch`, each valid until the next one is
/// asked for. The end of the range says that the source succeeded; otherwise going on throws, once, after the last
/// batch.
class batch_range {
  public:
    class iterator;

    batch_range(ms::reader reader, ms::framer framer, std::size_t max) noexcept
        : reader_(std::move(reader)), framer_(std::move(framer)), max_(max) {}

    /// Goes on with the batch behind the last one that was given.
    iterator begin();
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    /// The next batch, or nothing at the end.
    std::optional<batch> next() { return reader_.next_batch(framer_, max_); }
    std::optional<batch> next(std::error_code &code) noexcept { return reader_.next_batch(framer_, max_, code); }

    /// The reader, to ask it how it gets on.
    ms::reader &reader() noexcept { return reader_; }

  private:
    ms::reader reader_;
    ms::framer framer_;
    std::size_t max_;
};

/// Stands on a batch of a range, which must stay where it is.
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
/// The lines of a reader from where it is.
inline records lines(reader reader) { return records(std::move(reader), framer::lines()); }

/// The records of a source, as a framer finds and trims them.
template <source Source>
records frames(Source &&source, framer framer, const reader_options &options = {}) {
    return records(reader(std::forward<Source>(source), options), std::move(framer));
}
/// The records of a reader from where it is.
inline records frames(reader reader, framer framer) { return records(std::move(reader), std::move(framer)); }

/// The records of a source in batches of at most `max`.
template <source Source>
batch_range batches(Source &&source, framer framer, std::size_t max = all_records, const reader_options &options = {}) {
    return batch_range(reader(std::forward<Source>(source), options), std::move(framer), max);
}
/// The records of a reader from where it is, in batches of at most `max`.
inline batch_range batches(reader reader, framer framer, std::size_t max = all_records) {
    return batch_range(std::move(reader), std::move(framer), max);
}

static_assert(std::input_iterator<records::iterator> && std::input_iterator<batch_range::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, records::iterator>);

} // namespace ms

#endif // MILLSTREAM_READER_HPP
