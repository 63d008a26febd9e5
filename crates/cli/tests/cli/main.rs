//! The built `millstream` command from the user's point of view: files, output, messages, and endings.

mod bad_use;
mod bench;
mod bson;
mod bson_memory;
mod commit;
#[cfg(feature = "remote")]
mod commit_stores;
#[cfg(feature = "parquet")]
mod convert;
mod cores;
mod csv;
mod each;
mod endings;
mod generated;
#[cfg(feature = "remote")]
#[path = "../../../millstream/tests/shared/http.rs"]
mod http;
mod index;
mod json;
#[cfg(feature = "remote")]
mod killed;
mod orphans;
mod outputs;
mod pipelines;
mod place;
mod records;
#[cfg(feature = "remote")]
mod remote;
mod reports;
#[cfg(feature = "remote")]
#[allow(dead_code, reason = "the tests of the library use the rest")]
#[path = "../../../remote/tests/servers/server.rs"]
mod server;
#[path = "../../../millstream/tests/skip/mod.rs"]
mod skip;
mod sources;
mod split;
mod stages;
mod standard;
#[cfg(feature = "remote")]
#[path = "../../../millstream/tests/shared/store.rs"]
mod store;
mod terminal;
#[cfg(feature = "remote")]
mod uploads;
mod vectors;
#[cfg(feature = "remote")]
#[path = "../../../remote/tests/servers/versitygw.rs"]
mod versitygw;
