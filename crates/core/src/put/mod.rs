//! Formats text and numbers as bytes, with one check per record.
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
//! constant size: a literal takes a store or two. Digits are generated without branches that depend on their number.
//!
//! The text of a part:
//!
//! | part | bytes |
//! |---|---|
//! | `&str`, `String`, `Cow<str>`, `char` | UTF-8 |
//! | `&[u8]`, `[u8; N]`, `b"literal"`, `Vec<u8>`, `Cow<[u8]>` | unchanged |
//! | integers to 128 bits, [`NonZero`](std::num::NonZero) | decimal; a `u8` is a number, not a byte |
//! | `f32`, `f64` | the shortest text that reads back the same: `1.0`, `0.1`, `1e16`, `1.5e-7`, `NaN`, `inf` |
//! | `bool` | `true`, `false` |
//! | [`fixed`]`(1.005, 2)` | `1.00`: this number of digits after the point, rounded from the exact value |
//! | [`hex`]`(255)` | `ff`; negative numbers in two's complement |
//! | [`pad`]`(42, 5)` | `···42`, with spaces in front |
//! | [`zero_fill`]`(-42, 5)` | `-0042` |
//! | [`json`]`("a\"b")` | `"a\"b"`, with its quotes |
//!
//! References to parts are parts, and so are all types that implement [`Part`].
//!
//! If `put!` fails, no bytes have been written. The output does not depend on the size of the buffer. This module does
//! not localise, and has no format strings: use `write!` for these, which accepts a `Writer` too.
//!
//! # How digits are generated
//! Digits are generated with AVX-512 IFMA if the CPU supports it, otherwise with a table of 40 KiB. The environment
//! variable `MILLSTREAM_DIGITS`, which is read only one time, can be `portable` (the table) or `ifma`. If the name is
//! unknown or the CPU does not support the instructions, the best available implementation is used. The variable is for
//! tests and for tools like callgrind.
//!
//! # Unsafe code
//! This module writes through raw pointers. It does not have to trust callers of [`Part::put`] or [`Spare::put`],
//! because a [`Spare`] checks each part. A writer's space is checked only one time for all parts of a record. This
//! relies on the lengths that the parts of this crate announce, but not on user-defined parts.

mod digits;
mod float;
mod integer;
pub(crate) mod json;
pub(crate) mod parts;
mod spare;
mod text;

pub use float::{Fixed, fixed};
pub use integer::{Hex, Integer, Number, Pad, ZeroFill, hex, pad, zero_fill};
pub use json::{Json, json};
pub use spare::Spare;

use parts::SLACK;
use spare::put_checked;

/// Puts parts into a `Writer` as one record: all of them or none.
///
/// ```
/// use millstream::put::{Part, Spare, hex, zero_fill};
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
///     fn put(&self, spare: &mut Spare<'_>) {
///         spare.put(self.x);
///         spare.put(',');
///         spare.put(self.y);
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
/// [`Result<()>`](crate::Result). [The module](mod@crate::put) lists the types of parts. With a shared writer, the lock
/// is held while the parts are put: a part must not use that writer itself.
///
/// # Errors
/// Returns the errors of `Writer::write`; no part of the record was accepted.
#[macro_export]
macro_rules! put {
    ($out:expr $(, $part:expr)* $(,)?) => {
        $out.put_parts(&$crate::put_parts!($($part),*))
    };
}

/// Creates the list of parts that [`put!`](crate::put!) passes on: pairs of a part and the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! put_parts {
    () => { () };
    ($first:expr $(, $rest:expr)*) => { (&$first, $crate::put_parts!($($rest),*)) };
}

/// A value that [`put!`](crate::put!) can write. The [module](self) lists the types that implement it;
/// [`put!`](crate::put!) shows how to implement it.
pub trait Part {
    /// Returns an upper bound of its text's length in bytes, which must be cheap to compute. Memory for this many bytes
    /// is reserved.
    fn max_len(&self) -> usize;

    /// Appends the part to `spare`.
    ///
    /// # Panics
    /// Panics if `spare` is too small, which cannot happen if [`max_len`](Self::max_len) is correct. A panic in a
    /// `put!` leaves the writer unchanged.
    fn put(&self, spare: &mut Spare<'_>);

    /// Puts a part of this crate without checks, and returns a pointer to its end.
    ///
    /// # Safety
    /// The conditions of [`Place`](sealed::Place) hold.
    #[doc(hidden)]
    #[inline]
    unsafe fn put_unchecked(&self, place: sealed::Place) -> *mut u8 {
        // The part must not use space that other parts left unused: whether it fits must not depend on other parts.
        let most = self.max_len().min(place.most);
        // SAFETY: guaranteed by the caller, for fewer bytes.
        let mut spare = unsafe { Place { most, ..place }.spare() };
        self.put(&mut spare);
        let len = spare.len();
        // The part may have replaced this `Spare` by another one.
        assert!(len <= most, "a part of {len} bytes that announced at most {most}");
        // SAFETY: `len` is at most `most`, so this many bytes exist.
        unsafe { place.at.add(len) }
    }
}

mod sealed {
    use super::{SLACK, Spare};

    /// The place for a part. The name is private, so that no other crate can override [`put_unchecked`](super::Part).
    ///
    /// The creator guarantees that `most` + [`SLACK`] bytes at `at` are initialised, and that no other code uses them.
    /// For a part of this crate that does not consist of others, `most` is at least its
    /// [`max_len`](super::Part::max_len).
    #[derive(Clone, Copy, Debug)]
    pub struct Place {
        pub(super) at: *mut u8,
        pub(super) most: usize,
    }

    impl Place {
        /// Returns a `Spare` of `most` bytes at this place.
        ///
        /// # Safety
        /// The conditions of this type hold while the `Spare` exists.
        pub(super) unsafe fn spare<'a>(self) -> Spare<'a> {
            // SAFETY: guaranteed by the caller.
            Spare::with_slack(unsafe { std::slice::from_raw_parts_mut(self.at, self.most + SLACK) })
        }
    }
}

use sealed::Place;

impl<P: Part + ?Sized> Part for &P {
    #[inline]
    fn max_len(&self) -> usize {
        (**self).max_len()
    }

    fn put(&self, spare: &mut Spare<'_>) {
        (**self).put(spare);
    }

    #[inline]
    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        // SAFETY: the same conditions hold.
        unsafe { (**self).put_unchecked(place) }
    }
}
