//! What `help` says about options: the text of the library's own table.

use millstream::options::{COMMAND, READER, REMOTE, Set, Setting, WRITER};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The number of characters in a line.
const WIDTH: usize = 100;

/// Returns the options of a `"reader"`, a `"writer"`, a `"command"` or a `"remote"`, each with its type and its meaning.
#[pyfunction]
pub fn options_help(of: &str) -> PyResult<String> {
    Ok(match of {
        "reader" => text(READER),
        "writer" => text(WRITER),
        "command" => text(COMMAND),
        "remote" => text(REMOTE),
        other => return Err(PyValueError::new_err(other.to_owned())),
    })
}

fn text<B>(options: &[Setting<B>]) -> String {
    let mut text = String::new();
    for Setting { name, about, set } in options {
        let kind = match set {
            Set::Number(_) => "int",
            Set::Numbers(_) => "(int, int)",
            Set::List(_) => "list of int",
            Set::Flag(_) => "bool",
            Set::Time(_) => "seconds",
            Set::Text(_) => "str",
            Set::Word(_) => "one of these words",
        };
        text += &format!("{name}: {kind}\n");
        wrap(&mut text, "    ", about);
        if let Set::Word(words) = set {
            for word in *words {
                let default = if word.is_default { " (the default)" } else { "" };
                wrap(&mut text, "        ", &format!("\"{}\"{default}: {}", word.word, word.about));
            }
        }
    }
    text
}

/// Appends lines of words, each with this indentation.
fn wrap(text: &mut String, indent: &str, words: &str) {
    let mut line = indent.to_owned();
    for word in words.split_whitespace() {
        if line.len() > indent.len() && line.len() + word.len() >= WIDTH {
            *text += line.trim_end();
            *text += "\n";
            line = indent.to_owned();
        }
        line += word;
        line += " ";
    }
    *text += line.trim_end();
    *text += "\n";
}
