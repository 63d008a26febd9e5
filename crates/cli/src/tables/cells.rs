//! The values of Arrow arrays as text, for CSV and JSON.
//!
//! Numbers are written so that they read back the same, dates and times as in ISO 8601, and bytes in Base64. Times of a
//! zone with an offset have that offset; those of a named zone are in UTC.

use std::collections::HashSet;
use std::io::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeStringArray, StringArray, StringViewArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use data_encoding::{BASE64, HEXLOWER};
use millstream::bson::{Decimal128, join_path};
use millstream::put::{self, Part, Spare};
use millstream::{Error, ErrorKind, Result};
use time::{Date, UtcOffset};

/// The values of an array.
pub(super) struct Column {
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    Null,
    Bool(BooleanArray),
    Int8(Primitive<Int8Type>),
    Int16(Primitive<Int16Type>),
    Int32(Primitive<Int32Type>),
    Int64(Primitive<Int64Type>),
    UInt8(Primitive<UInt8Type>),
    UInt16(Primitive<UInt16Type>),
    UInt32(Primitive<UInt32Type>),
    UInt64(Primitive<UInt64Type>),
    Float32(Primitive<Float32Type>),
    Float64(Primitive<Float64Type>),
    Decimal(Primitive<Decimal128Type>, i8),
    /// Days since 1970.
    Date(Primitive<Date32Type>),
    /// Times of the day, and the number of units in a second.
    Time(Vec<i64>, i64),
    /// Times since 1970, the number of units in a second, and the zone.
    Stamp(Vec<i64>, i64, Zone),
    Text(Texts),
    /// Text of JSON.
    Json(StringArray),
    Binary(Pieces),
    /// Ids of BSON, which are written in hexadecimal.
    Ids(FixedSizeBinaryArray),
    /// Decimal numbers of BSON, 16 bytes each.
    BsonDecimals(FixedSizeBinaryArray),
    /// For each row, the place of its value. The values are not copied: many rows may have the same long one.
    Dictionary(Vec<usize>, Box<Column>),
    /// The offsets of the lists, and their items, which begin with the first of the first list.
    List(OffsetBuffer<i32>, Box<Column>),
    Struct(Vec<Member>),
}

/// Texts as they are stored.
enum Texts {
    Usual(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl Texts {
    #[inline]
    fn value(&self, row: usize) -> &str {
        match self {
            Texts::Usual(texts) => texts.value(row),
            Texts::Large(texts) => texts.value(row),
            Texts::View(texts) => texts.value(row),
        }
    }
}

/// Binary values as they are stored.
enum Pieces {
    Usual(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
}

impl Pieces {
    fn value(&self, row: usize) -> &[u8] {
        match self {
            Pieces::Usual(pieces) => pieces.value(row),
            Pieces::Large(pieces) => pieces.value(row),
            Pieces::View(pieces) => pieces.value(row),
            Pieces::Fixed(pieces) => pieces.value(row),
        }
    }
}

type Primitive<T> = arrow_array::PrimitiveArray<T>;

struct Member {
    /// The text of JSON before its values.
    key: Vec<u8>,
    column: Column,
}

/// What is written after a time.
#[derive(Clone, Copy)]
enum Zone {
    None,
    Utc,
    Offset(i32),
}

impl Column {
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] for a type that has no usual text.
    pub(super) fn new(field: &Field, array: &ArrayRef) -> Result<Column> {
        Ok(Column { nulls: array.logical_nulls(), values: values(field, array)? })
    }

    /// Replaces structs with their members. A member of a struct that is null is null.
    pub(super) fn flatten(self, outer: Option<&NullBuffer>, columns: &mut Vec<Column>) {
        let nulls = NullBuffer::union(outer, self.nulls.as_ref());
        match self.values {
            Values::Struct(members) => {
                members.into_iter().for_each(|member| member.column.flatten(nulls.as_ref(), columns));
            }
            values => columns.push(Column { nulls, values }),
        }
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns whether values could be empty, or contain something that CSV has to quote.
    pub(super) fn is_text(&self) -> bool {
        use Values::{Binary, Ids, Json, List, Struct, Text};
        match &self.values {
            Values::Dictionary(_, values) => values.is_text(),
            values => matches!(values, Text(_) | Json(_) | Binary(_) | Ids(_) | List(..) | Struct(_)),
        }
    }

    /// Appends a value that is not null.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ValueOutOfRange`] for a date that ISO 8601 cannot write.
    pub(super) fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.values {
            Values::Null => {}
            Values::Bool(values) => append(out, values.value(row)),
            Values::Int8(values) => append(out, values.value(row)),
            Values::Int16(values) => append(out, values.value(row)),
            Values::Int32(values) => append(out, values.value(row)),
            Values::Int64(values) => append(out, values.value(row)),
            Values::UInt8(values) => append(out, values.value(row)),
            Values::UInt16(values) => append(out, values.value(row)),
            Values::UInt32(values) => append(out, values.value(row)),
            Values::UInt64(values) => append(out, values.value(row)),
            Values::Float32(values) => append(out, values.value(row)),
            Values::Float64(values) => append(out, values.value(row)),
            Values::Decimal(values, scale) => append_decimal(out, values.value(row), *scale),
            Values::Date(values) => append_date(out, values.value(row).into())?,
            &Values::Time(ref values, unit) => append_time(out, values[row], unit),
            &Values::Stamp(ref values, unit, zone) => append_stamp(out, values[row], unit, zone)?,
            Values::Text(texts) => out.extend_from_slice(texts.value(row).as_bytes()),
            Values::Json(texts) => out.extend_from_slice(texts.value(row).as_bytes()),
            Values::Binary(pieces) => append_encoded(out, &BASE64, pieces.value(row)),
            Values::Ids(pieces) => append_encoded(out, &HEXLOWER, pieces.value(row)),
            Values::BsonDecimals(pieces) => {
                let bytes = pieces.value(row).first_chunk().copied().unwrap_or_default();
                // Writing to a vector cannot fail.
                let _ = write!(out, "{}", Decimal128(bytes));
            }
            Values::Dictionary(keys, values) => values.append(keys[row], out)?,
            Values::List(..) | Values::Struct(_) => self.append_json(row, out)?,
        }
        Ok(())
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// Also returns [`ErrorKind::ValueOutOfRange`] for numbers that JSON does not have, and
    /// [`ErrorKind::JsonInvalid`] for text that should be JSON.
    pub(super) fn append_json(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.values {
            Values::Float32(values) if !values.value(row).is_finite() => return Err(not_json(values.value(row))),
            Values::Float64(values) if !values.value(row).is_finite() => return Err(not_json(values.value(row))),
            Values::Text(texts) => append_text(out, texts.value(row)),
            Values::Json(texts) => append_checked(out, texts.value(row))?,
            Values::Date(_)
            | Values::Time(..)
            | Values::Stamp(..)
            | Values::Binary(_)
            | Values::Ids(_)
            | Values::BsonDecimals(_) => {
                // None of their characters is escaped.
                out.push(b'"');
                self.append(row, out)?;
                out.push(b'"');
            }
            Values::Dictionary(keys, values) => values.append_json(keys[row], out)?,
            Values::List(offsets, items) => {
                out.push(b'[');
                let first = offsets[0];
                let (start, end) = ((offsets[row] - first) as usize, (offsets[row + 1] - first) as usize);
                for item in start..end {
                    if item > start {
                        out.push(b',');
                    }
                    items.append_json(item, out)?;
                }
                out.push(b']');
            }
            Values::Struct(members) => {
                for Member { key, column } in members {
                    out.extend_from_slice(key);
                    column.append_json(row, out)?;
                }
                out.extend_from_slice(if members.is_empty() { b"{}" } else { b"}" });
            }
            _ => self.append(row, out)?,
        }
        Ok(())
    }
}

/// Returns the text before the value of a member.
pub(super) fn key(index: usize, name: &str) -> Vec<u8> {
    let mut key = vec![if index == 0 { b'{' } else { b',' }];
    append_text(&mut key, name);
    key.push(b':');
    key
}

/// Appends text as a string of JSON.
fn append_text(out: &mut Vec<u8>, text: &str) {
    // Writing to a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a part without a check for each byte.
#[inline]
fn append(out: &mut Vec<u8>, part: impl Part) {
    let start = out.len();
    out.resize(start + part.max_len(), 0);
    let mut spare = Spare::over(&mut out[start..]);
    spare.put(part);
    let len = spare.len();
    out.truncate(start + len);
}

fn values(field: &Field, array: &ArrayRef) -> Result<Values> {
    use DataType as T;
    let seconds = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    Ok(match array.data_type() {
        T::Null => Values::Null,
        T::Boolean => Values::Bool(array.as_boolean().clone()),
        T::Int8 => Values::Int8(array.as_primitive().clone()),
        T::Int16 => Values::Int16(array.as_primitive().clone()),
        T::Int32 => Values::Int32(array.as_primitive().clone()),
        T::Int64 => Values::Int64(array.as_primitive().clone()),
        T::UInt8 => Values::UInt8(array.as_primitive().clone()),
        T::UInt16 => Values::UInt16(array.as_primitive().clone()),
        T::UInt32 => Values::UInt32(array.as_primitive().clone()),
        T::UInt64 => Values::UInt64(array.as_primitive().clone()),
        T::Float16 => {
            let values = array.as_primitive::<Float16Type>();
            Values::Float32(values.unary(|value| value.to_f32()))
        }
        T::Float32 => Values::Float32(array.as_primitive().clone()),
        T::Float64 => Values::Float64(array.as_primitive().clone()),
        &T::Decimal32(_, scale) => {
            let values = array.as_primitive::<Decimal32Type>();
            Values::Decimal(values.unary(i128::from), scale)
        }
        &T::Decimal64(_, scale) => {
            let values = array.as_primitive::<Decimal64Type>();
            Values::Decimal(values.unary(i128::from), scale)
        }
        &T::Decimal128(_, scale) => Values::Decimal(array.as_primitive().clone(), scale),
        T::Date32 => Values::Date(array.as_primitive().clone()),
        T::Date64 => Values::Stamp(array.as_primitive::<Date64Type>().values().to_vec(), 1_000, Zone::None),
        T::Time32(TimeUnit::Second) => times(array.as_primitive::<Time32SecondType>().values(), 1),
        T::Time32(_) => times(array.as_primitive::<Time32MillisecondType>().values(), 1_000),
        T::Time64(TimeUnit::Microsecond) => times(array.as_primitive::<Time64MicrosecondType>().values(), 1_000_000),
        T::Time64(_) => times(array.as_primitive::<Time64NanosecondType>().values(), 1_000_000_000),
        T::Timestamp(unit, name) => {
            let values = match unit {
                TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values(),
                TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
                TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values(),
                TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values(),
            };
            Values::Stamp(values.to_vec(), seconds(unit), zone(name.as_deref()))
        }
        T::Utf8 if is_json(field) => Values::Json(array.as_string().clone()),
        T::Utf8 => Values::Text(Texts::Usual(array.as_string().clone())),
        T::LargeUtf8 => Values::Text(Texts::Large(array.as_string().clone())),
        T::Utf8View => Values::Text(Texts::View(array.as_string_view().clone())),
        T::Binary => Values::Binary(Pieces::Usual(array.as_binary().clone())),
        T::LargeBinary => Values::Binary(Pieces::Large(array.as_binary().clone())),
        T::BinaryView => Values::Binary(Pieces::View(array.as_binary_view().clone())),
        &T::FixedSizeBinary(width) => {
            let pieces = array.as_fixed_size_binary().clone();
            match (width, field.metadata().get("bson").map(String::as_str)) {
                (12, Some("objectId")) => Values::Ids(pieces),
                (16, Some("decimal")) => Values::BsonDecimals(pieces),
                _ => Values::Binary(Pieces::Fixed(pieces)),
            }
        }
        T::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // Without values, all rows are null.
            match dictionary.values().is_empty() {
                true => Values::Null,
                false => {
                    let values = Column::new(field, dictionary.values())?;
                    Values::Dictionary(dictionary.normalized_keys(), Box::new(values))
                }
            }
        }
        T::List(item) => {
            let list = array.as_list::<i32>();
            lists(list.offsets(), item, list.values())?
        }
        T::Map(entries, _) => {
            let map = array.as_map();
            let items: ArrayRef = std::sync::Arc::new(map.entries().clone());
            lists(map.offsets(), entries, &items)?
        }
        T::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns()).enumerate();
            let members = members.map(|(i, (field, array))| {
                Ok(Member { key: key(i, field.name()), column: Column::new(field, array)? })
            });
            Values::Struct(members.collect::<Result<_>>()?)
        }
        other => {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_path(field.name())
                .with_found(format!("a column of type {other}"))
                .with_expected("a type that has a text, or the output format parquet or arrow"));
        }
    })
}

/// Lists may be some rows of a batch, whose items are those of all rows.
fn lists(offsets: &OffsetBuffer<i32>, item: &Field, items: &ArrayRef) -> Result<Values> {
    let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    Ok(Values::List(offsets.clone(), Box::new(Column::new(item, &items.slice(first, last - first))?)))
}

fn times<T: Copy + Into<i64>>(values: &[T], unit: i64) -> Values {
    Values::Time(values.iter().map(|&value| value.into()).collect(), unit)
}

/// Returns whether a column is text of JSON.
fn is_json(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json")
}

fn zone(name: Option<&str>) -> Zone {
    let Some(name) = name else { return Zone::None };
    let offset = || {
        let (sign, rest) = match name.as_bytes() {
            [b'+', rest @ ..] => (1, rest),
            [b'-', rest @ ..] => (-1, rest),
            _ => return None,
        };
        let [a, b, b':', c, d] = rest else { return None };
        let digits = [a, b, c, d].map(|digit| i32::from(digit.wrapping_sub(b'0')));
        let is_valid = digits.iter().all(|&digit| digit < 10);
        is_valid.then(|| sign * (digits[0] * 600 + digits[1] * 60 + digits[2] * 10 + digits[3]) * 60)
    };
    offset().filter(|&seconds| UtcOffset::from_whole_seconds(seconds).is_ok()).map_or(Zone::Utc, Zone::Offset)
}

fn append_encoded(out: &mut Vec<u8>, encoding: &data_encoding::Encoding, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + encoding.encode_len(bytes.len()), 0);
    encoding.encode_mut(bytes, &mut out[start..]);
}

fn append_decimal(out: &mut Vec<u8>, value: i128, scale: i8) {
    if value < 0 {
        out.push(b'-');
    }
    let start = out.len();
    append(out, value.unsigned_abs());
    let Ok(scale) = usize::try_from(scale) else {
        // Zeros before the point that are not stored.
        let zeros = if value == 0 { 0 } else { usize::from(scale.unsigned_abs()) };
        return out.resize(out.len() + zeros, b'0');
    };
    if scale > 0 {
        let digits = out.len() - start;
        let missing = (scale + 1).saturating_sub(digits);
        out.splice(start..start, std::iter::repeat_n(b'0', missing));
        out.insert(out.len() - scale, b'.');
    }
}

/// Appends days since 1970 as `YYYY-MM-DD`.
fn append_date(out: &mut Vec<u8>, days: i64) -> Result<()> {
    let date = i32::try_from(days + 2_440_588).ok().and_then(|day| Date::from_julian_day(day).ok());
    let date = date.filter(|date| date.year() >= 0).ok_or_else(|| {
        Error::new(ErrorKind::ValueOutOfRange)
            .with_found(format!("a date {days} days after 1970-01-01"))
            .with_expected("one in the years 0 to 9999, or the output format parquet or arrow")
    })?;
    append(out, put::zero_fill(date.year(), 4));
    out.push(b'-');
    append(out, put::zero_fill(u8::from(date.month()), 2));
    out.push(b'-');
    append(out, put::zero_fill(date.day(), 2));
    Ok(())
}

/// Appends a time of the day. Units of nanoseconds have all digits, so that they are read back as such; others have
/// three or six, or none if they are zero.
fn append_time(out: &mut Vec<u8>, value: i64, unit: i64) {
    let (seconds, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    append(out, put::zero_fill(seconds / 3600, 2));
    out.push(b':');
    append(out, put::zero_fill(seconds / 60 % 60, 2));
    out.push(b':');
    append(out, put::zero_fill(seconds % 60, 2));
    let (rest, digits) = match unit {
        1_000_000_000 => (rest, 9),
        _ if rest == 0 => return,
        1_000_000 if rest % 1_000 == 0 => (rest / 1_000, 3),
        1_000_000 => (rest, 6),
        _ => (rest, 3),
    };
    out.push(b'.');
    append(out, put::zero_fill(rest, digits));
}

fn append_stamp(out: &mut Vec<u8>, value: i64, unit: i64, zone: Zone) -> Result<()> {
    let offset = if let Zone::Offset(seconds) = zone { i64::from(seconds) } else { 0 };
    let (seconds, rest) = (value.div_euclid(unit).saturating_add(offset), value.rem_euclid(unit));
    append_date(out, seconds.div_euclid(86_400))?;
    out.push(b'T');
    append_time(out, seconds.rem_euclid(86_400) * unit + rest, unit);
    match zone {
        Zone::None => {}
        Zone::Utc => out.push(b'Z'),
        Zone::Offset(_) => {
            out.push(if offset < 0 { b'-' } else { b'+' });
            append(out, put::zero_fill(offset.abs() / 3600, 2));
            out.push(b':');
            append(out, put::zero_fill(offset.abs() / 60 % 60, 2));
        }
    }
    Ok(())
}

/// Appends text of JSON on one line.
fn append_checked(out: &mut Vec<u8>, text: &str) -> Result<()> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| {
        Error::new(ErrorKind::JsonInvalid).with_found(error.to_string()).with_expected("a value of JSON")
    })?;
    // Line ends can only be between tokens.
    out.extend(text.trim().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    Ok(())
}

#[cold]
fn not_json(value: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueOutOfRange)
        .with_found(format!("{value}, which JSON does not have"))
        .with_expected("a finite number, or the output format csv, parquet or arrow")
}

/// Fails if two columns of text would have the same name.
pub(super) fn check_names(schema: &Schema) -> Result<()> {
    check_fields(schema.fields())
}

fn check_fields(fields: &Fields) -> Result<()> {
    unique(fields.iter().map(|field| field.name().clone()))?;
    fields.iter().try_for_each(|field| check_inner(field.data_type()))
}

fn check_inner(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Struct(members) => check_fields(members),
        DataType::List(item) | DataType::Map(item, _) => check_inner(item.data_type()),
        _ => Ok(()),
    }
}

/// Returns the names of the columns, with the members of structs as columns.
pub(super) fn flat_names(schema: &Schema) -> Result<Vec<String>> {
    let mut names = Vec::new();
    schema.fields().iter().for_each(|field| flat(field.name().clone(), field.data_type(), &mut names));
    unique(names.iter().cloned())?;
    Ok(names)
}

fn flat(name: String, data_type: &DataType, names: &mut Vec<String>) {
    match data_type {
        DataType::Struct(members) => {
            for member in members {
                flat(format!("{name}.{}", join_path([member.name()])), member.data_type(), names);
            }
        }
        _ => names.push(name),
    }
}

fn unique(names: impl Iterator<Item = String>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if let Some(twice) = seen.replace(name) {
            return Err(Error::new(ErrorKind::ShapeMismatch)
                .with_found(format!("two columns {twice:?}"))
                .with_expected("a different name for each"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{DictionaryArray, Int32Array, ListArray};

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn column(array: ArrayRef) -> Column {
        Column::new(&Field::new("a", array.data_type().clone(), true), &array).unwrap()
    }

    fn json(column: &Column, rows: usize) -> String {
        text(|out| (0..rows).for_each(|row| column.append_json(row, out).unwrap()))
    }

    #[test]
    fn values_of_dictionaries_are_not_copied() {
        let keys: Int32Array = (0..10_000).map(|row| (row % 3 > 0).then_some(row % 3 - 1)).collect();
        let values = LargeStringArray::from(vec![Some("x".repeat(1 << 20)), None]);
        let array: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
        let (column, most) = crate::peak::peak(|| column(array));
        assert!(most < 1 << 18, "{most}");
        assert_eq!([0, 1, 2].map(|row| column.is_null(row)), [true, false, true]);
        assert!(column.is_text());
        assert_eq!(text(|out| column.append(1, out).unwrap()).len(), 1 << 20);
        let none = DictionaryArray::new(Int32Array::new_null(2), Arc::new(StringArray::from(Vec::<&str>::new())));
        assert_eq!(json(&self::column(Arc::new(none)), 2), "nullnull");
    }

    #[test]
    fn rows_of_a_batch_have_their_own_items() {
        let lists = [Some(vec![Some(1), Some(2)]), None, Some(vec![]), Some(vec![Some(3), None]), Some(vec![Some(4)])];
        let array: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        assert_eq!(json(&column(array.clone()), 5), "[1,2]null[][3,null][4]");
        assert_eq!(json(&column(array.slice(2, 2)), 2), "[][3,null]");
        assert_eq!(json(&column(array.slice(5, 0)), 0), "");
    }

    #[test]
    fn text_and_bytes_of_every_kind() {
        let texts: [ArrayRef; 3] = [
            Arc::new(StringArray::from(vec!["a", "b"])),
            Arc::new(LargeStringArray::from(vec!["a", "b"])),
            Arc::new(StringViewArray::from(vec!["a", "b"])),
        ];
        texts.into_iter().for_each(|array| assert_eq!(json(&column(array), 2), r#""a""b""#));
        let pieces: [ArrayRef; 4] = [
            Arc::new(BinaryArray::from(vec![&b"abc"[..], b"def"])),
            Arc::new(LargeBinaryArray::from(vec![&b"abc"[..], b"def"])),
            Arc::new(BinaryViewArray::from(vec![&b"abc"[..], b"def"])),
            Arc::new(FixedSizeBinaryArray::try_from_iter([b"abc", b"def"].into_iter()).unwrap()),
        ];
        pieces.into_iter().for_each(|array| assert_eq!(json(&column(array), 2), r#""YWJj""ZGVm""#));
    }

    #[test]
    fn decimals_have_all_digits() {
        for (value, scale, expected) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (1234, 2, "12.34"),
            (-1234, 4, "-0.1234"),
            (7, -3, "7000"),
            (0, -3, "0"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(text(|out| append_decimal(out, value, scale)), expected);
        }
    }

    #[test]
    fn times_as_in_iso_8601() {
        let stamp = |value, unit, zone| text(|out| append_stamp(out, value, unit, zone).unwrap());
        assert_eq!(stamp(0, 1, Zone::None), "1970-01-01T00:00:00");
        assert_eq!(stamp(-1, 1_000, Zone::Utc), "1969-12-31T23:59:59.999Z");
        assert_eq!(stamp(1_500_000, 1_000_000, Zone::None), "1970-01-01T00:00:01.500");
        assert_eq!(stamp(1, 1_000_000, Zone::None), "1970-01-01T00:00:00.000001");
        assert_eq!(stamp(0, 1_000_000_000, Zone::None), "1970-01-01T00:00:00.000000000");
        assert_eq!(stamp(0, 1, zone(Some("-05:30"))), "1969-12-31T18:30:00-05:30");
        assert_eq!(stamp(0, 1, zone(Some("Europe/Berlin"))), "1970-01-01T00:00:00Z");
        assert_eq!(text(|out| append_date(out, 11_016).unwrap()), "2000-02-29");
        let error = append_date(&mut Vec::new(), i64::MAX / 86_400).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueOutOfRange);
    }
}
