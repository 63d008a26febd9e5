//! Runs the runners of a definition in turn (A B A B …) and measures each as a whole process tree.
//!
//! Turns, because a machine that becomes slower does so for everybody. One round at full size is a warm-up and
//! not counted; bytes whose destination is a pipe or nowhere are hashed in it. A runner that answers wrongly, fails or
//! hangs has no time at all: see [`Outcome::Wrong`].

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::os::unix::process::CommandExt;
use wait4::Wait4;

use crate::answer::Answer;
use crate::definition::{Clock, Definition, Measure, Runner, Scale, Size, Stdin};
use crate::destination::{self, Destination, Written};

/// Where things are on this machine.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the repository; runners start here.
    pub root: PathBuf,
    /// The directories of our own programs and of the rivals, looked up before `PATH`.
    pub programs: Vec<PathBuf>,
    /// Where inputs are made, or found again, and where outputs are while they are looked at.
    pub inputs: PathBuf,
    /// How long one run may take before it is ended and called wrong.
    pub limit: Duration,
}

/// What one run of one runner took.
#[derive(Clone, Debug)]
pub struct Run {
    /// See [`Clock`].
    pub wall: Duration,
    /// User time of the process and of all children it waited for.
    pub user: Duration,
    /// System time of the same.
    pub system: Duration,
    /// The largest resident set of any of them, in bytes.
    pub peak: u64,
    /// How often a pass over the input asked for memory, if the runner counts that.
    pub allocations: Option<u64>,
}

impl Run {
    /// The quantity as a number: seconds or bytes. An added stage is seen in two runs only, of which this is the time.
    pub fn get(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Wall | Measure::AddedStage(_) => self.wall.as_secs_f64(),
            Measure::Cpu => (self.user + self.system).as_secs_f64(),
            Measure::Peak => self.peak as f64,
        }
    }
}

/// What became of a runner.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Its counted runs, all with the right answer.
    Measured(Vec<Run>),
    /// It gave a wrong answer or none; the reason.
    Wrong(String),
    /// The machine lacks this program.
    Skipped(String),
}

/// Measures one definition: one outcome for each runner, in their order.
///
/// # Errors
/// The input cannot be made. What goes wrong with a runner is its outcome.
pub fn measure(definition: &Definition, scale: Scale, rounds: usize, place: &Place) -> Result<Vec<Outcome>> {
    let size = definition.size(scale);
    let path = place.search_path();
    let missing = |program: &&str| !env::split_paths(&path).any(|directory| directory.join(program).is_file());

    if let Some(program) = size.input.as_ref().and_then(|input| input.needs()).filter(missing) {
        return Ok(definition.runners.iter().map(|_| Outcome::Skipped(program.to_owned())).collect());
    }
    let input = size.input.as_ref().map(|input| input.make(&place.inputs)).transpose()?;

    let lacks = |runner: &Runner| runner.needs.iter().map(String::as_str).find(missing).map(str::to_owned);
    let start = |runner| lacks(runner).map_or(Outcome::Measured(Vec::new()), Outcome::Skipped);
    let mut outcomes: Vec<Outcome> = definition.runners.iter().map(start).collect();

    let warm_up = usize::from(scale == Scale::Full);
    for round in 0..rounds + warm_up {
        for (runner, outcome) in definition.runners.iter().zip(&mut outcomes) {
            let Outcome::Measured(runs) = outcome else { continue };
            if runner.runs.is_some_and(|most| round >= most + warm_up) {
                continue;
            }
            let look = if round == 0 { Look::Hash } else { Look::Length };
            match run_once(definition, runner, size, input.as_deref(), look, place) {
                Ok(run) if round >= warm_up => runs.push(run),
                Ok(_) => {}
                Err(error) => *outcome = Outcome::Wrong(format!("{error:#}")),
            }
        }
    }
    Ok(outcomes)
}

impl Place {
    /// `PATH` with our own programs in front.
    pub fn search_path(&self) -> OsString {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = self.programs.iter().cloned().chain(env::split_paths(&path));
        env::join_paths(directories).unwrap_or(path)
    }
}

/// How closely to look at bytes that a runner wrote to a pipe, or to nowhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// At each of them, which takes longer than writing them: the time of such a run is none.
    Hash,
    /// At their number, where they can be counted.
    Length,
}

fn run_once(
    definition: &Definition,
    runner: &Runner,
    size: &Size,
    input: Option<&Path>,
    look: Look,
    place: &Place,
) -> Result<Run> {
    let output = place.inputs.join("output");
    let argv = runner.argv(size, input, Some(&output))?;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("PATH", place.search_path()).current_dir(&place.root);
    match (definition.stdin, input) {
        (Stdin::Input, Some(path)) => command.stdin(File::open(path)?),
        _ => command.stdin(Stdio::null()),
    };
    if definition.destination == Destination::Tool {
        return answer(command, definition, runner, size, place);
    }

    let right = size.output.as_ref().context("nobody knows the right output")?;
    match (definition.destination, look) {
        (Destination::File, _) => {
            command.stdout(destination::new_file(&output)?);
            let timed = time(command, place.limit, |_| Ok(()));
            let written = Written::take(File::open(&output)?);
            fs::remove_file(&output)?;
            let (run, ()) = timed?;
            written?.check(right)?;
            Ok(run)
        }
        (_, Look::Hash) => {
            let (run, written) = time_piped(command, place.limit, Written::take)?;
            written.check(right)?;
            Ok(run)
        }
        (Destination::Pipe, Look::Length) => {
            let (run, bytes) = time_piped(command, place.limit, destination::drain)?;
            right.check_length(bytes)?;
            Ok(run)
        }
        (Destination::Nowhere | Destination::Tool, Look::Length) => {
            command.stdout(Stdio::null());
            let (run, ()) = time(command, place.limit, |_| Ok(()))?;
            Ok(run)
        }
    }
}

/// A run whose standard output is an answer.
fn answer(command: Command, definition: &Definition, runner: &Runner, size: &Size, place: &Place) -> Result<Run> {
    let (mut run, output) = time_piped(command, place.limit, |mut pipe| {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).map(|_| output)
    })?;
    let mut answer = Answer::parse(runner.output, &output).context("unreadable answer")?;
    let inside = answer.take_inside();
    answer.check(&size.answers[&runner.answer])?;
    if definition.clock == Clock::Inside {
        run.wall = Duration::from_nanos(inside.nanoseconds.context("the runner told no ns=…")?);
    }
    run.allocations = inside.allocations;
    Ok(run)
}

/// Runs the command to its end, with a pipe from its standard output to `consume`.
fn time_piped<T>(
    mut command: Command,
    limit: Duration,
    consume: impl FnOnce(ChildStdout) -> io::Result<T>,
) -> Result<(Run, T)> {
    command.stdout(Stdio::piped());
    time(command, limit, |stdout| consume(stdout.expect("standard output is piped")))
}

/// Runs the command to its end; what it took, and what `consume` made of its standard output.
fn time<T>(
    mut command: Command,
    limit: Duration,
    consume: impl FnOnce(Option<ChildStdout>) -> io::Result<T>,
) -> Result<(Run, T)> {
    let name = command.get_program().display().to_string();
    // Its own process group, so that the limit ends a whole pipeline.
    command.process_group(0);

    let start = Instant::now();
    let mut child = command.spawn().with_context(|| name.clone())?;
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let hangs = end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if hangs {
            // It may have ended just now: then there is nobody to kill, which is what we want.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        hangs
    });

    let consumed = consume(child.stdout.take())?;
    // The process stays a zombie until `wait4`, so its number cannot be reused while the watchdog may kill it.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let wall = start.elapsed();
    drop(ended);
    let hung = watchdog.join().expect("the watchdog does not panic");
    let usage = child.wait4()?;

    ensure!(!hung, "{name} was ended after {limit:?}");
    ensure!(usage.status.success(), "{name}: {}", usage.status);
    let (user, system, peak) = (usage.rusage.utime, usage.rusage.stime, usage.rusage.maxrss);
    Ok((Run { wall, user, system, peak, allocations: None }, consumed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        command
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_run_counts_its_children_too() {
        // The child burns processor time; the shell itself does not.
        let line = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); echo count=1";
        let (run, bytes) = time_piped(shell(line), MINUTE, destination::drain).unwrap();
        assert_eq!(bytes, 8);
        assert!(run.user + run.system > Duration::ZERO);
        assert!(run.wall > Duration::ZERO && run.peak > 0);
    }

    #[test]
    fn failure_and_hanging_are_errors() {
        let failed = time_piped(shell("echo count=1; exit 3"), MINUTE, destination::drain).unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        let hung = time_piped(shell("sleep 60 | sleep 60"), Duration::from_millis(50), destination::drain).unwrap_err();
        assert!(hung.to_string().contains("was ended after 50ms"), "{hung}");
    }

    fn place() -> Place {
        Place { root: "/".into(), programs: Vec::new(), inputs: env::temp_dir(), limit: MINUTE }
    }

    fn definition(clock: &str, right: &str, wrong: &str) -> Definition {
        Definition::parse(&format!(
            r#"
            name = "test"
            question = "Is a wrong answer ever fast?"
            clock = "{clock}"
            full = {{ answers.all = {{ count = 1 }} }}
            quick = {{ answers.all = {{ count = 1 }} }}
            runner = [
                {{ name = "right", command = ["echo", "{right}"] }},
                {{ name = "wrong", command = ["echo", "{wrong}"] }},
                {{ name = "absent", command = ["absent"], needs = ["no such program"] }},
            ]
            [[target]]
            work = "echo"
            ours = "right"
            rivals = ["wrong"]
            goal = {{ at_most = 1.0 }}
            "#
        ))
        .unwrap()
    }

    #[test]
    fn wrong_answers_have_no_time_and_the_warm_up_is_not_counted() {
        let definition = definition("process", "count=1", "count=2");
        let outcomes = measure(&definition, Scale::Full, 3, &place()).unwrap();
        assert!(matches!(&outcomes[0], Outcome::Measured(runs) if runs.len() == 3));
        assert!(matches!(&outcomes[1], Outcome::Wrong(reason) if reason == "count=2 instead of 1"));
        assert!(matches!(&outcomes[2], Outcome::Skipped(program) if program == "no such program"));
    }

    #[test]
    fn the_inside_clock_is_the_runners_own() {
        let definition = definition("inside", "count=1 ns=1500 allocations=7", "count=1");
        let outcomes = measure(&definition, Scale::Quick, 1, &place()).unwrap();
        let Outcome::Measured(runs) = &outcomes[0] else { panic!("{:?}", outcomes[0]) };
        assert_eq!((runs[0].wall, runs[0].allocations), (Duration::from_nanos(1500), Some(7)));
        assert!(matches!(&outcomes[1], Outcome::Wrong(reason) if reason.contains("ns=")));
    }

    /// Two writers, of which one forgets the last byte.
    fn writers(destination: &str) -> Definition {
        Definition::parse(&format!(
            r#"
            name = "test"
            question = "Is a lost byte ever fast?"
            destination = "{destination}"
            stdin = "input"
            full = {{ input = {{ pairs = {{ lines = 1, numbers = "constant" }} }}, output = {{ bytes = 24, sha256 = "{RIGHT}" }} }}
            quick = {{ input = {{ pairs = {{ lines = 1, numbers = "constant" }} }}, output = {{ bytes = 24, sha256 = "{RIGHT}" }} }}
            runner = [
                {{ name = "right", command = ["cat"] }},
                {{ name = "once", command = ["cat"], runs = 1 }},
                {{ name = "short", command = ["head", "-c", "23"] }},
                {{ name = "wrong", command = ["tr", "1", "2"] }},
            ]
            [[target]]
            work = "copy"
            ours = "right"
            rivals = ["wrong"]
            goal = {{ at_most = 1.0 }}
            "#
        ))
        .unwrap()
    }

    /// Of a 1 and the constant pair, as `sha256sum` says.
    const RIGHT: &str = "2829a54db4d19d4c1e09b9b786cb866f4e3b6851ea0e5cbcb789bd71b729300d";

    #[test]
    fn wrong_bytes_are_found_wherever_they_go() {
        for destination in ["nowhere", "file", "pipe"] {
            let inputs = tempfile::tempdir().unwrap();
            let place = Place { inputs: inputs.path().to_owned(), ..place() };
            for (scale, rounds) in [(Scale::Quick, 1), (Scale::Full, 2)] {
                let outcomes = measure(&writers(destination), scale, rounds, &place).unwrap();
                assert!(matches!(&outcomes[0], Outcome::Measured(runs) if runs.len() == rounds), "{:?}", outcomes[0]);
                assert!(matches!(&outcomes[1], Outcome::Measured(runs) if runs.len() == 1));
                assert!(matches!(&outcomes[2], Outcome::Wrong(reason) if reason == "23 bytes instead of 24"));
                assert!(matches!(&outcomes[3], Outcome::Wrong(reason) if reason.starts_with("sha256=")));
            }
        }
    }
}
