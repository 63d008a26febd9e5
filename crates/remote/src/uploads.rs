//! Unfinished uploads of a store, such as those of a program that was killed. They are not visible as objects.

use millstream_core::error::{Error, ErrorKind, Result};
use serde::Deserialize;

use crate::address::Address;
use crate::calls::abort;
use crate::client::{Target, wait_for};
use crate::complete::{Found, look};
use crate::found::{Outcome, UnfinishedUpload};
use crate::pages::{Page, Pages, Query};
use crate::patience::Patience;
use crate::remote::Remote;
use crate::s3::Names;

/// The unfinished uploads of the objects whose URLs begin with a prefix. They are requested as they are iterated.
pub struct Uploads(Pages<UploadPage>);

impl Uploads {
    /// Lists the unfinished uploads under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn new(remote: Remote) -> Result<Uploads> {
        Pages::new(remote).map(Uploads)
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
        let target = self.0.target.sibling(&key).ok_or_else(|| named(Error::new(ErrorKind::Unsupported)))?;
        let id = upload.id.clone();
        wait_for(async move { abort(&target, &id).await }, &mut || Ok(()))?.map_err(named)
    }
}

impl Iterator for Uploads {
    type Item = Result<UnfinishedUpload>;

    fn next(&mut self) -> Option<Result<UnfinishedUpload>> {
        self.0.next()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UploadPage {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    encoding_type: Option<String>,
    #[serde(rename = "Upload", default)]
    uploads: Vec<Upload>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Upload {
    key: String,
    upload_id: String,
    initiated: Option<String>,
}

impl Page for UploadPage {
    type Entry = UnfinishedUpload;
    const ROOT: &'static str = "ListMultipartUploadsResult";
    const QUERY: &'static [(&'static str, &'static str)] =
        &[("encoding-type", "url"), ("max-uploads", "1000"), ("uploads", "")];

    fn split(self, url: impl Fn(&str) -> String) -> (Vec<UnfinishedUpload>, Option<Query>) {
        let names = Names::new(self.encoding_type.as_deref());
        let entry = |one: Upload| UnfinishedUpload {
            url: url(&names.decode(&one.key)),
            id: one.upload_id,
            begun: one.initiated.and_then(|time| humantime::parse_rfc3339_weak(&time).ok()),
        };
        let key = names.decode(&self.next_key_marker.unwrap_or_default());
        let id = self.next_upload_id_marker.unwrap_or_default();
        let next = self.is_truncated.then(|| vec![("key-marker", key), ("upload-id-marker", id)]);
        (self.uploads.into_iter().map(entry).collect(), next)
    }
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
            match look(&target, &id, None, upload.as_deref()).await {
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
