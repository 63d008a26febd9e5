//! Decoding from one point of an index to another one, at which the checksum is compared.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use zlib_rs::crc32::crc32;

use super::inflate::Stop;
use super::members::{Check, Entry, Members};
use super::{ReadAt, WINDOW, Window, check_file, damaged, format};
use crate::error::{Error, ErrorKind, Result};

/// The number of bytes per call of the decoder after the goal: the rest of a record.
const REST: usize = 8 << 10;

/// A point, without its window.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    /// The offset of the first whole byte of the block.
    pub(crate) at: u64,
    /// The number of high bits of the byte before that belong to the block.
    pub(crate) bits: u8,
    /// The number of decoded bytes before the block.
    pub(crate) decoded: u64,
    /// The checksum of the decoded bytes of the member before the block.
    pub(crate) check: Check,
    /// Where the index contains the 32 KiB before the block, unless it is the first one of the file.
    pub(crate) window: Option<WindowAt>,
}

/// A place in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowAt {
    pub(crate) offset: u64,
    pub(crate) crc: u32,
}

impl Mark {
    /// Returns the offset of the first byte that is needed.
    pub(crate) fn start(&self) -> u64 {
        self.at - u64::from(self.bits > 0)
    }
}

/// The points of an index without their windows, which are read when they are needed.
pub(crate) struct Marks {
    /// The length of the decoded data.
    pub(crate) decoded: u64,
    pub(crate) marks: Vec<Mark>,
}

/// Reads the points of an index, and checks that it is the index of a file of this length.
pub(crate) fn marks(mut index_file: &File, len: u64, read_at: ReadAt<'_>) -> Result<Marks> {
    let mut from = format::Fields { from: io::BufReader::new(index_file), offset: 0, sum: 0 };
    let (mut index, has_window) = format::table(&mut from)?;
    let (mut offset, sum) = (from.offset, from.sum);
    let mut windows = Vec::new();
    for has_window in has_window {
        windows.push(has_window.then_some(offset));
        offset += if has_window { WINDOW as u64 } else { 0 };
    }
    let index_len = index_file.metadata().map_err(Error::from_io)?.len();
    if index_len < offset {
        return Err(format::truncated(index_len, offset - index_len));
    }
    index_file.seek(SeekFrom::Start(offset)).map_err(Error::from_io)?;
    let mut from = format::Fields { from: io::BufReader::new(index_file), offset, sum };
    let Some(sums) = format::checks(&mut from, &mut index)? else {
        return Err(Error::new(ErrorKind::Unsupported)
            .with_found("a gzip index without checksums, made by another program")
            .with_expected("one with checksums; make the index again with `millstream index`"));
    };
    check_file(len, read_at, index.compressed, index.end)?;
    let points = index.points.iter().zip(windows).zip(sums);
    let marks = points.map(|((point, window), window_crc)| Mark {
        at: point.compressed,
        bits: point.bits,
        decoded: point.decoded,
        check: point.check.unwrap_or_default(),
        window: window.map(|offset| WindowAt { offset, crc: window_crc }),
    });
    Ok(Marks { decoded: index.decoded, marks: marks.collect() })
}

/// Reads the window at this place of an index.
pub(crate) fn window(index_file: &File, at: WindowAt) -> Result<Window> {
    let mut window: Window = vec![0; WINDOW].into();
    crate::os::read_exact_at(index_file, &mut window, at.offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => format::truncated(at.offset, WINDOW as u64),
        _ => Error::from_io(error),
    })?;
    match crc32(0, &window) == at.crc {
        true => Ok(window),
        false => Err(format::damaged(at.offset, "other bytes in a window of the gzip index".into(), format::CHECKED)),
    }
}

/// Where decoding begins, and what it passes.
pub(crate) struct Resume {
    /// The point, with its window, or `None` for the beginning of the file.
    pub(crate) from: Option<(Mark, Window)>,
    /// The offset of the first byte that is delivered, at most 32 KiB before the point.
    pub(crate) decoded: u64,
    /// The next point, or `None` if the file is decoded to its end.
    pub(crate) until: Option<Mark>,
    /// The number of decoded bytes of the file.
    pub(crate) end: u64,
}

/// Delivers decoded bytes.
pub(crate) struct Resumed<R> {
    members: Members<R>,
    /// The bytes before the point, and the number of them that have been delivered.
    before: Window,
    delivered: usize,
    /// The number of decoded bytes of the file so far.
    decoded: u64,
    until: Option<Mark>,
    /// Whether the next point has been passed.
    is_past: bool,
    end: u64,
}

impl<R: Read> Resumed<R> {
    /// `source` is at the [`start`](Mark::start) of the point, or of the file.
    pub(crate) fn new(source: R, resume: Resume) -> Result<Resumed<R>> {
        let Resume { from, decoded, until, end } = resume;
        let Some((mark, before)) = from else {
            let members = Members::new(source)?;
            return Ok(Resumed {
                members,
                before: Window::default(),
                delivered: 0,
                decoded: 0,
                until,
                is_past: false,
                end,
            });
        };
        let entry = Entry { compressed: mark.at, bits: mark.bits, window: &before, check: Some(mark.check) };
        let members = Members::enter(source, &entry)?;
        let delivered = WINDOW.saturating_sub(mark.decoded.saturating_sub(decoded) as usize);
        Ok(Resumed { members, before, delivered, decoded: mark.decoded, until, is_past: false, end })
    }

    fn decode(&mut self, space: &mut [u8]) -> Result<usize> {
        if space.is_empty() {
            return Ok(0);
        }
        if self.delivered < self.before.len() {
            let rest = &self.before[self.delivered..];
            let count = rest.len().min(space.len());
            space[..count].copy_from_slice(&rest[..count]);
            self.delivered += count;
            return Ok(count);
        }
        loop {
            let most = if self.is_past { space.len().min(REST) } else { space.len() };
            let Some((written, stop)) = self.members.step(&mut space[..most])? else {
                return match self.until.is_none() && self.decoded == self.end {
                    true => Ok(0),
                    false => Err(self.other()),
                };
            };
            self.decoded += written as u64;
            self.compare(stop)?;
            if written > 0 {
                return Ok(written);
            }
        }
    }

    /// Compares what was decoded with the next point, if that point has been reached.
    fn compare(&mut self, stop: Stop) -> Result<()> {
        if self.decoded > self.end {
            return Err(self.other());
        }
        let Some(until) = &self.until else { return Ok(()) };
        let found = (self.decoded, self.members.position(), stop, self.members.check());
        match found == (until.decoded, until.at, Stop::Block { bits: until.bits }, Some(until.check)) {
            true => (self.until, self.is_past) = (None, true),
            false if self.decoded > until.decoded => return Err(self.other()),
            false => {}
        }
        Ok(())
    }

    fn other(&self) -> Error {
        damaged("decoded bytes that are not those of the index", self.members.position())
            .with_expected("the file for which the index was made; make the index again")
    }
}

impl<R: Read> Read for Resumed<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.decode(space).map_err(io::Error::from)
    }
}
