//! Seek points of a gzip file: places at which decoding can start.
//!
//! A point is the beginning of a deflate block, with the 32 KiB of decoded bytes before it, to which the block's
//! contents may refer. This is the method of zlib's `zran` example.

mod format;
mod indexer;
mod inflate;
mod members;
#[cfg(feature = "splits")]
mod resume;
mod seek;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use millstream_core::internal::refuse;

use self::members::Check;
#[cfg(feature = "splits")]
pub(crate) use self::resume::{Mark, Resume, Resumed, marks, window};

pub use self::{indexer::GzipIndexer, seek::GzipAt};

/// The number of decoded bytes to which a block may refer (RFC 1951, section 2).
pub(crate) const WINDOW: usize = 1 << 15;

type Window = Box<[u8]>;

/// The number of bytes at the end of the compressed file whose checksum is stored. They contain the last member's
/// checksum, so they differ for nearly any other file.
const END: u64 = 64 << 10;

/// Seek points of a gzip file, made by one pass over it. With an index, decoding can start at each of them.
///
/// The checksums of all members are verified during this pass. The index contains the checksum at each point, so what is
/// decoded between points is verified too, and so is the checksum of a member in the middle of which decoding started.
///
/// Files have the format of indexed_gzip (`.gzidx`), which rapidgzip reads too, followed by these checksums, which both
/// ignore. An index that another program has made has none: then the decoded bytes before each point are compared.
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
    /// The checksum of the end of the compressed file, if the index contains checksums.
    end: Option<u32>,
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
    /// The checksum of the decoded bytes of the member before the block, if the index contains checksums.
    check: Option<Check>,
}

impl GzipIndex {
    /// The smallest distance between points, in decoded bytes.
    pub const MIN_SPACING: u32 = 64 << 10;

    /// Returns a distance between points for a compressed file of this many bytes: 4 MiB, or more for large files, so
    /// that there are about 1,000 times the compression ratio of points, of 32 KiB each.
    pub fn usual_spacing(compressed_len: u64) -> u32 {
        u32::try_from(compressed_len / 1024).unwrap_or(u32::MAX).max(4 << 20)
    }

    /// Returns the usual name of the index of a file: `x.gz.gzidx` for `x.gz`.
    pub fn usual_path(path: impl AsRef<Path>) -> PathBuf {
        let mut name = path.as_ref().as_os_str().to_os_string();
        name.push(".gzidx");
        name.into()
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

fn damaged(found: &str, compressed: u64) -> Error {
    Error::new(ErrorKind::DecodeDamaged).with_found(format!("{found}, at compressed byte {compressed}"))
}

fn build(path: &Path, spacing: u32, mut progress: impl FnMut(u64, u64) -> Result<()>) -> Result<GzipIndex> {
    let file = File::open(path).map_err(|error| Error::new(ErrorKind::OpenFailed).with_io(error))?;
    let mut indexer = GzipIndexer::new(file, spacing)?;
    while indexer.fill()? {
        let count = indexer.unread().len();
        indexer.consume(count);
        progress(indexer.compressed_len(), indexer.decoded_len())?;
    }
    indexer.finish()
}

/// Fills the slice with the bytes at an offset.
type ReadAt<'a> = &'a mut dyn FnMut(&mut [u8], u64) -> io::Result<()>;

/// Returns the checksum of the end of a file of this length.
fn end_checksum(len: u64, read_at: ReadAt<'_>) -> Result<u32> {
    let mut bytes = vec![0; len.min(END) as usize];
    let start = len - bytes.len() as u64;
    read_at(&mut bytes, start).map_err(Error::from_io)?;
    Ok(zlib_rs::crc32::crc32(0, &bytes))
}

/// Fails unless a file of this length is the one for which an index was made, as far as its length and its end show.
fn check_file(len: u64, read_at: ReadAt<'_>, compressed: u64, end: Option<u32>) -> Result<()> {
    refuse(&[
        (
            len != compressed,
            &format_args!("an index for a file of {compressed} bytes"),
            &format_args!("one for this file of {len} bytes; make the index again"),
        ),
        (
            len == compressed && end.map(|_| end_checksum(len, read_at)).transpose()? != end,
            &"an index for a file with another end",
            &"one for this file; make the index again",
        ),
    ])
}
