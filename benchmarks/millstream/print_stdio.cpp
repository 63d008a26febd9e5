// Prints the counter and the random numbers of the other programs with millstream::out.print.
#include <millstream/stdio.hpp>

#include "print/task.h"

int main(int argc, char **argv) {
    const task task = task_of(argc, argv);
    if (task.is_random) {
        std::uint64_t state = RANDOM_SEED;
        for (std::uint64_t i = 0; i < task.count; i++)
            millstream::out.print("Hello, ", random_number(&state), '\t');
    } else {
        for (std::uint64_t i = 0; i < task.count; i++)
            millstream::out.print("Hello, ", i, '\t');
    }
}
