//! What the measurements mean: each target as a row, a Markdown table, and every single run as CSV.

use std::fmt::Write;

use crate::definition::{Clock, Definition, Goal, Measure, Presence, Scale, Target};
use crate::machine::Machine;
use crate::measure::{Outcome, Run};
use crate::statistics::{median, quantile};
use crate::sweep;

/// A definition that was measured.
#[derive(Debug)]
pub struct Measured {
    /// What was asked.
    pub definition: Definition,
    /// One outcome for each of its runners.
    pub outcomes: Vec<Outcome>,
}

/// A runner that could not run.
#[derive(Clone, Copy, Debug)]
pub struct Skipped<'a> {
    /// Its name.
    pub runner: &'a str,
    /// The program that the machine lacks.
    pub program: &'a str,
    /// How much that matters.
    pub presence: Presence,
}

/// One line of the table.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The work, in a few words.
    pub work: String,
    /// The rival that was best, and its median.
    pub rival: String,
    /// Our median.
    pub ours: String,
    /// Ours against the rival, with the middle half of the pairs of runs in brackets.
    pub ratio: String,
    /// What we want to reach.
    pub target: String,
    /// Whether we did.
    pub met: Met,
}

/// Whether a target was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It was.
    Yes,
    /// It was not.
    No,
    /// Ours or all rivals gave a wrong answer.
    Wrong,
    /// The machine lacks something.
    Skipped,
}

impl Met {
    /// The word for a lack, without emphasis.
    fn plain(self) -> &'static str {
        match self {
            Met::Wrong => "wrong",
            Met::Skipped => "skipped",
            Met::Yes | Met::No => unreachable!("nothing lacks"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Met::Yes => "yes",
            Met::No => "**no**",
            Met::Wrong => "**wrong answer**",
            Met::Skipped => "skipped",
        }
    }
}

impl Measured {
    /// The rows of this definition.
    pub fn rows(&self) -> Vec<Row> {
        self.definition.targets.iter().map(|target| self.row(target)).collect()
    }

    /// Each runner that gave a wrong answer, with the reason.
    pub fn wrong(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named().filter_map(|(name, outcome)| match outcome {
            Outcome::Wrong(reason) => Some((name, reason.as_str())),
            _ => None,
        })
    }

    /// Each runner that could not run.
    pub fn skipped(&self) -> impl Iterator<Item = Skipped<'_>> {
        self.definition.runners.iter().zip(&self.outcomes).filter_map(|(runner, outcome)| match outcome {
            Outcome::Skipped(program) => Some(Skipped { runner: &runner.name, program, presence: runner.presence }),
            _ => None,
        })
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.definition.runners.iter().map(|runner| runner.name.as_str()).zip(&self.outcomes)
    }

    fn outcome(&self, name: &str) -> &Outcome {
        let found = self.named().find(|(runner, _)| *runner == name);
        found.expect("a definition names only runners it has").1
    }

    /// The quantity of each run, in seconds or bytes; or why there is none.
    fn values(&self, name: &str, measure: Measure) -> Result<Vec<f64>, Met> {
        let runs = |name: &str| match self.outcome(name) {
            Outcome::Measured(runs) => Ok(runs.iter().map(|run| run.get(measure)).collect::<Vec<f64>>()),
            Outcome::Wrong(_) => Err(Met::Wrong),
            Outcome::Skipped(_) => Err(Met::Skipped),
        };
        let Measure::AddedStage([from, to]) = measure else { return runs(name) };
        let per = self.definition.per.as_ref().expect("records are counted where stages are added");
        let records = self.definition.size(Scale::Full).values[per];
        let steps = (to - from) as f64 * records as f64;
        let [few, many] = [from, to].map(|stages| runs(&sweep::name(name, stages)));
        // Runs of the same round, so that a busy moment is in both.
        Ok(few?.iter().zip(many?).map(|(few, many)| (many - few) / steps).collect())
    }

    /// All runners that were right as a table, the fastest first.
    fn ranking(&self) -> String {
        let Definition { name, per, .. } = &self.definition;
        let count = per.as_ref().map(|per| self.definition.size(Scale::Full).values[per]);
        let mut runners: Vec<_> = self
            .named()
            .filter_map(|(name, outcome)| match outcome {
                Outcome::Measured(runs) => Some((name, median(&walls(runs)), runs)),
                _ => None,
            })
            .collect();
        runners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let best = runners.first().map_or(f64::NAN, |&(_, best, _)| best);
        // A column for those definitions only of which somebody counts.
        let allocations = |runs: &[Run]| runs.first().and_then(|run| run.allocations);
        let counted = runners.iter().any(|(_, _, runs)| allocations(runs).is_some());
        let (title, line) = if counted { (" allocations for each |", "--:|") } else { ("", "") };

        let mut text = format!(
            "\n| `{name}` | median | for each | against the first |{title} runs |\n|---|--:|--:|--:|{line}--:|\n"
        );
        for (name, wall, runs) in runners {
            let each = count.map_or(String::new(), |count| format!("{:.2} ns", wall * 1e9 / count as f64));
            let asked = match allocations(runs) {
                Some(times) => format!(" {:.2} |", times as f64 / count.unwrap_or(1) as f64),
                None if counted => " |".to_owned(),
                None => String::new(),
            };
            let total = quantity(Measure::Wall, wall);
            let (ratio, runs) = (wall / best, runs.len());
            writeln!(text, "| {name} | {total} | {each} | {ratio:.2} |{asked} {runs} |").expect(INFALLIBLE);
        }
        text
    }

    fn row(&self, target: &Target) -> Row {
        let row = |rival: String, ours: String, ratio: String, met| Row {
            work: target.work.clone(),
            rival,
            ours,
            ratio,
            target: goal(&target.goal),
            met,
        };
        let show = |values: &[f64]| quantity(target.measure, median(values));

        if let Some(feature) = target.processor.filter(|feature| !feature.is_present()) {
            return row(target.rivals.join(", "), format!("no {feature} here"), String::new(), Met::Skipped);
        }
        let ours = match self.values(&target.ours, target.measure) {
            Ok(values) => values,
            Err(lack) => return row(target.rivals.join(", "), lack.plain().into(), String::new(), lack),
        };
        let limit = match target.goal {
            Goal::UnderMib(limit) => Some(limit * MIB),
            Goal::UnderMs(limit) => Some(limit / 1e3),
            Goal::UnderNs(limit) => Some(limit / 1e9),
            _ => None,
        };
        if let Some(limit) = limit {
            let met = if median(&ours) < limit { Met::Yes } else { Met::No };
            return row(String::new(), show(&ours), String::new(), met);
        }

        // "The better of" needs all of them: a rival that is missing might have been the better one.
        let mut rivals = Vec::new();
        for name in &target.rivals {
            match self.values(name, target.measure) {
                Ok(values) => rivals.push((name, values)),
                Err(lack) => return row(format!("{name}: {}", lack.plain()), show(&ours), String::new(), lack),
            }
        }
        rivals.sort_by(|a, b| median(&a.1).total_cmp(&median(&b.1)));
        let (name, rival) = rivals.first().expect("a goal that compares has rivals");

        let comparison = Comparison::new(&target.goal, &ours, rival);
        let met = if comparison.reached { Met::Yes } else { Met::No };
        row(format!("{name} {}", show(rival)), show(&ours), comparison.text, met)
    }
}

fn walls(runs: &[Run]) -> Vec<f64> {
    runs.iter().map(|run| run.get(Measure::Wall)).collect()
}

/// Ours against one rival, in the terms of the goal.
struct Comparison {
    text: String,
    reached: bool,
}

impl Comparison {
    fn new(goal: &Goal, ours: &[f64], rival: &[f64]) -> Comparison {
        let compare = |f: fn(f64, f64) -> f64| {
            let pairs: Vec<f64> = ours.iter().zip(rival).map(|(&ours, &rival)| f(ours, rival)).collect();
            (f(median(ours), median(rival)), quantile(&pairs, 0.25), quantile(&pairs, 0.75))
        };
        match *goal {
            Goal::TimesFaster(least) => {
                let (ratio, low, high) = compare(|ours, rival| rival / ours);
                Comparison { text: format!("{ratio:.2} times faster ({low:.2}–{high:.2})"), reached: ratio >= least }
            }
            Goal::AtMost(most) => {
                let (ratio, low, high) = compare(|ours, rival| ours / rival);
                let decimals = decimals(most);
                let text = format!("{ratio:.decimals$} ({low:.decimals$}–{high:.decimals$})");
                Comparison { text, reached: ratio <= most }
            }
            Goal::Within(difference) => {
                let (ratio, low, high) = compare(|ours, rival| ours / rival);
                let reached = (ratio - 1.0).abs() <= difference;
                Comparison { text: format!("{ratio:.2} ({low:.2}–{high:.2})"), reached }
            }
            Goal::MoreMs(most) => {
                let (more, low, high) = compare(|ours, rival| (ours - rival) * 1e3);
                Comparison { text: format!("{more:+.2} ms ({low:+.2}–{high:+.2})"), reached: more <= most }
            }
            Goal::UnderMib(_) | Goal::UnderMs(_) | Goal::UnderNs(_) => unreachable!("this goal has no rival"),
        }
    }
}

/// How many decimals tell a ratio from its goal: another one where the goal is small.
fn decimals(most: f64) -> usize {
    if most < 0.1 { 3 } else { 2 }
}

const MIB: f64 = (1 << 20) as f64;

fn quantity(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Wall if value < 0.1 => format!("{:.2} ms", value * 1e3),
        Measure::Wall => format!("{:.0} ms", value * 1e3),
        Measure::Cpu => format!("{:.0} ms of CPU", value * 1e3),
        Measure::Peak => format!("{:.1} MiB", value / MIB),
        Measure::AddedStage(_) => format!("{:.2} ns", value * 1e9),
    }
}

fn goal(goal: &Goal) -> String {
    match goal {
        Goal::TimesFaster(least) => format!("≥ {least} times faster"),
        Goal::AtMost(most) => format!("≤ {most:.decimals$}", decimals = decimals(*most)),
        Goal::Within(difference) => format!("within {:.0} %", difference * 100.0),
        Goal::MoreMs(most) => format!("≤ {most:+} ms"),
        Goal::UnderMib(limit) => format!("< {limit} MiB"),
        Goal::UnderMs(limit) => format!("< {limit} ms"),
        Goal::UnderNs(limit) => format!("< {limit} ns"),
    }
}

/// The table in Markdown.
pub fn table(measured: &[Measured]) -> String {
    let mut text = String::from("| work | rival | ours | ratio | target | met? |\n|---|---|---|---|---|---|\n");
    for row in measured.iter().flat_map(Measured::rows) {
        let Row { work, rival, ours, ratio, target, met } = row;
        writeln!(text, "| {work} | {rival} | {ours} | {ratio} | {target} | {} |", met.word()).expect(INFALLIBLE);
    }
    text
}

/// What a check at quick size shows: who was right. Times of such small inputs mean nothing.
pub fn checks(measured: &[Measured]) -> String {
    let mut text = String::new();
    for one in measured {
        let right = one.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Measured(_))).count();
        let all = one.outcomes.len();
        writeln!(text, "{}: {right} of {all} runners right", one.definition.name).expect(INFALLIBLE);
    }
    text
}

const INFALLIBLE: &str = "writing to a string cannot fail";

/// The whole record in Markdown: machine, table, what each row asks, and who was wrong or missing.
pub fn record(measured: &[Measured], machine: &Machine, rounds: usize) -> String {
    let mut text = format!(
        "# Measured on {}\n\n{machine}\nMedians of {rounds} alternating runs after one warm-up, unless said otherwise \
         below; in brackets the middle half of the ratios of the single pairs of runs. Times are of whole \
         processes, unless said otherwise below; CPU times with all children. Every run gave the right answer, except those named below; \
         bytes that were written to nowhere or through a pipe were hashed in the warm-up, those in files every time. \
         Each single run is in the `.csv` beside this file.\n\n{}\n",
        machine.time,
        table(measured)
    );
    text.push_str("## Questions\n\n");
    for one in measured {
        let Definition { name, question, runs, clock, .. } = &one.definition;
        let runs = runs.map_or(String::new(), |runs| format!(" ({runs} runs)"));
        let clock = match clock {
            Clock::Process => "",
            Clock::Inside => " Times are medians of several passes inside each process.",
        };
        writeln!(text, "- `{name}`: {question}{runs}{clock}").expect(INFALLIBLE);
        for (runner, reason) in one.wrong() {
            writeln!(text, "  - wrong: {runner}: {reason}").expect(INFALLIBLE);
        }
        for Skipped { runner, program, .. } in one.skipped() {
            writeln!(text, "  - skipped: {runner}: this machine has no {program}").expect(INFALLIBLE);
        }
    }
    text.push_str("\n## Every runner\n\nThe fastest first, whoever it is; or by the number of stages. Medians of the wall time.\n");
    text.push_str(&rankings(measured));
    text
}

/// For each definition all of its runners: the fastest first, or by their number of stages.
pub fn rankings(measured: &[Measured]) -> String {
    measured.iter().map(|one| sweep::table(one).unwrap_or_else(|| one.ranking())).collect()
}

/// Every counted run of every runner.
pub fn csv(measured: &[Measured]) -> String {
    let mut text = String::from("definition,runner,run,wall_s,user_s,system_s,peak_bytes,allocations\n");
    for one in measured {
        for (runner, outcome) in one.named() {
            let Outcome::Measured(runs) = outcome else { continue };
            for (number, Run { wall, user, system, peak, allocations }) in runs.iter().enumerate() {
                let [wall, user, system] = [wall, user, system].map(|time| time.as_secs_f64());
                let name = &one.definition.name;
                let allocations = allocations.map_or(String::new(), |times| times.to_string());
                writeln!(text, "{name},{runner},{number},{wall:.6},{user:.6},{system:.6},{peak},{allocations}")
                    .expect(INFALLIBLE);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::definition::Feature;

    fn runs(milliseconds: &[u64]) -> Outcome {
        let run = |&ms: &u64| Run {
            wall: Duration::from_millis(ms),
            user: Duration::from_millis(2 * ms),
            system: Duration::ZERO,
            peak: ms << 20,
            allocations: None,
        };
        Outcome::Measured(milliseconds.iter().map(run).collect())
    }

    fn measured(goal: &str, measure: &str, outcomes: [Outcome; 3]) -> Measured {
        let rivals = if goal.contains("under") { "[]" } else { r#"["slow", "slower"]"# };
        let definition = Definition::parse(&format!(
            r#"
            name = "test"
            question = "Which?"
            full = {{ answers.all = {{ count = 1 }} }}
            quick = {{ answers.all = {{ count = 1 }} }}
            runner = [
                {{ name = "ours", command = ["a"] }},
                {{ name = "slower", command = ["b"] }},
                {{ name = "slow", command = ["c"] }},
            ]
            target = [
                {{ work = "w", ours = "ours", rivals = {rivals}, measure = "{measure}", goal = {{ {goal} }} }}
            ]
            "#
        ))
        .unwrap();
        Measured { definition, outcomes: outcomes.into() }
    }

    fn row_of(goal: &str, measure: &str, outcomes: [Outcome; 3]) -> Row {
        measured(goal, measure, outcomes).rows().remove(0)
    }

    fn three() -> [Outcome; 3] {
        [runs(&[100, 90, 110]), runs(&[500, 500, 500]), runs(&[300, 270, 330])]
    }

    #[test]
    fn the_better_rival_counts() {
        let row = row_of("times_faster = 2.9", "wall", three());
        assert_eq!((row.rival.as_str(), row.ours.as_str()), ("slow 300 ms", "100 ms"));
        assert_eq!((row.ratio.as_str(), row.met), ("3.00 times faster (3.00–3.00)", Met::Yes));
        assert_eq!(row_of("times_faster = 3.1", "wall", three()).met, Met::No);
    }

    #[test]
    fn every_goal_can_be_reached_and_missed() {
        for (measure, reached, missed) in [
            ("cpu", "at_most = 0.34", "at_most = 0.33"),
            ("wall", "within = 0.7", "within = 0.6"),
            ("wall", "more_ms = -199.0", "more_ms = -201.0"),
            ("peak", "under_mib = 101.0", "under_mib = 100.0"),
            ("wall", "under_ms = 101.0", "under_ms = 100.0"),
        ] {
            assert_eq!(row_of(reached, measure, three()).met, Met::Yes, "{reached}");
            assert_eq!(row_of(missed, measure, three()).met, Met::No, "{missed}");
        }
    }

    #[test]
    fn an_added_stage_is_the_difference_by_stages_and_records() {
        let row = |goal: &str, rivals: &str| {
            let definition = Definition::parse(&format!(
                r#"
                name = "test"
                question = "Which?"
                per = "lines"
                stages = [0, 10]
                full = {{ values = {{ lines = 1_000_000, bytes = 1 }}, answers.all = {{ count = 1 }} }}
                quick = {{ values = {{ lines = 1, bytes = 1 }}, answers.all = {{ count = 1 }} }}
                runner = [{{ name = "ours", command = ["a", "{{stages}}"] }}, {{ name = "slow", command = ["b", "{{stages}}"] }}]
                target = [{{ work = "w", ours = "ours", rivals = {rivals}, measure = {{ added_stage = [0, 10] }}, goal = {{ {goal} }} }}]
                "#
            ))
            .unwrap();
            // 10, 12 and 14 ns for each record and stage against 1000.
            let outcomes = [runs(&[100, 110, 90]), runs(&[200, 230, 230]), runs(&[300; 3]), runs(&[10_300; 3])];
            Measured { definition, outcomes: outcomes.into() }.rows().remove(0)
        };
        let compared = row("at_most = 0.0125", r#"["slow"]"#);
        assert_eq!((compared.rival.as_str(), compared.ours.as_str()), ("slow 1000.00 ns", "12.00 ns"));
        assert_eq!((compared.ratio.as_str(), compared.target.as_str()), ("0.012 (0.011–0.013)", "≤ 0.013"));
        assert_eq!(compared.met, Met::Yes);
        assert_eq!(row("at_most = 0.011", r#"["slow"]"#).met, Met::No);
        let alone = row("under_ns = 12.5", "[]");
        assert_eq!((alone.ours.as_str(), alone.target.as_str(), alone.met), ("12.00 ns", "< 12.5 ns", Met::Yes));
        assert_eq!(row("under_ns = 12.0", "[]").met, Met::No);
    }

    #[test]
    fn a_goal_for_some_processors_is_skipped_on_others() {
        let feature = Feature::Avx512Ifma;
        let mut measured = measured("at_most = 1.0", "wall", three());
        measured.definition.targets[0].processor = Some(feature);
        let met = if feature.is_present() { Met::Yes } else { Met::Skipped };
        assert_eq!(measured.rows()[0].met, met);
    }

    #[test]
    fn every_runner_is_ranked_whoever_it_is() {
        let [ours, slower, slow] = three();
        let mut measured = measured("at_most = 1.0", "wall", [slower, slow, ours]);
        measured.definition.per = Some("records".to_owned());
        measured.definition.full.values.insert("records".to_owned(), 1_000_000);
        let table = measured.ranking();
        let rows: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(rows[0], "| slow | 100 ms | 100.00 ns | 1.00 | 3 |");
        assert_eq!(rows[2], "| ours | 500 ms | 500.00 ns | 5.00 | 3 |");

        let Outcome::Measured(runs) = &mut measured.outcomes[0] else { panic!("it was measured") };
        runs[0].allocations = Some(2_500_000);
        let table = measured.ranking();
        let rows: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(rows[0], "| slow | 100 ms | 100.00 ns | 1.00 | | 3 |");
        assert_eq!(rows[2], "| ours | 500 ms | 500.00 ns | 5.00 | 2.50 | 3 |");
    }

    #[test]
    fn wrong_is_never_fast() {
        let [_, slower, slow] = three();
        let row = row_of("at_most = 1.0", "wall", [Outcome::Wrong("w".into()), slower.clone(), slow.clone()]);
        assert_eq!((row.ours.as_str(), row.ratio.as_str(), row.met), ("wrong", "", Met::Wrong));
        let row = row_of("at_most = 1.0", "wall", [runs(&[1]), slower, Outcome::Skipped("c".into())]);
        assert_eq!((row.rival.as_str(), row.met), ("slow: skipped", Met::Skipped));
    }

    #[test]
    fn a_record_names_everybody_and_holds_every_run() {
        let outcomes = [runs(&[1, 2]), Outcome::Wrong("count=2 instead of 1".into()), Outcome::Skipped("pv".into())];
        let all = [measured("at_most = 1.0", "wall", outcomes)];
        let csv = csv(&all);
        assert_eq!(csv.lines().nth(2), Some("test,ours,1,0.002000,0.004000,0.000000,2097152,"));
        assert_eq!(csv.lines().count(), 3);
        assert_eq!(checks(&all), "test: 1 of 3 runners right\n");
        let record = record(&all, &Machine::look(Path::new("/"), &[], OsStr::new("")), 2);
        for part in
            ["Medians of 2", "slow: skipped", "wrong: slower: count=2 instead of 1", "has no pv", "`test`: Which?"]
        {
            assert!(record.contains(part), "{part}: {record}");
        }
    }
}
