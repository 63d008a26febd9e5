// std::cout, not synchronised with stdio: the fastest method without a separate buffer.
#include <iostream>

#include "task.h"

int main(int argc, char **argv) {
    const task task = task_of(argc, argv);
    std::ios::sync_with_stdio(false);
    std::uint64_t state = RANDOM_SEED;
    for (std::uint64_t i = 0; i < task.count; i++) {
        std::cout << "Hello, " << (task.is_random ? random_number(&state) : i) << '\t';
    }
    return std::cout.flush() ? 0 : 1;
}
