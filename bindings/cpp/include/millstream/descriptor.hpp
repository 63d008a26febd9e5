// millstream/descriptor.hpp: the system functions for input.hpp and output.hpp: reads, writes and waits.
//
// Works on POSIX, and on Windows with mingw-w64. On Windows, descriptors stay in their mode, like those of stdio: in
// text mode, the default, the C library converts line ends. For raw bytes, call `_setmode(fd, _O_BINARY)` before
// anything is read or printed.
//
// Needs C++17 and no library.
#ifndef MILLSTREAM_DESCRIPTOR_HPP
#define MILLSTREAM_DESCRIPTOR_HPP

#if __cplusplus <= 201402L
#error "millstream/descriptor.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cstddef>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#ifndef _WIN32
#include <poll.h>
#endif

namespace millstream::detail {

/// The maximum number of bytes per call: Linux accepts less than 2 GiB, and other systems accept no more than that.
constexpr std::size_t most_in_a_call = std::size_t{1} << 30;

#ifdef _WIN32
using system_size = unsigned;
/// Descriptors of Windows' C library block, so there is nothing to wait for.
inline void wait_to_read(int) noexcept {}
inline void wait_to_write(int) noexcept {}
#else
using system_size = std::size_t;
/// Waits until a non-blocking descriptor can be used again. Errors are returned by the next read or write.
inline void wait_for(int fd, short events) noexcept {
    struct pollfd one = {fd, events, 0};
    (void)::poll(&one, 1, -1);
}
inline void wait_to_read(int fd) noexcept { wait_for(fd, POLLIN); }
inline void wait_to_write(int fd) noexcept { wait_for(fd, POLLOUT); }
#endif

/// Like read(2) and write(2): returns the number of bytes, or -1 with errno set.
inline ssize_t read_some(int fd, char *to, std::size_t space) noexcept {
    return ::read(fd, to, static_cast<system_size>(space < most_in_a_call ? space : most_in_a_call));
}
inline ssize_t write_some(int fd, const char *from, std::size_t count) noexcept {
    return ::write(fd, from, static_cast<system_size>(count < most_in_a_call ? count : most_in_a_call));
}

inline std::string descriptor_name(int fd) {
    switch (fd) {
    case STDIN_FILENO:
        return "standard input";
    case STDOUT_FILENO:
        return "standard output";
    case STDERR_FILENO:
        return "standard error";
    default:
        return "file descriptor " + std::to_string(fd);
    }
}

} // namespace millstream::detail

#endif // C++17
#endif // MILLSTREAM_DESCRIPTOR_HPP
