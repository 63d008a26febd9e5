/* A C program that finds the library by pkg-config. */

#include <millstream.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    if (strcmp(millstream_version(), MILLSTREAM_VERSION) != 0) {
        fprintf(stderr, "the library is %s, its header %s\n", millstream_version(), MILLSTREAM_VERSION);
        return 1;
    }
    return 0;
}
