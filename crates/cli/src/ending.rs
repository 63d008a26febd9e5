//! The outcome of the command, which determines how the process ends.

use std::process::{ExitCode, Termination};

/// The outcome of the command. If `main` returns it, it ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process exits with a status: 0 for success, 1 if a source or a sink failed, 2 if the command line is
    /// invalid, 3 if it is unknown whether an object was written.
    Exited(u8),
    /// The command stopped because of this signal and has cleaned up, and the process ends by this signal.
    Signaled(i32),
}

impl Ending {
    /// The command succeeded.
    pub(crate) const COMPLETE: Ending = Ending::Exited(0);
    /// A source or a sink failed or could not be opened.
    pub(crate) const FAILED: Ending = Ending::Exited(1);
    /// The command line is invalid.
    pub(crate) const USAGE: Ending = Ending::Exited(2);
    /// An object may or may not have been written.
    pub(crate) const UNKNOWN: Ending = Ending::Exited(3);
    /// The output no longer has a reader.
    pub(crate) const BROKEN_PIPE: Ending = Ending::Signaled(signal_hook::consts::SIGPIPE);
}

impl Termination for Ending {
    /// Ends the process by the signal, so that the caller (a shell in a loop, `timeout`, `make`) can detect it. If that
    /// fails, the exit status is the shell's number for the signal.
    fn report(self) -> ExitCode {
        match self {
            Ending::Exited(status) => ExitCode::from(status),
            Ending::Signaled(signal) => {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
        }
    }
}
