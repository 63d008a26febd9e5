//! Processes that a command has started and not stopped: its process group, or the processes that carry its mark.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// The environment variable that marks commands which stay in this process's group. It contains marks separated by
/// colons.
pub const MARK: &str = "MILLSTREAM_RUN";

/// The time that a command has to exit before SIGTERM, and again before SIGKILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The interval at which remaining processes are checked.
const STEP: Duration = Duration::from_millis(10);

/// Processes that may still run after their command has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The processes of this group, whose leader has exited and has not been reaped.
    Group(Pid),
    /// The processes with this mark in their environment.
    Marked(String),
}

impl Left {
    /// Stops the processes with this signal. Processes that still run after `grace` are killed with SIGKILL.
    pub(super) fn end(&self, signal: Signal, grace: Duration) {
        end_all(std::slice::from_ref(self), signal, grace);
    }

    /// Sends this signal to the processes, except for processes that this process may not signal.
    pub(super) fn signal(&self, signal: Signal) {
        match self {
            Left::Group(group) => {
                let _ = rustix::process::kill_process_group(*group, signal);
            }
            Left::Marked(mark) => processes().into_iter().for_each(|pid| signal_marked(pid, mark, signal)),
        }
    }

    /// Returns whether one of the processes exists and is not a zombie.
    fn is_there(&self) -> bool {
        match self {
            Left::Group(group) => processes().into_iter().any(|pid| is_in_group(pid, *group)),
            Left::Marked(mark) => processes().into_iter().any(|pid| is_marked(pid, mark)),
        }
    }
}

/// Stops all of these processes with the signal `first`. Processes that still run after `grace` are killed.
pub(super) fn end_all(all: &[Left], first: Signal, grace: Duration) {
    if cfg!(not(target_os = "linux")) {
        // The operating system cannot list running processes.
        return all.iter().for_each(|left| left.signal(Signal::KILL));
    }
    // A process has no environment while it executes another program, so its mark is not seen then.
    let are_marked = all.iter().any(|left| matches!(left, Left::Marked(_)));
    let confirmations = if are_marked { 2 } else { 0 };
    let mut unseen = 0;
    for (signal, time) in [(first, grace), (Signal::KILL, PATIENCE)] {
        let start = Instant::now();
        let mut is_first = true;
        loop {
            let left: Vec<&Left> = all.iter().filter(|left| left.is_there()).collect();
            if left.is_empty() {
                if are_marked && start.elapsed() < time.min(PATIENCE) && processes().into_iter().any(is_executing) {
                    unseen = 0;
                } else if unseen == confirmations {
                    return;
                } else {
                    unseen += 1;
                }
                std::thread::sleep(STEP);
                continue;
            }
            unseen = 0;
            // A process may have started another one just before it was killed.
            if is_first || signal == Signal::KILL {
                left.iter().for_each(|left| left.signal(signal));
            }
            is_first = false;
            if start.elapsed() >= time {
                break;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Returns the numbers of all processes except this one.
fn processes() -> Vec<Pid> {
    let ours = rustix::process::getpid();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| Pid::from_raw(name.to_str()?.parse().ok()?));
    pids.filter(|pid| *pid != ours).collect()
}

fn is_in_group(pid: Pid, group: Pid) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(mut fields) = stat_fields(&stat) else { return false };
    let (state, of) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
    !matches!(state, b"Z" | b"X") && of == group.to_string().as_bytes()
}

/// Returns the fields of a process's `stat` file from its state on: the state, the parent, the group, and so on.
pub(super) fn stat_fields(stat: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    // The name, in parentheses, may contain any bytes.
    let end = memchr::memrchr(b')', stat)?;
    Some(stat[end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()))
}

/// Returns whether a process carries this mark. A zombie no longer has an environment.
fn is_marked(pid: Pid, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| {
        let marks = variable.strip_prefix(MARK.as_bytes()).and_then(|value| value.strip_prefix(b"="));
        marks.is_some_and(|marks| marks.split(|byte| *byte == b':').any(|other| other == mark.as_bytes()))
    })
}

/// Returns whether a process is executing another program, and so has neither arguments nor an environment. On a busy machine
/// this can take longer than a few steps.
fn is_executing(pid: Pid) -> bool {
    let is_empty = |name| fs::read(format!("/proc/{pid}/{name}")).is_ok_and(|bytes| bytes.is_empty());
    is_empty("environ") && is_empty("cmdline") && {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat_fields(&stat).into_iter().flatten();
        let (state, flags) = (fields.next().unwrap_or(b"X"), fields.nth(5).unwrap_or_default());
        let flags: u64 = std::str::from_utf8(flags).ok().and_then(|flags| flags.parse().ok()).unwrap_or(KERNEL_THREAD);
        !matches!(state, b"Z" | b"X") && flags & KERNEL_THREAD == 0
    }
}

/// The flag of threads of the kernel in `stat`, PF_KTHREAD of the kernel's sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(target_os = "linux")]
fn signal_marked(pid: Pid, mark: &str, signal: Signal) {
    if !is_marked(pid, mark) {
        return;
    }
    // The number may have been reused, so this checks again while it holds the process.
    if let Ok(pidfd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
        && is_marked(pid, mark)
    {
        let _ = rustix::process::pidfd_send_signal(pidfd, signal);
    }
}

#[cfg(not(target_os = "linux"))]
fn signal_marked(_: Pid, _: &str, _: Signal) {}
