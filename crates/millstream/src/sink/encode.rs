//! Compression of written bytes, as a layer over another sink.
//!
//! The stream is guaranteed to be complete: after `finish`, all trailers are written and every decoder accepts the
//! stream; an empty stream is also valid. After `flush`, a reader can decode everything accepted so far. A flush makes
//! the output larger, so use it for readers that follow the stream, not after every record.
//!
//! The codecs write into memory, and the compressed bytes are passed on from there. After an error of the sink the
//! compressed bytes are therefore kept and a later call tries again. The sink is called on the caller's thread, even if
//! several threads compress bgzf blocks.

use std::io::{self, Write};

use crate::Format;
use crate::error::{Error, Result};
use crate::sink::Sink;
use crate::sink::WriterEnd;
use blocks::{BlockEncoder, Form};
use millstream_core::internal::Codec as Chosen;

mod blocks;
#[cfg(feature = "xz")]
mod xz;

/// The number of compressed bytes that are collected before they are passed on.
const CHUNK: usize = 64 << 10;

/// Compresses the bytes that it accepts and passes them to the inner sink.
pub(crate) struct EncodeSink {
    codec: Codec,
    /// The compressed bytes. The sink has not accepted the bytes from `start` on.
    out: Vec<u8>,
    start: usize,
    /// Whether the codec has accepted bytes since it was last flushed. Flushing it again would only make the output
    /// larger.
    holds_back: bool,
    /// Whether the codec has ended its stream, so that only the content of `out` remains to be passed on.
    ended: bool,
    sink: Box<dyn Sink>,
}

enum Codec {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Blocks(blocks::BlockEncoder),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    #[cfg(feature = "xz")]
    Xz(xz::XzEncoder),
}

impl Codec {
    /// Compresses all of `bytes` and appends the output that is ready to `out`.
    fn encode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.write_all(bytes)?,
            Codec::Blocks(codec) => codec.write_all(bytes)?,
            Codec::Zstd(codec) => codec.write_all(bytes)?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.encode(bytes, out)?,
        }
        self.collect(out)
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.flush()?,
            Codec::Blocks(codec) => codec.flush()?,
            Codec::Zstd(codec) => codec.flush()?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.flush(out)?,
        }
        self.collect(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.try_finish()?,
            Codec::Blocks(codec) => codec.finish()?,
            Codec::Zstd(codec) => codec.do_finish()?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.finish(out)?,
        }
        self.collect(out)
    }

    fn collect(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => out.append(codec.get_mut()),
            Codec::Blocks(codec) => codec.collect(out)?,
            Codec::Zstd(codec) => out.append(codec.get_mut()),
            #[cfg(feature = "xz")]
            Codec::Xz(_) => {} // It writes to `out` itself.
        }
        Ok(())
    }
}

impl EncodeSink {
    /// Creates a sink that compresses for `sink`. `level` is one of [`Format::levels`], or the default. With a
    /// `block_size`, gzip and zstd consist of independent blocks.
    pub(crate) fn new(
        format: Format,
        level: Option<u32>,
        block_size: Option<usize>,
        sink: Box<dyn Sink>,
    ) -> Result<EncodeSink> {
        let level = level.unwrap_or(format.usual_level());
        let blocks = |form, size| Codec::Blocks(BlockEncoder::new(form, level, size));
        let codec = match (format.codec(), block_size) {
            (Chosen::Bgzf, _) => blocks(Form::Bgzf, 0),
            (Chosen::Gzip, Some(size)) => blocks(Form::Gzip, size),
            (Chosen::Zstd, Some(size)) => blocks(Form::Zstd, size),
            (Chosen::Gzip, None) => {
                Codec::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level)))
            }
            (Chosen::Zstd, None) => {
                let mut codec = zstd::stream::write::Encoder::new(Vec::new(), level as i32)?;
                codec.include_checksum(true)?; // Like the zstd command: readers detect damage.
                Codec::Zstd(codec)
            }
            #[cfg(feature = "xz")]
            (Chosen::Xz, _) => Codec::Xz(xz::XzEncoder::new(level)?),
            #[cfg(not(feature = "xz"))]
            (Chosen::Xz, _) => unreachable!("the builder has refused it"),
        };
        Ok(EncodeSink { codec, out: Vec::new(), start: 0, holds_back: false, ended: false, sink })
    }

    /// Passes all compressed bytes to the sink.
    fn pass_on(&mut self) -> Result<()> {
        while self.start < self.out.len() {
            self.start += self.sink.write(&self.out[self.start..])?;
        }
        self.out.clear();
        self.start = 0;
        Ok(())
    }
}

impl Sink for EncodeSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // Pass on before accepting more bytes: an error after accepting them could not mean that nothing was accepted.
        if self.out.len() >= CHUNK {
            self.pass_on()?;
        }
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        self.holds_back |= !bytes.is_empty();
        self.codec.encode(bytes, &mut self.out).map_err(Error::from_io)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        if self.holds_back {
            self.codec.flush(&mut self.out).map_err(Error::from_io)?;
            self.holds_back = false;
        }
        self.pass_on()?;
        self.sink.flush()
    }

    fn finish(&mut self) -> Result<()> {
        if !self.ended {
            self.codec.finish(&mut self.out).map_err(Error::from_io)?;
            self.ended = true;
        }
        self.pass_on()?;
        self.sink.finish()
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.sink.close(end)
    }

    fn abandon(&mut self) {
        self.sink.abandon();
    }
}
