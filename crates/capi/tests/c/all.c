/*
 * Uses every function of millstream.h, as C99 and as C++: what it gives, what it refuses, and how it ends.
 *
 *     all DIRECTORY ADDRESS        an empty directory for its files, and the address of tools/object-server
 *
 * The tests of the Rust library say that the functions do the right thing; this says that they do it for C.
 */
#include "millstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The error of the last call that failed. */
static millstream_error *error;
static const char *directory;
static const char *object_server;

static void fail(int line, const char *what) {
    fprintf(stderr, "all.c:%d: %s\n", line, what);
    if (error != NULL)
        fprintf(stderr, "the last error: %s\n", millstream_error_message(error));
    exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define MUST(call) CHECK((call) == MILLSTREAM_OK)

/* The call fails with this code, and leaves an error that says so. */
#define FAILS(expected, call)                                                                                          \
    do {                                                                                                               \
        CHECK(error == NULL);                                                                                          \
        CHECK((call) == (expected));                                                                                   \
        CHECK(error != NULL && millstream_error_code(error) == (expected));                                            \
        millstream_error_free(error);                                                                                  \
        error = NULL;                                                                                                  \
    } while (0)

static int is(const char *bytes, size_t len, const char *expected) {
    return bytes != NULL && len == strlen(expected) && memcmp(bytes, expected, len) == 0;
}

/* A path in the directory; valid until the next call. */
static const char *in_directory(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void make_file(const char *name, const char *content) {
    FILE *file = fopen(in_directory(name), "w");
    CHECK(file != NULL && fputs(content, file) >= 0 && fclose(file) == 0);
}

static void has_file(const char *name, const char *content) {
    static char found[4096];
    FILE *file = fopen(in_directory(name), "r");
    size_t len;
    CHECK(file != NULL);
    len = fread(found, 1, sizeof found, file);
    fclose(file);
    CHECK(is(found, len, content));
}

/* The reader's next lines are these, separated by '|', and then comes the end. */
static void gives_lines(millstream_reader *reader, const char *expected) {
    const char *line;
    size_t len;
    while (*expected != '\0') {
        size_t until = strcspn(expected, "|");
        MUST(millstream_reader_next_line(reader, &line, &len, &error));
        CHECK(line != NULL && len == until && memcmp(line, expected, len) == 0);
        expected += until + (expected[until] == '|');
    }
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(line == NULL && len == 0);
}

static millstream_reader *memory_reader(const char *text) {
    millstream_reader *reader;
    MUST(millstream_reader_memory(text, strlen(text), NULL, &reader, &error));
    return reader;
}

static millstream_command *shell_command(const char *line) {
    const char *argv[3] = {"sh", "-c", NULL};
    millstream_command *command;
    argv[2] = line;
    MUST(millstream_command_new(argv, 3, &command, &error));
    return command;
}

/* A listening socket of 127.0.0.1, and its address. */
static int listen_tcp(char *address, size_t size) {
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    memset(&name, 0, sizeof name);
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&name, sizeof name) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&name, &len) == 0);
    snprintf(address, size, "127.0.0.1:%d", (int)ntohs(name.sin_port));
    return server;
}

static int listen_unix(const char *path) {
    struct sockaddr_un name;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    memset(&name, 0, sizeof name);
    name.sun_family = AF_UNIX;
    CHECK(strlen(path) < sizeof name.sun_path);
    strcpy(name.sun_path, path);
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&name, sizeof name) == 0 && listen(server, 1) == 0);
    return server;
}

/* ---- version and error ---- */

static void version(void) { CHECK(strcmp(millstream_version(), MILLSTREAM_VERSION) == 0); }

static void codes(void) {
    CHECK(strcmp(millstream_code_name(MILLSTREAM_COMMAND_FAILED), "command_failed") == 0);
    CHECK(strlen(millstream_code_advice(MILLSTREAM_COMMAND_FAILED)) > 0);
    CHECK(millstream_code_name(MILLSTREAM_OK) == NULL && millstream_code_advice((millstream_code)9999) == NULL);
    CHECK(millstream_code_is_resumable(MILLSTREAM_CANCELLED) && !millstream_code_is_resumable(MILLSTREAM_IO));
}

static void errors(void) {
    millstream_command *command = shell_command("echo one; echo oops >&2; exit 3");
    millstream_command_end end;
    const millstream_command_end *ends;
    millstream_reader *reader;
    const char *line;
    uint64_t number = 7;
    size_t len, count;

    MUST(millstream_command_set_stderr(command, MILLSTREAM_STDERR_CAPTURE, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "one"));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_COMMAND_FAILED);
    CHECK(line == NULL && len == 0);
    CHECK(millstream_error_code(error) == MILLSTREAM_COMMAND_FAILED);
    CHECK(strstr(millstream_error_message(error), "exited with status 3") != NULL);
    CHECK(strstr(millstream_error_name(error), "sh -c") != NULL);
    CHECK(strcmp(millstream_error_name(error), millstream_reader_name(reader)) == 0);
    CHECK(millstream_error_offset(error, &number) && number == 4);
    CHECK(!millstream_error_record(error, &number) && !millstream_error_written(error, &number) && number == 4);
    CHECK(millstream_error_errno(error) == 0);
    CHECK(millstream_error_command(error, &end));
    CHECK(end.argc == 3 && strcmp(end.argv[0], "sh") == 0 && end.status == MILLSTREAM_STATUS_EXITED);
    CHECK(end.value == 3 && is(end.stderr_tail, end.stderr_tail_len, "oops\n"));
    millstream_error_free(error);
    error = NULL;
    CHECK(millstream_reader_has_ended(reader) && !millstream_reader_has_ended(NULL));

    /* It is reported once, then comes a plain end; how the command ended is still known. */
    gives_lines(reader, "");
    MUST(millstream_reader_command_ends(reader, &ends, &count, &error));
    CHECK(count == 1 && ends[0].value == 3 && ends[0].argc == 3);
    /* Closing reports the failure again, which might have been overlooked. */
    CHECK(millstream_reader_close(reader, &error) == MILLSTREAM_COMMAND_FAILED);
    CHECK(millstream_error_code(error) == MILLSTREAM_COMMAND_FAILED);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_reader_command_ends(reader, &ends, &count, &error));
    CHECK(count == 1 && ends[0].value == 3);
    millstream_reader_free(reader);
    millstream_command_free(command);

    /* What a command that fails wrote of its last record is none; its bytes are still there. */
    command = shell_command("printf '100\\n200\\n30'; exit 3");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "100"));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "200"));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_COMMAND_FAILED);
    CHECK(strstr(millstream_error_message(error), "2 bytes of an unfinished record, \"30\"") != NULL);
    CHECK(millstream_error_record(error, &number) && number == 2);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_reader_buffer(reader, &line, &len, &error));
    CHECK(is(line, len, "30"));
    millstream_reader_free(reader);
    millstream_command_free(command);

    /* A finalizer must not wait: this command would take two seconds to be stopped. */
    command = shell_command("trap '' TERM; echo one; while :; do sleep 0.1; done");
    MUST(millstream_command_ends_with_us(command, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "one"));
    MUST(millstream_reader_abort(reader, &error));
    CHECK(millstream_reader_next_line(reader, &line, &len, NULL) == MILLSTREAM_CLOSED);
    CHECK(millstream_reader_abort(reader, NULL) == MILLSTREAM_CLOSED);
    millstream_reader_free(reader);
    millstream_command_free(command);

    /* If a command is not read to its end, its status does not matter. */
    command = shell_command("exit 3");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    CHECK(poll(NULL, 0, 20) == 0);
    MUST(millstream_reader_close(reader, &error));
    millstream_reader_free(reader);
    millstream_command_free(command);

    CHECK(millstream_reader_path(in_directory("missing"), NULL, &reader, &error) == MILLSTREAM_OPEN_FAILED);
    CHECK(reader == NULL && millstream_error_errno(error) == ENOENT);
    CHECK(strcmp(millstream_error_name(error), in_directory("missing")) == 0);
    CHECK(millstream_error_expected(error) == NULL && millstream_error_found(error) == NULL);
    CHECK(!millstream_error_command(error, &end));
    millstream_error_free(error);
    error = NULL;

    /* Whoever wants no error passes NULL. */
    CHECK(millstream_reader_path(in_directory("missing"), NULL, &reader, NULL) == MILLSTREAM_OPEN_FAILED);

    CHECK(millstream_error_code(NULL) == MILLSTREAM_OK && millstream_error_message(NULL) == NULL);
    CHECK(millstream_error_name(NULL) == NULL && millstream_error_expected(NULL) == NULL);
    CHECK(millstream_error_path(NULL) == NULL);
    CHECK(millstream_error_found(NULL) == NULL && millstream_error_errno(NULL) == 0);
    CHECK(!millstream_error_offset(NULL, &number) && !millstream_error_command(NULL, &end));
    millstream_error_free(NULL);
}

/* ---- cancel ---- */

static millstream_cancel_token *alarm_token;

static void on_alarm(int signal_number) {
    (void)signal_number;
    millstream_cancel_token_cancel(alarm_token);
}

static void cancelling(void) {
    millstream_command *command = shell_command("sleep 60");
    millstream_reader_options *options;
    millstream_reader *reader;
    const char *line;
    size_t len;

    MUST(millstream_cancel_token_new(&alarm_token, &error));
    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_cancel(options, alarm_token, &error));
    MUST(millstream_reader_command(command, options, &reader, &error));
    CHECK(!millstream_cancel_token_is_cancelled(alarm_token));
    CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
    alarm(1);
    FAILS(MILLSTREAM_CANCELLED, millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(millstream_cancel_token_is_cancelled(alarm_token));
    MUST(millstream_cancel_token_reset(alarm_token));
    CHECK(!millstream_cancel_token_is_cancelled(alarm_token));
    CHECK(signal(SIGALRM, SIG_DFL) != SIG_ERR);

    CHECK(millstream_cancel_token_cancel(NULL) == MILLSTREAM_ARGUMENT_INVALID);
    CHECK(millstream_cancel_token_reset(NULL) == MILLSTREAM_ARGUMENT_INVALID);
    CHECK(!millstream_cancel_token_is_cancelled(NULL));
    millstream_cancel_token_free(NULL);
    /* Readers keep what they need of their options and token. */
    millstream_cancel_token_free(alarm_token);
    millstream_reader_options_free(options);
    millstream_command_free(command);
    /* The sleeping command goes with the reader. */
    millstream_reader_free(reader);
}

/* ---- command ---- */

/* An event loop waits for the reader's file descriptor, and a fill then has something to do. */
static void waiting_by_oneself(const millstream_command *command) {
    millstream_reader *reader;
    const char *bytes;
    size_t len, added = 1;

    MUST(millstream_reader_command(command, NULL, &reader, &error));
    while (added > 0) {
        struct pollfd ready;
        ready.fd = millstream_reader_waits_for(reader);
        ready.events = POLLIN;
        ready.revents = 0;
        CHECK(ready.fd >= 0 && poll(&ready, 1, -1) == 1);
        MUST(millstream_reader_fill(reader, &bytes, &len, &added, &error));
        MUST(millstream_reader_consume(reader, len, &error));
    }
    CHECK(millstream_reader_waits_for(reader) == -1);
    CHECK(millstream_reader_waits_for(NULL) == -1);
    millstream_reader_free(reader);
}

/* A command that would continue is timed out, and stopped as its options say. */
static void limits_of_a_command(void) {
    static const int32_t statuses[] = {0, 3};
    static const int32_t signals[] = {9};
    millstream_command *command = shell_command("read line; echo $line; exit $line");
    millstream_reader_options *options;
    millstream_reader *reader;
    millstream_command_end end;
    const char *line;
    size_t len;

    MUST(millstream_command_set_success_statuses(command, statuses, 2, &error));
    MUST(millstream_command_set_success_signals(command, signals, 1, &error));
    MUST(millstream_command_set_stdin_bytes(command, (const uint8_t *)"3\n", 2, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    CHECK(millstream_reader_wait_limit_ns(reader) == UINT64_MAX && millstream_reader_wait_limit_ns(NULL) == UINT64_MAX);
    gives_lines(reader, "3");
    millstream_reader_free(reader);
    MUST(millstream_command_set_stdin_path(command, in_directory("three"), &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_command(command, NULL, &reader, &error));
    make_file("three", "3\n");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    gives_lines(reader, "3");
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_command_set_stdin_path(command, NULL, &error));
    MUST(millstream_command_set_stdin_bytes(command, (const uint8_t *)"4\n", 2, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_reader_next_line(reader, &line, &len, &error));
    millstream_reader_free(reader);
    millstream_command_free(command);

    command = shell_command("echo 12345 >&2; exit 3");
    MUST(millstream_command_set_stderr(command, MILLSTREAM_STDERR_CAPTURE, &error));
    MUST(millstream_command_set_stderr_limit(command, 3, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_COMMAND_FAILED);
    CHECK(millstream_error_command(error, &end) && is(end.stderr_tail, end.stderr_tail_len, "45\n"));
    millstream_error_free(error);
    error = NULL;
    millstream_reader_free(reader);
    millstream_command_free(command);

    command = shell_command("trap '' TERM; exec sleep 60");
    MUST(millstream_command_set_stop_signal(command, 2, &error));
    MUST(millstream_command_set_stop_grace_ns(command, 0, &error));
    MUST(millstream_command_set_process_group(command, MILLSTREAM_PROCESS_GROUP_OWN, &error));
    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_total_timeout_ns(options, UINT64_C(50000000), &error));
    MUST(millstream_reader_command(command, options, &reader, &error));
    CHECK(millstream_reader_wait_limit_ns(reader) <= UINT64_C(50000000));
    FAILS(MILLSTREAM_TIMED_OUT, millstream_reader_next_line(reader, &line, &len, &error));
    millstream_reader_free(reader);
    millstream_reader_options_free(options);
    MUST(millstream_command_set_stop_signal(command, 999, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
}

/* An event loop that has waited for too long says so, and the reader reports it. */
static void waiting_too_long(void) {
    const char *const argv[] = {"sleep", "60"};
    millstream_command *command;
    millstream_reader_options *options;
    millstream_reader *reader;
    const char *line;
    size_t len;

    MUST(millstream_command_new(argv, 2, &command, &error));
    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_stall_timeout_ns(options, UINT64_C(60000000000), &error));
    MUST(millstream_reader_command(command, options, &reader, &error));
    MUST(millstream_reader_stall(reader, &error));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_STALLED && line == NULL);
    CHECK(strstr(millstream_error_message(error), "no progress for 60 s") != NULL);
    millstream_error_free(error);
    error = NULL;
    millstream_reader_free(reader);
    millstream_reader_options_free(options);
    millstream_command_free(command);
}

/* Numbers for the input of a command, which another thread asks for. */
struct input {
    int next;
    int count;
    int failure;
    int released;
};

static ptrdiff_t fill_input(void *user, char *space, size_t len) {
    struct input *input = (struct input *)user;
    CHECK(len > 16);
    if (input->next < input->count)
        return snprintf(space, len, "%d\n", input->next++);
    return -input->failure;
}

/* Waits until it is interrupted. */
static ptrdiff_t wait_for_a_token(void *user, char *space, size_t len) {
    const struct timespec moment = {0, 1000000};
    (void)space;
    (void)len;
    while (!millstream_cancel_token_is_cancelled((const millstream_cancel_token *)user))
        nanosleep(&moment, NULL);
    return -EIO;
}

static void release_input(void *user) { ((struct input *)user)->released++; }

static void input_by_a_callback(void) {
    struct input input = {1, 4, 0, 0}, failing = {1, 3, EIO, 0}, unused = {0, 0, 0, 0};
    millstream_command *command = shell_command("cat");
    millstream_cancel_token *token;
    const millstream_cancel_token *tokens[1];
    millstream_reader *reader;
    const char *line;
    size_t len;

    MUST(millstream_command_set_stdin_callback(command, fill_input, &input, release_input, NULL, 0, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    gives_lines(reader, "1|2|3");
    CHECK(input.released == 1);
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_command(command, NULL, &reader, &error));

    /* A failure follows all output. */
    MUST(millstream_command_set_stdin_callback(command, fill_input, &failing, release_input, NULL, 0, &error));
    millstream_command_free(command);
    command = shell_command("cat");
    CHECK(failing.released == 1);
    MUST(millstream_command_set_stdin_callback(command, fill_input, &failing, release_input, NULL, 0, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "2"));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_IO);
    CHECK(millstream_error_errno(error) == EIO);
    millstream_error_free(error);
    error = NULL;
    millstream_reader_free(reader);
    CHECK(failing.released == 2);

    /* A wait that is interrupted because the command needs no more input. */
    command = shell_command("echo one");
    MUST(millstream_cancel_token_new(&token, &error));
    tokens[0] = token;
    MUST(millstream_command_set_stdin_callback(command, wait_for_a_token, token, NULL, tokens, 1, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    gives_lines(reader, "one");
    millstream_reader_free(reader);
    CHECK(millstream_cancel_token_is_cancelled(token));
    millstream_cancel_token_free(token);

    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_command_set_stdin_callback(command, NULL, &unused, release_input, NULL, 0, &error));
    tokens[0] = NULL;
    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_command_set_stdin_callback(command, fill_input, &unused, release_input, tokens, 1, &error));
    CHECK(unused.released == 2);
    millstream_command_free(command);

    /* A token for a reader that waits. */
    command = shell_command("sleep 60");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    millstream_command_free(command);
    MUST(millstream_reader_interrupter(reader, &token, &error));
    millstream_cancel_token_cancel(token);
    FAILS(MILLSTREAM_CANCELLED, millstream_reader_next_line(reader, &line, &len, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_interrupter(reader, NULL, &error));
    millstream_cancel_token_free(token);
    millstream_reader_free(reader);
}

static void commands(void) {
    millstream_command *command = shell_command("echo $A $B $C; pwd; cat; echo \"$0 $1\"");
    millstream_reader *reader;
    int ends[2];

    MUST(millstream_command_add_arg(command, "zero", &error));
    MUST(millstream_command_add_arg(command, "", &error));
    MUST(millstream_command_set_env(command, "A", "lost", &error));
    MUST(millstream_command_clear_env(command, &error));
    MUST(millstream_command_set_env(command, "PATH", "/usr/bin:/bin", &error));
    MUST(millstream_command_set_env(command, "B", "b", &error));
    MUST(millstream_command_set_env(command, "C", "c", &error));
    MUST(millstream_command_set_env(command, "C", NULL, &error));
    MUST(millstream_command_set_current_dir(command, "/", &error));
    CHECK(pipe(ends) == 0 && write(ends[1], "input\n", 6) == 6 && close(ends[1]) == 0);
    MUST(millstream_command_set_stdin_fd(command, ends[0], &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    gives_lines(reader, "b|/|input|zero ");
    millstream_reader_free(reader);
    CHECK(close(ends[0]) == 0);

    /* A command can be used again. */
    MUST(millstream_command_set_stdin(command, MILLSTREAM_STDIN_NULL, &error));
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    gives_lines(reader, "b|/|zero ");
    millstream_reader_free(reader);
    waiting_by_oneself(command);
    waiting_too_long();
    limits_of_a_command();

    input_by_a_callback();

    FAILS(MILLSTREAM_INVALID_OPTION, millstream_command_set_stdin(command, (millstream_stdin)77, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_command_set_stdout(command, (millstream_stdout)77, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_command_set_stderr(command, (millstream_stderr)77, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_command_set_stdin_fd(command, -1, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_command_set_stdout_fd(command, 987654, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_command_add_arg(command, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_command_add_arg(NULL, "", &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_command_set_env(command, NULL, "", &error));
    millstream_command_free(command);
    millstream_command_free(NULL);

    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_command_new(NULL, 1, &command, &error));
    CHECK(command == NULL);
    MUST(millstream_command_new(NULL, 0, &command, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_command(command, NULL, &reader, &error));
    CHECK(reader == NULL);
    millstream_command_free(command);
}

/* ---- frame ---- */

static bool is_vowel(void *user, uint8_t byte) {
    ++*(int *)user;
    return byte != 0 && strchr("aeiou", byte) != NULL;
}

/* The records of a text, each followed by '|'. */
static void gives_records(millstream_framer *framer, const char *text, const char *expected) {
    millstream_batch batch;
    char found[256] = "";
    size_t i;
    MUST(millstream_framer_batch(framer, text, strlen(text), true, SIZE_MAX, &batch, &error));
    CHECK(batch.bytes == text && batch.len == strlen(text) && batch.offset == 0 && batch.first_record == 0);
    for (i = 0; i < batch.count; i++) {
        const char *record;
        size_t len;
        millstream_batch_record(&batch, i, &record, &len);
        strncat(found, record, len);
        strcat(found, "|");
    }
    CHECK(strcmp(found, expected) == 0);
    millstream_framer_free(framer);
}

/* The fields of a text of CSV, each followed by '|', and each row by '/'. */
static void gives_rows(const char *dialect, const char *text, const char *expected) {
    millstream_framer *framer;
    millstream_batch batch;
    millstream_rows rows;
    char found[256] = "";
    size_t row, at;
    MUST(millstream_framer_csv(dialect, &framer, &error));
    MUST(millstream_framer_batch(framer, text, strlen(text), true, SIZE_MAX, &batch, &error));
    MUST(millstream_framer_rows(framer, &batch, &rows, &error));
    for (row = 0; row < rows.count; row++) {
        CHECK(rows.records[row] < batch.count);
        for (at = rows.starts[row]; at < rows.starts[row + 1]; at++) {
            strncat(found, rows.fields[at].bytes, rows.fields[at].len);
            strcat(found, "|");
        }
        strcat(found, "/");
    }
    CHECK(strcmp(found, expected) == 0);
    millstream_framer_free(framer);
}

static void csv(void) {
    millstream_framer *framer, *lines;
    millstream_reader *reader;
    millstream_batch batch;
    millstream_rows rows;
    uint64_t line;
    uint32_t descending[2] = {1, 0};

    gives_rows(NULL, "id,\"a, b\"\r\n\n\"say \"\"hi\"\"\",", "id|a, b|/say \"hi\"||/");
    gives_rows("", "", "");
    gives_rows("delimiter=3b quote=27 comment=23 line_end=lf", "'a;';b\r\n#c\n", "a;|b\r|/");
    gives_rows("escape=5c blank_records=on literal_quotes=on", "a\\,\"\n\nb", "a,\"|/|/b|/");
    gives_rows("quote=none doubled_quotes=off detect_mark=off", "\"a,b\"\n", "\"a|b\"|/");

    MUST(millstream_framer_csv(NULL, &framer, &error));
    MUST(millstream_framer_batch(framer, "\na,bc\n\n", 7, true, 99, &batch, &error));
    MUST(millstream_framer_rows(framer, &batch, &rows, &error));
    /* A field is a part of its record, and the lines without a record are left out. */
    CHECK(batch.count == 3 && rows.count == 1 && rows.records[0] == 1);
    CHECK(rows.starts[0] == 0 && rows.starts[1] == 2);
    CHECK(rows.fields[1].bytes == batch.bytes + 3 && rows.fields[1].len == 2);
    MUST(millstream_reader_memory("\"a\nb\"\n1,2\n", 10, NULL, &reader, &error));
    MUST(millstream_reader_next_batch(reader, framer, SIZE_MAX, &batch, &error));
    CHECK(batch.count == 2);
    MUST(millstream_reader_check_fields(reader, 1, 2, 2, MILLSTREAM_CSV_RAGGED_ERROR, &error));
    MUST(millstream_reader_check_fields(reader, 1, 2, 3, MILLSTREAM_CSV_RAGGED_PAD, &error));
    FAILS(MILLSTREAM_FIELD_COUNT_MISMATCH,
          millstream_reader_check_fields(reader, 1, 2, 1, MILLSTREAM_CSV_RAGGED_PAD, &error));
    MUST(millstream_reader_check_fields(reader, 1, 2, 1, MILLSTREAM_CSV_RAGGED_COLLECT, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_check_fields(reader, 1, 2, 2, (millstream_csv_ragged)9, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_reader_check_fields(NULL, 1, 2, 2, MILLSTREAM_CSV_RAGGED_ERROR, &error));
    CHECK(millstream_reader_check_fields(reader, 2, 2, 3, MILLSTREAM_CSV_RAGGED_ERROR, &error) ==
          MILLSTREAM_FIELD_COUNT_MISMATCH);
    CHECK(!millstream_error_line(error, &line));
    millstream_error_free(error);
    CHECK(millstream_reader_check_fields(reader, 1, 2, 3, MILLSTREAM_CSV_RAGGED_ERROR, &error) ==
          MILLSTREAM_FIELD_COUNT_MISMATCH);
    CHECK(millstream_error_line(error, &line) && line == 3);
    CHECK(strstr(millstream_error_message(error), "found 2 fields, expected 3, as in the header, at line 3, column 1"));
    millstream_error_free(error);
    error = NULL;
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_CSV_INVALID, millstream_framer_batch(framer, "a\"", 2, true, 99, &batch, &error));
    CHECK(batch.count == 0);
    MUST(millstream_framer_rows(framer, &batch, &rows, &error));
    CHECK(rows.count == 0 && rows.starts[0] == 0);

    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_rows(NULL, &batch, &rows, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_rows(framer, NULL, &rows, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_rows(framer, &batch, NULL, &error));
    batch.bytes = "ab";
    batch.len = 2;
    batch.offsets = descending;
    batch.count = 1;
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_rows(framer, &batch, &rows, &error));
    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_rows(lines, &batch, &rows, &error));
    millstream_framer_free(lines);
    millstream_framer_free(framer);
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_framer_csv("delimiter=22", &framer, &error));
    CHECK(framer == NULL);
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_framer_csv("delimiter=;", &framer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_csv(NULL, NULL, &error));
}

static void json_lines(void) {
    millstream_framer *framer;
    millstream_batch batch;
    bool skips = false;

    MUST(millstream_framer_json_lines(false, 0, &framer, &error));
    gives_records(framer, "{}\r\n \nx", "{}| |x|");
    MUST(millstream_framer_json_lines(true, 1, &framer, &error));
    MUST(millstream_framer_batch(framer, "[1]\n\n[[\n", 8, true, 99, &batch, &error));
    CHECK(batch.count == 2);
    FAILS(MILLSTREAM_TOO_DEEP, millstream_framer_batch(framer, "[[\n", 3, true, 99, &batch, &error));
    FAILS(MILLSTREAM_JSON_INVALID, millstream_framer_batch(framer, "[x\n", 3, true, 99, &batch, &error));
    MUST(millstream_framer_skips(framer, "", 0, &skips, &error));
    CHECK(skips);
    MUST(millstream_framer_skips(framer, " 1", 2, &skips, &error));
    CHECK(!skips);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_skips(NULL, "", 0, &skips, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_skips(framer, NULL, 1, &skips, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_skips(framer, "", 0, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_json_lines(true, 1, NULL, &error));
    millstream_framer_free(framer);
}

static void framers(void) {
    millstream_framer *framer;
    millstream_batch batch;
    int asked = 0;

    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    gives_records(framer, "a\r\n\nb\r", "a||b\r|");
    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_UNTRIMMED, &framer, &error));
    gives_records(framer, "a\r\n\nb\r", "a\r\n|\n|b\r|");
    MUST(millstream_framer_delimiter("--", 2, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    gives_records(framer, "a-b--c", "a-b|c|");
    MUST(millstream_framer_delimiter(";", 1, MILLSTREAM_DELIMITED_UNTRIMMED, &framer, &error));
    gives_records(framer, "a;b;", "a;|b;|");
    MUST(millstream_framer_predicate(is_vowel, &asked, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    CHECK(asked == 256);
    gives_records(framer, "stream", "str||m|");
    MUST(millstream_framer_predicate(is_vowel, &asked, MILLSTREAM_DELIMITED_UNTRIMMED, &framer, &error));
    gives_records(framer, "stream", "stre|a|m|");
    MUST(millstream_framer_fixed(2, &framer, &error));
    gives_records(framer, "abcd", "ab|cd|");
    MUST(millstream_framer_length_prefixed(1, MILLSTREAM_ENDIAN_BIG, MILLSTREAM_PREFIX_COUNTS_ITSELF, &framer, &error));
    gives_records(framer, "\3ab\2c", "ab|c|");

    /* What is not whole is left, or is an error where there is nothing more. */
    MUST(millstream_framer_length_prefixed(2, MILLSTREAM_ENDIAN_LITTLE, MILLSTREAM_PREFIX_COUNTS_PAYLOAD, &framer,
                                           &error));
    MUST(millstream_framer_batch(framer, "\1\0a\2\0b", 6, false, 99, &batch, &error));
    CHECK(batch.count == 1 && batch.offsets[1] == 3 && batch.trim.head == 2 && batch.terminated);
    FAILS(MILLSTREAM_FRAME_TRUNCATED, millstream_framer_batch(framer, "\2\0b", 3, true, 99, &batch, &error));
    CHECK(batch.count == 0);
    MUST(millstream_framer_batch(framer, NULL, 0, true, 99, &batch, &error));
    CHECK(batch.count == 0 && batch.offsets[0] == 0);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_batch(framer, NULL, 1, true, 99, &batch, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_batch(NULL, "", 0, true, 99, &batch, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_batch(framer, "", 0, true, 99, NULL, &error));
    millstream_framer_free(framer);
    millstream_framer_free(NULL);

    FAILS(MILLSTREAM_INVALID_OPTION, millstream_framer_lines((millstream_delimited)2, &framer, &error));
    CHECK(framer == NULL);
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_framer_delimiter("", 0, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_framer_fixed(0, &framer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_framer_predicate(NULL, NULL, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_length_prefixed(
                                           3, MILLSTREAM_ENDIAN_BIG, MILLSTREAM_PREFIX_COUNTS_ITSELF, &framer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, NULL, &error));

    MUST(millstream_check_text("Gr\xc3\xbc\xc3\x9f", 6, &error));
    FAILS(MILLSTREAM_UTF8_INVALID, millstream_check_text("Gr\xfc", 3, &error));
}

/* ---- reader ---- */

static void sources(void) {
    static const char text[] = "one\ntwo\n";
    const millstream_command *pipeline[2];
    millstream_command *first, *second;
    millstream_reader *reader;
    char address[64];
    int fd, saved, server, peer, ends[2];

    make_file("two.txt", text);
    MUST(millstream_reader_path(in_directory("two.txt"), NULL, &reader, &error));
    CHECK(strcmp(millstream_reader_name(reader), in_directory("two.txt")) == 0);
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    MUST(millstream_reader_mapped(in_directory("two.txt"), NULL, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_mapped("/dev/null", NULL, &reader, &error));

    fd = open(in_directory("two.txt"), O_RDONLY);
    MUST(millstream_reader_borrow_fd(fd, NULL, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    MUST(millstream_reader_fd(fd, NULL, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF); /* it has been closed */
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_fd(fd, NULL, &reader, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_borrow_fd(-1, NULL, &reader, &error));

    saved = dup(0);
    CHECK(pipe(ends) == 0 && write(ends[1], text, 8) == 8 && close(ends[1]) == 0 && dup2(ends[0], 0) == 0);
    MUST(millstream_reader_stdin(NULL, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    CHECK(dup2(saved, 0) == 0 && close(saved) == 0 && close(ends[0]) == 0);

    first = shell_command("echo b; echo a");
    second = shell_command("sort");
    pipeline[0] = first;
    pipeline[1] = second;
    MUST(millstream_reader_pipeline(pipeline, 2, NULL, &reader, &error));
    gives_lines(reader, "a|b");
    millstream_reader_free(reader);
    pipeline[1] = NULL;
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_pipeline(pipeline, 2, NULL, &reader, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_pipeline(NULL, 0, NULL, &reader, &error));
    millstream_command_free(first);
    millstream_command_free(second);

    MUST(millstream_reader_shell("printf 'a\\nb\\n' | grep b", NULL, &reader, &error));
    gives_lines(reader, "b");
    millstream_reader_free(reader);

    server = listen_tcp(address, sizeof address);
    MUST(millstream_reader_tcp(address, NULL, &reader, &error));
    peer = accept(server, NULL, NULL);
    CHECK(write(peer, text, 8) == 8 && close(peer) == 0 && close(server) == 0);
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_tcp("\xff:1", NULL, &reader, &error));

    server = listen_unix(in_directory("in.sock"));
    MUST(millstream_reader_unix(in_directory("in.sock"), NULL, &reader, &error));
    peer = accept(server, NULL, NULL);
    CHECK(write(peer, text, 8) == 8 && close(peer) == 0 && close(server) == 0);
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);

    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_path(NULL, NULL, &reader, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_path("/dev/null", NULL, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_command(NULL, NULL, &reader, &error));
    millstream_reader_free(NULL);
}

static void count_release(void *user) { ++*(int *)user; }

static void memory_sources(void) {
    char text[] = "one\ntwo\n";
    millstream_reader *reader;
    const char *bytes;
    size_t len, added;
    int released = 0;

    /* A copy does not see what happens to the original. */
    reader = memory_reader(text);
    text[0] = 'O';
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);

    MUST(millstream_reader_lent_memory(text, 8, count_release, &released, NULL, &reader, &error));
    MUST(millstream_reader_fill(reader, &bytes, &len, &added, &error));
    CHECK(bytes == text && len == 8 && released == 0);
    MUST(millstream_reader_close(reader, &error));
    CHECK(released == 1);
    millstream_reader_free(reader);
    CHECK(released == 1);
    MUST(millstream_reader_lent_memory(text, 8, NULL, NULL, NULL, &reader, &error));
    gives_lines(reader, "One|two");
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_reader_lent_memory(NULL, 8, count_release, &released, NULL, &reader, &error));
    CHECK(released == 2);
    MUST(millstream_reader_memory(NULL, 0, NULL, &reader, &error));
    gives_lines(reader, "");
    millstream_reader_free(reader);
}

/* What a callback does next: a text to give, or what to return. */
struct script {
    const char *text;
    ptrdiff_t otherwise;
    int calls;
};

static ptrdiff_t fill_from(void *user, char *space, size_t len) {
    struct script *script = (struct script *)user;
    size_t count = strlen(script->text);
    script->calls++;
    if (script->calls == 1)
        return -EINTR; /* it will ask again */
    if (count == 0)
        return script->otherwise;
    CHECK(count <= len);
    memcpy(space, script->text, count);
    script->text += count;
    return (ptrdiff_t)count;
}

static void callback_sources(void) {
    struct script script = {"one\ntwo\n", 0, 0};
    millstream_reader *reader;
    const char *line;
    size_t len;

    MUST(millstream_reader_callback(fill_from, &script, NULL, &reader, &error));
    gives_lines(reader, "one|two");
    CHECK(script.calls == 3);
    millstream_reader_free(reader);

    script.text = "one\n";
    script.otherwise = -EIO;
    MUST(millstream_reader_callback(fill_from, &script, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "one"));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_IO);
    CHECK(millstream_error_errno(error) == EIO);
    millstream_error_free(error);
    error = NULL;
    gives_lines(reader, "");
    millstream_reader_free(reader);

    /* More bytes than there was space: refused, not believed. */
    script.otherwise = PTRDIFF_MAX;
    MUST(millstream_reader_callback(fill_from, &script, NULL, &reader, &error));
    FAILS(MILLSTREAM_IO, millstream_reader_next_line(reader, &line, &len, &error));
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_callback(NULL, NULL, NULL, &reader, &error));
}

static void observe(void *user, const millstream_progress *progress) { *(uint64_t *)user = progress->records; }

static void reader_options(void) {
    millstream_reader_options *options;
    millstream_reader *reader;
    millstream_framer *lines;
    const char *line;
    uint64_t seen = 0, number;
    size_t len;
    bool skipped;

    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_capacity(options, 4, &error));
    MUST(millstream_reader_options_set_read_ahead(options, MILLSTREAM_READ_AHEAD_OFF, &error));
    MUST(millstream_reader_options_set_read_ahead_capacity(options, 1 << 20, 1 << 21, &error));
    MUST(millstream_reader_options_set_latency(options, MILLSTREAM_LATENCY_LOW, &error));
    MUST(millstream_reader_options_set_record_limit(options, 5, &error));
    MUST(millstream_reader_options_set_decode(options, MILLSTREAM_DECODE_AUTO, &error));
    MUST(millstream_reader_options_set_decode_limit(options, 1 << 20, &error));
    MUST(millstream_reader_options_set_decode_ratio(options, 1000, &error));
    MUST(millstream_reader_options_set_stall_timeout_ns(options, UINT64_C(60000000000), &error));
    MUST(millstream_reader_options_set_decode_memory(options, 1 << 27, &error));
    MUST(millstream_reader_options_set_follow(options, MILLSTREAM_FOLLOW_NO, &error));
    MUST(millstream_reader_options_set_pin(options, MILLSTREAM_PIN_IDENTITY, &error));
    MUST(millstream_reader_options_set_observer(options, 0, observe, &seen, &error));
    MUST(millstream_reader_options_set_name(options, "the input", &error));
    make_file("long.txt", "one\ntoo long\ntwo\n");
    MUST(millstream_framer_lines(MILLSTREAM_DELIMITED_TRIMMED, &lines, &error));

    MUST(millstream_reader_path(in_directory("long.txt"), options, &reader, &error));
    CHECK(strcmp(millstream_reader_name(reader), "the input") == 0);
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "one"));
    CHECK(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_RECORD_TOO_LONG);
    CHECK(millstream_error_record(error, &number) && number == 1);
    CHECK(millstream_error_found(error) != NULL && millstream_error_expected(error) != NULL);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_reader_skip_record(reader, lines, &skipped, &error));
    CHECK(skipped);
    gives_lines(reader, "two");
    CHECK(seen == 3);
    MUST(millstream_reader_skip_record(reader, lines, &skipped, &error));
    CHECK(!skipped);
    MUST(millstream_reader_skip_buffered(reader, lines, &skipped, &error));
    CHECK(!skipped);
    millstream_reader_free(reader);
    millstream_framer_free(lines);

    FAILS(MILLSTREAM_INVALID_OPTION,
          millstream_reader_options_set_read_ahead(options, (millstream_read_ahead)3, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_options_set_latency(options, (millstream_latency)2, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_options_set_decode(options, (millstream_decode)2, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_options_set_follow(options, (millstream_follow)2, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_options_set_pin(options, (millstream_pin)2, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_observer(options, 0, NULL, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_cancel(options, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_name(options, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_capacity(NULL, 4, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_new(NULL, &error));
    MUST(millstream_reader_options_set_json_elements(options, "/a", &error));
    MUST(millstream_reader_options_set_json_depth(options, 2, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_json_depth(NULL, 2, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_json_elements(options, NULL, &error));
    /* What the library refuses is refused when something is opened. */
    MUST(millstream_reader_options_set_record_limit(options, SIZE_MAX, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_path("/dev/null", options, &reader, &error));
    millstream_reader_options_free(options);
    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_expect_bytes(options, 8, &error));
    MUST(millstream_reader_options_set_expect_records(options, 2, &error));
    MUST(millstream_reader_options_set_expect_hash(options, "crc32c:fcac93a4", &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_options_set_expect_hash(options, NULL, &error));
    MUST(millstream_reader_memory("one\ntwo\n", 8, options, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);
    MUST(millstream_reader_options_set_expect_records(options, 3, &error));
    MUST(millstream_reader_memory("one\ntwo\n", 8, options, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    FAILS(MILLSTREAM_CONTENT_MISMATCH, millstream_reader_next_line(reader, &line, &len, &error));
    millstream_reader_free(reader);
    millstream_reader_options_free(options);
    millstream_reader_options_free(NULL);
}

static void reading_bytes(void) {
    millstream_reader *reader = memory_reader("hello world");
    char copy[64];
    const char *bytes;
    size_t len, added;

    MUST(millstream_reader_fill(reader, &bytes, &len, &added, &error));
    CHECK(is(bytes, len, "hello world") && added == 11);
    MUST(millstream_reader_consume(reader, 6, &error));
    MUST(millstream_reader_buffer(reader, &bytes, &len, &error));
    CHECK(is(bytes, len, "world"));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_consume(reader, 6, &error));
    MUST(millstream_reader_fill(reader, &bytes, &len, &added, &error));
    CHECK(is(bytes, len, "world") && added == 0);
    MUST(millstream_reader_read(reader, copy, 3, &len, &error));
    CHECK(is(copy, len, "wor"));
    MUST(millstream_reader_read(reader, copy, sizeof copy, &len, &error));
    CHECK(is(copy, len, "ld"));
    MUST(millstream_reader_read(reader, copy, sizeof copy, &len, &error));
    CHECK(len == 0);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_read(reader, copy, 0, &len, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_read(reader, NULL, 1, &len, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_fill(reader, NULL, &len, &added, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_fill(NULL, &bytes, &len, &added, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_buffer(NULL, &bytes, &len, &error));
    CHECK(bytes == NULL && len == 0);
    millstream_reader_free(reader);
}

static void reading_records(void) {
    millstream_reader *reader = memory_reader("a,b;c;d\nlast");
    millstream_framer *framer;
    millstream_progress progress;
    millstream_batch batch;
    const char *record;
    uint64_t bytes, records;
    size_t len;

    MUST(millstream_reader_read_until(reader, ',', &record, &len, &error));
    CHECK(is(record, len, "a"));
    MUST(millstream_framer_delimiter(";", 1, MILLSTREAM_DELIMITED_TRIMMED, &framer, &error));
    MUST(millstream_reader_next_frame(reader, framer, &record, &len, &error));
    CHECK(is(record, len, "b"));
    MUST(millstream_reader_next_batch(reader, framer, 1, &batch, &error));
    CHECK(batch.count == 1 && batch.offset == 4 && batch.first_record == 2);
    millstream_batch_record(&batch, 0, &record, &len);
    CHECK(is(record, len, "c"));
    MUST(millstream_reader_position(reader, &bytes, &records, &error));
    CHECK(bytes == 6 && records == 3);
    MUST(millstream_reader_next_line(reader, &record, &len, &error));
    CHECK(is(record, len, "d"));
    MUST(millstream_reader_next_batch(reader, framer, SIZE_MAX, &batch, &error));
    MUST(millstream_reader_give_back(reader, 1, &error));
    CHECK(millstream_reader_give_back(reader, 1, NULL) == MILLSTREAM_ARGUMENT_INVALID);
    MUST(millstream_reader_position(reader, &bytes, &records, &error));
    CHECK(bytes == 8 && records == 4);
    MUST(millstream_reader_next_batch(reader, framer, SIZE_MAX, &batch, &error));
    CHECK(batch.count == 1 && !batch.terminated);
    millstream_batch_record(&batch, 0, &record, &len);
    CHECK(is(record, len, "last"));
    MUST(millstream_reader_next_batch(reader, framer, SIZE_MAX, &batch, &error));
    CHECK(batch.count == 0);
    MUST(millstream_reader_next_frame(reader, framer, &record, &len, &error));
    CHECK(record == NULL);
    MUST(millstream_reader_read_until(reader, ',', &record, &len, &error));
    CHECK(record == NULL);

    MUST(millstream_reader_progress(reader, &progress, &error));
    CHECK(progress.bytes == 12 && progress.records == 5 && progress.source_bytes == 12);
    CHECK(progress.source_size_known && progress.source_size == 12 && progress.longest_record == 4);
    CHECK(progress.format == MILLSTREAM_FORMAT_NONE && progress.waited_ns <= progress.elapsed_ns);

    MUST(millstream_reader_close(reader, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_reader_close(reader, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_reader_next_line(reader, &record, &len, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_reader_fill(reader, &record, &len, &len, &error));
    MUST(millstream_reader_buffer(reader, &record, &len, &error));
    CHECK(len == 0);
    MUST(millstream_reader_position(reader, &bytes, &records, &error));
    CHECK(bytes == 12 && records == 5);
    MUST(millstream_reader_progress(reader, &progress, &error));
    CHECK(progress.bytes == 12 && progress.records == 5);
    millstream_reader_free(reader);
    millstream_framer_free(framer);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_close(NULL, &error));
    CHECK(millstream_reader_name(NULL) == NULL);
}

/* Wherever reading stops, the command goes, and how it ends then is no error. */
static void stopping_early(void) {
    millstream_command *command = shell_command("yes");
    const millstream_command_end *ends;
    millstream_reader *reader;
    const char *line;
    size_t len, count;

    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_reader_next_line(reader, &line, &len, &error));
    CHECK(is(line, len, "y"));
    MUST(millstream_reader_close(reader, &error));
    MUST(millstream_reader_command_ends(reader, &ends, &count, &error));
    CHECK(count == 1 && ends[0].status != MILLSTREAM_STATUS_UNKNOWN && ends[0].value != 0);
    millstream_reader_free(reader);
    millstream_command_free(command);
}

/* ---- columns ---- */

static millstream_columns *columns_of(const char *text, const char *options, const char *schema) {
    millstream_columns *columns;
    MUST(millstream_columns_new(memory_reader(text), options, schema, &columns, &error));
    return columns;
}

/* Batches are struct arrays whose children are the columns. */
static void columns_of_csv(void) {
    static const char schema[] = "{\"fields\":[{\"name\":\"n\",\"type\":\"int8\",\"nullable\":false}]}";
    millstream_columns *columns = columns_of("name;n\nann;1\n;-2\nNA;3\n", "delimiter=3b null=NA threads=1", NULL);
    const int32_t *offsets;
    struct ArrowSchema type;
    struct ArrowArray batch, end;
    uint64_t rows = 9, rejected = 9;

    CHECK(strcmp(millstream_columns_name(columns), "memory") == 0 && millstream_columns_name(NULL) == NULL);
    CHECK(strcmp(millstream_columns_schema_json(columns),
                 "{\"fields\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"n\",\"type\":\"int64\"}]}") == 0);
    CHECK(millstream_columns_schema_json(NULL) == NULL);
    MUST(millstream_columns_schema(columns, &type, &error));
    CHECK(strcmp(type.format, "+s") == 0 && type.n_children == 2);
    CHECK(strcmp(type.children[0]->name, "name") == 0 && strcmp(type.children[0]->format, "u") == 0);
    CHECK(strcmp(type.children[1]->format, "l") == 0 && (type.children[1]->flags & ARROW_FLAG_NULLABLE) != 0);
    type.release(&type);

    MUST(millstream_columns_counts(columns, &rows, &rejected, &error));
    CHECK(rows == 0 && rejected == 0);
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 3 && batch.n_children == 2);
    CHECK(batch.children[0]->null_count == 1 && (*(const uint8_t *)batch.children[0]->buffers[0] & 7) == 3);
    offsets = (const int32_t *)batch.children[0]->buffers[1];
    CHECK(offsets[0] == 0 && offsets[1] == 3 && offsets[2] == 3);
    CHECK(memcmp(batch.children[0]->buffers[2], "ann", 3) == 0);
    CHECK(((const int64_t *)batch.children[1]->buffers[1])[1] == -2);
    MUST(millstream_columns_next(columns, &end, &error));
    CHECK(end.release == NULL);
    MUST(millstream_columns_counts(columns, &rows, &rejected, &error));
    CHECK(rows == 3 && rejected == 0);
    MUST(millstream_columns_failure(columns, &error));
    MUST(millstream_columns_close(columns, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_columns_next(columns, &end, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_columns_close(columns, &error));
    millstream_columns_free(columns);
    /* A batch owns its memory. */
    CHECK(((const int64_t *)batch.children[1]->buffers[1])[2] == 3);
    batch.release(&batch);

    columns = columns_of("n\n1\n", NULL, schema);
    CHECK(strcmp(millstream_columns_schema_json(columns), schema) == 0);
    millstream_columns_free(columns);
    columns = columns_of("n\n1\n", "format=lines", NULL);
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 2);
    batch.release(&batch);
    millstream_columns_free(columns);
}

/* The rows before a bad record, its place, and bad records that are left out. */
static void columns_of_bad_records(void) {
    static const char text[] = "n\n1\n2\nx\n4\n";
    static const char schema[] = "{\"fields\":[{\"name\":\"n\",\"type\":\"int64\"}]}";
    millstream_columns *columns = columns_of(text, "threads=1", schema);
    struct ArrowArray batch;
    struct ArrowArrayStream stream;
    struct ArrowSchema type;
    uint64_t rows, rejected, number = 0;
    const char *message, *raw;
    size_t raw_len;
    millstream_error *reason;

    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 2);
    batch.release(&batch);
    CHECK(millstream_columns_next(columns, &batch, &error) == MILLSTREAM_NUMBER_INVALID && batch.release == NULL);
    CHECK(millstream_error_line(error, &number) && number == 4 && strcmp(millstream_error_path(error), "n") == 0);
    CHECK(millstream_error_column(error, &number) && number == 1);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.release == NULL);
    millstream_columns_free(columns);

    columns = columns_of(text, "on_bad=skip", schema);
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 3);
    batch.release(&batch);
    MUST(millstream_columns_counts(columns, &rows, &rejected, &error));
    CHECK(rows == 3 && rejected == 1);
    /* The bad record with its place; the batch added one. */
    MUST(millstream_columns_next_reject(columns, &reason, &raw, &raw_len, &error));
    CHECK(millstream_error_code(reason) == MILLSTREAM_NUMBER_INVALID && is(raw, raw_len, "x"));
    CHECK(millstream_error_line(reason, &number) && number == 4 && strcmp(millstream_error_path(reason), "n") == 0);
    millstream_error_free(reason);
    MUST(millstream_columns_next_reject(columns, &reason, &raw, &raw_len, &error));
    CHECK(reason == NULL && raw == NULL && raw_len == 0);
    millstream_columns_free(columns);

    /* The same as a stream, which outlives the columns. */
    columns = columns_of(text, NULL, schema);
    MUST(millstream_columns_stream(columns, &stream, &error));
    CHECK(stream.get_schema(&stream, &type) == 0 && strcmp(type.children[0]->name, "n") == 0);
    type.release(&type);
    CHECK(stream.get_next(&stream, &batch) == 0 && batch.length == 2);
    batch.release(&batch);
    CHECK(stream.get_next(&stream, &batch) == EINVAL);
    message = stream.get_last_error(&stream);
    CHECK(strstr(message, "found \"x\"") != NULL && strstr(message, "at line 4, column 1") != NULL);
    CHECK(millstream_columns_failure(columns, &error) == MILLSTREAM_NUMBER_INVALID);
    CHECK(millstream_error_line(error, &number) && number == 4);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_columns_failure(columns, &error));
    MUST(millstream_columns_counts(columns, &rows, &rejected, &error));
    CHECK(rows == 2);
    millstream_columns_free(columns);
    CHECK(stream.get_next(&stream, &batch) == 0 && batch.release == NULL);
    stream.release(&stream);
}

/* Lines of JSON, and the elements of an array of a document. */
static void columns_of_json(void) {
    static const char lines[] = "{\"a\":1,\"a\":2}\n{\"a\":3}\n{\"a\":4,\"b\":5}\n";
    static const char document[] = "{\"items\":[{\"a\":[1,2]},{\"a\":null}]}";
    millstream_columns *columns = columns_of(lines, "format=jsonl duplicates=last on_bad=skip infer=2", NULL);
    millstream_reader_options *options;
    millstream_reader *reader;
    struct ArrowArray batch;
    millstream_error *reason;
    const char *raw;
    size_t raw_len;
    uint64_t rows, rejected;

    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 2 && ((const int64_t *)batch.children[0]->buffers[1])[0] == 2);
    batch.release(&batch);
    MUST(millstream_columns_counts(columns, &rows, &rejected, &error));
    CHECK(rows == 2 && rejected == 1);
    MUST(millstream_columns_next_reject(columns, &reason, &raw, &raw_len, &error));
    CHECK(millstream_error_code(reason) == MILLSTREAM_SHAPE_MISMATCH && is(raw, raw_len, "{\"a\":4,\"b\":5}"));
    millstream_error_free(reason);
    millstream_columns_free(columns);
    FAILS(MILLSTREAM_INVALID_OPTION,
          millstream_columns_new(memory_reader(lines), "format=jsonl null=NA", NULL, &columns, &error));
    columns = columns_of("{\"a\":1}\n{\"a\":2.5}\n", "format=jsonl infer=all", NULL);
    CHECK(strstr(millstream_columns_schema_json(columns), "float64") != NULL);
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 2);
    batch.release(&batch);
    millstream_columns_free(columns);

    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_json_elements(options, "/items", &error));
    MUST(millstream_reader_memory(document, strlen(document), options, &reader, &error));
    MUST(millstream_columns_new(reader, "format=json", NULL, &columns, &error));
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 2 && batch.children[0]->null_count == 1);
    CHECK(((const int64_t *)batch.children[0]->children[0]->buffers[1])[1] == 2);
    batch.release(&batch);
    millstream_columns_free(columns);
    millstream_reader_options_free(options);
}

/* A command that fails is an error after its rows; one that is still running is stopped; a token interrupts. */
static void columns_of_commands(void) {
    millstream_command *command = shell_command("echo n; echo 1; exit 3");
    millstream_cancel_token *token;
    millstream_reader_options *options;
    millstream_columns *columns;
    millstream_reader *reader;
    struct ArrowArrayStream stream;
    struct ArrowArray batch;

    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_columns_new(reader, NULL, "{\"fields\":[{\"name\":\"n\",\"type\":\"int64\"}]}", &columns, &error));
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 1);
    batch.release(&batch);
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_columns_next(columns, &batch, &error));
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_columns_close(columns, &error));
    millstream_columns_free(columns);
    millstream_command_free(command);

    /* It cannot be read twice. */
    command = shell_command("yes");
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    CHECK(millstream_columns_new(reader, "infer=all", NULL, &columns, &error) == MILLSTREAM_INVALID_OPTION);
    CHECK(strstr(millstream_error_found(error), "types from all records of a command") != NULL);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_reader_command(command, NULL, &reader, &error));
    MUST(millstream_columns_new(reader, "format=lines", NULL, &columns, &error));
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length > 0);
    batch.release(&batch);
    MUST(millstream_columns_stream(columns, &stream, &error));
    MUST(millstream_columns_close(columns, &error));
    CHECK(stream.get_next(&stream, &batch) == EINVAL);
    FAILS(MILLSTREAM_CLOSED, millstream_columns_failure(columns, &error));
    stream.release(&stream);
    millstream_columns_free(columns);
    millstream_command_free(command);

    command = shell_command("echo 1; exec sleep 60");
    MUST(millstream_cancel_token_new(&token, &error));
    MUST(millstream_reader_options_new(&options, &error));
    MUST(millstream_reader_options_set_cancel(options, token, &error));
    MUST(millstream_reader_command(command, options, &reader, &error));
    MUST(millstream_columns_new(reader, "format=lines threads=1", NULL, &columns, &error));
    millstream_cancel_token_cancel(token);
    FAILS(MILLSTREAM_CANCELLED, millstream_columns_next(columns, &batch, &error));
    millstream_cancel_token_reset(token);
    MUST(millstream_columns_next(columns, &batch, &error));
    CHECK(batch.length == 1);
    batch.release(&batch);
    millstream_columns_free(columns);
    millstream_reader_options_free(options);
    millstream_cancel_token_free(token);
    millstream_command_free(command);
}

static void columns_mistakes(void) {
    millstream_columns *columns;
    struct ArrowArray batch;
    struct ArrowSchema type;
    struct ArrowArrayStream stream;
    uint64_t rows, rejected;
    millstream_error *reason;
    const char *raw;
    size_t raw_len;

    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_new(NULL, NULL, NULL, &columns, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_new(memory_reader("a\n"), NULL, NULL, NULL, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_columns_new(memory_reader("a\n"), "header=no", NULL, &columns, &error));
    CHECK(columns == NULL);
    FAILS(MILLSTREAM_JSON_INVALID, millstream_columns_new(memory_reader("a\n"), NULL, "{}", &columns, &error));
    FAILS(MILLSTREAM_KEY_MISSING,
          millstream_columns_new(memory_reader("a\n"), NULL, "{\"fields\":[{\"name\":\"b\",\"type\":\"bool\"}]}",
                                 &columns, &error));
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_columns_new(memory_reader("a,a\n"), NULL, NULL, &columns, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_schema(NULL, &type, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_next(NULL, &batch, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_stream(NULL, &stream, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_failure(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_counts(NULL, &rows, &rejected, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_close(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_next_reject(NULL, &reason, &raw, &raw_len, &error));
    columns = columns_of("a\n", NULL, NULL);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_schema(columns, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_next(columns, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_stream(columns, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_columns_counts(columns, &rows, NULL, &error));
    millstream_columns_free(columns);
    millstream_columns_free(NULL);
}

/* ---- scan ---- */

static void scanning(void) {
    millstream_reader *reader = memory_reader("1 -2\n3\t-4 0.5 2.5e-1 word  the rest \r\n7,8;x");
    const char *text;
    uint64_t record, bytes, u64;
    uint32_t u32;
    int64_t i64;
    int32_t i32;
    double f64;
    float f32;
    size_t len;
    bool end;

    MUST(millstream_reader_scan_u32(reader, MILLSTREAM_SPACE, &u32, &end, &error));
    CHECK(u32 == 1 && !end);
    MUST(millstream_reader_scan_i32(reader, MILLSTREAM_SPACE, &i32, &end, &error));
    MUST(millstream_reader_scan_u64(reader, MILLSTREAM_SPACE, &u64, &end, &error));
    MUST(millstream_reader_scan_i64(reader, MILLSTREAM_SPACE, &i64, &end, &error));
    CHECK(i32 == -2 && u64 == 3 && i64 == -4);
    MUST(millstream_reader_scan_f64(reader, MILLSTREAM_SPACE, &f64, &end, &error));
    MUST(millstream_reader_scan_f32(reader, MILLSTREAM_SPACE, &f32, &end, &error));
    CHECK(f64 + (double)f32 - 0.75 < 1e-9);
    MUST(millstream_reader_next_word(reader, &text, &len, &error));
    CHECK(is(text, len, "word"));
    MUST(millstream_reader_rest_of_line(reader, &text, &len, &error));
    CHECK(is(text, len, "the rest "));
    MUST(millstream_reader_scan_u64(reader, ',', &u64, &end, &error));
    CHECK(u64 == 7);
    FAILS(MILLSTREAM_NUMBER_INVALID, millstream_reader_scan_u64(reader, ',', &u64, &end, &error));
    MUST(millstream_reader_scan_u64(reader, ';', &u64, &end, &error));
    CHECK(u64 == 8);
    CHECK(millstream_reader_scan_u64(reader, MILLSTREAM_SPACE, &u64, &end, &error) == MILLSTREAM_NUMBER_INVALID);
    CHECK(u64 == 0 && !end && strstr(millstream_error_found(error), "x") != NULL);
    CHECK(millstream_error_record(error, &record) && record == 2);
    CHECK(millstream_error_line(error, &record) && record == 3);
    CHECK(millstream_error_column(error, &record) && record == 5);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_reader_next_word(reader, &text, &len, &error));
    MUST(millstream_reader_scan_u64(reader, MILLSTREAM_SPACE, &u64, &end, &error));
    CHECK(end && u64 == 0);
    FAILS(MILLSTREAM_VALUE_MISSING, millstream_reader_scan_u64(reader, ',', &u64, NULL, &error));
    MUST(millstream_reader_next_word(reader, &text, &len, &error));
    CHECK(text == NULL);
    MUST(millstream_reader_rest_of_line(reader, &text, &len, &error));
    CHECK(text == NULL);
    MUST(millstream_reader_position(reader, &bytes, &record, &error));
    CHECK(record == 3);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_scan_u64(reader, 256, &u64, &end, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_scan_u64(reader, ',', NULL, &end, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_scan_u64(NULL, ',', &u64, &end, &error));
    millstream_reader_free(reader);

    MUST(millstream_parse_f64("1e3", 3, &f64, &error));
    MUST(millstream_parse_f32("-1e3", 4, &f32, &error));
    CHECK(f64 + (double)f32 == 0);
    FAILS(MILLSTREAM_NUMBER_INVALID, millstream_parse_f64("1e3 ", 4, &f64, &error));
    FAILS(MILLSTREAM_NUMBER_INVALID, millstream_parse_f32(NULL, 0, &f32, &error));
}

/* A source that gives a text in pieces of `piece` bytes. */
struct pieces {
    const char *text;
    size_t piece;
};

static ptrdiff_t fill_piece(void *user, char *space, size_t len) {
    struct pieces *pieces = (struct pieces *)user;
    size_t count = strlen(pieces->text);
    if (count > pieces->piece)
        count = pieces->piece;
    CHECK(count <= len);
    memcpy(space, pieces->text, count);
    pieces->text += count;
    return (ptrdiff_t)count;
}

/* The same text, cut everywhere: the results do not depend on where. */
static void inlined_scanning(void) {
    static const char text[] = "4294967295 -2147483648\n18446744073709551615 -9223372036854775808 1.5 -0.25 x\n"
                               "two words \t of a line \r\n\n00000000000000000000000000000000000007 99999999999 ";
    millstream_input in;
    millstream_reader *reader;
    const char *found;
    uint64_t u64, record, bytes;
    uint32_t u32;
    int64_t i64;
    int32_t i32;
    double f64;
    float f32;
    size_t len, piece;
    bool end;

    for (piece = 1; piece <= sizeof text; piece++) {
        struct pieces pieces;
        pieces.text = text;
        pieces.piece = piece;
        MUST(millstream_reader_callback(fill_piece, &pieces, NULL, &reader, &error));
        MUST(millstream_input_begin(&in, reader, &error));
        MUST(millstream_input_scan_u32(&in, &u32, &end, &error));
        CHECK(u32 == UINT32_MAX && !end);
        MUST(millstream_input_scan_i32(&in, &i32, &end, &error));
        CHECK(i32 == INT32_MIN && !end);
        MUST(millstream_input_scan_u64(&in, &u64, &end, &error));
        CHECK(u64 == UINT64_MAX && !end);
        MUST(millstream_input_scan_i64(&in, &i64, &end, &error));
        CHECK(i64 == INT64_MIN && !end);
        MUST(millstream_input_scan_f64(&in, &f64, &end, &error));
        MUST(millstream_input_scan_f32(&in, &f32, &end, &error));
        CHECK(f64 + (double)f32 == 1.25 && !end);
        /* What is no number stays, and the error knows where it is. */
        CHECK(millstream_input_scan_u32(&in, &u32, &end, &error) == MILLSTREAM_NUMBER_INVALID);
        CHECK(u32 == 0 && millstream_error_record(error, &record) && record == 1);
        CHECK(millstream_error_offset(error, &bytes) && bytes == (size_t)(strchr(text, 'x') - text));
        millstream_error_free(error);
        error = NULL;
        FAILS(MILLSTREAM_NUMBER_INVALID, millstream_input_scan_f64(&in, &f64, &end, &error));
        MUST(millstream_input_next_word(&in, &found, &len, &error));
        CHECK(is(found, len, "x"));
        MUST(millstream_input_rest_of_line(&in, &found, &len, &error));
        CHECK(is(found, len, ""));
        MUST(millstream_input_next_word(&in, &found, &len, &error));
        CHECK(is(found, len, "two"));
        MUST(millstream_input_rest_of_line(&in, &found, &len, &error));
        CHECK(is(found, len, "words \t of a line "));
        MUST(millstream_input_rest_of_line(&in, &found, &len, &error));
        CHECK(is(found, len, ""));
        /* The reader serves no other call meanwhile, and all of them afterwards. */
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_next_line(reader, &found, &len, &error));
        FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_close(reader, &error));
        MUST(millstream_input_end(&in, &error));
        MUST(millstream_reader_position(reader, &bytes, &record, &error));
        CHECK(record == 4 && text[bytes] == '0');
        MUST(millstream_input_begin(&in, reader, &error));
        MUST(millstream_input_scan_u64(&in, &u64, &end, &error));
        CHECK(u64 == 7);
        FAILS(MILLSTREAM_NUMBER_OVERFLOW, millstream_input_scan_u32(&in, &u32, &end, &error));
        MUST(millstream_input_scan_i64(&in, &i64, NULL, &error));
        CHECK(i64 == INT64_C(99999999999));
        MUST(millstream_input_scan_i32(&in, &i32, &end, &error));
        CHECK(end);
        MUST(millstream_input_scan_i64(&in, &i64, &end, &error));
        CHECK(end);
        FAILS(MILLSTREAM_VALUE_MISSING, millstream_input_scan_i64(&in, &i64, NULL, &error));
        MUST(millstream_input_scan_f32(&in, &f32, &end, &error));
        CHECK(end);
        MUST(millstream_input_next_word(&in, &found, &len, &error));
        CHECK(found == NULL);
        MUST(millstream_input_end(&in, &error));
        MUST(millstream_input_end(&in, &error));
        millstream_reader_free(reader);
    }
}

/* A column of each line, and of a text. */
static void columns(void) {
    static const char line[] = "a,7,x";
    millstream_reader *reader;
    uint32_t u32 = 0;
    uint64_t u64 = 0, number;
    int32_t i32 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    double f64 = 0;
    bool end = true;

    MUST(millstream_reader_memory("a,1\nb,2\nc,-3\nd,-4\ne,5.5\nf,0.25\ng,x\nh\ni,9", 40, NULL, &reader, &error));
    MUST(millstream_reader_next_column_u32(reader, 1, ',', &u32, &end, &error));
    CHECK(u32 == 1 && !end);
    MUST(millstream_reader_next_column_u64(reader, 1, ',', &u64, &end, &error));
    MUST(millstream_reader_next_column_i32(reader, 1, ',', &i32, &end, &error));
    MUST(millstream_reader_next_column_i64(reader, 1, ',', &i64, &end, &error));
    MUST(millstream_reader_next_column_f32(reader, 1, ',', &f32, &end, &error));
    MUST(millstream_reader_next_column_f64(reader, 1, ',', &f64, &end, &error));
    CHECK(u64 == 2 && i32 == -3 && i64 == -4 && (double)f32 + f64 == 5.75 && !end);
    CHECK(millstream_reader_next_column_u32(reader, 1, ',', &u32, &end, &error) == MILLSTREAM_NUMBER_INVALID);
    CHECK(millstream_error_line(error, &number) && number == 7);
    CHECK(millstream_error_column(error, &number) && number == 3);
    CHECK(millstream_error_offset(error, &number) && number == 33);
    millstream_error_free(error);
    error = NULL;
    FAILS(MILLSTREAM_VALUE_MISSING, millstream_reader_next_column_u32(reader, 1, ',', &u32, &end, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_next_column_u32(reader, 1, 256, &u32, &end, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_next_column_u32(reader, 1, ',', &u32, NULL, &error));
    MUST(millstream_reader_next_column_u32(reader, 1, ',', &u32, &end, &error));
    CHECK(u32 == 9 && !end);
    MUST(millstream_reader_next_column_u32(reader, 1, ',', &u32, &end, &error));
    CHECK(end);
    millstream_reader_free(reader);

    MUST(millstream_column_u32(line, strlen(line), 1, ',', &u32, &error));
    MUST(millstream_column_u64(line, strlen(line), 1, ',', &u64, &error));
    MUST(millstream_column_i32(line, strlen(line), 1, ',', &i32, &error));
    MUST(millstream_column_i64(line, strlen(line), 1, ',', &i64, &error));
    MUST(millstream_column_f32(line, strlen(line), 1, ',', &f32, &error));
    MUST(millstream_column_f64(line, strlen(line), 1, ',', &f64, &error));
    CHECK(u32 == 7 && u64 == 7 && i32 == 7 && i64 == 7 && (double)f32 + f64 == 14);
    CHECK(millstream_column_u32(line, strlen(line), 2, ',', &u32, &error) == MILLSTREAM_NUMBER_INVALID);
    CHECK(millstream_error_column(error, &number) && number == 5);
    CHECK(millstream_error_offset(error, &number) && number == 4);
    millstream_error_free(error);
    error = NULL;
    FAILS(MILLSTREAM_VALUE_MISSING, millstream_column_u32(line, strlen(line), 3, ',', &u32, &error));
    FAILS(MILLSTREAM_VALUE_MISSING, millstream_column_u32(NULL, 0, 0, MILLSTREAM_SPACE, &u32, &error));
}

/* The incomplete input of a failed source is not a number. */
static void scanning_a_failure(void) {
    struct script script = {"1 23", -EIO, 0};
    millstream_input in;
    millstream_reader *reader;
    uint64_t value;
    bool end;

    MUST(millstream_reader_callback(fill_from, &script, NULL, &reader, &error));
    MUST(millstream_input_begin(&in, reader, &error));
    MUST(millstream_input_scan_u64(&in, &value, &end, &error));
    CHECK(value == 1);
    FAILS(MILLSTREAM_IO, millstream_input_scan_u64(&in, &value, &end, &error));
    MUST(millstream_input_scan_u64(&in, &value, &end, &error));
    CHECK(end);
    MUST(millstream_input_end(&in, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_end_window(reader, 0, &error));
    MUST(millstream_reader_window(reader, &in.at, &in.end, &error));
    CHECK(in.at == in.end);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_end_window(reader, 99, &error));
    millstream_reader_free(reader);
}

/* ---- writer ---- */

/* Writes "one\ntwo\n" and closes. */
static void write_two(millstream_writer *writer) {
    uint64_t accepted, written;
    MUST(millstream_writer_write(writer, "one\n", 4, &error));
    MUST(millstream_writer_flush(writer, &error));
    MUST(millstream_writer_write(writer, "two\n", 4, &error));
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_writer_accepted(writer, &accepted, &error));
    MUST(millstream_writer_written(writer, &written, &error));
    CHECK(accepted == 8 && written == 8);
    millstream_writer_free(writer);
}

static void gets_two(int fd) {
    char found[64];
    size_t len = 0;
    ssize_t more;
    while ((more = read(fd, found + len, sizeof found - len)) > 0)
        len += (size_t)more;
    CHECK(more == 0 && is(found, len, "one\ntwo\n") && close(fd) == 0);
}

static void sinks(void) {
    const millstream_command_end *command_ends;
    millstream_command *command;
    millstream_writer_options *options;
    millstream_writer *writer;
    char address[64], bytes[64];
    int fd, saved, server, peer, ends[2];
    size_t count;

    MUST(millstream_writer_path(in_directory("out.txt"), NULL, &writer, &error));
    CHECK(strcmp(millstream_writer_name(writer), in_directory("out.txt")) == 0);
    write_two(writer);
    has_file("out.txt", "one\ntwo\n");
    MUST(millstream_writer_mapped(in_directory("mapped.txt"), NULL, &writer, &error));
    write_two(writer);
    has_file("mapped.txt", "one\ntwo\n");
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_writer_mapped("/dev/null", NULL, &writer, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_writer_path("/no/such/directory", NULL, &writer, &error));
    CHECK(writer == NULL);

    fd = open(in_directory("fd.txt"), O_RDWR | O_CREAT, 0600);
    MUST(millstream_writer_borrow_fd(fd, NULL, &writer, &error));
    write_two(writer);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    MUST(millstream_writer_fd(fd, NULL, &writer, &error));
    write_two(writer);
    CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    has_file("fd.txt", "one\ntwo\n");
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_writer_fd(fd, NULL, &writer, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_writer_borrow_fd(-1, NULL, &writer, &error));

    saved = dup(1);
    CHECK(pipe(ends) == 0 && dup2(ends[1], 1) == 1 && close(ends[1]) == 0);
    MUST(millstream_writer_stdout(NULL, &writer, &error));
    write_two(writer);
    CHECK(dup2(saved, 1) == 1 && close(saved) == 0);
    gets_two(ends[0]);

    command = shell_command("cat; echo to error >&2; exit 4");
    fd = open(in_directory("command.txt"), O_WRONLY | O_CREAT, 0600);
    MUST(millstream_command_set_stdout_fd(command, fd, &error));
    MUST(millstream_command_set_stderr(command, MILLSTREAM_STDERR_NULL, &error));
    CHECK(close(fd) == 0);
    MUST(millstream_writer_command(command, NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "one\n", 4, &error));
    FAILS(MILLSTREAM_COMMAND_FAILED, millstream_writer_close(writer, &error));
    MUST(millstream_writer_command_ends(writer, &command_ends, &count, &error));
    CHECK(count == 1 && command_ends[0].value == 4);
    millstream_writer_free(writer);
    has_file("command.txt", "one\n");
    MUST(millstream_command_set_stdout(command, MILLSTREAM_STDOUT_NULL, &error));
    MUST(millstream_command_allow_failure(command, &error));
    MUST(millstream_writer_command(command, NULL, &writer, &error));
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_writer_command_ends(writer, &command_ends, &count, &error));
    CHECK(count == 1 && command_ends[0].value == 4 && command_ends[0].stderr_tail_len == 0);
    millstream_writer_free(writer);
    millstream_command_free(command);

    server = listen_tcp(address, sizeof address);
    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_linger_ns(options, 0, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_writer_path(in_directory("out.txt"), options, &writer, &error));
    MUST(millstream_writer_tcp(address, options, &writer, &error));
    peer = accept(server, NULL, NULL);
    write_two(writer);
    gets_two(peer);
    /* The peer has to confirm the end, in time. */
    MUST(millstream_writer_options_set_linger_ns(options, 1000000, &error));
    MUST(millstream_writer_tcp(address, options, &writer, &error));
    peer = accept(server, NULL, NULL);
    CHECK(write(peer, "220 ready", 9) == 9);
    MUST(millstream_writer_write(writer, "one\ntwo\n", 8, &error));
    FAILS(MILLSTREAM_STALLED, millstream_writer_close(writer, &error));
    gets_two(peer);
    while (millstream_writer_close(writer, &error) != MILLSTREAM_OK) {
        CHECK(millstream_error_code(error) == MILLSTREAM_STALLED);
        millstream_error_free(error);
        error = NULL;
    }
    millstream_writer_free(writer);
    millstream_writer_options_free(options);
    CHECK(close(server) == 0);

    server = listen_unix(in_directory("out.sock"));
    MUST(millstream_writer_unix(in_directory("out.sock"), NULL, &writer, &error));
    peer = accept(server, NULL, NULL);
    MUST(millstream_writer_write(writer, "one\ntwo\n", 8, &error));
    MUST(millstream_writer_flush(writer, &error));
    CHECK(read(peer, bytes, sizeof bytes) == 8 && close(peer) == 0);
    MUST(millstream_writer_close(writer, &error));
    millstream_writer_free(writer);
    CHECK(close(server) == 0);

    MUST(millstream_writer_nowhere(NULL, &writer, &error));
    write_two(writer);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_nowhere(NULL, NULL, &error));
    millstream_writer_free(NULL);
}

/* Nothing reads what is given up, and that makes no difference; a window may be open. */
static void giving_up(void) {
    static char bytes[1 << 20];
    millstream_writer *writer;
    char *at, *end;
    bool collects;
    int ends[2];

    CHECK(pipe(ends) == 0);
    MUST(millstream_writer_fd(ends[1], NULL, &writer, &error));
    MUST(millstream_writer_window(writer, 0, 0, 1, &at, &end, &collects, &error));
    MUST(millstream_writer_abort(writer, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_write(writer, bytes, sizeof bytes, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_close(writer, &error));
    MUST(millstream_writer_abort(writer, &error));
    millstream_writer_free(writer);
    CHECK(read(ends[0], bytes, sizeof bytes) == 0 && close(ends[0]) == 0);

    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], bytes, sizeof bytes) > 0) {
    }
    MUST(millstream_writer_fd(ends[1], NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "more", 4, &error));
    MUST(millstream_writer_abort(writer, &error));
    millstream_writer_free(writer);
    CHECK(close(ends[0]) == 0);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_abort(NULL, &error));
}

/* More than a pipe holds, lent to it, and what `wc` makes of it. */
static void lending_pages(void) {
    millstream_writer_options *options;
    millstream_command *command = shell_command("wc -c");
    millstream_writer *writer;
    int fd = open(in_directory("counted.txt"), O_WRONLY | O_CREAT, 0600), i;
    static char block[100000];

    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_lend_pages(options, MILLSTREAM_LEND_PAGES_CONSUMER_COPIES, &error));
    FAILS(MILLSTREAM_INVALID_OPTION,
          millstream_writer_options_set_lend_pages(options, (millstream_lend_pages)2, &error));
    MUST(millstream_command_set_stdout_fd(command, fd, &error));
    MUST(millstream_writer_command(command, options, &writer, &error));
    for (i = 0; i < 40; i++)
        MUST(millstream_writer_write(writer, block, sizeof block, &error));
    MUST(millstream_writer_close(writer, &error));
    millstream_writer_free(writer);
    millstream_writer_options_free(options);
    millstream_command_free(command);
    CHECK(close(fd) == 0);
    has_file("counted.txt", "4000000\n");
}

static ptrdiff_t write_to(void *user, const char *bytes, size_t len) {
    struct script *script = (struct script *)user;
    script->calls++;
    if (script->calls == 1)
        return -EINTR; /* it will ask again */
    if (script->otherwise != 0)
        return script->otherwise;
    CHECK(len > 0);
    script->text = bytes[0] == 'a' ? "a" : "other";
    return 1; /* the others will come again */
}

static void callback_sinks(void) {
    struct script script = {"", 0, 0};
    millstream_writer *writer;
    uint64_t written;

    MUST(millstream_writer_callback(write_to, &script, NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "aaa", 3, &error));
    CHECK(script.calls == 0);
    MUST(millstream_writer_flush(writer, &error));
    CHECK(script.calls == 4 && strcmp(script.text, "a") == 0);
    script.otherwise = -ENOSPC;
    MUST(millstream_writer_write(writer, "a", 1, &error));
    CHECK(millstream_writer_flush(writer, &error) == MILLSTREAM_IO);
    CHECK(millstream_error_errno(error) == ENOSPC && millstream_error_written(error, &written) && written == 3);
    millstream_error_free(error);
    error = NULL;
    script.otherwise = 99; /* more than it was given */
    FAILS(MILLSTREAM_IO, millstream_writer_flush(writer, &error));
    FAILS(MILLSTREAM_IO, millstream_writer_close(writer, &error));
    /* Nothing accepted is lost: a close can be repeated. */
    script.otherwise = 0;
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_writer_written(writer, &written, &error));
    CHECK(written == 4);
    millstream_writer_free(writer);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_callback(NULL, NULL, NULL, &writer, &error));
}

static void writer_options(void) {
    millstream_cancel_token *token;
    millstream_writer_options *options;
    millstream_writer *writer;
    millstream_reader *reader;

    MUST(millstream_cancel_token_new(&token, &error));
    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_capacity(options, 4096, &error));
    MUST(millstream_writer_options_set_flush_policy(options, MILLSTREAM_FLUSH_POLICY_LINE, &error));
    MUST(millstream_writer_options_set_existing(options, MILLSTREAM_EXISTING_APPEND, &error));
    MUST(millstream_writer_options_set_durability(options, MILLSTREAM_DURABILITY_DATA, &error));
    MUST(millstream_writer_options_set_stall_timeout_ns(options, UINT64_C(60000000000), &error));
    MUST(millstream_writer_options_set_cancel(options, token, &error));
    MUST(millstream_writer_options_set_name(options, "the log", &error));
    make_file("log.txt", "zero\n");
    MUST(millstream_writer_path(in_directory("log.txt"), options, &writer, &error));
    CHECK(strcmp(millstream_writer_name(writer), "the log") == 0);
    write_two(writer);
    has_file("log.txt", "zero\none\ntwo\n");
    millstream_writer_options_free(options);
    millstream_cancel_token_free(token);

    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_flush_delay_ns(options, 1000000, &error));
    MUST(millstream_writer_options_set_partial(options, MILLSTREAM_PARTIAL_KEEP, &error));
    MUST(millstream_writer_path(in_directory("log.txt"), options, &writer, &error));
    write_two(writer);
    has_file("log.txt", "one\ntwo\n");
    millstream_writer_options_free(options);

    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_encode(options, MILLSTREAM_ENCODE_GZIP, &error));
    MUST(millstream_writer_options_set_level(options, 9, &error));
    MUST(millstream_writer_options_set_block_size(options, 4096, &error));
    MUST(millstream_writer_path(in_directory("coded"), options, &writer, &error));
    MUST(millstream_writer_write(writer, "one\ntwo\n", 8, &error));
    MUST(millstream_writer_close(writer, &error));
    millstream_writer_free(writer);
    MUST(millstream_reader_path(in_directory("coded"), NULL, &reader, &error));
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);

    FAILS(MILLSTREAM_INVALID_OPTION,
          millstream_writer_options_set_flush_policy(options, (millstream_flush_policy)3, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_writer_options_set_encode(options, (millstream_encode)6, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_writer_options_set_existing(options, (millstream_existing)4, &error));
    FAILS(MILLSTREAM_INVALID_OPTION,
          millstream_writer_options_set_durability(options, (millstream_durability)3, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_writer_options_set_partial(options, (millstream_partial)2, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_options_set_cancel(options, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_options_set_name(options, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_options_set_level(NULL, 1, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_options_set_block_size(NULL, 4096, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_options_new(NULL, &error));
    MUST(millstream_writer_options_set_capacity(options, 0, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_writer_nowhere(options, &writer, &error));
    millstream_writer_options_free(options);
    millstream_writer_options_free(NULL);
}

static void writing_bytes(void) {
    millstream_writer *writer;
    const char *memory;
    uint64_t number;
    size_t len;
    char *space;

    MUST(millstream_writer_memory(NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "hello", 5, &error));
    MUST(millstream_writer_write(writer, NULL, 0, &error));
    MUST(millstream_writer_space(writer, 100000, &space, &len, &error));
    CHECK(len >= 100000);
    memset(space, '!', 3);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_commit(writer, len + 1, &error));
    MUST(millstream_writer_commit(writer, 3, &error));
    MUST(millstream_writer_accepted(writer, &number, &error));
    CHECK(number == 8);
    MUST(millstream_writer_taken_memory(writer, &memory, &len, &error));
    CHECK(memory == NULL && len == 0); /* not before it is closed */
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_write(writer, NULL, 1, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_write(NULL, "", 0, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_space(writer, SIZE_MAX, &space, &len, &error));
    CHECK(space == NULL && len == 0);
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_writer_waited_ns(writer, &number, &error));
    MUST(millstream_writer_taken_memory(writer, &memory, &len, &error));
    CHECK(is(memory, len, "hello!!!"));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_close(writer, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_write(writer, "x", 1, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_space(writer, 1, &space, &len, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_flush(writer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_commit(writer, 1, &error));
    millstream_writer_free(writer);
    CHECK(millstream_writer_name(NULL) == NULL);
}

/* ---- shared ---- */

static void *write_records(void *given) {
    const millstream_shared_writer *shared = (const millstream_shared_writer *)given;
    int i;
    for (i = 0; i < 1000; i++)
        if (millstream_shared_writer_write_record(shared, "a whole record\n", 15, NULL) != MILLSTREAM_OK)
            return given;
    return NULL;
}

static void sharing(void) {
    millstream_writer *writer;
    millstream_shared_writer *shared;
    millstream_reader *reader;
    pthread_t threads[4];
    const char *line;
    size_t len, count = 0;
    int i;

    MUST(millstream_writer_path(in_directory("shared.txt"), NULL, &writer, &error));
    MUST(millstream_shared_writer_new(writer, &shared, &error));
    for (i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, write_records, shared) == 0);
    for (i = 0; i < 4; i++) {
        void *failed;
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
    }
    MUST(millstream_shared_writer_flush(shared, &error));
    MUST(millstream_shared_writer_close(shared, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_shared_writer_write_record(shared, "x", 1, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_shared_writer_close(shared, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_shared_writer_write_record(NULL, "x", 1, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_shared_writer_new(NULL, &shared, &error));
    millstream_shared_writer_free(shared);
    millstream_shared_writer_free(NULL);

    MUST(millstream_reader_path(in_directory("shared.txt"), NULL, &reader, &error));
    for (;;) {
        MUST(millstream_reader_next_line(reader, &line, &len, &error));
        if (line == NULL)
            break;
        CHECK(is(line, len, "a whole record"));
        count++;
    }
    CHECK(count == 4000);
    millstream_reader_free(reader);
}

/* ---- put ---- */

static void formatting(void) {
    char text[1024];
    size_t len;

    MUST(millstream_format_f64(0.1, text, sizeof text, &len, &error));
    CHECK(is(text, len, "0.1"));
    MUST(millstream_format_f64(-1e16, text, MILLSTREAM_FLOAT_SIZE, &len, &error));
    CHECK(is(text, len, "-1e16"));
    MUST(millstream_format_f32(1.0F, text, sizeof text, &len, &error));
    CHECK(is(text, len, "1.0"));
    MUST(millstream_format_f64_fixed(0.125, 2, text, sizeof text, &len, &error));
    CHECK(is(text, len, "0.12"));
    MUST(millstream_format_f64_fixed(-1.7976931348623157e308, 1, text, MILLSTREAM_FIXED_SIZE + 1, &len, &error));
    CHECK(len == 312);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_format_f64(0.1, text, MILLSTREAM_FLOAT_SIZE - 1, &len, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_format_f32(0.1F, NULL, 99, &len, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_format_f64_fixed(0.1, 65536, text, SIZE_MAX, &len, &error));
}

/* What put_all() puts. */
static const char put_record[] = "text bytes true4294967295-214748364818446744073709551615-9223372036854775808"
                                 "beef007  -70.5-0.251.00\n";

/* Puts one record of everything. */
static millstream_code put_all(millstream_output *out) {
    if (millstream_output_put_text(out, "text ", &error) != MILLSTREAM_OK ||
        millstream_output_put_bytes(out, "bytes", 5, &error) != MILLSTREAM_OK ||
        millstream_output_put_bytes(out, NULL, 0, &error) != MILLSTREAM_OK ||
        millstream_output_put_char(out, ' ', &error) != MILLSTREAM_OK ||
        millstream_output_put_bool(out, true, &error) != MILLSTREAM_OK ||
        millstream_output_put_u32(out, UINT32_MAX, &error) != MILLSTREAM_OK ||
        millstream_output_put_i32(out, INT32_MIN, &error) != MILLSTREAM_OK ||
        millstream_output_put_u64(out, UINT64_MAX, &error) != MILLSTREAM_OK ||
        millstream_output_put_i64(out, INT64_MIN, &error) != MILLSTREAM_OK ||
        millstream_output_put_hex_u64(out, 0xbeef, &error) != MILLSTREAM_OK ||
        millstream_output_put_u64_padded(out, 7, 3, '0', &error) != MILLSTREAM_OK ||
        millstream_output_put_i64_padded(out, -7, 4, ' ', &error) != MILLSTREAM_OK ||
        millstream_output_put_f32(out, 0.5F, &error) != MILLSTREAM_OK ||
        millstream_output_put_f64(out, -0.25, &error) != MILLSTREAM_OK ||
        millstream_output_put_f64_fixed(out, 1.0, 2, &error) != MILLSTREAM_OK)
        return millstream_error_code(error);
    return millstream_output_put_char(out, '\n', &error);
}

static void putting_floats(void) {
    char text[2 * MILLSTREAM_FLOAT_SIZE + 1], *end = millstream_put_f64(text, 0.1);
    *end++ = ' ';
    end = millstream_put_f32(end, -1.5e20F);
    CHECK(is(text, (size_t)(end - text), "0.1 -1.5e20"));
}

static void inlined_putting(void) {
    static const size_t capacities[] = {1, 7, 100, 65536};
    static const millstream_flush_policy policies[] = {MILLSTREAM_FLUSH_POLICY_WHEN_FULL, MILLSTREAM_FLUSH_POLICY_LINE};
    millstream_output out;
    millstream_writer_options *options;
    millstream_writer *writer;
    const char *memory;
    uint64_t accepted;
    size_t i, policy, count, len;

    /* Records are the same whatever the size of the buffer, and whenever it is flushed. */
    for (i = 0; i < 4; i++) {
        for (policy = 0; policy < 2; policy++) {
            MUST(millstream_writer_options_new(&options, &error));
            MUST(millstream_writer_options_set_capacity(options, capacities[i], &error));
            MUST(millstream_writer_options_set_flush_policy(options, policies[policy], &error));
            MUST(millstream_writer_memory(options, &writer, &error));
            millstream_writer_options_free(options);
            MUST(millstream_writer_write(writer, "first\n", 6, &error));
            MUST(millstream_output_begin(&out, writer, &error));
            for (count = 0; count < 100; count++) {
                MUST(put_all(&out));
                MUST(millstream_output_commit(&out, &error));
            }
            MUST(millstream_output_reserve(&out, 100000, &error));
            CHECK(out.end - out.at >= 100000);
            *out.at++ = '.';
            FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_write(writer, "x", 1, &error));
            FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_close(writer, &error));
            MUST(millstream_output_end(&out, &error));
            MUST(millstream_output_end(&out, &error));
            MUST(millstream_writer_accepted(writer, &accepted, &error));
            CHECK(accepted == 6 + 100 * strlen(put_record) + 1);
            MUST(millstream_writer_close(writer, &error));
            MUST(millstream_writer_taken_memory(writer, &memory, &len, &error));
            CHECK(len == accepted && memcmp(memory, "first\n", 6) == 0 && memory[len - 1] == '.');
            for (count = 0; count < 100; count++)
                CHECK(memcmp(memory + 6 + count * strlen(put_record), put_record, strlen(put_record)) == 0);
            millstream_writer_free(writer);
        }
    }
}

static ptrdiff_t refuse_or_take(void *user, const char *bytes, size_t len) {
    struct script *script = (struct script *)user;
    ptrdiff_t taken = (ptrdiff_t)len;
    if (script->otherwise != 0)
        return script->otherwise;
    for (; len != 0; len--)
        script->calls += *bytes++ == '\n';
    return taken;
}

/* A record is accepted as a whole or not at all, and none is lost or doubled. */
static void putting_to_a_failure(void) {
    static const millstream_flush_policy policies[] = {MILLSTREAM_FLUSH_POLICY_WHEN_FULL, MILLSTREAM_FLUSH_POLICY_LINE};
    size_t policy;

    for (policy = 0; policy < 2; policy++) {
        struct script script = {"", 0, 0};
        millstream_output out;
        millstream_writer_options *options;
        millstream_writer *writer;
        uint64_t accepted;
        int records = 0, failures = 0, tries;

        MUST(millstream_writer_options_new(&options, &error));
        MUST(millstream_writer_options_set_capacity(options, 300, &error));
        MUST(millstream_writer_options_set_flush_policy(options, policies[policy], &error));
        MUST(millstream_writer_callback(refuse_or_take, &script, options, &writer, &error));
        millstream_writer_options_free(options);
        MUST(millstream_output_begin(&out, writer, &error));
        for (tries = 0; tries < 100; tries++) {
            millstream_code code;
            script.otherwise = tries % 3 == 0 ? -ENOSPC : 0;
            code = put_all(&out);
            if (code == MILLSTREAM_OK)
                code = millstream_output_commit(&out, &error);
            if (code == MILLSTREAM_OK) {
                records++;
            } else {
                CHECK(code == MILLSTREAM_IO && millstream_error_errno(error) == ENOSPC);
                millstream_error_free(error);
                error = NULL;
                failures++;
            }
        }
        script.otherwise = 0;
        CHECK(failures > 0 && records + failures == 100);
        MUST(millstream_output_end(&out, &error));
        MUST(millstream_writer_close(writer, &error));
        MUST(millstream_writer_accepted(writer, &accepted, &error));
        CHECK(script.calls == records && accepted == (uint64_t)records * strlen(put_record));
        millstream_writer_free(writer);
    }
}

/* Takes everything, everything, one byte, nothing, and so on. */
static ptrdiff_t take_part(void *user, const char *bytes, size_t len) {
    struct script *script = (struct script *)user;
    int turn = ++script->calls % 4;
    (void)bytes;
    if (turn == 0)
        return -ENOSPC;
    if (turn == 3)
        len = 1;
    script->otherwise += (ptrdiff_t)len;
    return (ptrdiff_t)len;
}

/* When the sink has taken part of a record, the record is accepted, and the error is the next one's. */
static void putting_to_a_sink_that_takes_part(void) {
    struct script script = {"", 0, 0};
    millstream_output out;
    millstream_writer_options *options;
    millstream_writer *writer;
    uint64_t accepted, before;
    int records = 0, failures = 0, tries;

    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_flush_policy(options, MILLSTREAM_FLUSH_POLICY_LINE, &error));
    MUST(millstream_writer_callback(take_part, &script, options, &writer, &error));
    millstream_writer_options_free(options);
    MUST(millstream_output_begin(&out, writer, &error));
    for (tries = 0; tries < 100; tries++) {
        millstream_code code;
        MUST(millstream_writer_accepted(writer, &before, &error));
        code = put_all(&out);
        if (code == MILLSTREAM_OK)
            code = millstream_output_commit(&out, &error);
        MUST(millstream_writer_accepted(writer, &accepted, NULL));
        if (code == MILLSTREAM_OK) {
            CHECK(accepted == before + strlen(put_record));
            records++;
        } else {
            CHECK(code == MILLSTREAM_IO && accepted == before);
            millstream_error_free(error);
            error = NULL;
            failures++;
        }
    }
    CHECK(failures > 10 && records + failures == 100);
    MUST(millstream_output_end(&out, &error));
    MUST(millstream_writer_close(writer, &error));
    CHECK(script.otherwise == (ptrdiff_t)((size_t)records * strlen(put_record)));
    millstream_writer_free(writer);
}

static void windows_of_writers(void) {
    millstream_writer *writer;
    char *at, *end;
    bool collects;

    MUST(millstream_writer_nowhere(NULL, &writer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_window(writer, 1, 0, 1, &at, &end, &collects, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_window(writer, 0, 0, SIZE_MAX, &at, &end, &collects, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_end_window(writer, 0, &error));
    MUST(millstream_writer_window(writer, 0, 0, 10, &at, &end, &collects, &error));
    CHECK(end - at >= 10 && collects);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_end_window(writer, (size_t)(end - at) + 1, &error));
    MUST(millstream_writer_window(writer, 0, 0, 10, &at, &end, &collects, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_window(writer, SIZE_MAX, 1, 1, &at, &end, &collects, &error));
    MUST(millstream_writer_close(writer, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_writer_window(writer, 0, 0, 1, &at, &end, &collects, &error));
    millstream_writer_free(writer);
}

/* ---- bson ---- */

#include "bson.h"

/* ---- pipe ---- */

#include "pipe.h"

/* An object of the server, and its URL. */
static millstream_remote *remote_object(const char *key, char *url, size_t size) {
    millstream_remote *remote;
    snprintf(url, size, "s3://bucket/%s", key);
    MUST(millstream_remote_new(url, &remote, &error));
    MUST(millstream_remote_set_endpoint(remote, object_server, &error));
    MUST(millstream_remote_set_anonymous(remote, true, &error));
    return remote;
}

static void objects(void) {
    char url[300];
    millstream_reader *reader;
    millstream_writer *writer;
    millstream_writer_options *options;
    millstream_remote *remote = remote_object("a b.gz", url, sizeof url), *other;
    const char *line;
    size_t len;
    int lines = 0;

    MUST(millstream_writer_url(remote, NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "one\ntwo\n", 8, &error));
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_url(remote, NULL, &reader, &error));
    MUST(millstream_writer_close(writer, &error));
    millstream_writer_free(writer);
    MUST(millstream_remote_set_range_size(remote, 7, &error));
    MUST(millstream_remote_set_connections(remote, 2, &error));
    MUST(millstream_remote_set_idle_timeout_ns(remote, 5000000000u, &error));
    MUST(millstream_remote_set_retry_for_ns(remote, 5000000000u, &error));
    MUST(millstream_remote_set_part_size(remote, 5 << 20, &error));
    MUST(millstream_remote_set_size_hint(remote, 1, &error));
    MUST(millstream_remote_set_allow_link_local(remote, true, &error));
    MUST(millstream_remote_set_allow_unknown_length(remote, true, &error));
    MUST(millstream_remote_set_md5_etag(remote, true, &error));
    MUST(millstream_remote_set_netrc(remote, false, &error));
    MUST(millstream_remote_set_ca_file(remote, "missing", &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_url(remote, NULL, &reader, &error));
    millstream_remote_free(remote);
    remote = remote_object("a b.gz", url, sizeof url);
    MUST(millstream_reader_url(remote, NULL, &reader, &error));
    CHECK(strcmp(millstream_reader_name(reader), url) == 0);
    gives_lines(reader, "one|two");
    millstream_reader_free(reader);

    /* What exists is not replaced; what is given up does not appear. */
    MUST(millstream_writer_options_new(&options, &error));
    MUST(millstream_writer_options_set_existing(options, MILLSTREAM_EXISTING_CREATE_NEW, &error));
    FAILS(MILLSTREAM_ALREADY_EXISTS, millstream_writer_url(remote, options, &writer, &error));
    millstream_writer_options_free(options);
    millstream_remote_free(remote);
    remote = remote_object("given up", url, sizeof url);
    MUST(millstream_writer_url(remote, NULL, &writer, &error));
    MUST(millstream_writer_write(writer, "one\ntwo\n", 8, &error));
    millstream_writer_free(writer);
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_reader_url(remote, NULL, &reader, &error));
    millstream_remote_free(remote);

    /* A body that ends early is an error after the records that arrived. */
    remote = remote_object("long", url, sizeof url);
    MUST(millstream_writer_url(remote, NULL, &writer, &error));
    for (lines = 0; lines < 10; lines++)
        MUST(millstream_writer_write(writer, "line\n", 5, &error));
    MUST(millstream_writer_close(writer, &error));
    millstream_writer_free(writer);
    millstream_remote_free(remote);
    snprintf(url, sizeof url, "%s/bucket/cut/long", object_server);
    MUST(millstream_remote_new(url, &remote, &error));
    MUST(millstream_reader_url(remote, NULL, &reader, &error));
    for (lines = 0; lines < 5; lines++)
        MUST(millstream_reader_next_line(reader, &line, &len, &error));
    FAILS(MILLSTREAM_REMOTE_FAILED, millstream_reader_next_line(reader, &line, &len, &error));
    millstream_reader_free(reader);
    FAILS(MILLSTREAM_UNSUPPORTED, millstream_writer_url(remote, NULL, &writer, &error));
    millstream_remote_free(remote);

    snprintf(url, sizeof url, "%s/bucket/headers", object_server);
    MUST(millstream_remote_new(url, &remote, &error));
    MUST(millstream_remote_add_header(remote, "Authorization", "Bearer secret", &error));
    MUST(millstream_reader_url(remote, NULL, &reader, &error));
    do {
        MUST(millstream_reader_next_line(reader, &line, &len, &error));
        CHECK(line != NULL);
    } while (!is(line, len, "authorization: Bearer secret"));
    millstream_reader_free(reader);
    MUST(millstream_remote_add_header(remote, "a b", "c", &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_url(remote, NULL, &reader, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_remote_add_header(remote, NULL, "c", &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_remote_set_endpoint(remote, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_remote_set_anonymous(NULL, true, &error));
    millstream_remote_free(remote);
    MUST(millstream_remote_new("gs://bucket", &remote, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_reader_url(remote, NULL, &reader, &error));
    millstream_remote_free(remote);
    millstream_remote_free(NULL);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_remote_new(NULL, &other, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_reader_url(NULL, NULL, &reader, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_writer_url(NULL, NULL, &writer, &error));
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    directory = argv[1];
    object_server = argv[2];
    version();
    codes();
    errors();
    cancelling();
    commands();
    framers();
    csv();
    json_lines();
    sources();
    memory_sources();
    callback_sources();
    reader_options();
    reading_bytes();
    reading_records();
    stopping_early();
    columns_of_csv();
    columns_of_bad_records();
    columns_of_json();
    columns_of_commands();
    columns_mistakes();
    scanning();
    inlined_scanning();
    columns();
    scanning_a_failure();
    sinks();
    giving_up();
    lending_pages();
    callback_sinks();
    writer_options();
    writing_bytes();
    sharing();
    formatting();
    putting_floats();
    inlined_putting();
    putting_to_a_failure();
    putting_to_a_sink_that_takes_part();
    windows_of_writers();
    objects();
    bson_documents();
    bson_positions();
    bson_texts();
    bson_taking_back();
    bson_members();
    bson_values();
    bson_writing();
    bson_owning();
    bson_streams();
    pipe_stages();
    pipe_parallel();
    pipe_asynchronous();
    pipe_ends_early();
    pipe_failing();
    pipe_failing_sources();
    pipe_passing_over();
    pipe_cancelling();
    pipe_merging();
    pipe_through_commands();
    pipe_mistakes();
    puts("all is well");
    return 0;
}
