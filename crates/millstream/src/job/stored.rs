//! The lock, the manifest and the values that processes exchange, as JSON.
//!
//! The format has a version: see [`versioned`].

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::versioned::{self, Invalid};

use super::layout::{self, LOCK, MANIFEST};
use super::part::shown_hash;
use super::{Job, Manifest, Part};

/// The version that this library writes. It reads this version and all earlier ones.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLock {
    version: u32,
    job: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredJob {
    version: u32,
    job: String,
    directory: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPart {
    task: u64,
    attempt: String,
    /// The name of the file.
    name: String,
    size: u64,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredResult {
    version: u32,
    job: String,
    part: StoredPart,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredManifest {
    version: u32,
    job: String,
    parts: Vec<StoredPart>,
    /// The hash of `parts` as this library prints them, to detect a manifest that was changed or damaged.
    checksum: String,
}

impl Invalid {
    /// The error for a file in the target directory.
    fn of_file(self, path: &Path, what: &str, advice: &str) -> Error {
        self.error(ErrorKind::JobIncomplete, what, advice).with_name(path.display().to_string())
    }

    /// The error for a value of another process.
    fn of_value(self, what: &str) -> Error {
        self.error(ErrorKind::InvalidOption, what, "the unchanged JSON that `to_json` returned")
    }
}

fn print(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the fields have no maps and cannot fail")
}

fn check_job_id(id: String) -> Result<String, Invalid> {
    match layout::is_job_id(&id) {
        true => Ok(id),
        false => Err(Invalid::Content(format!("the id {id:?} of a job"))),
    }
}

/// Returns the content of the lock of a job.
pub(super) fn lock(job: &str) -> Vec<u8> {
    let lock = print(&StoredLock { version: VERSION, job: job.to_string() });
    format!("{lock}\n").into_bytes()
}

/// What the lock of a directory says.
pub(super) enum Lock {
    /// There is none.
    Free,
    /// The job with this id has the directory.
    Of(String),
    /// The process was killed, or the machine lost power, before it had written the id.
    Unreadable,
}

/// Reads the lock of a directory.
pub(super) fn read_lock(directory: &Path) -> Result<Lock> {
    let Some(json) = layout::read(&directory.join(LOCK))? else { return Ok(Lock::Free) };
    let id = versioned::parse::<StoredLock>(&json, VERSION).and_then(|lock| check_job_id(lock.job));
    Ok(id.map_or(Lock::Unreadable, Lock::Of))
}

impl Job {
    /// Returns the job as one line of JSON, which can be sent to the processes that write its parts.
    ///
    /// ```
    /// # use millstream::job::Job;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let job = Job::begin(temporary.path().join("out"))?;
    /// assert_eq!(Job::from_json(&job.to_json())?, job);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let directory = self.directory.to_string_lossy().into_owned();
        print(&StoredJob { version: VERSION, job: self.id.clone(), directory })
    }

    /// Parses a job from JSON.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the JSON is not a job, and [`ErrorKind::Unsupported`] for another version
    /// of the format.
    pub fn from_json(json: &str) -> Result<Job> {
        let job = versioned::parse::<StoredJob>(json.as_bytes(), VERSION)
            .and_then(|stored| Ok(Job { id: check_job_id(stored.job)?, directory: stored.directory.into() }));
        job.map_err(|invalid| invalid.of_value("a job"))
    }
}

impl Part {
    /// Returns the part as one line of JSON, which can be sent to the process that commits the job.
    pub fn to_json(&self) -> String {
        print(&StoredResult { version: VERSION, job: self.job.clone(), part: self.to_stored() })
    }

    /// Parses a part from JSON.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the JSON is not a part, and [`ErrorKind::Unsupported`] for another version
    /// of the format.
    pub fn from_json(json: &str) -> Result<Part> {
        let part = versioned::parse::<StoredResult>(json.as_bytes(), VERSION).and_then(|stored| {
            let job = check_job_id(stored.job)?;
            Part::from_stored(&job, stored.part)
        });
        part.map_err(|invalid| invalid.of_value("a part"))
    }

    fn to_stored(&self) -> StoredPart {
        let Part { task, ref attempt, size, ref hash, records, .. } = *self;
        StoredPart { task, attempt: attempt.clone(), name: self.name(), size, hash: hash.clone(), records }
    }

    /// Checks all fields: the names of files that are moved and removed are made of them.
    fn from_stored(job: &str, stored: StoredPart) -> Result<Part, Invalid> {
        let StoredPart { task, attempt, name, size, hash, records } = stored;
        let wrong = |what: &str, text: &str| Invalid::Content(format!("the {what} {text:?} of task {task}"));
        if !layout::is_attempt_id(&attempt) {
            return Err(wrong("attempt", &attempt));
        }
        let extension = name.strip_prefix(&layout::final_name(job, task, "")).ok_or_else(|| wrong("name", &name))?;
        layout::check_extension(extension).map_err(|_| wrong("name", &name))?;
        let extension = extension.to_string();
        Ok(Part { job: job.to_string(), task, attempt, extension, size, hash, records })
    }
}

fn checksum(parts: &[StoredPart]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(print(&parts).as_bytes());
    shown_hash(&hasher)
}

impl Manifest {
    /// Returns the content of the manifest, with each part on its own line.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let parts: Vec<StoredPart> = self.parts.iter().map(Part::to_stored).collect();
        let checksum = checksum(&parts);
        let lines: Vec<String> = parts.iter().map(print).collect();
        let job = &self.job;
        format!(
            "{{\"version\":{VERSION},\"job\":\"{job}\",\"checksum\":\"{checksum}\",\"parts\":[\n{}\n]}}\n",
            lines.join(",\n")
        )
        .into_bytes()
    }

    /// Reads the manifest of a directory, if there is one.
    pub(super) fn read(directory: &Path) -> Result<Option<Manifest>> {
        let path = directory.join(MANIFEST);
        let Some(json) = layout::read(&path)? else { return Ok(None) };
        let advice = format!(
            "the manifest that the job wrote; restore it, or remove the job with `millstream commit abort {}`",
            directory.display()
        );
        Manifest::parse(&json).map(Some).map_err(|invalid| invalid.of_file(&path, "a manifest", &advice))
    }

    fn parse(json: &[u8]) -> Result<Manifest, Invalid> {
        let stored: StoredManifest = versioned::parse(json, VERSION)?;
        let job = check_job_id(stored.job)?;
        if stored.checksum != checksum(&stored.parts) {
            return Err(Invalid::Content("its checksum is that of other parts".to_string()));
        }
        let parts = stored.parts.into_iter().map(|part| Part::from_stored(&job, part));
        Ok(Manifest { parts: parts.collect::<Result<_, _>>()?, job })
    }
}
