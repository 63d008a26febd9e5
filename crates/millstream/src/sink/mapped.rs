//! A regular file as a sink, written through memory that it is mapped into.
//!
//! The file grows in steps, of 1 MiB at first and each twice as long as the one before, up to 64 MiB. A step is reserved
//! on the disk before it is mapped: a hole in the file would be filled when it is written, and where the disk is full
//! then, the system has no other way to say so than SIGBUS. So a full disk is an error like that of a write(2), and
//! smaller steps are tried before it is one.
//!
//! It promises the file's true length after a close, an error and a drop. A process that is killed leaves the zeros of
//! its last step behind what it wrote, which nobody sees unless the file is written in place ([`Partial::Keep`]).
//!
//! Somebody else who makes the file shorter meanwhile ends the process with SIGBUS. That is the risk of mapping, and
//! nobody else knows the name of a file that is to appear whole.
//!
//! [`Partial::Keep`]: crate::Partial::Keep
#![allow(unsafe_code)] // writing through a mapping

use std::os::fd::{AsFd, AsRawFd};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::cancel::Wait;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::Sink;
use crate::sink::fd::FdSink;
use crate::writer::WriterEnd;

/// The first step.
const FIRST: u64 = 1 << 20;

/// The longest step.
const MOST: u64 = 64 << 20;

/// How much is made present at a time. One call for so many pages costs less than a fault for each, and what is never
/// written is not touched.
const PRESENT: usize = 1 << 20;

/// Writes a file by copying into it.
pub(crate) struct MappedSink {
    file: FdSink,
    wait: Wait,
    /// The bytes taken: the length that the file is to have.
    len: u64,
    /// The length that the file has: all of it is reserved.
    reserved: u64,
    step: u64,
    window: Option<Window>,
}

/// The part of the file that is mapped.
struct Window {
    map: MmapRaw,
    /// How far it is written.
    at: usize,
    /// How far its pages are present.
    present: usize,
}

impl MappedSink {
    /// For a regular file that is empty, and open for reading and writing.
    pub(crate) fn new(file: FdSink, wait: Wait) -> MappedSink {
        MappedSink { file, wait, len: 0, reserved: 0, step: FIRST, window: None }
    }

    /// Reserves and maps the next step. If there is no room at all, the file gets its true length.
    fn grow(&mut self) -> Result<()> {
        self.window = None;
        let reserved = self.reserve();
        if reserved.is_err() {
            self.trim()?;
        }
        reserved.map_err(|error| match error {
            Errno::OPNOTSUPP | Errno::NOSYS => Error::new(ErrorKind::Unsupported)
                .with_found("a file system that cannot reserve room")
                .with_expected("one that can, or a file that is not mapped")
                .with_io(error.into()),
            _ => Error::from_io(error.into()),
        })?;
        // A mapping begins with a page, of which a part may have been written by way of the window before.
        let start = self.len - self.len % page_len();
        let len = usize::try_from(self.reserved - start).map_err(|_| Error::from_io(Errno::OVERFLOW.into()))?;
        let map = MmapOptions::new().offset(start).len(len).map_raw(self.file.as_fd().as_raw_fd());
        let at = (self.len - start) as usize;
        self.window = Some(Window { map: map.map_err(Error::from_io)?, at, present: 0 });
        Ok(())
    }

    /// Makes the file longer by a step, or by as much as there is room for.
    fn reserve(&mut self) -> Result<(), Errno> {
        // Beyond the limit on a file's length the system sends a signal, as it does for a write beyond it. A step must
        // not be the cause of that.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        let mut step = self.step;
        if limit > self.reserved {
            step = step.min(limit - self.reserved);
        }
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
        if self.reserved != self.len {
            retry_on_intr(|| rustix::fs::ftruncate(&self.file, self.len))
                .map_err(|error| Error::from_io(error.into()))?;
            self.reserved = self.len;
        }
        Ok(())
    }
}

impl Window {
    /// Copies as many of `bytes` as there is room for, and returns how many.
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.map.len() - self.at)];
        if self.at + bytes.len() > self.present {
            self.make_present(self.at + bytes.len())?;
        }
        // SAFETY: `at + bytes.len() <= map.len()`, by the line above that shortens `bytes`, so the destination is inside
        // the mapping, which is ours and writable. `bytes` is memory that somebody has a reference to, and nobody has
        // one to the mapping: they do not overlap. All of the mapping is inside the file, which is reserved that far,
        // so that touching it is no SIGBUS, unless somebody shortens the file: the documented risk.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(self.at), bytes.len());
        }
        self.at += bytes.len();
        Ok(bytes.len())
    }

    /// Makes the pages up to `to`, and some more, present: a fault for each page would cost more, and what is wrong with
    /// the disk is an error here, where touching it would be SIGBUS.
    fn make_present(&mut self, to: usize) -> Result<()> {
        let from = self.present - self.present % page_len() as usize;
        let to = (from + PRESENT).max(to).min(self.map.len());
        #[cfg(target_os = "linux")]
        match self.map.advise_range(memmap2::Advice::PopulateWrite, from, to - from) {
            // Systems before Linux 5.14 do not know it.
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INVAL) => return Err(Error::from_io(error)),
            _ => {}
        }
        self.present = to;
        Ok(())
    }
}

impl Sink for MappedSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.wait.check()?;
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.len == self.reserved || self.window.is_none() {
            self.grow()?;
        }
        let window = self.window.as_mut().expect("growing makes a window");
        let taken = window.write(bytes)?;
        self.len += taken as u64;
        Ok(taken)
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.trim()?;
        self.file.close(end)
    }
}

impl Drop for MappedSink {
    fn drop(&mut self) {
        let _ = self.trim(); // nobody is there to hear of an error
    }
}

fn page_len() -> u64 {
    rustix::param::page_size() as u64
}
