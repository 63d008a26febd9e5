// Sinks are values that describe where bytes are written. Creating one does not open it; the writer opens it and
// reports errors.
//
//     millstream::writer writer(millstream::path{"counts.txt.gz"});
//     millstream::writer sorted(millstream::command{"sort", "-o", file});
//
// Sinks are path, mapped, fd, borrowed_fd, command, remote, tcp, unix_socket and callback, which are sources too (see
// source.hpp), and standard_output, to_memory and nowhere.
//
// A file or an object appears complete when the writer is closed, or not at all. A command must exit with status 0.
#ifndef MILLSTREAM_SINK_HPP
#define MILLSTREAM_SINK_HPP

#if __cplusplus <= 201703L
#error "millstream/sink.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <millstream/boundary.hpp>
#include <millstream/source.hpp>

namespace millstream {

/// Standard output: file descriptor 1 itself. Flush stdio and std::cout before you use it.
struct standard_output {};

/// Memory: `millstream::writer::memory()` returns the content after the writer is closed.
struct to_memory {};

/// Discards everything, for measuring and counting.
struct nowhere {};

namespace detail {

/// Opens a writer. The options are the input; the handle and the objects that must live as long as it are the output.
struct writer_opening {
    const millstream_writer_options *options = nullptr;
    handle<millstream_writer, millstream_writer_free> writer;
    std::shared_ptr<callback_holder> callback;

    /// Calls a function of the C ABI that ends with options, writer and error.
    template <class Function, class... Arguments>
    void by(Function function, Arguments... arguments) {
        writer = made<decltype(writer)>(function, arguments..., options);
    }
};

inline void open(const path &sink, writer_opening &to) { to.by(millstream_writer_path, c_path(sink.name).c_str()); }
inline void open(const mapped &sink, writer_opening &to) { to.by(millstream_writer_mapped, c_path(sink.name).c_str()); }
inline void open(const standard_output &, writer_opening &to) { to.by(millstream_writer_stdout); }
inline void open(const fd &sink, writer_opening &to) { to.by(millstream_writer_fd, std::int32_t{sink.number}); }
inline void open(const borrowed_fd &sink, writer_opening &to) {
    to.by(millstream_writer_borrow_fd, std::int32_t{sink.number});
}
inline void open(const command &sink, writer_opening &to) { to.by(millstream_writer_command, sink.get()); }
inline void open(const remote &sink, writer_opening &to) { to.by(millstream_writer_url, sink.get()); }
inline void open(const tcp &sink, writer_opening &to) { to.by(millstream_writer_tcp, c_text(sink.address).c_str()); }
inline void open(const unix_socket &sink, writer_opening &to) {
    to.by(millstream_writer_unix, c_path(sink.name).c_str());
}
inline void open(const to_memory &, writer_opening &to) { to.by(millstream_writer_memory); }
inline void open(const nowhere &, writer_opening &to) { to.by(millstream_writer_nowhere); }

template <class Function>
struct write_holder final : callback_holder {
    explicit write_holder(Function &&given) : function(std::move(given)) {}

    static std::ptrdiff_t write(void *user, const char *bytes, std::size_t len) noexcept {
        auto *self = static_cast<write_holder *>(user);
        return self->run([&] { return std::invoke(self->function, std::span<const char>(bytes, len)); });
    }

    Function function;
};

template <class Function>
requires std::is_invocable_r_v<std::size_t, Function &, std::span<const char>>
void open(callback<Function> sink, writer_opening &to) {
    auto holder = std::make_unique<write_holder<Function>>(std::move(sink.function));
    to.by(millstream_writer_callback, &write_holder<Function>::write, static_cast<void *>(holder.get()));
    to.callback = std::move(holder);
}

} // namespace detail

/// The sinks to which a writer can write.
template <class Sink>
concept sink = requires(Sink &&given, detail::writer_opening &to) {
    open(std::forward<Sink>(given), to);
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_SINK_HPP
