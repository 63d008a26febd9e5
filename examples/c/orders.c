/* Sums the totals of orders from documents written by mongodump:
 *
 *     orders orders.bson
 *
 * Each document has a number "total" of any numeric type; a total that is a string is an error and ends the program.
 * The documents are taken from the library many at a time, without copies.
 */
#include <millstream.h>

#include <stdio.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_reader *reader = NULL;
    millstream_bson_documents *documents = NULL;
    const millstream_bson_document *batch;
    size_t count, i, all = 0;
    double sum = 0;

    millstream_code code = millstream_reader_path(argc > 1 ? argv[1] : "orders.bson", NULL, &reader, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
                                             MILLSTREAM_BSON_CHECKING_ON_ACCESS, &documents, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_bson_documents_next(documents, &batch, &count, &error);
        if (count == 0)
            break; /* the end, or an error */
        for (i = 0; i < count && code == MILLSTREAM_OK; i++) {
            millstream_bson_value total;
            double number = 0;
            code = millstream_bson_find(&batch[i], "total", &total, NULL, &error);
            if (code == MILLSTREAM_OK)
                code = millstream_bson_as_f64(&batch[i], &total, &number, &error);
            sum += number;
        }
        all += count;
    }
    if (code == MILLSTREAM_OK)
        printf("%zu orders, %.2f in all\n", all, sum);
    else
        fprintf(stderr, "orders: %s\n", millstream_error_message(error));

    millstream_bson_documents_free(documents); /* also frees the reader */
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
