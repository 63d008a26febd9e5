//! Decodes zstd with libzstd: any number of frames, one after another.
//!
//! The header of each frame is read first, to check the memory of its window, which is limited, and for a dictionary,
//! which is not supported.

use std::io::{self, BufRead, Read};

use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use super::goal::Passage;
use super::{damaged, truncated};
use crate::Format;
use crate::error::{Error, ErrorKind};
use crate::source::input::Input;
use millstream_core::internal::may_begin;

/// The exponent of the longest window that a frame can have on this platform, which is a power of two.
const WINDOW_LOG_MOST: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

const WINDOW_MOST: u64 = 1 << WINDOW_LOG_MOST;

/// libzstd's error code for a lack of memory (`zstd_errors.h`).
const MEMORY_ALLOCATION: usize = 64usize.wrapping_neg();

/// Decodes zstd.
pub(super) struct ZstdDecoder<R> {
    input: Input<R>,
    context: DCtx<'static>,
    in_frame: bool,
    /// Whether the last call filled its space, so that libzstd may hold more data.
    may_hold: bool,
    /// The maximum memory of a window.
    most: u64,
    passage: Passage,
}

impl<R: Read> ZstdDecoder<R> {
    pub(super) fn new(source: R, most: u64, passage: Passage) -> Result<ZstdDecoder<R>, Error> {
        let mut context = DCtx::try_create().ok_or_else(no_memory)?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MOST))
            .map_err(|code| Error::from_io(explain(code)))?;
        Ok(ZstdDecoder { input: Input::new(source), context, in_frame: false, may_hold: false, most, passage })
    }

    /// Reads the header of the next frame. Returns false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        let head = self.input.at_least(4)?;
        if head.is_empty() {
            self.passage.end()?;
            return Ok(false);
        }
        self.passage.begin();
        if !may_begin(head, Format::Zstd) {
            return Err(damaged("bytes that are not zstd data after the end of zstd data"));
        }
        if head[0] == 0x28 {
            let len = self.input.at_least(5)?.get(4).map_or(5, |&descriptor| Header::len(descriptor));
            let head = self.input.at_least(len)?;
            if head.len() < len {
                return Err(truncated("the end of the file inside the header of a zstd frame"));
            }
            Header::parse(head).check(self.most).map_err(io::Error::other)?;
        }
        self.in_frame = true;
        Ok(true)
    }
}

impl<R: Read> Read for ZstdDecoder<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if space.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            let bytes = if self.may_hold { self.input.unread() } else { self.input.at_least(1)? };
            if bytes.is_empty() && !self.may_hold {
                return Err(truncated("the end of the file inside a zstd frame"));
            }
            let mut from = InBuffer::around(bytes);
            let mut to = OutBuffer::around(&mut *space);
            let left = self.context.decompress_stream(&mut to, &mut from).map_err(explain)?;
            let (consumed, count) = (from.pos(), to.pos());
            self.input.consume(consumed);
            self.passage.advance(consumed, count)?;
            self.in_frame = left > 0;
            self.may_hold = count == space.len() && self.in_frame;
            if count > 0 {
                return Ok(count);
            }
        }
    }
}

/// Converts an error of libzstd.
fn explain(code: usize) -> io::Error {
    match code {
        MEMORY_ALLOCATION => io::Error::other(no_memory()),
        _ => damaged(get_error_name(code)),
    }
}

fn no_memory() -> Error {
    Error::from_io(io::ErrorKind::OutOfMemory.into()).with_found("no memory for the window of a zstd frame")
}

/// The properties of a frame (RFC 8878, section 3.1.1.1).
struct Header {
    window: u64,
    dictionary: u32,
    /// The number of decoded bytes, if the header contains it.
    content: Option<u64>,
    /// Whether four bytes of checksum follow the last block.
    has_checksum: bool,
}

impl Header {
    /// Returns the length of a header with this descriptor, including the magic number.
    fn len(descriptor: u8) -> usize {
        let (window, dictionary, content) = Header::fields(descriptor);
        5 + window + dictionary + content
    }

    /// Returns the lengths of its fields: the window's descriptor, the dictionary's number, the size of the content.
    fn fields(descriptor: u8) -> (usize, usize, usize) {
        let single_segment = descriptor & 0x20 != 0;
        let content = match descriptor >> 6 {
            0 => usize::from(single_segment),
            flag => 1 << flag,
        };
        (usize::from(!single_segment), [0, 1, 2, 4][usize::from(descriptor & 3)], content)
    }

    /// Parses a whole header.
    fn parse(head: &[u8]) -> Header {
        let (window, dictionary, content) = Header::fields(head[4]);
        let number = |at: usize, len: usize| {
            head[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let size = number(5 + window + dictionary, content) + if content == 2 { 256 } else { 0 };
        let window_len = match window {
            // In a single segment, the content is its own window.
            0 => size,
            _ => {
                let base = 1u64 << (10 + (head[5] >> 3));
                base + base / 8 * u64::from(head[5] & 7)
            }
        };
        Header {
            window: window_len,
            dictionary: number(5 + window, dictionary) as u32,
            content: (content > 0).then_some(size),
            has_checksum: head[4] & 4 != 0,
        }
    }

    fn check(&self, most: u64) -> Result<(), Error> {
        if self.dictionary != 0 {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_found(format!("zstd data that needs the dictionary {}", self.dictionary))
                .with_expected("zstd data without a dictionary: decode it with `zstd -d -D DICTIONARY`"));
        }
        let window = || format!("zstd data with a window of {} bytes", self.window);
        if self.window > WINDOW_MOST {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_found(window())
                .with_expected(format!("one of at most {WINDOW_MOST}")));
        }
        if self.window > most {
            return Err(Error::new(ErrorKind::DecodeLimit)
                .with_found(window())
                .with_expected(format!("one of at most {most}")));
        }
        Ok(())
    }
}

/// Returns the length of the frame at the offset `at`, found by the lengths of its blocks (RFC 8878, section 3.1), and the
/// number of its decoded bytes, if the header contains it. Returns `None` if there is no frame. `read` fills a slice from
/// an offset.
pub(crate) fn frame(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
    at: u64,
) -> io::Result<Option<(u64, Option<u64>)>> {
    let mut head = [0; 18];
    read(at, &mut head[..8])?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    match number(0) {
        0x184d_2a50..=0x184d_2a5f => return Ok(Some((8 + u64::from(number(4)), Some(0)))),
        0xfd2f_b528 => {}
        _ => return Ok(None),
    }
    let len = Header::len(head[4]);
    read(at, &mut head[..len])?;
    let header = Header::parse(&head[..len]);
    let mut end = at + len as u64;
    loop {
        let mut block = [0; 4];
        read(end, &mut block[..3])?;
        let block = u32::from_le_bytes(block);
        let (is_last, kind, size) = (block & 1 != 0, block >> 1 & 3, u64::from(block >> 3));
        end += 3 + if kind == 1 { 1 } else { size };
        if is_last {
            break;
        }
    }
    end += if header.has_checksum { 4 } else { 0 };
    Ok(Some((end - at, header.content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers that libzstd writes have the length and the window that it reports.
    #[test]
    fn headers() {
        for (size, log) in [(0, 10), (1, 10), (255, 17), (256, 20), (100_000, 23), (100_000, 27)] {
            for known in [false, true] {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
                encoder.window_log(log).unwrap();
                encoder.include_contentsize(known).unwrap();
                encoder.set_pledged_src_size(known.then_some(size as u64)).unwrap();
                std::io::Write::write_all(&mut encoder, &vec![b'x'; size]).unwrap();
                let encoded = encoder.finish().unwrap();
                let header = Header::parse(&encoded[..Header::len(encoded[4])]);
                assert_eq!((header.dictionary, header.has_checksum), (0, false));
                if !known {
                    assert_eq!(header.window, 1 << log, "{size} bytes, 2^{log}");
                }
                assert!(header.window >= size as u64 || header.window == 1 << log);
            }
        }
    }
}
