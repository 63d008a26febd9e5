/* Timing of pipelines in C and C++, which works as for those in Rust: the first pass over the input gives the answer,
 * then several passes are timed and their median is printed. A pass includes opening the file and finding the lines.
 *
 * This header can be used from C and C++.
 */
#ifndef MILLSTREAM_BENCH_PASSES_H
#define MILLSTREAM_BENCH_PASSES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The output of the last stage: lines are counted and each one is accessed. */
struct tally {
    uint64_t count, length, first;
};

static inline void tally_add(struct tally *tally, const char *line, size_t len) {
    tally->count++;
    tally->length += len;
    tally->first += len > 0 ? (unsigned char)line[0] : 0U;
}

/* Runs one pass with this many stages over the lines of a file. The program exits on failure. */
typedef struct tally (*pass_function)(int stages, const char *input);

enum {
    PASSES_LEAST = 3, /* The minimum number of timed passes. */
    PASSES_MOST = 15
};
/* After the minimum number, passes are timed until their total reaches this time or their number the maximum. */
#define PASSES_ENOUGH_NS 400000000LL

static inline int64_t passes_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline int passes_compare(const void *a, const void *b) {
    const int64_t *left = (const int64_t *)a, *right = (const int64_t *)b;
    return (*left > *right) - (*left < *right);
}

static inline int passes_report(pass_function pass, int stages, const char *input) {
    const struct tally tally = pass(stages, input);
    int64_t times[PASSES_MOST], sum = 0;
    size_t count = 0;
    while (count < PASSES_LEAST || (count < PASSES_MOST && sum < PASSES_ENOUGH_NS)) {
        const int64_t start = passes_now();
        pass(stages, input);
        times[count] = passes_now() - start;
        sum += times[count++];
    }
    qsort(times, count, sizeof times[0], passes_compare);
    printf("count=%llu length=%llu first=%llu ns=%lld\n", (unsigned long long)tally.count,
           (unsigned long long)tally.length, (unsigned long long)tally.first, (long long)times[count / 2]);
    return 0;
}

#endif
