//! A command's standard error: forwarded as it arrives, and its last part kept for the error that reports a failure.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use super::Stderr;
use super::left::PATIENCE;
use crate::error::Result;
use crate::os::cancel::{CancelToken, Wait};

/// How much of a command's standard error is kept for the error that names it.
const STDERR_TAIL: usize = 4096;

/// The thread that reads a command's standard error: a full pipe must never block the command, and its messages are to
/// be seen immediately.
#[derive(Debug)]
pub(super) struct StderrWatch {
    ended: CancelToken,
    tail: Arc<Mutex<Vec<u8>>>,
    /// Is notified when the thread has read everything that the command wrote.
    complete: mpsc::Receiver<()>,
}

impl StderrWatch {
    pub(super) fn start(pipe: PipeReader, mode: Stderr) -> Result<StderrWatch> {
        let ended = CancelToken::new()?;
        let wait = Wait::new(Some(ended.clone()), None);
        let tail = Arc::default();
        let (sender, complete) = mpsc::channel();
        let watched = Watched { pipe, mode, tail: Arc::clone(&tail) };
        std::thread::Builder::new().name("millstream-stderr".into()).spawn(move || watched.watch(&wait, &sender))?;
        Ok(StderrWatch { ended, tail, complete })
    }

    /// The last bytes. The command has ended; a grandchild that holds its standard error open is not waited for: the
    /// thread continues to forward its output. Nor do we wait long for our own standard error if it has no reader.
    pub(super) fn tail(self) -> Vec<u8> {
        self.ended.cancel();
        let _ = self.complete.recv_timeout(PATIENCE);
        std::mem::take(&mut *self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread's side of [`StderrWatch`].
struct Watched {
    pipe: PipeReader,
    mode: Stderr,
    tail: Arc<Mutex<Vec<u8>>>,
}

impl Watched {
    fn watch(self, wait: &Wait, complete: &mpsc::Sender<()>) {
        let mut chunk = vec![0; 16 << 10];
        let mut command_runs = true;
        loop {
            if command_runs && wait.readable(self.pipe.as_fd()).is_err() {
                // It has exited. What it wrote is in the pipe by now.
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

    /// Reads once, keeps the tail and forwards it. Returns how many bytes there were.
    fn take(&self, chunk: &mut [u8]) -> usize {
        let taken = loop {
            match rustix::io::read(&self.pipe, &mut *chunk) {
                Err(rustix::io::Errno::INTR) => {}
                taken => break taken.unwrap_or(0),
            }
        };
        // Before it is forwarded, which may take any amount of time.
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..taken]);
        let surplus = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..surplus);
        drop(tail);
        if self.mode == Stderr::Forward {
            forward(&chunk[..taken]);
        }
        taken
    }
}

/// Writes to our standard error; if that fails there is no way to report it.
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
