//! Faults at one call after another.

use crate::command::{Before, Place};
use crate::strace::{self, Injection, is_missing};

/// Ways to use the command; `OUT` is whole at the end of each.
const USES: [&[&str]; 6] = [
    &["run", "IN", "-o", "OUT"],
    &["run", "-o", "OUT", "--", "cat", "IN"],
    &["run", "--read-ahead", "on", "-o", "OUT", "--", "cat", "IN"],
    &["run", "--read-ahead", "on", "--flush", "when-full", "--hash", "blake3", "IN", "-o", "OUT"],
    &["run", "IN.gz", "-o", "OUT"],
    &["run", "--timeout", "50s", "-o", "OUT", "--", "sh", "-c", "cat IN && sleep 0.01"],
];

/// Several buffers long, so that there is a middle.
const LEN: usize = 3_000_001;

/// Every call, but for those whose failure only means that `strace` has not done what cannot fail: a descriptor that
/// stays open after `close`, a lock that is not taken, an exit that is none, a socket to oneself that breaks.
const ALL_CALLS: &str =
    "!exit,exit_group,rt_sigreturn,close,futex,munmap,rt_sigprocmask,sendto,recvfrom,?restart_syscall";

/// Every `step`th call, or every single one if asked for.
fn steps(step: usize) -> usize {
    if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1 } else { step }
}

/// One call after another meets the fault: every one that is made when there is none.
fn sweep(calls: &str, fault: &str, step: usize) {
    if is_missing() {
        return;
    }
    let place = Place::new(LEN);
    let mut happened = 0;
    for (i, words) in USES.into_iter().enumerate() {
        let all = strace::calls(&place, words, calls, fault);
        assert!(!all.is_empty(), "{words:?} makes no such call: {calls}");
        // Other starting points for other uses: together they see more calls.
        for (n, (name, nth)) in all.iter().enumerate().skip(i % steps(step)).step_by(steps(step)) {
            let injection = Injection { calls: name, path: None, fault, when: &nth.to_string() };
            let before = if (n / steps(step)).is_multiple_of(2) { Before::Absent } else { Before::Present };
            // Threads do not run in the same order each time: now and then there is no such call.
            happened += usize::from(injection.run(&place, words, before).1);
        }
    }
    assert!(happened > 0, "no call met the fault");
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

/// Calls that are interrupted, or would block, are made again: nothing else may come of it.
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
                // A command's own reading is not ours to answer for.
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
            // Waiting, for bytes and for commands: here only ours can be interrupted.
            let waiting = Injection { calls: "poll,?ppoll,?wait4,?waitid", path: None, fault: faults[0], when };
            let (outcome, _) = waiting.run(&place, words, Before::Absent);
            assert!(outcome.status.success(), "{waiting:?} {words:?}: {outcome:?}");
        }
    }
}

/// Without faults the same commands succeed: else the sweeps would show nothing.
#[test]
fn without_faults_all_is_well() {
    let place = Place::new(LEN);
    for words in USES {
        for before in [Before::Absent, Before::Present] {
            let mut argv = place.arguments(words);
            argv.insert(0, crate::command::millstream().to_str().unwrap().into());
            place.reset(before);
            let outcome = place.run(&argv);
            assert!(outcome.status.success(), "{words:?}: {outcome:?}");
            place.check(&outcome, before, "no fault");
        }
    }
}
