//! Arrays from the texts of a column.

use crate::span::Content;
use crate::text::{Rules, Values, Zone};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, NullArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use millstream::{Error, ErrorKind, Result, scan};
use std::sync::Arc;

/// The texts of a column.
pub(crate) trait Texts {
    /// The number of rows.
    fn len(&self) -> usize;

    /// The text of a row; `None` is null.
    fn get(&self, row: usize) -> Option<Content<'_>>;

    /// An upper limit for the size of all contents, if it is known.
    fn byte_len(&self) -> usize;
}

/// The number of bytes that are copied for a shorter text. Most texts are short, and copying always the same number of bytes is
/// faster than copying as many as a text has.
const STEP: usize = 32;

/// Appends a text.
#[inline]
fn push(bytes: &mut Vec<u8>, text: Content<'_>) {
    match text.rest.first_chunk::<STEP>() {
        Some(chunk) if text.len <= STEP => {
            let len = bytes.len() + text.len;
            bytes.extend_from_slice(chunk);
            bytes.truncate(len);
        }
        _ => bytes.extend_from_slice(text.bytes()),
    }
}

/// A text that does not fit the type of its column.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) row: usize,
    pub(crate) kind: ErrorKind,
}

/// How texts become values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Whether the types were inferred.
    pub(crate) exact: bool,
    pub(crate) rules: Rules,
    pub(crate) nullable: bool,
    /// Whether to go on after a text that does not fit; otherwise the array ends before it.
    pub(crate) goes_on: bool,
}

/// Returns the array of the texts, with nulls in place of those that do not fit, and these.
pub(crate) fn array(texts: &impl Texts, data_type: &DataType, how: How) -> Result<(ArrayRef, Vec<Misfit>)> {
    let values = Values { exact: how.exact, rules: how.rules };
    macro_rules! numbers {
        ($type:ty) => {
            primitive::<$type>(texts, how, data_type, |text| values.integer(text))
        };
    }
    macro_rules! stamps {
        ($type:ty, $unit:expr, $zone:expr) => {{
            let zone = $zone.as_deref().map(|name: &str| Zone::of_name(name));
            match zone {
                None => primitive::<$type>(texts, how, data_type, |text| values.timestamp(text.bytes(), $unit)),
                Some(zone) => primitive::<$type>(texts, how, data_type, |text| values.zoned(text.bytes(), $unit, zone)),
            }
        }};
    }
    match data_type {
        DataType::Null => {
            let outcome = each(texts, how, |_, text| text.map_or(Ok(()), |_| Err(ErrorKind::ShapeMismatch)));
            Ok((Arc::new(NullArray::new(outcome.rows)), outcome.misfits))
        }
        DataType::Boolean => bools(texts, how, values),
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => primitive::<Float32Type>(texts, how, data_type, |text| scan::parse::<f32>(text.bytes())),
        DataType::Float64 => primitive::<Float64Type>(texts, how, data_type, |text| values.float64(text)),
        &DataType::Decimal128(precision, scale) => {
            primitive::<Decimal128Type>(texts, how, data_type, |text| values.decimal(text.bytes(), precision, scale))
        }
        DataType::Date32 => primitive::<Date32Type>(texts, how, data_type, |text| values.date(text.bytes())),
        DataType::Time64(TimeUnit::Microsecond) => {
            primitive::<Time64MicrosecondType>(texts, how, data_type, |text| values.time(text.bytes(), 1_000_000))
        }
        DataType::Time64(_) => {
            primitive::<Time64NanosecondType>(texts, how, data_type, |text| values.time(text.bytes(), 1_000_000_000))
        }
        DataType::Timestamp(TimeUnit::Second, zone) => stamps!(TimestampSecondType, 1, zone),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => stamps!(TimestampMillisecondType, 1_000, zone),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => stamps!(TimestampMicrosecondType, 1_000_000, zone),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => stamps!(TimestampNanosecondType, 1_000_000_000, zone),
        DataType::Utf8 => pieces(texts, how, true),
        DataType::Binary => pieces(texts, how, false),
        other => Err(Error::new(ErrorKind::ShapeMismatch)
            .with_found(format!("a column of type {other}"))
            .with_expected("a type of plain values for a text")),
    }
}

/// What became of the texts of a column.
struct Outcome {
    /// The number of rows of the array.
    rows: usize,
    /// The rows that are null, or left out later because their text does not fit.
    absent: Vec<usize>,
    misfits: Vec<Misfit>,
}

impl Outcome {
    fn nulls(&self) -> Option<NullBuffer> {
        if self.absent.is_empty() {
            return None;
        }
        let mut valid = BooleanBufferBuilder::new(self.rows);
        valid.append_n(self.rows, true);
        self.absent.iter().for_each(|&row| valid.set_bit(row, false));
        Some(NullBuffer::new(valid.finish()))
    }
}

/// Passes every row and its text to a function, and collects those that it refuses.
#[inline]
fn each(
    texts: &impl Texts,
    how: How,
    mut put: impl FnMut(usize, Option<Content<'_>>) -> std::result::Result<(), ErrorKind>,
) -> Outcome {
    let mut outcome = Outcome { rows: texts.len(), absent: Vec::new(), misfits: Vec::new() };
    for row in 0..outcome.rows {
        let text = texts.get(row);
        let put = match put(row, text) {
            Ok(()) if text.is_some() => continue,
            Ok(()) if !how.nullable => Err(ErrorKind::ValueMissing),
            other => other,
        };
        if let Err(kind) = put {
            outcome.misfits.push(Misfit { row, kind });
            if !how.goes_on {
                outcome.rows = row;
                break;
            }
        }
        outcome.absent.push(row);
    }
    outcome
}

fn primitive<T: ArrowPrimitiveType>(
    texts: &impl Texts,
    how: How,
    data_type: &DataType,
    parse: impl Fn(Content<'_>) -> std::result::Result<T::Native, ErrorKind>,
) -> Result<(ArrayRef, Vec<Misfit>)> {
    let mut values = Vec::with_capacity(texts.len());
    let outcome = each(texts, how, |_, text| {
        let value = text.map_or(Ok(T::Native::default()), &parse);
        values.push(value.unwrap_or_default());
        value.map(drop)
    });
    values.truncate(outcome.rows);
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), outcome.nulls()).map_err(refused)?;
    Ok((Arc::new(array.with_data_type(data_type.clone())), outcome.misfits))
}

fn bools(texts: &impl Texts, how: How, values: Values) -> Result<(ArrayRef, Vec<Misfit>)> {
    let mut bits = BooleanBufferBuilder::new(texts.len());
    bits.append_n(texts.len(), false);
    let outcome = each(texts, how, |row, text| {
        if let Some(text) = text {
            bits.set_bit(row, values.bool(text.bytes())?);
        }
        Ok(())
    });
    bits.truncate(outcome.rows);
    Ok((Arc::new(BooleanArray::new(bits.finish(), outcome.nulls())), outcome.misfits))
}

fn pieces(texts: &impl Texts, how: How, is_text: bool) -> Result<(ArrayRef, Vec<Misfit>)> {
    let (offsets, bytes, outcome) = join(texts, how, false);
    let nulls = outcome.nulls();
    if !is_text {
        let array = BinaryArray::try_new(offsets, bytes, nulls).map_err(refused)?;
        return Ok((Arc::new(array), outcome.misfits));
    }
    // Arrow checks all texts together, which is faster than one at a time.
    if let Ok(array) = StringArray::try_new(offsets, bytes, nulls) {
        return Ok((Arc::new(array), outcome.misfits));
    }
    let (offsets, bytes, outcome) = join(texts, how, true);
    let array = StringArray::try_new(offsets, bytes, outcome.nulls()).map_err(refused)?;
    Ok((Arc::new(array), outcome.misfits))
}

/// Returns the texts one after the other, and their offsets. With `is_checked`, a text that is not UTF-8 does not fit.
fn join(texts: &impl Texts, how: How, is_checked: bool) -> (OffsetBuffer<i32>, Buffer, Outcome) {
    let mut bytes = Vec::with_capacity(texts.byte_len() + STEP);
    let mut offsets = Vec::with_capacity(texts.len() + 1);
    offsets.push(0);
    let outcome = each(texts, how, |_, text| {
        let is_valid = !is_checked || text.is_none_or(|text| str::from_utf8(text.bytes()).is_ok());
        if let Some(text) = text.filter(|_| is_valid) {
            push(&mut bytes, text);
        }
        // A block has less than 2 GiB.
        offsets.push(bytes.len() as i32);
        if is_valid { Ok(()) } else { Err(ErrorKind::Utf8Invalid) }
    });
    offsets.truncate(outcome.rows + 1);
    (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), outcome)
}

/// An error of Arrow's constructors, which check what this crate builds.
pub(crate) fn refused(error: ArrowError) -> Error {
    Error::new(ErrorKind::Internal).with_found(error.to_string()).with_expected("arrays that Arrow accepts")
}

/// Removes rows from an array.
pub(crate) fn without(array: &ArrayRef, kept: &BooleanArray) -> Result<ArrayRef> {
    arrow_select::filter::filter(array, kept).map_err(refused)
}

/// The number of rows of an array.
pub(crate) fn rows(array: &ArrayRef) -> usize {
    Array::len(array)
}
