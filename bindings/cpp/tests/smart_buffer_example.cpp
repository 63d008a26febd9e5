// Uses every class of the drop-in once, as in its documentation; the program fails if a result is wrong. It is compiled
// for Windows too.

#include "millstream/smart_buffer.hpp"

namespace ms = millstream;

namespace {

void check(bool right, const char *what) {
    if (!right) {
        std::fprintf(stderr, "wrong: %s\n", what);
        std::exit(1);
    }
}

/// Prints the larger number of each line with sscanf and sprintf, like programs for the original.
std::string larger_of_two(std::string input) {
    std::string output;
    {
        const auto reader = [&](char *out, const std::uint32_t len) {
            const auto count = static_cast<std::uint32_t>(input.copy(out, len));
            input.erase(0, count);
            return count;
        };
        const auto writer = [&](char *out, const std::uint32_t len) {
            output.append(out, len);
            return len;
        };
        SyncIOReadBuffer<std::uint32_t> in(16);
        SyncIOLazyWriteBuffer<std::uint32_t> out(16, writer);
        char line[128] = {};
        while (in.readUntil(line, reader, '\n') > 0) {
            unsigned a = 0;
            unsigned b = 0;
            check(std::sscanf(line, "%u %u", &a, &b) == 2, "two numbers a line");
            char text[32];
            out.write(text, static_cast<std::uint32_t>(std::snprintf(text, sizeof text, "%u\n", a > b ? a : b)));
        }
    }
    return output;
}

/// Prints the larger number of each line with the operators.
std::string larger_of_two_shorter(std::string input) {
    std::string output;
    SyncIOReadBuffer<std::size_t> buffer(16);
    ms::Extractor in(buffer, [&](char *to, std::size_t len) {
        const std::size_t count = input.copy(to, len);
        input.erase(0, count);
        return count;
    });
    SyncIOLazyWriteBuffer<std::size_t> out(16, [&](const char *from, std::size_t len) { output.append(from, len); });
    for (unsigned a = 0, b = 0; in >> a >> b;) {
        out << std::max(a, b) << '\n';
    }
    out.close();
    return output;
}

/// Copies bytes through the asynchronous pair, whose io answers immediately here.
std::string copied(std::string input) {
    using Reader = AsyncIOReadBuffer<std::uint32_t>;
    using Writer = AsyncIOWriteBuffer<std::uint32_t>;
    std::string output;
    Reader reader(8);
    Writer writer(8, [&](const char *from, const std::uint32_t &len, const Writer::WriteResultHandler &handler) {
        output.append(from, len);
        handler(len);
    });
    char piece[5];
    std::function<void()> read_on;
    const Reader::IOInterface io = [&](char *to, const std::uint32_t &len, const Reader::ReadResultHandler &handler) {
        const auto count = static_cast<std::uint32_t>(input.copy(to, len));
        input.erase(0, count);
        handler(count);
    };
    read_on = [&] {
        reader.read(piece, sizeof piece, io, [&](const std::uint32_t &len) {
            writer.write(piece, len, [&](const std::uint32_t &taken) {
                if (taken == sizeof piece) {
                    read_on();
                }
            });
        });
    };
    read_on();
    return output;
}

} // namespace

int main() {
    const std::string input = "1 1742111530\n1742111529 1742111530\n7 3\n";
    const std::string larger = "1742111530\n1742111530\n7\n";
    check(larger_of_two(input) == larger, "lines");
    check(larger_of_two_shorter(input) == larger, "operators");
    check(copied(input) == input, "the asynchronous pair");
    return 0;
}
