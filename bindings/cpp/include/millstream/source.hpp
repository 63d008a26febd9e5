// Sources are values that describe where bytes are read from. Creating one does not open it; the reader opens it and
// reports errors.
//
//     millstream::reader reader(millstream::path{"reads.txt.gz"});
//     for (std::string_view line : millstream::lines(millstream::command{"zcat", "-f", file})) …
//
// Sources are path, mapped, standard_input, fd, borrowed_fd, command, pipeline, shell (see command.hpp), remote (see
// remote.hpp), tcp, unix_socket, memory, lent_memory and callback. Of these, path, mapped, fd, borrowed_fd, command,
// remote, tcp, unix_socket and callback are sinks too: see sink.hpp.
//
// The end of a command's stream means that it exited with status 0. For standard input and sockets, it means only that
// they were closed.
#ifndef MILLSTREAM_SOURCE_HPP
#define MILLSTREAM_SOURCE_HPP

#if __cplusplus <= 201703L
#error "millstream/source.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <concepts>
#include <functional>
#include <span>
#include <type_traits>

#include <unistd.h>

#include <millstream/boundary.hpp>
#include <millstream/command.hpp>
#include <millstream/remote.hpp>

namespace millstream {

/// A regular file, mapped into memory. As a source, it is read without a copy (unless it is compressed). As a sink, it
/// works like `path`; measure before you use it, because a plain write is faster in most cases.
///
/// The file must not shrink while it is mapped. A reader checks its length regularly and reports `source_shrank`. But
/// if the file shrinks between this check and the use of the bytes, or while it is written, the process is killed by
/// SIGBUS.
struct mapped {
    std::filesystem::path name;
};

/// Standard input: a duplicate of the file descriptor. Bytes that stdio or std::cin have already read are missing.
struct standard_input {};

/// A file descriptor. The reader or writer takes ownership; the descriptor is closed if opening fails.
struct fd {
    int number;
};

/// A duplicate of a file descriptor; the caller still owns the original. Both share the file position.
struct borrowed_fd {
    int number;
};

/// A TCP address, such as "localhost:7000", to connect to.
struct tcp {
    std::string address;
};

/// A Unix stream socket to connect to.
struct unix_socket {
    std::filesystem::path name;
};

/// Bytes that are moved into the reader: `millstream::memory{std::move(text)}`. (A `memory` that is not moved is
/// copied.)
struct memory {
    std::string bytes;
};

/// Borrowed bytes, which must stay unchanged at their address while the reader exists. No copy is made.
struct lent_memory {
    std::span<const char> bytes;
};

namespace detail {

/// Closes a file descriptor that was passed in, unless the library has taken ownership.
class given_away {
  public:
    template <class Given>
    explicit given_away(const Given &given) noexcept {
        if constexpr (std::same_as<Given, fd>)
            number_ = given.number;
    }
    given_away(const given_away &) = delete;
    given_away &operator=(const given_away &) = delete;
    ~given_away() {
        if (number_ >= 0)
            ::close(number_);
    }

    /// Passes the descriptor to the library, which closes it if it fails.
    void taken() noexcept { number_ = -1; }

  private:
    int number_ = -1;
};

/// Opens a reader. The options are the input; the handle and the objects that must live as long as it are the output.
struct reader_opening {
    const millstream_reader_options *options = nullptr;
    handle<millstream_reader, millstream_reader_free> reader;
    std::shared_ptr<callback_holder> callback;

    /// Calls a function of the C ABI that ends with options, reader and error.
    template <class Function, class... Arguments>
    void by(Function function, Arguments... arguments) {
        reader = made<decltype(reader)>(function, arguments..., options);
    }
};

inline void open(const path &source, reader_opening &to) { to.by(millstream_reader_path, c_path(source.name).c_str()); }
inline void open(const mapped &source, reader_opening &to) {
    to.by(millstream_reader_mapped, c_path(source.name).c_str());
}
inline void open(const standard_input &, reader_opening &to) { to.by(millstream_reader_stdin); }
inline void open(const fd &source, reader_opening &to) { to.by(millstream_reader_fd, std::int32_t{source.number}); }
inline void open(const borrowed_fd &source, reader_opening &to) {
    to.by(millstream_reader_borrow_fd, std::int32_t{source.number});
}
inline void open(const command &source, reader_opening &to) {
    to.by(millstream_reader_command, source.get());
    to.callback = source.input();
}
inline void open(const pipeline &source, reader_opening &to) {
    std::vector<const millstream_command *> commands;
    for (const command &command : source.commands())
        commands.push_back(command.get());
    to.by(millstream_reader_pipeline, commands.data(), commands.size());
    if (!commands.empty())
        to.callback = source.commands().front().input();
}
inline void open(const shell &source, reader_opening &to) {
    to.by(millstream_reader_shell, c_text(source.line).c_str());
}
inline void open(const remote &source, reader_opening &to) { to.by(millstream_reader_url, source.get()); }
inline void open(const tcp &source, reader_opening &to) {
    to.by(millstream_reader_tcp, c_text(source.address).c_str());
}
inline void open(const unix_socket &source, reader_opening &to) {
    to.by(millstream_reader_unix, c_path(source.name).c_str());
}
inline void open(memory &&source, reader_opening &to) {
    // The library releases it, perhaps shortly after the reader, and also if this call fails.
    auto *bytes = new std::string(std::move(source.bytes));
    const auto release = [](void *user) { delete static_cast<std::string *>(user); };
    to.by(millstream_reader_lent_memory, static_cast<const void *>(bytes->data()), bytes->size(),
          static_cast<millstream_release_callback>(release), static_cast<void *>(bytes));
}
inline void open(const memory &source, reader_opening &to) {
    to.by(millstream_reader_memory, static_cast<const void *>(source.bytes.data()), source.bytes.size());
}
inline void open(const lent_memory &source, reader_opening &to) {
    to.by(millstream_reader_lent_memory, static_cast<const void *>(source.bytes.data()), source.bytes.size(),
          static_cast<millstream_release_callback>(nullptr), static_cast<void *>(nullptr));
}

template <class Function>
requires std::is_invocable_r_v<std::size_t, Function &, std::span<char>>
void open(callback<Function> source, reader_opening &to) {
    auto holder = std::make_unique<fill_holder<Function>>(std::move(source.function));
    to.by(millstream_reader_callback, &fill_holder<Function>::fill, static_cast<void *>(holder.get()));
    to.callback = std::move(holder);
}

} // namespace detail

/// The sources that a reader can read.
template <class Source>
concept source = requires(Source &&given, detail::reader_opening &to) {
    open(std::forward<Source>(given), to);
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_SOURCE_HPP
