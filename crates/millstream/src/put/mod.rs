//! Text and numbers into bytes, with one check per record.
//!
//! ```
//! use millstream::{Writer, put};
//!
//! let mut out = Writer::memory()?;
//! for i in 0..3 {
//!     put!(out, "Hello, ", i, '\t')?;
//! }
//! assert_eq!(out.close()?.memory.unwrap(), b"Hello, 0\tHello, 1\tHello, 2\t");
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! [`put!`](crate::put!) adds up how long its [parts](Part) can become at most, looks once whether the writer's buffer
//! has so much room, and writes them without looking again. Where nothing depends on the data, the copies have a
//! constant size: a literal is a store or two. Digits are made without branches that depend on their number.
//!
//! What a part becomes:
//!
//! | part | bytes |
//! |---|---|
//! | `&str`, `String`, `Cow<str>`, `char` | their UTF-8 |
//! | `&[u8]`, `[u8; N]`, `b"literal"`, `Vec<u8>`, `Cow<[u8]>` | as they are |
//! | integers to 128 bits, [`NonZero`](std::num::NonZero) | decimal; a `u8` is a number, not a byte |
//! | `f32`, `f64` | the shortest text that reads back the same: `1.0`, `0.1`, `1e16`, `1.5e-7`, `NaN`, `inf` |
//! | `bool` | `true`, `false` |
//! | [`fixed`]`(1.005, 2)` | `1.00`: so many digits behind the point, rounded from the exact value |
//! | [`hex`]`(255)` | `ff`; negative numbers in two's complement |
//! | [`pad`]`(42, 5)` | `···42`, with spaces in front |
//! | [`zero_fill`]`(-42, 5)` | `-0042` |
//! | [`json`]`("a\"b")` | `"a\"b"`, with its quotes |
//!
//! References to parts are parts, and so is whatever implements [`Part`].
//!
//! It promises that a `put!` which fails has put nothing, and that what it puts does not depend on the size of the
//! buffer. It does not localise, and it does not do what format strings do: for that there is `write!`, which takes
//! a [`Writer`](crate::Writer) too.
//!
//! # How digits are made
//! By AVX-512 IFMA where the processor has it, else by a table of 40 KiB. The environment variable
//! `MILLSTREAM_DIGITS`, read once, can be `portable` (the table) or `ifma`; a name that does not exist, or what the
//! machine lacks, gives the best that it has. It is there for tests and for tools like callgrind.
//!
//! # Unsafe code
//! This room writes by raw pointers. Who calls [`Part::put`] or [`Room::put`] needs no trust: a [`Room`] checks each
//! part. A writer's room is measured once for all parts of a record: that relies on the lengths that the parts of this
//! crate announce, and on nothing that a part of somebody else says.

mod digits;
mod float;
mod integer;
mod json;
mod room;
mod text;

pub use float::{Fixed, fixed};
pub use integer::{Hex, Integer, Number, Pad, ZeroFill, hex, pad, zero_fill};
pub(crate) use json::append_json;
pub use json::{Json, json};
pub use room::Room;

use room::put_checked;

/// Bytes behind the longest text of a part that it may overwrite with anything: copies of constant size are faster
/// than exact ones.
pub(crate) const SLACK: usize = 16;

/// Puts parts into a [`Writer`](crate::Writer) as one record: all of them, or none.
///
/// ```
/// use millstream::put::{Part, Room, hex, zero_fill};
/// use millstream::{Writer, put};
///
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// impl Part for Point {
///     fn max_len(&self) -> usize {
///         self.x.max_len() + 1 + self.y.max_len()
///     }
///     fn put(&self, room: &mut Room<'_>) {
///         room.put(self.x);
///         room.put(',');
///         room.put(self.y);
///     }
/// }
///
/// fn log(out: &mut Writer, point: &Point) -> millstream::Result<()> {
///     put!(out, "at ", point, ", flags ", hex(0xbeef_u16), ", number ", zero_fill(7, 3), '\n')
/// }
///
/// let mut out = Writer::memory()?;
/// log(&mut out, &Point { x: -3, y: 4 })?;
/// assert_eq!(out.close()?.memory.unwrap(), b"at -3,4, flags beef, number 007\n");
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// The first argument is a `Writer`, a [`SharedWriter`](crate::SharedWriter) or a reference to one; the value is a
/// [`Result<()>`](crate::Result). What the parts may be: [`millstream::put`](mod@crate::put). Of a shared writer, the
/// lock is held while the parts are put: a part must not use that writer itself.
///
/// # Errors
/// Those of [`Writer::write`](crate::Writer::write): nothing of the record was accepted then.
#[macro_export]
macro_rules! put {
    ($out:expr $(, $part:expr)* $(,)?) => {
        $out.put_parts(&$crate::put_parts!($($part),*))
    };
}

/// The list of parts that [`put!`](crate::put!) hands over: pairs of a part and the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! put_parts {
    () => { () };
    ($first:expr $(, $rest:expr)*) => { (&$first, $crate::put_parts!($($rest),*)) };
}

/// Something that [`put!`](crate::put!) can write. The [module](self) lists what implements it; [`put!`](crate::put!)
/// shows how to implement it.
pub trait Part {
    /// How many bytes it becomes at most: a bound that is cheap to have. Memory for so many is reserved.
    fn max_len(&self) -> usize;

    /// Appends it to `room`.
    ///
    /// # Panics
    /// If `room` is too small, which it is not if [`max_len`](Self::max_len) is right. A panic in a `put!` leaves the
    /// writer as it was.
    fn put(&self, room: &mut Room<'_>);

    /// The same without checks, for the parts of this crate. Returns where it ends.
    ///
    /// # Safety
    /// What [`Place`](sealed::Place) promises holds.
    #[doc(hidden)]
    #[inline]
    unsafe fn put_unchecked(&self, place: sealed::Place) -> *mut u8 {
        // What others left of theirs is not for this one: whether it fits must not depend on them.
        let most = self.max_len().min(place.most);
        // SAFETY: the caller's promise, for fewer bytes.
        let mut room = unsafe { Place { most, ..place }.room() };
        self.put(&mut room);
        let len = room.len();
        // The part may have put another room in the place of this one.
        assert!(len <= most, "a part of {len} bytes that announced {most}");
        // SAFETY: so many bytes are there.
        unsafe { place.at.add(len) }
    }
}

mod sealed {
    use super::{Room, SLACK};

    /// Where a part goes. The name is private, so that nobody else can replace [`put_unchecked`](super::Part).
    ///
    /// It promises: `most` + [`SLACK`] bytes at `at` are initialised, and nobody else uses them. For a part of this
    /// crate that is not made of others, `most` is at least its [`max_len`](super::Part::max_len).
    #[derive(Clone, Copy, Debug)]
    pub struct Place {
        pub(super) at: *mut u8,
        pub(super) most: usize,
    }

    impl Place {
        /// A room here for `most` bytes.
        ///
        /// # Safety
        /// What the type promises holds, for as long as the room exists.
        pub(super) unsafe fn room<'a>(self) -> Room<'a> {
            // SAFETY: the caller's promise.
            Room::with_slack(unsafe { std::slice::from_raw_parts_mut(self.at, self.most + SLACK) })
        }
    }

    /// What [`put!`](crate::put!) hands over: `(&part, rest)` or, at the end, `()`.
    pub trait Parts {
        /// The sum of the parts' maxima.
        fn max_len(&self) -> usize;

        /// Puts all parts, and returns where they end.
        ///
        /// # Safety
        /// `left` + [`SLACK`] bytes at `at` are initialised, and nobody else uses them; `left` is at least what
        /// [`max_len`](Self::max_len) has returned, at any time.
        unsafe fn put_unchecked(&self, at: *mut u8, left: usize) -> *mut u8;
    }
}

pub(crate) use sealed::Parts;
use sealed::Place;

// Always inlined, as is all between `put!` and the parts: the size of a copy is then known when the code is compiled.

impl Parts for () {
    #[inline(always)]
    fn max_len(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, at: *mut u8, _: usize) -> *mut u8 {
        at
    }
}

impl<P: Part + ?Sized, R: Parts> Parts for (&P, R) {
    #[inline(always)]
    fn max_len(&self) -> usize {
        self.0.max_len().saturating_add(self.1.max_len())
    }

    #[inline(always)]
    unsafe fn put_unchecked(&self, at: *mut u8, left: usize) -> *mut u8 {
        // A part of this crate announces the same length each time, so `left` covers all of those that are still to
        // come. A part of somebody else gets what these do not need, whatever it announced before.
        let most = left.saturating_sub(self.1.max_len());
        // SAFETY: `most` is at most `left`. It is at least what this part announced, unless other people's parts
        // announce more now than before; parts of this crate do not look at it.
        unsafe {
            let end = self.0.put_unchecked(Place { at, most });
            self.1.put_unchecked(end, left - end.offset_from_unsigned(at))
        }
    }
}

/// How many bytes of room `parts` need.
#[inline(always)]
pub(crate) fn need(parts: &impl Parts) -> usize {
    parts.max_len().saturating_add(SLACK)
}

/// Appends parts to a vector, as [`put!`](crate::put!) does to a writer.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, parts: &impl Parts) {
    let (len, most) = (out.len(), parts.max_len());
    out.resize(len + most + SLACK, 0);
    let at = out[len..].as_mut_ptr();
    // SAFETY: `most` + `SLACK` bytes were just put there; the end lies within them.
    let added = unsafe { parts.put_unchecked(at, most).offset_from_unsigned(at) };
    out.truncate(len + added);
}

impl<P: Part + ?Sized> Part for &P {
    #[inline]
    fn max_len(&self) -> usize {
        (**self).max_len()
    }

    fn put(&self, room: &mut Room<'_>) {
        (**self).put(room);
    }

    #[inline]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: the same promise.
        unsafe { (**self).put_unchecked(place) }
    }
}
