//! Runs the runners of a definition in turn (A B A B …) and measures each as a tree of processes.
//!
//! Runners take turns so that a slow period of the machine affects all of them. The first round is a warm-up and is
//! not counted; in this round, bytes written to a pipe or to `/dev/null` are hashed. A runner that fails or gives a
//! wrong answer has no time: see [`Outcome::Wrong`]. A slow runner gets fewer rounds, and a run that takes
//! longer than the [limit](Plan::limit) is killed.

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use millstream_rounds::{Contender, Fixed, Turns, limited, take_turns};
use millstream_runners::input::Input;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::os::unix::process::CommandExt;
use wait4::Wait4;

use crate::answer::Answer;
use crate::definition::{Definition, Runner, Scale, Size, Stdin, fill};
use crate::destination::{self, Destination, Written};
use crate::goal::{Clock, Measure};
use crate::noise::{Noise, Watch, warnings};
use crate::results::{Outcome, Run};
use crate::store::{self, Store};

/// Locations on this machine.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the repository, which is the working directory of the runners.
    pub root: PathBuf,
    /// The directories of the programs of Millstream and of its competitors, which are searched before `PATH`.
    pub programs: Vec<PathBuf>,
    /// The directory in which inputs are created or reused, and outputs are stored until they have been checked.
    pub inputs: PathBuf,
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The size of the definition.
    pub scale: Scale,
    /// The number of counted rounds, unless the definition sets it. At the quick size, definitions never set it.
    pub rounds: usize,
    /// Whether to run one round first that is not counted.
    pub warm_up: bool,
    /// The time for all runs of one runner, including the warm-up. A runner without a counted run by then still gets
    /// one.
    pub budget: Duration,
    /// The time limit for one run, after which it is killed.
    pub limit: Duration,
}

impl Plan {
    /// The number of counted rounds of one runner, if there is time for all of them.
    pub fn runs(&self, definition: &Definition, runner: &Runner) -> usize {
        match self.scale {
            Scale::Full => definition.runs.unwrap_or(self.rounds).min(runner.runs.unwrap_or(usize::MAX)),
            Scale::Quick => self.rounds,
        }
    }

    /// The maximum number of turns of a definition, which is the length of the progress bar.
    pub fn turns(&self, definition: &Definition) -> usize {
        let turns = |runner| self.runs(definition, runner) + usize::from(self.warm_up);
        definition.runners.iter().map(turns).sum()
    }
}

/// The error of a run that was killed because it had taken this long.
#[derive(Debug)]
struct Overrun(Duration);

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended after {:?}", self.0)
    }
}

impl Error for Overrun {}

/// A runner of a definition, with the runs that count.
struct Process<'a> {
    definition: &'a Definition,
    runner: &'a Runner,
    size: &'a Size,
    place: &'a Place,
    store: Option<&'a Store>,
    input: Option<PathBuf>,
    /// Whether it has run before. Its bytes are hashed in the first run.
    known: bool,
    runs: Vec<Run>,
    noises: Vec<Noise>,
}

/// Measures one definition and returns one outcome for each runner, in the same order. Each turn, run or skipped, is
/// reported to `progress` with the runner's name.
///
/// # Errors
/// Fails if the input cannot be created. A failure of a runner is its outcome, not an error.
pub fn measure(definition: &Definition, plan: &Plan, place: &Place, progress: &dyn Fn(&str)) -> Result<Vec<Outcome>> {
    let store = start_store(definition, plan, place)?;
    let begin = |runner| Process::begin(definition, runner, plan, place, store.as_ref());
    let mut all = definition.runners.iter().map(begin).collect::<Result<Vec<_>>>()?;
    let mut budget = Fixed { budget: plan.budget, limit: plan.limit };
    take_turns(&mut all, &mut budget, |process| progress(&process.runner.name));
    Ok(all.into_iter().map(|turns| turns.fault.unwrap_or_else(|| turns.contender.measured())).collect())
}

/// Starts the store of a definition, if it has one and its programs exist, and writes its objects.
fn start_store(definition: &Definition, plan: &Plan, place: &Place) -> Result<Option<Store>> {
    let Some(settings) = &definition.store else { return Ok(None) };
    let path = place.search_path(&[]);
    if settings.needs().any(|program| is_missing(program, &path)) {
        return Ok(None);
    }
    let store = Store::start(settings, &place.inputs, &path)?;
    let size = definition.size(plan.scale);
    let input = size.input.as_ref().map(|input| input.make(&place.inputs)).transpose()?;
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c"]).arg(fill(&settings.prepare, size, input.as_deref(), None)?);
    store.add_environment(&mut bash);
    bash.env("PATH", &path).stdin(Stdio::null()).stdout(Stdio::null());
    let status = bash.current_dir(&place.root).status().context("bash")?;
    ensure!(status.success(), "the objects could not be written: {status}");
    Ok(Some(store))
}

fn is_missing(program: &str, path: &OsStr) -> bool {
    !env::split_paths(path).any(|directory| directory.join(program).is_file())
}

impl<'a> Process<'a> {
    fn begin(
        definition: &'a Definition,
        runner: &'a Runner,
        plan: &Plan,
        place: &'a Place,
        store: Option<&'a Store>,
    ) -> Result<Turns<Process<'a>>> {
        let size = definition.size(plan.scale);
        let path = place.search_path(&runner.programs);
        let made_by = size.input.as_ref().and_then(Input::needs);
        let mut needs: Vec<&str> = definition.store.iter().flat_map(store::Settings::needs).chain(made_by).collect();
        needs.extend(runner.needs.iter().map(String::as_str));
        let lacks = needs.into_iter().find(|program| is_missing(program, &path));
        let input = runner.input(size).filter(|_| lacks.is_none());
        let input = input.map(|input| input.make(&place.inputs)).transpose()?;
        let (known, runs, noises) = (false, Vec::new(), Vec::new());
        let process = Process { definition, runner, size, place, store, input, known, runs, noises };
        let turns = Turns::new(process, plan.runs(definition, runner), plan.warm_up);
        Ok(turns.with_fault(lacks.map(|program| Outcome::Skipped(program.to_owned()))))
    }

    fn run_once(&self, look: Look, limit: Duration) -> Result<Run> {
        let Process { definition, runner, size, place, .. } = *self;
        let output = place.inputs.join("output");
        let argv = runner.argv(size, self.input.as_deref(), Some(&output))?;
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env("PATH", place.search_path(&runner.programs)).current_dir(&place.root);
        if let Some(store) = self.store {
            store.add_environment(&mut command);
        }
        match (definition.stdin, &self.input) {
            (Stdin::Input, Some(path)) => command.stdin(File::open(path)?),
            _ => command.stdin(Stdio::null()),
        };
        if definition.destination == Destination::Tool {
            return answer(command, definition, runner, size, limit);
        }

        let right = size.output.as_ref().context("the definition has no expected output")?;
        match (definition.destination, look) {
            (Destination::File, _) => {
                command.stdout(destination::new_file(&output)?);
                time_written(command, limit, &output, right)
            }
            (Destination::Object, _) => {
                command.stdout(Stdio::null());
                let store = self.store.context("there is no store")?;
                time_written(command, limit, &store.bucket.join("output"), right)
            }
            (_, Look::Hash) => {
                let (run, written) = time_piped(command, limit, Written::take)?;
                written.check(right)?;
                Ok(run)
            }
            (Destination::Pipe, Look::Length) => {
                let (run, bytes) = time_piped(command, limit, destination::drain)?;
                right.check_length(bytes)?;
                Ok(run)
            }
            (Destination::Nowhere | Destination::Tool, Look::Length) => {
                command.stdout(Stdio::null());
                let (run, ()) = time(command, limit, |_| Ok(()))?;
                Ok(run)
            }
        }
    }

    fn measured(self) -> Outcome {
        let walls: Vec<f64> = self.runs.iter().map(|run| run.wall).collect();
        Outcome::Measured { warnings: warnings(&walls, &self.noises), runs: self.runs }
    }
}

impl Contender for Process<'_> {
    type Fault = Outcome;

    fn run(&mut self, limit: Duration, counts: bool) -> Result<Duration, Outcome> {
        let look = if self.known { Look::Length } else { Look::Hash };
        self.known = true;
        let watch = Watch::start();
        let run = self.run_once(look, limit);
        let took = watch.elapsed();
        match run {
            Ok(run) if counts => {
                self.noises.push(watch.noise(Duration::from_secs_f64(run.get(Measure::Cpu))));
                self.runs.push(run);
                Ok(took)
            }
            Ok(_) => Ok(took),
            Err(error) => Err(match error.downcast_ref::<Overrun>() {
                Some(Overrun(limit)) => Outcome::Over(limit.as_secs_f64()),
                None => Outcome::Wrong(format!("{error:#}")),
            }),
        }
    }
}

impl Place {
    /// `PATH`, preceded by the directories in `first` and the directories of Millstream's programs.
    pub fn search_path(&self, first: &[PathBuf]) -> OsString {
        let path = env::var_os("PATH").unwrap_or_default();
        // `tools/setup` installs the servers there.
        let servers = self.root.join(".servers/bin");
        let programs = first.iter().chain(&self.programs).cloned();
        let directories = programs.chain(env::split_paths(&path)).chain([servers]);
        env::join_paths(directories).unwrap_or(path)
    }
}

/// How thoroughly to check the bytes that a runner wrote to a pipe or to `/dev/null`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Every byte. This takes longer than writing them, so the run is not timed.
    Hash,
    /// Only their number, if they can be counted.
    Length,
}

/// Runs a program that writes a file, which is hashed and removed.
fn time_written(command: Command, limit: Duration, path: &Path, right: &Written) -> Result<Run> {
    let timed = time(command, limit, |_| Ok(()));
    let written = File::open(path).and_then(|file| {
        fs::remove_file(path)?;
        Written::take(file)
    });
    let (run, ()) = timed?;
    written.with_context(|| path.display().to_string())?.check(right)?;
    Ok(run)
}

/// Runs a program whose standard output is an answer.
fn answer(command: Command, definition: &Definition, runner: &Runner, size: &Size, limit: Duration) -> Result<Run> {
    let (mut run, output) = time_piped(command, limit, |mut pipe| {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).map(|_| output)
    })?;
    let mut answer = Answer::parse(runner.output, &output).context("the answer cannot be parsed")?;
    let inside = answer.take_inside();
    answer.check(&size.answers[&runner.answer])?;
    if definition.clock == Clock::Inside {
        let nanoseconds = inside.nanoseconds.context("the runner printed no ns=…")?;
        run.wall = nanoseconds as f64 / 1e9;
    }
    run.allocations = inside.allocations;
    Ok(run)
}

/// Runs the command to its end and passes the pipe from its standard output to `consume`.
fn time_piped<T>(
    mut command: Command,
    limit: Duration,
    consume: impl FnOnce(ChildStdout) -> io::Result<T>,
) -> Result<(Run, T)> {
    command.stdout(Stdio::piped());
    time(command, limit, |stdout| consume(stdout.expect("standard output is piped")))
}

/// Runs the command to its end or for at most `limit`; returns its cost and what `consume` returned.
///
/// # Errors
/// Fails if the command cannot be started, fails, or is killed because it has taken too long.
pub fn time<T>(
    mut command: Command,
    limit: Duration,
    consume: impl FnOnce(Option<ChildStdout>) -> io::Result<T>,
) -> Result<(Run, T)> {
    let name = command.get_program().display().to_string();
    // The command gets its own process group, so that the limit kills a whole pipeline.
    command.process_group(0);

    let start = Instant::now();
    let mut child = command.spawn().with_context(|| name.clone())?;
    let pid = Pid::from_child(&child);
    let stdout = child.stdout.take();
    let kill = || {
        // The process may have just exited. In that case, there is no process to kill.
        let _ = kill_process_group(pid, Signal::KILL);
    };
    let (worked, _, hung) = limited(limit, kill, || -> io::Result<_> {
        let consumed = consume(stdout)?;
        // The process stays a zombie until `wait4`, so its number cannot be reused while it may be killed.
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        Ok((consumed, start.elapsed()))
    });
    let (consumed, wall) = worked?;
    let usage = child.wait4()?;

    ensure!(!hung, Overrun(limit));
    ensure!(usage.status.success(), "{name}: {}", usage.status);
    let [wall, user, system] = [wall, usage.rusage.utime, usage.rusage.stime].map(|time| time.as_secs_f64());
    let peak = usage.rusage.maxrss;
    Ok((Run { wall, user, system, peak, allocations: None, system_calls: None }, consumed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::question;
    use crate::results::Met;

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
        assert!(run.user + run.system > 0.0);
        assert!(run.wall > 0.0 && run.peak > 0);
    }

    #[test]
    fn failure_and_hanging_are_errors() {
        let failed = time_piped(shell("echo count=1; exit 3"), MINUTE, destination::drain).unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        let hung = time_piped(shell("sleep 60 | sleep 60"), Duration::from_millis(50), destination::drain).unwrap_err();
        assert_eq!(hung.to_string(), "ended after 50ms");
    }

    fn place() -> Place {
        Place { root: "/".into(), programs: Vec::new(), inputs: env::temp_dir() }
    }

    const PLAN: Plan = Plan { scale: Scale::Full, rounds: 3, warm_up: true, budget: MINUTE, limit: MINUTE };

    fn outcomes(definition: &Definition, plan: &Plan) -> Vec<Outcome> {
        measure(definition, plan, &place(), &|_| ()).unwrap()
    }

    fn runs(outcome: &Outcome) -> &[Run] {
        let Outcome::Measured { runs, .. } = outcome else { panic!("{outcome:?}") };
        runs
    }

    fn definition(clock: &str, right: &str, wrong: &str) -> Definition {
        Definition::parse(&format!(
            r#"
            name = "test"
            question = "Does a wrong answer get a time?"
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
            millstream = "right"
            competitors = ["wrong"]
            goal = {{ at_most = 1.0 }}
            "#
        ))
        .unwrap()
    }

    #[test]
    fn wrong_answers_have_no_time_and_the_warm_up_is_not_counted() {
        let definition = definition("process", "count=1", "count=2");
        let outcomes = outcomes(&definition, &PLAN);
        assert_eq!(runs(&outcomes[0]).len(), 3);
        assert!(matches!(&outcomes[1], Outcome::Wrong(reason) if reason == "count=2 instead of 1"));
        assert!(matches!(&outcomes[2], Outcome::Skipped(program) if program == "no such program"));
    }

    #[test]
    fn the_inside_clock_is_the_runners_own() {
        let definition = definition("inside", "count=1 ns=1500 allocations=7", "count=1");
        let outcomes = outcomes(&definition, &PLAN);
        let run = &runs(&outcomes[0])[0];
        assert_eq!((run.wall, run.allocations), (1.5e-6, Some(7)));
        assert!(matches!(&outcomes[1], Outcome::Wrong(reason) if reason.contains("ns=")));
    }

    fn sleepers(runs: &str) -> Definition {
        let runner = |name: &str, seconds: f64| {
            format!(r#"{{ name = "{name}", command = "sleep {seconds}; echo count=1", {runs} }}"#)
        };
        Definition::parse(&format!(
            r#"
            name = "test"
            question = "Which runner sleeps longest?"
            full = {{ answers.all = {{ count = 1 }} }}
            quick = {{ answers.all = {{ count = 1 }} }}
            runner = [{}, {}]
            [[target]]
            work = "sleep"
            millstream = "long"
            competitors = ["short"]
            goal = {{ at_most = 1.0 }}
            "#,
            runner("long", 0.6),
            runner("short", 0.2),
        ))
        .unwrap()
    }

    #[test]
    fn who_sleeps_longer_is_slower_by_that() {
        let definition = sleepers("");
        let outcomes = outcomes(&definition, &PLAN);
        let question = question(&definition, Scale::Full, outcomes);
        let row = &question.targets[0].row;
        // The ratio is three, apart from the time to start bash; an overloaded machine can take twice as long for that.
        let ratio = row.value.unwrap();
        assert!(ratio > 1.5 && ratio <= 3.0, "{ratio}");
        assert_eq!(row.met, Met::No);
        // Sleeping uses no processor time.
        assert!(question.measured().all(|(_, runs, _)| runs.iter().all(|run| run.user + run.system < 0.2)));
    }

    #[test]
    fn who_takes_long_gets_fewer_rounds_and_is_not_waited_for() {
        let definition = sleepers("runs = 7");
        // The first run is always counted. The short runner has time for a second one.
        let budget = Duration::from_millis(1100);
        let spent = outcomes(&definition, &Plan { rounds: 7, budget, ..PLAN });
        assert_eq!(runs(&spent[0]).len(), 1);
        assert!((1..5).contains(&runs(&spent[1]).len()));
        let limit = Duration::from_millis(400);
        let ended = outcomes(&definition, &Plan { limit, ..PLAN });
        assert!(matches!(ended[0], Outcome::Over(seconds) if seconds == 0.4), "{:?}", ended[0]);
    }

    /// Two writers, one of which omits the last byte.
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
            millstream = "right"
            competitors = ["wrong"]
            goal = {{ at_most = 1.0 }}
            "#
        ))
        .unwrap()
    }

    /// The SHA-256 of a 1 and the constant pair, as printed by `sha256sum`.
    const RIGHT: &str = "2829a54db4d19d4c1e09b9b786cb866f4e3b6851ea0e5cbcb789bd71b729300d";

    #[test]
    fn wrong_bytes_are_found_wherever_they_go() {
        for destination in ["nowhere", "file", "pipe"] {
            let inputs = tempfile::tempdir().unwrap();
            let place = Place { inputs: inputs.path().to_owned(), ..place() };
            for (scale, rounds, warm_up) in [(Scale::Quick, 1, false), (Scale::Full, 2, true)] {
                let plan = Plan { scale, rounds, warm_up, ..PLAN };
                let outcomes = measure(&writers(destination), &plan, &place, &|_| ()).unwrap();
                assert_eq!(runs(&outcomes[0]).len(), rounds);
                assert_eq!(runs(&outcomes[1]).len(), 1);
                assert!(matches!(&outcomes[2], Outcome::Wrong(reason) if reason == "23 bytes instead of 24"));
                assert!(matches!(&outcomes[3], Outcome::Wrong(reason) if reason.starts_with("sha256=")));
            }
        }
    }
}
