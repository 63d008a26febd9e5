// The larger of two numbers a line, with ms::in and ms::out.
#include <algorithm>
#include <cstdint>

#include <millstream/stdio.hpp>

int main() {
    const auto lines = ms::in.require<std::uint32_t>();
    for (std::uint32_t i = 0; i < lines; i++) {
        std::uint32_t a = 0;
        std::uint32_t b = 0;
        ms::in >> a >> b;
        ms::out << std::max(a, b) << '\n';
    }
}
