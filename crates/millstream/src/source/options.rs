//! The caller's options for a source.

/// How large decoded data may become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecodeLimit {
    /// At most this many decoded bytes.
    pub(crate) bytes: Option<u64>,
    /// At most this many decoded bytes for each compressed byte, from the first decoded MiB on.
    pub(crate) ratio: Option<u64>,
}

/// What must not change about a regular file while it is read to its end.
///
/// The open file is checked at the end; whatever its name refers to by then does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// Its existing bytes: a file that has become shorter is [`SourceShrank`](crate::ErrorKind::SourceShrank), and a
    /// file of the same size that was modified is [`SourceChanged`](crate::ErrorKind::SourceChanged). It may grow.
    #[default]
    Content,
    /// Content and size: a file that has grown is [`SourceChanged`](crate::ErrorKind::SourceChanged) too.
    Identity,
}
