//! Millstream, used through its public interface.

use clap::{Args, ValueEnum};
use millstream::frame::Lines;
use millstream::{ReadAhead, Reader, Result};

use crate::consumer::{Consumer, Effort, Slow, Tally};
use crate::source::Source;

/// A source that Millstream reads.
#[derive(Args)]
pub struct ReaderOptions {
    #[command(flatten)]
    source: Source,
    /// Whether a thread reads ahead.
    #[arg(long, value_enum, default_value_t = Ahead::Auto)]
    read_ahead: Ahead,
    /// The size of the buffer in bytes; by default the library's.
    #[arg(long)]
    buffer: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ahead {
    Auto,
    On,
    Off,
}

impl ReaderOptions {
    fn open(&self) -> Result<Reader> {
        let read_ahead = match self.read_ahead {
            Ahead::Auto => ReadAhead::Auto,
            Ahead::On => ReadAhead::On,
            Ahead::Off => ReadAhead::Off,
        };
        let mut builder = Reader::builder().read_ahead(read_ahead);
        if let Some(bytes) = self.buffer {
            builder = builder.capacity(bytes);
        }
        match &self.source.file {
            Some(path) => builder.path(path),
            None => builder.command(self.source.command.as_slice()),
        }
    }

    /// Reads one line at a time, with the requested effort.
    pub fn next_line(&self, effort: Effort) -> Result<String> {
        // There are two loops, so that pure counting does not include the cost of the optional work.
        match effort.is_none() {
            true => self.lines_into(Tally::default()),
            false => self.lines_into(Slow::new(effort)),
        }
    }

    fn lines_into(&self, mut consumer: impl Consumer) -> Result<String> {
        let mut reader = self.open()?;
        while let Some(line) = reader.next_line()? {
            consumer.record(line);
        }
        Ok(consumer.to_string())
    }

    /// Reads a batch of lines at a time.
    pub fn next_batch(&self) -> Result<String> {
        let mut reader = self.open()?;
        let mut lines = Lines::new();
        let mut tally = Tally::default();
        while let Some(batch) = reader.next_batch(&mut lines)? {
            for line in &batch {
                tally.record(line);
            }
        }
        Ok(tally.to_string())
    }
}
