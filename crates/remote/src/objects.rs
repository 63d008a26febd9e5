//! The objects of a store whose keys begin with a prefix.

use millstream_core::error::Result;
use serde::Deserialize;

use crate::found::ListedObject;
use crate::pages::{Page, Pages, Query};
use crate::remote::Remote;
use crate::s3::Names;

/// The objects whose URLs begin with a prefix, in the order of the store: by the bytes of their keys. They are requested
/// as they are iterated, 1000 at a time.
pub struct Objects(Pages<ObjectPage>);

impl Objects {
    /// Lists the objects under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn new(remote: Remote) -> Result<Objects> {
        Pages::new(remote).map(Objects)
    }
}

impl Iterator for Objects {
    type Item = Result<ListedObject>;

    fn next(&mut self) -> Option<Result<ListedObject>> {
        self.0.next()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectPage {
    #[serde(default)]
    is_truncated: bool,
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
    #[serde(default)]
    contents: Vec<Contents>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    key: String,
    size: u64,
}

impl Page for ObjectPage {
    type Entry = ListedObject;
    const ROOT: &'static str = "ListBucketResult";
    const QUERY: &'static [(&'static str, &'static str)] =
        &[("encoding-type", "url"), ("list-type", "2"), ("max-keys", "1000")];

    fn split(self, url: impl Fn(&str) -> String) -> (Vec<ListedObject>, Option<Query>) {
        let names = Names::new(self.encoding_type.as_deref());
        let entry = |one: Contents| ListedObject { url: url(&names.decode(&one.key)), size: one.size };
        let token = self.next_continuation_token.unwrap_or_default();
        let next = self.is_truncated.then(|| vec![("continuation-token", token)]);
        (self.contents.into_iter().map(entry).collect(), next)
    }
}
