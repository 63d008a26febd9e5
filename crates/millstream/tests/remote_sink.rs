//! Objects as sinks, of a store in memory that fails as stores and networks do: an object appears whole or not at all.

#[path = "shared/http.rs"]
mod http;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use data_encoding::BASE64;
use md5::{Digest, Md5};
use millstream::remote::{Outcome, Uploads, outcome};
use millstream::{CancelToken, Encode, Error, ErrorKind, Existing, FlushPolicy, Partial, Reader, Remote, Writer};

/// The size of a part in these tests.
const PART: u64 = 100;

/// How a store wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    S3,
    Gcs,
    Azure,
}

const DIALECTS: [Dialect; 3] = [Dialect::S3, Dialect::Gcs, Dialect::Azure];

impl Dialect {
    fn scheme(self) -> &'static str {
        match self {
            Dialect::S3 => "s3",
            Dialect::Gcs => "gs",
            Dialect::Azure => "az",
        }
    }

    /// The header with the identity of a write.
    fn write_id(self) -> &'static str {
        match self {
            Dialect::S3 => "x-amz-meta-millstream-id",
            Dialect::Gcs => "x-goog-meta-millstream-id",
            Dialect::Azure => "x-ms-meta-millstream_id",
        }
    }

    /// The header of an object's type, and one of the user's metadata.
    fn object_headers(self) -> [&'static str; 2] {
        match self {
            Dialect::S3 => ["content-type", "x-amz-meta-team"],
            Dialect::Gcs => ["content-type", "x-goog-meta-team"],
            Dialect::Azure => ["x-ms-blob-content-type", "x-ms-meta-team"],
        }
    }

    /// The number of requests of an object of five parts: a look, the beginning of an upload, the parts, the completion.
    fn requests(self) -> usize {
        if self == Dialect::Azure { 7 } else { 8 }
    }

    /// Whether an object of several parts can be created without replacing one.
    fn creates_long_objects(self) -> bool {
        self != Dialect::Gcs
    }

    /// Whether unfinished uploads are visible and can be removed.
    fn has_uploads(self) -> bool {
        self != Dialect::Azure
    }
}

/// What a store does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
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
struct Stored {
    key: String,
    bytes: Vec<u8>,
    headers: HashMap<String, String>,
}

struct Pending {
    key: String,
    headers: HashMap<String, String>,
    parts: BTreeMap<u32, Vec<u8>>,
}

#[derive(Default)]
struct Content {
    objects: HashMap<String, Stored>,
    uploads: BTreeMap<String, Pending>,
    /// Every object that a request has written.
    history: Vec<Stored>,
    created: usize,
}

impl Content {
    /// Whether uploads are left. Azure keeps blocks for a week.
    fn has_left(&self, dialect: Dialect) -> bool {
        dialect.has_uploads() && !self.uploads.is_empty()
    }
}

/// A store on a free port.
#[derive(Clone)]
struct Store {
    dialect: Dialect,
    address: String,
    content: Arc<Mutex<Content>>,
    requests: Arc<AtomicUsize>,
    faults: Arc<AtomicUsize>,
    page: usize,
}

struct Request {
    method: String,
    key: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: Vec<u8>,
    number: usize,
}

impl Request {
    /// Whether it makes an object appear.
    fn completes(&self) -> bool {
        self.method == "POST" && self.query.contains_key("uploadId") || self.method == "PUT" && !self.is_part()
    }

    fn is_part(&self) -> bool {
        self.method == "PUT" && self.part().is_some()
    }

    /// The number of the part that it sends.
    fn part(&self) -> Option<u32> {
        let block = self.query.get("blockid").map(|block| block[block.len() - 8..].parse().unwrap());
        block.or_else(|| self.query.get("partNumber").map(|number| number.parse().unwrap()))
    }

    /// Whether its checksum is the one of its body, if it has one.
    fn is_intact(&self) -> bool {
        self.headers.get("content-md5").is_none_or(|sum| *sum == BASE64.encode(&Md5::digest(&self.body)))
    }
}

struct Answer {
    status: u16,
    headers: String,
    body: String,
    length: Option<usize>,
}

impl Answer {
    fn new(status: u16, body: impl Into<String>) -> Answer {
        Answer { status, headers: String::new(), body: body.into(), length: None }
    }

    fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>m</Message></Error>"))
    }
}

impl Store {
    fn new(dialect: Dialect, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Store {
        Store::with_pages(dialect, 1000, fault)
    }

    fn with_pages(dialect: Dialect, page: usize, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Store {
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

    fn good(dialect: Dialect) -> Store {
        Store::new(dialect, |_| Fault::None)
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    fn remote(&self, key: &str) -> Remote {
        self.remote_at(&format!("{}://bucket/{key}", self.dialect.scheme()))
    }

    fn remote_at(&self, url: &str) -> Remote {
        Remote::new(url)
            .endpoint(format!("http://{}", self.address))
            .anonymous(true)
            .part_limit(9999)
            .part_size(PART)
            .retry_for(Duration::from_secs(20))
    }

    fn serve(&self, mut stream: TcpStream, fault: &dyn Fn(&Request) -> Fault) {
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

    fn read_request(&self, reader: &mut impl BufRead) -> Option<Request> {
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

    fn apply(&self, request: &Request) -> Answer {
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
            ("GET", true, _) => self.list(&content, request),
            ("HEAD" | "GET", ..) => match content.objects.get(&request.key) {
                None => Answer::error(404, "NoSuchKey"),
                Some(stored) if request.method == "HEAD" => self.properties(stored),
                Some(stored) if stored.bytes.is_empty() => Answer::error(416, "InvalidRange"),
                Some(_) => Answer::new(206, "x"),
            },
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    /// The answer to a HEAD.
    fn properties(&self, stored: &Stored) -> Answer {
        let name = self.dialect.write_id();
        let id = stored.headers.get(name).cloned().unwrap_or_default();
        Answer { headers: format!("{name}: {id}\r\n"), length: Some(stored.bytes.len()), ..Answer::new(200, "") }
    }

    /// Azure: blocks belong to the object, and writing it discards those that are not in the list.
    fn apply_to_blob(&self, content: &mut Content, request: &Request) -> Answer {
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
                Some(stored) if stored.bytes.is_empty() => Answer::error(416, "InvalidRange"),
                Some(_) => Answer::new(206, "x"),
            },
            _ => Answer::error(405, "UnsupportedHttpVerb"),
        }
    }

    fn list(&self, content: &Content, request: &Request) -> Answer {
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

/// Runs a test for each kind of store, at the same time.
fn each(test: impl Fn(Dialect) + Sync) {
    std::thread::scope(|scope| {
        for dialect in DIALECTS {
            let test = &test;
            scope.spawn(move || test(dialect));
        }
    });
}

fn decoded(text: &str) -> String {
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

fn is_deep() -> bool {
    std::env::var_os("MILLSTREAM_DEEP").is_some()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}

fn write(remote: Remote, content: &[u8]) -> Result<(), Error> {
    let mut writer = Writer::builder().capacity(64).url(remote)?;
    writer.write(content)?;
    writer.close().map(drop)
}

/// Random numbers: Knuth's MMIX generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn objects_of_every_number_of_parts_appear_when_they_are_closed() {
    each(|dialect| {
        let store = Store::good(dialect);
        for length in [0, 1, 99, 100, 101, 199, 200, 201, 1234] {
            let content = bytes(length);
            let mut writer = Writer::builder().capacity(64).url(store.remote("a/b")).unwrap();
            for piece in content.chunks(33) {
                writer.write(piece).unwrap();
            }
            writer.flush().unwrap();
            assert!(store.content().objects.is_empty(), "visible too early");
            assert_eq!(writer.close().unwrap().written, length as u64);
            let stored = store.content().objects.remove("a/b").unwrap();
            assert!(stored.bytes == content, "{length}");
            assert!(!store.content().has_left(dialect));
        }
    });
}

#[test]
fn keys_and_headers_arrive_as_they_are_given() {
    each(|dialect| {
        let store = Store::good(dialect);
        for key in ["a b", "100%", "a#b?c=d&e", "é/ü", "a//b", "+", "a\nb"] {
            for length in [5, 500] {
                let [kind, team] = dialect.object_headers();
                let remote = store.remote(key).header("Content-Type", "text/csv").header(team, "a");
                write(remote, &bytes(length)).unwrap();
                let stored = store.content().objects.remove(key).unwrap();
                assert_eq!(stored.bytes.len(), length);
                assert_eq!(stored.headers[kind], "text/csv");
                assert_eq!(stored.headers[team], "a");
                assert_eq!(stored.headers[dialect.write_id()].len(), 32);
            }
        }
    });
}

#[test]
fn the_name_decides_about_compression() {
    let store = Store::good(Dialect::S3);
    write(store.remote("a.csv.gz"), &bytes(1000)).unwrap();
    let stored = store.content().objects["a.csv.gz"].bytes.clone();
    assert_eq!(stored[..2], [0x1f, 0x8b]);
    let mut decoded = Vec::new();
    Reader::memory(stored).unwrap().read_to_end(&mut decoded).unwrap();
    assert_eq!(decoded, bytes(1000));
    Writer::builder().encode(Encode::Off).url(store.remote("b.gz")).unwrap().close().unwrap();
    assert_eq!(store.content().objects["b.gz"].bytes, b"");
}

#[test]
fn a_producer_that_fails_leaves_no_object_and_no_upload() {
    each(|dialect| {
        let store = Store::good(dialect);
        let mut random = Random(1);
        for run in 0..if is_deep() { 10_000 } else { 1000 } {
            let length = random.below(1000) as usize;
            let mut writer = Writer::builder().capacity(64).url(store.remote("a")).unwrap();
            writer.write(&bytes(length)).unwrap();
            match run % 3 {
                0 => drop(writer),
                1 => writer.abort(),
                _ => {
                    let mut lines = Reader::command(["sh", "-c", "echo a; exit 3"]).unwrap();
                    let failed = loop {
                        match lines.next_line() {
                            Ok(Some(line)) => writer.write(line).unwrap(),
                            other => break other.map(drop),
                        }
                    };
                    assert_eq!(failed.unwrap_err().kind(), ErrorKind::CommandFailed);
                    drop(writer);
                }
            }
            let content = store.content();
            assert!(content.objects.is_empty() && !content.has_left(dialect), "{run}: {length}");
        }
        assert!(store.content().created > 500, "some were uploads of several parts");
    });
}

#[test]
fn a_fault_of_any_one_request_is_repaired() {
    let faults_of_all = AtomicUsize::new(0);
    each(|dialect| {
        let faults = [
            Fault::LostBefore,
            Fault::LostAfter,
            Fault::CutAnswer,
            Fault::Status(500),
            Fault::Status(503),
            Fault::Status(429),
            Fault::StatusAfter(500),
            Fault::StatusAfter(504),
            Fault::Stall,
        ];
        let repaired = |length: usize, fault: Fault| {
            // A look, a new upload, five parts and the completion: 8 requests.
            for at in 0..if length > 100 { dialect.requests() } else { 2 } {
                let store = Store::new(dialect, move |request| if request.number == at { fault } else { Fault::None });
                // Without a stall, the limit is long: a slow machine must not look like a stall.
                let limit = Duration::from_secs(if fault == Fault::Stall { 1 } else { 10 });
                let remote = store.remote("a").idle_timeout(limit);
                write(remote, &bytes(length)).unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
                let content = store.content();
                assert!(content.objects["a"].bytes == bytes(length), "{fault:?} at {at}");
                // A lost answer to the request that begins an upload leaves that upload.
                let lost = content.created.saturating_sub(1);
                assert_eq!(content.uploads.len(), lost, "{fault:?} at {at}");
                assert!(lost == 0 || at == 1, "{fault:?} at {at}");
                faults_of_all.fetch_add(store.faults.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        };
        let repaired = &repaired;
        std::thread::scope(|scope| {
            for (length, fault) in [50, 450].into_iter().flat_map(|length| faults.map(|fault| (length, fault))) {
                scope.spawn(move || repaired(length, fault));
            }
        });
    });
    let faults = faults_of_all.into_inner();
    println!("{faults} faults of one request");
    assert!(faults >= 250, "{faults}");
}

/// What happens to the last requests of one object.
struct Plan {
    choices: Vec<u64>,
    with_overwriter: bool,
    has_begun: bool,
    seen: usize,
}

impl Plan {
    fn fault(&mut self, request: &Request) -> Fault {
        self.has_begun |= request.completes();
        if !self.has_begun {
            return Fault::None;
        }
        self.seen += 1;
        match self.choices.get(self.seen - 1) {
            Some(0..4) => Fault::LostAfter,
            Some(4) => Fault::LostBefore,
            Some(5) => Fault::CutAnswer,
            Some(6) => Fault::Status(503),
            Some(7) => Fault::Status(500),
            Some(8) => Fault::StatusAfter(500),
            Some(9) if request.completes() => Fault::ErrorInSuccess,
            Some(10) if request.completes() => Fault::Status(403),
            Some(11..13) if request.completes() && self.with_overwriter => Fault::Replaced,
            _ => Fault::None,
        }
    }
}

/// Whatever happens to the last requests: success means that the object was written; an error other than
/// `OutcomeUnknown` means that it was not and will not be, and nothing is left without a report.
#[test]
fn the_outcome_of_a_completion_is_never_wrong() {
    each(|dialect| {
        let runs = if is_deep() { 10_000 } else { 1000 };
        let plans: Arc<Mutex<HashMap<String, Plan>>> = Arc::default();
        let store = Store::new(dialect, {
            let plans = plans.clone();
            move |request| plans.lock().unwrap().get_mut(&request.key).unwrap().fault(request)
        });
        let (next, unknown) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Most of the time is spent waiting before requests are repeated.
        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    loop {
                        let run = next.fetch_add(1, Ordering::SeqCst);
                        if run >= runs {
                            break;
                        }
                        let mut random = Random(run as u64);
                        let choices = (0..6).map(|_| random.below(16)).collect();
                        let (creates, is_long) = (random.below(4) == 0, random.below(4) > 0);
                        let is_long = is_long && (!creates || dialect.creates_long_objects());
                        let plan = Plan { choices, with_overwriter: run % 2 == 0, has_begun: false, seen: 0 };
                        let key = format!("run-{run}");
                        plans.lock().unwrap().insert(key.clone(), plan);
                        let is_known = check_outcome(&store, &key, creates, is_long);
                        unknown.fetch_add(usize::from(!is_known), Ordering::SeqCst);
                    }
                });
            }
        });
        let unknown = unknown.into_inner();
        let faults = store.faults.load(Ordering::SeqCst);
        println!("{dialect:?}: {faults} faults of {runs} completions, {unknown} with an unknown outcome");
        assert!(unknown < runs / 4 && faults > runs, "{unknown}, {faults}");
    });
}

/// Writes an object and checks the result. Returns whether the outcome is known.
fn check_outcome(store: &Store, key: &str, creates: bool, is_long: bool) -> bool {
    let scheme = store.dialect.scheme();
    let content = bytes(if is_long { 250 } else { 80 });
    let existing = if creates { Existing::CreateNew } else { Existing::Replace };
    let is_reported = Arc::new(AtomicBool::new(false));
    let remote = store.remote(key).on_unfinished({
        let is_reported = is_reported.clone();
        move |_| is_reported.store(true, Ordering::SeqCst)
    });
    let mut writer = Writer::builder().existing(existing).url(remote).unwrap();
    writer.write(&content).unwrap();
    let result = writer.try_close();
    drop(writer);
    let stored = store.content();
    let was_written = stored.history.iter().any(|object| object.key == key && object.bytes == content);
    let is_left = store.dialect.has_uploads() && stored.uploads.values().any(|pending| pending.key == key);
    match result {
        Ok(_) => {
            assert!(was_written, "{key}: success without an object");
            assert!(!is_left, "{key}");
        }
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
            let text = error.to_string();
            assert!(text.contains(&format!("millstream uploads outcome {scheme}://bucket/{key} --id ")), "{text}");
            return false;
        }
        Err(error) => {
            assert!(!was_written, "{key}: {error}, and the object was written");
            // Removing it may fail for longer than a writer that is dropped waits.
            assert!(!is_left || is_reported.load(Ordering::SeqCst), "{key}: {error}");
        }
    }
    true
}

#[test]
fn a_lost_answer_without_another_writer_is_always_decided() {
    each(|dialect| {
        for length in [80, 250] {
            for losses in 1..6 {
                for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CutAnswer] {
                    let seen = AtomicUsize::new(0);
                    let store = Store::new(dialect, move |request| {
                        let is_lost = request.completes() && seen.fetch_add(1, Ordering::SeqCst) < losses;
                        if is_lost { fault } else { Fault::None }
                    });
                    write(store.remote("a"), &bytes(length)).unwrap();
                    assert!(store.content().objects["a"].bytes == bytes(length));
                    assert!(!store.content().has_left(dialect));
                }
            }
        }
    });
}

#[test]
fn an_upload_whose_completion_may_be_at_work_is_not_removed() {
    each(|dialect| {
        let store = Store::new(dialect, |request| if request.completes() { Fault::LostBefore } else { Fault::None });
        let remote = store.remote("a").retry_for(Duration::from_millis(200));
        let error = write(remote, &bytes(250)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(store.content().uploads.len(), 1);
        // The error says how to look again.
        let text = error.to_string();
        let word = |name: &str| {
            let (_, rest) = text.split_once(name).unwrap();
            rest.split([' ', '`']).next().unwrap().to_string()
        };
        let (id, upload) = (word("--id "), word("--upload "));
        assert_eq!(outcome(store.remote("a"), &id, Some(&upload)).unwrap(), Outcome::NotWritten);
        store.content().uploads.clear();
        assert_eq!(outcome(store.remote("a"), &id, Some(&upload)).unwrap(), Outcome::Unknown);
        write(store_with(&store, "a"), &bytes(3)).unwrap();
        assert_eq!(outcome(store.remote("a"), &id, Some(&upload)).unwrap(), Outcome::Unknown);
        let own = store.content().objects["a"].headers[dialect.write_id()].clone();
        assert_eq!(outcome(store.remote("a"), &own, None).unwrap(), Outcome::Written);
    });
}

/// Another server for the same content, which does not fail.
fn store_with(store: &Store, key: &str) -> Remote {
    let good = Store::good(store.dialect);
    let content = store.content.clone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Store { address: listener.local_addr().unwrap().to_string(), content, ..good };
    let remote = server.remote(key);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let server = server.clone();
            std::thread::spawn(move || server.serve(stream.unwrap(), &|_| Fault::None));
        }
    });
    remote
}

#[test]
fn an_error_that_the_store_repeats_is_certain() {
    each(|dialect| {
        let store =
            Store::new(dialect, |request| if request.completes() { Fault::ErrorInSuccess } else { Fault::None });
        let error = write(store.remote("a").retry_for(Duration::from_millis(300)), &bytes(250)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RemoteFailed, "{error}");
        assert!(error.to_string().contains("InternalError"), "{error}");
        assert!(!store.content().has_left(dialect) && store.content().objects.is_empty());
    });
}

#[test]
fn an_object_that_is_to_be_created_replaces_none() {
    each(|dialect| {
        for length in if dialect.creates_long_objects() { vec![80, 250] } else { vec![80] } {
            let store = Store::good(dialect);
            let open = || Writer::builder().existing(Existing::CreateNew).url(store.remote("a"));
            let mut first = open().unwrap();
            first.write(&bytes(length)).unwrap();
            write(store.remote("a"), b"of another program").unwrap();
            assert_eq!(open().unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(first.close().unwrap_err().kind(), ErrorKind::AlreadyExists);
            let content = store.content();
            assert_eq!(content.objects["a"].bytes, b"of another program");
            assert!(!content.has_left(dialect));
        }
    });
}

/// Google has no condition for the completion of several parts.
#[test]
fn a_new_object_that_could_replace_another_is_refused() {
    let store = Store::good(Dialect::Gcs);
    let builder = || Writer::builder().existing(Existing::CreateNew);
    // It is refused before a request, if its length is known.
    let error = builder().url(store.remote("a").size_hint(101)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(store.requests.load(Ordering::SeqCst), 0);
    let mut writer = builder().capacity(64).url(store.remote("a")).unwrap();
    let error = (0..).find_map(|_| writer.write(&bytes(10)).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("part_size"), "{error}");
    assert!(writer.close().is_err());
    let content = store.content();
    assert_eq!((content.created, content.objects.len()), (0, 0));
}

/// Azure discards blocks of another writer, which cannot complete its object then.
#[test]
fn blocks_that_another_writer_has_discarded_are_not_missed_silently() {
    let store = Store::good(Dialect::Azure);
    let mut first = Writer::builder().capacity(64).url(store.remote("a")).unwrap();
    first.write(&bytes(250)).unwrap();
    let content = bytes(1000);
    write(store.remote("a"), &content).unwrap();
    let error = first.try_close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RemoteFailed, "{error}");
    assert!(error.to_string().contains("InvalidBlockList"), "{error}");
    assert!(store.content().objects["a"].bytes == content);
    let left = Uploads::new(store.remote_at("az://bucket")).err().unwrap();
    assert_eq!(left.kind(), ErrorKind::Unsupported);
}

#[test]
fn an_object_with_too_many_parts_is_refused_and_removed() {
    each(|dialect| {
        let store = Store::good(dialect);
        let mut writer = Writer::builder().capacity(10).url(store.remote("a").part_limit(3)).unwrap();
        let error = (0..).find_map(|_| writer.write(&bytes(10)).err()).unwrap();
        let text = error.to_string();
        assert!(text.contains("at most 3 parts of 100 bytes") && text.contains("part_size"), "{text}");
        assert!(writer.close().is_err());
        assert!(!store.content().has_left(dialect) && store.content().objects.is_empty());
        // With the expected length, the parts are larger, or a wrong option is refused.
        let error = write(store.remote("a").part_limit(3).size_hint(301), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
    });
}

#[test]
fn a_part_that_is_refused_fails_the_writer() {
    each(|dialect| {
        let store = Store::new(dialect, |request| match request.is_part() {
            true => Fault::Status(403),
            false => Fault::None,
        });
        let error = write(store.remote("a"), &bytes(1000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RemoteFailed);
        assert!(error.to_string().contains("403"), "{error}");
        assert!(!store.content().has_left(dialect) && store.content().objects.is_empty());
    });
}

#[test]
fn a_cancelled_writer_ends_soon_and_removes_its_upload() {
    each(|dialect| {
        let store = Store::new(dialect, |request| match request.part() {
            Some(2) => Fault::Stall,
            _ => Fault::None,
        });
        let token = CancelToken::new().unwrap();
        let remote = store.remote("a").idle_timeout(Duration::from_secs(60));
        let mut writer = Writer::builder().cancel(&token).url(remote).unwrap();
        writer.write(&bytes(250)).unwrap();
        std::thread::spawn({
            let token = token.clone();
            move || {
                std::thread::sleep(Duration::from_millis(100));
                token.cancel();
            }
        });
        assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(!store.content().has_left(dialect) && store.content().objects.is_empty());
    });
}

/// Calls that a token interrupts continue where they were: no request is made again.
#[test]
fn interrupted_calls_continue() {
    each(|dialect| {
        let store = Store::new(dialect, |request| {
            if request.method != "GET" {
                std::thread::sleep(Duration::from_millis(90));
            }
            Fault::None
        });
        let (token, ended) = (CancelToken::new().unwrap(), Arc::new(AtomicUsize::new(0)));
        // On a busy machine, no request may be given up and made again.
        let remote = store.remote("a").idle_timeout(Duration::from_secs(60));
        let mut writer = Writer::builder().cancel(&token).capacity(50).url(remote).unwrap();
        let interrupter = std::thread::spawn({
            let (token, ended) = (token.clone(), ended.clone());
            move || {
                while ended.load(Ordering::SeqCst) == 0 {
                    token.cancel();
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        let (content, mut interruptions) = (bytes(450), 0);
        loop {
            let at = writer.accepted() as usize;
            let done = match at < content.len() {
                true => writer.write(&content[at..content.len().min(at + 50)]).map(|()| false),
                false => writer.try_close().map(|_| true),
            };
            match done {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                    interruptions += 1;
                    token.reset();
                }
            }
        }
        ended.store(1, Ordering::SeqCst);
        interrupter.join().unwrap();
        assert!(interruptions > 3, "{interruptions}");
        assert_eq!(store.requests.load(Ordering::SeqCst), dialect.requests());
        assert_eq!(store.content().objects["a"].bytes, content);
    });
}

#[test]
fn an_upload_that_cannot_be_removed_is_reported() {
    let store =
        Store::new(Dialect::S3, |request| if request.method == "DELETE" { Fault::Status(403) } else { Fault::None });
    let left = Arc::new(Mutex::new(Vec::new()));
    let remote = store.remote("a").on_unfinished({
        let left = left.clone();
        move |upload| left.lock().unwrap().push(upload.clone())
    });
    let mut writer = Writer::url(remote).unwrap();
    writer.write(&bytes(100_000)).unwrap();
    drop(writer);
    let left = left.lock().unwrap();
    assert_eq!((left.len(), &*left[0].url), (1, "s3://bucket/a"));
    assert!(store.content().uploads.contains_key(&left[0].id));
}

#[test]
fn unfinished_uploads_are_listed_page_by_page_and_removed() {
    let store = Store::with_pages(Dialect::S3, 3, |_| Fault::None);
    for at in 0..8 {
        let mut writer = Writer::url(store.remote(&format!("p/{at}"))).unwrap();
        writer.write(&bytes(70_000)).unwrap();
        std::mem::forget(writer);
    }
    let prefix = |prefix: &str| store.remote_at(&format!("s3://bucket/{prefix}"));
    let found: Vec<_> = Uploads::new(prefix("p/")).unwrap().collect::<Result<_, _>>().unwrap();
    let urls: Vec<_> = found.iter().map(|upload| upload.url.clone()).collect();
    assert_eq!(urls, (0..8).map(|at| format!("s3://bucket/p/{at}")).collect::<Vec<_>>());
    assert!(found.iter().all(|upload| upload.begun.is_some()));
    assert_eq!(Uploads::new(prefix("q")).unwrap().count(), 0);
    // The list changes while it is read.
    let mut uploads = Uploads::new(prefix("")).unwrap();
    while let Some(upload) = uploads.next().transpose().unwrap() {
        uploads.abort(&upload).unwrap();
        uploads.abort(&upload).unwrap();
    }
    assert!(store.content().uploads.is_empty());
}

#[test]
fn a_store_that_repeats_a_page_is_not_asked_forever() {
    let store = Store::with_pages(Dialect::S3, 1, |_| Fault::FirstPage);
    for key in ["a", "b"] {
        let mut writer = Writer::url(store.remote(key)).unwrap();
        writer.write(&bytes(70_000)).unwrap();
        std::mem::forget(writer);
    }
    let found: Vec<_> = Uploads::new(store.remote_at("s3://bucket")).unwrap().collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].as_ref().unwrap_err().kind(), ErrorKind::RemoteFailed);
}

#[test]
fn what_an_object_cannot_do_is_refused_before_any_request() {
    let store = Store::good(Dialect::S3);
    let refused = |builder: millstream::WriterBuilder, remote: Remote| builder.url(remote).unwrap_err().kind();
    let remote = || store.remote("a");
    let builder = Writer::builder;
    for (kind, found) in [
        (ErrorKind::Unsupported, refused(builder(), Remote::new(format!("http://{}/a", store.address)))),
        (ErrorKind::InvalidOption, refused(builder(), Remote::new("gs://a"))),
        (ErrorKind::InvalidOption, refused(builder(), Remote::new("s3://a"))),
        (ErrorKind::InvalidOption, refused(builder().existing(Existing::Append), remote())),
        (ErrorKind::InvalidOption, refused(builder().partial(Partial::Keep), remote())),
        (ErrorKind::InvalidOption, refused(builder().linger(Duration::ZERO), remote())),
        (ErrorKind::InvalidOption, refused(builder().durability(millstream::Durability::All), remote())),
        (
            ErrorKind::InvalidOption,
            refused(builder().flush_policy(FlushPolicy::Delay(Duration::from_secs(1))), remote()),
        ),
        (ErrorKind::InvalidOption, refused(builder(), remote().part_limit(10_000))),
        (ErrorKind::Unsupported, refused(builder(), store.remote("a.lz4"))),
    ] {
        assert_eq!(found, kind);
    }
    assert_eq!(store.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn a_store_that_refuses_is_an_error_at_once() {
    let store = Store::new(Dialect::S3, |_| Fault::Status(401));
    let error = Writer::url(store.remote("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenFailed, "{error}");
    let remote = store.remote("a").endpoint("http://127.0.0.1:1");
    assert_eq!(Writer::url(remote).unwrap_err().kind(), ErrorKind::OpenFailed);
}
