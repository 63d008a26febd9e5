//! `millstream bson ls`: shows the tree of one document, with types, sizes and shapes.
//!
//! It reads only the parts that it shows, and the lengths of members that it skips on the way. It keeps only the
//! document, so memory use does not depend on the number of members.

use clap::Args;
use millstream::bson::{Array, Document, Element, ElementType, Json, Layout, ValueRef, join_path};
use millstream::{ErrorKind, Result, Writer, is_trick, put};

use crate::Ending;
use crate::escape::visible;
use crate::signals::Signals;
use crate::size;
use crate::standard;

use super::Done;
use super::input::{File, Opened, element, next_document};
use super::julia::{self, Backrefs};

/// Show the tree of a document: keys, types, sizes, shapes
///
/// Shows the first document, unless the path begins with the number of another one: [7]. The content of long arrays of
/// numbers is not read, so this is fast for uncompressed files of any size: at most 10000 members or elements are
/// counted, as in '[more than 10000] of double', whose type is that of the elements counted.
#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    file: File,

    /// The maximum depth to show
    #[arg(long, value_name = "LEVELS", default_value_t = 4)]
    depth: usize,

    /// The maximum number of members of a document, or elements of an array, to show
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,

    /// Show all members and elements, regardless of depth and length
    #[arg(long, conflicts_with_all = ["depth", "limit"])]
    all: bool,

    /// Show values of Julia's BSON.jl as plain documents
    #[arg(long)]
    plain: bool,
}

/// The maximum number of members that are counted, if only their number is shown.
const COUNT_LIMIT: usize = 10_000;

/// The number of characters of a text that are shown.
const TEXT_LIMIT: usize = 60;

/// The number of characters of a key that are shown.
const KEY_LIMIT: usize = 1000;

/// The maximum width to which columns are aligned.
const MOST_WIDTH: usize = 100;

pub(super) fn run(options: &Options, signals: &mut Signals) -> Done {
    let number = options.file.place().document;
    let builder = Writer::builder().cancel(signals.token());
    match options.file.open(signals)? {
        Opened::Image(image) => show(options, image.document()?, image.name(), standard::output(builder)?)?,
        Opened::Stream(mut reader) => {
            let name = reader.name().to_string();
            show(options, next_document(&mut reader, number)?, &name, standard::output(builder)?)?;
        }
    }
    Ok(Ending::COMPLETE)
}

fn show(options: &Options, document: Document<'_>, name: &str, out: Writer) -> Result<()> {
    let place = options.file.place();
    let located = |error: millstream::Error| error.with_name(name).with_record(place.document);
    let mut tree = Tree {
        backrefs: Backrefs::of(document),
        out,
        depth: if options.all { usize::MAX } else { options.depth },
        limit: if options.all { usize::MAX } else { options.limit },
        plain: options.plain,
    };
    match place.keys.is_empty() {
        true => {
            let members = count(&document);
            put!(tree.out, "document [", place.document, "] at byte ", document.offset(), ": ", members, '\n')?;
            tree.members(&document, 1).map_err(located)?;
        }
        false => {
            let element = element(document, &place.keys).map_err(located)?;
            let row = tree.row(&element).map_err(located)?;
            tree.print(0, &row, (0, 0))?;
            tree.inside(&element, &row, 1).map_err(located)?;
        }
    }
    tree.out.close().map(drop)
}

/// A line of the tree.
struct Row {
    label: String,
    kind: String,
    summary: String,
    /// Whether the row has no children to show.
    is_all: bool,
}

/// The tree to print, and its limits.
struct Tree<'a> {
    backrefs: Backrefs<'a>,
    out: Writer,
    depth: usize,
    limit: usize,
    plain: bool,
}

impl Tree<'_> {
    /// Prints the members of a document, one per row, with their children.
    ///
    /// Each row is formatted twice, the first time to measure its width. So no rows have to be kept, regardless of
    /// their number.
    fn members(&mut self, document: &Document<'_>, level: usize) -> Result<()> {
        let mut widths = (0, 0);
        for element in document.iter().take(self.limit) {
            let Ok(row) = element.and_then(|element| self.row(&element)) else { break };
            widths.0 = widths.0.max(row.label.chars().count());
            widths.1 = widths.1.max(row.kind.chars().count());
        }
        let widths = (widths.0.min(MOST_WIDTH), widths.1.min(MOST_WIDTH));
        let mut elements = document.iter();
        // Content before an error is shown, because users look for it in a damaged document.
        for element in elements.by_ref().take(self.limit) {
            let element = element?;
            let row = self.row(&element)?;
            self.print(level, &row, widths)?;
            self.inside(&element, &row, level + 1)?;
        }
        let mut left = 0;
        for element in elements.take(COUNT_LIMIT) {
            element?;
            left += 1;
        }
        if left > 0 {
            let more = if left == COUNT_LIMIT { " or more" } else { "" };
            put!(self.out, "  ".repeat(level), "… ", left, more, " not shown\n")?;
        }
        Ok(())
    }

    fn print(&mut self, level: usize, row: &Row, (label, kind): (usize, usize)) -> Result<()> {
        let line = format!("{}{:label$}  {:kind$}  {}", "  ".repeat(level), row.label, row.kind, row.summary);
        put!(self.out, line.trim_end(), '\n')
    }

    fn row(&self, element: &Element<'_>) -> Result<Row> {
        let label = label(&element.key_lossy());
        if let (ElementType::Document, false) = (element.kind(), self.plain)
            && let Some(row) = julia::row(element.get()?, &self.backrefs)
        {
            return Ok(Row { label, kind: row.kind, summary: row.summary, is_all: row.is_all });
        }
        Ok(Row { label, kind: element.kind().name().to_string(), summary: summary(element)?, is_all: false })
    }

    /// Prints the children of an element that is a document or an array, if that is not too deep.
    fn inside(&mut self, element: &Element<'_>, row: &Row, level: usize) -> Result<()> {
        if level > self.depth || row.is_all {
            return Ok(());
        }
        match element.kind() {
            ElementType::Document => self.members(&element.get::<Document>()?, level),
            // Arrays of single values are shown in their row.
            ElementType::Array => match element.get::<Array>()? {
                array if is_flat(&array)? => Ok(()),
                array => self.members(&array.as_document(), level),
            },
            _ => Ok(()),
        }
    }
}

/// Formats a key for display: as in a path, even if it contains invisible characters.
fn label(key: &str) -> String {
    if let Some((end, _)) = key.char_indices().nth(KEY_LIMIT) {
        return label(&key[..end]) + "…";
    }
    // At the start of a path, [7] is a document.
    let path = match key.starts_with('[') || key.contains(is_trick) {
        true => serde_json::Value::from(key).to_string(),
        false => join_path([key]),
    };
    visible(&path).into_owned()
}

/// Returns whether the first elements are not documents or arrays.
fn is_flat(array: &Array<'_>) -> Result<bool> {
    for element in array.iter().take(COUNT_LIMIT) {
        if matches!(element?.kind(), ElementType::Document | ElementType::Array) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Formats the number of members of a document, as far as they are counted and can be read, and its size.
fn count(document: &Document<'_>) -> String {
    let count = document.iter().take(COUNT_LIMIT + 1).take_while(Result::is_ok).count();
    let noun = if count == 1 { "member" } else { "members" };
    format!("{} {noun}, {}", counted(count), size::shown(document.len()))
}

/// Formats a number that was counted up to one more than the limit.
fn counted(count: usize) -> String {
    if count > COUNT_LIMIT { format!("more than {COUNT_LIMIT}") } else { count.to_string() }
}

/// Returns the description of a value in a row.
fn summary(element: &Element<'_>) -> Result<String> {
    let value = match element.value() {
        Ok(value) => value,
        // Invalid UTF-8 is no error here: the value is shown by its size.
        Err(error) if error.kind() == ErrorKind::Utf8Invalid => {
            return Ok(format!("(not UTF-8, {})", size::shown(element.payload().len())));
        }
        Err(error) => return Err(error),
    };
    Ok(match value {
        ValueRef::Double(value) => format!("{value:?}"),
        ValueRef::String(text) | ValueRef::Code(text) | ValueRef::Symbol(text) => quoted(text),
        ValueRef::Document(document) => count(&document),
        ValueRef::Array(array) => summary_of_array(&array)?,
        ValueRef::Binary { subtype, bytes } => match subtype {
            0 => size::shown(bytes.len()),
            4 if bytes.len() == 16 => uuid(bytes),
            _ => format!("subtype {subtype}, {}", size::shown(bytes.len())),
        },
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::Bool(value) => value.to_string(),
        ValueRef::DateTime(date) => date.to_string(),
        ValueRef::Regex { pattern, options } => format!("/{}/{}", cut(pattern), cut(options)),
        ValueRef::DbPointer { namespace, id } => format!("{} {id}", cut(namespace)),
        ValueRef::CodeWithScope { code, .. } => quoted(code),
        ValueRef::Int32(value) => value.to_string(),
        ValueRef::Timestamp(timestamp) => format!("{}, {}", timestamp.time, timestamp.increment),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::Decimal128(value) => value.to_string(),
        // These values have no payload.
        _ if value.kind().layout() == Layout::Fixed(0) => String::new(),
        _ => {
            let mut text = Vec::new();
            element.append_json(&mut text, Json::Relaxed)?;
            String::from_utf8_lossy(&text).into_owned()
        }
    })
}

/// Formats the number and type of an array's elements, and the first elements if they are single values.
fn summary_of_array(array: &Array<'_>) -> Result<String> {
    let (mut number, mut first, mut all_same, mut shown) = (0, None, true, Vec::new());
    let flat = is_flat(array)?;
    for element in array.iter().take(COUNT_LIMIT + 1) {
        let element = element?;
        all_same &= *first.get_or_insert(element.kind()) == element.kind();
        if flat && shown.len() < 4 {
            shown.push(summary(&element)?);
        }
        number += 1;
    }
    let of = match first {
        Some(kind) if all_same => format!(" of {kind}"),
        _ => String::new(),
    };
    let dots = if number > shown.len() && !shown.is_empty() { ", …" } else { "" };
    let values = if shown.is_empty() { String::new() } else { format!(": {}{dots}", shown.join(", ")) };
    Ok(format!("[{}]{of}, {}{values}", counted(number), size::shown(array.as_bytes().len())))
}

/// Returns the first characters of a text, without control characters.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(TEXT_LIMIT).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    visible(&shown).into_owned()
}

/// Returns the first characters in quotes, followed by the total length if the text is longer.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(TEXT_LIMIT).collect();
    let json = serde_json::Value::from(shown.as_str()).to_string();
    let json = visible(&json);
    match shown.len() == text.len() {
        true => json.into_owned(),
        false => format!("{json}…, {}", size::shown(text.len())),
    }
}

fn uuid(bytes: &[u8]) -> String {
    let hex = |range: std::ops::Range<usize>| bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("uuid {}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16))
}
