//! Invalid or conflicting options.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// A row of invalid or conflicting options: whether it applies, what was found, what was expected.
pub type Refusal<'a> = (bool, &'a dyn fmt::Display, &'a dyn fmt::Display);

/// An [`ErrorKind::InvalidOption`] for the first row that applies.
pub fn refuse(rows: &[Refusal<'_>]) -> Result<()> {
    match rows.iter().find(|(is_so, ..)| *is_so) {
        None => Ok(()),
        Some((_, found, expected)) => {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found.to_string()).with_expected(expected.to_string()))
        }
    }
}
