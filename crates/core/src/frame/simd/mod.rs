//! Indexes a byte: finds all its positions in a block of memory in one call.
//!
//! Searching for one line end at a time costs a call, a set-up and an unpredictable branch for each record. The index
//! examines 256 bytes at a time and stores the ends of all matches. If 256 bytes contain no match, it continues without
//! a store, which makes it as fast as `memchr` on long records.
//!
//! One of three levels is chosen at run time: AVX-512, AVX2, or the `memchr` crate's iterator if the CPU supports
//! neither. CSV, whose line ends may be quoted, has a module of its own, [`quoted`], with these levels and NEON. The environment variable `MILLSTREAM_SIMD` (`portable`, `avx2` or `avx512`), which is read only one time,
//! selects a lower level than the CPU supports. It is for tests, and for tools like callgrind that do not support
//! AVX-512. If the name is unknown or the CPU does not support the level, the best available level is used.
//!
//! This module and its children contain the only unsafe code of the module `frame`: vector instructions take raw
//! pointers, and the offsets are written into the spare capacity of a vector before its length is raised.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod naive;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(super) mod quoted;

use quoted::Found;
use std::sync::OnceLock;

/// The vector instructions to use, from the slowest to the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// The `memchr` crate's iterator.
    Portable,
    /// Vectors of 16 bytes on aarch64. One byte is still searched by the `memchr` crate, which uses them too.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Vectors of 32 bytes.
    Avx2,
    /// Vectors of 64 bytes and compression by a mask: AVX-512 F, BW and VBMI2.
    Avx512,
}

impl Level {
    /// Returns the best level that this CPU supports.
    fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt") {
            return if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi2")
            {
                Level::Avx512
            } else {
                Level::Avx2
            };
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return Level::Neon;
        }
        Level::Portable
    }

    /// Returns the levels that this CPU supports.
    #[cfg(test)]
    fn all() -> impl Iterator<Item = Level> {
        let all = [
            Level::Portable,
            #[cfg(target_arch = "aarch64")]
            Level::Neon,
            Level::Avx2,
            Level::Avx512,
        ];
        all.into_iter().filter(|&level| level <= Level::best())
    }

    /// Returns the level that the environment variable selects, or the highest level; [`index_at`] reduces it to the
    /// CPU's best level.
    fn asked() -> Level {
        static ASKED: OnceLock<Level> = OnceLock::new();
        *ASKED.get_or_init(|| match std::env::var("MILLSTREAM_SIMD").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        })
    }
}

/// The number of bytes that a level examines in one call: between two calls `ends` is enlarged and `max` is checked.
const BLOCK: usize = 4096;

/// Finds line ends outside quotes, block by block; see [`quoted`].
#[derive(Clone, Copy, Debug)]
pub(super) struct QuotedIndex {
    level: Level,
    special: quoted::Special,
    carry: quoted::Carry,
}

impl QuotedIndex {
    /// The number of bytes to pass in one call.
    pub(super) const BLOCK: usize = 16 << 10;

    /// Begins at the start of a record.
    pub(super) fn new(special: quoted::Special) -> QuotedIndex {
        QuotedIndex::at_level(Level::asked(), special)
    }

    /// Returns one for each level of this CPU.
    #[cfg(test)]
    pub(super) fn every_level(special: quoted::Special) -> Vec<QuotedIndex> {
        Level::all().map(|level| QuotedIndex::at_level(level, special)).collect()
    }

    /// Does what [`new`](QuotedIndex::new) does at a given level, or at the CPU's best level if that is lower.
    fn at_level(level: Level, special: quoted::Special) -> QuotedIndex {
        let level = level.min(Level::best());
        #[cfg(target_arch = "x86_64")]
        let level = if is_x86_feature_detected!("pclmulqdq") { level } else { Level::Portable };
        QuotedIndex { level, special, carry: quoted::Carry::START }
    }

    /// Returns one that finds the ends of fields, too, and begins at the start of a record.
    pub(super) fn of_fields(self) -> QuotedIndex {
        QuotedIndex { special: quoted::Special { fields: true, ..self.special }, carry: quoted::Carry::START, ..self }
    }

    /// Finds only lines from now on.
    pub(super) fn find_lines(&mut self) {
        self.special.fields = false;
    }

    /// Begins again, at the start of a record.
    pub(super) fn restart(&mut self) {
        self.carry = quoted::Carry::START;
    }

    /// Appends the position after each line end of `block`, which follows the blocks before, plus `start`. A line end
    /// at the end of the block is appended with the next block. Returns false, and appends nothing, if a quote is
    /// where CSV does not allow it, or may be.
    pub(super) fn append(&mut self, block: &[u8], start: u32, ends: &mut Vec<u32>) -> bool {
        let mut found = Found { ends: std::mem::take(ends), ..Found::default() };
        let is_found = self.append_found(block, start, &mut found);
        *ends = found.ends;
        is_found
    }

    /// Does what [`append`](QuotedIndex::append) does. If this index is [`of_fields`](QuotedIndex::of_fields), it also appends
    /// the ends of fields, to which `lines` then refers, and the positions of doubled quotes. The latter may be incomplete if
    /// the result is false.
    pub(super) fn append_found(&mut self, block: &[u8], start: u32, found: &mut Found) -> bool {
        let QuotedIndex { level, special, carry } = self;
        match level {
            // SAFETY: `level` is at most the CPU's best, and above `Portable` only with carry-less multiplication.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::append_quoted(*special, block, start, carry, found) },
            // SAFETY: as for the level above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::append_quoted(*special, block, start, carry, found) },
            // SAFETY: as for the first level.
            #[cfg(target_arch = "aarch64")]
            Level::Neon => unsafe { neon::append_quoted(*special, block, start, carry, found) },
            _ => quoted::append_portable(*special, block, start, carry, found),
        }
    }

    /// Returns whether a line end was inside quotes.
    pub(super) fn has_inner(&self) -> bool {
        self.carry.has_inner()
    }

    /// Returns how many of the bytes after which a line always ends were inside quotes, except those in `rest`: the last bytes,
    /// in which no line ends.
    pub(super) fn inner_lines(&self, rest: &[u8]) -> u64 {
        self.carry.inner_lines() - memchr::memchr_iter(self.special.lf, rest).count() as u64
    }

    /// Returns whether there was a quote.
    pub(super) fn has_quotes(&self) -> bool {
        self.carry.has_quotes()
    }

    /// Returns whether the last byte is a delimiter outside quotes, if fields are found.
    pub(super) fn ends_field(&self) -> bool {
        self.carry.ends_field()
    }

    /// Returns whether a line ends at the end of the blocks; `None` if that depends on the next byte.
    pub(super) fn ends_line(&self) -> Option<bool> {
        match self.carry.ends_line() {
            (_, true) if self.special.cr.is_some() => None,
            (ends, _) => Some(ends),
        }
    }
}

/// Appends the ends of `byte` in `haystack` to `ends`: the position after each occurrence, plus `base`, in order.
///
/// It stops after `max` ends, and before an end that would exceed `u32::MAX`. Returns the number of bytes examined:
/// `haystack[..examined]` contains exactly the occurrences that were appended, and if `max` stopped it, the last of
/// them is the last byte examined.
///
/// Frequent callers should request thousands of ends at a time: a call examines at least 4 KiB, even if it then keeps
/// fewer ends than it found.
pub fn index(haystack: &[u8], byte: u8, base: u32, max: usize, ends: &mut Vec<u32>) -> usize {
    index_at(Level::asked(), haystack, byte, base, max, ends)
}

/// Does what [`index`] does at a given level, or at the CPU's best level if that is lower.
fn index_at(level: Level, haystack: &[u8], byte: u8, base: u32, max: usize, ends: &mut Vec<u32>) -> usize {
    if max == 0 {
        return 0;
    }
    let limit = ends.len().saturating_add(max);
    let level = level.min(Level::best());
    let len = (u32::MAX - base) as usize;
    let haystack = &haystack[..haystack.len().min(len)];
    let mut start = base;
    for block in haystack.chunks(BLOCK) {
        match level {
            // SAFETY: `level` is at most the CPU's best.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::append(block, byte, start, ends) },
            // SAFETY: as for the level above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::append(block, byte, start, ends) },
            _ => ends.extend(memchr::memchr_iter(byte, block).map(|at| start + at as u32 + 1)),
        }
        if ends.len() >= limit {
            ends.truncate(limit);
            return (ends[limit - 1] - base) as usize;
        }
        start += block.len() as u32;
    }
    haystack.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares every level that this CPU supports with the naive implementation, with other ends already in the
    /// vector.
    fn check(haystack: &[u8], byte: u8, base: u32, max: usize) {
        let mut expected = vec![7; 3];
        let examined = naive::index(haystack, byte, base, max, &mut expected);
        for level in Level::all() {
            // The spare capacity is overwritten first, so that values left by an earlier vector cannot look correct.
            let mut ends = vec![7; 3 + haystack.len() + 64];
            ends.truncate(3);
            let got = index_at(level, haystack, byte, base, max, &mut ends);
            assert_eq!((got, &ends), (examined, &expected), "{level:?} {} bytes, max {max}", haystack.len());
        }
    }

    #[test]
    fn every_length_around_the_steps_at_every_alignment() {
        let lengths = if cfg!(miri) { vec![0, 1, 63, 64, 65, 255, 256, 257, 400] } else { (0..700).collect() };
        let bytes: Vec<u8> = (0..800_u32).map(|i| if i % 7 == 3 || i % 64 == 63 { b'\n' } else { b'x' }).collect();
        for len in lengths {
            for start in [0, 1, 31, 63] {
                check(&bytes[start..start + len], b'\n', 0, usize::MAX);
                check(&bytes[start..start + len], b'\n', 100, len / 20);
            }
        }
    }

    #[test]
    fn every_number_of_matches_in_a_step() {
        for count in (0..=64).step_by(if cfg!(miri) { 11 } else { 1 }) {
            let mut haystack = vec![b'x'; 3 * 64];
            haystack[64..64 + count].fill(b'\n');
            check(&haystack, b'\n', 0, usize::MAX);
            haystack[64..128].rotate_left(count / 2);
            check(&haystack, b'\n', 0, usize::MAX);
        }
    }

    #[test]
    fn a_match_in_every_byte_over_several_blocks() {
        let haystack = vec![0; BLOCK + 77];
        // For Miri only the code that runs one time per block matters, and a block takes half a minute.
        let everywhere = [0, 1, 15, 16, 17, 64, BLOCK - 1, BLOCK, BLOCK + 76, usize::MAX];
        let maxima = if cfg!(miri) { &[BLOCK + 1][..] } else { &everywhere };
        for &max in maxima {
            check(&haystack, 0, 5, max);
        }
        // The padding of the last step must not match either, for any byte.
        for byte in [0, 1, 0x7f, 0x80, 0xfe, 0xff] {
            check(&[byte; 3], byte, 0, usize::MAX);
            check(&[byte ^ 1; 70], byte, 0, usize::MAX);
        }
    }

    #[test]
    fn stops_before_an_end_that_does_not_fit() {
        let haystack = [b'\n'; 200];
        for len in [0, 1, 63, 64, 65, 130] {
            let base = u32::MAX - len;
            check(&haystack, b'\n', base, usize::MAX);
            let mut ends = Vec::new();
            assert_eq!(index(&haystack, b'\n', base, usize::MAX, &mut ends), len as usize);
            assert_eq!(ends.len(), len as usize);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 512 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn every_level_is_the_naive_twin(
            // The frequency of the byte, from always to never: the levels differ in the number of matches in a step.
            rarity in prop::sample::select(vec![1_u8, 2, 4, 20, 100, 255]),
            noise in prop::collection::vec(any::<u8>(), 0..if cfg!(miri) { 300 } else { 12_000 }),
            byte: u8,
            base in 0_u32..1000,
            max in prop_oneof![Just(usize::MAX), 0_usize..300, 0_usize..12_000],
        ) {
            let haystack: Vec<u8> =
                noise.iter().map(|&n| if n % rarity == 0 { byte } else { n }).collect();
            check(&haystack, byte, base, max);
        }
    }
}
