//! Reads graphs from malicious BSON.jl files with a small memory limit. A graph that is read must be written back as
//! the same graph.
#![no_main]

mod documents;

use libfuzzer_sys::fuzz_target;
use millstream::bson::julia::{Graph, Options};
use millstream::bson::{Document, Value};

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = documents::document(data) else { return };
    let Ok(document) = Document::new(&bytes) else { return };
    let Ok(graph) = Graph::read_with(document, &Options::new().memory(1 << 20)) else { return };
    let text = graph.to_string();
    let _ = graph.root().to::<Value>();
    let Ok(written) = graph.to_vec() else { return };
    let again = Graph::read(Document::new(&written).unwrap()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(again.to_string(), text);
});
