//! The compressed formats, for both directions: their names, and the first bytes by which they are detected.
//!
//! [`KNOWN`] is the only table. A format in it that we cannot decode is detected anyway, so that its bytes are not
//! mistaken for data. `CONTRIBUTING.md` lists what else a new format needs.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// A compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// gzip, RFC 1952.
    Gzip,
    /// Blocked gzip, SAM specification section 4.1.
    Bgzf,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Gzip => "gzip",
            Format::Bgzf => "bgzf",
            Format::Zstd => "zstd",
        })
    }
}

impl Format {
    /// The useful levels, from fast to small.
    #[doc(hidden)]
    pub fn levels(self) -> RangeInclusive<u32> {
        match self {
            Format::Gzip | Format::Bgzf => 0..=9,
            Format::Zstd => 1..=22,
        }
    }

    /// The default level of the format's own command.
    #[doc(hidden)]
    pub fn usual_level(self) -> u32 {
        match self {
            Format::Gzip | Format::Bgzf => 6,
            Format::Zstd => 3,
        }
    }

    /// Whether a decoder of this format reads `other` too: every bgzf stream is a gzip stream.
    #[doc(hidden)]
    pub fn reads(self, other: Format) -> bool {
        match (self, other) {
            (Format::Gzip | Format::Bgzf, Format::Gzip | Format::Bgzf) | (Format::Zstd, Format::Zstd) => true,
            (Format::Gzip | Format::Bgzf, Format::Zstd) | (Format::Zstd, Format::Gzip | Format::Bgzf) => false,
        }
    }
}

/// A format implied by a name or by the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// A format that is read and written.
    Ours(Format),
    /// The name of a format that is neither.
    Other(&'static str),
}

impl Known {
    /// The format that a file's name implies by its suffix, in upper or lower case.
    pub fn of_name(path: &Path) -> Option<Known> {
        let ending = path.extension()?.to_str()?;
        KNOWN.iter().find(|row| row.endings.iter().any(|known| ending.eq_ignore_ascii_case(known))).map(|row| row.known)
    }

    /// The format, if we can decode it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub fn decoded(self) -> Result<Format, Error> {
        self.ours().map_err(|name| {
            Error::new(ErrorKind::Unsupported)
                .with_found(format!("{name} data"))
                .with_expected("gzip, bgzf or zstd data, or decoding switched off")
        })
    }

    /// The format, if we can encode it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub fn encoded(self) -> Result<Format, Error> {
        self.ours().map_err(|name| {
            Error::new(ErrorKind::Unsupported)
                .with_found(format!("a name that implies {name} data"))
                .with_expected("one that implies gzip, bgzf or zstd data")
        })
    }

    fn ours(self) -> Result<Format, &'static str> {
        match self {
            Known::Ours(format) => Ok(format),
            Known::Other(name) => Err(name),
        }
    }
}

/// The lowest and the highest value of each byte that a format begins with.
type Beginning = &'static [(u8, u8)];

struct Row {
    known: Known,
    /// Of names, without the dot.
    endings: &'static [&'static str],
    beginnings: &'static [Beginning],
}

/// Every format that is detected.
#[rustfmt::skip]
const KNOWN: &[Row] = &[
    Row { known: Known::Ours(Format::Gzip), endings: &["gz"], beginnings: &[&[(0x1f, 0x1f), (0x8b, 0x8b), (8, 8)]] },
    // It begins like gzip, followed by a field that `guess` looks for.
    Row { known: Known::Ours(Format::Bgzf), endings: &["bgz", "bgzf"], beginnings: &[] },
    Row { known: Known::Ours(Format::Zstd), endings: &["zst"], beginnings: &[
        &[(0x28, 0x28), (0xb5, 0xb5), (0x2f, 0x2f), (0xfd, 0xfd)],
        // A frame to be skipped, as pzstd writes at the front.
        &[(0x50, 0x5f), (0x2a, 0x2a), (0x4d, 0x4d), (0x18, 0x18)],
    ] },
    Row { known: Known::Other("xz"), endings: &["xz"], beginnings: &[
        &[(0xfd, 0xfd), (b'7', b'7'), (b'z', b'z'), (b'X', b'X'), (b'Z', b'Z'), (0, 0)],
    ] },
    Row { known: Known::Other("lz4"), endings: &["lz4"], beginnings: &[
        &[(0x04, 0x04), (0x22, 0x22), (0x4d, 0x4d), (0x18, 0x18)],
    ] },
    // "BZh" and a digit could be text: the magic of the first block follows, or of the end if there is no block.
    Row { known: Known::Other("bzip2"), endings: &["bz2"], beginnings: &[
        &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
          (0x31, 0x31), (0x41, 0x41), (0x59, 0x59), (0x26, 0x26), (0x53, 0x53), (0x59, 0x59)],
        &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
          (0x17, 0x17), (0x72, 0x72), (0x45, 0x45), (0x38, 0x38), (0x50, 0x50), (0x90, 0x90)],
    ] },
    // Their first bytes could be text.
    Row { known: Known::Other("zlib"), endings: &["zlib", "zz"], beginnings: &[] },
    Row { known: Known::Other("lzma"), endings: &["lzma"], beginnings: &[] },
    Row { known: Known::Other("lzip"), endings: &["lz"], beginnings: &[] },
    Row { known: Known::Other("lzop"), endings: &["lzo"], beginnings: &[] },
    Row { known: Known::Other("brotli"), endings: &["br"], beginnings: &[] },
    Row { known: Known::Other("compress"), endings: &["z"], beginnings: &[] },
];

/// What the first bytes of a stream show.
#[derive(Debug, PartialEq, Eq)]
pub enum Guess {
    /// They are the beginning of this format.
    Is(Known),
    /// They are data.
    Plain,
    /// It depends on bytes that have not arrived yet.
    Open,
}

/// Enough first bytes to distinguish all formats.
pub const SNIFF: usize = 16;

/// What the first bytes of a stream show; `eof`: there are no others.
pub fn guess(bytes: &[u8], eof: bool) -> Guess {
    let mut open = bytes.is_empty();
    for row in KNOWN {
        for beginning in row.beginnings {
            if !begins(bytes, beginning) {
                continue;
            }
            let here = bytes.len().min(beginning.len());
            // Two bytes of gzip are enough at the end: no text has them.
            if here == beginning.len() || (eof && here >= 2 && row.known == Known::Ours(Format::Gzip)) {
                return match row.known {
                    Known::Ours(Format::Gzip) => guess_gzip(bytes, eof),
                    known => Guess::Is(known),
                };
            }
            open = true;
        }
    }
    if open && (!eof || bytes.is_empty()) { Guess::Open } else { Guess::Plain }
}

fn begins(bytes: &[u8], beginning: Beginning) -> bool {
    bytes.iter().zip(beginning).all(|(byte, (lowest, highest))| (lowest..=highest).contains(&byte))
}

/// gzip or bgzf: the latter has an extra field, which begins with its own.
fn guess_gzip(bytes: &[u8], eof: bool) -> Guess {
    let format = match (bytes.get(3), bytes.get(12..16)) {
        (Some(flags), _) if flags & 4 == 0 => Format::Gzip,
        (_, Some(field)) if field == b"BC\x02\0" => Format::Bgzf,
        (_, Some(_)) => Format::Gzip,
        (_, None) if eof => Format::Gzip,
        (_, None) => return Guess::Open,
    };
    Guess::Is(Known::Ours(format))
}

/// Whether memory starts like a stream of a known format, supported or not.
pub fn is_known(bytes: &[u8]) -> bool {
    matches!(guess(&bytes[..bytes.len().min(SNIFF)], true), Guess::Is(_))
}

/// Whether `bytes` could be the first ones of `format`, as far as they go.
pub fn may_begin(bytes: &[u8], format: Format) -> bool {
    KNOWN
        .iter()
        .filter(|row| matches!(row.known, Known::Ours(ours) if ours.reads(format)))
        .flat_map(|row| row.beginnings)
        .any(|beginning| begins(bytes, beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BGZF: [u8; SNIFF] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0];

    fn ours(format: Format) -> Guess {
        Guess::Is(Known::Ours(format))
    }

    #[test]
    fn first_bytes_show_the_format() {
        assert_eq!(guess(&[0x1f, 0x8b, 8, 0], false), ours(Format::Gzip));
        assert_eq!(guess(&BGZF, false), ours(Format::Bgzf));
        assert_eq!(guess(&[0x28, 0xb5, 0x2f, 0xfd], false), ours(Format::Zstd));
        assert_eq!(guess(&[0x5a, 0x2a, 0x4d, 0x18], false), ours(Format::Zstd));
        assert_eq!(guess(b"\xfd7zXZ\0", false), Guess::Is(Known::Other("xz")));
        assert_eq!(guess(b"\x04\x22\x4d\x18", false), Guess::Is(Known::Other("lz4")));
        assert_eq!(guess(b"BZh91AY&SY", false), Guess::Is(Known::Other("bzip2")));
        assert_eq!(guess(b"BZh1\x17\x72\x45\x38\x50\x90", false), Guess::Is(Known::Other("bzip2")));
        for text in [&b"hello"[..], b"(x", b"P\n", b"\x1fx", b"\x1f\x8b\x07", b"\x28\xb5\x2e", b"BZh0", b"BZh9\n"] {
            assert_eq!(guess(text, false), Guess::Plain, "{text:?}");
        }
        for cut in 1..SNIFF {
            assert_eq!(guess(&BGZF[..cut], false), Guess::Open, "{cut} bytes");
        }
        for cut in 2..SNIFF {
            assert_eq!(guess(&BGZF[..cut], true), ours(Format::Gzip), "{cut} bytes and no more");
        }
    }

    #[test]
    fn names_promise_a_format() {
        let of = |name: &str| Known::of_name(Path::new(name));
        for (name, format) in
            [("a.gz", Format::Gzip), ("a.BGZ", Format::Bgzf), ("b.bgzf", Format::Bgzf), ("a.b.Zst", Format::Zstd)]
        {
            assert_eq!(of(name), Some(Known::Ours(format)), "{name}");
        }
        for (name, other) in [("a.xz", "xz"), ("a.LZ4", "lz4"), ("a.bz2", "bzip2"), ("a.zlib", "zlib")] {
            assert_eq!(of(name), Some(Known::Other(other)), "{name}");
        }
        for name in ["a", "gz", ".gz", "a.txt", "a.gz.txt", "a.gzz"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
