//! Unfinished uploads of a store, such as those of a program that was killed. They are not visible as objects.

use millstream_core::error::{Error, ErrorKind, Result};

use crate::address::Address;
use crate::azure::no_uploads;
use crate::calls::abort;
use crate::client::{Target, wait_for};
use crate::complete::{Found, look};
use crate::found::{Outcome, UnfinishedUpload};
use crate::pages::{Listed, Pages};
use crate::patience::Patience;
use crate::remote::Remote;
use crate::store::{Page, Protocol};

/// The unfinished uploads of the objects whose URLs begin with a prefix. They are requested as they are iterated.
pub struct Uploads(Pages<UnfinishedUpload>);

impl Uploads {
    /// Lists the unfinished uploads under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`, or the same
    /// of `gs://`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid, and for `az://` with [`ErrorKind::Unsupported`]: Azure discards what is left
    /// of uploads after a week, and has no list of it.
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
            Address::Store { key, .. } => key,
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

impl Listed for UnfinishedUpload {
    fn query(protocol: &dyn Protocol) -> Result<&'static [(&'static str, &'static str)]> {
        protocol.uploads_query().ok_or_else(no_uploads)
    }

    fn page(protocol: &dyn Protocol, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<UnfinishedUpload>> {
        protocol.uploads(body, url)
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
