//! The command-line tool in a Python process: `python -m millstream`.

use std::ffi::OsString;
use std::process::Termination;

use millstream_cli::{Closed, Ending};
use pyo3::prelude::*;

/// Runs the command line and returns the exit status. If a signal ended it, the process is killed by the same signal,
/// as the `millstream` command is.
///
/// `closed` lists which of standard input, output and error were closed when the process started. Only Python knows
/// this, because other files may have their numbers by now.
#[pyfunction]
pub fn command_line(py: Python<'_>, argv: Vec<OsString>, closed: (bool, bool, bool)) -> i32 {
    let (stdin, stdout, stderr) = closed;
    match py.detach(|| millstream_cli::main_with(argv, Closed { stdin, stdout, stderr })) {
        Ending::Exited(status) => status.into(),
        ended @ Ending::Signaled(signal) => {
            ended.report();
            128 + signal // the signal is blocked: use the status that a shell would report
        }
    }
}
