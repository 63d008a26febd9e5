//! Types of columns: how fields become an array, and how the arrays of blocks become a column.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use millstream::ErrorKind;
use millstream::scan::{self, Number};

use super::fields::{Fields, Wrong};

/// The names of types. NumPy's own types have these names, too.
pub const KINDS: &[(&str, &dyn Kind)] = &[
    ("int8", &Numbers::<Int8Type>(PhantomData)),
    ("int16", &Numbers::<Int16Type>(PhantomData)),
    ("int32", &Numbers::<Int32Type>(PhantomData)),
    ("int64", &Numbers::<Int64Type>(PhantomData)),
    ("uint8", &Numbers::<UInt8Type>(PhantomData)),
    ("uint16", &Numbers::<UInt16Type>(PhantomData)),
    ("uint32", &Numbers::<UInt32Type>(PhantomData)),
    ("uint64", &Numbers::<UInt64Type>(PhantomData)),
    ("float32", &Numbers::<Float32Type>(PhantomData)),
    ("float64", &Numbers::<Float64Type>(PhantomData)),
    ("int", &Numbers::<Int64Type>(PhantomData)),
    ("float", &Numbers::<Float64Type>(PhantomData)),
    ("str", &Pieces { is_text: true }),
    ("bytes", &Pieces { is_text: false }),
];

/// A type of columns.
pub trait Kind: Sync {
    fn data_type(&self) -> DataType;

    /// The fields as values, up to the first invalid one.
    fn parse(&self, fields: &Fields<'_>) -> (ArrayRef, Option<Wrong>);

    /// A column without rows.
    fn column(&self) -> Box<dyn Growing>;
}

/// A column that grows.
pub trait Growing: Send {
    /// Appends values that [`Kind::parse`] has made.
    fn append(&mut self, values: &ArrayRef);

    /// The column, as a list of its parts.
    fn finish(self: Box<Self>) -> Vec<ArrayRef>;
}

/// Numbers, in one part, as NumPy requires.
struct Numbers<T>(PhantomData<T>);

struct GrowingNumbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType<Native: Number> + Sync> Kind for Numbers<T> {
    fn data_type(&self) -> DataType {
        T::DATA_TYPE
    }

    fn parse(&self, fields: &Fields<'_>) -> (ArrayRef, Option<Wrong>) {
        let mut values = Vec::with_capacity(fields.len());
        let mut nulls = NullBufferBuilder::new(fields.len());
        let mut wrong = None;
        for (at, field) in fields.iter() {
            if fields.is_missing(field) {
                values.push(T::Native::default());
                nulls.append_null();
                continue;
            }
            let quick = fields.separator.and_then(|ends| scan::columns(&fields.bytes[at..], ends).next()?.ok());
            match quick.map_or_else(|| scan::parse::<T::Native>(field), Ok) {
                Ok(value) => {
                    values.push(value);
                    nulls.append_non_null();
                }
                Err(kind) => {
                    wrong = Some(Wrong {
                        row: values.len(),
                        column: fields.column,
                        kind,
                        found: show(field),
                        expected: format!("a number ({})", T::DATA_TYPE.to_string().to_lowercase()),
                        at,
                    });
                    break;
                }
            }
        }
        (Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls.finish())), wrong)
    }

    fn column(&self) -> Box<dyn Growing> {
        Box::new(GrowingNumbers::<T> { values: Vec::new(), nulls: NullBufferBuilder::new(0) })
    }
}

impl<T: ArrowPrimitiveType> Growing for GrowingNumbers<T> {
    fn append(&mut self, values: &ArrayRef) {
        let Some(array) = values.as_any().downcast_ref::<PrimitiveArray<T>>() else { return };
        self.values.extend_from_slice(array.values());
        match array.nulls() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(array.len()),
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<ArrayRef> {
        vec![Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(self.values), self.nulls.finish()))]
    }
}

/// Text or bytes, in the parts in which they were created, so that they are not copied again.
struct Pieces {
    is_text: bool,
}

impl Kind for Pieces {
    fn data_type(&self) -> DataType {
        if self.is_text { DataType::Utf8 } else { DataType::Binary }
    }

    fn parse(&self, fields: &Fields<'_>) -> (ArrayRef, Option<Wrong>) {
        let mut bytes = Vec::with_capacity(fields.iter().map(|(_, field)| field.len()).sum());
        let mut offsets = Vec::with_capacity(fields.len() + 1);
        offsets.push(0);
        let mut nulls = NullBufferBuilder::new(fields.len());
        let mut wrong = None;
        for (at, field) in fields.iter() {
            if fields.is_missing(field) {
                nulls.append_null();
            } else {
                if self.is_text
                    && !fields.is_text
                    && let Err(error) = std::str::from_utf8(field)
                {
                    let start = error.valid_up_to();
                    wrong = Some(Wrong {
                        row: offsets.len() - 1,
                        column: fields.column,
                        kind: ErrorKind::Utf8Invalid,
                        found: format!("0x{:02x} in \"{}\"", field[start], show(field)),
                        expected: "UTF-8 text".to_owned(),
                        at: at + start,
                    });
                    break;
                }
                bytes.extend_from_slice(field);
                nulls.append_non_null();
            }
            // The offset fits: see `LONGEST`.
            offsets.push(bytes.len() as i32);
        }
        let (offsets, bytes) = (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes));
        let array: ArrayRef = match self.is_text {
            true => Arc::new(StringArray::new(offsets, bytes, nulls.finish())),
            false => Arc::new(BinaryArray::new(offsets, bytes, nulls.finish())),
        };
        (array, wrong)
    }

    fn column(&self) -> Box<dyn Growing> {
        Box::new(GrowingPieces(Vec::new()))
    }
}

struct GrowingPieces(Vec<ArrayRef>);

impl Growing for GrowingPieces {
    fn append(&mut self, values: &ArrayRef) {
        self.0.push(values.clone());
    }

    fn finish(self: Box<Self>) -> Vec<ArrayRef> {
        self.0
    }
}

/// Formats a field for a message: without control characters, and shortened.
fn show(field: &[u8]) -> String {
    const MOST: usize = 64;
    match field {
        [] => "an empty field".to_owned(),
        field if field.len() <= MOST => field.escape_ascii().to_string(),
        field => format!("{}...", field[..MOST].escape_ascii()),
    }
}
