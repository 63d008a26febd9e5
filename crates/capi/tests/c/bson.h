/* The part of all.c that is about BSON. */

/* {"a": {"b": [1, 2]}, "c": null, "d": 3} */
static const char nested[] = "\x2d\0\0\0\x03"
                             "a\0\x1b\0\0\0\x04"
                             "b\0\x13\0\0\0\x10"
                             "0\0\1\0\0\0\x10"
                             "1\0\2\0\0\0\0\0\x0a"
                             "c\0\x10"
                             "d\0\3\0\0\0";
enum { nested_len = 0x2d };

static millstream_bson_document borrowed(const char *bytes, size_t len) {
    millstream_bson_document document;
    MUST(millstream_bson_borrow(bytes, len, NULL, &document, &error));
    return document;
}

static millstream_bson_value found(const millstream_bson_document *document, const char *path) {
    millstream_bson_value value;
    MUST(millstream_bson_find(document, path, &value, NULL, &error));
    return value;
}

/* The last call has failed with this code, at this path and offset. */
static void failed_at(millstream_code code, const char *path, uint64_t offset) {
    uint64_t at = 0;
    CHECK(millstream_error_code(error) == code && millstream_error_path(error) != NULL);
    CHECK(strcmp(millstream_error_path(error), path) == 0);
    CHECK(millstream_error_offset(error, &at) && at == offset);
    millstream_error_free(error);
    error = NULL;
}

static void bson_documents(void) {
    const char *const path[] = {"a", "b", "1"};
    millstream_bson_document document, inner, array, none;
    millstream_bson_value value, other;
    millstream_bson_rules rules;
    bool there = true;

    document = borrowed(nested, nested_len);
    CHECK(document.bytes == nested && document.len == nested_len && document.offset == 0 && document.root == nested);
    MUST(millstream_bson_check(&document, &error));

    /* By name, by a path, by keys. */
    MUST(millstream_bson_member(&document, "dx", 1, &value, &there, &error));
    CHECK(there && value.type == MILLSTREAM_BSON_TYPE_INT32 && value.integer == 3 && value.payload_len == 4);
    CHECK(value.payload == nested + 40 && value.bytes == NULL && value.len == 0);
    MUST(millstream_bson_member(&document, "x", 1, &value, &there, &error));
    CHECK(!there && value.type == MILLSTREAM_BSON_TYPE_NOTHING);
    MUST(millstream_bson_find(&document, "a.b.1", &value, &there, &error));
    CHECK(there && value.integer == 2);
    MUST(millstream_bson_find(&document, "a.b.2", &value, &there, &error));
    CHECK(!there);
    MUST(millstream_bson_find(&document, "d.b", &value, &there, &error));
    CHECK(!there);
    CHECK(millstream_bson_find(&document, "a.b.2", &value, NULL, &error) == MILLSTREAM_KEY_MISSING);
    CHECK(value.type == MILLSTREAM_BSON_TYPE_NOTHING);
    failed_at(MILLSTREAM_KEY_MISSING, "a.b.2", 0);
    MUST(millstream_bson_find_keys(&document, path, 3, &value, NULL, &error));
    CHECK(value.integer == 2);
    MUST(millstream_bson_find_keys(&document, path, 2, &value, NULL, &error));
    CHECK(value.type == MILLSTREAM_BSON_TYPE_ARRAY && value.len == 0x13 && value.bytes == nested + 14);

    /* Inside: offsets and paths are the outermost document's. */
    value = found(&document, "a");
    MUST(millstream_bson_enter(&document, &value, &inner, &error));
    CHECK(inner.bytes == nested + 7 && inner.offset == 7 && inner.root == nested && inner.depth_left == 199);
    value = found(&inner, "b");
    MUST(millstream_bson_enter(&inner, &value, &array, &error));
    CHECK(array.offset == 14 && array.depth_left == 198);
    CHECK(millstream_bson_find(&array, "7", &value, NULL, &error) == MILLSTREAM_KEY_MISSING);
    failed_at(MILLSTREAM_KEY_MISSING, "a.b.7", 14);
    CHECK(inner.type == MILLSTREAM_BSON_TYPE_DOCUMENT && array.type == MILLSTREAM_BSON_TYPE_ARRAY);
    MUST(millstream_bson_element_at(&array, 1, &value, NULL, &error));
    CHECK(value.integer == 2);
    MUST(millstream_bson_element_at(&array, 2, &value, &there, &error));
    CHECK(!there && value.type == MILLSTREAM_BSON_TYPE_NOTHING);
    CHECK(millstream_bson_element_at(&array, 2, &value, NULL, &error) == MILLSTREAM_KEY_MISSING);
    failed_at(MILLSTREAM_KEY_MISSING, "a.b.2", 14);
    MUST(millstream_bson_element_at(&document, 2, &value, &there, &error));
    CHECK(there && value.integer == 3);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_element_at(NULL, 0, &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_element_at(&array, 0, NULL, &there, &error));
    value = found(&array, "1");
    CHECK(millstream_bson_enter(&array, &value, &none, &error) == MILLSTREAM_SHAPE_MISMATCH && none.bytes == NULL);
    failed_at(MILLSTREAM_SHAPE_MISMATCH, "a.b.1", 28);

    /* What stands after a document. */
    FAILS(MILLSTREAM_DOCUMENT_INVALID, millstream_bson_borrow(nested, nested_len + 1, NULL, &document, &error));
    CHECK(document.bytes == NULL);
    memset(&rules, 0, sizeof rules);
    rules.strictness = MILLSTREAM_BSON_STRICTNESS_LENIENT;
    MUST(millstream_bson_borrow(nested, nested_len + 1, &rules, &document, &error));
    CHECK(document.len == nested_len && document.rules.strictness == MILLSTREAM_BSON_STRICTNESS_LENIENT);
    MUST(millstream_bson_borrow_first(nested, nested_len + 1, NULL, &document, &error));
    CHECK(document.len == nested_len);
    FAILS(MILLSTREAM_DOCUMENT_TRUNCATED, millstream_bson_borrow(nested, nested_len - 1, NULL, &document, &error));
    FAILS(MILLSTREAM_DOCUMENT_TRUNCATED, millstream_bson_borrow_first(NULL, 0, NULL, &document, &error));
    FAILS(MILLSTREAM_DOCUMENT_INVALID, millstream_bson_borrow("\5\0\0\0\1", 5, NULL, &document, &error));

    /* Rules. */
    memset(&rules, 0, sizeof rules);
    rules.depth = 2;
    MUST(millstream_bson_borrow(nested, nested_len, &rules, &document, &error));
    CHECK(millstream_bson_check(&document, &error) == MILLSTREAM_TOO_DEEP);
    failed_at(MILLSTREAM_TOO_DEEP, "a.b", 14);
    rules.depth = 3;
    MUST(millstream_bson_borrow(nested, nested_len, &rules, &document, &error));
    MUST(millstream_bson_check(&document, &error));
    rules.strictness = (millstream_bson_strictness)3;
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_borrow(nested, nested_len, &rules, &document, &error));
    rules.strictness = MILLSTREAM_BSON_STRICTNESS_STRICT;
    rules.utf8 = (millstream_bson_utf8)2;
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_borrow(nested, nested_len, &rules, &document, &error));

    /* What cannot be. */
    document = borrowed(nested, nested_len);
    memset(&none, 0, sizeof none);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_borrow(NULL, 5, NULL, &inner, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_borrow(nested, nested_len, NULL, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_check(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_check(&none, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_find(&document, "", &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_find(&document, NULL, &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_find(&document, "a", NULL, &there, &error));
    FAILS(MILLSTREAM_TEXT_INVALID, millstream_bson_find(&document, "\"a", &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_find_keys(&document, NULL, 1, &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_member(&document, "\xff", 1, &value, &there, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_enter(&document, NULL, &inner, &error));
    memset(&other, 0, sizeof other);
    FAILS(MILLSTREAM_KEY_MISSING, millstream_bson_enter(&document, &other, &inner, &error));
    other.type = (millstream_bson_type)0x20;
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_enter(&document, &other, &inner, &error));
    other.type = MILLSTREAM_BSON_TYPE_DOCUMENT;
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_enter(&document, &other, &inner, &error));
}

/* In arrays a path has positions, whatever keys are written there. */
static void bson_positions(void) {
    /* {"a": [1, {"0": 3}]}, but the keys of the array are "1" and "b" */
    static const char odd[] = "\x23\0\0\0\x04"
                              "a\0\x1b\0\0\0\x10"
                              "1\0\1\0\0\0\x03"
                              "b\0\x0c\0\0\0\x10"
                              "0\0\3\0\0\0\0\0";
    const char *const path[] = {"a", "1", "0"};
    millstream_bson_document document, array;
    millstream_bson_value value;
    bool there = true;

    document = borrowed(odd, sizeof odd);
    MUST(millstream_bson_check(&document, &error));
    CHECK(found(&document, "a.0").integer == 1 && found(&document, "a.1.0").integer == 3);
    MUST(millstream_bson_find_keys(&document, path, 3, &value, NULL, &error));
    CHECK(value.integer == 3);
    MUST(millstream_bson_find(&document, "a.b", &value, &there, &error));
    CHECK(!there);
    value = found(&document, "a");
    MUST(millstream_bson_enter(&document, &value, &array, &error));
    CHECK(found(&array, "0").integer == 1 && found(&array, "1.0").integer == 3);
    MUST(millstream_bson_find(&array, "b", &value, &there, &error));
    CHECK(!there);
    MUST(millstream_bson_element_at(&array, 0, &value, NULL, &error));
    CHECK(value.integer == 1);
    MUST(millstream_bson_member(&array, "1", 1, &value, NULL, &error)); /* which is a key */
    CHECK(value.integer == 1);
    array.type = (millstream_bson_type)0x20;
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_find(&array, "0", &value, &there, &error));
}

/* Iterates over the members, several per call, and returns their keys. */
static const char *keys_by(size_t step, const millstream_bson_document *document) {
    static char keys[64];
    millstream_bson_element members[4];
    size_t at = 0, count, i;
    memset(keys, 0, sizeof keys);
    do {
        MUST(millstream_bson_members(document, &at, members, step, &count, &error));
        CHECK(count <= step);
        for (i = 0; i < count; i++) {
            CHECK(members[i].key[members[i].key_len] == '\0');
            strcat(strcat(keys, members[i].key), " ");
        }
    } while (count > 0);
    CHECK(at == document->len);
    return keys;
}

static void bson_members(void) {
    /* {"a": 1, "b": "\xff", "c": 2} */
    static const char bad[] = "\x1c\0\0\0\x10"
                              "a\0\1\0\0\0\2"
                              "b\0\2\0\0\0\xff\0\x10"
                              "c\0\2\0\0\0";
    millstream_bson_document document = borrowed(nested, nested_len);
    millstream_bson_element members[4];
    millstream_bson_rules rules;
    millstream_bson_value value;
    size_t at = 0, count = 7, step;

    for (step = 1; step <= 4; step++)
        CHECK(strcmp(keys_by(step, &document), "a c d ") == 0);
    document = borrowed("\5\0\0\0", 5);
    CHECK(strcmp(keys_by(1, &document), "") == 0);

    /* What is before a bad one comes first. */
    document = borrowed(bad, sizeof bad);
    MUST(millstream_bson_members(&document, &at, members, 4, &count, &error));
    CHECK(count == 1 && members[0].value.integer == 1 && at == 11);
    CHECK(millstream_bson_members(&document, &at, members, 4, &count, &error) == MILLSTREAM_UTF8_INVALID);
    CHECK(count == 0 && at == 11);
    failed_at(MILLSTREAM_UTF8_INVALID, "b", 18);
    CHECK(millstream_bson_find(&document, "b", &value, NULL, &error) == MILLSTREAM_UTF8_INVALID);
    failed_at(MILLSTREAM_UTF8_INVALID, "b", 18);
    CHECK(millstream_bson_check(&document, &error) == MILLSTREAM_UTF8_INVALID);
    failed_at(MILLSTREAM_UTF8_INVALID, "b", 18);
    memset(&rules, 0, sizeof rules);
    rules.utf8 = MILLSTREAM_BSON_UTF8_LOSSY;
    MUST(millstream_bson_borrow(bad, sizeof bad, &rules, &document, &error));
    MUST(millstream_bson_members(&document, &at, members, 4, &count, &error));
    CHECK(count == 2 && is(members[0].value.bytes, members[0].value.len, "\xff"));

    document = borrowed(nested, nested_len);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_members(&document, &at, members, 0, &count, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_members(&document, &at, NULL, 1, &count, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_members(&document, NULL, members, 1, &count, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_members(&document, &at, members, 1, NULL, &error));
    at = SIZE_MAX;
    MUST(millstream_bson_members(&document, &at, members, 1, &count, &error));
    CHECK(count == 0);
}

static const char an_id[] = "123456789ab";
static const char a_decimal[] = "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30";

/* A document with every type; its bytes are the builder's. */
static millstream_bson_document every_type(millstream_bson_builder *builder) {
    millstream_bson_document scope = borrowed("\5\0\0\0", 5);
    millstream_bson_value value;
    const char *bytes;
    size_t len;

    MUST(millstream_bson_builder_append_f64(builder, "double", 1.5, &error));
    MUST(millstream_bson_builder_append_text(builder, "text", "Gr\xc3\xbc\xc3\x9f\0e", 8, &error));
    MUST(millstream_bson_builder_open(builder, "document", 8, MILLSTREAM_BSON_TYPE_DOCUMENT, &error));
    MUST(millstream_bson_builder_append_i32(builder, "int", -7, &error));
    MUST(millstream_bson_builder_close(builder, &error));
    MUST(millstream_bson_builder_open(builder, "array", 5, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    MUST(millstream_bson_builder_append_i64(builder, NULL, 1, &error));
    MUST(millstream_bson_builder_open(builder, NULL, 0, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    MUST(millstream_bson_builder_close(builder, &error));
    MUST(millstream_bson_builder_append_document(builder, NULL, &scope, &error));
    MUST(millstream_bson_builder_close(builder, &error));
    MUST(millstream_bson_builder_append_binary(builder, "binary", 4, "12345678", 8, &error));
    MUST(millstream_bson_builder_append_binary(builder, "none", 0, NULL, 0, &error));
    value = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_UNDEFINED);
    MUST(millstream_bson_builder_append(builder, "undefined", 9, &value, &error));
    MUST(millstream_bson_builder_append_object_id(builder, "id", an_id, &error));
    MUST(millstream_bson_builder_append_bool(builder, "bool", true, &error));
    MUST(millstream_bson_builder_append_date_time(builder, "date", -1, &error));
    MUST(millstream_bson_builder_append_null(builder, "null", &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_REGEX, "a+", 2);
    value.more = "i";
    value.more_len = 1;
    MUST(millstream_bson_builder_append(builder, "regex", 5, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_DB_POINTER, "db.c", 4);
    value.more = an_id;
    value.more_len = 12;
    MUST(millstream_bson_builder_append(builder, "pointer", 7, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_CODE, "f()", 3);
    MUST(millstream_bson_builder_append(builder, "code", 4, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_SYMBOL, "sym", 3);
    MUST(millstream_bson_builder_append(builder, "symbol", 6, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_CODE_WITH_SCOPE, "g()", 3);
    value.more = scope.bytes;
    value.more_len = scope.len;
    MUST(millstream_bson_builder_append(builder, "scoped", 6, &value, &error));
    MUST(millstream_bson_builder_append_timestamp(builder, "timestamp", 17, 4, &error));
    MUST(millstream_bson_builder_append_i64(builder, "long", INT64_MAX, &error));
    MUST(millstream_bson_builder_append_decimal128(builder, "decimal", a_decimal, &error));
    value = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_MIN_KEY);
    MUST(millstream_bson_builder_append(builder, "min", 3, &value, &error));
    value = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_MAX_KEY);
    MUST(millstream_bson_builder_append(builder, "max", 3, &value, &error));
    MUST(millstream_bson_builder_finish(builder, &bytes, &len, &error));
    return borrowed(bytes, len);
}

static void bson_values(void) {
    millstream_bson_builder *builder;
    millstream_bson_document document, inner;
    millstream_bson_value value;
    millstream_bson_numbers numbers;
    const char *text;
    const void *bytes;
    double number;
    uint64_t u64;
    int64_t i64;
    int32_t i32;
    uint32_t seconds, increment;
    size_t len;
    bool truth;

    MUST(millstream_bson_builder_new(&builder, &error));
    document = every_type(builder);
    MUST(millstream_bson_check(&document, &error));

    value = found(&document, "double");
    MUST(millstream_bson_as_f64(&document, &value, &number, &error));
    CHECK(number == 1.5);
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_as_i32(&document, &value, &i32, &error));
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_as_i64(&document, &value, &i64, &error));
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_as_u64(&document, &value, &u64, &error));
    CHECK(millstream_bson_as_bool(&document, &value, &truth, &error) == MILLSTREAM_SHAPE_MISMATCH && !truth);
    CHECK(strcmp(millstream_error_found(error), "a value of type double") == 0);
    CHECK(strcmp(millstream_error_expected(error), "a value of type bool") == 0);
    failed_at(MILLSTREAM_SHAPE_MISMATCH, "double", 12);
    CHECK(millstream_bson_as_text(&document, &value, &text, &len, NULL) == MILLSTREAM_SHAPE_MISMATCH && text == NULL);

    value = found(&document, "text");
    MUST(millstream_bson_as_text(&document, &value, &text, &len, &error));
    CHECK(len == 8 && memcmp(text, "Gr\xc3\xbc\xc3\x9f\0e", 9) == 0);
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_f64(&document, &value, &number, &error));
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_binary(&document, &value, &bytes, &len, &error));

    value = found(&document, "document.int");
    MUST(millstream_bson_as_i32(&document, &value, &i32, &error));
    MUST(millstream_bson_as_i64(&document, &value, &i64, &error));
    MUST(millstream_bson_as_f64(&document, &value, &number, &error));
    CHECK(i32 == -7 && i64 == -7 && number == -7);
    CHECK(millstream_bson_as_u64(&document, &value, &u64, &error) == MILLSTREAM_VALUE_OUT_OF_RANGE);
    failed_at(MILLSTREAM_VALUE_OUT_OF_RANGE, "document.int", (uint64_t)(value.payload - document.bytes));

    value = found(&document, "array.1");
    CHECK(value.type == MILLSTREAM_BSON_TYPE_ARRAY && value.len == 5);
    value = found(&document, "array.2");
    CHECK(value.type == MILLSTREAM_BSON_TYPE_DOCUMENT && value.len == 5);
    value = found(&document, "array.0");
    MUST(millstream_bson_as_u64(&document, &value, &u64, &error));
    MUST(millstream_bson_as_i32(&document, &value, &i32, &error));
    CHECK(u64 == 1 && i32 == 1);

    value = found(&document, "binary");
    MUST(millstream_bson_as_binary(&document, &value, &bytes, &len, &error));
    CHECK(value.subtype == 4 && is((const char *)bytes, len, "12345678"));
    CHECK(value.payload_len == len + 5 && value.payload + 5 == value.bytes);
    MUST(millstream_bson_as_numbers(&document, &value, 2, &numbers, &error));
    CHECK(numbers.items == bytes && numbers.count == 4);
    MUST(millstream_bson_as_numbers(&document, &value, 1, &numbers, &error));
    CHECK(numbers.usable && numbers.count == 8);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_as_numbers(&document, &value, 3, &numbers, &error));
    CHECK(millstream_bson_as_numbers(&document, &value, 16, &numbers, &error) == MILLSTREAM_SHAPE_MISMATCH);
    CHECK(numbers.items == NULL && numbers.count == 0);
    failed_at(MILLSTREAM_SHAPE_MISMATCH, "binary", (uint64_t)(value.payload - document.bytes));

    value = found(&document, "none");
    for (len = 1; len <= 16; len *= 2) { /* at most addresses none of these can be */
        MUST(millstream_bson_as_numbers(&document, &value, len, &numbers, &error));
        CHECK(numbers.usable && numbers.items == NULL && numbers.count == 0);
    }

    value = found(&document, "undefined");
    CHECK(value.type == MILLSTREAM_BSON_TYPE_UNDEFINED && value.payload_len == 0 && value.bytes == NULL);
    value = found(&document, "id");
    MUST(millstream_bson_as_object_id(&document, &value, &text, &error));
    CHECK(memcmp(text, an_id, 12) == 0 && value.len == 12);
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_decimal128(&document, &value, &text, &error));
    CHECK(text == NULL);
    value = found(&document, "bool");
    MUST(millstream_bson_as_bool(&document, &value, &truth, &error));
    CHECK(truth);
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_object_id(&document, &value, &text, &error));
    value = found(&document, "date");
    MUST(millstream_bson_as_date_time(&document, &value, &i64, &error));
    CHECK(i64 == -1);
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_i64(&document, &value, &i64, &error));
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_timestamp(&document, &value, &seconds, &increment, &error));
    value = found(&document, "null");
    CHECK(value.type == MILLSTREAM_BSON_TYPE_NULL);
    value = found(&document, "regex");
    CHECK(is(value.bytes, value.len, "a+") && is(value.more, value.more_len, "i"));
    value = found(&document, "pointer");
    CHECK(is(value.bytes, value.len, "db.c") && value.more_len == 12 && memcmp(value.more, an_id, 12) == 0);
    value = found(&document, "code");
    MUST(millstream_bson_as_text(&document, &value, &text, &len, &error));
    CHECK(is(text, len, "f()"));
    value = found(&document, "symbol");
    MUST(millstream_bson_as_text(&document, &value, &text, &len, &error));
    CHECK(is(text, len, "sym"));
    value = found(&document, "scoped");
    CHECK(is(value.bytes, value.len, "g()") && value.more_len == 5);
    MUST(millstream_bson_enter(&document, &value, &inner, &error));
    CHECK(inner.bytes == value.more && inner.len == 5);
    value = found(&document, "timestamp");
    MUST(millstream_bson_as_timestamp(&document, &value, &seconds, &increment, &error));
    CHECK(seconds == 17 && increment == 4);
    FAILS(MILLSTREAM_SHAPE_MISMATCH, millstream_bson_as_date_time(&document, &value, &i64, &error));
    value = found(&document, "long");
    MUST(millstream_bson_as_i64(&document, &value, &i64, &error));
    CHECK(i64 == INT64_MAX);
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_as_i32(&document, &value, &i32, &error));
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_as_f64(&document, &value, &number, &error));
    value = found(&document, "decimal");
    MUST(millstream_bson_as_decimal128(&document, &value, &text, &error));
    CHECK(memcmp(text, a_decimal, 16) == 0 && value.len == 16);
    CHECK(found(&document, "min").type == MILLSTREAM_BSON_TYPE_MIN_KEY);
    CHECK(found(&document, "max").type == MILLSTREAM_BSON_TYPE_MAX_KEY);

    /* Numbers, without what is inlined. */
    value = found(&document, "array.0");
    MUST(millstream_bson_to_i32(&document, &value, &i32, &error));
    MUST(millstream_bson_to_i64(&document, &value, &i64, &error));
    MUST(millstream_bson_to_u64(&document, &value, &u64, &error));
    MUST(millstream_bson_to_f64(&document, &value, &number, &error));
    CHECK(i32 == 1 && i64 == 1 && u64 == 1 && number == 1);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_to_i32(NULL, &value, &i32, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_to_i64(&document, NULL, &i64, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_to_f64(&document, &value, NULL, &error));

    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_expect(&document, &value, (millstream_bson_type)99, &error));
    memset(&value, 0, sizeof value);
    FAILS(MILLSTREAM_KEY_MISSING, millstream_bson_as_i64(&document, &value, &i64, &error));
    FAILS(MILLSTREAM_KEY_MISSING, millstream_bson_as_bool(&document, &value, &truth, &error));
    millstream_bson_builder_free(builder);
}

/* Object ids and decimal numbers as text. */
static void bson_texts(void) {
    char text[MILLSTREAM_BSON_DECIMAL128_TEXT], id_text[MILLSTREAM_BSON_OBJECT_ID_TEXT];
    char id[12], other[12], decimal[16];
    static const char zeros[16] = {0};

    MUST(millstream_bson_object_id_to_text(an_id, id_text, &error));
    CHECK(strcmp(id_text, "313233343536373839616200") == 0);
    MUST(millstream_bson_object_id_from_text(id_text, 24, id, &error));
    CHECK(memcmp(id, an_id, 12) == 0);
    CHECK(millstream_bson_object_id_from_text("31323334353637383961620g", 24, id, &error) == MILLSTREAM_TEXT_INVALID);
    CHECK(memcmp(id, zeros, 12) == 0);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_bson_object_id_new(id, &error));
    MUST(millstream_bson_object_id_new(other, &error));
    CHECK(memcmp(id, other, 12) != 0);

    MUST(millstream_bson_decimal128_to_text(a_decimal, text, &error));
    CHECK(strcmp(text, "1") == 0);
    MUST(millstream_bson_decimal128_from_text("1", 1, decimal, &error));
    CHECK(memcmp(decimal, a_decimal, 16) == 0);
    MUST(millstream_bson_decimal128_from_text("-1.234567890123456789012345678901234E-6143", 42, decimal, &error));
    MUST(millstream_bson_decimal128_to_text(decimal, text, &error));
    CHECK(strcmp(text, "-1.234567890123456789012345678901234E-6143") == 0);
    FAILS(MILLSTREAM_TEXT_INVALID, millstream_bson_decimal128_from_text("1,5", 3, decimal, &error));
    CHECK(memcmp(decimal, zeros, 16) == 0);

    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_object_id_new(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_object_id_to_text(NULL, id_text, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_object_id_to_text(id, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_decimal128_from_text("\xff", 1, decimal, &error));
    FAILS(MILLSTREAM_TEXT_INVALID, millstream_bson_decimal128_from_text(NULL, 0, decimal, &error));
}

/* What takes several calls is taken back as a whole, and errors say where. */
static void bson_taking_back(void) {
    millstream_bson_builder *builder;
    millstream_bson_document document;
    millstream_bson_mark mark, inside;
    millstream_bson_value value;
    const char *bytes;
    size_t len;

    MUST(millstream_bson_builder_new(&builder, &error));
    MUST(millstream_bson_builder_append_i32(builder, "n", 1, &error));
    MUST(millstream_bson_builder_mark(builder, &mark, &error));
    MUST(millstream_bson_builder_open(builder, "list", 4, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    MUST(millstream_bson_builder_append_i32(builder, NULL, 1, &error));
    MUST(millstream_bson_builder_mark(builder, &inside, &error));
    MUST(millstream_bson_builder_open(builder, NULL, 0, MILLSTREAM_BSON_TYPE_DOCUMENT, &error));
    CHECK(millstream_bson_builder_append_text(builder, "bad", "\xff", 1, &error) == MILLSTREAM_UTF8_INVALID);
    CHECK(strcmp(millstream_error_path(error), "list.1.bad") == 0);
    millstream_error_free(error);
    error = NULL;
    value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_INT32, (int64_t)1 << 31);
    CHECK(millstream_bson_builder_append(builder, "big", 3, &value, &error) == MILLSTREAM_VALUE_OUT_OF_RANGE);
    CHECK(strcmp(millstream_error_path(error), "list.1.big") == 0);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_bson_builder_rollback(builder, &inside, &error));
    MUST(millstream_bson_builder_append_i32(builder, NULL, 2, &error));
    MUST(millstream_bson_builder_rollback(builder, &mark, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_rollback(builder, &inside, &error));
    MUST(millstream_bson_builder_append_i32(builder, "m", 2, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_rollback(builder, NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_rollback(NULL, &mark, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_mark(builder, NULL, &error));
    MUST(millstream_bson_builder_finish(builder, &bytes, &len, &error));
    document = borrowed(bytes, len);
    CHECK(found(&document, "n").integer == 1 && found(&document, "m").integer == 2 && len == 4 + 7 + 7 + 1);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_rollback(builder, &mark, &error));
    millstream_bson_builder_free(builder);
}

static void bson_writing(void) {
    millstream_bson_builder *builder, *copy;
    millstream_bson_document document;
    millstream_bson_element members[32];
    millstream_bson_value value;
    millstream_framer *framer;
    millstream_reader *reader;
    millstream_writer *writer;
    millstream_batch batch;
    const char *bytes, *again;
    size_t at = 0, len, again_len, count, i;
    int64_t number;

    /* Each value is written as it was read. */
    MUST(millstream_bson_builder_new(&builder, &error));
    MUST(millstream_bson_builder_new(&copy, &error));
    document = every_type(builder);
    MUST(millstream_bson_members(&document, &at, members, 32, &count, &error));
    CHECK(count == 21 && at == document.len);
    MUST(millstream_bson_builder_append_members(copy, members, count, &i, &error));
    CHECK(i == count);
    MUST(millstream_bson_builder_finish(copy, &again, &again_len, &error));
    CHECK(again_len == document.len && memcmp(again, document.bytes, again_len) == 0);
    FAILS(MILLSTREAM_CLOSED, millstream_bson_builder_append_members(copy, members, count, &i, &error));
    CHECK(i == 0);

    /* Into an array, without their keys. */
    MUST(millstream_bson_builder_clear(copy, &error));
    MUST(millstream_bson_builder_open(copy, "list", 4, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    MUST(millstream_bson_builder_append_members(copy, members, 2, NULL, &error));
    members[1].value.type = MILLSTREAM_BSON_TYPE_NOTHING;
    FAILS(MILLSTREAM_KEY_MISSING, millstream_bson_builder_append_members(copy, members, 3, &i, &error));
    CHECK(i == 1);
    MUST(millstream_bson_builder_close(copy, &error));
    MUST(millstream_bson_builder_finish(copy, &bytes, &len, &error));
    document = borrowed(bytes, len);
    CHECK(found(&document, "list.2").number == 1.5 && found(&document, "list.1").len == 8);

    /* What cannot be written. */
    MUST(millstream_bson_builder_clear(copy, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_append_i32(copy, NULL, 1, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_open(copy, NULL, 0, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_open(copy, "a", 1, MILLSTREAM_BSON_TYPE_INT32, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_close(copy, &error));
    FAILS(MILLSTREAM_UTF8_INVALID, millstream_bson_builder_append_text(copy, "a", "\xff", 1, &error));
    FAILS(MILLSTREAM_UTF8_INVALID, millstream_bson_builder_append_text(copy, "\xff", "a", 1, &error));
    value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_INT64, 1);
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_builder_append(copy, "a\0b", 3, &value, &error));
    value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_INT32, (int64_t)1 << 31);
    FAILS(MILLSTREAM_VALUE_OUT_OF_RANGE, millstream_bson_builder_append(copy, "a", 1, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_OBJECT_ID, an_id, 11);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_append(copy, "a", 1, &value, &error));
    value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_DOCUMENT, "\6\0\0\0", 5);
    FAILS(MILLSTREAM_DOCUMENT_TRUNCATED, millstream_bson_builder_append(copy, "a", 1, &value, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_append(copy, "a", 1, NULL, &error));
    MUST(millstream_bson_builder_open(copy, "a", 1, MILLSTREAM_BSON_TYPE_ARRAY, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_append_i32(copy, "b", 1, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_finish(copy, &bytes, &len, &error));
    CHECK(bytes == NULL && len == 0);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_clear(NULL, &error));
    millstream_bson_builder_free(copy);

    /* A stream of documents, and back. */
    MUST(millstream_writer_memory(NULL, &writer, &error));
    MUST(millstream_bson_builder_clear(builder, &error));
    for (i = 0; i < 100; i++) {
        MUST(millstream_bson_builder_append_i64(builder, "i", (int64_t)i, &error));
        MUST(millstream_bson_builder_write(builder, writer, &error));
    }
    MUST(millstream_writer_close(writer, &error));
    MUST(millstream_bson_builder_append_i64(builder, "i", 100, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_bson_builder_write(builder, writer, &error));
    MUST(millstream_bson_builder_finish(builder, &bytes, &len, &error)); /* it is still there */
    CHECK(len == 16);
    MUST(millstream_writer_taken_memory(writer, &bytes, &len, &error));
    MUST(millstream_reader_memory(bytes, len, NULL, &reader, &error));
    MUST(millstream_framer_bson(&framer, &error));
    for (i = 0;;) {
        MUST(millstream_reader_next_batch(reader, framer, 7, &batch, &error));
        if (batch.count == 0)
            break;
        for (at = 0; at < batch.count; at++, i++) {
            millstream_batch_record(&batch, at, &bytes, &len);
            document = borrowed(bytes, len);
            document.offset = batch.offset + batch.offsets[at];
            value = found(&document, "i");
            MUST(millstream_bson_as_i64(&document, &value, &number, &error));
            CHECK(number == (int64_t)i && document.offset == i * 16);
        }
    }
    CHECK(i == 100);
    millstream_framer_free(framer);
    millstream_reader_free(reader);
    millstream_writer_free(writer);
    millstream_bson_builder_free(builder);
    millstream_bson_builder_free(NULL);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_framer_bson(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_builder_new(NULL, &error));
}

static void bson_owning(void) {
    static const char text[] = "{\"n\":1,\"list\":[{\"$date\":{\"$numberLong\":\"-1\"}},2.5]}";
    static const char canonical[] =
        "{\"n\":{\"$numberInt\":\"1\"},\"list\":[{\"$date\":{\"$numberLong\":\"-1\"}},{\"$numberDouble\":\"2.5\"}]}";
    millstream_bson_document document, second;
    millstream_bson_owned *owned;
    millstream_bson_rules rules;
    millstream_reader *reader;
    millstream_writer *writer;
    millstream_bson_value value;
    const char *bytes;
    FILE *file;
    size_t len;

    /* Extended JSON both ways. */
    MUST(millstream_bson_from_json(text, strlen(text), NULL, &owned, &error));
    MUST(millstream_bson_owned_document(owned, &document, &error));
    CHECK(found(&document, "n").integer == 1 && found(&document, "list.0").type == MILLSTREAM_BSON_TYPE_DATE_TIME);
    MUST(millstream_writer_memory(NULL, &writer, &error));
    MUST(millstream_bson_write_json(&document, MILLSTREAM_BSON_JSON_RELAXED, writer, &error));
    MUST(millstream_bson_write_json(&document, MILLSTREAM_BSON_JSON_CANONICAL, writer, &error));
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_write_json(&document, (millstream_bson_json)2, writer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_write_json(NULL, MILLSTREAM_BSON_JSON_RELAXED, writer, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID,
          millstream_bson_write_json(&document, MILLSTREAM_BSON_JSON_RELAXED, NULL, &error));
    MUST(millstream_writer_close(writer, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_bson_write_json(&document, MILLSTREAM_BSON_JSON_RELAXED, writer, &error));
    MUST(millstream_writer_taken_memory(writer, &bytes, &len, &error));
    CHECK(len == strlen(text) + strlen(canonical) && memcmp(bytes, text, strlen(text)) == 0);
    CHECK(memcmp(bytes + strlen(text), canonical, strlen(canonical)) == 0);
    millstream_writer_free(writer);
    MUST(millstream_bson_owned_check_length(owned, &error));
    millstream_bson_owned_free(owned);
    CHECK(millstream_bson_from_json("{\"a\":[1,{\"$oid\":\"no\"}]}", 24, NULL, &owned, &error) ==
          MILLSTREAM_TEXT_INVALID);
    CHECK(owned == NULL && strcmp(millstream_error_path(error), "a.1") == 0);
    millstream_error_free(error);
    error = NULL;
    memset(&rules, 0, sizeof rules);
    rules.depth = 1;
    FAILS(MILLSTREAM_TOO_DEEP, millstream_bson_from_json("{\"a\":{}}", 8, &rules, &owned, &error));

    /* A copy. */
    MUST(millstream_bson_copy(nested, nested_len, NULL, &owned, &error));
    MUST(millstream_bson_owned_document(owned, &document, &error));
    CHECK(document.bytes != nested && found(&document, "d").integer == 3);
    MUST(millstream_bson_owned_bytes(owned, &bytes, &len, &error));
    CHECK(bytes == document.bytes && len == nested_len);
    millstream_bson_owned_free(owned);
    FAILS(MILLSTREAM_DOCUMENT_TRUNCATED, millstream_bson_copy(nested, 10, NULL, &owned, &error));
    CHECK(owned == NULL);
    document = borrowed(nested, nested_len);
    document.offset = 1000;
    document.rules.utf8 = MILLSTREAM_BSON_UTF8_LOSSY;
    MUST(millstream_bson_copy_document(&document, &owned, &error));
    MUST(millstream_bson_owned_document(owned, &second, &error));
    CHECK(second.bytes != nested && second.offset == 1000 && second.rules.utf8 == MILLSTREAM_BSON_UTF8_LOSSY);
    millstream_bson_owned_free(owned);
    value = found(&document, "a.b");
    MUST(millstream_bson_enter(&document, &value, &second, &error));
    MUST(millstream_bson_copy_document(&second, &owned, &error)); /* of an array */
    MUST(millstream_bson_owned_document(owned, &second, &error));
    CHECK(second.offset == 1014 && second.type == MILLSTREAM_BSON_TYPE_ARRAY && found(&second, "1").integer == 2);
    millstream_bson_owned_free(owned);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_copy_document(NULL, &owned, &error));

    /* A file of two, mapped. */
    file = fopen(in_directory("two.bson"), "w");
    CHECK(file != NULL && fwrite(nested, 1, nested_len, file) == nested_len);
    CHECK(fwrite(nested, 1, nested_len, file) == nested_len && fclose(file) == 0);
    rules.depth = 0;
    rules.strictness = MILLSTREAM_BSON_STRICTNESS_LENIENT;
    MUST(millstream_bson_mapped(in_directory("two.bson"), &rules, &owned, &error));
    MUST(millstream_bson_owned_check_length(owned, &error));
    MUST(millstream_bson_owned_document(owned, &document, &error));
    CHECK(document.offset == 0 && found(&document, "a.b.1").integer == 2);
    MUST(millstream_bson_owned_bytes(owned, &bytes, &len, &error));
    CHECK(bytes == document.bytes && len == 2 * nested_len);
    MUST(millstream_bson_borrow_first(bytes + document.len, len - document.len, NULL, &second, &error));
    CHECK(second.len == nested_len);
    CHECK(truncate(in_directory("two.bson"), 7) == 0);
    FAILS(MILLSTREAM_SOURCE_SHRANK, millstream_bson_owned_check_length(owned, &error));
    millstream_bson_owned_free(owned);
    FAILS(MILLSTREAM_OPEN_FAILED, millstream_bson_mapped(in_directory("missing"), NULL, &owned, &error));

    /* One document of a reader. */
    MUST(millstream_reader_memory("\5\0\0\0\0\x0c\0\0\0\x10n\0\x2a\0\0\0\0\6", 18, NULL, &reader, &error));
    MUST(millstream_bson_read(reader, 1000, NULL, &owned, &error));
    millstream_bson_owned_free(owned);
    FAILS(MILLSTREAM_MEMORY_LIMIT, millstream_bson_read(reader, 11, NULL, &owned, &error));
    MUST(millstream_bson_read(reader, 12, NULL, &owned, &error));
    MUST(millstream_bson_owned_document(owned, &document, &error));
    value = found(&document, "n");
    CHECK(value.integer == 42 && document.offset == 5);
    millstream_bson_owned_free(owned);
    FAILS(MILLSTREAM_DOCUMENT_TRUNCATED, millstream_bson_read(reader, 1000, NULL, &owned, &error));
    CHECK(owned == NULL);
    millstream_reader_free(reader);
    reader = memory_reader("");
    MUST(millstream_bson_read(reader, 1000, NULL, &owned, &error));
    CHECK(owned == NULL);
    millstream_reader_free(reader);
    millstream_bson_owned_free(NULL);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_read(NULL, 1, NULL, &owned, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_owned_document(NULL, &document, &error));
}

static void bson_streams(void) {
    /* {"n": 1}, one of a wrong type, {"n": 3} twice */
    static const char stream[] = "\x0c\0\0\0\x10n\0\1\0\0\0\0"
                                 "\x0c\0\0\0\x77n\0\2\0\0\0\0"
                                 "\x0c\0\0\0\x10n\0\3\0\0\0\0"
                                 "\x0c\0\0\0\x10n\0\3\0\0\0";
    millstream_bson_documents *documents;
    const millstream_bson_document *batch;
    millstream_bson_skipped skipped;
    millstream_bson_value value;
    millstream_reader *reader;
    size_t count, i, all = 0;
    uint64_t bytes, records;
    int64_t sum = 0;

    /* On access. */
    MUST(millstream_reader_memory(stream, sizeof stream, NULL, &reader, &error));
    MUST(millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP, MILLSTREAM_BSON_CHECKING_ON_ACCESS,
                                       &documents, &error));
    MUST(millstream_bson_documents_next(documents, &batch, &count, &error));
    CHECK(count == 4 && batch[3].offset == 36);
    CHECK(millstream_bson_find(&batch[1], "n", &value, NULL, &error) == MILLSTREAM_DOCUMENT_INVALID);
    CHECK(millstream_error_offset(error, &skipped.bytes) && skipped.bytes == 16);
    CHECK(millstream_error_record(error, &records) && records == 1 && batch[3].record == 3);
    CHECK(strcmp(millstream_error_name(error), millstream_bson_documents_name(documents)) == 0);
    CHECK(strcmp(millstream_bson_documents_name(documents), "memory") == 0);
    MUST(millstream_bson_documents_position(documents, &bytes, &records, &error));
    CHECK(bytes == sizeof stream && records == 4);
    millstream_error_free(error);
    error = NULL;
    MUST(millstream_bson_documents_next(documents, &batch, &count, &error));
    CHECK(count == 0 && batch == NULL);
    millstream_bson_documents_free(documents);

    /* Ahead. */
    MUST(millstream_reader_memory(stream, sizeof stream, NULL, &reader, &error));
    MUST(millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP, MILLSTREAM_BSON_CHECKING_AHEAD,
                                       &documents, &error));
    MUST(millstream_bson_documents_next(documents, &batch, &count, &error));
    CHECK(count == 1);
    FAILS(MILLSTREAM_DOCUMENT_INVALID, millstream_bson_documents_next(documents, &batch, &count, &error));
    CHECK(count == 0);
    millstream_bson_documents_free(documents);

    /* Passing over what is wrong, and telling it. */
    MUST(millstream_reader_memory(stream, sizeof stream, NULL, &reader, &error));
    MUST(millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_SKIP, MILLSTREAM_BSON_CHECKING_ON_ACCESS,
                                       &documents, &error));
    do {
        MUST(millstream_bson_documents_next(documents, &batch, &count, &error));
        for (i = 0; i < count; i++, all++)
            sum += found(&batch[i], "n").integer;
    } while (count > 0);
    CHECK(all == 3 && sum == 7);
    MUST(millstream_bson_documents_skipped(documents, &skipped, &error));
    CHECK(skipped.count == 1 && skipped.bytes == 12 && skipped.places_count == 1 && skipped.places[0].offset == 12);
    CHECK(skipped.places[0].len == 12 && skipped.places[0].record == 1 && skipped.places[0].wrong_at == 16);
    CHECK(skipped.places[0].code == MILLSTREAM_DOCUMENT_INVALID);
    MUST(millstream_bson_documents_close(documents, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_bson_documents_close(documents, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_bson_documents_next(documents, &batch, &count, &error));
    CHECK(count == 0 && batch == NULL);
    MUST(millstream_bson_documents_position(documents, &bytes, &records, &error));
    CHECK(bytes == sizeof stream && records == 4);
    MUST(millstream_bson_documents_skipped(documents, &skipped, &error));
    CHECK(skipped.count == 1 && skipped.bytes == 12);
    millstream_bson_documents_free(documents);

    /* The reader is taken, whatever happens. */
    reader = memory_reader("");
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_documents_new(reader, NULL, (millstream_bson_on_bad)2,
                                                                   MILLSTREAM_BSON_CHECKING_AHEAD, &documents, &error));
    CHECK(documents == NULL);
    reader = memory_reader("");
    FAILS(MILLSTREAM_INVALID_OPTION, millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
                                                                   (millstream_bson_checking)2, &documents, &error));
    reader = memory_reader("");
    MUST(millstream_reader_close(reader, &error));
    FAILS(MILLSTREAM_CLOSED, millstream_bson_documents_new(reader, NULL, MILLSTREAM_BSON_ON_BAD_STOP,
                                                           MILLSTREAM_BSON_CHECKING_AHEAD, &documents, &error));
    millstream_bson_documents_free(NULL);
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_documents_next(NULL, &batch, &count, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_documents_skipped(NULL, &skipped, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_documents_close(NULL, &error));
    FAILS(MILLSTREAM_ARGUMENT_INVALID, millstream_bson_documents_position(NULL, &bytes, &records, &error));
    CHECK(millstream_bson_documents_name(NULL) == NULL);
}
