//! Behaviour that all programs in this package share. Their answers are checked by the tool's test of all definitions,
//! which runs them. Having a test here also makes `cargo test` build the programs.

use std::process::Command;

const PROGRAMS: [&str; 6] = [
    env!("CARGO_BIN_EXE_bson"),
    env!("CARGO_BIN_EXE_larger"),
    env!("CARGO_BIN_EXE_pipes"),
    env!("CARGO_BIN_EXE_print"),
    env!("CARGO_BIN_EXE_runner"),
    env!("CARGO_BIN_EXE_tables"),
];

#[test]
fn what_is_not_understood_has_no_answer() {
    for program in PROGRAMS {
        let output = Command::new(program).arg("--no-such-option").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{program}");
        assert!(output.stdout.is_empty(), "{program}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("--no-such-option"), "{program}: {said}");
    }
}
