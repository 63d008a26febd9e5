//! Compressed sources, detected by their first bytes and decoded in process.
//!
//! gzip (RFC 1952, any number of members) and bgzf (SAM specification, section 4.1) are decoded with zlib-rs, bgzf
//! files with one worker per core; zstd (RFC 8878, any number of frames) is decoded with libzstd, and xz (any number of
//! streams) with liblzma. Decoding is done in process, because a pipe from `zcat` costs four times as much as the
//! decoding itself.
//!
//! Valid data is delivered first. After it, damage is reported as [`DecodeDamaged`](ErrorKind::DecodeDamaged) and a
//! missing end as [`DecodeTruncated`](ErrorKind::DecodeTruncated). A run of bgzf blocks without its end-of-file block
//! is truncated. A format that is detected but cannot be decoded is [`Unsupported`](ErrorKind::Unsupported). A file
//! must begin as its name indicates, so that compressed bytes are never mistaken for data.

mod goal;
mod gzip;
#[cfg(feature = "xz")]
mod xz;
mod zstd;

use crate::os::BorrowedFd;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::goal::Passage;
use self::gzip::GzipDecoder;
use self::zstd::ZstdDecoder;
use super::{ByteSource, Nature, Resume};
use crate::Format;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::features;
use crate::os::cancel::Wait;
use crate::source::DecodeLimit;
#[cfg(feature = "splits")]
use crate::source::gzip_index::Resumed;
use millstream_core::internal::{Codec, Guess, Known, SNIFF, guess, may_begin};

#[cfg(feature = "splits")]
pub(crate) use self::goal::Goal;
pub(crate) use self::gzip::BGZF_END;
#[cfg(feature = "splits")]
pub(crate) use self::gzip::block as bgzf_block;
pub(crate) use self::zstd::frame as zstd_frame;

/// A high ratio is not considered an attack if the output is at most this large.
const RATIO_FREE: u64 = 1 << 20;

/// A source that is decoded if it begins with the first bytes of a compressed format.
pub(crate) struct DecodeSource {
    state: State,
    /// The format that the name indicates.
    promised: Option<Format>,
    /// Where decoding begins in a plain gzip file with an index.
    #[cfg(feature = "splits")]
    resume: Option<Resume>,
    /// The place that decoding must pass.
    passage: Passage,
    limit: DecodeLimit,
    /// The memory limit for the window of a zstd frame or for the decoder of an xz block.
    memory: u64,
    /// The number of bytes delivered after decoding.
    decoded: u64,
    /// The number of bytes that the source has delivered, for the ratio.
    compressed: Arc<AtomicU64>,
    format: Arc<OnceLock<Format>>,
}

enum State {
    /// `first` contains the bytes that were read for detection.
    Undecided {
        source: Box<dyn ByteSource>,
        first: Vec<u8>,
    },
    /// `first` contains bytes that have not been delivered yet.
    Plain {
        source: Box<dyn ByteSource>,
        first: Vec<u8>,
    },
    Decoding(Decoding),
    /// A placeholder while the state changes.
    Changing,
}

/// The source under a decoder. The decoder reads the source; this module checks whether the source succeeded.
type Inner = Arc<Mutex<Box<dyn ByteSource>>>;

struct Decoding {
    decoder: Box<dyn Read + Send>,
    inner: Inner,
    nature: Nature,
    interruptible: bool,
    /// The conditions that end a wait for compressed bytes, as passed to the last read.
    wait: Arc<Mutex<Wait>>,
    /// Set when the end of the compressed bytes has been reached.
    ended: Arc<AtomicBool>,
}

impl DecodeSource {
    /// Creates a source that detects the format from the first bytes of `source`. `path` is a name that may indicate a
    /// format; `compressed` counts the bytes that `source` has delivered; `format` is set when a format is detected.
    pub(crate) fn new(
        source: Box<dyn ByteSource>,
        path: Option<&Path>,
        limit: DecodeLimit,
        memory: u64,
        compressed: Arc<AtomicU64>,
        format: Arc<OnceLock<Format>>,
    ) -> DecodeSource {
        DecodeSource {
            state: State::Undecided { source, first: Vec::new() },
            promised: path.and_then(Known::of_name).and_then(|known| known.decoded().ok()),
            #[cfg(feature = "splits")]
            resume: None,
            passage: Passage::default(),
            limit,
            memory,
            decoded: 0,
            compressed,
            format,
        }
    }

    #[cfg(not(feature = "splits"))]
    pub(crate) fn resuming(self, _: Option<Resume>) -> DecodeSource {
        self
    }

    /// Decodes a part of a file, at the beginning of which `source` is.
    #[cfg(feature = "splits")]
    pub(crate) fn resuming(self, resume: Option<Resume>) -> DecodeSource {
        match resume {
            Some(Resume::Piece(goal)) => DecodeSource { passage: Passage::new(Some(goal)), ..self },
            resume => DecodeSource { resume, ..self },
        }
    }

    /// Reads until the format of the stream is known. Returns the result of a read that is complete with that: usually
    /// the first bytes are not compressed, and then they are in `space`.
    fn decide(&mut self, space: &mut [u8], wait: &Wait) -> Result<Option<usize>> {
        let State::Undecided { source, first } = &mut self.state else { return Ok(None) };
        #[cfg(feature = "splits")]
        if let Some(Resume::Seek(resume)) = self.resume.take() {
            let (source, first) = self.decided();
            let _ = self.format.set(Format::Gzip);
            let decoder = |bytes| Ok(Box::new(Resumed::new(bytes, resume)?) as Box<dyn Read + Send>);
            self.state = State::Decoding(Decoding::start(source, first, wait, decoder)?);
            return Ok(None);
        }
        if self.promised.is_none() && first.is_empty() {
            let count = source.read(space, wait)?;
            if count == 0 || guess(&space[..count.min(SNIFF)], false) == Guess::Plain {
                let (source, first) = self.decided();
                self.state = State::Plain { source, first };
                return Ok(Some(count));
            }
            first.extend_from_slice(&space[..count]);
        }
        let mut eof = false;
        let said = loop {
            match guess(&first[..first.len().min(SNIFF)], eof) {
                Guess::Open if !eof && first.len() < SNIFF => {}
                said => break said,
            }
            let mut chunk = [0; SNIFF];
            let count = source.read(&mut chunk[..SNIFF - first.len()], wait)?;
            first.extend_from_slice(&chunk[..count]);
            eof = count == 0;
        };
        let format = match said {
            Guess::Is(known) => {
                let format = known.decoded()?;
                features::require(format)?;
                Some(format)
            }
            Guess::Plain | Guess::Open => None,
        };
        if let Some(promised) = self.promised
            && !format.is_some_and(|format| promised.reads(format))
        {
            return Err(broken_promise(promised, format, first, eof));
        }
        let (source, first) = self.decided();
        self.state = match format {
            Some(format) => {
                let _ = self.format.set(format);
                let (memory, passage) = (self.memory, std::mem::take(&mut self.passage));
                State::Decoding(Decoding::start(source, first, wait, |bytes| decoder(format, bytes, memory, passage))?)
            }
            None => State::Plain { source, first },
        };
        Ok(None)
    }

    /// Returns what is kept while the format is not known. It is known now, and the next state is to be set.
    fn decided(&mut self) -> (Box<dyn ByteSource>, Vec<u8>) {
        match std::mem::replace(&mut self.state, State::Changing) {
            State::Undecided { source, first } => (source, first),
            _ => unreachable!("the format was not known"),
        }
    }

    fn check_limit(&self) -> Result<()> {
        let compressed = self.compressed.load(Ordering::Relaxed).max(1);
        let over = |limit: String| {
            Err(Error::new(ErrorKind::DecodeLimit)
                .with_found(format!("{} bytes from {compressed} compressed ones", self.decoded))
                .with_expected(limit))
        };
        match (self.limit.bytes, self.limit.ratio) {
            (Some(bytes), _) if self.decoded > bytes => over(format!("at most {bytes} bytes")),
            (_, Some(ratio)) if self.decoded > RATIO_FREE && self.decoded > compressed.saturating_mul(ratio) => {
                over(format!("a ratio of at most {ratio}"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error for a file that does not have the format that its name indicates.
fn broken_promise(promised: Format, found: Option<Format>, first: &[u8], eof: bool) -> Error {
    let expected = format!("{promised} data, as its name implies; disable decoding to read the bytes as they are");
    match found {
        None if eof && may_begin(first, promised) => Error::new(ErrorKind::DecodeTruncated)
            .with_found(format!("the end of the file after {} bytes", first.len())),
        None => Error::new(ErrorKind::DecodeDamaged).with_found(format!("data that begins with {first:02x?}")),
        Some(format) => Error::new(ErrorKind::DecodeDamaged).with_found(format!("{format} data")),
    }
    .with_expected(expected)
}

/// Returns the error with which a decoder reports damage.
fn damaged(found: &str) -> io::Error {
    io::Error::other(Error::new(ErrorKind::DecodeDamaged).with_found(found))
}

/// Returns the error with which a decoder reports a missing end.
fn truncated(found: &str) -> io::Error {
    io::Error::other(Error::new(ErrorKind::DecodeTruncated).with_found(found))
}

/// Creates the decoder of a format.
fn decoder(format: Format, bytes: Compressed, memory: u64, passage: Passage) -> Result<Box<dyn Read + Send>> {
    let is_file = bytes.nature == Nature::File;
    Ok(match format.codec() {
        Codec::Gzip | Codec::Bgzf => Box::new(GzipDecoder::new(bytes, is_file, passage)),
        Codec::Zstd => Box::new(ZstdDecoder::new(bytes, memory, passage)?),
        #[cfg(feature = "xz")]
        Codec::Xz => Box::new(xz::XzDecoder::new(bytes, memory)?),
        #[cfg(not(feature = "xz"))]
        Codec::Xz => unreachable!("`decide` has refused it"),
    })
}

impl Decoding {
    fn start(
        source: Box<dyn ByteSource>,
        first: Vec<u8>,
        wait: &Wait,
        decoder: impl FnOnce(Compressed) -> Result<Box<dyn Read + Send>>,
    ) -> Result<Decoding> {
        let (nature, interruptible) = (source.nature(), source.is_interruptible());
        let wait = Arc::new(Mutex::new(wait.clone()));
        let inner = Arc::new(Mutex::new(source));
        let ended = Arc::new(AtomicBool::new(false));
        let compressed =
            Compressed { first: first.into(), inner: inner.clone(), wait: wait.clone(), ended: ended.clone(), nature };
        let decoder = decoder(compressed)?;
        let nature = if nature == Nature::CallerOnly { nature } else { Nature::Foreign };
        Ok(Decoding { decoder, inner, nature, interruptible, wait, ended })
    }

    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        // This read can run on a different thread than the last one.
        *lock(&self.wait) = wait.clone();
        loop {
            wait.check()?;
            return match self.decoder.read(space) {
                Ok(0) if !self.ended.load(Ordering::Acquire) => Err(Error::new(ErrorKind::DecodeDamaged)
                    .with_found("a decoder that stopped before the end of its source")),
                Ok(count) => Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(self.judge(error, wait)),
            };
        }
    }

    /// Converts an error: an [`Error`] came from the source, all others are from the decoder. If data ends too early
    /// because a command failed, the command's failure is reported.
    fn judge(&mut self, error: io::Error, wait: &Wait) -> Error {
        let error = match error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            true => Error::from_io(error),
            false => {
                let kind = match error.kind() {
                    io::ErrorKind::UnexpectedEof => ErrorKind::DecodeTruncated,
                    _ => ErrorKind::DecodeDamaged,
                };
                Error::new(kind).with_found(error.to_string())
            }
        };
        match error.kind() {
            ErrorKind::DecodeTruncated => lock(&self.inner).finish(wait, &mut Vec::new()).err().unwrap_or(error),
            _ => error,
        }
    }

    /// Stops the decoder and returns the source under it.
    fn into_inner(self) -> Box<dyn ByteSource> {
        drop(self.decoder);
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => inner.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(_) => unreachable!("the decoder held the only other reference"),
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ByteSource for DecodeSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if let Some(count) = self.decide(space, wait)? {
            return Ok(count);
        }
        match &mut self.state {
            State::Plain { source, first } if first.is_empty() => source.read(space, wait),
            State::Plain { source, first } => {
                let count = first.len().min(space.len());
                space[..count].copy_from_slice(&first[..count]);
                first.drain(..count);
                // Other data that is available is also delivered. An error here is not lost: nothing was read, and the
                // next read fails again.
                let space = &mut space[count..];
                let at_once = source.nature() == Nature::File || source.pending() > 0;
                let more = if at_once && !space.is_empty() { source.read(space, wait).unwrap_or(0) } else { 0 };
                Ok(count + more)
            }
            State::Decoding(decoding) => {
                let count = decoding.read(space, wait)?;
                self.decoded += count as u64;
                self.check_limit()?;
                Ok(count)
            }
            State::Undecided { .. } | State::Changing => Err(Error::new(ErrorKind::Closed)),
        }
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        match &mut self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.finish(wait, ends),
            State::Decoding(decoding) => lock(&decoding.inner).finish(wait, ends),
            State::Changing => Ok(()),
        }
    }

    fn stop(&mut self) {
        match &mut self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.stop(),
            State::Decoding(decoding) => lock(&decoding.inner).stop(),
            State::Changing => {}
        }
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        match self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.close(ends),
            State::Decoding(decoding) => decoding.into_inner().close(ends),
            State::Changing => {}
        }
    }

    fn abandon(self: Box<Self>) {
        match self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.abandon(),
            State::Decoding(decoding) => decoding.into_inner().abandon(),
            State::Changing => {}
        }
    }

    fn nature(&self) -> Nature {
        match &self.state {
            State::Undecided { source, .. } => match source.nature() {
                Nature::CallerOnly => Nature::CallerOnly,
                _ => Nature::Unknown,
            },
            State::Plain { source, .. } => source.nature(),
            State::Decoding(decoding) => decoding.nature,
            State::Changing => Nature::Foreign,
        }
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Plain { source, first } if first.is_empty() => source.ready_fd(),
            // Detecting the format can take more than the single read that would not block.
            _ => None,
        }
    }

    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Undecided { source, .. } => source.waits_for(),
            _ => self.ready_fd(),
        }
    }

    fn pending(&self) -> usize {
        match &self.state {
            State::Plain { source, .. } => source.pending(),
            _ => 0,
        }
    }

    fn is_interruptible(&self) -> bool {
        match &self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.is_interruptible(),
            State::Decoding(decoding) => decoding.interruptible,
            State::Changing => true,
        }
    }
}

/// The compressed bytes of a source, as a `Read` implementation for the decoders.
struct Compressed {
    /// The bytes that were read to detect the format.
    first: VecDeque<u8>,
    inner: Inner,
    wait: Arc<Mutex<Wait>>,
    ended: Arc<AtomicBool>,
    nature: Nature,
}

impl Read for Compressed {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if !self.first.is_empty() {
            let count = self.first.read(space)?;
            if self.first.is_empty() {
                self.first = VecDeque::new(); // the memory is not needed any more
            }
            return Ok(count);
        }
        let wait = lock(&self.wait).clone();
        let count = lock(&self.inner).read(space, &wait).map_err(|error| match error.kind() {
            // The only kind of error after which the decoders can continue.
            ErrorKind::Cancelled => io::Error::new(io::ErrorKind::WouldBlock, error),
            _ => error.into(),
        })?;
        if count == 0 && !space.is_empty() {
            self.ended.store(true, Ordering::Release);
        }
        Ok(count)
    }
}
