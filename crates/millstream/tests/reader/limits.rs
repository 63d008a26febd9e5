//! The limits of a command: the time it may take in total, how it is stopped, and which exits are successes.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use millstream::{Command, CommandStatus, Error, ErrorKind, ProcessGroup, Reader, ReaderBuilder, Stderr};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, Pull, drain, drain_whole, every_mode};
use crate::processes::{assert_ends, exists, kill};
use crate::sample;

/// A limit that no command can keep if it does not end.
const SOON: Duration = Duration::from_millis(50);

/// A limit within which a command starts and writes its first bytes, even on a slow machine.
const AMPLE: Duration = Duration::from_secs(2);

fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script]).stderr(Stderr::Capture)
}

fn next_pid(reader: &mut Reader) -> i32 {
    std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap()
}

fn assert_timed_out(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("the total timeout"), "{error}");
}

/// Runs each of these cases on a thread, because they take time.
fn in_parallel<T: Send + 'static>(cases: impl IntoIterator<Item = T>, run: fn(T)) {
    let threads: Vec<_> =
        cases.into_iter().map(|case| thread::spawn(move || within_seconds(60, move || run(case)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A stall timeout would not end it.
#[test]
fn a_command_that_always_delivers_is_timed_out() {
    in_parallel(every_mode(), |mode| {
        let mut reader = mode.builder().total_timeout(SOON).command(["yes"]).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Batches);
        assert!(bytes.chunks(2).all(|line| line == b"y\n"), "{mode:?}");
        assert_timed_out(&error.unwrap());
        assert_eq!(reader.next_line().unwrap(), None);
    });
}

/// All of the data comes first, whatever the command is doing instead of ending.
#[test]
fn a_command_that_does_not_end_is_timed_out() {
    let scripts = ["echo one; echo two; exec sleep 600", "echo one; echo two; exec >&-; exec sleep 600"];
    let cases = scripts.into_iter().flat_map(|script| {
        let pulls = [Pull::Fill, Pull::Frames, Pull::Batches].into_iter();
        pulls.flat_map(move |pull| EVERY_READ_AHEAD.map(|read_ahead| (script, pull, read_ahead)))
    });
    in_parallel(cases, |(script, pull, read_ahead)| {
        let builder = Reader::builder().read_ahead(read_ahead).total_timeout(AMPLE);
        let command = sh(script).stop_grace(Duration::ZERO);
        let mut reader = builder.stall_timeout(Duration::from_secs(50)).command(command).unwrap();
        let (bytes, error) = drain(&mut reader, pull);
        assert_eq!(bytes, b"one\ntwo\n", "{read_ahead:?} {pull:?}");
        assert_timed_out(&error.unwrap());
    });
}

#[test]
fn the_shorter_timeout_is_reported() {
    let (long, short) = (Duration::from_secs(100), Duration::from_millis(30));
    for read_ahead in EVERY_READ_AHEAD {
        within_seconds(60, move || {
            let stop = || sh("exec sleep 600").stop_grace(Duration::ZERO);
            let builder = || Reader::builder().read_ahead(read_ahead);
            let mut reader = builder().total_timeout(long).stall_timeout(short).command(stop()).unwrap();
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Stalled);
            let mut reader = builder().total_timeout(short).stall_timeout(long).command(stop()).unwrap();
            assert!(reader.wait_limit().unwrap() <= short);
            assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::TimedOut);
        });
    }
}

/// Reading never waits for these sources, but the consumer may be too slow.
#[test]
fn sources_without_waits_are_timed_out_too() {
    let directory = sample::directory();
    let data = Arc::new(sample::lines(40 << 20));
    let path = sample::file(&directory, "data", &data);
    type Open = fn(ReaderBuilder, &Path) -> Result<Reader, Error>;
    let opens: [Open; 3] = [
        |builder, path| builder.path(path),
        |builder, path| builder.mapped(path),
        |builder, path| builder.memory(std::fs::read(path).unwrap()),
    ];
    let cases = EVERY_READ_AHEAD.into_iter().flat_map(|read_ahead| opens.map(|open| (read_ahead, open)));
    let cases = cases.map(|(read_ahead, open)| (read_ahead, open, path.clone(), data.clone()));
    in_parallel(cases, |(read_ahead, open, path, data)| {
        let builder = Reader::builder().total_timeout(AMPLE).read_ahead(read_ahead);
        let mut reader = open(builder, &path).unwrap();
        let first = reader.next_line().unwrap().unwrap().len();
        thread::sleep(AMPLE);
        let (bytes, error) = drain(&mut reader, Pull::Batches);
        assert!(bytes == data[first + 1..][..bytes.len()], "{read_ahead:?}: other bytes");
        assert!(!bytes.is_empty(), "{read_ahead:?}: what was read before comes first");
        assert_timed_out(&error.unwrap());
    });
}

#[test]
fn a_stream_that_is_complete_in_time_succeeds() {
    for mode in every_mode() {
        let mut reader = mode.builder().total_timeout(Duration::MAX).command(["seq", "3"]).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"1\n2\n3\n");
        // The consumer may take its time after the end has been read.
        let mut reader = mode.builder().total_timeout(Duration::from_secs(60)).command(["seq", "3"]).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Fill), b"1\n2\n3\n");
        reader.close().unwrap();
    }
    let error = Reader::builder().total_timeout(Duration::ZERO).command(["true"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}

#[test]
fn the_signal_that_stops_a_command_can_be_chosen() {
    within_seconds(60, || {
        let script = "trap 'exit 7' INT; trap 'exit 8' TERM; echo $$; while :; do sleep 0.05; done";
        for (signal, status) in [(2, 7), (15, 8)] {
            let mut reader = Reader::command(sh(script).stop_signal(signal)).unwrap();
            next_pid(&mut reader);
            assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Exited(status));
        }
    });
}

#[test]
fn the_grace_period_can_be_chosen() {
    within_seconds(60, || {
        // It needs longer than the second that it has by default.
        let script = "trap 'sleep 1.3; exit 8' TERM; echo $$; while :; do sleep 0.05; done";
        let mut reader = Reader::command(sh(script).stop_grace(Duration::MAX)).unwrap();
        next_pid(&mut reader);
        assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Exited(8));
        // Without a grace period, it has no time for its handler.
        let mut reader = Reader::command(sh(script).stop_grace(Duration::ZERO)).unwrap();
        let pid = next_pid(&mut reader);
        assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Signaled(9));
        assert!(!exists(pid));
    });
}

/// The command would exit by itself if it were not signalled at once: its next write fails, or its pipe is closed.
#[test]
fn a_time_limit_signals_the_command_immediately() {
    type Open = fn(ReaderBuilder) -> ReaderBuilder;
    let limits: [(Open, ErrorKind); 2] = [
        (|builder| builder.stall_timeout(AMPLE), ErrorKind::Stalled),
        (|builder| builder.total_timeout(AMPLE), ErrorKind::TimedOut),
    ];
    // The second one closes its output, so that the reader waits for its exit.
    let scripts = ["", "exec >&-;"];
    let cases = limits.into_iter().flat_map(|(limit, kind)| {
        scripts.into_iter().flat_map(move |script| EVERY_READ_AHEAD.map(|ahead| (limit, kind, script, ahead)))
    });
    in_parallel(cases, |(limit, kind, script, read_ahead)| {
        let directory = sample::directory();
        let signalled = directory.path().join("signalled");
        let script = format!("trap 'echo > \"$0\"; exit 8' TERM; echo a; {script} while :; do sleep 0.05; done");
        let command = sh(&script).arg(&signalled).stop_grace(Duration::MAX);
        let mut reader = limit(Reader::builder().read_ahead(read_ahead)).command(command).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Frames);
        assert_eq!((&bytes[..], error.unwrap().kind()), (&b"a\n"[..], kind));
        while !signalled.exists() {
            thread::sleep(Duration::from_millis(5)); // before the reader is closed
        }
        // The error has been reported, so what remains is how the command ended.
        assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Exited(8));
    });
}

/// The program may keep the reader for a long time after the error.
#[test]
fn a_command_that_ignores_the_signal_of_a_time_limit_is_killed_while_its_reader_is_open() {
    in_parallel(EVERY_READ_AHEAD, |read_ahead| {
        // A child of it ignores the signal, too.
        let script = "trap '' TERM; sleep 600 & echo $!; echo $$; while :; do sleep 600; done";
        let command = sh(script).stop_grace(SOON);
        let mut reader = Reader::builder().read_ahead(read_ahead).stall_timeout(AMPLE).command(command).unwrap();
        let pids = [next_pid(&mut reader), next_pid(&mut reader)];
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Stalled);
        pids.into_iter().for_each(assert_ends);
        assert_eq!(reader.next_line().unwrap(), None);
        assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Signaled(9));
    });
}

/// Only an event loop, which waits by itself, notices this limit.
#[test]
fn a_limit_that_an_event_loop_notices_signals_the_command_and_is_reported_by_close() {
    within_seconds(60, || {
        let script = "trap 'exit 8' TERM; echo a; while :; do sleep 0.05; done";
        let open = || {
            let mut reader =
                Reader::builder().stall_timeout(AMPLE).command(sh(script).stop_grace(Duration::MAX)).unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"a"[..]));
            reader.stall();
            reader
        };
        let mut reader = open();
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::Stalled);
        assert_eq!(reader.close().unwrap()[0].status, CommandStatus::Exited(8));
        let mut reader = open();
        assert_eq!(reader.try_close().unwrap_err().kind(), ErrorKind::Stalled);
        assert_eq!(reader.command_ends()[0].status, CommandStatus::Exited(8));
        reader.try_close().unwrap();
    });
}

#[test]
fn the_process_group_can_be_chosen() {
    for (group, is_stopped) in [(ProcessGroup::Own, true), (ProcessGroup::Inherit, false)] {
        within_seconds(60, move || {
            let command = sh("sleep 600 >&- 2>&- & echo $!; wait").process_group(group).stop_grace(Duration::ZERO);
            let mut reader = Reader::command(command).unwrap();
            let child = next_pid(&mut reader);
            reader.close().unwrap();
            if !is_stopped {
                assert!(exists(child));
                kill(child);
            }
            assert_ends(child);
        });
    }
}

#[test]
fn successes_can_be_listed() {
    let cases: [(Command, bool); 8] = [
        (sh("echo x; exit 1").success_statuses([0, 1]), true),
        (sh("echo x; exit 0").success_statuses([0, 1]), true),
        (sh("echo x; exit 2").success_statuses([0, 1]), false),
        (sh("echo x; exit 0").success_statuses([1]), false),
        (sh("echo x; kill -TERM $$").success_statuses([0, 15, 143]), false),
        (sh("echo x; kill -TERM $$").success_signals([9, 15]), true),
        (sh("echo x; exit 0").success_signals([9, 15]), true),
        (sh("echo x; exit 15").success_signals([9, 15]), false),
    ];
    for (command, succeeds) in cases {
        let shown = format!("{command:?}");
        let mut reader = Reader::command(command).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Frames);
        assert_eq!((&bytes[..], error.is_none()), (&b"x\n"[..], succeeds), "{shown}");
        if let Some(error) = error {
            assert_eq!(error.kind(), ErrorKind::CommandFailed, "{shown}");
        }
    }
    let error = Reader::command(sh("exit 2").success_statuses([0, 1])).unwrap().next_line().unwrap_err();
    assert!(error.to_string().contains("exited with status 2: expected exit status 0 or 1"), "{error}");
}

/// Each command of a pipeline has its own list.
#[test]
fn each_command_of_a_pipeline_has_its_own_successes() {
    let pipeline = |first: Command, last: Command| {
        let mut reader = Reader::pipeline([first, last]).unwrap();
        drain(&mut reader, Pull::Frames).1.map(|error| error.command().unwrap().status)
    };
    let fails = || sh("echo x; exit 3");
    assert_eq!(pipeline(fails().success_statuses([3]), sh("cat; exit 4").success_statuses([4])), None);
    assert_eq!(pipeline(fails(), sh("cat").success_statuses([0, 3])), Some(CommandStatus::Exited(3)));
    assert_eq!(pipeline(fails().success_statuses([3]), sh("cat; exit 3")), Some(CommandStatus::Exited(3)));
}

/// Nothing has been started: the first command of each pipeline would leave a file.
#[test]
fn options_that_cannot_be_are_refused_before_a_command_starts() {
    let directory = sample::directory();
    let started = directory.path().join("started");
    let shell = |group| Command::shell("true").unwrap().process_group(group);
    let wrong = [
        sh("true").success_statuses([]),
        sh("true").success_statuses([256]),
        sh("true").success_statuses([-1]),
        sh("true").success_signals([0]),
        sh("true").success_signals([65]),
        sh("true").stop_signal(0),
        sh("true").stop_signal(99),
        sh("true").allow_failure().success_statuses([0, 1]),
        shell(ProcessGroup::Inherit),
    ];
    for wrong in wrong {
        let shown = format!("{wrong:?}");
        let touch = Command::new(["touch"]).arg(&started);
        let error = Reader::pipeline([touch, wrong]).err().unwrap_or_else(|| panic!("accepted: {shown}"));
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{shown}");
    }
    assert!(!started.exists());
}
