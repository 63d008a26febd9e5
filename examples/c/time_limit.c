/* Prints the lines of a command, which may take one second in total:
 *
 *     time_limit wget -O - https://example.org/slow
 *
 * A command that takes longer is stopped, with the processes that it has started: by SIGTERM at once, and by SIGKILL
 * after a grace period.
 */
#include <millstream.h>

#include <stdio.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_command *command = NULL;
    millstream_reader_options *options = NULL;
    millstream_reader *reader = NULL;
    const char *line;
    size_t len;

    millstream_code code = millstream_command_new((const char *const *)argv + 1, (size_t)argc - 1, &command, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_command_set_stop_grace_ns(command, 200 * 1000000, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_options_new(&options, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_options_set_total_timeout_ns(options, 1000000000, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_command(command, options, &reader, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_reader_next_line(reader, &line, &len, &error);
        if (line == NULL)
            break;
        printf("%.*s\n", (int)len, line);
    }
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "time_limit: %s\n", millstream_error_message(error));

    millstream_reader_free(reader); /* waits until the command is gone */
    millstream_reader_options_free(options);
    millstream_command_free(command);
    millstream_error_free(error);
    return code == MILLSTREAM_TIMED_OUT ? 124 : code == MILLSTREAM_OK ? 0 : 1;
}
