//! Objects of a server that misbehaves: every byte of one version arrives, or an error.

#[path = "../shared/http.rs"]
mod http;
mod server;
#[cfg(feature = "splits")]
mod splits;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use millstream::remote::Opening;
use millstream::{CancelToken, Error, ErrorKind, Reader, Remote};
use server::{Fault, Server, answer, answer_with, content};

/// Returns the bytes before the end or the error, and the error.
fn read_all(reader: Result<Reader, Error>) -> (Vec<u8>, Option<Error>) {
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut bytes = Vec::new();
    let error = reader.read_to_end(&mut bytes).err().map(Error::from_io);
    (bytes, error)
}

fn open(remote: Remote) -> Result<Reader, Error> {
    Reader::builder().url(remote)
}

#[test]
fn objects_of_every_length_arrive() {
    for length in [0, 1, 99, 100, 101, 299, 300, 301, 1000] {
        let bytes = content(length);
        let theirs = bytes.clone();
        let server = Server::new(move |request, stream| answer(&theirs, &request, Fault::None, stream));
        let (found, error) = read_all(open(server.remote("/a")));
        assert!(error.is_none() && found == bytes, "{length}: {error:?}");
    }
}

#[test]
fn one_request_is_enough_for_a_small_object() {
    let bytes = content(100);
    let server = Server::new(move |request, stream| answer(&bytes, &request, Fault::None, stream));
    let mut reader = open(server.remote("/a")).unwrap();
    assert_eq!(reader.name(), server.url("/a"));
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 100);
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
}

#[test]
fn an_object_is_read_again_in_the_same_version() {
    let bytes = content(1000);
    let theirs = bytes.clone();
    let (sender, versions) = channel();
    let sender = Mutex::new(sender);
    let server = Server::new(move |request, stream| {
        sender.lock().unwrap().send(request.if_match.clone()).unwrap();
        answer(&theirs, &request, Fault::None, stream);
    });
    let mut reader = open(server.remote("/a")).unwrap();
    for _ in 0..3 {
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert_eq!((found, reader.name()), (bytes.clone(), &*server.url("/a")));
        reader.rewind().unwrap();
    }
    drop(reader);
    // Only the first request does not know the version.
    let versions: Vec<_> = versions.try_iter().collect();
    assert!(versions.len() > 20, "{versions:?}");
    assert_eq!(versions[0], None);
    assert!(versions[1..].iter().all(|version| version.as_deref() == Some("\"v1\"")), "{versions:?}");
}

#[test]
fn an_object_that_has_changed_is_not_read_again() {
    let bytes = content(1000);
    let is_changed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changes = is_changed.clone();
    let server = Server::new(move |request, stream| {
        let fault = if changes.load(Ordering::SeqCst) { Fault::Changed } else { Fault::None };
        answer(&bytes, &request, fault, stream);
    });
    let mut reader = open(server.remote("/a")).unwrap();
    reader.read_to_end(&mut Vec::new()).unwrap();
    is_changed.store(true, Ordering::SeqCst);
    reader.rewind().unwrap();
    let mut found = Vec::new();
    let error = Error::from_io(reader.read_to_end(&mut found).unwrap_err());
    assert_eq!((error.kind(), error.name(), found.len()), (ErrorKind::SourceChanged, Some(&*server.url("/a")), 0));
}

#[test]
fn an_object_without_a_version_can_be_read_only_once() {
    let bytes = content(100);
    let server = Server::new(move |_, stream| {
        // There are no ranges.
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"v1\"\r\n\r\n", bytes.len());
        let _ = stream.write_all(&bytes);
    });
    let weak = content(100);
    let weak = Server::new(move |_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\n", weak.len());
        let _ = write!(stream, "{head}ETag: W/\"v1\"\r\n\r\n");
        let _ = stream.write_all(&weak);
    });
    for server in [server, weak] {
        let mut reader = open(Remote::new(server.url("/a"))).unwrap();
        let error = reader.rewind().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("an object without ranges or a strong ETag"), "{error}");
        assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 100);
    }
}

#[test]
fn slow_connections_are_more_of_half_the_size() {
    let bytes = content(48 << 20);
    for (connections, expected) in [(None, 4 << 20), (Some(8), 8 << 20)] {
        let (sender, lengths) = channel();
        let sender = Mutex::new(sender);
        let theirs = bytes.clone();
        let server = Server::new(move |request, stream| {
            if let Some((from, Some(to))) = request.range {
                sender.lock().unwrap().send(to - from).unwrap();
            }
            // Less than 17 MB/s for each of them.
            std::thread::sleep(Duration::from_millis(250));
            answer(&theirs, &request, Fault::None, stream);
        });
        let remote = connections.into_iter().fold(Remote::new(server.url("/a")), Remote::connections);
        let (found, error) = read_all(open(remote));
        assert!(error.is_none() && found == bytes, "{error:?}");
        let lengths: Vec<usize> = lengths.try_iter().collect();
        // After the first answer, which ends after 8 MiB.
        assert_eq!(lengths, vec![expected; (40 << 20) / expected], "{connections:?}");
    }
}

#[test]
fn the_next_range_is_requested_while_the_last_quarter_of_one_arrives() {
    const RANGE: usize = 64 << 10;
    let bytes = content(40 * RANGE);
    let theirs = bytes.clone();
    // The number of ranges that were requested, and its changes.
    let requested = Arc::new((Mutex::new(0), Condvar::new()));
    let (sender, failures) = channel();
    let sender = Mutex::new(sender);
    let server = Server::new(move |request, stream| {
        let Some((from, Some(to))) = request.range else {
            return answer(&theirs, &request, Fault::None, stream);
        };
        let total = theirs.len();
        let head = format!("HTTP/1.1 206 X\r\nContent-Range: bytes {from}-{}/{total}\r\nETag: \"v1\"\r\n", to - 1);
        let (first, last) = theirs[from..to].split_at((to - from) * 3 / 4);
        let (count, changed) = &*requested;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let own = *count;
        drop(count);
        write!(stream, "{head}Content-Length: {}\r\n\r\n", to - from).unwrap();
        stream.write_all(first).unwrap();
        // The first 16 ranges are requested at once. Their last bytes wait for one more request.
        if own <= 16 {
            let count = requested.0.lock().unwrap();
            let (count, waited) =
                changed.wait_timeout_while(count, Duration::from_secs(20), |count| *count <= 16).unwrap();
            drop(count);
            if waited.timed_out() {
                sender.lock().unwrap().send(own).unwrap();
            }
        }
        stream.write_all(last).unwrap();
    });
    let remote = Remote::new(server.url("/a")).range_size(RANGE as u64).idle_timeout(Duration::from_secs(30));
    let (found, error) = read_all(open(remote));
    assert!(error.is_none() && found == bytes, "{error:?}");
    assert_eq!(failures.try_iter().collect::<Vec<_>>(), [0; 0]);
}

#[test]
fn the_memory_for_ranges_is_bounded() {
    const RANGE: usize = 64 << 10;
    const BLOCK: usize = 1000;
    let bytes = content(40 * RANGE);
    for (connections, most) in [(None, 10 * RANGE), (Some(3), 3 * RANGE)] {
        let theirs = bytes.clone();
        let delivered = Arc::new(AtomicUsize::new(0));
        let (counted, largest) = (delivered.clone(), Arc::new(AtomicUsize::new(0)));
        let found_largest = largest.clone();
        let server = Server::new(move |request, stream| {
            if let Some((_, Some(to))) = request.range {
                largest.fetch_max(to.saturating_sub(counted.load(Ordering::SeqCst)), Ordering::SeqCst);
            }
            answer(&theirs, &request, Fault::None, stream);
        });
        let remote = Remote::new(server.url("/a")).range_size(RANGE as u64);
        let remote = connections.into_iter().fold(remote, Remote::connections);
        let mut object = Opening::start(remote).unwrap().wait(|| Ok(())).unwrap();
        let mut found = Vec::new();
        let mut block = [0; BLOCK];
        loop {
            let count = object.read(&mut block, || Ok(())).unwrap();
            if count == 0 {
                break;
            }
            found.extend_from_slice(&block[..count]);
            delivered.store(found.len(), Ordering::SeqCst);
        }
        assert!(found == bytes, "{connections:?}");
        // A request may arrive before the bytes of the read that made it are counted.
        let largest = found_largest.load(Ordering::SeqCst);
        assert!(largest <= most + BLOCK, "{connections:?}: {largest}");
    }
}

#[test]
fn every_fault_in_every_request_is_repaired_or_reported() {
    let bytes = content(450);
    let faults = [
        (Fault::Cut(0), None),
        (Fault::Cut(1), None),
        (Fault::Cut(49), None),
        (Fault::Stall(0), None),
        (Fault::Stall(10), None),
        (Fault::Status(500), None),
        (Fault::Status(503), None),
        (Fault::Status(429), None),
        (Fault::Longer, None),
        (Fault::WrongRange, Some(ErrorKind::RemoteFailed)),
        (Fault::Changed, Some(ErrorKind::SourceChanged)),
        (Fault::Status(403), Some(ErrorKind::RemoteFailed)),
        (Fault::Status(404), Some(ErrorKind::SourceChanged)),
        (Fault::Whole, Some(ErrorKind::RemoteFailed)),
    ];
    println!("{} faults of one request", faults.len() * 5);
    for (fault, expected) in faults {
        for bad in 0..5 {
            let theirs = bytes.clone();
            let server = Server::new(move |request, stream| {
                let fault = if request.number == bad { fault } else { Fault::None };
                answer(&theirs, &request, fault, stream);
            });
            let (found, error) = read_all(open(server.remote("/a")));
            assert!(bytes.starts_with(&found), "{fault:?} in request {bad}: wrong bytes");
            let kind = error.as_ref().map(Error::kind);
            // The first request accepts more: no version is known yet, and a 200 says where the object ends.
            let expected = match (bad, fault) {
                (0, Fault::Status(403 | 404)) => Some(ErrorKind::OpenFailed),
                (0, Fault::Changed) => Some(ErrorKind::SourceChanged),
                (0, Fault::Whole) => None,
                _ => expected,
            };
            assert_eq!(kind, expected, "{fault:?} in request {bad}: {error:?}");
            assert!(kind.is_some() || found == bytes, "{fault:?} in request {bad}: {} bytes", found.len());
        }
    }
}

/// A delay that is longer than requests are repeated is an error at once, and so the order of events shows that it is
/// obeyed.
#[test]
fn a_delay_that_a_server_requests_is_obeyed() {
    // The last one is not in seconds, and is not used.
    let delays = [("3600", false), ("0", true), ("Fri, 31 Dec 2100 23:59:59 GMT", true)];
    for (status, (delay, is_repeated)) in [429, 503].into_iter().flat_map(|status| delays.map(|delay| (status, delay)))
    {
        for bad in 0..2 {
            let bytes = content(150);
            let theirs = bytes.clone();
            let server = Server::new(move |request, stream| match request.number == bad {
                true => {
                    let head = format!("HTTP/1.1 {status} X\r\nRetry-After: {delay}\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(head.as_bytes());
                }
                false => answer(&theirs, &request, Fault::None, stream),
            });
            let (found, error) = read_all(open(server.remote("/a")));
            match is_repeated {
                true => assert!(error.is_none() && found == bytes, "{status}, {delay}, {bad}: {error:?}"),
                false => {
                    let error = error.unwrap().to_string();
                    assert!(error.contains(&format!("the answer {status}")), "{delay}, {bad}: {error}");
                    assert_eq!(server.requests.load(Ordering::SeqCst), bad + 1, "{status}, {delay}, {bad}");
                }
            }
        }
    }
}

#[test]
fn a_cut_at_every_byte_loses_nothing() {
    let bytes = content(130);
    for at in 0..=130 {
        let theirs = bytes.clone();
        let server = Server::new(move |request, stream| {
            let fault = if request.number < 2 { Fault::Cut(at) } else { Fault::None };
            answer(&theirs, &request, fault, stream);
        });
        let (found, error) = read_all(open(server.remote("/a")));
        assert!(error.is_none() && found == bytes, "{at}: {error:?}");
    }
}

/// More than half of all requests fail, each in another way.
#[test]
fn random_faults_of_most_requests_lose_nothing() {
    let objects = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 3000 } else { 200 };
    let (bytes, faults) = (content(2050), Arc::new(AtomicUsize::new(0)));
    let server = Server::new({
        let (bytes, faults) = (bytes.clone(), faults.clone());
        move |request, stream| {
            // Numbers of requests look random after a multiplication: the golden ratio of 64 bits.
            let random = (request.number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let fault = match random % 16 {
                // Within the 100 bytes of a range, or within the 50 of the last one.
                0..6 => Fault::Cut((random / 16 % 50) as usize),
                6 => Fault::Status(500),
                7 => Fault::Status(503),
                8 => Fault::Status(429),
                9 => Fault::Longer,
                _ => Fault::None,
            };
            faults.fetch_add(usize::from(fault != Fault::None), Ordering::SeqCst);
            answer(&bytes, &request, fault, stream);
        }
    });
    let next = AtomicUsize::new(0);
    // Most of the time is spent waiting before requests are repeated.
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::SeqCst) < objects {
                    // A slow machine must not look like a stall.
                    let (found, error) = read_all(open(server.remote("/a").idle_timeout(Duration::from_secs(60))));
                    assert!(error.is_none() && found == bytes, "{} bytes, {error:?}", found.len());
                }
            });
        }
    });
    let faults = faults.load(Ordering::SeqCst);
    println!("{faults} faults of {objects} objects");
    assert!(faults >= 20 * objects, "{faults}");
}

/// Sends these bytes for every request, and closes the connection.
fn constant(response: &'static [u8]) -> Server {
    Server::new(move |_, stream| {
        let _ = stream.write_all(response);
        let _ = stream.shutdown(Shutdown::Both);
    })
}

#[test]
fn without_a_strong_etag_there_is_one_request_and_no_resumption() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: W/\"a\"\r\nAccept-Ranges: bytes\r\n\r\n12345",
        b"HTTP/1.1 206 X\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\n12345",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12345",
    ] {
        let server = constant(response);
        let (found, error) = read_all(open(server.remote("/a")));
        let error = error.unwrap_or_else(|| panic!("a silent end of {}", String::from_utf8_lossy(response)));
        assert_eq!(
            (&found[..], error.kind(), error.offset()),
            (&b"12345"[..], ErrorKind::RemoteFailed, Some(5)),
            "{error}"
        );
        assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn complete_bodies_end() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n12345",
    ] {
        let (found, error) = read_all(open(constant(response).remote("/a")));
        assert!(error.is_none() && found == b"12345", "{error:?}");
    }
}

#[test]
fn a_body_without_a_length_is_refused_unless_it_is_allowed() {
    let server = constant(b"HTTP/1.1 200 OK\r\n\r\n12345");
    let error = open(server.remote("/a")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::RemoteFailed);
    assert!(error.to_string().contains("allow_unknown_length"), "{error}");
    let (found, error) = read_all(open(server.remote("/a").allow_unknown_length(true)));
    assert!(error.is_none() && found == b"12345", "{error:?}");
}

#[test]
fn answers_that_are_no_object_are_refused() {
    for (response, part) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: br\r\n\r\n12345"[..], "Content-Encoding br"),
        (b"HTTP/1.1 206 X\r\nContent-Length: 5\r\n\r\n12345", "without its Content-Range"),
        (b"HTTP/1.1 416 X\r\nContent-Length: 0\r\n\r\n", "416"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "204"),
        (b"HTTP/1.1 302 X\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n", "link-local"),
        (b"HTTP/1.1 302 X\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "redirect"),
        (b"HTTP/1.1 302 X\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", "10 redirects"),
        (b"HTTP/1.1 403 X\r\nContent-Length: 42\r\n\r\n<Error><Code>AccessDenied</Code></Error>...", "AccessDenied"),
    ] {
        // The connection stays open: a request on a connection that the server is closing fails, and is repeated.
        let server = Server::new(move |_, stream| drop(stream.write_all(response)));
        let error = open(server.remote("/a")).map(drop).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[cfg(feature = "hash")]
#[test]
fn the_checksum_of_the_whole_object_is_compared() {
    use millstream::hash::{Algorithm, Hasher};
    let bytes = content(450);
    let mut hasher = Hasher::new(Algorithm::Crc32c);
    hasher.update(&bytes);
    let digest = data_encoding::HEXLOWER.decode(hasher.finish().as_bytes()).unwrap();
    let checksum = data_encoding::BASE64.encode(&digest);
    for header in ["x-amz-checksum-type: FULL_OBJECT\r\nx-amz-checksum-crc32c: ", "x-goog-hash: crc32c="] {
        let more = format!("{header}{checksum}\r\n");
        for damaged in [None, Some(0), Some(250), Some(449)] {
            let mut served = bytes.clone();
            if let Some(at) = damaged {
                served[at] ^= 1;
            }
            let (more, expected) = (more.clone(), served.clone());
            let server = Server::new(move |request, stream| answer_with(&more, &served, &request, Fault::None, stream));
            let (found, error) = read_all(open(server.remote("/a")));
            assert_eq!(found, expected);
            match damaged {
                None => assert!(error.is_none(), "{error:?}"),
                Some(_) => {
                    let error = error.unwrap();
                    assert_eq!(error.kind(), ErrorKind::RemoteFailed);
                    assert!(error.to_string().contains("which the store has of the whole object"), "{error}");
                }
            }
        }
    }
}

#[test]
fn the_md5_of_an_object_is_compared_on_request() {
    let etag = |md5: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"{md5}\"\r\n\r\n123456789");
    let server = |md5: &str| {
        let response = etag(md5);
        Server::new(move |_, stream| drop(stream.write_all(response.as_bytes())))
    };
    let (right, wrong) = (server("25f9e794323b453885f5181f1b624d0b"), server("25f9e794323b453885f5181f1b624d0c"));
    assert!(read_all(open(wrong.remote("/a"))).1.is_none());
    assert!(read_all(open(right.remote("/a").md5_etag(true))).1.is_none());
    let (found, error) = read_all(open(wrong.remote("/a").md5_etag(true)));
    let error = error.unwrap();
    assert_eq!((&found[..], error.kind()), (&b"123456789"[..], ErrorKind::RemoteFailed), "{error}");
    assert!(error.to_string().contains("found the checksum MD5 (ETag) JfnnlDI7RTiF9RgfG2JNCw=="), "{error}");
}

#[test]
fn an_empty_object_of_a_server_without_empty_ranges_is_empty() {
    let server = Server::new(|request, stream| {
        let status = if request.range.is_some() { "416 X" } else { "200 OK" };
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    });
    let (found, error) = read_all(open(server.remote("/a")));
    assert!(error.is_none() && found.is_empty(), "{error:?}");
}

#[test]
fn headers_of_the_user_do_not_reach_another_host() {
    let other = Server::new(|request, stream| {
        let leaks = request.headers.iter().any(|line| line.contains("s3cret"));
        let body = if leaks { "leaked" } else { "secret" };
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{body}");
    });
    let away = other.url("/b");
    let server = Server::new(move |request, stream| {
        let knows = request.headers.iter().any(|line| line.contains("s3cret"));
        let location = if request.path == "/a" { "/a2" } else { away.as_str() };
        let status = if knows { 302 } else { 401 };
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    });
    let (found, error) = read_all(open(server.remote("/a").header("X-Api-Key", "s3cret")));
    assert_eq!((String::from_utf8(found).unwrap(), error.map(|e| e.to_string())), ("secret".into(), None));
}

#[test]
fn secrets_of_a_url_are_in_no_error() {
    let url = "http://user:s3cret@127.0.0.1:1/a?token=s3cret#s3cret";
    let error = open(Remote::new(url)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::OpenFailed);
    assert!(!error.to_string().contains("s3cret") && !format!("{error:?}").contains("s3cret"), "{error}");
    assert!(error.to_string().starts_with("http://127.0.0.1:1/a: "), "{error}");
}

#[test]
fn requests_are_not_repeated_for_longer_than_allowed() {
    let server = constant(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n");
    let start = Instant::now();
    let error = open(server.remote("/a").retry_for(Duration::ZERO)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::RemoteFailed);
    assert!(start.elapsed() < Duration::from_secs(30) && error.to_string().contains("503"), "{error}");
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
}

#[test]
fn a_token_interrupts_opening_and_reading() {
    let silent = Server::new(|_, _| std::thread::sleep(Duration::from_secs(5)));
    let token = CancelToken::new().unwrap();
    let canceller = token.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    let patient = silent.remote("/a").idle_timeout(Duration::from_secs(60));
    let error = Reader::builder().cancel(&token).url(patient).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled);

    let bytes = content(100);
    let stalls = Server::new(move |request, stream| answer(&bytes, &request, Fault::Stall(10), stream));
    let token = CancelToken::new().unwrap();
    let patient = stalls.remote("/a").idle_timeout(Duration::from_secs(60));
    let mut reader = Reader::builder().cancel(&token).url(patient).unwrap();
    assert_eq!(reader.fill().unwrap(), 10);
    token.cancel();
    reader.consume(10);
    assert_eq!(reader.fill().unwrap_err().kind(), ErrorKind::Cancelled);
    // Closing does not wait for the server.
    reader.close().unwrap();
}

#[test]
fn invalid_urls_and_options_are_refused_before_anything_is_opened() {
    for url in ["", "a.csv", "ftp://a/b", "http://", "s3://bucket", "gs://bucket", "az://container/"] {
        let kind = open(Remote::new(url)).err().unwrap().kind();
        assert!(matches!(kind, ErrorKind::InvalidOption | ErrorKind::Unsupported), "{url}");
    }
    let server = Server::new(|_, _| panic!("a request"));
    for remote in [
        server.remote("/a").range_size(0).connections(1),
        server.remote("/a").range_size(1).connections(0),
        server.remote("/a").idle_timeout(Duration::ZERO),
        server.remote("/a").header("a b", "c"),
    ] {
        assert_eq!(open(remote).err().unwrap().kind(), ErrorKind::InvalidOption);
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
}

#[cfg(feature = "compression")]
#[test]
fn compressed_objects_are_decoded_one_time() {
    let bytes = compressed(b"one\ntwo\n");
    let server = Server::new(move |request, stream| answer(&bytes, &request, Fault::None, stream));
    let mut reader = open(server.remote("/a")).unwrap();
    assert_eq!(reader.next_line().unwrap().unwrap(), b"one");
    assert_eq!(reader.next_line().unwrap().unwrap(), b"two");
    assert!(reader.next_line().unwrap().is_none());
}

/// Compresses with the library itself.
#[cfg(feature = "compression")]
fn compressed(bytes: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.gz");
    let mut writer = millstream::Writer::path(&path).unwrap();
    std::io::Write::write_all(&mut writer, bytes).unwrap();
    writer.close().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn the_reader_of_a_task_needs_no_other_runtime() {
    let bytes = content(450);
    let theirs = bytes.clone();
    let server = Server::new(move |request, stream| answer(&theirs, &request, Fault::None, stream));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (found, error) = runtime.block_on(async { read_all(open(server.remote("/a"))) });
    assert!(error.is_none() && found == bytes, "{error:?}");
}
