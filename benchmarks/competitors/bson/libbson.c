// BSON in C: libbson.
//
// Usage: libbson WORK FILE [GETS] [--once]
//        libbson --version
//
// The tasks and answers equal those in benchmarks/runners/src/bin/bson, with three more: `walk` visits every member
// on every level and checks the UTF-8 of its key and text; `validate` is libbson's own function for that; `sum` maps
// the weights and adds them all up, with the positions of the arrays determined before the clock starts. The first pass
// is not timed; the median of the others is reported.
#define _POSIX_C_SOURCE 200809L
#include <bson/bson.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "libbson: %s\n", what);
        exit(1);
    }
}

struct input {
    const char *path;
    const uint8_t *bytes;
    size_t len;
    long gets;
};

// The sums of all tasks; each task prints its own.
struct sums {
    uint64_t count, values, ids, text, tags, active, created, bytes, value, floats;
    double scores, sum;
};

typedef void pass(struct input *input, struct sums *sums);

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int by_length(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void map(struct input *input) {
    int file = open(input->path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    require(file >= 0 && fstat(file, &about) == 0, "the file cannot be opened");
    input->len = (size_t)about.st_size;
    void *bytes = mmap(NULL, input->len, PROT_READ, MAP_PRIVATE, file, 0);
    require(bytes != MAP_FAILED, "the file cannot be mapped");
    input->bytes = bytes;
    close(file);
}

static void load(struct input *input) {
    FILE *file = fopen(input->path, "rb");
    struct stat about;
    require(file != NULL && fstat(fileno(file), &about) == 0, "the file cannot be opened");
    input->len = (size_t)about.st_size;
    uint8_t *bytes = malloc(input->len);
    require(bytes != NULL && fread(bytes, 1, input->len, file) == input->len, "the file cannot be read");
    input->bytes = bytes;
    fclose(file);
}

// Takes the first document of the remaining input.
static bool next_document(struct input *left, bson_t *document) {
    if (left->len == 0)
        return false;
    uint32_t len;
    memcpy(&len, left->bytes, sizeof len);
    len = BSON_UINT32_FROM_LE(len);
    require(len <= left->len && bson_init_static(document, left->bytes, len), "no document");
    left->bytes += len;
    left->len -= len;
    return true;
}

// ---- Every member, with the UTF-8 of keys and text.

static void walk_members(bson_iter_t *members, struct sums *sums) {
    while (bson_iter_next(members)) {
        require(bson_utf8_validate(bson_iter_key(members), bson_iter_key_len(members), false), "a key is not UTF-8");
        sums->values++;
        switch (bson_iter_type(members)) {
        case BSON_TYPE_UTF8: {
            uint32_t len;
            const char *text = bson_iter_utf8(members, &len);
            require(bson_utf8_validate(text, len, true), "text is not UTF-8");
            sums->text += len;
            break;
        }
        case BSON_TYPE_DOCUMENT:
        case BSON_TYPE_ARRAY: {
            bson_iter_t inner;
            require(bson_iter_recurse(members, &inner), "no inner document");
            walk_members(&inner, sums);
            break;
        }
        default:
            break;
        }
    }
    require(members->err_off == 0, "a document is broken");
}

static void walk(struct input *input, struct sums *sums) {
    struct input left = *input;
    bson_t document;
    while (next_document(&left, &document)) {
        bson_iter_t members;
        require(bson_iter_init(&members, &document), "no document");
        sums->count++;
        walk_members(&members, sums);
    }
}

static void validate(struct input *input, struct sums *sums) {
    struct input left = *input;
    bson_t document;
    size_t at;
    while (next_document(&left, &document)) {
        bson_validate_flags_t flags = BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL;
        require(bson_validate(&document, flags, &at), "a document is broken");
        sums->count++;
    }
}

// ---- Small typed records.

enum { MOST_TAGS = 4 };

struct record {
    int64_t id, created;
    double score;
    const char *name, *tags[MOST_TAGS];
    uint32_t name_len, tag_lens[MOST_TAGS], tag_count;
    bool active;
};

static const char *text(const bson_iter_t *member, uint32_t *len) {
    const char *text = bson_iter_utf8(member, len);
    require(text != NULL && bson_utf8_validate(text, *len, true), "no text");
    return text;
}

static void decode_record(const bson_t *document, struct record *record) {
    bson_iter_t members, tags;
    require(bson_iter_init(&members, document), "no document");
    record->tag_count = 0;
    while (bson_iter_next(&members)) {
        const char *key = bson_iter_key(&members);
        if (strcmp(key, "id") == 0) {
            record->id = bson_iter_int64(&members);
        } else if (strcmp(key, "name") == 0) {
            record->name = text(&members, &record->name_len);
        } else if (strcmp(key, "score") == 0) {
            record->score = bson_iter_double(&members);
        } else if (strcmp(key, "tags") == 0) {
            require(bson_iter_recurse(&members, &tags), "no array");
            while (bson_iter_next(&tags)) {
                require(record->tag_count < MOST_TAGS, "too many tags");
                record->tags[record->tag_count] = text(&tags, &record->tag_lens[record->tag_count]);
                record->tag_count++;
            }
        } else if (strcmp(key, "active") == 0) {
            record->active = bson_iter_bool(&members);
        } else if (strcmp(key, "created") == 0) {
            record->created = bson_iter_date_time(&members);
        }
    }
    require(members.err_off == 0, "a document is broken");
}

static void records(struct input *input, struct sums *sums) {
    struct input left = *input;
    bson_t document;
    struct record record = {0};
    while (next_document(&left, &document)) {
        decode_record(&document, &record);
        sums->count++;
        sums->ids += (uint64_t)record.id;
        sums->text += record.name_len;
        sums->scores += record.score;
        sums->tags += record.tag_count;
        for (uint32_t i = 0; i < record.tag_count; i++)
            sums->text += record.tag_lens[i];
        sums->active += record.active;
        sums->created += (uint64_t)record.created;
    }
}

// ---- The same records, encoded.

static void encode(struct input *input, struct sums *sums) {
    static struct record *decoded;
    static uint8_t *out;
    static size_t capacity;
    if (decoded == NULL) {
        struct input left = *input;
        bson_t document;
        size_t count = 0;
        while (next_document(&left, &document))
            count++;
        decoded = calloc(count + 1, sizeof *decoded);
        capacity = 2 * input->len + 64;
        out = malloc(capacity);
        require(decoded != NULL && out != NULL, "no memory");
        left = *input;
        for (size_t i = 0; next_document(&left, &document); i++)
            decode_record(&document, &decoded[i]);
    }
    // Appends each document to one buffer.
    size_t used = 0;
    bson_writer_t *writer = bson_writer_new(&out, &capacity, 0, bson_realloc_ctx, NULL);
    for (struct record *record = decoded; record->name != NULL; record++) {
        bson_t *document, tags;
        require(bson_writer_begin(writer, &document), "no room");
        bool good = bson_append_int64(document, "id", 2, record->id) &&
                    bson_append_utf8(document, "name", 4, record->name, (int)record->name_len) &&
                    bson_append_double(document, "score", 5, record->score) &&
                    bson_append_array_begin(document, "tags", 4, &tags);
        for (uint32_t i = 0; i < record->tag_count; i++) {
            const char *key;
            char buffer[16];
            size_t len = bson_uint32_to_string(i, &key, buffer, sizeof buffer);
            good = good && bson_append_utf8(&tags, key, (int)len, record->tags[i], (int)record->tag_lens[i]);
        }
        good = good && bson_append_array_end(document, &tags) &&
               bson_append_bool(document, "active", 6, record->active) &&
               bson_append_date_time(document, "created", 7, record->created);
        require(good, "no room");
        bson_writer_end(writer);
        sums->count++;
    }
    used = bson_writer_get_length(writer);
    bson_writer_destroy(writer);
    sums->bytes = used;
    static bool compared;
    require(compared || (used == input->len && memcmp(out, input->bytes, used) == 0), "not what was decoded");
    compared = true;
}

// ---- One member of many.

static void wide(struct input *input, struct sums *sums) {
    for (long i = 0; i < input->gets; i++) {
        bson_t document;
        bson_iter_t member;
        struct input left = *input;
        require(next_document(&left, &document) && bson_iter_init_find(&member, &document, "field_0988"), "no field");
        sums->value = (uint64_t)bson_iter_int32(&member);
    }
}

// ---- Every float of a model.

enum { MOST_ARRAYS = 64, PARTS = 8 };

static struct {
    size_t at;
    uint32_t len;
} arrays[MOST_ARRAYS];
static size_t array_count;

static void find_arrays(struct input *input) {
    bson_t document;
    bson_iter_t root, list, array;
    struct input left = *input;
    require(next_document(&left, &document) && bson_iter_init_find(&root, &document, "weights"), "no weights");
    require(bson_iter_recurse(&root, &list), "no array");
    while (bson_iter_next(&list)) {
        const uint8_t *data;
        require(array_count < MOST_ARRAYS, "too many arrays");
        require(bson_iter_recurse(&list, &array) && bson_iter_find(&array, "data"), "no data");
        bson_iter_binary(&array, NULL, &arrays[array_count].len, &data);
        arrays[array_count++].at = (size_t)(data - input->bytes);
    }
}

static double sum_of(const uint8_t *bytes, uint32_t count) {
    double parts[PARTS] = {0};
    uint32_t at = 0;
    for (; at + PARTS <= count; at += PARTS) {
        float block[PARTS];
        memcpy(block, bytes + 4 * (size_t)at, sizeof block);
        for (int i = 0; i < PARTS; i++)
            parts[i] += (double)block[i];
    }
    double sum = 0;
    for (; at < count; at++) {
        float one;
        memcpy(&one, bytes + 4 * (size_t)at, sizeof one);
        sum += (double)one;
    }
    for (int i = 0; i < PARTS; i++)
        sum += parts[i];
    return sum;
}

static void sum(struct input *input, struct sums *sums) {
    map(input);
    if (array_count == 0)
        find_arrays(input);
    for (size_t i = 0; i < array_count; i++) {
        sums->count++;
        sums->floats += arrays[i].len / 4;
        sums->sum += sum_of(input->bytes + arrays[i].at, arrays[i].len / 4);
    }
    munmap((void *)(uintptr_t)input->bytes, input->len);
}

static void print_number(const char *key, uint64_t value) {
    if (value > 0)
        printf("%s=%" PRIu64 " ", key, value);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        pass *pass;
    } works[] = {{"walk", walk},     {"validate", validate}, {"records", records},
                 {"encode", encode}, {"wide", wide},         {"sum", sum}};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("libbson %s\n", bson_get_version());
        return 0;
    }
    require(argc >= 3, "WORK FILE [GETS] [--once]");
    bool once = strcmp(argv[argc - 1], "--once") == 0;
    struct input input = {.path = argv[2], .gets = argc > 3 ? atol(argv[3]) : 0};
    pass *work = NULL;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(argv[1], works[i].name) == 0)
            work = works[i].pass;
    }
    require(work != NULL, "no such work");
    if (work != sum)
        load(&input);

    struct sums sums = {0};
    work(&input, &sums);
    uint64_t times[15], all = 0;
    size_t passes = 0;
    while (!once && (passes < 3 || (passes < 15 && all < 400000000))) {
        struct sums again = {0};
        uint64_t start = now();
        work(&input, &again);
        times[passes] = now() - start;
        all += times[passes++];
        require(memcmp(&again, &sums, sizeof sums) == 0, "another answer");
    }
    print_number("count", sums.count);
    print_number("values", sums.values);
    print_number("ids", sums.ids);
    print_number("text", sums.text);
    print_number("scores", (uint64_t)(sums.scores * 64));
    print_number("tags", sums.tags);
    print_number("active", sums.active);
    print_number("created", sums.created);
    print_number("bytes", sums.bytes);
    print_number("value", sums.value);
    print_number("floats", sums.floats);
    if (sums.floats > 0)
        print_number("sum", (uint64_t)(sums.sum * 256));
    if (passes > 0) {
        qsort(times, passes, sizeof *times, by_length);
        print_number("ns", times[passes / 2]);
    }
    printf("\n");
    return 0;
}
