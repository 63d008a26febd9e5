// Prints the larger of two numbers per line, with millstream::in and millstream::out.
#include <algorithm>
#include <cstdint>

#include <millstream/stdio.hpp>

int main() {
    const auto lines = millstream::in.require<std::uint32_t>();
    for (std::uint32_t i = 0; i < lines; i++) {
        std::uint32_t a = 0;
        std::uint32_t b = 0;
        millstream::in >> a >> b;
        millstream::out << std::max(a, b) << '\n';
    }
}
