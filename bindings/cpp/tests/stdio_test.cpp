// Tests of millstream/output.hpp and millstream/input.hpp with descriptors of every kind. Tests of the end of a
// program, and of terminals, are in stdio_program_test.cpp.

#include <millstream/stdio.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ms = millstream;

namespace place {

// A user's type with both hooks.
struct point {
    int x, y;
};
void ms_put(ms::output &out, const point &p) { out.print('(', p.x, ", ", p.y, ')'); }
bool ms_scan(ms::input &in, point &p) { return in.scan(p.x, p.y); }

} // namespace place

namespace {

// ---- Descriptors --------------------------------------------------------------------------------------------------

struct Pipe {
    int reading = -1, writing = -1;
    Pipe() {
        int ends[2];
        if (::pipe(ends) != 0)
            std::abort();
        reading = ends[0];
        writing = ends[1];
    }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    ~Pipe() {
        close_reading();
        close_writing();
    }
    void close_reading() { close(reading); }
    void close_writing() { close(writing); }

  private:
    static void close(int &fd) {
        if (fd >= 0)
            ::close(fd);
        fd = -1;
    }
};

std::string read_all(int fd) {
    std::string all;
    std::array<char, 4096> piece;
    ssize_t count;
    while ((count = ::read(fd, piece.data(), piece.size())) > 0 || (count < 0 && errno == EINTR))
        if (count > 0)
            all.append(piece.data(), static_cast<size_t>(count));
    return all;
}

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count > 0)
            bytes.remove_prefix(static_cast<size_t>(count));
        else if (errno != EINTR)
            std::abort();
    }
}

// Returns the output of `print`, through a file.
std::string printed(const std::function<void(ms::output &)> &print) {
    std::string path = testing::TempDir() + "millstream_stdio_test_XXXXXX";
    int fd = ::mkstemp(path.data());
    ::unlink(path.c_str());
    {
        ms::output out{fd};
        print(out);
    }
    ::lseek(fd, 0, SEEK_SET);
    std::string all = read_all(fd);
    ::close(fd);
    return all;
}

template <class... Parts>
std::string text_of(const Parts &...parts) {
    return printed([&](ms::output &out) { out.print(parts...); });
}

// Calls `use` with an input that gets each of the pieces from a separate read.
void with_input(const std::vector<std::string> &pieces, const std::function<void(ms::input &)> &use) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    for (const std::string &piece : pieces) {
        if (piece.empty()) // an empty piece would be the end
            continue;
        ASSERT_EQ(::send(ends[0], piece.data(), piece.size(), 0), static_cast<ssize_t>(piece.size()));
    }
    ::close(ends[0]);
    {
        ms::input in{ends[1]};
        use(in);
    }
    ::close(ends[1]);
}

// Calls `use` with an input of any size, which a thread writes to a pipe.
void with_large_input(const std::string &text, const std::function<void(ms::input &)> &use) {
    Pipe pipe;
    std::thread feeder([&] {
        write_all(pipe.writing, text);
        pipe.close_writing();
    });
    {
        ms::input in{pipe.reading};
        use(in);
    }
    feeder.join();
}

// Delivers the input in one piece, byte by byte, and in two pieces split at every position.
void with_every_split(const std::string &text, const std::function<void(ms::input &)> &use) {
    std::vector<std::string> bytes;
    for (char byte : text)
        bytes.emplace_back(1, byte);
    if (bytes.size() <= 100)
        with_input(bytes, use);
    for (size_t cut = 0; cut <= text.size(); cut++)
        with_input({text.substr(0, cut), text.substr(cut)}, use);
}

ms::error error_of(const std::function<void()> &act) {
    try {
        act();
    } catch (const ms::error &error) {
        return error;
    }
    ADD_FAILURE() << "no error";
    return ms::error({});
}

// ---- Vectors ------------------------------------------------------------------------------------------------------

std::string from_hex(std::string_view hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return bytes;
}

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    for (char byte : text)
        if (byte == separator)
            parts.emplace_back();
        else
            parts.back() += byte;
    return parts;
}

void for_each_vector(const char *file, const std::function<void(std::vector<std::string>)> &run) {
    std::ifstream lines(std::string(MILLSTREAM_VECTORS "/") + file);
    ASSERT_TRUE(lines) << file;
    size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        std::vector<std::string> columns = split(line, '\t');
        SCOPED_TRACE(columns[0]);
        columns.resize(4);
        run(columns);
        count++;
    }
    EXPECT_GT(count, 50u);
}

// Calls `use` with a value of the integer type that has this name.
template <class Use>
bool with_integer_type(const std::string &type, const Use &use) {
    if (type == "u8")
        use(uint8_t{});
    else if (type == "u16")
        use(uint16_t{});
    else if (type == "u32")
        use(uint32_t{});
    else if (type == "u64")
        use(uint64_t{});
    else if (type == "i8")
        use(int8_t{});
    else if (type == "i16")
        use(int16_t{});
    else if (type == "i32")
        use(int32_t{});
    else if (type == "i64")
        use(int64_t{});
#ifdef __SIZEOF_INT128__
    else if (type == "u128")
        use(millstream_u128{});
    else if (type == "i128")
        use(millstream_i128{});
#endif
    else
        return false;
    return true;
}

// Uses std::from_chars, or digit by digit if that does not support the type.
template <class T>
T integer_from(const std::string &text) {
    T value = 0;
    for (char digit : text)
        if (digit != '-')
            value = static_cast<T>(value * 10 + static_cast<T>(text[0] == '-' ? '0' - digit : digit - '0'));
    return value;
}

TEST(Vectors, Put) {
    for_each_vector("put.tsv", [](const std::vector<std::string> &columns) {
        std::vector<std::string> kind = split(columns[1], ' ');
        const std::string &value = columns[2];
        const std::string expected = from_hex(columns[3]);
        const auto bits = [&] { return std::stoull(value, nullptr, 16); };
        const auto real = [&] {
            const uint64_t pattern = bits();
            double number;
            std::memcpy(&number, &pattern, sizeof number);
            return number;
        };
        bool known = true;
        if (kind[0] == "f64") {
            EXPECT_EQ(text_of(real()), expected);
        } else if (kind[0] == "f32") {
            const auto pattern = static_cast<uint32_t>(bits());
            float number;
            std::memcpy(&number, &pattern, sizeof number);
            EXPECT_EQ(text_of(number), expected);
        } else if (kind[0] == "fixed") {
            EXPECT_EQ(text_of(ms::fixed(real(), std::stoi(kind[1]))), expected);
        } else if (kind[0] == "bool") {
            EXPECT_EQ(text_of(value == "true"), expected);
        } else if (kind[0] == "char") {
            if (expected.size() == 1) { // C++'s char is one byte
                EXPECT_EQ(text_of(static_cast<char>(bits())), expected);
            }
        } else if (kind[0] == "bytes") {
            EXPECT_EQ(text_of(from_hex(value)), expected);
        } else if (kind[0] == "json") {
            EXPECT_EQ(text_of(ms::json(from_hex(value))), expected);
        } else if (kind[0] == "hex") {
            known = with_integer_type(kind[1], [&](auto zero) {
                EXPECT_EQ(text_of(ms::hex(integer_from<decltype(zero)>(value))), expected);
            });
        } else if (kind[0] == "pad" || kind[0] == "zero_fill") {
            known = with_integer_type(kind[2], [&](auto zero) {
                const auto number = integer_from<decltype(zero)>(value);
                const size_t width = std::stoul(kind[1]);
                EXPECT_EQ(kind[0] == "pad" ? text_of(ms::pad(number, width)) : text_of(ms::zero_fill(number, width)),
                          expected);
            });
        } else {
            known = with_integer_type(
                kind[0], [&](auto zero) { EXPECT_EQ(text_of(integer_from<decltype(zero)>(value)), expected); });
        }
        EXPECT_TRUE(known) << columns[1];
    });
}

// Scans values until the end or an error, and prints the result in the form of the vectors.
struct Outcome {
    std::string text;
    void add(const std::string &word) { text += (text.empty() ? "" : " ") + word; }
};

// The vectors contain 1e308 and 1000 where the output is 1e308 and 1000.0, so the values are compared and not their
// texts.
std::string shown(double value) {
    const std::string text = text_of(value);
    const bool whole = text.size() > 2 && text.substr(text.size() - 2) == ".0" && text != "-0.0";
    return whole ? text.substr(0, text.size() - 2) : text;
}

template <class T>
std::string shown(T value) {
    if constexpr (std::is_same_v<T, float>)
        return shown(double{value});
    else
        return text_of(value);
}

std::string normal_floats(const std::string &text, bool single) {
    Outcome all;
    for (const std::string &word : split(text, ' ')) {
        if (word.empty())
            continue;
        if (word.find('_') != word.npos)
            all.add(word);
        else if (single)
            all.add(shown(double{std::strtof(word.c_str(), nullptr)}));
        else
            all.add(shown(std::strtod(word.c_str(), nullptr)));
    }
    return all.text;
}

template <class... T>
std::string scan_all(ms::input &in, const std::string &separator) {
    Outcome outcome;
    try {
        std::tuple<T...> values;
        const auto scan = [&](auto &...value) {
            if (separator.empty())
                return in.scan(value...);
            return in.scan_delimited(from_hex(separator)[0], value...);
        };
        while (std::apply(scan, values))
            std::apply([&](auto... value) { (outcome.add(shown(value)), ...); }, values);
        EXPECT_FALSE(in);
    } catch (const ms::error &error) {
        outcome.add(std::string(ms::detail::text_of(error.code().value()).name));
    }
    return outcome.text;
}

// Maps the types in the vectors to calls of scan_all.
std::string scan_vector(ms::input &in, const std::string &types, const std::string &separator) {
    std::string outcome;
    if (types == "f64")
        return scan_all<double>(in, separator);
    if (types == "f32")
        return scan_all<float>(in, separator);
    if (with_integer_type(types, [&](auto zero) { outcome = scan_all<decltype(zero)>(in, separator); }))
        return outcome;
    if (types == "u32 u32")
        return scan_all<uint32_t, uint32_t>(in, separator);
    if (types == "u8 u8")
        return scan_all<uint8_t, uint8_t>(in, separator);
    if (types == "u8 i8")
        return scan_all<uint8_t, int8_t>(in, separator);
    if (types == "u64 f64")
        return scan_all<uint64_t, double>(in, separator);
    return "no such types in this test: " + types;
}

TEST(Vectors, Scan) {
    for_each_vector("scan.tsv", [](const std::vector<std::string> &columns) {
        const std::string types = columns[1].substr(0, columns[1].find(','));
        const std::string separator = columns[1].substr(std::min(columns[1].size(), types.size() + 1));
        const bool real = types[0] == 'f';
        const std::string expected = real ? normal_floats(columns[3], types == "f32") : columns[3];
        const std::string text = from_hex(columns[2]);
        with_every_split(text, [&](ms::input &in) { EXPECT_EQ(scan_vector(in, types, separator), expected); });
    });
}

// ---- Output -------------------------------------------------------------------------------------------------------

TEST(Output, PrintsPartsOfEveryKind) {
    const char *pointer = "pointer";
    char array[16] = "array";
    EXPECT_EQ(text_of("literal ", pointer, ' ', array, ' ', std::string("string"), std::string_view(" view")),
              "literal pointer array string view");
    EXPECT_EQ(text_of('x', true, false), "xtruefalse");
    EXPECT_EQ(text_of(int8_t{65}, ' ', uint8_t{66}, ' ', short{-3}, ' ', 5L, ' ', 6ULL), "65 66 -3 5 6");
    EXPECT_EQ(text_of(std::string_view{}, ""), "");
    EXPECT_EQ(text_of(place::point{1, -2}, ' ', place::point{3, 4}), "(1, -2) (3, 4)");
    EXPECT_EQ(text_of(), "");
}

TEST(Output, StreamsAndLines) {
    EXPECT_EQ(printed([](ms::output &out) {
                  out << "a" << 1 << ' ' << place::point{5, 6} << ms::endl << ms::hex(255) << '\n' << ms::flush;
                  out.println("b", 2).println();
                  out.write("raw\0bytes", 9).write(std::string_view("!"));
              }),
              std::string("a1 (5, 6)\nff\nb2\n\nraw\0bytes!", 27));
}

// Types without a text form do not compile.
static_assert(!ms::detail::is_part<std::nullptr_t> && !ms::detail::has_hook<std::nullptr_t>);

TEST(Output, ANullPointerIsNoText) {
    Pipe pipe;
    ms::output out{pipe.writing};
    const char *text = nullptr;
    char *buffer = nullptr;
    for (const auto &act :
         {std::function<void()>([&] { out << text; }), std::function<void()>([&] { out.print(1, buffer); })}) {
        try {
            act();
            FAIL();
        } catch (const ms::error &error) {
            EXPECT_EQ(error.kind(), ms::errc::argument_invalid);
            EXPECT_EQ(error.found(), "a null pointer");
        }
    }
    text = "text";
    out.print(text, 1).flush();
    pipe.close_writing();
    EXPECT_EQ(read_all(pipe.reading), "text1");
}

TEST(Output, FloatsReadBackAsTheSame) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = random();
        double value;
        std::memcpy(&value, &bits, sizeof value);
        char text[64];
        const size_t size = ms::detail::real_part<double>{value}.put(text);
        ASSERT_LE(size, ms::detail::real_part<double>{value}.max_size());
        text[size] = '\0';
        const double back = std::strtod(text, nullptr);
        EXPECT_TRUE(back == value || (std::isnan(back) && std::isnan(value))) << text;
        const auto bits32 = static_cast<uint32_t>(bits);
        float single;
        std::memcpy(&single, &bits32, sizeof single);
        text[ms::detail::real_part<float>{single}.put(text)] = '\0';
        const float single_back = std::strtof(text, nullptr);
        EXPECT_TRUE(single_back == single || (std::isnan(single_back) && std::isnan(single))) << text;
    }
}

TEST(Output, ManyPrintsOfEverySizeThroughEveryDescriptor) {
    // Many prints end at, before and after the end of the buffer.
    std::string expected;
    const auto print = [](auto &&take) {
        std::mt19937 random(6);
        const std::string long_text(300000, 'L');
        for (unsigned i = 0; i < 20000; i++) {
            take(std::string_view(long_text).substr(0, random() % 50), i);
            if (i % 5000 == 0)
                take(long_text, i);
        }
    };
    print([&](std::string_view text, unsigned number) { expected.append(text) += std::to_string(number) + '\n'; });
    const auto print_to = [&](ms::output &out) {
        print([&](std::string_view text, unsigned number) { out.print(text, number, '\n'); });
    };
    EXPECT_TRUE(printed(print_to) == expected);
    Pipe pipe;
    std::string got;
    std::thread consumer([&] { got = read_all(pipe.reading); });
    {
        ms::output out{pipe.writing};
        print_to(out);
    }
    pipe.close_writing();
    consumer.join();
    EXPECT_TRUE(got == expected);
}

TEST(Output, PartsLargerThanTheBuffer) {
    const std::string large(1000000, 'x');
    EXPECT_EQ(text_of("a", large, 5, large, "b"), "a" + large + "5" + large + "b");
    EXPECT_EQ(text_of(1, ms::json(large), 2), "1\"" + large + "\"2");
    EXPECT_EQ(text_of(ms::zero_fill(7, 65535)), std::string(65534, '0') + "7");
    EXPECT_EQ(text_of(ms::fixed(0.5, 65535)), "0.5" + std::string(65534, '0'));
    EXPECT_EQ(printed([&](ms::output &out) { out.print("a").write(large).write("b"); }), "a" + large + "b");
}

// The arrays are on the heap, where an access after their end would be detected.
TEST(Output, ArraysOfChar) {
    using three = char[3];
    const auto print = [](const std::string &bytes) {
        const std::unique_ptr<three[]> array(new three[1]);
        bytes.copy(array[0], sizeof(three));
        return text_of(array[0], '.');
    };
    EXPECT_EQ(print("abc"), "abc.");
    EXPECT_EQ(print({'a', 'b', '\0'}), "ab.");
    EXPECT_EQ(print({'a', '\0', 'c'}), "a.");
    EXPECT_EQ(print({'a', '\0', '\0'}), "a.");
    EXPECT_EQ(print({'\0', 'b', 'c'}), ".");
    EXPECT_EQ(text_of("", "a\0b"), "a");
}

// A computed width may be far too large, or negative.
TEST(Output, WidthsHaveABound) {
    const volatile int used = 4;
    const auto negative = static_cast<std::size_t>(3 - used);
    for (const std::size_t width : {std::size_t{65536}, SIZE_MAX - 23, SIZE_MAX - 1, negative}) {
        EXPECT_EQ(text_of(ms::pad(42, width), '.'), std::string(65533, ' ') + "42.");
        EXPECT_EQ(text_of(ms::zero_fill(-7, width), '.'), "-" + std::string(65533, '0') + "7.");
        EXPECT_EQ(text_of("a", ms::pad(1, width), ms::pad(2, width)),
                  "a" + std::string(65534, ' ') + "1" + std::string(65534, ' ') + "2");
    }
    for (const int digits : {65536, std::numeric_limits<int>::max() - 312, std::numeric_limits<int>::max()})
        EXPECT_EQ(text_of(ms::fixed(0.5, digits)), "0.5" + std::string(65534, '0'));
    EXPECT_EQ(text_of(ms::fixed(2.5, std::numeric_limits<int>::min())), "2");
}

TEST(Output, HoldsBackUntilFlushed) {
    Pipe pipe;
    ms::output out{pipe.writing};
    out.print("held\n");
    ASSERT_EQ(::fcntl(pipe.reading, F_SETFL, O_NONBLOCK), 0);
    char byte;
    EXPECT_EQ(::read(pipe.reading, &byte, 1), -1);
    out.flush();
    EXPECT_EQ(::read(pipe.reading, &byte, 1), 1);
}

TEST(Output, Formats) {
    EXPECT_EQ(printed([](ms::output &out) {
                  fmt::format_to(out.inserter(), "{:>5}|{:x}|{}", 42, 255, "text");
                  const std::string copied = " copied";
                  std::copy(copied.begin(), copied.end(), out.inserter());
              }),
              "   42|ff|text copied");
}

// Signals without SA_RESTART interrupt every blocking call.
class Interruptions {
  public:
    Interruptions() {
        struct sigaction action = {};
        action.sa_handler = [](int) {};
        ::sigaction(SIGALRM, &action, &old_);
        const itimerval often = {{0, 500}, {0, 500}};
        ::setitimer(ITIMER_REAL, &often, nullptr);
    }
    Interruptions(const Interruptions &) = delete;
    Interruptions &operator=(const Interruptions &) = delete;
    ~Interruptions() {
        const itimerval never = {};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        ::sigaction(SIGALRM, &old_, nullptr);
    }

  private:
    struct sigaction old_ = {};
};

enum class Blocking { yes, no };

class Waiting : public testing::TestWithParam<Blocking> {};
INSTANTIATE_TEST_SUITE_P(Descriptors, Waiting, testing::Values(Blocking::yes, Blocking::no));

TEST_P(Waiting, LosesNothing) {
    Interruptions often;
    Pipe pipe;
    if (GetParam() == Blocking::no) {
        ::fcntl(pipe.reading, F_SETFL, O_NONBLOCK);
        ::fcntl(pipe.writing, F_SETFL, O_NONBLOCK);
    }
    constexpr unsigned count = 300000;
    std::thread producer([&] {
        {
            ms::output out{pipe.writing};
            const std::string filling(5000, '.');
            for (unsigned i = 0; i < count; i++) {
                out.println(i);
                if (i % 10000 == 0)
                    out.println(filling).flush();
            }
        }
        pipe.close_writing();
    });
    ms::input in{pipe.reading};
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i % 1000 == 0)
            ::usleep(50); // so that both sides alternately wait
        wrong += in.require<unsigned>() != i;
        if (i % 10000 == 0)
            wrong += in.word().size() != 5000;
    }
    EXPECT_EQ(wrong, 0u);
    std::string_view rest;
    EXPECT_FALSE(in.word(rest));
    producer.join();
}

TEST(OutputErrors, ABrokenPipeIsReportedOnce) {
    std::signal(SIGPIPE, SIG_IGN);
    Pipe pipe;
    ms::output out{pipe.writing};
    out.print("first").flush();
    pipe.close_reading();
    out.print("second");
    const ms::error error = error_of([&] { out.flush(); });
    EXPECT_EQ(error.kind(), ms::errc::broken_pipe);
    EXPECT_EQ(error.code().value(), 16);
    EXPECT_EQ(error.system_errno(), EPIPE);
    EXPECT_EQ(error.written(), 5u);
    EXPECT_EQ(error.name(), "file descriptor " + std::to_string(pipe.writing));
    EXPECT_EQ(std::string(error.what()), error.name() +
                                             ": broken pipe: Broken pipe (os error 32), 5 bytes had been written; " +
                                             "stop writing: the reader has closed the pipe or connection");
    EXPECT_EQ(error_of([&] { out.print("third"); }).kind(), ms::errc::closed);
    EXPECT_EQ(error_of([&] { out.write("fourth"); }).kind(), ms::errc::closed);
    out.flush(); // there is nothing to flush, and no error is reported again
}

TEST(OutputErrors, AFullDisk) {
    int fd = ::open("/dev/full", O_WRONLY);
    ASSERT_GE(fd, 0);
    {
        ms::output out{fd};
        out.print("some");
        const ms::error error = error_of([&] { out.write(std::string(1000000, 'x')); });
        EXPECT_EQ(error.kind(), ms::errc::io);
        EXPECT_EQ(error.system_errno(), ENOSPC);
        EXPECT_EQ(error.written(), 0u);
    }
    {
        ms::output out{fd};
        out.print("some");
        EXPECT_FALSE(out.try_flush());
        EXPECT_EQ(errno, ENOSPC);
        EXPECT_FALSE(out.try_flush()) << "the bytes are still there";
    } // the destructor reports nothing
    ::close(fd);
}

TEST(OutputErrors, NoSuchDescriptor) {
    ms::output out{-1};
    EXPECT_EQ(error_of([&] { out.print("x").flush(); }).system_errno(), EBADF);
}

// ---- Input --------------------------------------------------------------------------------------------------------

TEST(Input, ValuesOfEveryType) {
    with_every_split("  12 -5\tx word 2.5 -1e3 255 +7 yz (\n", [](ms::input &in) {
        int a = 0, b = 0;
        char c = 0;
        std::string word;
        double d = 0;
        float f = 0;
        uint8_t byte = 0;
        long long l = 0;
        in >> a >> b >> c >> word >> d >> f >> byte >> l;
        EXPECT_EQ(a, 12);
        EXPECT_EQ(b, -5);
        EXPECT_EQ(c, 'x');
        EXPECT_EQ(word, "word");
        EXPECT_EQ(d, 2.5);
        EXPECT_EQ(f, -1000.0f);
        EXPECT_EQ(byte, 255);
        EXPECT_EQ(l, 7);
        char y = 0, z = 0;
        EXPECT_TRUE(in >> y >> z);
        EXPECT_EQ(y, 'y');
        EXPECT_EQ(z, 'z');
        EXPECT_TRUE(in >> c);
        EXPECT_TRUE(in);
        EXPECT_FALSE(in >> c);
        EXPECT_FALSE(in);
    });
}

TEST(Input, TheEndIsFalseWhenTested) {
    with_every_split("1 2\n3 4\n", [](ms::input &in) {
        int a = 0, b = 0, sum = 0;
        while (in >> a >> b)
            sum += a * b;
        EXPECT_EQ(sum, 14);
        EXPECT_FALSE(in);
        if (!(in >> a))
            sum = 0;
        EXPECT_EQ(sum, 0);
        EXPECT_EQ(a, 3) << "keeps its value";
        EXPECT_FALSE(in.scan(a, b));
    });
}

TEST(Input, TheEndIsAnErrorWhereAValueMustBe) {
    const auto expect_missing = [](const ms::error &error, const char *expected) {
        EXPECT_EQ(error.kind(), ms::errc::value_missing);
        EXPECT_EQ(error.code().value(), 23);
        EXPECT_EQ(error.offset(), 4u);
        EXPECT_EQ(error.record(), 1u);
        EXPECT_EQ(error.found(), "the end of the input");
        EXPECT_EQ(error.expected(), expected);
    };
    with_every_split("1\n2 ", [&](ms::input &in) {
        int a = 0, b = 0, c = 0;
        // Between values, with or without a test.
        expect_missing(error_of([&] { static_cast<void>(static_cast<bool>(in >> a >> b >> c)); }),
                       "an integer (-2147483648 to 2147483647)");
        EXPECT_EQ(b, 2);
        // At the start, without a test.
        expect_missing(error_of([&] { in >> a; }), "an integer (-2147483648 to 2147483647)");
        expect_missing(error_of([&] { in.require<uint64_t>(); }), "an integer (0 to 18446744073709551615)");
        expect_missing(error_of([&] { in.require<int8_t>(); }), "an integer (-128 to 127)");
        expect_missing(error_of([&] { in.require<double>(); }), "a number");
        expect_missing(error_of([&] { in.require<char>(); }), "a character");
        expect_missing(error_of([&] { in.word(); }), "a word");
        expect_missing(error_of([&] { in.line(); }), "a line");
    });
    with_every_split("1 2 3", [&](ms::input &in) {
        int a, b;
        EXPECT_TRUE(in.scan(a, b));
        EXPECT_EQ(error_of([&] { in.scan(a, b); }).kind(), ms::errc::value_missing);
    });
}

TEST(Input, WhatIsNoNumberIsAnError) {
    with_every_split("1\n\n 300x 17", [](ms::input &in) {
        EXPECT_EQ(in.require<int>(), 1);
        for (int again = 0; again < 2; again++) {
            const ms::error error = error_of([&] { in.require<int>(); });
            EXPECT_EQ(error.kind(), ms::errc::number_invalid);
            EXPECT_EQ(error.offset(), 4u);
            EXPECT_EQ(error.record(), 2u);
            EXPECT_EQ(error.line(), 3u);
            EXPECT_EQ(error.column(), 2u);
            EXPECT_EQ(error.found(), "300x");
            EXPECT_EQ(std::string(error.what()),
                      error.name() + ": number invalid: found 300x, expected an integer (-2147483648 to 2147483647), " +
                          "at line 3, column 2; check the input at this position, the separator and "
                          "the type");
        }
        EXPECT_EQ(in.word(), "300x");
        EXPECT_EQ(in.require<int>(), 17);
    });
    with_every_split("300 ", [](ms::input &in) {
        const ms::error error = error_of([&] { in.require<uint8_t>(); });
        EXPECT_EQ(error.kind(), ms::errc::number_overflow);
        EXPECT_EQ(error.code().value(), 22);
        EXPECT_EQ(in.require<uint16_t>(), 300);
    });
    with_input({"\x1b[2J\xff" + std::string(100, '9') + " "}, [](ms::input &in) {
        EXPECT_EQ(error_of([&] { in.require<int>(); }).found(), "\\x1b[2J\\xff" + std::string(59, '9') + "...");
    });
}

TEST(Input, LinesAreCountedAcrossTheBuffer) {
    std::string text;
    std::mt19937 random(7);
    size_t lines = 0;
    while (text.size() < 1500000) {
        text += std::to_string(random() >> (random() % 32)) + " \n"[random() % 2];
        lines += text.back() == '\n';
    }
    const size_t offset = text.size();
    text += "bad";
    with_large_input(text, [&](ms::input &in) {
        uint32_t value;
        const ms::error error = error_of([&] {
            while (in >> value) {
            }
        });
        EXPECT_EQ(error.offset(), offset);
        EXPECT_EQ(error.record(), lines);
    });
}

TEST(Input, NumbersAgreeWithTheLibraryThroughManyBuffers) {
    std::mt19937_64 random(8);
    std::vector<uint64_t> integers;
    std::vector<double> reals;
    std::string text;
    for (int i = 0; i < 60000; i++) {
        integers.push_back(random() >> (random() % 64));
        const uint64_t bits = random();
        double real;
        std::memcpy(&real, &bits, sizeof real);
        reals.push_back(std::isfinite(real) ? real : 0.5);
        text += std::to_string(integers.back()) + " " + fmt::format("{}", reals.back()) +
                std::string(1 + static_cast<size_t>(i) % 3, '\n');
    }
    with_large_input(text, [&](ms::input &in) {
        size_t wrong = 0;
        for (size_t i = 0; i < integers.size(); i++) {
            wrong += in.require<uint64_t>() != integers[i];
            wrong += in.require<double>() != reals[i];
        }
        EXPECT_EQ(wrong, 0u);
        EXPECT_FALSE(in.scan(wrong));
    });
}

TEST(Input, Lines) {
    with_every_split("one\n\ntwo \r\nth\rree\r\nlast\r", [](ms::input &in) {
        std::vector<std::string> lines;
        for (std::string_view line : in.lines())
            lines.emplace_back(line);
        EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two ", "th\rree", "last\r"}));
        EXPECT_FALSE(in);
    });
    with_every_split("7 rest of it\n\nx", [](ms::input &in) {
        EXPECT_EQ(in.require<int>(), 7);
        EXPECT_EQ(in.line(), " rest of it");
        EXPECT_EQ(in.line(), "");
        std::string line;
        EXPECT_TRUE(in.line(line));
        EXPECT_EQ(line, "x");
        EXPECT_FALSE(in.line(line));
        EXPECT_EQ(line, "");
    });
    with_input({}, [](ms::input &in) {
        for (std::string_view line : in.lines())
            ADD_FAILURE() << line;
    });
}

TEST(Input, LongLinesAndWords) {
    const std::string large(3000000, 'x');
    with_large_input("a " + large + "\n" + large + " b", [&](ms::input &in) {
        EXPECT_EQ(in.word(), "a");
        EXPECT_EQ(in.word(), large);
        EXPECT_EQ(in.line(), "");
        EXPECT_EQ(in.line(), large + " b");
    });
    const std::string zeros(1000000, '0');
    with_large_input(zeros + "17 " + zeros + "x", [&](ms::input &in) {
        EXPECT_EQ(in.require<uint8_t>(), 17);
        EXPECT_EQ(error_of([&] { in.require<uint8_t>(); }).kind(), ms::errc::number_invalid);
    });
}

TEST(Input, TheRecordLimit) {
    const std::string large(2000000, 'x');
    with_large_input("short\n" + large + "\nafter\n", [&](ms::input &in) {
        in.set_record_limit(1000000);
        EXPECT_EQ(in.line(), "short");
        for (int again = 0; again < 2; again++) {
            const ms::error error = error_of([&] { in.line(); });
            EXPECT_EQ(error.kind(), ms::errc::record_too_long);
            EXPECT_EQ(error.code().value(), 6);
            EXPECT_EQ(error.offset(), 6u);
            EXPECT_EQ(error.record(), 1u);
        }
        in.set_record_limit(2500000);
        EXPECT_EQ(in.line(), large);
        EXPECT_EQ(in.line(), "after");
    });
}

// The limit applies to the bytes between the ends, regardless of how they arrive: at the end of the buffer, in one
// piece or many.
TEST(Input, ExactlyTheRecordLimit) {
    for (const std::size_t limit : {std::size_t{5}, std::size_t{1} << 18}) {
        const std::string most(limit, 'x'), more(limit + 1, 'x');
        for (const std::string end : {"", "\n", "\r\n"}) {
            with_large_input(most + end, [&](ms::input &in) {
                in.set_record_limit(limit);
                EXPECT_EQ(in.line(), most);
            });
            with_large_input("a\n" + more + end, [&](ms::input &in) {
                in.set_record_limit(limit);
                EXPECT_EQ(in.line(), "a");
                const ms::error error = error_of([&] { in.line(); });
                EXPECT_EQ(error.kind(), ms::errc::record_too_long);
                EXPECT_EQ(error.offset(), 2u);
                EXPECT_EQ(error_of([&] { in.word(); }).kind(), ms::errc::record_too_long);
                in.set_record_limit(limit + 1);
                EXPECT_EQ(in.line(), more);
            });
        }
        with_large_input(most + " " + most, [&](ms::input &in) {
            in.set_record_limit(limit);
            EXPECT_EQ(in.word(), most);
            EXPECT_EQ(in.word(), most);
        });
    }
    with_every_split("123456\n000000000012,5\nabc\n", [](ms::input &in) {
        in.set_record_limit(3);
        EXPECT_EQ(in.require<int>(), 123456);
        EXPECT_EQ(in.line(), "");
        int a = 0, b = 0;
        EXPECT_TRUE(in.scan_delimited(',', a, b));
        EXPECT_EQ(a + b, 17);
        EXPECT_EQ(in.line(), "abc");
    });
}

TEST(Input, TheWindow) {
    with_input({"abc", "def"}, [](ms::input &in) {
        EXPECT_EQ(in.buffer(), "");
        EXPECT_TRUE(in.fill());
        EXPECT_EQ(in.buffer(), "abc");
        in.consume(1);
        EXPECT_TRUE(in.fill());
        EXPECT_EQ(in.buffer(), "bcdef");
        in.consume(100);
        EXPECT_EQ(in.buffer(), "");
        EXPECT_FALSE(in.fill());
        EXPECT_FALSE(in.fill());
    });
}

TEST(Input, YourOwnType) {
    with_every_split("1 2 3 4", [](ms::input &in) {
        place::point p{}, q{};
        in >> p >> q;
        EXPECT_EQ(p.x + p.y + q.x + q.y, 10);
        EXPECT_FALSE(in >> p);
    });
}

TEST(Input, AFailedReadIsReportedOnceAndThenTheEnd) {
    int fd = ::open("/", O_RDONLY); // a directory cannot be read
    ms::input in{fd};
    const ms::error error = error_of([&] { in.require<int>(); });
    EXPECT_EQ(error.kind(), ms::errc::io);
    EXPECT_EQ(error.system_errno(), EISDIR);
    int value;
    EXPECT_FALSE(in >> value);
    ::close(fd);
}

TEST(Input, FlushesTheOutputItIsTiedTo) {
    Pipe question, answer;
    ms::output out{question.writing};
    ms::input in{answer.reading, &out};
    std::thread other([&] {
        ms::input questions{question.reading};
        ms::output answers{answer.writing};
        for (int i = 0; i < 3; i++)
            answers.println(2 * questions.require<int>()).flush();
        answers.print("what\n").flush();
        EXPECT_EQ(questions.word(), "before_the_error");
    });
    for (int i = 0; i < 3; i++) {
        out.println(i);
        EXPECT_EQ(in.require<int>(), 2 * i);
    }
    out.println("before_the_error");
    EXPECT_EQ(error_of([&] { in.require<int>(); }).kind(), ms::errc::number_invalid);
    other.join();
}

// A second error must not follow from the state after another error.
TEST(Input, AnUntestedEndGivesWayToTheErrorThatIsOnItsWay) {
    with_input({}, [](ms::input &in) {
        int value = 0;
        const auto fail = [](const ms::input::extraction &) -> int { throw 42; };
        try {
            fail(in >> value);
            ADD_FAILURE();
        } catch (int thrown) {
            EXPECT_EQ(thrown, 42);
        }
    });
}

} // namespace
