//! Jobs whose output appears completely or not at all: many processes write parts of one directory, and one process
//! commits them. The directory is in a file system, or a URL of an object store.
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
//! Between the manifest and `_SUCCESS`, other programs that list the directory can see some of the parts. They must
//! wait for `_SUCCESS`. [`parts`] does, and returns only parts in the manifest; [`objects`] does this for a URL.
//!
//! Nothing is lost without an error. A manifest that is damaged, or that lists a part that is missing or has another
//! size or, when a job is resumed, another hash, is an error, and nothing is moved.
//!
//! A directory of a file system must be one that all processes see, with atomic renames. It can be on NFS.
//!
//! In a store (`s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`), a part is an upload that is not completed until the job has
//! a manifest. The store must list uploads, and create an object only if it does not exist. The content of a part that
//! is not visible cannot be read again; the store has compared each piece with the checksum of its request. Azure is
//! refused, because it can neither list nor remove what is not visible.

mod directory;
mod files;
mod layout;
mod local;
mod part;
mod part_writer;
mod store;
mod stored;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use millstream_remote::StagedObject;

use crate::Remote;
use crate::error::{Error, ErrorKind, Result};

use directory::Place;
use files::{Files, Prepared};
use layout::{LOCK, MANIFEST, SUCCESS};
use store::Store;
use stored::Lock;

pub use directory::Directory;
pub use part::Part;
pub use part_writer::PartWriter;

/// How often a process that cannot join a job tries it again, and the time in between.
const JOIN_PAUSES: u32 = 5;
const JOIN_PAUSE: Duration = Duration::from_millis(20);

/// A job that writes parts to a directory.
///
/// It is only a description: it can be cloned, sent to other processes and dropped, and the job continues to exist in
/// its directory until it is committed or aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    place: Place,
    id: String,
    /// What a job in a store publishes.
    prepared: Option<Prepared>,
}

/// The parts of a job whose success is certain: what its manifest contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    job: String,
    parts: Vec<Part>,
    /// `_SUCCESS` of a job in a store, which is staged.
    success: Option<StagedObject>,
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
    /// [`ErrorKind::Unsupported`] for a URL that is not of `s3://` or `gs://`, and the errors of the file system or of
    /// the store.
    pub fn begin(directory: impl Into<Directory>) -> Result<Job> {
        let mut job = Job { place: directory.into().create()?, id: random_id()?, prepared: None };
        job.check_free(false)?;
        let files = job.place.files();
        if !files.lock(&stored::lock(&job))? {
            job.check_free(false)?;
            return Err(job.try_again());
        }
        // Another job may have completed between the check and the lock.
        let prepared = job.check_free(true).and_then(|()| files.prepare(&job.id));
        job.prepared = prepared.inspect_err(|_| drop(files.remove(LOCK)))?;
        Ok(job)
    }

    /// Begins the job with this id, or joins it if another process has begun it. Returns `None` if it has a manifest: its
    /// parts are certain, and [`resume`] completes it.
    ///
    /// Processes that share only the id can write one job, and work that is repeated after a crash is published once: the
    /// id names the work.
    ///
    /// ```
    /// use millstream::job::{self, Job};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let out = temporary.path().join("out");
    /// let id = "0123456789abcdef0123456789abcdef";
    /// for _ in 0..2 {
    ///     match Job::join(&out, id)? {
    ///         Some(job) => {
    ///             let mut part = job.part(0, ".txt")?;
    ///             part.write(b"once\n")?;
    ///             job.commit(&[part.finish()?])?;
    ///         }
    ///         None => drop(job::resume(&out)?),
    ///     }
    /// }
    /// assert_eq!(job::parts(&out)?.unwrap().len(), 1);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] unless the id is 32 hexadecimal digits in lower case, and the errors of
    /// [`begin`](Job::begin).
    pub fn join(directory: impl Into<Directory>, id: &str) -> Result<Option<Job>> {
        if !layout::is_job_id(id) {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("the id {id:?}"))
                .with_expected("32 hexadecimal digits in lower case"));
        }
        let job = Job { place: directory.into().create()?, id: id.to_string(), prepared: None };
        let mut pauses = 0..JOIN_PAUSES;
        loop {
            if let ControlFlow::Break(found) = job.begun()? {
                return Ok(found);
            }
            match job.begin_anew() {
                Ok(prepared) => return Ok(Some(Job { prepared, ..job })),
                // Another process may be beginning the job: it writes its id after it has created the lock.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && pauses.next().is_some() => {
                    std::thread::sleep(JOIN_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns what a process has begun with this id: the job, or `None` if it has a manifest.
    fn begun(&self) -> Result<ControlFlow<Option<Job>>> {
        let files = self.place.files();
        if Manifest::read(files)?.is_some_and(|manifest| manifest.job == self.id) {
            return Ok(ControlFlow::Break(None));
        }
        Ok(match stored::read_lock(files)? {
            Lock::Of(id, prepared) if id == self.id => ControlFlow::Break(Some(Job { prepared, ..self.clone() })),
            _ => ControlFlow::Continue(()),
        })
    }

    /// Begins the job so that others can join it: when its lock exists, it is prepared, and the lock contains that.
    fn begin_anew(&self) -> Result<Option<Prepared>> {
        self.check_free(false)?;
        let files = self.place.files();
        let prepared = files.prepare(&self.id)?;
        if !files.lock(&stored::lock(&Job { prepared: prepared.clone(), ..self.clone() }))? {
            // What is prepared in a store is invisible, and removed with the job that has the lock.
            self.check_free(false)?;
            return Err(self.try_again());
        }
        // Another job may have completed between the check and the lock.
        self.check_free(true).inspect_err(|_| drop(clean_up(files)))?;
        Ok(prepared)
    }

    /// Returns the error for a job that has ended while this one was about to begin.
    fn try_again(&self) -> Error {
        Error::new(ErrorKind::AlreadyExists)
            .with_name(self.place.files().name_of(LOCK))
            .with_found("the lock of another job")
            .with_expected("no job; try again")
    }

    /// Returns the job of a directory as it is named, without a system call or a request.
    fn named(directory: String, id: String, prepared: Option<Prepared>) -> Result<Job> {
        Ok(Job { place: Directory::from(directory).named()?, id, prepared })
    }

    /// Fails if the directory contains anything but what this job has prepared and, if it is `locked` by it, the lock.
    fn check_free(&self, locked: bool) -> Result<()> {
        let files = self.place.files();
        let Some(name) = files.any_other(&self.id, locked)? else { return Ok(()) };
        let exists = |found: String, expected: String| {
            let name = files.name();
            Err(Error::new(ErrorKind::AlreadyExists).with_name(name).with_found(found).with_expected(expected))
        };
        // What to do about the job of this directory.
        let commands = |has_id: bool| commands(files, has_id && files.exists(MANIFEST).unwrap_or(false));
        match stored::read_lock(files)? {
            Lock::Of(id, _) if id != self.id => exists(
                format!("the unfinished job {id}"),
                format!("no job; if its driver is not running any more, {}", commands(true)),
            ),
            Lock::Unreadable => exists(
                format!("{LOCK} without the id of a job"),
                format!("no job; if its driver is not running any more, {}", commands(false)),
            ),
            _ => exists(format!("{name:?}"), "an empty directory, or a new one".to_string()),
        }
    }

    /// Returns the id: 32 hexadecimal digits, different for every job.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the absolute path of the directory, or its URL.
    pub fn directory(&self) -> &Path {
        self.place.path()
    }

    /// Returns the job with other options for its requests, such as the endpoint of the store. JSON does not contain
    /// them.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if `remote` is another URL, or an option is invalid.
    pub fn with_remote(self, remote: Remote) -> Result<Job> {
        let place = Directory::from(remote).named()?;
        if place != self.place {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_name(place.files().name())
                .with_found("another directory than that of the job")
                .with_expected(self.place.files().name()));
        }
        Ok(Job { place, ..self })
    }

    /// Begins the part of an attempt of a task. `extension` is the end of the name, such as `.csv`, or empty.
    ///
    /// Any number of attempts can write parts of the same task at the same time. A task need not write a part.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] for an extension that is not like `.csv`, [`ErrorKind::Closed`] if the job
    /// has been committed or aborted, and the errors of the file system or of the store.
    pub fn part(&self, task: u64, extension: &str) -> Result<PartWriter> {
        PartWriter::open(self, task, extension)
    }

    /// Makes these parts visible: all of them or, if this fails before the manifest is written, none.
    ///
    /// Each task has at most one part; parts of other attempts are removed. If this fails, it can be called again with
    /// the same parts.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if a part is of another job or two are of the same task,
    /// [`ErrorKind::JobIncomplete`] if one is missing or has changed, [`ErrorKind::Closed`] if the job has been
    /// aborted, and the errors of the file system or of the store. After one of these, the job may have a manifest:
    /// call this again, [`resume`] or [`abort`](Job::abort).
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
        let files = self.place.files();
        let success = self.prepared.as_ref().map(|prepared| prepared.success.clone());
        let manifest = Manifest { job: self.id.clone(), parts, success };
        match Manifest::read(files)? {
            Some(written) if written == manifest => {}
            Some(written) => {
                return Err(Error::new(ErrorKind::AlreadyExists)
                    .with_name(files.name_of(MANIFEST))
                    .with_found(format!("a manifest of the job {} with other parts", written.job))
                    .with_expected("the parts of the first commit"));
            }
            None => {
                if !files.is_open(&self.id)? {
                    return Err(is_over(files, &self.id));
                }
                files.check_staged(&manifest.parts)?;
                let prepared = self.prepared.as_ref().map(|prepared| &prepared.manifest);
                files.publish(&self.id, MANIFEST, &manifest.to_bytes(), prepared)?;
            }
        }
        complete(files, &manifest).map_err(|error| match error.expected() {
            Some(_) => error,
            None => error.with_expected(format!(
                "to complete the job, which has a manifest; commit it again, {}",
                commands(files, true)
            )),
        })?;
        // The job is complete. If this fails, what is left is invisible, and `resume` removes it.
        let _ = clean_up(files);
        Ok(manifest)
    }

    /// Removes the job and all of its parts. Calling this again does nothing.
    ///
    /// # Errors
    /// Returns [`ErrorKind::AlreadyExists`] if the job is complete, and the errors of the file system or of the store.
    pub fn abort(&self) -> Result<()> {
        let files = self.place.files();
        let is_own = match stored::read_lock(files)? {
            Lock::Of(id, _) => id == self.id,
            Lock::Free => files.exists(MANIFEST)?,
            Lock::Unreadable => false,
        };
        if is_own { remove(files).map(|_| ()) } else { Ok(()) }
    }
}

/// Completes the job of a directory whose driver was killed after it had written the manifest. If the job is complete,
/// this only removes what is left of its staging.
///
/// All parts are read, and compared with their hashes, before the first one is moved. In a store, a part that is not
/// visible cannot be read; all parts must exist before the first one is completed.
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
/// damaged or a part is missing or has changed; and the errors of the file system or of the store.
pub fn resume(directory: impl Into<Directory>) -> Result<Manifest> {
    let place = directory.into().find()?;
    let files = place.files();
    let refused = |found: String, expected: String| {
        let name = files.name();
        Err(Error::new(ErrorKind::JobIncomplete).with_name(name).with_found(found).with_expected(expected))
    };
    let lock = stored::read_lock(files)?;
    let Some(manifest) = Manifest::read(files)? else {
        return match lock {
            Lock::Free => refused("no job".to_string(), format!("the directory of a job, with {MANIFEST}")),
            Lock::Of(..) | Lock::Unreadable => refused(
                "a job without a manifest, of which no part is visible".to_string(),
                format!("{MANIFEST}; {}, and start the job again", commands(files, false)),
            ),
        };
    };
    if !files.exists(SUCCESS)? {
        match lock {
            Lock::Of(id, _) if id != manifest.job => {
                return refused(
                    format!("the lock of the job {id} and the manifest of the job {}", manifest.job),
                    "files of one job".to_string(),
                );
            }
            _ => {}
        }
        if files.is_stopped(&manifest)? {
            return refused(
                format!("the job {}, whose removal has begun", manifest.job),
                format!("a job that was not aborted; {}", commands(files, false)),
            );
        }
        files.check_all(&manifest.parts)?;
        complete(files, &manifest)?;
    }
    files.check_visible(&manifest.parts)?;
    clean_up(files)?;
    Ok(manifest)
}

/// Removes the unfinished job of a directory: its parts, its manifest, and the lock, so that another job can begin.
/// Returns whether there was one.
///
/// If the job is running, it fails. Parts that are visible already are removed too.
///
/// # Errors
/// Returns [`ErrorKind::AlreadyExists`] if the job is complete, [`ErrorKind::JobIncomplete`] if neither the lock nor
/// the manifest shows its id, and the errors of the file system or of the store.
pub fn abort(directory: impl Into<Directory>) -> Result<bool> {
    remove(directory.into().find()?.files())
}

/// Removes the unfinished job of a directory. Returns whether there was one.
fn remove(files: &dyn Files) -> Result<bool> {
    let check_unfinished = || -> Result<()> {
        if !(files.exists(SUCCESS)? && files.exists(MANIFEST)?) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::AlreadyExists)
            .with_name(files.name())
            .with_found(format!("a complete job, with {SUCCESS}"))
            .with_expected("an unfinished job; to discard its output, remove the directory"))
    };
    check_unfinished()?;
    let mut jobs = match (stored::read_lock(files)?, Manifest::read(files)) {
        (Lock::Free, Ok(None)) if !files.has_staged()? => return Ok(false),
        (Lock::Of(id, _), _) => vec![id],
        (_, Ok(Some(manifest))) => vec![manifest.job],
        (_, Ok(None)) => files.staged_jobs()?,
        (_, Err(error)) => return Err(error),
    };
    files.stop(&jobs)?;
    // From now on the driver, if it is running, can neither write the manifest nor reveal parts nor complete the job.
    // Until now it could.
    check_unfinished()?;
    let written = Manifest::read(files);
    if let (true, Ok(Some(written))) = (jobs.is_empty(), &written) {
        jobs.push(written.job.clone());
    }
    files.remove_parts(&jobs)?;
    // Another process may have removed the job meanwhile, and another job may have begun.
    if !written.is_ok_and(|written| written.is_some_and(|written| !jobs.contains(&written.job))) {
        files.remove(MANIFEST)?;
    }
    files.remove_stopped()?;
    match stored::read_lock(files)? {
        Lock::Of(id, _) if !jobs.contains(&id) => {}
        _ => files.remove(LOCK)?,
    }
    files.sync()?;
    Ok(true)
}

/// Returns the paths of a complete job's parts, in the order of their tasks, or `None` if the directory has no job.
///
/// Other files in the directory are ignored.
///
/// # Errors
/// Returns [`ErrorKind::JobIncomplete`] if the job is not complete, and the error names the command to run; or if the
/// manifest is damaged, or a part is missing or has another size; [`ErrorKind::InvalidOption`] for a URL; and the
/// errors of the file system.
pub fn parts(directory: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
    let directory = directory.as_ref();
    let text = directory.to_string_lossy();
    if Remote::is_url(text.as_bytes()) {
        return Err(Error::new(ErrorKind::InvalidOption)
            .with_name(Remote::new(text).name())
            .with_found("a URL")
            .with_expected("a path; `objects` returns the parts of a URL"));
    }
    let place = Directory::from(directory).named()?;
    let parts = visible(place.files())?;
    Ok(parts.map(|parts| parts.iter().map(|part| directory.join(part.name())).collect()))
}

/// Returns the objects of a complete job's parts, like [`parts`], with the options of `directory`.
///
/// # Errors
/// Returns the errors of [`parts`], [`ErrorKind::Unsupported`] for a URL that is not of `s3://` or `gs://`, and the
/// errors of the store.
pub fn objects(directory: impl Into<Remote>) -> Result<Option<Vec<Remote>>> {
    let store = Store::new(&directory.into())?;
    let parts = visible(&store)?;
    Ok(parts.map(|parts| parts.iter().map(|part| store.at(&part.name())).collect()))
}

/// Returns whether a URL is that of a directory, which can have a job: whether it ends with `/`, and is not of a web
/// server.
#[doc(hidden)] // for the command line and the packages of other languages
pub fn is_directory(url: &str) -> bool {
    url.ends_with('/') && Store::new(&Remote::new(url)).is_ok()
}

/// Fails if one of these objects of a list is a part of an unfinished job, of which the list has only some parts.
/// `remote` adds the options to a URL.
///
/// # Errors
/// Returns the errors of [`objects`].
#[doc(hidden)] // for the command line and the packages of other languages
pub fn check_objects(urls: &[String], remote: impl Fn(&str) -> Remote) -> Result<()> {
    let directories = urls.iter().filter_map(|url| {
        let (directory, name) = url.rsplit_once('/')?;
        layout::job_of_part(name).map(|_| directory)
    });
    let mut directories: Vec<&str> = directories.collect();
    directories.dedup();
    directories
        .into_iter()
        .filter(|directory| Store::new(&remote(directory)).is_ok())
        .try_for_each(|directory| objects(remote(directory)).map(drop))
}

/// Returns the parts of a complete job, if the directory has one.
fn visible(files: &dyn Files) -> Result<Option<Vec<Part>>> {
    // This is looked at first: a job that completes at this moment must not be taken for an unfinished one.
    let (lock, has_manifest) = (files.exists(LOCK)?, files.exists(MANIFEST)?);
    if !files.exists(SUCCESS)? {
        if !lock && !has_manifest {
            return Ok(None);
        }
        return Err(Error::new(ErrorKind::JobIncomplete)
            .with_name(files.name())
            .with_found(format!("an unfinished job, without {SUCCESS}"))
            .with_expected(format!(
                "a complete job; if its driver is not running any more, {}",
                commands(files, has_manifest)
            )));
    }
    let Some(manifest) = Manifest::read(files)? else { return Ok(None) };
    files.check_visible(&manifest.parts)?;
    Ok(Some(manifest.parts))
}

/// Makes all parts visible, and creates `_SUCCESS`.
fn complete(files: &dyn Files, manifest: &Manifest) -> Result<()> {
    files.reveal(&manifest.parts)?;
    match files.publish(&manifest.job, SUCCESS, b"", manifest.success.as_ref()) {
        // Another process has completed the job, and removed what was staged.
        Err(_) if files.exists(SUCCESS)? => files.sync(),
        published => published,
    }
}

/// Removes what a complete job needs no more.
fn clean_up(files: &dyn Files) -> Result<()> {
    // No other job can begin in the directory of a complete one.
    files.clean_up()?;
    files.remove(LOCK)
}

/// The error of a call after the end of the job.
fn is_over(files: &dyn Files, job: &str) -> Error {
    Error::new(ErrorKind::Closed)
        .with_name(files.name())
        .with_found(format!("no unfinished job {job}"))
        .with_expected("a job that is neither committed nor aborted, in a directory that all machines share")
}

/// Returns what to do about the unfinished job of a directory.
fn commands(files: &dyn Files, resumable: bool) -> String {
    let directory = files.name();
    let abort = format!("`millstream commit abort {directory}`");
    if resumable {
        format!("complete it with `millstream commit resume {directory}`, or remove it with {abort}")
    } else {
        format!("remove it with {abort}")
    }
}

/// Returns 32 random hexadecimal digits.
fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::from_io(std::io::Error::other(error)))?;
    Ok(HEXLOWER.encode(&bytes))
}
