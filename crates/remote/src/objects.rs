//! The objects of a store whose keys begin with a prefix.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use millstream_core::error::Result;
use serde::Deserialize;

use crate::answer::wrong;
use crate::calls::repeat;
use crate::client::{Call, Target, wait_for};
use crate::remote::Remote;
use crate::s3::{self, Names};

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedObject {
    /// The URL.
    pub url: String,
    /// The number of bytes.
    pub size: u64,
}

/// The objects whose URLs begin with a prefix, in the order of the store: by the bytes of their keys. They are requested
/// as they are iterated, 1000 at a time.
pub struct Objects {
    target: Arc<Target>,
    prefix: String,
    page: std::vec::IntoIter<ListedObject>,
    next: Option<String>,
}

impl Objects {
    /// Lists the objects under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn new(remote: Remote) -> Result<Objects> {
        let name = remote.name();
        let (target, prefix) = Target::of_prefix(remote).map_err(|error| error.with_name(&name))?;
        Ok(Objects { target: Arc::new(target), prefix, page: Vec::new().into_iter(), next: Some(String::new()) })
    }

    /// Requests the page after this token.
    fn request(&mut self, token: String) -> Result<()> {
        let mut query = vec![
            ("encoding-type", "url".to_string()),
            ("list-type", "2".to_string()),
            ("max-keys", "1000".to_string()),
            ("prefix", self.prefix.clone()),
        ];
        if !token.is_empty() {
            query.push(("continuation-token", token.clone()));
        }
        let target = self.target.clone();
        let limit = target.options.idle_timeout * 6;
        let call = Call { method: Method::GET, query, headers: target.user_headers(false), body: Bytes::new(), limit };
        let answer = wait_for(async move { repeat(&target, call).await }, &mut || Ok(()))??;
        let page: Page = s3::document(&answer.body, "ListBucketResult")
            .ok_or_else(|| wrong("a list of objects that is not valid").with_expected("a ListBucketResult"))?;
        let names = Names::new(page.encoding_type.as_deref());
        let url = |key: &str| self.target.sibling_url(&names.decode(key));
        let listed = page.contents.iter().map(|listed| ListedObject { url: url(&listed.key), size: listed.size });
        self.page = listed.collect::<Vec<_>>().into_iter();
        self.next = page.next_continuation_token.filter(|_| page.is_truncated);
        // A store that repeats itself would be asked forever.
        if page.is_truncated && self.next.as_ref().is_none_or(|next| *next == token || next.is_empty()) {
            return Err(wrong("a list of objects without its next page").with_expected("a NextContinuationToken"));
        }
        Ok(())
    }
}

impl Iterator for Objects {
    type Item = Result<ListedObject>;

    fn next(&mut self) -> Option<Result<ListedObject>> {
        loop {
            if let Some(object) = self.page.next() {
                return Some(Ok(object));
            }
            let next = self.next.take()?;
            if let Err(error) = self.request(next) {
                (self.next, self.page) = (None, Vec::new().into_iter());
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
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
    #[serde(default)]
    contents: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    key: String,
    size: u64,
}
