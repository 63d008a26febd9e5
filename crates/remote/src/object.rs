//! The download of an object: ranges in flight, delivered in order.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use millstream_core::error::{Error, ErrorKind, Result};
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::address::shown;
use crate::answer::{Facts, check_range, is_empty_range, wrong};
use crate::checksum::Checksum;
use crate::client::{Target, causes, receive, runtime, wait_for};
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
    /// The failure after the bytes that were delivered.
    failure: Option<Error>,
}

/// A range that is being received.
struct Part {
    pieces: mpsc::Receiver<Piece>,
    /// The number of blocks that may be received ahead, if that is limited.
    ahead: Option<Arc<Semaphore>>,
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
            failure: None,
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

    /// Reads bytes into `block` and returns their number. 0 means that all of the object has been delivered. While it waits,
    /// `check` is called every 20 ms; an error of it ends the wait, and the next call continues.
    ///
    /// # Errors
    /// Fails if the object changed ([`ErrorKind::SourceChanged`]) and if the server's answers contradict each other,
    /// end early without a way to resume, or fail for longer than the options allow ([`ErrorKind::RemoteFailed`]). The
    /// bytes before the failure are delivered first.
    pub fn read(&mut self, block: &mut [u8], mut check: impl FnMut() -> Result<()>) -> Result<usize> {
        self.failure.take().map_or(Ok(()), Err)?;
        let mut count = 0;
        while count < block.len() {
            if self.block.is_empty() {
                match self.next_piece(count == 0, &mut check) {
                    Ok(Some(bytes)) => self.block = bytes,
                    Ok(None) => break,
                    Err(error) if count == 0 => return Err(error),
                    Err(error) => {
                        self.failure = Some(error);
                        break;
                    }
                }
            }
            let len = (block.len() - count).min(self.block.len());
            block[count..][..len].copy_from_slice(&self.block.split_to(len));
            count += len;
            self.position += len as u64;
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&block[..count]);
            if count == 0 && !block.is_empty() {
                checksum.check()?;
            }
        }
        Ok(count)
    }

    /// Returns the next bytes; `None` at the end, and if there are none yet unless `wait` is true.
    fn next_piece(&mut self, wait: bool, check: &mut dyn FnMut() -> Result<()>) -> Result<Option<Bytes>> {
        while let Some(part) = self.parts.front() {
            let piece = match part.pieces.try_recv() {
                Ok(piece) => piece,
                Err(_) if wait => receive(&part.pieces, check)?,
                Err(_) => return Ok(None),
            };
            match piece {
                Piece::Bytes(bytes) => {
                    if let Some(ahead) = &part.ahead {
                        ahead.add_permits(1);
                    }
                    return Ok(Some(bytes));
                }
                Piece::Failed(error) => return Err(error),
                Piece::End if part.end.is_some_and(|end| end != self.position) => {
                    return Err(Error::new(ErrorKind::Internal).with_found("a range that ended unexpectedly"));
                }
                Piece::End => {
                    self.parts.pop_front();
                    self.request_ahead()?;
                }
            }
        }
        Ok(None)
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
        let (sender, pieces) = mpsc::channel();
        let validator = self.validator.clone().zip(self.total);
        // If there is a validator, the size of a range is the limit.
        let ahead = validator.is_none().then(|| Arc::new(Semaphore::new(BLOCKS_AHEAD)));
        let range = Range { ahead: ahead.clone(), ..Range::new(&self.target, validator, self.next, end, sender) };
        let task = runtime()?.spawn(range.receive(response)).abort_handle();
        self.next = end.unwrap_or(u64::MAX);
        self.parts.push_back(Part { pieces, ahead, end, task });
        Ok(())
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
    sender: mpsc::Sender<Piece>,
    /// The number of blocks that may be received ahead, if that is limited.
    ahead: Option<Arc<Semaphore>>,
}

impl Range {
    pub(crate) fn new(
        target: &Arc<Target>,
        validator: Option<(HeaderValue, u64)>,
        at: u64,
        end: Option<u64>,
        sender: mpsc::Sender<Piece>,
    ) -> Range {
        Range { target: target.clone(), validator, at, end, sender, ahead: None }
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
        let _ = self.sender.send(last);
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
            if let Some(ahead) = &self.ahead {
                // The semaphore is never closed. The reader adds the permit again.
                ahead.acquire().await.expect("an open semaphore").forget();
            }
            if self.sender.send(Piece::Bytes(bytes)).is_err() {
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
