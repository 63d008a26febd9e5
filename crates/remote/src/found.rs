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

/// An object whose parts are all stored by an upload that is not completed: [`Upload::stage`](crate::Upload::stage) returns
/// it. Any process can complete it, which makes the object appear, or remove it, after which nothing makes it appear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedObject {
    /// The store's id of the upload.
    pub upload: String,
    /// The identity of the write, by which a lost answer is decided.
    pub id: String,
    /// What the store returned for each part, in their order.
    pub tags: Vec<String>,
    /// The number of bytes.
    pub size: u64,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedObject {
    /// The URL.
    pub url: String,
    /// The number of bytes.
    pub size: u64,
    /// The ETag of its current version, with its quotes, if the list has a strong one.
    pub etag: Option<String>,
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
