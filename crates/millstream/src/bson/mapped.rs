//! Mapped files of documents: bytes are read only when they are accessed.

use super::{Document, Rules};
use crate::error::{Error, Result};
use crate::os::source::mapped::{Order, check_length, map};
use millstream_core::internal::Lent;
use std::fs::File;
use std::iter::FusedIterator;
use std::path::Path;

/// A mapped file with one document or several consecutive documents.
///
/// Opening takes the same short time for any size: a page of the file is read on access, and the memory used is the
/// kernel's cache of the file. The kernel gets no hint about the order, because lookups access the file in random
/// order, and arrays are read from front to back. The kernel's default (reading a little around each access, and more
/// if accesses are sequential) suits both.
///
/// A caller that maps a file promises that no process shrinks or changes it while it is mapped.
/// [`check_length`](Mapped::check_length) checks whether it has shrunk. But accessing bytes that no longer exist kills
/// the process with SIGBUS, and if another process writes to the file, validated data (such as UTF-8 text) may no
/// longer be valid. If that can happen, read the file instead: [`DocumentBuf`](super::DocumentBuf).
///
/// ```
/// use millstream::bson::Mapped;
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("two.bson");
/// # std::fs::write(&path, b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\x2b\0\0\0\0").unwrap();
/// let file = Mapped::open(&path)?;
/// let numbers = file.documents().map(|document| document?.require("n")).collect::<Result<Vec<i32>, _>>()?;
/// assert_eq!(numbers, [42, 43]);
/// # Ok::<(), millstream::Error>(())
/// ```
pub struct Mapped {
    memory: Lent,
    file: File,
    name: String,
    rules: Rules,
}

impl Mapped {
    /// Maps a regular file and reads its documents with the default rules.
    ///
    /// # Errors
    /// Returns [`OpenFailed`](crate::ErrorKind::OpenFailed), also for anything other than a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Mapped> {
        Mapped::with_rules(path, Rules::new())
    }

    /// Maps a regular file and reads its documents with these rules.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Mapped::open).
    pub fn with_rules(path: impl AsRef<Path>, rules: Rules) -> Result<Mapped> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match map(path, Order::Any) {
            Ok((memory, file, _)) => Ok(Mapped { memory, file, name, rules }),
            Err(error) => Err(error.with_name(name)),
        }
    }

    /// Returns the name of the file, as it was given. Errors of this type contain it; add it to errors of the file's
    /// documents with [`Error::with_name`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of the whole file.
    pub fn as_bytes(&self) -> &[u8] {
        (*self.memory).as_ref()
    }

    /// Returns the only document of the file.
    ///
    /// Files written by BSON.jl may have bytes after the document; lenient rules accept them.
    ///
    /// # Errors
    /// Returns the errors of [`Document::with_rules`]. A document is smaller than 2 GiB; a file with several documents
    /// may be larger.
    pub fn document(&self) -> Result<Document<'_>> {
        Document::with_rules(self.as_bytes(), self.rules).map_err(|error| error.with_name(&self.name))
    }

    /// Returns an iterator over the documents. Each step reads a document's length and its last byte.
    pub fn documents(&self) -> MappedDocuments<'_> {
        MappedDocuments { file: self, at: 0, count: 0, ended: false }
    }

    /// Checks that the file still has all the bytes that were mapped.
    ///
    /// # Errors
    /// Returns [`SourceShrank`](crate::ErrorKind::SourceShrank) or [`Io`](crate::ErrorKind::Io).
    pub fn check_length(&self) -> Result<()> {
        check_length(&self.file, self.as_bytes().len() as u64).map_err(|error| error.with_name(&self.name))
    }
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapped({:?}, {} bytes)", self.name, self.as_bytes().len())
    }
}

/// An iterator over the documents of a [`Mapped`] file. Their offsets are counted from the start of the file. An error
/// ends the iteration.
#[derive(Clone, Debug)]
pub struct MappedDocuments<'a> {
    file: &'a Mapped,
    at: usize,
    count: u64,
    ended: bool,
}

impl<'a> MappedDocuments<'a> {
    /// Returns the position of the next document, in bytes from the start of the file. After an error it is the
    /// position of the invalid document.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Adds the place of the document that the iterator returned last to an error that was found in it: the file's name
    /// and the document's number. An error that names a source stays unchanged.
    ///
    /// ```
    /// use millstream::bson::{Mapped, decode_document};
    /// use std::collections::BTreeMap;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("two.bson");
    /// # std::fs::write(&path, b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0\x0c\0\0\0\x10n\0\xff\xff\xff\xff\0").unwrap();
    /// let file = Mapped::open(&path)?;
    /// let mut documents = file.documents();
    /// let error = loop {
    ///     let document = documents.next().expect("a document that is invalid")?;
    ///     match decode_document::<BTreeMap<&str, u32>>(&document) {
    ///         Ok(counts) => assert_eq!(counts["n"], 42),
    ///         Err(error) => break documents.locate(error),
    ///     }
    /// };
    /// assert_eq!((error.name(), error.record(), error.offset()), (Some(file.name()), Some(1), Some(19)));
    /// # Ok::<(), millstream::Error>(())
    /// ```
    #[must_use]
    pub fn locate(&self, error: Error) -> Error {
        match error.name() {
            Some(_) => error,
            None => error.with_name(&self.file.name).with_record(self.count.saturating_sub(1)),
        }
    }
}

impl<'a> Iterator for MappedDocuments<'a> {
    type Item = Result<Document<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.file.as_bytes()[self.at..];
        if self.ended || rest.is_empty() {
            return None;
        }
        let base = self.at as u64;
        match Document::first(rest, self.file.rules) {
            Ok((document, _)) => {
                self.at += document.len();
                self.count += 1;
                Some(Ok(document.at_offset(base)))
            }
            Err(error) => {
                self.ended = true;
                Some(Err(self.at_next(error)))
            }
        }
    }
}

impl FusedIterator for MappedDocuments<'_> {}

impl MappedDocuments<'_> {
    #[cold]
    fn at_next(&self, error: Error) -> Error {
        error.shift_offset(self.at as u64).with_record(self.count).with_name(&self.file.name)
    }
}
