/* Prints the larger of two numbers per line with scanf and printf. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

int main(void) {
    uint32_t lines = 0;
    if (scanf("%" SCNu32, &lines) != 1) {
        return 1;
    }
    for (uint32_t i = 0; i < lines; i++) {
        uint32_t a = 0;
        uint32_t b = 0;
        if (scanf("%" SCNu32 " %" SCNu32, &a, &b) != 2) {
            return 1;
        }
        printf("%" PRIu32 "\n", a > b ? a : b);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
