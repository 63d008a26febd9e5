//! Converts JavaScript's arguments for a command to the core's.

use std::collections::HashMap;
use std::fs::File;

use millstream::options::COMMAND;
use millstream::{Command, Error, ErrorKind, Stderr, Stdin, Stdout};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::descriptor::duplicate;
use crate::options::{Options, with_options};

/// The command and how to start it. TypeScript checks this; an unknown word means the default.
#[napi(object, object_to_js = false)]
pub struct CommandWords {
    /// The program, then its arguments; for a shell line, only the line.
    pub argv: Vec<String>,
    /// Whether it is a shell line.
    pub shell: bool,
    /// The working directory.
    pub current_dir: Option<String>,
    /// The whole environment, if it is not the environment of this process.
    pub env: Option<HashMap<String, String>>,
    /// `"null"` or `"inherit"`, for a command that is read.
    pub stdin: String,
    /// A descriptor that replaces `stdin` and that the caller owns.
    pub stdin_fd: Option<i32>,
    /// The path of a file that replaces `stdin`.
    pub stdin_path: Option<String>,
    /// Bytes that replace `stdin`.
    pub stdin_bytes: Option<Uint8Array>,
    /// `"inherit"` or `"null"`, for a command that is written to.
    pub stdout: String,
    /// A descriptor that replaces `stdout` and that the caller owns.
    pub stdout_fd: Option<i32>,
    /// `"forward"`, `"capture"`, `"inherit"` or `"null"`.
    pub stderr: String,
    /// Whether a non-zero status is accepted.
    pub allow_failure: bool,
    /// The library's options.
    pub settings: Options,
}

impl TryFrom<CommandWords> for Command {
    type Error = Error;

    fn try_from(words: CommandWords) -> Result<Command, Error> {
        let stdin = match (words.stdin_fd, words.stdin_path, words.stdin_bytes) {
            (Some(fd), ..) => Stdin::Fd(duplicate(fd)?),
            (_, Some(path), _) => Stdin::from(File::open(&path).map_err(|error| {
                Error::new(ErrorKind::OpenFailed).with_found(format!("its standard input {path}")).with_io(error)
            })?),
            (_, _, Some(bytes)) => Stdin::from(bytes.to_vec()),
            _ if words.stdin == "inherit" => Stdin::Inherit,
            _ => Stdin::Null,
        };
        let stdout = match words.stdout_fd {
            Some(fd) => Stdout::Fd(duplicate(fd)?),
            None if words.stdout == "null" => Stdout::Null,
            None => Stdout::Inherit,
        };
        let started = if words.shell { Command::shell(words.argv.concat())? } else { Command::new(words.argv) };
        let mut command = started.stdin(stdin).stdout(stdout).stderr(match words.stderr.as_str() {
            "capture" => Stderr::Capture,
            "inherit" => Stderr::Inherit,
            "null" => Stderr::Null,
            _ => Stderr::Forward,
        });
        if let Some(directory) = words.current_dir {
            command = command.current_dir(directory);
        }
        if let Some(env) = words.env {
            command = command.env_clear();
            for (key, value) in env {
                command = command.env(key, value);
            }
        }
        let command = if words.allow_failure { command.allow_failure() } else { command };
        Ok(with_options(COMMAND, command, words.settings))
    }
}
