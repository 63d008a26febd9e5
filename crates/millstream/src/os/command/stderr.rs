//! Forwards a command's standard error as it arrives, and keeps its last part for the error that reports a failure.

use std::collections::VecDeque;
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use super::Stderr;
use super::left::PATIENCE;
use crate::error::Result;
use crate::os::cancel::{CancelToken, Wait};

/// The number of bytes of a command's standard error that are kept by default.
pub(super) const STDERR_LIMIT: usize = 4096;

/// The thread that reads a command's standard error, so that a full pipe never blocks the command, and the command's
/// messages are visible immediately.
#[derive(Debug)]
pub(super) struct StderrWatch {
    ended: CancelToken,
    tail: Arc<Mutex<VecDeque<u8>>>,
    /// Receives a message when the thread has read all bytes written by the command.
    complete: mpsc::Receiver<()>,
}

impl StderrWatch {
    pub(super) fn start(pipe: PipeReader, mode: Stderr, limit: usize) -> Result<StderrWatch> {
        let ended = CancelToken::new()?;
        let wait = Wait::new(Some(ended.clone()), None);
        let tail = Arc::default();
        let (sender, complete) = mpsc::channel();
        let watched = Watched { pipe, mode, limit, tail: Arc::clone(&tail) };
        std::thread::Builder::new().name("millstream-stderr".into()).spawn(move || watched.watch(&wait, &sender))?;
        Ok(StderrWatch { ended, tail, complete })
    }

    /// Returns the last bytes. The command has ended. This does not wait for a grandchild that holds the standard error
    /// open: the thread continues to forward its output. Nor does it wait long if this process's standard error has no
    /// reader.
    pub(super) fn tail(self) -> Vec<u8> {
        self.ended.cancel();
        let _ = self.complete.recv_timeout(PATIENCE);
        std::mem::take(&mut *self.tail.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

/// The thread's side of [`StderrWatch`].
struct Watched {
    pipe: PipeReader,
    mode: Stderr,
    limit: usize,
    tail: Arc<Mutex<VecDeque<u8>>>,
}

impl Watched {
    fn watch(self, wait: &Wait, complete: &mpsc::Sender<()>) {
        let mut chunk = vec![0; 16 << 10];
        let mut command_runs = true;
        loop {
            if command_runs && wait.readable(self.pipe.as_fd()).is_err() {
                // The command has exited, so its last output is in the pipe by now.
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

    /// Reads once, keeps the tail and forwards the bytes. Returns their number.
    fn take(&self, chunk: &mut [u8]) -> usize {
        let taken = loop {
            match rustix::io::read(&self.pipe, &mut *chunk) {
                Err(rustix::io::Errno::INTR) => {}
                taken => break taken.unwrap_or(0),
            }
        };
        // The tail is kept before the bytes are forwarded, which may take any amount of time.
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = taken.min(self.limit);
        let surplus = (tail.len() + kept).saturating_sub(self.limit);
        tail.drain(..surplus);
        tail.extend(&chunk[taken - kept..taken]);
        drop(tail);
        if self.mode == Stderr::Forward {
            forward(&chunk[..taken]);
        }
        taken
    }
}

/// Writes to this process's standard error. A failure is ignored, because there is no way to report it.
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
