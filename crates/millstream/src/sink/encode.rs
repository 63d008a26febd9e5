//! Compression on the way out, around another sink.
//!
//! It promises a complete stream: after `finish` the trailers are written, and every decoder accepts it; an empty
//! stream is also valid. `flush` makes everything accepted decodable by a reader at that point, at some cost in size,
//! so it is for followers, not for every record.
//!
//! The codecs write into memory and the compressed bytes continue from here. So an error of the sink leaves the
//! compressed bytes in place, a later call tries again, and the sink is called on the caller's thread even where bgzf
//! blocks are compressed by several.

use std::io::{self, Write};

use crate::Format;
use crate::error::{Error, Result};
use crate::sink::Sink;
use crate::sink::WriterEnd;
use millstream_core::internal::Codec as Chosen;

mod blocks;
#[cfg(feature = "xz")]
mod xz;

/// How much is compressed before the result is passed on.
const CHUNK: usize = 64 << 10;

/// Compresses what it takes and passes it to the sink inside.
pub(crate) struct EncodeSink {
    codec: Codec,
    /// The compressed bytes from `start` on are not yet taken by the sink.
    out: Vec<u8>,
    start: usize,
    /// The codec has taken bytes since it was last flushed. Flushing it again would only add to the size.
    holds_back: bool,
    /// The codec has ended its stream; the content of `out` remains to be passed on.
    ended: bool,
    sink: Box<dyn Sink>,
}

enum Codec {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Bgzf(blocks::BlockEncoder),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    #[cfg(feature = "xz")]
    Xz(xz::XzEncoder),
}

impl Codec {
    /// Compresses all of `bytes`, appends what is ready to `out`.
    fn encode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.write_all(bytes)?,
            Codec::Bgzf(codec) => codec.write_all(bytes)?,
            Codec::Zstd(codec) => codec.write_all(bytes)?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.encode(bytes, out)?,
        }
        self.collect(out)
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.flush()?,
            Codec::Bgzf(codec) => codec.flush()?,
            Codec::Zstd(codec) => codec.flush()?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.flush(out)?,
        }
        self.collect(out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => codec.try_finish()?,
            Codec::Bgzf(codec) => codec.finish()?,
            Codec::Zstd(codec) => codec.do_finish()?,
            #[cfg(feature = "xz")]
            Codec::Xz(codec) => codec.finish(out)?,
        }
        self.collect(out)
    }

    fn collect(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Codec::Gzip(codec) => out.append(codec.get_mut()),
            Codec::Bgzf(codec) => codec.collect(out)?,
            Codec::Zstd(codec) => out.append(codec.get_mut()),
            #[cfg(feature = "xz")]
            Codec::Xz(_) => {} // it writes to `out` itself
        }
        Ok(())
    }
}

impl EncodeSink {
    /// Compresses for `sink`. `level` is one of [`Format::levels`], or the default.
    pub(crate) fn new(format: Format, level: Option<u32>, sink: Box<dyn Sink>) -> Result<EncodeSink> {
        let level = level.unwrap_or(format.usual_level());
        let codec = match format.codec() {
            Chosen::Gzip => Codec::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level))),
            Chosen::Bgzf => Codec::Bgzf(blocks::BlockEncoder::new(level)),
            Chosen::Zstd => {
                let mut codec = zstd::stream::write::Encoder::new(Vec::new(), level as i32)?;
                codec.include_checksum(true)?; // as the zstd command does: damage is found when it is read
                Codec::Zstd(codec)
            }
            #[cfg(feature = "xz")]
            Chosen::Xz => Codec::Xz(xz::XzEncoder::new(level)?),
            #[cfg(not(feature = "xz"))]
            Chosen::Xz => unreachable!("the builder has refused it"),
        };
        Ok(EncodeSink { codec, out: Vec::new(), start: 0, holds_back: false, ended: false, sink })
    }

    /// Passes all compressed bytes on.
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
        // Before taking more, not after: an error after that could not mean that nothing was taken.
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
