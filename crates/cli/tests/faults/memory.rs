//! The operating system has no more memory: one line reports this, and no files remain.

use crate::command::{Before, Place, millstream};

/// Runs `millstream` with about this much memory, in KiB.
fn within(kib: u64, place: &Place, words: &[&str]) -> crate::command::Outcome {
    let limit = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    let mut argv: Vec<String> = ["sh", "-c", &limit, millstream().to_str().unwrap()].map(String::from).to_vec();
    argv.extend(place.arguments(words));
    place.reset(Before::Absent);
    place.run(&argv)
}

#[test]
fn a_record_needs_more_memory_than_there_is() {
    let place = Place::new(10);
    // The record has the maximum length.
    let zeros = ["--", "head", "-c", "700000000", "/dev/zero"];
    let of_length: &[&str] = &["--", "sh", "-c", "printf '\\377\\377\\377\\057'; exec head -c 700000000 /dev/zero"];
    for (framing, source) in
        [(&[][..], &zeros[..]), (&["--length-prefixed", "u32le"], of_length), (&["--bson"], of_length)]
    {
        let words = [&["run", "-o", "OUT", "--record-limit", "1G", "--stage", "noop"], framing, source].concat();
        let outcome = within(700_000, &place, &words);
        assert_eq!(outcome.status.code(), Some(1), "{words:?} {outcome:?}");
        assert!(outcome.stderr.contains("no memory for 536870912 bytes"), "{outcome:?}");
        place.check(&outcome, Before::Absent, "a long record");
    }
    // This is a frame of one raw block, with a window of 2 GiB.
    std::fs::write(place.input().with_extension("zst"), b"\x28\xb5\x2f\xfd\0\xa8\x21\0\0one\n").unwrap();
    let outcome = within(700_000, &place, &["run", "IN.zst", "--decode-memory", "2G", "-o", "OUT"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("no memory for the window"), "{outcome:?}");
    place.check(&outcome, Before::Absent, "a long window");
}
