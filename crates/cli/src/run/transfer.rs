//! The transfer itself: open, copy, complete.

use std::time::{Duration, Instant};

use millstream::frame::{Bson, Delimiter, Fixed, Framer, Lines};
use millstream::{CancelToken, Error, ErrorKind, Reader, ReaderBuilder, Result, Writer};

use crate::signals::Signals;

use super::checksum::Checksum;
use super::each::{self, Each};
use super::identity;
use super::options::{Decode, Options, ReadAhead};
use super::outputs::Outputs;
use super::pace::Pace;
use super::progress::{self, Progress};
use super::source::Source;
use super::stages::Stages;
use super::stats::{self, Failure, SourceStats, SourceStatus, StageReport, Stats, per_second};

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
    // Copies of a command may want no more when nobody has sent a signal.
    let input = match options.each.each {
        Some(_) => CancelToken::new()?,
        None => signals.token().clone(),
    };
    let interrupt = input.clone();
    signals.on_arrival(move || interrupt.cancel());
    let first = sources[0].open(reader_builder(options, &input))?;
    signals.watch()?;

    let stages = match options.stages.as_slice() {
        [] => None,
        asked => Some(Stages::new(asked, &*framer_or_lines(options)?)?),
    };
    let stages = if options.stats.is_some() { stages.map(Stages::measured) } else { stages };
    let stats = options.stats.as_ref().map(stats::open).transpose()?;
    let outputs = Outputs::open(options, signals.token())?;
    let size = previews.iter().enumerate().map(|(i, preview)| match i {
        0 => first.progress().source_size,
        _ => preview.size,
    });
    let destination = match &options.each.each {
        Some(command) => {
            let framer = || framer_or_lines(options);
            Destination::Each(Each::start(command, &options.each, outputs, &input, signals, framer)?)
        }
        None => Destination::Outputs(outputs),
    };
    let progress = progress::is_shown(options).then(|| Progress::start(size.sum()));
    let transfer = Transfer {
        options,
        signals,
        input,
        started,
        stages,
        destination,
        pace: options.rate_limit.map(Pace::new),
        progress,
        read: Amount::default(),
        moved: Amount::default(),
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

fn reader_builder(options: &Options, input: &CancelToken) -> ReaderBuilder {
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
        .cancel(input);
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

/// How records are found, if the options say so.
fn framer(options: &Options) -> Result<Option<Box<dyn Framer + Send>>> {
    Ok(Some(if let Some(delimiter) = &options.delimiter {
        Box::new(Delimiter::bytes(delimiter.as_slice())?)
    } else if options.null {
        Box::new(Delimiter::byte(0))
    } else if let Some(size) = options.fixed {
        Box::new(Fixed::new(size)?)
    } else if let Some(prefix) = options.length_prefixed {
        Box::new(prefix.framer())
    } else if options.bson {
        Box::new(Bson::new())
    } else {
        return Ok(None);
    }))
}

/// How records are found.
fn framer_or_lines(options: &Options) -> Result<Box<dyn Framer + Send>> {
    Ok(framer(options)?.unwrap_or(Box::new(Lines::new())))
}

/// A run under way.
struct Transfer<'a> {
    options: &'a Options,
    signals: &'a Signals,
    /// Ends reading.
    input: CancelToken,
    started: Instant,
    stages: Option<Stages>,
    destination: Destination,
    pace: Option<Pace>,
    progress: Option<Progress>,
    /// What the sources have given.
    read: Amount,
    /// What has come through the stages.
    moved: Amount,
    longest_record: usize,
    waited_on_source: Duration,
    place: Place,
    /// The sources that have ended.
    ended: Vec<SourceStats>,
}

/// So many records, of so many bytes. Records are only counted where somebody wants to know.
#[derive(Clone, Copy, Default)]
struct Amount {
    records: u64,
    bytes: u64,
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

/// Where the records go.
enum Destination {
    Outputs(Outputs),
    /// To copies of a command, whose output goes to the outputs.
    Each(Each),
}

/// What becomes of the outputs.
struct Finished {
    outputs: Outputs,
    /// Why they are not what they should be.
    result: Result<()>,
    /// What was passed over, as it was asked for.
    skipped: Result<()>,
    each: Option<each::Report>,
}

impl Destination {
    /// Nothing more comes. `copied` is how reading and writing have ended.
    fn finish(self, copied: Result<()>) -> Finished {
        match self {
            Destination::Outputs(outputs) => Finished { outputs, result: copied, skipped: Ok(()), each: None },
            Destination::Each(each) => {
                let each::Ended { outputs, report, result, skipped } = each.finish(copied);
                Finished { outputs, result, skipped, each: Some(report) }
            }
        }
    }
}

/// Why a source was read no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// Its end.
    End,
    /// The stages want nothing more.
    Enough,
}

/// Why copying stopped, and so what became of the source.
enum Halt {
    Source(Error),
    /// Or a stage.
    Output(Error),
}

impl Transfer<'_> {
    /// Copies all sources, completes the outputs, writes the report.
    fn run(mut self, sources: &[Source], first: Reader, report: Option<Writer>) -> Result<Moved> {
        let copied = self.copy_all(sources, first).and_then(|()| self.send_rest());
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
        let Finished { outputs, result, skipped, each } = self.destination.finish(copied);
        let waited_on_sink = outputs.waited();
        let completed = match result {
            Ok(()) => outputs.close(),
            Err(error) => {
                outputs.abandon();
                Err(error)
            }
        };
        let mut completed = completed.and_then(|checksum| skipped.map(|()| checksum));
        if let Some(report) = report {
            let elapsed = self.started.elapsed();
            let stats = Stats {
                complete: completed.is_ok(),
                error: completed.as_ref().err().map(Failure::from),
                records: self.moved.records,
                bytes: self.moved.bytes,
                seconds: elapsed.as_secs_f64(),
                records_per_second: per_second(self.moved.records, elapsed),
                bytes_per_second: per_second(self.moved.bytes, elapsed),
                longest_record: self.longest_record,
                waited_on_source_seconds: self.waited_on_source.as_secs_f64(),
                waited_on_sink_seconds: waited_on_sink.as_secs_f64(),
                hash: completed.as_ref().ok().cloned().flatten(),
                stages: self.stages.iter().flat_map(Stages::stats).map(StageReport::from).collect(),
                each,
                sources: self.ended,
            };
            let written = stats::write(report, &stats);
            completed = completed.and_then(|checksum| written.map(|()| checksum));
        }
        completed.map(|checksum| Moved { records: self.moved.records, bytes: self.moved.bytes, checksum })
    }

    fn copy_all(&mut self, sources: &[Source], first: Reader) -> Result<()> {
        let mut reached = self.copy(&sources[0], first)?;
        for source in &sources[1..] {
            if reached == Reached::Enough {
                break;
            }
            let reader = source.open(reader_builder(self.options, &self.input))?;
            reached = self.copy(source, reader)?;
        }
        Ok(())
    }

    /// Copies one source, and takes note of how it ended.
    fn copy(&mut self, source: &Source, mut reader: Reader) -> Result<Reached> {
        if let Some(progress) = &self.progress {
            progress.source(reader.name());
        }
        let before = self.read;
        self.place.begun_at = self.gone_by().bytes;
        let copied = self.copy_records(&mut reader);
        let progress = reader.progress();
        let mut ended = SourceStats {
            name: reader.name().to_string(),
            status: match &copied {
                Ok(Reached::Enough) => SourceStatus::Stopped,
                Ok(Reached::End) if source.vouches_for_its_end() || progress.format.is_some() => {
                    SourceStatus::Succeeded
                }
                Ok(Reached::End) => SourceStatus::Closed,
                Err(Halt::Source(error)) if error.kind() != ErrorKind::Cancelled => SourceStatus::Failed,
                Err(_) => SourceStatus::Stopped,
            },
            exit_status: None,
            signal: None,
            records: self.read.records - before.records,
            bytes: self.read.bytes - before.bytes,
            source_bytes: progress.source_bytes,
            decoded: progress.format.map(|format| format.to_string()),
        };
        self.longest_record = self.longest_record.max(progress.longest_record);
        self.waited_on_source += progress.waited;
        let earlier = self.place.earlier + progress.source_bytes;
        self.place = Place { earlier, begun_at: self.gone_by().bytes, encoded: None };
        self.show();
        // Ends the command, if that is still running.
        let closed = reader.close();
        let result = match (copied, closed) {
            (Ok(reached), Ok(ends)) => {
                ends.iter().for_each(|end| ended.ended(end));
                Ok(reached)
            }
            (Ok(_), Err(error)) => {
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
    fn copy_records(&mut self, reader: &mut Reader) -> Result<Reached, Halt> {
        match framer(self.options).map_err(Halt::Source)? {
            Some(framer) => self.copy_batches(reader, framer),
            None if self.options.wants_records() || self.progress.is_some() => {
                self.copy_batches(reader, Box::new(Lines::new()))
            }
            None => self.copy_windows(reader),
        }
    }

    fn copy_batches(&mut self, reader: &mut Reader, mut framer: Box<dyn Framer + Send>) -> Result<Reached, Halt> {
        let mut stages = self.stages.take();
        let reached = self.copy_through(stages.as_mut(), reader, &mut *framer);
        self.stages = stages;
        reached
    }

    fn copy_through(
        &mut self,
        mut stages: Option<&mut Stages>,
        reader: &mut Reader,
        framer: &mut dyn Framer,
    ) -> Result<Reached, Halt> {
        loop {
            if stages.as_ref().is_some_and(|stages| stages.is_done()) {
                return Ok(Reached::Enough);
            }
            let Some(batch) = reader.next_batch(framer).map_err(Halt::Source)? else { return Ok(Reached::End) };
            self.read.records += batch.len() as u64;
            self.read.bytes += batch.bytes().len() as u64;
            match &mut stages {
                None => self.send(batch.bytes(), batch.offsets()),
                Some(stages) => stages.pass(batch).and_then(|(bytes, offsets)| self.send(bytes, offsets)),
            }
            .map_err(Halt::Output)?;
            self.locate(reader);
        }
    }

    fn copy_windows(&mut self, reader: &mut Reader) -> Result<Reached, Halt> {
        while reader.fill().map_err(Halt::Source)? > 0 {
            let window = reader.buffer();
            self.read.bytes += window.len() as u64;
            self.put(window).map_err(Halt::Output)?;
            let len = window.len();
            reader.consume(len);
        }
        Ok(Reached::End)
    }

    /// Hands on what the stages have kept until the end.
    fn send_rest(&mut self) -> Result<()> {
        let Some(mut stages) = self.stages.take() else { return Ok(()) };
        let (bytes, offsets) = stages.rest();
        let sent = self.send(bytes, offsets);
        self.stages = Some(stages);
        sent
    }

    /// Hands on records: n + 1 `offsets` into `bytes` for n of them.
    fn send(&mut self, bytes: &[u8], offsets: &[u32]) -> Result<()> {
        self.moved.records += offsets.len() as u64 - 1;
        match &mut self.destination {
            Destination::Outputs(_) => self.put(bytes),
            Destination::Each(each) => each.add(bytes, offsets).and_then(|()| self.pace(bytes.len())),
        }
    }

    /// Hands bytes on, as fast as they may go.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let step = self.pace.as_ref().map_or(bytes.len(), Pace::step);
        for step in bytes.chunks(step.max(1)) {
            if let Destination::Outputs(outputs) = &mut self.destination {
                outputs.write(step)?;
            }
            self.pace(step.len())?;
        }
        Ok(())
    }

    /// So many bytes are on their way: waits until the next ones may go.
    fn pace(&mut self, bytes: usize) -> Result<()> {
        self.moved.bytes += bytes as u64;
        self.show();
        match &mut self.pace {
            Some(pace) => self.signals.pause(pace.go(bytes, Instant::now())),
            None => Ok(()),
        }
    }

    /// Takes note of how much of a compressed source has been read.
    fn locate(&mut self, reader: &Reader) {
        if self.progress.is_some() {
            let progress = reader.progress();
            self.place.encoded = progress.format.map(|_| progress.source_bytes);
        }
    }

    /// What the progress line counts: what has been read, and where that is what is written, in steps as small as that is.
    fn gone_by(&self) -> Amount {
        if self.options.stages.is_empty() { self.moved } else { self.read }
    }

    fn show(&self) {
        if let Some(progress) = &self.progress {
            let Place { earlier, begun_at, encoded } = self.place;
            let Amount { records, bytes } = self.gone_by();
            progress.update(bytes, records, earlier + encoded.unwrap_or(bytes - begun_at));
        }
    }
}
