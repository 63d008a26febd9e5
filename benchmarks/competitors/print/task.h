/* The task of every program here: print `Hello, `, NUMBER and a tab to standard output, COUNT times.
 *
 * Usage: PROGRAM counter|random COUNT. Exit status 1: a write failed; 2: invalid arguments. For C and C++.
 */
#ifndef MILLSTREAM_BENCH_TASK_H
#define MILLSTREAM_BENCH_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

struct task {
    bool is_random;
    uint64_t count;
};

static inline struct task task_of(int argc, char **argv) {
    struct task task = {false, 0};
    if (argc != 3) {
        exit(2);
    }
    task.is_random = strcmp(argv[1], "random") == 0;
    if (!task.is_random && strcmp(argv[1], "counter") != 0) {
        exit(2);
    }
    task.count = strtoull(argv[2], NULL, 10);
    return task;
}

/* Writes all bytes to standard output. The program exits if a write fails. */
static inline void write_all(const char *bytes, size_t length) {
    while (length > 0) {
        const ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0) {
            exit(1);
        }
        bytes += written;
        length -= (size_t)written;
    }
}

#endif
