//! Text of numbers, and room to put it.
//!
//! Whole numbers are printed by numbers.h, without the library; floating-point numbers are printed here. The inlined
//! functions of window.h (millstream_output_put_u64() and its like) write both into the room of a writer.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use millstream::put::{Part, Room, fixed};
use millstream::{Result, Writer};

use crate::boundary::{Condition, call, given, invalid, out};
use crate::error::{millstream_code, millstream_error};
use crate::writer::millstream_writer;

/// How many bytes of room any floating-point number needs, unless it has fixed digits.
pub const MILLSTREAM_FLOAT_ROOM: usize = 32;

/// How many bytes of room a number with fixed digits needs beside those digits.
pub const MILLSTREAM_FIXED_ROOM: usize = 312;

/// Puts a part of at most `needed` bytes into C's memory.
///
/// # Safety
/// `to` is null or points to `room` bytes that nobody else uses during the call.
unsafe fn format(
    part: impl Part,
    needed: usize,
    to: *mut c_char,
    room: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> Result<()> {
    let len = out(len, "len")?;
    if to.is_null() || room < needed || room > isize::MAX as usize {
        return Err(invalid(format!("room for {room} bytes at {to:p}"), format!("room for {needed}")));
    }
    // SAFETY: not null, and lent by the caller. Only written to, and bytes of any value are good to write to.
    let mut room = Room::over(unsafe { std::slice::from_raw_parts_mut(to.cast(), room) });
    room.put(part);
    len.write(room.len());
    Ok(())
}

/// Writes the shortest text that reads back as the same number: 1.0, 0.1, 1e16, 1.5e-7, NaN, inf, -0.0. Needs `room` for
/// MILLSTREAM_FLOAT_ROOM bytes at `to`, any of which it may change; says in `len` how many are the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f32(
    value: f32,
    to: *mut c_char,
    room: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the room for this call.
    call(error, || unsafe { format(value, MILLSTREAM_FLOAT_ROOM, to, room, len) })
}

/// The same for a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f64(
    value: f64,
    to: *mut c_char,
    room: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    // SAFETY: C lends the room for this call.
    call(error, || unsafe { format(value, MILLSTREAM_FLOAT_ROOM, to, room, len) })
}

/// Writes a number with `digits` digits behind the point, at most 65535, as "%.*f" does: rounded from the exact value,
/// to even where two are equally near. Needs `room` for MILLSTREAM_FIXED_ROOM + digits bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_format_f64_fixed(
    value: f64,
    digits: u32,
    to: *mut c_char,
    room: usize,
    len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let digits = u16::try_from(digits).map_err(|_| invalid(format!("{digits} digits"), "at most 65535"))?;
        let needed = MILLSTREAM_FIXED_ROOM + usize::from(digits);
        // SAFETY: C lends the room for this call.
        unsafe { format(fixed(value, digits), needed, to, room, len) }
    })
}

/// Opens a window: the bytes from `at` up to `end`, at least `least`, are room to fill, and the writer serves no other
/// call that is not const until millstream_writer_end_window().
///
/// Where a window is open already, it goes over into the next one: its first `used` bytes are accepted, and the `kept`
/// bytes behind them, of a record that is not whole yet, are at the front of the next one, in front of `at`. After an
/// error no window is open, and the kept bytes are gone; what was to be accepted was not, if it was that which failed.
///
/// `collects` says whether it makes no difference when bytes are accepted, as long as the window has room; otherwise it
/// should happen after each record.
///
/// This is what window.h is made of: see millstream_output there.
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
            _ if (used, kept) != (0, 0) => return Err(invalid("no open window to go on from", "0 used and kept")),
            _ => Vec::new(),
        };
        let Some(needed) = begun.len().checked_add(least).filter(|&needed| needed <= isize::MAX as usize) else {
            return Err(invalid(format!("room for {least} bytes"), "at most half of the address space"));
        };
        collects.write(writer.collects());
        let window = condition.lend(|| {
            let room = writer.space(needed)?;
            room[..begun.len()].copy_from_slice(&begun);
            Ok(&mut room[begun.len()..])
        })?;
        let window = window.as_mut_ptr_range();
        at.write(window.start.cast());
        end.write(window.end.cast());
        Ok(())
    })
}

/// Ends a window and accepts the first `used` bytes of it. After an error none of them was accepted.
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

/// Accepts the first `used` bytes of the writer's space, and returns the `kept` ones behind them.
fn accept(writer: &mut Writer, used: usize, kept: usize) -> Result<Vec<u8>> {
    // A space of no bytes is what is there: nothing moves. An error that waits to be reported comes first.
    let room = writer.space(0)?;
    let Some(begun) = used.checked_add(kept).and_then(|filled| room.get(used..filled)) else {
        return Err(invalid(format!("{used} bytes used and {kept} kept"), format!("at most the {}", room.len())));
    };
    let begun = begun.to_vec();
    writer.commit(used)?;
    Ok(begun)
}
