//! A stream of small records that ends after a given number of bytes. It is never in memory or on a disk as a whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use clap::Args;
use millstream_runners::documents::Records;

/// Writes the same ten thousand records repeatedly.
#[derive(Args)]
pub struct Producer {
    /// Write complete blocks of records until there are at least this many bytes.
    bytes: u64,
}

/// The block that is repeated, of about 1.2 MB.
const BLOCK: Records = Records { count: 10_000, seed: 1 };

impl Producer {
    /// Writes the whole stream.
    pub fn run(&self) -> io::Result<()> {
        let mut block = Vec::new();
        BLOCK.write(&mut block)?;
        let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let mut written = 0;
        while written < self.bytes {
            out.write_all(&block)?;
            written += block.len() as u64;
        }
        Ok(())
    }
}
