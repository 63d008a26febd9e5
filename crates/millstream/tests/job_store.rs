//! Jobs in stores: all parts become visible or none, whichever request of a process is its last, and which answers are lost.

#[path = "shared/http.rs"]
mod http;
#[path = "shared/store.rs"]
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream::job::{self, Job, Part};
use millstream::{Error, ErrorKind, Remote};

use store::{Dialect, Fault, PART, Request, Store};

const LOCK: &str = "out/.millstream-job.lock";
const MANIFEST: &str = "out/_millstream.json";
const SUCCESS: &str = "out/_SUCCESS";

/// The stores in which jobs are possible.
const DIALECTS: [Dialect; 2] = [Dialect::S3, Dialect::Gcs];

const TASKS: u64 = 3;

/// The id of a job that processes join.
const ID: &str = "0123456789abcdef0123456789abcdef";

/// Task 0 writes nothing, and the others write up to four pieces of an upload.
fn text(task: u64) -> String {
    format!("{task:09}\n").repeat((task * (PART / 10 + 1)) as usize)
}

fn write(job: &Job, task: u64) -> Result<Part, Error> {
    let mut part = job.part(task, ".txt")?;
    part.write(text(task).as_bytes())?;
    part.add_records(task * (PART / 10 + 1));
    part.finish()
}

/// Begins a job, and writes its parts, one of them twice. Another attempt does not finish.
fn written(directory: &Remote) -> Result<(Job, Vec<Part>), Error> {
    let job = Job::begin(directory.clone())?;
    let mut failed = job.part(1, ".txt")?;
    failed.write(&[b'x'; 250])?;
    drop(failed);
    write(&job, 2)?;
    let parts = (0..TASKS).map(|task| write(&job, task)).collect::<Result<_, _>>()?;
    Ok((job, parts))
}

fn run(directory: &Remote) -> Result<(), Error> {
    let (job, parts) = written(directory)?;
    job.commit(&parts).map(drop)
}

/// The objects, with their content.
fn objects(store: &Store) -> BTreeMap<String, String> {
    let content = store.content();
    content
        .objects
        .iter()
        .map(|(key, stored)| (key.clone(), String::from_utf8(stored.bytes.clone()).unwrap()))
        .collect()
}

/// The keys of the unfinished uploads.
fn uploads(store: &Store) -> Vec<String> {
    store.content().uploads.values().map(|pending| pending.key.clone()).collect()
}

fn parts_of(store: &Store) -> Vec<String> {
    objects(store).into_iter().filter(|(key, _)| key.contains("/part-")).map(|(_, content)| content).collect()
}

/// Asserts that the store has each part once, and nothing else but the manifest and `_SUCCESS`.
fn assert_complete(store: &Store, directory: &Remote) {
    let parts = job::objects(directory.clone()).unwrap().unwrap();
    let objects = objects(store);
    let key = |part: &Remote| part.url().splitn(4, '/').nth(3).unwrap().to_string();
    let content: Vec<&String> = parts.iter().map(|part| &objects[&key(part)]).collect();
    assert_eq!(content, (0..TASKS).map(text).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert_eq!(objects.len() as u64, TASKS + 2, "{:?}", objects.keys());
    assert_eq!(uploads(store), [""; 0]);
}

/// Asserts that nothing of a job is left, and another one can begin.
fn assert_free(store: &Store, directory: &Remote) {
    assert_eq!(objects(store).into_keys().collect::<Vec<_>>(), [""; 0]);
    assert_eq!(uploads(store), [""; 0]);
    Job::begin(directory.clone()).unwrap().abort().unwrap();
}

#[test]
fn parts_of_successful_attempts_become_visible_together() {
    for dialect in DIALECTS {
        let store = Store::good(dialect);
        let directory = store.remote("out/");
        let (job, parts) = written(&directory).unwrap();
        assert_eq!(job.directory().to_str().unwrap(), store.remote("out").url());
        assert_eq!(objects(&store).into_keys().collect::<Vec<_>>(), [LOCK]);
        let error = job::objects(directory.clone()).unwrap_err();
        assert!(error.to_string().contains("an unfinished job, without _SUCCESS"), "{error}");
        let late = job.part(1, ".txt").unwrap();
        // The process that commits is another one.
        let sent: Vec<Part> = parts.iter().map(|part| Part::from_json(&part.to_json()).unwrap()).collect();
        assert_eq!(sent, parts);
        let driver = Job::from_json(&job.to_json()).unwrap().with_remote(directory.clone()).unwrap();
        assert_eq!(driver, job);
        let manifest = driver.commit(&sent).unwrap();
        assert_complete(&store, &directory);
        assert_eq!(manifest.records(), Some((0..TASKS).map(|task| task * 11).sum()));
        // The same commit again changes nothing; one with other parts is refused.
        assert_eq!(job.commit(&parts).unwrap(), manifest);
        assert_eq!(job.commit(&parts[1..]).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(job::resume(directory.clone()).unwrap(), manifest);
        for error in [late.finish().unwrap_err(), job.part(3, ".txt").err().unwrap()] {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        for error in [
            job.abort().unwrap_err(),
            job::abort(directory.clone()).unwrap_err(),
            Job::begin(directory.clone()).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        }
        assert_complete(&store, &directory);
    }
}

#[test]
fn a_prefix_has_one_job() {
    for dialect in DIALECTS {
        let store = Store::good(dialect);
        let directory = store.remote("out");
        let job = Job::begin(directory.clone()).unwrap();
        let before = store.content().created;
        let error = Job::begin(directory.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains(&format!("found the unfinished job {}", job.id())), "{error}");
        assert!(error.to_string().contains(&format!("`millstream commit abort {}`", directory.url())), "{error}");
        assert_eq!(store.content().created, before, "the second job has written");
        // A neighbour is another directory.
        Job::begin(store.remote("out2")).unwrap().abort().unwrap();
        let part = write(&job, 1).unwrap();
        let late = job.part(2, "").unwrap();
        job.abort().unwrap();
        job.abort().unwrap();
        assert_eq!(late.finish().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(job.commit(&[part]).unwrap_err().kind(), ErrorKind::Closed);
        assert!(!job::abort(directory.clone()).unwrap());
        assert_free(&store, &directory);
        // The driver of an aborted job does not touch the next job.
        let next = Job::begin(directory.clone()).unwrap();
        job.abort().unwrap();
        assert_eq!(job.commit(&[]).unwrap_err().kind(), ErrorKind::Closed);
        let parts: Vec<Part> = (0..TASKS).map(|task| write(&next, task).unwrap()).collect();
        next.commit(&parts).unwrap();
        assert_complete(&store, &directory);
        // Anything else is not replaced, mixed with the parts, or removed.
        let directory = store.remote("other");
        let other = store::Stored { key: "other/a/b".into(), ..Default::default() };
        store.content().objects.insert(other.key.clone(), other);
        let error = Job::begin(directory.clone()).unwrap_err();
        assert!(error.to_string().contains("found \"a/b\", expected an empty directory"), "{error}");
        assert!(!job::abort(directory).unwrap());
        assert!(objects(&store).contains_key("other/a/b"));
    }
}

#[test]
fn two_jobs_that_begin_at_the_same_time() {
    for _ in 0..20 {
        let store = Store::good(Dialect::S3);
        let directory = store.remote("out");
        let begun: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Job::begin(directory.clone()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (begun, refused): (Vec<_>, Vec<_>) = begun.into_iter().partition(Result::is_ok);
        assert_eq!(begun.len(), 1, "{refused:?}");
        assert!(refused.iter().all(|one| one.as_ref().unwrap_err().kind() == ErrorKind::AlreadyExists), "{refused:?}");
        let job = begun.into_iter().next().unwrap().unwrap();
        let parts: Vec<Part> = (0..TASKS).map(|task| write(&job, task).unwrap()).collect();
        job.commit(&parts).unwrap();
        assert_complete(&store, &directory);
    }
}

#[test]
fn what_cannot_have_a_job_is_refused_before_a_request() {
    for url in ["az://container/out", "https://host/out?key=secret"] {
        for error in [
            Job::begin(url).unwrap_err(),
            job::resume(url).unwrap_err(),
            job::abort(url).unwrap_err(),
            job::objects(url).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
    assert_eq!(job::parts("s3://bucket/out").unwrap_err().kind(), ErrorKind::InvalidOption);
    for url in ["s3://", "s3://bucket", "s3://bucket//"] {
        assert_eq!(Job::begin(url).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
    let store = Store::good(Dialect::S3);
    let job = Job::begin(store.remote("out")).unwrap();
    assert_eq!(job.clone().with_remote(store.remote("other")).unwrap_err().kind(), ErrorKind::InvalidOption);
    // A part of a directory, with the id of this job.
    let place = tempfile::tempdir().unwrap();
    let other = Job::begin(place.path()).unwrap();
    let json = write(&other, 1).unwrap().to_json().replace(other.id(), job.id());
    let error = job.commit(&[Part::from_json(&json).unwrap()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    let json = write(&job, 1).unwrap().to_json();
    for (from, to) in [("\"tags\":[", "\"tags\":[],\"x\":["), ("\"write\":\"", "\"write\":\"\\n")] {
        assert_eq!(Part::from_json(&json.replace(from, to)).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}

/// Runs a test for each of these ways, which mostly wait, at the same time.
fn at_the_same_time<T: Sync>(ways: &[T], test: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| ways.iter().for_each(|way| drop(scope.spawn(|| test(way)))));
}

/// A store that refuses the requests of a process that is dead.
struct Mortal {
    store: Store,
    /// The number of requests before the death.
    left: Arc<AtomicUsize>,
}

impl Mortal {
    /// The last request has its effect if `has_effect`, but its answer is lost.
    fn new(dialect: Dialect, has_effect: bool) -> Mortal {
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let counter = left.clone();
        let fault = move |_: &Request| {
            let before = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                usize::MAX => None,
                left => Some(left.saturating_sub(1)),
            });
            match before {
                Err(_) | Ok(2..) => Fault::None,
                Ok(1) if has_effect => Fault::StatusAfter(403),
                _ => Fault::Status(403),
            }
        };
        Mortal { store: Store::new(dialect, fault), left }
    }

    fn remote(&self) -> Remote {
        self.store.remote("out")
    }

    /// Calls a function as a process that dies at request `n`, from 1 on. Returns whether it died.
    fn dies<T>(&self, n: usize, call: impl FnOnce(&Remote) -> Result<T, Error>) -> bool {
        self.left.store(n, Ordering::SeqCst);
        let called = call(&self.remote());
        let is_dead = self.left.swap(usize::MAX, Ordering::SeqCst) == 0;
        assert!(is_dead || called.is_ok(), "{:?}", called.err());
        is_dead
    }
}

#[test]
fn a_driver_that_dies_at_any_request_loses_and_repeats_nothing() {
    let ways = [
        (Dialect::S3, false, false),
        (Dialect::S3, false, true),
        (Dialect::S3, true, false),
        (Dialect::S3, true, true),
        (Dialect::Gcs, true, true),
    ];
    at_the_same_time(&ways, |&(dialect, has_effect, resumes)| {
        let mortal = Mortal::new(dialect, has_effect);
        let (store, directory) = (&mortal.store, mortal.remote());
        let (mut deaths, mut with_manifest) = (0, 0);
        for n in 1.. {
            store.clear();
            if !mortal.dies(n, run) {
                assert_complete(store, &directory);
                break;
            }
            deaths += 1;
            let found = objects(store);
            let has_manifest = found.contains_key(MANIFEST);
            with_manifest += usize::from(has_manifest);
            assert!(has_manifest || parts_of(store).is_empty(), "{n}: visible without a manifest");
            if found.contains_key(SUCCESS) {
                assert_eq!(job::abort(directory.clone()).unwrap_err().kind(), ErrorKind::AlreadyExists);
                job::resume(directory.clone()).unwrap();
                assert_complete(store, &directory);
            } else if has_manifest && resumes {
                let manifest = job::resume(directory.clone()).unwrap();
                assert_complete(store, &directory);
                assert_eq!(job::resume(directory.clone()).unwrap(), manifest);
                assert_complete(store, &directory);
            } else {
                if !has_manifest {
                    assert_eq!(job::resume(directory.clone()).unwrap_err().kind(), ErrorKind::JobIncomplete);
                }
                let is_left = !found.is_empty() || !uploads(store).is_empty();
                assert_eq!(job::abort(directory.clone()).unwrap(), is_left, "{n}");
                assert!(!job::abort(directory.clone()).unwrap());
                assert_free(store, &directory);
            }
        }
        println!("{dialect:?}: {deaths} deaths, {with_manifest} of them after the manifest");
        assert!(deaths > 50 && with_manifest > 10, "{deaths} deaths, {with_manifest} after the manifest");
    });
}

/// Does work that may have been done, by processes that know only its id.
fn repeat(directory: &Remote) -> Result<(), Error> {
    let Some(job) = Job::join(directory.clone(), ID)? else { return job::resume(directory.clone()).map(drop) };
    let mut parts = Vec::new();
    for task in 0..TASKS {
        let joined = Job::join(directory.clone(), ID)?.expect("there is no manifest");
        assert_eq!(joined, job);
        parts.push(write(&joined, task)?);
    }
    job.commit(&parts).map(drop)
}

#[test]
fn work_that_is_repeated_after_its_process_has_died_is_published_once() {
    let ways = [(Dialect::S3, false), (Dialect::S3, true), (Dialect::Gcs, true)];
    at_the_same_time(&ways, |&(dialect, has_effect)| {
        let mortal = Mortal::new(dialect, has_effect);
        let (store, directory) = (&mortal.store, mortal.remote());
        let mut deaths = 0;
        for n in 1.. {
            store.clear();
            let is_last = !mortal.dies(n, repeat);
            deaths += usize::from(!is_last);
            for _ in 0..2 {
                repeat(&directory).unwrap();
                assert_complete(store, &directory);
            }
            if is_last {
                break;
            }
        }
        assert!(deaths > 50, "{deaths} deaths");
    });
}

#[test]
fn processes_that_join_at_the_same_time_have_one_job() {
    for _ in 0..20 {
        let store = Store::good(Dialect::S3);
        let directory = store.remote("out");
        let jobs: Vec<Job> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Job::join(directory.clone(), ID))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap().unwrap()).collect()
        });
        assert!(jobs.iter().all(|job| *job == jobs[0]));
        let parts: Vec<Part> = (0..TASKS).map(|task| write(&jobs[task as usize], task).unwrap()).collect();
        jobs[3].commit(&parts).unwrap();
        assert_complete(&store, &directory);
        assert_eq!(Job::join(directory, ID).unwrap(), None);
    }
}

/// Leaves a job as a driver that died after the manifest and the completion of one part.
fn after_the_manifest(mortal: &Mortal) {
    let (job, parts) = written(&mortal.remote()).unwrap();
    for end in [MANIFEST, "out/part-"] {
        let mut n = 0;
        while !objects(&mortal.store).keys().any(|key| key.starts_with(end)) {
            n += 1;
            mortal.dies(n, |_| job.commit(&parts));
        }
    }
    assert_eq!(parts_of(&mortal.store).len(), 1);
}

#[test]
fn a_repair_that_dies_at_any_request_can_be_repeated() {
    let ways = [(true, false), (true, true), (false, false), (false, true)];
    at_the_same_time(&ways, |&(resumes, has_effect)| {
        let mortal = Mortal::new(Dialect::S3, has_effect);
        let (store, directory) = (&mortal.store, mortal.remote());
        let mut deaths = 0;
        for n in 1.. {
            store.clear();
            after_the_manifest(&mortal);
            let is_dead = match resumes {
                true => mortal.dies(n, |directory| job::resume(directory.clone()).map(drop)),
                false => mortal.dies(n, |directory| job::abort(directory.clone()).map(drop)),
            };
            if resumes {
                job::resume(directory.clone()).unwrap();
                assert_complete(store, &directory);
            } else {
                let is_left = !objects(store).is_empty() || !uploads(store).is_empty();
                if is_left && is_dead && job::resume(directory.clone()).is_ok() {
                    // The removal had not begun.
                    assert_complete(store, &directory);
                    deaths += 1;
                    continue;
                }
                assert_eq!(job::abort(directory.clone()).unwrap(), is_left);
                assert_free(store, &directory);
            }
            if !is_dead {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 8, "{deaths} deaths");
    });
}

#[test]
fn lost_and_wrong_answers_change_nothing() {
    let faults = [
        Fault::LostBefore,
        Fault::LostAfter,
        Fault::CutAnswer,
        Fault::Status(503),
        Fault::StatusAfter(500),
        Fault::StatusAfter(502),
        Fault::ErrorInSuccess,
    ];
    let ways: Vec<_> = DIALECTS.into_iter().flat_map(|dialect| faults.map(|fault| (dialect, fault))).collect();
    at_the_same_time(&ways, |&(dialect, fault)| {
        let chosen = Arc::new(AtomicUsize::new(usize::MAX));
        let number = chosen.clone();
        // An error in a success is possible for the requests that complete an upload.
        let store = Store::new(dialect, move |request| match request.number == number.load(Ordering::SeqCst) {
            true if fault != Fault::ErrorInSuccess || request.completes() => fault,
            _ => Fault::None,
        });
        let directory = store.remote("out");
        for n in 0.. {
            store.clear();
            let first = store.requests.load(Ordering::SeqCst);
            chosen.store(first + n, Ordering::SeqCst);
            run(&directory).unwrap_or_else(|error| panic!("{dialect:?} {fault:?} {n}: {error}"));
            if store.requests.load(Ordering::SeqCst) <= first + n {
                break;
            }
            assert_complete(&store, &directory);
        }
        let faults = store.faults.load(Ordering::SeqCst);
        let least = if fault == Fault::ErrorInSuccess { 5 } else { 50 };
        println!("{dialect:?} {fault:?}: {faults}");
        assert!(faults >= least, "{dialect:?} {fault:?}: {faults}");
    });
}

#[test]
fn a_job_that_is_committed_and_aborted_at_the_same_time_is_complete_or_removed() {
    let (mut completed, mut removed) = (0, 0);
    for round in 0..60 {
        let store = Store::good(Dialect::S3);
        let directory = store.remote("out");
        let (job, parts) = written(&directory).unwrap();
        let (commit, abort) = std::thread::scope(|scope| {
            let abort = scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(round * 200));
                job::abort(directory.clone())
            });
            (job.commit(&parts), abort.join().unwrap())
        });
        match (commit, abort) {
            (Ok(_), Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
                job::resume(directory.clone()).unwrap();
                assert_complete(&store, &directory);
                completed += 1;
            }
            (Err(_), Ok(true)) => {
                assert_free(&store, &directory);
                removed += 1;
            }
            (commit, abort) => panic!("{round}: {commit:?}, {abort:?}"),
        }
    }
    println!("{completed} were completed, {removed} removed");
    assert!(removed > 0, "{completed} {removed}");
}

#[test]
fn a_missing_or_changed_part_is_an_error() {
    let mortal = Mortal::new(Dialect::S3, false);
    let (store, directory) = (&mortal.store, mortal.remote());
    let (job, parts) = written(&directory).unwrap();
    // Another program has removed an upload.
    let key = format!("out/{}", parts[1].name());
    let pending = {
        let mut content = store.content();
        let id = content.uploads.iter().find(|(_, pending)| pending.key == key).unwrap().0.clone();
        content.uploads.remove_entry(&id).unwrap()
    };
    let error = job.commit(&parts).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::JobIncomplete);
    assert!(error.to_string().contains("found no object of the part of task 1"), "{error}");
    assert_eq!(objects(store).into_keys().collect::<Vec<_>>(), [LOCK]);
    store.content().uploads.insert(pending.0, pending.1);
    job.commit(&parts).unwrap();
    assert_complete(store, &directory);
    // Visible parts, and a manifest.
    let stored = store.content().objects.remove(&key).unwrap();
    assert!(job::objects(directory.clone()).unwrap_err().to_string().contains("found no object of the part of task 1"));
    store.content().objects.insert(key, store::Stored { bytes: b"x".to_vec(), ..stored });
    assert!(job::objects(directory.clone()).unwrap_err().to_string().contains("found 1 bytes in the part of task 1"));
    let manifest = objects(store)[MANIFEST].clone();
    for (from, to) in [("\"success\":{\"upload\":\"", "\"success\":{\"upload\":\"x"), ("\"size\":110", "\"size\":111")]
    {
        let damaged = manifest.replace(from, to);
        assert_ne!(damaged, manifest);
        store.content().objects.get_mut(MANIFEST).unwrap().bytes = damaged.into_bytes();
        let error = job::objects(directory.clone()).unwrap_err();
        assert!(
            error.to_string().contains("_millstream.json: job incomplete: found a manifest that is not valid"),
            "{error}"
        );
    }
}
