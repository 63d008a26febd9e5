//! Finds where decoding can begin in a compressed file: at each bgzf block, and at each zstd frame.
//!
//! The lengths in the headers are followed from the start of the file. Bytes that look like a header elsewhere, in the
//! compressed data of a block, are never examined.

use std::fs::File;
use std::io;

use crate::Format;
use crate::error::{Error, Result};
use crate::os::cancel::Wait;
use crate::os::read_exact_at;
use crate::source::decode::{bgzf_block, zstd_frame};

use super::Encoded;

/// Why the traversal of a file ended.
pub(super) enum End {
    /// It reached the end of the file.
    File,
    /// The rest of the file is not divided, for this reason.
    Undivided(&'static str),
}

/// Calls `found` with the start of each block or frame, and with the end of the last one.
pub(super) fn pieces(
    file: &File,
    size: u64,
    format: Format,
    wait: &Wait,
    mut found: impl FnMut(Encoded),
) -> Result<End> {
    let next = match format {
        Format::Bgzf => bgzf_block,
        Format::Zstd => zstd_frame,
        _ => return Ok(End::Undivided("the file is compressed in a format that is decoded from its start")),
    };
    let mut read = |at: u64, space: &mut [u8]| read_exact_at(file, space, at);
    let (mut start, mut count) = (Encoded { at: 0, decoded: 0 }, 0u64);
    while start.at < size {
        found(start);
        let piece = match next(&mut read, start.at) {
            Ok(piece) => piece,
            // A reader reports that the file is truncated.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(End::File),
            Err(error) => return Err(Error::from_io(error)),
        };
        start = match piece {
            Some((len, Some(content))) => {
                Encoded { at: start.at + len, decoded: start.decoded.saturating_add(content) }
            }
            Some((_, None)) => return Ok(End::Undivided("a zstd frame does not contain the size of its content")),
            None => return Ok(End::Undivided("the file continues with data of another form")),
        };
        count += 1;
        if count % 1024 == 0 {
            wait.check()?;
        }
    }
    found(start);
    Ok(End::File)
}
