//! A sampler inside the Millstream runners that is enabled by an environment variable.
//!
//! If the variable is not set, the only cost is one lookup when the program starts; no signal is sent.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use pprof::{ProfilerGuard, ProfilerGuardBuilder};

/// The name of the variable, whose value is the file to write the folded stacks to.
pub const VARIABLE: &str = "MILLSTREAM_PROFILE";

/// The number of samples per second of processor time. It is a prime number, so that it is not in step with what
/// programs do periodically.
const FREQUENCY: i32 = 997;

/// A profile that is being recorded; dropping it writes the file.
pub struct Sampler {
    guard: ProfilerGuard<'static>,
    path: PathBuf,
}

/// Starts sampling if [`VARIABLE`] names a file. Keep the result until the end of the program.
pub fn from_environment() -> Option<Sampler> {
    let path = env::var_os(VARIABLE)?.into();
    let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&["libc", "libgcc", "vdso"]).build();
    match guard {
        Ok(guard) => Some(Sampler { guard, path }),
        Err(error) => {
            eprintln!("{VARIABLE}: no profile is taken: {error}");
            None
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let written = self.guard.report().build().map_err(|error| error.to_string()).and_then(|report| {
            // Stacks with the same functions at different addresses are merged.
            let mut stacks: BTreeMap<String, isize> = BTreeMap::new();
            for (stack, count) in &report.data {
                // If functions were inlined, one frame contains several of them; the innermost comes first.
                let functions = stack.frames.iter().rev().flat_map(|frame| frame.iter().rev());
                let names = functions.map(|symbol| symbol.name().replace(';', ","));
                // The sampler's own frames follow those of the interrupted code.
                let names: Vec<String> = names.take_while(|name| !name.contains("pprof::")).collect();
                *stacks.entry(names.join(";")).or_default() += count;
            }
            let folded: String = stacks.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
            fs::write(&self.path, folded).map_err(|error| error.to_string())
        });
        if let Err(error) = written {
            eprintln!("{VARIABLE}: the profile is lost: {error}");
        }
    }
}
