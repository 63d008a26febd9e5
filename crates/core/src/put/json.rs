//! Strings in JSON syntax.

use super::{Part, Room};

/// A string in quotes: the result of [`json`].
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    text: &'a [u8],
    max_len: usize,
}

/// The most that a byte becomes: `\u001f`.
const LONGEST: usize = 6;

/// Up to this length the maximum length of the text is a multiplication. A longer one is scanned, so that six times its
/// length is not reserved.
const SHORT: usize = 1024;

/// The text in quotes, escaped as JSON requires: `"`, `\` and control characters, and nothing else. Bytes that are not
/// UTF-8 become U+FFFD, as by [`String::from_utf8_lossy`].
///
/// ```
/// use millstream::{Writer, put, put::json};
/// let mut out = Writer::memory()?;
/// put!(out, '{', json("key"), ':', json(b"\xff \"\x07\" \n \xc3\xa9"), '}')?;
/// assert_eq!(out.close()?.memory.unwrap(), r#"{"key":"� \"\u0007\" \n é"}"#.as_bytes());
/// # Ok::<(), millstream::Error>(())
/// ```
pub fn json<T: AsRef<[u8]> + ?Sized>(text: &T) -> Json<'_> {
    let text = text.as_ref();
    let content = if text.len() <= SHORT {
        text.len() * LONGEST
    } else {
        text.iter().fold(0, |sum: usize, &byte| sum.saturating_add(longest(byte)))
    };
    Json { text, max_len: content.saturating_add(2) }
}

/// The most that `byte` becomes. Several bytes together can be one U+FFFD, whose UTF-8 is three.
fn longest(byte: u8) -> usize {
    match byte {
        0..0x20 => LONGEST,
        0x20..0x80 => 1 + usize::from(byte == b'"' || byte == b'\\'),
        0x80.. => '\u{fffd}'.len_utf8(),
    }
}

impl Part for Json<'_> {
    #[inline]
    fn max_len(&self) -> usize {
        self.max_len
    }

    fn put(&self, room: &mut Room<'_>) {
        room.copy(b"\"");
        for chunk in self.text.utf8_chunks() {
            escape(chunk.valid().as_bytes(), |bytes| room.copy(bytes));
            if !chunk.invalid().is_empty() {
                room.copy("\u{fffd}".as_bytes());
            }
        }
        room.copy(b"\"");
    }
}

/// Appends text in quotes, escaped as by [`json`].
pub fn append_json(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    append_escaped(out, text);
    out.push(b'"');
}

/// The same without the quotes.
pub fn append_escaped(out: &mut Vec<u8>, text: &str) {
    escape(text.as_bytes(), |bytes| out.extend_from_slice(bytes));
}

/// Passes on the pieces of the escaped text.
#[inline(always)]
fn escape(mut text: &[u8], mut copy: impl FnMut(&[u8])) {
    loop {
        let (plain, rest) = text.split_at(count_plain(text));
        copy(plain);
        let Some((&byte, rest)) = rest.split_first() else { return };
        match byte {
            b'"' => copy(br#"\""#),
            b'\\' => copy(br"\\"),
            0x08 => copy(br"\b"),
            0x09 => copy(br"\t"),
            0x0a => copy(br"\n"),
            0x0c => copy(br"\f"),
            0x0d => copy(br"\r"),
            _ => {
                copy(br"\u00");
                copy(&[b'0' + (byte >> 4), b"0123456789abcdef"[usize::from(byte & 0xf)]]);
            }
        }
        text = rest;
    }
}

/// How many bytes at the front need no escape: eight at a time, then one.
fn count_plain(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * i + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    8 * words.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Which bytes of a word need an escape: the lowest set bit is in the first one of them, counted from the lowest; bits
/// above it are meaningless.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
}
