//! Connections that break: toxiproxy is between the reader and a server. Every read delivers all bytes, or the bytes
//! before an error.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millstream::{ErrorKind, Remote};

use crate::read::{LARGE, begin, content, expect, read_all, read_rest};
use crate::server::{Server, request};
use crate::store::{Kind, with_store};
use crate::versitygw::versitygw;
use crate::web::{answers, nginx, store};

/// The number of times that each test repeats its faults.
fn depth() -> usize {
    if std::env::var_os("MILLSTREAM_DEEP").is_some() { 10 } else { 1 }
}

/// Prints how many faults there were, although the test passes. There must be this many for each repetition.
fn report(faults: usize, least: usize, what: &str) {
    assert!(faults >= least * depth(), "{faults} faults: {what}");
    let _ = writeln!(std::io::stderr(), "{faults} faults: {what}");
}

struct Toxiproxy {
    server: Server,
    proxies: AtomicUsize,
}

impl Toxiproxy {
    fn new() -> Option<Toxiproxy> {
        let server = Server::start("toxiproxy-server", |port, _| {
            vec!["-host=127.0.0.1".into(), format!("-port={port}"), "-seed=1".into()]
        })?;
        Some(Toxiproxy { server, proxies: AtomicUsize::new(0) })
    }

    fn call(&self, method: &str, path: &str, body: &str) -> String {
        let (status, answer) = request(&self.server.address, method, path, &[], body.as_bytes());
        assert!((200..300).contains(&status), "{method} {path} {body}: {status} {answer}");
        answer
    }

    /// Adds a proxy, on a free port, whose connections lead to this address.
    fn proxy(&self, address: &str) -> Proxy<'_> {
        let name = format!("proxy-{}", self.proxies.fetch_add(1, Ordering::Relaxed));
        let body = format!(r#"{{"name": "{name}", "listen": "127.0.0.1:0", "upstream": "{address}"}}"#);
        let answer = self.call("POST", "/proxies", &body);
        let (_, rest) = answer.split_once(r#""listen":""#).unwrap();
        let address = rest.split('"').next().unwrap().into();
        Proxy { toxiproxy: self, name, address }
    }
}

/// The name of a toxic, its attributes, and the share of the connections that have it.
type Toxic<'t> = (&'t str, &'t str, f64);

struct Proxy<'t> {
    toxiproxy: &'t Toxiproxy,
    name: String,
    address: String,
}

impl Proxy<'_> {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Adds toxics in one direction: "downstream" are the answers. This hangs if a connection is just closing, so there
    /// must be no connections.
    fn add(&self, stream: &str, toxics: &[Toxic]) {
        for (toxic, attributes, share) in toxics {
            let body = format!(
                r#"{{"type": "{toxic}", "stream": "{stream}", "toxicity": {share}, "attributes": {{{attributes}}}}}"#
            );
            self.toxiproxy.call("POST", &format!("/proxies/{}/toxics", self.name), &body);
        }
    }

    /// Closes each connection after this many bytes of its answers.
    fn cut(&self, bytes: usize) {
        self.add("downstream", &[("limit_data", &format!(r#""bytes": {bytes}"#), 1.0)]);
    }

    /// Closes all connections and refuses new ones, or accepts them again.
    fn enable(&self, enabled: bool) {
        self.toxiproxy.call("POST", &format!("/proxies/{}", self.name), &format!(r#"{{"enabled": {enabled}}}"#));
    }
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.toxiproxy.call("DELETE", &format!("/proxies/{}", self.name), "");
        }
    }
}

/// Returns different numbers from `from` up to `to`, which look random but are the same in each run.
fn spread(count: usize, from: usize, to: usize) -> impl Iterator<Item = usize> {
    let numbers = content(9, count * 8);
    let numbers: Vec<u64> = numbers.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    numbers.into_iter().map(move |number| from + (number % (to - from) as u64) as usize)
}

#[test]
fn a_connection_that_is_cut_is_resumed_at_every_position() {
    let (Some(server), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    let bytes = content(1, 40_000_000);
    store(&server, "a", &bytes);
    let range = 64 << 10;
    let mut needed = 0;
    // Connections have several ranges, and are cut within one of them.
    for limit in spread(2 * depth(), 10_000, 80_000) {
        let proxy = toxiproxy.proxy(&server.address);
        proxy.cut(limit);
        expect(Remote::new(proxy.url("/files/a")).range_size(range).connections(48), &bytes);
        needed += bytes.len().div_ceil(range as usize);
    }
    let requests = answers(&server, "/files/a", needed).len();
    report(requests - needed, 2500, "connections that were cut and resumed");
}

#[test]
fn a_body_that_cannot_be_resumed_ends_with_an_error_wherever_it_is_cut() {
    let (Some(server), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    let bytes = content(1, 3_000_000);
    store(&server, "a", &bytes);
    let mut faults = 0;
    for path in ["/chunked/a", "/weak/a", "/whole/a"] {
        let whole = format!("{path}?whole");
        expect(server.url(&whole), &bytes);
        let (_, length) = answers(&server, &whole, 1)[0];
        assert!(length > bytes.len(), "{path}: {length}");
        let positions = spread(100 * depth(), 0, length);
        // Near the end is the last chunk, which says that the body is complete.
        for limit in positions.chain(length - 64..length) {
            let proxy = toxiproxy.proxy(&server.address);
            // 0 would be no limit of the proxy.
            proxy.cut(limit.max(1));
            let (found, error) = read_all(Remote::new(proxy.url(path)).retry_for(Duration::ZERO));
            assert!(bytes.starts_with(&found), "{path}, {limit}: {} wrong bytes", found.len());
            let error = error.unwrap_or_else(|| panic!("{path}, {limit}: a silent end after {}", found.len()));
            assert_eq!(error.kind(), ErrorKind::RemoteFailed, "{path}, {limit}: {error}");
            faults += 1;
        }
        let proxy = toxiproxy.proxy(&server.address);
        proxy.cut(length);
        expect(proxy.url(path), &bytes);
    }
    report(faults, 300, "bodies that were cut and reported");
}

#[test]
fn a_proxy_whose_own_source_breaks_is_noticed() {
    let (Some(origin), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    let bytes = content(1, 1_000_000);
    store(&origin, "a", &bytes);
    let limits: Vec<usize> = spread(30 * depth(), 1_000, 900_000).collect();
    let (mut proxies, mut locations) = (Vec::new(), String::new());
    for limit in &limits {
        let proxy = toxiproxy.proxy(&origin.address);
        proxy.cut(*limit);
        let location =
            format!("location /{limit}/ {{ proxy_pass http://{}/; proxy_http_version 1.1; }}\n", proxy.address);
        locations += &location;
        proxies.push(proxy);
    }
    let Some(server) = nginx(&locations) else { return };
    for limit in &limits {
        let url = |folder: &str| Remote::new(server.url(&format!("/{limit}/{folder}/a")));
        let (found, error) = read_all(url("chunked").retry_for(Duration::ZERO));
        assert!(bytes.starts_with(&found), "{limit}: {} wrong bytes", found.len());
        assert_eq!(error.expect("a silent end").kind(), ErrorKind::RemoteFailed, "{limit}");
        expect(url("files").range_size(100_000).connections(8), &bytes);
    }
    report(limits.len(), 30, "truncated sources of a proxy");
}

#[test]
fn every_kind_of_fault_changes_no_byte() {
    let (Some(server), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    let bytes = content(1, 3_000_000);
    store(&server, "a", &bytes);
    let range = 32 << 10;
    let mut needed = 0;
    let cut: Toxic = ("limit_data", r#""bytes": 20000"#, 1.0);
    let kinds: [&[Toxic]; 11] = [
        // It also resets connections that end without its help, even if it has no share of them.
        &[cut, ("reset_peer", r#""timeout": 0"#, 0.0)],
        // Nothing arrives after the cut, until it closes.
        &[cut, ("slow_close", r#""delay": 500"#, 0.2)],
        &[("reset_peer", r#""timeout": 0"#, 0.2)],
        &[("reset_peer", r#""timeout": 20"#, 0.2)],
        &[("timeout", r#""timeout": 0"#, 0.2)],
        &[("timeout", r#""timeout": 50"#, 0.2)],
        &[("limit_data", r#""bytes": 100"#, 0.2)],
        &[("latency", r#""latency": 10, "jitter": 10"#, 1.0)],
        &[("bandwidth", r#""rate": 2000"#, 1.0)],
        &[("slicer", r#""average_size": 100, "size_variation": 99, "delay": 0"#, 1.0)],
        &[("slicer", r#""average_size": 15000, "size_variation": 1000, "delay": 400000"#, 0.2)],
    ];
    for toxics in kinds.iter().cycle().take(kinds.len() * depth()) {
        for stream in ["downstream", "upstream"] {
            let proxy = toxiproxy.proxy(&server.address);
            proxy.add(stream, toxics);
            let remote = Remote::new(proxy.url("/once/a")).range_size(range).connections(32);
            expect(remote.idle_timeout(Duration::from_millis(200)), &bytes);
            needed += bytes.len().div_ceil(range as usize);
        }
    }
    let requests = answers(&server, "/once/a", needed).len();
    report(requests - needed, 200, "requests of bad connections that were repeated");
}

#[test]
fn a_lasting_fault_is_an_error() {
    let (Some(server), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    store(&server, "a", b"one\n");
    let lasting = [
        ("reset_peer", r#""timeout": 0"#, 1.0),
        ("timeout", r#""timeout": 0"#, 1.0),
        ("timeout", r#""timeout": 50"#, 1.0),
        ("limit_data", r#""bytes": 50"#, 1.0),
    ];
    for toxic in lasting {
        for stream in ["downstream", "upstream"] {
            let proxy = toxiproxy.proxy(&server.address);
            proxy.add(stream, &[toxic]);
            let remote = Remote::new(proxy.url("/files/a")).idle_timeout(Duration::from_millis(200));
            let (found, error) = read_all(remote.retry_for(Duration::from_millis(300)));
            assert_eq!(found, b"", "{toxic:?} {stream}");
            assert_eq!(error.expect("no answer").kind(), ErrorKind::RemoteFailed, "{toxic:?} {stream}");
        }
    }
}

#[test]
fn a_server_may_go_away_while_it_is_read_if_it_comes_back() {
    let (Some(server), Some(toxiproxy)) = (nginx(""), Toxiproxy::new()) else { return };
    let bytes = content(1, LARGE);
    store(&server, "a", &bytes);
    let proxy = toxiproxy.proxy(&server.address);
    let (reader, found) = begin(proxy.url("/files/a"));
    proxy.enable(false);
    let (found, error) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            proxy.enable(true);
        });
        read_rest(reader, found)
    });
    assert!(error.is_none() && found == bytes, "{error:?}");

    let (reader, found) = begin(Remote::new(proxy.url("/files/a")).retry_for(Duration::from_millis(500)));
    proxy.enable(false);
    let (found, error) = read_rest(reader, found);
    assert!(found.len() < LARGE && bytes.starts_with(&found), "{} wrong bytes", found.len());
    assert_eq!(error.expect("no server").kind(), ErrorKind::RemoteFailed);
}

#[test]
fn objects_of_a_store_arrive_over_connections_that_are_cut() {
    const NAME: &str = "faults::objects_of_a_store_arrive_over_connections_that_are_cut";
    with_store(NAME, Kind::S3, versitygw, &[], |store| {
        let Some(toxiproxy) = Toxiproxy::new() else { return };
        let bytes = content(1, LARGE);
        store.put("a", &bytes);
        let mut faults = 0;
        for limit in spread(2 * depth(), 20_000, 60_000) {
            let proxy = toxiproxy.proxy(&store.address);
            proxy.cut(limit);
            // No connection delivers more.
            faults += LARGE / limit;
            let remote = Remote::new("s3://bucket/a").endpoint(proxy.url(""));
            expect(remote.range_size(64 << 10).connections(48), &bytes);
        }
        report(faults, 700, "connections to a store that were cut and resumed");
    });
}
