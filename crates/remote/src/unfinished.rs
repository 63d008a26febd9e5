//! Uploads that were begun, and neither completed nor removed.

use std::time::SystemTime;

/// An upload that was begun, and neither completed nor removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnfinishedUpload {
    /// The URL of its object.
    pub url: String,
    /// The store's id of the upload.
    pub id: String,
    /// When it was begun, if the store says that.
    pub begun: Option<SystemTime>,
}

impl UnfinishedUpload {
    pub(crate) fn new(url: String, id: String) -> UnfinishedUpload {
        UnfinishedUpload { url, id, begun: None }
    }
}
