//! JSON with the version of its format: the plans of [`splits`](crate::splits), and the files and values of
//! [`job`](crate::job).
//!
//! Unknown fields are refused, because a reader that ignored one could read something else than the writer meant. So a
//! version is raised if a field has another meaning, not for a new field.

use serde::Deserialize;

use crate::error::{Error, ErrorKind};

/// Why a text is not a value of the requested type.
pub(crate) enum Invalid {
    Version { found: u32, newest: u32 },
    Content(String),
}

impl Invalid {
    /// Returns the error for `what`: of this kind, or [`ErrorKind::Unsupported`] for another version.
    pub(crate) fn error(self, kind: ErrorKind, what: &str, expected: &str) -> Error {
        match self {
            Invalid::Version { found, newest } => Error::new(ErrorKind::Unsupported)
                .with_found(format!("{what} of format version {found}"))
                .with_expected(format!("version 1 to {newest}, or a newer millstream")),
            Invalid::Content(reason) => {
                Error::new(kind).with_found(format!("{what} that is not valid: {reason}")).with_expected(expected)
            }
        }
    }
}

/// Any version of a value.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Parses JSON of a version up to `newest`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a [u8], newest: u32) -> Result<T, Invalid> {
    let invalid = |error: serde_json::Error| Invalid::Content(error.to_string());
    let Versioned { version } = serde_json::from_slice(json).map_err(invalid)?;
    check(version, newest)?;
    serde_json::from_slice(json).map_err(invalid)
}

/// Fails for a version that this library does not know.
pub(crate) fn check(found: u32, newest: u32) -> Result<(), Invalid> {
    match found {
        1.. if found <= newest => Ok(()),
        _ => Err(Invalid::Version { found, newest }),
    }
}
