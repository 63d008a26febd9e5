//! A validation that returns "valid" or "unknown" and is several times faster than one that reports the error.
//!
//! It handles the common case: default rules for text and strictness, few levels, and no deprecated type with several
//! parts. If the result is unknown, [`check`](crate::document::check) scans the document again and decides, so this
//! module creates no errors. It never returns "valid" for a document that the full check rejects; a property test
//! compares the two.

use crate::{ElementType, Layout};

/// The maximum nesting in the common case. A larger array would have to be cleared for each document.
const LEVELS: usize = 24;

/// Whether these bytes are certainly a document that is valid in every byte by standard rules, with at most `depth`
/// levels. False otherwise, or if this cannot be determined here.
pub(crate) fn surely_right(bytes: &[u8], depth: u16) -> bool {
    walk(bytes, LEVELS.min(depth.into())).is_some()
}

/// For each type byte, the number of bytes in the payload, or one of the constants below.
static STEPS: [u8; 256] = {
    let mut steps = [CANNOT_TELL; 256];
    let mut index = 0;
    while index < ElementType::ALL.len() {
        let kind = ElementType::ALL[index];
        steps[kind as usize] = match kind.layout() {
            Layout::Fixed(len) => len as u8,
            Layout::Bool => BOOL,
            Layout::Text => TEXT,
            Layout::Document => DOCUMENT,
            Layout::Binary => BINARY,
            Layout::TwoCStrings | Layout::TextAndId | Layout::TextAndDocument => CANNOT_TELL,
        };
        index += 1;
    }
    steps
};

const BOOL: u8 = 251;
const TEXT: u8 = 252;
const DOCUMENT: u8 = 253;
const BINARY: u8 = 254;
const CANNOT_TELL: u8 = 255;

fn walk(bytes: &[u8], levels: usize) -> Option<()> {
    // The terminators of the enclosing documents.
    let mut outer = [0usize; LEVELS];
    let mut open = 0;
    let mut end = document_end(bytes, 0, bytes.len())?;
    if levels == 0 || end != bytes.len() - 1 {
        return None;
    }
    let mut at = 4;
    loop {
        // A document that continues past its end misses this position, and every later step fails: nothing entered
        // after that ends before `end`, so the bytes end first.
        if at == end {
            if open == 0 {
                return Some(());
            }
            at += 1;
            open -= 1;
            end = outer[open];
            continue;
        }
        let kind = *bytes.get(at)?;
        at = key_end(bytes, at + 1)?;
        match STEPS[usize::from(kind)] {
            TEXT => at = string_end(bytes, at)?,
            BOOL => {
                if *bytes.get(at)? > 1 {
                    return None;
                }
                at += 1;
            }
            DOCUMENT => {
                let inner = document_end(bytes, at, end)?;
                if open + 1 >= levels {
                    return None;
                }
                outer[open] = end;
                open += 1;
                end = inner;
                at += 4;
            }
            BINARY => {
                let len = length(bytes, at)?;
                // The old subtype contains another length in its bytes.
                if *bytes.get(at + 4)? == 2 {
                    return None;
                }
                at = at.checked_add(5 + len)?;
            }
            CANNOT_TELL => return None,
            len => at += usize::from(len),
        }
    }
}

/// Reads a length, which must not be negative.
#[inline(always)]
fn length(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

/// Returns the position of the terminator of the document at `at`, which must be before `end`.
#[inline(always)]
fn document_end(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let len = length(bytes, at)?;
    let last = at.checked_add(len)?.checked_sub(1)?;
    (len >= 5 && last < end && bytes[last] == 0).then_some(last)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Reads eight bytes as a little-endian number.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the position after the key at `at`, if its text is valid.
#[inline(always)]
fn key_end(bytes: &[u8], at: usize) -> Option<usize> {
    let Some(first) = word(bytes, at) else { return long_key_end(bytes, at) };
    let zeros = first.wrapping_sub(ONES) & !first & HIGHS;
    // Bits up to and including the lowest zero byte, so that the bytes after it do not matter.
    let key = zeros ^ zeros.wrapping_sub(1);
    if zeros == 0 || first & key & HIGHS != 0 {
        return long_key_end(bytes, at);
    }
    Some(at + zeros.trailing_zeros() as usize / 8 + 1)
}

#[inline(never)]
fn long_key_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let len = memchr::memchr(0, rest)?;
    is_text(&rest[..len]).then_some(at + len + 1)
}

/// Returns the position after the string at `at`, if its text and terminator are valid.
#[inline(always)]
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let len = length(bytes, at)?;
    let (&last, text) = bytes.get(at + 4..)?.get(..len)?.split_last()?;
    (last == 0 && is_text(text)).then_some(at + 4 + len)
}

/// Whether the bytes are UTF-8. Most text is short and ASCII: for up to 16 bytes, two overlapping words suffice.
#[inline(always)]
fn is_text(bytes: &[u8]) -> bool {
    let highs = match bytes.len() {
        8..=16 => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first) | u64::from_le_bytes(*last)) & HIGHS,
            _ => 1,
        },
        4..=7 => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => u64::from(u32::from_le_bytes(*first) | u32::from_le_bytes(*last)) & HIGHS,
            _ => 1,
        },
        0..=3 => bytes.iter().fold(0, |all, &byte| all | u64::from(byte)) & HIGHS,
        _ => 1,
    };
    highs == 0 || is_long_text(bytes)
}

#[inline(never)]
fn is_long_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::check::careful;
    use crate::{Document, Rules};
    use proptest::prelude::*;

    /// Keys and text with lengths around the size of the words that are loaded; a few are not ASCII.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z]{0,40}", "[a-zäß€😀]{0,20}"]
    }

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as i32 + 1).to_le_bytes()[..], text.as_bytes(), b"\0"].concat()
    }

    /// A type and a payload for it.
    fn value() -> impl Strategy<Value = (u8, Vec<u8>)> {
        let plain = prop_oneof![
            (prop::sample::select(&[2u8, 0x0d, 0x0e][..]), text()).prop_map(|(kind, text)| (kind, string(&text))),
            (prop::sample::select(&[1u8, 9, 0x11, 0x12][..]), any::<[u8; 8]>())
                .prop_map(|(kind, n)| (kind, n.to_vec())),
            prop::sample::select(&[6u8, 0x0a, 0x7f, 0xff][..]).prop_map(|kind| (kind, Vec::new())),
            (3u8.., prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(subtype, bytes)| {
                (5, [&(bytes.len() as i32).to_le_bytes()[..], &[subtype], &bytes].concat())
            }),
            any::<[u8; 12]>().prop_map(|id| (7, id.to_vec())),
            any::<bool>().prop_map(|bool| (8, vec![bool.into()])),
            any::<i32>().prop_map(|n| (0x10, n.to_le_bytes().to_vec())),
            any::<[u8; 16]>().prop_map(|decimal| (0x13, decimal.to_vec())),
            (text(), text()).prop_map(|(a, b)| (0x0b, [a.as_bytes(), b"\0", b.as_bytes(), b"\0"].concat())),
            (text(), any::<[u8; 12]>()).prop_map(|(text, id)| (0x0c, [&string(&text)[..], &id].concat())),
            text().prop_map(|text| {
                let code = string(&text);
                (0x0f, [&(code.len() as i32 + 9).to_le_bytes()[..], &code, &members(&[])].concat())
            }),
        ];
        plain.prop_recursive(30, 60, 4, |inner| {
            (prop::sample::select(&[3u8, 4][..]), prop::collection::vec((text(), inner), 0..4))
                .prop_map(|(kind, list)| (kind, members(&list)))
        })
    }

    fn members(list: &[(String, (u8, Vec<u8>))]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for (key, (kind, payload)) in list {
            bytes.push(*kind);
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(payload);
        }
        bytes.push(0);
        let len = (bytes.len() as i32).to_le_bytes();
        bytes[..4].copy_from_slice(&len);
        bytes
    }

    fn document() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec((text(), value()), 0..6).prop_map(|list| members(&list))
    }

    /// Whether the full check finds it valid.
    fn right(bytes: &[u8]) -> bool {
        Document::new(bytes).is_ok_and(|document| careful(&mut document.cursor()).is_ok())
    }

    proptest! {
        #[test]
        fn never_right_where_the_careful_walk_says_wrong(
            bytes in document(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        ) {
            let mut bytes = bytes;
            prop_assert!(!changes.is_empty() || cut.is_some() || right(&bytes));
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let depth = Rules::new().depth;
            prop_assert!(!surely_right(&bytes, depth) || right(&bytes));
        }

        #[test]
        fn the_plain_case_is_known(key in text(), text in text()) {
            let list = [2u8, 1, 3, 4, 5, 6, 7, 8, 9, 10, 0x0d, 0x0e, 0x10, 0x11, 0x12, 0x13, 0x7f, 0xff].map(|kind| {
                let payload = match kind {
                    2 | 0x0d | 0x0e => string(&text),
                    3 | 4 => members(&[(key.clone(), (2, string(&text)))]),
                    5 => vec![1, 0, 0, 0, 0, 9],
                    7 => vec![9; 12],
                    8 => vec![1],
                    0x10 => vec![9; 4],
                    0x13 => vec![9; 16],
                    6 | 10 | 0x7f | 0xff => vec![],
                    _ => vec![9; 8],
                };
                (key.clone(), (kind, payload))
            });
            prop_assert!(surely_right(&members(&list), 200));
        }
    }

    #[test]
    fn every_change_of_every_byte() {
        let list = [
            ("a", 3, members(&[("s".into(), (2, string("grün")))])),
            ("list", 4, members(&[("0".into(), (0x10, vec![1, 0, 0, 0])), ("1".into(), (8, vec![1]))])),
            ("a key of more than sixteen bytes", 2, string("and text that is longer than that")),
            ("b", 5, vec![2, 0, 0, 0, 0, 1, 2]),
        ]
        .map(|(key, kind, payload)| (key.to_string(), (kind, payload)));
        let whole = members(&list);
        assert!(surely_right(&whole, 200) && surely_right(&whole, 2) && !surely_right(&whole, 1));
        for place in 0..whole.len() {
            for byte in 0..=255 {
                let mut bytes = whole.clone();
                bytes[place] = byte;
                assert!(!surely_right(&bytes, 200) || right(&bytes), "byte {place} as {byte}");
            }
        }
    }

    #[test]
    fn deep_is_left_to_the_careful_walk() {
        let mut bytes = members(&[]);
        for level in 2..=40 {
            bytes = members(&[("a".into(), (3, bytes))]);
            assert_eq!(surely_right(&bytes, 200), level <= LEVELS, "{level}");
            assert!(right(&bytes));
        }
    }
}
