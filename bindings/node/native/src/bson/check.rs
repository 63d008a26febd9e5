//! Whether documents are right in every byte.

use millstream::bson::{Document, Rules};
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;

use crate::error::Failure;

/// What has been checked.
#[napi(object, object_from_js = false)]
pub struct Checked {
    /// How many documents are right.
    pub documents: u32,
    /// What is wrong with the next: its offset is counted from the first byte.
    pub failure: Option<Failure>,
}

/// Checks the documents in these bytes, one behind the other.
#[napi(catch_unwind)]
pub fn check_documents(bytes: BufferSlice) -> Checked {
    let (mut at, mut documents) = (0, 0);
    while at < bytes.len() {
        let checked = Document::first(&bytes[at..], Rules::new())
            .and_then(|(document, _)| document.check().map(|()| document.len()));
        match checked {
            Ok(len) => at += len,
            Err(error) => return Checked { documents, failure: Some(Failure::behind(&error, at)) },
        }
        documents += 1;
    }
    Checked { documents, failure: None }
}
