//! Arrays from the texts of a column.

use crate::text::{Rules, Values, Zone};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, NullArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use millstream::{Error, ErrorKind, Result, scan};
use std::borrow::Cow;
use std::sync::Arc;

/// The texts of a column.
pub(crate) trait Texts {
    /// The number of rows.
    fn len(&self) -> usize;

    /// The content of a row; `None` is null.
    fn get(&self, row: usize) -> Option<Cow<'_, [u8]>>;

    /// Whether all contents are known to be UTF-8.
    fn is_utf8(&self) -> bool;

    /// An upper limit for the size of all contents, if it is known.
    fn byte_len(&self) -> usize;
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
                None => primitive::<$type>(texts, how, data_type, |text| values.timestamp(text, $unit)),
                Some(zone) => primitive::<$type>(texts, how, data_type, |text| values.zoned(text, $unit, zone)),
            }
        }};
    }
    match data_type {
        DataType::Null => {
            let (array, misfits) = each(texts, how, (), |(), text| match text {
                None => Ok(()),
                Some(_) => Err(ErrorKind::ShapeMismatch),
            });
            let _: () = array;
            let rows = if how.goes_on { texts.len() } else { misfits.first().map_or(texts.len(), |misfit| misfit.row) };
            Ok((Arc::new(NullArray::new(rows)), misfits))
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
        DataType::Float32 => primitive::<Float32Type>(texts, how, data_type, scan::parse::<f32>),
        DataType::Float64 => primitive::<Float64Type>(texts, how, data_type, |text| values.float64(text)),
        &DataType::Decimal128(precision, scale) => {
            primitive::<Decimal128Type>(texts, how, data_type, |text| values.decimal(text, precision, scale))
        }
        DataType::Date32 => primitive::<Date32Type>(texts, how, data_type, |text| values.date(text)),
        DataType::Time64(TimeUnit::Microsecond) => {
            primitive::<Time64MicrosecondType>(texts, how, data_type, |text| values.time(text, 1_000_000))
        }
        DataType::Time64(_) => {
            primitive::<Time64NanosecondType>(texts, how, data_type, |text| values.time(text, 1_000_000_000))
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

/// Passes every text to a function, and collects those that it refuses.
#[inline]
fn each<S>(
    texts: &impl Texts,
    how: How,
    mut state: S,
    mut push: impl FnMut(&mut S, Option<&[u8]>) -> std::result::Result<(), ErrorKind>,
) -> (S, Vec<Misfit>) {
    let mut misfits = Vec::new();
    for row in 0..texts.len() {
        let pushed = match texts.get(row) {
            Some(text) => push(&mut state, Some(&text)),
            None if how.nullable => push(&mut state, None),
            None => Err(ErrorKind::ValueMissing),
        };
        if let Err(kind) = pushed {
            misfits.push(Misfit { row, kind });
            if !how.goes_on {
                break;
            }
            // The row is left out later.
            let _ = push(&mut state, None);
        }
    }
    (state, misfits)
}

fn primitive<T: ArrowPrimitiveType>(
    texts: &impl Texts,
    how: How,
    data_type: &DataType,
    parse: impl Fn(&[u8]) -> std::result::Result<T::Native, ErrorKind>,
) -> Result<(ArrayRef, Vec<Misfit>)> {
    let state = (Vec::with_capacity(texts.len()), NullBufferBuilder::new(texts.len()));
    let ((values, mut nulls), misfits) = each(texts, how, state, |(values, nulls), text| {
        match text {
            Some(text) => {
                values.push(parse(text)?);
                nulls.append_non_null();
            }
            None => {
                values.push(T::Native::default());
                nulls.append_null();
            }
        }
        Ok(())
    });
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls.finish()).map_err(refused)?;
    Ok((Arc::new(array.with_data_type(data_type.clone())), misfits))
}

fn bools(texts: &impl Texts, how: How, values: Values) -> Result<(ArrayRef, Vec<Misfit>)> {
    let state = (BooleanBufferBuilder::new(texts.len()), NullBufferBuilder::new(texts.len()));
    let ((mut bits, mut nulls), misfits) = each(texts, how, state, |(bits, nulls), text| {
        match text {
            Some(text) => {
                bits.append(values.bool(text)?);
                nulls.append_non_null();
            }
            None => {
                bits.append(false);
                nulls.append_null();
            }
        }
        Ok(())
    });
    Ok((Arc::new(BooleanArray::new(bits.finish(), nulls.finish())), misfits))
}

fn pieces(texts: &impl Texts, how: How, is_text: bool) -> Result<(ArrayRef, Vec<Misfit>)> {
    let is_checked = !is_text || texts.is_utf8();
    let mut offsets = Vec::with_capacity(texts.len() + 1);
    offsets.push(0);
    let state = (Vec::<u8>::with_capacity(texts.byte_len()), offsets, NullBufferBuilder::new(texts.len()));
    let ((bytes, offsets, mut nulls), misfits) = each(texts, how, state, |(bytes, offsets, nulls), text| {
        match text {
            Some(text) => {
                if !is_checked && str::from_utf8(text).is_err() {
                    return Err(ErrorKind::Utf8Invalid);
                }
                bytes.extend_from_slice(text);
                nulls.append_non_null();
            }
            None => nulls.append_null(),
        }
        // A block has less than 2 GiB.
        offsets.push(bytes.len() as i32);
        Ok(())
    });
    let (offsets, bytes, nulls) =
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), nulls.finish());
    let array: ArrayRef = match is_text {
        true => Arc::new(StringArray::try_new(offsets, bytes, nulls).map_err(refused)?),
        false => Arc::new(BinaryArray::try_new(offsets, bytes, nulls).map_err(refused)?),
    };
    Ok((array, misfits))
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
