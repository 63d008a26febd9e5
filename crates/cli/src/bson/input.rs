//! The input, and the selected document and value in it.

use std::ffi::OsString;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::bson::{Document, Documents, Element, Rules, Skipped, split_path};
use millstream::frame::Bson;
use millstream::{Error, ErrorKind, Reader, Result};

use crate::run::{
    DEFAULT_RECORD_LIMIT, Decoding, Network, Progress, Settings, Show, Source, SourceNetwork, count_text, record_size,
};
use crate::signals::Signals;
use crate::{Ending, message};

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
    #[cfg(feature = "parquet")]
    pub(super) fn new(source: Source, decoding: Decoding, progress: Show) -> Stream {
        match source {
            Source::Command(command) => Stream { source: None, command, decoding, progress },
            source => Stream { source: Some(source), command: Vec::new(), decoding, progress },
        }
    }

    /// Returns the words after `--`.
    pub(super) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Returns whether standard input is the source because no other is given.
    pub(super) fn reads_input(&self) -> bool {
        self.source.is_none() && self.command.is_empty()
    }

    /// Returns whether a progress line is requested, depending on whether records are printed.
    pub(super) fn shows_progress(&self, prints: bool) -> bool {
        self.progress.is_wanted(prints)
    }

    /// Opens the source, and the progress line if one is requested.
    pub(super) fn open(&self, limit: usize, network: &Network, signals: &mut Signals, prints: bool) -> Result<Input> {
        let source = match (&self.source, self.command.is_empty()) {
            (_, false) => Source::Command(self.command.clone()),
            (Some(source), true) => source.clone(),
            (None, true) => Source::Stdin,
        };
        source.preview(network)?;
        if matches!(source, Source::Command(_)) {
            crate::guard::start();
            signals.watch()?;
        }
        let builder = self.decoding.reader().record_limit(limit).cancel(signals.token());
        let reader = source.open(builder, &Settings::of_network(network))?;
        signals.watch()?;
        let progress = self.shows_progress(prints).then(|| Progress::start(reader.progress().source_size));
        if let Some(progress) = &progress {
            progress.source(reader.name());
        }
        Ok(Input { documents: Documents::new(reader), watch: Watch { progress } })
    }
}

/// A stream that is being read.
pub(super) struct Input {
    pub(super) documents: Documents,
    watch: Watch,
}

impl Input {
    /// Applies an option to the documents.
    pub(super) fn with(self, change: impl FnOnce(Documents) -> Documents) -> Input {
        Input { documents: change(self.documents), ..self }
    }

    /// Returns the parts, for a caller that takes ownership of the documents.
    pub(super) fn into_parts(self) -> (Documents, Watch) {
        (self.documents, self.watch)
    }

    /// Shows the progress.
    pub(super) fn show(&self) {
        self.watch.show(&self.documents);
    }

    /// Ends the progress line and the source, and reports the skipped data, even if reading has failed.
    pub(super) fn close(self, read: Result<()>) -> Result<Ending> {
        self.watch.close(self.documents, read)
    }
}

/// The progress line, if there is one.
pub(super) struct Watch {
    progress: Option<Progress>,
}

impl Watch {
    /// Shows the progress of the documents.
    pub(super) fn show(&self, documents: &Documents) {
        if let Some(progress) = &self.progress {
            let reader = documents.reader();
            let position = reader.position();
            progress.update(position.bytes, position.records, reader.progress().source_bytes);
        }
    }

    /// Ends the progress line and reports the data that was skipped before reading failed.
    pub(super) fn fail(self, name: &str, skipped: &Skipped) {
        drop(self.progress);
        tell(name, skipped);
    }

    /// Ends the progress line and the source, and reports the skipped data, even if reading has failed.
    pub(super) fn close(self, documents: Documents, read: Result<()>) -> Result<Ending> {
        if read.is_ok() {
            self.show(&documents);
        }
        match self.progress {
            Some(progress) if read.is_ok() => progress.finish(),
            progress => drop(progress),
        }
        let skipped = documents.skipped().clone();
        let reader = documents.into_reader();
        let name = reader.name().to_string();
        let closed = read.and_then(|()| reader.close());
        tell(&name, &skipped);
        closed?;
        Ok(if skipped.count() == 0 { Ending::COMPLETE } else { Ending::FAILED })
    }
}

/// Reports the skipped data, one line per place.
fn tell(name: &str, skipped: &Skipped) {
    for place in skipped.places() {
        let bytes = count_text(place.len, "byte");
        let reason = place.kind.name().replace('_', " ");
        message::say(&format!(
            "{name}: skipped {bytes} at byte {}, record {}: {reason} at byte {}",
            place.offset, place.record, place.wrong_at
        ));
    }
    let told = skipped.places().len() as u64;
    if told < skipped.count() {
        message::say(&format!("{name}: and {} more", count_text(skipped.count() - told, "place")));
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
