//! `millstream bench stages`: measures the cost of one more stage, and the gain from one more thread.
//!
//! The compiler may remove a stage that does nothing if it sees all stages. So each stage compares the length of a line
//! with a limit that is unknown to the compiler.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::{Args, ValueHint};
use millstream::pipe::{Attached, Bytes, Pipe, Start};
use millstream::{Reader, Result};
use rand_xoshiro::rand_core::Rng;
use sha2::{Digest, Sha256};

use super::input::Input;
use super::lines::{self, share};
use super::measure::{Answer, Stop, Stoppable, Way};
use super::report::{Report, Results, Subject, factor, seconds};
use super::{Bench, program};

/// Measure the cost of stages between a file and its lines
///
/// A stage reads the length of each line, and passes the line on. Ten stages are fused by the compiler, chosen at run
/// time ("boxed"), or separate processes. Another stage computes the SHA-256 of each line, on one thread and on all.
#[derive(Args)]
pub(super) struct Options {
    /// A regular file [default: 400,000 generated lines]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

const LINES: usize = 400_000;
const STAGES: usize = 10;

const NONE: &str = "no stage";
const FUSED: &str = "10 stages, fused";
const BOXED: &str = "10 stages, boxed";
const STD_NONE: &str = "BufReader::split";
const STD_FUSED: &str = "BufReader::split, 10 filters";
const STD_BOXED: &str = "BufReader::split, 10 boxed filters";
const WC: &str = "wc -l";
const CATS: &str = "10 cat, wc -l";
const HASH: &str = "SHA-256, 1 thread";
const HASH_ALL: &str = "SHA-256, all threads";
const STD_HASH: &str = "BufReader::split, SHA-256";

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let input = &Input::new(options.file.as_ref(), |out, random| {
        (0..LINES).try_for_each(|_| {
            writeln!(out, "{:0width$x}", random.next_u64(), width = 20 + (random.next_u32() % 100) as usize)
        })
    })?;
    let name = input.name("generated lines");
    let hashed = hash_lines(input, bench.stop)?;
    let mut expected = lines::count(input.open()?, bench.stop)?;
    expected = expected.and(MIX, hashed.get(MIX).unwrap_or(0));
    let [count, bytes] = ["lines", "bytes"].map(|name| expected.get(name).unwrap_or(0));
    let subject = Subject { question: format!("stages over {name}"), bytes, records: count, noun: "line" };
    bench.report(subject, expected, ways(input), |results| advise(results, count as f64))
}

/// Calls a macro with ten names.
macro_rules! ten {
    ($call:ident) => {
        $call!(a b c d e f g h i j)
    };
}

type LinesOf = Pipe<Attached<'static>, Bytes, Start, Bytes>;

fn ways(input: &Input) -> Vec<Way<'_>> {
    let pipe = move |stop: &Stop| -> Result<LinesOf> {
        Ok(Pipe::from(Reader::builder().cancel(stop.token()).fd(input.open()?)?).lines())
    };
    let threads = available_parallelism().map_or(1, usize::from);
    let mut ways = vec![
        Way::millstream(NONE, move |stop| {
            let mut count = 0;
            pipe(stop)?.for_each(|_| count += 1)?;
            Ok(tally(count))
        }),
        Way::millstream(FUSED, move |stop| {
            let mut count = 0;
            macro_rules! chain {
                ($($limit:ident)*) => {{
                    $(let $limit = limit();)*
                    pipe(stop)?$(.filter(move |line| line.len() != $limit))*.for_each(|_| count += 1)?
                }};
            }
            ten!(chain);
            Ok(tally(count))
        }),
        Way::millstream(BOXED, move |stop| {
            let mut count = 0;
            let stages = (0..STAGES).map(|_| {
                let limit = limit();
                Pipe::stages().filter(move |line| line.len() != limit).boxed("passes")
            });
            pipe(stop)?.then_all(stages.collect()).for_each(|_| count += 1)?;
            Ok(tally(count))
        }),
        Way::millstream(HASH, move |stop| {
            let mut mix = Mix::default();
            pipe(stop)?.map(hash).for_each(|hash| mix.add(hash))?;
            Ok(mix.answer())
        }),
        Way::millstream(HASH_ALL, move |stop| {
            let mut mix = Mix::default();
            pipe(stop)?.parallel(threads, |stages| stages.map(hash)).for_each(|hash| mix.add(hash))?;
            Ok(mix.answer())
        }),
        Way::competitor(STD_NONE, move |stop| {
            let mut count = 0;
            for line in split(input, stop)? {
                line?;
                count += 1;
            }
            Ok(tally(count))
        }),
        Way::competitor(STD_FUSED, move |stop| {
            let mut count = 0;
            macro_rules! chain {
                ($($limit:ident)*) => {
                    $(let $limit = limit();)*
                    for line in split(input, stop)?$(.filter(move |line| is_not_so_long(line, $limit)))* {
                        line?;
                        count += 1;
                    }
                };
            }
            ten!(chain);
            Ok(tally(count))
        }),
        Way::competitor(STD_BOXED, move |stop| {
            let mut lines: Box<dyn Iterator<Item = io::Result<Vec<u8>>> + '_> = Box::new(split(input, stop)?);
            for _ in 0..STAGES {
                let limit = limit();
                lines = Box::new(lines.filter(move |line| is_not_so_long(line, limit)));
            }
            let mut count = 0;
            for line in lines {
                line?;
                count += 1;
            }
            Ok(tally(count))
        }),
        Way::competitor(STD_HASH, move |stop| hash_lines(input, stop)),
    ];
    let stdin = move || Ok(input.open()?.into());
    ways.push(program::way(WC, &["wc", "-l"], &["lines"], stdin));
    let cats = "cat | ".repeat(STAGES) + "wc -l";
    ways.push(program::way(CATS, &["sh", "-c", &cats], &["lines"], stdin));
    ways
}

/// Returns the lines that the standard library finds, with a buffer of the same size as Millstream's.
fn split<'a>(input: &Input, stop: &'a Stop) -> io::Result<io::Split<BufReader<Stoppable<'a, File>>>> {
    Ok(BufReader::with_capacity(256 << 10, Stoppable { inner: input.open()?, stop }).split(b'\n'))
}

/// Does a stage's check on a line from the standard library; errors pass.
fn is_not_so_long(line: &io::Result<Vec<u8>>, limit: usize) -> bool {
    line.as_ref().map_or(true, |line| line.len() != limit)
}

/// Returns a length that no line has and that is unknown to the compiler.
fn limit() -> usize {
    black_box(usize::MAX)
}

fn tally(count: u64) -> Answer {
    Answer::default().and("lines", count)
}

const MIX: &str = "as mixed hashes";

/// The first bytes of hashes, mixed in order.
#[derive(Default)]
struct Mix {
    count: u64,
    mix: u32,
}

impl Mix {
    fn add(&mut self, hash: u32) {
        self.count += 1;
        self.mix = self.mix.wrapping_mul(31) ^ hash;
    }

    fn answer(&self) -> Answer {
        tally(self.count).and(MIX, self.mix.into())
    }
}

fn hash(line: &[u8]) -> u32 {
    u32::from_be_bytes(*Sha256::digest(line).first_chunk().expect("a hash has 32 bytes"))
}

fn hash_lines(input: &Input, stop: &Stop) -> Result<Answer> {
    let mut mix = Mix::default();
    for line in split(input, stop)? {
        let line = line?;
        mix.add(hash(line.strip_suffix(b"\r").unwrap_or(&line)));
    }
    Ok(mix.answer())
}

fn advise(results: &Results, count: f64) -> Vec<String> {
    let mut advice = Vec::new();
    for (with, without, what) in [
        (FUSED, NONE, "one more fused stage"),
        (BOXED, NONE, "one more boxed stage"),
        (STD_FUSED, STD_NONE, "one more filter of std's iterators"),
        (STD_BOXED, STD_NONE, "one more boxed filter of std's iterators"),
        (CATS, WC, "one more process (cat)"),
    ] {
        let more = results.ratio(with, without).zip(results.median(with).zip(results.median(without)));
        advice.extend(more.map(|(ratio, (with, without))| match ratio {
            ratio if ratio > 1.0 => {
                format!("{what} costs {} a line", seconds((with - without) / STAGES as f64 / count))
            }
            _ => format!("{what} has no measurable cost"),
        }));
    }
    let threads = available_parallelism().map_or(1, usize::from);
    advice.extend(results.ratio(HASH_ALL, HASH).map(|ratio| match ratio {
        ratio if ratio < 1.0 => format!(
            "a computing stage is {} times as fast on {threads} threads: {} of the ideal",
            factor(1.0 / ratio),
            share(1.0 / ratio / threads as f64)
        ),
        _ => format!("{threads} threads are no faster here: keep the stage on one thread"),
    }));
    advice
}
