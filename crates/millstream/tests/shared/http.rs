//! Requests of HTTP, as far as the servers in tests need them.

use std::io::BufRead;

/// Reads the lines before the body, without their ends. `None` means that the connection has ended.
pub fn head(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(lines),
            line => lines.push(line.to_string()),
        }
    }
}
