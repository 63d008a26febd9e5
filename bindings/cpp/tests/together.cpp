// All headers in one file, to check that their names do not conflict.

#include "millstream/bson.hpp"
#include "millstream/cancel.hpp"
#include "millstream/command.hpp"
#include "millstream/error.hpp"
#include "millstream/frame.hpp"
#include "millstream/pipe.hpp"
#include "millstream/reader.hpp"
#include "millstream/shared.hpp"
#include "millstream/smart_buffer.hpp"
#include "millstream/stdio.hpp"
#include "millstream/writer.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace ms = millstream;

namespace {

TEST(Together, TheHeadersWithTheLibraryAndThoseWithout) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ms::output out(pipe[1]);
    out.print("one ", 2, '\n').flush();
    ::close(pipe[1]);
    EXPECT_EQ(ms::lines(ms::fd{pipe[0]}).next(), "one 2");
    // There is one class of errors.
    EXPECT_THROW(out.print("three").flush(), ms::error);
    EXPECT_THROW(ms::reader(ms::path{"/nonexistent/file"}), ms::error);
}

} // namespace
