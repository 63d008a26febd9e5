//! Turns a hang into a failure.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs `body` and returns its result; panics if it takes longer than `seconds`.
///
/// The limit only detects a hang. Choose a limit that a slow machine does not reach.
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
