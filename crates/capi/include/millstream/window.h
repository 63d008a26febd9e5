/*
 * millstream/window.h: inlined functions that C programs call per record or per number.
 *
 * It is a part of millstream.h, which includes it, and has three parts:
 *   - millstream_batch_record()  the records of a batch;
 *   - millstream_input numbers and words from a reader;
 *   - millstream_output numbers and text to a writer.
 *
 * An input or output is a window: pointers into the buffer of its reader or writer. The common case, a complete and
 * valid number or a record that fits, is handled here. For all other cases the library is called, which reports all
 * errors. So the results and the errors are those of millstream_reader_scan_u64() and similar functions.
 *
 * While a window is open, its reader or writer accepts only const calls: others are reported as
 * MILLSTREAM_ARGUMENT_INVALID. An input or output belongs to one thread at a time. The functions here do not check for
 * NULL.
 */
#ifndef MILLSTREAM_WINDOW_H
#define MILLSTREAM_WINDOW_H

#include "../millstream.h"
#include "numbers.h"

#include <string.h>

/* ---- batches ---- */

/*
 * Returns the content of record `i` of a batch, which must have more than `i` records: without delimiter or length,
 * according to the framer. It is part of the batch's memory.
 */
MILLSTREAM_INLINE void millstream_batch_record(const millstream_batch *batch, size_t i, const char **record,
                                               size_t *len) {
    size_t start = batch->offsets[i], end = batch->offsets[i + 1];
    if (batch->terminated || i + 1 < batch->count) {
        end = end - start > batch->trim.tail ? end - batch->trim.tail : start;
        if (batch->trim.carriage_return && end > start && batch->bytes[end - 1] == '\r')
            end--;
    }
    start = end - start > batch->trim.head ? start + batch->trim.head : end;
    *record = batch->bytes + start;
    *len = end - start;
}

/* ---- input ---- */

/*
 * Numbers and words from a reader. They are separated by white space; for another separator use
 * millstream_reader_scan_u64() and similar functions.
 *
 *     millstream_input in;
 *     uint32_t a, b;
 *     bool end = false;
 *     code = millstream_input_begin(&in, reader, &error);
 *     while (code == MILLSTREAM_OK &&
 *            (code = millstream_input_scan_u32(&in, &a, &end, &error)) == MILLSTREAM_OK && !end &&
 *            (code = millstream_input_scan_u32(&in, &b, NULL, &error)) == MILLSTREAM_OK)
 *         use(a, b);
 *     if (code == MILLSTREAM_OK)
 *         code = millstream_input_end(&in, &error);
 */
typedef struct {
    millstream_reader *reader;
    /* The window, NULL if none is open; up to `at` it has been used. */
    const char *start, *at, *end;
} millstream_input;

/* Opens the window again, if possible; if not, the next call finds the reason. */
MILLSTREAM_INLINE millstream_code millstream_input_open(millstream_input *in, millstream_error **error) {
    millstream_code code = millstream_reader_window(in->reader, &in->start, &in->end, error);
    in->at = in->start;
    return code;
}

/* Starts scanning the data that `reader` has not delivered yet. */
MILLSTREAM_INLINE millstream_code millstream_input_begin(millstream_input *in, millstream_reader *reader,
                                                         millstream_error **error) {
    in->reader = reader;
    return millstream_input_open(in, error);
}

/* Ends the scanning: consumes the bytes that were used, and the reader accepts all calls again. */
MILLSTREAM_INLINE millstream_code millstream_input_end(millstream_input *in, millstream_error **error) {
    millstream_code code = MILLSTREAM_OK;
    if (in->start != NULL)
        code = millstream_reader_end_window(in->reader, (size_t)(in->at - in->start), error);
    in->start = in->at = in->end = NULL;
    return code;
}

/* The slow path of the inlined functions: `call` is a call of a reader function. */
#define MILLSTREAM_INPUT_CALL(call)                                                                                    \
    do {                                                                                                               \
        millstream_code code = millstream_input_end(in, error);                                                        \
        if (code == MILLSTREAM_OK) {                                                                                   \
            code = (call);                                                                                             \
            (void)millstream_input_open(in, NULL);                                                                     \
        }                                                                                                              \
        return code;                                                                                                   \
    } while (0)

MILLSTREAM_COLD millstream_code millstream_input_call_u32(millstream_input *in, uint32_t *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_u32(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_u64(millstream_input *in, uint64_t *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_u64(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_i32(millstream_input *in, int32_t *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_i32(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_i64(millstream_input *in, int64_t *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_i64(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_f32(millstream_input *in, float *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_f32(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_f64(millstream_input *in, double *value, bool *end,
                                                          millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_scan_f64(in->reader, MILLSTREAM_SPACE, value, end, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_word(millstream_input *in, const char **word, size_t *len,
                                                           millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_next_word(in->reader, word, len, error));
}

MILLSTREAM_COLD millstream_code millstream_input_call_line(millstream_input *in, const char **line, size_t *len,
                                                           millstream_error **error) {
    MILLSTREAM_INPUT_CALL(millstream_reader_rest_of_line(in->reader, line, len, error));
}

#undef MILLSTREAM_INPUT_CALL

/*
 * Each of the following returns the next number of its type. At the end of the input `end` is true and `value` 0, which
 * means that the source succeeded. If `end` is NULL there must be a value: otherwise the error is
 * MILLSTREAM_VALUE_MISSING. Errors are those of millstream_reader_scan_u64() and similar functions.
 */
MILLSTREAM_INLINE millstream_code millstream_input_scan_u32(millstream_input *in, uint32_t *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end);
    if (!MILLSTREAM_LIKELY(millstream_scan_u32(&at, in->end, value) == MILLSTREAM_SCANNED))
        return millstream_input_call_u32(in, value, end, error);
    in->at = at;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_input_scan_u64(millstream_input *in, uint64_t *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end);
    if (!MILLSTREAM_LIKELY(millstream_scan_u64(&at, in->end, value) == MILLSTREAM_SCANNED))
        return millstream_input_call_u64(in, value, end, error);
    in->at = at;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_input_scan_i32(millstream_input *in, int32_t *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end);
    if (!MILLSTREAM_LIKELY(millstream_scan_i32(&at, in->end, value) == MILLSTREAM_SCANNED))
        return millstream_input_call_i32(in, value, end, error);
    in->at = at;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_input_scan_i64(millstream_input *in, int64_t *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end);
    if (!MILLSTREAM_LIKELY(millstream_scan_i64(&at, in->end, value) == MILLSTREAM_SCANNED))
        return millstream_input_call_i64(in, value, end, error);
    in->at = at;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

/* Returns the end of the token that begins at `at`: white space, or `end`, after which more of it may follow. */
MILLSTREAM_INLINE const char *millstream_token_end(const char *at, const char *end) {
    while (at < end && !millstream_is_space(*at))
        at++;
    return at;
}

MILLSTREAM_INLINE millstream_code millstream_input_scan_f32(millstream_input *in, float *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end), *after = millstream_token_end(at, in->end);
    if (after == in->end || millstream_parse_f32(at, (size_t)(after - at), value, NULL) != MILLSTREAM_OK)
        return millstream_input_call_f32(in, value, end, error);
    in->at = after;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_input_scan_f64(millstream_input *in, double *value, bool *end,
                                                            millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end), *after = millstream_token_end(at, in->end);
    if (after == in->end || millstream_parse_f64(at, (size_t)(after - at), value, NULL) != MILLSTREAM_OK)
        return millstream_input_call_f64(in, value, end, error);
    in->at = after;
    if (end != NULL)
        *end = false;
    return MILLSTREAM_OK;
}

/* Returns the next word: the bytes up to the next white space or the end, valid until the next call. NULL at the end.
 */
MILLSTREAM_INLINE millstream_code millstream_input_next_word(millstream_input *in, const char **word, size_t *len,
                                                             millstream_error **error) {
    const char *at = millstream_skip_space(in->at, in->end), *after = millstream_token_end(at, in->end);
    if (after == in->end)
        return millstream_input_call_word(in, word, len, error);
    *word = at;
    *len = (size_t)(after - at);
    in->at = after;
    return MILLSTREAM_OK;
}

/*
 * Returns the rest of the line, without leading blanks and tabs and without its line end, valid until the next call.
 * Directly after a number or a word it is the rest of its line, even if the input ends without a line end. NULL at the
 * end.
 */
MILLSTREAM_INLINE millstream_code millstream_input_rest_of_line(millstream_input *in, const char **line, size_t *len,
                                                                millstream_error **error) {
    size_t there = (size_t)(in->end - in->at);
    const char *at = in->at, *end = there == 0 ? NULL : (const char *)memchr(at, '\n', there);
    if (end == NULL)
        return millstream_input_call_line(in, line, len, error);
    in->at = end + 1;
    while (*at == ' ' || *at == '\t')
        at++;
    if (end > at && end[-1] == '\r')
        end--;
    *line = at;
    *len = (size_t)(end - at);
    return MILLSTREAM_OK;
}

/* ---- output ---- */

/*
 * Writes the shortest text that reads back as the same number at `to` and returns the end of its text; there is no '\0'
 * after it. MILLSTREAM_FLOAT_SIZE bytes must be writable at `to`. Whole numbers are written by millstream_put_i64() and
 * similar functions, which are in numbers.h.
 */
MILLSTREAM_INLINE char *millstream_put_f64(char *to, double value) {
    size_t len = 0;
    (void)millstream_format_f64(value, to, MILLSTREAM_FLOAT_SIZE, &len, NULL); /* fails only if `to` is NULL */
    return to + len;
}

/* Writes a number as millstream_put_f64() does; a float is read back as the same float. */
MILLSTREAM_INLINE char *millstream_put_f32(char *to, float value) {
    size_t len = 0;
    (void)millstream_format_f32(value, to, MILLSTREAM_FLOAT_SIZE, &len, NULL);
    return to + len;
}

/*
 * Writes records of numbers and text to a writer.
 *
 *     millstream_output out;
 *     code = millstream_output_begin(&out, writer, &error);
 *     for (i = 0; code == MILLSTREAM_OK && i < count; i++) {
 *         code = millstream_output_reserve(&out, 7 + MILLSTREAM_NUMBER_SLACK + 1, &error);
 *         if (code == MILLSTREAM_OK) {
 *             memcpy(out.at, "Hello, ", 7);
 *             out.at = millstream_put_u64(out.at + 7, i);
 *             *out.at++ = '\t';
 *             code = millstream_output_commit(&out, &error);
 *         }
 *     }
 *     if (code == MILLSTREAM_OK)
 *         code = millstream_output_end(&out, &error);
 *
 * This does one check per record. Functions with one check per part are shorter to write:
 * millstream_output_put_text(&out, "Hello, ", &error), millstream_output_put_u64(&out, i, &error) and so on, each of
 * which returns a code.
 *
 * A record consists of the bytes that are put between two commits. It is accepted as a whole or not at all: an error
 * discards the record in progress, which has to be put again from its first byte.
 */
typedef struct {
    millstream_writer *writer;
    /*
     * The window; NULL if none is open. It has whole records up to `record`, then up to `at` the beginning of
     * the next one, then free space.
     */
    char *start, *record, *at, *end;
    /* Whole records may stay in the window until it is full. */
    bool collects;
} millstream_output;

/* Opens the next window, with the begun part of the record, and at least `least` bytes of space. */
MILLSTREAM_COLD millstream_code millstream_output_next(millstream_output *out, size_t least, millstream_error **error) {
    size_t used = (size_t)(out->record - out->start), kept = (size_t)(out->at - out->record);
    millstream_code code =
        millstream_writer_window(out->writer, used, kept, least, &out->at, &out->end, &out->collects, error);
    out->start = out->record = code == MILLSTREAM_OK ? out->at - kept : NULL;
    return code;
}

/* Starts writing after the bytes that `writer` has accepted. */
MILLSTREAM_INLINE millstream_code millstream_output_begin(millstream_output *out, millstream_writer *writer,
                                                          millstream_error **error) {
    out->writer = writer;
    out->start = out->record = out->at = out->end = NULL;
    return millstream_output_next(out, 1, error);
}

/* Makes sure that there are at least `least` bytes of space at `out->at`. */
MILLSTREAM_INLINE millstream_code millstream_output_reserve(millstream_output *out, size_t least,
                                                            millstream_error **error) {
    return MILLSTREAM_LIKELY((size_t)(out->end - out->at) >= least) ? (millstream_code)MILLSTREAM_OK
                                                                    : millstream_output_next(out, least, error);
}

/* Ends the writing: accepts all bytes that were put, committed or not, and the writer accepts all calls again. */
MILLSTREAM_INLINE millstream_code millstream_output_end(millstream_output *out, millstream_error **error) {
    millstream_code code = MILLSTREAM_OK;
    if (out->start != NULL)
        code = millstream_writer_end_window(out->writer, (size_t)(out->at - out->start), error);
    out->start = out->record = out->at = out->end = NULL;
    return code;
}

/*
 * Completes a record, which the writer accepts. With a writer that flushes at line ends (as to a terminal) or after a
 * delay, it is passed on immediately, and an error means that it was not accepted. If the sink fails after part of
 * it, the record is accepted, and the next call reports the error.
 */
MILLSTREAM_INLINE millstream_code millstream_output_commit(millstream_output *out, millstream_error **error) {
    if (MILLSTREAM_LIKELY(out->collects)) {
        out->record = out->at;
        return MILLSTREAM_OK;
    }
    /* The next record opens a window. Opening it here would report its errors as those of this record, which has been
       accepted. */
    return millstream_output_end(out, error);
}

/* Each of the following functions appends to the record. Errors are described above. */

MILLSTREAM_INLINE millstream_code millstream_output_put_bytes(millstream_output *out, const void *bytes, size_t len,
                                                              millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, len, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK && len != 0)) {
        memcpy(out->at, bytes, len);
        out->at += len;
    }
    return code;
}

/* Appends a string that ends with a NUL, which is not written. */
MILLSTREAM_INLINE millstream_code millstream_output_put_text(millstream_output *out, const char *text,
                                                             millstream_error **error) {
    return millstream_output_put_bytes(out, text, strlen(text), error);
}

MILLSTREAM_INLINE millstream_code millstream_output_put_char(millstream_output *out, char byte,
                                                             millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, 1, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        *out->at++ = byte;
    return code;
}

/* Appends `true` or `false`. */
MILLSTREAM_INLINE millstream_code millstream_output_put_bool(millstream_output *out, bool value,
                                                             millstream_error **error) {
    return millstream_output_put_text(out, value ? "true" : "false", error);
}

MILLSTREAM_INLINE millstream_code millstream_output_put_u32(millstream_output *out, uint32_t value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_u32(out->at, value);
    return code;
}

MILLSTREAM_INLINE millstream_code millstream_output_put_u64(millstream_output *out, uint64_t value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_u64(out->at, value);
    return code;
}

MILLSTREAM_INLINE millstream_code millstream_output_put_i32(millstream_output *out, int32_t value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_i32(out->at, value);
    return code;
}

MILLSTREAM_INLINE millstream_code millstream_output_put_i64(millstream_output *out, int64_t value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_i64(out->at, value);
    return code;
}

/* Appends hexadecimal digits in lower case, without a prefix. */
MILLSTREAM_INLINE millstream_code millstream_output_put_hex_u64(millstream_output *out, uint64_t value,
                                                                millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_hex_u64(out->at, value);
    return code;
}

/* Appends a number right-aligned in `width` bytes, padded with `fill`. */
MILLSTREAM_INLINE millstream_code millstream_output_put_u64_padded(millstream_output *out, uint64_t value,
                                                                   uint16_t width, char fill,
                                                                   millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, (size_t)width + MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_u64_padded(out->at, value, width, fill);
    return code;
}

/* As above, for signed numbers; the sign is one of the `width` bytes. Zeros follow it, any other fill precedes it. */
MILLSTREAM_INLINE millstream_code millstream_output_put_i64_padded(millstream_output *out, int64_t value,
                                                                   uint16_t width, char fill,
                                                                   millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, (size_t)width + MILLSTREAM_NUMBER_SLACK, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_i64_padded(out->at, value, width, fill);
    return code;
}

/* Appends the shortest text that reads back as the same number. */
MILLSTREAM_INLINE millstream_code millstream_output_put_f32(millstream_output *out, float value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_FLOAT_SIZE, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_f32(out->at, value);
    return code;
}

MILLSTREAM_INLINE millstream_code millstream_output_put_f64(millstream_output *out, double value,
                                                            millstream_error **error) {
    millstream_code code = millstream_output_reserve(out, MILLSTREAM_FLOAT_SIZE, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK))
        out->at = millstream_put_f64(out->at, value);
    return code;
}

/* Appends a number with this many digits after the decimal point, as "%.*f" does. */
MILLSTREAM_INLINE millstream_code millstream_output_put_f64_fixed(millstream_output *out, double value, uint16_t digits,
                                                                  millstream_error **error) {
    size_t len = 0;
    millstream_code code = millstream_output_reserve(out, (size_t)digits + MILLSTREAM_FIXED_SIZE, error);
    if (MILLSTREAM_LIKELY(code == MILLSTREAM_OK)) {
        code = millstream_format_f64_fixed(value, digits, out->at, (size_t)(out->end - out->at), &len, error);
        out->at += len;
    }
    return code;
}

#endif /* MILLSTREAM_WINDOW_H */
