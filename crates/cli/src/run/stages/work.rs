//! Turns the requested stages into code.

use std::sync::Arc;

use memchr::memmem;
use millstream::pipe::{Pipe, Stage};
use millstream::{Error, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use regex::bytes::{Captures, Regex};
use regex_automata::util::interpolate;

use super::content::{Content, Parts};
use super::csv::{Reorder, Select};
use super::text::{Field, Fields, StageText, TO_THE_LAST, Template, Work};

/// Returns the requested stage, for records with this content. For a record, the stage writes at most one match beyond
/// `limit` bytes; the caller reports that as an error. `select` selects fields, if records are those of CSV.
pub(super) fn stage(
    asked: &StageText,
    content: &Arc<Content>,
    limit: usize,
    select: impl FnOnce(&[Field]) -> Result<Option<Select>>,
) -> Result<Stage> {
    let (name, content) = (asked.text.as_str(), content.clone());
    Ok(match asked.work.clone() {
        Work::Noop => Pipe::stages().boxed(name),
        Work::Match(regex) => Pipe::stages().filter(move |record| regex.is_match(content.get(record))).boxed(name),
        Work::Not(regex) => Pipe::stages().filter(move |record| !regex.is_match(content.get(record))).boxed(name),
        Work::Fields { list, separator } => {
            if let Some(select) = select(&list)? {
                return Ok(csv_fields(name, content, select));
            }
            let list = Fields::of(&list, None)?;
            let separator = separator.unwrap_or_else(|| vec![b'\t']);
            let finder = memmem::Finder::new(&separator).into_owned();
            Pipe::stages()
                .rewrite(move |record, out| cut(&content.split(record), &list, &separator, &finder, out))
                .boxed(name)
        }
        Work::Replace { regex, text } => Pipe::stages()
            .rewrite(move |record, out| replace(&content.split(record), &regex, &text, limit, out))
            .boxed(name),
        Work::Take(count) => Pipe::stages().take(count).boxed(name),
        Work::Skip(count) => Pipe::stages().skip(count).boxed(name),
        Work::Sample { part, seed } => {
            let mut random = generator(seed)?;
            // The number of values, out of 2^64, that let a record pass.
            let wanted = (part * 2_f64.powi(64)) as u128;
            Pipe::stages().filter(move |_| u128::from(random.next_u64()) < wanted).boxed(name)
        }
        Work::Uniq => {
            let mut last: Option<Vec<u8>> = None;
            Pipe::stages().filter(move |record| is_new(&mut last, content.get(record))).boxed(name)
        }
    })
}

/// Returns the stage that selects fields of records of CSV.
fn csv_fields(name: &str, content: Arc<Content>, select: Select) -> Stage {
    let rewrite = move |record: &[u8], out: &mut Vec<u8>| {
        let parts = content.split(record);
        select.write(parts.content, out)?;
        out.extend_from_slice(parts.tail);
        Ok::<(), Error>(())
    };
    Pipe::stages().try_rewrite(rewrite).boxed(name)
}

/// Returns the stage that puts the fields of records of CSV in the order of the first source.
pub(super) fn reorder(content: Arc<Content>, reorder: Reorder) -> Stage {
    let rewrite = move |record: &[u8], out: &mut Vec<u8>| {
        let parts = content.split(record);
        reorder.write(parts.content, out)?;
        out.extend_from_slice(parts.tail);
        Ok::<(), Error>(())
    };
    Pipe::stages().try_rewrite(rewrite).boxed("order")
}

/// Returns random numbers that are the same on every machine for the same seed, and different each time without a seed.
fn generator(seed: Option<u64>) -> Result<Xoshiro256PlusPlus> {
    let seed = match seed {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|error| Error::from_io(std::io::Error::other(error)))?,
    };
    Ok(Xoshiro256PlusPlus::seed_from_u64(seed))
}

/// Selects fields as `cut -f` does: in their order, and each field only one time. Missing fields are omitted; a record
/// without a separator is unchanged.
fn cut(record: &Parts<'_>, list: &Fields, separator: &[u8], finder: &memmem::Finder<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(record.head);
    let content = record.content;
    let mut separators = finder.find_iter(content).peekable();
    if separators.peek().is_none() {
        out.extend_from_slice(content);
    } else {
        let (mut ranges, mut field, mut start, mut is_first) = (list.0.iter().peekable(), 0, 0, true);
        while let Some(range) = ranges.peek() {
            let end = separators.next();
            if range.contains(&field) {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(separator);
                }
                if *range.end() >= TO_THE_LAST {
                    out.extend_from_slice(&content[start..]);
                    break;
                }
                out.extend_from_slice(&content[start..end.unwrap_or(content.len())]);
            }
            if field == *range.end() {
                ranges.next();
            }
            let Some(end) = end else { break };
            start = end + separator.len();
            field += 1;
        }
    }
    out.extend_from_slice(record.tail);
}

fn replace(record: &Parts<'_>, regex: &Regex, text: &Template, limit: usize, out: &mut Vec<u8>) {
    let (content, mut last) = (record.content, 0);
    out.extend_from_slice(record.head);
    match text {
        Template::Plain(text) => {
            for found in regex.find_iter(content) {
                out.extend_from_slice(&content[last..found.start()]);
                out.extend_from_slice(text);
                last = found.end();
                if out.len() > limit {
                    return;
                }
            }
        }
        Template::Groups(text) => {
            for captures in regex.captures_iter(content) {
                let found = captures.get_match();
                out.extend_from_slice(&content[last..found.start()]);
                expand(&captures, regex, text, limit, out);
                last = found.end();
                if out.len() > limit {
                    return;
                }
            }
        }
    }
    out.extend_from_slice(&content[last..]);
    out.extend_from_slice(record.tail);
}

/// Appends the text with the matches of the groups, but no group beyond `limit`.
fn expand(captures: &Captures<'_>, regex: &Regex, text: &[u8], limit: usize, out: &mut Vec<u8>) {
    interpolate::bytes(
        text,
        |group, out| {
            if let Some(group) = captures.get(group).filter(|_| out.len() <= limit) {
                out.extend_from_slice(group.as_bytes());
            }
        },
        |name| regex.capture_names().position(|known| known == Some(name)),
        out,
    );
}

/// Returns whether a record differs from the previous one.
fn is_new(last: &mut Option<Vec<u8>>, content: &[u8]) -> bool {
    let is_new = last.as_deref() != Some(content);
    if is_new {
        let kept = last.get_or_insert_default();
        kept.clear();
        kept.extend_from_slice(content);
    }
    is_new
}
