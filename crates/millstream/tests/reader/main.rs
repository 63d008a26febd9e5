//! The reader from the user's point of view: these tests use only the public interface, one topic per file.
//!
//! `every_way` runs a case with each method of reading, `deadline` turns a hang into a failure, `alone` gives a test
//! a separate process, `sample` creates text in which missing pieces are detected, and `processes` finds out which
//! processes exist. Each other file tests one topic.

mod alone;
mod deadline;
mod every_way;
mod processes;
mod sample;

mod again;
mod cancelling;
mod commands;
mod early_stop;
#[cfg(all(feature = "hash", feature = "splits"))]
mod expected;
mod faulty_sources;
mod following;
mod framing;
mod handshake;
mod leaks;
mod limits;
mod long_records;
mod own_sources;
mod pipelines;
mod signals;
mod sources;
mod stderr;
mod unfinished;

#[cfg(feature = "compression")]
mod compressed;
