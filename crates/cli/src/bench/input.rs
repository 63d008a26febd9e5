//! The input of the measured ways: a user's file, or a generated one.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use millstream::{Error, ErrorKind, Reader, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::run::{Network, Source};

/// A regular file that every way reads from its start.
pub(super) enum Input {
    Named(PathBuf),
    /// A generated file without a name, so that no file remains, however the process ends.
    Made(File),
}

impl Input {
    /// Creates an input from the user's file, or one that `make` fills with random numbers, which are the same each
    /// time.
    pub(super) fn new(
        path: Option<&PathBuf>,
        make: impl FnOnce(&mut dyn Write, &mut Xoshiro256PlusPlus) -> io::Result<()>,
    ) -> Result<Input> {
        let Some(path) = path else {
            let mut out = BufWriter::new(tempfile::tempfile()?);
            make(&mut out, &mut Xoshiro256PlusPlus::seed_from_u64(1))?;
            return Ok(Input::Made(out.into_inner().map_err(io::Error::from)?));
        };
        check(path)?;
        Ok(Input::Named(path.clone()))
    }

    /// Opens the file at its start. Handles of a file without a name share one position, so only one way may read at a
    /// time.
    pub(super) fn open(&self) -> io::Result<File> {
        match self {
            Input::Named(path) => File::open(path),
            Input::Made(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(file)
            }
        }
    }

    /// Returns the input's name for use in a sentence; `made` describes the content if it was generated.
    pub(super) fn name(&self, made: &str) -> String {
        match self {
            Input::Named(path) => path.display().to_string(),
            Input::Made(_) => made.to_string(),
        }
    }
}

/// Fails unless the path refers to a file that any process can read repeatedly.
pub(super) fn check(path: &Path) -> Result<()> {
    Source::File(path.to_path_buf()).preview(&Network::default())?;
    let refused = |found: String, expected: &str| {
        let error = Error::new(ErrorKind::OpenFailed).with_name(path.to_string_lossy());
        Err(error.with_found(found).with_expected(expected))
    };
    if !std::fs::metadata(path)?.is_file() {
        return refused(
            "an input that can be read only once".to_string(),
            "a regular file, which every way can read from the start",
        );
    }
    let mut reader = Reader::path(path)?;
    reader.fill()?;
    match reader.progress().format {
        None => Ok(()),
        Some(format) => {
            let decoder = format.command();
            let expected = format!(
                "a file that is not compressed: decode it first, or use `millstream bench command -- {decoder} {path}` to measure readers after a decoder, and `time millstream run --count {path}` to measure decoding in process",
                path = path.display()
            );
            refused(format!("{format}, which the other programs cannot decode"), &expected)
        }
    }
}
