//! Every definition is sound: all of its runners give the right answers at the quick size. No time is looked at, so
//! definitions need not wait for each other.

use std::env;
use std::path::Path;
use std::time::Duration;

use millstream_bench::definition::{Definition, Scale};
use millstream_bench::judge::question;
use millstream_bench::measure::{Place, Plan, measure};
use millstream_bench::{rivals, sweep};
use rayon::prelude::*;

#[test]
fn every_runner_gives_the_right_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The runners and `millstream` are beside it when the tests of the whole workspace run.
    let programs = Path::new(env!("CARGO_BIN_EXE_millstream-bench")).parent().unwrap();
    let programs = vec![programs.to_owned(), rivals::build(&root, programs).unwrap()];
    let definitions = Definition::load_all(&root.join("bench/definitions")).unwrap();
    assert!(!definitions.is_empty());
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
        // There a lack is a failure, so that nothing stays unchecked unnoticed.
        if !runner.optional && env::var_os("CI").is_some_and(|ci| ci == "true") {
            bad.push(text);
        }
    }
    bad
}
