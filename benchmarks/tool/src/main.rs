//! `millstream-bench` measures the definitions in `benchmarks/definitions`, reports the results, and stores a record.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use millstream_bench::definition::{Definition, Scale};
use millstream_bench::instructions::{Baseline, Comparison};
use millstream_bench::journal::{Header, Journal};
use millstream_bench::measure::{Place, Plan};
use millstream_bench::record::Record;
use millstream_bench::results::{Question, Results, SCHEMA};
use millstream_bench::revision::Revision;
use millstream_bench::session::{self, Session};
use millstream_bench::tap::Tap;
use millstream_bench::{
    chart, competitors, docs, flame, html, instructions, machine, programs, report, revision, sweep, traps,
};

/// Measure Millstream against competitors.
///
/// Inputs and outputs are kept in memory (/dev/shm if it exists; up to 8 GB at a time). The result of each
/// definition is printed immediately; a measurement at full size is also written to benchmarks/runs/. The exit status is
/// 1 if a runner gave a wrong answer or, with CI=true, if a competitor is missing.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    work: Option<Work>,
    /// Measure this definition only (may be given several times).
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measure small inputs and the ends of sweeps, within two minutes. Targets are not checked, and no record is
    /// kept.
    #[arg(long)]
    quick: bool,
    /// Check the answers with small inputs, one run each, without measuring.
    #[arg(long, conflicts_with_all = ["quick", "runs", "budget", "resume"])]
    check: bool,
    /// The number of measured rounds, unless the definition sets it [default: 7; 5 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// The time for all runs of one runner of a definition: slow runners get fewer rounds. A single run that takes
    /// twice as long is killed and shown as "over N s" [default: 5; with --quick 0.2, and no run is killed before 10
    /// s].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    budget: Option<Duration>,
    /// Run each runner once more under `strace -c`, and Millstream runners that can measure their stages once more
    /// with these measurements, for the report's "Where the time is spent". Each run takes at most the time of --budget.
    #[arg(long = "where", conflicts_with_all = ["check", "vs"])]
    watches: bool,
    /// Continue a run that was killed, without repeating its results.
    #[arg(long)]
    resume: bool,
    /// The format of the report.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Keep the inputs in this directory and reuse them.
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Compare the current Millstream with this revision, which is built first. The exit status is 1 if something is
    /// slower by more than 5 % and the difference is significant.
    #[arg(long, value_name = "REV", conflicts_with_all = ["quick", "check", "resume", "format", "no_build", "journal"])]
    vs: Option<String>,
    /// Write no record.
    #[arg(long)]
    no_record: bool,
    /// Measure the existing programs without building them.
    #[arg(long)]
    no_build: bool,
    /// Measure the definitions in this directory.
    #[arg(long, value_name = "DIR")]
    definitions: Option<PathBuf>,
    /// The journal of results [default: bench-journal.jsonl next to the tool].
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// List the definitions, with the estimated time of each, and exit.
    #[arg(long)]
    list: bool,
}

#[derive(Subcommand)]
enum Work {
    /// Measure and print one kind of table only, in Markdown; no record.
    Table {
        /// The kind of table.
        kind: Kind,
        /// Measure this definition only (may be given several times).
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// The number of measured rounds.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        runs: u64,
        /// Use this text file instead of a generated one.
        #[arg(long, value_name = "FILE")]
        input: Option<PathBuf>,
    },
    /// Run each runner once unmodified, once sampled and once under strace, and keep flame graphs and counts in a record.
    Profile {
        /// The definition.
        name: String,
        /// Only the runners of this name, with or without the value of a swept parameter.
        #[arg(long, value_name = "NAME")]
        runner: Option<String>,
        /// The directory of the record; otherwise the newest.
        #[arg(long, value_name = "RECORD_DIR")]
        record: Option<PathBuf>,
    },
    /// Write one HTML file from a record: comparisons, tables, charts.
    Report {
        /// The directory of the record; otherwise the newest.
        #[arg(value_name = "RECORD_DIR")]
        record: Option<PathBuf>,
        /// The file to write; otherwise `report.html` in the record.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Copy a measurement into benchmarks/record.json, which the documentation quotes.
    Record {
        /// The directory of the measurement; otherwise the newest.
        #[arg(value_name = "DIR")]
        runs: Option<PathBuf>,
    },
    /// Generate the tables of docs/benchmarks.md and the chart of README.md from benchmarks/record.json.
    Docs,
    /// Print what programs answer for files of CSV that some of them misread.
    Traps {
        /// Use files of 100 MB, and compare the number of records.
        #[arg(long)]
        large: bool,
        /// Replace the table in docs/csv.md.
        #[arg(long)]
        write: bool,
    },
    /// Count the instructions of some runners and compare them with benchmarks/baseline. The exit status is 1
    /// if one of them needs more than the tolerance allows.
    Instructions {
        /// Store the counts.
        #[arg(long)]
        write: bool,
    },
}

/// The path of the page with the tables of traps, relative to the root of the repository.
const TRAPS: &str = "docs/csv.md";

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Print the cost of one more stage of a pipeline: time, bytes and lines per second, and their change per stage.
    Stages,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each target, as soon as it is known.
    Text,
    /// The table of targets, and every runner, in Markdown.
    Markdown,
    /// A test point for each target, as soon as it is known (TAP 14).
    Tap,
    /// Everything, as in a record's results.json.
    Json,
}

/// The time for one run in a quick measurement.
const PATIENCE: Duration = Duration::from_secs(10);

/// The path of the record, relative to the root of the repository.
const RECORD: &str = "benchmarks/record.json";

fn seconds(text: &str) -> Result<Duration> {
    let seconds = Duration::try_from_secs_f64(text.parse()?)?;
    ensure!(!seconds.is_zero(), "the time is zero, expected more than zero seconds");
    Ok(seconds)
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let definitions = || {
        let directory = options.definitions.clone().unwrap_or(root.join("benchmarks/definitions"));
        Definition::load_all(&directory)
    };
    match &options.work {
        Some(Work::Table { kind: Kind::Stages, only, runs, input }) => {
            let mut definitions: Vec<_> = definitions()?.into_iter().filter(Definition::is_by_stages).collect();
            if let Some(path) = input {
                sweep::take_text(&mut definitions, path)?;
            }
            table(&root, choose(definitions, only)?, *runs as usize)
        }
        Some(Work::Profile { name, runner, record }) => {
            let record = record.clone().map_or_else(|| html::newest(&root), Ok)?;
            let definition = choose(definitions()?, std::slice::from_ref(name))?.remove(0);
            let scratch = tempfile::tempdir()?;
            let place = Place { inputs: scratch.path().to_owned(), ..build_all(&root)? };
            flame::profile::profile(&definition, runner.as_deref(), &place, &record.join(flame::profile::DIRECTORY))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Work::Report { record, output }) => {
            println!("{}", html::write(&root, &definitions()?, record.as_deref(), output.as_deref())?.display());
            Ok(ExitCode::SUCCESS)
        }
        Some(Work::Instructions { write }) => instructions(&root, &definitions()?, *write),
        Some(Work::Record { runs }) => {
            let runs = runs.clone().map_or_else(|| html::newest(&root), Ok)?;
            let mut record = Record::load(&root.join(RECORD))?;
            record.take(&Results::load(&runs.join("results.json"))?, &definitions()?);
            record.store(&root.join(RECORD))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Work::Docs) => {
            let record = Record::load(&root.join(RECORD))?;
            let tables = root.join("docs/benchmarks.md");
            let rows = chart::rows(&fs::read_to_string(root.join("benchmarks/chart.toml"))?, &record)?;
            fs::write(&tables, docs::update(&fs::read_to_string(&tables)?, &record, &rows)?)?;
            fs::write(root.join("docs/speed.svg"), chart::draw(&rows))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Work::Traps { large, write }) => {
            let scratch = tempfile::tempdir()?;
            let place = Place { inputs: scratch.path().to_owned(), ..build_all(&root)? };
            let table = traps::table(&place, &traps::PROGRAMS, *large)?;
            if *write {
                let path = root.join(TRAPS);
                fs::write(&path, traps::update(&fs::read_to_string(&path)?, usize::from(*large), &table)?)?;
            } else {
                print!("{table}");
            }
            Ok(ExitCode::SUCCESS)
        }
        None if options.vs.is_some() => versus(&root, choose(definitions()?, &options.only)?, &options),
        None => record(&root, choose(definitions()?, &options.only)?, &options),
    }
}

/// Measures sweeps completely and prints their tables.
fn table(root: &Path, mut definitions: Vec<Definition>, runs: usize) -> Result<ExitCode> {
    measure_optimised()?;
    for definition in &mut definitions {
        definition.runs = Some(runs);
    }
    let patience = Duration::from_secs(300);
    let plan = Plan { scale: Scale::Full, rounds: runs, warm_up: true, budget: Duration::MAX, limit: patience };
    let mut session = Session { plan, place: build_all(root)?, inputs: None, watches: false };
    let questions = session.measure(&definitions, vec![], None, &mut |question| {
        sweep::table(question).iter().for_each(|table| print!("{table}"));
    })?;
    Ok(exit_code(&questions))
}

/// Compares Millstream with another revision of itself.
fn versus(root: &Path, definitions: Vec<Definition>, options: &Options) -> Result<ExitCode> {
    measure_optimised()?;
    let place = build_all(root)?;
    let name = options.vs.as_deref().context("no revision")?;
    let revision = Revision::build(root, name, &place.programs[0].with_file_name("revision"))?;
    let definitions: Vec<Definition> = definitions.iter().filter_map(|one| revision.against(one)).collect();
    let machine = machine::look(root, &definitions, &place.search_path(&[]));
    machine.warnings.iter().for_each(|warning| eprintln!("WARNING: {warning}"));
    let mut session = Session { plan: options.plan(), place, inputs: options.inputs.clone(), watches: false };
    let questions =
        session.measure(&definitions, vec![], None, &mut |question| print!("{}", report::lines(question)))?;
    let mut slower = false;
    for question in &questions {
        for runner in revision::slower(question) {
            eprintln!("SLOWER: {}: {runner}", question.name);
            slower = true;
        }
    }
    Ok(if slower { ExitCode::FAILURE } else { exit_code(&questions) })
}

/// Counts instructions and compares or stores them. The counted programs are always optimised.
fn instructions(root: &Path, definitions: &[Definition], write: bool) -> Result<ExitCode> {
    let path = root.join("benchmarks/baseline").join(env::consts::ARCH).with_extension("toml");
    let baseline = Baseline::load(&path)?;
    // None of them writes columns, and the library for Parquet takes longer to build than everything else.
    build(root, true, "")?;
    let scratch = tempfile::tempdir()?;
    let programs = own_programs()?.with_file_name("release");
    let place = Place { root: root.to_owned(), programs: vec![programs], inputs: scratch.path().to_owned() };
    let count = |name: &String| Ok((name.clone(), instructions::count(name, definitions, &place)?));
    let (possible, not): (Vec<_>, Vec<_>) =
        baseline.instructions.keys().partition(|name| instructions::is_possible(name));
    not.iter().for_each(|name| eprintln!("SKIPPED: {name}: this processor has no AVX2"));
    let now = possible.into_iter().map(count).collect::<Result<_>>()?;

    let Comparison { text, grew } = baseline.compare(&now);
    print!("{text}");
    let compiler = machine::compiler();
    if write {
        // Keep the counts that cannot be measured here.
        let instructions = baseline.instructions.into_iter().chain(now).collect();
        Baseline { compiler, instructions, ..baseline }.store(&path)?;
        return Ok(ExitCode::SUCCESS);
    }
    if compiler != baseline.compiler {
        eprintln!(
            "WARNING: the baseline was counted with {}, but this compiler is {compiler}: nothing is compared",
            baseline.compiler
        );
        return Ok(ExitCode::SUCCESS);
    }
    if grew {
        eprintln!(
            "some runners need more instructions than before: if this is intended, run `make instructions WRITE=--write`"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_optimised() -> Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "this is a debug build: measure with `cargo run --release`, or only check answers with --check"
    );
    Ok(())
}

impl Options {
    fn plan(&self) -> Plan {
        let rounds = |default| self.runs.map_or(default, |runs| runs as usize);
        let budget = |seconds| self.budget.unwrap_or(Duration::from_secs_f64(seconds));
        if self.check {
            let (budget, limit) = (Duration::MAX, Duration::from_secs(60));
            Plan { scale: Scale::Quick, rounds: 1, warm_up: false, budget, limit }
        } else if self.quick {
            Plan { scale: Scale::Quick, rounds: rounds(5), warm_up: true, budget: budget(0.2), limit: PATIENCE }
        } else {
            let budget = budget(5.0);
            Plan { scale: Scale::Full, rounds: rounds(7), warm_up: true, budget, limit: budget.saturating_mul(2) }
        }
    }
}

/// Measures definitions, reports the results and stores them.
fn record(root: &Path, mut definitions: Vec<Definition>, options: &Options) -> Result<ExitCode> {
    if options.list {
        return list(root, &definitions, options);
    }
    let plan = options.plan();
    let quick = plan.scale == Scale::Quick;
    match plan.scale {
        Scale::Quick => definitions = definitions.into_iter().map(sweep::ends).collect(),
        Scale::Full => measure_optimised()?,
    }
    let place = if options.no_build { place(root)? } else { build_all(root)? };
    let names: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
    let watched = if options.watches { " where" } else { "" };
    let asked = format!("{plan:?}{watched} {}", names.join(" "));
    let mut header = Header { machine: machine::look(root, &definitions, &place.search_path(&[])), asked };
    let journal = options.journal.clone().unwrap_or(place.programs[0].join("bench-journal.jsonl"));
    let mut known = Vec::new();
    if options.resume {
        let warnings = header.machine.warnings.clone();
        (header, known) = session::resume(&journal, header)?;
        header.machine.warnings.extend(warnings);
    } else if !options.check
        && Journal::load(&journal).is_ok_and(|found| found.is_some_and(|(begun, _)| begun.is_same(&header)))
    {
        eprintln!(
            "{} has an unfinished run with the same options: it is replaced; --resume would have continued it",
            journal.display()
        );
    }
    if !options.check {
        header.machine.warnings.iter().for_each(|warning| eprintln!("WARNING: {warning}"));
    }
    let mut note = if options.check { None } else { Some(Journal::begin(&journal, &header, &known)?) };

    let format = options.format;
    let mut tap = Tap::default();
    if format == Format::Tap {
        print!("{}", Tap::version());
    }
    let mut session = Session { plan, place, inputs: options.inputs.clone(), watches: options.watches };
    if !quick {
        let is_open = |one: &&Definition| known.iter().all(|question| question.name != one.name);
        let open: Vec<Definition> = definitions.iter().filter(is_open).cloned().collect();
        let minutes = session.estimate(&open, &Record::load(&root.join(RECORD))?).as_secs() / 60;
        eprintln!("estimated time from the record: {minutes} min, plus the time to generate inputs");
    }
    let definitions = session.measure(&definitions, known, note.as_mut(), &mut |question| match format {
        Format::Text if options.check => print!("{}", report::check(question)),
        Format::Text => print!("{}", report::lines(question)),
        Format::Tap => print!("{}", tap.points(question)),
        Format::Markdown | Format::Json => {}
    })?;
    let results = Results { schema: SCHEMA, machine: header.machine, rounds: plan.rounds, quick, definitions };
    match format {
        Format::Text => {}
        Format::Markdown => {
            print!("{}{}", report::table(report::targets(&results.definitions)), report::rankings(&results.definitions))
        }
        Format::Tap => print!("{}", tap.plan()),
        Format::Json => println!("{}", serde_json::to_string_pretty(&results)?),
    }
    io::stdout().flush()?;
    if !quick && !options.no_record {
        keep(root, &results)?;
    }
    note.map_or(Ok(()), Journal::end)?;
    Ok(exit_code(&results.definitions))
}

/// Lists the definitions, each with its estimated time in seconds.
fn list(root: &Path, definitions: &[Definition], options: &Options) -> Result<ExitCode> {
    let session = Session { plan: options.plan(), place: place(root)?, inputs: None, watches: false };
    let record = Record::load(&root.join(RECORD))?;
    for definition in definitions {
        let seconds = session.estimate(std::slice::from_ref(definition), &record).as_secs();
        println!("{seconds:4} s  {:27} {}", definition.name, definition.question);
    }
    println!(
        "{:4} min in total, plus the time to generate inputs",
        session.estimate(definitions, &record).as_secs() / 60
    );
    Ok(ExitCode::SUCCESS)
}

fn choose(definitions: Vec<Definition>, only: &[String]) -> Result<Vec<Definition>> {
    if let Some(name) = only.iter().find(|name| definitions.iter().all(|definition| definition.name != **name)) {
        let names: Vec<_> = definitions.iter().map(|definition| definition.name.as_str()).collect();
        bail!("there is no definition {name:?}: choose from {}", names.join(", "));
    }
    Ok(definitions.into_iter().filter(|one| only.is_empty() || only.contains(&one.name)).collect())
}

/// Builds the Millstream runners, so that no outdated program is measured.
fn build(root: &Path, optimised: bool, features: &str) -> Result<()> {
    let target = own_programs()?;
    let target = target.parent().context("the tool is not in a target directory")?;
    programs::build(root, target, optimised, features).context("building the measured programs failed")
}

/// The locations of the measured programs of Millstream and of competitors.
fn place(root: &Path) -> Result<Place> {
    let programs = own_programs()?;
    let competitors = competitors::directory(&programs)?;
    // Each definition has its own inputs.
    Ok(Place { root: root.to_owned(), programs: vec![programs, competitors], inputs: PathBuf::new() })
}

/// The directory of the programs that cargo builds with the profile of this program.
fn own_programs() -> Result<PathBuf> {
    Ok(env::current_exe()?.parent().context("the path of the tool has no directory")?.to_owned())
}

/// Builds all programs and returns their locations.
fn build_all(root: &Path) -> Result<Place> {
    build(root, !cfg!(debug_assertions), "full")?;
    let place = place(root)?;
    competitors::build(root, &place.programs[0])?;
    Ok(place)
}

/// Stores a measurement in a directory: everything as JSON, the tables as Markdown, the single runs as CSV.
fn keep(root: &Path, results: &Results) -> Result<()> {
    let directory = root.join(html::RUNS).join(&results.machine.time);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("results.json"), serde_json::to_string_pretty(results)? + "\n")?;
    fs::write(directory.join("table.md"), report::record(results))?;
    fs::write(directory.join("runs.csv"), report::csv(&results.definitions))?;
    eprintln!("stored in {}; `cargo run -- record` copies it into {RECORD}", directory.display());
    Ok(())
}

/// Reports runners that were wrong or missing.
fn exit_code(questions: &[Question]) -> ExitCode {
    let mut bad = false;
    for question in questions {
        let name = &question.name;
        for (runner, reason) in question.wrong() {
            eprintln!("WRONG: {name}: {}: {reason}", runner.name);
            bad = true;
        }
        for (runner, program) in question.skipped() {
            eprintln!("SKIPPED: {name}: {}: this machine has no {program}", runner.name);
            bad |= !runner.optional && env::var_os("CI").is_some_and(|ci| ci == "true");
        }
        for (runner, seconds) in question.over() {
            eprintln!("OVER: {name}: {} took more than {seconds} s and was killed", runner.name);
        }
    }
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
