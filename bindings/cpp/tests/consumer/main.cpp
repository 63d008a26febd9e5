// Uses one declaration of each installed header, from outside the repository, and all headers together. If the
// library is available, this includes the headers that need it.

#include <millstream/error.hpp>
#include <millstream/numbers.h>
#include <millstream/put.hpp>
#include <millstream/smart_buffer.hpp>
#include <millstream/stdio.hpp>

#ifdef WITH_LIBRARY
#include <millstream/reader.hpp>
#include <millstream/writer.hpp>
#endif

namespace ms = millstream;

int main() {
    std::string text;
    SyncIOLazyWriteBuffer<std::size_t> buffer(8, [&](const char *from, std::size_t len) { text.append(from, len); });
    buffer << "Hello, " << 42 << '\n';
    buffer.close();

    char digits[MILLSTREAM_NUMBER_SLACK];
    text.append(digits, millstream_put_u32(digits, 42));
    if (text != "Hello, 42\n42")
        return 1;

    ms::out.println("hello ", ms::hex(255));
#ifdef WITH_LIBRARY
    try {
        ms::writer writer(ms::to_memory{});
        for (const std::string_view line : ms::lines(ms::command{"seq", "3"}))
            writer.print(line, ' ');
        writer.close();
        ms::out.println(writer.memory());
        return writer.memory() == "1 2 3 " ? 0 : 1;
    } catch (const ms::error &error) {
        ms::out.println(error.what());
        return 1;
    }
#endif
}
