//! A regular file whose parts are passed to commands unread.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, fstat};

use super::stamp::{Stamp, shrank};
use crate::error::{Error, ErrorKind, Result};
use crate::os::read_exact_at;
use crate::source::Pin;

/// A regular file, and its state when it was opened.
#[derive(Debug)]
pub struct PinnedFile {
    file: File,
    name: String,
    stamp: Stamp,
    pin: Pin,
}

impl PinnedFile {
    /// Opens a file. Returns `None` if it is not a regular file, or if its size is not known.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`].
    pub fn open(path: &Path, pin: Pin) -> Result<Option<PinnedFile>> {
        let name = path.display().to_string();
        let failed = |error| Error::new(ErrorKind::OpenFailed).with_name(name.clone()).with_io(error);
        // Opening a FIFO would wait.
        if !path.metadata().map_err(failed)?.is_file() {
            return Ok(None);
        }
        let file = File::open(path).map_err(failed)?;
        let stat = fstat(&file).map_err(|error| failed(error.into()))?;
        let stamp = Stamp::of(&stat);
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // Files in /proc and similar file systems report a size of 0 but have content.
        Ok((is_regular && stamp.size > 0).then(|| PinnedFile { file, name, stamp, pin }))
    }

    /// Returns the path of the file, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of the file when it was opened.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Reads bytes at `offset`, as many as `space` has.
    ///
    /// # Errors
    /// Returns [`ErrorKind::SourceShrank`] or [`ErrorKind::Io`].
    pub fn read_exact_at(&self, space: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, space, offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.shrank(),
            _ => Error::from_io(error).with_name(self.name.clone()),
        })
    }

    /// Returns the error for a file that ends too early.
    pub(crate) fn shrank(&self) -> Error {
        let now = self.file.metadata().map_or(0, |file| file.len());
        shrank(now, self.stamp.size).with_name(self.name.clone())
    }

    /// Checks the file again after it has been read.
    ///
    /// # Errors
    /// Returns [`ErrorKind::SourceShrank`], [`ErrorKind::SourceChanged`] or [`ErrorKind::Io`].
    pub fn check(&self) -> Result<()> {
        self.stamp.check(&self.file, self.stamp.size, self.pin).map_err(|error| error.with_name(self.name.clone()))
    }
}
