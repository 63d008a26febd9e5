//! The compressed formats, for reading and writing: their names, and the first bytes by which they are detected.
//!
//! [`formats!`] is the only table; `cargo xtask generate` writes the tables of other languages from it. A format that
//! cannot be decoded is still detected, so that its bytes are not mistaken for data. `CONTRIBUTING.md` lists what else
//! a new format needs.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// A beginning of a format: the lowest and the highest value of each byte.
type Beginning = &'static [(u8, u8)];

struct Row {
    known: Known,
    /// Suffixes of file names, without the dot.
    endings: &'static [&'static str],
    beginnings: &'static [Beginning],
}

/// Declares [`Format`], [`Codec`], and [`KNOWN`], which contains every format that is detected.
macro_rules! formats {
    (
        $($(#[doc = $doc:literal])* $format:ident {
            name: $name:literal,
            endings: $endings:expr,
            beginnings: $beginnings:expr,
            levels: $levels:expr,
            usual_level: $usual_level:literal,
            feature: $feature:literal,
            command: $command:literal,
        })*
        ;
        $({ name: $other:literal, endings: $other_endings:expr, beginnings: $other_beginnings:expr, })*
    ) => {
        /// A compressed format that is read and written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = $doc])* $format,)*
        }

        /// The same formats for this project's own crates, in which a `match` must name every format: the compiler
        /// reports the places where a new format must be added.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Codec {
            $($(#[doc = $doc])* $format,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Format] = &[$(Format::$format),*];

            /// The name of the format, the same in every language.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)*
                }
            }

            /// The format as an enum for a `match` that names every format.
            #[doc(hidden)]
            pub const fn codec(self) -> Codec {
                match self {
                    $(Format::$format => Codec::$format,)*
                }
            }

            /// The useful levels, from the fastest to the smallest output.
            #[doc(hidden)]
            pub fn levels(self) -> RangeInclusive<u32> {
                match self {
                    $(Format::$format => $levels,)*
                }
            }

            /// The default level of the format's own command.
            #[doc(hidden)]
            pub const fn usual_level(self) -> u32 {
                match self {
                    $(Format::$format => $usual_level,)*
                }
            }

            /// The feature of the `millstream` crate that enables the format.
            #[doc(hidden)]
            pub const fn feature(self) -> &'static str {
                match self {
                    $(Format::$format => $feature,)*
                }
            }

            /// The usual command that decodes the format to standard output.
            #[doc(hidden)]
            pub const fn command(self) -> &'static str {
                match self {
                    $(Format::$format => $command,)*
                }
            }
        }

        /// Every format that is detected.
        const KNOWN: &[Row] = &[
            $(Row { known: Known::Ours(Format::$format), endings: &$endings, beginnings: &$beginnings },)*
            $(Row { known: Known::Other($other), endings: &$other_endings, beginnings: &$other_beginnings },)*
        ];
    };
}

formats! {
    /// gzip (RFC 1952).
    Gzip {
        name: "gzip",
        endings: ["gz"],
        beginnings: [&[(0x1f, 0x1f), (0x8b, 0x8b), (8, 8)]],
        levels: 0..=9,
        usual_level: 6,
        feature: "compression",
        command: "zcat",
    }
    /// bgzf: gzip in blocks, as samtools and tabix write it (SAM specification, section 4.1).
    Bgzf {
        name: "bgzf",
        endings: ["bgz", "bgzf"],
        // It begins like gzip, followed by an extra field, which `guess` looks for.
        beginnings: [],
        levels: 0..=9,
        usual_level: 6,
        feature: "compression",
        command: "zcat",
    }
    /// Zstandard (RFC 8878).
    Zstd {
        name: "zstd",
        endings: ["zst"],
        // The second beginning is a skippable frame, which pzstd writes first.
        beginnings: [
            &[(0x28, 0x28), (0xb5, 0xb5), (0x2f, 0x2f), (0xfd, 0xfd)],
            &[(0x50, 0x5f), (0x2a, 0x2a), (0x4d, 0x4d), (0x18, 0x18)],
        ],
        levels: 1..=22,
        usual_level: 3,
        feature: "compression",
        command: "zstdcat",
    }
    /// xz (the .xz file format of XZ Utils).
    Xz {
        name: "xz",
        endings: ["xz"],
        beginnings: [&[(0xfd, 0xfd), (0x37, 0x37), (0x7a, 0x7a), (0x58, 0x58), (0x5a, 0x5a), (0, 0)]],
        levels: 0..=9,
        usual_level: 6,
        feature: "xz",
        command: "xzcat",
    }

    ; // Formats that are only detected, and rejected:

    {
        name: "lz4",
        endings: ["lz4"],
        beginnings: [&[(0x04, 0x04), (0x22, 0x22), (0x4d, 0x4d), (0x18, 0x18)]],
    }
    {
        name: "bzip2",
        endings: ["bz2"],
        // "BZh" and a digit could be text, so the magic of the first block, or of the end if there is no block, must
        // follow.
        beginnings: [
            &[
                (0x42, 0x42), (0x5a, 0x5a), (0x68, 0x68), (0x31, 0x39),
                (0x31, 0x31), (0x41, 0x41), (0x59, 0x59), (0x26, 0x26), (0x53, 0x53), (0x59, 0x59),
            ],
            &[
                (0x42, 0x42), (0x5a, 0x5a), (0x68, 0x68), (0x31, 0x39),
                (0x17, 0x17), (0x72, 0x72), (0x45, 0x45), (0x38, 0x38), (0x50, 0x50), (0x90, 0x90),
            ],
        ],
    }
    // The first bytes of these formats could be text.
    { name: "zlib", endings: ["zlib", "zz"], beginnings: [], }
    { name: "lzma", endings: ["lzma"], beginnings: [], }
    { name: "lzip", endings: ["lz"], beginnings: [], }
    { name: "lzop", endings: ["lzo"], beginnings: [], }
    { name: "brotli", endings: ["br"], beginnings: [], }
    { name: "compress", endings: ["z"], beginnings: [], }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    /// Returns whether a decoder of this format also reads `other`: every bgzf stream is a gzip stream.
    #[doc(hidden)]
    pub fn reads(self, other: Format) -> bool {
        self == other || matches!((self, other), (Format::Gzip, Format::Bgzf) | (Format::Bgzf, Format::Gzip))
    }

    /// Returns all names, formatted for messages: `gzip, bgzf or zstd`.
    fn names() -> String {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        }
    }
}

/// A format that a name or the first bytes indicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// A format that is supported.
    Ours(Format),
    /// The name of a format that is not supported.
    Other(&'static str),
}

impl Known {
    /// Returns the format that the suffix of a file name indicates; case is ignored.
    pub fn of_name(path: &Path) -> Option<Known> {
        let ending = path.extension()?.to_str()?;
        KNOWN.iter().find(|row| row.endings.iter().any(|known| ending.eq_ignore_ascii_case(known))).map(|row| row.known)
    }

    /// Returns the format if it can be decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it cannot.
    pub fn decoded(self) -> Result<Format, Error> {
        self.ours().map_err(|name| {
            Error::new(ErrorKind::Unsupported)
                .with_found(format!("{name} data"))
                .with_expected(format!("{} data, or decoding switched off", Format::names()))
        })
    }

    /// Returns the format if it can be encoded.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it cannot.
    pub fn encoded(self) -> Result<Format, Error> {
        self.ours().map_err(|name| {
            Error::new(ErrorKind::Unsupported)
                .with_found(format!("a name that implies {name} data"))
                .with_expected(format!("one that implies {} data", Format::names()))
        })
    }

    fn ours(self) -> Result<Format, &'static str> {
        match self {
            Known::Ours(format) => Ok(format),
            Known::Other(name) => Err(name),
        }
    }
}

/// The result of inspecting the first bytes of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Guess {
    /// The bytes are the beginning of this format.
    Is(Known),
    /// The bytes are uncompressed data.
    Plain,
    /// The format depends on bytes that have not arrived yet.
    Open,
}

/// The number of bytes that suffices to distinguish all formats.
pub const SNIFF: usize = 16;

/// Detects the format from the first bytes of a stream. `eof` means that no more bytes follow.
pub fn guess(bytes: &[u8], eof: bool) -> Guess {
    let mut open = bytes.is_empty();
    for row in KNOWN {
        for beginning in row.beginnings {
            if !begins(bytes, beginning) {
                continue;
            }
            let here = bytes.len().min(beginning.len());
            // At the end of the stream, the first two bytes of gzip are enough, because no text contains them.
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

/// Distinguishes gzip and bgzf: bgzf has an extra field that begins with its own magic.
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

/// Returns whether the bytes start like a stream of a known format, supported or not.
pub fn is_known(bytes: &[u8]) -> bool {
    matches!(guess(&bytes[..bytes.len().min(SNIFF)], true), Guess::Is(_))
}

/// Returns whether `bytes`, which may be incomplete, could be the first bytes of `format`.
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
        assert_eq!(guess(b"\xfd7zXZ\0", false), ours(Format::Xz));
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
        for (name, format) in [
            ("a.gz", Format::Gzip),
            ("a.BGZ", Format::Bgzf),
            ("b.bgzf", Format::Bgzf),
            ("a.b.Zst", Format::Zstd),
            ("a.xz", Format::Xz),
        ] {
            assert_eq!(of(name), Some(Known::Ours(format)), "{name}");
        }
        for (name, other) in [("a.LZ4", "lz4"), ("a.bz2", "bzip2"), ("a.zlib", "zlib")] {
            assert_eq!(of(name), Some(Known::Other(other)), "{name}");
        }
        for name in ["a", "gz", ".gz", "a.txt", "a.gz.txt", "a.gzz"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
