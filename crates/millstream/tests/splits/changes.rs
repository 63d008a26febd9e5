//! Files that change between the plan and the end of a split.

use millstream::scan::Separator;
use millstream::splits::{Framing, Split, SplitPin, Splits};
use millstream::{CancelToken, Decode, ErrorKind, Reader};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const PINS: [SplitPin; 4] = [SplitPin::None, SplitPin::Identity, SplitPin::Ends, SplitPin::Full];

/// A file of 300,000 bytes in lines of ten bytes.
fn file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lines");
    fs::write(&path, content()).unwrap();
    (directory, path)
}

fn content() -> Vec<u8> {
    (0..30_000).flat_map(|i| format!("{i:09}\n").into_bytes()).collect()
}

fn plan(path: &Path, pin: SplitPin) -> Splits {
    Splits::builder().pin(pin).plan(path, Framing::Lines, 100_000).unwrap()
}

/// Reads a split, after `change` has been called behind its first line. Returns the number of lines and the error.
fn read_while(split: &Split, change: impl FnOnce()) -> (u64, Option<ErrorKind>) {
    let mut reader = match Reader::builder().capacity(4096).split(split) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error.kind())),
    };
    let mut change = Some(change);
    loop {
        match reader.next_line() {
            Ok(Some(_)) => change.take().into_iter().for_each(|change| change()),
            Ok(None) => return (reader.progress().records, None),
            Err(error) => return (reader.progress().records, Some(error.kind())),
        }
    }
}

fn read(split: &Split) -> Option<ErrorKind> {
    read_while(split, || {}).1
}

/// Sets the modification time, which an overwritten file may keep if the clock is coarse.
fn touch(path: &Path) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
}

#[test]
fn an_unchanged_file_matches() {
    let (_directory, path) = file();
    for pin in PINS {
        for split in &plan(&path, pin) {
            assert_eq!(read_while(split, || {}), (10_000, None), "{pin:?}");
        }
    }
}

#[test]
fn a_shorter_file_is_always_detected() {
    for pin in PINS {
        let (_directory, path) = file();
        let plan = plan(&path, pin);
        let last = plan.iter().last().unwrap();
        let cut = || File::options().write(true).open(&path).unwrap().set_len(250_000).unwrap();
        let (lines, error) = read_while(last, cut);
        assert_eq!(error, Some(ErrorKind::SourceShrank), "{pin:?}, while it is read");
        assert!(lines < 10_000);
        assert_eq!(read(last), Some(ErrorKind::SourceShrank), "{pin:?}, before it is opened");
    }
}

#[test]
fn a_longer_file_is_detected_unless_nothing_is_pinned() {
    for pin in PINS {
        let (_directory, path) = file();
        let plan = plan(&path, pin);
        let grow = || File::options().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
        let expected = (pin != SplitPin::None).then_some(ErrorKind::SourceChanged);
        for (i, split) in plan.iter().enumerate() {
            let while_read = if i == 0 { read_while(split, grow).1 } else { read(split) };
            assert_eq!(while_read, expected, "{pin:?}, split {i}");
        }
        if pin == SplitPin::None {
            let lines: u64 = plan.iter().map(|split| read_while(split, || {}).0).sum();
            assert_eq!(lines, 30_000, "the plan covers the lines that the file had");
        }
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_read_is_detected() {
    for pin in PINS {
        let (_directory, path) = file();
        let plan = plan(&path, pin);
        let rewrite = || {
            fs::write(&path, content().to_ascii_uppercase()).unwrap();
            touch(&path);
        };
        assert_eq!(
            read_while(&plan.iter().next().unwrap().clone(), rewrite).1,
            Some(ErrorKind::SourceChanged),
            "{pin:?}"
        );
    }
}

#[test]
fn a_change_in_the_middle_that_keeps_the_times_needs_a_full_pin() {
    for pin in PINS {
        let (_directory, path) = file();
        let plan = plan(&path, pin);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let mut changed = content();
        changed[150_000] = b'x';
        fs::write(&path, changed).unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        let errors: Vec<_> = plan.iter().map(read).collect();
        let expected = (pin == SplitPin::Full).then_some(ErrorKind::SourceChanged);
        assert_eq!(errors, [None, expected, None], "{pin:?}");
    }
}

#[test]
fn a_copy_matches_if_only_content_is_pinned() {
    for pin in PINS {
        let (directory, path) = file();
        let plan = plan(&path, pin);
        let copy = directory.path().join("copy");
        fs::copy(&path, &copy).unwrap();
        let expected = (pin == SplitPin::Identity).then_some(ErrorKind::SourceChanged);
        for split in plan {
            assert_eq!(read(&split.with_path(&copy)), expected, "{pin:?}");
        }
    }
}

/// The number of lines before a split is known only if the plan has counted them.
#[test]
fn an_error_names_the_line_of_the_file_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("numbers");
    fs::write(&path, "1\n2\n3\nx\n").unwrap();
    let plan = Splits::plan(&path, Framing::Lines, 4).unwrap();
    let mut lines = Vec::new();
    for split in &plan {
        let mut reader = Reader::split(split).unwrap();
        while let Some(number) = reader.next_column::<u8>(0, Separator::Space).transpose() {
            if let Err(error) = number {
                assert_eq!(error.offset(), Some(6));
                lines.push((error.line(), split.first_record().map(|_| 4)));
            }
        }
    }
    assert!(plan.len() > 1 && lines.len() == 1);
    assert_eq!(lines[0].0, lines[0].1);
}

#[test]
fn a_plan_for_another_file_is_an_error_that_says_so() {
    for pin in PINS {
        let (directory, path) = file();
        let plan = plan(&path, pin);
        let other = directory.path().join("other");
        fs::write(&other, content().iter().rev().copied().collect::<Vec<_>>()).unwrap();
        let error = Reader::split(&plan.iter().next().unwrap().clone().with_path(&other)).err();
        assert_eq!(error.is_none(), pin == SplitPin::None, "{pin:?}");
        if let Some(error) = error {
            assert_eq!(error.kind(), ErrorKind::SourceChanged);
            assert_eq!(error.name(), other.to_str());
            assert!(error.to_string().contains("of the plan"), "{error}");
        }
    }
}

#[test]
fn a_record_that_ends_in_the_last_split_is_read_from_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long");
    fs::write(&path, [&[b'x'; 100_000][..], b"\nend"].concat()).unwrap();
    let plan = Splits::plan(&path, Framing::Lines, 1000).unwrap();
    let lines: Vec<u64> = plan.iter().map(|split| read_while(split, || {}).0).collect();
    assert_eq!((lines.len(), lines[0], lines[100]), (101, 1, 1));
    assert_eq!(lines.iter().sum::<u64>(), 2);
}

/// A compressed format's first bytes at the start of a split do not make its file compressed.
#[test]
fn the_magic_of_a_format_in_the_middle_is_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("magic");
    let line = b"\x1f\x8b\x08\0\0\0\0\0\0\x03 gzip\n";
    fs::write(&path, [&b"text first....\n"[..], line, line].concat()).unwrap();
    let plan = Splits::plan(&path, Framing::Lines, 15).unwrap();
    let mut lines = Vec::new();
    for split in &plan {
        let mut reader = Reader::builder().decode(Decode::Auto).split(split).unwrap();
        while let Some(read) = reader.next_line().unwrap() {
            lines.push(read.to_vec());
        }
    }
    assert_eq!(lines, [&b"text first...."[..], &line[..line.len() - 1], &line[..line.len() - 1]]);
}

#[test]
fn what_cannot_be_planned() {
    let (directory, path) = file();
    let kind = |path: &Path, framing, size| Splits::plan(path, framing, size).unwrap_err().kind();
    assert_eq!(kind(&path, Framing::Lines, 0), ErrorKind::InvalidOption);
    assert_eq!(kind(&path, Framing::Fixed { len: 0 }, 1), ErrorKind::InvalidOption);
    assert_eq!(kind(&path, Framing::Delimiter { bytes: Vec::new() }, 1), ErrorKind::InvalidOption);
    assert_eq!(kind(directory.path(), Framing::Lines, 1), ErrorKind::Unsupported);
    assert_eq!(kind(&directory.path().join("absent"), Framing::Lines, 1), ErrorKind::OpenFailed);
    assert_eq!(kind(Path::new("/dev/null"), Framing::Lines, 1), ErrorKind::Unsupported);
    #[cfg(target_os = "linux")]
    assert_eq!(kind(Path::new("/proc/self/status"), Framing::Lines, 1), ErrorKind::Unsupported);
}

/// 1 TB of nothing: planning lines must not read it, and must not depend on its size.
#[test]
fn a_plan_of_lines_reads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse");
    File::create(&path).unwrap().set_len(1_000_000_000_000).unwrap();
    assert_eq!(Splits::plan(&path, Framing::Lines, 256 << 20).unwrap().len(), 3726);
    assert_eq!(Splits::plan(&path, Framing::Lines, 1000).unwrap_err().kind(), ErrorKind::InvalidOption);
    assert_eq!(Splits::plan(&path, Framing::Fixed { len: 1000 }, 256 << 20).unwrap().len(), 3726);
}

#[test]
fn the_search_for_a_first_record_can_be_cancelled() {
    let (_directory, path) = file();
    let token = CancelToken::new().unwrap();
    let split = plan(&path, SplitPin::None).iter().nth(1).unwrap().clone();
    token.cancel();
    let cancelled = Reader::builder().cancel(&token).split(&split);
    assert_eq!(cancelled.map(|_| ()).unwrap_err().kind(), ErrorKind::Cancelled);
    token.reset();
    assert!(Reader::builder().cancel(&token).split(&split).is_ok());
}
