// Asks for a name, and greets. Say so: printf 'you\n' | ./hello
#include <millstream/stdio.hpp>

int main() {
    ms::out.print("Your name? "); // is seen before the program waits
    ms::out.println("Hello, ", ms::in.line(), '!');
}
