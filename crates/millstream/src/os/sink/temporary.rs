//! Temporary names for files that are to appear complete.

use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// The longest part of the file's name that its temporary file repeats. The whole temporary name must fit into 255
/// bytes.
const MAX_NAME_PART: usize = 200;

/// The text between that part and six random letters. It identifies files of processes that were killed.
const MARK: &str = ".millstream-";
const ENDING: &str = ".tmp";

/// The maximum number of existing names that are skipped: with 36⁶ possible names, more collisions are no accident.
const ATTEMPTS: usize = 1 << 10;

/// A temporary name. When it is dropped, the file is removed. A forked child has a copy of it, and must not remove its
/// parent's file.
pub(super) struct Temporary {
    /// `None` once renamed.
    path: Option<PathBuf>,
    /// The process that created it.
    process: u32,
}

impl Temporary {
    /// Creates a file under a temporary name next to `target`. `make` must fail if a file of that name exists.
    pub(super) fn beside<T>(target: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, Temporary)> {
        let (Some(directory), Some(file_name)) = (target.parent(), target.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        let part = file_name.as_bytes();
        let part = &part[..part.len().min(MAX_NAME_PART)];
        let mut attempts = 0..ATTEMPTS;
        loop {
            attempts.next();
            let letters = random_letters();
            let name = [b".", part, MARK.as_bytes(), &letters, ENDING.as_bytes()].concat();
            let path = directory.join(OsString::from_vec(name));
            match make(&path) {
                Ok(made) => return Ok((made, Temporary { path: Some(path), process: std::process::id() })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !attempts.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Renames the file to `target`, replacing an existing file. After an error the call may be repeated.
    pub(super) fn rename(&mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
            self.path = None;
        }
        Ok(())
    }

    /// Gives the file its name, if no file of this name exists.
    pub(super) fn rename_new(&mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            match renameat_with(CWD, path, CWD, target, RenameFlags::NOREPLACE) {
                // The file system has no such call, but probably has links.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => return fs::hard_link(path, target),
                renamed => renamed?,
            }
            self.path = None;
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.path.take().filter(|_| self.process == std::process::id()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns six letters and digits that are rarely repeated. The names need not be secret, because a name that exists is
/// never used. The keys of the standard library's hash maps come from the system's random numbers.
fn random_letters() -> [u8; 6] {
    let mut random = RandomState::new().hash_one(std::process::id());
    std::array::from_fn(|_| {
        let letter = b"abcdefghijklmnopqrstuvwxyz0123456789"[(random % 36) as usize];
        random /= 36;
        letter
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_forked_child_leaves_the_file_of_its_parent() {
        let directory = tempfile::tempdir().unwrap();
        let make = || Temporary::beside(&directory.path().join("out"), |path| File::create_new(path)).unwrap().1;
        let count = || fs::read_dir(directory.path()).unwrap().count();
        drop(make());
        assert_eq!(count(), 0);
        // This simulates a forked child, which has a different process ID.
        drop(Temporary { path: make().path.take(), process: 0 });
        assert_eq!(count(), 1);
    }

    #[test]
    fn a_new_name_replaces_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let mut temporary = Temporary::beside(&target, |path| File::create_new(path)).unwrap().1;
        fs::write(&target, "other").unwrap();
        assert_eq!(temporary.rename_new(&target).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&target).unwrap(), "other");
        fs::remove_file(&target).unwrap();
        temporary.rename_new(&target).unwrap();
        drop(temporary);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_name_is_skipped_a_limited_number_of_times() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let mut names = Vec::new();
        let (count, temporary) = Temporary::beside(&target, |path| {
            names.push(path.to_path_buf());
            if names.len() < 4 { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(names.len()) }
        })
        .unwrap();
        assert_eq!((count, temporary.path.as_deref()), (4, names.last().map(PathBuf::as_path)));
        let name = names[3].file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(".out.millstream-") && name.ends_with(".tmp"), "{name}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 4);
        let refused = Temporary::beside(&target, |_| Err::<(), _>(io::ErrorKind::AlreadyExists.into()));
        assert_eq!(refused.err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    }
}
