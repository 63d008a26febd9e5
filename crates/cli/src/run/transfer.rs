//! The transfer itself: open, copy, complete.

use std::time::{Duration, Instant};

use millstream::frame::{Bson, Delimiter, Fixed, Framer, Lines};
use millstream::{Error, ErrorKind, Reader, ReaderBuilder, Result, Writer};

use crate::signals::Signals;

use super::checksum::Checksum;
use super::identity;
use super::options::{Decode, Options, ReadAhead};
use super::outputs::Outputs;
use super::pace::Pace;
use super::progress::{self, Progress};
use super::source::Source;
use super::stats::{self, Failure, SourceStats, SourceStatus, Stats, per_second};

/// What a complete run has moved.
pub(super) struct Moved {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) checksum: Option<Checksum>,
}

/// Moves everything. Whatever the result, all commands are gone when this returns, and what could not be completed
/// has been removed.
pub(super) fn run(options: &Options, signals: &mut Signals) -> Result<Moved> {
    let started = Instant::now();
    options.sinks().try_for_each(|(sink, _)| sink.encode(options.decode).map(drop))?;
    let sources = sources(options);
    let previews = sources.iter().map(Source::preview).collect::<Result<Vec<_>>>()?;
    let identities: Vec<_> = previews.iter().map(|preview| preview.identity.clone()).collect();
    identity::check(options, &identities)?;

    // Opening a FIFO or a connection may wait, and nothing is there yet to clean up: until then a signal does what
    // it always does. A command, in contrast, must be stopped.
    if matches!(sources[0], Source::Command(_)) {
        signals.watch()?;
    }
    let first = sources[0].open(reader_builder(options, signals))?;
    signals.watch()?;

    let stats = options.stats.as_ref().map(stats::open).transpose()?;
    let outputs = Outputs::open(options, signals.token())?;
    let size = previews.iter().enumerate().map(|(i, preview)| match i {
        0 => first.progress().source_size,
        _ => preview.size,
    });
    let progress = progress::is_shown(options).then(|| Progress::start(size.sum()));
    let transfer = Transfer {
        options,
        signals,
        started,
        outputs,
        pace: options.rate_limit.map(Pace::new),
        progress,
        records: 0,
        bytes: 0,
        longest_record: 0,
        waited_on_source: Duration::ZERO,
        place: Place::default(),
        ended: Vec::new(),
    };
    transfer.run(&sources, first, stats)
}

/// The sources in their order: those that are named, then the command, or else standard input.
fn sources(options: &Options) -> Vec<Source> {
    let mut sources = options.sources.clone();
    if !options.command.is_empty() {
        sources.push(Source::Command(options.command.clone()));
    }
    if sources.is_empty() {
        sources.push(Source::Stdin);
    }
    sources
}

fn reader_builder(options: &Options, signals: &Signals) -> ReaderBuilder {
    let mut builder = Reader::builder()
        .read_ahead(match options.read_ahead {
            ReadAhead::Auto => millstream::ReadAhead::Auto,
            ReadAhead::On => millstream::ReadAhead::On,
            ReadAhead::Off => millstream::ReadAhead::Off,
        })
        .decode(match options.decode {
            Decode::Auto => millstream::Decode::Auto,
            Decode::Off => millstream::Decode::Off,
        })
        .cancel(signals.token());
    if let Some(capacity) = options.buffer {
        builder = builder.capacity(capacity);
    }
    if let Some(limit) = options.record_limit {
        builder = builder.record_limit(limit);
    }
    if let Some(timeout) = options.timeout {
        builder = builder.stall_timeout(timeout);
    }
    builder
}

/// A run under way.
struct Transfer<'a> {
    options: &'a Options,
    signals: &'a Signals,
    started: Instant,
    outputs: Outputs,
    pace: Option<Pace>,
    progress: Option<Progress>,
    records: u64,
    bytes: u64,
    longest_record: usize,
    waited_on_source: Duration,
    place: Place,
    /// The sources that have ended.
    ended: Vec<SourceStats>,
}

/// How far the sources have been read, for the progress line.
#[derive(Default)]
struct Place {
    /// The sizes of the sources that have ended, before decoding.
    earlier: u64,
    /// How many bytes had been moved when the present source was begun.
    begun_at: u64,
    /// How much of it has been read, if it is decoded. Otherwise what has been moved says it more exactly.
    encoded: Option<u64>,
}

/// Why copying stopped, and so what became of the source.
enum Halt {
    Source(Error),
    Output(Error),
}

impl Transfer<'_> {
    /// Copies all sources, completes the outputs, writes the report.
    fn run(mut self, sources: &[Source], first: Reader, report: Option<Writer>) -> Result<Moved> {
        let copied = self.copy_all(sources, first);
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
        let waited_on_sink = self.outputs.waited();
        let mut completed = match copied {
            Ok(()) => self.outputs.close(),
            Err(error) => {
                self.outputs.abandon();
                Err(error)
            }
        };
        if let Some(report) = report {
            let elapsed = self.started.elapsed();
            let stats = Stats {
                complete: completed.is_ok(),
                error: completed.as_ref().err().map(Failure::from),
                records: self.records,
                bytes: self.bytes,
                seconds: elapsed.as_secs_f64(),
                records_per_second: per_second(self.records, elapsed),
                bytes_per_second: per_second(self.bytes, elapsed),
                longest_record: self.longest_record,
                waited_on_source_seconds: self.waited_on_source.as_secs_f64(),
                waited_on_sink_seconds: waited_on_sink.as_secs_f64(),
                hash: completed.as_ref().ok().cloned().flatten(),
                sources: self.ended,
            };
            let written = stats::write(report, &stats);
            completed = completed.and_then(|checksum| written.map(|()| checksum));
        }
        completed.map(|checksum| Moved { records: self.records, bytes: self.bytes, checksum })
    }

    fn copy_all(&mut self, sources: &[Source], first: Reader) -> Result<()> {
        self.copy(&sources[0], first)?;
        for source in &sources[1..] {
            let reader = source.open(reader_builder(self.options, self.signals))?;
            self.copy(source, reader)?;
        }
        Ok(())
    }

    /// Copies one source, and takes note of how it ended.
    fn copy(&mut self, source: &Source, mut reader: Reader) -> Result<()> {
        if let Some(progress) = &self.progress {
            progress.source(reader.name());
        }
        let (records, bytes) = (self.records, self.bytes);
        self.place.begun_at = bytes;
        let copied = self.copy_records(&mut reader);
        let progress = reader.progress();
        let mut ended = SourceStats {
            name: reader.name().to_string(),
            status: match &copied {
                Ok(()) if source.vouches_for_its_end() || progress.format.is_some() => SourceStatus::Succeeded,
                Ok(()) => SourceStatus::Closed,
                Err(Halt::Source(error)) if error.kind() != ErrorKind::Cancelled => SourceStatus::Failed,
                Err(_) => SourceStatus::Stopped,
            },
            exit_status: None,
            signal: None,
            records: self.records - records,
            bytes: self.bytes - bytes,
            source_bytes: progress.source_bytes,
            decoded: progress.format.map(|format| format.to_string()),
        };
        self.longest_record = self.longest_record.max(progress.longest_record);
        self.waited_on_source += progress.waited;
        self.place = Place { earlier: self.place.earlier + progress.source_bytes, begun_at: self.bytes, encoded: None };
        self.show();
        // Ends the command, if that is still running.
        let closed = reader.close();
        let result = match (copied, closed) {
            (Ok(()), Ok(ends)) => {
                ends.iter().for_each(|end| ended.ended(end));
                Ok(())
            }
            (Ok(()), Err(error)) => {
                ended.status = SourceStatus::Failed;
                Err(error)
            }
            (Err(Halt::Source(error) | Halt::Output(error)), closed) => {
                closed.iter().flatten().chain(error.command()).for_each(|end| ended.ended(end));
                Err(error)
            }
        };
        self.ended.push(ended);
        result
    }

    /// Copies by records if somebody wants to know about them, and by windows if not.
    fn copy_records(&mut self, reader: &mut Reader) -> Result<(), Halt> {
        let options = self.options;
        if let Some(delimiter) = &options.delimiter {
            self.copy_batches(reader, Delimiter::bytes(delimiter.as_slice()).map_err(Halt::Source)?)
        } else if options.null {
            self.copy_batches(reader, Delimiter::byte(0))
        } else if let Some(size) = options.fixed {
            self.copy_batches(reader, Fixed::new(size).map_err(Halt::Source)?)
        } else if let Some(prefix) = options.length_prefixed {
            self.copy_batches(reader, prefix.framer())
        } else if options.bson {
            self.copy_batches(reader, Bson::new())
        } else if options.wants_records() || self.progress.is_some() {
            self.copy_batches(reader, Lines::new())
        } else {
            self.copy_windows(reader)
        }
    }

    fn copy_batches(&mut self, reader: &mut Reader, mut framer: impl Framer) -> Result<(), Halt> {
        while let Some(batch) = reader.next_batch(&mut framer).map_err(Halt::Source)? {
            self.records += batch.len() as u64;
            self.put(batch.bytes()).map_err(Halt::Output)?;
            self.locate(reader);
        }
        Ok(())
    }

    fn copy_windows(&mut self, reader: &mut Reader) -> Result<(), Halt> {
        while reader.fill().map_err(Halt::Source)? > 0 {
            let window = reader.buffer();
            self.put(window).map_err(Halt::Output)?;
            let len = window.len();
            reader.consume(len);
        }
        Ok(())
    }

    /// Hands bytes on, as fast as they may go.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let step = self.pace.as_ref().map_or(bytes.len(), Pace::step);
        for step in bytes.chunks(step.max(1)) {
            self.outputs.write(step)?;
            self.bytes += step.len() as u64;
            self.show();
            if let Some(pace) = &mut self.pace {
                self.signals.pause(pace.go(step.len(), Instant::now()))?;
            }
        }
        Ok(())
    }

    /// Takes note of how much of a compressed source has been read.
    fn locate(&mut self, reader: &Reader) {
        if self.progress.is_some() {
            let progress = reader.progress();
            self.place.encoded = progress.format.map(|_| progress.source_bytes);
        }
    }

    fn show(&self) {
        if let Some(progress) = &self.progress {
            let Place { earlier, begun_at, encoded } = self.place;
            progress.update(self.bytes, self.records, earlier + encoded.unwrap_or(self.bytes - begun_at));
        }
    }
}
