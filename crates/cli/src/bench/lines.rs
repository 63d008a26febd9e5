//! `millstream bench lines`: the lines of a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use millstream::frame::Lines;
use millstream::{ReadAhead, Reader, ReaderBuilder, Result};

use super::measure::{Answer, Stop, Stoppable, Way};
use super::report::{READ, Report, Results, Subject, factor, size};
use super::{Bench, input, program};

/// Measure reading the lines of a file
///
/// Every way finds all lines. Ways inside this process also read the length of each line.
#[derive(Args)]
pub(super) struct Options {
    /// A regular file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

const BATCHES: &str = "batches";
const ONE: &str = "one at a time";
const AHEAD: &str = "batches, read-ahead on";
const SMALL: &str = "batches, 32 KiB buffer";
const LARGE: &str = "batches, 4 MiB buffer";
const MAPPED: &str = "batches, mapped";

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let path = &options.file;
    input::check(path)?;
    let expected = count(File::open(path)?, bench.stop)?;
    let [lines, bytes] = ["lines", "bytes"].map(|name| expected.get(name).unwrap_or(0));
    let subject = Subject { question: format!("lines of {}", path.display()), bytes, records: lines, noun: "line" };
    bench.report(subject, expected, ways(path), advise)
}

fn ways(path: &Path) -> Vec<Way<'_>> {
    let open = move |build: fn(ReaderBuilder) -> ReaderBuilder| {
        move |stop: &Stop| build(Reader::builder().cancel(stop.token())).path(path)
    };
    let stdin = move || Ok(File::open(path)?.into());
    let in_batches = |build| move |stop: &Stop| batches(open(build)(stop)?);
    let mut ways = vec![
        Way::millstream(BATCHES, in_batches(|builder| builder)),
        Way::millstream(ONE, move |stop| one_at_a_time(open(|builder| builder)(stop)?)),
        Way::millstream(AHEAD, in_batches(|builder| builder.read_ahead(ReadAhead::On))),
        Way::millstream(SMALL, in_batches(|builder| builder.capacity(32 << 10))),
        Way::millstream(LARGE, in_batches(|builder| builder.capacity(4 << 20))),
        Way::millstream(MAPPED, move |stop| batches(Reader::builder().cancel(stop.token()).mapped(path)?)),
        Way::competitor(READ, move |stop| read(File::open(path)?, stop)),
        Way::competitor("BufReader::read_until", move |stop| read_until(8 << 10, File::open(path)?, stop)),
        Way::competitor("BufReader::read_until, 256 KiB", move |stop| read_until(256 << 10, File::open(path)?, stop)),
        Way::competitor("BufReader::lines", move |stop| strings(File::open(path)?, stop)),
    ];
    ways.extend(PROGRAMS.iter().map(|(name, argv)| program::way(*name, argv, &["lines"], stdin)));
    ways
}

/// Programs that print the number of lines on standard input.
pub(super) const PROGRAMS: [(&str, &[&str]); 6] = [
    ("wc -l", &["wc", "-l"]),
    ("grep -c ''", &["grep", "-c", ""]),
    ("sed -n '$='", &["sed", "-n", "$="]),
    ("awk 'END { print NR }'", &["awk", "END { print NR }"]),
    ("perl, while (<STDIN>)", &["perl", "-e", "while (<STDIN>) { $count++ } print $count + 0"]),
    (
        "python3, for line in",
        &["python3", "-c", "import sys\nn = 0\nfor line in sys.stdin.buffer:\n    n += 1\nprint(n)"],
    ),
];

fn tally(lines: u64, content: u64) -> Answer {
    Answer::default().and("lines", lines).and("bytes without line ends", content)
}

/// Reads lines with Millstream, in batches.
pub(super) fn batches(mut reader: Reader) -> Result<Answer> {
    let (mut count, mut content) = (0, 0);
    let mut lines = Lines::new();
    while let Some(batch) = reader.next_batch(&mut lines)? {
        for line in &batch {
            count += 1;
            content += line.len() as u64;
        }
    }
    reader.close()?;
    Ok(tally(count, content))
}

/// Reads lines with Millstream, one at a time.
pub(super) fn one_at_a_time(mut reader: Reader) -> Result<Answer> {
    let (mut count, mut content) = (0, 0);
    while let Some(line) = reader.next_line()? {
        count += 1;
        content += line.len() as u64;
    }
    reader.close()?;
    Ok(tally(count, content))
}

/// Reads all bytes, which every way has to do.
pub(super) fn read(stream: impl Read, stop: &Stop) -> Result<Answer> {
    let mut stream = Stoppable { inner: stream, stop };
    let mut space = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match stream.read(&mut space)? {
            0 => return Ok(Answer::default().and("bytes", bytes)),
            len => bytes += len as u64,
        }
    }
}

/// Reads lines as is usual for arbitrary bytes with the standard library.
pub(super) fn read_until(buffer: usize, stream: impl Read, stop: &Stop) -> Result<Answer> {
    let mut reader = BufReader::with_capacity(buffer, Stoppable { inner: stream, stop });
    let (mut count, mut content) = (0, 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        count += 1;
        let stripped = line.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        content += stripped.unwrap_or(&line).len() as u64;
        line.clear();
    }
    Ok(tally(count, content))
}

/// Reads lines with the most common method: UTF-8 only, and a new string for each line.
pub(super) fn strings(stream: impl Read, stop: &Stop) -> Result<Answer> {
    let (mut count, mut content) = (0, 0);
    for line in BufReader::new(Stoppable { inner: stream, stop }).lines() {
        count += 1;
        content += line?.len() as u64;
    }
    Ok(tally(count, content))
}

/// Returns the expected result, which is counted byte by byte, without splitting into lines.
pub(super) fn count(stream: impl Read, stop: &Stop) -> io::Result<Answer> {
    let mut stream = Stoppable { inner: stream, stop };
    let mut space = vec![0; 256 << 10];
    let (mut bytes, mut feeds, mut ends_crlf, mut last) = (0, 0, 0, b'\n');
    loop {
        let len = stream.read(&mut space)?;
        let chunk = &space[..len];
        let Some(&end) = chunk.last() else { break };
        bytes += len as u64;
        for at in memchr::memchr_iter(b'\n', chunk) {
            feeds += 1;
            ends_crlf += u64::from(at.checked_sub(1).map_or(last, |before| chunk[before]) == b'\r');
        }
        last = end;
    }
    let lines = feeds + u64::from(last != b'\n');
    Ok(tally(lines, bytes - feeds - ends_crlf).and("bytes", bytes))
}

fn advise(results: &Results) -> Vec<String> {
    let mut advice: Vec<_> = advise_on_batches(results, ONE, BATCHES).into_iter().collect();
    if let Some(ratio) = results.ratio(AHEAD, BATCHES) {
        advice.push(match ratio {
            ratio if ratio > 1.0 => {
                format!("leave read-ahead as it is (Auto): On takes {} times as long here", factor(ratio))
            }
            ratio if ratio < 1.0 => format!("ReadAhead::On saves {} of the time here", share(1.0 - ratio)),
            _ => "leave read-ahead as it is (Auto): On makes no difference here".to_string(),
        });
    }
    let buffers = [(SMALL, 32 << 10), (LARGE, 4 << 20)];
    let better = buffers.iter().filter_map(|(way, size)| Some((results.ratio(way, BATCHES)?, size)));
    advice.extend(better.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(ratio, &bytes)| match ratio {
        ratio if ratio < 1.0 => format!("a buffer of {} saves {} of the time", size(bytes), share(1.0 - ratio)),
        _ => "no other buffer size is faster than the default 256 KiB here".to_string(),
    }));
    if let (Some(floor), Some(ours)) = (results.median(READ), results.fastest(true).and_then(|way| results.median(way)))
    {
        let part = share((floor / ours).min(1.0));
        advice.push(format!(
            "reading alone is {part} of the time of Millstream's fastest way: finding lines faster cannot save more than the rest"
        ));
    }
    advice
}

/// Compares batches with single lines.
pub(super) fn advise_on_batches(results: &Results, one: &str, batches: &str) -> Option<String> {
    Some(match results.ratio(one, batches)? {
        ratio if ratio < 1.1 => {
            "next_line costs the same as batches here: use whichever is easier to write".to_string()
        }
        ratio => format!("batches (next_batch) save {} of the time of next_line", share(1.0 - 1.0 / ratio)),
    })
}

/// Formats a fraction as a percentage.
pub(super) fn share(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}
