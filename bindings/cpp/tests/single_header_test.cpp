// Tests the one-file form of stdio.hpp without access to other headers, included twice and from two files, and C++20
// additions.

#include SINGLE_HEADER

#include SINGLE_HEADER

#include <array>
#include <iterator>
#include <span>

static_assert(std::output_iterator<ms::inserter, const char &>, "what std::format_to asks for");

ms::output &out_of_another_file();

int main() {
    int sum = 0, value = 0;
    while (ms::in >> value)
        sum += value;
    const std::array<char, 4> label{'s', 'u', 'm', ' '};
    ms::out.write(std::span(label)).println(sum);
    return &ms::out == &out_of_another_file() ? 0 : 1;
}
