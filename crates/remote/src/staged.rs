//! Objects that are stored first and appear later, and the requests for small objects that decide when they do.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_LENGTH;
use millstream_core::error::{Error, Result};

use crate::answer::wrong;
use crate::calls::{abort, send_part};
use crate::client::{Target, wait_for};
use crate::complete::{Completion, Progress};
use crate::found::StagedObject;
use crate::opening::Opening;
use crate::patience::Patience;
use crate::remote::Remote;
use crate::request::{Call, Part};

impl StagedObject {
    /// Makes the object of `remote` appear. If it has appeared already, this does nothing.
    ///
    /// # Errors
    /// Fails like [`Upload::close`](crate::Upload::close), also if the upload was removed.
    pub fn complete(&self, remote: Remote, mut check: impl FnMut() -> Result<()>) -> Result<()> {
        let name = remote.name();
        let named = |error: Error| error.with_name(&name);
        let target = Arc::new(Target::new(remote).map_err(named)?);
        let numbered = (1..).zip(&self.tags);
        let parts: Vec<Part> = numbered.map(|(number, tag)| Part { number, tag: tag.clone() }).collect();
        let call =
            target.protocol()?.complete(&self.upload, &parts, target.object_headers(&self.id).map_err(named)?, false);
        let completion = Completion {
            target,
            call,
            upload: Some(self.upload.clone()),
            create_new: false,
            id: self.id.clone(),
            length: self.size,
            progress: Arc::new(Progress::default()),
        };
        wait_for(async move { completion.run().await }, &mut check)?.map_err(named)
    }

    /// Replaces the content of an object of one part.
    ///
    /// # Errors
    /// Fails if the object has several parts, or if the part could not be sent.
    pub fn rewrite(&mut self, remote: Remote, bytes: Vec<u8>, mut check: impl FnMut() -> Result<()>) -> Result<()> {
        let name = remote.name();
        let named = |error: Error| error.with_name(&name);
        if self.tags.len() != 1 {
            return Err(named(wrong(format!("{} parts", self.tags.len())).with_expected("one part")));
        }
        let (target, upload, size) = (Target::new(remote).map_err(named)?, self.upload.clone(), bytes.len() as u64);
        let sent = async move { send_part(&target, &upload, 1, Bytes::from(bytes)).await };
        self.tags = vec![wait_for(sent, &mut check)?.map_err(named)?.tag];
        self.size = size;
        Ok(())
    }

    /// Removes the upload. Nothing makes the object appear after this. If it has appeared already, or was removed, this does
    /// nothing.
    ///
    /// # Errors
    /// Fails if the store refuses, or does not answer.
    pub fn remove(&self, remote: Remote) -> Result<()> {
        let name = remote.name();
        let named = |error: Error| error.with_name(&name);
        let (target, upload) = (Target::new(remote).map_err(named)?, self.upload.clone());
        wait_for(async move { abort(&target, &upload).await }, &mut || Ok(()))?.map_err(named)
    }
}

/// Returns the size of an object of a store, or `None` if there is none.
///
/// # Errors
/// Fails if the URL or an option is invalid, or if the store refuses or does not answer.
pub fn size(remote: Remote) -> Result<Option<u64>> {
    let wanted = Call::new(Method::HEAD, Vec::new());
    let Some(headers) = request(remote, wanted)? else { return Ok(None) };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.map(Some).ok_or_else(|| wrong("an answer without a length").with_expected("the size of the object"))
}

/// Returns the content of an object of a store, or `None` if there is none.
///
/// # Errors
/// Fails like [`size`] and [`Opening`].
pub fn content(remote: Remote) -> Result<Option<Vec<u8>>> {
    if size(remote.clone())?.is_none() {
        return Ok(None);
    }
    let mut object = match Opening::start(remote.clone()).and_then(|opening| opening.wait(|| Ok(()))) {
        Ok(object) => object,
        // It may have been removed meanwhile.
        Err(error) => return if size(remote)?.is_none() { Ok(None) } else { Err(error) },
    };
    let (mut bytes, mut block) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match object.read(&mut block, || Ok(()))? {
            0 => return Ok(Some(bytes)),
            count => bytes.extend_from_slice(&block[..count]),
        }
    }
}

/// Removes an object of a store. If there is none, this does nothing.
///
/// # Errors
/// Fails if the URL or an option is invalid, or if the store refuses or does not answer.
pub fn remove(remote: Remote) -> Result<()> {
    request(remote, Call::new(Method::DELETE, Vec::new())).map(drop)
}

/// Makes a call that may be repeated. Returns the headers of the answer, or `None` if the object does not exist.
fn request(remote: Remote, call: Call) -> Result<Option<http::HeaderMap>> {
    let name = remote.name();
    let named = |error: Error| error.with_name(&name);
    let target = Target::new(remote).map_err(named)?;
    let answered = async move {
        let mut patience = Patience::new(target.options.retry_for);
        loop {
            let failure = match target.call(call.clone(), false).await {
                Ok(answer) if answer.status.is_success() => return Ok(Some(answer.headers)),
                Ok(answer) if answer.status.as_u16() == 404 => return Ok(None),
                Ok(answer) => answer.failure(),
                Err(failure) => failure,
            };
            patience.wait(failure).await?;
        }
    };
    wait_for(answered, &mut || Ok(()))?.map_err(named)
}
