//! Parses the text of a `--stage`, such as `match:REGEX`.

use std::ops::RangeInclusive;

use millstream::frame::Csv;
use millstream::{Error, ErrorKind};
use regex::bytes::Regex;
use regex_automata::util::interpolate;

use crate::escape;
use crate::run::count_text;
use crate::run::header::listed;

/// The accepted stages, for messages.
const ACCEPTED: &str = "noop, match:REGEX, not:REGEX, fields:LIST[:SEP], replace/REGEX/TEXT, take:N, skip:N, \
                        sample:P[:SEED] or uniq";

/// The number of characters of an invalid expression that are shown.
const SHOWN: usize = 20;

/// A stage, as requested.
#[derive(Clone, Debug)]
pub(crate) struct StageText {
    /// The whole word.
    pub(super) text: String,
    pub(super) work: Work,
}

/// The task of a stage.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Noop,
    Match(Regex),
    Not(Regex),
    /// `separator` is `None` if it is not given.
    Fields {
        list: Vec<Field>,
        separator: Option<Vec<u8>>,
    },
    Replace {
        regex: Regex,
        text: Template,
    },
    Take(u64),
    Skip(u64),
    Sample {
        part: f64,
        seed: Option<u64>,
    },
    Uniq,
}

impl Work {
    /// Returns whether the stage changes the length of records.
    pub(super) fn changes_length(&self) -> bool {
        match self {
            Work::Fields { .. } | Work::Replace { .. } => true,
            Work::Noop | Work::Match(_) | Work::Not(_) | Work::Take(_) | Work::Skip(_) => false,
            Work::Sample { .. } | Work::Uniq => false,
        }
    }
}

/// The replacement for matches.
#[derive(Clone, Debug)]
pub(super) enum Template {
    /// These bytes.
    Plain(Vec<u8>),
    /// Text with references to groups.
    Groups(Vec<u8>),
}

/// An element of the list of `fields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The first field is 0.
    Range(RangeInclusive<usize>),
    /// The name in the header of a CSV file.
    Name(String),
}

/// The end of a range that has no end, such as `3-`.
pub(super) const TO_THE_LAST: usize = usize::MAX - 1;

/// Returns the last field that a record must have.
pub(super) fn last_needed(range: &RangeInclusive<usize>) -> usize {
    if *range.end() == TO_THE_LAST { *range.start() } else { *range.end() }
}

/// The selected fields; the first is 0. The ranges are ordered and do not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields(pub(super) Vec<RangeInclusive<usize>>);

impl StageText {
    /// Parses the value of a `--stage`.
    pub(crate) fn parse(text: &str) -> Result<StageText, String> {
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let work = match name {
            "noop" => nothing(rest).map(|()| Work::Noop),
            "uniq" => nothing(rest).map(|()| Work::Uniq),
            "match" => regex(after_colon(rest, "match:REGEX")?).map(Work::Match),
            "not" => regex(after_colon(rest, "not:REGEX")?).map(Work::Not),
            "fields" => fields(after_colon(rest, "fields:LIST[:SEP], such as fields:1,3-5 or fields:2-:,")?),
            "replace" => replace(rest),
            "take" => number(after_colon(rest, "take:N, such as take:10")?).map(Work::Take),
            "skip" => number(after_colon(rest, "skip:N, such as skip:1")?).map(Work::Skip),
            "sample" => sample(after_colon(rest, "sample:P[:SEED], such as sample:0.01 or sample:1%:7")?),
            _ => Err(format!("expected {ACCEPTED}")),
        }?;
        Ok(StageText { text: text.to_string(), work })
    }

    /// Returns the word that was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the result for a record depends on other records.
    pub(crate) fn remembers(&self) -> bool {
        matches!(self.work, Work::Take(_) | Work::Skip(_) | Work::Sample { .. } | Work::Uniq)
    }

    /// Returns whether the stage ends a run before the end of its sources.
    pub(crate) fn ends_early(&self) -> bool {
        matches!(self.work, Work::Take(_))
    }

    /// Returns whether the stage may fail at a record.
    pub(crate) fn may_fail(&self) -> bool {
        self.work.changes_length()
    }

    /// Returns whether the stage selects fields.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self.work, Work::Fields { .. })
    }

    /// Returns whether the stage has a separator of fields.
    pub(crate) fn has_separator(&self) -> bool {
        matches!(self.work, Work::Fields { separator: Some(_), .. })
    }

    /// Returns whether the stage selects fields by the names of a header.
    pub(crate) fn has_names(&self) -> bool {
        matches!(&self.work, Work::Fields { list, .. } if list.iter().any(|field| matches!(field, Field::Name(_))))
    }
}

fn nothing(rest: &str) -> Result<(), String> {
    if rest.is_empty() { Ok(()) } else { Err(format!("expected nothing after the name, found {rest:?}")) }
}

fn after_colon<'a>(rest: &'a str, form: &str) -> Result<&'a str, String> {
    rest.strip_prefix(':').filter(|rest| !rest.is_empty()).ok_or_else(|| format!("expected {form}"))
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| format!("expected a number of records, such as 10, found {text:?}"))
}

/// Parses an expression, or returns the position of its error. Records are bytes: `(?-u:\xff)` matches bytes that are
/// not text.
fn regex(text: &str) -> Result<Regex, String> {
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(text);
    let (kind, at) = match &parsed {
        Ok(_) => return Regex::new(text).map_err(|error| format!("expected a smaller expression: {error}")),
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), error.span().start.offset),
        Err(regex_syntax::Error::Translate(error)) => (error.kind().to_string(), error.span().start.offset),
        Err(error) => (error.to_string(), 0),
    };
    let rest: String = text.get(at..).unwrap_or_default().chars().take(SHOWN).collect();
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    Err(format!("expected a regular expression, found {rest:?} at character {} of it: {kind}", before + 1))
}

/// Parses `SEP REGEX SEP TEXT`, where SEP is any character. A backslash removes its meaning.
fn replace(rest: &str) -> Result<Work, String> {
    const FORM: &str = "replace/REGEX/TEXT, or any other character in place of '/'";
    let separator = rest.chars().next().filter(|&c| c.is_ascii_punctuation() && !r"\<>".contains(c));
    let Some(separator) = separator else { return Err(format!("expected {FORM}")) };
    let parts = split(&rest[separator.len_utf8()..], separator);
    let [expression, text] = &parts[..] else {
        return Err(format!(
            "expected {FORM}: two of {separator:?}, found {}; \\{separator} is the character itself",
            parts.len()
        ));
    };
    if expression.is_empty() {
        return Err(format!("expected {FORM}, found an empty REGEX"));
    }
    let regex = regex(expression)?;
    // In the expression, a backslash before a separator is valid and stays; in the text it is removed.
    let text = text.replace(&format!("\\{separator}"), &separator.to_string());
    let text = if text.is_empty() { Vec::new() } else { escape::parse(&text)? };
    Ok(Work::Replace { text: template(text, &regex)?, regex })
}

/// Splits text at separators that have no backslash before them.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == separator && !is_escaped {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Checks the groups: a group that is not in the expression would silently be replaced by no text.
fn template(text: Vec<u8>, regex: &Regex) -> Result<Template, String> {
    if !text.contains(&b'$') {
        return Ok(Template::Plain(text));
    }
    let (mut missing, mut all) = (None, Vec::new());
    let mut names = Vec::new();
    interpolate::bytes(
        &text,
        |index, _| {
            if index >= regex.captures_len() {
                missing.get_or_insert(index.to_string());
            }
        },
        |name| {
            if !regex.capture_names().flatten().any(|known| known == name) {
                names.push(name.to_string());
            }
            None
        },
        &mut all,
    );
    match missing.or(names.into_iter().next()) {
        None => Ok(Template::Groups(text)),
        Some(name) => Err(format!(
            "expected a group of REGEX after '$', found {name:?}; ${{1}}a is group 1 and an a, $$ is a dollar sign"
        )),
    }
}

/// Parses `LIST[:SEP]`. A list is a record of CSV, so that names may contain commas and colons.
fn fields(text: &str) -> Result<Work, String> {
    let mut is_quoted = false;
    let colon = text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == b':' && !is_quoted
    });
    let (list, separator) = match colon {
        Some(at) => (&text[..at], Some(escape::parse(&text[at + 1..])?)),
        None => (text, None),
    };
    let csv = Csv::new();
    let (mut elements, mut list) = (Vec::new(), csv.fields(list.as_bytes()));
    while let Some(raw) = list.next_raw() {
        let element = String::from_utf8_lossy(raw);
        elements.push(match raw {
            [b'"', ..] if raw.len() < 2 || !raw.ends_with(b"\"") => {
                return Err(format!("expected a quote at the end of the name, found {element:?}"));
            }
            [b'"', ..] => Field::Name(String::from_utf8_lossy(&csv.unquote(raw)).into_owned()),
            [] | [b'0'..=b'9' | b'-' | b'+', ..] => Field::Range(range(&element)?),
            _ => Field::Name(element.into_owned()),
        });
    }
    if elements.is_empty() {
        range("")?;
    }
    Ok(Work::Fields { list: elements, separator })
}

/// Parses `3`, `3-5`, `3-` or `-5`.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let field = |text: &str| text.parse::<usize>().ok().filter(|&field| field > 0 && !text.starts_with('+'));
    let range = match text.split_once('-') {
        None => field(text).map(|field| field..=field),
        Some(("", "")) => None,
        Some(("", last)) => field(last).map(|last| 1..=last),
        Some((first, "")) => field(first).map(|first| first..=usize::MAX),
        Some((first, last)) => field(first).zip(field(last)).map(|(first, last)| first..=last),
    };
    match range {
        Some(range) if !range.is_empty() => Ok(range.start() - 1..=range.end() - 1),
        _ => Err(format!("expected fields such as 1,3-5 or 3- (the first is 1), found {text:?}")),
    }
}

impl Fields {
    /// Returns the fields of a list. `names` are those of the header, if there is one.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for a field that the header does not have, and for a name that it has more
    /// than once.
    pub(super) fn of(list: &[Field], names: Option<&[Vec<u8>]>) -> millstream::Result<Fields> {
        let wrong = |found: String| {
            Error::new(ErrorKind::InvalidOption)
                .with_found(found)
                .with_expected(format!("fields of the header: {}", listed(names.unwrap_or_default())))
                .with_advice("select fields of the header, by their names or numbers")
        };
        let find = |field: &Field| match field {
            Field::Range(range) => {
                let last = last_needed(range);
                match names {
                    Some(names) if last >= names.len() => {
                        let len = count_text(names.len() as u64, "field");
                        Err(wrong(format!("field {} of a header with {len}", last + 1)))
                    }
                    _ => Ok(range.clone()),
                }
            }
            Field::Name(name) => {
                let mut found = (0..).zip(names.unwrap_or_default()).filter(|(_, other)| *other == name.as_bytes());
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => Ok(at..=at),
                    (None, _) => Err(wrong(format!("no field {name:?}"))),
                    _ => Err(wrong(format!("more than one field {name:?}; its number selects one of them"))),
                }
            }
        };
        list.iter().map(find).collect::<millstream::Result<_>>().map(Fields::new)
    }

    fn new(mut ranges: Vec<RangeInclusive<usize>>) -> Fields {
        ranges.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<usize>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        Fields(merged)
    }
}

fn sample(text: &str) -> Result<Work, String> {
    let (part, seed) = match text.split_once(':') {
        Some((part, seed)) => {
            let wrong = || format!("expected a whole number as SEED, found {seed:?}");
            (part, Some(seed.parse::<u64>().map_err(|_| wrong())?))
        }
        None => (text, None),
    };
    let value = match part.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => part.parse(),
    };
    match value {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(Work::Sample { part, seed }),
        _ => Err(format!("expected a fraction of the records from 0 to 1, such as 0.01 or 1%, found {part:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::options::MORE_HELP;

    fn wrong(text: &str) -> String {
        StageText::parse(text).expect_err(text)
    }

    /// Every form of every stage.
    const FORMS: [&str; 15] = [
        "noop",
        "match:a|b",
        "not:a:b",
        "fields:1",
        "fields:1,3-5:;",
        "fields:2-::",
        "replace:a:b",
        "replace/a/",
        "replace|a:b|c/d",
        r"replace:a\:b:c\:d",
        "take:0",
        "skip:3",
        "sample:0.5",
        "sample:1%:7",
        "uniq",
    ];

    #[test]
    fn all_forms() {
        for text in FORMS {
            StageText::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn the_help_and_the_message_name_every_stage() {
        for text in FORMS {
            let name = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap();
            let is_named = |text: &str| text.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word == name);
            assert!(is_named(ACCEPTED), "{name}: in ACCEPTED");
            assert!(MORE_HELP.lines().any(|line| line.starts_with(&format!("  {name}"))), "{name}: in the help");
        }
    }

    #[test]
    fn errors_show_the_invalid_part() {
        for (text, part) in [
            ("", "expected noop, match:REGEX"),
            ("grep:a", "expected noop, match:REGEX"),
            ("noop:", "expected nothing after the name, found \":\""),
            ("match", "expected match:REGEX"),
            ("match:", "expected match:REGEX"),
            ("match:aé(b", "found \"(b\" at character 3 of it: unclosed group"),
            ("not:a{2,1}", "at character 2 of it"),
            ("fields:0", "(the first is 1), found \"0\""),
            ("fields:3-1", "found \"3-1\""),
            ("fields:1,,2", "found \"\""),
            ("fields:-", "found \"-\""),
            ("fields:1:", "at least one byte"),
            ("replace", "expected replace/REGEX/TEXT"),
            ("replace a b", "expected replace/REGEX/TEXT"),
            ("replace/a", "two of '/', found 1"),
            ("replace/a/b/", "two of '/', found 3; \\/ is the character itself"),
            ("replace//b", "found an empty REGEX"),
            ("replace/(a)/$2", "found \"2\""),
            ("replace/(a)/$1x", "found \"1x\""),
            ("take:", "expected take:N"),
            ("take:+1", "found \"+1\""),
            ("skip:-1", "found \"-1\""),
            ("sample:2", "found \"2\""),
            ("sample:nan", "found \"nan\""),
            ("sample:0.1:x", "found \"x\""),
            ("fields:\"a", "expected a quote at the end of the name, found \"\\\"a\""),
            ("fields:+1", "found \"+1\""),
        ] {
            assert!(wrong(text).contains(part), "{text}: {}", wrong(text));
        }
    }

    #[test]
    fn fields_are_merged() {
        let Work::Fields { list, .. } = StageText::parse("fields:7-,3,1-2,9").unwrap().work else { panic!() };
        assert_eq!(Fields::of(&list, None).unwrap(), Fields(vec![0..=2, 6..=TO_THE_LAST]));
    }

    #[test]
    fn a_backslash_escapes_a_separator() {
        assert_eq!(split(r"a\:b:c\\:d", ':'), [r"a\:b", r"c\\", "d"]);
    }
}
