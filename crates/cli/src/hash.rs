//! Checksums of the output, with the best crate for each kind.

use std::fmt::Write;

use clap::ValueEnum;
use sha2::{Digest, Sha256};

/// A kind of checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// SHA-256, as `sha256sum` prints it
    Sha256,
    /// BLAKE3, as `b3sum` prints it
    Blake3,
    /// CRC-32C (Castagnoli), which detects only accidental changes
    Crc32c,
}

impl Algorithm {
    /// Returns the name on the command line and in the statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Blake3 => "blake3",
            Algorithm::Crc32c => "crc32c",
        }
    }
}

/// A checksum in progress.
pub(crate) enum Hasher {
    /// SHA-256.
    Sha256(Sha256),
    /// BLAKE3; boxed, because its state takes two kilobytes.
    Blake3(Box<blake3::Hasher>),
    /// The CRC so far.
    Crc32c(u32),
}

impl Hasher {
    /// Returns the checksum of no bytes.
    pub(crate) fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Blake3 => Hasher::Blake3(Box::default()),
            Algorithm::Crc32c => Hasher::Crc32c(0),
        }
    }

    /// Adds `bytes`.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Hasher::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, bytes),
        }
    }

    /// Returns the checksum in lower-case hexadecimal digits.
    pub(crate) fn finish(&self) -> String {
        match self {
            Hasher::Sha256(hasher) => hex(&hasher.clone().finalize()),
            Hasher::Blake3(hasher) => hex(hasher.finalize().as_bytes()),
            Hasher::Crc32c(crc) => hex(&crc.to_be_bytes()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_for_any_split() {
        // The values are those of FIPS 180-2 for "abc", the BLAKE3 test vectors for the bytes 0, 1, 2, and RFC 3720 B.4
        // for 32 bytes of zero.
        let cases: [(Algorithm, &[u8], &str); 3] = [
            (Algorithm::Sha256, b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (Algorithm::Blake3, &[0, 1, 2], "e1be4d7a8ab5560aa4199eea339849ba8e293d55ca0a81006726d184519e647f"),
            (Algorithm::Crc32c, &[0; 32], "8a9136aa"),
        ];
        for (algorithm, bytes, expected) in cases {
            let mut whole = Hasher::new(algorithm);
            whole.update(bytes);
            assert_eq!(whole.finish(), expected);
            let mut single = Hasher::new(algorithm);
            bytes.chunks(1).for_each(|byte| single.update(byte));
            assert_eq!(single.finish(), expected);
        }
    }
}
