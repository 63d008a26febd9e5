//! The input, and the selected document and value in it.

use std::ffi::OsString;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::bson::{Document, DocumentBatch, Documents, Element, OnBad, Rules, split_path};
use millstream::frame::Bson;
use millstream::{Error, ErrorKind, Reader, Result};

use crate::run::{
    DEFAULT_RECORD_LIMIT, Decoding, MOST_RAW, Network, Progress, Reject, RejectOptions, Rejects, Settings, Show, Sink,
    Source, SourceNetwork, check_outputs, record_size,
};
use crate::signals::Signals;

use super::absent::{no_document, no_value};
use super::image::{self, Image};

/// The largest document that BSON allows.
const DOCUMENT_LIMIT: usize = i32::MAX as usize;

/// One file, for commands that read one document.
#[derive(Args)]
pub(super) struct File {
    /// The file, '-' for standard input, or a URL
    #[arg(value_name = "FILE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath)]
    source: Source,

    /// The value: [DOCUMENT].KEY.POSITION… [default: all of the first document]
    #[arg(value_name = "PATH", value_parser = Place::parse)]
    pub(super) place: Option<Place>,

    #[command(flatten)]
    decoding: Decoding,

    /// Fail at a document longer than this [default: 64M; 2G in an uncompressed file]
    #[arg(long, value_name = "SIZE", value_parser = record_size)]
    record_limit: Option<usize>,

    #[command(flatten)]
    network: SourceNetwork,
}

/// A stream of documents, for commands that read all of them.
#[derive(Args)]
pub(super) struct Stream {
    /// The source of the documents: a file, '-', a URL, tcp:HOST:PORT or unix:PATH [default: standard input]
    #[arg(value_name = "SOURCE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
    source: Option<Source>,

    /// A command whose standard output is the source
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    #[command(flatten)]
    decoding: Decoding,

    /// Show progress on standard error; auto: only on a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Show::Auto)]
    progress: Show,
}

/// The maximum length of documents, for commands that read them into memory.
#[derive(Args)]
pub(super) struct Limit {
    /// Fail at a document longer than this
    #[arg(long, value_name = "SIZE", value_parser = record_size, default_value = "64M")]
    pub(super) record_limit: usize,
}

/// The number of a document and the keys of a value in it, as in `[7].items.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) document: u64,
    pub(super) keys: Vec<String>,
}

impl Place {
    fn parse(text: &str) -> std::result::Result<Place, String> {
        let (document, path) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            None => (0, text),
            Some((number, rest)) => {
                let document = number.parse().map_err(|_| "expected the number of a document, such as [7]")?;
                match rest.strip_prefix('.') {
                    Some(path) => (document, path),
                    None if rest.is_empty() => (document, rest),
                    None => return Err("expected a dot after the number of the document, such as [7].items".into()),
                }
            }
        };
        let keys = split_path(path).map_err(|error| error.without_advice().to_string())?;
        Ok(Place { document, keys })
    }
}

/// The place of the selected document.
pub(super) enum Opened {
    /// In an uncompressed file: only the parts that are accessed are read.
    Image(Image),
    /// The next document of this reader, which contains all of it.
    Stream(Box<Reader>),
}

impl File {
    /// Opens the file, up to the selected document.
    pub(super) fn open(&self, signals: &mut Signals) -> Result<Opened> {
        let place = self.place();
        let limit = self.record_limit.unwrap_or(DEFAULT_RECORD_LIMIT);
        let builder = self.decoding.reader().record_limit(limit).cancel(signals.token());
        let mut reader = self.source.open(builder, &Settings::of_network(&self.network))?;
        signals.watch()?;
        if let Source::File(path) = &self.source
            && std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
        {
            // At this point the reader has detected whether the file is compressed.
            reader.fill()?;
            if reader.progress().format.is_none() {
                let name = reader.name().to_string();
                let file = std::fs::File::open(path)
                    .map_err(|error| Error::new(ErrorKind::OpenFailed).with_name(&name).with_io(error))?;
                let documents = image::Documents { file, name, token: signals.token().clone() };
                let limit = self.record_limit.unwrap_or(DOCUMENT_LIMIT);
                return documents.read(place.document, limit).map(Opened::Image);
            }
        }
        skip_to(&mut reader, place.document)?;
        Ok(Opened::Stream(Box::new(reader)))
    }

    pub(super) fn place(&self) -> Place {
        self.place.clone().unwrap_or_default()
    }
}

/// Skips the documents before this one.
fn skip_to(reader: &mut Reader, document: u64) -> Result<()> {
    for passed in 0..document {
        if !reader.skip_record(&mut Bson::new())? {
            return Err(no_document(reader.name(), document, passed));
        }
    }
    Ok(())
}

/// Returns the next document, which has this number; only its length has been read.
pub(super) fn next_document(reader: &mut Reader, number: u64) -> Result<Document<'_>> {
    let offset = reader.position().bytes;
    let name = reader.name().to_string();
    if reader.buffer().is_empty() && reader.fill()? == 0 {
        return Err(no_document(&name, number, number));
    }
    let bytes = reader.next_frame(&mut Bson::new())?.expect("there are bytes, so there is a frame or an error");
    Document::with_rules(bytes, Rules::new().depth(1000))
        .map(|document| document.at_offset(offset))
        .map_err(|error| error.with_name(name).with_record(number))
}

/// Returns the element at the end of a path, which has at least one key.
pub(super) fn element<'a>(document: Document<'a>, keys: &[String]) -> Result<Element<'a>> {
    document.find_path(keys)?.ok_or_else(|| no_value(keys))
}

impl Stream {
    /// Returns the words after `--`.
    pub(super) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Returns whether standard input is the source because no other is given.
    pub(super) fn reads_input(&self) -> bool {
        self.source.is_none() && self.command.is_empty()
    }

    fn source(&self) -> Source {
        match (&self.source, self.command.is_empty()) {
            (_, false) => Source::Command(self.command.clone()),
            (Some(source), true) => source.clone(),
            (None, true) => Source::Stdin,
        }
    }

    /// Opens the source, and the progress line if one is requested, which depends on whether records are printed.
    pub(super) fn open(
        &self,
        limit: usize,
        network: &Network,
        signals: &mut Signals,
        prints: bool,
    ) -> Result<(Reader, Watch)> {
        let source = self.source();
        source.preview(network)?;
        if matches!(source, Source::Command(_)) {
            crate::guard::start();
            signals.watch()?;
        }
        let builder = self.decoding.reader().record_limit(limit).cancel(signals.token());
        let reader = source.open(builder, &Settings::of_network(network))?;
        signals.watch()?;
        let progress = self.progress.is_wanted(prints).then(|| Progress::start(reader.progress().source_size));
        if let Some(progress) = &progress {
            progress.source(reader.name());
        }
        Ok((reader, Watch { progress }))
    }

    /// Opens the source like [`open`](Stream::open), and the file of bad documents.
    pub(super) fn open_documents(
        &self,
        limit: &Limit,
        network: &Network,
        bad: &RejectOptions,
        signals: &mut Signals,
        prints: bool,
    ) -> Result<Input> {
        bad.check()?;
        let identity = self.source().preview(network)?.identity;
        let file = bad.file().map(|path| Sink::File(path.into()));
        check_outputs(std::iter::empty(), file.iter(), &[identity])?;
        let (reader, watch) = self.open(limit.record_limit, network, signals, prints)?;
        let documents = Documents::new(reader);
        let documents = if bad.skips() { documents.on_bad(OnBad::Skip).keep_bad(MOST_RAW) } else { documents };
        Ok(Input { documents, count: 0, rejects: Rejects::limited(bad, signals.token())?, watch })
    }
}

/// Documents that are being read.
pub(super) struct Input {
    documents: Documents,
    /// The number of documents that were read and not left out.
    count: u64,
    rejects: Rejects,
    watch: Watch,
}

impl Input {
    /// Applies an option to the documents.
    pub(super) fn with(self, change: impl FnOnce(Documents) -> Documents) -> Input {
        Input { documents: change(self.documents), ..self }
    }

    /// Returns the number of documents that were read and not left out.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Reads all documents. `take` also gets the name of the source.
    pub(super) fn read(&mut self, mut take: impl FnMut(&str, DocumentBatch<'_>) -> Result<()>) -> Result<()> {
        let name = self.documents.reader().name().to_string();
        loop {
            match self.documents.next_batch() {
                Ok(Some(batch)) => {
                    self.count += batch.len() as u64;
                    take(&name, batch)?;
                }
                Ok(None) => return self.rejects.check(self.count, true).map_err(advised),
                Err(error) => {
                    let Some(raw) = self.documents.take_rejected() else { return Err(error) };
                    self.rejects.add(Reject::new(error, &raw))?;
                    self.rejects.check(self.count, false).map_err(advised)?;
                }
            }
            self.watch.show(self.documents.reader());
        }
    }

    /// Ends the progress line, the source and the file of bad documents, even if reading has failed. If documents were
    /// left out and no option permits it, the inner result is an error.
    pub(super) fn close(self, read: Result<()>) -> Result<Result<()>> {
        match self.watch.close(self.documents.into_reader(), read) {
            Ok(()) => self.rejects.close().map(|left_out| left_out.map_err(advised)),
            Err(error) => {
                self.rejects.abandon();
                Err(error)
            }
        }
    }
}

/// Adds advice about the number of bad documents.
fn advised(error: Error) -> Error {
    error.with_advice("check the program that wrote the documents, or see --rejects and --max-rejects")
}

/// The progress line, if there is one.
pub(super) struct Watch {
    progress: Option<Progress>,
}

impl Watch {
    /// Shows the progress of a reader.
    pub(super) fn show(&self, reader: &Reader) {
        if let Some(progress) = &self.progress {
            let position = reader.position();
            progress.update(position.bytes, position.records, reader.progress().source_bytes);
        }
    }

    /// Ends the progress line and the source, even if reading has failed.
    pub(super) fn close(self, reader: Reader, read: Result<()>) -> Result<()> {
        if read.is_ok() {
            self.show(&reader);
        }
        match self.progress {
            Some(progress) if read.is_ok() => progress.finish(),
            progress => drop(progress),
        }
        read.and_then(|()| reader.close().map(drop))
    }
}

/// The strictness of commands that check documents.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Strictness {
    /// Accept deviations that can still be read
    Lenient,
    /// Accept what the specification allows
    Standard,
    /// Also require array keys in order, and no duplicate keys
    Strict,
}

impl Strictness {
    pub(super) fn rules(self, depth: u16) -> Rules {
        Rules::new().depth(depth).strictness(match self {
            Strictness::Lenient => millstream::bson::Strictness::Lenient,
            Strictness::Standard => millstream::bson::Strictness::Standard,
            Strictness::Strict => millstream::bson::Strictness::Strict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let place =
            |document, keys: &[&str]| Ok(Place { document, keys: keys.iter().map(|key| key.to_string()).collect() });
        assert_eq!(Place::parse(""), place(0, &[]));
        assert_eq!(Place::parse("a.0"), place(0, &["a", "0"]));
        assert_eq!(Place::parse("[7]"), place(7, &[]));
        assert_eq!(Place::parse("[7].a.\"b.c\""), place(7, &["a", "b.c"]));
        for bad in ["[x]", "[7]a", "a.", "[-1]"] {
            assert!(Place::parse(bad).unwrap_err().contains("expected "), "{bad}");
        }
    }
}
