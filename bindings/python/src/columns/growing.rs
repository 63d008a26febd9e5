//! Turns batches into a table: blocks are parsed, on several threads if available, and joined in order.
//!
//! ```text
//!            ┌─ jobs ─► thread ─┐
//! batches ─► block              ├─ pieces ─► join ─► columns
//!            └─ the caller's ───┘
//! ```
//!
//! The caller reads, and parses a block itself if no other thread is free. So at most two blocks for each thread exist
//! at a time; the results become part of the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arrow_array::ArrayRef;
use arrow_schema::{Field, Schema};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use millstream::frame::Batch;
use millstream::{Error, ErrorKind};

use super::block::{Block, LONGEST};
use super::kind;
use super::layout::Layout;
use super::table::Table;

/// The default number of parsing threads: with more, the reading thread would not keep up.
pub fn enough_workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// A table that grows, batch by batch.
pub struct Growing {
    layout: Arc<Layout>,
    columns: Vec<Box<dyn kind::Growing>>,
    /// The number of rows in the columns.
    rows: usize,
    /// The number of records so far.
    records: usize,
    /// The records that do not fill a block yet.
    open: Block,
    /// The number of parsing threads, including the caller's.
    workers: usize,
    crew: Option<Crew>,
    /// The number of blocks that have been submitted for parsing, and how many of them have been joined.
    given: usize,
    joined: usize,
    /// The results of blocks that wait for earlier blocks.
    early: BTreeMap<usize, Piece>,
    /// Blocks whose memory can be reused.
    spare: Vec<Block>,
    /// Whether there was an error; no block is joined after it.
    is_broken: bool,
}

/// The result of parsing a block.
struct Piece {
    /// The array of each column.
    arrays: Vec<ArrayRef>,
    rows: usize,
    /// The error that follows the rows.
    error: Option<Error>,
    block: Block,
}

impl Growing {
    pub fn new(layout: Layout, workers: usize) -> Growing {
        Growing {
            columns: layout.columns().map(|(_, column)| column.kind.column()).collect(),
            layout: Arc::new(layout),
            rows: 0,
            records: 0,
            open: Block::default(),
            workers,
            crew: None,
            given: 0,
            joined: 0,
            early: BTreeMap::new(),
            spare: Vec::new(),
            is_broken: false,
        }
    }

    /// Appends the records of a batch as rows, possibly later.
    ///
    /// # Errors
    /// For the first invalid field, in the order of the records; the earlier rows are kept.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let len = batch.bytes().len();
        if len > LONGEST {
            self.settle()?;
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_record(batch.first_record())
                .with_offset(batch.offset())
                .with_found(format!("a record of {len} bytes"))
                .with_expected(format!("at most {LONGEST} for columns")));
        }
        self.open.append(batch);
        self.records += batch.len();
        if !self.open.is_full() {
            return Ok(());
        }
        if self.workers > 1 && self.crew.is_none() {
            self.crew = Some(Crew::start(&self.layout, self.workers - 1));
        }
        self.give();
        self.join()
    }

    /// Waits until all appended records are in the columns.
    ///
    /// # Errors
    /// The same errors as [`append`](Growing::append).
    pub fn settle(&mut self) -> Result<(), Error> {
        if !self.open.is_empty() {
            self.give();
        }
        if let Some(crew) = self.crew.take() {
            crew.finish(&self.layout, &mut self.early);
        }
        self.join()?;
        // A piece is missing if a thread has panicked.
        if self.joined < self.given { Err(Error::new(ErrorKind::Internal)) } else { Ok(()) }
    }

    /// The number of appended records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The content of the columns.
    pub fn finish(self) -> Table {
        let fields = self
            .layout
            .columns()
            .map(|(_, column)| Field::new(&column.name, column.kind.data_type(), self.layout.missing.is_some()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Table::new(schema, self.rows, self.columns.into_iter().map(kind::Growing::finish).collect())
    }

    /// Passes the open block to a free thread, or parses it here.
    fn give(&mut self) {
        let block = std::mem::replace(&mut self.open, self.spare.pop().unwrap_or_default());
        let job = (self.given, block);
        self.given += 1;
        let left = match &self.crew {
            Some(crew) => crew.jobs.try_send(job).err().map(|refused| refused.into_inner()),
            None => Some(job),
        };
        if let Some((number, block)) = left {
            self.early.insert(number, parse(&self.layout, block));
        }
        if let Some(crew) = &self.crew {
            self.early.extend(crew.pieces.try_iter());
        }
    }

    /// Joins the pieces whose turn it is.
    fn join(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        while let Some(mut piece) = self.early.remove(&self.joined) {
            self.joined += 1;
            if !self.is_broken {
                if piece.rows > 0 {
                    self.columns.iter_mut().zip(&piece.arrays).for_each(|(column, values)| column.append(values));
                }
                self.rows += piece.rows;
                if let Some(error) = piece.error {
                    self.is_broken = true;
                    result = Err(error);
                }
            }
            piece.block.clear();
            self.spare.push(piece.block);
        }
        result
    }
}

/// The columns of a block, up to the first invalid record.
fn parse(layout: &Layout, mut block: Block) -> Piece {
    let (fields, mut wrong) = block.split(layout);
    let mut rows = fields.len();
    let mut arrays = Vec::new();
    for (at, column) in layout.columns() {
        let (values, found) = column.kind.parse(&fields.of(at));
        arrays.push(values);
        // A record with too few fields comes last, and the fields of a record are checked from the left.
        if let Some(found) = found
            && found.row < rows
        {
            rows = found.row;
            wrong = Some(found);
        }
    }
    arrays.iter_mut().for_each(|values| *values = values.slice(0, rows));
    let error = wrong.map(|wrong| {
        let error = Error::new(wrong.kind)
            .with_path(layout.name(wrong.column))
            .with_found(wrong.found)
            .with_expected(wrong.expected);
        block.locate(error, wrong.row, wrong.at)
    });
    Piece { arrays, rows, error, block }
}

/// Threads that parse numbered blocks.
struct Crew {
    jobs: Sender<(usize, Block)>,
    waiting: Receiver<(usize, Block)>,
    pieces: Receiver<(usize, Piece)>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts up to this many threads. Blocks that no thread is free for are left to the caller.
    fn start(layout: &Arc<Layout>, count: usize) -> Crew {
        let (jobs, waiting) = bounded(count);
        let (done, pieces) = unbounded();
        let start = |_| {
            let (layout, waiting, done) = (layout.clone(), waiting.clone(), done.clone());
            let work = move || {
                for (number, block) in waiting {
                    if done.send((number, parse(&layout, block))).is_err() {
                        return; // no call waits for the result any more
                    }
                }
            };
            thread::Builder::new().name("millstream columns".to_owned()).spawn(work).ok()
        };
        let threads = (0..count).filter_map(start).collect();
        Crew { jobs, waiting, pieces, threads }
    }

    /// Parses waiting blocks, and waits for the others.
    fn finish(self, layout: &Layout, pieces: &mut BTreeMap<usize, Piece>) {
        drop(self.jobs);
        pieces.extend(self.waiting.iter().map(|(number, block)| (number, parse(layout, block))));
        // A thread that panicked has sent no piece, which the caller detects.
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        pieces.extend(self.pieces.try_iter());
    }
}
