//! A column's memory: plain vectors, in the layout of Arrow.

use super::schema::{DataType, Field};
use crate::wire::cursor::Key;
use std::collections::HashMap;

/// A column: its values, and which of them are missing.
///
/// The slot of a missing value contains zeros; if values have no fixed size, it is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub(super) key: String,
    /// The key, in the form used for searching documents.
    pub(super) in_documents: Key,
    pub(super) nullable: bool,
    /// Whether this column is not in the schema but only on the path to a column that is.
    pub(super) is_path: bool,
    pub(super) len: usize,
    /// The number of rows in which the member was missing.
    pub(super) missing: usize,
    /// The last of these rows, counted from 1.
    pub(super) last_missing: usize,
    /// Which values exist; empty if all do.
    pub(super) validity: Option<Bits>,
    pub(super) values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[repr(u8)] // a byte to check for each value; otherwise the variant would be hidden in a vector's capacity
pub enum Values {
    /// No values.
    Null,
    /// Booleans.
    Bool(Bits),
    /// 32-bit integers.
    Int32(Vec<i32>),
    /// 64-bit integers.
    Int64(Vec<i64>),
    /// Floating point numbers.
    Double(Vec<f64>),
    /// Milliseconds since 1970.
    DateTime(Vec<i64>),
    /// MongoDB's internal timestamps: the seconds times 2³² plus the increment.
    Timestamp(Vec<u64>),
    /// Object ids, 12 bytes each.
    ObjectId(Vec<u8>),
    /// Decimal numbers, 16 bytes each.
    Decimal128(Vec<u8>),
    /// Text.
    String(Pieces),
    /// Bytes.
    Binary(Pieces),
    /// The text of relaxed Extended JSON.
    Json(Pieces),
    /// Arrays.
    List(Lists),
    /// Documents: a column for each member, all of them as long as this one.
    Struct(Members),
}

/// Pieces of any length in one block: piece i is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    pub(super) offsets: Vec<i32>,
    pub(super) bytes: Vec<u8>,
}

/// Arrays in one column: array i is its values `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists {
    pub(super) offsets: Vec<i32>,
    pub(super) items: Box<Column>,
}

/// The columns of the members of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    pub(super) columns: Vec<Column>,
    /// The positions of columns by key, if there are enough columns to make this worthwhile.
    index: HashMap<Vec<u8>, usize>,
}

/// Up to this many columns, a linear search is used.
const FEW: usize = 16;

/// One bit for each row, starting with the lowest bit of each byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

impl Column {
    pub(super) fn of_type(key: String, nullable: bool, data_type: &DataType) -> Column {
        let values = match data_type {
            DataType::Null => Values::Null,
            DataType::Bool => Values::Bool(Bits::default()),
            DataType::Int32 => Values::Int32(Vec::new()),
            DataType::Int64 => Values::Int64(Vec::new()),
            DataType::Double => Values::Double(Vec::new()),
            DataType::DateTime => Values::DateTime(Vec::new()),
            DataType::Timestamp => Values::Timestamp(Vec::new()),
            DataType::ObjectId => Values::ObjectId(Vec::new()),
            DataType::Decimal128 => Values::Decimal128(Vec::new()),
            DataType::String => Values::String(Pieces::new()),
            DataType::Binary => Values::Binary(Pieces::new()),
            DataType::Json => Values::Json(Pieces::new()),
            DataType::List(item) => {
                let items = Box::new(Column::of_type("item".to_string(), true, item));
                Values::List(Lists { offsets: vec![0], items })
            }
            DataType::Struct(fields) => {
                let mut members = Members::default();
                for field in fields {
                    members.push(Column::of_field(field));
                }
                Values::Struct(members)
            }
        };
        let in_documents = Key::new(&key);
        Column {
            key,
            in_documents,
            nullable,
            is_path: false,
            len: 0,
            missing: 0,
            last_missing: 0,
            validity: None,
            values,
        }
    }

    pub(super) fn of_field(field: &Field) -> Column {
        let key = field.keys().last().cloned().unwrap_or_default();
        Column::of_type(key, field.is_nullable(), field.data_type())
    }

    /// The key of the column's values, which is the last key of the field's path.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which values exist; `None` if all do.
    pub fn validity(&self) -> Option<&Bits> {
        self.validity.as_ref()
    }

    /// Whether there is a value in this row.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn is_valid(&self, row: usize) -> bool {
        assert!(row < self.len, "row {row} of {}", self.len);
        !matches!(self.values, Values::Null) && self.validity.as_ref().is_none_or(|bits| bits.get(row))
    }

    /// The values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The minimum number of bytes per row.
    pub(super) fn width(&self) -> usize {
        1 + match &self.values {
            Values::Null => 0,
            Values::Bool(_) => 1,
            Values::Int32(_) | Values::String(_) | Values::Binary(_) | Values::Json(_) | Values::List(_) => 4,
            Values::Int64(_) | Values::Double(_) | Values::DateTime(_) | Values::Timestamp(_) => 8,
            Values::ObjectId(_) => 12,
            Values::Decimal128(_) => 16,
            Values::Struct(members) => members.width(),
        }
    }

    /// Appends a row without a value.
    pub(super) fn append_null(&mut self) {
        match &mut self.values {
            Values::Null => {}
            Values::Bool(bits) => bits.push(false),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) | Values::DateTime(values) => values.push(0),
            Values::Double(values) => values.push(0.0),
            Values::Timestamp(values) => values.push(0),
            Values::ObjectId(bytes) => bytes.extend_from_slice(&[0; 12]),
            Values::Decimal128(bytes) => bytes.extend_from_slice(&[0; 16]),
            Values::String(pieces) | Values::Binary(pieces) | Values::Json(pieces) => pieces.end(),
            Values::List(lists) => lists.end(),
            Values::Struct(members) => members.columns.iter_mut().for_each(Column::append_null),
        }
        self.validity.get_or_insert_with(|| Bits::ones(self.len)).push(false);
        self.len += 1;
    }

    /// Marks the value that has been appended as valid.
    #[inline]
    pub(super) fn appended(&mut self) {
        self.len += 1;
        if let Some(bits) = &mut self.validity {
            bits.push(true);
        }
    }

    /// Removes all rows after these, including incomplete ones.
    pub(super) fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::Null => {}
            Values::Bool(bits) => bits.truncate(rows),
            Values::Int32(values) => values.truncate(rows),
            Values::Int64(values) | Values::DateTime(values) => values.truncate(rows),
            Values::Double(values) => values.truncate(rows),
            Values::Timestamp(values) => values.truncate(rows),
            Values::ObjectId(bytes) => bytes.truncate(rows * 12),
            Values::Decimal128(bytes) => bytes.truncate(rows * 16),
            Values::String(pieces) | Values::Binary(pieces) | Values::Json(pieces) => pieces.truncate(rows),
            Values::List(lists) => {
                lists.offsets.truncate(rows + 1);
                lists.items.truncate(last(&lists.offsets));
            }
            Values::Struct(members) => members.columns.iter_mut().for_each(|column| column.truncate(rows)),
        }
        if let Some(bits) = &mut self.validity {
            bits.truncate(rows);
        }
        if self.last_missing > rows {
            self.missing -= 1;
            self.last_missing = 0;
        }
        self.len = self.len.min(rows);
    }
}

impl Members {
    /// The columns, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Adds a column, and returns its position.
    pub(super) fn push(&mut self, column: Column) -> usize {
        self.columns.push(column);
        if self.columns.len() > FEW {
            let known = self.index.len();
            let added = self.columns.iter().enumerate().skip(known);
            self.index.extend(added.map(|(index, column)| (column.key.clone().into_bytes(), index)));
        }
        self.columns.len() - 1
    }

    /// Returns the position of the column with this key. The search begins at `start`.
    pub(super) fn find(&self, key: &[u8], start: usize) -> Option<usize> {
        if self.columns.len() > FEW {
            return self.index.get(key).copied();
        }
        let is_it = |column: &Column| column.key.as_bytes() == key;
        match self.columns.get(start..).and_then(|rest| rest.iter().position(is_it)) {
            Some(index) => Some(start + index),
            None => self.columns.iter().take(start).position(is_it),
        }
    }

    pub(super) fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }
}

/// The end of the last piece. Offsets are never empty, and sizes are limited so that they fit.
fn last(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |&end| end as usize)
}

impl Pieces {
    fn new() -> Pieces {
        Pieces { offsets: vec![0], bytes: Vec::new() }
    }

    /// The offsets: a 0, followed by the end of each piece.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// All pieces, concatenated.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The piece of this row; `None` after the last.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let &[start, end] = self.offsets.get(row..)?.first_chunk()?;
        self.bytes.get(start as usize..end as usize)
    }

    #[inline]
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.end();
    }

    /// Ends the piece whose bytes have just been appended.
    #[inline]
    pub(super) fn end(&mut self) {
        self.offsets.push(self.bytes.len() as i32); // less than 2 GiB: see `Columns::append`
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.bytes.truncate(last(&self.offsets));
    }
}

impl Lists {
    /// The offsets: a 0, followed by the end of each array.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// The values of all arrays, concatenated.
    pub fn items(&self) -> &Column {
        &self.items
    }

    /// Ends the array whose values have just been appended.
    #[inline]
    pub(super) fn end(&mut self) {
        self.offsets.push(self.items.len as i32); // less than 2³¹: see `Columns::append`
    }
}

impl Bits {
    /// The bytes. Unused bits of the last byte are 0.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a bit.
    ///
    /// # Panics
    /// Panics if `index` is out of range.
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "bit {index} of {}", self.len);
        self.bytes[index / 8] >> (index % 8) & 1 == 1
    }

    fn ones(len: usize) -> Bits {
        let mut bits = Bits { bytes: vec![0xff; len.div_ceil(8)], len };
        bits.clear_after();
        bits
    }

    #[inline]
    pub(super) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(byte) = self.bytes.last_mut() {
            *byte |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
    }

    fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.bytes.truncate(len.div_ceil(8));
            self.clear_after();
        }
    }

    /// Clears the unused bits of the last byte.
    fn clear_after(&mut self) {
        if let (Some(byte), used @ 1..) = (self.bytes.last_mut(), self.len % 8) {
            *byte &= (1 << used) - 1;
        }
    }
}
