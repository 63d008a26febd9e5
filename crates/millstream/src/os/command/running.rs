//! A started command: waiting for it, judging how it ended, and stopping it with what it has started.
//!
//! After success nothing is stopped: what a command left in the background may continue. After a failure, and when it
//! is stopped, everything within [`Reach`] is ended too. That happens before the command is reaped: until then its
//! process number, which is that of its group, cannot be reused.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::children;
use super::guard::Watched;
use super::input::Input;
use super::left::{Left, PATIENCE};
use super::stderr::StderrWatch;
use crate::error::{CommandEnd, CommandStatus, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use millstream_core::internal::show_argv;

/// What is ended with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing else. It is in our process group, so that it may use the terminal and receives its Ctrl-C.
    Command,
    /// Its process group, which is its own.
    Group,
    /// Processes with this mark in their environment: they are in our process group, together with others.
    Marked(String),
}

/// A started command. Dropping it stops it as [`stop_all`] does.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    exited: Option<OwnedFd>,
    argv: Vec<OsString>,
    allow_failure: bool,
    reach: Reach,
    guard: Option<Watched>,
    pub(super) input: Option<Input>,
    pub(super) stderr: Option<StderrWatch>,
    /// Set once it has been reaped; from then on its process number may be reused.
    end: Option<CommandEnd>,
}

/// What is known of a command that has not been reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Runs,
    Exited(CommandStatus),
}

impl Running {
    pub(super) fn new(
        child: Child,
        argv: Vec<OsString>,
        allow_failure: bool,
        reach: Reach,
        guard: Option<Watched>,
    ) -> Running {
        Running {
            exited: pidfd(&child),
            child,
            argv,
            allow_failure,
            reach,
            guard,
            input: None,
            stderr: None,
            end: None,
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether and how it has exited, without reaping it.
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

    /// Waits until it has exited. It is not reaped yet.
    ///
    /// # Errors
    /// The error of `wait`. Never the command's own failure: see [`blame`].
    fn wait(&self, wait: &Wait) -> Result<CommandStatus> {
        if wait.is_needed() && self.end.is_none() {
            if let Some(exited) = &self.exited {
                wait.readable(exited.as_fd())?;
            } else {
                while self.look(WaitIdOptions::NOHANG) == Look::Runs {
                    wait.sleep(Duration::from_millis(1))?;
                }
            }
        }
        match self.look(WaitIdOptions::empty()) {
            Look::Exited(status) => Ok(status),
            Look::Runs => Ok(CommandStatus::Unknown), // it was waited for
        }
    }

    /// Whether it has exited before `deadline`.
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

    /// Signals it and everything within its reach, while its process number is its own.
    fn signal(&self, signal: Signal) {
        if self.is_gone() {
            return;
        }
        // These fail if the process is already gone, or if we may not signal it.
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

    /// Whether its process number may have been reused: it was reaped, by us or by another part of the program.
    fn is_gone(&self) -> bool {
        self.end.is_some() || self.look(WaitIdOptions::NOHANG) == Look::Exited(CommandStatus::Unknown)
    }

    /// What it may leave behind.
    fn left(&self) -> Option<Left> {
        match &self.reach {
            Reach::Command => None,
            Reach::Group => Some(Left::Group(self.pid())),
            Reach::Marked(mark) => Some(Left::Marked(mark.clone())),
        }
    }

    /// It has exited: what kept its input from it, if anything.
    fn unfed(&mut self) -> Option<Error> {
        let error = self.input.take()?.finish().err()?;
        Some(error.with_name(show_argv(&self.argv)))
    }

    /// It has exited: ends what it has left behind, unless that could be unrelated.
    fn end_left(&self) {
        match self.left() {
            Some(Left::Group(_)) if self.is_gone() => {}
            Some(left) if self.end.is_none() => left.end(PATIENCE),
            _ => {}
        }
    }

    /// It has exited: reaps it and stores its status.
    fn reap(&mut self) -> CommandEnd {
        if self.end.is_none() {
            // Before its number can be reused.
            if let Some(watched) = self.guard.take() {
                watched.over();
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

    /// It was to be stopped: ends what is left of it and reaps it.
    fn bury(&mut self) -> CommandEnd {
        self.end_left();
        if !self.exits_before(Instant::now() + PATIENCE) {
            // We may not signal it: it runs as another user. It cannot be waited for.
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

/// A file descriptor that polls as readable once the child has exited; `None` if the system has none.
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

/// Stops commands whose pipes we have closed, and returns how they ended: waits a second, sends SIGTERM, waits a
/// second, then kills them and what they have started with SIGKILL. They are all gone and reaped afterwards.
pub(crate) fn stop_all(commands: &mut [Running]) -> Vec<CommandEnd> {
    commands.iter_mut().for_each(|command| command.input = None);
    for signal in [None, Some(Signal::TERM)] {
        if let Some(signal) = signal {
            commands.iter().filter(|command| !command.exits_before(Instant::now())).for_each(|command| {
                command.signal(signal);
            });
        }
        let deadline = Instant::now() + PATIENCE;
        for command in commands.iter() {
            command.exits_before(deadline);
        }
    }
    for command in commands.iter() {
        if !command.exits_before(Instant::now()) {
            command.signal(Signal::KILL);
        }
    }
    commands.iter_mut().map(Running::bury).collect()
}

/// Stops commands whose pipes we have closed, without waiting: a separate thread does it. `at_once`: they get SIGTERM
/// before this returns, since the thread may end with the process.
pub(crate) fn abandon(mut commands: Vec<Running>, at_once: bool) {
    commands.retain(|command| command.end.is_none());
    if commands.is_empty() {
        return;
    }
    if at_once {
        commands.iter().for_each(|command| command.signal(Signal::TERM));
    }
    // Without a thread they are dropped, which waits.
    let _ = std::thread::Builder::new().name("millstream-stop".into()).spawn(move || stop_all(&mut commands));
}

/// Waits for all commands of a pipeline, adds how they ended to `ends`, and judges them.
pub(crate) fn wait_all(commands: &mut [Running], wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
    let statuses = commands.iter().map(|command| Ok((command.wait(wait)?, command.allow_failure)));
    let blamed = blame(&statuses.collect::<Result<Vec<_>>>()?);
    // However it ended: a command that did not get all of its input may not have noticed.
    let unfed = commands.iter_mut().find_map(Running::unfed);
    if blamed.is_some() || unfed.is_some() {
        commands.iter().for_each(Running::end_left);
    }
    ends.extend(commands.iter_mut().map(Running::reap));
    if let Some(error) = unfed {
        return Err(error);
    }
    match blamed.and_then(|blamed| commands[blamed].end.clone()) {
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

/// Which command of a pipeline has failed, if any; the first of several. For each: its status, and whether it may fail.
///
/// A command killed because a later one stopped reading has not failed if all later ones succeeded (the `yes` of `yes |
/// head`), and is not the cause if one of them failed.
fn blame(statuses: &[(CommandStatus, bool)]) -> Option<usize> {
    statuses.iter().enumerate().position(|(index, (status, may_fail))| {
        let lost_its_reader = index + 1 < statuses.len() && is_broken_pipe(*status);
        !status.success() && !may_fail && !lost_its_reader
    })
}

/// Whether it wrote to a pipe that has no reader: SIGPIPE, or the status with which a shell reports that of one of its
/// commands.
fn is_broken_pipe(status: CommandStatus) -> bool {
    let signal = rustix::process::Signal::PIPE.as_raw();
    status == CommandStatus::Signaled(signal) || status == CommandStatus::Exited(128 + signal)
}
