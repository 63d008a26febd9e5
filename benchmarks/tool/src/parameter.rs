//! The parameter that a definition varies, and its values. Commands contain its name in braces.

use serde::{Deserialize, Serialize};

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The name: `stages`, or a name in braces in the commands, such as `buffer` (bytes) or `length` (bytes of a
    /// record).
    pub parameter: String,
    /// The values, in order.
    pub values: Vec<u64>,
}

/// The name of the parameter that is a number of stages.
pub const STAGES: &str = "stages";

/// The name of the parameter that is the mean length of a record in bytes, including its delimiter.
pub const LENGTH: &str = "length";

/// The name of the value of a size that is the number of bytes in the records. As in the original, line feeds are not
/// counted.
pub const BYTES: &str = "bytes";

/// The default for what a stage does.
pub const SYNC: &str = "sync";

/// The position of a runner in the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The name of the runner in the definition.
    pub base: String,
    /// What a stage does with each record.
    pub mode: String,
    /// The name of the parameter.
    pub parameter: String,
    /// Its value.
    pub at: u64,
}

/// The name of a runner with this value of a parameter.
pub fn name(base: &str, parameter: &str, at: u64) -> String {
    let parameter = if parameter == STAGES { "n" } else { parameter };
    format!("{base} {parameter}={at}")
}
