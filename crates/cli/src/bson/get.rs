//! `millstream bson get`: one value, as JSON, as bytes, or as an array for numpy.

use clap::{Args, ValueEnum};
use millstream::bson::julia::Graph;
use millstream::bson::{Document, Element, Json, ValueRef, join_path};
use millstream::{Result, Writer};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::IsTerminal;

use crate::Ending;
use crate::escape::visible;
use crate::signals::Signals;

use super::input::{File, element, next_document, skip_to};
use super::{Done, julia, npy, unusable};

/// Print one value
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    file: File,

    /// In which form
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = Form::Json)]
    form: Form,

    /// Keep every type in JSON: {"$numberInt": "1"}
    #[arg(long)]
    canonical: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Extended JSON, in one line
    Json,
    /// The bytes of a text or a binary value as they are
    Raw,
    /// An array of numbers as a .npy file; one of Julia's with its shape
    Npy,
    /// A value of Julia's BSON.jl as JSON, with what it shares and refers to
    Julia,
}

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let place = options.file.place();
    let mut reader = options.file.open(signals)?;
    let name = reader.name().to_string();
    skip_to(&mut reader, place.document)?;
    let document = next_document(&mut reader, place.document)?;
    let mut out = Writer::builder().cancel(signals.token()).stdout()?;
    let json = if options.canonical { Json::Canonical } else { Json::Relaxed };
    write(document, &place.keys, options.form, json, &mut out)
        .map_err(|error| error.with_name(&name).with_record(place.document))?;
    out.close()?;
    Ok(Ending::COMPLETE)
}

fn write(document: Document<'_>, keys: &[String], form: Form, json: Json, out: &mut Writer) -> Result<()> {
    if form == Form::Julia {
        return write_julia(&julia::read(document, keys)?, out);
    }
    let element = if keys.is_empty() { None } else { Some(element(document, keys)?) };
    let mut text = Vec::new();
    match (form, element) {
        (Form::Json, None) => document.append_json(&mut text, json)?,
        (Form::Json, Some(element)) => element.append_json(&mut text, json)?,
        (Form::Raw, None) => return out.write(document.as_bytes()),
        (Form::Raw, Some(element)) => return out.write(raw(&element, keys)?),
        (Form::Npy, None) => return Err(unusable("a whole document", "a path to an array of numbers")),
        (Form::Npy, Some(element)) => return npy::write(document, &element, keys, out),
        (Form::Julia, _) => unreachable!("returned above"),
    }
    if is_seen() {
        make_visible(&mut text);
    }
    text.push(b'\n');
    out.write(&text)
}

/// Writes a value's text as it comes to be: it can be many times as long as the file.
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
    let mut text = Text { out, is_seen: is_seen(), result: Ok(()) };
    // What stopped it is in there.
    let _ = write!(text, "{graph}");
    text.result?;
    out.write(b"\n")
}

/// Whether what is printed goes to a terminal, where text can play tricks.
pub(super) fn is_seen() -> bool {
    std::io::stdout().is_terminal()
}

/// Escapes what JSON leaves as it is in strings and a terminal would obey. It is the same JSON then.
pub(super) fn make_visible(json: &mut Vec<u8>) {
    if let Cow::Owned(shown) = visible(&String::from_utf8_lossy(json)) {
        *json = shown.into_bytes();
    }
}

/// What is raw of a value.
fn raw<'a>(element: &Element<'a>, keys: &[String]) -> Result<&'a [u8]> {
    match element.value()? {
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => Ok(text.as_bytes()),
        ValueRef::Binary { bytes, .. } => Ok(bytes),
        ValueRef::Document(document) => Ok(document.as_bytes()),
        ValueRef::Array(array) => Ok(array.as_bytes()),
        value => Err(unusable(
            format!("a value of type {} at {}", value.kind(), join_path(keys)),
            "a text, bytes, a document or an array",
        )),
    }
}
