//! A new copy of the command for each block.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use millstream::{CancelToken, Decode, ErrorKind, ReadAhead, Reader, Result, Stdin};

use super::Copy;
use super::block::Block;
use super::control::Control;

/// Starts threads that manage `jobs` copies at a time. A copy that fails before it wrote is run again, up to `retries`
/// times. A copy that writes no output for `timeout` has failed.
///
/// # Errors
/// Returns the errors of starting the threads. Threads that have been started end.
pub(super) fn start(
    copy: &Copy,
    jobs: usize,
    retries: u32,
    timeout: Option<Duration>,
    control: &Arc<Control>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for _ in 0..jobs {
        let (copy, control) = (copy.clone(), control.clone());
        let thread = std::thread::Builder::new().name("copy".into());
        threads.push(thread.spawn(move || work(&copy, retries, timeout, &control))?);
    }
    Ok(threads)
}

/// Manages one copy after another until there are no more blocks.
fn work(copy: &Copy, retries: u32, timeout: Option<Duration>, control: &Control) {
    while let Some((block, token)) = control.take() {
        let (mut held, mut has_written, mut tries) = (Vec::new(), false, 0);
        let result = loop {
            let result = run(copy, &block, timeout, &token, |bytes| {
                has_written |= !bytes.is_empty();
                control.write(block.index, &mut held, bytes)
            });
            let is_failure = result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Cancelled);
            if !is_failure || has_written || tries == retries {
                break result;
            }
            tries += 1;
        };
        control.end(&block, held, result);
    }
}

/// Runs one copy, and passes its output to `write`.
fn run(
    copy: &Copy,
    block: &Block,
    timeout: Option<Duration>,
    token: &CancelToken,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let command = block.describe(copy.command()?).stdin(Stdin::Bytes(block.bytes.clone()));
    let mut builder = Reader::builder().read_ahead(ReadAhead::Off).decode(Decode::Off).cancel(token);
    if let Some(timeout) = timeout {
        builder = builder.stall_timeout(timeout);
    }
    let mut reader = builder.command(command)?;
    loop {
        let count = reader.fill()?;
        if count == 0 {
            return reader.close().map(drop);
        }
        write(reader.buffer())?;
        let len = reader.buffer().len();
        reader.consume(len);
    }
}
