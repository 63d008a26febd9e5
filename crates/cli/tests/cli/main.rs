//! The built `millstream` command from the user's point of view: files, output, messages, and endings.

mod bad_use;
mod bench;
mod bson;
mod bson_memory;
mod commit;
#[cfg(feature = "parquet")]
mod convert;
mod cores;
mod csv;
mod each;
mod endings;
mod generated;
mod index;
mod json;
mod orphans;
mod outputs;
mod pipelines;
mod place;
mod records;
#[cfg(feature = "remote")]
mod remote;
mod reports;
mod sources;
mod split;
mod stages;
mod standard;
mod terminal;
#[cfg(feature = "remote")]
mod uploads;
mod vectors;
