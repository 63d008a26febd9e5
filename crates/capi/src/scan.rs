//! Scanning numbers and words in text.
//!
//! These functions handle every case: a token that is cut by the end of the buffer, an error, and the end of the input.
//! The inlined functions of window.h (millstream_input_scan_u64() and similar functions) are for many numbers: they
//! handle the common case themselves and call these functions for all others.
//!
//! Values are separated by any amount of white space (the bytes 9 to 13, and 32) with MILLSTREAM_SPACE, or else by
//! exactly one byte with the given value from 0 to 255, or one line end. White space before a value is consumed with
//! it, but white space after it is not; so after a number millstream_reader_next_line() returns the rest of its line.
//!
//! At the end of the input, with only separators left, `end` is set to true, which means that the source succeeded. If
//! `end` is NULL and no value is left, the function returns MILLSTREAM_VALUE_MISSING.
//!
//! A token that is not a number of the type fails with MILLSTREAM_NUMBER_INVALID; a number that is too large is
//! MILLSTREAM_NUMBER_OVERFLOW. The token is not consumed, and the error repeats until the token is read in another way,
//! for example with millstream_reader_next_word(). The error has its offset, its line and its text.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use millstream::scan::{self, Number, Scan, Separator};
use millstream::{Error, Result};

use crate::boundary::{bytes, call, given, invalid, out};
use crate::error::{millstream_code, millstream_error};
use crate::reader::{Span, millstream_reader};

/// A separator: any amount of white space.
pub const MILLSTREAM_SPACE: i32 = -1;

/// Returns the separator that C has given.
fn separator_of(separator: i32) -> Result<Separator> {
    match u8::try_from(separator) {
        Ok(byte) => Ok(Separator::Byte(byte)),
        Err(_) if separator == MILLSTREAM_SPACE => Ok(Separator::Space),
        Err(_) => Err(invalid(format!("the separator {separator}"), "a byte, or MILLSTREAM_SPACE")),
    }
}

/// Returns the next value of a type, which must exist if `end` is null.
fn next<T: Scan>(
    reader: Option<&mut millstream_reader>,
    separator: i32,
    value: Option<&mut MaybeUninit<T>>,
    end: Option<&mut MaybeUninit<bool>>,
) -> Result<()> {
    let value = out(value, "value")?;
    let separator = separator_of(separator)?;
    let reader = given(reader, "reader")?;
    let Some(end) = end else {
        return reader.with(|reader| {
            value.write(match separator {
                Separator::Byte(byte) => reader.require_delimited(byte)?,
                Separator::Space => reader.require()?,
            });
            Ok(())
        });
    };
    end.write(false);
    reader.with(|reader| {
        let next = match separator {
            Separator::Byte(byte) => reader.scan_delimited(byte)?,
            Separator::Space => reader.scan()?,
        };
        end.write(next.is_none());
        if let Some(next) = next {
            value.write(next);
        }
        Ok(())
    })
}

/// Scans the next value, a whole number from 0 to 2^32 - 1.
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

/// Scans the next value, a whole number from 0 to 2^64 - 1.
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

/// Scans the next value, a whole number from -2^31 to 2^31 - 1.
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

/// Scans the next value, a whole number from -2^63 to 2^63 - 1.
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

/// Scans the next value, a floating-point number, which is rounded directly from its decimal digits. inf and nan are
/// numbers too.
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

/// Scans the next value, a floating-point number, which is correctly rounded. inf and nan are numbers too.
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

/// Returns the next word: the bytes up to the next white space or the end. At the end `word` is NULL.
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

/// Returns the rest of the line, without leading blanks and tabs and without its line end. Directly after a number or a
/// word this is the rest of its line, which may be empty, even if the input ends without a line end. At the end `line`
/// is NULL.
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

// ---- columns ----

/// Returns the number in a column of the next line, or sets `end` at the end of the input.
fn next_column<T: Number>(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<T>>,
    end: Option<&mut MaybeUninit<bool>>,
) -> Result<()> {
    let (value, end) = (out(value, "value")?, out(end, "end")?);
    let separator = separator_of(separator)?;
    given(reader, "reader")?.with(|reader| {
        let next = reader.next_column(column, separator)?;
        end.write(next.is_none());
        if let Some(next) = next {
            value.write(next);
        }
        Ok(())
    })
}

/// Returns the number in a column of a line.
///
/// # Safety
/// The conditions of [`bytes`] apply.
unsafe fn column<T: Number>(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<T>>,
) -> Result<()> {
    let value = out(value, "value")?;
    // SAFETY: guaranteed by the caller.
    let line = unsafe { bytes(line, len, "line")? };
    value.write(scan::column(line, column, separator_of(separator)?)?);
    Ok(())
}

/// Gets the number in one column of the next line, a whole number from 0 to 2^32 - 1; the first column is 0. The other
/// columns need not contain numbers. Quotes have no meaning: for CSV with quotes use millstream_framer_rows(). A header is
/// skipped with millstream_reader_next_line(). At the end of the input,
/// `end` is set to true. After an error the line has been read, and the next call continues after it; the error has the
/// line and the column in bytes.
///
///     uint32_t age;
///     bool end;
///     while (millstream_reader_next_column_u32(reader, 1, ',', &age, &end, NULL) == MILLSTREAM_OK && !end)
///         sum += age;
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_u32(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<u32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of the next line, a whole number from 0 to 2^64 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_u64(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<u64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of the next line, a whole number from -2^31 to 2^31 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_i32(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<i32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of the next line, a whole number from -2^63 to 2^63 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_i64(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<i64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of the next line, a floating-point number; the first column is 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_f32(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<f32>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of the next line, a floating-point number; the first column is 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_reader_next_column_f64(
    reader: Option<&mut millstream_reader>,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<f64>>,
    end: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || next_column(reader, column, separator, value, end))
}

/// Gets the number in one column of a line of `len` bytes, a whole number from 0 to 2^32 - 1; the first column is 0. The other columns
/// need not contain numbers. The offset and the column of an error are counted from the start of the line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_u32(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Gets the number in one column of a line of `len` bytes, a whole number from 0 to 2^64 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_u64(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Gets the number in one column of a line of `len` bytes, a whole number from -2^31 to 2^31 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_i32(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Gets the number in one column of a line of `len` bytes, a whole number from -2^63 to 2^63 - 1; the first column is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_i64(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<i64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Gets the number in one column of a line of `len` bytes, a floating-point number; the first column is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_f32(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<f32>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Gets the number in one column of a line of `len` bytes, a floating-point number; the first column is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_column_f64(
    line: *const c_void,
    len: usize,
    column: usize,
    separator: i32,
    value: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes for this call.
    call(error, || unsafe { self::column(line, len, column, separator, value) })
}

/// Returns the number in a complete token.
///
/// # Safety
/// The conditions of [`bytes`] apply.
unsafe fn parse<T: Number>(token: *const c_void, len: usize, value: Option<&mut MaybeUninit<T>>) -> Result<()> {
    let value = out(value, "value")?;
    // SAFETY: guaranteed by the caller.
    let token = unsafe { bytes(token, len, "token")? };
    let parsed = scan::parse(token).map_err(|kind| Error::new(kind).with_found(shown(token)))?;
    value.write(parsed);
    Ok(())
}

/// Returns the start of a token, for messages.
fn shown(token: &[u8]) -> String {
    token[..token.len().min(64)].escape_ascii().to_string()
}

/// Parses the number in a complete token of `len` bytes.
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

/// Parses the number in a complete token of `len` bytes.
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
/// millstream_reader_end_window() is called with the number of bytes used. This does not read, so the window may be
/// empty. window.h uses this function: see millstream_input there.
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

/// Ends a window and consumes its first `used` bytes. Line ends in them count as records.
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
