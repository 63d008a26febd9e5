/* Prints the square of each number in a file, computed by four threads, in the order of the lines:
 *
 *     squares numbers.txt
 *
 * A line that is not a number is an error with its place, after the results of all lines before it.
 */
#include <millstream.h>

#include <stdio.h>

/* Is called by several threads at once. */
static millstream_code square(void *user, millstream_item_scope *scope, const char *line, size_t len) {
    char text[32];
    double number;
    int count;
    (void)user;
    if (millstream_parse_f64(line, len, &number, NULL) != MILLSTREAM_OK)
        return millstream_item_fail(scope, "the line is not a number");
    count = snprintf(text, sizeof text, "%.17g", number * number);
    return millstream_item_append(scope, text, (size_t)count, NULL);
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_framer *lines = NULL;
    millstream_reader *reader = NULL;
    millstream_writer *out = NULL;
    millstream_pipe *pipe = NULL;

    millstream_code code = millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_stdout(NULL, &out, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_path(argc > 1 ? argv[1] : "numbers.txt", NULL, &reader, &error);
    if (code == MILLSTREAM_OK) {
        code = millstream_pipe_new(reader, lines, &pipe, &error);
        lines = NULL; /* the pipe owns them now */
    }
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_add_parallel(pipe, "square", 4, true, square, NULL, NULL, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_write_to(pipe, out, NULL, &error);
    /* The results before an error are written, too. */
    if (out != NULL)
        (void)millstream_writer_close(out, error == NULL ? &error : NULL);
    code = millstream_error_code(error);
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "squares: %s\n", millstream_error_message(error));

    millstream_pipe_free(pipe);
    millstream_writer_free(out);
    millstream_framer_free(lines);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
