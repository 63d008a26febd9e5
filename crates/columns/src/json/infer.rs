//! Inferring the columns of JSON.

use super::text::Text;
use super::{MOST_COLUMNS, token};
use crate::infer::{How, Inferred};
use crate::options::Duplicates;
use crate::schema::json_field;
use arrow_schema::{DataType, Field, Fields};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The types that objects and arrays become inside each other. What is deeper is `json`.
const MOST_DEPTH: usize = 32;

/// The values of a column so far. Their order does not matter, except for the order of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guess {
    has_bools: bool,
    has_strings: bool,
    numbers: Option<Inferred>,
    items: Option<Box<Guess>>,
    members: Option<Guesses>,
}

/// The members of all objects of a column, in the order in which they appeared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guesses {
    names: HashMap<Box<str>, usize>,
    members: Vec<(Box<str>, Guess)>,
}

/// What all values share.
pub(super) struct Observer<'a> {
    pub(super) how: How,
    pub(super) duplicates: Duplicates,
    /// The number of columns, with those inside others.
    pub(super) columns: &'a mut usize,
}

impl Observer<'_> {
    /// Examines the value at a position, and returns the position after it. `None` is bad text.
    fn value(&mut self, guess: &mut Guess, text: &mut Text<'_>, at: usize, depth: usize) -> Option<usize> {
        let bytes = text.bytes;
        match bytes.get(at)? {
            b'{' if depth < token::DEPTH => self.object(guess.members.get_or_insert_default(), text, at, depth),
            b'[' if depth < token::DEPTH => {
                let item = guess.items.get_or_insert_default();
                let mut at = token::blank(bytes, at + 1);
                if bytes.get(at) == Some(&b']') {
                    return Some(at + 1);
                }
                loop {
                    at = token::blank(bytes, self.value(item, text, at, depth + 1)?);
                    match bytes.get(at)? {
                        b',' => at = token::blank(bytes, at + 1),
                        b']' => return Some(at + 1),
                        _ => return None,
                    }
                }
            }
            b'-' | b'0'..=b'9' => {
                let end = token::number(bytes, at)?;
                guess.numbers.get_or_insert_default().observe(&bytes[at..end], self.how);
                Some(end)
            }
            first => {
                guess.has_strings |= *first == b'"';
                guess.has_bools |= matches!(first, b't' | b'f');
                token::value(bytes, at, depth)
            }
        }
    }

    /// Examines the object at a position, and returns the position after it.
    pub(super) fn object(
        &mut self,
        members: &mut Guesses,
        text: &mut Text<'_>,
        at: usize,
        depth: usize,
    ) -> Option<usize> {
        let bytes = text.bytes;
        // Where the values of the members begin, if only the first or the last one with a name is read.
        let mut values = BTreeMap::new();
        let mut at = token::blank(bytes, at + 1);
        if bytes.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        loop {
            let (end, is_escaped) = token::name(bytes, at)?;
            let position = match is_escaped {
                false => members.position(&bytes[at + 1..end], self),
                true => {
                    let name = text.decode(at + 1, end).ok()?;
                    members.position(text.get(name)?.bytes(), self)
                }
            }?;
            at = token::blank(bytes, end + 1);
            if bytes.get(at) != Some(&b':') {
                return None;
            }
            at = token::blank(bytes, at + 1);
            let end = match self.duplicates {
                Duplicates::Error => self.value(&mut members.members[position].1, text, at, depth + 1)?,
                Duplicates::First => {
                    values.entry(position).or_insert(at);
                    token::value(bytes, at, depth + 1)?
                }
                Duplicates::Last => {
                    values.insert(position, at);
                    token::value(bytes, at, depth + 1)?
                }
            };
            at = token::blank(bytes, end);
            match bytes.get(at)? {
                b',' => at = token::blank(bytes, at + 1),
                b'}' => break,
                _ => return None,
            }
        }
        for (position, value) in values {
            self.value(&mut members.members[position].1, text, value, depth + 1)?;
        }
        Some(at + 1)
    }
}

impl Guesses {
    /// Returns the position of a name, which is added if it is new. `None` if there are too many.
    fn position(&mut self, name: &[u8], observer: &mut Observer<'_>) -> Option<usize> {
        let name = str::from_utf8(name).ok()?;
        if let Some(&position) = self.names.get(name) {
            return Some(position);
        }
        *observer.columns += 1;
        if *observer.columns > MOST_COLUMNS {
            return None;
        }
        self.names.insert(name.into(), self.members.len());
        self.members.push((name.into(), Guess::default()));
        Some(self.members.len() - 1)
    }

    /// Returns the columns.
    pub(crate) fn fields(&self, how: How) -> Fields {
        self.fields_at(how, 0)
    }

    fn fields_at(&self, how: How, depth: usize) -> Fields {
        self.members.iter().map(|(name, guess)| guess.field(name, how, depth)).collect()
    }

    /// Returns the columns without examining the values: their text.
    pub(crate) fn json_fields(&self) -> Fields {
        self.members.iter().map(|(name, _)| json_field(name, true)).collect()
    }
}

impl Guess {
    fn field(&self, name: &str, how: How, depth: usize) -> Field {
        let data_type = match self {
            Guess { has_bools: false, has_strings: false, numbers: None, items: None, members: None } => {
                Some(DataType::Null)
            }
            Guess { has_bools: true, has_strings: false, numbers: None, items: None, members: None } => {
                Some(DataType::Boolean)
            }
            Guess { has_bools: false, has_strings: true, numbers: None, items: None, members: None } => {
                Some(DataType::Utf8)
            }
            Guess { has_bools: false, has_strings: false, numbers: Some(numbers), items: None, members: None } => {
                // Numbers that no type has without loss would be text.
                numbers.data_type(how).filter(|data_type| *data_type != DataType::Utf8)
            }
            Guess { has_bools: false, has_strings: false, numbers: None, items: Some(item), members: None } => {
                (depth < MOST_DEPTH).then(|| DataType::List(Arc::new(item.field("item", how, depth + 1))))
            }
            Guess { has_bools: false, has_strings: false, numbers: None, items: None, members: Some(members) } => {
                let has_type = depth < MOST_DEPTH && !members.members.is_empty();
                has_type.then(|| DataType::Struct(members.fields_at(how, depth + 1)))
            }
            _ => None,
        };
        match data_type {
            Some(data_type) => Field::new(name, data_type, true),
            None => json_field(name, true),
        }
    }
}
