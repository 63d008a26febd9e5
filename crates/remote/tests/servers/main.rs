//! Objects of the servers of other projects, over connections that break: `Reader::url` delivers all bytes of one
//! version, or an error, and an object of `Writer::url` appears whole or not at all. `tools/setup` installs the servers. The tests of the library's `Reader::url` have a server that
//! misbehaves in ways that these do not.

mod azure;
mod faults;
mod gcs;
mod job;
mod read;
mod s3;
mod server;
mod sink;
#[path = "../../../millstream/tests/skip/mod.rs"]
mod skip;
mod store;
mod versitygw;
mod web;
