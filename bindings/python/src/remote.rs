//! Objects of web servers and object stores, which are accepted wherever a path is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use millstream::options::REMOTE;
use millstream::remote::{ListedObject as CoreListedObject, Objects, pattern};
use millstream::{CancelToken, Error, ErrorKind, Remote as CoreRemote, job};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};

use crate::error;
use crate::options::{Settings, refuse_unknown};
use crate::wait::{forks, once};

/// An object of a web server or an object store, with options for its requests.
///
///     private = ms.Remote("https://example.org/a.csv", headers={"Authorization": "Bearer ..."}, idle_timeout=30)
///     for line in ms.open(private):
///         ...
///
/// Every function that accepts a path accepts a `Remote`, and a `str` that begins with `https://`, `http://` or `s3://`,
/// unless it needs a file, which it maps. A `pathlib.Path` is never a URL. The end of a reader means that all
/// bytes of one version of the object were delivered. An object that is written appears complete when the writer is
/// closed, or not at all; web servers are sources only.
///
/// `headers`, a mapping or pairs, are sent with each request, but not to another host after a redirect. Their values are
/// shown in no message. Those that describe an object, such as `Content-Type` and `x-amz-meta-...`, are sent only with the
/// request that creates it.
///
/// Everything after `s3://BUCKET/` is the key as it is, so `%`, `#`, `?` and spaces belong to it. Credentials come from the
/// environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`) or
/// from the machine's metadata service.
///
/// A `Remote` is only a description: it cannot be changed, and any number of readers, writers and threads can use it.
#[pyclass(frozen, module = "millstream")]
pub struct Remote(CoreRemote);

#[pymethods]
impl Remote {
    #[new]
    #[pyo3(signature = (url, *, headers = None, **options))]
    fn new(
        py: Python<'_>,
        url: String,
        headers: Option<Bound<'_, PyAny>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Remote> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let mut remote = Settings::take(py, &options, REMOTE)?.apply(CoreRemote::new(url));
        refuse_unknown(&options)?;
        if let Some(headers) = headers {
            let pairs = match headers.cast::<PyMapping>() {
                Ok(mapping) => mapping.items()?.into_any(),
                Err(_) => headers,
            };
            for pair in pairs.try_iter()? {
                let (name, value): (String, String) = pair?.extract()?;
                remote = remote.header(&name, &value);
            }
        }
        Ok(Remote(remote))
    }

    /// The URL as messages show it: without user, password, query and fragment, which may be secret.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Remote {:?}>", self.0.name())
    }
}

impl Remote {
    pub fn core(&self) -> &CoreRemote {
        &self.0
    }
}

/// Where a source or a sink is. Text that is a URL is an object; bytes and an `os.PathLike` are always paths.
pub enum Location {
    Path(PathBuf),
    Object(CoreRemote),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Location {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Location> {
        if let Ok(remote) = object.cast::<Remote>() {
            return Ok(Location::Object(remote.get().0.clone()));
        }
        if let Ok(text) = object.cast::<PyString>()
            && CoreRemote::is_url(text.to_string_lossy().as_bytes())
        {
            return Ok(Location::Object(CoreRemote::new(text.to_str()?)));
        }
        let path = object.py().import("os")?.call_method1("fspath", (object,))?;
        Ok(Location::Path(match path.cast::<PyBytes>() {
            Ok(bytes) => OsStr::from_bytes(bytes.as_bytes()).into(),
            Err(_) => path.extract()?,
        }))
    }
}

impl Location {
    /// Returns the path of a file, for a function that uses it in a way in which objects cannot be used, such as "mapped".
    pub fn file(self, py: Python<'_>, used: &str) -> PyResult<PathBuf> {
        match self {
            Location::Path(path) => Ok(path),
            Location::Object(remote) => {
                let error = Error::new(ErrorKind::InvalidOption).with_name(remote.name()).with_found("a remote object");
                Err(error::raise(py, &error.with_expected(format!("the path of a file: objects cannot be {used}"))))
            }
        }
    }
}

/// An object in a list of a store.
#[pyclass(frozen, module = "millstream")]
pub struct ListedObject(pub CoreListedObject);

#[pymethods]
impl ListedObject {
    /// The URL.
    #[getter]
    fn url(&self) -> &str {
        &self.0.url
    }

    /// The number of bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }
}

/// The objects that match a pattern such as `s3://BUCKET/logs/**/*.gz`, in the order of the store. If one is a part of an
/// unfinished job, this is an error.
#[pyfunction]
pub fn matching_objects(py: Python<'_>, url: String) -> PyResult<Vec<ListedObject>> {
    let remote = CoreRemote::new(url);
    let token = CancelToken::lazy();
    let list = || {
        check_process(|| remote.name())?;
        let (objects, token) = (Objects::matching(remote)?, token.clone());
        let found = objects.checking(move || token.check()).collect::<Result<Vec<_>, _>>()?;
        let urls: Vec<_> = found.iter().map(|object| object.url.clone()).collect();
        job::check_objects(&urls, |url| CoreRemote::new(url))?;
        Ok(found.into_iter().map(ListedObject).collect())
    };
    once(py, &token, list)?.map_err(|error: Error| error::raise(py, &error))
}

/// Whether text is a pattern of objects, as the command line has it.
#[pyfunction]
pub fn is_pattern_of_objects(url: &str) -> bool {
    pattern::is_pattern_of_objects(url)
}

/// Whether a URL is that of a directory, which can have a job.
#[pyfunction]
pub fn is_directory_of_objects(url: &str) -> bool {
    job::is_directory(url)
}

/// Whether text is the URL of an object.
#[pyfunction]
pub fn is_url(text: &str) -> bool {
    CoreRemote::is_url(text)
}

/// The name of a source or sink, of which the suffix may say how it is read.
#[pyfunction]
pub fn location_name(location: Location) -> OsString {
    match location {
        Location::Path(path) => path.into(),
        Location::Object(remote) => remote.name().into(),
    }
}

/// Refuses a forked child of a process that has opened an object: the threads of the network do not exist in it, so it
/// would wait for them indefinitely.
pub fn check_process(name: impl FnOnce() -> String) -> Result<(), Error> {
    static FORKS: OnceLock<u32> = OnceLock::new();
    if *FORKS.get_or_init(forks) == forks() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported)
        .with_name(name())
        .with_found("a forked child of a process that has opened remote objects")
        .with_expected("a new process, such as those of multiprocessing.get_context(\"spawn\")"))
}
