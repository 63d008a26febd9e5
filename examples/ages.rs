//! Prints the people of a CSV file whose first record is a header, and the mean of their ages:
//! `cargo run --release -p millstream --features serde --example ages -- people.csv`

use millstream::csv::Rows;
use millstream::frame::Csv;
use millstream::{Reader, Result};

#[derive(serde::Deserialize)]
struct Person {
    name: String,
    age: u8,
}

fn ages(path: &str) -> Result<()> {
    let mut rows = Rows::new(Reader::path(path)?, Csv::new());
    let (mut count, mut sum) = (0_u32, 0_u32);
    for person in rows.deserialize::<Person>() {
        let person = person?; // an error has the line, the column, the field's name and its text
        println!("{} is {}", person.name, person.age);
        count += 1;
        sum += u32::from(person.age);
    }
    println!("{count} people, {:.1} years old", f64::from(sum) / f64::from(count));
    Ok(())
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "people.csv".into());
    if let Err(error) = ages(&path) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
