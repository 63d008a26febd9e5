//! A started command: waits for it, evaluates how it ended, and stops it together with the processes that it started.
//!
//! If the command succeeds, no process is stopped: a process that it left in the background may continue. If it fails
//! or is stopped, all processes within [`Reach`] are stopped too. This happens before the command is reaped: until then
//! its process ID, which is also its group's ID, cannot be reused.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::Success;
use super::children;
use super::guard::Watched;
use super::input::Input;
use super::left::{Left, PATIENCE};
use super::stderr::StderrWatch;
use super::stopwatch::Stopwatch;
use crate::error::{CommandEnd, CommandStatus, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use millstream_core::internal::show_argv;

/// The processes that are stopped with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only the command. It is in this process's group, so that it can use the terminal and receives its Ctrl-C.
    Command,
    /// The command's own process group.
    Group,
    /// Processes with this mark in their environment. They are in this process's group, together with others.
    Marked(String),
}

/// How a command is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(super) signal: Signal,
    /// The time between the signal and SIGKILL.
    pub(super) grace: Duration,
}

impl Stop {
    /// Returns the time that the command has to exit by itself after its pipes have been closed.
    fn patience(self) -> Duration {
        self.grace.min(PATIENCE)
    }
}

/// A started command. Dropping it stops it as [`stop_all`] does.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    exited: Option<OwnedFd>,
    argv: Vec<OsString>,
    success: Success,
    stop: Stop,
    /// When it got its stop signal.
    stopped: Option<Instant>,
    reach: Reach,
    guard: Option<Watched>,
    pub(super) input: Option<Input>,
    pub(super) stderr: Option<StderrWatch>,
    stopwatch: Option<Stopwatch>,
    /// Set when the command has been reaped; from then on its process ID may be reused.
    end: Option<CommandEnd>,
}

/// The state of a command that has not been reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Runs,
    Exited(CommandStatus),
}

impl Running {
    pub(super) fn new(
        child: Child,
        argv: Vec<OsString>,
        success: Success,
        stop: Stop,
        reach: Reach,
        guard: Option<Watched>,
    ) -> Running {
        Running {
            exited: pidfd(&child),
            child,
            argv,
            success,
            stop,
            stopped: None,
            reach,
            guard,
            input: None,
            stderr: None,
            stopwatch: None,
            end: None,
        }
    }

    /// Stores the times of the command when it ends.
    pub(super) fn measure(&mut self, stopwatch: Stopwatch) {
        if let Some(exited) = self.exited.as_ref().and_then(|exited| exited.try_clone().ok()) {
            stopwatch.watch(exited);
        }
        self.stopwatch = Some(stopwatch);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns whether and how the command has exited, without reaping it.
    fn look(&self, options: WaitIdOptions) -> Look {
        if let Some(end) = &self.end {
            return Look::Exited(end.status);
        }
        let status = loop {
            match waitid(WaitId::Pid(self.pid()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | options) {
                Err(Errno::INTR) => {}
                status => break status,
            }
        };
        match status {
            Ok(None) => Look::Runs,
            Ok(Some(status)) => Look::Exited(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => CommandStatus::Exited(code),
                (None, Some(signal)) => CommandStatus::Signaled(signal),
                (None, None) => CommandStatus::Unknown,
            }),
            // ECHILD: SIGCHLD is ignored, or another part of the program has waited for it.
            Err(_) => Look::Exited(CommandStatus::Unknown),
        }
    }

    /// Waits until the command has exited, without reaping it.
    ///
    /// # Errors
    /// Returns the error of `wait`, but never the command's own failure: see [`blame`].
    fn wait(&self, wait: &Wait) -> Result<CommandStatus> {
        if wait.is_needed() && self.end.is_none() {
            if let Some(exited) = &self.exited {
                wait.readable(exited.as_fd())?;
            } else {
                let start = Instant::now();
                while self.look(WaitIdOptions::NOHANG) == Look::Runs {
                    wait.expired(start)?;
                    wait.sleep(Duration::from_millis(1))?;
                }
            }
        }
        match self.look(WaitIdOptions::empty()) {
            Look::Exited(status) => Ok(status),
            Look::Runs => Ok(CommandStatus::Unknown), // another part of the program has waited for it
        }
    }

    fn runs(&self) -> bool {
        !self.exits_before(Instant::now())
    }

    /// Returns whether the command exits before `deadline`.
    fn exits_before(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let exited = match &self.exited {
                _ if self.end.is_some() => true,
                Some(exited) => {
                    Wait::default().poll(Some((exited.as_fd(), PollFlags::IN)), Some(left)).unwrap_or(false)
                }
                None => self.look(WaitIdOptions::NOHANG) != Look::Runs,
            };
            if exited || left.is_zero() {
                return exited;
            }
            if self.exited.is_none() {
                std::thread::sleep(left.min(Duration::from_millis(1)));
            }
        }
    }

    /// Signals the command and all processes within its reach, if its process ID cannot have been reused.
    fn signal(&self, signal: Signal) {
        if self.is_gone() {
            return;
        }
        // These calls fail if the process is already gone, or if this process may not signal it.
        match self.left() {
            Some(Left::Group(group)) => {
                let _ = rustix::process::kill_process_group(group, signal);
            }
            left => {
                #[cfg(target_os = "linux")]
                let sent = self.exited.as_ref().map(|pidfd| rustix::process::pidfd_send_signal(pidfd, signal));
                #[cfg(not(target_os = "linux"))]
                let sent: Option<()> = None;
                if sent.is_none() {
                    let _ = rustix::process::kill_process(self.pid(), signal);
                }
                if let Some(left) = left {
                    left.signal(signal);
                }
            }
        }
    }

    /// Sends the stop signal, unless the command has got it or has exited. It does not wait.
    pub(crate) fn stop(&mut self) {
        if self.stopped.is_none() && self.runs() {
            self.signal(self.stop.signal);
            self.stopped = Some(Instant::now());
        }
    }

    /// Returns whether the command's process ID may have been reused: the command was reaped, here or in another
    /// part of the program.
    fn is_gone(&self) -> bool {
        self.end.is_some() || self.look(WaitIdOptions::NOHANG) == Look::Exited(CommandStatus::Unknown)
    }

    /// Returns the processes that may still run after the command has ended.
    fn left(&self) -> Option<Left> {
        match &self.reach {
            Reach::Command => None,
            Reach::Group => Some(Left::Group(self.pid())),
            Reach::Marked(mark) => Some(Left::Marked(mark.clone())),
        }
    }

    /// Returns the error that kept input from the command, if there was one. The command has exited.
    fn unfed(&mut self) -> Option<Error> {
        let error = self.input.take()?.finish().err()?;
        Some(error.with_name(show_argv(&self.argv)))
    }

    /// Stops the command's processes that still run, unless they could be unrelated. The command has exited.
    fn end_left(&self) {
        match self.left() {
            Some(Left::Group(_)) if self.is_gone() => {}
            Some(left) if self.end.is_none() => left.end(self.stop.signal, self.stop.grace),
            _ => {}
        }
    }

    /// Reaps the command, which has exited, and stores its status.
    fn reap(&mut self) -> CommandEnd {
        if self.end.is_none() {
            // This happens before the command's number can be reused.
            if let Some(watched) = self.guard.take() {
                watched.over();
            }
            if let Some(stopwatch) = self.stopwatch.take() {
                stopwatch.stop(self.pid());
            }
            let status = children::reaping(&self.child, || self.child_wait());
            self.ended(status);
        }
        self.end.clone().expect("a command that was waited for has ended")
    }

    fn child_wait(&self) -> std::io::Result<std::process::ExitStatus> {
        loop {
            match rustix::process::waitpid(Some(self.pid()), rustix::process::WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(Some((_, status))) => return Ok(std::process::ExitStatus::from_raw(status.as_raw())),
                Ok(None) => return Err(std::io::ErrorKind::Other.into()),
            }
        }
    }

    fn ended(&mut self, status: std::io::Result<std::process::ExitStatus>) {
        let status = match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => CommandStatus::Exited(code),
                (None, Some(signal)) => CommandStatus::Signaled(signal),
                (None, None) => CommandStatus::Unknown,
            },
            // ECHILD: SIGCHLD is ignored, or another part of the program has waited for it.
            Err(_) => CommandStatus::Unknown,
        };
        self.input = None;
        let stderr_tail = self.stderr.take().map(StderrWatch::tail).unwrap_or_default();
        self.end = Some(CommandEnd { argv: self.argv.clone(), status, stderr_tail });
    }

    /// Stops the remaining processes of a command that is being stopped, and reaps it.
    fn reap_stopped(&mut self) -> CommandEnd {
        self.end_left();
        if !self.exits_before(Instant::now() + PATIENCE) {
            // This process may not signal the command, which runs as another user. So it cannot stop the command, and
            // must not wait for it.
            self.ended(Err(std::io::ErrorKind::PermissionDenied.into()));
        }
        self.reap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.end.is_none() {
            stop_all(std::slice::from_mut(self));
        }
    }
}

/// Returns a file descriptor that polls as readable once the child has exited, or `None` if the operating system has no
/// such descriptors.
fn pidfd(child: &Child) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::pidfd_open(Pid::from_child(child), rustix::process::PidfdFlags::empty()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = child;
        None
    }
}

/// Stops commands whose pipes have been closed, and returns how they ended. It waits a second, sends the command's stop
/// signal, waits for its grace period, and then kills the commands and their children with SIGKILL. Afterwards all of
/// them have been reaped. For a command that has got its signal, only the rest of the grace period is waited for.
pub(crate) fn stop_all(commands: &mut [Running]) -> Vec<CommandEnd> {
    commands.iter_mut().for_each(|command| command.input = None);
    let closed = Instant::now();
    commands.iter().filter(|command| command.stopped.is_none()).for_each(|command| {
        command.exits_before(closed + command.stop.patience());
    });
    commands.iter_mut().for_each(Running::stop);
    commands.iter().for_each(|command| {
        command.stopped.map(|stopped| command.exits_before(after(stopped, command.stop.grace)));
    });
    commands.iter().filter(|command| command.runs()).for_each(|command| command.signal(Signal::KILL));
    commands.iter_mut().map(Running::reap_stopped).collect()
}

/// Returns the end of a time. A time that overflows the clock is as good as a year.
fn after(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_secs(365 * 86_400))
}

/// Stops commands whose pipes have been closed, on a separate thread and without waiting. With `at_once`, the commands
/// get their stop signal before this returns, because the thread may end with the process.
pub(crate) fn abandon(mut commands: Vec<Running>, at_once: bool) {
    commands.retain(|command| command.end.is_none());
    if commands.is_empty() {
        return;
    }
    if at_once {
        // After this signal, the command has the whole time of a command that is closed.
        commands
            .iter()
            .filter(|command| command.stopped.is_none())
            .for_each(|command| command.signal(command.stop.signal));
    }
    // If no thread can be started, the commands are dropped, which waits.
    let _ = std::thread::Builder::new().name("millstream-stop".into()).spawn(move || stop_all(&mut commands));
}

/// Commands that a time limit has ended, and that a thread stops. The reader that reported the limit may remain open for
/// a long time, and the commands must not. Dropping it waits for the thread.
pub(crate) struct Stopping(Option<JoinHandle<Vec<CommandEnd>>>);

impl Stopping {
    /// Sends the stop signal, and lets a thread do the rest of [`stop_all`].
    pub(crate) fn start(mut commands: Vec<Running>) -> Stopping {
        commands.iter_mut().for_each(Running::stop);
        // If no thread can be started, the commands are dropped, which waits.
        let thread = std::thread::Builder::new().name("millstream-stop".into());
        Stopping(thread.spawn(move || stop_all(&mut commands)).ok())
    }

    /// Waits until all of them have been reaped, and returns how they ended.
    pub(crate) fn finish(mut self) -> Vec<CommandEnd> {
        self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// Does not wait for the thread.
    pub(crate) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for all commands of a pipeline, adds how they ended to `ends`, and reports the first failure.
pub(crate) fn wait_all(commands: &mut [Running], wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
    let statuses =
        commands.iter().map(|command| command.wait(wait).map(|status| (status, command.success.includes(status))));
    let blamed = blame(&statuses.collect::<Result<Vec<_>>>()?);
    // This is reported regardless of how the command ended: a command that did not get all of its input may not have
    // noticed that.
    let unfed = commands.iter_mut().find_map(Running::unfed);
    if blamed.is_some() || unfed.is_some() {
        commands.iter().for_each(Running::end_left);
    }
    ends.extend(commands.iter_mut().map(Running::reap));
    if let Some(error) = unfed {
        return Err(error);
    }
    match blamed.and_then(|blamed| Some((blamed, commands[blamed].end.clone()?))) {
        None => Ok(()),
        Some((blamed, end)) => {
            let kind = match end.status {
                CommandStatus::Unknown => ErrorKind::CommandStatusUnknown,
                _ => ErrorKind::CommandFailed,
            };
            let expected = commands[blamed].success.expected();
            let error = Error::new(kind).with_command(end);
            Err(match expected {
                Some(expected) => error.with_expected(expected),
                None => error,
            })
        }
    }
}

/// Returns the index of the first command of a pipeline that has failed, if any. Each item is a command's status and
/// whether it is a success.
///
/// A command that is killed because a later one stopped reading has not failed if all later ones succeeded (like the
/// `yes` in `yes | head`). If a later one failed, the killed command is not the cause.
fn blame(statuses: &[(CommandStatus, bool)]) -> Option<usize> {
    statuses.iter().enumerate().position(|(index, (status, is_success))| {
        let lost_its_reader = index + 1 < statuses.len() && is_broken_pipe(*status);
        !is_success && !lost_its_reader
    })
}

/// Returns whether the command wrote to a pipe without a reader: it was killed by SIGPIPE, or it exited with the status
/// by which a shell reports that for one of its commands.
fn is_broken_pipe(status: CommandStatus) -> bool {
    let signal = rustix::process::Signal::PIPE.as_raw();
    status == CommandStatus::Signaled(signal) || status == CommandStatus::Exited(128 + signal)
}
