//! The measuring loop that `millstream bench` and the benchmark tool share.
//!
//! Contenders take turns: in each round, every contender runs once, so that a slow phase of the machine affects all of
//! them. The first run of a contender is a warm-up and is not counted. A contender that fails takes no further turn. A
//! [`Budget`] decides how long one run may take, and whether there is time for another one.
//!
//! ```
//! use std::time::Duration;
//! use millstream_rounds::{Contender, Fixed, Turns, take_turns};
//!
//! struct Sleeper(u64, Vec<Duration>);
//!
//! impl Contender for Sleeper {
//!     type Fault = &'static str;
//!
//!     fn run(&mut self, _limit: Duration, counts: bool) -> Result<Duration, &'static str> {
//!         let time = Duration::from_millis(self.0);
//!         std::thread::sleep(time);
//!         if counts {
//!             self.1.push(time);
//!         }
//!         Ok(time)
//!     }
//! }
//!
//! let mut all = [Turns::new(Sleeper(2, vec![]), 3, true), Turns::new(Sleeper(1, vec![]), 5, true)];
//! take_turns(&mut all, &mut Fixed { budget: Duration::MAX, limit: Duration::MAX }, |_| ());
//! assert_eq!(all.map(|turns| turns.contender.1.len()), [3, 5]);
//! ```

mod statistics;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

pub use statistics::{median, quantile};

/// The code that is measured.
pub trait Contender {
    /// The reason why it takes no further turn.
    type Fault;

    /// Runs once, for at most about `limit`, and returns the time that the run took. If the run `counts`, the contender
    /// stores its result itself; the warm-up does not count.
    ///
    /// # Errors
    /// Returns a fault for a wrong answer, a failure, or a run that took too long for this contender's budget.
    fn run(&mut self, limit: Duration, counts: bool) -> Result<Duration, Self::Fault>;
}

/// A contender and the state of its turns.
#[derive(Debug)]
pub struct Turns<C: Contender> {
    /// The contender.
    pub contender: C,
    /// The reason why it takes no further turn, if it failed.
    pub fault: Option<C::Fault>,
    turns: usize,
    progress: Progress,
}

/// The results of a contender so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Whether the next run counts: the warm-up is over, or there is none.
    pub warm: bool,
    /// The number of runs that count.
    pub counted: usize,
    /// The time of all runs, including the warm-up.
    pub spent: Duration,
    /// The time of the longest run.
    pub longest: Duration,
}

impl<C: Contender> Turns<C> {
    /// Creates the turns of a contender with at most this many counted runs, with or without a warm-up.
    pub fn new(contender: C, runs: usize, warm_up: bool) -> Turns<C> {
        let progress = Progress { warm: !warm_up, ..Progress::default() };
        Turns { contender, fault: None, turns: runs + usize::from(warm_up), progress }
    }

    /// Sets a fault. With a fault, the contender takes no turn.
    pub fn with_fault(self, fault: Option<C::Fault>) -> Turns<C> {
        Turns { fault, ..self }
    }

    /// Returns the contender's progress.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    fn take(&mut self, limit: Duration) {
        match self.contender.run(limit, self.progress.warm) {
            Ok(time) => {
                let Progress { warm, counted, spent, longest } = self.progress;
                let counted = counted + usize::from(warm);
                self.progress = Progress { warm: true, counted, spent: spent + time, longest: longest.max(time) };
            }
            Err(fault) => self.fault = Some(fault),
        }
    }
}

/// Decides how long contenders may run.
pub trait Budget<C: Contender> {
    /// Returns whether there is time for another round; `round` counts from 0. If it returns `false`, the round does
    /// not begin.
    fn allows(&mut self, _round: usize, _all: &[Turns<C>]) -> bool {
        true
    }

    /// Returns how long the next run of the contender at `index` may take, or `None` if there is no time for it.
    fn limit(&mut self, index: usize, progress: &Progress) -> Option<Duration>;
}

/// A budget of the same time for each contender.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// The time for all runs of one contender, including the warm-up. One run is always counted.
    pub budget: Duration,
    /// The time for one run.
    pub limit: Duration,
}

impl<C: Contender> Budget<C> for Fixed {
    fn limit(&mut self, _index: usize, progress: &Progress) -> Option<Duration> {
        let in_time = progress.counted == 0 || progress.spent.saturating_add(progress.longest) <= self.budget;
        in_time.then_some(self.limit)
    }
}

/// Lets all contenders take their turns, in rounds. `tell` is called before each turn, whether it is taken or skipped.
pub fn take_turns<C: Contender>(all: &mut [Turns<C>], budget: &mut impl Budget<C>, mut tell: impl FnMut(&C)) {
    let rounds = all.iter().map(|turns| turns.turns).max().unwrap_or(0);
    for round in 0..rounds {
        if !budget.allows(round, all) {
            break;
        }
        for (index, turns) in all.iter_mut().enumerate().filter(|(_, turns)| round < turns.turns) {
            tell(&turns.contender);
            if turns.fault.is_some() {
                continue;
            }
            if let Some(limit) = budget.limit(index, &turns.progress) {
                turns.take(limit);
            }
        }
    }
}

/// Does the work on this thread. If it takes longer than `limit`, another thread calls `on_limit`, which must make the
/// work end. Returns the result, the time it took (at least `limit`, if `on_limit` was called), and whether `on_limit`
/// was called.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use std::time::Duration;
/// let stop = AtomicBool::new(false);
/// let work = || while !stop.load(Relaxed) {};
/// let ((), time, over) = millstream_rounds::limited(Duration::from_millis(5), || stop.store(true, Relaxed), work);
/// assert!(over && time >= Duration::from_millis(5));
/// ```
pub fn limited<T>(limit: Duration, on_limit: impl FnOnce() + Send, work: impl FnOnce() -> T) -> (T, Duration, bool) {
    thread::scope(|scope| {
        let (tell, wait) = mpsc::channel::<()>();
        let watchdog = scope.spawn(move || {
            // The limit counts from the start of the work, even if this thread starts much earlier.
            wait.recv().expect("the work begins");
            let over = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if over {
                on_limit();
            }
            over
        });
        let start = Instant::now();
        tell.send(()).expect("the watchdog waits");
        let result = work();
        let time = start.elapsed();
        drop(tell);
        (result, time, watchdog.join().expect("the watchdog does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contender that reports this time without waiting, and fails in its turn of this number.
    struct Player(u64, Option<usize>, Vec<bool>);

    impl Contender for Player {
        type Fault = Duration;

        fn run(&mut self, limit: Duration, counts: bool) -> Result<Duration, Duration> {
            self.2.push(counts);
            if self.1 == Some(self.2.len()) { Err(limit) } else { Ok(Duration::from_secs(self.0)) }
        }
    }

    fn turns(seconds: u64, fails: Option<usize>, warm_up: bool) -> Turns<Player> {
        Turns::new(Player(seconds, fails, vec![]), 4, warm_up)
    }

    #[test]
    fn the_warm_up_is_not_counted_and_a_failed_contender_stops() {
        let mut all = [turns(1, None, true), turns(1, None, false), turns(1, Some(2), true)];
        let mut told = 0;
        take_turns(&mut all, &mut Fixed { budget: Duration::MAX, limit: Duration::from_secs(9) }, |_| told += 1);
        let [warmed, cold, failed] = all;
        assert_eq!(warmed.contender.2, [false, true, true, true, true]);
        assert_eq!(cold.contender.2, [true; 4]);
        assert_eq!((failed.contender.2.len(), failed.fault), (2, Some(Duration::from_secs(9))));
        assert_eq!((warmed.progress.counted, warmed.progress.spent), (4, Duration::from_secs(5)));
        assert_eq!(told, 14);
    }

    #[test]
    fn a_slow_contender_has_fewer_runs_but_at_least_one() {
        let mut all = [turns(1, None, true), turns(3, None, true), turns(30, None, true)];
        take_turns(&mut all, &mut Fixed { budget: Duration::from_secs(9), limit: Duration::MAX }, |_| ());
        assert_eq!(all.map(|turns| turns.progress.counted), [4, 2, 1]);
    }

    #[test]
    fn a_budget_can_end_the_rounds_after_any_round() {
        struct Two;
        impl Budget<Player> for Two {
            fn allows(&mut self, round: usize, all: &[Turns<Player>]) -> bool {
                assert_eq!(all[0].progress().counted, round);
                round < 2
            }
            fn limit(&mut self, _: usize, _: &Progress) -> Option<Duration> {
                Some(Duration::MAX)
            }
        }
        let mut all = [turns(1, None, false)];
        take_turns(&mut all, &mut Two, |_| ());
        assert_eq!(all[0].progress.counted, 2);
    }

    #[test]
    fn work_that_ends_in_time_is_not_interrupted() {
        let (result, _, over) = limited(Duration::from_secs(60), || panic!("there was time"), || 7);
        assert_eq!((result, over), (7, false));
    }
}
