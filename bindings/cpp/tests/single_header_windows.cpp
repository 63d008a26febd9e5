// The minified form, pasted as into a contest program, compiled for Windows. The readable form is included after it.

#include "../single/millstream_stdio_minified.hpp"

#include "../single/millstream_stdio.hpp"

int main() {
    long long sum = 0, value = 0;
    double real = 0;
    while (ms::in >> value >> real)
        sum += value;
    ms::out.println("sum ", sum, ' ', ms::hex(255), ' ', ms::fixed(real, 2), ' ', ms::json("text"));
}
