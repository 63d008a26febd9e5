//! Runs the shared vectors of records: every case at every split, one record at a time and in batches.

mod frame_twin;

use frame_twin::{by_batches, by_steps, framer, naive, vectors};

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and reaches no unsafe code that the other tests do not")]
fn frames() {
    for case in vectors() {
        let (name, words, input, expected) = (case.name, case.words, &case.input, &case.expected);
        assert_eq!(naive(words, input), *expected, "{name}, the naive twin");
        for splits in case.splits() {
            let step = by_steps(&mut *framer(words), input, &splits);
            assert_eq!(step, *expected, "{name}, one record at a time, split at {splits:?}");
            for max in [1, 2, usize::MAX] {
                let batch = by_batches(&mut *framer(words), input, &splits, max);
                assert_eq!(batch, *expected, "{name}, in batches of {max}, split at {splits:?}");
            }
        }
    }
}
