//! Errors for a requested document or value that does not exist.

use millstream::{Error, ErrorKind};

pub(super) fn no_document(name: &str, wanted: u64, count: u64) -> Error {
    Error::new(ErrorKind::KeyMissing)
        .with_name(name)
        .with_found(match count {
            0 => "no document".to_string(),
            1 => "1 document".to_string(),
            _ => format!("{count} documents"),
        })
        .with_expected(format!("a document [{wanted}]; the first is [0]"))
}

/// Returns the error for a path without a value.
pub(super) fn no_value(keys: &[String]) -> Error {
    Error::new(ErrorKind::KeyMissing).with_found("no value").with_path(millstream::bson::join_path(keys))
}
