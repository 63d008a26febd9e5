//! Converts BSON's own number types to text and back, and creates object ids.
//!
//!     char id[12], text[MILLSTREAM_BSON_OBJECT_ID_TEXT];
//!     code = millstream_bson_object_id_new(id, &error);
//!     code = millstream_bson_object_id_to_text(id, text, &error);           "57e193d7a9cc81b4027498b5"
//!     code = millstream_bson_object_id_from_text(text, 24, id, &error);
//!
//! The bytes are those of millstream_bson_as_object_id() and millstream_bson_builder_append_object_id(), and of the
//! corresponding functions for decimal numbers. Invalid text fails with MILLSTREAM_TEXT_INVALID, with the offset in the
//! text.

use std::ffi::{c_char, c_void};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::str::FromStr;

use millstream::bson::{Decimal128, ObjectId};
use millstream::{Error, Result};

use crate::boundary::{bytes, call, invalid, memory};
use crate::error::{millstream_code, millstream_error};

/// The space for the text of an object id, including its NUL.
pub const MILLSTREAM_BSON_OBJECT_ID_TEXT: usize = 25;

/// The space for the longest text of a decimal number, including its NUL.
pub const MILLSTREAM_BSON_DECIMAL128_TEXT: usize = 43;

/// Writes the text of the value in `N` bytes, and a NUL after it, to space for `SPACE` bytes.
///
/// # Safety
/// `value` is null or points to `N` bytes, `text` is null or points to space for `SPACE`.
unsafe fn write<const N: usize, const SPACE: usize, T: Display>(
    value: *const c_void,
    text: *mut c_char,
    make: impl FnOnce([u8; N]) -> T,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (value, space) = unsafe { (bytes(value, N, "value")?, memory(text, SPACE, "text")?) };
    let text = make(value.try_into().expect("exactly N bytes were requested")).to_string();
    debug_assert!(text.len() < SPACE);
    for (to, from) in space.iter_mut().zip(text.bytes().chain([0])) {
        to.write(from as c_char);
    }
    Ok(())
}

/// Parses a text, and writes the `N` bytes of its value.
///
/// # Safety
/// `text` is null or points to `len` bytes, `value` is null or points to space for `N`.
unsafe fn read<const N: usize, T: FromStr<Err = Error>>(
    text: *const c_char,
    len: usize,
    value: *mut c_void,
    give: impl FnOnce(T) -> [u8; N],
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (text, space) = unsafe { (bytes(text.cast(), len, "text")?, memory(value.cast::<u8>(), N, "value")?) };
    let text = std::str::from_utf8(text)
        .map_err(|_| invalid(format!("the text {:?}", String::from_utf8_lossy(text)), "UTF-8"))?;
    let read = text.parse::<T>();
    let bytes = read.map(give);
    for (to, from) in space.iter_mut().zip(bytes.as_ref().unwrap_or(&[0; N])) {
        to.write(*from);
    }
    bytes.map(drop)
}

/// Creates a unique object id from the time, this process and a counter. `id` has space for 12 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_object_id_new(
    id: *mut c_void,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends the memory for this call.
        let space = unsafe { memory(id.cast::<u8>(), 12, "id")? };
        for (to, from) in space.iter_mut().zip(ObjectId::new().0) {
            to.write(from);
        }
        Ok(())
    })
}

/// Writes the 24 hexadecimal digits of the 12 bytes of `id`, followed by a NUL, to `text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_object_id_to_text(
    id: *const c_void,
    text: *mut c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the bytes and the space for this call.
    call(error, || unsafe { write::<12, MILLSTREAM_BSON_OBJECT_ID_TEXT, _>(id, text, ObjectId) })
}

/// Parses 24 hexadecimal digits, of either case, into the 12 bytes of `id`, which are 0 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_object_id_from_text(
    text: *const c_char,
    len: usize,
    id: *mut c_void,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { read(text, len, id, |id: ObjectId| id.0) })
}

/// Writes the text of a decimal number, such as "1.50", "1E+6", "NaN" or "-Infinity", followed by a NUL, to `text`.
/// `decimal` is its 16 bytes, the lowest first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_decimal128_to_text(
    decimal: *const c_void,
    text: *mut c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { write::<16, MILLSTREAM_BSON_DECIMAL128_TEXT, _>(decimal, text, Decimal128) })
}

/// Parses the text of a decimal number into the 16 bytes of `decimal`, which are 0 after an error. A number that would
/// have to be rounded also fails with MILLSTREAM_TEXT_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_bson_decimal128_from_text(
    text: *const c_char,
    len: usize,
    decimal: *mut c_void,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: as above.
    call(error, || unsafe { read(text, len, decimal, |decimal: Decimal128| decimal.0) })
}
