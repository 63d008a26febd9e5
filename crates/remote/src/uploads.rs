//! Unfinished uploads of a store: what a program that was killed leaves behind. They are not visible as objects.

use bytes::Bytes;
use http::Method;
use millstream_core::error::{Error, ErrorKind, Result};
use serde::Deserialize;

use crate::address::Address;
use crate::answer::wrong;
use crate::calls::{abort, repeat};
use crate::client::{Call, Target, wait_for};
use crate::complete::{Found, look};
use crate::patience::Patience;
use crate::remote::Remote;
use crate::s3::{self, Names};
use crate::unfinished::UnfinishedUpload;

/// Whether an object was written: what a later look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The object is the one of this write.
    Written,
    /// It is not, and the upload can still be completed or removed.
    NotWritten,
    /// It is not, and the upload does not exist: it was removed, or completed and then replaced.
    Unknown,
}

/// The unfinished uploads of the objects whose URLs begin with a prefix. They are requested as they are iterated.
pub struct Uploads {
    target: std::sync::Arc<Target>,
    prefix: String,
    page: std::vec::IntoIter<UnfinishedUpload>,
    /// The names after which the next page begins.
    next: Option<(String, String)>,
    has_ended: bool,
}

impl Uploads {
    /// Lists the unfinished uploads under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn new(remote: Remote) -> Result<Uploads> {
        let name = remote.name();
        let (target, prefix) = Target::of_prefix(remote).map_err(|error| error.with_name(&name))?;
        Ok(Uploads {
            target: std::sync::Arc::new(target),
            prefix,
            page: Vec::new().into_iter(),
            next: Some(Default::default()),
            has_ended: false,
        })
    }

    /// Removes an upload.
    ///
    /// # Errors
    /// Fails if the store refuses, or does not answer. An upload that does not exist is no error.
    pub fn abort(&self, upload: &UnfinishedUpload) -> Result<()> {
        let named = |error: Error| error.with_name(&upload.url);
        // It refuses keys that no URL can contain, whose uploads would be those of another object.
        let key = match Address::parse(&upload.url)? {
            Address::S3 { key, .. } => key,
            Address::Web(_) => return Err(named(Error::new(ErrorKind::Unsupported).with_found("a web server"))),
        };
        let target = self.target.sibling(&key).ok_or_else(|| named(Error::new(ErrorKind::Unsupported)))?;
        let id = upload.id.clone();
        wait_for(async move { abort(&target, &id).await }, &mut || Ok(()))?.map_err(named)
    }

    /// Requests the next page.
    fn request(&mut self, (key, upload): (String, String)) -> Result<()> {
        let mut query = vec![
            ("encoding-type", "url".to_string()),
            ("max-uploads", "1000".to_string()),
            ("prefix", self.prefix.clone()),
            ("uploads", String::new()),
        ];
        if !key.is_empty() {
            query.extend([("key-marker", key.clone()), ("upload-id-marker", upload.clone())]);
        }
        let target = self.target.clone();
        let limit = target.options.idle_timeout * 6;
        let call = Call { method: Method::GET, query, headers: target.user_headers(false), body: Bytes::new(), limit };
        let answer = wait_for(async move { repeat(&target, call).await }, &mut || Ok(()))??;
        let page: Page = s3::document(&answer.body, "ListMultipartUploadsResult").ok_or_else(|| {
            wrong("a list of uploads that is not valid").with_expected("a ListMultipartUploadsResult")
        })?;
        let names = Names::new(page.encoding_type.as_deref());
        let uploads = page.uploads.into_iter().map(|listed| UnfinishedUpload {
            url: self.target.sibling_url(&names.decode(&listed.key)),
            id: listed.upload_id,
            begun: listed.initiated.and_then(|time| humantime::parse_rfc3339_weak(&time).ok()),
        });
        self.page = uploads.collect::<Vec<_>>().into_iter();
        let next =
            (names.decode(&page.next_key_marker.unwrap_or_default()), page.next_upload_id_marker.unwrap_or_default());
        self.next = page.is_truncated.then_some(next);
        // A store that repeats itself would be asked forever.
        if self.next.as_ref().is_some_and(|(next, id)| next.is_empty() || (next, id) <= (&key, &upload)) {
            return Err(wrong("a list of uploads whose next page does not begin after this one"));
        }
        Ok(())
    }
}

impl Iterator for Uploads {
    type Item = Result<UnfinishedUpload>;

    fn next(&mut self) -> Option<Result<UnfinishedUpload>> {
        loop {
            if let Some(upload) = self.page.next() {
                return Some(Ok(upload));
            }
            let next = self.next.take().filter(|_| !self.has_ended)?;
            if let Err(error) = self.request(next) {
                self.has_ended = true;
                return Some(Err(error.with_name(self.target.options.name())));
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    encoding_type: Option<String>,
    #[serde(rename = "Upload", default)]
    uploads: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    key: String,
    upload_id: String,
    initiated: Option<String>,
}

/// Looks whether the object of `remote` was written by the write `id`, as
/// [`ErrorKind::OutcomeUnknown`] names it. `upload` is the store's id, if it was a multipart upload.
///
/// # Errors
/// Fails if the URL or an option is invalid, or if the store refuses or does not answer.
pub fn outcome(remote: Remote, id: &str, upload: Option<&str>) -> Result<Outcome> {
    let name = remote.name();
    let named = |error: Error| error.with_name(&name);
    remote.check_upload()?;
    let target = Target::new(remote).map_err(named)?;
    let (id, upload) = (id.to_string(), upload.map(str::to_string));
    let look = async move {
        let mut patience = Patience::new(target.options.retry_for);
        loop {
            match look(&target, &id, u64::MAX, upload.as_deref()).await {
                Ok(found) => return Ok((found, upload.is_some())),
                Err(failure) => patience.wait(failure).await?,
            }
        }
    };
    Ok(match wait_for(look, &mut || Ok(()))?.map_err(named)? {
        (Found::Written, _) => Outcome::Written,
        (Found::NotYet, true) => Outcome::NotWritten,
        (Found::NotYet | Found::Gone, _) => Outcome::Unknown,
    })
}
