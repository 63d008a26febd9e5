//! The expected results of framers, computed in the simplest way, and functions that run a framer.
//!
//! A framer is described by words, as in `vectors/frames.tsv`: `bytes 0d0a untrimmed`. From these words [`framer`]
//! creates the framer, and [`naive`] splits a slice by itself; the fuzzer compares the two as well.

use millstream_core::ErrorKind;
use millstream_core::frame::*;

/// The contents of the records, and the error after them if there is one.
pub type Outcome = (Vec<Vec<u8>>, Option<ErrorKind>);

/// A case of `vectors/frames.tsv`.
pub struct Case {
    pub name: &'static str,
    pub words: &'static str,
    pub input: Vec<u8>,
    pub expected: Outcome,
}

impl Case {
    /// Returns the splits of the input: at each single position, and at all positions.
    pub fn splits(&self) -> Vec<Vec<usize>> {
        let every_byte: Vec<usize> = (0..=self.input.len()).collect();
        every_byte.iter().map(|&at| vec![at]).chain([every_byte.clone()]).collect()
    }
}

/// Returns the shared vectors of records.
pub fn vectors() -> Vec<Case> {
    let lines = include_str!("../../../../vectors/frames.tsv").lines();
    let cases = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let [name, words, input, records, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}");
        };
        let records = if records == "-" { Vec::new() } else { records.split(',').map(unhex).collect() };
        let error = ErrorKind::ALL.iter().copied().find(|kind| kind.name() == end);
        assert!(error.is_some() || end == "end", "{name}: no error has the name {end}");
        Case { name, words, input: unhex(input), expected: (records, error) }
    });
    let cases: Vec<Case> = cases.collect();
    assert!(!cases.is_empty(), "the file contains no case");
    cases
}

/// Creates the framer that these words describe.
pub fn framer(words: &str) -> Box<dyn Framer> {
    let words: Vec<&str> = words.split(' ').collect();
    let delimiter = |trimmed: Delimiter, rest: &[&str]| -> Box<dyn Framer> {
        if rest == ["untrimmed"] { Box::new(trimmed.untrimmed()) } else { Box::new(trimmed) }
    };
    match words[..] {
        ["lines"] => Box::new(Lines::new()),
        ["lines", "untrimmed"] => Box::new(Lines::untrimmed()),
        ["byte", hex, ref rest @ ..] => delimiter(Delimiter::byte(unhex(hex)[0]), rest),
        ["bytes", hex, ref rest @ ..] => delimiter(Delimiter::bytes(unhex(hex)).unwrap(), rest),
        ["char", hex, ref rest @ ..] => delimiter(Delimiter::char(character(hex)), rest),
        ["any-of", hex, ref rest @ ..] => {
            let set = unhex(hex);
            let any_of = Predicate::new(|byte| set.contains(&byte));
            if rest == ["untrimmed"] { Box::new(any_of.untrimmed()) } else { Box::new(any_of) }
        }
        ["bson"] => Box::new(Bson::new()),
        ["csv"] => Box::new(Csv::new()),
        ["fixed", len] => Box::new(Fixed::new(len.parse().unwrap()).unwrap()),
        ["prefix", width, order, counts] => {
            let width = match width {
                "u8" => PrefixWidth::U8,
                "u16" => PrefixWidth::U16,
                "u32" => PrefixWidth::U32,
                "u64" => PrefixWidth::U64,
                _ => panic!("unknown width {width}"),
            };
            let endian = if order == "big" { Endian::Big } else { Endian::Little };
            let counts = if counts == "itself" { PrefixCounts::Itself } else { PrefixCounts::Payload };
            Box::new(LengthPrefixed::new(width, endian).counts(counts))
        }
        _ => panic!("unknown framer {words:?}"),
    }
}

/// Returns the outcome that these words describe for a whole stream.
pub fn naive(words: &str, mut input: &[u8]) -> Outcome {
    let words: Vec<&str> = words.split(' ').collect();
    let untrimmed = words.last() == Some(&"untrimmed");
    let mut records = Vec::new();
    while !input.is_empty() {
        // The start and end of the content, and the end of the record.
        let (from, to, end) = match words[0] {
            "fixed" => (0, words[1].parse().unwrap(), words[1].parse().unwrap()),
            "bson" => {
                if input.len() < 4 {
                    return (records, Some(ErrorKind::FrameTruncated));
                }
                let len = input[..4].iter().rev().fold(0, |value, &byte| value * 256 + u128::from(byte));
                if !(5..1 << 31).contains(&len) {
                    return (records, Some(ErrorKind::LengthInvalid));
                }
                if len <= input.len() as u128 && input[len as usize - 1] != 0 {
                    return (records, Some(ErrorKind::DocumentInvalid));
                }
                (0, len, len)
            }
            "prefix" => {
                let width = words[1][1..].parse::<u128>().unwrap() / 8;
                if (input.len() as u128) < width {
                    return (records, Some(ErrorKind::FrameTruncated));
                }
                let mut prefix = input[..width as usize].to_vec();
                if words[2] == "little" {
                    prefix.reverse();
                }
                let value = prefix.iter().fold(0, |value, &byte| value * 256 + u128::from(byte));
                let end = if words[3] == "itself" { value } else { value + width };
                if end < width {
                    return (records, Some(ErrorKind::LengthInvalid));
                }
                (width, end, end)
            }
            _ => {
                let delimiters: Vec<Vec<u8>> = match words[0] {
                    "lines" => vec![vec![b'\n']],
                    "char" => vec![character(words[1]).to_string().into_bytes()],
                    "any-of" => unhex(words[1]).iter().map(|&byte| vec![byte]).collect(),
                    _ => vec![unhex(words[1])],
                };
                let found = (0..input.len())
                    .find_map(|at| delimiters.iter().find(|d| input[at..].starts_with(d)).map(|d| (at, at + d.len())));
                let (mut to, end) = found.unwrap_or((input.len(), input.len()));
                if found.is_some() && untrimmed {
                    to = end;
                } else if found.is_some() && words[0] == "lines" && to > 0 && input[to - 1] == b'\r' {
                    to -= 1;
                }
                (0, to as u128, end as u128)
            }
        };
        if end > input.len() as u128 {
            return (records, Some(ErrorKind::FrameTruncated));
        }
        records.push(input[from as usize..to as usize].to_vec());
        input = &input[end as usize..];
    }
    (records, None)
}

/// Returns the outcome of reading one record at a time, if the first `splits[0]` bytes arrive first, and so on.
pub fn by_steps(framer: &mut dyn Framer, input: &[u8], splits: &[usize]) -> Outcome {
    let mut records = Vec::new();
    let (mut start, mut resume, mut needed) = (0, Resume::START, 0);
    for (end, eof) in arrivals(input, splits) {
        while start < end {
            match framer.step(&input[start..end], resume, eof) {
                Step::Record { len, terminated } => {
                    assert!(needed == 0 || needed == len as u64, "a record of {len} bytes, but {needed} were needed");
                    records.push(framer.trim().apply(&input[start..start + len], terminated).to_vec());
                    (start, resume, needed) = (start + len, Resume::START, 0);
                }
                Step::More { resume: now, need } => {
                    assert!(!eof, "more bytes requested at the end");
                    let (before, scanned) = (resume.scanned(), now.scanned());
                    assert!(before <= scanned && scanned <= end - start, "scanned {before}, then {scanned}");
                    assert!(need == 0 || need > (end - start) as u64, "needs {need} of {}", end - start);
                    (resume, needed) = (now, need);
                    break;
                }
                Step::Bad(error) => return (records, Some(error.kind())),
            }
        }
    }
    (records, None)
}

/// Returns the outcome of reading in batches of at most `max` records.
pub fn by_batches(framer: &mut dyn Framer, input: &[u8], splits: &[usize], max: usize) -> Outcome {
    let mut records = Vec::new();
    let mut start = 0;
    for (end, eof) in arrivals(input, splits) {
        loop {
            let mut offsets = vec![0];
            let result = framer.batch(&input[start..end], eof, max, &mut offsets);
            let terminated = *result.as_ref().unwrap_or(&true);
            let batch = Batch::new(&input[start..end], &offsets, framer.trim(), terminated);
            assert!(batch.len() <= max);
            records.extend(batch.iter().map(<[u8]>::to_vec));
            start += offsets[batch.len()] as usize;
            if let Err(error) = result {
                return (records, Some(error.kind()));
            }
            if batch.len() < max {
                let rest = &input[start..end];
                assert!(
                    rest.is_empty() || matches!(framer.step(rest, Resume::START, eof), Step::More { .. }),
                    "left a record"
                );
                break;
            }
        }
    }
    (records, None)
}

/// Returns the number of bytes that have arrived, and whether these are all: at each split, at the end, and when the
/// end is known.
fn arrivals(input: &[u8], splits: &[usize]) -> Vec<(usize, bool)> {
    splits.iter().map(|&split| (split, false)).chain([(input.len(), false), (input.len(), true)]).collect()
}

/// Converts hexadecimal digits to bytes.
pub fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

fn character(hex: &str) -> char {
    char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap()
}
