//! Converts serde's errors to this crate's errors, for the crates that (de)serialise. The implementation must be in the
//! crate that defines the type.

use crate::error::{Error, ErrorKind};
use serde_core::de::{Expected, Unexpected};
use std::fmt::Display;

/// A mismatch contains what was found and what was expected; the caller adds the position. A custom message
/// ([`custom`](serde_core::de::Error::custom)) becomes a [`ShapeMismatch`](ErrorKind::ShapeMismatch) whose `found` is
/// the message.
impl serde_core::de::Error for Error {
    #[cold]
    fn custom<T: Display>(message: T) -> Error {
        Error::new(ErrorKind::ShapeMismatch).with_found(message.to_string())
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        mismatch(ErrorKind::ShapeMismatch, found, expected)
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        mismatch(ErrorKind::ValueOutOfRange, found, expected)
    }

    #[cold]
    fn invalid_length(len: usize, expected: &dyn Expected) -> Error {
        mismatch(ErrorKind::ShapeMismatch, format_args!("{len} elements"), expected)
    }

    #[cold]
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Error {
        mismatch(ErrorKind::ShapeMismatch, format_args!("the variant {variant:?}"), OneOf(expected))
    }

    #[cold]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Error {
        mismatch(ErrorKind::ShapeMismatch, format_args!("the member {field:?}"), OneOf(expected))
    }

    #[cold]
    fn missing_field(field: &'static str) -> Error {
        mismatch(ErrorKind::KeyMissing, "no such member", format_args!("a member {field:?}"))
    }

    #[cold]
    fn duplicate_field(field: &'static str) -> Error {
        mismatch(ErrorKind::ShapeMismatch, format_args!("the member {field:?} twice"), "each member once")
    }
}

impl serde_core::ser::Error for Error {
    #[cold]
    fn custom<T: Display>(message: T) -> Error {
        Error::new(ErrorKind::ShapeMismatch).with_found(message.to_string())
    }
}

fn mismatch(kind: ErrorKind, found: impl Display, expected: impl Display) -> Error {
    Error::new(kind).with_found(found.to_string()).with_expected(expected.to_string())
}

/// Names to choose from.
struct OneOf(&'static [&'static str]);

impl Display for OneOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            [one] => write!(f, "{one:?}"),
            [first, rest @ ..] => {
                write!(f, "one of {first:?}")?;
                rest.iter().try_for_each(|name| write!(f, ", {name:?}"))
            }
        }
    }
}
