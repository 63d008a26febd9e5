//! Where items came from that stages hold back: kept until they have been handed on, so that a stage behind can still say
//! at which record it failed, and the record can be put aside.

use std::sync::Arc;

use super::scope::{OnFailure, Scope};
use crate::frame::Batch;

/// A batch's records, without the bytes if nobody wants them.
#[derive(Debug)]
pub(super) struct Origin {
    name: Option<Arc<str>>,
    /// The number of its first record, over all sources.
    first: u64,
    first_in_source: u64,
    /// Where the bytes are in their source.
    offset: u64,
    offsets: Vec<u32>,
    bytes: Option<Vec<u8>>,
}

impl Origin {
    /// Of the batch that is being worked on: one for all who ask.
    pub(super) fn of(scope: Scope<'_>) -> Option<Arc<Origin>> {
        let batch = scope.batch?;
        let mut known = scope.run.origin.borrow_mut();
        let origin = known.get_or_insert_with(|| {
            let (first, first_in_source) = scope.run.first.get();
            Arc::new(Origin {
                name: scope.run.name.borrow().clone(),
                first,
                first_in_source,
                offset: batch.offset(),
                offsets: batch.offsets().to_vec(),
                bytes: (scope.run.on_error == OnFailure::Skip { keep: true }).then(|| batch.bytes().to_vec()),
            })
        });
        Some(origin.clone())
    }

    /// Where a record is, if it is one of these.
    pub(super) fn place(&self, record: u64) -> Option<Place<'_>> {
        let index = usize::try_from(record.checked_sub(self.first)?).ok()?;
        let &[start, end] = self.offsets.get(index..)?.first_chunk()?;
        Some(Place {
            name: self.name.as_ref(),
            record: self.first_in_source + index as u64,
            offset: self.offset + u64::from(start),
            bytes: self.bytes.as_ref().map(|bytes| &bytes[start as usize..end as usize]),
        })
    }
}

/// Where a record is.
pub(super) struct Place<'a> {
    /// The name of its source.
    pub(super) name: Option<&'a Arc<str>>,
    /// Its number in its source.
    pub(super) record: u64,
    pub(super) offset: u64,
    /// As it was read; absent where nobody wants to know.
    pub(super) bytes: Option<&'a [u8]>,
}

impl<'a> Place<'a> {
    /// Where a record is in a batch whose first one has the number `first`.
    pub(super) fn find(batch: Batch<'a>, first: u64, name: Option<&'a Arc<str>>, record: u64) -> Option<Place<'a>> {
        let index = usize::try_from(record.checked_sub(first)?).ok()?;
        Some(Place {
            name,
            record: batch.first_record() + index as u64,
            offset: batch.offset() + u64::from(*batch.offsets().get(index)?),
            bytes: Some(batch.raw(index)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::scope::Run;
    use super::*;

    /// Lots that come back out of order can share their last batch only.
    #[test]
    fn every_origin_of_what_is_handed_on_is_known() {
        let batch = |first| {
            let (offsets, bytes) = (vec![0, 1, 2], None);
            Arc::new(Origin { name: None, first, first_in_source: first + 100, offset: 0, offsets, bytes })
        };
        let batches = [0, 2, 4].map(batch);
        let run = Run::new();
        run.hand(&batches[1..2]);
        run.hand(&batches[..2]);
        run.hand(&batches[..2]);
        run.hand(&batches[1..]);
        assert!((0..6).all(|record| run.handed.borrow().iter().any(|origin| origin.place(record).is_some())));
        assert_eq!(run.handed.borrow().len(), 5);
        assert_eq!(run.number_in_source(5), 105);
    }
}
