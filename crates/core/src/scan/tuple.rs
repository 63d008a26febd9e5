//! Scans several numbers in one call.

use super::Scan;
use super::ends::Ends;
use super::token::{Tokens, Value, Wrong};

macro_rules! tuples {
    ($(($($type:ident)+))*) => {$(
        impl<$($type: Scan),+> Scan for ($($type,)+) {}

        impl<$($type: Scan),+> Value for ($($type,)+) {
            const TOKENS: usize = 0 $(+ $type::TOKENS)+;

            #[inline(always)]
            fn quick<Between: Ends>(input: &[u8], ends: Between) -> Option<(Self, usize)> {
                let mut used = 0;
                let values = ($({
                    let (value, more) = $type::quick(&input[used..], ends)?;
                    used += more;
                    value
                },)+);
                Some((values, used))
            }

            fn take(tokens: &mut Tokens<'_>) -> Result<Self, Wrong> {
                Ok(($($type::take(tokens)?,)+))
            }
        }
    )*};
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }
