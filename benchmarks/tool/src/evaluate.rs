//! Evaluates the runs of a definition: compares each target with the measurements.

use crate::definition::{self, Definition, Presence, Scale, Target};
use crate::goal::{Clock, Goal, Measure};
use crate::parameter;
use crate::results::{self, Met, Outcome, Question, Row, Runner};
use crate::statistics::{interval, median};

/// Returns the question with its results. `outcomes` has one element for each runner of the definition, in the same
/// order. At the quick size targets are left out, because goals apply to the full size.
pub fn question(definition: &Definition, scale: Scale, outcomes: Vec<Outcome>) -> Question {
    let size = definition.size(scale);
    let runner = |(runner, outcome): (&definition::Runner, Outcome)| Runner {
        name: runner.name.clone(),
        base: runner.base().clone(),
        millstream: definition.is_millstream(runner),
        optional: runner.presence == Presence::Optional,
        mode: runner.mode.clone().or(runner.cell.as_ref().map(|cell| cell.mode.clone())),
        at: runner.cell.as_ref().map(|cell| cell.at),
        command: runner.shown(size),
        outcome,
        seen: None,
    };
    let mut question = Question {
        name: definition.name.clone(),
        question: definition.question.clone(),
        explanation: definition.explanation.clone(),
        clock: definition.clock,
        per: definition.per.clone(),
        count: definition.count(scale),
        bytes: definition.bytes(scale),
        sweep: definition.sweep.clone(),
        floor: definition.floor.clone(),
        repeat: format!("make bench ONLY={}", definition.name),
        runners: definition.runners.iter().zip(outcomes).map(runner).collect(),
        targets: Vec::new(),
    };
    if scale == Scale::Full {
        question.targets = definition.targets.iter().map(|target| question.evaluate(target)).collect();
    }
    question
}

/// The reason why there is no number to compare.
enum Lack {
    Wrong,
    Skipped,
    /// A run took more than this many seconds.
    Over(f64),
}

impl Lack {
    fn word(&self) -> String {
        match self {
            Lack::Wrong => "wrong".to_owned(),
            Lack::Skipped => "skipped".to_owned(),
            Lack::Over(seconds) => format!("over {seconds} s"),
        }
    }

    fn met(&self) -> Met {
        match self {
            Lack::Wrong => Met::Wrong,
            Lack::Skipped | Lack::Over(_) => Met::Skipped,
        }
    }
}

impl Question {
    fn evaluate(&self, target: &Target) -> results::Target {
        results::Target {
            work: target.work.clone(),
            millstream: target.millstream.clone(),
            competitors: target.competitors.clone(),
            measure: target.measure,
            goal: target.goal,
            row: self.row(target),
            if_missed: None,
        }
    }

    /// Returns the quantity of each run in seconds or bytes, or the reason why there is none.
    fn values(&self, name: &str, measure: Measure) -> Result<Vec<f64>, Lack> {
        let runs = |name: &str| {
            let runner = self.runners.iter().find(|runner| runner.name == name);
            match &runner.expect("a definition names only runners it has").outcome {
                Outcome::Measured { runs, .. } => Ok(runs.iter().map(|run| run.get(measure)).collect::<Vec<f64>>()),
                Outcome::Wrong(_) => Err(Lack::Wrong),
                Outcome::Skipped(_) => Err(Lack::Skipped),
                Outcome::Over(seconds) => Err(Lack::Over(*seconds)),
            }
        };
        let Measure::AddedStage([from, to]) = measure else { return runs(name) };
        let records = self.count.expect("records are counted where stages are added");
        let steps = (to - from) as f64 * records as f64;
        let [few, many] = [from, to].map(|stages| runs(&parameter::name(name, parameter::STAGES, stages)));
        // The pairs are runs of the same round, so a disturbance affects both.
        Ok(few?.iter().zip(many?).map(|(few, many)| (many - few) / steps).collect())
    }

    fn row(&self, target: &Target) -> Row {
        let row = |competitor: String, millstream: String, met| Row {
            competitor,
            millstream,
            ratio: String::new(),
            target: goal(&target.goal),
            value: None,
            low: None,
            high: None,
            met,
        };
        let show = |values: &[f64]| quantity(target.measure, median(values));

        if let Some(feature) = target.processor.filter(|feature| !feature.is_present()) {
            return row(target.competitors.join(", "), format!("no {feature} here"), Met::Skipped);
        }
        let millstream = match self.values(&target.millstream, target.measure) {
            Ok(values) => values,
            Err(lack) => return row(target.competitors.join(", "), lack.word(), lack.met()),
        };
        let limit = match target.goal {
            Goal::UnderMib(limit) => Some(limit * MIB),
            Goal::UnderMs(limit) => Some(limit / 1e3),
            Goal::UnderNs(limit) => Some(limit / 1e9),
            _ => None,
        };
        if let Some(limit) = limit {
            let met = if median(&millstream) < limit { Met::Yes } else { Met::No };
            return row(String::new(), show(&millstream), met);
        }

        // The fastest competitor is known only if all were measured, because a missing one could be the fastest. Only a
        // competitor that exceeded its time limit as a whole process is certainly slower than a runner that did not.
        let mut competitors = Vec::new();
        let mut slowest = None;
        for name in &target.competitors {
            match self.values(name, target.measure) {
                Ok(values) => competitors.push((name, values)),
                Err(Lack::Over(seconds)) if self.clock == Clock::Process && target.measure == Measure::Wall => {
                    slowest = Some((name, seconds));
                }
                Err(lack) => return row(format!("{name}: {}", lack.word()), show(&millstream), lack.met()),
            }
        }
        competitors.sort_by(|a, b| median(&a.1).total_cmp(&median(&b.1)));
        let Some((name, competitor)) = competitors.first() else {
            let (name, seconds) = slowest.expect("a goal that compares has competitors");
            // The competitor is slower than the limit, so a ratio that is reached with the limit is also reached with
            // its real time.
            let one_sided = !matches!(target.goal, Goal::Within(_));
            let reached = one_sided && Comparison::new(&target.goal, &millstream, &[seconds]).reached;
            let met = if reached { Met::Yes } else { Met::Skipped };
            return Row {
                ratio: format!("more than {:.2} times faster", seconds / median(&millstream)),
                ..row(format!("{name}: over {seconds} s"), show(&millstream), met)
            };
        };

        let Comparison { text, value, interval, reached } = Comparison::new(&target.goal, &millstream, competitor);
        Row {
            ratio: text,
            value: Some(value),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            ..row(format!("{name} {}", show(competitor)), show(&millstream), if reached { Met::Yes } else { Met::No })
        }
    }
}

/// Millstream against one competitor, as the goal compares them.
struct Comparison {
    text: String,
    value: f64,
    interval: Option<(f64, f64)>,
    reached: bool,
}

impl Comparison {
    fn new(goal: &Goal, millstream: &[f64], competitor: &[f64]) -> Comparison {
        let compare = |f: fn(f64, f64) -> f64,
                       show: &dyn Fn(f64) -> String,
                       unit: &str,
                       reached: &dyn Fn(f64) -> bool| {
            let value = f(median(millstream), median(competitor));
            let interval = interval(millstream, competitor, f);
            let brackets = interval.map_or(String::new(), |(low, high)| format!(" ({}–{})", show(low), show(high)));
            Comparison { text: format!("{}{unit}{brackets}", show(value)), value, interval, reached: reached(value) }
        };
        let two = |value| format!("{value:.2}");
        match *goal {
            Goal::TimesFaster(least) => {
                compare(|millstream, competitor| competitor / millstream, &two, " times faster", &|ratio| {
                    ratio >= least
                })
            }
            Goal::AtMost(most) => {
                let show = |value| format!("{value:.decimals$}", decimals = decimals(most));
                compare(|millstream, competitor| millstream / competitor, &show, "", &|ratio| ratio <= most)
            }
            Goal::Within(difference) => compare(|millstream, competitor| millstream / competitor, &two, "", &|ratio| {
                (ratio - 1.0).abs() <= difference
            }),
            Goal::MoreMs(most) => {
                let show = |value| format!("{value:+.2}");
                compare(|millstream, competitor| (millstream - competitor) * 1e3, &show, " ms", &|more| more <= most)
            }
            Goal::UnderMib(_) | Goal::UnderMs(_) | Goal::UnderNs(_) => unreachable!("this goal has no competitor"),
        }
    }
}

/// The number of decimals that distinguishes a ratio from its goal: one more if the goal is small.
fn decimals(most: f64) -> usize {
    if most < 0.1 { 3 } else { 2 }
}

const MIB: f64 = (1 << 20) as f64;

/// Formats a time or a size with its unit.
pub fn quantity(measure: Measure, value: f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Feature;
    use crate::report;
    use crate::results::Run;

    fn runs(milliseconds: &[u64]) -> Outcome {
        let run = |&ms: &u64| Run {
            wall: ms as f64 / 1e3,
            user: 2.0 * ms as f64 / 1e3,
            system: 0.0,
            peak: ms << 20,
            allocations: None,
            system_calls: None,
        };
        Outcome::Measured { runs: milliseconds.iter().map(run).collect(), warnings: Vec::new() }
    }

    fn definition(goal: &str, measure: &str) -> Definition {
        let competitors = if goal.contains("under") { "[]" } else { r#"["slow", "slower"]"# };
        Definition::parse(&format!(
            r#"
            name = "test"
            question = "Which?"
            full = {{ answers.all = {{ count = 1 }} }}
            quick = {{ answers.all = {{ count = 1 }} }}
            runner = [
                {{ name = "millstream", command = ["a"] }},
                {{ name = "slower", command = ["b"] }},
                {{ name = "slow", command = ["c"] }},
            ]
            target = [
                {{ work = "w", millstream = "millstream", competitors = {competitors}, measure = "{measure}", goal = {{ {goal} }} }}
            ]
            "#
        ))
        .unwrap()
    }

    fn row_of(goal: &str, measure: &str, outcomes: [Outcome; 3]) -> Row {
        question(&definition(goal, measure), Scale::Full, outcomes.into()).targets.remove(0).row
    }

    fn three() -> [Outcome; 3] {
        [runs(&[100, 90, 110]), runs(&[500, 500, 500]), runs(&[300, 270, 330])]
    }

    #[test]
    fn the_better_competitor_counts() {
        let row = row_of("times_faster = 2.9", "wall", three());
        assert_eq!((row.competitor.as_str(), row.millstream.as_str()), ("slow 300 ms", "100 ms"));
        assert_eq!((row.ratio.as_str(), row.met), ("3.00 times faster", Met::Yes));
        assert_eq!(row_of("times_faster = 3.1", "wall", three()).met, Met::No);
    }

    #[test]
    fn runs_enough_have_an_interval() {
        let outcomes = [runs(&[100, 90, 110, 100, 100, 95]), runs(&[500; 6]), runs(&[300, 270, 330, 300, 330, 300])];
        let row = row_of("times_faster = 2.9", "wall", outcomes);
        let (value, low, high) = (row.value.unwrap(), row.low.unwrap(), row.high.unwrap());
        assert!(low < high && low <= value && value <= high, "{low} {value} {high}");
        assert_eq!(row.ratio, format!("{value:.2} times faster ({low:.2}–{high:.2})"));
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
        let row = |goal: &str, competitors: &str| {
            let definition = Definition::parse(&format!(
                r#"
                name = "test"
                question = "Which?"
                per = "lines"
                stages = [0, 10]
                full = {{ values = {{ lines = 1_000_000, bytes = 1 }}, answers.all = {{ count = 1 }} }}
                quick = {{ values = {{ lines = 1, bytes = 1 }}, answers.all = {{ count = 1 }} }}
                runner = [{{ name = "millstream", command = ["a", "{{stages}}"] }}, {{ name = "slow", command = ["b", "{{stages}}"] }}]
                target = [{{ work = "w", millstream = "millstream", competitors = {competitors}, measure = {{ added_stage = [0, 10] }}, goal = {{ {goal} }} }}]
                "#
            ))
            .unwrap();
            // 10, 12 and 14 ns for each record and stage; the competitor takes 1000.
            let outcomes = [runs(&[100, 110, 90]), runs(&[200, 230, 230]), runs(&[300; 3]), runs(&[10_300; 3])];
            let question = question(&definition, Scale::Full, outcomes.into());
            assert!(question.runners[1].millstream && !question.runners[3].millstream);
            question.targets[0].row.clone()
        };
        let compared = row("at_most = 0.0125", r#"["slow"]"#);
        assert_eq!((compared.competitor.as_str(), compared.millstream.as_str()), ("slow 1000.00 ns", "12.00 ns"));
        assert_eq!((compared.ratio.as_str(), compared.target.as_str()), ("0.012", "≤ 0.013"));
        assert_eq!(compared.met, Met::Yes);
        assert_eq!(row("at_most = 0.011", r#"["slow"]"#).met, Met::No);
        let alone = row("under_ns = 12.5", "[]");
        assert_eq!((alone.millstream.as_str(), alone.target.as_str(), alone.met), ("12.00 ns", "< 12.5 ns", Met::Yes));
        assert_eq!(row("under_ns = 12.0", "[]").met, Met::No);
    }

    #[test]
    fn a_goal_for_some_processors_is_skipped_on_others() {
        let feature = Feature::Avx512Ifma;
        let mut definition = definition("at_most = 1.0", "wall");
        definition.targets[0].processor = Some(feature);
        let met = if feature.is_present() { Met::Yes } else { Met::Skipped };
        assert_eq!(question(&definition, Scale::Full, three().into()).targets[0].row.met, met);
    }

    #[test]
    fn wrong_is_never_fast() {
        let [_, slower, slow] = three();
        let row = row_of("at_most = 1.0", "wall", [Outcome::Wrong("w".into()), slower.clone(), slow.clone()]);
        assert_eq!((row.millstream.as_str(), row.ratio.as_str(), row.met), ("wrong", "", Met::Wrong));
        let row = row_of("at_most = 1.0", "wall", [runs(&[1]), slower, Outcome::Skipped("c".into())]);
        assert_eq!((row.competitor.as_str(), row.met), ("slow: skipped", Met::Skipped));
    }

    #[test]
    fn what_is_missed_has_a_caption_if_somebody_wrote_one() {
        let asked = |goal: &str| {
            let mut question = question(&definition(goal, "wall"), Scale::Full, three().into());
            assert_eq!(question.targets[0].obstacle(), None);
            question.targets[0].if_missed = Some("the\ncopy".to_owned());
            question
        };
        assert_eq!(asked("times_faster = 2.9").targets[0].obstacle(), None);
        let missed = asked("times_faster = 3.1");
        assert_eq!(missed.targets[0].obstacle().as_deref(), Some("the copy"));
        let table = report::table(&missed.targets);
        assert!(table.contains("| **no** (1) |\n\nKnown limits:\n\n1. the copy\n"), "{table}");
        assert!(report::lines(&missed).contains("\nwhy     the copy\n"));
    }

    #[test]
    fn who_took_too_long_is_slower_than_that() {
        let [millstream, slower, _] = three();
        // The other competitor is certainly the better one.
        let row = row_of("times_faster = 4.9", "wall", [millstream.clone(), slower, Outcome::Over(10.0)]);
        assert_eq!((row.competitor.as_str(), row.met), ("slower 500 ms", Met::Yes));
        let both = |goal| row_of(goal, "wall", [millstream.clone(), Outcome::Over(10.0), Outcome::Over(10.0)]);
        let row = both("times_faster = 99.0");
        assert_eq!(
            (row.competitor.as_str(), row.ratio.as_str()),
            ("slower: over 10 s", "more than 100.00 times faster")
        );
        assert_eq!((row.met, both("times_faster = 101.0").met), (Met::Yes, Met::Skipped));
        // Its memory is unknown.
        let row = row_of("at_most = 1.0", "peak", [millstream, runs(&[500]), Outcome::Over(10.0)]);
        assert_eq!((row.competitor.as_str(), row.met), ("slow: over 10 s", Met::Skipped));
    }
}
