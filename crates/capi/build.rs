//! Gives the shared library its name for the loader. The number changes when a program compiled with an older header
//! could not run with a newer library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmillstream.so.0");
    }
}
