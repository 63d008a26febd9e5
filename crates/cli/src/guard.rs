//! Ensures that no process that this command has started outlives it, even if it is killed.
//!
//! A guard process, which is forked before the first command, waits until this process's end of a socket closes, and
//! stops the remaining processes: see [`millstream::guard`]. It is in a separate session, so that a signal from the
//! terminal does not end it, and holds none of this process's files open.
//!
//! Without a controlling terminal each command has its own process group. With one, commands stay in this process's
//! group, so that they can read from the terminal and get its Ctrl-C and Ctrl-Z. Their processes are found by a mark in
//! the environment, since the user's other processes may be in that group too. In this case orphans are adopted, so
//! that they are reaped when they end.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use millstream::Command;
use millstream::guard::{Guard, reap_adopted, watch};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::{Handle, Signals};

/// The guard of this process, from [`start`] to [`end`].
static GUARDED: Mutex<Option<Guarded>> = Mutex::new(None);

struct Guarded {
    guard: Arc<Guard>,
    pid: Pid,
    /// Stops the thread that reaps orphans.
    adoption: Option<Handle>,
}

fn guarded() -> MutexGuard<'static, Option<Guarded>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the guard to this command.
pub(crate) fn command(command: Command) -> Command {
    command.guarded(guarded().as_ref().map(|guarded| guarded.guard.clone()))
}

/// Starts the guard, unless it is running. Call this before the first command, and preferably before the first thread.
/// If the operating system allows no more processes, commands are started without a guard.
pub(crate) fn start() {
    let mut guarded = guarded();
    if guarded.is_none() {
        *guarded = Guarded::start();
    }
}

/// Stops the guard. All commands have ended.
pub(crate) fn end() {
    let Some(Guarded { guard, pid, adoption }) = guarded().take() else { return };
    if guard.close().is_err() {
        // Waiting for the guard would take indefinitely.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    if let Some(adoption) = adoption {
        adoption.close();
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(None);
    }
    // This fails if the thread that reaps orphans has already reaped it.
    let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
}

impl Guarded {
    fn start() -> Option<Guarded> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        let run = has_terminal().then(run_id).transpose().ok()?;
        let pid = fork(theirs, run.as_deref())?;
        let adoption = run.is_some().then(adopt).flatten();
        Some(Guarded { guard: Arc::new(Guard::new(ours, run)), pid, adoption })
    }
}

fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// Returns a unique name for this run.
fn run_id() -> Result<String, getrandom::Error> {
    let random = getrandom::u64()?;
    Ok(format!("{}-{random:016x}", std::process::id()))
}

/// Adopts orphans, and reaps them when they end. Returns `None` if that is impossible.
fn adopt() -> Option<Handle> {
    let mut ends = Signals::new([SIGCHLD]).ok()?;
    let handle = ends.handle();
    let reap = move || ends.forever().for_each(|_| reap_adopted());
    thread::Builder::new().name("orphans".to_string()).spawn(reap).ok()?;
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    Some(handle)
}

/// Forks the guard.
fn fork(from: UnixStream, run: Option<&str>) -> Option<Pid> {
    // SAFETY: the child uses only memory and system calls, through std and libc, which stay usable in the child of a
    // multithreaded process (the C library ensures that memory can be allocated). It holds no lock of this program and
    // waits for none: [`GUARDED`] is not accessed. It never returns, so it drops no values and runs no handler of the
    // host's.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => guard(from, run),
        pid => Pid::from_raw(pid),
    }
}

/// Runs the guard.
fn guard(from: UnixStream, run: Option<&str>) -> ! {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the set is valid for these calls, the first of which fills it.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        }
        let _ = rustix::process::setsid();
        let _ = rustix::process::chdir("/");
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_name(c"ms-guard");
        close_all_but(from.as_raw_fd());
        watch(from, run);
    }));
    // SAFETY: this only ends the process.
    unsafe { libc::_exit(0) }
}

/// Closes the descriptors that were open in the process that forked: its pipes must reach their end when that process
/// ends.
fn close_all_but(kept: i32) {
    let names = fs::read_dir("/dev/fd").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let open: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd != kept) {
        // SAFETY: this process only watches from now on, and no code in it owns or uses a descriptor except `kept`.
        // Values that would close the descriptors are never dropped.
        unsafe { libc::close(fd) };
    }
}
