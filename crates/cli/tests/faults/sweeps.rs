//! Faults in one system call after another.

use std::io::Write;

use crate::command::{Before, Place, millstream};
use crate::strace::{self, ALL_CALLS, Injection, is_missing};

/// Ways to use the command; `OUT` is complete at the end of each.
const USES: [&[&str]; 6] = [
    &["run", "IN", "-o", "OUT"],
    &["run", "-o", "OUT", "--", "cat", "IN"],
    &["run", "--read-ahead", "on", "-o", "OUT", "--", "cat", "IN"],
    &["run", "--read-ahead", "on", "--flush-policy", "when-full", "--hash", "blake3", "IN", "-o", "OUT"],
    &["run", "IN.gz", "-o", "OUT"],
    &["run", "--stall-timeout", "50s", "-o", "OUT", "--", "sh", "-c", "cat IN && sleep 0.01"],
];

/// Pipelines of other kinds: copies of a command, stages, and each subcommand of `bson`.
const MORE_USES: &[&[&str]] = &[
    &["run", "IN", "-j", "2", "--block", "100K", "--each", "cat", "-o", "OUT"],
    &["run", "IN", "-j", "1", "--block", "100K", "--round-robin", "--each", "cat", "-o", "OUT"],
    &["run", "IN", "--stage", "noop", "--progress", "always"],
    #[cfg(feature = "parquet")]
    &["bson", "convert", "IN.bson", "--to", "ndjson", "-o", "OUT"],
    #[cfg(feature = "parquet")]
    &["bson", "convert", "IN.bson", "--to", "parquet", "-o", "OUT"],
    &["bson", "cat", "IN.bson"],
    &["bson", "ls", "IN.bson"],
    &["bson", "get", "IN.bson", "[50].s"],
    &["bson", "check", "IN.bson"],
    &["bson", "count", "IN.bson"],
];

/// Input shorter than several buffers.
const SHORT: usize = 400_001;

/// Input of several buffers, so that there is a middle.
const LEN: usize = 3_000_001;

/// Every `step`th call, or every call in deep runs.
fn steps(step: usize) -> usize {
    if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1 } else { step }
}

/// Makes one call after another fail, for all calls of a run without faults.
fn sweep(calls: &str, fault: &str, step: usize) {
    sweep_uses(&USES, LEN, calls, fault, step);
    // The uses share most of their calls with each other.
    sweep_uses(MORE_USES, SHORT, calls, fault, 10 * step);
}

fn sweep_uses(uses: &[&[&str]], len: usize, calls: &str, fault: &str, step: usize) {
    if is_missing() {
        return;
    }
    let mut place = Place::new(len);
    let mut happened = 0;
    for (i, words) in uses.iter().enumerate() {
        place.expect(words);
        let all = strace::calls(&place, words, calls, fault);
        assert!(!all.is_empty(), "{words:?} makes no such call: {calls}");
        // Each use starts at a different call, so that the uses together cover more calls.
        for (n, (name, nth)) in all.iter().enumerate().skip((7 * i) % steps(step)).step_by(steps(step)) {
            let injection = Injection { calls: name, path: None, fault, when: &nth.to_string() };
            let before = if (n / steps(step)).is_multiple_of(2) { Before::Absent } else { Before::Present };
            // Threads do not run in the same order each time, so occasionally this call is not made.
            happened += usize::from(injection.run(&place, words, before).1);
        }
    }
    assert!(happened > 0, "no call met the fault");
    let _ = writeln!(std::io::stderr(), "{fault}: {happened} calls met it");
}

#[test]
fn any_call_fails_as_broken_hardware_does() {
    sweep(ALL_CALLS, "error=EIO", 23);
}

#[test]
fn any_call_fails_for_lack_of_memory() {
    sweep(ALL_CALLS, "error=ENOMEM", 29);
}

#[test]
fn feeding_a_copy_fails_for_lack_of_memory() {
    // This exceeds the capacity of a pipe, so that a thread writes the remaining bytes. The command itself makes one
    // write.
    let copy = "dd bs=4M iflag=fullblock status=none";
    let uses: [&[&str]; 1] = [&["run", "IN", "--each", copy, "-j1", "--block", "2M", "-o", "OUT"]];
    sweep_uses(&uses, 1_500_000, "write,?ppoll,?poll", "error=ENOMEM", 2);
}

#[test]
fn writing_fails_on_a_full_disk() {
    sweep("write,?writev,?copy_file_range,?sendfile,?splice,?fallocate,?ftruncate,fsync,?fdatasync", "error=ENOSPC", 1);
}

#[test]
fn asked_to_end_at_any_call() {
    sweep(ALL_CALLS, "signal=TERM", 31);
}

#[test]
fn interrupted_by_the_keyboard_at_any_call() {
    sweep(ALL_CALLS, "signal=INT", 37);
}

#[test]
fn killed_at_any_call() {
    sweep(ALL_CALLS, "signal=KILL", 41);
}

/// Calls that are interrupted, or would block, are repeated, without any other effect.
#[test]
fn storms_are_weathered() {
    if is_missing() {
        return;
    }
    let place = Place::new(LEN);
    let input = place.input();
    let gzipped = input.with_extension("gz");
    let faults = ["error=EINTR", "error=EAGAIN"];
    let whens = ["1", "1+2", "2+3"];
    for words in USES {
        for when in whens {
            for fault in faults {
                // The command's own reading is not tested here.
                let read = words.iter().all(|word| !word.contains("cat"));
                let path = if words.contains(&"IN.gz") { &gzipped } else { &input };
                let reading = Injection { calls: "read,?pread64,?readv", path: path.to_str(), fault, when };
                let writing = Injection { calls: "write,?writev", path: None, fault, when };
                for injection in read.then_some(reading).into_iter().chain(read.then_some(writing)) {
                    let (outcome, happened) = injection.run(&place, words, Before::Present);
                    assert!(outcome.status.success(), "{injection:?} {words:?}: {outcome:?}");
                    assert!(happened, "{injection:?} {words:?}: there was no such call");
                }
            }
            // These are waits for bytes and for commands; only those of `millstream` itself can be interrupted here.
            let waiting = Injection { calls: "poll,?ppoll,?wait4,?waitid", path: None, fault: faults[0], when };
            let (outcome, _) = waiting.run(&place, words, Before::Absent);
            assert!(outcome.status.success(), "{waiting:?} {words:?}: {outcome:?}");
        }
    }
}

/// Without faults these commands succeed; otherwise the sweeps would test nothing.
#[test]
fn without_faults_all_is_well() {
    let mut place = Place::new(LEN);
    for words in USES.into_iter().chain(MORE_USES.iter().copied()) {
        place.expect(words);
        for before in [Before::Absent, Before::Present] {
            let mut argv = place.arguments(words);
            argv.insert(0, millstream().to_str().unwrap().into());
            place.reset(before);
            let outcome = place.run(&argv);
            assert!(outcome.status.success(), "{words:?}: {outcome:?}");
            place.check(&outcome, before, "no fault");
        }
    }
}

/// With few descriptors, or with a limit on the size of files, an error is reported, and no incomplete file remains.
#[test]
fn limits_of_the_system() {
    let mut place = Place::new(LEN);
    let (mut runs, mut complete) = (0, 0);
    for words in USES.into_iter().chain(MORE_USES.iter().copied()) {
        place.expect(words);
        // The limit is in blocks of 512 bytes.
        let sizes = [0, 1, 100, 5000].map(|blocks| format!("ulimit -f {blocks}"));
        let descriptors = (3..=24).step_by(steps(4)).map(|count| format!("ulimit -n {count}"));
        for (n, limit) in sizes.into_iter().chain(descriptors).enumerate() {
            // Its messages are written to a file, too, which has the same limit.
            let script = format!(r#"{limit}; exec "$0" "$@""#);
            let mut argv: Vec<String> =
                ["sh", "-c", &script, millstream().to_str().unwrap()].map(String::from).to_vec();
            argv.extend(place.arguments(words));
            let before = if n.is_multiple_of(2) { Before::Absent } else { Before::Present };
            place.reset(before);
            let outcome = place.run(&argv);
            place.check(&outcome, before, &format!("{limit} {words:?}"));
            (runs, complete) = (runs + 1, complete + usize::from(outcome.status.success()));
        }
    }
    let _ = writeln!(std::io::stderr(), "limits: {runs} runs, {complete} of them complete");
}
