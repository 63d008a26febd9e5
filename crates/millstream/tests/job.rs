//! Jobs: all parts become visible or none, whatever is killed and when.
//!
//! If strace is missing or not allowed, the test that kills the driver at each system call prints that and passes; in CI
//! it fails.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millstream::ErrorKind;
use millstream::job::{self, Job, Part};

mod skip;
mod strace;

const LOCK: &str = ".millstream-job.lock";
const MANIFEST: &str = "_millstream.json";

fn text(task: u64) -> String {
    format!("the part of task {task}\n").repeat(task as usize * 1000)
}

fn write(job: &Job, task: u64) -> Part {
    let mut part = job.part(task, ".txt").unwrap();
    part.write(text(task).as_bytes()).unwrap();
    part.add_records(task * 1000);
    part.finish().unwrap()
}

/// The files in a directory, with their content.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let files = names.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap())).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Asserts that a directory contains each part once, and nothing else but the manifest and `_SUCCESS`.
fn assert_complete(directory: &Path, tasks: u64) {
    let paths = job::parts(directory).unwrap().unwrap();
    let content: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(content, (0..tasks).map(text).collect::<Vec<_>>());
    assert_eq!(names(directory).len() as u64, tasks + 2, "{:?}", names(directory));
}

/// Asserts that a directory is as before the job: that nothing is left, and another job can begin.
fn assert_free(directory: &Path) {
    assert_eq!(names(directory), [""; 0]);
    Job::begin(directory).unwrap().abort().unwrap();
}

fn begun() -> (tempfile::TempDir, PathBuf, Job) {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("some/out");
    let job = Job::begin(&out).unwrap();
    (place, out, job)
}

#[test]
fn parts_of_successful_attempts_become_visible_together() {
    let (_place, out, job) = begun();
    // Attempts that fail, or that succeed twice.
    drop(job.part(0, ".txt").unwrap());
    let discarded = write(&job, 2);
    let parts: Vec<Part> = (0..3).rev().map(|task| write(&job, task)).collect();
    let late = job.part(1, ".txt").unwrap();
    assert!(files(&out).keys().all(|name| name.starts_with('.')), "{:?}", files(&out));
    let sent: Vec<Part> = parts.iter().map(|part| Part::from_json(&part.to_json()).unwrap()).collect();
    assert_eq!(sent, parts);
    let manifest = Job::from_json(&job.to_json()).unwrap().commit(&sent).unwrap();
    assert_complete(&out, 3);
    assert_eq!(manifest.records(), Some(3000));
    assert_eq!(manifest.size(), (text(1).len() + text(2).len()) as u64);
    // The same commit again changes nothing; one with other parts is refused.
    assert_eq!(job.commit(&parts).unwrap(), manifest);
    let other = [parts[1].clone(), parts[2].clone(), discarded];
    assert_eq!(job.commit(&other).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(job::resume(&out).unwrap(), manifest);
    for error in [late.finish().unwrap_err(), job.part(3, ".txt").err().unwrap()] {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    for error in [job.abort().unwrap_err(), job::abort(&out).unwrap_err(), Job::begin(&out).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    }
    assert_complete(&out, 3);
}

#[test]
fn a_job_without_parts_is_complete() {
    let (_place, out, job) = begun();
    assert_eq!(job.commit(&[]).unwrap().records(), Some(0));
    assert_complete(&out, 0);
}

#[test]
fn an_aborted_job_leaves_nothing() {
    let (_place, out, job) = begun();
    let part = write(&job, 1);
    let unfinished = job.part(2, "").unwrap();
    job.abort().unwrap();
    assert_eq!(unfinished.finish().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(job.commit(&[part]).unwrap_err().kind(), ErrorKind::Closed);
    job.abort().unwrap();
    assert!(!job::abort(&out).unwrap());
    assert_free(&out);
    // The driver of an aborted job does not touch the next job of the directory.
    let next = Job::begin(&out).unwrap();
    job.abort().unwrap();
    assert_eq!(job.commit(&[]).unwrap_err().kind(), ErrorKind::Closed);
    next.commit(&[write(&next, 0)]).unwrap();
    assert_complete(&out, 1);
}

/// The id of a job that processes join.
const ID: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn processes_that_join_have_one_job() {
    for _ in 0..20 {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let jobs: Vec<Job> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Job::join(&out, ID))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap().unwrap()).collect()
        });
        assert!(jobs.iter().all(|job| *job == jobs[0]));
        let parts: Vec<Part> = (0..3).map(|task| write(&jobs[task as usize], task)).collect();
        jobs[3].commit(&parts).unwrap();
        assert_complete(&out, 3);
        assert_eq!(Job::join(&out, ID).unwrap(), None);
    }
}

#[test]
fn a_job_is_joined_by_its_id() {
    let (_place, out, job) = begun();
    for (id, kind) in [("x", ErrorKind::InvalidOption), (ID, ErrorKind::AlreadyExists)] {
        assert_eq!(Job::join(&out, id).unwrap_err().kind(), kind);
    }
    assert_eq!(Job::join(&out, job.id()).unwrap(), Some(job.clone()));
    job.abort().unwrap();
    // An attempt to complete it that fails after the manifest, and the same work again.
    let job = Job::join(&out, ID).unwrap().unwrap();
    let parts = [write(&job, 0), write(&job, 1)];
    let blocked = out.join(parts[1].name());
    fs::create_dir(&blocked).unwrap();
    job.commit(&parts).unwrap_err();
    assert_eq!(Job::join(&out, ID).unwrap(), None);
    fs::remove_dir(&blocked).unwrap();
    job::resume(&out).unwrap();
    assert_complete(&out, 2);
    // What is not of a job.
    let other = out.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "").unwrap();
    assert_eq!(Job::join(&other, ID).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(names(&other), ["file"]);
}

#[test]
fn a_directory_has_one_job() {
    let (place, out, job) = begun();
    let error = Job::begin(&out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains(&format!("found the unfinished job {}", job.id())), "{error}");
    assert!(error.to_string().contains(&format!("`millstream commit abort {}`", out.display())), "{error}");
    // The lock of a process that was killed before it had written its id.
    job.abort().unwrap();
    fs::write(out.join(LOCK), "").unwrap();
    assert_eq!(Job::begin(&out).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(job::abort(&out).unwrap());
    assert_free(&out);
    // A staging directory of which the lock was lost.
    let job = Job::begin(&out).unwrap();
    fs::remove_file(out.join(LOCK)).unwrap();
    assert_eq!(Job::begin(&out).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(job::abort(&out).unwrap());
    assert_eq!(job.commit(&[]).unwrap_err().kind(), ErrorKind::Closed);
    assert_free(&out);
    // Anything else is not replaced, mixed with the parts, or removed.
    fs::write(out.join("other"), "").unwrap();
    let error = Job::begin(&out).unwrap_err();
    assert!(error.to_string().contains("found \"other\", expected an empty directory"), "{error}");
    assert!(!job::abort(&out).unwrap());
    assert_eq!(names(&out), ["other"]);
    let error = Job::begin(out.join("other")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenFailed);
    for error in [
        Job::begin("https://host/out?key=secret").unwrap_err(),
        job::resume("az://container/out").unwrap_err(),
        job::abort("AZ://container/out").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    for missing in [job::resume(place.path().join("no")).unwrap_err(), job::abort(place.path().join("no")).unwrap_err()]
    {
        assert_eq!(missing.kind(), ErrorKind::OpenFailed);
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let (_place, out, job) = begun();
    let (_other_place, _, other) = begun();
    for extension in ["csv", "./a", ".a/b", ". b", &format!(".{}", "x".repeat(40))] {
        assert_eq!(job.part(0, extension).err().unwrap().kind(), ErrorKind::InvalidOption);
    }
    let parts = [write(&job, 0), write(&job, 1)];
    let twice = [parts[0].clone(), write(&job, 0)];
    let error = job.commit(&twice).unwrap_err();
    assert!(error.to_string().contains("found two parts of task 0"), "{error}");
    assert_eq!(job.commit(&[write(&other, 0)]).unwrap_err().kind(), ErrorKind::InvalidOption);
    for json in [
        "",
        "{}",
        &job.to_json(),
        &parts[0].to_json().replace(".txt", "/../x"),
        &parts[0].to_json().replace(job.id(), "x"),
    ] {
        assert_eq!(Part::from_json(json).unwrap_err().kind(), ErrorKind::InvalidOption, "{json}");
    }
    let newer = parts[0].to_json().replace("\"version\":1", "\"version\":2");
    assert_eq!(Part::from_json(&newer).unwrap_err().kind(), ErrorKind::Unsupported);
    // A part that is missing or has another size.
    let staging = out.join(format!(".millstream-job-{}", job.id()));
    let staged = fs::read_dir(&staging).unwrap().map(|entry| entry.unwrap().path());
    let staged = staged.into_iter().find(|path| path.metadata().unwrap().len() > 0).unwrap();
    fs::write(&staged, "changed").unwrap();
    let error = job.commit(&parts).unwrap_err();
    assert!(
        error.to_string().contains("job incomplete: found 7 bytes in the part of task 1, expected 19000"),
        "{error}"
    );
    fs::remove_file(&staged).unwrap();
    let error = job.commit(&parts).unwrap_err();
    assert!(error.to_string().contains("found no file of the part of task 1"), "{error}");
    assert!(!out.join(MANIFEST).exists());
    job.abort().unwrap();
    assert_free(&out);
}

#[test]
fn a_job_that_is_committed_and_aborted_at_the_same_time_is_complete_or_removed() {
    for round in 0..50 {
        let (_place, out, job) = begun();
        let parts: Vec<Part> = (0..3).map(|task| write(&job, task)).collect();
        let start = std::sync::Barrier::new(2);
        let (commit, abort) = std::thread::scope(|scope| {
            let abort = scope.spawn(|| {
                start.wait();
                (0..round % 10).for_each(|_| std::thread::yield_now());
                job::abort(&out)
            });
            start.wait();
            (job.commit(&parts), abort.join().unwrap())
        });
        match (commit, abort) {
            (Ok(_), Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
                job::resume(&out).unwrap();
                assert_complete(&out, 3);
            }
            (Err(_), Ok(true)) => assert_free(&out),
            (commit, abort) => panic!("{commit:?}, {abort:?}"),
        }
    }
}

/// Leaves a job as a driver that is killed after the manifest: the part of task 0 is visible, that of task 1 is not.
fn after_the_manifest() -> (tempfile::TempDir, PathBuf) {
    let (place, out, job) = begun();
    let parts = [write(&job, 0), write(&job, 1)];
    let staging = out.join(format!(".millstream-job-{}", job.id()));
    // The move of task 1 fails, because its name is that of a directory.
    let blocked = out.join(parts[1].name());
    fs::create_dir(&blocked).unwrap();
    let error = job.commit(&parts).unwrap_err();
    assert!(error.to_string().contains("commit it again, complete it with `millstream commit resume "), "{error}");
    fs::remove_dir(&blocked).unwrap();
    assert!(out.join(MANIFEST).exists() && out.join(parts[0].name()).exists() && staging.exists());
    (place, out)
}

#[test]
fn a_job_with_a_manifest_is_resumed_or_aborted() {
    let (_place, out) = after_the_manifest();
    let error = job::parts(&out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::JobIncomplete);
    assert!(error.to_string().contains(&format!("`millstream commit resume {}`", out.display())), "{error}");
    let manifest = job::resume(&out).unwrap();
    assert_complete(&out, 2);
    assert_eq!(job::resume(&out).unwrap(), manifest);
    let (_place, out) = after_the_manifest();
    assert!(job::abort(&out).unwrap());
    assert!(!job::abort(&out).unwrap());
    assert_free(&out);
}

#[test]
fn a_missing_or_changed_part_is_an_error_before_anything_is_moved() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("found no file of the part of task 1", |path| fs::remove_file(path).unwrap()),
        ("found 1 bytes in the part of task 1, expected 19000 bytes", |path| fs::write(path, "x").unwrap()),
        ("found the hash blake3:", |path| fs::write(path, text(1).replace("of", "Of")).unwrap()),
    ];
    for (expected, damage) in damages {
        let (_place, out) = after_the_manifest();
        let staging = names(&out).into_iter().find(|name| name.starts_with(".millstream-job-")).unwrap();
        let staged = fs::read_dir(out.join(staging)).unwrap().map(|entry| entry.unwrap().path());
        damage(&staged.into_iter().find(|path| path.metadata().unwrap().len() > 0).unwrap());
        let before = names(&out);
        let error = job::resume(&out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::JobIncomplete);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(names(&out), before);
        assert!(job::abort(&out).unwrap());
        assert_free(&out);
    }
    // A visible part of a complete job.
    let (_place, out) = after_the_manifest();
    let manifest = job::resume(&out).unwrap();
    let visible = out.join(manifest.parts()[1].name());
    fs::write(out.join("other.txt"), "").unwrap();
    assert_eq!(job::parts(&out).unwrap().unwrap().len(), 2);
    fs::write(&visible, "").unwrap();
    assert!(job::parts(&out).unwrap_err().to_string().contains("found 0 bytes in the part of task 1"));
    fs::remove_file(&visible).unwrap();
    assert!(job::parts(&out).unwrap_err().to_string().contains("found no file of the part of task 1"));
    assert_eq!(job::resume(&out).unwrap_err().kind(), ErrorKind::JobIncomplete);
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let (_place, out) = after_the_manifest();
    let path = out.join(MANIFEST);
    let whole = fs::read_to_string(&path).unwrap();
    let line = whole.lines().find(|line| line.contains("\"task\":0,")).unwrap();
    let damaged = [
        String::new(),
        whole[..whole.len() / 2].to_string(),
        whole.replace("19000", "19001"),
        // It would lose a part.
        whole.replace(line, ""),
        whole.replace(line, &line.replace(',', " ,")).replace("\"version\":1", "\"version\":1,\"more\":1"),
        whole.replace("part-0", "../part-0"),
    ];
    for text in damaged {
        fs::write(&path, &text).unwrap();
        let error = job::resume(&out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::JobIncomplete, "{text}");
        assert!(
            error.to_string().contains("_millstream.json: job incomplete: found a manifest that is not valid"),
            "{error}"
        );
    }
    fs::write(&path, whole.replace("\"version\":1", "\"version\":2")).unwrap();
    let error = job::resume(&out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("found a manifest of format version 2, expected version 1 to 1"), "{error}");
    // The lock shows which parts to remove.
    assert!(job::abort(&out).unwrap());
    assert_free(&out);
    // Without a lock, nothing is removed.
    let (_place, out) = after_the_manifest();
    fs::remove_file(out.join(LOCK)).unwrap();
    fs::write(out.join(MANIFEST), "{").unwrap();
    let before = names(&out);
    assert_eq!(job::abort(&out).unwrap_err().kind(), ErrorKind::JobIncomplete);
    assert_eq!(names(&out), before);
}

#[test]
fn other_directories_have_no_job() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(job::parts(place.path()).unwrap(), None);
    assert_eq!(job::parts(place.path().join("missing")).unwrap(), None);
    fs::write(place.path().join("_SUCCESS"), "").unwrap();
    assert_eq!(job::parts(place.path()).unwrap(), None);
    let error = job::resume(place.path()).unwrap_err();
    assert!(error.to_string().contains("found no job"), "{error}");
}

/// Runs in a separate process: a job of three tasks, which strace kills.
#[test]
#[ignore = "run by the next test under strace"]
fn driver() {
    let job = Job::begin(std::env::var_os("JOB_DIRECTORY").unwrap()).unwrap();
    let parts: Vec<Part> = (0..3).map(|task| write(&job, task)).collect();
    write(&job, 1);
    job.commit(&parts).unwrap();
}

/// Runs in a separate process: resumes or aborts a job, which strace kills.
#[test]
#[ignore = "run by the next test under strace"]
fn repair() {
    let directory = std::env::var_os("JOB_DIRECTORY").unwrap();
    match std::env::var("JOB_ACTION").unwrap().as_str() {
        "resume" => drop(job::resume(directory).unwrap()),
        _ => assert!(job::abort(directory).unwrap()),
    }
}

/// The system calls that change directories or wait for the disk.
const CALLS: [&str; 7] = ["mkdir", "rename", "linkat", "unlink", "unlinkat", "fsync", "fdatasync"];

/// Runs one of these functions, and kills it at the `n`th of these system calls. Returns whether it was killed.
fn killed(function: &str, action: &str, directory: &Path, call: &str, n: usize) -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    command.arg("-e").arg(format!("inject={call}:signal=SIGKILL:when={n}"));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", function, "--ignored", "--test-threads=1"]);
    command.env("JOB_DIRECTORY", directory).env("JOB_ACTION", action).stdout(Stdio::null());
    let ended = command.status().unwrap();
    assert!(ended.success() || ended.signal() == Some(9), "{function} {call} {n}: {ended}");
    !ended.success()
}

/// Ends a job that was killed: completes it if it has a manifest and `resumes`, and otherwise removes it.
fn end(directory: &Path, resumes: bool) {
    if directory.join(MANIFEST).exists() && resumes {
        job::resume(directory).unwrap();
        assert_complete(directory, 3);
    } else if job::parts(directory).is_ok_and(|parts| parts.is_some()) {
        // Killed after `_SUCCESS`.
        assert_eq!(job::abort(directory).unwrap_err().kind(), ErrorKind::AlreadyExists);
        job::resume(directory).unwrap();
        assert_complete(directory, 3);
    } else {
        let has_manifest = directory.join(MANIFEST).exists();
        let visible = files(directory).keys().filter(|name| name.starts_with("part-")).count();
        assert!(has_manifest || visible == 0, "{visible} parts are visible without a manifest");
        if !has_manifest && job::parts(directory).is_err() {
            assert_eq!(job::resume(directory).unwrap_err().kind(), ErrorKind::JobIncomplete);
        }
        job::abort(directory).unwrap();
        assert_free(directory);
    }
}

#[test]
fn a_driver_killed_at_any_step_loses_and_repeats_nothing() {
    if strace::is_missing() {
        return;
    }
    for resumes in [true, false] {
        let (mut kills, mut with_manifest) = (0, 0);
        for call in CALLS {
            for n in 1.. {
                let place = tempfile::tempdir().unwrap();
                let out = place.path().join("out");
                if !killed("driver", "", &out, call, n) {
                    assert_complete(&out, 3);
                    break;
                }
                kills += 1;
                if out.exists() {
                    with_manifest += usize::from(out.join(MANIFEST).exists());
                    end(&out, resumes);
                }
            }
        }
        assert!(kills > 30 && with_manifest > 10, "{kills} kills, {with_manifest} after the manifest");
    }
}

#[test]
fn a_repair_killed_at_any_step_can_be_repeated() {
    if strace::is_missing() {
        return;
    }
    for action in ["resume", "abort"] {
        let mut kills = 0;
        for call in CALLS {
            for n in 1.. {
                let (_place, out) = after_the_manifest();
                let is_killed = killed("repair", action, &out, call, n);
                if action == "resume" {
                    job::resume(&out).unwrap();
                    assert_complete(&out, 2);
                } else {
                    let is_left = !names(&out).is_empty();
                    assert_eq!(job::abort(&out).unwrap(), is_left);
                    assert_free(&out);
                }
                if !is_killed {
                    break;
                }
                kills += 1;
            }
        }
        assert!(kills > 8, "{action}: {kills} kills");
    }
}
