/* The counter of turbo.c, written directly into a mapped file. Standard output must be a file that is also readable.
 * Only for the counter.
 *
 * The file grows in steps. Each step is mapped while it is written, and the file is truncated to its final length at
 * the end.
 */
#define _GNU_SOURCE
#include "task.h"

#include <sys/mman.h>

enum { LONGEST = 32, GREETING = 7 };
static const size_t STEP = (size_t)64 << 20;

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
    record[GREETING] = '1';
    record[length - 1] = '0';
    record[length++] = '\t';
}

static char *map_step(size_t start) {
    if (ftruncate(STDOUT_FILENO, (off_t)(start + STEP)) != 0) {
        exit(1);
    }
    char *step = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_SHARED, STDOUT_FILENO, (off_t)start);
    if (step == MAP_FAILED) {
        exit(1);
    }
    return step;
}

int main(int argc, char **argv) {
    const struct task task = task_of(argc, argv);
    if (task.is_random) {
        return 2;
    }
    size_t start = 0;
    size_t used = 0;
    char *step = map_step(start);
    for (uint64_t i = 0; i < task.count; i++) {
        if (used + length > STEP) {
            /* This record extends into the next step. */
            const size_t here = STEP - used;
            memcpy(step + used, record, here);
            munmap(step, STEP);
            start += STEP;
            step = map_step(start);
            memcpy(step, record + here, length - here);
            used = length - here;
        } else {
            memcpy(step + used, record, length);
            used += length;
        }
        count_up();
    }
    munmap(step, STEP);
    return ftruncate(STDOUT_FILENO, (off_t)(start + used)) == 0 ? 0 : 1;
}
