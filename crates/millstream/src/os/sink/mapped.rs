//! Writes a regular file through mapped memory.
//!
//! The file grows in steps. The first is 1 MiB, and each is twice as long as the previous one, up to 64 MiB. A step is
//! reserved on the disk before it is mapped: a hole in the file would be allocated when it is written, and if the disk
//! were full at that point, the kernel could only report it with SIGBUS. With the reservation, a full disk causes an
//! error as with write(2), and smaller steps are tried first.
//!
//! After a close, an error and a drop, the file has its true length. Until then, even after a flush or if the process
//! is killed, the file is padded with the zeros of its last step. The padding is visible only if the file is written in
//! place ([`Partial::Keep`]).
//!
//! If another process truncates the file while it is mapped, SIGBUS kills this process. Mapping always has this risk,
//! but no other process knows the name of a file that is to appear complete.
//!
//! [`Partial::Keep`]: crate::Partial::Keep
#![allow(unsafe_code)] // writing through a mapping

use std::os::fd::{AsFd, AsRawFd};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::sink::fd::FdSink;
use crate::sink::Sink;
use crate::sink::WriterEnd;

/// The length of the first step.
const FIRST: u64 = 1 << 20;

/// The length of the longest step.
const MOST: u64 = 64 << 20;

/// The number of bytes whose pages are made present at a time. One call for this many pages costs less than a fault for
/// each of them, and pages that are never written are not touched.
const PRESENT: usize = 1 << 20;

/// Writes a file by copying into it.
pub(crate) struct MappedSink {
    file: FdSink,
    wait: Wait,
    /// The number of bytes accepted: the final length of the file.
    len: u64,
    /// The number of bytes of the file that are reserved. The file is at least this long.
    reserved: u64,
    /// Whether the file's length is known to be `len`. It is unknown after a request for space: a file system with too
    /// little space may refuse the request and still extend the file by the space it had (ext4 does).
    is_trimmed: bool,
    step: u64,
    window: Option<Window>,
    /// The process that owns the sink: a forked child has a copy, and must not truncate its parent's file.
    process: u32,
}

/// The part of the file that is mapped.
struct Window {
    map: MmapRaw,
    /// The number of its bytes that are written.
    at: usize,
    /// The number of its bytes whose pages are present.
    present: usize,
}

impl MappedSink {
    /// Creates a sink for a regular file that is empty and open for reading and writing.
    pub(crate) fn new(file: FdSink, wait: Wait) -> MappedSink {
        MappedSink {
            file,
            wait,
            len: 0,
            reserved: 0,
            is_trimmed: true,
            step: FIRST,
            window: None,
            process: std::process::id(),
        }
    }

    /// Maps the space that is reserved and not yet written, and reserves the next step if there is none.
    fn grow(&mut self) -> Result<()> {
        self.window = None;
        if self.len == self.reserved {
            self.reserve().map_err(|error| match error {
                Errno::OPNOTSUPP | Errno::NOSYS => Error::new(ErrorKind::Unsupported)
                    .with_found("a file system that cannot reserve space")
                    .with_expected("one that can, or a file that is not mapped")
                    .with_io(error.into()),
                _ => Error::from_io(error.into()),
            })?;
        }
        // A mapping begins at a page boundary, and part of the first page may have been written through the previous
        // window.
        let start = self.len - self.len % page_len();
        let len = usize::try_from(self.reserved - start).map_err(|_| Error::from_io(Errno::OVERFLOW.into()))?;
        let map = MmapOptions::new().offset(start).len(len).map_raw(self.file.as_fd().as_raw_fd());
        let at = (self.len - start) as usize;
        self.window = Some(Window { map: map.map_err(Error::from_io)?, at, present: 0 });
        Ok(())
    }

    /// Extends the file by a step, or by the space that the disk has.
    fn reserve(&mut self) -> Result<(), Errno> {
        // Beyond the limit on a file's length the kernel sends a signal, as it does for a write. A reservation must not
        // cause this signal.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        let mut step = self.step;
        if limit > self.reserved {
            step = step.min(limit - self.reserved);
        }
        self.is_trimmed = false;
        loop {
            match retry_on_intr(|| rustix::fs::fallocate(&self.file, FallocateFlags::empty(), self.reserved, step)) {
                Ok(()) => break,
                Err(Errno::NOSPC | Errno::DQUOT) if step > page_len() => step = (step / 2).max(page_len()),
                Err(error) => return Err(error),
            }
        }
        self.reserved += step;
        self.step = (self.step * 2).min(MOST);
        Ok(())
    }

    /// Gives the file its true length.
    fn trim(&mut self) -> Result<()> {
        self.window = None;
        if !self.is_trimmed {
            retry_on_intr(|| rustix::fs::ftruncate(&self.file, self.len))
                .map_err(|error| Error::from_io(error.into()))?;
            self.reserved = self.len;
            self.is_trimmed = true;
        }
        Ok(())
    }

    /// Copies as many of `bytes` as fit into the window, and returns their number.
    fn copy(&mut self, bytes: &[u8]) -> Result<usize> {
        self.wait.check()?;
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.len == self.reserved || self.window.is_none() {
            self.grow()?;
        }
        let window = self.window.as_mut().expect("growing creates a window");
        let taken = window.write(bytes)?;
        self.len += taken as u64;
        Ok(taken)
    }
}

impl Window {
    /// Copies as many of `bytes` as fit, and returns their number.
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.map.len() - self.at)];
        if self.at + bytes.len() > self.present {
            self.make_present(self.at + bytes.len())?;
        }
        // SAFETY: `at + bytes.len() <= map.len()`, because the line above shortens `bytes`, so the destination is
        // inside the mapping, which this sink owns and may write. `bytes` is memory with an existing reference, and the
        // mapping has none: they do not overlap. All of the mapping is inside the file, which is reserved that far, so
        // accessing it causes no SIGBUS unless another process truncates the file, which is the documented risk.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(self.at), bytes.len());
        }
        self.at += bytes.len();
        Ok(bytes.len())
    }

    /// Faults in the pages up to `to` and some after it. A fault for each page would cost more. A disk error is
    /// reported here; without this call, accessing the page would raise SIGBUS.
    fn make_present(&mut self, to: usize) -> Result<()> {
        let from = self.present - self.present % page_len() as usize;
        let to = (from + PRESENT).max(to).min(self.map.len());
        #[cfg(target_os = "linux")]
        match self.map.advise_range(memmap2::Advice::PopulateWrite, from, to - from) {
            // Systems before Linux 5.14 do not support this.
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INVAL) => return Err(Error::from_io(error)),
            _ => {}
        }
        self.present = to;
        Ok(())
    }
}

impl Sink for MappedSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let taken = self.copy(bytes);
        if taken.is_err() {
            let _ = self.trim(); // if that fails, the next error or the close tries again
        }
        taken
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.trim()?;
        self.file.close(end)
    }
}

impl Drop for MappedSink {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = self.trim(); // no caller can receive an error here
        }
    }
}

fn page_len() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::path::Path;

    use super::*;
    use crate::os::sink::fd::Handle;

    fn descriptor(options: &mut OpenOptions, path: &Path) -> FdSink {
        let file = options.open(path).unwrap();
        FdSink::new(Handle::Owned(file.into()), Wait::new(None, None)).unwrap().0
    }

    /// Returns a sink that has written exactly its first step, its file, and its directory.
    fn one_step() -> (MappedSink, File, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let file = descriptor(OpenOptions::new().read(true).write(true).create(true), &path);
        let mut sink = MappedSink::new(file, Wait::new(None, None));
        assert_eq!(sink.write(&[b'x'; FIRST as usize]).unwrap(), FIRST as usize);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        (sink, file, directory)
    }

    #[test]
    fn a_refused_reservation_that_made_the_file_longer_is_trimmed() {
        let (mut sink, file, _directory) = one_step();
        // This is more than any file system has. The next lines do what ext4 does if it has too little space.
        sink.step = i64::MAX as u64;
        file.set_len(FIRST + 5 * 4096).unwrap();
        assert!(sink.write(b"more").is_err());
        assert_eq!(file.metadata().unwrap().len(), FIRST);
        // This repeats it for a smaller step for which there is space, and which ends exactly after the bytes.
        sink.step = 4096;
        assert_eq!(sink.write(&[b'y'; 4096]).unwrap(), 4096);
        file.set_len(FIRST + 5 * 4096).unwrap();
        sink.close(&mut WriterEnd::default()).unwrap();
        assert_eq!(file.metadata().unwrap().len(), FIRST + 4096);
    }

    #[test]
    fn a_step_that_cannot_be_mapped_is_trimmed_each_time() {
        let (mut sink, file, directory) = one_step();
        let path = directory.path().join("out");
        // A file that is not open for reading can be extended but not mapped.
        let whole = std::mem::replace(&mut sink.file, descriptor(OpenOptions::new().write(true), &path));
        for _ in 0..3 {
            assert!(sink.write(b"more").is_err());
            assert_eq!(file.metadata().unwrap().len(), FIRST);
        }
        sink.file = whole;
        assert_eq!(sink.write(b"more").unwrap(), 4);
        sink.close(&mut WriterEnd::default()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[FIRST as usize - 1..], *b"xmore");
    }
}
