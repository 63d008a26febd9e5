//! Runs the shared vectors: every case at every split, one record at a time and by batches.

mod frame_twin;

use frame_twin::{Outcome, by_batches, by_steps, framer, naive, unhex};
use millstream::ErrorKind;

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
            }
        }
        cases += 1;
    }
    assert!(cases > 0, "the file holds no case");
}
