//! A mapped file has the correct content and length, however writing ends. A full disk causes an error, not a signal.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use millstream::{Durability, ErrorKind, Existing, Partial, Writer};

mod skip;
mod strace;

const MIB: usize = 1 << 20;

/// Returns bytes that depend on their position.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Writes in records of odd length.
fn write(writer: &mut Writer, bytes: &[u8], record: usize) {
    bytes.chunks(record).for_each(|record| writer.write(record).unwrap());
}

#[test]
fn every_length_around_a_page_and_a_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let all = pattern(7 * MIB + 5000);
    // The steps end at 1, 3 and 7 MiB.
    for edge in [0, 4096, MIB, MIB + 4096, 3 * MIB, 7 * MIB] {
        for len in [edge.saturating_sub(1), edge, edge + 1] {
            for record in [7777, 3 * MIB] {
                for durability in [Durability::Cached, Durability::All] {
                    let builder = Writer::builder().durability(durability);
                    let mut writer = builder.mapped(&path).unwrap();
                    write(&mut writer, &all[..len], record);
                    let end = writer.close().unwrap();
                    assert_eq!((end.bytes, end.written), (len as u64, len as u64));
                    assert!(fs::read(&path).unwrap() == all[..len], "{len} bytes by {record}");
                    // The writer uses no more memory than that, either.
                    assert!(fs::metadata(&path).unwrap().blocks() * 512 < len as u64 + 64 * 1024, "{len}");
                }
            }
        }
    }
}

#[test]
fn a_mapped_file_appears_complete_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    fs::write(&path, "old").unwrap();
    let mut writer = Writer::mapped(&path).unwrap();
    write(&mut writer, &pattern(2 * MIB), 1000);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_file_written_in_place_has_its_true_length_after_a_drop() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    fs::write(&path, pattern(5 * MIB)).unwrap();
    let bytes = pattern(MIB + 123);
    let mut writer = Writer::builder().partial(Partial::Keep).mapped(&path).unwrap();
    write(&mut writer, &bytes, 1000);
    drop(writer);
    assert!(fs::read(&path).unwrap() == bytes);
}

#[cfg(feature = "compression")]
#[test]
fn its_name_may_request_compression() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.zst");
    let bytes = pattern(3 * MIB);
    let mut writer = Writer::mapped(&path).unwrap();
    write(&mut writer, &bytes, 1000);
    writer.close().unwrap();
    assert!(zstd::decode_all(&fs::read(&path).unwrap()[..]).unwrap() == bytes);
}

#[test]
fn only_a_regular_file_can_be_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.as_path(), "/dev/null".as_ref(), "/dev/stdout".as_ref(), directory.path()] {
        assert_eq!(Writer::mapped(path).unwrap_err().kind(), ErrorKind::OpenFailed, "{path:?}");
    }
    let path = directory.path().join("out");
    let error = Writer::builder().existing(Existing::Append).mapped(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(!path.exists());
}

/// Runs in a separate process: fills a disk, and checks the reported errors.
#[test]
#[ignore = "run by the other tests in a process that meets a full disk"]
fn child() {
    let Some(path) = std::env::var_os("MILLSTREAM_TEST_PATH") else { return };
    let bytes = pattern(8 * MIB);
    let mut writer = Writer::builder().capacity(1000).partial(Partial::Keep).mapped(&path).unwrap();
    let error = bytes.chunks(100).find_map(|record| writer.write(record).err());
    let error = match std::env::var("MILLSTREAM_TEST_ERROR").as_deref() {
        Ok("none") => return writer.close().map(drop).unwrap(),
        Ok(kind) => {
            let error = error.expect("the disk is full");
            assert_eq!(error.kind().name(), kind, "{error}");
            error
        }
        _ => panic!("what is to happen?"),
    };
    let written = error.written().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), written, "after an error");
    assert!(fs::read(&path).unwrap() == bytes[..written as usize]);
    if std::env::var_os("MILLSTREAM_TEST_TWICE").is_some() {
        // The lack of space was temporary: no byte is lost.
        let accepted = writer.accepted() as usize;
        write(&mut writer, &bytes[accepted..], 100);
        writer.close().unwrap();
        assert!(fs::read(&path).unwrap() == bytes);
    } else {
        assert!(writer.try_close().is_err());
        drop(writer);
        assert_eq!(fs::metadata(&path).unwrap().len(), written, "after a drop");
    }
}

/// Runs the child with `argv` before its command line. `error` is the kind of error that the child expects.
fn run_child(argv: &[&str], path: &Path, error: &str, twice: bool) -> std::process::Output {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).arg(std::env::current_exe().unwrap()).args(["--exact", "child", "--ignored"]);
    command.env("MILLSTREAM_TEST_PATH", path).env("MILLSTREAM_TEST_ERROR", error).stdin(Stdio::null());
    if twice {
        command.env("MILLSTREAM_TEST_TWICE", "1");
    }
    command.output().unwrap()
}

fn assert_passed(output: &std::process::Output, what: &str) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{what}: {:?}: {}", output.status, String::from_utf8_lossy(&text));
}

#[test]
fn space_is_reserved_before_it_is_written() {
    if strace::is_missing() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (path, log) = (directory.path().join("out"), directory.path().join("strace.log"));
    for (fault, error, twice) in [
        // A smaller step is found.
        ("error=ENOSPC:when=2", "none", false),
        ("error=EINTR:when=1+2", "none", false),
        // 4 MiB is refused, and so is every half of it down to a page. After that, space is available again.
        ("error=ENOSPC:when=3..13", "io", true),
        ("error=ENOSPC:when=2+1", "io", false),
        ("error=EDQUOT:when=1+1", "io", false),
        ("error=EOPNOTSUPP:when=1+1", "unsupported", false),
    ] {
        let inject = format!("inject=fallocate:{fault}");
        let log = log.to_str().unwrap();
        let argv = ["strace", "-f", "-qq", "-o", log, "-e", "trace=fallocate", "-e", &inject];
        assert_passed(&run_child(&argv, &path, error, twice), fault);
        assert!(fs::read_to_string(log).unwrap().contains("(INJECTED)"), "{fault}: strace injected nothing");
    }
}

#[test]
fn a_small_file_system_and_a_limit_end_in_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    // The limit is in blocks of 512 bytes, and is neither a multiple of a step nor of a page. The signal would kill the
    // process before it can report the error.
    let script = r#"trap "" XFSZ; ulimit -f 5001; exec "$@""#;
    let output = run_child(&["sh", "-c", script, "sh"], &path, "io", false);
    assert_passed(&output, "a limit on the file's length");
    assert_eq!(fs::metadata(&path).unwrap().len(), 5001 * 512);
    // No limit is reached, and no signal is sent, if the file is shorter but its last step would not be.
    let output = run_child(&["sh", "-c", r#"ulimit -f 17000; exec "$@""#, "sh"], &path, "none", false);
    assert_passed(&output, "a limit that suffices");

    // This needs a user namespace; without one, only the tests above run.
    let script = r#"mount -t tmpfs -o size=3m tmpfs "$0" || exit 77; exec "$@""#;
    let mount = directory.path().to_str().unwrap();
    let argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, mount];
    let output = run_child(&argv, &path, "io", false);
    if output.status.code() == Some(77) || output.stderr.starts_with(b"unshare:") {
        return skip::say("a small file system cannot be mounted here");
    }
    assert_passed(&output, "a small file system");
}
