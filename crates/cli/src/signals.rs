//! Handles signals that end the command: SIGINT, SIGTERM, SIGHUP, and others that would end it without a clean-up, such
//! as SIGQUIT, SIGXCPU and SIGALRM.
//!
//! The first signal triggers a [`CancelToken`], and the transfer unwinds: it stops its command and removes partial
//! outputs. A second signal of the same kind ends the process immediately. A signal that is ignored when the process
//! starts (`nohup`, a background job of a plain shell) stays ignored.
//!
//! SIGXFSZ has no effect: a write beyond the limit on a file's size fails with EFBIG, which is an ordinary error.
//! Commands start with the default dispositions, because execve(2) resets handlers.
//!
//! The handlers store the signal's number and trigger the token. A thread, which is started when it is needed, does
//! everything that is not safe inside a signal handler.
#![allow(unsafe_code)] // handlers

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Result};
use signal_hook::SigId;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::{Handle, Signals as Arrivals};
use signal_hook::low_level::{emulate_default_handler, register, unregister};

use crate::{Ending, message, standard};

/// The signals that end the command.
const ENDING: [i32; 10] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2];

/// The signals of this process, which are watched from [`Signals::watch`] until this value is dropped.
pub(crate) struct Signals {
    token: CancelToken,
    /// The number of the first signal that arrived, or 0.
    caught: Arc<AtomicI32>,
    /// The handlers, while the signals are watched.
    handlers: Vec<SigId>,
    acts: Mutex<Acts>,
}

/// The actions of the thread when a signal arrives.
#[derive(Default)]
struct Acts {
    all: Arc<Mutex<Vec<Act>>>,
    /// Stops the thread, which is started when the signals are watched and actions exist.
    thread: Option<Handle>,
    unparks: bool,
}

type Act = Box<dyn Fn() + Send>;

impl Signals {
    /// Creates signals that are not watched yet and have their normal effect.
    pub(crate) fn new() -> Result<Signals> {
        let token = CancelToken::new()?;
        standard::set_token(Some(token.clone()));
        Ok(Signals { token, caught: Arc::default(), handlers: vec![], acts: Mutex::default() })
    }

    /// Returns the token that the first signal triggers.
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Returns the signal that arrived first.
    pub(crate) fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Acquire)).filter(|&signal| signal != 0)
    }

    /// Fails with [`ErrorKind::Cancelled`] if a signal has arrived.
    pub(crate) fn check(&self) -> Result<()> {
        self.token.check()
    }

    /// Returns the ending of the command: by the signal, if the command failed because a signal arrived.
    pub(crate) fn or(&self, ending: Ending) -> Ending {
        match self.caught() {
            Some(signal) if ending == Ending::FAILED => message::ended_by(signal),
            _ => ending,
        }
    }

    /// Calls `act` on another thread when a signal arrives, or immediately if one has arrived.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Io`] if no thread can be started.
    pub(crate) fn on_arrival(&self, act: impl Fn() + Send + 'static) -> io::Result<()> {
        let mut acts = locked(&self.acts);
        locked(&acts.all).push(Box::new(act));
        self.start_thread(&mut acts)
    }

    /// From now on, makes signals trigger the token instead of ending the process.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if !self.handlers.is_empty() {
            return Ok(());
        }
        if !is_ignored(SIGXFSZ) {
            // The flag is not read; the handler only has to exist.
            self.handlers.push(signal_hook::flag::register(SIGXFSZ, Arc::default())?);
        }
        for signal in watchable() {
            let (token, caught) = (self.token.clone(), self.caught.clone());
            // SAFETY: `arrived` is safe in a signal handler: it uses atomic numbers, and `CancelToken::cancel` and
            // `emulate_default_handler`, which are documented to be safe there. It cannot panic.
            self.handlers.push(unsafe { register(signal, move || arrived(signal, &token, &caught)) }?);
        }
        self.start_thread(&mut locked(&self.acts))
    }

    /// Starts the thread if the signals are watched, actions exist, and the thread has not started.
    fn start_thread(&self, acts: &mut Acts) -> io::Result<()> {
        if self.handlers.is_empty() || locked(&acts.all).is_empty() {
            return Ok(());
        }
        if acts.thread.is_none() {
            let mut arrivals = Arrivals::new(watchable())?;
            acts.thread = Some(arrivals.handle());
            let all = acts.all.clone();
            thread::Builder::new()
                .name("signals".to_string())
                .spawn(move || arrivals.forever().for_each(|_| locked(&all).iter().for_each(|act| act())))?;
        }
        // The thread does not receive a signal that arrived before this.
        if self.token.is_cancelled() {
            locked(&acts.all).iter().for_each(|act| act());
        }
        Ok(())
    }

    /// Sleeps until `until`, or until a signal arrives. In that case it fails with [`ErrorKind::Cancelled`]. It is
    /// always called by the same thread.
    pub(crate) fn pause(&self, until: Instant) -> Result<()> {
        if !std::mem::replace(&mut locked(&self.acts).unparks, true) {
            let pausing = thread::current();
            self.on_arrival(move || pausing.unpark())?;
        }
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
        if let Some(thread) = &locked(&self.acts).thread {
            thread.close();
        }
        for handler in self.handlers.drain(..) {
            unregister(handler);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles a signal.
fn arrived(signal: i32, token: &CancelToken, caught: &AtomicI32) {
    if caught.load(Ordering::Acquire) == signal {
        let _ = emulate_default_handler(signal);
    }
    let _ = caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
    token.cancel();
}

/// Returns the signals that end the command and are not ignored.
fn watchable() -> impl Iterator<Item = i32> {
    ENDING.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Makes the kernel report how commands end. It does not if SIGCHLD is ignored, which is inherited from a parent that
/// ignores *its* children. A handler that does nothing is enough, and commands start with the default disposition.
pub(crate) fn heed_children() {
    if is_ignored(SIGCHLD) {
        // If this fails, a command whose status is unknown causes an error.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// Returns whether this signal was ignored when the command started. Only Linux reports this without changing any
/// state; on other operating systems no signal is assumed to be ignored.
fn is_ignored(signal: i32) -> bool {
    /// Bit n - 1 is for signal n.
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let ignored = IGNORED.get_or_init(|| {
        // This is longer than the whole file, so one call reads it.
        let mut status = String::with_capacity(8192);
        let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    });
    ignored & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use millstream::ErrorKind;

    use super::*;

    #[test]
    fn rust_starts_with_sigpipe_ignored() {
        assert_eq!(is_ignored(signal_hook::consts::SIGPIPE), cfg!(target_os = "linux"));
        assert!(!is_ignored(signal_hook::consts::SIGKILL));
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
