//! The lock, the manifest and the values that processes exchange, as JSON.
//!
//! The format has a version: see [`versioned`].

use millstream_remote::StagedObject;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::versioned::{self, Invalid};

use super::files::{Files, Prepared};
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
    /// What a job in a store publishes, for processes that join it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manifest: Option<StoredObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<StoredObject>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredJob {
    version: u32,
    job: String,
    /// A path or a URL.
    directory: String,
    /// What a job in a store publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manifest: Option<StoredObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<StoredObject>,
}

/// A staged object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredObject {
    upload: String,
    /// The identity of the write.
    write: String,
    tags: Vec<String>,
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
    /// The upload of a part in a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    staged: Option<StoredObject>,
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
    /// `_SUCCESS` of a job in a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<StoredObject>,
    /// The hash of `parts` and `success` as this library prints them, to detect a manifest that was changed or damaged.
    checksum: String,
}

impl StoredObject {
    fn new(object: &StagedObject) -> StoredObject {
        let StagedObject { upload, id, tags, .. } = object.clone();
        StoredObject { upload, write: id, tags }
    }

    fn parse(self, size: u64) -> Result<StagedObject, Invalid> {
        let StoredObject { upload, write: id, tags } = self;
        // The identity is sent in a header.
        match layout::is_job_id(&id) && !upload.is_empty() && !tags.is_empty() {
            true => Ok(StagedObject { upload, id, tags, size }),
            false => Err(Invalid::Content(format!("the upload {upload:?} of the write {id:?}"))),
        }
    }
}

impl Invalid {
    /// The error for a file in the target directory.
    fn of_file(self, name: String, what: &str, advice: &str) -> Error {
        self.error(ErrorKind::JobIncomplete, what, advice).with_name(name)
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

/// Returns what a job in a store publishes, as it is stored.
fn stored_prepared(job: &Job) -> (Option<StoredObject>, Option<StoredObject>) {
    let stored = |prepared: &Prepared| (StoredObject::new(&prepared.manifest), StoredObject::new(&prepared.success));
    job.prepared.as_ref().map(stored).unzip()
}

fn parse_prepared(manifest: Option<StoredObject>, success: Option<StoredObject>) -> Result<Option<Prepared>, Invalid> {
    let (Some(manifest), Some(success)) = (manifest, success) else { return Ok(None) };
    Ok(Some(Prepared { manifest: manifest.parse(0)?, success: success.parse(0)? }))
}

/// Returns the content of the lock of a job.
pub(super) fn lock(job: &Job) -> Vec<u8> {
    let (manifest, success) = stored_prepared(job);
    let lock = print(&StoredLock { version: VERSION, job: job.id.clone(), manifest, success });
    format!("{lock}\n").into_bytes()
}

/// What the lock of a directory says.
pub(super) enum Lock {
    /// There is none.
    Free,
    /// The job with this id has the directory. In a store, processes that join it publish what it has prepared.
    Of(String, Option<Prepared>),
    /// The process was killed, or the machine lost power, before it had written the id.
    Unreadable,
}

/// Reads the lock of a directory.
pub(super) fn read_lock(files: &dyn Files) -> Result<Lock> {
    let Some(json) = files.read(LOCK)? else { return Ok(Lock::Free) };
    let lock = versioned::parse::<StoredLock>(&json, VERSION)
        .and_then(|lock| Ok(Lock::Of(check_job_id(lock.job)?, parse_prepared(lock.manifest, lock.success)?)));
    Ok(lock.unwrap_or(Lock::Unreadable))
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
        let (manifest, success) = stored_prepared(self);
        let directory = self.place.files().name();
        print(&StoredJob { version: VERSION, job: self.id.clone(), directory, manifest, success })
    }

    /// Parses a job from JSON.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the JSON is not a job, and [`ErrorKind::Unsupported`] for another
    /// version of the format.
    pub fn from_json(json: &str) -> Result<Job> {
        let job = versioned::parse::<StoredJob>(json.as_bytes(), VERSION).and_then(|stored| {
            let prepared = parse_prepared(stored.manifest, stored.success)?;
            Ok((check_job_id(stored.job)?, stored.directory, prepared))
        });
        let (id, directory, prepared) = job.map_err(|invalid| invalid.of_value("a job"))?;
        Job::named(directory, id, prepared)
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
    /// Returns [`ErrorKind::InvalidOption`] if the JSON is not a part, and [`ErrorKind::Unsupported`] for another
    /// version of the format.
    pub fn from_json(json: &str) -> Result<Part> {
        let part = versioned::parse::<StoredResult>(json.as_bytes(), VERSION).and_then(|stored| {
            let job = check_job_id(stored.job)?;
            Part::from_stored(&job, stored.part)
        });
        part.map_err(|invalid| invalid.of_value("a part"))
    }

    fn to_stored(&self) -> StoredPart {
        let Part { task, ref attempt, size, ref hash, records, ref staged, .. } = *self;
        let staged = staged.as_ref().map(StoredObject::new);
        StoredPart { task, attempt: attempt.clone(), name: self.name(), size, hash: hash.clone(), records, staged }
    }

    /// Checks all fields: the names of files that are moved and removed are made of them.
    fn from_stored(job: &str, stored: StoredPart) -> Result<Part, Invalid> {
        let StoredPart { task, attempt, name, size, hash, records, staged } = stored;
        let wrong = |what: &str, text: &str| Invalid::Content(format!("the {what} {text:?} of task {task}"));
        if !layout::is_attempt_id(&attempt) {
            return Err(wrong("attempt", &attempt));
        }
        let extension = name.strip_prefix(&layout::part_name(job, task, "")).ok_or_else(|| wrong("name", &name))?;
        layout::check_extension(extension).map_err(|_| wrong("name", &name))?;
        let extension = extension.to_string();
        let staged = staged.map(|staged| staged.parse(size)).transpose()?;
        Ok(Part { job: job.to_string(), task, attempt, extension, size, hash, records, staged })
    }
}

fn checksum(parts: &[StoredPart], success: Option<&StoredObject>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(print(&parts).as_bytes());
    if let Some(success) = success {
        hasher.update(print(success).as_bytes());
    }
    shown_hash(&hasher)
}

impl Manifest {
    /// Returns the content of the manifest, with each part on its own line.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let parts: Vec<StoredPart> = self.parts.iter().map(Part::to_stored).collect();
        let success = self.success.as_ref().map(StoredObject::new);
        let checksum = checksum(&parts, success.as_ref());
        let success = success.map(|success| format!("\"success\":{},", print(&success))).unwrap_or_default();
        let lines: Vec<String> = parts.iter().map(print).collect();
        let job = &self.job;
        format!(
            "{{\"version\":{VERSION},\"job\":\"{job}\",\"checksum\":\"{checksum}\",{success}\"parts\":[\n{}\n]}}\n",
            lines.join(",\n")
        )
        .into_bytes()
    }

    /// Reads the manifest of a directory, if there is one.
    pub(super) fn read(files: &dyn Files) -> Result<Option<Manifest>> {
        let Some(json) = files.read(MANIFEST)? else { return Ok(None) };
        let advice = format!(
            "the manifest that the job wrote; restore it, or remove the job with `millstream commit abort {}`",
            files.name()
        );
        let name = files.name_of(MANIFEST);
        Manifest::parse(&json).map(Some).map_err(|invalid| invalid.of_file(name, "a manifest", &advice))
    }

    fn parse(json: &[u8]) -> Result<Manifest, Invalid> {
        let stored: StoredManifest = versioned::parse(json, VERSION)?;
        let job = check_job_id(stored.job)?;
        if stored.checksum != checksum(&stored.parts, stored.success.as_ref()) {
            return Err(Invalid::Content("its checksum is that of other parts".to_string()));
        }
        let parts = stored.parts.into_iter().map(|part| Part::from_stored(&job, part));
        let success = stored.success.map(|success| success.parse(0)).transpose()?;
        Ok(Manifest { parts: parts.collect::<Result<_, _>>()?, job, success })
    }
}
