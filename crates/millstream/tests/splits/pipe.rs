//! Pipes that read splits on several threads: items, errors and counts are those of a pipe that reads the file.

use millstream::frame::{CsvDialect, CsvStrayQuotes};
use millstream::pipe::{OnError, Pipe};
use millstream::splits::{Divided, Framing, Splits};
use millstream::{CancelToken, Error, ErrorKind, Reader, Writer};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tempfile::NamedTempFile;

fn file(content: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(&file, content).unwrap();
    file
}

/// What happens to failing records.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Stop,
    Skip,
    Quarantine,
}

/// Fails for a record that contains `!`, and panics at `?`.
fn check(record: &[u8]) -> Result<bool, Error> {
    assert!(!record.contains(&b'?'), "requested by the test");
    if record.contains(&b'!') {
        return Err(Error::new(ErrorKind::StageFailed).with_found("a mark"));
    }
    Ok(!record.contains(&b'-'))
}

/// The items, the outcome, the quarantined records, and the numbers of records, items and failures.
type Outcome = (Vec<String>, Result<(), String>, Vec<u8>, (u64, u64, u64), bool);

/// Runs the stages on a pipe: the first ones with `$first`, the later ones on the ordered stream.
macro_rules! outcome {
    ($policy:expr, $skip:expr, $take:expr, |$on_error:ident| $pipe:expr) => {{
        let mut bad = Writer::memory().unwrap();
        let $on_error = match $policy {
            Policy::Stop => OnError::Stop,
            Policy::Skip => OnError::Skip,
            Policy::Quarantine => OnError::Quarantine(&mut bad),
        };
        let mut items = Vec::new();
        let mut pipe = $pipe
            .skip($skip)
            .scan_state(0_u64, |number, text: String| {
                *number += 1;
                (*number, text)
            })
            .try_map(|(number, text)| match text.contains('#') {
                true => Err(Error::new(ErrorKind::StageFailed).with_found("a later mark")),
                false => Ok(format!("{number} {text}")),
            })
            .take($take);
        let ended = pipe.for_each(|item| items.push(item)).map(drop).map_err(|error| format!("{error:?} {error}"));
        let summary = pipe.summary();
        drop(pipe);
        let counts = (summary.records, summary.items, summary.failed);
        let outcome: Outcome = (items, ended, bad.close().unwrap().memory.unwrap(), counts, summary.ended_early);
        outcome
    }};
}

fn text(record: &[u8]) -> String {
    String::from_utf8_lossy(record).into_owned()
}

fn on_one_thread(file: &NamedTempFile, framing: &Framing, policy: Policy, skip: u64, take: u64) -> Outcome {
    let pipe = || Pipe::from(Reader::path(file.path()).unwrap());
    outcome!(policy, skip, take, |on_error| {
        let framed = match framing {
            Framing::Csv { dialect } => pipe().frames(millstream::frame::Csv::with(*dialect).unwrap()),
            _ => pipe().lines(),
        };
        framed.on_error(on_error).try_filter(check).map(text)
    })
}

fn on_splits(plan: impl Into<Divided>, threads: usize, policy: Policy, skip: u64, take: u64) -> Outcome {
    outcome!(policy, skip, take, |on_error| {
        Pipe::from_splits(plan).parallel(threads, |stages| stages.try_filter(check).map(text)).on_error(on_error)
    })
}

/// Forgets what depends on the sizes of batches, if a pipe ended early.
fn comparable(outcome: Outcome) -> Outcome {
    let (items, ended, bad, mut counts, early) = outcome;
    if early || ended.is_err() {
        counts.0 = 0;
        return (items, ended, Vec::new(), (0, counts.1, 0), early);
    }
    (items, ended, bad, counts, early)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn items_and_errors_are_those_of_one_thread(
        content in vec(select(vec![
            "a", "bc", ",", "\n", "\n", "\n", "\r\n", "\"", "\"x\ny\"", "-", "!", "#", "?", "line\n", "1,2\n", "\"q\",3\n",
        ]), 0..60),
        is_marked in any::<bool>(),
        size in 1..40_u64,
        threads in 1..4_usize,
        framing in select(vec![
            Framing::Lines,
            Framing::Csv { dialect: CsvDialect::new() },
            Framing::Csv { dialect: CsvDialect::new().stray_quotes(CsvStrayQuotes::Literal) },
        ]),
        policy in select(vec![Policy::Stop, Policy::Skip, Policy::Quarantine]),
        (skip, take) in (0..4_u64, prop_oneof![Just(u64::MAX), 0..12_u64]),
    ) {
        let marks = if is_marked { &[][..] } else { &["!", "#", "?"][..] };
        let content: String = content.into_iter().filter(|part| !marks.contains(part)).collect();
        let file = file(content.as_bytes());
        let expected = comparable(on_one_thread(&file, &framing, policy, skip, take));
        let plan = Splits::plan(&file, framing.clone(), size).unwrap();
        prop_assert_eq!(&comparable(on_splits(&plan, threads, policy, skip, take)), &expected, "{:?}", content);
        if let Some(plan) = Splits::builder().assume(&file, framing, size).unwrap() {
            prop_assert_eq!(&comparable(on_splits(plan, threads, policy, skip, take)), &expected, "assumed, {:?}", content);
        }
    }
}

fn numbers(count: usize) -> NamedTempFile {
    file((0..count).map(|n| format!("{n}\n")).collect::<String>().as_bytes())
}

#[test]
fn an_error_in_the_middle_comes_after_everything_before_it() {
    let file = numbers(20_000);
    let plan = Splits::plan(&file, Framing::Lines, 1000).unwrap();
    let fails = |line: &[u8]| match line {
        b"12345" => Err(Error::new(ErrorKind::StageFailed)),
        _ => Ok(text(line)),
    };
    let mut seen = 0;
    let error =
        Pipe::from_splits(&plan).parallel(3, |stages| stages.try_map(fails)).for_each(|_| seen += 1).unwrap_err();
    assert_eq!(
        (error.kind(), error.record(), error.line(), seen),
        (ErrorKind::StageFailed, Some(12_345), Some(12_346), 12_345)
    );
    assert_eq!(error.offset(), Some(10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 2345 * 6));

    let panics = |line: &[u8]| assert!(line != b"12345", "requested by the test");
    seen = 0;
    let error =
        Pipe::from_splits(&plan).parallel(3, |stages| stages.inspect(panics)).for_each(|_| seen += 1).unwrap_err();
    assert_eq!((error.kind(), error.record(), seen), (ErrorKind::StagePanicked, Some(12_345), 12_345));
}

#[test]
fn the_pipe_can_stop_at_any_time() {
    let file = numbers(100_000);
    let plan = Splits::plan(&file, Framing::Lines, 1000).unwrap();
    let mut first = Pipe::from_splits(&plan).parallel(3, |stages| stages.map(text)).take(5000);
    assert_eq!(first.collect().unwrap().last().unwrap(), "4999");
    assert!(first.summary().ended_early);
    assert_eq!(first.count().unwrap(), 0, "it has ended");

    // An error of a sink ends the pipe, and a pipe may be dropped in the middle.
    let mut pipe = Pipe::from_splits(&plan).parallel(3, |stages| stages.map(text));
    let mut count = 0;
    let error = pipe
        .try_for_each(|_| {
            count += 1;
            if count > 7000 { Err(Error::new(ErrorKind::Io)) } else { Ok(()) }
        })
        .unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Io, Some(7000)));
    assert_eq!(pipe.run().unwrap_err().kind(), ErrorKind::Closed);

    // A cancelled pipe continues.
    let token = CancelToken::new().unwrap();
    let mut pipe = Pipe::from_splits(&plan).parallel(3, |stages| stages.map(text)).cancel(&token);
    let mut seen = 0;
    let cancelled = pipe.for_each(|_| {
        seen += 1;
        if seen == 300 {
            token.cancel();
        }
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!((300..100_000).contains(&seen));
    token.reset();
    pipe.for_each(|_| seen += 1).unwrap();
    assert_eq!(seen, 100_000);
}

#[test]
fn a_changed_file_is_an_error_after_the_records_that_were_read() {
    let file = numbers(1000);
    let plan = Splits::plan(&file, Framing::Lines, 1000).unwrap();
    std::fs::write(&file, "1\n").unwrap();
    for threads in [1, 3] {
        let error = Pipe::from_splits(&plan).parallel(threads, |stages| stages.map(text)).run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceShrank);
        assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
    }
}

#[test]
fn stages_are_measured() {
    let file = numbers(1000);
    let plan = Splits::plan(&file, Framing::Lines, 100).unwrap();
    let mut pipe = Pipe::from_splits(&plan).parallel(2, |stages| stages.filter(|line| line.len() < 3)).measured();
    assert_eq!(pipe.run().unwrap().items, 100);
    let stats = pipe.stats();
    assert_eq!((stats.stages[0].name.as_str(), stats.stages[0].items, stats.stages[0].bytes), ("parallel", 100, 190));
}
