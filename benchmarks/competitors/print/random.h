/* Numbers with one to ten digits. Each length is equally likely, and within a length each number.
 *
 * The same code, and so the same numbers, as `benchmarks/runners/src/numbers.rs` and `append_int.go`. Each number is
 * computed from one step of splitmix64: its upper part selects the length, and the rest is a fraction that selects the
 * number. For C and C++.
 */
#ifndef MILLSTREAM_BENCH_RANDOM_H
#define MILLSTREAM_BENCH_RANDOM_H

#include <stdint.h>

__extension__ typedef unsigned __int128 wide;

/* Any other value gives other numbers. */
static const uint64_t RANDOM_SEED = 3;

static inline uint64_t random_number(uint64_t *state) {
    static const uint64_t first[] = {0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
    static const uint64_t count[] = {10, 90, 900, 9000, 90000, 900000, 9000000, 90000000, 900000000, 9000000000};
    *state += 0x9e3779b97f4a7c15;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    const wide tenths = (wide)z * 10;
    const uint64_t digits = (uint64_t)(tenths >> 64);
    const wide share = (wide)(uint64_t)tenths * count[digits];
    return first[digits] + (uint64_t)(share >> 64);
}

#endif
