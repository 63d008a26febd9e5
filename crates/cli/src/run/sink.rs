//! Parses an OUTPUT word, and opens the output.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use millstream::{Encode, Remote, Result, Writer, WriterBuilder};

use crate::standard::Stream;

use super::network::Network;
use super::source::{tcp_address, unix_path, url};

/// An output, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// `-`, or no name.
    Stdout,
    /// A file, a FIFO or a device.
    File(PathBuf),
    /// `tcp:HOST:PORT`
    Tcp(String),
    /// `unix:PATH`
    Unix(PathBuf),
    /// `s3://BUCKET/KEY`, or that of another store; other URLs are refused when they are checked.
    Url(String),
}

impl Sink {
    /// Parses an OUTPUT word.
    pub(crate) fn parse(word: OsString) -> std::result::Result<Sink, String> {
        if word.is_empty() {
            return Err("expected a file, '-', s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY, tcp:HOST:PORT or unix:PATH".to_string());
        }
        if word == "-" {
            return Ok(Sink::Stdout);
        }
        if let Some(address) = word.as_bytes().strip_prefix(b"tcp:") {
            return tcp_address(address).map(Sink::Tcp);
        }
        if Remote::is_url(word.as_bytes()) {
            return url(word).map(Sink::Url);
        }
        match word.as_bytes().strip_prefix(b"unix:") {
            Some(path) => unix_path(path).map(Sink::Unix),
            None => Ok(Sink::File(word.into())),
        }
    }

    /// Returns the compression of the output's bytes.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`](millstream::ErrorKind::Unsupported) if its name implies a format that cannot
    /// be written: content that does not match the name would be noticed much later.
    pub(crate) fn encode(&self) -> Result<Encode> {
        match self {
            Sink::File(path) => Encode::of_name(path),
            Sink::Url(url) => Encode::of_name(url),
            Sink::Stdout | Sink::Tcp(_) | Sink::Unix(_) => Ok(Encode::Off),
        }
    }

    /// Fails if the output is a closed standard stream, or a URL that cannot be written.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OpenFailed`] for a standard stream that was closed when the process began, and
    /// [`ErrorKind::Unsupported`] for the URL of a web server.
    pub(crate) fn check(&self, network: &Network) -> Result<()> {
        let stream = match self {
            Sink::Stdout => Some(Stream::Output),
            Sink::File(path) => Stream::of_path(path),
            Sink::Url(url) => return network.check_output(url),
            Sink::Tcp(_) | Sink::Unix(_) => None,
        };
        stream.map_or(Ok(()), Stream::check)
    }

    /// Opens the output.
    pub(crate) fn open(&self, builder: WriterBuilder, network: &Network) -> Result<Writer> {
        self.check(network)?;
        match self {
            Sink::Stdout => builder.stdout(),
            Sink::File(path) => builder.path(path),
            Sink::Tcp(address) => builder.tcp(address.as_str()),
            Sink::Unix(path) => builder.unix(path),
            Sink::Url(url) => network.write(builder, url),
        }
    }

    /// Prints how long the output may be, if it is an object whose length is not known.
    pub(crate) fn state_limit(&self, network: &Network) {
        if let Sink::Url(url) = self {
            network.state_limit(url);
        }
    }

    /// Returns whether the output appears when it is complete: an object or a regular file, as opposed to a FIFO, a device
    /// or a socket.
    pub(super) fn appears_at_end(&self) -> bool {
        match self {
            Sink::File(path) => fs::metadata(path).map_or(true, |metadata| metadata.is_file()),
            Sink::Url(_) => true,
            Sink::Stdout | Sink::Tcp(_) | Sink::Unix(_) => false,
        }
    }

    /// Returns the name in a line of checksums.
    pub(super) fn label(&self) -> Vec<u8> {
        match self {
            Sink::Stdout => b"-".to_vec(),
            Sink::File(path) => path.as_os_str().as_bytes().to_vec(),
            Sink::Tcp(address) => format!("tcp:{address}").into_bytes(),
            Sink::Url(url) => url.as_bytes().to_vec(),
            Sink::Unix(path) => [b"unix:", path.as_os_str().as_bytes()].concat(),
        }
    }
}
