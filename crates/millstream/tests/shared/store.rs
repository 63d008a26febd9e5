//! A store in memory, which fails as stores and networks do.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use data_encoding::BASE64;
use md5::{Digest, Md5};
use millstream::Remote;

use crate::http;

/// The size of a part in these tests.
pub(crate) const PART: u64 = 100;

/// How a store wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    S3,
    Gcs,
    Azure,
}

pub(crate) const DIALECTS: [Dialect; 3] = [Dialect::S3, Dialect::Gcs, Dialect::Azure];

impl Dialect {
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Dialect::S3 => "s3",
            Dialect::Gcs => "gs",
            Dialect::Azure => "az",
        }
    }

    /// The header with the identity of a write.
    pub(crate) fn write_id(self) -> &'static str {
        match self {
            Dialect::S3 => "x-amz-meta-millstream-id",
            Dialect::Gcs => "x-goog-meta-millstream-id",
            Dialect::Azure => "x-ms-meta-millstream_id",
        }
    }

    /// The header of an object's type, and one of the user's metadata.
    pub(crate) fn object_headers(self) -> [&'static str; 2] {
        match self {
            Dialect::S3 => ["content-type", "x-amz-meta-team"],
            Dialect::Gcs => ["content-type", "x-goog-meta-team"],
            Dialect::Azure => ["x-ms-blob-content-type", "x-ms-meta-team"],
        }
    }

    /// The number of requests of an object of five parts: a look, the beginning of an upload, the parts, the completion.
    pub(crate) fn requests(self) -> usize {
        if self == Dialect::Azure { 7 } else { 8 }
    }

    /// Whether an object of several parts can be created without replacing one.
    pub(crate) fn creates_long_objects(self) -> bool {
        self != Dialect::Gcs
    }

    /// Whether unfinished uploads are visible and can be removed.
    pub(crate) fn has_uploads(self) -> bool {
        self != Dialect::Azure
    }
}

/// What a store does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The connection is closed, and the request has no effect.
    LostBefore,
    /// The request has its effect, and the connection is closed without an answer.
    LostAfter,
    /// The request has its effect, and the answer ends in its middle.
    CutAnswer,
    /// This status, without an effect.
    Status(u16),
    /// This status, although the request had its effect.
    StatusAfter(u16),
    /// Status 200 with a document of an error.
    ErrorInSuccess,
    /// No answer for a while.
    Stall,
    /// The first page of a list, whichever was requested.
    FirstPage,
    /// The request has its effect, another program replaces the object, and the answer is lost.
    Replaced,
}

#[derive(Clone, Default)]
pub(crate) struct Stored {
    pub(crate) key: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) headers: HashMap<String, String>,
}

impl Stored {
    /// The answer to a GET.
    pub(crate) fn part(&self, request: &Request) -> Answer {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let length = self.bytes.len();
        let Some(range) = request.headers.get("range") else { return Answer::new(200, text(&self.bytes)) };
        let (begin, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let begin: usize = begin.parse().unwrap();
        if begin >= length {
            return Answer::error(416, "InvalidRange");
        }
        let end = end.parse().map_or(length, |end: usize| length.min(end + 1));
        let headers = format!("Content-Range: bytes {begin}-{}/{length}\r\nETag: \"{length}\"\r\n", end - 1);
        Answer { headers, ..Answer::new(206, text(&self.bytes[begin..end])) }
    }
}

pub(crate) struct Pending {
    pub(crate) key: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) parts: BTreeMap<u32, Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct Content {
    pub(crate) objects: HashMap<String, Stored>,
    pub(crate) uploads: BTreeMap<String, Pending>,
    /// Every object that a request has written.
    pub(crate) history: Vec<Stored>,
    pub(crate) created: usize,
}

impl Content {
    /// Whether uploads are left. Azure keeps blocks for a week.
    pub(crate) fn has_left(&self, dialect: Dialect) -> bool {
        dialect.has_uploads() && !self.uploads.is_empty()
    }
}

/// A store on a free port.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) dialect: Dialect,
    pub(crate) address: String,
    pub(crate) content: Arc<Mutex<Content>>,
    pub(crate) requests: Arc<AtomicUsize>,
    pub(crate) faults: Arc<AtomicUsize>,
    pub(crate) page: usize,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) key: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) number: usize,
}

impl Request {
    /// Whether it makes an object appear.
    pub(crate) fn completes(&self) -> bool {
        self.method == "POST" && self.query.contains_key("uploadId") || self.method == "PUT" && !self.is_part()
    }

    pub(crate) fn is_part(&self) -> bool {
        self.method == "PUT" && self.part().is_some()
    }

    /// The number of the part that it sends.
    pub(crate) fn part(&self) -> Option<u32> {
        let block = self.query.get("blockid").map(|block| block[block.len() - 8..].parse().unwrap());
        block.or_else(|| self.query.get("partNumber").map(|number| number.parse().unwrap()))
    }

    /// Whether its checksum is the one of its body, if it has one.
    pub(crate) fn is_intact(&self) -> bool {
        self.headers.get("content-md5").is_none_or(|sum| *sum == BASE64.encode(&Md5::digest(&self.body)))
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
    pub(crate) length: Option<usize>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Answer {
        Answer { status, headers: String::new(), body: body.into(), length: None }
    }

    pub(crate) fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>m</Message></Error>"))
    }
}

impl Store {
    pub(crate) fn new(dialect: Dialect, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Store {
        Store::with_pages(dialect, 1000, fault)
    }

    pub(crate) fn with_pages(
        dialect: Dialect,
        page: usize,
        fault: impl Fn(&Request) -> Fault + Send + Sync + 'static,
    ) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (requests, faults) = (Arc::default(), Arc::default());
        let store = Store { dialect, address, content: Arc::default(), requests, faults, page };
        let (server, fault) = (store.clone(), Arc::new(fault));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, fault, stream) = (server.clone(), fault.clone(), stream.unwrap());
                std::thread::spawn(move || server.serve(stream, &*fault));
            }
        });
        store
    }

    pub(crate) fn good(dialect: Dialect) -> Store {
        Store::new(dialect, |_| Fault::None)
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        *self.content() = Content::default();
    }

    pub(crate) fn remote(&self, key: &str) -> Remote {
        self.remote_at(&format!("{}://bucket/{key}", self.dialect.scheme()))
    }

    pub(crate) fn remote_at(&self, url: &str) -> Remote {
        Remote::new(url)
            .endpoint(format!("http://{}", self.address))
            .anonymous(true)
            .part_limit(9999)
            .part_size(PART)
            .retry_for(Duration::from_secs(20))
    }

    pub(crate) fn serve(&self, mut stream: TcpStream, fault: &dyn Fn(&Request) -> Fault) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(mut request) = self.read_request(&mut reader) {
            let kind = fault(&request);
            self.faults.fetch_add(usize::from(kind != Fault::None), Ordering::SeqCst);
            if kind == Fault::FirstPage {
                request.query.remove("key-marker");
                request.query.remove("upload-id-marker");
            }
            let answer = match kind {
                Fault::LostBefore => break,
                Fault::Status(status @ (401 | 403)) => Answer::error(status, "InvalidAccessKeyId"),
                Fault::Status(status) => {
                    Answer::error(status, if status == 503 { "SlowDown" } else { "InternalError" })
                }
                Fault::ErrorInSuccess => Answer::error(200, "InternalError"),
                Fault::Stall => {
                    std::thread::sleep(Duration::from_secs(3));
                    break;
                }
                _ => self.apply(&request),
            };
            match kind {
                Fault::LostAfter => break,
                Fault::Replaced => {
                    let other = Stored { bytes: b"of another program".to_vec(), ..Stored::default() };
                    let mut content = self.content();
                    content.objects.insert(request.key.clone(), other);
                    if self.dialect == Dialect::Azure {
                        content.uploads.retain(|_, pending| pending.key != request.key);
                    }
                    break;
                }
                _ => {}
            }
            let status = if let Fault::StatusAfter(status) = kind { status } else { answer.status };
            let body = if request.method == "HEAD" { "" } else { &answer.body };
            let length = answer.length.unwrap_or(answer.body.len());
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{}\r\n", answer.headers);
            let whole = [head.as_bytes(), body.as_bytes()].concat();
            if kind == Fault::CutAnswer {
                let _ = stream.write_all(&whole[..whole.len() - whole.len().min(3 + body.len() / 2)]);
                break;
            }
            if stream.write_all(&whole).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
    }

    pub(crate) fn read_request(&self, reader: &mut impl BufRead) -> Option<Request> {
        let lines = http::head(reader)?;
        let headers: HashMap<_, _> = lines[1..]
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_string()))
            .collect();
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let mut words = lines[0].split(' ');
        let (method, target) = (words.next()?.to_string(), words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_string(), decoded(value))
        });
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let key = decoded(path.strip_prefix("/bucket")?.trim_start_matches('/'));
        Some(Request { method, key, query: query.collect(), headers, body, number })
    }

    pub(crate) fn apply(&self, request: &Request) -> Answer {
        let mut content = self.content();
        assert!(request.is_intact());
        if matches!(&*request.method, "GET" | "HEAD") {
            // Google would decompress objects otherwise.
            let expected = if self.dialect == Dialect::Gcs { "gzip" } else { "identity" };
            assert_eq!(request.headers["accept-encoding"], expected);
        }
        if self.dialect == Dialect::Azure {
            return self.apply_to_blob(&mut content, request);
        }
        let exists = content.objects.contains_key(&request.key);
        let (condition, value) = match self.dialect {
            Dialect::S3 => ("if-none-match", "*"),
            _ => ("x-goog-if-generation-match", "0"),
        };
        let is_refused = request.headers.get(condition).is_some_and(|found| found == value) && exists;
        let upload = request.query.get("uploadId").cloned().unwrap_or_default();
        let is_known = content.uploads.get(&upload).is_some_and(|pending| pending.key == request.key);
        match (&*request.method, request.query.contains_key("uploads"), !upload.is_empty()) {
            ("PUT", _, false) if is_refused => Answer::error(412, "PreconditionFailed"),
            ("PUT", _, false) => {
                let (key, headers) = (request.key.clone(), request.headers.clone());
                let stored = Stored { key, bytes: request.body.clone(), headers };
                content.history.push(stored.clone());
                content.objects.insert(request.key.clone(), stored);
                Answer::new(200, "")
            }
            ("POST", true, _) => {
                content.created += 1;
                let id = format!("upload&{:05}", content.created);
                let (key, headers) = (request.key.clone(), request.headers.clone());
                content.uploads.insert(id.clone(), Pending { key, headers, parts: BTreeMap::new() });
                let id = id.replace('&', "&amp;");
                Answer::new(
                    200,
                    format!(
                        "<?xml version=\"1.0\"?><InitiateMultipartUploadResult xmlns=\"http://s3/\">\
                         <Key>x</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                    ),
                )
            }
            (_, _, true) if !is_known => Answer::error(404, "NoSuchUpload"),
            ("PUT", _, true) => {
                let number = request.query["partNumber"].parse().unwrap();
                content.uploads.get_mut(&upload).unwrap().parts.insert(number, request.body.clone());
                Answer { headers: format!("ETag: \"part-{number}\"\r\n"), ..Answer::new(200, "") }
            }
            ("POST", _, true) if is_refused => Answer::error(412, "PreconditionFailed"),
            ("POST", _, true) => {
                let pending = content.uploads.remove(&upload).unwrap();
                let listed = String::from_utf8(request.body.clone()).unwrap();
                assert_eq!(listed.matches("<PartNumber>").count(), pending.parts.len(), "{listed}");
                for number in pending.parts.keys() {
                    let part = format!("<PartNumber>{number}</PartNumber><ETag>&quot;part-{number}&quot;</ETag>");
                    assert!(listed.contains(&part), "{listed}");
                }
                let bytes = pending.parts.into_values().flatten().collect();
                let stored = Stored { key: pending.key, bytes, headers: pending.headers };
                content.history.push(stored.clone());
                content.objects.insert(request.key.clone(), stored);
                let body = "<?xml version=\"1.0\"?>\n   <CompleteMultipartUploadResult><ETag>\"e\"</ETag></CompleteMultipartUploadResult>";
                Answer::new(200, body)
            }
            ("DELETE", _, true) => {
                content.uploads.remove(&upload);
                Answer::new(204, "")
            }
            ("GET", _, true) => Answer::new(200, "<ListPartsResult></ListPartsResult>"),
            ("DELETE", ..) => {
                content.objects.remove(&request.key);
                Answer::new(204, "")
            }
            ("GET", true, _) => self.list(&content, request),
            ("GET", ..) if request.query.contains_key("list-type") => self.list_objects(&content, request),
            ("HEAD" | "GET", ..) => match content.objects.get(&request.key) {
                None => Answer::error(404, "NoSuchKey"),
                Some(stored) if request.method == "HEAD" => self.properties(stored),
                Some(stored) => stored.part(request),
            },
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    /// The answer to a HEAD.
    pub(crate) fn properties(&self, stored: &Stored) -> Answer {
        let name = self.dialect.write_id();
        let id = stored.headers.get(name).cloned().unwrap_or_default();
        Answer { headers: format!("{name}: {id}\r\n"), length: Some(stored.bytes.len()), ..Answer::new(200, "") }
    }

    /// Azure: blocks belong to the object, and writing it discards those that are not in the list.
    pub(crate) fn apply_to_blob(&self, content: &mut Content, request: &Request) -> Answer {
        let exists = content.objects.contains_key(&request.key);
        let is_refused = request.headers.get("if-none-match").is_some_and(|value| value == "*") && exists;
        let upload = request.query.get("blockid").map(|block| block[..32].to_string());
        assert!(request.headers.contains_key("x-ms-version"));
        match (&*request.method, request.query.get("comp").map(String::as_str)) {
            ("PUT", Some("block")) => {
                let (key, headers) = (request.key.clone(), HashMap::new());
                let pending = content.uploads.entry(upload.unwrap()).or_insert_with(|| {
                    content.created += 1;
                    Pending { key, headers, parts: BTreeMap::new() }
                });
                assert_eq!(pending.key, request.key);
                pending.parts.insert(request.part().unwrap(), request.body.clone());
                Answer::new(201, "")
            }
            ("PUT", _) if is_refused => Answer::error(409, "BlobAlreadyExists"),
            ("PUT", comp) => {
                let bytes = match comp {
                    None => {
                        assert_eq!(request.headers["x-ms-blob-type"], "BlockBlob");
                        Some(request.body.clone())
                    }
                    Some(_) => {
                        let listed = String::from_utf8(request.body.clone()).unwrap();
                        let blocks = listed.split("<Uncommitted>").skip(1).map(|rest| rest.split('<').next().unwrap());
                        let find = |block: &str| {
                            let pending = content.uploads.get(&block[..32]).filter(|one| one.key == request.key)?;
                            pending.parts.get(&block[32..].parse().unwrap()).cloned()
                        };
                        blocks.map(find).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
                    }
                };
                let Some(bytes) = bytes else { return Answer::error(400, "InvalidBlockList") };
                content.uploads.retain(|_, pending| pending.key != request.key);
                let stored = Stored { key: request.key.clone(), bytes, headers: request.headers.clone() };
                content.history.push(stored.clone());
                content.objects.insert(request.key.clone(), stored);
                Answer::new(201, "")
            }
            ("GET", Some("blocklist")) => {
                let pending = content.uploads.iter().filter(|(_, pending)| pending.key == request.key);
                let names =
                    pending.flat_map(|(id, pending)| pending.parts.keys().map(move |at| format!("{id}{at:08}")));
                let blocks: Vec<_> = names.map(|name| format!("<Block><Name>{name}</Name></Block>")).collect();
                match exists || !blocks.is_empty() {
                    true => Answer::new(
                        200,
                        format!(
                            "\u{feff}<?xml version=\"1.0\"?><BlockList><UncommittedBlocks>{}</UncommittedBlocks></BlockList>",
                            blocks.concat()
                        ),
                    ),
                    false => Answer::error(404, "BlobNotFound"),
                }
            }
            ("HEAD" | "GET", None) => match content.objects.get(&request.key) {
                None => Answer::error(404, "BlobNotFound"),
                Some(stored) if request.method == "HEAD" => self.properties(stored),
                Some(stored) => stored.part(request),
            },
            _ => Answer::error(405, "UnsupportedHttpVerb"),
        }
    }

    pub(crate) fn list_objects(&self, content: &Content, request: &Request) -> Answer {
        let query = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let mut all: Vec<&Stored> = content.objects.values().collect();
        all.retain(|stored| stored.key.starts_with(&query("prefix")) && stored.key > query("continuation-token"));
        all.sort_by_key(|stored| stored.key.clone());
        let is_truncated = all.len() > self.page;
        all.truncate(self.page);
        let mut body = format!("<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>");
        if let (Some(last), true) = (all.last(), is_truncated) {
            body += &format!("<NextContinuationToken>{}</NextContinuationToken>", last.key);
        }
        for stored in all {
            let size = stored.bytes.len();
            let etag = format!("<ETag>&quot;{size}&quot;</ETag>");
            body += &format!("<Contents><Key>{}</Key>{etag}<Size>{size}</Size></Contents>", stored.key);
        }
        Answer::new(200, body + "</ListBucketResult>")
    }

    pub(crate) fn list(&self, content: &Content, request: &Request) -> Answer {
        let query = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let marker = (query("key-marker"), query("upload-id-marker"));
        let mut all: Vec<_> = content.uploads.iter().map(|(id, pending)| (pending.key.clone(), id.clone())).collect();
        all.sort();
        all.retain(|(key, id)| key.starts_with(&query("prefix")) && (key.clone(), id.clone()) > marker);
        let is_truncated = all.len() > self.page;
        all.truncate(self.page);
        let escape = |text: &str| text.replace('&', "&amp;");
        let mut body = format!("<ListMultipartUploadsResult><IsTruncated>{is_truncated}</IsTruncated>");
        if let (Some((key, id)), true) = (all.last(), is_truncated) {
            body +=
                &format!("<NextKeyMarker>{key}</NextKeyMarker><NextUploadIdMarker>{}</NextUploadIdMarker>", escape(id));
        }
        for (key, id) in &all {
            body += &format!(
                "<Upload><Key>{key}</Key><UploadId>{}</UploadId><Initiator><ID>a</ID></Initiator>\
                 <Initiated>2026-11-27T15:00:00.000Z</Initiated></Upload>",
                escape(id)
            );
        }
        Answer::new(200, body + "</ListMultipartUploadsResult>")
    }
}

pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}
