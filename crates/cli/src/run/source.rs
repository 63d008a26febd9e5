//! Parses a SOURCE word, determines what is known before reading, and opens the source.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use millstream::splits::Split;
use millstream::{Command, Error, ErrorKind, Pin, Reader, ReaderBuilder, Remote, Result, Stopwatch};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::{program, standard};

use super::identity::Identity;
use super::members::Members;
use super::network::Network;
use super::settings::Settings;
use super::shell::Line;

/// A source, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `-`
    Stdin,
    /// A file, a FIFO or a device.
    File(PathBuf),
    /// `tcp:HOST:PORT`
    Tcp(String),
    /// `unix:PATH`
    Unix(PathBuf),
    /// `https://…`, `http://…`, or `s3://BUCKET/KEY` and those of other stores
    Url(String),
    /// The words after `--`.
    Command(Vec<OsString>),
    /// The commands of `--pipeline`, each of which reads the output of the previous one.
    Pipeline(Vec<Vec<OsString>>),
    /// The line of `--shell`.
    Shell(OsString),
    /// The records of `--split`.
    Split(Box<Split>),
}

/// What is known about a source before it is opened.
pub(crate) struct Preview {
    /// The identity of the source's file, if this is a regular file.
    pub(crate) identity: Option<Identity>,
    /// The number of the source's bytes.
    pub(crate) size: Option<u64>,
}

impl Source {
    /// Parses a SOURCE word.
    pub(crate) fn parse(word: OsString) -> std::result::Result<Source, String> {
        if word.is_empty() {
            return Err("expected a file, '-', a URL, tcp:HOST:PORT or unix:PATH".to_string());
        }
        if word == "-" {
            return Ok(Source::Stdin);
        }
        if let Some(address) = word.as_bytes().strip_prefix(b"tcp:") {
            return tcp_address(address).map(Source::Tcp);
        }
        if Remote::is_url(word.as_bytes()) {
            return url(word).map(Source::Url);
        }
        match word.as_bytes().strip_prefix(b"unix:") {
            Some(path) => unix_path(path).map(Source::Unix),
            None => Ok(Source::File(word.into())),
        }
    }

    /// Fails if it is known without opening the source that it cannot be read. Opening a FIFO or a connection would
    /// wait for the other side.
    pub(crate) fn preview(&self, network: &Network) -> Result<Preview> {
        match self {
            Source::Stdin => {
                standard::Stream::Input.check()?;
                let identity = Identity::of_descriptor(io::stdin());
                let size = None; // the reader knows it: part of the input may have been read already
                Ok(Preview { identity, size })
            }
            Source::File(path) => {
                standard::Stream::of_path(path).map_or(Ok(()), standard::Stream::check)?;
                preview_file(path).map_err(|error| refused(path.display(), error))
            }
            Source::Split(split) => match split.path() {
                Some(path) => preview_file(path).map_err(|error| refused(path.display(), error)),
                None => Ok(Preview { identity: None, size: None }),
            },
            Source::Unix(path) => {
                find_socket(path).map_err(|error| refused(format_args!("unix:{}", path.display()), error))?;
                Ok(Preview { identity: None, size: None })
            }
            Source::Command(argv) => {
                program::find(&argv[0])?;
                Ok(Preview { identity: None, size: None })
            }
            Source::Pipeline(commands) => {
                commands.iter().try_for_each(|argv| program::find(&argv[0]))?;
                Ok(Preview { identity: None, size: None })
            }
            Source::Shell(line) => {
                Command::shell(line)?;
                Ok(Preview { identity: None, size: None })
            }
            Source::Url(url) => {
                network.check_source(url)?;
                Ok(Preview { identity: None, size: None })
            }
            Source::Tcp(_) => Ok(Preview { identity: None, size: None }),
        }
    }

    /// Opens the source. `settings` has the options of commands and URLs.
    pub(crate) fn open(&self, builder: ReaderBuilder, settings: &Settings) -> Result<Reader> {
        self.open_with_members(builder, settings, false).map(|(reader, _)| reader)
    }

    /// Opens the source like [`open`](Source::open). Returns also what reports how its commands ended; their times are
    /// measured if `is_timed`.
    pub(super) fn open_with_members(
        &self,
        builder: ReaderBuilder,
        settings: &Settings,
        is_timed: bool,
    ) -> Result<(Reader, Members)> {
        // Other sources have no content to pin.
        let builder = match self {
            Source::Stdin | Source::File(_) | Source::Split(_) | Source::Url(_) => builder,
            Source::Tcp(_) | Source::Unix(_) => builder.pin(Pin::Content),
            Source::Command(_) | Source::Pipeline(_) | Source::Shell(_) => builder.pin(Pin::Content),
        };
        let reader = match self {
            Source::Stdin => {
                standard::Stream::Input.check()?;
                builder.stdin()
            }
            Source::File(path) => builder.path(path),
            Source::Split(split) => builder.split(split),
            Source::Tcp(address) => builder.tcp(address.as_str()),
            Source::Unix(path) => builder.unix(path),
            Source::Url(url) => {
                // It has no other content to pin.
                return Ok((builder.pin(Pin::Content).url(settings.network().remote(url))?, Members::None));
            }
            Source::Command(argv) => return start(std::slice::from_ref(argv), builder, settings, is_timed),
            Source::Pipeline(commands) => return start(commands, builder, settings, is_timed),
            Source::Shell(line) => {
                let (line, command) = Line::new(line)?;
                let reader = builder.command(settings.command(command))?;
                return Ok((reader, Members::Line(line)));
            }
        };
        Ok((reader?, Members::None))
    }

    /// Returns whether the source is a command, or several.
    pub(super) fn is_command(&self) -> bool {
        matches!(self, Source::Command(_) | Source::Pipeline(_) | Source::Shell(_))
    }

    /// Returns whether the source reports that it succeeded. Standard input and sockets only close, and so does the body of an
    /// answer without a length.
    pub(super) fn vouches_for_its_end(&self, network: &Network) -> bool {
        match self {
            Source::Url(_) => !network.allows_unknown_length(),
            other => other.is_command() || matches!(other, Source::File(_) | Source::Split(_)),
        }
    }
}

/// Starts the commands, each of which reads the output of the previous one.
fn start(
    commands: &[Vec<OsString>],
    builder: ReaderBuilder,
    settings: &Settings,
    is_timed: bool,
) -> Result<(Reader, Members)> {
    let stopwatches: Vec<_> = commands.iter().filter(|_| is_timed).map(|_| Stopwatch::default()).collect();
    let reader = builder.pipeline(commands.iter().enumerate().map(|(at, argv)| {
        let command = settings.command(Command::new(argv.clone()));
        match stopwatches.get(at) {
            Some(stopwatch) => command.timed(stopwatch.clone()),
            None => command,
        }
    }))?;
    Ok((reader, Members::Commands(stopwatches)))
}

/// Parses `HOST:PORT` after `tcp:`; the host is looked up when the source is opened.
pub(super) fn tcp_address(address: &[u8]) -> std::result::Result<String, String> {
    let text = std::str::from_utf8(address).unwrap_or_default();
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_string()),
        _ => Err("expected tcp:HOST:PORT, such as tcp:localhost:5140 or tcp:[::1]:5140".to_string()),
    }
}

pub(super) fn url(word: OsString) -> std::result::Result<String, String> {
    word.into_string().map_err(|_| "expected a URL in UTF-8".to_string())
}

/// Returns the URL without what may be secret.
#[cfg(feature = "parquet")]
pub(crate) fn shown_url(url: &str) -> String {
    millstream::Remote::new(url).name()
}

/// Parses `PATH` after `unix:`.
pub(super) fn unix_path(path: &[u8]) -> std::result::Result<PathBuf, String> {
    match path {
        [] => Err("expected unix:PATH, such as unix:/run/log.sock".to_string()),
        _ => Ok(OsString::from_vec(path.to_vec()).into()),
    }
}

fn preview_file(path: &Path) -> io::Result<Preview> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    rustix::fs::access(path, Access::READ_OK)?;
    let regular = metadata.is_file();
    Ok(Preview { identity: regular.then(|| Identity::of(&metadata)), size: regular.then_some(metadata.len()) })
}

fn find_socket(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.file_type().is_socket() { Ok(()) } else { Err(Errno::NOTSOCK.into()) }
}

/// Returns the error for a source that cannot be opened, with the library's wording.
fn refused(name: impl Display, error: io::Error) -> Error {
    Error::new(ErrorKind::OpenFailed).with_name(name.to_string()).with_io(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let parse = |word: &str| Source::parse(word.into());
        assert_eq!(parse("-"), Ok(Source::Stdin));
        assert_eq!(parse("a.txt"), Ok(Source::File("a.txt".into())));
        assert_eq!(parse("./tcp:x"), Ok(Source::File("./tcp:x".into())));
        assert_eq!(parse("tcp:[::1]:80"), Ok(Source::Tcp("[::1]:80".into())));
        assert_eq!(parse("s3://a/b c"), Ok(Source::Url("s3://a/b c".into())));
        assert_eq!(parse("HTTP://a/"), Ok(Source::Url("HTTP://a/".into())));
        assert_eq!(parse("./http://a"), Ok(Source::File("./http://a".into())));
        assert_eq!(parse("http:/a"), Ok(Source::File("http:/a".into())));
        assert_eq!(parse("unix:/run/x"), Ok(Source::Unix("/run/x".into())));
        for bad in ["", "tcp:", "tcp:host", "tcp::80", "tcp:host:port", "tcp:host:70000", "unix:"] {
            assert!(parse(bad).unwrap_err().starts_with("expected "), "{bad}");
        }
    }
}
