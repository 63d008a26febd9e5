//! Starting a process: the code that runs in the child before `exec`, and the signals of threads that write its input.
//!
//! A host program may block or ignore signals, as Julia and Python do. Commands must not inherit that, because they
//! could not be stopped. The child runs code of this crate only if the host does that, or if a guard is to be notified;
//! otherwise it is started with `posix_spawn`, which is faster.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{LazyLock, mpsc};

use rustix::process::Pid;

use super::children;
use super::guard::Watched;

/// Options for starting a command.
pub(super) struct Start {
    pub(super) guard: Option<Watched>,
    pub(super) ends_with_us: bool,
}

/// Ignored signals that a child continues to ignore, because `nohup` and shells protect background jobs this way.
const STAY_IGNORED: [i32; 6] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The highest signal number.
pub(super) const LAST_SIGNAL: i32 = 64;

impl Start {
    pub(super) fn spawn(self, mut command: Command) -> io::Result<Child> {
        let guard = self.guard.clone();
        if self.ends_with_us || guard.is_some() || signals_are_changed() {
            let (ends_with_us, parent) = (self.ends_with_us, rustix::process::getpid());
            let before = move || {
                reset_signals();
                if ends_with_us {
                    end_with(parent)?;
                }
                if let Some(guard) = &guard {
                    guard.starts();
                }
                Ok(())
            };
            // SAFETY: between fork and exec, a child of a multithreaded process may call only functions that are safe
            // in signal handlers. The calls below make system calls, through thin wrappers of libc or rustix, on memory
            // allocated before; they neither allocate nor lock.
            unsafe { command.pre_exec(before) };
        }
        let started = match self.ends_with_us {
            true => by_the_starter(command),
            false => spawn(command),
        };
        if let (Err(_), Some(guard)) = (&started, &self.guard) {
            guard.over();
        }
        started
    }
}

/// Starts the command. `command` holds this process's copies of the child's pipe ends, and is dropped afterwards: while
/// these copies are open, readers of the pipes never get the end of the data.
fn spawn(mut command: Command) -> io::Result<Child> {
    children::starting(|| command.spawn())
}

/// Starts the command on a thread that lives as long as the process, because the kernel treats the end of a child's
/// parent thread as the end of the parent.
fn by_the_starter(command: Command) -> io::Result<Child> {
    type Job = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: LazyLock<io::Result<mpsc::Sender<Job>>> = LazyLock::new(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        let work = move || {
            for (command, started) in jobs {
                let _ = started.send(spawn(command));
            }
        };
        std::thread::Builder::new().name("millstream-start".into()).spawn(work)?;
        Ok(sender)
    });
    let starter = STARTER.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (sender, started) = mpsc::channel();
    let gone = |_| io::Error::other("the thread that starts commands has ended");
    starter.send((command, sender)).map_err(|_| gone(mpsc::RecvError))?;
    started.recv().map_err(gone)?
}

/// Returns whether a child would start with blocked signals or non-default dispositions. (std resets the disposition of
/// SIGPIPE.)
fn signals_are_changed() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/thread-self/status") else { return true };
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(u64::MAX)
    };
    // Signals 32 and 33 are reserved by the C library, and programs cannot change them.
    let fine = STAY_IGNORED.iter().chain(&[libc::SIGPIPE, 32, 33]).fold(0, |fine, signal| fine | 1 << (signal - 1));
    set("SigBlk:") != 0 || set("SigIgn:") & !fine != 0
}

/// Gives ignored signals their default disposition, then unblocks all signals. (Handlers are reset automatically.)
fn reset_signals() {
    for signal in (1..=LAST_SIGNAL).filter(|signal| !STAY_IGNORED.contains(signal)) {
        // SAFETY: both structures are valid for these calls, which keep no pointer. For a signal without a disposition,
        // or with a fixed one, the calls fail and change nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
    // SAFETY: the set is valid for these calls; the first of them makes it an empty set.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Blocks all signals in this thread, which is one of the library: the threads of the program handle them, and writing to
/// a command that reads no more is an error even if the program does not ignore SIGPIPE.
pub(super) fn block_signals() {
    // SAFETY: the set is valid for these calls; the first of them fills it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// Lets the kernel kill this process when its parent ends. The parent may have ended already.
fn end_with(parent: Pid) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    let _ = parent;
    Ok(())
}
