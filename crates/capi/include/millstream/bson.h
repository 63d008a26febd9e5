/*
 * millstream/bson.h: inlined functions that C programs call per value of a BSON document.
 *
 * It is a part of millstream.h, which includes it, and has two parts:
 *   - millstream_bson_as_i64() and similar functions a value as a C type;
 *   - millstream_bson_builder_append_i64() and similar functions append a C value to a builder.
 *
 * The common case, a value that has the requested type, is handled here. For all other cases the library is called,
 * which reports all errors. The functions here do not check for NULL.
 */
#ifndef MILLSTREAM_BSON_H
#define MILLSTREAM_BSON_H

#include "../millstream.h"
#include "numbers.h"

#include <string.h>

/* ---- values as types of C: `document` is the one that contains `value` ---- */

/* Returns an integer, or any number that this type represents exactly; otherwise MILLSTREAM_VALUE_OUT_OF_RANGE. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_i32(const millstream_bson_document *document,
                                                         const millstream_bson_value *value, int32_t *number,
                                                         millstream_error **error) {
    if (value->type != MILLSTREAM_BSON_TYPE_INT32)
        return millstream_bson_to_i32(document, value, number, error);
    *number = (int32_t)value->integer;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_bson_as_i64(const millstream_bson_document *document,
                                                         const millstream_bson_value *value, int64_t *number,
                                                         millstream_error **error) {
    if (value->type != MILLSTREAM_BSON_TYPE_INT64 && value->type != MILLSTREAM_BSON_TYPE_INT32)
        return millstream_bson_to_i64(document, value, number, error);
    *number = value->integer;
    return MILLSTREAM_OK;
}

MILLSTREAM_INLINE millstream_code millstream_bson_as_u64(const millstream_bson_document *document,
                                                         const millstream_bson_value *value, uint64_t *number,
                                                         millstream_error **error) {
    if ((value->type != MILLSTREAM_BSON_TYPE_INT64 && value->type != MILLSTREAM_BSON_TYPE_INT32) || value->integer < 0)
        return millstream_bson_to_u64(document, value, number, error);
    *number = (uint64_t)value->integer;
    return MILLSTREAM_OK;
}

/* Returns a double, or an integer that a double represents exactly. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_f64(const millstream_bson_document *document,
                                                         const millstream_bson_value *value, double *number,
                                                         millstream_error **error) {
    if (value->type != MILLSTREAM_BSON_TYPE_DOUBLE)
        return millstream_bson_to_f64(document, value, number, error);
    *number = value->number;
    return MILLSTREAM_OK;
}

/* Returns MILLSTREAM_OK if the value has this type. */
MILLSTREAM_INLINE millstream_code millstream_bson_is(const millstream_bson_document *document,
                                                     const millstream_bson_value *value, millstream_bson_type type,
                                                     millstream_error **error) {
    return value->type == type ? (millstream_code)MILLSTREAM_OK : millstream_bson_expect(document, value, type, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_as_bool(const millstream_bson_document *document,
                                                          const millstream_bson_value *value, bool *truth,
                                                          millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_BOOL, error);
    *truth = code == MILLSTREAM_OK && value->integer != 0;
    return code;
}

/* Returns a string, a code or a symbol. The text is part of the document; a NUL follows it, and it may contain others.
 */
MILLSTREAM_INLINE millstream_code millstream_bson_as_text(const millstream_bson_document *document,
                                                          const millstream_bson_value *value, const char **text,
                                                          size_t *len, millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_STRING, error);
    *text = code == MILLSTREAM_OK ? value->bytes : NULL;
    *len = code == MILLSTREAM_OK ? value->len : 0;
    return code;
}

/* Returns a binary of any subtype, which is in `value->subtype`. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_binary(const millstream_bson_document *document,
                                                            const millstream_bson_value *value, const void **bytes,
                                                            size_t *len, millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_BINARY, error);
    *bytes = code == MILLSTREAM_OK ? value->bytes : NULL;
    *len = code == MILLSTREAM_OK ? value->len : 0;
    return code;
}

/* Returns the 12 bytes of an object id, which are part of the document. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_object_id(const millstream_bson_document *document,
                                                               const millstream_bson_value *value, const char **id,
                                                               millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_OBJECT_ID, error);
    *id = code == MILLSTREAM_OK ? value->bytes : NULL;
    return code;
}

/* Returns the 16 bytes of a decimal number, the lowest first, which are part of the document. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_decimal128(const millstream_bson_document *document,
                                                                const millstream_bson_value *value, const char **bytes,
                                                                millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_DECIMAL128, error);
    *bytes = code == MILLSTREAM_OK ? value->bytes : NULL;
    return code;
}

/* Milliseconds since 1970, UTC. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_date_time(const millstream_bson_document *document,
                                                               const millstream_bson_value *value, int64_t *ms,
                                                               millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_DATE_TIME, error);
    *ms = code == MILLSTREAM_OK ? value->integer : 0;
    return code;
}

/* Returns the seconds since 1970, and the number of the operation within that second. */
MILLSTREAM_INLINE millstream_code millstream_bson_as_timestamp(const millstream_bson_document *document,
                                                               const millstream_bson_value *value, uint32_t *seconds,
                                                               uint32_t *increment, millstream_error **error) {
    millstream_code code = millstream_bson_is(document, value, MILLSTREAM_BSON_TYPE_TIMESTAMP, error);
    uint64_t bits = code == MILLSTREAM_OK ? (uint64_t)value->integer : 0;
    *seconds = (uint32_t)(bits >> 32);
    *increment = (uint32_t)bits;
    return code;
}

/* ---- values of C into a builder: `key` ends with a NUL; in an array it is NULL ---- */

/* Returns a value of this type, without other fields set. */
MILLSTREAM_INLINE millstream_bson_value millstream_bson_value_of(millstream_bson_type type) {
    millstream_bson_value value;
    memset(&value, 0, sizeof value);
    value.type = type;
    return value;
}

/* Returns a value that consists of bytes. */
MILLSTREAM_INLINE millstream_bson_value millstream_bson_value_of_bytes(millstream_bson_type type, const void *bytes,
                                                                       size_t len) {
    millstream_bson_value value = millstream_bson_value_of(type);
    value.bytes = (const char *)bytes;
    value.len = len;
    return value;
}

/* Returns a value that is an integer, a boolean, a date or a timestamp. */
MILLSTREAM_INLINE millstream_bson_value millstream_bson_value_of_integer(millstream_bson_type type, int64_t integer) {
    millstream_bson_value value = millstream_bson_value_of(type);
    value.integer = integer;
    return value;
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_i32(millstream_bson_builder *builder, const char *key,
                                                                     int32_t number, millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_INT32, number);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_i64(millstream_bson_builder *builder, const char *key,
                                                                     int64_t number, millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_INT64, number);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_f64(millstream_bson_builder *builder, const char *key,
                                                                     double number, millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_DOUBLE);
    value.number = number;
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_bool(millstream_bson_builder *builder, const char *key,
                                                                      bool truth, millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_BOOL, truth);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_null(millstream_bson_builder *builder, const char *key,
                                                                      millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of(MILLSTREAM_BSON_TYPE_NULL);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

/* UTF-8. */
MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_text(millstream_bson_builder *builder, const char *key,
                                                                      const char *text, size_t len,
                                                                      millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_STRING, text, len);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_binary(millstream_bson_builder *builder,
                                                                        const char *key, uint8_t subtype,
                                                                        const void *bytes, size_t len,
                                                                        millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_BINARY, bytes, len);
    value.subtype = subtype;
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

/* Milliseconds since 1970, UTC. */
MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_date_time(millstream_bson_builder *builder,
                                                                           const char *key, int64_t ms,
                                                                           millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_DATE_TIME, ms);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_timestamp(millstream_bson_builder *builder,
                                                                           const char *key, uint32_t seconds,
                                                                           uint32_t increment,
                                                                           millstream_error **error) {
    const int64_t bits = (int64_t)((uint64_t)seconds << 32 | increment);
    millstream_bson_value value = millstream_bson_value_of_integer(MILLSTREAM_BSON_TYPE_TIMESTAMP, bits);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

/* The 12 bytes of an object id. */
MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_object_id(millstream_bson_builder *builder,
                                                                           const char *key, const void *id,
                                                                           millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_OBJECT_ID, id, 12);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

/* The 16 bytes of a decimal number, the lowest first. */
MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_decimal128(millstream_bson_builder *builder,
                                                                            const char *key, const void *bytes,
                                                                            millstream_error **error) {
    millstream_bson_value value = millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_DECIMAL128, bytes, 16);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

/* A copy of a whole document. */
MILLSTREAM_INLINE millstream_code millstream_bson_builder_append_document(millstream_bson_builder *builder,
                                                                          const char *key,
                                                                          const millstream_bson_document *document,
                                                                          millstream_error **error) {
    millstream_bson_value value =
        millstream_bson_value_of_bytes(MILLSTREAM_BSON_TYPE_DOCUMENT, document->bytes, document->len);
    return millstream_bson_builder_append(builder, key, key != NULL ? strlen(key) : 0, &value, error);
}

#endif /* MILLSTREAM_BSON_H */
