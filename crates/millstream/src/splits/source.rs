//! A source that delivers the bytes of the records of one split.
//!
//! The source finds where the records of the split begin and end, so everything that reads it sees a stream of complete
//! records: the reader, its read-ahead and its windows work as for any other source.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memmem::Finder;
use millstream_remote::Version;

use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::BorrowedFd;
use crate::os::cancel::Wait;
use crate::os::source::fd::FdSource;
use crate::os::stamp::shrank;
use crate::source::object::ObjectSource;
use crate::source::{ByteSource, Counted, Nature, Pin, Resume};

use super::Split;
use super::content::{Content, Location, current_version};
use super::pin::{Pinned, hash_of, mismatch, text_of};

/// The number of bytes that are read at a time while the first record is searched.
const PIECE: usize = 32 << 10;

/// The number of bytes after the end of a split that are requested ahead, because its last record may end there.
const BEYOND: u64 = 64 << 10;

/// The content of a split, which matches the plan.
pub(crate) struct Opened {
    /// The content, from the position at which reading begins.
    bytes: Bytes,
    /// Whether the content has to be decoded.
    pub(crate) is_encoded: bool,
    /// Where decoding begins, if this is a point of an index.
    resume: Option<Resume>,
    split: Split,
    content: Content,
}

enum Bytes {
    File(Box<FdSource>),
    Object(Box<ObjectSource>),
}

impl Opened {
    /// Opens the content of a split and checks that it is the one that was planned.
    pub(crate) fn new(split: &Split, wait: &Wait) -> Result<Opened> {
        let content = open(split, wait)?;
        let start = split.encoded.as_ref().map_or(split.search_from(), |encoded| encoded.at);
        let bytes = match &content {
            Content::File(file) => {
                let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
                let mut file = file.try_clone().map_err(open_failed)?;
                file.seek(SeekFrom::Start(start)).map_err(open_failed)?;
                Bytes::File(Box::new(FdSource::new(file.into())?))
            }
            Content::Object(version) => {
                Bytes::Object(Box::new(ObjectSource::new(version.open(start, split.expected_end())?)))
            }
        };
        let (is_encoded, split) = (split.encoded.is_some(), split.clone());
        let resume = split.resume()?;
        Ok(Opened { bytes, is_encoded, resume, split, content })
    }

    /// Finds the first record in `bytes`, which delivers the content of this split, decoded if necessary.
    pub(crate) fn start(
        split: Split,
        content: Content,
        bytes: Box<dyn ByteSource>,
        wait: &Wait,
    ) -> Result<SplitSource> {
        let at = split.encoded.as_ref().map_or(split.search_from(), |encoded| encoded.decoded);
        let stop = match (split.end, split.whole.framing.finder()) {
            (Some(end), _) if end == split.begin => Stop::At(end),
            (end, Some(finder)) if !split.is_exact => {
                Stop::Delimiter { end: end.unwrap_or(u64::MAX), finder: Box::new(finder), tail: Vec::new() }
            }
            (Some(end), _) if split.is_assumed() => Stop::Later(end),
            (Some(end), _) => Stop::At(end),
            (None, _) => Stop::Never,
        };
        let hasher = split.hash.is_some().then(blake3::Hasher::new);
        let (first, has_ended, failure) = (Vec::new(), false, None);
        let mut source = SplitSource { bytes, at, read: at, first, stop, has_ended, failure, hasher, split, content };
        match source.find_first(wait) {
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            // It is reported where the records should be, with its offset.
            Err(error) => source.failure = Some(error),
            Ok(()) => {}
        }
        Ok(source)
    }

    /// Separates the bytes and the place at which decoding begins, for which the caller creates a decoder, from what
    /// [`start`](Opened::start) needs. `count` is increased by the number of bytes that are read.
    pub(crate) fn into_parts(
        self,
        pin: Pin,
        count: Arc<AtomicU64>,
    ) -> (Box<dyn ByteSource>, Option<Resume>, Split, Content) {
        let bytes: Box<dyn ByteSource> = match self.bytes {
            Bytes::File(file) => Box::new(Counted::new(file.pin(pin), count)),
            Bytes::Object(object) => Box::new(Counted::new(*object, count)),
        };
        (bytes, self.resume, self.split, self.content)
    }
}

impl Split {
    /// Returns the offset from which the first record is searched: a delimiter may end where the split begins.
    fn search_from(&self) -> u64 {
        match self.whole.framing.searchable() {
            Some(delimiter) if !self.is_exact => self.begin.saturating_sub(delimiter.len() as u64),
            _ => self.begin,
        }
    }

    /// Without decoders, no split has an index.
    #[cfg(not(feature = "compression"))]
    fn resume(&self) -> Result<Option<Resume>> {
        Ok(None)
    }

    #[cfg(not(feature = "compression"))]
    fn compares_at(&self) -> Option<u64> {
        None
    }

    /// Returns the offset in the content at which reading probably ends.
    fn expected_end(&self) -> u64 {
        let end = match &self.encoded {
            Some(encoded) => encoded.until.map(|until| until.at),
            None => self.end,
        };
        end.map_or(u64::MAX, |end| if self.is_exact { end } else { end.saturating_add(BEYOND) })
    }

    /// Returns the size that the file has at least.
    fn least_size(&self) -> u64 {
        match (&self.encoded, self.end) {
            (Some(encoded), _) => encoded.at,
            (None, end) => end.unwrap_or(self.begin),
        }
    }
}

/// Opens the content of a split, and checks that it is the one that was planned.
pub(super) fn open(split: &Split, wait: &Wait) -> Result<Content> {
    let open_failed = |error| Error::new(ErrorKind::OpenFailed).with_io(error);
    let content = match split.location()? {
        Location::File(path) => {
            if !std::fs::metadata(path).map_err(open_failed)?.is_file() {
                return Err(mismatch("something that is not a regular file", "the regular file of the plan"));
            }
            Content::File(Arc::new(File::open(path).map_err(open_failed)?))
        }
        Location::Object(remote) => Content::Object(match &split.whole.pin {
            Pinned::Version { size, etag } if *size > 0 => Version::known((**remote).clone(), *size, etag)?,
            // The object is empty, so no later request compares the version; or the plan contains none.
            _ => current_version(remote, wait)?,
        }),
    };
    check(split, &content, wait)?;
    Ok(content)
}

/// Fails if the content does not match the plan, or is shorter than the plan says.
pub(super) fn check(split: &Split, content: &Content, wait: &Wait) -> Result<()> {
    split.whole.pin.check(content, wait)?;
    let (now, least) = (content.size()?, split.least_size());
    if now < least {
        return Err(match split.whole.pin {
            Pinned::None => shrank(now, least),
            // The size is that of the pin, which a stream keeps, but a longer version of the object was divided.
            _ => mismatch(format!("{least} bytes or more"), format!("the {now} bytes of the plan")),
        });
    }
    match &split.boundary_hash {
        Some(hash) if hash_of(content, &[split.boundary()], wait)? != *hash => {
            let Range { start, end } = split.boundary();
            Err(mismatch(format!("other bytes from {start} to {end}"), "the bytes of the plan"))
        }
        _ => Ok(()),
    }
}

/// Returns the hash of a split's bytes.
pub(super) fn hash(split: &Split, wait: &Wait) -> Result<String> {
    let (bytes, resume, split, content) = Opened::new(split, wait)?.into_parts(Pin::default(), Arc::default());
    let bytes = decoded(bytes, &split, resume);
    let mut source = Opened::start(split, content, bytes, wait)?;
    let (mut hasher, mut space) = (blake3::Hasher::new(), vec![0; 256 << 10]);
    loop {
        match source.read(&mut space, wait)? {
            0 => break,
            count => hasher.update(&space[..count]),
        };
        wait.check()?;
    }
    source.finish(wait, &mut Vec::new())?;
    Ok(text_of(hasher.finalize()))
}

/// Returns the file's bytes, decoded if necessary. There are no limits: they are options of readers.
#[cfg(feature = "compression")]
fn decoded(bytes: Box<dyn ByteSource>, split: &Split, resume: Option<Resume>) -> Box<dyn ByteSource> {
    use crate::source::{DecodeLimit, decode::DecodeSource};
    let path = split.path().filter(|_| split.begin == 0);
    let source = |bytes| {
        let limit = DecodeLimit::default();
        DecodeSource::new(bytes, path, limit, u64::MAX, Default::default(), Default::default()).resuming(resume)
    };
    if split.encoded.is_some() { Box::new(source(bytes)) } else { bytes }
}

#[cfg(not(feature = "compression"))]
fn decoded(bytes: Box<dyn ByteSource>, _: &Split, _: Option<Resume>) -> Box<dyn ByteSource> {
    bytes
}

/// Where the bytes of a split end.
enum Stop {
    /// At this offset.
    At(u64),
    /// After the first delimiter that ends at or after `end`.
    Delimiter {
        end: u64,
        finder: Box<Finder<'static>>,
        /// The last bytes delivered, which may be the beginning of a delimiter.
        tail: Vec<u8>,
    },
    /// After the record that contains this offset, or ends there, which the caller finds.
    Later(u64),
    /// At the end of the file.
    Never,
}

/// Delivers the bytes of a split's records.
pub(crate) struct SplitSource {
    bytes: Box<dyn ByteSource>,
    /// The offset of the next byte to deliver.
    at: u64,
    /// The offset after the last byte that was read from `bytes`.
    read: u64,
    /// The first bytes, which were read while the first record was searched.
    first: Vec<u8>,
    stop: Stop,
    /// Whether `bytes` has reached its end.
    has_ended: bool,
    /// The error of the search for the first record.
    failure: Option<Error>,
    hasher: Option<blake3::Hasher>,
    split: Split,
    content: Content,
}

impl SplitSource {
    /// Returns the offset of the first byte.
    pub(crate) fn offset(&self) -> u64 {
        self.at
    }

    /// Reads up to the first byte of the first record, and perhaps further.
    fn find_first(&mut self, wait: &Wait) -> Result<()> {
        let from = self.split.search_from();
        while self.at < from {
            wait.check()?;
            let count = usize::try_from(from - self.at).unwrap_or(PIECE).min(PIECE);
            let count = self.pull(&mut vec![0; count], wait)?;
            if count == 0 {
                return self.end_early();
            }
            self.at += count as u64;
        }
        let (Stop::Delimiter { end, finder, .. }, true) = (&self.stop, self.split.begin > 0) else { return Ok(()) };
        let (end, len) = (*end, finder.needle().len());
        let mut block = Vec::new();
        loop {
            if let Some(found) = finder.find(&block) {
                self.at += (found + len) as u64;
                block.drain(..found + len);
                self.first = block;
                if self.at >= end {
                    self.stop = Stop::At(self.at);
                }
                return Ok(());
            }
            // The next delimiter ends after these bytes. The record after it begins in a later split.
            let seen = self.at + block.len() as u64;
            if seen + 1 >= end {
                (self.at, self.stop) = (end, Stop::At(end));
                return Ok(());
            }
            let kept = block.len().min(len - 1);
            self.at = seen - kept as u64;
            block.drain(..block.len() - kept);
            block.resize(kept + PIECE, 0);
            wait.check()?;
            let count = self.bytes.read(&mut block[kept..], wait)?;
            self.read += count as u64;
            block.truncate(kept + count);
            if count == 0 {
                self.at = seen;
                return self.end_early();
            }
        }
    }

    /// The file ends before the first record. If it must not, [`finish`](ByteSource::finish) reports that.
    fn end_early(&mut self) -> Result<()> {
        (self.has_ended, self.stop) = (true, Stop::At(self.at));
        Ok(())
    }

    /// Reads bytes from the file.
    fn pull(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        let count = self.bytes.read(space, wait)?;
        self.read += count as u64;
        Ok(count)
    }

    /// Decodes up to the next point of the index and beyond, so that its checksum is compared.
    fn compare(&mut self, wait: &Wait) -> Result<()> {
        let mut space = Vec::new();
        while self.split.compares_at().is_some_and(|point| self.read <= point) {
            space.resize(PIECE, 0);
            if self.pull(&mut space, wait)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Reads bytes, of which some may be after the end of the split.
    fn read_more(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if self.first.is_empty() {
            return self.pull(space, wait);
        }
        let count = self.first.len().min(space.len());
        space[..count].copy_from_slice(&self.first[..count]);
        self.first.drain(..count);
        Ok(count)
    }
}

/// Returns the number of bytes up to the end of the first delimiter that ends at or after `end`, if `bytes`, at the
/// offset `at`, has one. `tail` has the bytes before `bytes` that may begin a delimiter, and is advanced.
fn find_last(finder: &Finder<'_>, end: u64, at: u64, bytes: &[u8], tail: &mut Vec<u8>) -> Option<usize> {
    let len = finder.needle().len();
    // A delimiter that begins before this offset ends before `end`.
    let begin = end.saturating_sub(len as u64);
    let skip = |offset: u64| usize::try_from(begin.saturating_sub(offset)).unwrap_or(usize::MAX);
    // First the delimiters that begin in the tail.
    let mut seam = std::mem::take(tail);
    let before = seam.len();
    seam.extend(&bytes[..bytes.len().min(len - 1)]);
    let from = skip(at - before as u64).min(seam.len());
    if let Some(found) = finder.find(&seam[from..]) {
        return Some(from + found + len - before);
    }
    let from = skip(at).min(bytes.len());
    if let Some(found) = finder.find(&bytes[from..]) {
        return Some(from + found + len);
    }
    if bytes.len() >= len - 1 {
        seam.clear();
        seam.extend(&bytes[bytes.len() - (len - 1)..]);
    } else {
        seam.drain(..seam.len().saturating_sub(len - 1));
    }
    *tail = seam;
    None
}

impl ByteSource for SplitSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let left = |end: u64| usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let len = match self.stop {
            Stop::At(end) => left(end),
            // The bytes after it mostly belong to the next split.
            Stop::Later(end) if self.at >= end => PIECE,
            Stop::Later(end) => left(end),
            Stop::Delimiter { .. } | Stop::Never => usize::MAX,
        };
        let len = len.min(space.len());
        let space = &mut space[..len];
        if space.is_empty() || self.has_ended {
            return Ok(0);
        }
        let mut count = self.read_more(space, wait)?;
        if count == 0 {
            self.has_ended = true;
            return Ok(0);
        }
        if let Stop::Delimiter { end, finder, tail } = &mut self.stop
            && let Some(last) = find_last(finder, *end, self.at, &space[..count], tail)
        {
            count = last;
            self.stop = Stop::At(self.at + last as u64);
        }
        self.at += count as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&space[..count]);
        }
        Ok(count)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.compare(wait)?;
        if let Content::File(_) = self.content {
            check(&self.split, &self.content, wait)?;
        }
        // A decoder knows whether it succeeded only at its end.
        if self.has_ended || self.split.encoded.is_none() || matches!(self.stop, Stop::Never) {
            self.bytes.finish(wait, ends)?;
        }
        let planned = self.split.end.unwrap_or(0);
        if self.has_ended && self.at < planned && self.split.encoded.is_none() {
            return Err(shrank(self.at, planned));
        }
        match (&self.hasher, &self.split.hash) {
            (Some(hasher), Some(hash)) if text_of(hasher.finalize()) != *hash => {
                Err(mismatch("other bytes in this split", "the bytes of the plan"))
            }
            _ => Ok(()),
        }
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        self.bytes.close(ends);
    }

    fn abandon(self: Box<Self>) {
        self.bytes.abandon();
    }

    fn nature(&self) -> Nature {
        self.bytes.nature()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.bytes.ready_fd()
    }

    fn is_interruptible(&self) -> bool {
        self.bytes.is_interruptible()
    }
}
