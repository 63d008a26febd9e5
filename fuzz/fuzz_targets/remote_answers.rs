//! Parses any text as the documents and headers that servers send and as the addresses that users write, and lists that
//! have its lines as names.
#![no_main]

#[path = "../../crates/remote/tests/answers/checks.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    checks::check_text(&text);
    let names: Vec<&str> = text.split('\n').filter(|name| !name.is_empty()).collect();
    checks::check_names(&names);
});
