//! Objects of web servers and object stores as sources: whole, in order and of one version, or an error. Objects of
//! stores as sinks: they appear whole, or not at all.
//!
//! An [`Object`] is opened by a GET for all of it. If the answer has a strong validator (an ETag that changes with the
//! content), the rest is fetched in ranges, several at a time, each of which requires the same version; a connection
//! that breaks, stalls or ends early is resumed at the exact byte. Without a strong validator, the first answer is the
//! only one, because a second one could be of another version.
//!
//! A [`Version`] is one version of an object, of which any range can be requested; a plan can store it.
//!
//! An [`Upload`] sends its parts while it is written; the object appears when it is closed, or when any process completes
//! the [`StagedObject`] that was made of it.
//!
//! The asynchronous runtime is private: no caller needs one or notices it. The library `millstream` opens objects with
//! `Reader::url`, by its feature `remote`.

//! Without the feature `client`, this crate consists of the description of objects, and opening one is an error. It needs no
//! other crate then, so a library whose users may want objects can always offer them.

#[cfg(not(feature = "client"))]
mod absent;
mod found;
#[doc(hidden)] // for the command line
pub mod pattern;
mod remote;

#[cfg(feature = "client")]
mod address;
#[cfg(feature = "client")]
mod answer;
#[cfg(feature = "client")]
mod azure;
#[cfg(feature = "client")]
mod blocks;
#[cfg(feature = "client")]
mod calls;
#[cfg(feature = "client")]
mod check;
#[cfg(feature = "client")]
mod checksum;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod complete;
#[cfg(feature = "client")]
mod gcs;
#[cfg(feature = "client")]
mod guard;
#[cfg(feature = "client")]
#[doc(hidden)] // for tests and fuzzing
pub mod internal;
#[cfg(feature = "client")]
mod netrc;
#[cfg(feature = "client")]
mod object;
#[cfg(feature = "client")]
mod objects;
#[cfg(feature = "client")]
mod opening;
#[cfg(feature = "client")]
mod pages;
#[cfg(feature = "client")]
mod patience;
#[cfg(feature = "client")]
mod range;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod s3;
#[cfg(feature = "client")]
mod staged;
#[cfg(feature = "client")]
mod store;
#[cfg(feature = "client")]
mod upload;
#[cfg(feature = "client")]
mod uploads;
#[cfg(feature = "client")]
mod version;
#[cfg(feature = "client")]
mod xml;

pub use found::{ListedObject, Outcome, StagedObject, UnfinishedUpload};
pub use remote::Remote;

#[cfg(not(feature = "client"))]
pub use absent::{Object, Objects, Opening, Upload, Uploads, Version, content, outcome, remove, size};
#[cfg(feature = "client")]
pub use object::Object;
#[cfg(feature = "client")]
pub use objects::Objects;
#[cfg(feature = "client")]
pub use opening::Opening;
#[cfg(feature = "client")]
pub use staged::{content, remove, size};
#[cfg(feature = "client")]
pub use upload::Upload;
#[cfg(feature = "client")]
pub use uploads::{Uploads, outcome};
#[cfg(feature = "client")]
pub use version::Version;

#[cfg(not(feature = "client"))]
use absent::shown;
#[cfg(feature = "client")]
use address::shown;
