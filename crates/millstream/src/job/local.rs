//! The files of a job in a directory, which all of its processes share.
//!
//! In addition to those of [`layout`](super::layout), of the job `ID`:
//!
//! | name | content |
//! |---|---|
//! | `.millstream-job-ID/` | the staging directory: a file for each successful attempt of a task |
//! | `.millstream-job-ID.removed/` | a staging directory that is being removed |
//!
//! The manifest, the parts and `_SUCCESS` come out of the staging directory by rename(2). So renaming this directory is
//! the step that stops a job.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use millstream_remote::StagedObject;

use crate::error::{Error, ErrorKind, Result};
use crate::writer::{Durability, Existing, Writer};

use super::files::{Files, Output, Prepared};
use super::layout::{self, LOCK};
use super::part::shown_hash;
use super::{Manifest, Part};

const STAGING: &str = ".millstream-job-";
const REMOVED: &str = ".removed";

/// The number of times that a directory is removed again because a late attempt has created a file in it.
const REMOVALS: usize = 100;

/// A directory, by its absolute path.
#[derive(Clone, Debug)]
pub(super) struct Local(PathBuf);

impl Local {
    /// Creates a directory, if it does not exist.
    pub(super) fn create(path: &Path) -> Result<Local> {
        fs::create_dir_all(path).map_err(open_failed(path))?;
        let local = Local::find(path)?;
        if local.0.to_str().is_none() {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_name(local.name())
                .with_found("a path that is not UTF-8")
                .with_expected("UTF-8, because the path is sent to other processes"));
        }
        Ok(local)
    }

    /// Finds an existing directory.
    pub(super) fn find(path: &Path) -> Result<Local> {
        fs::canonicalize(path).map(Local).map_err(open_failed(path))
    }

    /// Returns a directory as it is named, without a system call.
    pub(super) fn named(path: PathBuf) -> Local {
        Local(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a job's staging directory.
    fn staging(&self, job: &str) -> PathBuf {
        self.0.join(format!("{STAGING}{job}"))
    }

    /// Returns the path that the staging directory has while it is being removed.
    fn retired(&self, job: &str) -> PathBuf {
        self.0.join(format!("{STAGING}{job}{REMOVED}"))
    }

    /// Returns the path that the file of a part has before it is visible.
    fn staged(&self, part: &Part) -> PathBuf {
        self.staging(&part.job).join(staged_name(&part.job, part.task, &part.attempt))
    }

    /// Returns the path that the file of a part has when it is visible.
    fn visible(&self, part: &Part) -> PathBuf {
        self.0.join(part.name())
    }

    /// Returns the ids of the jobs that have a directory whose name is that of a staging directory with this ending.
    fn ids(&self, ending: &str) -> Result<Vec<String>> {
        let id_of = |name: &OsString| {
            let id = name.to_str()?.strip_prefix(STAGING)?.strip_suffix(ending)?;
            layout::is_job_id(id).then(|| id.to_string())
        };
        Ok(names(&self.0)?.iter().filter_map(id_of).collect())
    }

    /// Renames the staging directory of a job. From then on, no attempt can begin to finish and no process can begin to
    /// move a part: see [`empty_retired`](Local::empty_retired) for those that have begun.
    fn retire(&self, job: &str) -> Result<()> {
        let path = self.staging(job);
        match fs::rename(&path, self.retired(job)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes the files in the staging directories that [`retire`](Local::retire) has renamed.
    ///
    /// A process that moves a file at the same time may have found the directory before it was renamed. When this
    /// returns, that file is visible, or it will never be.
    fn empty_retired(&self) -> Result<()> {
        for id in self.ids(REMOVED)? {
            let path = self.retired(&id);
            // Another process may remove the directory at the same time.
            let names = names(&path).or_else(|error| if exists(&path)? { Err(error) } else { Ok(Vec::new()) })?;
            names.iter().try_for_each(|name| remove_file(&path.join(name)))?;
        }
        Ok(())
    }
}

impl Files for Local {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn name_of(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>> {
        let path = self.0.join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn exists(&self, file: &str) -> Result<bool> {
        exists(&self.0.join(file))
    }

    fn remove(&self, file: &str) -> Result<()> {
        remove_file(&self.0.join(file))
    }

    fn sync(&self) -> Result<()> {
        File::open(&self.0).and_then(|open| open.sync_all()).map_err(at(&self.0))
    }

    fn any_other(&self, job: &str, locked: bool) -> Result<Option<String>> {
        let (names, staging) = (names(&self.0)?, self.staging(job));
        let other = names.iter().find(|name| self.0.join(name) != staging && !(locked && *name == LOCK));
        Ok(other.map(|name| name.display().to_string()))
    }

    fn lock(&self, content: &[u8]) -> Result<bool> {
        let path = self.0.join(LOCK);
        match create(&path, content) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => {
                let _ = remove_file(&path);
                Err(open_failed(&path)(error))
            }
        }
    }

    fn prepare(&self, job: &str) -> Result<Option<Prepared>> {
        let staging = self.staging(job);
        match fs::create_dir(&staging) {
            // Another process prepares the same job.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created.map_err(open_failed(&staging))?,
        }
        self.sync().inspect_err(|_| drop(fs::remove_dir(&staging)))?;
        Ok(None)
    }

    fn is_open(&self, job: &str) -> Result<bool> {
        exists(&self.staging(job))
    }

    fn stage(&self, job: &str, task: u64, attempt: &str, _: &str) -> Result<Output> {
        let path = self.staging(job).join(staged_name(job, task, attempt));
        let writer = Writer::builder().existing(Existing::CreateNew).durability(Durability::All).path(path)?;
        Ok(Output::File(writer))
    }

    fn check_staged(&self, parts: &[Part]) -> Result<()> {
        // The parts' names in the staging directory were synced by the machines of their tasks.
        parts.iter().try_for_each(|part| {
            let path = self.staged(part);
            match check(part, &path, false)? {
                true => Ok(()),
                false => Err(missing(&path, part, "its file in the staging directory".to_string())),
            }
        })
    }

    fn publish(&self, job: &str, file: &str, content: &[u8], _: Option<&StagedObject>) -> Result<()> {
        let (staged, target) = (self.staging(job).join(file), self.0.join(file));
        // An earlier attempt may have been killed before it renamed the file.
        remove_file(&staged)?;
        create(&staged, content).map_err(at(&staged))?;
        fs::rename(&staged, &target).map_err(at(&target))?;
        self.sync()
    }

    fn check_all(&self, parts: &[Part]) -> Result<()> {
        parts.iter().try_for_each(|part| {
            let (staged, visible) = (self.staged(part), self.visible(part));
            // Another process may move it between the two checks.
            match check(part, &staged, true)? || check(part, &visible, true)? {
                true => Ok(()),
                false => Err(missing(&visible, part, format!("its file there, or {}", staged.display()))),
            }
        })
    }

    fn reveal(&self, parts: &[Part]) -> Result<()> {
        for part in parts {
            let (staged, visible) = (self.staged(part), self.visible(part));
            match fs::rename(&staged, &visible) {
                Ok(()) => {}
                // An earlier run, or another process that completes the job, has moved it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !check(part, &visible, false)? {
                        return Err(missing(&visible, part, format!("its file there, or {}", staged.display())));
                    }
                }
                Err(error) => return Err(at(&visible)(error)),
            }
        }
        self.sync()
    }

    fn check_visible(&self, parts: &[Part]) -> Result<()> {
        parts.iter().try_for_each(|part| {
            let path = self.visible(part);
            match check(part, &path, false)? {
                true => Ok(()),
                false => Err(missing(&path, part, "its file".to_string())),
            }
        })
    }

    fn is_stopped(&self, manifest: &Manifest) -> Result<bool> {
        exists(&self.retired(&manifest.job))
    }

    fn has_staged(&self) -> Result<bool> {
        Ok(!self.ids("")?.is_empty() || !self.ids(REMOVED)?.is_empty())
    }

    fn staged_jobs(&self) -> Result<Vec<String>> {
        self.ids("")
    }

    fn stop(&self, jobs: &[String]) -> Result<()> {
        jobs.iter().try_for_each(|job| self.retire(job))?;
        self.empty_retired()
    }

    fn remove_parts(&self, jobs: &[String]) -> Result<()> {
        for name in names(&self.0)? {
            let job = name.to_str().and_then(layout::job_of_part);
            if job.is_some_and(|job| jobs.iter().any(|one| one == job)) {
                remove_file(&self.0.join(name))?;
            }
        }
        self.sync()
    }

    fn remove_stopped(&self) -> Result<()> {
        for id in self.ids(REMOVED)? {
            remove_directory(&self.retired(&id))?;
        }
        self.sync()
    }

    fn clean_up(&self) -> Result<()> {
        for id in self.ids("")? {
            self.retire(&id)?;
        }
        self.remove_stopped()
    }
}

/// Returns the name of an attempt's file in the staging directory.
fn staged_name(job: &str, task: u64, attempt: &str) -> String {
    format!("{job}-{task:05}-{attempt}")
}

/// Fails unless the file at this path has the size of the part and, if requested, its hash. Returns whether there is a
/// file.
fn check(part: &Part, path: &Path, hash: bool) -> Result<bool> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(at(path)(error)),
    };
    if size != part.size {
        return Err(part.changed(path.display().to_string(), format!("{size} bytes"), format!("{} bytes", part.size)));
    }
    if hash {
        let mut hasher = blake3::Hasher::new();
        let file = File::open(path).map_err(at(path))?;
        hasher.update_reader(file).map_err(at(path))?;
        let found = shown_hash(&hasher);
        if found != part.hash {
            return Err(part.changed(path.display().to_string(), format!("the hash {found}"), part.hash.clone()));
        }
    }
    Ok(true)
}

fn missing(path: &Path, part: &Part, expected: String) -> Error {
    part.missing(path.display().to_string(), "file", expected)
}

fn open_failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let name = path.display().to_string();
    move |error| Error::new(ErrorKind::OpenFailed).with_io(error).with_name(name.clone())
}

/// Adds the path to an error of the operating system.
fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    let name = path.display().to_string();
    move |error| Error::from_io(error).with_name(name.clone())
}

/// Returns whether anything has this path.
fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path)(error)),
    }
}

/// Creates a file whose content is on the disk when this returns. Its name is not: see [`Files::sync`].
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Removes a file, if it exists.
fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Returns the names in a directory.
fn names(directory: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(at(directory)));
    names.collect()
}

/// Removes a directory with all of its content. Attempts that opened their files before the directory was renamed may
/// still create them.
fn remove_directory(path: &Path) -> Result<()> {
    let mut removals = 0..REMOVALS;
    loop {
        removals.next();
        match fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && !removals.is_empty() => {}
            Err(error) => return Err(at(path)(error)),
        }
    }
}
