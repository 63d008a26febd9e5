//! Checks that a program exists, before any output is created for it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use millstream::{Error, ErrorKind, Result};
use rustix::fs::Access;
use rustix::io::Errno;

/// Fails if no program of this name can be started. The operating system searches for the program again when it is
/// started.
///
/// # Errors
/// Returns [`ErrorKind::CommandNotStarted`] with the reason.
pub(crate) fn find(name: &OsStr) -> Result<()> {
    find_in(name, std::env::var_os("PATH").as_deref())
}

/// Searches this PATH like [`find`].
fn find_in(name: &OsStr, path: Option<&OsStr>) -> Result<()> {
    let executable = |path: &Path| {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::Error::from(Errno::ACCESS));
        }
        rustix::fs::access(path, Access::EXEC_OK).map_err(io::Error::from)
    };
    let found = if name.as_bytes().contains(&b'/') {
        executable(Path::new(name))
    } else {
        // Without a PATH, the operating system uses its own default, which is unknown here.
        let Some(path) = path else { return Ok(()) };
        let mut found = Err(io::Error::from(Errno::NOENT));
        for directory in std::env::split_paths(path) {
            found = match executable(&directory.join(name)) {
                // Like shells, this takes the first program that can be started. If none can, it reports the reason for
                // one of them.
                Err(error) if error.kind() == io::ErrorKind::NotFound => found,
                other => other,
            };
            if found.is_ok() {
                break;
            }
        }
        found
    };
    found.map_err(|error| {
        Error::new(ErrorKind::CommandNotStarted).with_name(name.to_string_lossy().into_owned()).with_io(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_searched_for_as_shells_do() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("plain"), "").unwrap();
        let both = std::env::join_paths([directory.path(), Path::new("/bin")]).unwrap();
        let errno = |name: &str| find_in(name.as_ref(), Some(&both)).map_err(|error| error.errno());
        assert_eq!(errno("sh"), Ok(()));
        assert_eq!(errno("plain"), Err(Some(Errno::ACCESS.raw_os_error())));
        assert_eq!(errno("no-such-program"), Err(Some(Errno::NOENT.raw_os_error())));
        assert_eq!(errno("/bin"), Err(Some(Errno::ACCESS.raw_os_error())));
        assert_eq!(errno("/bin/sh"), Ok(()));
    }
}
