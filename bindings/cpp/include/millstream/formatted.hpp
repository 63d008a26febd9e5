// millstream/formatted.hpp: prints with the format strings of std::format or {fmt}.
//
//     #include <millstream/formatted.hpp>
//
//     millstream::format_to(millstream::out, "{:>8} {:.3f}\n", name, seconds);
//
// The output is a `millstream::output`, `writer` or `shared_writer`, or any object with `print(std::string_view)`. The
// whole text is formatted before it is printed, so nothing is printed if formatting fails. Up to 500 bytes need no
// memory from the heap.
//
// {fmt} is used if <fmt/format.h> is included before this header, otherwise std::format if the standard library has it
// (libstdc++ 13, libc++ 17). Files of one program may differ in this.
//
// Needs C++17 with {fmt}, and C++20 otherwise; no library of Millstream.
#ifndef MILLSTREAM_FORMATTED_HPP
#define MILLSTREAM_FORMATTED_HPP

#if __cplusplus <= 201402L
#error "millstream/formatted.hpp needs C++17: compile it with -std=c++17 or later"
#else

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#if !defined(FMT_FORMAT_H_) && __cplusplus > 201703L
#include <version>
#ifdef __cpp_lib_format
#include <format>
#endif
#endif

namespace millstream {

#if defined(FMT_FORMAT_H_)

/// Prints the arguments as the format string says, which is checked at compile time.
template <class Out, class... Arguments>
Out &format_to(Out &out, fmt::format_string<Arguments...> format, Arguments &&...arguments) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
    out.print(std::string_view(text.data(), text.size()));
    return out;
}

#elif defined(__cpp_lib_format)

/// Prints the arguments as the format string says, which is checked at compile time.
template <class Out, class... Arguments>
Out &format_to(Out &out, std::format_string<Arguments...> format, Arguments &&...arguments) {
    char few[500];
    const auto size = static_cast<std::size_t>(
        std::format_to_n(few, static_cast<std::ptrdiff_t>(sizeof few), format, std::forward<Arguments>(arguments)...)
            .size);
    if (size <= sizeof few)
        out.print(std::string_view(few, size));
    else
        out.print(std::format(format, std::forward<Arguments>(arguments)...)); // formatting does not change arguments
    return out;
}

#endif

} // namespace millstream

#endif // C++17
#endif // MILLSTREAM_FORMATTED_HPP
