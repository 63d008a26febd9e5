//! Tables as rows of cells: all runners, the columns of the original benchmark by stages, and the targets.

use askama::Template;
use millstream_runners::times::{PipeTimes, StageTimes};

use super::conclusion::{Measured, is_floor, ranked, runs, walls};
use super::quantity::{Unit, grouped};
use super::side;
use super::text::Text;
use super::times::Times;
use crate::flame::profile::Profile;
use crate::results::{Met, Question, Run, Runner, SystemCalls, Target};
use crate::statistics::{median, range};

/// A table. The first column names the rows.
#[derive(Debug, Template)]
#[template(path = "table.html")]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The columns' titles, units and types.
    pub columns: Vec<Column>,
    /// The rows, in their initial order.
    pub rows: Vec<Row>,
}

/// The head of a column.
#[derive(Debug)]
pub struct Column {
    /// The title of the column.
    pub title: String,
    /// The unit of all its values; empty if there is none.
    pub unit: &'static str,
    /// Whether it contains numbers, which are aligned at their last digit.
    pub is_number: bool,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// The class name for style sheets: `millstream`, `competitor` or `floor`.
    pub class: &'static str,
    /// One for each column.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The text of the cell.
    pub text: String,
    /// The exact value if the cell is a number: seconds, bytes or a ratio.
    pub value: Option<f64>,
    /// The class name for style sheets.
    pub class: &'static str,
}

impl Cell {
    fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    fn number(value: f64, unit: &Unit) -> Cell {
        Cell { text: unit.show(value), value: Some(value), class: "" }
    }
}

impl Table {
    fn new(caption: String, name: &str) -> Table {
        let name = Column { title: name.to_owned(), unit: "", is_number: false };
        Table { caption, columns: vec![name], rows: Vec::new() }
    }

    /// Adds a column of text.
    fn texts(&mut self, title: &str, cells: impl IntoIterator<Item = Cell>) {
        self.column(title, "", false, cells);
    }

    /// Adds a column of values in the unit that fits the smallest. Adds nothing if there are no values.
    fn values(&mut self, title: &str, unit: fn(f64) -> Unit, values: &[Option<f64>]) {
        let Some(smallest) = values.iter().flatten().copied().min_by(f64::total_cmp) else { return };
        let unit = unit(smallest);
        let cell = |value: &Option<f64>| value.map_or(Cell::default(), |value| Cell::number(value, &unit));
        self.column(title, unit.sign, true, values.iter().map(cell));
    }

    fn column(&mut self, title: &str, unit: &'static str, is_number: bool, cells: impl IntoIterator<Item = Cell>) {
        self.columns.push(Column { title: title.to_owned(), unit, is_number });
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.cells.push(cell);
        }
    }
}

/// Lists every runner that was measured, the fastest first.
pub fn ranking(question: &Question) -> Table {
    let all = ranked(question);
    let Some(first) = all.first() else { return Table::new(String::new(), "runner") };
    let mut table = Table::new(
        "Every runner, the fastest first; in brackets the 95 % interval of the ratio of medians".to_owned(),
        "runner",
    );
    table.rows = all.iter().map(|one| named(question, one, &one.runner.name)).collect();

    let column = |value: fn(&[Run]) -> Option<f64>| all.iter().map(|one| value(runs(one.runner))).collect::<Vec<_>>();
    let unit = Unit::time(first.median);
    let seconds = |value: f64| Cell::number(value, &unit);
    table.column("median", unit.sign, true, all.iter().map(|one| seconds(one.median)));
    let sigma = |one: &Measured| deviation(&walls(one.runner)).map_or(Cell::default(), seconds);
    table.column("± σ", unit.sign, true, all.iter().map(sigma));
    let range = |one: &Measured| {
        let (low, high) = range(&walls(one.runner));
        Cell::text(format!("{} … {}", unit.show(low), unit.show(high)))
    };
    table.column("range", unit.sign, true, all.iter().map(range));
    let faster = |one: &Measured| {
        let times = Times::new(&walls(first.runner), &walls(one.runner));
        Cell { text: times.to_string(), value: Some(times.value), class: "" }
    };
    table.column("first is times faster", "", true, all.iter().map(faster));

    let each = |count: Option<u64>, value: fn(f64, f64) -> f64| -> Vec<Option<f64>> {
        all.iter().map(|one| count.map(|count| value(one.median, count as f64))).collect()
    };
    let per = question.per.as_deref().unwrap_or("records");
    table.values("for each", Unit::time, &each(question.count, |time, count| time / count));
    table.values("bytes/s", |low| Unit::rate(low, true), &each(question.bytes, |time, bytes| bytes / time));
    let rate: fn(f64) -> Unit = |low| Unit::rate(low, false);
    table.values(&format!("{per}/s"), rate, &each(question.count, |time, count| count / time));
    table.values("user + system", Unit::time, &column(|runs| middle(runs, |run| Some(run.user + run.system))));
    table.values("peak memory", Unit::size, &column(|runs| middle(runs, |run| Some(run.peak as f64))));
    table.values("allocations", Unit::plain, &column(|runs| middle(runs, |run| Some(run.allocations? as f64))));
    table.values("system calls", Unit::plain, &column(|runs| middle(runs, |run| Some(run.system_calls? as f64))));
    table.column(
        "runs",
        "",
        true,
        all.iter().map(|one| Cell::number(runs(one.runner).len() as f64, &Unit::plain(1e3))),
    );
    table
}

/// Returns the table of a sweep. For stages it has the columns of the original benchmark, for other parameters only those
/// that apply. Returns nothing if there is no sweep.
pub fn sweep(question: &Question) -> Option<Table> {
    let sweep = question.sweep.as_ref()?;
    let is_stages = sweep.parameter == "stages";
    let cells: Vec<_> = question
        .runners
        .iter()
        .filter(|runner| !runs(runner).is_empty())
        .filter_map(|runner| Some((runner.at?, Measured { runner, median: median(&walls(runner)) })))
        .collect();
    let caption = if is_stages {
        "By the number of stages n: dt in seconds, bytes (bps) and items (ips) a second, and the change \
         for each added stage since n = 0, where a gain is positive"
    } else {
        "By the swept value: dt in seconds, bytes (bps) and items (ips) a second"
    };
    let mut table = Table::new(caption.to_owned(), "runner");
    table.rows = cells.iter().map(|(_, one)| named(question, one, &one.runner.base)).collect();

    let mode = |one: &Measured| one.runner.mode.clone().unwrap_or("sync".to_owned());
    if is_stages {
        let job = |(at, one): &(u64, Measured)| Cell::text(format!("n={at},size=long,mode={}", mode(one)));
        table.texts("job", cells.iter().map(job));
    }
    let title = if is_stages { "n" } else { &sweep.parameter };
    table.column(title, "", true, cells.iter().map(|&(at, _)| number(at as f64, 0)));
    if is_stages {
        table.texts("mode", cells.iter().map(|(_, one)| Cell::text(mode(one))));
    }
    let rate = |amount: Option<u64>, one: &Measured| amount.map(|amount| amount as f64 / one.median);
    let bps = |one: &Measured| rate(question.bytes, one);
    let ips = |one: &Measured| rate(question.count, one);
    table.column("dt", "s", true, cells.iter().map(|(_, one)| number(one.median, 6)));
    table.column("bps", "", true, cells.iter().map(|(_, one)| bps(one).map_or(Cell::default(), |v| number(v, 0))));
    table.column("ips", "", true, cells.iter().map(|(_, one)| ips(one).map_or(Cell::default(), |v| number(v, 0))));
    if is_stages {
        let change = |(at, one): &(u64, Measured), value: &dyn Fn(&Measured) -> Option<f64>, decimals| {
            let zero = cells.iter().find(|(at, other)| *at == 0 && other.runner.base == one.runner.base);
            let change = zero.filter(|_| *at > 0).and_then(|(_, zero)| Some((value(one)? - value(zero)?) / *at as f64));
            change.map_or(Cell::default(), |change| number(change, decimals))
        };
        let gain = |one: &Measured| Some(-one.median);
        table.column("Δdt", "s", true, cells.iter().map(|cell| change(cell, &gain, 6)));
        table.column("Δbps", "", true, cells.iter().map(|cell| change(cell, &bps, 0)));
        table.column("Δips", "", true, cells.iter().map(|cell| change(cell, &ips, 0)));
    }
    Some(table)
}

/// Lists the targets and whether each was reached.
pub fn targets(targets: &[&Target]) -> Table {
    let mut table = Table::new("Targets".to_owned(), "work");
    let row = |target: &&Target| Row { class: "", cells: vec![Cell::text(&target.work)] };
    table.rows = targets.iter().map(row).collect();
    table.texts("millstream", targets.iter().map(|target| Cell::text(&target.row.millstream)));
    table.texts("fastest competitor", targets.iter().map(|target| Cell::text(&target.row.competitor)));
    table.texts(
        "ratio (95 % interval)",
        targets.iter().map(|target| Cell { value: target.row.value, ..Cell::text(&target.row.ratio) }),
    );
    table.texts("target", targets.iter().map(|target| Cell::text(&target.row.target)));
    table.texts("", targets.iter().map(|target| Cell { class: met(target), ..Cell::text(met(target)) }));
    table.columns.last_mut().expect("there are columns").title = "met?".to_owned();
    table
}

/// Lists the number of system calls of each observed runner.
pub fn system_calls(question: &Question) -> Table {
    let seen = |runner: &'_ Runner| {
        Some((runner.name.clone(), runner.millstream, runner.seen.as_ref()?.system_calls.clone()?))
    };
    let all: Vec<_> = question.runners.iter().filter_map(seen).collect();
    let mut table =
        Table::new("System calls of one run under strace, including all passes of the process".to_owned(), "runner");
    let row = |(name, millstream, _): &(String, bool, _)| Row {
        class: side(*millstream, false),
        cells: vec![Cell::text(name)],
    };
    table.rows = all.iter().map(row).collect();
    table.column("all", "", true, all.iter().map(|(_, _, calls)| number(sum(calls), 0)));
    table.texts("the most frequent", all.iter().map(|(_, _, calls)| most(calls)));
    table
}

/// Lists how each pipe that reported its times spent them.
pub fn pipes(question: &Question) -> Table {
    let seen = |runner: &'_ Runner| Some((runner.name.clone(), runner.seen.as_ref()?.pipe.clone()?));
    let all: Vec<(String, PipeTimes)> = question.runners.iter().filter_map(seen).collect();
    let mut table = Table::new(
        "Where the time of one pass through a Millstream pipe is spent, as the pipe measures it. The rest contains the stages that the \
         compiler has fused, finding records, and the sink; several threads can be inside stages at the same time"
            .to_owned(),
        "runner",
    );
    table.rows = all.iter().map(|(name, _)| Row { class: side(true, false), cells: vec![Cell::text(name)] }).collect();
    let Some(shortest) = all.iter().map(|(_, pipe)| pipe.seconds).min_by(f64::total_cmp) else { return table };
    let unit = Unit::time(shortest);
    let mut column = |title: &str, value: &dyn Fn(&PipeTimes) -> f64| {
        table.column(title, unit.sign, true, all.iter().map(|(_, pipe)| Cell::number(value(pipe), &unit)));
    };
    let inside = |pipe: &PipeTimes| pipe.stages.iter().map(|stage| stage.seconds).sum::<f64>();
    let for_stages = |pipe: &PipeTimes| pipe.stages.iter().map(|stage| stage.waited_seconds).sum::<f64>();
    let waiting = |pipe: &PipeTimes| pipe.waited_on_source_seconds + pipe.waited_on_sink_seconds + for_stages(pipe);
    column("all", &|pipe| pipe.seconds);
    column("waiting for source", &|pipe| pipe.waited_on_source_seconds);
    column("waiting for sink", &|pipe| pipe.waited_on_sink_seconds);
    column("waiting for stages", &for_stages);
    column("inside stages", &inside);
    let rest = |pipe: &PipeTimes| {
        let rest = pipe.seconds - waiting(pipe) - inside(pipe);
        if rest < 0.0 { Cell::default() } else { Cell::number(rest, &unit) }
    };
    table.column("the rest", unit.sign, true, all.iter().map(|(_, pipe)| rest(pipe)));
    let one = |stage: &StageTimes| format!("{} {} {}", stage.stage, unit.show(stage.seconds), unit.sign);
    let each = |pipe: &PipeTimes| match &pipe.stages[..] {
        many @ [_, _, _, _, _, ..] => format!("{} stages, the first: {}", many.len(), one(&many[0])),
        few => few.iter().map(one).collect::<Vec<_>>().join(", "),
    };
    table.texts("stages", all.iter().map(|(_, pipe)| Cell::text(each(pipe))));
    table
}

fn sum(calls: &[SystemCalls]) -> f64 {
    calls.iter().map(|one| one.calls).sum::<u64>() as f64
}

fn most(calls: &[SystemCalls]) -> Cell {
    let most = calls.iter().take(5).map(|one| format!("{} {}", one.name, grouped(one.calls as f64, 0)));
    Cell::text(most.collect::<Vec<_>>().join(", "))
}

/// Lists the profiled runners.
pub fn profiles(profiles: &[&Profile]) -> Table {
    let mut table =
        Table::new("Times of one run, unmodified and while it was sampled, and its system calls".to_owned(), "runner");
    let row = |profile: &&Profile| Row { class: "", cells: vec![Cell::text(&profile.runner)] };
    table.rows = profiles.iter().map(row).collect();
    let column = |value: fn(&Profile) -> f64| profiles.iter().map(|profile| Some(value(profile))).collect::<Vec<_>>();
    table.values("plain", Unit::time, &column(|profile| profile.plain));
    table.values("profiled", Unit::time, &column(|profile| profile.profiled));
    table.texts("by", profiles.iter().map(|profile| Cell::text(&profile.sampler)));
    table.column("system calls", "", true, profiles.iter().map(|profile| number(sum(&profile.system_calls), 0)));
    table.texts("the most frequent", profiles.iter().map(|profile| most(&profile.system_calls)));
    table
}

/// Describes in one word whether a target was reached.
pub fn met(target: &Target) -> &'static str {
    match target.row.met {
        Met::Yes => "met",
        Met::No => "missed",
        Met::Wrong => "wrong",
        Met::Skipped => "skipped",
    }
}

fn named(question: &Question, one: &Measured, name: &str) -> Row {
    Row { class: side(one.runner.millstream, is_floor(question, one.runner)), cells: vec![Cell::text(name)] }
}

fn number(value: f64, decimals: usize) -> Cell {
    Cell { text: grouped(value, decimals), value: Some(value), class: "" }
}

/// The median of a quantity, if every run has it.
fn middle(runs: &[Run], value: fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(value).collect();
    values.filter(|values| !values.is_empty()).map(|values| median(&values))
}

/// The standard deviation of a sample of at least two.
fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}
