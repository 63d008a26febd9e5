//! The operating system has no more threads: fewer threads are used, or one line reports the error.

use crate::command::{Before, Place};
use crate::strace::{Injection, is_missing};

/// All commands that start threads. All but the last write the input's bytes.
const USES: [&[&str]; 8] = [
    &["run", "IN.bgz", "-o", "OUT"],
    &["run", "IN", "-o", "OUT", "--tee", "OUT.bgz", "--hash", "sha256"],
    &["run", "IN", "-o", "OUT", "--progress", "always"],
    &["run", "--read-ahead", "on", "-o", "OUT", "--", "cat", "IN"],
    &["run", "IN", "-o", "OUT", "--each", "cat", "-j", "4"],
    &["run", "IN", "-o", "OUT", "--each", "cat", "-j", "4", "--unordered"],
    &["run", "IN", "-o", "OUT", "--stage", "noop", "--flush-delay", "10ms"],
    &["bson", "count", "IN.bson", "--progress", "always"],
];

#[test]
fn threads_are_scarce() {
    if is_missing() {
        return;
    }
    let place = Place::new(600_001);
    let bgz = place.arguments(&["run", "IN", "-o", "IN.bgz"]);
    let bgz = [vec![crate::command::millstream().to_str().unwrap().into()], bgz].concat();
    assert!(place.run(&bgz).status.success());
    std::fs::write(place.input().with_extension("bson"), b"\x05\0\0\0\0").unwrap();
    let mut happened = 0;
    for (i, words) in USES.into_iter().enumerate() {
        for first in 1..4 {
            let fault =
                Injection { calls: "clone,clone3", path: None, fault: "error=EAGAIN", when: &format!("{first}+") };
            let (outcome, met) = fault.run_unchecked(&place, words, Before::Absent);
            happened += usize::from(met);
            let code = outcome.status.code();
            assert!(matches!(code, Some(0 | 1)), "use {i}, from thread {first}: {outcome:?}");
            assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
            let out = std::fs::read(place.output_directory().join("output")).ok();
            match code {
                Some(0) if words[0] == "run" => {
                    assert!(out == std::fs::read(place.input()).ok(), "use {i}, from thread {first}: not whole");
                }
                Some(0) => {}
                _ => {
                    assert!(out.is_none(), "use {i}, from thread {first}: a part of the output");
                    assert!(outcome.stderr.contains("millstream: "), "{outcome:?}");
                }
            }
        }
    }
    assert!(happened > USES.len(), "no thread was refused");
}
