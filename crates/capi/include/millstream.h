/* Millstream: move records from commands, files and sockets at the speed of the machine, and know that all of them
 * arrived. Licence: MIT or Apache 2.0.
 *
 * Generated from crates/capi/src by `make header`: change it there.
 *
 *     millstream_error *error = NULL;
 *     millstream_reader *reader;
 *     if (millstream_reader_path("reads.txt.gz", NULL, &reader, &error) == MILLSTREAM_OK) {
 *         const char *line;
 *         size_t len;
 *         while (millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK && line != NULL)
 *             use(line, len);
 *     }
 *     if (error != NULL)
 *         fprintf(stderr, "%s\n", millstream_error_message(error));
 *     millstream_error_free(error);
 *     millstream_reader_free(reader);
 *
 * CONVENTIONS
 *
 * Results. A function that can fail returns a millstream_code, and gives the rest through out-parameters. When it
 * fails these are NULL, 0 or false, unless its comment says otherwise (after MILLSTREAM_ARGUMENT_INVALID they may be
 * untouched). Different out-parameters are different objects. The last argument is where an error object goes; it is
 * set by a call that fails and by no other, and NULL means that the code is enough. The few functions that cannot
 * fail return their result.
 *
 * Arguments. NULL where an object is needed is MILLSTREAM_ARGUMENT_INVALID, a number that is no value of an enum is
 * MILLSTREAM_INVALID_OPTION. Text ends with a NUL; paths are any bytes, addresses UTF-8. Bytes have a length, and may
 * be NULL if that is 0.
 *
 * Ownership. What a function gives as a handle is freed by the function named at its type, once; NULL is fine there.
 * What is passed to a function stays the caller's, and may be freed or changed when it has returned, unless its
 * comment says otherwise. Bytes and text that a handle lends are valid until the next call on it that is not const
 * (its pointer is not to const), or as long as the comment says.
 *
 * Threads. Calls on different handles may run at the same time. So may calls on one handle if all of them take it as
 * const. Any other call must be alone with its handle; it need not be on the thread that made it. A cancel token is
 * made for several threads: all its functions but millstream_cancel_token_free() take it as const.
 *
 * Callbacks run on the thread that makes the call, while it makes it, unless their comment says otherwise. They must
 * return: no exception and no longjmp() may leave them. They must not use the handle that calls them.
 *
 * Panics. A mistake in the library ends with MILLSTREAM_INTERNAL rather than with the process. Please report it. The
 * handle is then good for nothing but to be freed.
 */

#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of this header.
 */
#define MILLSTREAM_VERSION "0.1.0"

/* ---- version ----
 *
 * Which library this is.
 */

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is running, such as "0.1.0": MILLSTREAM_VERSION is that of the header. Valid for
 * ever.
 */
const char *millstream_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- error ----
 *
 * Errors: a code, and on request an object that knows the rest.
 *
 * A function that fails returns a code other than MILLSTREAM_OK. Whoever passes the address of a
 * `millstream_error *` as its last argument gets an error to ask and to free; NULL means that the code is enough.
 *
 * What the functions of this section tell is valid until the error is freed. They accept NULL, which has no details.
 */

/**
 * How a call went. Codes never change their meaning; later versions may add some.
 */
enum millstream_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif
 {
    /**
     * It succeeded.
     */
    MILLSTREAM_OK = 0,
    /**
     * The operating system refused a read, a write or another call.
     */
    MILLSTREAM_IO = 1,
    /**
     * A source or sink could not be opened.
     */
    MILLSTREAM_OPEN_FAILED = 2,
    /**
     * A command could not be started.
     */
    MILLSTREAM_COMMAND_NOT_STARTED = 3,
    /**
     * A command exited with a status other than 0, or died by a signal. All it wrote was delivered.
     */
    MILLSTREAM_COMMAND_FAILED = 4,
    /**
     * How a command ended cannot be known (SIGCHLD is ignored, or somebody else waited for it).
     */
    MILLSTREAM_COMMAND_STATUS_UNKNOWN = 5,
    /**
     * A record is longer than the record limit.
     */
    MILLSTREAM_RECORD_TOO_LONG = 6,
    /**
     * The stream ended inside a record of fixed or announced length.
     */
    MILLSTREAM_FRAME_TRUNCATED = 7,
    /**
     * A length prefix that no record can have.
     */
    MILLSTREAM_LENGTH_INVALID = 8,
    /**
     * Text was asked for, and the bytes are not UTF-8.
     */
    MILLSTREAM_UTF8_INVALID = 9,
    /**
     * Compressed data is damaged.
     */
    MILLSTREAM_DECODE_DAMAGED = 10,
    /**
     * Compressed data ends too early.
     */
    MILLSTREAM_DECODE_TRUNCATED = 11,
    /**
     * Compressed data grows beyond the limit on output size or ratio.
     */
    MILLSTREAM_DECODE_LIMIT = 12,
    /**
     * Nothing arrived, or nothing was taken, for longer than the time limit.
     */
    MILLSTREAM_STALLED = 13,
    /**
     * A cancel token was triggered. Nothing is lost: the next call goes on.
     */
    MILLSTREAM_CANCELLED = 14,
    /**
     * A file became shorter while it was read.
     */
    MILLSTREAM_SOURCE_SHRANK = 15,
    /**
     * The reading side closed the pipe or connection.
     */
    MILLSTREAM_BROKEN_PIPE = 16,
    /**
     * An option has a value that it cannot have.
     */
    MILLSTREAM_INVALID_OPTION = 17,
    /**
     * This build or system cannot do that.
     */
    MILLSTREAM_UNSUPPORTED = 18,
    /**
     * It is closed, or gave up after an earlier error.
     */
    MILLSTREAM_CLOSED = 19,
    /**
     * A thread of ours ended in a way it never should.
     */
    MILLSTREAM_INTERNAL = 20,
    /**
     * Where a number or a word of a type should be, there is something else.
     */
    MILLSTREAM_NUMBER_INVALID = 21,
    /**
     * A number does not fit its type.
     */
    MILLSTREAM_NUMBER_OVERFLOW = 22,
    /**
     * The input ended where a value was expected.
     */
    MILLSTREAM_VALUE_MISSING = 23,
    /**
     * An argument that a call across a language boundary cannot take, such as a null pointer.
     */
    MILLSTREAM_ARGUMENT_INVALID = 24,
    /**
     * Bytes that are no BSON document: a type, a length or a terminator that cannot be there.
     */
    MILLSTREAM_DOCUMENT_INVALID = 25,
    /**
     * A BSON document, or something in it, is longer than the bytes that there are.
     */
    MILLSTREAM_DOCUMENT_TRUNCATED = 26,
    /**
     * Documents and arrays are nested deeper than the limit.
     */
    MILLSTREAM_TOO_DEEP = 27,
    /**
     * A document has no member of this name, or an array no element of this number.
     */
    MILLSTREAM_KEY_MISSING = 28,
    /**
     * A value has another type than was asked for, or a document other members.
     */
    MILLSTREAM_SHAPE_MISMATCH = 29,
    /**
     * A value does not fit the type that was asked for.
     */
    MILLSTREAM_VALUE_OUT_OF_RANGE = 30,
    /**
     * Text that is no Extended JSON, object id, date or decimal number.
     */
    MILLSTREAM_TEXT_INVALID = 31,
    /**
     * What a file of BSON.jl says of its Julia values cannot be.
     */
    MILLSTREAM_JULIA_INVALID = 32,
    /**
     * Going on would take more memory than allowed.
     */
    MILLSTREAM_MEMORY_LIMIT = 33,
    /**
     * A stage of a pipe panicked, or threw what was no error. The records before that one have been passed on.
     */
    MILLSTREAM_STAGE_PANICKED = 34,
    /**
     * A stage of a pipe said that it could not do its work on a record.
     */
    MILLSTREAM_STAGE_FAILED = 35,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_code millstream_code;
#else
typedef uint32_t millstream_code;
#endif
#endif

/**
 * How a command ended.
 */
enum millstream_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It exited; the value is its exit status.
     */
    MILLSTREAM_STATUS_EXITED = 0,
    /**
     * It was ended by a signal; the value is the signal's number.
     */
    MILLSTREAM_STATUS_SIGNALED = 1,
    /**
     * The system would not say; the value is 0.
     */
    MILLSTREAM_STATUS_UNKNOWN = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_status millstream_status;
#else
typedef uint32_t millstream_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What went wrong, where, and what to do about it. Freed by millstream_error_free().
 */
typedef struct millstream_error millstream_error;

/**
 * A command that ended: what ran, how it ended, the last it said.
 */
typedef struct {
    /**
     * The command and its arguments, as started.
     */
    const char *const *argv;
    /**
     * How many words these are.
     */
    size_t argc;
    /**
     * How it ended.
     */
    millstream_status status;
    /**
     * The exit status or the signal's number.
     */
    int32_t value;
    /**
     * The last 4 KiB of its standard error, where that was the library's to see. Any bytes.
     */
    const char *stderr_tail;
    /**
     * How many bytes these are.
     */
    size_t stderr_tail_len;
} millstream_command_end;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The name of a code in snake case, such as "command_failed"; NULL for MILLSTREAM_OK and for a number that this
 * version of the library does not know. Valid for ever.
 */
const char *millstream_code_name(millstream_code code);

/**
 * What the user can do about an error of this code; NULL as above. Valid for ever.
 */
const char *millstream_code_advice(millstream_code code);

/**
 * Whether the reader that reported this goes on: after MILLSTREAM_CANCELLED by the next call, after
 * MILLSTREAM_RECORD_TOO_LONG by millstream_reader_skip_record(), after MILLSTREAM_NUMBER_INVALID and
 * MILLSTREAM_NUMBER_OVERFLOW by taking what is there by other means. After any other error comes a plain end.
 */
bool millstream_code_is_resumable(millstream_code code);

/**
 * The code; MILLSTREAM_OK for NULL.
 */
millstream_code millstream_error_code(const millstream_error *error);

/**
 * All of it in a sentence: what was found, what was expected, where, and what to do.
 */
const char *millstream_error_message(const millstream_error *error);

/**
 * The name of the source or sink: a path, a command line, an address. NULL if there is none.
 */
const char *millstream_error_name(const millstream_error *error);

/**
 * What was expected, or NULL.
 */
const char *millstream_error_expected(const millstream_error *error);

/**
 * What was found instead, or NULL.
 */
const char *millstream_error_found(const millstream_error *error);

/**
 * Which value in a BSON document: its keys from the outermost on, with dots between them, as millstream_bson_find()
 * takes them. NULL if it is not about one.
 */
const char *millstream_error_path(const millstream_error *error);

/**
 * The system's error number, or 0 if it was not the system that reported this.
 */
int32_t millstream_error_errno(const millstream_error *error);

/**
 * Where in the stream it happened, in bytes from its start (after decoding). Returns whether that is known; only
 * then `offset` is set.
 */
bool millstream_error_offset(const millstream_error *error,
                             uint64_t *offset);

/**
 * In which record; the first is 0. Returns whether that is known; only then `record` is set.
 */
bool millstream_error_record(const millstream_error *error, uint64_t *record);

/**
 * Of a writer's error: how many bytes the system has taken for certain. Returns whether that is known; only then
 * `written` is set.
 */
bool millstream_error_written(const millstream_error *error,
                              uint64_t *written);

/**
 * Which command ended, and how. Returns whether the error is about a command; only then `end` is set. What it
 * points to belongs to the error.
 */
bool millstream_error_command(const millstream_error *error, millstream_command_end *end);

/**
 * Frees an error. NULL is fine.
 */
void millstream_error_free(millstream_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- cancel ----
 *
 * Cancel tokens: they end the waits of readers and writers, from any thread or signal handler.
 *
 * A waiting call returns MILLSTREAM_CANCELLED at once, and so does every later one until the token is reset. Nothing
 * is lost: after that the next call goes on where it was.
 */

/**
 * A cancel token. Freed by millstream_cancel_token_free(), also while readers and writers still listen to it: their
 * options keep what they need.
 */
typedef struct millstream_cancel_token millstream_cancel_token;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a token that is not cancelled. It holds two file descriptors.
 */
millstream_code millstream_cancel_token_new(millstream_cancel_token **token, millstream_error **error);

/**
 * Cancels. May be called from a signal handler: an atomic store and a write(2).
 */
millstream_code millstream_cancel_token_cancel(const millstream_cancel_token *token);

/**
 * Whether it is cancelled; false for NULL.
 */
bool millstream_cancel_token_is_cancelled(const millstream_cancel_token *token);

/**
 * Makes the token usable again.
 */
millstream_code millstream_cancel_token_reset(const millstream_cancel_token *token);

/**
 * Frees a token. NULL is fine.
 */
void millstream_cancel_token_free(millstream_cancel_token *token);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- command ----
 *
 * Commands to start: a program and its arguments, as they are, without a shell.
 *
 * A command is a description. It can serve any number of readers and writers, and be changed or freed at any time
 * after they were opened.
 */

/**
 * Where a command's standard input comes from.
 */
enum millstream_stdin
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * /dev/null.
     */
    MILLSTREAM_STDIN_NULL = 0,
    /**
     * The standard input of this process.
     */
    MILLSTREAM_STDIN_INHERIT = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_stdin millstream_stdin;
#else
typedef uint32_t millstream_stdin;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where the standard output of a command that is a sink goes.
 */
enum millstream_stdout
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The standard output of this process.
     */
    MILLSTREAM_STDOUT_INHERIT = 0,
    /**
     * /dev/null.
     */
    MILLSTREAM_STDOUT_NULL = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_stdout millstream_stdout;
#else
typedef uint32_t millstream_stdout;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where a command's standard error goes.
 */
enum millstream_stderr
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Live to the standard error of this process, and its last 4 KiB into the error that reports a failure.
     */
    MILLSTREAM_STDERR_FORWARD = 0,
    /**
     * Its last 4 KiB into the error that reports a failure, and nowhere else.
     */
    MILLSTREAM_STDERR_CAPTURE = 1,
    /**
     * It is the standard error of this process (a terminal stays a terminal); errors cannot quote it.
     */
    MILLSTREAM_STDERR_INHERIT = 2,
    /**
     * /dev/null.
     */
    MILLSTREAM_STDERR_NULL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_stderr millstream_stderr;
#else
typedef uint32_t millstream_stderr;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A command to start. Freed by millstream_command_free().
 */
typedef struct millstream_command millstream_command;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a command of `argc` words: the program, which is looked for in PATH, and its arguments.
 */
millstream_code millstream_command_new(const char *const *argv,
                                       size_t argc,
                                       millstream_command **command,
                                       millstream_error **error);

/**
 * Adds an argument.
 */
millstream_code millstream_command_add_arg(millstream_command *command,
                                           const char *argument,
                                           millstream_error **error);

/**
 * Sets an environment variable; a `value` of NULL removes it.
 */
millstream_code millstream_command_set_env(millstream_command *command,
                                           const char *key,
                                           const char *value,
                                           millstream_error **error);

/**
 * Removes all environment variables set so far, inherited ones included.
 */
millstream_code millstream_command_clear_env(millstream_command *command, millstream_error **error);

/**
 * Starts it in this directory.
 */
millstream_code millstream_command_set_current_dir(millstream_command *command,
                                                   const char *dir,
                                                   millstream_error **error);

/**
 * Where its standard input comes from: MILLSTREAM_STDIN_NULL unless told otherwise. Of a sink's command, and of all
 * but the first of a pipeline, it is the library's to write, and this is not used.
 */
millstream_code millstream_command_set_stdin(millstream_command *command,
                                             millstream_stdin from,
                                             millstream_error **error);

/**
 * Its standard input is this file descriptor: a duplicate, so that `fd` stays the caller's.
 */
millstream_code millstream_command_set_stdin_fd(millstream_command *command,
                                                int32_t fd,
                                                millstream_error **error);

/**
 * Where its standard output goes, if it is a sink's command: MILLSTREAM_STDOUT_INHERIT unless told otherwise. That
 * of a source's command is read.
 */
millstream_code millstream_command_set_stdout(millstream_command *command,
                                              millstream_stdout to,
                                              millstream_error **error);

/**
 * Its standard output, if it is a sink's command, is this file descriptor: a duplicate, so that `fd` stays the
 * caller's.
 */
millstream_code millstream_command_set_stdout_fd(millstream_command *command,
                                                 int32_t fd,
                                                 millstream_error **error);

/**
 * Where its standard error goes: MILLSTREAM_STDERR_FORWARD unless told otherwise.
 */
millstream_code millstream_command_set_stderr(millstream_command *command,
                                              millstream_stderr to,
                                              millstream_error **error);

/**
 * Accepts an exit status other than 0, or death by a signal: it is told by millstream_reader_command_ends() and
 * millstream_writer_command_ends(), and is no error.
 */
millstream_code millstream_command_allow_failure(millstream_command *command,
                                                 millstream_error **error);

/**
 * Frees a command. NULL is fine.
 */
void millstream_command_free(millstream_command *command);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- frame ----
 *
 * Records out of bytes: what a record is, and many of them at once.
 *
 * A framer says where records end: lines, a delimiter, any of some bytes, a fixed length, a length in front. It does
 * no input or output; readers use it, and millstream_framer_batch() works on any memory.
 *
 * A batch is one block of bytes and count + 1 offsets into it: record i is bytes[offsets[i]] up to
 * bytes[offsets[i + 1]], delimiter or length included, and `trim` says what of that is content.
 * millstream_batch_record() in window.h does that sum.
 */

/**
 * Whether the delimiter belongs to the record.
 */
enum millstream_delimited
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is cut off; of lines, also a carriage return before the line feed.
     */
    MILLSTREAM_DELIMITED_TRIMMED = 0,
    /**
     * It is part of the record.
     */
    MILLSTREAM_DELIMITED_UNTRIMMED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_delimited millstream_delimited;
#else
typedef uint32_t millstream_delimited;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * In which order the bytes of a length come.
 */
enum millstream_endian
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The lowest first.
     */
    MILLSTREAM_ENDIAN_LITTLE = 0,
    /**
     * The highest first, as in most network protocols.
     */
    MILLSTREAM_ENDIAN_BIG = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_endian millstream_endian;
#else
typedef uint32_t millstream_endian;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a length in front of a record counts.
 */
enum millstream_prefix_counts
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The bytes behind it.
     */
    MILLSTREAM_PREFIX_COUNTS_PAYLOAD = 0,
    /**
     * Itself and the bytes behind it.
     */
    MILLSTREAM_PREFIX_COUNTS_ITSELF = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_prefix_counts millstream_prefix_counts;
#else
typedef uint32_t millstream_prefix_counts;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Says where records end. It remembers nothing from one call to the next, so it may change between two records;
 * but it serves one thread at a time. Freed by millstream_framer_free().
 */
typedef struct millstream_framer millstream_framer;

/**
 * Says whether records end after this byte.
 */
typedef bool (*millstream_predicate)(void *user, uint8_t byte);

/**
 * How much of a record is not its content.
 */
typedef struct {
    /**
     * Bytes at the front that are not content: a length.
     */
    uint32_t head;
    /**
     * Bytes at the end that are not content, if the record is terminated: a delimiter.
     */
    uint32_t tail;
    /**
     * Whether a carriage return before the delimiter is not content either.
     */
    bool carriage_return;
} millstream_trim;

/**
 * Records in one block of memory. It borrows all it points to.
 */
typedef struct {
    /**
     * The memory that the offsets point into.
     */
    const char *bytes;
    /**
     * Its length.
     */
    size_t len;
    /**
     * One more than there are records; ascending; the last is at most `len`.
     */
    const uint32_t *offsets;
    /**
     * The number of records.
     */
    size_t count;
    /**
     * How much of each record is not its content.
     */
    millstream_trim trim;
    /**
     * Whether the last record ends with its delimiter (true where records have none). All others do.
     */
    bool terminated;
    /**
     * Where in the stream `bytes` begin, in bytes from its start (after decoding). Record i is at
     * offset + offsets[i].
     */
    uint64_t offset;
    /**
     * The number of the first record in the stream; the stream's first is 0.
     */
    uint64_t first_record;
} millstream_batch;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Lines, which end with a line feed. The last line need not.
 */
millstream_code millstream_framer_lines(millstream_delimited delimited,
                                        millstream_framer **framer,
                                        millstream_error **error);

/**
 * Records that end with these `len` bytes, one or more. The last record need not.
 */
millstream_code millstream_framer_delimiter(const void *delimiter,
                                            size_t len,
                                            millstream_delimited delimited,
                                            millstream_framer **framer,
                                            millstream_error **error);

/**
 * Records that end after each byte for which `ends` says so. It is asked here and now, once about each of the 256
 * bytes.
 */
millstream_code millstream_framer_predicate(millstream_predicate ends,
                                            void *user,
                                            millstream_delimited delimited,
                                            millstream_framer **framer,
                                            millstream_error **error);

/**
 * Records of `len` bytes. A stream that ends inside one is MILLSTREAM_FRAME_TRUNCATED.
 */
millstream_code millstream_framer_fixed(size_t len, millstream_framer **framer, millstream_error **error);

/**
 * Records behind their length, an unsigned number of `width` bytes: 1, 2, 4 or 8. A stream that ends inside one is
 * MILLSTREAM_FRAME_TRUNCATED.
 */
millstream_code millstream_framer_length_prefixed(size_t width,
                                                  millstream_endian endian,
                                                  millstream_prefix_counts counts,
                                                  millstream_framer **framer,
                                                  millstream_error **error);

/**
 * BSON documents, one behind the other, as mongodump writes them: all bytes of a document are content. Looked at are
 * its length, another than 5 or more is MILLSTREAM_LENGTH_INVALID, and its last byte, another than 0 is
 * MILLSTREAM_DOCUMENT_INVALID. A stream that ends inside one is MILLSTREAM_FRAME_TRUNCATED.
 */
millstream_code millstream_framer_bson(millstream_framer **framer,
                                       millstream_error **error);

/**
 * The whole records at the front of `len` bytes, at most `max` of them. What is left behind the last one is part of
 * a record that needs more bytes; with `at_end` there will be none, and it is a record or an error. The batch is
 * valid while the bytes are, until the next call with this framer.
 */
millstream_code millstream_framer_batch(millstream_framer *framer,
                                        const void *input,
                                        size_t len,
                                        bool at_end,
                                        size_t max,
                                        millstream_batch *batch,
                                        millstream_error **error);

/**
 * What has to be put behind a record's content so that this framer finds it again: a newline for lines. Nothing where
 * that is not a matter of what is behind it, or where the content includes it. The bytes are the framer's, and valid
 * until that is freed.
 */
millstream_code millstream_framer_terminator(const millstream_framer *framer,
                                             const char **bytes,
                                             size_t *len,
                                             millstream_error **error);

/**
 * Succeeds if a record is UTF-8; otherwise MILLSTREAM_UTF8_INVALID, with the byte that breaks it.
 */
millstream_code millstream_check_text(const void *record, size_t len, millstream_error **error);

/**
 * Frees a framer. NULL is fine.
 */
void millstream_framer_free(millstream_framer *framer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- reader ----
 *
 * Readers: bytes and records out of a source.
 *
 * The end of the stream means that the source succeeded: a command that exits with a status other than 0 is an error,
 * after every byte it wrote has been delivered. An error is reported once; after it comes a plain end, unless
 * millstream_code_is_resumable().
 *
 * The bytes of lines, records and batches stay the reader's: they are valid until the next call on it that is not
 * const.
 */

/**
 * Whether a thread reads ahead while the consumer works.
 */
enum millstream_read_ahead
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Measured while the stream runs: only while both sides wait in turn, or a decoder and the consumer work.
     */
    MILLSTREAM_READ_AHEAD_AUTO = 0,
    /**
     * From the start, but for a source that must stay on the caller's thread: a callback, a followed file.
     */
    MILLSTREAM_READ_AHEAD_ON = 1,
    /**
     * Never.
     */
    MILLSTREAM_READ_AHEAD_OFF = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_read_ahead millstream_read_ahead;
#else
typedef uint32_t millstream_read_ahead;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether a read of a fast pipe may be put off by up to 0.3 ms, so that it gets more.
 */
enum millstream_latency
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Yes, at 64 MB/s and more.
     */
    MILLSTREAM_LATENCY_NORMAL = 0,
    /**
     * No.
     */
    MILLSTREAM_LATENCY_LOW = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_latency millstream_latency;
#else
typedef uint32_t millstream_latency;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether compressed sources are decoded. Unless told otherwise files, pipes, commands and memory are, and sockets and
 * callbacks are not: what they carry is mostly a protocol, one of whose messages might begin like a compressed stream.
 */
enum millstream_decode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * gzip, bgzf and zstd are recognised by their first bytes.
     */
    MILLSTREAM_DECODE_AUTO = 0,
    /**
     * Bytes are delivered as they are.
     */
    MILLSTREAM_DECODE_OFF = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_decode millstream_decode;
#else
typedef uint32_t millstream_decode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What happens at the end of a regular file.
 */
enum millstream_follow
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is the end.
     */
    MILLSTREAM_FOLLOW_NO = 0,
    /**
     * The reader waits for the file to grow, until it is cancelled or closed.
     */
    MILLSTREAM_FOLLOW_GROWING = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_follow millstream_follow;
#else
typedef uint32_t millstream_follow;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a source is compressed.
 */
enum millstream_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Not at all, or not known yet, or by a format that this header does not know.
     */
    MILLSTREAM_FORMAT_NONE = 0,
    /**
     * gzip.
     */
    MILLSTREAM_FORMAT_GZIP = 1,
    /**
     * gzip in blocks, as samtools and tabix write it.
     */
    MILLSTREAM_FORMAT_BGZF = 2,
    /**
     * Zstandard.
     */
    MILLSTREAM_FORMAT_ZSTD = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_format millstream_format;
#else
typedef uint32_t millstream_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether the next records have to be waited for. What need not be waited for comes first.
 */
enum millstream_waits
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is something, or the end, or an error to be told.
     */
    MILLSTREAM_WAITS_NO = 0,
    /**
     * Nobody can say, as with a callback.
     */
    MILLSTREAM_WAITS_UNKNOWN = 1,
    /**
     * Nothing is there.
     */
    MILLSTREAM_WAITS_YES = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_waits millstream_waits;
#else
typedef uint32_t millstream_waits;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reads a source. Freed by millstream_reader_free().
 */
typedef struct millstream_reader millstream_reader;

/**
 * How to read. NULL, where options are asked for, means the usual ones. Options can serve any number of readers.
 * Freed by millstream_reader_options_free(), at any time after the readers were opened.
 */
typedef struct millstream_reader_options millstream_reader_options;

/**
 * How a reader gets on.
 */
typedef struct {
    /**
     * Bytes consumed, after decoding.
     */
    uint64_t bytes;
    /**
     * Records taken or skipped.
     */
    uint64_t records;
    /**
     * Bytes read from the source, before decoding.
     */
    uint64_t source_bytes;
    /**
     * How many of these there are in all, if `source_size_known`.
     */
    uint64_t source_size;
    /**
     * Whether that is known.
     */
    bool source_size_known;
    /**
     * How the source is compressed.
     */
    millstream_format format;
    /**
     * Since the reader was opened.
     */
    uint64_t elapsed_ns;
    /**
     * For how long the consumer has waited for bytes.
     */
    uint64_t waited_ns;
    /**
     * The longest record so far, in bytes, with its delimiter or prefix.
     */
    uint64_t longest_record;
} millstream_progress;

/**
 * Hears how a reader gets on.
 */
typedef void (*millstream_observer_callback)(void *user, const millstream_progress *progress);

/**
 * Gets lent memory back.
 */
typedef void (*millstream_release_callback)(void *user);

/**
 * Fills up to `len` bytes at `space` and returns how many, 0 at the end of the stream. An error is a negative number
 * of errno.h, such as -EIO; -EINTR and -EAGAIN mean that it should be asked again.
 */
typedef ptrdiff_t (*millstream_fill_callback)(void *user, char *space, size_t len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes options that say nothing yet.
 */
millstream_code millstream_reader_options_new(millstream_reader_options **options, millstream_error **error);

/**
 * The buffer's size at first: 256 KiB unless told otherwise. It grows for a longer record.
 */
millstream_code millstream_reader_options_set_capacity(millstream_reader_options *options,
                                                       size_t bytes,
                                                       millstream_error **error);

/**
 * Whether a thread reads ahead.
 */
millstream_code millstream_reader_options_set_read_ahead(millstream_reader_options *options,
                                                         millstream_read_ahead read_ahead,
                                                         millstream_error **error);

/**
 * How many bytes are read ahead: at first, and at most, when both sides turn out to stall in turn. 4 and 16 MiB
 * unless told otherwise; rounded down to whole blocks of 256 KiB, of which there are at least two.
 */
millstream_code millstream_reader_options_set_read_ahead_capacity(millstream_reader_options *options,
                                                                  size_t first,
                                                                  size_t most,
                                                                  millstream_error **error);

/**
 * Whether reads of a fast pipe may be put off a little.
 */
millstream_code millstream_reader_options_set_latency(millstream_reader_options *options,
                                                      millstream_latency latency,
                                                      millstream_error **error);

/**
 * The longest record, in bytes without its delimiter or prefix: 64 MiB unless told otherwise, less than 4 GiB. A
 * longer one is MILLSTREAM_RECORD_TOO_LONG.
 */
millstream_code millstream_reader_options_set_record_limit(millstream_reader_options *options,
                                                           size_t bytes,
                                                           millstream_error **error);

/**
 * Whether compressed sources are decoded.
 */
millstream_code millstream_reader_options_set_decode(millstream_reader_options *options,
                                                     millstream_decode decode,
                                                     millstream_error **error);

/**
 * How much compressed data may grow: to this many bytes, and to this many for a compressed one (from the first
 * decoded MiB on). 0 is no limit, as when told nothing. Over it: MILLSTREAM_DECODE_LIMIT.
 */
millstream_code millstream_reader_options_set_decode_limit(millstream_reader_options *options,
                                                           uint64_t bytes,
                                                           uint64_t ratio,
                                                           millstream_error **error);

/**
 * How long a source that waits for somebody may deliver nothing, or a command take to exit. Longer is
 * MILLSTREAM_STALLED.
 */
millstream_code millstream_reader_options_set_stall_timeout_ns(millstream_reader_options *options,
                                                               uint64_t limit_ns,
                                                               millstream_error **error);

/**
 * What happens at the end of a regular file.
 */
millstream_code millstream_reader_options_set_follow(millstream_reader_options *options,
                                                     millstream_follow follow,
                                                     millstream_error **error);

/**
 * Lets a token end waits.
 */
millstream_code millstream_reader_options_set_cancel(millstream_reader_options *options,
                                                     const millstream_cancel_token *token,
                                                     millstream_error **error);

/**
 * Calls `observer` before a read, not more often than every `interval_ns`, and at the end: on the thread that uses
 * the reader, and not while the source makes it wait.
 */
millstream_code millstream_reader_options_set_observer(millstream_reader_options *options,
                                                       uint64_t interval_ns,
                                                       millstream_observer_callback observer,
                                                       void *user,
                                                       millstream_error **error);

/**
 * The name of the source in messages, instead of one made from what it is.
 */
millstream_code millstream_reader_options_set_name(millstream_reader_options *options,
                                                   const char *name,
                                                   millstream_error **error);

/**
 * Frees options. NULL is fine.
 */
void millstream_reader_options_free(millstream_reader_options *options);

/**
 * Reads a file, FIFO or device.
 */
millstream_code millstream_reader_path(const char *path,
                                       const millstream_reader_options *options,
                                       millstream_reader **reader,
                                       millstream_error **error);

/**
 * Maps a regular file and reads it, without a copy (unless it is compressed).
 *
 * The file must not shrink meanwhile: before it goes on the reader looks at its length, and reports
 * MILLSTREAM_SOURCE_SHRANK, but between this and the use of the bytes a file that shrinks ends the process with
 * SIGBUS.
 */
millstream_code millstream_reader_mapped(const char *path,
                                         const millstream_reader_options *options,
                                         millstream_reader **reader,
                                         millstream_error **error);

/**
 * Reads standard input: a duplicate of the file descriptor, so that it stays open. What stdio has read of it already
 * is not seen.
 */
millstream_code millstream_reader_stdin(const millstream_reader_options *options,
                                        millstream_reader **reader,
                                        millstream_error **error);

/**
 * Reads a file descriptor, which is the reader's from now on, and closed if this fails.
 */
millstream_code millstream_reader_fd(int32_t fd,
                                     const millstream_reader_options *options,
                                     millstream_reader **reader,
                                     millstream_error **error);

/**
 * Reads a duplicate of a file descriptor, which stays the caller's. They share their position.
 */
millstream_code millstream_reader_borrow_fd(int32_t fd,
                                            const millstream_reader_options *options,
                                            millstream_reader **reader,
                                            millstream_error **error);

/**
 * Starts a command and reads its standard output. The end is end of file and exit status 0; anything else is
 * MILLSTREAM_COMMAND_FAILED, after every byte it wrote.
 */
millstream_code millstream_reader_command(const millstream_command *command,
                                          const millstream_reader_options *options,
                                          millstream_reader **reader,
                                          millstream_error **error);

/**
 * Starts `count` commands, each reading what the one before writes, and reads the last one's standard output. Every
 * command's status counts. Of several failures the first is reported, but death by SIGPIPE, which follows from a
 * later command's end, only if there is no other.
 */
millstream_code millstream_reader_pipeline(const millstream_command *const *commands,
                                           size_t count,
                                           const millstream_reader_options *options,
                                           millstream_reader **reader,
                                           millstream_error **error);

/**
 * Starts a line of shell, `bash -o pipefail -c line`, and reads its standard output. Never pass it what a user typed
 * or a file name: a command takes arguments as they are.
 */
millstream_code millstream_reader_shell(const char *line,
                                        const millstream_reader_options *options,
                                        millstream_reader **reader,
                                        millstream_error **error);

/**
 * Connects to a TCP server, such as "localhost:7000", and reads what it sends. That it closed the connection is all
 * that can be known of the end.
 */
millstream_code millstream_reader_tcp(const char *address,
                                      const millstream_reader_options *options,
                                      millstream_reader **reader,
                                      millstream_error **error);

/**
 * Connects to a Unix socket and reads what it sends. That it was closed is all that can be known of the end.
 */
millstream_code millstream_reader_unix(const char *path,
                                       const millstream_reader_options *options,
                                       millstream_reader **reader,
                                       millstream_error **error);

/**
 * Reads a copy of `len` bytes.
 */
millstream_code millstream_reader_memory(const void *bytes,
                                         size_t len,
                                         const millstream_reader_options *options,
                                         millstream_reader **reader,
                                         millstream_error **error);

/**
 * Reads `len` bytes where they are. They must not change until `release` is called with `user`, which happens once,
 * also if this call fails: when the reader is closed or freed, or, of compressed bytes, perhaps a little later and by
 * another thread. A `release` of NULL is for memory that outlives everything.
 */
millstream_code millstream_reader_lent_memory(const void *bytes,
                                              size_t len,
                                              millstream_release_callback release,
                                              void *user,
                                              const millstream_reader_options *options,
                                              millstream_reader **reader,
                                              millstream_error **error);

/**
 * Reads what a callback puts into the space it is given. It is called with `user` by the thread that uses the reader.
 */
millstream_code millstream_reader_callback(millstream_fill_callback fill,
                                           void *user,
                                           const millstream_reader_options *options,
                                           millstream_reader **reader,
                                           millstream_error **error);

/**
 * Reads at least one more byte behind the unread ones, gives all of them, and says in `added` how many are new: 0 is
 * the end, and says that the source succeeded. `bytes` and `len` are the unread bytes also after an error, since their
 * addresses change.
 *
 * MILLSTREAM_RECORD_TOO_LONG when more bytes than the record limit are unread, which can be consumed.
 */
millstream_code millstream_reader_fill(millstream_reader *reader,
                                       const char **bytes,
                                       size_t *len,
                                       size_t *added,
                                       millstream_error **error);

/**
 * The unread bytes that are there.
 */
millstream_code millstream_reader_buffer(const millstream_reader *reader,
                                         const char **bytes,
                                         size_t *len,
                                         millstream_error **error);

/**
 * Takes `count` bytes from the front of the unread ones. Those behind them stay where they are.
 */
millstream_code millstream_reader_consume(millstream_reader *reader, size_t count, millstream_error **error);

/**
 * Copies at least one byte, and at most `room` of them, to `to`, and says how many in `len`; 0 is the end, and says
 * that the source succeeded.
 */
millstream_code millstream_reader_read(millstream_reader *reader,
                                       void *to,
                                       size_t room,
                                       size_t *len,
                                       millstream_error **error);

/**
 * The next line, without its line feed or carriage return and line feed. At the end `line` is NULL, which says that
 * the source succeeded; an empty line is not NULL, and has the length 0. The line is not terminated by a NUL.
 */
millstream_code millstream_reader_next_line(millstream_reader *reader,
                                            const char **line,
                                            size_t *len,
                                            millstream_error **error);

/**
 * The next record, as `framer` finds and trims it. At the end `record` is NULL.
 */
millstream_code millstream_reader_next_frame(millstream_reader *reader,
                                             millstream_framer *framer,
                                             const char **record,
                                             size_t *len,
                                             millstream_error **error);

/**
 * The bytes before the next `delimiter`, or before the end. At the end `record` is NULL.
 */
millstream_code millstream_reader_read_until(millstream_reader *reader,
                                             char delimiter,
                                             const char **record,
                                             size_t *len,
                                             millstream_error **error);

/**
 * The next records, as many as are there but at most `max`, which is at least 1: waits for one, never for a second.
 * At the end `batch->count` is 0. The records before a bad one are delivered first.
 */
millstream_code millstream_reader_next_batch(millstream_reader *reader,
                                             millstream_framer *framer,
                                             size_t max,
                                             millstream_batch *batch,
                                             millstream_error **error);

/**
 * Skips one record, however long it is, and says in `skipped` whether there was one. After
 * MILLSTREAM_RECORD_TOO_LONG it is the one that was too long, and the reader goes on behind it.
 */
millstream_code millstream_reader_skip_record(millstream_reader *reader,
                                              millstream_framer *framer,
                                              bool *skipped,
                                              millstream_error **error);

/**
 * What errors call the source. It is the reader's, and valid until that is freed; NULL for NULL.
 */
const char *millstream_reader_name(const millstream_reader *reader);

/**
 * Where the reader is: bytes consumed, after decoding, and records taken or skipped. Once it is closed: where it was.
 */
millstream_code millstream_reader_position(const millstream_reader *reader,
                                           uint64_t *bytes,
                                           uint64_t *records,
                                           millstream_error **error);

/**
 * Whether the next batch has to be waited for: for those who read from several readers in turn. Only of use between two
 * batches. MILLSTREAM_WAITS_NO for NULL and for a reader that is closed.
 */
millstream_waits millstream_reader_waits(const millstream_reader *reader);

/**
 * The file descriptor that becomes readable when millstream_reader_fill() has something to read or has come to the end: for
 * an event loop that must not be held up. -1 where there is none to wait for: of a file, a callback, a compressed
 * stream, with a thread that reads ahead, behind the end, and for NULL.
 *
 * It is the reader's, may change with every call that is not const, and may be waited for by any means that does not
 * read it. One fill then waits for next to nothing: for the rest of a compressed stream's first bytes, to get more out of a
 * fast pipe, or for a command that has closed its output to exit.
 */
int32_t millstream_reader_waits_for(const millstream_reader *reader);

/**
 * How the reader gets on. Once it is closed: how it did.
 */
millstream_code millstream_reader_progress(const millstream_reader *reader,
                                           millstream_progress *progress,
                                           millstream_error **error);

/**
 * How the source's commands ended, all of them: after the end, after an error that was theirs, and after
 * millstream_reader_close(). `ends` is an array of `count` that is valid until the next call on the reader that is not
 * const.
 */
millstream_code millstream_reader_command_ends(millstream_reader *reader,
                                               const millstream_command_end **ends,
                                               size_t *count,
                                               millstream_error **error);

/**
 * Ends the reading, wherever it is. The reader is still there to be asked where it was, and to be freed.
 *
 * Before the end of the stream the library's side of the pipe is closed; a command that is still there after a second
 * gets SIGTERM, and after another one SIGKILL. How it ends then is no error. MILLSTREAM_COMMAND_FAILED if a command
 * had failed by itself before this; MILLSTREAM_CLOSED if this has been called before.
 */
millstream_code millstream_reader_close(millstream_reader *reader,
                                        millstream_error **error);

/**
 * Frees a reader, closing it first if it is open; how that ends nobody hears. It may take two seconds where a command
 * has to be stopped. NULL is fine.
 */
void millstream_reader_free(millstream_reader *reader);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- scan ----
 *
 * Numbers and words out of bytes.
 *
 * These functions take what comes: a token cut by the end of the buffer, an error, the end of the input. The inlined
 * ones of window.h (millstream_input_scan_u64() and its like) are for many numbers: they do the plain case themselves
 * and leave the others to these.
 *
 * Between two values stands white space (the bytes 9 to 13, and 32), any amount of it: MILLSTREAM_SPACE. Or exactly
 * one byte of a value from 0 to 255, or one line end. White space in front of a value is consumed with it, not what is
 * behind it; so millstream_reader_next_line() after a number is the rest of its line.
 *
 * At the end of the input, with nothing but separators left, `end` is true, and says that the source succeeded. Where
 * `end` is NULL a value must be there: otherwise it is MILLSTREAM_VALUE_MISSING.
 *
 * A token that is no number of the type is MILLSTREAM_NUMBER_INVALID, one that is too large MILLSTREAM_NUMBER_OVERFLOW.
 * Nothing is consumed then, and the error comes again until the token is taken by other means, such as
 * millstream_reader_next_word(). The error knows its offset, its line and its text.
 */

/**
 * Any amount of white space, as a separator.
 */
#define MILLSTREAM_SPACE -1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A whole number from 0 to 2^32 - 1: the next value.
 */
millstream_code millstream_reader_scan_u32(millstream_reader *reader,
                                           int32_t separator,
                                           uint32_t *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * A whole number from 0 to 2^64 - 1: the next value.
 */
millstream_code millstream_reader_scan_u64(millstream_reader *reader,
                                           int32_t separator,
                                           uint64_t *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * A whole number from -2^31 to 2^31 - 1: the next value.
 */
millstream_code millstream_reader_scan_i32(millstream_reader *reader,
                                           int32_t separator,
                                           int32_t *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * A whole number from -2^63 to 2^63 - 1: the next value.
 */
millstream_code millstream_reader_scan_i64(millstream_reader *reader,
                                           int32_t separator,
                                           int64_t *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * A floating-point number, rounded once, from its decimal digits: the next value. inf and nan are numbers too.
 */
millstream_code millstream_reader_scan_f32(millstream_reader *reader,
                                           int32_t separator,
                                           float *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * A floating-point number, correctly rounded: the next value. inf and nan are numbers too.
 */
millstream_code millstream_reader_scan_f64(millstream_reader *reader,
                                           int32_t separator,
                                           double *value,
                                           bool *end,
                                           millstream_error **error);

/**
 * The next word: the bytes up to the next white space or the end. At the end `word` is NULL.
 */
millstream_code millstream_reader_next_word(millstream_reader *reader,
                                            const char **word,
                                            size_t *len,
                                            millstream_error **error);

/**
 * The rest of the line, without blanks and tabs in front of it and without its line end. Right after a number or a
 * word it is the rest of their line, which may be empty, also where the input ends without a line end. At the end
 * `line` is NULL.
 */
millstream_code millstream_reader_rest_of_line(millstream_reader *reader,
                                               const char **line,
                                               size_t *len,
                                               millstream_error **error);

/**
 * The number that a whole token of `len` bytes is.
 */
millstream_code millstream_parse_f32(const void *token, size_t len, float *value, millstream_error **error);

/**
 * The number that a whole token of `len` bytes is.
 */
millstream_code millstream_parse_f64(const void *token, size_t len, double *value, millstream_error **error);

/**
 * Opens a window: the bytes from `at` up to `end` may be looked at, and the reader serves no other call that is not
 * const until millstream_reader_end_window() says how many of them were used. It does not read, so there may be none.
 * This is what window.h is made of: see millstream_input there.
 */
millstream_code millstream_reader_window(millstream_reader *reader,
                                         const char **at,
                                         const char **end,
                                         millstream_error **error);

/**
 * Ends a window, of which the first `used` bytes are consumed. Line ends among them count as records.
 */
millstream_code millstream_reader_end_window(millstream_reader *reader,
                                             size_t used,
                                             millstream_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- writer ----
 *
 * Writers: bytes into a sink.
 *
 * A write that fails has accepted none of its bytes; one that succeeds has accepted all. What was accepted is with
 * the sink after millstream_writer_close() has succeeded, and not before; a file appears whole then, or not at all.
 *
 * A pipe or connection that nobody reads any more is MILLSTREAM_BROKEN_PIPE in a program that ignores SIGPIPE. One
 * that leaves SIGPIPE as it is, as C programs do unless told otherwise, is ended by it when it writes to a closed
 * pipe. The library never changes what signals do.
 */

/**
 * When a writer hands its bytes to the sink, apart from a flush.
 */
enum millstream_flush_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * At each line end if the sink is a terminal, otherwise when the buffer is full.
     */
    MILLSTREAM_FLUSH_POLICY_AUTO = 0,
    /**
     * When the buffer is full: the fastest.
     */
    MILLSTREAM_FLUSH_POLICY_WHEN_FULL = 1,
    /**
     * At each line end: after a write that holds a newline, all up to the last newline is on its way.
     */
    MILLSTREAM_FLUSH_POLICY_LINE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_flush_policy millstream_flush_policy;
#else
typedef uint32_t millstream_flush_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether the bytes are compressed on their way to the sink.
 */
enum millstream_encode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * By the ending of a path's name: .gz gzip, .bgz and .bgzf bgzf, .zst zstd. Of other sinks, not.
     */
    MILLSTREAM_ENCODE_AUTO = 0,
    /**
     * As they are.
     */
    MILLSTREAM_ENCODE_OFF = 1,
    /**
     * gzip.
     */
    MILLSTREAM_ENCODE_GZIP = 2,
    /**
     * gzip in blocks, as samtools and tabix like it, compressed by several threads.
     */
    MILLSTREAM_ENCODE_BGZF = 3,
    /**
     * Zstandard.
     */
    MILLSTREAM_ENCODE_ZSTD = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_encode millstream_encode;
#else
typedef uint32_t millstream_encode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What to do with a regular file that exists.
 */
enum millstream_existing
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The new content takes its place.
     */
    MILLSTREAM_EXISTING_REPLACE = 0,
    /**
     * The new bytes go behind its own. They are there as soon as they are written, also if the rest fails.
     */
    MILLSTREAM_EXISTING_APPEND = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_existing millstream_existing;
#else
typedef uint32_t millstream_existing;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What to do with output that is not complete.
 */
enum millstream_partial
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * A file appears whole, when the writer is closed, or not at all.
     */
    MILLSTREAM_PARTIAL_REMOVE = 0,
    /**
     * A file is written in place: it is truncated first, and what was written stays, whatever happens then.
     */
    MILLSTREAM_PARTIAL_KEEP = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_partial millstream_partial;
#else
typedef uint32_t millstream_partial;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether a pipe is lent the pages of the writer's buffer, instead of a copy of them (vmsplice(2) of Linux).
 */
enum millstream_lend_pages
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The pipe gets a copy.
     */
    MILLSTREAM_LEND_PAGES_NO = 0,
    /**
     * Whoever reads the pipe copies what it reads, by read(2), as nearly all programs do.
     *
     * That is a promise of yours about the other side. The writer writes its pages again as soon as they have left the
     * pipe. A reader that takes them out without a copy, by splice(2) or tee(2) (such as pv, or a proxy), and passes
     * them on, passes on memory that changes under its hands: its output would be wrong, and nobody would know.
     */
    MILLSTREAM_LEND_PAGES_CONSUMER_COPIES = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_lend_pages millstream_lend_pages;
#else
typedef uint32_t millstream_lend_pages;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What closing a regular file waits for, before the file takes its name.
 */
enum millstream_durability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The system has the bytes, and writes them to the disk when it likes: a power failure within the next half minute
     * or so may cost the file.
     */
    MILLSTREAM_DURABILITY_CACHED = 0,
    /**
     * The bytes are on the disk (fdatasync(2)): who finds the new file finds all of it.
     */
    MILLSTREAM_DURABILITY_DATA = 1,
    /**
     * And so are the file's attributes and its name (fsync(2) of the file, and then of its directory).
     */
    MILLSTREAM_DURABILITY_ALL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_durability millstream_durability;
#else
typedef uint32_t millstream_durability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Writes to a sink. Freed by millstream_writer_free().
 */
typedef struct millstream_writer millstream_writer;

/**
 * How to write. NULL, where options are asked for, means the usual ones. Options can serve any number of writers.
 * Freed by millstream_writer_options_free(), at any time after the writers were opened.
 */
typedef struct millstream_writer_options millstream_writer_options;

/**
 * Takes at least one of `len` bytes and returns how many. An error is a negative number of errno.h, such as -EIO;
 * -EINTR means that it should be asked again. After another error a later call gets the same bytes again.
 */
typedef ptrdiff_t (*millstream_write_callback)(void *user, const char *bytes, size_t len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes options that say nothing yet.
 */
millstream_code millstream_writer_options_new(millstream_writer_options **options, millstream_error **error);

/**
 * The buffer's size, at least 1 and less than 4 GiB: 64 KiB unless told otherwise, 256 KiB for pipes.
 */
millstream_code millstream_writer_options_set_capacity(millstream_writer_options *options,
                                                       size_t bytes,
                                                       millstream_error **error);

/**
 * When bytes are handed to the sink.
 */
millstream_code millstream_writer_options_set_flush_policy(millstream_writer_options *options,
                                                           millstream_flush_policy policy,
                                                           millstream_error **error);

/**
 * Hands bytes to the sink when the buffer is full, and at the latest this long after a byte was written, also while
 * the producer is idle: a thread sees to that, and an error that it meets is reported by the next call. Not for
 * callbacks, which run only on the caller's thread.
 */
millstream_code millstream_writer_options_set_flush_delay_ns(millstream_writer_options *options,
                                                             uint64_t delay_ns,
                                                             millstream_error **error);

/**
 * Whether the bytes are compressed.
 */
millstream_code millstream_writer_options_set_encode(millstream_writer_options *options,
                                                     millstream_encode encode,
                                                     millstream_error **error);

/**
 * The level of compression: 0 to 9 for gzip and bgzf (6 unless told otherwise), 1 to 22 for zstd (3).
 */
millstream_code millstream_writer_options_set_level(millstream_writer_options *options,
                                                    uint32_t level,
                                                    millstream_error **error);

/**
 * What to do with a file that exists.
 */
millstream_code millstream_writer_options_set_existing(millstream_writer_options *options,
                                                       millstream_existing existing,
                                                       millstream_error **error);

/**
 * What to do with a file that is not complete.
 */
millstream_code millstream_writer_options_set_partial(millstream_writer_options *options,
                                                      millstream_partial partial,
                                                      millstream_error **error);

/**
 * Whether a pipe is lent the pages of the buffer. What is no pipe is written as ever.
 */
millstream_code millstream_writer_options_set_lend_pages(millstream_writer_options *options,
                                                         millstream_lend_pages lend_pages,
                                                         millstream_error **error);

/**
 * What closing a regular file waits for.
 */
millstream_code millstream_writer_options_set_durability(millstream_writer_options *options,
                                                         millstream_durability durability,
                                                         millstream_error **error);

/**
 * Fails with MILLSTREAM_STALLED when the sink takes nothing for this long. Not for callbacks.
 */
millstream_code millstream_writer_options_set_stall_timeout_ns(millstream_writer_options *options,
                                                               uint64_t limit_ns,
                                                               millstream_error **error);

/**
 * Lets a token end every wait for the sink. A callback and the lookup of a host name cannot be interrupted.
 */
millstream_code millstream_writer_options_set_cancel(millstream_writer_options *options,
                                                     const millstream_cancel_token *token,
                                                     millstream_error **error);

/**
 * What errors call the sink, instead of its path, address or command line.
 */
millstream_code millstream_writer_options_set_name(millstream_writer_options *options,
                                                   const char *name,
                                                   millstream_error **error);

/**
 * Frees options. NULL is fine.
 */
void millstream_writer_options_free(millstream_writer_options *options);

/**
 * Writes a file, compressed if its name ends in .gz, .bgz, .bgzf or .zst.
 *
 * A regular or absent path appears whole when the writer is closed: until then the bytes are in a temporary file
 * beside it, whose name begins with a dot. An existing file's permissions are kept; a symbolic link is followed. FIFOs
 * and devices are written directly; opening a FIFO waits for its reader. /dev/stdout is standard output.
 */
millstream_code millstream_writer_path(const char *path,
                                       const millstream_writer_options *options,
                                       millstream_writer **writer,
                                       millstream_error **error);

/**
 * Writes a regular file through memory that it is mapped into, in steps for which room is reserved beforehand. In all
 * else it is as millstream_writer_path(), and it has its true length after a close, an error and a free. Measure before
 * you take it: a plain write is faster for most.
 *
 * Nobody may make the file shorter meanwhile: that ends the process with SIGBUS. And where MILLSTREAM_PARTIAL_KEEP
 * writes in place, the file is longer than what was written, by zeros, until it has its true length: a flush does not
 * see to that, and a process that is killed leaves it so.
 */
millstream_code millstream_writer_mapped(const char *path,
                                         const millstream_writer_options *options,
                                         millstream_writer **writer,
                                         millstream_error **error);

/**
 * Writes to standard output: the file descriptor 1 itself, without stdio's buffer, which must be flushed before.
 */
millstream_code millstream_writer_stdout(const millstream_writer_options *options,
                                         millstream_writer **writer,
                                         millstream_error **error);

/**
 * Writes to a file descriptor, which is the writer's from now on, and closed if this fails. Its mode (O_NONBLOCK) is
 * respected and never changed.
 */
millstream_code millstream_writer_fd(int32_t fd,
                                     const millstream_writer_options *options,
                                     millstream_writer **writer,
                                     millstream_error **error);

/**
 * Writes to a duplicate of a file descriptor, which stays the caller's.
 */
millstream_code millstream_writer_borrow_fd(int32_t fd,
                                            const millstream_writer_options *options,
                                            millstream_writer **writer,
                                            millstream_error **error);

/**
 * Starts a command and writes to its standard input. millstream_writer_close() waits for it, and its status counts.
 */
millstream_code millstream_writer_command(const millstream_command *command,
                                          const millstream_writer_options *options,
                                          millstream_writer **writer,
                                          millstream_error **error);

/**
 * Connects to a TCP address, such as "localhost:7000", and writes to it.
 */
millstream_code millstream_writer_tcp(const char *address,
                                      const millstream_writer_options *options,
                                      millstream_writer **writer,
                                      millstream_error **error);

/**
 * Connects to a Unix stream socket and writes to it.
 */
millstream_code millstream_writer_unix(const char *path,
                                       const millstream_writer_options *options,
                                       millstream_writer **writer,
                                       millstream_error **error);

/**
 * Calls `write` with bytes and `user`, on the thread that uses the writer.
 */
millstream_code millstream_writer_callback(millstream_write_callback write,
                                           void *user,
                                           const millstream_writer_options *options,
                                           millstream_writer **writer,
                                           millstream_error **error);

/**
 * Keeps everything in memory, for millstream_writer_taken_memory().
 */
millstream_code millstream_writer_memory(const millstream_writer_options *options,
                                         millstream_writer **writer,
                                         millstream_error **error);

/**
 * Keeps nothing: for measuring and counting.
 */
millstream_code millstream_writer_nowhere(const millstream_writer_options *options,
                                          millstream_writer **writer,
                                          millstream_error **error);

/**
 * Writes all of `len` bytes. As long as they fit in the buffer's room, that is a copy.
 *
 * After an error none of them was accepted: what had been accepted before stays in the buffer, and the call may be
 * repeated. When the sink fails after part of a large write, the rest is kept, the call succeeds, and the next one
 * reports the error.
 */
millstream_code millstream_writer_write(millstream_writer *writer,
                                        const void *bytes,
                                        size_t len,
                                        millstream_error **error);

/**
 * At least `least` bytes of room to fill: what they hold is arbitrary. `room` says where, `len` how many there are.
 * millstream_writer_commit() says how many of them count; any other call on the writer takes the room back. A record
 * longer than the buffer makes it grow.
 */
millstream_code millstream_writer_space(millstream_writer *writer,
                                        size_t least,
                                        char **room,
                                        size_t *len,
                                        millstream_error **error);

/**
 * Accepts the first `count` bytes of the space.
 *
 * With a policy that flushes at line ends or after a delay, errors are as of millstream_writer_write(): the bytes were
 * not accepted then.
 */
millstream_code millstream_writer_commit(millstream_writer *writer,
                                         size_t count,
                                         millstream_error **error);

/**
 * Hands everything accepted so far to the system. A compressed stream can be decoded up to here then. After an error
 * nothing is lost: the next call tries again.
 */
millstream_code millstream_writer_flush(millstream_writer *writer,
                                        millstream_error **error);

/**
 * What errors call the sink. It is the writer's, and valid until that is freed; NULL for NULL.
 */
const char *millstream_writer_name(const millstream_writer *writer);

/**
 * Bytes accepted so far, those in the buffer included.
 */
millstream_code millstream_writer_accepted(const millstream_writer *writer,
                                           uint64_t *bytes,
                                           millstream_error **error);

/**
 * Bytes handed to the system so far, after encoding.
 */
millstream_code millstream_writer_written(const millstream_writer *writer,
                                          uint64_t *bytes,
                                          millstream_error **error);

/**
 * The time spent in the sink so far.
 */
millstream_code millstream_writer_waited_ns(const millstream_writer *writer,
                                            uint64_t *waited_ns,
                                            millstream_error **error);

/**
 * Writes what is left, ends the stream, and makes it count: a file takes its name, a command is waited for. The writer
 * is still there to be asked how it ended, and to be freed.
 *
 * After an error it may be called again, and goes on where it stopped: what was accepted waits for that. But the
 * writer accepts no more bytes, whether this succeeds or not: MILLSTREAM_CLOSED, which is also the answer to a call
 * after one that has succeeded. MILLSTREAM_COMMAND_FAILED if the command did not succeed.
 * millstream_error_written() says how many bytes the sink took.
 */
millstream_code millstream_writer_close(millstream_writer *writer,
                                        millstream_error **error);

/**
 * All that was written to a writer that keeps it in memory, once it is closed: the writer's, and valid until that is
 * freed. NULL before, and of any other writer.
 */
millstream_code millstream_writer_taken_memory(const millstream_writer *writer,
                                               const char **bytes,
                                               size_t *len,
                                               millstream_error **error);

/**
 * How the command ended, if the sink was one and the writer is closed: an array of `count`, the writer's, and valid
 * until that is freed.
 */
millstream_code millstream_writer_command_ends(const millstream_writer *writer,
                                               const millstream_command_end **ends,
                                               size_t *count,
                                               millstream_error **error);

/**
 * Frees a writer. One that is open does its best silently: it writes what is in the buffer and ends a compressed
 * stream, a command gets its end of input and a little time; but a file that is to appear whole does not appear. NULL
 * is fine.
 */
void millstream_writer_free(millstream_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- shared ----
 *
 * A writer that several threads use at the same time.
 *
 * A record is what one call of millstream_shared_writer_write_record() is given, with its delimiter. Each record is in
 * the output as a whole and once; records of one thread keep their order, those of different threads come in the order
 * in which the calls got their turn. A call costs a lock: threads with many small records collect some first.
 */

/**
 * A writer for several threads, all of which use this one handle. Freed by millstream_shared_writer_free(), when none
 * of them does any more.
 */
typedef struct millstream_shared_writer millstream_shared_writer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a writer usable by several threads. It takes `writer` over, also if this fails: the caller neither uses nor
 * frees it again.
 */
millstream_code millstream_shared_writer_new(millstream_writer *writer,
                                             millstream_shared_writer **shared,
                                             millstream_error **error);

/**
 * Writes one record of `len` bytes. After an error nothing of it was accepted.
 */
millstream_code millstream_shared_writer_write_record(const millstream_shared_writer *shared,
                                                      const void *record,
                                                      size_t len,
                                                      millstream_error **error);

/**
 * Hands everything written so far, by all threads, to the system.
 */
millstream_code millstream_shared_writer_flush(const millstream_shared_writer *shared,
                                               millstream_error **error);

/**
 * Closes the writer for all threads, as millstream_writer_close() does: their later calls are MILLSTREAM_CLOSED.
 */
millstream_code millstream_shared_writer_close(const millstream_shared_writer *shared,
                                               millstream_error **error);

/**
 * Frees a shared writer. One that is open does its best silently, as millstream_writer_free() says. NULL is fine.
 */
void millstream_shared_writer_free(millstream_shared_writer *shared);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- put ----
 *
 * Text of numbers, and room to put it.
 *
 * Whole numbers are printed by numbers.h, without the library; floating-point numbers are printed here. The inlined
 * functions of window.h (millstream_output_put_u64() and its like) write both into the room of a writer.
 */

/**
 * How many bytes of room any floating-point number needs, unless it has fixed digits.
 */
#define MILLSTREAM_FLOAT_ROOM 32

/**
 * How many bytes of room a number with fixed digits needs beside those digits.
 */
#define MILLSTREAM_FIXED_ROOM 312

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Writes the shortest text that reads back as the same number: 1.0, 0.1, 1e16, 1.5e-7, NaN, inf, -0.0. Needs `room` for
 * MILLSTREAM_FLOAT_ROOM bytes at `to`, any of which it may change; says in `len` how many are the text.
 */
millstream_code millstream_format_f32(float value,
                                      char *to,
                                      size_t room,
                                      size_t *len,
                                      millstream_error **error);

/**
 * The same for a double.
 */
millstream_code millstream_format_f64(double value,
                                      char *to,
                                      size_t room,
                                      size_t *len,
                                      millstream_error **error);

/**
 * Writes a number with `digits` digits behind the point, at most 65535, as "%.*f" does: rounded from the exact value,
 * to even where two are equally near. Needs `room` for MILLSTREAM_FIXED_ROOM + digits bytes.
 */
millstream_code millstream_format_f64_fixed(double value,
                                            uint32_t digits,
                                            char *to,
                                            size_t room,
                                            size_t *len,
                                            millstream_error **error);

/**
 * Opens a window: the bytes from `at` up to `end`, at least `least`, are room to fill, and the writer serves no other
 * call that is not const until millstream_writer_end_window().
 *
 * Where a window is open already, it goes over into the next one: its first `used` bytes are accepted, and the `kept`
 * bytes behind them, of a record that is not whole yet, are at the front of the next one, in front of `at`. After an
 * error no window is open, and the kept bytes are gone; what was to be accepted was not, if it was that which failed.
 *
 * `collects` says whether it makes no difference when bytes are accepted, as long as the window has room; otherwise it
 * should happen after each record.
 *
 * This is what window.h is made of: see millstream_output there.
 */
millstream_code millstream_writer_window(millstream_writer *writer,
                                         size_t used,
                                         size_t kept,
                                         size_t least,
                                         char **at,
                                         char **end,
                                         bool *collects,
                                         millstream_error **error);

/**
 * Ends a window and accepts the first `used` bytes of it. After an error none of them was accepted.
 */
millstream_code millstream_writer_end_window(millstream_writer *writer,
                                             size_t used,
                                             millstream_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- pipe ----
 *
 * Pipes: records through stages of yours to a sink, batch by batch.
 *
 * A stage is a function that is given the items of a whole batch at once: at first the records, then whatever the
 * stages before it have made. So what a stage costs beside its own work is one call for each batch. Items are spans of
 * bytes: parts of the records, without a copy, or new bytes that live as long as the batch.
 *
 * Records before one that a stage fails at reach the sink first; then comes the error, with the record's number and
 * place. An error of the source comes after all that the source delivered, and the end means that it succeeded. Stages
 * may have run on items of the same batch that a later stage then drops, or that come behind one that fails there;
 * millstream_pipe_set_batch() with 1 forbids it.
 *
 * All functions of yours run on the thread that runs the pipe, while it runs it.
 */

/**
 * What happens when a stage fails at a record.
 */
enum millstream_on_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is the error of the pipe, after the records before it have reached the sink.
     */
    MILLSTREAM_ON_ERROR_STOP = 0,
    /**
     * The record is passed over and counted.
     */
    MILLSTREAM_ON_ERROR_SKIP = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_on_error millstream_on_error;
#else
typedef uint32_t millstream_on_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Records on their way through stages. Freed by millstream_pipe_free().
 *
 * Stages and settings are given before it runs for the first time.
 */
typedef struct millstream_pipe millstream_pipe;

/**
 * An item between two stages: `len` bytes at `data`, made from the record of this number.
 */
typedef struct {
    /**
     * The bytes. May be NULL if there are none.
     */
    const char *data;
    /**
     * How many they are.
     */
    size_t len;
    /**
     * Which record it was made from: its number in its own reader, as errors tell it; the first is 0. A stage hands it on
     * as it is, so that an error can name the record.
     */
    uint64_t record;
} millstream_span;

/**
 * A sink: takes `count` items, at least one, which are valid during the call, and returns how many it has taken. Fewer
 * than all are MILLSTREAM_STAGE_FAILED at the next one, and the end of the pipe.
 */
typedef size_t (*millstream_sink_callback)(void *user, const millstream_span *items, size_t count);

/**
 * What a pipe has done so far.
 */
typedef struct {
    /**
     * Records that were read.
     */
    uint64_t records;
    /**
     * Items that came out behind the last stage.
     */
    uint64_t items;
    /**
     * Times that a stage failed at a record that was passed over.
     */
    uint64_t failed;
    /**
     * Whether a stage such as millstream_pipe_take() ended it before its sources did.
     */
    bool ended_early;
} millstream_summary;

/**
 * What one stage has done.
 */
typedef struct {
    /**
     * Its name.
     */
    const char *name;
    /**
     * Items that came out.
     */
    uint64_t items;
    /**
     * Their size in bytes.
     */
    uint64_t bytes;
    /**
     * The time inside the stage.
     */
    uint64_t time_ns;
} millstream_stage_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a pipe over the records that `framer` finds. It takes `reader` and `framer` over, also if this fails: the
 * caller neither uses nor frees them again.
 */
millstream_code millstream_pipe_new(millstream_reader *reader,
                                    millstream_framer *framer,
                                    millstream_pipe **pipe,
                                    millstream_error **error);

/**
 * Adds the records of another reader, which it takes over, also if this fails. The readers take turns, a batch at a
 * time, and one that has nothing at the moment is passed over while another has; each one's records stay in order. All
 * of them must succeed.
 */
millstream_code millstream_pipe_merge(millstream_pipe *pipe,
                                      millstream_reader *reader,
                                      millstream_error **error);

/**
 * At most `records` records make a batch; at least 1. Unless told otherwise a batch is what the source has delivered,
 * at most 256 KiB.
 */
millstream_code millstream_pipe_set_batch(millstream_pipe *pipe,
                                          size_t records,
                                          millstream_error **error);

/**
 * What happens when a stage fails at a record.
 */
millstream_code millstream_pipe_set_on_error(millstream_pipe *pipe,
                                             millstream_on_error on_error,
                                             millstream_error **error);

/**
 * Passes over records that a stage fails at, and writes them to `writer` as they were read, with their delimiter.
 *
 * The writer is lent to the pipe: until that is freed it is not used otherwise, which is refused, nor freed.
 */
millstream_code millstream_pipe_set_quarantine(millstream_pipe *pipe,
                                               millstream_writer *writer,
                                               millstream_error **error);

/**
 * Ends the work between two batches when this token is cancelled: MILLSTREAM_CANCELLED, after which it can be run
 * again, and goes on where it was. To end waiting for the source too, give the token to the reader as well.
 */
millstream_code millstream_pipe_set_cancel(millstream_pipe *pipe,
                                           const millstream_cancel_token *token,
                                           millstream_error **error);

/**
 * Measures where the time goes, for millstream_pipe_stats().
 */
millstream_code millstream_pipe_measure(millstream_pipe *pipe, millstream_error **error);

/**
 * Runs it to the end, and gives the items to `sink`, batch by batch; NULL for what the stages do by themselves.
 * `summary`, which may be NULL, is what was done so far, also after an error.
 *
 * After MILLSTREAM_CANCELLED it can be run again, and goes on where it was. After any other error it has ended:
 * MILLSTREAM_CLOSED. Once all has come through, or a stage has ended it, it succeeds and does nothing.
 */
millstream_code millstream_pipe_run(millstream_pipe *pipe,
                                    millstream_sink_callback sink,
                                    void *user,
                                    millstream_summary *summary,
                                    millstream_error **error);

/**
 * Runs it to the end as millstream_pipe_run() does, and writes each item, and behind it what ends a record of the
 * source: a newline for lines. The writer is neither flushed nor closed. At the end all is with the writer, or there is
 * an error.
 */
millstream_code millstream_pipe_write_to(millstream_pipe *pipe,
                                         millstream_writer *writer,
                                         millstream_summary *summary,
                                         millstream_error **error);

/**
 * How the sources' commands ended that have ended so far: an array of `count` that is valid until the next call on the
 * pipe that is not const.
 */
millstream_code millstream_pipe_command_ends(millstream_pipe *pipe,
                                             const millstream_command_end **ends,
                                             size_t *count,
                                             millstream_error **error);

/**
 * Where the time went, if it is measured: for how long the pipe has run, for how long of this it waited for its
 * sources, and what each stage has done, the sink as the last one: an array of `count` that is valid until the next
 * call on the pipe that is not const.
 */
millstream_code millstream_pipe_stats(millstream_pipe *pipe,
                                      uint64_t *elapsed_ns,
                                      uint64_t *source_waited_ns,
                                      const millstream_stage_stats **stages,
                                      size_t *count,
                                      millstream_error **error);

/**
 * Frees a pipe, ending it wherever it is, and gives back the writers that were lent to it. Commands that are still
 * running are stopped, as millstream_reader_free() does it. NULL is fine.
 */
void millstream_pipe_free(millstream_pipe *pipe);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- pipe_stage ----
 *
 * Stages of pipes.
 *
 * A stage of yours is a function that is called with many items; others are the library's. Each is given to a pipe before
 * that runs for the first time.
 */

/**
 * What a stage may ask for while it is called: memory for new bytes, more items than there were, and to be told to
 * have failed.
 */
typedef struct millstream_stage_scope millstream_stage_scope;

/**
 * A stage. It is given `*count` items, at least one, writes those that go on over the front of the array, and sets
 * `*count` to how many these are. For a filter and for parts of items that is all. The bytes that a span points to are
 * part of what it was given, or from millstream_stage_keep() or millstream_stage_space(), or stay where and what they
 * are as long as the pipe exists.
 *
 * A stage that makes more items than it was given gives all of them to millstream_stage_put(), and leaves none.
 *
 * It returns MILLSTREAM_OK; or, if it fails at an item, what millstream_stage_fail() returns, or another code after it
 * has called that, with the items before that one done and counted. What happens then millstream_pipe_set_on_error()
 * says; where records that fail are passed over, the stage is called again with the items behind this one. The code
 * MILLSTREAM_STAGE_PANICKED is the end in any case.
 */
typedef millstream_code (*millstream_stage_callback)(void *user,
                                                     millstream_stage_scope *scope,
                                                     millstream_span *items,
                                                     size_t *count);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Adds a stage behind those that are there, under a name for statistics. `stage` is called with `user`, which
 * `release` (NULL: nobody) is given once, also if this call fails: when nobody needs it any more.
 */
millstream_code millstream_pipe_add_stage(millstream_pipe *pipe,
                                          const char *name,
                                          millstream_stage_callback stage,
                                          void *user,
                                          millstream_release_callback release,
                                          millstream_error **error);

/**
 * Of a stage: a copy of `len` bytes, which lives as long as the batch. NULL only if an argument is.
 */
const char *millstream_stage_keep(millstream_stage_scope *scope, const void *data, size_t len);

/**
 * Of a stage: room for `len` bytes, which lives as long as the batch; what it holds is arbitrary. One call for all new
 * bytes of a batch is cheapest. NULL if `scope` is, or for more than half of the address space.
 */
char *millstream_stage_space(millstream_stage_scope *scope,
                             size_t len);

/**
 * Of a stage: `count` items that go on, before those that are left in the array when the stage returns.
 */
millstream_code millstream_stage_put(millstream_stage_scope *scope,
                                     const millstream_span *items,
                                     size_t count,
                                     millstream_error **error);

/**
 * Of a stage: it has failed at the item with this index of the array it was given, for the reason that `message` says
 * (UTF-8, or NULL for none). Returns MILLSTREAM_STAGE_FAILED, for the stage to return.
 */
millstream_code millstream_stage_fail(millstream_stage_scope *scope,
                                      size_t index,
                                      const char *message);

/**
 * Lets the first `count` items through; then the pipe ends, and its sources are closed.
 */
millstream_code millstream_pipe_take(millstream_pipe *pipe, uint64_t count, millstream_error **error);

/**
 * Lets all but the first `count` items through.
 */
millstream_code millstream_pipe_skip(millstream_pipe *pipe, uint64_t count, millstream_error **error);

/**
 * Writes each item to `writer` as well, as millstream_pipe_write_to() does.
 *
 * The writer is lent to the pipe: until that is freed it is not used otherwise, which is refused, nor freed.
 */
millstream_code millstream_pipe_tee(millstream_pipe *pipe,
                                    millstream_writer *writer,
                                    millstream_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- bson ----
 *
 * BSON: documents that are looked at where they lie.
 *
 * A millstream_bson_document is plain data, and so is a millstream_bson_value: pointers into the memory that the
 * document lies in. They are copied like any struct and freed by nobody, and they are valid as long as that memory is,
 * and unchanged. Nothing is parsed before it is asked for, and nothing is remembered.
 *
 *     millstream_bson_document document;
 *     millstream_bson_element members[64];
 *     size_t at = 0, count, i;
 *     code = millstream_bson_borrow(bytes, len, NULL, &document, &error);
 *     while (code == MILLSTREAM_OK &&
 *            (code = millstream_bson_members(&document, &at, members, 64, &count, &error)) == MILLSTREAM_OK &&
 *            count > 0)
 *         for (i = 0; i < count; i++)
 *             if (members[i].value.type == MILLSTREAM_BSON_TYPE_INT64)
 *                 use(members[i].key, members[i].key_len, members[i].value.integer);
 *
 * All functions of this section take documents and values as const and keep nothing, so any number of threads may use
 * the same ones. Each is given the document that a value is from: in it an error finds the path of keys,
 * millstream_error_path(), and the offset.
 *
 * What is wrong is MILLSTREAM_DOCUMENT_INVALID, MILLSTREAM_DOCUMENT_TRUNCATED, MILLSTREAM_TOO_DEEP or
 * MILLSTREAM_UTF8_INVALID, wherever it is met; millstream_bson_check() meets all of it. The inlined getters of bson.h
 * (millstream_bson_as_i64() and its like) make a value a type of C.
 */

/**
 * What is let pass, beyond what could not be read anyway.
 */
enum millstream_bson_strictness
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Keys of arrays are not looked at, and keys may repeat: the first is found.
     */
    MILLSTREAM_BSON_STRICTNESS_STANDARD = 0,
    /**
     * Also bytes behind a document, booleans other than 0 and 1, and a wrong inner length of the old binary subtype.
     */
    MILLSTREAM_BSON_STRICTNESS_LENIENT = 1,
    /**
     * Less: keys of arrays must be "0", "1", and so on, and no key may repeat within a document.
     */
    MILLSTREAM_BSON_STRICTNESS_STRICT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_strictness millstream_bson_strictness;
#else
typedef uint32_t millstream_bson_strictness;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What happens where text or a key is not UTF-8.
 */
enum millstream_bson_utf8
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is MILLSTREAM_UTF8_INVALID.
     */
    MILLSTREAM_BSON_UTF8_CHECKED = 0,
    /**
     * The bytes of keys, strings, code and symbols are given as they are. In Extended JSON U+FFFD is there.
     */
    MILLSTREAM_BSON_UTF8_LOSSY = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_utf8 millstream_bson_utf8;
#else
typedef uint32_t millstream_bson_utf8;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The types that a value can have: the numbers are those of the format, <https://bsonspec.org/spec.html>.
 */
enum millstream_bson_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is no value.
     */
    MILLSTREAM_BSON_TYPE_NOTHING = 0,
    /**
     * A 64-bit floating point number: `number`.
     */
    MILLSTREAM_BSON_TYPE_DOUBLE = 1,
    /**
     * UTF-8 text: `bytes` and `len`, the NUL behind it left out.
     */
    MILLSTREAM_BSON_TYPE_STRING = 2,
    /**
     * A document: `bytes` and `len`; millstream_bson_enter() goes in.
     */
    MILLSTREAM_BSON_TYPE_DOCUMENT = 3,
    /**
     * An array, which is a document whose keys are "0", "1", and so on: `bytes` and `len`.
     */
    MILLSTREAM_BSON_TYPE_ARRAY = 4,
    /**
     * Bytes with a `subtype`: `bytes` and `len`. Of the old subtype 2 the inner length is left out.
     */
    MILLSTREAM_BSON_TYPE_BINARY = 5,
    /**
     * No value (deprecated).
     */
    MILLSTREAM_BSON_TYPE_UNDEFINED = 6,
    /**
     * An object id: the 12 `bytes`.
     */
    MILLSTREAM_BSON_TYPE_OBJECT_ID = 7,
    /**
     * True or false: `integer` is 1 or 0.
     */
    MILLSTREAM_BSON_TYPE_BOOL = 8,
    /**
     * A point in time: `integer` is milliseconds since 1970, UTC.
     */
    MILLSTREAM_BSON_TYPE_DATE_TIME = 9,
    /**
     * No value: null.
     */
    MILLSTREAM_BSON_TYPE_NULL = 10,
    /**
     * A regular expression: the pattern in `bytes` and `len`, the options in `more` and `more_len`.
     */
    MILLSTREAM_BSON_TYPE_REGEX = 11,
    /**
     * A namespace in `bytes` and `len`, and an object id, the 12 bytes of `more` (deprecated).
     */
    MILLSTREAM_BSON_TYPE_DB_POINTER = 12,
    /**
     * JavaScript, which is text here and never run: `bytes` and `len`.
     */
    MILLSTREAM_BSON_TYPE_CODE = 13,
    /**
     * A symbol (deprecated): `bytes` and `len`.
     */
    MILLSTREAM_BSON_TYPE_SYMBOL = 14,
    /**
     * JavaScript in `bytes` and `len`, and the document it runs with in `more` and `more_len` (deprecated).
     */
    MILLSTREAM_BSON_TYPE_CODE_WITH_SCOPE = 15,
    /**
     * A 32-bit integer: `integer`.
     */
    MILLSTREAM_BSON_TYPE_INT32 = 16,
    /**
     * MongoDB's internal timestamp: `integer` has the seconds since 1970 in its upper 32 bits, and in the lower ones a
     * counter within that second.
     */
    MILLSTREAM_BSON_TYPE_TIMESTAMP = 17,
    /**
     * A 64-bit integer: `integer`.
     */
    MILLSTREAM_BSON_TYPE_INT64 = 18,
    /**
     * A 128-bit decimal floating point number: the 16 `bytes`, the lowest first.
     */
    MILLSTREAM_BSON_TYPE_DECIMAL128 = 19,
    /**
     * Compares higher than everything.
     */
    MILLSTREAM_BSON_TYPE_MAX_KEY = 127,
    /**
     * Compares lower than everything.
     */
    MILLSTREAM_BSON_TYPE_MIN_KEY = 255,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_type millstream_bson_type;
#else
typedef uint32_t millstream_bson_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What reading a document accepts. All zeros are the usual rules, and so is NULL where rules are asked for.
 */
typedef struct {
    /**
     * How many documents and arrays may be inside each other, the outermost included: 200 if this is 0, at most 1,000.
     */
    uint32_t depth;
    /**
     * What is let pass.
     */
    millstream_bson_strictness strictness;
    /**
     * What happens where text is not UTF-8.
     */
    millstream_bson_utf8 utf8;
} millstream_bson_rules;

/**
 * A document, where it lies: made by the functions below. `bytes` of NULL are no document.
 */
typedef struct {
    /**
     * Its bytes, length and terminator included.
     */
    const char *bytes;
    /**
     * How many these are, at least 5.
     */
    size_t len;
    /**
     * Where it begins, in bytes from the start of its stream, or else of the outermost document.
     */
    uint64_t offset;
    /**
     * Where the outermost document begins, which is this one or around it.
     */
    const char *root;
    /**
     * What errors call the stream that it is from. NULL for what is from none.
     */
    const char *name;
    /**
     * Which record of that stream it is, or is in; the first is 0.
     */
    uint64_t record;
    /**
     * How many documents and arrays may be inside each other from here on, this one included.
     */
    uint32_t depth_left;
    /**
     * MILLSTREAM_BSON_TYPE_ARRAY if it is an array: then paths begin with a position. Otherwise it is a document.
     */
    millstream_bson_type type;
    /**
     * The rules it is read by.
     */
    millstream_bson_rules rules;
} millstream_bson_document;

/**
 * A value, where it lies. What of it counts depends on its type; the rest is 0.
 */
typedef struct {
    /**
     * Its type.
     */
    millstream_bson_type type;
    /**
     * Of a binary: what the bytes are; 0 is anything, 4 a UUID.
     */
    uint8_t subtype;
    /**
     * How many documents and arrays may be inside each other from here on.
     */
    uint16_t depth_left;
    /**
     * An integer, a boolean, a date or a timestamp.
     */
    int64_t integer;
    /**
     * A double.
     */
    double number;
    /**
     * Text, bytes, a document, an array, an object id or a decimal number.
     */
    const char *bytes;
    /**
     * How many bytes these are.
     */
    size_t len;
    /**
     * What some deprecated types and regular expressions have beside that.
     */
    const char *more;
    /**
     * How many bytes these are.
     */
    size_t more_len;
    /**
     * All that the document has behind the key, with lengths and terminators. No bytes for types without a value.
     */
    const char *payload;
    /**
     * How many bytes these are.
     */
    size_t payload_len;
} millstream_bson_value;

/**
 * A member of a document, or an element of an array.
 */
typedef struct {
    /**
     * Its key, which a NUL follows.
     */
    const char *key;
    /**
     * How long the key is.
     */
    size_t key_len;
    /**
     * Its value.
     */
    millstream_bson_value value;
} millstream_bson_element;

/**
 * Numbers that lie in a document as a binary.
 */
typedef struct {
    /**
     * The first, the lowest byte of each first. NULL if there are none.
     */
    const void *items;
    /**
     * How many there are.
     */
    size_t count;
    /**
     * Whether they can be used as an array of C where they are. Otherwise their address is none of such a type, or the
     * processor has the highest byte first, and they have to be copied out by memcpy().
     */
    bool usable;
} millstream_bson_numbers;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The document that these `len` bytes are. Looked at is its frame: its length, and the terminator there.
 *
 * MILLSTREAM_DOCUMENT_INVALID also for bytes behind it, unless the rules are lenient.
 */
millstream_code millstream_bson_borrow(const void *bytes,
                                       size_t len,
                                       const millstream_bson_rules *rules,
                                       millstream_bson_document *document,
                                       millstream_error **error);

/**
 * The document at the front of these `len` bytes: `document->len` says where the next one may be.
 */
millstream_code millstream_bson_borrow_first(const void *bytes,
                                             size_t len,
                                             const millstream_bson_rules *rules,
                                             millstream_bson_document *document,
                                             millstream_error **error);

/**
 * Looks at every byte: types, lengths, terminators, UTF-8, depth, and what the rules ask for.
 */
millstream_code millstream_bson_check(const millstream_bson_document *document, millstream_error **error);

/**
 * The document or array that `value` is, or the scope of a code with scope.
 *
 * MILLSTREAM_SHAPE_MISMATCH for other types.
 */
millstream_code millstream_bson_enter(const millstream_bson_document *document,
                                      const millstream_bson_value *value,
                                      millstream_bson_document *inner,
                                      millstream_error **error);

/**
 * Goes over the members of a document, or the elements of an array, many at once. `at` is where it goes on, in bytes
 * from the document's first: 0 at first, set to where the next member is. `count` is how many of the `room` `elements`
 * were filled; 0 is the end. The members before a bad one are delivered first.
 */
millstream_code millstream_bson_members(const millstream_bson_document *document,
                                        size_t *at,
                                        millstream_bson_element *elements,
                                        size_t room,
                                        size_t *count,
                                        millstream_error **error);

/**
 * The member of this name, the first if there are several. `found` says whether there is one; NULL means that there must
 * be: then none is MILLSTREAM_KEY_MISSING. Of an array too this is the member with that key: see
 * millstream_bson_element_at().
 */
millstream_code millstream_bson_member(const millstream_bson_document *document,
                                       const char *key,
                                       size_t key_len,
                                       millstream_bson_value *value,
                                       bool *found,
                                       millstream_error **error);

/**
 * The element at a position, the first of which is 0; of a document that is no array the member there. Those before it
 * are walked over, and no key is looked at. `found` as for millstream_bson_member().
 */
millstream_code millstream_bson_element_at(const millstream_bson_document *document,
                                           size_t position,
                                           millstream_bson_value *value,
                                           bool *found,
                                           millstream_error **error);

/**
 * The value at the end of a path: keys with dots between them, such as "items.3.price"; in arrays they are positions,
 * whatever keys are written there. A key with a dot, a quote or nothing in it is written as a JSON string:
 * "hosts.\"a.b\".port". `found` as for millstream_bson_member(). A path that goes through a value which is neither
 * document nor array leads nowhere.
 */
millstream_code millstream_bson_find(const millstream_bson_document *document,
                                     const char *path,
                                     millstream_bson_value *value,
                                     bool *found,
                                     millstream_error **error);

/**
 * The value at the end of a path of `count` keys, which are taken as they are; 1 or more.
 */
millstream_code millstream_bson_find_keys(const millstream_bson_document *document,
                                          const char *const *keys,
                                          size_t count,
                                          millstream_bson_value *value,
                                          bool *found,
                                          millstream_error **error);

/**
 * Succeeds if `value` has this type; a code or a symbol will do for a string. Otherwise MILLSTREAM_SHAPE_MISMATCH, or
 * MILLSTREAM_KEY_MISSING for no value.
 */
millstream_code millstream_bson_expect(const millstream_bson_document *document,
                                       const millstream_bson_value *value,
                                       millstream_bson_type type,
                                       millstream_error **error);

/**
 * A number of any type as an int32_t, if it is that exactly: a double too, if it has no fraction. Otherwise
 * MILLSTREAM_VALUE_OUT_OF_RANGE, and MILLSTREAM_SHAPE_MISMATCH for what is no number. millstream_bson_as_i32() of bson.h
 * is faster where the type is the one that is expected; so are its like below.
 */
millstream_code millstream_bson_to_i32(const millstream_bson_document *document,
                                       const millstream_bson_value *value,
                                       int32_t *number,
                                       millstream_error **error);

/**
 * The same as an int64_t.
 */
millstream_code millstream_bson_to_i64(const millstream_bson_document *document,
                                       const millstream_bson_value *value,
                                       int64_t *number,
                                       millstream_error **error);

/**
 * The same as a uint64_t.
 */
millstream_code millstream_bson_to_u64(const millstream_bson_document *document,
                                       const millstream_bson_value *value,
                                       uint64_t *number,
                                       millstream_error **error);

/**
 * The same as a double; MILLSTREAM_VALUE_OUT_OF_RANGE for an integer that no double is.
 */
millstream_code millstream_bson_to_f64(const millstream_bson_document *document,
                                       const millstream_bson_value *value,
                                       double *number,
                                       millstream_error **error);

/**
 * A binary as numbers of `item_size` bytes each: 1, 2, 4, 8 or 16. Nothing is copied.
 *
 * MILLSTREAM_SHAPE_MISMATCH for another type, and for a length that is no multiple of `item_size`.
 */
millstream_code millstream_bson_as_numbers(const millstream_bson_document *document,
                                           const millstream_bson_value *value,
                                           size_t item_size,
                                           millstream_bson_numbers *numbers,
                                           millstream_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- bson_scalar ----
 *
 * BSON's own numbers as text, both ways, and new object ids.
 *
 *     char id[12], text[MILLSTREAM_BSON_OBJECT_ID_TEXT];
 *     code = millstream_bson_object_id_new(id, &error);
 *     code = millstream_bson_object_id_to_text(id, text, &error);           "57e193d7a9cc81b4027498b5"
 *     code = millstream_bson_object_id_from_text(text, 24, id, &error);
 *
 * The bytes are those of millstream_bson_as_object_id() and millstream_bson_builder_append_object_id(), and the same for
 * decimal numbers. Text that is none of these is MILLSTREAM_TEXT_INVALID, with the offset in it.
 */

/**
 * Room for the text of an object id, its NUL included.
 */
#define MILLSTREAM_BSON_OBJECT_ID_TEXT 25

/**
 * Room for the longest text of a decimal number, its NUL included.
 */
#define MILLSTREAM_BSON_DECIMAL128_TEXT 43

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes an object id that no other has: of the time, of this process, and counted. `id` has room for 12 bytes.
 */
millstream_code millstream_bson_object_id_new(void *id,
                                              millstream_error **error);

/**
 * Writes the 24 hexadecimal digits of the 12 bytes of `id`, and a NUL, to `text`.
 */
millstream_code millstream_bson_object_id_to_text(const void *id, char *text, millstream_error **error);

/**
 * Reads 24 hexadecimal digits, of either case, into the 12 bytes of `id`, which are 0 after an error.
 */
millstream_code millstream_bson_object_id_from_text(const char *text,
                                                    size_t len,
                                                    void *id,
                                                    millstream_error **error);

/**
 * Writes the text of a decimal number, such as "1.50", "1E+6", "NaN" or "-Infinity", and a NUL to `text`. `decimal` is
 * its 16 bytes, the lowest first.
 */
millstream_code millstream_bson_decimal128_to_text(const void *decimal,
                                                   char *text,
                                                   millstream_error **error);

/**
 * Reads the text of a decimal number into the 16 bytes of `decimal`, which are 0 after an error. What would have to be
 * rounded is MILLSTREAM_TEXT_INVALID, too.
 */
millstream_code millstream_bson_decimal128_from_text(const char *text,
                                                     size_t len,
                                                     void *decimal,
                                                     millstream_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- bson_owned ----
 *
 * BSON documents with memory of their own: mapped files, copies, what a reader gives, and Extended JSON both ways.
 *
 * The documents that these handles lend are valid until the handle is freed.
 */

/**
 * The two forms of Extended JSON. Both are read, also mixed.
 */
enum millstream_bson_json
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Numbers are JSON's, and dates of the years 1970 to 9999 text: 1, {"$date":"1970-01-01T00:00:00Z"}.
     */
    MILLSTREAM_BSON_JSON_RELAXED = 0,
    /**
     * Every type is kept: {"$numberInt":"1"}, {"$date":{"$numberLong":"0"}}.
     */
    MILLSTREAM_BSON_JSON_CANONICAL = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_json millstream_bson_json;
#else
typedef uint32_t millstream_bson_json;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A document with its memory. Freed by millstream_bson_owned_free().
 */
typedef struct millstream_bson_owned millstream_bson_owned;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Maps a file of one or more documents; nothing is read before it is looked at, so this takes the same time for any
 * size. Nobody may shrink or change the file meanwhile: using bytes that are no longer there ends the process with
 * SIGBUS.
 */
millstream_code millstream_bson_mapped(const char *path,
                                       const millstream_bson_rules *rules,
                                       millstream_bson_owned **owned,
                                       millstream_error **error);

/**
 * Copies the document that these `len` bytes are.
 */
millstream_code millstream_bson_copy(const void *bytes,
                                     size_t len,
                                     const millstream_bson_rules *rules,
                                     millstream_bson_owned **owned,
                                     millstream_error **error);

/**
 * Copies a document, with its rules and its offset. It is the outermost then: paths begin in it.
 */
millstream_code millstream_bson_copy_document(const millstream_bson_document *document,
                                              millstream_bson_owned **owned,
                                              millstream_error **error);

/**
 * Reads one document of at most `limit` bytes, and leaves the reader behind it. `owned` is NULL at the end of the stream.
 * The memory grows as bytes arrive, whatever the document says of its length. A longer one is MILLSTREAM_MEMORY_LIMIT.
 */
millstream_code millstream_bson_read(millstream_reader *reader,
                                     size_t limit,
                                     const millstream_bson_rules *rules,
                                     millstream_bson_owned **owned,
                                     millstream_error **error);

/**
 * Makes a document of Extended JSON, canonical, relaxed or mixed. MILLSTREAM_TEXT_INVALID with the path and the offset in
 * the text, a few bytes behind what is wrong.
 */
millstream_code millstream_bson_from_json(const char *text,
                                          size_t len,
                                          const millstream_bson_rules *rules,
                                          millstream_bson_owned **owned,
                                          millstream_error **error);

/**
 * The document; of a mapped file the first. There, bytes behind it are as the rules say: millstream_bson_owned_bytes()
 * gives all of them for millstream_bson_borrow_first().
 */
millstream_code millstream_bson_owned_document(const millstream_bson_owned *owned,
                                               millstream_bson_document *document,
                                               millstream_error **error);

/**
 * All the bytes: of a mapped file those of every document.
 */
millstream_code millstream_bson_owned_bytes(const millstream_bson_owned *owned,
                                            const char **bytes,
                                            size_t *len,
                                            millstream_error **error);

/**
 * Whether a mapped file has become shorter: MILLSTREAM_SOURCE_SHRANK. Others have not.
 */
millstream_code millstream_bson_owned_check_length(const millstream_bson_owned *owned,
                                                   millstream_error **error);

/**
 * Writes a document as Extended JSON, in one line without an end. After an error nothing of it was accepted.
 */
millstream_code millstream_bson_write_json(const millstream_bson_document *document,
                                           millstream_bson_json form,
                                           millstream_writer *writer,
                                           millstream_error **error);

/**
 * Frees a document with its memory. NULL is fine.
 */
void millstream_bson_owned_free(millstream_bson_owned *owned);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- bson_stream ----
 *
 * BSON documents that follow each other, from any source: a mongodump file, say, or what a server sends.
 *
 *     millstream_bson_documents *documents;
 *     const millstream_bson_document *found;
 *     size_t count, i;
 *     code = millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
 *                                          MILLSTREAM_BSON_CHECKING_ON_ACCESS, &documents, &error);
 *     while (code == MILLSTREAM_OK &&
 *            (code = millstream_bson_documents_next(documents, &found, &count, &error)) == MILLSTREAM_OK && count > 0)
 *         for (i = 0; i < count; i++)
 *             use(&found[i]);
 *
 * Every document that the source delivered comes, then the end if the source succeeded, or one error. The longest
 * document is the reader's record limit. Documents of a stream are valid until the next call on it that is not const.
 * An error about a member of one has the name of the stream and the number of the record.
 */

/**
 * What happens at a document that is wrong.
 */
enum millstream_bson_on_bad
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is an error, and the end.
     */
    MILLSTREAM_BSON_ON_BAD_STOP = 0,
    /**
     * It is passed over, and millstream_bson_documents_skipped() tells where it was. Where its length is wrong, the next
     * bytes that cannot well be anything but documents are searched for. Documents are checked ahead.
     */
    MILLSTREAM_BSON_ON_BAD_SKIP = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_on_bad millstream_bson_on_bad;
#else
typedef uint32_t millstream_bson_on_bad;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * When a document's inside is looked at.
 */
enum millstream_bson_checking
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * When a value is asked for.
     */
    MILLSTREAM_BSON_CHECKING_ON_ACCESS = 0,
    /**
     * Before the document is given.
     */
    MILLSTREAM_BSON_CHECKING_AHEAD = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum millstream_bson_checking millstream_bson_checking;
#else
typedef uint32_t millstream_bson_checking;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reads documents that follow each other. Freed by millstream_bson_documents_free().
 */
typedef struct millstream_bson_documents millstream_bson_documents;

/**
 * A place that was passed over.
 */
typedef struct {
    /**
     * Where it begins, in bytes from the start of the stream.
     */
    uint64_t offset;
    /**
     * How long it is, in bytes.
     */
    uint64_t len;
    /**
     * Which record it was; the first is 0.
     */
    uint64_t record;
    /**
     * What was wrong.
     */
    millstream_code code;
    /**
     * Where, in bytes from the start of the stream.
     */
    uint64_t wrong_at;
} millstream_bson_skipped_place;

/**
 * What was passed over.
 */
typedef struct {
    /**
     * How many places.
     */
    uint64_t count;
    /**
     * How many bytes they have.
     */
    uint64_t bytes;
    /**
     * The first 1,000 of them.
     */
    const millstream_bson_skipped_place *places;
    /**
     * How many of them these are.
     */
    size_t places_count;
} millstream_bson_skipped;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a stream of documents of what `reader` has not given yet. It takes the reader over, also if this fails: the
 * caller neither uses nor frees it again.
 */
millstream_code millstream_bson_documents_new(millstream_reader *reader,
                                              const millstream_bson_rules *rules,
                                              millstream_bson_on_bad on_bad,
                                              millstream_bson_checking checking,
                                              millstream_bson_documents **documents,
                                              millstream_error **error);

/**
 * The next documents, as many as are there: waits for one, never for a second. `found` is an array of `count`, which is 0
 * at the end. The documents before a bad one are delivered first.
 */
millstream_code millstream_bson_documents_next(millstream_bson_documents *documents,
                                               const millstream_bson_document **found,
                                               size_t *count,
                                               millstream_error **error);

/**
 * What was passed over so far. Its places are valid until the next call on the stream that is not const.
 */
millstream_code millstream_bson_documents_skipped(const millstream_bson_documents *documents,
                                                  millstream_bson_skipped *skipped,
                                                  millstream_error **error);

/**
 * What errors call the source; NULL only for a stream of NULL. Valid until the stream is freed.
 */
const char *millstream_bson_documents_name(const millstream_bson_documents *documents);

/**
 * Where the stream is: behind the last document that was given, in bytes after decoding, and in records. Each place that
 * was passed over counts as a record. Once it is closed: where it was.
 */
millstream_code millstream_bson_documents_position(const millstream_bson_documents *documents,
                                                   uint64_t *bytes,
                                                   uint64_t *records,
                                                   millstream_error **error);

/**
 * Ends the reading, wherever it is, as millstream_reader_close() does. The stream is still there to be asked where it was
 * and what was passed over, and to be freed.
 */
millstream_code millstream_bson_documents_close(millstream_bson_documents *documents,
                                                millstream_error **error);

/**
 * Frees a stream and its reader, as millstream_reader_free() does. NULL is fine.
 */
void millstream_bson_documents_free(millstream_bson_documents *documents);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- bson_write ----
 *
 * BSON documents, written member by member into memory that is used again.
 *
 *     millstream_bson_builder *builder;
 *     code = millstream_bson_builder_new(&builder, &error);
 *     ...
 *     millstream_bson_builder_append_text(builder, "name", "Ann", 3, &error);
 *     millstream_bson_builder_open(builder, "scores", 6, MILLSTREAM_BSON_TYPE_ARRAY, &error);
 *     millstream_bson_builder_append_f64(builder, NULL, 1.5, &error);
 *     millstream_bson_builder_close(builder, &error);
 *     millstream_bson_builder_write(builder, writer, &error);
 *
 * Lengths are filled in when documents and arrays are closed, and the keys of arrays are counted. After an error the
 * builder is as it was before the call; what takes several calls is taken back by millstream_bson_builder_rollback(). An
 * error about a value has its path, millstream_error_path(). The inlined functions of bson.h make the values.
 */

/**
 * Writes documents, one after the other. Freed by millstream_bson_builder_free().
 */
typedef struct millstream_bson_builder millstream_bson_builder;

/**
 * A place in what a builder has written, to go back to. Plain data, which nobody frees.
 */
typedef struct {
    /**
     * How many bytes there are.
     */
    size_t len;
    /**
     * How many documents and arrays are open.
     */
    size_t depth;
} millstream_bson_mark;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a builder with an empty document.
 */
millstream_code millstream_bson_builder_new(millstream_bson_builder **builder, millstream_error **error);

/**
 * Begins anew with an empty document, and keeps the memory.
 */
millstream_code millstream_bson_builder_clear(millstream_bson_builder *builder, millstream_error **error);

/**
 * Appends a member to the document that is open, or with a `key` of NULL a value to the array that is open. Of the
 * value its type counts, and what that type says; `payload` does not.
 *
 * MILLSTREAM_ARGUMENT_INVALID for a key in an array or none in a document, MILLSTREAM_CLOSED when the document is
 * finished, MILLSTREAM_UTF8_INVALID, MILLSTREAM_VALUE_OUT_OF_RANGE for a key with a NUL in it or a value that BSON has
 * no room for. Documents and arrays are copied; looked at is their frame.
 */
millstream_code millstream_bson_builder_append(millstream_bson_builder *builder,
                                               const char *key,
                                               size_t key_len,
                                               const millstream_bson_value *value,
                                               millstream_error **error);

/**
 * Appends `count` members to the document that is open, or their values to the array that is open. `appended` says how
 * many: after an error those before the bad one, which stay. NULL if nobody wants to know.
 */
millstream_code millstream_bson_builder_append_members(millstream_bson_builder *builder,
                                                       const millstream_bson_element *members,
                                                       size_t count,
                                                       size_t *appended,
                                                       millstream_error **error);

/**
 * Opens a document or an array, by its `type`, as a member of the document that is open, or with a `key` of NULL as a
 * value of the array that is open. MILLSTREAM_TOO_DEEP for more than 200 inside each other.
 */
millstream_code millstream_bson_builder_open(millstream_bson_builder *builder,
                                             const char *key,
                                             size_t key_len,
                                             millstream_bson_type type,
                                             millstream_error **error);

/**
 * Closes the document or array that was opened last.
 */
millstream_code millstream_bson_builder_close(millstream_bson_builder *builder, millstream_error **error);

/**
 * Where the builder is, for millstream_bson_builder_rollback().
 */
millstream_code millstream_bson_builder_mark(millstream_bson_builder *builder,
                                             millstream_bson_mark *mark,
                                             millstream_error **error);

/**
 * Takes back all that came behind a mark: members, values, and what was opened and perhaps closed again. What is open at
 * the mark is walked over, so this takes longer than an append.
 *
 * MILLSTREAM_ARGUMENT_INVALID for a mark that is no place between two members of what is open: what was open then has
 * been closed, say, or another document begun. Then nothing is taken back.
 */
millstream_code millstream_bson_builder_rollback(millstream_bson_builder *builder,
                                                 const millstream_bson_mark *mark,
                                                 millstream_error **error);

/**
 * Ends the document and lends its bytes, until the next call on the builder. Until millstream_bson_builder_clear() it
 * takes nothing more. MILLSTREAM_ARGUMENT_INVALID while anything in it is open.
 */
millstream_code millstream_bson_builder_finish(millstream_bson_builder *builder,
                                               const char **bytes,
                                               size_t *len,
                                               millstream_error **error);

/**
 * Ends the document, writes it, and begins anew with an empty one. After an error of the writer nothing of it was
 * accepted, and the call may be repeated.
 */
millstream_code millstream_bson_builder_write(millstream_bson_builder *builder,
                                              millstream_writer *writer,
                                              millstream_error **error);

/**
 * Frees a builder. NULL is fine.
 */
void millstream_bson_builder_free(millstream_bson_builder *builder);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#include "millstream/numbers.h"
#include "millstream/window.h"
#include "millstream/bson.h"

#endif /* MILLSTREAM_H */
