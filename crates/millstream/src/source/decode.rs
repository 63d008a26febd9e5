//! Compressed sources, recognised by their first bytes and decoded in process.
//!
//! gzip (RFC 1952, any number of members) by zlib-rs, bgzf (SAM specification, section 4.1) of a regular file by
//! noodles with one worker a core and of anything else as the gzip it is, zstd (RFC 8878, any number of frames) by
//! libzstd. In process, because a pipe from `zcat` costs
//! four times as much as the decoding.
//!
//! What was good is delivered; then damage is [`DecodeDamaged`](ErrorKind::DecodeDamaged) and a missing end is
//! [`DecodeTruncated`](ErrorKind::DecodeTruncated). A bgzf file without its end-of-file block is truncated.

use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::num::NonZero;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Nature, Source};
use crate::cancel::{CancelToken, Wait};
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::format::Format;
use crate::reader::DecodeLimit;

/// The empty block that ends every complete bgzf file (SAM specification, section 4.1.2).
const BGZF_END: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Enough first bytes to tell all formats apart.
const SNIFF: usize = 18;

/// The compressed bytes that are read at once.
const COMPRESSED_CHUNK: usize = 128 << 10;

/// More workers than this do not make one stream faster.
const MAX_WORKERS: usize = 8;

/// Up to this size of output no ratio is an attack.
const RATIO_FREE: u64 = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
enum Guess {
    Is(Format),
    Plain,
    /// It depends on bytes that are not here yet.
    Open,
}

/// What the first bytes of a stream say; `eof`: these are all.
fn guess(bytes: &[u8], eof: bool) -> Guess {
    let starts = |magic: &[u8]| bytes.iter().zip(magic).all(|(a, b)| a == b);
    let gzip = starts(&[0x1f, 0x8b, 8]);
    let zstd = starts(&[0x28, 0xb5, 0x2f, 0xfd]);
    let skippable = bytes.first().is_some_and(|b| b & 0xf0 == 0x50) && {
        bytes[1..].iter().zip(&[0x2a, 0x4d, 0x18]).all(|(a, b)| a == b)
    };
    let bgzf = bytes.len() >= SNIFF && bytes[3] & 4 != 0 && bytes[12..16] == *b"BC\x02\0";
    match () {
        _ if bytes.is_empty() => Guess::Open,
        _ if gzip && bgzf => Guess::Is(Format::Bgzf),
        _ if gzip && (bytes.len() >= SNIFF || eof && bytes.len() >= 2) => Guess::Is(Format::Gzip),
        _ if (zstd || skippable) && bytes.len() >= 4 => Guess::Is(Format::Zstd),
        _ if !eof && (gzip || zstd || skippable) => Guess::Open,
        _ => Guess::Plain,
    }
}

/// Whether memory starts like a compressed stream.
pub(crate) fn is_compressed(bytes: &[u8]) -> bool {
    matches!(guess(&bytes[..bytes.len().min(SNIFF)], true), Guess::Is(_))
}

/// A source that is decoded if its first bytes say so.
pub(crate) struct DecodeSource {
    state: State,
    promised: Option<Format>,
    limit: DecodeLimit,
    /// Bytes delivered after decoding.
    decoded: u64,
    /// Bytes that the source has delivered, for the ratio.
    compressed: Arc<AtomicU64>,
    format: Arc<OnceLock<Format>>,
}

enum State {
    /// `first`: what has been read to find out.
    Undecided {
        source: Box<dyn Source>,
        first: Vec<u8>,
    },
    /// `first` is still to be delivered.
    Plain {
        source: Box<dyn Source>,
        first: Vec<u8>,
    },
    Decoding(Decoding),
    /// Only while the state changes.
    Changing,
}

/// The source under a decoder; bgzf reads it on a thread of its own.
type Inner = Arc<Mutex<Box<dyn Source>>>;

struct Decoding {
    // Before the decoder: it ends a read that waits, so that the decoder's thread can be joined.
    stop: CancelOnDrop,
    decoder: Box<dyn Read + Send>,
    inner: Inner,
    nature: Nature,
    interruptible: bool,
    /// What a wait for compressed bytes ends with: that of the last read.
    wait: Arc<Mutex<Wait>>,
    /// Set when the compressed bytes have come to their end.
    ended: Arc<AtomicBool>,
    /// Workers decode, and a thread of theirs reads the source. It survives no error, so its waits are only ended
    /// by `stop`; a regular file, the only source that is read so, has no long ones.
    threaded: bool,
}

struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl DecodeSource {
    /// Looks at what `source` delivers first. `path` is a name that may promise a format; `compressed` counts
    /// what `source` has delivered; `format` is set when one is recognised.
    pub(crate) fn new(
        source: Box<dyn Source>,
        path: Option<&Path>,
        limit: DecodeLimit,
        compressed: Arc<AtomicU64>,
        format: Arc<OnceLock<Format>>,
    ) -> DecodeSource {
        DecodeSource {
            state: State::Undecided { source, first: Vec::new() },
            promised: path.and_then(Format::of_name),
            limit,
            decoded: 0,
            compressed,
            format,
        }
    }

    /// Reads until it is clear what the stream is.
    fn decide(&mut self, wait: &Wait) -> Result<()> {
        let State::Undecided { source, first } = &mut self.state else { return Ok(()) };
        let (said, eof) = loop {
            let mut chunk = [0; SNIFF];
            let count = source.read(&mut chunk[..SNIFF - first.len()], wait)?;
            first.extend_from_slice(&chunk[..count]);
            match guess(first, count == 0) {
                Guess::Open if count > 0 => {}
                said => break (said, count == 0),
            }
        };
        if let Some(promised) = self.promised.filter(|_| eof && said != Guess::Is(Format::Bgzf) && first.len() < 4) {
            return Err(Error::new(ErrorKind::DecodeTruncated)
                .with_found(format!("the end of the file after {} bytes", first.len()))
                .with_expected(format!("{promised} data, as its name says")));
        }
        let State::Undecided { source, first } = std::mem::replace(&mut self.state, State::Changing) else {
            unreachable!("matched above")
        };
        self.state = match said {
            Guess::Is(format) => {
                let _ = self.format.set(format);
                State::Decoding(Decoding::start(format, source, first, wait)?)
            }
            Guess::Plain | Guess::Open => State::Plain { source, first },
        };
        Ok(())
    }

    fn check_limit(&self) -> Result<()> {
        let compressed = self.compressed.load(Ordering::Relaxed).max(1);
        let over = |limit: String| {
            Err(Error::new(ErrorKind::DecodeLimit)
                .with_found(format!("{} bytes out of {compressed} compressed ones", self.decoded))
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

impl Decoding {
    fn start(format: Format, source: Box<dyn Source>, first: Vec<u8>, wait: &Wait) -> Result<Decoding> {
        let stop = CancelToken::new()?;
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        let threaded = format == Format::Bgzf && source.nature() == Nature::File && workers > 1;
        let nature = match source.nature() {
            Nature::CallerOnly => Nature::CallerOnly,
            // Its threads read ahead.
            _ if threaded => Nature::CallerOnly,
            _ => Nature::Foreign,
        };
        let interruptible = source.is_interruptible();
        let wait = Arc::new(Mutex::new(if threaded { Wait::default().and(&stop) } else { wait.and(&stop) }));
        let inner = Arc::new(Mutex::new(source));
        let ended = Arc::new(AtomicBool::new(false));
        let compressed = Compressed {
            first: first.into(),
            inner: inner.clone(),
            wait: wait.clone(),
            end: VecDeque::with_capacity(BGZF_END.len()),
            must_end: (format == Format::Bgzf).then_some(&BGZF_END),
            ended: ended.clone(),
        };
        let buffered = |compressed| BufReader::with_capacity(COMPRESSED_CHUNK, compressed);
        let decoder: Box<dyn Read + Send> = match format {
            Format::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(compressed))?),
            Format::Bgzf if threaded => {
                let workers = NonZero::new(workers).unwrap_or(NonZero::<usize>::MIN);
                Box::new(noodles_bgzf::io::MultithreadedReader::with_worker_count(workers, buffered(compressed)))
            }
            Format::Gzip | Format::Bgzf => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(compressed))),
        };
        let stop = CancelOnDrop(stop);
        Ok(Decoding { stop, decoder, inner, nature, interruptible, wait, ended, threaded })
    }

    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if !self.threaded {
            // This read may be on another thread than the last.
            *lock(&self.wait) = wait.and(&self.stop.0);
        }
        loop {
            wait.check()?;
            return match self.decoder.read(space) {
                Ok(0) if !self.ended.load(Ordering::Acquire) => Err(Error::new(ErrorKind::DecodeDamaged)
                    .with_found("a decoder that stopped before the end of its source")),
                Ok(count) => Ok(count),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(self.judge(error, wait)),
            };
        }
    }

    /// What an error means: ours came from the source, others are the decoder's complaint. Of data that ends too
    /// early, a command that failed is the cause.
    fn judge(&mut self, error: std::io::Error, wait: &Wait) -> Error {
        let error = match error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            true => Error::from_io(error),
            false => {
                let kind = match error.kind() {
                    std::io::ErrorKind::UnexpectedEof => ErrorKind::DecodeTruncated,
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

    /// Ends the decoder, its threads included, and returns the source under it.
    fn into_inner(self) -> Box<dyn Source> {
        drop(self.stop);
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

impl Source for DecodeSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        self.decide(wait)?;
        match &mut self.state {
            State::Plain { source, first } if first.is_empty() => source.read(space, wait),
            State::Plain { source, first } => {
                let count = first.len().min(space.len());
                space[..count].copy_from_slice(&first[..count]);
                first.drain(..count);
                // What else is there already comes along. An error is not lost: nothing was read, and the next
                // read meets it again.
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

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) -> Result<()> {
        match self.state {
            State::Undecided { source, .. } | State::Plain { source, .. } => source.close(ends),
            State::Decoding(decoding) => decoding.into_inner().close(ends),
            State::Changing => Ok(()),
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
            // Finding out what it is may take more than the one read that would not wait.
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

/// The compressed bytes of a source, as a `Read` for the decoders.
struct Compressed {
    /// What was read to recognise the format.
    first: VecDeque<u8>,
    inner: Inner,
    wait: Arc<Mutex<Wait>>,
    /// The last bytes, as many as `must_end` has.
    end: VecDeque<u8>,
    must_end: Option<&'static [u8]>,
    ended: Arc<AtomicBool>,
}

impl Read for Compressed {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let count = match self.first.is_empty() {
            false => self.first.read(space)?,
            true => {
                let wait = lock(&self.wait).clone();
                lock(&self.inner).read(space, &wait).map_err(|error| match error.kind() {
                    // The one kind of error after which the decoders can go on.
                    ErrorKind::Cancelled => std::io::Error::new(std::io::ErrorKind::WouldBlock, error),
                    _ => error.into(),
                })?
            }
        };
        let at_end = count == 0 && !space.is_empty();
        if at_end {
            self.ended.store(true, Ordering::Release);
        }
        let Some(must_end) = self.must_end else { return Ok(count) };
        if at_end && self.end != must_end {
            // Not `UnexpectedEof`: where a block should begin, the decoder takes that for the end.
            return Err(std::io::Error::other(
                Error::new(ErrorKind::DecodeTruncated)
                    .with_found("the end of the file without bgzf's end-of-file block"),
            ));
        }
        let news = &space[..count];
        self.end.extend(&news[count.saturating_sub(must_end.len())..]);
        self.end.drain(..self.end.len().saturating_sub(must_end.len()));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_format() {
        let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, b'x', b'x', b'x', b'x', b'x', b'x', b'x', b'x'];
        assert_eq!(guess(&gzip, false), Guess::Is(Format::Gzip));
        assert_eq!(guess(&BGZF_END[..SNIFF], false), Guess::Is(Format::Bgzf));
        assert_eq!(guess(&[0x28, 0xb5, 0x2f, 0xfd], false), Guess::Is(Format::Zstd));
        assert_eq!(guess(&[0x5a, 0x2a, 0x4d, 0x18], false), Guess::Is(Format::Zstd));
        for text in [&b"hello"[..], b"(x", b"P\n", b"\x1fx", b"\x1f\x8b\x07"] {
            assert_eq!(guess(text, false), Guess::Plain, "{text:?}");
        }
        for cut in 1..SNIFF {
            assert_eq!(guess(&BGZF_END[..cut], false), Guess::Open, "{cut} bytes");
        }
        for cut in 2..SNIFF {
            assert_eq!(guess(&BGZF_END[..cut], true), Guess::Is(Format::Gzip), "{cut} bytes and no more");
        }
    }
}
