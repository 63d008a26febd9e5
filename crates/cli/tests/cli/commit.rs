//! Jobs of a directory; `commit_stores` has those of object stores. `crates/millstream/tests/job.rs` has the jobs that
//! are killed at each step.

use std::fs;

use millstream::job::{Job, Part};

use crate::place::Place;

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
