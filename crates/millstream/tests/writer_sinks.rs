//! Pipes, sockets, terminals and commands as sinks: blocking calls, interruptions, and peers that close.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use millstream::{CancelToken, Command, CommandStatus, ErrorKind, FlushPolicy, Stderr, Stdout, Writer, WriterBuilder};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::time::{ClockId, clock_gettime};

mod skip;

/// Returns bytes that depend on their position.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32 / 4).flat_map(u32::to_le_bytes).collect()
}

fn set_nonblocking(fd: impl AsFd) {
    let flags = fcntl_getfl(&fd).unwrap();
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK).unwrap();
}

/// Returns the processor time of this thread, in seconds.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[test]
fn a_full_nonblocking_pipe_is_waited_for_without_spinning() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    set_nonblocking(&writer);
    let bytes = pattern(8 << 20);
    let reading = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        let mut arrived = Vec::new();
        reader.read_to_end(&mut arrived).unwrap();
        arrived
    });
    let mut writer = Writer::fd(writer).unwrap();
    let before = thread_time();
    for record in bytes.chunks(1000) {
        writer.write(record).unwrap();
    }
    writer.close().unwrap();
    let used = thread_time() - before;
    assert_eq!(reading.join().unwrap(), bytes);
    assert!(used < 0.3, "waited for half a second and used {used} s of processor time");
}

/// Returns every kind of descriptor whose reader does not read: one to write to, and one to read from.
fn stuck() -> Vec<(&'static str, OwnedFd, File)> {
    let (pipe_reader, pipe) = std::io::pipe().unwrap();
    let (near, far) = UnixStream::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (tcp_reader, _) = listener.accept().unwrap();
    let (terminal, screen) = pty();
    vec![
        ("pipe", pipe.into(), OwnedFd::from(pipe_reader).into()),
        ("unix", near.into(), OwnedFd::from(far).into()),
        ("tcp", tcp.into(), OwnedFd::from(tcp_reader).into()),
        ("terminal", terminal, screen),
    ]
}

/// Returns a terminal, and the output that its user sees. It shows bytes unchanged.
fn pty() -> (OwnedFd, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let mut modes = rustix::termios::tcgetattr(&terminal).unwrap();
    modes.make_raw();
    rustix::termios::tcsetattr(&terminal, rustix::termios::OptionalActions::Now, &modes).unwrap();
    (terminal, controller.into())
}

/// Reads exactly as many bytes as `bytes` has, and compares them.
fn assert_arrives(name: &str, mut reader: File, bytes: &[u8]) {
    let mut arrived = vec![0; bytes.len()];
    reader.read_exact(&mut arrived).unwrap();
    assert!(arrived == bytes, "{name}: other bytes arrived");
}

#[test]
fn a_token_ends_a_wait_without_loss() {
    // This is more than any pipe or socket accepts, at 252 bytes a record.
    let bytes = pattern(252 << 16);
    for (name, fd, reader) in stuck() {
        let modes = fcntl_getfl(&fd).unwrap();
        let token = CancelToken::new().unwrap();
        let mut writer = Writer::builder().cancel(&token).borrow_fd(&fd).unwrap();
        let canceller = token.clone();
        let (begun, begins) = mpsc::channel();
        let cancelling = thread::spawn(move || {
            begins.recv().unwrap();
            thread::sleep(Duration::from_millis(100));
            canceller.cancel();
        });
        let mut records = bytes.chunks(252);
        let start = Instant::now();
        let error = loop {
            let record = records.next().expect("all records were accepted although no reader reads");
            if let Err(error) = writer.write(record) {
                break error;
            }
            let _ = begun.send(());
        };
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}: {error}");
        assert_eq!(error.written(), Some(writer.written()));
        let accepted = writer.accepted() as usize;
        assert_eq!(writer.flush().unwrap_err().kind(), ErrorKind::Cancelled);
        cancelling.join().unwrap();
        token.reset();
        let reading = thread::spawn({
            let bytes = bytes[..accepted].to_vec();
            move || assert_arrives(name, reader, &bytes)
        });
        token.cancel();
        assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Cancelled);
        token.reset();
        assert_eq!(writer.try_close().unwrap().bytes, accepted as u64);
        reading.join().unwrap();
        // The borrowed descriptor is unchanged.
        assert_eq!(fcntl_getfl(&fd).unwrap(), modes, "{name}");
    }
}

#[test]
fn a_sink_that_accepts_no_bytes_is_stalled() {
    for (name, fd, reader) in stuck() {
        let mut writer = Writer::builder().stall_timeout(Duration::from_millis(50)).fd(fd).unwrap();
        let large = pattern(64 << 20);
        // Part of the record was written, so it is accepted, and the next call reports the error.
        writer.write(&large).unwrap();
        assert_eq!(writer.accepted(), large.len() as u64);
        let error = writer.flush().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stalled, "{name}");
        let reading = thread::spawn({
            let large = large.clone();
            move || assert_arrives(name, reader, &large)
        });
        while writer.flush().is_err() {}
        reading.join().unwrap();
    }
}

#[test]
fn opening_a_fifo_without_a_reader_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let token = CancelToken::new().unwrap();
    let canceller = token.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    let error = Writer::builder().cancel(&token).path(&path).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Cancelled, path.to_str()));
    let error = Writer::builder().stall_timeout(Duration::from_millis(50)).path(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);

    token.reset();
    let reading = thread::spawn({
        let path = path.clone();
        move || std::fs::read(path).unwrap()
    });
    let mut writer = Writer::builder().cancel(&token).path(&path).unwrap();
    writer.write(b"here").unwrap();
    writer.close().unwrap();
    assert_eq!(reading.join().unwrap(), b"here");
}

#[test]
fn a_closed_pipe_or_connection_is_an_error_value() {
    for builder in [|| Writer::builder(), || Writer::builder().stall_timeout(Duration::from_secs(20))] {
        for (name, fd, reader) in stuck() {
            if name == "terminal" {
                continue; // an unread terminal takes everything or reports EIO
            }
            drop(reader);
            let mut writer = builder().fd(fd).unwrap();
            let error = loop {
                // A TCP connection accepts some bytes before it notices that the other side has closed.
                if let Err(error) = writer.write(&[b'x'; 100_000]) {
                    break error;
                }
            };
            let reset = Some(rustix::io::Errno::CONNRESET.raw_os_error());
            assert!(error.kind() == ErrorKind::BrokenPipe || (name == "tcp" && error.errno() == reset), "{error}");
            drop(writer);
        }
    }
}

#[test]
fn a_terminal_sees_whole_lines_at_once() {
    let (terminal, screen) = pty();
    let mut writer = Writer::fd(terminal).unwrap();
    writer.write(b"one\ntw").unwrap();
    assert_eq!(writer.written(), 4);
    writer.write(b"o").unwrap();
    assert_eq!(writer.written(), 4);
    writer.write(b"\nthree\nf").unwrap();
    assert_eq!(writer.written(), 14);
    writer.space(5).unwrap()[..4].copy_from_slice(b"our\n");
    writer.commit(4).unwrap();
    assert_arrives("terminal", screen, b"one\ntwo\nthree\nfour\n");
    assert_eq!(writer.accepted(), writer.written());
}

#[test]
fn other_sinks_wait_for_a_full_buffer_unless_lines_are_asked_for() {
    let written = |builder: WriterBuilder| {
        let (_reader, pipe) = std::io::pipe().unwrap();
        let mut writer = builder.fd(pipe).unwrap();
        writer.write(b"one\ntw").unwrap();
        writer.written()
    };
    assert_eq!(written(Writer::builder()), 0);
    assert_eq!(written(Writer::builder().flush_policy(FlushPolicy::Line)), 4);
}

#[test]
fn a_pipe_is_enlarged_and_gets_a_larger_buffer() {
    let (reader, pipe) = std::io::pipe().unwrap();
    let before = rustix::pipe::fcntl_getpipe_size(&reader).unwrap();
    let mut writer = Writer::fd(pipe).unwrap();
    let after = rustix::pipe::fcntl_getpipe_size(&reader).unwrap();
    assert!(after >= before);
    if after < 1 << 20 {
        return skip::say(&format!("in part: the system allows pipes of {after} bytes only"));
    }
    for _ in 0..255 {
        writer.write(&[0; 1024]).unwrap();
    }
    assert_eq!(writer.written(), 0);
}

#[test]
fn connections_carry_every_byte() {
    let bytes = pattern(3 << 20);
    let send = |mut writer: Writer| {
        bytes.chunks(777).for_each(|record| writer.write(record).unwrap());
        writer.close().unwrap();
    };
    let read = |mut reader: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut arrived = Vec::new();
            reader.read_to_end(&mut arrived).unwrap();
            arrived
        })
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let writer = Writer::tcp(listener.local_addr().unwrap()).unwrap();
    assert!(writer.name().starts_with("tcp:127.0.0.1:"));
    let reading = read(Box::new(listener.accept().unwrap().0));
    send(writer);
    assert!(reading.join().unwrap() == bytes);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let writer = Writer::unix(&path).unwrap();
    let reading = read(Box::new(listener.accept().unwrap().0));
    send(writer);
    assert!(reading.join().unwrap() == bytes);
}

#[test]
fn a_connection_that_is_not_accepted_is_open_failed() {
    // This port was free a moment ago, and no other test uses this address.
    let address = TcpListener::bind("127.0.0.98:0").unwrap().local_addr().unwrap();
    for result in [
        Writer::tcp(address),
        Writer::builder().stall_timeout(Duration::from_secs(5)).tcp(address),
        Writer::unix("/nowhere/socket"),
        Writer::tcp("no port"),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::OpenFailed);
    }
}

/// Returns a command whose standard output can be read.
fn with_output(argv: [&str; 3]) -> (Command, PipeReader) {
    let (reader, pipe) = std::io::pipe().unwrap();
    (Command::new(argv).stdout(Stdout::Fd(pipe.into())).stderr(Stderr::Capture), reader)
}

#[test]
fn a_command_gets_all_bytes_and_is_waited_for() {
    let (command, mut output) = with_output(["sh", "-c", "cksum; sleep 0.1; echo done"]);
    let mut writer = Writer::command(command).unwrap();
    let bytes = pattern(1 << 20);
    writer.write(&bytes).unwrap();
    let end = writer.close().unwrap();
    assert_eq!(end.commands.len(), 1);
    assert_eq!(end.commands[0].status, CommandStatus::Exited(0));
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert!(text.contains(" 1048576\n") && text.ends_with("done\n"), "{text}");
}

#[test]
fn a_command_that_fails_in_the_end_fails_the_close() {
    let (command, _output) = with_output(["sh", "-c", "cat >/dev/null; echo disk on fire >&2; exit 7"]);
    let mut writer = Writer::command(command).unwrap();
    writer.write(b"x").unwrap();
    let error = writer.close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommandFailed);
    let end = error.command().unwrap();
    assert_eq!((end.status, &*end.stderr_tail), (CommandStatus::Exited(7), &b"disk on fire\n"[..]));

    let (command, _output) = with_output(["sh", "-c", "kill -9 $$"]);
    let error = Writer::command(command).unwrap().close().unwrap_err();
    assert_eq!(error.command().unwrap().status, CommandStatus::Signaled(9));

    let (command, _output) = with_output(["sh", "-c", "exit 7"]);
    let end = Writer::command(command.allow_failure()).unwrap().close().unwrap();
    assert_eq!(end.commands[0].status, CommandStatus::Exited(7));
}

#[test]
fn an_early_death_of_a_command_is_reported_instead_of_the_broken_pipe() {
    let (command, _output) = with_output(["sh", "-c", "head -c 1000 >/dev/null; echo oops >&2; exit 3"]);
    let mut writer = Writer::command(command).unwrap();
    let error = loop {
        if let Err(error) = writer.write(&[b'x'; 10_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::CommandFailed);
    assert_eq!(error.command().unwrap().stderr_tail, b"oops\n");
    assert_eq!(error.written(), Some(writer.written()));
    assert!(writer.close().is_err(), "not all bytes were accepted");
}

#[test]
fn a_command_that_had_enough_is_a_broken_pipe() {
    let (command, _output) = with_output(["head", "-c", "10"]);
    let mut writer = Writer::command(command).unwrap();
    let error = loop {
        if let Err(error) = writer.write(&[b'x'; 10_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn waiting_for_a_command_can_be_interrupted_but_is_not_a_stall() {
    let token = CancelToken::new().unwrap();
    let canceller = token.clone();
    let writer = Writer::builder().cancel(&token).command(["sleep", "60"]).unwrap();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    let start = Instant::now();
    assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(20));

    let limit = Duration::from_millis(50);
    Writer::builder().stall_timeout(limit).command(["sleep", "0.3"]).unwrap().close().unwrap();
}

#[test]
fn a_close_that_was_interrupted_waits_for_the_command_again() {
    for (status, kind) in [(0, None), (3, Some(ErrorKind::CommandFailed))] {
        let (command, mut output) = with_output(["sh", "-c", &format!("cat; exit {status}")]);
        let token = CancelToken::new().unwrap();
        let mut writer = Writer::builder().cancel(&token).command(command).unwrap();
        writer.write(b"kept").unwrap();
        token.cancel();
        assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Cancelled);
        token.reset();
        match kind {
            None => assert!(writer.try_close().unwrap().commands[0].status.success()),
            Some(kind) => (0..2).for_each(|_| assert_eq!(writer.try_close().unwrap_err().kind(), kind)),
        }
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert_eq!(text, "kept");
    }
}

#[test]
fn a_dropped_writer_passes_its_bytes_to_the_command() {
    let (command, mut output) = with_output(["cat", "-", "-"]);
    let mut writer = Writer::command(command).unwrap();
    writer.write(b"some").unwrap();
    drop(writer);
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "some");
}

#[test]
fn a_command_that_is_not_there_is_not_started() {
    let error = Writer::command(["millstream-no-such-command"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommandNotStarted);
}

/// Connections of each kind: a writer that `builder` creates, and the peer's end.
fn connections(builder: impl Fn() -> WriterBuilder) -> Vec<(&'static str, Writer, File)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tcp = builder().tcp(address).unwrap();
    let tcp_peer = OwnedFd::from(listener.accept().unwrap().0);
    let fd = builder().fd(std::net::TcpStream::connect(address).unwrap()).unwrap();
    let fd_peer = OwnedFd::from(listener.accept().unwrap().0);
    let (near, far) = UnixStream::pair().unwrap();
    let unix = builder().fd(near).unwrap();
    vec![("tcp", tcp, tcp_peer.into()), ("fd", fd, fd_peer.into()), ("unix", unix, OwnedFd::from(far).into())]
}

#[test]
fn a_peer_that_has_sent_data_gets_all_bytes() {
    for builder in [|| Writer::builder(), || Writer::builder().stall_timeout(Duration::from_secs(20))] {
        for (name, mut writer, mut peer) in connections(builder) {
            peer.write_all(b"220 ready\r\n").unwrap();
            let bytes = pattern(100_000);
            writer.write(&bytes).unwrap();
            writer.flush().unwrap();
            let reading = thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                peer.write_all(b"250 go on\r\n").unwrap();
                let mut arrived = Vec::new();
                peer.read_to_end(&mut arrived).map(|_| arrived)
            });
            writer.close().unwrap();
            assert!(reading.join().unwrap().is_ok_and(|arrived| arrived == bytes), "{name}");
        }
    }
}

#[test]
fn a_peer_that_does_not_close_has_not_confirmed_the_end() {
    let short = Duration::from_millis(50);
    for builder in [
        || Writer::builder().linger(Duration::from_millis(50)),
        || Writer::builder().stall_timeout(Duration::from_millis(50)),
    ] {
        for (name, mut writer, mut peer) in connections(builder) {
            writer.write(b"all of it").unwrap();
            let error = writer.try_close().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Stalled, "{name}");
            assert!(error.to_string().contains("has not closed 0.05 s after this side"), "{error}");
            // A peer that keeps sending does not block the writer, either.
            let sending = thread::spawn(move || {
                let end = Instant::now() + 4 * short;
                while Instant::now() < end && peer.write(b"more").is_ok() {}
                let mut arrived = Vec::new();
                peer.read_to_end(&mut arrived).unwrap();
                arrived
            });
            assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Stalled, "{name}");
            while writer.try_close().is_err_and(|error| error.kind() == ErrorKind::Stalled) {}
            assert_eq!(sending.join().unwrap(), b"all of it");
        }
    }
}

#[test]
fn a_peer_that_leaves_without_reading_is_an_error() {
    for (name, mut writer, peer) in connections(Writer::builder) {
        writer.write(b"unread").unwrap();
        writer.flush().unwrap();
        // The data has arrived but has not been read when the peer closes.
        rustix::event::poll(&mut [rustix::event::PollFd::new(&peer, rustix::event::PollFlags::IN)], None).unwrap();
        drop(peer);
        let error = writer.close().unwrap_err();
        assert_eq!(error.errno(), Some(rustix::io::Errno::CONNRESET.raw_os_error()), "{name}: {error}");
    }
}

#[test]
fn waiting_for_a_peer_to_close_can_be_interrupted_or_left_out() {
    let token = CancelToken::new().unwrap();
    for (_, mut writer, peer) in connections(|| Writer::builder().cancel(&token)) {
        let canceller = token.clone();
        let cancelling = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            canceller.cancel();
        });
        assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Cancelled);
        cancelling.join().unwrap();
        token.reset();
        drop(peer);
        writer.try_close().unwrap();
    }
    for (name, mut writer, peer) in connections(|| Writer::builder().linger(Duration::ZERO)) {
        writer.write(b"whatever").unwrap();
        writer.close().unwrap();
        assert_arrives(name, peer, b"whatever");
    }
}

#[test]
fn a_shared_connection_is_not_shut_down() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut writer = Writer::borrow_fd(&near).unwrap();
    writer.write(b"ours, ").unwrap();
    writer.close().unwrap();
    far.write_all(b"answer").unwrap();
    let mut answer = [0; 6];
    (&near).read_exact(&mut answer).unwrap();
    (&near).write_all(b"theirs").unwrap();
    assert_arrives("borrowed", OwnedFd::from(far).into(), b"ours, theirs");

    // The connection is shut down if that is requested.
    let (near, far) = UnixStream::pair().unwrap();
    let lingering = || Writer::builder().linger(Duration::from_secs(20));
    let mut writer = lingering().borrow_fd(&near).unwrap();
    writer.write(b"all").unwrap();
    let reading = thread::spawn(move || {
        let mut arrived = Vec::new();
        (&far).read_to_end(&mut arrived).unwrap();
        arrived
    });
    writer.close().unwrap();
    assert_eq!(reading.join().unwrap(), b"all");

    let (_reader, pipe) = std::io::pipe().unwrap();
    for result in [lingering().fd(pipe), lingering().path("/nowhere"), lingering().memory()] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}

#[test]
fn giving_up_never_waits_for_the_sink() {
    let start = Instant::now();
    for policy in [FlushPolicy::Auto, FlushPolicy::Line, FlushPolicy::Delay(Duration::from_millis(1))] {
        for (name, fd, _reader) in stuck() {
            let modes = fcntl_getfl(&fd).unwrap();
            let token = CancelToken::new().unwrap();
            let builder = Writer::builder().flush_policy(policy).capacity(64 << 20).cancel(&token);
            let mut writer = builder.borrow_fd(&fd).unwrap();
            let accepted = writer.write(&[b'x'; 8 << 20]);
            if policy == FlushPolicy::Line || accepted.is_ok() {
                thread::sleep(Duration::from_millis(10)); // a thread begins to flush
            }
            writer.abort();
            for result in [writer.write(b"y"), writer.flush(), writer.close().map(drop)] {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed, "{name}");
            }
            assert_eq!(fcntl_getfl(&fd).unwrap(), modes);
        }
    }
    let mut writer = Writer::command(["sleep", "60"]).unwrap();
    writer.write(&[b'x'; 200_000]).unwrap();
    writer.abort();
    assert!(start.elapsed() < Duration::from_secs(20));

    let shared = Writer::memory().unwrap().shared();
    shared.abort();
    assert_eq!(shared.write_record(b"x").unwrap_err().kind(), ErrorKind::Closed);
}
