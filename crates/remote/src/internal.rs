//! The parsers of answers and addresses without a connection, for tests and fuzzing. This is no part of the interface.

use std::ops::Range;

use http::{HeaderMap, StatusCode};
use url::Url;

use crate::address::Address;
use crate::answer::ContentRange;
use crate::azure::Blobs;
use crate::found::{ListedObject, UnfinishedUpload};
use crate::request::Answer;
use crate::s3::S3;
use crate::store::{Page, Protocol, Store};
use crate::xml::error_document;

/// Parses the list of objects of `s3://` and `gs://`. The entries have keys in place of URLs. The second part is the query
/// of the next page.
pub fn objects(body: &str) -> Option<Page<ListedObject>> {
    S3.objects(body, &str::to_string)
}

/// Parses the list of objects of `az://`, as [`objects`] does.
pub fn blobs(body: &str) -> Option<Page<ListedObject>> {
    Blobs.objects(body, &str::to_string)
}

/// Parses the list of unfinished uploads of `s3://` and `gs://`, as [`objects`] does.
pub fn uploads(body: &str) -> Option<Page<UnfinishedUpload>> {
    S3.uploads(body, &str::to_string)
}

/// Parses the answer to the request that begins an upload, and returns the upload's id.
pub fn new_upload(body: &str) -> Option<String> {
    S3.created(&answer(body))
}

/// Returns whether an answer says that an upload was completed.
pub fn has_completed(body: &str) -> bool {
    S3.has_completed(&answer(body))
}

/// Returns whether the list of an object's blocks contains some of this upload.
pub fn has_blocks(upload: &str, body: &str) -> bool {
    Blobs.is_found(upload, &answer(body))
}

fn answer(body: &str) -> Answer {
    Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() }
}

/// Parses a document of an error, and returns the text of a message.
pub fn error(body: &str) -> Option<String> {
    error_document(body).map(|document| document.to_string())
}

/// Parses the header `Content-Range`, and returns the bytes of the answer and the number of bytes of the object.
pub fn content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    ContentRange::parse(text).map(|range| (range.bytes.0..range.bytes.1, range.total))
}

/// Returns the URL of the requests for an object. The address of a store, with the bucket, is `bucket`.
pub fn request_url(text: &str, bucket: &str) -> Option<String> {
    match Address::parse(text).ok()? {
        Address::Web(url) => Some(url.into()),
        Address::Store { kind, key, .. } => {
            let bucket = Url::parse(bucket).ok()?;
            Some(Store { kind, bucket, protocol: &S3, credentials: None }.url(&key).into())
        }
    }
}
