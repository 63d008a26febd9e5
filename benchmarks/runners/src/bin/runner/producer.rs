//! A command that writes lines with configurable timing: at full speed, in small writes, in bursts, or with work in
//! between.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use clap::Args;
use millstream_runners::input::Lines;

use crate::consumer::work;

/// Writes lines of 80 bytes on average, which repeat in every MiB.
#[derive(Args)]
pub struct Producer {
    /// The number of bytes to write.
    #[arg(long)]
    bytes: u64,
    /// The size of one write.
    #[arg(long, default_value_t = BLOCK)]
    write: usize,
    /// Pause each time this many bytes have been written.
    #[arg(long, default_value_t = u64::MAX)]
    burst: u64,
    /// The length of a pause, in milliseconds.
    #[arg(long, default_value_t = 0)]
    pause_ms: u64,
    /// Hash each byte this many times before writing it.
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// The block that is repeated.
const BLOCK: usize = 1 << 20;

impl Producer {
    /// Writes all lines.
    pub fn run(&self, out: &mut impl Write) -> io::Result<()> {
        let mut block = Vec::with_capacity(BLOCK);
        Lines { bytes: BLOCK as u64, mean: 80, seed: 80 }.write(&mut block).map_err(io::Error::other)?;

        let mut hash = 0;
        let mut written = 0;
        while written < self.bytes {
            let at = (written % BLOCK as u64) as usize;
            let until_pause = self.burst - written % self.burst;
            let most = until_pause.min(self.bytes - written).min(self.write as u64) as usize;
            let piece = &block[at..(at + most).min(BLOCK)];
            hash = std::hint::black_box(work(hash, piece, self.work));
            out.write_all(piece)?;
            written += piece.len() as u64;
            if written.is_multiple_of(self.burst) {
                thread::sleep(Duration::from_millis(self.pause_ms));
            }
        }
        out.flush()
    }
}
