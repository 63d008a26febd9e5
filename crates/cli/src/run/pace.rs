//! `--rate-limit`: limits the rate at which bytes are moved.

use std::time::{Duration, Instant};

/// The maximum unused time that is compensated: enough for the jitter of a scheduler, too little for a burst.
const CREDIT: Duration = Duration::from_millis(100);

/// Limits the rate to this many bytes per second, in steps of at most a twentieth of a second.
pub(super) struct Pace {
    bytes_per_second: u64,
    /// The time at which the next bytes may be moved.
    next: Instant,
}

impl Pace {
    /// Creates a pace whose first step is immediate.
    pub(super) fn new(bytes_per_second: u64) -> Pace {
        Pace { bytes_per_second, next: Instant::now() }
    }

    /// Returns the maximum number of bytes to move in one step.
    pub(super) fn step(&self) -> usize {
        usize::try_from(self.bytes_per_second / 20).unwrap_or(usize::MAX).max(1)
    }

    /// Records that `bytes` are moved at `now`, and returns the time at which the following bytes may be moved.
    pub(super) fn go(&mut self, bytes: usize, now: Instant) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let from = now.checked_sub(CREDIT).map_or(self.next, |earliest| self.next.max(earliest));
        self.next = from + takes;
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_for_a_second_take_a_second() {
        let mut pace = Pace::new(1000);
        let start = pace.next;
        let mut now = start;
        for _ in 0..20 {
            now = pace.go(pace.step(), now);
        }
        assert_eq!(now - start, Duration::from_secs(1));
    }

    #[test]
    fn idle_time_is_not_made_up_for() {
        let mut pace = Pace::new(1000);
        let later = pace.next + Duration::from_secs(60);
        assert_eq!(pace.go(1000, later), later - CREDIT + Duration::from_secs(1));
    }

    #[test]
    fn slow_paces_move_single_bytes() {
        assert_eq!(Pace::new(3).step(), 1);
        assert_eq!(Pace::new(20_000_000).step(), 1_000_000);
    }
}
