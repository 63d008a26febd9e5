//! Where a job writes: what a caller names, and what it leads to.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::Remote;
use crate::error::Result;

use super::files::Files;
use super::local::Local;
use super::store::Store;

/// The directory of a job: a path, or a URL such as `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`, under which objects
/// are the files.
///
/// Text is a URL if [`Remote::is_url`] returns true; a [`Path`] is never one. A [`Remote`] has options for the
/// requests.
#[derive(Clone, Debug)]
pub struct Directory(Named);

#[derive(Clone, Debug)]
enum Named {
    Path(PathBuf),
    Url(Box<Remote>),
}

impl Directory {
    /// Creates a directory, if it does not exist.
    pub(super) fn create(self) -> Result<Place> {
        self.place(|path| Local::create(&path))
    }

    /// Finds an existing directory.
    pub(super) fn find(self) -> Result<Place> {
        self.place(|path| Local::find(&path))
    }

    /// Returns a directory as it is named, without a system call or a request.
    pub(super) fn named(self) -> Result<Place> {
        self.place(|path| Ok(Local::named(path)))
    }

    fn place(self, local: impl FnOnce(PathBuf) -> Result<Local>) -> Result<Place> {
        match self.0 {
            Named::Path(path) => local(path).map(Place::Local),
            Named::Url(remote) => Store::new(&remote).map(Place::Store),
        }
    }

    fn of_text(text: &OsStr) -> Directory {
        match text.to_str() {
            Some(text) if Remote::is_url(text) => Directory::from(Remote::new(text)),
            _ => Directory::from(Path::new(text)),
        }
    }
}

impl From<Remote> for Directory {
    fn from(remote: Remote) -> Directory {
        Directory(Named::Url(Box::new(remote)))
    }
}

impl From<PathBuf> for Directory {
    fn from(path: PathBuf) -> Directory {
        Directory(Named::Path(path))
    }
}

impl From<&Path> for Directory {
    fn from(path: &Path) -> Directory {
        path.to_path_buf().into()
    }
}

impl From<&PathBuf> for Directory {
    fn from(path: &PathBuf) -> Directory {
        path.clone().into()
    }
}

impl From<&str> for Directory {
    fn from(text: &str) -> Directory {
        Directory::of_text(text.as_ref())
    }
}

impl From<String> for Directory {
    fn from(text: String) -> Directory {
        Directory::of_text(text.as_ref())
    }
}

impl From<OsString> for Directory {
    fn from(text: OsString) -> Directory {
        Directory::of_text(&text)
    }
}

/// The place that a directory leads to.
#[derive(Clone)]
pub(super) enum Place {
    Local(Local),
    Store(Store),
}

impl Place {
    pub(super) fn files(&self) -> &dyn Files {
        match self {
            Place::Local(local) => local,
            Place::Store(store) => store,
        }
    }

    /// Returns the path or the URL.
    pub(super) fn path(&self) -> &Path {
        match self {
            Place::Local(local) => local.path(),
            Place::Store(store) => Path::new(store.url()),
        }
    }
}

/// Shows the path or the URL.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.path(), f)
    }
}

/// Places are equal if their paths or URLs are.
impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.path() == other.path()
    }
}

impl Eq for Place {}
