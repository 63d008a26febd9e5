//! What is found in a store.

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

#[cfg(feature = "client")]
impl UnfinishedUpload {
    pub(crate) fn new(url: String, id: String) -> UnfinishedUpload {
        UnfinishedUpload { url, id, begun: None }
    }
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedObject {
    /// The URL.
    pub url: String,
    /// The number of bytes.
    pub size: u64,
}

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
