// millstream/stdio.hpp: ms::in and ms::out, standard input and output at the speed of the machine.
//
//     #include <millstream/stdio.hpp>
//
//     int main() {
//         unsigned a, b;
//         while (ms::in >> a >> b)
//             ms::out.print(a > b ? a : b, '\n');       // or: ms::out << (a > b ? a : b) << '\n';
//     }
//
// No library to link: these headers, or all of them in one file to paste (single/millstream_stdio.hpp). What can be
// printed is in put.hpp, what can be read and what is an error in input.hpp, and when bytes go out in output.hpp.
//
// At the end of the program, by return from main or exit(), ms::out is flushed: after the destructors of static objects
// that are defined below the first #include of this header, and after atexit functions that main has registered.
// If that fails (a full disk, a closed pipe), one line on standard error says so, stdio's buffers are flushed, and the
// program ends with status 1, whatever it wanted: atexit functions and static objects that are older than this header's
// are skipped then. What is printed still later goes out at once. A program that ends by _exit, quick_exit, abort or a
// signal flushes nothing, so call ms::out.flush() before.
//
// ms::out has its own buffer beside those of printf and std::cout, and ms::in beside those of scanf and std::cin. Use
// one kind of them for each stream, or flush one before using the other; inputs cannot be mixed.
//
// One thread at a time may use ms::in and ms::out, either of them: a read may flush.
//
// C++17, POSIX; g++ and clang++.
#ifndef MILLSTREAM_STDIO_HPP
#define MILLSTREAM_STDIO_HPP

#include <cstdio>

#include <unistd.h>

#include <millstream/error.hpp>
#include <millstream/input.hpp>
#include <millstream/output.hpp>
#include <millstream/put.hpp>

namespace ms {
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
/// Standard input. Flushes ms::out before it reads from anything but a regular file.
inline input &in = detail::lasting_in.object;

namespace detail {

/// Its destructor is the last flush.
struct last_flush {
    last_flush() {} // at run time: older objects are destroyed later
    last_flush(const last_flush &) = delete;
    last_flush &operator=(const last_flush &) = delete;
    ~last_flush() {
        if (out.flush_finally())
            return;
        std::fprintf(stderr, "%s\n", sentence(out.describe()).c_str());
        std::fflush(nullptr);
        ::_exit(1); // exit() is on its way already, with another status
    }
};

inline const last_flush at_exit;

} // namespace detail
} // namespace ms

#endif // MILLSTREAM_STDIO_HPP
