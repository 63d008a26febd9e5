//! `-j` without `--each`: the splits of the files are read on several threads, each with its own stages. The output is
//! the output of one thread, or with `--unordered` the same records in another order.
//!
//! A stage that remembers records, such as `uniq`, runs on the main thread, and so do all stages after it. The main thread
//! reads sources that cannot be divided, such as commands, and finds their records.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use millstream::frame::{Batch, Csv, CsvRagged, Framer, Trim};
use millstream::pipe::StageStats;
use millstream::splits::in_order::Work;
use millstream::splits::{Divided, Framing, Split, Splits};
use millstream::workers::{self, Workers};
use millstream::{BatchLines, CancelToken, Decode, Error, ErrorKind, Format, Reader, Result, Waits};

use super::halt::{Amount, Halt};
use super::header::Header;
use super::options::Options;
use super::rejects::Reject;
use super::settings::Settings;
use super::source::Source;
use super::stages::{Blanks, Order, StageText, Stages, Table};

/// The size of a split. It is the unit of work of a thread, and of memory.
const SIZE: u64 = 4 << 20;

/// The maximum size of the results that a thread collects for one batch of a source that the main thread reads. Larger
/// results are made by the main thread, which writes them in pieces.
const MOST: usize = 64 << 20;

/// The target size of the results of a split in one piece.
const PIECE: usize = 1 << 20;

/// The number of records in the first batch, before the size of the results is known.
const FIRST_BATCH: usize = 64;

/// Records: their bytes, and the n + 1 offsets of n records.
type Records = (Vec<u8>, Vec<u32>);

/// Accepts records: their bytes, and the n + 1 offsets of n records.
type Sink<'a> = &'a mut dyn FnMut(&[u8], &[u32]) -> Result<()>;

/// Work for several threads.
pub(super) struct Cores {
    threads: usize,
    /// Whether records may be written as soon as they are ready.
    is_unordered: bool,
    /// The plans of the sources.
    plans: Vec<Plan>,
    task: Task,
    /// The number of stages that run on the threads.
    pub(super) stages: usize,
    /// The header after these stages.
    pub(super) header: Option<Arc<Header>>,
    pub(super) stats: Vec<StageStats>,
    /// The compression of the last source.
    pub(super) format: Option<Format>,
}

/// How a source is divided.
enum Plan {
    Divided(Divided),
    /// The main thread reads it.
    Stream,
}

/// The work on each split.
#[derive(Clone)]
struct Task {
    settings: Settings,
    input: CancelToken,
    framing: Framing,
    csv: Option<Csv>,
    blanks: Option<Blanks>,
    /// The header of the first source. The first record of every source is one.
    header: Option<Arc<Header>>,
    ragged: CsvRagged,
    order: Option<Order>,
    stages: Vec<StageText>,
    is_measured: bool,
    limit: usize,
    counts: bool,
    skips_bad: bool,
    /// The memory of results that have been written.
    spare: Arc<Mutex<Vec<Records>>>,
    /// The maximum number of records in a batch of a split. It shrinks if the stages make records long.
    most: Arc<AtomicUsize>,
}

/// The result for a split.
#[derive(Default)]
pub(super) struct Piece {
    /// Records, in pieces.
    pub(super) records: Vec<Records>,
    /// The last record of the source, if it passed and has no terminator.
    pub(super) open: Option<Vec<u8>>,
    /// What was read, and what passed.
    pub(super) read: Amount,
    pub(super) moved: Amount,
    pub(super) longest_record: usize,
    /// The compression of the source.
    pub(super) format: Option<Format>,
    /// The number of bytes of a compressed source that have been read.
    pub(super) encoded: Option<u64>,
    pub(super) stats: Vec<StageStats>,
    rejects: Vec<Reject>,
    halt: Option<Halt>,
    /// Whether it ends its split.
    is_last: bool,
    /// Whether record numbers count from the start of the split.
    is_relative: bool,
    /// The number of records that were taken, skipped lines included, and of line ends inside them, if known.
    taken: (u64, Option<u64>),
}

impl Cores {
    /// Divides the work, or returns `None` if one thread does it as well.
    ///
    /// # Errors
    /// Returns the errors of planning and of [`Stages::new`].
    pub(super) fn new(
        options: &Options,
        sources: &[Source],
        csv: Option<&Csv>,
        header: Option<Arc<Header>>,
        order: Option<&Order>,
        input: &CancelToken,
    ) -> Result<Option<Cores>> {
        let threads = options.threads();
        let stages = options.stages.iter().take_while(|stage| !stage.remembers()).count();
        let (first, rest) = options.stages.split_at(stages);
        let only_counts = stages == 0 && rest.is_empty() && options.count && sources.len() == 1;
        // These are for a whole source.
        let is_limited = options.has_elements()
            || options.settings.expectation().is_some()
            || ["decode_limit", "decode_ratio", "total_timeout"].iter().any(|name| options.settings.given.has(name));
        // The numbers of the records that reach the rest are not known, and would be missing in an error.
        if threads < 2 || (stages == 0 && !only_counts) || rest.iter().any(StageText::may_fail) {
            return Ok(None);
        }
        let framing = match csv {
            Some(csv) => Framing::Csv { dialect: *csv.dialect() },
            None => options.framing().unwrap_or(Framing::Lines),
        };
        let decode = if options.settings.given.word("decode") == Some("off") { Decode::Off } else { Decode::Auto };
        let plan = |source: &Source| {
            let Source::File(path) = source else { return Ok(Plan::Stream) };
            if is_limited || !Path::new(path).metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
                return Ok(Plan::Stream);
            }
            let builder = Splits::builder().cancel(input).decode(decode);
            if let Some(splits) = builder.clone().assume(path, framing.clone(), SIZE)? {
                return Ok(Plan::Divided(splits.into()));
            }
            let plan = builder.plan(path, framing.clone(), SIZE)?;
            let is_small = |split: &Split| split.end().is_none_or(|end| end - split.begin() <= 8 * SIZE);
            let is_divided = plan.note().is_none() && plan.iter().all(is_small);
            Ok(if is_divided { Plan::Divided(plan.into()) } else { Plan::Stream })
        };
        let plans = sources.iter().map(plan).collect::<Result<Vec<_>>>()?;
        if stages == 0 && plans.iter().any(|plan| matches!(plan, Plan::Stream)) {
            return Ok(None);
        }
        let task = Task {
            settings: options.settings.clone(),
            input: input.clone(),
            framing,
            csv: csv.cloned(),
            blanks: options.blanks()?,
            header,
            ragged: options.table.ragged(),
            order: order.cloned(),
            stages: first.to_vec(),
            is_measured: options.stats.is_some(),
            limit: options.longest_record(),
            counts: options.count && rest.is_empty(),
            skips_bad: options.bad.skips(),
            spare: Arc::default(),
            most: Arc::new(AtomicUsize::new(FIRST_BATCH)),
        };
        let header = task.new_stages(&*task.framing.framer()?)?.and_then(|stages| stages.header().cloned());
        let is_unordered = options.each.unordered;
        Ok(Some(Cores {
            threads,
            is_unordered,
            plans,
            task,
            stages,
            header: header.map(Arc::new),
            stats: Vec::new(),
            format: None,
        }))
    }

    /// Returns whether the main thread reads a source.
    pub(super) fn is_streamed(&self, source: usize) -> bool {
        matches!(self.plans[source], Plan::Stream)
    }

    /// Processes a source, and passes the results to `each` in order.
    pub(super) fn run<E: From<Error>>(
        &self,
        source: usize,
        reader: &mut Reader,
        mut each: impl FnMut(Piece) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (task, name) = (self.task.clone(), reader.name().to_string());
        match &self.plans[source] {
            Plan::Stream => self.feed(reader, &name, each),
            Plan::Divided(splits) => {
                let begin = move |split: &Split| SplitWork::new(task.clone(), split, &name);
                let mut pieces = splits.clone().in_order(self.threads, self.is_unordered, begin);
                while let Some(piece) = pieces.next_piece()? {
                    each(piece)?;
                }
                Ok(())
            }
        }
    }

    /// Reads a source on this thread, and runs the stages on the others.
    fn feed<E: From<Error>>(
        &self,
        reader: &mut Reader,
        name: &str,
        mut each: impl FnMut(Piece) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut framer = self.task.framing.framer()?;
        let (task, name) = (self.task.clone(), name.to_string());
        let (for_threads, mut stages) = ((task.clone(), name.clone()), None);
        let mut workers = Workers::with_at_most(self.threads, move || -> workers::Work<Fed> {
            let ((task, name), mut stages) = (for_threads.clone(), None);
            Box::new(move |fed| fed.piece = task.collect_batch(fed, &name, &mut stages))
        });
        let mut finish = |fed: Fed| {
            let piece = match fed.piece {
                Some(piece) => piece,
                None => {
                    let (mut piece, mut sent) = (Piece::default(), Ok(()));
                    let worked = task.work_on(&fed, &name, &mut stages, &mut piece, &mut |bytes, offsets| {
                        sent = each(Piece { records: vec![task.copy_records(bytes, offsets)], ..Piece::default() });
                        if sent.is_ok() { Ok(()) } else { Err(Error::new(ErrorKind::Cancelled)) }
                    });
                    sent?;
                    Piece { halt: worked.err(), ..piece }
                }
            };
            self.reuse((fed.bytes, fed.offsets));
            each(Piece { encoded: fed.encoded, ..piece })
        };
        let mut halt = None;
        loop {
            let inner_lines = reader.inner_lines();
            let batch = match reader.next_batch(&mut *framer) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) if self.task.skips_bad && Reject::is_reason(&error, Some(&self.task.framing)) => {
                    // The results of the records before it follow first.
                    while let Some(fed) = workers.take()? {
                        finish(fed)?;
                    }
                    let mut piece = Piece::default();
                    let skipped = piece.skip(reader, &mut *framer, error);
                    finish(Fed::done(Piece { halt: skipped.err().map(Halt::Source), ..piece }))?;
                    continue;
                }
                Err(error) => {
                    halt = Some(Halt::Source(error));
                    break;
                }
            };
            let mut fed = self.task.copy(&batch);
            fed.lines = BatchLines::new(inner_lines, &*framer);
            let progress = reader.progress();
            fed.encoded = progress.format.map(|_| progress.source_bytes);
            workers.give(fed);
            loop {
                // While the source has no data, results are not held back.
                let waits = !workers.has_capacity() || reader.waits() == Waits::Yes;
                match if waits { workers.take()? } else { workers.take_done()? } {
                    Some(fed) => finish(fed)?,
                    None => break,
                }
            }
        }
        while let Some(fed) = workers.take()? {
            finish(fed)?;
        }
        finish(Fed::done(Piece { halt, ..Piece::default() }))
    }

    /// Reuses the memory of results.
    pub(super) fn reuse(&self, records: Records) {
        // One long record should not keep it large for the rest of the run.
        if records.0.capacity() <= SIZE as usize
            && let Ok(mut spare) = self.task.spare.lock()
        {
            spare.push(records);
        }
    }

    /// Adds the measurements of the stages.
    pub(super) fn measure(&mut self, stats: &[StageStats]) {
        if self.stats.is_empty() {
            self.stats = stats.to_vec();
            return;
        }
        for (sum, stats) in self.stats.iter_mut().zip(stats) {
            sum.items += stats.items;
            sum.bytes += stats.bytes;
            sum.time += stats.time;
        }
    }

    /// Returns the framing of the records.
    pub(super) fn framing(&self) -> &Framing {
        &self.task.framing
    }
}

/// A batch of records that another thread processes, and the results.
struct Fed {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    trim: Trim,
    terminated: bool,
    /// The position of the batch: bytes, records, and whether all records are lines.
    at: (u64, u64, bool),
    lines: BatchLines,
    /// The number of bytes of a compressed source that had been read.
    encoded: Option<u64>,
    /// `None` if the results were too large to be collected.
    piece: Option<Piece>,
}

impl Fed {
    /// Results without a batch.
    fn done(piece: Piece) -> Fed {
        let (trim, encoded) = (Trim::NOTHING, None);
        Fed {
            bytes: Vec::new(),
            offsets: vec![0],
            trim,
            terminated: true,
            at: (0, 0, false),
            lines: BatchLines::UNKNOWN,
            encoded,
            piece: Some(piece),
        }
    }
}

impl Task {
    /// Returns a copy of records, in memory that was used before.
    fn copy_records(&self, bytes: &[u8], offsets: &[u32]) -> Records {
        let mut copy = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        copy.0.clear();
        copy.0.extend_from_slice(bytes);
        copy.1.clear();
        copy.1.extend_from_slice(offsets);
        copy
    }

    fn copy(&self, batch: &Batch<'_>) -> Fed {
        let (bytes, offsets) = self.copy_records(batch.bytes(), batch.offsets());
        let at = (batch.offset(), batch.first_record(), batch.first_line().is_some());
        let (trim, terminated) = (batch.trim(), batch.terminated());
        Fed { bytes, offsets, trim, terminated, at, lines: BatchLines::UNKNOWN, encoded: None, piece: None }
    }

    /// Processes a batch, whose place in the source is known, and collects the results.
    fn collect_batch(&self, fed: &Fed, name: &str, stages: &mut Option<Stages>) -> Option<Piece> {
        let (mut piece, mut records, mut total) = (Piece::default(), Vec::new(), 0);
        let worked = self.work_on(fed, name, stages, &mut piece, &mut |bytes, offsets| {
            total += bytes.len() + 4 * offsets.len();
            if total > MOST {
                return Err(Error::new(ErrorKind::Cancelled));
            }
            records.push(self.copy_records(bytes, offsets));
            Ok(())
        });
        (total <= MOST).then(|| Piece { records, halt: worked.err(), ..piece })
    }

    /// Processes a batch. The stages are created at first.
    fn work_on(
        &self,
        fed: &Fed,
        name: &str,
        kept: &mut Option<Stages>,
        piece: &mut Piece,
        send: Sink<'_>,
    ) -> std::result::Result<(), Halt> {
        if kept.is_none() {
            let framer = self.framing.framer().map_err(Halt::Output)?;
            *kept = self.new_stages(&*framer).map_err(Halt::Output)?;
        }
        let Fed { bytes, offsets, trim, terminated, at: (begin, record, is_lines), lines, .. } = fed;
        let batch = Batch::new(bytes, offsets, *trim, *terminated).at(*begin, *record).of_lines(*is_lines);
        let worked = self.pass((batch, *lines), name, kept.as_mut(), piece, send);
        if let Some(stages) = kept {
            piece.finish(stages);
        }
        if self.is_measured {
            *kept = None; // the measurements were those of this batch
        }
        worked
    }

    /// Creates the stages, if there are any.
    fn new_stages(&self, framer: &dyn Framer) -> Result<Option<Stages>> {
        if self.stages.is_empty() {
            return Ok(None);
        }
        let (header, ragged, order) = (self.header.as_deref(), self.ragged, self.order.as_ref());
        let table = self.csv.as_ref().map(|csv| Table { csv, header, ragged, order });
        let stages = Stages::new(&self.stages, framer, table, self.blanks.clone(), self.limit)?;
        let stages = if self.skips_bad { stages.skip_failed() } else { stages };
        Ok(Some(if self.is_measured { stages.measured() } else { stages }))
    }

    /// Opens a split.
    fn open(&self, split: &Split, name: &str) -> std::result::Result<Opened, Halt> {
        let builder = self.settings.reader().cancel(&self.input).name(name);
        let mut reader = builder.split(split).map_err(Halt::Source)?;
        if split.first_record().is_none() {
            reader.count_lines_from_here();
        }
        if let (Some(csv), true) = (self.csv.as_ref().filter(|_| self.header.is_some()), split.begin() == 0) {
            Header::read(&mut reader, csv).map_err(Halt::Source)?;
        }
        let framer = self.framing.framer().map_err(Halt::Source)?;
        let stages = self.new_stages(&*framer).map_err(Halt::Output)?;
        Ok(Opened { reader, framer, stages })
    }

    /// Processes a batch.
    fn pass(
        &self,
        (batch, lines): (Batch<'_>, BatchLines),
        name: &str,
        stages: Option<&mut Stages>,
        piece: &mut Piece,
        send: Sink<'_>,
    ) -> std::result::Result<(), Halt> {
        let skipped = self.blanks.as_ref().map_or(0, |blanks| blanks.count_skipped(&batch)) as u64;
        let read = Amount { records: batch.len() as u64 - skipped, bytes: batch.bytes().len() as u64 };
        piece.read += read;
        let moved = &mut piece.moved;
        let Some(stages) = stages else {
            *moved += read;
            return Ok(());
        };
        if let Some((records, bytes)) = stages.count(&batch).filter(|_| self.counts) {
            *moved += Amount { records, bytes: bytes as u64 };
            return Ok(());
        }
        let passed = stages.pass(batch, lines, |bytes, offsets| {
            *moved += Amount { records: offsets.len() as u64 - 1, bytes: bytes.len() as u64 };
            if self.counts { Ok(()) } else { send(bytes, offsets) }
        });
        piece.rejects.extend(stages.take_rejects(name));
        passed.map_err(|error| Halt::Output(error.with_name(name)))
    }
}

/// The work on a split.
struct SplitWork {
    task: Task,
    name: String,
    opened: std::result::Result<Opened, Option<Halt>>,
    /// The records that begin before this offset belong to the split.
    end: u64,
    /// The number of records before the split, if it is known.
    first_record: Option<u64>,
    /// How reading ended, until that has been returned.
    ended: Option<Option<Halt>>,
    is_over: bool,
}

struct Opened {
    reader: Reader,
    framer: Box<dyn Framer + Send>,
    stages: Option<Stages>,
}

impl SplitWork {
    fn new(task: Task, split: &Split, name: &str) -> SplitWork {
        SplitWork {
            name: name.to_string(),
            opened: task.open(split, name).map_err(Some),
            task,
            end: split.end().filter(|_| split.is_assumed()).unwrap_or(u64::MAX),
            first_record: split.first_record(),
            ended: None,
            is_over: false,
        }
    }

    /// Reads batches until there are enough results for a piece. Returns whether the split has not ended.
    fn fill(&mut self, piece: &mut Piece) -> std::result::Result<bool, Halt> {
        let SplitWork { task, name, opened, end, .. } = self;
        let Opened { reader, framer, stages } = match opened {
            Ok(opened) => opened,
            Err(halt) => return halt.take().map_or(Ok(false), Err),
        };
        let mut size = 0;
        while size < PIECE && piece.read.bytes < SIZE {
            if reader.position().bytes >= *end {
                return Ok(false);
            }
            let most = task.most.load(Ordering::Relaxed);
            let inner_lines = reader.inner_lines();
            let all = match reader.next_batch_of(&mut **framer, most) {
                Ok(Some(all)) => all,
                Ok(None) => return Ok(false),
                Err(error) if task.skips_bad && Reject::is_reason(&error, Some(&task.framing)) => {
                    piece.skip(reader, &mut **framer, error).map_err(Halt::Source)?;
                    continue;
                }
                Err(error) => return Err(Halt::Source(error)),
            };
            let lines = BatchLines::new(inner_lines, &**framer);
            let count = all.offsets()[..all.len()].partition_point(|&start| all.offset() + u64::from(start) < *end);
            let (batch, later) = (all.first(count), all.len() - count);
            let (mut records, before) = (Vec::new(), size);
            let passed = task.pass((batch, lines), name, stages.as_mut(), piece, &mut |bytes, offsets| {
                size += bytes.len() + 4 * offsets.len();
                if offsets.len() > 1 {
                    records.push(task.copy_records(bytes, offsets));
                }
                Ok(())
            });
            piece.records.append(&mut records);
            passed?;
            let next = if size - before <= PIECE { most.saturating_mul(2) } else { (most / 2).max(1) };
            task.most.store(next, Ordering::Relaxed);
            if later > 0 {
                reader.give_back(later).map_err(Halt::Source)?;
            }
        }
        Ok(true)
    }
}

impl Work for SplitWork {
    type Piece = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.is_over {
            return None;
        }
        let (is_relative, taken) = (self.first_record.is_none(), (0, Some(0)));
        let mut piece = Piece { is_relative, taken, ..Piece::default() };
        if self.ended.is_none() {
            match self.fill(&mut piece) {
                Ok(true) => return Some(piece),
                Ok(false) => self.ended = Some(None),
                Err(halt) => self.ended = Some(Some(halt)),
            }
            // The end is returned alone, because the results before it may be free.
            if !piece.records.is_empty() {
                return Some(piece);
            }
        }
        piece.halt = self.ended.take().flatten();
        piece.is_last = true;
        self.is_over = true;
        if let Ok(Opened { reader, stages, .. }) = &mut self.opened {
            let progress = reader.progress();
            piece.taken = (reader.position().records - self.first_record.unwrap_or(0), reader.inner_lines());
            (piece.longest_record, piece.format) = (progress.longest_record, progress.format);
            if let Some(stages) = stages {
                piece.finish(stages);
            }
        }
        Some(piece)
    }

    fn end(&self) -> u64 {
        self.opened.as_ref().map_or(u64::MAX, |opened| opened.reader.position().bytes)
    }

    /// Records may be written before those of earlier splits, but errors and rejects come after everything before them.
    fn is_free(piece: &Piece) -> bool {
        !piece.is_last && piece.rejects.is_empty()
    }

    fn size(piece: &Piece) -> usize {
        piece.records.iter().map(|(bytes, offsets)| bytes.len() + 4 * offsets.len()).sum()
    }
}

impl Piece {
    /// Skips a bad record and adds it to the rejects.
    fn skip(&mut self, reader: &mut Reader, framer: &mut (dyn Framer + Send), error: Error) -> Result<()> {
        let (reject, len) = Reject::skip(reader, framer, error)?;
        self.read.bytes += len;
        self.rejects.push(reject);
        Ok(())
    }

    /// Adds what the stages keep until they have processed the last record.
    fn finish(&mut self, stages: &mut Stages) {
        let (bytes, offsets) = stages.rest();
        self.open = (offsets.len() > 1).then(|| bytes.to_vec());
        self.stats = stages.stats();
    }

    /// Adds what was taken from the source before the split to the place of an error.
    fn place(&self, error: Error, framing: &Framing, before: (u64, Option<u64>)) -> Error {
        let (records, inner) = if self.is_relative { before } else { (0, Some(0)) };
        let error = error.shift_record(records, inner.map(|inner| records + inner));
        match error.record() {
            Some(record) if framing.is_lines() => error.with_line(record + 1),
            _ => error,
        }
    }

    /// Returns the bad records. `before` is what was taken from the source before the split.
    pub(super) fn take_rejects(&mut self, framing: &Framing, before: (u64, Option<u64>)) -> Vec<Reject> {
        let rejects = std::mem::take(&mut self.rejects);
        let place = |reject: Reject| Reject { error: self.place(reject.error, framing, before), ..reject };
        rejects.into_iter().map(place).collect()
    }

    /// Returns why the split was not read to its end. `before` is what was taken from the source before it.
    pub(super) fn take_halt(&mut self, framing: &Framing, before: &mut (u64, Option<u64>)) -> Option<Halt> {
        let halt = self.halt.take().map(|halt| match halt {
            Halt::Source(error) => Halt::Source(self.place(error, framing, *before)),
            Halt::Output(error) => Halt::Output(self.place(error, framing, *before)),
        });
        *before = (before.0 + self.taken.0, before.1.zip(self.taken.1).map(|(before, inner)| before + inner));
        halt
    }
}
