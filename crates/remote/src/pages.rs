//! Lists of a store, which come in pages.

use std::sync::Arc;

use http::Method;
use millstream_core::error::Result;
use serde::de::DeserializeOwned;

use crate::answer::wrong;
use crate::calls::repeat;
use crate::client::{Call, Target, wait_for};
use crate::remote::Remote;
use crate::s3;

/// Pairs of a query.
pub(crate) type Query = Vec<(&'static str, String)>;

/// A page of a list.
pub(crate) trait Page: DeserializeOwned {
    type Entry;
    /// The name of the document.
    const ROOT: &'static str;
    /// The query of every page, apart from the prefix.
    const QUERY: &'static [(&'static str, &'static str)];

    /// Returns the entries, and the query of the next page, if there is one. `url` returns the URL of a key.
    fn split(self, url: impl Fn(&str) -> String) -> (Vec<Self::Entry>, Option<Query>);
}

/// The entries of a list, which are requested as they are iterated.
pub(crate) struct Pages<P: Page> {
    pub(crate) target: Arc<Target>,
    prefix: String,
    entries: std::vec::IntoIter<P::Entry>,
    next: Option<Query>,
}

impl<P: Page> Pages<P> {
    /// Lists what is under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    pub(crate) fn new(remote: Remote) -> Result<Pages<P>> {
        let name = remote.name();
        let (target, prefix) = Target::of_prefix(remote).map_err(|error| error.with_name(&name))?;
        Ok(Pages { target: Arc::new(target), prefix, entries: Vec::new().into_iter(), next: Some(Vec::new()) })
    }

    fn request(&mut self, next: Query) -> Result<()> {
        let mut query: Query = P::QUERY.iter().map(|&(name, value)| (name, value.to_string())).collect();
        query.push(("prefix", self.prefix.clone()));
        query.extend(next.clone());
        let target = self.target.clone();
        let limit = target.options.idle_timeout * 6;
        let call = Call { limit, ..Call::new(&target, Method::GET, query) };
        let answer = wait_for(async move { repeat(&target, call).await }, &mut || Ok(()))??;
        let page: Option<P> = s3::document(&answer.body, P::ROOT);
        let page = page.ok_or_else(|| wrong("a list that is not valid").with_expected(P::ROOT))?;
        let (entries, following) = page.split(|key| self.target.sibling_url(key));
        // A store that repeats itself would be asked forever.
        if following
            .as_ref()
            .is_some_and(|following| *following == next || following.iter().all(|pair| pair.1.is_empty()))
        {
            return Err(wrong("a list without its next page").with_expected("the place where that page begins"));
        }
        (self.entries, self.next) = (entries.into_iter(), following);
        Ok(())
    }
}

impl<P: Page> Iterator for Pages<P> {
    type Item = Result<P::Entry>;

    fn next(&mut self) -> Option<Result<P::Entry>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(Ok(entry));
            }
            let next = self.next.take()?;
            if let Err(error) = self.request(next) {
                return Some(Err(error.with_name(self.target.options.name())));
            }
        }
    }
}
