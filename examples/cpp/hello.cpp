// Asks for a name and prints a greeting. Try: printf 'you\n' | ./hello
#include <millstream/stdio.hpp>

int main() {
    millstream::out.print("Your name? "); // is visible before the program waits
    millstream::out.println("Hello, ", millstream::in.line(), '!');
}
