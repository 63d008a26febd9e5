// Compares millstream/cincout.hpp with iostream: each program of cincout/programs.cpp gets the same input in both
// forms, and must end in the same way after the same writes to standard output and standard error.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

constexpr const char *with_iostream = PROGRAMS_WITH_IOSTREAM;
constexpr const char *with_cincout = PROGRAMS_WITH_CINCOUT;

void expect_all_written(int fd, const std::string &bytes) {
    EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

std::string text_of(std::FILE *file) {
    std::string text;
    for (int c; (c = std::getc(file)) != EOF;)
        text += static_cast<char>(c);
    return text;
}

std::vector<std::string> program_names() {
    std::vector<std::string> names;
    std::FILE *const list = ::popen(with_cincout, "r");
    std::string all = text_of(list);
    ::pclose(list);
    for (std::size_t end; (end = all.find('\n')) != all.npos; all.erase(0, end + 1))
        names.push_back(all.substr(0, end));
    return names;
}

struct Input {
    std::string text;
    bool is_file;
};

struct Result {
    std::vector<std::string> writes;
    int status = -1;
    off_t position = -1; // of the input, if it is a file

    void forget_boundaries() {
        std::string all;
        for (const std::string &write : writes)
            all += write;
        writes = {all};
        position = -1;
    }
    friend bool operator==(const Result &a, const Result &b) {
        return a.writes == b.writes && a.status == b.status && a.position == b.position;
    }
    friend std::ostream &operator<<(std::ostream &out, const Result &result) {
        out << "status " << result.status << ", position " << result.position << ", writes:";
        for (const std::string &write : result.writes)
            out << "\n    " << testing::PrintToString(write.substr(0, 300));
        return out;
    }
};

/// Starts the programs in the file `path` with these descriptors, and with `out` as their own standard output.
pid_t start(const char *path, const std::string &program, const std::vector<int> &descriptors, int out) {
    std::vector<std::string> arguments{path, program};
    for (const int fd : descriptors)
        arguments.push_back(std::to_string(fd));
    std::vector<char *> argv;
    for (std::string &argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (const int fd : descriptors)
            ::fcntl(fd, F_SETFD, 0); // all others are closed by execv
        ::dup2(out, STDOUT_FILENO);
        ::execv(path, argv.data());
        ::_exit(127);
    }
    return pid;
}

/// Runs a program once for each input. Both of its outputs are a socket that keeps the boundaries of writes.
std::vector<Result> run(const char *path, const std::string &program, const std::vector<Input> &inputs) {
    std::vector<int> descriptors, sockets;
    for (const Input &input : inputs) {
        int socket[2], in[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket), 0);
        if (input.is_file) {
            in[0] = ::memfd_create("input", MFD_CLOEXEC);
            expect_all_written(in[0], input.text);
            ::lseek(in[0], 0, SEEK_SET);
        } else {
            EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
            expect_all_written(in[1], input.text);
            ::close(in[1]);
        }
        sockets.push_back(socket[0]);
        descriptors.insert(descriptors.end(), {in[0], socket[1], ::fcntl(socket[1], F_DUPFD_CLOEXEC, 0)});
    }
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = start(path, program, descriptors, ends[1]);
    ::close(ends[1]);
    std::vector<Result> results(inputs.size());
    std::vector<char> piece(1 << 20);
    for (std::size_t i = 0; i < inputs.size(); i++) {
        ::close(descriptors[3 * i + 1]);
        ::close(descriptors[3 * i + 2]);
        for (ssize_t count; (count = ::read(sockets[i], piece.data(), piece.size())) > 0;)
            results[i].writes.emplace_back(piece.data(), static_cast<std::size_t>(count));
        ::close(sockets[i]);
    }
    std::FILE *const statuses = ::fdopen(ends[0], "r");
    for (std::size_t i = 0; i < inputs.size(); i++) {
        EXPECT_EQ(std::fscanf(statuses, "%d", &results[i].status), 1);
        if (inputs[i].is_file)
            results[i].position = ::lseek(descriptors[3 * i], 0, SEEK_CUR);
        ::close(descriptors[3 * i]);
    }
    std::fclose(statuses);
    ::waitpid(pid, nullptr, 0);
    return results;
}

std::string numbers(int count) {
    std::string text;
    unsigned state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 1103515245u + 12345u;
        text += std::to_string(static_cast<int>(state) >> (state >> 3 & 31)) + (i % 7 == 6 ? "\n" : " ");
    }
    return text;
}

const std::vector<std::string> texts{
    "",
    "\n",
    "42",
    "12 34 56\n-7 +8 0\n007 1000000 -0\n",
    "3 10 20 30\nquit\nAda 36\n",
    "1.5 -2.25 1e3 .5 5. 1e-5 123456789.125 0.1 1E+2 3 100000000000000000000\n",
    "1e999 1e-999 inf nan 0x10 0x1p3 1e 1e+ 1.5.2 --5\n",
    "99999999999999999999 5\nrest of it\n",
    "70000 -70000 2147483648 -2147483649 4294967296 18446744073709551616\n",
    "-1 -5 -70000\n",
    "12abc 5,6;7 word\nsecond line, with commas\n\n\n  indented line  \n",
    "- 5 + 6 -\n+-3 +\n",
    "5 + 3\n8 / 2\n1.5 ? 2\n7 /",
    "ff 17 0x1f\ntrue false\n(1,2) 1010 (3)\n",
    "one two\tthree\vfour\ffive\r\nsix\r\n  seven",
    std::string("nul \0 inside\0\n\xc3\xa9\xff 1\n", 20),
    "1 0 1 2\n",
    numbers(2000),
    std::string(4090, ' ') + "123456 word" + std::string(4080, 'x') + " 12\nline\n",
    std::string(9000, '7') + "\n" + std::string(5000, 'a') + "\nlast",
};

class CincoutPrograms : public testing::TestWithParam<std::string> {};

TEST_P(CincoutPrograms, DoWhatTheyDoWithIostream) {
    const std::string &program = GetParam();
    // iostream has larger buffers of its own after sync_with_stdio(false).
    const bool is_unsynced = program.find("unsynced") != program.npos;
    std::vector<Input> inputs;
    for (const std::string &text : texts)
        inputs.push_back({text, true});
    for (std::size_t i = 0; i < texts.size(); i += 3)
        inputs.push_back({texts[i], false});
    std::vector<Result> expected = run(with_iostream, program, inputs), found = run(with_cincout, program, inputs);
    for (std::size_t i = 0; i < inputs.size(); i++) {
        if (is_unsynced) {
            expected[i].forget_boundaries();
            found[i].forget_boundaries();
        }
        EXPECT_EQ(expected[i], found[i]) << "from " << (inputs[i].is_file ? "a file: " : "a pipe: ")
                                         << testing::PrintToString(inputs[i].text.substr(0, 200));
    }
}
INSTANTIATE_TEST_SUITE_P(All, CincoutPrograms, testing::ValuesIn(program_names()),
                         [](const auto &program) { return program.param; });

TEST(Cincout, ComparesAtLeastSixtyPrograms) { EXPECT_GE(program_names().size(), 60u); }

/// What appears on a terminal at which a user types `answers`, each after a prompt.
std::string at_terminal(const char *path, const std::string &program, const std::string &prompt,
                        const std::vector<std::string> &answers) {
    int terminal = -1, side = -1;
    EXPECT_EQ(::openpty(&terminal, &side, nullptr, nullptr, nullptr), 0);
    const std::vector<int> descriptors{side, ::dup(side), ::dup(side)};
    const pid_t pid = start(path, program, descriptors, STDERR_FILENO);
    for (const int fd : descriptors)
        ::close(fd);
    std::string shown, piece(4096, '\0');
    std::size_t answered = 0, seen = 0;
    for (pollfd one{terminal, POLLIN, 0}; ::poll(&one, 1, 10000) > 0;) {
        const ssize_t count = ::read(terminal, piece.data(), piece.size());
        if (count <= 0)
            break;
        shown.append(piece, 0, static_cast<std::size_t>(count));
        const std::size_t found = shown.find(prompt, seen);
        if (found != shown.npos && answered < answers.size()) {
            seen = found + prompt.size();
            expect_all_written(terminal, answers[answered++]);
        }
    }
    ::close(terminal);
    ::waitpid(pid, nullptr, 0);
    return shown;
}

TEST(Cincout, PromptsAppearOnATerminalBeforeTheAnswer) {
    const std::vector<std::string> answers{"Ada\n", "36\n"}, lines{"one\n", "two\n", "quit\n"};
    const std::string shown = at_terminal(with_cincout, "prompts", "? ", answers);
    EXPECT_EQ(shown, at_terminal(with_iostream, "prompts", "? ", answers));
    EXPECT_NE(shown.find("Hello Ada, 36!"), std::string::npos) << shown;
    EXPECT_EQ(at_terminal(with_cincout, "prompts_for_lines", "> ", lines),
              at_terminal(with_iostream, "prompts_for_lines", "> ", lines));
}

/// The status and the message of a program whose standard input and output are these files.
std::string failure(const std::string &program, const char *in, const char *out) {
    int errors[2], ends[2];
    EXPECT_EQ(::pipe2(errors, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const std::vector<int> descriptors{::open(in, O_RDONLY | O_CLOEXEC), ::open(out, O_WRONLY | O_CLOEXEC), errors[1]};
    const pid_t pid = start(with_cincout, program, descriptors, ends[1]);
    for (const int fd : descriptors)
        ::close(fd);
    ::close(ends[1]);
    std::FILE *const messages = ::fdopen(errors[0], "r"), *const statuses = ::fdopen(ends[0], "r");
    const std::string message = text_of(messages);
    const int status = std::atoi(text_of(statuses).c_str());
    std::fclose(messages);
    std::fclose(statuses);
    ::waitpid(pid, nullptr, 0);
    return std::to_string(WEXITSTATUS(status)) + ": " + message;
}

TEST(Cincout, ReportsDataThatIsLost) {
    const std::string full = failure("limits", "/dev/null", "/dev/full");
    EXPECT_EQ(full.find("1: standard output: "), 0u) << full;
    EXPECT_NE(full.find("No space left on device"), std::string::npos) << full;
    const std::string earlier = failure("much_output", "/dev/null", "/dev/full");
    EXPECT_NE(earlier.find("No space left on device"), std::string::npos) << earlier;
    const std::string directory = failure("sum_of_integers", "/", "/dev/null");
    EXPECT_EQ(directory.find("1: standard input: "), 0u) << directory;
    EXPECT_NE(directory.find("Is a directory"), std::string::npos) << directory;
    EXPECT_EQ(failure("limits", "/dev/null", "/dev/null"), "0: ");
}

} // namespace
