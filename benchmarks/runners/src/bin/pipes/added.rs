//! Lines through any number of stages that pass them on. Each stage is a separate function.
//!
//! The compiler can remove a stage that does nothing if it sees all stages. Therefore a second kind of stage adds the
//! length of each line, and the number of the stage, to its own sum; all sums are checked.

use std::path::Path;
use std::sync::mpsc::{self, Sender};

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use millstream::Reader;
use millstream::frame::Lines;
use millstream::pipe::{self, Pipe};

use crate::Pass;
use crate::tally::Tally;

/// How the stages are combined.
#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    /// A pipe with fused stages.
    Fused,
    /// A pipe with boxed stages.
    Boxed,
    /// Millstream's batches and a loop with handwritten stages.
    Loop,
    /// Millstream's batches and std's iterators.
    Iterators,
}

/// What a stage does before it passes a line on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Nothing.
    None,
    /// Adds the length of the line to a sum.
    Sum,
}

/// The sums of fused or handwritten stages: one for each stage of the longest chain.
type Sums = [u64; 20];

/// Calls a macro with the names of the given number of stages.
macro_rules! with_stages {
    ($n:expr, $call:ident!($($argument:tt)*)) => {
        match $n {
            0 => $call!($($argument)*;),
            1 => $call!($($argument)*; a 0),
            10 => $call!($($argument)*; a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9),
            20 => $call!($($argument)*; a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9
                k 10 l 11 m 12 n 13 o 14 p 15 q 16 r 17 s 18 t 19),
            n => bail!("there is no chain of {n} stages in the program"),
        }
    };
}

/// Makes one pass over the lines of a file. Only a Millstream pipe can be measured inside the pass.
pub fn pass(way: Way, stage: Stage, n: usize, input: &Path, measured: bool) -> Result<Pass> {
    let mut tally = Tally::default();
    let mut stats = None;
    let mut sums = Sums::default();
    let used = &mut sums;
    match (way, stage) {
        (Way::Fused, Stage::None) => {
            macro_rules! chain {
                (; $($name:ident $i:literal)*) => {{
                    let mut pipe = lines(input, measured)?$(.map_bytes(|$name| $name))*;
                    pipe.for_each(|line| tally.add(line))?;
                    stats = Some(pipe.stats());
                }};
            }
            with_stages!(n, chain!());
        }
        (Way::Fused, Stage::Sum) => {
            macro_rules! chain {
                (; $($name:ident $i:literal)*) => {{
                    let [$($name,)* ..] = used;
                    let mut pipe = lines(input, measured)?$(.inspect(|line| *$name += line.len() as u64 + $i))*;
                    pipe.for_each(|line| tally.add(line))?;
                    stats = Some(pipe.stats());
                }};
            }
            with_stages!(n, chain!());
        }
        (Way::Boxed, _) => return boxed(stage, n, input, measured),
        (Way::Loop, Stage::None) => {
            // Stages that do nothing need no code in this loop.
            each_batch(input, |batch| batch.iter().for_each(|line| tally.add(line)))?;
        }
        (Way::Loop, Stage::Sum) => {
            macro_rules! chain {
                (; $($name:ident $i:literal)*) => {{
                    let [$($name,)* ..] = used;
                    each_batch(input, |batch| {
                        for line in batch {
                            $(*$name += line.len() as u64 + $i;)*
                            tally.add(line);
                        }
                    })?
                }};
            }
            with_stages!(n, chain!());
        }
        (Way::Iterators, Stage::None) => {
            macro_rules! chain {
                (; $($name:ident $i:literal)*) => {
                    each_batch(input, |batch| batch.iter()$(.map(|$name| $name))*.for_each(|line| tally.add(line)))?
                };
            }
            with_stages!(n, chain!());
        }
        (Way::Iterators, Stage::Sum) => {
            macro_rules! chain {
                (; $($name:ident $i:literal)*) => {{
                    let [$($name,)* ..] = used;
                    each_batch(input, |batch| {
                        batch
                            .iter()
                            $(.inspect(|line| *$name += line.len() as u64 + $i))*
                            .for_each(|line| tally.add(line))
                    })?
                }};
            }
            with_stages!(n, chain!());
        }
    }
    if stage == Stage::Sum {
        check(&tally, (0..).zip(sums.into_iter().take(n)))?;
    }
    Ok((tally.to_string(), stats))
}

/// Builds a pipe over the lines of a file.
pub fn lines(
    input: &Path,
    measured: bool,
) -> Result<Pipe<pipe::Attached<'static>, pipe::Bytes, pipe::Start, pipe::Bytes>> {
    let pipe = Pipe::from(Reader::path(input)?).lines();
    Ok(if measured { pipe.measured() } else { pipe })
}

fn each_batch(input: &Path, mut work: impl FnMut(millstream::frame::Batch<'_>)) -> Result<()> {
    let (mut reader, mut lines) = (Reader::path(input)?, Lines::new());
    while let Some(batch) = reader.next_batch(&mut lines)? {
        work(batch);
    }
    Ok(())
}

/// A sum that is reported when its stage is dropped.
struct ReportedSum {
    stage: u64,
    sum: u64,
    to: Sender<(u64, u64)>,
}

impl Drop for ReportedSum {
    fn drop(&mut self) {
        // The receiver is dropped early only after an error.
        let _ = self.to.send((self.stage, self.sum));
    }
}

fn boxed(stage: Stage, n: usize, input: &Path, measured: bool) -> Result<Pass> {
    let (to, receiver) = mpsc::channel();
    let stages = (0..n as u64).map(|i| match stage {
        Stage::None => Pipe::stages().map_bytes(|line| line).boxed("none"),
        Stage::Sum => {
            let mut sum = ReportedSum { stage: i, sum: 0, to: to.clone() };
            let add = move |line: &[u8]| {
                let sum = &mut sum;
                sum.sum += line.len() as u64 + sum.stage;
            };
            Pipe::stages().inspect(add).boxed("sum")
        }
    });
    let mut tally = Tally::default();
    let mut pipe = lines(input, measured)?.then_all(stages.collect());
    pipe.for_each(|line| tally.add(line))?;
    let stats = pipe.stats();
    drop((pipe, to));
    if stage == Stage::Sum {
        let sums: Vec<_> = receiver.iter().collect();
        ensure!(sums.len() == n, "{} stages reported a sum, expected {n}", sums.len());
        check(&tally, sums)?;
    }
    Ok((tally.to_string(), Some(stats)))
}

/// Checks that each stage has processed each line.
fn check(tally: &Tally, sums: impl IntoIterator<Item = (u64, u64)>) -> Result<()> {
    for (stage, sum) in sums {
        ensure!(sum == tally.length + stage * tally.count, "stage {stage} has the sum {sum}");
    }
    Ok(())
}
