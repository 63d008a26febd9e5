//! What customers have ordered, from a mongodump file: `cargo run --release -p millstream --example orders -- orders.bson`

use millstream::bson::{self, Documents, FromBson, Mapped, View};
use millstream::put::fixed;
use millstream::{Reader, Result, Writer, put};

#[derive(FromBson)]
struct Order<'a> {
    customer: Customer<'a>,
    items: Vec<Item>,
}

#[derive(FromBson)]
struct Customer<'a> {
    name: &'a str, // borrowed from the document
}

#[derive(FromBson)]
struct Item {
    qty: u32,
    price: f64,
}

fn orders(path: &str) -> Result<()> {
    let mut out = Writer::stdout()?;
    let mut documents = Documents::new(Reader::path(path)?);
    while let Some(document) = documents.next()? {
        let order: Order = match bson::decode_document(&document) {
            Ok(order) => order,
            Err(error) => return Err(documents.locate(error)), // adds the file and the document's number
        };
        let total: f64 = order.items.iter().map(|item| f64::from(item.qty) * item.price).sum();
        put!(out, order.customer.name, '\t', fixed(total, 2), '\n')?;
    }
    out.close()?;
    Ok(())
}

/// The mean of numbers that are stored as bytes, in a file of any size: nothing is copied.
fn mean(path: &str, key: &str) -> Result<f64> {
    let file = Mapped::open(path)?;
    let numbers: View<f32> = file.document()?.require(key)?;
    Ok(numbers.iter().map(f64::from).sum::<f64>() / numbers.len() as f64)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [path] => orders(path),
        [path, key] => mean(path, key).map(|mean| println!("{mean}")),
        _ => {
            eprintln!("orders: expected a file, or a file and the key of an array");
            std::process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("orders: {error}");
        std::process::exit(1);
    }
}
