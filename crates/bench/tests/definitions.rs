//! Every definition is sound: all of its runners give the right answers at the quick size. No time is looked at.

use std::env;
use std::path::Path;
use std::time::Duration;

use millstream_bench::definition::{Definition, Presence, Scale};
use millstream_bench::measure::{Place, measure};
use millstream_bench::report::{Measured, Skipped};
use millstream_bench::{rivals, sweep};

#[test]
fn every_runner_gives_the_right_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // `millstream` is beside it when the tests of the whole workspace run.
    let programs = Path::new(env!("CARGO_BIN_EXE_runner")).parent().unwrap();
    let inputs = tempfile::tempdir().unwrap();
    let place = Place {
        root: root.clone(),
        programs: vec![programs.to_owned(), rivals::build(&root, programs).unwrap()],
        inputs: inputs.path().to_owned(),
        limit: Duration::from_secs(60),
    };

    let definitions = Definition::load_all(&root.join("bench/definitions")).unwrap();
    assert!(!definitions.is_empty());
    let mut bad = Vec::new();
    for definition in definitions.into_iter().map(sweep::ends) {
        let outcomes = measure(&definition, Scale::Quick, 1, &place).unwrap();
        let measured = Measured { definition, outcomes };
        let name = &measured.definition.name;
        bad.extend(measured.wrong().map(|(runner, reason)| format!("{name}: {runner}: {reason}")));
        for Skipped { runner, program, presence } in measured.skipped() {
            let text = format!("{name}: {runner}: this machine has no {program}");
            eprintln!("SKIPPED: {text}");
            // There a lack is a failure, so that nothing stays unchecked unnoticed.
            if presence == Presence::Required && env::var_os("CI").is_some_and(|ci| ci == "true") {
                bad.push(text);
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
