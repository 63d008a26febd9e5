//! `--round-robin`: copies that stay alive and get blocks in turn.
//!
//! Each copy has two threads: one writes blocks to it, the other reads its output and writes it in pieces of whole
//! records. A busy copy is skipped. A copy that stops reading before the end of its input has failed: its blocks are
//! lost, and it is unknown which part of them it has processed.

use std::io::PipeWriter;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream::frame::Framer;
use millstream::{CancelToken, Decode, Error, ErrorKind, ReadAhead, Reader, Result, Stdin, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Copy;
use super::block::{Block, Content};
use super::control::Control;

/// The shortest interval at which the progress of a copy, and whether it has read all of its input, are checked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The maximum number of bytes that a copy gets at a time if its progress is monitored.
const WATCHED_PIECE: usize = 4096;

/// Copies that stay alive.
pub(super) struct RoundRobin {
    seats: Vec<Arc<Seat>>,
    rota: Arc<Rota>,
    /// The index of the copy whose turn it is.
    turn: usize,
    threads: Vec<JoinHandle<()>>,
    /// The error of a block that no copy remained to read.
    unread: Option<Error>,
}

/// Signals changes in one of the seats.
#[derive(Default)]
struct Rota {
    changes: Mutex<u64>,
    changed: Condvar,
}

/// The place for a copy's next block.
#[derive(Default)]
struct Seat(Mutex<Place>);

#[derive(Default)]
struct Place {
    /// Whether the feeding thread waits for a block, so that a block put here will be taken.
    is_waiting: bool,
    block: Option<Block>,
    /// The last block taken from here, which locates a failure.
    last: Option<Block>,
    is_closed: bool,
    /// Whether the copy has stopped reading.
    is_left: bool,
    /// What happened to the copy's blocks. This is set when the copy gets no more blocks.
    fed: Option<Fed>,
    /// Whether the copy has ended successfully before its input did.
    ended_early: bool,
    /// The bytes that the copy has read and written, for the time limit.
    activity: Activity,
}

/// What happened to the blocks that a copy got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fed {
    /// The copy has read all of its blocks.
    Read,
    /// The copy stopped reading before the end of its blocks.
    Unread,
}

/// The progress of a copy. The time limit applies while the progress does not change although the copy has bytes to
/// process.
#[derive(Default)]
struct Activity {
    /// The pipe to the copy, until it is closed.
    pipe: Option<PipeWriter>,
    /// The number of bytes that were put into the pipe.
    given: u64,
    /// The number of bytes that the copy has written.
    written: u64,
    /// Whether the copy's output is being written, so that the copy cannot write more.
    is_held_up: bool,
    has_ended: bool,
}

impl RoundRobin {
    /// Starts `jobs` copies. `framer` creates framers for their output. If a copy neither reads its input nor writes
    /// for `timeout`, the run ends.
    ///
    /// # Errors
    /// Returns the errors of starting them.
    pub(super) fn start(
        copy: &Copy,
        jobs: usize,
        timeout: Option<Duration>,
        control: &Arc<Control>,
        mut framer: impl FnMut() -> Result<Box<dyn Framer + Send>>,
    ) -> Result<RoundRobin> {
        let rota = Arc::<Rota>::default();
        let mut robin =
            RoundRobin { seats: Vec::new(), rota: rota.clone(), turn: 0, threads: Vec::new(), unread: None };
        for _ in 0..jobs {
            if let Err(error) = robin.add(copy, timeout.is_some(), control, framer()?) {
                control.cancel();
                let _ = robin.close();
                return Err(error);
            }
        }
        if let Some(timeout) = timeout {
            let (seats, watched) = (robin.seats.clone(), control.clone());
            let watch = move || watch(&seats, timeout, &rota, &watched);
            match std::thread::Builder::new().name("timeout".into()).spawn(watch) {
                Ok(thread) => robin.threads.push(thread),
                Err(error) => {
                    control.cancel();
                    let _ = robin.close();
                    return Err(error.into());
                }
            }
        }
        Ok(robin)
    }

    fn add(
        &mut self,
        copy: &Copy,
        is_watched: bool,
        control: &Arc<Control>,
        mut framer: Box<dyn Framer + Send>,
    ) -> Result<()> {
        let token = CancelToken::new()?;
        control.watch(&token);
        let (theirs, ours) = std::io::pipe()?;
        let pipe = ours.try_clone()?;
        let command = copy.command()?.stdin(Stdin::Fd(theirs.into()));
        let builder = Reader::builder().read_ahead(ReadAhead::Off).decode(Decode::Off).cancel(&token);
        let mut reader = builder.command(command)?;
        let mut writer = Writer::builder().cancel(&token).fd(ours)?;
        let seat = Arc::<Seat>::default();
        if is_watched {
            seat.lock().activity.pipe = Some(pipe.try_clone()?);
        }
        self.seats.push(seat.clone());
        let (feeding, ending, rota, failing) = (seat.clone(), token.clone(), self.rota.clone(), control.clone());
        let feed = move || {
            let piece = if is_watched { WATCHED_PIECE } else { usize::MAX };
            let fed = feed(&feeding, &rota, &mut writer, piece).and_then(|fed| match fed {
                Fed::Read => is_read(&pipe, &ending),
                Fed::Unread => Ok(Fed::Unread),
            });
            // The copy did not cause this error, and the error is known before the copy can mistake the end of its pipe
            // for the end of its input.
            let fed = fed.unwrap_or_else(|error| {
                failing.left(feeding.lock().last.as_ref(), Err(error));
                Fed::Unread
            });
            feeding.finish(fed, &rota);
        };
        self.threads.push(std::thread::Builder::new().name("feed".into()).spawn(feed)?);
        let (control, rota) = (control.clone(), self.rota.clone());
        let drain = move || {
            let result = drain(&mut reader, &mut *framer, &seat, &control).and_then(|()| reader.close().map(drop));
            seat.leave(&rota);
            // A process that the copy has started may still hold its input open.
            token.cancel();
            let result = result.and_then(|()| match seat.wait_until_fed(&rota) {
                Fed::Read => Ok(()),
                Fed::Unread => Err(ended_early()),
            });
            seat.end(result.is_ok());
            let last = seat.lock().last.clone();
            control.left(last.as_ref(), result);
            rota.tell();
        };
        self.threads.push(std::thread::Builder::new().name("copy".into()).spawn(drain)?);
        Ok(())
    }

    /// Passes a block to the next copy that is not busy, and waits until one is available.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Cancelled`] if no more blocks are needed, or no copy reads them.
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
                    Put::Left(block) => {
                        // The copy has read all of the blocks that it got, but it should have read more.
                        if self.seats[at].takes_blame() {
                            control.left(Some(&block), Err(ended_early()));
                            control.check()?;
                        }
                        block
                    }
                };
            }
            if reading == 0 {
                let error = Error::new(ErrorKind::CommandFailed)
                    .with_found("no copy of the command that is still reading")
                    .with_expected("one for each remaining block");
                // The reason why the copies stopped is known when they have ended.
                self.unread.get_or_insert(block.locate("front of ", error));
                return Err(Error::new(ErrorKind::Cancelled));
            }
            self.rota.wait(seen);
        }
    }

    /// Marks that there are no more blocks, and waits for the copies. Returns an error if no copy remained to read a
    /// block.
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

/// Returns the error of a copy that exits with status 0 before its input has ended. The input that it did not read is
/// lost.
fn ended_early() -> Error {
    Error::new(ErrorKind::CommandFailed)
        .with_found("a copy of the command that stopped reading before the end of its input")
        .with_expected("a command that reads all of it, or no --round-robin")
}

/// Writes blocks to a copy, in pieces of this many bytes, until no more blocks follow or the copy stops reading.
///
/// # Errors
/// Returns the errors of writing, except the one that means that the copy has stopped reading.
fn feed(seat: &Seat, rota: &Rota, writer: &mut Writer, piece: usize) -> Result<Fed> {
    while let Some(block) = seat.take(rota) {
        let Content::Bytes(bytes) = &block.content else {
            return Err(Error::new(ErrorKind::Internal).with_found("a part of a file for a copy that is kept"));
        };
        for bytes in bytes.chunks(piece.min(bytes.len()).max(1)) {
            match writer.write(bytes).and_then(|()| writer.flush()) {
                Ok(()) => seat.lock().activity.given += bytes.len() as u64,
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Cancelled) => {
                    return Ok(Fed::Unread);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Fed::Read)
}

/// Waits until a copy has read all bytes in its pipe, or stops reading.
fn is_read(pipe: &PipeWriter, token: &CancelToken) -> Result<Fed> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let time = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        // Only whether the pipe is broken matters, which poll always reports.
        let mut polled = [PollFd::new(pipe, PollFlags::empty())];
        let is_broken = match poll(&mut polled, Some(&time)) {
            Ok(_) => polled[0].revents().contains(PollFlags::ERR),
            Err(Errno::INTR) => false,
            Err(error) => return Err(Error::from_io(error.into())),
        };
        match rustix::io::ioctl_fionread(pipe) {
            Ok(0) => return Ok(Fed::Read),
            Ok(_) if is_broken || token.is_cancelled() => return Ok(Fed::Unread),
            Ok(_) => pause = (2 * pause).min(LONGEST_PAUSE),
            Err(error) => return Err(Error::from_io(error.into())),
        }
    }
}

/// Writes the output of a copy.
fn drain(reader: &mut Reader, framer: &mut dyn Framer, seat: &Seat, control: &Control) -> Result<()> {
    while let Some(batch) = reader.next_batch(framer)? {
        seat.lock().activity.is_held_up = true;
        let put = control.write_piece(batch.bytes());
        let activity = &mut seat.lock().activity;
        activity.is_held_up = false;
        activity.written += batch.bytes().len() as u64;
        put?;
    }
    Ok(())
}

/// Ends the run if a copy makes no progress for `timeout` although it has bytes to process.
fn watch(seats: &[Arc<Seat>], timeout: Duration, rota: &Rota, control: &Control) {
    let mut seen: Vec<_> = seats.iter().map(|_| (None, Instant::now())).collect();
    let pause = (timeout / 8).clamp(SHORTEST_PAUSE, Duration::from_millis(200));
    while !seats.iter().all(|seat| seat.lock().activity.has_ended) {
        for (seat, (before, since)) in seats.iter().zip(&mut seen) {
            let place = seat.lock();
            let now = place.expects();
            if now.is_none() || now != *before {
                (*before, *since) = (now, Instant::now());
            } else if since.elapsed() >= timeout {
                let last = place.last.clone();
                drop(place);
                let found = format!("no progress by a copy of the command for {} s", timeout.as_secs_f64());
                let error = Error::new(ErrorKind::Stalled)
                    .with_found(found)
                    .with_expected("some bytes to be read or written within that time");
                return control.left(last.as_ref(), Err(error));
            }
        }
        rota.wait_for(pause);
    }
}

/// The result of putting a block.
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

    /// Returns the next block, or `None` if there will be none.
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
            if is_news {
                rota.tell();
            }
            // This thread's own change is no reason to check again. Any other change is a reason: a block may have been
            // put here in the meantime.
            rota.wait(seen + u64::from(is_news));
        }
    }

    fn leave(&self, rota: &Rota) {
        self.lock().is_left = true;
        rota.tell();
    }

    /// Marks that the copy gets no more blocks.
    fn finish(&self, fed: Fed, rota: &Rota) {
        let mut place = self.lock();
        place.fed = Some(fed);
        place.is_left = true;
        place.activity.pipe = None;
        drop(place);
        rota.tell();
    }

    /// Waits until the feeding thread has finished.
    fn wait_until_fed(&self, rota: &Rota) -> Fed {
        loop {
            let seen = *rota.lock();
            if let Some(fed) = self.lock().fed {
                return fed;
            }
            rota.wait(seen);
        }
    }

    /// Records that the copy has ended.
    fn end(&self, is_well: bool) {
        let mut place = self.lock();
        place.activity.has_ended = true;
        place.ended_early = is_well && !place.is_closed;
    }

    /// Returns whether the copy has ended successfully before its input did. Only the first call returns true.
    fn takes_blame(&self) -> bool {
        std::mem::take(&mut self.lock().ended_early)
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns the progress of the copy if it has something to do: it has not read all of its blocks, or its input has
    /// ended.
    fn expects(&self) -> Option<(u64, u64, u64)> {
        let Activity { pipe, given, written, is_held_up, has_ended } = &self.activity;
        let unread = pipe.as_ref().map_or(0, |pipe| rustix::io::ioctl_fionread(pipe).unwrap_or(0));
        let is_idle = unread == 0 && !self.is_closed && self.fed.is_none();
        (!is_idle && !is_held_up && !has_ended).then_some((*given, *written, unread))
    }
}

impl Rota {
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals a change.
    fn tell(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for a change since `seen`.
    fn wait(&self, seen: u64) {
        let changes = self.changed.wait_while(self.lock(), |changes| *changes == seen);
        drop(changes.unwrap_or_else(PoisonError::into_inner));
    }
    /// Waits for a change for at most this time.
    fn wait_for(&self, time: Duration) {
        let changes = self.lock();
        drop(self.changed.wait_timeout(changes, time).unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The thread that feeds a copy is about to wait when it gets a block, and must notice the block.
    #[test]
    fn every_block_that_is_put_is_taken() {
        const BLOCKS: usize = 300_000;
        let (seat, rota) = (Arc::<Seat>::default(), Arc::<Rota>::default());
        let (taking, told, (done, taken)) = (seat.clone(), rota.clone(), mpsc::channel());
        std::thread::spawn(move || done.send(std::iter::from_fn(|| taking.take(&told)).count()));
        std::thread::spawn(move || {
            let bytes = Arc::default();
            for _ in 0..BLOCKS {
                let mut block = Block {
                    index: 0,
                    offset: 0,
                    records: None,
                    of_lines: true,
                    content: Content::Bytes(Arc::clone(&bytes)),
                    len: 0,
                };
                loop {
                    let seen = *rota.lock();
                    match seat.put(block) {
                        Put::Taken => break rota.tell(),
                        Put::Busy(back) | Put::Left(back) => block = back,
                    }
                    rota.wait(seen);
                }
            }
            seat.lock().is_closed = true;
            rota.tell();
        });
        assert_eq!(taken.recv_timeout(Duration::from_secs(60)), Ok(BLOCKS));
    }
}
