//! Checks documents in memory, infers their columns, and decodes them into columns.
//!
//! A call receives many documents, and its reply is JSON, so there is no call per document or value. Node's native part
//! uses the same functions.

use millstream_bson::columns::{
    Bits, Column, Columns, DataType, Field, Inference, OnMismatch, OnMixed, OnUnknown, Options, Schema, Values,
};
use millstream_bson::{Document, Rules, join_path};
use millstream_core::{Error, ErrorKind, Result};
use serde::Deserialize as _;
use serde_json::{Value, json};
use zerocopy::IntoBytes;

use crate::failure;

/// Passes the documents at the front of these bytes to `visit`, one after another, while it returns true.
///
/// The reply has the number of `documents`, their `bytes`, and whether `visit` stopped (`isFull`). It also has `need`,
/// the length of a document that is incomplete, unless these bytes are the last, or `failure`, the error of the next
/// document, with its offset from the first byte.
fn each(bytes: &[u8], is_last: bool, mut visit: impl FnMut(&Document<'_>) -> Result<bool>) -> String {
    let (mut documents, mut at, mut goes_on) = (0, 0, true);
    while goes_on && at < bytes.len() {
        let rest = &bytes[at..];
        if !is_last && let Some(need) = missing(rest) {
            return json!({ "documents": documents, "bytes": at, "need": need }).to_string();
        }
        let visited = Document::first(rest, Rules::new())
            .and_then(|(document, _)| visit(&document).map(|goes_on| (goes_on, document.len())));
        match visited {
            Ok((more, len)) => (goes_on, at) = (more, at + len),
            Err(error) => {
                // An error without a position refers to the whole document.
                let error = if error.offset().is_none() { error.with_offset(0) } else { error };
                let failure = failure(&error, at);
                return json!({ "documents": documents, "bytes": at, "failure": failure }).to_string();
            }
        }
        documents += 1;
    }
    json!({ "documents": documents, "bytes": at, "isFull": !goes_on }).to_string()
}

/// Returns the length of the document that starts here if it is incomplete, or the size of the length field if that is
/// incomplete.
fn missing(bytes: &[u8]) -> Option<usize> {
    let Some(prefix) = bytes.first_chunk() else { return Some(4) };
    usize::try_from(i32::from_le_bytes(*prefix)).ok().filter(|&len| len > bytes.len())
}

/// Checks every byte of the documents.
pub fn check(bytes: &[u8], is_last: bool) -> String {
    each(bytes, is_last, |document| document.check().map(|()| true))
}

/// Infers the columns of the first documents.
#[derive(Default)]
pub struct Sample {
    inference: Inference,
    documents: usize,
    bytes: usize,
}

impl Sample {
    /// Examines documents until their number reaches `documents` or their size reaches `bytes`.
    pub fn observe(&mut self, bytes: &[u8], is_last: bool, most: (usize, usize)) -> String {
        let Sample { inference, documents, bytes: size } = self;
        each(bytes, is_last, |document| {
            inference.observe(document)?;
            *documents += 1;
            *size += document.len();
            Ok(*documents < most.0 && *size < most.1)
        })
    }

    /// Returns the columns as JSON: an array, or the failure.
    pub fn fields(&self, mixed_is_json: bool) -> String {
        let on_mixed = if mixed_is_json { OnMixed::Json } else { OnMixed::Error };
        match self.inference.schema(on_mixed) {
            Ok(schema) => fields_to_json(schema.fields()).to_string(),
            Err(error) => failure(&error, 0).to_string(),
        }
    }
}

/// Columns that grow by a row for each document.
pub struct Filler {
    growing: Columns,
    taken: Option<Columns>,
}

impl Filler {
    /// Creates columns as described by the JSON in `plan`: `fields`, `mismatchIsNull`, `unknown`, `batchBytes` and
    /// `memoryLimit`, which TypeScript has checked.
    ///
    /// # Errors
    /// Those of [`Schema::new`] and [`Columns::new`].
    pub fn new(plan: &str) -> Result<Filler> {
        // TypeScript has also limited its depth.
        let mut json = serde_json::Deserializer::from_str(plan);
        json.disable_recursion_limit();
        let plan = Value::deserialize(&mut json).map_err(|error| refusal(&error.to_string()))?;
        let bytes = |name: &str| plan[name].as_u64().unwrap_or(0) as usize;
        let options = Options::new()
            .on_mismatch(if plan["mismatchIsNull"] == true { OnMismatch::Null } else { OnMismatch::Error })
            .on_unknown(match plan["unknown"].as_str() {
                Some("error") => OnUnknown::Error,
                Some("count") => OnUnknown::Count,
                _ => OnUnknown::Ignore,
            })
            .batch_bytes(bytes("batchBytes"))
            .memory_limit(bytes("memoryLimit"));
        Ok(Filler { growing: Columns::new(&Schema::new(fields(&plan["fields"])?)?, options)?, taken: None })
    }

    /// Appends the documents in these bytes, until a batch is full.
    pub fn append(&mut self, bytes: &[u8], is_last: bool) -> String {
        self.release();
        let growing = &mut self.growing;
        each(bytes, is_last, |document| growing.append(document).map(|()| !growing.is_full()))
    }

    /// Takes the rows, which are then in `parts`. The reply has the counters and the length of each part.
    pub fn take(&mut self) -> String {
        let taken = self.taken.insert(self.growing.take());
        let absent: Vec<&str> = taken.absent().map(Field::name).collect();
        let lengths: Vec<usize> = parts(taken).iter().map(|part| part.len()).collect();
        json!({
            "rows": taken.len(),
            "mismatched": taken.mismatched(),
            "unknown": taken.unknown(),
            "absent": absent,
            "parts": lengths,
        })
        .to_string()
    }

    /// The memory of the rows that were taken last: three parts of each column (validity, values or offsets, and the
    /// bytes that offsets refer to), then those of its inner columns.
    pub fn parts(&self) -> Vec<&[u8]> {
        self.taken.as_ref().map(parts).unwrap_or_default()
    }

    /// Drops the parts.
    pub fn release(&mut self) {
        self.taken = None;
    }
}

fn refusal(found: &str) -> Error {
    Error::new(ErrorKind::InvalidOption).with_found(found).with_expected("a schema")
}

fn fields(plan: &Value) -> Result<Vec<Field>> {
    plan.as_array().into_iter().flatten().map(field).collect()
}

fn field(plan: &Value) -> Result<Field> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let keys: Vec<String> = plan["keys"].as_array().into_iter().flatten().map(text).collect();
    let field = Field::new(&join_path(&keys), data_type(&plan["type"])?)?.named(text(&plan["name"]));
    Ok(if plan["nullable"] == true { field } else { field.required() })
}

/// The scalar types, with the names that JavaScript uses.
const SCALARS: [(&str, DataType); 12] = [
    ("null", DataType::Null),
    ("bool", DataType::Bool),
    ("int", DataType::Int32),
    ("long", DataType::Int64),
    ("double", DataType::Double),
    ("string", DataType::String),
    ("binData", DataType::Binary),
    ("objectId", DataType::ObjectId),
    ("date", DataType::DateTime),
    ("timestamp", DataType::Timestamp),
    ("decimal", DataType::Decimal128),
    ("json", DataType::Json),
];

fn data_type(plan: &Value) -> Result<DataType> {
    if let Some(item) = plan.get("list") {
        return Ok(DataType::List(Box::new(data_type(item)?)));
    }
    if let Some(members) = plan.get("struct") {
        return Ok(DataType::Struct(fields(members)?));
    }
    let scalar = SCALARS.into_iter().find(|(name, _)| plan == name);
    scalar.map(|(_, scalar)| scalar).ok_or_else(|| refusal(&plan.to_string()))
}

fn fields_to_json(fields: &[Field]) -> Value {
    let field = |field: &Field| {
        json!({
            "name": field.name(),
            "keys": field.keys(),
            "type": type_to_json(field.data_type()),
            "nullable": field.is_nullable(),
        })
    };
    fields.iter().map(field).collect()
}

fn type_to_json(of: &DataType) -> Value {
    match of {
        DataType::List(item) => json!({ "list": type_to_json(item) }),
        DataType::Struct(members) => json!({ "struct": fields_to_json(members) }),
        scalar => SCALARS.iter().find(|(_, of)| of == scalar).map_or(Value::Null, |(name, _)| Value::from(*name)),
    }
}

fn parts(columns: &Columns) -> Vec<&[u8]> {
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
        Values::Null | Values::Struct(_) => (&[], &[]),
        _ => unreachable!("JavaScript cannot request other types"),
    };
    parts.extend([values, bytes]);
    match column.values() {
        Values::List(lists) => add_parts(lists.items(), parts),
        Values::Struct(members) => members.columns().iter().for_each(|column| add_parts(column, parts)),
        _ => {}
    }
}
