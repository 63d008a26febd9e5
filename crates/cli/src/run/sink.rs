//! Where records go: what an OUTPUT word means, and how it is opened.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use millstream::{Encode, Error, ErrorKind, Existing, Partial, Result, Writer, WriterBuilder};

use super::options::{Decode, Options};
use super::source::{tcp_address, unix_path};

/// Endings of names that ask for a compressed format which nobody here writes.
const NO_ENCODER: [&str; 8] = ["xz", "lzma", "bz2", "lz", "lz4", "lzo", "br", "z"];

/// An output, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// `-`, and no name at all.
    Stdout,
    /// A file, a FIFO, a device.
    File(PathBuf),
    /// `tcp:HOST:PORT`
    Tcp(String),
    /// `unix:PATH`
    Unix(PathBuf),
}

impl Sink {
    /// What an OUTPUT word means.
    pub(crate) fn parse(word: OsString) -> std::result::Result<Sink, String> {
        if word.is_empty() {
            return Err("expected a file, '-', tcp:HOST:PORT or unix:PATH".to_string());
        }
        if word == "-" {
            return Ok(Sink::Stdout);
        }
        if let Some(address) = word.as_bytes().strip_prefix(b"tcp:") {
            return tcp_address(address).map(Sink::Tcp);
        }
        match word.as_bytes().strip_prefix(b"unix:") {
            Some(path) => unix_path(path).map(Sink::Unix),
            None => Ok(Sink::File(word.into())),
        }
    }

    /// How its bytes are compressed.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if its name asks for what we cannot write: bytes that are not what their name says
    /// would be found out much later.
    pub(crate) fn encode(&self, decode: Decode) -> Result<Encode> {
        let Sink::File(path) = self else { return Ok(Encode::Off) };
        if decode == Decode::Off {
            return Ok(Encode::Off);
        }
        match path.extension().and_then(OsStr::to_str) {
            Some(ending) if NO_ENCODER.iter().any(|known| ending.eq_ignore_ascii_case(known)) => {
                Err(Error::new(ErrorKind::Unsupported)
                    .with_name(path.display().to_string())
                    .with_found(format!("no encoder for .{ending}"))
                    .with_expected(".gz, .bgz, .bgzf or .zst"))
            }
            _ => Ok(Encode::of_name(path)),
        }
    }

    /// Adds what is asked of an output to `builder`: files have options that others have not.
    pub(super) fn as_asked(&self, options: &Options, builder: WriterBuilder) -> WriterBuilder {
        let builder = match options.timeout {
            Some(timeout) => builder.stall_timeout(timeout),
            None => builder,
        };
        match self {
            Sink::File(_) => builder
                .existing(if options.append { Existing::Append } else { Existing::Replace })
                .partial(if options.keep_partial { Partial::Keep } else { Partial::Remove }),
            Sink::Stdout | Sink::Tcp(_) | Sink::Unix(_) => builder,
        }
    }

    /// Opens it.
    pub(crate) fn open(&self, builder: WriterBuilder) -> Result<Writer> {
        match self {
            Sink::Stdout => builder.stdout(),
            Sink::File(path) => builder.path(path),
            Sink::Tcp(address) => builder.tcp(address.as_str()),
            Sink::Unix(path) => builder.unix(path),
        }
    }

    /// Whether it is, or will be, a file like most: no FIFO, no device, no socket.
    pub(super) fn is_regular_file(&self) -> bool {
        match self {
            Sink::File(path) => fs::metadata(path).map_or(true, |metadata| metadata.is_file()),
            Sink::Stdout | Sink::Tcp(_) | Sink::Unix(_) => false,
        }
    }

    /// The name in a line of checksums.
    pub(super) fn label(&self) -> String {
        match self {
            Sink::Stdout => "-".to_string(),
            Sink::File(path) => path.display().to_string(),
            Sink::Tcp(address) => format!("tcp:{address}"),
            Sink::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}
