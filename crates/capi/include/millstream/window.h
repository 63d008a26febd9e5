/*
 * millstream/window.h: what C programs do per record, inlined: the records of a batch.
 *
 * Part of millstream.h, which includes it.
 */
#ifndef MILLSTREAM_WINDOW_H
#define MILLSTREAM_WINDOW_H

#include "../millstream.h"

/*
 * The content of record `i` of a batch, which has more than `i` of them: delimiter or length are cut off as the
 * framer has said. It is a piece of the batch's memory.
 */
static inline void millstream_batch_record(const millstream_batch *batch, size_t i, const char **record, size_t *len) {
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

#endif /* MILLSTREAM_WINDOW_H */
