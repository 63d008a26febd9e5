//! The names of a job's files, and the operations on them.
//!
//! In the target directory of the job `ID`, which is 32 hexadecimal digits:
//!
//! | name | content |
//! |---|---|
//! | `.millstream-job.lock` | the job that owns the directory; created first, removed last |
//! | `.millstream-job-ID/` | the staging directory: a file for each successful attempt of a task |
//! | `.millstream-job-ID.removed/` | a staging directory that is being removed |
//! | `_millstream.json` | the manifest |
//! | `part-00000-ID.csv` | the part of task 0 |
//! | `_SUCCESS` | all parts are visible |
//!
//! Names that begin with `.` or `_` are ignored by the readers of Hadoop, Spark, Hive and pyarrow.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

pub(super) const LOCK: &str = ".millstream-job.lock";
pub(super) const MANIFEST: &str = "_millstream.json";
pub(super) const SUCCESS: &str = "_SUCCESS";
const STAGING: &str = ".millstream-job-";
const REMOVED: &str = ".removed";

/// The longest extension of a part.
const MAX_EXTENSION: usize = 32;

/// The number of times that a directory is removed again because a late attempt has created a file in it.
const REMOVALS: usize = 100;

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

/// Returns the path of a job's staging directory.
pub(super) fn staging(directory: &Path, job: &str) -> PathBuf {
    directory.join(format!("{STAGING}{job}"))
}

/// Returns the name of an attempt's file in the staging directory.
pub(super) fn staged_name(job: &str, task: u64, attempt: &str) -> String {
    format!("{job}-{task:05}-{attempt}")
}

/// Returns the name of a task's part in the target directory.
pub(super) fn final_name(job: &str, task: u64, extension: &str) -> String {
    format!("part-{task:05}-{job}{extension}")
}

/// Returns whether a name is that of a part of this job.
fn is_part_of(name: &OsStr, job: &str) -> bool {
    let parts = name.to_str().and_then(|name| name.strip_prefix("part-")?.split_once('-'));
    parts.is_some_and(|(task, rest)| {
        !task.is_empty() && task.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(job)
    })
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

/// Adds the path to an error of the operating system.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    let name = path.display().to_string();
    move |error| Error::from_io(error).with_name(name.clone())
}

/// Returns whether anything has this path.
pub(super) fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path)(error)),
    }
}

/// Reads a file, if it exists.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Creates a file whose content is on the disk when this returns. Its name is not: see [`sync`].
pub(super) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Waits until the names in a directory are on the disk.
pub(super) fn sync(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|open| open.sync_all()).map_err(at(directory))
}

/// Creates a file in the staging directory, on the disk, and then gives it its name. It fails without a trace if the
/// staging directory is gone.
pub(super) fn publish(staging: &Path, target: &Path, content: &[u8]) -> Result<()> {
    let directory = target.parent().unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default();
    let staged = staging.join(name);
    // An earlier attempt may have been killed before it renamed the file.
    remove_file(&staged)?;
    create(&staged, content).map_err(at(&staged))?;
    fs::rename(&staged, target).map_err(at(target))?;
    sync(directory)
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Returns the names in a directory.
pub(super) fn names(directory: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(at(directory)));
    names.collect()
}

/// Returns the ids of the jobs that have a directory whose name is that of a staging directory with this ending.
fn ids(directory: &Path, ending: &str) -> Result<Vec<String>> {
    let id_of = |name: &OsString| {
        let id = name.to_str()?.strip_prefix(STAGING)?.strip_suffix(ending)?;
        is_job_id(id).then(|| id.to_string())
    };
    Ok(names(directory)?.iter().filter_map(id_of).collect())
}

/// Returns the ids of the jobs that have a staging directory.
pub(super) fn staging_ids(directory: &Path) -> Result<Vec<String>> {
    ids(directory, "")
}

/// Returns whether there is any staging directory, also one that is being removed.
pub(super) fn has_staging(directory: &Path) -> Result<bool> {
    Ok(!staging_ids(directory)?.is_empty() || !ids(directory, REMOVED)?.is_empty())
}

/// Renames the staging directory of a job. From then on, no attempt can begin to finish and no process can begin to move a
/// part: see [`empty_retired`] for those that have begun.
pub(super) fn retire_staging(directory: &Path, job: &str) -> Result<()> {
    let path = staging(directory, job);
    match fs::rename(&path, retired(directory, job)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&path)(error)),
        _ => Ok(()),
    }
}

fn retired(directory: &Path, job: &str) -> PathBuf {
    directory.join(format!("{STAGING}{job}{REMOVED}"))
}

/// Returns whether the removal of a job's staging directory has begun.
pub(super) fn is_retired(directory: &Path, job: &str) -> Result<bool> {
    exists(&retired(directory, job))
}

/// Removes the files in the staging directories that [`retire_staging`] has renamed.
///
/// A process that moves a file at the same time may have found the directory before it was renamed. When this returns, that
/// file is visible, or it will never be.
pub(super) fn empty_retired(directory: &Path) -> Result<()> {
    for id in ids(directory, REMOVED)? {
        let path = retired(directory, &id);
        // Another process may remove the directory at the same time.
        let names = names(&path).or_else(|error| if exists(&path)? { Err(error) } else { Ok(Vec::new()) })?;
        names.iter().try_for_each(|name| remove_file(&path.join(name)))?;
    }
    Ok(())
}

/// Removes the staging directories that [`retire_staging`] has renamed.
pub(super) fn remove_retired(directory: &Path) -> Result<()> {
    for id in ids(directory, REMOVED)? {
        remove_directory(&retired(directory, &id))?;
    }
    Ok(())
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

/// Removes the visible parts of a job.
pub(super) fn remove_parts(directory: &Path, job: &str) -> Result<()> {
    for name in names(directory)?.iter().filter(|name| is_part_of(name, job)) {
        remove_file(&directory.join(name))?;
    }
    Ok(())
}
