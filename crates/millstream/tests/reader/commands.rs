//! The end of a command's output means that the command succeeded.

use std::io::Read;
use std::thread;

use millstream::{Command, CommandStatus, Error, ErrorKind, Reader, Stderr, Stdin};

use crate::alone::alone;
use crate::every_way::{EVERY_PULL, EVERY_READ_AHEAD, Pull, drain, drain_whole};
use crate::sample;

/// Returns 200 numbers of bytes: small ones, those around the sizes of pipes and buffers, and others in between.
fn counts() -> Vec<usize> {
    let small = 0..100;
    let edges = [4 << 10, 8 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20];
    let edges = edges.into_iter().flat_map(|edge: usize| edge - 2..=edge + 2);
    let between = (1..=65).map(|i| i * 7919);
    let counts: Vec<_> = small.chain(edges).chain(between).collect();
    assert_eq!(counts.len(), 200);
    counts
}

/// A command writes this many bytes and fails: the error is always reported, after all bytes.
fn ends_badly_after_every_count(ending: &str, status: CommandStatus) {
    let directory = sample::directory();
    let data = sample::lines((4 << 20) + 2);
    let path = sample::file(&directory, "data", &data);
    let script = format!(r#"head -c "$1" "$0"; {ending}"#);
    thread::scope(|scope| {
        for (i, read_ahead) in EVERY_READ_AHEAD.into_iter().enumerate() {
            let (data, path, script) = (&data, &path, &script);
            scope.spawn(move || {
                for (j, count) in counts().into_iter().enumerate() {
                    let pull = EVERY_PULL[(i + j) % EVERY_PULL.len()];
                    let argv = ["sh", "-c", script, path.to_str().unwrap(), &count.to_string()];
                    let mut reader = Reader::builder().read_ahead(read_ahead).command(argv).unwrap();
                    let (bytes, error) = drain(&mut reader, pull);
                    assert!(bytes == data[..count], "{read_ahead:?} {pull:?} {count}: {} bytes", bytes.len());
                    let error = error.unwrap_or_else(|| panic!("{read_ahead:?} {pull:?} {count}: no error"));
                    assert_eq!(error.kind(), ErrorKind::CommandFailed, "{error}");
                    let end = error.command().unwrap();
                    assert_eq!(end.status, status);
                    assert_eq!(end.argv, argv);
                }
            });
        }
    });
}

#[test]
fn exit_status_after_each_of_200_byte_counts() {
    ends_badly_after_every_count("exit 3", CommandStatus::Exited(3));
}

#[test]
fn killed_after_each_of_200_byte_counts() {
    ends_badly_after_every_count("kill -KILL $$", CommandStatus::Signaled(9));
}

#[test]
fn success_in_every_way() {
    let directory = sample::directory();
    let data = sample::lines(3 << 20);
    let path = sample::file(&directory, "data", &data);
    for read_ahead in EVERY_READ_AHEAD {
        for pull in EVERY_PULL {
            let mut reader =
                Reader::builder().read_ahead(read_ahead).command(["cat".as_ref(), path.as_os_str()]).unwrap();
            assert!(drain_whole(&mut reader, pull) == data, "{read_ahead:?} {pull:?}");
        }
    }
}

/// The output ends before the command does. The end of the stream is reported only when the status is known.
#[test]
fn a_failure_after_the_output_was_closed_counts() {
    for read_ahead in EVERY_READ_AHEAD {
        let argv = ["sh", "-c", "echo all; exec >&-; sleep 0.2; exit 7"];
        let mut reader = Reader::builder().read_ahead(read_ahead).command(argv).unwrap();
        let (bytes, error) = drain(&mut reader, Pull::Frames);
        assert_eq!(bytes, b"all\n");
        assert_eq!(error.unwrap().command().unwrap().status, CommandStatus::Exited(7));
    }
}

#[test]
fn a_failure_can_be_allowed() {
    let command = Command::new(["sh", "-c", "echo x; exit 1"]).allow_failure();
    let mut reader = Reader::command(command).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"x\n");
    let ends = reader.close().unwrap();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].status, CommandStatus::Exited(1));
}

#[test]
fn close_after_the_end_reports_success() {
    let mut reader = Reader::command(["echo", "x"]).unwrap();
    drain_whole(&mut reader, Pull::Frames);
    let ends = reader.close().unwrap();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].status, CommandStatus::Exited(0));
    assert_eq!(ends[0].argv, ["echo", "x"]);
}

#[test]
fn a_command_that_cannot_start_is_reported_immediately_by_name() {
    let directory = sample::directory();
    let no_program = sample::file(&directory, "not-executable", b"#!/bin/sh\n");
    for program in ["/no/such/program", "no-such-program-anywhere", no_program.to_str().unwrap(), "/"] {
        let error = Reader::command([program]).err().unwrap_or_else(|| panic!("{program} started"));
        assert_eq!(error.kind(), ErrorKind::CommandNotStarted, "{error}");
        assert!(error.to_string().contains(program), "{error}");
    }
    let nothing: [&str; 0] = [];
    assert_eq!(Reader::command(nothing).unwrap_err().kind(), ErrorKind::InvalidOption);
}

#[test]
fn surroundings_are_as_asked() {
    let script = r#"echo "$A-$B-$HOME"; pwd; cat"#;
    let stdin = sample::directory();
    let stdin = std::fs::File::open(sample::file(&stdin, "in", b"from the file\n")).unwrap();
    let command = Command::new(["sh", "-c", script]).env("A", "1").env("B", "2").env_remove("HOME");
    let command = command.current_dir("/usr").stdin(stdin);
    let mut reader = Reader::command(command).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"1-2-\n/usr\nfrom the file\n");

    // A command's standard input is empty by default, and its environment can be cleared.
    let mut reader = Reader::command(Command::new(["/bin/cat"]).env_clear()).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"");
    let mut reader =
        Reader::command(Command::new(["/usr/bin/env"]).env("GONE", "1").env_clear().env("A", "1")).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"A=1\n");
}

#[test]
fn standard_input_can_be_bytes() {
    for len in [0, 1, 4096, 1 << 20, (1 << 20) + 1, 5 << 20] {
        let bytes = sample::lines(len);
        for read_ahead in EVERY_READ_AHEAD {
            let command = Command::new(["cat"]).stdin(bytes.clone());
            let mut reader = Reader::builder().read_ahead(read_ahead).command(command).unwrap();
            assert!(drain_whole(&mut reader, Pull::Fill) == bytes, "{len} bytes");
        }
    }
}

/// This also applies if another process still holds the pipe open.
#[test]
fn a_command_need_not_read_its_standard_input() {
    for line in ["true", "head -n 1 >/dev/null", "exec <&-", "sleep 60 & exit 0"] {
        let command = Command::shell(line).unwrap().stdin(sample::lines(5 << 20));
        let mut reader = Reader::command(command.stderr(Stderr::Null)).unwrap();
        assert!(line.contains("sleep") || drain_whole(&mut reader, Pull::Fill).is_empty());
        reader.close().unwrap();
    }
    let command = Command::shell("head -n 1; exit 3").unwrap().stdin(sample::lines(5 << 20));
    let mut reader = Reader::command(command).unwrap();
    let (bytes, error) = drain(&mut reader, Pull::Frames);
    assert!(!bytes.is_empty());
    assert_eq!(error.unwrap().command().unwrap().status, CommandStatus::Exited(3));
}

/// A stream that fails after some bytes, and counts how often it is read.
struct Failing(Vec<u8>);

impl Read for Failing {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            return Err(std::io::Error::other("no carrier"));
        }
        let count = space.len().min(self.0.len());
        space[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

#[test]
fn standard_input_can_be_a_stream() {
    let lines = sample::lines(5 << 20);
    for stdin in [Stdin::read(std::io::Cursor::new(lines.clone())), Stdin::chunks(vec![lines.clone(), Vec::new()])] {
        let mut reader = Reader::command(Command::new(["cat"]).stdin(stdin)).unwrap();
        assert!(drain_whole(&mut reader, Pull::Fill) == lines);
    }
    // A command that reads only the start ends the stream, even one that has no end.
    let endless = Stdin::chunks(std::iter::repeat("y\n"));
    let mut reader = Reader::command(Command::new(["head", "-n", "2"]).stdin(endless)).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"y\ny\n");
    // Each piece arrives before the next one exists.
    let (answers, questions) = std::sync::mpsc::channel();
    let mut reader = Reader::command(Command::new(["cat"]).stdin(Stdin::chunks(questions))).unwrap();
    for text in ["one", "two"] {
        answers.send(format!("{text}\n")).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(text.as_bytes()));
    }
    drop(answers);
    assert_eq!(reader.next_line().unwrap(), None);
    // A stream that never answers does not delay the end.
    let (_answers, questions) = std::sync::mpsc::channel::<String>();
    let mut reader = Reader::command(Command::new(["echo", "1"]).stdin(Stdin::chunks(questions))).unwrap();
    assert_eq!(drain_whole(&mut reader, Pull::Frames), b"1\n");
}

/// The reader reports a failed stream after all of the command's output, even if the command succeeds.
#[test]
fn a_failed_stream_as_standard_input_is_an_error_after_the_output() {
    let lines = sample::lines(3 << 20);
    let panics = || -> std::iter::Once<Vec<u8>> { panic!("this panic is expected") };
    let panicking = std::iter::once(lines.clone()).chain(std::iter::once_with(panics).flatten());
    let streams = [(Stdin::read(Failing(lines.clone())), "no carrier"), (Stdin::chunks(panicking), "a panic")];
    for (stdin, expected) in streams {
        let mut reader = Reader::command(Command::new(["cat"]).stdin(stdin)).unwrap();
        let (bytes, error) = read_to_error(&mut reader);
        assert!(bytes == lines);
        let error = error.to_string();
        assert!(error.starts_with("cat: io: ") && error.contains(expected), "{error}");
    }
}

fn read_to_error(reader: &mut Reader) -> (Vec<u8>, Error) {
    let mut bytes = Vec::new();
    loop {
        match reader.fill() {
            Ok(count) => assert_ne!(count, 0, "the end without an error"),
            Err(error) => return (bytes, error),
        }
        bytes.extend_from_slice(reader.buffer());
        reader.consume(reader.buffer().len());
    }
}

#[test]
fn standard_input_can_be_inherited() {
    // The child of this process inherits the `/dev/null` that `alone` passes on.
    alone("commands::standard_input_can_be_inherited", &[], || {
        let command = Command::new(["readlink", "/proc/self/fd/0"]).stdin(Stdin::Inherit);
        let mut reader = Reader::command(command).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"/dev/null\n");
    });
}

/// Arguments are bytes, not words of a shell.
#[test]
fn arguments_arrive_unchanged() {
    let odd = ["a b", "", "$HOME", "*", "'\"", "\n", "ä"];
    let argv = ["printf", "<%s>"].into_iter().chain(odd);
    let mut reader = Reader::command(argv.collect::<Vec<_>>()).unwrap();
    let expected: String = odd.iter().map(|word| format!("<{word}>")).collect();
    assert_eq!(drain_whole(&mut reader, Pull::Fill), expected.as_bytes());
}

#[test]
fn an_ignored_sigchld_makes_the_status_unknown() {
    // In this case the kernel discards the status of every child.
    let ignore = ["env", "--ignore-signal=CHLD"];
    alone("commands::an_ignored_sigchld_makes_the_status_unknown", &ignore, || {
        for read_ahead in EVERY_READ_AHEAD {
            let command = Command::new(["sh", "-c", "echo x; exit 3"]).stderr(Stderr::Capture);
            let mut reader = Reader::builder().read_ahead(read_ahead).command(command).unwrap();
            let (bytes, error) = drain(&mut reader, Pull::Frames);
            assert_eq!(bytes, b"x\n");
            let error = error.expect("success was reported for a command whose status is unknown");
            assert_eq!(error.kind(), ErrorKind::CommandStatusUnknown, "{error}");
        }
    });
}
