//! Input files and the position of each document in them.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::passes::{Figures, Passes};

/// Reads the whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Returns the documents of a file, using only their length fields. A truncated input panics, which is acceptable
/// because inputs are generated.
pub fn documents(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let (document, rest) = bytes.split_at(len);
        bytes = rest;
        Some(document)
    })
}

/// Returns the documents as JSON, one per line, with dates in milliseconds.
pub fn json<T: Serialize>(documents: impl Iterator<Item = Result<T>>) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for document in documents {
        serde_json::to_writer(&mut lines, &document?)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Splits the output of [`json`] into lines.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n')
}

/// Decodes each document: first to check the results, then to measure the time.
pub fn decode_each<'a, I: Iterator<Item = &'a [u8]>, T, E: Into<anyhow::Error>>(
    documents: impl Fn() -> I,
    mut decode: impl FnMut(&'a [u8]) -> Result<T, E>,
    mut look: impl FnMut(&T),
    passes: &Passes,
) -> Result<Figures> {
    for document in documents() {
        look(&decode(document).map_err(Into::into)?);
    }
    passes.time(|| {
        for document in documents() {
            let decoded = decode(document).map_err(Into::into)?;
            black_box(&decoded);
        }
        Ok(())
    })
}
