//! A user-defined source on its own thread: even if one of its reads blocks, the reader's waits can be interrupted.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::handover::{Block, Handover, Taken};
use super::supply::BLOCK;
use crate::error::{CommandEnd, Result};
use crate::os::cancel::{CancelToken, Wait};
use crate::source::own::{Checked, Source, guarded, outcome};
use crate::source::{ByteSource, Nature};

/// The time that `close` waits for a source that has been cancelled.
const PATIENCE: Duration = Duration::from_secs(2);

/// The reader's side of the thread.
pub(super) struct Apart {
    handover: Arc<Handover>,
    /// Cancelled when a block becomes available after none was.
    news: CancelToken,
    stop: CancelToken,
    canceller: Option<Box<dyn FnOnce() + Send>>,
    /// Disconnected when the thread has dropped the source.
    ended: mpsc::Receiver<()>,
    size: Option<u64>,
    /// The block that has been taken but not read completely.
    block: Option<Block>,
    end: Option<Result<()>>,
}

impl Apart {
    /// Starts the thread. `ahead` is the maximum number of bytes read ahead, initially and later.
    pub(super) fn start<S: Source + 'static>(source: Checked<S>, ahead: (usize, usize)) -> Result<Apart> {
        let (news, stop) = (CancelToken::new()?, CancelToken::new()?);
        let (size, canceller) = (source.size(), source.canceller()?);
        let waker = news.clone();
        let handover = Arc::new(Handover::new(BLOCK, ahead.0, ahead.1).waking(move || waker.cancel()));
        let (running, ended) = mpsc::channel();
        let (theirs, wait) = (handover.clone(), Wait::new(Some(stop.clone()), None));
        std::thread::Builder::new().name("millstream-source".into()).spawn(move || {
            let _running: mpsc::Sender<()> = running; // dropped after the source
            let mut source = source;
            while let Some(mut block) = theirs.block(false) {
                match source.read(&mut block.bytes[block.end..], &wait) {
                    Ok(0) => return theirs.end(source.finish(&wait, &mut Vec::new()).err()),
                    Ok(count) => block.end += count,
                    Err(_) => return, // stopped: no caller is waiting
                }
                theirs.hand_over(block, false);
            }
        })?;
        Ok(Apart { handover, news, stop, canceller, ended, size, block: None, end: None })
    }

    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }

    /// Stops the thread once the source returns. Returns whether the source returned.
    fn cancel(&mut self) -> bool {
        self.handover.stop();
        self.stop.cancel();
        let canceller = self.canceller.take().filter(|_| self.end.is_none());
        let Some(cancel) = canceller else { return false };
        let called = guarded(|| {
            cancel();
            Ok(())
        });
        called.is_ok()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if self.cancel() {
            let _ = self.ended.recv_timeout(PATIENCE);
        }
    }
}

impl ByteSource for Apart {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        loop {
            if let Some(block) = &mut self.block {
                let count = space.len().min(block.end - block.start);
                space[..count].copy_from_slice(&block.bytes[block.start..][..count]);
                block.start += count;
                if block.is_empty()
                    && let Some(block) = self.block.take()
                {
                    self.handover.give_back(block.bytes);
                }
                return Ok(count);
            }
            if self.end.is_some() {
                return Ok(0);
            }
            match self.handover.try_take() {
                Some(Taken::Block(block)) => self.block = Some(block),
                Some(Taken::End(error)) => self.end = Some(error.map_or(Ok(()), Err)),
                Some(Taken::Cancelled) => {}
                None => {
                    wait.readable(self.news.fd()?)?;
                    self.news.reset();
                }
            }
        }
    }

    fn finish(&mut self, _wait: &Wait, _ends: &mut Vec<CommandEnd>) -> Result<()> {
        outcome(&self.end)
    }

    fn abandon(mut self: Box<Self>) {
        self.cancel();
    }

    fn nature(&self) -> Nature {
        Nature::Device
    }
}
