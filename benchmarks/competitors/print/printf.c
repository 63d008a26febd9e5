/* printf, with stdio's own buffer. */
#include <inttypes.h>
#include <stdio.h>

#include "task.h"

int main(int argc, char **argv) {
    const struct task task = task_of(argc, argv);
    uint64_t state = RANDOM_SEED;
    for (uint64_t i = 0; i < task.count; i++) {
        printf("Hello, %" PRIu64 "\t", task.is_random ? random_number(&state) : i);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
