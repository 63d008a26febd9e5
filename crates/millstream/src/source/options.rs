//! The caller's options for a source.

/// The limits on the size of decoded data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecodeLimit {
    /// At most this many decoded bytes.
    pub(crate) bytes: Option<u64>,
    /// At most this many decoded bytes for each compressed byte, from the first decoded MiB on.
    pub(crate) ratio: Option<u64>,
}

/// Which properties of a regular file must not change while it is read to its end.
///
/// The open file is checked at the end, even if its name refers to a different file by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// The existing bytes must not change. A file that has become shorter fails with
    /// [`SourceShrank`](crate::ErrorKind::SourceShrank), and a modified file of the same size with
    /// [`SourceChanged`](crate::ErrorKind::SourceChanged). The file may grow.
    #[default]
    Content,
    /// Content and size must not change: a file that has grown fails with
    /// [`SourceChanged`](crate::ErrorKind::SourceChanged) too.
    Identity,
}

/// Whether compressed sources are decoded.
///
/// The default is [`Auto`](Decode::Auto) for files, pipes, commands and memory, and [`Off`](Decode::Off) for sockets
/// (even one given as a file descriptor), callbacks and sources that the program defines. These mostly carry a
/// protocol, whose messages might begin like a compressed stream. With [`Auto`](Decode::Auto) the content of the source
/// decides. Bytes are held back only while all bytes read so far could be the beginning of a compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decode {
    /// Every format that can also be written, such as gzip and zstd, is detected by its first bytes and decoded (in a
    /// build with the feature `compression`). lz4 and bzip2 are detected too, but cannot be decoded: they fail with
    /// [`Unsupported`](crate::ErrorKind::Unsupported).
    Auto,
    /// Bytes are delivered unchanged.
    Off,
}
