//! Jobs whose output appears completely or not at all: many processes write parts of one directory, and one process
//! commits them.
//!
//! - [`Job::begin`] locks an empty directory. The job can be sent to other processes ([`Job::to_json`]).
//! - Each attempt of a task writes a part with [`Job::part`]. An attempt that fails or is killed leaves nothing that is
//!   visible, and a task can be attempted any number of times, also at the same time.
//! - [`Job::commit`] gets the parts of the successful attempts, one of each task. It first writes a manifest that lists
//!   them, then moves all of them to their names, and creates `_SUCCESS` last.
//!
//! ```
//! use millstream::job::{self, Job};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let out = temporary.path().join("out");
//!
//! let job = Job::begin(&out)?;
//! let mut parts = Vec::new();
//! for task in 0..3 {
//!     let mut part = job.part(task, ".txt")?;
//!     part.write(format!("from task {task}\n").as_bytes())?;
//!     parts.push(part.finish()?);
//! }
//! assert!(job::parts(&out).is_err()); // the job is not complete
//! job.commit(&parts)?;
//! assert!(out.join("_SUCCESS").exists());
//! assert_eq!(job::parts(&out)?.unwrap().len(), 3);
//! # Ok::<(), millstream::Error>(())
//! ```
//!
//! The manifest decides what happens to a job whose driver, which is the process that commits, was killed:
//!
//! - Before the manifest, no part is visible. [`abort`] removes the job.
//! - After it, some parts may be visible. [`resume`] makes the others visible too, and [`abort`] removes all.
//! - After `_SUCCESS`, the job is complete. [`resume`] removes what is left of its staging directory.
//!
//! Between the manifest and `_SUCCESS`, other programs that list the directory can see some of the parts. They must wait
//! for `_SUCCESS`. [`parts`] does, and returns only parts in the manifest.
//!
//! Nothing is lost without an error. A manifest that is damaged, or that lists a part that is missing or has another size
//! or, when a job is resumed, another hash, is an error, and nothing is moved.
//!
//! The directory must be in a file system that all processes see, with atomic renames. It can be on NFS.

mod layout;
mod part;
mod stored;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use crate::error::{Error, ErrorKind, Result};

use layout::{LOCK, MANIFEST, SUCCESS};
use stored::Lock;

pub use part::{Part, PartWriter};

/// A job that writes parts to a directory.
///
/// It is only a description: it can be cloned, sent to other processes and dropped, and the job continues to exist in
/// its directory until it is committed or aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    directory: PathBuf,
    id: String,
}

/// The parts of a job whose success is certain: what its manifest contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    job: String,
    parts: Vec<Part>,
}

impl Manifest {
    /// Returns the id of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the parts, in the order of their tasks.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the number of records of all parts, if all tasks counted them.
    pub fn records(&self) -> Option<u64> {
        self.parts.iter().map(Part::records).sum()
    }

    /// Returns the number of bytes of all parts.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(Part::size).sum()
    }
}

impl Job {
    /// Begins a job that writes to a directory, which is created if it does not exist. It must be empty.
    ///
    /// # Errors
    /// Returns [`ErrorKind::AlreadyExists`] if another job has the directory or if it is not empty,
    /// [`ErrorKind::Unsupported`] for a URL, and the errors of the file system.
    pub fn begin(directory: impl AsRef<Path>) -> Result<Job> {
        let directory = directory.as_ref();
        refuse_url(directory)?;
        fs::create_dir_all(directory).map_err(open_failed(directory))?;
        let directory = fs::canonicalize(directory).map_err(open_failed(directory))?;
        if directory.to_str().is_none() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_name(directory.display().to_string())
                .with_found("a path that is not UTF-8")
                .with_expected("UTF-8, because the path is sent to other processes"));
        }
        let job = Job { directory, id: random_id()? };
        job.check_free(false)?;
        let lock = job.directory.join(LOCK);
        match layout::create(&lock, &stored::lock(&job.id)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                job.check_free(false)?;
                return Err(open_failed(&lock)(error)); // the other job has ended meanwhile
            }
            Err(error) => {
                let _ = layout::remove_file(&lock);
                return Err(open_failed(&lock)(error));
            }
        }
        // Another job may have completed between the check and the lock.
        let staging = layout::staging(&job.directory, &job.id);
        let begun = job.check_free(true).and_then(|()| {
            fs::create_dir(&staging).map_err(open_failed(&staging))?;
            layout::sync(&job.directory)
        });
        if begun.is_err() {
            let _ = fs::remove_dir(&staging);
            let _ = layout::remove_file(&lock);
        }
        begun.map(|()| job)
    }

    /// Fails if the directory contains anything, or anything but the lock if it is `locked` by this job.
    fn check_free(&self, locked: bool) -> Result<()> {
        let names = layout::names(&self.directory)?;
        let Some(name) = names.iter().find(|name| !locked || *name != LOCK) else { return Ok(()) };
        let exists = |found: String, expected: String| {
            let name = self.directory.display().to_string();
            Err(Error::new(ErrorKind::AlreadyExists).with_name(name).with_found(found).with_expected(expected))
        };
        match stored::read_lock(&self.directory)? {
            Lock::Of(id) if id != self.id => exists(
                format!("the unfinished job {id}"),
                format!("no job; if its driver is not running any more, {}", self.commands(true)),
            ),
            Lock::Unreadable => exists(
                format!("{LOCK} without the id of a job"),
                format!("no job; if its driver is not running any more, {}", self.commands(false)),
            ),
            _ => exists(format!("{:?}", name.display().to_string()), "an empty directory, or a new one".to_string()),
        }
    }

    /// Returns the commands that end the job of this directory.
    fn commands(&self, has_id: bool) -> String {
        let resumable = has_id && layout::exists(&self.directory.join(MANIFEST)).unwrap_or(false);
        commands(&self.directory, resumable)
    }

    /// Returns the id: 32 hexadecimal digits, different for every job.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the absolute path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins the part of an attempt of a task. `extension` is the end of the name, such as `.csv`, or empty.
    ///
    /// Any number of attempts can write parts of the same task at the same time. A task need not write a part.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for an extension that is not like `.csv`, [`ErrorKind::Closed`] if the job
    /// has been committed or aborted, and the errors of the file system.
    pub fn part(&self, task: u64, extension: &str) -> Result<PartWriter> {
        let staging = layout::staging(&self.directory, &self.id);
        if !layout::exists(&staging)? {
            return Err(self.is_over());
        }
        PartWriter::open(self, task, extension)
    }

    /// The error of a call after the end of the job.
    fn is_over(&self) -> Error {
        Error::new(ErrorKind::Closed)
            .with_name(self.directory.display().to_string())
            .with_found(format!("no staging directory of the job {}", self.id))
            .with_expected("a job that is neither committed nor aborted, in a directory that all machines share")
    }

    /// Makes these parts visible: all of them or, if this fails before the manifest is written, none.
    ///
    /// Each task has at most one part; parts of other attempts are removed. If this fails, it can be called again with
    /// the same parts.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if a part is of another job or two are of the same task,
    /// [`ErrorKind::JobIncomplete`] if one is missing or has changed, [`ErrorKind::Closed`] if the job has been
    /// aborted, and the errors of the file system. After an error of the file system, the job may have a manifest: call
    /// this again, [`resume`] or [`abort`](Job::abort).
    pub fn commit(&self, parts: &[Part]) -> Result<Manifest> {
        let mut parts = parts.to_vec();
        parts.sort_by_key(Part::task);
        let mut tasks = HashSet::new();
        for part in &parts {
            let wrong = |found: String, expected: &str| {
                Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
            };
            if part.job != self.id {
                return wrong(format!("a part of the job {}", part.job), &format!("parts of the job {}", self.id));
            }
            if !tasks.insert(part.task) {
                return wrong(format!("two parts of task {}", part.task), "one part of each task");
            }
        }
        let manifest = Manifest { job: self.id.clone(), parts };
        match Manifest::read(&self.directory)? {
            Some(written) if written == manifest => {}
            Some(written) => {
                return Err(Error::new(ErrorKind::AlreadyExists)
                    .with_name(self.directory.join(MANIFEST).display().to_string())
                    .with_found(format!("a manifest of the job {} with other parts", written.job))
                    .with_expected("the parts of the first commit"));
            }
            None => {
                let staging = layout::staging(&self.directory, &self.id);
                if !layout::exists(&staging)? {
                    return Err(self.is_over());
                }
                for part in &manifest.parts {
                    let staged = part.staged(&self.directory);
                    if !part.check(&staged, false)? {
                        return Err(missing(&staged, part, "its file in the staging directory".to_string()));
                    }
                }
                // The parts' names in the staging directory were synced by the machines of their tasks.
                layout::publish(&staging, &self.directory.join(MANIFEST), &manifest.to_bytes())?;
            }
        }
        complete(&self.directory, &manifest).map_err(|error| match error.expected() {
            Some(_) => error,
            None => error.with_expected(format!(
                "to complete the job, which has a manifest; commit it again, {}",
                commands(&self.directory, true)
            )),
        })?;
        // The job is complete. If this fails, what is left is invisible, and `resume` removes it.
        let _ = clean_up(&self.directory);
        Ok(manifest)
    }

    /// Removes the job and all of its parts. Calling this again does nothing.
    ///
    /// # Errors
    /// Returns [`ErrorKind::AlreadyExists`] if the job is complete, and the errors of the file system.
    pub fn abort(&self) -> Result<()> {
        let is_own = match stored::read_lock(&self.directory)? {
            Lock::Of(id) => id == self.id,
            Lock::Free => layout::exists(&self.directory.join(MANIFEST))?,
            Lock::Unreadable => false,
        };
        if is_own { abort(&self.directory).map(|_| ()) } else { Ok(()) }
    }
}

/// Completes the job of a directory whose driver was killed after it had written the manifest. If the job is complete,
/// this only removes what is left of its staging directory.
///
/// All parts are read, and compared with their hashes, before the first one is moved.
///
/// ```
/// use millstream::{ErrorKind, job};
/// # let temporary = tempfile::tempdir().unwrap();
/// # let out = temporary.path().join("out");
/// let job = job::Job::begin(&out)?;
/// // The driver is killed. There is no manifest, so nothing is known about the parts.
/// assert_eq!(job::resume(&out).unwrap_err().kind(), ErrorKind::JobIncomplete);
/// assert!(job::abort(&out)?);
/// # Ok::<(), millstream::Error>(())
/// ```
///
/// # Errors
/// Returns [`ErrorKind::JobIncomplete`] if the directory has no job, or one without a manifest, or if the manifest is
/// damaged or a part is missing or has changed; and the errors of the file system.
pub fn resume(directory: impl AsRef<Path>) -> Result<Manifest> {
    let directory = directory.as_ref();
    refuse_url(directory)?;
    let directory = &fs::canonicalize(directory).map_err(open_failed(directory))?;
    let refused = |found: String, expected: String| {
        let name = directory.display().to_string();
        Err(Error::new(ErrorKind::JobIncomplete).with_name(name).with_found(found).with_expected(expected))
    };
    let lock = stored::read_lock(directory)?;
    let Some(manifest) = Manifest::read(directory)? else {
        return match lock {
            Lock::Free => refused("no job".to_string(), format!("the directory of a job, with {MANIFEST}")),
            Lock::Of(_) | Lock::Unreadable => refused(
                "a job without a manifest, of which no part is visible".to_string(),
                format!("{MANIFEST}; {}, and start the job again", commands(directory, false)),
            ),
        };
    };
    if !layout::exists(&directory.join(SUCCESS))? {
        match lock {
            Lock::Of(id) if id != manifest.job => {
                return refused(
                    format!("the lock of the job {id} and the manifest of the job {}", manifest.job),
                    "files of one job".to_string(),
                );
            }
            _ => {}
        }
        if layout::is_retired(directory, &manifest.job)? {
            return refused(
                format!("the job {}, whose removal has begun", manifest.job),
                format!("a job that was not aborted; {}", commands(directory, false)),
            );
        }
        for part in &manifest.parts {
            part.find(directory, true)?;
        }
        complete(directory, &manifest)?;
    }
    for part in &manifest.parts {
        part.find(directory, false)?;
    }
    clean_up(directory)?;
    Ok(manifest)
}

/// Removes the unfinished job of a directory: its parts, its manifest, and the lock, so that another job can begin.
/// Returns whether there was one.
///
/// If the job is running, it fails. Parts that are visible already are removed too.
///
/// # Errors
/// Returns [`ErrorKind::AlreadyExists`] if the job is complete, [`ErrorKind::JobIncomplete`] if neither the lock nor the
/// manifest shows its id, and the errors of the file system.
pub fn abort(directory: impl AsRef<Path>) -> Result<bool> {
    let directory = directory.as_ref();
    refuse_url(directory)?;
    let directory = &fs::canonicalize(directory).map_err(open_failed(directory))?;
    let (lock, manifest) = (directory.join(LOCK), directory.join(MANIFEST));
    let is_complete = || -> Result<()> {
        if !(layout::exists(&directory.join(SUCCESS))? && layout::exists(&manifest)?) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::AlreadyExists)
            .with_name(directory.display().to_string())
            .with_found(format!("a complete job, with {SUCCESS}"))
            .with_expected("an unfinished job; to discard its output, remove the directory"))
    };
    is_complete()?;
    let mut jobs = match (stored::read_lock(directory)?, Manifest::read(directory)) {
        (Lock::Free, Ok(None)) if !layout::has_staging(directory)? => return Ok(false),
        (Lock::Of(id), _) => vec![id],
        (_, Ok(Some(manifest))) => vec![manifest.job],
        (_, Ok(None)) => layout::staging_ids(directory)?,
        (_, Err(error)) => return Err(error),
    };
    for id in &jobs {
        layout::retire_staging(directory, id)?;
    }
    layout::empty_retired(directory)?;
    // From now on the driver, if it is running, can neither write the manifest nor move parts nor complete the job. Until
    // now it could.
    is_complete()?;
    let written = Manifest::read(directory);
    if let (true, Ok(Some(written))) = (jobs.is_empty(), &written) {
        jobs.push(written.job.clone());
    }
    for id in &jobs {
        layout::remove_parts(directory, id)?;
    }
    layout::sync(directory)?;
    // Another process may have removed the job meanwhile, and another job may have begun.
    if !written.is_ok_and(|written| written.is_some_and(|written| !jobs.contains(&written.job))) {
        layout::remove_file(&manifest)?;
    }
    layout::remove_retired(directory)?;
    layout::sync(directory)?;
    match stored::read_lock(directory)? {
        Lock::Of(id) if !jobs.contains(&id) => {}
        _ => layout::remove_file(&lock)?,
    }
    layout::sync(directory)?;
    Ok(true)
}

/// Returns the paths of a complete job's parts, in the order of their tasks, or `None` if the directory has no job.
///
/// Other files in the directory are ignored.
///
/// # Errors
/// Returns [`ErrorKind::JobIncomplete`] if the job is not complete, and the error names the command to run; or if the
/// manifest is damaged, or a part is missing or has another size. Returns the errors of the file system.
pub fn parts(directory: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
    let directory = directory.as_ref();
    // This is looked at first: a job that completes at this moment must not be taken for an unfinished one.
    let (lock, path) = (layout::exists(&directory.join(LOCK))?, directory.join(MANIFEST));
    let has_manifest = layout::exists(&path)?;
    if !layout::exists(&directory.join(SUCCESS))? {
        if !lock && !has_manifest {
            return Ok(None);
        }
        let name = directory.display().to_string();
        return Err(Error::new(ErrorKind::JobIncomplete)
            .with_name(name)
            .with_found(format!("an unfinished job, without {SUCCESS}"))
            .with_expected(format!(
                "a complete job; if its driver is not running any more, {}",
                commands(directory, has_manifest)
            )));
    }
    let Some(manifest) = Manifest::read(directory)? else { return Ok(None) };
    let paths = manifest.parts.iter().map(|part| {
        let path = part.visible(directory);
        match part.check(&path, false)? {
            true => Ok(path),
            false => Err(missing(&path, part, "its file".to_string())),
        }
    });
    paths.collect::<Result<_>>().map(Some)
}

impl Part {
    /// Fails unless the part is in the staging directory or visible, with its size and, if requested, its hash.
    fn find(&self, directory: &Path, hash: bool) -> Result<()> {
        let (staged, visible) = (self.staged(directory), self.visible(directory));
        // Another process may move it between the two checks.
        if self.check(&staged, hash)? || self.check(&visible, hash)? {
            return Ok(());
        }
        Err(missing(&visible, self, format!("its file there, or {}", staged.display())))
    }
}

/// Moves all parts to their names, and creates `_SUCCESS`.
fn complete(directory: &Path, manifest: &Manifest) -> Result<()> {
    for part in &manifest.parts {
        let (staged, visible) = (part.staged(directory), part.visible(directory));
        match fs::rename(&staged, &visible) {
            Ok(()) => {}
            // An earlier run, or another process that completes the job, has moved it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => part.find(directory, false)?,
            Err(error) => return Err(layout::at(&visible)(error)),
        }
    }
    layout::sync(directory)?;
    let success = directory.join(SUCCESS);
    match layout::publish(&layout::staging(directory, &manifest.job), &success, b"") {
        // Another process has completed the job, and removed the staging directory.
        Err(_) if layout::exists(&success)? => layout::sync(directory),
        published => published,
    }
}

/// Removes what a complete job needs no more.
fn clean_up(directory: &Path) -> Result<()> {
    // No other job can begin in the directory of a complete one.
    for id in layout::staging_ids(directory)? {
        layout::retire_staging(directory, &id)?;
    }
    layout::remove_retired(directory)?;
    layout::sync(directory)?;
    layout::remove_file(&directory.join(LOCK))
}

fn missing(path: &Path, part: &Part, expected: String) -> Error {
    Error::new(ErrorKind::JobIncomplete)
        .with_name(path.display().to_string())
        .with_found(format!("no file of the part of task {}, which the job has written", part.task))
        .with_expected(expected)
}

/// Returns what to do about the unfinished job of a directory.
fn commands(directory: &Path, resumable: bool) -> String {
    let directory = directory.display();
    let abort = format!("`millstream commit abort {directory}`");
    if resumable {
        format!("complete it with `millstream commit resume {directory}`, or remove it with {abort}")
    } else {
        format!("remove it with {abort}")
    }
}

fn open_failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let name = path.display().to_string();
    move |error| Error::new(ErrorKind::OpenFailed).with_io(error).with_name(name.clone())
}

fn refuse_url(directory: &Path) -> Result<()> {
    let text = directory.to_string_lossy();
    if !crate::Remote::is_url(text.as_bytes()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported)
        .with_name(crate::Remote::new(&*text).name())
        .with_found("a URL as the directory of a job")
        .with_expected("a directory in a file system that all machines share"))
}

/// Returns 32 random hexadecimal digits.
fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::from_io(io::Error::other(error)))?;
    Ok(HEXLOWER.encode(&bytes))
}
