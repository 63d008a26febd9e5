// A writer that several threads use at the same time.
//
//     millstream::shared_writer log(millstream::path{"log.txt"});
//     {
//         std::jthread one([&] { log.write_record("one\n"); });
//         std::jthread two([&] { log.write_record("two\n"); });
//     }
//     log.close();
//
// A record is the argument of one call of `write_record`, with its delimiter. Each record is in the output once and in
// one piece; records of one thread keep their order, those of different threads are in the order in which the calls
// acquired the lock. Each call takes a lock: threads with many small records should collect some first.
#ifndef MILLSTREAM_SHARED_HPP
#define MILLSTREAM_SHARED_HPP

#if __cplusplus <= 201703L
#error "millstream/shared.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <millstream/writer.hpp>

namespace millstream {

/// Writes complete records from several threads. It can be moved but not copied: threads use one object by reference.
/// Several threads may call const member functions at the same time.
///
/// Member functions that can fail have two forms. One throws `millstream::error`, or the exception of your callback.
/// The other takes a `std::error_code &` as its last argument and does not throw; it reports only the code.
///
/// A default-constructed or moved-from writer is not open: its calls fail with `argument_invalid`. If the writer was
/// not closed, the destructor finishes it as far as possible without reporting errors, like that of
/// `millstream::writer`.
class [[nodiscard]] shared_writer {
  public:
    /// Creates a writer that is not open.
    shared_writer() noexcept = default;

    /// Takes ownership of a writer, and continues after the bytes that it has accepted.
    explicit shared_writer(writer writer) {
        millstream_writer *const raw = writer.get();
        callback_ = writer.outcome_.release();
        if (callback_ != nullptr)
            turn_ = std::make_unique<std::mutex>();
        // The library owns the writer now, even if the call fails.
        (void)writer.handle_.release();
        handle_ = detail::made<handle_type>(millstream_shared_writer_new, raw);
    }

    /// Opens a sink.
    template <sink Sink>
    explicit shared_writer(Sink &&sink, const writer_options &options = {})
        : shared_writer(writer(std::forward<Sink>(sink), options)) {}

    shared_writer(shared_writer &&) noexcept = default;
    shared_writer &operator=(shared_writer &&other) noexcept {
        handle_ = std::move(other.handle_); // first, because the handle that is freed now may still call back
        callback_ = std::move(other.callback_);
        turn_ = std::move(other.turn_);
        return *this;
    }
    ~shared_writer() = default;

    /// Writes one record. After an error, none of it was accepted, and the call may be repeated.
    void write_record(std::span<const std::byte> record) const {
        raise(call(millstream_shared_writer_write_record, static_cast<const void *>(record.data()), record.size()));
    }
    void write_record(std::span<const std::byte> record, std::error_code &code) const noexcept {
        tell(call(millstream_shared_writer_write_record, static_cast<const void *>(record.data()), record.size()),
             code);
    }
    /// Like the first form, for text; the NUL of a literal is excluded.
    void write_record(std::string_view record) const { write_record(detail::bytes_of(record)); }
    void write_record(std::string_view record, std::error_code &code) const noexcept {
        write_record(detail::bytes_of(record), code);
    }

    /// Prints the parts one after another, as `millstream::writer::print` does, as one record: parts that other threads
    /// print are before or after it. All of them are accepted, or none after an error.
    template <printable... Parts>
    void print(const Parts &...parts) const {
        with_text([&](std::string_view text) { write_record(text); }, detail::as_part(parts)...);
    }
    /// Prints the parts and ends the line.
    template <printable... Parts>
    void println(const Parts &...parts) const {
        print(parts..., '\n');
    }

    /// Passes all data that was written so far, by all threads, to the system.
    void flush() const { raise(call(millstream_shared_writer_flush)); }
    void flush(std::error_code &code) const noexcept { tell(call(millstream_shared_writer_flush), code); }

    /// Closes the writer for all threads, like `millstream::writer::close`: their later calls fail with `closed`.
    void close() const { raise(call(millstream_shared_writer_close)); }
    void close(std::error_code &code) const noexcept { tell(call(millstream_shared_writer_close), code); }

    /// Whether a writer was opened; also true after `close`.
    explicit operator bool() const noexcept { return handle_ != nullptr; }

  private:
    using handle_type = detail::handle<millstream_shared_writer, millstream_shared_writer_free>;

    struct failure {
        millstream::error error;
        std::exception_ptr thrown; // the exception of the callback, if that is the error
    };

    /// Calls `use` with the text of all parts.
    template <class Use, class... Parts>
    static void with_text(Use use, const Parts &...parts) {
        const std::size_t most = detail::as_size(detail::max_size_of(parts...));
        std::array<char, 512> few;
        std::string many;
        char *to = few.data();
        if (most > few.size()) {
            many.resize(most);
            to = many.data();
        }
        std::size_t count = 0;
        ((count += parts.put(to + count)), ...);
        use(std::string_view(to, count));
    }

    /// Calls a function of the C ABI, and returns its error.
    template <class Function, class... Arguments>
    std::optional<failure> call(Function function, Arguments... arguments) const {
        std::unique_lock<std::mutex> turn;
        if (turn_ != nullptr)
            turn = std::unique_lock(*turn_);
        millstream_error *raw = nullptr;
        const millstream_code result = function(handle_.get(), arguments..., &raw);
        if (result == MILLSTREAM_OK) [[likely]]
            return std::nullopt;
        failure failed{detail::taken(result, raw), nullptr};
        if (callback_ != nullptr)
            failed.thrown = callback_->take(failed.error);
        return failed;
    }

    static void raise(std::optional<failure> failed) {
        if (!failed) [[likely]]
            return;
        if (failed->thrown != nullptr)
            std::rethrow_exception(failed->thrown);
        detail::fail(failed->error);
    }

    static void tell(const std::optional<failure> &failed, std::error_code &code) noexcept {
        code = failed ? failed->error.code() : std::error_code();
    }

    // Objects that the library calls back must outlive the handle: members are destroyed from the last to the first.
    std::shared_ptr<detail::callback_holder> callback_;
    // If a callback throws, the calling thread takes the exception before another thread continues.
    std::unique_ptr<std::mutex> turn_;
    handle_type handle_;
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_SHARED_HPP
