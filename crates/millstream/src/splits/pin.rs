//! What a plan knows about the content of its file, and the check that the file still has it.

use std::ops::Range;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;
use crate::os::stamp::{Identity, changed, shrank};

use super::content::Content;

/// The number of bytes at each end of a file that are hashed.
const END: u64 = 64 << 10;

/// Which properties of a file a plan stores, to detect another file or another version of it.
///
/// They are checked when a split is opened and when it has been read to its end. A file that does not match fails with
/// [`SourceShrank`](ErrorKind::SourceShrank) if it is shorter than the plan says, and otherwise with
/// [`SourceChanged`](ErrorKind::SourceChanged). In addition, the size and the modification time must not change while a
/// split is read; as for every file, only growth is accepted, and only with [`None`](SplitPin::None).
///
/// For an object, the size and the ETag are stored instead, and every request requires them, so each change is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitPin {
    /// Nothing. A file that is shorter than the plan says is still detected; any other change made before a split is
    /// opened is not.
    None,
    /// The size, the modification time and the inode, for one machine and one file system. Not detected: a change that
    /// keeps the size and restores the modification time, and one that the clock of the file system is too coarse to
    /// show (often 4 ms).
    #[default]
    Identity,
    /// The size, and a hash of the first and last 64 KiB, for copies of the file on other machines. If planning reads the
    /// file (it is not compressed, and records are followed or numbered), each split also has a hash of up to 32 KiB before
    /// and 32 KiB after its start. Not detected: a change elsewhere that keeps the size, made before a split is opened.
    Ends,
    /// [`Ends`](SplitPin::Ends), and a hash of the bytes of each split, for which planning reads the whole file. A
    /// split is hashed while it is read, and compared at its end. A change to bytes that are read is detected, unless
    /// the split is not read to its end.
    Full,
}

/// The stored properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Pinned {
    None,
    /// Numbers that may exceed 2^53, which some JSON parsers round, are text.
    Identity {
        size: u64,
        modified: String,
        inode: String,
    },
    Ends {
        size: u64,
        hash: String,
    },
    Full {
        size: u64,
        hash: String,
    },
    /// The size and the strong ETag of an object.
    Version {
        size: u64,
        etag: String,
    },
}

impl Pinned {
    pub(super) fn new(pin: SplitPin, content: &Content, wait: &Wait) -> Result<Pinned> {
        let file = match content {
            Content::File(file) => file,
            Content::Object(_) if pin == SplitPin::None => return Ok(Pinned::None),
            Content::Object(version) => return Ok(Pinned::Version { size: version.size(), etag: version.etag() }),
        };
        let now = Identity::of(file)?;
        let hash = || hash_of_ends(content, now.size, wait);
        Ok(match pin {
            SplitPin::None => Pinned::None,
            SplitPin::Identity => Pinned::Identity { size: now.size, modified: now.modified, inode: now.inode },
            SplitPin::Ends => Pinned::Ends { size: now.size, hash: hash()? },
            SplitPin::Full => Pinned::Full { size: now.size, hash: hash()? },
        })
    }

    /// Fails if the content does not match.
    pub(super) fn check(&self, content: &Content, wait: &Wait) -> Result<()> {
        let now = content.size()?;
        let (Pinned::Identity { size, .. }
        | Pinned::Ends { size, .. }
        | Pinned::Full { size, .. }
        | Pinned::Version { size, .. }) = self
        else {
            return Ok(());
        };
        if now < *size {
            return Err(shrank(now, *size));
        }
        if now > *size {
            return Err(mismatch(format!("{now} bytes"), format!("the {size} bytes of the plan")));
        }
        match (self, content) {
            (Pinned::None, _) => Ok(()),
            (Pinned::Identity { modified, inode, .. }, Content::File(file)) => check_identity(file, modified, inode),
            (Pinned::Identity { .. }, Content::Object(_)) => Err(mismatch("an object", "the file of the plan")),
            (Pinned::Ends { hash, .. } | Pinned::Full { hash, .. }, _) => {
                match hash_of_ends(content, now, wait)? == *hash {
                    true => Ok(()),
                    false => Err(mismatch("other bytes in the first or last 64 KiB", "the bytes of the plan")),
                }
            }
            (Pinned::Version { .. }, Content::File(_)) => Err(mismatch("a file", "the object of the plan")),
            (Pinned::Version { etag, .. }, Content::Object(version)) => match version.etag() {
                found if found == *etag => Ok(()),
                found => Err(mismatch(format!("the ETag {found}"), format!("the ETag {etag} of the plan"))),
            },
        }
    }
}

/// Fails if the file has another modification time or inode.
fn check_identity(file: &std::fs::File, modified: &str, inode: &str) -> Result<()> {
    let now = Identity::of(file)?;
    if now.inode != inode {
        return Err(mismatch(format!("the inode {}", now.inode), format!("the inode {inode} of the plan")));
    }
    if now.modified != modified {
        return Err(mismatch(
            format!("a file modified at {} s", now.modified),
            format!("the time of the plan, {modified} s"),
        ));
    }
    Ok(())
}

/// Returns the error for a file that does not match its plan.
pub(super) fn mismatch(found: impl Into<String>, expected: impl Into<String>) -> Error {
    changed(found, format!("{}; plan the file again if it is the right one", expected.into()))
}

/// Returns the text of a hash.
pub(super) fn text_of(hash: blake3::Hash) -> String {
    HEXLOWER.encode(hash.as_bytes())
}

/// Returns the hash of the first 64 KiB and the last 64 KiB; a shorter file is hashed twice.
fn hash_of_ends(content: &Content, size: u64, wait: &Wait) -> Result<String> {
    let len = size.min(END);
    hash_of(content, &[0..len, size - len..size], wait)
}

/// Returns the BLAKE3 hash of some bytes of the content.
pub(super) fn hash_of(content: &Content, ranges: &[Range<u64>], wait: &Wait) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    for Range { start, end } in ranges {
        let mut bytes = vec![0; (end - start) as usize];
        content.read_exact_at(&mut bytes, *start, wait).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::SourceShrank),
            _ => Error::from_io(error),
        })?;
        hasher.update(&bytes);
    }
    Ok(text_of(hasher.finalize()))
}
