//! Results as text: Markdown tables, one line for each target, and all single runs as CSV.

use std::fmt::Write;

use crate::evaluate::quantity;
use crate::goal::{Clock, Measure};
use crate::results::{Machine, Met, Question, Results, Row, Run, Target};
use crate::statistics::median;
use crate::sweep;

impl Met {
    fn word(self) -> &'static str {
        match self {
            Met::Yes => "yes",
            Met::No => "**no**",
            Met::Wrong => "**wrong answer**",
            Met::Skipped => "skipped",
        }
    }
}

/// The table of targets in Markdown, followed by a numbered list of the reasons for the missed ones.
pub fn table<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    let mut text =
        String::from("| work | competitor | Millstream | ratio | target | met |\n|---|---|---|---|---|---|\n");
    let mut obstacles: Vec<String> = Vec::new();
    for target in targets {
        let number = target.obstacle().map(|obstacle| {
            // A limit that affects several targets is printed once.
            let known = obstacles.iter().position(|known| *known == obstacle);
            known.unwrap_or_else(|| {
                obstacles.push(obstacle);
                obstacles.len() - 1
            }) + 1
        });
        let Target { work, row: Row { competitor, millstream, ratio, target, met, .. }, .. } = target;
        let number = number.map_or(String::new(), |number| format!(" ({number})"));
        writeln!(text, "| {work} | {competitor} | {millstream} | {ratio} | {target} | {}{number} |", met.word())
            .expect(INFALLIBLE);
    }
    if !obstacles.is_empty() {
        text.push_str("\nKnown limits:\n\n");
    }
    for (number, obstacle) in (1..).zip(obstacles) {
        writeln!(text, "{number}. {obstacle}").expect(INFALLIBLE);
    }
    text
}

/// The targets of questions.
pub fn targets(questions: &[Question]) -> impl Iterator<Item = &Target> {
    questions.iter().flat_map(|question| &question.targets)
}

/// Returns the lines to print on a terminal when a question has been measured: one for each target (or for the fastest runner
/// if there are no targets), and one if there is a reason for doubt.
pub fn lines(question: &Question) -> String {
    let mut text = String::new();
    let name = &question.name;
    for reached in &question.targets {
        let Target { work, row: Row { competitor, millstream, ratio, target, met, .. }, .. } = reached;
        let word = match met {
            Met::Yes => "yes",
            Met::No => "NO",
            Met::Wrong => "WRONG",
            Met::Skipped => "skipped",
        };
        let against = if competitor.is_empty() { String::new() } else { format!(" against {competitor}") };
        let ratio = if ratio.is_empty() { String::new() } else { format!(": {ratio}") };
        writeln!(text, "{word:7} {name}: {work}: {millstream}{against}{ratio} (target {target})").expect(INFALLIBLE);
        if let Some(obstacle) = reached.obstacle() {
            writeln!(text, "{:7} {obstacle}", "why").expect(INFALLIBLE);
        }
    }
    if question.targets.is_empty() {
        let mut runners: Vec<_> = question.measured().map(|(runner, runs, _)| (middle(runs), &runner.name)).collect();
        runners.sort_by(|a, b| a.0.total_cmp(&b.0));
        let right = runners.len();
        let fastest = |(wall, runner): &(f64, &String)| format!("{runner} {}", quantity(Measure::Wall, *wall));
        let first: Vec<String> = runners.iter().take(3).map(fastest).collect();
        let all = question.runners.len();
        writeln!(text, "{:7} {name}: {right} of {all} correct; fastest: {}", "", first.join(", ")).expect(INFALLIBLE);
    }
    // On a busy machine, these lines would all be the same; the record contains each of them.
    let doubts: Vec<_> = question.measured().filter(|(_, _, warnings)| !warnings.is_empty()).collect();
    if let [(runner, _, warnings), others @ ..] = &doubts[..] {
        let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
        writeln!(text, "{:7} {name}: {}: {}{more}", "doubt", runner.name, warnings.join("; ")).expect(INFALLIBLE);
    }
    text
}

/// Returns the line of a check with the number of runners whose answers were correct. It contains no measurement.
pub fn check(question: &Question) -> String {
    let (right, all) = (question.measured().count(), question.runners.len());
    format!("{}: {right} of {all} runners correct\n", question.name)
}

const INFALLIBLE: &str = "writing to a string cannot fail";

/// The machine as a Markdown list.
fn machine(machine: &Machine) -> String {
    let Machine { processor, cores, kernel, compiler, commit, others, competitors, warnings, .. } = machine;
    let trust = if machine.is_busy() { "do not trust the ratios" } else { "quiet" };
    let mut text = format!(
        "- processor: {processor}, {cores} cores\n- kernel: {kernel}\n- compiler: {compiler}\n- commit: {commit}\n\
         - others running before the start: {others:.1} on average: {trust}\n"
    );
    if !competitors.is_empty() {
        writeln!(text, "- competitors: {}", competitors.join(", ")).expect(INFALLIBLE);
    }
    for warning in warnings {
        writeln!(text, "- warning: {warning}").expect(INFALLIBLE);
    }
    text
}

/// The whole record in Markdown: the machine, the table, the question of each row, runners that were wrong or missing,
/// and reasons for doubt.
pub fn record(results: &Results) -> String {
    let questions = &results.definitions;
    let mut text = format!(
        "# Measured on {}\n\n{}\nMedians of up to {} alternating runs after one warm-up, fewer where a runner takes long; in \
         brackets the 95 % bootstrap interval of the ratio, where there are runs enough for one. Times are of whole \
         processes, unless said otherwise below; CPU times with all children. Every run gave the right answer, except those \
         named below; bytes that were written to nowhere or through a pipe were hashed in the warm-up, those in files every \
         time. Each single run is in `runs.csv` and `results.json`.\n\n{}\n",
        results.machine.time,
        machine(&results.machine),
        results.rounds,
        table(targets(questions))
    );
    text.push_str("## Questions\n\n");
    for question in questions {
        let clock = match question.clock {
            Clock::Process => "",
            Clock::Inside => " Times are medians of several passes inside each process.",
        };
        writeln!(text, "- `{}`: {}{clock}", question.name, question.question).expect(INFALLIBLE);
        for (runner, reason) in question.wrong() {
            writeln!(text, "  - wrong: {}: {reason}", runner.name).expect(INFALLIBLE);
        }
        for (runner, program) in question.skipped() {
            writeln!(text, "  - skipped: {}: this machine has no {program}", runner.name).expect(INFALLIBLE);
        }
        for (runner, seconds) in question.over() {
            writeln!(text, "  - over {seconds} s, killed: {}", runner.name).expect(INFALLIBLE);
        }
        for (runner, _, warnings) in question.measured() {
            for warning in warnings {
                writeln!(text, "  - doubt: {}: {warning}", runner.name).expect(INFALLIBLE);
            }
        }
    }
    text.push_str("\n## Every runner\n\nThe fastest first, whoever it is; or by the number of stages. Medians of the wall time.\n");
    text.push_str(&rankings(questions));
    text
}

/// All runners of each question, the fastest first or by the number of stages.
pub fn rankings(questions: &[Question]) -> String {
    questions.iter().map(|question| sweep::table(question).unwrap_or_else(|| ranking(question))).collect()
}

fn middle(runs: &[Run]) -> f64 {
    let walls: Vec<f64> = runs.iter().map(|run| run.wall).collect();
    median(&walls)
}

/// Returns a table of all runners with correct answers, the fastest first.
fn ranking(question: &Question) -> String {
    let mut runners: Vec<_> = question.measured().map(|(runner, runs, _)| (&runner.name, middle(runs), runs)).collect();
    runners.sort_by(|a, b| a.1.total_cmp(&b.1));
    let best = runners.first().map_or(f64::NAN, |&(_, best, _)| best);
    // Only questions with allocation counts have this column.
    let allocations = |runs: &[Run]| runs.first().and_then(|run| run.allocations);
    let counted = runners.iter().any(|(_, _, runs)| allocations(runs).is_some());
    let (title, line) = if counted { (" allocations for each |", "--:|") } else { ("", "") };

    let name = &question.name;
    let mut text = format!(
        "\n| `{name}` | median | for each | relative to the first |{title} runs |\n|---|--:|--:|--:|{line}--:|\n"
    );
    for (name, wall, runs) in runners {
        let each = question.count.map_or(String::new(), |count| format!("{:.2} ns", wall * 1e9 / count as f64));
        let asked = match allocations(runs) {
            Some(times) => format!(" {:.2} |", times as f64 / question.count.unwrap_or(1) as f64),
            None if counted => " |".to_owned(),
            None => String::new(),
        };
        let total = quantity(Measure::Wall, wall);
        let (ratio, runs) = (wall / best, runs.len());
        writeln!(text, "| {name} | {total} | {each} | {ratio:.2} |{asked} {runs} |").expect(INFALLIBLE);
    }
    text
}

/// Every counted run of every runner.
pub fn csv(questions: &[Question]) -> String {
    let mut text = String::from("definition,runner,run,wall_s,user_s,system_s,peak_bytes,allocations\n");
    for question in questions {
        for (runner, runs, _) in question.measured() {
            for (number, Run { wall, user, system, peak, allocations, .. }) in runs.iter().enumerate() {
                let (name, runner) = (&question.name, &runner.name);
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
    use super::*;
    use crate::definition::{Definition, Scale};
    use crate::evaluate::question;
    use crate::results::{Outcome, SCHEMA};

    fn runs(milliseconds: &[u64]) -> Outcome {
        let run = |&ms: &u64| {
            let seconds = ms as f64 / 1e3;
            let (peak, allocations, system_calls) = (ms << 20, None, None);
            Run { wall: seconds, user: 2.0 * seconds, system: 0.0, peak, allocations, system_calls }
        };
        Outcome::Measured { runs: milliseconds.iter().map(run).collect(), warnings: vec!["a doubt".into()] }
    }

    fn asked(outcomes: [Outcome; 4]) -> Question {
        let definition = Definition::parse(
            r#"
            name = "test"
            question = "Which?"
            per = "records"
            full = { values.records = 1_000_000, answers.all = { count = 1 } }
            quick = { values.records = 1, answers.all = { count = 1 } }
            runner = [
                { name = "millstream", command = ["a"] },
                { name = "slower", command = ["b"] },
                { name = "slow", command = ["c"] },
                { name = "slowest", command = ["d"] },
            ]
            target = [{ work = "w", millstream = "millstream", competitors = ["slower", "slow"], goal = { at_most = 1.0 } }]
            "#,
        );
        question(&definition.unwrap(), Scale::Full, outcomes.into())
    }

    #[test]
    fn every_runner_is_ranked_whoever_it_is() {
        let mut question = asked([runs(&[300]), runs(&[500]), runs(&[100, 90, 110]), runs(&[900])]);
        let table = ranking(&question);
        let rows: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(rows[0], "| slow | 100 ms | 100.00 ns | 1.00 | 3 |");
        assert_eq!(rows[2], "| slower | 500 ms | 500.00 ns | 5.00 | 1 |");

        let Outcome::Measured { runs, .. } = &mut question.runners[1].outcome else { panic!("it was measured") };
        runs[0].allocations = Some(2_500_000);
        let table = ranking(&question);
        let rows: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(rows[0], "| slow | 100 ms | 100.00 ns | 1.00 | | 3 |");
        assert_eq!(rows[2], "| slower | 500 ms | 500.00 ns | 5.00 | 2.50 | 1 |");
    }

    fn everything() -> Results {
        let wrong = Outcome::Wrong("count=2 instead of 1".into());
        let outcomes = [runs(&[1, 2]), wrong, Outcome::Skipped("pv".into()), Outcome::Over(10.0)];
        let machine = Machine {
            others: 0.7,
            competitors: vec!["pv 1".into()],
            warnings: vec!["a reason".into()],
            ..Machine::default()
        };
        Results { schema: SCHEMA, machine, rounds: 2, quick: false, definitions: vec![asked(outcomes)] }
    }

    #[test]
    fn a_record_contains_all_runners_and_runs() {
        let results = everything();
        assert_eq!(check(&results.definitions[0]), "test: 1 of 4 runners correct\n");
        let csv = csv(&results.definitions);
        assert_eq!(csv.lines().nth(2), Some("test,millstream,1,0.002000,0.004000,0.000000,2097152,"));
        assert_eq!(csv.lines().count(), 3);
        let record = record(&results);
        for part in [
            "up to 2 alternating",
            "do not trust",
            "warning: a reason",
            "wrong: slower: count=2 instead of 1",
            "slow: this machine has no pv",
            "over 10 s, killed: slowest",
            "doubt: millstream: a doubt",
            "`test`: Which?",
        ] {
            assert!(record.contains(part), "{part}: {record}");
        }
    }

    #[test]
    fn a_terminal_gets_a_line_for_each_target_and_doubt() {
        let question = asked([runs(&[100]), runs(&[500]), runs(&[300]), runs(&[900])]);
        let text = lines(&question);
        assert_eq!(text.lines().next(), Some("yes     test: w: 100 ms against slow 300 ms: 0.33 (target ≤ 1.00)"));
        assert_eq!(text.lines().nth(1), Some("doubt   test: millstream: a doubt (and 3 more)"));
        assert_eq!(text.lines().count(), 2);
        let without_targets = Question { targets: vec![], ..question };
        let fastest = "        test: 4 of 4 correct; fastest: millstream 100 ms, slow 300 ms, slower 500 ms";
        assert_eq!(lines(&without_targets).lines().next(), Some(fastest));
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let results = everything();
        let json = serde_json::to_string(&results).unwrap();
        for part in [r#""outcome":{"over":10.0}"#, r#""skipped":"pv""#, r#""met":"wrong""#, r#""clock":"process""#] {
            assert!(json.contains(part), "{part}: {json}");
        }
        let again: Results = serde_json::from_str(&json).unwrap();
        assert_eq!(record(&again), record(&results));
    }
}
