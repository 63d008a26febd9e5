//! The functions of the WebAssembly module.
//!
//! JavaScript copies bytes to `input` and passes their number; longer results stay in this module's memory until the
//! next call, and JavaScript asks where they are.
//!
//! `unsafe` is only the attribute `no_mangle`: a symbol of the same name elsewhere would be undefined behaviour, and the
//! linker of WebAssembly refuses two.
#![allow(unsafe_code)]

use std::cell::RefCell;

use millstream_bson::internal::path_at as path_in;
use millstream_core::frame::{
    Bson, Delimiter, Endian, Fixed, Framer, LengthPrefixed, Lines, Predicate, PrefixCounts, PrefixWidth, Resume, Step,
};

use crate::documents::{self, Filler, Sample};
use crate::failure;

/// What is between two calls.
struct Host {
    /// What JavaScript has written.
    input: Vec<u8>,
    framer: Box<dyn Framer>,
    /// After each record of the last batch.
    ends: Vec<u32>,
    /// Where each part of the columns is that were taken last.
    parts: Vec<*const u8>,
    sample: Sample,
    filler: Option<Filler>,
    /// How many bytes the last step did not need to look at again, and the length of its record if known.
    scanned: usize,
    length: u64,
    /// JSON.
    reply: String,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host {
        input: Vec::new(),
        framer: Box::new(Lines::new()),
        ends: Vec::new(),
        parts: Vec::new(),
        sample: Sample::default(),
        filler: None,
        scanned: 0,
        length: 0,
        reply: String::new(),
    });
}

fn host<R>(call: impl FnOnce(&mut Host) -> R) -> R {
    HOST.with_borrow_mut(call)
}

/// Where JavaScript may write this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    host(|host| {
        if host.input.len() < length {
            host.input.resize(length, 0);
        }
        host.input.as_mut_ptr()
    })
}

/// Where the last reply is.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    host(|host| host.reply.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn reply_length() -> usize {
    host(|host| host.reply.len())
}

/// Records that end with the delimiter in `input`, at least one byte.
#[unsafe(no_mangle)]
pub extern "C" fn delimiter(length: usize) {
    host(|host| {
        if let Ok(framer) = Delimiter::bytes(&host.input[..length]) {
            host.framer = Box::new(framer);
        }
    });
}

/// Records that end after any byte whose entry in the 256 bytes of `input` is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn any_of() {
    host(|host| host.framer = Box::new(Predicate::new(|byte| host.input[usize::from(byte)] != 0)));
}

/// Records of this many bytes, at least one.
#[unsafe(no_mangle)]
pub extern "C" fn fixed(length: usize) {
    host(|host| {
        if let Ok(framer) = Fixed::new(length) {
            host.framer = Box::new(framer);
        }
    });
}

/// Records preceded by a length of `width` bytes: 1, 2, 4 or 8.
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

/// Consecutive BSON documents.
#[unsafe(no_mangle)]
pub extern "C" fn documents() {
    host(|host| host.framer = Box::new(Bson::new()));
}

/// Finds the complete records at the front of this many bytes of `input`: `ends` is where they end.
///
/// Returns twice their number, plus 1 if the last one is terminated. What is wrong with the first record that is not
/// among them is reported by `step`.
#[unsafe(no_mangle)]
pub extern "C" fn batch(length: usize, eof: bool, max: usize) -> usize {
    host(|Host { input, framer, ends, .. }| {
        ends.clear();
        let terminated = framer.batch(&input[..length], eof, max, ends).unwrap_or(true);
        ends.len() << 1 | usize::from(terminated)
    })
}

/// Where the ends of the last batch are.
#[unsafe(no_mangle)]
pub extern "C" fn ends() -> *const u32 {
    host(|host| host.ends.as_ptr())
}

/// Looks for the record at the front of this many bytes of `input`.
///
/// Returns 0 if it is not complete, 1 if it is but has no terminator, 2 if it is, 3 if these bytes cannot be a record:
/// then `reply` is why.
#[unsafe(no_mangle)]
pub extern "C" fn step(length: usize, eof: bool) -> u32 {
    host(|host| match host.framer.step(&host.input[..length], Resume::START, eof) {
        Step::Record { len, terminated } => {
            host.length = len as u64;
            1 + u32::from(terminated)
        }
        Step::More { resume, need } => {
            host.scanned = resume.scanned();
            host.length = need;
            0
        }
        Step::Bad(error) => {
            host.reply = failure(&error, 0).to_string();
            3
        }
    })
}

/// The length of the last step's record in bytes; if that is not complete, 0 if it is not known either.
#[unsafe(no_mangle)]
pub extern "C" fn step_length() -> f64 {
    host(|host| host.length as f64)
}

/// How many of the last step's bytes need not be looked at again.
#[unsafe(no_mangle)]
pub extern "C" fn step_scanned() -> usize {
    host(|host| host.scanned)
}

/// Checks the documents in this many bytes of `input`, which are the last, or not. `reply` has the outcome.
#[unsafe(no_mangle)]
pub extern "C" fn check(length: usize, is_last: bool) {
    host(|host| host.reply = documents::check(&host.input[..length], is_last));
}

/// The path of the value at this offset of the document in `input`: JSON, `null` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn path_at(length: usize, at: usize) {
    host(|host| host.reply = serde_json::Value::from(path_in(&host.input[..length], at)).to_string());
}

/// Forgets the documents that were examined.
#[unsafe(no_mangle)]
pub extern "C" fn sample() {
    host(|host| host.sample = Sample::default());
}

/// Examines documents, for their columns, until there were `documents` of them or they had `bytes` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn observe(length: usize, is_last: bool, documents: usize, bytes: usize) {
    host(|host| host.reply = host.sample.observe(&host.input[..length], is_last, (documents, bytes)));
}

/// The columns of the documents that were examined.
#[unsafe(no_mangle)]
pub extern "C" fn fields(mixed_is_json: bool) {
    host(|host| host.reply = host.sample.fields(mixed_is_json));
}

/// Makes columns as the JSON in `input` says. False if that failed: `reply` says how.
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

/// Takes the rows of the columns, and returns where the addresses of their parts are. They stay until the next `append`.
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
