//! The values of a block in the shape of its columns: for each plain value, where its text is.

use super::stop::{Reason, Stop};
use super::text::Text;
use super::token;
use crate::layout::Names;
use crate::options::Duplicates;
use crate::schema::is_json;
use crate::span::{ABSENT, Content, Span};
use arrow_schema::{DataType, FieldRef, Fields};
use std::collections::HashMap;

/// The position after a value.
type Read = Result<usize, Box<Stop>>;

fn invalid(at: usize) -> Box<Stop> {
    Stop::new(at, Reason::Invalid)
}

/// The values of one column.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) field: FieldRef,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Plain(Plain),
    Struct(Members),
    List(Items),
}

/// Values without inner values.
#[derive(Debug)]
pub(super) struct Plain {
    accepts: Accepts,
    pub(super) spans: Vec<Span>,
}

/// Which values a column of a plain type accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    Nothing,
    Bools,
    Numbers,
    Strings,
    /// By a schema, a string can denote a number.
    NumbersAndStrings,
    /// Every value, as text of JSON.
    Everything,
}

#[derive(Debug)]
pub(super) struct Items {
    pub(super) valid: Vec<bool>,
    /// The number of items up to each row, and before the first one.
    pub(super) offsets: Vec<i32>,
    pub(super) item: Box<Node>,
}

#[derive(Debug)]
pub(super) struct Members {
    pub(super) valid: Vec<bool>,
    pub(super) nodes: Vec<Node>,
    keys: Keys,
}

/// The names of members.
#[derive(Debug)]
struct Keys {
    /// `"name":` for each; empty if it cannot be written so.
    written: Vec<Box<[u8]>>,
    positions: HashMap<Box<[u8]>, usize>,
    /// The position of the member that is likely to be next.
    next: usize,
}

impl Node {
    pub(super) fn new(field: &FieldRef, is_inferred: bool) -> Node {
        let kind = match field.data_type() {
            DataType::Struct(fields) => Kind::Struct(Members::new(fields, is_inferred)),
            DataType::List(item) => {
                let item = Box::new(Node::new(item, is_inferred));
                Kind::List(Items { valid: Vec::new(), offsets: vec![0], item })
            }
            plain => {
                let accepts = match plain {
                    _ if is_json(field) => Accepts::Everything,
                    DataType::Null => Accepts::Nothing,
                    DataType::Boolean => Accepts::Bools,
                    plain if plain.is_numeric() && is_inferred => Accepts::Numbers,
                    plain if plain.is_numeric() => Accepts::NumbersAndStrings,
                    _ => Accepts::Strings,
                };
                Kind::Plain(Plain { accepts, spans: Vec::new() })
            }
        };
        Node { field: field.clone(), kind }
    }

    pub(super) fn len(&self) -> usize {
        match &self.kind {
            Kind::Plain(plain) => plain.spans.len(),
            Kind::Struct(members) => members.valid.len(),
            Kind::List(items) => items.valid.len(),
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        match &mut self.kind {
            Kind::Plain(plain) => plain.spans.truncate(len),
            Kind::Struct(members) => members.truncate(len),
            Kind::List(items) => {
                items.valid.truncate(len);
                items.offsets.truncate(len + 1);
                items.item.truncate(items.offsets.last().map_or(0, |&end| end as usize));
            }
        }
    }

    fn push_null(&mut self) {
        match &mut self.kind {
            Kind::Plain(plain) => plain.spans.push(ABSENT),
            Kind::Struct(members) => {
                members.nodes.iter_mut().for_each(Node::push_null);
                members.valid.push(false);
            }
            Kind::List(items) => {
                items.valid.push(false);
                items.offsets.push(items.item.len() as i32);
            }
        }
    }

    /// Reads a value. `depth` is the number of arrays and objects around it.
    fn read(&mut self, text: &mut Text<'_>, at: usize, depth: usize, names: Names) -> Read {
        let bytes = text.bytes;
        let &first = bytes.get(at).ok_or_else(|| invalid(at))?;
        match (&mut self.kind, first) {
            (_, b'n') => {
                let end = token::word(bytes, at).ok_or_else(|| invalid(at))?;
                if !self.field.is_nullable() {
                    return Err(Stop::new(at, Reason::Missing(self.field.clone())));
                }
                self.push_null();
                Ok(end)
            }
            (Kind::Plain(plain), b'"') if plain.accepts.strings() => {
                let (end, is_escaped) = token::string(bytes, at + 1).ok_or_else(|| invalid(at))?;
                plain.spans.push(match is_escaped {
                    false => Span { start: at as u32 + 1, end: end as u32 },
                    true => text.decode(at + 1, end)?,
                });
                Ok(end + 1)
            }
            (Kind::Plain(plain), b'-' | b'0'..=b'9') if plain.accepts.numbers() => {
                let end = token::number(bytes, at).ok_or_else(|| invalid(at))?;
                plain.spans.push(Span { start: at as u32, end: end as u32 });
                Ok(end)
            }
            (Kind::Plain(plain), b't' | b'f') if plain.accepts == Accepts::Bools => {
                let end = token::word(bytes, at).ok_or_else(|| invalid(at))?;
                plain.spans.push(Span { start: at as u32, end: end as u32 });
                Ok(end)
            }
            (Kind::Plain(plain), _) if plain.accepts == Accepts::Everything => {
                let end = token::value(bytes, at, depth).ok_or_else(|| invalid(at))?;
                plain.spans.push(Span { start: at as u32, end: end as u32 });
                Ok(end)
            }
            (Kind::Struct(_) | Kind::List(_), b'{' | b'[') if depth >= token::DEPTH => Err(invalid(at)),
            (Kind::Struct(members), b'{') => members.read(text, at, depth, names),
            (Kind::List(items), b'[') => items.read(text, at, depth, names),
            _ => match token::value(bytes, at, depth) {
                Some(_) => Err(Stop::new(at, Reason::Misfit(self.field.clone()))),
                None => Err(invalid(at)),
            },
        }
    }
}

impl Accepts {
    fn strings(self) -> bool {
        matches!(self, Accepts::Strings | Accepts::NumbersAndStrings)
    }

    fn numbers(self) -> bool {
        matches!(self, Accepts::Numbers | Accepts::NumbersAndStrings)
    }
}

impl Items {
    fn read(&mut self, text: &mut Text<'_>, at: usize, depth: usize, names: Names) -> Read {
        let bytes = text.bytes;
        let first = self.item.len();
        let mut at = token::blank(bytes, at + 1);
        if bytes.get(at) != Some(&b']') {
            loop {
                let read = self.item.read(text, at, depth + 1, names);
                at = read.map_err(|stop| stop.inside(&(self.item.len() - first).to_string()))?;
                at = token::blank(bytes, at);
                match bytes.get(at) {
                    Some(b',') => at = token::blank(bytes, at + 1),
                    Some(b']') => break,
                    _ => return Err(invalid(at)),
                }
            }
        }
        self.valid.push(true);
        self.offsets.push(self.item.len() as i32);
        Ok(at + 1)
    }
}

impl Members {
    pub(super) fn new(fields: &Fields, is_inferred: bool) -> Members {
        let nodes: Vec<Node> = fields.iter().map(|field| Node::new(field, is_inferred)).collect();
        Members { valid: Vec::new(), nodes, keys: Keys::new(fields) }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.valid.truncate(len);
        self.nodes.iter_mut().for_each(|node| node.truncate(len));
        self.keys.next = 0;
    }

    /// Reads an object, which begins at this position. After an error, some members have one value more.
    pub(super) fn read(&mut self, text: &mut Text<'_>, start: usize, depth: usize, names: Names) -> Read {
        let bytes = text.bytes;
        let row = self.valid.len();
        let mut values = 0;
        // The last members of their names so far that do not fit.
        let mut unfit: Vec<(usize, Box<Stop>)> = Vec::new();
        let mut at = token::blank(bytes, start + 1);
        if bytes.get(at) != Some(&b'}') {
            loop {
                let name_at = at;
                let position;
                (position, at) = self.keys.find(text, at)?;
                at = token::blank(bytes, at);
                let Some(node) = position.and_then(|position| self.nodes.get_mut(position)) else {
                    let end = token::value(bytes, at, depth + 1).ok_or_else(|| invalid(at))?;
                    if names.is_closed {
                        let name = text.name(name_at);
                        return Err(Stop::new(name_at, Reason::Unknown).inside(&name));
                    }
                    at = token::blank(bytes, end);
                    match bytes.get(at) {
                        Some(b',') => at = token::blank(bytes, at + 1),
                        Some(b'}') => break,
                        _ => return Err(invalid(at)),
                    }
                    continue;
                };
                let mut is_read = true;
                if node.len() > row {
                    match names.duplicates {
                        Duplicates::Error => return Err(Stop::new(name_at, Reason::Twice).inside(node.field.name())),
                        Duplicates::First => {
                            at = token::value(bytes, at, depth + 1).ok_or_else(|| invalid(at))?;
                            is_read = false;
                        }
                        Duplicates::Last => {
                            node.truncate(row);
                            values -= 1;
                        }
                    }
                }
                if is_read {
                    match node.read(text, at, depth + 1, names) {
                        Ok(end) => {
                            at = end;
                            values += 1;
                            unfit.retain(|(member, _)| Some(*member) != position);
                        }
                        Err(stop) => {
                            let stop = stop.inside(node.field.name());
                            let (Duplicates::Last, Some(member)) = (names.duplicates, position) else {
                                return Err(stop);
                            };
                            // A later member of this name may replace it.
                            node.truncate(row);
                            let Some(end) = token::value(bytes, at, depth + 1) else { return Err(stop) };
                            at = end;
                            unfit.push((member, stop));
                        }
                    }
                }
                at = token::blank(bytes, at);
                match bytes.get(at) {
                    Some(b',') => at = token::blank(bytes, at + 1),
                    Some(b'}') => break,
                    _ => return Err(invalid(at)),
                }
            }
        }
        if let Some((_, stop)) = unfit.into_iter().next() {
            return Err(stop);
        }
        if values < self.nodes.len() {
            for node in self.nodes.iter_mut().filter(|node| node.len() == row) {
                if !node.field.is_nullable() {
                    let stop = Stop::new(start, Reason::Missing(node.field.clone()));
                    return Err(stop.inside(node.field.name()));
                }
                node.push_null();
            }
        }
        self.keys.next = 0;
        self.valid.push(true);
        Ok(at + 1)
    }
}

impl Keys {
    fn new(fields: &Fields) -> Keys {
        let is_plain = |name: &str| !name.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        let written = fields.iter().map(|field| match is_plain(field.name()) {
            true => format!("\"{}\":", field.name()).into_bytes().into(),
            false => Box::default(),
        });
        let positions = fields.iter().enumerate();
        Keys {
            written: written.collect(),
            positions: positions.map(|(i, field)| (field.name().as_bytes().into(), i)).collect(),
            next: 0,
        }
    }

    /// Reads a name and the colon after it. Returns the position of the member and the position in the text after both.
    #[inline]
    fn find(&mut self, text: &mut Text<'_>, at: usize) -> Result<(Option<usize>, usize), Box<Stop>> {
        // Most objects have all members, or few less, in the same order.
        for position in self.next..self.next + 2 {
            if let Some(written) = self.written.get(position)
                && !written.is_empty()
                && text.bytes.get(at..).is_some_and(|rest| rest.starts_with(written))
            {
                self.next = position + 1;
                return Ok((Some(position), at + written.len()));
            }
        }
        self.search(text, at)
    }

    fn search(&mut self, text: &mut Text<'_>, at: usize) -> Result<(Option<usize>, usize), Box<Stop>> {
        let bytes = text.bytes;
        let (end, is_escaped) = token::name(bytes, at).ok_or_else(|| invalid(at))?;
        let colon = token::blank(bytes, end + 1);
        if bytes.get(colon) != Some(&b':') {
            return Err(invalid(colon));
        }
        let position = match is_escaped {
            false => self.positions.get(&bytes[at + 1..end]),
            true => {
                let span = text.decode(at + 1, end)?;
                self.positions.get(text.get(span).map(Content::bytes).unwrap_or_default())
            }
        };
        self.next = position.map_or(self.next, |position| position + 1);
        Ok((position.copied(), colon + 1))
    }
}
