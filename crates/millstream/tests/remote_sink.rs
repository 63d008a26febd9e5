//! Objects as sinks, of a store in memory that fails as stores and networks do: an object appears whole or not at all.

#[path = "shared/http.rs"]
mod http;
#[path = "shared/store.rs"]
mod store;

use std::collections::HashMap;
use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use millstream::remote::{Objects, Outcome, Uploads, outcome};
use millstream::splits::{Framing, Splits};
use millstream::{
    CancelToken, Decode, Encode, Error, ErrorKind, Existing, FlushPolicy, Partial, Reader, Remote, Writer,
};

use store::{DIALECTS, Dialect, Fault, Request, Store};

/// Runs a test for each kind of store, at the same time.
fn each(test: impl Fn(Dialect) + Sync) {
    std::thread::scope(|scope| {
        for dialect in DIALECTS {
            let test = &test;
            scope.spawn(move || test(dialect));
        }
    });
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
        let mut random = Rng::with_seed(1);
        for run in 0..if is_deep() { 10_000 } else { 1000 } {
            let length = random.usize(..1000);
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
                        let mut random = Rng::with_seed(run as u64);
                        let choices = (0..6).map(|_| random.u64(..16)).collect();
                        let (creates, is_long) = (random.u64(..4) == 0, random.u64(..4) > 0);
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
            rest.split([' ', '`', '\'']).next().unwrap().to_string()
        };
        let (id, upload) = (word("--id "), word("--upload="));
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

#[test]
fn listed_objects_are_planned_without_a_request() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let store = Store::new(Dialect::S3, move |request| {
        seen.lock().unwrap().push(format!("{} {}", request.method, request.key));
        Fault::None
    });
    for number in 1..5 {
        write(store.remote(&format!("logs/{number}")), &b"a line\n".repeat(100 * number)).unwrap();
    }
    let listed: Vec<_> = Objects::matching(store.remote("logs/*")).unwrap().collect::<Result<_, _>>().unwrap();
    requests.lock().unwrap().clear();
    let plan = |object: &millstream::remote::ListedObject| {
        let builder = Splits::builder().decode(Decode::Off).listed(object);
        builder.plan_url(store.remote_at(&object.url), Framing::Lines, 1000).unwrap()
    };
    let plans: Vec<_> = listed.iter().map(plan).collect();
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
    for (number, (plan, object)) in (1..).zip(plans.iter().zip(&listed)) {
        let asked = Splits::builder().plan_url(store.remote_at(&object.url), Framing::Lines, 1000).unwrap();
        assert_eq!(plan, &asked);
        let mut count = 0;
        for split in plan {
            let mut lines = Reader::split(split).unwrap();
            while lines.next_line().unwrap().is_some() {
                count += 1;
            }
        }
        assert_eq!(count, 100 * number);
    }
    // This store ignores the condition of the request, and answers with its ETag, which is the size.
    write(store.remote("logs/3"), b"another line\n").unwrap();
    let error = Reader::split(plans[2].iter().next().unwrap()).and_then(|mut reader| reader.next_line().map(drop));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("found bytes 0-12 of 13, expected bytes 0-2099 of 2100"), "{error}");
}
