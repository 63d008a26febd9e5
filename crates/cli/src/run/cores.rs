//! `-j` without `--each`: the splits of the files are read on several threads, each with its own stages. The output is
//! the output of one thread.
//!
//! A stage that remembers records, such as `uniq`, runs on the main thread, and so do all stages after it. Sources that
//! cannot be divided, such as commands, are read on the main thread alone.

use std::path::Path;
use std::sync::Arc;

use millstream::frame::{Csv, Framer};
use millstream::pipe::StageStats;
use millstream::splits::{Framing, Split, Splits};
use millstream::{CancelToken, Decode, Error, ErrorKind, Format, Reader, Result};

use super::csv::Ragged;
use super::halt::{Amount, Halt};
use super::header::Header;
use super::options::Options;
use super::settings::Settings;
use super::source::Source;
use super::stages::{StageText, Stages, Table};

/// The size of a split. It is the unit of work of a thread, and of memory.
const SIZE: u64 = 4 << 20;

/// The maximum size of the results that a thread collects for one split. Larger results are made by the main thread,
/// which writes them in pieces.
const MOST: usize = 64 << 20;

/// Accepts records: their bytes, and the n + 1 offsets of n records.
type Sink<'a> = &'a mut dyn FnMut(&[u8], &[u32]) -> Result<()>;

/// Work for several threads.
pub(super) struct Cores {
    threads: usize,
    /// The plans of the sources.
    plans: Vec<Splits>,
    task: Task,
    /// The number of stages that run on the threads.
    pub(super) stages: usize,
    /// The header after these stages.
    pub(super) header: Option<Arc<Header>>,
    pub(super) stats: Vec<StageStats>,
    /// The compression of the last source.
    pub(super) format: Option<Format>,
}

/// The work on each split.
#[derive(Clone)]
struct Task {
    settings: Settings,
    input: CancelToken,
    framing: Framing,
    csv: Option<Csv>,
    /// The header of the first source. The first record of every source is one.
    header: Option<Arc<Header>>,
    ragged: Ragged,
    stages: Vec<StageText>,
    is_measured: bool,
    limit: usize,
    counts: bool,
}

/// The result for a split.
#[derive(Default)]
pub(super) struct Piece {
    /// Records, in pieces: their bytes, and the n + 1 offsets of n records.
    pub(super) records: Vec<(Vec<u8>, Vec<u32>)>,
    /// The last record of the source, if it passed and has no terminator.
    pub(super) open: Option<Vec<u8>>,
    /// What was read, and what passed.
    pub(super) read: Amount,
    pub(super) moved: Amount,
    pub(super) longest_record: usize,
    /// The compression of the source.
    pub(super) format: Option<Format>,
    pub(super) stats: Vec<StageStats>,
    halt: Option<Halt>,
    /// The split whose results were too large to be collected.
    pub(super) too_large: Option<Split>,
    /// Whether record numbers count from the start of the split.
    is_relative: bool,
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
        input: &CancelToken,
    ) -> Result<Option<Cores>> {
        let threads = options.threads();
        let stages = options.stages.iter().take_while(|stage| !stage.remembers()).count();
        let (first, rest) = options.stages.split_at(stages);
        let only_counts = stages == 0 && rest.is_empty() && options.count && sources.len() == 1;
        // These are limits for a whole source.
        let is_limited =
            ["decode_limit", "decode_ratio", "total_timeout"].iter().any(|name| options.settings.has(name));
        // The numbers of the records that reach the rest are not known, and would be missing in an error.
        if threads < 2 || is_limited || (stages == 0 && !only_counts) || rest.iter().any(StageText::may_fail) {
            return Ok(None);
        }
        let framing = match csv {
            // The pass over the file, which finds the splits, would take as long as counting.
            Some(_) if only_counts => return Ok(None),
            Some(csv) => Framing::Csv { dialect: *csv.dialect() },
            None => options.framing().unwrap_or(Framing::Lines),
        };
        let decode = if options.settings.word("decode") == Some("off") { Decode::Off } else { Decode::Auto };
        let mut plans = Vec::new();
        for source in sources {
            let Source::File(path) = source else { return Ok(None) };
            if !Path::new(path).metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
                return Ok(None);
            }
            let plan = Splits::builder().cancel(input).decode(decode).plan(path, framing.clone(), SIZE)?;
            let is_small = |split: &Split| split.end().is_none_or(|end| end - split.begin() <= 2 * SIZE);
            if plan.note().is_some() || !plan.iter().all(is_small) {
                return Ok(None);
            }
            plans.push(plan);
        }
        let task = Task {
            settings: options.settings.clone(),
            input: input.clone(),
            framing,
            csv: csv.cloned(),
            header,
            ragged: options.table.ragged(),
            stages: first.to_vec(),
            is_measured: options.stats.is_some(),
            limit: options.longest_record(),
            counts: options.count && rest.is_empty(),
        };
        let header = task.new_stages(&*task.framing.framer()?)?.and_then(|stages| stages.header().cloned());
        Ok(Some(Cores { threads, plans, task, stages, header: header.map(Arc::new), stats: Vec::new(), format: None }))
    }

    /// Processes a source, which `name` names in errors, and passes the results to `each` in order.
    pub(super) fn run<E: From<Error>>(
        &self,
        source: usize,
        name: &str,
        each: impl FnMut(Piece) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (task, name) = (self.task.clone(), name.to_string());
        self.plans[source].parallel(self.threads, move |split| Ok(task.collect(split, &name)), each)
    }

    /// Processes a split on this thread, and passes results to `send` as they arrive.
    pub(super) fn stream(&self, split: &Split, name: &str, send: Sink<'_>) -> Piece {
        let mut piece = Piece::default();
        piece.halt = self.task.run(split, name, &mut piece, send).err();
        piece
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

impl Task {
    /// Processes a split and collects the results.
    fn collect(&self, split: &Split, name: &str) -> Piece {
        let (mut piece, mut records, mut total, mut is_too_large) = (Piece::default(), Vec::new(), 0, false);
        let halt = self.run(split, name, &mut piece, &mut |bytes, offsets| {
            total += bytes.len() + 4 * offsets.len();
            is_too_large = total > MOST;
            if is_too_large {
                return Err(Error::new(ErrorKind::Cancelled));
            }
            if offsets.len() > 1 {
                records.push((bytes.to_vec(), offsets.to_vec()));
            }
            Ok(())
        });
        if is_too_large {
            return Piece { too_large: Some(split.clone()), ..Piece::default() };
        }
        Piece { records, halt: halt.err(), ..piece }
    }

    /// Creates the stages, if there are any.
    fn new_stages(&self, framer: &dyn Framer) -> Result<Option<Stages>> {
        if self.stages.is_empty() {
            return Ok(None);
        }
        let table = |csv| Table { csv, header: self.header.as_deref(), ragged: self.ragged, has_blank_lines: true };
        let stages = Stages::new(&self.stages, framer, self.csv.as_ref().map(table), self.limit)?;
        Ok(Some(if self.is_measured { stages.measured() } else { stages }))
    }

    /// Processes a split.
    fn run(&self, split: &Split, name: &str, piece: &mut Piece, send: Sink<'_>) -> std::result::Result<(), Halt> {
        piece.is_relative = split.first_record().is_none();
        let builder = self.settings.reader().cancel(&self.input).name(name);
        let mut reader = builder.split(split).map_err(Halt::Source)?;
        if let (Some(csv), true) = (self.csv.as_ref().filter(|_| self.header.is_some()), split.begin() == 0) {
            Header::read(&mut reader, csv).map_err(Halt::Source)?;
        }
        let mut framer = self.framing.framer().map_err(Halt::Source)?;
        let mut stages = self.new_stages(&*framer).map_err(Halt::Output)?;
        let outcome = self.read(&mut reader, &mut *framer, stages.as_mut(), piece, send);
        let progress = reader.progress();
        (piece.longest_record, piece.format) = (progress.longest_record, progress.format);
        if let Some(stages) = &mut stages {
            let (bytes, offsets) = stages.rest();
            piece.open = (offsets.len() > 1).then(|| bytes.to_vec());
            piece.stats = stages.stats();
        }
        outcome
    }

    fn read(
        &self,
        reader: &mut Reader,
        framer: &mut (dyn Framer + Send),
        mut stages: Option<&mut Stages>,
        piece: &mut Piece,
        send: Sink<'_>,
    ) -> std::result::Result<(), Halt> {
        let name = reader.name().to_string();
        while let Some(batch) = reader.next_batch(framer).map_err(Halt::Source)? {
            let skipped = self.csv.as_ref().map_or(0, |csv| csv.count_skipped(&batch)) as u64;
            let read = Amount { records: batch.len() as u64 - skipped, bytes: batch.bytes().len() as u64 };
            piece.read += read;
            let moved = &mut piece.moved;
            match &mut stages {
                None => *moved += read,
                Some(stages) => match stages.count(&batch).filter(|_| self.counts) {
                    Some((records, bytes)) => *moved += Amount { records, bytes: bytes as u64 },
                    None => stages
                        .pass(batch, |bytes, offsets| {
                            *moved += Amount { records: offsets.len() as u64 - 1, bytes: bytes.len() as u64 };
                            if self.counts { Ok(()) } else { send(bytes, offsets) }
                        })
                        .map_err(|error| Halt::Output(error.with_name(name.clone())))?,
                },
            }
        }
        Ok(())
    }
}

impl Piece {
    /// Returns why the split was not read to its end. `records` is the number of records of the source before it.
    pub(super) fn take_halt(&mut self, framing: &Framing, records: u64) -> Option<Halt> {
        let (before, is_line) = (if self.is_relative { records } else { 0 }, *framing == Framing::Lines);
        let place = |error: Error| match error.record() {
            Some(record) if before > 0 => {
                let error = error.with_record(before + record);
                if is_line { error.with_line(before + record + 1) } else { error }
            }
            _ => error,
        };
        self.halt.take().map(|halt| match halt {
            Halt::Source(error) => Halt::Source(place(error)),
            Halt::Output(error) => Halt::Output(place(error)),
        })
    }
}
