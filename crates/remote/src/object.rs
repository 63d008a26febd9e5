//! The download of an object: ranges in flight, delivered in order.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_channel::{Receiver, Sender};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use millstream_core::error::{Error, ErrorKind, Result};
use reqwest::Response;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::address::shown;
use crate::answer::{Facts, check_range, is_empty_range, wrong};
use crate::checksum::Checksum;
use crate::client::{Pending, Target, causes, runtime, wait_for};
use crate::patience::{Failure, Patience};
use crate::remote::Remote;

/// The size of the first range after the expected end of reading.
const BEYOND: u64 = 64 << 10;

/// How many blocks of a body that cannot be requested again are received ahead. A block has up to 400 KiB.
const BLOCKS_AHEAD: usize = 32;

/// The default number of ranges at a time.
const CONNECTIONS: u64 = 8;

/// A connection that delivers less than this, in bytes per second, is slow: more of them together are faster.
const SLOW: f64 = 32e6;

/// Shorter ranges mostly measure the latency.
const MEASURED: u64 = 4 << 20;

/// An open object, which delivers its bytes in order.
///
/// It delivers all bytes of one version of the object, or fails: see [`read`](Object::read).
pub struct Object {
    name: String,
    target: Arc<Target>,
    /// The strong ETag, if more than one request is possible.
    validator: Option<HeaderValue>,
    total: Option<u64>,
    /// The number of bytes that were delivered.
    position: u64,
    /// The checksum that the store announced.
    checksum: Option<Checksum>,
    /// The first byte that has not been requested.
    next: u64,
    /// Where the caller probably stops reading: ranges after it are requested one at a time.
    expected_end: u64,
    /// The size of the next of these ranges.
    beyond: u64,
    parts: VecDeque<Part>,
    block: Bytes,
    /// The wait for the next piece, if it was interrupted.
    waiting: Option<Pending<Option<Piece>>>,
    shared: Arc<Shared>,
}

/// What a canceller reaches from another thread.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// The blocks that the reading thread waits for.
    waits_for: Option<Receiver<Piece>>,
}

/// A range that is being received.
struct Part {
    pieces: Receiver<Piece>,
    /// The position after its last byte, if it is known.
    end: Option<u64>,
    task: AbortHandle,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the task of a part sends. A task that ends without sending one of the last two has failed.
pub(crate) enum Piece {
    Bytes(Bytes),
    End,
    Failed(Error),
}

impl Object {
    /// Opens an object and waits for the first answer. `check` is called every 20 ms; an error of it ends the wait.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid, if the server cannot be reached or refuses, if its answer does not say
    /// where the object ends, or with the error of `check`.
    pub fn open(remote: Remote, mut check: impl FnMut() -> Result<()>) -> Result<Object> {
        let name = shown(&remote.url);
        let named = |error: Error| error.with_name(&name);
        let target = Arc::new(Target::new(remote).map_err(named)?);
        let first = target.clone();
        let response = wait_for(async move { first_answer(&first, None).await }, &mut check)?.map_err(named)?;
        let allow = target.options.allow_unknown_length;
        let facts = Facts::new(response.status(), response.version(), response.headers(), allow).map_err(named)?;
        let mut object = Object::empty(name, target);
        object.checksum = Checksum::announced(response.headers(), object.target.options.md5_etag);
        object.total = facts.total;
        object.validator = facts.validator;
        // This answer is cut short where the second range begins.
        let end = match &object.validator {
            Some(_) => {
                let Remote { range_size, first_range, .. } = object.target.options;
                facts.body.map(|body| body.min(range_size).min(first_range.max(1)))
            }
            None => facts.body,
        };
        if end != Some(0) {
            object.start(end, Some(response))?;
        }
        if object.target.options.first_range >= object.target.options.range_size {
            object.request_ahead()?;
        }
        Ok(object)
    }

    /// Returns an object without bytes.
    fn empty(name: String, target: Arc<Target>) -> Object {
        Object {
            name,
            target,
            validator: None,
            total: Some(0),
            position: 0,
            checksum: None,
            next: 0,
            expected_end: u64::MAX,
            beyond: BEYOND,
            parts: VecDeque::new(),
            block: Bytes::new(),
            waiting: None,
            shared: Arc::default(),
        }
    }

    /// Returns an object that delivers the bytes of the version with this ETag and this size from `begin` on. Ranges up to
    /// `expected_end` are requested ahead; after it, one at a time.
    pub(crate) fn of_version(
        name: String,
        target: Arc<Target>,
        (etag, size): (HeaderValue, u64),
        begin: u64,
        expected_end: u64,
    ) -> Result<Object> {
        let mut object = Object::empty(name, target);
        (object.validator, object.total) = (Some(etag), Some(size));
        (object.position, object.next, object.expected_end) = (begin, begin, expected_end);
        object.request_ahead()?;
        Ok(object)
    }

    /// Returns the URL without user, password and query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes of the object, if it was announced.
    pub fn size(&self) -> Option<u64> {
        self.total
    }

    /// Returns the number of bytes that were delivered.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads bytes into `block` and returns their number. 0 means that all of the object has been delivered.
    ///
    /// # Errors
    /// Fails if the object changed ([`ErrorKind::SourceChanged`]) and if the server's answers contradict each other,
    /// end early without a way to resume, or fail for longer than the options allow ([`ErrorKind::RemoteFailed`]).
    pub fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.read_by(block, |shared, pieces| Ok(shared.receive(pieces)))
    }

    /// Reads like [`read`](Object::read). While it waits, `check` is called every 20 ms; an error of it ends the wait, and the
    /// next call continues.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Object::read) and of `check`.
    pub fn read_checking(&mut self, block: &mut [u8], mut check: impl FnMut() -> Result<()>) -> io::Result<usize> {
        let mut waiting = self.waiting.take();
        let read = self.read_by(block, |_, pieces| {
            let pending = match waiting.take() {
                Some(pending) => pending,
                None => {
                    if let Ok(piece) = pieces.try_recv() {
                        return Ok(Some(piece));
                    }
                    let pieces = pieces.clone();
                    Pending::start(async move { pieces.recv().await.ok() })?
                }
            };
            pending.wait(&mut check).map_err(|error| {
                // The piece may have been received already.
                waiting = Some(pending);
                error.into()
            })
        });
        self.waiting = waiting;
        read
    }

    fn read_by(
        &mut self,
        block: &mut [u8],
        mut receive: impl FnMut(&Shared, &Receiver<Piece>) -> io::Result<Option<Piece>>,
    ) -> io::Result<usize> {
        while self.block.is_empty() {
            let Some(part) = self.parts.front() else {
                self.checksum.as_ref().map_or(Ok(()), Checksum::check)?;
                return Ok(0);
            };
            match receive(&self.shared, &part.pieces)? {
                Some(Piece::Bytes(bytes)) => self.block = bytes,
                Some(Piece::Failed(error)) => return Err(error.into()),
                Some(Piece::End) if part.end.is_none_or(|end| end == self.position) => {
                    self.parts.pop_front();
                    self.request_ahead()?;
                }
                _ if self.shared.lock().is_cancelled => return Err(Error::new(ErrorKind::Closed).into()),
                _ => return Err(Error::new(ErrorKind::Internal).with_found("a range that ended unexpectedly").into()),
            }
        }
        let count = block.len().min(self.block.len());
        block[..count].copy_from_slice(&self.block.split_to(count));
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&block[..count]);
        }
        self.position += count as u64;
        Ok(count)
    }

    /// Returns a function that makes a waiting [`read`](Object::read), and all later ones, fail.
    pub fn canceller(&self) -> impl FnOnce() + Send + 'static {
        let shared = self.shared.clone();
        move || {
            let mut state = shared.lock();
            state.is_cancelled = true;
            if let Some(receiver) = state.waits_for.take() {
                receiver.close();
            }
        }
    }

    /// Requests the following ranges, as many as may be in flight.
    fn request_ahead(&mut self) -> Result<()> {
        let (Some(total), Some(_)) = (self.total, &self.validator) else { return Ok(()) };
        let Remote { connections, range_size, .. } = self.target.options;
        // The memory is the same in both cases.
        let memory = range_size.saturating_mul(connections.map_or(CONNECTIONS, |count| count as u64));
        let (connections, range_size) = match connections {
            Some(count) => (count, range_size),
            None if self.target.is_slow.load(Ordering::Relaxed) => (2 * CONNECTIONS as usize, range_size.div_ceil(2)),
            None => (CONNECTIONS as usize, range_size),
        };
        while self.next < total && self.parts.len() < connections {
            let len = if self.next < self.expected_end {
                range_size.min(self.expected_end - self.next)
            } else if self.parts.is_empty() {
                let len = self.beyond.min(range_size);
                self.beyond = len.saturating_mul(2);
                len
            } else {
                break;
            };
            if !self.parts.is_empty() && self.next - self.position + len > memory {
                break;
            }
            self.start(Some(total.min(self.next.saturating_add(len))), None)?;
        }
        Ok(())
    }

    /// Starts to receive the range up to `end`, from `response` if there is one.
    fn start(&mut self, end: Option<u64>, response: Option<Response>) -> Result<()> {
        let (sender, pieces) = match &self.validator {
            // The size of a range is the limit.
            Some(_) => async_channel::unbounded(),
            None => async_channel::bounded(BLOCKS_AHEAD),
        };
        let validator = self.validator.clone().zip(self.total);
        let range = Range::new(&self.target, validator, self.next, end, sender);
        let task = runtime()?.spawn(range.receive(response)).abort_handle();
        self.next = end.unwrap_or(u64::MAX);
        self.parts.push_back(Part { pieces, end, task });
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next piece; `None` after cancelling, and if the task has ended.
    fn receive(&self, pieces: &Receiver<Piece>) -> Option<Piece> {
        if let Ok(piece) = pieces.try_recv() {
            return Some(piece);
        }
        let mut state = self.lock();
        if state.is_cancelled {
            return None;
        }
        state.waits_for = Some(pieces.clone());
        drop(state);
        let piece = pieces.recv_blocking().ok();
        self.lock().waits_for = None;
        piece
    }
}

/// Requests all of the object, or its bytes before `end`, until there is an answer.
pub(crate) async fn first_answer(target: &Target, end: Option<u64>) -> Result<Response> {
    let mut patience = Patience::new(target.options.retry_for);
    let mut range = Some((0, end));
    loop {
        match target.get(range, None, true).await {
            // An empty object has no range. Servers differ in what they say about it: ask again without a range.
            Ok(response)
                if response.status() == StatusCode::RANGE_NOT_SATISFIABLE
                    || response.status() == StatusCode::PARTIAL_CONTENT && is_empty_range(response.headers()) =>
            {
                if range.take().is_none() {
                    return Err(wrong("the answer 416 to a request without a range").with_expected("the object"));
                }
            }
            Ok(response) => return Ok(response),
            Err(failure) => patience.wait(failure).await?,
        }
    }
}

/// The task that receives one range.
pub(crate) struct Range {
    target: Arc<Target>,
    /// The strong ETag and the size of the object, if the range can be requested again.
    validator: Option<(HeaderValue, u64)>,
    /// The next byte.
    at: u64,
    end: Option<u64>,
    sender: Sender<Piece>,
}

impl Range {
    pub(crate) fn new(
        target: &Arc<Target>,
        validator: Option<(HeaderValue, u64)>,
        at: u64,
        end: Option<u64>,
        sender: Sender<Piece>,
    ) -> Range {
        Range { target: target.clone(), validator, at, end, sender }
    }

    /// Sends all bytes and the end, or an error.
    pub(crate) async fn receive(mut self, mut response: Option<Response>) {
        let mut patience = Patience::new(self.target.options.retry_for);
        let mut received = 0;
        let last = loop {
            let (begin, started) = (self.at, Instant::now());
            match self.attempt(response.take(), &mut patience).await {
                Ok(()) => {
                    let len = self.at - begin;
                    if len >= MEASURED && (len as f64) < SLOW * started.elapsed().as_secs_f64() {
                        self.target.is_slow.store(true, Ordering::Relaxed);
                    }
                    break Piece::End;
                }
                Err(failure) => {
                    // The other ranges wait for this one, which should not wait for long if they arrive.
                    let before = std::mem::replace(&mut received, self.target.received.load(Ordering::Relaxed));
                    if received > before {
                        patience.shorten();
                    }
                    if let Err(error) = patience.wait(failure).await {
                        break Piece::Failed(error);
                    }
                }
            }
        };
        // It fails if the object was dropped.
        let _ = self.sender.send(last).await;
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
            if self.sender.send(Piece::Bytes(bytes)).await.is_err() {
                return Err(Error::new(ErrorKind::Closed).into());
            }
        }
        Ok(())
    }

    /// Requests the rest of the range, of the same version of the object.
    async fn request(&self) -> Result<Response, Failure> {
        let (Some((etag, total)), Some(end)) = (&self.validator, self.end) else {
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
        match self.validator {
            Some(_) => Failure::passing(error),
            None => Failure::Lasting(error),
        }
    }
}
