//! What `millstream bson` shows, checks and reports as invalid.

use millstream::bson::{Rules, json_to_bson};

use rustix::process::Signal;

use crate::place::{Place, Words};
#[cfg(feature = "remote")]
use crate::store::{Dialect, Fault, Store, Stored};
use crate::terminal::on_a_terminal;

/// Returns documents from Extended JSON, one after another.
pub(crate) fn documents(texts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        json_to_bson(text, Rules::new(), &mut bytes).unwrap();
    }
    bytes
}

const ORDERS: [&str; 2] = [
    r#"{"_id": {"$oid": "0123456789abcdef01234567"}, "name": "Ada", "items": [{"sku": "x", "price": 1.5}], "n": null}"#,
    r#"{"_id": {"$oid": "0123456789abcdef01234568"}, "name": "Bob", "tags": ["a", "b"], "big": {"$numberLong": "7"}}"#,
];

fn orders() -> Place {
    Place::new().file("orders.bson", documents(&ORDERS))
}

/// Runs `millstream bson` with these words.
fn bson(place: &Place, words: &str) -> Words {
    place.words("bson").and(words)
}

#[test]
fn ls_shows_the_tree_of_one_document() {
    let place = orders();
    let first = "document [0] at byte 0: 4 members, 85 B
  _id    objectId  0123456789abcdef01234567
  name   string    \"Ada\"
  items  array     [1] of object, 39 B
    0  object  2 members, 31 B
      sku    string  \"x\"
      price  double  1.5
  n      null
";
    bson(&place, "ls orders.bson").succeeds().prints(first);
    bson(&place, "ls -").stdin(place.read("orders.bson")).succeeds().prints(first);
    bson(&place, "ls orders.bson [1].tags").succeeds().prints("tags  array  [2] of string, 23 B: \"a\", \"b\"\n");
    bson(&place, "ls orders.bson items.0.price").succeeds().prints("price  double  1.5\n");
    bson(&place, "ls orders.bson --depth 1 --limit 1").succeeds().prints(
        "document [0] at byte 0: 4 members, 85 B\n  _id  objectId  0123456789abcdef01234567\n  … 3 not shown\n",
    );
}

#[test]
fn ls_counts_up_to_a_limit() {
    let of = |count: usize| {
        let members: Vec<String> = (0..count).map(|i| format!("\"{i}\": 0")).collect();
        format!("{{\"a\": [{}1.5], \"b\": {{{}}}}}", "1.5,".repeat(count - 1), members.join(","))
    };
    let place = Place::new().file("a.bson", documents(&[&of(10_000), &of(10_001)]));
    for (path, array, members) in [
        ("", "a  array   [10000] of double,", "b  object  10000 members,"),
        ("[1]", "a  array   [more than 10000] of double,", "b  object  more than 10000 members,"),
    ] {
        let seen = bson(&place, "ls a.bson --depth 1").and(path).succeeds();
        let stdout = String::from_utf8(seen.stdout).unwrap();
        assert!(stdout.contains(array) && stdout.contains(members), "{stdout}");
    }
}

#[test]
fn ls_shows_the_content_before_an_error() {
    let mut bytes = documents(&[r#"{"a": 1, "b": {"c": 2, "d": true}, "[0]": 3}"#]);
    let at = bytes.iter().position(|&byte| byte == b'd').unwrap() - 1;
    bytes[at] = 0x77;
    let place = Place::new().file("bad.bson", &bytes);
    bson(&place, "ls bad.bson")
        .fails()
        .prints("document [0] at byte 0: 3 members, 40 B\n  a      int     1\n  b      object  1 member, 16 B\n    c  int  2\n")
        .complains_of(&["found 0x77", "in b", "record 0"]);
    bson(&place, "ls bad.bson a").succeeds().prints("a  int  1\n");
    bson(&place, "ls bad.bson \"[0]\"").succeeds().prints("\"[0]\"  int  3\n");
}

#[test]
fn ls_ends_by_a_signal_while_its_output_blocks() {
    // This is several times the capacity of a pipe of 1 MiB, which some systems use from the start.
    let text = format!("{{{}}}", (0..200_000).map(|i| format!("\"{i}\": {i}")).collect::<Vec<_>>().join(", "));
    let place = Place::new().file("many.bson", documents(&[&text]));
    let mut ls = bson(&place, "ls --all many.bson").start();
    ls.prints("document [0]");
    ls.send(Signal::TERM);
    ls.dies_by(Signal::TERM);
}

#[test]
fn missing_values_are_reported() {
    let place = orders();
    for (words, complaint) in [
        ("ls orders.bson [2]", "found 2 documents, expected a document [2]"),
        ("ls orders.bson items.1", "key missing: found no value, in items.1"),
        ("get orders.bson name.first", "in name.first"),
        ("ls nowhere.bson", "nowhere.bson: open failed"),
    ] {
        bson(&place, words).fails().prints("").complains_of(&[complaint]);
    }
    bson(&place, "ls orders.bson [x]").gets_refused().complains_of(&["expected the number of a document"]);
    bson(&place, "").gets_refused();
}

#[test]
fn get_prints_json_or_bytes() {
    let place = orders();
    bson(&place, "get orders.bson items").succeeds().prints("[{\"sku\":\"x\",\"price\":1.5}]\n");
    bson(&place, "get orders.bson [1].big --canonical").succeeds().prints("{\"$numberLong\":\"7\"}\n");
    bson(&place, "get orders.bson name --as raw").succeeds().prints("Ada");
    bson(&place, "get orders.bson --as raw").succeeds().prints(documents(&ORDERS[..1]));
    bson(&place, "get orders.bson n --as raw").exits(2).prints("").complains_of(&["a value of type null at n"]);
}

/// The shared table of paths and their values.
#[test]
fn get_follows_paths_as_every_language_does() {
    const PATHS: &str = include_str!("../../../../vectors/bson_paths.tsv");
    let mut cases = 0;
    for line in PATHS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, bytes, path, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes: Vec<u8> =
            (0..bytes.len() / 2).map(|at| u8::from_str_radix(&bytes[2 * at..][..2], 16).unwrap()).collect();
        let place = Place::new().file(name, bytes);
        let get = place.words("bson get --canonical").word(name).word(path);
        match expected {
            "-" => drop(get.fails().prints("").complains_of(&["key missing"])),
            _ => drop(get.succeeds().prints(format!("{expected}\n"))),
        }
        cases += 1;
    }
    assert!(cases > 15, "{cases}");
}

#[test]
fn get_makes_arrays_for_numpy() {
    let place = Place::new().file("a.bson", documents(&[r#"{"ints": [1, 2], "mixed": [1, 0.5], "text": ["x"]}"#]));
    let npy = |words: &str| {
        let seen = bson(&place, words).succeeds();
        assert_eq!(&seen.stdout[..8], b"\x93NUMPY\x01\0");
        let data = 10 + usize::from(u16::from_le_bytes([seen.stdout[8], seen.stdout[9]]));
        assert_eq!(data % 64, 0);
        let (header, data) = seen.stdout.split_at(data);
        (String::from_utf8(header[10..].to_vec()).unwrap().trim_end().to_string(), data.to_vec())
    };
    let (header, data) = npy("get a.bson ints --as npy");
    assert_eq!(header, "{'descr': '<i8', 'fortran_order': True, 'shape': (2, ), }");
    assert_eq!(data, [1_i64.to_le_bytes(), 2_i64.to_le_bytes()].concat());
    let (header, data) = npy("get a.bson mixed --as npy");
    assert_eq!(header, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, ), }");
    assert_eq!(data, [1_f64.to_le_bytes(), 0.5_f64.to_le_bytes()].concat());
    bson(&place, "get a.bson text --as npy").exits(2).prints("").complains_of(&["a value of type string at text"]);
}

#[test]
fn arrays_that_numpy_cannot_read_are_refused() {
    let vector = |base64: &str| format!(r#"{{"v": {{"$binary": {{"base64": "{base64}", "subType": "09"}}}}}}"#);
    let wide_sizes = vec![r#"{"$numberLong": "1"}"#; 30_000].join(",");
    let wide = format!(
        r#"{{"v": {{"tag": "array", "type": {{"tag": "datatype", "params": [], "name": ["Core", "UInt8"]}},
        "size": [{wide_sizes}], "data": {{"$binary": {{"base64": "Bw==", "subType": "00"}}}}}}}}"#
    );
    let place = Place::new()
        .file("float.bson", documents(&[&vector("JwAAAIA/AAAAQA==")]))
        .file("int.bson", documents(&[&vector("AwABgA==")]))
        .file("bits.bson", documents(&[&vector("EAAB")]))
        .file("wide.bson", documents(&[&wide]));
    for (words, dtype, numbers) in [
        ("get float.bson v --as npy", "<f4", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40][..]),
        ("get int.bson v --as npy", "|i1", &[1, 0x80]),
    ] {
        let npy = bson(&place, words).succeeds().stdout;
        let header = format!("{{'descr': '{dtype}', 'fortran_order': True, 'shape': (2, ), }}");
        assert!(String::from_utf8_lossy(&npy).contains(&header), "{words}");
        assert_eq!(&npy[npy.len() - numbers.len() - 1..], [b"\n", numbers].concat(), "{words}");
    }
    bson(&place, "get bits.bson v --as npy").exits(2).prints("").complains_of(&["a vector of single bits at v"]);
    bson(&place, "get wide.bson v --as npy").exits(2).prints("").complains_of(&["an array of 30000 dimensions"]);
    for (dimensions, status) in [(64, 0), (65, 2)] {
        let sizes = vec![r#"{"$numberLong": "1"}"#; dimensions].join(",");
        let text = wide.replacen(&wide_sizes, &sizes, 1);
        let place = Place::new().file("a.bson", documents(&[&text]));
        bson(&place, "get a.bson v --as npy").exits(status);
    }
}

#[test]
fn a_row_shows_only_the_beginning_of_a_value() {
    let tuple = format!(r#"{{"t": {{"tag": "tuple", "data": ["{}"]}}}}"#, "x".repeat(3000));
    let place = Place::new().file("tuple.bson", documents(&[&tuple]));
    let shown = format!("t  Tuple  {{\"$tuple\":[\"{}…\n", "x".repeat(60 - 12));
    bson(&place, "ls tuple.bson t --depth 0").succeeds().prints(shown);
}

/// Returns `Float32[1 2; 3 4]` as BSON.jl writes it.
const MATRIX: &str = r#"{"w": {"tag": "array", "type": {"tag": "datatype", "params": [], "name": ["Core", "Float32"]},
    "size": [{"$numberLong": "2"}, {"$numberLong": "2"}],
    "data": {"$binary": {"base64": "AACAPwAAQEAAAABAAACAQA==", "subType": "00"}}}, "s": {"tag": "symbol", "name": "a"}}"#;

#[test]
fn values_of_julia_are_shown_with_their_types() {
    let place = Place::new().file("m.bson", documents(&[MATRIX]));
    bson(&place, "ls m.bson").succeeds().prints(
        "document [0] at byte 0: 2 members, 204 B
  w  Array{Float32,2}  2×2, 16 B: 1.0, 3.0, 2.0, 4.0
  s  Symbol            :a
",
    );
    bson(&place, "ls m.bson --plain s")
        .succeeds()
        .prints("s  object  2 members, 33 B\n  tag   string  \"symbol\"\n  name  string  \"a\"\n");
    let npy = bson(&place, "get m.bson w --as npy").succeeds().stdout;
    assert!(String::from_utf8_lossy(&npy).contains("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, ), }"));
    assert!(npy.ends_with(&[1.0_f32, 3.0, 2.0, 4.0].map(f32::to_le_bytes).concat()));
    bson(&place, "get m.bson w --as julia")
        .succeeds()
        .prints("{\"$array\":[1.0,3.0,2.0,4.0],\"eltype\":\"Float32\",\"size\":[2,2]}\n");
}

/// A struct, a tuple, an array and references as BSON.jl writes them, and documents that look like references.
fn shared_objects() -> Place {
    let point = r#"{"tag": "datatype", "params": [], "name": ["Main", "Point"]}"#;
    let floats = r#"{"tag": "array", "type": {"tag": "datatype", "params": [], "name": ["Core", "Float32"]},
        "size": [{"$numberLong": "1"}], "data": {"$binary": {"base64": "AACAPw==", "subType": "00"}}}"#;
    let text = format!(
        r#"{{"s": {{"tag": "struct", "type": {point}, "data": [1.5, {{"tag": "tuple", "data": [{floats}]}}]}},
        "shared": {{"tag": "backref", "ref": {{"$numberLong": "1"}}}},
        "zero": {{"tag": "backref", "ref": {{"$numberLong": "0"}}}},
        "behind": {{"tag": "backref", "ref": {{"$numberLong": "3"}}}},
        "more": {{"tag": "backref", "ref": 1, "x": 2}},
        "_backrefs": [{floats}, {{"tag": "struct", "type": {point}, "data": [{{"tag": "backref", "ref": 1}}]}}]}}"#
    );
    Place::new().file("s.bson", documents(&[&text]))
}

#[test]
fn get_takes_the_paths_that_ls_shows() {
    let place = shared_objects();
    let seen = bson(&place, "ls s.bson --all").succeeds().stdout;
    // A path consists of the last label of each level.
    let mut path: Vec<String> = Vec::new();
    let mut paths = Vec::new();
    for line in String::from_utf8(seen).unwrap().lines().skip(1) {
        let level = (line.len() - line.trim_start().len()) / 2;
        path.truncate(level - 1);
        path.push(line.split_whitespace().next().unwrap().to_string());
        paths.push(path.join("."));
    }
    assert!(paths.len() > 15, "{paths:?}");
    for path in &paths {
        // A reference to a missing object is an invalid Julia value; it is shown as plain data.
        let forms: &[&str] = if ["zero", "behind"].contains(&&path[..]) { &["json"] } else { &["json", "julia"] };
        for form in forms {
            bson(&place, &format!("get s.bson {path} --as {form}")).succeeds();
        }
    }
    for path in ["s.data.1.data.0", "shared", "_backrefs.0", "_backrefs.1.data.0"] {
        assert!(path == "shared" || path == "_backrefs.1.data.0" || paths.iter().any(|shown| shown == path), "{path}");
        let npy = bson(&place, &format!("get s.bson {path} --as npy")).succeeds().stdout;
        assert!(npy.ends_with(&1_f32.to_le_bytes()), "{path}");
    }
    bson(&place, "get s.bson s.data --as julia")
        .succeeds()
        .prints("{\"$array\":[1.5,{\"$tuple\":[{\"$array\":[1.0],\"eltype\":\"Float32\",\"size\":[1]}]}],\"eltype\":\"Any\",\"size\":[2]}\n");
    bson(&place, "get s.bson s.0 --as julia").fails().prints("").complains_of(&["found no value, in s.0"]);
}

#[test]
fn only_a_reference_is_shown_as_one() {
    let place = shared_objects();
    bson(&place, "ls s.bson shared").succeeds().prints("shared  backref  _backrefs.0\n");
    for (path, kind) in [("zero", "2 members"), ("behind", "2 members"), ("more", "3 members")] {
        let seen = bson(&place, &format!("ls s.bson {path}")).succeeds().stdout;
        let line = format!("{path}  object  {kind}");
        assert!(seen.starts_with(line.as_bytes()), "{}", String::from_utf8_lossy(&seen));
    }
    let place = Place::new().file("plain.bson", documents(&[r#"{"a": {"tag": "backref", "ref": 1}}"#]));
    bson(&place, "ls plain.bson --depth 1")
        .succeeds()
        .prints("document [0] at byte 0: 1 member, 39 B\n  a  object  2 members, 31 B\n");
}

#[test]
fn numbers_that_no_type_of_numpy_holds_are_refused_before_the_header() {
    let text = r#"{"a": [0.5, {"$numberLong": "9007199254740993"}], "b": [{"$numberLong": "9007199254740993"}, 1]}"#;
    let place = Place::new().file("a.bson", documents(&[text]));
    bson(&place, "get a.bson a --as npy").fails().prints("").complains_of(&["9007199254740993", "in a.1"]);
    let npy = bson(&place, "get a.bson b --as npy").succeeds().stdout;
    assert!(npy.ends_with(&[9_007_199_254_740_993_i64, 1].map(i64::to_le_bytes).concat()));
}

#[test]
fn control_characters_are_escaped() {
    // The expected text is JSON, whose escapes `documents` decodes.
    let text = r#"{"k\u202e": "x\u001b[2J\u009b\u202ey", "r": {"$regularExpression": {"pattern": "\u2066", "options": "i"}},
        "s": {"tag": "symbol", "name": "\u009b"}}"#;
    let place = Place::new().file("a.bson", documents(&[text]));
    bson(&place, "ls a.bson --depth 1").succeeds().prints(
        r#"document [0] at byte 0: 3 members, 73 B
  "k\u202e"  string  "x\u001b[2J\u009b\u202ey"
  r          regex   /\u2066/i
  s          Symbol  :\u009b
"#,
    );
    bson(&place, r#"ls a.bson "k\u202e""#).succeeds();
    let piped = "{\"k\u{202e}\":\"x\\u001b[2J\u{9b}\u{202e}y\"";
    for words in ["cat a.bson", "get a.bson", "get a.bson --as julia", "convert a.bson --to ndjson"] {
        let seen = String::from_utf8(bson(&place, words).succeeds().stdout).unwrap();
        assert!(seen.starts_with(piped), "{words}: {seen}");
        let shown = on_a_terminal(bson(&place, words), true);
        assert!(shown.starts_with(r#"{"k\u202e":"x\u001b[2J\u009b\u202ey""#), "{words}: {shown}");
    }
    let csv = |place: &Place| place.words("bson convert a.bson --to csv --column").word("k\u{202e}:string");
    csv(&place).succeeds().prints("k\u{202e}\nx\u{1b}[2J\u{9b}\u{202e}y\n");
    assert_eq!(on_a_terminal(csv(&place), true), "k\\u202e\r\nx\\u001b[2J\\u009b\\u202ey\r\n");
    let text = place.words("bson get a.bson --as raw").word("\"k\\u202e\"");
    assert_eq!(on_a_terminal(text, true), "x\\u001b[2J\\u009b\\u202ey");
    csv(&place).and("-o a.csv").succeeds();
    assert_eq!(place.text("a.csv"), "k\u{202e}\nx\u{1b}[2J\u{9b}\u{202e}y\n");
}

#[test]
fn cat_prints_a_document_a_line() {
    let place = orders();
    let relaxed = r#"{"_id":{"$oid":"0123456789abcdef01234567"},"name":"Ada","items":[{"sku":"x","price":1.5}],"n":null}
{"_id":{"$oid":"0123456789abcdef01234568"},"name":"Bob","tags":["a","b"],"big":7}
"#;
    bson(&place, "cat orders.bson").succeeds().prints(relaxed);
    bson(&place, "cat --relaxed").stdin(place.read("orders.bson")).succeeds().prints(relaxed);
    bson(&place, "cat --canonical orders.bson")
        .succeeds()
        .prints(relaxed.replace("1.5", r#"{"$numberDouble":"1.5"}"#).replace("7}", r#"{"$numberLong":"7"}}"#));
    bson(&place, "cat -- cat orders.bson").succeeds().prints(relaxed);
    bson(&place, "cat")
        .shell("cat orders.bson; exit 3")
        .fails()
        .prints(relaxed)
        .complains_of(&["exited with status 3"]);
}

#[test]
fn count_looks_at_lengths_only() {
    let place = orders().file("cut.bson", &documents(&ORDERS)[..150]).file("none.bson", "");
    bson(&place, "count orders.bson").succeeds().prints("2 documents, 163 bytes\n");
    bson(&place, "count none.bson").succeeds().prints("0 documents, 0 bytes\n");
    bson(&place, "count cut.bson")
        .fails()
        .prints("")
        .complains_of(&["cut.bson: frame truncated", "at byte 85, record 1"]);
}

#[test]
fn check_reports_errors_and_their_positions() {
    let mut bytes = documents(&ORDERS);
    let place = orders();
    bson(&place, "check orders.bson").succeeds().prints("2 documents, 163 bytes: right\n");
    let at = bytes.iter().position(|&byte| byte == b'B').unwrap();
    bytes[at] = 0xff;
    let place = place.file("bad.bson", &bytes);
    let where_it_is = format!("utf8 invalid: found 0xff, expected UTF-8, in name, at byte {at}, record 1");
    bson(&place, "check bad.bson").fails().prints("").complains_of(&["bad.bson", &where_it_is]);
    let seen = bson(&place, "check bad.bson --on-bad skip").fails().prints("1 document, 85 bytes: right\n");
    for said in [format!("left out: bad.bson: {where_it_is}"), "found 1 bad record, expected none".to_string()] {
        assert!(seen.stderr.contains(&said), "{}", seen.stderr);
    }
    bson(&place, "cat bad.bson").fails().complains_of(&["in name"]);
    // The stream may also be truncated after the invalid document.
    let place = place.file("cut.bson", [&bytes[85..], &bytes[..85], &bytes[..40]].concat());
    for line in ["check cut.bson --on-bad skip", "cat cut.bson --on-bad skip"] {
        let skipped = "left out: cut.bson: utf8 invalid: found 0xff, expected UTF-8, in name";
        let seen = bson(&place, line).fails();
        assert!(seen.stderr.contains(skipped) && seen.stderr.contains("cut.bson: frame truncated"), "{}", seen.stderr);
    }
    let twice = Place::new().file("twice.bson", documents(&[r#"{"a": 1, "a": 2}"#]));
    bson(&twice, "check twice.bson").succeeds();
    bson(&twice, "check twice.bson --strictness strict").fails().complains_of(&["the key \"a\""]);
    bson(&twice, "check twice.bson --depth 0").gets_refused();
}

/// Returns three documents, of which the second is not UTF-8.
fn with_a_bad_one() -> (Place, Vec<u8>) {
    let mut bytes = documents(&[r#"{"n": 1}"#, r#"{"s": "x"}"#, r#"{"n": 3}"#]);
    let at = bytes.iter().position(|&byte| byte == b'x').unwrap();
    bytes[at] = 0xff;
    let bad = bytes[12..bytes.len() - 12].to_vec();
    (Place::new().file("a.bson", bytes), bad)
}

#[test]
fn bad_documents_are_kept_in_a_file() {
    let (place, bad) = with_a_bad_one();
    for (words, printed) in
        [("cat a.bson", "{\"n\":1}\n{\"n\":3}\n"), ("check a.bson", "2 documents, 24 bytes: right\n")]
    {
        bson(&place, words)
            .and("--rejects bad.jsonl")
            .exits(0)
            .prints(printed)
            .says("millstream: 1 bad record: see bad.jsonl\n");
        let line: serde_json::Value = serde_json::from_str(&place.text("bad.jsonl")).unwrap();
        assert_eq!((&line["source"], &line["record"]), (&"a.bson".into(), &1.into()));
        assert_eq!((&line["byte"], &line["kind"]), (&23.into(), &"utf8_invalid".into()));
        assert_eq!(line["raw"], data_encoding::BASE64.encode(&bad));
        assert!(line["message"].as_str().unwrap().contains("in s"), "{line}");
        std::fs::remove_file(place.path("bad.jsonl")).unwrap();
        for limit in ["--max-rejects 1", "--max-rejects 34%"] {
            let seen = bson(&place, words).and(limit).exits(0).prints(printed);
            assert!(seen.stderr.starts_with("millstream: left out: a.bson: utf8 invalid"), "{}", seen.stderr);
            assert_eq!(seen.stderr.lines().count(), 1, "{}", seen.stderr);
        }
        for limit in ["--max-rejects 0", "--max-rejects 33%", "--max-rejects 0 --rejects bad.jsonl"] {
            let seen = bson(&place, words).and(limit).fails();
            assert!(seen.stderr.contains("found 1 bad record, expected at most"), "{}", seen.stderr);
        }
        for option in ["--rejects b", "--max-rejects 1"] {
            bson(&place, words).and(option).and("--on-bad stop").gets_refused().complains_of(&["with --on-bad stop"]);
        }
        bson(&place, words).and("--rejects a.bson").fails().prints("").complains_of(&["one of the sources"]);
    }
    // A file without bad documents is empty; one of a failed command does not appear.
    bson(&orders().file("none", ""), "check orders.bson --rejects bad.jsonl").succeeds();
    let mut cut = place.read("a.bson");
    cut.pop();
    let place = place.file("cut.bson", cut);
    bson(&place, "check cut.bson --rejects bad.jsonl").fails().prints("").complains_of(&["frame truncated"]);
    assert_eq!(place.names(), ["a.bson", "cut.bson"]);
}

#[test]
fn bytes_between_documents_are_one_bad_record() {
    let good = documents(&[r#"{"n": 1}"#]);
    let garbage = [0xee; 40];
    let place = Place::new().file("a.bson", [&good[..], &garbage, &good.repeat(2)].concat());
    bson(&place, "check a.bson --rejects bad.jsonl").exits(0).prints("3 documents, 36 bytes: right\n");
    let line: serde_json::Value = serde_json::from_str(&place.text("bad.jsonl")).unwrap();
    assert_eq!((&line["byte"], &line["record"]), (&12.into(), &1.into()));
    assert_eq!(line["raw"], data_encoding::BASE64.encode(&garbage));
}

#[test]
#[cfg(not(feature = "parquet"))]
fn a_missing_feature_is_reported_with_advice() {
    let place = Place::new().file("a.bson", documents(&[r#"{"n": 1}"#]));
    for to in ["parquet", "arrow", "ndjson"] {
        let words = format!("convert a.bson --to {to} -o out");
        bson(&place, &words).fails().prints("").complains_of(&["does not include", "bson cat", "--features full"]);
    }
    assert_eq!(place.names(), ["a.bson"]);
}

#[test]
#[cfg(feature = "parquet")]
fn convert_writes_other_formats() {
    let place =
        Place::new().file("a.bson", documents(&[r#"{"n": 1, "s": "x,y", "in": {"d": 0.5}}"#, r#"{"n": 2, "in": {}}"#]));
    let csv = "n,s,in.d\n1,\"x,y\",0.5\n2,,\n";
    bson(&place, "convert a.bson --to csv").succeeds().prints(csv);
    bson(&place, "convert --to csv -- cat a.bson").succeeds().prints(csv);
    bson(&place, "convert a.bson --to ndjson -o a.json").succeeds().prints("");
    assert_eq!(place.text("a.json"), "{\"n\":1,\"s\":\"x,y\",\"in\":{\"d\":0.5}}\n{\"n\":2,\"in\":{}}\n");
    for to in ["parquet", "arrow"] {
        let written = bson(&place, &format!("convert a.bson --to {to}")).succeeds().stdout;
        let mark: &[u8] = if to == "parquet" { b"PAR1" } else { b"ARROW1" };
        assert!(written.starts_with(mark) && written.ends_with(mark), "{to}");
    }
    bson(&place, "convert a.bson --to csv --column n:double --column in.d:string --mismatch null")
        .exits(0)
        .prints("n,in.d\n1.0,\n2.0,\n")
        .complains_of(&["1 value did not fit and became null, in 2 documents"]);
}

#[test]
#[cfg(feature = "parquet")]
fn a_value_that_does_not_fit_a_column_is_an_error_without_output() {
    let place = Place::new().file("a.bson", documents(&[r#"{"n": 1}"#, r#"{"n": "x"}"#, r#"{"m": 1}"#]));
    for to in ["csv", "parquet"] {
        bson(&place, &format!("convert a.bson --to {to} -o a.out --column n:long")).fails().prints("").complains_of(&[
            "found a value of type string",
            "in n",
            "record 1",
        ]);
    }
    bson(&place, "convert a.bson --to csv --infer 2 -o a.csv").fails().complains_of(&["record 2"]);
    bson(&place, "convert a.bson --to csv --infer 2 --unknown count -o a.csv").exits(2).complains_of(&[
        "null in the only column, ",
        "a column that every row has, or",
        "--null TEXT",
    ]);
    bson(&place, "convert a.bson --to csv --infer 2 --unknown count --null NA -o a.csv")
        .exits(0)
        .complains_of(&["1 member left out"]);
    assert_eq!(place.names(), ["a.bson", "a.csv"]);
    bson(&place, "convert a.bson").gets_refused().complains_of(&["--to"]);
    bson(&place, "convert a.bson --to csv --column n").gets_refused().complains_of(&["expected PATH:TYPE"]);
}

#[test]
#[cfg(feature = "parquet")]
fn a_key_that_repeats_is_an_error_or_counted() {
    let place = Place::new().file("a.bson", documents(&[r#"{"a": 1, "a": 2}"#]));
    for to in ["csv", "parquet", "arrow", "arrow-stream"] {
        for column in ["", "--column a:int"] {
            let line = format!("convert a.bson --to {to} -o out {column}");
            bson(&place, &line).fails().complains_of(&["found the key \"a\" twice", "--unknown count", "record 0"]);
            assert_eq!(place.names(), ["a.bson"], "{line}");
        }
    }
    for column in ["", "--column a:int"] {
        bson(&place, &format!("convert a.bson --to csv --unknown count {column}"))
            .exits(0)
            .prints("a\n1\n")
            .complains_of(&["1 member left out, in 1 document"]);
    }
    bson(&place, "convert a.bson --to ndjson").succeeds().prints("{\"a\":1,\"a\":2}\n");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = bson(&place, "convert a.bson --to csv --unknown count").into_command();
    assert_eq!(
        command.stdout(std::process::Stdio::null()).stderr(full).status().unwrap().code(),
        Some(1),
        "the count could not be printed"
    );
}

#[test]
#[cfg(feature = "parquet")]
fn data_that_columns_cannot_represent_is_named() {
    let types = [
        r#"{"t": {"$symbol": "x"}, "b": {"$binary": {"base64": "", "subType": "05"}}}"#,
        r#"{"t": {"$code": "y"}, "b": {"$undefined": true}}"#,
    ];
    let place = Place::new().file("a.bson", documents(&types)).file("b.bson", documents(&[r#"{"n": -0.0, "m": 1}"#]));
    let seen = bson(&place, "convert a.bson --to csv").exits(0).prints("t,b\nx,\"\"\ny,\n");
    for line in [
        "1 value of type javascript became text, in 2 documents",
        "1 value of type symbol became text",
        "1 value of type binData lost a subtype",
        "1 value of type undefined became null",
    ] {
        assert!(seen.stderr.contains(&format!("millstream: a.bson: {line}")), "{line}: {}", seen.stderr);
    }
    bson(&place, "convert b.bson --to csv --column n:int").fails().complains_of(&["found -0.0", "in n"]);
    bson(&place, "convert b.bson --to csv --column n:double").succeeds().prints("n\n-0.0\n");
    bson(&place, "convert b.bson --to csv --column m:int --column x.y:int -o b.csv").fails().complains_of(&[
        "b.bson: key missing",
        "in x.y",
        "--absent null",
    ]);
    assert_eq!(place.names(), ["a.bson", "b.bson"]);
    bson(&place, "convert b.bson --to csv --column m:int --column x.y:int --absent null")
        .exits(0)
        .prints("m,x.y\n1,\n")
        .complains_of(&["only nulls in x.y, which no document has"]);
    let place = Place::new().file("e.bson", documents(&["{}", "{}"]));
    for to in ["csv", "parquet"] {
        let words = format!("convert e.bson --to {to} -o e.out");
        bson(&place, &words).fails().complains_of(&["documents without a member"]);
    }
}

#[test]
#[cfg(feature = "parquet")]
fn columns_that_change_after_inference_name_the_helpful_option() {
    let texts = [r#"{"n": 1, "d": {"x": 1}}"#, r#"{"n": {"$numberLong": "4294967296"}, "d": {"x": 1}}"#, r#"{"d": 5}"#];
    let place = Place::new().file("a.bson", documents(&texts[..2])).file("b.bson", documents(&[texts[0], texts[2]]));
    bson(&place, "convert a.bson --to csv").succeeds().prints("n,d.x\n1,1\n4294967296,1\n");
    bson(&place, "convert a.bson --to csv --infer 1").fails().complains_of(&[
        "value out of range: found 4294967296",
        "as inferred from the first 1 documents",
        "raise --infer, name the columns with --column",
    ]);
    // Arrow stores d unchanged, and CSV stores its members: neither loses the 5.
    for to in ["arrow", "csv"] {
        let line = format!("convert b.bson --to {to} --infer 1 -o out");
        bson(&place, &line).fails().complains_of(&["in d,", "record 1"]);
    }
}

#[test]
fn options_without_a_use_are_refused_before_opening() {
    let place = Place::new();
    for (words, complaint) in [
        ("get none a --canonical --as npy", "--canonical with --as npy"),
        ("get none a --canonical --as raw", "--canonical with --as raw"),
        ("get none a --canonical --as julia", "--canonical with --as julia"),
        ("cat --", "expected a command after '--'"),
        ("count --", "expected a command after '--'"),
    ] {
        bson(&place, words).gets_refused().complains_of(&[complaint]);
    }
}

#[test]
#[cfg(feature = "parquet")]
fn options_of_convert_without_a_use_are_refused_before_opening() {
    let place = Place::new();
    for (words, complaint) in [
        ("none --to ndjson --column a:int", "--column with --from bson and --to jsonl"),
        ("none --to ndjson --infer 3", "--infer with --from bson and --to jsonl"),
        ("none --to ndjson --mixed error", "--mixed with --from bson and --to jsonl"),
        ("none --to ndjson --mismatch null", "--mismatch with --from bson and --to jsonl"),
        ("none --to ndjson --unknown count", "--unknown with --from bson and --to jsonl"),
        ("none --to jsonl --schema s", "--schema with --from bson and --to jsonl"),
        ("none --to csv --compression zstd", "--compression with --to csv, expected --to parquet or arrow"),
        ("none --to arrow --compression snappy", "expected --compression lz4, zstd or none"),
        ("none --to parquet --compression lz4", "expected --compression zstd, snappy or none"),
        ("none --to parquet --null NA", "--null with --from bson"),
        ("none --to csv --canonical", "--canonical with --to csv"),
        ("none --print-schema --canonical", "--canonical with --print-schema"),
        ("none --to csv --null a,b", "expected a text without commas"),
        ("none --to csv --absent null", "--absent without columns"),
        ("none --to csv --infer 0", "expected a number, 'all' or 'off'"),
        ("none --to csv --mixed error --column a:int", "cannot be used with"),
        ("none --to csv --schema s --column a:int", "cannot be used with"),
        ("none --to csv --no-header", "--no-header with --from bson"),
        ("none --to csv --csv-quote x", "--csv-quote with --from bson"),
        ("none --to csv --from csv", "--from csv with 'bson convert'"),
        ("none --to csv --rejects r --on-bad stop", "--rejects with --on-bad stop"),
    ] {
        bson(&place, "convert").and(words).gets_refused().complains_of(&[complaint]);
    }
    for option in ["--column a:int", "--mixed error", "--unknown count", "--canonical"] {
        place.words("convert a.csv --to jsonl").and(option).gets_refused().complains_of(&["--from bson"]);
    }
}

#[test]
#[cfg(feature = "parquet")]
fn convert_reports_counts_and_skipped_data() {
    let [good, worse] = [r#"{"n": 1}"#, r#"{"n": "x"}"#].map(|text| documents(&[text]));
    let mut bad = good.clone();
    bad[4] = 0x77;
    let place = Place::new().file("a.bson", good.repeat(3)).file("b.bson", [&good[..], &bad, &worse].concat());
    for to in ["parquet", "ndjson"] {
        let line = format!("convert a.bson --to {to} --count");
        bson(&place, &format!("{line} -o a.out")).succeeds().prints("3 rows, 36 bytes\n");
        let seen = bson(&place, &line).exits(0).says("3 rows, 36 bytes\n");
        assert!(!seen.stdout.starts_with(b"3 rows"));
    }
    let shown = on_a_terminal(bson(&place, "convert a.bson --to csv -o a.csv"), false);
    assert!(shown.ends_with("3 rows, 36 bytes\r\n"), "{shown}");
    // Lines of JSON have no columns that a value must fit.
    let seen = bson(&place, "convert b.bson --to ndjson --on-bad skip --count -o b.out").fails();
    let seen = seen.prints("2 rows, 38 bytes, 1 bad record\n");
    assert!(seen.stderr.starts_with("millstream: left out: b.bson: document invalid"), "{}", seen.stderr);
    assert!(seen.stderr.contains("found 1 bad record, expected none"), "{}", seen.stderr);
    for to in ["parquet", "csv", "arrow"] {
        let line = format!("convert b.bson --to {to} --on-error skip --column n:long --count -o b.out");
        let seen = bson(&place, &line).fails().prints("1 row, 38 bytes, 2 bad records\n");
        for said in ["left out: b.bson: document invalid", "record 1 ", "found a value of type string", "record 2 "] {
            assert!(seen.stderr.contains(said), "{}", seen.stderr);
        }
    }
}

#[test]
fn a_closed_consumer_ends_the_command() {
    let document = documents(&ORDERS);
    let place = Place::new().file("many.bson", document.repeat(20_000));
    let mut cat = bson(&place, "cat many.bson").start();
    cat.prints("{");
    cat.stop_reading();
    cat.dies_by(Signal::PIPE);
}

#[test]
fn ls_of_an_endless_stream_reads_only_its_start() {
    let place = orders();
    let seen = bson(&place, "ls /dev/stdin").stdin_from(endless(&place)).succeeds();
    assert!(seen.stdout.starts_with(b"document [0] at byte 0: 4 members"));
}

/// A pipe into which a thread writes documents while it is read.
fn endless(place: &Place) -> std::process::ChildStdout {
    let line = "while cat orders.bson; do :; done 2>/dev/null";
    let mut shell = std::process::Command::new("sh");
    let path = place.path("orders.bson");
    shell.args(["-c", line]).current_dir(path.parent().unwrap()).stdout(std::process::Stdio::piped());
    shell.spawn().unwrap().stdout.unwrap()
}

/// A store with the object `a.bson`, which refuses requests that are signed or have no key.
#[cfg(feature = "remote")]
pub(crate) fn locked_store() -> Store {
    let store = Store::new(Dialect::S3, |request| {
        let has = |name: &str| request.headers.contains_key(name);
        if has("x-key") && !has("authorization") { Fault::None } else { Fault::Status(403) }
    });
    let (key, bytes) = ("a.bson".to_string(), documents(&[r#"{"a": 1}"#, r#"{"a": 2}"#]));
    store.content().objects.insert(key.clone(), Stored { key, bytes, ..Stored::default() });
    store
}

/// Adds the options that this store needs.
#[cfg(feature = "remote")]
pub(crate) fn unlocked(words: Words, store: &Store) -> Words {
    let words = words.word("--endpoint").word(format!("http://{}", store.address));
    words.and("--anonymous --http-header").word("X-Key: open")
}

#[test]
#[cfg(feature = "remote")]
fn objects_are_requested_as_the_options_say() {
    let (store, place) = (locked_store(), Place::new());
    for (words, expected) in [
        ("cat s3://bucket/a.bson", "{\"a\":1}\n{\"a\":2}\n"),
        ("check s3://bucket/a.bson", "2 documents, 24 bytes: right\n"),
        ("count s3://bucket/a.bson", "2 documents, 24 bytes\n"),
        ("get s3://bucket/a.bson [1].a", "2\n"),
        ("ls s3://bucket/a.bson a", "a  int  1\n"),
    ] {
        unlocked(bson(&place, words), &store).succeeds().prints(expected);
    }
    #[cfg(feature = "parquet")]
    {
        unlocked(bson(&place, "convert s3://bucket/a.bson --to ndjson -o s3://bucket/b.jsonl"), &store).succeeds();
        assert_eq!(store.content().objects["b.jsonl"].bytes, b"{\"a\":1}\n{\"a\":2}\n");
    }
}

#[test]
fn options_of_outputs_are_refused_where_nothing_is_uploaded() {
    let place = orders();
    for command in ["ls", "get", "cat", "check", "count"] {
        for option in ["--part-size", "--size-hint"] {
            bson(&place, &format!("{command} orders.bson {option} 8M")).gets_refused().complains_of(&[option]);
        }
    }
}
