//! `millstream bench bson`: the fastest way to read the documents of a file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};
use millstream::bson::columns::{Batches, OnMixed, Options as ColumnOptions, Sample};
use millstream::bson::{Document, Documents, Map};
use millstream::{Error, ErrorKind, Reader, Result};

use super::measure::{Answer, Stop, Stoppable, Way};
use super::report::{READ, Report, Results, Subject, factor};
use super::{Bench, input, lines, program};

/// Measure reading the BSON documents of a file
///
/// Every way finds all documents. Ways that read one value look up the last key of the first document in each document.
#[derive(Args)]
pub(super) struct Options {
    /// An uncompressed regular file of consecutive documents, as written by mongodump
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

const LENGTHS: &str = "lengths alone";
const CHECK: &str = "check every byte";
const GET: &str = "one value, lazily";
const MAPPED: &str = "one value, lazily, mapped";
const TREE: &str = "tree";
const COLUMNS: &str = "columns";

/// The number of documents from which columns are inferred.
const SAMPLE: usize = 1000;

pub(super) fn run(options: &Options, bench: &Bench<'_>) -> Result<Report> {
    let path = &options.file;
    input::check(path)?;
    let (mut key, mut found, mut values) = (None, 0, 0);
    let count = each(open(path, bench.stop)?, |document| {
        // A separate traversal of the file's content determines the result that the other ways should find.
        let mut has_key = false;
        for element in document {
            let element = element?;
            values += 1;
            has_key |= key.as_deref() == Some(element.key()?);
        }
        if key.is_none() {
            key = document.iter().last().transpose()?.map(|element| element.key().map(str::to_string)).transpose()?;
            has_key = key.is_some();
        }
        found += u64::from(has_key);
        Ok(())
    })?;
    let bytes = std::fs::metadata(path)?.len();
    let expected = tally(count).and("bytes", bytes).and(FOUND, found).and(MEMBERS, values);
    let subject =
        Subject { question: format!("documents of {}", path.display()), bytes, records: count, noun: "document" };
    bench.report(subject, expected, ways(path, key.unwrap_or_default()), advise)
}

const FOUND: &str = "with the key";
const MEMBERS: &str = "members";

fn tally(documents: u64) -> Answer {
    Answer::default().and("documents", documents)
}

fn open(path: &Path, stop: &Stop) -> Result<Documents> {
    let builder = Reader::builder().cancel(stop.token()).record_limit(i32::MAX as usize);
    Ok(Documents::new(builder.path(path)?))
}

/// Calls `look` for each document, and returns the number of documents.
fn each(mut documents: Documents, mut look: impl FnMut(Document<'_>) -> Result<()>) -> Result<u64> {
    let mut count = 0;
    while let Some(batch) = documents.next_batch()? {
        count += batch.len() as u64;
        batch.iter().try_for_each(&mut look)?;
    }
    documents.into_reader().close()?;
    Ok(count)
}

fn ways(path: &Path, key: String) -> Vec<Way<'_>> {
    let with_key = move |key: String, open: fn(&Path, &Stop) -> Result<Documents>| {
        move |stop: &Stop| {
            let mut found = 0;
            let count = each(open(path, stop)?, |document| {
                found += u64::from(document.find(&key)?.is_some());
                Ok(())
            })?;
            Ok(tally(count).and(FOUND, found))
        }
    };
    let mut ways = vec![
        Way::millstream(LENGTHS, move |stop| Ok(tally(each(open(path, stop)?, |_| Ok(()))?))),
        Way::millstream(CHECK, move |stop| Ok(tally(each(open(path, stop)?, |document| document.check())?))),
        Way::millstream(GET, with_key(key.clone(), open)),
        Way::millstream(
            MAPPED,
            with_key(key.clone(), |path, stop| {
                let builder = Reader::builder().cancel(stop.token()).record_limit(i32::MAX as usize);
                Ok(Documents::new(builder.mapped(path)?))
            }),
        ),
        Way::millstream(TREE, move |stop| {
            let (mut found, mut members) = (0, 0);
            let count = each(open(path, stop)?, |document| {
                let map = Map::from_document(document)?;
                found += u64::from(map.contains_key(&key));
                members += map.len() as u64;
                Ok(())
            })?;
            Ok(tally(count).and(FOUND, found).and(MEMBERS, members))
        }),
        Way::millstream(COLUMNS, move |stop| columns(open(path, stop)?)),
        Way::competitor(READ, move |stop| lines::read(File::open(path)?, stop)),
        Way::competitor("BufReader, lengths by hand", move |stop| lengths(path, stop)),
    ];
    ways.push(program::where_found("bsondump, wc -l", &["sh", "bsondump", "wc"], move |stop| {
        let mut command = Command::new("sh");
        command.args(["-c", "bsondump --quiet \"$1\" | wc -l", "sh"]).arg(path).stdin(Stdio::null());
        program::answer(&program::output(&mut command, stop)?, &["documents"])
    }));
    ways.push(python(path));
    ways
}

/// Returns pymongo's decoder, if it is installed.
fn python(path: &Path) -> Way<'_> {
    const NAME: &str = "python3, bson.decode_file_iter";
    const NEEDS: &str = "from bson import decode_file_iter";
    let mut check = Command::new("python3");
    check.args(["-c", NEEDS]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match check.status() {
        Ok(status) if !status.success() => Way::skipped(NAME, "python3 has no pymongo".to_string()),
        _ => {
            let code = format!("import sys\n{NEEDS}\nprint(sum(1 for _ in decode_file_iter(sys.stdin.buffer)))");
            program::way(NAME, &["python3", "-c", &code], &["documents"], move || Ok(File::open(path)?.into()))
        }
    }
}

fn columns(mut documents: Documents) -> Result<Answer> {
    let sample = Sample::take(&mut documents, SAMPLE, 16 << 20)?;
    let schema = sample.infer(OnMixed::Json)?;
    let mut batches = Batches::new(sample, documents, &schema, ColumnOptions::new())?;
    let mut count = 0;
    while let Some(columns) = batches.next_batch()? {
        count += columns.len() as u64;
    }
    batches.into_documents().into_reader().close()?;
    Ok(tally(count))
}

/// Finds documents without a library: four bytes give the length of a document.
fn lengths(path: &Path, stop: &Stop) -> Result<Answer> {
    let mut reader = BufReader::with_capacity(256 << 10, Stoppable { inner: File::open(path)?, stop });
    let (mut count, mut document) = (0, Vec::new());
    loop {
        let mut length = [0; 4];
        match reader.read(&mut length[..1])? {
            0 => return Ok(tally(count)),
            _ => reader.read_exact(&mut length[1..])?,
        }
        let rest = u32::from_le_bytes(length).checked_sub(4).ok_or_else(|| Error::new(ErrorKind::LengthInvalid))?;
        document.clear();
        (&mut reader).take(rest.into()).read_to_end(&mut document)?;
        count += 1;
    }
}

fn advise(results: &Results) -> Vec<String> {
    let mut advice = Vec::new();
    advice.extend(results.ratio(TREE, GET).map(|ratio| match ratio {
        ratio if ratio > 1.0 => {
            format!("read a single value of a document lazily: building the tree takes {} times as long", factor(ratio))
        }
        _ => "the tree costs no more than one value: use whichever is easier to write".to_string(),
    }));
    advice.extend(results.ratio(CHECK, GET).filter(|&ratio| ratio > 1.0).map(|ratio| {
        format!(
            "checking every byte takes {} times as long as one value: check once, where documents enter the program",
            factor(ratio)
        )
    }));
    advice.extend(results.ratio(COLUMNS, TREE).map(|ratio| match ratio {
        ratio if ratio < 1.0 => format!("for all values, columns are {} times as fast as trees", factor(1.0 / ratio)),
        ratio if ratio > 1.0 => format!("for all values, trees are {} times as fast as columns here", factor(ratio)),
        _ => "for all values, columns and trees take the same time".to_string(),
    }));
    advice.extend(results.ratio(MAPPED, GET).map(|ratio| match ratio {
        ratio if ratio < 1.0 => format!("mapping the file is {} times as fast as reading it", factor(1.0 / ratio)),
        ratio if ratio > 1.0 => format!("mapping the file takes {} times as long as reading it", factor(ratio)),
        _ => "mapping the file makes no difference".to_string(),
    }));
    advice
}
