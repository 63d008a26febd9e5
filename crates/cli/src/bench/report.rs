//! Formats the results: a table for people, JSON for programs, and comparisons for the advice.

use std::fmt::Write;

use serde_json::{Value, json};

use super::measure::{Answer, Measured, Outcome, Times};
use crate::run::count_text;

/// The minimum time that every way needs. It finds no records, so it does not compete with the other ways.
pub(super) const READ: &str = "read only";

/// The data that the ways have processed.
pub(super) struct Subject {
    /// The question, such as `lines of a.txt`.
    pub(super) question: String,
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// The word for a record, such as `line`.
    pub(super) noun: &'static str,
}

/// The data for one question.
pub(super) struct Report {
    pub(super) subject: Subject,
    pub(super) expected: Answer,
    pub(super) results: Results,
    pub(super) advice: Vec<String>,
}

/// The ways: first the timed ones, starting with the fastest, and then the others.
pub(super) struct Results(Vec<Measured>);

impl Results {
    pub(super) fn new(mut measured: Vec<Measured>) -> Results {
        let median = |way: &Measured| times(way).map_or(f64::INFINITY, Times::median);
        measured.sort_by(|a, b| median(a).total_cmp(&median(b)));
        Results(measured)
    }

    /// Returns the median time of a way in seconds, if it has one.
    pub(super) fn median(&self, name: &str) -> Option<f64> {
        self.times(name).map(Times::median)
    }

    fn times(&self, name: &str) -> Option<&Times> {
        self.0.iter().find(|way| way.name == name).and_then(times)
    }

    /// Returns the fastest Millstream way, or other way, that finds records.
    pub(super) fn fastest(&self, is_millstream: bool) -> Option<&str> {
        let finds = |way: &&Measured| way.is_millstream == is_millstream && way.name != READ && times(way).is_some();
        self.0.iter().find(finds).map(|way| way.name.as_str())
    }

    /// Returns how many times as long as `other` a way takes, or 1 if these runs show no difference.
    pub(super) fn ratio(&self, way: &str, other: &str) -> Option<f64> {
        let (way, other) = (self.times(way)?, self.times(other)?);
        let ratio = way.median() / other.median();
        let ((low, high), (other_low, other_high)) = (way.middle_half(), other.middle_half());
        // Two runs have no useful quartiles.
        let are_enough = way.all().len().min(other.all().len()) >= 3;
        let is_clear = are_enough && (high < other_low || other_high < low);
        Some(if is_clear && (ratio - 1.0).abs() > 0.03 { ratio } else { 1.0 })
    }

    /// Returns one sentence that compares two ways, for current or potential users of `way`.
    pub(super) fn compare(&self, way: &str, other: &str) -> Option<String> {
        let ratio = self.ratio(way, other)?;
        Some(if ratio == 1.0 {
            format!("{way} and {other}: no measurable difference")
        } else if ratio < 1.0 {
            format!("{way} is {} times as fast as {other}", factor(1.0 / ratio))
        } else {
            format!("{way} takes {} times as long as {other}", factor(ratio))
        })
    }

    /// Returns the advice common to all questions: the fastest ways, and the ways that the time limit stopped.
    pub(super) fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(ours), Some(theirs)) = (self.fastest(true), self.fastest(false)) {
            lines.extend(
                self.compare(ours, theirs)
                    .map(|text| format!("fastest Millstream way against the fastest other way: {text}")),
            );
        }
        let over = self.0.iter().filter(|way| matches!(way.outcome, Outcome::Over(_))).count();
        if over > 0 {
            lines.push(format!(
                "{} took too long and was stopped: raise --seconds to give it more time",
                count_text(over as u64, "way")
            ));
        }
        lines
    }
}

fn times(way: &Measured) -> Option<&Times> {
    match &way.outcome {
        Outcome::Timed(times) => Some(times),
        _ => None,
    }
}

impl Report {
    /// Formats a table followed by the advice.
    pub(super) fn text(&self) -> String {
        let Subject { question, bytes, records, noun } = &self.subject;
        let rows = &self.results.0;
        let runs = rows.iter().filter_map(|way| times(way).map(|times| times.all().len())).min().unwrap_or(0);
        let (records, rounds) = (count_text(*records, noun), count_text(runs as u64, "round"));
        let mut text = format!("{question}: {}, {records}; {rounds}, medians\n\n", size(*bytes));
        let per_second = format!("{noun}s/s");
        let mut table =
            vec![["way", "median", "middle half", "MB/s", &per_second, "relative to the fastest"].map(String::from)];
        let fastest = rows.first().and_then(times).map(Times::median);
        for way in rows {
            table.push(self.row(way, fastest));
        }
        let widths: Vec<usize> =
            (0..6).map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
        for row in &table {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1).take(4) {
                let _ = write!(line, "  {cell:>width$}"); // writing to memory cannot fail
            }
            let _ = write!(line, "  {}", row[5]);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str("\nadvice\n");
        for advice in &self.advice {
            let _ = writeln!(text, "- {advice}");
        }
        text
    }

    fn row(&self, way: &Measured, fastest: Option<f64>) -> [String; 6] {
        let name = if way.is_millstream { format!("* {}", way.name) } else { format!("  {}", way.name) };
        let without = |why: String| [name.clone(), "-".into(), "-".into(), "-".into(), "-".into(), why];
        match &way.outcome {
            Outcome::Timed(times) => {
                let median = times.median();
                let (low, high) = times.middle_half();
                let ratio = median / fastest.expect("this one has a time");
                [
                    name,
                    seconds(median),
                    format!("{} to {}", seconds(low), seconds(high)),
                    grouped(self.subject.bytes as f64 / median / 1e6),
                    count(self.subject.records as f64 / median),
                    if ratio == 1.0 { "fastest".into() } else { format!("{} times as long", factor(ratio)) },
                ]
            }
            Outcome::Wrong(answer) => without(format!("wrong: {answer}, expected {}", self.expected_of(answer))),
            Outcome::Over(limit) => without(format!("over {}", seconds(limit.as_secs_f64()))),
            Outcome::Failed(why) => without(format!("failed: {why}")),
            Outcome::Skipped(why) => without(format!("skipped: {why}")),
        }
    }

    /// Returns the part of the expected answer that these numbers cover.
    fn expected_of(&self, answer: &Answer) -> Answer {
        let known = answer.iter().filter_map(|(name, _)| Some((name, self.expected.get(name)?)));
        known.fold(Answer::default(), |expected, (name, value)| expected.and(name, value))
    }

    /// Formats the results for programs: times are in seconds.
    pub(super) fn json(&self) -> Value {
        let Subject { question, bytes, records, noun } = &self.subject;
        let ways: Vec<Value> = self.results.0.iter().map(|way| self.json_way(way)).collect();
        json!({
            "question": question,
            "bytes": bytes,
            "records": records,
            "record": noun,
            "expected": json_answer(&self.expected),
            "ways": ways,
            "advice": self.advice,
        })
    }

    fn json_way(&self, way: &Measured) -> Value {
        let mut value = json!({ "way": way.name, "is_millstream": way.is_millstream });
        let (state, details) = match &way.outcome {
            Outcome::Timed(times) => {
                let median = times.median();
                let details = json!({
                    "runs": times.all(),
                    "median": median,
                    "middle_half": times.middle_half(),
                    "bytes_per_second": self.subject.bytes as f64 / median,
                    "records_per_second": self.subject.records as f64 / median,
                });
                ("timed", details)
            }
            Outcome::Wrong(answer) => ("wrong", json!({ "answer": json_answer(answer) })),
            Outcome::Over(limit) => ("over", json!({ "limit": limit.as_secs_f64() })),
            Outcome::Failed(why) => ("failed", json!({ "why": why })),
            Outcome::Skipped(why) => ("skipped", json!({ "why": why })),
        };
        let object = value.as_object_mut().expect("it was created as one");
        object.insert("state".to_string(), state.into());
        object.extend(details.as_object().cloned().unwrap_or_default());
        value
    }
}

fn json_answer(answer: &Answer) -> Value {
    answer.iter().map(|(name, value)| (name.to_string(), Value::from(value))).collect::<serde_json::Map<_, _>>().into()
}

/// Formats three significant digits.
fn digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Formats a factor.
pub(super) fn factor(ratio: f64) -> String {
    digits(ratio)
}

/// Formats a time in a suitable unit.
pub(super) fn seconds(time: f64) -> String {
    match time {
        time if time < 1e-6 => format!("{} ns", digits(time * 1e9)),
        time if time < 1e-3 => format!("{} µs", digits(time * 1e6)),
        time if time < 1.0 => format!("{} ms", digits(time * 1e3)),
        time => format!("{} s", digits(time)),
    }
}

/// Formats bytes in a suitable unit, with separators for thousands.
pub(super) fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e3 => format!("{bytes} B"),
        bytes if bytes < 1e6 => format!("{} kB", digits(bytes / 1e3)),
        bytes if bytes < 1e9 => format!("{} MB", digits(bytes / 1e6)),
        bytes => format!("{} GB", digits(bytes / 1e9)),
    }
}

/// Formats a count, with separators for thousands.
fn count(value: f64) -> String {
    match value {
        value if value < 1e3 => digits(value),
        value if value < 1e6 => format!("{} k", digits(value / 1e3)),
        value if value < 1e9 => format!("{} M", digits(value / 1e6)),
        value => format!("{} G", digits(value / 1e9)),
    }
}

/// Formats three significant digits, or all digits before the point.
fn grouped(value: f64) -> String {
    indicatif::HumanFloatCount(digits(value).parse().unwrap_or(value)).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn way(name: &str, is_millstream: bool, outcome: Outcome) -> Measured {
        Measured { name: name.to_string(), is_millstream, outcome }
    }

    fn timed(name: &str, is_millstream: bool, milliseconds: [u64; 3]) -> Measured {
        way(name, is_millstream, Outcome::Timed(Times::new(&milliseconds.map(Duration::from_millis))))
    }

    fn report() -> Report {
        let results = Results::new(vec![
            timed("slow", false, [30, 31, 32]),
            way("liar", false, Outcome::Wrong(Answer::default().and("lines", 8))),
            timed("quick", true, [10, 10, 11]),
            timed("like quick", true, [10, 11, 11]),
            way("sleeper", false, Outcome::Over(Duration::from_secs(2))),
            way("absent", false, Outcome::Skipped("absent is not installed".to_string())),
        ]);
        let subject = Subject { question: "lines of a".to_string(), bytes: 20_000_000, records: 7, noun: "line" };
        let advice = results.summary();
        Report { subject, expected: Answer::default().and("lines", 7).and("bytes", 20_000_000), results, advice }
    }

    #[test]
    fn the_table() {
        assert_eq!(
            report().text(),
            "\
lines of a: 20.0 MB, 7 lines; 3 rounds, medians

way            median         middle half   MB/s  lines/s  relative to the fastest
* quick       10.0 ms  10.0 ms to 10.5 ms  2,000      700  fastest
* like quick  11.0 ms  10.5 ms to 11.0 ms  1,818      636  1.10 times as long
  slow        31.0 ms  30.5 ms to 31.5 ms    645      226  3.10 times as long
  liar              -                   -      -        -  wrong: 8 lines, expected 7 lines
  sleeper           -                   -      -        -  over 2.00 s
  absent            -                   -      -        -  skipped: absent is not installed

advice
- fastest Millstream way against the fastest other way: quick is 3.10 times as fast as slow
- 1 way took too long and was stopped: raise --seconds to give it more time
"
        );
    }

    #[test]
    fn the_json() {
        let json = report().json();
        assert_eq!(json["ways"][0]["median"], 0.01);
        assert_eq!(json["ways"][0]["records_per_second"], 700.0);
        assert_eq!(
            json["ways"][3],
            json!({ "way": "liar", "is_millstream": false, "state": "wrong", "answer": { "lines": 8 } })
        );
        assert_eq!(json["expected"]["lines"], 7);
    }

    #[test]
    fn a_difference_is_one_that_the_runs_show() {
        let results = report().results;
        assert_eq!(results.ratio("like quick", "quick"), Some(1.0), "their middle halves overlap");
        assert_eq!(results.compare("slow", "quick").unwrap(), "slow takes 3.10 times as long as quick");
        assert_eq!(results.ratio("liar", "quick"), None);
        let once = |name, time| way(name, true, Outcome::Timed(Times::new(&[Duration::from_millis(time)])));
        let results = Results::new(vec![once("one", 10), once("other", 99)]);
        assert_eq!(results.ratio("other", "one"), Some(1.0), "one run of each is not enough");
    }

    #[test]
    fn units() {
        assert_eq!([0.0000004, 0.00005, 0.0123, 12.3].map(seconds), ["400 ns", "50.0 µs", "12.3 ms", "12.3 s"]);
        assert_eq!([7, 1500, 2_000_000, 3_000_000_000].map(size), ["7 B", "1.50 kB", "2.00 MB", "3.00 GB"]);
        assert_eq!([7.0, 12_345.0, 2e6, 3e9].map(count), ["7.00", "12.3 k", "2.00 M", "3.00 G"]);
    }
}
