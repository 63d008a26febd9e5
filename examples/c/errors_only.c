/* Copies the lines that begin with "ERROR" from one file to another; the names say how the files are compressed:
 *
 *     errors_only server.log.gz errors.log.zst
 *
 * The new file appears when it is complete. If the program fails, the old content remains, or there is no file.
 */
#include <millstream.h>

#include <stdio.h>
#include <string.h>

static millstream_code errors(void *user, millstream_stage_scope *scope, millstream_span *lines, size_t *count) {
    size_t left = 0, i;
    (void)user;
    (void)scope;
    for (i = 0; i < *count; i++)
        if (lines[i].len >= 5 && memcmp(lines[i].data, "ERROR", 5) == 0)
            lines[left++] = lines[i];
    *count = left;
    return MILLSTREAM_OK;
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_framer *lines = NULL;
    millstream_reader *reader = NULL;
    millstream_writer *writer = NULL;
    millstream_pipe *pipe = NULL;
    millstream_summary summary;
    millstream_code code;

    if (argc != 3) {
        fprintf(stderr, "usage: errors_only FROM TO\n");
        return 2;
    }
    code = millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_path(argv[2], NULL, &writer, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_path(argv[1], NULL, &reader, &error);
    if (code == MILLSTREAM_OK) {
        code = millstream_pipe_new(reader, lines, &pipe, &error);
        lines = NULL; /* the pipe owns them now */
    }
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_add_stage(pipe, "errors", errors, NULL, NULL, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_write_to(pipe, writer, &summary, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_close(writer, &error);
    if (code == MILLSTREAM_OK)
        printf("%llu errors\n", (unsigned long long)summary.items);
    else
        fprintf(stderr, "errors_only: %s\n", millstream_error_message(error));

    millstream_pipe_free(pipe);
    millstream_writer_free(writer); /* the file does not appear, unless the writer was closed */
    millstream_framer_free(lines);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
