/* Prints the larger of two numbers per line with the fast reader that is often pasted into programs, which reads byte
 * by byte with getchar_unlocked. Does not validate the input. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>

static uint32_t read_number(void) {
    int c = getchar_unlocked();
    while (c == ' ' || c == '\n') {
        c = getchar_unlocked();
    }
    uint32_t number = 0;
    while (c >= '0' && c <= '9') {
        number = number * 10 + (uint32_t)(c - '0');
        c = getchar_unlocked();
    }
    return number;
}

static void write_number(uint32_t number) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        putchar_unlocked(digits[--count]);
    }
    putchar_unlocked('\n');
}

int main(void) {
    const uint32_t lines = read_number();
    for (uint32_t i = 0; i < lines; i++) {
        const uint32_t a = read_number();
        const uint32_t b = read_number();
        write_number(a > b ? a : b);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
