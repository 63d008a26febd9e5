//! The command-line tool, in a process of Python: `python -m millstream`.

use std::ffi::OsString;
use std::process::Termination;

use millstream_cli::Ending;
use pyo3::prelude::*;

/// Does what the command line says, and tells the exit status. Where a signal has ended it, that signal ends the process, as
/// it does the `millstream` command.
#[pyfunction]
pub fn command_line(py: Python<'_>, argv: Vec<OsString>) -> i32 {
    match py.detach(|| millstream_cli::main(argv)) {
        Ending::Exited(status) => status.into(),
        ended @ Ending::Signaled(signal) => {
            ended.report();
            128 + signal // it is blocked: a shell's number for it
        }
    }
}
