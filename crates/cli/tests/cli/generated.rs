//! Help, manual pages, completions.

use std::process::Command;

use crate::place::Place;

fn printed(words: &str) -> String {
    String::from_utf8(Place::new().words(words).succeeds().stdout).unwrap()
}

#[test]
fn help_has_examples_and_every_option() {
    for words in ["run --help", "run -h", "help run"] {
        let help = printed(words);
        assert!(help.contains("millstream run --count -- find /usr"), "{words}");
        assert!(help.contains("Exit status:"), "{words}");
        for option in [
            "--output",
            "--append",
            "--keep-partial",
            "--tee",
            "--count",
            "--flush",
            "--delimiter",
            "--null",
            "--fixed",
            "--length-prefixed",
            "--bson",
            "--record-limit",
            "--decode",
            "--buffer",
            "--read-ahead",
            "--timeout",
            "--rate-limit",
            "--hash",
            "--stats",
            "--progress",
            "--stage",
            "--each",
            "--jobs",
            "--block",
            "--unordered",
            "--round-robin",
            "--on-error",
        ] {
            assert!(help.contains(option), "{words}: {option}");
        }
    }
    assert!(printed("--help").contains("completions"));
}

#[test]
fn help_fits_a_terminal() {
    for line in printed("run --help").lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_version() {
    assert_eq!(printed("--version"), format!("millstream {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    let script = printed("completions bash");
    assert!(script.contains("--length-prefixed"));
    let checked = Command::new("bash").args(["-n", "-c", &script]).status().unwrap();
    assert!(checked.success());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(printed(&format!("completions {shell}")).contains("length-prefixed"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let page = printed("man");
    assert!(page.contains(".TH millstream 1"), "{page}");
    let page = printed("man run");
    assert!(page.contains(".TH millstream-run 1"), "{page}");
    assert!(page.contains(r"\-\-keep\-partial"), "{page}");
    assert!(page.contains("Exit status:"), "{page}");
    assert!(page.contains("only if every source succeeded"), "the long description: {page}");
}
