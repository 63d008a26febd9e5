//! Maps a file as lent memory.
#![allow(unsafe_code)] // mapping a file requires the caller's promise, see `map`

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Advice, MmapOptions};

use crate::error::{Error, ErrorKind, Result};
use crate::os::stamp::{Stamp, shrank};
use millstream_core::internal::Lent;

/// The order in which a mapped file will be read.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// From front to back: the kernel reads far ahead and may drop pages already read.
    FrontToBack,
    /// In any order: the kernel reads a little around each position.
    #[cfg(feature = "bson")]
    Any,
}

/// Maps a regular file for reading. Returns the memory, the file, and the file's state.
///
/// The file must not shrink while it is mapped. The caller checks its length ([`check_length`]) and reports
/// [`SourceShrank`](ErrorKind::SourceShrank). But if the file shrinks between this check and the use of its last bytes,
/// SIGBUS kills the process. Callers that choose mapping accept this risk.
pub(crate) fn map(path: &Path, order: Order) -> Result<(Lent, File, Stamp)> {
    let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    let file = File::open(path).map_err(open_failed)?;
    if !file.metadata().map_err(open_failed)?.is_file() {
        return Err(Error::new(ErrorKind::OpenFailed)
            .with_found("something that is not a regular file")
            .with_expected("a regular file, which can be mapped"));
    }
    let stamp = Stamp::of(&rustix::fs::fstat(&file).map_err(|error| open_failed(error.into()))?);
    // SAFETY: the mapping is private to this process and only read. A caller that requests a mapped file promises, as
    // documented, that no process changes the file while it is mapped.
    let map = unsafe { MmapOptions::new().len(stamp.size as usize).map(&file) }.map_err(open_failed)?;
    match order {
        Order::FrontToBack => {
            // This is only a hint.
            let _ = map.advise(Advice::Sequential);
        }
        #[cfg(feature = "bson")]
        Order::Any => {}
    }
    Ok((Arc::new(map), file, stamp))
}

/// Checks that a mapped file still has all of its bytes: accessing a page past its end would raise SIGBUS.
///
/// # Errors
/// Returns [`SourceShrank`](ErrorKind::SourceShrank) or [`Io`](ErrorKind::Io).
pub(crate) fn check_length(file: &File, mapped: u64) -> Result<()> {
    let now = file.metadata().map_err(Error::from_io)?.len();
    if now < mapped { Err(shrank(now, mapped)) } else { Ok(()) }
}
