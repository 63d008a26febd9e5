//! Requests for an object: redirects, refused addresses, signatures, statuses.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, IF_MATCH, LOCATION, RANGE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use millstream_core::error::{Error, ErrorKind, Result};
use reqwest::{Client, Response, redirect};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use url::Url;

use crate::address::{Address, shown};
use crate::answer::{text, wrong};
use crate::guard;
use crate::patience::Failure;
use crate::remote::Remote;
use crate::s3::{self, S3Object};

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

/// Returns the client, whose connections all objects share.
fn client(allow_link_local: bool) -> Result<Client> {
    static CLIENTS: [OnceLock<Client>; 2] = [OnceLock::new(), OnceLock::new()];
    let place = &CLIENTS[usize::from(allow_link_local)];
    if let Some(client) = place.get() {
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
    let builder = if allow_link_local { builder } else { builder.dns_resolver(std::sync::Arc::new(guard::Guarded)) };
    let client = builder
        .build()
        .map_err(|error| Error::new(ErrorKind::OpenFailed).with_found(format!("no HTTP client: {}", causes(&error))))?;
    Ok(place.get_or_init(|| client).clone())
}

/// An object that can be requested.
pub(crate) struct Target {
    client: Client,
    place: Place,
    headers: HeaderMap,
    pub(crate) options: Remote,
}

enum Place {
    Web(Url),
    S3(S3Object),
}

impl Target {
    pub(crate) fn new(options: Remote) -> Result<Target> {
        let headers = options.checked_headers()?;
        let address = Address::parse(&options.url)?;
        let client = client(options.allow_link_local)?;
        let place = match address {
            Address::Web(url) => Place::Web(url),
            Address::S3 { bucket, key } => Place::S3(S3Object::new(&bucket, &key, &options)?),
        };
        Ok(Target { client, place, headers, options })
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
            Place::S3(object) => {
                own.extend(self.headers.clone());
                self.send(&object.url, object.sign(own).await?, is_first).await?
            }
        };
        self.check_status(response, is_first).await
    }

    /// Follows redirects. Headers of the user are not sent to another host.
    async fn follow(&self, start: &Url, own: HeaderMap, is_first: bool) -> Result<Response, Failure> {
        let mut url = start.clone();
        for _ in 0..=10 {
            let mut headers = own.clone();
            if url.origin() == start.origin() {
                headers.extend(self.headers.clone());
            }
            let response = self.send(&url, headers, is_first).await?;
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

    async fn send(&self, url: &Url, headers: HeaderMap, is_first: bool) -> Result<Response, Failure> {
        if !self.options.allow_link_local {
            guard::check(url).map_err(|refused| refused_address(&refused))?;
        }
        let request = self.client.get(url.clone()).headers(headers).send();
        match timeout(self.options.idle_timeout, request).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let error = error.without_url();
                if let Some(refused) = cause::<guard::Refused>(&error) {
                    return Err(refused_address(refused).into());
                }
                let text = causes(&error);
                if is_first && error.is_connect() {
                    return Err(Error::new(ErrorKind::OpenFailed).with_found(text).into());
                }
                Err(Failure::passing(wrong(text)))
            }
            Err(_) => Err(Failure::passing(self.idle())),
        }
    }

    /// Returns the error for a connection that delivers nothing.
    pub(crate) fn idle(&self) -> Error {
        wrong(format!("no data for {} s", self.options.idle_timeout.as_secs_f64()))
    }

    async fn check_status(&self, response: Response, is_first: bool) -> Result<Response, Failure> {
        let status = response.status();
        if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE) {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let region = response.headers().get("x-amz-bucket-region").map(text);
        let mut found = match status.canonical_reason() {
            Some(reason) => format!("the answer {} {reason}", status.as_u16()),
            None => format!("the answer {}", status.as_u16()),
        };
        if let Some(reason) = self.reason(response).await {
            found += &format!(" ({reason})");
        }
        if let Some(region) = region.filter(|_| status.is_redirection()) {
            found += &format!(" for a bucket of the region {region}; set AWS_REGION");
        }
        let expected = "the object";
        Err(match status.as_u16() {
            408 | 425 | 429 | 500 | 502 | 503 | 504 => {
                Failure::Passing { error: wrong(found).with_expected(expected), retry_after }
            }
            404 | 410 | 412 if !is_first => Error::new(ErrorKind::SourceChanged)
                .with_found(found)
                .with_expected("the version that was read at the start")
                .into(),
            _ if is_first => Error::new(ErrorKind::OpenFailed).with_found(found).into(),
            _ => wrong(found).with_expected(expected).into(),
        })
    }

    /// Returns the reason in an error document.
    async fn reason(&self, mut response: Response) -> Option<String> {
        let mut body = Vec::new();
        while body.len() < 4096 {
            match timeout(self.options.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk[..chunk.len().min(4096)]),
                _ => break,
            }
        }
        s3::reason(&String::from_utf8_lossy(&body))
    }
}

fn refused_address(refused: &guard::Refused) -> Error {
    Error::new(ErrorKind::OpenFailed)
        .with_found(refused.to_string())
        .with_expected("another address; allow this one with `allow_link_local`")
}

/// Returns the seconds that a server requests. Dates are not examined: clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
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
