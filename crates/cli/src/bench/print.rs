//! `millstream bench print`: prints lines with a number to `/dev/null`.
//!
//! Output to `/dev/null` cannot be checked. So the warm-up of each way writes to a pipe, whose reader computes a
//! checksum for the comparison. The rounds write to `/dev/null`, so that they measure only the method, not the reader
//! of its output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;
use millstream::{Result, Writer, put};
use rustix::stdio::dup2_stdout;

use super::measure::{Answer, Stop, Way};
use super::report::{Report, Results, Subject, factor, seconds};
use super::{Bench, NOTHING, program};

/// Measure printing lines with a number to /dev/null
///
/// The lines are `Hello, 0`, `Hello, 1`, and so on. The output of each way is checked during its warm-up, through a
/// pipe.
#[derive(Args)]
pub(super) struct Options {
    /// The number of lines
    #[arg(long, value_name = "N", default_value = "1000000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    count: u64,
}

const PUT: &str = "put!";
const SMALL: &str = "put!, 4 KiB buffer";
const LARGE: &str = "put!, 1 MiB buffer";
const SHARED: &str = "put! through a shared writer";
const WRITE: &str = "write! to a Writer";
const PRINTLN: &str = "println!";
const LOCKED: &str = "writeln! to locked stdout";
const BUFFERED: &str = "writeln! to BufWriter on locked stdout";
const BUFFERED_FILE: &str = "writeln! to BufWriter on the file";

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let count = options.count;
    let mut line = Vec::new();
    let mut expected = Tally::default();
    each(count, bench.stop, |number| {
        line.clear();
        writeln!(line, "Hello, {number}")?;
        expected.add(&line);
        Ok(())
    })?;
    let subject = Subject {
        question: format!("printing {count} lines to {NOTHING}"),
        bytes: expected.bytes,
        records: count,
        noun: "line",
    };
    bench.report(subject, expected.answer(), ways(count), |results| advise(results, count as f64))
}

fn ways<'a>(count: u64) -> Vec<Way<'a>> {
    let put = move |capacity: Option<usize>| {
        printing(move |out, stop| {
            let builder = Writer::builder().cancel(stop.token());
            let mut out = match capacity {
                Some(bytes) => builder.capacity(bytes),
                None => builder,
            }
            .fd(out)?;
            each(count, stop, |number| put!(out, "Hello, ", number, '\n'))?;
            out.close().map(drop)
        })
    };
    let mut ways = vec![
        Way::millstream(PUT, put(None)),
        Way::millstream(SMALL, put(Some(4 << 10))),
        Way::millstream(LARGE, put(Some(1 << 20))),
        Way::millstream(
            SHARED,
            printing(move |out, stop| {
                let out = Writer::builder().cancel(stop.token()).fd(out)?.shared();
                each(count, stop, |number| put!(out, "Hello, ", number, '\n'))?;
                out.close().map(drop)
            }),
        ),
        Way::millstream(
            WRITE,
            printing(move |out, stop| {
                let mut out = Writer::builder().cancel(stop.token()).fd(out)?;
                each(count, stop, |number| Ok(writeln!(out, "Hello, {number}")?))?;
                out.close().map(drop)
            }),
        ),
        Way::competitor(
            PRINTLN,
            printing(move |out, stop| {
                as_stdout(out, || {
                    each(count, stop, |number| {
                        println!("Hello, {number}");
                        Ok(())
                    })
                })
            }),
        ),
        Way::competitor(
            LOCKED,
            printing(move |out, stop| {
                as_stdout(out, || {
                    let mut out = io::stdout().lock();
                    each(count, stop, |number| Ok(writeln!(out, "Hello, {number}")?))
                })
            }),
        ),
        Way::competitor(
            BUFFERED,
            printing(move |out, stop| {
                as_stdout(out, || {
                    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
                    each(count, stop, |number| Ok(writeln!(out, "Hello, {number}")?))?;
                    Ok(out.flush()?)
                })
            }),
        ),
        Way::competitor(
            BUFFERED_FILE,
            printing(move |out, stop| {
                let mut out = BufWriter::with_capacity(64 << 10, out);
                each(count, stop, |number| Ok(writeln!(out, "Hello, {number}")?))?;
                Ok(out.flush()?)
            }),
        ),
    ];
    for (name, argv) in [
        ("seq -f", ["seq", "-f", "Hello, %.0f", "0", &(count - 1).to_string()].map(String::from).to_vec()),
        ("awk, print", words(["awk", &format!("BEGIN {{ for (i = 0; i < {count}; i++) print \"Hello, \" i }}")])),
        (
            "perl, print",
            words(["perl", "-e", &format!("for ($i = 0; $i < {count}; $i++) {{ print \"Hello, $i\\n\" }}")]),
        ),
        ("python3, print", words(["python3", "-c", &format!("for i in range({count}):\n    print(f'Hello, {{i}}')")])),
    ] {
        let program = argv[0].clone();
        let print = printing(move |out, stop| {
            let mut command = Command::new(&argv[0]);
            program::run(command.args(&argv[1..]).stdin(Stdio::null()).stdout(out), stop, |_| Ok(()))
        });
        ways.push(program::where_found(name, &[&program], print));
    }
    ways
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(String::from).to_vec()
}

/// Calls `print` for all numbers below `count`, until the run must end.
#[inline]
fn each(count: u64, stop: &Stop, mut print: impl FnMut(u64) -> Result<()>) -> Result<()> {
    const ROUND: u64 = 4096;
    for first in (0..count).step_by(ROUND as usize) {
        stop.check()?;
        for number in first..(first + ROUND).min(count) {
            print(number)?;
        }
    }
    Ok(())
}

/// Creates a run that prints to a pipe the first time, to check the output, and to `/dev/null` afterwards.
fn printing(mut print: impl FnMut(File, &Stop) -> Result<()>) -> impl FnMut(&Stop) -> Result<Answer> {
    let mut printed: Option<Answer> = None;
    move |stop| {
        if let Some(answer) = &printed {
            print(File::options().write(true).open(NOTHING)?, stop)?;
            return Ok(answer.clone());
        }
        let (mut reader, writer) = io::pipe()?;
        let listener = thread::spawn(move || {
            let mut tally = Tally::default();
            io::copy(&mut reader, &mut tally).map(|_| tally.answer())
        });
        let done = print(File::from(OwnedFd::from(writer)), stop);
        let answer = listener.join().expect("it does not panic")?;
        done?;
        printed = Some(answer.clone());
        Ok(answer)
    }
}

/// Redirects standard output to `out` while `work` runs.
fn as_stdout(out: File, work: impl FnOnce() -> Result<()>) -> Result<()> {
    struct Restored(File);
    impl Drop for Restored {
        fn drop(&mut self) {
            let _ = io::stdout().flush(); // `work` has flushed it, or failed
            let _ = dup2_stdout(&self.0);
        }
    }
    io::stdout().flush()?;
    let restored = Restored(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    dup2_stdout(&out).map_err(io::Error::from)?;
    drop(out);
    work()?;
    io::stdout().flush()?;
    drop(restored);
    Ok(())
}

/// The size and checksum of the printed bytes.
#[derive(Default)]
struct Tally {
    bytes: u64,
    checksum: u32,
}

impl Tally {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
    }

    fn answer(&self) -> Answer {
        Answer::default().and("bytes", self.bytes).and("as CRC-32C", self.checksum.into())
    }
}

impl Write for Tally {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn advise(results: &Results, count: f64) -> Vec<String> {
    let mut advice = Vec::new();
    // Returns the additional time per line of one way compared with the other.
    let more = |way, other| match results.ratio(way, other)? {
        ratio if ratio > 1.0 => Some(seconds((results.median(way)? - results.median(other)?) / count)),
        _ => None,
    };
    advice.extend(
        more(PRINTLN, LOCKED)
            .map(|cost| format!("locking standard output for every line costs {cost} a line: lock it once")),
    );
    advice.extend(more(LOCKED, BUFFERED).map(|cost| {
        format!("the LineWriter in standard output costs {cost} a line for a write(2) at each line end: wrap it in a BufWriter")
    }));
    advice.extend(more(BUFFERED_FILE, PUT).map(|cost| format!("format strings cost {cost} a line more than put!")));
    advice.extend(more(WRITE, PUT).map(|cost| format!("write! to a Writer costs {cost} a line more than put!")));
    advice.extend(more(SHARED, PUT).map(|cost| format!("a writer shared by threads costs {cost} a line for its lock")));
    for (way, bytes) in [(SMALL, "4 KiB"), (LARGE, "1 MiB")] {
        advice.extend(results.ratio(way, PUT).map(|ratio| match ratio {
            ratio if ratio > 1.0 => {
                format!("a buffer of {bytes} takes {} times as long as the default 64 KiB", factor(ratio))
            }
            ratio if ratio < 1.0 => {
                format!("a buffer of {bytes} is {} times as fast as the default 64 KiB", factor(1.0 / ratio))
            }
            _ => format!("a buffer of {bytes} is as fast as the default 64 KiB"),
        }));
    }
    advice
}
