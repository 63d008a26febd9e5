//! Paths as sinks: files that appear complete, and paths that are not regular files.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use millstream::{ErrorKind, Existing, Partial, Writer};
use tempfile::TempDir;

mod skip;

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns the names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write_and_close(path: &Path, bytes: &[u8]) {
    let mut writer = Writer::path(path).unwrap();
    writer.write(bytes).unwrap();
    assert_eq!(writer.close().unwrap().bytes, bytes.len() as u64);
}

#[test]
fn a_file_appears_complete_when_it_is_closed() {
    let dir = dir();
    let path = dir.path().join("out.txt");
    let mut writer = Writer::path(&path).unwrap();
    writer.write(b"new").unwrap();
    writer.flush().unwrap();
    let meanwhile = names(dir.path());
    assert!(meanwhile.iter().all(|name| is_temporary(name, "out.txt")), "{meanwhile:?}");
    if cfg!(target_os = "linux") && !meanwhile.is_empty() {
        skip::say("in part: the file system has no files without a name");
    }
    writer.close().unwrap();
    assert_eq!(names(dir.path()), ["out.txt"]);
    assert_eq!(fs::read(&path).unwrap(), b"new");

    let mut writer = Writer::path(&path).unwrap();
    writer.write(b"newer").unwrap();
    writer.flush().unwrap();
    let meanwhile = names(dir.path());
    assert!(is_temporary(&meanwhile[0], "out.txt") && meanwhile[1] == "out.txt", "{meanwhile:?}");
    writer.close().unwrap();
    assert_eq!(names(dir.path()), ["out.txt"]);
    assert_eq!(fs::read(&path).unwrap(), b"newer");
}

/// Returns whether this is the documented name of a temporary file.
fn is_temporary(name: &str, of: &str) -> bool {
    let random = name.strip_prefix(&format!(".{of}.millstream-")).and_then(|rest| rest.strip_suffix(".tmp"));
    random.is_some_and(|random| random.len() == 6)
}

#[test]
fn a_file_created_meanwhile_is_replaced() {
    for mapped in [false, true] {
        let dir = dir();
        let path = dir.path().join("out");
        let mut writer = if mapped { Writer::mapped(&path) } else { Writer::path(&path) }.unwrap();
        writer.write(b"ours").unwrap();
        fs::write(&path, b"a longer content").unwrap();
        writer.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(names(dir.path()), ["out"]);
    }
}

/// Returns an access list as the kernel stores it, which also grants `permissions` to user 12345.
#[cfg(target_os = "linux")]
fn access_list(permissions: u16) -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, permissions, 12345), (4, 0, u32::MAX), (16, permissions, u32::MAX), (32, 0, u32::MAX)];
    let entries = entries.iter().flat_map(|(tag, permissions, id)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    });
    2u32.to_le_bytes().into_iter().chain(entries).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_replaced_file_keeps_its_access_list() {
    use rustix::fs::{XattrFlags, getxattr, getxattr_query, removexattr, setxattr};
    const NAME: &str = "system.posix_acl_access";
    let dir = dir();
    let path = dir.path().join("out");
    fs::write(&path, b"old").unwrap();
    let list = access_list(4);
    if setxattr(&path, NAME, &list, XattrFlags::empty()).is_err() {
        return skip::say("the file system has no access lists");
    }
    setxattr(dir.path(), "system.posix_acl_default", &access_list(7), XattrFlags::empty()).unwrap();
    let mode = fs::metadata(&path).unwrap().mode();
    write_and_close(&path, b"new");
    let mut kept = vec![0; list.len()];
    assert_eq!(getxattr(&path, NAME, &mut kept[..]), Ok(list.len()));
    assert_eq!(kept, list);
    assert_eq!(fs::metadata(&path).unwrap().mode(), mode);

    removexattr(&path, NAME).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    write_and_close(&path, b"newer");
    assert_eq!(getxattr_query(&path, NAME), Err(rustix::io::Errno::NODATA));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read(&path).unwrap(), b"newer");
}

#[test]
fn a_close_that_could_not_rename_can_be_repeated() {
    let dir = dir();
    let path = dir.path().join("out");
    let mut writer = Writer::path(&path).unwrap();
    writer.write(b"content").unwrap();
    fs::create_dir(&path).unwrap(); // blocks the path
    assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Io);
    fs::remove_dir(&path).unwrap();
    assert_eq!(writer.try_close().unwrap().bytes, 7);
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn an_old_file_stays_until_the_end_and_passes_on_its_permissions() {
    let dir = dir();
    let path = dir.path().join("out.txt");
    for mode in [0o600, 0o644, 0o751] {
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut writer = Writer::path(&path).unwrap();
        writer.write(b"new").unwrap();
        writer.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        writer.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
    }
}

#[test]
fn a_new_file_has_the_permissions_of_any_new_file() {
    let dir = dir();
    write_and_close(&dir.path().join("ours"), b"");
    File::create(dir.path().join("any")).unwrap();
    let mode = |name| fs::metadata(dir.path().join(name)).unwrap().mode();
    assert_eq!(mode("ours"), mode("any"));
}

#[test]
fn a_dropped_writer_leaves_no_file_and_no_trace() {
    let dir = dir();
    let mut writer = Writer::path(dir.path().join("out")).unwrap();
    writer.write(b"half").unwrap();
    drop(writer);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn symbolic_links_stay_and_their_targets_are_replaced() {
    let dir = dir();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/real"), b"old").unwrap();
    symlink("data/real", dir.path().join("one")).unwrap();
    symlink("one", dir.path().join("two")).unwrap();
    write_and_close(&dir.path().join("two"), b"new");
    assert_eq!(fs::read_link(dir.path().join("two")).unwrap(), Path::new("one"));
    assert_eq!(fs::read(dir.path().join("data/real")).unwrap(), b"new");
    assert_eq!(names(&dir.path().join("data")), ["real"]);

    // This link points to no file yet.
    symlink("data/later", dir.path().join("three")).unwrap();
    write_and_close(&dir.path().join("three"), b"new");
    assert_eq!(fs::read(dir.path().join("data/later")).unwrap(), b"new");

    symlink("loop", dir.path().join("loop")).unwrap();
    assert_eq!(Writer::path(dir.path().join("loop")).unwrap_err().kind(), ErrorKind::OpenFailed);
}

#[test]
fn appending_adds_to_a_file_or_starts_one() {
    let dir = dir();
    let path = dir.path().join("log");
    for line in ["one\n", "two\n"] {
        let mut writer = Writer::builder().existing(Existing::Append).path(&path).unwrap();
        writer.write(line.as_bytes()).unwrap();
        writer.close().unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
}

#[test]
fn keeping_partial_output_writes_in_place() {
    let dir = dir();
    let path = dir.path().join("out");
    fs::write(&path, b"something longer").unwrap();
    let mut writer = Writer::builder().partial(Partial::Keep).path(&path).unwrap();
    writer.write(b"half").unwrap();
    assert_eq!(names(dir.path()), ["out"]);
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"half");
}

#[test]
fn a_path_that_cannot_be_opened_is_one_error_without_side_effects() {
    let dir = dir();
    fs::write(dir.path().join("file"), b"").unwrap();
    let at = |name: &str| dir.path().join(name);
    let cases: [(PathBuf, rustix::io::Errno); 8] = [
        (dir.path().into(), rustix::io::Errno::ISDIR),
        (at("missing/out"), rustix::io::Errno::NOENT),
        (at("missing/"), rustix::io::Errno::NOENT),
        (at("file/out"), rustix::io::Errno::NOTDIR),
        (at(".."), rustix::io::Errno::ISDIR),
        ("".into(), rustix::io::Errno::NOENT),
        (at(&"x".repeat(256)), rustix::io::Errno::NAMETOOLONG),
        ("/proc/millstream".into(), rustix::io::Errno::NOENT),
    ];
    for (path, errno) in cases {
        for (existing, partial) in [
            (Existing::Replace, Partial::Remove),
            (Existing::Replace, Partial::Keep),
            (Existing::Append, Partial::Remove),
        ] {
            let error = Writer::builder().existing(existing).partial(partial).path(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OpenFailed, "{path:?}");
            assert_eq!(error.name(), Some(&*path.display().to_string()));
            assert_eq!(error.errno(), Some(errno.raw_os_error()), "{path:?} {error}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn a_name_as_long_as_the_system_allows_is_fine() {
    let dir = dir();
    let path = dir.path().join("x".repeat(255));
    write_and_close(&path, b"new");
    assert_eq!(fs::read(path).unwrap(), b"new");
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    if rustix::process::geteuid().is_root() {
        return skip::say("root may write every file");
    }
    let dir = dir();
    let path = dir.path().join("mine");
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    assert_eq!(Writer::path(&path).unwrap_err().kind(), ErrorKind::OpenFailed);
    assert_eq!(names(dir.path()), ["mine"]);
}

#[test]
fn a_fifo_is_written_directly() {
    let dir = dir();
    let path = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    write_and_close(&path, b"through the pipe");
    assert_eq!(reader.join().unwrap(), b"through the pipe");
    assert_eq!(names(dir.path()), ["fifo"]);
}

#[test]
fn devices_are_written_directly() {
    write_and_close(Path::new("/dev/null"), b"gone");
    let mut writer = Writer::path("/dev/full").unwrap();
    writer.write(b"no space").unwrap();
    let error = writer.flush().unwrap_err();
    assert_eq!(error.errno(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    assert_eq!((error.name(), error.written()), (Some("/dev/full"), Some(0)));
    assert_eq!(error.advice(), "free space, or write elsewhere");
    assert_eq!(writer.accepted(), 8);
    assert_eq!(writer.close().unwrap_err().errno(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn a_full_disk_reports_the_bytes_written_and_leaves_no_file() {
    let dir = dir();
    let mount = |args: &[&str]| std::process::Command::new("mount").args(args).stderr(Stdio::null()).status();
    let target = dir.path().to_str().unwrap();
    if !mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs", target]).is_ok_and(|status| status.success()) {
        return skip::say("mounting a small tmpfs is not allowed here");
    }
    struct Unmount<'a>(&'a str);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0).status();
        }
    }
    let _unmount = Unmount(target);

    let path = dir.path().join("out");
    fs::write(&path, b"").unwrap(); // so that the temporary file has a name
    let mut writer = Writer::builder().capacity(10_000).path(&path).unwrap();
    let record = [b'x'; 999];
    let error = loop {
        if let Err(error) = writer.write(&record) {
            break error;
        }
    };
    assert_eq!(error.errno(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    let temporary = dir.path().join(&names(dir.path())[0]);
    let on_disk = fs::metadata(&temporary).unwrap().len();
    assert_eq!(error.written(), Some(on_disk));
    assert!(writer.accepted() > on_disk);

    // When space is available again, no byte is missing.
    assert!(mount(&["-o", "remount,size=1m", target]).unwrap().success());
    let accepted = writer.accepted();
    writer.flush().unwrap();
    assert_eq!(fs::metadata(&temporary).unwrap().len(), accepted);
    drop(writer);
    assert_eq!(names(dir.path()), ["out"]);
}

/// Runs `child` of this file in another process, with `stdout` as its standard output.
fn in_child(role: &str, stdout: impl Into<Stdio>) {
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture", "--quiet"])
        .env("MILLSTREAM_TEST_ROLE", role)
        .stdout(stdout)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn child() {
    let mut writer = match &*std::env::var("MILLSTREAM_TEST_ROLE").unwrap_or_default() {
        "stdout" => Writer::stdout().unwrap(),
        "/dev/stdout" => Writer::path("/dev/stdout").unwrap(),
        "link" => {
            let dir = dir();
            symlink("/dev/stdout", dir.path().join("link")).unwrap();
            Writer::path(dir.path().join("link")).unwrap()
        }
        "/proc/self/fd/1" => Writer::path("/proc/self/fd/1").unwrap(),
        _ => return,
    };
    writer.write(b"<ours>").unwrap();
    writer.close().unwrap();
}

#[test]
fn paths_of_standard_output_mean_the_descriptor() {
    for role in ["stdout", "/dev/stdout", "link", "/proc/self/fd/1"] {
        let dir = dir();
        let path = dir.path().join("log");
        fs::write(&path, b"<before>").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        in_child(role, log.try_clone().unwrap());
        log.write_all(b"<after>").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<before>") && text.contains("<ours>") && text.ends_with("<after>"), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(names(dir.path()), ["log"]);

        let (mut reader, writer) = std::io::pipe().unwrap();
        in_child(role, writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.contains("<ours>"), "{text}");
    }
}

#[test]
fn a_file_that_is_to_be_created_replaces_none() {
    for partial in [Partial::Remove, Partial::Keep] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let open = || Writer::builder().existing(Existing::CreateNew).partial(partial).path(&path);
        let mut writer = open().unwrap();
        writer.write(b"new").unwrap();
        if partial == Partial::Remove {
            // Another program creates the file in the meantime.
            fs::write(&path, "other").unwrap();
            assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&path).unwrap(), "other");
        } else {
            writer.close().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        }
        assert_eq!(open().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    }
    for path in ["/dev/stdout", "/dev/null", "/tmp"] {
        let error = Writer::builder().existing(Existing::CreateNew).path(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{path}: {error}");
    }
    let error = Writer::builder().existing(Existing::CreateNew).memory().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}
