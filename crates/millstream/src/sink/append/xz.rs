//! The streams of an xz file, from the last to the first (The .xz File Format, version 1.2.1).
//!
//! Each stream ends with an index that lists the sizes of its blocks, and a footer with the size of the index. The
//! index and the footer have a checksum. The content of the blocks is not read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use zlib_rs::crc32::crc32;

use super::Fault;
use crate::os::read_exact_at;

/// The length of a stream's header, and of its footer.
const EDGE: u64 = 12;

/// Streams may be followed by zeros, in multiples of four bytes.
const PADDING: usize = 4096;

/// Fails if the file does not consist of complete streams.
pub(super) fn walk(file: &File, len: u64) -> Result<(), Fault> {
    let mut end = len;
    while end > 0 {
        end = start_of(file, end)?.ok_or_else(|| Fault::Content(format!("a truncated xz stream before byte {end}")))?;
    }
    Ok(())
}

/// Returns the start of the stream that ends here, or `None` if no complete stream ends here.
fn start_of(file: &File, end: u64) -> Result<Option<u64>, Fault> {
    let end = without_padding(file, end)?;
    let Some(footer_at) = end.checked_sub(EDGE) else { return Ok(None) };
    let footer = edge(file, footer_at)?;
    let (number, flags) = (|at: usize| le(&footer[at..at + 4]), &footer[8..10]);
    if footer[10..] != *b"YZ" || number(0) != crc32(0, &footer[4..10]) {
        return Ok(None);
    }
    let index_len = (u64::from(number(4)) + 1) * 4;
    let Some(index_at) = footer_at.checked_sub(index_len) else { return Ok(None) };
    let Some(blocks_len) = index(file, index_at, index_len)? else { return Ok(None) };
    let Some(start) = index_at.checked_sub(blocks_len).and_then(|at| at.checked_sub(EDGE)) else { return Ok(None) };
    let header = edge(file, start)?;
    let is_header =
        header[..6] == *b"\xfd7zXZ\0" && header[6..8] == *flags && le(&header[8..]) == crc32(0, &header[6..8]);
    Ok(is_header.then_some(start))
}

fn edge(file: &File, at: u64) -> io::Result<[u8; EDGE as usize]> {
    let mut bytes = [0; EDGE as usize];
    read_exact_at(file, &mut bytes, at)?;
    Ok(bytes)
}

fn le(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn without_padding(file: &File, mut end: u64) -> io::Result<u64> {
    let mut bytes = [0; PADDING];
    loop {
        let bytes = &mut bytes[..(end / 4 * 4).min(PADDING as u64) as usize];
        read_exact_at(file, bytes, end - bytes.len() as u64)?;
        let zeros = bytes.rchunks_exact(4).take_while(|word| **word == [0; 4]).count() * 4;
        end -= zeros as u64;
        if zeros < bytes.len() || bytes.is_empty() {
            return Ok(end);
        }
    }
}

/// Returns the total length of the blocks that an index lists, or `None` if the index is incomplete.
fn index(mut file: &File, at: u64, len: u64) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(at))?;
    let mut input = BufReader::new(file.take(len));
    let mut index = Index { rest: len - 4, input: &mut input, crc: 0 };
    let Some(total) = index.blocks()? else { return Ok(None) };
    let crc = index.crc;
    let mut expected = [0; 4];
    input.read_exact(&mut expected)?;
    Ok((crc == le(&expected)).then_some(total))
}

/// The unread part of an index, without its checksum.
struct Index<R> {
    input: R,
    rest: u64,
    crc: u32,
}

impl<R: Read> Index<R> {
    fn blocks(&mut self) -> io::Result<Option<u64>> {
        let (Some(0), Some(count)) = (self.byte()?, self.number()?) else { return Ok(None) };
        let mut total = 0u64;
        for _ in 0..count {
            let (Some(len), Some(_)) = (self.number()?, self.number()?) else { return Ok(None) };
            let Some(sum) = len.checked_next_multiple_of(4).and_then(|len| total.checked_add(len)) else {
                return Ok(None);
            };
            total = sum;
        }
        while self.rest > 0 {
            if self.byte()? != Some(0) {
                return Ok(None);
            }
        }
        Ok(Some(total))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        if self.rest == 0 {
            return Ok(None);
        }
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.rest -= 1;
        self.crc = crc32(self.crc, &byte);
        Ok(Some(byte[0]))
    }

    /// Returns a number that is stored with seven bits in each byte, the lowest first. The top bit of the last byte is
    /// not set.
    fn number(&mut self) -> io::Result<Option<u64>> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let Some(byte) = self.byte()? else { return Ok(None) };
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}
