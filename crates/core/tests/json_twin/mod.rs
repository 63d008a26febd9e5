//! The expected elements of a JSON document and the expected records of newline-delimited JSON: a recursive parser that
//! reads one byte at a time and leaves names and lines to `serde_json` and `str`.

use millstream_core::ErrorKind;
use millstream_core::frame::{Batch, Framer, JsonLines, Resume, Step};
use millstream_core::internal::{JsonElements, SEPARATOR};

/// Records, and the error after them with its offset in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub records: Vec<Vec<u8>>,
    pub error: Option<(ErrorKind, u64)>,
}

type Parsed<T = ()> = Result<T, (ErrorKind, u64)>;

struct Twin<'a> {
    input: &'a [u8],
    at: usize,
    limit: usize,
    elements: Vec<Vec<u8>>,
}

/// Returns the elements of the array at `path` of a document.
pub fn elements(path: &[&str], limit: usize, input: &[u8]) -> Outcome {
    let mut twin = Twin { input, at: 0, limit, elements: Vec::new() };
    let error = twin.document(path).err();
    Outcome { records: twin.elements, error }
}

impl Twin<'_> {
    fn document(&mut self, path: &[&str]) -> Parsed {
        if let Some(0xff | 0xfe | 0) = self.input.first() {
            return self.invalid();
        }
        if self.input.first() == Some(&0xef) {
            for byte in [0xef, 0xbb, 0xbf] {
                self.take(&[byte])?;
            }
        }
        self.level(path, 0)?;
        self.blank();
        if self.at == self.input.len() { Ok(()) } else { self.invalid() }
    }

    fn invalid<T>(&self) -> Parsed<T> {
        Err((ErrorKind::JsonInvalid, self.at as u64))
    }

    fn peek(&self) -> Parsed<u8> {
        self.input.get(self.at).copied().ok_or((ErrorKind::DocumentTruncated, self.at as u64))
    }

    /// Takes one of these bytes.
    fn take(&mut self, bytes: &[u8]) -> Parsed<u8> {
        let byte = self.peek()?;
        if !bytes.contains(&byte) {
            return self.invalid();
        }
        self.at += 1;
        Ok(byte)
    }

    fn blank(&mut self) {
        while self.take(b" \t\r\n").is_ok() {}
    }

    /// Takes a value that contains the elements.
    fn level(&mut self, path: &[&str], depth: usize) -> Parsed {
        self.blank();
        let here = self.at as u64;
        match (self.peek()?, path) {
            (b'[', _) | (b'{', [_, ..]) => {}
            (b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n', _) => return Err((ErrorKind::ShapeMismatch, here)),
            _ => return self.invalid(),
        }
        self.container(Some(path), depth)
    }

    /// Takes an array or object, which is on the path or not.
    fn container(&mut self, path: Option<&[&str]>, depth: usize) -> Parsed {
        if depth == self.limit {
            return Err((ErrorKind::TooDeep, self.at as u64));
        }
        let is_object = self.take(b"[{")? == b'{';
        let end = if is_object { b'}' } else { b']' };
        let first = path.and_then(|path| path.first());
        let (mut count, mut is_found) = (0, first.is_none());
        self.blank();
        while count > 0 || self.peek()? != end {
            self.blank();
            let mut name = Some(count.to_string());
            count += 1;
            if is_object {
                let start = self.at;
                self.text()?;
                name = serde_json::from_slice(&self.input[start..self.at]).ok();
            }
            let is_here = first.is_some_and(|first| name.as_deref() == Some(first));
            if is_here && is_found {
                return Err((ErrorKind::JsonInvalid, self.at as u64 - 1));
            }
            is_found |= is_here;
            if is_object {
                self.blank();
                self.take(b":")?;
                self.blank();
            }
            let start = self.at;
            match path {
                Some([_, rest @ ..]) if is_here => self.level(rest, depth + 1)?,
                Some([]) => {
                    self.value(depth + 1)?;
                    self.elements.push(self.input[start..self.at].to_vec());
                }
                _ => self.value(depth + 1)?,
            }
            self.blank();
            if self.take(&[b',', end])? == end {
                self.at -= 1;
                break;
            }
        }
        if !is_found {
            return Err((ErrorKind::KeyMissing, self.at as u64));
        }
        self.take(&[end]).map(drop)
    }

    fn value(&mut self, depth: usize) -> Parsed {
        match self.peek()? {
            b'"' => self.text(),
            b'[' | b'{' => self.container(None, depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Parsed {
        word.iter().try_for_each(|&byte| self.take(&[byte]).map(drop))
    }

    fn text(&mut self) -> Parsed {
        self.take(b"\"")?;
        loop {
            match self.peek()? {
                b'"' => return self.take(b"\"").map(drop),
                b'\\' => {
                    self.at += 1;
                    if self.take(b"\"\\/bfnrtu")? == b'u' {
                        for _ in 0..4 {
                            self.take(b"0123456789abcdefABCDEF")?;
                        }
                    }
                }
                0..0x20 => return self.invalid(),
                _ => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> Parsed {
        self.take(b"0123456789")?;
        while self.take(b"0123456789").is_ok() {}
        Ok(())
    }

    fn number(&mut self) -> Parsed {
        let _ = self.take(b"-");
        if self.take(b"0").is_err() {
            self.digits()?;
        }
        if self.take(b".").is_ok() {
            self.digits()?;
        }
        if self.take(b"eE").is_ok() {
            let _ = self.take(b"+-");
            self.digits()?;
        }
        // More digits could follow at the end of the input.
        self.peek().map(drop)
    }
}

/// Returns the outcome of the filter if the input arrives in these pieces.
pub fn filtered<'a>(mut filter: JsonElements, pieces: impl IntoIterator<Item = &'a [u8]>, from: usize) -> Outcome {
    let mut kept = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        let mut memory = [&vec![b'#'; from], piece].concat();
        let (count, outcome) = filter.filter(&mut memory, from);
        kept.extend_from_slice(&memory[..count]);
        if outcome.is_err() {
            result = outcome;
            break;
        }
    }
    let result = result.and_then(|()| filter.finish());
    let mut records: Vec<Vec<u8>> = kept.split(|&byte| byte == SEPARATOR).map(<[u8]>::to_vec).collect();
    // What follows the last separator is a part of an element.
    let rest = records.pop().unwrap();
    let error = result.err();
    assert!(rest.is_empty() || error.is_some(), "an element without its end: {rest:?}");
    if let Some(error) = &error {
        assert_eq!(error.record(), Some(records.len() as u64), "{error}");
    }
    Outcome { records, error: error.map(|error| (error.kind(), error.offset().unwrap())) }
}

/// Returns the lines of newline-delimited JSON. An error is at the start of its line.
pub fn lines(input: &[u8]) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), error: None };
    let mut start = 0;
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        let content = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
        let value = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let is_blank = value.iter().all(|byte| b" \t\r\n".contains(byte));
        let is_valid = || {
            let text = std::str::from_utf8(value).ok();
            text.is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
        };
        if !is_blank && !is_valid() {
            outcome.error = Some((ErrorKind::JsonInvalid, start));
            return outcome;
        }
        if !is_blank {
            outcome.records.push(content.to_vec());
        }
        start += line.len() as u64;
    }
    outcome
}

/// Returns the outcome of reading one line at a time, if the first `split` bytes arrive first. An error is at the start of
/// its line.
pub fn lines_by_steps(mut lines: JsonLines, input: &[u8], split: usize) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), error: None };
    let (mut start, mut resume) = (0, Resume::START);
    for (end, eof) in [(split, false), (input.len(), false), (input.len(), true)] {
        while start < end {
            match lines.step(&input[start..end], resume, eof) {
                Step::Record { len, terminated } => {
                    let content = lines.trim().apply(&input[start..start + len], terminated);
                    outcome.records.extend((!lines.skips(content)).then(|| content.to_vec()));
                    (start, resume) = (start + len, Resume::START);
                }
                Step::More { resume: now, .. } => {
                    resume = now;
                    break;
                }
                Step::Bad(error) => {
                    assert_eq!(error.column(), error.offset().map(|offset| offset + 1));
                    outcome.error = Some((error.kind(), start as u64));
                    return outcome;
                }
            }
        }
    }
    outcome
}

/// Returns the outcome of reading all of the input in batches of at most `max` lines.
pub fn lines_by_batches(mut lines: JsonLines, input: &[u8], max: usize) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), error: None };
    let mut start = 0;
    while start < input.len() {
        let mut offsets = vec![0];
        let rest = &input[start..];
        let result = lines.batch(rest, true, max, &mut offsets);
        let batch = Batch::new(rest, &offsets, lines.trim(), *result.as_ref().unwrap_or(&true));
        let records: Vec<_> = batch.iter().filter(|line| !lines.skips(line)).map(<[u8]>::to_vec).collect();
        assert_eq!(lines.count_skipped(&batch), batch.len() - records.len());
        outcome.records.extend(records);
        start += *offsets.last().unwrap() as usize;
        if let Err(error) = result {
            outcome.error = Some((error.kind(), start as u64));
            return outcome;
        }
    }
    outcome
}
