//! Every kind of source delivers the same bytes, whether there are none, a few, or exactly a buffer.

use std::fs::File;
use std::io::{BufRead, Cursor, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use millstream::{Decode, ErrorKind, Follow, Pin, Reader, ReaderBuilder};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::{EVERY_PULL, EVERY_READ_AHEAD, Pull, drain, drain_whole, every_mode};
use crate::sample;

/// Opens a source with these bytes.
pub type Open = fn(ReaderBuilder, &[u8]) -> Reader;

pub const EVERY_SOURCE: [(&str, Open); 15] = [
    ("path", |builder, bytes| with_file(bytes, |path| builder.path(path).unwrap())),
    ("mapped", |builder, bytes| with_file(bytes, |path| builder.mapped(path).unwrap())),
    ("fd", |builder, bytes| with_file(bytes, |path| builder.fd(File::open(path).unwrap()).unwrap())),
    ("borrow_fd", |builder, bytes| with_file(bytes, |path| builder.borrow_fd(File::open(path).unwrap()).unwrap())),
    ("command", |builder, bytes| {
        let (stdin, cat) = (feeding_pipe(bytes), millstream::Command::new(["cat"]));
        builder.command(cat.stdin(File::from(stdin))).unwrap()
    }),
    ("pipeline", |builder, bytes| {
        let (stdin, cat) = (feeding_pipe(bytes), || millstream::Command::new(["cat"]));
        builder.pipeline([cat().stdin(File::from(stdin)), cat()]).unwrap()
    }),
    ("pipe", |builder, bytes| builder.fd(feeding_pipe(bytes)).unwrap()),
    ("tcp", |builder, bytes| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = bytes.to_vec();
        thread::spawn(move || listener.accept().unwrap().0.write_all(&bytes));
        builder.tcp(address).unwrap()
    }),
    ("unix", |builder, bytes| {
        let directory = sample::directory();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let bytes = bytes.to_vec();
        thread::spawn(move || listener.accept().unwrap().0.write_all(&bytes));
        builder.unix(path).unwrap()
    }),
    ("socket", |builder, bytes| {
        let (near, mut far) = UnixStream::pair().unwrap();
        let bytes = bytes.to_vec();
        thread::spawn(move || far.write_all(&bytes));
        builder.fd(near).unwrap()
    }),
    ("from_read", |builder, bytes| builder.from_read(Cursor::new(bytes.to_vec())).unwrap()),
    ("callback", |builder, bytes| {
        let mut bytes = Cursor::new(bytes.to_vec());
        builder.callback(move |space| bytes.read(space)).unwrap()
    }),
    ("memory", |builder, bytes| builder.memory(bytes.to_vec()).unwrap()),
    ("shell", |builder, bytes| {
        with_file(bytes, |path| builder.shell(format!("cat {} | cat", path.display())).unwrap())
    }),
    ("fifo", |builder, bytes| {
        let directory = sample::directory();
        let path = directory.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (bytes, fifo) = (bytes.to_vec(), path.clone());
        thread::spawn(move || File::options().write(true).open(fifo).unwrap().write_all(&bytes));
        builder.path(path).unwrap()
    }),
];

/// A file is opened when the reader is created, and may be unlinked afterwards.
fn with_file(bytes: &[u8], open: impl FnOnce(&Path) -> Reader) -> Reader {
    let directory = sample::directory();
    let path = sample::file(&directory, "input", bytes);
    let mut reader = open(&path);
    // Only a command opens the file later. The first byte or the end of its output shows that the file has been
    // opened.
    reader.fill().unwrap();
    reader
}

/// Returns a pipe into which a thread writes `bytes`.
fn feeding_pipe(bytes: &[u8]) -> OwnedFd {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = bytes.to_vec();
    thread::spawn(move || writer.write_all(&bytes));
    reader.into()
}

#[test]
fn every_source_in_every_way() {
    within_seconds(300, || {
        let data = sample::lines(700_001);
        for (name, open) in EVERY_SOURCE {
            for mode in every_mode() {
                for pull in EVERY_PULL {
                    let mut reader = open(mode.builder(), &data);
                    let handle = reader.progress_handle();
                    assert!(drain_whole(&mut reader, pull) == data, "{name} {mode:?} {pull:?}");
                    reader.close().unwrap();
                    assert_eq!(handle.source_bytes(), data.len() as u64, "{name} {mode:?} {pull:?}");
                }
            }
        }
    });
}

#[test]
fn empty_sources() {
    within_seconds(120, || {
        for (name, open) in EVERY_SOURCE {
            for mode in every_mode() {
                for pull in EVERY_PULL {
                    let mut reader = open(mode.builder(), b"");
                    assert_eq!(drain_whole(&mut reader, pull), b"", "{name} {mode:?} {pull:?}");
                    assert_eq!((reader.position().records, reader.position().bytes), (0, 0));
                }
            }
        }
    });
}

/// Sources whose end is at a buffer's end, or one byte next to it.
#[test]
fn sources_that_end_at_a_buffers_end() {
    within_seconds(300, || {
        for (name, open) in EVERY_SOURCE {
            for read_ahead in EVERY_READ_AHEAD {
                for capacity in [64, 4096] {
                    for len in (capacity - 1..=capacity + 1).chain(2 * capacity - 1..=2 * capacity + 1) {
                        let data = sample::lines(len);
                        let builder = Reader::builder().read_ahead(read_ahead).capacity(capacity);
                        let mut reader = open(builder, &data);
                        let pull = EVERY_PULL[len % EVERY_PULL.len()];
                        assert!(drain_whole(&mut reader, pull) == data, "{name} {read_ahead:?} {capacity} {len}");
                    }
                }
            }
        }
    });
}

/// Sources with the default sizes of a reader, a pipe or a spare buffer.
#[test]
fn sources_that_end_at_a_default_size() {
    for size in [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20] {
        for len in size - 1..=size + 1 {
            let data = sample::lines(len);
            for (i, mode) in every_mode().enumerate() {
                for name in ["path", "mapped", "pipe", "memory", "callback"] {
                    let (_, open) = EVERY_SOURCE.iter().find(|(kind, _)| *kind == name).unwrap();
                    let pull = EVERY_PULL[(i + len) % EVERY_PULL.len()];
                    assert!(drain_whole(&mut open(mode.builder(), &data), pull) == data, "{name} {mode:?} {len}");
                }
            }
        }
    }
}

#[test]
fn standard_input() {
    let feed = ["sh", "-c", r#"seq 100000 | "$0" "$@""#];
    alone("sources::standard_input", &feed, || {
        let mut reader = Reader::stdin().unwrap();
        let mut expected = 0;
        while let Some(line) = reader.next_line().unwrap() {
            expected += 1;
            assert_eq!(line, expected.to_string().as_bytes());
        }
        assert_eq!(expected, 100_000);
    });
    alone("sources::standard_input_is_empty", &[], || {});
}

#[test]
fn standard_input_is_empty() {
    alone("sources::standard_input_is_empty", &[], || {
        assert_eq!(drain_whole(&mut Reader::stdin().unwrap(), Pull::Frames), b"");
    });
}

/// Files whose size the kernel does not know, or reports as 0.
#[test]
fn files_without_a_size() {
    for mode in every_mode() {
        let mut reader = mode.builder().path("/proc/self/status").unwrap();
        let text = drain_whole(&mut reader, Pull::Frames);
        assert!(text.starts_with(b"Name:"), "{mode:?}: {} bytes", text.len());
        assert_eq!(drain_whole(&mut mode.builder().path("/dev/null").unwrap(), Pull::Frames), b"");
        let mut zeros = mode.builder().path("/dev/zero").unwrap();
        assert!(zeros.fill().unwrap() > 0);
        zeros.close().unwrap();
    }
}

/// A descriptor is read from its current position.
#[test]
fn a_descriptor_in_the_middle_of_a_file() {
    let directory = sample::directory();
    let path = sample::file(&directory, "input", b"one\ntwo\nthree\n");
    for read_ahead in EVERY_READ_AHEAD {
        let mut file = File::open(&path).unwrap();
        file.read_exact(&mut [0; 4]).unwrap();
        let mut reader = Reader::builder().read_ahead(read_ahead).fd(file).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), b"two\nthree\n");
    }
}

/// A borrowed descriptor is still open after the reader is dropped.
#[test]
fn a_lent_descriptor_stays_open() {
    let directory = sample::directory();
    let path = sample::file(&directory, "input", b"one\n");
    let mut file = File::open(&path).unwrap();
    assert_eq!(drain_whole(&mut Reader::borrow_fd(&file).unwrap(), Pull::Frames), b"one\n");
    std::io::Seek::rewind(&mut file).unwrap();
    assert_eq!(std::io::read_to_string(file).unwrap(), "one\n");
}

#[test]
fn a_source_that_cannot_be_opened_is_named() {
    let directory = sample::directory();
    let missing = directory.path().join("missing");
    let socketless = directory.path().join("no-socket");
    // This port was free a moment ago, and no other test uses this address.
    let port = TcpListener::bind("127.0.0.97:0").unwrap().local_addr().unwrap();
    let cases = [
        (Reader::path(&missing), missing.display().to_string()),
        (Reader::mapped(&missing), missing.display().to_string()),
        (Reader::path(directory.path()), directory.path().display().to_string()),
        (Reader::mapped(directory.path()), directory.path().display().to_string()),
        (Reader::unix(&socketless), socketless.display().to_string()),
        (Reader::tcp(port), port.to_string()),
    ];
    for (opened, name) in cases {
        let error = opened.err().unwrap_or_else(|| panic!("{name} was opened"));
        assert_eq!(error.kind(), ErrorKind::OpenFailed, "{error}");
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn a_mapped_file_that_shrinks_is_an_error() {
    let data = sample::lines(8 << 20);
    for mode in every_mode() {
        for pull in EVERY_PULL {
            let directory = sample::directory();
            let path = sample::file(&directory, "input", &data);
            let mut reader = mode.builder().mapped(&path).unwrap();
            let first = data.iter().position(|&byte| byte == b'\n').unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&data[..first]));
            // It is truncated at the end of a page: the rest of the mapping may be read without harm.
            File::options().write(true).open(&path).unwrap().set_len(4 << 20).unwrap();
            let (rest, error) = drain(&mut reader, pull);
            let error = error.unwrap_or_else(|| panic!("{mode:?} {pull:?}: a clean end"));
            assert_eq!(error.kind(), ErrorKind::SourceShrank, "{error}");
            assert!(data[first + 1..].starts_with(&rest), "{mode:?} {pull:?}: wrong bytes");
        }
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let data = sample::lines(32 << 20);
    for mode in every_mode() {
        let directory = sample::directory();
        let path = sample::file(&directory, "input", &data);
        let mut reader = mode.builder().path(&path).unwrap();
        let first = data.iter().position(|&byte| byte == b'\n').unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&data[..first]));
        // No reader can have reached this position.
        File::options().write(true).open(&path).unwrap().set_len(30 << 20).unwrap();
        let (rest, error) = drain(&mut reader, Pull::Fill);
        assert!(data[first + 1..].starts_with(&rest), "{mode:?}: wrong bytes");
        let error = error.unwrap_or_else(|| panic!("{mode:?}: a clean end"));
        assert_eq!(error.kind(), ErrorKind::SourceShrank, "{error}");
    }
}

/// If a file is written while it is read, the data may be a mixture of two contents.
#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let data = sample::lines(8 << 20);
    let directory = sample::directory();
    let touch = |path: &Path, seconds: u64| {
        let time = std::time::SystemTime::now() + std::time::Duration::from_secs(seconds);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    for mode in every_mode() {
        let opens: [fn(ReaderBuilder, &Path) -> Reader; 2] =
            [|builder, path| builder.path(path).unwrap(), |builder, path| builder.mapped(path).unwrap()];
        for open in opens {
            let path = sample::file(&directory, "input", &data);
            let mut reader = open(mode.builder(), &path);
            reader.next_line().unwrap();
            File::options().write(true).open(&path).unwrap().write_all_at(b"X", 7 << 20).unwrap();
            // The file system's clock may be coarse.
            touch(&path, 1);
            let (_, error) = drain(&mut reader, Pull::Fill);
            let error = error.unwrap_or_else(|| panic!("{mode:?}: a clean end"));
            assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");

            // Growth is allowed, unless the identity is pinned.
            for (pin, expected) in [(Pin::Content, None), (Pin::Identity, Some(ErrorKind::SourceChanged))] {
                let path = sample::file(&directory, "input", &data);
                let mut reader = open(mode.builder().pin(pin), &path);
                reader.next_line().unwrap();
                File::options().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
                touch(&path, 2);
                let (_, error) = drain(&mut reader, Pull::Fill);
                assert_eq!(error.map(|error| error.kind()), expected, "{mode:?} {pin:?}");
            }

            // The file to which its name refers does not matter.
            let path = sample::file(&directory, "input", &data);
            let mut reader = open(mode.builder().pin(Pin::Identity), &path);
            reader.next_line().unwrap();
            std::fs::remove_file(&path).unwrap();
            let (_, error) = drain(&mut reader, Pull::Fill);
            assert!(error.is_none(), "{mode:?}: {error:?}");
        }
    }
    // If only a part is needed, the rest does not matter either.
    let path = sample::file(&directory, "input", &data);
    let mut reader = Reader::path(&path).unwrap();
    reader.next_line().unwrap();
    touch(&path, 1);
    reader.close().unwrap();
    for refused in
        [Reader::builder().pin(Pin::Identity).memory("x"), Reader::builder().pin(Pin::Identity).command(["true"])]
    {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}

/// A growing file is read to its end at the time when the reader reaches that end.
#[test]
fn a_file_that_grows_while_it_is_read() {
    for mode in every_mode() {
        let directory = sample::directory();
        let path = sample::file(&directory, "input", b"one\n");
        let mut reader = mode.builder().path(&path).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(reader.next_line().unwrap(), None);
        File::options().append(true).open(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(reader.next_line().unwrap(), None, "the end stays the end");
    }
}

#[test]
fn the_standard_library_takes_a_reader() {
    let data = sample::lines(100_000);
    for mode in every_mode() {
        let open = || mode.builder().memory(data.clone()).unwrap();
        let mut copy = Vec::new();
        std::io::copy(&mut open(), &mut copy).unwrap();
        assert!(copy == data);
        assert!(std::io::read_to_string(open()).unwrap().as_bytes() == data);
        let lines: Vec<_> = open().lines().map(Result::unwrap).collect();
        assert_eq!(lines, std::str::from_utf8(&data).unwrap().lines().collect::<Vec<_>>());
        let pieces: Vec<_> = open().split(b'-').map(Result::unwrap).collect();
        assert_eq!(pieces, BufRead::split(&data[..], b'-').map(Result::unwrap).collect::<Vec<_>>());
        // The reader can be boxed as libraries require, and moved to another thread.
        let boxed: Box<dyn BufRead + Send> = Box::new(open());
        assert!(thread::spawn(move || std::io::read_to_string(boxed).unwrap()).join().unwrap().as_bytes() == data);
    }
}

/// An error passes unchanged through `std::io`.
#[test]
fn an_error_survives_the_standard_library() {
    for read_ahead in EVERY_READ_AHEAD {
        let mut reader = Reader::builder().read_ahead(read_ahead).command(["sh", "-c", "echo x; exit 3"]).unwrap();
        let mut text = String::new();
        let error = reader.read_to_string(&mut text).unwrap_err();
        assert_eq!(text, "x\n");
        let error = millstream::Error::from_io(error);
        assert_eq!(error.command().unwrap().status, millstream::CommandStatus::Exited(3));
    }
}

#[test]
fn progress_reports_the_position() {
    let data = sample::lines(300_000);
    let directory = sample::directory();
    let path = sample::file(&directory, "input", &data);
    for mode in every_mode() {
        let mut reader = mode.builder().path(&path).unwrap();
        assert_eq!(reader.progress().source_size, Some(300_000));
        assert!(reader.name().contains("input"), "{}", reader.name());
        let mut records = 0;
        while reader.next_line().unwrap().is_some() {
            records += 1;
        }
        let progress = reader.progress();
        assert_eq!((progress.bytes, progress.records), (300_000, records));
        assert_eq!(progress.source_bytes, 300_000);
        assert!(progress.format.is_none());
        assert_eq!(mode.builder().command(["true"]).unwrap().progress().source_size, None);
    }
}

/// The observer is called while the stream runs, at a bounded rate, on the consumer's thread.
#[test]
fn an_observer_sees_the_stream_pass() {
    for mode in every_mode() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, us) = (Arc::clone(&seen), thread::current().id());
        let every = Duration::from_millis(20);
        let observer = move |progress: &millstream::Progress| {
            assert_eq!(thread::current().id(), us);
            log.lock().unwrap().push((progress.bytes, progress.records));
        };
        let script = "i=0; while [ $i -lt 50 ]; do echo line; sleep 0.01; i=$((i+1)); done";
        let mut reader = mode.builder().observer(every, observer).command(["sh", "-c", script]).unwrap();
        let start = std::time::Instant::now();
        while reader.next_line().unwrap().is_some() {}
        reader.close().unwrap();
        let most = start.elapsed().as_millis() / every.as_millis() + 2;
        let seen = seen.lock().unwrap();
        assert!((2..=most as usize).contains(&seen.len()), "{mode:?}: {} calls, at most {most}", seen.len());
        assert!(seen.is_sorted(), "{seen:?}");
    }
}

#[test]
fn a_handle_reports_progress_while_the_reader_waits() {
    within_seconds(60, || {
        for mode in every_mode() {
            let (source, mut writer) = std::io::pipe().unwrap();
            let mut reader = mode.builder().fd(source).unwrap();
            let handle = reader.progress_handle();
            writer.write_all(b"no line end").unwrap();
            let reading = thread::spawn(move || reader.next_line().unwrap().map(<[u8]>::len));
            while handle.source_bytes() < 11 {
                thread::yield_now();
            }
            assert!(!reading.is_finished());
            drop(writer);
            assert_eq!(reading.join().unwrap(), Some(11));
            assert_eq!((handle.source_size(), handle.format()), (None, None));
        }
    });
}

/// The smallest values work.
#[test]
fn options_at_their_limits() {
    let data = sample::lines(1000);
    for mode in every_mode() {
        let mut reader = mode.builder().capacity(1).read_ahead_capacity(0, 0).memory(data.clone()).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), data);
        let source = Cursor::new(data.clone());
        let mut reader = mode.builder().capacity(1).read_ahead_capacity(0, 0).from_read(source).unwrap();
        assert_eq!(drain_whole(&mut reader, Pull::Frames), data);
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refused = |found: &str, error: millstream::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{found}");
        assert!(error.found().unwrap().contains(found), "{found}: {error}");
        assert!(error.expected().is_some(), "{error}");
    };
    let rows: [(&str, Set); 4] = [
        ("0 bytes", |builder| builder.capacity(0)),
        ("4294967296", |builder| builder.record_limit(1 << 32)),
        ("2 bytes of read-ahead at first, 1 at most", |builder| builder.read_ahead_capacity(2, 1)),
        ("0 s", |builder| builder.stall_timeout(Duration::ZERO)),
    ];
    for (found, set) in rows {
        for (_, open) in OPEN_NOTHING {
            refused(found, open(set(Reader::builder())).unwrap_err());
        }
    }
    for (name, open) in OPEN_NOTHING {
        let builder = || Reader::builder().decode_limit(1);
        refused("decoding limit", open(builder().decode(Decode::Off)).unwrap_err());
        if !["path", "fd", "socket"].contains(&name) {
            refused("following", open(Reader::builder().follow(Follow::Growing)).unwrap_err());
        }
        if ["socket", "from_read", "callback"].contains(&name) {
            refused("decoding limit", open(builder()).unwrap_err());
        }
    }
}

type Set = fn(ReaderBuilder) -> ReaderBuilder;
type TryOpen = fn(ReaderBuilder) -> millstream::Result<Reader>;

/// Every kind of source, without reading from it.
const OPEN_NOTHING: [(&str, TryOpen); 11] = [
    ("path", |builder| builder.path("/dev/null")),
    ("mapped", |builder| builder.mapped("/etc/passwd")),
    ("fd", |builder| builder.fd(File::open("/dev/null").unwrap())),
    ("socket", |builder| builder.fd(UnixStream::pair().unwrap().0)),
    ("command", |builder| builder.command(["true"])),
    ("shell", |builder| builder.shell("true")),
    // The peer does not exist: the options are checked first.
    ("tcp", |builder| builder.tcp("127.0.0.1:1")),
    ("unix", |builder| builder.unix("/nonexistent")),
    ("from_read", |builder| builder.from_read(std::io::empty())),
    ("callback", |builder| builder.callback(|_| Ok(0))),
    ("memory", |builder| builder.memory("")),
];

/// These files report the size of a page and contain one word.
#[test]
fn files_that_are_shorter_than_their_size() {
    let path = "/sys/devices/system/cpu/online";
    let Ok(text) = std::fs::read(path) else { return println!("SKIPPED: there is no {path}") };
    let mut reader = Reader::path(path).unwrap();
    assert_eq!(reader.next_line().unwrap().map(<[u8]>::to_vec), Some(text.trim_ascii_end().to_vec()));
    assert_eq!(reader.next_line().unwrap(), None);
}
