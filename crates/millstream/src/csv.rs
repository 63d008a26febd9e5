//! Records of CSV as their fields, by position or by the names of the header.
//!
//! [`Rows`] reads them from a [`Reader`]. The format is defined by [`frame::Csv`](crate::frame::Csv), whose
//! [`fields`](crate::frame::Csv::fields) splits any record. With the feature `serde`, records become values of any type
//! that implements `Deserialize`.

use std::borrow::Cow;

use crate::frame::{Csv, CsvRagged};
use crate::{BatchCopy, Error, ErrorKind, Reader, Result};

/// Reads the records of CSV of a [`Reader`]; blank lines and comments are skipped.
///
/// ```
/// use millstream::{Reader, csv::Rows, frame::Csv};
/// let mut rows = Rows::new(Reader::memory("name,age\nAnn,41\n\"Bob, Jr.\",17\n")?, Csv::new());
/// rows.header()?; // the first record
/// let mut sum = 0;
/// while let Some(row) = rows.next_row()? {
///     sum += str::from_utf8(&row.named("age")?)?.parse::<u32>()?;
/// }
/// assert_eq!(sum, 58);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rows {
    reader: Reader,
    csv: Csv,
    ragged: CsvRagged,
    header: Option<Header>,
    lines: BatchCopy,
    /// The index of the next line in `lines`.
    next: usize,
    /// The parts of the last record that are its fields, with quotes and escape characters.
    fields: Vec<std::ops::Range<usize>>,
}

struct Header {
    names: Vec<Vec<u8>>,
    #[cfg(feature = "serde")]
    record: ::csv::ByteRecord,
}

impl Rows {
    /// Reads records of `csv` from the reader's current position.
    pub fn new(reader: Reader, csv: Csv) -> Rows {
        let lines = BatchCopy::default();
        Rows { reader, csv, ragged: CsvRagged::Error, header: None, lines, next: 0, fields: Vec::new() }
    }

    /// Sets what to do with a record that has another number of fields than the header. By default it is an error. With
    /// [`CsvRagged::Pad`] missing fields are empty, and a record with more fields is still an error; with
    /// [`CsvRagged::Collect`] it keeps them. If the header is not read, records may have any number of fields.
    ///
    /// ```
    /// use millstream::frame::{Csv, CsvRagged};
    /// use millstream::{Reader, csv::Rows};
    /// let mut rows = Rows::new(Reader::memory("name,age\nAnn\nBob,17,x\n")?, Csv::new()).ragged(CsvRagged::Pad);
    /// rows.header()?;
    /// let ann = rows.next_row()?.unwrap();
    /// assert_eq!((ann.len(), &*ann.named("age")?), (2, &b""[..]));
    /// assert!(rows.next_row().is_err());
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn ragged(self, ragged: CsvRagged) -> Rows {
        Rows { ragged, ..self }
    }

    /// Returns the names of the fields. The first call takes the next record as the header; later calls return the same
    /// names. They are empty if there is no record.
    ///
    /// # Errors
    /// Returns the errors of [`next_row`](Rows::next_row).
    pub fn header(&mut self) -> Result<&[Vec<u8>]> {
        if self.header.is_none()
            && let Some(row) = self.next_row()?
        {
            let names: Vec<Vec<u8>> = row.fields().map(Cow::into_owned).collect();
            self.header = Some(Header {
                #[cfg(feature = "serde")]
                record: names.iter().collect(),
                names,
            });
        }
        Ok(self.header.as_ref().map_or(&[], |header| &header.names))
    }

    /// Returns the position of a field by its name in the header; the last one if names are equal.
    ///
    /// # Errors
    /// Returns [`ErrorKind::KeyMissing`] if the header has no such name, and the errors of [`header`](Rows::header).
    pub fn index(&mut self, name: &str) -> Result<usize> {
        self.header()?;
        self.index_of(name)
    }

    fn index_of(&self, name: &str) -> Result<usize> {
        let error = || Error::new(ErrorKind::KeyMissing).with_name(self.reader.name());
        let Some(Header { names, .. }) = &self.header else {
            return Err(error()
                .with_found("a name of a field, and the header was not read")
                .with_expected("a call of `header` before the first record")
                .with_advice("call `header` before the first record, or use the position of the field"));
        };
        names.iter().rposition(|found| found == name.as_bytes()).ok_or_else(|| {
            let names: Vec<_> = names.iter().map(|name| format!("{:?}", String::from_utf8_lossy(name))).collect();
            error()
                .with_found(format!("no field {name:?} in the header"))
                .with_expected(format!("one of {}", names.join(", ")))
                .with_advice("check the name, and that the first record is the header")
        })
    }

    /// Returns the next record, or `None` at the end, which means that the source succeeded.
    ///
    /// # Errors
    /// Returns the errors of [`Reader::next_batch`], after all records before them. Returns
    /// [`ErrorKind::FieldCountMismatch`] for a record that has another number of fields than the header, if that was
    /// read, unless [`ragged`](Rows::ragged) allows it; the next call continues after this record.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        let (line, len) = loop {
            let Some(record) = self.lines.batch().get(self.next) else {
                self.next = 0;
                if !self.lines.refill(&mut self.reader, &mut self.csv, usize::MAX)? {
                    return Ok(None);
                }
                continue;
            };
            self.next += 1;
            if self.csv.skips(record) {
                continue;
            }
            self.fields.clear();
            let mut fields = self.csv.fields(record);
            while let Some(raw) = fields.next_raw() {
                let start = raw.as_ptr() as usize - record.as_ptr() as usize;
                self.fields.push(start..start + raw.len());
            }
            break (self.next - 1, record.len());
        };
        if let Some(Header { names, .. }) = &self.header {
            if let Err(error) = self.ragged.check(self.fields.len(), names.len(), "the header") {
                return Err(self.lines.locate(error.with_name(self.reader.name()), line, 0));
            }
            // Missing fields are empty, at the end of the record.
            self.fields.resize(self.fields.len().max(names.len()), len..len);
        }
        Ok(Some(Row { rows: self, line }))
    }

    /// Returns an iterator over the remaining records as values of a type. Members of a struct have the names of the
    /// header, which is the first record. See [`Row::deserialize`].
    ///
    /// ```
    /// use millstream::{Reader, csv::Rows, frame::Csv};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Person {
    ///     name: String,
    ///     age: u8,
    /// }
    ///
    /// let mut rows = Rows::new(Reader::memory("age,name\n41,Ann\n999,Bob\n")?, Csv::new());
    /// let mut people = rows.deserialize::<Person>();
    /// let ann = people.next().unwrap()?;
    /// assert_eq!((ann.name.as_str(), ann.age), ("Ann", 41));
    /// let error = people.next().unwrap().err().unwrap();
    /// assert_eq!(
    ///     error.without_advice().to_string(),
    ///     "memory: number overflow: found \"999\", expected a number that the type can hold, in age, at line 3, column 1"
    /// );
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[cfg(feature = "serde")]
    pub fn deserialize<T: serde::de::DeserializeOwned>(&mut self) -> impl Iterator<Item = Result<T>> {
        std::iter::from_fn(|| {
            if let Err(error) = self.header() {
                return Some(Err(error));
            }
            self.next_row().transpose().map(|row| row?.deserialize())
        })
    }

    /// Returns the reader, which continues after the last record that was returned.
    pub fn reader(&mut self) -> &mut Reader {
        let left = self.lines.batch().len() - self.next;
        let given_back = self.reader.give_back(left);
        debug_assert!(given_back.is_ok(), "the reader was used after its batch");
        self.lines.clear();
        self.next = 0;
        &mut self.reader
    }

    /// Returns the reader, which continues after the last record that was returned. The header is lost.
    pub fn into_reader(mut self) -> Reader {
        self.reader();
        self.reader
    }
}

/// A record of CSV. It is returned by [`Rows::next_row`].
#[derive(Clone, Copy)]
pub struct Row<'a> {
    rows: &'a Rows,
    line: usize,
}

impl<'a> Row<'a> {
    /// Returns the number of fields, which is at least 1. After [`Rows::header`] it is that of the header, also if missing
    /// fields are [empty](CsvRagged::Pad), unless additional ones are [kept](CsvRagged::Collect).
    #[expect(clippy::len_without_is_empty, reason = "no record is without fields")]
    pub fn len(&self) -> usize {
        self.rows.fields.len()
    }

    /// Returns the content of a field, or `None` after the last one. It is borrowed, unless quotes or escape characters
    /// must be removed from its middle.
    pub fn field(&self, index: usize) -> Option<Cow<'a, [u8]>> {
        let range = self.rows.fields.get(index)?.clone();
        let start = self.rows.lines.batch().offsets()[self.line] as usize;
        Some(self.rows.csv.unquote(&self.rows.lines.batch().bytes()[start + range.start..start + range.end]))
    }

    /// Returns the content of the field with this name in the header. For many records, [`Rows::index`] is faster.
    ///
    /// # Errors
    /// Returns [`ErrorKind::KeyMissing`] if the header has no such name, or was not read.
    pub fn named(&self, name: &str) -> Result<Cow<'a, [u8]>> {
        let index = self.rows.index_of(name)?;
        Ok(self.field(index).expect("a record has at least the fields of the header"))
    }

    /// Returns an iterator over the contents of all fields.
    pub fn fields(&self) -> impl Iterator<Item = Cow<'a, [u8]>> {
        let row = *self;
        (0..row.len()).filter_map(move |index| row.field(index))
    }

    /// Adds the place of a field to an error that was found in it: the source's name, the byte, the record, the line and
    /// the column, and the field's name. Without `index`, it is the place of the record.
    #[must_use]
    pub fn locate(&self, error: Error, index: Option<usize>) -> Error {
        let field = index.and_then(|index| self.rows.fields.get(index));
        let error = error.with_name(self.rows.reader.name());
        let error = self.rows.lines.locate(error, self.line, field.map_or(0, |range| range.start));
        let names = self.rows.header.as_ref().map(|header| &header.names);
        match index.and_then(|index| names?.get(index)) {
            Some(name) => error.with_path(String::from_utf8_lossy(name)),
            None => error,
        }
    }

    /// Returns the record as a value of a type: members of a struct by the names of the header, if that was read;
    /// otherwise, and for tuples, by their positions. An empty field is `None` for an `Option`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NumberInvalid`], [`ErrorKind::NumberOverflow`], [`ErrorKind::Utf8Invalid`] or
    /// [`ErrorKind::ShapeMismatch`] with the text of the field and its place, as [`locate`](Row::locate) adds it; and
    /// [`ErrorKind::FieldCountMismatch`] for a record that has fields without a name in the header.
    #[cfg(feature = "serde")]
    pub fn deserialize<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        if let Some(Header { names, .. }) = &self.rows.header {
            // The others would be left out.
            let checked = CsvRagged::Error.check(self.len(), names.len(), "the header");
            checked.map_err(|error| self.locate(error, None))?;
        }
        let record: ::csv::ByteRecord = self.fields().collect();
        let names = self.rows.header.as_ref().map(|header| &header.record);
        record.deserialize(names).map_err(|error| self.explain(error.kind()))
    }

    #[cfg(feature = "serde")]
    #[cold]
    fn explain(&self, error: &::csv::ErrorKind) -> Error {
        use ::csv::DeserializeErrorKind::*;
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let ::csv::ErrorKind::Deserialize { err, .. } = error else {
            return self.locate(Error::new(ErrorKind::ShapeMismatch).with_found(format!("{error:?}")), None);
        };
        let index = err.field().map(|field| field as usize);
        let field = index.and_then(|index| self.field(index)).unwrap_or_default();
        let text = String::from_utf8_lossy(&field);
        let start: String = text.chars().take(60).collect();
        let found = if start.len() < text.len() { format!("{start:?}...") } else { format!("{start:?}") };
        let (kind, found, expected) = match err.kind() {
            ParseInt(error) if matches!(error.kind(), PosOverflow | NegOverflow) => {
                (ErrorKind::NumberOverflow, found, "a number that the type can hold".to_string())
            }
            ParseInt(_) => (ErrorKind::NumberInvalid, found, "a whole number of the type".to_string()),
            ParseFloat(_) => (ErrorKind::NumberInvalid, found, "a number".to_string()),
            ParseBool(_) => (ErrorKind::ShapeMismatch, found, "true or false".to_string()),
            InvalidUtf8(_) => (ErrorKind::Utf8Invalid, found, "UTF-8".to_string()),
            UnexpectedEndOfRow => {
                let found = format!("{} field{}", self.len(), if self.len() == 1 { "" } else { "s" });
                (ErrorKind::FieldCountMismatch, found, "one for each member of the type".to_string())
            }
            Message(message) => (ErrorKind::ShapeMismatch, message.clone(), "a record of the type".to_string()),
            Unsupported(message) => {
                (ErrorKind::Unsupported, message.clone(), "a type that a record of CSV can be".to_string())
            }
        };
        self.locate(Error::new(kind).with_found(found).with_expected(expected), index)
    }
}
