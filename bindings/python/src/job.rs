//! Jobs: parts that many processes write, and that appear together.

use std::ffi::OsString;
use std::path::PathBuf;

use millstream::job::{self, Directory, Job as CoreJob, Part as CorePart, PartWriter as CoreWriter};
use millstream::{CancelToken, Error, ErrorKind, Remote as CoreRemote};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

use crate::error;
use crate::foreign;
use crate::number::Whole;
use crate::remote::{Location, Remote, check_process};
use crate::splits::{Reduced, raised, reduced};
use crate::wait::once;

/// A job that writes parts to a directory, which become visible together or not at all.
///
///     job = ms.Job.begin("out")
///     parts = []
///     for task in range(3):
///         with job.part(task, ".txt") as part:
///             part.write(f"from task {task}\n")
///         parts.append(part.result)
///     job.commit(parts)
///
/// `begin` locks the directory, which must be empty. The job can be pickled, so that any process can write parts, and the
/// results of the parts can be pickled too. A task can be attempted any number of times, also at the same time: `commit`
/// gets the part of one successful attempt. It first writes a manifest that lists the parts, then moves all of them to
/// their names, and creates `_SUCCESS` last. Programs that list the directory must wait for `_SUCCESS`.
///
/// If the process that commits is killed, `millstream commit resume DIRECTORY` completes the job if it has a manifest, and
/// `millstream commit abort DIRECTORY` removes it. The directory must be in a file system that all processes share, or
/// a URL: `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`. A pickled job has no options of a `Remote`: see `with_remote`.
#[pyclass(frozen, eq, module = "millstream")]
#[derive(PartialEq)]
pub struct Job(CoreJob);

/// The result of a task of a `Job`: a complete part, which `commit` makes visible. It can be pickled.
#[pyclass(frozen, eq, module = "millstream")]
#[derive(PartialEq)]
pub struct Part(CorePart);

/// Writes the part of one attempt of a task: `Job.part` creates it.
///
/// `close`, which `with` calls, completes the part, and then `result` is what `Job.commit` needs. After an exception,
/// `with` discards the part, and so does garbage collection without `close`. One call at a time.
#[pyclass(frozen, weakref, module = "millstream")]
pub struct PartWriter {
    state: Mutex<State>,
    name: String,
    /// The directory of the job.
    directory: PathBuf,
}

enum State {
    Open { writer: Box<CoreWriter>, written: u64 },
    Done(CorePart),
    Discarded,
}

/// Returns the directory of a job.
fn directory(location: Location) -> Directory {
    match location {
        Location::Path(path) => path.into(),
        Location::Object(remote) => remote.into(),
    }
}

/// Runs a call of a job in this directory. Signals are handled while it waits for a store.
fn run<T: Send>(
    py: Python<'_>,
    directory: &std::path::Path,
    call: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    let name = directory.to_string_lossy();
    if !CoreRemote::is_url(name.as_bytes()) {
        return raised(py, py.detach(call));
    }
    let checked = || check_process(|| CoreRemote::new(name).name()).and_then(|()| call());
    let called = once(py, &CancelToken::lazy(), checked)?;
    raised(py, called)
}

/// Returns the name of the directory of a job.
fn name_of(location: &Location) -> PathBuf {
    match location {
        Location::Path(path) => PathBuf::from(".").join(path),
        Location::Object(remote) => remote.url().into(),
    }
}

#[pymethods]
impl Job {
    /// Begins a job that writes to an empty directory, which is created if it does not exist.
    #[staticmethod]
    #[pyo3(name = "begin")]
    fn begin_in(py: Python<'_>, directory: Location) -> PyResult<Job> {
        run(py, &name_of(&directory), || CoreJob::begin(self::directory(directory))).map(Job)
    }

    /// Begins the job with this id, or joins it if another process has begun it. Returns `None` if it has a manifest: its
    /// parts are certain, and `resume` completes it.
    ///
    ///     job = ms.Job.join("out", "0123456789abcdef0123456789abcdef")
    ///
    /// Processes that share only the id can write one job, and work that is repeated after a crash is published once: the
    /// id, of 32 hexadecimal digits, names the work.
    #[staticmethod]
    fn join(py: Python<'_>, directory: Location, id: &str) -> PyResult<Option<Job>> {
        Ok(run(py, &name_of(&directory), || CoreJob::join(self::directory(directory), id))?.map(Job))
    }

    /// Completes the job of a directory whose process was killed after it had written the manifest, as
    /// `millstream commit resume` does. If the job is complete, nothing changes.
    #[staticmethod]
    fn resume(py: Python<'_>, directory: Location) -> PyResult<()> {
        run(py, &name_of(&directory), || job::resume(self::directory(directory))).map(drop)
    }

    /// The paths or URLs of the parts of a complete job, in the order of their tasks, or `None` if the directory has no job.
    ///
    /// Other files in the directory are ignored. An unfinished job is an error that names the command to run.
    #[staticmethod]
    fn parts(py: Python<'_>, directory: Location) -> PyResult<Option<Vec<OsString>>> {
        run(py, &name_of(&directory), || match directory {
            Location::Path(path) => {
                let paths = job::parts(path)?;
                Ok(paths.map(|paths| paths.into_iter().map(PathBuf::into_os_string).collect()))
            }
            Location::Object(remote) => {
                let parts = job::objects(remote)?;
                Ok(parts.map(|parts| parts.iter().map(|part| part.url().into()).collect()))
            }
        })
    }

    /// A job from JSON.
    #[classmethod]
    fn from_json(class: &Bound<'_, PyType>, json: &str) -> PyResult<Job> {
        raised(class.py(), CoreJob::from_json(json)).map(Job)
    }

    /// The job as one line of JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The id of the job: 32 hexadecimal digits.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// The absolute path of the directory, or its URL.
    #[getter]
    fn directory(&self) -> &std::ffi::OsStr {
        self.0.directory().as_os_str()
    }

    /// The same job with options for its requests, which JSON and pickle do not contain, because headers may be secret.
    ///
    ///     job = job.with_remote(ms.Remote(job.directory, endpoint="http://127.0.0.1:9000"))
    fn with_remote(&self, py: Python<'_>, remote: &Bound<'_, Remote>) -> PyResult<Job> {
        raised(py, self.0.clone().with_remote(remote.get().core().clone())).map(Job)
    }

    /// Begins the part of an attempt of a task. `extension` is the end of its name, such as `".csv"`.
    #[pyo3(signature = (task, extension = ""))]
    fn part(&self, py: Python<'_>, task: Whole<u64>, extension: &str) -> PyResult<PartWriter> {
        let directory = self.0.directory().to_owned();
        let writer = run(py, &directory, || self.0.part(task.0, extension))?;
        let name = format!("the part of task {} in {}", task.0, directory.display());
        Ok(PartWriter { state: Mutex::new(State::Open { writer: Box::new(writer), written: 0 }), name, directory })
    }

    /// Makes these parts visible, at most one of each task. If this fails before the manifest is written, none is. It can
    /// be called again with the same parts.
    fn commit(&self, py: Python<'_>, parts: Vec<Bound<'_, Part>>) -> PyResult<()> {
        let parts: Vec<CorePart> = parts.iter().map(|part| part.get().0.clone()).collect();
        run(py, self.0.directory(), || self.0.commit(&parts)).map(drop)
    }

    /// Removes the job and all of its parts, unless it is complete. Calling this again does nothing.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        run(py, self.0.directory(), || self.0.abort())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_json())
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Job {} in {:?}>", self.0.id(), self.0.directory())
    }
}

#[pymethods]
impl Part {
    /// A part from JSON.
    #[classmethod]
    fn from_json(class: &Bound<'_, PyType>, json: &str) -> PyResult<Part> {
        raised(class.py(), CorePart::from_json(json)).map(Part)
    }

    /// The part as one line of JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The number of the task.
    #[getter]
    fn task(&self) -> u64 {
        self.0.task()
    }

    /// The name of the file when it is visible.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The size in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size()
    }

    /// The hash of its bytes, such as `"blake3:af13..."`.
    #[getter]
    fn hash(&self) -> &str {
        self.0.hash()
    }

    /// The number of records, or `None` if the task did not count them.
    #[getter]
    fn records(&self) -> Option<u64> {
        self.0.records()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_json())
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Part {:?} of {} bytes>", self.0.name(), self.0.size())
    }
}

impl PartWriter {
    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        self.state.try_lock().ok_or_else(|| error::in_use(py, &self.name))
    }

    fn send(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<usize> {
        let mut state = self.state(py)?;
        let State::Open { writer, written } = &mut *state else { return Err(error::closed(py, &self.name)) };
        run(py, &self.directory, || writer.write(bytes))?;
        *written += bytes.len() as u64;
        Ok(bytes.len())
    }
}

#[pymethods]
impl PartWriter {
    /// Writes bytes or UTF-8 text, and returns the number of bytes.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return self.send(py, bytes.as_bytes());
        }
        if let Ok(text) = data.cast::<PyString>() {
            return self.send(py, text.to_str()?.as_bytes());
        }
        let bytes: foreign::Bytes = data.extract()?;
        self.send(py, &bytes)
    }

    /// Adds to the number of records, which the manifest contains.
    fn add_records(&self, py: Python<'_>, count: Whole<u64>) -> PyResult<()> {
        let mut state = self.state(py)?;
        let State::Open { writer, .. } = &mut *state else { return Err(error::closed(py, &self.name)) };
        writer.add_records(count.0);
        Ok(())
    }

    /// Completes the part: all of its bytes are on the disk or in the store, and `result` can be read.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        match std::mem::replace(&mut *state, State::Discarded) {
            State::Open { writer, .. } => {
                *state = State::Done(run(py, &self.directory, || writer.finish())?);
            }
            ended => *state = ended,
        }
        Ok(())
    }

    /// Discards the part.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        *self.state(py)? = State::Discarded;
        Ok(())
    }

    /// The part, after `close`.
    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Part> {
        match &*self.state(py)? {
            State::Done(part) => Ok(Part(part.clone())),
            State::Open { .. } | State::Discarded => {
                let error = Error::new(ErrorKind::InvalidOption).with_name(&*self.name);
                let error = error.with_found("a part that is not complete").with_expected("a call after `close`");
                Err(error::raise(py, &error))
            }
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes, or aborts after an exception.
    #[pyo3(signature = (kind, value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        match kind {
            Some(_) => self.abort(py),
            None => self.close(py),
        }
    }

    /// Whether the part is complete or discarded.
    #[getter]
    fn closed(&self) -> bool {
        self.state.try_lock().is_some_and(|state| !matches!(&*state, State::Open { .. }))
    }

    /// Bytes written so far.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        match &*self.state(py)? {
            State::Open { written, .. } => Ok(*written),
            State::Done(part) => Ok(part.size()),
            State::Discarded => Err(error::closed(py, &self.name)),
        }
    }

    /// Does nothing: `close` writes everything.
    fn flush(&self) {}

    /// True.
    fn writable(&self) -> bool {
        true
    }

    /// False.
    fn readable(&self) -> bool {
        false
    }

    /// False.
    fn seekable(&self) -> bool {
        false
    }

    fn __repr__(&self) -> String {
        format!("<millstream.PartWriter of {}>", self.name)
    }
}
