// Small programs with ms::in and ms::out, run by stdio_program_test.cpp: the first argument selects one. Compiled with
// exceptions and without.

#include <millstream/stdio.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace ms = millstream;

namespace {

bool last_words = false, many_last_words = false;

// More than fits in a buffer.
void print_much() {
    for (int i = 0; i < 100000; i++)
        ms::out.println("line ", i);
}

// Only objects above the #include are older than its last flush.
struct speaker {
    ~speaker() {
        if (last_words)
            ms::out.println("destructor");
        if (many_last_words)
            print_much();
    }
} speaking;

void wait_for_a_byte() {
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) < 0) {
    }
}

int run(std::string_view what, const char *argument) {
    if (what == "status") {
        ms::out.print("printed");
        return 3;
    }
    if (what == "last_words") {
        last_words = true;
        std::atexit([] { ms::out.println("atexit"); });
        ms::out.println("main");
        std::exit(0);
    }
    if (what == "nothing")
        return 3;
    if (what == "broken_pipe") {
        std::signal(SIGPIPE, SIG_IGN);
        ms::out.print("lost");
        wait_for_a_byte(); // until the reader has exited
        return 3;
    }
    if (what == "stdio_too") {
        std::FILE *file = std::fopen(argument, "w");
        std::fputs("kept", file);
        ms::out.print("lost");
        return 0; // with the file open
    }
    if (what == "much") {
        std::FILE *file = std::fopen(argument, "w");
        std::fputs("kept", file);
        print_much();
        return 0;
    }
    if (what == "much_at_the_end") {
        many_last_words = true;
        return 0;
    }
    if (what == "much_noexcept") {
        []() noexcept { print_much(); }();
        return 0;
    }
    if (what == "other_input") {
        ms::out.print("before");
        ms::input other{STDIN_FILENO};
        return other.require<int>();
    }
#ifdef __cpp_exceptions
    if (what == "other_exception")
        throw std::runtime_error("mine");
    if (what == "caught") {
        try {
            print_much();
        } catch (const ms::error &error) {
            std::fprintf(stderr, "caught %s\n", std::string(ms::name(error.kind())).c_str());
        }
        return 3;
    }
#endif
    if (what == "wrong_number") {
        ms::out.print("before");
        ms::out.println(ms::in.require<int>());
        return 0;
    }
    if (what == "missing_number") {
        int number;
        ms::in >> number;
        return 0;
    }
    if (what == "ask") {
        ms::out.print("name? ");
        ms::out.println("Hello, ", ms::in.word());
        return 0;
    }
    if (what == "lines") {
        ms::out.print("held");
        wait_for_a_byte();
        ms::out.print(" back\nheld again");
        wait_for_a_byte();
        ms::out.write(" and\nagain").print(std::string_view());
        wait_for_a_byte();
        return 0;
    }
    return 99;
}

} // namespace

int main(int argc, char **argv) { return run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""); }
