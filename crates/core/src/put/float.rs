//! Formats floating-point numbers: the shortest text that reads back as the same number, or a fixed number of digits.

use std::fmt::Write as _;

use super::{Part, Place, Spare, put_checked};

/// The longest text of a number: `-2.2250738585072014e-308`.
const LONGEST: usize = 24;

impl Part for f64 {
    #[inline]
    fn max_len(&self) -> usize {
        LONGEST
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        let mut buffer = zmij::Buffer::new();
        // SAFETY: the same conditions hold.
        unsafe { put_without_plus(buffer.format(*self), place) }
    }
}

impl Part for f32 {
    #[inline]
    fn max_len(&self) -> usize {
        LONGEST
    }

    fn put(&self, spare: &mut Spare<'_>) {
        put_checked(self, spare);
    }

    unsafe fn put_unchecked(&self, place: Place) -> *mut u8 {
        let mut buffer = zmij::Buffer::new();
        // For two powers of ten, zmij chooses a different notation than for an f64.
        let text = match self.abs() {
            1e-6..1e-5 => &format!("{self:e}"),
            1e15..1e16 => &format!("{self:?}"),
            _ => buffer.format(*self),
        };
        // SAFETY: the same conditions hold.
        unsafe { put_without_plus(text, place) }
    }
}

/// Puts the text of a number, without the plus sign of its exponent: `1e16`, not `1e+16`.
///
/// # Safety
/// The conditions of [`Place`] hold, for [`LONGEST`] bytes.
unsafe fn put_without_plus(text: &str, place: Place) -> *mut u8 {
    let (before, after) = text.split_once('+').unwrap_or((text, ""));
    let len = before.len() + after.len();
    assert!(len <= LONGEST);
    // SAFETY: there is space for this many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(before.as_ptr(), place.at, before.len());
        std::ptr::copy_nonoverlapping(after.as_ptr(), place.at.add(before.len()), after.len());
        place.at.add(len)
    }
}

/// A number with a fixed number of digits after the decimal point: the result of [`fixed`].
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    number: f64,
    digits: u16,
}

/// Returns the number with this many digits after the decimal point, including trailing zeros. The exact value is
/// rounded to the nearest such number, or to the one with an even last digit if two are equally near, as by `{:.2}` and
/// C's `%.2f`.
///
/// ```
/// use millstream::{Writer, put, put::fixed};
/// let mut out = Writer::memory()?;
/// put!(out, fixed(2.0, 2), ' ', fixed(1.005, 2), ' ', fixed(0.125_f32, 2), ' ')?;
/// put!(out, fixed(1e21, 0), ' ', fixed(f64::NAN, 2))?;
/// assert_eq!(out.close()?.memory.unwrap(), b"2.00 1.00 0.12 1000000000000000000000 NaN");
/// # Ok::<(), millstream::Error>(())
/// ```
#[inline]
pub fn fixed(number: impl Into<f64>, digits: u16) -> Fixed {
    Fixed { number: number.into(), digits }
}

impl Part for Fixed {
    #[inline]
    fn max_len(&self) -> usize {
        // The longest text is a sign, a point, and the 309 digits of the largest number.
        2 + 309 + usize::from(self.digits)
    }

    fn put(&self, spare: &mut Spare<'_>) {
        let written = write!(spare, "{:.*}", usize::from(self.digits), self.number);
        assert!(
            written.is_ok(),
            "a number with {} digits for a space that has {} bytes left",
            self.digits,
            spare.left()
        );
    }
}
