//! What a job needs of the place of its files.

use crate::error::Result;
use crate::writer::Writer;

use millstream_remote::{Remote, StagedObject, Upload};

use super::{Manifest, Part};

/// The place of a job's files: a directory, or the objects of a store under a prefix.
///
/// Until it is revealed, a part is *staged*: it is in the staging directory, or its upload is not completed. The
/// manifest and `_SUCCESS` are published from there as well. So [`stop`](Files::stop), which removes what is staged, is
/// the one step that stops a job whose processes are still running.
pub(super) trait Files {
    /// Returns the path or the URL.
    fn name(&self) -> String;

    /// Returns the path or the URL of a file.
    fn name_of(&self, file: &str) -> String;

    /// Reads a file, if it exists.
    fn read(&self, file: &str) -> Result<Option<Vec<u8>>>;

    fn exists(&self, file: &str) -> Result<bool>;

    /// Removes a file, if it exists.
    fn remove(&self, file: &str) -> Result<()>;

    /// Waits until all changes of names are durable.
    fn sync(&self) -> Result<()>;

    /// Returns the name of any file but what this job has prepared and, if it is `locked`, the lock.
    fn any_other(&self, job: &str, locked: bool) -> Result<Option<String>>;

    /// Creates the lock. Returns false if there is one.
    fn lock(&self, content: &[u8]) -> Result<bool>;

    /// Prepares what this job stages. If this fails, it leaves nothing.
    fn prepare(&self, job: &str) -> Result<Option<Prepared>>;

    /// Returns whether parts of this job can be staged.
    fn is_open(&self, job: &str) -> Result<bool>;

    /// Begins to stage a part.
    fn stage(&self, job: &str, task: u64, attempt: &str, extension: &str) -> Result<Output>;

    /// Fails unless all of these parts are staged.
    fn check_staged(&self, parts: &[Part]) -> Result<()>;

    /// Makes a file with this content appear, durably. It fails without a trace if the job was stopped.
    fn publish(&self, job: &str, file: &str, content: &[u8], prepared: Option<&StagedObject>) -> Result<()>;

    /// Fails unless all of these parts are staged or visible, with their content as far as it can be read.
    fn check_all(&self, parts: &[Part]) -> Result<()>;

    /// Makes all of these parts visible, durably.
    fn reveal(&self, parts: &[Part]) -> Result<()>;

    /// Fails unless all of these parts are visible, with their size.
    fn check_visible(&self, parts: &[Part]) -> Result<()>;

    /// Returns whether [`stop`](Files::stop) has begun for the job of this manifest, which is not complete.
    fn is_stopped(&self, manifest: &Manifest) -> Result<bool>;

    /// Returns whether anything is staged, of any job.
    fn has_staged(&self) -> Result<bool>;

    /// Returns the ids of the jobs that have staged anything.
    fn staged_jobs(&self) -> Result<Vec<String>>;

    /// Removes what these jobs have staged. When this returns, they can publish and reveal nothing.
    fn stop(&self, jobs: &[String]) -> Result<()>;

    /// Removes the visible parts of these jobs.
    fn remove_parts(&self, jobs: &[String]) -> Result<()>;

    /// Removes what [`stop`](Files::stop) has left.
    fn remove_stopped(&self) -> Result<()>;

    /// Removes what is staged by any job. No job can begin at the same time.
    fn clean_up(&self) -> Result<()>;
}

/// The objects that a job in a store publishes: they are staged when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    /// An object without content, which is rewritten.
    pub(super) manifest: StagedObject,
    pub(super) success: StagedObject,
}

/// The output of a part that is being staged.
pub(super) enum Output {
    File(Writer),
    Object { upload: Box<Upload>, remote: Remote },
}
