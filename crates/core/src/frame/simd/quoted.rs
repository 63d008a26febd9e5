//! Finds the line ends outside quotes, and checks that every quote is where CSV allows one.
//!
//! For each 64 bytes, comparisons produce masks with one bit for each byte: quotes, delimiters, LF and CR. The exclusive
//! or of all quote bits up to a position is 1 inside quotes; a carry-less multiplication by all ones computes it for 64
//! positions at once. A doubled quote ends the quoted region and begins it again, which changes nothing.
//!
//! This is what the automaton of CSV finds if, and only if, every quote is where the automaton accepts it:
//!
//! - a quote that opens a region is at the start, or follows a delimiter, a line end or a quote;
//! - a quote that closes one is at the end, or precedes a delimiter, a line end or a quote.
//!
//! Proof: let all quotes before a position satisfy this, and the mask agree with the automaton up to there. If the next
//! quote opens a region, the byte before it is outside quotes, so that the automaton is in the state `record` or `field`,
//! or in `closed` after a quote, and enters `quoted`. If it closes one, the automaton enters `closed`, from which the
//! byte after it leads to `field`, `record` or `quoted`, never to an error. Without other special bytes, nothing else
//! leaves or enters `quoted`. If a quote does not satisfy this, the block is refused, and the automaton decides.
//!
//! An end is stored at the byte after the line end, so no byte need be examined twice: after LF always, after CR if the
//! byte there is not LF.

/// The special bytes.
#[derive(Clone, Copy, Debug)]
pub struct Special {
    pub quote: Option<u8>,
    pub delimiter: u8,
    /// The byte after which a line always ends.
    pub lf: u8,
    /// The byte after which a line ends unless `lf` follows.
    pub cr: Option<u8>,
    /// Whether bytes of 0xfe and 0xff are left to the automaton, because they may be a byte order mark.
    pub mark: bool,
    /// Whether the ends of fields are found too: the positions after delimiters outside quotes.
    pub fields: bool,
}

/// What the bytes before a position mean for it. The default is the start of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carry {
    /// All ones inside quotes.
    inside: u64,
    /// The last byte.
    last: Option<u8>,
    /// Bit 0: whether it was a quote that closes a region.
    closing: u64,
    /// Bit 0: whether it was an LF outside quotes.
    lf: u64,
    /// Bit 0: whether it was a CR outside quotes.
    cr: u64,
    /// Bit 0: whether it was a delimiter outside quotes, if fields are found.
    delimiter: u64,
    /// Not 0 if a line end was inside quotes.
    inner: u64,
    /// How many bytes `lf` were inside quotes.
    inner_lines: u64,
    /// Not 0 if there was a quote.
    quotes: u64,
}

/// What is found in blocks, one block after another.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The position after each line end and, if fields are found, after each delimiter.
    pub ends: Vec<u32>,
    /// If fields are found: for each line, how many of `ends` there are up to its end.
    pub lines: Vec<u32>,
    /// If fields are found: the position of the second of each two quotes that stand for one.
    pub doubled: Vec<u32>,
}

impl Found {
    /// Removes everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.lines.clear();
        self.doubled.clear();
    }
}

/// A bit for each of 64 bytes.
#[derive(Clone, Copy)]
struct Bounds {
    /// The byte follows a line end or, if fields are found, a delimiter.
    ends: u64,
    /// The byte follows a line end.
    lines: u64,
    /// The byte is the second of two quotes that stand for one, if fields are found.
    doubled: u64,
}

impl Carry {
    pub(super) const START: Carry =
        Carry { inside: 0, last: None, closing: 0, lf: 0, cr: 0, delimiter: 0, inner: 0, inner_lines: 0, quotes: 0 };

    /// Examines the first `count` of 64 bytes, 1 or more. In `wrong`, it sets a bit for each quote that is not allowed.
    ///
    /// # Safety
    /// - The CPU must support the level of `O`.
    #[inline(always)]
    unsafe fn step<O: Ops, const FIELDS: bool>(
        &mut self,
        special: Special,
        ops: &mut O,
        bytes: &[u8; 64],
        count: usize,
        wrong: &mut u64,
    ) -> Bounds {
        let (valid, top) = (u64::MAX >> (64 - count), count - 1);
        // SAFETY: the caller guarantees the level.
        let Masks { quote, lf, cr } = unsafe { ops.masks(bytes) };
        let (quote, lf, cr) = (quote & valid, lf & valid, cr & valid);
        // SAFETY: as above.
        let mut delimiter = if FIELDS { unsafe { ops.delimiters(bytes) & valid } } else { 0 };
        let (mut outside, mut doubled) = (u64::MAX, 0);
        if quote | self.inside | self.closing != 0 {
            if !FIELDS {
                // SAFETY: as above.
                delimiter = unsafe { ops.delimiters(bytes) };
            }
            // SAFETY: as above.
            let inside = unsafe { ops.parity(quote) ^ self.inside };
            let boundary = quote | delimiter | lf | cr;
            let closing = quote & !inside;
            *wrong |= quote & inside & !(boundary << 1 | u64::from(special.is_boundary(self.last)));
            let after_closing = closing << 1 | self.closing;
            *wrong |= after_closing & !boundary & valid;
            if FIELDS {
                doubled = after_closing & quote;
            }
            self.inside = ((inside << (63 - top)) as i64 >> 63) as u64;
            self.closing = closing >> top & 1;
            outside = !inside;
            self.inner |= (lf | cr) & inside;
            self.inner_lines += u64::from((lf & inside).count_ones());
            self.quotes |= quote;
        }
        self.last = Some(bytes[top]);
        let (lf, cr, any_lf) = (lf & outside, cr & outside, lf);
        let lines = ((lf << 1 | self.lf) | ((cr << 1 | self.cr) & !any_lf)) & valid;
        let mut ends = lines;
        self.lf = lf >> top & 1;
        self.cr = cr >> top & 1;
        if FIELDS {
            delimiter &= outside;
            ends |= (delimiter << 1 | self.delimiter) & valid;
            self.delimiter = delimiter >> top & 1;
        }
        Bounds { ends, lines, doubled }
    }

    /// Returns whether a line end was inside quotes.
    pub(super) fn has_inner(&self) -> bool {
        self.inner != 0
    }

    /// Returns how many of the bytes after which a line always ends were inside quotes.
    pub(super) fn inner_lines(&self) -> u64 {
        self.inner_lines
    }

    /// Returns whether there was a quote.
    pub(super) fn has_quotes(&self) -> bool {
        self.quotes != 0
    }

    /// Returns whether the last byte is a delimiter outside quotes, if fields are found.
    pub(super) fn ends_field(&self) -> bool {
        self.delimiter & 1 != 0
    }

    /// Returns whether a line ends at the end of the bytes, and whether that depends on the next byte.
    pub(super) fn ends_line(&self) -> (bool, bool) {
        ((self.lf | self.cr) & 1 != 0, self.cr & 1 != 0)
    }
}

impl Special {
    /// Returns the bytes of the masks: the quote, LF and CR. If the dialect has no quote, the flag is 0 and otherwise all
    /// ones. Without CR, LF takes its place, which has no effect: the position after LF is an end already.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn needles(&self) -> ([u8; 3], u64) {
        let bytes = [self.quote.unwrap_or_default(), self.lf, self.cr.unwrap_or(self.lf)];
        (bytes, if self.quote.is_some() { u64::MAX } else { 0 })
    }

    /// Returns whether a quote may open a region after this byte, or after none.
    #[inline(always)]
    fn is_boundary(&self, byte: Option<u8>) -> bool {
        byte.is_none() || byte == self.quote || byte == Some(self.delimiter) || byte == Some(self.lf) || byte == self.cr
    }
}

/// A bit for each of 64 bytes.
#[derive(Clone, Copy)]
pub(super) struct Masks {
    pub(super) quote: u64,
    pub(super) lf: u64,
    pub(super) cr: u64,
}

/// The operations of a level.
///
/// # Safety
/// The CPU must support the level when a method is called.
pub(super) unsafe trait Ops: Copy {
    unsafe fn new(special: Special) -> Self;

    /// Returns the masks of 64 bytes.
    unsafe fn masks(&mut self, bytes: &[u8; 64]) -> Masks;

    /// Returns a bit for each delimiter.
    unsafe fn delimiters(&self, bytes: &[u8; 64]) -> u64;

    /// Returns the exclusive or of all bits up to each bit.
    unsafe fn parity(&self, bits: u64) -> u64;

    /// Stores `start` plus the number of each bit of the mask, and up to 64 values in all.
    ///
    /// `at` must be valid for writes of 64 `u32`.
    unsafe fn store(&self, at: *mut u32, mask: u64, start: u32);

    /// Returns whether a byte of 0xfe or 0xff was among the bytes so far.
    unsafe fn may_be_mark(&self) -> bool;
}

/// Appends what is found in `block`, whose positions begin with `start`, except the end of a line or field at the end of the
/// block, which `carry` remembers. Returns false if the automaton has to examine the block; `ends` and `lines` then have what
/// they had before.
///
/// # Safety
/// - The CPU must support the level of `O`.
#[inline(always)]
pub(super) unsafe fn append<O: Ops>(
    special: Special,
    block: &[u8],
    start: u32,
    carry: &mut Carry,
    found: &mut Found,
) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match special.fields {
            true => append_some::<O, true>(special, block, start, carry, found),
            false => append_some::<O, false>(special, block, start, carry, found),
        }
    }
}

/// Does what [`append`] does, with or without fields.
///
/// # Safety
/// - The CPU must support the level of `O`.
#[inline(always)]
unsafe fn append_some<O: Ops, const FIELDS: bool>(
    special: Special,
    block: &[u8],
    start: u32,
    carry: &mut Carry,
    found: &mut Found,
) -> bool {
    let Found { ends, lines, doubled } = found;
    debug_assert!(block.len() <= (u32::MAX - start) as usize);
    // Each step stores up to 64 lanes after the earlier ends, and there is at most one end for each byte and one for the
    // bytes before the block. The same holds for lines.
    ends.reserve(block.len() + 1 + 64);
    if FIELDS {
        lines.reserve(block.len() + 1 + 64);
    }
    let (steps, rest) = block.as_chunks::<64>();
    // The padding is none of the special bytes that could make a mask differ for the bytes before it.
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    let (mut len, mut count) = (ends.len(), lines.len());
    let (out, out_lines) = (ends.as_mut_ptr(), lines.as_mut_ptr());
    // SAFETY: the caller guarantees the level.
    let mut ops = unsafe { O::new(special) };
    let mut state = *carry;
    let mut wrong = 0;
    let mut at = start;
    for (i, step) in steps.iter().enumerate() {
        // SAFETY: as above. `len` and `count` are at most the old length, the number of earlier bytes, and 1, and space for
        // 64 more was reserved.
        unsafe {
            let bounds = state.step::<O, FIELDS>(special, &mut ops, step, 64, &mut wrong);
            if FIELDS {
                store_counts(out_lines.add(count), bounds, len as u32);
                count += bounds.lines.count_ones() as usize;
                if bounds.doubled != 0 {
                    doubled.extend(Bits(bounds.doubled).map(|bit| at + bit));
                }
            }
            ops.store(out.add(len), bounds.ends, at);
            len += bounds.ends.count_ones() as usize;
        }
        // There are no ends after the end of the block, so a wrapped start is not used.
        at = start.wrapping_add((i as u32 + 1) * 64);
    }
    if !rest.is_empty() {
        // SAFETY: as above.
        unsafe {
            let bounds = state.step::<O, FIELDS>(special, &mut ops, &last, rest.len(), &mut wrong);
            if FIELDS {
                store_counts(out_lines.add(count), bounds, len as u32);
                count += bounds.lines.count_ones() as usize;
                doubled.extend(Bits(bounds.doubled).map(|bit| at + bit));
            }
            ops.store(out.add(len), bounds.ends, at);
            len += bounds.ends.count_ones() as usize;
        }
    }
    // SAFETY: as above.
    if wrong != 0 || (special.mark && unsafe { ops.may_be_mark() }) {
        return false;
    }
    *carry = state;
    // SAFETY: `len` and `count` elements were stored, without gaps, within the capacity. Without fields, `count` is the old
    // length.
    unsafe {
        ends.set_len(len);
        lines.set_len(count);
    }
    true
}

/// Stores, for each line, `before` plus the number of ends up to its own, and an unused value if the number of lines is odd
/// or 0. Few lines begin in 64 bytes, and whether there are 0, 1 or 2 is hard to predict, so these are without a branch.
///
/// # Safety
/// - `at` must be valid for writes of 64 `u32`.
#[inline(always)]
unsafe fn store_counts(at: *mut u32, bounds: Bounds, before: u32) {
    let (mut lines, count) = (bounds.lines, bounds.lines.count_ones() as usize);
    let mut stored = 0;
    loop {
        for i in stored..stored + 2 {
            // The bits up to the lowest line; without a line it is an unused value.
            let until = lines ^ lines.wrapping_sub(1);
            // SAFETY: `stored` is even, and below `count` or 0, so `i` is below 64, for which the caller guarantees the space.
            unsafe { at.add(i).write(before.wrapping_add((bounds.ends & until).count_ones())) };
            lines &= lines.wrapping_sub(1);
        }
        stored += 2;
        if stored >= count {
            return;
        }
    }
}

/// The numbers of the bits that are set, in order.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    }
}

/// Returns the exclusive or of all bits up to each bit, by doubling the distance.
#[inline]
pub(super) fn parity(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |bits, shift| bits ^ bits << shift)
}

/// Stores `start` plus the number of each bit of the mask.
///
/// # Safety
/// `at` must be valid for writes of one `u32` for each bit.
#[inline]
pub(super) unsafe fn store(at: *mut u32, mask: u64, start: u32) {
    for (i, bit) in Bits(mask).enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { at.add(i).write(start.wrapping_add(bit)) };
    }
}

/// The level without vector instructions.
#[derive(Clone, Copy)]
pub(super) struct Portable {
    special: Special,
    marks: bool,
}

/// Returns a bit for each byte of `word` that equals `byte`, the first byte in bit 0.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differs = word ^ (LOW * u64::from(byte));
    // The highest bit of each byte is set if the byte is zero. No carry leaves a byte.
    let is_zero = !(((differs & SEVEN) + SEVEN) | differs | SEVEN);
    ((is_zero >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56
}

// SAFETY: no method needs anything of the CPU.
unsafe impl Ops for Portable {
    #[inline(always)]
    unsafe fn new(special: Special) -> Portable {
        Portable { special, marks: false }
    }

    #[inline(always)]
    unsafe fn masks(&mut self, bytes: &[u8; 64]) -> Masks {
        let Special { quote, lf, cr, .. } = self.special;
        let mut masks = Masks { quote: 0, lf: 0, cr: 0 };
        for (i, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*chunk);
            if let Some(quote) = quote {
                masks.quote |= equal(word, quote) << (8 * i);
            }
            masks.lf |= equal(word, lf) << (8 * i);
            if let Some(cr) = cr {
                masks.cr |= equal(word, cr) << (8 * i);
            }
            self.marks |= self.special.mark && equal(word | LOWEST, 0xff) != 0;
        }
        masks
    }

    #[inline(always)]
    unsafe fn delimiters(&self, bytes: &[u8; 64]) -> u64 {
        let chunks = bytes.as_chunks::<8>().0.iter().enumerate();
        let delimiter = self.special.delimiter;
        chunks.fold(0, |mask, (i, chunk)| mask | equal(u64::from_le_bytes(*chunk), delimiter) << (8 * i))
    }

    #[inline(always)]
    unsafe fn parity(&self, bits: u64) -> u64 {
        parity(bits)
    }

    #[inline(always)]
    unsafe fn store(&self, at: *mut u32, mask: u64, start: u32) {
        // SAFETY: the caller guarantees the space.
        unsafe { store(at, mask, start) }
    }

    #[inline(always)]
    unsafe fn may_be_mark(&self) -> bool {
        self.marks
    }
}

/// The lowest bit of each byte: with it, 0xfe and 0xff are the same.
const LOWEST: u64 = 0x0101_0101_0101_0101;

pub(super) fn append_portable(
    special: Special,
    block: &[u8],
    start: u32,
    carry: &mut Carry,
    found: &mut Found,
) -> bool {
    // SAFETY: this level needs nothing of the CPU.
    unsafe { append::<Portable>(special, block, start, carry, found) }
}
