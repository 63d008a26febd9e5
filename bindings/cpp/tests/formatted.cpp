// Prints with format strings, with {fmt} or with std::format: see formatted.hpp. It exits with status 0 if the output
// is as expected, and with status 77 if neither is available.
#ifdef WITH_FMT
#include <fmt/format.h>
#endif

#include <millstream/formatted.hpp>
#include <millstream/output.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>

#if defined(FMT_FORMAT_H_) || defined(__cpp_lib_format)

namespace {

struct text_output {
    std::string text;
    void print(std::string_view part) { text += part; }
};

int failures = 0;
void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "failed: %s\n", what);
        ++failures;
    }
}

} // namespace

int main() {
    text_output to;
    const std::string name = "name";
    int number = 42;
    millstream::format_to(millstream::format_to(to, "{:>6}|{:.2f}|", name, 1.005), "{0:x}{0}\n", number);
    expect(to.text == "  name|1.00|2a42\n", "the text of two calls");
    for (const std::size_t size : {499u, 500u, 501u, 5000u}) {
        to.text.clear();
        millstream::format_to(to, "{}", std::string(size, 'x'));
        expect(to.text == std::string(size, 'x'), "texts around the size of the buffer");
    }
    to.text.clear();
    try {
        millstream::format_to(to, "before {:{}}", 1, -1);
        expect(false, "an invalid width is an error");
    } catch (const std::runtime_error &) {
        expect(to.text.empty(), "nothing is printed if formatting fails");
    }
    int ends[2];
    if (::pipe(ends) != 0)
        return 1;
    millstream::output out(ends[1]);
    millstream::format_to(out, "{}-{}", 1, 2).flush();
    char read[8] = "";
    expect(::read(ends[0], read, sizeof read) == 3 && std::string_view(read) == "1-2", "a millstream::output");
    return failures == 0 ? 0 : 1;
}

#else
int main() { return 77; }
#endif
