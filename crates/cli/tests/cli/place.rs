//! Helpers for the tests: a [`Place`] with files, a command line that runs in it, and its result.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// The maximum duration of any step, which only detects hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A temporary directory, which is removed afterwards.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { directory: tempfile::tempdir().unwrap() }
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Place {
        fs::write(self.path(name), content).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the content of a file.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the content of a text file.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Returns the names of all files, so that a partial file would be detected.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Waits until a file has content, and returns it.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        until(&format!("{name} has something in it"), || {
            fs::read_to_string(self.path(name)).ok().filter(|text| !text.is_empty())
        })
    }

    /// Returns `millstream run` with these words, separated by blanks.
    pub(crate) fn run(&self, words: &str) -> Words {
        self.words("run").and(words)
    }

    /// Returns `millstream` with these words.
    pub(crate) fn words(&self, words: &str) -> Words {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        Words { command, stdin: None }.and(words)
    }
}

/// A command line.
pub(crate) struct Words {
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl Words {
    pub(crate) fn and(mut self, words: &str) -> Words {
        self.command.args(words.split_whitespace());
        self
    }

    /// Adds one word, which may contain blanks or be empty.
    pub(crate) fn word(mut self, word: impl Into<OsString>) -> Words {
        self.command.arg(word.into());
        self
    }

    /// Limits its own memory to this many MiB: heap, stacks, and mappings without a file.
    pub(crate) fn within(self, mebibytes: u64) -> Words {
        self.after(&format!("ulimit -d {}", mebibytes << 10))
    }

    /// Runs this line in a shell, whose process then becomes the command.
    pub(crate) fn after(self, line: &str) -> Words {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{line} && exec \"$0\" \"$@\"")]);
        command.arg(self.command.get_program()).args(self.command.get_args()).stdin(Stdio::null());
        if let Some(directory) = self.command.get_current_dir() {
            command.current_dir(directory);
        }
        Words { command, ..self }
    }

    /// Adds a command as the last source: a line for `sh`.
    pub(crate) fn shell(self, line: &str) -> Words {
        self.and("-- sh -c").word(line)
    }

    /// Sets a variable of its environment.
    #[cfg(feature = "remote")]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Words {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Words {
        self.stdin = Some(bytes.into());
        self
    }

    pub(crate) fn stdin_from(mut self, stdin: impl Into<Stdio>) -> Words {
        self.command.stdin(stdin);
        self
    }

    pub(crate) fn stdout_to(mut self, stdout: impl Into<Stdio>) -> Words {
        self.command.stdout(stdout);
        self
    }

    pub(crate) fn stderr_to(mut self, stderr: impl Into<Stdio>) -> Words {
        self.command.stderr(stderr);
        self
    }

    /// Starts it, so that it runs while the test continues.
    pub(crate) fn start(mut self) -> Live {
        assert!(self.stdin.is_none(), "standard input is for those that are waited for");
        Live { child: self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    /// Returns the command itself, for a test with a terminal.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Runs it to its end, and expects this exit status.
    pub(crate) fn exits(self, status: i32) -> Seen {
        let seen = self.ends();
        assert_eq!(seen.status.code(), Some(status), "ended {}, saying {:?}", seen.status, seen.stderr);
        seen
    }

    /// Runs it to its end, and expects success without messages.
    pub(crate) fn succeeds(self) -> Seen {
        self.exits(0).says("")
    }

    /// Runs it to its end, and expects a failure.
    pub(crate) fn fails(self) -> Seen {
        self.exits(1)
    }

    /// Runs it to its end, and expects that the command line is rejected.
    pub(crate) fn gets_refused(self) -> Seen {
        self.exits(2).prints("")
    }

    /// Runs it to its end.
    pub(crate) fn ends(mut self) -> Seen {
        let Some(bytes) = self.stdin.take() else { return Seen::of(self.command.output().unwrap()) };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&bytes); // the command may not want all of it
        });
        let seen = Seen::of(child.wait_with_output().unwrap());
        feeder.join().unwrap();
        seen
    }
}

/// The result of a command that has ended.
pub(crate) struct Seen {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Seen {
    fn of(output: std::process::Output) -> Seen {
        Seen { status: output.status, stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
    }

    /// Expects exactly this standard output.
    #[track_caller]
    pub(crate) fn prints(self, expected: impl AsRef<[u8]>) -> Seen {
        let expected = expected.as_ref();
        assert!(
            self.stdout == expected,
            "printed {:?}, not {:?}",
            String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(1000)]),
            String::from_utf8_lossy(&expected[..expected.len().min(1000)])
        );
        self
    }

    /// Expects exactly this standard error.
    #[track_caller]
    pub(crate) fn says(self, expected: &str) -> Seen {
        assert_eq!(self.stderr, expected);
        self
    }

    /// Expects one line of `millstream` on standard error, perhaps with a hint after it, that contain each of these
    /// parts.
    #[track_caller]
    pub(crate) fn complains_of(self, parts: &[&str]) -> Seen {
        assert!(self.stderr.starts_with("millstream: "), "{:?}", self.stderr);
        assert!(self.stderr.lines().skip(1).all(|line| line.starts_with("hint: ")), "{:?}", self.stderr);
        assert!(self.stderr.lines().count() <= 2, "{:?}", self.stderr);
        assert!(self.stderr.ends_with('\n'), "{:?}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {:?}", self.stderr);
        }
        self
    }
}

/// A command that is running.
pub(crate) struct Live {
    child: Child,
}

impl Live {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn send(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Reads exactly these bytes from its standard output.
    pub(crate) fn prints(&mut self, expected: &str) {
        let mut bytes = vec![0; expected.len()];
        self.child.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn stop_reading(&mut self) {
        self.child.stdout = None;
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the command has ended.
    pub(crate) fn ends(mut self) -> Seen {
        let status = until("the command ends", || self.child.try_wait().unwrap());
        let (mut stdout, mut stderr) = (Vec::new(), String::new());
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut stdout).unwrap();
        }
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Seen { status, stdout, stderr }
    }

    /// Waits until the command has ended, which this signal must cause, without messages.
    pub(crate) fn dies_by(self, signal: Signal) {
        let seen = self.ends();
        assert_eq!(seen.status.signal(), Some(signal.as_raw()), "ended {}, saying {:?}", seen.status, seen.stderr);
        assert_eq!(seen.stderr, "");
    }
}

impl Drop for Live {
    /// Kills the command, so that a failed test leaves no process running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a process exists, even if only as a zombie.
pub(crate) fn is_there(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

/// Waits until `ask` returns a value.
pub(crate) fn until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "timed out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns a file that stores the bytes written to it.
pub(crate) fn open_for_append(path: PathBuf) -> File {
    File::options().append(true).open(path).unwrap()
}
