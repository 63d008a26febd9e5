//! An object's URL and the options of its requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::found::UnfinishedUpload;
use crate::shown;

/// An object of a web server or an object store: `https://…`, `http://…`, `s3://BUCKET/KEY`, `gs://BUCKET/KEY` (Google Cloud
/// Storage) or `az://CONTAINER/KEY` (Azure Blob Storage), and the options of its requests. Everything after the bucket is
/// the key as it is, so `%`, `#`, `?` and spaces belong to it.
///
/// Credentials and endpoints of object stores come from the environment: `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_SKIP_SIGNATURE`;
/// `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, and the others
/// that the crate object_store reads, or from the machine's metadata service. Proxies come from `HTTP_PROXY`,
/// `HTTPS_PROXY` and `NO_PROXY`.
#[derive(Clone)]
pub struct Remote {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) endpoint: Option<String>,
    pub(crate) idle_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) allow_unknown_length: bool,
    pub(crate) allow_link_local: bool,
    pub(crate) range_size: u64,
    pub(crate) connections: Option<usize>,
    pub(crate) first_range: u64,
    pub(crate) anonymous: bool,
    pub(crate) ca_file: Option<String>,
    pub(crate) netrc: bool,
    pub(crate) md5_etag: bool,
    pub(crate) part_size: Option<u64>,
    pub(crate) size_hint: Option<u64>,
    pub(crate) part_limit: u64,
    pub(crate) on_unfinished: Option<Report>,
}

/// A function that is called with an upload.
type Report = Arc<dyn Fn(&UnfinishedUpload) + Send + Sync>;

impl Remote {
    /// Returns the object with this URL and the default options.
    pub fn new(url: impl Into<String>) -> Remote {
        Remote {
            url: url.into(),
            headers: Vec::new(),
            endpoint: None,
            idle_timeout: Duration::from_secs(10),
            retry_for: Duration::from_secs(300),
            allow_unknown_length: false,
            allow_link_local: false,
            range_size: 8 << 20,
            connections: None,
            first_range: u64::MAX,
            anonymous: false,
            ca_file: None,
            netrc: false,
            md5_etag: false,
            part_size: None,
            size_hint: None,
            part_limit: 10_000,
            on_unfinished: None,
        }
    }

    /// Returns whether a text is the URL of an object, rather than the path of a file: whether it begins with `http://`,
    /// `https://`, `s3://`, `gs://` or `az://`, in upper or lower case. A file with such a name can be written as `./NAME`.
    ///
    /// ```
    /// use millstream_remote::Remote;
    /// assert!(Remote::is_url("s3://bucket/key") && !Remote::is_url("./s3://bucket/key"));
    /// ```
    pub fn is_url(text: impl AsRef<[u8]>) -> bool {
        let text = text.as_ref();
        ["http://", "https://", "s3://", "gs://", "az://"]
            .iter()
            .any(|start| text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes())))
    }

    /// Returns the URL as it was given. It may contain secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL as messages show it: without user, password, query and fragment, which may be secret.
    pub fn name(&self) -> String {
        shown(&self.url)
    }

    /// Returns the object with this URL and the same options.
    pub fn at(&self, url: impl Into<String>) -> Remote {
        Remote { url: url.into(), ..self.clone() }
    }

    /// Adds a header to each request, such as `Authorization`. It is not sent to another host after a redirect. Its
    /// value is not shown in messages.
    ///
    /// Headers that describe an object are sent with the request that creates it, and with no other: `Content-Type` and
    /// other headers of the content, `Cache-Control`, `x-amz-meta-…`, `x-amz-storage-class`, `x-amz-tagging`, `x-amz-acl`,
    /// `x-amz-server-side-encryption`, `x-goog-meta-…`, `x-goog-storage-class`, `x-goog-acl`, `x-ms-meta-…`, `x-ms-tags`,
    /// `x-ms-access-tier`.
    pub fn header(mut self, name: &str, value: &str) -> Remote {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Calls `function` if an upload was given up and could not be removed, for example because the connection is
    /// broken. Such an upload is not visible as an object, but a store may charge for its parts. If it is unknown whether
    /// the object was written, the error has the upload instead.
    pub fn on_unfinished(mut self, function: impl Fn(&UnfinishedUpload) + Send + Sync + 'static) -> Remote {
        self.on_unfinished = Some(Arc::new(function));
        self
    }

    /// Sets the size of the first range, if it is smaller than the others; these are requested when it has been read. For
    /// objects that are opened before they are needed.
    #[doc(hidden)]
    pub fn first_range(mut self, bytes: u64) -> Remote {
        self.first_range = bytes;
        self
    }

    /// Sets the number of parts that an object may have, for tests.
    #[doc(hidden)]
    pub fn part_limit(mut self, parts: u64) -> Remote {
        self.part_limit = parts;
        self
    }
}

/// Options of requests.
impl Remote {
    /// Sets the endpoint of the object store, such as `http://127.0.0.1:9000`. The default is the one in the environment,
    /// such as `AWS_ENDPOINT_URL`, or else the one of Amazon's region, of Google or of the Azure account.
    pub fn endpoint(mut self, url: impl Into<String>) -> Remote {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets how long a connection may deliver nothing before it is given up and resumed: 10 seconds by default.
    pub fn idle_timeout(mut self, limit: Duration) -> Remote {
        self.idle_timeout = limit;
        self
    }

    /// Sets for how long failed requests are repeated without any progress: 5 minutes by default. 0 means that they are
    /// not repeated.
    pub fn retry_for(mut self, limit: Duration) -> Remote {
        self.retry_for = limit;
        self
    }

    /// Sets whether a body is accepted whose end cannot be known, because it has neither a length nor chunks. Such a
    /// body looks complete if the connection breaks. By default it is refused.
    pub fn allow_unknown_length(mut self, allow: bool) -> Remote {
        self.allow_unknown_length = allow;
        self
    }

    /// Sets whether link-local addresses are allowed, where clouds keep the credentials of a machine. By default, URLs
    /// and redirects to them are refused.
    pub fn allow_link_local(mut self, allow: bool) -> Remote {
        self.allow_link_local = allow;
        self
    }

    /// Sets the size of a range in bytes: 8 MiB by default.
    pub fn range_size(mut self, bytes: u64) -> Remote {
        self.range_size = bytes;
        self
    }

    /// Sets how many ranges are fetched at a time. Up to this many are in memory. The default depends on how fast a
    /// connection is: 16 ranges of half the size at first and below 32 MB/s, 8 ranges below 200 MB/s, and 5 of twice the size
    /// otherwise. By default, and below 200 MB/s, the next one is requested when three quarters of
    /// a range have arrived.
    pub fn connections(mut self, count: usize) -> Remote {
        self.connections = Some(count);
        self
    }

    /// Sets whether requests to an object store are not signed, so that no credentials are needed: for public objects. It
    /// is like `AWS_SKIP_SIGNATURE=true`.
    pub fn anonymous(mut self, anonymous: bool) -> Remote {
        self.anonymous = anonymous;
        self
    }

    /// Sets a file of certificates (PEM) that are trusted in addition to those of the system, such as the authority of
    /// your own store.
    pub fn ca_file(mut self, path: impl Into<String>) -> Remote {
        self.ca_file = Some(path.into());
        self
    }

    /// Sets whether the user and the password for a web server come from the file `.netrc` in the home directory, or from
    /// the one that the variable `NETRC` names: `machine HOST login USER password PASSWORD`, without quotes. A user in the URL
    /// and the header `Authorization` take precedence.
    pub fn netrc(mut self, read: bool) -> Remote {
        self.netrc = read;
        self
    }

    /// Sets whether the MD5 of a whole object that is read is compared with its ETag, if the store has no other checksum of
    /// it. Nothing is compared if the ETag is not 32 hexadecimal digits, as for objects of several parts, or if the store says
    /// that it encrypts the object with a key. Other servers may have ETags of this form that are no MD5.
    pub fn md5_etag(mut self, compare: bool) -> Remote {
        self.md5_etag = compare;
        self
    }

    /// Sets the size of the parts in which an object is uploaded, from 5 MiB to 5 GiB: 5 MiB by default, 16 MiB
    /// from the 501st part on, or more if [`size_hint`](Self::size_hint) requires it. An object that is not longer than a part
    /// is uploaded with one request.
    ///
    /// An object has at most 10,000 parts, so the default allows 150 GiB. Uploading needs up to 88 MiB of memory, or that for 5
    /// parts if it is more.
    pub fn part_size(mut self, bytes: u64) -> Remote {
        self.part_size = Some(bytes);
        self
    }

    /// Sets the expected length of an object that is uploaded, in bytes. Parts are as large as this requires.
    pub fn size_hint(mut self, bytes: u64) -> Remote {
        self.size_hint = Some(bytes);
        self
    }
}

impl<T: Into<String>> From<T> for Remote {
    fn from(url: T) -> Remote {
        Remote::new(url)
    }
}

/// Shows the names of headers, but not their values.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("endpoint", &self.endpoint.as_deref().map(shown))
            .field("idle_timeout", &self.idle_timeout)
            .field("retry_for", &self.retry_for)
            .field("allow_unknown_length", &self.allow_unknown_length)
            .field("allow_link_local", &self.allow_link_local)
            .field("range_size", &self.range_size)
            .field("connections", &self.connections)
            .field("anonymous", &self.anonymous)
            .field("ca_file", &self.ca_file)
            .field("netrc", &self.netrc)
            .field("md5_etag", &self.md5_etag)
            .field("part_size", &self.part_size)
            .field("size_hint", &self.size_hint)
            .finish_non_exhaustive()
    }
}
