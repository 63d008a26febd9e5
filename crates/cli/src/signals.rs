//! Signals that end the command: SIGINT, SIGTERM, SIGHUP, and others that would end it without cleaning up, such as
//! SIGQUIT, SIGXCPU and SIGALRM.
//!
//! The first one triggers a [`CancelToken`], and the transfer unwinds: its command is stopped, partial outputs are
//! removed. The same signal again ends the process immediately. A signal that is ignored when we start (`nohup`, a
//! background job of a plain shell) stays ignored.
//!
//! SIGXFSZ does nothing: the write beyond the limit on a file's size fails then (EFBIG), and is an error like any other.
//! Commands that we start get their default dispositions back, since a handler does not outlive execve(2).
//!
//! A separate thread waits for the signals, so that nothing has to be safe inside a signal handler.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind, Result};
use signal_hook::SigId;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::{Handle, Signals as Arrivals};
use signal_hook::low_level::emulate_default_handler;

use crate::{Ending, message, standard};

/// The signals that end the command.
const ENDING: [i32; 10] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2];

/// The signals of this process, watched from [`Signals::watch`] until the end of this value.
pub(crate) struct Signals {
    token: CancelToken,
    /// The number of the first signal that came, 0 before.
    caught: Arc<AtomicI32>,
    acts: Acts,
    watched: Option<Handle>,
    /// The handler of SIGXFSZ.
    file_size: Option<SigId>,
}

/// What to do when the first signal comes, in addition to triggering the token.
type Acts = Arc<Mutex<Vec<Box<dyn Fn() + Send>>>>;

impl Signals {
    /// Signals that are not watched yet: they have their normal effect.
    pub(crate) fn new() -> Result<Signals> {
        let token = CancelToken::new()?;
        standard::set_token(Some(token.clone()));
        Ok(Signals { token, caught: Arc::default(), acts: Arc::default(), watched: None, file_size: None })
    }

    /// The token that the first signal triggers.
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// The signal that came first.
    pub(crate) fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Acquire)).filter(|&signal| signal != 0)
    }

    /// Fails with [`ErrorKind::Cancelled`] if a signal has come.
    pub(crate) fn check(&self) -> Result<()> {
        if self.token.is_cancelled() { Err(Error::new(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// How the command ends: by the signal, if it failed because one came.
    pub(crate) fn or(&self, ending: Ending) -> Ending {
        match self.caught() {
            Some(signal) if ending == Ending::FAILED => message::ended_by(signal),
            _ => ending,
        }
    }

    /// Runs this, too, when the first signal comes; immediately if one has come.
    pub(crate) fn on_arrival(&self, act: impl Fn() + Send + 'static) {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        if self.token.is_cancelled() {
            act();
        }
        acts.push(Box::new(act));
    }

    /// From now on a signal triggers the token instead of ending the process. The calling thread is the one
    /// that [`pause`](Signals::pause)s.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if self.watched.is_some() {
            return Ok(());
        }
        let ignored = ignored_signals();
        let is_ignored = |signal: i32| ignored & (1 << (signal - 1)) != 0;
        if !is_ignored(SIGXFSZ) {
            // The flag is not read: what matters is that there is a handler.
            self.file_size = Some(signal_hook::flag::register(SIGXFSZ, Arc::default())?);
        }
        let mut arrivals = Arrivals::new(ENDING.into_iter().filter(|&signal| !is_ignored(signal)))?;
        self.watched = Some(arrivals.handle());
        let (token, caught, pausing) = (self.token.clone(), self.caught.clone(), thread::current());
        let acts = self.acts.clone();
        thread::Builder::new()
            .name("signals".to_string())
            .spawn(move || arrivals.forever().for_each(|signal| arrived(signal, &token, &caught, &acts, &pausing)))?;
        Ok(())
    }

    /// Sleeps until `until`, or until a signal comes: then it fails with [`ErrorKind::Cancelled`].
    pub(crate) fn pause(&self, until: Instant) -> Result<()> {
        loop {
            self.check()?;
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => thread::park_timeout(left),
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        standard::set_token(None);
        if let Some(watched) = &self.watched {
            watched.close();
        }
        if let Some(file_size) = self.file_size {
            signal_hook::low_level::unregister(file_size);
        }
    }
}

fn arrived(signal: i32, token: &CancelToken, caught: &AtomicI32, acts: &Acts, pausing: &Thread) {
    if caught.load(Ordering::Acquire) == signal {
        let _ = emulate_default_handler(signal);
    }
    let _ = caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
    token.cancel();
    acts.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|act| act());
    pausing.unpark();
}

/// Makes sure that the system reports how our commands end: if SIGCHLD is ignored, it does not. That is inherited from
/// a parent that ignores *its* children. A handler that does nothing is enough, and commands start with the default
/// again.
pub(crate) fn heed_children() {
    if ignored_signals() & (1 << (SIGCHLD - 1)) != 0 {
        // If that fails, a command whose status is unknown is an error.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// The set of signals that are ignored: bit n - 1 for signal n. Only Linux reports it without unsafe code; elsewhere
/// none are assumed to be.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_starts_with_sigpipe_ignored() {
        let ignored = ignored_signals();
        let bit = |signal: i32| ignored & (1 << (signal - 1)) != 0;
        assert_eq!(bit(signal_hook::consts::SIGPIPE), cfg!(target_os = "linux"));
        assert!(!bit(signal_hook::consts::SIGKILL));
    }

    #[test]
    fn a_cancelled_pause_ends_early() {
        let signals = Signals::new().unwrap();
        signals.pause(Instant::now()).unwrap();
        signals.token().cancel();
        let far = Instant::now() + Duration::from_secs(3600);
        assert_eq!(signals.pause(far).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
