//! How long a measurement will take, by what the newest records say of each runner.
//!
//! Making inputs and building are not in it. A runner that no record has is taken to use all of its budget.

use std::time::Duration;

use crate::definition::{Clock, Definition, Runner};
use crate::measure::Plan;
use crate::readme::Record;
use crate::results::{Outcome, Run};
use crate::statistics::median;

/// The time for all runs of a definition.
pub fn estimate(definition: &Definition, plan: &Plan, records: &[Record]) -> Duration {
    definition.runners.iter().map(|runner| of_runner(definition, runner, plan, records)).sum()
}

fn of_runner(definition: &Definition, runner: &Runner, plan: &Plan, records: &[Record]) -> Duration {
    let mut questions = records.iter().flat_map(|record| &record.results.definitions);
    let question = questions.find(|question| question.name == definition.name);
    let known = question.and_then(|question| question.runners.iter().find(|known| known.name == runner.name));
    let one = match known.map(|known| &known.outcome) {
        Some(Outcome::Measured { runs, .. }) => {
            let seconds: Vec<f64> = runs.iter().map(|run| process(run, definition.clock)).collect();
            Duration::from_secs_f64(median(&seconds))
        }
        Some(Outcome::Over(_)) => return plan.limit,
        Some(Outcome::Wrong(_) | Outcome::Skipped(_)) => return Duration::ZERO,
        None => return plan.budget,
    };
    let warm_up = usize::from(plan.warm_up);
    let in_budget = (plan.budget.as_secs_f64() / one.as_secs_f64().max(1e-6)) as usize;
    let counted = in_budget.saturating_sub(warm_up).clamp(1, plan.runs(definition, runner));
    one * (counted + warm_up) as u32
}

/// The time of the whole process. One that takes its own time is busy before and after, too, mostly on one processor.
fn process(run: &Run, clock: Clock) -> f64 {
    match clock {
        Clock::Process => run.wall,
        Clock::Inside => run.wall.max(run.user + run.system),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scale;
    use crate::judge::question;
    use crate::results::{Machine, Results, SCHEMA};

    #[test]
    fn it_is_as_many_runs_as_the_budget_allows() {
        let definition = Definition::parse(
            r#"
            name = "test"
            question = "How long?"
            full.answers.all = { count = 1 }
            quick.answers.all = { count = 1 }
            runner = [
                { name = "quick", command = ["a"] },
                { name = "slow", command = ["b"] },
                { name = "endless", command = ["c"] },
                { name = "absent", command = ["d"] },
            ]
            "#,
        )
        .unwrap();
        let runs = |wall| Outcome::Measured { runs: vec![Run { wall, ..Run::default() }], warnings: vec![] };
        let outcomes = vec![runs(0.5), runs(3.0), Outcome::Over(8.0), Outcome::Skipped("d".into())];
        let results = Results {
            schema: SCHEMA,
            machine: Machine::default(),
            rounds: 7,
            quick: false,
            definitions: vec![question(&definition, Scale::Full, outcomes)],
        };
        let records = [Record { table: String::new(), results }];
        let budget = Duration::from_secs(4);
        let plan = Plan { scale: Scale::Full, rounds: 7, warm_up: true, budget, limit: 2 * budget };
        // 8 turns of 0.5 s, 2 of 3 s, one of 8 s that is ended.
        assert_eq!(estimate(&definition, &plan, &records), Duration::from_secs(4 + 6 + 8));
        assert_eq!(estimate(&definition, &plan, &[]), 4 * budget);
    }
}
