// Tests of complete programs with ms::in and ms::out: at their end, with uncaught errors, and at a terminal.

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

struct Descriptors {
    int in = -1, out = -1, err = -1; // -1: the test's own
};

// A program in a child process.
class Child {
  public:
    Child(const char *program, std::vector<std::string> arguments, Descriptors use) {
        arguments.insert(arguments.begin(), program);
        std::vector<char *> argv;
        for (std::string &argument : arguments)
            argv.push_back(argument.data());
        argv.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            const std::array<int, 3> descriptors{use.in, use.out, use.err};
            for (int fd = 0; fd < 3; fd++)
                if (descriptors[static_cast<size_t>(fd)] >= 0)
                    ::dup2(descriptors[static_cast<size_t>(fd)], fd);
            for (int fd = 3; fd < 64; fd++)
                ::close(fd);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
    }
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    ~Child() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            wait();
        }
    }
    // The exit status, or minus the signal.
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

  private:
    pid_t pid_;
};

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

// Reads until the end, until `enough` bytes have arrived, or until a timeout.
std::string read_until(int fd, const std::string &enough = "\xff\xff") {
    std::string all;
    std::array<char, 4096> piece;
    pollfd one{fd, POLLIN, 0};
    while (all.find(enough) == all.npos && ::poll(&one, 1, 10000) > 0) {
        const ssize_t count = ::read(fd, piece.data(), piece.size());
        if (count <= 0)
            break;
        all.append(piece.data(), static_cast<size_t>(count));
    }
    return all;
}

// Checks that no more output arrives within the time limit of a test.
bool is_silent(int fd) {
    pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 50) == 0;
}

std::string text_of_file(const std::string &path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Result {
    int status;
    std::string out, err;
};

Result run(const char *program, const std::vector<std::string> &arguments, const std::string &input = "",
           int out = -1) {
    Pipe in_pipe, out_pipe, err_pipe;
    Child child(program, arguments, {in_pipe.reading, out >= 0 ? out : out_pipe.writing, err_pipe.writing});
    in_pipe.close_reading();
    out_pipe.close_writing();
    err_pipe.close_writing();
    EXPECT_EQ(::write(in_pipe.writing, input.data(), input.size()), static_cast<ssize_t>(input.size()));
    in_pipe.close_writing();
    Result result;
    result.out = read_until(out_pipe.reading);
    result.err = read_until(err_pipe.reading);
    result.status = child.wait();
    return result;
}

// Each with exceptions and without.
class Program : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Compiled, Program, testing::Values(STDIO_PROGRAM, STDIO_PROGRAM_WITHOUT_EXCEPTIONS),
                         [](const auto &program) {
                             return program.index == 0 ? "WithExceptions" : "WithoutExceptions";
                         });

bool has_exceptions(const char *program) { return program == std::string(STDIO_PROGRAM); }

TEST_P(Program, FlushesAtItsEndAndKeepsItsStatus) {
    const Result result = run(GetParam(), {"status"});
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(result.out, "printed");
    EXPECT_EQ(result.err, "");
}

TEST_P(Program, FlushesWhatDestructorsAndAtexitFunctionsPrint) {
    const Result result = run(GetParam(), {"last_words"});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.out, "main\natexit\ndestructor\n");
}

TEST_P(Program, AFlushThatFailsAtTheEndIsOneLineAndStatus1) {
    int full = ::open("/dev/full", O_WRONLY);
    const Result result = run(GetParam(), {"status"}, "", full);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, "standard output: io: No space left on device (os error 28), 0 bytes had been written; "
                          "free space, or write elsewhere\n");
    EXPECT_EQ(run(GetParam(), {"nothing"}, "", full).status, 3) << "nothing was printed, so nothing failed";
    ::close(full);
}

TEST_P(Program, SoIsOneIntoAClosedPipe) {
    Pipe in, out, err;
    Child child(GetParam(), {"broken_pipe"}, {in.reading, out.writing, err.writing});
    err.close_writing();
    out.close_writing();
    out.close_reading();
    EXPECT_EQ(::write(in.writing, "x", 1), 1);
    EXPECT_EQ(read_until(err.reading),
              "standard output: broken pipe: Broken pipe (os error 32), 0 bytes had been written; "
              "stop writing: the reader has closed the pipe or connection\n");
    EXPECT_EQ(child.wait(), 1);
}

TEST_P(Program, StdiosBuffersAreNotLostThen) {
    std::string path = testing::TempDir() + "millstream_stdio_program_test_XXXXXX";
    ::close(::mkstemp(path.data()));
    int full = ::open("/dev/full", O_WRONLY);
    EXPECT_EQ(run(GetParam(), {"stdio_too", path}, "", full).status, 1);
    ::close(full);
    EXPECT_EQ(text_of_file(path), "kept");
    ::unlink(path.c_str());
}

TEST_P(Program, AnUncaughtErrorIsOneLineAndStatus1AndLosesNoOutput) {
    const Result result = run(GetParam(), {"wrong_number"}, "12x\n");
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "before");
    const std::string message = "standard input: number invalid: found 12x, expected an integer (-2147483648 to "
                                "2147483647), at line 1, column 1; check the input at this position, the separator "
                                "and the type";
    EXPECT_EQ(result.err, message + "\n");
    EXPECT_EQ(run(GetParam(), {"missing_number"}).status, 1);
    EXPECT_EQ(run(GetParam(), {"other_input"}, "x").out, "before") << "of an input that is not tied to the output";
}

TEST_P(Program, AFullDiskInTheMiddleIsOneLineAndStatus1) {
    std::string path = testing::TempDir() + "millstream_stdio_program_test_XXXXXX";
    ::close(::mkstemp(path.data()));
    int full = ::open("/dev/full", O_WRONLY);
    for (const char *where : {"much", "much_at_the_end", "much_noexcept"}) {
        const Result result = run(GetParam(), {where, path}, "", full);
        EXPECT_EQ(result.status, 1) << where;
        EXPECT_EQ(result.err, "standard output: io: No space left on device (os error 28), 0 bytes had been written; "
                              "free space, or write elsewhere\n")
            << where;
    }
    EXPECT_EQ(text_of_file(path), "kept");
    ::unlink(path.c_str());
    if (has_exceptions(GetParam())) {
        const Result caught = run(GetParam(), {"caught"}, "", full);
        EXPECT_EQ(caught.status, 3);
        EXPECT_EQ(caught.err, "caught io\n");
        EXPECT_EQ(run(GetParam(), {"other_exception"}).status, -SIGABRT);
    }
    ::close(full);
}

TEST_P(Program, AsksBeforeItReads) {
    Pipe in, out;
    Child child(GetParam(), {"ask"}, {in.reading, out.writing, -1});
    EXPECT_EQ(read_until(out.reading, "? "), "name? ");
    EXPECT_EQ(::write(in.writing, "you\n", 4), 4);
    EXPECT_EQ(read_until(out.reading, "\n"), "Hello, you\n");
    EXPECT_EQ(child.wait(), 0);
}

// A terminal that does not translate a program's output.
struct Terminal {
    int master = ::posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    Terminal() {
        if (::grantpt(master) != 0 || ::unlockpt(master) != 0)
            std::abort();
        slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
        termios settings;
        ::tcgetattr(slave, &settings);
        settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
        settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(slave, TCSANOW, &settings);
    }
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;
    ~Terminal() {
        ::close(slave);
        ::close(master);
    }
};

TEST_P(Program, AsksATerminal) {
    Terminal terminal;
    Child child(GetParam(), {"ask"}, {terminal.slave, terminal.slave, -1});
    EXPECT_EQ(read_until(terminal.master, "? "), "name? ");
    EXPECT_EQ(::write(terminal.master, "you\n", 4), 4);
    EXPECT_EQ(read_until(terminal.master, "\n"), "Hello, you\n");
    EXPECT_EQ(child.wait(), 0);
}

TEST_P(Program, ShowsATerminalEachLineAtItsEnd) {
    Terminal terminal;
    Pipe in;
    Child child(GetParam(), {"lines"}, {in.reading, terminal.slave, -1});
    EXPECT_TRUE(is_silent(terminal.master));
    EXPECT_EQ(::write(in.writing, "x", 1), 1);
    EXPECT_EQ(read_until(terminal.master, "again"), "held back\nheld again");
    EXPECT_EQ(::write(in.writing, "x", 1), 1);
    EXPECT_EQ(read_until(terminal.master, "again"), " and\nagain");
    EXPECT_EQ(::write(in.writing, "x", 1), 1);
    EXPECT_EQ(child.wait(), 0);
}

TEST_P(Program, ShowsAPipeNothingBeforeTheEnd) {
    Pipe in, out;
    Child child(GetParam(), {"lines"}, {in.reading, out.writing, -1});
    out.close_writing();
    EXPECT_EQ(::write(in.writing, "xx", 2), 2);
    EXPECT_TRUE(is_silent(out.reading));
    EXPECT_EQ(::write(in.writing, "x", 1), 1);
    EXPECT_EQ(read_until(out.reading), "held back\nheld again and\nagain");
    EXPECT_EQ(child.wait(), 0);
}

TEST(Examples, Hello) {
    const Result result = run(EXAMPLE_HELLO, {}, "you\n");
    EXPECT_EQ(result.out, "Your name? Hello, you!\n");
    EXPECT_EQ(result.status, 0);
    EXPECT_NE(run(EXAMPLE_HELLO, {}, "").status, 0);
}

TEST(Examples, Larger) {
    const Result result = run(EXAMPLE_LARGER, {}, "3\n1 1742111530\n1742111529 1742111528\n0 4294967295");
    EXPECT_EQ(result.out, "1742111530\n1742111529\n4294967295\n");
    EXPECT_EQ(result.status, 0);
    const Result cut = run(EXAMPLE_LARGER, {}, "3\n1 2\n3 ");
    EXPECT_EQ(cut.out, "2\n") << "all that was complete";
    EXPECT_NE(cut.status, 0);
    EXPECT_NE(cut.err.find("value missing"), std::string::npos) << cut.err;
}

TEST(Examples, TheReadmeShowsThem) {
    const std::string repository = std::string(MILLSTREAM_VECTORS) + "/../";
    std::string program = text_of_file(repository + "examples/cpp/larger.cpp");
    program.erase(0, program.find('\n') + 1); // its comment
    std::string shown;
    for (std::size_t at = 0, end; (end = program.find('\n', at)) != program.npos; at = end + 1)
        shown += (end == at ? "" : "    ") + program.substr(at, end + 1 - at);
    EXPECT_NE(text_of_file(repository + "bindings/cpp/README.md").find(shown), std::string::npos) << shown;
}

TEST(SingleHeader, WorksInTwoFiles) {
    for (const char *program : {SINGLE_HEADER_TEST, SINGLE_HEADER_MINIFIED_TEST}) {
        const Result result = run(program, {}, "20 22\n");
        EXPECT_EQ(result.out, "sum 42\n");
        EXPECT_EQ(result.status, 0);
    }
}

} // namespace
