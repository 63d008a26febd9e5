//! A sampler inside the millstream runners, which an environment variable enables.
//!
//! If it is not set, the cost is one look-up in the environment at the start of the program; no signal is sent.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use pprof::{ProfilerGuard, ProfilerGuardBuilder};

/// The variable: the file to write the folded stacks to.
pub const VARIABLE: &str = "MILLSTREAM_PROFILE";

/// How often to look, in samples for each second of processor time: not a divisor of what programs do regularly.
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
            // The same functions at several addresses are one stack.
            let mut stacks: BTreeMap<String, isize> = BTreeMap::new();
            for (stack, count) in &report.data {
                // A frame is several functions where some were inlined; the innermost of all comes first.
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
