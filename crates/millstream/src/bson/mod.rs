//! BSON documents, read in place from memory, files and streams. This module requires the feature `bson`.
//!
//! ```
//! use millstream::bson::{Document, ObjectId};
//!
//! let bytes = b"\x16\0\0\0\x10n\0\x2a\0\0\0\x02s\0\x03\0\0\0hi\0\0";
//! let document = Document::new(bytes)?;
//! assert_eq!(document.get::<i32>("n")?, Some(42));
//! assert_eq!(document.get::<&str>("s")?, Some("hi")); // borrowed from `bytes`
//! assert_eq!(document.get::<ObjectId>("_id")?, None);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! Documents, Rust types, columns and Extended JSON come from the crate [`millstream_bson`], whose documentation is the
//! guide to them. This module re-exports all items of that crate under the same names, and adds the parts that need an
//! operating system:
//!
//! | to | use |
//! |---|---|
//! | read consecutive documents from a [`Reader`](crate::Reader) | [`Documents`] |
//! | own one document of a `Reader` | [`DocumentBuf::read`] |
//! | open a file without reading it | [`Mapped`] |
//! | write a document to a [`Writer`](crate::Writer) as one record | [`encode_to_writer`], [`to_writer`] |
//! | read and write the files of Julia's BSON.jl | [`julia`] |
//! | derive `FromBson` and `ToBson` | [`macro@FromBson`], [`macro@ToBson`] |

mod mapped;

pub use mapped::{Mapped, MappedDocuments};
pub use millstream_bson::*;
pub use millstream_bson_julia as julia;
pub use millstream_derive::{FromBson, ToBson};

/// Consecutive documents, from a [`Reader`](crate::Reader).
///
/// ```
/// use millstream::Reader;
/// use millstream::bson::Documents;
/// let mut documents = Documents::new(Reader::memory(b"\x0c\0\0\0\x10n\0\x2a\0\0\0\0")?);
/// assert_eq!(documents.next()?.expect("there is one").get("n")?, Some(42));
/// assert!(documents.next()?.is_none());
/// # Ok::<(), millstream::Error>(())
/// ```
pub type Documents = millstream_bson::Documents<crate::Reader>;

/// Converts the documents of a [`Reader`](crate::Reader) to columns. This module re-exports all items of
/// [`millstream_bson::columns`].
pub mod columns {
    pub use millstream_bson::columns::*;

    /// The documents of a reader as columns, batch by batch.
    pub type Batches = millstream_bson::columns::Batches<crate::Reader>;

    /// The documents of a reader as Arrow record batches.
    #[cfg(feature = "arrow")]
    pub type RecordBatches = millstream_bson::columns::RecordBatches<crate::Reader>;
}
