//! The types that are no Rust types.

/// A 12-byte object id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(pub i64);

/// MongoDB's internal timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub time: u32,
    /// Counts the operations within that second.
    pub increment: u32,
}

/// A 128-bit decimal floating point number (IEEE 754-2008, binary integer significand), as its 16 bytes, the lowest
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

impl Timestamp {
    /// From the 8 bytes of its payload, the lowest first.
    #[inline]
    pub const fn from_bits(bits: u64) -> Timestamp {
        Timestamp { time: (bits >> 32) as u32, increment: bits as u32 }
    }

    /// The number whose 8 bytes, the lowest first, are its payload.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.time as u64) << 32 | self.increment as u64
    }
}
