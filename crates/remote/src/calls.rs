//! The requests of uploads, apart from the one that makes an object appear.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use millstream_core::error::Result;
use serde::Deserialize;

use crate::answer::wrong;
use crate::client::{Answer, Call, Target};
use crate::patience::{Failure, Patience};
use crate::remote::Remote;
use crate::s3;

/// The header with the identity of a write, by which a lost answer is decided.
pub(crate) const WRITE_ID: HeaderName = HeaderName::from_static("x-amz-meta-millstream-id");

/// A part that the store has accepted.
pub(crate) struct Part {
    pub(crate) number: u32,
    pub(crate) etag: String,
}

/// Creates a multipart upload, and returns its id.
pub(crate) async fn create(target: &Target, headers: HeaderMap) -> Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Created {
        upload_id: String,
    }
    let call = Call { headers, ..Call::new(target, Method::POST, vec![("uploads", String::new())]) };
    let answer = repeat(target, call).await?;
    let created: Option<Created> = s3::document(&answer.body, "InitiateMultipartUploadResult");
    match created {
        Some(Created { upload_id }) if !upload_id.is_empty() => Ok(upload_id),
        _ => Err(wrong("an answer without the id of the new upload").with_expected("an InitiateMultipartUploadResult")),
    }
}

pub(crate) async fn send_part(target: &Target, upload: &str, number: u32, body: Bytes) -> Result<Part> {
    let query = vec![("partNumber", number.to_string()), ("uploadId", upload.to_string())];
    let limit = answer_limit(&target.options);
    let answer = repeat(target, Call { body, limit, ..Call::new(target, Method::PUT, query) }).await?;
    match answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok()) {
        Some(etag) => Ok(Part { number, etag: etag.into() }),
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

/// Returns the header that lets a request fail if the object exists.
pub(crate) fn only_if_missing(create_new: bool) -> HeaderMap {
    create_new.then(|| (IF_NONE_MATCH, HeaderValue::from_static("*"))).into_iter().collect()
}

/// Returns whether an upload exists.
pub(crate) async fn exists(target: &Target, upload: &str) -> Result<bool, Failure> {
    let query = vec![("max-parts", "1".to_string()), ("uploadId", upload.to_string())];
    let answer = target.call(Call::new(target, Method::GET, query), false).await?;
    match answer.status.as_u16() {
        200 => Ok(true),
        404 => Ok(false),
        _ => Err(answer.failure()),
    }
}

/// Removes an upload, and makes sure that it is gone: a part that was being sent may have been stored after the request.
pub(crate) async fn abort(target: &Target, upload: &str) -> Result<()> {
    let mut patience = Patience::new(target.options.retry_for);
    let call = Call::new(target, Method::DELETE, vec![("uploadId", upload.to_string())]);
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
