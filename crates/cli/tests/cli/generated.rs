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
            "--flush-policy",
            "--delimiter",
            "--null",
            "--fixed",
            "--length-prefixed",
            "--bson",
            "--record-limit",
            "--decode",
            "--capacity",
            "--read-ahead",
            "--stall-timeout",
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

/// Compares with `vectors/options.tsv`: each option of the library, its words and its default.
#[test]
fn options_are_those_of_every_language() {
    let table = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/options.tsv")).unwrap();
    let help = printed("run -h").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut seen = 0;
    for row in table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>()) {
        let (name, takes) = (format!("--{}", row[1].replace('_', "-")), row[2].replace('_', "-"));
        let place = Place::new().file("a", "one\n");
        if row.get(3).is_some_and(|why| why.split("; ").any(|why| why.starts_with("cli: "))) {
            place.run(&format!("{name} nonsense a")).gets_refused().complains_of(&["unexpected argument"]);
            continue;
        }
        let refused = place.run(&format!("{name}=nonsense a")).gets_refused();
        if takes.contains('|') {
            let words = takes.replace('*', "").replace('|', ", ");
            let _ = refused.complains_of(&[&format!("for '{name} <HOW>': expected one of {words} (")]);
        } else {
            let _ = refused.complains_of(&[&format!("invalid value 'nonsense' for '{name} <")]);
        }
        let default = takes.split('|').find_map(|word| word.strip_suffix('*'));
        // By default the command passes bytes on as they arrive.
        if let Some(default) = default.filter(|_| row[1] != "flush_policy") {
            let here = help.split(&format!(" {name} <")).nth(1).unwrap();
            let here = here.split(" --").next().unwrap();
            assert!(here.contains(&format!("[default: {default}]")), "{name}: {here}");
        }
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
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
