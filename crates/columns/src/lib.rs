//! Records as columns of Arrow: CSV, lines and JSON, with types that are inferred or given.
//!
//! ```
//! use arrow_array::{cast::AsArray, types::Int64Type};
//! use millstream::{Reader, frame::Csv};
//! use millstream_columns::{Batches, Options};
//! let reader = Reader::memory("name,age\nAnn,41\n\"Bob, Jr.\",17\n")?;
//! let mut batches = Batches::csv(reader, Csv::new(), &Options::new())?;
//! assert_eq!(batches.schema().to_json(), r#"{"fields":[{"name":"name","type":"string"},{"name":"age","type":"int64"}]}"#);
//! let mut sum = 0;
//! while let Some(batch) = batches.next_batch()? {
//!     sum += batch["age"].as_primitive::<Int64Type>().values().iter().sum::<i64>();
//! }
//! assert_eq!(sum, 58);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The rules of types are the same for every format, and are written down in `docs/types.md`: an inferred type must print
//! every value back losslessly, and a later value that does not fit is an error with its place or, by option, a reject. It
//! never becomes null. The end of the batches means that the source succeeded.
//!
//! The reading thread finds the records. With [`Options::threads`], other threads turn them into columns; the batches
//! arrive in order. At most three blocks of records per thread are held, and a block is at most the reader's buffer, or
//! one long record.

mod batches;
mod build;
mod delimited;
mod described;
mod infer;
mod json;
mod layout;
mod options;
mod rows;
mod schema;
mod span;
mod text;

pub use batches::{Batches, Records};
pub use delimited::Delimited;
#[doc(hidden)] // for the bindings
pub use described::Described;
#[doc(hidden)] // for the bindings
pub use options::KEPT_REJECTS;
pub use options::{Duplicates, Infer, OnBad, Options, Reject};
pub use schema::Schema;
#[doc(hidden)] // for the command line
pub use schema::{document_schema_from_json, document_schema_to_json};
