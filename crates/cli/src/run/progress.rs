//! The progress line: the amount moved, the rate and, if known, the remaining amount.
//!
//! On a terminal indicatif draws it from a separate thread, ten times a second. Otherwise (`--progress=always` in a
//! log) one line of text is printed per second.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::message::printable;
use crate::standard;

use super::options::{Options, Show};
use super::sink::Sink;
use super::stats::per_second;

/// The line, from the first drawing to the last.
pub(crate) struct Progress {
    /// The bar. Its position is the position in the sources, before decoding, from which the percentage and the
    /// remaining time are computed.
    bar: ProgressBar,
    figures: Arc<Figures>,
    /// Used if there is no terminal.
    log: Option<Log>,
    /// Draws the line while no data moves. If the operating system cannot start a thread, the line is drawn only when
    /// data moves.
    ticker: Option<Ticker>,
}

/// Draws the line ten times a second, until it is dropped. indicatif's own ticker panics if it cannot start a thread.
struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(bar: ProgressBar) -> Option<Ticker> {
        let (stop, stopped) = mpsc::channel::<()>();
        let tick = move || {
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
        };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(tick).ok()?;
        Some(Ticker { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The data for the drawing thread.
#[derive(Default)]
struct Figures {
    bytes: AtomicU64,
    records: AtomicU64,
}

/// Returns whether these options request a progress line.
pub(super) fn is_shown(options: &Options) -> bool {
    options.progress.is_wanted(options.sinks().any(|(sink, _)| *sink == Sink::Stdout))
}

impl Show {
    /// Returns whether a command shows progress, depending on whether it prints records on standard output.
    pub(crate) fn is_wanted(self, prints_records: bool) -> bool {
        match self {
            Show::Always => true,
            Show::Never => false,
            Show::Auto => io::stderr().is_terminal() && !(prints_records && io::stdout().is_terminal()),
        }
    }
}

impl Progress {
    /// Starts the line. `size` is the total size of all sources, if it is known.
    pub(crate) fn start(size: Option<u64>) -> Progress {
        let figures = Arc::new(Figures::default());
        let log = (!io::stderr().is_terminal()).then(Log::default);
        let target = match &log {
            Some(log) => ProgressDrawTarget::term_like(Box::new(log.clone())),
            None => ProgressDrawTarget::term_like_with_hz(Box::new(Screen::default()), 10),
        };
        let bar = ProgressBar::with_draw_target(size, target).with_style(style(&figures, size.is_some()));
        let ticker = Ticker::start(bar.clone());
        Progress { bar, figures, log, ticker }
    }

    /// Shows the name of the current source.
    pub(crate) fn source(&self, name: &str) {
        self.bar.set_message(printable(name));
    }

    /// Shows the amount moved so far.
    pub(crate) fn update(&self, bytes: u64, records: u64, source_bytes: u64) {
        self.figures.bytes.store(bytes, Ordering::Relaxed);
        self.figures.records.store(records, Ordering::Relaxed);
        self.bar.set_position(source_bytes);
    }

    /// Draws the final figures, which stay on the screen.
    pub(crate) fn finish(mut self) {
        self.ticker = None;
        self.bar.abandon();
        if let Some(log) = &self.log {
            log.finish();
        }
    }
}

fn style(figures: &Arc<Figures>, size_is_known: bool) -> ProgressStyle {
    let template = match size_is_known {
        true => "{spinner} {moved} in {elapsed}, {percent}%, ETA {eta}  {wide_msg}",
        false => "{spinner} {moved} in {elapsed}  {wide_msg}",
    };
    let figures = figures.clone();
    ProgressStyle::with_template(template).expect("the template is valid").with_key(
        "moved",
        move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = figures.write(state.elapsed(), out); // only indicatif's memory
        },
    )
}

impl Figures {
    fn write(&self, elapsed: Duration, out: &mut dyn fmt::Write) -> fmt::Result {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let records = self.records.load(Ordering::Relaxed);
        let rate = |count| per_second(count, elapsed) as u64;
        write!(out, "{} ({}/s)", HumanBytes(bytes), HumanBytes(rate(bytes)))?;
        // Parts of a file are passed to copies without counting their records.
        if records == 0 && bytes > 0 {
            return Ok(());
        }
        let noun = if records == 1 { "record" } else { "records" };
        write!(out, ", {} {noun} ({}/s)", HumanCount(records), HumanCount(rate(records)))
    }
}

/// A progress line for a file or pipe: text without control sequences, at most one line per second.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<LogState>>);

#[derive(Debug, Default)]
struct LogState {
    /// The last drawn line.
    line: String,
    /// The time at which a line was last written.
    written: Option<Instant>,
}

impl LogState {
    fn line(&mut self) -> String {
        self.written = Some(Instant::now());
        format!("{}\n", self.line.trim_end())
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the final figures.
    fn finish(&self) {
        let _ = standard::write_error(self.state().line().as_bytes());
    }
}

/// This interface of indicatif clears the line, writes the new one in pieces, and flushes.
impl TermLike for Log {
    fn width(&self) -> u16 {
        160
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.state().line.push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.state().line.clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.written.is_none_or(|written| written.elapsed() >= Duration::from_secs(1)) {
            // If a pipe is full, the line is dropped, because the drawing thread holds a lock that counting threads
            // need.
            standard::try_write_error(state.line().as_bytes());
        }
        Ok(())
    }
}

/// A progress line on a terminal. If the terminal currently accepts no output, because it was stopped or its other side
/// is busy, the update is skipped: the drawing thread holds a lock that counting threads need, so it must not wait.
#[derive(Debug, Default)]
struct Screen(Mutex<String>);

impl Screen {
    fn put(&self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let _ = fmt::Write::write_fmt(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), text); // memory
        Ok(())
    }

    /// Moves the cursor. 0 means no movement, although a terminal would treat it as 1.
    fn go(&self, steps: usize, direction: char) -> io::Result<()> {
        if steps == 0 { Ok(()) } else { self.put(format_args!("\x1b[{steps}{direction}")) }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        match rustix::termios::tcgetwinsize(rustix::stdio::stderr()) {
            Ok(size) if size.ws_col > 0 => size.ws_col,
            _ => 80,
        }
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.go(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.go(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.go(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.go(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(format_args!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(format_args!("{text}"))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put(format_args!("\r\x1b[2K"))
    }

    fn flush(&self) -> io::Result<()> {
        let text = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        standard::try_write_error(text.as_bytes());
        Ok(())
    }
}
