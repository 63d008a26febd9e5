//! Cuts a file into blocks whose bytes go to the copies unread: the kernel moves them.
//!
//! The blocks are those of [`Cutter`](super::block::Cutter). Only the bytes around their ends are read, to find the end of
//! a record there.

use std::ops::Range;
use std::sync::Arc;

use millstream::{Error, ErrorKind, PinnedFile, Result};

/// The number of bytes that are searched at a time.
const PIECE: u64 = 64 << 10;

/// The remaining part of a file.
pub(in crate::run) struct Parts {
    pub(in crate::run) file: Arc<PinnedFile>,
    /// The byte that ends a record.
    terminator: u8,
    /// The maximum size of a block, unless one record is longer.
    size: u64,
    /// The maximum size of a record without its terminator, as far as records are examined.
    longest: u64,
    at: u64,
}

impl Parts {
    pub(in crate::run) fn new(file: PinnedFile, terminator: u8, size: usize, longest: usize) -> Parts {
        Parts { file: Arc::new(file), terminator, size: size as u64, longest: longest as u64, at: 0 }
    }

    /// Returns the next block, or `None` at the end of the file.
    ///
    /// # Errors
    /// Returns [`ErrorKind::RecordTooLong`] if a record is longer than a block and too long, and the errors of reading.
    pub(in crate::run) fn next_block(&mut self) -> Result<Option<Range<u64>>> {
        let begin = self.at;
        self.at = match self.file.size() - begin {
            0 => return Ok(None),
            rest if rest <= self.size => self.file.size(),
            _ => match self.last_end(begin)? {
                Some(end) => end,
                None => self.first_end(begin)?,
            },
        };
        Ok(Some(begin..self.at))
    }

    /// Returns the last end of a record in the block that begins here.
    fn last_end(&self, begin: u64) -> Result<Option<u64>> {
        let mut end = begin + self.size;
        let mut piece = Vec::new();
        while end > begin {
            let start = begin.max(end.saturating_sub(PIECE));
            piece.resize((end - start) as usize, 0);
            self.file.read_exact_at(&mut piece, start)?;
            if let Some(at) = memchr::memrchr(self.terminator, &piece) {
                return Ok(Some(start + at as u64 + 1));
            }
            end = start;
        }
        Ok(None)
    }

    /// Returns the end of the record that begins here and is longer than a block.
    fn first_end(&self, begin: u64) -> Result<u64> {
        let mut start = begin + self.size;
        let mut piece = Vec::new();
        while start < self.file.size() {
            piece.resize((self.file.size() - start).min(PIECE) as usize, 0);
            self.file.read_exact_at(&mut piece, start)?;
            let found = memchr::memchr(self.terminator, &piece);
            let end = start + found.unwrap_or(piece.len()) as u64;
            if end - begin > self.longest {
                return Err(Error::new(ErrorKind::RecordTooLong)
                    .with_name(self.file.name())
                    .with_found(format!("{} bytes without the end of the record", end - begin))
                    .with_expected(format!("at most {}", self.longest))
                    .with_offset(begin));
            }
            if found.is_some() {
                return Ok(end + 1);
            }
            start = end;
        }
        Ok(start)
    }
}

#[cfg(test)]
mod tests {
    use millstream::Pin;
    use proptest::prelude::*;

    use super::*;
    use crate::run::each::block::Cutter;

    fn parts(content: &[u8], size: usize, longest: usize) -> Result<Vec<Range<u64>>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), content)?;
        let Some(file) = PinnedFile::open(file.path(), Pin::Content)? else { return Ok(Vec::new()) };
        let mut parts = Parts::new(file, b'\n', size, longest);
        std::iter::from_fn(|| parts.next_block().transpose()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_blocks_are_those_of_the_cutter(
            lines in prop::collection::vec(0_usize..50, 0..40),
            ends in any::<bool>(),
            size in 1_usize..100,
        ) {
            let mut content = lines.iter().map(|&len| "x".repeat(len)).collect::<Vec<_>>().join("\n");
            if ends {
                content.push('\n');
            }
            let (mut offsets, mut expected, mut cutter) = (vec![0], Vec::new(), Cutter::new(size, true));
            offsets.extend(content.split_inclusive('\n').scan(0, |end, line| { *end += line.len() as u32; Some(*end) }));
            let give = |block: super::super::block::Block| {
                expected.push(block.offset..block.offset + block.len);
                Ok::<(), ()>(())
            };
            cutter.add(content.as_bytes(), &offsets, give).unwrap();
            expected.extend(cutter.rest().map(|block| block.offset..block.offset + block.len));
            prop_assert_eq!(parts(content.as_bytes(), size, 1000).unwrap(), expected);
        }
    }

    #[test]
    fn long_records_are_blocks_or_errors() {
        let long = ["x".repeat(200_000), "y\nz\n".into()].concat();
        assert_eq!(parts(long.as_bytes(), 10, 200_001).unwrap(), [0..200_002, 200_002..200_004]);
        let error = parts(long.as_bytes(), 10, 200_000).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::RecordTooLong, Some(0)));
        let unterminated = parts(&long.as_bytes()[..200_000], 10, 200_000).unwrap();
        assert_eq!((unterminated.len(), unterminated[0].end), (1, 200_000));
    }
}
