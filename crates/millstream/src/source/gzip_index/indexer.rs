//! Makes an index while the decoded bytes are read.

use std::io::{self, Read};

use millstream_core::internal::refuse;

use super::inflate::Stop;
use super::members::Members;
use super::{END, GzipIndex, Point, WINDOW};
use crate::error::{Error, ErrorKind, Result};

/// The number of decoded bytes per call of the decoder, in addition to the window.
const DECODE: usize = 512 << 10;

/// Decodes gzip data from its beginning and makes an index of it, so that the first pass over a file need not be repeated.
///
/// ```
/// use std::io::Write;
/// use millstream::{GzipIndex, GzipIndexer, Reader, Writer};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("x.gz");
/// # let mut writer = Writer::path(&path)?;
/// # writer.write_all(b"one\ntwo\n").map_err(millstream::Error::from_io)?;
/// # writer.close()?;
/// let stored = GzipIndex::usual_path(&path);
/// let indexer = GzipIndexer::new(std::fs::File::open(&path).map_err(millstream::Error::from_io)?, 4 << 20)?;
/// let mut reader = Reader::from_read(indexer.at_end(move |index| {
///     let mut out = Writer::path(stored)?;
///     index.write(&mut out).map_err(millstream::Error::from_io)?;
///     out.close().map(|_| ()) // now the file appears
/// }))?;
/// let mut count = 0;
/// while reader.next_line()?.is_some() {
///     count += 1;
/// }
/// assert_eq!(count, 2);
/// # assert_eq!(GzipIndex::load(GzipIndex::usual_path(&path))?.decoded_len(), 8);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct GzipIndexer<R> {
    members: Members<Tail<R>>,
    spacing: u32,
    points: Vec<Point>,
    /// The decoded bytes: `memory[..end]`, of which those before `pos` have been read. At least the last 32 KiB are kept.
    memory: Vec<u8>,
    pos: usize,
    end: usize,
    decoded: u64,
    /// The index, at the end of the data.
    index: Option<GzipIndex>,
    at_end: Option<AtEnd>,
    /// The error that ended the stream, which is reported again.
    failure: Option<Error>,
}

type AtEnd = Box<dyn FnOnce(&GzipIndex) -> Result<()> + Send>;

impl<R: Read> GzipIndexer<R> {
    /// Creates an indexer of compressed data, any number of members, with a point every `spacing` decoded bytes, at the
    /// beginning of the next block.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOption`] if `spacing` is below [`GzipIndex::MIN_SPACING`].
    pub fn new(source: R, spacing: u32) -> Result<GzipIndexer<R>> {
        refuse(&[(
            spacing < GzipIndex::MIN_SPACING,
            &format_args!("{spacing} bytes between points"),
            &format_args!("at least {}", GzipIndex::MIN_SPACING),
        )])?;
        Ok(GzipIndexer {
            members: Members::new(Tail { source, bytes: Vec::new() })?,
            spacing,
            points: Vec::new(),
            memory: vec![0; WINDOW + DECODE],
            pos: 0,
            end: 0,
            decoded: 0,
            index: None,
            at_end: None,
            failure: None,
        })
    }

    /// Calls a function with the index when the end of the data has been read and all checksums were right. Its error is
    /// an error of reading.
    #[must_use]
    pub fn at_end(self, call: impl FnOnce(&GzipIndex) -> Result<()> + Send + 'static) -> GzipIndexer<R> {
        GzipIndexer { at_end: Some(Box::new(call)), ..self }
    }

    /// Returns the number of compressed bytes that have been decoded.
    pub(super) fn compressed_len(&self) -> u64 {
        self.members.position()
    }

    /// Returns the number of decoded bytes.
    pub(super) fn decoded_len(&self) -> u64 {
        self.decoded
    }

    /// Returns the decoded bytes that have not been read.
    pub(super) fn unread(&self) -> &[u8] {
        &self.memory[self.pos..self.end]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.pos += count;
    }

    /// Decodes until there are unread bytes. Returns false at the end.
    pub(super) fn fill(&mut self) -> Result<bool> {
        if let Some(error) = &self.failure {
            return Err(error.again());
        }
        while self.pos == self.end && self.index.is_none() {
            if let Err(error) = self.decode() {
                self.failure = Some(error.again());
                return Err(error);
            }
        }
        Ok(self.pos < self.end)
    }

    /// Decodes up to the next block. All bytes have been read.
    fn decode(&mut self) -> Result<()> {
        if self.end == self.memory.len() {
            self.memory.copy_within(self.end - WINDOW.., 0);
            (self.pos, self.end) = (WINDOW, WINDOW);
        }
        let Some((written, stop)) = self.members.step(&mut self.memory[self.end..])? else {
            return self.end();
        };
        self.end += written;
        self.decoded += written as u64;
        if let Stop::Block { bits } = stop
            && self.points.last().is_none_or(|last| self.decoded >= last.decoded + u64::from(self.spacing))
        {
            let window = (!self.points.is_empty()).then(|| self.memory[self.end - WINDOW..self.end].into());
            let (compressed, check) = (self.members.position(), self.members.check());
            self.points.push(Point { compressed, decoded: self.decoded, bits, window, check });
        }
        Ok(())
    }

    /// Makes the index.
    fn end(&mut self) -> Result<()> {
        if self.points.is_empty() {
            return Err(Error::new(ErrorKind::DecodeTruncated).with_found("the end of the file without a gzip member"));
        }
        let index = self.index.insert(GzipIndex {
            compressed: self.members.position(),
            decoded: self.decoded,
            spacing: self.spacing,
            end: Some(zlib_rs::crc32::crc32(0, self.members.source().end())),
            points: std::mem::take(&mut self.points),
        });
        self.at_end.take().map_or(Ok(()), |call| call(index))
    }

    /// Returns the index.
    ///
    /// # Errors
    /// The error that ended the data, and [`ErrorKind::DecodeTruncated`] if the data has not been read to its end.
    pub fn finish(mut self) -> Result<GzipIndex> {
        // A caller that knows the length need not read on to see the end.
        let has_more = self.fill()?;
        self.index.filter(|_| !has_more).ok_or_else(|| {
            Error::new(ErrorKind::DecodeTruncated)
                .with_found("gzip data that has not been read to its end")
                .with_expected("all of it, for an index of it")
        })
    }
}

impl<R: Read> Read for GzipIndexer<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if space.is_empty() || !self.fill()? {
            return Ok(0);
        }
        let count = self.unread().read(space)?;
        self.consume(count);
        Ok(count)
    }
}

/// A source whose last bytes are kept.
struct Tail<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R> Tail<R> {
    /// Returns the last [`END`] bytes.
    fn end(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(END as usize)..]
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(space)?;
        if self.bytes.len() + count > 4 * END as usize {
            let excess = self.bytes.len() - self.end().len();
            self.bytes.drain(..excess);
        }
        self.bytes.extend_from_slice(&space[..count]);
        Ok(count)
    }
}
