// Prints the larger of two numbers per line as beginners are taught: with std::cin, std::cout and std::endl.
#include <algorithm>
#include <cstdint>
#include <iostream>

int main() {
    std::uint32_t lines = 0;
    std::cin >> lines;
    for (std::uint32_t i = 0; i < lines; i++) {
        std::uint32_t a = 0;
        std::uint32_t b = 0;
        std::cin >> a >> b;
        std::cout << std::max(a, b) << std::endl;
    }
    return std::cin && std::cout ? 0 : 1;
}
