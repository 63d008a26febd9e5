//! The format of index files: that of indexed_gzip, version 1 (<https://github.com/pauldmccarthy/indexed_gzip>), which
//! rapidgzip reads and writes too. All numbers are little-endian.
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

use std::io::{self, Read, Write};

use super::{GzipIndex, Point, WINDOW, Window};
use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8; 5] = b"GZIDX";
const VERSION: u8 = 1;

pub(super) fn write(index: &GzipIndex, mut to: impl Write) -> io::Result<()> {
    to.write_all(MAGIC)?;
    to.write_all(&[VERSION, 0])?;
    to.write_all(&index.compressed.to_le_bytes())?;
    to.write_all(&index.decoded.to_le_bytes())?;
    let count = u32::try_from(index.points.len()).expect("a distance of 32 KiB leaves fewer points in any file");
    for number in [index.spacing, WINDOW as u32, count] {
        to.write_all(&number.to_le_bytes())?;
    }
    for point in &index.points {
        to.write_all(&point.compressed.to_le_bytes())?;
        to.write_all(&point.decoded.to_le_bytes())?;
        to.write_all(&[point.bits, u8::from(point.window.is_some())])?;
    }
    index.points.iter().filter_map(|point| point.window.as_deref()).try_for_each(|window| to.write_all(window))
}

/// Reads an index. Memory is allocated as its bytes arrive, so a damaged file cannot claim more than it has.
pub(super) fn read(from: impl Read) -> Result<GzipIndex> {
    let mut from = Fields { from, offset: 0 };
    let damaged = |offset: u64, found: String, expected: &str| {
        Error::new(ErrorKind::DecodeDamaged).with_found(found).with_expected(expected).with_offset(offset)
    };
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
    let mut index = GzipIndex { compressed, decoded, spacing, points: Vec::new() };
    let mut has_window = Vec::new();
    for number in 0..count {
        let at = from.offset;
        let point = Point { compressed: from.u64()?, decoded: from.u64()?, bits: from.bytes::<1>()?[0], window: None };
        let flag = from.bytes::<1>()?[0];
        let follows = match index.points.last() {
            None => point.decoded == 0,
            Some(last) => point.decoded > last.decoded && point.compressed > last.compressed,
        };
        // The bits are those of the byte before, which therefore exists.
        let fits = point.compressed >= u64::from(point.bits > 0)
            && point.compressed <= compressed
            && point.decoded <= decoded
            && point.bits < 8
            && flag < 2
            && (flag == 0 || point.decoded >= WINDOW as u64);
        if !follows || !fits {
            let found = format!(
                "point {number} at compressed byte {}, decoded byte {}, with {} bits",
                point.compressed, point.decoded, point.bits
            );
            return Err(damaged(at, found, "points in ascending order within the file"));
        }
        index.points.push(point);
        has_window.push(flag == 1);
    }
    if index.points.is_empty() {
        return Err(damaged(31, "no point".into(), "at least one, at the beginning"));
    }
    for (point, has_window) in index.points.iter_mut().zip(has_window) {
        if has_window {
            let mut window: Window = vec![0; WINDOW].into();
            from.fill(&mut window)?;
            point.window = Some(window);
        }
    }
    let end = from.offset;
    match from.from.read(&mut [0]).map_err(Error::from_io)? {
        0 => Ok(index),
        _ => Err(damaged(end, "more bytes after the last window".into(), "the end of the index")),
    }
}

/// The fields of a file, one after the other.
struct Fields<R> {
    from: R,
    offset: u64,
}

impl<R: Read> Fields<R> {
    fn fill(&mut self, space: &mut [u8]) -> Result<()> {
        self.from.read_exact(space).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::DecodeTruncated)
                .with_found("the end of the gzip index")
                .with_expected(format!("{} bytes more", space.len()))
                .with_offset(self.offset),
            _ => Error::from_io(error),
        })?;
        self.offset += space.len() as u64;
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
