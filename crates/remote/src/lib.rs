//! Objects of web servers and object stores as sources: whole, in order and of one version, or an error. Objects of
//! stores as sinks: they appear whole, or not at all.
//!
//! An [`Object`] is opened by a GET for all of it. If the answer has a strong validator (an ETag that changes with the
//! content), the rest is fetched in ranges, several at a time, each of which requires the same version; a connection
//! that breaks, stalls or ends early is resumed at the exact byte. Without a strong validator, the first answer is the
//! only one, because a second one could be of another version.
//!
//! An [`Upload`] sends its parts while it is written; the object appears when it is closed.
//!
//! The asynchronous runtime is private: no caller needs one or notices it. The library `millstream` opens objects with
//! `Reader::url`, by its feature `remote`.

mod address;
mod answer;
mod calls;
mod client;
mod complete;
mod guard;
mod object;
mod objects;
mod pages;
mod patience;
mod remote;
mod s3;
mod unfinished;
mod upload;
mod uploads;

pub use object::Object;
pub use objects::{ListedObject, Objects};
pub use remote::Remote;
pub use unfinished::UnfinishedUpload;
pub use upload::Upload;
pub use uploads::{Outcome, Uploads, outcome};
