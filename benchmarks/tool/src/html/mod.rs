//! Reports as a single HTML file. It needs no network and no other file, and is complete without JavaScript.
//!
//! [`conclusion`] finds the winner, [`table`], [`bars`] and [`lines`] show it, and [`quantity`] formats numbers. The
//! template in `templates/` only arranges them; it escapes all text.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use askama::Template;

use crate::definition::Definition;
use crate::flame::{self, profile::Profile};
use crate::goal::Clock;
use crate::results::{Met, Outcome, Question, Results, Target};

pub mod bars;
pub mod conclusion;
pub mod lines;
pub mod quantity;
pub mod table;
pub mod text;
pub mod times;

use bars::Bars;
use conclusion::{Comparison, Conclusion};
use lines::Lines;
use table::Table;
use text::Text;
use times::Times;

/// Returns the whole page, including these profiles with their flame graphs as SVG.
///
/// # Errors
/// Fails if a chart cannot be drawn.
pub fn page(results: &Results, profiles: &[(Profile, String)]) -> Result<String> {
    let section = |question| Section::new(question, profiles);
    let sections = results.definitions.iter().map(section).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&Target> = results.definitions.iter().flat_map(|question| &question.targets).collect();
    let count = |met: Met| targets.iter().filter(|target| target.row.met == met).count();
    let page = Page {
        results,
        time: readable(&results.machine.time),
        runners: results.definitions.iter().map(|question| question.runners.len()).sum(),
        won: Section::count(&sections, "won"),
        lost: Section::count(&sections, "lost"),
        even: Section::count(&sections, "even"),
        met: count(Met::Yes),
        missed: count(Met::No),
        others: count(Met::Wrong) + count(Met::Skipped),
        reach: Reach::new(&sections),
        sections,
        targets: table::targets(&targets),
        style: include_str!("../../templates/style.css"),
        script: include_str!("../../templates/script.js"),
    };
    Ok(page.render()?)
}

/// Writes the page of a record (by default the newest of this repository) with the record's profiles. Returns the path
/// of the file, which by default is `report.html` in the record.
///
/// # Errors
/// Fails if there is no record, if it does not have the right format, or if the file cannot be written.
pub fn write(root: &Path, definitions: &[Definition], record: Option<&Path>, output: Option<&Path>) -> Result<PathBuf> {
    let record = record.map_or_else(|| newest(root), |record| Ok(record.to_owned()))?;
    let mut results = Results::load(&record.join("results.json"))?;
    by_topic(&mut results, definitions);
    let output = output.map_or_else(|| record.join("report.html"), Path::to_owned);
    let profiles = flame::profile::load_all(&record.join(flame::profile::DIRECTORY))?;
    fs::write(&output, page(&results, &profiles)?).with_context(|| output.display().to_string())?;
    Ok(output)
}

/// Sorts the questions in the order of the definitions, which group them by topic. The order in a record can differ.
/// Questions that are no longer defined come last.
fn by_topic(results: &mut Results, definitions: &[Definition]) {
    let topic = |question: &Question| definitions.iter().position(|one| one.name == question.name);
    results.definitions.sort_by_key(|question| topic(question).unwrap_or(definitions.len()));
}

/// The directory of single runs, relative to the root of the repository. It is not under version control.
pub const RUNS: &str = "benchmarks/runs";

/// Returns the newest measurement. Their names are dates.
///
/// # Errors
/// Fails if there is none.
pub fn newest(root: &Path) -> Result<PathBuf> {
    let records = root.join(RUNS);
    let entries = fs::read_dir(&records).with_context(|| records.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let newest = paths.into_iter().filter(|path| path.join("results.json").is_file()).max();
    newest.with_context(|| format!("{} has no measurement with a results.json: measure first", records.display()))
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    results: &'a Results,
    time: String,
    runners: usize,
    won: usize,
    lost: usize,
    even: usize,
    met: usize,
    missed: usize,
    others: usize,
    reach: Reach,
    sections: Vec<Section<'a>>,
    targets: Table,
    style: &'static str,
    script: &'static str,
}

/// A question with everything that the page shows about it.
struct Section<'a> {
    question: &'a Question,
    conclusion: Conclusion<'a>,
    sentence: Text,
    class: &'static str,
    missed: Vec<&'a Target>,
    /// The description of each missed target, with the known limit.
    obstacles: Vec<(&'a str, String)>,
    bars: Option<Bars>,
    lines: Option<Lines>,
    sweep: Option<Sweep<'a>>,
    ranking: Table,
    targets: Table,
    /// The results of observed runs.
    seen: Vec<Table>,
    graphs: Vec<Graph<'a>>,
    notes: Vec<Note<'a>>,
    how: &'static str,
}

/// The table by a swept parameter.
struct Sweep<'a> {
    parameter: &'a str,
    table: Table,
}

/// A flame graph in a frame, so that its scripts and styles cannot affect the page.
struct Graph<'a> {
    runner: &'a str,
    document: String,
    height: u32,
}

impl<'a> Graph<'a> {
    fn new(profile: &'a Profile, svg: &str) -> Graph<'a> {
        // The XML header before the element is left out: only a separate file needs it.
        let element = svg.find("<svg").map_or("", |at| &svg[at..]);
        let height = element.split_once("height=\"").and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok());
        // The script of the graph stores the view in the address, which a frame without an address does not allow.
        let head =
            "<title>Flame graph</title><style>body{margin:0}</style><script>history.replaceState=()=>{}</script>";
        let document = format!("<!doctype html>{head}{element}");
        Graph { runner: &profile.runner, document, height: height.unwrap_or(600) }
    }
}

/// A problem to report.
struct Note<'a> {
    kind: &'static str,
    runner: &'a str,
    text: String,
}

impl<'a> Section<'a> {
    fn new(question: &'a Question, profiles: &'a [(Profile, String)]) -> Result<Section<'a>> {
        let profiles: Vec<_> = profiles.iter().filter(|(profile, _)| profile.question == question.name).collect();
        let ranked = conclusion::ranked(question);
        let lines = lines::lines(question)?;
        let conclusion = conclusion::conclude(question);
        let sweep = question.sweep.as_ref().zip(table::sweep(question));
        let profiled: Vec<&Profile> = profiles.iter().map(|(profile, _)| profile).collect();
        let seen = [table::pipes(question), table::system_calls(question), table::profiles(&profiled)];
        let obstacle = |target: &'a Target| Some((target.work.as_str(), target.obstacle()?));
        Ok(Section {
            question,
            sentence: Text::conclusion(question, &conclusion),
            class: if let Conclusion::Compared(comparison) = &conclusion { comparison.class() } else { "alone" },
            conclusion,
            missed: question.targets.iter().filter(|target| target.row.met == Met::No).collect(),
            obstacles: question.targets.iter().filter_map(obstacle).collect(),
            bars: if lines.is_some() { None } else { bars::bars(question, &ranked) },
            lines,
            sweep: sweep.map(|(sweep, table)| Sweep { parameter: &sweep.parameter, table }),
            ranking: table::ranking(question),
            targets: table::targets(&question.targets.iter().collect::<Vec<_>>()),
            seen: seen.into_iter().filter(|table| !table.rows.is_empty()).collect(),
            graphs: profiles.iter().map(|(profile, svg)| Graph::new(profile, svg)).collect(),
            notes: notes(question),
            how: match question.clock {
                Clock::Process => "Times include the whole process.",
                Clock::Inside => "The runner itself measures the time of a pass inside the process.",
            },
        })
    }

    fn count(sections: &[Section], class: &str) -> usize {
        sections.iter().filter(|section| section.class == class).count()
    }

    fn comparison(&self) -> Option<&Comparison<'a>> {
        match &self.conclusion {
            Conclusion::Compared(comparison) => Some(comparison),
            _ => None,
        }
    }
}

/// Returns notes about the runners that were wrong, missing or too slow, and the warnings about the others.
fn notes(question: &Question) -> Vec<Note<'_>> {
    let notes = question.runners.iter().flat_map(|runner| {
        let note = |kind, text| Note { kind, runner: &runner.name, text };
        match &runner.outcome {
            Outcome::Measured { warnings, .. } => {
                warnings.iter().map(|warning| note("Doubtful", warning.clone())).collect()
            }
            Outcome::Wrong(reason) => vec![note("Wrong", reason.clone())],
            Outcome::Skipped(program) => vec![note("Skipped", format!("this machine has no {program}"))],
            Outcome::Over(seconds) => vec![note("Over", format!("one run took more than {seconds} s"))],
        }
    });
    notes.collect()
}

/// The logarithmic scale of the overview: how many times faster Millstream is.
struct Reach {
    least: f64,
    most: f64,
}

/// The position of a ratio, as a percentage of the width.
struct Mark {
    /// How many times faster Millstream is.
    ratio: f64,
    at: f64,
    interval: Option<(f64, f64)>,
}

impl Reach {
    fn new(sections: &[Section]) -> Reach {
        let millstream = || sections.iter().filter_map(Section::comparison).map(Comparison::millstream);
        let low = |times: Times| times.interval.map_or(times.value, |(low, _)| low);
        let high = |times: Times| times.interval.map_or(times.value, |(_, high)| high);
        Reach { least: millstream().map(low).fold(0.5, f64::min), most: millstream().map(high).fold(2.0, f64::max) }
    }

    /// The position of a ratio, as a percentage of the width.
    fn place(&self, ratio: f64) -> f64 {
        2.0 + 96.0 * (ratio / self.least).ln() / (self.most / self.least).ln()
    }

    fn mark(&self, comparison: &Comparison) -> Mark {
        let Times { value, interval } = comparison.millstream();
        let interval = interval.map(|(low, high)| (self.place(low), self.place(high)));
        Mark { ratio: value, at: self.place(value), interval }
    }

    /// The position at which both are equally fast.
    fn even(&self) -> f64 {
        self.place(1.0)
    }

    /// The ratios that label the scale, with their positions.
    fn ticks(&self) -> Vec<(&'static str, f64)> {
        let ticks = [("⅒", 0.1), ("½", 0.5), ("1", 1.0), ("2", 2.0), ("10", 10.0), ("100", 100.0), ("1000", 1000.0)];
        let is_in = |(_, ratio): &(&str, f64)| (self.least..=self.most).contains(ratio);
        // The label of the next ratio would overlap it.
        let is_free = |(_, ratio): &(&str, f64)| *ratio != 2.0 || self.place(10.0) - self.place(2.0) > 9.0;
        ticks.into_iter().filter(is_in).filter(is_free).map(|(name, ratio)| (name, self.place(ratio))).collect()
    }
}

/// The class name for style sheets.
fn side(is_millstream: bool, is_floor: bool) -> &'static str {
    match (is_floor, is_millstream) {
        (true, _) => "floor",
        (_, true) => "millstream",
        (_, false) => "competitor",
    }
}

/// Formats `2026-11-22-0319` as `2026-11-22 03:19 UTC`; returns any other text unchanged.
fn readable(time: &str) -> String {
    match time.rsplit_once('-') {
        Some((date, clock)) if clock.len() == 4 && clock.is_ascii() => {
            format!("{date} {}:{} UTC", &clock[..2], &clock[2..])
        }
        _ => time.to_owned(),
    }
}
