//! The caller's options for a written file, and what closing a sink reports.

use crate::error::CommandEnd;

/// What to do with an existing regular file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new content replaces it.
    #[default]
    Replace,
    /// The new bytes are appended. They are visible as soon as they are written, even if the rest fails.
    ///
    /// For compressed output, the file must be a complete one of the same format: data after a truncated stream could
    /// not be read. This is checked first; plain gzip has to be decoded for it.
    Append,
    /// The same, but without the check of a compressed file.
    AppendUnchecked,
}

/// What to do with incomplete output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// A file appears complete when the writer is closed, or not at all.
    #[default]
    Remove,
    /// A file is written in place: it is truncated first, and what was written stays, even after an error.
    Keep,
}

/// What a regular file's [`close`](crate::Writer::close) waits for, before the file gets its name.
///
/// It always reports errors of closing the file, as NFS and quotas return for a full disk. It does not wait for the
/// disk unless requested: a power failure within the next half minute or so may lose the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The system has the bytes, and writes them to the disk later.
    #[default]
    Cached,
    /// The bytes are on the disk (fdatasync(2)): if the new file exists, it is complete.
    Data,
    /// The file's attributes and its name are on the disk, too (fsync(2) of the file, and then of its directory): after
    /// `close` the name refers to the new file.
    All,
}

/// How a writer ended: what [`Writer::close`](crate::Writer::close) returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterEnd {
    /// Bytes accepted.
    pub bytes: u64,
    /// Bytes passed to the system, after encoding.
    pub written: u64,
    /// How the command ended, if the sink was one.
    pub commands: Vec<CommandEnd>,
    /// Everything that was written, if the sink was [`Writer::memory`](crate::Writer::memory).
    pub memory: Option<Vec<u8>>,
}
