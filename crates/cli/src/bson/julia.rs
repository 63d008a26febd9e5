//! Values of Julia's BSON.jl files, for people: a row in the tree, or one value found by its path.
//!
//! A row looks at the document of that value alone, under a small limit of memory: what is larger, or refers to
//! something elsewhere in the file, is shown as the plain BSON that it is.

use millstream::bson::julia::{Graph, Kind, Options, Value, Values};
use millstream::bson::{Document, join_path};
use millstream::{Error, ErrorKind, Result};
use std::fmt::{self, Write as _};

use crate::message::printable;

/// What making one row may take, in bytes.
const ROW_MEMORY: u64 = 256 << 10;

/// So much of a value's text is shown.
const TEXT_LIMIT: usize = 60;

/// So many elements of an array are shown.
const SHOWN: usize = 4;

/// So many members a value of Julia's has at most: a tag, three fields, and `_backrefs` if it is a whole file.
const MOST_MEMBERS: usize = 5;

/// What a row says.
pub(super) struct Row {
    /// Julia's name of the type.
    pub(super) kind: String,
    pub(super) summary: String,
    /// Whether there is nothing more to show below it.
    pub(super) is_all: bool,
}

/// The row of a document that is a value of Julia's.
pub(super) fn row(document: Document<'_>) -> Option<Row> {
    // One with more members is none, and walking over all of them for a tag can take long.
    if document.iter().take(MOST_MEMBERS + 1).count() > MOST_MEMBERS {
        return None;
    }
    let tag = document.get::<&str>("tag").ok()??;
    if tag == "backref" {
        let number = document.get::<i64>("ref").ok()??;
        // Julia counts from 1, paths from 0.
        return Some(Row {
            kind: "backref".into(),
            summary: format!("_backrefs.{}", number.checked_sub(1)?),
            is_all: true,
        });
    }
    let graph = Graph::read_with(document, &Options::new().memory(ROW_MEMORY)).ok()?;
    let value = graph.root();
    let rank_and_size = |size: &[u64]| size.iter().map(u64::to_string).collect::<Vec<_>>().join("×");
    let (kind, summary) = match value.kind() {
        Kind::Document(_) => return None, // an ordinary document, whatever its tag says
        Kind::Array(array) => {
            let kind = format!("Array{{{},{}}}", array.element_type(), array.size().len());
            let bytes = array.payload().map(|payload| format!(", {}", super::ls::size(payload.len())));
            (kind, format!("{}{}{}", rank_and_size(array.size()), bytes.unwrap_or_default(), first(array.elements())))
        }
        Kind::BitArray(size, bits) => {
            (format!("BitArray{{{}}}", size.len()), format!("{}{}", rank_and_size(&size), first(bits)))
        }
        Kind::Struct(of, fields) => {
            let noun = if fields.len() == 1 { "field" } else { "fields" };
            let row = Row { kind: of.to_string(), summary: format!("{} {noun}", fields.len()), is_all: false };
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
        Kind::Anonymous(_) => ("Function".into(), "(with a body, which is not looked into)".into()),
        Kind::Function(path) => ("Function".into(), beginning(path)),
        Kind::Module(path) => ("Module".into(), beginning(path)),
        Kind::Tuple(_) => ("Tuple".into(), beginning(value)),
        _ => (tag.into(), beginning(value)),
    };
    let kind = printable(&kind);
    let is_all = !matches!(value.kind(), Kind::Dict(..) | Kind::Set(..) | Kind::Tuple(..));
    Some(Row { kind, summary, is_all })
}

/// The first elements of an array of single values.
fn first(elements: Values<'_>) -> String {
    let count = elements.len();
    let shown: Vec<Value<'_>> = elements.take(SHOWN).collect();
    if shown.is_empty() || shown.iter().any(|value| !matches!(value.kind(), Kind::Scalar(_))) {
        return String::new();
    }
    let dots = if count > shown.len() { ", …" } else { "" };
    format!(": {}{dots}", shown.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", "))
}

/// The first characters of something's text; the rest is not even made.
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
    // An error says that there is more.
    let _ = write!(text, "{shown}");
    printable(&text.0)
}

/// The value at the end of a path: keys of documents, positions in arrays, tuples and structs, the first being 0.
pub(super) fn find<'g>(graph: &'g Graph<'_>, keys: &[String]) -> Result<Value<'g>> {
    let mut value = graph.root();
    for (i, key) in keys.iter().enumerate() {
        let position = || key.parse::<usize>().ok();
        let inside = match value.kind() {
            Kind::Document(_) => value.get(key),
            Kind::Array(array) => position().and_then(|position| array.elements().get(position)),
            Kind::Tuple(values) | Kind::Struct(_, values) | Kind::BitArray(_, values) => {
                position().and_then(|position| values.get(position))
            }
            Kind::NamedTuple(..) => value.get(key),
            _ => None,
        };
        value = inside.ok_or_else(|| {
            Error::new(ErrorKind::KeyMissing).with_found("nothing there").with_path(join_path(&keys[..=i]))
        })?;
    }
    Ok(value)
}
