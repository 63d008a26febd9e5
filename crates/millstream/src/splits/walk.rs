//! Follows the records of a file from its start, for framings whose records cannot be found from any position.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

use crate::error::{Error, Result};
use crate::frame::{Resume, Step};
use crate::os::cancel::Wait;

use super::Framing;

const BLOCK: usize = 256 << 10;

/// Calls `found` with the offset of each record that begins after complete records, and the number of these. Returns
/// the number of complete records; a record that is incomplete or invalid ends the traversal.
///
/// The memory is one block of 256 KiB. The content of a longer record is skipped if its length is known.
pub(super) fn walk(
    file: &mut File,
    size: u64,
    framing: &Framing,
    wait: &Wait,
    mut found: impl FnMut(u64, u64),
) -> Result<u64> {
    let mut framer = framing.framer()?;
    let mut block = Block { bytes: vec![0; BLOCK], start: 0, end: 0, offset: 0 };
    let (mut records, mut resume, mut ends) = (0, Resume::START, Vec::new());
    loop {
        let input = &block.bytes[block.start..block.end];
        let eof = block.offset + input.len() as u64 >= size;
        if eof && input.is_empty() {
            return Ok(records);
        }
        if framing.is_scanned() && resume == Resume::START && !input.is_empty() {
            ends.clear();
            let scanned = framer.batch(input, eof, usize::MAX, &mut ends);
            for &end in &ends {
                records += 1;
                found(block.offset + u64::from(end), records);
            }
            block.consume(ends.last().map_or(0, |&end| end as usize));
            match scanned {
                Err(_) => return Ok(records),
                Ok(_) if !ends.is_empty() => continue,
                Ok(_) => {}
            }
        }
        let input = &block.bytes[block.start..block.end];
        let step = match input {
            [] => Step::More { resume, need: 0 },
            _ => framer.step(input, resume, eof),
        };
        match step {
            Step::Record { len, .. } => {
                block.consume(len);
                (records, resume) = (records + 1, Resume::START);
                found(block.offset, records);
            }
            Step::Bad(_) => return Ok(records),
            Step::More { need, .. } if need > BLOCK as u64 => {
                let end = block.offset.saturating_add(need);
                // The last byte is read, because it shows whether a BSON document is valid.
                if end > size || !framing.may_end(block.read_byte(file, end - 1)?) {
                    return Ok(records);
                }
                (records, resume) = (records + 1, Resume::START);
                found(end, records);
            }
            Step::More { need, resume: next } => {
                // If the length is unknown, the scanned bytes are not needed again.
                if need == 0 {
                    block.consume(next.scanned());
                    resume = next.dropped();
                }
                wait.check()?;
                if block.fill(file, size)? == 0 {
                    return Ok(records);
                }
            }
        }
    }
}

/// A part of the file. The next byte is `bytes[start]`, at `offset`.
struct Block {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl Block {
    fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Appends bytes, none of them after `size`, and returns their number.
    fn fill(&mut self, file: &mut File, size: u64) -> Result<usize> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let left = size.saturating_sub(self.offset + self.end as u64);
        let space = (BLOCK - self.end).min(usize::try_from(left).unwrap_or(usize::MAX));
        loop {
            match file.read(&mut self.bytes[self.end..self.end + space]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from_io(error)),
            }
        }
    }

    /// Continues after the byte at `offset`, which is after the block, and returns it.
    fn read_byte(&mut self, file: &mut File, offset: u64) -> Result<u8> {
        file.seek(SeekFrom::Start(offset)).map_err(Error::from_io)?;
        let mut byte = [0];
        file.read_exact(&mut byte).map_err(Error::from_io)?;
        (self.start, self.end, self.offset) = (0, 0, offset + 1);
        Ok(byte[0])
    }
}
