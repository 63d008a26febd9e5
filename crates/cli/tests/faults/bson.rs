//! `millstream bson` with system calls that fail, under limits, and with damaged input.

use std::fs;
use std::process::{Command, Output, Stdio};

use millstream::bson::{append_document, append_element};

use crate::command::{Before, Outcome, Place, millstream};
use crate::strace::{self, ALL_CALLS, Injection, is_missing};

/// The input and the output format of a conversion.
const USES: [&[&str]; 3] = [
    &["bson", "convert", "IN", "--to", "csv", "-o", "OUT"],
    &["bson", "convert", "IN.gz", "--to", "csv", "-o", "OUT", "--count"],
    &["bson", "convert", "--to", "csv", "-o", "OUT", "--", "cat", "IN"],
];

/// Returns documents, and their CSV.
fn documents(count: i32) -> (Vec<u8>, Vec<u8>) {
    let (mut bytes, mut csv) = (Vec::new(), b"n,text,d.x\n".to_vec());
    for n in 0..count {
        append_document(&mut bytes, |out| {
            append_element(out, "n", &n)?;
            append_element(out, "text", &format!("text of {n}"))?;
            out.extend_from_slice(b"\x03d\0");
            append_document(out, |out| append_element(out, "x", &(f64::from(n) / 2.0)))
        })
        .unwrap();
        csv.extend_from_slice(format!("{n},text of {n},{:?}\n", f64::from(n) / 2.0).as_bytes());
    }
    (bytes, csv)
}

fn place() -> Place {
    let (bytes, csv) = documents(20_000);
    Place::with(&bytes, csv)
}

/// Every `step`th call of each use fails, or every call in deep runs.
fn sweep(calls: &str, fault: &str, step: usize) {
    if is_missing() {
        return;
    }
    let step = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 1 } else { step };
    let place = place();
    let mut happened = 0;
    for (i, words) in USES.into_iter().enumerate() {
        let all = strace::calls(&place, words, calls, fault);
        assert!(!all.is_empty(), "{words:?} makes no such call: {calls}");
        for (n, (name, nth)) in all.iter().enumerate().skip(i % step).step_by(step) {
            let injection = Injection { calls: name, path: None, fault, when: &nth.to_string() };
            let before = if (n / step).is_multiple_of(2) { Before::Absent } else { Before::Present };
            happened += usize::from(injection.run(&place, words, before).1);
        }
    }
    assert!(happened > 0, "no call met the fault");
}

#[test]
fn any_call_of_a_conversion_fails() {
    sweep(ALL_CALLS, "error=EIO", 31);
    sweep(ALL_CALLS, "error=ENOMEM", 37);
}

#[test]
fn a_conversion_meets_a_full_disk() {
    sweep("write,?writev,?copy_file_range,?fallocate,?ftruncate,fsync,?fdatasync", "error=ENOSPC", 3);
}

#[test]
fn a_conversion_is_ended_at_any_call() {
    sweep(ALL_CALLS, "signal=TERM", 41);
    sweep(ALL_CALLS, "signal=KILL", 43);
}

/// Runs `millstream` under limits of the shell.
fn under(place: &Place, limits: &str, words: &[&str], before: Before) -> Outcome {
    let line = format!("ulimit {limits} && exec \"$0\" \"$@\"");
    let mut argv = vec!["sh".to_string(), "-c".into(), line, millstream().to_str().unwrap().into()];
    argv.extend(place.arguments(words));
    place.reset(before);
    let outcome = place.run(&argv);
    place.check(&outcome, before, limits);
    outcome
}

#[test]
fn limits_leave_the_whole_output_or_none() {
    let place = place();
    let mut successes = 0;
    for words in USES {
        // Blocks have 512 bytes, and the output has several hundred of them.
        for blocks in [0, 1, 64] {
            let outcome = under(&place, &format!("-f {blocks}"), words, Before::Present);
            assert_eq!(outcome.status.code(), Some(1), "{blocks}: {outcome:?}");
            // Standard error is a file, too.
            assert!(blocks == 0 || outcome.stderr.contains("File too large"), "{outcome:?}");
        }
        for descriptors in [4, 6, 8, 10, 14, 64] {
            let outcome = under(&place, &format!("-n {descriptors}"), words, Before::Absent);
            assert!(outcome.status.success() || outcome.stderr.starts_with("millstream: "), "{outcome:?}");
            successes += u32::from(outcome.status.success());
        }
        // Without memory, Rust's runtime or the loader may abort the process.
        for mebibytes in [8, 40, 80, 150, 300, 2000] {
            let outcome = under(&place, &format!("-v {}", mebibytes << 10), words, Before::Absent);
            successes += u32::from(outcome.status.success());
        }
    }
    assert!(successes >= 6, "{successes}");
}

/// Runs a subcommand on a file.
fn run(place: &Place, words: &str) -> Output {
    let mut command = Command::new(millstream());
    command.arg("bson").args(place.arguments(&words.split(' ').collect::<Vec<_>>()));
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs all subcommands on damaged files: every run ends with a status, and all agree on which files are valid.
#[test]
fn damage_is_an_error_or_read_by_all() {
    let (bytes, _) = documents(20);
    let rounds = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 3000 } else { 60 };
    let place = Place::with(&bytes, Vec::new());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..rounds {
        let mut damaged = bytes.clone();
        for _ in 0..=next(2) {
            let at = next(damaged.len());
            match next(4) {
                0 => damaged[at] ^= 1 << next(8),
                1 => damaged[at] = next(256) as u8,
                2 => damaged.truncate(at.max(1)),
                _ => drop(damaged.splice(at..(at + next(9)).min(damaged.len()), vec![next(256) as u8; next(9)])),
            }
        }
        fs::write(place.input(), &damaged).unwrap();
        let ends =
            ["check IN", "cat IN", "count IN", "ls --all IN", "get IN", "convert IN --to parquet"].map(|words| {
                let output = run(&place, words);
                let status = output.status.code();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(matches!(status, Some(0 | 1)), "{words}: {status:?}, saying {said}, of {damaged:x?}");
                assert_eq!(status == Some(1), said.starts_with("millstream: "), "{words}: {said}");
                (status == Some(0), output.stdout)
            });
        let [check, cat, count, ls, get, _] = ends;
        if check.0 {
            assert!(cat.0 && count.0 && ls.0 && get.0, "{damaged:x?}");
            let documents = cat.1.iter().filter(|&&byte| byte == b'\n').count();
            let counted = String::from_utf8(count.1).unwrap();
            assert!(counted.starts_with(&format!("{documents} document")), "{documents}: {counted}");
            assert_eq!(get.1, cat.1.split_inclusive(|&byte| byte == b'\n').next().unwrap(), "{damaged:x?}");
            right += 1;
        } else {
            wrong += 1;
        }
    }
    assert!(right > 0 && wrong > 0, "{right} right, {wrong} wrong");
}
