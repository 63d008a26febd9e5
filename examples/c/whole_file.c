/* Writes a file that appears only when it is complete:
 *
 *     whole_file out.txt 1000000
 *
 * If the disk is full, the error says so, and there is no incomplete file.
 */
#include <millstream.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_writer *writer = NULL;
    millstream_code code;
    long count, i;

    if (argc != 3) {
        fprintf(stderr, "usage: whole_file FILE LINES\n");
        return 2;
    }
    count = strtol(argv[2], NULL, 10);
    code = millstream_writer_path(argv[1], NULL, &writer, &error);
    for (i = 0; i < count && code == MILLSTREAM_OK; i++)
        code = millstream_writer_write(writer, "one line\n", 9, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_writer_close(writer, &error); /* now the file has its name */
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "whole_file: %s\n", millstream_error_message(error));

    millstream_writer_free(writer); /* removes what was written, unless the writer was closed */
    code = millstream_error_errno(error) == ENOSPC ? 3 : code == MILLSTREAM_OK ? 0 : 1;
    millstream_error_free(error);
    return (int)code;
}
