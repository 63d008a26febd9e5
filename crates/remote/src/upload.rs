//! The upload of an object, which appears only when it is completed.
//!
//! A short object is uploaded by one PUT. A longer one is a multipart upload: its parts are sent while the object is
//! written, and it appears when the last request completes it. [`complete`](crate::complete) has this request.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_RANGE, RANGE};
use http::{HeaderValue, Method};
use millstream_core::error::{Error, ErrorKind, Result};
use tokio::task::JoinHandle;

use crate::answer::wrong;
use crate::calls::{abort, create, send_part};
use crate::check::PartSizes;
use crate::client::{Pending, Target, receive, runtime, wait_for};
use crate::complete::{Completion, Progress};
use crate::found::{StagedObject, UnfinishedUpload};
use crate::patience::{Failure, Patience};
use crate::remote::Remote;
use crate::request::{Call, Part, about_region};

/// An object that is being uploaded. It appears, complete, when [`close`](Upload::close) succeeds. If it is dropped
/// before, the upload is removed.
pub struct Upload {
    target: Arc<Target>,
    name: String,
    create_new: bool,
    /// The identity of this write.
    id: String,
    sizes: PartSizes,
    buffer: Vec<u8>,
    /// The number of bytes in parts that were handed over.
    sent: u64,
    multipart: Option<Multipart>,
    /// The requests that an interrupted call waited for, which the next one continues with.
    creation: Option<Pending<Result<String>>>,
    completion: Option<Pending<Result<()>>>,
    /// Whether the completing request may have arrived, so that the object may appear.
    progress: Arc<Progress>,
    is_done: bool,
}

/// A multipart upload, and its parts.
struct Multipart {
    upload: String,
    tasks: Vec<JoinHandle<()>>,
    sender: Sender<Result<Part>>,
    finished: Receiver<Result<Part>>,
    in_flight: usize,
    parts: Vec<Part>,
    /// A part could not be sent, so nothing can complete the object any more.
    has_failed: bool,
}

impl Upload {
    /// Prepares the upload of an object. The store is asked whether it can be reached, and whether the object exists if
    /// it is to be created. `check` is called every 20 ms; an error of it ends the wait.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid, if the server cannot be reached or refuses, if `create_new` is true and
    /// the object exists ([`ErrorKind::AlreadyExists`]), or with the error of `check`.
    pub fn open(remote: Remote, create_new: bool, mut check: impl FnMut() -> Result<()>) -> Result<Upload> {
        let name = remote.name();
        let named = |error: Error| error.with_name(&name);
        remote.check_upload()?;
        let sizes = remote.checked_part_sizes().map_err(named)?;
        let target = Arc::new(Target::new(remote).map_err(named)?);
        let sizes = if target.needs_equal_parts() { sizes.equal() } else { sizes };
        let upload = Upload {
            target,
            create_new,
            id: uuid::Uuid::new_v4().simple().to_string(),
            sizes,
            buffer: Vec::new(),
            sent: 0,
            multipart: None,
            creation: None,
            completion: None,
            progress: Arc::default(),
            is_done: false,
            name: name.clone(),
        };
        upload.check_length(upload.target.options.size_hint.unwrap_or(0)).map_err(named)?;
        let first = upload.target.clone();
        let exists = wait_for(async move { probe(&first).await }, &mut check)?.map_err(named)?;
        if exists && create_new {
            return Err(named(Error::new(ErrorKind::AlreadyExists)));
        }
        Ok(upload)
    }

    /// Returns the size of the part that is being filled.
    fn part_size(&self) -> usize {
        self.sizes.of(self.multipart.as_ref().map_or(1, Multipart::number))
    }

    /// Returns the URL.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Accepts some of `bytes`, at least one unless the slice is empty, and returns their number. If this fails, none of
    /// the bytes were accepted.
    ///
    /// # Errors
    /// Fails if a part could not be sent, if the object would have too many parts, or with the error of `check`, which is
    /// called every 20 ms.
    pub fn write(&mut self, bytes: &[u8], mut check: impl FnMut() -> Result<()>) -> Result<usize> {
        if self.is_done || self.progress.has_begun() {
            return Err(Error::new(ErrorKind::Closed));
        }
        if self.buffer.len() == self.part_size() && !bytes.is_empty() {
            self.send_buffer(&mut check)?;
        }
        let part_size = self.part_size();
        let count = bytes.len().min(part_size - self.buffer.len());
        if self.buffer.capacity() - self.buffer.len() < count {
            // A small object needs little memory; the second part is probably full.
            let wanted = if self.sent > 0 { part_size } else { self.buffer.capacity().saturating_mul(2) };
            let wanted = wanted.max(self.buffer.len() + count).min(part_size) - self.buffer.len();
            self.buffer.try_reserve_exact(wanted).map_err(|_| {
                Error::new(ErrorKind::MemoryLimit).with_found(format!("no memory for a part of {part_size} bytes"))
            })?;
        }
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// Completes the object: it appears. After an error the call may be repeated; after one of `check` it continues.
    ///
    /// # Errors
    /// Fails if the object was not written. [`ErrorKind::OutcomeUnknown`] means that it may have been written or may
    /// still be, because the answer of the store was lost; the upload is not removed then. [`ErrorKind::AlreadyExists`]
    /// means that it was to be created, and exists.
    pub fn close(&mut self, mut check: impl FnMut() -> Result<()>) -> Result<()> {
        if self.is_done {
            return Err(Error::new(ErrorKind::Closed));
        }
        let completion = match self.completion.take() {
            Some(completion) => completion,
            None => self.complete(&mut check)?,
        };
        match completion.wait(&mut check) {
            Ok(completed) => completed?,
            Err(interrupted) => {
                self.completion = Some(completion);
                return Err(interrupted);
            }
        }
        self.is_done = true;
        Ok(())
    }

    /// Stores all parts of the object, at least one, and leaves its completion to any process that has the returned
    /// description. After an error the call may be repeated.
    ///
    /// # Errors
    /// Fails if a part could not be sent, or with the error of `check`.
    pub fn stage(&mut self, mut check: impl FnMut() -> Result<()>) -> Result<StagedObject> {
        if self.is_done || self.progress.has_begun() {
            return Err(Error::new(ErrorKind::Closed));
        }
        self.target.options.check_staging()?;
        if self.multipart.is_none() || !self.buffer.is_empty() {
            self.send_buffer(&mut check)?;
        }
        let multipart = self.multipart.as_mut().expect("a part was sent");
        multipart.finish(&mut check)?;
        self.is_done = true;
        Ok(StagedObject {
            upload: multipart.upload.clone(),
            id: self.id.clone(),
            tags: multipart.parts.drain(..).map(|part| part.tag).collect(),
            size: self.sent,
        })
    }

    /// Starts the completion, after all parts have been sent.
    fn complete(&mut self, mut check: &mut dyn FnMut() -> Result<()>) -> Result<Pending<Result<()>>> {
        let protocol = self.target.protocol()?;
        let object = self.target.object_headers(&self.id)?;
        let (call, upload) = match &self.multipart {
            None => (protocol.put(object, Bytes::copy_from_slice(&self.buffer), self.create_new), None),
            Some(_) => {
                if !self.buffer.is_empty() {
                    self.send_buffer(&mut check)?;
                }
                let multipart = self.multipart.as_mut().expect("it was examined above");
                multipart.finish(&mut check)?;
                let call = protocol.complete(&multipart.upload, &multipart.parts, object, self.create_new);
                (call, Some(multipart.upload.clone()))
            }
        };
        let completion = Completion {
            target: self.target.clone(),
            call,
            upload,
            create_new: self.create_new,
            id: self.id.clone(),
            length: self.sent + if self.multipart.is_none() { self.buffer.len() as u64 } else { 0 },
            progress: self.progress.clone(),
        };
        Pending::start(async move { completion.run().await })
    }

    /// Gives up: the object does not appear, and an unfinished upload is removed. This takes at most `limit`. It is not
    /// removed while its completing request may be at work.
    pub fn abandon(&mut self, limit: Duration) {
        self.buffer = Vec::new();
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        let end = Instant::now() + limit;
        let creation = self.creation.take().and_then(|creation| creation.wait(&mut until(end - limit / 2)).ok());
        let created = creation.and_then(Result::ok).map(Multipart::new);
        let is_interrupted = self.completion.take().is_some();
        let Some(multipart) = self.multipart.take().or(created) else { return };
        // A part that arrives while the upload is removed brings it back in some stores, so parts that are being sent are
        // given half of the time.
        multipart.settle(end - limit / 2);
        let (target, upload) = (self.target.clone(), multipart.upload.clone());
        let is_removed = !self.progress.may_complete() && {
            wait_for(async move { abort(&target, &upload).await }, &mut until(end)).flatten().is_ok()
        };
        // Without a request that removes uploads, nothing can be done about it.
        let is_removable = self.target.protocol().is_ok_and(|protocol| protocol.uploads_query().is_some());
        // The error of a completion says how to look again, and its upload must not be removed before.
        let is_reported = self.progress.may_complete() && !is_interrupted;
        let is_left = !is_removed && is_removable && !is_reported;
        if let Some(report) = self.target.options.on_unfinished.as_ref().filter(|_| is_left) {
            report(&UnfinishedUpload::new(self.target.options.url.clone(), multipart.upload));
        }
    }

    /// Refuses an object of which it is known that it cannot be completed as it should.
    fn check_length(&self, least: u64) -> Result<()> {
        let part_size = self.sizes.of(1);
        if self.create_new && least > part_size as u64 && !self.target.protocol()?.completes_conditionally() {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_found(format!("a new object of more than {part_size} bytes"))
                .with_expected(
                    "at most one part, because this store has no condition for the completion of several; set `part_size` to \
                     the length, or replace an existing object",
                ));
        }
        Ok(())
    }

    /// Begins a multipart upload, and returns its id.
    fn create(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<String> {
        let creation = match self.creation.take() {
            Some(creation) => creation,
            None => {
                let (object, id) = (self.target.object_headers(&self.id)?, self.id.clone());
                let target = self.target.clone();
                Pending::start(async move { create(&target, object, &id).await })?
            }
        };
        match creation.wait(check) {
            Ok(created) => created,
            Err(interrupted) => {
                self.creation = Some(creation);
                Err(interrupted)
            }
        }
    }

    /// Sends the buffer as a part.
    fn send_buffer(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.check_length(self.sent + self.buffer.len() as u64 + 1)?;
        if self.multipart.is_none() {
            let upload = self.create(check)?;
            self.multipart = Some(Multipart::new(upload));
        }
        let multipart = self.multipart.as_mut().expect("it was created above");
        multipart.check()?;
        // Tasks that have ended, and their errors.
        multipart.tasks.retain(|task| !task.is_finished());
        while let Ok(finished) = multipart.finished.try_recv() {
            multipart.accept(finished)?;
        }
        // The next part is filled while these are sent.
        while multipart.in_flight >= PartSizes::connections(self.sizes.of(multipart.number() + 1)) {
            multipart.wait(check)?;
        }
        let limit = self.target.options.part_limit;
        let number = multipart.number();
        if number > limit {
            return Err(wrong(format!("more than {} bytes", self.sent)).with_expected(format!(
                "at most {limit} parts of {} bytes; set `size_hint` or `part_size` for larger objects",
                self.sizes.of(limit)
            )));
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.sent += bytes.len() as u64;
        let (target, upload, sender) = (self.target.clone(), multipart.upload.clone(), multipart.sender.clone());
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        multipart.in_flight += 1;
        multipart.tasks.push(runtime()?.spawn(async move {
            let _ = sender.send(send_part(&target, &upload, number, bytes).await);
        }));
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abandon(Duration::from_secs(1));
    }
}

impl Multipart {
    fn new(upload: String) -> Multipart {
        let (sender, finished) = channel();
        Multipart { upload, tasks: Vec::new(), sender, finished, in_flight: 0, parts: Vec::new(), has_failed: false }
    }

    /// Returns the number of the next part.
    fn number(&self) -> u64 {
        (self.parts.len() + self.in_flight) as u64 + 1
    }

    /// Waits until a part has been sent.
    fn wait(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let finished = receive(&self.finished, check)?;
        self.accept(finished)
    }

    /// Waits until all parts have been sent.
    fn finish(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.check()?;
        while self.in_flight > 0 {
            self.wait(check)?;
        }
        self.parts.sort_unstable_by_key(|part| part.number);
        Ok(())
    }

    /// Waits until no part is being sent, at most until `end`, and stops the rest.
    fn settle(&self, end: Instant) {
        let mut check = until(end);
        for _ in 0..self.in_flight {
            if receive(&self.finished, &mut check).is_err() {
                break;
            }
        }
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    fn accept(&mut self, finished: Result<Part>) -> Result<()> {
        self.in_flight -= 1;
        let part = finished.inspect_err(|_| self.has_failed = true)?;
        self.parts.push(part);
        Ok(())
    }

    /// Fails if a part could not be sent, which has been reported.
    fn check(&self) -> Result<()> {
        match self.has_failed {
            true => Err(Error::new(ErrorKind::Closed).with_found("a part that could not be sent")),
            false => Ok(()),
        }
    }
}

/// Returns a check that fails at `end`.
fn until(end: Instant) -> impl FnMut() -> Result<()> {
    move || if Instant::now() < end { Ok(()) } else { Err(Error::new(ErrorKind::TimedOut)) }
}

/// Asks for the first byte of the object: whether the store can be reached, knows the bucket and accepts the
/// credentials, and whether the object exists.
async fn probe(target: &Target) -> Result<bool> {
    let mut patience = Patience::new(target.options.retry_for);
    let mut call = Call::new(Method::GET, Vec::new());
    call.headers.insert(RANGE, HeaderValue::from_static("bytes=0-0"));
    loop {
        let answer = match target.call(call.clone(), true).await {
            Ok(answer) => answer,
            Err(failure) => {
                patience.wait(failure).await?;
                continue;
            }
        };
        let code = answer.code().unwrap_or_default();
        match answer.status.as_u16() {
            200 | 206 => return Ok(true),
            416 => return Ok(answer.headers.contains_key(CONTENT_RANGE) || code == "InvalidRange"),
            404 if !matches!(&*code, "NoSuchBucket" | "ContainerNotFound") => return Ok(false),
            // Credentials may allow writing and not reading.
            403 if matches!(&*code, "" | "AccessDenied" | "AuthorizationPermissionMismatch") => return Ok(false),
            _ if answer.is_passing() => patience.wait(answer.failure()).await?,
            _ => {
                let Failure::Lasting(error) = answer.failure() else { continue };
                let found = error.found().unwrap_or_default().to_string();
                let error = Error::new(ErrorKind::OpenFailed).with_found(found);
                return Err(about_region(error, answer.status, &answer.headers));
            }
        }
    }
}
