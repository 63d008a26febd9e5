// Small programs as people write them for iostream. This file is compiled twice, with iostream and with cincout.hpp;
// cincout_test.cpp compares what the two do with the same input. Nothing below the includes depends on which it is.
#ifdef WITH_CINCOUT
#include <millstream/cincout.hpp>
#else
#include <iostream>
#endif

#include <algorithm>
#include <atomic>
#include <bitset>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

struct program {
    const char *name;
    int (*run)();
};
static std::vector<program> &programs() {
    static std::vector<program> all;
    return all;
}
struct registered {
    registered(const char *name, int (*run)()) { programs().push_back({name, run}); }
};
#define PROGRAM(name)                                                                                                  \
    static int name();                                                                                                 \
    static const registered name##_registered(#name, name);                                                            \
    static int name()

#include "formats.hpp"
#include "numbers.hpp"
#include "state.hpp"
#include "text.hpp"
#include "types.hpp"

#include <sys/wait.h>
#include <unistd.h>

// Without arguments, prints the names of all programs. Otherwise, the arguments are the name of a program and, for each
// run, the descriptors of its standard input, output and error; this prints how each run ended. Each run is a process
// in the state in which main is called.
int main(int count, char **arguments) {
    const std::string_view name(count > 1 ? arguments[1] : "");
    for (const program &one : programs()) {
        if (name.empty())
            std::printf("%s\n", one.name);
        if (name != one.name)
            continue;
        std::string ends;
        for (int i = 2; i + 2 < count; i += 3) {
            const pid_t pid = ::fork();
            for (int fd = 0; fd < 3; fd++) {
                const int given = std::atoi(arguments[i + fd]);
                if (pid == 0)
                    ::dup2(given, fd);
                ::close(given);
            }
            if (pid == 0)
                std::exit(one.run());
            int status = 0;
            ::waitpid(pid, &status, 0);
            ends += std::to_string(status) + '\n';
        }
        std::fputs(ends.c_str(), stdout);
    }
    return 0;
}
