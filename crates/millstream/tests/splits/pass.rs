//! A pass over a file of CSV that several processes make together.

use std::path::Path;

use millstream::frame::CsvDialect;
use millstream::splits::{Framing, PassPart, PassResult, SharedPass, SplitPin, Splits};
use millstream::{CancelToken, Decode, Error, ErrorKind, Result};
use proptest::prelude::*;

use super::union::{files_of_csv, rewrite};

const FILE: &str = "id,text\n1,\"a\nb\"\n\n2,c\n3,\"d\n\"\n4,e\n";

fn csv() -> Framing {
    Framing::Csv { dialect: CsvDialect::new() }
}

fn share(path: &Path) -> SharedPass {
    Splits::builder().share(path, csv(), 10, 12).unwrap().unwrap()
}

/// What another process does.
fn follow(part: &PassPart) -> Result<PassResult> {
    let result = PassPart::from_json(&part.to_json())?.follow()?;
    assert_eq!(PassResult::from_json(&result.to_json())?, result);
    Ok(result)
}

fn refused<T>(result: Result<T>) -> (ErrorKind, Option<String>) {
    let Err(error) = result else { panic!("it succeeded") };
    (error.kind(), error.found().map(str::to_string))
}

fn file(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, content).unwrap();
    file
}

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 100_000 } else { 2000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// Some results are missing, and the order of the others is another one.
    #[test]
    fn the_plan_is_that_of_one_process(
        (framing, content) in files_of_csv(),
        (size, part) in (1..40_u64, 1..40_u64),
        missing in any::<u64>(),
    ) {
        rewrite(&content, |path| {
            let builder = || Splits::builder().decode(Decode::Off);
            let pass = builder().share(path, framing.clone(), size, part).unwrap().unwrap();
            let mut results = Vec::new();
            for (i, part) in pass.parts().enumerate() {
                if missing >> (i % 64) & 1 == 0 {
                    results.push(follow(&part).unwrap());
                }
            }
            results.reverse();
            prop_assert_eq!(pass.plan(results).unwrap(), builder().plan(path, framing.clone(), size).unwrap());
            Ok(())
        })?;
    }
}

#[test]
fn an_empty_file_has_one_part() {
    let file = file("");
    let pass = share(file.path());
    let results: Vec<PassResult> = pass.parts().map(|part| follow(&part).unwrap()).collect();
    assert_eq!(results.len(), 1);
    assert_eq!(pass.plan(results).unwrap(), Splits::plan(&file, csv(), 10).unwrap());
}

#[test]
fn there_is_nothing_to_share_without_a_pass_of_one_version() {
    let file = file(FILE);
    let shared =
        |builder: millstream::splits::SplitsBuilder, framing| builder.share(&file, framing, 10, 12).unwrap().is_some();
    assert!(shared(Splits::builder(), csv()));
    assert!(shared(Splits::builder().pin(SplitPin::Ends), csv()));
    assert!(!shared(Splits::builder().pin(SplitPin::Full), csv()));
    assert!(!shared(Splits::builder().pin(SplitPin::None), csv()));
    assert!(!shared(Splits::builder(), Framing::Lines));
    std::fs::write(&file, b"\x1f\x8b\x08\0\0\0\0\0\0\0").unwrap();
    assert!(!shared(Splits::builder(), csv()));
    assert!(shared(Splits::builder().decode(Decode::Off), csv()));
    let parts_of = |size, part| Splits::builder().share(&file, csv(), size, part);
    assert_eq!(refused(parts_of(10, 0)).0, ErrorKind::InvalidOption);
    assert_eq!(refused(parts_of(0, 10)).0, ErrorKind::InvalidOption);
}

#[test]
fn the_result_of_another_pass_is_refused() {
    let (first, second) = (file(FILE), file(FILE));
    let result = follow(&share(second.path()).parts().next().unwrap()).unwrap();
    let expected = (ErrorKind::InvalidOption, Some("the result of another pass, or one that was changed".to_string()));
    assert_eq!(refused(share(first.path()).plan([result.clone()])), expected);
    for (from, to) in [
        (r#""records":2"#, r#""records":99"#),
        (r#""records":2"#, r#""records":0"#),
        (r#""inner_lines":1"#, r#""inner_lines":18446744073709551615"#),
        (r#""end":16"#, r#""end":1000"#),
        (r#""skipped":0"#, r#""skipped":5"#),
    ] {
        let json = result.to_json();
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        assert_eq!(refused(share(second.path()).plan([PassResult::from_json(&changed).unwrap()])), expected, "{to}");
    }
}

#[test]
fn other_versions_and_other_text_are_refused() {
    let file = file(FILE);
    let part = share(file.path()).parts().nth(1).unwrap();
    let result = part.follow().unwrap().to_json();
    let changed = |json: &str, from: &str, to: &str| {
        assert!(json.contains(from), "{from} is not in {json}");
        json.replacen(from, to, 1)
    };
    let json = part.to_json();
    let with = |from, to| refused(PassPart::from_json(&changed(&json, from, to)));
    assert_eq!(
        with(r#""version":1"#, r#""version":2"#),
        (ErrorKind::Unsupported, Some("a plan of format version 2".to_string()))
    );
    for (from, to) in [
        (r#""begin":12"#, r#""begin":25"#),
        (r#""end":24"#, r#""end":1000"#),
        (r#""size":10"#, r#""size":0"#),
        (r#""size":10"#, r#""size":10,"other":1"#),
        (r#""kind":"csv","dialect":"#, r#""kind":"lines","dialect":"#),
    ] {
        let json = part.to_json();
        let at = json.rfind(from).or_else(|| json.find(from)).unwrap_or_else(|| panic!("{from} is not in {json}"));
        let changed = format!("{}{to}{}", &json[..at], &json[at + from.len()..]);
        assert_eq!(refused(PassPart::from_json(&changed)).0, ErrorKind::InvalidOption, "{changed}");
    }
    let json = changed(&result, r#""version":1"#, r#""version":7"#);
    assert_eq!(refused(PassResult::from_json(&json)).0, ErrorKind::Unsupported);
    assert_eq!(refused(PassResult::from_json("{}")).0, ErrorKind::InvalidOption);
}

#[test]
fn a_changed_file_is_an_error_for_each_process() {
    let file = file(FILE);
    let pass = share(file.path());
    let part = pass.parts().next().unwrap();
    let result = follow(&part).unwrap();
    std::fs::write(&file, FILE.to_string() + "5,f\n").unwrap();
    let name = |error: Error| (error.kind(), error.name().map(str::to_string));
    let expected = (ErrorKind::SourceChanged, Some(file.path().display().to_string()));
    assert_eq!(name(part.follow().unwrap_err()), expected);
    assert_eq!(name(pass.plan([result]).unwrap_err()), expected);
}

#[test]
fn a_token_interrupts_a_part() {
    let file = file(&FILE.repeat(100_000));
    let token = CancelToken::new().unwrap();
    token.cancel();
    let pass = Splits::builder().share(&file, csv(), 1 << 20, 1 << 30).unwrap().unwrap();
    let part = pass.parts().next().unwrap().cancel(&token);
    assert_eq!(refused(part.follow()).0, ErrorKind::Cancelled);
}
