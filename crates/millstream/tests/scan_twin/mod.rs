//! A simple implementation of scanning with std's `parse`, and functions that scan with a reader, for tests and the
//! fuzzer.

#![allow(dead_code)] // each user takes what it needs

use std::io::{Cursor, Read};

use millstream::scan::Separator;
use millstream::{Decode, ErrorKind, Reader, Result};

/// All types that can be scanned here: a tuple is written as words with a blank between them.
pub const TYPES: &[&str] = &[
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "isize",
    "f32",
    "f64",
    "u8 i8",
    "u32 u32",
    "u64 f64",
    "u64 f64 i16",
];

/// The values, each as text, and the error after them, if there is one: its kind, offset and record.
pub type Outcome = (Vec<String>, Option<(ErrorKind, u64, u64)>);

/// Returns the expected result of scanning `input` for values of the type `words`.
pub fn naive(words: &str, separator: Separator, input: &[u8]) -> Outcome {
    let words: Vec<&str> = words.split(' ').collect();
    let mut values = Vec::new();
    let mut tokens = tokens(separator, input).into_iter().peekable();
    while tokens.peek().is_some() {
        let mut value = Vec::new();
        for word in &words {
            let (start, token) = tokens.next().unwrap_or((input.len(), None));
            let parsed = token.ok_or(ErrorKind::ValueMissing).and_then(|token| parse(word, token));
            match parsed {
                Ok(text) => value.push(text),
                Err(kind) => {
                    let record = input[..start].iter().filter(|&&byte| byte == b'\n').count() as u64;
                    return (values, Some((kind, start as u64, record)));
                }
            }
        }
        values.push(value.join(" "));
    }
    (values, None)
}

/// Returns the start of each token, and the token.
fn tokens(separator: Separator, input: &[u8]) -> Vec<(usize, Option<&[u8]>)> {
    let is_space = |byte: u8| byte == 32 || (9..=13).contains(&byte);
    let ends = |byte: u8| match separator {
        Separator::Space => is_space(byte),
        Separator::Byte(separator) => byte == separator || byte == b'\n',
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    for end in 0..=input.len() {
        if end < input.len() && !ends(input[end]) {
            continue;
        }
        let mut token = &input[start..end];
        let counts = match separator {
            Separator::Space => !token.is_empty(),
            Separator::Byte(_) => end < input.len() || !token.is_empty(),
        };
        if separator != Separator::Space && input.get(end) == Some(&b'\n') {
            token = token.strip_suffix(b"\r").unwrap_or(token);
        }
        if counts {
            tokens.push((start, Some(token)));
        }
        start = end + 1;
    }
    tokens
}

fn parse(word: &str, token: &[u8]) -> Result<String, ErrorKind> {
    let text = std::str::from_utf8(token).map_err(|_| ErrorKind::NumberInvalid)?;
    if word.starts_with('f') {
        let (number, shown) = match word {
            "f32" => text.parse::<f32>().map(|number| (f64::from(number), format!("{number:?}"))),
            _ => text.parse::<f64>().map(|number| (number, format!("{number:?}"))),
        }
        .map_err(|_| ErrorKind::NumberInvalid)?;
        let is_name = text.bytes().all(|byte| !byte.is_ascii_digit());
        return if number.is_finite() || is_name { Ok(shown) } else { Err(ErrorKind::NumberOverflow) };
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    let digits = if word.starts_with('i') && digits == text { text.strip_prefix('-').unwrap_or(text) } else { digits };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ErrorKind::NumberInvalid);
    }
    match word {
        "u8" => text.parse::<u8>().map(|number| number.to_string()),
        "u16" => text.parse::<u16>().map(|number| number.to_string()),
        "u32" => text.parse::<u32>().map(|number| number.to_string()),
        "u64" => text.parse::<u64>().map(|number| number.to_string()),
        "u128" => text.parse::<u128>().map(|number| number.to_string()),
        "usize" => text.parse::<usize>().map(|number| number.to_string()),
        "i8" => text.parse::<i8>().map(|number| number.to_string()),
        "i16" => text.parse::<i16>().map(|number| number.to_string()),
        "i32" => text.parse::<i32>().map(|number| number.to_string()),
        "i64" => text.parse::<i64>().map(|number| number.to_string()),
        "i128" => text.parse::<i128>().map(|number| number.to_string()),
        "isize" => text.parse::<isize>().map(|number| number.to_string()),
        word => panic!("unknown type {word}"),
    }
    .map_err(|_| ErrorKind::NumberOverflow)
}

/// Returns a reader's values of the type `words`.
pub fn by_reader(words: &str, separator: Separator, reader: &mut Reader) -> Outcome {
    let mut values = Vec::new();
    loop {
        match scan(words, separator, reader) {
            Ok(Some(value)) => values.push(value),
            Ok(None) => return (values, None),
            Err(error) => {
                return (values, Some((error.kind(), error.offset().unwrap(), error.record().unwrap())));
            }
        }
    }
}

/// Returns the next value as text.
pub fn scan(words: &str, separator: Separator, reader: &mut Reader) -> Result<Option<String>> {
    macro_rules! scan {
        ($type:ty, $value:pat => $text:expr) => {
            match separator {
                Separator::Space => reader.scan::<$type>(),
                Separator::Byte(byte) => reader.scan_delimited::<$type>(byte),
            }
            .map(|value| value.map(|$value| $text))
        };
        ($type:ty) => {
            scan!($type, number => format!("{number:?}"))
        };
    }
    match words {
        "u8" => scan!(u8),
        "u16" => scan!(u16),
        "u32" => scan!(u32),
        "u64" => scan!(u64),
        "u128" => scan!(u128),
        "usize" => scan!(usize),
        "i8" => scan!(i8),
        "i16" => scan!(i16),
        "i32" => scan!(i32),
        "i64" => scan!(i64),
        "i128" => scan!(i128),
        "isize" => scan!(isize),
        "f32" => scan!(f32),
        "f64" => scan!(f64),
        "u8 i8" => scan!((u8, i8), (a, b) => format!("{a:?} {b:?}")),
        "u32 u32" => scan!((u32, u32), (a, b) => format!("{a:?} {b:?}")),
        "u64 f64" => scan!((u64, f64), (a, b) => format!("{a:?} {b:?}")),
        "u64 f64 i16" => scan!((u64, f64, i16), (a, b, c) => format!("{a:?} {b:?} {c:?}")),
        words => panic!("unknown type {words}"),
    }
}

/// Returns a reader of a source that delivers the pieces between the splits, which ascend.
pub fn split(input: &[u8], splits: &[usize], capacity: usize) -> Reader {
    let mut source: Box<dyn Read + Send> = Box::new(std::io::empty());
    let mut start = 0;
    for end in splits.iter().copied().chain([input.len()]) {
        source = Box::new(source.chain(Cursor::new(input[start..end].to_vec())));
        start = end;
    }
    Reader::builder().capacity(capacity).decode(Decode::Off).from_read(source).unwrap()
}

/// Returns a reader that gets one byte at a time.
pub fn byte_by_byte(input: &[u8]) -> Reader {
    let mut bytes = Cursor::new(input.to_vec());
    Reader::builder().capacity(1).decode(Decode::Off).callback(move |space| bytes.read(&mut space[..1])).unwrap()
}
