//! The request that makes an object appear, and what its lost answer means.
//!
//! It has three outcomes: the object was written, it was not written, or neither is certain
//! ([`ErrorKind::OutcomeUnknown`]). If a request may have arrived and its answer is not known, the store is asked: an object
//! with the identity of this write and its length was written; an upload that still exists was not completed *yet*, so the
//! request is repeated, which cannot write the object twice. The upload is removed only if no request can be at work any
//! more: each was answered by the store itself.
//!
//! | what the store says after a lost answer | meaning |
//! |---|---|
//! | the object has the identity of this write | written |
//! | another object or none, and the upload exists | not completed yet: repeat |
//! | another object or none, and no upload | unknown: it was completed and then replaced, or was removed |
//! | a single PUT: another object or none | not written yet: repeat |

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_LENGTH;
use http::{HeaderName, Method};
use millstream_core::error::{Error, ErrorKind, Result};
use millstream_core::internal::show_argv;

use crate::answer::wrong;
use crate::calls::{answer_limit, exists};
use crate::client::Target;
use crate::patience::{Failure, Patience};
use crate::request::{Answer, Call};

/// What has happened so far, which survives an interrupted wait.
#[derive(Default)]
pub(crate) struct Progress {
    has_begun: AtomicBool,
    may_complete: AtomicBool,
}

impl Progress {
    /// Returns whether a request was made, after which no more bytes can be added.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Returns whether a request may be at work, or may have written the object.
    pub(crate) fn may_complete(&self) -> bool {
        self.may_complete.load(Ordering::SeqCst)
    }
}

pub(crate) struct Completion {
    pub(crate) target: Arc<Target>,
    /// The request: a PUT of the whole object, or the completion of an upload.
    pub(crate) call: Call,
    /// The upload that it completes.
    pub(crate) upload: Option<String>,
    pub(crate) create_new: bool,
    /// The identity of this write.
    pub(crate) id: String,
    pub(crate) length: u64,
    pub(crate) progress: Arc<Progress>,
}

/// What the store says about this write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The object is the one of this write.
    Written,
    /// It is not, and a request could still write it.
    NotYet,
    /// It is not, and the upload does not exist.
    Gone,
}

impl Completion {
    /// Makes the object appear.
    pub(crate) async fn run(&self) -> Result<()> {
        self.progress.has_begun.store(true, Ordering::SeqCst);
        let mut patience = Patience::new(self.target.options.retry_for);
        // An interrupted earlier call may have made a request.
        let mut must_look = self.progress.may_complete();
        // Whether an earlier request may be at work, if the last one was answered by the store itself.
        let mut settled = None;
        let mut last = None;
        loop {
            if must_look {
                match look(&self.target, &self.id, Some(self.length), self.upload.as_deref()).await {
                    Ok(Found::Written) => return Ok(()),
                    Ok(Found::NotYet) => {
                        if let Some(before) = settled.take() {
                            self.progress.may_complete.store(before, Ordering::SeqCst);
                        }
                    }
                    Ok(Found::Gone) => {
                        return Err(self.unknown(&wrong("no upload, and an object of another write, or none")));
                    }
                    Err(failure) => {
                        self.wait(&mut patience, failure).await?;
                        continue;
                    }
                }
            }
            // The wait is after the look, so that the last error is also followed by one.
            if let Some(failure) = last.take() {
                self.wait(&mut patience, failure).await?;
            }
            let before = self.progress.may_complete.swap(true, Ordering::SeqCst);
            let outcome = self.attempt().await;
            match outcome {
                Ok(answer) if self.succeeded(&answer)? => return Ok(()),
                Ok(answer) => {
                    // A refusal is certain. A success without its document, or with an error in it, is not.
                    if answer.status.is_client_error() && !answer.is_passing() {
                        return self.refused(&answer, before).await;
                    }
                    must_look = true;
                    let is_of_gateway = matches!(answer.status.as_u16(), 502 | 504) || answer.code().is_none();
                    settled = (!is_of_gateway).then_some(before);
                    last = Some(match answer.failure() {
                        Failure::Lasting(error) => Failure::passing(error),
                        passing => passing,
                    });
                }
                Err(failure) => {
                    let has_arrived = matches!(failure, Failure::Passing { may_have_arrived: true, .. });
                    self.progress.may_complete.store(before || has_arrived, Ordering::SeqCst);
                    must_look = self.progress.may_complete();
                    last = Some(failure);
                }
            }
        }
    }

    async fn attempt(&self) -> Result<Answer, Failure> {
        let mut limit = answer_limit(&self.target.options);
        if self.upload.is_some() {
            // A store may take minutes to join many parts.
            limit = limit.max(self.target.options.retry_for);
        }
        self.target.call(Call { limit: Some(limit), ..self.call.clone() }, false).await
    }

    fn succeeded(&self, answer: &Answer) -> Result<bool> {
        match self.upload {
            None => Ok(answer.status.is_success() && answer.code().is_none()),
            Some(_) => Ok(self.target.protocol()?.has_completed(answer)),
        }
    }

    /// Returns the outcome after a request was refused. `before` means that an earlier one may have arrived.
    async fn refused(&self, answer: &Answer, before: bool) -> Result<()> {
        self.progress.may_complete.store(before, Ordering::SeqCst);
        let protocol = self.target.protocol()?;
        let error = match answer.failure() {
            _ if self.create_new && protocol.has_object(answer) => Error::new(ErrorKind::AlreadyExists),
            Failure::Lasting(error) | Failure::Passing { error, .. } => error.with_expected("the object to be written"),
        };
        // Another program may have completed the upload, or have removed it.
        let is_gone = self.upload.is_some() && protocol.has_no_upload(answer);
        if !before && !is_gone {
            return Err(error);
        }
        match look(&self.target, &self.id, Some(self.length), self.upload.as_deref()).await {
            Ok(Found::Written) => Ok(()),
            Ok(Found::Gone) if !before => Err(error),
            _ => Err(self.unknown(&error)),
        }
    }

    /// Waits before the next attempt, or returns the outcome if there should be none.
    async fn wait(&self, patience: &mut Patience, failure: Failure) -> Result<()> {
        match patience.wait(failure).await {
            Err(error) if self.progress.may_complete() => Err(self.unknown(&error)),
            waited => waited,
        }
    }

    fn unknown(&self, error: &Error) -> Error {
        let mut again: Vec<OsString> = ["millstream", "uploads", "outcome", &self.target.options.url, "--id", &self.id]
            .map(OsString::from)
            .to_vec();
        // An id may begin with a hyphen.
        again.extend(self.upload.as_ref().map(|upload| format!("--upload={upload}").into()));
        let found = error.found().map_or_else(|| error.kind().to_string(), str::to_string);
        Error::new(ErrorKind::OutcomeUnknown).with_found(found).with_expected(format!(
            "the answer to the request that completes the object; to look again: `{}`",
            show_argv(&again)
        ))
    }
}

/// Looks whether the object is the one of the write `id`, with its length if that is known, and whether its upload exists.
pub(crate) async fn look(
    target: &Target,
    id: &str,
    length: Option<u64>,
    upload: Option<&str>,
) -> Result<Found, Failure> {
    if is_written(target, id, length).await? {
        return Ok(Found::Written);
    }
    let Some(upload) = upload else { return Ok(Found::NotYet) };
    if exists(target, upload).await? {
        return Ok(Found::NotYet);
    }
    // It may have been completed between the two requests.
    Ok(if is_written(target, id, length).await? { Found::Written } else { Found::Gone })
}

async fn is_written(target: &Target, id: &str, length: Option<u64>) -> Result<bool, Failure> {
    let answer = target.call(Call::new(Method::HEAD, Vec::new()), false).await?;
    match answer.status.as_u16() {
        200 => {
            let header = |name: HeaderName| answer.headers.get(name).and_then(|value| value.to_str().ok());
            let is_ours = header(target.protocol()?.write_id()) == Some(id);
            if is_ours && length.is_some_and(|length| header(CONTENT_LENGTH) != Some(&*length.to_string())) {
                return Err(wrong("an object of this write with another length").into());
            }
            Ok(is_ours)
        }
        404 => Ok(false),
        _ => Err(answer.failure()),
    }
}
