//! The names of a job's files, in a directory or under a prefix of a store.
//!
//! Of the job `ID`, which is 32 hexadecimal digits:
//!
//! | name | content |
//! |---|---|
//! | `.millstream-job.lock` | the job that owns the directory; created first, removed last |
//! | `_millstream.json` | the manifest |
//! | `part-00000-ID.csv` | the part of task 0 |
//! | `_SUCCESS` | all parts are visible |
//!
//! [`local`](super::local) has the others, of a directory. Names that begin with `.` or `_` are ignored by the readers
//! of Hadoop, Spark, Hive and pyarrow.

use crate::error::{Error, ErrorKind, Result};

pub(super) const LOCK: &str = ".millstream-job.lock";
pub(super) const MANIFEST: &str = "_millstream.json";
pub(super) const SUCCESS: &str = "_SUCCESS";

/// The longest extension of a part.
const MAX_EXTENSION: usize = 32;

/// The number of hexadecimal digits of a job's id.
const ID_DIGITS: usize = 32;

/// Returns whether a text can be the id of a job or of an attempt with this number of digits.
fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a text can be the id of a job.
pub(super) fn is_job_id(text: &str) -> bool {
    is_hexadecimal(text, ID_DIGITS)
}

/// Returns whether a text can be the id of an attempt.
pub(super) fn is_attempt_id(text: &str) -> bool {
    is_hexadecimal(text, ID_DIGITS / 2)
}

/// Returns the name of a task's part.
pub(super) fn part_name(job: &str, task: u64, extension: &str) -> String {
    format!("part-{task:05}-{job}{extension}")
}

/// Returns the id of the job whose part has this name.
pub(super) fn job_of_part(name: &str) -> Option<&str> {
    let (task, rest) = name.strip_prefix("part-")?.split_once('-')?;
    let job = rest.get(..ID_DIGITS)?;
    (!task.is_empty() && task.bytes().all(|byte| byte.is_ascii_digit()) && is_job_id(job)).then_some(job)
}

/// Fails unless an extension is empty or like `.csv` or `.csv.gz`.
pub(super) fn check_extension(extension: &str) -> Result<()> {
    let is_valid = extension.is_empty()
        || extension.starts_with('.')
            && extension.len() <= MAX_EXTENSION
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_valid {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidOption).with_found(format!("the extension {extension:?}")).with_expected(format!(
        "text such as \".csv\": a dot, then letters, digits, dots, underscores and hyphens, at most {MAX_EXTENSION} bytes"
    )))
}
