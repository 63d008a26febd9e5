/* millstream/numbers.h in C99: it compiles there, and the example at its top is true. */

#include <millstream/numbers.h>

int main(void) {
    char text[MILLSTREAM_NUMBER_SLACK];
    char *end = millstream_put_u32(text, 1234);
    const char *at = "17 4", *limit = at + 4;
    uint32_t value = 0;
    if (end != text + 4 || memcmp(text, "1234", 4) != 0)
        return 1;
    if (millstream_scan_u32(&at, limit, &value) != MILLSTREAM_SCANNED || value != 17 || *at != ' ')
        return 2;
    at = millstream_skip_space(at, limit);
    if (millstream_scan_u32(&at, limit, &value) != MILLSTREAM_SCAN_MORE)
        return 3;
    if (millstream_scan_last_u32(&at, limit, &value) != MILLSTREAM_SCANNED || value != 4 || at != limit)
        return 4;
    return 0;
}
