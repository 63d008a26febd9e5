//! Nothing that this command has started outlives it, even if it is killed.
//!
//! A guard, forked before the first command, waits until our end of a socket closes, and ends what is left: see
//! [`millstream::guard`]. It is in a separate session, so that nothing that ends us from the terminal ends it, and holds
//! no file of ours.
//!
//! Without a controlling terminal each command has a process group. With one, commands stay in ours, so that they may read
//! from the terminal and get its Ctrl-C and Ctrl-Z; what belongs to them is found by a mark in the environment, since the
//! user's other processes may be in that group too. Orphans are adopted then: their end is seen, and they are reaped.

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
    /// Ends the thread that reaps orphans.
    adoption: Option<Handle>,
}

fn guarded() -> MutexGuard<'static, Option<Guarded>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This command, guarded.
pub(crate) fn command(command: Command) -> Command {
    command.guarded(guarded().as_ref().map(|guarded| guarded.guard.clone()))
}

/// Starts the guard, if there is none: before the first command, and best before the first thread. If the system allows
/// no more processes, commands are started without one.
pub(crate) fn start() {
    let mut guarded = guarded();
    if guarded.is_none() {
        *guarded = Guarded::start();
    }
}

/// Ends the guard. All commands have ended.
pub(crate) fn end() {
    let Some(Guarded { guard, pid, adoption }) = guarded().take() else { return };
    if guard.close().is_err() {
        // It would be waited for indefinitely.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    if let Some(adoption) = adoption {
        adoption.close();
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(None);
    }
    // It fails if it has been reaped by the thread that reaps orphans.
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

/// A unique name for this run.
fn run_id() -> Result<String, getrandom::Error> {
    let random = getrandom::u64()?;
    Ok(format!("{}-{random:016x}", std::process::id()))
}

/// Adopts orphans, and reaps them when they end. `None` if that is impossible.
fn adopt() -> Option<Handle> {
    let mut ends = Signals::new([SIGCHLD]).ok()?;
    let handle = ends.handle();
    let reap = move || ends.forever().for_each(|_| reap_adopted());
    thread::Builder::new().name("orphans".to_string()).spawn(reap).ok()?;
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    Some(handle)
}

/// Makes the guard.
fn fork(from: UnixStream, run: Option<&str>) -> Option<Pid> {
    // SAFETY: the child uses memory and the system only, by std and libc, which stay usable in the child of a process of
    // several threads (the C library sees to it that memory can be allocated). It holds no lock of ours and waits for none:
    // [`GUARDED`] is not looked at. It never returns, and so drops nothing and runs no handler of the host's.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => guard(from, run),
        pid => Pid::from_raw(pid),
    }
}

/// What the guard does.
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
    // SAFETY: it ends the process and nothing else.
    unsafe { libc::_exit(0) }
}

/// Closes what was open in the process that forked: its pipes must get their end when it ends.
fn close_all_but(kept: i32) {
    let names = fs::read_dir("/dev/fd").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let open: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd != kept) {
        // SAFETY: nothing in this process, which only watches from now on, owns or uses a descriptor but `kept`. Values
        // that would close them are never dropped.
        unsafe { libc::close(fd) };
    }
}
