//! Documents as columns: the core's, filled from bytes of JavaScript's and copied out once.
//!
//! A call takes the documents of a whole batch, and another one hands all columns out: none is for a value.

use std::cell::RefCell;

use millstream::bson::columns::{
    Bits, Column, Columns, DataType, Field, OnMismatch, OnUnknown, Options, Schema, Values,
};
use millstream::bson::{Document, Rules, join_path};
use millstream::{Error, Result};
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;
use zerocopy::IntoBytes;

use crate::error::Failure;

/// A column, or a member of one.
#[napi(object, object_to_js = false)]
pub struct NativeField {
    pub name: String,
    /// From the outermost on.
    pub keys: Vec<String>,
    /// The name of its type; `list` or `struct`.
    pub kind: String,
    pub nullable: bool,
    /// The members of a struct, or what a list has, as the only one.
    pub inside: Vec<NativeField>,
}

#[napi(object, object_to_js = false)]
pub struct NativeColumnsOptions {
    pub mismatch_is_null: bool,
    pub unknown_is_error: bool,
    pub batch_bytes: u32,
    pub memory_limit: u32,
}

/// How far `append` came.
#[napi(object, object_from_js = false)]
pub struct Appended {
    /// How many documents are rows now.
    pub rows: u32,
    /// How many bytes these have.
    pub bytes: i64,
    /// What is wrong with the next one, where its offset is counted from the first byte of this call.
    pub failure: Option<Failure>,
}

/// Rows that have been taken.
#[napi(object, object_from_js = false)]
pub struct Taken {
    pub rows: u32,
    /// Values that did not fit, and members that no column reads, from the beginning on.
    pub mismatched: i64,
    pub unknown: i64,
    /// How many bytes each part has.
    pub parts: Vec<u32>,
}

/// Columns that grow by a row for each document.
#[napi]
pub struct NativeColumns {
    growing: RefCell<Columns>,
    taken: RefCell<Option<Columns>>,
}

#[napi]
impl NativeColumns {
    #[napi(constructor)]
    pub fn new(fields: Vec<NativeField>, options: NativeColumnsOptions) -> napi::Result<NativeColumns> {
        let columns = columns(fields, &options).map_err(|error| napi::Error::from_reason(error.to_string()))?;
        Ok(NativeColumns { growing: RefCell::new(columns), taken: RefCell::default() })
    }

    /// Appends the documents in these bytes, up to what fills a batch.
    #[napi(catch_unwind)]
    pub fn append(&self, bytes: BufferSlice) -> Appended {
        let mut columns = self.growing.borrow_mut();
        let (before, mut at) = (columns.len(), 0);
        let mut failure = None;
        while at < bytes.len() && !columns.is_full() && failure.is_none() {
            let appended = Document::first(&bytes[at..], Rules::new())
                .and_then(|(document, _)| columns.append(&document).map(|()| document.len()));
            match appended {
                Ok(len) => at += len,
                Err(error) => failure = Some(Failure::behind(&error, at)),
            }
        }
        Appended { rows: (columns.len() - before) as u32, bytes: at as i64, failure }
    }

    #[napi(getter)]
    pub fn is_full(&self) -> bool {
        self.growing.borrow().is_full()
    }

    /// Takes the rows, for `fill` to hand out; there is none then.
    #[napi(catch_unwind)]
    pub fn take(&self) -> Taken {
        let taken = self.growing.borrow_mut().take();
        let parts = parts_of(&taken).iter().map(|part| part.len() as u32).collect();
        let (mismatched, unknown) = (taken.mismatched() as i64, taken.unknown() as i64);
        let rows = taken.len() as u32;
        *self.taken.borrow_mut() = Some(taken);
        Taken { rows, mismatched, unknown, parts }
    }

    /// Copies the parts that have bytes into memory of that many bytes each, and forgets them. False if one is of another size.
    #[napi(catch_unwind)]
    pub fn fill(&self, mut targets: Vec<BufferSlice>) -> bool {
        let Some(taken) = self.taken.borrow_mut().take() else { return false };
        let parts: Vec<&[u8]> = parts_of(&taken).into_iter().filter(|part| !part.is_empty()).collect();
        if parts.len() != targets.len() || parts.iter().zip(&targets).any(|(part, target)| part.len() != target.len()) {
            return false;
        }
        for (target, part) in targets.iter_mut().zip(parts) {
            target.copy_from_slice(part);
        }
        true
    }
}

fn columns(fields: Vec<NativeField>, options: &NativeColumnsOptions) -> Result<Columns> {
    let schema = Schema::new(fields.into_iter().map(field).collect::<Result<Vec<Field>>>()?)?;
    let options = Options::new()
        .on_mismatch(if options.mismatch_is_null { OnMismatch::Null } else { OnMismatch::Error })
        .on_unknown(if options.unknown_is_error { OnUnknown::Error } else { OnUnknown::Count })
        .batch_bytes(options.batch_bytes as usize)
        .memory_limit(options.memory_limit as usize);
    Columns::new(&schema, options)
}

/// Recursion as deep as the types: TypeScript has refused those that are nested deeper than 64.
fn field(field: NativeField) -> Result<Field> {
    let made = Field::new(&join_path(&field.keys), data_type(&field.kind, field.inside)?)?.named(field.name);
    Ok(if field.nullable { made } else { made.required() })
}

fn data_type(kind: &str, inside: Vec<NativeField>) -> Result<DataType> {
    Ok(match kind {
        "null" => DataType::Null,
        "bool" => DataType::Bool,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "double" => DataType::Double,
        "string" => DataType::String,
        "binData" => DataType::Binary,
        "objectId" => DataType::ObjectId,
        "date" => DataType::DateTime,
        "timestamp" => DataType::Timestamp,
        "decimal" => DataType::Decimal128,
        "json" => DataType::Json,
        "struct" => DataType::Struct(inside.into_iter().map(field).collect::<Result<_>>()?),
        "list" => {
            let item = inside.into_iter().next().map(|item| data_type(&item.kind, item.inside));
            DataType::List(Box::new(item.unwrap_or(Ok(DataType::Null))?))
        }
        _ => return Err(Error::new(millstream::ErrorKind::InvalidOption).with_found(kind).with_expected("a type")),
    })
}

/// Three of each column: validity, values or offsets, and the bytes that offsets are for; then those of what is inside.
fn parts_of(columns: &Columns) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    columns.iter().for_each(|column| add_parts(column, &mut parts));
    parts
}

fn add_parts<'a>(column: &'a Column, parts: &mut Vec<&'a [u8]>) {
    parts.push(column.validity().map_or(&[], Bits::bytes));
    let (values, bytes): (&[u8], &[u8]) = match column.values() {
        Values::Bool(bits) => (bits.bytes(), &[]),
        Values::Int32(values) => (values.as_bytes(), &[]),
        Values::Int64(values) | Values::DateTime(values) => (values.as_bytes(), &[]),
        Values::Double(values) => (values.as_bytes(), &[]),
        Values::Timestamp(values) => (values.as_bytes(), &[]),
        Values::ObjectId(values) | Values::Decimal128(values) => (values, &[]),
        Values::String(pieces) | Values::Binary(pieces) | Values::Json(pieces) => {
            (pieces.offsets().as_bytes(), pieces.bytes())
        }
        Values::List(lists) => (lists.offsets().as_bytes(), &[]),
        // No values of its own; a type that has come since cannot be asked for.
        _ => (&[], &[]),
    };
    parts.extend([values, bytes]);
    match column.values() {
        Values::List(lists) => add_parts(lists.items(), parts),
        Values::Struct(members) => members.columns().iter().for_each(|column| add_parts(column, parts)),
        _ => {}
    }
}
