//! The parts that tasks write.

use std::io;

use data_encoding::HEXLOWER;
use millstream_remote::StagedObject;

use crate::error::{Error, ErrorKind, Result};

use super::files::Output;
use super::{Job, is_over, layout, random_id};

/// Returns the hash of bytes as the manifest has it.
pub(super) fn shown_hash(hasher: &blake3::Hasher) -> String {
    format!("blake3:{}", HEXLOWER.encode(hasher.finalize().as_bytes()))
}

/// Writes the part of one attempt of a task: [`Job::part`] creates it.
///
/// In a directory, the part has a name of its own in the staging directory, and appears there only when it is complete and
/// on the disk. In a store, it is an upload, whose parts are sent while it is written. Dropping the writer discards it.
pub struct PartWriter {
    output: Output,
    hasher: blake3::Hasher,
    job: Job,
    task: u64,
    attempt: String,
    extension: String,
    size: u64,
    records: Option<u64>,
}

impl PartWriter {
    pub(super) fn open(job: &Job, task: u64, extension: &str) -> Result<PartWriter> {
        layout::check_extension(extension)?;
        let files = job.place.files();
        if !files.is_open(&job.id)? {
            return Err(is_over(files, &job.id));
        }
        let attempt = random_id()?[..16].to_string();
        Ok(PartWriter {
            output: files.stage(&job.id, task, &attempt, extension)?,
            hasher: blake3::Hasher::new(),
            job: job.clone(),
            task,
            attempt,
            extension: extension.to_string(),
            size: 0,
            records: None,
        })
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Returns the errors of the file or of the store.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.output {
            Output::File(writer) => writer.write(bytes)?,
            Output::Object { upload, .. } => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    rest = &rest[upload.write(rest, || Ok(()))?..];
                }
            }
        }
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Adds to the number of records of the part, which the manifest contains. Without a call, it is unknown.
    pub fn add_records(&mut self, count: u64) {
        self.records = Some(self.records.unwrap_or(0).saturating_add(count));
    }

    /// Completes the part and returns what [`Job::commit`] needs. The part becomes visible only by that call.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Closed`] if the job has been committed or aborted, and the errors of the file or of the store.
    /// Then there is no part.
    pub fn finish(self) -> Result<Part> {
        let PartWriter { output, hasher, job, task, attempt, extension, size, records } = self;
        let files = job.place.files();
        let staged = match output {
            Output::File(writer) => writer.close().map(|_| None),
            Output::Object { mut upload, remote } => upload.stage(|| Ok(())).map(|staged| Some((staged, remote))),
        };
        let staged = staged.map_err(|error| match files.is_open(&job.id) {
            Ok(false) => is_over(files, &job.id),
            _ => error,
        })?;
        let staged = match staged {
            // The upload may have begun when the others had been removed.
            Some((staged, remote)) if !files.is_open(&job.id)? => {
                staged.remove(remote)?;
                return Err(is_over(files, &job.id));
            }
            staged => staged.map(|(staged, _)| staged),
        };
        Ok(Part { job: job.id, task, attempt, extension, size, hash: shown_hash(&hasher), records, staged })
    }
}

impl io::Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        PartWriter::write(self, bytes)?;
        Ok(bytes.len())
    }

    /// Does nothing: the part is written completely by [`finish`](PartWriter::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
