//! The reader as a user sees it: the public interface only, one topic a file.
//!
//! `every_way` runs a case in each way a user can ask for it, `deadline` turns a hang into a failure, `alone` gives a
//! test a separate process, `sample` makes text that shows where it was torn, `processes` asks the system who is
//! still there. The other files are the topics.

mod alone;
mod deadline;
mod every_way;
mod processes;
mod sample;

mod cancelling;
mod commands;
mod early_stop;
mod faulty_sources;
mod following;
mod framing;
mod handshake;
mod leaks;
mod long_records;
mod own_sources;
mod pipelines;
mod signals;
mod sources;
mod stderr;
mod unfinished;

#[cfg(feature = "compression")]
mod compressed;
