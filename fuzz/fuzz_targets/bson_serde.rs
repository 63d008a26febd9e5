//! Millstream and the `bson` crate must accept the same documents, with the same content.
//!
//! There are three exceptions. If several members have the same key, the crate keeps only the last one, but
//! Millstream keeps all of them. The crate's serde reader interprets a member whose name is special in Extended JSON
//! (`$date`), but Millstream does not. The crate has no depth limit, so deep documents are not passed to it.
#![no_main]

mod documents;

use bson::RawDocument;
use libfuzzer_sys::fuzz_target;
use millstream::bson::{Document, Map, Rules, Strictness, from_document, to_vec};
use millstream::{ErrorKind, Result};

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = documents::document(data) else { return };
    let ours = Document::new(&bytes).and_then(from_document::<Map>);
    if ours.as_ref().is_err_and(|error| error.kind() == ErrorKind::TooDeep) {
        return;
    }
    compare(&ours, RawDocument::from_bytes(&bytes).and_then(bson::Document::try_from));
    if !bytes.contains(&b'$') {
        compare(&ours, bson::deserialize_from_slice(&bytes));
    }
});

fn compare(ours: &Result<Map>, theirs: bson::error::Result<bson::Document>) {
    match (ours, theirs) {
        (Err(_), Err(_)) => {}
        (Ok(ours), Ok(theirs)) => {
            let written = to_vec(ours).unwrap();
            let strict = Rules::new().strictness(Strictness::Strict);
            if Document::with_rules(&written, strict).unwrap().check().is_ok() {
                assert_eq!(written, bson::serialize_to_vec(&theirs).unwrap());
            }
        }
        (ours, theirs) => panic!("{ours:?} {theirs:?}"),
    }
}
