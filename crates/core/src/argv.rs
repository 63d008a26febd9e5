//! Formats command lines for messages.

use std::ffi::OsString;
use std::fmt::Write;

/// Formats a command line for messages, so that it can be pasted into a shell: words with special characters are quoted.
/// Characters that a terminal would interpret or that would be invisible are escaped as bash, zsh, ksh and POSIX since
/// 2024 read them. So are backticks, between which messages have commands.
pub fn show_argv(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Returns whether a terminal interprets this character, or whether the character reverses or hides text, so that the
/// display would differ from the content.
pub fn is_trick(c: char) -> bool {
    let hides = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    c.is_control() || hides
}

fn quoted(word: &str) -> String {
    let is_escaped = |c: char| c == '`' || is_trick(c);
    if !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./,:=+@%".contains(c)) {
        return word.to_string();
    }
    if !word.contains(is_escaped) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_string();
    for c in word.chars() {
        let _ = match c {
            '\n' => out.write_str(r"\n"),
            '\t' => out.write_str(r"\t"),
            '\\' | '\'' => write!(out, r"\{c}"),
            _ if is_escaped(c) => c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(out, r"\{byte:03o}")),
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
            (&["printf", "a\n\t\\'\x1b[31m"], r"printf $'a\n\t\\\'\033[31m'"),
            (&["rm", "gpj.\u{202e}exe", "`x`"], r"rm $'gpj.\342\200\256exe' $'\140x\140'"),
        ] {
            let argv: Vec<OsString> = words.iter().map(Into::into).collect();
            assert_eq!(show_argv(&argv), shown);
        }
    }

    /// What is shown means the same to bash.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_the_words_again() {
        let words = [
            "it's",
            "a b",
            "$HOME `x` \"y\"",
            "*",
            "",
            "1\n2\t\\'\x1b!",
            "~",
            "#",
            "a=b",
            "{a,b}",
            "größe\u{85}",
            "gpj.\u{202e}exe",
            "\u{1}1",
        ];
        let argv: Vec<OsString> = words.iter().map(Into::into).collect();
        let line = format!("printf '%s\\0' {}", show_argv(&argv));
        let Ok(ran) = std::process::Command::new("bash").env("LC_ALL", "C.UTF-8").args(["-c", &line]).output() else {
            return eprintln!("SKIPPED: bash is missing");
        };
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), words.map(|word| format!("{word}\0")).concat(), "{line}");
    }
}
