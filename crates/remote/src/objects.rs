//! The objects of a store whose keys begin with a prefix.

use millstream_core::error::Result;

use crate::found::ListedObject;
use crate::pages::{Listed, Pages};
use crate::remote::Remote;
use crate::store::{Page, Protocol};

/// The objects whose URLs begin with a prefix, in the order of the store: by the bytes of their keys. They are requested
/// as they are iterated, 1000 at a time.
pub struct Objects(Pages<ListedObject>);

impl Objects {
    /// Lists the objects under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`, or the same of `gs://` or
    /// `az://`.
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

impl Listed for ListedObject {
    fn query(protocol: &dyn Protocol) -> Result<&'static [(&'static str, &'static str)]> {
        Ok(protocol.objects_query())
    }

    fn page(protocol: &dyn Protocol, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<ListedObject>> {
        protocol.objects(body, url)
    }
}
