//! One document that owns its bytes.

use super::cursor::bytes_text;
use super::{Document, Rules};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::Reader;

/// A document with the memory it lies in: read from a [`Reader`], or made of a vector.
///
/// [`document`](DocumentBuf::document) is what is in it, at no cost. For the values as a tree there is a type of their
/// own, which is slower to make and easier to change.
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
    /// A document, and nothing behind it.
    bytes: Vec<u8>,
    /// Where in the stream it began.
    offset: u64,
    rules: Rules,
}

impl DocumentBuf {
    /// The next document of a stream, by the default rules; `None` where the stream has ended.
    ///
    /// It is not bound by the reader's record limit: it may have up to 2 GiB. The memory grows as bytes arrive, to at
    /// most twice what has arrived, whatever the document says of its length. (Many documents one after the other,
    /// none of them large, are faster as records: [`Documents`](super::Documents).)
    ///
    /// # Errors
    /// How the source failed, [`DocumentTruncated`](ErrorKind::DocumentTruncated) where it ends within the document,
    /// [`DocumentInvalid`](ErrorKind::DocumentInvalid) for an impossible length, before it is read, or a missing
    /// terminator. After [`Cancelled`](ErrorKind::Cancelled) the next call goes on with the
    /// same document; meanwhile the reader, for others, is in the middle of it.
    pub fn read(reader: &mut Reader) -> Result<Option<DocumentBuf>> {
        DocumentBuf::read_by(reader, Rules::new(), i32::MAX as usize)
    }

    /// The same by these rules, and a document of more than `limit` bytes is refused before it is read.
    ///
    /// # Errors
    /// Also [`MemoryLimit`](ErrorKind::MemoryLimit).
    pub fn read_by(reader: &mut Reader, rules: Rules, limit: usize) -> Result<Option<DocumentBuf>> {
        // What a cancelled call has read is as if it were the front of the buffer. It has its length.
        let mut bytes = reader.take_begun();
        let offset = reader.position().bytes - bytes.len() as u64;
        let name = |error: Error, reader: &Reader| error.with_name(reader.name());
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
                reader.keep_begun(bytes);
                return Err(name(too_long(len, limit, offset), reader));
            }
            Ok(len) if len >= 5 => len,
            _ => return Err(name(bad_length(len, offset), reader)),
        };
        loop {
            let there = reader.buffer();
            let count = there.len().min(len - bytes.len());
            append(&mut bytes, &there[..count], len);
            reader.consume(count);
            if bytes.len() == len {
                break;
            }
            match reader.fill() {
                Ok(0) => return Err(name(truncated(bytes.len(), len, offset), reader)),
                Ok(_) => {}
                Err(error) => {
                    if error.kind().is_resumable() {
                        reader.keep_begun(bytes);
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

    /// The document that these bytes are, by the default rules.
    ///
    /// # Errors
    /// As for [`Document::new`].
    pub fn new(bytes: Vec<u8>) -> Result<DocumentBuf> {
        DocumentBuf::at(bytes, 0, Rules::new())
    }

    /// The document that these bytes are. With lenient rules, bytes behind it are cut off.
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

    /// The document.
    #[inline]
    pub fn document(&self) -> Document<'_> {
        Document::with_rules(&self.bytes, self.rules).expect("checked when it was made").at_offset(self.offset)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, as the vector that they are.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A copy of a document, with its rules and its offset.
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

/// The same bytes.
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

/// Appends what has arrived of a document that claims this length. The memory doubles, and never exceeds the document.
fn append(bytes: &mut Vec<u8>, arrived: &[u8], len: usize) {
    if bytes.capacity() - bytes.len() < arrived.len() {
        bytes.reserve_exact(arrived.len().max(bytes.len()).min(len - bytes.len()));
    }
    bytes.extend_from_slice(arrived);
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
            append(&mut bytes, &[7; 1000], i32::MAX as usize);
            assert!(bytes.capacity() <= 2 * bytes.len(), "{} for {}", bytes.capacity(), bytes.len());
        }
        let mut bytes = Vec::new();
        for _ in 0..100 {
            append(&mut bytes, &[7; 1000], 100_000);
            assert!(bytes.capacity() <= 100_000);
        }
    }
}
