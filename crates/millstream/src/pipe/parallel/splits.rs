//! Stages that threads run on the splits of a file, which they read themselves.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::frame::Framer;
use crate::reader::Reader;
use crate::splits::in_order::{InOrder, Work};
use crate::splits::{Divided, Split};

use super::super::chain::{Chain, Start};
use super::super::item::Bytes;
use super::super::origin::Origin;
use super::super::scope::{Flow, OnFailure, Scope};
use super::super::stats::StageStats;
use super::super::{Attached, Detached, Pipe};
use super::chunk::{Chunk, SendItem};
use super::worker::Worker;
use super::{Stateless, unpack};

/// A divided file, whose records several threads read. It is created by [`Pipe::from_splits`].
#[derive(Clone)]
pub struct FromSplits {
    plan: Divided,
    open: Arc<Open>,
}

type Open = dyn Fn(&Split) -> Result<Reader> + Send + Sync;

impl std::fmt::Debug for FromSplits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromSplits").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Pipe<FromSplits, (), (), ()> {
    /// Processes the records of a divided file, which several threads read at once. The plan says how records are found.
    /// [`parallel`](Self::parallel) follows.
    ///
    /// ```
    /// use millstream::pipe::Pipe;
    /// use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// std::fs::write(&path, "apple 3\npear x\nplum 4\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 4 << 20)?;
    /// let mut pipe = Pipe::from_splits(&plan)
    ///     .parallel(4, |stages| stages.filter(|line| !line.ends_with(b"x")).map(|line| line.to_ascii_uppercase()))
    ///     .scan_state(0, |number, line| {
    ///         *number += 1;
    ///         format!("{number} {}", String::from_utf8_lossy(&line))
    ///     });
    /// assert_eq!(pipe.collect()?, ["1 APPLE 3", "2 PLUM 4"]);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn from_splits(plan: impl Into<Divided>) -> Self {
        let feed = FromSplits { plan: plan.into(), open: Arc::new(Reader::split) };
        Pipe { feed, chain: (), kinds: std::marker::PhantomData }
    }

    /// Sets the function that opens the reader of a split, for a reader with other options than the defaults. It is called
    /// on the threads.
    ///
    /// ```
    /// use millstream::pipe::Pipe;
    /// use millstream::splits::{Framing, Splits};
    /// use millstream::{ErrorKind, Reader};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// std::fs::write(&path, "a\na long line\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 4 << 20)?;
    /// let mut pipe = Pipe::from_splits(&plan)
    ///     .open_with(|split| Reader::builder().record_limit(8).split(split))
    ///     .parallel(4, |stages| stages.map(|line| line.len()));
    /// assert_eq!(pipe.collect().unwrap_err().kind(), ErrorKind::RecordTooLong);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn open_with(mut self, open: impl Fn(&Split) -> Result<Reader> + Send + Sync + 'static) -> Self {
        self.feed.open = Arc::new(open);
        self
    }

    /// Runs stages on `threads` threads, each with its own copy of the stages. Each thread reads splits, finds their records
    /// and runs the stages. All later stages and the sink stay on the caller's thread, which gets the results in the order
    /// of the file.
    ///
    /// - The results, and the errors with their records and positions, are those of a pipe that reads the whole file on
    ///   one thread. Only stages without state can be passed here; stages that remember items, such as `take` and
    ///   `scan_state`, follow, and get the items in order.
    /// - An error or a panic is reported after all earlier results have reached the sink. By then, stages may have run on
    ///   later records.
    /// - Memory is bounded: for each thread, a reader's buffer, the results for one batch of at most 256 KiB of records
    ///   or one record, and 16 MiB of results that wait for their turn. For splits of 4 MiB, threads rarely wait. Much
    ///   larger splits are slower: threads wait until the results of earlier splits have been taken.
    /// - With 1 thread, or if the file is one split, everything runs on the caller's thread.
    /// - When the pipe is dropped, and when no more items are needed, the threads end after their current batch.
    /// - An error of a reader ends the pipe, even [`Cancelled`](crate::ErrorKind::Cancelled). To stop the pipe and continue
    ///   later, use [`Pipe::cancel`].
    pub fn parallel<'p, P, O: SendItem>(
        self,
        threads: usize,
        stages: impl FnOnce(Pipe<Detached, Bytes, Start, Bytes>) -> Pipe<Detached, Bytes, P, O>,
    ) -> Pipe<Attached<'p>, Bytes, OnSplits<P, O>, O>
    where
        P: Chain<Bytes, Out = O> + Stateless + Clone + Send + 'static,
    {
        let stages = stages(Pipe::stages()).chain;
        let FromSplits { plan, open } = self.feed;
        // If the framing were invalid, the first split would fail.
        let framer = plan.framing().framer().unwrap_or_else(|_| Box::new(crate::frame::Lines::new()));
        let chain = OnSplits {
            state: State::New { plan, open, threads, stages },
            before: Before { records: 0, inner_lines: Some(0) },
            stats: StageStats { name: "parallel".into(), ..StageStats::default() },
        };
        Pipe {
            feed: Attached::new(Vec::new(), super::super::feed::Order::Sequence, framer),
            chain,
            kinds: std::marker::PhantomData,
        }
    }
}

/// Stages on several threads, which read the splits of a file themselves.
pub struct OnSplits<P, O: SendItem> {
    state: State<P, O>,
    before: Before,
    stats: StageStats,
}

enum State<P, O: SendItem> {
    /// No thread has been started: options can still be set.
    New {
        plan: Divided,
        open: Arc<Open>,
        threads: usize,
        stages: P,
    },
    Running(Box<dyn Next<O> + Send>),
    Ended,
}

/// What was taken from the file before the current split.
#[derive(Clone, Copy, Debug)]
struct Before {
    records: u64,
    /// The number of line ends inside these records, if it is known.
    inner_lines: Option<u64>,
}

/// Returns pieces in order.
trait Next<O: SendItem> {
    fn next(&mut self) -> Result<Option<Piece<O>>>;
}

impl<F, P, O: SendItem> Next<O> for InOrder<Divided, F, OnSplit<P, O>>
where
    F: Fn(&Split) -> OnSplit<P, O> + Clone + Send + 'static,
    P: Chain<Bytes, Out = O> + Send + 'static,
{
    fn next(&mut self) -> Result<Option<Piece<O>>> {
        self.next_piece()
    }
}

impl<P, O: SendItem> std::fmt::Debug for OnSplits<P, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnSplits").finish_non_exhaustive()
    }
}

impl<P, O: SendItem> Chain<Bytes> for OnSplits<P, O>
where
    P: Chain<Bytes, Out = O> + Clone + Send + 'static,
{
    type Out = O;

    /// Does nothing, because the pipe's own source is empty.
    fn run<'a>(
        &mut self,
        _input: impl Iterator<Item = (u64, &'a [u8])>,
        _scope: Scope<'a>,
        _sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        Flow::Continue(())
    }

    fn settle<'a>(&mut self, scope: Scope<'a>, sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow) -> Flow {
        let began = Instant::now();
        let next = self.pieces(scope).map_or(Ok(None), |pieces| pieces.next());
        self.stats.waited += began.elapsed();
        let flow = match next {
            Ok(Some(piece)) => self.hand_on(piece, scope, sink),
            Ok(None) => {
                self.state = State::Ended;
                return Flow::Continue(());
            }
            Err(error) => scope.end(self.before.records, error),
        };
        if flow.is_break() {
            self.state = State::Ended;
        }
        flow
    }

    fn holds(&self) -> bool {
        !matches!(self.state, State::Ended)
    }

    fn report(&self, stages: &mut Vec<StageStats>) {
        stages.push(StageStats { elsewhere: self.stats.time, ..self.stats.clone() });
    }
}

impl<P, O: SendItem> OnSplits<P, O>
where
    P: Chain<Bytes, Out = O> + Clone + Send + 'static,
{
    /// Starts the threads, if that has not been done.
    fn pieces(&mut self, scope: Scope<'_>) -> Option<&mut (dyn Next<O> + Send)> {
        if let State::New { .. } = self.state
            && let State::New { plan, open, threads, stages } = std::mem::replace(&mut self.state, State::Ended)
        {
            let on_error = scope.run.on_error;
            let begin = move |split: &Split| OnSplit::new(split, &*open, Worker::new(stages.clone()), on_error);
            self.state = State::Running(Box::new(plan.in_order(threads, false, begin)));
        }
        match &mut self.state {
            State::Running(pieces) => Some(&mut **pieces),
            _ => None,
        }
    }

    /// Passes on a piece. Its record numbers are those of the split, or of the file if the plan has them.
    fn hand_on<'a>(
        &mut self,
        mut piece: Piece<O>,
        scope: Scope<'a>,
        sink: &mut impl FnMut(u64, O::Of<'a>) -> Flow,
    ) -> Flow {
        // Lines are always counted from the start of the split.
        let records = if piece.is_relative { self.before.records } else { 0 };
        let before = Before { records, ..self.before };
        scope.run.read.set(scope.run.read.get() + piece.read);
        if scope.run.measures {
            self.stats.time += piece.chunk.work.1;
            self.stats.items += O::count(&piece.chunk.made) as u64;
            self.stats.bytes += O::size_of_all(&piece.chunk.made) as u64;
        }
        for (_, failure) in &mut piece.chunk.failures {
            failure.record += before.records;
            let error = std::mem::replace(&mut failure.error, Error::new(crate::ErrorKind::Internal));
            failure.error = before.place(error, piece.is_lines);
        }
        for origin in &mut piece.chunk.origins {
            if let Some(origin) = Arc::get_mut(origin) {
                origin.shift(before.records);
            }
        }
        unpack(&mut piece.chunk, before.records, scope, sink)?;
        if let Some(Ended { error, records, inner_lines }) = piece.ended {
            if let Some(error) = error {
                *scope.run.source_error.borrow_mut() = Some(before.place(error, piece.is_lines));
                self.state = State::Ended;
                return Flow::Continue(());
            }
            self.before = Before {
                records: self.before.records + records,
                inner_lines: self.before.inner_lines.zip(inner_lines).map(|(before, lines)| before + lines),
            };
        }
        Flow::Continue(())
    }
}

impl Before {
    /// Adds what was taken before the split to the place of an error.
    fn place(self, error: Error, is_lines: bool) -> Error {
        let error = error.shift_record(self.records, self.inner_lines.map(|inner| self.records + inner));
        match error.record() {
            Some(record) if is_lines => error.with_line(record + 1),
            _ => error,
        }
    }
}

/// The work on a split.
struct OnSplit<P, O> {
    opened: std::result::Result<Opened, Option<Error>>,
    worker: Worker<P>,
    on_error: OnFailure,
    /// The records that begin before this offset belong to the split.
    end: u64,
    /// Whether records are counted from the start of the split.
    is_relative: bool,
    first_record: u64,
    is_lines: bool,
    is_over: bool,
    kinds: std::marker::PhantomData<fn() -> O>,
}

struct Opened {
    reader: Reader,
    name: Arc<str>,
    framer: Box<dyn Framer + Send>,
}

/// The results for a batch, or the end of the split.
struct Piece<O: SendItem> {
    chunk: Chunk<Bytes, O>,
    /// The number of records.
    read: u64,
    is_relative: bool,
    is_lines: bool,
    ended: Option<Ended>,
}

/// How a split ended.
struct Ended {
    error: Option<Error>,
    /// The number of records that were taken, and of line ends inside them, if it is known.
    records: u64,
    inner_lines: Option<u64>,
}

impl Opened {
    fn new(split: &Split, open: &Open) -> Result<Opened> {
        let mut reader = open(split)?;
        reader.count_lines_from_here();
        Ok(Opened { name: reader.name().into(), framer: split.framing().framer()?, reader })
    }
}

impl<P, O: SendItem> OnSplit<P, O> {
    fn new(split: &Split, open: &Open, worker: Worker<P>, on_error: OnFailure) -> OnSplit<P, O> {
        OnSplit {
            opened: Opened::new(split, open).map_err(Some),
            worker,
            on_error,
            end: split.end().filter(|_| split.is_assumed()).unwrap_or(u64::MAX),
            is_relative: split.first_record().is_none(),
            first_record: split.first_record().unwrap_or(0),
            is_lines: split.framing().is_lines(),
            is_over: false,
            kinds: std::marker::PhantomData,
        }
    }

    fn piece(&self) -> Piece<O> {
        Piece { chunk: Chunk::new(), read: 0, is_relative: self.is_relative, is_lines: self.is_lines, ended: None }
    }

    /// Ends the split.
    fn end_with(&mut self, error: Option<Error>) -> Piece<O> {
        self.is_over = true;
        let (records, inner_lines) = match &self.opened {
            Ok(Opened { reader, .. }) => (reader.position().records - self.first_record, reader.inner_lines()),
            Err(_) => (0, None),
        };
        Piece { ended: Some(Ended { error, records, inner_lines }), ..self.piece() }
    }
}

impl<P: Chain<Bytes, Out = O> + Send + 'static, O: SendItem> Work for OnSplit<P, O> {
    type Piece = Piece<O>;

    fn next(&mut self) -> Option<Piece<O>> {
        if self.is_over {
            return None;
        }
        let mut piece = self.piece();
        let Opened { reader, name, framer } = match &mut self.opened {
            Ok(opened) => opened,
            Err(error) => {
                let error = error.take();
                return Some(self.end_with(error));
            }
        };
        if reader.position().bytes >= self.end {
            return Some(self.end_with(None));
        }
        let all = match reader.next_batch(&mut **framer) {
            Ok(Some(all)) => all,
            Ok(None) => return Some(self.end_with(None)),
            Err(error) => return Some(self.end_with(Some(error))),
        };
        let count = all.offsets()[..all.len()].partition_point(|&start| all.offset() + u64::from(start) < self.end);
        // The line of a record follows from its number, which is completed later.
        let (batch, later) = (all.first(count).of_lines(self.is_lines), all.len() - count);
        piece.read = count as u64;
        piece.chunk.on_error = self.on_error;
        self.worker.pass_batch(batch, name, &mut piece.chunk);
        if O::count(&piece.chunk.made) > 0 {
            let first = batch.first_record();
            let keep = self.on_error == OnFailure::Skip { keep: true };
            piece.chunk.origins.push(Arc::new(Origin::of(batch, Some(name.clone()), (first, first), keep)));
        }
        let given_back = reader.give_back(later);
        if piece.chunk.flow.is_break() {
            self.is_over = true;
        }
        if let Err(error) = given_back {
            let ended = self.end_with(Some(error)).ended;
            piece.ended = ended;
        }
        Some(piece)
    }

    fn end(&self) -> u64 {
        self.opened.as_ref().map_or(u64::MAX, |opened| opened.reader.position().bytes)
    }

    fn size(piece: &Piece<O>) -> usize {
        let items = O::count(&piece.chunk.made) * size_of::<(u64, std::ops::Range<usize>)>();
        O::weight(&piece.chunk.made) + items + 4 * piece.read as usize
    }
}
