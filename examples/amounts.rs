//! The sum of the column `amount` of a CSV file whose first record is a header:
//! `cargo run --release -p millstream --example amounts -- orders.csv`

use millstream::csv::Rows;
use millstream::frame::Csv;
use millstream::{Error, Reader, Result, scan};

fn sum(path: &str) -> Result<f64> {
    let mut rows = Rows::new(Reader::path(path)?, Csv::new());
    let amount = rows.index("amount")?; // reads the header
    let mut sum = 0.0;
    while let Some(row) = rows.next_row()? {
        let text = row.field(amount).unwrap_or_default(); // without its quotes
        let number = scan::parse::<f64>(&text);
        sum += number.map_err(|kind| row.locate(Error::new(kind), Some(amount)))?; // adds the line and the column
    }
    Ok(sum)
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "orders.csv".into());
    match sum(&path) {
        Ok(sum) => println!("{sum}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
