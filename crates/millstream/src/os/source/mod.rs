//! Sources that need the operating system.

pub(crate) mod command;
pub(crate) mod fd;
mod follow;
pub(crate) mod mapped;
