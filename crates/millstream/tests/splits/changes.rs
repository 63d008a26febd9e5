//! Files that change between the plan and the end of a split.

use millstream::frame::{CsvDialect, Endian, LengthPrefixed, PrefixCounts, PrefixWidth};
use millstream::scan::Separator;
use millstream::splits::{Framing, Split, SplitPin, Splits};
use millstream::{CancelToken, Decode, ErrorKind, Reader};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const PINS: [SplitPin; 4] = [SplitPin::None, SplitPin::Identity, SplitPin::Ends, SplitPin::Full];

/// Records that are found from any position, and records that are followed by planning. Both have the same splits here.
fn framings() -> [Framing; 2] {
    [Framing::Lines, csv()]
}

fn csv() -> Framing {
    Framing::Csv { dialect: CsvDialect::new() }
}

/// Every framing and pin.
fn cases() -> impl Iterator<Item = (Framing, SplitPin)> {
    framings().into_iter().flat_map(|framing| PINS.map(|pin| (framing.clone(), pin)))
}

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

fn plan(path: &Path, framing: Framing, pin: SplitPin) -> Splits {
    Splits::builder().pin(pin).plan(path, framing, 100_000).unwrap()
}

/// Reads a split, and calls `change` after its first record. Returns the number of records and the error.
fn read_while(split: &Split, change: impl FnOnce()) -> (u64, Option<ErrorKind>) {
    let mut reader = match Reader::builder().capacity(4096).split(split) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error.kind())),
    };
    let mut framer = split.framing().framer().unwrap();
    let mut change = Some(change);
    loop {
        match reader.next_frame(&mut *framer) {
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
    for (framing, pin) in cases() {
        for split in &plan(&path, framing.clone(), pin) {
            assert_eq!(read_while(split, || {}), (10_000, None), "{framing:?}, {pin:?}");
        }
    }
}

#[test]
fn a_shorter_file_is_always_detected() {
    for (framing, pin) in cases() {
        let (_directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let last = plan.iter().last().unwrap();
        let cut = || File::options().write(true).open(&path).unwrap().set_len(250_000).unwrap();
        let (lines, error) = read_while(last, cut);
        assert_eq!(error, Some(ErrorKind::SourceShrank), "{framing:?}, {pin:?}, while it is read");
        assert!(lines < 10_000);
        assert_eq!(read(last), Some(ErrorKind::SourceShrank), "{framing:?}, {pin:?}, before it is opened");
    }
}

#[test]
fn a_longer_file_is_detected_unless_nothing_is_pinned() {
    for (framing, pin) in cases() {
        let (_directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let grow = || File::options().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
        let expected = (pin != SplitPin::None).then_some(ErrorKind::SourceChanged);
        for (i, split) in plan.iter().enumerate() {
            let while_read = if i == 0 { read_while(split, grow).1 } else { read(split) };
            assert_eq!(while_read, expected, "{framing:?}, {pin:?}, split {i}");
        }
        if pin == SplitPin::None {
            let lines: u64 = plan.iter().map(|split| read_while(split, || {}).0).sum();
            assert_eq!(lines, 30_000, "the plan covers the lines that the file had");
        }
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_read_is_detected() {
    for (framing, pin) in cases() {
        let (_directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let rewrite = || {
            fs::write(&path, content().to_ascii_uppercase()).unwrap();
            touch(&path);
        };
        assert_eq!(
            read_while(&plan.iter().next().unwrap().clone(), rewrite).1,
            Some(ErrorKind::SourceChanged),
            "{framing:?}, {pin:?}"
        );
    }
}

#[test]
fn a_change_in_the_middle_that_keeps_the_times_needs_a_full_pin() {
    for (framing, pin) in cases() {
        let (_directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let mut changed = content();
        changed[150_000] = b'x';
        fs::write(&path, changed).unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        let errors: Vec<_> = plan.iter().map(read).collect();
        let expected = (pin == SplitPin::Full).then_some(ErrorKind::SourceChanged);
        assert_eq!(errors, [None, expected, None], "{framing:?}, {pin:?}");
    }
}

/// Changes one byte, and neither the size nor the times.
fn change_byte(path: &Path, at: u64) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(b"x", at).unwrap();
    file.set_modified(modified).unwrap();
}

/// If planning reads the file, `ends` has a hash of the bytes around the start of each split.
#[test]
fn a_change_near_a_boundary_is_detected_if_planning_has_read_it() {
    let elements = Framing::JsonElements { pointer: String::new(), depth: 9 };
    let element = |i| format!("{}{i}   ", if i == 100_000 { "[" } else { "," });
    let json = (100_000..130_000).map(element).chain(["]".into()]).collect::<String>().into_bytes();
    let prefix = LengthPrefixed::new(PrefixWidth::U8, Endian::Big).counts(PrefixCounts::Itself);
    let prefixed = Framing::LengthPrefixed { prefix };
    let records = (0..30_000).flat_map(|i| format!("\x0a{i:09}").into_bytes()).collect();
    // Whether it is numbered, and whether planning reads the file.
    for (framing, content, number, is_read) in [
        (csv(), content(), false, true),
        (Framing::Lines, content(), true, true),
        (Framing::Lines, content(), false, false),
        (Framing::Fixed { len: 10 }, content(), true, false),
        (prefixed, records, false, true),
        (elements, json, false, true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, &content).unwrap();
        let plan = Splits::builder().pin(SplitPin::Ends).number(number).plan(&path, framing.clone(), 100_000).unwrap();
        let splits: Vec<Split> = plan.iter().map(|split| Split::from_json(&split.to_json()).unwrap()).collect();
        let begin = splits[1].begin();
        assert_eq!(splits.len(), 3, "{framing:?}");
        for (at, is_near) in [
            (begin - (32 << 10) - 1, false),
            (begin - (32 << 10), true),
            (begin - 1, true),
            (begin, true),
            (begin + (32 << 10) - 1, true),
            (begin + (32 << 10), false),
        ] {
            fs::write(&path, &content).unwrap();
            assert!(splits.iter().all(|split| read(split).is_none()), "{framing:?}");
            change_byte(&path, at);
            let error = Reader::split(&splits[1]).err();
            assert_eq!(error.is_some(), is_read && is_near, "{framing:?}, byte {at}");
            if let Some(error) = error {
                assert_eq!((error.kind(), error.name()), (ErrorKind::SourceChanged, path.to_str()));
                let range = format!("other bytes from {} to {}", begin - (32 << 10), begin + (32 << 10));
                assert_eq!(error.found(), Some(&*range));
            }
            assert!(Reader::split(&splits[0]).is_ok() && Reader::split(&splits[2]).is_ok());
        }
        // While the split is read, in its part that has been read already.
        fs::write(&path, &content).unwrap();
        let changed = read_while(&splits[1], || change_byte(&path, begin)).1;
        assert_eq!(changed, is_read.then_some(ErrorKind::SourceChanged), "{framing:?}");
    }
}

/// Splits that are smaller than what is hashed around their starts.
#[test]
fn the_hashes_of_small_splits_have_the_bytes_of_small_ranges() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let content = content();
    fs::write(&path, &content).unwrap();
    let plan = Splits::builder().pin(SplitPin::Ends).plan(&path, csv(), 10).unwrap();
    assert_eq!(plan.len(), 30_000);
    change_byte(&path, 150_003);
    for (i, split) in plan.iter().enumerate().skip(14_990).take(20) {
        // The record is also before the start of the next split.
        let expected = (i == 15_000 || i == 15_001).then_some(ErrorKind::SourceChanged);
        assert_eq!(read(split), expected, "{i}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_planned_is_detected() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("shorter", |path| File::options().write(true).open(path).unwrap().set_len(250_000).unwrap()),
        ("empty", |path| File::options().write(true).open(path).unwrap().set_len(0).unwrap()),
        ("longer", |path| File::options().append(true).open(path).unwrap().write_all(b"more\n").unwrap()),
        ("rewritten", |path| {
            change_byte(path, 150_000);
            touch(path);
        }),
    ];
    for (framing, pin) in cases() {
        for (what, change) in changes {
            let (_directory, path) = file();
            let changed = path.clone();
            let builder = Splits::builder().pin(pin).number(true).progress(move |_| change(&changed));
            let kind = builder.plan(&path, framing.clone(), 100_000).err().map(|error| error.kind());
            let expected = match what {
                "shorter" | "empty" => Some(ErrorKind::SourceShrank),
                _ => (pin != SplitPin::None).then_some(ErrorKind::SourceChanged),
            };
            assert_eq!(kind, expected, "{framing:?}, {pin:?}, {what}");
        }
    }
}

#[test]
fn a_file_that_is_replaced_or_removed_is_detected_by_the_next_split() {
    for (framing, pin) in cases() {
        let (directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let other = directory.path().join("other");
        fs::write(&other, content().iter().rev().map(|byte| byte ^ 1).collect::<Vec<_>>()).unwrap();
        let mut splits = plan.iter();
        // The open file stays as it is.
        let replace = || fs::rename(&other, &path).unwrap();
        assert_eq!(read_while(splits.next().unwrap(), replace), (10_000, None), "{framing:?}, {pin:?}");
        let expected = (pin != SplitPin::None).then_some(ErrorKind::SourceChanged);
        assert_eq!(read(splits.next().unwrap()), expected, "{framing:?}, {pin:?}");
        fs::remove_file(&path).unwrap();
        assert_eq!(read(splits.next().unwrap()), Some(ErrorKind::OpenFailed), "{framing:?}, {pin:?}");
    }
}

/// All records of a split have been read, but not yet its end.
#[test]
fn a_change_after_the_last_record_is_detected_at_the_end() {
    for ((framing, pin), i) in cases().flat_map(|case| [0, 1, 2].map(|i| (case.clone(), i))) {
        let (_directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let mut reader = Reader::split(plan.iter().nth(i).unwrap()).unwrap();
        let (begin, mut framer) = (reader.position().records, framing.framer().unwrap());
        while reader.position().records < begin + 10_000 {
            reader.next_frame(&mut *framer).unwrap().unwrap();
        }
        File::options().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
        let error = reader.next_frame(&mut *framer).err().map(|error| error.kind());
        let expected = (pin != SplitPin::None).then_some(ErrorKind::SourceChanged);
        assert_eq!(error, expected, "{framing:?}, {pin:?}, split {i}");
    }
}

#[test]
fn a_copy_matches_if_only_content_is_pinned() {
    for (framing, pin) in cases() {
        let (directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let copy = directory.path().join("copy");
        fs::copy(&path, &copy).unwrap();
        let expected = (pin == SplitPin::Identity).then_some(ErrorKind::SourceChanged);
        for split in plan {
            assert_eq!(read(&split.with_path(&copy)), expected, "{framing:?}, {pin:?}");
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
    for (framing, pin) in cases() {
        let (directory, path) = file();
        let plan = plan(&path, framing.clone(), pin);
        let other = directory.path().join("other");
        fs::write(&other, content().iter().rev().copied().collect::<Vec<_>>()).unwrap();
        let error = Reader::split(&plan.iter().next().unwrap().clone().with_path(&other)).err();
        assert_eq!(error.is_none(), pin == SplitPin::None, "{framing:?}, {pin:?}");
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
    let split = plan(&path, Framing::Lines, SplitPin::None).iter().nth(1).unwrap().clone();
    token.cancel();
    let cancelled = Reader::builder().cancel(&token).split(&split);
    assert_eq!(cancelled.map(|_| ()).unwrap_err().kind(), ErrorKind::Cancelled);
    token.reset();
    assert!(Reader::builder().cancel(&token).split(&split).is_ok());
}
