//! A new copy of the command for each block.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use millstream::{CancelToken, Decode, ReadAhead, Reader, Result, Stdin};

use super::Copy;
use super::block::Block;
use super::control::Control;

/// Starts threads that manage `jobs` copies at a time. A copy that writes no output for `timeout` has failed.
///
/// # Errors
/// Returns the errors of starting the threads. Threads that have been started end.
pub(super) fn start(
    copy: &Copy,
    jobs: usize,
    timeout: Option<Duration>,
    control: &Arc<Control>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for _ in 0..jobs {
        let (copy, control) = (copy.clone(), control.clone());
        let thread = std::thread::Builder::new().name("copy".into());
        threads.push(thread.spawn(move || work(&copy, timeout, &control))?);
    }
    Ok(threads)
}

/// Manages one copy after another until there are no more blocks.
fn work(copy: &Copy, timeout: Option<Duration>, control: &Control) {
    while let Some((block, token)) = control.take() {
        let mut held = Vec::new();
        let result = run(copy, &block, timeout, &token, |bytes| control.write(block.index, &mut held, bytes));
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
    let command = copy.command()?.stdin(Stdin::Bytes(block.bytes.clone()));
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
