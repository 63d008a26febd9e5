//! What the macros report about wrong code: each file in `errors/` next to the compiler's output for it. The compiler's
//! own errors about a type that is no value are not here, since they differ from version to version.
//!
//! `TRYBUILD=overwrite cargo test -p millstream-derive --test errors` writes the messages again: read them before they
//! are committed.

#[test]
fn messages_point_at_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}
