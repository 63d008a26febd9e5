//! A command that dies halfway, and how a program notices: `cargo run -p millstream --example failing_command`

use millstream::{ErrorKind, Reader, Result};

fn main() -> Result<()> {
    // It represents `samtools view`, `curl`, `pg_dump`: it writes two records, prints why it gives up, and fails.
    let script = "echo first; echo second; echo 'disk unplugged' >&2; exit 3";
    let mut reader = Reader::command(["sh", "-c", script])?;
    loop {
        match reader.next_line() {
            Ok(Some(line)) => println!("record: {}", String::from_utf8_lossy(line)),
            Ok(None) => break println!("complete"),
            Err(error) if error.kind() == ErrorKind::CommandFailed => {
                let end = error.command().expect("errors of this kind name a command");
                println!("incomplete: the command {}", end.status);
                print!("standard error: {}", String::from_utf8_lossy(&end.stderr_tail));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
