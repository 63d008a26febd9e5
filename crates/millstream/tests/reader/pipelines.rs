//! Pipelines: every command must succeed.

use millstream::{Command, CommandStatus, ErrorKind, Reader, Stderr};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, Pull, drain, drain_whole};

fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script]).stderr(Stderr::Capture)
}

#[test]
fn all_commands_succeed() {
    for read_ahead in EVERY_READ_AHEAD {
        let commands = [sh("seq 200000"), sh("grep 7"), sh("tail -n 1")];
        let mut reader = Reader::builder().read_ahead(read_ahead).pipeline(commands).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"199997\n");
        let ends = reader.close().unwrap();
        assert_eq!(ends.len(), 3);
        assert!(ends.iter().all(|end| end.status.success()), "{ends:?}");
    }
}

#[test]
fn one_command_is_a_pipeline() {
    let mut reader = Reader::pipeline([["echo", "x"]]).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"x\n");
    assert_eq!(Reader::pipeline(Vec::<Command>::new()).unwrap_err().kind(), ErrorKind::InvalidOption);
}

/// If any command fails, the error names it, after all bytes that passed through.
#[test]
fn each_place_can_fail() {
    for read_ahead in EVERY_READ_AHEAD {
        for place in 0..3 {
            let commands = (0..3).map(|i| match (i, i == place) {
                (0, false) => sh("seq 1000"),
                (0, true) => sh("seq 1000; echo oops >&2; exit 3"),
                (_, false) => sh("cat"),
                (_, true) => sh("cat; echo oops >&2; exit 3"),
            });
            let mut reader = Reader::builder().read_ahead(read_ahead).pipeline(commands).unwrap();
            let (bytes, error) = drain(&mut reader, Pull::Batches);
            assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 1000);
            let error = error.unwrap_or_else(|| panic!("place {place}: no error"));
            assert_eq!(error.kind(), ErrorKind::CommandFailed);
            let end = error.command().unwrap();
            assert_eq!((end.status, &end.stderr_tail[..]), (CommandStatus::Exited(3), &b"oops\n"[..]));
            assert!(end.argv[2].to_str().unwrap().contains("exit 3"), "place {place}: {error}");
        }
    }
}

/// The right command dies, so the left one is killed by SIGPIPE: the error names the right one.
#[test]
fn the_cause_is_reported_not_its_consequence() {
    for read_ahead in EVERY_READ_AHEAD {
        let commands = [sh("exec yes"), sh("head -n 5; exit 9"), sh("cat")];
        let mut reader = Reader::builder().read_ahead(read_ahead).pipeline(commands).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Frames);
        assert_eq!(bytes, b"y\ny\ny\ny\ny\n");
        let error = error.unwrap();
        assert_eq!(error.command().unwrap().status, CommandStatus::Exited(9), "{error}");
    }
}

/// `yes | head`: the left command was killed because the right one needed no more input, and the right one succeeded.
#[test]
fn a_left_command_whose_reader_had_enough_has_not_failed() {
    // Either the command itself is killed by the signal, or a shell reports the signal.
    for left in ["exec yes", "yes; exit $?"] {
        let mut reader = Reader::pipeline([sh(left), sh("head -n 5")]).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"y\ny\ny\ny\ny\n");
        let status = reader.close().unwrap()[0].status;
        assert!([CommandStatus::Signaled(13), CommandStatus::Exited(141)].contains(&status), "{status:?}");

        let mut reader = Reader::pipeline([sh(left), sh("cat"), sh("head -n 1"), sh("cat")]).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"y\n");
        // A later command that is allowed to fail does not change this.
        let mut reader = Reader::pipeline([sh(left), sh("head -n 1; exit 3").allow_failure()]).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"y\n");
    }
}

/// No command after the last one can have stopped reading, while the reader reads.
#[test]
fn the_last_command_may_not_die_of_sigpipe() {
    for last in ["cat; kill -PIPE $$", "cat; exit 141"] {
        for commands in [vec![sh(last)], vec![sh("echo x"), sh(last)]] {
            let (_, error) = drain(&mut Reader::pipeline(commands).unwrap(), Pull::Frames);
            assert_eq!(error.unwrap().kind(), ErrorKind::CommandFailed, "{last}");
        }
    }
}

#[test]
fn a_command_that_cannot_start_leaves_no_other_running() {
    within_seconds(60, || {
        let commands = [Command::new(["sleep", "600"]), Command::new(["/no/such/program"])];
        let error = Reader::pipeline(commands).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommandNotStarted);
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    });
}

#[test]
fn a_shell_line_fails_if_any_part_does() {
    for read_ahead in EVERY_READ_AHEAD {
        let mut reader = Reader::builder().read_ahead(read_ahead).shell("(seq 3; exit 3) | cat | sort -r").unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Frames);
        assert_eq!(bytes, b"3\n2\n1\n");
        assert_eq!(error.unwrap().command().unwrap().status, CommandStatus::Exited(3));
    }
    let mut reader = Reader::shell("seq 3 | tail -n 1").unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"3\n");
}

#[test]
fn without_bash_a_shell_line_is_refused() {
    let no_path = ["sh", "-c", r#"PATH=; export PATH; exec "$0" "$@""#];
    alone("pipelines::without_bash_a_shell_line_is_refused", &no_path, || {
        let error = Reader::shell("seq 3 | cat").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("bash"), "{error}");
    });
}

#[test]
fn an_error_of_one_command_has_the_ends_of_all() {
    let commands = [vec!["sh", "-c", "echo x; exit 3"], vec!["cat"], vec!["cat"]];
    let mut reader = Reader::pipeline(commands).unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"x"[..]));
    assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::CommandFailed);
    let codes = |ends: &[millstream::CommandEnd]| ends.iter().map(|end| end.status).collect::<Vec<_>>();
    let all = [3, 0, 0].map(millstream::CommandStatus::Exited);
    assert_eq!(codes(reader.command_ends()), all);
    assert_eq!(reader.try_close().unwrap_err().kind(), ErrorKind::CommandFailed);
    assert_eq!(codes(reader.command_ends()), all);
}
