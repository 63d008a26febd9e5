//! Remote objects as sources and sinks, by the feature `remote`: [`Reader::url`](crate::ReaderBuilder::url) and
//! [`Writer::url`](crate::Writer::url). This module also finds unfinished uploads.
//!
//! ```no_run
//! use std::time::{Duration, SystemTime};
//! use millstream::Remote;
//! use millstream::remote::Uploads;
//!
//! let yesterday = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
//! let mut uploads = Uploads::new(Remote::new("s3://reports/2026/"))?;
//! while let Some(upload) = uploads.next().transpose()? {
//!     if upload.begun.is_some_and(|begun| begun < yesterday) {
//!         uploads.abort(&upload)?;
//!     }
//! }
//! # Ok::<(), millstream::Error>(())
//! ```

#[doc(hidden)] // for the command line and the packages of other languages
pub use millstream_remote::pattern;
pub use millstream_remote::{ListedObject, Objects, Opening, Outcome, Remote, UnfinishedUpload, Uploads, outcome};
