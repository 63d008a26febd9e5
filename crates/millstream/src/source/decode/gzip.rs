//! Decodes gzip: any number of members, one after another. If the source is a file, several threads decode bgzf blocks.
//!
//! A run of bgzf blocks must end with the bgzf end-of-file block, even if a plain member or more blocks follow. Other
//! members are decoded as they arrive, without waiting for their end.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use zlib_rs::{Inflate, InflateFlush, Status};

use super::goal::Passage;
use super::{damaged, truncated};
use crate::Format;
use crate::source::input::Input;
use crate::workers::{Work, Workers};
use millstream_core::internal::may_begin;

/// The empty block that ends every complete bgzf file (SAM specification, section 4.1.2).
pub(crate) const BGZF_END: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A block's header with the extra field that holds its size.
const HEADER: usize = 18;

/// CRC and size of the content.
const TRAILER: usize = 8;

/// The maximum content of one block.
const MOST: usize = 1 << 16;

/// Decodes gzip, including bgzf.
pub(super) struct GzipDecoder<R> {
    stage: Stage<R>,
    workers: Workers<Block>,
    /// The block that is being delivered, and the number of its bytes that have been delivered.
    block: Block,
    at: usize,
    /// The data that follows the blocks in progress.
    then: Option<Then>,
    /// Whether the last block was not bgzf's end-of-file block.
    open: bool,
    /// The memory of blocks that have been delivered.
    spare: Vec<Block>,
    passage: Passage,
}

enum Stage<R> {
    /// Before a member, or between two members.
    Between(Input<R>),
    /// Within a member that is not a BGZF block.
    Member(Box<GzDecoder<Input<R>>>),
    /// The state during a change.
    Changing,
}

enum Then {
    Member,
    End,
    Failure(io::Error),
}

#[derive(Default)]
struct Block {
    /// The whole block, from header to trailer.
    encoded: Vec<u8>,
    data: Vec<u8>,
    damage: Option<&'static str>,
}

impl<R: Read> GzipDecoder<R> {
    /// Creates a decoder. With `parallel`, several threads may decode, because reading ahead does not wait for a
    /// producer.
    pub(super) fn new(source: R, parallel: bool, passage: Passage) -> GzipDecoder<R> {
        GzipDecoder {
            stage: Stage::Between(Input::new(source)),
            workers: if parallel { Workers::new(inflater) } else { Workers::with_at_most(0, inflater) },
            block: Block::default(),
            at: 0,
            then: None,
            open: false,
            spare: Vec::new(),
            passage,
        }
    }

    /// Passes to the workers as many blocks as they accept, and determines what follows.
    fn look_ahead(&mut self) -> io::Result<()> {
        let Stage::Between(input) = &mut self.stage else { return Ok(()) };
        while self.then.is_none() && self.workers.has_capacity() {
            let mut block = self.spare.pop().unwrap_or_default();
            match next(input, &mut block.encoded, self.open) {
                Ok(Next::Block) => {
                    self.open = block.encoded != BGZF_END;
                    self.workers.give(block);
                }
                Ok(Next::Member) => self.then = Some(Then::Member),
                Ok(Next::End) => self.then = Some(Then::End),
                // If the read was cancelled, the next call continues.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) => self.then = Some(Then::Failure(error)),
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for GzipDecoder<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = &self.block.data[self.at..];
            if !rest.is_empty() {
                let count = rest.len().min(space.len());
                space[..count].copy_from_slice(&rest[..count]);
                self.at += count;
                return Ok(count);
            }
            if let Stage::Member(member) = &mut self.stage {
                let count = member.read(space)?;
                self.passage.advance(0, count)?;
                if count > 0 || space.is_empty() {
                    return Ok(count);
                }
                if let Stage::Member(member) = std::mem::replace(&mut self.stage, Stage::Changing) {
                    self.stage = Stage::Between(member.into_inner());
                }
            }
            self.look_ahead()?;
            if let Some(block) = self.workers.take()? {
                self.spare.push(std::mem::replace(&mut self.block, block));
                self.at = 0;
                if let Some(damage) = self.block.damage {
                    self.block.data.clear();
                    self.then = Some(Then::End);
                    return Err(damaged(damage));
                }
                self.passage.begin();
                self.passage.advance(self.block.encoded.len(), self.block.data.len()).inspect_err(|_| {
                    self.block.data.clear();
                    self.then = Some(Then::End);
                })?;
                continue;
            }
            match self.then.take() {
                None => {}
                Some(Then::Member) => {
                    if let Stage::Between(input) = std::mem::replace(&mut self.stage, Stage::Changing) {
                        self.stage = Stage::Member(Box::new(GzDecoder::new(input)));
                    }
                }
                Some(Then::End) => {
                    self.then = Some(Then::End);
                    self.passage.end()?;
                    return Ok(0);
                }
                Some(Then::Failure(error)) => {
                    self.then = Some(Then::End);
                    return Err(error);
                }
            }
        }
    }
}

enum Next {
    /// A bgzf block, which has been read.
    Block,
    /// Any other member, which begins here.
    Member,
    End,
}

/// Determines what follows, and reads it if it is a block. `open` states whether a run of blocks has not ended yet.
fn next<R: Read>(input: &mut Input<R>, block: &mut Vec<u8>, open: bool) -> io::Result<Next> {
    // This does not wait for more bytes of a member without an extra field, which may be shorter than the header of one
    // that has it.
    let short = match input.at_least(4)? {
        [_, _, _, flags, ..] => flags & 4 == 0,
        _ => true,
    };
    let head = if short { input.unread() } else { input.at_least(HEADER)? };
    let is_block = is_block(head);
    if !is_block && open {
        return Err(truncated(match head.is_empty() {
            true => "the end of the file without the bgzf end-of-file block",
            false => "other data after a bgzf block, without the bgzf end-of-file block",
        }));
    }
    if head.is_empty() {
        return Ok(Next::End);
    }
    if !may_begin(head, Format::Gzip) {
        return Err(damaged("bytes that are not gzip data after the end of gzip data"));
    }
    if !is_block {
        return Ok(Next::Member);
    }
    let len = block_len(head);
    let bytes = input.at_least(len)?;
    if bytes.len() < len {
        return Err(truncated("the end of the file inside a bgzf block"));
    }
    block.clear();
    block.extend_from_slice(&bytes[..len]);
    io::BufRead::consume(input, len);
    Ok(Next::Block)
}

/// Returns whether a member with these first bytes is a bgzf block.
fn is_block(head: &[u8]) -> bool {
    head.len() >= HEADER && head[3] == 4 && head[12..16] == *b"BC\x02\0"
}

/// Returns the length of the block with this header.
fn block_len(head: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([head[16], head[17]])) + 1
}

/// Returns the length of the bgzf block at the offset `at`, and the number of its decoded bytes, or `None` if there is no
/// block. `read` fills a slice from an offset.
#[cfg(feature = "splits")]
pub(crate) fn block(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
    at: u64,
) -> io::Result<Option<(u64, Option<u64>)>> {
    let mut head = [0; HEADER];
    read(at, &mut head)?;
    let len = block_len(&head);
    if !(may_begin(&head, Format::Gzip) && is_block(&head) && len >= HEADER + TRAILER) {
        return Ok(None);
    }
    let mut content = [0; 4];
    read(at + len as u64 - 4, &mut content)?;
    Ok(Some((len as u64, Some(u64::from(u32::from_le_bytes(content))))))
}

/// Decodes blocks.
fn inflater() -> Work<Block> {
    let mut inflate = Inflate::new(false, 15);
    Box::new(move |block| block.damage = inflate_block(&mut inflate, &block.encoded, &mut block.data).err())
}

fn inflate_block(inflate: &mut Inflate, encoded: &[u8], data: &mut Vec<u8>) -> Result<(), &'static str> {
    data.clear();
    if encoded.len() < HEADER {
        return Err("a bgzf block that is shorter than its header");
    }
    let body = 12 + usize::from(u16::from_le_bytes([encoded[10], encoded[11]]));
    let Some(end) = encoded.len().checked_sub(TRAILER).filter(|&end| body <= end) else {
        return Err("a bgzf block that is shorter than its header");
    };
    let number = |at: usize| u32::from_le_bytes([encoded[at], encoded[at + 1], encoded[at + 2], encoded[at + 3]]);
    let (crc, len) = (number(end), number(end + 4) as usize);
    if len > MOST {
        return Err("a bgzf block that would hold more than 64 KiB");
    }
    data.resize(len, 0);
    inflate.reset(false);
    let status = inflate.decompress(&encoded[body..end], data, InflateFlush::Finish);
    let whole = matches!(status, Ok(Status::StreamEnd))
        && inflate.total_out() == len as u64
        && inflate.total_in() == (end - body) as u64;
    match whole {
        false => Err("a bgzf block that is not deflate data"),
        true if zlib_rs::crc32::crc32(0, data) != crc => Err("a bgzf block with a wrong checksum"),
        true => Ok(()),
    }
}
