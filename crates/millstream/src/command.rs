//! Commands: how to start one, how it ended, how to stop it.
//!
//! A [`Command`] is an argument vector with its surroundings; no shell is involved. [`Running`] is a started one.
//! It promises: no zombie and no orphan of ours, whatever happens; its standard error never blocks it; and its
//! status is asked for, always.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::cancel::{CancelToken, Wait};
use crate::error::{CommandEnd, CommandStatus, Error, ErrorKind, Result, show_argv};
use input::Input;

mod input;

/// How much of a command's standard error is kept for the error that names it.
const STDERR_TAIL: usize = 4096;

/// How long a command that is to stop gets before SIGTERM, and again before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(1);

/// The size we ask for each pipe of ours. A larger pipe means fewer wake-ups, which are the main cost of reading
/// a command: 441 ms with the default, 274 ms with 1 MiB for the same work.
const PIPE_SIZE: usize = 1 << 20;

/// Where a command's standard input comes from.
#[derive(Debug, Default)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// Our own standard input.
    Inherit,
    /// This file descriptor.
    Fd(OwnedFd),
    /// These bytes, and then the end. It need not read all of them.
    Bytes(Arc<Vec<u8>>),
}

impl From<File> for Stdin {
    fn from(file: File) -> Stdin {
        Stdin::Fd(file.into())
    }
}

impl From<Vec<u8>> for Stdin {
    fn from(bytes: Vec<u8>) -> Stdin {
        Stdin::Bytes(Arc::new(bytes))
    }
}

impl From<&str> for Stdin {
    fn from(text: &str) -> Stdin {
        Stdin::from(text.as_bytes().to_vec())
    }
}

/// Where a command's standard output goes. Only for a command that is a sink: that of a source is read.
#[derive(Debug, Default)]
pub enum Stdout {
    /// Our own standard output.
    #[default]
    Inherit,
    /// `/dev/null`.
    Null,
    /// This file descriptor.
    Fd(OwnedFd),
}

impl From<File> for Stdout {
    fn from(file: File) -> Stdout {
        Stdout::Fd(file.into())
    }
}

/// Where a command's standard error goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stderr {
    /// Live to our own standard error, and its last 4 KiB into the error that reports a failure.
    #[default]
    Forward,
    /// Its last 4 KiB into the error that reports a failure, and nowhere else.
    Capture,
    /// It is our own standard error (a terminal stays a terminal); errors cannot quote it.
    Inherit,
    /// `/dev/null`.
    Null,
}

/// A command to start: a program and its arguments, as they are, without a shell.
///
/// ```
/// use millstream::{Command, Reader};
/// let command = Command::new(["sh", "-c", "echo $GREETING"]).env("GREETING", "hello").current_dir("/");
/// let mut reader = Reader::command(command)?;
/// assert_eq!(reader.next_line()?, Some(&b"hello"[..]));
/// assert_eq!(reader.next_line()?, None);
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Debug)]
pub struct Command {
    argv: Vec<OsString>,
    env: Vec<Env>,
    dir: Option<PathBuf>,
    stdin: Stdin,
    stdout: Stdout,
    stderr: Stderr,
    allow_failure: bool,
    group: Group,
}

#[derive(Debug)]
enum Env {
    Set(OsString, OsString),
    Remove(OsString),
    Clear,
}

/// Whom a signal of ours reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// The command alone. It stays in our process group, so that it may use the terminal and gets its Ctrl-C.
    Ours,
    /// The command and what it started.
    Own,
}

impl Command {
    /// A command from its argument vector: the program, then its arguments.
    pub fn new<I: IntoIterator<Item: Into<OsString>>>(argv: I) -> Command {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            dir: None,
            stdin: Stdin::default(),
            stdout: Stdout::default(),
            stderr: Stderr::default(),
            allow_failure: false,
            group: Group::Ours,
        }
    }

    /// `bash -o pipefail -c line`, in a process group of its own, so that stopping it stops all it started. Never pass it
    /// what a user typed or a file name: [`new`](Command::new) takes arguments as they are.
    ///
    /// ```
    /// use millstream::{Command, Reader};
    /// let mut reader = Reader::command(Command::shell("sort | uniq")?.stdin("b\na\nb\n"))?;
    /// assert_eq!(reader.next_line()?, Some(&b"a"[..]));
    /// assert_eq!(reader.next_line()?, Some(&b"b"[..]));
    /// assert_eq!(reader.next_line()?, None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where there is no bash: another shell would report success when the first
    /// command of a pipeline fails.
    pub fn shell(line: impl AsRef<OsStr>) -> Result<Command> {
        let line = line.as_ref();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bash = std::env::split_paths(&path).map(|dir| dir.join("bash")).find(|bash| bash.is_file());
        let Some(bash) = bash else {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_name(line.to_string_lossy())
                .with_found("no bash in PATH")
                .with_expected("bash, whose pipefail makes every command of a shell line count"));
        };
        let mut command = Command::new([bash.as_os_str(), "-o".as_ref(), "pipefail".as_ref(), "-c".as_ref(), line]);
        command.group = Group::Own;
        Ok(command)
    }

    /// Adds an argument, which may be a path.
    ///
    /// ```
    /// use millstream::{Command, Reader};
    /// let path = std::env::temp_dir();
    /// let mut reader = Reader::command(Command::new(["ls", "-d"]).arg(&path))?;
    /// assert_eq!(reader.next_line()?, Some(path.as_os_str().as_encoded_bytes()));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn arg(mut self, argument: impl Into<OsString>) -> Command {
        self.argv.push(argument.into());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        self.env.push(Env::Set(key.into(), value.into()));
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Command {
        self.env.push(Env::Remove(key.into()));
        self
    }

    /// Removes all environment variables set so far, inherited ones included.
    pub fn env_clear(mut self) -> Command {
        self.env.push(Env::Clear);
        self
    }

    /// Starts it in this directory.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Command {
        self.dir = Some(dir.into());
        self
    }

    /// Where its standard input comes from, `/dev/null` unless told otherwise. Of a sink's command, and of all
    /// but the first of a pipeline, it is ours to write, and this is not used.
    pub fn stdin(mut self, stdin: impl Into<Stdin>) -> Command {
        self.stdin = stdin.into();
        self
    }

    /// Where its standard output goes, if it is a sink's command.
    pub fn stdout(mut self, stdout: impl Into<Stdout>) -> Command {
        self.stdout = stdout.into();
        self
    }

    /// Where its standard error goes.
    pub fn stderr(mut self, stderr: Stderr) -> Command {
        self.stderr = stderr;
        self
    }

    /// Accepts a status other than 0, or death by a signal: it is reported by `close` and is no error.
    pub fn allow_failure(mut self) -> Command {
        self.allow_failure = true;
        self
    }

    /// The command line, for messages.
    pub(crate) fn name(&self) -> String {
        show_argv(&self.argv)
    }

    /// Starts it as a source: its standard output is the pipe that is returned.
    pub(crate) fn spawn_source(mut self) -> Result<(Running, PipeReader)> {
        let mut input = None;
        let stdin = match std::mem::take(&mut self.stdin) {
            Stdin::Null => Stdio::null(),
            Stdin::Inherit => Stdio::inherit(),
            Stdin::Fd(fd) => fd.into(),
            Stdin::Bytes(bytes) => {
                let (reader, writer) = big_pipe()?;
                input = Some((writer, bytes));
                reader.into()
            }
        };
        let (reader, writer) = big_pipe()?;
        let mut running = self.spawn(stdin, writer.into())?;
        if let Some((pipe, bytes)) = input {
            running.input = Input::start(pipe, bytes)?;
        }
        Ok((running, reader))
    }

    /// Starts it as a link of a pipeline: it reads `stdin` and writes to the pipe that is returned.
    pub(crate) fn spawn_link(self, stdin: PipeReader) -> Result<(Running, PipeReader)> {
        let (reader, writer) = big_pipe()?;
        Ok((self.spawn(stdin.into(), writer.into())?, reader))
    }

    /// Starts it as a sink: its standard input is the pipe that is returned.
    pub(crate) fn spawn_sink(mut self) -> Result<(Running, PipeWriter)> {
        let stdout = match std::mem::take(&mut self.stdout) {
            Stdout::Inherit => Stdio::inherit(),
            Stdout::Null => Stdio::null(),
            Stdout::Fd(fd) => fd.into(),
        };
        let (reader, writer) = big_pipe()?;
        Ok((self.spawn(reader.into(), stdout)?, writer))
    }

    fn spawn(self, stdin: Stdio, stdout: Stdio) -> Result<Running> {
        let Some((program, args)) = self.argv.split_first() else {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("a command of no words")
                .with_expected("the program's name, then its arguments"));
        };
        let mut std = std::process::Command::new(program);
        std.args(args).stdin(stdin).stdout(stdout);
        for change in &self.env {
            match change {
                Env::Set(key, value) => std.env(key, value),
                Env::Remove(key) => std.env_remove(key),
                Env::Clear => std.env_clear(),
            };
        }
        if let Some(dir) = &self.dir {
            std.current_dir(dir);
        }
        if self.group == Group::Own {
            std.process_group(0);
        }
        let stderr = match self.stderr {
            Stderr::Inherit => None,
            Stderr::Null => {
                std.stderr(Stdio::null());
                None
            }
            Stderr::Forward | Stderr::Capture => {
                let (reader, writer) = std::io::pipe()?;
                std.stderr(writer);
                Some(reader)
            }
        };
        let started = std.spawn();
        // `std` holds our copies of the child's ends: while they are open, no pipe of the child has an end.
        drop(std);
        let child = started.map_err(|error| {
            let error = Error::new(ErrorKind::CommandNotStarted).with_name(self.name()).with_io(error);
            match &self.dir {
                Some(dir) if !dir.is_dir() => error.with_found(format!("no directory {}", dir.display())),
                _ => error,
            }
        })?;
        let mut running = Running {
            exited: pidfd(&child),
            child,
            argv: self.argv,
            allow_failure: self.allow_failure,
            group: self.group,
            input: None,
            stderr: None,
            end: None,
        };
        if let Some(pipe) = stderr {
            running.stderr = Some(StderrWatch::start(pipe, self.stderr)?);
        }
        Ok(running)
    }
}

impl<W: Into<OsString>, const N: usize> From<[W; N]> for Command {
    fn from(argv: [W; N]) -> Command {
        Command::new(argv)
    }
}

impl<W: Into<OsString>> From<Vec<W>> for Command {
    fn from(argv: Vec<W>) -> Command {
        Command::new(argv)
    }
}

impl<W: Into<OsString> + Clone> From<&[W]> for Command {
    fn from(argv: &[W]) -> Command {
        Command::new(argv.iter().cloned())
    }
}

fn big_pipe() -> Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = std::io::pipe()?;
    enlarge_pipe(&reader);
    Ok((reader, writer))
}

/// Asks for a pipe of 1 MiB; what the system's limit for users allows is fine too. Returns its size, 0 if `fd`
/// is no pipe or the system does not say.
pub(crate) fn enlarge_pipe(fd: impl AsFd) -> usize {
    #[cfg(target_os = "linux")]
    {
        let mut size = rustix::pipe::fcntl_getpipe_size(&fd).unwrap_or(0);
        let mut wanted = PIPE_SIZE;
        while size > 0 && size < wanted {
            match rustix::pipe::fcntl_setpipe_size(&fd, wanted) {
                Ok(_) => size = rustix::pipe::fcntl_getpipe_size(&fd).unwrap_or(size),
                Err(_) => wanted /= 2,
            }
        }
        size
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (fd, PIPE_SIZE);
        0
    }
}

/// A file descriptor that polls as readable once the child has exited; `None` where the system has none.
fn pidfd(child: &Child) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = child;
        None
    }
}

/// A started command. Dropping it stops it as [`stop_all`] does.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    exited: Option<OwnedFd>,
    argv: Vec<OsString>,
    allow_failure: bool,
    group: Group,
    input: Option<Input>,
    stderr: Option<StderrWatch>,
    /// Set once the child has been waited for; from then on its process number may be somebody else's.
    end: Option<CommandEnd>,
}

impl Running {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// What `wait` ends with. Never the command's own failure: see [`verdict`].
    pub(crate) fn wait(&mut self, wait: &Wait) -> Result<CommandEnd> {
        if wait.is_needed() {
            if let Some(exited) = &self.exited {
                wait.readable(exited.as_fd())?;
            } else {
                while self.try_wait().is_none() {
                    wait.sleep(Duration::from_millis(1))?;
                }
            }
        }
        if self.end.is_none() {
            let status = self.child.wait();
            self.ended(status.map(Some));
        }
        Ok(self.end.clone().expect("a command that was waited for has ended"))
    }

    /// How it ended, if it has.
    fn try_wait(&mut self) -> Option<&CommandEnd> {
        if self.end.is_none() {
            let status = self.child.try_wait();
            self.ended(status);
        }
        self.end.as_ref()
    }

    fn ended(&mut self, status: std::io::Result<Option<std::process::ExitStatus>>) {
        let status = match status {
            Ok(None) => return,
            Ok(Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => CommandStatus::Exited(code),
                (None, Some(signal)) => CommandStatus::Signaled(signal),
                (None, None) => CommandStatus::Unknown,
            },
            // ECHILD: SIGCHLD is ignored, or somebody else has waited for it.
            Err(_) => CommandStatus::Unknown,
        };
        self.input = None;
        let stderr_tail = self.stderr.take().map(StderrWatch::tail).unwrap_or_default();
        self.end = Some(CommandEnd { argv: self.argv.clone(), status, stderr_tail });
    }

    /// Whether it has exited before `deadline`. It is not waited for yet: while it is not, its process number, and
    /// that of its group, is nobody else's.
    fn exits_before(&mut self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let exited = match &self.exited {
                _ if self.end.is_some() => true,
                Some(exited) => {
                    Wait::default().poll(Some((exited.as_fd(), PollFlags::IN)), Some(left)).unwrap_or(false)
                }
                None => self.try_wait().is_some(),
            };
            if exited || left.is_zero() {
                return exited;
            }
            if self.exited.is_none() {
                std::thread::sleep(left.min(Duration::from_millis(1)));
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if self.end.is_some() {
            return;
        }
        let pid = Pid::from_child(&self.child);
        // It fails if the process is gone already, or if we may not stop it.
        let _ = match (self.group, &self.exited) {
            #[cfg(target_os = "linux")]
            (Group::Ours, Some(pidfd)) => rustix::process::pidfd_send_signal(pidfd, signal),
            (Group::Ours, _) => rustix::process::kill_process(pid, signal),
            (Group::Own, _) => rustix::process::kill_process_group(pid, signal),
        };
    }

    /// Ends what is left of it and waits for it.
    fn bury(&mut self) -> CommandEnd {
        if self.group == Group::Own {
            // What it started and left behind.
            self.signal(Signal::KILL);
        }
        if !self.exits_before(Instant::now() + PATIENCE) {
            // We may not end it: it runs as somebody else. It cannot be waited for.
            self.ended(Err(std::io::ErrorKind::PermissionDenied.into()));
        }
        self.wait(&Wait::default()).expect("a plain wait cannot be interrupted")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.end.is_none() {
            stop_all(std::slice::from_mut(self));
        }
    }
}

/// Stops commands whose pipes we have closed: waits a second, asks with SIGTERM, waits a second, ends them with
/// SIGKILL. They are all gone and waited for afterwards.
pub(crate) fn stop_all(commands: &mut [Running]) {
    // Nobody asks how they ended.
    let _ = stop_all_after(commands, || (), &mut Vec::new());
}

/// The same, closing our side first by `close`: a command that had failed before that failed by itself.
pub(crate) fn stop_all_after(commands: &mut [Running], close: impl FnOnce(), ends: &mut Vec<CommandEnd>) -> Result<()> {
    let verdict = verdict(commands.iter_mut().filter_map(|c| {
        let allowed = c.allow_failure;
        c.try_wait().map(|end| (end.clone(), allowed))
    }));
    close();
    commands.iter_mut().for_each(|command| command.input = None);
    for signal in [None, Some(Signal::TERM)] {
        if let Some(signal) = signal {
            commands.iter().for_each(|command| command.signal(signal));
        }
        let deadline = Instant::now() + PATIENCE;
        for command in commands.iter_mut() {
            command.exits_before(deadline);
        }
    }
    for command in commands.iter_mut() {
        if !command.exits_before(Instant::now()) {
            command.signal(Signal::KILL);
        }
    }
    ends.extend(commands.iter_mut().map(Running::bury));
    verdict
}

/// Waits for all commands of a pipeline, adds how they ended to `ends`, and judges them.
pub(crate) fn wait_all(commands: &mut [Running], wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
    let ended = commands.iter_mut().map(|command| command.wait(wait)).collect::<Result<Vec<_>>>()?;
    ends.extend(ended.iter().cloned());
    verdict(ended.into_iter().zip(commands.iter().map(|command| command.allow_failure)))
}

/// An error if a command has failed. Of several the first is named, but one that died of SIGPIPE only if all
/// others are well: it died because a later one stopped reading.
fn verdict(ends: impl Iterator<Item = (CommandEnd, bool)>) -> Result<()> {
    let is_sigpipe = |end: &CommandEnd| end.status == CommandStatus::Signaled(Signal::PIPE.as_raw());
    let mut blamed: Option<CommandEnd> = None;
    for (end, allowed) in ends {
        if !allowed && !end.status.success() && blamed.as_ref().is_none_or(is_sigpipe) {
            if blamed.is_some() && is_sigpipe(&end) {
                continue;
            }
            blamed = Some(end);
        }
    }
    match blamed {
        None => Ok(()),
        Some(end) => {
            let kind = match end.status {
                CommandStatus::Unknown => ErrorKind::CommandStatusUnknown,
                _ => ErrorKind::CommandFailed,
            };
            Err(Error::new(kind).with_command(end))
        }
    }
}

/// The thread that reads a command's standard error: a full pipe must never block the command, and what it says
/// is to be seen when it says it.
#[derive(Debug)]
struct StderrWatch {
    ended: CancelToken,
    tail: Arc<Mutex<Vec<u8>>>,
    /// Hears of the thread when it has read all that the command wrote.
    complete: mpsc::Receiver<()>,
}

impl StderrWatch {
    fn start(pipe: PipeReader, mode: Stderr) -> Result<StderrWatch> {
        let ended = CancelToken::new()?;
        let wait = Wait::new(Some(ended.clone()), None);
        let tail = Arc::default();
        let (sender, complete) = mpsc::channel();
        let watched = Watched { pipe, mode, tail: Arc::clone(&tail) };
        std::thread::Builder::new().name("millstream-stderr".into()).spawn(move || watched.watch(&wait, &sender))?;
        Ok(StderrWatch { ended, tail, complete })
    }

    /// The last it said. The command has ended; a grandchild that holds its standard error open is not waited
    /// for: the thread goes on forwarding what it says. Nor is our own standard error, if nobody takes what we
    /// write there, for long.
    fn tail(self) -> Vec<u8> {
        self.ended.cancel();
        let _ = self.complete.recv_timeout(PATIENCE);
        std::mem::take(&mut *self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread's side of [`StderrWatch`].
struct Watched {
    pipe: PipeReader,
    mode: Stderr,
    tail: Arc<Mutex<Vec<u8>>>,
}

impl Watched {
    fn watch(self, wait: &Wait, complete: &mpsc::Sender<()>) {
        let mut chunk = vec![0; 16 << 10];
        let mut command_runs = true;
        loop {
            if command_runs && wait.readable(self.pipe.as_fd()).is_err() {
                // It has exited. What it wrote is in the pipe by now.
                let mut left = rustix::io::ioctl_fionread(&self.pipe).unwrap_or(0);
                while left > 0 {
                    match self.take(&mut chunk) {
                        0 => break,
                        taken => left = left.saturating_sub(taken as u64),
                    }
                }
                command_runs = false;
                let _ = complete.send(());
            }
            if self.take(&mut chunk) == 0 {
                let _ = complete.send(());
                return;
            }
        }
    }

    /// Reads once, keeps the tail and forwards it. Returns how many bytes there were.
    fn take(&self, chunk: &mut [u8]) -> usize {
        let taken = loop {
            match rustix::io::read(&self.pipe, &mut *chunk) {
                Err(rustix::io::Errno::INTR) => {}
                taken => break taken.unwrap_or(0),
            }
        };
        // Before it is forwarded, which may take as long as it likes.
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..taken]);
        let surplus = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..surplus);
        drop(tail);
        if self.mode == Stderr::Forward {
            forward(&chunk[..taken]);
        }
        taken
    }
}

/// Writes to our standard error; where that fails there is nobody to tell.
fn forward(mut bytes: &[u8]) {
    let stderr = rustix::stdio::stderr();
    while !bytes.is_empty() {
        match rustix::io::write(stderr, bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                if Wait::default().writable(stderr).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
