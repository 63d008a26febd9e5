//! What the macros say of code that is wrong: each file in `errors/` beside what the compiler says of it. What the
//! compiler itself says of a type that is no value is not here, since that differs from version to version.
//!
//! `TRYBUILD=overwrite cargo test -p millstream-derive --test errors` writes the messages anew: read them before they
//! are committed.

#[test]
fn messages_point_at_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}
