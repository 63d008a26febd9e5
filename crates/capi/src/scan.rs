//! Numbers and words from text.
//!
//! These functions handle every case: a token cut by the end of the buffer, an error, the end of the input. The inlined
//! ones of window.h (millstream_input_scan_u64() and similar functions) are for many numbers: they handle the common
//! case themselves and leave the others to these.
//!
//! Values are separated by white space (the bytes 9 to 13, and 32), any amount of it: MILLSTREAM_SPACE. Or by exactly
//! one byte with a value from 0 to 255, or one line end. White space before a value is consumed with it, but not what
//! follows it; so millstream_reader_next_line() after a number is the rest of its line.
//!
//! At the end of the input, with only separators left, `end` is set to true, which means that the source succeeded. If
//! `end` is NULL there must be a value: otherwise the error is MILLSTREAM_VALUE_MISSING.
//!
//! A token that is not a number of the type is MILLSTREAM_NUMBER_INVALID, one that is too large
//! MILLSTREAM_NUMBER_OVERFLOW. Nothing is consumed then, and the error repeats until the token is read in another way,
//! for example with millstream_reader_next_word(). The error has its offset, its line and its text.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use millstream::scan::{self, Number, Scan};
use millstream::{Error, Result};

use crate::boundary::{bytes, call, given, invalid, out};
use crate::error::{millstream_code, millstream_error};
use crate::reader::{Span, millstream_reader};

/// Any amount of white space, as a separator.
pub const MILLSTREAM_SPACE: i32 = -1;

/// The next value of a type; without `end` there must be one.
fn next<T: Scan>(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<T>>,
    end: Option<&mut MaybeUninit<bool>>,
) -> Result<()> {
    let value = out(value, "value")?;
    let separator = match u8::try_from(separator) {
        Ok(byte) => Some(byte),
        Err(_) if separator == MILLSTREAM_SPACE => None,
        Err(_) => return Err(invalid(format!("the separator {separator}"), "a byte, or MILLSTREAM_SPACE")),
    };
    let reader = given(reader, "reader")?;
    let Some(end) = end else {
        return reader.with(|reader| {
            value.write(match separator {
                Some(byte) => reader.require_delimited(byte)?,
                None => reader.require()?,
            });
            Ok(())
        });
    };
    end.write(false);
    reader.with(|reader| {
        let next = match separator {
            Some(byte) => reader.scan_delimited(byte)?,
            None => reader.scan()?,
        };
        end.write(next.is_none());
        if let Some(next) = next {
            value.write(next);
        }
        Ok(())
    })
}

/// A whole number from 0 to 2^32 - 1: the next value.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_u32(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<u32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// A whole number from 0 to 2^64 - 1: the next value.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_u64(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<u64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// A whole number from -2^31 to 2^31 - 1: the next value.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_i32(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<i32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// A whole number from -2^63 to 2^63 - 1: the next value.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_i64(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<i64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// A floating-point number, rounded once, from its decimal digits: the next value. inf and nan are numbers too.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_f32(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<f32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// A floating-point number, correctly rounded: the next value. inf and nan are numbers too.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_scan_f64(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<f64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next(reader, separator, value, end))
}

/// The next word: the bytes up to the next white space or the end. At the end `word` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_word(
    reader: Option<&mut millstream_reader>,
    word: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let word = Span::out(word, "word", len)?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.next_word()? {
                word.set(found);
            }
            Ok(())
        })
    })
}

/// The rest of the line, without blanks and tabs before it and without its line end. Right after a number or a word it
/// is the rest of their line, which may be empty, also where the input ends without a line end. At the end `line` is
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_rest_of_line(
    reader: Option<&mut millstream_reader>,
    line: Option<&mut MaybeUninit<*const c_char>>,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let line = Span::out(line, "line", len)?;
        given(reader, "reader")?.with(|reader| {
            if let Some(found) = reader.rest_of_line()? {
                line.set(found);
            }
            Ok(())
        })
    })
}

/// The number in a complete token.
///
/// # Safety
/// As [`bytes`].
unsafe fn parse<T: Number>(token: *const c_void, len: usize, value: Option<&mut MaybeUninit<T>>) -> Result<()> {
    let value = out(value, "value")?;
    // SAFETY: the caller's promise.
    let token = unsafe { bytes(token, len, "token")? };
    let parsed = scan::parse(token).map_err(|kind| Error::new(kind).with_found(shown(token)))?;
    value.write(parsed);
    Ok(())
}

/// The beginning of a token, for messages.
fn shown(token: &[u8]) -> String {
    token[..token.len().min(64)].escape_ascii().to_string()
}

/// The number in a complete token of `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_parse_f32(
    token: *const c_void,
    len: usize,
    value: Option<&mut MaybeUninit<f32>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { parse(token, len, value) })
}

/// The number in a complete token of `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_parse_f64(
    token: *const c_void,
    len: usize,
    value: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { parse(token, len, value) })
}

/// Opens a window: the bytes from `at` up to `end` may be read, and the reader refuses other non-const calls until
/// millstream_reader_end_window() is told how many of them were used. It does not read, so the window may be empty.
/// window.h is built on this: see millstream_input there.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_window(
    reader: Option<&mut millstream_reader>,
    at: Option<&mut MaybeUninit<*const c_char>>,
    end: Option<&mut MaybeUninit<*const c_char>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (at, end) = (out(at, "at")?, out(end, "end")?);
        let (reader, condition) = given(reader, "reader")?.parts()?;
        let window = condition.lend(|| reader.scan_window())?.as_ptr_range();
        at.write(window.start.cast());
        end.write(window.end.cast());
        Ok(())
    })
}

/// Ends a window, of which the first `used` bytes are consumed. Line ends among them count as records.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_end_window(
    reader: Option<&mut millstream_reader>,
    used: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (reader, condition) = given(reader, "reader")?.parts()?;
        condition.take_back()?;
        let there = reader.buffer().len();
        if used > there {
            return Err(invalid(format!("{used} bytes used"), format!("at most the {there} of the window")));
        }
        reader.consume_scanned(used);
        Ok(())
    })
}
