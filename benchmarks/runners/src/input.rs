//! Input files, which are generated from a seed and are identical on every machine.
//!
//! They are written to storage in memory, so that no disk is measured. Lines contain artificial words: the text
//! compresses like real text, and line ends are unpredictable. Documents are in [`documents`](crate::documents).
//! Everything is streamed through small buffers: the peak memory of a child starts with that of its parent, so this
//! process must stay small.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use millstream::GzipIndex;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

use crate::documents::{Irregular, Orders, Records, Weights, Wide};
use crate::names::Names;
use crate::numbers::RandomLengths;
use crate::objects::Objects;
use crate::table::Table;

/// A file to generate.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Lines of text.
    Lines(Lines),
    /// Lines of text, compressed as one gzip member.
    Gzip(Lines),
    /// The same with an index of points 4 MiB apart, which is next to the file as `FILE.gzidx`.
    GzipWithIndex(Lines),
    /// Lines of text, compressed as BGZF blocks.
    Bgzf(Lines),
    /// Lines of text, compressed as zstd frames of 1 MiB of text.
    Zstd(Lines),
    /// Lines of text, each after its length as a little-endian number of 4 bytes instead of before a line feed.
    Prefixed(Lines),
    /// BSON: one document for each line, with the line as its only member.
    Documents(Lines),
    /// A sparse file.
    Sparse(Sparse),
    /// CSV.
    Table(Table),
    /// JSON.
    Objects(Objects),
    /// Aligned reads as BAM, converted from SAM by `samtools`.
    Bam(Alignments),
    /// Two numbers in each line.
    Pairs(Pairs),
    /// Lines like those of the Unicode names list.
    Names(Names),
    /// BSON: small typed records.
    Records(Records),
    /// BSON: small typed records, compressed by gzip as by `mongodump --gzip`.
    Mongodump(Records),
    /// BSON: nested documents.
    Orders(Orders),
    /// BSON: one document with many fields.
    Wide(Wide),
    /// BSON: arrays of numbers, as Julia saves a model.
    Weights(Weights),
    /// BSON: documents that all differ.
    Irregular(Irregular),
    /// A file of the user, by its absolute path.
    #[serde(skip)]
    File(PathBuf),
}

/// Lines of words. The length of each line is between half and one and a half times the mean.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The total size before compression, in bytes.
    pub bytes: u64,
    /// The mean length of a line including its line feed, in bytes; at least 4.
    pub mean: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A file whose blocks contain zeros, except for lines at the start of each, so that it needs little storage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sparse {
    /// The number of blocks.
    pub blocks: u64,
    /// The size of a block in bytes.
    pub block: u64,
    /// The lines.
    pub lines: Lines,
}

/// Lines of two 32-bit numbers separated by a space, after a first line with the number of pairs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// The number of lines, not counting the first.
    pub lines: u64,
    /// The numbers.
    pub numbers: PairNumbers,
}

/// The numbers of [`Pairs`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairNumbers {
    /// 1742111529 and 1742111530 in each line: ten digits, which branch prediction always guesses correctly.
    Constant,
    /// Numbers of random lengths, with this seed.
    Random(u64),
}

/// SAM with two header lines, and reads of one length at increasing positions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alignments {
    /// The number of lines, including the two of the header.
    pub lines: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl fmt::Display for Input {
    /// The name of the file, which is different for different contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |Lines { bytes, mean, seed }: &Lines| format!("lines-{bytes}-{mean}-{seed}.txt");
        match self {
            Input::Lines(text) => f.write_str(&lines(text)),
            Input::Gzip(text) => write!(f, "{}.gz", lines(text)),
            Input::GzipWithIndex(text) => write!(f, "{}.indexed.gz", lines(text)),
            Input::Bgzf(text) => write!(f, "{}.bgz", lines(text)),
            Input::Zstd(text) => write!(f, "{}.zst", lines(text)),
            Input::Prefixed(text) => write!(f, "prefixed-{}", lines(text)),
            Input::Documents(text) => write!(f, "documents-{}.bson", lines(text)),
            Input::Sparse(Sparse { blocks, block, lines: text }) => {
                write!(f, "sparse-{blocks}-{block}-{}", lines(text))
            }
            Input::Table(Table { bytes, quoted, columns, seed }) => {
                write!(f, "table-{bytes}-{quoted}-{columns}-{seed}.csv")
            }
            Input::Objects(Objects { bytes, nested, array, seed }) => {
                let (form, end) = (if *nested { "nested" } else { "flat" }, if *array { "json" } else { "jsonl" });
                write!(f, "objects-{form}-{bytes}-{seed}.{end}")
            }
            Input::Bam(Alignments { lines, seed }) => write!(f, "alignments-{lines}-{seed}.bam"),
            Input::Pairs(Pairs { lines, numbers: PairNumbers::Constant }) => write!(f, "pairs-{lines}-constant.txt"),
            Input::Pairs(Pairs { lines, numbers: PairNumbers::Random(seed) }) => write!(f, "pairs-{lines}-{seed}.txt"),
            Input::Names(Names { lines, seed }) => write!(f, "names-{lines}-{seed}.txt"),
            Input::Records(Records { count, seed }) => write!(f, "records-{count}-{seed}.bson"),
            Input::Mongodump(Records { count, seed }) => write!(f, "records-{count}-{seed}.bson.gz"),
            Input::Orders(Orders { count, seed }) => write!(f, "orders-{count}-{seed}.bson"),
            Input::Wide(Wide { fields, seed }) => write!(f, "wide-{fields}-{seed}.bson"),
            Input::Weights(Weights { divisor, seed }) => write!(f, "weights-{divisor}-{seed}.bson"),
            Input::Irregular(Irregular { count, seed }) => write!(f, "irregular-{count}-{seed}.bson"),
            Input::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Input {
    /// Returns the same input with another mean length of its lines, in bytes. Inputs without lines of words are
    /// unchanged.
    #[must_use]
    pub fn with_length(mut self, mean: u64) -> Input {
        if let Input::Lines(text) | Input::Gzip(text) | Input::GzipWithIndex(text) | Input::Bgzf(text) = &mut self {
            text.mean = mean as usize;
        }
        self
    }

    /// The number of bytes of text before compression, if it is specified.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Input::Lines(text) | Input::Gzip(text) | Input::GzipWithIndex(text) => Some(text.bytes),
            Input::Bgzf(text) | Input::Zstd(text) => Some(text.bytes),
            _ => None,
        }
    }

    /// The program that is needed to create the input, if any.
    pub fn needs(&self) -> Option<&'static str> {
        matches!(self, Input::Bam(_)).then_some("samtools")
    }

    /// Returns the path of this input in the directory. A missing input is created, completely or not at all.
    ///
    /// # Errors
    /// Returns errors of the system (such as no space) and of `samtools`.
    pub fn make(&self, directory: &Path) -> Result<PathBuf> {
        if let Input::File(path) = self {
            return Ok(path.clone());
        }
        let path = directory.join(self.to_string());
        if !path.exists() {
            let partial = directory.join(format!("{self}.partial"));
            self.write(&partial).with_context(|| format!("cannot make {}", path.display()))?;
            if let Input::GzipWithIndex(_) = self {
                let index = GzipIndex::build(&partial, 4 << 20, |_, _| Ok(()))?;
                let mut out = BufWriter::new(File::create(GzipIndex::usual_path(&path))?);
                index.write(&mut out)?;
                out.flush()?;
            }
            fs::rename(&partial, &path)?;
        }
        Ok(path)
    }

    fn write(&self, path: &Path) -> Result<()> {
        let create = || Ok::<_, io::Error>(BufWriter::with_capacity(1 << 18, File::create(path)?));
        // Inputs that are written without conversion.
        let plain = |write: &dyn Fn(&mut BufWriter<File>) -> Result<()>| {
            let mut out = create()?;
            write(&mut out)?;
            Ok::<_, anyhow::Error>(out.flush()?)
        };
        match self {
            Input::Lines(text) => plain(&|out| text.write(out))?,
            Input::Gzip(text) | Input::GzipWithIndex(text) => {
                let mut out = GzEncoder::new(create()?, Compression::default());
                text.write(&mut out)?;
                out.finish()?.flush()?;
            }
            Input::Bgzf(text) => {
                let mut out = noodles_bgzf::io::Writer::new(create()?);
                text.write(&mut out)?;
                out.finish()?.flush()?;
            }
            Input::Zstd(text) => {
                let mut frames = Frames { text: Vec::new(), out: create()? };
                text.write(&mut frames)?;
                if !frames.text.is_empty() {
                    frames.compress(frames.text.len())?;
                }
                frames.out.flush()?;
            }
            Input::Prefixed(text) => plain(&|out| {
                text.each(|line| {
                    out.write_all(&(line.len() as u32).to_le_bytes())?;
                    out.write_all(line)
                })
            })?,
            Input::Documents(text) => plain(&|out| {
                text.each(|line| {
                    // The length of the document, the member "line" of type text, and the end.
                    out.write_all(&(line.len() as u32 + 16).to_le_bytes())?;
                    out.write_all(b"\x02line\0")?;
                    out.write_all(&(line.len() as u32 + 1).to_le_bytes())?;
                    out.write_all(line)?;
                    out.write_all(b"\0\0")
                })
            })?,
            Input::Sparse(Sparse { blocks, block, lines }) => {
                let mut text = Vec::new();
                lines.write(&mut text)?;
                let file = File::create(path)?;
                file.set_len(blocks * block)?;
                for number in 0..*blocks {
                    file.write_all_at(&text, number * block)?;
                }
            }
            Input::Table(table) => plain(&|out| Ok(table.write(out)?))?,
            Input::Objects(objects) => plain(&|out| Ok(objects.write(out)?))?,
            Input::Bam(alignments) => {
                let sam = path.with_extension("sam");
                let mut out = BufWriter::with_capacity(1 << 18, File::create(&sam)?);
                alignments.write(&mut out)?;
                out.flush()?;
                // Without --no-PG, the header would contain this command line, and the answer would depend on paths and
                // versions.
                let status =
                    Command::new("samtools").args(["view", "--no-PG", "-b", "-o"]).args([path, &sam]).status()?;
                fs::remove_file(&sam)?;
                ensure!(status.success(), "samtools: {status}");
            }
            Input::Pairs(pairs) => plain(&|out| Ok(pairs.write(out)?))?,
            Input::Names(names) => plain(&|out| Ok(names.write(out)?))?,
            Input::Records(records) => plain(&|out| Ok(records.write(out)?))?,
            Input::Mongodump(records) => {
                let mut out = GzEncoder::new(create()?, Compression::default());
                records.write(&mut out)?;
                out.finish()?.flush()?;
            }
            Input::Orders(orders) => plain(&|out| Ok(orders.write(out)?))?,
            Input::Wide(wide) => plain(&|out| Ok(wide.write(out)?))?,
            Input::Weights(weights) => plain(&|out| Ok(weights.write(out)?))?,
            Input::Irregular(irregular) => plain(&|out| Ok(irregular.write(out)?))?,
            Input::File(_) => unreachable!("a user's file is not made by us"),
        }
        Ok(())
    }
}

/// Compresses what is written to it as zstd frames with [`FRAME`] bytes of content each.
struct Frames<W> {
    text: Vec<u8>,
    out: W,
}

/// The content of a frame.
const FRAME: usize = 1 << 20;

impl<W: Write> Frames<W> {
    fn compress(&mut self, length: usize) -> io::Result<()> {
        let frame = zstd::bulk::compress(&self.text[..length], zstd::DEFAULT_COMPRESSION_LEVEL)?;
        self.text.drain(..length);
        self.out.write_all(&frame)
    }
}

impl<W: Write> Write for Frames<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        while self.text.len() >= FRAME {
            self.compress(FRAME)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The number of different words, a power of two.
const WORDS: usize = 4096;

impl Lines {
    /// Writes whole lines with a total of exactly `bytes` bytes.
    ///
    /// # Errors
    /// Returns the errors of `out`. Fails if the lines are too short to contain a word.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        self.each(|line| {
            out.write_all(line)?;
            out.write_all(b"\n")
        })
    }

    /// Calls `each` with every line, without its line feed.
    fn each(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> Result<()> {
        if self.mean < 4 {
            bail!("lines of {} bytes are too short", self.mean);
        }
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let words = words(&mut random);
        let mut line = Vec::with_capacity(2 * self.mean);
        let mut left = self.bytes;
        while left > 0 {
            let length = self.mean / 2 + below(&mut random, self.mean as u64 + 1) as usize;
            let length = usize::try_from(left).map_or(length, |left| length.min(left));
            while line.len() < length {
                // The product of two uniform choices makes the first words more frequent, as in natural languages.
                let choice = random.next_u64();
                let (a, b) = (choice as usize % WORDS, (choice >> 32) as usize % WORDS);
                line.extend_from_slice(&words[a * b / WORDS]);
            }
            line.truncate(length - 1);
            each(&line)?;
            line.clear();
            left -= length as u64;
        }
        Ok(())
    }
}

/// Returns words of two to nine letters, with a phrase of three to six of them at every fourth position. Each ends with
/// a space. Without the phrases gzip would find little repetition; with them it reduces the text to a third, as it does
/// with prose.
fn words(random: &mut SplitMix64) -> Vec<Vec<u8>> {
    let letter = |random: &mut SplitMix64| b'a' + below(random, 26) as u8;
    let word = |random: &mut SplitMix64| -> Vec<u8> {
        let length = 2 + below(random, 8);
        (0..length).map(|_| letter(random)).chain([b' ']).collect()
    };
    let mut words: Vec<Vec<u8>> = (0..WORDS).map(|_| word(random)).collect();
    for place in (0..WORDS).step_by(4) {
        let length = 3 + below(random, 4);
        // An odd index, which never contains a phrase.
        words[place] = (0..length).flat_map(|_| words[below(random, WORDS as u64) as usize | 1].clone()).collect();
    }
    words
}

/// Returns a number below `limit`, which must be small: the bias of the remainder is then negligible.
fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit
}

/// The number of bases in one read.
const READ_LENGTH: usize = 130;

impl Alignments {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut random = SplitMix64::seed_from_u64(self.seed);
        let mut position = 1;
        out.write_all(b"@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:chr1\tLN:248956422\n")?;
        for read in 2..self.lines {
            position += below(&mut random, 200);
            write!(out, "read{read:07}\t0\tchr1\t{position}\t60\t{READ_LENGTH}M\t*\t0\t0\t")?;
            let mut bases = [0; READ_LENGTH];
            bases.fill_with(|| b"ACGT"[below(&mut random, 4) as usize]);
            out.write_all(&bases)?;
            let mut qualities = [b'\t'; READ_LENGTH + 1];
            qualities[1..].fill_with(|| b"FFFFFF:,"[below(&mut random, 8) as usize]);
            out.write_all(&qualities)?;
            writeln!(out, "\tNM:i:{}\tRG:Z:lane1", below(&mut random, 4))?;
        }
        Ok(())
    }
}

impl Pairs {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.lines)?;
        match self.numbers {
            PairNumbers::Constant => {
                for _ in 0..self.lines {
                    out.write_all(b"1742111529 1742111530\n")?;
                }
            }
            PairNumbers::Random(seed) => {
                let numbers = RandomLengths::of_32_bits(seed);
                let pairs = numbers.clone().step_by(2).zip(numbers.skip(1).step_by(2));
                for (a, b) in pairs.take(self.lines as usize) {
                    writeln!(out, "{a} {b}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_announced() {
        let text = |numbers| {
            let mut text = Vec::new();
            Pairs { lines: 2, numbers }.write(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(text(PairNumbers::Constant), "2\n1742111529 1742111530\n1742111529 1742111530\n");
        assert_eq!(text(PairNumbers::Random(3)), "2\n22 10264162\n2167721 7\n");
    }

    #[test]
    fn lines_are_whole_and_of_the_length_asked_for() {
        let mut text = Vec::new();
        Lines { bytes: 100_000, mean: 20, seed: 1 }.write(&mut text).unwrap();
        assert_eq!(text.len(), 100_000);
        let lengths: Vec<usize> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 100_000);
        // The last line contains the remaining bytes.
        assert!(lengths[..lengths.len() - 1].iter().all(|length| (10..=30).contains(length)));
        assert!((4_800..5_200).contains(&lengths.len()));
    }

    #[test]
    fn the_seed_decides() {
        let text = |seed| {
            let mut text = Vec::new();
            Lines { bytes: 1000, mean: 80, seed }.write(&mut text).unwrap();
            text
        };
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn alignments_have_as_many_lines_as_asked() {
        let mut sam = Vec::new();
        Alignments { lines: 5, seed: 1 }.write(&mut sam).unwrap();
        let lines: Vec<&str> = str::from_utf8(&sam).unwrap().lines().collect();
        assert_eq!(lines.len(), 5);
        let columns: Vec<&str> = lines[2].split('\t').collect();
        assert_eq!((columns.len(), columns[9].len(), columns[10].len()), (13, READ_LENGTH, READ_LENGTH));
    }
}
