//! Turns a hang into a failure.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `body` and returns its result; panics if it takes longer than `seconds`.
///
/// The limit only detects a hang. Choose it so generously that a slow machine does not reach it.
pub fn within_seconds<T: Send + 'static>(seconds: u64, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    let thread = thread::spawn(move || {
        let _ = done.send(body());
    });
    match result.recv_timeout(Duration::from_secs(seconds)) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("still running after {seconds} s"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("a body that returns sends its result"),
        },
    }
}

/// Asserts that at least one of up to five calls takes less than `limit`: a busy machine can delay some calls, but code that
/// waits for `limit` delays all.
pub fn assert_once_within(limit: Duration, mut call: impl FnMut()) {
    let mut times = vec![];
    for _ in 0..5 {
        let start = Instant::now();
        call();
        times.push(start.elapsed());
        if start.elapsed() < limit {
            return;
        }
    }
    panic!("not once within {limit:?}: {times:?}");
}
