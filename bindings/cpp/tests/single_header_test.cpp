// The one-file form of stdio.hpp, with no other header of ours in reach. Includes it twice, and a second file does so
// too.

#include "../single/millstream_stdio.hpp"

#include "../single/millstream_stdio.hpp"

ms::output &out_of_another_file();

int main() {
    int sum = 0, value = 0;
    while (ms::in >> value)
        sum += value;
    ms::out.println(sum);
    return &ms::out == &out_of_another_file() ? 0 : 1;
}
