//! A server whose answers the tests decide.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millstream::Remote;

use crate::http;

/// A request, as far as the tests answer it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The first byte, and the one after the last one.
    pub(crate) range: Option<(usize, Option<usize>)>,
    pub(crate) if_match: Option<String>,
    pub(crate) headers: Vec<String>,
    /// The number of earlier requests.
    pub(crate) number: usize,
}

/// A server on a free port, which answers each connection's requests with `answer`. It ends with the test.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(Request, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, answer, count) = (stream.unwrap(), answer.clone(), count.clone());
                // A small body must not wait for the acknowledgement of its headers.
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(request) = read_request(&mut reader, &count) {
                        answer(request, &mut stream);
                    }
                });
            }
        });
        Server { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Small ranges and short times.
    pub(crate) fn remote(&self, path: &str) -> Remote {
        Remote::new(self.url(path)).range_size(100).connections(3).idle_timeout(Duration::from_millis(300))
    }
}

fn read_request(reader: &mut impl BufRead, count: &AtomicUsize) -> Option<Request> {
    let lines = http::head(reader)?;
    let value = |name: &str| {
        let found =
            lines.iter().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_string())
    };
    let range = value("range").map(|range| {
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (from.parse().unwrap(), to.parse::<usize>().ok().map(|last| last + 1))
    });
    let path = lines[0].split(' ').nth(1).unwrap().to_string();
    let number = count.fetch_add(1, Ordering::SeqCst);
    Some(Request { path, range, if_match: value("if-match"), headers: lines, number })
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// The connection is closed after this many bytes of the body.
    Cut(usize),
    /// The connection stays open after this many bytes of the body.
    Stall(usize),
    /// This status, without a body.
    Status(u16),
    /// A Content-Range that begins one byte later.
    WrongRange,
    /// All of the object, with status 200.
    Whole,
    /// Another version, with its own ETag.
    Changed,
    /// The body is longer than announced.
    Longer,
}

/// Answers like a server with ranges and strong ETags, apart from the fault.
pub(crate) fn answer(content: &[u8], request: &Request, fault: Fault, stream: &mut TcpStream) {
    answer_with("", content, request, fault, stream);
}

/// Answers with more headers, each with its line end.
pub(crate) fn answer_with(more: &str, content: &[u8], request: &Request, fault: Fault, stream: &mut TcpStream) {
    let etag = if fault == Fault::Changed { "\"v2\"" } else { "\"v1\"" };
    if let Fault::Status(status) = fault {
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    if request.if_match.as_deref().is_some_and(|wanted| wanted != etag) {
        let _ = write!(stream, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let (from, to) = request.range.unwrap_or((0, None));
    let to = to.unwrap_or(content.len()).min(content.len());
    if from >= to && request.range.is_some() {
        let total = content.len();
        let _ = write!(stream, "HTTP/1.1 416 X\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let shift = usize::from(fault == Fault::WrongRange);
    let body = if fault == Fault::Whole { content } else { &content[from..to] };
    let head = if request.range.is_none() || fault == Fault::Whole {
        "HTTP/1.1 200 OK\r\n".to_string()
    } else {
        let (first, last) = (from + shift, to - 1 + shift);
        format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}\r\n", content.len())
    };
    let length = body.len();
    let _ = write!(stream, "{head}Content-Length: {length}\r\nAccept-Ranges: bytes\r\nETag: {etag}\r\n{more}\r\n");
    let _ = match fault {
        Fault::Cut(at) | Fault::Stall(at) => stream.write_all(&body[..at.min(body.len())]),
        _ => stream.write_all(body),
    };
    match fault {
        Fault::Cut(at) if at < body.len() => drop(stream.shutdown(Shutdown::Both)),
        Fault::Stall(at) if at < body.len() => std::thread::sleep(Duration::from_secs(2)),
        Fault::Longer => drop(stream.write_all(b"more than was announced")),
        _ => {}
    }
}

pub(crate) fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}
