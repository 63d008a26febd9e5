//! Values of Julia's BSON.jl files, formatted for people: a row in the tree, or one value found by its path.
//!
//! A row reads only the document of that value, with a small memory limit: a value that is larger, or refers to another
//! part of the file, is shown as plain BSON.

use millstream::Result;
use millstream::bson::julia::{Graph, Kind, Options, Value, Values};
use millstream::bson::{Array, Document, ElementType};
use std::cell::OnceCell;
use std::fmt::{self, Write as _};

use crate::escape::visible;

use super::absent::no_value;

/// The memory limit for creating one row, in bytes.
const ROW_MEMORY: u64 = 256 << 10;

/// The number of characters of a value's text that are shown.
const TEXT_LIMIT: usize = 60;

/// The number of elements of an array that are shown.
const SHOWN: usize = 4;

/// The maximum number of members of a Julia value: a tag, three fields, and `_backrefs` if the value is a whole file.
const MOST_MEMBERS: usize = 5;

/// The content of a row.
pub(super) struct Row {
    /// Julia's name of the type.
    pub(super) kind: String,
    pub(super) summary: String,
    /// Whether the row has no children to show.
    pub(super) is_all: bool,
}

/// The shared objects of a file, which are counted at the first reference to one of them.
pub(super) struct Backrefs<'a> {
    file: Document<'a>,
    count: OnceCell<u64>,
}

impl<'a> Backrefs<'a> {
    pub(super) fn of(file: Document<'a>) -> Backrefs<'a> {
        Backrefs { file, count: OnceCell::new() }
    }

    /// Returns the position of the shared object that this document refers to, if it is a reference: it must have
    /// exactly `tag` and `ref`, and the file must have enough objects.
    fn position(&self, document: Document<'_>) -> Option<u64> {
        let mut number = None;
        for element in document {
            let element = element.ok()?;
            match (element.key().ok()?, element.kind()) {
                ("tag", ElementType::String) => {}
                ("ref", ElementType::Int32 | ElementType::Int64) if number.is_none() => {
                    number = Some(element.get::<u64>().ok()?);
                }
                _ => return None,
            }
        }
        // Julia counts from 1, paths from 0.
        let position = number?.checked_sub(1)?;
        let count = || match self.file.get::<Array<'_>>("_backrefs") {
            Ok(Some(objects)) => objects.iter().take_while(|object| object.is_ok()).count() as u64,
            _ => 0,
        };
        (position < *self.count.get_or_init(count)).then_some(position)
    }
}

/// Returns the row of a document that is a Julia value.
pub(super) fn row(document: Document<'_>, backrefs: &Backrefs<'_>) -> Option<Row> {
    // A document with more members is not a Julia value, and scanning all members for a tag can take long.
    if document.iter().take(MOST_MEMBERS + 1).count() > MOST_MEMBERS {
        return None;
    }
    let tag = document.get::<&str>("tag").ok()??;
    if tag == "backref" {
        let position = backrefs.position(document)?;
        return Some(Row { kind: "backref".into(), summary: format!("_backrefs.{position}"), is_all: true });
    }
    let graph = Graph::read_with(document, &Options::new().memory(ROW_MEMORY)).ok()?;
    let value = graph.root();
    let rank_and_size = |size: &[u64]| size.iter().map(u64::to_string).collect::<Vec<_>>().join("×");
    let (kind, summary) = match value.kind() {
        Kind::Document(_) => return None, // an ordinary document, despite its tag
        Kind::Array(array) => {
            let kind = format!("Array{{{},{}}}", array.element_type(), array.size().len());
            let bytes = array.payload().map(|payload| format!(", {}", crate::size::shown(payload.len())));
            (kind, format!("{}{}{}", rank_and_size(array.size()), bytes.unwrap_or_default(), first(array.elements())))
        }
        Kind::BitArray(size, bits) => {
            (format!("BitArray{{{}}}", size.len()), format!("{}{}", rank_and_size(&size), first(bits)))
        }
        Kind::Struct(of, fields) => {
            let noun = if fields.len() == 1 { "field" } else { "fields" };
            let kind = visible(&of.to_string()).into_owned();
            let row = Row { kind, summary: format!("{} {noun}", fields.len()), is_all: false };
            return Some(row);
        }
        Kind::Dict(of, keys, _) => (of.to_string(), format!("{} entries", keys.len())),
        Kind::Set(of, elements) => (of.to_string(), format!("{} elements", elements.len())),
        Kind::Symbol(name) => (
            "Symbol".into(),
            format!(":{}", beginning(String::from_utf8_lossy(&name[..name.len().min(8 * TEXT_LIMIT)]))),
        ),
        Kind::Type(of) => ("Type".into(), beginning(of)),
        Kind::Scalar(scalar) => (scalar.type_name().into(), beginning(scalar)),
        Kind::Anonymous(_) => ("Function".into(), "(with a body, which is not shown)".into()),
        Kind::Function(path) => ("Function".into(), beginning(path)),
        Kind::Module(path) => ("Module".into(), beginning(path)),
        Kind::Tuple(_) => ("Tuple".into(), beginning(value)),
        _ => (tag.into(), beginning(value)),
    };
    let kind = visible(&kind).into_owned();
    let is_all = !matches!(value.kind(), Kind::Dict(..) | Kind::Set(..) | Kind::Tuple(..));
    Some(Row { kind, summary, is_all })
}

/// Formats the first elements of an array of single values.
fn first(elements: Values<'_>) -> String {
    let count = elements.len();
    let shown: Vec<Value<'_>> = elements.take(SHOWN).collect();
    if shown.is_empty() || shown.iter().any(|value| !matches!(value.kind(), Kind::Scalar(_))) {
        return String::new();
    }
    let dots = if count > shown.len() { ", …" } else { "" };
    format!(": {}{dots}", shown.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", "))
}

/// Formats the first characters of a text; the remaining ones are not generated.
fn beginning(shown: impl fmt::Display) -> String {
    struct Beginning(String, usize);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                if self.1 == 0 {
                    self.0.push('…');
                    return Err(fmt::Error);
                }
                self.0.push(c);
                self.1 -= 1;
            }
            Ok(())
        }
    }
    let mut text = Beginning(String::new(), TEXT_LIMIT);
    // An error means that there is more text.
    let _ = write!(text, "{shown}");
    visible(&text.0).into_owned()
}

/// Returns the value at the end of a path. The path has the keys of the plain document, as `ls` shows them. The value
/// uses at most `memory` bytes.
pub(super) fn read<'a>(document: Document<'a>, keys: &[String], memory: u64) -> Result<Graph<'a>> {
    Graph::read_path(document, keys, &Options::new().memory(memory))?.ok_or_else(|| no_value(keys))
}
