//! How much has been copied, and why copying stopped.

use std::ops::AddAssign;

use millstream::Error;

/// A number of records and bytes. Records are only counted if that is needed.
#[derive(Clone, Copy, Default)]
pub(super) struct Amount {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// Why copying stopped, and the state of the source.
pub(super) enum Halt {
    Source(Error),
    /// An output or a stage failed.
    Output(Error),
}
