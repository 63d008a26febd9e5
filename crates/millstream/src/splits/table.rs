//! The places of blocks or frames that a table contains, so that planning need not follow them: bgzip's index (`.gzi`), and
//! the seek table at the end of a zstd file in the seekable format.
//!
//! A table that contradicts itself or the file is not used. One that is wrong in other ways, or belongs to another file,
//! is detected when the splits are read: each must pass the beginning of the next one.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::Format;
use crate::error::{Error, Result};
use crate::os::cancel::Wait;
use crate::source::decode::bgzf_block;

use super::Place;
use super::content::Content;

/// The most decoded bytes and the most compressed bytes of a bgzf block.
const BLOCK: u64 = 1 << 16;

/// Returns the places after the first one, which is the start of the file. They are in order; there are none if the file
/// has no table that can be used.
pub(super) fn read(
    content: &Content,
    path: Option<&Path>,
    size: u64,
    format: Format,
    wait: &Wait,
) -> Result<Vec<Place>> {
    let places = match format {
        Format::Bgzf => path.map_or(Ok(None), |path| of_bgzip(content, path, size, wait)),
        Format::Zstd => of_zstd(content, size, wait),
        _ => Ok(None),
    };
    match places {
        Ok(places) => Ok(places.unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(error) => Err(Error::from_io(error)),
    }
}

/// Reads `FILE.gzi`: the number of places, and two 64-bit numbers for each: its offset in the file, and in the decoded
/// data. All are little-endian. The first block of the file is not in it.
fn of_bgzip(content: &Content, path: &Path, size: u64, wait: &Wait) -> io::Result<Option<Vec<Place>>> {
    let mut name = path.as_os_str().to_os_string();
    name.push(".gzi");
    let mut bytes = Vec::new();
    if File::open(&name).and_then(|mut table| table.read_to_end(&mut bytes)).is_err() {
        return Ok(None);
    }
    let (numbers, rest) = bytes.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
    let count = numbers.next();
    if !rest.is_empty() || count.and_then(|count| count.checked_mul(2)) != Some(numbers.len() as u64) {
        return Ok(None);
    }
    let mut places: Vec<Place> = Vec::new();
    let mut last = Place { at: 0, decoded: 0 };
    while let (Some(at), Some(decoded)) = (numbers.next(), numbers.next()) {
        let fits = at > last.at && at - last.at <= BLOCK && at < size;
        if !fits || decoded < last.decoded || decoded - last.decoded > BLOCK {
            return Ok(None);
        }
        last = Place { at, decoded };
        places.push(last);
    }
    // A part of another file is noticed here, unless its blocks have the same lengths.
    let mut read = |at: u64, space: &mut [u8]| content.read_exact_at(space, at, wait);
    let first = bgzf_block(&mut read, 0)?;
    let is_first = |place: &Place| first == Some((place.at, Some(place.decoded)));
    let is_of_file = places.first().is_none_or(is_first) && bgzf_block(&mut read, last.at)?.is_some();
    Ok(is_of_file.then_some(places))
}

/// The last four bytes of a file with a seek table.
const SEEKABLE: u32 = 0x8f92_eab1;

/// The first four bytes of the skippable frame that contains the table.
const SKIPPABLE: u32 = 0x184d_2a5e;

/// Reads the table of the seekable format (in zstd's repository, `contrib/seekable_format`): a skippable frame with the
/// compressed and decoded length of each frame and perhaps a checksum (4 bytes each), the number of frames (4), flags (1)
/// and a magic number (4). All are little-endian.
fn of_zstd(content: &Content, size: u64, wait: &Wait) -> io::Result<Option<Vec<Place>>> {
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut end = [0; 9];
    if size < 17 {
        return Ok(None);
    }
    content.read_exact_at(&mut end, size - 9, wait)?;
    let (count, flags) = (u64::from(number(&end)), end[4]);
    let entry = if flags & 0x80 == 0 { 8 } else { 12 };
    let len = count * entry + 9;
    let Some(start) = size.checked_sub(8 + len).filter(|_| number(&end[5..]) == SEEKABLE && flags & 0x7c == 0) else {
        return Ok(None);
    };
    let mut head = [0; 8];
    content.read_exact_at(&mut head, start, wait)?;
    if number(&head) != SKIPPABLE || u64::from(number(&head[4..])) != len {
        return Ok(None);
    }
    let mut bytes = vec![0; (count * entry) as usize];
    content.read_exact_at(&mut bytes, start + 8, wait)?;
    let mut last = Place { at: 0, decoded: 0 };
    let places = bytes.chunks_exact(entry as usize).map(|entry| {
        last = Place { at: last.at + u64::from(number(entry)), decoded: last.decoded + u64::from(number(&entry[4..])) };
        last
    });
    let places: Vec<Place> = places.collect();
    Ok((last.at == start).then_some(places))
}
