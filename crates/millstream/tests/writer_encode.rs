//! Compressed output is complete, and independent decoders agree.
#![cfg(feature = "compression")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use millstream::{Encode, ErrorKind, Existing, Writer};

const FORMATS: [Encode; 4] = [Encode::Gzip, Encode::Bgzf, Encode::Zstd, Encode::Xz];

/// Decodes with an implementation that is not the encoder's.
fn xz(encoded: &[u8]) -> lzma_rust2::XzReader<&[u8]> {
    lzma_rust2::XzReader::new(encoded, true)
}

/// The empty block that ends a bgzf file (SAM specification, 4.1.2).
const BGZF_END: [u8; 28] = *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";

/// Returns lines that compress well, or bytes that do not.
fn text(len: usize) -> Vec<u8> {
    (0..).flat_map(|i: u64| format!("{i}\t{}\n", i * i).into_bytes()).take(len).collect()
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn encode(encode: Encode, bytes: &[u8], record: usize) -> Vec<u8> {
    let mut writer = Writer::builder().encode(encode).memory().unwrap();
    bytes.chunks(record).for_each(|record| writer.write(record).unwrap());
    let end = writer.close().unwrap();
    let encoded = end.memory.unwrap();
    assert_eq!((end.bytes, end.written), (bytes.len() as u64, encoded.len() as u64));
    encoded
}

fn decode(encode: Encode, encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    match encode {
        Encode::Zstd => zstd::Decoder::new(encoded).unwrap().read_to_end(&mut decoded).unwrap(),
        Encode::Xz => xz(encoded).read_to_end(&mut decoded).unwrap(),
        Encode::Bgzf => noodles_bgzf::io::Reader::new(encoded).read_to_end(&mut decoded).unwrap(),
        _ => flate2::read::MultiGzDecoder::new(encoded).read_to_end(&mut decoded).unwrap(),
    };
    decoded
}

#[test]
fn every_format_restores_its_input() {
    for format in FORMATS {
        for len in [0, 1, 65_279, 65_280, 65_281, 65_536, 1_000_000] {
            for bytes in [text(len), noise(len)] {
                for record in [7, 4096, 1 << 20] {
                    let encoded = encode(format, &bytes, record);
                    assert!(decode(format, &encoded) == bytes, "{format:?}, {len} bytes by {record}");
                    if format == Encode::Bgzf {
                        assert!(encoded.ends_with(&BGZF_END));
                    }
                }
            }
        }
    }
}

/// Returns the sizes of the content of the members or frames.
fn blocks(format: Encode, mut encoded: &[u8]) -> Vec<usize> {
    let mut sizes = Vec::new();
    while !encoded.is_empty() {
        let mut block = Vec::new();
        match format {
            Encode::Zstd => {
                zstd::Decoder::with_buffer(&mut encoded).unwrap().single_frame().read_to_end(&mut block).unwrap()
            }
            _ => flate2::bufread::GzDecoder::new(&mut encoded).read_to_end(&mut block).unwrap(),
        };
        sizes.push(block.len());
    }
    sizes
}

#[test]
fn blocks_are_independent_and_restore_their_input() {
    for format in [Encode::Gzip, Encode::Zstd] {
        for (len, expected) in [(0, vec![0]), (1, vec![1]), (4096, vec![4096]), (10_000, vec![4096, 4096, 1808])] {
            for bytes in [text(len), noise(len)] {
                for record in [7, 4096, 1 << 20] {
                    let mut writer = Writer::builder().encode(format).block_size(4096).memory().unwrap();
                    bytes.chunks(record).for_each(|record| writer.write(record).unwrap());
                    let encoded = writer.close().unwrap().memory.unwrap();
                    assert!(decode(format, &encoded) == bytes, "{format:?}, {len} bytes by {record}");
                    assert_eq!(blocks(format, &encoded), expected, "{format:?}, {len} bytes by {record}");
                }
            }
        }
        let mut writer = Writer::builder().encode(format).block_size(4096).memory().unwrap();
        for part in [&b"one"[..], b"two"] {
            writer.write(part).unwrap();
            writer.flush().unwrap();
        }
        let encoded = writer.close().unwrap().memory.unwrap();
        assert_eq!(
            (decode(format, &encoded), blocks(format, &encoded)),
            (b"onetwo".to_vec(), vec![3, 3]),
            "{format:?}"
        );
    }
}

#[test]
fn a_file_of_zstd_frames_can_be_divided() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let mut writer = Writer::builder().block_size(100_000).path(&path).unwrap();
    writer.write(&text(1_000_000)).unwrap();
    writer.close().unwrap();
    let plan = millstream::splits::Splits::plan(&path, millstream::splits::Framing::Lines, 100_000).unwrap();
    assert_eq!((plan.len(), plan.note()), (10, None));
}

#[test]
fn a_block_size_is_refused_where_it_has_no_effect() {
    for (encode, size, found) in [
        (Encode::Off, 1 << 20, "a block size for uncompressed output"),
        (Encode::Bgzf, 1 << 20, "a block size for bgzf"),
        (Encode::Xz, 1 << 20, "a block size for xz"),
        (Encode::Zstd, 4095, "a block size of 4095 bytes"),
        (Encode::Gzip, (64 << 20) + 1, "a block size of 67108865 bytes"),
    ] {
        let error = Writer::builder().encode(encode).block_size(size).memory().err().unwrap();
        assert_eq!((error.kind(), error.found()), (ErrorKind::InvalidOption, Some(found)));
    }
}

#[test]
fn every_level_works_and_the_smallest_is_smaller() {
    let bytes = text(300_000);
    let levels = [(Encode::Gzip, 0..=9), (Encode::Bgzf, 0..=9), (Encode::Zstd, 1..=19), (Encode::Xz, 0..=9)];
    for (format, levels) in levels {
        let sizes: Vec<usize> = levels
            .map(|level| {
                let mut writer = Writer::builder().encode(format).level(level).memory().unwrap();
                writer.write(&bytes).unwrap();
                let encoded = writer.close().unwrap().memory.unwrap();
                assert!(decode(format, &encoded) == bytes);
                encoded.len()
            })
            .collect();
        assert!(sizes.last() < sizes.first(), "{format:?} {sizes:?}");
    }
}

#[test]
fn after_a_flush_all_earlier_bytes_can_be_decoded() {
    for format in FORMATS {
        let arrived = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = arrived.clone();
        let mut writer = Writer::builder()
            .encode(format)
            .callback(move |bytes: &[u8]| {
                sink.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            })
            .unwrap();
        let bytes = text(200_000);
        for (i, part) in bytes.chunks(50_000).enumerate() {
            writer.write(part).unwrap();
            writer.flush().unwrap();
            let so_far = arrived.lock().unwrap().clone();
            let mut decoded = vec![0; (i + 1) * 50_000];
            match format {
                Encode::Zstd => zstd::Decoder::new(&so_far[..]).unwrap().read_exact(&mut decoded).unwrap(),
                Encode::Xz => xz(&so_far).read_exact(&mut decoded).unwrap(),
                _ => flate2::read::MultiGzDecoder::new(&so_far[..]).read_exact(&mut decoded).unwrap(),
            }
            assert!(decoded == bytes[..decoded.len()]);
            // A second flush has no effect.
            writer.flush().unwrap();
            assert_eq!(arrived.lock().unwrap().len(), so_far.len());
        }
    }
}

#[test]
fn callbacks_run_on_the_callers_thread_with_any_compressor() {
    for format in FORMATS {
        let caller = std::thread::current().id();
        let mut writer = Writer::builder()
            .encode(format)
            .callback(move |bytes: &[u8]| {
                assert_eq!(std::thread::current().id(), caller);
                Ok(bytes.len())
            })
            .unwrap();
        writer.write(&noise(1_000_000)).unwrap();
        assert!(writer.close().unwrap().written > 1_000_000);
    }
}

/// Runs an installed program on a file. Returns its output, or `None` (with a visible message) if it is not installed.
fn tool(argv: &[&str], path: &Path) -> Option<Vec<u8>> {
    match Command::new(argv[0]).args(&argv[1..]).arg(path).stdin(Stdio::null()).output() {
        Ok(output) => {
            assert!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
        Err(error) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{}: {error}", argv[0]);
            let _ = writeln!(std::io::stderr(), "SKIPPED: {}: {error}", argv[0]);
            None
        }
    }
}

#[test]
fn the_ending_of_a_name_chooses_the_format_and_the_systems_tools_agree() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = text(500_000);
    for (name, format) in [
        ("a.gz", Some(Encode::Gzip)),
        ("a.GZ", Some(Encode::Gzip)),
        ("a.bgz", Some(Encode::Bgzf)),
        ("a.bgzf", Some(Encode::Bgzf)),
        ("a.zst", Some(Encode::Zstd)),
        ("a.xz", Some(Encode::Xz)),
        ("a.txt", None),
        ("gz", None),
    ] {
        let path = dir.path().join(name);
        let mut writer = Writer::path(&path).unwrap();
        writer.write(&bytes).unwrap();
        writer.close().unwrap();
        let file = std::fs::read(&path).unwrap();
        match format {
            None => assert!(file == bytes, "{name}"),
            Some(format) => assert!(decode(format, &file) == bytes, "{name}"),
        }
        let argv = match format {
            None => continue,
            Some(Encode::Zstd) => &["zstd", "-dcq"],
            Some(Encode::Xz) => &["xz", "-dcq"],
            Some(_) => &["gzip", "-dcf"], // `zcat` by another name, whatever the file is called
        };
        if argv[0] == "gzip" && !name.ends_with(".gz") {
            continue; // gzip requires its file name extension
        }
        if let Some(decoded) = tool(argv, &path) {
            assert!(decoded == bytes, "{argv:?} {name}");
        }
    }
    let path = dir.path().join("plain.gz");
    let mut writer = Writer::builder().encode(Encode::Off).path(&path).unwrap();
    writer.write(b"as it is").unwrap();
    writer.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"as it is");
}

#[test]
fn appending_adds_a_member_that_decoders_join() {
    let dir = tempfile::tempdir().unwrap();
    for (ending, format) in [("gz", Encode::Gzip), ("bgz", Encode::Bgzf), ("zst", Encode::Zstd), ("xz", Encode::Xz)] {
        let path = dir.path().join("log").with_extension(ending);
        for line in ["one\n", "two\n"] {
            let mut writer = Writer::builder().existing(Existing::Append).path(&path).unwrap();
            writer.write(line.as_bytes()).unwrap();
            writer.close().unwrap();
        }
        assert_eq!(decode(format, &std::fs::read(&path).unwrap()), b"one\ntwo\n");
    }
}

/// Returns the data that can be decoded from a stream, and whether it has its end.
fn decode_as_far_as_possible(encode: Encode, encoded: &[u8]) -> (Vec<u8>, bool) {
    let mut decoded = Vec::new();
    let end = match encode {
        Encode::Zstd => zstd::Decoder::new(encoded).unwrap().read_to_end(&mut decoded),
        // Single bytes are read, because a longer read delivers no bytes if it meets the end.
        Encode::Xz => {
            let mut bytes = std::io::BufReader::with_capacity(1, xz(encoded)).bytes();
            bytes.try_for_each(|byte| byte.map(|byte| decoded.push(byte))).map(|()| 0)
        }
        _ => flate2::read::MultiGzDecoder::new(encoded).read_to_end(&mut decoded),
    };
    let has_end = if encode == Encode::Bgzf { encoded.ends_with(&BGZF_END) } else { end.is_ok() };
    (decoded, has_end)
}

#[test]
fn unclosed_output_has_no_end_marker() {
    /// How the use of a writer ends: it is dropped, aborted, aborted after a flush, or dropped after a close that
    /// failed.
    type Leave = fn(Writer);
    let leave: [(Leave, &[u8]); 4] = [
        (drop, b"all of it"),
        (|mut writer| writer.abort(), b""),
        (
            |mut writer| {
                writer.flush().unwrap();
                writer.abort();
            },
            b"all of it",
        ),
        (
            |mut writer| {
                writer.flush().unwrap();
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                    let _writer = writer;
                    std::panic::resume_unwind(Box::new("on purpose"));
                }))
                .unwrap_err();
            },
            b"all of it",
        ),
    ];
    for format in FORMATS {
        for (leave, expected) in leave {
            let (mut reader, pipe) = std::io::pipe().unwrap();
            let mut writer = Writer::builder().encode(format).fd(pipe).unwrap();
            writer.write(b"all of it").unwrap();
            leave(writer);
            let mut encoded = Vec::new();
            reader.read_to_end(&mut encoded).unwrap();
            let (decoded, has_end) = decode_as_far_as_possible(format, &encoded);
            assert_eq!(decoded, expected, "{format:?}");
            assert!(!has_end || encoded.is_empty(), "{format:?}: {encoded:?}");
        }
    }
}

#[test]
fn a_close_that_failed_is_not_completed_by_a_drop() {
    let arrived = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = arrived.clone();
    let mut fails = true;
    let mut writer = Writer::builder()
        .encode(Encode::Gzip)
        .callback(move |bytes: &[u8]| {
            if std::mem::take(&mut fails) {
                return Err(std::io::Error::other("once"));
            }
            sink.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        })
        .unwrap();
    writer.write(b"all of it").unwrap();
    assert!(writer.try_close().is_err());
    drop(writer);
    assert_eq!(*arrived.lock().unwrap(), b"");
}

#[test]
fn a_name_that_promises_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.lz", "a.LZ4", "a.bz2", "a.lz4", "a.zlib", "a.Z"] {
        let path = dir.path().join(name);
        for open in [Writer::path(&path), Writer::mapped(&path), Writer::builder().level(1).path(&path)] {
            let error = open.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
        assert!(!path.exists());
        for encode in [Encode::Off, Encode::Gzip] {
            Writer::builder().encode(encode).path(&path).unwrap().close().unwrap();
            assert!(path.exists());
        }
    }
}

/// Data after a truncated stream cannot be read, so appending is refused.
#[test]
fn appending_to_a_truncated_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = text(200_000);
    let append = |path: &Path, existing| {
        let mut writer = Writer::builder().existing(existing).path(path)?;
        writer.write(b"more\n")?;
        writer.close()
    };
    for (ending, format) in [("gz", Encode::Gzip), ("bgz", Encode::Bgzf), ("zst", Encode::Zstd), ("xz", Encode::Xz)] {
        let path = dir.path().join("log").with_extension(ending);
        let one = encode(format, &bytes, 1 << 20);
        let mut wholes = vec![one.clone(), [&one[..], &one].concat()];
        match format {
            // Zeros may follow a stream, in multiples of four.
            Encode::Xz => wholes.extend([[&one[..], &[0; 8], &one].concat(), [&one[..], &[0; 10_000]].concat()]),
            Encode::Zstd => wholes.push([b"\x5a\x2a\x4d\x18\x03\0\0\0abc", &one[..]].concat()),
            // All variants of gzip can be combined.
            _ => wholes.push([encode(Encode::Bgzf, &bytes, 1 << 20), encode(Encode::Gzip, &bytes, 1 << 20)].concat()),
        }
        for whole in wholes {
            std::fs::write(&path, &whole).unwrap();
            append(&path, Existing::Append).unwrap();
            let content = std::fs::read(&path).unwrap();
            assert!(content.starts_with(&whole));
            if format != Encode::Zstd {
                let format = if format == Encode::Xz { format } else { Encode::Gzip };
                assert!(decode(format, &content).ends_with(b"more\n"), "{ending}");
            }
            for cut in [1, 2, 5, 27, 28, 29, 5000] {
                // The point between two frames is a valid end, and so is padding shortened by a multiple of four bytes.
                let is_padded = whole.ends_with(&[0; 10_000]);
                if whole.len() - cut == one.len() && format != Encode::Bgzf || is_padded && cut % 4 == 0 {
                    continue;
                }
                let cut = &whole[..whole.len() - cut];
                std::fs::write(&path, cut).unwrap();
                let error = append(&path, Existing::Append).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OpenFailed, "{ending} {error}");
                assert!(error.to_string().contains("a complete "), "{error}");
                assert!(std::fs::read(&path).unwrap() == cut, "it has been written to");
                append(&path, Existing::AppendUnchecked).unwrap();
                assert!(std::fs::read(&path).unwrap().len() > cut.len());
            }
        }
        // The file has another format, or no known format.
        for content in
            [&b"plain\n"[..], &encode(if format == Encode::Zstd { Encode::Gzip } else { Encode::Zstd }, b"x", 1)]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(append(&path, Existing::Append).unwrap_err().kind(), ErrorKind::OpenFailed, "{ending}");
        }
        std::fs::write(&path, b"").unwrap();
        append(&path, Existing::Append).unwrap();
        let mut raw = Writer::builder().existing(Existing::Append).encode(Encode::Off).path(&path).unwrap();
        raw.write(b"as it is").unwrap();
        raw.close().unwrap();
    }
}
