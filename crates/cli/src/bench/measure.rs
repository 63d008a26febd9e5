//! The one loop that measures: ways to answer the same question, in rounds, so that a slow moment hits all of them.
//!
//! Each way runs once to warm up, then once in every round. A way whose answer is not the expected one is wrong and has
//! no time; one that takes longer than its share of the time there is, is ended. What a run does besides its way (a
//! thread that waits for its limit) sleeps.

use std::fmt;
use std::io::{self, Read};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// What a way has found: numbers with names. Not every way tells all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer(Vec<(&'static str, u64)>);

impl Answer {
    /// The same with one number more.
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

    /// Whether it tells something, and everything that it tells is expected.
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
    is_ours: bool,
    /// What it does, or why it cannot be done here.
    run: std::result::Result<Run<'a>, String>,
}

type Run<'a> = Box<dyn FnMut(&Stop) -> Result<Answer> + 'a>;

impl<'a> Way<'a> {
    /// A way through the library. It has to end soon after its [`Stop`] says so.
    pub(super) fn ours(name: impl Into<String>, run: impl FnMut(&Stop) -> Result<Answer> + 'a) -> Way<'a> {
        Way { name: name.into(), is_ours: true, run: Ok(Box::new(run)) }
    }

    /// A way without it.
    pub(super) fn rival(name: impl Into<String>, run: impl FnMut(&Stop) -> Result<Answer> + 'a) -> Way<'a> {
        Way { name: name.into(), is_ours: false, run: Ok(Box::new(run)) }
    }

    /// A way that this machine has not.
    pub(super) fn skipped(name: impl Into<String>, why: String) -> Way<'a> {
        Way { name: name.into(), is_ours: false, run: Err(why) }
    }

    /// Why it cannot be done here, if it cannot.
    #[cfg(test)]
    pub(super) fn why_skipped(&self) -> Option<&str> {
        self.run.as_ref().err().map(String::as_str)
    }
}

/// How often, and for how long at most.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Rounds that are timed.
    pub(super) runs: usize,
    /// For everything. There is one timed round at least, for which half of it is kept.
    pub(super) time: Duration,
}

/// A way, and what came of it.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) is_ours: bool,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Timed(Times),
    /// Its answer is another one than the expected.
    Wrong(Answer),
    /// It was ended after so long.
    Over(Duration),
    /// It failed, and why.
    Failed(String),
    /// It cannot be done here, and why.
    Skipped(String),
}

/// The times of one way, in seconds, in order of size; there is at least one.
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn new(times: &[Duration]) -> Times {
        let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        times.sort_unstable_by(f64::total_cmp);
        Times(times)
    }

    pub(super) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Below which a quarter of the times is, and above which another quarter is.
    pub(super) fn middle_half(&self) -> (f64, f64) {
        (self.quantile(0.25), self.quantile(0.75))
    }

    pub(super) fn all(&self) -> &[f64] {
        &self.0
    }

    /// The time below which the share `q` (0 to 1) of the times lies, interpolated between neighbours.
    fn quantile(&self, q: f64) -> f64 {
        let at = q * (self.0.len() - 1) as f64;
        let (low, high) = (self.0[at.floor() as usize], self.0[at.ceil() as usize]);
        low + (high - low) * at.fract()
    }
}

/// Runs all ways, and tells before each run which it is.
///
/// # Errors
/// [`ErrorKind::Cancelled`] when `interrupted` says so: the user wants no result any more.
pub(super) fn measure(
    ways: Vec<Way<'_>>,
    expected: &Answer,
    plan: Plan,
    stop: &Stop,
    interrupted: impl Fn() -> bool,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Measured>> {
    let deadline = Instant::now() + plan.time;
    let mut once = |at: &mut Candidate<'_>, limit: Duration| -> Result<()> {
        let Ok(run) = &mut at.way.run else { return Ok(()) };
        tell(&at.way.name);
        let (found, time) = timed(run, limit, stop);
        let is_over = stop.reset() || time > limit;
        if interrupted() {
            return Err(Error::new(ErrorKind::Cancelled));
        }
        match found {
            _ if is_over => at.fault = Some(Outcome::Over(limit)),
            Err(error) => at.fault = Some(Outcome::Failed(format!("{error:#}"))),
            Ok(answer) if !answer.is_right(expected) => at.fault = Some(Outcome::Wrong(answer)),
            Ok(_) => at.times.push(time),
        }
        Ok(())
    };
    let mut candidates: Vec<_> = ways.into_iter().map(Candidate::new).collect();
    let mut waiting = candidates.iter().filter(|candidate| candidate.way.run.is_ok()).count() as u32;
    let least = plan.time / (4 * waiting.max(1));
    for candidate in candidates.iter_mut().filter(|candidate| candidate.way.run.is_ok()) {
        // What the quick ones leave is for the slow ones; as much again is kept for the rounds. Ending a way takes time,
        // too, for which the next ones shall not pay with all of theirs.
        candidate.share = (deadline.saturating_duration_since(Instant::now()) / (2 * waiting)).max(least);
        waiting -= 1;
        once(candidate, candidate.share)?;
    }
    let warm: Duration = candidates.iter().flat_map(|candidate| &candidate.times).sum();
    for round in 0..plan.runs {
        if round > 0 && Instant::now() + warm > deadline {
            break;
        }
        for candidate in candidates.iter_mut().filter(|candidate| candidate.fault.is_none()) {
            // A run that is slower than the warm-up is no reason to give up.
            once(candidate, 2 * candidate.share)?;
        }
    }
    Ok(candidates.into_iter().map(Candidate::measured).collect())
}

/// A way and what came of it by now.
struct Candidate<'a> {
    way: Way<'a>,
    /// How long one run may take.
    share: Duration,
    /// The first is that of the warm-up.
    times: Vec<Duration>,
    fault: Option<Outcome>,
}

impl Candidate<'_> {
    fn new(way: Way<'_>) -> Candidate<'_> {
        let fault = way.run.as_ref().err().map(|why| Outcome::Skipped(why.clone()));
        Candidate { way, share: Duration::ZERO, times: Vec::new(), fault }
    }

    fn measured(self) -> Measured {
        let Candidate { way: Way { name, is_ours, .. }, times, fault, .. } = self;
        Measured { name, is_ours, outcome: fault.unwrap_or_else(|| Outcome::Timed(Times::new(&times[1..]))) }
    }
}

/// One run, which is told to stop when it has lasted for `limit`.
fn timed(run: &mut Run<'_>, limit: Duration, stop: &Stop) -> (Result<Answer>, Duration) {
    thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        scope.spawn(move || {
            if wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                stop.stop();
            }
        });
        let start = Instant::now();
        let answer = run(stop);
        let time = start.elapsed();
        drop(done);
        (answer, time)
    })
}

/// Tells a run that it has to end: its time is over, or the user wants no more. The processes that it has started are
/// killed.
pub(super) struct Stop {
    token: CancelToken,
    /// The process group that runs.
    group: Mutex<Option<Pid>>,
}

impl Stop {
    pub(super) fn new() -> Result<Stop> {
        Ok(Stop { token: CancelToken::new()?, group: Mutex::default() })
    }

    /// For readers and writers.
    pub(super) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// From any thread.
    pub(super) fn stop(&self) {
        self.token.cancel();
        if let Some(group) = *self.group() {
            let _ = kill_process_group(group, Signal::KILL); // it may be gone
        }
    }

    /// Fails when it is time to end.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.token.is_cancelled() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) }
    }

    /// For the next run; says whether this one was stopped.
    fn reset(&self) -> bool {
        let stopped = self.token.is_cancelled();
        self.token.reset();
        stopped
    }

    /// Lets `work` use a child, which leads a process group, and waits for its end. Whatever is left of the group when
    /// the child has ended is killed.
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
        // The number stays taken until the child is waited for: no other group can be hit.
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

/// A stream that ends with an error when it is time to end.
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
    use super::*;

    const PLAN: Plan = Plan { runs: 3, time: Duration::from_secs(60) };

    fn seven() -> Answer {
        Answer::default().and("lines", 7)
    }

    fn sleeping(name: &str, time: Duration) -> Way<'_> {
        Way::rival(name, move |_| {
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
        let [Outcome::Timed(slow), Outcome::Timed(fast)] = &outcomes[..] else { panic!("not both have times") };
        assert_eq!((slow.all().len(), fast.all().len()), (3, 3));
        // A sleep is never too short; how much too long it may be is the machine's affair.
        assert!(slow.all().iter().all(|&time| time >= 0.04) && fast.all().iter().all(|&time| time >= 0.01));
        assert!(slow.median() >= 0.04 && slow.middle_half().0 <= slow.median());
    }

    #[test]
    fn a_wrong_answer_has_no_time() {
        let eight = || Answer::default().and("lines", 8);
        let ways = vec![
            Way::ours("wrong", |_| Ok(eight())),
            Way::ours("silent", |_| Ok(Answer::default())),
            Way::ours("knows more", |_| Ok(seven().and("bytes", 9))),
            Way::ours("right", |_| Ok(seven())),
        ];
        let outcomes = outcomes(ways, PLAN);
        assert!(matches!(&outcomes[0], Outcome::Wrong(answer) if *answer == eight()));
        assert!(matches!(&outcomes[1], Outcome::Wrong(_)));
        assert!(matches!(&outcomes[2], Outcome::Wrong(_)), "nobody vouches for what nobody else knows");
        assert!(matches!(&outcomes[3], Outcome::Timed(_)));
    }

    #[test]
    fn a_way_that_becomes_wrong_later_is_wrong() {
        let mut count = 6;
        let worse = Way::ours("worse", move |_| {
            count += 1;
            Ok(Answer::default().and("lines", count))
        });
        assert!(matches!(&outcomes(vec![worse], PLAN)[..], [Outcome::Wrong(answer)] if answer.get("lines") == Some(8)));
    }

    #[test]
    fn an_overrun_is_ended_and_the_others_go_on() {
        let endless = Way::rival("endless", |stop| {
            loop {
                stop.check()?;
                thread::sleep(Duration::from_millis(1));
            }
        });
        let plan = Plan { runs: 2, time: Duration::from_millis(400) };
        let outcomes = outcomes(vec![endless, sleeping("short", Duration::from_millis(1))], plan);
        // A quarter of the time: there are two ways, and half of it is kept.
        assert!(matches!(&outcomes[0], Outcome::Over(limit) if *limit <= plan.time / 4));
        assert!(matches!(&outcomes[1], Outcome::Timed(times) if !times.all().is_empty()));
    }

    #[test]
    fn what_fails_says_why() {
        let failing = Way::rival("failing", |_| Err(io::Error::other("no such luck").into()));
        let outcomes = outcomes(vec![failing, Way::skipped("missing", "not found".to_string())], PLAN);
        assert!(matches!(&outcomes[0], Outcome::Failed(why) if why.contains("no such luck")));
        assert!(matches!(&outcomes[1], Outcome::Skipped(why) if why == "not found"));
    }

    #[test]
    fn an_interrupt_ends_it() {
        let ways = vec![Way::ours("one", |_| Ok(seven()))];
        let measured = measure(ways, &seven(), PLAN, &Stop::new().unwrap(), || true, |_| ());
        assert_eq!(measured.err().map(|error| error.kind()), Some(ErrorKind::Cancelled));
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let times = Times::new(&[4, 1, 2, 3].map(Duration::from_secs));
        assert_eq!((times.median(), times.middle_half()), (2.5, (1.75, 3.25)));
        let one = Times::new(&[Duration::from_secs(7)]);
        assert_eq!((one.median(), one.middle_half()), (7.0, (7.0, 7.0)));
    }
}
