//! The files of a job in a store: objects whose URLs begin with a prefix.
//!
//! What is staged is an upload that is not completed, of an object with its final name. The manifest and `_SUCCESS` are
//! staged when the job begins. A store decides whether an upload is completed or removed, so removing the uploads is
//! the step that stops a job: a driver that is still running can then neither publish nor reveal anything.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use millstream_remote::{
    self as remote, Objects, Outcome, Remote, StagedObject, UnfinishedUpload, Upload, Uploads, outcome,
};

use crate::error::{Error, ErrorKind, Result};

use super::files::{Files, Output, Prepared};
use super::layout::{self, LOCK, MANIFEST, SUCCESS};
use super::stored::{self, Lock};
use super::{Manifest, Part};

/// The number of requests at a time for the objects of a job.
const REQUESTS: usize = 8;

/// The smallest size of a part that stores have. The lock is shorter.
const LOCK_PART: u64 = 5 << 20;

/// The number of times that uploads are listed and removed: a store may still be receiving a part of one that is
/// removed.
const REMOVALS: usize = 10;

/// The objects whose URLs begin with that of `remote` and a `/`.
#[derive(Clone, Debug)]
pub(super) struct Store {
    remote: Remote,
}

impl Store {
    /// Checks the URL and the options, without a request.
    pub(super) fn new(remote: &Remote) -> Result<Store> {
        let (scheme, rest) = remote.url().split_once("://").unwrap_or(("", remote.url()));
        let url = format!("{}://{}", scheme.to_ascii_lowercase(), rest.trim_end_matches('/'));
        let store = Store { remote: remote.at(url) };
        store.remote.check_staging()?;
        Ok(store)
    }

    pub(super) fn url(&self) -> &str {
        self.remote.url()
    }

    /// Returns the object of a file.
    pub(super) fn at(&self, file: &str) -> Remote {
        self.remote.at(format!("{}/{file}", self.remote.url()))
    }

    fn at_part(&self, part: &Part) -> Remote {
        self.at(&part.name())
    }

    /// Returns the name of the file with this URL.
    fn file_of<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(self.remote.url())?.strip_prefix('/')
    }

    /// Returns the sizes of all parts of jobs that are visible, by their names.
    fn visible(&self) -> Result<HashMap<String, u64>> {
        let mut visible = HashMap::new();
        for object in Objects::new(self.at(""))? {
            let object = object?;
            if let Some(file) = self.file_of(&object.url).filter(|file| layout::job_of_part(file).is_some()) {
                visible.insert(file.to_string(), object.size);
            }
        }
        Ok(visible)
    }

    /// Returns the unfinished uploads of a job's files.
    fn uploads(&self) -> Result<Vec<(String, UnfinishedUpload)>> {
        let mut found = Vec::new();
        for upload in Uploads::new(self.at(""))? {
            let upload = upload?;
            if let Some(file) = self.file_of(&upload.url).filter(|file| is_own(file)) {
                found.push((file.to_string(), upload));
            }
        }
        Ok(found)
    }

    /// Removes the uploads of the files that are `chosen` by their names.
    fn remove_uploads(&self, chosen: impl Fn(&str) -> bool) -> Result<()> {
        let removing = Uploads::new(self.at(""))?;
        for _ in 0..REMOVALS {
            let mut uploads = self.uploads()?;
            uploads.retain(|(file, _)| chosen(file));
            if uploads.is_empty() {
                return Ok(());
            }
            each(&uploads, |(_, upload)| removing.abort(upload))?;
        }
        Err(Error::new(ErrorKind::RemoteFailed)
            .with_name(self.name())
            .with_found("uploads that exist after they were removed")
            .with_expected("no upload of this job; stop its tasks, and try again"))
    }

    /// Returns the ids of the uploads of all parts that are staged.
    fn staged(&self) -> Result<HashSet<String>> {
        Ok(self.uploads()?.into_iter().map(|(_, upload)| upload.id).collect())
    }

    fn outcome(&self, file: &str, object: &StagedObject) -> Result<Outcome> {
        outcome(self.at(file), &object.id, Some(&object.upload))
    }

    fn stage_empty(&self, file: &str) -> Result<StagedObject> {
        Upload::open(self.at(file), false, || Ok(()))?.stage(|| Ok(()))
    }

    /// Returns whether a part is among these, and fails if it has another size.
    fn is_visible(&self, visible: &HashMap<String, u64>, part: &Part) -> Result<bool> {
        match visible.get(&part.name()) {
            None => Ok(false),
            Some(&size) if size == part.size => Ok(true),
            Some(size) => {
                let (found, expected) = (format!("{size} bytes"), format!("{} bytes", part.size));
                Err(part.changed(self.name_of(&part.name()), found, expected))
            }
        }
    }

    fn missing(&self, part: &Part) -> Error {
        part.missing(self.name_of(&part.name()), "object", "it, or its unfinished upload".to_string())
    }
}

impl Files for Store {
    fn name(&self) -> String {
        self.remote.url().to_string()
    }

    fn name_of(&self, file: &str) -> String {
        self.at(file).url().to_string()
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>> {
        remote::content(self.at(file))
    }

    fn exists(&self, file: &str) -> Result<bool> {
        Ok(remote::size(self.at(file))?.is_some())
    }

    fn remove(&self, file: &str) -> Result<()> {
        remote::remove(self.at(file))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn any_other(&self, _: &str, locked: bool) -> Result<Option<String>> {
        for object in Objects::new(self.at(""))? {
            let object = object?;
            let file = self.file_of(&object.url).unwrap_or(&object.url);
            // Some programs create the prefix itself, as a directory.
            let is_lock = locked && file == LOCK;
            if !file.is_empty() && !is_lock {
                return Ok(Some(file.to_string()));
            }
        }
        Ok(None)
    }

    fn lock(&self, content: &[u8]) -> Result<bool> {
        let create = || {
            // One part is one request, which has a condition in every store.
            let remote = self.at(LOCK).size_hint(0).part_size(LOCK_PART);
            let mut upload = Upload::open(remote, true, || Ok(()))?;
            let mut rest = content;
            while !rest.is_empty() {
                rest = &rest[upload.write(rest, || Ok(()))?..];
            }
            upload.close(|| Ok(()))
        };
        match create() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.with_name(self.name_of(LOCK))),
        }
    }

    fn prepare(&self, _: &str) -> Result<Option<Prepared>> {
        // A store without this list could not end the job.
        self.uploads()?;
        let manifest = self.stage_empty(MANIFEST)?;
        match self.stage_empty(SUCCESS) {
            Ok(success) => Ok(Some(Prepared { manifest, success })),
            Err(error) => {
                let _ = manifest.remove(self.at(MANIFEST));
                Err(error)
            }
        }
    }

    fn is_open(&self, job: &str) -> Result<bool> {
        Ok(matches!(stored::read_lock(self)?, Lock::Of(id, _) if id == job))
    }

    fn stage(&self, job: &str, task: u64, _: &str, extension: &str) -> Result<Output> {
        let remote = self.at(&layout::part_name(job, task, extension));
        let upload = Box::new(Upload::open(remote.clone(), false, || Ok(()))?);
        Ok(Output::Object { upload, remote })
    }

    fn check_staged(&self, parts: &[Part]) -> Result<()> {
        let staged = self.staged()?;
        each(parts, |part| {
            let object = part.object()?;
            match staged.contains(&object.upload) || self.outcome(&part.name(), object)? == Outcome::NotWritten {
                true => Ok(()),
                false => Err(self.missing(part)),
            }
        })
    }

    fn publish(&self, job: &str, file: &str, content: &[u8], prepared: Option<&StagedObject>) -> Result<()> {
        let mut object = prepared.ok_or_else(|| not_prepared(self.name_of(file)))?.clone();
        let remote = self.at(file);
        let mut publish = || {
            if !content.is_empty() {
                object.rewrite(remote.clone(), content.to_vec(), || Ok(()))?;
            }
            object.complete(remote.clone(), || Ok(()))
        };
        if let Err(error) = publish() {
            let is_stopped = matches!(self.outcome(file, &object), Ok(Outcome::Unknown));
            return Err(if is_stopped { super::is_over(self, job) } else { error });
        }
        // Two processes that commit one job have one upload, which only one of them has completed.
        if content.is_empty() || self.read(file)?.is_some_and(|found| found == content) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::AlreadyExists)
            .with_name(remote.name())
            .with_found("the file of another process that commits this job")
            .with_expected("one process that commits it"))
    }

    fn check_all(&self, parts: &[Part]) -> Result<()> {
        let (staged, visible) = (self.staged()?, self.visible()?);
        each(parts, |part| {
            let object = part.object()?;
            if staged.contains(&object.upload) || self.is_visible(&visible, part)? {
                return Ok(());
            }
            // It may have been completed between the two lists.
            match self.outcome(&part.name(), object)? {
                Outcome::Unknown => Err(self.missing(part)),
                Outcome::Written | Outcome::NotWritten => Ok(()),
            }
        })
    }

    fn reveal(&self, parts: &[Part]) -> Result<()> {
        each(parts, |part| {
            let object = part.object()?;
            object.complete(self.at_part(part), || Ok(())).map_err(|error| match self.outcome(&part.name(), object) {
                Ok(Outcome::Unknown) => self.missing(part),
                _ => error,
            })
        })
    }

    fn check_visible(&self, parts: &[Part]) -> Result<()> {
        let visible = self.visible()?;
        parts.iter().try_for_each(|part| match self.is_visible(&visible, part)? {
            true => Ok(()),
            false => Err(part.missing(self.name_of(&part.name()), "object", "it".to_string())),
        })
    }

    fn is_stopped(&self, manifest: &Manifest) -> Result<bool> {
        let success = manifest.success.as_ref().ok_or_else(|| not_prepared(self.name_of(SUCCESS)))?;
        Ok(self.outcome(SUCCESS, success)? == Outcome::Unknown)
    }

    fn has_staged(&self) -> Result<bool> {
        Ok(!self.uploads()?.is_empty())
    }

    fn staged_jobs(&self) -> Result<Vec<String>> {
        let uploads = self.uploads()?;
        let jobs: HashSet<&str> = uploads.iter().filter_map(|(file, _)| layout::job_of_part(file)).collect();
        Ok(jobs.into_iter().map(str::to_string).collect())
    }

    fn stop(&self, jobs: &[String]) -> Result<()> {
        // Another process may have removed the job meanwhile, and another job may have begun.
        if !matches!(stored::read_lock(self)?, Lock::Of(id, _) if !jobs.contains(&id)) {
            self.remove_uploads(|file| matches!(file, MANIFEST | SUCCESS))?;
        }
        // No part is staged any more that a manifest could list.
        self.remove_uploads(|file| is_part_of(file, jobs))
    }

    fn remove_parts(&self, jobs: &[String]) -> Result<()> {
        let mut files: Vec<String> = self.visible()?.into_keys().collect();
        files.retain(|file| is_part_of(file, jobs));
        each(&files, |file| self.remove(file))
    }

    fn remove_stopped(&self) -> Result<()> {
        Ok(())
    }

    fn clean_up(&self) -> Result<()> {
        self.remove_uploads(is_own)
    }
}

/// Returns whether a file is one that jobs stage.
fn is_own(file: &str) -> bool {
    matches!(file, MANIFEST | SUCCESS) || layout::job_of_part(file).is_some()
}

fn is_part_of(file: &str, jobs: &[String]) -> bool {
    layout::job_of_part(file).is_some_and(|job| jobs.iter().any(|one| one == job))
}

fn not_prepared(name: String) -> Error {
    Error::new(ErrorKind::InvalidOption)
        .with_name(name)
        .with_found("a job that was begun in a directory")
        .with_expected("a job that was begun in this store")
}

/// Makes a call for each item, several at a time, and returns the first error.
fn each<T: Sync>(items: &[T], call: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..REQUESTS.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = call(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
