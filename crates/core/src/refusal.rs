//! Errors for invalid or conflicting options.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// A row for an invalid option or combination: whether it applies, what was found, and what was expected.
pub type Refusal<'a> = (bool, &'a dyn fmt::Display, &'a dyn fmt::Display);

/// Returns an [`ErrorKind::InvalidOption`] for the first row that applies.
///
/// # Errors
/// Fails if a row applies.
pub fn refuse(rows: &[Refusal<'_>]) -> Result<()> {
    match rows.iter().find(|(is_so, ..)| *is_so) {
        None => Ok(()),
        Some((_, found, expected)) => {
            Err(Error::new(ErrorKind::InvalidOption).with_found(found.to_string()).with_expected(expected.to_string()))
        }
    }
}
