//! Creates BSON documents from a fuzzer's bytes: the bytes are the document, are its members, or select what is
//! built. In a document that is built, a few bytes are changed at the end.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// Keys and texts that have a meaning to a reader, so that the fuzzer does not need to find them letter by letter.
const WORDS: &[&str] = &[
    "",
    "a",
    "0",
    "1",
    "tag",
    "data",
    "type",
    "size",
    "name",
    "params",
    "ref",
    "path",
    "typename",
    "var",
    "body",
    "_backrefs",
    "symbol",
    "tuple",
    "svec",
    "datatype",
    "jl_bottom_type",
    "unionall",
    "struct",
    "array",
    "backref",
    "jl_anonymous",
    "Core",
    "Base",
    "Main",
    "Any",
    "Int64",
    "UInt8",
    "Float64",
    "Array",
    "Dict",
    "Set",
    "Tuple",
    "Complex",
    "Union",
    "TypeVar",
    "BitArray",
    "NamedTuple",
    "Pair",
    "Ref",
    "$oid",
    "$date",
    "$numberLong",
    "$binary",
    "$millstream::native",
    "ü",
];

/// Returns a document that is valid or nearly valid, or `None` if there are too few bytes.
pub fn document(data: &[u8]) -> Option<Vec<u8>> {
    let (&way, rest) = data.split_first()?;
    match way % 8 {
        0 => Some(rest.to_vec()),
        1 => {
            let mut bytes = Vec::new();
            close(&mut bytes, 0, |bytes| bytes.extend_from_slice(rest));
            Some(bytes)
        }
        way => {
            let mut choices = Unstructured::new(rest);
            let mut bytes = Vec::new();
            members(&mut choices, &mut bytes, 0, false).ok()?;
            if way > 4 {
                for _ in 0..way - 4 {
                    let Ok(place) = choices.choose_index(bytes.len()) else { break };
                    bytes[place] ^= choices.arbitrary::<u8>().ok()?;
                }
            }
            Some(bytes)
        }
    }
}

/// Writes a length before the bytes that `write` appends, and a zero byte after them.
fn close(bytes: &mut Vec<u8>, before: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    write(bytes);
    bytes.push(0);
    let len = (bytes.len() - start - before) as i32;
    bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn members(choices: &mut Unstructured, bytes: &mut Vec<u8>, depth: usize, is_array: bool) -> Result<()> {
    let mut result = Ok(());
    close(bytes, 0, |bytes| result = open_members(choices, bytes, depth, is_array));
    result
}

fn open_members(choices: &mut Unstructured, bytes: &mut Vec<u8>, depth: usize, is_array: bool) -> Result<()> {
    for position in 0..choices.int_in_range(0..=6)? {
        if choices.is_empty() {
            break;
        }
        let kinds = [1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 18, 19, 127, 255];
        let kind = *choices.choose(&kinds)?;
        let kind = if depth > 12 && matches!(kind, 3 | 4 | 15) { 10 } else { kind };
        bytes.push(kind);
        match is_array {
            true => bytes.extend_from_slice(position.to_string().as_bytes()),
            false => bytes.extend_from_slice(choices.choose(WORDS)?.as_bytes()),
        }
        bytes.push(0);
        payload(choices, bytes, depth + 1, kind)?;
    }
    Ok(())
}

fn payload(choices: &mut Unstructured, bytes: &mut Vec<u8>, depth: usize, kind: u8) -> Result<()> {
    let fixed = match kind {
        1 | 9 | 17 => 8,
        7 => 12,
        19 => 16,
        _ => 0,
    };
    match kind {
        2 | 13 | 14 => text(choices, bytes)?,
        3 | 4 => members(choices, bytes, depth, kind == 4)?,
        5 => {
            let payload: &[u8] = choices.arbitrary()?;
            bytes.extend_from_slice(&(payload.len() as i32).to_le_bytes());
            bytes.push(*choices.choose(&[0, 0, 0, 2, 4, 5, 9, 128])?);
            bytes.extend_from_slice(payload);
        }
        8 => bytes.push(choices.int_in_range(0..=1)?),
        11 => {
            bytes.extend_from_slice(choices.choose(WORDS)?.as_bytes());
            bytes.extend_from_slice(b"\0i\0");
        }
        12 => {
            text(choices, bytes)?;
            bytes.extend_from_slice(&[7; 12]);
        }
        15 => {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            text(choices, bytes)?;
            members(choices, bytes, depth, false)?;
            let len = (bytes.len() - start) as i32;
            bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        // Small numbers, which can be counts, sizes and references.
        16 => bytes.extend_from_slice(&choices.int_in_range(-1..=6i32)?.to_le_bytes()),
        18 => bytes.extend_from_slice(&choices.int_in_range(-1..=6i64)?.to_le_bytes()),
        _ => bytes.extend_from_slice(choices.bytes(fixed)?),
    }
    Ok(())
}

fn text(choices: &mut Unstructured, bytes: &mut Vec<u8>) -> Result<()> {
    let word = choices.choose(WORDS)?;
    close(bytes, 4, |bytes| bytes.extend_from_slice(word.as_bytes()));
    Ok(())
}
