//! Reads the standard output of a command, or of the last command of a pipeline.

use std::os::fd::BorrowedFd;

use super::fd::FdSource;
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::command::{Command, Running, abandon, stop_all, wait_all};
use crate::source::{ByteSource, Nature};

/// Reads a pipeline of one or more commands, all of which must succeed.
pub(crate) struct CommandSource {
    // This field comes before the commands: they are stopped when dropped, and the pipe must be closed by then.
    pipe: FdSource,
    commands: Vec<Running>,
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
        Ok(CommandSource { pipe: FdSource::new(output.into())?, commands: running })
    }
}

impl ByteSource for CommandSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        self.pipe.read(space, wait)
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        wait_all(&mut self.commands, wait, ends)
    }

    fn stop(&mut self) {
        self.commands.iter_mut().for_each(Running::stop);
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        let CommandSource { pipe, mut commands } = *self;
        drop(pipe);
        ends.extend(stop_all(&mut commands));
    }

    fn abandon(self: Box<Self>) {
        let CommandSource { pipe, commands } = *self;
        drop(pipe);
        abandon(commands, true);
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
