//! Compresses a command's lines in a task of tokio: `cargo run --features tokio --example tokio_copy -- numbers.gz`

use std::path::Path;

use millstream::tokio::{AsyncReader, AsyncWriter};
use millstream::{Reader, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

async fn copy(path: &Path) -> Result<()> {
    let mut lines = AsyncReader::new(Reader::command(["seq", "1000"])?)?.lines();
    let mut out = AsyncWriter::new(|writer| writer.path(path))?;
    while let Some(line) = lines.next_line().await? {
        out.write_all(format!("{line}\n").as_bytes()).await?;
    }
    out.shutdown().await?; // completes the file, and reports every error
    Ok(())
}

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "numbers.gz".into());
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(copy(path.as_ref()))
}
