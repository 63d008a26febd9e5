//! Jobs of a directory. `crates/millstream/tests/job.rs` has the jobs that are killed at each step.

use std::fs;
use std::process::{Command, Stdio};

use millstream::job::{Job, Part};

use crate::place::{Place, Words};
use crate::versitygw::{KEY, REGION, SECRET, versitygw};

/// A job with two parts, of which the second one cannot be moved: the manifest is written.
fn begun(place: &Place, records: bool) -> (Job, Vec<Part>) {
    let job = Job::begin(place.path("out")).unwrap();
    let parts = [0, 1].map(|task| {
        let mut part = job.part(task, ".txt").unwrap();
        part.write(b"one\ntwo\n").unwrap();
        if records {
            part.add_records(2);
        }
        part.finish().unwrap()
    });
    fs::create_dir(place.path("out").join(parts[1].name())).unwrap();
    job.commit(&parts).unwrap_err();
    fs::remove_dir(place.path("out").join(parts[1].name())).unwrap();
    (job, parts.into())
}

#[test]
fn a_job_is_completed() {
    for (records, expected) in [(true, ", records: 4"), (false, "")] {
        let place = Place::new();
        let (_, parts) = begun(&place, records);
        for _ in 0..2 {
            place.words("commit resume out").succeeds().prints(format!("complete: parts: 2, bytes: 16{expected}\n"));
        }
        place.words("commit abort out").fails().complains_of(&["already exists: found a complete job, with _SUCCESS"]);
        let mut names: Vec<String> = parts.iter().map(Part::name).collect();
        names.extend(["_SUCCESS", "_millstream.json"].map(str::to_string));
        names.sort();
        let mut found: Vec<String> = fs::read_dir(place.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, names);
    }
}

#[test]
fn a_job_is_removed() {
    let place = Place::new();
    begun(&place, true);
    place.words("commit abort out").succeeds().prints("removed the job\n");
    place.words("commit abort out").succeeds().prints("no job\n");
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
    let job = Job::begin(place.path("out")).unwrap();
    let seen = place.words("commit resume out").fails();
    seen.complains_of(&["found a job without a manifest", "`millstream commit abort ", "start the job again"]);
    place.words("commit abort out").succeeds();
    assert!(job.commit(&[]).is_err());
}

#[test]
fn what_is_not_the_directory_of_a_job() {
    let place = Place::new().file("a", "one\n");
    place.words("commit resume missing").fails().complains_of(&["missing: open failed"]);
    place.words("commit abort missing").fails().complains_of(&["missing: open failed"]);
    place.words("commit abort a").fails();
    fs::create_dir(place.path("empty")).unwrap();
    place.words("commit resume empty").fails().complains_of(&["empty: job incomplete: found no job"]);
    for words in ["commit resume az://container/out", "commit abort az://container/out"] {
        let expected = "az://container/out: unsupported: found an object of Azure that should appear later";
        place.words(words).fails().complains_of(&[expected]);
    }
    place.words("commit").gets_refused();
    place.words("commit resume").gets_refused().complains_of(&["DIR"]);
}

#[test]
fn sources_are_the_parts_of_complete_jobs() {
    let place = Place::new().file("a", "zero\n");
    begun(&place, true);
    for words in ["run out", "run out/*.txt", "run a */part*", "convert out --from lines -o a.csv"] {
        // `convert` is a part of some builds only.
        if words.starts_with("run") || cfg!(feature = "parquet") {
            let expected = ["out: job incomplete: found an unfinished job", "`millstream commit resume out`"];
            place.words(words).fails().complains_of(&expected);
        }
    }
    place.words("commit resume out").succeeds();
    fs::write(place.path("out/part-x.txt"), "of another program\n").unwrap();
    place.words("run a out").succeeds().prints("zero\none\ntwo\none\ntwo\n");
    place.words("run out/*.txt").succeeds().prints("one\ntwo\none\ntwo\nof another program\n");
    Job::begin(place.path("empty")).unwrap().commit(&[]).unwrap();
    place.words("run empty").fails().complains_of(&["empty: open failed: found no match"]);
    place.words("run --allow-empty empty").succeeds().prints("");
}

/// Runs in a separate process: a job in a store, which is committed if the variable `COMMITS` exists.
#[test]
#[ignore = "run by the next test"]
fn driver() {
    let job = Job::begin("s3://bucket/out").unwrap();
    let parts = ["one\ntwo\n", "", "three\n"].iter().zip(0..).map(|(text, task)| {
        let mut part = job.part(task, ".txt").unwrap();
        part.write(text.as_bytes()).unwrap();
        part.finish().unwrap()
    });
    let parts: Vec<Part> = parts.collect();
    if std::env::var_os("COMMITS").is_some() {
        job.commit(&parts).unwrap();
    }
}

#[test]
fn a_job_in_a_store_is_completed_or_removed() {
    let Some(server) = versitygw() else { return };
    let bucket = server.path("objects").join("bucket");
    fs::create_dir(&bucket).unwrap();
    let variables = [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_REGION", REGION.into()),
        ("AWS_ACCESS_KEY_ID", KEY.into()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
    ];
    let drive = |commits: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["commit::driver", "--exact", "--ignored"]).stdout(Stdio::null()).envs(variables.clone());
        if commits {
            command.env("COMMITS", "");
        }
        assert!(command.status().unwrap().success());
    };
    let place = Place::new();
    let stored = |words: Words| variables.iter().fold(words, |words, (name, value)| words.env(name, value));
    let run = |words: &str| stored(place.words(words));
    run("commit abort s3://bucket/out").succeeds().prints("no job\n");
    run("commit resume s3://bucket/out").fails().complains_of(&["s3://bucket/out: job incomplete: found no job"]);
    // The driver ends before the manifest.
    drive(false);
    assert!(!run("uploads ls s3://bucket/out/").succeeds().stdout.is_empty());
    run("commit resume s3://bucket/out").fails().complains_of(&[
        "found a job without a manifest",
        "`millstream commit abort s3://bucket/out`",
        "start the job again",
    ]);
    run("run s3://bucket/out/").fails().complains_of(&["s3://bucket/out: job incomplete: found an unfinished job"]);
    run("commit abort s3://bucket/out").succeeds().prints("removed the job\n");
    run("commit abort s3://bucket/out").succeeds().prints("no job\n");
    run("uploads ls s3://bucket/").succeeds().prints("");
    assert_eq!(fs::read_dir(bucket.join("out")).map_or(0, Iterator::count), 0);
    // A complete job.
    drive(true);
    for _ in 0..2 {
        run("commit resume s3://bucket/out/").succeeds().prints("complete: parts: 3, bytes: 14\n");
    }
    run("commit abort s3://bucket/out").fails().complains_of(&["already exists: found a complete job, with _SUCCESS"]);
    run("uploads ls s3://bucket/").succeeds().prints("");
    for words in ["run s3://bucket/out/", "run s3://bucket/out/*.txt"] {
        run(words).succeeds().prints("one\ntwo\nthree\n");
    }
    // As if the job were not complete.
    fs::remove_file(bucket.join("out/_SUCCESS")).unwrap();
    for words in ["run s3://bucket/out/", "run s3://bucket/out/part*", "run s3://bucket/*/*.txt"] {
        run(words).fails().complains_of(&["found an unfinished job", "`millstream commit resume s3://bucket/out`"]);
    }
}
