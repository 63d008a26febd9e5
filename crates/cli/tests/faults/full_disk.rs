//! No space for the output: one clear message, status 1, and no partial files.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::command::{Before, Outcome, Place, millstream};

const LEN: usize = 3_000_001;

fn assert_said(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert!(outcome.stderr.lines().skip(1).all(|line| line.starts_with("hint: ")), "{outcome:?}");
    assert!(outcome.stderr.contains(what), "{outcome:?}");
}

/// Runs a shell script in which `$0` is the command, `$1` the input and `$2` the output.
fn sh(place: &Place, script: &str) -> Outcome {
    let words = place.arguments(&["IN", "OUT"]);
    let argv = ["sh", "-c", script, millstream().to_str().unwrap()].map(String::from);
    place.run(&[&argv[..], &words].concat())
}

#[test]
fn a_device_that_is_always_full() {
    let place = Place::new(LEN);
    place.reset(Before::Absent);
    for script in [
        r#""$0" run "$1" -o /dev/full"#,
        r#""$0" run -o /dev/full -- cat "$1""#,
        r#""$0" run "$1" >/dev/full"#,
        r#""$0" run --count "$1" >/dev/full"#,
    ] {
        let outcome = sh(&place, script);
        assert_said(&outcome, "No space left on device");
        assert!(outcome.stderr.ends_with("hint: free space, or write elsewhere\n"), "{outcome:?}");
    }
    // A copy is full, but not the main output. The run has failed, so the main output does not exist either.
    let outcome = sh(&place, r#""$0" run "$1" --tee /dev/full -o "$2""#);
    assert_said(&outcome, "/dev/full");
    place.check(&outcome, Before::Absent, "a full copy");
}

/// The limit on a file's size interrupts a write in the middle, as a full disk does.
#[test]
fn a_file_that_may_not_grow() {
    let place = Place::new(LEN);
    for before in [Before::Absent, Before::Present] {
        for source in [r#""$1""#, r#"-- cat "$1""#] {
            place.reset(before);
            // The limit is in blocks of 512 bytes. The signal that comes with the error would kill the command before
            // it can report the error.
            let script = format!(r#"trap "" XFSZ; ulimit -f 1000; exec "$0" run -o "$2" {source}"#);
            let outcome = sh(&place, &script);
            assert_said(&outcome, "output");
            place.check(&outcome, before, source);
        }
    }
}

#[test]
fn a_small_file_system() {
    let place = Place::new(LEN);
    place.reset(Before::Absent);
    let directory = place.output_directory();
    // This needs a user namespace; without one, only the tests above run.
    let mount = r#"mount -t tmpfs -o size=1m tmpfs "$(dirname "$2")" || exit 77"#;
    let script = format!(r#"{mount}; "$0" run "$1" -o "$2"; code=$?; ls "$(dirname "$2")"; exit $code"#);
    let words = place.arguments(&["IN", "OUT"]);
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(millstream())
        .args(words)
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if !matches!(output.status.code(), Some(77)) && !refused(&output.stderr) => output,
        _ => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: a small file system cannot be mounted here");
            return;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_said(&Outcome { status: output.status, stdout: Vec::new(), stderr }, "No space left on device");
    assert_eq!(output.stdout, b"", "left on the small file system, seen from inside");
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

/// Returns whether `unshare` itself failed.
fn refused(stderr: &[u8]) -> bool {
    stderr.starts_with(b"unshare:")
}
