//! JSON against a recursive parser and `serde_json`: the shared vectors and random documents, in pieces of every size.

mod escapes;
mod json_twin;

use escapes::unescape;
use json_twin::{Outcome, elements, filtered, lines, lines_by_batches, lines_by_steps};
use millstream_core::ErrorKind;
use millstream_core::frame::{Framer, JsonLines, Resume, Step};
use millstream_core::internal::JsonElements;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Returns the names of the members on the way of a pointer.
fn path(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

fn check(name: &str, pointer: &str, limit: usize, input: &[u8], piece: usize) -> Outcome {
    let path = path(pointer);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let expected = elements(&path, limit, input);
    let filter = JsonElements::new(pointer).unwrap().depth(limit);
    for from in [1, 2] {
        let found = filtered(filter.clone(), input.chunks(piece), from);
        assert_eq!(found, expected, "{name} {pointer:?}, in pieces of {piece}, from {from}");
    }
    expected
}

#[test]
fn vectors() {
    let mut count = 0;
    let vectors = include_str!("../../../vectors/json.tsv").lines();
    for line in vectors.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, framing, input, records, end] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}");
        };
        let input = unescape(input);
        let records = match records {
            "-" => Vec::new(),
            _ => records.split(" / ").map(unescape).collect(),
        };
        let error = end.split_once(" at ").map(|(kind, at)| {
            let kind = ErrorKind::ALL.iter().find(|found| found.name() == kind).unwrap();
            (*kind, at.parse().unwrap())
        });
        assert!(error.is_some() || end == "end", "{name}");
        let expected = Outcome { records, error };
        if let Some(pointer) = framing.strip_prefix("elements ") {
            let pointer = String::from_utf8(unescape(pointer)).unwrap();
            let most = if input.len() > 1000 { 3 } else { input.len().max(1) };
            for piece in (1..=most).chain([usize::MAX]) {
                assert_eq!(check(name, &pointer, 128, &input, piece), expected, "{name}");
            }
        } else {
            let framer = if framing == "checked" { JsonLines::checked() } else { JsonLines::new() };
            let start = |at: u64| input[..at as usize].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let expected = Outcome { error: error.map(|(kind, at)| (kind, start(at) as u64)), ..expected };
            for split in 0..=input.len() {
                assert_eq!(lines_by_steps(framer.clone(), &input, split), expected, "{name} split at {split}");
            }
            for max in [1, 2, usize::MAX] {
                assert_eq!(lines_by_batches(framer.clone(), &input, max), expected, "{name} in batches of {max}");
            }
            if let Some((_, at)) = error {
                let line = start(at);
                let Step::Bad(error) = framer.clone().step(&input[line..], Resume::START, true) else {
                    panic!("{name}")
                };
                assert_eq!(error.offset(), Some(at - line as u64), "{name}: {error}");
            }
        }
        count += 1;
    }
    assert!(count > 120, "{count} vectors");
}

/// Valid documents, mostly with elements at one of the pointers.
fn document() -> impl Strategy<Value = String> {
    let scalar = select(vec![
        "0",
        "-1.5e+10",
        "true",
        "false",
        "null",
        r#""""#,
        r#""a""#,
        r#""\u0061""#,
        r#""\"\\\n]},""#,
        "12345678901234567890",
        r#""a text that is longer than a word of eight bytes \\""#,
        r#""é\ud834\udd1e""#,
    ])
    .prop_map(String::from);
    let blank = || select(vec!["", "", "", " ", "\n\t ", "\r\n"]);
    scalar.prop_recursive(6, 40, 5, move |inner| {
        let name =
            select(vec![r#""a""#, r#""b""#, r#""c""#, r#""\u0061""#, r#""0""#, r#""""#, r#""longer than the others""#]);
        let element =
            (blank(), inner.clone(), blank()).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
        let member =
            (blank(), name, blank(), element.clone()).prop_map(|(a, name, b, value)| format!("{a}{name}{b}:{value}"));
        prop_oneof![
            prop::collection::vec(element, 0..5).prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

/// Returns the input with some bytes changed, removed or added.
fn mutate(mut input: Vec<u8>, mutations: &[(Index, u8, u8)]) -> Vec<u8> {
    for (at, how, byte) in mutations {
        let at = at.index(input.len() + 1);
        match how {
            0 => input.truncate(at),
            1 if at < input.len() => input[at] = *byte,
            2 if at < input.len() => drop(input.remove(at)),
            _ => input.insert(at, *byte),
        }
    }
    input
}

fn mutations() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    let byte = select(b"[]{},:\"\\ 0123-+.eEtrufalsn\n\r\t\x1e\x00\xff\xef\xbbab/".to_vec());
    prop::collection::vec((any::<Index>(), 0_u8..6, byte), 0..3)
}

fn pointer() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", "/a", "/a", "/b", "/0", "/1", "/a/b", "/a/0", "/0/a", "/", "/longer than the others"])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn elements_are_those_of_the_twin(
        document in document(),
        pointer in pointer(),
        mutations in mutations(),
        limit in select(vec![0, 1, 2, 3, 128]),
    ) {
        let input = mutate(document.into_bytes(), &mutations);
        for piece in (1..=input.len().clamp(1, 9)).chain([usize::MAX]) {
            check("random", pointer, limit, &input, piece);
        }
        // Every split into two pieces.
        let expected = check("random", pointer, 128, &input, 1);
        for split in 0..=input.len() {
            let (first, second) = input.split_at(split);
            let filter = JsonElements::new(pointer).unwrap();
            prop_assert_eq!(&filtered(filter, [first, second], 1), &expected);
        }
    }

    /// If `serde_json` can read the document, so can we, and the elements are equal. If we can, it finds no error, either.
    #[test]
    fn elements_are_those_of_serde_json(document in document(), pointer in pointer(), mutations in mutations()) {
        let input = mutate(document.into_bytes(), &mutations);
        let found = filtered(JsonElements::new(pointer).unwrap(), [&input[..]], 1);
        let whole = serde_json::from_slice::<serde_json::Value>(&input);
        match (&whole, &found.error) {
            (Err(error), None) => {
                // It also converts: numbers must be finite, and text must be Unicode.
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&input).is_ok(), "{}", error);
            }
            (Ok(whole), Some((kind, _))) => {
                let at_pointer = whole.pointer(pointer).filter(|value| value.is_array());
                // The last one of equal names is in the value, and the second is our error.
                let is_repeated = *kind == ErrorKind::JsonInvalid && !pointer.is_empty();
                prop_assert!(at_pointer.is_none() || is_repeated || *kind == ErrorKind::ShapeMismatch, "{:?}", found);
                prop_assert!(is_repeated || matches!(kind, ErrorKind::KeyMissing | ErrorKind::ShapeMismatch), "{:?}", kind);
            }
            (Ok(whole), None) => {
                let expected = whole.pointer(pointer).and_then(|value| value.as_array()).unwrap();
                let elements: Vec<serde_json::Value> =
                    found.records.iter().map(|element| serde_json::from_slice(element).unwrap()).collect();
                prop_assert_eq!(&elements, expected);
            }
            (Err(_), Some(_)) => {}
        }
    }

    #[test]
    fn lines_are_those_of_serde_json(
        documents in prop::collection::vec(document(), 0..5),
        mutations in mutations(),
        max in 1_usize..4,
    ) {
        let input: Vec<u8> = documents.iter().flat_map(|document| document.replace('\n', " ").into_bytes().into_iter().chain([b'\n'])).collect();
        let input = mutate(input, &mutations);
        let expected = lines(&input);
        for split in 0..=input.len() {
            prop_assert_eq!(&lines_by_steps(JsonLines::checked(), &input, split), &expected);
        }
        prop_assert_eq!(&lines_by_batches(JsonLines::checked(), &input, max), &expected);
        prop_assert_eq!(&lines_by_batches(JsonLines::checked(), &input, usize::MAX), &expected);
    }
}

#[test]
fn pointers_that_are_none() {
    for (pointer, found) in [("a", "\"a\""), ("a/b", "\"a/b\""), ("/a~", "'~'"), ("/~2", "'~'"), ("/~~0", "'~'")] {
        let error = JsonElements::new(pointer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(error.found().unwrap().contains(found), "{error}");
    }
}

#[test]
fn memory_for_names_and_depth_is_limited() {
    let mut filter = JsonElements::new("/a").unwrap();
    let mut piece = [&b"."[..], &b"x".repeat(1 << 16)].concat();
    filter.filter(&mut b".{\"".to_vec(), 1).1.unwrap();
    for _ in 0..100 {
        assert_eq!(filter.filter(&mut piece, 1).0, 0);
    }
    let shown = format!("{filter:?}");
    assert!(shown.len() < 2000, "it keeps {} bytes of text", shown.len());
}

#[test]
fn messages() {
    for (pointer, input, expected) in [
        (
            "",
            "[1, 2",
            "document truncated: found the end of the document inside a number of element 1, expected ',' or ']'",
        ),
        ("", "[1] x", "json invalid: found 'x' after the document, expected only whitespace"),
        ("", "[1,]", "json invalid: found ']' after a comma, expected a value"),
        ("", "[{\"a\": 1,}]", "json invalid: found '}' after a comma, expected a name in double quotes"),
        (
            "/a/b",
            "{\"a\": {\"c\": 1}}",
            "key missing: found an object at /a without the member \"b\", expected a member with this name",
        ),
        ("/a/1", "{\"a\": [0]}", "key missing: found an array at /a of 1 element, expected an element 1"),
        ("/a/b", "{\"a\": null}", "shape mismatch: found null at /a, expected an array or object, with \"b\""),
        ("", "{}", "shape mismatch: found an object, expected an array"),
        (
            "/a",
            "{\"a\": [], \"a\": []}",
            "json invalid: found a second member \"a\", expected one: it is on the path to the elements",
        ),
    ] {
        let mut memory = [b".", input.as_bytes()].concat();
        let mut filter = JsonElements::new(pointer).unwrap();
        let error = filter.filter(&mut memory, 1).1.and_then(|()| filter.finish()).unwrap_err();
        let message = error.without_advice().to_string();
        assert_eq!(message.split(", at byte").next().unwrap(), expected, "{message}");
    }
}
