//! The origins of items that stages hold back. They are kept until the items have been passed on, so that a later stage
//! can still report the record at which it failed, and the record can be quarantined.

use std::sync::Arc;

use crate::frame::Batch;

/// A batch's records, without the bytes if they are not needed.
#[derive(Debug)]
pub(super) struct Origin {
    name: Option<Arc<str>>,
    /// The number of its first record, over all sources.
    first: u64,
    first_in_source: u64,
    /// Whether its records are lines.
    of_lines: bool,
    /// The position of the bytes in their source.
    offset: u64,
    offsets: Vec<u32>,
    bytes: Option<Vec<u8>>,
}

impl Origin {
    /// Creates the origin of a batch. Its first record has the number `first` over all sources, and a different
    /// number in its source.
    pub(super) fn of(
        batch: Batch<'_>,
        name: Option<Arc<str>>,
        (first, first_in_source): (u64, u64),
        keep: bool,
    ) -> Origin {
        Origin {
            name,
            first,
            first_in_source,
            of_lines: batch.first_line().is_some(),
            offset: batch.offset(),
            offsets: batch.offsets().to_vec(),
            bytes: keep.then(|| batch.bytes().to_vec()),
        }
    }

    /// Adds the number of records before a split, whose records were counted from its start.
    #[cfg(feature = "splits")]
    pub(super) fn shift(&mut self, records: u64) {
        self.first += records;
        self.first_in_source += records;
    }

    /// Returns whether a record with a number from `first` to `last` is in this batch.
    pub(super) fn has_any(&self, (first, last): (u64, u64)) -> bool {
        let end = self.first + self.offsets.len().saturating_sub(1) as u64;
        self.first <= last && first < end
    }

    /// Returns the place of a record, if it is in this batch.
    pub(super) fn place(&self, record: u64) -> Option<Place<'_>> {
        let index = usize::try_from(record.checked_sub(self.first)?).ok()?;
        let &[start, end] = self.offsets.get(index..)?.first_chunk()?;
        let record = self.first_in_source + index as u64;
        Some(Place {
            name: self.name.as_ref(),
            record,
            line: self.of_lines.then_some(record + 1),
            offset: self.offset + u64::from(start),
            bytes: self.bytes.as_ref().map(|bytes| &bytes[start as usize..end as usize]),
        })
    }
}

/// The place of a record.
pub(super) struct Place<'a> {
    /// The name of its source.
    pub(super) name: Option<&'a Arc<str>>,
    /// Its number in its source.
    pub(super) record: u64,
    /// Its line; absent if it is not a line of a text.
    pub(super) line: Option<u64>,
    pub(super) offset: u64,
    /// The record as it was read; absent if it is not needed.
    pub(super) bytes: Option<&'a [u8]>,
}

impl<'a> Place<'a> {
    /// Returns the place of a record in a batch whose first record has the number `first`.
    pub(super) fn find(batch: Batch<'a>, first: u64, name: Option<&'a Arc<str>>, record: u64) -> Option<Place<'a>> {
        let index = usize::try_from(record.checked_sub(first)?).ok()?;
        Some(Place {
            name,
            record: batch.first_record() + index as u64,
            line: batch.first_line().map(|line| line + index as u64),
            offset: batch.offset() + u64::from(*batch.offsets().get(index)?),
            bytes: Some(batch.raw(index)?),
        })
    }
}
