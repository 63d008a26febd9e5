//! The options of `--each`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::size;

/// The maximum size of a block. The offsets of a block and of its batches stay far below 2^32.
const BLOCK_LIMIT: u64 = 1 << 30;

/// The default size of blocks. A block costs the start of a shell, about 2 ms: 1 GB of lines through `cat` took 5.0,
/// 3.2, 2.4, 2.0 and 1.8 seconds of processor time with blocks of 1, 2, 4, 8 and 16 MiB, and 17 to 110 MB of memory
/// with two copies.
const BLOCK: usize = 4 << 20;

/// The maximum number of copies that run at the same time.
const JOBS_LIMIT: usize = 4096;

/// What happens to blocks of records.
#[derive(Args)]
pub(crate) struct EachOptions {
    /// Pipe each block of records through a new copy of this command
    ///
    /// COMMAND is a line for bash. Each copy's standard input is one block of whole records. Several copies run at
    /// once, and their output is written in the order of the blocks. All copies must succeed; if one fails, the error
    /// names its records. A copy does not have to read all of its block; head, for example, does not.
    ///
    /// A copy's environment has the number of its block (the first is 0) as MILLSTREAM_BLOCK, and where the block begins
    /// and ends in the bytes that all copies get as MILLSTREAM_BEGIN and MILLSTREAM_END.
    ///
    /// If the only source is a regular file of lines, and no option needs the records, the kernel passes the bytes to the
    /// copies, and only the ends of the blocks are read. Errors then name a block by its bytes.
    #[arg(long, value_name = "COMMAND", help_heading = "Work", conflicts_with = "count", value_hint = ValueHint::CommandString)]
    pub(crate) each: Option<OsString>,

    /// The number of threads, or of copies of --each [without N: one per processor]
    ///
    /// With --each there is one copy per processor by default. Without --each, N threads read parts of the source files
    /// and run the stages; the output is the same as with one thread, which is the default. For each thread, at most
    /// 16 MiB of results wait for those before them. Stages that remember records (take, skip, sample and uniq), and all
    /// stages after them, run on one thread. One thread reads sources that cannot be divided, such as commands and plain
    /// gzip files, and all sources with --decode-limit, --decode-ratio or --total-timeout; the others run the stages. A
    /// file that changes meanwhile is an error. Write -j after the sources, or with N.
    #[arg(short, long, value_name = "N", help_heading = "Work", num_args = 0..=1, value_parser = jobs)]
    pub(crate) jobs: Option<Option<NonZeroUsize>>,

    /// The maximum size of a block, unless a single record is longer [default: 4M]
    #[arg(long, value_name = "SIZE", help_heading = "Work", requires = "each", value_parser = block_size)]
    pub(crate) block: Option<usize>,

    /// Number the records: MILLSTREAM_RECORD is the number of a block's first record, MILLSTREAM_RECORDS their number
    ///
    /// The records of a file, too, are then read and counted.
    #[arg(long, help_heading = "Work", requires = "each")]
    pub(crate) number: bool,

    /// Write each copy's output, in one piece, as soon as the copy ends; without --each, records as soon as they are ready
    ///
    /// Without --each, the threads of -j pass on records of a file, up to about 1 MiB of them at a time, as soon as they
    /// have been through the stages. The records of one such piece stay in order. CSV and sources that cannot be divided
    /// keep their order. Refused with stages that remember records (take, skip, sample and uniq) and with --hash, whose
    /// results depend on the order.
    #[arg(long, help_heading = "Work", conflicts_with = "round_robin")]
    pub(crate) unordered: bool,

    /// Keep the copies alive and give them blocks in turn; the order of the output is lost
    ///
    /// Their output is written in pieces of whole records. A busy copy is skipped. Each copy must read its input to the
    /// end: a copy that exits earlier loses its records and counts as failed.
    #[arg(long, help_heading = "Work", requires = "each")]
    pub(crate) round_robin: bool,

    /// Run a copy that failed before it wrote anything again, up to N times
    #[arg(long, value_name = "N", help_heading = "Work", requires = "each", conflicts_with = "round_robin")]
    #[arg(default_value_t = 0, hide_default_value = true)]
    pub(crate) retries: u32,

    /// Write a line about each copy to this file as soon as it ends, in the format of GNU parallel's --joblog
    ///
    /// The columns are: the number of the block (the first is 1), ':', the time of the start, the run time in seconds, the
    /// bytes that the copy got and wrote, its exit status, its signal, and the command. The file is kept if the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Reports", requires = "each", conflicts_with = "round_robin")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) job_log: Option<PathBuf>,

    /// Whether to process the other blocks if a copy fails
    #[arg(long, value_name = "WHAT", help_heading = "Work", value_enum, requires = "each")]
    #[arg(default_value_t = OnError::Stop)]
    pub(crate) on_error: OnError,
}

/// What happens if a copy fails. The exit status is 1 in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// Later blocks are dropped. The output of earlier ones is complete, and is followed by what the failed one wrote
    Stop,
    /// All others continue, and the output is completed. Of the failed one, it has what that wrote
    Skip,
}

impl EachOptions {
    pub(super) fn jobs(&self) -> usize {
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.flatten().unwrap_or(processors).get()
    }

    pub(super) fn block(&self) -> usize {
        self.block.unwrap_or(BLOCK)
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= JOBS_LIMIT);
    number.ok_or_else(|| format!("expected 1 to {JOBS_LIMIT}"))
}

fn block_size(text: &str) -> Result<usize, String> {
    size::parse(text, 1..=BLOCK_LIMIT).map(|size| size as usize)
}
