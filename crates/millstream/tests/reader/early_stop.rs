//! The consumer stops before the end: no hang, no zombie and no orphan, for any behaviour of the command.

use std::thread;
use std::time::{Duration, Instant};

use millstream::frame::{Endian, LengthPrefixed, PrefixCounts, PrefixWidth};
use millstream::pipe::Pipe;
use millstream::{Command, CommandEnd, CommandStatus, ErrorKind, Reader, Stderr};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, every_mode};
use crate::processes::{assert_ends, exists};

/// Starts `script`, whose first line of output is its process id.
fn start(builder: millstream::ReaderBuilder, script: &str) -> (Reader, i32) {
    let mut reader = builder.command(Command::new(["sh", "-c", script]).stderr(Stderr::Capture)).unwrap();
    let line = reader.next_line().unwrap().unwrap();
    let pid = std::str::from_utf8(line).unwrap().parse().unwrap();
    assert!(exists(pid));
    (reader, pid)
}

/// Reads one line in each mode and closes. When `close` returns, the command must have ended.
fn close_early(script: &'static str) -> Vec<CommandEnd> {
    // These run in parallel, since some of them take two seconds.
    let each = every_mode().map(|mode| {
        thread::spawn(move || {
            within_seconds(60, move || {
                let (reader, pid) = start(mode.builder(), script);
                let closed = reader.close();
                let mut ends =
                    closed.unwrap_or_else(|error| panic!("{mode:?}: stopping early is not an error: {error}"));
                assert!(!exists(pid), "{mode:?}: still running after close");
                assert_eq!(ends.len(), 1);
                ends.remove(0)
            })
        })
    });
    let each: Vec<_> = each.collect();
    each.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn a_command_that_writes_indefinitely() {
    for end in close_early("echo $$; exec yes") {
        assert_eq!(end.status, CommandStatus::Signaled(13));
    }
}

#[test]
fn a_command_that_is_silent_gets_sigterm() {
    for end in close_early("echo $$; exec sleep 600") {
        assert_eq!(end.status, CommandStatus::Signaled(15));
    }
}

#[test]
fn a_command_that_ignores_sigterm_gets_sigkill() {
    for end in close_early("trap '' TERM; echo $$; exec sleep 600") {
        assert_eq!(end.status, CommandStatus::Signaled(9));
    }
}

#[test]
fn a_command_that_ignores_all_signals_it_can() {
    for end in close_early("trap '' TERM PIPE HUP INT; echo $$; while :; do echo more 2>/dev/null; done") {
        assert_eq!(end.status, CommandStatus::Signaled(9));
    }
}

#[test]
fn a_command_that_exits_when_its_output_closes_is_not_signalled() {
    // The command needs some time to clean up, and gets it.
    let script = "trap '' PIPE; echo $$; while echo more 2>/dev/null; do :; done; sleep 0.2; exit 5";
    for end in close_early(script) {
        assert_eq!(end.status, CommandStatus::Exited(5));
    }
}

#[test]
fn a_stopped_command_is_ended_too() {
    for end in close_early("echo $$; kill -STOP $$; exit 0") {
        assert!(matches!(end.status, CommandStatus::Signaled(_)), "{end:?}");
    }
}

#[test]
fn a_grandchild_that_holds_the_pipes_does_not_hold_close() {
    for read_ahead in EVERY_READ_AHEAD {
        let script = "sleep 600 & echo $!; echo $$; wait";
        let (grandchild, child) = within_seconds(60, move || {
            let builder = Reader::builder().read_ahead(read_ahead);
            let (mut reader, grandchild) = start(builder, script);
            let child = std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap();
            reader.close().unwrap();
            (grandchild, child)
        });
        assert!(!exists(child));
        // The process is the command's child. A command that must not leave a child process has to ensure that
        // itself.
        crate::processes::kill(grandchild);
        assert_ends(grandchild);
    }
}

/// A shell line starts processes that the user cannot name: stopping it stops all of them.
#[test]
fn a_shell_line_is_stopped_with_its_processes() {
    for read_ahead in EVERY_READ_AHEAD {
        let pids = within_seconds(60, move || {
            let line = "sleep 600 & echo $!; sleep 601 | sleep 602 & echo $!; echo $$; wait";
            let mut reader = Reader::builder().read_ahead(read_ahead).shell(line).unwrap();
            let pids =
                [(); 3].map(|()| std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap());
            reader.close().unwrap();
            pids
        });
        for pid in pids {
            assert_ends(pid);
        }
    }
}

#[test]
fn every_command_of_a_pipeline_is_stopped() {
    for read_ahead in EVERY_READ_AHEAD {
        within_seconds(60, move || {
            let commands =
                ["echo $$; exec sleep 600", "echo $$; cat; trap '' TERM; exec sleep 600", "echo $$; exec cat"];
            let commands = commands.map(|script| Command::new(["sh", "-c", script]));
            let mut reader = Reader::builder().read_ahead(read_ahead).pipeline(commands).unwrap();
            let mut pids = Vec::new();
            for _ in 0..3 {
                pids.push(std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap());
            }
            assert_eq!(reader.close().unwrap().len(), 3);
            for pid in pids {
                assert!(!exists(pid));
            }
        });
    }
}

#[test]
fn dropping_is_like_closing_without_a_report() {
    for script in ["echo $$; exec yes", "echo $$; exec sleep 600", "trap '' TERM; echo $$; exec sleep 600"] {
        for read_ahead in EVERY_READ_AHEAD {
            let pid = within_seconds(60, move || start(Reader::builder().read_ahead(read_ahead), script).1);
            assert_ends(pid);
        }
    }
}

/// SIGTERM is sent after a second, not immediately. A command that exits by itself causes no delay.
#[test]
fn only_commands_that_keep_running_are_waited_for() {
    let (reader, _) = start(Reader::builder(), "trap 'sleep 0.2; exit 4' TERM; echo $$; while :; do sleep 0.1; done");
    let start_of_close = Instant::now();
    let ends = reader.close().unwrap();
    assert_eq!(ends[0].status, CommandStatus::Exited(4));
    assert!(start_of_close.elapsed() >= Duration::from_secs(1), "{:?}", start_of_close.elapsed());
}

/// Closes before the first byte, even before the command has started to run.
#[test]
fn closing_at_once() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let reader = mode.builder().command(["yes"]).unwrap();
            let ends = reader.close().unwrap();
            assert!(!ends[0].status.success());
        });
    }
}

/// If reading stops early, a failure of the source is ignored. The test is a race between the command and the reader,
/// so it is repeated 200 times.
#[test]
fn a_command_that_fails_after_enough_was_read_is_no_error() {
    for round in 0..200 {
        let read_ahead = EVERY_READ_AHEAD[round % EVERY_READ_AHEAD.len()];
        let reader = || Reader::builder().read_ahead(read_ahead).command(["sh", "-c", "seq 2; exit 3"]).unwrap();
        if round % 8 < 2 {
            thread::sleep(Duration::from_millis(5));
        }
        match round % 4 {
            0 => {
                let mut reader = reader();
                assert_eq!(reader.next_line().unwrap(), Some(&b"1"[..]));
                reader.close().unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
            1 => {
                let mut reader = reader();
                assert_eq!(reader.next_line().unwrap(), Some(&b"1"[..]));
                assert_eq!(reader.next_line().unwrap(), Some(&b"2"[..]));
                thread::sleep(Duration::from_millis(5));
                reader.close().unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
            // The pipe takes the first record, or all of them: a pipe that has enough records requests no more.
            take => {
                let mut pipe = Pipe::from(reader()).lines().take(take as u64 - 1);
                let summary = pipe.run().unwrap_or_else(|error| panic!("round {round}: {error}"));
                assert_eq!((summary.items, summary.ended_early), (take as u64 - 1, true));
                assert_eq!(summary.commands.len(), 1, "the status is in the summary");
                pipe.close().unwrap();
            }
        }
        let error = Pipe::from(reader()).lines().take(3).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommandFailed, "one record more than exists is requested");
    }
}

/// Stages that hold items back must not affect the result.
#[test]
fn a_pipe_with_threads_stops_early_too() {
    for round in 0..200 {
        let reader = Reader::command(["sh", "-c", "seq 2; exit 3"]).unwrap();
        let mut pipe = Pipe::from(reader).lines().parallel(2, |stages| stages.map(<[u8]>::to_vec)).take(2);
        assert_eq!(pipe.collect().unwrap_or_else(|error| panic!("round {round}: {error}")), [b"1", b"2"]);
    }
}

#[test]
fn closing_reports_a_failure_again() {
    for mode in every_mode() {
        let mut reader = mode.builder().command(["sh", "-c", "echo one; exit 3"]).unwrap();
        while reader.next_line().unwrap_or(None).is_some() {}
        let error = reader.close().unwrap_err();
        assert_eq!(error.command().unwrap().status, CommandStatus::Exited(3), "{mode:?}");
    }
    let mut pipe = Pipe::from(Reader::command(["sh", "-c", "echo one; exit 3"]).unwrap()).lines();
    let first = pipe.run().unwrap_err();
    assert_eq!(pipe.run().unwrap_err().kind(), ErrorKind::Closed, "the result does not look like a success");
    assert_eq!(pipe.close().unwrap_err().to_string(), first.to_string());
}

/// An invalid record ends the stream, but not the command: closing stops it, and reports the record again.
#[test]
fn closing_after_a_bad_record() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let mut reader = mode.builder().command(["sh", "-c", "printf '\\0'; exec sleep 600"]).unwrap();
            let mut framer = LengthPrefixed::new(PrefixWidth::U8, Endian::Big).counts(PrefixCounts::Itself);
            assert_eq!(reader.next_frame(&mut framer).unwrap_err().kind(), ErrorKind::LengthInvalid);
            assert_eq!(reader.next_frame(&mut framer).unwrap(), None);
            assert_eq!(reader.try_close().unwrap_err().kind(), ErrorKind::LengthInvalid);
            let ends = reader.command_ends();
            assert_eq!(ends.len(), 1, "{mode:?}");
            assert_eq!(ends[0].status, CommandStatus::Signaled(15));
        });
    }
}

/// The pipes of one command must not be inherited by another one that is started at the same time, because neither
/// would reach its end.
#[test]
fn commands_of_many_threads_do_not_hold_each_other() {
    within_seconds(120, || {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                thread::spawn(move || {
                    for read_ahead in EVERY_READ_AHEAD.into_iter().cycle().take(30) {
                        let builder = || Reader::builder().read_ahead(read_ahead);
                        let mut whole = builder().command(["echo", "x"]).unwrap();
                        let mut early = builder().command(["yes"]).unwrap();
                        early.next_line().unwrap();
                        assert_eq!(early.close().unwrap()[0].status, CommandStatus::Signaled(13), "thread {i}");
                        assert_eq!(whole.next_line().unwrap(), Some(&b"x"[..]));
                        assert_eq!(whole.next_line().unwrap(), None);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Processes that a shell line started belong to it, even if they ignore SIGTERM and the shell does not.
#[test]
fn a_shell_line_leaves_no_process_that_ignores_sigterm() {
    within_seconds(60, || {
        let line = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done; :'; true";
        let mut reader = Reader::shell(line).unwrap();
        let inner = std::str::from_utf8(reader.next_line().unwrap().unwrap()).unwrap().parse().unwrap();
        assert!(exists(inner));
        reader.close().unwrap();
        assert_ends(inner);
    });
}
