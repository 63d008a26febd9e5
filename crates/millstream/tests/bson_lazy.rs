//! Lazy documents from the user's point of view: checking, indexes, views of numbers, mapped files, documents that own
//! their bytes, and aligned arrays.

#![cfg(feature = "bson")]

use millstream::bson::{
    Alignment, AnyView, Array, Bits, Builder, Document, DocumentBuf, Mapped, Number, NumberType, NumbersOf, Rules,
    Strictness, ToBson, ValueRef, Vector, VectorOf, View, append_aligned, append_element,
};
use millstream::{CancelToken, ErrorKind, Reader};
use std::borrow::Cow;
use std::io::{Seek, SeekFrom, Write};

/// Returns a document with the members that the closure appends.
fn document(members: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    members(&mut bytes);
    bytes.push(0);
    let len = (bytes.len() as u32).to_le_bytes();
    bytes[..4].copy_from_slice(&len);
    bytes
}

/// Returns a document with one member.
fn one<T: ToBson + ?Sized>(key: &str, value: &T) -> Vec<u8> {
    document(|out| append_element(out, key, value).unwrap())
}

/// Returns a document whose member "a" is binary of this subtype.
fn binary(subtype: u8, payload: &[u8]) -> Vec<u8> {
    document(|out| {
        out.extend_from_slice(b"\x05a\0");
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.push(subtype);
        out.extend_from_slice(payload);
    })
}

mod indexes {
    use super::*;

    #[test]
    fn an_index_finds_the_same_values_as_get() {
        let names: Vec<String> = (0..1000).map(|i| format!("{}field {i}", "ä".repeat(i % 40))).collect();
        let bytes = document(|out| {
            for (i, name) in names.iter().enumerate() {
                match i % 3 {
                    0 => append_element(out, name, &(i as i64)).unwrap(),
                    1 => append_element(out, name, name).unwrap(),
                    _ => append_element(out, name, &Document::new(&one("inner", &(i as i32))).unwrap()).unwrap(),
                }
            }
        });
        let document = Document::new(&bytes).unwrap();
        let index = document.index().unwrap();
        assert_eq!((index.len(), index.is_empty(), index.document()), (1000, false, document));
        for (i, name) in names.iter().enumerate() {
            assert_eq!(index.get::<ValueRef>(name).unwrap(), document.get::<ValueRef>(name).unwrap());
            assert!(index.contains(name));
            let (found, numbered) = (index.find(name).unwrap(), index.nth(i).unwrap());
            let walked = document.find(name).unwrap().unwrap();
            for element in [&found, &numbered] {
                assert_eq!(element.key().unwrap(), name);
                assert_eq!((element.kind(), element.offset(), element.payload()), {
                    (walked.kind(), walked.offset(), walked.payload())
                });
            }
        }
        for missing in ["", "field", "field 1000", "field 0\0", "field 0\0\0"] {
            assert_eq!(index.get::<ValueRef>(missing).unwrap(), None, "{missing:?}");
            assert!(!index.contains(missing) && index.find(missing).is_none());
        }
        assert!(index.nth(1000).is_none());
        let walked: Vec<String> = index.iter().map(|element| element.unwrap().key().unwrap().to_string()).collect();
        assert_eq!(walked, names);
        assert_eq!((&index).into_iter().count(), 1000);
    }

    #[test]
    fn the_first_of_a_name_is_found_and_all_are_counted() {
        let bytes = document(|out| {
            for i in 0..5000 {
                append_element(out, ["same", "other"][i % 2], &(i as i32)).unwrap();
            }
        });
        let index = Document::new(&bytes).unwrap().index().unwrap();
        assert_eq!((index.len(), index.require::<i32>("same").unwrap()), (5000, 0));
        assert_eq!(index.require::<i32>("other").unwrap(), 1);
        assert_eq!(index.nth(4999).unwrap().get::<i32>().unwrap(), 4999);
    }

    #[test]
    fn of_an_inner_document_and_of_an_array() {
        let inner = document(|out| {
            append_element(out, "0", "zero").unwrap();
            append_element(out, "1", &1.5).unwrap();
        });
        let bytes = document(|out| {
            append_element(out, "before", &1).unwrap();
            out.extend_from_slice(b"\x04list\0");
            out.extend_from_slice(&inner);
        });
        let list: Array = Document::new(&bytes).unwrap().at_offset(500).require("list").unwrap();
        let index = list.as_document().index().unwrap();
        assert_eq!(index.nth(1).unwrap().get::<f64>().unwrap(), 1.5);
        let error = index.get::<i32>("0").unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::ShapeMismatch, Some("list.0")));
        assert_eq!(error.offset(), Some(index.find("0").unwrap().offset()));
        let error = index.require::<i32>("2").unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::KeyMissing, Some("list.2")));
    }

    #[test]
    fn a_wrong_member_is_an_error_when_the_index_is_made() {
        let mut bytes = one("a", &1);
        bytes[4] = 0x42;
        let error = Document::new(&bytes).unwrap().index().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(4)));
        let empty = document(|_| ());
        assert!(Document::new(&empty).unwrap().index().unwrap().is_empty());
    }
}

mod views {
    use super::*;

    fn agrees<T: Number>(numbers: &[T], to_bytes: impl Fn(&T) -> Vec<u8>) {
        let payload: Vec<u8> = numbers.iter().flat_map(to_bytes).collect();
        let mut aligned = 0;
        // Miri takes seconds for each case.
        let offsets = if cfg!(miri) { 9 } else { 64 };
        // One block of memory is used for all offsets, so some of them are aligned, wherever the block is.
        let mut memory = vec![0xee; offsets + payload.len() + 8];
        for offset in 0..offsets {
            memory.fill(0xee);
            memory[offset..offset + payload.len()].copy_from_slice(&payload);
            let bytes = &memory[offset..offset + payload.len()];
            let view = View::<T>::new(bytes).unwrap();
            assert_eq!((view.len(), view.is_empty(), view.as_bytes()), (numbers.len(), numbers.is_empty(), bytes));
            assert_eq!(view.to_vec(), numbers);
            assert_eq!(&*view.to_cow(), numbers);
            assert_eq!(view.iter().collect::<Vec<T>>(), numbers);
            assert_eq!(view.iter().rev().collect::<Vec<T>>(), numbers.iter().rev().copied().collect::<Vec<T>>());
            assert_eq!(view.iter().skip(2).collect::<Vec<T>>(), numbers.iter().skip(2).copied().collect::<Vec<T>>());
            assert_eq!(view.iter().fold(0, |count, _| count + 1), numbers.len());
            assert_eq!(view.iter().len(), numbers.len());
            for position in 0..=numbers.len() {
                assert_eq!(view.get(position), numbers.get(position).copied());
                let part = view.part(position / 2..position).map(|part| part.to_vec());
                assert_eq!(part.as_deref(), numbers.get(position / 2..position));
            }
            let (groups, rest) = view.groups::<3>();
            assert_eq!(groups.flatten().chain(rest.iter()).collect::<Vec<T>>(), numbers);
            let mut copy = vec![T::default(); numbers.len()];
            view.copy_to(&mut copy).unwrap();
            assert_eq!(copy, numbers);
            copy.push(T::default());
            assert_eq!(view.copy_to(&mut copy).unwrap_err().kind(), ErrorKind::ArgumentInvalid);
            let fits = bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
            let borrows = fits && (cfg!(target_endian = "little") || size_of::<T>() == 1);
            assert_eq!(view.as_slice(), borrows.then_some(numbers));
            assert_eq!(matches!(view.to_cow(), Cow::Borrowed(_)), borrows);
            aligned += usize::from(borrows);
        }
        assert_eq!(aligned > 0, cfg!(target_endian = "little") || size_of::<T>() == 1);
        if size_of::<T>() > 1 {
            let error = View::<T>::new(&[payload, vec![1]].concat()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
        }
    }

    macro_rules! types {
        ($($type:ident $kind:ident $numbers:expr;)*) => {
            #[test]
            fn at_every_offset() {
                $(agrees::<$type>(&$numbers, |number| number.to_le_bytes().to_vec());)*
            }

            #[test]
            fn types_known_at_run_time() {
                $({
                    let bytes = one("a", &NumbersOf::<$type>(&$numbers));
                    let typed: View<$type> = Document::new(&bytes).unwrap().require("a").unwrap();
                    assert_eq!(typed.to_vec(), $numbers);
                    let any = AnyView::new(NumberType::$kind, typed.as_bytes()).unwrap();
                    assert_eq!((any.len(), any.is_empty(), any.as_bytes()), (typed.len(), false, typed.as_bytes()));
                    assert_eq!((any.number_type(), <$type as Number>::TYPE), (NumberType::$kind, NumberType::$kind));
                    assert!(matches!(any, AnyView::$kind(view) if view == typed));
                    assert_eq!(NumberType::$kind.size(), size_of::<$type>());
                    assert_eq!(NumberType::$kind.to_string(), stringify!($type));
                    // The bytes written from a view are the bytes from which the view was read.
                    assert_eq!(one("a", &typed), bytes);
                })*
                assert_eq!(NumberType::ALL.len(), 10);
            }
        };
    }

    types! {
        u8 U8 [0, 1, 0x80, u8::MAX, 7];
        u16 U16 [0, 1, 0x8001, u16::MAX, 7];
        u32 U32 [0, 1, 0x8000_0001, u32::MAX, 7];
        u64 U64 [0, 1, 0x8000_0000_0000_0001, u64::MAX, 7];
        i8 I8 [0, 1, i8::MIN, i8::MAX, -7];
        i16 I16 [0, 1, i16::MIN, i16::MAX, -7];
        i32 I32 [0, 1, i32::MIN, i32::MAX, -7];
        i64 I64 [0, 1, i64::MIN, i64::MAX, -7];
        f32 F32 [0.0, 1.5, f32::MIN_POSITIVE, f32::INFINITY, -7.25];
        f64 F64 [0.0, 1.5, f64::MIN_POSITIVE, f64::INFINITY, -7.25];
    }

    #[test]
    fn none_is_a_view_too() {
        agrees::<f64>(&[], |_| unreachable!());
    }

    #[test]
    fn errors_have_positions() {
        let bytes = binary(0, &[1, 2, 3]);
        let error = Document::new(&bytes).unwrap().require::<View<u16>>("a").unwrap_err();
        assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::ShapeMismatch, Some("a"), Some(7)));
        assert_eq!((error.found(), error.expected()), (Some("3 bytes"), Some("a multiple of 2, the size of u16")));
        let bytes = one("a", "text");
        let error = Document::new(&bytes).unwrap().require::<View<u16>>("a").unwrap_err();
        assert_eq!(error.found(), Some("a value of type string"));
        assert!(AnyView::new(NumberType::F64, &[0; 12]).is_err());
    }
}

mod vectors {
    use super::*;

    fn vector(payload: &[u8]) -> millstream::Result<Vector<'_>> {
        Vector::from_bytes(payload)
    }

    #[test]
    fn the_examples_of_the_specification() {
        let Vector::PackedBit(bits) = vector(&[0x10, 4, 0xee, 0xe0]).unwrap() else { panic!() };
        assert_eq!(bits.iter().map(u8::from).collect::<Vec<u8>>(), [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0]);
        assert_eq!((bits.padding(), bits.as_bytes(), bits.is_empty()), (4, &[0xee, 0xe0][..], false));
        let Vector::PackedBit(bits) = vector(&[0x10, 7, 0x80]).unwrap() else { panic!() };
        assert_eq!((bits.len(), bits.get(0), bits.get(1)), (1, Some(true), None));
        let Vector::PackedBit(bits) = vector(&[0x10, 0, 0xf0, 0x42]).unwrap() else { panic!() };
        assert_eq!(bits.len(), 16);
        let Vector::Int8(numbers) = vector(&[0x03, 0, 0xff, 0, 1]).unwrap() else { panic!() };
        assert_eq!(numbers.to_vec(), [-1, 0, 1]);
        let bytes = [0x27, 0, 0, 0, 0x80, 0x3f, 0x34, 0x12, 0x80, 0x7f];
        let Vector::Float32(numbers) = vector(&bytes).unwrap() else { panic!() };
        assert_eq!(numbers.get(0), Some(1.0));
        assert!(numbers.get(1).unwrap().is_nan());
        for number in [0x03, 0x10, 0x27] {
            assert!(vector(&[number, 0]).unwrap().is_empty());
        }
    }

    #[test]
    fn impossible_views_are_refused() {
        for bad in [
            &[][..],
            &[0x03],
            &[0x03, 1, 1],          // padding of bytes
            &[0x27, 3, 0, 0, 0, 0], // padding of floating point numbers
            &[0x27, 0, 0, 0, 0, 0, 1],
            &[0x10, 1],    // padding of nothing
            &[0x10, 8, 0], // more than a byte
            &[0x10, 0x80, 0],
            &[0x10, 3, 0x04], // an unused bit that is set
            &[0x11, 0, 0],
            &[0x00, 0],
        ] {
            assert_eq!(vector(bad).unwrap_err().kind(), ErrorKind::DocumentInvalid, "{bad:?}");
            let bytes = binary(9, bad);
            let error = Document::new(&bytes).unwrap().require::<Vector>("a").unwrap_err();
            assert_eq!((error.path(), error.offset()), (Some("a"), Some(7)));
        }
        assert!(Bits::new(&[0], 8).is_err() && Bits::new(&[], 1).is_err() && Bits::new(&[1], 1).is_err());
        let bytes = binary(0, &[0x03, 0]);
        let error = Document::new(&bytes).unwrap().require::<Vector>("a").unwrap_err();
        assert_eq!((error.kind(), error.found()), (ErrorKind::ShapeMismatch, Some("bytes of subtype 0")));
    }

    #[test]
    fn written_numbers_are_read_back() {
        let floats = one("a", &VectorOf(&[1.0f32, -2.5]));
        let bytes = one("a", &VectorOf(&[1i8, -2, 3]));
        assert_eq!(floats, binary(9, &[0x27, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]));
        assert_eq!(bytes, binary(9, &[3, 0, 1, 0xfe, 3]));
        // A view of a vector has the vector's numbers, and only in the vector's type.
        assert_eq!(Document::new(&floats).unwrap().require::<View<f32>>("a").unwrap().to_vec(), [1.0, -2.5]);
        assert_eq!(Document::new(&bytes).unwrap().require::<View<i8>>("a").unwrap().to_vec(), [1, -2, 3]);
        let error = Document::new(&bytes).unwrap().require::<View<u8>>("a").unwrap_err();
        assert_eq!((error.kind(), error.found()), (ErrorKind::ShapeMismatch, Some("a vector of i8")));
        for count in 0..20 {
            let values: Vec<bool> = (0..count).map(|i| i % 3 != 1).collect();
            let bytes = one("a", &VectorOf(&values[..]));
            let read: Vector = Document::new(&bytes).unwrap().require("a").unwrap();
            let Vector::PackedBit(bits) = read else { panic!() };
            assert_eq!(bits.iter().collect::<Vec<bool>>(), values);
            assert_eq!((bits.iter().len(), read.len()), (count, count));
            assert_eq!(one("a", &read), bytes);
        }
        for bytes in [&floats, &bytes] {
            let read: Vector = Document::new(bytes).unwrap().require("a").unwrap();
            assert_eq!(&one("a", &read), bytes);
        }
    }
}

mod mapped {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn one_document() {
        let file = file(&one("a", "text"));
        let mapped = Mapped::open(file.path()).unwrap();
        assert_eq!(mapped.document().unwrap().require::<&str>("a").unwrap(), "text");
        assert_eq!(mapped.name(), file.path().display().to_string());
        mapped.check_length().unwrap();
    }

    #[test]
    fn bytes_after_a_document_need_lenient_rules() {
        let file = file(&[&one("a", &1)[..], b"more"].concat());
        let error = Mapped::open(file.path()).unwrap().document().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(12)));
        assert_eq!(error.name(), Some(&*file.path().display().to_string()));
        let mapped = Mapped::with_rules(file.path(), Rules::new().strictness(Strictness::Lenient)).unwrap();
        assert_eq!(mapped.document().unwrap().require::<i32>("a").unwrap(), 1);
        assert_eq!(mapped.as_bytes().len(), 16);
    }

    #[test]
    fn many_documents_until_one_is_bad() {
        let mut bytes = Vec::new();
        for i in 0..100 {
            bytes.extend_from_slice(&one("a", &i));
        }
        let good = file(&bytes);
        let good = Mapped::open(good.path()).unwrap();
        for (i, document) in good.documents().enumerate() {
            let document = document.unwrap();
            assert_eq!((document.require::<usize>("a").unwrap(), document.offset()), (i, i as u64 * 12));
            let error = document.require::<&str>("a").unwrap_err();
            assert_eq!(error.offset(), Some(i as u64 * 12 + 7));
        }
        assert_eq!(good.documents().count(), 100);
        bytes.truncate(bytes.len() - 3);
        let cut = file(&bytes);
        let cut = Mapped::open(cut.path()).unwrap();
        let mut documents = cut.documents();
        assert_eq!(documents.by_ref().take(99).filter(|document| document.is_ok()).count(), 99);
        let error = documents.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.offset(), error.record()), {
            (ErrorKind::DocumentTruncated, Some(99 * 12), Some(99))
        });
        assert_eq!((error.name(), documents.offset()), (Some(cut.name()), 99 * 12));
        assert!(documents.next().is_none());
    }

    #[test]
    fn empty_files_and_other_kinds_of_files() {
        let empty = file(b"");
        let empty = Mapped::open(empty.path()).unwrap();
        assert_eq!(empty.documents().count(), 0);
        assert_eq!(empty.document().unwrap_err().kind(), ErrorKind::DocumentTruncated);
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_path_buf(), directory.path().join("none"), "/dev/null".into()] {
            let error = Mapped::open(&path).unwrap_err();
            assert_eq!((error.kind(), error.name()), (ErrorKind::OpenFailed, Some(&*path.display().to_string())));
        }
    }

    #[test]
    fn a_file_that_shrank_is_reported() {
        let mut file = file(&one("a", &[7u8; 4096].map(char::from).iter().collect::<String>()));
        let mapped = Mapped::open(file.path()).unwrap();
        file.as_file_mut().set_len(100).unwrap();
        let error = mapped.check_length().unwrap_err();
        assert_eq!((error.kind(), error.name()), (ErrorKind::SourceShrank, Some(mapped.name())));
        file.as_file_mut().set_len(1 << 20).unwrap();
        mapped.check_length().unwrap();
    }

    #[test]
    fn more_than_two_gigabytes() {
        let mut file = file(&one("a", &1));
        file.as_file_mut().set_len(3 << 30).unwrap();
        file.seek(SeekFrom::Start((3 << 30) - 12)).unwrap();
        file.write_all(&one("a", &2)).unwrap();
        let mapped = Mapped::open(file.path()).unwrap();
        let error = mapped.document().unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(12)));
        // The following bytes are zeros, which are not a document.
        let mut documents = mapped.documents();
        assert!(documents.next().unwrap().is_ok());
        assert_eq!(documents.next().unwrap().unwrap_err().offset(), Some(12));
        // This is the largest possible document, in a sparse file. It is found immediately, despite its length.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let len = i32::MAX as u64;
        file.write_all(&(len as u32).to_le_bytes()).unwrap();
        file.write_all(b"\x05a\0").unwrap();
        file.write_all(&((len - 24) as u32).to_le_bytes()).unwrap();
        file.as_file_mut().set_len(len).unwrap();
        file.seek(SeekFrom::Start(len - 12)).unwrap();
        file.write_all(b"\x12b\0\x09\0\0\0\0\0\0\0").unwrap();
        file.as_file_mut().set_len(len).unwrap();
        let mapped = Mapped::open(file.path()).unwrap();
        let document = mapped.document().unwrap();
        assert_eq!(document.len() as u64, len);
        let found = document.find("b").unwrap().map(|element| element.offset());
        assert_eq!((found, document.get::<i64>("b").unwrap()), (Some(len - 9), Some(9)));
        assert_eq!(document.index().unwrap().require::<i64>("b").unwrap(), 9);
        assert_eq!(document.require::<View<u8>>("a").unwrap().len() as u64, len - 24);
    }
}

mod owned {
    use super::*;

    /// Returns a reader that gets this many bytes at a time.
    fn trickle(bytes: Vec<u8>, piece: usize) -> Reader {
        let mut at = 0;
        Reader::callback(move |space| {
            let count = piece.min(space.len()).min(bytes.len() - at);
            space[..count].copy_from_slice(&bytes[at..at + count]);
            at += count;
            Ok(count)
        })
        .unwrap()
    }

    #[test]
    fn documents_of_a_reader() {
        let large = one("a", &"x".repeat(300_000));
        let bytes = [&one("a", "one")[..], &large, &document(|_| ())].concat();
        for piece in [1, 3, 7, 4096, usize::MAX] {
            let mut reader = trickle(bytes.clone(), piece);
            let first = DocumentBuf::read(&mut reader).unwrap().unwrap();
            assert_eq!(first.document().require::<&str>("a").unwrap(), "one");
            let second = DocumentBuf::read(&mut reader).unwrap().unwrap();
            assert_eq!(second.document().offset(), first.as_bytes().len() as u64);
            assert_eq!(second.document().require::<&str>("a").unwrap().len(), 300_000);
            assert_eq!(second.clone().into_bytes(), large);
            assert!(second.into_bytes().capacity() <= large.len());
            assert!(DocumentBuf::read(&mut reader).unwrap().unwrap().document().is_empty());
            assert_eq!(DocumentBuf::read(&mut reader).unwrap(), None);
            assert_eq!(DocumentBuf::read(&mut reader).unwrap(), None);
        }
    }

    #[test]
    fn a_cancelled_read_can_continue() {
        let bytes = [&one("a", &"x".repeat(300_000))[..], &one("b", &2)].concat();
        let token = CancelToken::new().unwrap();
        let (mut at, inner, whole) = (0, token.clone(), bytes.clone());
        let fill = move |out: &mut [u8]| {
            let count = out.len().min(1000).min(whole.len() - at);
            out[..count].copy_from_slice(&whole[at..at + count]);
            at += count;
            if [1000, 100_000].contains(&at) {
                inner.cancel();
            }
            Ok(count)
        };
        let mut reader = Reader::builder().cancel(&token).callback(fill).unwrap();
        for _ in 0..2 {
            assert_eq!(DocumentBuf::read(&mut reader).unwrap_err().kind(), ErrorKind::Cancelled);
            token.reset();
        }
        // The next call reads the same document, and rejects it like any other.
        let error = DocumentBuf::read_by(&mut reader, Rules::new(), 1000).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::MemoryLimit, Some(0)));
        let large = DocumentBuf::read(&mut reader).unwrap().unwrap();
        assert_eq!((large.document().offset(), large.as_bytes()), (0, &bytes[..bytes.len() - 12]));
        let small = DocumentBuf::read(&mut reader).unwrap().unwrap();
        assert_eq!(small.document().require::<i32>("b").unwrap(), 2);
        assert!(DocumentBuf::read(&mut reader).unwrap().is_none());
    }

    #[test]
    fn larger_than_the_record_limit() {
        let large = one("a", &"x".repeat(300_000));
        let mut reader = Reader::builder().record_limit(1000).capacity(512).memory(large.clone()).unwrap();
        assert_eq!(DocumentBuf::read(&mut reader).unwrap().unwrap().as_bytes(), large);
        let mut reader = Reader::memory(large.clone()).unwrap();
        let error = DocumentBuf::read_by(&mut reader, Rules::new(), large.len() - 1).unwrap_err();
        assert_eq!(
            (error.kind(), error.offset(), error.name()),
            (ErrorKind::MemoryLimit, Some(0), Some(reader.name()))
        );
        // No part of it was consumed.
        assert!(DocumentBuf::read_by(&mut reader, Rules::new(), large.len()).unwrap().is_some());
    }

    #[test]
    fn cut_anywhere() {
        let good = one("a", &1);
        let bytes = [&good[..], &one("b", "text")].concat();
        for len in 0..bytes.len() {
            let mut reader = trickle(bytes[..len].to_vec(), 5);
            if len >= good.len() {
                assert_eq!(DocumentBuf::read(&mut reader).unwrap().unwrap().as_bytes(), good);
            }
            let start = if len >= good.len() { good.len() } else { 0 };
            match DocumentBuf::read(&mut reader) {
                Ok(read) => assert!(read.is_none() && len == start),
                Err(error) => {
                    assert!(len > start);
                    assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentTruncated, Some(start as u64)));
                    assert_eq!(error.name(), Some(reader.name()));
                }
            }
        }
    }

    #[test]
    fn lengths_that_lie() {
        for len in [i32::MIN, -1, 0, 4] {
            let mut reader = Reader::memory([&len.to_le_bytes()[..], &[0; 100]].concat()).unwrap();
            let error = DocumentBuf::read(&mut reader).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(0)), "{len}");
        }
        let mut reader = Reader::memory([&i32::MAX.to_le_bytes()[..], &[0; 100]].concat()).unwrap();
        assert_eq!(DocumentBuf::read(&mut reader).unwrap_err().kind(), ErrorKind::DocumentTruncated);
        let mut reader = Reader::memory([&one("a", &1)[..11], &[9]].concat()).unwrap();
        let error = DocumentBuf::read(&mut reader).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::DocumentInvalid, Some(11)));
    }

    #[test]
    fn of_a_vector() {
        let bytes = one("a", &1);
        let owned = DocumentBuf::new(bytes.clone()).unwrap();
        assert_eq!((owned.as_bytes(), owned.document().len()), (&bytes[..], 12));
        let longer = [&bytes[..], b"more"].concat();
        assert!(DocumentBuf::new(longer.clone()).is_err());
        let lenient = Rules::new().strictness(Strictness::Lenient);
        assert_eq!(DocumentBuf::with_rules(longer, lenient).unwrap(), owned);
    }
}

mod aligned {
    use super::*;

    #[test]
    fn at_every_place() {
        let numbers = [1.5f64, -2.5, 3.5];
        for before in 0..70 {
            for to in [Alignment::Bytes8, Alignment::Bytes64] {
                for key in ["a", "weights of the first layer"] {
                    let inner = |out: &mut Vec<u8>| {
                        append_element(out, "before", &"x".repeat(before)).unwrap();
                        append_aligned(out, key, &numbers, to).unwrap();
                        append_aligned(out, "empty", &[0u8; 0], to).unwrap();
                        append_element(out, "after", &7).unwrap();
                    };
                    let bytes = document(inner);
                    let strict = Rules::new().strictness(Strictness::Strict);
                    let document = Document::with_rules(&bytes, strict).unwrap();
                    document.check().unwrap();
                    let element = document.find(key).unwrap().unwrap();
                    assert_eq!((element.offset() as usize + 5) % to.bytes(), 0, "{before} {to:?}");
                    assert_eq!(element.get::<View<f64>>().unwrap().to_vec(), numbers);
                    assert_eq!(document.require::<View<u8>>("empty").unwrap().len(), 0);
                    assert_eq!(document.require::<i32>("after").unwrap(), 7);
                    // This reader has no documents.
                    let other = bson::Document::from_reader(&bytes[..]).unwrap();
                    assert_eq!(other.get_binary_generic(key).unwrap().len(), 24);
                    assert!(other.len() <= 6);
                }
            }
        }
        let mut builder = Builder::new();
        builder.append("before", &1).unwrap();
        assert!(builder.append_aligned("a\0b", &numbers, Alignment::Bytes64).is_err());
        builder.append_aligned("a", &numbers, Alignment::Bytes64).unwrap();
        let built = builder.into_bytes().unwrap();
        let keys: Vec<&str> =
            Document::new(&built).unwrap().iter().map(|member| member.unwrap().key().unwrap()).collect();
        assert_eq!(keys, ["before", "_pad_a", "a"]);
        assert!(append_aligned(&mut vec![0; 4], "a\0b", &[1u8], Alignment::default()).is_err());
    }

    #[test]
    fn a_mapped_file_lends_them() {
        let bytes = document(|out| {
            append_element(out, "name", "model").unwrap();
            for key in ["a", "bb", "ccc"] {
                append_aligned(out, key, &[1.0f32, 2.0, 3.0], Alignment::Bytes64).unwrap();
            }
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let mapped = Mapped::open(file.path()).unwrap();
        for key in ["a", "bb", "ccc"] {
            let view: View<f32> = mapped.document().unwrap().require(key).unwrap();
            match cfg!(target_endian = "little") {
                true => assert_eq!(view.as_slice(), Some(&[1.0, 2.0, 3.0][..])),
                false => assert_eq!(view.to_vec(), [1.0, 2.0, 3.0]),
            }
            assert_eq!(view.as_bytes().as_ptr().addr() % 64, 0);
        }
    }
}

mod oracle {
    use super::*;
    use bson::{Bson, doc};
    use proptest::prelude::*;

    /// Returns a document with every type.
    fn everything() -> Vec<u8> {
        let scope = doc! { "x": 1 };
        doc! {
            "double": 1.5, "string": "grün", "document": { "a": { "b": [1_i64, "two", [], {}] } },
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] },
            "old": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1, 2, 3] },
            "undefined": Bson::Undefined, "id": bson::oid::ObjectId::from_bytes([7; 12]), "bool": true,
            "date": bson::DateTime::from_millis(1), "null": Bson::Null,
            "regex": bson::Regex { pattern: bson::cstr!("a+").into(), options: bson::cstr!("ix").into() },
            "code": Bson::JavaScriptCode("f()".into()), "symbol": Bson::Symbol("s".into()),
            "scoped": bson::JavaScriptCodeWithScope { code: "g()".into(), scope },
            "int": 1, "stamp": bson::Timestamp { time: 1, increment: 2 },
            "decimal": bson::Decimal128::from_bytes([1; 16]), "min": Bson::MinKey, "max": Bson::MaxKey,
            "a key of more than sixteen bytes": "and text that is longer than sixteen bytes",
        }
        .to_vec()
        .unwrap()
    }

    /// Returns a document without the rare types: `check` has a fast path for it.
    fn plain() -> Vec<u8> {
        let mut all = bson::Document::from_reader(&everything()[..]).unwrap();
        for key in ["old", "regex", "scoped"] {
            assert!(all.remove(key).is_some());
        }
        all.to_vec().unwrap()
    }

    /// Returns whether every byte is valid, according to this crate and to the `bson` crate.
    fn answers(bytes: &[u8]) -> [bool; 2] {
        let ours = Document::new(bytes).and_then(|document| document.check());
        let mut rest = bytes;
        let theirs = bson::Document::from_reader(&mut rest);
        [ours.is_ok(), theirs.is_ok() && rest.is_empty()]
    }

    #[test]
    fn every_byte_changed_to_every_other() {
        for whole in [everything(), plain()] {
            assert_eq!(answers(&whole), [true, true]);
            let mut good = 0;
            for place in 0..whole.len() {
                for byte in 0..=255 {
                    let mut bytes = whole.clone();
                    bytes[place] = byte;
                    let [ours, theirs] = answers(&bytes);
                    assert_eq!(ours, theirs, "byte {place} as {byte}");
                    good += usize::from(ours);
                }
            }
            let all = whole.len() * 256;
            assert!((all / 10..all / 10 * 9).contains(&good), "{good} of {all} are valid");
        }
    }

    proptest! {
        #[test]
        fn several_bytes_changed(
            rare in any::<bool>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 2..6),
            cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        ) {
            let mut bytes = if rare { everything() } else { plain() };
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let [ours, theirs] = answers(&bytes);
            prop_assert_eq!(ours, theirs);
        }
    }

    /// Returns bytes among which meaningful values are frequent.
    fn change() -> impl Strategy<Value = u8> {
        prop_oneof![0u8..0x20, Just(0xff), Just(0x7f), any::<u8>()]
    }
}
