//! What is read, and which document and value in it is meant.

use std::ffi::OsString;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use millstream::bson::{Document, Documents, Element, OnBad, Rules, Skipped, split_path};
use millstream::frame::Bson;
use millstream::{Error, ErrorKind, Reader, ReaderBuilder, Result};

use crate::run::{Decode, Progress, Show, Source, count_text};
use crate::signals::Signals;
use crate::{Ending, message};

/// The largest document that BSON allows.
pub(super) const DOCUMENT_LIMIT: usize = i32::MAX as usize;

/// One file, for what looks at one document.
#[derive(Args)]
pub(super) struct File {
    /// The file, or '-' for standard input
    #[arg(value_name = "FILE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath)]
    source: Source,

    /// Which value: [DOCUMENT].KEY.POSITION… [default: all of the first document]
    #[arg(value_name = "PATH", value_parser = Place::parse)]
    pub(super) place: Option<Place>,

    /// Decode a compressed source (gzip, bgzf, zstd; known by its content)
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Decode::Auto)]
    decode: Decode,
}

/// A stream of documents, for what looks at all of them.
#[derive(Args)]
pub(super) struct Stream {
    /// Where documents come from: a file, '-', tcp:HOST:PORT or unix:PATH [default: standard input]
    #[arg(value_name = "SOURCE", value_parser = OsStringValueParser::new().try_map(Source::parse))]
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
    source: Option<Source>,

    /// A command whose standard output is the source
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Decode a compressed source (gzip, bgzf, zstd; known by its content)
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Decode::Auto)]
    decode: Decode,

    /// Show progress on standard error; auto: if that is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Show::Auto)]
    progress: Show,
}

/// A document and the keys from there on, as `[7].items.0`.
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
                    None => return Err("expected a dot behind the number of the document, such as [7].items".into()),
                }
            }
        };
        let keys = split_path(path).map_err(|error| format!("{error:#}"))?;
        Ok(Place { document, keys })
    }
}

fn builder(decode: Decode, signals: &Signals) -> ReaderBuilder {
    Reader::builder().record_limit(DOCUMENT_LIMIT).cancel(signals.token()).decode(match decode {
        Decode::Auto => millstream::Decode::Auto,
        Decode::Off => millstream::Decode::Off,
    })
}

impl File {
    /// Opens it: mapped where that can be, so that only what is looked at is read.
    pub(super) fn open(&self, signals: &mut Signals) -> Result<Reader> {
        let builder = builder(self.decode, signals);
        let reader = match &self.source {
            Source::File(path) if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) => {
                builder.mapped(path)
            }
            source => source.open(builder),
        }?;
        signals.watch()?;
        Ok(reader)
    }

    pub(super) fn place(&self) -> Place {
        self.place.clone().unwrap_or_default()
    }
}

/// Passes the documents before this one.
pub(super) fn skip_to(reader: &mut Reader, document: u64) -> Result<()> {
    for passed in 0..document {
        if !reader.skip_record(&mut Bson::new())? {
            return Err(no_document(reader, document, passed));
        }
    }
    Ok(())
}

/// The document that comes next, whose number this is; nothing of it has been looked at but its length.
pub(super) fn next_document(reader: &mut Reader, number: u64) -> Result<Document<'_>> {
    let offset = reader.position().bytes;
    let name = reader.name().to_string();
    if reader.buffer().is_empty() && reader.fill()? == 0 {
        return Err(no_document(reader, number, number));
    }
    let bytes = reader.next_frame(&mut Bson::new())?.expect("there are bytes, so there is a frame or an error");
    Document::with_rules(bytes, Rules::new().depth(1000))
        .map(|document| document.at_offset(offset))
        .map_err(|error| error.with_name(name).with_record(number))
}

fn no_document(reader: &Reader, wanted: u64, count: u64) -> Error {
    Error::new(ErrorKind::KeyMissing)
        .with_name(reader.name())
        .with_found(match count {
            0 => "no document".to_string(),
            1 => "1 document".to_string(),
            _ => format!("{count} documents"),
        })
        .with_expected(format!("a document [{wanted}]; the first is [0]"))
}

/// The element that a path ends at; there is at least one key.
pub(super) fn element<'a>(document: Document<'a>, keys: &[String]) -> Result<Element<'a>> {
    document.find_path(keys)?.ok_or_else(|| no_value(keys))
}

/// The error of a path that leads nowhere.
pub(super) fn no_value(keys: &[String]) -> Error {
    Error::new(ErrorKind::KeyMissing).with_found("nothing there").with_path(millstream::bson::join_path(keys))
}

impl Stream {
    /// Opens it, and the progress line if there is to be one.
    pub(super) fn open(&self, signals: &mut Signals, prints: bool) -> Result<Input> {
        let source = match (&self.source, self.command.is_empty()) {
            (_, false) => Source::Command(self.command.clone()),
            (Some(source), true) => source.clone(),
            (None, true) => Source::Stdin,
        };
        source.preview()?;
        if matches!(source, Source::Command(_)) {
            signals.watch()?;
        }
        let reader = source.open(builder(self.decode, signals))?;
        signals.watch()?;
        let progress = self.progress.is_wanted(prints).then(|| Progress::start(reader.progress().source_size));
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
    /// The same, read otherwise.
    pub(super) fn with(self, change: impl FnOnce(Documents) -> Documents) -> Input {
        Input { documents: change(self.documents), ..self }
    }

    /// For one who takes the documents.
    pub(super) fn into_parts(self) -> (Documents, Watch) {
        (self.documents, self.watch)
    }

    /// Shows how far it is.
    pub(super) fn show(&self) {
        self.watch.show(&self.documents);
    }

    /// Ends the progress line and the source, and tells what was skipped, also where reading has failed.
    pub(super) fn close(self, read: Result<()>) -> Result<Ending> {
        self.watch.close(self.documents, read)
    }
}

/// The progress line, if there is one.
pub(super) struct Watch {
    progress: Option<Progress>,
}

impl Watch {
    /// Shows how far the documents are.
    pub(super) fn show(&self, documents: &Documents) {
        if let Some(progress) = &self.progress {
            let reader = documents.reader();
            let position = reader.position();
            progress.update(position.bytes, position.records, reader.progress().source_bytes);
        }
    }

    /// Ends the progress line and tells what was skipped before reading failed.
    pub(super) fn fail(self, name: &str, skipped: &Skipped) {
        drop(self.progress);
        tell(name, skipped);
    }

    /// Ends the progress line and the source, and tells what was skipped, also where reading has failed.
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

/// Says what was skipped, a line a place.
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

/// What happens at a document that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnError {
    /// It is an error, and the end
    Stop,
    /// Go on behind it, say where it was, and end with status 1
    Skip,
}

impl From<OnError> for OnBad {
    fn from(on_error: OnError) -> OnBad {
        match on_error {
            OnError::Stop => OnBad::Stop,
            OnError::Skip => OnBad::Skip,
        }
    }
}

/// How careful to be, for what checks documents.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Strictness {
    /// Let pass what can be read all the same
    Lenient,
    /// What the specification says
    Standard,
    /// Also keys of arrays in order, and no key twice
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
