//! Disturbances of a measurement that the kernel reports: other processes, a host that took the processor away,
//! a frequency that changed, and runs that are outliers.

use std::fs;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;

use crate::statistics::{FEWEST, deviation, median};

/// The processor time of all cores, in clock ticks of usually ten milliseconds.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    ticks: Option<Ticks>,
}

/// Ticks of all cores since the machine started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// Ticks in which a core was busy.
    busy: u64,
    /// Ticks in which this process ran.
    own: u64,
    /// Ticks in which the host of a virtual machine ran something else.
    stolen: u64,
}

/// The disturbances during one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The average number of cores that other processes used.
    pub others: f64,
    /// The average number of cores that the host took away.
    pub stolen: f64,
    /// The frequency of the fastest core just after the run, in MHz; `None` if it is unknown.
    pub frequency: Option<f64>,
}

/// Runs shorter than this last only a few ticks, which is too few to evaluate.
const SHORTEST: Duration = Duration::from_millis(100);

/// The number of ticks that can be due to rounding.
const ROUNDING: u64 = 2;

impl Watch {
    /// Starts watching.
    pub fn start() -> Watch {
        Watch { start: Instant::now(), ticks: Ticks::now() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The noise since the start, not counting a run that, with its children, used this much processor time.
    pub fn noise(&self, run: Duration) -> Noise {
        let elapsed = self.start.elapsed();
        let frequency = frequency();
        match (self.ticks, Ticks::now()) {
            (Some(before), Some(after)) if elapsed >= SHORTEST => {
                let cores = |ticks: f64| ticks / clock_ticks_per_second() as f64 / elapsed.as_secs_f64();
                let busy = (after.busy - before.busy).saturating_sub(after.own - before.own + ROUNDING);
                Noise {
                    others: (cores(busy as f64) - run.as_secs_f64() / elapsed.as_secs_f64()).max(0.0),
                    stolen: cores((after.stolen - before.stolen) as f64),
                    frequency,
                }
            }
            _ => Noise { frequency, ..Noise::default() },
        }
    }
}

impl Ticks {
    fn now() -> Option<Ticks> {
        let (all, own) = (fs::read_to_string("/proc/stat").ok()?, fs::read_to_string("/proc/self/stat").ok()?);
        Ticks::parse(&all, &own)
    }

    fn parse(all: &str, own: &str) -> Option<Ticks> {
        let cores: Vec<u64> =
            all.lines().next()?.strip_prefix("cpu")?.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let [user, nice, system, _idle, _waiting, interrupts, soft, stolen, ..] = cores[..] else { return None };
        // After the name, which is in parentheses and can contain any character, user and system time are the 12th and
        // 13th words.
        let words: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let own = words.get(11)?.parse::<u64>().ok()? + words.get(12)?.parse::<u64>().ok()?;
        Some(Ticks { busy: user + nice + system + interrupts + soft, own, stolen })
    }
}

/// The frequency of the fastest core in MHz.
fn frequency() -> Option<f64> {
    let information = fs::read_to_string("/proc/cpuinfo").ok()?;
    let of = |line: &str| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok();
    information.lines().filter_map(of).max_by(f64::total_cmp)
}

/// Returns reasons to doubt runs that took this many seconds with this noise, one sentence each. Returns nothing if there are none.
///
/// ```
/// use millstream_bench::noise::warnings;
/// let found = warnings(&[1.0, 1.01, 0.99, 1.0, 1.0, 1.9], &[]);
/// assert_eq!(found, ["run 6 of 6 took 1.90 times the median"]);
/// ```
pub fn warnings(seconds: &[f64], noises: &[Noise]) -> Vec<String> {
    let mut found = outliers(seconds);
    let runs = noises.len();
    let most = |of: fn(&Noise) -> f64, least: f64| {
        let over: Vec<f64> = noises.iter().map(of).filter(|&value| value > least).collect();
        over.iter().copied().max_by(f64::total_cmp).map(|most| (over.len(), most))
    };
    if let Some((times, cores)) = most(|noise| noise.others, 0.1) {
        found.push(format!("other processes used up to {cores:.1} cores during {times} of {runs} runs"));
    }
    if let Some((times, cores)) = most(|noise| noise.stolen, 0.02) {
        let share = cores * 100.0;
        found.push(format!("the host used up to {share:.0} % of a core during {times} of {runs} runs"));
    }
    let frequencies = || noises.iter().filter_map(|noise| noise.frequency);
    if let (Some(low), Some(high)) = (frequencies().min_by(f64::total_cmp), frequencies().max_by(f64::total_cmp))
        && high > 1.1 * low
    {
        found.push(format!("the processor's frequency changed between {low:.0} and {high:.0} MHz"));
    }
    found
}

/// Reports runs whose distance to the median is more than 3.5 deviations and more than 5 % of the median.
fn outliers(seconds: &[f64]) -> Vec<String> {
    if seconds.len() < FEWEST {
        return Vec::new();
    }
    let middle = median(seconds);
    let far = (3.5 * deviation(seconds)).max(0.05 * middle);
    let outside: Vec<(usize, f64)> =
        (1..).zip(seconds.iter().copied()).filter(|(_, value)| (value - middle).abs() > far).collect();
    let all = seconds.len();
    match outside[..] {
        [] => Vec::new(),
        [(run, value)] => {
            let times = value / middle;
            vec![format!("run {run} of {all} took {times:.2} times the median")]
        }
        _ => {
            let times = outside.iter().map(|(_, value)| value / middle);
            let (low, high) = times.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
            vec![format!("{} of {all} runs are far from the median: {low:.2} to {high:.2} times it", outside.len())]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_statistics_of_the_kernel() {
        let all = "cpu  100 2 30 4000 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let own = "42 (a ) name) R 1 2 3 4 5 6 7 8 9 10 11 12 0 0 20 0 1";
        assert_eq!(Ticks::parse(all, own), Some(Ticks { busy: 145, own: 23, stolen: 8 }));
        assert_eq!(Ticks::parse("", own), None);
        assert_eq!(Ticks::parse(all, "42"), None);
    }

    #[test]
    fn every_disturbance_is_reported() {
        let quiet = Noise { others: 0.05, stolen: 0.0, frequency: Some(3000.0) };
        assert!(warnings(&[1.0; 7], &[quiet; 7]).is_empty());
        let mut noises = [quiet; 7];
        noises[1].others = 0.8;
        noises[2].others = 0.3;
        noises[3].stolen = 0.25;
        noises[4].frequency = Some(2000.0);
        assert_eq!(
            warnings(&[1.0; 7], &noises),
            [
                "other processes used up to 0.8 cores during 2 of 7 runs",
                "the host used up to 25 % of a core during 1 of 7 runs",
                "the processor's frequency changed between 2000 and 3000 MHz",
            ]
        );
    }

    #[test]
    fn small_differences_are_no_outliers() {
        // Most values are equal, so their deviation is zero; one percent is irrelevant.
        assert!(outliers(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.01]).is_empty());
        assert!(outliers(&[1.0, 1.3, 1.5, 0.8, 0.7, 1.1]).is_empty());
        assert!(outliers(&[1.0, 1.0, 5.0]).is_empty());
        assert_eq!(
            outliers(&[1.0, 2.0, 1.0, 3.0, 1.0, 1.0]),
            ["2 of 6 runs are far from the median: 2.00 to 3.00 times it"]
        );
    }

    #[test]
    fn a_machine_that_is_busy_is_noticed() {
        let watch = Watch::start();
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(400));
        child.kill().unwrap();
        child.wait().unwrap();
        // This test cannot rely on a quiet machine. The tests of `measure` check that the time of runners is not
        // counted.
        assert!(watch.ticks.is_none() || watch.noise(Duration::ZERO).others > 0.1);
    }
}
