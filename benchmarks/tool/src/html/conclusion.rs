//! The winner of a question and its margin: the fastest Millstream runner against the fastest competitor, by the
//! median of the wall time.

use super::times::Times;
use crate::results::{Outcome, Question, Run, Runner};
use crate::statistics::{median, range};

/// A runner that was measured, with its median.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The runner.
    pub runner: &'a Runner,
    /// The median of its wall time in seconds.
    pub median: f64,
}

/// The outcome of a question.
#[derive(Debug)]
pub enum Conclusion<'a> {
    /// One side is faster, or there is no significant difference.
    Compared(Comparison<'a>),
    /// There is no competitor to compare the fastest runner with.
    Alone(Measured<'a>),
    /// No runner was measured.
    Nothing,
}

/// The fastest runner of Millstream and the fastest competitor; the faster of the two comes first.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The value of the swept parameter: the largest for which both sides were measured.
    pub at: Option<u64>,
    /// The runner with the smaller median.
    pub winner: Measured<'a>,
    /// The other runner.
    pub loser: Measured<'a>,
    /// How many times faster the winner is: at least 1.
    pub times: Times,
    /// How many times as long as the physical limit Millstream takes.
    pub over_floor: Option<f64>,
}

impl Comparison<'_> {
    /// Whether the difference is significant: the interval is above 1 or, if there are too few runs for an interval,
    /// the slowest run of the winner is faster than the fastest run of the other.
    pub fn is_significant(&self) -> bool {
        let apart = || range(&walls(self.winner.runner)).1 < range(&walls(self.loser.runner)).0;
        self.times.interval.map_or_else(apart, |(low, _)| low > 1.0)
    }

    /// How many times faster Millstream is than the competitor, with the interval: below 1 if the competitor wins.
    pub fn millstream(&self) -> Times {
        if self.winner.runner.millstream { self.times } else { self.times.inverse() }
    }

    /// The class name for style sheets.
    pub fn class(&self) -> &'static str {
        match (self.is_significant(), self.winner.runner.millstream) {
            (false, _) => "even",
            (true, true) => "won",
            (true, false) => "lost",
        }
    }
}

/// Returns the runners that were measured, the fastest first.
pub fn ranked(question: &Question) -> Vec<Measured<'_>> {
    let mut ranked: Vec<_> = question
        .runners
        .iter()
        .filter(|runner| !runs(runner).is_empty())
        .map(|runner| Measured { runner, median: median(&walls(runner)) })
        .collect();
    ranked.sort_by(|a, b| a.median.total_cmp(&b.median));
    ranked
}

/// Returns the measured runs; none if the runner was not measured.
pub fn runs(runner: &Runner) -> &[Run] {
    match &runner.outcome {
        Outcome::Measured { runs, .. } => runs,
        _ => &[],
    }
}

/// The wall time of each run in seconds.
pub fn walls(runner: &Runner) -> Vec<f64> {
    runs(runner).iter().map(|run| run.wall).collect()
}

/// Whether this runner is the physical limit: shown next to the others but not compared with them.
pub fn is_floor(question: &Question, runner: &Runner) -> bool {
    question.floor.as_ref() == Some(&runner.base)
}

/// Compares the runners of a question. The physical limit is not a competitor.
pub fn conclude(question: &Question) -> Conclusion<'_> {
    let (floor, all): (Vec<_>, Vec<_>) = ranked(question).into_iter().partition(|one| is_floor(question, one.runner));
    let competitors = || all.iter().filter(|one| !one.runner.millstream);
    let millstream = || all.iter().filter(|one| one.runner.millstream);
    // The runners are compared at the largest value that both sides reached, so a competitor that stopped early is not
    // compared beyond its last value.
    let at = millstream()
        .map(|one| one.runner.at)
        .filter(|at| competitors().any(|competitor| competitor.runner.at == *at))
        .max();
    let Some(at) = at else {
        return all
            .first()
            .map_or(Conclusion::Nothing, |&first| Conclusion::Alone(millstream().next().copied().unwrap_or(first)));
    };
    let best = |one: &&Measured| one.runner.at == at;
    let (Some(&millstream), Some(&competitor)) = (millstream().find(best), competitors().find(best)) else {
        return Conclusion::Nothing;
    };
    let (winner, loser) =
        if millstream.median <= competitor.median { (millstream, competitor) } else { (competitor, millstream) };
    let limit = floor.iter().find(|one| [None, at].contains(&one.runner.at));
    Conclusion::Compared(Comparison {
        at,
        winner,
        loser,
        times: Times::new(&walls(winner.runner), &walls(loser.runner)),
        over_floor: limit.map(|limit| millstream.median / limit.median),
    })
}
