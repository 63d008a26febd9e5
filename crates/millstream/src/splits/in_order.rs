//! Works on the parts of a file on several threads, although where the records of a part begin depends on all bytes before
//! it. Each thread guesses where the first record of its part begins. The guess is right if the part before it ends there,
//! which is known when the results are put together in order; otherwise the part is processed again from the right
//! position. So a wrong guess costs time and changes nothing.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::panicked::panicked;
use crate::workers::{Work, Workers};

/// The result for one part of a file.
pub(super) struct Part<T> {
    pub(super) result: T,
    /// The offset of the first record after the part.
    pub(super) end: u64,
    /// Whether no part follows.
    pub(super) is_last: bool,
}

/// A part, and the result of a thread.
struct Attempt<T> {
    range: Range<u64>,
    /// Where its first record begins, if that was found.
    start: Option<u64>,
    part: Option<Result<Part<T>>>,
}

/// Calls `work` with the parts of a file of `size` bytes, on `threads` threads, and passes the results to `each` in order.
/// A part has `chunk` bytes, and begins where `guess` finds the start of a record in it. The records that begin in it
/// belong to it.
pub(super) fn in_order<T: Send + 'static, E: From<Error>>(
    size: u64,
    chunk: u64,
    threads: usize,
    guess: impl Fn(&Range<u64>) -> Option<u64> + Send + Sync + 'static,
    work: impl Fn(Range<u64>) -> Result<Part<T>> + Send + Sync + 'static,
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let work = move |range| {
        let result = catch_unwind(AssertUnwindSafe(|| work(range)));
        result.unwrap_or_else(|panic| Err(panicked(&*panic)))
    };
    let (guess, work) = (Arc::new(guess), Arc::new(work));
    let new_work = {
        let work = work.clone();
        move || -> Work<Attempt<T>> {
            let (guess, work) = (guess.clone(), work.clone());
            Box::new(move |attempt| {
                let Range { start, end } = attempt.range;
                attempt.start = if start == 0 { Some(0) } else { guess(&(start..end)) };
                attempt.part = attempt.start.map(|start| work(start..end));
            })
        }
    };
    let mut workers = Workers::with_at_most(if threads > 1 { threads } else { 0 }, new_work);
    let (mut begin, mut next) = (0, Some(0));
    loop {
        while workers.has_capacity()
            && let Some(start) = next
        {
            let end = size.min(start + chunk);
            next = (end < size).then_some(end);
            workers.give(Attempt { range: start..end, start: None, part: None });
        }
        let Some(Attempt { range, start, part }) = workers.take()? else { return Ok(()) };
        if begin >= range.end && range.start > 0 {
            continue; // a record that began before the part contains all of it
        }
        let Part { result, end, is_last } = match part {
            Some(part) if start == Some(begin) => part?,
            _ => work(begin..range.end)?,
        };
        begin = end;
        each(result)?;
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// Records of random lengths. Each of them ends at the next of the `ends`.
        #[test]
        fn wrong_guesses_change_nothing(
            lens in vec(1..30_u64, 1..40),
            chunk in 1..50_u64,
            threads in 1..3_usize,
            wrong in 0..3_u64,
        ) {
            let ends: Vec<u64> = lens.iter().scan(0, |end, len| { *end += len; Some(*end) }).collect();
            let (size, known) = (ends[ends.len() - 1], ends.clone());
            let work = move |range: Range<u64>| {
                let (mut at, mut result) = (range.start, Vec::new());
                while at < range.end {
                    at = known[known.partition_point(|&end| end <= at)];
                    result.push(at);
                }
                Ok(Part { result, end: at, is_last: at >= size })
            };
            let guess = move |range: &Range<u64>| match wrong {
                0 => None,
                wrong => Some(range.start + wrong - 1),
            };
            let mut found = Vec::new();
            in_order(size, chunk, threads, guess, work, |more| {
                found.extend(more);
                Ok::<(), Error>(())
            }).unwrap();
            prop_assert_eq!(found, ends);
        }
    }

    #[test]
    fn a_wrong_error_is_dropped_and_a_right_one_follows_the_results_before_it() {
        for (fails_at, expected) in [(100, vec![0, 10, 20, 30]), (20, vec![0, 10])] {
            let work = move |range: Range<u64>| match range.start {
                // Only wrong guesses begin here.
                start if start % 10 != 0 => Err(Error::new(ErrorKind::CsvInvalid)),
                start if start == fails_at => Err(Error::new(ErrorKind::StageFailed)),
                start => Ok(Part { result: start, end: range.end, is_last: range.end == 40 }),
            };
            let mut found = Vec::new();
            let ended = in_order(
                40,
                10,
                2,
                |range| Some(range.start + 1),
                work,
                |start| {
                    found.push(start);
                    Ok::<(), Error>(())
                },
            );
            let kind = ended.err().map(|error| error.kind());
            assert_eq!((found, kind), (expected, (fails_at < 40).then_some(ErrorKind::StageFailed)));
        }
    }
}
