//! The format of index files: that of indexed_gzip, version 1 (<https://github.com/pauldmccarthy/indexed_gzip>), which
//! rapidgzip reads and writes too, with checksums after it. All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 5 | `GZIDX` |
//! | 1 | version: 1 |
//! | 1 | flags: 0 |
//! | 8 | length of the compressed file |
//! | 8 | length of the decoded data |
//! | 4 | distance of the points, in decoded bytes |
//! | 4 | length of a window: 32,768 |
//! | 4 | number of points |
//! | 18 for each point | offset of its first whole byte (8), decoded offset (8), number of bits of the byte before that belong to it (1), whether it has a window (1) |
//! | 32,768 for each point that has one | its window: the decoded bytes before it |
//!
//! Other programs do not read what follows, and do not write it:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `MSCHECK1` |
//! | 4 | CRC-32 of the last 64 KiB of the compressed file |
//! | 12 for each point | CRC-32 (4) and length modulo 2^32 (4) of the member's decoded bytes before the point, CRC-32 of its window (4; 0 without one) |
//! | 4 | CRC-32 of everything before, except the windows |

use std::io::{self, Read, Write};

use zlib_rs::crc32::crc32;

use super::members::Check;
use super::{GzipIndex, Point, WINDOW, Window};
use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8; 5] = b"GZIDX";
const VERSION: u8 = 1;

/// The beginning of the checksums. Its last byte is their version.
const CHECKS: &[u8; 8] = b"MSCHECK1";

pub(super) fn write(index: &GzipIndex, mut to: impl Write) -> io::Result<()> {
    let mut table = Vec::new();
    table.extend_from_slice(MAGIC);
    table.extend_from_slice(&[VERSION, 0]);
    table.extend_from_slice(&index.compressed.to_le_bytes());
    table.extend_from_slice(&index.decoded.to_le_bytes());
    let count = u32::try_from(index.points.len()).expect("a distance of 32 KiB leaves fewer points in any file");
    for number in [index.spacing, WINDOW as u32, count] {
        table.extend_from_slice(&number.to_le_bytes());
    }
    for point in &index.points {
        table.extend_from_slice(&point.compressed.to_le_bytes());
        table.extend_from_slice(&point.decoded.to_le_bytes());
        table.extend_from_slice(&[point.bits, u8::from(point.window.is_some())]);
    }
    to.write_all(&table)?;
    index.points.iter().filter_map(|point| point.window.as_deref()).try_for_each(|window| to.write_all(window))?;
    let Some(end) = index.end else { return Ok(()) };
    let mut checks = CHECKS.to_vec();
    checks.extend_from_slice(&end.to_le_bytes());
    for point in &index.points {
        let Check { crc, len } = point.check.unwrap_or_default();
        for number in [crc, len, crc32(0, point.window.as_deref().unwrap_or_default())] {
            checks.extend_from_slice(&number.to_le_bytes());
        }
    }
    let sum = crc32(crc32(0, &table), &checks);
    checks.extend_from_slice(&sum.to_le_bytes());
    to.write_all(&checks)
}

/// Reads an index. Memory is allocated as its bytes arrive, so a damaged file cannot claim more than it has.
pub(super) fn read(from: impl Read) -> Result<GzipIndex> {
    let mut from = Fields { from, offset: 0, sum: 0 };
    let (mut index, has_window) = table(&mut from)?;
    let sum = from.sum;
    for (point, has_window) in index.points.iter_mut().zip(&has_window) {
        if *has_window {
            let mut window: Window = vec![0; WINDOW].into();
            from.fill(&mut window)?;
            point.window = Some(window);
        }
    }
    from.sum = sum;
    let offset = from.offset;
    let windows = checks(&mut from, &mut index)?;
    for (number, (point, expected)) in index.points.iter().zip(windows.unwrap_or_default()).enumerate() {
        if crc32(0, point.window.as_deref().unwrap_or_default()) != expected {
            return Err(damaged(offset, format!("other bytes in the window of point {number}"), CHECKED));
        }
    }
    Ok(index)
}

pub(super) const CHECKED: &str = "bytes that match its checksum; make the index again";

pub(super) fn damaged(offset: u64, found: String, expected: &str) -> Error {
    Error::new(ErrorKind::DecodeDamaged).with_found(found).with_expected(expected).with_offset(offset)
}

pub(super) fn truncated(offset: u64, missing: u64) -> Error {
    Error::new(ErrorKind::DecodeTruncated)
        .with_found("the end of the gzip index")
        .with_expected(format!("{missing} bytes more; make the index again"))
        .with_offset(offset)
}

/// Reads everything before the windows: the points without windows, and whether each has one.
pub(super) fn table(from: &mut Fields<impl Read>) -> Result<(GzipIndex, Vec<bool>)> {
    let magic = from.bytes::<5>()?;
    if magic != *MAGIC {
        return Err(damaged(0, format!("data that begins with {magic:02x?}"), "a gzip index, which begins with GZIDX"));
    }
    let [version, _] = from.bytes::<2>()?;
    if version != VERSION {
        return Err(Error::new(ErrorKind::Unsupported)
            .with_found(format!("version {version} of the gzip index"))
            .with_expected(format!("version {VERSION}; make the index again")));
    }
    let compressed = from.u64()?;
    let decoded = from.u64()?;
    let spacing = from.u32()?;
    let window = from.u32()?;
    if window as usize != WINDOW {
        return Err(damaged(27, format!("windows of {window} bytes"), "32768 bytes"));
    }
    let count = from.u32()?;
    let mut index = GzipIndex { compressed, decoded, spacing, end: None, points: Vec::new() };
    let mut has_window = Vec::new();
    for number in 0..count {
        let at = from.offset;
        let (compressed, decoded) = (from.u64()?, from.u64()?);
        let [bits, flag] = from.bytes::<2>()?;
        let point = Point { compressed, decoded, bits, window: None, check: None };
        let follows = match index.points.last() {
            None => point.decoded == 0,
            Some(last) => point.decoded > last.decoded && point.compressed > last.compressed,
        };
        // The bits are those of the byte before, which therefore exists.
        let fits = point.compressed >= u64::from(point.bits > 0)
            && point.compressed <= index.compressed
            && point.decoded <= index.decoded
            && point.bits < 8
            && flag < 2
            && (flag == 0 || point.decoded >= WINDOW as u64);
        if !follows || !fits {
            let found = format!(
                "point {number} at compressed byte {}, decoded byte {}, with {} bits",
                point.compressed, point.decoded, point.bits
            );
            return Err(damaged(at, found, "points in ascending order within the file; make the index again"));
        }
        index.points.push(point);
        has_window.push(flag == 1);
    }
    if index.points.is_empty() {
        return Err(damaged(31, "no point".into(), "at least one, at the beginning"));
    }
    Ok((index, has_window))
}

/// Reads everything after the windows. Returns the checksums of the windows, or `None` if there is nothing.
pub(super) fn checks(from: &mut Fields<impl Read>, index: &mut GzipIndex) -> Result<Option<Vec<u32>>> {
    let begin = from.offset;
    let mut first = [0];
    loop {
        match from.from.read(&mut first) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_io(error)),
        }
    }
    (from.offset, from.sum) = (begin + 1, crc32(from.sum, &first));
    if first[0] != CHECKS[0] || from.bytes::<7>()? != CHECKS[1..] {
        return Err(damaged(begin, "other bytes after the last window".into(), "checksums, or the end of the index"));
    }
    index.end = Some(from.u32()?);
    let mut windows = Vec::new();
    for point in &mut index.points {
        point.check = Some(Check { crc: from.u32()?, len: from.u32()? });
        windows.push(from.u32()?);
    }
    let (sum, offset) = (from.sum, from.offset);
    if from.u32()? != sum {
        return Err(damaged(offset, "a gzip index with a wrong checksum".into(), CHECKED));
    }
    match from.from.read(&mut [0]).map_err(Error::from_io)? {
        0 => Ok(Some(windows)),
        _ => Err(damaged(from.offset, "more bytes after the checksums".into(), "the end of the index")),
    }
}

/// The fields of a file, one after the other.
pub(super) struct Fields<R> {
    pub(super) from: R,
    pub(super) offset: u64,
    /// The checksum of the bytes read so far.
    pub(super) sum: u32,
}

impl<R: Read> Fields<R> {
    fn fill(&mut self, space: &mut [u8]) -> Result<()> {
        self.from.read_exact(space).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => truncated(self.offset, space.len() as u64),
            _ => Error::from_io(error),
        })?;
        self.offset += space.len() as u64;
        self.sum = crc32(self.sum, space);
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }
}
