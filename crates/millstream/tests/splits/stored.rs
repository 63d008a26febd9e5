//! Plans as JSON.

use millstream::splits::{Framing, Split, Splits};
use millstream::{ErrorKind, Reader};

/// The oldest version of the format, which every later version must read.
const VERSION_1: &str = include_str!("version_1.json");

#[test]
fn the_oldest_version_is_read() {
    let plan = Splits::from_json(VERSION_1).unwrap();
    assert_eq!(
        (plan.len(), plan.file_size(), plan.records(), plan.note()),
        (4, 40, None, Some("four kinds of splits"))
    );
    let splits: Vec<&Split> = plan.iter().collect();
    assert_eq!(*splits[0].framing(), Framing::Lines);
    assert_eq!((splits[0].begin(), splits[0].end(), splits[0].first_record()), (0, Some(10), Some(0)));
    assert_eq!(*splits[1].framing(), Framing::Delimiter { bytes: b"\r\n".to_vec() });
    assert_eq!((splits[1].begin(), splits[1].end(), splits[1].first_record()), (10, Some(20), None));
    assert_eq!(*splits[2].framing(), Framing::LengthPrefixed { prefix: "u32be,self".parse().unwrap() });
    assert_eq!(splits[2].first_record(), Some(7));
    assert_eq!((splits[3].path(), splits[3].end()), (None, None));
    assert_eq!(plan.to_json(), VERSION_1, "it is written as it was");
}

#[test]
fn a_split_without_a_path_needs_one() {
    let plan = Splits::from_json(VERSION_1).unwrap();
    let error = Reader::split(plan.iter().last().unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::InvalidOption, Some("a split without a path")));
}

#[test]
fn other_versions_and_other_text_are_refused() {
    let refused = |from: &str, to: &str| {
        let changed = VERSION_1.replacen(from, to, 1);
        assert_ne!(changed, VERSION_1, "{from} is not in the plan");
        let error = Splits::from_json(&changed).unwrap_err();
        (error.kind(), error.found().unwrap().to_string())
    };
    let (kind, found) = refused(r#"{"version":1,"size""#, r#"{"version":2,"size""#);
    assert_eq!((kind, found.as_str()), (ErrorKind::Unsupported, "a plan of format version 2"));
    assert_eq!(refused(r#"{"version":1,"path""#, r#"{"version":9,"path""#).0, ErrorKind::Unsupported);
    for (from, to) in [
        (r#""begin":10"#, r#""begin":21"#),
        (r#""begin":10"#, r#""begin":-1"#),
        (r#""exact":true"#, r#""exact":false"#),
        (r#""exact":true"#, r#""exact":true,"unknown":1"#),
        (r#""exact":true"#, r#""exact":true,"state":3"#),
        (r#""bytes":"0d0a""#, r#""bytes":"""#),
        (r#""bytes":"0d0a""#, r#""bytes":"6161""#),
        (r#""prefix":"u32be,self""#, r#""prefix":"u24""#),
        (r#","encoded":{"at":0,"decoded":0}"#, ""),
        ("]}", "]"),
    ] {
        assert_eq!(refused(from, to).0, ErrorKind::InvalidOption, "{to}");
    }
}

#[test]
fn a_plan_does_not_depend_on_anything_but_the_file_and_the_options() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a\nbb\nccc\n".repeat(1000)).unwrap();
    let plan = || Splits::plan(file.path(), Framing::Lines, 100).unwrap();
    assert_eq!(plan(), plan());
    assert_eq!(plan().to_json(), plan().to_json());
}

#[test]
fn shards_are_a_partition_that_a_seed_determines() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0123456\n".repeat(10)).unwrap();
    let plan = Splits::plan(file.path(), Framing::Lines, 8).unwrap();
    let begins = |i, n, seed| plan.shard(i, n, seed).unwrap().iter().map(|s| s.begin() / 8).collect::<Vec<_>>();
    for n in [1, 3, 10, 11] {
        let shards: Vec<_> = (0..n).map(|i| begins(i, n, 5)).collect();
        assert!(shards.iter().all(|shard| shard.len() == 10 / n || shard.len() == 10 / n + 1));
        let mut all = shards.concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
    // These numbers must never change.
    assert_eq!(begins(0, 1, 1), SEED_1);
    assert_eq!(begins(0, 2, 1), SEED_1.iter().copied().step_by(2).collect::<Vec<_>>());
    assert_ne!(begins(0, 1, 2), SEED_1);
    assert_eq!(plan.shard(2, 2, 0).unwrap_err().kind(), ErrorKind::InvalidOption);
    assert_eq!(plan.shard(0, 0, 0).unwrap_err().kind(), ErrorKind::InvalidOption);
}

const SEED_1: [u64; 10] = [9, 0, 1, 4, 8, 2, 3, 7, 6, 5];
