//! A command's standard error is forwarded immediately and never causes a hang, and its last 4 KiB are in the error.

use std::fs::File;
use std::thread;
use std::time::Duration;

use millstream::{Command, CommandStatus, Reader, Stderr};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::{EVERY_READ_AHEAD, Pull, drain};
use crate::processes;
use crate::sample;

/// Writes 5 MB to standard error, then creates the file `$1`, then writes a line.
const FLOOD: &str = r#"head -c 5000000 "$0" >&2; : >"$1"; echo done; exit 3"#;

#[test]
fn unread_standard_error_never_blocks_and_its_tail_is_kept() {
    for read_ahead in EVERY_READ_AHEAD {
        within_seconds(60, move || {
            let directory = sample::directory();
            let noise = sample::lines(5_000_000);
            let path = sample::file(&directory, "noise", &noise);
            let flooded = directory.path().join("flooded");
            let argv = ["sh".as_ref(), "-c".as_ref(), FLOOD.as_ref(), path.as_os_str(), flooded.as_os_str()];
            let command = Command::new(argv).stderr(Stderr::Capture);
            let mut reader = Reader::builder().read_ahead(read_ahead).command(command).unwrap();
            // The reader is not used in the meantime; a pipe would be full after 64 KiB or 1 MiB.
            while !flooded.exists() {
                thread::sleep(Duration::from_millis(2));
            }
            let (bytes, error) = drain(&mut reader, Pull::Frames);
            assert_eq!(bytes, b"done\n");
            let error = error.unwrap();
            let end = error.command().unwrap();
            assert_eq!(end.status, CommandStatus::Exited(3));
            assert!(end.stderr_tail == noise[noise.len() - 4096..], "{} bytes", end.stderr_tail.len());
        });
    }
}

#[test]
fn a_short_standard_error_is_kept_whole() {
    let command = Command::new(["sh", "-c", "printf 'a\\nb' >&2; exit 1"]).stderr(Stderr::Capture);
    let (_, error) = drain(&mut Reader::command(command).unwrap(), Pull::Frames);
    let error = error.unwrap();
    assert_eq!(error.command().unwrap().stderr_tail, b"a\nb");
    assert!(error.to_string().contains("last line of standard error: b"), "{error}");
}

#[test]
fn how_much_is_kept_can_be_set() {
    // More than a pipe and than the pieces that are read; in pieces of which some are longer than the limit.
    let noise = sample::lines(200_000);
    let directory = sample::directory();
    let path = sample::file(&directory, "noise", &noise);
    for limit in [0, 1, 4095, 100_000, 199_999, 200_000, 200_001, usize::MAX] {
        let argv = ["sh".as_ref(), "-c".as_ref(), r#"cat "$0" >&2; exit 1"#.as_ref(), path.as_os_str()];
        let command = Command::new(argv).stderr(Stderr::Capture).stderr_limit(limit);
        let (_, error) = drain(&mut Reader::command(command).unwrap(), Pull::Frames);
        let tail = &error.as_ref().unwrap().command().unwrap().stderr_tail;
        assert!(tail[..] == noise[noise.len().saturating_sub(limit)..], "{limit}: {} bytes", tail.len());
    }
}

#[test]
fn forward_shows_all_of_it_and_keeps_the_tail() {
    let output = alone("stderr::forward_shows_all_of_it_and_keeps_the_tail", &[], || {
        let argv = ["sh", "-c", "yes noise | head -c 3000000 >&2; echo last words >&2; exit 3"];
        let (_, error) = drain(&mut Reader::command(argv).unwrap(), Pull::Frames);
        let error = error.unwrap();
        let tail = &error.command().unwrap().stderr_tail;
        assert_eq!(tail.len(), 4096);
        assert!(tail.ends_with(b"noise\nlast words\n"));
    });
    if let Some(output) = output {
        assert_eq!(output.stderr.len(), 3_000_000 + b"last words\n".len());
        assert!(output.stderr.ends_with(b"last words\n"));
    }
}

/// The process's own standard error may be closed or full; that must not make the command hang or fail.
#[test]
fn forwarding_to_a_closed_or_full_stream_has_no_effect() {
    for close in [r#"exec "$0" "$@" 2>&-"#, r#"exec "$0" "$@" 2>/dev/full"#] {
        alone("stderr::forwarding_to_a_closed_or_full_stream_has_no_effect", &["sh", "-c", close], || {
            let argv = ["sh", "-c", "yes noise | head -c 3000000 >&2; echo out; exit 3"];
            let (bytes, error) = drain(&mut Reader::command(argv).unwrap(), Pull::Frames);
            assert_eq!(bytes, b"out\n");
            assert_eq!(error.unwrap().command().unwrap().status, CommandStatus::Exited(3));
        });
    }
}

#[test]
fn forward_is_live() {
    // The command waits until its message has been seen.
    alone("stderr::forward_is_live", &["sh", "-c", r#"exec "$0" "$@" 2>/tmp/millstream-test-live-$$"#], || {
        let log = std::fs::read_link("/proc/self/fd/2").unwrap();
        within_seconds(60, move || {
            let (stdin, answer) = std::io::pipe().unwrap();
            let argv = ["sh", "-c", "echo hello >&2; read answer; echo $answer"];
            let command = Command::new(argv).stdin(File::from(std::os::fd::OwnedFd::from(stdin)));
            let mut reader = Reader::command(command).unwrap();
            while std::fs::read(&log).unwrap() != b"hello\n" {
                thread::sleep(Duration::from_millis(2));
            }
            std::fs::remove_file(&log).unwrap();
            std::io::Write::write_all(&mut { answer }, b"seen\n").unwrap();
            assert_eq!(drain(&mut reader, Pull::Frames).0, b"seen\n");
        });
    });
}

#[test]
fn inherit_and_null_keep_no_tail() {
    alone("stderr::inherit_and_null_keep_no_tail", &[], || {
        for stderr in [Stderr::Inherit, Stderr::Null] {
            let command = Command::new(["sh", "-c", "echo oops >&2; exit 1"]).stderr(stderr);
            let (_, error) = drain(&mut Reader::command(command).unwrap(), Pull::Frames);
            assert_eq!(error.unwrap().command().unwrap().stderr_tail, b"");
        }
    })
    .inspect(|output| assert_eq!(output.stderr, b"oops\n"));
}

/// A command may leave a process running that keeps standard error open; the stream ends anyway.
#[test]
fn a_grandchild_that_holds_standard_error_open_does_not_hold_us() {
    for read_ahead in EVERY_READ_AHEAD {
        for stderr in [Stderr::Capture, Stderr::Forward] {
            let grandchild = within_seconds(60, move || {
                let argv = ["sh", "-c", "sleep 600 >/dev/null & echo $!; echo oops >&2; exit 3"];
                let command = Command::new(argv).stderr(stderr);
                let mut reader = Reader::builder().read_ahead(read_ahead).command(command).unwrap();
                let (bytes, error) = drain(&mut reader, Pull::Frames);
                let error = error.unwrap();
                let end = error.command().unwrap();
                assert_eq!(end.status, CommandStatus::Exited(3));
                assert_eq!(end.stderr_tail, b"oops\n");
                std::str::from_utf8(&bytes).unwrap().trim().parse().unwrap()
            });
            assert!(processes::exists(grandchild));
            processes::kill(grandchild);
        }
    }
}

/// If the forwarded output is not read, the command may wait, but the reader must not.
#[test]
fn our_own_standard_error_that_is_full_does_not_hold_close() {
    within_seconds(60, || {
        // Runs a reader in a process whose standard error is a pipe that is never read.
        let (unread, full) = std::io::pipe().unwrap();
        let this = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(this)
            .args(["--exact", "stderr::a_reader_of_a_command_that_floods", "--nocapture", "--ignored"])
            .stderr(full)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success());
        drop(unread);
    });
}

#[test]
#[ignore = "the other side of the test before it"]
fn a_reader_of_a_command_that_floods() {
    let mut reader = Reader::command(["sh", "-c", "echo ready; yes >&2"]).unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"ready"[..]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    reader.close().unwrap();
}
