//! The elements of an array of a JSON document as a source: each is followed by a byte that no document contains.

use super::{ByteSource, Nature};
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use millstream_core::internal::{JsonElements, SEPARATOR};

/// A source of elements, over a source of the document. All bytes before an error are delivered first.
pub(crate) struct ElementsSource {
    source: Box<dyn ByteSource>,
    filter: JsonElements,
    /// Whether the source ends between two elements, and not with the document.
    is_part: bool,
    /// The separator that did not fit into the caller's last byte.
    held: Option<u8>,
    /// The error after the bytes that were delivered last.
    failure: Option<Error>,
}

impl ElementsSource {
    pub(crate) fn new(source: Box<dyn ByteSource>, filter: JsonElements) -> ElementsSource {
        ElementsSource { source, filter, is_part: false, held: None, failure: None }
    }

    /// Creates a source of elements for a part of a document that ends after an element.
    #[cfg(feature = "splits")]
    pub(crate) fn part(source: Box<dyn ByteSource>, filter: JsonElements) -> ElementsSource {
        ElementsSource { is_part: true, ..ElementsSource::new(source, filter) }
    }

    /// Reads once into `space`, which has at least two bytes, and returns the number of bytes that were kept, or `None` at
    /// the end of the document.
    fn read_once(&mut self, space: &mut [u8], wait: &Wait) -> Result<Option<usize>> {
        let count = self.source.read(&mut space[1..], wait)?;
        if count == 0 {
            if self.is_part && self.filter.end_number() {
                space[0] = SEPARATOR;
                return Ok(Some(1));
            }
            let ended = match self.is_part {
                true if self.filter.around().is_some() => Ok(()),
                true => Err(Error::new(ErrorKind::SourceChanged)
                    .with_found("a split of a JSON document that does not end after an element")
                    .with_expected("the document of the plan")),
                false => self.filter.finish(),
            };
            return match ended {
                Ok(()) => Ok(None),
                // If the source has failed, that is what cut the document short.
                Err(error) => Err(self.source.finish(wait, &mut Vec::new()).err().unwrap_or(error)),
            };
        }
        let (kept, result) = self.filter.filter(&mut space[..=count], 1);
        match result {
            Err(error) if kept == 0 => Err(error),
            result => {
                self.failure = result.err();
                Ok(Some(kept))
            }
        }
    }
}

impl ByteSource for ElementsSource {
    fn read(&mut self, space: &mut [u8], wait: &Wait) -> Result<usize> {
        if let Some(byte) = self.held.take() {
            space[0] = byte;
            return Ok(1);
        }
        if let Some(error) = self.failure.take() {
            self.failure = Some(Error::new(ErrorKind::Closed));
            return Err(error);
        }
        loop {
            let count = match &mut *space {
                [byte] => {
                    let mut pair = [0; 2];
                    let count = self.read_once(&mut pair, wait)?;
                    *byte = pair[0];
                    self.held = (count == Some(2)).then_some(pair[1]);
                    count.map(|count| count.min(1))
                }
                space => self.read_once(space, wait)?,
            };
            match count {
                None => return Ok(0),
                // Nothing was kept of what arrived.
                Some(0) => wait.check()?,
                Some(count) => return Ok(count),
            }
        }
    }

    fn finish(&mut self, wait: &Wait, ends: &mut Vec<CommandEnd>) -> Result<()> {
        self.source.finish(wait, ends)
    }

    fn stop(&mut self) {
        self.source.stop();
    }

    fn close(self: Box<Self>, ends: &mut Vec<CommandEnd>) {
        self.source.close(ends);
    }

    fn abandon(self: Box<Self>) {
        self.source.abandon();
    }

    /// A read may need several reads of the source.
    fn nature(&self) -> Nature {
        match self.source.nature() {
            Nature::CallerOnly => Nature::CallerOnly,
            _ => Nature::Foreign,
        }
    }

    fn is_interruptible(&self) -> bool {
        self.source.is_interruptible()
    }
}
