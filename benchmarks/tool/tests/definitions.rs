//! All runners of the definitions give the correct answers at the quick size. Times are ignored, so definitions are
//! checked in parallel.
//!
//! With `MILLSTREAM_DEEP=1`, this checks all runners: competitors, other languages, programs that must be compiled.
//! Otherwise, it checks Millstream's runners in Rust.

use std::env;
use std::mem;
use std::path::Path;
use std::time::Duration;

use millstream_bench::definition::{Command, Definition, Runner, Scale};
use millstream_bench::evaluate::question;
use millstream_bench::measure::{Place, Plan, measure};
use millstream_bench::{competitors, sweep};
use rayon::prelude::*;

#[test]
fn every_runner_gives_the_right_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The tests of the whole workspace build the runners and `millstream` next to this test.
    let programs = Path::new(env!("CARGO_BIN_EXE_millstream-bench")).parent().unwrap();
    let own = programs.to_owned();
    let mut programs = vec![own.clone()];
    let mut definitions = Definition::load_all(&root.join("benchmarks/definitions")).unwrap();
    if env::var_os("MILLSTREAM_DEEP").is_some() {
        programs.push(competitors::build(&root, &own).unwrap());
    } else {
        definitions = definitions.into_iter().filter_map(|one| millstream_in_rust(one, &own)).collect();
    }
    assert!(definitions.len() > 20, "{} definitions", definitions.len());
    let bad: Vec<String> = definitions
        .into_par_iter()
        .flat_map_iter(|definition| {
            let inputs = tempfile::tempdir().unwrap();
            let place = Place { root: root.clone(), programs: programs.clone(), inputs: inputs.path().to_owned() };
            what_is_wrong(&sweep::ends(definition), &place)
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Returns the definition with only the Millstream runners that are a Rust program of this repository.
fn millstream_in_rust(mut definition: Definition, programs: &Path) -> Option<Definition> {
    let is_here = |runner: &Runner| match &runner.command {
        Command::Argv(argv) => programs.join(&argv[0]).is_file(),
        Command::Shell(_) => false,
    };
    let runners = mem::take(&mut definition.runners);
    definition.runners = runners.into_iter().filter(|one| definition.is_millstream(one) && is_here(one)).collect();
    (!definition.runners.is_empty()).then_some(definition)
}

fn what_is_wrong(definition: &Definition, place: &Place) -> Vec<String> {
    let minute = Duration::from_secs(60);
    let plan = Plan { scale: Scale::Quick, rounds: 1, warm_up: false, budget: minute, limit: minute };
    let outcomes = measure(definition, &plan, place, &|_| ()).unwrap();
    let question = question(definition, plan.scale, outcomes);
    let name = &question.name;
    let wrong = question.wrong().map(|(runner, reason)| format!("{name}: {}: {reason}", runner.name));
    let over = question.over().map(|(runner, seconds)| format!("{name}: {}: over {seconds} s", runner.name));
    let mut bad: Vec<String> = wrong.chain(over).collect();
    for (runner, program) in question.skipped() {
        let text = format!("{name}: {}: this machine has no {program}", runner.name);
        eprintln!("SKIPPED: {text}");
        // A missing program is a failure there, so that no runner remains unchecked unnoticed.
        if !runner.optional && env::var_os("CI").is_some_and(|ci| ci == "true") {
            bad.push(text);
        }
    }
    bad
}
