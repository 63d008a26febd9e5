//! What this crate is without the feature `client`: no object can be opened, and every attempt returns an error.

use std::time::Duration;

use millstream_core::error::{Error, ErrorKind, Result};

use crate::found::{ListedObject, Outcome, StagedObject, UnfinishedUpload};
use crate::remote::Remote;

/// Has no value.
#[derive(Clone, Debug)]
enum Never {}

fn left_out() -> Error {
    Error::new(ErrorKind::Unsupported).with_found("a URL").with_expected(
        "a build of Millstream with the feature `remote`: install a released package, or `cargo install millstream-cli \
         --features full`",
    )
}

/// Returns no part of a URL, because none is examined.
pub(crate) fn shown(_: &str) -> String {
    "a URL".into()
}

impl Remote {
    /// Returns [`ErrorKind::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn check(&self) -> Result<()> {
        Err(left_out())
    }

    /// Returns [`ErrorKind::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn check_upload(&self) -> Result<()> {
        Err(left_out())
    }

    /// Returns [`ErrorKind::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn upload_limit(&self) -> Result<u64> {
        Err(left_out())
    }

    /// Returns [`ErrorKind::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn check_staging(&self) -> Result<()> {
        Err(left_out())
    }
}

/// An object that is being opened, of which there is none.
pub struct Opening(Never);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Opening {
    pub fn start(_: Remote) -> Result<Opening> {
        Err(left_out())
    }

    pub fn wait(self, _: impl FnMut() -> Result<()>) -> Result<Object> {
        match self.0 {}
    }
}

/// An open object, of which there is none.
pub struct Object(Never);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Object {
    pub fn name(&self) -> &str {
        match self.0 {}
    }

    pub fn size(&self) -> Option<u64> {
        match self.0 {}
    }

    pub fn version(&self) -> Option<Version> {
        match self.0 {}
    }

    pub fn position(&self) -> u64 {
        match self.0 {}
    }

    pub fn read(&mut self, _: &mut [u8], _: impl FnMut() -> Result<()>) -> Result<usize> {
        match self.0 {}
    }
}

/// One version of an object, of which there is none.
#[derive(Clone, Debug)]
pub struct Version(Never);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Version {
    pub fn current(_: Remote, _: impl FnMut() -> Result<()>) -> Result<Option<Version>> {
        Err(left_out())
    }

    pub fn known(_: Remote, _: u64, _: &str) -> Result<Version> {
        Err(left_out())
    }

    pub fn name(&self) -> &str {
        match self.0 {}
    }

    pub fn size(&self) -> u64 {
        match self.0 {}
    }

    pub fn etag(&self) -> String {
        match self.0 {}
    }

    pub fn read_at(&self, _: &mut [u8], _: u64, _: impl FnMut() -> Result<()>) -> Result<usize> {
        match self.0 {}
    }

    pub fn open(&self, _: u64, _: u64) -> Result<Object> {
        match self.0 {}
    }
}

/// An object that is being uploaded, of which there is none.
pub struct Upload(Never);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Upload {
    pub fn open(_: Remote, _: bool, _: impl FnMut() -> Result<()>) -> Result<Upload> {
        Err(left_out())
    }

    pub fn write(&mut self, _: &[u8], _: impl FnMut() -> Result<()>) -> Result<usize> {
        match self.0 {}
    }

    pub fn close(&mut self, _: impl FnMut() -> Result<()>) -> Result<()> {
        match self.0 {}
    }

    pub fn stage(&mut self, _: impl FnMut() -> Result<()>) -> Result<StagedObject> {
        match self.0 {}
    }

    pub fn abandon(&mut self, _: Duration) {
        match self.0 {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl StagedObject {
    pub fn complete(&self, _: Remote, _: impl FnMut() -> Result<()>) -> Result<()> {
        Err(left_out())
    }

    pub fn rewrite(&mut self, _: Remote, _: Vec<u8>, _: impl FnMut() -> Result<()>) -> Result<()> {
        Err(left_out())
    }

    pub fn remove(&self, _: Remote) -> Result<()> {
        Err(left_out())
    }
}

/// Returns [`ErrorKind::Unsupported`].
///
/// # Errors
/// Always.
pub fn content(_: Remote) -> Result<Option<Vec<u8>>> {
    Err(left_out())
}

/// Returns [`ErrorKind::Unsupported`].
///
/// # Errors
/// Always.
pub fn remove(_: Remote) -> Result<()> {
    Err(left_out())
}

/// Returns [`ErrorKind::Unsupported`].
///
/// # Errors
/// Always.
pub fn size(_: Remote) -> Result<Option<u64>> {
    Err(left_out())
}

/// The objects of a store, which cannot be listed.
pub struct Objects(Never);

/// The unfinished uploads of a store, which cannot be listed.
pub struct Uploads(Never);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Objects {
    pub fn new(_: Remote) -> Result<Objects> {
        Err(left_out())
    }

    pub fn matching(_: Remote) -> Result<Objects> {
        Err(left_out())
    }

    pub fn checking(self, _: impl FnMut() -> Result<()> + Send + Sync + 'static) -> Objects {
        match self.0 {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, reason = "as with the feature")]
impl Uploads {
    pub fn new(_: Remote) -> Result<Uploads> {
        Err(left_out())
    }

    pub fn abort(&self, _: &UnfinishedUpload) -> Result<()> {
        match self.0 {}
    }
}

impl Iterator for Objects {
    type Item = Result<ListedObject>;

    fn next(&mut self) -> Option<Result<ListedObject>> {
        match self.0 {}
    }
}

impl Iterator for Uploads {
    type Item = Result<UnfinishedUpload>;

    fn next(&mut self) -> Option<Result<UnfinishedUpload>> {
        match self.0 {}
    }
}

/// Returns [`ErrorKind::Unsupported`].
///
/// # Errors
/// Always.
pub fn outcome(_: Remote, _: &str, _: Option<&str>) -> Result<Outcome> {
    Err(left_out())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_use_an_object_names_the_feature() {
        let remote = || Remote::new("https://user:s3cret@host/a?s3cret");
        let checking = || -> Result<()> { panic!("nothing is waited for") };
        let errors = [
            ("check", remote().check().err()),
            ("check_upload", remote().check_upload().err()),
            ("upload_limit", remote().upload_limit().err()),
            ("check_staging", remote().check_staging().err()),
            ("content", content(remote()).err()),
            ("remove", super::remove(remote()).err()),
            ("size", size(remote()).err()),
            ("Opening::start", Opening::start(remote()).err()),
            ("Version::current", Version::current(remote(), checking).err()),
            ("Version::known", Version::known(remote(), 1, "\"a\"").err()),
            ("Upload::open", Upload::open(remote(), false, checking).err()),
            ("Objects::new", Objects::new(remote()).err()),
            ("Objects::matching", Objects::matching(remote()).err()),
            ("Uploads::new", Uploads::new(remote()).err()),
            ("outcome", outcome(remote(), "id", None).err()),
        ];
        for (name, error) in errors {
            let error = error.unwrap_or_else(|| panic!("{name}: no error"));
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            let text = error.to_string();
            assert!(text.contains("the feature `remote`") && text.contains("--features full"), "{name}: {text}");
            assert!(!text.contains("s3cret"), "{name}: {text}");
        }
    }

    #[test]
    fn no_part_of_a_url_is_shown() {
        assert_eq!(Remote::new("https://user:s3cret@host/a").name(), "a URL");
    }
}
