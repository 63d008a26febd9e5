//! Runs reads on the caller's thread or on a filler, a thread that reads ahead.
//!
//! On the caller's thread, a pipe with a high rate is read in larger pieces by waiting briefly before the read
//! ([`Pace`]). The filler hands blocks over ([`Handover`]). `Auto` begins on the caller's thread and measures
//! ([`Window`]); every 8 MiB it evaluates the measurements.

use crate::os::BorrowedFd;
use std::fs::File;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::handover::{Handover, Taken};
use crate::error::{CommandEnd, Error, ErrorKind, Result};
use crate::os::cancel::{CancelToken, Wait, is_late, is_readable};
use crate::os::source::mapped::check_length;
use crate::os::stamp::Stamp;
use crate::source::{ByteSource, Nature, Pin};
use millstream_core::internal::Buffer;

/// The size of a block that the filler reads into.
pub(super) const BLOCK: usize = 256 << 10;

/// The number of bytes of lent memory that are revealed at a time.
const REVEAL: usize = 1 << 20;

/// Whether a thread reads ahead while the consumer works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// Decided by measurements while the stream runs. A thread is used only while both sides wait in turn, or while a
    /// decoder and the consumer both work.
    #[default]
    Auto,
    /// From the start, except for a source that must be read on the caller's thread: a callback or a followed file.
    On,
    /// Never.
    Off,
}

/// How the source is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) read_ahead: ReadAhead,
    /// The number of bytes that may be read ahead: initially, and at most.
    pub(crate) ahead: (usize, usize),
    /// Whether reads may be delayed slightly to make them larger.
    pub(crate) coalesce: bool,
    pub(crate) wait: Wait,
    /// Which properties of a mapped file must not change.
    pub(crate) pin: Pin,
}

/// Whether reading has to wait. The variants without a wait come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// Data is available, or the stream has ended.
    No,
    /// This is unknown, as for a caller's `Read`.
    Unknown,
    /// No data is available.
    Yes,
}

/// Fills the reader's buffer.
pub(crate) struct Supply {
    mode: Mode,
    plan: Plan,
    pace: Pace,
    window: Window,
    /// The time at which the buffer was last given to the consumer.
    left: Instant,
    /// The time that the consumer has waited for bytes.
    pub(crate) waited: Duration,
}

enum Mode {
    /// The source is read on the caller's thread.
    Direct(Box<dyn ByteSource>),
    /// The source is read by a filler.
    Ahead(Ahead),
    /// The buffer already has all bytes. A mapped file is checked again.
    Lent { left: usize, file: Option<(File, Stamp)> },
    /// There is no source, which is the case only while the mode changes and after `close`.
    Gone,
}

impl Supply {
    pub(crate) fn new(source: Box<dyn ByteSource>, plan: Plan) -> Supply {
        Supply::with_mode(Mode::Direct(source), plan)
    }

    pub(crate) fn lent(len: usize, file: Option<(File, Stamp)>, plan: Plan) -> Supply {
        Supply::with_mode(Mode::Lent { left: len, file }, plan)
    }

    fn with_mode(mode: Mode, plan: Plan) -> Supply {
        let now = Instant::now();
        let pace = Pace::new(now);
        let mut supply = Supply { mode, plan, pace, window: Window::new(None), left: now, waited: Duration::ZERO };
        if supply.plan.read_ahead == ReadAhead::On {
            supply.go_ahead();
        }
        supply
    }

    /// Returns what interrupts the waits for the source.
    pub(crate) fn wait(&self) -> &Wait {
        &self.plan.wait
    }

    /// Appends at least one byte to `buffer`, which may grow to `max` bytes, and returns the number of bytes. 0 means
    /// the end of the bytes.
    pub(crate) fn fill(&mut self, buffer: &mut Buffer, max: usize) -> Result<usize> {
        self.plan.wait.check()?;
        let count = match self.mode {
            Mode::Direct(_) => self.fill_direct(buffer, max),
            Mode::Ahead(_) => self.fill_ahead(buffer, max),
            Mode::Lent { .. } => self.fill_lent(buffer),
            Mode::Gone => Ok(0),
        };
        self.left = Instant::now();
        count.inspect_err(|error| self.stop_if_late(error))
    }

    fn fill_direct(&mut self, buffer: &mut Buffer, max: usize) -> Result<usize> {
        let Mode::Direct(source) = &mut self.mode else { unreachable!("called in this mode") };
        let entered = Instant::now();
        let away = entered.saturating_duration_since(self.left);
        let nature = source.nature();
        let mut pending = 0;
        if let Nature::Pipe(size) = nature {
            pending = source.pending();
            if self.plan.coalesce {
                self.pace.before_read(pending, size, away, &self.plan.wait)?;
            }
        }
        let count = buffer.fill_with(max, |space| source.read(space, &self.plan.wait))?;
        let now = Instant::now();
        let reading = now - entered;
        self.waited += reading;
        self.pace.after_read(count, now);
        if self.plan.read_ahead == ReadAhead::Auto {
            self.window.direct(nature, away, pending, reading, count, now);
            if self.window.is_over() && self.window.wants_filler(nature, now) {
                self.go_ahead();
            }
        }
        Ok(count)
    }

    fn fill_ahead(&mut self, buffer: &mut Buffer, max: usize) -> Result<usize> {
        let Mode::Ahead(ahead) = &mut self.mode else { unreachable!("called in this mode") };
        let (taken, waited) = loop {
            match ahead.handover.take() {
                // If the token has been reset since, this report is outdated.
                (Taken::Cancelled, waited) if self.plan.wait.check().is_ok() => self.waited += waited,
                news => break news,
            }
        };
        self.waited += waited;
        match taken {
            Taken::Block(mut block) => {
                let count = block.end - block.start;
                let appended = buffer.append_block(&mut block.bytes, block.start..block.end, max);
                ahead.handover.give_back(block.bytes);
                appended?;
                if self.plan.read_ahead == ReadAhead::Auto && !ahead.retiring {
                    self.window.ahead(waited, count);
                    if self.window.is_over() && self.window.wants_caller(ahead.handover.filler_waited(), Instant::now())
                    {
                        ahead.retire();
                    }
                }
                Ok(count)
            }
            Taken::Cancelled => Err(Error::new(ErrorKind::Cancelled)),
            Taken::End(error) => {
                let retiring = ahead.retiring;
                let source = ahead.join();
                self.mode = Mode::Gone;
                self.mode = Mode::Direct(source?);
                match error {
                    Some(error) => Err(error),
                    None if retiring => self.fill_direct(buffer, max),
                    None => {
                        // The filler may have ended because of an interruption.
                        self.plan.wait.check()?;
                        Ok(0)
                    }
                }
            }
        }
    }

    fn fill_lent(&mut self, buffer: &mut Buffer) -> Result<usize> {
        self.plan.wait.check_deadline()?;
        let Mode::Lent { left, file } = &mut self.mode else { unreachable!("called in this mode") };
        let count = (*left).min(REVEAL);
        if let Some((file, stamp)) = file {
            check_length(file, stamp.size)?;
        }
        *left -= count;
        buffer.reveal(count);
        Ok(count)
    }

    /// Returns whether the next fill has to wait for the source.
    pub(crate) fn waits(&self) -> Waits {
        match &self.mode {
            Mode::Direct(source) => match (source.nature(), source.ready_fd()) {
                (Nature::File, _) => Waits::No,
                (_, Some(fd)) if is_readable(fd) => Waits::No,
                (_, Some(_)) => Waits::Yes,
                (_, None) => Waits::Unknown,
            },
            Mode::Ahead(ahead) if ahead.handover.has_news() => Waits::No,
            Mode::Ahead(_) => Waits::Yes,
            Mode::Lent { .. } | Mode::Gone => Waits::No,
        }
    }

    /// Returns the descriptor for which an event loop has to wait before the next fill, if there is one.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match &self.mode {
            Mode::Direct(source) => source.waits_for(),
            Mode::Ahead(_) | Mode::Lent { .. } | Mode::Gone => None,
        }
    }

    /// Returns whether the source is a socket or device that is read on the caller's thread.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_device(&self) -> bool {
        matches!(&self.mode, Mode::Direct(source) if source.nature() == Nature::Device)
    }

    /// Returns a token that interrupts all waits from now on, for good. No thread is started from now on.
    pub(crate) fn interrupter(&mut self) -> Result<CancelToken> {
        let token = match &self.mode {
            Mode::Ahead(ahead) => ahead.stop.clone(),
            _ => CancelToken::new()?,
        };
        self.plan.wait = self.plan.wait.and(&token);
        self.plan.read_ahead = ReadAhead::Off;
        Ok(token)
    }

    /// Returns how long a wait that begins now may take, if that is limited.
    pub(crate) fn wait_limit(&self) -> Option<Duration> {
        self.plan.wait.limit()
    }

    /// Returns the error of a wait that exceeded its limit, if there is a limit.
    pub(crate) fn too_late(&self) -> Option<Error> {
        self.wait_limit().map(|_| self.plan.wait.too_late())
    }

    /// Signals the source's commands if this error, which ends the stream, is that of a time limit.
    pub(crate) fn stop_if_late(&mut self, error: &Error) {
        if let Mode::Direct(source) = &mut self.mode
            && is_late(error)
        {
            source.stop();
        }
    }

    /// Reports, after the end of the bytes, whether the source succeeded. Adds how its commands ended to `ends`.
    pub(crate) fn finish(&mut self, ends: &mut Vec<CommandEnd>) -> Result<()> {
        let finished = match &mut self.mode {
            Mode::Direct(source) => source.finish(&self.plan.wait, ends),
            Mode::Ahead(_) => unreachable!("a filler's end makes the mode direct"),
            Mode::Lent { file: Some((file, stamp)), .. } => stamp.check(file, stamp.size, self.plan.pin),
            Mode::Lent { file: None, .. } | Mode::Gone => Ok(()),
        };
        finished.inspect_err(|error| self.stop_if_late(error))
    }

    /// Stops before the end of the bytes. Adds how the source's commands ended to `ends`.
    pub(crate) fn close(&mut self, ends: &mut Vec<CommandEnd>) {
        match std::mem::replace(&mut self.mode, Mode::Gone) {
            Mode::Direct(source) => source.close(ends),
            Mode::Ahead(mut ahead) => {
                ahead.stop();
                // If the source is not interruptible, its thread may be blocked in a caller's `read`, and ends when
                // that call returns.
                if ahead.interruptible
                    && let Ok(source) = ahead.join()
                {
                    source.close(ends);
                }
            }
            Mode::Lent { .. } | Mode::Gone => {}
        }
    }

    /// Stops like [`close`](Supply::close), without waiting for the source's commands.
    pub(crate) fn abandon(&mut self) {
        match std::mem::replace(&mut self.mode, Mode::Gone) {
            Mode::Direct(source) => source.abandon(),
            Mode::Ahead(mut ahead) => {
                ahead.stop();
                if ahead.interruptible
                    && let Ok(source) = ahead.join()
                {
                    source.abandon();
                }
            }
            Mode::Lent { .. } | Mode::Gone => {}
        }
    }

    /// Starts a filler. If that is impossible, the caller continues reading.
    fn go_ahead(&mut self) {
        if let Mode::Direct(source) = &self.mode
            && source.nature() != Nature::CallerOnly
            && let Ok((ahead, sender)) = Ahead::start(&self.plan, source.is_interruptible())
            && let Mode::Direct(source) = std::mem::replace(&mut self.mode, Mode::Ahead(ahead))
        {
            sender.send(source).expect("a filler waits for its source");
        }
    }
}

impl Drop for Supply {
    fn drop(&mut self) {
        self.close(&mut Vec::new());
    }
}

/// A running filler.
struct Ahead {
    handover: Arc<Handover>,
    stop: CancelToken,
    thread: Option<JoinHandle<Option<Box<dyn ByteSource>>>>,
    /// Whether `stop` can interrupt a blocked read.
    interruptible: bool,
    /// Whether the filler has been asked to stop, after which the caller continues with the source.
    retiring: bool,
}

impl Ahead {
    /// Starts the thread, which then waits to receive its source: if no thread can be started, the caller still has the
    /// source.
    fn start(plan: &Plan, interruptible: bool) -> Result<(Ahead, mpsc::Sender<Box<dyn ByteSource>>)> {
        let handover = Arc::new(Handover::new(BLOCK, plan.ahead.0, plan.ahead.1));
        let stop = CancelToken::new()?;
        let filler = Filler {
            handover: handover.clone(),
            wait: plan.wait.and(&stop),
            stop: stop.clone(),
            coalesce: plan.coalesce,
        };
        let (sender, source) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("millstream-filler".into())
            .spawn(move || source.recv().ok().map(|source| filler.run(source)))?;
        Ok((Ahead { handover, stop, thread: Some(thread), interruptible, retiring: false }, sender))
    }

    /// Asks the filler to stop. Blocks that it has read can still be taken.
    fn stop(&mut self) {
        self.handover.stop();
        self.stop.cancel();
    }

    fn retire(&mut self) {
        self.stop();
        self.retiring = true;
    }

    /// Waits for the filler's end and takes the source back.
    fn join(&mut self) -> Result<Box<dyn ByteSource>> {
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(Some(source))) => Ok(source),
            _ => Err(Error::new(ErrorKind::Internal).with_found("a filler thread that panicked")),
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop();
        if self.interruptible
            && let Some(thread) = self.thread.take()
        {
            // The source that it returns is dropped here, so that its commands have ended when the reader is gone.
            let _ = thread.join();
        }
    }
}

/// The thread's side of [`Ahead`].
struct Filler {
    handover: Arc<Handover>,
    /// The reader's wait, with `stop` added.
    wait: Wait,
    stop: CancelToken,
    coalesce: bool,
}

impl Filler {
    fn run(self, mut source: Box<dyn ByteSource>) -> Box<dyn ByteSource> {
        // Even if this thread panics, the reader must not wait for it indefinitely.
        let _end = EndOnDrop(&self.handover);
        let mut pace = Pace::new(Instant::now());
        let error = loop {
            match self.read(&mut *source, &mut pace) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) if error.kind() == ErrorKind::Cancelled => {
                    if self.stop.is_cancelled() || !self.handover.cancelled() {
                        break None;
                    }
                }
                Err(error) => {
                    // The reader may need time for the blocks before it takes this error.
                    if is_late(&error) {
                        source.stop();
                    }
                    break Some(error);
                }
            }
        };
        self.handover.end(error);
        source
    }

    /// Reads once and hands the block over. Returns whether there may be more bytes.
    fn read(&self, source: &mut dyn ByteSource, pace: &mut Pace) -> Result<bool> {
        if self.coalesce
            && let Nature::Pipe(size) = source.nature()
        {
            pace.before_read(source.pending(), size, Duration::ZERO, &self.wait)?;
        }
        let polled = source.ready_fd().map(|fd| self.wait.readable(fd)).transpose()?.is_some();
        let reads_never_wait = polled || source.nature() == Nature::File;
        let Some(mut block) = self.handover.block(reads_never_wait) else { return Ok(false) };
        let count = match polled {
            true => source.read(&mut block.bytes[block.end..], &self.wait.once_ready()),
            false => source.read(&mut block.bytes[block.end..], &self.wait),
        };
        block.end += *count.as_ref().unwrap_or(&0);
        // This also happens after an error: the block's existing content was read before.
        self.handover.hand_over(block, reads_never_wait);
        pace.after_read(*count.as_ref().unwrap_or(&0), Instant::now());
        Ok(count? > 0)
    }
}

struct EndOnDrop<'a>(&'a Handover);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

/// Makes the reads of a fast pipe larger by delaying them slightly.
///
/// A wake-up across cores costs more than 20 µs. A producer that writes 16 KiB at a time at 200 MB/s causes 12,000
/// wake-ups per second; with a wait of 300 µs before each read there are 3,000. Reads are delayed only at a high rate,
/// so that no record is delayed without a benefit, and never after a read that found the producer idle.
struct Pace {
    /// The rate in bytes per second, over the last period.
    rate: f64,
    period: Instant,
    bytes: usize,
    last_end: Instant,
    last_count: usize,
}

impl Pace {
    /// The lowest rate at which the wait saves time.
    const RATE: f64 = 64e6;
    /// Reads of this size are large enough.
    const ENOUGH: usize = 128 << 10;
    const NAP: Duration = Duration::from_micros(300);
    const PERIOD: Duration = Duration::from_millis(1);
    /// If a read took longer than this, the producer was idle.
    const IDLE: Duration = Duration::from_millis(2);

    fn new(now: Instant) -> Pace {
        Pace { rate: 0.0, period: now, bytes: 0, last_end: now, last_count: 0 }
    }

    /// Waits before a read if that makes it larger. `away` is the time that the consumer has been working since the
    /// last read; bytes arrived during that time too.
    fn before_read(&mut self, pending: usize, pipe: usize, away: Duration, wait: &Wait) -> Result<()> {
        let small = self.last_count < Pace::ENOUGH && pending < Pace::ENOUGH;
        // The pipe must not become full during the wait, because then both sides would be idle.
        let arriving = self.rate * Pace::NAP.as_secs_f64();
        let has_space = pending as f64 + arriving <= pipe as f64 / 4.0;
        if small && has_space && self.rate >= Pace::RATE && away < Pace::NAP {
            wait.sleep(Pace::NAP - away)?;
        }
        Ok(())
    }

    fn after_read(&mut self, count: usize, now: Instant) {
        self.last_count = count;
        self.bytes += count;
        let period = now.saturating_duration_since(self.period);
        if now.saturating_duration_since(self.last_end) > Pace::IDLE {
            (self.rate, self.period, self.bytes) = (0.0, now, 0);
        } else if period >= Pace::PERIOD {
            (self.rate, self.period, self.bytes) = (self.bytes as f64 / period.as_secs_f64(), now, 0);
        }
        self.last_end = now;
    }
}

/// The measurements of `Auto` for the last megabytes.
struct Window {
    /// The end of the previous read. `None` before the first read, so that the start of a command does not count.
    start: Option<Instant>,
    bytes: usize,
    /// The time spent in reads that had to wait or to decode.
    reading: Duration,
    /// The time for which the producer could not continue because its pipe was full.
    producer_held: Duration,
    /// The number of windows to skip before the next change, because each change has a cost.
    patience: u32,
    next_patience: u32,
}

impl Window {
    const BYTES: usize = 8 << 20;
    /// A side that waits for less than this fraction of the time is ignored.
    const MATTERS: f64 = 0.10;

    fn new(start: Option<Instant>) -> Window {
        Window {
            start,
            bytes: 0,
            reading: Duration::ZERO,
            producer_held: Duration::ZERO,
            patience: 0,
            next_patience: 1,
        }
    }

    /// Records a read on the caller's thread, which returned at `now`.
    fn direct(
        &mut self,
        nature: Nature,
        away: Duration,
        pending: usize,
        reading: Duration,
        count: usize,
        now: Instant,
    ) {
        if self.start.is_none() {
            self.start = Some(now);
            return;
        }
        self.bytes += count;
        match nature {
            Nature::Pipe(size) => {
                if pending == 0 {
                    self.reading += reading;
                } else if size > 0 && pending >= size / 4 * 3 {
                    self.producer_held += away;
                }
            }
            // The fill level of the producer's buffer is not visible: it may have been full while the consumer worked.
            _ => {
                self.reading += reading;
                self.producer_held += away;
            }
        }
    }

    fn ahead(&mut self, waited: Duration, count: usize) {
        self.bytes += count;
        self.reading += waited;
    }

    fn is_over(&self) -> bool {
        self.bytes >= Window::BYTES
    }

    fn since(&self, now: Instant) -> f64 {
        self.start.map_or(0.0, |start| now.saturating_duration_since(start).as_secs_f64())
    }

    /// Returns whether both sides wait in turn, so that a filler would let them work at the same time.
    fn wants_filler(&mut self, nature: Nature, now: Instant) -> bool {
        let total = self.since(now);
        let both = self.reading.as_secs_f64() > Window::MATTERS * total
            && self.producer_held.as_secs_f64() > Window::MATTERS * total;
        self.change_if(both && nature != Nature::File && has_two_cores(), now)
    }

    /// Returns whether one side alone determines the speed, so that a filler has no benefit.
    fn wants_caller(&mut self, filler_waited: Duration, now: Instant) -> bool {
        let total = self.since(now);
        let (reader, filler) = (self.reading.as_secs_f64() / total, filler_waited.as_secs_f64() / total);
        self.change_if((reader > 0.8 && filler < 0.01) || (filler > 0.8 && reader < 0.01), now)
    }

    fn change_if(&mut self, wanted: bool, now: Instant) -> bool {
        let change = wanted && self.patience == 0;
        if change {
            self.patience = self.next_patience;
            self.next_patience = (self.next_patience * 2).min(1024);
        } else {
            self.patience = self.patience.saturating_sub(1);
        }
        let fresh = Window::new(Some(now));
        *self = Window { patience: self.patience, next_patience: self.next_patience, ..fresh };
        change
    }
}

fn has_two_cores() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}
