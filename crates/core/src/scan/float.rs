//! Scans floats with the fast-float2 crate, which rounds correctly, and is fast because it does not need to know the
//! end of the token.

use super::ends::Ends;
use super::quick::LOOKAHEAD;
use super::token::{Tokens, Value, Wrong};
use super::{Number, Scan};
use crate::error::ErrorKind;

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Scan for $type {}

        impl Value for $type {
            const TOKENS: usize = 1;

            #[inline(always)]
            fn quick<E: Ends>(input: &[u8], ends: E) -> Option<($type, usize)> {
                let input = input.first_chunk::<LOOKAHEAD>()?;
                let at = ends.skip(input)?;
                let (number, len) = fast_float2::parse_partial::<$type, _>(&input[at..]).ok()?;
                // This is either a name such as `inf` or a number that is too large. Both cases are rare, so the
                // careful path decides.
                if number.is_infinite() {
                    return None;
                }
                Some((number, ends.after(input, at + len)?))
            }

            fn take(tokens: &mut Tokens<'_>) -> Result<$type, Wrong> {
                tokens.parse(<$type as Number>::parse, || {
                    concat!("an ", stringify!($type), " (such as 1.5 or -2e9)").to_owned()
                })
            }
        }

        impl Number for $type {
            fn parse(token: &[u8]) -> Result<$type, ErrorKind> {
                let number: $type = fast_float2::parse(token).map_err(|_| ErrorKind::NumberInvalid)?;
                match number.is_infinite() && token.iter().any(u8::is_ascii_digit) {
                    true => Err(ErrorKind::NumberOverflow),
                    false => Ok(number),
                }
            }
        }
    )*};
}

floats! { f32 f64 }
