//! Measures how long a command ran and how much processor time it used, for the statistics of the command-line tool.
//!
//! The kernel does not store when a process ended, and a command of a pipeline may be reaped long after its end. So a
//! thread waits for the end and stores the time. The processor time is read from `/proc` before the command is reaped.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::left::stat_fields;
use crate::os::cancel::Wait;

/// The times of one command. Its clones share them.
#[derive(Clone, Debug, Default)]
pub struct Stopwatch(Arc<Times>);

#[derive(Debug, Default)]
struct Times {
    begun: OnceLock<Instant>,
    elapsed: OnceLock<Duration>,
    processor: OnceLock<(Duration, Duration)>,
}

impl Stopwatch {
    /// Returns how long the command ran, if it has been reaped.
    pub fn elapsed(&self) -> Option<Duration> {
        self.0.elapsed.get().copied()
    }

    /// Returns the user and the system time of the command and of the processes that it waited for, if the operating
    /// system reports them.
    pub fn processor(&self) -> Option<(Duration, Duration)> {
        self.0.processor.get().copied()
    }

    /// The command is about to be started.
    pub(super) fn start(&self) {
        let _ = self.0.begun.set(Instant::now());
    }

    /// Stores the time when `exited`, the command's pidfd, becomes readable. Without a thread, the time when the
    /// command is reaped is used.
    pub(super) fn watch(&self, exited: OwnedFd) {
        let times = self.0.clone();
        let watch = move || {
            if Wait::default().readable(exited.as_fd()).is_ok() {
                times.end();
            }
        };
        let _ = std::thread::Builder::new().name("millstream-time".into()).spawn(watch);
    }

    /// The command has ended and is about to be reaped.
    pub(super) fn stop(&self, pid: Pid) {
        self.0.end();
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(times) = processor_times(&stat) {
            let _ = self.0.processor.set(times);
        }
    }
}

impl Times {
    fn end(&self) {
        if let Some(begun) = self.begun.get() {
            let _ = self.elapsed.set(begun.elapsed());
        }
    }
}

/// Parses the user and the system time in the `stat` file of a process that has ended and has not been reaped.
fn processor_times(stat: &[u8]) -> Option<(Duration, Duration)> {
    let fields: Vec<&[u8]> = stat_fields(stat)?.collect();
    // Another process could have the number if this one was reaped by other code.
    if *fields.first()? != b"Z" {
        return None;
    }
    let ticks = rustix::param::clock_ticks_per_second();
    let time = |at: usize| -> Option<Duration> {
        let ticks_of = |at: usize| std::str::from_utf8(fields.get(at)?).ok()?.parse::<u64>().ok();
        // The second number is that of its children.
        Some(Duration::from_secs_f64((ticks_of(at)? + ticks_of(at + 2)?) as f64 / ticks as f64))
    };
    Some((time(11)?, time(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_zombie() {
        let stat = |state: &str| format!("7 (a) b) {state} 1 7 7 0 -1 4194304 0 0 0 0 100 20 50 3 20 0 1 0 88 0 0");
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let times = [150.0, 23.0].map(|ticks| Duration::from_secs_f64(ticks * tick));
        assert_eq!(processor_times(stat("Z").as_bytes()), Some(times.into()));
        assert_eq!(processor_times(stat("S").as_bytes()), None);
        assert_eq!(processor_times(b""), None);
    }
}
