//! No started process remains, and no process that may continue is stopped.
//!
//! Each test marks its commands' processes by an argument that no other process has: a time to sleep.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::place::{Place, Words, until};

/// Returns a time to sleep, of ten minutes and more, that no other test uses.
fn nap() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("6{:02}.{:07}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// Returns the processes that have this among their arguments, alone or within a shell command.
fn with(nap: &str) -> Vec<Pid> {
    let ours = std::process::id();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).contains(nap)
    };
    pids.filter(|pid| *pid != ours && has(pid)).filter_map(|pid| Pid::from_raw(pid as i32)).collect()
}

#[track_caller]
fn none_is_left(nap: &str) {
    until(&format!("nothing with {nap} is left"), || with(nap).is_empty().then_some(()));
}

fn end(nap: &str) {
    for pid in with(nap) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A terminal: its controlling side, and its name.
fn pty() -> (fs::File, String) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    (controller.into(), name)
}

/// Opens a terminal for a program to run on.
fn open(terminal: &str) -> fs::File {
    fs::File::options().read(true).write(true).open(terminal).unwrap()
}

/// Starts the command in a separate session, with this terminal or none.
fn alone(words: Words, terminal: Option<&str>) -> Child {
    let command = words.into_command();
    let mut setsid = Command::new("setsid");
    setsid.args(terminal.map(|_| "--ctty")).arg(command.get_program()).args(command.get_args());
    setsid.current_dir(command.get_current_dir().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    setsid.stdin(terminal.map_or(Stdio::null(), |terminal| open(terminal).into()));
    setsid.spawn().unwrap() // it leads no group, and so becomes the command without forking
}

/// Three shells have exited, and each `sleep` that they started still runs, when the first copy fails.
#[test]
fn copies_that_exited_leave_no_process_when_another_one_fails() {
    let place = Place::new().file("in", (1..=60_000).map(|i| format!("{i}\n")).collect::<String>());
    let nap = nap();
    let each = format!("read a; if [ $a = 1 ]; then sleep .3; exit 3; else sleep {nap} & exit 0; fi");
    place.run("in -j4 --block 40K --each").word(each).fails();
    none_is_left(&nap);
}

#[test]
fn a_stopped_source_leaves_no_process() {
    let place = Place::new();
    let nap = nap();
    place.run("--stage take:1").shell(&format!("echo a; sleep {nap}")).succeeds().prints("a\n");
    none_is_left(&nap);
    place.run("").shell(&format!("sleep {nap} >/dev/null & echo a; exit 3")).fails();
    none_is_left(&nap);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut live = place.run("").shell(&format!("echo a; sleep {nap}")).start();
        live.prints("a\n");
        live.send(signal);
        live.dies_by(signal);
        none_is_left(&nap);
    }
}

#[test]
fn after_success_no_process_is_stopped() {
    let place = Place::new();
    let nap = nap();
    place.run("").shell("(sleep 0.2; echo late) & echo early").succeeds().prints("early\nlate\n");
    place.run("").shell(&format!("sleep {nap} >/dev/null 2>&1 & echo a")).succeeds().prints("a\n");
    assert_eq!(with(&nap).len(), 1);
    end(&nap);
}

#[test]
fn the_status_is_known_if_the_parent_ignores_sigchld() {
    let place = Place::new();
    for (line, status) in [("echo a", 0), ("echo a; exit 3", 1)] {
        let words = place.run("").shell(line).into_command();
        let mut command = Command::new("env");
        command.arg("--ignore-signal=CHLD").arg(words.get_program()).args(words.get_args());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(status), &b"a\n"[..]), "{said}");
        assert_eq!(said.contains("status 3"), status == 1, "{said}");
    }
}

/// The number of runs that are killed, which is larger in deep runs.
fn rounds() -> u32 {
    if std::env::var_os("MILLSTREAM_DEEP").is_some() { 200 } else { 20 }
}

/// The state of the run when it is killed.
fn busy(place: &Place, round: u32, nap: &str) -> Words {
    match round % 4 {
        0 => place.run("-o out").shell(&format!("echo a; sleep {nap} & sleep {nap}")),
        1 => place.run("in --block 4K -j4 --each").word(format!("cat; sleep {nap} & sleep {nap}")),
        2 => place.run("in --block 4K -j4 --round-robin --each").word(format!("sleep {nap} & cat; sleep {nap}")),
        _ => place.run("in --block 1K -j2 --each").word(format!("cat >/dev/null; exit 0 # {nap}")),
    }
}

/// The signal may arrive at any moment, even during the start.
#[test]
fn a_sigkill_leaves_no_process() {
    let place = Place::new().file("in", "0123456789\n".repeat(20_000));
    for round in 0..rounds() {
        let nap = nap();
        let (_controller, terminal) = pty();
        let mut child = alone(busy(&place, round, &nap), (round / 4 % 2 == 1).then_some(terminal.as_str()));
        thread::sleep(Duration::from_micros(u64::from(round * 7919 % 60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        none_is_left(&nap);
    }
}

/// A terminal that controls a separate session, in which an interactive shell runs.
struct Terminal {
    keys: fs::File,
    shown: Arc<Mutex<String>>,
    shell: Child,
}

impl Terminal {
    fn new(place: &Place) -> Terminal {
        let (keys, name) = pty();
        let mut shell = Command::new("setsid");
        shell.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]).current_dir(place.path(""));
        shell.env("PS1", "").env("TERM", "dumb").env("MILLSTREAM", env!("CARGO_BIN_EXE_millstream"));
        let shell = shell.stdin(open(&name)).stdout(open(&name)).stderr(open(&name)).spawn().unwrap();
        let (mut screen, shown) = (keys.try_clone().unwrap(), Arc::<Mutex<String>>::default());
        let text = shown.clone();
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
        });
        let mut terminal = Terminal { keys, shown, shell };
        terminal.types("stty -echo; echo re''ady\n");
        terminal.shows("ready");
        terminal
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text is shown, and discards the text shown before it.
    #[track_caller]
    fn shows(&mut self, part: &str) {
        let shown = self.shown.clone();
        let so_far = || shown.lock().unwrap().clone();
        let found = || {
            let mut text = shown.lock().unwrap();
            let end = text.find(part)? + part.len();
            text.drain(..end);
            Some(())
        };
        until(&format!("{part:?} is shown: {:?}", so_far()), found);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Records in a file that SIGINT arrived, and continues briefly.
const COUNTS: &str = "trap 'echo int >> ints' INT; echo begun > /dev/tty; for i in 1 2 3; do sleep 0.3; done";

#[test]
fn a_terminals_interrupt_reaches_each_command_once() {
    let place = Place::new().file("in", "1\n2\n");
    let mut terminal = Terminal::new(&place);
    for line in [
        format!("-- sh -c \"{COUNTS}\""),
        format!("--pipeline : -- sh -c \"{COUNTS}\" : cat"),
        format!("--shell \"{COUNTS}\""),
        format!("in --block 2 -j1 --each \"{COUNTS}\""),
    ] {
        let _ = fs::remove_file(place.path("ints"));
        terminal.types(&format!("$MILLSTREAM run --progress=never {line}; echo en''ded $?\n"));
        terminal.shows("begun");
        thread::sleep(Duration::from_millis(50));
        terminal.types("\x03");
        // The shell itself is interrupted together with its job, and discards the line.
        terminal.types("\necho st''ate\n");
        terminal.shows("state");
        until("the command has been interrupted", || fs::read_to_string(place.path("ints")).ok());
        thread::sleep(Duration::from_millis(300));
        assert_eq!(place.text("ints"), "int\n", "{line}");
    }
}

#[test]
fn processes_left_on_a_terminal_are_found() {
    let place = Place::new().file("in", "1\n2\n");
    let mut terminal = Terminal::new(&place);
    let nap = nap();
    for line in [
        format!("--stage take:1 -- sh -c 'echo a; (setsid sleep {nap} &); sleep {nap}'"),
        format!("-- sh -c '(setsid sleep {nap} >/dev/null 2>&1 &); echo a; exit 3'"),
        format!("--stage take:1 --pipeline : -- sh -c 'echo a; (setsid sleep {nap} &); sleep {nap}' : cat"),
        format!("--stage take:1 --shell 'echo a; (setsid sleep {nap} &); sleep {nap} | cat'"),
        format!(
            "in --block 2 -j2 --each 'read a; if [ $a = 1 ]; then sleep .2; exit 3; else sleep {nap} & exit 0; fi'"
        ),
    ] {
        // This is another part of the pipeline: it is in the same process group, but must not be stopped.
        let theirs = self::nap();
        terminal.types(&format!(
            "$MILLSTREAM run --progress=never {line} | (sleep {theirs} & cat; echo ov''er; wait) & :\n"
        ));
        terminal.shows("over");
        until("ours has ended", || with(&nap).iter().all(|pid| is_shell(*pid)).then_some(()));
        until(&format!("{line}: the other part runs"), || (!with(&theirs).is_empty()).then_some(()));
        end(&theirs);
    }
    // The run is killed.
    let line =
        format!("$MILLSTREAM run --progress=never -- sh -c 'echo $PPID > pid; (setsid sleep {nap} &); sleep {nap}'");
    terminal.types(&format!("{line} | cat\n"));
    let pid: i32 = place.wait_for("pid").trim().parse().unwrap();
    until("all run", || (with(&nap).len() >= 2).then_some(()));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    until("nothing is left", || with(&nap).iter().all(|pid| is_shell(*pid)).then_some(()));
}

/// Returns whether a process is the interactive shell, whose arguments contain the line.
fn is_shell(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with("bash\0--norc")
}

#[test]
fn a_job_can_be_stopped_and_continued() {
    let place = Place::new();
    let mut terminal = Terminal::new(&place);
    let line = "echo begun > /dev/tty; for i in 1 2 3 4 5; do sleep 0.1; done; echo fin''ished";
    terminal.types(&format!("$MILLSTREAM run --progress=never -- sh -c \"{line}\"\n"));
    terminal.shows("begun");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    thread::sleep(Duration::from_millis(700));
    assert!(!terminal.shown.lock().unwrap().contains("finished"), "its command goes on while it is stopped");
    terminal.types("fg\n");
    terminal.shows("finished");
    terminal.types("echo st''atus $?\n");
    terminal.shows("status 0");
}

#[test]
fn a_command_can_ask_on_the_terminal() {
    let place = Place::new().file("in", "1\n");
    let mut terminal = Terminal::new(&place);
    let asks = "printf 'pass''word? ' > /dev/tty; read word < /dev/tty; echo the word is $word";
    for line in
        [format!("-- sh -c \"{}\"", asks.replace('$', "\\$")), format!("in --each \"{}\"", asks.replace('$', "\\$"))]
    {
        terminal.types(&format!("$MILLSTREAM run --progress=never {line} | cat\n"));
        terminal.shows("password?");
        terminal.types("sesame\n");
        terminal.shows("the word is sesame");
    }
}

/// Like `less` in `| less`, the consumer reads keys from the terminal while the command writes, and exits first.
#[test]
fn a_pager_works() {
    let place = Place::new();
    let mut terminal = Terminal::new(&place);
    let nap = nap();
    let pager = "head -n 1; read key < /dev/tty; echo ke''y $key";
    let source = format!("echo li''ne; (sleep {nap} &); yes");
    terminal.types(&format!("$MILLSTREAM run --progress=never -- sh -c \"{source}\" | sh -c '{pager}'; echo en''d\n"));
    terminal.shows("line");
    terminal.types("q\n");
    terminal.shows("end");
    until("nothing is left", || with(&nap).iter().all(|pid| is_shell(*pid)).then_some(()));
}
