//! Sizes such as `64K` and `1.5MiB`.
//!
//! `K`, `M`, `G`, `T` and their long forms `KiB`, `MiB`, … are powers of 1024; `KB`, `MB`, … are powers of 1000, as in
//! `dd` and `head`. The digits are read by the parse-size crate.

use std::ops::RangeInclusive;

use parse_size::{Config, Error};

/// The accepted sizes, for messages.
const ACCEPTED: &str = "a size such as 4096, 64K, 1.5MiB or 2GB";

/// Returns the number of bytes given by `text`, if it is in `range`.
pub(crate) fn parse(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let decimal = lower.ends_with('b') && !lower.ends_with("ib");
    let config = if decimal { Config::new() } else { Config::new().with_binary() };
    match config.parse_size(text) {
        Ok(size) if range.contains(&size) => Ok(size),
        Ok(_) | Err(Error::PosOverflow) => Err(match *range.end() {
            u64::MAX => format!("expected {} or more, below 16E", show(*range.start())),
            end => format!("expected {} to {}", show(*range.start()), show(end)),
        }),
        Err(_) => Err(format!("expected {ACCEPTED}")),
    }
}

/// Formats a size in the largest unit of which it is a whole number.
fn show(size: u64) -> String {
    const UNITS: [(u32, &str); 6] = [(60, "E"), (50, "P"), (40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let unit = UNITS.iter().find(|(shift, _)| size > 0 && size.is_multiple_of(1 << shift));
    match unit {
        Some((shift, unit)) => format!("{}{unit}", size >> shift),
        None if size == 1 => "1 byte".to_string(),
        None => format!("{size} bytes"),
    }
}

/// Formats a size for people; it is exact below 10,000 bytes.
pub(crate) fn shown(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        _ => indicatif::BinaryBytes(bytes as u64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let any = |text| parse(text, 0..=u64::MAX);
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("64KB", 64000),
            ("1.5MiB", 1_572_864),
            ("1.5M", 1_572_864),
            ("2GB", 2_000_000_000),
            ("7B", 7),
        ] {
            assert_eq!(any(text), Ok(size), "{text}");
        }
        for text in ["", "K", "12Q", "-1", "1,5M", "0x10", "64 K B"] {
            assert_eq!(any(text), Err(format!("expected {ACCEPTED}")), "{text}");
        }
    }

    #[test]
    fn limits_are_named() {
        assert_eq!(parse("0", 1..=1 << 30), Err("expected 1 byte to 1G".to_string()));
        assert_eq!(parse("2G", 1..=1 << 30), Err("expected 1 byte to 1G".to_string()));
        assert_eq!(parse("99999999999E", 0..=1000), Err("expected 0 bytes to 1000 bytes".to_string()));
        assert_eq!(parse("0", 1..=u64::MAX), Err("expected 1 byte or more, below 16E".to_string()));
    }
}
