// Commands: a program and its arguments, which are passed unchanged, without a shell.
//
//     millstream::command{"samtools", "view", "-h", file}
//     millstream::command{"sort", "-k2"}.env("LC_ALL", "C").current_dir("/data")
//
// A command is only a description and does not start a process. Any number of readers and writers can use it.
#ifndef MILLSTREAM_COMMAND_HPP
#define MILLSTREAM_COMMAND_HPP

#if __cplusplus <= 201703L
#error "millstream/command.hpp needs C++20: compile it with -std=c++20 or later"
#else

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <istream>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>

#include <millstream/boundary.hpp>
#include <millstream/enums.hpp>

namespace millstream {

/// A file, FIFO or device.
struct path {
    std::filesystem::path name;
};

/// A function that fills a buffer or accepts bytes.
///
/// As a source, it is called as `std::size_t function(std::span<char> space)`: it writes bytes to the space and returns
/// their number, 0 at the end. As a sink, it is called as `std::size_t function(std::span<const char> bytes)`: it
/// accepts at least one of the bytes and returns their number.
///
/// It runs on the thread that uses the reader or writer, during a call. That call rethrows its exceptions; a writer
/// keeps the bytes and passes them again later.
template <class Function>
struct callback {
    Function function;
};
template <class Function>
callback(Function) -> callback<Function>;

namespace detail {

template <class Function>
struct fill_holder final : callback_holder {
    explicit fill_holder(Function &&given) : function(std::move(given)) {}

    static std::ptrdiff_t fill(void *user, char *space, std::size_t len) noexcept {
        auto *self = static_cast<fill_holder *>(user);
        return self->run([&] { return std::invoke(self->function, std::span<char>(space, len)); });
    }

    Function function;
};

/// The pieces of text of a range as a callback. `Pieces` is a reference if the range is not moved.
template <class Pieces>
class joined {
  public:
    explicit joined(Pieces &&pieces) : pieces_(std::forward<Pieces>(pieces)) {}

    std::size_t operator()(std::span<char> space) {
        if (!at_)
            at_.emplace(std::ranges::begin(pieces_)); // not before, because it may refer to this object
        while (given_ == piece_.size()) {
            if (*at_ == std::ranges::end(pieces_))
                return 0;
            piece_ = std::string_view(**at_);
            given_ = 0;
            ++*at_;
        }
        const std::size_t count = piece_.copy(space.data(), space.size(), given_);
        given_ += count;
        return count;
    }

  private:
    Pieces pieces_;
    std::optional<std::ranges::iterator_t<Pieces>> at_{};
    std::string piece_{};
    std::size_t given_ = 0;
};

/// A stream as a callback: returns what is available, or waits for a line.
inline std::size_t take_available(std::streambuf &from, std::span<char> space) {
    std::size_t count = 0;
    while (count < space.size()) {
        const int byte = from.sbumpc();
        if (byte == std::char_traits<char>::eof())
            break;
        space[count++] = static_cast<char>(byte);
        const std::streamsize ready = std::min(from.in_avail(), static_cast<std::streamsize>(space.size() - count));
        if (ready > 0)
            return count + static_cast<std::size_t>(from.sgetn(space.data() + count, ready));
        if (byte == '\n')
            break;
    }
    return count;
}

/// Text that a command gets in pieces.
template <class Pieces>
concept pieces_of_text =
    std::ranges::input_range<Pieces> && std::convertible_to<std::ranges::range_reference_t<Pieces>, std::string_view> &&
    !std::convertible_to<Pieces, std::string_view>;

} // namespace detail

/// A program, which is searched for in PATH, and its arguments. The setters return the command, so that they can be
/// chained. Text with a NUL inside is reported as `argument_invalid`.
class command {
  public:
    /// Creates a command from words.
    command(std::initializer_list<std::string_view> words) : command(std::span(words.begin(), words.size())) {}
    /// Creates a command from the words of any range of text: std::vector<std::string>, std::span<const char *const>, …
    template <std::ranges::input_range Words>
    requires std::convertible_to<std::ranges::range_reference_t<Words>, std::string_view>
    explicit command(const Words &words)
        : handle_(detail::made<handle_type>(millstream_command_new, static_cast<const char *const *>(nullptr),
                                            std::size_t{0})) {
        for (std::string_view word : words)
            arg(word);
    }

    /// Adds an argument.
    command &arg(std::string_view word) { return set(millstream_command_add_arg, detail::c_text(word).c_str()); }

    /// Sets an environment variable.
    command &env(std::string_view key, std::string_view value) {
        return set(millstream_command_set_env, detail::c_text(key).c_str(), detail::c_text(value).c_str());
    }

    /// Removes an environment variable.
    command &env_remove(std::string_view key) {
        return set(millstream_command_set_env, detail::c_text(key).c_str(), static_cast<const char *>(nullptr));
    }

    /// Removes all environment variables set so far, inherited ones included.
    command &env_clear() { return set(millstream_command_clear_env); }

    /// Starts the command in this directory.
    command &current_dir(const std::filesystem::path &path) {
        return set(millstream_command_set_current_dir, detail::c_path(path).c_str());
    }

    /// The source of its standard input: `null` by default. This is ignored for a sink's command, and for all commands
    /// of a pipeline except the first, because the library provides their input.
    command &stdin_from(millstream::stdin_from from) {
        return set(millstream_command_set_stdin, static_cast<millstream_stdin>(from));
    }
    /// Its standard input is a copy of this text. The command does not have to read all of it.
    command &stdin_from(std::string_view text) {
        return set(millstream_command_set_stdin_bytes, reinterpret_cast<const std::uint8_t *>(text.data()),
                   text.size());
    }
    /// Its standard input is a file, which is opened when the command is started.
    command &stdin_from(const millstream::path &file) {
        return set(millstream_command_set_stdin_path, detail::c_path(file.name).c_str());
    }
    /// Its standard input is a duplicate of this file descriptor.
    command &stdin_from(int fd) { return set(millstream_command_set_stdin_fd, std::int32_t{fd}); }

    /// Its standard input is what a function writes into the space that it gets: `std::size_t
    /// function(std::span<char>)` returns the number of bytes, 0 at the end.
    ///
    ///     std::ifstream names("names.txt"); // or any other std::istream
    ///     for (std::string_view line : millstream::lines(millstream::command{"sort"}.stdin_from(names)))
    ///         …
    ///
    /// This and the following functions are for input that is made while the command runs: a thread of the library,
    /// which handles no signals, calls the function while another one reads the command's output. The command need not
    /// read all of it. If the function throws, the command gets the end of its input, and the reader of its output
    /// rethrows the exception after all of that output. If the command ends first, the function is not called again,
    /// but a call may still be waiting. The input can be used by one reader.
    template <class Function>
    requires std::is_invocable_r_v<std::size_t, Function &, std::span<char>> command &
    stdin_from(callback<Function> input) {
        return stdin_from(std::move(input), {});
    }
    /// Its standard input are these pieces of text, one after another: the elements of any range. A range that is moved
    /// belongs to the command; otherwise, it must exist as long as the reader.
    template <detail::pieces_of_text Pieces>
    command &stdin_from(Pieces &&pieces) {
        return stdin_from(callback{detail::joined<Pieces>(std::forward<Pieces>(pieces))});
    }
    /// Its standard input is a stream, which must exist as long as the reader, and is not used otherwise meanwhile.
    command &stdin_from(std::istream &stream) {
        return stdin_from(
            callback{[from = stream.rdbuf()](std::span<char> space) { return detail::take_available(*from, space); }});
    }

    /// The destination of its standard output, if it is a sink's command: `inherit` by default.
    command &stdout_to(millstream::stdout_to to) {
        return set(millstream_command_set_stdout, static_cast<millstream_stdout>(to));
    }
    /// Its standard output, if it is a sink's command, is a duplicate of this file descriptor.
    command &stdout_to(int fd) { return set(millstream_command_set_stdout_fd, std::int32_t{fd}); }

    /// The destination of its standard error: `forward` by default.
    command &stderr_to(millstream::stderr_to to) {
        return set(millstream_command_set_stderr, static_cast<millstream_stderr>(to));
    }

    /// Makes every exit status and every signal a success: `command_ends` reports the status, and there is no error.
    command &allow_failure() { return set(millstream_command_allow_failure); }

    /// The exit statuses that are successes, instead of 0 alone. Any other status is an error.
    command &success_statuses(std::initializer_list<int> statuses) {
        return success_statuses(std::span(statuses.begin(), statuses.size()));
    }
    command &success_statuses(std::span<const int> statuses) {
        return set(millstream_command_set_success_statuses, statuses.data(), statuses.size());
    }

    /// The signals that may kill the command without this being an error: none by default.
    command &success_signals(std::initializer_list<int> signals) {
        return success_signals(std::span(signals.begin(), signals.size()));
    }
    command &success_signals(std::span<const int> signals) {
        return set(millstream_command_set_success_signals, signals.data(), signals.size());
    }

    /// The signal that stops the command when its reader or writer is closed or destroyed before the end: SIGTERM by
    /// default. The command's pipes are closed first, and if it exits within a second (or within `stop_grace`, if that
    /// is shorter), it is not signalled.
    command &stop_signal(int signal) { return set(millstream_command_set_stop_signal, std::int32_t{signal}); }

    /// How long the command may continue after that signal: 1 s by default. After that it is killed with SIGKILL.
    command &stop_grace(std::chrono::nanoseconds grace) {
        return set(millstream_command_set_stop_grace_ns, detail::c_time(grace));
    }

    /// The process group of the command, to which the signals that stop it are sent.
    command &process_group(millstream::process_group group) {
        return set(millstream_command_set_process_group, static_cast<millstream_process_group>(group));
    }

    /// How many bytes of the end of its standard error are kept for the error and the report: 4,096 by default. More of
    /// it is still forwarded.
    command &stderr_limit(std::size_t bytes) { return set(millstream_command_set_stderr_limit, bytes); }

    /// Makes the system kill the command (SIGKILL) when this process ends for any reason, even by SIGKILL. This works
    /// only on Linux and has no effect elsewhere. It kills only the command itself and not its children, and does not
    /// work for a command that changes its user or gains privileges.
    command &ends_with_us() { return set(millstream_command_ends_with_us); }

    /// The C ABI's command, which this object keeps.
    const millstream_command *get() const noexcept { return handle_.get(); }

    // ---- for readers and pipes ----

    /// The function of `stdin_from`, with its exception.
    const std::shared_ptr<detail::callback_holder> &input() const noexcept { return input_; }
    /// Like `stdin_from`; the tokens interrupt the waits of the function.
    template <class Function>
    command &stdin_from(callback<Function> input, std::span<const millstream_cancel_token *const> tokens) {
        using holder = detail::fill_holder<Function>;
        auto shared = std::make_shared<holder>(std::move(input.function));
        const auto fill = [](void *user, char *space, std::size_t len) {
            return holder::fill(static_cast<std::shared_ptr<holder> *>(user)->get(), space, len);
        };
        const auto release = [](void *user) { delete static_cast<std::shared_ptr<holder> *>(user); };
        input_ = shared;
        // The library releases it, also if this call fails.
        return set(millstream_command_set_stdin_callback, static_cast<millstream_fill_callback>(fill),
                   static_cast<void *>(new std::shared_ptr<holder>(std::move(shared))),
                   static_cast<millstream_release_callback>(release), tokens.data(), tokens.size());
    }

  private:
    using handle_type = detail::handle<millstream_command, millstream_command_free>;

    template <class Function, class... Arguments>
    command &set(Function function, Arguments... arguments) {
        detail::call(function, handle_.get(), arguments...);
        return *this;
    }

    handle_type handle_;
    std::shared_ptr<detail::callback_holder> input_;
};

/// Commands, each of which reads the output of the previous one. All of them must succeed.
class pipeline {
  public:
    /// Creates a pipeline from one or more commands.
    template <std::same_as<command>... Commands>
    explicit pipeline(command first, Commands... next) {
        commands_.reserve(1 + sizeof...(next));
        commands_.push_back(std::move(first));
        (commands_.push_back(std::move(next)), ...);
    }
    explicit pipeline(std::vector<command> commands) : commands_(std::move(commands)) {}

    std::span<const command> commands() const noexcept { return commands_; }

  private:
    std::vector<command> commands_;
};

/// A shell line, `bash -o pipefail -c line`. Never pass it user input or a file name: a command takes arguments
/// unchanged.
struct shell {
    std::string line;
};

} // namespace millstream

#endif // C++20
#endif // MILLSTREAM_COMMAND_HPP
