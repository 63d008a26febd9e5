//! The parts that tasks have written.

use data_encoding::HEXLOWER;
use millstream_remote::StagedObject;

use crate::error::{Error, ErrorKind, Result};

use super::layout;

/// Returns the hash of bytes as the manifest has it.
pub(super) fn shown_hash(hasher: &blake3::Hasher) -> String {
    format!("blake3:{}", HEXLOWER.encode(hasher.finalize().as_bytes()))
}

/// A complete part: the result of a task. It is small, and can be sent to another process with [`Part::to_json`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub(super) job: String,
    pub(super) task: u64,
    pub(super) attempt: String,
    pub(super) extension: String,
    pub(super) size: u64,
    pub(super) hash: String,
    pub(super) records: Option<u64>,
    /// The upload of a part in a store.
    pub(super) staged: Option<StagedObject>,
}

impl Part {
    /// Returns the number of the task.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the hash of its bytes, such as `blake3:af13…`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the number of its records, if the task counted them.
    pub fn records(&self) -> Option<u64> {
        self.records
    }

    /// Returns the name of its file in the target directory: `part-TASK-JOB` with the extension.
    pub fn name(&self) -> String {
        layout::part_name(&self.job, self.task, &self.extension)
    }

    /// Returns the upload of a part in a store.
    pub(super) fn object(&self) -> Result<&StagedObject> {
        self.staged.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::InvalidOption)
                .with_found(format!("a part of task {} that was written to a directory", self.task))
                .with_expected("a part that was written to this store")
        })
    }

    /// Returns the error for a part whose file is not as its task wrote it.
    pub(super) fn changed(&self, name: String, found: String, expected: String) -> Error {
        Error::new(ErrorKind::JobIncomplete)
            .with_name(name)
            .with_found(format!("{found} in the part of task {}", self.task))
            .with_expected(format!("{expected}, as its task wrote"))
    }

    /// Returns the error for a part that does not exist. `what` it should be is a file or an object.
    pub(super) fn missing(&self, name: String, what: &str, expected: String) -> Error {
        Error::new(ErrorKind::JobIncomplete)
            .with_name(name)
            .with_found(format!("no {what} of the part of task {}, which the job has written", self.task))
            .with_expected(expected)
    }
}
