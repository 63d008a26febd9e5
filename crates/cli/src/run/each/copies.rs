//! A new copy of the command for each block.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use millstream::{CancelToken, CommandStatus, Decode, ErrorKind, ReadAhead, Reader, Result};

use super::Copy;
use super::block::Block;
use super::control::Control;
use super::job_log::{Job, JobLog};

/// Starts threads that manage `jobs` copies at a time. A copy that fails before it wrote is run again, up to `retries`
/// times. A copy that writes no output for `timeout` has failed. `log` gets a line about each copy.
///
/// # Errors
/// Returns the errors of starting the threads. Threads that have been started end.
pub(super) fn start(
    copy: &Copy,
    jobs: usize,
    retries: u32,
    timeout: Option<Duration>,
    log: Option<&Arc<JobLog>>,
    control: &Arc<Control>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for _ in 0..jobs {
        let (copy, control, log) = (copy.clone(), control.clone(), log.cloned());
        let thread = std::thread::Builder::new().name("copy".into());
        threads.push(thread.spawn(move || work(&copy, retries, timeout, log.as_deref(), &control))?);
    }
    Ok(threads)
}

/// Manages one copy after another until there are no more blocks.
fn work(copy: &Copy, retries: u32, timeout: Option<Duration>, log: Option<&JobLog>, control: &Control) {
    while let Some((block, token)) = control.take() {
        let (mut held, mut has_written, mut tries) = (Vec::new(), false, 0);
        let result = loop {
            let (started, mut received, mut status) = (SystemTime::now(), 0, None);
            let mut result = run(copy, &block, timeout, &token, &mut status, |bytes| {
                has_written |= !bytes.is_empty();
                received += bytes.len() as u64;
                control.write(block.index, &mut held, bytes)
            });
            if let Some(log) = log {
                let written = log.write(&Job { block: &block, line: &copy.line, started, received, status });
                result = result.and(written);
            }
            let is_failure = result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Cancelled);
            if !is_failure || has_written || tries == retries {
                break result;
            }
            tries += 1;
        };
        control.end(&block, held, result);
    }
}

/// Runs one copy, and passes its output to `write`. Sets `status` to how it ended.
fn run(
    copy: &Copy,
    block: &Block,
    timeout: Option<Duration>,
    token: &CancelToken,
    status: &mut Option<CommandStatus>,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let command = block.passed_to(copy.command()?, copy.is_numbered);
    let mut builder = Reader::builder().read_ahead(ReadAhead::Off).decode(Decode::Off).cancel(token);
    if let Some(timeout) = timeout {
        builder = builder.stall_timeout(timeout);
    }
    let mut reader = builder.command(command)?;
    let copied = copy_all(&mut reader, &mut write);
    // This stops the copy if its output is no longer needed.
    let closed = reader.try_close();
    *status = reader.command_ends().first().map(|end| end.status);
    copied.and(closed.map(drop))
}

fn copy_all(reader: &mut Reader, write: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    while reader.fill()? > 0 {
        write(reader.buffer())?;
        let len = reader.buffer().len();
        reader.consume(len);
    }
    Ok(())
}
