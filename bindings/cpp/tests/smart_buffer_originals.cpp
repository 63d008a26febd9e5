// With the drop-in, the programs in the original's documentation print the documented output, which is also the
// output of iostream.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

namespace {

const std::filesystem::path programs = MILLSTREAM_ORIGINALS_PROGRAMS;

class Originals : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(programs / "smart_io")) {
            GTEST_SKIP() << "the original's document is not next to the repository";
        }
    }

    void TearDown() override { std::filesystem::remove(input_); }

    void input(const std::string &text) { std::ofstream(input_) << text; }

    /// Returns the output of a program for `input`.
    std::string run(const std::string &program_and_arguments) {
        const std::string command = (programs / program_and_arguments).string() + " < " + input_.string();
        std::FILE *const pipe = popen(command.c_str(), "r");
        std::string output;
        char piece[4096];
        while (const std::size_t len = std::fread(piece, 1, sizeof piece, pipe)) {
            output.append(piece, len);
        }
        EXPECT_EQ(pclose(pipe), 0) << command;
        return output;
    }

    /// Returns the output without the time that the program prints.
    std::string results(const std::string &program_and_arguments) {
        const std::string output = run(program_and_arguments);
        const std::size_t end = output.rfind("Duration: ");
        EXPECT_NE(end, std::string::npos) << program_and_arguments;
        return output.substr(0, end);
    }

  private:
    const std::filesystem::path input_ =
        std::filesystem::temp_directory_path() / ("millstream_originals_" + std::to_string(std::random_device()()));
};

std::string pairs(int count) {
    std::mt19937 random(4);
    std::ostringstream text;
    text << count << '\n';
    for (int i = 0; i < count; ++i) {
        text << (random() >> random() % 32) << ' ' << (random() >> random() % 32) << '\n';
    }
    return text.str();
}

TEST_F(Originals, TheExampleOfTheReader) {
    input("");
    EXPECT_EQ(run("read_example"), "Read: Hello\n\n");
}

TEST_F(Originals, TheExampleOfTheWriter) {
    // The documentation promises that nothing is printed before the flush; but 13 bytes do not fit into a buffer of 10.
    input("");
    EXPECT_EQ(run("write_example"), "Buffered: Hello, Wor\nFlushed: Hello, World!\n");
}

TEST_F(Originals, TheLargerOfTwo) {
    input(pairs(300));
    const std::string expected = results("default_io");
    for (int size = 1; size <= 64; ++size) {
        ASSERT_EQ(results("smart_io " + std::to_string(size)), expected) << "a buffer of " << size;
    }
    input(pairs(20'000));
    const std::string many = results("default_io");
    for (int size = 512; size <= 4096; size *= 2) {
        ASSERT_EQ(results("smart_io " + std::to_string(size)), many) << "a buffer of " << size;
    }
}

} // namespace
