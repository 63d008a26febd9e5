//! `millstream bson get`: prints one value, as JSON, as bytes, or as an array for numpy.

use clap::{Args, ValueEnum};
use millstream::bson::julia::{Graph, Kind};
use millstream::bson::{Document, Element, ElementType, Json, ValueRef, join_path};
use millstream::{Error, Result, Writer};
use std::fmt::{self, Write as _};
use std::ops::Range;

use crate::escape::{visible, visible_lines};
use crate::extended_json::Style;
use crate::signals::Signals;
use crate::{Ending, size, standard};

use super::input::{File, Opened, element, next_document};
use super::{Done, julia, npy, unusable};

/// Print one value
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    file: File,

    /// The output form
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = Form::Json)]
    form: Form,

    /// Keep every type in JSON: {"$numberInt": "1"}
    #[arg(long)]
    canonical: bool,

    /// The maximum memory that a Julia value may use in addition to the document [default: 48M]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    memory_limit: Option<u64>,
}

/// The default memory limit of a Julia value.
const MEMORY_LIMIT: u64 = 48 << 20;

fn memory_size(text: &str) -> std::result::Result<u64, String> {
    size::parse(text, 1..=1 << 40)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Extended JSON, on one line
    Json,
    /// The raw bytes of a text or a binary value
    Raw,
    /// An array of numbers as a .npy file; a Julia array with its shape
    Npy,
    /// A value of Julia's BSON.jl as JSON, with shared values and references resolved
    Julia,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    if options.canonical && options.form != Form::Json {
        let form = options.form.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
        return Err(unusable(format!("--canonical with --as {form}"), "--as json"));
    }
    if options.memory_limit.is_some() && !matches!(options.form, Form::Julia | Form::Npy) {
        return Err(unusable("--memory-limit for plain data", "--as julia or --as npy"));
    }
    let place = options.file.place();
    let task = Task {
        keys: &place.keys,
        form: options.form,
        style: Style {
            json: if options.canonical { Json::Canonical } else { Json::Relaxed },
            is_seen: standard::is_seen(),
        },
        memory: options.memory_limit.unwrap_or(MEMORY_LIMIT),
    };
    let token = signals.token().clone();
    let print = |document: Document<'_>, name: &str| -> Result<()> {
        let mut out = standard::output(Writer::builder().cancel(&token))?;
        task.write(document, &mut out).map_err(|error| error.with_name(name).with_record(place.document))?;
        out.close().map(drop)
    };
    match options.file.open(signals)? {
        Opened::Image(mut image) => {
            if let Some(range) = task.range(image.document()?) {
                image.fill(range)?;
            }
            print(image.document()?, image.name())?;
        }
        Opened::Stream(mut reader) => {
            let name = reader.name().to_string();
            print(next_document(&mut reader, place.document)?, &name)?;
        }
    }
    Ok(Ending::COMPLETE)
}

/// The value to print, and the form.
struct Task<'k> {
    keys: &'k [String],
    form: Form,
    style: Style,
    memory: u64,
}

impl Task<'_> {
    /// Returns the range of the document's bytes to print. All bytes that are needed to locate it have been read
    /// already.
    fn range(&self, document: Document<'_>) -> Option<Range<usize>> {
        let all = document.as_bytes();
        if self.keys.is_empty() || self.form == Form::Julia {
            return Some(0..all.len());
        }
        let element = element(document, self.keys).ok()?;
        if self.form == Form::Npy && element.kind() == ElementType::Document {
            let graph = julia::read(document, self.keys, self.memory).ok()?;
            let Kind::Array(array) = graph.root().kind() else { return None };
            return part_of(all, array.payload()?);
        }
        part_of(all, element.payload())
    }

    fn write(&self, document: Document<'_>, out: &mut Writer) -> Result<()> {
        let keys = self.keys;
        if self.form == Form::Julia {
            return write_julia(&julia::read(document, keys, self.memory)?, out);
        }
        let element = if keys.is_empty() { None } else { Some(element(document, keys)?) };
        match (self.form, element) {
            (Form::Json, None) => self.style.write_line(&document, &mut Vec::new(), out),
            (Form::Json, Some(element)) => self.style.write_value(&element, out),
            (Form::Raw, None) => self.write_bytes(document.as_bytes(), out),
            (Form::Raw, Some(element)) => self.write_raw(&element, out),
            (Form::Npy, None) => Err(unusable("a whole document", "a path to an array of numbers")),
            (Form::Npy, _) if self.style.is_seen => Err(bytes_for_a_terminal()),
            (Form::Npy, Some(element)) => npy::write(document, &element, keys, self.memory, out),
            (Form::Julia, _) => unreachable!("returned above"),
        }
    }

    /// Writes the raw bytes of a value.
    fn write_raw(&self, element: &Element<'_>, out: &mut Writer) -> Result<()> {
        match element.value()? {
            ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) if self.style.is_seen => {
                // The whole text could be several times as long as the value.
                let mut rest = text;
                while !rest.is_empty() {
                    let (piece, others) = rest.split_at(rest.floor_char_boundary(4096));
                    out.write(visible_lines(piece).as_bytes())?;
                    rest = others;
                }
                Ok(())
            }
            ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => out.write(text.as_bytes()),
            ValueRef::Binary { bytes, .. } => self.write_bytes(bytes, out),
            ValueRef::Document(document) => self.write_bytes(document.as_bytes(), out),
            ValueRef::Array(array) => self.write_bytes(array.as_bytes(), out),
            value => Err(unusable(
                format!("a value of type {} at {}", value.kind(), join_path(self.keys)),
                "a text, bytes, a document or an array",
            )),
        }
    }

    /// Writes binary data, unless the output is a terminal, which would interpret some of it.
    fn write_bytes(&self, bytes: &[u8], out: &mut Writer) -> Result<()> {
        match self.style.is_seen {
            true => Err(bytes_for_a_terminal()),
            false => out.write(bytes),
        }
    }
}

fn bytes_for_a_terminal() -> Error {
    unusable("binary data for a terminal", "a file or a pipe to write them to, or --as json")
}

/// Returns the position of these bytes within the document's bytes, or the range of the whole document if they are not
/// part of it.
fn part_of(all: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(all.as_ptr().addr());
    let range = start.map(|start| start..start.saturating_add(part.len())).filter(|range| range.end <= all.len());
    Some(range.unwrap_or(0..all.len()))
}

/// Writes a value's text as it is produced, because it can be many times as long as the file.
fn write_julia(graph: &Graph<'_>, out: &mut Writer) -> Result<()> {
    struct Text<'w> {
        out: &'w mut Writer,
        is_seen: bool,
        result: Result<()>,
    }
    impl fmt::Write for Text<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.result = match self.is_seen {
                true => self.out.write(visible(text).as_bytes()),
                false => self.out.write(text.as_bytes()),
            };
            if self.result.is_ok() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut text = Text { out, is_seen: standard::is_seen(), result: Ok(()) };
    // The sink's error is the reason for stopping.
    let _ = write!(text, "{graph}");
    text.result?;
    out.write(b"\n")
}
