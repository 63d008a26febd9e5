//! The transfer itself: opens the sources and outputs, copies, and completes the outputs.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use millstream::frame::{Batch, Csv, Framer, Lines, Trim};
use millstream::{BatchLines, CancelToken, Error, ErrorKind, Pin, PinnedFile, Reader, Result};

use crate::guard;
use crate::signals::Signals;
use crate::standard::Stream;

use super::checksum::Checksum;
use super::cores::Cores;
use super::each::{self, Copy, Each, Parts};
use super::gzip_index::{self, Indexing};
use super::halt::{Amount, Halt};
use super::header::Header;
use super::json;
use super::members::Members;
use super::options::{Options, Show};
use super::outputs::Outputs;
use super::overlap;
use super::pace::Pace;
use super::progress::{self, Progress};
use super::rejects::{Reject, Rejects};
use super::sink::Sink;
use super::source::Source;
use super::stages::{Order, Stages, Table};
use super::stats::{Failure, Report, SourceStats, SourceStatus, StageReport, Stats, per_second};
use super::upcoming::{Upcoming, open};

/// The result of a complete run.
pub(super) struct Moved {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) checksum: Option<Checksum>,
    /// The data that was left out, as requested.
    pub(super) skipped: Result<()>,
}

/// Runs the transfer. When this returns, all commands have ended, and incomplete outputs have been removed, even after
/// an error.
pub(super) fn run(options: &Options, signals: &mut Signals) -> Result<Moved> {
    let started = Instant::now();
    options.check()?;
    options.sinks().try_for_each(|(sink, _)| options.encode(sink).map(drop))?;
    check_standard_streams(options)?;
    let sources = options.all_sources();
    let previews = {
        let network = options.settings.network();
        sources.iter().map(|source| source.preview(network)).collect::<Result<Vec<_>>>()?
    };
    let identities: Vec<_> = previews.iter().map(|preview| preview.identity.clone()).collect();
    overlap::check(options, &identities)?;
    if options.index.is_some() {
        gzip_index::check_format(&sources)?;
    }
    check_append(options)?;

    // Opening a FIFO or a connection may wait, and there is nothing to clean up yet, so until then a signal has its
    // normal effect. A command, in contrast, must be stopped.
    if options.runs_command() {
        guard::start();
    }
    if sources[0].is_command() {
        signals.watch()?;
    }
    // The copies of a command may need no more input without a signal.
    let input = match options.each.each {
        Some(_) => {
            let input = CancelToken::new()?;
            let interrupt = input.clone();
            signals.on_arrival(move || interrupt.cancel())?;
            input
        }
        None => signals.token().clone(),
    };
    let csv = options.csv()?;
    let mut index = options.index.as_ref().map(|path| Indexing::open(path, signals.token())).transpose()?;
    let (mut first, members) = match &mut index {
        Some(index) => {
            let builder = options.reader().cancel(&input);
            (index.reader(&sources[0], builder, &options.settings, &input, previews[0].size)?, Members::None)
        }
        None => open(&sources[0], options, &input)?,
    };
    signals.watch()?;
    let header = match &csv {
        Some(csv) if options.table.header => {
            let of_split = match &sources[0] {
                Source::Split(split) => Header::of_split(split, csv),
                _ => None,
            };
            let mut header = of_split.map_or_else(|| Header::read(&mut first, csv), Ok)?;
            if sources.len() > 1 || options.each.each.is_some() {
                header.terminate(csv);
            }
            Some(Arc::new(header))
        }
        _ => None,
    };

    let order = options.table.header_by_name.then(Order::default);
    let cores = Cores::new(options, &sources, csv.as_ref(), header.clone(), order.as_ref(), &input)?;

    // The threads run the first stages. Without a stage they add the delimiters between the sources.
    let stages = match &options.stages[cores.as_ref().map_or(0, |cores| cores.stages)..] {
        [] if cores.is_some() => None,
        [] if sources.len() == 1 || !options.joins_records() => None,
        asked => {
            let header = if let Some(cores) = &cores { cores.header.as_deref() } else { header.as_deref() };
            let (ragged, order) = (options.table.ragged(), order.as_ref().filter(|_| cores.is_none()));
            let table = csv.as_ref().map(|csv| Table { csv, header, ragged, order });
            let blanks = if cores.is_none() { options.blanks()? } else { None };
            Some(Stages::new(asked, &*framer_or_lines(options)?, table, blanks, options.longest_record())?)
        }
    };
    let stages = if options.stats.is_some() { stages.map(Stages::measured) } else { stages };
    let stages = if options.bad.skips() { stages.map(Stages::skip_failed) } else { stages };
    let stats =
        options.stats.as_ref().map(|sink| Report::open(sink, options.settings.network(), signals)).transpose()?;
    let rejects = Rejects::open(&options.bad, signals.token())?;
    let expected = previews.iter().map(|preview| preview.size).sum();
    let shows_progress = progress::is_shown(options);
    let outputs = Outputs::open(options, expected, shows_progress, signals.token())?;
    let size = previews.iter().enumerate().map(|(i, preview)| match i {
        0 if index.is_none() => first.progress().source_size,
        _ => preview.size,
    });
    let destination = match &options.each.each {
        Some(command) => {
            // With --json, the copies read and write lines.
            let framer = || match options.has_elements() {
                true => Ok(Box::new(Lines::new()) as Box<dyn Framer + Send>),
                false => framer_or_lines(options),
            };
            Destination::Each(Each::start(
                Copy { line: command.clone(), settings: options.settings.clone(), is_numbered: options.each.number },
                &options.each,
                options.stall_timeout(),
                outputs,
                &input,
                signals,
                framer,
            )?)
        }
        None => Destination::Outputs(outputs),
    };
    let progress = shows_progress.then(|| Progress::start(size.sum()));
    let transfer = Transfer {
        options,
        signals,
        input,
        started,
        stages,
        cores,
        open_record: None,
        index,
        rejects,
        csv,
        header,
        order,
        destination,
        pace: options.rate_limit.map(Pace::new),
        progress,
        read: Amount::default(),
        moved: Amount::default(),
        longest_record: 0,
        open: 0,
        waited_on_source: Duration::ZERO,
        place: Place::default(),
        ended: Vec::new(),
    };
    transfer.run(&sources, (first, members), stats)
}

/// Fails if a result should be printed to a closed stream.
fn check_standard_streams(options: &Options) -> Result<()> {
    let network = options.settings.network();
    options.sinks().map(|(sink, _)| sink).chain(&options.stats).try_for_each(|sink| sink.check(network))?;
    if options.count {
        Stream::Output.check()?;
    }
    if options.hash.is_some() || options.progress == Show::Always {
        Stream::Error.check()?;
    }
    Ok(())
}

/// Fails if a compressed file to append to is incomplete.
fn check_append(options: &Options) -> Result<()> {
    if !options.checks_append() {
        return Ok(());
    }
    for (sink, _) in options.sinks() {
        let Sink::File(path) = sink else { continue };
        let mut line = None;
        options.encode(sink)?.check_append(path, |read, size| {
            if progress::is_shown(options) {
                let line = line.get_or_insert_with(|| {
                    let line = Progress::start(Some(size));
                    line.source(&format!("{}: is it complete?", path.display()));
                    line
                });
                line.update(read, 0, read);
            }
        })?;
    }
    Ok(())
}

/// Returns the framer that the options request, if any.
fn framer(options: &Options) -> Result<Option<Box<dyn Framer + Send>>> {
    if let Some(csv) = options.csv()? {
        return Ok(Some(Box::new(csv)));
    }
    options.framing().map(|framing| framing.framer()).transpose()
}

/// Returns the framer that the options request, or one for lines.
fn framer_or_lines(options: &Options) -> Result<Box<dyn Framer + Send>> {
    Ok(framer(options)?.unwrap_or(Box::new(Lines::new())))
}

/// A run in progress.
struct Transfer<'a> {
    options: &'a Options,
    signals: &'a Signals,
    /// Interrupts reading.
    input: CancelToken,
    started: Instant,
    /// The stages that run on this thread.
    stages: Option<Stages>,
    /// Threads that read the sources and run stages.
    cores: Option<Cores>,
    /// The last record of the sources so far, if it came from `cores` and has no terminator.
    open_record: Option<Vec<u8>>,
    /// The index that is made of the source.
    index: Option<Indexing>,
    rejects: Rejects,
    /// The framer, if records are those of CSV: not every line is a record.
    csv: Option<Csv>,
    /// The header of the first source.
    header: Option<Arc<Header>>,
    /// The order of the fields of the current source, if fields are matched by name.
    order: Option<Order>,
    destination: Destination,
    pace: Option<Pace>,
    progress: Option<Progress>,
    /// The amount that the sources have delivered.
    read: Amount,
    /// The amount that has passed the stages.
    moved: Amount,
    longest_record: usize,
    /// The length of the last record of the sources so far, if it lacks its delimiter. If bytes are joined unchanged,
    /// it continues in the next source.
    open: usize,
    waited_on_source: Duration,
    place: Place,
    /// The sources that have ended.
    ended: Vec<SourceStats>,
}

/// The position in the sources, for the progress line.
#[derive(Default)]
struct Place {
    /// The sizes of the sources that have ended, before decoding.
    earlier: u64,
    /// The number of bytes that had been moved when the current source was started.
    begun_at: u64,
    /// The number of bytes read from it, if it is decoded. Otherwise the number of moved bytes is more exact.
    encoded: Option<u64>,
}

/// The destination of the records.
enum Destination {
    Outputs(Outputs),
    /// Copies of a command, whose output is written to the outputs.
    Each(Each),
}

/// The outcome for the outputs.
struct Finished {
    outputs: Outputs,
    /// Why they are incomplete.
    result: Result<()>,
    /// The data that was skipped, as requested.
    skipped: Result<()>,
    each: Option<each::Report>,
}

impl Destination {
    /// Finishes, because no more records follow. `copied` is the result of reading and writing.
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
    /// It was read to its end.
    End,
    /// The stages need no more records.
    Enough,
}

/// Why the splits of a source were read no further.
enum Stop {
    Failed(Halt),
    Enough,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(Halt::Output(error))
    }
}

impl Transfer<'_> {
    /// Copies all sources, completes the outputs, and writes the report.
    fn run(mut self, sources: &[Source], first: (Reader, Members), report: Option<Report>) -> Result<Moved> {
        let copied = self.copy_all(sources, first);
        let sent = self.send_rest();
        let copied = copied.and(sent);
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
        let Finished { outputs, result, skipped, each } = self.destination.finish(copied);
        let waited_on_sink = outputs.waited();
        // If a signal arrived, the outputs are not completed, whatever was in progress.
        let result = result.and_then(|()| self.signals.check());
        let rejected = self.rejects.count();
        let (result, left_out) = match result {
            Ok(()) => match self.rejects.close() {
                Ok(left_out) => (Ok(()), left_out),
                Err(error) => (Err(error), Ok(())),
            },
            Err(error) => {
                self.rejects.abandon();
                (Err(error), Ok(()))
            }
        };
        let completed = match result {
            Ok(()) => outputs.close(),
            Err(error) => {
                outputs.abandon();
                Err(error)
            }
        };
        let completed = match (completed, self.index) {
            (completed, None) => completed,
            (Ok(checksum), Some(index)) => index.close().map(|()| checksum),
            (Err(error), Some(index)) => {
                index.abandon();
                Err(error)
            }
        };
        let (mut completed, skipped) = (completed, skipped.and(left_out));
        if let Some(report) = report {
            let elapsed = self.started.elapsed();
            let stats = Stats {
                complete: completed.is_ok() && skipped.is_ok(),
                error: completed.as_ref().err().or(skipped.as_ref().err()).map(Failure::from),
                records: self.moved.records,
                bytes: self.moved.bytes,
                rejected,
                seconds: elapsed.as_secs_f64(),
                records_per_second: per_second(self.moved.records, elapsed),
                bytes_per_second: per_second(self.moved.bytes, elapsed),
                longest_record: self.longest_record,
                waited_on_source_seconds: self.waited_on_source.as_secs_f64(),
                waited_on_sink_seconds: waited_on_sink.as_secs_f64(),
                hash: completed.as_ref().ok().cloned().flatten(),
                stages: {
                    let first = self.cores.iter().flat_map(|cores| cores.stats.clone());
                    first.chain(self.stages.iter().flat_map(Stages::stats)).map(StageReport::from).collect()
                },
                each,
                sources: self.ended,
            };
            let written = report.write(&stats);
            completed = completed.and_then(|checksum| written.map(|()| checksum));
        }
        completed.map(|checksum| Moved { records: self.moved.records, bytes: self.moved.bytes, checksum, skipped })
    }

    fn copy_all(&mut self, sources: &[Source], first: (Reader, Members)) -> Result<()> {
        let mut reached = self.copy(&sources[0], first)?;
        let input = self.input.clone();
        let mut upcoming = Upcoming::new(&sources[1..], self.options, &input);
        while reached != Reached::Enough
            && let Some(opened) = upcoming.next()
        {
            let (source, opened) = opened?;
            reached = self.copy(&source, opened)?;
        }
        Ok(())
    }

    /// Passes on the header. It is not counted as a record.
    fn send_header(&mut self) -> Result<()> {
        let Some(header) = self.header.clone() else { return Ok(()) };
        self.read.bytes += header.len();
        let after_cores = self.cores.as_ref().and_then(|cores| cores.header.as_deref());
        let after_stages = self.stages.as_ref().and_then(Stages::header).or(after_cores);
        let line = after_stages.unwrap_or(&header).line().to_vec();
        match &mut self.destination {
            Destination::Outputs(_) if !header.is_read() => Ok(()),
            // A stage drops comments and blank lines.
            Destination::Outputs(_) if after_stages.is_some() => self.put(&line),
            Destination::Outputs(_) => self.put(header.before()).and_then(|()| self.put(&line)),
            Destination::Each(each) => {
                each.begin_blocks_with(line);
                Ok(())
            }
        }
    }

    /// Reads the header of a source after the first one, and compares it.
    fn check_header(&mut self, reader: &mut Reader) -> Result<()> {
        let (Some(csv), Some(header)) = (&self.csv, &self.header) else { return Ok(()) };
        let other = Header::read(reader, csv)?;
        self.read.bytes += other.len();
        match &self.order {
            None => header.check(&other),
            Some(current) => {
                let order = header.order_in(&other)?;
                let is_equal = order.is_sorted();
                *current.lock().unwrap_or_else(PoisonError::into_inner) = (!is_equal).then_some(order);
                Ok(())
            }
        }
    }

    /// Copies one source, and records how it ended.
    fn copy(&mut self, source: &Source, (mut reader, members): (Reader, Members)) -> Result<Reached> {
        if let Some(progress) = &self.progress {
            progress.source(reader.name());
        }
        let before = self.read;
        self.place.begun_at = self.gone_by().bytes;
        let begun = match self.ended.is_empty() {
            true => self.send_header().map_err(Halt::Output),
            false => self.check_header(&mut reader).map_err(Halt::Source),
        };
        let copied = begun.and_then(|()| match self.cores.take() {
            Some(mut cores) => {
                let copied = self.copy_on_cores(&mut cores, &mut reader);
                self.cores = Some(cores);
                copied
            }
            None => self.copy_records(&mut reader),
        });
        let mut progress = reader.progress();
        if let Some(index) = &self.index {
            let (format, read) = index.progress();
            (progress.format, progress.source_bytes) = (Some(format), read);
        }
        if let Some(cores) = self.cores.as_ref().filter(|cores| !cores.is_streamed(self.ended.len())) {
            progress.format = cores.format;
            progress.source_bytes = match (cores.format, &copied) {
                (None, _) => self.read.bytes - before.bytes,
                (Some(_), Ok(Reached::End)) => progress.source_size.unwrap_or(0),
                _ => 0,
            };
        }
        let vouches = source.vouches_for_its_end(self.options.settings.network());
        let mut ended = SourceStats {
            name: reader.name().to_string(),
            status: match &copied {
                Ok(Reached::Enough) => SourceStatus::Stopped,
                Ok(Reached::End) if vouches || progress.format.is_some() => SourceStatus::Succeeded,
                Ok(Reached::End) => SourceStatus::Closed,
                Err(Halt::Source(error)) if error.kind() != ErrorKind::Cancelled => SourceStatus::Failed,
                Err(_) => SourceStatus::Stopped,
            },
            exit_status: None,
            signal: None,
            members: Vec::new(),
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
        // This stops the command if it is still running. The result of reading is already known.
        let _ = reader.try_close();
        ended.ended(reader.command_ends());
        ended.members = members.report(reader.command_ends());
        self.ended.push(ended);
        copied.map_err(|halt| match halt {
            Halt::Source(error) => members.explain(error),
            Halt::Output(error) => error,
        })
    }

    /// Copies by records if they are needed, and by windows otherwise.
    fn copy_records(&mut self, reader: &mut Reader) -> Result<Reached, Halt> {
        if let Some(parts) = self.parts(reader).map_err(Halt::Source)? {
            return self.copy_parts(parts);
        }
        match framer(self.options).map_err(Halt::Source)? {
            Some(framer) => self.copy_batches(reader, framer),
            None if self.options.wants_records() || self.progress.is_some() => {
                self.copy_batches(reader, Box::new(Lines::new()))
            }
            None => self.copy_windows(reader),
        }
    }

    /// Copies a source on several threads.
    fn copy_on_cores(&mut self, cores: &mut Cores, reader: &mut Reader) -> Result<Reached, Halt> {
        let mut stages = self.stages.take();
        let (mut before, mut stats, mut format) = ((0, Some(0)), Vec::new(), None);
        let ended = cores.run(self.ended.len(), reader, |mut piece| {
            for (bytes, offsets) in piece.records.drain(..) {
                self.accept(stages.as_mut(), &bytes, &offsets, true)?;
                cores.reuse((bytes, offsets));
            }
            if let Some(open) = &piece.open {
                self.accept(stages.as_mut(), open, &[0, open.len() as u32], false)?;
            }
            for reject in piece.take_rejects(cores.framing(), before) {
                self.rejects.add(reject)?;
            }
            let halt = piece.take_halt(cores.framing(), &mut before);
            self.longest_record = self.longest_record.max(piece.longest_record);
            format = piece.format.or(format);
            self.place.encoded = piece.encoded.or(self.place.encoded);
            self.read += piece.read;
            if self.options.count && stages.is_none() {
                self.moved.records += piece.moved.records;
                self.pace(piece.moved.bytes as usize)?;
            }
            stats.push(std::mem::take(&mut piece.stats));
            self.show();
            match halt {
                Some(halt) => Err(Stop::Failed(halt)),
                None if stages.as_ref().is_some_and(Stages::is_done) => Err(Stop::Enough),
                None => Ok(()),
            }
        });
        self.stages = stages;
        stats.iter().for_each(|stats| cores.measure(stats));
        cores.format = format;
        match ended {
            Ok(()) => Ok(Reached::End),
            Err(Stop::Enough) => Ok(Reached::Enough),
            Err(Stop::Failed(halt)) => Err(halt),
        }
    }

    /// Passes on records that a thread of [`Cores`] has processed.
    fn accept(&mut self, stages: Option<&mut Stages>, bytes: &[u8], offsets: &[u32], terminated: bool) -> Result<()> {
        match stages {
            Some(stages) => {
                let batch = Batch::new(bytes, offsets, Trim::NOTHING, terminated);
                stages.pass(batch, BatchLines::UNKNOWN, |bytes, offsets| self.send(bytes, offsets))
            }
            None => {
                if let Some(mut open) = self.open_record.take() {
                    open.extend_from_slice(framer_or_lines(self.options)?.terminator());
                    self.send(&open, &[0, open.len() as u32])?;
                }
                match terminated {
                    true => self.send(bytes, offsets),
                    false => {
                        self.open_record = Some(bytes.to_vec());
                        Ok(())
                    }
                }
            }
        }
    }

    /// Returns the parts of the source, if copies of a command can read a file without a look at each record. `reader` has
    /// read nothing of the source.
    fn parts(&self, reader: &mut Reader) -> Result<Option<Parts>> {
        let Options { each, settings, .. } = self.options;
        let Some((path, terminator)) = self.options.unread() else { return Ok(None) };
        if reader.fill()? > 0 && reader.progress().format.is_some() {
            return Ok(None);
        }
        let pin = if settings.given.word("pin") == Some("identity") { Pin::Identity } else { Pin::Content };
        let file = PinnedFile::open(&path, pin)?;
        Ok(file.map(|file| Parts::new(file, terminator, each.block(), self.options.longest_record())))
    }

    /// Passes the blocks of a file on unread.
    fn copy_parts(&mut self, mut parts: Parts) -> Result<Reached, Halt> {
        while let Some(range) = parts.next_block().map_err(Halt::Source)? {
            let len = range.end - range.start;
            if let Destination::Each(each) = &mut self.destination {
                each.add_part(&parts.file, range).map_err(Halt::Output)?;
            }
            self.read.bytes += len;
            self.moved.bytes += len;
            self.show();
        }
        Ok(Reached::End)
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
        let (name, framing) = (reader.name().to_string(), self.options.framing());
        loop {
            if stages.as_ref().is_some_and(|stages| stages.is_done()) {
                return Ok(Reached::Enough);
            }
            let inner_lines = reader.inner_lines();
            let batch = match reader.next_batch(framer) {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(Reached::End),
                Err(error) if self.options.bad.skips() && Reject::is_reason(&error, framing.as_ref()) => {
                    let (reject, len) = Reject::skip(reader, framer, error).map_err(Halt::Source)?;
                    self.read.bytes += len;
                    self.rejects.add(reject).map_err(Halt::Output)?;
                    continue;
                }
                Err(error) => return Err(self.cut_off(error, stages.is_some(), reader)),
            };
            let lines = BatchLines::new(inner_lines, framer);
            let skipped = framer.count_skipped(&batch) as u64;
            self.read.records += batch.len() as u64 - skipped;
            self.read.bytes += batch.bytes().len() as u64;
            if self.options.count
                && self.pace.is_none()
                && let Some((records, bytes)) = stages.as_mut().and_then(|stages| stages.count(&batch))
            {
                self.moved.records += records;
                self.pace(bytes).map_err(Halt::Output)?;
                self.locate(reader);
                continue;
            }
            match &mut stages {
                None => self.join(&batch).and_then(|()| {
                    let sent = self.send(batch.bytes(), batch.offsets());
                    self.moved.records -= skipped; // they were sent with the others
                    sent
                }),
                // An error of an output already has a name.
                Some(stages) => stages
                    .pass(batch, lines, |bytes, offsets| self.send(bytes, offsets))
                    .map_err(|error| error.with_name(name.clone())),
            }
            .map_err(Halt::Output)?;
            for reject in stages.iter_mut().flat_map(|stages| stages.take_rejects(&name)) {
                self.rejects.add(reject).map_err(Halt::Output)?;
            }
            self.locate(reader);
        }
    }

    /// Handles a failure of the source. The incomplete end of its last record is not a record, but if bytes are copied
    /// it is copied, too.
    fn cut_off(&mut self, error: Error, has_stages: bool, reader: &Reader) -> Halt {
        let copies_bytes = !has_stages && matches!(self.destination, Destination::Outputs(_));
        let copied = match error.kind() {
            ErrorKind::Cancelled | ErrorKind::RecordTooLong => Ok(()),
            _ if copies_bytes && matches!(framer(self.options), Ok(None)) => self.put(reader.buffer()),
            _ => Ok(()),
        };
        match copied {
            Ok(()) => Halt::Source(error),
            Err(error) => Halt::Output(error),
        }
    }

    /// Counts records as they are in the output if bytes are joined unchanged: if a source does not end with a
    /// delimiter, it shares a record with the next one.
    fn join(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Some(first) = batch.raw(0) else { return Ok(()) };
        let before = std::mem::take(&mut self.open);
        if before > 0 {
            self.moved.records -= 1;
            let len = before + first.len();
            self.longest_record = self.longest_record.max(len);
            if len > self.options.longest_record() {
                return Err(Error::new(ErrorKind::RecordTooLong)
                    .with_found("a longer record, which begins in one source and ends in another")
                    .with_expected(format!("at most {} bytes", self.options.longest_record()))
                    .with_record(self.moved.records));
            }
        }
        if !batch.terminated() {
            let last = batch.raw(batch.len() - 1).map_or(0, <[u8]>::len);
            self.open = if batch.len() == 1 { before + last } else { last };
        }
        Ok(())
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

    /// Passes on the records that the stages have kept until the end.
    fn send_rest(&mut self) -> Result<()> {
        if let Some(open) = self.open_record.take() {
            self.send(&open, &[0, open.len() as u32])?;
        }
        let Some(mut stages) = self.stages.take() else { return Ok(()) };
        let (bytes, offsets) = stages.rest();
        let sent = self.send(bytes, offsets);
        self.stages = Some(stages);
        sent
    }

    /// Passes on records: n + 1 `offsets` into `bytes` for n of them.
    fn send(&mut self, bytes: &[u8], offsets: &[u32]) -> Result<()> {
        self.moved.records += offsets.len() as u64 - 1;
        let written = self.options.has_elements().then(|| json::written(bytes, offsets));
        let bytes = written.as_deref().unwrap_or(bytes);
        match &mut self.destination {
            Destination::Outputs(_) => self.put(bytes),
            Destination::Each(each) => each.add(bytes, offsets).and_then(|()| self.pace(bytes.len())),
        }
    }

    /// Passes bytes on, at the permitted rate.
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

    /// Waits after `bytes` until the next bytes may be written.
    fn pace(&mut self, bytes: usize) -> Result<()> {
        self.moved.bytes += bytes as u64;
        self.show();
        match &mut self.pace {
            Some(pace) => self.signals.pause(pace.go(bytes, Instant::now())),
            None => Ok(()),
        }
    }

    /// Records how much of a compressed source has been read.
    fn locate(&mut self, reader: &Reader) {
        if self.progress.is_some() {
            let progress = reader.progress();
            self.place.encoded = progress.format.map(|_| progress.source_bytes);
            self.place.encoded = self.index.as_ref().map(|index| index.progress().1).or(self.place.encoded);
        }
    }

    /// Returns the amount that the progress line counts: the amount read, or the amount written if that is equal and
    /// updated in steps as small.
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
