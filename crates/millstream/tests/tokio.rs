//! Readers and writers in tasks of tokio.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use millstream::frame::Lines;
use millstream::tokio::{AsyncReader, AsyncWriter, Batches};
use millstream::{Error, ErrorKind, Reader, Writer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Long enough for everything except a hang.
const PATIENCE: Duration = Duration::from_secs(30);

fn numbers() -> Vec<u8> {
    (0..500_000).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

async fn read_all(reader: Reader) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    AsyncReader::new(reader)?.read_to_end(&mut all).await?;
    Ok(all)
}

#[tokio::test]
async fn every_source_delivers_all_bytes() {
    let (directory, expected) = (tempfile::tempdir().unwrap(), numbers());
    let path = directory.path().join("numbers");
    std::fs::write(&path, &expected).unwrap();
    let packed = directory.path().join("numbers.gz");
    let mut writer = Writer::path(&packed).unwrap();
    writer.write(&expected).unwrap();
    writer.close().unwrap();
    let readers = [
        Reader::path(&path),
        Reader::path(&packed),
        Reader::mapped(&path),
        Reader::memory(expected.clone()),
        Reader::command(["cat".as_ref(), path.as_os_str()]),
        Reader::from_read(std::io::Cursor::new(expected.clone())),
    ];
    for reader in readers {
        assert!(read_all(reader.unwrap()).await.unwrap() == expected);
    }
    // Bytes that the reader has read ahead come first.
    let mut reader = Reader::path(&path).unwrap();
    assert_eq!(reader.next_line().unwrap(), Some(&b"0"[..]));
    assert!(read_all(reader).await.unwrap() == expected[2..]);
}

#[tokio::test]
async fn a_socket_is_read_in_the_task() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let mut socket = listener.accept().unwrap().0;
        for () in asked {
            socket.write_all(b"one\ntwo\n").unwrap();
        }
        socket.write_all(&numbers()).unwrap();
    });
    let mut reader = AsyncReader::new(Reader::tcp(address).unwrap()).unwrap();
    assert!(format!("{reader:?}").contains("Polled"), "{reader:?}");
    // Nothing has been sent: the task can do other work, and a future that is dropped loses nothing.
    assert!(timeout(Duration::from_millis(20), reader.fill_buf()).await.is_err());
    for _ in 0..3 {
        ask.send(()).unwrap();
        let mut line = String::new();
        for expected in ["one\n", "two\n"] {
            line.clear();
            timeout(PATIENCE, reader.read_line(&mut line)).await.unwrap().unwrap();
            assert_eq!(line, expected);
        }
    }
    drop(ask);
    let mut all = Vec::new();
    timeout(PATIENCE, reader.read_to_end(&mut all)).await.unwrap().unwrap();
    assert!(all == numbers());
    server.join().unwrap();
}

#[tokio::test]
async fn an_error_follows_all_data_and_ends_the_stream() {
    let failing = || Reader::command(["sh", "-c", "seq 100000; exit 3"]).unwrap();
    let mut lines = AsyncReader::new(failing()).unwrap().lines();
    for number in 1..=100_000 {
        assert_eq!(lines.next_line().await.unwrap(), Some(number.to_string()));
    }
    let error = Error::from_io(lines.next_line().await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::CommandFailed);
    assert_eq!(lines.next_line().await.unwrap(), None);

    let mut batches = Batches::new(failing(), Lines::new()).unwrap();
    let mut count = 0;
    let error = loop {
        match batches.try_next().await {
            Ok(batch) => {
                let batch = batch.expect("an error before the end");
                assert_eq!(batch.get().first_line(), Some(count + 1));
                count += batch.get().len() as u64;
            }
            Err(error) => break error,
        }
    };
    assert_eq!((count, error.kind()), (100_000, ErrorKind::CommandFailed));
    assert!(batches.try_next().await.unwrap().is_none());
}

/// Waits until a process has ended.
async fn wait_for_the_end_of(process: &str) {
    let path = Path::new("/proc").join(process.trim());
    let ended = async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the command still runs");
}

const SILENT: [&str; 3] = ["sh", "-c", "echo $$; exec sleep 600"];

#[tokio::test]
async fn dropping_a_reader_ends_its_command() {
    for read_ahead in [millstream::ReadAhead::Off, millstream::ReadAhead::On] {
        let open = || Reader::builder().read_ahead(read_ahead).command(SILENT).unwrap();
        let mut reader = AsyncReader::new(open()).unwrap();
        let mut process = String::new();
        reader.read_line(&mut process).await.unwrap();
        assert!(timeout(Duration::from_millis(20), reader.fill_buf()).await.is_err());
        drop(reader);
        wait_for_the_end_of(&process).await;

        let mut batches = Batches::new(open(), Lines::new()).unwrap();
        let batch = batches.try_next().await.unwrap().unwrap();
        drop(batches);
        wait_for_the_end_of(&String::from_utf8_lossy(batch.get().get(0).unwrap())).await;
    }
}

#[tokio::test]
async fn a_writer_completes_its_output_when_it_is_shut_down() {
    let (directory, expected) = (tempfile::tempdir().unwrap(), numbers());
    let path = directory.path().join("numbers.gz");
    let mut out = AsyncWriter::new(|writer| writer.path(&path)).unwrap();
    for piece in expected.chunks(1000) {
        out.write_all(piece).await.unwrap();
    }
    out.flush().await.unwrap();
    assert!(!path.exists() && out.end().is_none());
    out.shutdown().await.unwrap();
    out.shutdown().await.unwrap();
    assert_eq!(out.end().unwrap().bytes, expected.len() as u64);
    assert!(read_all(Reader::path(&path).unwrap()).await.unwrap() == expected);

    let other = directory.path().join("other");
    let mut out = AsyncWriter::new(|writer| writer.path(&other)).unwrap();
    out.write_all(&expected).await.unwrap();
    drop(out);
    assert!(!other.exists());
}

#[tokio::test]
async fn a_writer_reports_its_error_again() {
    let mut out = AsyncWriter::new(|writer| writer.command(["sh", "-c", "cat >/dev/null; exit 3"])).unwrap();
    out.write_all(b"1\n").await.unwrap();
    for _ in 0..2 {
        let error = Error::from_io(out.shutdown().await.unwrap_err());
        assert_eq!(error.kind(), ErrorKind::CommandFailed);
    }
    assert!(out.write_all(b"2\n").await.is_err() && out.end().is_none());
}

/// A writer whose sink accepts nothing waits without blocking the task, and can be dropped.
#[tokio::test]
async fn dropping_a_writer_ends_its_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("process");
    let line = format!("echo $$ >{}; exec sleep 600", path.display());
    let mut out = AsyncWriter::new(|writer| writer.command(["sh", "-c", &line])).unwrap();
    assert!(timeout(Duration::from_millis(200), out.write_all(&vec![b'x'; 8 << 20])).await.is_err());
    let process = std::fs::read_to_string(&path).unwrap();
    drop(out);
    wait_for_the_end_of(&process).await;
}
