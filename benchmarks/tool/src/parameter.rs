//! What a definition varies: a parameter, whose name is in braces in commands, and its values.

use serde::{Deserialize, Serialize};

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// `stages`, or a name in braces in the commands: `buffer` (bytes), `length` (bytes of a record).
    pub parameter: String,
    /// Which values it takes, one after another.
    pub values: Vec<u64>,
}

/// The parameter that is a number of stages.
pub const STAGES: &str = "stages";

/// The parameter that is the mean length of a record, in bytes with its delimiter.
pub const LENGTH: &str = "length";

/// The value of a size that says how many bytes the records have, without their line feeds as in the original.
pub const BYTES: &str = "bytes";

/// What a stage does where nothing else is said.
pub const SYNC: &str = "sync";

/// The position of a runner in the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The name of the runner in the definition.
    pub base: String,
    /// What a stage does with each record.
    pub mode: String,
    /// The parameter.
    pub parameter: String,
    /// Its value.
    pub at: u64,
}

/// The name of a runner with this value of a parameter.
pub fn name(base: &str, parameter: &str, at: u64) -> String {
    let parameter = if parameter == STAGES { "n" } else { parameter };
    format!("{base} {parameter}={at}")
}
