//! Following a growing file that is also truncated, renamed or replaced.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use millstream::{ErrorKind, Follow, Reader};

use crate::deadline::within_seconds;
use crate::every_way::every_mode;
use crate::sample;

/// Opens a log of two lines, reads them, lets `happen` change the log, and returns the next line.
fn after(happen: impl Fn(&Path) + Copy + Send + 'static) {
    for mode in every_mode() {
        for by_path in [true, false] {
            within_seconds(60, move || {
                let directory = sample::directory();
                let path = sample::file(&directory, "log", b"line 0\nline 1\n");
                let builder = mode.builder().follow(Follow::Growing);
                let mut reader = match by_path {
                    true => builder.path(&path).unwrap(),
                    false => builder.fd(File::open(&path).unwrap()).unwrap(),
                };
                assert_eq!(reader.next_line().unwrap(), Some(&b"line 0"[..]));
                assert_eq!(reader.next_line().unwrap(), Some(&b"line 1"[..]));
                happen(&path);
                let expected = fs::read_to_string(directory.path().join("expected")).unwrap_or_default();
                for line in expected.lines() {
                    if line == "by path" {
                        if by_path {
                            continue;
                        }
                        return;
                    }
                    match reader.next_line() {
                        Ok(found) => assert_eq!(found, Some(line.as_bytes()), "{mode:?} {by_path}"),
                        Err(error) => {
                            assert_eq!(error.kind().name(), line, "{mode:?} {by_path}: {error}");
                            return;
                        }
                    }
                }
                panic!("{mode:?} {by_path}: no error");
            });
        }
    }
}

fn expect(path: &Path, lines: &str) {
    fs::write(path.with_file_name("expected"), lines).unwrap();
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn truncated_and_written_again_to_more_than_was_read() {
    after(|path| {
        expect(path, "source_shrank");
        fs::write(path, "another\nlog\nis longer\nthan it was\n").unwrap();
    });
}

#[test]
fn truncated_and_written_again_to_just_as_much() {
    after(|path| {
        expect(path, "source_shrank");
        fs::write(path, "other0\nline 1\n").unwrap();
    });
}

/// A writer that does not append leaves a hole.
#[test]
fn truncated_and_written_at_the_old_place() {
    after(|path| {
        expect(path, "source_shrank");
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(0).unwrap();
        file.write_all_at(b"line 2\n", 14).unwrap();
    });
}

#[test]
fn renamed_after_its_content_was_read() {
    after(|path| {
        expect(path, "line 2\nby path\nsource_changed");
        append(path, b"line 2\n");
        fs::rename(path, path.with_extension("1")).unwrap();
    });
}

#[test]
fn deleted_after_its_content_was_read() {
    after(|path| {
        expect(path, "line 2\nsource_changed");
        append(path, b"line 2\n");
        fs::remove_file(path).unwrap();
    });
}

#[test]
fn replaced_by_another() {
    after(|path| {
        expect(path, "line 2\nsource_changed");
        append(path, b"line 2\n");
        let new = path.with_extension("new");
        fs::write(&new, "line 0\nline 1\nline 2\nline 3\n").unwrap();
        fs::rename(new, path).unwrap();
    });
}

/// The path is a link that is changed to point to another file: the followed file itself does not change.
#[test]
fn a_link_that_leads_elsewhere() {
    within_seconds(60, || {
        let directory = sample::directory();
        let path = sample::file(&directory, "log.1", b"line 0\n");
        let link = directory.path().join("current");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut reader = Reader::builder().follow(Follow::Growing).path(&link).unwrap();
        assert_eq!(reader.next_line().unwrap(), Some(&b"line 0"[..]));
        let next = sample::file(&directory, "log.2", b"line 1\n");
        let new = directory.path().join("new");
        std::os::unix::fs::symlink(next, &new).unwrap();
        fs::rename(new, link).unwrap();
        assert_eq!(reader.next_line().unwrap_err().kind(), ErrorKind::SourceChanged);
    });
}

/// A log that is copied and truncated repeatedly: every line arrives, or there is an error.
#[test]
fn copytruncate_is_never_silent() {
    within_seconds(60, || {
        let directory = sample::directory();
        let path = sample::file(&directory, "log", b"");
        let (begun, go_on) = std::sync::mpsc::channel();
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut log = File::options().append(true).open(&path).unwrap();
                for i in 0..3000 {
                    writeln!(log, "line {i}").unwrap();
                    if i == 0 {
                        go_on.recv().unwrap();
                    }
                    if i % 1000 == 999 {
                        log.set_len(0).unwrap();
                    }
                }
            })
        };
        let mut reader = Reader::builder().follow(Follow::Growing).path(&path).unwrap();
        let mut next = 0;
        let error = loop {
            match reader.next_line() {
                Ok(line) => assert_eq!(line, Some(format!("line {next}").as_bytes())),
                Err(error) => break error,
            }
            next += 1;
            let _ = begun.send(());
        };
        assert_eq!(error.kind(), ErrorKind::SourceShrank, "{error}");
        writer.join().unwrap();
    });
}
