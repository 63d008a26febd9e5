// Uses the headers that need no library.
#ifdef SINGLE
#include "millstream_stdio.hpp"
#else
#include <millstream/stdio.hpp>
#endif

int main() { millstream::out.println("all as promised"); }
