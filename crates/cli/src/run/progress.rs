//! The progress line: how much has gone by, how fast, and how much is left where that is known.
//!
//! On a terminal indicatif draws it from a thread of its own, ten times a second. Elsewhere (`--progress=always`
//! in a log) it becomes a line of text a second.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::message::printable;

use super::options::{Options, Show};
use super::sink::Sink;
use super::stats::per_second;

/// The line, from when it is first drawn to when it is left behind.
pub(crate) struct Progress {
    /// Its position is that in the sources, before decoding: what percentage and remaining time come from.
    bar: ProgressBar,
    figures: Arc<Figures>,
    /// Where there is no terminal.
    log: Option<Log>,
}

/// What the thread that draws has to know.
#[derive(Default)]
struct Figures {
    bytes: AtomicU64,
    records: AtomicU64,
}

/// Whether these options want a progress line.
pub(super) fn is_shown(options: &Options) -> bool {
    options.progress.is_wanted(options.sinks().any(|(sink, _)| *sink == Sink::Stdout))
}

impl Show {
    /// Whether progress is to be shown by one who prints records on standard output, or does not.
    pub(crate) fn is_wanted(self, prints_records: bool) -> bool {
        match self {
            Show::Always => true,
            Show::Never => false,
            Show::Auto => io::stderr().is_terminal() && !(prints_records && io::stdout().is_terminal()),
        }
    }
}

impl Progress {
    /// Begins. `size` is that of all sources together, if it is known.
    pub(crate) fn start(size: Option<u64>) -> Progress {
        let figures = Arc::new(Figures::default());
        let log = (!io::stderr().is_terminal()).then(Log::default);
        let target = match &log {
            Some(log) => ProgressDrawTarget::term_like(Box::new(log.clone())),
            None => ProgressDrawTarget::stderr_with_hz(10),
        };
        let bar = ProgressBar::with_draw_target(size, target).with_style(style(&figures, size.is_some()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress { bar, figures, log }
    }

    /// Shows which source is being read.
    pub(crate) fn source(&self, name: &str) {
        self.bar.set_message(printable(name));
    }

    /// Shows what went by so far.
    pub(crate) fn update(&self, bytes: u64, records: u64, source_bytes: u64) {
        self.figures.bytes.store(bytes, Ordering::Relaxed);
        self.figures.records.store(records, Ordering::Relaxed);
        self.bar.set_position(source_bytes);
    }

    /// Leaves the last figures on the screen.
    pub(crate) fn finish(self) {
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
    ProgressStyle::with_template(template).expect("the template is right").with_key(
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
        write!(out, "{} ({}/s), ", HumanBytes(bytes), HumanBytes(rate(bytes)))?;
        let noun = if records == 1 { "record" } else { "records" };
        write!(out, "{} {noun} ({}/s)", HumanCount(records), HumanCount(rate(records)))
    }
}

/// A progress line for a file or pipe: text without control sequences, at most a line a second.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<LogState>>);

#[derive(Debug, Default)]
struct LogState {
    /// The line as drawn last.
    line: String,
    /// When a line was written last.
    written: Option<Instant>,
}

impl LogState {
    fn write(&mut self) {
        self.written = Some(Instant::now());
        let _ = writeln!(io::stderr(), "{}", self.line.trim_end());
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the last figures.
    fn finish(&self) {
        self.state().write();
    }
}

/// indicatif clears the line, writes the new one in pieces, and flushes.
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
            state.write();
        }
        Ok(())
    }
}
