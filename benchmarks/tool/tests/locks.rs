//! Dependencies of both workspaces have the same version in both lock files. They are therefore built only once, and the
//! measured code equals the tested code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns the version of each package, by its name and its compatible version range.
fn versions(lock: &Path) -> BTreeMap<(String, String), String> {
    let lock: toml::Table = fs::read_to_string(lock).unwrap().parse().unwrap();
    let package = |package: &toml::Value| {
        let field = |name: &str| package[name].as_str().unwrap().to_owned();
        let version = field("version");
        let mut numbers = version.split('.');
        let major = numbers.next().unwrap();
        let compatible = if major == "0" { format!("0.{}", numbers.next().unwrap()) } else { major.to_owned() };
        ((field("name"), compatible), version)
    };
    lock["package"].as_array().unwrap().iter().map(package).collect()
}

#[test]
fn the_workspaces_use_the_same_versions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [library, benchmarks] = ["Cargo.lock", "benchmarks/Cargo.lock"].map(|path| versions(&root.join(path)));
    let differs =
        |(key, version): &(&(String, String), &String)| benchmarks.get(*key).is_some_and(|other| other != *version);
    let different: Vec<_> = library.iter().filter(differs).map(|((name, _), version)| (name, version)).collect();
    assert!(different.is_empty(), "in benchmarks/: cargo update NAME --precise VERSION for {different:?}");
}
