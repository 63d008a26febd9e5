//! One traversal of a document that appends a row to every column.

use super::column::{Column, Lists, Members, Values};
use super::{LostTypes, OnMismatch, OnUnknown, Options};
use crate::scalar::shown;
use crate::{Cursor, ElementType, FromBson, Utf8};
use millstream_core::put::Spare;
use millstream_core::{Error, ErrorKind, Result};

/// The options of the traversal, and its counts.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) options: Options,
    pub(super) counts: Counts,
}

/// The counts of the traversal. A row that fails leaves them unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// An upper limit for the size of the columns in bytes.
    pub(super) used: usize,
    /// The number of members without a column and of duplicate keys.
    pub(super) unknown: u64,
    /// The number of values that did not fit and became null.
    pub(super) mismatched: u64,
    pub(super) lost_types: LostTypes,
}

impl Walk {
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.counts.used = self.counts.used.saturating_add(bytes);
        if self.counts.used > self.options.memory_limit { Err(self.too_much()) } else { Ok(()) }
    }

    #[cold]
    fn too_much(&self) -> Error {
        Error::new(ErrorKind::MemoryLimit)
            .with_found(format!("columns of {} bytes or more", self.counts.used))
            .with_expected(format!("at most {}", self.options.memory_limit))
    }
}

impl Members {
    /// Appends the document at the cursor as row `row`. Afterwards every column contains this row.
    pub(super) fn append(&mut self, cursor: &mut Cursor<'_>, row: usize, walk: &mut Walk) -> Result<()> {
        let start = cursor.offset();
        let outer = cursor.enter()?;
        let (mut expected, mut filled) = (0, 0);
        loop {
            // Members usually come in the same order.
            let predicted = self.columns.get(expected).and_then(|column| cursor.next_if_key(&column.in_documents));
            let (index, kind) = match predicted {
                Some(kind) => (expected, kind),
                None => {
                    let Some((kind, key)) = cursor.next()? else { break };
                    let Some(index) = self.find(key, expected) else {
                        pass_unknown(cursor, kind, walk)?;
                        continue;
                    };
                    (index, kind)
                }
            };
            expected = index + 1;
            let column = &mut self.columns[index];
            if column.len > row {
                pass_repeated(&column.key, cursor, kind, walk)?;
                continue;
            }
            column.append(kind, cursor, walk)?;
            filled += 1;
        }
        cursor.leave(outer);
        if filled < self.columns.len() {
            self.append_missing(row).map_err(|error| error.with_offset(start as u64))?;
        }
        Ok(())
    }

    /// Appends the array at the cursor as row `row`. The keys of its elements are their positions.
    fn append_elements(&mut self, cursor: &mut Cursor<'_>, row: usize, walk: &mut Walk) -> Result<()> {
        let start = cursor.offset();
        let outer = cursor.enter()?;
        let (mut position, mut filled) = (0_u64, 0);
        while let Some(kind) = cursor.next_in_array()? {
            let mut text = [0; 20];
            let mut spare = Spare::over(&mut text);
            spare.put(position);
            position += 1;
            match self.find(spare.as_bytes(), filled) {
                Some(index) => self.columns[index].append(kind, cursor, walk)?,
                None => {
                    pass_unknown(cursor, kind, walk)?;
                    continue;
                }
            }
            filled += 1;
        }
        cursor.leave(outer);
        if filled < self.columns.len() {
            self.append_missing(row).map_err(|error| error.with_offset(start as u64))?;
        }
        Ok(())
    }

    /// Appends the missing values of a row.
    fn append_missing(&mut self, row: usize) -> Result<()> {
        for column in &mut self.columns {
            if column.len == row {
                column.append_missing()?;
                column.missing += 1;
                column.last_missing = row + 1;
            }
        }
        Ok(())
    }
}

/// Skips a value without a column.
#[cold]
fn pass_unknown(cursor: &mut Cursor<'_>, kind: ElementType, walk: &mut Walk) -> Result<()> {
    walk.counts.unknown += 1;
    if walk.options.unknown == OnUnknown::Error {
        return Err(Error::new(ErrorKind::ShapeMismatch)
            .with_found("a member that is not in the schema")
            .with_expected("only members of the schema")
            .with_offset(cursor.offset() as u64));
    }
    cursor.skip(kind)
}

/// Skips a value with a duplicate key, because the column contains the first value.
#[cold]
fn pass_repeated(key: &str, cursor: &mut Cursor<'_>, kind: ElementType, walk: &mut Walk) -> Result<()> {
    walk.counts.unknown += 1;
    if walk.options.unknown != OnUnknown::Count {
        return Err(Error::new(ErrorKind::ShapeMismatch)
            .with_found(format!("the key {} twice", shown(key)))
            .with_expected("each key once")
            .with_offset(cursor.offset() as u64));
    }
    cursor.skip(kind)
}

impl Column {
    /// Appends a row for a document without this member.
    fn append_missing(&mut self) -> Result<()> {
        if !self.nullable {
            return Err(Error::new(ErrorKind::KeyMissing)
                .with_found(format!("no value for {:?}", self.key))
                .with_expected("one, as the schema requires"));
        }
        match &mut self.values {
            Values::Struct(members) if self.is_path => {
                members.append_missing(self.len)?;
                self.len += 1;
            }
            _ => self.append_null(),
        }
        Ok(())
    }

    /// Appends the value of this type at the cursor. Simple values are handled inline, because a call would double the
    /// cost. Rare values and values with inner values are handled elsewhere.
    #[inline(always)]
    fn append(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        use ElementType as T;
        match (&mut self.values, kind) {
            (Values::Int32(values), T::Int32) => values.push(cursor.i32()?),
            (Values::Int64(values), T::Int64) => values.push(cursor.i64()?),
            (Values::Double(values), T::Double) => values.push(cursor.f64()?),
            (Values::DateTime(values), T::DateTime) => values.push(cursor.i64()?),
            (Values::Bool(bits), T::Bool) => bits.push(cursor.bool()?),
            (Values::ObjectId(bytes), T::ObjectId) => bytes.extend_from_slice(&cursor.take::<12>()?),
            (Values::String(pieces), T::String) if cursor.rules().utf8 == Utf8::Checked => {
                cursor.append_str(&mut pieces.bytes)?;
                pieces.end();
            }
            _ => return self.append_large(kind, cursor, walk),
        }
        self.appended();
        Ok(())
    }

    /// Appends values that contain other values, and all rare values.
    #[inline(never)]
    fn append_large(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        match (&mut self.values, kind) {
            (Values::List(lists), ElementType::Array) => lists.append(cursor, walk)?,
            (Values::Struct(members), ElementType::Document) => members.append(cursor, self.len, walk)?,
            _ => return self.append_other(kind, cursor, walk),
        }
        self.appended();
        Ok(())
    }

    /// Handles all rare cases: null, conversions, and values that do not fit.
    #[inline(never)]
    fn append_other(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        if matches!(kind, ElementType::Null | ElementType::Undefined) {
            walk.counts.lost_types.undefined += u64::from(kind == ElementType::Undefined);
            return self.append_missing().map_err(|error| error.with_offset(cursor.offset() as u64));
        }
        if self.is_path {
            return self.append_through(kind, cursor, walk);
        }
        let mut after = cursor.clone();
        match self.values.convert(kind, &mut after, walk) {
            Ok(()) => {
                *cursor = after;
                self.appended();
                Ok(())
            }
            Err(error)
                if walk.options.mismatch == OnMismatch::Null
                    && self.nullable
                    && matches!(error.kind(), ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange) =>
            {
                walk.counts.mismatched += 1;
                cursor.skip(kind)?;
                self.append_null();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Follows a path through the value. A path can also lead through arrays, by position. Members of any other value
    /// have no column.
    fn append_through(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        match &mut self.values {
            Values::Struct(members) if kind == ElementType::Array => {
                members.append_elements(cursor, self.len, walk)?;
                self.len += 1;
                Ok(())
            }
            _ => {
                let at = cursor.offset() as u64;
                pass_unknown(cursor, kind, walk)?;
                self.append_missing().map_err(|error| error.with_offset(at))
            }
        }
    }
}

impl Lists {
    fn append(&mut self, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        let width = self.items.width();
        let outer = cursor.enter()?;
        while let Some(kind) = cursor.next_in_array()? {
            // A null takes three bytes in the document, but as much space in its column as a value of the column's
            // type.
            walk.spend(width)?;
            self.items.append(kind, cursor, walk)?;
        }
        cursor.leave(outer);
        self.end();
        Ok(())
    }
}

/// Whether the double at the cursor is a negative zero, which no integer equals.
fn is_negative_zero(cursor: &Cursor<'_>) -> bool {
    cursor.clone().f64().is_ok_and(|value| value.to_bits() == (-0.0_f64).to_bits())
}

impl Values {
    /// Appends a value whose type differs from the column's usual one. If it does not fit, nothing is appended.
    fn convert(&mut self, kind: ElementType, cursor: &mut Cursor<'_>, walk: &mut Walk) -> Result<()> {
        use ElementType as T;
        match (&mut *self, kind) {
            (Values::Int32(_) | Values::Int64(_), T::Double) if is_negative_zero(cursor) => {
                return Err(Error::new(ErrorKind::ValueOutOfRange)
                    .with_found("-0.0")
                    .with_expected(self.expected())
                    .with_offset(cursor.offset() as u64));
            }
            (Values::Int32(values), _) => values.push(FromBson::from_bson(kind, cursor)?),
            (Values::Int64(values), _) => values.push(FromBson::from_bson(kind, cursor)?),
            (Values::Double(values), _) => values.push(FromBson::from_bson(kind, cursor)?),
            (Values::String(pieces), T::String | T::Symbol | T::Code) => {
                let text = cursor.text()?;
                walk.spend(text.len())?; // longer if bytes were replaced
                pieces.push(text.as_bytes());
                walk.counts.lost_types.symbol += u64::from(kind == T::Symbol);
                walk.counts.lost_types.code += u64::from(kind == T::Code);
            }
            (Values::Binary(pieces), T::Binary) => {
                let (subtype, bytes) = cursor.binary()?;
                pieces.push(bytes);
                walk.counts.lost_types.subtype += u64::from(subtype != 0);
            }
            (Values::Timestamp(values), T::Timestamp) => values.push(u64::from_le_bytes(cursor.take()?)),
            (Values::Decimal128(bytes), T::Decimal128) => bytes.extend_from_slice(&cursor.take::<16>()?),
            (Values::Json(pieces), _) => {
                let start = pieces.bytes.len();
                super::json::append(&mut pieces.bytes, cursor, kind)?;
                walk.spend(pieces.bytes.len() - start)?;
                pieces.end();
            }
            _ => return Err(cursor.mismatch(kind, self.expected())),
        }
        Ok(())
    }

    /// The name of the expected value.
    fn expected(&self) -> &'static str {
        match self {
            Values::Null => "null or nothing",
            Values::Bool(_) => "a boolean",
            Values::Int32(_) => "a 32-bit integer",
            Values::Int64(_) => "a 64-bit integer",
            Values::Double(_) => "a number that a double represents exactly",
            Values::String(_) => "text",
            Values::Binary(_) => "bytes",
            Values::ObjectId(_) => "an object id",
            Values::DateTime(_) => "a date",
            Values::Timestamp(_) => "a timestamp",
            Values::Decimal128(_) => "a decimal number",
            Values::Json(_) => "any value",
            Values::List(_) => "an array",
            Values::Struct(_) => "a document",
        }
    }
}
