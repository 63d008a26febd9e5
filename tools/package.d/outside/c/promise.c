/* Checks what Millstream promises, with the installed library alone. The working directory contains `lines.txt.gz` and
 * `one.bson`; exits with status 0 if everything is as promised. */
#include <millstream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static millstream_error *error;

static void must(int fine, const char *what) {
    if (fine)
        return;
    fprintf(stderr, "promise: %s: %s\n", what, error ? millstream_error_message(error) : "no error");
    exit(1);
}

int main(int argc, char **argv) {
    const char *const argument[] = {"sh", "-c", "echo one; exit 3"};
    millstream_command *command = NULL;
    millstream_reader *reader = NULL;
    millstream_writer *writer = NULL;
    millstream_bson_documents *documents = NULL;
    const millstream_bson_document *document;
    millstream_bson_value value;
    const char *line;
    size_t len, count;
    double number = 0;

    must(argc == 2 && strcmp(millstream_version(), argv[1]) == 0, "the version is another one");

    /* All that the command wrote, then the error. */
    must(millstream_command_new(argument, 3, &command, &error) == MILLSTREAM_OK, "command");
    must(millstream_reader_command(command, NULL, &reader, &error) == MILLSTREAM_OK, "command");
    must(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK, "the first line");
    must(len == 3 && memcmp(line, "one", 3) == 0, "the first line");
    must(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_COMMAND_FAILED, "the failure");
    millstream_error_free(error);
    error = NULL;
    millstream_reader_free(reader);
    millstream_command_free(command);

    /* A file has its name when it is closed, not before. */
    must(millstream_writer_path("out.txt", NULL, &writer, &error) == MILLSTREAM_OK, "out.txt");
    must(millstream_writer_write(writer, "whole\n", 6, &error) == MILLSTREAM_OK, "out.txt");
    must(fopen("out.txt", "r") == NULL, "out.txt is there too early");
    must(millstream_writer_close(writer, &error) == MILLSTREAM_OK, "out.txt");
    millstream_writer_free(writer);
    must(millstream_reader_path("out.txt", NULL, &reader, &error) == MILLSTREAM_OK, "out.txt");
    must(millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK && len == 5, "out.txt");
    millstream_reader_free(reader);

    must(millstream_reader_path("lines.txt.gz", NULL, &reader, &error) == MILLSTREAM_OK, "lines.txt.gz");
    for (count = 0; millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK && line != NULL;
         count++) {
    }
    must(error == NULL && count == 1000, "lines.txt.gz");
    millstream_reader_free(reader);

    must(millstream_reader_path("one.bson", NULL, &reader, &error) == MILLSTREAM_OK, "one.bson");
    must(millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP, MILLSTREAM_BSON_CHECKING_ON_ACCESS,
                                       &documents, &error) == MILLSTREAM_OK,
         "one.bson");
    must(millstream_bson_documents_next(documents, &document, &count, &error) == MILLSTREAM_OK && count == 1,
         "one.bson");
    must(millstream_bson_find(document, "total", &value, NULL, &error) == MILLSTREAM_OK, "one.bson");
    must(millstream_bson_as_f64(document, &value, &number, &error) == MILLSTREAM_OK && number == 7, "one.bson");
    millstream_bson_documents_free(documents);
    puts("all as promised");
    return 0;
}
