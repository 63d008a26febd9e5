//! Runs the shared vectors: every case at every split, one record at a time and by batches, by the framer alone and
//! through a reader.

mod frame_twin;

use frame_twin::{Outcome, by_batches, by_steps, framer, naive, unhex};
use millstream::{Decode, ErrorKind, Reader};
use std::io::{Cursor, Read, empty};

const FRAMES: &str = include_str!("../../../vectors/frames.tsv");

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
