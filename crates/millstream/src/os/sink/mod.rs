//! Sinks that need the operating system.

pub(crate) mod command;
pub(crate) mod fd;
#[cfg(target_os = "linux")]
mod lend;
mod linger;
pub(crate) mod mapped;
pub(crate) mod path;
pub(crate) mod socket;
mod temporary;
