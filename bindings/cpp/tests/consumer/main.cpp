// Uses one thing of each installed header, from outside the repository.

#include <millstream/smart_buffer.hpp>

int main() {
    std::string text;
    SyncIOLazyWriteBuffer<std::size_t> out(8, [&](const char *from, std::size_t len) { text.append(from, len); });
    out << "Hello, " << 42 << '\n';
    out.close();
    return text == "Hello, 42\n" ? 0 : 1;
}
