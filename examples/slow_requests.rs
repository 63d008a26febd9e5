//! The slow requests of a log whose lines end in a time in milliseconds; invalid lines are set aside: `cargo run
//! --release -p millstream --example slow_requests -- access.log bad.log`

use millstream::pipe::{OnError, Pipe};
use millstream::scan::{Separator, column};
use millstream::{Reader, Result, Writer};

fn slow_requests(log: &str, bad: &str) -> Result<()> {
    let mut aside = Writer::path(bad)?;
    let mut out = Writer::stdout()?;
    let summary = Pipe::from(Reader::path(log)?)
        .lines()
        .filter(|line| !line.starts_with(b"#"))
        .on_error(OnError::Quarantine(&mut aside))
        .try_filter(|line| column::<f64>(line, 2, Separator::Space).map(|time| time > 500.0))
        .write_to(&mut out)?;
    out.close()?;
    aside.close()?;
    eprintln!("{} of {} requests are slow, {} lines are none", summary.items, summary.records, summary.failed);
    Ok(())
}

fn main() {
    let [log, bad] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        eprintln!("slow_requests: which log, and where to put lines that are none?");
        std::process::exit(2);
    };
    if let Err(error) = slow_requests(log, bad) {
        eprintln!("slow_requests: {error}");
        std::process::exit(1);
    }
}
