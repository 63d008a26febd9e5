//! The compressed formats, for both directions: their names, and the first bytes by which they are detected.
//!
//! [`formats!`] is the only table; `cargo xtask generate` writes what other languages repeat of it. A format in it that
//! we cannot decode is detected anyway, so that its bytes are not mistaken for data. `CONTRIBUTING.md` lists what else a
//! new format needs.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The lowest and the highest value of each byte that a format begins with.
type Beginning = &'static [(u8, u8)];

struct Row {
    known: Known,
    /// Of names, without the dot.
    endings: &'static [&'static str],
    beginnings: &'static [Beginning],
}

/// Declares [`Format`] and [`Codec`], and [`KNOWN`] with everything that is detected.
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

        /// The same for our own crates, where a `match` must name every format: the compiler shows what a new one needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Codec {
            $($(#[doc = $doc])* $format,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Format] = &[$(Format::$format),*];

            /// Its name, the same in every language.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)*
                }
            }

            /// The same, for a `match` that names every format.
            #[doc(hidden)]
            pub const fn codec(self) -> Codec {
                match self {
                    $(Format::$format => Codec::$format,)*
                }
            }

            /// The useful levels, from fast to small.
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

            /// The feature of the crate `millstream` that reads and writes it.
            #[doc(hidden)]
            pub const fn feature(self) -> &'static str {
                match self {
                    $(Format::$format => $feature,)*
                }
            }

            /// The usual command that decodes it to its standard output.
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
        // It begins like gzip, followed by a field that `guess` looks for.
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
        // The second is a frame to be skipped, as pzstd writes at the front.
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

    ; // What is only detected, and refused:

    {
        name: "lz4",
        endings: ["lz4"],
        beginnings: [&[(0x04, 0x04), (0x22, 0x22), (0x4d, 0x4d), (0x18, 0x18)]],
    }
    {
        name: "bzip2",
        endings: ["bz2"],
        // "BZh" and a digit could be text: the magic of the first block follows, or of the end if there is no block.
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
    // The first bytes of the others could be text.
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
    /// Whether a decoder of this format reads `other` too: every bgzf stream is a gzip stream.
    #[doc(hidden)]
    pub fn reads(self, other: Format) -> bool {
        self == other || matches!((self, other), (Format::Gzip, Format::Bgzf) | (Format::Bgzf, Format::Gzip))
    }

    /// All names, for messages: `gzip, bgzf or zstd`.
    fn names() -> String {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
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
                .with_expected(format!("{} data, or decoding switched off", Format::names()))
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
