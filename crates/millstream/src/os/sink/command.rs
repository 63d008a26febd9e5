//! Writes to a command's standard input. The command must also succeed.

use std::ops::Range;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::command::{Command, Running, abandon, wait_all};
use crate::os::sink::fd::{FdSink, Handle};
use crate::sink::WriterEnd;
use crate::sink::block::Block;
use crate::sink::{Limits, Opened, Sink};

/// The time that a command has to exit after it closed its standard input, so that the error can state the reason.
const LAST_WORDS: Duration = Duration::from_secs(1);

struct CommandSink {
    /// `None` once closed. This field comes before `running`, so that dropping the sink closes the pipe first and the
    /// command gets the end of its input.
    pipe: Option<FdSink>,
    running: Vec<Running>,
    /// This has no time limit: a command may run for a long time after its input has ended, as sort does.
    until_end: Wait,
}

/// Starts a command whose standard input is the sink. `lend` is for [`FdSink::lending`].
pub(crate) fn open(command: Command, lend: Option<usize>, limits: &Limits) -> Result<Opened> {
    let name = command.name();
    let (running, pipe) = command.spawn_sink()?;
    let (pipe, medium) = FdSink::new(Handle::Owned(pipe.into()), limits.wait())?;
    let running = vec![running];
    Ok(Opened::new(CommandSink { pipe: Some(pipe.lending(lend)), running, until_end: limits.patient() }, name, medium))
}

impl Sink for CommandSink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.with_pipe(|pipe| pipe.write(bytes))
    }

    fn write_block(&mut self, block: &Block, range: Range<usize>) -> Result<usize> {
        self.with_pipe(|pipe| pipe.write_block(block, range))
    }

    fn renew(&mut self, block: &mut Block, rest: Range<usize>) {
        match &mut self.pipe {
            Some(pipe) => pipe.renew(block, rest),
            None => block.copy_within(rest, 0),
        }
    }

    fn close(&mut self, end: &mut WriterEnd) -> Result<()> {
        self.pipe = None;
        wait_all(&mut self.running, &self.until_end, &mut end.commands)
    }

    fn abandon(&mut self) {
        self.pipe = None;
        abandon(std::mem::take(&mut self.running), false);
    }
}

impl CommandSink {
    fn with_pipe(&mut self, write: impl FnOnce(&mut FdSink) -> Result<usize>) -> Result<usize> {
        let pipe = self.pipe.as_mut().ok_or_else(|| Error::new(ErrorKind::Closed))?;
        write(pipe).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => self.why(error),
            _ => error,
        })
    }

    /// Returns the reason why a command closed its input before the end. Usually the command has failed, and then its
    /// status and its last output are more informative than the broken pipe. If it succeeded, it needed no more input,
    /// like head. In that case the error remains a broken pipe, because the bytes were not used.
    fn why(&mut self, broken: Error) -> Error {
        let patience = Wait::new(None, Some(LAST_WORDS));
        match wait_all(&mut self.running, &patience, &mut Vec::new()) {
            Err(error) if error.command().is_some() => error,
            _ => broken,
        }
    }
}
