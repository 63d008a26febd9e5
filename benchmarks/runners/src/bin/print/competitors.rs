//! The usual ways to print without Millstream, from the slowest to the most elaborate.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Opens the file descriptor of standard output directly, because std's `Stdout` searches for line ends.
fn raw() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Calls `write_all` for each part; the itoa crate formats the digits.
fn parts(out: &mut impl Write, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut digits = itoa::Buffer::new();
    for number in numbers {
        out.write_all(b"Hello, ")?;
        out.write_all(digits.format(number).as_bytes())?;
        out.write_all(b"\t")?;
    }
    out.flush()
}

/// Locks standard output for each part.
pub fn glacial(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    parts(&mut io::stdout(), numbers)
}

/// Locks standard output once; it still searches for line ends.
pub fn slow(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    parts(&mut io::stdout().lock(), numbers)
}

/// Writes to standard output through a buffer that does not search for line ends.
pub fn fast(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    parts(&mut BufWriter::with_capacity(32 * 1024, io::stdout().lock()), numbers)
}

/// Writes to the file descriptor through the same kind of buffer.
pub fn speedy(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    parts(&mut BufWriter::with_capacity(32 * 1024, raw()?), numbers)
}

/// The best that std and one crate offer: like `speedy`, with the fastest buffer size that was measured.
pub fn itoa(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    parts(&mut BufWriter::with_capacity(BUFFER, raw()?), numbers)
}

/// Formats with `write!`, which is the most common way.
pub fn write_macro(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, raw()?);
    for number in numbers {
        write!(out, "Hello, {number}\t")?;
    }
    out.flush()
}

const BUFFER: usize = 64 * 1024;
const GREETING: &[u8] = b"Hello, ";

/// The longest record: the greeting, 20 digits, a tab.
const LONGEST: usize = GREETING.len() + 20 + 1;

/// A handwritten buffer and handwritten conversion, with one division per digit.
pub fn vecbuf(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut out = raw()?;
    let mut buffer = Vec::with_capacity(BUFFER);
    for number in numbers {
        if buffer.len() + LONGEST > BUFFER {
            out.write_all(&buffer)?;
            buffer.clear();
        }
        buffer.extend_from_slice(GREETING);
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut left = number;
        loop {
            first -= 1;
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        buffer.extend_from_slice(&digits[first..]);
        buffer.push(b'\t');
    }
    out.write_all(&buffer)
}

/// Converts no number to digits: the text of the record is incremented, and only the count of numbers is used. This is
/// correct only for 0, 1, 2, …
pub fn turbo(numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut out = raw()?;
    let mut buffer = vec![0; BUFFER];
    let mut used = 0;
    let mut record = b"Hello, 0\t".to_vec();
    for _ in numbers {
        if used + record.len() > BUFFER {
            out.write_all(&buffer[..used])?;
            used = 0;
        }
        buffer[used..used + record.len()].copy_from_slice(&record);
        used += record.len();
        count_up(&mut record);
    }
    out.write_all(&buffer[..used])
}

fn count_up(record: &mut Vec<u8>) {
    let mut digit = record.len() - 2;
    while record[digit] == b'9' {
        record[digit] = b'0';
        digit -= 1;
    }
    if digit < GREETING.len() {
        // All digits were nines, so one more digit is needed.
        record.insert(GREETING.len(), b'1');
    } else {
        record[digit] += 1;
    }
}
