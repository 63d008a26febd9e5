//! The parts that tasks are writing.

use std::io;

use crate::error::Result;

use super::files::Output;
use super::part::{Part, shown_hash};
use super::{Job, is_over, layout, random_id};

/// Writes the part of one attempt of a task: [`Job::part`] creates it.
///
/// In a directory, the part has a name of its own in the staging directory, and appears there only when it is complete
/// and on the disk. In a store, it is an upload, whose parts are sent while it is written. Dropping the writer discards
/// it.
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
    /// Returns [`Closed`](crate::ErrorKind::Closed) if the job has been committed or aborted, and the errors of the
    /// file or of the store. Then there is no part.
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
