/* Lines through a C pipe with any number of stages that pass them on; and the same in a handwritten loop over batches.
 *
 * Usage: PROGRAM pipe|loop STAGES INPUT. Exit status 1: an error of the library; 2: invalid arguments.
 */
#define _POSIX_C_SOURCE 199309L
#include <millstream.h>
#include <millstream/window.h>
#include <string.h>

#include "passes.h"

static void must(millstream_code code, millstream_error *error) {
    if (code != MILLSTREAM_OK) {
        fprintf(stderr, "%s\n", error != NULL ? millstream_error_message(error) : "an error");
        exit(1);
    }
}

/* Passes each item on, like a filter that keeps all of them. */
static millstream_code pass_on(void *user, millstream_stage_scope *scope, millstream_span *items, size_t *count) {
    size_t left = 0;
    (void)user;
    (void)scope;
    for (size_t i = 0; i < *count; i++) {
        items[left++] = items[i];
    }
    *count = left;
    return MILLSTREAM_OK;
}

static size_t sink(void *user, const millstream_span *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tally_add((struct tally *)user, items[i].data, items[i].len);
    }
    return count;
}

static struct tally through_pipe(int stages, const char *input) {
    millstream_error *error = NULL;
    millstream_reader *reader;
    millstream_framer *lines;
    millstream_pipe *pipe;
    struct tally tally = {0, 0, 0};
    must(millstream_reader_path(input, NULL, &reader, &error), error);
    must(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error), error);
    must(millstream_pipe_new(reader, lines, &pipe, &error), error);
    for (int i = 0; i < stages; i++) {
        must(millstream_pipe_add_stage(pipe, "none", pass_on, NULL, NULL, &error), error);
    }
    must(millstream_pipe_run(pipe, sink, &tally, NULL, &error), error);
    millstream_pipe_free(pipe);
    return tally;
}

/* Stages that do nothing need no code in this loop. */
static struct tally by_hand(int stages, const char *input) {
    millstream_error *error = NULL;
    millstream_reader *reader;
    millstream_framer *lines;
    millstream_batch batch;
    struct tally tally = {0, 0, 0};
    (void)stages;
    must(millstream_reader_path(input, NULL, &reader, &error), error);
    must(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error), error);
    for (;;) {
        must(millstream_reader_next_batch(reader, lines, SIZE_MAX, &batch, &error), error);
        if (batch.count == 0) {
            break;
        }
        for (size_t i = 0; i < batch.count; i++) {
            const char *line;
            size_t len;
            millstream_batch_record(&batch, i, &line, &len);
            tally_add(&tally, line, len);
        }
    }
    millstream_framer_free(lines);
    must(millstream_reader_close(reader, &error), error);
    millstream_reader_free(reader);
    return tally;
}

int main(int argc, char **argv) {
    const bool is_pipe = argc == 4 && strcmp(argv[1], "pipe") == 0;
    if (argc != 4 || (!is_pipe && strcmp(argv[1], "loop") != 0)) {
        return 2;
    }
    return passes_report(is_pipe ? through_pipe : by_hand, (int)strtol(argv[2], NULL, 10), argv[3]);
}
