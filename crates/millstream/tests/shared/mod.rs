//! Finds the test data that is not in the repository, because others have licensed or generated it.

use std::path::{Path, PathBuf};

/// The folder `shared/corpus/NAME` beside the repository, or the one that `MILLSTREAM_SHARED` names. Without it says
/// so: a plain clone has none.
///
/// # Panics
/// Without it, if `CI=true`.
#[track_caller]
pub fn corpus(name: &str) -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("shared"));
    let named = std::env::var_os("MILLSTREAM_SHARED").map(PathBuf::from);
    let found = named.into_iter().chain(around).map(|folder| folder.join("corpus").join(name)).find(|it| it.is_dir());
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "shared/corpus/{name} is missing");
        crate::skip::say(&format!("shared/corpus/{name} is missing"));
    }
    found
}
