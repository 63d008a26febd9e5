//! The SHA-256 of each line: a stage that needs processor time, on one thread and on several. The results are combined
//! in order.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use millstream::pipe::Threads;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::Pass;
use crate::added::lines;

/// The implementation.
#[derive(Clone, Copy, ValueEnum)]
pub enum Hasher {
    /// A pipe on one thread.
    Pipe,
    /// A pipe with the stage on threads, in order.
    Parallel,
    /// A pipe with the stage on threads, unordered; the results are sorted afterwards.
    Unordered,
    /// std's `lines` on one thread.
    Iterators,
    /// std's `lines` in chunks of 1024, each hashed by rayon's threads and collected in order.
    RayonChunks,
    /// std's `lines` through rayon's `par_bridge`, which does not keep the order; the results are sorted at the end.
    RayonBridge,
}

/// A checksum of the first bytes of the hashes, in order.
#[derive(Default)]
struct Mix {
    count: u64,
    mix: u32,
}

impl Mix {
    fn add(&mut self, hash: u32) {
        self.count += 1;
        self.mix = self.mix.wrapping_mul(31) ^ hash;
    }

    fn answer(&self) -> String {
        format!("count={} mix={}", self.count, self.mix)
    }
}

fn hash(line: &[u8]) -> u32 {
    u32::from_be_bytes(*Sha256::digest(line).first_chunk().expect("a hash has 32 bytes"))
}

/// The number of lines in a chunk for rayon.
const PIECE: usize = 1024;

impl Hasher {
    /// Returns a function that makes one pass. Rayon's threads are started before the pass, Millstream's during it.
    pub fn prepare(self, threads: usize) -> Result<impl Fn(&Path, bool) -> Result<Pass>> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        Ok(move |input: &Path, measured: bool| match self {
            Hasher::Pipe => {
                let mut mix = Mix::default();
                let mut pipe = lines(input, measured)?.map(hash);
                pipe.for_each(|hash| mix.add(hash))?;
                Ok((mix.answer(), Some(pipe.stats())))
            }
            Hasher::Parallel => {
                let mut mix = Mix::default();
                let mut pipe = lines(input, measured)?.parallel(threads, |stages| stages.map(hash));
                pipe.for_each(|hash| mix.add(hash))?;
                Ok((mix.answer(), Some(pipe.stats())))
            }
            Hasher::Unordered => {
                let mut number = 0_u32;
                let mut pipe = lines(input, measured)?
                    .map(|line| {
                        number += 1;
                        (number, line.to_vec())
                    })
                    .parallel(Threads::unordered(threads), |stages| stages.map(|(number, line)| (number, hash(&line))));
                let mut hashes = pipe.collect()?;
                hashes.sort_unstable();
                Ok((in_order(hashes.into_iter().map(|(_, hash)| hash)), Some(pipe.stats())))
            }
            Hasher::Iterators => {
                let mut mix = Mix::default();
                for line in BufReader::with_capacity(256 << 10, File::open(input)?).split(b'\n') {
                    mix.add(hash(&line?));
                }
                Ok((mix.answer(), None))
            }
            Hasher::RayonChunks => {
                let mut mix = Mix::default();
                let mut lines = BufReader::with_capacity(256 << 10, File::open(input)?).split(b'\n');
                let mut hashes = Vec::new();
                loop {
                    let piece = lines.by_ref().take(threads * PIECE).collect::<Result<Vec<_>, _>>()?;
                    if piece.is_empty() {
                        return Ok((mix.answer(), None));
                    }
                    pool.install(|| piece.par_iter().map(|line| hash(line)).collect_into_vec(&mut hashes));
                    hashes.iter().for_each(|&hash| mix.add(hash));
                }
            }
            Hasher::RayonBridge => {
                let lines = BufReader::with_capacity(256 << 10, File::open(input)?).split(b'\n').enumerate();
                let hash_one = |(number, line): (usize, std::io::Result<Vec<u8>>)| Ok((number, hash(&line?)));
                let mut hashes = pool.install(|| lines.par_bridge().map(hash_one).collect::<Result<Vec<_>>>())?;
                hashes.par_sort_unstable();
                Ok((in_order(hashes.into_iter().map(|(_, hash)| hash)), None))
            }
        })
    }
}

fn in_order(hashes: impl Iterator<Item = u32>) -> String {
    let mut mix = Mix::default();
    hashes.for_each(|hash| mix.add(hash));
    mix.answer()
}
