//! `millstream-bench`: measures what `bench/definitions` asks, prints the table, and keeps a record.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use millstream_bench::definition::{Definition, Presence, Scale};
use millstream_bench::machine::Machine;
use millstream_bench::measure::{Place, measure};
use millstream_bench::report::{self, Measured, Skipped};
use millstream_bench::{html, rivals, sweep};

/// Measure Millstream against its rivals.
///
/// Inputs and outputs are kept in memory (/dev/shm where there is one; up to 1.6 GB at a time). The table goes to
/// standard output, and the runners of each definition in order; a measurement at full size is also written to bench/record/. Exit status 1: a runner
/// gave a wrong answer, or with CI=true a rival is missing.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    work: Option<Work>,
    /// Measure this definition only (may be given several times).
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Small inputs, one run: checks the answers, measures nothing.
    #[arg(long)]
    quick: bool,
    /// Measured rounds, where the definition does not say otherwise.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Keep the inputs in this directory and find them there again.
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Write no record.
    #[arg(long)]
    no_record: bool,
    /// List the definitions and end.
    #[arg(long)]
    list: bool,
}

#[derive(Subcommand)]
enum Work {
    /// Measure and print one kind of table only, in Markdown; no record.
    Table {
        /// Which.
        kind: Kind,
        /// Measure this definition only (may be given several times).
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Measured rounds.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        runs: u64,
        /// Take this text of lines, instead of one that is made.
        #[arg(long, value_name = "FILE")]
        input: Option<PathBuf>,
    },
    /// Write one HTML file out of a record: who wins, tables, charts.
    Report {
        /// The directory of the record; otherwise the newest.
        #[arg(value_name = "RECORD_DIR")]
        record: Option<PathBuf>,
        /// The file to write; otherwise `report.html` in the record.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// What one more stage of a pipeline costs: time, bytes and lines a second, and their change for each stage.
    Stages,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let definitions = Definition::load_all(&root.join("bench/definitions"))?;
    match &options.work {
        Some(Work::Table { kind: Kind::Stages, only, runs, input }) => {
            let mut definitions: Vec<_> = definitions.into_iter().filter(sweep::is_in).collect();
            if let Some(path) = input {
                sweep::take_text(&mut definitions, path)?;
            }
            table(&root, choose(definitions, only)?, *runs as usize)
        }
        Some(Work::Report { record, output }) => {
            println!("{}", html::write(&root, record.as_deref(), output.as_deref())?.display());
            Ok(ExitCode::SUCCESS)
        }
        None => record(&root, choose(definitions, &options.only)?, &options),
    }
}

/// Measures sweeps and prints their tables.
fn table(root: &Path, mut definitions: Vec<Definition>, runs: usize) -> Result<ExitCode> {
    measure_optimised()?;
    for definition in &mut definitions {
        definition.runs = Some(runs);
    }
    let measured = measure_all(definitions, Scale::Full, runs, None, build_place(root)?)?;
    measured.iter().filter_map(sweep::table).for_each(|table| print!("{table}"));
    Ok(verdict(&measured))
}

fn measure_optimised() -> Result<()> {
    ensure!(!cfg!(debug_assertions), "measure with `cargo run --release`, or only check with --quick");
    Ok(())
}

/// Measures definitions, prints what came of them and keeps it.
fn record(root: &Path, mut definitions: Vec<Definition>, options: &Options) -> Result<ExitCode> {
    if options.list {
        for definition in &definitions {
            println!("{:27} {}", definition.name, definition.question);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let scale = if options.quick { Scale::Quick } else { Scale::Full };
    if options.quick {
        definitions = definitions.into_iter().map(sweep::ends).collect();
    } else {
        measure_optimised()?;
    }
    let place = build_place(root)?;
    let machine = Machine::look(root, &definitions, &place.search_path());
    if machine.is_busy() && !options.quick {
        eprintln!("WARNING: others are at work on this machine, do not trust the ratios\n{machine}");
    }
    let rounds = if options.quick { 1 } else { options.runs as usize };
    let measured = measure_all(definitions, scale, rounds, options.inputs.as_deref(), place)?;

    match scale {
        Scale::Quick => print!("{}", report::checks(&measured)),
        Scale::Full => print!("{}{}", report::table(&measured), report::rankings(&measured)),
    }
    if scale == Scale::Full && !options.no_record {
        keep(root, &measured, &machine, rounds)?;
    }
    Ok(verdict(&measured))
}

/// Measures one definition after another, with their inputs in this directory or in one of each's own.
fn measure_all(
    definitions: Vec<Definition>,
    scale: Scale,
    rounds: usize,
    inputs: Option<&Path>,
    mut place: Place,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for definition in definitions {
        eprintln!("{}: {}", definition.name, definition.question);
        let scratch;
        place.inputs = match inputs {
            Some(directory) => directory.to_owned(),
            None => {
                // Of its own, so that the memory is free again before the next one.
                scratch = tempfile::Builder::new().prefix("millstream-bench-").tempdir_in(memory())?;
                scratch.path().to_owned()
            }
        };
        fs::create_dir_all(&place.inputs)?;
        let runs = definition.runs.filter(|_| scale == Scale::Full).unwrap_or(rounds);
        let outcomes = measure(&definition, scale, runs, &place).with_context(|| definition.name.clone())?;
        measured.push(Measured { definition, outcomes });
    }
    Ok(measured)
}

fn choose(definitions: Vec<Definition>, only: &[String]) -> Result<Vec<Definition>> {
    if let Some(name) = only.iter().find(|name| definitions.iter().all(|definition| definition.name != **name)) {
        let names: Vec<_> = definitions.iter().map(|definition| definition.name.as_str()).collect();
        bail!("there is no definition {name:?}; there are {}", names.join(", "));
    }
    Ok(definitions.into_iter().filter(|one| only.is_empty() || only.contains(&one.name)).collect())
}

/// Builds what is measured, so that nothing old is; where it is.
fn build_place(root: &Path) -> Result<Place> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "-p", "millstream-cli", "-p", "millstream-bench", "--bins"]).current_dir(root);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("cargo")?.success(), "the programs to measure cannot be built");
    let programs = env::current_exe()?.parent().context("the tool is in no directory")?.to_owned();
    let rivals = rivals::build(root, &programs)?;
    Ok(Place {
        root: root.to_owned(),
        programs: vec![programs, rivals],
        inputs: PathBuf::new(), // of each definition
        limit: Duration::from_secs(300),
    })
}

/// Where files are memory, if this machine has such a place.
fn memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { env::temp_dir() }
}

fn keep(root: &Path, measured: &[Measured], machine: &Machine, rounds: usize) -> Result<()> {
    let directory = root.join("bench/record").join(env::consts::ARCH);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(format!("{}.md", machine.time)), report::record(measured, machine, rounds))?;
    fs::write(directory.join(format!("{}.csv", machine.time)), report::csv(measured))?;
    eprintln!("recorded in {}", directory.join(&machine.time).display());
    Ok(())
}

/// Says loudly who was wrong or missing.
fn verdict(measured: &[Measured]) -> ExitCode {
    let mut bad = false;
    for one in measured {
        let name = &one.definition.name;
        for (runner, reason) in one.wrong() {
            eprintln!("WRONG: {name}: {runner}: {reason}");
            bad = true;
        }
        for Skipped { runner, program, presence } in one.skipped() {
            eprintln!("SKIPPED: {name}: {runner}: this machine has no {program}");
            bad |= presence == Presence::Required && env::var_os("CI").is_some_and(|ci| ci == "true");
        }
    }
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
