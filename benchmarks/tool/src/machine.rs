//! The circumstances of a measurement.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::definition::Definition;
use crate::results::Machine;

/// Describes this machine. `root` is the root of the repository. The competitors are the programs that the definitions
/// need, found in `search_path`.
pub fn look(root: &Path, definitions: &[Definition], search_path: &OsStr) -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let system = rustix::system::uname();

    let git = |args: &[&str]| first_line(Command::new("git").args(args).current_dir(root));
    // Definitions and notes may change between a measurement and its commit; the measured code may not.
    let changed = git(&[
        "status",
        "--porcelain",
        "--",
        "crates",
        "bindings",
        "benchmarks/millstream",
        "benchmarks/competitors",
        "benchmarks/runners",
        "benchmarks/Cargo.lock",
        "Cargo.toml",
        "Cargo.lock",
    ])
    .is_some();
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or("unknown".into());

    let programs: BTreeSet<&String> =
        definitions.iter().flat_map(|definition| &definition.runners).flat_map(|runner| &runner.needs).collect();
    let version = |program: &str| if program == "go" { "version" } else { "--version" };
    let look_up = |program: &String| first_line(Command::new(program).arg(version(program)).env("PATH", search_path));
    let mut machine = Machine {
        time: first_line(Command::new("date").args(["-u", "+%Y-%m-%d-%H%M"])).unwrap_or("unknown".into()),
        processor: model.map_or("unknown", |(_, name)| name.trim()).to_owned(),
        cores: thread::available_parallelism().map_or(0, |cores| cores.get()),
        kernel: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
        compiler: compiler(),
        commit: if changed { format!("{commit} with uncommitted changes") } else { commit },
        others: running_beside_us(),
        competitors: programs.into_iter().filter_map(look_up).collect(),
        warnings: Vec::new(),
    };
    if machine.is_busy() {
        let others = machine.others;
        machine.warnings.push(format!(
            "other processes were running before the start ({others:.1} on average): the ratios are unreliable"
        ));
    }
    machine
}

/// The version that `rustc` prints.
pub fn compiler() -> String {
    first_line(Command::new("rustc").arg("--version")).unwrap_or("unknown".into())
}

/// The number of other processes that are running or waiting for a core: the mean of ten samples within a second. The
/// system's load average would still include a build that ended a minute ago.
fn running_beside_us() -> f64 {
    const LOOKS: u32 = 10;
    let running = |_| {
        thread::sleep(Duration::from_millis(100));
        // The fourth word is RUNNING/ALL. The running processes include this one.
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        load.split(' ').nth(3)?.split('/').next()?.parse::<u32>().ok()?.checked_sub(1)
    };
    f64::from((0..LOOKS).filter_map(running).sum::<u32>()) / f64::from(LOOKS)
}

/// Returns the first line that the command prints on standard output or standard error, if it succeeds.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let line = String::from_utf8_lossy(&text).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}
