//! Runs the shared vectors through a reader: every case at every split, one record at a time and in batches. The
//! framers alone also run the vectors of records, in `crates/core/tests`.

#[path = "../../core/tests/frame_twin/mod.rs"]
#[expect(dead_code, reason = "functions that run a framer without a reader are used in crates/core")]
mod frame_twin;
mod scan_twin;

use frame_twin::{Outcome, framer, unhex, vectors};
use millstream::csv::Rows;
use millstream::frame::{Csv, Lines};
use millstream::options::READER;
use millstream::pipe::Pipe;
use millstream::scan::Separator;
use millstream::{Command, Decode, Error, ErrorKind, Reader, Remote, Writer};
use std::io::{Cursor, Read, empty};
use std::path::Path;

const SCAN: &str = include_str!("../../../vectors/scan.tsv");
const SNIFF: &str = include_str!("../../../vectors/sniff.tsv");
const LIMITS: &str = include_str!("../../../vectors/limits.tsv");
const PLACES: &str = include_str!("../../../vectors/places.tsv");
const DEFAULTS: &str = include_str!("../../../vectors/defaults.tsv");
const URLS: &str = include_str!("../../../vectors/urls.tsv");

/// Returns the cases of a file, in columns.
fn cases<const N: usize>(file: &str) -> Vec<[&str; N]> {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases: Vec<_> = lines.map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap()).collect();
    assert!(!cases.is_empty(), "the file contains no case");
    cases
}

#[test]
fn advice_names_options_and_methods_that_exist() {
    let _ = (Command::allow_failure, Reader::skip_record::<Lines>);
    let methods = ["allow_failure", "skip_record", "on_error", "depth"]; // of `Pipe` and of `bson::Rules`
    let mut names = ErrorKind::ALL.iter().flat_map(|kind| kind.advice().split('`').skip(1).step_by(2));
    let missing = names.find(|name| !methods.contains(name) && READER.iter().all(|option| option.name != *name));
    assert_eq!(missing, None);
}

#[test]
fn urls() {
    for [text, expected] in cases(URLS) {
        assert_eq!(Remote::is_url(text).to_string(), expected, "{text}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn frames() {
    for case in vectors() {
        for splits in case.splits() {
            for max in [1, 2, usize::MAX] {
                let reader = by_reader(case.words, &case.input, &splits, max);
                assert_eq!(reader, case.expected, "{}, batches of {max}, split at {splits:?}", case.name);
            }
        }
    }
}

/// Returns a reader's result for a source that delivers the pieces between the splits: one record at a time if `max` is
/// 1, otherwise in batches of at most `max` records.
fn by_reader(words: &str, input: &[u8], splits: &[usize], max: usize) -> Outcome {
    let mut source: Box<dyn Read + Send> = Box::new(empty());
    let mut start = 0;
    for end in splits.iter().copied().chain([input.len()]) {
        source = Box::new(source.chain(Cursor::new(input[start..end].to_vec())));
        start = end;
    }
    let mut reader = Reader::builder().capacity(8).decode(Decode::Off).from_read(source).unwrap();
    let mut framer = framer(words);
    let mut records = Vec::new();
    loop {
        let more = match max {
            1 => reader.next_frame(&mut framer).map(|record| record.map(|record| records.push(record.to_vec()))),
            _ => reader
                .next_batch_of(&mut framer, max)
                .map(|batch| batch.map(|batch| records.extend(batch.iter().map(<[u8]>::to_vec)))),
        };
        match more {
            Ok(Some(())) => {}
            Ok(None) => return (records, None),
            // An announced length over the limit is rejected immediately; skipping shows that its bytes are missing.
            Err(error) if error.kind() == ErrorKind::RecordTooLong => {
                return (records, reader.skip_record(&mut framer).err().map(|error| error.kind()));
            }
            Err(error) => return (records, Some(error.kind())),
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn scan() {
    let mut cases = 0;
    for line in SCAN.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, kind, input, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {line}");
        };
        let input = unhex(input);
        let (words, separator) = match kind.split_once(',') {
            Some((words, separator)) => (words, Separator::Byte(unhex(separator)[0])),
            None => (kind, Separator::Space),
        };
        let types = words.split(' ').cycle();
        let expected: Vec<String> =
            expected.split_terminator(' ').zip(types).map(|(word, kind)| as_shown(kind, word)).collect();
        let shown = |(values, error): scan_twin::Outcome| -> Vec<String> {
            let values = values.join(" ");
            let values = values.split_terminator(' ').map(str::to_owned);
            values.chain(error.map(|(kind, ..)| kind.name().to_owned())).collect()
        };
        assert_eq!(shown(scan_twin::naive(words, separator, &input)), expected, "{name}, the naive twin");
        for capacity in [1, 8, 1 << 10] {
            for split in 0..=input.len() {
                let mut reader = scan_twin::split(&input, &[split], capacity);
                let found = shown(scan_twin::by_reader(words, separator, &mut reader));
                assert_eq!(found, expected, "{name}, split at {split}, capacity {capacity}");
            }
        }
        if separator == Separator::Space {
            // White space after the values does not change them, but moves the end of the bytes far away from them.
            let far = [&input[..], &[b' '; 200]].concat();
            let mut reader = Reader::builder().decode(Decode::Off).memory(far).unwrap();
            assert_eq!(shown(scan_twin::by_reader(words, separator, &mut reader)), expected, "{name}, far");
        }
        cases += 1;
    }
    assert!(cases > 0, "the file contains no case");
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn places() {
    for [name, way, limit, input, kind, offset, record, line, column] in cases(PLACES) {
        let input = unhex(input);
        for split in 0..=input.len() {
            for is_batched in [false, true] {
                let reader = Reader::builder().capacity(8).record_limit(limit.parse().unwrap()).decode(Decode::Off);
                let pieces = Cursor::new(input[..split].to_vec()).chain(Cursor::new(input[split..].to_vec()));
                let mut reader = reader.from_read(pieces).unwrap();
                let error = match way {
                    "scan u32" => reader.values::<u32>().find_map(Result::err),
                    "rows" => {
                        let mut rows = Rows::new(reader, Csv::new());
                        rows.header().unwrap();
                        std::iter::from_fn(|| rows.next_row().map(|row| row.map(drop)).transpose())
                            .find_map(Result::err)
                    }
                    "lines" if !is_batched => {
                        std::iter::from_fn(|| reader.next_line().map(|line| line.map(drop)).transpose())
                            .find_map(Result::err)
                    }
                    _ if is_batched => {
                        let mut framer = framer(way);
                        std::iter::from_fn(|| reader.next_batch(&mut framer).map(|batch| batch.map(drop)).transpose())
                            .find_map(Result::err)
                    }
                    _ => {
                        let mut framer = framer(way);
                        std::iter::from_fn(|| reader.next_frame(&mut framer).map(|record| record.map(drop)).transpose())
                            .find_map(Result::err)
                    }
                };
                let error = error.unwrap();
                let shown = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
                let place = [error.offset(), error.record(), error.line(), error.column()].map(shown);
                assert_eq!(
                    (error.kind().name(), place),
                    (kind, [offset, record, line, column].map(str::to_owned)),
                    "{name}"
                );
            }
        }
    }
}

/// Returns a word of a vector as the twins format it: a float has many texts, and they use one of them.
fn as_shown(kind: &str, word: &str) -> String {
    match kind {
        _ if word.contains('_') => word.to_owned(),
        "f32" => format!("{:?}", word.parse::<f32>().unwrap()),
        "f64" => format!("{:?}", word.parse::<f64>().unwrap()),
        _ => word.to_owned(),
    }
}

/// Returns all data that a file delivers, and the whole content of a file after these bytes were written to it.
fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    let (mut reader, mut all) = (Reader::path(path)?, Vec::new());
    while reader.fill()? > 0 {
        all.extend_from_slice(reader.buffer());
        reader.consume(reader.buffer().len());
    }
    Ok(all)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut writer = Writer::path(path)?;
    writer.write(bytes)?;
    writer.close()?;
    Ok(std::fs::read(path).unwrap())
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn sniff() {
    let directory = tempfile::tempdir().unwrap();
    for [name, way, file, input, output, end] in cases(SNIFF) {
        let path = directory.path().join(file);
        let found = match way {
            "read" => {
                std::fs::write(&path, unhex(input)).unwrap();
                read_file(&path)
            }
            _ => write_file(&path, &unhex(input)),
        };
        let is_right = match &found {
            Ok(found) if way == "read" => end == "end" && *found == unhex(output),
            Ok(found) => end == "end" && found.starts_with(&unhex(output)),
            Err(error) => error.kind().name() == end,
        };
        assert!(is_right, "{name}: {found:?}, expected {output} {end}");
        let _ = std::fs::remove_file(&path);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn limits() {
    for [name, words, limit, input, records, end] in cases(LIMITS) {
        let records: Vec<_> = if records == "-" { Vec::new() } else { records.split(',').map(unhex).collect() };
        let input = unhex(input);
        for (cut, max) in (0..=input.len()).flat_map(|cut| [(cut, 1), (cut, usize::MAX)]) {
            let source = Cursor::new(input[..cut].to_vec()).chain(Cursor::new(input[cut..].to_vec()));
            let mut reader = Reader::builder().record_limit(limit.parse().unwrap()).from_read(source).unwrap();
            let (mut framer, mut found) = (framer(words), Vec::new());
            let how = loop {
                let more = match max {
                    1 => reader.next_frame(&mut framer).map(|record| record.map(|record| found.push(record.to_vec()))),
                    _ => reader
                        .next_batch_of(&mut framer, max)
                        .map(|batch| batch.map(|batch| found.extend(batch.iter().map(<[u8]>::to_vec)))),
                };
                match more {
                    Ok(Some(())) => {}
                    Ok(None) => break "end",
                    Err(error) => break error.kind().name(),
                }
            };
            assert_eq!((&found, how), (&records, end), "{name}, split at {cut}, {max} at a time");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts commands")]
fn defaults() {
    let directory = tempfile::tempdir().unwrap();
    for [option, default] in cases(DEFAULTS) {
        if let Some(found) = default_of(option, directory.path()) {
            assert_eq!(found, default, "{option}");
        }
    }
}

/// Returns the default of an option, as its behaviour shows it, or `None` if Rust does not have the option.
fn default_of(option: &str, directory: &Path) -> Option<String> {
    let zipped = unhex("1f8b080000000000020333e4020053fc516702000000");
    let is_text = |mut reader: Reader| if reader.next_line().unwrap() == Some(b"1") { "yes" } else { "no" };
    let is_long = |len: usize| Reader::memory(vec![b'x'; len]).unwrap().next_line().is_err();
    let file = directory.join("file.gz");
    let found = match option {
        "record_limit" => match (is_long(64 << 20), is_long((64 << 20) + 1)) {
            (false, true) => "67108864",
            _ => "another",
        },
        "keep_delimiter" => match Reader::memory("1\n").unwrap().next_frame(&mut Lines::new()).unwrap() {
            Some(b"1") => "no",
            _ => "yes",
        },
        // These features always exist.
        "prefix_order" => return None,
        "prefix_counts" => {
            use millstream::frame::{Endian, LengthPrefixed, PrefixWidth};
            let mut framer = LengthPrefixed::new(PrefixWidth::U8, Endian::Little);
            let mut reader = Reader::memory("\x02ab").unwrap();
            let record = reader.next_frame(&mut framer);
            if matches!(record, Ok(Some(b"ab"))) { "payload" } else { "itself" }
        }
        "decode_file" => {
            std::fs::write(&file, zipped).unwrap();
            is_text(Reader::path(&file).unwrap())
        }
        "decode_memory" => is_text(Reader::memory(zipped).unwrap()),
        "decode_command" => is_text(Reader::command(["sh", "-c", "echo 1 | gzip"]).unwrap()),
        "decode_callback" => is_text(Reader::from_read(Cursor::new(zipped)).unwrap()),
        "command_failure" => match Reader::command(["false"]).unwrap().next_line() {
            Err(_) => "error",
            Ok(_) => "allowed",
        },
        "command_stdin" => match Reader::command(Command::new(["cat"])).unwrap().next_line().unwrap() {
            None => "nothing",
            Some(_) => "something",
        },
        "encode_file" => match write_file(&file, b"1\n").unwrap().starts_with(&[0x1f, 0x8b]) {
            true => "by name",
            false => "no",
        },
        "encode_memory" => {
            let mut writer = Writer::memory().unwrap();
            writer.write(b"1\n").unwrap();
            if writer.close().unwrap().memory.as_deref() == Some(b"1\n") { "no" } else { "yes" }
        }
        "existing_file" => {
            let file = directory.join("file");
            write_file(&file, b"before").unwrap();
            if write_file(&file, b"after").unwrap() == b"after" { "replaced" } else { "appended" }
        }
        "unfinished_file" => {
            let file = directory.join("unfinished");
            let mut writer = Writer::path(&file).unwrap();
            writer.write(b"1").unwrap();
            drop(writer);
            if file.exists() { "kept" } else { "removed" }
        }
        "on_error" => {
            let lines = Pipe::from(Reader::memory("1\nx\n").unwrap()).lines();
            let mut numbers = lines.try_map(|line| std::str::from_utf8(line).unwrap().parse::<u8>());
            if numbers.count().is_err() { "stop" } else { "skip" }
        }
        _ => panic!("no test for the option {option}"),
    };
    Some(found.to_owned())
}
