//! Converts columns to Arrow arrays without copying: the vectors become the arrays' buffers.
//!
//! For types that Arrow lacks, the field's metadata contains the type under the key `bson`: `objectId`, `decimal`,
//! `timestamp`. JSON text has the extension type `arrow.json`. All arrays are created with the safe constructors of
//! the `arrow` crates, which check lengths and UTF-8 again.

use super::schema::MOST_DEPTH;
use super::{Batches, Bits, Column, Columns, DataType, Field, Pieces, Reject, Schema, Values};
use crate::wire::cursor::Key;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, NullArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, RecordBatchReader, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType as ArrowType, Field as ArrowField, Fields, SchemaRef, TimeUnit};
use millstream_core::{Error, ErrorKind, ReadRecords, Result};
use std::collections::HashMap;
use std::sync::Arc;

impl Schema {
    /// Converts the types to Arrow's.
    ///
    /// ```
    /// use millstream::bson::columns::{DataType, Field, Schema};
    /// let schema = Schema::new([Field::new("name", DataType::String)?])?.to_arrow();
    /// assert_eq!(schema.field(0).data_type(), &arrow_schema::DataType::Utf8);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn to_arrow(&self) -> SchemaRef {
        Arc::new(arrow_schema::Schema::new(fields(self.fields())))
    }

    /// Converts Arrow's types back: the inverse of [`to_arrow`](Schema::to_arrow). Each column is found by its name.
    ///
    /// ```
    /// use millstream::bson::columns::{DataType, Field, Schema};
    /// let id = Field::of_key("_id", DataType::ObjectId);
    /// let schema = Schema::new([id, Field::of_key("n", DataType::Int64).required()])?;
    /// assert_eq!(Schema::from_arrow(&schema.to_arrow())?, schema);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidOption`](ErrorKind::InvalidOption) for a type that is not one of [`DataType`], and as for
    /// [`Schema::new`].
    pub fn from_arrow(schema: &arrow_schema::Schema) -> Result<Schema> {
        Schema::new(fields_of(schema.fields(), 0)?)
    }
}

/// The recursion ends where [`Schema::new`] refuses the depth.
fn fields_of(fields: &Fields, depth: usize) -> Result<Vec<Field>> {
    let field_of = |field: &Arc<ArrowField>| {
        let of = Field::of_key(field.name(), type_of(field, depth)?);
        Ok(if field.is_nullable() { of } else { of.required() })
    };
    fields.iter().map(field_of).collect()
}

fn type_of(field: &ArrowField, depth: usize) -> Result<DataType> {
    let metadata = |key: &str| field.metadata().get(key).map(String::as_str);
    let of = match (field.data_type(), metadata("bson")) {
        (ArrowType::Null, _) => DataType::Null,
        (ArrowType::Boolean, _) => DataType::Bool,
        (ArrowType::Int32, _) => DataType::Int32,
        (ArrowType::Int64, _) => DataType::Int64,
        (ArrowType::Float64, _) => DataType::Double,
        (ArrowType::Utf8, _) if metadata("ARROW:extension:name") == Some("arrow.json") => DataType::Json,
        (ArrowType::Utf8, _) => DataType::String,
        (ArrowType::Binary, _) => DataType::Binary,
        (ArrowType::FixedSizeBinary(12), Some("objectId")) => DataType::ObjectId,
        (ArrowType::FixedSizeBinary(16), Some("decimal")) => DataType::Decimal128,
        (ArrowType::UInt64, Some("timestamp")) => DataType::Timestamp,
        (ArrowType::Timestamp(TimeUnit::Millisecond, Some(zone)), _) if &**zone == "UTC" => DataType::DateTime,
        (ArrowType::List(item), _) if item.is_nullable() && depth <= MOST_DEPTH => {
            DataType::List(Box::new(type_of(item, depth + 1)?))
        }
        (ArrowType::Struct(members), _) if depth <= MOST_DEPTH => DataType::Struct(fields_of(members, depth + 1)?),
        (other, _) => {
            let found = match other {
                ArrowType::List(item) if !item.is_nullable() => "a list whose elements are never null".to_string(),
                ArrowType::List(_) | ArrowType::Struct(_) => format!("types nested deeper than {MOST_DEPTH}"),
                other => format!("the type {other}"),
            };
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("{found} in column {:?}", field.name()))
                .with_expected(
                    "a type of BSON: null, bool, int32, int64, float64, string, binary, timestamp[ms, UTC], \
                     bson.objectId, bson.decimal, bson.timestamp, json, or a list or struct of them",
                ));
        }
    };
    Ok(of)
}

fn fields(fields: &[Field]) -> Fields {
    fields.iter().map(|field| Arc::new(arrow_field(field.name(), field.data_type(), field.is_nullable()))).collect()
}

fn arrow_field(name: &str, data_type: &DataType, nullable: bool) -> ArrowField {
    let arrow_type = match data_type {
        DataType::Null => ArrowType::Null,
        DataType::Bool => ArrowType::Boolean,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 => ArrowType::Int64,
        DataType::Double => ArrowType::Float64,
        DataType::String | DataType::Json => ArrowType::Utf8,
        DataType::Binary => ArrowType::Binary,
        DataType::ObjectId => ArrowType::FixedSizeBinary(12),
        DataType::DateTime => ArrowType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        DataType::Timestamp => ArrowType::UInt64,
        DataType::Decimal128 => ArrowType::FixedSizeBinary(16),
        DataType::List(item) => ArrowType::List(Arc::new(arrow_field("item", item, true))),
        DataType::Struct(members) => ArrowType::Struct(fields(members)),
    };
    let metadata: &[(&str, &str)] = match data_type {
        DataType::ObjectId => &[("bson", "objectId")],
        DataType::Decimal128 => &[("bson", "decimal")],
        DataType::Timestamp => &[("bson", "timestamp")],
        DataType::Json => &[("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")],
        _ => &[],
    };
    let metadata: HashMap<String, String> =
        metadata.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    ArrowField::new(name, arrow_type, nullable).with_metadata(metadata)
}

impl Columns {
    /// Converts the rows to an Arrow record batch without copying them.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if Arrow rejects the arrays.
    pub fn into_record_batch(mut self) -> Result<RecordBatch> {
        let schema = self.schema.to_arrow();
        let places = std::mem::take(&mut self.places);
        let arrays = places.iter().zip(schema.fields()).map(|(place, field)| {
            let column = take(&mut self.root.columns, place).ok_or_else(|| refused("a column twice"))?;
            array(column, field.data_type())
        });
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(refused)
    }

    /// Exports the rows through the Arrow C data interface, as an array of structs, for a program in another language.
    /// Nothing is copied. <https://arrow.apache.org/docs/format/CDataInterface.html>
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if Arrow rejects the arrays.
    pub fn into_ffi(self) -> Result<(FFI_ArrowArray, FFI_ArrowSchema)> {
        let batch = self.into_record_batch()?;
        to_ffi(&StructArray::from(batch).into_data()).map_err(refused)
    }
}

/// Takes the column at this position out of the tree.
fn take(columns: &mut [Column], place: &[usize]) -> Option<Column> {
    let (&index, inside) = place.split_first()?;
    let column = columns.get_mut(index)?;
    match (&mut column.values, inside) {
        (_, []) => {
            let nothing = Column {
                values: Values::Null,
                validity: None,
                key: String::new(),
                in_documents: Key::default(),
                ..*column
            };
            Some(std::mem::replace(column, nothing))
        }
        (Values::Struct(members), _) => take(&mut members.columns, inside),
        _ => None,
    }
}

#[cold]
fn refused(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal).with_found(error.to_string()).with_expected("columns that Arrow accepts")
}

/// Converts the column to an array of this type, which `arrow_field` chose for it.
fn array(column: Column, arrow_type: &ArrowType) -> Result<ArrayRef> {
    let len = column.len;
    let nulls = column.validity.map(|bits| NullBuffer::new(boolean(bits)));
    Ok(match (column.values, arrow_type) {
        (Values::Null, _) => Arc::new(NullArray::new(len)),
        (Values::Bool(bits), _) => Arc::new(BooleanArray::new(boolean(bits), nulls)),
        (Values::Int32(values), _) => Arc::new(primitive::<Int32Type>(values, nulls)?),
        (Values::Int64(values), _) => Arc::new(primitive::<Int64Type>(values, nulls)?),
        (Values::Double(values), _) => Arc::new(primitive::<Float64Type>(values, nulls)?),
        (Values::Timestamp(values), _) => Arc::new(primitive::<UInt64Type>(values, nulls)?),
        (Values::DateTime(values), _) => {
            Arc::new(primitive::<TimestampMillisecondType>(values, nulls)?.with_timezone("UTC"))
        }
        (Values::ObjectId(bytes), _) => Arc::new(fixed(12, bytes, nulls)?),
        (Values::Decimal128(bytes), _) => Arc::new(fixed(16, bytes, nulls)?),
        (Values::String(pieces) | Values::Json(pieces), _) => {
            let Pieces { offsets, bytes } = pieces;
            Arc::new(StringArray::try_new(ends(offsets), Buffer::from_vec(bytes), nulls).map_err(refused)?)
        }
        (Values::Binary(pieces), _) => {
            let Pieces { offsets, bytes } = pieces;
            Arc::new(BinaryArray::try_new(ends(offsets), Buffer::from_vec(bytes), nulls).map_err(refused)?)
        }
        (Values::List(lists), ArrowType::List(item)) => {
            let items = array(*lists.items, item.data_type())?;
            Arc::new(ListArray::try_new(item.clone(), ends(lists.offsets), items, nulls).map_err(refused)?)
        }
        (Values::Struct(members), ArrowType::Struct(fields)) => {
            let columns = members.columns.into_iter().zip(fields);
            let arrays = columns.map(|(column, field)| array(column, field.data_type())).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, len).map_err(refused)?)
        }
        (_, other) => return Err(refused(format!("the type {other}"))),
    })
}

fn boolean(bits: Bits) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(bits.bytes), 0, bits.len)
}

fn ends(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

fn primitive<T: arrow_array::types::ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> Result<PrimitiveArray<T>> {
    PrimitiveArray::try_new(ScalarBuffer::from(values), nulls).map_err(refused)
}

fn fixed(size: i32, bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<FixedSizeBinaryArray> {
    FixedSizeBinaryArray::try_new(size, Buffer::from_vec(bytes), nulls).map_err(refused)
}

/// The documents of a stream as Arrow record batches, for example for Parquet, or for another program through Arrow's
/// stream interface (`arrow_array::ffi_stream`).
#[derive(Debug)]
pub struct RecordBatches<R> {
    batches: Batches<R>,
    schema: SchemaRef,
}

impl<R: ReadRecords> RecordBatches<R> {
    /// Converts the batches that have not been read yet.
    pub fn new(batches: Batches<R>) -> RecordBatches<R> {
        let schema = batches.columns().schema().to_arrow();
        RecordBatches { batches, schema }
    }

    /// The underlying batches.
    pub fn batches(&self) -> &Batches<R> {
        &self.batches
    }

    /// Returns the underlying batches, positioned after the last one that was read.
    pub fn into_batches(self) -> Batches<R> {
        self.batches
    }

    /// Takes the documents that were left out: see [`Batches::take_rejects`].
    pub fn take_rejects(&mut self) -> Vec<Reject> {
        self.batches.take_rejects()
    }

    /// Returns the next batch; `None` at the end, which means that the source succeeded.
    ///
    /// # Errors
    /// Returns the errors of [`Batches::next_batch`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.batches.next_batch()?.map(Columns::into_record_batch).transpose()
    }
}

impl<R: ReadRecords> Iterator for RecordBatches<R> {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl<R: ReadRecords> RecordBatchReader for RecordBatches<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
