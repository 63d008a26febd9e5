//! MongoDB's internal timestamp.

/// MongoDB's internal timestamp. It is not a date: use [`DateTime`](super::DateTime) for dates.
///
/// ```
/// use millstream::bson::Timestamp;
/// let timestamp = Timestamp { time: 123_456_789, increment: 42 };
/// assert_eq!(Timestamp::from_bits(timestamp.to_bits()), timestamp);
/// assert!(timestamp < Timestamp { time: 123_456_790, increment: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub time: u32,
    /// The number of the operation within that second.
    pub increment: u32,
}

impl Timestamp {
    /// Converts the payload, a little-endian 64-bit number.
    #[inline]
    pub const fn from_bits(bits: u64) -> Timestamp {
        Timestamp { time: (bits >> 32) as u32, increment: bits as u32 }
    }

    /// Returns the payload, a little-endian 64-bit number.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.time as u64) << 32 | self.increment as u64
    }
}
