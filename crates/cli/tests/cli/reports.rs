//! Checksums, statistics, and the rate limit.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::Place;

fn stats(place: &Place) -> Value {
    serde_json::from_slice(&place.read("stats")).unwrap()
}

#[test]
fn the_checksum_is_that_of_sha256sum() {
    let place = Place::new().file("a", "one\n".repeat(100_000)).file("b", "two");
    place.run("a b -o out").succeeds();
    let expected = Command::new("sha256sum").arg("out").current_dir(place.path("")).output().unwrap().stdout;
    place.run("a b -o out --hash sha256").exits(0).says(&String::from_utf8(expected).unwrap());
}

#[test]
fn the_checksum_of_a_compressed_output_is_that_of_the_file() {
    let place = Place::new().file("a", "one\n".repeat(100_000));
    for flush in ["", "--flush-policy line", "--flush-delay 1ms"] {
        let seen = place.run(flush).and("a -o a.gz --hash sha256").exits(0);
        std::fs::write(place.path("sums"), seen.stderr).unwrap();
        let mut check = Command::new("sha256sum");
        assert!(check.args(["--check", "--status", "sums"]).current_dir(place.path("")).status().unwrap().success());
        assert_eq!(place.run("--count a.gz").succeeds().stdout, b"100000 records, 400000 bytes\n");
    }
}

#[test]
fn checksums_of_any_name_are_read_by_sha256sum() {
    use std::os::unix::ffi::OsStrExt;
    let names: [&[u8]; 6] = [b"a b", b"tab\t \x1b[2J", b"line\nfeed", b"car\rriage", br"back\slash \n", b"\xff\xe9"];
    let place = Place::new();
    let mut sums = Vec::new();
    for name in names {
        let said = std::fs::File::create(place.path("said")).unwrap();
        let run = place.run("--hash sha256 -o").word(std::ffi::OsStr::from_bytes(name)).stderr_to(said);
        run.shell("echo one").exits(0);
        sums.extend(place.read("said"));
    }
    let (place, lines) = (place.file("sums", &sums), sums.iter().filter(|&&byte| byte == b'\n').count());
    assert_eq!(lines, names.len());
    let mut check = Command::new("sha256sum");
    let checked = check.args(["--check", "--strict", "sums"]).current_dir(place.path("")).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let place = Place::new().file("a", "one\n").file("b", b"\x05\0\0\0\0");
    for words in [
        "run a --hash sha256 -o out",
        "run a -o out --stats /dev/stderr",
        #[cfg(feature = "parquet")]
        "bson convert b --to ndjson --count",
    ] {
        place.words(words).stderr_to(full()).stdout_to(std::process::Stdio::null()).exits(1);
    }
    for words in ["run a --count", "run a -o out --stats -", "bson count b", "bson check b", "bson ls b"] {
        place.words(words).stdout_to(full()).fails().complains_of(&["No space left on device"]);
    }
}

#[test]
fn a_checksum_delays_no_bytes_and_leaves_no_partial_file() {
    let place = Place::new();
    let mut live = place.run("--hash sha256").shell("printf one; until [ -e go ]; do sleep 0.01; done").start();
    live.prints("one");
    std::fs::write(place.path("go"), "").unwrap();
    assert!(live.ends().status.success());
    place.run("--hash sha256 -o out").shell("echo one; exit 3").fails();
    assert_eq!(place.names(), ["go"]);
    place.run("--hash sha256 -o /dev/full").stdin("one").fails().complains_of(&["/dev/full", "No space left"]);
}

#[test]
fn checksums_of_every_kind() {
    for (algorithm, value) in [
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
        ("crc32c", "364b3fb7"),
    ] {
        let seen = Place::new().run("--hash").and(algorithm).stdin("abc").exits(0);
        seen.prints("abc").says(&format!("{value}  -\n"));
    }
}

#[test]
fn a_checksum_is_only_printed_for_a_complete_run() {
    let seen = Place::new().run("--hash crc32c").shell("echo one; exit 3").fails();
    assert_eq!(seen.stderr.lines().count(), 1, "{:?}", seen.stderr);
}

#[test]
fn statistics_of_a_complete_run() {
    let place = Place::new().file("a", "one\ntwo\nthree");
    place.run("a --stats stats --hash crc32c -o out").shell("seq 1 1000").exits(0);
    let stats = stats(&place);
    assert_eq!(stats["complete"], true);
    assert_eq!(stats["error"], Value::Null);
    assert_eq!((&stats["records"], &stats["bytes"]), (&1002.into(), &3906.into()));
    assert_eq!(stats["longest_record"], 7);
    assert_eq!(stats["hash"]["algorithm"], "crc32c");
    assert_eq!(stats["hash"]["value"].as_str().unwrap().len(), 8);
    let seconds = stats["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0);
    assert!((stats["bytes_per_second"].as_f64().unwrap() - 3906.0 / seconds).abs() < 1.0);
    assert!((stats["records_per_second"].as_f64().unwrap() - 1002.0 / seconds).abs() < 1.0);
    for waited in ["waited_on_source_seconds", "waited_on_sink_seconds"] {
        assert!((0.0..=seconds).contains(&stats[waited].as_f64().unwrap()), "{waited}");
    }
    let [file, command] = &stats["sources"].as_array().unwrap()[..] else { panic!("{stats}") };
    assert_eq!((&file["name"], &file["status"]), (&"a".into(), &"succeeded".into()));
    assert_eq!((&file["records"], &file["bytes"], &file["source_bytes"]), (&3.into(), &13.into(), &13.into()));
    assert_eq!((&file["exit_status"], &file["decoded"]), (&Value::Null, &Value::Null));
    assert_eq!((&command["name"], &command["status"]), (&"sh -c 'seq 1 1000'".into(), &"succeeded".into()));
    assert_eq!((&command["exit_status"], &command["signal"]), (&0.into(), &Value::Null));
}

#[test]
fn statistics_on_standard_output() {
    let place = Place::new().file("a", "one\n");
    for (words, names) in
        [("a --stats - --count", &["a"][..]), ("a --stats - -o out --tee copy", &["a", "copy", "out"])]
    {
        let stats: Value = serde_json::from_slice(&place.run(words).succeeds().stdout).unwrap();
        assert_eq!((&stats["complete"], &stats["records"]), (&true.into(), &1.into()), "{words}");
        assert_eq!(place.names(), names);
    }
    let seen = place.run("--stats - -o out").shell("exit 3").fails();
    let stats: Value = serde_json::from_slice(&seen.stdout).unwrap();
    assert_eq!(stats["error"]["kind"], "command_failed");
    for words in ["a --stats -", "a --stats - -o -", "a --stats - -o out --tee -"] {
        let expected = ["standard output: open failed: expected a file that is not also another output\n"];
        place.run(words).fails().prints("").complains_of(&expected);
    }
}

#[test]
fn statistics_contain_the_times() {
    let place = Place::new();
    place.run("--stats stats").shell("sleep 0.3; echo one").succeeds();
    assert!(stats(&place)["waited_on_source_seconds"].as_f64().unwrap() > 0.25);
}

#[test]
fn statistics_of_a_failed_run() {
    let place = Place::new();
    place.run("--stats stats -o out --hash crc32c").shell("echo one; echo oops >&2; exit 3").fails();
    let stats = stats(&place);
    assert_eq!(stats["complete"], false);
    assert_eq!((&stats["error"]["kind"], &stats["error"]["code"]), (&"command_failed".into(), &4.into()));
    let message = stats["error"]["message"].as_str().unwrap();
    assert!(message.contains("exited with status 3"), "{message}");
    assert!(
        message.ends_with(
            "last line of standard error: oops; find out why it failed, or accept its failure with --success-statuses"
        ),
        "{message}"
    );
    assert_eq!((&stats["records"], &stats["bytes"]), (&1.into(), &4.into()));
    assert_eq!(stats["hash"], Value::Null);
    assert_eq!((&stats["sources"][0]["status"], &stats["sources"][0]["exit_status"]), (&"failed".into(), &3.into()));
    assert_eq!(place.names(), ["stats"]);
}

#[test]
fn statistics_of_a_run_that_a_signal_ended() {
    let place = Place::new();
    let live = place.run("--stats stats -o out").shell("echo $$ > pid; exec sleep 60").start();
    place.wait_for("pid");
    live.send(Signal::TERM);
    live.dies_by(Signal::TERM);
    let stats = stats(&place);
    assert_eq!((&stats["complete"], &stats["error"]["kind"]), (&false.into(), &"cancelled".into()));
    assert_eq!(stats["sources"][0]["status"], "stopped");
    assert_eq!(place.names(), ["pid", "stats"]);
}

#[test]
fn standard_input_is_only_known_to_have_closed() {
    let place = Place::new();
    place.run("--stats stats --count").stdin("one\n").succeeds().prints("1 record, 4 bytes\n");
    assert_eq!(stats(&place)["sources"][0]["status"], "closed");
}

#[test]
fn statistics_tell_compressed_from_decoded() {
    let place = Place::new().file("a", "one\n".repeat(10_000));
    place.run("a -o a.gz").succeeds();
    place.run("--count --stats stats a.gz").succeeds().prints("10000 records, 40000 bytes\n");
    let source = stats(&place)["sources"][0].clone();
    assert_eq!(source["bytes"], 40_000);
    assert_eq!(source["source_bytes"], place.read("a.gz").len());
    assert_eq!(source["decoded"], "gzip");
}

#[test]
fn a_stopped_command_has_not_failed() {
    let place = Place::new();
    place.run("--stats stats -o /dev/full").shell("exec yes").fails().complains_of(&["No space left"]);
    assert_eq!(stats(&place)["sources"][0]["status"], "stopped");
}

#[test]
fn a_rate_limit_takes_its_time() {
    let place = Place::new().file("a", vec![b'x'; 30_000]);
    let start = Instant::now();
    place.run("a --rate-limit 100KB -o out").succeeds();
    // Only the lower bound is guaranteed.
    assert!(start.elapsed() >= Duration::from_millis(190), "{:?}", start.elapsed());
    assert_eq!(place.read("out").len(), 30_000);
}
