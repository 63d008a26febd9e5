//! Hashes of bytes, each by the best crate for it.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256, as `sha256sum` prints it.
    Sha256,
    /// BLAKE3, as `b3sum` prints it.
    Blake3,
    /// CRC-32C (Castagnoli), which detects only accidental changes.
    Crc32c,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 3] = [Algorithm::Sha256, Algorithm::Blake3, Algorithm::Crc32c];

    /// Returns the name, such as `sha256`.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Blake3 => "blake3",
            Algorithm::Crc32c => "crc32c",
        }
    }
}

/// Parses `ALGORITHM:DIGITS`, and returns the digits in lower case, or else what was expected.
///
/// # Errors
/// Returns what was expected, as a text.
pub fn parse(text: &str) -> Result<(Algorithm, String), String> {
    let (name, digits) = text.split_once(':').unwrap_or_default();
    let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
    let algorithm = algorithm.ok_or("sha256:DIGITS, blake3:DIGITS or crc32c:DIGITS")?;
    let count = Hasher::new(algorithm).finish().len();
    match digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok((algorithm, digits.to_ascii_lowercase())),
        false => Err(format!("{name}: and {count} hexadecimal digits")),
    }
}

/// A hash in progress.
pub enum Hasher {
    /// SHA-256.
    Sha256(Sha256),
    /// BLAKE3; boxed, because its state takes two kilobytes.
    Blake3(Box<blake3::Hasher>),
    /// The CRC so far.
    Crc32c(u32),
}

impl Hasher {
    /// Returns the hash of no bytes.
    pub fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Blake3 => Hasher::Blake3(Box::default()),
            Algorithm::Crc32c => Hasher::Crc32c(0),
        }
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Hasher::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, bytes),
        }
    }

    /// Returns the hash of all bytes so far, in lower-case hexadecimal digits.
    pub fn finish(&self) -> String {
        match self {
            Hasher::Sha256(hasher) => HEXLOWER.encode(&hasher.clone().finalize()),
            Hasher::Blake3(hasher) => HEXLOWER.encode(hasher.finalize().as_bytes()),
            Hasher::Crc32c(crc) => HEXLOWER.encode(&crc.to_be_bytes()),
        }
    }
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
