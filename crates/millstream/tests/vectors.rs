//! Runs the shared vectors: every case at every split, one record at a time and by batches, by the framer alone and
//! through a reader.

mod frame_twin;
mod scan_twin;

use frame_twin::{Outcome, by_batches, by_steps, framer, naive, unhex};
use millstream::scan::Separator;
use millstream::{Decode, ErrorKind, Reader};
use std::io::{Cursor, Read, empty};

const FRAMES: &str = include_str!("../../../vectors/frames.tsv");
const SCAN: &str = include_str!("../../../vectors/scan.tsv");

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn frames() {
    let mut cases = 0;
    for line in FRAMES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, words, input, records, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}");
        };
        let input = unhex(input);
        let records = if records == "-" { Vec::new() } else { records.split(',').map(unhex).collect() };
        let error = ErrorKind::ALL.iter().copied().find(|kind| kind.name() == end);
        assert!(error.is_some() || end == "end", "{name}: no error has the name {end}");
        let expected: Outcome = (records, error);

        assert_eq!(naive(words, &input), expected, "{name}, the naive twin");
        let every_byte: Vec<usize> = (0..=input.len()).collect();
        let splits = every_byte.iter().map(std::slice::from_ref).chain([&every_byte[..]]);
        for splits in splits {
            let step = by_steps(&mut *framer(words), &input, splits);
            assert_eq!(step, expected, "{name}, one at a time, split at {splits:?}");
            for max in [1, 2, usize::MAX] {
                let batch = by_batches(&mut *framer(words), &input, splits, max);
                assert_eq!(batch, expected, "{name}, by batches of {max}, split at {splits:?}");
                let reader = by_reader(words, &input, splits, max);
                assert_eq!(reader, expected, "{name}, a reader's batches of {max}, split at {splits:?}");
            }
        }
        cases += 1;
    }
    assert!(cases > 0, "the file holds no case");
}

/// What a reader makes of a source that delivers the pieces between the splits: records one at a time if `max` is 1,
/// else in batches of at most so many.
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
            // An announced length over the limit is refused at once; that it is not there shows by skipping it.
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
            // White space at the end changes nothing, but the values are far from the end now.
            let far = [&input[..], &[b' '; 200]].concat();
            let mut reader = Reader::builder().decode(Decode::Off).memory(far).unwrap();
            assert_eq!(shown(scan_twin::by_reader(words, separator, &mut reader)), expected, "{name}, far");
        }
        cases += 1;
    }
    assert!(cases > 0, "the file holds no case");
}

/// A word of a vector as the twins show it: a float has many texts, and they show one of them.
fn as_shown(kind: &str, word: &str) -> String {
    match kind {
        _ if word.contains('_') => word.to_owned(),
        "f32" => format!("{:?}", word.parse::<f32>().unwrap()),
        "f64" => format!("{:?}", word.parse::<f64>().unwrap()),
        _ => word.to_owned(),
    }
}
