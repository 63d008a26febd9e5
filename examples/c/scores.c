/* Sums the array "scores" of each document of a file of BSON:
 *
 *     scores players.bson
 *
 * The elements are taken from the library many at a time, without copies. Those that are not numbers are errors with
 * their path, such as scores.1.
 */
#include <millstream.h>

#include <stdio.h>

static millstream_code sum_of(const millstream_bson_document *player, double *sum, millstream_error **error) {
    millstream_bson_value value;
    millstream_bson_document scores;
    millstream_bson_element elements[64];
    size_t at = 0, count, i;
    bool found;
    millstream_code code = millstream_bson_find(player, "scores", &value, &found, error);
    if (code != MILLSTREAM_OK || !found)
        return code; /* no scores */
    code = millstream_bson_enter(player, &value, &scores, error);
    while (code == MILLSTREAM_OK) {
        code = millstream_bson_members(&scores, &at, elements, 64, &count, error);
        if (code != MILLSTREAM_OK || count == 0)
            break;
        for (i = 0; i < count && code == MILLSTREAM_OK; i++) {
            double score = 0;
            code = millstream_bson_as_f64(&scores, &elements[i].value, &score, error);
            *sum += score;
        }
    }
    return code;
}

int main(int argc, char **argv) {
    millstream_error *error = NULL;
    millstream_reader *reader = NULL;
    millstream_bson_documents *documents = NULL;
    const millstream_bson_document *players;
    size_t count, i;

    millstream_code code = millstream_reader_path(argc > 1 ? argv[1] : "players.bson", NULL, &reader, &error);
    if (code == MILLSTREAM_OK)
        code = millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
                                             MILLSTREAM_BSON_CHECKING_ON_ACCESS, &documents, &error);
    while (code == MILLSTREAM_OK) {
        code = millstream_bson_documents_next(documents, &players, &count, &error);
        if (count == 0)
            break; /* the end, or an error */
        for (i = 0; i < count && code == MILLSTREAM_OK; i++) {
            double sum = 0;
            code = sum_of(&players[i], &sum, &error);
            if (code == MILLSTREAM_OK)
                printf("%g\n", sum);
        }
    }
    if (code != MILLSTREAM_OK)
        fprintf(stderr, "scores: %s\n", millstream_error_message(error));

    millstream_bson_documents_free(documents); /* also frees the reader */
    millstream_error_free(error);
    return code == MILLSTREAM_OK ? 0 : 1;
}
