//! What `millstream convert` writes, reads back, and refuses.

use rustix::process::Signal;

use crate::bson::documents;
#[cfg(feature = "remote")]
use crate::bson::{locked_store, unlocked};
#[cfg(feature = "remote")]
use crate::killed::at_versitygw;
use crate::place::{Place, Words};
use crate::terminal::on_a_terminal;
#[cfg(feature = "remote")]
use crate::versitygw::versitygw;

const TABLE: &str = "\
id,name,x,day,at,flag
1,Ann,1.5,2024-02-29,2024-01-02T03:04:05,true
2,\"Bob, \"\"Jr.\"\"\",0.1,1999-12-31,2024-01-02T03:04:05.250,false
3,\"\",-7.0,0001-01-01,1969-12-31T23:59:59.999999,true
";

fn table() -> Place {
    Place::new().file("t.csv", TABLE)
}

fn convert(place: &Place, words: &str) -> Words {
    place.words("convert").and(words)
}

const SCHEMA: &str = "{\"fields\":[{\"name\":\"id\",\"type\":\"int64\"},{\"name\":\"name\",\"type\":\"string\"},\
    {\"name\":\"x\",\"type\":\"float64\"},{\"name\":\"day\",\"type\":\"date32\"},\
    {\"name\":\"at\",\"type\":\"timestamp[us]\"},{\"name\":\"flag\",\"type\":\"bool\"}]}\n";

#[test]
fn values_and_types_come_back_from_every_format() {
    let place = table();
    convert(&place, "t.csv --print-schema").succeeds().prints(SCHEMA);
    for (output, words) in [
        ("t.parquet", ""),
        ("snappy.parquet", "--compression snappy"),
        ("plain.parquet", "--compression none --dictionary off"),
        ("small.parquet", "--compression zstd:19 --row-group-size 2 -j 3"),
        ("t.arrow", ""),
        ("t.feather", "-j 2"),
        ("lz4.arrow", "--compression lz4"),
        ("zstd.arrow", "--compression zstd:19"),
        ("plain.arrow", "--compression none"),
        ("t.arrows", ""),
        ("lz4.arrows", "--compression lz4"),
        ("zstd.arrows", "--compression zstd"),
        ("t.arrows.gz", ""),
    ] {
        convert(&place, &format!("t.csv -o {output}")).and(words).succeeds();
        convert(&place, &format!("{output} --to csv")).succeeds().prints(TABLE);
        convert(&place, &format!("{output} --print-schema")).succeeds().prints(SCHEMA);
    }
    convert(&place, "t.csv -o again.csv.gz").succeeds();
    convert(&place, "again.csv.gz --to csv").succeeds().prints(TABLE);
    convert(&place, "again.csv.gz --print-schema").succeeds().prints(SCHEMA);
    let lines = "{\"id\":1,\"name\":\"Ann\",\"x\":1.5,\"day\":\"2024-02-29\",\
        \"at\":\"2024-01-02T03:04:05\",\"flag\":true}\n\
        {\"id\":2,\"name\":\"Bob, \\\"Jr.\\\"\",\"x\":0.1,\"day\":\"1999-12-31\",\
        \"at\":\"2024-01-02T03:04:05.250\",\"flag\":false}\n\
        {\"id\":3,\"name\":\"\",\"x\":-7.0,\"day\":\"0001-01-01\",\
        \"at\":\"1969-12-31T23:59:59.999999\",\"flag\":true}\n";
    convert(&place, "t.parquet --to jsonl").succeeds().prints(lines);
    convert(&place, "t.csv --to ndjson").succeeds().prints(lines);
}

#[test]
fn every_type_of_a_schema_comes_back() {
    let schema = "{\"fields\":[{\"name\":\"u\",\"type\":\"uint64\"},{\"name\":\"d\",\"type\":\"decimal128(20, 3)\"},\
        {\"name\":\"t\",\"type\":\"time64[ns]\"},{\"name\":\"z\",\"type\":\"timestamp[ns, +02:00]\"},\
        {\"name\":\"f\",\"type\":\"float32\",\"nullable\":false},{\"name\":\"s\",\"type\":\"int8\"}]}\n";
    let text = "u,d,t,z,f,s\n18446744073709551615,-0.125,23:59:59.123456789,\
        2024-01-01T00:00:00.000000001+02:00,0.1,-128\n\
        0,12345678901234567.000,00:00:00.000000000,1999-01-01T01:00:00.000000000+02:00,NaN,\n";
    let place = Place::new().file("t.csv", text).file("s.json", schema);
    for output in ["t.parquet", "t.arrow"] {
        convert(&place, &format!("t.csv --schema s.json -o {output} --null")).word("").succeeds();
        convert(&place, &format!("{output} --print-schema")).succeeds().prints(schema);
        convert(&place, &format!("{output} --to csv")).succeeds().prints(text);
    }
    // JSON has no NaN.
    convert(&place, "t.parquet --to jsonl -o out.jsonl").fails().complains_of(&["NaN", "in f", "record 1"]);
    assert!(!place.names().contains(&"out.jsonl".to_string()));
}

#[test]
fn null_differs_from_empty_text() {
    let place = Place::new().file("t.csv", "a,b\n,\"\"\nNA,x\n\"NA\",\"\"\n");
    convert(&place, "t.csv -o t.parquet --null NA --null").word("").succeeds();
    convert(&place, "t.parquet --to csv").succeeds().prints("a,b\n,\"\"\n,x\nNA,\"\"\n");
    convert(&place, "t.parquet --to csv --null NA").succeeds().prints("a,b\nNA,\"\"\nNA,x\n\"NA\",\"\"\n");
    let lines = "{\"a\":null,\"b\":\"\"}\n{\"a\":null,\"b\":\"x\"}\n{\"a\":\"NA\",\"b\":\"\"}\n";
    convert(&place, "t.parquet --to jsonl").succeeds().prints(lines);
    // By default no text is null.
    convert(&place, "t.csv --to jsonl")
        .succeeds()
        .prints("{\"a\":\"\",\"b\":\"\"}\n{\"a\":\"NA\",\"b\":\"x\"}\n{\"a\":\"NA\",\"b\":\"\"}\n");
    // A line with nothing in it would not be read back.
    let place = Place::new().file("t.csv", "a\nx\n\"\"\nNA\n");
    convert(&place, "t.csv --null NA -o t.parquet").succeeds();
    convert(&place, "t.parquet --to csv").exits(2).complains_of(&["null in the only column, a", "--null TEXT"]);
    convert(&place, "t.parquet --to csv --null NA").succeeds().prints("a\nx\n\"\"\nNA\n");
}

#[test]
fn lines_tabs_and_dialects() {
    let place =
        Place::new().file("a.log", "one\n\"two\n").file("t.tsv", "a\tb\n1\t2,5\n").file("d.csv", "a;b\n1;'x;y'\n");
    convert(&place, "a.log --to jsonl").succeeds().prints("{\"line\":\"one\"}\n{\"line\":\"\\\"two\"}\n");
    convert(&place, "t.tsv --to csv").succeeds().prints("a,b\n1,\"2,5\"\n");
    convert(&place, "d.csv --csv-delimiter ; --csv-quote ' --to csv").succeeds().prints("a,b\n1,x;y\n");
    convert(&place, "d.csv --csv-delimiter ; --csv-quote ' --no-header --to csv")
        .succeeds()
        .prints("0,1\na,b\n1,x;y\n");
    let place = Place::new().file("r.csv", "a,b\n1,2\n3\n4,5,6\n");
    convert(&place, "r.csv --to csv")
        .fails()
        .complains_of(&["r.csv: field count mismatch: found 1 field, expected 2", "line 3"]);
    convert(&place, "r.csv --to csv --ragged pad").fails().complains_of(&["found 3 fields", "line 4"]);
    convert(&place, "r.csv --to csv --ragged collect")
        .gets_refused()
        .complains_of(&["--ragged collect", "error or pad"]);
    convert(&place, "r.csv --to jsonl --ragged pad --max-rejects 1")
        .exits(0)
        .prints("{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":null}\n");
}

#[test]
fn sources_are_joined_by_the_names_of_their_columns() {
    let place = table()
        .file("u.csv", "flag,id,name,x,day,at\nfalse,4,Eve,2.0,2020-01-01,2020-01-01T00:00:00\n")
        .file("more.csv", "id,name,x,day,at,flag,other\n")
        .file("less.csv", "id,name\n5,Zoe\n")
        .file("types.csv", TABLE.replace("\n1,", "\nx,"));
    let joined = format!("{TABLE}4,Eve,2.0,2020-01-01,2020-01-01T00:00:00,false\n");
    convert(&place, "t.csv u.csv --to csv").succeeds().prints(&joined);
    convert(&place, "t.csv u.csv --to csv -j 2").succeeds().prints(&joined);
    convert(&place, "t.csv --from csv --to csv -- cat u.csv").succeeds().prints(&joined);
    convert(&place, "t.csv more.csv -o out.csv").fails().complains_of(&["more.csv: ", "in other"]);
    convert(&place, "t.csv more.csv -o out.csv --infer off").fails().complains_of(&["more.csv: ", "in other"]);
    convert(&place, "t.csv less.csv -o out.csv").fails().complains_of(&["less.csv: key missing", "in x"]);
    convert(&place, "t.csv types.csv -o out.csv").fails().complains_of(&[
        "types.csv: ",
        "found \"x\"",
        "in id",
        "line 2",
    ]);
    assert!(!place.names().contains(&"out.csv".to_string()));
}

#[test]
fn standard_input_and_commands_need_a_format() {
    let place = table();
    convert(&place, "--from csv --to csv").stdin(TABLE).succeeds().prints(TABLE);
    convert(&place, "- --to csv")
        .stdin(TABLE)
        .gets_refused()
        .complains_of(&["standard input as source", "--from FORMAT"]);
    convert(&place, "--to csv -- cat t.csv").gets_refused().complains_of(&["a command as source", "--from FORMAT"]);
    convert(&place, "t.csv").gets_refused().complains_of(&["--to FORMAT"]);
    convert(&place, "t.csv -o x.dat").gets_refused().complains_of(&["x.dat, whose name implies no format"]);
    convert(&place, "t.unknown --to csv").gets_refused().complains_of(&["t.unknown, whose name implies no format"]);
    convert(&place, "t.csv t.tsv --to csv").gets_refused().complains_of(&["t.csv (csv) and t.tsv (tsv)"]);
    convert(&place, "--from csv -o x.parquet -- false")
        .fails()
        .complains_of(&["the command `false` exited with status 1"]);
    assert_eq!(place.names(), ["t.csv"]);
}

#[test]
fn a_source_that_is_not_what_it_has_to_be_gives_no_output() {
    let place = Place::new();
    let words = |expected: u32| format!("--from csv -o out.csv --expect-bytes {expected} -");
    convert(&place, &words(TABLE.len() as u32)).stdin(TABLE).succeeds();
    std::fs::remove_file(place.path("out.csv")).unwrap();
    convert(&place, &words(TABLE.len() as u32 + 1)).stdin(TABLE).fails().complains_of(&["content mismatch"]);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_is_opened() {
    let place = Place::new();
    for (words, parts) in [
        ("a.csv --from csv --infer all --to csv -- cat", &["--infer all with a command"][..]),
        ("--from csv --infer all --to csv -", &["--infer all with standard input", "--infer COUNT"]),
        ("a.csv --schema s --infer 3 --to csv", &["cannot be used with"]),
        ("a.csv --infer off --decimals --to csv", &["--decimals without inference"]),
        ("a.log --no-header --to csv", &["--no-header with --from lines"]),
        ("a.log --csv-quote x --to csv", &["--csv-quote with --from lines"]),
        ("a.parquet --infer 3 --to csv", &["--infer with --from parquet"]),
        ("a.parquet --rejects r --to csv", &["--rejects with --from parquet"]),
        ("--from parquet --to csv", &["--from parquet with standard input"]),
        ("a.csv --to csv --compression snappy", &["--compression with --to csv"]),
        ("a.csv -o a.parquet --compression zstd:40", &["expected a level from 1 to 22"]),
        ("a.csv -o a.arrow --compression lz4:3", &["expected lz4 without a level"]),
        ("a.csv -o a.parquet --compression snappy:1", &["expected snappy without a level"]),
        ("a.csv -o a.arrow --compression snappy", &["--compression snappy with --to arrow", "lz4, zstd or none"]),
        ("a.csv -o a.parquet --compression lz4", &["--compression lz4 with --to parquet", "zstd, snappy or none"]),
        ("a.csv -o a.arrow --dictionary off", &["--dictionary with --to arrow", "--to parquet"]),
        ("a.csv --print-schema --compression lz4", &["--compression with --print-schema"]),
        ("a.csv -o a.parquet.gz", &["a name that implies compression"]),
        ("a.csv -o a.parquet --stop-grace 1s", &["--stop-grace without a command"]),
        ("a.csv -o b.csv --max-rejects 101%", &["expected a number, or a share"]),
        ("a.csv -o b.csv --max-rejects 1 --on-bad stop", &["--max-rejects with --on-bad stop"]),
        ("a.csv --print-schema --to csv", &["cannot be used with"]),
        ("a.csv b.csv --expect-bytes 3 -o c.csv", &["--expect-bytes with several sources"]),
        ("a.parquet --expect-records 3 --to csv", &["--expect-records with --from parquet"]),
        ("- - --from csv --to csv", &["standard input as a source more than once"]),
    ] {
        convert(&place, words).stdin("").gets_refused().complains_of(parts);
    }
    let place = table();
    convert(&place, "t.csv -o x.csv --rejects t.csv")
        .fails()
        .complains_of(&["t.csv: open failed", "one of the sources"]);
    convert(&place, "t.csv -o x.csv --rejects x.csv").fails().complains_of(&["x.csv: open failed"]);
    assert_eq!(place.text("t.csv"), TABLE);
}

#[test]
fn bad_input_leaves_nothing() {
    let gz = |text: &str| {
        use std::io::Read;
        let mut child = std::process::Command::new("gzip")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
        child.wait().unwrap();
        bytes
    };
    let rows: String = (0..20_000).map(|i| format!("{i},{}\n", i * 7)).collect();
    let whole = gz(&format!("a,b\n{rows}"));
    let place = Place::new()
        .file("cut.csv.gz", &whole[..whole.len() / 2])
        .file("open.csv", "a,b\n1,2\n3,\"x\n")
        .file("twice.csv", "a,a\n1,2\n")
        .file("empty.csv", "")
        .file("blank.csv", "\n\n")
        .file("late.csv", format!("a,b\n{rows}x,1\n"))
        .file("utf8.csv", b"a\nx\n\xff\n")
        .file("missing.json", "{\"fields\": [{\"name\": \"c\", \"type\": \"bool\"}]}")
        .file("types.json", "{\"fields\": [{\"name\": \"a\", \"type\": \"int\"}]}")
        .file("x.parquet", "PAR1 no table PAR1")
        .file("x.arrow", "ARROW1")
        .file("x.arrows", "\u{ff}\u{ff}");
    let names = place.names();
    for (words, parts) in [
        ("cut.csv.gz", &["cut.csv.gz: decode truncated"][..]),
        ("open.csv", &["open.csv: csv invalid: found a quote that no other quote closes", "line 3, column 3"]),
        ("twice.csv", &["twice.csv: ", "two columns \"a\""]),
        ("empty.csv", &["empty.csv: ", "found no record", "a header"]),
        ("blank.csv", &["blank.csv: ", "found no record"]),
        ("empty.csv --no-header", &["found no record"]),
        ("late.csv", &["late.csv: ", "found \"x\", expected int64", "in a", "line 20002, column 1", "raise --infer"]),
        ("late.csv -j 2", &["late.csv: ", "found \"x\", expected int64", "in a", "line 20002, column 1"]),
        ("utf8.csv --infer off", &["utf8.csv: ", "in a", "line 3"]),
        ("late.csv --schema missing.json", &["late.csv: key missing", "in c"]),
        ("late.csv --schema nowhere.json", &["nowhere.json: open failed"]),
        ("x.parquet", &["x.parquet: "]),
        ("x.arrow", &["x.arrow: "]),
        ("x.arrows", &["x.arrows: "]),
        ("nowhere.csv", &["nowhere.csv: open failed"]),
    ] {
        convert(&place, words).and("-o out.parquet").fails().complains_of(parts);
        assert_eq!(place.names(), names, "{words}");
    }
    convert(&place, "late.csv --schema types.json -o out.parquet")
        .gets_refused()
        .complains_of(&["types.json: ", "the type \"int\""]);
    convert(&place, "late.csv --infer all --print-schema")
        .succeeds()
        .prints("{\"fields\":[{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"int64\"}]}\n");
    convert(&place, "late.csv --infer all -o late.parquet --count")
        .succeeds()
        .prints(format!("20001 rows, {} bytes\n", place.read("late.csv").len()));
}

/// The size of a decompressed buffer is announced before its bytes.
#[test]
fn damaged_arrow_takes_no_memory() {
    let rows: String = (0..20_000).map(|row| format!("{row}\n")).collect();
    let place = Place::new().file("a.csv", format!("n\n{rows}"));
    for (from, compression) in [("arrow", "lz4"), ("arrow", "zstd"), ("arrow-stream", "lz4"), ("arrow-stream", "zstd")]
    {
        convert(&place, &format!("a.csv --to {from} --compression {compression} -o whole")).succeeds();
        let mut bytes = place.read("whole");
        let announced = (8 * 20_000_i64).to_le_bytes();
        let at = bytes.windows(8).position(|bytes| bytes == announced).unwrap();
        bytes[at..at + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
        std::fs::write(place.path("damaged"), bytes).unwrap();
        convert(&place, &format!("damaged --from {from} -o out.csv")).within(64).fails().complains_of(&[
            "damaged: decode damaged: found a compressed buffer of ",
            " bytes for 1099511627776, expected at most ",
        ]);
        convert(&place, &format!("whole --from {from} -o out.csv --record-limit 9K")).fails().complains_of(&[
            "whole: memory limit: found a decompressed batch of 160000 bytes, expected at most 147456",
            "raise --record-limit",
        ]);
        assert_eq!(place.names(), ["a.csv", "damaged", "whole"]);
    }
}

#[test]
fn arrow_can_be_compressed() {
    let rows: String = (0..20_000).map(|row| format!("{row},value {}\n", row % 7)).collect();
    let place = Place::new().file("a.csv", format!("n,s\n{rows}"));
    let size = |words: &str| {
        convert(&place, &format!("a.csv --to arrow -o out {words}")).succeeds();
        convert(&place, "out --from arrow --to csv").succeeds().prints(format!("n,s\n{rows}"));
        place.read("out").len()
    };
    let plain = size("");
    assert_eq!(plain, size("--compression none"));
    for words in ["--compression lz4", "--compression zstd", "--compression zstd:19"] {
        let compressed = size(words);
        assert!(compressed < plain * 2 / 3, "{words}: {compressed} of {plain} bytes");
    }
}

#[test]
fn types_are_inferred_from_all_sources() {
    let place = Place::new()
        .file("1.csv", "a,b,c\n1,2,true\n")
        .file("2.csv", "b,c,a\n2.5,false,x\n")
        .file("3.csv", "c,a,b\ntrue,3,4\n")
        .file("other.csv", "a,b,d\n1,2,3\n")
        .file("short.csv", "a,b\n1,2\n")
        .file("1.jsonl", "{\"a\": 1}\n")
        .file("2.jsonl", "{\"b\": [\"x\"], \"a\": null}\n{\"a\": 0.5}\n")
        .file("1.json", "[{\"a\": 1}]")
        .file("2.json", "[{\"a\": \"x\"}]");
    convert(&place, "1.csv 2.csv -o out.csv").fails().complains_of(&["2.csv: "]);
    for (sources, types) in [
        (
            "1.csv 2.csv 3.csv",
            r#"{"name":"a","type":"string"},{"name":"b","type":"float64"},{"name":"c","type":"bool"}"#,
        ),
        ("1.jsonl 2.jsonl", r#"{"name":"a","type":"float64"},{"name":"b","type":"list","item":{"type":"string"}}"#),
        ("1.json 2.json", r#"{"name":"a","type":"json"}"#),
    ] {
        let printed = format!("{{\"fields\":[{types}]}}\n");
        convert(&place, sources).and("--infer all --print-schema").succeeds().prints(printed);
    }
    convert(&place, "1.csv 2.csv 3.csv --infer all --to csv")
        .succeeds()
        .prints("a,b,c\n1,2.0,true\nx,2.5,false\n3,4.0,true\n");
    convert(&place, "1.jsonl 2.jsonl --infer all --to jsonl")
        .succeeds()
        .prints("{\"a\":1.0,\"b\":null}\n{\"a\":null,\"b\":[\"x\"]}\n{\"a\":0.5,\"b\":null}\n");
    for (words, parts) in [
        ("1.csv other.csv", &["other.csv: key missing", "in c"][..]),
        ("1.csv short.csv", &["short.csv: key missing", "in c"]),
        ("short.csv 1.csv", &["1.csv: shape mismatch", "a column that was not inferred", "in c"]),
        ("1.csv nowhere.csv", &["nowhere.csv: open failed"]),
    ] {
        convert(&place, words).and("--from csv --infer all -o out.csv").fails().complains_of(parts);
        assert!(!place.path("out.csv").exists());
    }
}

#[test]
fn bad_records_are_counted_and_kept() {
    let rows: String = (0..12_000).map(|i| format!("{i},{i}\n")).collect();
    let place = Place::new().file("t.csv", format!("a,b\n{rows}x,1\n2,3,4\n5,6\n"));
    let seen = convert(&place, "t.csv -o t.parquet --rejects bad.jsonl --count --stats s.json").exits(0);
    seen.prints(format!("12001 rows, {} bytes, 2 bad records\n", place.read("t.csv").len()))
        .says("millstream: 2 bad records: see bad.jsonl\n");
    let lines: Vec<serde_json::Value> =
        place.text("bad.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["source"], "t.csv");
    assert_eq!((&lines[0]["kind"], &lines[0]["line"]), (&"shape_mismatch".into(), &12_002.into()));
    assert_eq!((&lines[1]["kind"], &lines[1]["raw"]), (&"field_count_mismatch".into(), &"MiwzLDQ=".into()));
    let stats: serde_json::Value = serde_json::from_str(&place.text("s.json")).unwrap();
    assert_eq!((&stats["rows"], &stats["rejected"], &stats["complete"]), (&12_001.into(), &2.into(), &true.into()));
    convert(&place, "t.csv -o few.csv --max-rejects 2").exits(0);
    convert(&place, "t.csv -o share.csv --max-rejects 0.02%").exits(0);
    assert_eq!(place.text("few.csv").lines().count(), 12_002);
    for words in ["--max-rejects 1", "--max-rejects 0.01%", "--max-rejects 1 --rejects none.jsonl"] {
        let seen = convert(&place, "t.csv -o none.csv").and(words).fails();
        assert!(seen.stderr.contains("2 bad records, expected at most"), "{}", seen.stderr);
    }
    assert!(!place.names().iter().any(|name| name.starts_with("none")), "{:?}", place.names());
    // The output lacks records, and nothing permits that.
    let seen = convert(&place, "t.csv -o skipped.csv --on-bad skip").fails();
    assert!(seen.stderr.contains("found 2 bad records, expected none; the output lacks them"), "{}", seen.stderr);
    assert_eq!(place.text("skipped.csv"), place.text("few.csv"));
}

#[test]
fn json_comes_back() {
    let lines = "{\"id\":1,\"tags\":[\"a\",\"b\"],\"in\":{\"x\":1.5,\"y\":null},\"any\":1}\n\
        {\"id\":2,\"tags\":[],\"in\":{\"x\":-2.0,\"y\":true},\"any\":[2,{\"z\":\"\"}]}\n\
        {\"id\":3,\"tags\":null,\"in\":{\"x\":0.1,\"y\":false},\"any\":\"x\"}\n";
    let array = format!("{{\"items\": [{}]}}", lines.trim_end().replace('\n', ", "));
    let place = Place::new().file("t.jsonl", lines).file("t.json", array);
    convert(&place, "t.jsonl --to jsonl").succeeds().prints(lines);
    convert(&place, "t.json --json-pointer /items --to jsonl").succeeds().prints(lines);
    for output in ["t.parquet", "t.arrow"] {
        convert(&place, &format!("t.jsonl -j 2 -o {output}")).succeeds();
        convert(&place, &format!("{output} --to jsonl")).succeeds().prints(lines);
    }
    convert(&place, "t.jsonl --to csv --null NULL").succeeds().prints(
        "id,tags,in.x,in.y,any\n1,\"[\"\"a\"\",\"\"b\"\"]\",1.5,NULL,1\n2,[],-2.0,true,\"[2,{\"\"z\"\":\"\"\"\"}]\"\n\
        3,NULL,0.1,false,\"\"\"x\"\"\"\n",
    );
    convert(&place, "t.jsonl --null NA --to jsonl").gets_refused().complains_of(&["--null with --from jsonl"]);
    convert(&place, "t.json --to jsonl")
        .fails()
        .complains_of(&["t.json: shape mismatch: found an object, expected an array"]);
    let place = Place::new().file("t.jsonl", "{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n{\"a\": tru}\n{\"a\": 3}\n");
    convert(&place, "t.jsonl --to jsonl -o out.jsonl").fails().complains_of(&["t.jsonl: json invalid", "line 2"]);
    convert(&place, "t.jsonl -o out.jsonl --max-rejects 1 --json-duplicates last").exits(0);
    assert_eq!(place.text("out.jsonl"), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
}

#[test]
fn parquet_contains_its_sources_and_counts() {
    let place = table();
    convert(&place, "t.csv t.csv -o t.parquet --row-group-size 4").succeeds();
    let bytes = place.read("t.parquet");
    let text = String::from_utf8_lossy(&bytes);
    for part in ["millstream.sources", "[\"t.csv\",\"t.csv\"]", "millstream.rows", "millstream.rejected"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn bson_is_converted_as_by_its_own_command() {
    let texts = [r#"{"n": 1, "s": "x", "d": {"e": [1, 2]}}"#, r#"{"n": 2, "s": null, "d": {"e": []}}"#];
    let place = Place::new().file("a.bson", documents(&texts));
    for (to, own) in [
        ("parquet", "parquet"),
        ("arrow", "arrow"),
        ("arrow-stream", "arrow-stream"),
        ("csv", "csv"),
        ("jsonl", "ndjson"),
    ] {
        convert(&place, &format!("a.bson --to {to} -o new")).succeeds();
        place.words(&format!("bson convert a.bson --to {own} -o old")).succeeds();
        assert!(place.read("new") == place.read("old"), "{to}");
    }
    // As `mongodump --gzip` writes it.
    place.run("a.bson --bson -o a.bson.gz").succeeds();
    assert!(place.read("a.bson.gz").starts_with(b"\x1f\x8b"));
    // Parquet contains the name of its source.
    for name in ["a.bson", "a.bson.gz"] {
        convert(&place, &format!("{name} --to parquet -o {name}.parquet")).succeeds();
        convert(&place, &format!("{name}.parquet --to jsonl -o {name}.jsonl")).succeeds();
    }
    assert_eq!(place.text("a.bson.gz.jsonl"), place.text("a.bson.jsonl"));
    assert_eq!(place.text("a.bson.jsonl").lines().count(), 2);
    convert(&place, "--from bson --to csv --null NA --infer 1 --count -o c.csv -- cat a.bson")
        .succeeds()
        .prints(format!("2 rows, {} bytes\n", place.read("a.bson").len()));
    assert_eq!(place.text("c.csv"), "n,s,d.e\n1,x,\"[1,2]\"\n2,NA,[]\n");
}

#[test]
fn embedded_documents_are_columns_of_csv() {
    let place = Place::new().file(
        "a.bson",
        documents(&[
            r#"{"customer": {"name": "Grüße", "city": "Köln"}, "total": 1.5,
                "items": [{"sku": "a", "n": 1}, {"sku": "b"}], "at": {"$date": "2020-01-02T03:04:05Z"}}"#,
            r#"{"customer": {"name": "x, \"y\"", "city": null}, "total": "1.5", "items": [], "at": null, "s": ""}"#,
        ]),
    );
    let csv = "customer.name,customer.city,total,items,at,s\n\
        Grüße,Köln,1.5,\"[{\"\"sku\"\":\"\"a\"\",\"\"n\"\":1},{\"\"sku\"\":\"\"b\"\"}]\",2020-01-02T03:04:05Z,\n\
        \"x, \"\"y\"\"\",,\"\"\"1.5\"\"\",[],,\"\"\n";
    convert(&place, "a.bson --to csv").succeeds().prints(csv);
}

#[test]
fn no_document_and_no_value() {
    let place = Place::new()
        .file("none.bson", "")
        .file("null.bson", documents(&[r#"{"a": null, "l": [], "d": {}}"#]))
        .file("empty.bson", documents(&["{}", "{}"]));
    for to in ["parquet", "arrow", "arrow-stream", "csv", "jsonl"] {
        for (name, rows) in [("none", "0 rows"), ("null", "1 row"), ("empty", "2 rows")] {
            let words = format!("{name}.bson --to {to} -o {name}.{to} --count");
            if name == "empty" && ["parquet", "csv"].contains(&to) {
                convert(&place, &words).fails().complains_of(&["empty.bson: ", "documents without a member"]);
                continue;
            }
            let seen = convert(&place, &words).succeeds();
            assert!(seen.stdout.starts_with(rows.as_bytes()), "{to} {name}: {}", String::from_utf8_lossy(&seen.stdout));
        }
    }
    assert_eq!(place.text("empty.jsonl"), "{}\n{}\n");
}

#[test]
fn documents_of_several_sources_are_joined() {
    let place = Place::new()
        .file("1.bson", documents(&[r#"{"n": 1, "s": "x"}"#]))
        .file("2.bson", documents(&[r#"{"s": "y", "n": 2}"#, r#"{"n": 3}"#]))
        .file("more.bson", documents(&[r#"{"n": 1, "more": true}"#]))
        .file("types.bson", documents(&[r#"{"n": 0.5, "s": "x"}"#]))
        .file("cut.bson", &documents(&[r#"{"n": 1}"#])[..11]);
    let names = place.names();
    for to in ["parquet", "arrow", "csv"] {
        let seen = convert(&place, &format!("1.bson 2.bson -o out.{to} --count --stats s.json")).succeeds();
        let bytes = place.read("1.bson").len() + place.read("2.bson").len();
        seen.prints(format!("3 rows, {bytes} bytes\n"));
        let csv = "n,s\n1,x\n2,y\n3,\n";
        match to {
            "csv" => assert_eq!(place.text("out.csv"), csv),
            _ => drop(convert(&place, &format!("out.{to} --to csv")).succeeds().prints(csv)),
        }
        let stats: serde_json::Value = serde_json::from_str(&place.text("s.json")).unwrap();
        assert_eq!((&stats["rows"], &stats["complete"]), (&3.into(), &true.into()));
        let rows: Vec<_> = stats["sources"].as_array().unwrap().iter().map(|source| source["rows"].clone()).collect();
        assert_eq!(rows, [1, 2]);
        std::fs::remove_file(place.path(&format!("out.{to}"))).unwrap();
        std::fs::remove_file(place.path("s.json")).unwrap();
    }
    let lines = "{\"n\":1,\"s\":\"x\"}\n{\"s\":\"y\",\"n\":2}\n{\"n\":3}\n";
    convert(&place, "1.bson 2.bson --to jsonl").succeeds().prints(lines);
    let two = Place::new().file("1.bson", place.read("1.bson")).file("2.bson", place.read("2.bson"));
    convert(&two, "*.bson --to jsonl").succeeds().prints(lines);
    place.words("bson convert 1.bson --to jsonl -- cat 2.bson").succeeds().prints(lines);
    for (sources, parts) in [
        ("1.bson more.bson", &["more.bson: shape mismatch", "in more", "record 0"][..]),
        ("1.bson types.bson", &["types.bson: value out of range: found 0.5", "in n"]),
        ("1.bson cut.bson", &["cut.bson: frame truncated"]),
        ("1.bson nowhere.bson", &["nowhere.bson: open failed"]),
    ] {
        convert(&place, sources).and("-o out.parquet").fails().complains_of(parts);
        assert_eq!(place.names(), names, "{sources}");
    }
    convert(&place, "1.bson types.bson more.bson --infer all --to csv")
        .succeeds()
        .prints("n,s,more\n1.0,x,\n0.5,x,\n1.0,,true\n");
    convert(&place, "1.bson types.bson --infer off --to csv")
        .succeeds()
        .prints("n,s\n1,\"\"\"x\"\"\"\n0.5,\"\"\"x\"\"\"\n");
    // A column of --column may be in any of the sources.
    convert(&place, "1.bson more.bson --column n:int --column more:bool --to csv")
        .succeeds()
        .prints("n,more\n1,\n1,true\n");
    convert(&place, "1.bson 2.bson --column n:int --column more:bool -o out.csv").fails().complains_of(&[
        "key missing",
        "in more",
        "--absent null",
    ]);
    assert_eq!(place.names(), names);
}

#[test]
fn bad_documents_are_counted_and_kept() {
    let mut bytes = documents(&[r#"{"n": 1}"#, r#"{"s": "x"}"#, r#"{"n": "y"}"#, r#"{"n": 4, "m": 5}"#, r#"{"n": 6}"#]);
    let at = bytes.iter().position(|&byte| byte == b'x').unwrap();
    bytes[at] = 0xff;
    let place = Place::new().file("a.bson", &bytes).file("b.bson", documents(&[r#"{"n": 7}"#]));
    for to in ["parquet", "csv", "arrow"] {
        let words = format!("a.bson b.bson --infer 1 --to {to} -o out --rejects bad.jsonl --count --stats s.json");
        convert(&place, &words)
            .exits(0)
            .prints(format!("3 rows, {} bytes, 3 bad records\n", bytes.len() + 12))
            .says("millstream: 3 bad records: see bad.jsonl\n");
        convert(&place, &format!("out --from {to} --to csv")).succeeds().prints("n\n1\n6\n7\n");
        let lines: Vec<serde_json::Value> =
            place.text("bad.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<_> = lines.iter().map(|line| (line["record"].as_u64(), line["kind"].as_str())).collect();
        let kind = |record, kind| (Some(record), Some(kind));
        assert_eq!(kinds, [kind(1, "utf8_invalid"), kind(2, "shape_mismatch"), kind(3, "shape_mismatch")]);
        // All of the input is in the output or in the file.
        let raw: Vec<u8> = lines
            .iter()
            .flat_map(|line| data_encoding::BASE64.decode(line["raw"].as_str().unwrap().as_bytes()).unwrap())
            .collect();
        assert_eq!(raw, bytes[12..bytes.len() - 12]);
        let stats: serde_json::Value = serde_json::from_str(&place.text("s.json")).unwrap();
        assert_eq!((&stats["rejected"], &stats["sources"][0]["rejected"]), (&3.into(), &3.into()));
        for limit in ["--max-rejects 3", "--max-rejects 50%"] {
            convert(&place, &format!("a.bson b.bson --infer 1 --to {to} -o few {limit}")).exits(0);
            convert(&place, &format!("few --from {to} --to csv")).succeeds().prints("n\n1\n6\n7\n");
        }
        for limit in ["--max-rejects 2", "--max-rejects 49%", "--max-rejects 2 --rejects none.jsonl"] {
            let seen = convert(&place, &format!("a.bson b.bson --infer 1 --to {to} -o none {limit}")).fails();
            assert!(seen.stderr.contains("bad records, expected at most"), "{}", seen.stderr);
        }
    }
    // With JSON lines, every valid document is a row.
    convert(&place, "a.bson -o out.jsonl --rejects bad.jsonl").exits(0);
    assert_eq!(place.text("out.jsonl"), "{\"n\":1}\n{\"n\":\"y\"}\n{\"n\":4,\"m\":5}\n{\"n\":6}\n");
    assert_eq!(place.text("bad.jsonl").lines().count(), 1);
    // Values that may become null, and members that may be left out, are not bad.
    convert(&place, "a.bson -o out.csv --infer 1 --null NA --mismatch null --unknown count --max-rejects 1").exits(0);
    assert_eq!(place.text("out.csv"), "n\n1\nNA\n4\n6\n");
    convert(&place, "a.bson -o a.csv --infer 1").fails().complains_of(&["a.bson: ", "record 1"]);
    convert(&place, "a.bson --infer 1 -o a.csv --rejects a.bson").fails().complains_of(&["one of the sources"]);
    assert!(!place.names().iter().any(|name| name.starts_with("none") || name == "a.csv"), "{:?}", place.names());
}

#[test]
fn a_file_of_only_bad_documents_takes_little_memory() {
    let (good, mut bad) = (documents(&[r#"{"n": 1}"#]), documents(&[r#"{"s": "x"}"#]));
    let at = bad.iter().position(|&byte| byte == b'x').unwrap();
    bad[at] = 0xff;
    let place = Place::new().file("a.bson", [&good[..], &bad.repeat(500_000), &good].concat());
    for to in ["csv", "jsonl"] {
        convert(&place, &format!("a.bson --to {to} --rejects bad.jsonl -o out")).within(192).exits(0);
        assert_eq!(place.text("bad.jsonl").lines().count(), 500_000);
        assert_eq!(place.text("out").lines().count(), if to == "csv" { 3 } else { 2 });
    }
}

#[test]
fn parts_of_documents() {
    let texts: Vec<String> = (0..20_000).map(|n| format!("{{\"n\": {n}, \"s\": \"text of {n}\"}}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let place = Place::new().file("a.bson", documents(&texts));
    convert(&place, "a.bson --to jsonl -o all.jsonl").succeeds();
    convert(&place, "a.bson --parts 100K -o {}.jsonl").succeeds();
    let parts: Vec<String> = place.names().into_iter().filter(|name| name.starts_with("000")).collect();
    assert!(parts.len() > 1, "{parts:?}");
    assert_eq!(parts.iter().map(|part| place.text(part)).collect::<String>(), place.text("all.jsonl"));
}

#[test]
fn documents_have_a_schema() {
    let text = r#"{"_id": {"$oid": "57e193d7a9cc81b4027498b5"}, "i": 1, "l": {"$numberLong": "2"}, "d": 0.5, "s": "x",
        "b": true, "at": {"$date": "2020-01-02T03:04:05.678Z"}, "dec": {"$numberDecimal": "1.50"},
        "ts": {"$timestamp": {"t": 1, "i": 2}}, "bin": {"$binary": {"base64": "AQID", "subType": "00"}},
        "in": {"x": [1, 2], "y": null}, "any": [1, "x"]}"#;
    let place = Place::new().file("a.bson", documents(&[text]));
    let schema = "{\"fields\":[{\"name\":\"_id\",\"type\":\"bson.objectId\"},{\"name\":\"i\",\"type\":\"int32\"},\
        {\"name\":\"l\",\"type\":\"int64\"},{\"name\":\"d\",\"type\":\"float64\"},{\"name\":\"s\",\"type\":\"string\"},\
        {\"name\":\"b\",\"type\":\"bool\"},{\"name\":\"at\",\"type\":\"timestamp[ms, UTC]\"},\
        {\"name\":\"dec\",\"type\":\"bson.decimal\"},{\"name\":\"ts\",\"type\":\"bson.timestamp\"},\
        {\"name\":\"bin\",\"type\":\"binary\"},{\"name\":\"in\",\"type\":\"struct\",\"fields\":[\
        {\"name\":\"x\",\"type\":\"list\",\"item\":{\"type\":\"int32\"}},{\"name\":\"y\",\"type\":\"null\"}]},\
        {\"name\":\"any\",\"type\":\"list\",\"item\":{\"type\":\"json\"}}]}\n";
    convert(&place, "a.bson --print-schema").succeeds().prints(schema);
    let place = place.file("s.json", schema);
    for output in ["t.parquet", "t.arrow"] {
        convert(&place, &format!("a.bson -o inferred-{output}")).succeeds();
        convert(&place, &format!("a.bson --schema s.json -o {output}")).succeeds();
        assert!(place.read(output) == place.read(&format!("inferred-{output}")));
        // The types are in the metadata of the columns.
        convert(&place, &format!("{output} --print-schema")).succeeds().prints(schema);
    }
    let csv = "_id,i,l,d,s,b,at,dec,ts,bin,in.x,in.y,any\n\
        57e193d7a9cc81b4027498b5,1,2,0.5,x,true,2020-01-02T03:04:05.678Z,1.50,4294967298,AQID,\"[1,2]\",,\"[1,\"\"x\"\"]\"\n";
    convert(&place, "a.bson --schema s.json --to csv").succeeds().prints(csv);
    convert(&place, "a.bson --to csv").succeeds().prints(csv);
    let lines = "\"_id\":\"57e193d7a9cc81b4027498b5\"";
    let seen = convert(&place, "t.parquet --to jsonl").succeeds();
    let printed = String::from_utf8(seen.stdout).unwrap();
    assert!(printed.contains(lines) && printed.contains("\"dec\":\"1.50\""), "{printed}");
}

#[test]
fn a_schema_chooses_the_columns_of_documents() {
    let place = Place::new()
        .file("a.bson", documents(&[r#"{"n": 1, "in": {"x": 1, "y": 2}}"#, r#"{"n": 2, "other": 3}"#, r#"{"n": "x"}"#]))
        .file("s.json", r#"{"fields": [{"name": "in", "type": "struct", "fields": [{"name": "y", "type": "int64"}]}]}"#)
        .file("n.json", r#"{"fields": [{"name": "n", "type": "int64"}]}"#)
        .file("must.json", r#"{"fields": [{"name": "in", "type": "json", "nullable": false}]}"#)
        .file("no.json", r#"{"fields": [{"name": "m", "type": "int64"}]}"#)
        .file("u8.json", r#"{"fields": [{"name": "n", "type": "uint8"}]}"#)
        .file("csv.json", r#"{"fields": [{"name": "n", "type": "bson.objectId"}]}"#)
        .file("t.csv", "n\n1\n");
    convert(&place, "a.bson --schema s.json --to csv --null NA").succeeds().prints("in.y\n2\nNA\nNA\n");
    convert(&place, "a.bson --schema n.json -o out.csv").fails().complains_of(&[
        "found a value of type string, expected a 64-bit integer",
        "in n",
        "record 2",
        "--schema",
    ]);
    convert(&place, "a.bson --schema n.json -o out.csv --rejects bad.jsonl").exits(0);
    assert_eq!((&*place.text("out.csv"), place.text("bad.jsonl").lines().count()), ("n\n1\n2\n", 1));
    convert(&place, "a.bson --schema must.json -o must.csv --max-rejects 2").exits(0);
    assert_eq!(place.text("must.csv"), "in\n\"{\"\"x\"\":1,\"\"y\"\":2}\"\n");
    convert(&place, "a.bson --schema no.json -o no.parquet").fails().complains_of(&[
        "key missing",
        "in m",
        "--absent null",
    ]);
    convert(&place, "a.bson --schema no.json -o no.csv --absent null --null NA")
        .exits(0)
        .complains_of(&["only nulls in m, which no document has"]);
    // What documents cannot have is refused before anything is opened.
    convert(&place, "nowhere.bson --schema u8.json -o no.csv").gets_refused().complains_of(&[
        "u8.json: ",
        "the type UInt8 in column \"n\"",
        "a type of BSON: ",
    ]);
    convert(&place, "t.csv --schema csv.json -o no.csv")
        .gets_refused()
        .complains_of(&["the type bson.objectId of column \"n\", which only documents of BSON have"]);
}

#[test]
fn nothing_remains_after_a_signal() {
    let place = Place::new();
    let mut live = convert(&place, "--from csv -o out.parquet --")
        .and("sh -c")
        .word("echo a,b; echo 1,2; echo ready >&2; sleep 60")
        .start();
    crate::place::until("it waits for its command", || live.is_running().then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    live.send(Signal::INT);
    let seen = live.ends();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&seen.status),
        Some(Signal::INT.as_raw()),
        "{}",
        seen.stderr
    );
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn text_on_a_full_pipe_ends_quietly() {
    let rows: String = (0..200_000).map(|i| format!("{i}\n")).collect();
    let place = Place::new().file("t.csv", format!("a\n{rows}"));
    let mut live = convert(&place, "t.csv --to csv").start();
    live.prints("a\n0\n1\n");
    live.stop_reading();
    live.dies_by(Signal::PIPE);
}

#[test]
fn progress_is_shown_on_a_terminal() {
    let place = Place::new().file("a.csv", format!("n,text\n{}", "1,one\n".repeat(1000)));
    let words = || convert(&place, "a.csv -o a.parquet");
    let shown = on_a_terminal(words(), false);
    for part in ["5.87 KiB (", "B/s), 1,000 records", "100%", " in 0s", "1000 rows, 6007 bytes"] {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
    assert_eq!(on_a_terminal(words().and("--progress=never"), false), "1000 rows, 6007 bytes\r\n");
    words().succeeds().prints("");
    let seen = words().and("--progress=always").exits(0);
    let last = seen.stderr.lines().last().unwrap();
    assert!(last.contains("5.87 KiB") && last.contains("1,000 records") && last.contains("100%"), "{last}");
    assert!(!seen.stderr.contains(['\x1b', '\r']), "{:?}", seen.stderr);
    // The size of a command's output is not known.
    let shown = on_a_terminal(convert(&place, "--from csv -o b.parquet -- cat a.csv"), false);
    assert!(shown.contains("1,000 records") && !shown.contains('%'), "{shown:?}");
}

#[test]
fn memory_is_bounded() {
    let place = Place::new();
    for (from, head, line) in [
        ("csv", "id,text", "123456789,\"some text, in quotes\""),
        ("jsonl", "{}", "{\"id\": 123456789, \"at\": {\"x\": [1.5, null]}}"),
        ("lines", "a line", "a line that is neither long nor short"),
    ] {
        for (to, words) in [("parquet", "--row-group-size 10000"), ("arrows", ""), ("csv", "")] {
            // More bytes than the limit, in rows and columns.
            convert(&place, &format!("--from {from} -j 2 -o out.{to} {words}"))
                .shell(&format!("echo '{head}'; yes '{line}' | head -n 1000000"))
                .within(32)
                .succeeds();
        }
    }
}

#[test]
fn parts_have_the_requested_size_and_appear_together() {
    let line = |n: u64| format!("{n},text of row {n}\n");
    let text = ["n,s\n".to_string()].into_iter().chain((0..200_000).map(line)).collect::<String>();
    let place = Place::new().file("t.csv", &text);
    for (to, options) in
        [("parquet", "-j 2"), ("csv", ""), ("jsonl.gz", ""), ("arrow", ""), ("parquet", "--compression none")]
    {
        let output = format!("t.csv --parts 500K -o {{}}-t.{to} --count");
        let printed = convert(&place, &output).and(options).succeeds().stdout;
        let mut parts: Vec<String> =
            place.names().into_iter().filter(|name| name.ends_with(&format!("-t.{to}"))).collect();
        parts.sort();
        assert!(parts.len() > 1 && parts.len() < 30, "{to}: {parts:?}");
        assert!((0..).zip(&parts).all(|(n, part)| *part == format!("{n:05}-t.{to}")), "{parts:?}");
        let expected = format!("200000 rows, {} bytes, {} parts\n", text.len(), parts.len());
        assert_eq!(String::from_utf8(printed).unwrap(), expected);
        // All of the rows, in order.
        convert(&place, &parts.join(" ")).and("--to csv").succeeds().prints(&text);
        for part in &parts[..parts.len() - 1] {
            let size = place.read(part).len();
            assert!(size < 3_000_000, "{part}: {size}");
        }
        convert(&place, &output).gets_refused().complains_of(&["which exists", "remove them"]);
        parts.iter().for_each(|part| std::fs::remove_file(place.path(part)).unwrap());
    }
    // Without rows there is one part.
    let place = Place::new().file("t.csv", "n,s\n");
    convert(&place, "t.csv --parts 1M -o {}.csv").succeeds();
    assert_eq!(place.text("00000.csv"), "n,s\n");
}

#[test]
fn parts_of_a_failed_conversion_do_not_appear() {
    let text: String = (0..50_000).map(|n| format!("{n},text of row {n}\n")).collect();
    let place = Place::new().file("t.csv", ["n,s\n", &text, "x,y\n"].concat());
    convert(&place, "t.csv --parts 100K -o {}.parquet").fails();
    assert_eq!(place.names(), ["t.csv"]);
    for (words, expected) in [
        ("t.csv --parts 1M -o out.parquet", "'{}' in its name"),
        ("t.csv --parts 1M --to csv -o -", "'{}' in its name"),
        ("t.csv --parts 1M --to csv", "--output"),
        ("t.csv --parts 0 -o {}.csv", "--parts"),
    ] {
        convert(&place, words).gets_refused().complains_of(&[expected]);
    }
}

#[test]
#[cfg(feature = "remote")]
fn objects_of_bson_are_requested_as_the_options_say() {
    let store = locked_store();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20));
    let place = Place::new().file("long.bson", documents(&[long.as_str(); 6]));
    unlocked(convert(&place, "s3://bucket/a.bson -o s3://bucket/a.csv"), &store).succeeds();
    assert_eq!(store.content().objects["a.csv"].bytes, b"a\n1\n2\n");
    // Output that is longer than a part is an upload of several.
    for (options, uploads) in [("--part-size 8M", 0), ("", 1)] {
        let words = convert(&place, "long.bson -o s3://bucket/long.jsonl").and(options);
        unlocked(words, &store).succeeds();
        assert_eq!(store.content().created, uploads, "{options}");
    }
}

#[test]
#[cfg(feature = "remote")]
fn an_object_becomes_another_one() {
    let Some(server) = versitygw() else { return };
    let bucket = server.path("objects/bucket");
    std::fs::create_dir(&bucket).unwrap();
    let place = table().file("bad.csv", format!("{TABLE}4,\""));
    for name in ["t.csv", "bad.csv"] {
        at_versitygw(place.run(&format!("{name} -o s3://bucket/{name}")), &server).succeeds();
    }
    let at_server = |words: &str| at_versitygw(convert(&place, words), &server);
    at_server("s3://bucket/t.csv -o s3://bucket/t.parquet").succeeds();
    std::fs::copy(bucket.join("t.parquet"), place.path("t.parquet")).unwrap();
    convert(&place, "t.parquet --to csv").succeeds().prints(TABLE);
    at_server("s3://bucket/bad.csv -o s3://bucket/bad.parquet").fails().complains_of(&["s3://bucket/bad.csv: "]);
    assert!(!bucket.join("bad.parquet").exists());
}
