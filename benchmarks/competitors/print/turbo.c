/* A counter that is kept and incremented as text: no number is ever converted to digits. Only for the counter. */
#include "task.h"

enum { BUFFER = 64 * 1024, LONGEST = 32, GREETING = 7 };

/* The whole record, and its length. */
static char record[LONGEST] = "Hello, 0\t";
static size_t length = GREETING + 2;

static void count_up(void) {
    char *digit = record + length - 2;
    while (*digit == '9') {
        *digit-- = '0';
    }
    if (*digit != ' ') {
        ++*digit;
        return;
    }
    /* All digits were nines, so one more digit is needed. */
    record[GREETING] = '1';
    record[length - 1] = '0';
    record[length++] = '\t';
}

int main(int argc, char **argv) {
    const struct task task = task_of(argc, argv);
    if (task.is_random) {
        return 2;
    }
    static char buffer[BUFFER];
    size_t used = 0;
    for (uint64_t i = 0; i < task.count; i++) {
        if (used + length > BUFFER) {
            write_all(buffer, used);
            used = 0;
        }
        memcpy(buffer + used, record, length);
        used += length;
        count_up();
    }
    write_all(buffer, used);
    return 0;
}
