//! Opens the sources after the first one. Objects are opened before their turn, several at a time: one after another, each
//! would wait for the answer of its server.

use std::collections::VecDeque;
use std::panic;
use std::thread::{self, JoinHandle};

use millstream::{CancelToken, Reader, Result};

use super::members::Members;
use super::options::Options;
use super::source::Source;

/// The number of objects that are open before their turn.
const AHEAD: usize = 8;

/// The most that is received of each of them before its turn. An object that is not longer needs one request.
const FIRST: u64 = 1 << 20;

/// The sources that have not been read.
pub(super) struct Upcoming<'a> {
    sources: &'a [Source],
    options: &'a Options,
    input: &'a CancelToken,
    /// The next sources, if they are being opened.
    opening: VecDeque<Option<JoinHandle<Result<Reader>>>>,
}

impl<'a> Upcoming<'a> {
    pub(super) fn new(sources: &'a [Source], options: &'a Options, input: &'a CancelToken) -> Upcoming<'a> {
        Upcoming { sources, options, input, opening: VecDeque::new() }
    }

    /// Returns the next source, open; `None` after the last one.
    ///
    /// # Errors
    /// Returns the errors of opening it.
    pub(super) fn next(&mut self) -> Option<Result<(&'a Source, (Reader, Members))>> {
        self.open_ahead();
        let (source, rest) = self.sources.split_first()?;
        self.sources = rest;
        let opened = match self.opening.pop_front().flatten() {
            Some(opening) => opening
                .join()
                .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
                .map(|reader| (reader, Members::None)),
            None => open(source, self.options, self.input),
        };
        Some(opened.map(|opened| (source, opened)))
    }

    /// Begins to open the next objects.
    fn open_ahead(&mut self) {
        // The time of a source begins when it is opened.
        if self.options.settings.given.has("total_timeout") {
            return;
        }
        while self.opening.len() < AHEAD.min(self.sources.len()) {
            let Source::Url(url) = &self.sources[self.opening.len()] else {
                self.opening.push_back(None);
                continue;
            };
            let builder = self.options.reader().cancel(self.input);
            let remote = self.options.settings.network().remote(url).first_range(FIRST);
            let open = move || Source::open_object(builder, remote);
            self.opening.push_back(thread::Builder::new().name("millstream-open".into()).spawn(open).ok());
        }
    }
}

/// Opens a source.
pub(super) fn open(source: &Source, options: &Options, input: &CancelToken) -> Result<(Reader, Members)> {
    source.open_with_members(options.reader().cancel(input), &options.settings, options.stats.is_some())
}
