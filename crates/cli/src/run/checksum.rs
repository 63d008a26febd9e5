//! `--hash`: the checksum of the bytes that arrive at an output, after compression, so that `sha256sum -c` agrees.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream::{Encode, Result, SharedWriter, Writer, WriterBuilder};

use millstream::hash::{Algorithm, Hasher};

use super::network::Network;
use super::options::Options;
use super::sink::Sink;

/// A checksum, for printing.
#[derive(Clone, serde::Serialize)]
pub(super) struct Checksum {
    /// The kind of checksum.
    pub(super) algorithm: &'static str,
    /// The value in hexadecimal digits.
    pub(super) value: String,
}

impl Checksum {
    /// Formats the line that `sha256sum` prints for a file of this name, and that `sha256sum -c` reads. The name is
    /// unchanged, except that a backslash or a line end in it is escaped, and the line then begins with a backslash.
    pub(super) fn line(&self, name: &[u8]) -> Vec<u8> {
        let mut escaped = Vec::with_capacity(name.len());
        for &byte in name {
            match byte {
                b'\\' => escaped.extend(br"\\"),
                b'\n' => escaped.extend(br"\n"),
                b'\r' => escaped.extend(br"\r"),
                _ => escaped.push(byte),
            }
        }
        let mark: &[u8] = if escaped == name { b"" } else { b"\\" };
        [mark, self.value.as_bytes(), b"  ", &escaped].concat()
    }
}

/// The outer writer of an output whose bytes are hashed before they are written.
pub(super) struct Hashed {
    algorithm: Algorithm,
    hasher: Arc<Mutex<Hasher>>,
    inner: SharedWriter,
}

impl Hashed {
    /// Opens `sink` after a checksum. `builder` opens both writers: the inner one, which is returned and which
    /// compresses, and the outer one, which holds no bytes back.
    pub(super) fn open(
        algorithm: Algorithm,
        sink: &Sink,
        encode: Encode,
        options: &Options,
        network: &Network,
        builder: impl Fn() -> WriterBuilder,
    ) -> Result<(Writer, Hashed)> {
        let inner = sink.open(options.for_output(sink, builder().encode(Encode::Off)), network)?.shared();
        let hasher = Arc::new(Mutex::new(Hasher::new(algorithm)));
        let tap = Tap { hasher: hasher.clone(), inner: inner.clone() };
        let near = options.encoded(encode, builder()).name(inner.name()).from_write(tap)?;
        Ok((near, Hashed { algorithm, hasher, inner }))
    }

    /// Completes the output, after the inner writer has been closed.
    pub(super) fn close(self) -> Result<Checksum> {
        self.inner.close()?;
        Ok(Checksum { algorithm: self.algorithm.name(), value: lock(&self.hasher).finish() })
    }

    /// Aborts the output, after the inner writer has been aborted.
    pub(super) fn abort(self) {
        self.inner.abort();
    }
}

/// The part between the two writers.
struct Tap {
    hasher: Arc<Mutex<Hasher>>,
    inner: SharedWriter,
}

impl io::Write for Tap {
    /// The inner writer has already collected the bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_record(bytes)?;
        lock(&self.hasher).update(bytes);
        self.inner.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.inner.flush()?)
    }
}

fn lock(hasher: &Mutex<Hasher>) -> MutexGuard<'_, Hasher> {
    hasher.lock().unwrap_or_else(PoisonError::into_inner)
}
