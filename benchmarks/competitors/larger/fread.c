/* Prints the larger of two numbers per line: reads the whole input with fread, parses it with handwritten code, and has
 * its own output buffer. Does not validate the numbers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 64 * 1024, LONGEST = 11 };

/* Reads all of standard input and appends a byte that ends the last number. */
static char *read_all(void) {
    size_t capacity = 1 << 20;
    size_t used = 0;
    char *input = malloc(capacity);
    while (input != NULL) {
        used += fread(input + used, 1, capacity - used, stdin);
        if (used < capacity) {
            input[used] = '\0';
            return input;
        }
        capacity *= 2;
        input = realloc(input, capacity);
    }
    exit(1);
}

static uint32_t read_number(const char **at) {
    const char *p = *at;
    while (*p == ' ' || *p == '\n') {
        p++;
    }
    uint32_t number = 0;
    while (*p >= '0' && *p <= '9') {
        number = number * 10 + (uint32_t)(*p++ - '0');
    }
    *at = p;
    return number;
}

static char *write_number(char *to, uint32_t number) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *to++ = digits[--count];
    }
    *to++ = '\n';
    return to;
}

int main(void) {
    static char buffer[BUFFER];
    char *const input = read_all();
    const char *at = input;
    char *to = buffer;
    const uint32_t lines = read_number(&at);
    for (uint32_t i = 0; i < lines; i++) {
        if (to > buffer + BUFFER - LONGEST) {
            fwrite(buffer, 1, (size_t)(to - buffer), stdout);
            to = buffer;
        }
        const uint32_t a = read_number(&at);
        const uint32_t b = read_number(&at);
        to = write_number(to, a > b ? a : b);
    }
    fwrite(buffer, 1, (size_t)(to - buffer), stdout);
    free(input);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
