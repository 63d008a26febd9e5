//! Measures several ways to answer the same question, in [rounds](millstream_rounds), so that a slow phase of the
//! machine affects all ways equally.
//!
//! If a way's answer is not the expected one, the way is reported as wrong and without a time. If a way takes longer
//! than its share of the available time, it is stopped.

use std::fmt;
use std::io::{self, Read};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind, Result};
use millstream_rounds::{Budget, Contender, Progress, Turns, limited, quantile, take_turns};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The answer of a way: named numbers. Some ways do not report all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer(Vec<(&'static str, u64)>);

impl Answer {
    /// Adds a number.
    pub(super) fn and(mut self, name: &'static str, value: u64) -> Answer {
        self.0.push((name, value));
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }

    /// Returns whether the answer contains at least one number, and all its numbers are as expected.
    fn is_right(&self, expected: &Answer) -> bool {
        !self.0.is_empty() && self.iter().all(|(name, value)| expected.get(name) == Some(value))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{value} {name}")?;
        }
        Ok(())
    }
}

/// One way to find the answer.
pub(super) struct Way<'a> {
    name: String,
    is_millstream: bool,
    /// The way's implementation, or the reason why it is not available.
    run: std::result::Result<Run<'a>, String>,
}

type Run<'a> = Box<dyn FnMut(&Stop) -> Result<Answer> + 'a>;

impl<'a> Way<'a> {
    /// Creates a way that uses the library. It must return soon after its [`Stop`] requests that.
    pub(super) fn millstream(name: impl Into<String>, run: impl FnMut(&Stop) -> Result<Answer> + 'a) -> Way<'a> {
        Way { name: name.into(), is_millstream: true, run: Ok(Box::new(run)) }
    }

    /// Creates a way that does not use the library.
    pub(super) fn competitor(name: impl Into<String>, run: impl FnMut(&Stop) -> Result<Answer> + 'a) -> Way<'a> {
        Way { name: name.into(), is_millstream: false, run: Ok(Box::new(run)) }
    }

    /// Creates a way that is not available on this machine.
    pub(super) fn skipped(name: impl Into<String>, why: String) -> Way<'a> {
        Way { name: name.into(), is_millstream: false, run: Err(why) }
    }

    /// Returns why the way is not available, or `None` if it is available.
    #[cfg(test)]
    pub(super) fn why_skipped(&self) -> Option<&str> {
        self.run.as_ref().err().map(String::as_str)
    }
}

/// The number of rounds, and the time limit.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// The number of rounds that are timed.
    pub(super) runs: usize,
    /// The time for all ways. At least one round is timed, for which half of the time is reserved.
    pub(super) time: Duration,
}

/// A way and its outcome.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) is_millstream: bool,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Timed(Times),
    /// Its answer differs from the expected one.
    Wrong(Answer),
    /// It was stopped after this time.
    Over(Duration),
    /// It failed for this reason.
    Failed(String),
    /// It is not available for this reason.
    Skipped(String),
}

/// The times of one way in seconds, sorted. At least one time exists.
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn new(times: &[Duration]) -> Times {
        let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        times.sort_unstable_by(f64::total_cmp);
        Times(times)
    }

    pub(super) fn median(&self) -> f64 {
        quantile(&self.0, 0.5)
    }

    /// Returns the lower and upper quartile.
    pub(super) fn middle_half(&self) -> (f64, f64) {
        (quantile(&self.0, 0.25), quantile(&self.0, 0.75))
    }

    pub(super) fn all(&self) -> &[f64] {
        &self.0
    }
}

/// Runs all methods, and reports each run before it starts.
///
/// # Errors
/// Returns [`ErrorKind::Cancelled`] if `interrupted` returns true, because the user no longer needs a result.
pub(super) fn measure(
    ways: Vec<Way<'_>>,
    expected: &Answer,
    plan: Plan,
    stop: &Stop,
    interrupted: impl Fn() -> bool,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Measured>> {
    let candidate = |way| {
        let Way { name, is_millstream, run } = way;
        let (run, skipped) = match run {
            Ok(run) => (Some(run), None),
            Err(why) => (None, Some(Outcome::Skipped(why))),
        };
        let candidate = Candidate { name, is_millstream, run, expected, stop, times: Vec::new() };
        Turns::new(candidate, plan.runs, true).with_fault(skipped)
    };
    let mut all: Vec<_> = ways.into_iter().map(candidate).collect();
    let waiting = all.iter().filter(|turns| turns.fault.is_none()).count() as u32;
    let least = plan.time / (4 * waiting.max(1));
    let shares = vec![Duration::ZERO; all.len()];
    let mut shares = Shares { deadline: Instant::now() + plan.time, least, waiting, shares, interrupted: &interrupted };
    take_turns(&mut all, &mut shares, |candidate| tell(&candidate.name));
    if interrupted() {
        return Err(Error::new(ErrorKind::Cancelled));
    }
    Ok(all.into_iter().map(measured).collect())
}

fn measured(turns: Turns<Candidate<'_>>) -> Measured {
    let Turns { contender: Candidate { name, is_millstream, times, .. }, fault, .. } = turns;
    Measured { name, is_millstream, outcome: fault.unwrap_or_else(|| Outcome::Timed(Times::new(&times))) }
}

/// A way and its times so far, without the warm-up.
struct Candidate<'a> {
    name: String,
    is_millstream: bool,
    /// `None` if it is not available.
    run: Option<Run<'a>>,
    expected: &'a Answer,
    stop: &'a Stop,
    times: Vec<Duration>,
}

impl Contender for Candidate<'_> {
    type Fault = Outcome;

    fn run(&mut self, limit: Duration, counts: bool) -> std::result::Result<Duration, Outcome> {
        let (run, stop) = (self.run.as_mut().expect("what is skipped takes no turn"), self.stop);
        let (found, time, _) = limited(limit, || stop.stop(), || run(stop));
        let is_over = stop.reset() || time > limit;
        match found {
            _ if is_over => Err(Outcome::Over(limit)),
            Err(error) => Err(Outcome::Failed(error.without_advice().to_string())),
            Ok(answer) if !answer.is_right(self.expected) => Err(Outcome::Wrong(answer)),
            Ok(_) => {
                if counts {
                    self.times.push(time);
                }
                Ok(time)
            }
        }
    }
}

/// The time of all ways together, and each way's share.
struct Shares<'a> {
    deadline: Instant,
    /// The minimum time for each way.
    least: Duration,
    /// The number of ways whose warm-up run is still missing.
    waiting: u32,
    /// The time that one run of each way may take.
    shares: Vec<Duration>,
    interrupted: &'a dyn Fn() -> bool,
}

impl Budget<Candidate<'_>> for Shares<'_> {
    fn allows(&mut self, round: usize, all: &[Turns<Candidate<'_>>]) -> bool {
        // The warm-up and one round always run. Another round takes about as long as the mean so far.
        let mean = |progress: &Progress| progress.spent / (progress.counted as u32 + 1);
        let next: Duration = all.iter().filter(|turns| turns.fault.is_none()).map(|turns| mean(turns.progress())).sum();
        round < 2 || Instant::now() + next <= self.deadline
    }

    fn limit(&mut self, index: usize, progress: &Progress) -> Option<Duration> {
        if (self.interrupted)() {
            return None;
        }
        let share = &mut self.shares[index];
        if progress.warm {
            // A run may be slower than the warm-up.
            return Some(2 * *share);
        }
        // Slow ways get the time that fast ways leave unused; the same amount is reserved for the rounds. Stopping a
        // way takes time too, which should not reduce the next way's share.
        *share = (self.deadline.saturating_duration_since(Instant::now()) / (2 * self.waiting)).max(self.least);
        self.waiting -= 1;
        Some(*share)
    }
}

/// Requests that a run ends, because its time is over or the user cancelled it. The processes that the run has started
/// are killed.
pub(super) struct Stop {
    token: CancelToken,
    /// The process group that is running.
    group: Mutex<Option<Pid>>,
}

impl Stop {
    pub(super) fn new() -> Result<Stop> {
        Ok(Stop { token: CancelToken::new()?, group: Mutex::default() })
    }

    /// Returns the token for readers and writers.
    pub(super) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Stops the run. Any thread may call this.
    pub(super) fn stop(&self) {
        self.token.cancel();
        if let Some(group) = *self.group() {
            let _ = kill_process_group(group, Signal::KILL); // it may be gone
        }
    }

    /// Fails if the run must end.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.token.is_cancelled() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) }
    }

    /// Prepares for the next run. Returns whether this one was stopped.
    fn reset(&self) -> bool {
        let stopped = self.token.is_cancelled();
        self.token.reset();
        stopped
    }

    /// Passes a child that leads a process group to `work`, and waits for the child. Processes of the group that still
    /// run when the child has ended are killed.
    pub(super) fn with_child<T>(
        &self,
        child: &mut Child,
        work: impl FnOnce(&mut Child) -> io::Result<T>,
    ) -> io::Result<T> {
        let pid = Pid::from_child(child);
        *self.group() = Some(pid);
        if self.token.is_cancelled() {
            self.stop();
        }
        let done = work(child);
        if done.is_err() {
            self.stop();
        }
        // The number stays reserved until the child is waited for, so no other group can be signalled.
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {
        }
        *self.group() = None;
        let _ = kill_process_group(pid, Signal::KILL);
        done
    }

    fn group(&self) -> MutexGuard<'_, Option<Pid>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that returns an error when the run must end.
pub(super) struct Stoppable<'a, R> {
    pub(super) inner: R,
    pub(super) stop: &'a Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.inner.read(space)
    }
}

impl<W: io::Write> io::Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const PLAN: Plan = Plan { runs: 3, time: Duration::from_secs(60) };

    fn seven() -> Answer {
        Answer::default().and("lines", 7)
    }

    fn sleeping(name: &str, time: Duration) -> Way<'_> {
        Way::competitor(name, move |_| {
            thread::sleep(time);
            Ok(seven())
        })
    }

    fn outcomes(ways: Vec<Way<'_>>, plan: Plan) -> Vec<Outcome> {
        let measured = measure(ways, &seven(), plan, &Stop::new().unwrap(), || false, |_| ()).unwrap();
        measured.into_iter().map(|measured| measured.outcome).collect()
    }

    #[test]
    fn a_way_that_sleeps_is_ranked_and_sized() {
        let (long, short) = (Duration::from_millis(40), Duration::from_millis(10));
        let outcomes = outcomes(vec![sleeping("long", long), sleeping("short", short)], PLAN);
        let [Outcome::Timed(slow), Outcome::Timed(fast)] = &outcomes[..] else { panic!("both should have times") };
        assert_eq!((slow.all().len(), fast.all().len()), (3, 3));
        // A sleep is never too short; its excess length depends on the machine.
        assert!(slow.all().iter().all(|&time| time >= 0.04) && fast.all().iter().all(|&time| time >= 0.01));
        assert!(slow.median() >= 0.04 && slow.middle_half().0 <= slow.median());
    }

    #[test]
    fn a_wrong_answer_has_no_time() {
        let eight = || Answer::default().and("lines", 8);
        let ways = vec![
            Way::millstream("wrong", |_| Ok(eight())),
            Way::millstream("silent", |_| Ok(Answer::default())),
            Way::millstream("knows more", |_| Ok(seven().and("bytes", 9))),
            Way::millstream("right", |_| Ok(seven())),
        ];
        let outcomes = outcomes(ways, PLAN);
        assert!(matches!(&outcomes[0], Outcome::Wrong(answer) if *answer == eight()));
        assert!(matches!(&outcomes[1], Outcome::Wrong(_)));
        assert!(matches!(&outcomes[2], Outcome::Wrong(_)), "an unexpected number is wrong");
        assert!(matches!(&outcomes[3], Outcome::Timed(_)));
    }

    #[test]
    fn a_way_that_becomes_wrong_later_is_wrong() {
        let mut count = 6;
        let worse = Way::millstream("worse", move |_| {
            count += 1;
            Ok(Answer::default().and("lines", count))
        });
        assert!(matches!(&outcomes(vec![worse], PLAN)[..], [Outcome::Wrong(answer)] if answer.get("lines") == Some(8)));
    }

    #[test]
    fn an_overrun_is_stopped_and_the_others_continue() {
        let endless = Way::competitor("endless", |stop| {
            loop {
                stop.check()?;
                thread::sleep(Duration::from_millis(1));
            }
        });
        let plan = Plan { runs: 2, time: Duration::from_millis(400) };
        let outcomes = outcomes(vec![endless, sleeping("short", Duration::from_millis(1))], plan);
        // This is a quarter of the time: there are two ways, and half of the time is reserved.
        assert!(matches!(&outcomes[0], Outcome::Over(limit) if *limit <= plan.time / 4));
        assert!(matches!(&outcomes[1], Outcome::Timed(times) if !times.all().is_empty()));
    }

    #[test]
    fn a_failure_has_a_reason() {
        let failing = Way::competitor("failing", |_| Err(io::Error::other("no such luck").into()));
        let outcomes = outcomes(vec![failing, Way::skipped("missing", "not found".to_string())], PLAN);
        assert!(matches!(&outcomes[0], Outcome::Failed(why) if why.contains("no such luck")));
        assert!(matches!(&outcomes[1], Outcome::Skipped(why) if why == "not found"));
    }

    #[test]
    fn an_interrupt_ends_the_measurement() {
        let ways = vec![Way::millstream("one", |_| Ok(seven()))];
        let measured = measure(ways, &seven(), PLAN, &Stop::new().unwrap(), || true, |_| ());
        assert_eq!(measured.err().map(|error| error.kind()), Some(ErrorKind::Cancelled));
    }

    #[test]
    fn quantiles_are_between_neighbours() {
        let times = Times::new(&[4, 1, 2, 3].map(Duration::from_secs));
        assert_eq!((times.median(), times.middle_half()), (2.5, (1.75, 3.25)));
        let one = Times::new(&[Duration::from_secs(7)]);
        assert_eq!((one.median(), one.middle_half()), (7.0, (7.0, 7.0)));
    }
}
