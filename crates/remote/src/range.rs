//! One range of an object: a task receives its bytes, a reader takes them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderValue, StatusCode};
use millstream_core::error::{Error, ErrorKind, Result};
use reqwest::Response;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::answer::{check_range, wrong};
use crate::blocks::{Blocks, Waiting};
use crate::client::{Target, Task, causes};
use crate::patience::{Failure, Patience};

/// How many bytes of a body that cannot be requested again are received ahead.
const AHEAD: usize = 8 << 20;

/// The shortest range whose speed, with the time until its answer, is taken as that of a connection.
const MEASURED: u64 = 4 << 20;

/// What a range is a part of, and where it is.
pub(crate) struct Place {
    pub(crate) target: Arc<Target>,
    /// The strong ETag and the size of the object, if the range can be requested again.
    pub(crate) version: Option<(HeaderValue, u64)>,
    pub(crate) begin: u64,
    /// The position after the last byte, if it is known.
    pub(crate) end: Option<u64>,
}

/// A range that is being received. It ends when this is dropped.
pub(crate) struct Part {
    arrivals: Arc<Arrivals>,
    position: u64,
    end: Option<u64>,
    _task: Task,
}

impl Part {
    /// Starts to receive a range.
    pub(crate) fn start(place: Place) -> Result<Part> {
        let (range, arrivals) = Range::new(place);
        let (position, end) = (range.at, range.end);
        Ok(Part { arrivals, position, end, _task: Task::start(range.receive(None))? })
    }

    /// Returns the range of an object's beginning, which a task receives already.
    pub(crate) fn first(arrivals: Arc<Arrivals>, end: Option<u64>, task: Task) -> Part {
        Part { arrivals, position: 0, end, _task: task }
    }

    /// Returns whether at least three quarters of the range have arrived.
    pub(crate) fn is_nearly_complete(&self) -> bool {
        self.arrivals.is_nearly_complete()
    }

    /// Takes bytes and returns their number; 0 at the end. If there are none yet, waits, or returns `None` if `wait` is
    /// false. `check` is called every 20 ms; an error of it ends the wait, and the next call continues.
    pub(crate) fn read(
        &mut self,
        block: &mut [u8],
        wait: bool,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<usize>> {
        let count = self.arrivals.take(block, wait, check)?;
        self.position += count.unwrap_or(0) as u64;
        if count == Some(0) && self.end.is_some_and(|end| end != self.position) {
            return Err(Error::new(ErrorKind::Internal).with_found("a range that ended unexpectedly"));
        }
        Ok(count)
    }
}

/// The bytes that have arrived and have not been read.
pub(crate) struct Arrivals {
    state: Mutex<State>,
    /// Notified when bytes arrive, and at the end.
    arrived: Condvar,
    /// Notified when bytes were taken.
    taken: Notify,
    /// The number of bytes of the range, or the most possible if it is unknown.
    len: usize,
    /// How many bytes may wait.
    limit: usize,
    pool: Arc<Blocks>,
}

struct State {
    bytes: Waiting,
    /// How many of the range's bytes have not arrived.
    missing: usize,
    /// What follows the bytes: the end, or a failure.
    end: Option<Result<()>>,
}

impl Arrivals {
    fn new(len: usize, limit: usize, pool: Arc<Blocks>) -> Arrivals {
        Arrivals {
            state: Mutex::new(State { bytes: Waiting::default(), missing: len, end: None }),
            arrived: Condvar::new(),
            taken: Notify::new(),
            len,
            limit,
            pool,
        }
    }

    /// Returns whether at least three quarters of the range have arrived.
    fn is_nearly_complete(&self) -> bool {
        self.state().missing <= self.len / 4
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes, and waits while there are too many.
    async fn add(&self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let added = {
                let mut state = self.state();
                let added = bytes.len().min(self.limit - state.bytes.len());
                let most = state.missing;
                state.bytes.extend(&bytes[..added], most, &self.pool)?;
                state.missing -= added;
                added
            };
            if added > 0 {
                self.arrived.notify_one();
            }
            bytes = &bytes[added..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.taken.notified().await;
        }
    }

    /// Sets what follows the bytes, unless it is known.
    fn finish(&self, end: Result<()>) {
        self.state().end.get_or_insert(end);
        self.arrived.notify_one();
    }

    fn take(&self, block: &mut [u8], wait: bool, check: &mut dyn FnMut() -> Result<()>) -> Result<Option<usize>> {
        let mut state = self.state();
        loop {
            if state.bytes.len() > 0 {
                let count = state.bytes.take(block, &self.pool);
                self.taken.notify_one();
                return Ok(Some(count));
            }
            if let Some(end) = &mut state.end {
                return match end {
                    Ok(()) => Ok(Some(0)),
                    failed => std::mem::replace(failed, Err(Error::new(ErrorKind::Closed))).map(|()| None),
                };
            }
            if !wait {
                return Ok(None);
            }
            let woken = self.arrived.wait_timeout(state, Duration::from_millis(20));
            let (woken, timed) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timed.timed_out() {
                drop(state);
                check()?;
                state = self.state();
            }
        }
    }
}

/// What the task of a range does.
pub(crate) struct Range {
    target: Arc<Target>,
    version: Option<(HeaderValue, u64)>,
    /// The next byte.
    at: u64,
    end: Option<u64>,
    arrivals: Arc<Arrivals>,
}

impl Drop for Range {
    /// A task that ends before it has received all, by a panic, has failed.
    fn drop(&mut self) {
        self.arrivals.finish(Err(Error::new(ErrorKind::Internal).with_found("a request that ended unexpectedly")));
    }
}

impl Range {
    pub(crate) fn new(place: Place) -> (Range, Arc<Arrivals>) {
        let Place { target, version, begin, end } = place;
        let len = end.map_or(usize::MAX, |end| usize::try_from(end - begin).unwrap_or(usize::MAX));
        // A range that can be requested again is never larger than the options allow.
        let limit = if version.is_some() { len } else { len.min(AHEAD) };
        let arrivals = Arc::new(Arrivals::new(len, limit, target.blocks.clone()));
        (Range { target, version, at: begin, end, arrivals: arrivals.clone() }, arrivals)
    }

    /// Receives all bytes and the end, or an error, from `response` if there is one.
    pub(crate) async fn receive(mut self, mut response: Option<Response>) {
        let mut patience = Patience::new(self.target.options.retry_for);
        let mut received = 0;
        loop {
            let (begin, started, is_whole) = (self.at, Instant::now(), response.is_none());
            match self.attempt(response.take(), &mut patience).await {
                Ok(()) => {
                    let len = self.at - begin;
                    if is_whole && len >= MEASURED {
                        let rate = len as f64 / started.elapsed().as_secs_f64();
                        self.target.rate.store(rate as u64, Ordering::Relaxed);
                    }
                    return self.arrivals.finish(Ok(()));
                }
                Err(failure) => {
                    // The other ranges wait for this one, which should not wait for long if they arrive.
                    let before = std::mem::replace(&mut received, self.target.received.load(Ordering::Relaxed));
                    if received > before {
                        patience.shorten();
                    }
                    if let Err(error) = patience.wait(failure).await {
                        return self.arrivals.finish(Err(error));
                    }
                }
            }
        }
    }

    async fn attempt(&mut self, response: Option<Response>, patience: &mut Patience) -> Result<(), Failure> {
        let mut response = match response {
            Some(response) => response,
            None => self.request().await?,
        };
        while self.end.is_none_or(|end| self.at < end) {
            let mut bytes = match timeout(self.target.options.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) if self.end.is_none() => break,
                Ok(Ok(None)) => return Err(self.broken(wrong("the end of the body"))),
                Ok(Err(error)) => return Err(self.broken(wrong(causes(&error.without_url())))),
                Err(_) => return Err(self.broken(self.target.idle())),
            };
            if let Some(end) = self.end {
                bytes.truncate(usize::try_from(end - self.at).unwrap_or(usize::MAX));
            }
            patience.progress();
            self.target.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.at += bytes.len() as u64;
            self.arrivals.add(&bytes).await?;
        }
        Ok(())
    }

    /// Requests the rest of the range, of the same version of the object.
    async fn request(&self) -> Result<Response, Failure> {
        let (Some((etag, total)), Some(end)) = (&self.version, self.end) else {
            return Err(Error::new(ErrorKind::Internal).with_found("a second request without an ETag").into());
        };
        let response = self.target.get(Some((self.at, Some(end))), Some(etag), false).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                check_range(response.headers(), (self.at, end), *total, etag)?;
                Ok(response)
            }
            status => Err(wrong(format!("the answer {} to a request for a range", status.as_u16()))
                .with_expected("206 Partial Content")
                .into()),
        }
    }

    /// Returns the failure of a body that ended early.
    fn broken(&self, error: Error) -> Failure {
        let error = match self.end {
            Some(end) => error.with_expected(format!("{} more bytes", end - self.at)),
            None => error.with_expected("the last chunk of the body"),
        };
        match self.version {
            Some(_) => Failure::passing(error),
            None => Failure::Lasting(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::runtime;

    fn arrivals(len: usize, limit: usize) -> Arc<Arrivals> {
        Arc::new(Arrivals::new(len, limit, Arc::default()))
    }

    fn take(arrivals: &Arrivals, wait: bool) -> Result<Option<Vec<u8>>> {
        let mut block = [0; 4];
        let count = arrivals.take(&mut block, wait, &mut || Err(Error::new(ErrorKind::Cancelled)))?;
        Ok(count.map(|count| block[..count].to_vec()))
    }

    #[test]
    fn bytes_come_before_the_end_or_failure() {
        let whole = arrivals(5, 100);
        runtime().unwrap().block_on(whole.add(b"12345")).unwrap();
        whole.finish(Ok(()));
        whole.finish(Err(Error::new(ErrorKind::Internal)));
        for expected in ["1234", "5", "", ""] {
            assert_eq!(take(&whole, true).unwrap().unwrap(), expected.as_bytes());
        }
        let failed = arrivals(2, 100);
        runtime().unwrap().block_on(failed.add(b"1")).unwrap();
        failed.finish(Err(Error::new(ErrorKind::RemoteFailed)));
        assert_eq!(take(&failed, true).unwrap().unwrap(), b"1");
        assert_eq!(take(&failed, true).unwrap_err().kind(), ErrorKind::RemoteFailed);
        // A failure is never followed by an end.
        assert_eq!(take(&failed, true).unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn a_wait_can_be_interrupted_and_continued() {
        let arrivals = arrivals(usize::MAX, 100);
        assert_eq!(take(&arrivals, false).unwrap(), None);
        assert_eq!(take(&arrivals, true).unwrap_err().kind(), ErrorKind::Cancelled);
        runtime().unwrap().block_on(arrivals.add(b"1")).unwrap();
        assert_eq!(take(&arrivals, true).unwrap().unwrap(), b"1");
    }

    #[test]
    fn no_more_bytes_wait_than_the_limit() {
        let arrivals = arrivals(16, 6);
        let sender = arrivals.clone();
        let task = runtime().unwrap().spawn(async move {
            sender.add(b"0123456789abcdef").await.unwrap();
            sender.finish(Ok(()));
        });
        let mut all: Vec<u8> = Vec::new();
        loop {
            assert!(arrivals.state().bytes.len() <= 6);
            let mut block = [0; 4];
            match arrivals.take(&mut block, true, &mut || Ok(())).unwrap().unwrap() {
                0 => break,
                count => all.extend(&block[..count]),
            }
        }
        assert_eq!(all, b"0123456789abcdef");
        runtime().unwrap().block_on(task).unwrap();
    }

    #[test]
    fn a_range_is_nearly_complete_when_three_quarters_have_arrived() {
        for (len, needed) in [(1, 1), (3, 3), (4, 3), (5, 4), (8, 6), (100, 75)] {
            let arrivals = arrivals(len, len);
            let mut count = 0;
            while !arrivals.is_nearly_complete() {
                runtime().unwrap().block_on(arrivals.add(b"1")).unwrap();
                count += 1;
                // It makes no difference whether the bytes have been read.
                if count % 2 == 0 {
                    take(&arrivals, false).unwrap().unwrap();
                }
            }
            assert_eq!(count, needed, "{len}");
        }
        // The end of a body without a length is never near.
        let unknown = arrivals(usize::MAX, 100);
        runtime().unwrap().block_on(unknown.add(b"1")).unwrap();
        assert!(!unknown.is_nearly_complete());
    }
}
