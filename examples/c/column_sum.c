/* Sums the third column of a table with a header, which may be compressed:
 *
 *     column_sum prices.csv.gz
 */
#include <millstream.h>

#include <stdio.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_reader *reader = NULL;
    const char *header;
    size_t len;
    double sum = 0;

    millstream_code code = millstream_reader_path(argc > 1 ? argv[1] : "prices.csv", NULL, &reader, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_next_line(reader, &header, &len, &error);
    while (code == MILLSTREAM_OK) {
        double price;
        bool end;
        code = millstream_reader_next_column_f64(reader, 2, ',', &price, &end, &error);
        if (code != MILLSTREAM_OK || end)
            break;
        sum += price;
    }
    if (code == MILLSTREAM_OK)
        printf("%.2f\n", sum);
    else
        fprintf(stderr, "column_sum: %s\n", millstream_error_message(error));

    millstream_reader_free(reader);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
