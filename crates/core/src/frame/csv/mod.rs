//! CSV: records that end with a line end outside quotes.
//!
//! `docs/csv.md` defines the format by a table, and `automaton` is that table as code. [`Framer::step`] follows the
//! automaton. [`Framer::batch`] finds the quoted regions of a block with vector instructions, by the parity of the
//! quotes, and checks that every quote stands where the table allows it. A block that fails the check, and every block
//! of a dialect for which parity is not enough, is left to the automaton.

mod automaton;
mod dialect;
mod fields;
mod ragged;
mod rows;

pub use dialect::{CsvBlankLines, CsvByteOrderMark, CsvDialect, CsvLineEnd, CsvStrayQuotes};
pub use fields::CsvFields;
pub use ragged::CsvRagged;
pub use rows::{CsvPositions, CsvRow, CsvRows};

use super::simd::QuotedIndex;
use super::simd::quoted::Special;
use super::{Batch, Framer, RecordLines, Resume, Step, Trim};
use crate::error::{Error, ErrorKind, Result};
use automaton::{Automaton, Class, Next, State};
use rows::Kept;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Records of a CSV file.
///
/// The framer finds lines: records, and also blank lines and comments, so that all of them together are the input. A
/// program that uses records calls [`skips`](Csv::skips) for each, which returns whether a line is not a record; the
/// readers of `millstream` do.
///
/// A quote where the dialect does not allow it, and a quoted field that is never closed, fail with
/// [`CsvInvalid`](ErrorKind::CsvInvalid).
///
/// ```
/// use millstream::frame::{Csv, Framer, Resume, Step};
/// let mut csv = Csv::new();
/// let input = b"1,\"two\nlines\"\n3,4\n";
/// let Step::Record { len: 14, terminated: true } = csv.step(input, Resume::START, false) else { unreachable!() };
/// let record = csv.trim().apply(&input[..14], true);
/// assert_eq!(csv.fields(record).collect::<Vec<_>>(), [&b"1"[..], b"two\nlines"]);
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    dialect: CsvDialect,
    automaton: Box<Automaton>,
    /// Finds line ends by the parity of quotes, if the dialect allows that.
    index: Option<QuotedIndex>,
    lines: Inside,
    /// The fields of the records that were found last, if they are wanted.
    kept: Box<Kept>,
}

/// The line ends inside the records that were found last.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    /// Whether there may be any.
    may_be: bool,
    /// The length of all these records, and the number of line ends, if they were counted.
    counted: Option<(usize, u64)>,
}

/// The end of a line, as found by the automaton.
enum Found {
    Line {
        len: usize,
        terminated: bool,
    },
    More(Resume),
    /// The table has no way on at this position, from this state.
    Bad(usize, State),
}

impl Csv {
    /// Creates a framer for the default dialect, RFC 4180 with any line end.
    pub fn new() -> Csv {
        Csv::with(CsvDialect::new()).expect("the default dialect has no contradiction")
    }

    /// Creates a framer for a dialect.
    ///
    /// # Errors
    /// Returns [`InvalidOption`](ErrorKind::InvalidOption) if options of the dialect contradict each other, for example
    /// if the delimiter is also the quote.
    pub fn with(dialect: CsvDialect) -> Result<Csv> {
        dialect.check()?;
        Ok(Csv {
            dialect,
            automaton: Box::new(Automaton::new(&dialect)),
            index: special(&dialect).map(QuotedIndex::new),
            lines: Inside::default(),
            kept: Box::default(),
        })
    }

    /// Returns the dialect.
    pub fn dialect(&self) -> &CsvDialect {
        &self.dialect
    }

    /// Returns the byte between two fields.
    pub fn delimiter(&self) -> u8 {
        self.dialect.delimiter
    }

    /// Returns the byte that begins and ends quoted fields.
    pub fn quote_byte(&self) -> Option<u8> {
        self.dialect.quote
    }

    /// Returns the escape character.
    pub fn escape_byte(&self) -> Option<u8> {
        self.dialect.escape
    }

    /// Returns whether a line, without its line end, is not a record: a comment, or a blank line unless blank lines are
    /// records.
    ///
    /// ```
    /// use millstream::frame::{Csv, CsvDialect};
    /// let csv = Csv::with(CsvDialect::new().comment(Some(b'#')))?;
    /// assert!(csv.skips(b"") && csv.skips(b"# a comment") && !csv.skips(b"a,b"));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[inline]
    pub fn skips(&self, line: &[u8]) -> bool {
        match self.without_mark(line) {
            [] => self.dialect.blank_lines == CsvBlankLines::Skip,
            [first, ..] => self.dialect.comment == Some(*first),
        }
    }

    /// Returns whether a field with these bytes would not be read back as such if it were a line, or the first field of
    /// one: the line would be [skipped](Csv::skips), or begin with a byte order mark.
    pub fn needs_quotes_at_start(&self, field: &[u8]) -> bool {
        let detects = self.dialect.byte_order_mark == CsvByteOrderMark::Detect;
        self.skips(field)
            || (detects && (field.starts_with(MARK) || matches!(field, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])))
    }

    /// Returns where a line may begin in `input`, which begins anywhere in a file, or `None` if no line ends in it.
    ///
    /// This is a guess, because only the bytes before `input` decide whether it begins inside quotes. It is for callers
    /// that check it later.
    #[doc(hidden)]
    pub fn guess_line(&mut self, input: &[u8]) -> Option<usize> {
        let mut guess = None;
        for state in [State::Field, State::Quoted] {
            let Found::Line { len, terminated: true } = self.find(input, Resume::START.with_state(state as u32), false)
            else {
                continue;
            };
            if self.batch(&input[len..], false, usize::MAX, &mut Vec::new()).is_ok() {
                return Some(len);
            }
            guess = guess.or(Some(len));
        }
        guess
    }

    /// Returns the number of lines of a batch that are not records, see [`skips`](Csv::skips).
    pub fn count_skipped(&self, batch: &Batch<'_>) -> usize {
        if self.dialect.comment.is_none() && self.dialect.blank_lines == CsvBlankLines::Records {
            return 0;
        }
        // Blank lines are short. Without comments, the content of other lines is not examined.
        let longest = MARK.len() + 2;
        let offsets = batch.offsets();
        let short = offsets.windows(2).filter(|pair| (pair[1] - pair[0]) as usize <= longest).count();
        match self.dialect.comment {
            None if short == 0 => 0,
            _ => batch.iter().filter(|line| self.skips(line)).count(),
        }
    }

    /// Returns a line without the byte order mark at its start.
    #[inline]
    fn without_mark<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match (line.strip_prefix(MARK), self.dialect.byte_order_mark) {
            (Some(rest), CsvByteOrderMark::Detect) => rest,
            _ => line,
        }
    }

    /// Finds the end of the line at the front of `input`.
    #[inline]
    fn find(&self, input: &[u8], resume: Resume, eof: bool) -> Found {
        let (mut at, mut state) = (resume.scanned(), State::from_number(resume.state()));
        if at == 0 && state == State::Record && self.dialect.byte_order_mark == CsvByteOrderMark::Detect {
            match input {
                [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Found::Bad(0, State::Record),
                [0xef, 0xbb, 0xbf, ..] => at = MARK.len(),
                [0xff | 0xfe | 0xef] | [0xef, 0xbb] if !eof => return Found::More(Resume::START),
                _ => {}
            }
        }
        let automaton = &*self.automaton;
        while at < input.len() {
            at += self.uniform(state, &input[at..]);
            let Some(&byte) = input.get(at) else { break };
            let mut class = automaton.classes[usize::from(byte)];
            let mut len = 1;
            if class == Class::LineEnd && !state.takes_line_ends() {
                match automaton.line_end(input, at, eof) {
                    None => return Found::More(Resume::after(at).with_state(state as u32)),
                    Some(0) => class = Class::Other,
                    Some(found) => len = found,
                }
            }
            match automaton.next(state, class) {
                // It would look like part of the line end after it.
                _ if byte == b'\r' && state == State::Escaped && self.dialect.line_end == CsvLineEnd::Any => {
                    return Found::Bad(at, state);
                }
                Next::To(next) => state = next,
                Next::End => return Found::Line { len: at + len, terminated: true },
                Next::Error => return Found::Bad(at, state),
            }
            at += len;
        }
        match state {
            // Nothing but a mark has arrived, which must not be examined again without it.
            State::Record if !eof => Found::More(Resume::START),
            _ if !eof => Found::More(Resume::after(at).with_state(state as u32)),
            State::Quoted | State::QuotedEscaped | State::Escaped => Found::Bad(at, state),
            _ => Found::Line { len: at, terminated: false },
        }
    }

    /// Returns the number of bytes at the front of `input` that do not change the state.
    #[inline]
    fn uniform(&self, state: State, input: &[u8]) -> usize {
        let found = match (state, self.dialect.quote, self.dialect.escape) {
            (State::Quoted, Some(quote), None) => memchr::memchr(quote, input),
            (State::Quoted, Some(quote), Some(escape)) => memchr::memchr2(quote, escape, input),
            (State::Comment, ..) => memchr::memchr2(b'\r', b'\n', input),
            (State::Unquoted, ..) => {
                input.iter().position(|&byte| self.automaton.classes[usize::from(byte)] != Class::Other)
            }
            _ => Some(0),
        };
        found.unwrap_or(input.len())
    }

    /// Returns the error for the byte `at` in `state`. Its offset counts from the start of `input`.
    #[cold]
    fn error(&self, input: &[u8], resume: Resume, at: usize, state: State) -> Error {
        let error = Error::new(ErrorKind::CsvInvalid);
        // If a reader skips a record, the bytes before it are no longer there.
        let is_whole = resume.scanned() > 0 || resume.state() == 0;
        let opened = is_whole.then(|| self.opening_quote(input, at)).flatten();
        match (state, input.get(at)) {
            (State::Record, _) => error
                .with_found("the byte order mark of UTF-16")
                .with_expected("UTF-8, or an encoding that contains ASCII; iconv -f UTF-16 -t UTF-8 converts the file")
                .with_offset(at as u64),
            (State::Unquoted, _) => error
                .with_found("a quote inside a field that does not begin with one")
                .with_expected("quotes around the whole field, or the option for literal quotes")
                .with_offset(at as u64),
            (State::Closed, Some(byte)) => {
                let field = match opened {
                    Some(opened) => format!(", in a field that begins {} bytes before", at - opened),
                    None => String::new(),
                };
                error
                    .with_found(format!("'{}' after a closing quote{field}", byte.escape_ascii()))
                    .with_expected(match self.dialect.doubled_quotes {
                        true => "a delimiter, a line end or a second quote",
                        false => "a delimiter or a line end",
                    })
                    .with_offset(at as u64)
            }
            (State::Escaped, byte) => error
                .with_found(match byte {
                    Some(_) => "a CR after an escape character outside quotes",
                    None => "the end of the input after an escape character",
                })
                .with_expected(match byte {
                    Some(_) => "quotes around the field, or a dialect in which not every CR ends a line",
                    None => "one more byte",
                })
                .with_offset(at as u64),
            _ => {
                let error = error.with_found("a quote that no other quote closes before the end of the input");
                match opened {
                    Some(opened) => error.with_offset(opened as u64),
                    None => error,
                }
            }
        }
    }

    /// Returns the position of the quote that opened the field in which the byte `end` is.
    fn opening_quote(&self, input: &[u8], end: usize) -> Option<usize> {
        let (mut state, mut opened, mut start) = (State::Record, None, 0);
        if input.len() - self.without_mark(input).len() == MARK.len() {
            start = MARK.len();
        }
        for (at, &byte) in input.iter().enumerate().take(end).skip(start) {
            let class = self.automaton.classes[usize::from(byte)];
            let next = match self.automaton.next(state, class) {
                Next::To(next) => next,
                // This CR is not followed by the LF that would make it a line end.
                Next::End => State::Unquoted,
                Next::Error => return None,
            };
            if next == State::Quoted && matches!(state, State::Record | State::Field) {
                opened = Some(at);
            }
            state = next;
        }
        opened
    }
}

/// Returns the bytes by whose positions line ends can be found, if that is possible in this dialect.
fn special(dialect: &CsvDialect) -> Option<Special> {
    let CsvDialect { quote, delimiter, escape: None, comment: None, doubled_quotes: true, .. } = *dialect else {
        return None;
    };
    let (lf, cr) = match dialect.line_end {
        CsvLineEnd::Any => (b'\n', Some(b'\r')),
        CsvLineEnd::Lf => (b'\n', None),
        CsvLineEnd::Cr => (b'\r', None),
        CsvLineEnd::Crlf => return None,
    };
    Some(Special { quote, delimiter, lf, cr, mark: dialect.byte_order_mark == CsvByteOrderMark::Detect, fields: false })
}

impl Default for Csv {
    fn default() -> Csv {
        Csv::new()
    }
}

impl Framer for Csv {
    #[inline]
    fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        self.kept.forget();
        let found = self.find(input, resume, eof);
        let may_be = match found {
            Found::Line { len, .. } => self.may_span_lines(&input[..len]),
            Found::More(_) | Found::Bad(..) => true,
        };
        self.lines = Inside { may_be, counted: None };
        match found {
            Found::Line { len, terminated } => Step::Record { len, terminated },
            Found::More(resume) => Step::More { resume, need: 0 },
            Found::Bad(at, state) => Step::Bad(self.error(input, resume, at, state)),
        }
    }

    /// An invalid record ends at the first line end at or after the byte that is not allowed; one whose quote is never
    /// closed, at the end of the input. Nothing is found after the byte order mark of UTF-16.
    fn skip(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
        self.kept.forget();
        self.lines.may_be |= self.dialect.quote.is_some() || self.dialect.line_end == CsvLineEnd::Crlf;
        self.lines.counted = None;
        match self.find(input, resume, eof) {
            Found::Line { len, terminated } => Step::Record { len, terminated },
            Found::More(resume) => Step::More { resume, need: 0 },
            Found::Bad(at, state @ State::Record) => Step::Bad(self.error(input, resume, at, state)),
            Found::Bad(_, State::Quoted | State::QuotedEscaped) => Step::Record { len: input.len(), terminated: false },
            Found::Bad(at, _) => {
                let rest = Resume::after(at).with_state(State::Comment as u32);
                match self.find(input, rest, eof) {
                    Found::Line { len, terminated } => Step::Record { len, terminated },
                    Found::More(resume) => Step::More { resume, need: 0 },
                    Found::Bad(..) => unreachable!("every token is allowed in this state"),
                }
            }
        }
    }

    fn record_lines(&self) -> RecordLines {
        match self.dialect.line_end {
            _ if !self.lines.may_be => RecordLines::One,
            CsvLineEnd::Cr => RecordLines::Several(b'\r'),
            _ => RecordLines::Several(b'\n'),
        }
    }

    fn skips(&self, content: &[u8]) -> bool {
        Csv::skips(self, content)
    }

    fn count_skipped(&self, batch: &Batch<'_>) -> usize {
        Csv::count_skipped(self, batch)
    }

    fn trim(&self) -> Trim {
        match self.dialect.line_end {
            CsvLineEnd::Any => Trim { head: 0, tail: 1, carriage_return: true },
            CsvLineEnd::Lf | CsvLineEnd::Cr => Trim { head: 0, tail: 1, carriage_return: false },
            CsvLineEnd::Crlf => Trim { head: 0, tail: 2, carriage_return: false },
        }
    }

    fn terminator(&self) -> &[u8] {
        match self.dialect.line_end {
            CsvLineEnd::Any | CsvLineEnd::Lf => b"\n",
            CsvLineEnd::Crlf => b"\r\n",
            CsvLineEnd::Cr => b"\r",
        }
    }

    fn batch(&mut self, input: &[u8], eof: bool, max: usize, ends: &mut Vec<u32>) -> Result<bool> {
        let mut lines = Inside::default();
        let (mut positions, before) = (self.kept.start(), ends.len());
        let mut fields = positions.as_mut();
        let terminated = self.find_all(input, eof, max, ends, &mut lines, &mut fields);
        self.lines = lines;
        let is_complete = fields.is_some();
        if let Some(positions) = positions {
            self.kept.finish(ends.len() - before, positions, is_complete);
        }
        terminated
    }

    fn inner_lines(&self) -> Option<(usize, u64)> {
        self.lines.counted
    }

    fn call(&self) -> u64 {
        self.kept.call()
    }
}

impl Csv {
    /// Returns whether records may contain line ends: if one has a quote or an escape character, or if an LF alone ends no
    /// record.
    fn may_span_lines(&self, records: &[u8]) -> bool {
        self.dialect.escape.is_some()
            || self.dialect.line_end == CsvLineEnd::Crlf
            || self.dialect.quote.is_some_and(|quote| memchr::memchr(quote, records).is_some())
    }

    /// Does what [`Framer::batch`] does, and sets `lines`. It also finds the fields of the records, if they are wanted; `fields` is
    /// `None` afterwards if it has not found all of them.
    fn find_all(
        &self,
        input: &[u8],
        eof: bool,
        max: usize,
        ends: &mut Vec<u32>,
        lines: &mut Inside,
        fields: &mut Option<&mut CsvPositions>,
    ) -> Result<bool> {
        let most = input.len().min(u32::MAX as usize);
        let (input, eof) = (&input[..most], eof && most == input.len());
        let before = ends.len();
        let limit = before.saturating_add(max);
        // Where the current line begins, and where the next block does.
        let (mut line, mut at) = (0, 0);
        let (mut index, mut has_quotes, mut is_counted) = (self.index, false, self.index.is_some());
        match (&mut index, &fields) {
            (Some(index), Some(_)) => *index = index.of_fields(),
            _ => *fields = None,
        }
        while ends.len() < limit && line < input.len() {
            let block = &input[at..input.len().min(at + QuotedIndex::BLOCK)];
            if let Some(index) = &mut index {
                let is_found = match fields {
                    None => index.append(block, at as u32, ends),
                    Some(fields) => {
                        let first = fields.found.lines.len();
                        let is_found = index.append_found(block, at as u32, &mut fields.found);
                        ends.extend(fields.record_ends(first));
                        is_found
                    }
                };
                if is_found {
                    lines.may_be |= index.has_inner();
                    at += block.len();
                    if at == input.len() && index.ends_line().unwrap_or(eof) {
                        ends.push(at as u32);
                        if let Some(fields) = fields {
                            fields.end(at as u32);
                        }
                    }
                    if let Some(fields) = fields {
                        has_quotes |= index.has_quotes();
                        fields.set_quotes(self.dialect.quote, has_quotes);
                    }
                    ends.truncate(limit);
                    line = ends[before..].last().map_or(0, |&end| end as usize);
                    if at < input.len() {
                        continue;
                    }
                    if !eof {
                        break;
                    }
                }
                index.restart();
                is_counted = false;
                if line < input.len() {
                    // The automaton does not find fields.
                    *fields = None;
                    index.find_lines();
                }
            }
            // The rest at the end, a block that the index refused, or all of it if there is no index.
            let until = if index.is_some() { at + block.len() } else { input.len() };
            let (first, mut outcome) = (line, None);
            while outcome.is_none() && ends.len() < limit && line < until.min(input.len()) {
                match self.find(&input[line..], Resume::START, eof) {
                    Found::Line { len, terminated } => {
                        line += len;
                        ends.push(line as u32);
                        outcome = (!terminated).then_some(Ok(false));
                    }
                    Found::More(_) => outcome = Some(Ok(true)),
                    Found::Bad(bad, state) => {
                        outcome = Some(Err(self.error(&input[line..], Resume::START, bad, state)));
                    }
                }
            }
            lines.may_be |= self.may_span_lines(&input[first..line]);
            if let Some(outcome) = outcome {
                return outcome;
            }
            at = line;
        }
        if let Some(index) = &index
            && is_counted
            && ends.len() < limit
        {
            lines.counted = Some((line, index.inner_lines(&input[line..at])));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the ends of all records, read in batches of `max`, and the offset of an error.
    fn ends(csv: &mut Csv, input: &[u8], max: usize) -> (Vec<u32>, Option<u64>) {
        let mut all = vec![0];
        loop {
            let start = all[all.len() - 1];
            let mut ends = Vec::with_capacity(input.len() + 64);
            let outcome = csv.batch(&input[start as usize..], true, max, &mut ends);
            let is_empty = ends.is_empty();
            let lens = ends.iter().map(|&end| end as usize);
            if let (false, Some((len, inner))) = (is_empty, csv.inner_lines()) {
                assert_eq!(lens.clone().next_back(), Some(len));
                assert_eq!(csv.record_lines().inside(&input[start as usize..], lens), Some(inner));
            }
            all.extend(ends.iter().map(|end| start + end));
            match outcome {
                Ok(true) if !is_empty => {}
                Ok(_) => return (all, None),
                Err(error) => return (all, error.offset()),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 512 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// The automaton itself is compared with its table in `tests/csv.rs`.
        #[test]
        fn every_level_is_the_automaton(
            // Each is valid after every other one. `$` is a line end.
            pieces in prop::collection::vec(prop::sample::select(vec![
                &b"a,"[..], b"b$", b"$", b"\"c\",", b"\"d,d\"$", b"\"e\"\"e\"$", b"\"f$f\",", b"\"\",", b"\"\"\"g\"$",
                b"a field of thirty characters,", b"$\xef\xbb\xbfh$",
            ]), 0..if cfg!(miri) { 40 } else { 3000 }),
            // These are errors in most places, few enough for what is after and before them to be seen.
            wrong in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![
                &b"\""[..], b"\"i\"j", b"k\"l", b"\"\"\"", b"\xff\xfe", b"\xfe", b"$\xef\xbb\xbf\"m\"$",
            ])), 0..3),
            max in prop_oneof![Just(usize::MAX), 1_usize..100],
            line_end in prop::sample::select(vec![CsvLineEnd::Any, CsvLineEnd::Lf, CsvLineEnd::Cr]),
            quote in prop::sample::select(vec![Some(b'"'), None]),
            stray in prop::sample::select(vec![CsvStrayQuotes::Error, CsvStrayQuotes::Literal]),
            mark in prop::sample::select(vec![CsvByteOrderMark::Detect, CsvByteOrderMark::Content]),
        ) {
            let mut pieces = pieces;
            for (at, piece) in wrong {
                pieces.insert(at.index(pieces.len() + 1), piece);
            }
            let line_ends: &[&[u8]] = match line_end {
                CsvLineEnd::Lf => &[b"\n"],
                CsvLineEnd::Cr => &[b"\r"],
                _ => &[b"\n", b"\r\n", b"\r"],
            };
            let mut input = Vec::new();
            for (i, byte) in pieces.concat().into_iter().enumerate() {
                match byte {
                    b'$' => input.extend(line_ends[i % line_ends.len()]),
                    _ => input.push(byte),
                }
            }
            let dialect = CsvDialect::new().line_end(line_end).quote(quote).stray_quotes(stray).byte_order_mark(mark);
            let mut csv = Csv::with(dialect).unwrap();
            csv.index = None;
            let expected = ends(&mut csv, &input, max);
            for index in QuotedIndex::every_level(special(&dialect).unwrap()) {
                csv.index = Some(index);
                prop_assert_eq!(&ends(&mut csv, &input, max), &expected, "{:?}", index);
            }
        }
    }

    #[test]
    fn quotes_and_line_ends_at_every_position_of_a_step() {
        let special = special(&CsvDialect::new()).unwrap();
        for (text, at, records) in
            [(&b",\"b\"c\n"[..], Some(4), 0), (b",b\"c\n", Some(2), 0), (b",\"b\"\"c\n\",d\re\r\nf\n\n", None, 4)]
        {
            // Miri needs a second for a length.
            for len in (0..130).step_by(if cfg!(miri) { 7 } else { 1 }) {
                let input = [&b"a".repeat(len), text].concat();
                for index in QuotedIndex::every_level(special) {
                    let mut csv = Csv { index: Some(index), ..Csv::new() };
                    let (ends, error) = ends(&mut csv, &input, usize::MAX);
                    assert_eq!((ends.len() - 1, error), (records, at.map(|at| at + len as u64)), "{len} {index:?}");
                }
            }
        }
    }

    #[test]
    fn dialects_that_parity_cannot_decide_have_no_index() {
        let dialect = CsvDialect::new();
        assert!(special(&dialect).is_some());
        assert!(special(&dialect.escape(Some(b'\\'))).is_none());
        assert!(special(&dialect.comment(Some(b'#'))).is_none());
        assert!(special(&dialect.doubled_quotes(false)).is_none());
        assert!(special(&dialect.line_end(CsvLineEnd::Crlf)).is_none());
    }
}
