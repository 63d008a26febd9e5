//! `--round-robin`: copies that stay alive and are given blocks in turn.
//!
//! Each copy has two threads: one writes blocks to it, the other one takes what it writes and puts that out in pieces of
//! whole records. A copy that is busy is passed over. One that stops reading gets nothing more; that is no failure by
//! itself, but when the last one has stopped and there are still records, that is one.

use std::ffi::OsStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use millstream::frame::Framer;
use millstream::{CancelToken, Command, Decode, Error, ErrorKind, ReadAhead, Reader, Result, Stdin, Writer};

use super::block::Block;
use super::control::Control;

/// Copies that stay alive.
pub(super) struct RoundRobin {
    seats: Vec<Arc<Seat>>,
    rota: Arc<Rota>,
    /// Whose turn it is.
    turn: usize,
    threads: Vec<JoinHandle<()>>,
    /// A block that nobody was left to read.
    unread: Option<Error>,
}

/// Says that something has changed in one of the seats.
#[derive(Default)]
struct Rota {
    changes: Mutex<u64>,
    changed: Condvar,
}

/// Where a copy's next block lies.
#[derive(Default)]
struct Seat(Mutex<Place>);

#[derive(Default)]
struct Place {
    /// Whether the feeding thread waits for a block: one that lies here will be taken.
    is_waiting: bool,
    block: Option<Block>,
    /// The last that was taken from here: what a failure is located by.
    last: Option<Block>,
    is_closed: bool,
    /// The copy reads no more.
    is_left: bool,
}

impl RoundRobin {
    /// Starts `jobs` copies. `framer` makes framers for what they write.
    ///
    /// # Errors
    /// Those of starting them.
    pub(super) fn start(
        line: &OsStr,
        jobs: usize,
        control: &Arc<Control>,
        mut framer: impl FnMut() -> Result<Box<dyn Framer + Send>>,
    ) -> Result<RoundRobin> {
        let rota = Arc::<Rota>::default();
        let mut robin =
            RoundRobin { seats: Vec::new(), rota: rota.clone(), turn: 0, threads: Vec::new(), unread: None };
        for _ in 0..jobs {
            if let Err(error) = robin.add(line, control, framer()?) {
                control.cancel();
                let _ = robin.close();
                return Err(error);
            }
        }
        Ok(robin)
    }

    fn add(&mut self, line: &OsStr, control: &Arc<Control>, mut framer: Box<dyn Framer + Send>) -> Result<()> {
        let token = CancelToken::new()?;
        control.watch(&token);
        let (theirs, ours) = std::io::pipe()?;
        let command = Command::shell(line)?.stdin(Stdin::Fd(theirs.into()));
        let builder = Reader::builder().read_ahead(ReadAhead::Off).decode(Decode::Off).cancel(&token);
        let mut reader = builder.command(command)?;
        let mut writer = Writer::builder().cancel(&token).fd(ours)?;
        let seat = Arc::<Seat>::default();
        self.seats.push(seat.clone());
        let (feeding, rota) = (seat.clone(), self.rota.clone());
        let feed = move || {
            while let Some(block) = feeding.take(&rota) {
                // Why it reads no more is what its status says.
                if writer.write(&block.bytes).and_then(|()| writer.flush()).is_err() {
                    break;
                }
            }
            feeding.leave(&rota);
        };
        self.threads.push(std::thread::Builder::new().name("feed".into()).spawn(feed)?);
        let (control, rota) = (control.clone(), self.rota.clone());
        let drain = move || {
            let result = drain(&mut reader, &mut *framer, &control).and_then(|()| reader.close().map(drop));
            seat.leave(&rota);
            let last = seat.lock().last.clone();
            control.left(last.as_ref(), result);
            rota.tell();
        };
        self.threads.push(std::thread::Builder::new().name("copy".into()).spawn(drain)?);
        Ok(())
    }

    /// Gives a block to the next copy that is not busy, and waits for one.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if no blocks are wanted any more, or no copy reads them.
    pub(super) fn give(&mut self, mut block: Block, control: &Control) -> Result<()> {
        loop {
            let seen = *self.rota.lock();
            control.check()?;
            let mut reading = 0;
            for i in 0..self.seats.len() {
                let at = (self.turn + i) % self.seats.len();
                block = match self.seats[at].put(block) {
                    Put::Taken => {
                        control.count_block();
                        self.turn = at + 1;
                        self.rota.tell();
                        return Ok(());
                    }
                    Put::Busy(block) => {
                        reading += 1;
                        block
                    }
                    Put::Left(block) => block,
                };
            }
            if reading == 0 {
                let error = Error::new(ErrorKind::CommandFailed)
                    .with_found("no copy of the command that still reads")
                    .with_expected("one for each block that is left");
                // Why they stopped is known when they have ended.
                self.unread.get_or_insert(block.locate("front of ", error));
                return Err(Error::new(ErrorKind::Cancelled));
            }
            self.rota.wait(seen);
        }
    }

    /// There are no more blocks: waits for the copies. An error if nobody was left to read one.
    pub(super) fn close(self) -> Result<()> {
        for seat in &self.seats {
            seat.lock().is_closed = true;
        }
        self.rota.tell();
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.unread.map_or(Ok(()), Err)
    }
}

/// Puts out what a copy writes.
fn drain(reader: &mut Reader, framer: &mut dyn Framer, control: &Control) -> Result<()> {
    while let Some(batch) = reader.next_batch(framer)? {
        control.write_piece(batch.bytes())?;
    }
    Ok(())
}

/// What became of a block.
enum Put {
    Taken,
    Busy(Block),
    Left(Block),
}

impl Seat {
    fn put(&self, block: Block) -> Put {
        let mut place = self.lock();
        if place.is_left {
            return Put::Left(block);
        }
        if !std::mem::take(&mut place.is_waiting) {
            return Put::Busy(block);
        }
        place.block = Some(block);
        Put::Taken
    }

    /// The next block; `None` when there will be none.
    fn take(&self, rota: &Rota) -> Option<Block> {
        loop {
            let seen = *rota.lock();
            let mut place = self.lock();
            if let Some(block) = place.block.take() {
                place.last = Some(block.clone());
                return Some(block);
            }
            if place.is_left || place.is_closed {
                return None;
            }
            let is_news = !std::mem::replace(&mut place.is_waiting, true);
            drop(place);
            // Our own news is no reason to look again.
            rota.wait(if is_news { rota.tell() } else { seen });
        }
    }

    fn leave(&self, rota: &Rota) {
        self.lock().is_left = true;
        rota.tell();
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rota {
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has changed. Returns the number of changes so far.
    fn tell(&self) -> u64 {
        let mut changes = self.lock();
        *changes += 1;
        self.changed.notify_all();
        *changes
    }

    /// Waits until something has changed since `seen`.
    fn wait(&self, seen: u64) {
        let changes = self.changed.wait_while(self.lock(), |changes| *changes == seen);
        drop(changes.unwrap_or_else(PoisonError::into_inner));
    }
}
