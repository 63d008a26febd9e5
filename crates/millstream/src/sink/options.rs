//! The caller's options for a written file, and the result of closing a sink.

use crate::error::CommandEnd;

/// What happens to an existing regular file, or to an existing object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new content replaces it.
    #[default]
    Replace,
    /// The new bytes are appended. They are visible as soon as they are written, even if the rest fails.
    ///
    /// For compressed output, the file must be a complete file of the same format, because data after a truncated
    /// stream could not be read. This is checked first; a plain gzip file has to be decoded for this check.
    Append,
    /// Like [`Append`](Existing::Append), but a compressed file is not checked.
    AppendUnchecked,
    /// Opening fails if it exists, and so does closing if another program has created it since then
    /// ([`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists)). This also applies to objects.
    CreateNew,
}

/// What happens to incomplete output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// The file appears, complete, when the writer is closed. Otherwise it does not appear.
    #[default]
    Remove,
    /// The file is written in place: it is truncated first, and the written bytes stay, even after an error.
    Keep,
}

/// What [`close`](crate::Writer::close) waits for before a regular file gets its name.
///
/// `close` always reports errors of closing the file, which NFS and quotas return for a full disk. By default it does
/// not wait for the disk: a power failure within about half a minute may lose the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the bytes, and writes them to the disk later.
    #[default]
    Cached,
    /// The bytes are on the disk (fdatasync(2)): if the new file exists, it is complete.
    Data,
    /// The file's attributes and its name are on the disk, too (fsync(2) of the file, and then of its directory): after
    /// `close` the name refers to the new file.
    All,
}

/// The result of [`Writer::close`](crate::Writer::close).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterEnd {
    /// The number of bytes accepted.
    pub bytes: u64,
    /// The number of bytes passed to the operating system, after encoding.
    pub written: u64,
    /// How the command ended, if the sink was a command.
    pub commands: Vec<CommandEnd>,
    /// All bytes that were written, if the sink was [`Writer::memory`](crate::Writer::memory).
    pub memory: Option<Vec<u8>>,
}
