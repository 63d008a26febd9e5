//! The tables of a README, made from the newest records.
//!
//! They stand between `<!-- measured: NAME NAME* -->` and `<!-- end of measured -->`; a `*` at the end of a name stands for
//! anything. Each question is taken from the newest record that has it. What no record has is left as it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::definition::Definition;
use crate::judge::explain;
use crate::report;
use crate::results::{Question, Results};

const BEGIN: &str = "<!-- measured: ";
const END: &str = "<!-- end of measured -->";

/// A record with its place, as a link shows it.
#[derive(Debug)]
pub struct Record {
    /// The path of its table, from the root of the repository.
    pub table: String,
    /// What was measured.
    pub results: Results,
}

/// The records of the repository at `root`, the newest first, with what these definitions say of targets that were missed. Old
/// records that have no results are left out.
///
/// # Errors
/// The system's, and results that cannot be read.
pub fn records(root: &Path, definitions: &[Definition]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let entries = |path: &Path| fs::read_dir(path).with_context(|| path.display().to_string());
    for machine in entries(&root.join("bench/record"))? {
        for date in entries(&machine?.path())? {
            let path = date?.path();
            let results = path.join("results.json");
            if results.exists() {
                let table = path.join("table.md").strip_prefix(root)?.display().to_string();
                let mut results = Results::load(&results)?;
                explain(&mut results.definitions, definitions);
                records.push(Record { table, results });
            }
        }
    }
    // The names are dates.
    records.sort_by(|a, b| b.results.machine.time.cmp(&a.results.machine.time));
    Ok(records)
}

/// The text with all of its tables made anew.
///
/// # Errors
/// A begin without an end.
pub fn update(text: &str, records: &[Record]) -> Result<String> {
    let mut updated = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let (names, behind) = behind.split_once(" -->").with_context(|| format!("{BEGIN:?} has no end"))?;
        let (old, behind) = behind.split_once(END).with_context(|| format!("{BEGIN}{names}: there is no {END}"))?;
        ensure!(!old.contains(BEGIN), "{BEGIN}{names}: there is no {END}");
        let names: Vec<&str> = names.split_whitespace().collect();
        let new = section(&names, records);
        updated += &format!("{before}{BEGIN}{} -->{}{END}", names.join(" "), new.as_deref().unwrap_or(old));
        rest = behind;
    }
    Ok(updated + rest)
}

/// The table of these questions, and where it is from; nothing if no record has one of them.
fn section(names: &[&str], records: &[Record]) -> Option<String> {
    let is_asked = |question: &Question| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => question.name.starts_with(start),
            None => question.name == *name,
        })
    };
    let mut taken: Vec<&Question> = Vec::new();
    let mut sources = Vec::new();
    for Record { table, results } in records {
        let known: Vec<&str> = taken.iter().map(|question| question.name.as_str()).collect();
        let is_new = |question: &&Question| is_asked(question) && !known.contains(&question.name.as_str());
        let new: Vec<&Question> = results.definitions.iter().filter(is_new).collect();
        if !new.is_empty() {
            let machine = &results.machine;
            sources.push(format!("[{}]({table}), {}, {}", machine.time, machine.processor, machine.commit));
            taken.extend(new);
        }
    }
    let questions: Vec<Question> = taken.into_iter().cloned().collect();
    let sources = sources.join("; ");
    (!questions.is_empty()).then(|| format!("\n{}\nRecorded: {sources}.\n", report::table(&questions)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scale;
    use crate::judge::question;
    use crate::results::{Machine, Outcome, SCHEMA};

    fn record(time: &str, names: &[&str]) -> Record {
        let asked = |name: &&str| {
            let definition = Definition::parse(&format!(
                r#"
                name = "{name}"
                question = "Which?"
                full = {{ answers.all = {{ count = 1 }} }}
                quick = {{ answers.all = {{ count = 1 }} }}
                runner = [{{ name = "one", command = ["a"] }}]
                target = [{{ work = "{name} on {time}", ours = "one", goal = {{ under_ms = 1.0 }} }}]
                "#
            ));
            question(&definition.unwrap(), Scale::Full, vec![Outcome::Over(1.0)])
        };
        let machine = Machine {
            time: time.to_owned(),
            processor: "P".to_owned(),
            commit: "abc".to_owned(),
            ..Machine::default()
        };
        let definitions = names.iter().map(asked).collect();
        Record {
            table: format!("bench/{time}/table.md"),
            results: Results { schema: SCHEMA, machine, rounds: 1, quick: false, definitions },
        }
    }

    const TEXT: &str = "a\n<!-- measured: lines-* one -->\nold\n<!-- end of measured -->\nb\n";

    #[test]
    fn each_question_is_from_the_newest_record_that_has_it() {
        let records = [record("2", &["lines-20", "other"]), record("1", &["lines-20", "lines-80", "one"])];
        let text = update(TEXT, &records).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(" on ")).collect();
        assert_eq!(rows.len(), 3);
        for (row, start) in rows.iter().zip(["| lines-20 on 2 |", "| lines-80 on 1 |", "| one on 1 |"]) {
            assert!(row.starts_with(start), "{row}");
        }
        assert!(
            text.starts_with("a\n<!-- measured: lines-* one -->\n| work |")
                && text.ends_with("<!-- end of measured -->\nb\n")
        );
        assert!(text.contains("Recorded: [2](bench/2/table.md), P, abc; [1](bench/1/table.md)"), "{text}");
        assert!(!text.contains("old"));
        assert_eq!(update(&text, &records).unwrap(), text);
    }

    #[test]
    fn what_no_record_has_stays() {
        assert_eq!(update(TEXT, &[record("1", &["other"])]).unwrap(), TEXT);
        assert!(update("<!-- measured: a -->\n", &[]).is_err());
        assert!(update("<!-- measured: a -->\n<!-- measured: b -->\n<!-- end of measured -->", &[]).is_err());
    }
}
