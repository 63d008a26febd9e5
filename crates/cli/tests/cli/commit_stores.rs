//! Jobs of object stores.

use std::fs;
use std::process::{Command, Stdio};

use millstream::job::{Job, Part};

use crate::place::{Place, Words};
use crate::versitygw::{KEY, REGION, SECRET, versitygw};

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
        command.args(["commit_stores::driver", "--exact", "--ignored"]).stdout(Stdio::null()).envs(variables.clone());
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

#[test]
fn jobs_of_azure_are_refused() {
    let place = Place::new();
    for words in ["commit resume az://container/out", "commit abort az://container/out"] {
        let expected = "az://container/out: unsupported: found an object of Azure that should appear later";
        place.words(words).fails().complains_of(&[expected]);
    }
}
