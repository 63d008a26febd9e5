//! Julia's numbers and characters, and the values that have no content.

use super::known::Known;
use half::f16;
use std::fmt;

/// A value of a type that Julia defines and that has no parts.
///
/// Its text is JSON; see [`Graph`](super::Graph) for values that JSON cannot represent.
///
/// ```
/// use millstream::bson::julia::Scalar;
/// assert_eq!(Scalar::from(2.5f32), Scalar::Float32(2.5));
/// assert_eq!(Scalar::Int8(-3).as_i128(), Some(-3));
/// assert_eq!(Scalar::from('é').type_name(), "Char");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `nothing`.
    Nothing,
    /// `missing`.
    Missing,
    /// A boolean.
    Bool(bool),
    /// A character.
    Char(Char),
    /// A signed 8-bit integer.
    Int8(i8),
    /// A signed 16-bit integer.
    Int16(i16),
    /// A signed 32-bit integer.
    Int32(i32),
    /// A signed 64-bit integer.
    Int64(i64),
    /// A signed 128-bit integer.
    Int128(i128),
    /// An unsigned 8-bit integer.
    UInt8(u8),
    /// An unsigned 16-bit integer.
    UInt16(u16),
    /// An unsigned 32-bit integer.
    UInt32(u32),
    /// An unsigned 64-bit integer.
    UInt64(u64),
    /// An unsigned 128-bit integer.
    UInt128(u128),
    /// A 16-bit floating point number.
    Float16(f16),
    /// A 32-bit floating point number.
    Float32(f32),
    /// A 64-bit floating point number.
    Float64(f64),
}

/// Implements numbers: the Rust type, the variant.
macro_rules! numbers {
    ($($type:ident $kind:ident;)*) => {
        $(impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar {
                Scalar::$kind(value)
            }
        })*

        impl Scalar {
            /// Reads a value of this type from its in-memory representation, least significant byte first. `bytes` must
            /// have the size of the type.
            pub(super) fn from_memory(known: Known, bytes: &[u8]) -> Option<Scalar> {
                Some(match known {
                    Known::Nothing => Scalar::Nothing,
                    Known::Missing => Scalar::Missing,
                    Known::Bool => Scalar::Bool(*bytes.first()? != 0),
                    Known::Char => Scalar::Char(Char(u32::from_le_bytes(bytes.try_into().ok()?))),
                    $(Known::$kind => Scalar::$kind($type::from_le_bytes(bytes.try_into().ok()?)),)*
                    _ => return None,
                })
            }

            /// Appends the in-memory representation.
            pub(super) fn to_memory(self, out: &mut Vec<u8>) {
                match self {
                    Scalar::Nothing | Scalar::Missing => {}
                    Scalar::Bool(value) => out.push(u8::from(value)),
                    Scalar::Char(value) => out.extend_from_slice(&value.0.to_le_bytes()),
                    $(Scalar::$kind(value) => out.extend_from_slice(&value.to_le_bytes()),)*
                }
            }

            pub(super) const fn known(self) -> Known {
                match self {
                    Scalar::Nothing => Known::Nothing,
                    Scalar::Missing => Known::Missing,
                    Scalar::Bool(_) => Known::Bool,
                    Scalar::Char(_) => Known::Char,
                    $(Scalar::$kind(_) => Known::$kind,)*
                }
            }
        }
    };
}

numbers! {
    i8 Int8; i16 Int16; i32 Int32; i64 Int64; i128 Int128;
    u8 UInt8; u16 UInt16; u32 UInt32; u64 UInt64; u128 UInt128;
    f16 Float16; f32 Float32; f64 Float64;
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}

impl From<char> for Scalar {
    fn from(value: char) -> Scalar {
        Scalar::Char(value.into())
    }
}

impl Scalar {
    /// Returns the name of its type in Julia.
    pub fn type_name(self) -> &'static str {
        self.known().path().map_or("", |[_, name]| name)
    }

    /// Returns the value, if it is an integer that fits; booleans and characters do not count as integers.
    pub fn as_i128(self) -> Option<i128> {
        Some(match self {
            Scalar::Int8(value) => value.into(),
            Scalar::Int16(value) => value.into(),
            Scalar::Int32(value) => value.into(),
            Scalar::Int64(value) => value.into(),
            Scalar::Int128(value) => value,
            Scalar::UInt8(value) => value.into(),
            Scalar::UInt16(value) => value.into(),
            Scalar::UInt32(value) => value.into(),
            Scalar::UInt64(value) => value.into(),
            Scalar::UInt128(value) => value.try_into().ok()?,
            _ => return None,
        })
    }

    /// Returns the value, if it is a floating point number.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Scalar::Float16(value) => Some(value.into()),
            Scalar::Float32(value) => Some(value.into()),
            Scalar::Float64(value) => Some(value),
            _ => None,
        }
    }
}

/// Every JSON reader represents integers up to this number exactly.
const EXACT: u128 = 1 << 53;

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Nothing => f.write_str("null"),
            Scalar::Missing => f.write_str(r#"{"$missing":true}"#),
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Char(value) => value.fmt(f),
            Scalar::UInt128(value) if value > EXACT => write!(f, r#"{{"$int":"{value}"}}"#),
            Scalar::UInt128(value) => write!(f, "{value}"),
            Scalar::Float16(value) => match value.is_finite() && value.to_bits() != 0x8000 {
                true => f.write_str(&shortest(value)),
                false => odd_float(f, value.into(), &format!("{:04x}", value.to_bits())),
            },
            Scalar::Float32(value) => match value.is_finite() && value.to_bits() != 1 << 31 {
                true => write!(f, "{value:?}"),
                false => odd_float(f, value.into(), &format!("{:08x}", value.to_bits())),
            },
            Scalar::Float64(value) => match value.is_finite() && value.to_bits() != 1 << 63 {
                true => write!(f, "{value:?}"),
                false => odd_float(f, value, &format!("{:016x}", value.to_bits())),
            },
            integer => match integer.as_i128() {
                Some(value) if value.unsigned_abs() > EXACT => write!(f, r#"{{"$int":"{value}"}}"#),
                Some(value) => write!(f, "{value}"),
                None => Ok(()),
            },
        }
    }
}

/// Returns the shortest digits that are read back as the same number.
fn shortest(value: f16) -> String {
    (0..8)
        .map(|digits| format!("{:.digits$e}", value.to_f32()))
        .find(|text| text.parse().map(f16::from_f32) == Ok(value))
        .unwrap_or_else(|| format!("{:?}", value.to_f32()))
}

fn odd_float(f: &mut fmt::Formatter<'_>, value: f64, bits: &str) -> fmt::Result {
    let name = match value {
        _ if value.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "-0.0",
    };
    write!(f, r#"{{"$float":"{name}","bits":"{bits}"}}"#)
}

/// A `Char` as Julia stores it: its UTF-8 bytes in 32 bits, starting with the highest. It can contain bytes that are
/// not a valid character.
///
/// ```
/// use millstream::bson::julia::Char;
/// assert_eq!(Char::from('é'), Char(0xc3a9_0000));
/// assert_eq!(Char(0xf09f_9a80).to_char(), Some('🚀'));
/// assert_eq!(Char(0xff00_0000).to_char(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Char(pub u32);

impl Char {
    /// Returns the character, if it is valid.
    pub fn to_char(self) -> Option<char> {
        let bytes = self.0.to_be_bytes();
        let len = bytes[0].leading_ones().max(1) as usize;
        let after = bytes.get(len..)?;
        let text = std::str::from_utf8(&bytes[..len]).ok()?;
        text.chars().next().filter(|_| after.iter().all(|&byte| byte == 0))
    }
}

impl From<char> for Char {
    fn from(value: char) -> Char {
        let mut bytes = [0; 4];
        value.encode_utf8(&mut bytes);
        Char(u32::from_be_bytes(bytes))
    }
}

impl fmt::Display for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_char() {
            Some(value) => {
                write!(f, r#"{{"$char":{},"code":{}}}"#, serde_json::Value::from(value.to_string()), value as u32)
            }
            None => write!(f, r#"{{"$char":null,"bits":"{:08x}"}}"#, self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_comes_back() {
        for value in (0..=0x10ffff).filter_map(char::from_u32).step_by(37) {
            assert_eq!(Char::from(value).to_char(), Some(value));
        }
        for bad in [0x8000_0000, 0xc300_0000, 0xff00_0000, 0x6100_0001, 0xf8ff_ffff, u32::MAX] {
            assert_eq!(Char(bad).to_char(), None, "{bad:x}");
        }
    }

    #[test]
    fn half_precision_is_shown_by_its_own_digits() {
        for (value, text) in [(0.1, "1e-1"), (1.5, "1.5e0"), (65504.0, "6.55e4"), (5.9604645e-8, "6e-8")] {
            assert_eq!(Scalar::Float16(f16::from_f32(value)).to_string(), text);
        }
        assert_eq!(Scalar::Float16(f16::NEG_ZERO).to_string(), r#"{"$float":"-0.0","bits":"8000"}"#);
    }
}
