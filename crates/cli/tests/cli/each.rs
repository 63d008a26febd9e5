//! `--each`: blocks of records, copies of a command, and their outputs.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Words, is_there, until};

/// Returns the lines "0", "1", …
fn numbers(count: u64) -> String {
    (0..count).map(|n| format!("{n}\n")).collect()
}

fn each(place: &Place, options: &str, command: &str) -> Words {
    place.run(options).and("--each").word(command)
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn report(place: &Place) -> Value {
    serde_json::from_slice::<Value>(&place.read("stats")).unwrap()["each"].clone()
}

#[test]
fn the_output_is_that_of_the_copies_in_order() {
    let input = numbers(200_000);
    let place = Place::new().file("in", &input);
    for options in ["", "-j 1", "-j 3 --block 64K", "-j 2 --block 1000", "--block 1G"] {
        each(&place, "in", "cat").and(options).succeeds().prints(&input);
    }
    // This exceeds the capacity of the pipes and of held outputs together.
    let place = place.file("large", input.repeat(30));
    each(&place, "large -j 3", "cat").succeeds().prints(input.repeat(30));
}

#[test]
fn blocks_are_whole_records() {
    let place = Place::new();
    each(&place, "--block 5", "cat; echo -")
        .stdin("a\nb\nccc\ndddddddd\ne")
        .succeeds()
        .prints("a\nb\n-\nccc\n-\ndddddddd\n-\ne-\n");
    each(&place, "--block 4 --null", "tr '\\0' '\\n'; echo -")
        .stdin("a\0bbb\0c")
        .succeeds()
        .prints("a\n-\nbbb\n-\nc-\n");
    each(&place, "", "cat; echo -").stdin("").succeeds().prints("");
}

#[test]
fn a_copy_knows_its_block() {
    let place = Place::new();
    let command = "echo $MILLSTREAM_BLOCK $MILLSTREAM_RECORD+$MILLSTREAM_RECORDS $MILLSTREAM_BEGIN-$MILLSTREAM_END";
    each(&place, "--block 5 --number", command)
        .stdin("a\nb\nccc\ndddddddd\ne")
        .succeeds()
        .prints("0 0+2 0-4\n1 2+1 4-8\n2 3+1 8-17\n3 4+1 17-18\n");
    each(&place, "--csv --header --block 6 --number", command)
        .stdin("h\na\nb\nc\n")
        .succeeds()
        .prints("0 0+2 0-4\n1 2+1 4-6\n");
}

#[test]
fn a_copy_that_failed_before_it_wrote_is_run_again() {
    let place = Place::new().file("in", "1\n2\n3\n");
    // The second copy fails twice.
    let command = "read n; echo $n >> tried; [ $n != 2 ] || [ $(grep -c 2 tried) = 3 ] || exit 1; echo $n";
    each(&place, "in --block 2 -j 1 --retries 2 --stats stats", command).succeeds().prints("1\n2\n3\n");
    assert_eq!((place.text("tried"), report(&place)["failed"].clone()), ("1\n2\n2\n2\n3\n".into(), 0.into()));
    let place = Place::new().file("in", "1\n2\n3\n");
    each(&place, "in --block 2 -j 1 --retries 1", command).fails().complains_of(&["status 1"]);
    assert_eq!(place.text("tried"), "1\n2\n2\n");
    let wrote = "read n; echo $n | tee -a tried; exit 3";
    each(&place, "in --block 2 -j 1 --retries 5", wrote).fails().complains_of(&["status 3"]);
    assert_eq!(place.text("tried"), "1\n2\n2\n1\n");
    each(&place, "in --round-robin --retries 1", "cat").gets_refused().complains_of(&["--round-robin"]);
}

#[test]
fn a_job_log_has_a_line_for_each_copy() {
    let place = Place::new().file("in", "1\n2\n3\n");
    let command = "read n; [ $n != 2 ] || kill -9 $$; [ $n != 3 ] || exit 7; echo $n";
    each(&place, "in --block 2 -j 1 --retries 1 --on-error skip --job-log log", command).exits(1);
    let text = place.text("log");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0].join(" "), "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command");
    let found: Vec<String> = rows[1..].iter().map(|row| [&row[..2], &row[4..8]].concat().join(" ")).collect();
    assert_eq!(found, ["1 : 2 2 0 0", "2 : 2 0 0 9", "2 : 2 0 0 9", "3 : 2 0 7 0", "3 : 2 0 7 0"]);
    assert!(rows[1..].iter().all(|row| row[8] == command && row[2].parse::<f64>().unwrap() > 1e9), "{text}");
    each(&place, "in --round-robin --job-log log", "cat").gets_refused().complains_of(&["--round-robin"]);
    each(&place, "in --job-log missing/log", "cat").fails().complains_of(&["missing/log"]);
}

#[test]
fn blocks_are_cut_after_the_stages() {
    let place = Place::new();
    each(&place, "--stage not:2 --stage replace/3/33 --block 3", "cat; echo -")
        .stdin("1\n2\n3\n4\n5")
        .succeeds()
        .prints("1\n-\n33\n-\n4\n5-\n");
    each(&place, "--stage take:3 --block 4", "cat; echo -").shell("exec yes").succeeds().prints("y\ny\n-\ny\n-\n");
}

#[test]
fn order_is_kept_for_any_speed_of_the_copies() {
    let input = numbers(60);
    let place = Place::new().file("in", &input);
    // Each copy sleeps for a random time before and after its output.
    let sleepy = "read n; sleep 0.0$((RANDOM % 5)); echo $n; cat; sleep 0.0$((RANDOM % 3))";
    each(&place, "in -j 7 --block 4", sleepy).succeeds().prints(&input);
    let seen = each(&place, "in -j 7 --block 4 --unordered", sleepy).succeeds();
    assert_eq!(sorted(&seen.stdout), sorted(input.as_bytes()));
}

#[test]
fn unordered_outputs_come_in_one_piece() {
    let place = Place::new().file("in", numbers(4000));
    let seen = each(&place, "in -j 4 --block 1K --unordered", "echo begin; sleep 0.01; cat; echo end").succeeds();
    let text = String::from_utf8(seen.stdout).unwrap();
    let pieces: Vec<_> = text.split_inclusive("end\n").collect();
    assert!(pieces.len() > 10);
    for piece in pieces {
        assert!(piece.starts_with("begin\n") && piece.matches("begin").count() == 1, "{piece}");
    }
}

#[test]
fn without_order_the_first_copy_to_end_is_written_first() {
    let place = Place::new();
    let command = "read n; if [ $n = 1 ]; then until [ -e go ]; do sleep 0.01; done; fi; echo $n";
    let mut live = each(&place, "-j 2 --block 2 --unordered", command).shell("echo 1; echo 2").start();
    live.prints("2\n");
    fs::write(place.path("go"), "").unwrap();
    live.prints("1\n");
    assert!(live.ends().status.success());
}

#[test]
fn ten_thousand_small_blocks() {
    let input = numbers(10_000);
    let place = Place::new().file("in", &input);
    // This is a builtin of bash, so that a block is processed by one process.
    each(&place, "in --block 1 -j 4 --stats stats", "read n; echo $n").succeeds().prints(&input);
    assert_eq!(report(&place)["blocks"], 10_000);
}

#[test]
fn a_failing_copy_is_named_by_its_records() {
    let place = Place::new().file("in", numbers(100));
    // The first block has 10 records of 2 bytes, the following ones 6 records of 3 bytes.
    let command = "read n; echo $n; cat > /dev/null; [ $n != 16 ]";
    let seen = each(&place, "in -j 3 --block 20 --number", command).fails();
    let seen = seen.complains_of(&["status 1", "in the block of lines 17 to 22, at line 17"]);
    assert_eq!(
        String::from_utf8(seen.stdout).unwrap(),
        "0\n10\n16\n",
        "all records before the block, and none after it"
    );
    each(&place, "in -j 3 --block 20 -o out", command).fails();
    assert!(!place.path("out").exists());
}

#[test]
fn a_file_is_passed_on_unread() {
    let text = "a\nb\nccc\ndddddddd\ne";
    let long = ["x".repeat(300_000), "\n".into(), numbers(100_000)].concat();
    let place = Place::new().file("in", text).file("long", &long).file("empty", "").file("nulls", "a\0bbb\0c");
    let command = "cat; echo $MILLSTREAM_BLOCK ${MILLSTREAM_RECORD-none} $MILLSTREAM_BEGIN-$MILLSTREAM_END";
    let expected = "a\nb\n0 none 0-4\nccc\n1 none 4-8\ndddddddd\n2 none 8-17\ne3 none 17-18\n";
    each(&place, "in --block 5", command).succeeds().prints(expected);
    each(&place, "--block 5", command).stdin(text).succeeds().prints(expected);
    each(&place, "nulls --null --block 4", "tr '\\0' '\\n'; echo -").succeeds().prints("a\n-\nbbb\n-\nc-\n");
    each(&place, "empty", command).succeeds().prints("");
    for options in ["--block 64K", "--block 1000 --unordered -j 1", "--pin identity"] {
        each(&place, "long", "cat").and(options).succeeds().prints(&long);
    }
    // The same blocks, counted.
    let blocks = "wc -c; echo $MILLSTREAM_BEGIN-$MILLSTREAM_END";
    let unread = each(&place, "long --block 64K", blocks).succeeds();
    each(&place, "long --block 64K --number", blocks).succeeds().prints(unread.stdout);

    let fails = each(&place, "in --block 5", "read n; [ $n != ccc ]").fails();
    let _ = fails.complains_of(&["status 1", "in the block of bytes 4 to 8, at byte 4"]);
    // A longer record is an error where the file is examined.
    let seen = place.run("long --block 64K --record-limit 100000 --each cat").fails();
    let _ = seen.complains_of(&["long: record too long", "at most 100000"]);
}

#[test]
fn a_file_that_changes_while_copies_read_it_is_an_error() {
    for (command, words) in [
        ("cat; printf 9 | dd of=in conv=notrunc status=none", "in: source changed"),
        ("cat; : > in", "in: source shrank"),
    ] {
        let place = Place::new().file("in", numbers(1000));
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        fs::File::options().write(true).open(place.path("in")).unwrap().set_modified(old).unwrap();
        each(&place, "in --block 100 -j 1 -o out", command).fails().complains_of(&[words]);
        assert!(!place.path("out").exists());
    }
    let grows = "cat; echo new >> in";
    let place = Place::new().file("in", numbers(1000));
    each(&place, "in --block 100 -j 1", grows).succeeds().prints(numbers(1000));
    each(&place, "in --block 100 -j 1 --pin identity", grows).fails().complains_of(&["in: source changed"]);
}

#[test]
fn other_copies_continue_on_request() {
    let place = Place::new().file("in", numbers(100));
    let command = "read n; cat > /dev/null; echo $n; case $n in 16|28) exit 3;; esac";
    for order in ["", "--unordered"] {
        let seen = each(&place, "in -j 3 --block 20 --on-error skip --stats stats", command).and(order).fails();
        let starts: Vec<u64> = [0].into_iter().chain((10..100).step_by(6)).collect();
        let expected: String = starts.iter().map(|n| format!("{n}\n")).collect();
        assert_eq!(sorted(&seen.stdout), sorted(expected.as_bytes()));
        let lines: Vec<_> = seen.stderr.lines().collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(
            lines[..2].iter().any(|line| line.contains("status 3") && line.contains("lines 17 to 22")),
            "{lines:?}"
        );
        assert!(lines[..2].iter().any(|line| line.contains("lines 29 to 34, at line 29")), "{lines:?}");
        assert!(lines[2].contains("2 failures of the command"), "{lines:?}");
        assert_eq!(lines[3], "hint: find out why it failed, or accept its failure with --success-statuses");
        assert_eq!((&report(&place)["blocks"], &report(&place)["failed"]), (&16.into(), &2.into()));
    }
    each(&place, "in -j 3 --block 20 --on-error skip -o out", command).fails();
    assert_eq!(place.text("out").lines().count(), 16, "the output is complete");
}

#[test]
fn copies_that_die_in_the_middle() {
    let place = Place::new().file("in", numbers(100_000));
    let killed = "head -c 10000; kill -9 $$";
    each(&place, "in --block 100K", killed).fails().complains_of(&["signal 9 (SIGKILL)", "bytes 0 to"]);
    let unordered = each(&place, "in --block 100K --unordered", killed).fails();
    assert!(unordered.stdout.len() >= 10_000, "its output is complete");
    each(&place, "in", "exit 3").fails().prints("").complains_of(&["exited with status 3"]);
    each(&place, "in", "no-such-program-anywhere").exits(1);
}

/// As with GNU parallel, the status shows the result.
#[test]
fn a_copy_need_not_read_its_block() {
    let place = Place::new().file("in", numbers(1_000_000));
    each(&place, "in --block 2M", "head -n 1 | wc -l").succeeds().prints("1\n1\n1\n1\n");
    each(&place, "in --block 2M", "true").succeeds().prints("");
    each(&place, "in --block 2M", "exec <&-; echo x").succeeds().prints("x\nx\nx\nx\n");
}

#[test]
fn a_copy_that_writes_much_more_than_it_reads() {
    let place = Place::new().file("in", numbers(40));
    let seen = each(&place, "in --block 20 -j 3", "head -n 1; head -c 9000000 /dev/zero").succeeds();
    assert_eq!(seen.stdout.len(), 6 * 9_000_000 + "0\n10\n16\n22\n28\n34\n".len());
}

/// If a consumer does not read, the copies stop, and they stop the source.
#[test]
fn back_pressure_reaches_the_source() {
    let place = Place::new();
    // Each number is 1 MB that the source has written.
    let source = "for i in $(seq 400); do head -c 1000000 /dev/zero | tr '\\0' x; echo; echo $i > progress; done";
    let mut live = each(&place, "-j 2 --block 1M", "cat").shell(source).start();
    let written = || fs::read_to_string(place.path("progress")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let mut last = None;
    // The source stops in the end.
    let stopped = until("the source stops", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = written();
        let stands = now.is_some() && now == last;
        last = now;
        stands.then_some(now).flatten()
    });
    assert!(stopped < 100, "{stopped} MB are somewhere");
    live.stop_reading();
    live.dies_by(Signal::PIPE);
}

#[test]
fn memory_is_bounded() {
    let place = Place::new();
    // All other copies proceed as far as possible before the output of the first block is available.
    let command = "read n; case $n in first) sleep 1;; esac; cat";
    let source = "echo first; yes | head -c 300000000";
    let mut command = each(&place, "-j 3 --block 1M", command).shell(source).into_command();
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    let status = until("it ends", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|line| line.replace("kB", ""));
        peak = line.and_then(|line| line.trim().parse::<u64>().ok()).unwrap_or(0).max(peak);
        child.try_wait().unwrap()
    });
    assert!(status.success());
    assert!((1_000..100_000).contains(&peak), "{peak} KiB");
}

#[test]
fn a_signal_leaves_no_copy_behind() {
    for options in ["-j 3 --block 2", "-j 3 --block 2 --unordered", "-j 3 --block 2 --round-robin"] {
        let place = Place::new();
        let command = "echo $$ >> pids; sleep 60 & echo $! >> pids; wait; cat";
        let live =
            each(&place, options, command).and("-o out").shell("echo $$ > source; seq 100; exec sleep 60").start();
        until("three copies run", || {
            fs::read_to_string(place.path("pids")).ok().filter(|pids| pids.lines().count() == 6)
        });
        live.send(Signal::INT);
        live.dies_by(Signal::INT);
        for pid in place.text("pids").lines().chain(place.text("source").lines()) {
            until("the process has ended", || (!is_there(pid)).then_some(()));
        }
        assert_eq!(place.names(), ["pids", "source"], "{options}");
    }
}

#[test]
fn a_failure_ends_a_source_that_is_waited_for() {
    let place = Place::new();
    for order in ["", "--unordered"] {
        let seen =
            each(&place, "--block 2", "exit 3").and(order).shell("echo 1; echo 2; echo 3; exec sleep 60").fails();
        let _ = seen.complains_of(&["exited with status 3", "the block of line"]);
    }
}

#[test]
fn a_closed_consumer_ends_copies_and_source() {
    let place = Place::new();
    let mut live = each(&place, "-j 2 --block 1K", "cat").shell("echo $$ > pid; exec yes").start();
    live.prints("y\ny\n");
    live.stop_reading();
    live.dies_by(Signal::PIPE);
    assert!(!is_there(&place.text("pid")));
}

#[test]
fn a_failing_source_is_reported_after_all_its_data() {
    let place = Place::new();
    let seen = each(&place, "", "cat").shell("seq 3; exit 3").fails();
    seen.prints("1\n2\n3\n").complains_of(&["exited with status 3"]);
}

#[test]
fn no_zombie_is_left_while_it_runs() {
    let place = Place::new();
    let source = "seq 50; until [ -e go ]; do sleep 0.01; done";
    let mut live = each(&place, "-j 2 --block 4 --flush-policy line", "cat").shell(source).start();
    live.prints(&(1..=48).map(|n| format!("{n}\n")).collect::<String>());
    let children = format!("/proc/{0}/task/{0}/children", live.pid().as_raw_nonzero());
    until("only the source is there, and the guard", || {
        let children = fs::read_to_string(&children).unwrap_or_default();
        let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (children.split_whitespace().filter(|pid| name(pid) != "ms-guard\n").count() == 1).then_some(())
    });
    fs::write(place.path("go"), "").unwrap();
    let seen = live.ends();
    assert!(seen.status.success() && seen.status.signal().is_none());
}

#[test]
fn outputs_checksums_and_statistics_work_as_without() {
    let place = Place::new().file("in", numbers(1000));
    each(&place, "in --block 1K -o out.gz --tee copy --hash crc32c --stats stats", "sed s/^/-/").exits(0);
    let expected: String = (0..1000).map(|n| format!("-{n}\n")).collect();
    assert_eq!(place.text("copy"), expected);
    place.run("out.gz").succeeds().prints(&expected);
    assert_eq!(report(&place)["output_bytes"], expected.len());
    let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
    assert_eq!((&stats["records"], &stats["bytes"]), (&1000.into(), &3890.into()));
    assert_eq!(place.names(), ["copy", "in", "out.gz", "stats"]);
}

#[test]
fn kept_copies_share_the_blocks() {
    let input = numbers(300_000);
    let place = Place::new().file("in", &input);
    let seen = each(&place, "in -j 3 --block 10K --round-robin --stats stats", "echo x >> started; cat").succeeds();
    assert!(sorted(&seen.stdout) == sorted(input.as_bytes()));
    assert_eq!(place.text("started"), "x\nx\nx\n");
    assert!(report(&place)["blocks"].as_u64().unwrap() > 100);
    let seen = each(&place, "in -j 3 --block 10K --round-robin", "wc -l").succeeds();
    let counts: Vec<u64> = String::from_utf8(seen.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum()), (3, 300_000));
    each(&place, "--round-robin -j 2", "cat").stdin("").succeeds().prints("");
}

#[test]
fn kept_copies_that_fail_or_stop_reading() {
    let place = Place::new().file("in", numbers(1_000_000));
    let seen = each(&place, "in -j 2 --block 10K --round-robin", "head -c 100000 > /dev/null; exit 3").fails();
    let _ = seen.complains_of(&["exited with status 3", "in a copy whose last block was the block of lines"]);
    // The data that a copy gets but does not read is lost, even if other copies continue to read.
    for command in ["head -n 1 > /dev/null", "[ -e one ] || { touch one; exit 0; }; cat"] {
        let seen = each(&place, "in -j 2 --block 10K --round-robin -o out", command).fails();
        let _ = seen.complains_of(&[
            "found a copy of the command that stopped reading before the end of its input",
            "block of line",
        ]);
        assert!(!place.path("out").exists());
    }
    fs::remove_file(place.path("one")).unwrap();
    // This is a single block, which is in the pipe when the copy ends.
    let short = Place::new().file("in", numbers(10_000));
    let seen = each(&short, "in -j 2 --round-robin", "read n; exit 0").fails();
    let _ = seen.complains_of(&["stopped reading before the end of its input"]);
    each(&short, "in -j 2 --round-robin", "wc -l > /dev/null").succeeds();
    // The copy ended successfully, but the next block was assigned to it. This is an error even if the copy had read
    // all earlier blocks.
    let line = "echo 1; echo 2; until [ -e gone ]; do sleep 0.01; done; sleep 0.2; echo 3";
    let seen = each(&short, "-j 1 --block 2 --round-robin", "read n; touch gone").shell(line).fails();
    let _ = seen.complains_of(&["stopped reading before the end of its input"]);
    // If failures are skipped, the block of the last failed copy is read by no copy.
    let seen = each(&place, "in -j 2 --block 10K --round-robin --on-error skip", "head -n 1 > /dev/null").fails();
    assert!(seen.stderr.contains("found no copy of the command that is still reading"), "{}", seen.stderr);
    let one = "[ -e one ] || { touch one; head -c 100000 > /dev/null; exit 3; }; cat";
    let seen = each(&place, "in -j 1 --block 10K --round-robin --on-error skip", one).fails();
    assert!(seen.stderr.contains("status 3"), "{}", seen.stderr);
}

#[test]
fn impossible_combinations_are_refused() {
    let place = Place::new();
    place.run("--each cat -j 0").gets_refused().complains_of(&["expected 1 to 4096"]);
    place.run("--each cat --block 0").gets_refused().complains_of(&["expected 1 byte to 1G"]);
    place.run("--each cat --count").gets_refused().complains_of(&["--count"]);
    place.run("--each cat --on-error maybe").gets_refused().complains_of(&["stop, skip"]);
}

#[test]
fn a_time_limit_reaches_the_copies() {
    let place = Place::new().file("in", numbers(60_000));
    for mode in MODES {
        let started = std::time::Instant::now();
        // A kept copy that never got a block would also time out, and its error could not name a block. So the first
        // command leaves blocks for every copy, and the second has only one copy.
        for (command, options) in
            [("exec tail -f /dev/null", "-j 2 --block 40K"), ("cat > /dev/null; exec tail -f /dev/null", "-j 1")]
        {
            let seen = each(&place, "in --stall-timeout 900ms -o out", command).and(options).and(mode).fails();
            let _ = seen.complains_of(&["stalled", "0.9 s", "the block of ", "\nhint: raise --stall-timeout"]);
            assert!(!place.path("out").exists());
        }
        assert!(started.elapsed() < crate::place::PATIENCE);
        // A copy that has no bytes to process, or whose output is currently not accepted, does not time out.
        let line = "for n in 1 2 3 4 5 6; do echo $n; sleep 0.1; done";
        each(&place, "-j 2 --block 2 --stall-timeout 2s", "wc -l > /dev/null").and(mode).shell(line).succeeds();
        each(&place, "in -j 2 --block 40K --stall-timeout 2s --rate-limit 300K", "cat").and(mode).succeeds();
    }
}

#[test]
fn copies_are_given_whole_records_of_all_sources() {
    let place = Place::new().file("a", "1\n2").file("b", "3\n4");
    for mode in MODES {
        each(&place, "a b -j 1", "cat").and(mode).succeeds().prints("1\n2\n3\n4");
    }
}

/// The ways to use copies.
const MODES: [&str; 3] = ["", "--unordered", "--round-robin"];

/// A copy that writes no output, and ends when its input is closed. (A sleeping copy would have to be stopped by a
/// signal.)
const SILENT: &str = "echo > started; exec tail -f /dev/null";

#[test]
fn a_signal_is_never_taken_for_the_end() {
    let place = Place::new().file("in", numbers(60_000));
    // The last block has been passed on, or not yet.
    for (mode, block) in MODES.into_iter().flat_map(|mode| [(mode, "1M"), (mode, "40K")]) {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let live = each(&place, "in -j 2 -o out --stats stats --hash sha256", SILENT)
                .and(mode)
                .and("--block")
                .and(block)
                .start();
            place.wait_for("started");
            live.send(signal);
            live.dies_by(signal);
            let stats: Value = serde_json::from_slice(&place.read("stats")).unwrap();
            assert_eq!((&stats["complete"], &stats["error"]["kind"]), (&false.into(), &"cancelled".into()), "{mode}");
            assert_eq!(stats["hash"], Value::Null, "{mode}");
            assert_eq!(place.names(), ["in", "started", "stats"], "{mode}");
            fs::remove_file(place.path("started")).unwrap();
        }
        // The output is a pipe, or failing copies are skipped.
        let live = each(&place, "in -j 2 --on-error skip", SILENT).and(mode).and("--block").and(block).start();
        place.wait_for("started");
        live.send(Signal::TERM);
        live.dies_by(Signal::TERM);
        fs::remove_file(place.path("started")).unwrap();
    }
}
