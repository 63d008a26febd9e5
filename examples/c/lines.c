/* Counts lines, and is certain that it has seen all of them:
 *
 *     lines samtools view reads.bam
 *
 * The command's output is read in batches of many lines. If the command fails, the last call returns an error.
 */
#include <millstream.h>

#include <stdio.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_command *command = NULL;
    millstream_framer *lines = NULL;
    millstream_reader *reader = NULL;
    millstream_batch batch;
    size_t count = 0, longest = 0, i;

    millstream_code code = millstream_command_new((const char *const *)argv + 1, (size_t)argc - 1, &command, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_command(command, NULL, &reader, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_reader_next_batch(reader, lines, SIZE_MAX, &batch, &error);
        if (batch.count == 0)
            break; /* the end, or an error */
        for (i = 0; i < batch.count; i++) {
            const char *line;
            size_t len;
            millstream_batch_record(&batch, i, &line, &len);
            longest = len > longest ? len : longest;
        }
        count += batch.count;
    }
    if (code == MILLSTREAM_OK)
        printf("%zu lines, the longest of %zu bytes\n", count, longest);
    else
        fprintf(stderr, "lines: %s\n", millstream_error_message(error));

    millstream_reader_free(reader);
    millstream_framer_free(lines);
    millstream_command_free(command);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
