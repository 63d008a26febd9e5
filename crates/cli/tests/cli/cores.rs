//! `-j` without `--each`: the output is the output of one thread.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::place::{Place, Words, until};
use crate::skip;

/// Returns about 9 MB of lines, which are several splits; the last one has no terminator.
fn lines() -> String {
    let mut text = String::new();
    for i in 0..700_000_u32 {
        let _ = write!(text, "{}{} {}", if i == 0 { "" } else { "\n" }, i / 3, i.wrapping_mul(2_654_435_761) >> 20);
    }
    text
}

/// Returns the same amount of CSV, with delimiters, quotes and line ends inside fields.
fn table() -> String {
    let mut text = "id,\"a name\",value\n".to_string();
    for i in 0..400_000_u32 {
        let _ = match i % 4 {
            0 => writeln!(text, "{i},\"x,\n\"\"{i}\"\"\n\",{}", i % 7),
            1 => write!(text, "{i},plain,\r\n"),
            2 => writeln!(text, "\n{i},\",,,\",\"{}\"", i % 5),
            _ => writeln!(text, "{i},,"),
        };
    }
    text
}

/// Checks that the command does and says the same with one thread and with several.
fn is_the_same(place: &Place, words: &str) {
    let seen = |jobs: &str| {
        let seen = place.run(jobs).and(words).into_command().output().unwrap();
        (seen.status.code(), String::from_utf8_lossy(&seen.stderr).into_owned(), seen.stdout)
    };
    let (expected, found) = (seen(""), seen("-j 3"));
    assert_eq!((found.0, &found.1), (expected.0, &expected.1), "{words}");
    assert!(found.2 == expected.2, "{words}: {} bytes, not {}", found.2.len(), expected.2.len());
}

#[test]
fn the_output_is_that_of_one_thread() {
    let place = Place::new().file("a", lines()).file("b", "1 2\n2 3").file("empty", "");
    for words in [
        "a --count",
        "a --stage match:7 --count",
        "a --stage match:77",
        "a --stage not:1 --stage replace/0$/zero",
        "a --stage fields:2:\\x20",
        "a a b --stage match:3$",
        "b a b --stage not:xyz",
        "a empty b --stage match:3$",
        "a --stage match:7 --stage uniq",
        "a b a --stage match:7 --stage skip:10 --stage take:50000",
        "a --stage match:7 --stage sample:0.1:3 --stage match:1",
        "a --stage take:3 --stage match:1",
        "a --stage match:7 --stage uniq --stage replace/7/8",
        "a --null --count",
        "a --delimiter 5 --stage match:7",
        "a --fixed 7 --stage match:7",
        "a - --stage match:77",
        "a --record-limit 8 --stage match:7",
        "a --record-limit 12 --stage replace/777/123456789",
        "none --stage match:7",
        "a none --stage match:7",
    ] {
        is_the_same(&place, words);
    }
}

#[test]
fn records_of_csv_and_bad_ones_are_those_of_one_thread() {
    let table = table();
    let broken =
        format!("{}1,b\"c,2\n{table}", &table[..table.len() / 2 / 64 * 64].rsplit_once("\n3").unwrap().0.to_string());
    let place = Place::new().file("a", &table).file("broken", broken);
    for words in [
        "a --csv --count",
        "a --csv --stage match:7 --count",
        "a --csv --stage fields:2",
        "a a --csv --header --stage fields:value,id --stage not:3",
        "a --csv --header --stage match:x --stage uniq",
        "a --csv --stage fields:4",
        "broken --csv --stage match:7",
        "broken --csv --stage match:7 --count",
    ] {
        is_the_same(&place, words);
    }
}

#[test]
fn compressed_files_are_read_on_several_threads_or_on_one() {
    let place = Place::new().file("a", lines());
    for format in ["a.gz", "a.zst", "a.bgz"] {
        place.run("a -o").and(format).succeeds();
        is_the_same(&place, &format!("{format} --stage match:77"));
        is_the_same(&place, &format!("{format} --count"));
        is_the_same(&place, &format!("{format} --count --decode-limit 5M"));
    }
}

#[test]
fn results_larger_than_a_thread_may_collect_are_written_in_pieces() {
    let place = Place::new().file("a", "1\n".repeat(3 << 20));
    let grow: fn(Words) -> Words =
        |words| words.word("--stage").word(format!("replace/1/{}", "2".repeat(30))).and("--hash blake3");
    let hash = |jobs: &str| grow(place.run("a -o out").and(jobs)).exits(0).stderr;
    assert_eq!(hash("-j 2"), hash(""));
    assert_eq!(place.read("out").len(), 31 * (3 << 20));
}

/// Returns the lines in an order that does not depend on theirs.
fn sorted(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<_> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn unordered_results_are_the_same_records() {
    let place = Place::new().file("a", lines()).file("t", table()).file("b", "1 2\n7 3");
    for words in [
        "a --stage match:7",
        "a b a --stage not:xyz --stage replace/7/8",
        "a --stage fields:2:\\x20",
        "t --csv --stage fields:2",
        "t --csv --header --stage match:7",
        "a --stage match:7 --count",
    ] {
        let expected = place.run(words).succeeds().stdout;
        let found = place.run(words).and("-j 3 --unordered").succeeds().stdout;
        assert_eq!(found.len(), expected.len(), "{words}");
        assert!(sorted(&found) == sorted(&expected), "{words}");
    }
}

#[test]
fn an_error_with_unordered_results_comes_after_everything_before_it() {
    // The record in the middle is too long.
    let text = lines();
    let (first, second) = text.split_at(text.len() / 2 / 7 * 7);
    let place = Place::new().file("a", format!("{first}\n{}\n{second}", "7".repeat(100)));
    let words = "a --record-limit 50 --stage match:7";
    let expected = place.run(words).fails();
    let found = place.run(words).and("-j 3 --unordered").fails();
    assert_eq!(found.stderr, expected.stderr);
    let records = sorted(&found.stdout);
    assert!(expected.stdout.len() > 1 << 20);
    assert!(sorted(&expected.stdout).iter().all(|record| records.binary_search(record).is_ok()));

    // Bad records are reported in order.
    for end in ["--rejects bad", "--on-bad skip"] {
        let words = format!("{words} {end}");
        let seen = |jobs: &str| {
            let seen = place.run(&words).and(jobs).into_command().output().unwrap();
            (seen.status.code(), String::from_utf8_lossy(&seen.stderr).into_owned(), sorted(&seen.stdout))
        };
        assert!(seen("") == seen("-j 3 --unordered"), "{words}");
    }
}

/// Sources that cannot be divided.
#[test]
fn the_output_of_streams_is_that_of_one_thread() {
    let place = Place::new().file("a", lines()).file("t", table()).file("fails", "cat a; exit 3");
    place.run("a -o a.gz").succeeds();
    for words in [
        "a.gz --stage match:7 --stage replace/7/8",
        "a.gz a a.gz --stage not:1 --stage uniq",
        "--stage replace/77/x -- cat a",
        "--stage match:77 --count -- cat a",
        "--stage match:7 --stage take:100 -- cat a",
        "--stage match:77 -- sh fails",
        "--csv --header --stage fields:value,id -- cat t",
        "--csv --stage fields:4 -- cat t",
        "--record-limit 8 --stage match:7 -- cat a",
        "--stage match:7 --total-timeout 1m -- cat a",
    ] {
        is_the_same(&place, words);
    }
}

#[test]
fn what_a_slow_source_sends_is_not_held_back() {
    let place = Place::new();
    let script = "echo a; until [ -e go ]; do sleep 0.01; done; echo b";
    let mut run = place.run("-j 2 --stage match:[ab] -- sh -c").word(script).start();
    run.prints("a\n");
    std::fs::write(place.path("go"), "").unwrap();
    run.prints("b\n");
    assert_eq!(run.ends().status.code(), Some(0));
}

#[test]
fn statistics_are_the_sum_of_all_threads() {
    let place = Place::new().file("a", lines());
    let stats = |jobs: &str| {
        place.run("a --stage match:7 --stage not:8 --stage uniq --count --stats -").and(jobs).succeeds().stdout
    };
    let [one, three] = ["", "-j 3"].map(|jobs| {
        let stats: serde_json::Value = serde_json::from_slice(&stats(jobs)).unwrap();
        let stages = stats["stages"].as_array().unwrap().iter();
        let stages = stages.map(|stage| (stage["stage"].clone(), stage["records"].clone(), stage["bytes"].clone()));
        (
            stages.collect::<Vec<_>>(),
            stats["records"].clone(),
            stats["longest_record"].clone(),
            stats["sources"].clone(),
        )
    });
    assert_eq!((one.0, one.1, one.2), (three.0, three.1, three.2));
    for field in ["records", "bytes", "source_bytes", "status", "name"] {
        assert_eq!(one.3[0][field], three.3[0][field], "{field}");
    }
}

#[test]
fn without_a_number_all_processors_are_used() {
    let place = Place::new().file("a", lines());
    let expected = place.run("a --stage match:77").succeeds().stdout;
    place.run("a --stage match:77 -j").succeeds().prints(expected);
    place.run("a -j x").gets_refused().complains_of(&["expected 1 to 4096"]);
}

/// More splits than two threads begin while no result is taken.
fn eight_splits() -> Place {
    Place::new().file("a", "1\n".repeat(16 << 20))
}

/// Expects that the command, when it waits because its output is not read, has this number of threads that read splits.
fn has_threads(command: Words, count: usize) {
    let mut live = command.start();
    // One of the threads has found it.
    live.prints("1");
    let tasks = PathBuf::from(format!("/proc/{}/task", live.pid().as_raw_nonzero()));
    let is_one = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "millstream-spli\n");
    let found = || fs::read_dir(&tasks).unwrap().filter(|task| is_one(&task.as_ref().unwrap().path())).count();
    until(&format!("it has {count} threads"), || (found() == count).then_some(()));
}

#[test]
fn without_a_number_there_is_a_thread_for_each_processor_that_may_be_used() {
    let place = eight_splits();
    let all = sched_getaffinity(None).unwrap();
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&processor| all.is_set(processor)).collect();
    for count in 1..=all.len().min(2) {
        let mut some = CpuSet::new();
        all[..count].iter().for_each(|&processor| some.set(processor));
        // For this thread, and the commands that it starts.
        sched_setaffinity(None, &some).unwrap();
        let expected = match std::thread::available_parallelism().unwrap().get().min(count) {
            1 => 0,
            count => count,
        };
        has_threads(place.run("a --stage match:1 -j"), expected);
    }
    has_threads(place.run("a --stage match:1 -j 2"), 2);
}

/// A control group whose processes may use one processor, by time.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Returns `None` if this process must not create one.
    fn new() -> Option<ControlGroup> {
        let controllers = ["cpu", "cpu,cpuacct", ""].map(|name| Path::new("/sys/fs/cgroup").join(name));
        controllers.iter().find_map(|controller| {
            let group = ControlGroup(controller.join(format!("millstream-test-{}", std::process::id())));
            fs::create_dir(&group.0).ok()?;
            let quota = |file: &str, text: &str| fs::write(group.0.join(file), text).is_ok();
            let is_limited = quota("cpu.max", "100000 100000")
                || quota("cpu.cfs_period_us", "100000") && quota("cpu.cfs_quota_us", "100000");
            is_limited.then_some(group)
        })
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_quota_of_a_control_group_limits_the_threads() {
    let Some(group) = ControlGroup::new() else {
        return skip::say("control groups may not be created here, which needs root");
    };
    let place = eight_splits();
    let enter = format!("echo $$ >'{}/cgroup.procs'", group.0.display());
    has_threads(place.run("a --stage match:1 -j").after(&enter), 0);
    has_threads(place.run("a --stage match:1 -j 2").after(&enter), 2);
}
