//! Checks what Millstream promises, as a program that uses the packaged crates. The working directory contains
//! `lines.txt.gz` and `one.bson`; exits with status 0 if everything is as promised.

use millstream::{ErrorKind, Reader, Result, Writer};

fn main() -> Result<()> {
    // All that the command wrote, then the error.
    let mut reader = Reader::command(["sh", "-c", "echo one; exit 3"])?;
    assert_eq!(reader.next_line()?, Some(&b"one"[..]));
    assert_eq!(reader.next_line().map_err(|error| error.kind()), Err(ErrorKind::CommandFailed));

    // The file exists once it is complete.
    let mut writer = Writer::path("written.txt")?;
    writer.write(b"one\ntwo\n")?;
    assert!(!std::fs::exists("written.txt")?);
    writer.close()?;
    assert_eq!(std::fs::read("written.txt")?, b"one\ntwo\n");

    compressed()?;
    bson()
}

#[cfg(feature = "default")]
fn compressed() -> Result<()> {
    let mut reader = Reader::path("lines.txt.gz")?;
    assert_eq!(reader.next_line()?, Some(&b"alpha"[..]));
    assert_eq!(reader.next_line()?, Some(&b"beta"[..]));
    assert_eq!(reader.next_line()?, None);
    Ok(())
}

/// Without the feature, compressed bytes are an error, and no records.
#[cfg(not(feature = "default"))]
fn compressed() -> Result<()> {
    let result = Reader::path("lines.txt.gz").and_then(|mut reader| reader.next_line().map(|_| ()));
    assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::Unsupported));
    Ok(())
}

#[cfg(feature = "bson")]
fn bson() -> Result<()> {
    use millstream::bson::{self, Documents, FromBson};

    #[derive(FromBson)]
    struct Row {
        n: i32,
    }

    let mut documents = Documents::new(Reader::path("one.bson")?);
    let document = documents.next()?.expect("one document");
    assert_eq!(bson::decode_document::<Row>(&document)?.n, 5);
    assert!(documents.next()?.is_none());
    Ok(())
}

#[cfg(not(feature = "bson"))]
fn bson() -> Result<()> {
    Ok(())
}
