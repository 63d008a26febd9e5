//! Strings in JSON syntax.

use super::{Part, Spare};

/// A string in quotes: the result of [`json`].
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    text: &'a [u8],
    max_len: usize,
}

/// The longest escape of a byte: `\u001f`.
const LONGEST: usize = 6;

/// Up to this length the maximum length of the text is a multiplication. Longer text is scanned, so that six times its
/// length is not reserved.
const SHORT: usize = 1024;

/// Returns the text in quotes, escaped as JSON requires: only `"`, `\` and control characters are escaped. Bytes that
/// are not UTF-8 become U+FFFD, as in [`String::from_utf8_lossy`].
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

/// Returns the maximum length of the text for `byte`. Several bytes can become a single U+FFFD,
/// which is three bytes long in UTF-8.
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

    fn put(&self, spare: &mut Spare<'_>) {
        spare.copy(b"\"");
        for chunk in self.text.utf8_chunks() {
            escape(chunk.valid().as_bytes(), |bytes| spare.copy(bytes));
            if !chunk.invalid().is_empty() {
                spare.copy("\u{fffd}".as_bytes());
            }
        }
        spare.copy(b"\"");
    }
}

/// Appends text in quotes, escaped as in [`json`].
pub fn append_json(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    append_escaped(out, text);
    out.push(b'"');
}

/// Appends text without quotes, escaped as in [`json`].
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

/// Returns how many bytes at the front need no escape. It checks eight bytes at a time, and the remaining ones singly.
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

/// Marks the bytes of a word that need an escape: the lowest set bit is in the first of these bytes, counted from the
/// lowest byte. The bits above it are meaningless.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
}
