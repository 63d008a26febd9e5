//! Counts the lines of a file, one split after the other, and on four threads its lines with an error after the first one:
//! `cargo run --example splits -- huge.log`

use millstream::pipe::Pipe;
use millstream::splits::{Framing, Splits};
use millstream::{Reader, Result};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "huge.log".into());
    let mut lines = 0;
    let plan = Splits::plan(&path, Framing::Lines, 256 << 20)?;
    for split in &plan {
        let mut reader = Reader::split(split)?;
        while reader.next_line()?.is_some() {
            lines += 1;
        }
    }
    println!("{lines}");

    let plan = Splits::plan(&path, Framing::Lines, 4 << 20)?;
    let mut errors = Pipe::from_splits(&plan)
        .parallel(4, |stages| stages.filter(|line| line.windows(5).any(|word| word == b"error")))
        .skip(1);
    println!("{}", errors.count()?);
    Ok(())
}
