//! The command-line tool, in a process of Python: `python -m millstream`.

use std::ffi::OsString;
use std::process::Termination;

use millstream_cli::{Closed, Ending};
use pyo3::prelude::*;

/// Runs the command line, and returns the exit status. If it was ended by a signal, the process ends by the
/// same signal, as the `millstream` command does.
///
/// `closed` tells which of standard input, output and error were closed when the process began. Only Python knows: by
/// now other files may have their numbers.
#[pyfunction]
pub fn command_line(py: Python<'_>, argv: Vec<OsString>, closed: (bool, bool, bool)) -> i32 {
    let (stdin, stdout, stderr) = closed;
    match py.detach(|| millstream_cli::main_with(argv, Closed { stdin, stdout, stderr })) {
        Ending::Exited(status) => status.into(),
        ended @ Ending::Signaled(signal) => {
            ended.report();
            128 + signal // it is blocked: a shell's number for it
        }
    }
}
