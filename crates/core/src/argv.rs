//! Formats command lines for messages.

use std::ffi::OsString;
use std::fmt::Write;

/// Formats a command line for messages, so that it can be pasted into a shell: words with special characters are quoted.
/// Control characters, which a terminal would interpret, are escaped as bash reads them.
pub fn show_argv(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./,:=+@%".contains(c)) {
        return word.to_string();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_string();
    for c in word.chars() {
        let _ = match c {
            '\n' => out.write_str(r"\n"),
            '\t' => out.write_str(r"\t"),
            '\\' | '\'' => write!(out, r"\{c}"),
            _ if c.is_control() => write!(out, r"\u{:04x}", u32::from(c)),
            _ => out.write_char(c),
        };
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (words, shown) in [
            (&["sh", "-c", "exit 3", ""][..], "sh -c 'exit 3' ''"),
            (&["grep", "it's", "$HOME", "*.c", "größe"], r"grep 'it'\''s' '$HOME' '*.c' größe"),
            (&["printf", "a\n\t\\'\x1b[31m"], r"printf $'a\n\t\\\'\u001b[31m'"),
        ] {
            let argv: Vec<OsString> = words.iter().map(Into::into).collect();
            assert_eq!(show_argv(&argv), shown);
        }
    }

    /// What is shown means the same to bash.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_the_words_again() {
        let words =
            ["it's", "a b", "$HOME `x` \"y\"", "*", "", "1\n2\t\\'\x1b!", "~", "#", "a=b", "{a,b}", "größe\u{85}"];
        let argv: Vec<OsString> = words.iter().map(Into::into).collect();
        let line = format!("printf '%s\\0' {}", show_argv(&argv));
        let Ok(ran) = std::process::Command::new("bash").env("LC_ALL", "C.UTF-8").args(["-c", &line]).output() else {
            return eprintln!("SKIPPED: bash is missing");
        };
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), words.map(|word| format!("{word}\0")).concat(), "{line}");
    }
}
