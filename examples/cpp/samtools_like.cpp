// Counts the records of each chromosome in the output of a command, such as `samtools view -h reads.bam`.
//
//     samtools_like COMMAND [ARGUMENT...]
//
// If the command fails, this program fails too, so it never prints the count of only some of the records.
#include <millstream/reader.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

int main(int argc, char **argv) try {
    std::map<std::string, std::uint64_t, std::less<>> counts;
    for (std::string_view line : millstream::lines(millstream::command(std::span(argv + 1, argv + argc)))) {
        if (line.starts_with('@'))
            continue; // the header
        // Name, flags, chromosome, …, separated by tabs.
        const auto flags = line.find('\t') + 1;
        const auto begin = line.find('\t', flags) + 1;
        const auto chromosome = line.substr(begin, line.find('\t', begin) - begin);
        auto found = counts.find(chromosome);
        if (found == counts.end())
            found = counts.emplace(chromosome, 0).first;
        ++found->second;
    }
    for (const auto &[chromosome, count] : counts)
        std::cout << chromosome << '\t' << count << '\n';
    return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const millstream::error &error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
}
