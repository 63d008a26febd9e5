//! The functions of the WebAssembly module.
//!
//! JavaScript copies bytes to `input` and passes their number. Longer results stay in this module's memory until the
//! next call, and JavaScript queries their address.
//!
//! The only `unsafe` is the attribute `no_mangle`: a second symbol with the same name would be undefined behaviour, but
//! the linker for WebAssembly rejects it.
#![allow(unsafe_code)]

use std::cell::RefCell;

use millstream_bson::internal::path_at as path_in;
use millstream_core::frame::{
    Batch, Bson, Csv, Delimiter, Endian, Fixed, Framer, JsonLines, LengthPrefixed, Lines, Predicate, PrefixCounts,
    PrefixWidth, Resume, Step,
};

use crate::documents::{self, Filler, Sample};
use crate::failure;
use crate::rows::Rows;

/// The state between two calls.
struct Host {
    /// The bytes that JavaScript has written.
    input: Vec<u8>,
    framer: Box<dyn Framer>,
    /// The ends of the records of the last batch.
    ends: Vec<u32>,
    rows: Rows,
    /// What `rows` has returned last.
    split: [usize; 7],
    /// The address of each part of the columns that were taken last.
    parts: Vec<*const u8>,
    sample: Sample,
    filler: Option<Filler>,
    /// Where the search for the end of the last step's record continues, and the length of its record if known.
    resume: Resume,
    length: u64,
    /// The reply, as JSON.
    reply: String,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host {
        input: Vec::new(),
        framer: Box::new(Lines::new()),
        ends: Vec::new(),
        rows: Rows::new(Csv::new()),
        split: [0; 7],
        parts: Vec::new(),
        sample: Sample::default(),
        filler: None,
        resume: Resume::START,
        length: 0,
        reply: String::new(),
    });
}

fn host<R>(call: impl FnOnce(&mut Host) -> R) -> R {
    HOST.with_borrow_mut(call)
}

/// Returns the address to which JavaScript may write this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    host(|host| {
        if host.input.len() < length {
            host.input.resize(length, 0);
        }
        host.input.as_mut_ptr()
    })
}

/// Returns the address of the last reply.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    host(|host| host.reply.as_ptr())
}

/// Returns the size of the last reply in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reply_length() -> usize {
    host(|host| host.reply.len())
}

/// Selects records that end with the delimiter in `input`, which has at least one byte.
#[unsafe(no_mangle)]
pub extern "C" fn delimiter(length: usize) {
    host(|host| {
        if let Ok(framer) = Delimiter::bytes(&host.input[..length]) {
            host.framer = Box::new(framer);
        }
    });
}

/// Selects records that end after any byte whose entry in the 256 bytes of `input` is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn any_of() {
    host(|host| host.framer = Box::new(Predicate::new(|byte| host.input[usize::from(byte)] != 0)));
}

/// Selects records of this many bytes, at least one.
#[unsafe(no_mangle)]
pub extern "C" fn fixed(length: usize) {
    host(|host| {
        if let Ok(framer) = Fixed::new(length) {
            host.framer = Box::new(framer);
        }
    });
}

/// Selects records that are preceded by a length of `width` bytes: 1, 2, 4 or 8.
#[unsafe(no_mangle)]
pub extern "C" fn length_prefixed(width: u32, is_big: bool, counts_itself: bool) {
    let width = match width {
        1 => PrefixWidth::U8,
        2 => PrefixWidth::U16,
        4 => PrefixWidth::U32,
        _ => PrefixWidth::U64,
    };
    let endian = if is_big { Endian::Big } else { Endian::Little };
    let counts = if counts_itself { PrefixCounts::Itself } else { PrefixCounts::Payload };
    host(|host| host.framer = Box::new(LengthPrefixed::new(width, endian).counts(counts)));
}

/// Selects consecutive BSON documents.
#[unsafe(no_mangle)]
pub extern "C" fn documents() {
    host(|host| host.framer = Box::new(Bson::new()));
}

/// Selects lines of newline-delimited JSON, which are checked with this limit or not examined.
#[unsafe(no_mangle)]
pub extern "C" fn json_lines(is_checked: bool, depth: usize) {
    let lines = if is_checked { JsonLines::checked().depth(depth) } else { JsonLines::new() };
    host(|host| host.framer = Box::new(lines));
}

/// Selects records of CSV in the dialect whose text is in `input`. Returns false on failure; then `reply` contains the
/// error.
#[unsafe(no_mangle)]
pub extern "C" fn csv(length: usize) -> bool {
    host(|host| match String::from_utf8_lossy(&host.input[..length]).parse().and_then(Csv::with) {
        Ok(csv) => {
            host.framer = Box::new(csv.clone());
            host.rows.csv = csv;
            true
        }
        Err(error) => {
            host.reply = failure(&error, 0).to_string();
            false
        }
    })
}

/// Finds the complete records at the front of this many bytes of `input`; `ends` returns the address of their ends.
///
/// Returns twice their number, plus 1 if the last one is terminated. `step` reports the error of the first record that
/// is not among them.
#[unsafe(no_mangle)]
pub extern "C" fn batch(length: usize, eof: bool, max: usize) -> usize {
    host(|Host { input, framer, ends, .. }| {
        ends.clear();
        let terminated = framer.batch(&input[..length], eof, max, ends).unwrap_or(true);
        ends.len() << 1 | usize::from(terminated)
    })
}

/// Returns the address of the ends of the last batch.
#[unsafe(no_mangle)]
pub extern "C" fn ends() -> *const u32 {
    host(|host| host.ends.as_ptr())
}

/// Returns the number of line ends inside the first `count` records of the last batch, whose bytes are still in `input`.
#[unsafe(no_mangle)]
pub extern "C" fn inner_lines(count: usize) -> usize {
    host(|Host { input, framer, ends, .. }| {
        let ends = ends[..count].iter().map(|&end| end as usize);
        framer.record_lines().inside(input, ends).unwrap_or(0) as usize
    })
}

/// Returns the address to which JavaScript may write this many offsets of records, for `rows`.
#[unsafe(no_mangle)]
pub extern "C" fn offsets(count: usize) -> *mut u32 {
    host(|host| {
        host.ends.resize(count, 0);
        host.ends.as_mut_ptr()
    })
}

/// Splits the records of CSV in this many bytes of `input` at the `offsets` into fields; see `Rows::split`.
///
/// Returns the address of seven numbers: whether all records were split, and the addresses and lengths of `records`,
/// `offsets` and `contents`.
#[unsafe(no_mangle)]
pub extern "C" fn rows(length: usize, terminated: bool, is_text: bool, is_strict: bool) -> *const usize {
    host(|Host { input, ends, rows, split, .. }| {
        let trim = rows.csv.trim();
        let is_whole = rows.split(&Batch::new(&input[..length], ends, trim, terminated), is_text, is_strict);
        let place = |words: &[u32]| [words.as_ptr() as usize, words.len()];
        let [[records, record_words], [offsets, offset_count]] = [place(&rows.records), place(&rows.offsets)];
        let contents = rows.contents.as_ptr() as usize;
        *split = [is_whole.into(), records, record_words, offsets, offset_count, contents, rows.contents.len()];
        split.as_ptr()
    })
}

/// Finds the record at the front of this many bytes of `input`, of which this many have been scanned, up to this state.
///
/// Returns 0 if it is incomplete, 1 if it is complete without a terminator, 2 if it is complete, and 3 if these bytes
/// cannot be a record; then `reply` contains the error.
#[unsafe(no_mangle)]
pub extern "C" fn step(length: usize, eof: bool, scanned: usize, state: u32) -> u32 {
    let resume = Resume::after(scanned).with_state(state);
    host(|host| match host.framer.step(&host.input[..length], resume, eof) {
        Step::Record { len, terminated } => {
            host.length = len as u64;
            1 + u32::from(terminated)
        }
        Step::More { resume, need } => {
            host.resume = resume;
            host.length = need;
            0
        }
        Step::Bad(error) => {
            host.reply = failure(&error, 0).to_string();
            3
        }
    })
}

/// Returns the length of the last step's record in bytes; for an incomplete record, 0 if it is unknown.
#[unsafe(no_mangle)]
pub extern "C" fn step_length() -> f64 {
    host(|host| host.length as f64)
}

/// Returns the number of the last step's bytes that need not be scanned again.
#[unsafe(no_mangle)]
pub extern "C" fn step_scanned() -> usize {
    host(|host| host.resume.scanned())
}

/// Returns the framer's state after these bytes.
#[unsafe(no_mangle)]
pub extern "C" fn step_state() -> u32 {
    host(|host| host.resume.state())
}

/// Checks the documents in this many bytes of `input`; `is_last` is true if they are the last. `reply` has the
/// outcome.
#[unsafe(no_mangle)]
pub extern "C" fn check(length: usize, is_last: bool) {
    host(|host| host.reply = documents::check(&host.input[..length], is_last));
}

/// Finds the path of the value at this offset of the document in `input`, as JSON; `null` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn path_at(length: usize, at: usize) {
    host(|host| host.reply = serde_json::Value::from(path_in(&host.input[..length], at)).to_string());
}

/// Discards the documents that were examined.
#[unsafe(no_mangle)]
pub extern "C" fn sample() {
    host(|host| host.sample = Sample::default());
}

/// Examines documents for their columns until their number reaches `documents` or their size reaches `bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn observe(length: usize, is_last: bool, documents: usize, bytes: usize) {
    host(|host| host.reply = host.sample.observe(&host.input[..length], is_last, (documents, bytes)));
}

/// Returns the columns of the documents that were examined.
#[unsafe(no_mangle)]
pub extern "C" fn fields(mixed_is_json: bool) {
    host(|host| host.reply = host.sample.fields(mixed_is_json));
}

/// Creates columns as described by the JSON in `input`. Returns false on failure; then `reply` contains the error.
#[unsafe(no_mangle)]
pub extern "C" fn columns(length: usize) -> bool {
    host(|host| {
        let filler = Filler::new(&String::from_utf8_lossy(&host.input[..length]));
        let filler = filler.map_err(|error| host.reply = failure(&error, 0).to_string());
        host.filler = filler.ok();
        host.filler.is_some()
    })
}

/// Appends documents to the columns.
#[unsafe(no_mangle)]
pub extern "C" fn append(length: usize, is_last: bool) {
    host(|host| {
        if let Some(filler) = &mut host.filler {
            host.reply = filler.append(&host.input[..length], is_last);
        }
    });
}

/// Takes the rows of the columns and returns the position of the addresses of their parts, which are valid until the
/// next `append`.
#[unsafe(no_mangle)]
pub extern "C" fn take() -> *const *const u8 {
    host(|host| {
        if let Some(filler) = &mut host.filler {
            host.reply = filler.take();
            host.parts = filler.parts().into_iter().map(<[u8]>::as_ptr).collect();
        }
        host.parts.as_ptr()
    })
}
