//! What the built `millstream` command does, as its users see it: files, output, messages, and how it ends.

mod bad_use;
mod bench;
mod bson;
mod bson_memory;
mod each;
mod endings;
mod generated;
mod orphans;
mod outputs;
mod place;
mod records;
mod reports;
mod sources;
mod stages;
mod standard;
mod terminal;
mod vectors;
