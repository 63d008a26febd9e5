/* Prints two columns of a CSV file, by their names in the header, which is the first record:
 *
 *     people people.csv
 */
#include <millstream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The position of a name in the header, which is the first of these rows. */
static size_t position(const millstream_rows *rows, const char *name) {
    size_t at;
    for (at = 0; at < rows->starts[1]; at++)
        if (rows->fields[at].len == strlen(name) && memcmp(rows->fields[at].bytes, name, strlen(name)) == 0)
            return at;
    fprintf(stderr, "people: the header has no field %s\n", name);
    exit(1);
}

static void print(const millstream_field *field, const char *after) {
    fwrite(field->bytes, 1, field->len, stdout);
    fputs(after, stdout);
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_framer *csv = NULL;
    millstream_reader *reader = NULL;
    millstream_batch batch;
    millstream_rows rows;
    size_t width = 0, name = 0, age = 0, i;

    millstream_code code = millstream_framer_csv(NULL, &csv, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_reader_path(argc > 1 ? argv[1] : "people.csv", NULL, &reader, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_reader_next_batch(reader, csv, SIZE_MAX, &batch, &error);
        if (batch.count == 0)
            break; /* the end, or an error */
        code = millstream_framer_rows(csv, &batch, &rows, &error);
        for (i = 0; i < rows.count; i++) {
            const millstream_field *fields = &rows.fields[rows.starts[i]];
            if (width == 0) { /* the header */
                width = rows.starts[1];
                name = position(&rows, "name");
                age = position(&rows, "age");
                continue;
            }
            code = millstream_reader_check_fields(reader, rows.records[i], rows.starts[i + 1] - rows.starts[i], width,
                                                  MILLSTREAM_CSV_RAGGED_ERROR, &error);
            if (code != MILLSTREAM_OK)
                break;
            print(&fields[name], " is ");
            print(&fields[age], "\n");
        }
    }
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "people: %s\n", millstream_error_message(error));

    millstream_reader_free(reader);
    millstream_framer_free(csv);
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
