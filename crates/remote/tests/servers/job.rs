//! Jobs in a store: what the tests of the library do with a store of their own, with a real one.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream::job::{self, Job, Part};
use millstream::remote::{Objects, Uploads};
use millstream::{Error, ErrorKind, Remote};

use crate::read::{content, expect};
use crate::s3::moto;
use crate::store::{Kind, Store, with_store};
use crate::versitygw::versitygw;

/// The length of the longest part: two pieces of the smallest size that stores accept, and one of one byte.
const LONG: usize = 2 * (5 << 20) + 1;

/// The content of tasks 0, 1, …: nothing, a short one, and one of several pieces.
fn contents() -> [Vec<u8>; 3] {
    [Vec::new(), content(1, 1000), content(2, LONG)]
}

fn directory(store: &Store) -> Remote {
    store.url("some/out").part_size(5 << 20)
}

fn begin(store: &Store) -> Job {
    Job::begin(directory(store)).unwrap()
}

fn write(job: &Job, task: usize) -> Result<Part, Error> {
    let mut part = job.part(task as u64, ".bin")?;
    part.write(&contents()[task])?;
    part.finish()
}

fn keys(store: &Store) -> Vec<String> {
    Objects::new(store.url("some/")).unwrap().map(|object| object.unwrap().url).collect()
}

fn uploads(store: &Store) -> Vec<String> {
    Uploads::new(store.url("some/")).unwrap().map(|upload| upload.unwrap().url).collect()
}

/// Asserts that each part is readable one time, and that nothing else is left of the job.
fn assert_complete(store: &Store) {
    let parts = job::objects("s3://bucket/some/out").unwrap().unwrap();
    assert_eq!(parts.len(), contents().len());
    parts.into_iter().zip(contents()).for_each(|(part, content)| expect(part, &content));
    assert_eq!((keys(store).len(), uploads(store)), (contents().len() + 2, vec![]));
}

fn remove_all(store: &Store) {
    keys(store).iter().for_each(|url| store.remove(url.strip_prefix("s3://bucket/").unwrap()));
}

#[test]
fn jobs_in_versitygw() {
    with_store("job::jobs_in_versitygw", Kind::S3, versitygw, &[], jobs);
}

#[test]
fn jobs_in_moto() {
    with_store("job::jobs_in_moto", Kind::S3, moto, &[], jobs);
}

fn jobs(store: &Store) {
    complete(store);
    killed_before_the_manifest(store);
    killed_while_it_commits(store);
    missing_bucket();
}

fn complete(store: &Store) {
    let job = begin(store);
    let error = Job::begin(directory(store)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("found the unfinished job"), "{error}");
    // A task that is attempted twice, and one that fails.
    write(&job, 2).unwrap();
    let mut failed = job.part(1, ".bin").unwrap();
    failed.write(&content(3, LONG)).unwrap();
    drop(failed);
    let parts: Vec<Part> = (0..3).map(|task| Part::from_json(&write(&job, task).unwrap().to_json()).unwrap()).collect();
    assert_eq!(keys(store), [store.address_of("some/out/.millstream-job.lock")]);
    // A process with the settings of its environment.
    let driver = Job::from_json(&job.to_json()).unwrap();
    let manifest = driver.commit(&parts).unwrap();
    assert_complete(store);
    assert_eq!(job.commit(&parts).unwrap(), manifest);
    assert_eq!(job::resume("s3://bucket/some/out").unwrap(), manifest);
    for error in [job::abort("s3://bucket/some/out").unwrap_err(), Job::begin(directory(store)).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    }
    assert_complete(store);
    remove_all(store);
}

fn killed_before_the_manifest(store: &Store) {
    let job = begin(store);
    let parts: Vec<Part> = (0..3).map(|task| write(&job, task).unwrap()).collect();
    // A task that is killed leaves its upload.
    std::mem::forget(job.part(1, ".bin").unwrap());
    store.begin(&format!("some/out/{}", parts[1].name()));
    assert_eq!(keys(store).len(), 1);
    assert_eq!(job::resume("s3://bucket/some/out").unwrap_err().kind(), ErrorKind::JobIncomplete);
    assert!(job::abort("s3://bucket/some/out").unwrap());
    assert_eq!((keys(store), uploads(store)), (vec![], vec![]));
    assert!(!job::abort("s3://bucket/some/out").unwrap());
    // The driver was not killed, and continues.
    assert_eq!(job.commit(&parts).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(write(&job, 1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!((keys(store), uploads(store)), (vec![], vec![]));
    begin(store).abort().unwrap();
}

/// Runs in a separate process: a job that is killed while it is committed.
#[test]
#[ignore = "run by the tests of jobs"]
fn driver() {
    let job = Job::begin("s3://bucket/some/out").unwrap();
    let parts: Vec<Part> = (0..3).map(|task| write(&job, task).unwrap()).collect();
    println!("\ncommits");
    job.commit(&parts).unwrap();
}

/// Runs the driver, and kills it this long after it has begun to commit. Returns whether it was killed.
fn killed(delay: Duration) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["job::driver", "--exact", "--ignored", "--nocapture"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "commits"));
    std::thread::sleep(delay);
    // It may have ended.
    let _ = child.kill();
    lines.for_each(drop);
    !child.wait().unwrap().success()
}

fn killed_while_it_commits(store: &Store) {
    let (mut before, mut after, mut step) = (0, 0, 0);
    // Each second job with a manifest is removed.
    while before == 0 || after < 4 {
        let was_killed = killed(Duration::from_millis(step));
        step = if was_killed { step + 1 } else { 0 };
        let keys_left = keys(store);
        let has = |name: &str| keys_left.iter().any(|key| key.ends_with(name));
        if has("_SUCCESS") {
            job::resume("s3://bucket/some/out").unwrap();
            assert_complete(store);
            remove_all(store);
        } else if has("_millstream.json") && after % 2 == 0 {
            after += 1;
            let manifest = job::resume("s3://bucket/some/out").unwrap();
            assert_complete(store);
            assert_eq!(job::resume("s3://bucket/some/out").unwrap(), manifest);
            remove_all(store);
        } else {
            match has("_millstream.json") {
                true => after += 1,
                false => {
                    before += 1;
                    assert!(!has(".bin"), "visible without a manifest: {keys_left:?}");
                }
            }
            assert!(job::abort("s3://bucket/some/out").unwrap());
            assert_eq!((keys(store), uploads(store)), (vec![], vec![]));
        }
    }
    println!("{before} drivers were killed before the manifest, {after} after it");
}

fn missing_bucket() {
    let error = Job::begin("s3://other-bucket/out").unwrap_err();
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
}
