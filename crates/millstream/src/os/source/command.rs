//! Reads the standard output of a command, or of the last command of a pipeline.

use std::os::fd::BorrowedFd;

use super::fd::FdSource;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::command::{Command, Running, Stopping, abandon, stop_all, wait_all};
use crate::source::{ByteSource, Nature};

/// Reads a pipeline of one or more commands, all of which must succeed.
pub(crate) struct CommandSource {
    // This field comes before the commands: they are stopped when dropped, and the pipe must be closed by then.
    pipe: FdSource,
    /// Empty once they are being stopped.
    commands: Vec<Running>,
    stopping: Option<Stopping>,
}

impl CommandSource {
    /// Starts the commands, each of which reads the output of the previous one.
    pub(crate) fn start(commands: Vec<Command>) -> Result<CommandSource> {
        for command in &commands {
            command.check()?;
        }
        let mut running = Vec::with_capacity(commands.len());
        let mut output = None;
        for command in commands {
            let (started, pipe) = match output.take() {
                None => command.spawn_source()?,
                Some(input) => command.spawn_link(input)?,
            };
            running.push(started);
            output = Some(pipe);
        }
        let Some(output) = output else {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found("an empty pipeline")
                .with_expected("at least one command"));
        };
        Ok(CommandSource { pipe: FdSource::new(output.into())?, commands: running, stopping: None })
    }
}

impl ByteSource for CommandSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        self.pipe.read(space, wait)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        match self.stopping {
            None => wait_all(&mut self.commands, wait, ends),
            Some(_) => Err(Error::new(ErrorKind::Closed).with_found("a command that was stopped")),
        }
    }

    fn stop(&mut self) {
        if self.stopping.is_none() {
            self.stopping = Some(Stopping::start(std::mem::take(&mut self.commands)));
        }
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        let CommandSource { pipe, mut commands, stopping } = *self;
        drop(pipe);
        ends.extend(stop_all(&mut commands));
        ends.extend(stopping.into_iter().flat_map(Stopping::finish));
    }

    fn abandon(self: Box<Self>) {
        let CommandSource { pipe, commands, stopping } = *self;
        drop(pipe);
        abandon(commands, true);
        if let Some(stopping) = stopping {
            stopping.detach();
        }
    }

    fn nature(&self) -> Nature {
        self.pipe.nature()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.ready_fd()
    }

    fn pending(&self) -> usize {
        self.pipe.pending()
    }
}
