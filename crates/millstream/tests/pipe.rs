//! Pipes from the user's point of view: the output, its order, the texts of errors, and the timely stop of sources.

use std::cell::Cell;

use millstream::frame::{Delimiter, Lines};
use millstream::pipe::{OnError, Pipe, Stage, Stages, Unframed};
use millstream::scan::{Separator, column};
use millstream::{CancelToken, CommandStatus, Error, ErrorKind, ReadAhead, Reader, Writer};

/// Returns the lines "0", "1", … of a command, in several batches.
fn numbers(count: u32) -> Reader {
    Reader::command(["seq".to_string(), "0".into(), (count - 1).to_string()]).unwrap()
}

fn number(line: &[u8]) -> u64 {
    std::str::from_utf8(line).unwrap().parse().unwrap()
}

#[test]
fn stages_between_bytes_and_values_in_one_chain() {
    let mut out = Writer::memory().unwrap();
    let summary = Pipe::from(numbers(100_000))
        .lines()
        .skip(1)
        .filter(|line| line.ends_with(b"7"))
        .map(number)
        .filter(|n| n % 3 == 0)
        .flat_map(|n| [n, n + 1])
        .scan_state(0, |sum, n| {
            *sum += n;
            *sum
        })
        .rewrite(|sum, out| out.extend_from_slice(sum.to_string().as_bytes()))
        .map_bytes(|text| &text[..text.len().min(3)])
        .write_to(&mut out)
        .unwrap();
    let mut expected = String::new();
    let mut sum = 0;
    for n in (1..100_000_u64).filter(|n| n % 10 == 7 && n % 3 == 0).flat_map(|n| [n, n + 1]) {
        sum += n;
        let text = sum.to_string();
        expected += &text[..text.len().min(3)];
        expected += "\n";
    }
    assert_eq!(String::from_utf8(out.close().unwrap().memory.unwrap()).unwrap(), expected);
    assert_eq!(summary.records, 100_000);
    assert_eq!(summary.items, expected.lines().count() as u64);
    assert!(!summary.ended_early && summary.commands[0].status.success());
}

#[test]
fn boxed_and_cut_stages_equal_fused_ones() {
    let chosen = |digit: u8| -> Stage { Pipe::stages().filter(move |line| line.contains(&digit)).boxed("digit") };
    let mut boxed = Pipe::from(numbers(50_000)).lines().then_all(b"123".map(chosen).into()).cut("all").take(40);
    let mut plain =
        Pipe::from(numbers(50_000)).lines().filter(|line| b"123".iter().all(|digit| line.contains(digit))).take(40);
    let lines = plain.collect().unwrap();
    assert_eq!(boxed.collect().unwrap(), lines);
    assert_eq!(lines.len(), 40);
    assert!(boxed.summary().ended_early);
}

/// Returns the lines "0", "1", … in one batch, which is larger than the parts that boxed stages process.
fn many() -> (Reader, Vec<Vec<u8>>) {
    let lines: Vec<Vec<u8>> = (0..2000).map(|n| n.to_string().into_bytes()).collect();
    (Reader::memory(lines.join(&b'\n')).unwrap(), lines)
}

/// The effect of a stage, applied to all lines at once.
type OnAll = fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>;

/// Returns a boxed stage of each kind, and its effect on a list.
fn boxed(kind: usize) -> (Stage, OnAll) {
    fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
        line.split(|byte| *byte == b'5')
    }
    match kind {
        0 => (Pipe::stages().filter(|line| !line.ends_with(b"3")).boxed("filter"), |mut lines| {
            lines.retain(|line| !line.ends_with(b"3"));
            lines
        }),
        1 => (Pipe::stages().map_bytes(|line| &line[line.len() / 2..]).boxed("part"), |lines| {
            lines.iter().map(|line| line[line.len() / 2..].to_vec()).collect()
        }),
        2 => (Pipe::stages().pieces(|line, next| pieces(line).for_each(next)).boxed("pieces"), |lines| {
            lines.iter().flat_map(|line| pieces(line)).map(<[u8]>::to_vec).collect()
        }),
        3 => (Pipe::stages().take(700).boxed("take"), |lines| lines.into_iter().take(700).collect()),
        4 => (Pipe::stages().skip(600).boxed("skip"), |lines| lines.into_iter().skip(600).collect()),
        5 => (Pipe::stages().rewrite(|line, out| out.extend([line, b"!"].concat())).boxed("text"), |lines| {
            lines.into_iter().map(|line| [line, b"!".to_vec()].concat()).collect()
        }),
        _ => {
            let stage = Stage::from_batches("batches", |items, _, out| {
                out.extend(items.iter().filter(|(_, line)| line.len() != 2));
                Ok(())
            });
            (stage, |lines| lines.into_iter().filter(|line| line.len() != 2).collect())
        }
    }
}

#[test]
fn boxed_stages_of_every_kind_in_every_order() {
    for kinds in 0..7 * 7 * 7 {
        let kinds = [kinds % 7, kinds / 7 % 7, kinds / 49];
        let (reader, lines) = many();
        let (stages, models): (Vec<_>, Vec<_>) = kinds.map(boxed).into_iter().unzip();
        let expected = models.iter().fold(lines, |lines, model| model(lines));
        assert_eq!(Pipe::from(reader).lines().then_all(stages).collect().unwrap(), expected, "{kinds:?}");
    }
}

/// The failure is in each part of a batch, among stages some of which produce several items.
#[test]
fn a_failing_boxed_stage_names_the_record() {
    for (bad, panics) in [0, 511, 512, 513, 1023, 1999].into_iter().flat_map(|bad| [(bad, false), (bad, true)]) {
        let fails = Pipe::stages().try_filter(move |line| match number(line) == bad {
            true if panics => panic!("no good"),
            true => Err("no good"),
            false => Ok(true),
        });
        let twice = || Pipe::stages().pieces(|line, next| [line, line].into_iter().for_each(next)).boxed("twice");
        let mut seen = Vec::new();
        let mut pipe = Pipe::from(many().0).lines().then_all(vec![twice(), fails.boxed("fails"), twice()]);
        let error = pipe.for_each(|line| seen.push(number(line))).unwrap_err();
        let kind = if panics { ErrorKind::StagePanicked } else { ErrorKind::StageFailed };
        assert_eq!((error.kind(), error.record()), (kind, Some(bad)));
        assert_eq!(seen, (0..bad).flat_map(|n| [n; 4]).collect::<Vec<_>>());
    }
}

/// The test passes the batches itself; errors after the first batch also have positions.
#[test]
fn an_error_in_a_later_batch_has_its_position() {
    let stage = Pipe::stages().try_filter(|line| if line == b"x" { Err("no good") } else { Ok(true) }).boxed("stage");
    let (mut stages, mut lines) = (Stages::new(vec![stage]), Lines::new());
    let mut reader = Reader::memory("12\n3\n45\nx\n").unwrap();
    let first = reader.next_batch_of(&mut lines, 2).unwrap().unwrap();
    stages.pass(first, |_, _| {}).unwrap();
    let second = reader.next_batch_of(&mut lines, 2).unwrap().unwrap();
    let error = stages.pass(second, |record, item| assert_eq!((record, item), (2, &b"45"[..]))).unwrap_err();
    assert_eq!((error.record(), error.offset()), (Some(3), Some(8)));
}

/// A stage that gets a part of the line counts columns from the part.
#[test]
fn an_error_of_a_stage_has_its_line_and_column() {
    let number = |text: &[u8]| column::<u32>(text, 1, Separator::Space);
    let place = |error: Error| (error.line(), error.column(), error.offset());
    let text = "a 1\nb 2\nc x\n";
    let mut whole = Pipe::from(Reader::memory(text).unwrap()).lines().try_map(number);
    assert_eq!(place(whole.count().unwrap_err()), (Some(3), Some(3), Some(10)));
    let mut part = Pipe::from(Reader::memory(format!("--{}", text.replace('\n', "\n--"))).unwrap())
        .lines()
        .map_bytes(|line| &line[2..])
        .try_filter(|text| number(text).map(|_| true));
    assert_eq!(place(part.count().unwrap_err()), (Some(3), Some(5), Some(16)));
    // Bytes that a stage has produced are not part of the line.
    let mut made = Pipe::from(Reader::memory(text).unwrap())
        .lines()
        .rewrite(|line, out| out.extend_from_slice(line))
        .try_map(number);
    assert_eq!(place(made.count().unwrap_err()), (Some(3), None, Some(8)));
    let mut other = Pipe::from(Reader::memory("a 1;b x;").unwrap()).frames(Delimiter::byte(b';')).try_map(number);
    assert_eq!(place(other.count().unwrap_err()), (None, None, Some(6)));
    let mut held = Pipe::from(Reader::memory(text).unwrap()).lines().parallel(2, |stages| stages.try_map(number));
    assert_eq!(place(held.count().unwrap_err()).0, Some(3));
}

/// 5 MB pass through three commands: more than all pipes and buffers can hold.
#[test]
fn commands_in_the_middle_of_a_pipe_pass_everything_on() {
    let numbers = Pipe::from(Reader::command(["seq", "700000"]).unwrap()).lines();
    let tripled = numbers.filter(|line| !line.ends_with(b"0")).through(["cat"]).unwrap().lines();
    let values = tripled.map(|line| line.to_vec()).through(["rev"]).unwrap().lines().through(["rev"]).unwrap();
    let (mut count, mut last) = (0, Vec::new());
    values.lines().for_each(|line| (count, last) = (count + 1, line.to_vec())).unwrap();
    assert_eq!((count, &last[..]), (630_000, &b"699999"[..]));
}

#[test]
fn an_error_before_or_in_a_command_follows_all_of_its_records() {
    let source = || Pipe::from(Reader::command(["sh", "-c", "seq 100000; exit 3"]).unwrap()).lines();
    let count = |pipe: Pipe<Unframed, (), (), ()>| {
        let mut count = 0;
        let error = pipe.lines().for_each(|_| count += 1).unwrap_err();
        (count, error.command().map(|end| end.status), error)
    };
    // The source fails: the command gets its records and succeeds.
    let (records, status, error) = count(source().through(["cat"]).unwrap());
    assert_eq!((records, status), (100_000, Some(CommandStatus::Exited(3))), "{error}");
    // A stage fails.
    let failing = source().try_filter(|line| if line == b"5000" { Err("no good") } else { Ok(true) });
    let (records, status, error) = count(failing.through(["cat"]).unwrap());
    assert_eq!((records, status, error.kind(), error.line()), (4999, None, ErrorKind::StageFailed, Some(5000)));
    // The command fails.
    let lines = || Pipe::from(Reader::memory("1\n2\n3\n").unwrap()).lines();
    let (records, status, _) = count(lines().through(["sh", "-c", "cat; exit 4"]).unwrap());
    assert_eq!((records, status), (3, Some(CommandStatus::Exited(4))));
    // It fails without reading anything.
    let (records, status, _) = count(source().through(["sh", "-c", "exit 5"]).unwrap());
    assert_eq!((records, status), (0, Some(CommandStatus::Exited(5))));
    assert_eq!(lines().through(["no such command"]).unwrap_err().kind(), ErrorKind::CommandNotStarted);
}

/// A command or a consumer that stops early closes the source, even one that has no end or is silent.
#[test]
fn a_command_in_the_middle_can_stop_early() {
    let endless = || Pipe::from(Reader::command(["yes"]).unwrap()).lines();
    assert_eq!(endless().through(["head", "-n", "3"]).unwrap().lines().count().unwrap(), 3);
    assert_eq!(endless().through(["cat"]).unwrap().lines().take(3).count().unwrap(), 3);
    // What has arrived is passed on while the source waits.
    let quiet = Reader::command(["sh", "-c", "echo one; exec sleep 1000"]).unwrap();
    assert_eq!(Pipe::from(quiet).lines().through(["cat"]).unwrap().lines().take(1).count().unwrap(), 1);
    for read_ahead in [ReadAhead::Off, ReadAhead::On] {
        let reader = || Reader::builder().read_ahead(read_ahead);
        let silent = || Pipe::from(reader().command(["sleep", "600"]).unwrap()).lines();
        assert_eq!(silent().through(["echo", "1"]).unwrap().lines().count().unwrap(), 1);
        drop(silent().through(["cat"]).unwrap());
    }
}

#[test]
fn ten_thousand_boxed_stages_work() {
    let stages = (0..10_000).map(|_| Pipe::stages().inspect(|_| {}).boxed("none")).collect();
    assert_eq!(Pipe::from(numbers(10)).lines().then_all(stages).count().unwrap(), 10);
}

#[test]
fn take_ends_a_source_that_never_would() {
    let mut pipe = Pipe::from(Reader::command(["yes"]).unwrap()).lines().take(3);
    assert_eq!(pipe.collect().unwrap(), [b"y", b"y", b"y"]);
    let summary = pipe.summary();
    assert!(summary.ended_early && summary.items == 3);
    assert_eq!(summary.commands.len(), 1);
    // The pipe has ended, and reports no error again.
    assert_eq!(pipe.count().unwrap(), 0);
}

#[test]
fn taking_no_items_reads_no_bytes() {
    let reader = Reader::callback(|_| panic!("no item is needed")).unwrap();
    assert_eq!(Pipe::from(reader).lines().take(0).count().unwrap(), 0);
}

#[test]
fn a_failing_command_is_an_error_after_all_its_output() {
    let mut seen = 0;
    let reader = Reader::command(["sh", "-c", "seq 1 50000; exit 3"]).unwrap();
    let error = Pipe::from(reader).lines().cut("all").for_each(|_| seen += 1).unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::CommandFailed, 50_000));
}

/// Every stage that can fail or panic does so at every record. In each case, earlier records have reached the sink.
#[test]
fn items_before_a_failing_record_reach_the_sink() {
    const COUNT: u32 = 40;
    for bad in 0..u64::from(COUNT) {
        for way in 0..5 {
            let fails = move |line: &[u8]| if number(line) == bad { Err("no good") } else { Ok(line.to_vec()) };
            let panics = move |line: &[u8]| assert!(number(line) != bad, "no good");
            let mut seen = Vec::new();
            let mut lines = Pipe::from(numbers(COUNT)).lines();
            if way == 4 {
                lines = lines.batch(7);
            }
            let result = match way {
                0 => lines.try_map(fails).for_each(|line| seen.push(number(&line))),
                1 => lines.try_map(fails).cut("a").for_each(|line| seen.push(number(&line))),
                2 => lines.inspect(panics).for_each(|line| seen.push(number(line))),
                3 => lines.then(Pipe::stages().inspect(panics).boxed("b")).for_each(|line| seen.push(number(line))),
                _ => lines.try_for_each(|line| {
                    fails(line)?;
                    seen.push(number(line));
                    Ok::<_, &str>(())
                }),
            };
            let error = result.unwrap_err();
            let kind = if matches!(way, 2 | 3) { ErrorKind::StagePanicked } else { ErrorKind::StageFailed };
            assert_eq!((error.kind(), error.record()), (kind, Some(bad)), "way {way}");
            assert!(error.to_string().contains("no good"), "{error}");
            assert_eq!(seen, (0..bad).collect::<Vec<_>>(), "way {way}");
        }
    }
}

#[test]
fn a_later_stage_may_fail_at_an_earlier_record() {
    let stage = |bad: u64| -> Stage {
        Pipe::stages()
            .try_map(move |line| if number(line) == bad { Err("bad") } else { Ok(line.to_vec()) })
            .rewrite(|line, out| out.extend_from_slice(line))
            .boxed("stage")
    };
    let mut seen = Vec::new();
    let mut pipe = Pipe::from(numbers(20)).lines().then_all(vec![stage(12), stage(5)]);
    let error = pipe.for_each(|line| seen.push(number(line))).unwrap_err();
    assert_eq!((error.record(), seen), (Some(5), (0..5).collect()));
    assert_eq!(pipe.count().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn failing_records_are_passed_over_or_kept() {
    let parse = |line: &[u8]| {
        std::str::from_utf8(line)?.parse::<u32>().map_err(Box::<dyn std::error::Error + Send + Sync>::from)
    };
    let input = "1\nx\r\n\n4\n\u{fe}";
    let mut skipping = Pipe::from(Reader::memory(input).unwrap()).lines().on_error(OnError::Skip).try_map(parse);
    assert_eq!(skipping.collect().unwrap(), [1, 4]);
    assert_eq!(skipping.summary().failed, 3);

    let mut bad = Writer::memory().unwrap();
    let reader = Reader::memory(input).unwrap();
    let mut keeping = Pipe::from(reader).lines().on_error(OnError::Quarantine(&mut bad)).try_map(parse);
    assert_eq!(keeping.collect().unwrap(), [1, 4]);
    drop(keeping);
    assert_eq!(bad.close().unwrap().memory.unwrap(), "x\r\n\n\u{fe}".as_bytes());
}

#[test]
fn a_sink_that_fails_ends_the_pipe() {
    let full = || Writer::callback(|_| Err(std::io::Error::from_raw_os_error(28))).unwrap();
    let mut pipe = Pipe::from(numbers(200_000)).lines();
    let error = pipe.write_to(&mut full()).unwrap_err();
    assert_eq!((error.kind(), error.errno()), (ErrorKind::Io, Some(28)));
    let mut copy = full();
    let mut teed = Pipe::from(numbers(200_000)).lines().tee(&mut copy);
    assert_eq!(teed.run().unwrap_err().errno(), Some(28));
}

#[test]
fn tee_and_write_put_the_terminator_of_the_framer() {
    let (mut copy, mut out) = (Writer::memory().unwrap(), Writer::memory().unwrap());
    let framer = millstream::frame::Delimiter::bytes("; ").unwrap();
    let reader = Reader::memory("a; b; c").unwrap();
    Pipe::from(reader).frames(framer).tee(&mut copy).filter(|item| item != b"b").write_to(&mut out).unwrap();
    assert_eq!(copy.close().unwrap().memory.unwrap(), b"a; b; c; ");
    assert_eq!(out.close().unwrap().memory.unwrap(), b"a; c; ");
}

#[test]
fn a_cancelled_pipe_continues_at_its_position() {
    let token = CancelToken::new().unwrap();
    let mut pipe = Pipe::from(numbers(100_000)).lines().cancel(&token).batch(10);
    let seen = Cell::new(0);
    let cancelled = pipe.for_each(|line| {
        assert_eq!(number(line), seen.get());
        seen.set(seen.get() + 1);
        if seen.get() == 50_005 {
            token.cancel();
        }
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!((50_005..50_015).contains(&seen.get()), "a batch has at most ten records: {}", seen.get());
    token.reset();
    assert_eq!(pipe.count().unwrap(), 100_000 - seen.get());
}

#[test]
fn merged_readers_keep_their_own_order_and_all_must_succeed() {
    let commands = ["seq 0 2 19998", "seq 1 2 19999", "true"];
    let readers = commands.map(|line| Reader::shell(line).unwrap());
    let mut lines = Pipe::merge(readers).lines().map(number).collect().unwrap();
    assert!(lines.iter().filter(|n| **n % 2 == 0).is_sorted() && lines.iter().filter(|n| **n % 2 == 1).is_sorted());
    lines.sort_unstable();
    assert_eq!(lines, (0..20_000).collect::<Vec<_>>());

    let readers = ["seq 9", "exit 4"].map(|line| Reader::shell(line).unwrap());
    assert_eq!(Pipe::merge(readers).lines().run().unwrap_err().kind(), ErrorKind::CommandFailed);
    assert_eq!(Pipe::merge([]).lines().count().unwrap(), 0);
}

/// Reads one reader after another, regardless of which has data. After one that fails, the next one is not read.
#[test]
fn readers_in_sequence_wait_for_each_other() {
    let slow = || Reader::shell("sleep 0.05; seq 0 9999").unwrap();
    let lines = "10000\n10001\n";
    let mut pipe = Pipe::concat([slow(), Reader::memory("").unwrap(), Reader::memory(lines).unwrap()]).lines();
    let mut seen = Vec::new();
    pipe.for_each(|line| seen.push(number(line))).unwrap();
    assert_eq!(seen, (0..10_002).collect::<Vec<_>>());

    let failing = Reader::shell("echo 1; exit 4").unwrap();
    let mut seen = Vec::new();
    let mut pipe = Pipe::concat([failing, Reader::memory(lines).unwrap()]).lines();
    let error = pipe.for_each(|line| seen.push(number(line))).unwrap_err();
    assert_eq!((error.kind(), &seen[..]), (ErrorKind::CommandFailed, &[1][..]));

    let mut pipe = Pipe::concat([slow(), Reader::shell("exit 4").unwrap()]).lines().take(10_000);
    assert_eq!(pipe.count().unwrap(), 10_000, "a source that is no longer needed may fail");
}

/// A reader without data does not delay another one's records: the silent reader ends only after the other's record has
/// passed.
#[test]
fn a_silent_reader_is_passed_over() {
    let (silent, mut say) = std::io::pipe().unwrap();
    let readers = [Reader::fd(silent).unwrap(), Reader::memory("now\n").unwrap()];
    let mut seen = Vec::new();
    Pipe::merge(readers)
        .lines()
        .for_each(|line| {
            seen.push(line.to_vec());
            if line == b"now" {
                use std::io::Write;
                say.write_all(b"late\n").unwrap();
                say = std::io::pipe().unwrap().1; // the first one is closed
            }
        })
        .unwrap();
    assert_eq!(seen, [&b"now"[..], b"late"]);
}
