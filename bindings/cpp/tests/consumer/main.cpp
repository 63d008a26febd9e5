// Uses one thing of each installed header, from outside the repository. With the library, also of those that need it.

#include <millstream/error.hpp>
#include <millstream/numbers.h>
#include <millstream/put.hpp>
#include <millstream/smart_buffer.hpp>
#include <millstream/stdio.hpp>

#ifdef WITH_LIBRARY
#include <millstream/reader.hpp>
#include <millstream/writer.hpp>
#endif

int main() {
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
