/* Prints the lines of a command that contain a word, in capitals, and is certain that it has seen all of them:
 *
 *     filter WORD samtools view reads.bam
 *
 * Each stage is a function that is called once for each batch of lines. The program fails if the command fails.
 */
#include <millstream.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Keeps the lines with the word, by moving items in the array without copying the lines. */
static millstream_code has_word(void *user, millstream_stage_scope *scope, millstream_span *lines, size_t *count) {
    const char *word = (const char *)user;
    size_t word_len = strlen(word), left = 0, i, at;
    (void)scope;
    for (i = 0; i < *count; i++) {
        for (at = 0; at + word_len <= lines[i].len; at++) {
            if (memcmp(lines[i].data + at, word, word_len) == 0) {
                lines[left++] = lines[i];
                break;
            }
        }
    }
    *count = left;
    return MILLSTREAM_OK;
}

/* Creates new bytes, in memory that lives as long as the batch. */
static millstream_code capitals(void *user, millstream_stage_scope *scope, millstream_span *lines, size_t *count) {
    size_t total = 0, i, at;
    char *to;
    (void)user;
    for (i = 0; i < *count; i++)
        total += lines[i].len;
    to = millstream_stage_space(scope, total);
    for (i = 0; i < *count; i++) {
        for (at = 0; at < lines[i].len; at++)
            to[at] = (char)toupper((unsigned char)lines[i].data[at]);
        lines[i].data = to;
        to += lines[i].len;
    }
    return MILLSTREAM_OK;
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_command *command = NULL;
    millstream_framer *lines = NULL;
    millstream_reader *reader = NULL;
    millstream_writer *out = NULL;
    millstream_pipe *pipe = NULL;
    millstream_code code;

    if (argc < 3) {
        fprintf(stderr, "usage: filter WORD COMMAND [ARGUMENT...]\n");
        return 2;
    }
    code = millstream_command_new((const char *const *)argv + 2, (size_t)argc - 2, &command, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_stdout(NULL, &out, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_command(command, NULL, &reader, &error);
    if (code == MILLSTREAM_OK) {
        code = millstream_pipe_new(reader, lines, &pipe, &error);
        lines = NULL; /* the pipe owns them now */
    }
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_add_stage(pipe, "has_word", has_word, argv[1], NULL, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_add_stage(pipe, "capitals", capitals, NULL, NULL, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_pipe_write_to(pipe, out, NULL, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_close(out, &error);
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "filter: %s\n", millstream_error_message(error));

    millstream_pipe_free(pipe);
    millstream_writer_free(out);
    millstream_framer_free(lines);
    millstream_command_free(command);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
