//! A mapped file as lent memory.
#![allow(unsafe_code)] // mapping a file is a promise of the caller's, see `map`

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Advice, Mmap};

use crate::buffer::Lent;
use crate::error::{Error, ErrorKind, Result};

/// In which order a mapped file will be read.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// From front to back: the system reads far ahead and may drop what is behind.
    FrontToBack,
    /// Here and there: the system reads a little around each place.
    Any,
}

/// Maps a regular file for reading. Returns the memory and the file.
///
/// The file must not shrink while it is mapped: who uses it looks at its length ([`check_length`]) and reports
/// [`SourceShrank`](ErrorKind::SourceShrank), but a file that shrinks between this and the use of its last bytes
/// ends the process with SIGBUS. That is what opting in means.
pub(crate) fn map(path: &Path, order: Order) -> Result<(Lent, File)> {
    let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    let file = File::open(path).map_err(open_failed)?;
    if !file.metadata().map_err(open_failed)?.is_file() {
        return Err(Error::new(ErrorKind::OpenFailed)
            .with_found("something that is no regular file")
            .with_expected("a regular file, which can be mapped"));
    }
    // SAFETY: the mapping is private to this process and only read. That nobody changes the file meanwhile is
    // the documented promise of whoever asks for a mapped file.
    let map = unsafe { Mmap::map(&file) }.map_err(open_failed)?;
    if let Order::FrontToBack = order {
        // Only a hint.
        let _ = map.advise(Advice::Sequential);
    }
    Ok((Arc::new(map), file))
}

/// Whether a mapped file still has all its bytes: touching a page behind its end would be SIGBUS.
///
/// # Errors
/// [`SourceShrank`](ErrorKind::SourceShrank), [`Io`](ErrorKind::Io).
pub(crate) fn check_length(file: &File, mapped: u64) -> Result<()> {
    let now = file.metadata().map_err(Error::from_io)?.len();
    if now < mapped {
        return Err(Error::new(ErrorKind::SourceShrank)
            .with_found(format!("{now} bytes"))
            .with_expected(format!("the {mapped} bytes that were mapped")));
    }
    Ok(())
}
