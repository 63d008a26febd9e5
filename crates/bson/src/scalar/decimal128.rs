//! 128-bit decimal numbers: their bits and their text.
//!
//! The format is IEEE 754-2008 with a binary integer as significand. The text form, and the rules for rejecting and
//! clamping numbers, follow
//! <https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>. There is no
//! arithmetic.
//!
//! ```text
//!   127   126 … 113          112 … 0
//!   sign  exponent + 6176    significand, at most 34 digits    unless bits 126 and 125 are 1:
//!   sign  11110 infinity, 11111 NaN, else a significand that is too large and counts as 0
//! ```

use super::bad_text;
use millstream_core::put::Spare;
use millstream_core::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A 128-bit decimal floating point number (IEEE 754-2008, binary integer significand), stored as its 16 bytes, least
/// significant first.
///
/// The conversion to and from text is exact: a number that would have to be rounded is rejected. Equality compares the
/// bits: `1.0` is not `1.00`.
///
/// ```
/// use millstream::bson::Decimal128;
/// let price: Decimal128 = "12.50".parse()?;
/// assert_eq!(price.to_string(), "12.50");
/// assert_eq!("1200e-7".parse::<Decimal128>()?.to_string(), "0.0001200");
/// assert!("1e6145".parse::<Decimal128>().is_err());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

/// The maximum number of digits of a significand.
const DIGITS: u32 = 34;
/// The smallest number with more digits than that.
const TOO_LARGE: u128 = 10_u128.pow(DIGITS);
const BIAS: i32 = 6176;
const LEAST: i64 = -6176;
const MOST: i64 = 6111;
const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0b11110 << 122;
const NAN: u128 = 0b11111 << 122;

/// The meaning of the bits.
enum Class {
    Number { significand: u128, exponent: i32 },
    Infinity,
    Nan,
}

impl Decimal128 {
    /// The longest text: `-1.234567890123456789012345678901234E-6143`.
    pub(crate) const LONGEST: usize = 42;

    fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    fn from_parts(negative: bool, rest: u128) -> Decimal128 {
        Decimal128((rest | if negative { SIGN } else { 0 }).to_le_bytes())
    }

    fn class(self) -> Class {
        let bits = self.bits();
        match bits >> 122 & 0b11111 {
            0b11110 => Class::Infinity,
            0b11111 => Class::Nan,
            0b11000.. => Class::Number { significand: 0, exponent: (bits >> 111 & 0x3fff) as i32 - BIAS },
            _ => {
                let significand = bits & ((1 << 113) - 1);
                let significand = if significand < TOO_LARGE { significand } else { 0 };
                Class::Number { significand, exponent: (bits >> 113 & 0x3fff) as i32 - BIAS }
            }
        }
    }

    /// Appends the text, which has at most [`LONGEST`](Decimal128::LONGEST) bytes.
    pub(crate) fn put_text(self, out: &mut Spare<'_>) {
        let class = self.class();
        if self.bits() & SIGN != 0 && !matches!(class, Class::Nan) {
            out.put('-');
        }
        let (significand, exponent) = match class {
            Class::Number { significand, exponent } => (significand, exponent),
            Class::Infinity => return out.put("Infinity"),
            Class::Nan => return out.put("NaN"),
        };
        let mut digits = [0; DIGITS as usize];
        let mut spare = Spare::over(&mut digits);
        spare.put(significand);
        let digits = spare.as_bytes();
        let len = digits.len() as i32;
        let adjusted = exponent + len - 1;
        if exponent > 0 || adjusted < -6 {
            out.put(&digits[..1]);
            if len > 1 {
                out.put('.');
                out.put(&digits[1..]);
            }
            out.put(if adjusted < 0 { "E" } else { "E+" });
            out.put(adjusted);
        } else if -exponent < len {
            let (whole, fraction) = digits.split_at((len + exponent) as usize);
            out.put(whole);
            if !fraction.is_empty() {
                out.put('.');
                out.put(fraction);
            }
        } else {
            out.put("0.");
            for _ in len..-exponent {
                out.put('0');
            }
            out.put(digits);
        }
    }
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; Decimal128::LONGEST];
        let mut spare = Spare::over(&mut text);
        self.put_text(&mut spare);
        f.pad(std::str::from_utf8(spare.as_bytes()).expect("digits are ASCII"))
    }
}

impl From<i32> for Decimal128 {
    fn from(number: i32) -> Decimal128 {
        i64::from(number).into()
    }
}

impl From<i64> for Decimal128 {
    fn from(number: i64) -> Decimal128 {
        Decimal128::from_parts(number < 0, u128::from(number.unsigned_abs()) | (BIAS as u128) << 113)
    }
}

/// # Errors
/// [`TextInvalid`](millstream_core::ErrorKind::TextInvalid) for anything other than a number, and for a number that
/// would have to be rounded.
impl FromStr for Decimal128 {
    type Err = Error;

    fn from_str(text: &str) -> Result<Decimal128> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        if ["inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
            return Ok(Decimal128::from_parts(negative, INFINITY));
        }
        if unsigned.eq_ignore_ascii_case("nan") {
            return Ok(Decimal128::from_parts(negative, NAN));
        }
        let mut scanned = scan(text, text.len() - unsigned.len())?;
        scanned.clamp().ok_or_else(|| {
            bad_text(text, "a decimal number with an exponent from -6176 to 6111 that needs no rounding", 0)
        })?;
        let exponent = (scanned.exponent + i64::from(BIAS)) as u128;
        Ok(Decimal128::from_parts(negative, scanned.significand | exponent << 113))
    }
}

/// The digits of a number, as found in the text.
struct Scanned {
    significand: u128,
    /// The number of digits, not counting leading zeros.
    count: u32,
    exponent: i64,
}

/// Scans digits, a point and an exponent; not the sign before them.
fn scan(text: &str, start: usize) -> Result<Scanned> {
    let bytes = text.as_bytes();
    let wrong = |at| bad_text(text, "a decimal number", at);
    let (mut significand, mut count, mut exponent) = (0_u128, 0, 0_i64);
    let (mut digits, mut point) = (0, false);
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(b'.') if !point => point = true,
            Some(digit @ b'0'..=b'9') => {
                digits += 1;
                let is_kept = count < DIGITS;
                if is_kept {
                    significand = significand * 10 + u128::from(digit - b'0');
                    count += u32::from(significand != 0);
                } else if *digit != b'0' {
                    return Err(bad_text(text, "a decimal number of at most 34 digits", at));
                }
                exponent += i64::from(!is_kept) - i64::from(point);
            }
            _ => break,
        }
        at += 1;
    }
    if digits == 0 {
        return Err(wrong(at));
    }
    match &bytes[at..] {
        [] => {}
        [b'e' | b'E', rest @ ..] => {
            let (negative, digits) = match rest {
                [b'-', digits @ ..] => (true, digits),
                [b'+', digits @ ..] => (false, digits),
                digits => (false, digits),
            };
            if digits.is_empty() {
                return Err(wrong(bytes.len()));
            }
            let mut power = 0_i64;
            for (i, digit) in digits.iter().enumerate() {
                if !digit.is_ascii_digit() {
                    return Err(wrong(bytes.len() - digits.len() + i));
                }
                // This value is far beyond what any number of digits can compensate.
                power = power.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            }
            exponent = exponent.saturating_add(if negative { -power } else { power });
        }
        _ => return Err(wrong(at)),
    }
    Ok(Scanned { significand, count, exponent })
}

impl Scanned {
    /// Moves the exponent into its range by appending or removing zeros at the end of the significand. `None` if that
    /// is not enough.
    fn clamp(&mut self) -> Option<()> {
        if self.significand == 0 {
            self.exponent = self.exponent.clamp(LEAST, MOST);
        }
        while self.exponent > MOST && self.count < DIGITS {
            self.significand *= 10;
            self.count += 1;
            self.exponent -= 1;
        }
        while self.exponent < LEAST && self.significand.is_multiple_of(10) {
            self.significand /= 10;
            self.exponent += 1;
        }
        (LEAST..=MOST).contains(&self.exponent).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_text_fits() {
        let nines = "9".repeat(33);
        for (exponent, text) in [(-6176, format!("-9.{nines}E-6143")), (-39, format!("-0.000009{nines}"))] {
            let bits = ((exponent + BIAS) as u128) << 113 | (TOO_LARGE - 1);
            assert_eq!(Decimal128::from_parts(true, bits).to_string(), text);
            assert_eq!(text.len(), Decimal128::LONGEST);
        }
    }

    #[test]
    fn integers() {
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(Decimal128::from(number).to_string(), number.to_string());
        }
    }

    #[test]
    fn hostile_text_is_short_work() {
        let zeros = "0".repeat(1 << 20);
        for (text, number) in [
            (format!("{zeros}.{zeros}1e1048577"), "1".to_string()),
            (format!("1{zeros}e-1048576"), format!("1.{}", &zeros[..33])),
        ] {
            assert_eq!(text.parse::<Decimal128>().unwrap().to_string(), number);
        }
        for text in [format!("1e{}", "9".repeat(100)), format!("1e-{}", "9".repeat(100)), format!("1{zeros}")] {
            assert!(text.parse::<Decimal128>().unwrap_err().to_string().len() < 400);
        }
    }

    proptest! {
        /// For any bits, reading the text gives the same number, which has the same text again.
        #[test]
        fn every_text_comes_back(bytes: [u8; 16]) {
            let number = Decimal128(bytes);
            let text = number.to_string();
            let again: Decimal128 = text.parse().unwrap();
            prop_assert_eq!(again.to_string(), text);
            if let (Class::Number { significand: 1.., .. }, Class::Number { .. }) = (number.class(), again.class()) {
                prop_assert_eq!(again, number);
            }
        }

        #[test]
        fn any_text_is_an_answer(text in "[+-]?[0-9]{0,40}[.]?[0-9]{0,40}([eE][+-]?[0-9]{0,6})?") {
            if let Ok(number) = text.parse::<Decimal128>() {
                prop_assert_eq!(number.to_string().parse::<Decimal128>().unwrap(), number);
            }
        }
    }
}
