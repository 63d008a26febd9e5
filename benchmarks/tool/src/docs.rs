//! The tables of `docs/benchmarks.md`, generated from the record.
//!
//! Each table is between `<!-- measured: NAME NAME* -->` and `<!-- end of measured -->`. A `*` at the end of a name
//! matches any text. If the only name is `chart`, the table contains the rows of the chart. If the record has none of
//! the questions, the text between the markers is kept.

use anyhow::{Context, Result, ensure};

use crate::chart::Row;
use crate::record::{Entry, Record};
use crate::report;
use crate::results::{Machine, Target};

const BEGIN: &str = "<!-- measured: ";
const END: &str = "<!-- end of measured -->";

/// Returns the text with all of its tables updated.
///
/// # Errors
/// Fails if a start marker has no end marker.
pub fn update(text: &str, record: &Record, chart: &[Row]) -> Result<String> {
    let mut updated = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (names, after) = after.split_once(" -->").with_context(|| format!("{BEGIN:?} has no end"))?;
        let (old, after) = after.split_once(END).with_context(|| format!("{BEGIN}{names}: there is no {END}"))?;
        ensure!(!old.contains(BEGIN), "{BEGIN}{names}: there is no {END}");
        let names: Vec<&str> = names.split_whitespace().collect();
        let new = if names == ["chart"] { Some(rows(chart)) } else { section(&names, record) };
        updated += &format!("{before}{BEGIN}{} -->{}{END}", names.join(" "), new.as_deref().unwrap_or(old));
        rest = after;
    }
    Ok(updated + rest)
}

/// The rows of the chart as a table.
fn rows(chart: &[Row]) -> String {
    let row = |Row { work, competitor, competitor_seconds, millstream_seconds }: &Row| {
        let ratio = competitor_seconds / millstream_seconds;
        format!(
            "| {work} | {competitor} | {:.0} ms | {:.0} ms | {ratio:.1} |\n",
            competitor_seconds * 1e3,
            millstream_seconds * 1e3
        )
    };
    let rows: String = chart.iter().map(row).collect();
    format!("\n| work | competitor | its time | Millstream | times faster |\n|---|---|---|---|---|\n{rows}")
}

/// Returns the table of these questions with the date of the measurement; nothing if the record has none of them.
fn section(names: &[&str], record: &Record) -> Option<String> {
    let is_asked = |entry: &&Entry| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => entry.name.starts_with(start),
            None => entry.name == *name,
        })
    };
    let entries: Vec<&Entry> = record.questions.iter().filter(is_asked).collect();
    let source = |(time, machine): (&String, &Machine)| {
        let is_used = entries.iter().any(|entry| entry.machine == *time);
        is_used.then(|| format!("{time}, {}, {} cores, commit {}", machine.processor, machine.cores, machine.commit))
    };
    let sources: Vec<String> = record.machines.iter().filter_map(source).collect();
    let targets: Vec<&Target> = entries.iter().flat_map(|entry| &entry.targets).collect();
    (!targets.is_empty()).then(|| format!("\n{}\nMeasured: {}.\n", report::table(targets), sources.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Definition, Scale};
    use crate::evaluate::question;
    use crate::results::{Machine, Outcome, Results};

    fn record(names: &[&str]) -> Record {
        let definition = |name: &&str| {
            Definition::parse(&format!(
                r#"
                name = "{name}"
                question = "Which?"
                full = {{ answers.all = {{ count = 1 }} }}
                quick = {{ answers.all = {{ count = 1 }} }}
                runner = [{{ name = "one", command = ["a"] }}]
                target = [{{ work = "{name} in turns", millstream = "one", goal = {{ under_ms = 1.0 }} }}]
                "#
            ))
            .unwrap()
        };
        let definitions: Vec<Definition> = names.iter().map(definition).collect();
        let asked = |one: &Definition| question(one, Scale::Full, vec![Outcome::Over(1.0)]);
        let [time, processor, commit] = ["T", "P", "abc"].map(str::to_owned);
        let machine = Machine { time, processor, commit, cores: 2, ..Machine::default() };
        let asked = definitions.iter().map(asked).collect();
        let results = Results { schema: crate::results::SCHEMA, machine, rounds: 1, quick: false, definitions: asked };
        let mut record = Record::default();
        record.take(&results, &definitions);
        record
    }

    const TEXT: &str = "a\n<!-- measured: lines-* one -->\nold\n<!-- end of measured -->\nb\n";

    #[test]
    fn tables_have_the_questions_that_they_name() {
        let record = record(&["lines-20", "other", "lines-80", "one"]);
        let text = update(TEXT, &record, &[]).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(" in turns")).collect();
        assert_eq!(rows.len(), 3);
        for (row, name) in rows.iter().zip(["lines-20", "lines-80", "one"]) {
            assert!(row.starts_with(&format!("| {name} in turns |")), "{row}");
        }
        assert!(text.starts_with("a\n<!-- measured: lines-* one -->\n| work |"), "{text}");
        assert!(text.ends_with("<!-- end of measured -->\nb\n") && !text.contains("old"), "{text}");
        assert!(text.contains("\nMeasured: T, P, 2 cores, commit abc.\n"), "{text}");
        assert_eq!(update(&text, &record, &[]).unwrap(), text);
    }

    #[test]
    fn the_chart_is_a_table_too() {
        let row = Row { work: "w".into(), competitor: "c".into(), competitor_seconds: 0.3, millstream_seconds: 0.1 };
        let text = update("<!-- measured: chart -->\n<!-- end of measured -->", &Record::default(), &[row]).unwrap();
        assert!(text.contains("\n| w | c | 300 ms | 100 ms | 3.0 |\n<!-- end"), "{text}");
    }

    #[test]
    fn what_the_record_does_not_have_stays() {
        assert_eq!(update(TEXT, &record(&["other"]), &[]).unwrap(), TEXT);
        assert!(update("<!-- measured: a -->\n", &Record::default(), &[]).is_err());
        let twice = "<!-- measured: a -->\n<!-- measured: b -->\n<!-- end of measured -->";
        assert!(update(twice, &Record::default(), &[]).is_err());
    }
}
