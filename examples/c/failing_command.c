/* Counts the lines of a command, and reports how the command ended if it failed:
 *
 *     failing_command samtools view reads.bam
 */
#include <millstream.h>

#include <stdio.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_command *command = NULL;
    millstream_reader *reader = NULL;
    millstream_command_end end;
    const char *line;
    size_t len, count = 0;

    millstream_code code = millstream_command_new((const char *const *)argv + 1, (size_t)argc - 1, &command, &error);
    /* The command's standard error is kept for the error below; by default, it is also shown while the command runs. */
    if (code == MILLSTREAM_OK)
        code = millstream_command_set_stderr(command, MILLSTREAM_STDERR_CAPTURE, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_command(command, NULL, &reader, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_reader_next_line(reader, &line, &len, &error);
        if (line == NULL)
            break; /* the end, which means that the command succeeded, or an error */
        count++;
    }
    printf("%zu lines\n", count);
    if (code == MILLSTREAM_COMMAND_FAILED && millstream_error_command(error, &end))
        fprintf(stderr, "%s: %s %d\n%.*s", end.argv[0],
                end.status == MILLSTREAM_STATUS_SIGNALED ? "killed by signal" : "exited with status", (int)end.value,
                (int)end.stderr_tail_len, end.stderr_tail);
    else if (code != MILLSTREAM_OK)
        fprintf(stderr, "failing_command: %s\n", millstream_error_message(error));

    millstream_reader_free(reader);
    millstream_command_free(command);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
