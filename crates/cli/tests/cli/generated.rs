//! Help, manual pages, completions.

use std::process::Command;

use crate::place::Place;

fn printed(words: &str) -> String {
    String::from_utf8(Place::new().words(words).succeeds().stdout).unwrap()
}

#[test]
fn help_has_examples_and_every_option() {
    for words in ["run --help-all", "help run"] {
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
    let help = printed("run --help-all").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut seen = 0;
    for row in table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>()) {
        let (name, takes) = (format!("--{}", row[1].replace('_', "-")), row[2].replace('_', "-"));
        let place = Place::new().file("a", "one\n");
        if row.get(3).is_some_and(|why| why.split("; ").any(|why| why.starts_with("cli: "))) {
            place.run(&format!("{name} nonsense a")).gets_refused().complains_of(&["unexpected argument"]);
            continue;
        }
        // Any text can be an address or a name, until it is used.
        if let Some(value) = [("--endpoint", "<URL>"), ("--ca-file", "<FILE>")].iter().find(|of| of.0 == name) {
            assert!(help.contains(&format!(" {name} {} ", value.1)), "{help}");
            continue;
        }
        let refused = place.run(&format!("{name}=nonsense a")).gets_refused();
        if takes == "flag" {
            let _ = refused.complains_of(&[&format!("unexpected value 'nonsense' for '{name}' found")]);
        } else if takes.contains('|') {
            let words = takes.replace('*', "").replace('|', ", ");
            let _ = refused.complains_of(&[&format!("for '{name} <"), &format!(">': expected one of {words}\n")]);
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
    for words in ["--help", "run --help", "run --help-all", "bson --help", "bson cat --help", "bench --help"] {
        for line in printed(words).lines() {
            assert!(line.chars().count() <= 100, "{words}: {line}");
        }
    }
}

#[test]
fn the_summary_fits_a_screen_and_begins_with_examples() {
    let help = printed("run --help");
    assert_eq!(help, printed("run -h"));
    assert!(help.lines().count() <= 48, "{help}");
    let at = |part: &str| help.find(part).unwrap_or_else(|| panic!("{part} is not in {help}"));
    assert!(at("Examples:") < at("Usage:") && at("Usage:") < at("--output") && at("--output") < at("--help-all."));
    assert!(!help.contains("--linger"), "{help}");
}

#[test]
fn the_version() {
    assert_eq!(printed("--version"), format!("millstream {}\n", env!("CARGO_PKG_VERSION")));
}

/// Runs a script in a shell, whose argument is the file with the completions. If the shell is missing, the test is
/// skipped, which is a failure in continuous integration.
fn offered(shell: &str, words: &[&str], script: &str) -> Option<String> {
    let place = Place::new().file("completions", printed(&format!("completions {shell}"))).file("script", script);
    let mut command = Command::new(shell);
    command.env("TERM", "dumb").args(words).arg(place.path("script")).arg(place.path("completions"));
    let ran = command.output();
    let Ok(ran) = ran else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{shell} is missing: see tools/setup");
        eprintln!("SKIPPED: {shell} is missing");
        return None;
    };
    assert!(ran.status.success(), "{shell}: {ran:?}");
    Some(String::from_utf8(ran.stdout).unwrap())
}

/// Checks what a shell offers after `millstream run --le` and after `millstream run --encode `.
fn completes(shell: &str, words: &[&str], script: &str) {
    if let Some(offered) = offered(shell, words, script) {
        for option in ["--length-prefixed", "--level", "gzip", "zstd"] {
            assert!(offered.contains(option), "{shell}: {option} is not in {offered}");
        }
        assert!(!offered.contains("--tee"), "{shell}: {offered}");
    }
}

#[test]
fn bash_completes() {
    let script = r#"
        source "$1"
        offer() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _millstream millstream "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "${COMPREPLY[@]}"
        }
        offer millstream run --le
        offer millstream run --encode """#;
    completes("bash", &["--norc"], script);
}

#[test]
fn bash_completes_the_values_of_a_conversion() {
    let script = r#"
        source "$1"
        offer() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _millstream millstream "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s: %s\n' "${*: -2}" "${COMPREPLY[*]}"
        }
        offer millstream con
        offer millstream convert --max
        offer millstream convert --to p
        offer millstream convert --from js
        offer millstream convert --json-duplicates "" "#;
    let Some(offered) = offered("bash", &["--norc"], script) else { return };
    for expected in [
        "millstream con: convert",
        "convert --max: --max-rejects",
        "--to p: parquet",
        "--from js: jsonl json",
        "--json-duplicates : error first last",
    ] {
        assert!(offered.lines().any(|line| line == expected), "{expected:?} is not in {offered}");
    }
}

#[test]
fn zsh_completes() {
    // Completion works only in an interactive shell, which here runs on a terminal of its own.
    let script = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "PROMPT=; autoload -U compinit; compinit -u -D; source $1; compdef _millstream millstream"
        # One tab lists everything, without a question.
        zpty -w shell "setopt no_auto_menu no_list_ambiguous; LISTMAX=1000; print re''ady"
        zpty -r -m shell line '*ready*' || exit 1
        offer() {
            zpty -w -n shell "$1"$'\t'
            zpty -r -m shell line $2 || exit 1
            print -r -- $line
            zpty -w -n shell $'\C-u'
        }
        offer 'millstream run --le' '*--length-prefixed*--level*'
        offer 'millstream run --encode ' '*gzip*zstd*'
        zpty -d shell"#;
    completes("zsh", &["-f"], script);
}

#[test]
fn fish_completes() {
    let script = "source $argv[1]; complete -C 'millstream run --le'; complete -C 'millstream run --encode '";
    completes("fish", &["--no-config"], script);
}

#[test]
fn other_shells_have_completions() {
    for shell in ["elvish", "powershell"] {
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
