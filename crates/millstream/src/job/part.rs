//! The parts that tasks write.

use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use crate::error::{Error, ErrorKind, Result};
use crate::writer::{Durability, Existing, Writer};

use super::layout;
use super::{Job, random_id};

/// Returns the hash of bytes as the manifest has it.
pub(super) fn shown_hash(hasher: &blake3::Hasher) -> String {
    format!("blake3:{}", HEXLOWER.encode(hasher.finalize().as_bytes()))
}

/// Writes the part of one attempt of a task: [`Job::part`] creates it.
///
/// The part has a name of its own in the staging directory, and appears there only when it is complete and on the disk.
/// Dropping the writer discards it.
pub struct PartWriter {
    writer: Writer,
    hasher: blake3::Hasher,
    job: Job,
    task: u64,
    attempt: String,
    extension: String,
    records: Option<u64>,
}

impl PartWriter {
    pub(super) fn open(job: &Job, task: u64, extension: &str) -> Result<PartWriter> {
        layout::check_extension(extension)?;
        let attempt = random_id()?[..16].to_string();
        let path = layout::staging(&job.directory, &job.id).join(layout::staged_name(&job.id, task, &attempt));
        let writer = Writer::builder().existing(Existing::CreateNew).durability(Durability::All).path(path)?;
        let extension = extension.to_string();
        Ok(PartWriter {
            writer,
            hasher: blake3::Hasher::new(),
            job: job.clone(),
            task,
            attempt,
            extension,
            records: None,
        })
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Returns the errors of the file.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write(bytes)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Adds to the number of records of the part, which the manifest contains. Without a call, it is unknown.
    pub fn add_records(&mut self, count: u64) {
        self.records = Some(self.records.unwrap_or(0).saturating_add(count));
    }

    /// Completes the part and returns what [`Job::commit`] needs. The part becomes visible only by that call.
    ///
    /// # Errors
    /// Returns the errors of the file. Then there is no part.
    pub fn finish(self) -> Result<Part> {
        let PartWriter { writer, hasher, job, task, attempt, extension, records } = self;
        let size = writer.accepted();
        writer.close().map_err(|error| match layout::exists(&layout::staging(&job.directory, &job.id)) {
            Ok(false) => job.is_over(),
            _ => error,
        })?;
        Ok(Part { job: job.id, task, attempt, extension, size, hash: shown_hash(&hasher), records })
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
        layout::final_name(&self.job, self.task, &self.extension)
    }

    /// Returns the path that the file has before it is visible.
    pub(super) fn staged(&self, directory: &Path) -> PathBuf {
        layout::staging(directory, &self.job).join(layout::staged_name(&self.job, self.task, &self.attempt))
    }

    /// Returns the path that the file has when it is visible.
    pub(super) fn visible(&self, directory: &Path) -> PathBuf {
        directory.join(self.name())
    }

    /// Fails unless the file at this path has the size of the part and, if requested, its hash. Returns whether there is
    /// a file.
    pub(super) fn check(&self, path: &Path, hash: bool) -> Result<bool> {
        let size = match std::fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(layout::at(path)(error)),
        };
        let changed = |found: String, expected: String| {
            Error::new(ErrorKind::JobIncomplete)
                .with_name(path.display().to_string())
                .with_found(format!("{found} in the part of task {}", self.task))
                .with_expected(format!("{expected}, as its task wrote"))
        };
        if size != self.size {
            return Err(changed(format!("{size} bytes"), format!("{} bytes", self.size)));
        }
        if hash {
            let mut hasher = blake3::Hasher::new();
            let file = std::fs::File::open(path).map_err(layout::at(path))?;
            hasher.update_reader(file).map_err(layout::at(path))?;
            let found = shown_hash(&hasher);
            if found != self.hash {
                return Err(changed(format!("the hash {found}"), self.hash.clone()));
            }
        }
        Ok(true)
    }
}
