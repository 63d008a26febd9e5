//! Objects of web servers and object stores: `https://…`, `http://…`, `s3://BUCKET/KEY`,
//! `gs://BUCKET/KEY` or `az://CONTAINER/KEY`, and the options of requests.
//!
//! A remote object is only a description. Any number of readers and writers can use it, and it may be changed or freed
//! after they were opened. Opening one fails with MILLSTREAM_UNSUPPORTED in a library that was built without the feature
//! `remote`; released packages have it.
//!
//! Credentials and endpoints of object stores come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
//! AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_SKIP_SIGNATURE, or from the machine's metadata service. Proxies
//! come from HTTP_PROXY, HTTPS_PROXY and NO_PROXY.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use millstream::{Remote, Result};

use crate::boundary::{call, free, given, out, string};
use crate::error::{millstream_code, millstream_error};
use crate::settings::Settings;

/// A remote object. It is freed by millstream_remote_free().
pub struct millstream_remote(pub(crate) Settings<Remote>, String);

impl millstream_remote {
    /// Returns the object with its options.
    pub(crate) fn core(&self) -> Result<Remote> {
        self.0.apply(Remote::new(&self.1))
    }
}

/// Creates the description of the object at `url`. For object stores, everything after `s3://BUCKET/`, `gs://BUCKET/` or
/// `az://CONTAINER/` is the key as it is, so `%`, `#`, `?` and spaces belong to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_remote_new(
    url: *const c_char,
    remote: Option<&mut MaybeUninit<Box<millstream_remote>>>,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        let to = out(remote, "remote")?;
        // SAFETY: C lends a string for this call.
        let url = unsafe { text(url, "url")? };
        to.write(Box::new(millstream_remote(Settings::new(), url)));
        Ok(())
    })
}

/// Adds a header to each request, such as `Authorization`. It is not sent to another host after a redirect. Its value is
/// not shown in messages.
///
/// Headers that describe an object are sent with the request that creates it, and with no other: `Content-Type` and other
/// headers of the content, `Cache-Control`, `x-amz-meta-…`, `x-amz-storage-class`, `x-amz-tagging`, `x-amz-acl`,
/// `x-amz-server-side-encryption`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_remote_add_header(
    remote: Option<&mut millstream_remote>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<Box<millstream_error>>>,
) -> millstream_code {
    call(error, || {
        // SAFETY: C lends strings for this call.
        let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
        given(remote, "remote")?.0.set(move |remote| remote.header(&name, &value));
        Ok(())
    })
}

/// Frees a remote object. NULL is accepted.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_remote_free(remote: Option<Box<millstream_remote>>) {
    free(remote);
}

/// Returns a copy of a string. Bytes that are not UTF-8 are refused when the URL or header is used.
unsafe fn text(text: *const c_char, name: &str) -> Result<String> {
    // SAFETY: by the caller.
    Ok(unsafe { string(text, name)? }.to_string_lossy().into_owned())
}
