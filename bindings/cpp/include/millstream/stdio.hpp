// millstream/stdio.hpp: millstream::in and millstream::out, fast standard input and output.
//
//     #include <millstream/stdio.hpp>
//
//     int main() {
//         unsigned a, b;
//         while (millstream::in >> a >> b)
//             millstream::out.print(a > b ? a : b, '\n');       // or: millstream::out << (a > b ? a : b) << '\n';
//     }
//
// There is no library to link: use these headers, or a single file to paste (single/millstream_stdio.hpp). put.hpp
// describes what can be printed, input.hpp what can be read and what is an error, and output.hpp when bytes are
// written.
//
// An error that the program does not catch, such as invalid input or a full disk, ends it with one line on standard
// error and status 1, after millstream::out and stdio's buffers have been flushed; static objects are not destroyed
// then. For other exceptions, and if the program calls std::set_terminate, everything is as without this header.
//
// When main returns or exit() is called, millstream::out is flushed: after the destructors of static objects that are
// defined below the first #include of this header, and after atexit functions that main has registered. If this fails
// (because of a full disk or a closed pipe), one line on standard error reports it, stdio's buffers are flushed, and
// the program exits with status 1 instead of its own status; atexit functions and static objects that are older than
// this header's are skipped then. Later output is written immediately. _exit, quick_exit, abort and signals do not
// flush, so call millstream::out.flush() before them.
//
// millstream::out has its own buffer, separate from those of printf and std::cout, and millstream::in has its own
// buffer, separate from those of scanf and std::cin. Use only one of them for each stream, or flush one before using
// the other; inputs cannot be mixed.
//
// Only one thread at a time may use millstream::in and millstream::out, because a read may flush.
//
// Needs C++17 and works with g++ and clang++, on POSIX and, with mingw-w64, on Windows (see descriptor.hpp).
#ifndef MILLSTREAM_STDIO_HPP
#define MILLSTREAM_STDIO_HPP

#if __cplusplus <= 201402L
#error "millstream/stdio.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cstdio>
#include <exception>

#include <millstream/descriptor.hpp>
#include <millstream/error.hpp>
#include <millstream/input.hpp>
#include <millstream/output.hpp>
#include <millstream/put.hpp>

namespace millstream {
namespace detail {

/// An object that is never destroyed: other static objects may use it in their destructors.
template <class T>
union lasting {
    T object;
    template <class... Arguments>
    constexpr explicit lasting(Arguments... arguments) : object(arguments...) {}
    ~lasting() {}
};

inline lasting<output> lasting_out{STDOUT_FILENO};
inline lasting<input> lasting_in{STDIN_FILENO, &lasting_out.object};

} // namespace detail

/// Standard output.
inline output &out = detail::lasting_out.object;
/// Standard input. Flushes millstream::out before it reads from anything but a regular file.
inline input &in = detail::lasting_in.object;

namespace detail {

/// Reports an error on standard error, and ends the program at once.
[[noreturn]] inline void end_with(const char *message) {
    std::fprintf(stderr, "%s\n", message);
    std::fflush(nullptr);
    ::_exit(1); // exit() may be running already, with another status
}

#ifdef __cpp_exceptions
inline std::terminate_handler other_terminate_handler = nullptr;

/// The terminate handler: ends the program for an error that is not caught.
inline void end_with_uncaught() {
    try {
        if (const std::exception_ptr thrown = std::current_exception())
            std::rethrow_exception(thrown);
    } catch (const error &uncaught) {
        (void)out.flush_finally();
        end_with(uncaught.what());
    } catch (...) {
    }
    other_terminate_handler();
}
#endif

/// An object whose destructor does the last flush.
struct last_flush {
    last_flush() { // at run time, because older objects are destroyed later
#ifdef __cpp_exceptions
        other_terminate_handler = std::set_terminate(end_with_uncaught);
#endif
    }
    last_flush(const last_flush &) = delete;
    last_flush &operator=(const last_flush &) = delete;
    ~last_flush() {
        if (out.flush_finally())
            return;
        end_with(sentence(out.describe()).c_str());
    }
};

inline const last_flush at_exit;

} // namespace detail
} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_STDIO_HPP
