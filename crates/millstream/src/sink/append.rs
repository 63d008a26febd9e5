//! Checks that a compressed file is complete before data is appended to it: data after a truncated stream cannot be
//! read.
//!
//! bgzf has a final block, the frames and blocks of zstd have lengths, and an xz stream ends with an index of its blocks.
//! A plain gzip file has to be decoded.

mod xz;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::Format;
use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::CancelToken;
use crate::os::read_exact_at;
use crate::reader::{Decode, Reader};
use crate::source::decode::{BGZF_END, zstd_frame};
use millstream_core::internal::{Codec, Guess, Known, SNIFF, guess};

/// Fails if the file exists but is not a complete file of this format. If the file has to be decoded, `progress` is
/// called with the number of decoded bytes and the file's size.
///
/// # Errors
/// Returns [`ErrorKind::OpenFailed`] or [`ErrorKind::Cancelled`].
pub(crate) fn check(
    path: &Path,
    format: Format,
    token: Option<&CancelToken>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let Some(len) = std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len()) else {
        // The file will be created, or it is not a regular file; any other problem is found when it is opened.
        return Ok(());
    };
    if len == 0 {
        return Ok(());
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error).with_name(&name))?;
    find_fault(file, len, format, token, progress).map_err(|fault| match fault {
        Fault::Content(found) => Error::new(ErrorKind::OpenFailed)
            .with_name(name)
            .with_found(found)
            .with_expected(format!("a complete {format} file to append to, or appending without the check")),
        Fault::Other(error) => error.with_name(name),
    })
}

/// The reason why appending is not possible.
enum Fault {
    Content(String),
    Other(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Other(Error::from_io(error))
    }
}

fn find_fault(
    file: File,
    len: u64,
    format: Format,
    token: Option<&CancelToken>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    let mut first = [0; SNIFF];
    let first = &mut first[..len.min(SNIFF as u64) as usize];
    read_exact_at(&file, first, 0)?;
    let found = match guess(first, true) {
        Guess::Is(Known::Ours(found)) if format.reads(found) => found,
        Guess::Is(Known::Ours(found)) => return Err(Fault::Content(format!("{found} data"))),
        Guess::Is(Known::Other(found)) => return Err(Fault::Content(format!("{found} data"))),
        Guess::Plain | Guess::Open => return Err(Fault::Content(format!("data that begins with {first:02x?}"))),
    };
    match found.codec() {
        Codec::Zstd => walk_zstd(&file, len),
        Codec::Xz => xz::walk(&file, len),
        Codec::Bgzf if ends_with(&file, len, &BGZF_END)? => Ok(()),
        Codec::Gzip | Codec::Bgzf => decode(file, len, token, progress),
    }
}

fn ends_with(file: &File, len: u64, end: &[u8]) -> io::Result<bool> {
    let Some(at) = len.checked_sub(end.len() as u64) else { return Ok(false) };
    let mut last = vec![0; end.len()];
    read_exact_at(file, &mut last, at)?;
    Ok(last == end)
}

fn decode(file: File, len: u64, token: Option<&CancelToken>, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Fault> {
    let mut builder = Reader::builder().decode(Decode::Auto);
    if let Some(token) = token {
        builder = builder.cancel(token);
    }
    let read_all = || -> Result<()> {
        let mut reader = builder.fd(file)?;
        while reader.fill()? > 0 {
            reader.consume(reader.buffer().len());
            progress(reader.progress().source_bytes, len);
        }
        Ok(())
    };
    read_all().map_err(|error| match error.kind() {
        ErrorKind::DecodeTruncated | ErrorKind::DecodeDamaged => {
            let found = error.found().unwrap_or("other data").to_string();
            Fault::Content(format!("{} ({found})", error.kind().name().replace('_', " ")))
        }
        _ => Fault::Other(error),
    })
}

/// Checks the file from frame to frame and from block to block, by their lengths (RFC 8878, section 3.1).
fn walk_zstd(file: &File, len: u64) -> Result<(), Fault> {
    let mut at = 0;
    while at < len {
        match zstd_frame(&mut |at, space| read_exact_at(file, space, at), at) {
            Ok(Some((frame, _))) => at += frame,
            Ok(None) => return Err(Fault::Content(format!("no zstd frame at byte {at}"))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(cut(len)),
            Err(error) => return Err(error.into()),
        }
    }
    if at > len { Err(cut(len)) } else { Ok(()) }
}

fn cut(at: u64) -> Fault {
    Fault::Content(format!("a truncated zstd frame at byte {at}"))
}
