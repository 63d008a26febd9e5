//! What is divided: a regular file, or one version of an object. Both can be read from any position.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millstream_core::internal::SNIFF;
use millstream_remote::{Object, Remote, Version};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;

/// Where the content is.
#[derive(Clone, Debug)]
pub(super) enum Location {
    File(PathBuf),
    Object(Box<Remote>),
}

/// The options of requests are not compared.
impl PartialEq for Location {
    fn eq(&self, other: &Location) -> bool {
        match (self, other) {
            (Location::File(path), Location::File(other)) => path == other,
            (Location::Object(remote), Location::Object(other)) => remote.url() == other.url(),
            _ => false,
        }
    }
}

impl Eq for Location {}

impl Location {
    /// Returns the name for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Location::File(path) => path.display().to_string(),
            Location::Object(remote) => remote.name(),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Location::File(path) => Some(path),
            Location::Object(_) => None,
        }
    }
}

/// A regular file or one version of an object.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    File(Arc<File>),
    Object(Version),
}

/// Finds the current version of an object.
pub(super) fn current_version(remote: &Remote, wait: &Wait) -> Result<Version> {
    Version::current(remote.clone(), wait.checking())?.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported)
            .with_name(remote.name())
            .with_found("an object without ranges or without a strong ETag")
            .with_expected("a server that has both, without which parts could be of different versions")
    })
}

impl Content {
    /// Returns the number of bytes.
    pub(super) fn size(&self) -> Result<u64> {
        match self {
            Content::File(file) => Ok(file.metadata().map_err(Error::from_io)?.len()),
            Content::Object(version) => Ok(version.size()),
        }
    }

    /// Reads bytes at an offset, and returns their number. This is one request for an object.
    pub(super) fn read_at(&self, space: &mut [u8], offset: u64, wait: &Wait) -> io::Result<usize> {
        match self {
            Content::File(file) => crate::os::read_at(file, space, offset),
            Content::Object(version) => Ok(version.read_at(space, offset, wait.checking())?),
        }
    }

    /// Fills `space` with the bytes at an offset.
    pub(super) fn read_exact_at(&self, space: &mut [u8], offset: u64, wait: &Wait) -> io::Result<()> {
        fill(space, offset, |space, offset| self.read_at(space, offset, wait))
    }

    /// Returns the bytes that suffice to detect a compressed format.
    pub(super) fn first_bytes(&self, wait: &Wait) -> Result<Vec<u8>> {
        let (mut first, mut len) = (vec![0; SNIFF], 0);
        while len < first.len() {
            match self.read_at(&mut first[len..], len as u64, wait).map_err(Error::from_io)? {
                0 => break,
                count => len += count,
            }
        }
        first.truncate(len);
        Ok(first)
    }

    /// Returns a cursor for reads in order: from `begin`, if that is given, to `end`.
    pub(super) fn cursor<'a>(&'a self, begin: Option<u64>, end: u64, wait: &'a Wait) -> Cursor<'a> {
        let next = begin.unwrap_or(u64::MAX);
        Cursor { content: self, wait, end, stream: None, window: Vec::new(), next }
    }
}

fn fill(space: &mut [u8], offset: u64, mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < space.len() {
        match read(&mut space[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}

/// The size of a read of an object at a position that does not follow the previous one.
const WINDOW: usize = 64 << 10;

/// The number of bytes that are read and discarded rather than requested around.
const GAP: u64 = 256 << 10;

/// Reads content mostly in order. Ranges of an object are requested ahead for as long as reads are in order; other reads
/// are small requests.
pub(super) struct Cursor<'a> {
    content: &'a Content,
    wait: &'a Wait,
    /// Where reading probably ends.
    end: u64,
    /// The object from its next byte on.
    stream: Option<Object>,
    /// The bytes of the last small request, which end at `next`.
    window: Vec<u8>,
    /// A read that begins here, or slightly after it, is in order.
    next: u64,
}

impl Cursor<'_> {
    /// Reads bytes at an offset, and returns their number.
    pub(super) fn read_at(&mut self, space: &mut [u8], offset: u64) -> io::Result<usize> {
        let Content::Object(version) = self.content else { return self.content.read_at(space, offset, self.wait) };
        let start = self.next - self.window.len() as u64;
        if (start..self.next).contains(&offset) {
            let bytes = &self.window[(offset - start) as usize..];
            let count = bytes.len().min(space.len());
            space[..count].copy_from_slice(&bytes[..count]);
            return Ok(count);
        }
        if offset < self.next || offset - self.next > GAP {
            self.stream = None;
            let mut window = vec![0; WINDOW];
            let count = self.content.read_at(&mut window, offset, self.wait)?;
            window.truncate(count);
            (self.window, self.next) = (window, offset + count as u64);
            if count == 0 {
                return Ok(0);
            }
            return self.read_at(space, offset);
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(version.open(self.next.min(version.size()), self.end)?),
        };
        let mut discarded = [0; 8 << 10];
        while stream.position() < offset {
            let len = discarded.len().min((offset - stream.position()) as usize);
            if stream.read(&mut discarded[..len], self.wait.checking())? == 0 {
                break;
            }
        }
        let count = stream.read(space, self.wait.checking())?;
        self.window.clear();
        self.next = stream.position();
        Ok(count)
    }

    /// Fills `space` with the bytes at an offset.
    pub(super) fn read_exact_at(&mut self, space: &mut [u8], offset: u64) -> io::Result<()> {
        fill(space, offset, |space, offset| self.read_at(space, offset))
    }
}
