//! How the command ended, and how that becomes the end of the process.

use std::process::{ExitCode, Termination};

/// How the command ended. As the result of `main` it becomes the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an exit status: 0 complete, 1 a source or a sink failed, 2 the command line is invalid.
    Exited(u8),
    /// It stopped because of this signal, has cleaned up, and is to end by it.
    Signaled(i32),
}

impl Ending {
    /// Everything was done.
    pub(crate) const COMPLETE: Ending = Ending::Exited(0);
    /// A source or a sink failed or could not be opened.
    pub(crate) const FAILED: Ending = Ending::Exited(1);
    /// The command line is invalid.
    pub(crate) const USAGE: Ending = Ending::Exited(2);
    /// The reader of the output has gone.
    pub(crate) const BROKEN_PIPE: Ending = Ending::Signaled(signal_hook::consts::SIGPIPE);
}

impl Termination for Ending {
    /// Ends the process by the signal, so that the caller (a shell in a loop, `timeout`, `make`) sees what happened. If
    /// that fails, the exit status is the shell's number for it.
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
