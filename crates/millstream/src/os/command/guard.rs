//! Stops commands if this process is killed. The command-line tool uses this: it forks a process that [watches](watch).
//!
//! The guard is notified of each command before the command exists. A command with its own process group notifies the
//! guard itself, before `exec`; for a marked command, this process notifies the guard before the child is created. The
//! guard acts when the last writing end of its socket closes, and a child holds one of these ends until then. So no
//! command is missed, however early this process is killed.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::SendFlags;
use rustix::process::{Pid, Signal};

use super::children;
pub use super::left::MARK;
use super::left::{Left, PATIENCE, end_all};

/// This process's side of the guard.
#[derive(Debug)]
pub struct Guard {
    to: UnixStream,
    /// The prefix of all marks, if commands are marked. Otherwise commands have their own groups.
    run: Option<String>,
    next: AtomicU64,
}

impl Guard {
    /// Creates a guard. `to` is the other end of the socket that the guard [watches](watch). If `run` is given,
    /// commands stay in this process's group and are marked.
    pub fn new(to: UnixStream, run: Option<String>) -> Guard {
        Guard { to, run, next: AtomicU64::new(0) }
    }

    /// Stops guarding: the guard stops the commands that are still registered, and exits.
    ///
    /// # Errors
    /// Returns the errors of shutdown(2). In that case, the guard does not exit by itself.
    pub fn close(&self) -> std::io::Result<()> {
        self.to.shutdown(std::net::Shutdown::Both)
    }

    /// Returns a registration for a command that is about to be started.
    pub(super) fn watched(self: &Arc<Guard>) -> Watched {
        let watched = Watched { guard: self.clone(), number: self.next.fetch_add(1, Ordering::Relaxed) };
        if self.run.is_some() {
            watched.tell(MARKED);
        }
        watched
    }
}

/// The part of a message about a command that is not the command's process ID.
const MARKED: i64 = -1;
const OVER: i64 = 0;

/// One command that the guard watches.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    guard: Arc<Guard>,
    number: u64,
}

impl Watched {
    /// Returns the command's mark, if it must be marked.
    pub(super) fn mark(&self) -> Option<String> {
        self.guard.run.as_ref().map(|run| mark(run, self.number))
    }

    /// Reports that the child is about to become the command and has its own group. This only makes system calls.
    pub(super) fn starts(&self) {
        if self.guard.run.is_none() {
            self.tell(i64::from(rustix::process::getpid().as_raw_nonzero().get()));
        }
    }

    /// Reports that the command is about to be reaped, or could not be started.
    pub(super) fn over(&self) {
        self.tell(OVER);
    }

    fn tell(&self, news: i64) {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.number.to_ne_bytes());
        message[8..].copy_from_slice(&news.to_ne_bytes());
        // If the guard was killed, it protects no commands.
        let _ = rustix::net::send(&self.guard.to, &message, SendFlags::NOSIGNAL);
    }
}

fn mark(run: &str, number: u64) -> String {
    format!("{run}.{number}")
}

/// Runs the guard: tracks commands until the other end is closed, and then stops the remaining ones.
pub fn watch(mut from: UnixStream, run: Option<&str>) {
    let mut left = BTreeMap::new();
    let mut message = [0; 16];
    while from.read_exact(&mut message).is_ok() {
        let [number, news] = [0, 8].map(|at| <[u8; 8]>::try_from(&message[at..at + 8]).expect("8 bytes"));
        let number = u64::from_ne_bytes(number);
        match (i64::from_ne_bytes(news), run) {
            (OVER, _) => drop(left.remove(&number)),
            (MARKED, Some(run)) => drop(left.insert(number, Left::Marked(mark(run, number)))),
            (pid, _) => {
                if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                    left.insert(number, Left::Group(pid));
                }
            }
        }
    }
    end_all(&left.into_values().collect::<Vec<_>>(), Signal::TERM, PATIENCE);
}

/// Reaps child processes that are not commands, in a process that adopts orphans.
pub fn reap_adopted() {
    children::reap_others();
}
