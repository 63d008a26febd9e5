//! Splits bytes into records, many at a time.
//!
//! A framer decides where records end: lines, a delimiter, any of several bytes, a fixed length, a length prefix, CSV, JSON.
//! It does no I/O; readers use it, and millstream_framer_batch() works on any memory.
//!
//! A batch is one block of bytes and count + 1 offsets into it: record i is bytes[offsets[i]] up to bytes[offsets[i +
//! 1]], including its delimiter or length, and `trim` defines which part of it is content. millstream_batch_record() in
//! window.h does the arithmetic. millstream_framer_rows() splits the records of CSV into fields.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use millstream::Result;
use millstream::frame::{
    self, Batch, Bson, Csv, CsvDialect, Delimiter, Fixed, Framer, JsonLines, LengthPrefixed, Lines, Predicate,
    PrefixWidth, Trim,
};

use crate::boundary::{bytes, call, choice, chosen, free, given, invalid, items, lend, out, text};
use crate::enums::{millstream_endian, millstream_prefix_counts};
use crate::error::{millstream_code, millstream_error};

/// Decides where records end. It keeps no state from one call to the next, so it may be exchanged between two records;
/// but only one thread may use it at a time. It is freed by millstream_framer_free().
pub struct millstream_framer {
    pub(crate) framer: Box<dyn Framer + Send>,
    /// The offsets of the last batch that was not created by a reader.
    offsets: Vec<u32>,
    /// The rows of the last batch of CSV, if records are those of CSV.
    rows: Option<Box<Rows>>,
}

/// Whether the delimiter is part of the record.
#[repr(u32)]
pub enum millstream_delimited {
    /// The delimiter is removed; for lines, so is a carriage return before the line feed.
    Trimmed = 0,
    /// The delimiter is part of the record.
    Untrimmed = 1,
}

#[derive(PartialEq)]
pub(crate) enum Delimited {
    Trimmed,
    Untrimmed,
}

choice!(millstream_delimited is Delimited { Trimmed => Delimited::Trimmed, Untrimmed => Delimited::Untrimmed });

/// The parts of a record that are not content.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_trim {
    /// The number of bytes at the front that are not content: a length.
    pub head: u32,
    /// The number of bytes at the end that are not content, if the record is terminated: a delimiter.
    pub tail: u32,
    /// Whether a carriage return before the delimiter is not content either.
    pub carriage_return: bool,
}

impl From<Trim> for millstream_trim {
    fn from(trim: Trim) -> millstream_trim {
        millstream_trim { head: trim.head, tail: trim.tail, carriage_return: trim.carriage_return }
    }
}

impl From<millstream_trim> for Trim {
    fn from(trim: millstream_trim) -> Trim {
        Trim { head: trim.head, tail: trim.tail, carriage_return: trim.carriage_return }
    }
}

/// Records in one block of memory. It borrows all memory that it refers to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_batch {
    /// The memory to which the offsets refer.
    pub bytes: *const c_char,
    /// Its length.
    pub len: usize,
    /// The ascending offsets, count + 1 of them. The last one is at most `len`.
    pub offsets: *const u32,
    /// The number of records.
    pub count: usize,
    /// The parts of each record that are not content.
    pub trim: millstream_trim,
    /// Whether the last record ends with its delimiter. All other records do. If records have no delimiter, this is
    /// true.
    pub terminated: bool,
    /// The position of `bytes` in the stream, in bytes from its start (after decoding). Record i is at offset +
    /// offsets[i].
    pub offset: u64,
    /// The number of the first record in the stream; the stream's first record is 0.
    pub first_record: u64,
    /// The line number of the first record (the stream's first line is 1), or 0 if this record or an earlier one of the
    /// stream is not a line.
    pub first_line: u64,
}

impl From<Batch<'_>> for millstream_batch {
    fn from(batch: Batch<'_>) -> millstream_batch {
        millstream_batch {
            bytes: lend(batch.bytes()),
            len: batch.bytes().len(),
            offsets: batch.offsets().as_ptr(),
            count: batch.len(),
            trim: batch.trim().into(),
            terminated: batch.terminated(),
            offset: batch.offset(),
            first_record: batch.first_record(),
            first_line: batch.first_line().unwrap_or(0),
        }
    }
}

/// The content of a field. It is not terminated by a NUL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_field {
    /// The bytes, without quotes and escape characters. They are not NULL, even if there are none.
    pub bytes: *const c_char,
    /// Their number.
    pub len: usize,
}

/// The records of CSV in a batch, as fields. Lines that are not records, blank lines and comments, are left out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct millstream_rows {
    /// The fields of all rows.
    pub fields: *const millstream_field,
    /// The ascending numbers of fields before each row, count + 1 of them: row i has the fields starts[i] up to starts[i
    /// + 1].
    pub starts: *const usize,
    /// The index of each row's record in the batch.
    pub records: *const usize,
    /// The number of rows.
    pub count: usize,
}

/// The rows of a batch.
struct Rows {
    csv: Csv,
    fields: Vec<millstream_field>,
    starts: Vec<usize>,
    records: Vec<usize>,
    /// The contents that are not a part of their record.
    unescaped: Vec<Vec<u8>>,
}

impl Rows {
    fn new(csv: Csv) -> Box<Rows> {
        let (fields, unescaped) = (Vec::new(), Vec::new());
        Box::new(Rows { csv, fields, starts: Vec::new(), records: Vec::new(), unescaped })
    }

    fn split(&mut self, batch: Batch<'_>) -> millstream_rows {
        let Rows { csv, fields, starts, records, unescaped } = self;
        fields.clear();
        starts.clear();
        records.clear();
        unescaped.clear();
        starts.push(0);
        for (index, record) in batch.iter().enumerate() {
            if csv.skips(record) {
                continue;
            }
            for field in csv.fields(record) {
                fields.push(millstream_field { bytes: lend(&field), len: field.len() });
                // The bytes do not move with their vector.
                if let Cow::Owned(content) = field {
                    unescaped.push(content);
                }
            }
            starts.push(fields.len());
            records.push(index);
        }
        millstream_rows {
            fields: fields.as_ptr(),
            starts: starts.as_ptr(),
            records: records.as_ptr(),
            count: records.len(),
        }
    }
}

fn make(
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    made: impl FnOnce() -> Result<Box<dyn Framer + Send>>,
) -> Result<()> {
    out(framer, "framer")?.write(Box::new(millstream_framer { framer: made()?, offsets: Vec::new(), rows: None }));
    Ok(())
}

/// Creates a framer for lines, which end with a line feed. The last line need not end with one.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_lines(
    delimited: MaybeUninit<millstream_delimited>,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        make(framer, || {
            Ok(match chosen(delimited)? {
                Delimited::Trimmed => Box::new(Lines::new()),
                Delimited::Untrimmed => Box::new(Lines::untrimmed()),
            })
        })
    })
}

/// Creates a framer for records that end with these `len` bytes, at least one. The last record need not end with them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_delimiter(
    delimiter: *const c_void,
    len: usize,
    delimited: MaybeUninit<millstream_delimited>,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        make(framer, || {
            // SAFETY: C lends the bytes for this call.
            let delimiter = Delimiter::bytes(unsafe { bytes(delimiter, len, "delimiter")? })?;
            Ok(match chosen(delimited)? {
                Delimited::Trimmed => Box::new(delimiter),
                Delimited::Untrimmed => Box::new(delimiter.untrimmed()),
            })
        })
    })
}

/// Returns whether records end after this byte.
pub type millstream_predicate = Option<unsafe extern "C" fn(user: *mut c_void, byte: u8) -> bool>;

/// Creates a framer for records that end after each byte for which `ends` returns true. `ends` is called only during
/// this call, for each of the 256 byte values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_predicate(
    ends: millstream_predicate,
    user: *mut c_void,
    delimited: MaybeUninit<millstream_delimited>,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        make(framer, || {
            let ends = given(ends, "ends")?;
            // SAFETY: this is a C function, called as documented in the header.
            let predicate = Predicate::new(|byte| unsafe { ends(user, byte) });
            Ok(match chosen(delimited)? {
                Delimited::Trimmed => Box::new(predicate),
                Delimited::Untrimmed => Box::new(predicate.untrimmed()),
            })
        })
    })
}

/// Creates a framer for records of `len` bytes. A stream that ends inside one fails with MILLSTREAM_FRAME_TRUNCATED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_fixed(
    len: usize,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || make(framer, || Ok(Box::new(Fixed::new(len)?))))
}

/// Creates a framer for records preceded by their length, an unsigned number of `width` bytes: 1, 2, 4 or 8. A stream
/// that ends inside one fails with MILLSTREAM_FRAME_TRUNCATED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_length_prefixed(
    width: usize,
    endian: MaybeUninit<millstream_endian>,
    counts: MaybeUninit<millstream_prefix_counts>,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        make(framer, || {
            let width = match width {
                1 => PrefixWidth::U8,
                2 => PrefixWidth::U16,
                4 => PrefixWidth::U32,
                8 => PrefixWidth::U64,
                other => return Err(invalid(format!("a length of {other} bytes"), "1, 2, 4 or 8")),
            };
            Ok(Box::new(LengthPrefixed::new(width, chosen(endian)?).counts(chosen(counts)?)))
        })
    })
}

/// Creates a framer for consecutive BSON documents, as written by mongodump: all bytes of a document are content. Only
/// the length and the last byte are checked: a length below 5 fails with MILLSTREAM_LENGTH_INVALID, and a last byte
/// other than 0 fails with MILLSTREAM_DOCUMENT_INVALID. A stream that ends inside a document fails with
/// MILLSTREAM_FRAME_TRUNCATED.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_bson(
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || make(framer, || Ok(Box::new(Bson::new()))))
}

/// Creates a framer for records of CSV: RFC 4180 with any line end if `dialect` is NULL or empty. Otherwise it is a text of
/// options, `name=value` separated by spaces, such as "delimiter=3b line_end=lf". Bytes are two hexadecimal digits:
///
/// - delimiter=2c: the byte between two fields;
/// - quote=22: the byte around fields that contain delimiters, line ends or quotes, or `none`;
/// - escape=none: the byte that makes the next byte content;
/// - doubled_quotes=on: whether two quotes in a quoted field are one quote of its content, or `off`;
/// - comment=none: the byte that makes a line a comment if it is the first one;
/// - line_end=any: the bytes that end a line, `lf`, `crlf`, `cr`, or any of them;
/// - blank_records=off: whether a blank line is a record of one empty field;
/// - literal_quotes=off: whether a quote in a field that does not begin with one is content, and not an error;
/// - detect_mark=on: whether a byte order mark of UTF-8 is skipped, and one of UTF-16 is an error.
///
/// All lines are records of this framer, so that together they are the input; millstream_framer_rows() leaves out blank
/// lines and comments. A quote that the dialect does not allow fails with MILLSTREAM_CSV_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_csv(
    dialect: *const c_char,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(framer, "framer")?;
        let dialect = match dialect.is_null() {
            true => CsvDialect::new(),
            // SAFETY: C lends a string for this call.
            false => unsafe { text(dialect, "dialect")? }.parse()?,
        };
        let csv = Csv::with(dialect)?;
        let rows = Some(Rows::new(csv.clone()));
        to.write(Box::new(millstream_framer { framer: Box::new(csv), offsets: Vec::new(), rows }));
        Ok(())
    })
}

/// Creates a framer for newline-delimited JSON, whose lines end with LF or CRLF. With `check`, each line is exactly one value
/// in UTF-8 by the grammar of RFC 8259, with at most `depth` arrays and objects inside each other (128 in other languages),
/// or it is blank; any other line fails with MILLSTREAM_JSON_INVALID or MILLSTREAM_TOO_DEEP. Without it, lines are not
/// examined, and `depth` is not used.
///
/// All lines are records of this framer, so that together they are the input; millstream_framer_skips() is true for blank
/// lines. The elements of an array are records by millstream_reader_options_set_json_elements().
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_json_lines(
    check: bool,
    depth: usize,
    framer: Option<&mut MaybeUninit<Box<millstream_framer>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        make(framer, || {
            Ok(match check {
                true => Box::new(JsonLines::checked().depth(depth)),
                false => Box::new(JsonLines::new()),
            })
        })
    })
}

/// Returns whether the content of a record that this framer has found is not a record of the format: a blank line of
/// newline-delimited JSON or of CSV, or a comment of CSV.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_skips(
    framer: Option<&millstream_framer>,
    content: *const c_void,
    len: usize,
    skips: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(skips, "skips")?;
        // SAFETY: C lends the bytes for this call.
        let content = unsafe { bytes(content, len, "content")? };
        to.write(given(framer, "framer")?.framer.skips(content));
        Ok(())
    })
}

/// Splits the records of a batch into fields; `framer` is the framer of the batch, and was created by
/// millstream_framer_csv(). Only fields that contain escaped bytes are copied, the others are a part of the batch's
/// memory. The rows are valid while the batch is valid, and until the next call of this function with this framer.
///
/// The first row of a stream may be a header. A program that requires the same number of fields in each row calls
/// millstream_reader_check_fields().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_rows(
    framer: Option<&mut millstream_framer>,
    batch: Option<&millstream_batch>,
    rows: Option<&mut MaybeUninit<millstream_rows>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(rows, "rows")?;
        let rows = given(framer, "framer")?.rows.as_mut();
        let rows = rows.ok_or_else(|| invalid("rows of records that are not CSV", "a framer for CSV"))?;
        let batch = given(batch, "batch")?;
        // SAFETY: C lends the memory of the batch, for longer than this call.
        let (bytes, offsets) = unsafe {
            let offsets = if batch.count > 0 { items(batch.offsets, batch.count + 1, "batch")? } else { &[0] };
            (bytes(batch.bytes.cast(), batch.len, "batch")?, offsets)
        };
        if !offsets.is_sorted() || offsets[offsets.len() - 1] as usize > bytes.len() {
            return Err(invalid("offsets of a batch that are not ascending positions in it", "a batch of the library"));
        }
        to.write(rows.split(Batch::new(bytes, offsets, batch.trim.into(), batch.terminated)));
        Ok(())
    })
}

/// Returns the complete records at the front of `len` bytes, at most `max` of them. The remaining bytes are part of a
/// record that needs more bytes. With `at_end` no more bytes follow, so the remaining bytes are a record or cause an
/// error. The batch is valid while the bytes are valid, and until the next call with this framer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_framer_batch(
    framer: Option<&mut millstream_framer>,
    input: *const c_void,
    len: usize,
    at_end: bool,
    max: usize,
    batch: Option<&mut MaybeUninit<millstream_batch>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let batch = out(batch, "batch")?;
        let framer = given(framer, "framer")?;
        // SAFETY: C lends the bytes, for longer than this call.
        let input = unsafe { bytes(input, len, "input")? };
        framer.offsets.clear();
        framer.offsets.push(0);
        let terminated = framer.framer.batch(input, at_end, max, &mut framer.offsets);
        // The records before an invalid one are returned first, as by a reader.
        let terminated = if framer.offsets.len() > 1 { terminated.unwrap_or(true) } else { terminated? };
        batch.write(Batch::new(input, &framer.offsets, framer.framer.trim(), terminated).into());
        Ok(())
    })
}

/// Returns the bytes to write after a record's content so that this framer finds it again: a newline for lines. They
/// are empty if no suffix is needed or the content includes it. The bytes belong to the framer and are valid until it
/// is freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_terminator(
    framer: Option<&millstream_framer>,
    bytes: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (bytes, len) = (out(bytes, "bytes")?, out(len, "len")?);
        let terminator = given(framer, "framer")?.framer.terminator();
        bytes.write(lend(terminator));
        len.write(terminator.len());
        Ok(())
    })
}

/// Succeeds if a record is UTF-8; otherwise it returns MILLSTREAM_UTF8_INVALID, with the position of the invalid byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_check_text(
    record: *const c_void,
    len: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || frame::text(unsafe { bytes(record, len, "record")? }).map(drop))
}

/// Frees a framer. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_framer_free(framer: Option<Box<millstream_framer>>) {
    free(framer);
}
