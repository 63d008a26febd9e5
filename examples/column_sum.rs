//! The sum of one column of numbers on standard input: `… | cargo run --release -p millstream --example column_sum -- 3`

use millstream::scan::Separator;
use millstream::{Reader, Result, Writer, put};

fn column_sum(number: usize) -> Result<()> {
    let mut reader = Reader::stdin()?;
    let mut sum = 0.0;
    while let Some(value) = reader.next_column::<f64>(number, Separator::Space)? {
        sum += value;
    }
    let mut out = Writer::stdout()?;
    put!(out, reader.position().records, " lines, sum ", sum, '\n')?;
    out.close()?;
    Ok(())
}

fn main() {
    let number = std::env::args().nth(1).and_then(|text| text.parse().ok()).filter(|&number: &usize| number > 0);
    let Some(number) = number else {
        eprintln!("column_sum: which column? The first is 1");
        std::process::exit(2);
    };
    if let Err(error) = column_sum(number - 1) {
        eprintln!("column_sum: {error}");
        std::process::exit(1);
    }
}
