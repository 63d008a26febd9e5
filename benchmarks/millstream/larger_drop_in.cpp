// Prints the larger of two numbers per line with the drop-in classes. Like the programs that these were made for, it
// uses buffers for std::cin and std::cout, sscanf and sprintf.
//
// Usage: larger_drop_in BUFFER-SIZE
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include <millstream/smart_buffer.hpp>

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    const auto size = static_cast<std::uint32_t>(std::stoul(argv[1]));
    const auto from_cin = [](char *out, const std::uint32_t &len) {
        std::cin.read(out, len);
        return static_cast<std::uint32_t>(std::cin.gcount());
    };
    const auto to_cout = [](char *out, const std::uint32_t &len) {
        std::cout.write(out, len);
        return len;
    };
    SyncIOReadBuffer<std::uint32_t> in(size);
    SyncIOLazyWriteBuffer<std::uint32_t> out(size, to_cout);

    // `readUntil` writes no terminating zero. After a shorter line, the rest of the previous line is still in the
    // buffer.
    char line[128] = {};
    const auto next_line = [&] { line[in.readUntil(line, from_cin, '\n')] = '\0'; };
    std::uint32_t lines = 0;
    next_line();
    if (std::sscanf(line, "%u", &lines) != 1) {
        return 1;
    }
    for (std::uint32_t i = 0; i < lines; i++) {
        std::uint32_t a = 0;
        std::uint32_t b = 0;
        next_line();
        if (std::sscanf(line, "%u %u", &a, &b) != 2) {
            return 1;
        }
        char text[16];
        out.write(text, static_cast<std::uint32_t>(std::sprintf(text, "%u\n", a > b ? a : b)));
    }
    out.flush();
    return std::cout.flush() ? 0 : 1;
}
