//! The processing of each record: the minimum that proves that it was found, or work that takes time.

use std::fmt;
use std::thread;
use std::time::Duration;

use clap::Args;

/// Consumes the records of a stream.
pub trait Consumer: fmt::Display {
    /// Processes one record without its delimiter.
    fn record(&mut self, record: &[u8]);
}

/// Counts records and accesses each one once, so that every record has to be found.
#[derive(Default)]
pub struct Tally {
    count: u64,
    length: u64,
    first: u64,
}

impl Consumer for Tally {
    #[inline]
    fn record(&mut self, record: &[u8]) {
        self.count += 1;
        self.length += record.len() as u64;
        self.first += u64::from(record.first().copied().unwrap_or(0));
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "count={} length={} first={}", self.count, self.length, self.first)
    }
}

/// The work of a consumer in addition to counting.
#[derive(Args, Clone, Copy)]
pub struct Effort {
    /// Hash each byte this many times.
    #[arg(long, default_value_t = 0)]
    work: u32,
    /// Pause each time this many bytes have been consumed.
    ///
    /// The first pause is after half this many bytes, so that this process and a producer with bursts of the same size
    /// pause alternately and not together.
    #[arg(long)]
    stall: Option<u64>,
    /// The length of a pause, in milliseconds.
    #[arg(long, default_value_t = 0)]
    pause_ms: u64,
}

impl Effort {
    /// Whether there is nothing to do except counting.
    pub fn is_none(&self) -> bool {
        self.work == 0 && self.stall.is_none()
    }
}

/// Counts and works. A consumer that processes the bytes also reports their hash.
pub struct Slow {
    tally: Tally,
    effort: Effort,
    hash: u64,
    until_pause: u64,
}

impl Slow {
    /// A consumer that has not consumed anything yet.
    pub fn new(effort: Effort) -> Slow {
        let until_pause = effort.stall.map_or(u64::MAX, |bytes| bytes / 2);
        Slow { tally: Tally::default(), effort, hash: 0, until_pause }
    }
}

impl Consumer for Slow {
    fn record(&mut self, record: &[u8]) {
        self.tally.record(record);
        self.hash = work(self.hash, record, self.effort.work);
        if let Some(bytes) = self.effort.stall {
            // The delimiter counts as one byte, as in the producer.
            self.until_pause = self.until_pause.saturating_sub(record.len() as u64 + 1);
            if self.until_pause == 0 {
                thread::sleep(Duration::from_millis(self.effort.pause_ms));
                self.until_pause = bytes;
            }
        }
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tally)?;
        if self.effort.work > 0 {
            write!(f, " hash={}", self.hash >> 32)?;
        }
        Ok(())
    }
}

/// Keeps one core busy for about 1.3 ns for each byte and pass. It computes FNV-1a, in which each step depends on the
/// one before, also across records. This is real computation, because a sleeping consumer would leave its core to other
/// processes.
pub fn work(mut hash: u64, bytes: &[u8], passes: u32) -> u64 {
    for _ in 0..passes {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}
