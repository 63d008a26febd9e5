//! The programs in `examples/`, run as a user would, and the README's excerpts of them.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// An example that `cargo test` has built next to this test.
fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop(); // this test
    path.pop(); // deps
    path.extend(["examples", name]);
    assert!(
        path.exists(),
        "{} is missing: `cargo test` builds it, but `cargo test --test examples` does not",
        path.display()
    );
    Command::new(path)
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn count_lines_counts_and_reports_failures() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("three.txt");
    std::fs::write(&path, "one\ntwo\nthree").unwrap();
    let output = example("count_lines").arg(&path).output().unwrap();
    assert_eq!(stdout(&output), format!("3 {}\n", path.display()));

    let missing = example("count_lines").arg(dir.path().join("none")).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("none: open failed: No such file"), "{missing:?}");
}

#[cfg(feature = "splits")]
#[test]
fn splits_counts_the_lines_of_all_splits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("three.txt");
    std::fs::write(&path, "an error\ntwo\nthe next error").unwrap();
    assert_eq!(stdout(&example("splits").arg(&path).output().unwrap()), "3\n1\n");
}

#[test]
fn amounts_adds_a_column_and_reports_the_place_of_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orders.csv");
    std::fs::write(&path, "id,amount\n1,\"2.5\"\n2,4\n").unwrap();
    assert_eq!(stdout(&example("amounts").arg(&path).output().unwrap()), "6.5\n");
    std::fs::write(&path, "id,amount\n1,2.5\n2,x\n").unwrap();
    let output = example("amounts").arg(&path).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("number invalid") && message.contains("in amount, at line 3, column 3"), "{message}");
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(feature = "serde")]
#[test]
fn ages_reads_people_and_reports_the_place_of_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("people.csv");
    std::fs::write(&path, "age,name,id\n41,Ann,1\n17,\"Bob, Jr.\",2\n").unwrap();
    let printed = "Ann is 41\nBob, Jr. is 17\n2 people, 29.0 years old\n";
    assert_eq!(stdout(&example("ages").arg(&path).output().unwrap()), printed);
    std::fs::write(&path, "age,name,id\n41,\"A\nnn\",1\n17x,Bob,2\n").unwrap();
    let output = example("ages").arg(&path).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"A\nnn is 41\n"[..]));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("found \"17x\"") && message.contains("in age, at line 4, column 1"), "{message}");
}

#[cfg(feature = "bson")]
#[test]
fn orders_reads_a_dump_and_views_an_array() {
    let dir = tempfile::tempdir().unwrap();
    let (dump, weights) = (dir.path().join("orders.bson"), dir.path().join("weights.bson"));
    let order = r#"{"customer": {"name": "Ada"}, "items": [{"qty": 2, "price": 1.25}, {"qty": 1, "price": 10.0}]}"#;
    std::fs::write(&dump, millstream::bson::from_json(order).unwrap().to_vec().unwrap().repeat(2)).unwrap();
    let output = example("orders").arg(&dump).output().unwrap();
    assert_eq!(stdout(&output), "Ada\t12.50\nAda\t12.50\n");

    let array = r#"{"w": {"$binary": {"base64": "AACAPwAAQEA=", "subType": "00"}}}"#;
    std::fs::write(&weights, millstream::bson::from_json(array).unwrap().to_vec().unwrap()).unwrap();
    let output = example("orders").arg(&weights).arg("w").output().unwrap();
    assert_eq!(stdout(&output), "2\n");
    let output = example("orders").arg(&weights).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("\"customer\""), "{output:?}");
}

#[test]
fn failing_command_is_noticed() {
    let output = example("failing_command").output().unwrap();
    assert_eq!(
        stdout(&output),
        "record: first\nrecord: second\nincomplete: the command exited with status 3\nstandard error: disk unplugged\n"
    );
}

#[test]
fn column_sum_sums_and_reports_errors() {
    let mut child = example("column_sum")
        .arg("2")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a 1 x\nb 2.5 x\n").unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "2 lines, sum 3.5\n");

    let mut child = example("column_sum")
        .arg("1")
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"1\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("two"), "{output:?}");
}

#[test]
fn slow_requests_keeps_bad_lines_aside() {
    let dir = tempfile::tempdir().unwrap();
    let (log, bad) = (dir.path().join("access.log"), dir.path().join("bad.log"));
    std::fs::write(&log, "# log\nGET /a 12\nGET /b 501\nnonsense\nGET /c 1e3\n").unwrap();
    let output = example("slow_requests").args([&log, &bad]).output().unwrap();
    assert_eq!(stdout(&output), "GET /b 501\nGET /c 1e3\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "2 of 5 requests are slow, 1 lines are none\n");
    assert_eq!(std::fs::read(&bad).unwrap(), b"nonsense\n");
}

#[test]
fn socket_log_writes_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let child = example("socket_log").arg(address).arg(&path).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut connection, _) = server.accept().unwrap();
    connection.write_all(b"one\ntwo\n").unwrap();
    // The line is in the file while the log continues.
    let started = std::time::Instant::now();
    while std::fs::read(&path).unwrap_or_default() != b"one\ntwo\n" {
        assert!(started.elapsed().as_secs() < 20, "the lines did not arrive");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(connection);
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "2 lines\n");
}

#[cfg(feature = "tokio")]
#[test]
fn tokio_copy_completes_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.gz");
    assert!(example("tokio_copy").arg(&path).status().unwrap().success());
    let numbers = millstream::Reader::path(&path).unwrap().values::<u32>().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
}

/// Every block of code in the README and in the guides is part of code that is run elsewhere: a file in `examples`,
/// or an example in the README of a package, which that package's tests run.
#[test]
fn the_documentation_shows_the_examples() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    for (language, directory, guide) in [
        ("rust", "examples", "rust"),
        ("c", "examples/c", "c"),
        ("cpp", "examples/cpp", "cpp"),
        ("js", "bindings/node", "node"),
        ("python", "bindings/python", "python"),
        ("julia", "bindings/julia", "julia"),
    ] {
        let examples: Vec<String> = std::fs::read_dir(root.join(directory))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file() && (!directory.starts_with("bindings") || path.ends_with("README.md")))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        let guide = read(&format!("docs/{guide}.md"));
        assert!(guide.contains(&format!("```{language}\n")), "the guide shows no {language}");
        for text in [&read("README.md"), &guide] {
            for block in text.split(&format!("```{language}\n")).skip(1) {
                let block = block.split("```").next().unwrap();
                assert!(examples.iter().any(|example| example.contains(block)), "no example holds:\n{block}");
            }
        }
    }
}

#[test]
fn the_readme_is_short() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150, "move details to docs/");
}
