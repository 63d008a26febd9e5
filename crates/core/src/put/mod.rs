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
//! [`put!`](crate::put!) adds up the maximum lengths of its [parts](Part), checks once whether they fit into the
//! writer's buffer, and writes them without further checks. If a length does not depend on the data, the copy has a
//! constant size: a literal is a store or two. Digits are made without branches that depend on their number.
//!
//! The text of a part:
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
//! References to parts are parts, and so are all types that implement [`Part`].
//!
//! It promises that a `put!` which fails has put nothing, and that the output does not depend on the size of the
//! buffer. It does not localise, and it does not do what format strings do: for that use `write!`, which accepts a
//! `Writer` too.
//!
//! # How digits are made
//! With AVX-512 IFMA if the processor has it, else with a table of 40 KiB. The environment variable
//! `MILLSTREAM_DIGITS`, read once, can be `portable` (the table) or `ifma`; for an unknown name, or a way that the
//! machine lacks, the best available is used. It is for tests and for tools like callgrind.
//!
//! # Unsafe code
//! This module writes through raw pointers. Callers of [`Part::put`] or [`Room::put`] need not be trusted: a [`Room`]
//! checks each part. A writer's space is measured once for all parts of a record: that relies on the lengths that the
//! parts of this crate announce, and on no user-defined part.

mod digits;
mod float;
mod integer;
pub(crate) mod json;
pub(crate) mod parts;
mod room;
mod text;

pub use float::{Fixed, fixed};
pub use integer::{Hex, Integer, Number, Pad, ZeroFill, hex, pad, zero_fill};
pub use json::{Json, json};
pub use room::Room;

use parts::SLACK;
use room::put_checked;

/// Puts parts into a `Writer` as one record: all of them, or none.
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
/// The first argument is a `Writer`, a `SharedWriter` or a reference to one; the value is a
/// [`Result<()>`](crate::Result). The types of parts: [the module](mod@crate::put). With a shared writer, the lock is
/// held while the parts are put: a part must not use that writer itself.
///
/// # Errors
/// Those of `Writer::write`: nothing of the record was accepted then.
#[macro_export]
macro_rules! put {
    ($out:expr $(, $part:expr)* $(,)?) => {
        $out.put_parts(&$crate::put_parts!($($part),*))
    };
}

/// The list of parts that [`put!`](crate::put!) passes on: pairs of a part and the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! put_parts {
    () => { () };
    ($first:expr $(, $rest:expr)*) => { (&$first, $crate::put_parts!($($rest),*)) };
}

/// Something that [`put!`](crate::put!) can write. The [module](self) lists what implements it; [`put!`](crate::put!)
/// shows how to implement it.
pub trait Part {
    /// The most bytes it becomes: a bound that is cheap to compute. Memory for this many is reserved.
    fn max_len(&self) -> usize;

    /// Appends it to `room`.
    ///
    /// # Panics
    /// If `room` is too small, which cannot happen if [`max_len`](Self::max_len) is right. A panic in a `put!` leaves
    /// the writer as it was.
    fn put(&self, room: &mut Room<'_>);

    /// The same without checks, for the parts of this crate. Returns where it ends.
    ///
    /// # Safety
    /// The promise of [`Place`](sealed::Place) holds.
    #[doc(hidden)]
    #[inline]
    unsafe fn put_unchecked(&self, place: sealed::Place) -> *mut u8 {
        // It must not use what others left of their share: whether it fits must not depend on them.
        let most = self.max_len().min(place.most);
        // SAFETY: the caller's promise, for fewer bytes.
        let mut room = unsafe { Place { most, ..place }.room() };
        self.put(&mut room);
        let len = room.len();
        // The part may have replaced this room by another one.
        assert!(len <= most, "a part of {len} bytes that announced at most {most}");
        // SAFETY: this many bytes are there.
        unsafe { place.at.add(len) }
    }
}

mod sealed {
    use super::{Room, SLACK};

    /// Where a part goes. The name is private, so that no other crate can override [`put_unchecked`](super::Part).
    ///
    /// It promises: `most` + [`SLACK`] bytes at `at` are initialised, and no other code uses them. For a part of this
    /// crate that is not made of others, `most` is at least its [`max_len`](super::Part::max_len).
    #[derive(Clone, Copy, Debug)]
    pub struct Place {
        pub(super) at: *mut u8,
        pub(super) most: usize,
    }

    impl Place {
        /// A `Room` here of `most` bytes.
        ///
        /// # Safety
        /// The promise of this type holds for as long as the room exists.
        pub(super) unsafe fn room<'a>(self) -> Room<'a> {
            // SAFETY: the caller's promise.
            Room::with_slack(unsafe { std::slice::from_raw_parts_mut(self.at, self.most + SLACK) })
        }
    }
}

use sealed::Place;

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
