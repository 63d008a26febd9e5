// Reads the number of pairs, then the pairs, and prints the larger number of each pair.
#include <algorithm>
#include <cstdint>
#include <millstream/stdio.hpp>

int main() {
    std::uint32_t a, b;
    for (auto pairs = millstream::in.require<std::uint32_t>(); pairs > 0; pairs--) {
        millstream::in >> a >> b; // a number that is missing, invalid or too large is an error
        millstream::out << std::max(a, b) << '\n';
    }
}
