//! Requests for an object: redirects, refused addresses, signatures, statuses.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error as _;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, IF_MATCH, LOCATION, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use millstream_core::error::{Error, ErrorKind, Result};
use reqwest::{Certificate, Client, Response, redirect};
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::Url;

use crate::address::{Address, Kind, shown};
use crate::answer::{text, wrong};
use crate::blocks::Blocks;
use crate::patience::Failure;
use crate::remote::Remote;
use crate::request::{Answer, Call, about_region, is_passing, retry_after, shown_status};
use crate::store::{Protocol, Store, encode_query};
use crate::xml::error_document;
use crate::{azure, gcs, guard, netrc, s3};

/// Returns the runtime of all objects of the program.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(1, 4));
    let started = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("millstream-net")
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Error::new(ErrorKind::OpenFailed).with_found("no thread for the network").with_io(error))?;
    // If another thread was faster, this one must not wait for its own runtime to end.
    if let Err(second) = RUNTIME.set(started) {
        second.shutdown_background();
    }
    Ok(RUNTIME.get().expect("it was set above"))
}

/// Runs a task of the runtime and waits for it. `check` is called every 20 ms; an error of it ends the wait, and the task.
///
/// The caller may be a task of another runtime, in which waiting for a task would panic, so this waits for a channel.
pub(crate) fn wait_for<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<T> {
    Pending::start(task)?.wait(check)
}

/// A task of the runtime, which ends when this is dropped.
pub(crate) struct Task(AbortHandle);

impl Task {
    pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) -> Result<Task> {
        Ok(Task(runtime()?.spawn(task).abort_handle()))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The result of a task, which ends when this is dropped.
pub(crate) struct Pending<T> {
    result: mpsc::Receiver<T>,
    _task: Task,
}

impl<T: Send + 'static> Pending<T> {
    pub(crate) fn start(task: impl Future<Output = T> + Send + 'static) -> Result<Pending<T>> {
        let (sender, result) = mpsc::sync_channel(1);
        let task = Task::start(async move {
            let _ = sender.send(task.await);
        })?;
        Ok(Pending { result, _task: task })
    }

    /// Waits for the task. `check` is called every 20 ms; an error of it ends the wait, and the next one continues.
    pub(crate) fn wait(&self, check: &mut dyn FnMut() -> Result<()>) -> Result<T> {
        receive(&self.result, check)
    }
}

/// Receives what a task sends. `check` is called every 20 ms; an error of it ends the wait.
pub(crate) fn receive<T>(receiver: &mpsc::Receiver<T>, check: &mut dyn FnMut() -> Result<()>) -> Result<T> {
    loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(received) => return Ok(received),
            Err(mpsc::RecvTimeoutError::Timeout) => check()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::new(ErrorKind::Internal).with_found("a request that ended unexpectedly"));
            }
        }
    }
}

/// Whether a client may use link-local addresses, and the file of certificates that it trusts, too.
type Trust = (bool, Option<String>);

/// Returns the client for these options, whose connections all objects share.
fn client(options: &Remote) -> Result<Client> {
    static CLIENTS: Mutex<BTreeMap<Trust, Client>> = Mutex::new(BTreeMap::new());
    let trust = (options.allow_link_local, options.ca_file.clone());
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&trust) {
        return Ok(client.clone());
    }
    // This fails if the program has chosen a provider already, which is used then.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .http1_only()
        // Another part of the program may have enabled these features. Ranges are those of the bytes as they are stored.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("millstream/", env!("CARGO_PKG_VERSION")));
    let builder = match options.allow_link_local {
        true => builder,
        false => builder.dns_resolver(Arc::new(guard::Guarded)),
    };
    let client = builder
        .tls_certs_merge(certificates(options)?)
        .build()
        .map_err(|error| Error::new(ErrorKind::OpenFailed).with_found(format!("no HTTP client: {}", causes(&error))))?;
    clients.insert(trust, client.clone());
    Ok(client)
}

/// Reads the certificates that are trusted in addition to those of the system.
pub(crate) fn certificates(options: &Remote) -> Result<Vec<Certificate>> {
    let Some(path) = &options.ca_file else { return Ok(Vec::new()) };
    let invalid = |found: String| {
        Error::new(ErrorKind::InvalidOption).with_found(found).with_expected("a file of certificates in the format PEM")
    };
    let pem = std::fs::read(path).map_err(|error| invalid(format!("{path}: {error}")))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(invalid(format!("{path}, which contains no valid certificate"))),
    }
}

/// The rest of a longer answer is not received, so a document in it is not valid. A page of a list has at most 1000 entries.
const LONGEST_ANSWER: usize = 16 << 20;

/// The body of a request, which counts how many of its bytes were handed to the connection.
struct Sent {
    bytes: Bytes,
    taken: Arc<AtomicUsize>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let count = self.bytes.len().min(64 << 10);
        self.taken.fetch_add(count, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(count)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// An object that can be requested.
pub(crate) struct Target {
    client: Client,
    place: Place,
    headers: HeaderMap,
    pub(crate) options: Remote,
    /// The number of bytes of the object that all requests have received.
    pub(crate) received: AtomicU64,
    /// How many bytes per second a connection delivered most recently, or 0.
    pub(crate) rate: AtomicU64,
    /// The memory of its ranges.
    pub(crate) blocks: Arc<Blocks>,
}

impl Target {
    fn at(place: Place, client: Client, headers: HeaderMap, options: Remote) -> Target {
        let (received, rate) = (AtomicU64::new(0), AtomicU64::new(0));
        Target { client, place, headers, options, received, rate, blocks: Arc::default() }
    }
}

/// What opening a bucket depends on.
#[derive(PartialEq)]
struct Opening {
    kind: Kind,
    bucket: String,
    endpoint: Option<String>,
    anonymous: bool,
    environment: Vec<(OsString, OsString)>,
}

/// Returns a bucket of a store. All objects share it, because object_store reads the certificates of the system to open one,
/// and its credentials may need requests.
fn open(kind: Kind, bucket: &str, options: &Remote) -> Result<Store> {
    /// After this time a bucket is opened again, because files that have credentials may have changed.
    const VALID: Duration = Duration::from_secs(300);
    static OPENED: Mutex<Vec<(Instant, Opening, Store)>> = Mutex::new(Vec::new());

    let opening = Opening {
        kind,
        bucket: bucket.into(),
        endpoint: options.endpoint.clone(),
        anonymous: options.anonymous,
        environment: std::env::vars_os().collect(),
    };
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|(since, ..)| since.elapsed() < VALID);
    if let Some((_, _, store)) = opened.iter().find(|(_, other, _)| *other == opening) {
        return Ok(store.clone());
    }
    let store = match kind {
        Kind::S3 => s3::open(bucket, options),
        Kind::Gcs => gcs::open(bucket, options),
        Kind::Azure => azure::open(bucket, options),
    }?;
    opened.push((Instant::now(), opening, store.clone()));
    Ok(store)
}

enum Place {
    Web(Url),
    /// An object of a store, or the bucket.
    Store(Store, Url),
}

impl Target {
    pub(crate) fn new(options: Remote) -> Result<Target> {
        let headers = options.checked_headers()?;
        let address = Address::parse(&options.url)?;
        let client = client(&options)?;
        let place = match address {
            Address::Web(mut url) => {
                let has_login = headers.contains_key(AUTHORIZATION) || !url.username().is_empty();
                if options.netrc && !has_login {
                    netrc::add_login(&mut url)?;
                }
                Place::Web(url)
            }
            Address::Store { kind, bucket, key } => {
                let store = open(kind, &bucket, &options)?;
                let url = store.url(&key);
                Place::Store(store, url)
            }
        };
        Ok(Target::at(place, client, headers, options))
    }

    /// Returns the prefix of a store's keys as a target, for lists.
    pub(crate) fn of_prefix(options: Remote) -> Result<(Target, String)> {
        let headers = options.checked_headers()?;
        let (kind, bucket, prefix) = Address::parse_prefix(&options.url)?;
        let client = client(&options)?;
        let store = open(kind, &bucket, &options)?;
        let url = store.bucket.clone();
        let place = Place::Store(store, url);
        Ok((Target::at(place, client, headers, options), prefix))
    }

    /// Returns the target for an object of the same store.
    pub(crate) fn sibling(&self, key: &str) -> Option<Target> {
        let Place::Store(store, _) = &self.place else { return None };
        let place = Place::Store(store.clone(), store.url(key));
        Some(Target::at(place, self.client.clone(), self.headers.clone(), self.options.clone()))
    }

    /// Returns the URL of an object of the same bucket.
    pub(crate) fn sibling_url(&self, key: &str) -> String {
        let scheme = self.store().map_or("", |(store, _)| store.kind.scheme());
        format!("{scheme}://{}/{key}", self.options.url.split('/').nth(2).unwrap_or_default())
    }

    fn store(&self) -> Result<(&Store, &Url)> {
        match &self.place {
            Place::Store(store, url) => Ok((store, url)),
            Place::Web(_) => Err(Error::new(ErrorKind::Unsupported).with_found("a call of a web server")),
        }
    }

    /// Returns the protocol of the store.
    pub(crate) fn protocol(&self) -> Result<&'static dyn Protocol> {
        Ok(self.store()?.0.protocol)
    }

    /// Returns whether the store refuses to complete an object of parts whose sizes differ, as Cloudflare R2 does:
    /// <https://developers.cloudflare.com/r2/objects/multipart-objects/>.
    pub(crate) fn needs_equal_parts(&self) -> bool {
        let host = self.store().ok().and_then(|(store, _)| store.bucket.host_str());
        host.is_some_and(|host| host.ends_with(".r2.cloudflarestorage.com"))
    }

    /// Makes a call of a store, and receives all of the answer. An error means that there is none.
    pub(crate) async fn call(&self, call: Call, is_first: bool) -> Result<Answer, Failure> {
        let (store, url) = self.store()?;
        let mut url = url.clone();
        if !call.query.is_empty() {
            url.set_query(Some(&encode_query(&call.query)));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers.iter().filter(|(name, _)| store.protocol.object_header(name).is_none()) {
            headers.append(name, value.clone());
        }
        headers.extend(call.headers);
        if call.method != Method::GET && call.method != Method::HEAD {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        let limit = call.limit.unwrap_or(self.options.idle_timeout);
        let (url, headers) = store.sign(&call.method, &url, headers, call.body.clone()).await?;
        let mut response = self.send(call.method, &url, headers, call.body, limit, is_first).await?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let mut body = Vec::new();
        loop {
            let chunk = match timeout(limit, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(Failure::passing(wrong(causes(&error.without_url())))),
                Err(_) => return Err(Failure::passing(idle(limit))),
            };
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST_ANSWER {
                break;
            }
        }
        Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Returns the headers that describe the object of the write `id`: those of the user, and its identity.
    pub(crate) fn object_headers(&self, id: &str) -> Result<HeaderMap> {
        let protocol = self.protocol()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            if let Some(name) = protocol.object_header(name) {
                headers.append(name, value.clone());
            }
        }
        headers.insert(protocol.write_id(), HeaderValue::try_from(id).expect("it is ASCII"));
        Ok(headers)
    }

    /// Sends a GET, follows redirects, and returns an answer with a body of the object: a status of 200 or 206, or 416.
    /// `is_first` means that nothing has been received of the object: a host that cannot be reached is an error then.
    pub(crate) async fn get(
        &self,
        range: Option<(u64, Option<u64>)>,
        etag: Option<&HeaderValue>,
        is_first: bool,
    ) -> Result<Response, Failure> {
        let mut own = HeaderMap::new();
        own.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some((from, to)) = range {
            let to = to.map(|to| (to - 1).to_string()).unwrap_or_default();
            own.insert(RANGE, HeaderValue::try_from(format!("bytes={from}-{to}")).expect("digits are valid"));
        }
        if let Some(etag) = etag {
            own.insert(IF_MATCH, etag.clone());
        }
        let response = match &self.place {
            Place::Web(url) => self.follow(url, own, is_first).await?,
            Place::Store(store, url) => {
                own.extend(self.headers.clone());
                let (url, headers) = store.sign(&Method::GET, url, own, Bytes::new()).await?;
                let limit = self.options.idle_timeout;
                self.send(Method::GET, &url, headers, Bytes::new(), limit, is_first).await?
            }
        };
        self.check_status(response, etag, is_first).await
    }

    /// Follows redirects. Headers of the user are not sent to another host.
    async fn follow(&self, start: &Url, own: HeaderMap, is_first: bool) -> Result<Response, Failure> {
        let mut url = start.clone();
        for _ in 0..=10 {
            let mut headers = own.clone();
            if url.origin() == start.origin() {
                headers.extend(self.headers.clone());
            }
            let limit = self.options.idle_timeout;
            let response = self.send(Method::GET, &url, headers, Bytes::new(), limit, is_first).await?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let Some(location) = response.headers().get(LOCATION).filter(|_| is_redirect) else { return Ok(response) };
            let location = location.to_str().ok().and_then(|location| url.join(location).ok());
            let next = location.filter(|next| matches!(next.scheme(), "http" | "https"));
            let next = next.ok_or_else(|| wrong("a redirect without a valid address"))?;
            if url.scheme() == "https" && next.scheme() == "http" {
                return Err(wrong(format!("a redirect to {}", shown(next.as_str())))
                    .with_expected("an address that is encrypted as well")
                    .into());
            }
            url = next;
        }
        Err(wrong("more than 10 redirects").into())
    }

    /// Sends a request and waits for the head of the answer, for at most `limit` after the body was sent. While it is sent,
    /// the idle timeout applies.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
        is_first: bool,
    ) -> Result<Response, Failure> {
        if !self.options.allow_link_local {
            guard::check(url).map_err(|refused| refused_address(&refused))?;
        }
        let length = body.len();
        let taken = Arc::new(AtomicUsize::new(0));
        let mut request = self.client.request(method, url.clone()).headers(headers);
        if length > 0 {
            request = request.body(reqwest::Body::wrap(Sent { bytes: body, taken: taken.clone() }));
        }
        let mut request = Box::pin(request.send());
        let answer = loop {
            let before = taken.load(Ordering::Relaxed);
            let allowed = if before < length { self.options.idle_timeout } else { limit };
            match timeout(allowed, &mut request).await {
                Ok(answer) => break answer,
                Err(_) if taken.load(Ordering::Relaxed) > before => {}
                Err(_) => return Err(Failure::passing(idle(allowed))),
            }
        };
        answer.map_err(|error| {
            let error = error.without_url();
            if let Some(refused) = cause::<guard::Refused>(&error) {
                return refused_address(refused).into();
            }
            let text = causes(&error);
            match error.is_connect() {
                true if is_first => Error::new(ErrorKind::OpenFailed).with_found(text).into(),
                true => Failure::Passing { error: wrong(text), retry_after: None, may_have_arrived: false },
                false => Failure::passing(wrong(text)),
            }
        })
    }

    /// Returns the error for a connection that delivers nothing.
    pub(crate) fn idle(&self) -> Error {
        idle(self.options.idle_timeout)
    }

    async fn check_status(
        &self,
        response: Response,
        etag: Option<&HeaderValue>,
        is_first: bool,
    ) -> Result<Response, Failure> {
        let status = response.status();
        if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE) {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let mut found = shown_status(status);
        if let Some(reason) = self.reason(response).await {
            found += &format!(" ({reason})");
        }
        let expected = "the object";
        if is_passing(status) {
            let error = wrong(found).with_expected(expected);
            return Err(Failure::Passing { error, retry_after: retry_after(&headers), may_have_arrived: true });
        }
        Err(match status.as_u16() {
            404 | 410 | 412 if !is_first => Error::new(ErrorKind::SourceChanged)
                .with_found(found)
                .with_expected(format!("the version with the ETag {}", etag.map(text).unwrap_or_default()))
                .into(),
            _ if is_first => about_region(Error::new(ErrorKind::OpenFailed).with_found(found), status, &headers).into(),
            _ => wrong(found).with_expected(expected).into(),
        })
    }

    /// Returns the reason in an error document.
    async fn reason(&self, mut response: Response) -> Option<String> {
        let mut body = Vec::new();
        while body.len() < 64 << 10 {
            match timeout(self.options.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk[..chunk.len().min(64 << 10)]),
                _ => break,
            }
        }
        error_document(&String::from_utf8_lossy(&body)).map(|document| document.to_string())
    }
}

fn idle(limit: Duration) -> Error {
    wrong(format!("no data for {} s", limit.as_secs_f64()))
}

fn refused_address(refused: &guard::Refused) -> Error {
    Error::new(ErrorKind::OpenFailed)
        .with_found(refused.to_string())
        .with_expected("another address; allow this one with `allow_link_local`")
}

/// Returns the error of this type among the causes.
fn cause<'e, E: std::error::Error + 'static>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the messages of an error and of its causes. Messages that repeat their cause are shown one time.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(error) = next {
        let message = error.to_string();
        if messages.last().is_none_or(|last| !last.contains(&message)) {
            messages.push(message);
        }
        next = error.source();
    }
    if messages.is_empty() { error.to_string() } else { messages.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_opened_once_for_equal_options() {
        let credentials = |url: &str, endpoint: &str| {
            let target = Target::new(Remote::new(url).endpoint(endpoint)).unwrap();
            target.store().unwrap().0.credentials.clone().unwrap()
        };
        let first = credentials("s3://bucket/a", "http://127.0.0.1:7070");
        assert!(Arc::ptr_eq(&first, &credentials("s3://bucket/b", "http://127.0.0.1:7070")));
        assert!(!Arc::ptr_eq(&first, &credentials("s3://other/a", "http://127.0.0.1:7070")));
        assert!(!Arc::ptr_eq(&first, &credentials("s3://bucket/a", "http://127.0.0.1:7071")));
    }

    #[test]
    fn one_store_needs_equal_parts() {
        let needs = |endpoint: &str| {
            let remote = Remote::new("s3://bucket/key").endpoint(endpoint).anonymous(true);
            Target::new(remote).unwrap().needs_equal_parts()
        };
        assert!(needs("https://0123.r2.cloudflarestorage.com"));
        assert!(!needs("http://127.0.0.1:7070") && !needs("https://r2.cloudflarestorage.com.example"));
    }
}
