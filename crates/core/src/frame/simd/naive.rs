//! The index in its simplest form: the reference for the tests of every level.

/// Does what [`index`](super::index) does.
pub(super) fn index(haystack: &[u8], byte: u8, base: u32, max: usize, ends: &mut Vec<u32>) -> usize {
    let mut found = 0;
    for (at, &b) in haystack.iter().enumerate() {
        let Some(end) = base.checked_add(at as u32 + 1) else { return at };
        if found == max {
            return at;
        }
        if b == byte {
            ends.push(end);
            found += 1;
        }
    }
    haystack.len()
}
