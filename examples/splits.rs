//! Counts the lines of a file, one split after the other: `cargo run --example splits -- huge.log`

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
    Ok(())
}
