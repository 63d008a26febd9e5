//! Records of JSON as columns: objects as rows.
//!
//! The traversal is directed by the columns and allocates nothing for a value: it checks the grammar and notes where the
//! text of each plain value is. Then each column is converted by the same code as a column of CSV, so the rules of
//! types are the same, and a number is converted from its text.

mod arrays;
mod infer;
mod stop;
mod text;
mod token;
mod tree;

pub(crate) use infer::Guesses;

use crate::build;
use crate::layout::{Layout, Names, Parsed, show};
use crate::options::{Options, Reject};
use crate::span::Content;
use arrow_array::{RecordBatch, RecordBatchOptions};
use infer::Observer;
use millstream::frame::{Framer, JsonLines, Resume, Step};
use millstream::{BatchCopy, Error, ErrorKind, Result};
use std::collections::btree_map::{BTreeMap, Entry};
use stop::{Reason, Stop};
use text::Text;
use tree::Members;

/// The most columns that are inferred, with those inside others.
pub(crate) const MOST_COLUMNS: usize = 10_000;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Memory that one thread uses for one block after another.
#[derive(Default)]
pub(crate) struct Scratch {
    columns: Option<Members>,
    /// For each row, the number of its record in the block.
    records: Vec<usize>,
}

/// Bad records, and the position of the error in each.
type Bad = BTreeMap<usize, (usize, Error)>;

impl Layout {
    /// Turns the records of a block into a batch.
    pub(crate) fn parse_json(&self, names: Names, block: &BatchCopy, scratch: &mut Scratch) -> Result<Parsed> {
        let fields = self.schema.arrow().fields();
        let Scratch { columns, records } = scratch;
        let columns = columns.get_or_insert_with(|| Members::new(fields, self.schema.is_inferred()));
        let batch = block.batch();
        let how = build::How { exact: self.schema.is_inferred(), rules: self.how.rules, nullable: true, goes_on: true };
        let mut bad = Bad::new();
        let arrays = loop {
            let mut text = Text::new(batch.bytes());
            self.read(names, block, &mut text, columns, records, &mut bad);
            let mut unfit = Vec::new();
            if let Some(arrays) = arrays::arrays(columns, &text, how, &mut unfit)? {
                break arrays;
            }
            // Values that do not fit are rare. The rows are read again without their records.
            let known = bad.len();
            for mut unfit in unfit {
                let record = records[unfit.row];
                unfit.path.reverse();
                let value = text.get(unfit.span).map(Content::bytes);
                let error = self.unfit(unfit.kind, value.map(show), &unfit.field).with_path(unfit.path.join("."));
                let at = text.position(unfit.span) - start(block, record);
                match bad.entry(record) {
                    // The leftmost one of a record is reported.
                    Entry::Occupied(mut other) if other.get().0 > at => drop(other.insert((at, error))),
                    Entry::Occupied(_) => {}
                    Entry::Vacant(entry) => {
                        entry.insert((at, error));
                    }
                }
            }
            if bad.len() == known {
                return Err(Error::new(ErrorKind::Internal)
                    .with_found("columns without arrays")
                    .with_expected("an array for each column of a block"));
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(records.len()));
        let batch_of_rows = RecordBatch::try_new_with_options(self.schema.arrow().clone(), arrays, &options);
        let mut rejects = bad.into_iter().map(|(record, (at, error))| Reject {
            error: block.locate(error, record, at),
            raw: batch.get(record).unwrap_or_default().to_vec(),
        });
        let batch = batch_of_rows.map_err(build::refused)?;
        match self.goes_on {
            true => Ok(Parsed { batch, rejects: rejects.collect(), error: None }),
            false => Ok(Parsed { batch, error: rejects.next().map(|reject| reject.error), rejects: Vec::new() }),
        }
    }

    /// Reads the rows of all records but the bad ones. By default, the first bad one ends the rows.
    fn read<'a>(
        &self,
        names: Names,
        block: &'a BatchCopy,
        text: &mut Text<'a>,
        columns: &mut Members,
        records: &mut Vec<usize>,
        bad: &mut Bad,
    ) {
        columns.truncate(0);
        records.clear();
        let is_utf8 = is_utf8(block);
        for (record, raw) in block.batch().iter().enumerate() {
            if bad.contains_key(&record) {
                if self.goes_on { continue } else { break }
            }
            let start = start(block, record);
            let end = start + raw.len();
            // The text ends with the record, so that nothing reads beyond it.
            text.bytes = &block.batch().bytes()[..end];
            let at = token::blank(text.bytes, start + mark(raw));
            if at == end {
                continue;
            }
            let read = match is_utf8 || str::from_utf8(raw).is_ok() {
                true => object(names, columns, text, at),
                false => Err(Stop::new(at, Reason::Invalid)),
            };
            match read {
                Ok(()) => records.push(record),
                Err(stop) => {
                    columns.truncate(records.len());
                    let at = stop.at - start;
                    bad.insert(record, self.explain(*stop, at, raw));
                    if !self.goes_on {
                        break;
                    }
                }
            }
        }
        text.bytes = block.batch().bytes();
    }

    /// Describes why a record is bad, and where in it.
    #[cold]
    fn explain(&self, stop: Stop, at: usize, raw: &[u8]) -> (usize, Error) {
        let Stop { reason, mut path, .. } = stop;
        path.reverse();
        let path = path.join(".");
        let error = match reason {
            Reason::Invalid => {
                if let Some((at, error)) = invalid(raw) {
                    return (at, error);
                }
                // The grammar allows the record, so it is no object.
                debug_assert_eq!(token::blank(raw, mark(raw)), at, "valid text was refused");
                let error = Error::new(ErrorKind::ShapeMismatch).with_found(found(raw, at));
                return (at, error.with_expected("an object, whose members are the columns"));
            }
            Reason::Surrogate => Error::new(ErrorKind::JsonInvalid)
                .with_found(format!("half a surrogate pair, {}", String::from_utf8_lossy(&raw[at..at + 6])))
                .with_expected("both halves, or a schema in which the column is json"),
            Reason::Twice => Error::new(ErrorKind::JsonInvalid)
                .with_found(format!("the name {} twice in an object", found(raw, at)))
                .with_expected("each name once, or the option to take the first or the last one"),
            Reason::Unknown => Error::new(ErrorKind::ShapeMismatch)
                .with_found(format!("the member {}, which is new", found(raw, at)))
                .with_expected(
                    "only members of the records from which the types were inferred; infer from more, or give a schema",
                ),
            Reason::Missing(field) if raw[at] == b'n' => self.unfit(ErrorKind::ValueMissing, None, &field),
            Reason::Missing(field) => self.unfit(ErrorKind::ValueMissing, None, &field).with_found("no member"),
            Reason::Misfit(field) => self.unfit(ErrorKind::ShapeMismatch, Some(found(raw, at)), &field),
        };
        (at, if path.is_empty() { error } else { error.with_path(path) })
    }
}

/// Returns where a record starts in the bytes of its block.
fn start(block: &BatchCopy, record: usize) -> usize {
    block.batch().offsets()[record] as usize
}

fn is_utf8(block: &BatchCopy) -> bool {
    let batch = block.batch();
    str::from_utf8(&batch.bytes()[..batch.offsets()[batch.len()] as usize]).is_ok()
}

/// Returns the length of the byte order mark at the start of a record.
fn mark(raw: &[u8]) -> usize {
    if raw.starts_with(MARK) { MARK.len() } else { 0 }
}

/// Reads the object that begins at a position and is the rest of the text.
fn object(names: Names, columns: &mut Members, text: &mut Text<'_>, at: usize) -> std::result::Result<(), Box<Stop>> {
    let invalid = |at| Err(Stop::new(at, Reason::Invalid));
    if text.bytes[at] != b'{' {
        return invalid(at);
    }
    let end = columns.read(text, at, 0, names)?;
    match token::blank(text.bytes, end) {
        end if end == text.bytes.len() => Ok(()),
        end => invalid(end),
    }
}

/// Returns what is wrong with a text, and where. `None` if it is one value in UTF-8.
#[cold]
fn invalid(raw: &[u8]) -> Option<(usize, Error)> {
    // The framer reads lines. Line ends are whitespace in an element of a document, whose strings have none.
    let line: Vec<u8> = raw.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }).collect();
    match JsonLines::checked().depth(token::DEPTH).step(&line, Resume::default(), true) {
        Step::Bad(error) => {
            let at = error.offset().unwrap_or(0) as usize;
            Some((at.min(raw.len()), error.without_offset()))
        }
        _ => None,
    }
}

/// Formats the value at a position for a message.
fn found(raw: &[u8], at: usize) -> String {
    match raw.get(at) {
        Some(b'{') => "an object".to_string(),
        Some(b'[') => "an array".to_string(),
        Some(b'"') => show(token::string(raw, at + 1).and_then(|(end, _)| raw.get(at + 1..end)).unwrap_or_default()),
        _ => {
            let end = token::value(raw, at, 0).unwrap_or(at);
            raw[at..end.min(at + 64)].escape_ascii().to_string()
        }
    }
}

/// Passes the first records of a block to inference, and returns their number. Bad records are left out: reading reports
/// them. `columns` counts the columns.
pub(crate) fn observe(
    block: &BatchCopy,
    most: usize,
    options: &Options,
    guesses: &mut Guesses,
    columns: &mut usize,
) -> usize {
    let (how, duplicates) = (options.how(), options.duplicates);
    let mut seen = 0;
    let is_utf8 = is_utf8(block);
    for raw in &block.batch() {
        if seen == most || *columns > MOST_COLUMNS {
            break;
        }
        let at = token::blank(raw, mark(raw));
        let is_object = raw.get(at) == Some(&b'{') && (is_utf8 || str::from_utf8(raw).is_ok());
        if is_object && token::value(raw, at, 0).is_some_and(|end| token::blank(raw, end) == raw.len()) {
            Observer { how, duplicates, columns }.object(guesses, &mut Text::new(raw), at, 0);
            seen += 1;
        }
    }
    seen
}
