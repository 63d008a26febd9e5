//! Formats command lines for messages.

use std::ffi::OsString;

/// Formats a command line for messages: words with blanks or control characters are quoted as in Rust.
pub fn show_argv(argv: &[OsString]) -> String {
    let mut out = String::new();
    for (i, word) in argv.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let text = word.to_string_lossy();
        let plain =
            !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control() || "'\"\\$`".contains(c));
        if plain {
            out.push_str(&text);
        } else {
            out.push_str(&format!("{text:?}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_with_blanks_are_quoted() {
        let argv: Vec<OsString> = ["sh", "-c", "exit 3", ""].iter().map(Into::into).collect();
        assert_eq!(show_argv(&argv), "sh -c \"exit 3\" \"\"");
    }
}
