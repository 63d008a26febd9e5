//! The records that the crate `csv` finds, for the dialects in which it reads what the table accepts as the table does.

/// Returns the records, or `None` if the crate reads this dialect, or this input in it, in another way:
///
/// - an escape character outside quotes is content;
/// - only some values of a line end, and only LF as the end of a comment, which it requires;
/// - blank lines are skipped, and a byte order mark is skipped only at the start.
///
/// It accepts all inputs: where the table has an error, only the records before it are comparable.
pub fn records(words: &str, input: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
    let option = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let byte = |hex: &str| u8::from_str_radix(hex, 16).unwrap();
    if option("escape").is_some() || option("blank").is_some() {
        return None;
    }
    if input.iter().any(|byte| [0xef, 0xfe, 0xff].contains(byte)) {
        return None;
    }
    let comment = option("comment").map(byte);
    if comment.is_some() && (input.contains(&b'\r') || !input.ends_with(b"\n") || option("ends").is_some()) {
        return None;
    }
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).comment(comment);
    builder.delimiter(option("delimiter").map_or(b',', byte)).double_quote(option("doubled") != Some("off"));
    builder.terminator(match option("ends") {
        None => csv::Terminator::CRLF,
        Some("lf") => csv::Terminator::Any(b'\n'),
        Some("cr") => csv::Terminator::Any(b'\r'),
        Some(_) => return None,
    });
    match option("quote") {
        Some("none") => builder.quoting(false),
        quote => builder.quote(quote.map_or(b'"', byte)),
    };
    let mut reader = builder.from_reader(input);
    Some(reader.byte_records().map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect()).collect())
}
