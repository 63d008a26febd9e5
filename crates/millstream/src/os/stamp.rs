//! Detects whether a file has changed since it was opened.

use std::os::fd::AsFd;

use rustix::fs::{Stat, fstat};

use crate::error::{Error, ErrorKind, Result};
use crate::source::Pin;

/// The size and modification time of a file, and which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    changed: (i64, i64),
    /// Its device and its number there.
    inode: (u64, u64),
}

impl Stamp {
    #[allow(clippy::unnecessary_cast)] // The types differ between platforms.
    pub(crate) fn of(stat: &Stat) -> Stamp {
        Stamp {
            size: stat.st_size as u64,
            changed: (stat.st_mtime, stat.st_mtime_nsec as i64),
            inode: (stat.st_dev as u64, stat.st_ino as u64),
        }
    }

    /// Checks the open file again after `read` bytes have been read from its start. Returns an error if these bytes may
    /// be a mixture of old and new content.
    ///
    /// # Errors
    /// Returns [`SourceShrank`](ErrorKind::SourceShrank), [`SourceChanged`](ErrorKind::SourceChanged) or
    /// [`Io`](ErrorKind::Io).
    pub(crate) fn check(&self, file: impl AsFd, read: u64, pin: Pin) -> Result<()> {
        let now = Stamp::of(&fstat(file).map_err(|error| Error::from_io(error.into()))?);
        // Files in /proc and similar file systems report a size of 0 but have content.
        if self.size > 0 && now.size < self.size.max(read) {
            return Err(shrank(now.size, self.size.max(read)));
        }
        if now.size > self.size && pin == Pin::Identity {
            return Err(changed(format!("{} bytes", now.size), format!("the {} bytes it had", self.size)));
        }
        if self.size > 0 && now.size == self.size && now.changed != self.changed {
            return Err(changed("a different modification time", "the one it had when it was opened"));
        }
        Ok(())
    }
}

impl Stamp {
    /// Checks that a file which was opened later is this one, with the same content.
    ///
    /// # Errors
    /// Returns [`SourceShrank`](ErrorKind::SourceShrank) or [`SourceChanged`](ErrorKind::SourceChanged).
    pub(crate) fn check_same(&self, now: &Stamp) -> Result<()> {
        if now.inode != self.inode {
            return Err(changed("another file under this name", "the one that was read before"));
        }
        if now.size < self.size {
            return Err(shrank(now.size, self.size));
        }
        if now.size > self.size {
            return Err(changed(format!("{} bytes", now.size), format!("the {} bytes it had", self.size)));
        }
        if now.changed != self.changed {
            return Err(changed("a different modification time", "the one it had when it was opened"));
        }
        Ok(())
    }
}

/// Returns the error for a file that has become shorter.
pub(crate) fn shrank(now: u64, was: u64) -> Error {
    Error::new(ErrorKind::SourceShrank)
        .with_found(format!("{now} bytes"))
        .with_expected(format!("the {was} bytes it had"))
}

/// Returns the error for a file that has changed.
pub(crate) fn changed(found: impl Into<String>, expected: impl Into<String>) -> Error {
    Error::new(ErrorKind::SourceChanged).with_found(found).with_expected(expected)
}

/// The size, modification time and inode of a file, in a form that can be stored.
#[cfg(feature = "splits")]
pub(crate) struct Identity {
    pub(crate) size: u64,
    /// Seconds since 1970 with nine decimal places.
    pub(crate) modified: String,
    pub(crate) inode: String,
}

#[cfg(feature = "splits")]
impl Identity {
    pub(crate) fn of(file: impl AsFd) -> Result<Identity> {
        let stat = fstat(file).map_err(|error| Error::from_io(error.into()))?;
        Ok(Identity {
            size: stat.st_size as u64,
            modified: format!("{}.{:09}", stat.st_mtime, stat.st_mtime_nsec),
            inode: stat.st_ino.to_string(),
        })
    }
}
