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
//! The handlers store the signal's number and trigger the token. A thread, which starts when it is needed, does what is not
//! safe inside a signal handler.
#![allow(unsafe_code)] // handlers

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Error, ErrorKind, Result};
use signal_hook::SigId;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::{Handle, Signals as Arrivals};
use signal_hook::low_level::{emulate_default_handler, register, unregister};

use crate::{Ending, message, standard};

/// The signals that end the command.
const ENDING: [i32; 10] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2];

/// The signals of this process, watched from [`Signals::watch`] until the end of this value.
pub(crate) struct Signals {
    token: CancelToken,
    /// The number of the first signal that came, 0 before.
    caught: Arc<AtomicI32>,
    /// The handlers, once the signals are watched.
    handlers: Vec<SigId>,
    acts: Mutex<Acts>,
}

/// What the thread does when a signal comes.
#[derive(Default)]
struct Acts {
    all: Arc<Mutex<Vec<Act>>>,
    /// Ends the thread, which starts when the signals are watched and there is something to do.
    thread: Option<Handle>,
    unparks: bool,
}

type Act = Box<dyn Fn() + Send>;

impl Signals {
    /// Signals that are not watched yet: they have their normal effect.
    pub(crate) fn new() -> Result<Signals> {
        let token = CancelToken::new()?;
        standard::set_token(Some(token.clone()));
        Ok(Signals { token, caught: Arc::default(), handlers: vec![], acts: Mutex::default() })
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

    /// Calls this on another thread when a signal comes; immediately if one has come.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if no thread can be started.
    pub(crate) fn on_arrival(&self, act: impl Fn() + Send + 'static) -> io::Result<()> {
        let mut acts = locked(&self.acts);
        locked(&acts.all).push(Box::new(act));
        self.start_thread(&mut acts)
    }

    /// From now on a signal triggers the token instead of ending the process.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if !self.handlers.is_empty() {
            return Ok(());
        }
        if !is_ignored(SIGXFSZ) {
            // The flag is not read: what matters is that there is a handler.
            self.handlers.push(signal_hook::flag::register(SIGXFSZ, Arc::default())?);
        }
        for signal in watchable() {
            let (token, caught) = (self.token.clone(), self.caught.clone());
            // SAFETY: `arrived` is safe in a signal handler: it uses atomic numbers, `CancelToken::cancel`, which
            // promises this, and `emulate_default_handler`, which promises this, too. It cannot panic.
            self.handlers.push(unsafe { register(signal, move || arrived(signal, &token, &caught)) }?);
        }
        self.start_thread(&mut locked(&self.acts))
    }

    /// Starts the thread if the signals are watched, there is something to do, and it has not started.
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
        // The thread does not see a signal that came before this.
        if self.token.is_cancelled() {
            locked(&acts.all).iter().for_each(|act| act());
        }
        Ok(())
    }

    /// Sleeps until `until`, or until a signal comes: then it fails with [`ErrorKind::Cancelled`]. Always called by the
    /// same thread.
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

/// The handler.
fn arrived(signal: i32, token: &CancelToken, caught: &AtomicI32) {
    if caught.load(Ordering::Acquire) == signal {
        let _ = emulate_default_handler(signal);
    }
    let _ = caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
    token.cancel();
}

/// The signals that end the command and are not ignored.
fn watchable() -> impl Iterator<Item = i32> {
    ENDING.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Makes sure that the system reports how our commands end: if SIGCHLD is ignored, it does not. That is inherited from
/// a parent that ignores *its* children. A handler that does nothing is enough, and commands start with the default
/// again.
pub(crate) fn heed_children() {
    if is_ignored(SIGCHLD) {
        // If that fails, a command whose status is unknown is an error.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// Whether this signal was ignored when the command started. Only Linux reports this without changing anything; elsewhere no
/// signal is assumed to be ignored.
fn is_ignored(signal: i32) -> bool {
    /// Bit n - 1 is for signal n.
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let ignored = IGNORED.get_or_init(|| {
        // More than the whole file: one call reads it.
        let mut status = String::with_capacity(8192);
        let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    });
    ignored & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
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
