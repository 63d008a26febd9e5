//! Compressed sources are detected by their content and decoded completely, and errors are never reported as success.

use std::io::{Read, Write};

use millstream::{CancelToken, Decode, ErrorKind, Reader};

use crate::deadline::within_seconds;
use crate::every_way::{EVERY_PULL, EVERY_READ_AHEAD, Pull, drain, drain_whole, every_mode};
use crate::sample;
use crate::sources::EVERY_SOURCE;

type Encode = fn(&[u8]) -> Vec<u8>;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn bgzf(data: &[u8]) -> Vec<u8> {
    let mut encoder = noodles_bgzf::io::Writer::new(Vec::new());
    // Creates several blocks even for little data.
    for part in data.chunks((data.len() / 3).max(1)) {
        encoder.write_all(part).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Uses a different implementation than the decoder.
fn xz(data: &[u8]) -> Vec<u8> {
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Two members or frames, back to back. In both formats, the decoded data is the concatenation of their contents.
fn two(encode: Encode, data: &[u8]) -> Vec<u8> {
    let (first, second) = data.split_at(data.len() / 3);
    [encode(first), encode(second)].concat()
}

/// The name of each format, an encoder, and the number of bytes by which a reader detects it.
const FORMATS: [(&str, Encode, usize); 7] = [
    ("gzip", gzip, 3),
    ("gzip, two members", |data| two(gzip, data), 3),
    ("bgzf", bgzf, 3),
    ("zstd", zstd, 4),
    ("zstd, two frames", |data| two(zstd, data), 4),
    ("xz", xz, 6),
    ("xz, two streams", |data| two(xz, data), 6),
];

#[test]
fn every_format_in_every_way() {
    within_seconds(300, || {
        let directory = sample::directory();
        for len in [0, 1, 100_000, 3_000_000] {
            let data = sample::lines(len);
            for (name, encode, _) in FORMATS {
                let encoded = encode(&data);
                // Only the content matters, not the name.
                let path = sample::file(&directory, "input.txt", &encoded);
                for mode in every_mode() {
                    for pull in EVERY_PULL {
                        let mut reader = mode.builder().path(&path).unwrap();
                        assert!(drain_whole(&mut reader, pull) == data, "{name} {len} {mode:?} {pull:?}");
                        let progress = reader.progress();
                        assert_eq!((progress.bytes, progress.source_bytes), (len as u64, encoded.len() as u64));
                        assert_eq!(progress.source_size, Some(encoded.len() as u64));
                        assert!(progress.format.is_some());
                    }
                    let cat = ["cat".as_ref(), path.as_os_str()];
                    assert!(drain_whole(&mut mode.builder().command(cat).unwrap(), Pull::Frames) == data, "{name}");
                }
            }
        }
    });
}

#[test]
fn decoding_can_be_switched_off() {
    let data = sample::lines(10_000);
    for (name, encode, _) in FORMATS {
        for read_ahead in EVERY_READ_AHEAD {
            let builder = Reader::builder().read_ahead(read_ahead).decode(Decode::Off);
            let mut reader = builder.memory(encode(&data)).unwrap();
            assert!(drain_whole(&mut reader, Pull::Fill) == encode(&data), "{name}");
            assert!(reader.progress().format.is_none());
        }
    }
}

/// A protocol message that looks compressed must not be decoded.
#[test]
fn sockets_and_callers_code_are_decoded_only_on_request() {
    let data = sample::lines(10_000);
    let encoded = gzip(&data);
    for (name, open) in EVERY_SOURCE {
        let usual = !["tcp", "unix", "socket", "from_read", "callback"].contains(&name);
        for (decode, is_decoded) in [(None, usual), (Some(Decode::Auto), true), (Some(Decode::Off), false)] {
            let builder = match decode {
                None => Reader::builder(),
                Some(decode) => Reader::builder().decode(decode),
            };
            let expected = if is_decoded { &data } else { &encoded };
            assert!(drain_whole(&mut open(builder, &encoded), Pull::Fill) == *expected, "{name} {decode:?}");
        }
    }
}

/// The sizes of the pieces in which a compressed stream arrives, and the position at which its magic number is split,
/// do not matter.
#[test]
fn compressed_streams_in_small_pieces() {
    let data = sample::lines(5_000);
    for (name, encode, _) in FORMATS {
        for mode in every_mode() {
            for piece in [1, 2, 3, 5, 17, 1000] {
                let mut encoded = std::io::Cursor::new(encode(&data));
                let source = move |space: &mut [u8]| {
                    let n = space.len().min(piece);
                    encoded.read(&mut space[..n])
                };
                let mut reader = mode.builder().decode(Decode::Auto).callback(source).unwrap();
                assert!(drain_whole(&mut reader, Pull::Frames) == data, "{name} {mode:?} {piece}");
            }
        }
    }
}

/// Text whose first bytes are also the beginning of a compressed file.
#[test]
fn data_that_only_looks_compressed_stays_unchanged() {
    let beginnings: [&[u8]; 8] = [
        b"\x1f",
        b"\x1f\x8b\x07",
        b"\x28",
        b"\x28\xb5",
        b"\x28\xb5\x2f",
        b"\xfd7zXZ",
        b"\xfd7zXZ\x01",
        b"\x1f\x9d\x90abc",
    ];
    for mode in every_mode() {
        for text in beginnings {
            assert_eq!(drain_whole(&mut mode.builder().memory(text.to_vec()).unwrap(), Pull::Fill), text);
        }
    }
}

/// Checks the outcome of reading a damaged compressed file.
fn check_damaged(what: &str, damaged: &[u8], data: &[u8], recognised: bool) {
    for (i, read_ahead) in EVERY_READ_AHEAD.into_iter().enumerate() {
        let pull = EVERY_PULL[(i + damaged.len()) % EVERY_PULL.len()];
        let mut reader = match Reader::builder().read_ahead(read_ahead).memory(damaged.to_vec()) {
            Ok(reader) => reader,
            Err(error) => panic!("{what}: an open source has bytes first: {error}"),
        };
        let (bytes, error) = drain(&mut reader, pull);
        match error {
            // Any error of an expected kind is correct.
            Some(error) => assert!(
                matches!(error.kind(), ErrorKind::DecodeDamaged | ErrorKind::DecodeTruncated)
                    // A damaged header can specify a dictionary or a very long window.
                    || what.starts_with("zstd")
                        && matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::DecodeLimit),
                "{what} {read_ahead:?} {pull:?}: {error}"
            ),
            // Success requires the correct bytes, or the unchanged bytes if there is no indication that they are
            // compressed.
            None if bytes == data => {}
            None => assert!(!recognised && bytes == damaged, "{what} {read_ahead:?} {pull:?}: an unexpected success"),
        }
    }
}

#[test]
fn truncated_at_every_byte() {
    let data = sample::lines(400);
    for (name, encode, magic) in FORMATS {
        let encoded = encode(&data);
        for len in 0..encoded.len() {
            let what = format!("{name} cut to {len} of {} bytes", encoded.len());
            let mut reader = Reader::memory(encoded[..len].to_vec()).unwrap();
            let (bytes, error) = drain(&mut reader, Pull::Frames);
            if len < magic {
                // The bytes could be text, or be reported as a truncated file.
                let cut = error.is_some_and(|error| error.kind() == ErrorKind::DecodeTruncated);
                assert!(cut && bytes.is_empty() || bytes == encoded[..len], "{what}: {bytes:?}");
                continue;
            }
            assert!(data.starts_with(&bytes), "{what}: wrong bytes");
            // A file of two members that is cut between them is a complete file with one member. Only bgzf can detect
            // this.
            let between = name.contains("two") && len == encode_first(encode, &data);
            match error {
                Some(error) => assert_eq!(error.kind(), ErrorKind::DecodeTruncated, "{what}: {error}"),
                None => assert!(between, "{what}: a clean end after {} bytes", bytes.len()),
            }
            if !between {
                check_damaged(&what, &encoded[..len], &data, true);
            }
        }
    }
}

/// The length of the first of two members, which ends where the magic number occurs again.
fn encode_first(encode: Encode, data: &[u8]) -> usize {
    let encoded = encode(data);
    let magic = &encoded[..4];
    1 + encoded[1..].windows(4).position(|window| window == magic).unwrap()
}

#[test]
fn damaged_at_every_byte() {
    let data = sample::lines(400);
    for (name, encode, magic) in FORMATS {
        let encoded = encode(&data);
        for at in 0..encoded.len() {
            for flip in (0..8).map(|bit| 1 << bit).chain([0xff]) {
                let mut damaged = encoded.clone();
                damaged[at] ^= flip;
                let what = format!("{name} byte {at} of {} flipped by {flip:#x}", encoded.len());
                check_damaged(&what, &damaged, &data, at >= magic);
            }
        }
    }
}

/// Removes or inserts one byte at every position.
#[test]
fn shifted_at_every_byte() {
    let data = sample::lines(400);
    for (name, encode, magic) in FORMATS {
        let encoded = encode(&data);
        for at in 0..encoded.len() {
            let lost = [&encoded[..at], &encoded[at + 1..]].concat();
            check_damaged(&format!("{name} byte {at} of {} lost", encoded.len()), &lost, &data, at >= magic);
            let more = [&encoded[..at], &[0x5a], &encoded[at..]].concat();
            check_damaged(&format!("{name} one byte inserted at {at} of {}", encoded.len()), &more, &data, at >= magic);
        }
    }
}

/// Bytes after the last member that are not compressed data are reported after all valid data.
#[test]
fn trailing_garbage() {
    let data = sample::lines(5_000);
    for (name, encode, _) in FORMATS {
        for garbage in [&b"garbage"[..], b"\x1f", b"g", b"\n"] {
            for mode in every_mode() {
                let damaged = [&encode(&data)[..], garbage].concat();
                let (bytes, error) = drain(&mut mode.builder().memory(damaged).unwrap(), Pull::Frames);
                assert!(bytes == data, "{name} {mode:?}: {} bytes", bytes.len());
                let error = error.unwrap_or_else(|| panic!("{name} {mode:?}: no error for {garbage:?}"));
                assert!(matches!(error.kind(), ErrorKind::DecodeDamaged | ErrorKind::DecodeTruncated), "{error}");
            }
        }
    }
}

/// All data before the end of a truncated large file is delivered.
#[test]
fn the_valid_part_is_delivered() {
    let data = sample::lines(4 << 20);
    for (name, encode, _) in FORMATS {
        let mut encoded = encode(&data);
        encoded.truncate(encoded.len() - 9);
        for mode in every_mode() {
            let (bytes, error) = drain(&mut mode.builder().memory(encoded.clone()).unwrap(), Pull::Batches);
            assert_eq!(error.unwrap().kind(), ErrorKind::DecodeTruncated, "{name} {mode:?}");
            assert!(data.starts_with(&bytes), "{name} {mode:?}");
            // A whole block may be held back until its checksum has been verified.
            assert!(bytes.len() > data.len() - (256 << 10), "{name} {mode:?}: only {} bytes", bytes.len());
        }
    }
}

#[test]
fn limits_are_exact() {
    let data = sample::lines(100_000);
    for (name, encode, _) in FORMATS {
        for read_ahead in EVERY_READ_AHEAD {
            let open =
                |bytes| Reader::builder().read_ahead(read_ahead).decode_limit(bytes).memory(encode(&data)).unwrap();
            assert!(drain_whole(&mut open(100_000), Pull::Frames) == data, "{name}");
            let (bytes, error) = drain(&mut open(99_999), Pull::Frames);
            let error = error.unwrap_or_else(|| panic!("{name} {read_ahead:?}: over the limit"));
            assert_eq!(error.kind(), ErrorKind::DecodeLimit, "{name}: {error}");
            assert!(bytes.len() <= 99_999 && data.starts_with(&bytes), "{name}: {} bytes", bytes.len());
        }
    }
}

/// A cancel token interrupts reads anywhere in a compressed stream, including its first bytes, and no data is lost
/// after a reset. Only bgzf, which uses threads, cannot continue; it reports an error.
#[test]
fn cancelling_anywhere() {
    let data = sample::lines(3_000);
    for (name, encode, _) in FORMATS {
        let encoded = encode(&data);
        for mode in every_mode() {
            for cut in [1, 2, 17, 30, encoded.len() / 2, encoded.len() - 1] {
                let (data, encoded) = (data.clone(), encoded.clone());
                within_seconds(60, move || {
                    let token = CancelToken::new().unwrap();
                    let (pipe, mut writer) = std::io::pipe().unwrap();
                    let mut reader = mode.builder().cancel(&token).fd(pipe).unwrap();
                    writer.write_all(&encoded[..cut]).unwrap();
                    let canceller = token.clone();
                    let thread = std::thread::spawn(move || {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        canceller.cancel();
                    });
                    let mut bytes = Vec::new();
                    let error = loop {
                        match reader.fill() {
                            Ok(0) => panic!("{name} {mode:?} {cut}: an early end"),
                            Ok(_) => bytes.extend_from_slice(reader.buffer()),
                            Err(error) => break error,
                        }
                        reader.consume(reader.buffer().len());
                    };
                    assert_eq!(error.kind(), ErrorKind::Cancelled, "{name} {mode:?} {cut}: {error}");
                    thread.join().unwrap();
                    token.reset();
                    writer.write_all(&encoded[cut..]).unwrap();
                    drop(writer);
                    let (rest, error) = drain(&mut reader, Pull::Fill);
                    bytes.extend(rest);
                    assert!(data.starts_with(&bytes), "{name} {mode:?} {cut}: wrong bytes");
                    match error {
                        None => assert_eq!(bytes.len(), data.len(), "{name} {mode:?} {cut}"),
                        Some(error) => assert_eq!((name, error.kind()), ("bgzf", ErrorKind::Closed), "{error}"),
                    }
                });
            }
        }
    }
}

/// A reader can be closed while the source is silent, at any position of a compressed stream.
#[test]
fn closing_anywhere() {
    let encoded = FORMATS.map(|(_, encode, _)| encode(&sample::lines(3_000)));
    for encoded in encoded {
        for mode in every_mode() {
            for cut in [0, 1, 2, 17, 30, encoded.len() / 2, encoded.len() - 1] {
                let begin = encoded[..cut].to_vec();
                within_seconds(60, move || {
                    let (pipe, mut writer) = std::io::pipe().unwrap();
                    let reader = mode.builder().fd(pipe).unwrap();
                    writer.write_all(&begin).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    reader.close().unwrap();
                });
            }
        }
    }
}

/// A decompression bomb: a small file with a very large content.
#[test]
fn a_ratio_can_be_limited() {
    let bomb = vec![0; 50 << 20];
    for (name, encode, _) in FORMATS {
        let encoded = encode(&bomb);
        for read_ahead in EVERY_READ_AHEAD {
            let open = |ratio| {
                let builder = Reader::builder().read_ahead(read_ahead).decode_ratio(ratio);
                builder.memory(encoded.clone()).unwrap()
            };
            let (bytes, error) = drain(&mut open(20), Pull::Fill);
            assert_eq!(error.unwrap().kind(), ErrorKind::DecodeLimit, "{name} {read_ahead:?}");
            assert!(bytes.len() < 25 << 20, "{name} {read_ahead:?}: {} bytes were delivered", bytes.len());
            assert_eq!(drain_whole(&mut open(1_000_000), Pull::Fill).len(), bomb.len(), "{name} {read_ahead:?}");
        }
    }
}

/// A command that feeds a decoder is treated like any other command: if it fails, its failure is reported, even if the
/// compressed data also ends early.
#[test]
fn a_compressed_stream_from_a_command_that_fails() {
    let data = sample::lines(200_000);
    let directory = sample::directory();
    for (name, encode, _) in FORMATS {
        let path = sample::file(&directory, "input", &encode(&data));
        for mode in every_mode() {
            let argv = ["sh", "-c", r#"cat "$0"; exit 3"#, path.to_str().unwrap()];
            let (bytes, error) = drain(&mut mode.builder().command(argv).unwrap(), Pull::Frames);
            assert!(bytes == data, "{name} {mode:?}");
            assert_eq!(error.unwrap().kind(), ErrorKind::CommandFailed, "{name} {mode:?}");

            let argv = ["sh", "-c", r#"head -c 1000 "$0"; exit 3"#, path.to_str().unwrap()];
            let (bytes, error) = drain(&mut mode.builder().command(argv).unwrap(), Pull::Frames);
            assert!(data.starts_with(&bytes), "{name} {mode:?}");
            // The data ends early because the command failed, so the command's failure must be reported.
            assert_eq!(error.unwrap().kind(), ErrorKind::CommandFailed, "{name} {mode:?}");
        }
    }
}

#[test]
fn a_callback_stays_on_the_callers_thread() {
    for (name, encode, _) in FORMATS {
        for mode in every_mode() {
            let data = sample::lines(300_000);
            let (encoded, caller, mut at) = (encode(&data), std::thread::current().id(), 0);
            let mut reader = mode
                .builder()
                .decode(Decode::Auto)
                .callback(move |space| {
                    assert_eq!(std::thread::current().id(), caller);
                    let count = space.len().min(encoded.len() - at).min(1000);
                    space[..count].copy_from_slice(&encoded[at..at + count]);
                    at += count;
                    Ok(count)
                })
                .unwrap();
            assert_eq!(drain_whole(&mut reader, Pull::Frames), data, "{name} {mode:?}");
        }
    }
}

/// An error of the source is not reported as an error of the decoder.
#[test]
fn an_error_of_the_source_is_no_damage() {
    for (name, encode, _) in FORMATS {
        let encoded = encode(&sample::lines(100_000));
        let half = std::io::Cursor::new(encoded[..encoded.len() / 2].to_vec());
        struct Unplugged;
        impl Read for Unplugged {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "tls: connection lost"))
            }
        }
        let builder = Reader::builder().decode(Decode::Auto);
        let (_, error) = drain(&mut builder.from_read(half.chain(Unplugged)).unwrap(), Pull::Fill);
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{name}: {error}");
        assert!(error.to_string().contains("tls: connection lost"), "{name}: {error}");
    }
}

/// Closing a reader does not wait for a `Read` that blocks, even if a decoder reads from it.
#[test]
fn closing_does_not_wait_for_a_read_that_blocks() {
    for (_, encode, _) in FORMATS {
        for read_ahead in EVERY_READ_AHEAD {
            within_seconds(60, move || {
                let encoded = encode(&sample::lines(400_000));
                let (pipe, mut writer) = std::io::pipe().unwrap();
                writer.write_all(&encoded[..encoded.len() / 2]).unwrap();
                let builder = Reader::builder().read_ahead(read_ahead).decode(Decode::Auto);
                let mut reader = builder.from_read(pipe).unwrap();
                assert!(reader.fill().unwrap() > 0);
                reader.close().unwrap();
            });
        }
    }
}

/// A file whose content does not match the format that its name indicates is not mistaken for data.
#[test]
fn a_name_is_a_promise() {
    let data = sample::lines(10_000);
    let directory = sample::directory();
    let names = [
        ("gzip", ["a.gz", "b.GZ"]),
        ("bgzf", ["c.bgz", "d.Bgzf"]),
        ("zstd", ["e.zst", "f.ZST"]),
        ("xz", ["g.xz", "h.XZ"]),
    ];
    for (name, encode, _) in FORMATS.into_iter().filter(|(name, ..)| !name.contains("two")) {
        for file in names.iter().find(|(format, _)| *format == name).unwrap().1 {
            let whole = sample::file(&directory, file, &encode(&data));
            for mode in every_mode() {
                assert!(drain_whole(&mut mode.builder().path(&whole).unwrap(), Pull::Fill) == data, "{file} {mode:?}");
            }
            let mut broken = encode(&data);
            broken[0] ^= 1;
            for (content, kind) in [
                (&broken[..], ErrorKind::DecodeDamaged),
                (b"text\n", ErrorKind::DecodeDamaged),
                (b"", ErrorKind::DecodeTruncated),
                (&encode(&data)[..1], ErrorKind::DecodeTruncated),
            ] {
                let path = sample::file(&directory, file, content);
                for mode in every_mode() {
                    for open in [millstream::ReaderBuilder::path, millstream::ReaderBuilder::mapped] {
                        let (bytes, error) = drain(&mut open(mode.builder(), &path).unwrap(), Pull::Fill);
                        assert_eq!(
                            (&bytes[..], error.unwrap().kind()),
                            (&b""[..], kind),
                            "{file} {mode:?} {content:?}"
                        );
                        let mut raw = open(mode.builder().decode(Decode::Off), &path).unwrap();
                        assert!(drain_whole(&mut raw, Pull::Fill) == content);
                    }
                }
            }
        }
    }
    let path = sample::file(&directory, "zstd.gz", &zstd(&data));
    let (_, error) = drain(&mut Reader::path(path).unwrap(), Pull::Fill);
    let error = error.unwrap().to_string();
    assert!(error.contains("found zstd data, expected gzip data, as its name implies"), "{error}");
}

/// Data in a format that cannot be decoded is not mistaken for uncompressed data.
#[test]
fn formats_that_cannot_be_decoded() {
    let samples: [(&str, &[u8]); 3] = [
        ("lz4", b"\x04\x22\x4d\x18\x64\x40\xa7"),
        ("bz2", b"BZh91AY&SY\x94$|\xcf"),
        ("bz2", b"BZh9\x17rE8P\x90\0\0\0\0"),
    ];
    let directory = sample::directory();
    for (ending, content) in samples {
        let path = sample::file(&directory, "input", content);
        for mode in every_mode() {
            let cat = ["cat".as_ref(), path.as_os_str()];
            let readers = [
                mode.builder().path(&path).unwrap(),
                mode.builder().memory(content.to_vec()).unwrap(),
                mode.builder().mapped(&path).unwrap(),
                mode.builder().command(cat).unwrap(),
            ];
            for mut reader in readers {
                let (bytes, error) = drain(&mut reader, Pull::Frames);
                let error = error.unwrap_or_else(|| panic!("{ending}: delivered without decoding"));
                assert_eq!((&bytes[..], error.kind()), (&b""[..], ErrorKind::Unsupported), "{error}");
            }
            let mut raw = mode.builder().decode(Decode::Off).path(&path).unwrap();
            assert!(drain_whole(&mut raw, Pull::Fill) == content);
        }
    }
    // These formats are detected by the file's name, whatever the file contains.
    for ending in ["lz4", "LZ4", "bz2", "zlib", "zz", "lzma"] {
        let path = sample::file(&directory, &format!("input.{ending}"), b"text\n");
        for open in [millstream::ReaderBuilder::path, millstream::ReaderBuilder::mapped] {
            let error = open(Reader::builder(), &path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("decoding switched off"), "{error}");
            let mut raw = open(Reader::builder().decode(Decode::Off), &path).unwrap();
            assert_eq!(drain_whole(&mut raw, Pull::Fill), b"text\n");
        }
    }
}

/// Bytes from a pipe are held back only while all of them could be the beginning of a compressed stream.
#[test]
fn first_bytes_are_not_held_back() {
    for text in [&b"\x1fx"[..], b"\x1f\x8bx", b"\x1f\x8b\x07", b"\x28x", b"\x28\xb5x", b"\x28\xb5\x2fx", b"BZh9x", b"x"]
    {
        for mode in every_mode() {
            within_seconds(60, move || {
                let (pipe, mut writer) = std::io::pipe().unwrap();
                let mut reader = mode.builder().fd(pipe).unwrap();
                writer.write_all(text).unwrap();
                while reader.buffer().len() < text.len() {
                    reader.fill().unwrap();
                }
                assert_eq!(reader.buffer(), text);
            });
        }
    }
}

/// This also applies to compressed streams: flushed data arrives, however short it is.
#[test]
fn the_first_flushed_bytes_of_a_compressed_stream_arrive() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"a").unwrap();
    gzip.flush().unwrap();
    let mut zstd = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    zstd.write_all(b"a").unwrap();
    zstd.flush().unwrap();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(b"a").unwrap();
    xz.flush().unwrap();
    for begun in [gzip.get_ref().clone(), zstd.get_ref().clone(), xz.inner().clone()] {
        for mode in every_mode() {
            let begun = begun.clone();
            within_seconds(60, move || {
                let (pipe, mut writer) = std::io::pipe().unwrap();
                let mut reader = mode.builder().fd(pipe).unwrap();
                writer.write_all(&begun).unwrap();
                assert_eq!((reader.fill().unwrap(), reader.buffer()), (1, &b"a"[..]), "{mode:?} {begun:02x?}");
            });
        }
    }
}

/// A bgzf stream ends with its end-of-file block, from a file and from a pipe. Any data after that block is another
/// stream.
#[test]
fn bgzf_ends_with_its_end_of_file_block() {
    let data = sample::lines(300_000);
    let whole = bgzf(&data);
    let cut = &whole[..whole.len() - 28];
    let zstd_data = zstd(b"x");
    let cases: [(&str, Vec<u8>, Option<ErrorKind>, usize); 9] = [
        ("whole", whole.clone(), None, 1),
        ("cut", cut.to_vec(), Some(ErrorKind::DecodeTruncated), 1),
        ("two", [&whole[..], &whole].concat(), None, 2),
        ("two, the second cut", [&whole[..], cut].concat(), Some(ErrorKind::DecodeTruncated), 2),
        ("a plain member follows", [&whole[..], &gzip(&data)].concat(), None, 2),
        ("a plain member is first", [&gzip(&data)[..], &whole].concat(), None, 2),
        ("a plain member is first, then cut", [&gzip(&data)[..], cut].concat(), Some(ErrorKind::DecodeTruncated), 2),
        ("cut before a plain member", [cut, &gzip(&data)].concat(), Some(ErrorKind::DecodeTruncated), 1),
        ("zstd follows", [&whole[..], &zstd_data].concat(), Some(ErrorKind::DecodeDamaged), 1),
    ];
    let directory = sample::directory();
    for (what, encoded, kind, times) in cases {
        let path = sample::file(&directory, "input", &encoded);
        for mode in every_mode() {
            let cat = ["cat".as_ref(), path.as_os_str()];
            for mut reader in [mode.builder().path(&path).unwrap(), mode.builder().command(cat).unwrap()] {
                let (bytes, error) = drain(&mut reader, Pull::Fill);
                assert_eq!(error.as_ref().map(|error| error.kind()), kind, "{what} {mode:?}: {error:?}");
                assert!(bytes == data.repeat(times), "{what} {mode:?}: {} bytes", bytes.len());
            }
        }
    }
}

/// The memory limit applies to the window, and an error about a missing dictionary contains its number.
#[test]
fn zstd_reports_the_needs_of_a_frame() {
    let frame = |log| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(log).unwrap();
        encoder.write_all(b"hello\n").unwrap();
        encoder.finish().unwrap()
    };
    // The same frame, after another one.
    for front in [Vec::new(), zstd(b"first\n")] {
        let long = [&front[..], &frame(28)].concat();
        let (bytes, error) = drain(&mut Reader::memory(long.clone()).unwrap(), Pull::Fill);
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::DecodeLimit);
        assert!(
            error.to_string().contains("a window of 268435456 bytes, expected one of at most 134217728"),
            "{error}"
        );
        assert_eq!(bytes, if front.is_empty() { &b""[..] } else { b"first\n" });
        let mut reader = Reader::builder().decode_memory(256 << 20).memory(long).unwrap();
        assert!(drain_whole(&mut reader, Pull::Fill).ends_with(b"hello\n"));
    }
    assert_eq!(drain_whole(&mut Reader::memory(frame(27)).unwrap(), Pull::Fill), b"hello\n");

    let needs_dictionary = [0x28, 0xb5, 0x2f, 0xfd, 1, 0, 7, 1, 0, 0];
    let (_, error) = drain(&mut Reader::memory(needs_dictionary).unwrap(), Pull::Fill);
    let error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("needs the dictionary 7"), "{error}");
}

/// The header of an xz block contains the size of its dictionary. The memory it needs is compared with the limit before
/// decoding.
#[test]
fn the_memory_of_an_xz_block_is_limited() {
    // A block whose header specifies a dictionary of this size, in the notation of the format.
    let claiming = |dictionary: u8| {
        let mut stream = xz(b"hello\n");
        let len = (usize::from(stream[12]) + 1) * 4;
        let header = &mut stream[12..12 + len];
        assert_eq!(header[1..4], [0, 0x21, 1], "one filter, LZMA2");
        header[4] = dictionary;
        let mut crc = flate2::Crc::new();
        crc.update(&header[..len - 4]);
        header[len - 4..].copy_from_slice(&crc.sum().to_le_bytes());
        stream
    };
    let (mib_64, mib_128, gib_4) = (claiming(28), claiming(30), claiming(40));
    assert_eq!(drain_whole(&mut Reader::memory(mib_64.clone()).unwrap(), Pull::Fill), b"hello\n");
    for front in [Vec::new(), xz(b"first\n")] {
        for long in [&mib_128, &gib_4] {
            let (bytes, error) = drain(&mut Reader::memory([&front[..], long].concat()).unwrap(), Pull::Fill);
            let error = error.unwrap();
            assert_eq!(error.kind(), ErrorKind::DecodeLimit, "{error}");
            assert!(error.to_string().contains("needs more than 134217728 bytes of memory"), "{error}");
            assert_eq!(bytes, if front.is_empty() { &b""[..] } else { b"first\n" });
        }
    }
    let with = |bytes, stream: &[u8]| {
        drain(&mut Reader::builder().decode_memory(bytes).memory(stream.to_vec()).unwrap(), Pull::Fill)
    };
    assert_eq!(with(256 << 20, &mib_128).0, b"hello\n");
    assert_eq!(with(1 << 20, &mib_64).1.unwrap().kind(), ErrorKind::DecodeLimit);
}

/// All features that the format allows and the xz command can write: all checksums, filters, several blocks, padding.
#[test]
fn what_the_xz_command_writes_is_read() {
    let directory = sample::directory();
    let data = sample::lines(300_000);
    let path = sample::file(&directory, "input", &data);
    let ways: [&[&str]; 9] = [
        &["--check=none"],
        &["--check=crc32"],
        &["--check=crc64"],
        &["--check=sha256"],
        &["--x86", "--lzma2=preset=1"],
        &["--arm", "--delta=dist=4", "--lzma2=preset=1"],
        &["--delta=dist=1", "--lzma2=preset=1"],
        &["-1", "--block-size=10000"],
        &["-0", "-T2", "--block-size=50000"],
    ];
    for way in ways {
        let output = match std::process::Command::new("xz").args(way).arg("-c").arg(&path).output() {
            Ok(output) => output,
            Err(error) => {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "xz: {error}");
                let _ = writeln!(std::io::stderr(), "SKIPPED: xz: {error}");
                return;
            }
        };
        assert!(output.status.success(), "{way:?}: {}", String::from_utf8_lossy(&output.stderr));
        let one = output.stdout;
        assert!(drain_whole(&mut Reader::memory(one.clone()).unwrap(), Pull::Frames) == data, "{way:?}");
        for (padding, kind) in [(4, None), (400, None), (1, Some(ErrorKind::DecodeDamaged))] {
            let padded = [&one[..], &vec![0; padding], &one].concat();
            let (bytes, error) = drain(&mut Reader::memory(padded).unwrap(), Pull::Frames);
            assert_eq!(error.map(|error| error.kind()), kind, "{way:?}, {padding} bytes of padding");
            assert!(bytes == data.repeat(2 - usize::from(kind.is_some())), "{way:?}: {} bytes", bytes.len());
        }
    }
}

/// The index of an xz stream repeats the sizes of its blocks: a decoder that does not compare them would accept a
/// modified file.
#[test]
fn the_index_of_an_xz_stream_is_compared_with_its_blocks() {
    let mut stream = xz(b"hello\n");
    let footer = stream.len() - 12;
    let len = (usize::from(stream[footer + 4]) + 1) * 4;
    let index = &mut stream[footer - len..footer];
    assert_eq!((index[0], index[1], index[3]), (0, 1, 6), "one block of six bytes");
    index[3] = 7;
    let mut crc = flate2::Crc::new();
    crc.update(&index[..len - 4]);
    index[len - 4..].copy_from_slice(&crc.sum().to_le_bytes());
    let (bytes, error) = drain(&mut Reader::memory(stream).unwrap(), Pull::Fill);
    assert_eq!((&bytes[..], error.unwrap().kind()), (&b"hello\n"[..], ErrorKind::DecodeDamaged));
}
