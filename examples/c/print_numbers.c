/* Prints the numbers below a limit, 20 million by default, one per line:
 *
 *     print_numbers 1000
 *
 * Numbers are written directly into the writer's buffer. A full disk or a closed pipe is an error.
 */
#include <millstream.h>

#include <stdio.h>
#include <stdlib.h>

static millstream_code print_below(millstream_output *out, uint64_t limit, millstream_error **error) {
    millstream_code code = MILLSTREAM_OK;
    uint64_t number;
    for (number = 0; number < limit && code == MILLSTREAM_OK; number++) {
        code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK + 1, error);
        if (code != MILLSTREAM_OK)
            break;
        out->at = millstream_put_u64(out->at, number);
        *out->at++ = '\n';
        code = millstream_output_commit(out, error);
    }
    return code;
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_writer *writer = NULL;
    millstream_output out;

    millstream_code code = millstream_writer_stdout(NULL, &writer, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_output_begin(&out, writer, &error);
    if (code == MILLSTREAM_OK)
        code = print_below(&out, argc > 1 ? strtoull(argv[1], NULL, 10) : 20000000, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_output_end(&out, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_close(writer, &error); /* without this, errors of the last bytes are unknown */
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "print_numbers: %s\n", millstream_error_message(error));

    millstream_writer_free(writer);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
