//! The automaton of CSV: the table of `docs/csv.md` as code.
//!
//! The table is over tokens. A line end is one token, also if it has two bytes; inside quotes and after an escape
//! character, each of its bytes is a token of its own.

use super::dialect::{CsvDialect, CsvLineEnd, CsvStrayQuotes};

/// The state before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// At the start of a line.
    Record,
    /// At the start of a field that is not the first one.
    Field,
    /// Inside a field without quotes.
    Unquoted,
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes.
    Closed,
    /// After an escape character outside quotes.
    Escaped,
    /// After an escape character inside quotes.
    QuotedEscaped,
    /// Inside a comment.
    Comment,
}

impl State {
    const ALL: [State; 8] = [
        State::Record,
        State::Field,
        State::Unquoted,
        State::Quoted,
        State::Closed,
        State::Escaped,
        State::QuotedEscaped,
        State::Comment,
    ];

    /// Returns the state with this number, as kept in a [`Resume`](crate::frame::Resume).
    pub(super) fn from_number(number: u32) -> State {
        State::ALL.get(number as usize).copied().unwrap_or(State::Record)
    }

    /// Returns whether a line end does not end a record here.
    pub(super) fn takes_line_ends(self) -> bool {
        matches!(self, State::Quoted | State::Escaped | State::QuotedEscaped)
    }
}

/// The kinds of token, except for the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    Other,
    Delimiter,
    Quote,
    Escape,
    /// A byte that may begin a line end.
    LineEnd,
    Comment,
}

impl Class {
    const ALL: [Class; 6] =
        [Class::Other, Class::Delimiter, Class::Quote, Class::Escape, Class::LineEnd, Class::Comment];
}

/// The effect of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    To(State),
    /// The line ends with this token.
    End,
    /// The token is not allowed here.
    Error,
}

/// The automaton of one dialect.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    pub(super) classes: [Class; 256],
    table: [[Next; Class::ALL.len()]; State::ALL.len()],
    line_end: CsvLineEnd,
}

impl Automaton {
    pub(super) fn new(dialect: &CsvDialect) -> Automaton {
        let mut classes = [Class::Other; 256];
        let line_ends: &[u8] = match dialect.line_end {
            CsvLineEnd::Any => b"\r\n",
            CsvLineEnd::Lf => b"\n",
            CsvLineEnd::Crlf | CsvLineEnd::Cr => b"\r",
        };
        for &byte in line_ends {
            classes[usize::from(byte)] = Class::LineEnd;
        }
        classes[usize::from(dialect.delimiter)] = Class::Delimiter;
        for (byte, class) in
            [(dialect.quote, Class::Quote), (dialect.escape, Class::Escape), (dialect.comment, Class::Comment)]
        {
            if let Some(byte) = byte {
                classes[usize::from(byte)] = class;
            }
        }
        let table = State::ALL.map(|state| Class::ALL.map(|class| next(dialect, state, class)));
        Automaton { classes, table, line_end: dialect.line_end }
    }

    #[inline]
    pub(super) fn next(&self, state: State, class: Class) -> Next {
        self.table[state as usize][class as usize]
    }

    /// Returns the length of the line end at `at`, where its first byte is: 0 if it is not one, and `None` if that
    /// depends on bytes that have not arrived.
    #[inline]
    pub(super) fn line_end(&self, input: &[u8], at: usize, eof: bool) -> Option<usize> {
        let is_lf_next = match input.get(at + 1) {
            Some(&next) => Some(next == b'\n'),
            None if eof => Some(false),
            None => None,
        };
        match self.line_end {
            CsvLineEnd::Lf | CsvLineEnd::Cr => Some(1),
            CsvLineEnd::Any if input[at] == b'\n' => Some(1),
            CsvLineEnd::Any => is_lf_next.map(|is_lf| 1 + usize::from(is_lf)),
            CsvLineEnd::Crlf => is_lf_next.map(|is_lf| 2 * usize::from(is_lf)),
        }
    }
}

/// The table.
fn next(dialect: &CsvDialect, state: State, class: Class) -> Next {
    use Class::*;
    use Next::{End, Error, To};
    use State::{Closed, Escaped, Field, Quoted, QuotedEscaped, Record, Unquoted};
    match (state, class) {
        (Record | Field | Unquoted | Closed, Delimiter) => To(Field),
        (Record | Field | Unquoted | Closed | State::Comment, LineEnd) => End,
        (Record, Comment) => To(State::Comment),
        (Record | Field, Quote) => To(Quoted),
        (Record | Field | Unquoted, Escape) => To(Escaped),
        (Unquoted, Quote) => match dialect.stray_quotes {
            CsvStrayQuotes::Error => Error,
            CsvStrayQuotes::Literal => To(Unquoted),
        },
        (Record | Field | Unquoted, Other | Comment) => To(Unquoted),
        (Quoted, Quote) => To(Closed),
        (Quoted, Escape) => To(QuotedEscaped),
        (Quoted, _) => To(Quoted),
        (Closed, Quote) if dialect.doubled_quotes => To(Quoted),
        (Closed, _) => Error,
        (Escaped, _) => To(Unquoted),
        (QuotedEscaped, _) => To(Quoted),
        (State::Comment, _) => To(State::Comment),
    }
}
