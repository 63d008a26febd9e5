// Lines through a C++ pipe with stages that pass them on, fused by the compiler or boxed; and the same in a handwritten
// loop over batches.
//
// Usage: PROGRAM fused|boxed|loop STAGES INPUT. Exit status 1: an error of the library; 2: invalid arguments. Fused
// stages are part of a type, so only 0, 1 or 10 of them are possible.
#include <millstream/pipe.hpp>

#include <iostream>

#include "passes.h"

namespace {

// Each stage is a separate function, as in a real program.
template <int>
auto hand_on() {
    return [](std::string_view line) { return line; };
}

template <int Stages, class Pipe>
auto with_stages(Pipe &&pipe) {
    if constexpr (Stages == 0)
        return std::move(pipe);
    else
        return with_stages<Stages - 1>(std::move(pipe).map(hand_on<Stages>()));
}

auto adding_to(tally &all) {
    return [&all](std::string_view line) { tally_add(&all, line.data(), line.size()); };
}

template <int Stages>
tally fused(int, const char *input) {
    tally all{};
    with_stages<Stages>(millstream::pipe(millstream::path{input}).lines()).for_each(adding_to(all));
    return all;
}

tally boxed(int stages, const char *input) {
    tally all{};
    std::vector<millstream::stage<>> chosen;
    for (int i = 0; i < stages; ++i)
        chosen.push_back(millstream::stages().map(hand_on<0>()).boxed("none"));
    millstream::pipe(millstream::path{input}).lines().then_all(std::move(chosen)).for_each(adding_to(all));
    return all;
}

// Stages that do nothing need no code in this loop.
tally by_hand(int, const char *input) {
    tally all{};
    millstream::reader reader(millstream::path{input});
    millstream::framer lines = millstream::framer::lines();
    while (const auto batch = reader.next_batch(lines))
        for (const std::string_view line : *batch)
            tally_add(&all, line.data(), line.size());
    reader.close();
    return all;
}

pass_function pass_of(std::string_view way, int stages) {
    if (way == "loop")
        return by_hand;
    if (way == "boxed")
        return boxed;
    if (way != "fused")
        return nullptr;
    switch (stages) {
    case 0:
        return fused<0>;
    case 1:
        return fused<1>;
    case 10:
        return fused<10>;
    default:
        return nullptr;
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const int stages = static_cast<int>(std::strtol(argv[2], nullptr, 10));
    const pass_function pass = pass_of(argv[1], stages);
    if (pass == nullptr)
        return 2;
    try {
        return passes_report(pass, stages, argv[3]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
