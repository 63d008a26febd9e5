//! Formats numbers, and provides space to which text is written.
//!
//! Whole numbers are formatted by numbers.h, without the library; floating-point numbers are formatted here. The
//! inlined functions of window.h (millstream_output_put_u64() and similar functions) write both kinds into the space of
//! a writer.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use millstream::put::{Part, Spare, fixed};
use millstream::{Result, Writer};

use crate::boundary::{Condition, call, given, invalid, out};
use crate::error::{millstream_code, millstream_error};
use crate::writer::millstream_writer;

/// The number of bytes of space that any floating-point number needs, unless it has fixed digits.
pub const MILLSTREAM_FLOAT_SIZE: usize = 32;

/// The number of bytes of space that a number with fixed digits needs in addition to those digits.
pub const MILLSTREAM_FIXED_SIZE: usize = 312;

/// Writes a part of at most `needed` bytes to C's memory.
///
/// # Safety
/// `to` is null or points to `size` bytes that no other code uses during the call.
unsafe fn format(
    part: impl Part,
    needed: usize,
    to: *mut c_char,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> Result<()> {
    let len = out(len, "len")?;
    if to.is_null() || size < needed || size > isize::MAX as usize {
        return Err(invalid(format!("space for {size} bytes at {to:p}"), format!("space for {needed}")));
    }
    // SAFETY: not null, and lent by the caller. It is only written to, and any byte values may be written.
    let mut spare = Spare::over(unsafe { std::slice::from_raw_parts_mut(to.cast(), size) });
    spare.put(part);
    len.write(spare.len());
    Ok(())
}

/// Writes the shortest text that reads back as the same number: 1.0, 0.1, 1e16, 1.5e-7, NaN, inf, -0.0. `to` has `size`
/// bytes, at least MILLSTREAM_FLOAT_SIZE, any of which may be changed. `len` is set to the length of the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f32(
    value: f32,
    to: *mut c_char,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the memory for this call.
    call(error, || unsafe { format(value, MILLSTREAM_FLOAT_SIZE, to, size, len) })
}

/// Formats a double; otherwise identical to millstream_format_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f64(
    value: f64,
    to: *mut c_char,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the memory for this call.
    call(error, || unsafe { format(value, MILLSTREAM_FLOAT_SIZE, to, size, len) })
}

/// Writes a number with `digits` digits after the decimal point, at most 65535, as "%.*f" does: rounded from the exact
/// value, to the even digit if two numbers are equally near. `size` must be at least MILLSTREAM_FIXED_SIZE + digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f64_fixed(
    value: f64,
    digits: u32,
    to: *mut c_char,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let digits = u16::try_from(digits).map_err(|_| invalid(format!("{digits} digits"), "at most 65535"))?;
        let needed = MILLSTREAM_FIXED_SIZE + usize::from(digits);
        // SAFETY: C lends the memory for this call.
        unsafe { format(fixed(value, digits), needed, to, size, len) }
    })
}

/// Opens a window: the bytes from `at` up to `end`, at least `least` bytes, are space to fill, and the writer refuses
/// other non-const calls until millstream_writer_end_window().
///
/// If a window is already open, it is replaced: its first `used` bytes are accepted, and the following `kept` bytes, of
/// an incomplete record, are moved to the front of the next window, before `at`. After an error no window is open, and
/// the kept bytes are lost; so are the used bytes if they could not be accepted.
///
/// `collects` is set to whether bytes may be accepted at any time while the window has space; otherwise accept them
/// after each record.
///
/// window.h uses this function: see millstream_output there.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_window(
    writer: Option<&mut millstream_writer>,
    used: usize,
    kept: usize,
    least: usize,
    at: Option<&mut MaybeUninit<*mut c_char>>,
    end: Option<&mut MaybeUninit<*mut c_char>>,
    collects: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let (at, end, collects) = (out(at, "at")?, out(end, "end")?, out(collects, "collects")?);
        let millstream_writer { writer, condition, .. } = given(writer, "writer")?;
        let begun = match condition {
            Condition::Lent => {
                condition.take_back()?;
                condition.during(|| accept(writer, used, kept))?
            }
            _ if (used, kept) != (0, 0) => return Err(invalid("no open window to continue", "0 used and kept")),
            _ => Vec::new(),
        };
        let Some(needed) = begun.len().checked_add(least).filter(|&needed| needed <= isize::MAX as usize) else {
            return Err(invalid(format!("space for {least} bytes"), "at most half of the address space"));
        };
        collects.write(writer.collects());
        let window = condition.lend(|| {
            let space = writer.space(needed)?;
            space[..begun.len()].copy_from_slice(&begun);
            Ok(&mut space[begun.len()..])
        })?;
        let window = window.as_mut_ptr_range();
        at.write(window.start.cast());
        end.write(window.end.cast());
        Ok(())
    })
}

/// Ends a window and accepts its first `used` bytes. After an error none of these bytes were accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_writer_end_window(
    writer: Option<&mut millstream_writer>,
    used: usize,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let millstream_writer { writer, condition, .. } = given(writer, "writer")?;
        condition.take_back()?;
        condition.during(|| accept(writer, used, 0).map(drop))
    })
}

/// Accepts the first `used` bytes of the writer's space, and returns the following `kept` bytes.
fn accept(writer: &mut Writer, used: usize, kept: usize) -> Result<Vec<u8>> {
    // A request for 0 bytes returns the existing space, so no bytes move. A pending error is reported first.
    let space = writer.space(0)?;
    let Some(begun) = used.checked_add(kept).and_then(|filled| space.get(used..filled)) else {
        return Err(invalid(format!("{used} bytes used and {kept} kept"), format!("at most the {}", space.len())));
    };
    let begun = begun.to_vec();
    writer.commit(used)?;
    Ok(begun)
}
