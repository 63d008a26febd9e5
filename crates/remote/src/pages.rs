//! Lists of a store, which come in pages.

use std::sync::Arc;

use http::Method;
use millstream_core::error::{Error, Result};

use crate::answer::wrong;
use crate::calls::{answer_limit, repeat};
use crate::client::{Target, wait_for};
use crate::remote::Remote;
use crate::request::Call;
use crate::store::{Page, Protocol, Query};

/// An entry of a list.
pub(crate) trait Listed: Sized {
    /// Returns the query of every page, apart from the prefix.
    fn query(protocol: &dyn Protocol) -> Result<&'static [(&'static str, &'static str)]>;

    /// Parses a page. `url` returns the URL of a key.
    fn page(protocol: &dyn Protocol, body: &str, url: &dyn Fn(&str) -> String) -> Option<Page<Self>>;
}

/// The entries of a list, which are requested as they are iterated.
pub(crate) struct Pages<T> {
    pub(crate) target: Arc<Target>,
    prefix: String,
    entries: std::vec::IntoIter<T>,
    next: Option<Query>,
    /// An error of it ends the wait for a page.
    pub(crate) check: Box<dyn FnMut() -> Result<()> + Send + Sync>,
}

impl<T: Listed> Pages<T> {
    /// Lists what is under `remote`: `s3://BUCKET` or `s3://BUCKET/PREFIX`, or the same of another store.
    pub(crate) fn new(remote: Remote) -> Result<Pages<T>> {
        let name = remote.name();
        let named = |error: Error| error.with_name(&name);
        let (target, prefix) = Target::of_prefix(remote).map_err(named)?;
        T::query(target.protocol()?).map_err(named)?;
        let (target, entries) = (Arc::new(target), Vec::new().into_iter());
        Ok(Pages { target, prefix, entries, next: Some(Vec::new()), check: Box::new(|| Ok(())) })
    }

    fn request(&mut self, next: Query) -> Result<()> {
        let protocol = self.target.protocol()?;
        let mut query: Query = T::query(protocol)?.iter().map(|&(name, value)| (name, value.to_string())).collect();
        query.push(("prefix", self.prefix.clone()));
        query.extend(next.clone());
        let target = self.target.clone();
        let call = Call { limit: Some(answer_limit(&target.options)), ..Call::new(Method::GET, query) };
        let answer = wait_for(async move { repeat(&target, call).await }, &mut self.check)??;
        let page = T::page(protocol, &answer.body, &|key| self.target.sibling_url(key));
        let (entries, following) =
            page.ok_or_else(|| wrong("a list that is not valid").with_expected("its document"))?;
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

impl<T: Listed> Iterator for Pages<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
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
