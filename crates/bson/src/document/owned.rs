//! A document that owns its bytes.

use crate::wire::cursor::bytes_text;
use crate::{Document, Rules};
use millstream_core::{Error, ErrorKind, ReadRecords, Result};

/// A document that owns its memory, read from a stream or created from a vector.
///
/// [`document`](DocumentBuf::document) gives access to it at no cost. [`Map`](crate::Map) is a tree of values, which is
/// slower to create and easier to change.
///
/// ```
/// use millstream::{Reader, bson::DocumentBuf};
/// let mut reader = Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x05\0\0\0\0")?;
/// let first = DocumentBuf::read(&mut reader)?.expect("there are two");
/// assert_eq!(first.document().get::<i32>("n")?, Some(42));
/// assert!(DocumentBuf::read(&mut reader)?.expect("there are two").document().is_empty());
/// assert!(DocumentBuf::read(&mut reader)?.is_none());
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone)]
pub struct DocumentBuf {
    /// Exactly one document.
    bytes: Vec<u8>,
    /// The original position in the stream.
    offset: u64,
    rules: Rules,
}

impl DocumentBuf {
    /// Reads the next document of a stream, with the default rules; `None` if the stream has ended.
    ///
    /// The document is not limited by the reader's record limit and may be up to 2 GiB long. The memory grows as
    /// bytes arrive, to at most twice what has arrived, regardless of the length the document claims. (Use
    /// [`Documents`](crate::Documents) to read many consecutive documents that are not large: it is faster.)
    ///
    /// # Errors
    /// The error of the source, [`DocumentTruncated`](ErrorKind::DocumentTruncated) if the source ends within the
    /// document, [`DocumentInvalid`](ErrorKind::DocumentInvalid) for an impossible length (before anything else is
    /// read) or a missing terminator. After [`Cancelled`](ErrorKind::Cancelled), the next call continues with the same
    /// document; until then, the reader is in the middle of it.
    pub fn read<R: ReadRecords + ?Sized>(reader: &mut R) -> Result<Option<DocumentBuf>> {
        DocumentBuf::read_by(reader, Rules::new(), i32::MAX as usize)
    }

    /// Like [`read`](DocumentBuf::read), with these rules. A document of more than `limit` bytes is rejected before it
    /// is read.
    ///
    /// # Errors
    /// As for `read`, and [`MemoryLimit`](ErrorKind::MemoryLimit).
    pub fn read_by<R: ReadRecords + ?Sized>(reader: &mut R, rules: Rules, limit: usize) -> Result<Option<DocumentBuf>> {
        // Bytes that a cancelled call has read are treated as if they were at the beginning of the buffer. They include
        // the length.
        let mut bytes = reader.take_partial();
        let offset = reader.offset() - bytes.len() as u64;
        let name = |error: Error, reader: &R| error.with_name(reader.name());
        while bytes.is_empty() && reader.buffer().len() < 4 {
            if reader.fill()? > 0 {
                continue;
            }
            let left = reader.buffer().len();
            return match left {
                0 => Ok(None),
                _ => Err(name(truncated(left, 4, offset), reader)),
            };
        }
        let prefix = bytes.first_chunk().or(reader.buffer().first_chunk()).expect("at least 4 bytes, see above");
        let len = i32::from_le_bytes(*prefix);
        let len = match usize::try_from(len) {
            Ok(len) if len > limit => {
                reader.keep_partial(bytes);
                return Err(name(too_long(len, limit, offset), reader));
            }
            Ok(len) if len >= 5 => len,
            _ => return Err(name(bad_length(len, offset), reader)),
        };
        loop {
            let there = reader.buffer();
            let count = there.len().min(len - bytes.len());
            append(&mut bytes, &there[..count], len).map_err(|error| name(error, reader))?;
            reader.consume(count);
            if bytes.len() == len {
                break;
            }
            match reader.fill() {
                Ok(0) => return Err(name(truncated(bytes.len(), len, offset), reader)),
                Ok(_) => {}
                Err(error) => {
                    if error.kind().is_resumable() {
                        reader.keep_partial(bytes);
                    }
                    return Err(error);
                }
            }
        }
        match DocumentBuf::at(bytes, offset, rules) {
            Ok(document) => Ok(Some(document)),
            Err(error) => Err(name(error, reader)),
        }
    }

    /// Creates a document from these bytes, with the default rules.
    ///
    /// # Errors
    /// As for [`Document::new`].
    pub fn new(bytes: Vec<u8>) -> Result<DocumentBuf> {
        DocumentBuf::at(bytes, 0, Rules::new())
    }

    /// Creates a document from these bytes. With lenient rules, bytes after the document are cut off.
    ///
    /// # Errors
    /// As for [`Document::with_rules`].
    pub fn with_rules(bytes: Vec<u8>, rules: Rules) -> Result<DocumentBuf> {
        DocumentBuf::at(bytes, 0, rules)
    }

    fn at(mut bytes: Vec<u8>, offset: u64, rules: Rules) -> Result<DocumentBuf> {
        match Document::with_rules(&bytes, rules).map(|document| document.len()) {
            Ok(len) => {
                bytes.truncate(len);
                Ok(DocumentBuf { bytes, offset, rules })
            }
            Err(error) => Err(error.shift_offset(offset)),
        }
    }

    /// Returns the document.
    #[inline]
    pub fn document(&self) -> Document<'_> {
        Document::with_rules(&self.bytes, self.rules).expect("checked when it was created").at_offset(self.offset)
    }

    /// The bytes of the document.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes of the document as a vector.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Copies a document with its rules and its offset.
///
/// ```
/// use millstream::bson::{Document, DocumentBuf};
/// let document = Document::new(b"\x05\0\0\0\0")?.at_offset(1000);
/// assert_eq!(DocumentBuf::from(document).document().offset(), 1000);
/// # Ok::<(), millstream::Error>(())
/// ```
impl From<Document<'_>> for DocumentBuf {
    fn from(document: Document<'_>) -> DocumentBuf {
        DocumentBuf { bytes: document.as_bytes().to_vec(), offset: document.offset(), rules: document.rules() }
    }
}

/// Documents are equal if their bytes are equal.
impl PartialEq for DocumentBuf {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for DocumentBuf {}

impl std::fmt::Debug for DocumentBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentBuf({} bytes at {})", self.bytes.len(), self.offset)
    }
}

/// Appends the received bytes of a document that specifies this length. The memory doubles when it is full and never
/// exceeds the document's size.
fn append(bytes: &mut Vec<u8>, arrived: &[u8], len: usize) -> Result<()> {
    if bytes.capacity() - bytes.len() < arrived.len() {
        let more = arrived.len().max(bytes.len()).min(len - bytes.len());
        bytes.try_reserve_exact(more).map_err(|_| {
            Error::from_io(std::io::ErrorKind::OutOfMemory.into())
                .with_found(format!("no memory for {}", bytes_text(len)))
        })?;
    }
    bytes.extend_from_slice(arrived);
    Ok(())
}

#[cold]
fn truncated(found: usize, expected: usize, offset: u64) -> Error {
    Error::new(ErrorKind::DocumentTruncated)
        .with_found(format!("the end after {} of a document", bytes_text(found)))
        .with_expected(bytes_text(expected))
        .with_offset(offset)
}

#[cold]
fn bad_length(len: i32, offset: u64) -> Error {
    Error::new(ErrorKind::DocumentInvalid)
        .with_found(format!("the length {len}"))
        .with_expected("at least 5, a document without members")
        .with_offset(offset)
}

#[cold]
fn too_long(len: usize, limit: usize, offset: u64) -> Error {
    Error::new(ErrorKind::MemoryLimit)
        .with_found(format!("a document of {}", bytes_text(len)))
        .with_expected(format!("at most {}", bytes_text(limit)))
        .with_offset(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_arrives() {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            append(&mut bytes, &[7; 1000], i32::MAX as usize).unwrap();
            assert!(bytes.capacity() <= 2 * bytes.len(), "{} for {}", bytes.capacity(), bytes.len());
        }
        let mut bytes = Vec::new();
        for _ in 0..100 {
            append(&mut bytes, &[7; 1000], 100_000).unwrap();
            assert!(bytes.capacity() <= 100_000);
        }
    }
}
