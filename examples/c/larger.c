/* Reads two numbers per line from standard input and prints the larger one.
 *
 * Numbers are scanned and printed directly in the buffers, by inlined functions. A value that is not a number, does not
 * fit, or is missing is an error that names its line.
 */
#include <millstream.h>

#include <stdio.h>

/* Processes lines until an error or the end of the input. */
static millstream_code larger(millstream_input *in, millstream_output *out, millstream_error **error) {
    for (;;) {
        int64_t a, b;
        bool end;
        millstream_code code = millstream_input_scan_i64(in, &a, &end, error);
        if (code != MILLSTREAM_OK || end)
            return code;
        code = millstream_input_scan_i64(in, &b, NULL, error); /* required */
        if (code == MILLSTREAM_OK)
            code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK + 1, error);
        if (code != MILLSTREAM_OK)
            return code;
        out->at = millstream_put_i64(out->at, a > b ? a : b);
        *out->at++ = '\n';
        code = millstream_output_commit(out, error);
        if (code != MILLSTREAM_OK)
            return code;
    }
}

int main(void) {
    millstream_error *error = NULL;
    millstream_reader *reader = NULL;
    millstream_writer *writer = NULL;
    millstream_input in;
    millstream_output out;

    millstream_code code = millstream_reader_stdin(NULL, &reader, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_stdout(NULL, &writer, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_input_begin(&in, reader, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_output_begin(&out, writer, &error);
    if (code == MILLSTREAM_OK) {
        code = larger(&in, &out, &error);
        /* Output before an error is written, too. */
        if (millstream_output_end(&out, error == NULL ? &error : NULL) == MILLSTREAM_OK)
            (void)millstream_writer_close(writer, error == NULL ? &error : NULL);
    }
    if (error != NULL)
        fprintf(stderr, "larger: %s\n", millstream_error_message(error));
    code = millstream_error_code(error);

    millstream_writer_free(writer);
    millstream_reader_free(reader);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
