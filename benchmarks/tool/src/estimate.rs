//! How long a measurement will take, estimated from the record of each runner.
//!
//! Creating inputs and building are not included. A runner without a record is assumed to use its whole budget.

use std::time::Duration;

use crate::definition::{Definition, Runner};
use crate::goal::Clock;
use crate::measure::Plan;
use crate::record::{Reached, Record};

/// Estimates the time for all runs of a definition.
pub fn estimate(definition: &Definition, plan: &Plan, record: &Record) -> Duration {
    definition.runners.iter().map(|runner| of_runner(definition, runner, plan, record)).sum()
}

fn of_runner(definition: &Definition, runner: &Runner, plan: &Plan, record: &Record) -> Duration {
    let one = match record.get(&definition.name).and_then(|entry| entry.get(&runner.name)) {
        Some(&Reached::Measured { seconds, cpu, .. }) => {
            Duration::from_secs_f64(process(seconds, cpu, definition.clock))
        }
        Some(Reached::Over(_)) => return plan.limit,
        Some(Reached::Wrong(_) | Reached::Skipped(_)) => return Duration::ZERO,
        None => return plan.budget,
    };
    let warm_up = usize::from(plan.warm_up);
    let in_budget = (plan.budget.as_secs_f64() / one.as_secs_f64().max(1e-6)) as usize;
    let counted = in_budget.saturating_sub(warm_up).clamp(1, plan.runs(definition, runner));
    one * (counted + warm_up) as u32
}

/// Estimates the time of the whole process. A process that measures its own time also works before and after that,
/// mostly on one processor.
fn process(wall: f64, cpu: f64, clock: Clock) -> f64 {
    match clock {
        Clock::Process => wall,
        Clock::Inside => wall.max(cpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Scale;
    use crate::evaluate::question;
    use crate::results::{Machine, Outcome, Results, Run, SCHEMA};

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
        let mut record = Record::default();
        record.take(&results, std::slice::from_ref(&definition));
        let budget = Duration::from_secs(4);
        let plan = Plan { scale: Scale::Full, rounds: 7, warm_up: true, budget, limit: 2 * budget };
        // 8 turns of 0.5 s, 2 of 3 s, one of 8 s that is killed.
        assert_eq!(estimate(&definition, &plan, &record), Duration::from_secs(4 + 6 + 8));
        assert_eq!(estimate(&definition, &plan, &Record::default()), 4 * budget);
    }
}
