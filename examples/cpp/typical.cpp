// Short programs that most users need, each a function.
//
//     typical PROGRAM ARGUMENT...
#include <millstream/bson.hpp>
#include <millstream/pipe.hpp>
#include <millstream/reader.hpp>
#include <millstream/writer.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

// A command that fails after some output.
void failing(const millstream::command &command) {
    int lines = 0;
    try {
        for ([[maybe_unused]] std::string_view line : millstream::lines(command))
            ++lines;
        std::cout << lines << " lines, complete\n";
    } catch (const millstream::error &error) {
        std::cout << lines << " lines, then: " << error.what() << '\n';
        if (error.code() == millstream::errc::command_failed)
            std::cout << "status " << error.command()->value << ", " << error.command()->stderr_tail;
    }
}

// Lines of one compressed file that are written to another.
void filter(const char *from, const char *to) {
    millstream::writer out(millstream::path{to}); // zstd for a name that ends with .zst; the input is recognised
    millstream::pipe(millstream::path{from})
        .lines()
        .filter([](std::string_view line) { return line.find("NO") != line.npos; })
        .write_to(out);
    out.close(); // the file appears here; if the pipe had failed, there would be none
}

int number_of(std::string_view line) {
    int number = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), number).ec != std::errc())
        throw std::runtime_error("not a number");
    return number;
}

// A function that runs on four threads.
void parallel(const char *path) {
    auto numbers = millstream::pipe(millstream::path{path}).lines().parallel(4, [](auto stages) {
        return std::move(stages).map(number_of); // called from threads of the pipe
    });
    try {
        numbers.for_each([](int number) { std::cout << number << '\n'; }); // in the order of the lines
    } catch (const std::exception &error) {
        // All results before the exception have been printed. It arrives as it was thrown; the pipe knows the place.
        std::cout << error.what() << " in record " << *numbers.last_error()->record() << '\n';
    }
}

// An array of numbers in each document of a dump.
void arrays(const char *path) {
    for (const millstream::bson::document &document : millstream::bson::documents(millstream::path{path})) {
        double sum = 0;
        for (double value : document["values"].as<std::vector<double>>())
            sum += value;
        std::cout << sum << '\n';
    }
}

// A command that may hang.
void hanging(const millstream::command &command) {
    using namespace std::chrono_literals;
    try {
        for (std::string_view line : millstream::lines(command, {.total_timeout = 2s}))
            std::cout << line << '\n';
    } catch (const millstream::error &error) {
        // The lines before have been printed, and the command has been stopped.
        std::cout << (error.code() == millstream::errc::timed_out ? "too late" : error.what()) << '\n';
    }
}

} // namespace

int main(int argc, char **argv) try {
    const std::string_view program = argc > 2 ? argv[1] : "";
    if (program == "failing")
        failing(millstream::command{"sh", "-c", argv[2]});
    else if (program == "filter" && argc > 3)
        filter(argv[2], argv[3]);
    else if (program == "parallel")
        parallel(argv[2]);
    else if (program == "arrays")
        arrays(argv[2]);
    else if (program == "hanging")
        hanging(millstream::command{"sh", "-c", argv[2]});
    else
        return std::cerr << "typical: one of failing, filter, parallel, arrays, hanging\n", 2;
    return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const millstream::error &error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
}
