//! The words of a command: how JavaScript says them, as the core crate's.

use std::collections::HashMap;

use millstream::{Command, Stderr, Stdin};
use napi_derive::napi;

/// What to start, and how. Checked in TypeScript: an unknown word has its default.
#[napi(object, object_to_js = false)]
pub struct CommandWords {
    /// The program, then its arguments.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: Option<String>,
    /// Its whole environment, if it is not ours.
    pub env: Option<HashMap<String, String>>,
    /// `"ignore"` or `"inherit"`.
    pub stdin: String,
    /// `"forward"`, `"capture"`, `"inherit"` or `"ignore"`.
    pub stderr: String,
    /// `"error"` or `"allow"`.
    pub failure: String,
}

impl From<CommandWords> for Command {
    fn from(words: CommandWords) -> Command {
        let mut command = Command::new(words.argv)
            .stdin(if words.stdin == "inherit" { Stdin::Inherit } else { Stdin::Null })
            .stderr(match words.stderr.as_str() {
                "capture" => Stderr::Capture,
                "inherit" => Stderr::Inherit,
                "ignore" => Stderr::Null,
                _ => Stderr::Forward,
            });
        if let Some(cwd) = words.cwd {
            command = command.current_dir(cwd);
        }
        if let Some(env) = words.env {
            command = command.env_clear();
            for (key, value) in env {
                command = command.env(key, value);
            }
        }
        if words.failure == "allow" { command.allow_failure() } else { command }
    }
}
