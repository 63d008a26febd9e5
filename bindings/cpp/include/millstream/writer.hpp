// Writers: bytes, text and numbers into a sink.
//
//     ms::writer writer(ms::path{"squares.txt.gz"});
//     for (int i = 0; i < 1000; ++i)
//         writer.print(i, ' ', i * i, '\n');
//     writer.close(); // now they are there; had anything failed, this would have thrown
//
// A write that fails has accepted none of its bytes; one that succeeds has accepted all. What was accepted is with the
// sink after `close` has succeeded, and not before; a file appears whole then, or not at all.
//
// Members that can fail have two forms. One throws `ms::error`, or what a callback of yours threw. The other takes a
// `std::error_code &` as its last argument (`print`: as its first), throws nothing, and leaves the details in
// `last_error()`. `println`, `<<`, `get`, and `print` of types of yours only throw.
//
// A pipe or connection that nobody reads any more is `broken_pipe` in a program that ignores SIGPIPE; others are ended
// by that signal. The library never changes what signals do.
//
// Different writers may be used by different threads at the same time; one writer, by one thread at a time. For several
// threads there is `ms::shared_writer`, in shared.hpp.
#ifndef MILLSTREAM_WRITER_HPP
#define MILLSTREAM_WRITER_HPP

#include <algorithm>
#include <cstring>
#include <span>

#include <millstream/boundary.hpp>
#include <millstream/cancel.hpp>
#include <millstream/put.hpp>
#include <millstream/sink.hpp>

namespace ms {

/// When a writer hands its bytes to the sink, apart from a flush.
enum class flush_policy : std::uint32_t {
    /// At each line end if the sink is a terminal, otherwise when the buffer is full.
    automatic = MILLSTREAM_FLUSH_POLICY_AUTO,
    /// When the buffer is full: the fastest.
    when_full = MILLSTREAM_FLUSH_POLICY_WHEN_FULL,
    /// At each line end: after a write that holds a newline, all up to the last newline is on its way.
    line = MILLSTREAM_FLUSH_POLICY_LINE,
};

/// Whether the bytes are compressed on their way to the sink.
enum class encode : std::uint32_t {
    /// By the ending of a path's name: .gz gzip, .bgz and .bgzf bgzf, .zst zstd. Of other sinks, not.
    automatic = MILLSTREAM_ENCODE_AUTO,
    off = MILLSTREAM_ENCODE_OFF,
    gzip = MILLSTREAM_ENCODE_GZIP,
    bgzf = MILLSTREAM_ENCODE_BGZF, ///< gzip in blocks, as samtools and tabix like it, compressed by several threads.
    zstd = MILLSTREAM_ENCODE_ZSTD,
};

/// What to do with a regular file that exists.
enum class existing : std::uint32_t {
    /// The new content takes its place.
    replace = MILLSTREAM_EXISTING_REPLACE,
    /// The new bytes go behind its own. They are there as soon as they are written, also if the rest fails.
    append = MILLSTREAM_EXISTING_APPEND,
};

/// What to do with output that is not complete.
enum class partial : std::uint32_t {
    /// A file appears whole, when the writer is closed, or not at all.
    remove = MILLSTREAM_PARTIAL_REMOVE,
    /// A file is written in place: it is truncated first, and what was written stays, whatever happens then.
    keep = MILLSTREAM_PARTIAL_KEEP,
};

/// Whether a pipe is lent the pages of the writer's buffer, instead of a copy of them (vmsplice(2) of Linux).
enum class lend_pages : std::uint32_t {
    no = MILLSTREAM_LEND_PAGES_NO, ///< The pipe gets a copy.
    /// Whoever reads the pipe copies what it reads, by read(2), as nearly all programs do.
    ///
    /// That is a promise of yours about the other side. The writer writes its pages again as soon as they have left the
    /// pipe. A reader that takes them out without a copy, by splice(2) or tee(2) (such as pv, or a proxy), and passes
    /// them on, passes on memory that changes under its hands: its output would be wrong, and nobody would know.
    consumer_copies = MILLSTREAM_LEND_PAGES_CONSUMER_COPIES,
};

/// What closing a regular file waits for, before the file takes its name.
enum class durability : std::uint32_t {
    /// The system has the bytes, and writes them to the disk when it likes.
    cached = MILLSTREAM_DURABILITY_CACHED,
    /// The bytes are on the disk (fdatasync(2)): who finds the new file finds all of it.
    data = MILLSTREAM_DURABILITY_DATA,
    /// And so are the file's attributes and its name (fsync(2) of the file, and then of its directory).
    all = MILLSTREAM_DURABILITY_ALL,
};

/// How to write: `ms::writer(sink, {.encode = ms::encode::zstd, .level = 19})`. What is not given is as usual.
struct writer_options {
    /// The buffer's size, at least 1: 64 KiB, and 256 KiB for pipes.
    std::optional<std::size_t> capacity{};
    std::optional<ms::flush_policy> flush_policy{};
    /// Hands bytes to the sink at the latest this long after they were written, also while the producer is idle: a
    /// thread sees to that, and an error that it meets is reported by the next call. Instead of the policy; not for
    /// callbacks.
    std::optional<std::chrono::nanoseconds> flush_delay{};
    std::optional<ms::encode> encode{};
    /// The level of compression: 0 to 9 for gzip and bgzf (usually 6), 1 to 22 for zstd (3).
    std::optional<std::uint32_t> level{};
    std::optional<ms::existing> existing{};
    std::optional<ms::partial> partial{};
    std::optional<ms::lend_pages> lend_pages{};
    std::optional<ms::durability> durability{};
    /// Fails with `stalled` when the sink takes nothing for this long. Not for callbacks.
    std::optional<std::chrono::nanoseconds> stall_timeout{};
    /// Ends waits. It need not outlive the writer.
    const cancel_token *cancel = nullptr;
    /// What errors call the sink, instead of its path, address or command line.
    std::string name{};
};

/// What put.hpp can make text of; other types are printed by their own `ms_put`.
template <class Part>
concept printable = detail::is_part<Part>;

/// How a writer ended.
struct writer_end {
    /// The bytes that were accepted.
    std::uint64_t bytes = 0;
    /// The bytes that were handed to the system, after encoding.
    std::uint64_t written = 0;
    /// How the command ended, if the sink was one.
    std::vector<command_end> commands;
};

namespace detail {

using writer_options_handle = handle<millstream_writer_options, millstream_writer_options_free>;

inline writer_options_handle made(const writer_options &options) {
    auto handle = made<writer_options_handle>(millstream_writer_options_new);
    auto *to = handle.get();
    if (options.capacity)
        call(millstream_writer_options_set_capacity, to, *options.capacity);
    if (options.flush_policy)
        call(millstream_writer_options_set_flush_policy, to,
             static_cast<millstream_flush_policy>(*options.flush_policy));
    if (options.flush_delay)
        call(millstream_writer_options_set_flush_delay_ns, to, c_time(*options.flush_delay));
    if (options.encode)
        call(millstream_writer_options_set_encode, to, static_cast<millstream_encode>(*options.encode));
    if (options.level)
        call(millstream_writer_options_set_level, to, *options.level);
    if (options.existing)
        call(millstream_writer_options_set_existing, to, static_cast<millstream_existing>(*options.existing));
    if (options.partial)
        call(millstream_writer_options_set_partial, to, static_cast<millstream_partial>(*options.partial));
    if (options.lend_pages)
        call(millstream_writer_options_set_lend_pages, to, static_cast<millstream_lend_pages>(*options.lend_pages));
    if (options.durability)
        call(millstream_writer_options_set_durability, to, static_cast<millstream_durability>(*options.durability));
    if (options.stall_timeout)
        call(millstream_writer_options_set_stall_timeout_ns, to, c_time(*options.stall_timeout));
    if (options.cancel != nullptr)
        call(millstream_writer_options_set_cancel, to, options.cancel->get());
    if (!options.name.empty())
        call(millstream_writer_options_set_name, to, c_text(options.name).c_str());
    return handle;
}

} // namespace detail

namespace bson::detail {
struct io;
}

/// Writes to a sink. Moves, and cannot be copied. One that was made from nothing or moved from is not open: its calls
/// fail with `argument_invalid`.
///
/// The destructor of one that was not closed does its best silently: it writes what is in the buffer, and a command
/// gets its end of input and a little time; but a file that is to appear whole does not appear.
class writer {
  public:
    /// Not open.
    writer() noexcept = default;

    /// Opens a sink.
    template <sink Sink>
    explicit writer(Sink &&sink, const writer_options &options = {}) {
        detail::given_away given(sink);
        const auto handle = detail::made(options);
        detail::writer_opening opening;
        opening.options = handle.get();
        given.taken();
        open(std::forward<Sink>(sink), opening);
        outcome_.keep(std::move(opening.callback));
        handle_ = std::move(opening.writer);
        window_.writer = handle_.get();
    }

    /// Opens a sink; if that fails, `code` says why and the writer is not open.
    template <sink Sink>
    writer(Sink &&sink, const writer_options &options, std::error_code &code) {
        code.clear();
        try {
            *this = writer(std::forward<Sink>(sink), options);
        } catch (const error &failure) {
            outcome_.set(failure, code);
        }
    }
    template <sink Sink>
    writer(Sink &&sink, std::error_code &code) : writer(std::forward<Sink>(sink), writer_options{}, code) {}

    writer(writer &&other) noexcept
        : outcome_(std::move(other.outcome_)), handle_(std::move(other.handle_)),
          window_(std::exchange(other.window_, millstream_output{})) {}
    writer &operator=(writer &&other) noexcept {
        std::error_code ignored;
        end_window(ignored);
        handle_ = std::move(other.handle_); // before the rest: what is freed now may still call back
        outcome_ = std::move(other.outcome_);
        window_ = std::exchange(other.window_, millstream_output{});
        return *this;
    }
    ~writer() {
        std::error_code ignored;
        end_window(ignored);
    }

    // ---- bytes ----

    /// Writes all of the bytes. After an error none of them was accepted, and the call may be repeated. When the sink
    /// fails after part of a large write, the rest is kept, the call succeeds, and the next one reports the error.
    writer &write(std::span<const std::byte> bytes) {
        if (bytes.size() <= small)
            return print(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
        outcome_.throwing([&](std::error_code &code) { write(bytes, code); });
        return *this;
    }
    void write(std::span<const std::byte> bytes, std::error_code &code) noexcept {
        if (bytes.size() <= small)
            print(code, std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
        else
            call(code, millstream_writer_write, static_cast<const void *>(bytes.data()), bytes.size());
    }
    /// The same for text; of a literal, without its NUL.
    writer &write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
    void write(std::string_view text, std::error_code &code) noexcept { write(std::as_bytes(std::span(text)), code); }

    /// At least `least` bytes of room to fill; what they hold is arbitrary. `commit` says how many of them count; any
    /// other call takes the room back. A record longer than the buffer makes it grow.
    std::span<char> space(std::size_t least) {
        return outcome_.throwing([&](std::error_code &code) { return space(least, code); });
    }
    std::span<char> space(std::size_t least, std::error_code &code) noexcept {
        char *room = nullptr;
        std::size_t len = 0;
        call(code, millstream_writer_space, least, &room, &len);
        return {room, len};
    }

    /// Accepts the first `count` bytes of the space.
    void commit(std::size_t count) {
        outcome_.throwing([&](std::error_code &code) { commit(count, code); });
    }
    void commit(std::size_t count, std::error_code &code) noexcept { call(code, millstream_writer_commit, count); }

    // ---- text and numbers ----

    /// Prints the parts one behind the other: text, characters, numbers, and what put.hpp makes: `ms::hex(x)`,
    /// `ms::pad(x, 8)`, `ms::fixed(y, 2)`, `ms::json(name)`, … All of them are accepted, or after an error none.
    ///
    /// A type of yours is printed by `ms_put(writer, value)` in its namespace; a template that prints to any `out`
    /// serves `ms::output` too. What such a function has printed stays accepted when a later part fails.
    template <class... Parts>
    writer &print(const Parts &...parts) {
        if constexpr ((printable<Parts> && ...))
            put(detail::as_part(parts)...);
        else
            (print_one(parts), ...);
        return *this;
    }
    template <printable... Parts>
    void print(std::error_code &code, const Parts &...parts) noexcept {
        code.clear();
        if (!put_quickly(detail::as_part(parts)...)) [[unlikely]]
            put_slowly(code, detail::as_part(parts)...);
    }

    /// Prints the parts and ends the line.
    template <class... Parts>
    writer &println(const Parts &...parts) {
        return print(parts..., '\n');
    }

    /// Prints one part.
    template <class Part>
    writer &operator<<(const Part &part) {
        return print(part);
    }

    /// Hands everything accepted so far to the system. A compressed stream can be decoded up to here then. After an
    /// error nothing is lost: the next call tries again.
    writer &flush() {
        outcome_.throwing([&](std::error_code &code) { flush(code); });
        return *this;
    }
    void flush(std::error_code &code) noexcept { call(code, millstream_writer_flush); }

    // ---- where we are ----

    /// Whether there is a writer at all; so also after `close`.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// What errors call the sink.
    std::string_view name() const noexcept {
        const char *name = millstream_writer_name(handle_.get());
        return name != nullptr ? name : std::string_view();
    }

    /// Bytes accepted so far, those in the buffer included.
    std::uint64_t accepted() const noexcept {
        return count(millstream_writer_accepted) + static_cast<std::uint64_t>(window_.at - window_.start);
    }
    /// Bytes handed to the system so far, after encoding.
    std::uint64_t written() const noexcept { return count(millstream_writer_written); }
    /// The time spent in the sink so far; 0 once the writer is closed.
    std::chrono::nanoseconds waited() const noexcept {
        return std::chrono::nanoseconds(count(millstream_writer_waited_ns));
    }

    /// Writes what is left, ends the stream, and makes it count: a file takes its name, a command is waited for. The
    /// writer can still be asked how it ended. `closed` if this has been called before, `command_failed` if the command
    /// did not succeed. An error's `written()` says how many bytes the sink took.
    writer_end close() {
        return outcome_.throwing([&](std::error_code &code) { return close(code); });
    }
    writer_end close(std::error_code &code) {
        call(code, millstream_writer_close);
        const millstream_command_end *ends = nullptr;
        std::size_t ends_count = 0;
        millstream_writer_command_ends(handle_.get(), &ends, &ends_count, nullptr);
        return {accepted(), written(), detail::copied(ends, ends_count)};
    }

    /// All that was written to `to_memory`, once the writer is closed; valid as long as the writer exists. Nothing
    /// before, and of any other sink.
    std::string_view memory() const noexcept {
        const char *bytes = nullptr;
        std::size_t len = 0;
        millstream_writer_taken_memory(handle_.get(), &bytes, &len, nullptr);
        return {bytes, len};
    }

    /// The details of the last failure; null if there was none. Valid until the next failure.
    const error *last_error() const noexcept { return outcome_.last(); }

    /// What a callback threw, for those who use `std::error_code`: the failing call has said `io`. Null if the last
    /// failure was another one.
    std::exception_ptr callback_exception() const noexcept { return outcome_.thrown(); }

    /// The writer of the C ABI, which stays this object's. It has everything that was accepted so far.
    millstream_writer *get() {
        outcome_.throwing([&](std::error_code &code) { end_window(code); });
        return handle_.get();
    }

  private:
    friend class shared_writer;     // which takes all of it
    friend struct bson::detail::io; // which throws what its callback has thrown

    using handle_type = detail::handle<millstream_writer, millstream_writer_free>;

    /// What is not larger goes through the window.
    static constexpr std::size_t small = 4096;

    template <class... Parts>
    void put(const Parts &...parts) {
        if (!put_quickly(parts...)) [[unlikely]]
            outcome_.throwing([&](std::error_code &code) { put_slowly(code, parts...); });
    }

    /// Puts the parts where there is room for them and nothing else to do.
    template <class... Parts>
    bool put_quickly(const Parts &...parts) noexcept {
        const std::uint64_t needed = detail::room_of(parts...);
        if (needed > static_cast<std::size_t>(window_.end - window_.at) || !window_.collects) [[unlikely]]
            return false;
        put_here(parts...);
        return true;
    }

    template <class... Parts>
    void put_slowly(std::error_code &code, const Parts &...parts) noexcept {
        // At least 1, for which a window must be open: so the writer has its say about no bytes too.
        const std::size_t needed = detail::as_size(std::max<std::uint64_t>(1, detail::room_of(parts...)));
        window_.record = window_.at;
        if (outcome_.call(code, millstream_output_reserve, &window_, needed)) {
            put_here(parts...);
            outcome_.call(code, millstream_output_commit, &window_);
        }
    }

    template <class... Parts>
    void put_here(const Parts &...parts) noexcept {
        std::size_t count = 0; // rather than a pointer: the lengths are added up while nobody waits for them
        ((count += parts.put(window_.at + count)), ...);
        window_.at += count;
    }

    /// Accepts what is in the window, and gives the writer back to the functions of the C ABI.
    bool end_window(std::error_code &code) noexcept { return outcome_.call(code, millstream_output_end, &window_); }

    /// Calls a function of the C ABI that is not const.
    template <class Function, class... Arguments>
    bool call(std::error_code &code, Function function, Arguments... arguments) noexcept {
        return end_window(code) && outcome_.call(code, function, handle_.get(), arguments...);
    }

    template <class Part>
    void print_one(const Part &part) {
        if constexpr (printable<Part>)
            print(part);
        else
            ms_put(*this, part);
    }

    template <class Function>
    std::uint64_t count(Function function) const noexcept {
        std::uint64_t count = 0;
        function(handle_.get(), &count, nullptr);
        return count;
    }

    // What the library calls back must outlive the handle: members are destroyed from the last to the first.
    detail::outcome outcome_;
    handle_type handle_;
    // Room in the writer's buffer, where prints go without a call of the library. If the writer collects what it
    // accepts until its buffer is full, the window stays open from one print to the next.
    millstream_output window_{};
};

} // namespace ms

#endif // MILLSTREAM_WRITER_HPP
