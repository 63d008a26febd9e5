use std::io::Cursor;

use arrow_array::types::Int32Type;
use arrow_array::{
    BooleanArray, DictionaryArray, Int64Array, ListArray, NullArray, StringArray, StringViewArray, StructArray,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use fastrand::Rng;

use super::*;
use crate::peak::peak;

/// The limit of a record in these tests, and thereby of 1 MiB for a batch.
const RECORD: usize = 64 << 10;

/// The most memory that reading may take: a batch as it is stored and when it is decompressed, as many dictionaries, whose
/// last one is joined from two, and metadata; and 24 MiB, which are two blocks of LZ4 with 8 MiB, and 8 MiB for the rest.
const MOST: usize = 5 * 16 * RECORD + 8 * RECORD + (24 << 20);

/// A batch of 100 rows. If the number of the first one is a multiple of 3, dictionaries are the same in all batches, which
/// files require.
fn batch(first: i64) -> RecordBatch {
    let rows = first..first + 100;
    let texts = || rows.clone().map(|row| format!("a text of row {}", row % 50));
    let lists = rows.clone().map(|row| (row % 3 > 0).then(|| (0..row % 7).map(|item| Some(item as i32))));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let booleans: ArrayRef =
        Arc::new(rows.clone().map(|row| (row % 5 > 0).then_some(row % 2 > 0)).collect::<BooleanArray>());
    let words: Vec<_> = rows.clone().map(|row| ["one", "two", "three"][row as usize % 3]).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("n", numbers.clone(), true),
        ("b", booleans.clone(), true),
        ("t", Arc::new(StringArray::from_iter_values(texts())), true),
        ("v", Arc::new(StringViewArray::from_iter_values(texts())), true),
        ("d", Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>()), true),
        ("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)), true),
        ("z", Arc::new(NullArray::new(100)), true),
        (
            "s",
            Arc::new(StructArray::from(vec![
                (Arc::new(Field::new("n", DataType::Int64, true)), numbers),
                (Arc::new(Field::new("b", DataType::Boolean, true)), booleans),
            ])),
            true,
        ),
    ])
    .unwrap()
}

fn written(batches: &[RecordBatch], compression: Option<CompressionType>, is_file: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batches[0].schema();
    if is_file {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    } else {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }
}

/// Reads all batches, one after the other.
fn each(bytes: &[u8], is_file: bool, mut seen: impl FnMut(RecordBatch)) -> Result<()> {
    if is_file {
        let mut file = ArrowFile::new(Cursor::new(bytes), RECORD)?;
        while let Some(batch) = file.next()? {
            seen(batch);
        }
    } else {
        let mut stream = ArrowStream::new(bytes, RECORD)?;
        while let Some(batch) = stream.next()? {
            seen(batch);
        }
    }
    Ok(())
}

fn all(bytes: &[u8], is_file: bool) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    each(bytes, is_file, |batch| batches.push(batch)).map(|()| batches)
}

/// Reads damaged bytes, and checks the memory that this takes. Returns whether it succeeded.
fn survives(bytes: &[u8], is_file: bool, what: &str) -> bool {
    let (result, most) = peak(|| each(bytes, is_file, drop));
    assert!(most <= MOST, "{what}: {most} bytes of memory");
    result.is_ok()
}

const COMPRESSIONS: [Option<CompressionType>; 3] =
    [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

fn forms() -> impl Iterator<Item = (Option<CompressionType>, bool)> {
    COMPRESSIONS.into_iter().flat_map(|compression| [(compression, true), (compression, false)])
}

#[test]
fn batches_come_back() {
    let batches = [batch(0), batch(3000)];
    for (compression, is_file) in forms() {
        let (read, most) = peak(|| all(&written(&batches, compression, is_file), is_file).unwrap());
        assert_eq!(read, batches, "{compression:?}");
        assert!(most > 10_000, "{most}: memory is counted");
    }
}

#[test]
fn long_batches_are_returned_in_parts() {
    let rows = ROWS + 10;
    let array: ArrayRef = Arc::new(NullArray::new(rows));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", array, true)]).unwrap();
    for (compression, is_file) in forms() {
        let batches = all(&written(std::slice::from_ref(&batch), compression, is_file), is_file).unwrap();
        let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [ROWS, 10]);
    }
}

/// Sizes that damage could announce.
const SIZES: [i64; 10] = [i64::MAX, i64::MIN, 1 << 40, 1 << 33, (1 << 31) - 1, 1 << 30, 1 << 21, -1, -2, 0];

#[test]
fn damage_is_an_error_and_takes_little_memory() {
    let rounds = if std::env::var_os("MILLSTREAM_DEEP").is_some() { 20_000 } else { 300 };
    let mut random = Rng::with_seed(1);
    let batches = [batch(0), batch(600)];
    for (compression, is_file) in forms() {
        let whole = written(&batches, compression, is_file);
        let mut failed = 0;
        for round in 0..rounds {
            let mut bytes = whole.clone();
            match random.usize(..8) {
                0 => bytes.truncate(random.usize(..whole.len())),
                1 => {
                    let (from, to, len) =
                        (random.usize(..whole.len()), random.usize(..whole.len()), random.usize(..64));
                    let len = len.min(whole.len() - from.max(to));
                    bytes.copy_within(from..from + len, to);
                }
                2..=4 => {
                    // The metadata and the prefixes are aligned.
                    let at = random.usize(..whole.len() / 8 - 1) * 8;
                    bytes[at..at + 8].copy_from_slice(&SIZES[random.usize(..SIZES.len())].to_le_bytes());
                }
                _ => {
                    for _ in 0..=random.usize(..3) {
                        let at = random.usize(..whole.len());
                        bytes[at] ^= 1 << random.usize(..8);
                    }
                }
            }
            failed += usize::from(!survives(&bytes, is_file, &format!("{compression:?}, {is_file}, round {round}")));
        }
        assert!(failed > rounds / 20, "{compression:?}, {is_file}: {failed}");
    }
}

/// Returns where the prefixes of compressed buffers are in a stream.
fn prefixes(stream: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let len = u32::from_le_bytes(stream[at + 4..at + 8].try_into().unwrap()) as usize;
        if len == 0 {
            return found;
        }
        let message = arrow_ipc::root_as_message(&stream[at + 8..at + 8 + len]).unwrap();
        at += 8 + len;
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
        let buffers = batch.and_then(|batch| batch.buffers()).into_iter().flatten();
        found.extend(buffers.filter(|buffer| buffer.length() > 0).map(|buffer| at + buffer.offset() as usize));
        at += message.bodyLength() as usize;
    }
}

#[test]
fn announced_sizes_are_not_trusted() {
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let whole = written(&[batch(0), batch(3000)], Some(compression), false);
        let prefixes = prefixes(&whole);
        assert!(prefixes.len() > 20, "{prefixes:?}");
        for at in prefixes {
            // A file contains the same bytes, only at other places.
            let original = i64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
            for size in SIZES.into_iter().chain([original + 1, original * 2]).filter(|size| !(-1..=0).contains(size)) {
                let mut bytes = whole.clone();
                bytes[at..at + 8].copy_from_slice(&size.to_le_bytes());
                assert!(!survives(&bytes, false, &format!("{compression:?}, byte {at}, {size}")), "{at} {size}");
            }
        }
    }
}

/// Returns the error of a stream of one column, which has been changed.
fn refused(bytes: &[u8]) -> String {
    let (result, most) = peak(|| each(bytes, false, drop));
    assert!(most <= MOST, "{most}");
    result.unwrap_err().without_advice().to_string()
}

#[test]
fn errors_name_what_was_found_and_expected() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1000).map(|row| row * row % 1009)));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    for (compression, ratio) in [(CompressionType::LZ4_FRAME, 255), (CompressionType::ZSTD, 32_768)] {
        let whole = written(std::slice::from_ref(&batch), Some(compression), false);
        let at = *prefixes(&whole).last().unwrap();
        let with = |size: i64| {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&size.to_le_bytes());
            refused(&bytes)
        };
        let huge = with(1 << 40);
        assert!(huge.starts_with("decode damaged: found a compressed buffer of "), "{huge}");
        let len: i64 = huge.split(' ').nth(7).unwrap().parse().unwrap();
        assert_eq!(
            huge,
            format!(
                "decode damaged: found a compressed buffer of {len} bytes for 1099511627776, expected at most {} for that \
                 many, or -1",
                len * ratio
            )
        );
        assert!(with(-2).contains("bytes for -2, "));
        if compression == CompressionType::ZSTD {
            assert_eq!(
                with(2 << 20),
                "memory limit: found a decompressed batch of 2097152 bytes, expected at most 1048576"
            );
        }
    }
    let whole = written(std::slice::from_ref(&batch), None, false);
    assert!(refused(&whole[..whole.len() - 100]).starts_with("decode truncated: found the end of the source after "));
    assert!(refused(&whole[..2]).starts_with("decode truncated: "));
    assert!(refused(b"").starts_with("decode damaged: found no message, expected a schema"));
    assert!(
        refused(b"\xff\xff\xff\xff\xff\xff\xff\x7f").contains("metadata of 2147483647 bytes, expected at most 65536")
    );
}

/// The values of dictionaries are kept until they are replaced.
#[test]
fn dictionaries_have_a_limit() {
    let batch = |text: &str| {
        let words: DictionaryArray<Int32Type> =
            (0..10).map(|row| format!("{text}{row}")).collect::<Vec<_>>().iter().map(String::as_str).collect();
        let words: ArrayRef = Arc::new(words);
        RecordBatch::try_from_iter([("d", words)]).unwrap()
    };
    let batches: Vec<_> = (0..30).map(|i| batch(&i.to_string().repeat(10_000))).collect();
    let stream = written(&batches, Some(CompressionType::ZSTD), false);
    assert_eq!(all(&stream, false).unwrap(), batches);
    // The same dictionaries, but each is an addition to the ones before.
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::ZSTD))
        .unwrap()
        .with_dictionary_handling(arrow_ipc::writer::DictionaryHandling::Delta);
    let mut words = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    for i in 0..30 {
        words.extend((0..10).map(|row| format!("{}{row}", i.to_string().repeat(10_000))));
        let array: ArrayRef = Arc::new(words.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>());
        writer.write(&RecordBatch::try_from_iter([("d", array)]).unwrap()).unwrap();
    }
    let error = refused(&writer.into_inner().unwrap());
    assert!(error.starts_with("memory limit: found dictionaries of "), "{error}");
}

#[test]
fn a_panic_is_an_error() {
    let error = contained(|| -> Result<()> { panic!("index {} is too large\nsecond line", 7) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodeDamaged);
    assert_eq!(error.found(), Some("values that the decoder does not accept (index 7 is too large)"));
}
