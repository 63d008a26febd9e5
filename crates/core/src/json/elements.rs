//! The elements of one array of a document.
//!
//! The array is the document, or is found by a pointer. All arrays and objects around it, and itself, are the *levels*;
//! each other value is followed by [`Value`], which either is off the path or is an element.

use std::mem;

use super::pointer::Token;
use super::{DEPTH, MARK, Value, blank, shown};
use crate::error::{Error, ErrorKind, Result};

/// The byte after each element. No valid document contains it.
pub const SEPARATOR: u8 = 0x1e;

/// Keeps the elements of one array of a JSON document, each followed by [`SEPARATOR`], and removes all other bytes. The
/// document arrives in pieces of any size.
///
/// All of the document is checked against the grammar of RFC 8259, except that text may be any bytes other than control
/// characters.
#[derive(Clone, Debug)]
pub struct JsonElements {
    tokens: Vec<Token>,
    limit: usize,
    place: Place,
    /// The open levels, outermost first. The array of the elements follows as many levels as there are tokens.
    levels: Vec<Level>,
    /// The value that is off the path, the name, or the element.
    value: Value,
    /// The name of a member with its quotes, if it is short enough to be on the path.
    name: Vec<u8>,
    /// The number of bytes of the document before the next one.
    offset: u64,
    /// The number of whole elements.
    elements: u64,
}

/// What [`follow`](JsonElements::follow) has found.
#[derive(Debug)]
pub struct Followed {
    /// The number of bytes of the input that have been followed.
    pub used: usize,
    /// How many of them, the last ones, are part of an element.
    pub kept: usize,
    /// Whether they are the end of an element. An error has its place in the document.
    pub ended: Result<bool>,
}

/// An open array or object that contains the elements.
#[derive(Clone, Copy, Debug)]
struct Level {
    is_object: bool,
    /// The number of elements before the next one.
    index: u64,
    /// Whether the member or element on the path has been found.
    is_found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the document, after this many bytes of a byte order mark.
    Mark(usize),
    /// Before the next level.
    Level,
    /// After the byte that opened the last level.
    First,
    /// After a comma in the last level.
    Member,
    Name,
    /// Before the colon of a member, which is on the path or not.
    Colon(bool),
    /// Before the value of a member that is off the path.
    Skip,
    Skipped,
    Element,
    /// After a member or element of the last level.
    Next,
    End,
}

impl JsonElements {
    /// Creates a filter for the elements of the array at a JSON pointer (RFC 6901).
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) for a text that is not a pointer.
    pub fn new(pointer: &str) -> Result<JsonElements> {
        Ok(JsonElements {
            tokens: Token::parse(pointer)?,
            limit: DEPTH,
            place: Place::Mark(0),
            levels: Vec::new(),
            value: Value::default(),
            name: Vec::new(),
            offset: 0,
            elements: 0,
        })
    }

    /// Sets the maximum number of arrays and objects inside each other, counted from the outermost one of the document.
    pub fn depth(self, limit: usize) -> JsonElements {
        JsonElements { limit, ..self }
    }

    /// Returns the filter after a whole element of the array. The document has `offset` bytes and `elements` elements before.
    /// `objects` says of each value around the array whether it is an object, outermost first.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if the pointer leads through other values.
    pub fn after(self, objects: &[bool], offset: u64, elements: u64) -> Result<JsonElements> {
        let fits = |(token, is_object): (&Token, &bool)| *is_object || token.index().is_some();
        if objects.len() != self.tokens.len() || !self.tokens.iter().zip(objects).all(fits) || elements == 0 {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a place in a document to which the JSON pointer does not lead")
                .with_expected("a place after an element of the array"));
        }
        let around = self.tokens.iter().zip(objects).map(|(token, &is_object)| Level {
            is_object,
            index: if is_object { 0 } else { token.index().unwrap_or(0).saturating_add(1) },
            is_found: true,
        });
        let levels = around.chain([Level { is_object: false, index: elements, is_found: false }]).collect();
        Ok(JsonElements { levels, place: Place::Next, offset, elements, ..self })
    }

    /// Returns for each value around the array whether it is an object, outermost first, if the last byte was that of a
    /// whole element, or followed by whitespace.
    pub fn around(&self) -> Option<Vec<bool>> {
        let is_after = self.place == Place::Next && self.levels.len() == self.tokens.len() + 1 && self.elements > 0;
        is_after.then(|| self.levels[..self.tokens.len()].iter().map(|level| level.is_object).collect())
    }

    /// Ends a number that is the last element of a part of a document, and returns whether there was one.
    pub fn end_number(&mut self) -> bool {
        let ends = self.place == Place::Element && self.value.may_end();
        if ends {
            self.elements += 1;
            self.place = Place::Next;
        }
        ends
    }

    /// Returns the number of whole elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Follows the document through `input`, at most up to the end of an element.
    pub fn follow(&mut self, input: &[u8]) -> Followed {
        let mut at = 0;
        while at < input.len() {
            if self.place != Place::Element {
                match self.between(&input[at..]) {
                    Ok(used) => {
                        at += used;
                        self.offset += used as u64;
                    }
                    Err(error) => return Followed { used: at, kept: 0, ended: Err(self.at(error)) },
                }
                continue;
            }
            let (used, ended) = match self.value.advance(&input[at..]) {
                Ok(Some(used)) => (used, Ok(true)),
                Ok(None) => (input.len() - at, Ok(false)),
                Err(error) => {
                    let used = error.offset().unwrap_or(0) as usize;
                    return Followed { used: at + used, kept: used, ended: Err(self.at(self.shown_depth(error))) };
                }
            };
            self.offset += used as u64;
            if let Ok(true) = ended {
                self.elements += 1;
                self.place = Place::Next;
            }
            return Followed { used: at + used, kept: used, ended };
        }
        Followed { used: at, kept: 0, ended: Ok(false) }
    }

    /// Follows the bytes of the document `memory[from..]`, `from` being at least 1. Moves the elements to the front, and
    /// returns the number of their bytes. The bytes before an error are valid.
    ///
    /// # Panics
    /// Panics if `from` is 0: the separator of the last element needs the byte.
    pub fn filter(&mut self, memory: &mut [u8], from: usize) -> (usize, Result<()>) {
        assert!(from > 0, "no byte is free before the document's");
        // Always kept < at, except after an element, where they may be equal. What follows an element is a byte of the
        // document that is not kept.
        let (mut kept, mut at) = (0, from);
        while at < memory.len() {
            let followed = self.follow(&memory[at..]);
            at += followed.used;
            memory.copy_within(at - followed.kept..at, kept);
            kept += followed.kept;
            match followed.ended {
                Ok(true) => {
                    memory[kept] = SEPARATOR;
                    kept += 1;
                }
                Ok(false) => {}
                Err(error) => return (kept, Err(error)),
            }
        }
        (kept, Ok(()))
    }

    /// Ends the document.
    ///
    /// # Errors
    /// Returns [`DocumentTruncated`](ErrorKind::DocumentTruncated) if it is not complete.
    pub fn finish(&self) -> Result<()> {
        let (found, expected) = match self.place {
            Place::End => return Ok(()),
            Place::Mark(_) | Place::Level if self.levels.is_empty() => {
                ("no document".into(), format!("an array{}", self.at_path(self.tokens.len())))
            }
            Place::Element => (
                format!("the end of the document {} of element {}", self.value.inside(), self.elements),
                self.value.expected().into(),
            ),
            Place::Name | Place::Skipped => {
                (format!("the end of the document {}", self.value.inside()), self.value.expected().into())
            }
            _ => {
                let is_object = self.levels.last().is_some_and(|level| level.is_object);
                let kind = if is_object { "the object" } else { "the array" };
                let path = self.at_path(self.levels.len().saturating_sub(1));
                (format!("the end of the document inside {kind}{path}"), self.expected().into())
            }
        };
        Err(self.at(Error::new(ErrorKind::DocumentTruncated).with_found(found).with_expected(expected)))
    }

    /// Follows bytes that are not kept, at least one unless an element begins. Returns their number.
    fn between(&mut self, input: &[u8]) -> Result<usize> {
        let used = match self.place {
            Place::Mark(matched) => return self.mark(matched, input),
            Place::Name | Place::Skipped => return self.off_path(input),
            _ => blank(input),
        };
        let Some(&byte) = input.get(used) else { return Ok(used) };
        let level = self.levels.last().copied();
        let is_object = level.is_some_and(|level| level.is_object);
        let here = |error: Error| error.with_offset(used as u64);
        match (self.place, byte) {
            (Place::Level, _) => self.open(byte).map_err(here)?,
            (Place::First, b'}') if is_object => self.close().map_err(here)?,
            (Place::First, b']') if !is_object => self.close().map_err(here)?,
            (Place::First | Place::Member, b'"') if is_object => {
                self.begin(Place::Name);
                self.name.clear();
                return Ok(used);
            }
            (Place::Member, b']') => return Err(here(self.unexpected(byte))),
            (Place::First | Place::Member, _) if !is_object => {
                self.element();
                return Ok(used);
            }
            (Place::Colon(is_found), b':') => self.place = if is_found { Place::Level } else { Place::Skip },
            (Place::Skip, _) => {
                self.begin(Place::Skipped);
                return Ok(used);
            }
            (Place::Next, b',') => self.place = Place::Member,
            (Place::Next, b'}') if is_object => self.close().map_err(here)?,
            (Place::Next, b']') if !is_object => self.close().map_err(here)?,
            _ => return Err(here(self.unexpected(byte))),
        }
        Ok(used + 1)
    }

    /// Skips a byte order mark.
    fn mark(&mut self, matched: usize, input: &[u8]) -> Result<usize> {
        let wide = || {
            Err(Error::new(ErrorKind::JsonInvalid)
                .with_found("text in UTF-16")
                .with_expected("UTF-8, as iconv -f UTF-16 -t UTF-8 converts it"))
        };
        match (matched, input[0]) {
            (0, 0xff | 0xfe | 0) => wide(),
            (0, byte) if byte != MARK[0] => {
                self.place = Place::Level;
                Ok(0)
            }
            (matched, byte) if byte != MARK[matched] => Err(Error::new(ErrorKind::JsonInvalid)
                .with_found(shown(byte))
                .with_expected("the rest of a byte order mark, or none")),
            (2, _) => {
                self.place = Place::Level;
                Ok(1)
            }
            (matched, _) => {
                self.place = Place::Mark(matched + 1);
                Ok(1)
            }
        }
    }

    /// Follows a name, or a value off the path.
    fn off_path(&mut self, input: &[u8]) -> Result<usize> {
        let ended = self.value.advance(input).map_err(|error| self.shown_depth(error))?;
        let used = ended.unwrap_or(input.len());
        if self.place == Place::Skipped {
            if ended.is_some() {
                self.place = Place::Next;
            }
            return Ok(used);
        }
        // Longer names are not on the path, so that the memory is limited.
        let longest = self.tokens.get(self.levels.len() - 1).map_or(0, Token::longest) + 2;
        let rest = (longest + 1).saturating_sub(self.name.len());
        self.name.extend_from_slice(&input[..used.min(rest)]);
        if ended.is_some() {
            let is_found = self.name.len() <= longest && self.is_on_path(&self.name[1..self.name.len() - 1]);
            if let (true, Some(level)) = (is_found, self.levels.last_mut())
                && mem::replace(&mut level.is_found, true)
            {
                let token = &self.tokens[self.levels.len() - 1];
                return Err(Error::new(ErrorKind::JsonInvalid)
                    .with_found(format!("a second member {:?}{}", token.name(), self.at_path(self.levels.len() - 1)))
                    .with_expected("one: it is on the path to the elements")
                    .with_offset((used - 1) as u64));
            }
            self.place = Place::Colon(is_found);
        }
        Ok(used)
    }

    /// Returns whether the name of a member of the last level is on the path.
    fn is_on_path(&self, raw: &[u8]) -> bool {
        self.tokens.get(self.levels.len() - 1).is_some_and(|token| token.is(raw))
    }

    /// Begins a value.
    fn begin(&mut self, place: Place) {
        self.value.restart(self.limit.saturating_sub(self.levels.len()));
        self.place = place;
    }

    /// Begins an element of the last level.
    fn element(&mut self) {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut() else { return };
        let index = level.index;
        level.index += 1;
        match self.tokens.get(depth - 1) {
            None => self.begin(Place::Element),
            Some(token) if token.index() == Some(index) => {
                level.is_found = true;
                self.place = Place::Level;
            }
            Some(_) => self.begin(Place::Skipped),
        }
    }

    /// Opens the next level.
    fn open(&mut self, byte: u8) -> Result<()> {
        let depth = self.levels.len();
        let is_object = match (byte, self.tokens.get(depth)) {
            (b'[', _) => false,
            (b'{', Some(_)) => true,
            (_, token) => {
                let found = match byte {
                    b'{' => "an object",
                    b'"' => "a string",
                    b'-' | b'0'..=b'9' => "a number",
                    b't' | b'f' => "a boolean",
                    b'n' => "null",
                    _ => return Err(self.unexpected(byte)),
                };
                let expected = match token {
                    Some(token) => format!("an array or object, with {:?}", token.name()),
                    None => "an array".into(),
                };
                return Err(Error::new(ErrorKind::ShapeMismatch)
                    .with_found(format!("{found}{}", self.at_path(depth)))
                    .with_expected(expected));
            }
        };
        if depth >= self.limit {
            return Err(self.shown_depth(Error::new(ErrorKind::TooDeep)));
        }
        self.levels.push(Level { is_object, index: 0, is_found: false });
        self.place = Place::First;
        Ok(())
    }

    /// Closes the last level.
    fn close(&mut self) -> Result<()> {
        let depth = self.levels.len() - 1;
        let level = self.levels[depth];
        if let (Some(token), false) = (self.tokens.get(depth), level.is_found) {
            let path = self.at_path(depth);
            let (found, expected) = match level.is_object {
                true => {
                    (format!("an object{path} without the member {:?}", token.name()), "a member with this name".into())
                }
                false => {
                    let count = level.index;
                    let expected = match token.index() {
                        Some(index) => format!("an element {index}"),
                        None => format!("an object with the member {:?}", token.name()),
                    };
                    (format!("an array{path} of {count} element{}", if count == 1 { "" } else { "s" }), expected)
                }
            };
            return Err(Error::new(ErrorKind::KeyMissing).with_found(found).with_expected(expected));
        }
        self.levels.pop();
        self.place = if self.levels.is_empty() { Place::End } else { Place::Next };
        Ok(())
    }

    /// Returns the error for this byte.
    fn unexpected(&self, byte: u8) -> Error {
        let found = match self.place {
            Place::End => format!("{} after the document", shown(byte)),
            Place::Member => format!("{} after a comma", shown(byte)),
            _ => shown(byte),
        };
        Error::new(ErrorKind::JsonInvalid).with_found(found).with_expected(self.expected())
    }

    /// Returns what can follow.
    fn expected(&self) -> &'static str {
        let is_object = self.levels.last().is_some_and(|level| level.is_object);
        match (self.place, is_object) {
            (Place::First, true) => "a name in double quotes or '}'",
            (Place::First, false) => "a value or ']'",
            (Place::Member, true) => "a name in double quotes",
            (Place::Colon(_), _) => "':'",
            (Place::Next, true) => "',' or '}'",
            (Place::Next, false) => "',' or ']'",
            (Place::End, _) => "only whitespace",
            _ => "a value",
        }
    }

    /// Adds the limit to an error about the depth.
    fn shown_depth(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::TooDeep => error
                .with_found(format!("arrays and objects nested more than {} deep", self.limit))
                .with_expected("at most as many as the depth limit"),
            _ => error,
        }
    }

    /// Returns the position of the first `count` tokens, as a part of a sentence.
    fn at_path(&self, count: usize) -> String {
        let path = Token::join(&self.tokens[..count.min(self.tokens.len())]);
        if path.is_empty() { path } else { format!(" at {path}") }
    }

    /// Adds the place in the document to an error, which may have an offset from the next byte on.
    fn at(&self, error: Error) -> Error {
        error.with_offset(0).shift_offset(self.offset).with_record(self.elements)
    }
}
