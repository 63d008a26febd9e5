//! Writes a log that arrives on a socket to a file: `cargo run -p millstream --example socket_log -- HOST:PORT FILE`
//!
//! Lines are in the file at most a quarter of a second after they arrived, however few there are, and many of them are
//! written at once. The file grows as the log does, so it is written directly, not renamed at the end.

use std::time::Duration;

use millstream::frame::Lines;
use millstream::{Existing, FlushPolicy, Reader, Result, Writer};

fn copy_log(address: &str, path: &str) -> Result<u64> {
    let mut log = Reader::tcp(address)?;
    let mut file = Writer::builder()
        .existing(Existing::Append)
        .flush_policy(FlushPolicy::Delay(Duration::from_millis(250)))
        .path(path)?;
    let mut lines = Lines::untrimmed();
    while let Some(batch) = log.next_batch(&mut lines)? {
        file.write(batch.bytes())?;
    }
    file.close()?; // reports the errors that dropping it could not
    Ok(log.position().records)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, path] = arguments.as_slice() else {
        eprintln!("usage: socket_log HOST:PORT FILE");
        std::process::exit(2);
    };
    println!("{} lines", copy_log(address, path)?);
    Ok(())
}
