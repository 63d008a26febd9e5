//! Finds the test data: the data in the repository, and data under other licences, which is not in the repository.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};

/// Returns the file or folder `vectors/NAME` of the repository.
pub fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(name)
}

/// Returns the folder `shared/corpus/NAME` next to the repository, or in the folder that `MILLSTREAM_SHARED` names. A
/// plain clone has none. In that case this prints that the test is skipped, even in CI, because the licence keeps the
/// data out of the repository.
pub fn corpus(name: &str) -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("shared"));
    let named = std::env::var_os("MILLSTREAM_SHARED").map(PathBuf::from);
    let found = named.into_iter().chain(around).map(|folder| folder.join("corpus").join(name)).find(|it| it.is_dir());
    if found.is_none() {
        crate::skip::say(&format!("shared/corpus/{name} is not next to the repository"));
    }
    found
}

/// Returns the files with this extension in `vectors/NAME` and `shared/corpus/NAME`, sorted; a file in both counts
/// once.
pub fn files(name: &str, extension: &str) -> Vec<PathBuf> {
    let own = Some(vectors(name)).filter(|folder| folder.is_dir());
    let mut files = std::collections::BTreeMap::new();
    for folder in own.into_iter().chain(corpus(name)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|found| found == extension) {
                files.entry(path.file_name().unwrap().to_owned()).or_insert(path);
            }
        }
    }
    files.into_values().collect()
}
