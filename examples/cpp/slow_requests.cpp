// Prints the slow requests of a log with lines of the form "PATH MILLISECONDS", from the output of a command such as
// `zcat access.log.gz`:
//
//     slow_requests LIMIT COMMAND [ARGUMENT...]
//
// Lines that are not requests are written to the file slow_requests.rejected, which appears only if everything
// succeeded.
#include <millstream/pipe.hpp>

#include <charconv>
#include <iostream>
#include <stdexcept>
#include <string>

struct request {
    std::string_view path; // a part of the line, valid as long as the batch of lines
    unsigned milliseconds;
};

static unsigned number(std::string_view text) {
    unsigned value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size() || text.empty())
        throw std::invalid_argument("no number: " + std::string(text));
    return value;
}

static request parse(std::string_view line) {
    const auto space = line.find(' ');
    if (space == line.npos)
        throw std::invalid_argument("a line without a time");
    return {line.substr(0, space), number(line.substr(space + 1))};
}

int main(int argc, char **argv) try {
    if (argc < 3)
        throw std::invalid_argument("usage: slow_requests LIMIT COMMAND [ARGUMENT...]");
    const unsigned limit = number(argv[1]);
    millstream::writer out{millstream::standard_output{}};
    millstream::writer rejected{millstream::path{"slow_requests.rejected"}};
    const millstream::pipe_summary summary =
        millstream::pipe(millstream::command(std::span(argv + 2, argv + argc)))
            .lines()
            .quarantine(rejected)
            .map(parse)
            .filter([=](const request &request) { return request.milliseconds > limit; })
            .map([](const request &request) { return request.path; })
            .write_to(out);
    out.close();
    if (summary.failed > 0)
        rejected.close();
    std::cerr << summary.items << " of " << summary.records << " requests were slow\n";
    return EXIT_SUCCESS;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
}
