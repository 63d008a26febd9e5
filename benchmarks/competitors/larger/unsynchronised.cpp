// Prints the larger of two numbers per line with streams that are not synchronised with stdio or tied to each other,
// and without std::endl.
#include <algorithm>
#include <cstdint>
#include <iostream>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    std::uint32_t lines = 0;
    std::cin >> lines;
    for (std::uint32_t i = 0; i < lines; i++) {
        std::uint32_t a = 0;
        std::uint32_t b = 0;
        std::cin >> a >> b;
        std::cout << std::max(a, b) << '\n';
    }
    return std::cin && std::cout.flush() ? 0 : 1;
}
