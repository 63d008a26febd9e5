// Checks with C++ that a command that fails is an error after its last line.
#include <millstream/reader.hpp>

int main() {
    int lines = 0;
    try {
        for (auto line : millstream::lines(millstream::command{"sh", "-c", "echo one; exit 3"}))
            lines += line == "one";
    } catch (const millstream::error &error) {
        return lines == 1 && error.code() == millstream::errc::command_failed ? 0 : 1;
    }
    return 1;
}
