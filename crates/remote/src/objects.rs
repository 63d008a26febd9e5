//! The objects of a store whose keys begin with a prefix, or match a pattern.

use globset::{GlobBuilder, GlobMatcher};
use millstream_core::error::{Error, ErrorKind, Result};

use crate::found::ListedObject;
use crate::pages::{Listed, Pages};
use crate::pattern::fixed_part;
use crate::remote::Remote;
use crate::store::{Page, Protocol};

/// The objects whose URLs begin with a prefix, in the order of the store: by the bytes of their keys. They are requested
/// as they are iterated, 1000 at a time.
pub struct Objects {
    listed: Pages<ListedObject>,
    pattern: Option<GlobMatcher>,
}

impl Objects {
    /// Lists the objects under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`, or the same of `gs://` or
    /// `az://`.
    ///
    /// # Errors
    /// Fails if the URL or an option is invalid.
    pub fn new(remote: Remote) -> Result<Objects> {
        Ok(Objects { listed: Pages::new(remote)?, pattern: None })
    }

    /// Lists the objects whose URLs match the pattern that is the URL of `remote`, such as `s3://BUCKET/logs/**/*.gz`. `*`
    /// and `?` do not match `/`, `**` matches any directories, `[…]` one of these characters, and `{a,b}` either text, as in
    /// the crate globset. Objects whose keys end with `/`, which some programs create as directories, do not match.
    ///
    /// # Errors
    /// Fails if the pattern or an option is invalid, and for a pattern as the name of a bucket.
    pub fn matching(remote: Remote) -> Result<Objects> {
        let invalid = |found: String, expected: &str| {
            Error::new(ErrorKind::InvalidOption).with_name(remote.name()).with_found(found).with_expected(expected)
        };
        let pattern = GlobBuilder::new(&remote.url).literal_separator(true).build();
        let pattern = pattern.map_err(|error| invalid(error.kind().to_string(), "a valid pattern"))?.compile_matcher();
        let prefix = fixed_part(&remote.url);
        if prefix.matches('/').count() < 3 {
            let expected = "s3://BUCKET/PATTERN, or the same of gs:// or az://";
            return Err(invalid("a pattern as the name of a bucket".into(), expected));
        }
        let prefix = Remote { url: prefix.into(), ..remote };
        Ok(Objects { listed: Pages::new(prefix)?, pattern: Some(pattern) })
    }

    /// Calls `check` every 20 ms while the store is asked for a page. An error of it ends the wait and the list.
    pub fn checking(mut self, check: impl FnMut() -> Result<()> + Send + Sync + 'static) -> Objects {
        self.listed.check = Box::new(check);
        self
    }
}

impl Iterator for Objects {
    type Item = Result<ListedObject>;

    fn next(&mut self) -> Option<Result<ListedObject>> {
        let matches =
            |url: &str| self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(url) && !url.ends_with('/'));
        self.listed.find(|object| object.as_ref().map_or(true, |object| matches(&object.url)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_a_bucket_are_refused() {
        let refused = |url: &str| Objects::matching(Remote::new(url)).err().unwrap().to_string();
        assert!(refused("s3://b*/c").contains("found a pattern as the name of a bucket"));
        assert!(refused("s3://b/[*").contains("expected a valid pattern"));
    }
}
