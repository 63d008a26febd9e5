//! Converts Python's arguments for a command to the core's.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use millstream::options::COMMAND;
use millstream::{Command, Stderr, Stdin};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyMapping};

use crate::error;
use crate::foreign;
use crate::number::Whole;
use crate::options::{Settings, take};

/// Makes a command from `argv`, or from a shell line, and from its options, which are removed from the others.
pub fn command(py: Python<'_>, words: Words, options: &Bound<'_, PyDict>) -> PyResult<Command> {
    let mut command = match words {
        Words::Shell(line) => Command::shell(line).map_err(|error| error::raise(py, &error))?,
        Words::Argv(argv) => Command::new(argv),
    };
    if let Some(dir) = take::<std::path::PathBuf>(options, "current_dir")? {
        command = command.current_dir(dir);
    }
    if let Some(env) = take::<Py<PyAny>>(options, "env")? {
        // Any mapping, such as `os.environ`.
        let variables = PyDict::new(py);
        variables.update(env.bind(py).cast::<PyMapping>()?)?;
        command = command.env_clear();
        for (key, value) in variables {
            command = command.env(key.extract::<OsString>()?, value.extract::<OsString>()?);
        }
    }
    if let Some(stdin) = take::<Input>(options, "stdin")? {
        command = command.stdin(match stdin {
            Input::Bytes(bytes) => Stdin::from(bytes.to_vec()),
            Input::Word(word) => match word.as_str() {
                "null" => Stdin::Null,
                "inherit" => Stdin::Inherit,
                other => {
                    return Err(error::refuse(
                        py,
                        format!("stdin={other:?}"),
                        "\"null\", \"inherit\", bytes, a file, or an iterable such as [text]",
                    ));
                }
            },
            Input::Fd(Whole(fd)) => Stdin::Fd(duplicate(py, fd)?),
            Input::Pieces(pieces) => Stdin::read(foreign::input(pieces)),
        });
    }
    if let Some(stderr) = take::<String>(options, "stderr")? {
        command = command.stderr(match stderr.as_str() {
            "forward" => Stderr::Forward,
            "capture" => Stderr::Capture,
            "inherit" => Stderr::Inherit,
            "null" => Stderr::Null,
            other => {
                let expected = "\"forward\", \"capture\", \"inherit\" or \"null\"";
                return Err(error::refuse(py, format!("stderr={other:?}"), expected));
            }
        });
    }
    if take::<bool>(options, "allow_failure")?.unwrap_or(false) {
        command = command.allow_failure();
    }
    Ok(Settings::take(py, options, COMMAND)?.apply(command))
}

/// The command to start.
pub enum Words {
    Argv(Vec<OsString>),
    Shell(OsString),
}

#[derive(FromPyObject)]
enum Input {
    Word(String),
    Bytes(foreign::Bytes),
    Fd(Whole<RawFd>),
    Pieces(Py<PyIterator>),
}

/// Duplicates a descriptor; the caller owns the result.
pub fn duplicate(py: Python<'_>, fd: RawFd) -> PyResult<OwnedFd> {
    let _ = py;
    if fd < 0 {
        return Err(pyo3::exceptions::PyValueError::new_err(format!("a file descriptor is not negative: {fd}")));
    }
    // SAFETY: the descriptor is borrowed for this call only. If it is not open, `dup` fails.
    #[allow(unsafe_code)]
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(borrowed.try_clone_to_owned()?)
}
