//! The text of generated files: comments, names in the style of each language, and formatted Rust code.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// The maximum length of a line, in every language.
const WIDTH: usize = 120;

/// Joins what `write` returns for each item.
pub fn each<T>(items: impl IntoIterator<Item = T>, write: impl FnMut(T) -> String) -> String {
    items.into_iter().map(write).collect()
}

/// Joins what `write` returns for each item, with `between` between them.
pub fn joined<T>(items: impl IntoIterator<Item = T>, between: &str, write: impl FnMut(T) -> String) -> String {
    items.into_iter().map(write).collect::<Vec<_>>().join(between)
}

/// Formats a comment as lines that start with this marker.
pub fn comment(sign: &str, text: &str) -> String {
    let mut lines = vec![sign.to_string()];
    for word in text.split_whitespace() {
        if lines[lines.len() - 1].len() + 1 + word.len() > WIDTH {
            lines.push(sign.to_string());
        }
        let line = lines.last_mut().expect("it begins with one line");
        line.push(' ');
        line.push_str(word);
    }
    lines.join("\n") + "\n"
}

/// Converts `WhenFull` to `when_full`.
pub fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Converts `command_end` to `CommandEnd`.
pub fn pascal_case(name: &str) -> String {
    each(name.split('_'), |word| word[..1].to_uppercase() + &word[1..])
}

/// Converts `record_limit` to `recordLimit`.
pub fn camel_case(name: &str) -> String {
    name[..1].to_string() + &pascal_case(name)[1..]
}

/// Formats Rust code with rustfmt.
pub fn formatted(text: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("rustfmt: {error}; install it with `rustup component add rustfmt`");
    let options = ["--edition=2024", "--config=max_width=120,use_small_heuristics=Max"];
    let mut rustfmt =
        Command::new("rustfmt").args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    rustfmt.stdin.take().expect("it is piped").write_all(text.as_bytes()).map_err(failed)?;
    let done = rustfmt.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        return Err(format!("rustfmt {}: is a generated file valid Rust?", done.status));
    }
    String::from_utf8(done.stdout).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_wrapped_between_words() {
        let (short, long) = ("x".repeat(58), "y".repeat(200));
        assert_eq!(comment("//", &format!("{short}  {short} z")), format!("// {short} {short}\n// z\n"));
        assert_eq!(comment("//", &long), format!("//\n// {long}\n"));
    }

    #[test]
    fn names_have_the_style_of_a_language() {
        assert_eq!([snake_case("WhenFull"), pascal_case("when_full")], ["when_full", "WhenFull"]);
        assert_eq!([camel_case("record_limit"), camel_case("name")], ["recordLimit", "name"]);
    }
}
