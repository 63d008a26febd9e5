// Uses one thing of each installed header, from outside the repository, and all of them together.

#include <millstream/numbers.h>
#include <millstream/smart_buffer.hpp>
#include <millstream/stdio.hpp>

int main() {
    std::string text;
    SyncIOLazyWriteBuffer<std::size_t> buffer(8, [&](const char *from, std::size_t len) { text.append(from, len); });
    buffer << "Hello, " << 42 << '\n';
    buffer.close();

    char digits[MILLSTREAM_NUMBER_SLACK];
    text.append(digits, millstream_put_u32(digits, 42));

    ms::out.print("Hello, ", 42, '\n');
    return text == "Hello, 42\n42" ? 0 : 1;
}
