//! Arrow IPC as a source: files and streams.
//!
//! arrow-ipc decodes the batches, but it requests the memory that a message announces, so every length is checked here
//! before. Three limits follow from that of a record (`--record-limit`): the metadata of a message or file has at most as
//! many bytes, and a batch at most [`BATCH`] times as many, as it is stored and when it is decompressed. The dictionaries
//! that are kept have at most as many bytes as a batch.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_footer_length, read_record_batch};
use arrow_ipc::{Block, CompressionType, Message, root_as_footer_with_opts, root_as_message_with_opts};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use flatbuffers::{InvalidFlatbuffer, VerifierOptions};
use millstream::{Error, ErrorKind, Result};

use crate::tables::{contained, read_failed};

/// How many times longer than a record a batch may be: 1 GiB by default.
const BATCH: u64 = 16;

/// The most rows that are returned at once, because the text of a value may be far longer than the value.
const ROWS: usize = 1 << 16;

/// The memory that is requested before the bytes for it have arrived.
const AHEAD: usize = 16 << 20;

/// The bytes before the metadata in messages of the current version.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The end of a file: the length of the footer, and `ARROW1`.
const TRAILER: u64 = 10;

/// The greatest number of bytes that one compressed byte becomes. A byte of LZ4 lengthens a match by at most 255; the
/// shortest block of zstd has 4 bytes, and no block becomes more than 128 KiB.
fn greatest_ratio(codec: CompressionType) -> u64 {
    if codec == CompressionType::LZ4_FRAME { 255 } else { (128 << 10) / 4 }
}

fn damaged(found: impl Into<String>, expected: impl Into<String>) -> Error {
    Error::new(ErrorKind::DecodeDamaged).with_found(found).with_expected(expected)
}

fn too_large(what: &str, found: u64, limit: u64) -> Error {
    Error::new(ErrorKind::MemoryLimit)
        .with_found(format!("{what} of {found} bytes"))
        .with_expected(format!("at most {limit}"))
}

/// Reads exactly this many bytes, and requests memory as they arrive.
fn read(source: &mut impl Read, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(AHEAD.min(len as usize));
    let count = source.take(len).read_to_end(&mut bytes).map_err(Error::from_io)?;
    if (count as u64) < len {
        return Err(Error::new(ErrorKind::DecodeTruncated)
            .with_found(format!("the end of the source after {count} bytes of a message"))
            .with_expected(format!("{len} bytes")));
    }
    Ok(bytes)
}

/// The limits, in bytes.
#[derive(Clone, Copy)]
struct Limits {
    metadata: u64,
    batch: u64,
}

impl Limits {
    fn new(record_limit: usize) -> Limits {
        Limits { metadata: record_limit as u64, batch: record_limit as u64 * BATCH }
    }

    /// The metadata may refer to the same table many times, so its size when expanded has the same limit.
    fn verifier(self) -> VerifierOptions {
        VerifierOptions { max_apparent_size: self.metadata as usize, ..VerifierOptions::default() }
    }

    /// Returns the length of metadata.
    fn metadata(self, len: i64) -> Result<u64> {
        match u64::try_from(len) {
            Ok(len) if len > self.metadata => Err(too_large("metadata", len, self.metadata)),
            Ok(len) => Ok(len),
            Err(_) => Err(damaged(format!("metadata of {len} bytes"), "a length that is not negative")),
        }
    }

    /// Returns the length of the body of a message.
    fn body(self, len: i64) -> Result<u64> {
        match u64::try_from(len) {
            Ok(len) if len > self.batch => Err(too_large("a batch", len, self.batch)),
            Ok(len) => Ok(len),
            Err(_) => Err(damaged(format!("a batch of {len} bytes"), "a length that is not negative")),
        }
    }

    fn message(self, metadata: &[u8]) -> Result<Message<'_>> {
        root_as_message_with_opts(&self.verifier(), metadata).map_err(|error| not_flat("a message", &error))
    }

    /// Fails if a batch is too large when it is decompressed, or has too many rows, or is not in its body. Returns its size
    /// when it is decompressed.
    fn check(self, batch: &arrow_ipc::RecordBatch<'_>, body: &[u8]) -> Result<u64> {
        let ratio = batch.compression().map(|compression| greatest_ratio(compression.codec()));
        // Values without bytes, such as nulls, have a limit, too.
        let mut values = 0_u64;
        let lengths = batch.nodes().into_iter().flatten().map(|node| node.length());
        for len in lengths.chain([batch.length()]) {
            let len = u64::try_from(len);
            let len = len.map_err(|_| damaged("a negative number of rows", "one that is not negative"))?;
            values = values.saturating_add(len);
        }
        if values > self.batch {
            return Err(Error::new(ErrorKind::MemoryLimit)
                .with_found(format!("a batch of {values} values"))
                .with_expected(format!("at most {}", self.batch)));
        }
        let mut decoded = 0_u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let (offset, len) = (buffer.offset(), buffer.length());
            let start = usize::try_from(offset).ok();
            let end = start.and_then(|start| start.checked_add(usize::try_from(len).ok()?));
            let bytes = start.zip(end).and_then(|(start, end)| body.get(start..end)).ok_or_else(|| {
                damaged(
                    format!("a buffer of {len} bytes at byte {offset} of a batch"),
                    format!("one in its {} bytes", body.len()),
                )
            })?;
            decoded = decoded.saturating_add(match ratio {
                Some(ratio) if !bytes.is_empty() => announced(bytes, ratio)?,
                _ => bytes.len() as u64,
            });
        }
        match decoded > self.batch {
            true => Err(too_large("a decompressed batch", decoded, self.batch)),
            false => Ok(decoded),
        }
    }
}

fn not_flat(what: &str, error: &InvalidFlatbuffer) -> Error {
    damaged(format!("{what} that is not valid ({})", first_line(&error.to_string())), "a complete table")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches('.')
}

/// Returns the size of a compressed buffer when it is decoded, which it begins with; -1 means that it is not compressed.
fn announced(buffer: &[u8], ratio: u64) -> Result<u64> {
    let Some((size, compressed)) = buffer.split_first_chunk::<8>() else {
        return Err(damaged(format!("a compressed buffer of {} bytes", buffer.len()), "at least the 8 of its size"));
    };
    let (size, len) = (i64::from_le_bytes(*size), compressed.len() as u64);
    match u64::try_from(size) {
        Ok(size) if size <= len.saturating_mul(ratio) => Ok(size),
        Err(_) if size == -1 => Ok(len),
        _ => Err(damaged(
            format!("a compressed buffer of {len} bytes for {size}"),
            format!("at most {} for that many, or -1", len.saturating_mul(ratio)),
        )),
    }
}

/// Decodes messages.
struct Decoder {
    limits: Limits,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The bytes of each dictionary, and of all of them.
    sizes: HashMap<i64, u64>,
    kept: u64,
    /// Whether dictionaries refer to others, which they keep when these are replaced.
    is_nested: bool,
    /// The rows of the last batch that have not been returned.
    rest: Option<RecordBatch>,
}

impl Decoder {
    fn new(limits: Limits, schema: Option<arrow_ipc::Schema<'_>>) -> Result<Decoder> {
        let schema = schema.ok_or_else(|| damaged("no schema", "one before the batches"))?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(Error::new(ErrorKind::Unsupported)
                .with_found("numbers in the byte order of another machine")
                .with_expected("those of this one"));
        }
        let schema: Schema = contained(|| try_fb_to_schema(schema).map_err(read_failed))?;
        let is_nested = schema.flattened_fields().iter().any(|field| match field.data_type() {
            DataType::Dictionary(_, values) => {
                let values = Schema::new(vec![Field::new("", values.as_ref().clone(), true)]);
                values.flattened_fields().iter().any(|field| matches!(field.data_type(), DataType::Dictionary(..)))
            }
            _ => false,
        });
        let (dictionaries, sizes) = (HashMap::new(), HashMap::new());
        Ok(Decoder { limits, schema: Arc::new(schema), dictionaries, sizes, kept: 0, is_nested, rest: None })
    }

    /// Decodes a batch or a dictionary.
    fn decode(&mut self, message: &Message<'_>, body: Vec<u8>) -> Result<()> {
        let (body, version) = (Buffer::from_vec(body), message.version());
        if let Some(batch) = message.header_as_record_batch() {
            self.limits.check(&batch, &body)?;
            let (schema, dictionaries) = (self.schema.clone(), &self.dictionaries);
            self.rest = Some(contained(|| {
                read_record_batch(&body, batch, schema, dictionaries, None, &version).map_err(read_failed)
            })?);
            return Ok(());
        }
        let Some(batch) = message.header_as_dictionary_batch() else {
            return Err(damaged(format!("a message of type {:?}", message.header_type()), "a batch or a dictionary"));
        };
        let decoded = batch.data().map_or(Ok(0), |batch| self.limits.check(&batch, &body))?;
        // The buffers of values that are not compressed are parts of the body, which is kept as a whole.
        let size = decoded.max(body.len() as u64);
        let replaced = self.sizes.get(&batch.id()).copied().filter(|_| !batch.isDelta() && !self.is_nested);
        self.kept = self.kept.saturating_add(size) - replaced.unwrap_or(0);
        if self.kept > self.limits.batch {
            return Err(too_large("dictionaries", self.kept, self.limits.batch));
        }
        let sum = self.sizes.entry(batch.id()).or_default();
        *sum = *sum + size - replaced.unwrap_or(0);
        let (schema, dictionaries) = (&self.schema, &mut self.dictionaries);
        contained(|| read_dictionary(&body, batch, schema, dictionaries, &version).map_err(read_failed))
    }

    /// Returns the next rows of the last batch.
    fn rows(&mut self) -> Option<RecordBatch> {
        let batch = self.rest.take()?;
        if batch.num_rows() > ROWS {
            self.rest = Some(batch.slice(ROWS, batch.num_rows() - ROWS));
            return Some(batch.slice(0, ROWS));
        }
        Some(batch)
    }
}

/// A file, whose footer has the places of the batches.
pub(super) struct ArrowFile<S> {
    source: S,
    blocks: std::vec::IntoIter<Block>,
    /// Where the footer begins.
    end: u64,
    decoder: Decoder,
}

impl<S: Read + Seek> ArrowFile<S> {
    /// Reads the footer and the dictionaries.
    ///
    /// # Errors
    /// Returns the errors of reading, and damage.
    pub(super) fn new(mut source: S, record_limit: usize) -> Result<ArrowFile<S>> {
        let limits = Limits::new(record_limit);
        let size = source.seek(SeekFrom::End(0)).map_err(Error::from_io)?;
        let short = || damaged(format!("a file of {size} bytes"), "its footer");
        source.seek(SeekFrom::Start(size.checked_sub(TRAILER).ok_or_else(short)?)).map_err(Error::from_io)?;
        let mut trailer = [0; TRAILER as usize];
        source.read_exact(&mut trailer).map_err(Error::from_io)?;
        let len = limits.metadata(read_footer_length(trailer).map_err(read_failed)? as i64)?;
        let end = size.checked_sub(TRAILER + len).ok_or_else(short)?;
        source.seek(SeekFrom::Start(end)).map_err(Error::from_io)?;
        let footer = read(&mut source, len)?;
        let footer =
            root_as_footer_with_opts(&limits.verifier(), &footer).map_err(|error| not_flat("a footer", &error))?;
        let blocks: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let decoder = Decoder::new(limits, footer.schema())?;
        let mut file = ArrowFile { source, blocks: blocks.into_iter(), end, decoder };
        for block in footer.dictionaries().into_iter().flatten() {
            file.decode(block)?;
        }
        Ok(file)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.decoder.schema.clone()
    }

    /// Returns the next rows.
    ///
    /// # Errors
    /// Returns the errors of reading, and damage.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.decoder.rows() {
                return Ok(Some(rows));
            }
            let Some(block) = self.blocks.next() else { return Ok(None) };
            self.decode(&block)?;
        }
    }

    fn decode(&mut self, block: &Block) -> Result<()> {
        let limits = self.decoder.limits;
        let (metadata, body) = (limits.metadata(block.metaDataLength().into())?, limits.body(block.bodyLength())?);
        let start = u64::try_from(block.offset()).ok();
        let end = start.and_then(|start| start.checked_add(metadata + body));
        let start = start.filter(|_| end.is_some_and(|end| end <= self.end)).ok_or_else(|| {
            damaged(
                format!("a batch of {} bytes at byte {}", metadata + body, block.offset()),
                format!("one before the footer at byte {}", self.end),
            )
        })?;
        self.source.seek(SeekFrom::Start(start)).map_err(Error::from_io)?;
        let metadata = read(&mut self.source, metadata)?;
        let body = read(&mut self.source, body)?;
        // Files of old versions do not have the marker.
        let skipped = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
        let message = limits.message(metadata.get(skipped..).unwrap_or_default())?;
        self.decoder.decode(&message, body)
    }
}

/// A stream.
pub(super) struct ArrowStream<S> {
    source: S,
    decoder: Decoder,
    is_done: bool,
}

impl<S: Read> ArrowStream<S> {
    /// Reads the schema.
    ///
    /// # Errors
    /// Returns the errors of reading, and damage.
    pub(super) fn new(mut source: S, record_limit: usize) -> Result<ArrowStream<S>> {
        let limits = Limits::new(record_limit);
        let Some(metadata) = read_metadata(&mut source, limits)? else {
            return Err(damaged("no message", "a schema"));
        };
        let message = limits.message(&metadata)?;
        read(&mut source, limits.body(message.bodyLength())?)?;
        let decoder = Decoder::new(limits, message.header_as_schema())?;
        Ok(ArrowStream { source, decoder, is_done: false })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.decoder.schema.clone()
    }

    pub(super) fn source(&self) -> &S {
        &self.source
    }

    pub(super) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the next rows.
    ///
    /// # Errors
    /// Returns the errors of reading, and damage.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.decoder.rows() {
                return Ok(Some(rows));
            }
            if self.is_done {
                return Ok(None);
            }
            let limits = self.decoder.limits;
            let Some(metadata) = read_metadata(&mut self.source, limits)? else {
                self.is_done = true;
                continue;
            };
            let message = limits.message(&metadata)?;
            let body = read(&mut self.source, limits.body(message.bodyLength())?)?;
            self.decoder.decode(&message, body)?;
        }
    }
}

/// Reads the metadata of the next message of a stream. It ends with an empty message, or with its source.
fn read_metadata(source: &mut impl Read, limits: Limits) -> Result<Option<Vec<u8>>> {
    let mut len = Vec::new();
    source.take(4).read_to_end(&mut len).map_err(Error::from_io)?;
    if len.is_empty() {
        return Ok(None);
    }
    // Streams of old versions do not have the marker.
    if len == CONTINUATION {
        len = read(source, 4)?;
    }
    let Some(&len) = len.first_chunk() else {
        return Err(Error::new(ErrorKind::DecodeTruncated)
            .with_found(format!("the end of the source after {} bytes of a message", len.len()))
            .with_expected("at least 4"));
    };
    match limits.metadata(i32::from_le_bytes(len).into())? {
        0 => Ok(None),
        len => read(source, len).map(Some),
    }
}

#[cfg(test)]
mod tests;
