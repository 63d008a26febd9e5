//! Endings: failing commands, closed consumers and signals leave no child processes and no partial files.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::time::Instant;

use rustix::process::Signal;

use crate::place::{PATIENCE, Place, is_there, until};

#[test]
fn a_failing_command_is_reported_after_all_its_output() {
    Place::new()
        .run("")
        .shell("echo one; printf tw; exit 3")
        .fails()
        .prints("one\ntw")
        .complains_of(&["exited with status 3, at byte 6\n"]);
}

#[test]
fn a_failing_command_is_noticed_whatever_the_options() {
    for options in ["--count", "--flush-policy when-full", "--null", "--read-ahead on", "--hash sha256", "-o out"] {
        let place = Place::new();
        place.run(options).shell("seq 1 100000; exit 3").fails().complains_of(&["exited with status 3"]);
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn a_failing_commands_messages_come_before_the_error() {
    let seen = Place::new().run("").shell("printf 'out of %s\\n' luck >&2; exit 3").fails();
    assert!(seen.stderr.starts_with("out of luck\nmillstream: "), "{:?}", seen.stderr);
    assert!(
        seen.stderr.ends_with("\nhint: find out why it failed, or accept its failure with --success-statuses\n"),
        "{:?}",
        seen.stderr
    );
    assert_eq!(seen.stderr.matches("out of luck").count(), 1, "it is not repeated: {:?}", seen.stderr);
}

#[test]
fn a_killed_command_is_noticed() {
    Place::new().run("").shell("echo one; kill -9 $$").fails().prints("one\n").complains_of(&["signal 9 (SIGKILL)"]);
}

#[test]
fn a_failing_source_stops_those_after_it() {
    let place = Place::new().file("a", "aaaab").file("b", "bbbb");
    place.run("--fixed 4 a b").fails().prints("aaaa").complains_of(&["a: frame truncated"]);
}

#[test]
fn a_damaged_file_is_an_error_after_the_valid_data() {
    let place = Place::new().file("a", "one\n".repeat(100_000));
    place.run("a -o a.gz").succeeds();
    let packed = place.read("a.gz");
    let place = place.file("cut.gz", &packed[..packed.len() / 2]);
    let seen = place.run("cut.gz").fails().complains_of(&["cut.gz: decode truncated"]);
    assert!(!seen.stdout.is_empty());
    place.run("cut.gz -o out").fails();
    assert!(!place.path("out").exists());
}

#[test]
fn a_stalled_source_is_an_error() {
    let place = Place::new();
    let start = Instant::now();
    place
        .run("--stall-timeout 100ms")
        .shell("echo $$ > pid; echo one; exec sleep 60")
        .fails()
        .prints("one\n")
        .complains_of(&["stalled", "\nhint: raise --stall-timeout"]);
    assert!(!is_there(&place.text("pid")));
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_source_that_takes_too_long_in_total_is_an_error() {
    let place = Place::new();
    let seen = place.run("--total-timeout 100ms -o /dev/null").shell("echo $$ > pid; exec yes").fails();
    let _ = seen.complains_of(&["timed out", "\nhint: raise --total-timeout"]);
    assert!(!is_there(&place.text("pid")));
}

#[test]
fn successes_of_commands_can_be_listed() {
    let place = Place::new().file("a", "one\ntwo\n");
    place.run("--success-statuses 0,3").shell("echo one; exit 3").succeeds().prints("one\n");
    place
        .run("--success-statuses 0,3")
        .shell("echo one; exit 4")
        .fails()
        .complains_of(&["expected exit status 0 or 3"]);
    place.run("--success-signals 9").shell("echo one; kill -9 $$").succeeds().prints("one\n");
    // grep exits with status 1 if it finds nothing.
    place.run("a --success-statuses 0,1 -j 1 --each").word("grep none").succeeds().prints("");
    place.run("a -j 1 --each").word("grep none").fails();
    place.run("a --success-statuses 0,1").gets_refused().complains_of(&["--success-statuses without a command"]);
    place.run("--success-statuses 256").shell("true").gets_refused().complains_of(&["the exit status 256"]);
}

#[test]
fn how_a_command_is_stopped_can_be_chosen() {
    let place = Place::new();
    let script = "trap 'echo int > got; exit 0' INT; trap 'echo term > got; exit 0' TERM; \
                  echo one; while :; do sleep 0.05; done";
    place.run("--stage take:1 --stop-signal 2").shell(script).succeeds().prints("one\n");
    assert_eq!(place.text("got"), "int\n");
}

#[test]
fn a_stalled_consumer_is_an_error() {
    let place = Place::new();
    let seen = place.run("--stall-timeout 100ms").shell("echo $$ > pid; exec yes").start().ends();
    assert_eq!(seen.status.code(), Some(1));
    let _ = seen.complains_of(&["standard output: stalled", "\nhint: raise --stall-timeout"]);
    assert!(!is_there(&place.text("pid")));
}

#[test]
fn a_closed_consumer_other_than_standard_output_is_named() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path("sock")).unwrap();
    let live = place.run("-o unix:sock").shell("exec yes").start();
    drop(listener.accept().unwrap());
    let seen = live.ends();
    assert_eq!(seen.status.signal(), Some(Signal::PIPE.as_raw()));
    let _ = seen.complains_of(&["unix:sock: broken pipe", "\nhint: the reader has closed the pipe or connection"]);
}

#[test]
fn a_closed_consumer_ends_the_command_by_sigpipe() {
    let place = Place::new();
    let mut live = place.run("--tee copy").shell("echo $$ > pid; exec yes").start();
    live.prints("y\ny\n");
    live.stop_reading();
    live.dies_by(Signal::PIPE);
    assert!(!is_there(&place.text("pid")));
    assert_eq!(place.names(), ["pid"]);
}

#[test]
fn a_closed_consumer_of_a_count_ends_the_command_by_sigpipe() {
    let place = Place::new();
    let mut live = place.run("--count").shell("until [ -e go ]; do sleep 0.01; done").start();
    live.stop_reading();
    fs::write(place.path("go"), "").unwrap();
    live.dies_by(Signal::PIPE);
}

#[test]
fn signals_end_the_command_after_its_children_and_files_are_gone() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new().file("old", "old\n");
        let line = "echo $$ > pid; echo one; exec sleep 60";
        let live = place.run("-o out --tee copy --tee old --hash sha256").shell(line).start();
        place.wait_for("pid");
        live.send(signal);
        live.dies_by(signal);
        assert!(!is_there(&place.text("pid")));
        assert_eq!(place.names(), ["old", "pid"]);
        assert_eq!(place.text("old"), "old\n");
    }
}

#[test]
fn other_fatal_signals_end_the_command_in_the_same_way() {
    for signal in [Signal::QUIT, Signal::XCPU, Signal::ALARM, Signal::USR1, Signal::USR2, Signal::PROF] {
        let place = Place::new().file("old", "old\n");
        let line = "ulimit -c 0; echo $$ > pid; echo one; exec sleep 60";
        let mut command = place.run("-o out --tee old").shell(line).into_command();
        command.stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        place.wait_for("pid");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let status = until("it ends", || child.try_wait().unwrap());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{stderr}");
        assert!(stderr.starts_with(&format!("millstream: ended by signal {} (SIG", signal.as_raw())), "{stderr}");
        assert!(!is_there(&place.text("pid")));
        let names: Vec<_> = place.names().into_iter().filter(|name| !name.starts_with("core")).collect();
        assert_eq!(names, ["old", "pid"]);
        assert_eq!(place.text("old"), "old\n");
    }
}

#[test]
fn a_file_beyond_the_limit_on_its_size_is_an_error() {
    let place = Place::new().file("in", "x".repeat(100_000)).file("old", "old\n");
    for (words, names) in [
        ("run in -o out", vec!["in", "old"]),
        ("run in -o old", vec!["in", "old"]),
        ("run -o out -- cat in", vec!["in", "old"]),
    ] {
        let command = place.words(words).into_command();
        let line = format!("ulimit -f 8; exec {} {words}", command.get_program().display());
        let mut shell = std::process::Command::new("sh");
        let seen = shell.args(["-c", &line]).current_dir(place.path("")).output().unwrap();
        assert_eq!(seen.status.code(), Some(1), "{}", String::from_utf8_lossy(&seen.stderr));
        assert!(String::from_utf8_lossy(&seen.stderr).contains("File too large"));
        assert_eq!(place.names(), names);
        assert_eq!(place.text("old"), "old\n");
    }
    // The commands have the default signal handling.
    place.run("").shell("kill -XFSZ $$").fails().complains_of(&["signal 25 (SIGXFSZ)"]);
}

#[test]
fn a_killed_run_leaves_no_new_file() {
    let place = Place::new();
    let live = place.run("-o out --tee copy.gz").shell("echo $$ > pid; echo one; exec sleep 60").start();
    let pid = place.wait_for("pid");
    live.send(Signal::KILL);
    live.dies_by(Signal::KILL);
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap(),
        Signal::KILL,
    );
    assert_eq!(place.names(), ["pid"]);
}

#[test]
fn a_signal_ends_every_wait() {
    // The run waits for a source that is a pipe, for a source with its own thread, for a consumer, or for the rate
    // limit.
    for options in ["", "--read-ahead on", "--rate-limit 1"] {
        let place = Place::new();
        let live = place.run(options).shell("echo $$ > pid; seq 1 100000; exec sleep 60").start();
        place.wait_for("pid");
        live.send(Signal::TERM);
        live.dies_by(Signal::TERM);
        assert!(!is_there(&place.text("pid")), "{options}");
    }
}

#[test]
fn a_signal_interrupts_the_opening_of_a_source() {
    let place = Place::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let mut live = place.run("fifo -o out").start();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(live.is_running());
    live.send(Signal::INT);
    live.dies_by(Signal::INT);
    assert_eq!(place.names(), ["fifo"]);
}

#[test]
fn a_command_that_ignores_signals_is_ended_too() {
    let place = Place::new();
    let live = place.run("").shell("trap '' TERM INT PIPE; echo $$ > pid; while :; do sleep 60; done").start();
    place.wait_for("pid");
    live.send(Signal::TERM);
    live.dies_by(Signal::TERM);
    assert!(!is_there(&place.text("pid")));
}

#[test]
fn the_second_signal_ends_the_command_immediately() {
    let place = Place::new();
    let mut live = place.run("").shell("trap '' TERM INT PIPE; echo $$ > pid; while :; do sleep 60; done").start();
    let pid = place.wait_for("pid");
    live.send(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(live.is_running(), "the command has two seconds to end");
    live.send(Signal::INT);
    live.stop_reading();
    let seen = live.ends();
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()));
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

#[test]
fn a_ctrl_c_that_also_kills_the_command_is_not_its_failure() {
    let place = Place::new();
    let mut command = place.run("").shell("echo $$ > pid; exec sleep 60").into_command();
    // It runs in a separate process group, as a shell's foreground job does.
    let mut child = command.process_group(0).stderr(std::process::Stdio::piped()).spawn().unwrap();
    place.wait_for("pid");
    rustix::process::kill_process_group(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{said}");
    assert_eq!(said, "");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_millstream");
    let script = format!(
        "trap '' HUP; exec {program} run -o out -- sh -c 'echo $PPID > pid; until [ -e go ]; do sleep 0.01; done; echo one'"
    );
    let mut command = std::process::Command::new("sh");
    let mut child = command.args(["-c", &script]).current_dir(place.path("")).spawn().unwrap();
    let pid = rustix::process::Pid::from_raw(place.wait_for("pid").trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write(place.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(place.text("out"), "one\n");
}
