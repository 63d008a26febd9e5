//! Commands start as if their host had changed no signal handling, and are stopped together with the processes that
//! they have started.

use std::time::{Duration, Instant};

use millstream::{CancelToken, Command, CommandStatus, ErrorKind, Reader, Stderr, Writer};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::EVERY_READ_AHEAD;
use crate::processes::{assert_ends, children, exists, kill};

/// The state of a command's own signals: which are blocked, and which are ignored.
fn signals_of(command: Command) -> [u64; 2] {
    let mut reader = Reader::command(command).unwrap();
    let mut sets = [u64::MAX; 2];
    while let Some(line) = reader.next_line().unwrap() {
        let line = std::str::from_utf8(line).unwrap();
        for (set, name) in sets.iter_mut().zip(["SigBlk:", "SigIgn:"]) {
            if let Some(text) = line.strip_prefix(name) {
                *set = u64::from_str_radix(text.trim(), 16).unwrap();
            }
        }
    }
    // No program can change these signals, because they belong to the C library.
    sets.map(|set| set & !(0b11 << 31))
}

/// Asserts that at least one of up to five calls takes less than `limit`: a busy machine can delay some calls, but code that
/// waits for `limit` delays all.
fn assert_once_within(limit: Duration, mut call: impl FnMut()) {
    let mut times = vec![];
    for _ in 0..5 {
        let start = Instant::now();
        call();
        times.push(start.elapsed());
        if start.elapsed() < limit {
            return;
        }
    }
    panic!("not once within {limit:?}: {times:?}");
}

#[test]
fn the_hosts_signal_handling_is_not_inherited() {
    let changed = ["env", "--block-signal=INT,QUIT,ABRT,USR1,TERM", "--ignore-signal=TERM,USR2,XFSZ,CHLD,PIPE"];
    alone("signals::the_hosts_signal_handling_is_not_inherited", &changed, || {
        let ours = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(!ours.contains("SigBlk:\t0000000000000000"), "nothing is blocked");
        // The status of a command is unknown if SIGCHLD is ignored, which another test checks.
        let cat = || Command::new(["cat", "/proc/self/status"]).allow_failure();
        for command in [cat(), cat().ends_with_us()] {
            assert_eq!(signals_of(command), [0, 0]);
        }
        within_seconds(20, || {
            // If SIGTERM had no effect, SIGKILL would follow after two seconds.
            assert_once_within(Duration::from_millis(1900), || {
                let _ = Reader::command(["sleep", "600"]).unwrap().try_close();
            });
        });
    });
}

/// `nohup` and shells let a command ignore signals of the terminal, and its children ignore them as well.
#[test]
fn ignored_signals_of_background_jobs_stay_ignored() {
    let nohup = ["env", "--ignore-signal=HUP,INT,QUIT,ALRM"];
    alone("signals::ignored_signals_of_background_jobs_stay_ignored", &nohup, || {
        assert_eq!(signals_of(Command::new(["cat", "/proc/self/status"])), [0, 0b111]);
    });
}

/// Starts `script`, which prints the id of a process that it leaves running, and returns that id.
fn left_by(builder: millstream::ReaderBuilder, script: &str) -> (Reader, i32) {
    let mut reader = builder.command(Command::new(["sh", "-c", script]).stderr(Stderr::Capture)).unwrap();
    let pid = std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap();
    (reader, pid)
}

/// Tests may run with or without a terminal; `setsid` removes it.
fn without_terminal(test: &str, body: impl FnOnce()) {
    alone(test, &["setsid", "--wait"], body);
}

#[test]
fn a_failure_stops_the_started_processes() {
    without_terminal("signals::a_failure_stops_the_started_processes", || {
        for read_ahead in EVERY_READ_AHEAD {
            for left in ["sleep 600", "trap '' TERM; while :; do sleep 0.1; done", "exec setsid --fork true; sleep 600"]
            {
                let script = format!("(exec >/dev/null; {left}) & echo $!; exit 3");
                let (mut reader, pid) = left_by(Reader::builder().read_ahead(read_ahead), &script);
                let error = reader.next_line().unwrap_err();
                assert_eq!(error.command().unwrap().status, CommandStatus::Exited(3));
                assert_ends(pid);
            }
        }
        // In a pipeline, the processes of all commands are stopped, whichever fails.
        let quiet = "(exec >/dev/null; exec sleep 600) & echo $!";
        let commands = [quiet.to_string(), "cat; exit 3".to_string(), format!("cat; {quiet}")];
        let mut reader = Reader::pipeline(commands.map(|script| Command::new(["sh", "-c", &script]))).unwrap();
        let pids =
            [(); 2].map(|()| std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap());
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::CommandFailed);
        pids.into_iter().for_each(assert_ends);
        // The processes of a command that is a sink are stopped, too.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        let script = "sleep 600 >/dev/null 2>&1 & echo $! > \"$0\"; exit 3";
        let writer = Writer::command(Command::new(["sh", "-c", script]).arg(&path)).unwrap();
        assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::CommandFailed);
        assert_ends(std::fs::read_to_string(path).unwrap().trim().parse().unwrap());
    });
}

#[test]
fn stopping_and_cancelling_stop_the_started_processes() {
    without_terminal("signals::stopping_and_cancelling_stop_the_started_processes", || {
        within_seconds(120, || {
            // Its background process holds the pipe, and the command itself may have exited.
            let scripts = ["sleep 600 & echo $!; exit 0", "sleep 600 & echo $!; wait", "sleep 600 & echo $!; exec yes"];
            for (read_ahead, script) in EVERY_READ_AHEAD.into_iter().zip(scripts) {
                let (reader, pid) = left_by(Reader::builder().read_ahead(read_ahead), script);
                reader.close().unwrap();
                assert_ends(pid);
            }
            let token = CancelToken::new().unwrap();
            let (mut reader, pid) = left_by(Reader::builder().cancel(&token), "sleep 600 & echo $!; exit 0");
            token.cancel();
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Cancelled);
            drop(reader);
            assert_ends(pid);
        });
    });
}

#[test]
fn success_stops_no_process() {
    without_terminal("signals::success_stops_no_process", || {
        // A pipe that a background process holds open is read to its end.
        let mut reader = Reader::command(["sh", "-c", "(sleep 0.2; echo late) & echo early; exit 0"]).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"early"[..]));
        assert_eq!(reader.next_line().unwrap(), Some(&b"late"[..]));
        assert_eq!(reader.next_line().unwrap(), None);
        for command in [
            Command::new(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]),
            Command::new(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; exit 3"]).allow_failure(),
        ] {
            let mut reader = Reader::command(command).unwrap();
            let pid = std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap();
            assert_eq!(reader.next_line().unwrap(), None);
            reader.close().unwrap();
            assert!(exists(pid));
            kill(pid);
        }
    });
}

/// A finalizer must not delay its program.
#[test]
fn aborting_does_not_wait_and_leaves_no_process() {
    without_terminal("signals::aborting_does_not_wait_and_leaves_no_process", || {
        within_seconds(60, || {
            // Waiting for a command that ignores SIGTERM would take two seconds.
            let limit = Duration::from_millis(1500);
            let mut pids = vec![];
            for read_ahead in EVERY_READ_AHEAD {
                let ignores = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.1; done";
                let mut readers =
                    [(); 5].map(|()| left_by(Reader::builder().read_ahead(read_ahead), ignores)).into_iter();
                assert_once_within(limit, || {
                    let (mut reader, pid) = readers.next().expect("five calls");
                    reader.abort();
                    drop(reader);
                    pids.push(pid);
                });
            }
            pids.into_iter().for_each(assert_ends);
            assert_once_within(limit, || {
                let mut writer = Writer::command(["sleep", "600"]).unwrap();
                writer.abort();
                drop(writer);
            });
            while !children().is_empty() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    });
}

/// With [`Command::ends_with_us`], a command ends when its parent process ends for any reason, but not when the
/// thread that started it ends.
#[test]
fn a_command_can_end_with_its_parent() {
    if std::env::var_os("MILLSTREAM_TEST_PARENT").is_some() {
        let command = Command::new(["sh", "-c", "echo $$; exec sleep 600"]).ends_with_us();
        let mut reader = std::thread::spawn(|| Reader::command(command).unwrap()).join().unwrap();
        let pid = String::from_utf8(reader.next_line().unwrap().unwrap().to_vec()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(exists(pid.parse().unwrap()), "it ended with the thread");
        println!("pid {pid}");
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    let test = "signals::a_command_can_end_with_its_parent";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("MILLSTREAM_TEST_PARENT", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pid = text.split("pid ").nth(1).and_then(|rest| rest.split_whitespace().next());
    assert_ends(pid.unwrap_or_else(|| panic!("{text}")).parse().unwrap());
}
