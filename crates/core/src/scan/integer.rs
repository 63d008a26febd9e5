//! Scans integers of every size.

use super::ends::Ends;
use super::quick;
use super::token::{Tokens, Value, Wrong};
use super::{Number, Scan};
use crate::error::ErrorKind;

/// Splits a token, which must consist of an optional sign and digits, into these parts.
fn split(token: &[u8]) -> Result<(bool, &[u8]), ErrorKind> {
    let (negative, digits) = match token {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    match !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        true => Ok((negative, digits)),
        false => Err(ErrorKind::NumberInvalid),
    }
}

fn magnitude(digits: &[u8]) -> Result<u128, ErrorKind> {
    let digit = |&byte: &u8| u128::from(byte - b'0');
    // Nearly all numbers end here, where no overflow is possible.
    const SAFE: usize = 38;
    let (safe, rest) = digits.split_at(digits.len().min(SAFE));
    let magnitude = safe.iter().map(digit).fold(0, |magnitude, digit| magnitude * 10 + digit);
    rest.iter()
        .map(digit)
        .try_fold(magnitude, |magnitude, digit| magnitude.checked_mul(10)?.checked_add(digit))
        .ok_or(ErrorKind::NumberOverflow)
}

/// `$make` creates the number from its sign and a magnitude of 64 bits, if it fits.
macro_rules! number {
    ($type:ident, $signed:literal, $make:expr) => {
        impl Scan for $type {}

        impl Value for $type {
            const TOKENS: usize = 1;

            #[inline(always)]
            fn quick<E: Ends>(input: &[u8], ends: E) -> Option<($type, usize)> {
                let (negative, magnitude, used) = quick::integer(input, ends, $signed, $type::BITS > 32)?;
                let make: fn(bool, u64) -> Option<$type> = $make;
                Some((make(negative, magnitude)?, used))
            }

            fn take(tokens: &mut Tokens<'_>) -> Result<$type, Wrong> {
                let article = if stringify!($type).starts_with('i') { "an" } else { "a" };
                tokens.parse(<$type as Number>::parse, || {
                    format!(concat!("{} ", stringify!($type), " ({} to {})"), article, $type::MIN, $type::MAX)
                })
            }
        }
    };
}

macro_rules! unsigned {
    ($($type:ident)*) => {$(
        number!($type, false, |_: bool, magnitude| $type::try_from(magnitude).ok());

        impl Number for $type {
            fn parse(token: &[u8]) -> Result<$type, ErrorKind> {
                match split(token)? {
                    (true, _) => Err(ErrorKind::NumberInvalid),
                    (false, digits) => {
                        $type::try_from(magnitude(digits)?).map_err(|_| ErrorKind::NumberOverflow)
                    }
                }
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ident)*) => {$(
        number!($type, true, |negative, magnitude| {
            // The smallest number has no positive counterpart: its magnitude becomes the number itself, which is its
            // own negative.
            let most = $type::MAX as u128 + u128::from(negative);
            let number = magnitude as $type;
            (u128::from(magnitude) <= most).then_some(if negative { number.wrapping_neg() } else { number })
        });

        impl Number for $type {
            fn parse(token: &[u8]) -> Result<$type, ErrorKind> {
                let (negative, digits) = split(token)?;
                let magnitude = magnitude(digits)?;
                let number = match negative {
                    true => 0_i128.checked_sub_unsigned(magnitude).and_then(|number| $type::try_from(number).ok()),
                    false => $type::try_from(magnitude).ok(),
                };
                number.ok_or(ErrorKind::NumberOverflow)
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 u128 usize }
signed! { i8 i16 i32 i64 i128 isize }
