//! Seek points of a gzip file: places at which decoding can start.
//!
//! A point is the beginning of a deflate block, with the 32 KiB of decoded bytes before it, to which the block's
//! contents may refer. This is the method of zlib's `zran` example.

mod format;
mod inflate;
mod seek;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use self::inflate::{BlockInflate, Header, Step, Stop};
use crate::error::{Error, ErrorKind, Result};

pub use self::seek::GzipAt;

/// The number of decoded bytes to which a block may refer (RFC 1951, section 2).
const WINDOW: usize = 1 << 15;

type Window = Box<[u8]>;

/// The number of compressed bytes per read.
const READ: usize = 256 << 10;

/// The number of decoded bytes per call of the decoder, in addition to the window.
const DECODE: usize = 512 << 10;

/// Seek points of a gzip file, made by one pass over it. With an index, decoding can start at each of them.
///
/// The checksums of all members are verified during this pass. Reading that starts in the middle of a member cannot
/// verify that member's checksum; instead, it compares what it decodes with each point that it passes.
///
/// Files have the format of indexed_gzip (`.gzidx`), which rapidgzip reads too.
///
/// ```
/// use std::io::{Read, Write};
/// use millstream::{GzipIndex, Writer};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("x.gz");
/// let mut writer = Writer::path(&path)?;
/// for number in 0..100_000 {
///     writeln!(writer, "{number}").map_err(millstream::Error::from_io)?;
/// }
/// writer.close()?;
///
/// let index = GzipIndex::build(&path, GzipIndex::MIN_SPACING, |_, _| Ok(()))?;
/// assert_eq!(index.decoded_len(), 588_890);
/// let mut line = [0; 6];
/// index.open(&path, 588_884)?.read_exact(&mut line).map_err(millstream::Error::from_io)?;
/// assert_eq!(&line, b"99999\n");
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GzipIndex {
    /// The length of the compressed file.
    compressed: u64,
    /// The length of the decoded data.
    decoded: u64,
    spacing: u32,
    /// At least one; the first one is at the beginning.
    points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    /// The offset of the first whole byte of the block.
    compressed: u64,
    /// The number of decoded bytes before the block.
    decoded: u64,
    /// The number of high bits of the byte before that belong to the block.
    bits: u8,
    /// The decoded bytes before the block, unless it is the first one of the file.
    window: Option<Window>,
}

impl GzipIndex {
    /// The smallest distance between points, in decoded bytes.
    pub const MIN_SPACING: u32 = 64 << 10;

    /// Returns a distance between points for a compressed file of this many bytes: 4 MiB, or more for large files, so
    /// that there are about 1,000 times the compression ratio of points, of 32 KiB each.
    pub fn usual_spacing(compressed_len: u64) -> u32 {
        u32::try_from(compressed_len / 1024).unwrap_or(u32::MAX).max(4 << 20)
    }

    /// Decodes a gzip file (any number of members) and notes a point every `spacing` decoded bytes, at the beginning of
    /// the next block. `progress` is called with the numbers of compressed and of decoded bytes so far;
    /// its error ends the pass.
    ///
    /// # Errors
    /// Those of reading the file: it cannot be opened, is damaged or ends too early. [`ErrorKind::InvalidOption`] if
    /// `spacing` is below [`MIN_SPACING`](Self::MIN_SPACING).
    pub fn build(
        path: impl AsRef<Path>,
        spacing: u32,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<GzipIndex> {
        let path = path.as_ref();
        build(path, spacing, progress).map_err(|error| error.with_name(path.display().to_string()))
    }

    /// Reads an index from a file.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`]; [`ErrorKind::DecodeTruncated`] or [`ErrorKind::DecodeDamaged`] if the file is not a
    /// complete index; [`ErrorKind::Unsupported`] for another version of the format.
    pub fn load(path: impl AsRef<Path>) -> Result<GzipIndex> {
        let path = path.as_ref();
        File::open(path)
            .map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error))
            .and_then(|file| format::read(io::BufReader::new(file)))
            .map_err(|error| error.with_name(path.display().to_string()))
    }

    /// Writes the index in its file format.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        format::write(self, to)
    }

    /// Opens the gzip file and returns a reader of its decoded bytes from this offset on. Only the bytes from the last
    /// point before it are decoded.
    ///
    /// # Errors
    /// [`ErrorKind::OpenFailed`]; [`ErrorKind::InvalidOption`] if the index is for a file of another length, or if
    /// `offset` is after the end. While reading: [`ErrorKind::DecodeDamaged`] if the decoded bytes are not those for
    /// which the index was made.
    pub fn open(&self, path: impl AsRef<Path>, offset: u64) -> Result<GzipAt<'_>> {
        let path = path.as_ref();
        GzipAt::open(self, path, offset).map_err(|error| error.with_name(path.display().to_string()))
    }

    /// Returns the length of the compressed file, in bytes.
    pub fn compressed_len(&self) -> u64 {
        self.compressed
    }

    /// Returns the length of the decoded data, in bytes.
    pub fn decoded_len(&self) -> u64 {
        self.decoded
    }

    /// Returns the decoded offsets of the points, in ascending order. The first one is 0.
    pub fn offsets(&self) -> impl ExactSizeIterator<Item = u64> {
        self.points.iter().map(|point| point.decoded)
    }
}

/// The compressed bytes of a file.
struct Input {
    file: File,
    memory: Vec<u8>,
    pos: usize,
    end: usize,
    /// The offset in the file after `end`.
    offset: u64,
}

impl Input {
    /// Starts at the file's position, which is `offset`.
    fn new(file: File, offset: u64) -> Input {
        Input { file, memory: vec![0; READ], pos: 0, end: 0, offset }
    }

    /// Returns the bytes that have been read and not used. There are none only at the end of the file.
    fn fill(&mut self) -> Result<&[u8]> {
        if self.pos == self.end {
            (self.pos, self.end) = (0, 0);
            self.end = loop {
                match self.file.read(&mut self.memory) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result.map_err(Error::from_io)?,
                }
            };
            self.offset += self.end as u64;
        }
        Ok(&self.memory[self.pos..self.end])
    }

    /// Uses this many bytes.
    fn consume(&mut self, count: usize) {
        self.pos += count;
    }

    /// Returns the offset of the next byte.
    fn position(&self) -> u64 {
        self.offset - (self.end - self.pos) as u64
    }
}

/// Decodes the bytes of any number of members, from a block or a member on.
struct Members {
    input: Input,
    inflate: BlockInflate,
    /// The number of bytes of a trailer that are not checked because decoding started after its member's beginning.
    trailer: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a member that was decoded from its beginning, or before one.
    Checked,
    /// In a member that was decoded from one of its blocks on.
    Raw,
    /// Between two members, or at the end.
    Between,
    Ended,
}

/// The number of bytes after the last block of a member: a checksum and a length.
const TRAILER: usize = 8;

impl Members {
    fn new(input: Input, header: Header) -> Result<Members> {
        let no_memory = || Error::from_io(crate::os::out_of_memory());
        let inflate = BlockInflate::new(header).ok_or_else(no_memory)?;
        let state = match header {
            Header::Gzip => State::Checked,
            Header::Raw => State::Raw,
        };
        Ok(Members { input, inflate, trailer: 0, state })
    }

    /// Decodes into `space`, which is not empty, until it is full or until a block begins, whose bits are returned.
    /// Returns `None` at the end of the last member.
    fn step(&mut self, space: &mut [u8]) -> Result<Option<(usize, Stop)>> {
        loop {
            match self.state {
                State::Ended => return Ok(None),
                State::Between => {
                    self.next_member()?;
                    continue;
                }
                State::Checked | State::Raw => {}
            }
            let input = self.input.fill()?;
            let at_end = input.is_empty();
            let Some(Step { read, written, stop }) = self.inflate.decode(input, space) else {
                return Err(damaged("data that is not gzip data, or a wrong checksum", self.input.position()));
            };
            self.input.consume(read);
            if stop == Stop::End {
                self.trailer = if self.state == State::Raw { TRAILER } else { 0 };
                self.state = State::Between;
            } else if at_end && read == 0 && written == 0 {
                return Err(Error::new(ErrorKind::DecodeTruncated).with_found(format!(
                    "the end of the file inside a gzip member, at compressed byte {}",
                    self.input.position()
                )));
            }
            if written > 0 || matches!(stop, Stop::Block { .. }) {
                return Ok(Some((written, stop)));
            }
        }
    }

    /// Skips the trailer that the decoder has not read, and prepares for the next member, if there is one.
    fn next_member(&mut self) -> Result<()> {
        while self.trailer > 0 {
            let available = self.input.fill()?.len();
            if available == 0 {
                return Err(Error::new(ErrorKind::DecodeTruncated).with_found(format!(
                    "the end of the file inside the trailer of a gzip member, at compressed byte {}",
                    self.input.position()
                )));
            }
            let count = available.min(self.trailer);
            self.input.consume(count);
            self.trailer -= count;
        }
        match self.input.fill()?.first() {
            None => self.state = State::Ended,
            // The decoder checks the rest of the header.
            Some(0x1f) => {
                self.inflate.reset(Header::Gzip);
                self.state = State::Checked;
            }
            Some(_) => {
                let found = "bytes that are not gzip data after the end of gzip data";
                return Err(damaged(found, self.input.position()));
            }
        }
        Ok(())
    }
}

fn damaged(found: &str, compressed: u64) -> Error {
    Error::new(ErrorKind::DecodeDamaged).with_found(format!("{found}, at compressed byte {compressed}"))
}

fn build(path: &Path, spacing: u32, mut progress: impl FnMut(u64, u64) -> Result<()>) -> Result<GzipIndex> {
    millstream_core::internal::refuse(&[(
        spacing < GzipIndex::MIN_SPACING,
        &format_args!("{spacing} bytes between points"),
        &format_args!("at least {}", GzipIndex::MIN_SPACING),
    )])?;
    let file = File::open(path).map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error))?;
    let mut members = Members::new(Input::new(file, 0), Header::Gzip)?;
    let mut points: Vec<Point> = Vec::new();
    // The decoded bytes: `memory[..at]`, of which the last 32 KiB are kept.
    let (mut memory, mut at, mut decoded) = (vec![0; WINDOW + DECODE], 0, 0_u64);
    while let Some((written, stop)) = members.step(&mut memory[at..])? {
        at += written;
        decoded += written as u64;
        if let Stop::Block { bits } = stop
            && points.last().is_none_or(|last| decoded >= last.decoded + u64::from(spacing))
        {
            let window = (!points.is_empty()).then(|| memory[at - WINDOW..at].into());
            points.push(Point { compressed: members.input.position(), decoded, bits, window });
        }
        if at == memory.len() {
            memory.copy_within(at - WINDOW.., 0);
            at = WINDOW;
            progress(members.input.position(), decoded)?;
        }
    }
    let compressed = members.input.position();
    if points.is_empty() {
        // The only block is the last one, so decoding never stopped.
        return Err(Error::new(ErrorKind::DecodeTruncated).with_found("the end of the file without a gzip member"));
    }
    Ok(GzipIndex { compressed, decoded, spacing, points })
}
