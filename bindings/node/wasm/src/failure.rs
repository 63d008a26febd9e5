//! Errors of the core as data. TypeScript creates the exception from it, so that there is only one class of errors.

use millstream_core::Error;
use serde_json::{Map, Value};

/// Returns the advice with options as JavaScript spells them: `allowFailure`.
pub fn advice(error: &Error) -> String {
    error.advice_with(|name| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default();
        Some(words.fold(format!("`{first}"), |name, word| name + &word[..1].to_uppercase() + &word[1..]) + "`")
    })
}

/// Returns the error as a JSON object: `kind`, `advice`, and if known `found`, `expected`, `offset` and `path`. `at` is added to
/// the offset.
pub(crate) fn failure(error: &Error, at: usize) -> Value {
    let offset = error.offset().map(|offset| Value::from(offset + at as u64));
    let text = |text: Option<&str>| text.map(Value::from);
    let details = [
        ("kind", Some(error.kind().name().into())),
        ("advice", Some(advice(error).into())),
        ("found", text(error.found())),
        ("expected", text(error.expected())),
        ("offset", offset),
        ("path", text(error.path())),
    ];
    let known = details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect::<Map<_, _>>())
}
