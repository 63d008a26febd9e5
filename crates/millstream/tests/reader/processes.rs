//! Finds out which processes, threads and file descriptors still exist.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Returns whether a process exists, even as a zombie.
pub fn exists(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// Panics unless the process ends within a few seconds.
pub fn assert_ends(pid: i32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while exists(pid) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        assert!(Instant::now() < deadline, "process {pid} still exists:\n{status}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the child processes of this process, including zombies.
pub fn children() -> Vec<i32> {
    let ours = std::process::id().to_string();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain any bytes; the parent is the second field after it.
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)) == Some(&ours)
    };
    pids.filter(is_child).collect()
}

/// Returns the number of open file descriptors of this process.
pub fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the number of threads of this process.
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Ends a process that a test has left running on purpose.
pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
