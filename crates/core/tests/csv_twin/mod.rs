//! The expected records of CSV: an interpreter of the table in `docs/csv.md`, byte by byte.
//!
//! A dialect is described by words, as in `vectors/csv.tsv`: `delimiter=3b escape=5c`.

use millstream_core::frame::*;

/// All bytes of a line, and its fields, unless it is not a record.
pub type Line = (Vec<u8>, Option<Vec<Vec<u8>>>);

/// What the table says about a whole input.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub struct Outcome {
    pub lines: Vec<Line>,
    /// The position of the token that is not allowed; if a quote is never closed, of the quote.
    pub error: Option<usize>,
}

impl Outcome {
    /// Returns the fields of the records.
    pub fn records(&self) -> Vec<Vec<Vec<u8>>> {
        self.lines.iter().filter_map(|(_, fields)| fields.clone()).collect()
    }
}

const TABLE: &str = include_str!("../../../../docs/csv.md");

/// Returns the cell of the table.
fn cell(state: &str, token: &str) -> &'static str {
    let mut rows = TABLE.split("<!-- automaton -->").nth(1).unwrap().trim().lines();
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim);
    let column = cells(rows.next().unwrap()).position(|name| name == token).unwrap();
    let row = rows.take_while(|row| row.starts_with('|')).find(|row| cells(row).next() == Some(state)).unwrap();
    cells(row).nth(column).unwrap()
}

/// The table, so that it is parsed only once.
pub struct Table(std::collections::HashMap<(&'static str, &'static str), &'static str>);

const STATES: [&str; 8] = ["record", "field", "unquoted", "quoted", "closed", "escaped", "quoted escaped", "comment"];
const TOKENS: [&str; 7] = ["delimiter", "quote", "escape", "line end", "comment", "other", "end"];

impl Table {
    pub fn new() -> Table {
        Table(STATES.iter().flat_map(|&s| TOKENS.map(|t| ((s, t), cell(s, t)))).collect())
    }

    /// Returns what the table says about `input` in the dialect that `words` describe.
    pub fn read(&self, words: &str, input: &[u8]) -> Outcome {
        let option = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let byte = |name: &str, default: Option<u8>| match option(name) {
            None => default,
            Some("none") => None,
            Some(hex) => Some(u8::from_str_radix(hex, 16).unwrap()),
        };
        let special = [
            ("delimiter", byte("delimiter", Some(b','))),
            ("quote", byte("quote", Some(b'"'))),
            ("escape", byte("escape", None)),
            ("comment", byte("comment", None)),
        ];
        let ends: &[&[u8]] = match option("ends").unwrap_or("any") {
            "any" => &[b"\r\n", b"\r", b"\n"],
            "lf" => &[b"\n"],
            "crlf" => &[b"\r\n"],
            _ => &[b"\r"],
        };
        let mut outcome = Outcome::default();
        let (mut state, mut fields, mut field) = ("record", Vec::new(), Vec::new());
        let (mut at, mut start, mut opened) = (0, 0, 0);
        loop {
            if at == start && option("mark") != Some("content") {
                if input[at..].starts_with(b"\xff\xfe") || input[at..].starts_with(b"\xfe\xff") {
                    outcome.error = Some(at);
                    return outcome;
                }
                if input[at..].starts_with(b"\xef\xbb\xbf") {
                    at += 3;
                }
            }
            let rest = &input[at..];
            let end = ends.iter().find(|end| rest.starts_with(end));
            let end = end.filter(|_| !["quoted", "escaped", "quoted escaped"].contains(&state));
            let (token, len) = match (rest.first(), end) {
                (None, _) => ("end", 0),
                (_, Some(end)) => ("line end", end.len()),
                (first, None) => {
                    let found = special.iter().find(|(_, byte)| first.copied() == *byte);
                    (found.map_or("other", |(name, _)| *name), 1)
                }
            };
            let bytes = ends.concat();
            let is_part = token == "other" && bytes.contains(&rest[0]) && option("ends").is_none();
            let token = if is_part && state == "escaped" { "line end" } else { token };
            let mut action = self.0[&(state, token)];
            if action == "stray" {
                action = if option("stray") == Some("literal") { "unquoted keep" } else { "error" };
            } else if action == "escaped cr" {
                action = if rest[0] == b'\r' { "error" } else { "unquoted keep" };
            } else if action == "doubled" {
                action = if option("doubled") == Some("off") { "error" } else { "quoted keep" };
            } else if action == "blank" {
                action = if option("blank") == Some("records") { "end record" } else { "skip" };
            } else if action == "stop" && at > start {
                // A mark or a comment at the end of the input.
                let is_record = state == "record" && option("blank") == Some("records");
                action = if is_record { "end record" } else { "skip" };
            }
            if action == "error" {
                outcome.error = Some(if state.starts_with("quoted") { opened } else { at });
                return outcome;
            }
            if ["record", "field"].contains(&state) && action == "quoted" {
                opened = at;
            }
            if let Some(next) = action.strip_suffix(" keep") {
                field.extend_from_slice(&rest[..len]);
                state = next;
            } else if !["next field", "end record", "skip", "stop"].contains(&action) {
                state = action;
            }
            at += len;
            match action {
                "next field" => {
                    fields.push(std::mem::take(&mut field));
                    state = "field";
                }
                "end record" | "skip" => {
                    fields.push(std::mem::take(&mut field));
                    let fields = Some(std::mem::take(&mut fields)).filter(|_| action == "end record");
                    outcome.lines.push((input[start..at].to_vec(), fields));
                    (state, start) = ("record", at);
                }
                "stop" => return outcome,
                _ => {}
            }
            if token == "end" {
                return outcome;
            }
        }
    }
}

/// Creates the framer that these words describe.
pub fn csv(words: &str) -> millstream_core::Result<Csv> {
    let mut dialect = CsvDialect::new();
    for word in words.split(' ').filter(|word| !word.is_empty() && *word != "default") {
        let (name, value) = word.split_once('=').unwrap();
        let byte = || (value != "none").then(|| u8::from_str_radix(value, 16).unwrap());
        dialect = match name {
            "delimiter" => dialect.delimiter(byte().unwrap()),
            "quote" => dialect.quote(byte()),
            "escape" => dialect.escape(byte()),
            "comment" => dialect.comment(byte()),
            "doubled" => dialect.doubled_quotes(value == "on"),
            "stray" => dialect.stray_quotes(match value {
                "literal" => CsvStrayQuotes::Literal,
                _ => CsvStrayQuotes::Error,
            }),
            "blank" => dialect.blank_lines(match value {
                "records" => CsvBlankLines::Records,
                _ => CsvBlankLines::Skip,
            }),
            "mark" => dialect.byte_order_mark(match value {
                "content" => CsvByteOrderMark::Content,
                _ => CsvByteOrderMark::Detect,
            }),
            "ends" => dialect.line_end(match value {
                "any" => CsvLineEnd::Any,
                "lf" => CsvLineEnd::Lf,
                "crlf" => CsvLineEnd::Crlf,
                _ => CsvLineEnd::Cr,
            }),
            _ => panic!("unknown option {word}"),
        };
    }
    Csv::with(dialect)
}

/// Adds a line to the outcome.
fn push(csv: &Csv, outcome: &mut Outcome, bytes: &[u8], terminated: bool) {
    let content = csv.trim().apply(bytes, terminated);
    let fields = (!csv.skips(content)).then(|| csv.fields(content).map(|field| field.into_owned()).collect());
    outcome.lines.push((bytes.to_vec(), fields));
}

/// Returns the outcome of reading one line at a time, if the first `splits[0]` bytes arrive first, and so on.
pub fn by_steps(csv: &mut Csv, input: &[u8], splits: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut start, mut resume) = (0, Resume::START);
    for (end, eof) in arrivals(input, splits) {
        while start < end {
            match csv.step(&input[start..end], resume, eof) {
                Step::Record { len, terminated } => {
                    push(csv, &mut outcome, &input[start..start + len], terminated);
                    (start, resume) = (start + len, Resume::START);
                }
                Step::More { resume: now, need } => {
                    assert!(!eof && need == 0, "more bytes requested at the end");
                    let (before, scanned) = (resume.scanned(), now.scanned());
                    assert!(before <= scanned && scanned <= end - start, "scanned {before}, then {scanned}");
                    resume = now;
                    break;
                }
                Step::Bad(error) => {
                    outcome.error = Some(start + error.offset().unwrap() as usize);
                    return outcome;
                }
            }
        }
    }
    outcome
}

/// Returns the outcome of reading in batches of at most `max` lines.
pub fn by_batches(csv: &mut Csv, input: &[u8], splits: &[usize], max: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut start = 0;
    for (end, eof) in arrivals(input, splits) {
        loop {
            let mut offsets = vec![0];
            let rest = &input[start..end];
            let result = csv.batch(rest, eof, max, &mut offsets);
            let batch = Batch::new(rest, &offsets, csv.trim(), *result.as_ref().unwrap_or(&true));
            assert!(batch.len() <= max);
            for i in 0..batch.len() {
                push(csv, &mut outcome, batch.raw(i).unwrap(), batch.terminated() || i + 1 < batch.len());
            }
            let skipped = outcome.lines[outcome.lines.len() - batch.len()..].iter().filter(|line| line.1.is_none());
            assert_eq!(csv.count_skipped(&batch), skipped.count());
            start += offsets[batch.len()] as usize;
            if let Err(error) = result {
                outcome.error = Some(start + error.offset().unwrap() as usize);
                return outcome;
            }
            if batch.len() < max {
                let rest = &input[start..end];
                assert!(
                    rest.is_empty() || matches!(csv.step(rest, Resume::START, eof), Step::More { .. }),
                    "left a line"
                );
                break;
            }
        }
    }
    outcome
}

fn arrivals(input: &[u8], splits: &[usize]) -> Vec<(usize, bool)> {
    splits.iter().map(|&split| (split, false)).chain([(input.len(), false), (input.len(), true)]).collect()
}
