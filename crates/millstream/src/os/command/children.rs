//! The child processes of this process that are commands. Adopted processes are reaped on request. Each command is
//! reaped by the code that waits for it, and its process ID must not be reused before that.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The child processes that are commands. The lock is held while a child is created or reaped.
static CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn children() -> MutexGuard<'static, BTreeSet<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `start`, which creates a child process.
pub(super) fn starting(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut children = children();
    let child = start()?;
    children.insert(child.id());
    Ok(child)
}

/// Runs `reap`, after which the child's number may be reused.
pub(super) fn reaping<T>(child: &Child, reap: impl FnOnce() -> T) -> T {
    let mut children = children();
    let reaped = reap();
    children.remove(&child.id());
    reaped
}

/// Reaps children that are not commands.
pub(super) fn reap_others() {
    let ours = children();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    for list in lists {
        for pid in list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()) {
            if let Some(pid) = Pid::from_raw(pid).filter(|pid| !ours.contains(&(pid.as_raw_nonzero().get() as u32))) {
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
    }
}
