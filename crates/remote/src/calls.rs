//! The requests of uploads, apart from the one that makes an object appear.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use millstream_core::error::Result;

use crate::answer::wrong;
use crate::client::Target;
use crate::patience::{Failure, Patience};
use crate::remote::Remote;
use crate::request::{Answer, Call, Part};

/// Begins an upload of the write `id`, and returns the upload's id.
pub(crate) async fn create(target: &Target, object: HeaderMap, id: &str) -> Result<String> {
    let protocol = target.protocol()?;
    let Some(call) = protocol.create(object) else { return Ok(id.into()) };
    let answer = repeat(target, call).await?;
    let expected = "an InitiateMultipartUploadResult";
    protocol.created(&answer).ok_or_else(|| wrong("an answer without the id of the new upload").with_expected(expected))
}

pub(crate) async fn send_part(target: &Target, upload: &str, number: u32, body: Bytes) -> Result<Part> {
    let protocol = target.protocol()?;
    let limit = Some(answer_limit(&target.options));
    let answer = repeat(target, Call { limit, ..protocol.send_part(upload, number, body) }).await?;
    match protocol.part_tag(upload, number, &answer) {
        Some(tag) => Ok(Part { number, tag }),
        None => Err(wrong(format!("an answer without the ETag of part {number}")).with_expected("its ETag")),
    }
}

/// Makes a call that may be repeated, until it succeeds.
pub(crate) async fn repeat(target: &Target, call: Call) -> Result<Answer> {
    let mut patience = Patience::new(target.options.retry_for);
    loop {
        let failure = match target.call(call.clone(), false).await {
            Ok(answer) if answer.status.is_success() => return Ok(answer),
            Ok(answer) => answer.failure(),
            Err(failure) => failure,
        };
        patience.wait(failure).await?;
    }
}

/// Returns how long the answer to a part may take after it was sent: its last megabytes may still be in the buffers of
/// the operating system.
pub(crate) fn answer_limit(options: &Remote) -> Duration {
    options.idle_timeout * 6
}

/// Returns whether an upload exists.
pub(crate) async fn exists(target: &Target, upload: &str) -> Result<bool, Failure> {
    let protocol = target.protocol()?;
    let answer = target.call(protocol.find(upload), false).await?;
    match answer.status.as_u16() {
        200 => Ok(protocol.is_found(upload, &answer)),
        404 => Ok(false),
        _ => Err(answer.failure()),
    }
}

/// Removes an upload, and makes sure that it is gone: a part that was being sent may have been stored after the request. A
/// store that has no such request discards the parts itself, after some time.
pub(crate) async fn abort(target: &Target, upload: &str) -> Result<()> {
    let Some(call) = target.protocol()?.abort(upload) else { return Ok(()) };
    let mut patience = Patience::new(target.options.retry_for);
    loop {
        let failure = match target.call(call.clone(), false).await {
            Ok(answer) if answer.status.is_success() || answer.status.as_u16() == 404 => {
                match exists(target, upload).await {
                    Ok(false) => return Ok(()),
                    Ok(true) => Failure::passing(wrong("an upload that exists after it was removed")),
                    // Credentials may allow removing and not listing.
                    Err(Failure::Lasting(_)) => return Ok(()),
                    Err(passing) => passing,
                }
            }
            Ok(answer) => answer.failure(),
            Err(failure) => failure,
        };
        patience.wait(failure).await?;
    }
}
