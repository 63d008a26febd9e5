//! Configures the linker for functions that Node provides.

fn main() {
    napi_build::setup();
}
