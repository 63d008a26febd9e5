//! `millstream bench numbers`: reads whole numbers from text, and sums them.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use millstream::{Error, ErrorKind, Reader, Result};
use rand_xoshiro::rand_core::Rng;

use super::input::Input;
use super::measure::{Answer, Stop, Stoppable, Way};
use super::report::{Report, Results, Subject, factor};
use super::{Bench, lines, program};
use crate::size;

/// Measure reading whole numbers from text
///
/// Every way computes the count of the numbers and their sum.
#[derive(Args)]
pub(super) struct Options {
    /// A regular file with non-negative numbers separated by white space [default: two million generated numbers]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// The buffer size of all ways inside this process, unless their name has a size
    #[arg(long, value_name = "SIZE", default_value = "256K")]
    #[arg(value_parser = |text: &str| size::parse(text, 1..=1 << 30))]
    capacity: u64,
}

const COUNT: usize = 2_000_000;

const SCAN: &str = "scan";
const SMALL: &str = "scan, 4 KiB buffer";
const LARGE: &str = "scan, 4 MiB buffer";
const LINES: &str = "BufReader::lines, parse";
const SPLIT: &str = "read_to_string, split, parse";

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let input = &Input::new(options.file.as_ref(), |out, random| {
        // The numbers have one to ten digits, as in real data.
        (0..COUNT).try_for_each(|_| writeln!(out, "{}", (random.next_u64() >> 33) >> (random.next_u32() % 32)))
    })?;
    let name = input.name("two million numbers");
    let expected = sum_lines(input, 64 << 10, bench.stop).map_err(|error| error.with_name(&name))?;
    let [count, bytes] = [expected.get("numbers").unwrap_or(0), input.open()?.metadata()?.len()];
    let subject = Subject { question: format!("the sum of {name}"), bytes, records: count, noun: "number" };
    bench.report(subject, expected, ways(input, options.capacity as usize), advise)
}

fn ways(input: &Input, buffer: usize) -> Vec<Way<'_>> {
    let scan = move |capacity| {
        move |stop: &Stop| scan(Reader::builder().capacity(capacity).cancel(stop.token()).fd(input.open()?)?)
    };
    let mut ways = vec![
        Way::millstream(SCAN, scan(buffer)),
        Way::millstream(SMALL, scan(4 << 10)),
        Way::millstream(LARGE, scan(4 << 20)),
        Way::competitor(LINES, move |stop| sum_lines(input, buffer, stop)),
        Way::competitor(SPLIT, move |stop| sum_split(input, stop)),
    ];
    for (name, argv) in [
        (
            "awk, s += $i",
            ["awk", "{ for (i = 1; i <= NF; i++) s += $i; n += NF } END { printf \"%d %.0f\", n, s }"].as_slice(),
        ),
        ("perl, $s += $_", &["perl", "-ne", "for (split) { $s += $_; $n++ } END { printf '%d %d', $n, $s }"]),
        (
            "python3, sum(map(int, …))",
            &["python3", "-c", "import sys\nx = sys.stdin.read().split()\nprint(len(x), sum(map(int, x)))"],
        ),
    ] {
        ways.push(program::way(name, argv, &["numbers", "as sum"], move || Ok(input.open()?.into())));
    }
    ways
}

fn tally(count: u64, sum: u64) -> Answer {
    Answer::default().and("numbers", count).and("as sum", sum)
}

fn scan(mut reader: Reader) -> Result<Answer> {
    let (mut count, mut sum) = (0, 0_u64);
    while let Some(number) = reader.scan::<u64>()? {
        count += 1;
        sum = sum.wrapping_add(number);
    }
    reader.close()?;
    Ok(tally(count, sum))
}

fn parse(word: &str, line: u64) -> Result<u64> {
    word.parse().map_err(|_| {
        Error::new(ErrorKind::NumberInvalid)
            .with_found(format!("{:?}", word.chars().take(40).collect::<String>()))
            .with_expected("a whole number from 0 to 18446744073709551615")
            .with_record(line)
    })
}

fn sum_lines(input: &Input, buffer: usize, stop: &Stop) -> Result<Answer> {
    let (mut count, mut sum) = (0, 0_u64);
    let lines = BufReader::with_capacity(buffer, Stoppable { inner: input.open()?, stop }).lines();
    for (at, line) in lines.enumerate() {
        for word in line?.split_ascii_whitespace() {
            count += 1;
            sum = sum.wrapping_add(parse(word, at as u64)?);
        }
    }
    Ok(tally(count, sum))
}

fn sum_split(input: &Input, stop: &Stop) -> Result<Answer> {
    let mut text = String::new();
    Stoppable { inner: input.open()?, stop }.read_to_string(&mut text)?;
    let (mut count, mut sum) = (0, 0_u64);
    for word in text.split_ascii_whitespace() {
        count += 1;
        sum = sum.wrapping_add(parse(word, 0)?);
    }
    Ok(tally(count, sum))
}

fn advise(results: &Results) -> Vec<String> {
    let mut advice = Vec::new();
    for (way, bytes) in [(SMALL, "4 KiB"), (LARGE, "4 MiB")] {
        advice.extend(results.ratio(way, SCAN).map(|ratio| match ratio {
            ratio if ratio > 1.0 => {
                format!("a buffer of {bytes} takes {} times as long as the requested one", factor(ratio))
            }
            ratio if ratio < 1.0 => {
                format!("a buffer of {bytes} is {} times as fast as the requested one", factor(1.0 / ratio))
            }
            _ => format!("a buffer of {bytes} is as fast as the requested one"),
        }));
    }
    advice.extend(results.ratio(LINES, SCAN).filter(|&ratio| ratio > 1.0).map(|ratio| {
        format!(
            "a string for each line, and parse, take {} times as long as scan: {}",
            factor(ratio),
            lines::share(1.0 - 1.0 / ratio) + " can be saved"
        )
    }));
    advice
}
