//! Streams of documents, split into reads at any position, and with any error.

#![cfg(feature = "bson")]

use millstream::bson::{Checking, Document, Documents, OnBad, Rules, append_element};
use millstream::frame::Bson;
use millstream::{CancelToken, ErrorKind, Reader};

/// A file that mongodump wrote; see the README next to it.
const ORDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mongodump/orders.bson");

/// Returns a document with these members, which are already serialised.
fn document(members: &[u8]) -> Vec<u8> {
    let len = members.len() as i32 + 5;
    [&len.to_le_bytes()[..], members, b"\0"].concat()
}

/// A small stream: documents in documents and in arrays, a document that ends with the bytes with which an empty
/// document begins, text, and binary data.
fn sample() -> Vec<Vec<u8>> {
    let member = |key: &str, kind: u8, payload: &[u8]| [&[kind], key.as_bytes(), b"\0", payload].concat();
    let inner = document(&member("n", 0x10, &5_i32.to_le_bytes()));
    let items = document(&[member("0", 3, &inner), member("1", 3, &inner)].concat());
    let mut plain = Vec::new();
    append_element(&mut plain, "_id", &7).unwrap();
    append_element(&mut plain, "name", "grüße").unwrap();
    vec![
        document(&plain),
        document(&member("items", 4, &items)),
        document(&[member("a", 3, &inner), member("k", 0x10, &258_i32.to_le_bytes())].concat()),
        document(&member("b", 5, b"\x04\0\0\0\0\x05\0\0\0")),
        document(&[member("inner", 3, &inner), member("five", 0x10, &5_i32.to_le_bytes())].concat()),
        document(&plain),
    ]
}

/// Returns a reader that gets this many of the bytes at a time.
fn in_pieces(bytes: Vec<u8>, piece: usize) -> Reader {
    let mut at = 0;
    let fill = move |out: &mut [u8]| {
        let count = piece.min(out.len()).min(bytes.len() - at);
        out[..count].copy_from_slice(&bytes[at..at + count]);
        at += count;
        Ok(count)
    };
    Reader::builder().capacity(16).callback(fill).unwrap()
}

/// The result of a stream: offsets and bytes of the documents, and the error.
type Outcome = (Vec<(u64, Vec<u8>)>, Option<ErrorKind>);

fn one_by_one(documents: &mut Documents) -> Outcome {
    let mut all = Vec::new();
    loop {
        match documents.next() {
            Ok(Some(document)) => all.push((document.offset(), document.as_bytes().to_vec())),
            Ok(None) => return (all, None),
            Err(error) => {
                if error.kind() != ErrorKind::RecordTooLong {
                    assert!(documents.next().unwrap().is_none(), "an error is reported once");
                }
                return (all, Some(error.kind()));
            }
        }
    }
}

/// Also returns the bytes of each skipped place that is reported.
fn with_kept(documents: Documents, most: usize) -> (Outcome, Vec<Vec<u8>>) {
    let (mut documents, mut all, mut kept) = (documents.keep_bad(most), Vec::new(), Vec::new());
    loop {
        match documents.next() {
            Ok(Some(document)) => all.push((document.offset(), document.as_bytes().to_vec())),
            Ok(None) => return ((all, None), kept),
            Err(error) => match documents.take_rejected() {
                Some(raw) => {
                    let place = *documents.skipped().places().last().unwrap();
                    assert_eq!((error.kind(), error.record()), (place.kind, Some(place.record)));
                    assert_eq!((error.offset(), raw.len() as u64), (Some(place.wrong_at), place.len.min(most as u64)));
                    kept.push(raw);
                }
                None => return ((all, Some(error.kind())), kept),
            },
        }
    }
}

fn by_batches(documents: &mut Documents) -> Outcome {
    let mut all = Vec::new();
    loop {
        match documents.next_batch() {
            Ok(Some(batch)) => {
                assert_eq!(batch.as_batch().first_record(), all.len() as u64 + documents_skipped_before(batch, &all));
                all.extend(
                    (0..batch.len()).map(|i| batch.get(i).unwrap()).map(|d| (d.offset(), d.as_bytes().to_vec())),
                );
            }
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error.kind())),
        }
    }
}

/// Returns whether the skipped place of a stream, of which there is at most one, was before this batch.
fn documents_skipped_before(batch: millstream::bson::DocumentBatch<'_>, before: &[(u64, Vec<u8>)]) -> u64 {
    let delivered: u64 = before.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    u64::from(batch.as_batch().offset() > delivered)
}

#[test]
fn every_piece() {
    let (sample, bytes) = (sample(), sample().concat());
    for piece in 1..=bytes.len() {
        for on_bad in [OnBad::Stop, OnBad::Skip] {
            for checking in [Checking::OnAccess, Checking::Ahead] {
                let open = || Documents::new(in_pieces(bytes.clone(), piece)).on_bad(on_bad).checking(checking);
                let (found, error) = one_by_one(&mut open());
                assert_eq!(error, None);
                assert!(found.iter().map(|(_, bytes)| bytes).eq(&sample), "pieces of {piece}");
                assert_eq!(by_batches(&mut open()), (found, None));
            }
        }
    }
}

/// Every bit of the stream is flipped: each returned document is a document of the stream, and all other data is
/// reported.
#[test]
fn every_bit_turned_over() {
    let sample = sample();
    let bytes = sample.concat();
    let starts: Vec<usize> =
        sample.iter().scan(0, |at, document| Some(std::mem::replace(at, *at + document.len()))).collect();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
        let (start, len) = (starts[hit], sample[hit].len());
        let is_last = hit + 1 == sample.len();

        for piece in [1, 7, bytes.len()] {
            let open = || Documents::new(in_pieces(damaged.clone(), piece)).on_bad(OnBad::Skip);
            let mut documents = open();
            let (found, error) = one_by_one(&mut documents);
            let skipped = documents.skipped();
            let is_delivered = found.iter().any(|(offset, _)| *offset == start as u64);
            let expected = (0..sample.len()).filter(|&i| i != hit || is_delivered);
            let expected =
                expected.map(|i| (starts[i] as u64, damaged[starts[i]..starts[i] + sample[i].len()].to_vec()));
            assert_eq!(found, expected.collect::<Vec<_>>(), "bit {bit}");
            if is_delivered {
                assert_eq!((skipped.count(), skipped.bytes(), error), (0, 0, None), "bit {bit}");
                Document::new(&damaged[start..start + len]).unwrap().check().unwrap();
            } else {
                assert_eq!((skipped.count(), skipped.bytes()), (1, len as u64), "bit {bit}");
                let place = skipped.places()[0];
                assert_eq!(
                    (place.offset, place.len, place.record),
                    (start as u64, len as u64, hit as u64),
                    "bit {bit}"
                );
                assert!((start as u64..(start + len) as u64 + 4).contains(&place.wrong_at), "bit {bit}: {place:?}");
                assert!(
                    error.is_none() || (is_last && error == Some(ErrorKind::FrameTruncated)),
                    "bit {bit}: {error:?}"
                );
                assert_eq!(documents.reader().position().records, sample.len() as u64);
            }
            assert_eq!(by_batches(&mut open()), (found.clone(), error));
            let (outcome, kept) = with_kept(open(), usize::MAX);
            assert_eq!(outcome, (found, error));
            // At the end of the stream, the error says that data is missing.
            let is_kept = !is_delivered && error.is_none();
            assert_eq!(kept, if is_kept { vec![damaged[start..start + len].to_vec()] } else { vec![] }, "bit {bit}");

            // Without skipping, the result is all earlier documents, then the error, then the end.
            let mut documents = Documents::new(in_pieces(damaged.clone(), piece)).checking(Checking::Ahead);
            let (found, error) = one_by_one(&mut documents);
            assert_eq!(error.is_some(), !is_delivered, "bit {bit}");
            assert_eq!(found.len(), if is_delivered { sample.len() } else { hit }, "bit {bit}");
            assert_eq!(documents.skipped().count(), 0);
        }
    }
}

#[test]
fn every_cut_is_an_error_unless_it_is_between_documents() {
    let sample = sample();
    let bytes = sample.concat();
    for len in 0..bytes.len() {
        let mut whole = 0;
        let mut end = 0;
        while end + sample[whole].len() <= len {
            end += sample[whole].len();
            whole += 1;
        }
        for on_bad in [OnBad::Stop, OnBad::Skip] {
            let mut documents = Documents::new(in_pieces(bytes[..len].to_vec(), 5)).on_bad(on_bad);
            let (found, error) = one_by_one(&mut documents);
            assert_eq!(found.len(), whole, "cut at {len}");
            assert_eq!(error, (end < len).then_some(ErrorKind::FrameTruncated), "cut at {len}, {on_bad:?}");
        }
    }
}

#[test]
fn the_next_document_is_found_after_a_gap() {
    let sample = sample();
    let (before, after) = (sample.concat(), sample.concat());
    for hole in [vec![0; 300], vec![0xff; 300], (0..=255).collect(), b"\x05\0\0\0".repeat(75)] {
        for missing in [4, 30] {
            let bytes = [&before[..before.len() - missing], &hole, &after].concat();
            let open = || Documents::new(in_pieces(bytes.clone(), 64)).on_bad(OnBad::Skip);
            let mut documents = open();
            let (found, error) = one_by_one(&mut documents);
            assert_eq!(error, None);
            assert_eq!(found.len(), 2 * sample.len() - 1, "{missing}");
            let start = before.len() - sample.last().unwrap().len();
            let (outcome, kept) = with_kept(open(), 100);
            assert_eq!((outcome, kept), ((found, error), vec![bytes[start..start + 100].to_vec()]));
            assert_eq!(documents.skipped().count(), 1);
            let len = (sample.last().unwrap().len() - missing + hole.len()) as u64;
            assert_eq!(documents.skipped().bytes(), len);
        }
    }
}

#[test]
fn documents_that_are_wrong_inside_are_counted_one_by_one() {
    let good = document(b"\x02s\0\x02\0\0\0a\0");
    let bad = document(b"\x02s\0\x02\0\0\0\xff\0");
    let bytes = [&good[..], &bad, &bad, &bad, &good, &bad].concat();
    let mut documents = Documents::new(in_pieces(bytes, 3)).on_bad(OnBad::Skip);
    let (found, error) = one_by_one(&mut documents);
    assert_eq!((found.len(), error), (2, None));
    let places: Vec<_> = documents.skipped().places().iter().map(|place| (place.offset, place.record)).collect();
    let len = good.len() as u64;
    assert_eq!(places, [(len, 1), (2 * len, 2), (3 * len, 3), (5 * len, 5)]);
    assert_eq!(documents.skipped().places()[0].kind, ErrorKind::Utf8Invalid);
    assert_eq!(documents.skipped().places()[0].wrong_at, len + 11);
}

#[test]
fn only_used_values_are_checked_by_default() {
    let bytes = document(b"\x10n\0\x2a\0\0\0\x02s\0\x02\0\0\0\xff\0");
    let mut documents = Documents::new(Reader::memory(bytes.clone()).unwrap());
    let document = documents.next().unwrap().unwrap();
    assert_eq!(document.get::<i32>("n").unwrap(), Some(42));
    assert_eq!(document.get::<&str>("s").unwrap_err().path(), Some("s"));
    let mut documents = Documents::new(Reader::memory(bytes).unwrap()).checking(Checking::Ahead);
    let error = documents.next().unwrap_err();
    assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::Utf8Invalid, Some("s"), Some(18)));
    assert_eq!((error.record(), error.name()), (Some(0), Some("memory")));
}

#[test]
fn a_document_over_the_limit() {
    let long = document(&[b"\x05b\0\x40\0\0\0\0", &[7; 64][..]].concat());
    let short = document(b"\x10n\0\x2a\0\0\0");
    let bytes = [&short[..], &long, &short].concat();
    let open = || Reader::builder().record_limit(40).memory(bytes.clone()).unwrap();
    let mut documents = Documents::new(open());
    assert!(documents.next().unwrap().is_some());
    for _ in 0..2 {
        let error = documents.next().unwrap_err();
        assert_eq!((error.kind(), error.record(), error.offset()), (ErrorKind::RecordTooLong, Some(1), Some(12)));
    }
    assert!(documents.reader_mut().skip_record(&mut Bson::new()).unwrap());
    assert_eq!(documents.next().unwrap().unwrap().offset(), 12 + long.len() as u64);
    assert!(documents.next().unwrap().is_none());

    let mut documents = Documents::new(open()).on_bad(OnBad::Skip);
    assert_eq!(one_by_one(&mut documents).0.len(), 2);
    assert_eq!(documents.skipped().places()[0].kind, ErrorKind::RecordTooLong);
    assert_eq!(documents.skipped().bytes(), long.len() as u64);
}

#[test]
fn a_source_that_fails_is_the_error() {
    let bytes = sample().concat();
    let cut = bytes.len() - 3;
    for on_bad in [OnBad::Stop, OnBad::Skip] {
        let mut at = 0;
        let bytes = bytes.clone();
        let fill = move |out: &mut [u8]| {
            let count = out.len().min(cut - at);
            out[..count].copy_from_slice(&bytes[at..at + count]);
            at += count;
            if count == 0 { Err(std::io::Error::other("unplugged")) } else { Ok(count) }
        };
        let mut documents = Documents::new(Reader::callback(fill).unwrap()).on_bad(on_bad);
        let (found, error) = one_by_one(&mut documents);
        assert_eq!((found.len(), error), (sample().len() - 1, Some(ErrorKind::Io)));
    }
}

#[test]
fn a_cancelled_search_can_continue() {
    let bytes = [&[0xff; 1000][..], &sample().concat()].concat();
    let token = CancelToken::new().unwrap();
    let (mut at, inner) = (0, token.clone());
    let fill = move |out: &mut [u8]| {
        let count = out.len().min(100).min(bytes.len() - at);
        out[..count].copy_from_slice(&bytes[at..at + count]);
        at += count;
        if at == 500 {
            inner.cancel();
        }
        Ok(count)
    };
    let reader = Reader::builder().cancel(&token).callback(fill).unwrap();
    let mut documents = Documents::new(reader).on_bad(OnBad::Skip);
    assert_eq!(documents.next().unwrap_err().kind(), ErrorKind::Cancelled);
    token.reset();
    assert_eq!(one_by_one(&mut documents).0.len(), sample().len());
    assert_eq!((documents.skipped().count(), documents.skipped().bytes()), (1, 1000));
}

/// Headers that all extend to the same end, each of which is checked without success: the search soon stops. The
/// check finds invalid content, or a valid document that no other document follows.
#[test]
fn a_search_has_a_bound() {
    search_in_vain(b"\x0a\0\x77\0");
    search_in_vain(b"\x0aa\0\0 none here");
}

/// `ends` begins with the last 4 bytes of each document.
fn search_in_vain(ends: &[u8]) {
    let (heads, tail) = (40_000_usize, 2_000_000_usize);
    let mut bytes = b"\x01\0\0\0".to_vec();
    let end = bytes.len() + heads * 11 + tail;
    for head in 0..heads {
        let at = bytes.len();
        bytes.extend_from_slice(&((end - at) as i32).to_le_bytes());
        // The rest, up to the tail, is binary data.
        bytes.extend_from_slice(b"\x05\0");
        bytes.extend_from_slice(&((heads - head - 1) as i32 * 11).to_le_bytes());
        bytes.push(0);
    }
    bytes.extend(std::iter::repeat_n(*b"\x0a\0", tail / 2 - 2).flatten());
    bytes.extend_from_slice(ends);
    let started = std::time::Instant::now();
    let mut documents = Documents::new(Reader::memory(bytes).unwrap()).on_bad(OnBad::Skip);
    assert_eq!(documents.next().unwrap_err().kind(), ErrorKind::DocumentInvalid);
    assert!(documents.next().unwrap().is_none());
    assert!(started.elapsed().as_secs() < 60, "a hang");
}

#[test]
fn a_mongodump_file() {
    let len = std::fs::metadata(ORDERS).unwrap().len();
    for on_bad in [OnBad::Stop, OnBad::Skip] {
        let mut documents = Documents::new(Reader::path(ORDERS).unwrap()).on_bad(on_bad);
        let (found, error) = one_by_one(&mut documents);
        assert_eq!((found.len(), error, documents.skipped().count()), (3500, None, 0));
        assert_eq!(found.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>(), len);
        for (_, bytes) in &found {
            Document::with_rules(bytes, Rules::new()).unwrap().check().unwrap();
        }
        let mut documents = Documents::new(Reader::mapped(ORDERS).unwrap()).on_bad(on_bad);
        assert_eq!(by_batches(&mut documents), (found, None));
    }
}

/// Every hundredth document has a wrong length, or lacks some bytes.
#[test]
fn a_damaged_mongodump_file() {
    let whole = std::fs::read(ORDERS).unwrap();
    let mut documents = Documents::new(Reader::memory(whole.clone()).unwrap());
    let (good, _) = one_by_one(&mut documents);
    let mut damaged = Vec::new();
    for (i, (_, bytes)) in good.iter().enumerate() {
        match i % 100 {
            50 if i % 200 == 50 => damaged.extend_from_slice(&bytes[..bytes.len() / 2]),
            50 => damaged.extend([&[bytes[0] ^ 0x55], &bytes[1..]].concat()),
            _ => damaged.extend_from_slice(bytes),
        }
    }
    let mut documents = Documents::new(Reader::memory(damaged).unwrap()).on_bad(OnBad::Skip);
    let (found, error) = one_by_one(&mut documents);
    assert_eq!(error, None);
    let kept = good.iter().enumerate().filter(|(i, _)| i % 100 != 50).map(|(_, (_, bytes))| bytes);
    for (i, ((_, found), kept)) in found.iter().zip(kept.clone()).enumerate() {
        assert_eq!(found, kept, "document {i}, {:?}", documents.skipped());
    }
    assert_eq!((found.len(), documents.skipped().count()), (kept.count(), 35));
}
