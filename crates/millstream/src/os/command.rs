//! Starts and stops commands, and reports how they ended.
//!
//! A [`Command`] is an argument vector with its environment; no shell is involved. [`Running`] is a command that has
//! been started. It guarantees that the command leaves neither a zombie nor an orphan, that its standard error never
//! blocks it, and that its status is always collected.
//!
//! A command starts with an empty signal mask and default signal dispositions, regardless of those of this process.
//! Without a controlling terminal it gets its own process group, so that its children can be stopped with it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{CommandStatus, Error, ErrorKind, Result};
use crate::os::pinned::PinnedFile;
use guard::{Guard, MARK};
use input::Input;
pub use input::InputStream;
use left::PATIENCE;
use millstream_core::internal::{refuse, show_argv};
use running::{Reach, Stop};
pub(crate) use running::{Running, Stopping, abandon, stop_all, wait_all};
use rustix::process::Signal;
use start::Start;
use stderr::{STDERR_LIMIT, StderrWatch};
#[doc(hidden)]
pub use stopwatch::Stopwatch;

mod children;
#[doc(hidden)]
pub mod guard;
mod input;
mod left;
mod running;
#[allow(unsafe_code)] // code that runs in the child before `exec`
mod start;
mod stderr;
mod stopwatch;

/// The size that is requested for each pipe. A larger pipe means fewer wake-ups, which are the main cost of reading a
/// command: the same task takes 441 ms with the default size, and 274 ms with 1 MiB.
const PIPE_SIZE: usize = 1 << 20;

/// The source of a command's standard input.
#[derive(Debug, Default)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// The standard input of this process.
    Inherit,
    /// A file descriptor.
    Fd(OwnedFd),
    /// These bytes, followed by the end of the input. The command does not have to read all of them.
    Bytes(Arc<Vec<u8>>),
    /// A stream: see [`Stdin::read`] and [`Stdin::chunks`].
    Stream(InputStream),
    /// These bytes of a file, followed by the end of the input.
    #[doc(hidden)] // for the command line
    Part(Arc<PinnedFile>, Range<u64>),
}

impl Stdin {
    /// The bytes that `read` delivers, each as soon as it arrives, followed by the end of the input.
    ///
    /// A separate thread calls `read`. The command does not have to read all of the bytes. If `read` fails, the command
    /// gets the end of its input, and the reader of its output reports the error after all of that output, whether or
    /// not the command failed. A thread that waits in `read` when the command has ended remains until `read` returns.
    ///
    /// ```
    /// use millstream::{Command, Reader, Stdin};
    /// let file = std::io::Cursor::new("b\na\n"); // or a socket, or a decoder
    /// let mut reader = Reader::command(Command::new(["sort"]).stdin(Stdin::read(file)))?;
    /// assert_eq!(reader.next_line()?, Some(&b"a"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn read(read: impl Read + Send + 'static) -> Stdin {
        Stdin::Stream(InputStream::read(read, None))
    }

    /// Like [`read`](Stdin::read), but these tokens interrupt all waits of `read`: they are cancelled when the command
    /// needs no more input, and then `read` is waited for.
    #[doc(hidden)]
    pub fn interruptible(read: impl Read + Send + 'static, tokens: Vec<crate::CancelToken>) -> Stdin {
        Stdin::Stream(InputStream::read(read, Some(tokens)))
    }

    /// The pieces that an iterator returns, each as soon as it is returned, followed by the end of the input. See
    /// [`read`](Stdin::read); an iterator cannot fail, but if it panics, the reader of the command's output reports an
    /// error.
    ///
    /// ```
    /// use millstream::{Command, Reader, Stdin};
    /// let lines = (1..=3).rev().map(|number| format!("{number}\n"));
    /// let mut reader = Reader::command(Command::new(["sort"]).stdin(Stdin::chunks(lines)))?;
    /// assert_eq!(reader.next_line()?, Some(&b"1"[..]));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn chunks<I>(chunks: I) -> Stdin
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
        I::IntoIter: Send + 'static,
    {
        Stdin::Stream(InputStream::chunks(chunks.into_iter()))
    }
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

/// The destination of a command's standard output. It applies only to a command that is a sink: the output of a source
/// is read.
#[derive(Debug, Default)]
pub enum Stdout {
    /// The standard output of this process.
    #[default]
    Inherit,
    /// `/dev/null`.
    Null,
    /// A file descriptor.
    Fd(OwnedFd),
}

impl From<File> for Stdout {
    fn from(file: File) -> Stdout {
        Stdout::Fd(file.into())
    }
}

/// The destination of a command's standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stderr {
    /// It is forwarded live to the standard error of this process; the error that reports a failure also contains the
    /// last bytes ([`stderr_limit`](Command::stderr_limit)).
    #[default]
    Forward,
    /// The error that reports a failure contains the last bytes ([`stderr_limit`](Command::stderr_limit)), which are
    /// written nowhere else.
    Capture,
    /// The command inherits the standard error of this process (a terminal stays a terminal), so errors cannot quote
    /// what it wrote.
    Inherit,
    /// `/dev/null`.
    Null,
}

/// The process group of a command. It decides which processes a signal that stops the command reaches, and which
/// commands the terminal signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessGroup {
    /// A shell line, and any command of a process without a controlling terminal, gets a group of its own. Other
    /// commands inherit the group, so that they can read from the terminal.
    #[default]
    Auto,
    /// The command gets a group of its own. Processes that it started and that did not leave the group are stopped with
    /// it. A terminal's Ctrl-C does not reach it, and it cannot read from the terminal.
    Own,
    /// The command stays in the group of this process, with its terminal. Only the command itself is signalled.
    Inherit,
}

/// The exits of a command that are successes.
#[derive(Clone, Debug)]
struct Success {
    statuses: Vec<i32>,
    signals: Vec<i32>,
    any: bool,
}

impl Success {
    /// Only this status, which is a success by default.
    const STATUS: i32 = 0;

    /// Returns whether a command that ended like this has succeeded.
    fn includes(&self, status: CommandStatus) -> bool {
        self.any
            || match status {
                CommandStatus::Exited(status) => self.statuses.contains(&status),
                CommandStatus::Signaled(signal) => self.signals.contains(&signal),
                _ => false,
            }
    }

    /// Returns what was expected, unless that is the default.
    fn expected(&self) -> Option<String> {
        let listed = |name: &str, numbers: &[i32]| {
            let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
            (!numbers.is_empty()).then(|| format!("{name} {}", numbers.join(" or ")))
        };
        let parts = [listed("exit status", &self.statuses), listed("signal", &self.signals)];
        let is_default = self.statuses == [Success::STATUS] && self.signals.is_empty();
        (!is_default).then(|| parts.into_iter().flatten().collect::<Vec<_>>().join(", or "))
    }
}

/// A command to start: a program and its arguments, which are passed unchanged and without a shell.
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
    success: Success,
    stop_signal: i32,
    stop_grace: Duration,
    process_group: ProcessGroup,
    stderr_limit: usize,
    is_shell: bool,
    ends_with_us: bool,
    guard: Option<Arc<Guard>>,
    stopwatch: Option<Stopwatch>,
}

#[derive(Debug)]
enum Env {
    Set(OsString, OsString),
    Remove(OsString),
    Clear,
}

impl Command {
    /// Creates a command from its argument vector: the program, followed by its arguments.
    pub fn new<I: IntoIterator<Item: Into<OsString>>>(argv: I) -> Command {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            dir: None,
            stdin: Stdin::default(),
            stdout: Stdout::default(),
            stderr: Stderr::default(),
            success: Success { statuses: vec![Success::STATUS], signals: Vec::new(), any: false },
            stop_signal: libc::SIGTERM,
            stop_grace: PATIENCE,
            process_group: ProcessGroup::default(),
            stderr_limit: STDERR_LIMIT,
            is_shell: false,
            ends_with_us: false,
            guard: None,
            stopwatch: None,
        }
    }

    /// Creates the command `bash -o pipefail -c line` in its own process group, so that stopping it also stops its
    /// children. Never pass user input or a file name in `line`; [`new`](Command::new) passes arguments unchanged.
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
    /// Returns [`ErrorKind::Unsupported`] if bash is not installed: another shell would report success if the first
    /// command of a pipeline fails.
    pub fn shell(line: impl AsRef<OsStr>) -> Result<Command> {
        let line = line.as_ref();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bash = std::env::split_paths(&path).map(|dir| dir.join("bash")).find(|bash| bash.is_file());
        let Some(bash) = bash else {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_name(line.to_string_lossy())
                .with_found("no bash in PATH")
                .with_expected("bash, whose pipefail option detects the failure of any command in a shell line"));
        };
        let mut command = Command::new([bash.as_os_str(), "-o".as_ref(), "pipefail".as_ref(), "-c".as_ref(), line]);
        command.is_shell = true;
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

    /// Removes all environment variables set so far, including inherited ones.
    pub fn env_clear(mut self) -> Command {
        self.env.push(Env::Clear);
        self
    }

    /// Sets the directory in which the command is started.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Command {
        self.dir = Some(dir.into());
        self
    }

    /// Sets the source of its standard input, `/dev/null` by default. This is ignored for the command of a sink, and
    /// for all but the first command of a pipeline, because the library provides their input.
    pub fn stdin(mut self, stdin: impl Into<Stdin>) -> Command {
        self.stdin = stdin.into();
        self
    }

    /// Sets the destination of its standard output, for the command of a sink.
    pub fn stdout(mut self, stdout: impl Into<Stdout>) -> Command {
        self.stdout = stdout.into();
        self
    }

    /// Sets the destination of its standard error.
    pub fn stderr(mut self, stderr: Stderr) -> Command {
        self.stderr = stderr;
        self
    }

    /// Makes every exit status and every signal a success: `close` reports the status, but not as an error.
    pub fn allow_failure(mut self) -> Command {
        self.success.any = true;
        self
    }

    /// Lets the kernel kill the command (SIGKILL) when this process ends in any way, even by SIGKILL. This works only
    /// on Linux; it has no effect on other operating systems.
    ///
    /// It uses PR_SET_PDEATHSIG, which kills the command itself, but neither its children nor a command that changes
    /// its user or gains privileges. The command is started by a separate thread that lives as long as the process,
    /// because the kernel treats the end of the starting thread as the end of the process.
    pub fn ends_with_us(mut self) -> Command {
        self.ends_with_us = true;
        self
    }

    /// Lets a guard stop the command and its children if this process is killed.
    #[doc(hidden)]
    pub fn guarded(mut self, guard: Option<Arc<Guard>>) -> Command {
        self.guard = guard;
        self
    }

    /// Measures the times of the command.
    #[doc(hidden)]
    pub fn timed(mut self, stopwatch: Stopwatch) -> Command {
        self.stopwatch = Some(stopwatch);
        self
    }

    /// Checks that the options are valid, individually and together, and returns how the command is to be stopped.
    pub(crate) fn check(&self) -> Result<Stop> {
        let Success { statuses, signals, any } = &self.success;
        let listed = self.success.expected();
        let no_status = statuses.iter().find(|status| !(0..=255).contains(*status));
        let no_signal = signals.iter().find(|signal| !(1..=start::LAST_SIGNAL).contains(*signal));
        let stop_signal = Signal::from_named_raw(self.stop_signal);
        refuse(&[
            (self.argv.is_empty(), &"an empty command", &"the program's name, then its arguments"),
            (
                statuses.is_empty() && signals.is_empty(),
                &"no exit status and no signal as a success",
                &"at least one, such as 0",
            ),
            (
                no_status.is_some(),
                &format_args!("the exit status {}", no_status.unwrap_or(&0)),
                &"one that a process can have: 0 to 255",
            ),
            (
                no_signal.is_some(),
                &format_args!("the signal {}", no_signal.unwrap_or(&0)),
                &format_args!("the number of a signal: 1 to {}", start::LAST_SIGNAL),
            ),
            (
                stop_signal.is_none(),
                &format_args!("the signal {} to stop the command", self.stop_signal),
                &"the number of a signal that has a name, such as 15 for SIGTERM",
            ),
            (*any && listed.is_some(), &"any failure accepted, and a list of successes", &"one of them"),
            (
                self.is_shell && self.process_group == ProcessGroup::Inherit,
                &"a shell line in the group of this process",
                &"a group of its own, because a signal has to reach the commands of the line",
            ),
            (
                self.guard.is_some() && self.process_group != ProcessGroup::Auto,
                &"a process group for a guarded command",
                &"the group that the guard decides on",
            ),
        ])
        .map_err(|error| match self.argv.is_empty() {
            true => error,
            false => error.with_name(self.name()),
        })?;
        Ok(Stop { signal: stop_signal.unwrap_or(Signal::TERM), grace: self.stop_grace })
    }

    /// Returns the command line, for messages.
    pub(crate) fn name(&self) -> String {
        show_argv(&self.argv)
    }

    /// Starts the command as a source and returns the pipe of its standard output.
    pub(crate) fn spawn_source(mut self) -> Result<(Running, PipeReader)> {
        let mut input = None;
        let stdin = match std::mem::take(&mut self.stdin) {
            Stdin::Null => Stdio::null(),
            Stdin::Inherit => inherited(rustix::stdio::stdin()),
            Stdin::Fd(fd) => fd.into(),
            stdin @ (Stdin::Bytes(_) | Stdin::Stream(_) | Stdin::Part(..)) => {
                let (reader, writer) = big_pipe()?;
                // While there is a reader, writing raises no SIGPIPE, which would kill programs that do not ignore it.
                let kept = reader.try_clone()?;
                input = Some((writer, stdin, kept));
                reader.into()
            }
        };
        let (reader, writer) = big_pipe()?;
        let mut running = self.spawn(stdin, writer.into())?;
        running.input = match input {
            Some((pipe, Stdin::Bytes(bytes), _kept)) => Input::bytes(pipe, bytes)?,
            Some((pipe, Stdin::Stream(stream), _)) => Some(Input::stream(pipe, stream)?),
            Some((pipe, Stdin::Part(file, range), _)) => Some(Input::stream(pipe, InputStream::part(file, range))?),
            _ => None,
        };
        Ok((running, reader))
    }

    /// Starts the command as a link of a pipeline, which reads `stdin`, and returns the pipe of its standard output.
    pub(crate) fn spawn_link(self, stdin: PipeReader) -> Result<(Running, PipeReader)> {
        let (reader, writer) = big_pipe()?;
        Ok((self.spawn(stdin.into(), writer.into())?, reader))
    }

    /// Starts the command as a sink and returns the pipe of its standard input.
    pub(crate) fn spawn_sink(mut self) -> Result<(Running, PipeWriter)> {
        let stdout = match std::mem::take(&mut self.stdout) {
            Stdout::Inherit => inherited(rustix::stdio::stdout()),
            Stdout::Null => Stdio::null(),
            Stdout::Fd(fd) => fd.into(),
        };
        let (reader, writer) = big_pipe()?;
        Ok((self.spawn(reader.into(), stdout)?, writer))
    }

    fn spawn(self, stdin: Stdio, stdout: Stdio) -> Result<Running> {
        let stop = self.check()?;
        let mut std = std::process::Command::new(&self.argv[0]);
        std.args(&self.argv[1..]).stdin(stdin).stdout(stdout);
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
        let stderr = match self.stderr {
            Stderr::Inherit => {
                std.stderr(inherited(rustix::stdio::stderr()));
                None
            }
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
        let watched = self.guard.as_ref().map(Guard::watched);
        let mark = watched.as_ref().and_then(|watched| watched.mark());
        let reach = match &mark {
            Some(mark) => {
                // The inherited variables include the marks of an enclosing `millstream run`.
                let ours = std::env::var_os(MARK).filter(|marks| !marks.is_empty());
                std.env(MARK, ours.map_or(mark.into(), |ours| [ours.as_os_str(), mark.as_ref()].join(":".as_ref())));
                Reach::Marked(mark.clone())
            }
            None if self.has_own_group() => {
                std.process_group(0);
                Reach::Group
            }
            None => Reach::Command,
        };
        let start = Start { guard: watched.clone(), ends_with_us: self.ends_with_us };
        self.stopwatch.iter().for_each(Stopwatch::start);
        let child = start.spawn(std).map_err(|error| {
            let error = Error::new(ErrorKind::CommandNotStarted).with_name(self.name()).with_io(error);
            match &self.dir {
                Some(dir) if !dir.is_dir() => error.with_found(format!("no directory {}", dir.display())),
                _ => error,
            }
        })?;
        let mut running = Running::new(child, self.argv, self.success, stop, reach, watched);
        if let Some(stopwatch) = self.stopwatch {
            running.measure(stopwatch);
        }
        if let Some(pipe) = stderr {
            running.stderr = Some(StderrWatch::start(pipe, self.stderr, self.stderr_limit)?);
        }
        Ok(running)
    }

    fn has_own_group(&self) -> bool {
        match self.process_group {
            ProcessGroup::Auto => self.is_shell || !has_terminal(),
            ProcessGroup::Own => true,
            ProcessGroup::Inherit => false,
        }
    }
}

/// Options that all languages have. If one is invalid or conflicts with another one, starting the command fails with
/// [`ErrorKind::InvalidOption`].
impl Command {
    /// Sets the exit statuses that are successes, instead of 0 alone. Any other status is an error.
    ///
    /// ```
    /// use millstream::{Command, Reader};
    /// let grep = Command::new(["grep", "-c", "x"]).stdin("a\n").success_statuses([0, 1]); // 1: nothing was found
    /// let mut reader = Reader::command(grep)?;
    /// assert_eq!(reader.next_line()?, Some(&b"0"[..]));
    /// assert_eq!(reader.next_line()?, None);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn success_statuses(mut self, statuses: impl IntoIterator<Item = i32>) -> Command {
        self.success.statuses = statuses.into_iter().collect();
        self
    }

    /// Sets the signals that may kill the command without this being an error, by their numbers: none by default. A
    /// shell exits with status 128 plus the signal's number if a signal kills one of its commands.
    pub fn success_signals(mut self, signals: impl IntoIterator<Item = i32>) -> Command {
        self.success.signals = signals.into_iter().collect();
        self
    }

    /// Sets the number of the signal that stops the command when its reader or writer is closed or dropped before the
    /// end: 15, SIGTERM, by default. The command's pipes are closed first, and if it exits within a second (or within
    /// [`stop_grace`](Command::stop_grace), if that is shorter), it is not signalled. A command whose reader exceeds a time
    /// limit is signalled immediately.
    pub fn stop_signal(mut self, signal: i32) -> Command {
        self.stop_signal = signal;
        self
    }

    /// Sets how long the command may continue after that signal: 1 s by default. After that it is killed with SIGKILL,
    /// even if its reader, which has exceeded a time limit, is still open.
    pub fn stop_grace(mut self, grace: Duration) -> Command {
        self.stop_grace = grace;
        self
    }

    /// Sets the process group of the command, to which the signals that stop it are sent.
    pub fn process_group(mut self, group: ProcessGroup) -> Command {
        self.process_group = group;
        self
    }

    /// Sets how many bytes of the end of the command's standard error are kept for errors and reports: 4,096 by default.
    /// More of it is still forwarded. If standard error is inherited or discarded, nothing is kept.
    ///
    /// ```
    /// use millstream::{Command, Reader, Stderr};
    /// let command = Command::new(["sh", "-c", "echo 12345 >&2; exit 3"]).stderr(Stderr::Capture).stderr_limit(3);
    /// let error = Reader::command(command)?.next_line().unwrap_err();
    /// assert_eq!(error.command().unwrap().stderr_tail, b"45\n");
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn stderr_limit(mut self, bytes: usize) -> Command {
        self.stderr_limit = bytes;
        self
    }
}

/// A standard descriptor of this process for a child. It is a duplicate, because the host may have marked the descriptor
/// to be closed in children, as Node does.
fn inherited(fd: BorrowedFd<'_>) -> Stdio {
    fd.try_clone_to_owned().map_or_else(|_| Stdio::inherit(), Stdio::from)
}

/// Returns whether this process has a controlling terminal. Only commands in this process's group can use the terminal
/// and receive its Ctrl-C.
fn has_terminal() -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).is_ok()
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

/// Requests a pipe of 1 MiB, or of a smaller size if the kernel's limit for the user requires that. Returns the pipe's
/// size, or 0 if `fd` is not a pipe or the kernel does not report the size.
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
