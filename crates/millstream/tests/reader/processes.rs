//! Asks the system which processes, threads and file descriptors are still there.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Whether a process exists, be it as a zombie.
pub fn exists(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// Panics unless the process goes away within a few seconds.
pub fn assert_goes(pid: i32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while exists(pid) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        assert!(Instant::now() < deadline, "process {pid} is still there:\n{status}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose parent we are, zombies included.
pub fn children() -> Vec<i32> {
    let ours = std::process::id().to_string();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything; the parent is the second field after it.
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)) == Some(&ours)
    };
    pids.filter(is_child).collect()
}

/// How many file descriptors we hold.
pub fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many threads we have.
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Ends a process that a test has left to itself on purpose.
pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
