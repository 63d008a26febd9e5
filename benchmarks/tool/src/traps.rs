//! The table of what programs answer for files of CSV that some of them misread.
//!
//! In the small form all records are compared; in the large form, of about 100 MB, their number. A program that fails is
//! not wrong: nothing is lost silently.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use millstream_runners::traps::{Form, Pair, Right, Trap};

use crate::answer::{Answer, Output};
use crate::measure::{Place, time};

/// A name for the table, the program, and the way in which it reads.
pub type Program = (&'static str, &'static str, &'static str);

/// All programs.
pub const PROGRAMS: [Program; 11] = [
    ("millstream", "tables", "millstream"),
    ("csv", "tables", "csv"),
    ("simd-csv", "tables", "simd-csv"),
    ("csveee", "tables", "csveee"),
    ("csveee literal", "tables", "csveee-literal"),
    ("csveee strict", "tables", "csveee-strict"),
    ("Python csv", "python-tables", "csv"),
    ("polars", "python-tables", "polars"),
    ("DuckDB", "python-tables", "duckdb"),
    ("DuckDB sniffer", "python-tables", "duckdb-sniffer"),
    ("pyarrow", "python-tables", "pyarrow"),
];

/// The longest that a program may take for a file.
const LIMIT: Duration = Duration::from_secs(300);

/// What a program answered.
enum Given {
    Records(Vec<Pair>),
    Count(u64),
    Failed,
}

/// How good an answer is.
#[derive(PartialEq, Eq)]
enum Grade {
    /// All records, or an error where an error is right.
    Right,
    /// The file is invalid, and the program reads on: all other records are right, and none is lost or joined.
    Lenient,
    /// The file is valid, and the program reports an error.
    Error,
    /// Wrong records, without an error.
    Wrong(String),
}

/// Returns the table in Markdown, for small files or for large ones.
///
/// # Errors
/// Fails if a file cannot be written, if a program is missing, or if its output is not understood.
pub fn table(place: &Place, programs: &[Program], is_large: bool) -> Result<String> {
    let form = if is_large { Form::LARGE } else { Form::SMALL };
    let mut table = "| file | special | right | reads on | error | wrong |\n|---|---|---|---|---|---|\n".to_owned();
    for trap in Trap::all(form) {
        let path = place.inputs.join("trap.csv");
        let mut out = BufWriter::new(File::create(&path)?);
        trap.write(form, &mut out)?;
        out.flush()?;
        let mut cells: [Vec<String>; 4] = Default::default();
        for &(name, program, way) in programs {
            let given = run(place, program, way, &path, is_large).with_context(|| name.to_owned())?;
            match grade(&trap, form, &given) {
                Grade::Right => cells[0].push(name.to_owned()),
                Grade::Lenient => cells[1].push(name.to_owned()),
                Grade::Error => cells[2].push(name.to_owned()),
                Grade::Wrong(what) => cells[3].push(format!("{name}: {what}")),
            }
        }
        fs::remove_file(&path)?;
        let answer = match trap.right {
            Right::Records(_) => "",
            Right::Error(_) => " (an error)",
        };
        let cells = cells.map(|names| if names.len() == programs.len() { "all".to_owned() } else { names.join(", ") });
        writeln!(
            table,
            "| {} | {} | {}{answer} | {} | {} | {} |",
            trap.name, trap.shown, cells[0], cells[1], cells[2], cells[3]
        )?;
    }
    Ok(table)
}

fn run(place: &Place, program: &str, way: &str, path: &Path, is_large: bool) -> Result<Given> {
    let work = if is_large { "count" } else { "show" };
    let mut run = Command::new(program);
    run.env("PATH", place.search_path(&[])).args([work, way]).arg(path).args(["--columns", "2"]);
    run.args(["--threads", "2"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Otherwise a missing program would count as one that reports an error.
    let path = place.search_path(&[]);
    ensure!(env::split_paths(&path).any(|directory| directory.join(program).is_file()), "{program} is missing");
    let mut output = Vec::new();
    let ended = time(run, LIMIT, |stdout| stdout.expect("standard output is piped").read_to_end(&mut output));
    if ended.is_err() {
        return Ok(Given::Failed);
    }
    if is_large {
        return Ok(Given::Count(Answer::parse(Output::Answer, &output)?.get("count").context("no count")?));
    }
    // A record with another number of fields is not a pair.
    let records: Vec<Vec<String>> = serde_json::from_slice(&output)?;
    let pair =
        |fields: Vec<String>| <Pair>::try_from(fields).unwrap_or_else(|fields| [fields.join("|"), "?".to_owned()]);
    Ok(Given::Records(records.into_iter().map(pair).collect()))
}

fn grade(trap: &Trap, form: Form, given: &Given) -> Grade {
    let (right, count) = (trap.records(form), trap.count(form));
    let wrong = |found: u64| match found == count {
        true => Grade::Wrong("other fields".to_owned()),
        false => Grade::Wrong(format!("{found} records instead of {count}")),
    };
    match given {
        Given::Failed if right.is_none() => Grade::Right,
        Given::Failed => Grade::Error,
        Given::Count(found) if *found != count => wrong(*found),
        Given::Count(_) if right.is_none() => Grade::Lenient,
        Given::Count(_) => Grade::Right,
        Given::Records(found) => match right {
            Some(right) if *found == right => Grade::Right,
            None if others_are_right(trap, form, found) => Grade::Lenient,
            _ => wrong(found.len() as u64),
        },
    }
}

/// Whether the records that are not part of the trap are right, and there are as many as there should be.
fn others_are_right(trap: &Trap, form: Form, found: &[Pair]) -> bool {
    let [before, after] = trap.plain(form);
    let is_plain = |record: &Pair, text: &str, number: u64| record[0] == text && record[1] == number.to_string();
    found.len() as u64 == trap.count(form)
        && (0..before).zip(found).all(|(number, record)| is_plain(record, "before", number))
        && (0..after).rev().zip(found.iter().rev()).all(|(number, record)| is_plain(record, "after", number))
}

/// The line before the generated table.
const BEGIN: &str = "<!-- traps -->\n";
/// The line after it.
const END: &str = "<!-- end of traps -->";

/// Replaces the table in the text of `docs/csv.md`; `index` is 0 for the table of small files and 1 for large ones.
///
/// # Errors
/// Fails if the text has no place for the table.
pub fn update(text: &str, index: usize, table: &str) -> Result<String> {
    let (begin, _) = text.match_indices(BEGIN).nth(index).context("docs/csv.md has no place for the table")?;
    let begin = begin + BEGIN.len();
    let end = begin + text[begin..].find(END).context("the table in docs/csv.md has no end")?;
    Ok(format!("{}{table}{}", &text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_asked_for_is_replaced() {
        let text = "a\n<!-- traps -->\nold\n<!-- end of traps -->\nb\n<!-- traps -->\nold\n<!-- end of traps -->\n";
        let second = "a\n<!-- traps -->\nold\n<!-- end of traps -->\nb\n<!-- traps -->\nnew\n<!-- end of traps -->\n";
        assert_eq!(update(text, 1, "new\n").unwrap(), second);
        assert!(update(text, 2, "new\n").is_err());
    }

    fn is_wrong(grade: &Grade) -> bool {
        matches!(grade, Grade::Wrong(_))
    }

    #[test]
    fn records_that_are_lost_or_joined_are_wrong() {
        let form = Form::SMALL;
        for trap in Trap::all(form) {
            let count = trap.count(form);
            let is_right =
                |grade: Grade| grade == if trap.records(form).is_some() { Grade::Right } else { Grade::Lenient };
            assert!(is_right(super::grade(&trap, form, &Given::Count(count))), "{}", trap.name);
            assert!(is_wrong(&super::grade(&trap, form, &Given::Count(count - 1))), "{}", trap.name);
            // The records before the trap alone.
            let [before, _] = trap.plain(form);
            let records = (0..before).map(|number| ["before".to_owned(), number.to_string()]).collect();
            assert!(is_wrong(&super::grade(&trap, form, &Given::Records(records))), "{}", trap.name);
            if let Some(records) = trap.records(form) {
                assert!(is_right(super::grade(&trap, form, &Given::Records(records.clone()))), "{}", trap.name);
                let changed = records.into_iter().map(|[a, b]| [b, a]).collect();
                assert!(is_wrong(&super::grade(&trap, form, &Given::Records(changed))), "{}", trap.name);
            }
        }
    }
}
