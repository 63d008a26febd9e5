//! Splits of an object are those of a file with the same bytes, and deliver the same.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream::frame::CsvDialect;
use millstream::splits::{Framing, Split, SplitPin, Splits};
use millstream::{CancelToken, Encode, ErrorKind, GzipIndex, Reader, Remote, Result, Writer};

use crate::server::{Fault, Server, answer};

fn serve(bytes: Vec<u8>) -> Server {
    Server::new(move |request, stream| answer(&bytes, &request, Fault::None, stream))
}

/// Records with quotes, line ends in quotes, and every length up to 2000.
fn table() -> Vec<u8> {
    let row = |i: usize| format!("{i},\"{}\n\"\"x\",{}\n", "ab\n".repeat(i % 7), "z".repeat(i));
    (0..2000).map(row).collect::<String>().into()
}

/// Bytes that hardly become shorter if they are compressed.
fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..2_000_000).map(next).collect()
}

fn documents() -> Vec<u8> {
    (0..3000_u32).flat_map(|i| [&(i % 900 + 5).to_le_bytes()[..], &vec![1; i as usize % 900], &[0]].concat()).collect()
}

fn csv() -> Framing {
    Framing::Csv { dialect: CsvDialect::new() }
}

/// What a split contains, without its file: the pin depends on that.
fn ranges(plan: &Splits) -> Vec<String> {
    let split = |split: &Split| {
        let mut fields: serde_json::Value = serde_json::from_str(&split.to_json()).unwrap();
        let fields = fields.as_object_mut().unwrap();
        ["path", "url", "pin"].iter().for_each(|name| drop(fields.remove(*name)));
        serde_json::to_string(fields).unwrap()
    };
    plan.iter().map(split).collect()
}

/// The bytes of a split, and the error after them.
fn read(reader: Result<Reader>) -> (u64, Vec<u8>, Option<String>) {
    let (mut reader, mut bytes) = (reader.unwrap(), Vec::new());
    let begin = reader.position().bytes;
    let error = reader.read_to_end(&mut bytes).err().map(|error| millstream::Error::from_io(error).kind().to_string());
    (begin, bytes, error)
}

/// Compares plans of a file and of an object with the same bytes, and what their splits deliver.
fn compare(path: &Path, framing: &Framing, sizes: &[u64]) {
    let server = serve(std::fs::read(path).unwrap());
    let url = || Remote::new(server.url("/a")).range_size(30_000).connections(3);
    for &size in sizes {
        let pin = if size % 2 == 0 { SplitPin::Full } else { SplitPin::Identity };
        let builder = || Splits::builder().pin(pin);
        let expected = builder().plan(path, framing.clone(), size).unwrap();
        let plan = builder().plan_url(url(), framing.clone(), size).unwrap();
        assert_eq!(ranges(&plan), ranges(&expected), "{framing:?}, {size}");
        assert_eq!((plan.file_size(), plan.records()), (expected.file_size(), expected.records()));
        let stored = Splits::from_json(&plan.to_json()).unwrap();
        assert_eq!(stored, plan);
        for (split, expected) in stored.into_iter().zip(&expected) {
            let expected = read(Reader::split(expected));
            assert_eq!(read(Reader::split(&split.with_remote(url()))), expected, "{framing:?}, {size}");
        }
    }
}

#[test]
fn the_splits_of_an_object_are_those_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, table()).unwrap();
    let sizes = [100_001, 700_000, 1 << 30];
    for framing in [Framing::Lines, Framing::Delimiter { bytes: b"ab\n".to_vec() }, Framing::Fixed { len: 1001 }, csv()]
    {
        compare(&path, &framing, &sizes);
    }
    // So long that several threads follow it.
    std::fs::write(&path, "some text,\"a,\n\"\"\"\n".repeat(900_000)).unwrap();
    compare(&path, &csv(), &[5_000_001]);
    std::fs::write(&path, documents()).unwrap();
    compare(&path, &Framing::Bson, &sizes);
    std::fs::write(&path, format!("[{}]", "{\"a\": [1, 2]},\n".repeat(30_000) + "3")).unwrap();
    compare(&path, &Framing::JsonElements { pointer: String::new(), depth: 128 }, &sizes);
    std::fs::write(&path, "").unwrap();
    compare(&path, &Framing::Lines, &sizes);
}

#[test]
fn a_pass_over_an_object_is_shared() {
    let server = serve(table());
    let plan = Splits::builder().plan_url(server.url("/a"), csv(), 100_000).unwrap();
    let pass = Splits::builder().share_url(server.url("/a"), csv(), 100_000, 300_000).unwrap().unwrap();
    let results: Vec<_> = pass.parts().map(|part| part.follow().unwrap()).collect();
    assert!(results.len() > 5);
    assert_eq!(pass.plan(results).unwrap(), plan);
}

/// Lengths that are followed over a gap, which is requested around.
#[test]
fn long_records_are_skipped_while_an_object_is_planned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let long = |len: u32| [&(len + 5).to_le_bytes()[..], &vec![1; len as usize], &[0]].concat();
    std::fs::write(
        &path,
        [long(10), long(900_000), long(20), long(20), long(700_000), long(300_000), long(1)].concat(),
    )
    .unwrap();
    compare(&path, &Framing::Bson, &[1, 1000, 800_000]);
}

#[test]
fn compressed_objects_are_divided_too() {
    let directory = tempfile::tempdir().unwrap();
    let (gz, zst) = (directory.path().join("a.gz"), directory.path().join("a.zst"));
    for (path, builder) in [
        (&gz, Writer::builder().encode(Encode::Bgzf)),
        (&zst, Writer::builder().encode(Encode::Zstd).block_size(400_000)),
    ] {
        let mut writer = builder.path(path).unwrap();
        std::io::Write::write_all(&mut writer, &noise()).unwrap();
        writer.close().unwrap();
        compare(path, &Framing::Lines, &[300_001, 1_000_000]);
        compare(path, &Framing::Fixed { len: 1000 }, &[300_001]);
    }
}

#[test]
fn the_index_of_a_gzip_object_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, index) = (directory.path().join("a.gz"), directory.path().join("other.gzidx"));
    let mut writer = Writer::path(&path).unwrap();
    std::io::Write::write_all(&mut writer, &noise()).unwrap();
    writer.close().unwrap();
    let built = GzipIndex::build(&path, GzipIndex::MIN_SPACING, |_, _| Ok(())).unwrap();
    built.write(std::fs::File::create(&index).unwrap()).unwrap();
    let server = serve(std::fs::read(&path).unwrap());
    let plan = || Splits::builder().index(&index);
    let object = plan().plan_url(server.url("/a.gz"), Framing::Lines, 200_000).unwrap();
    assert!(object.len() > 5, "{:?}", object.note());
    let file = plan().plan(&path, Framing::Lines, 200_000).unwrap();
    assert_eq!(ranges(&object), ranges(&file));
    for (object, file) in object.iter().zip(&file) {
        assert_eq!(read(Reader::split(object)), read(Reader::split(file)));
    }
    let without = Splits::builder().plan_url(server.url("/a.gz"), Framing::Lines, 200_000).unwrap();
    assert_eq!(without.len(), 1);
    assert!(without.note().unwrap().contains("make an index"), "{:?}", without.note());
}

/// A split requests its bytes and little else.
#[test]
fn a_split_requests_its_own_bytes() {
    let bytes = "line\n".repeat(1 << 20).into_bytes();
    let len = bytes.len() as u64;
    let server = serve(bytes);
    let plan = Splits::builder().plan_url(server.url("/a"), Framing::Lines, len / 4).unwrap();
    let before = server.requests.load(Ordering::SeqCst);
    assert_eq!(before, 2, "for the version and the first bytes");
    assert_eq!(read(Reader::split(plan.iter().nth(1).unwrap())).1.len() as u64, len / 4);
    assert_eq!(server.requests.load(Ordering::SeqCst), before + 1);
}

/// A token interrupts waits at any moment, also when bytes have just arrived.
#[test]
fn an_interrupted_split_continues() {
    let bytes = "line\n".repeat(200).into_bytes();
    let theirs = bytes.clone();
    let server = Server::new(move |request, stream| {
        let mut whole = Vec::new();
        let (from, to) = request.range.unwrap();
        let to = to.unwrap_or(theirs.len()).min(theirs.len());
        write!(
            whole,
            "HTTP/1.1 206 X\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\nETag: \"v\"\r\n\r\n",
            to - 1,
            theirs.len(),
            to - from
        )
        .unwrap();
        whole.extend(&theirs[from..to]);
        for part in whole.chunks(25) {
            std::thread::sleep(Duration::from_millis(20));
            let _ = stream.write_all(part);
        }
    });
    let plan = Splits::builder().plan_url(server.url("/a"), Framing::Lines, 1 << 20).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(lines_of_an_interrupted(plan.iter().next().unwrap()), 200));
        }
    });
}

/// Reads a split while a token is cancelled again and again. Returns the number of lines.
fn lines_of_an_interrupted(split: &Split) -> u64 {
    let token = CancelToken::new().unwrap();
    let mut reader = Reader::builder().cancel(&token).split(split).unwrap();
    let (canceller, is_over) = (token.clone(), Arc::new(AtomicBool::new(false)));
    let over = is_over.clone();
    let cancelling = std::thread::spawn(move || {
        while !over.load(Ordering::SeqCst) {
            canceller.cancel();
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    let mut interrupted = 0;
    loop {
        match reader.next_line() {
            Ok(Some(line)) => assert_eq!(line, b"line"),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                interrupted += 1;
                token.reset();
            }
        }
    }
    is_over.store(true, Ordering::SeqCst);
    cancelling.join().unwrap();
    assert!(interrupted > 3, "{interrupted}");
    reader.position().records
}

#[test]
fn another_version_is_an_error() {
    let bytes = "line\n".repeat(1000).into_bytes();
    let theirs = bytes.clone();
    let server = Server::new(move |request, stream| {
        let fault = if request.path == "/changed" { Fault::Changed } else { Fault::None };
        answer(&theirs, &request, fault, stream);
    });
    let plan = Splits::builder().plan_url(server.url("/a"), Framing::Lines, 1000).unwrap();
    for split in plan {
        let read = |url: String| Reader::split(&split.clone().with_remote(Remote::new(url).retry_for(Duration::ZERO)));
        assert!(read(server.url("/a")).unwrap().next_line().is_ok());
        let error = match read(server.url("/changed")) {
            Ok(mut reader) => reader.next_line().unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::SourceChanged);
        assert!(error.to_string().contains("expected the version with the ETag \"v1\""), "{error}");
    }
    // An empty object is compared, too, although none of its bytes is requested.
    let empty = serve(Vec::new());
    let plan = Splits::builder().plan_url(empty.url("/a"), Framing::Lines, 1000).unwrap();
    let split = plan.iter().next().unwrap().clone();
    let error = Reader::split(&split.with_remote(server.url("/a"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");
}

#[test]
fn a_copy_of_a_file_may_be_an_object() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, table()).unwrap();
    let (server, other) = (serve(table()), serve(vec![b'x'; table().len()]));
    let plan = Splits::builder().pin(SplitPin::Ends).plan(&path, Framing::Lines, 500_000).unwrap();
    for split in &plan {
        assert_eq!(read(Reader::split(&split.clone().with_remote(server.url("/a")))), read(Reader::split(split)));
        let error = Reader::split(&split.clone().with_remote(other.url("/a"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceChanged);
    }
    let identity = Splits::plan(&path, Framing::Lines, 500_000).unwrap();
    let split = identity.iter().next().unwrap().clone().with_remote(server.url("/a"));
    assert_eq!(Reader::split(&split).unwrap_err().kind(), ErrorKind::SourceChanged);
}

#[test]
fn objects_that_could_be_mixed_are_refused() {
    let server = Server::new(|_, stream| {
        let _ = std::io::Write::write_all(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na\n");
    });
    let error = Splits::builder().plan_url(server.url("/a"), Framing::Lines, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("/a: ") && error.to_string().contains("a strong ETag"), "{error}");
}

#[test]
fn a_plan_shows_no_secret_outside_its_json() {
    let server = serve(b"a\nb\n".to_vec());
    let url = server.url("/a?signature=s3cret");
    let plan = Splits::builder().plan_url(url.clone(), Framing::Lines, 2).unwrap();
    let split = plan.iter().next().unwrap();
    assert!(!format!("{plan:?} {}", split.name()).contains("s3cret"));
    assert_eq!(split.url(), Some(&*url));
    assert!(split.to_json().contains("s3cret"));
}
