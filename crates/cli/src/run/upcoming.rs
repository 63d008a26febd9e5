//! Opens the sources after the first one. Objects are opened before their turn, several at a time: one after another, each
//! would wait for the answer of its server.

use std::collections::VecDeque;

use millstream::remote::Opening;
use millstream::{CancelToken, Pin, Reader, Result};

use super::members::Members;
use super::options::Options;
use super::pattern::List;
use super::source::Source;

/// The number of objects that are open before their turn.
const AHEAD: usize = 16;

/// The most that is received of each of them before its turn. An object that is not longer needs one request.
const FIRST: u64 = 1 << 20;

/// The sources that have not been read.
pub(super) struct Upcoming<'a> {
    sources: &'a [Source],
    /// The objects that follow them and have not been listed, and those that have.
    list: Option<List>,
    listed: VecDeque<String>,
    options: &'a Options,
    input: &'a CancelToken,
    /// The next sources. Objects are being opened.
    next: VecDeque<Result<(Source, Option<Opening>)>>,
}

impl<'a> Upcoming<'a> {
    pub(super) fn new(sources: &'a [Source], options: &'a Options, input: &'a CancelToken) -> Upcoming<'a> {
        let list = options.rest.take().map(|list| list.cancel(input));
        Upcoming { sources, list, listed: VecDeque::new(), options, input, next: VecDeque::new() }
    }

    /// Returns the next source, open; `None` after the last one.
    ///
    /// # Errors
    /// Returns the errors of listing objects, and of opening the source.
    pub(super) fn next(&mut self) -> Option<Result<(Source, (Reader, Members))>> {
        while self.next.len() <= AHEAD
            && let Some(source) = self.next_source()
        {
            self.next.push_back(source.and_then(|source| self.begin(source)));
        }
        let next = self.next.pop_front()?;
        Some(next.and_then(|(source, opening)| {
            let opened = match opening {
                Some(opening) => {
                    let builder = self.options.reader().cancel(self.input).pin(Pin::Content);
                    (builder.object(opening)?, Members::None)
                }
                None => open(&source, self.options, self.input)?,
            };
            Ok((source, opened))
        }))
    }

    /// Begins to open a source that is an object.
    fn begin(&self, source: Source) -> Result<(Source, Option<Opening>)> {
        let opening = match &source {
            Source::Url(url) => Some(Opening::start(self.options.settings.network().remote(url).first_range(FIRST))?),
            _ => None,
        };
        Ok((source, opening))
    }

    fn next_source(&mut self) -> Option<Result<Source>> {
        if let Some((source, rest)) = self.sources.split_first() {
            self.sources = rest;
            return Some(Ok(source.clone()));
        }
        while self.listed.is_empty()
            && let Some(mut list) = self.list.take()
        {
            match list.next_urls(self.options.settings.network()) {
                Ok(Some(urls)) => (self.listed, self.list) = (urls.into(), Some(list)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        self.listed.pop_front().map(|url| Ok(Source::Url(url)))
    }
}

/// Opens a source.
pub(super) fn open(source: &Source, options: &Options, input: &CancelToken) -> Result<(Reader, Members)> {
    source.open_with_members(options.reader().cancel(input), &options.settings, options.stats.is_some())
}
