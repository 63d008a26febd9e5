//! Blocks that are compressed independently, into memory, by several threads: bgzf blocks, members of gzip, and frames of
//! zstd with the size of their content.
//!
//! A bgzf block is a member of gzip with an extra field that holds its size (SAM specification, section 4.1). Every block
//! except the last one before a flush has the maximum content, whatever the sizes of the pieces in which the bytes
//! arrive.

use std::io::{self, Write};

use zlib_rs::{Deflate, DeflateFlush, Status};

use crate::error::{Error, ErrorKind};
use crate::source::decode::BGZF_END;
use crate::workers::{Work, Workers};

/// The maximum content of a bgzf block, which is the same as in htslib. Even if it is stored without compression, it fits
/// into 64 KiB with header and trailer.
const MOST: usize = 0xff00;

/// The length of the header, including the extra field.
const HEADER: usize = 18;

/// The length of the trailer: CRC and size of the content.
const TRAILER: usize = 8;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Bgzf,
    /// A member of gzip.
    Gzip,
    /// A frame of zstd.
    Zstd,
}

/// Compresses into memory; [`collect`](BlockEncoder::collect) takes the finished blocks.
pub(super) struct BlockEncoder {
    workers: Workers<Block>,
    form: Form,
    /// The maximum content of a block.
    most: usize,
    /// Whether there are no blocks yet.
    is_empty: bool,
    /// The content of the next block.
    data: Vec<u8>,
    /// Blocks that are finished and not yet collected.
    done: Vec<u8>,
    /// The memory of blocks that are finished.
    spare: Vec<Block>,
}

#[derive(Default)]
struct Block {
    data: Vec<u8>,
    encoded: Vec<u8>,
    failed: bool,
}

impl BlockEncoder {
    /// Creates an encoder for blocks of `size` bytes of content; those of bgzf have a fixed size.
    pub(super) fn new(form: Form, level: u32, size: usize) -> BlockEncoder {
        let workers = Workers::new(move || match form {
            Form::Bgzf => bgzf(level),
            Form::Gzip => gzip(level),
            Form::Zstd => zstd(level),
        });
        let most = if form == Form::Bgzf { MOST } else { size };
        BlockEncoder { workers, form, most, is_empty: true, data: Vec::new(), done: Vec::new(), spare: Vec::new() }
    }

    /// Compresses all of `bytes`, possibly later.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(self.most - self.data.len());
            self.data.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if self.data.len() == self.most {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Ends the block and waits until all blocks are finished.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.data.is_empty() {
            self.end_block()?;
        }
        while let Some(block) = self.workers.take()? {
            self.keep(block)?;
        }
        Ok(())
    }

    /// Flushes, and adds the empty block that ends a bgzf file. Any other file has at least one block.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_empty && self.data.is_empty() && self.form != Form::Bgzf {
            self.end_block()?;
        }
        self.flush()?;
        if self.form == Form::Bgzf {
            self.done.extend_from_slice(&BGZF_END);
        }
        Ok(())
    }

    /// Moves the finished blocks to the end of `out`.
    pub(super) fn collect(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while let Some(block) = self.workers.take_done()? {
            self.keep(block)?;
        }
        out.append(&mut self.done);
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.is_empty = false;
        if !self.workers.has_capacity()
            && let Some(block) = self.workers.take()?
        {
            self.keep(block)?;
        }
        let mut block = self.spare.pop().unwrap_or_default();
        block.data.clear();
        std::mem::swap(&mut block.data, &mut self.data);
        self.workers.give(block);
        Ok(())
    }

    fn keep(&mut self, block: Block) -> io::Result<()> {
        if block.failed {
            return Err(Error::new(ErrorKind::Internal).with_found("a block that could not be compressed").into());
        }
        self.done.extend_from_slice(&block.encoded);
        self.spare.push(block);
        Ok(())
    }
}

fn bgzf(level: u32) -> Work<Block> {
    let mut deflate = Deflate::new(level as i32, false, 15);
    Box::new(move |block| {
        deflate.reset();
        // Incompressible content is stored.
        block.failed = !encode(&mut deflate, &block.data, &mut block.encoded)
            && !encode(&mut Deflate::new(0, false, 15), &block.data, &mut block.encoded);
    })
}

fn gzip(level: u32) -> Work<Block> {
    Box::new(move |block| {
        block.encoded.clear();
        let mut encoder = flate2::write::GzEncoder::new(&mut block.encoded, flate2::Compression::new(level));
        block.failed = encoder.write_all(&block.data).and_then(|()| encoder.finish()).is_err();
    })
}

fn zstd(level: u32) -> Work<Block> {
    let compressor = || {
        let mut compressor = zstd::bulk::Compressor::new(level as i32)?;
        compressor.include_checksum(true).map(|()| compressor)
    };
    let mut compressor = compressor();
    Box::new(move |block| {
        block.encoded.clear();
        block.encoded.reserve(zstd::zstd_safe::compress_bound(block.data.len()));
        block.failed = !compressor
            .as_mut()
            .is_ok_and(|compressor| compressor.compress_to_buffer(&block.data, &mut block.encoded).is_ok());
    })
}

/// Writes the block. Returns false if it does not fit.
fn encode(deflate: &mut Deflate, data: &[u8], block: &mut Vec<u8>) -> bool {
    block.clear();
    block.extend_from_slice(&BGZF_END[..HEADER - 2]);
    block.resize(1 << 16, 0);
    let body = &mut block[HEADER..(1 << 16) - TRAILER];
    if !matches!(deflate.compress(data, body, DeflateFlush::Finish), Ok(Status::StreamEnd)) {
        return false;
    }
    let end = HEADER + deflate.total_out() as usize;
    block.truncate(end);
    block.extend_from_slice(&zlib_rs::crc32::crc32(0, data).to_le_bytes());
    block.extend_from_slice(&(data.len() as u32).to_le_bytes());
    let size = (block.len() - 1) as u16;
    block[HEADER - 2..HEADER].copy_from_slice(&size.to_le_bytes());
    true
}
