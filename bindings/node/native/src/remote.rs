//! Descriptions of remote objects. Nothing is opened here.

use millstream::Remote;
use millstream::options::REMOTE;
use napi_derive::napi;

use crate::error::Failure;
use crate::options::{Options, with_options};

/// The URL of an object and the options of its requests. Any number of readers and writers can use it.
#[napi]
pub struct NativeRemote {
    remote: Remote,
}

#[napi]
impl NativeRemote {
    /// Describes the object at this URL. Headers are pairs of a name and a value.
    #[napi(constructor)]
    pub fn new(url: String, headers: Vec<(String, String)>, options: Options) -> NativeRemote {
        let remote = with_options(REMOTE, Remote::new(url), options);
        NativeRemote { remote: headers.iter().fold(remote, |remote, (name, value)| remote.header(name, value)) }
    }

    /// Returns the URL as messages show it.
    #[napi]
    pub fn name(&self) -> String {
        self.remote.name()
    }

    /// Returns the error if the URL or an option is invalid.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.remote.check().as_ref().err().map(Failure::from)
    }
}

impl NativeRemote {
    /// Returns a copy for the thread that opens the object.
    pub fn core(&self) -> Remote {
        self.remote.clone()
    }
}
