/* Prints with Millstream's numbers.h, which a C program can use without linking a library, and the program's own
 * buffer. */
#include <millstream/numbers.h>

#include "print/task.h"

enum { BUFFER = 64 * 1024, LONGEST = 8 + MILLSTREAM_NUMBER_SLACK };

int main(int argc, char **argv) {
    const struct task task = task_of(argc, argv);
    static char buffer[BUFFER];
    char *at = buffer;
    uint64_t state = RANDOM_SEED;
    for (uint64_t i = 0; i < task.count; i++) {
        if (buffer + BUFFER - at < LONGEST) {
            write_all(buffer, (size_t)(at - buffer));
            at = buffer;
        }
        memcpy(at, "Hello, ", 7);
        at = millstream_put_u64(at + 7, task.is_random ? random_number(&state) : i);
        *at++ = '\t';
    }
    write_all(buffer, (size_t)(at - buffer));
    return 0;
}
