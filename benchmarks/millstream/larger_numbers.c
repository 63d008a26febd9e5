/* Prints the larger of two numbers per line with Millstream's numbers.h and its own buffers. Exit status 1: a word that
 * is not a 32-bit number, too few numbers, or an error of the system.
 */
#include <millstream/numbers.h>

#include "print/task.h"

enum { BUFFER = 64 * 1024, LONGEST = 1 + MILLSTREAM_NUMBER_SLACK };

/* The bytes that have been read but not yet scanned. */
struct window {
    char bytes[BUFFER];
    const char *at;
    const char *end;
    bool is_last;
};

/* Moves the remaining bytes to the front and reads more after them. */
static void refill(struct window *in) {
    const size_t left = (size_t)(in->end - in->at);
    memmove(in->bytes, in->at, left);
    if (left == BUFFER) {
        exit(1); /* No number is this long. */
    }
    const ssize_t got = read(STDIN_FILENO, in->bytes + left, BUFFER - left);
    if (got < 0) {
        exit(1);
    }
    in->at = in->bytes;
    in->end = in->bytes + left + got;
    in->is_last = got == 0;
}

static uint32_t scan(struct window *in) {
    for (;;) {
        in->at = millstream_skip_space(in->at, in->end);
        uint32_t number = 0;
        const int result = in->is_last ? millstream_scan_last_u32(&in->at, in->end, &number)
                                       : millstream_scan_u32(&in->at, in->end, &number);
        if (result == MILLSTREAM_SCANNED) {
            return number;
        }
        if (result != MILLSTREAM_SCAN_MORE || in->is_last) {
            exit(1);
        }
        refill(in);
    }
}

int main(void) {
    static struct window in;
    in.at = in.end = in.bytes;
    static char buffer[BUFFER];
    char *to = buffer;
    const uint32_t lines = scan(&in);
    for (uint32_t i = 0; i < lines; i++) {
        if (buffer + BUFFER - to < LONGEST) {
            write_all(buffer, (size_t)(to - buffer));
            to = buffer;
        }
        const uint32_t a = scan(&in);
        const uint32_t b = scan(&in);
        to = millstream_put_u32(to, a > b ? a : b);
        *to++ = '\n';
    }
    write_all(buffer, (size_t)(to - buffer));
    return 0;
}
