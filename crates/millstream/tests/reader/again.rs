//! Reading the same version of a source again.

use std::fs::{self, File};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use millstream::{ErrorKind, Follow, Reader, ReaderBuilder};

use crate::every_way::every_mode;
use crate::sample;

fn lines(reader: &mut Reader) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        lines.push(String::from_utf8(line.to_vec()).unwrap());
    }
    lines
}

#[test]
fn a_source_is_read_again_from_its_start() {
    let directory = sample::directory();
    let path = &sample::file(&directory, "a", b"one\ntwo\nthree\n");
    let json = &sample::file(&directory, "b", b"[\"one\",\n\"two\"]");
    let empty = &sample::file(&directory, "c", b"");
    type Open<'a> = Box<dyn Fn(ReaderBuilder) -> Reader + 'a>;
    let sources: [(Open<'_>, &[&str]); 6] = [
        (Box::new(|builder| builder.path(path).unwrap()), &["one", "two", "three"]),
        (Box::new(|builder| builder.mapped(path).unwrap()), &["one", "two", "three"]),
        (Box::new(|builder| builder.memory("one\ntwo\n").unwrap()), &["one", "two"]),
        (Box::new(|builder| builder.json_elements("").path(json).unwrap()), &["\"one\"\u{1e}\"two\"\u{1e}"]),
        (Box::new(|builder| builder.json_elements("").memory("[1,2]").unwrap()), &["1\u{1e}2\u{1e}"]),
        (Box::new(|builder| builder.path(empty).unwrap()), &[]),
    ];
    for mode in every_mode() {
        for (open, expected) in &sources {
            let mut reader = open(mode.builder().name("name").record_limit(100));
            let version = reader.version().unwrap();
            // From the start, from the middle and from the end.
            reader.rewind().unwrap();
            let first = reader.next_line().unwrap().map(<[u8]>::to_vec);
            assert_eq!(first.as_deref(), expected.first().map(|line| line.as_bytes()));
            reader.rewind().unwrap();
            for _ in 0..2 {
                assert_eq!(lines(&mut reader), *expected);
                assert_eq!(reader.position().records, expected.len() as u64);
                reader.rewind().unwrap();
                assert_eq!((reader.position().bytes, reader.progress().records, reader.name()), (0, 0, "name"));
            }
            let mut other = version.open().unwrap();
            assert_eq!(lines(&mut other), *expected);
            assert_eq!(lines(&mut reader), *expected, "they are independent");
        }
    }
}

#[test]
#[cfg(feature = "compression")]
fn a_compressed_source_is_decoded_again() {
    let directory = sample::directory();
    let path = directory.path().join("a.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    writer.write(b"one\ntwo\n").unwrap();
    writer.close().unwrap();
    let bytes = fs::read(&path).unwrap();
    for mut reader in [Reader::path(&path).unwrap(), Reader::memory(bytes).unwrap()] {
        assert_eq!(lines(&mut reader), ["one", "two"]);
        let read = reader.progress().source_bytes;
        reader.rewind().unwrap();
        assert_eq!(lines(&mut reader), ["one", "two"]);
        assert_eq!(reader.progress().source_bytes, read);
    }
}

#[test]
fn what_can_be_read_only_once_is_refused_and_can_still_be_read() {
    let directory = sample::directory();
    let path = sample::file(&directory, "a", b"one\n");
    let (pipe, writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut &writer, b"one\n").unwrap();
    drop(writer);
    let growing = || Reader::builder().follow(Follow::Growing);
    let sources = [
        (Reader::command(["echo", "one"]), "a command"),
        (Reader::fd(pipe), "a pipe"),
        (Reader::fd(File::open(&path).unwrap()), "a file descriptor"),
        (Reader::path("/dev/null"), "a device or connection"),
        (Reader::from_read(Cursor::new("one\n")), "a callback"),
        (growing().path(&path), "a file that is followed"),
    ];
    for (reader, what) in sources {
        let mut reader = reader.unwrap();
        for error in [reader.version().unwrap_err(), reader.rewind().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.found(), Some(&*format!("{what}, which can be read only once")));
            assert_eq!(error.name(), Some(reader.name()));
        }
        let expected = (what != "a device or connection").then_some(&b"one"[..]);
        assert_eq!(reader.next_line().unwrap(), expected, "{what}");
    }
}

#[test]
fn a_file_that_is_not_the_same_is_an_error() {
    type Change = fn(&Path);
    let changes: [(Change, ErrorKind, &str); 6] = [
        (|path| fs::write(path, "one\ntwo\nthree\n").unwrap(), ErrorKind::SourceChanged, "14 bytes"),
        (|path| fs::write(path, "one\n").unwrap(), ErrorKind::SourceShrank, "4 bytes"),
        (
            |path| File::options().write(true).open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap(),
            ErrorKind::SourceChanged,
            "a different modification time",
        ),
        (
            |path| {
                let (other, time) = (path.with_extension("new"), fs::metadata(path).unwrap().modified().unwrap());
                fs::write(&other, "one\ntwo\n").unwrap();
                File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
                fs::rename(other, path).unwrap();
            },
            ErrorKind::SourceChanged,
            "another file under this name",
        ),
        (
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/dev/null", path).unwrap();
            },
            ErrorKind::SourceChanged,
            "something that is not a regular file",
        ),
        (|path| fs::remove_file(path).unwrap(), ErrorKind::OpenFailed, ""),
    ];
    for (change, kind, found) in changes {
        let directory = sample::directory();
        let path = sample::file(&directory, "a", b"one\ntwo\n");
        let mut reader = Reader::path(&path).unwrap();
        assert_eq!(lines(&mut reader), ["one", "two"]);
        change(&path);
        let error = reader.rewind().unwrap_err();
        assert_eq!((error.kind(), error.found().unwrap_or_default()), (kind, found));
        assert_eq!(error.name(), path.to_str());
        assert_eq!(reader.next_line().unwrap(), None, "it is closed");
    }
}

#[test]
fn the_options_and_the_reports_continue() {
    let calls = Arc::new(AtomicU64::new(0));
    let observer = calls.clone();
    let mut reader = Reader::builder()
        .observer(Duration::ZERO, move |progress| {
            observer.fetch_max(progress.source_bytes, Ordering::Relaxed);
        })
        .record_limit(5)
        .total_timeout(Duration::from_millis(200))
        .json_elements("")
        .memory("[1,2]")
        .unwrap();
    let handle = reader.progress_handle();
    assert_eq!(lines(&mut reader), ["1\u{1e}2\u{1e}"]);
    assert_eq!((handle.source_bytes(), calls.swap(0, Ordering::Relaxed)), (5, 5));
    reader.rewind().unwrap();
    assert_eq!(lines(&mut reader), ["1\u{1e}2\u{1e}"]);
    assert_eq!((handle.source_bytes(), calls.load(Ordering::Relaxed)), (5, 5));
    // The time limit is that of both readings.
    std::thread::sleep(Duration::from_millis(250));
    let error = reader.rewind().and_then(|()| reader.next_line().map(drop)).unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::TimedOut, Some("a stream that is not complete after 0.2 s")));
    let mut reader = Reader::builder().record_limit(3).memory("abcd\n").unwrap();
    reader.rewind().unwrap();
    assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::RecordTooLong);
}
