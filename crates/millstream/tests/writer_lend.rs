//! Lent pages: at any pace, the reader reads the bytes that were written, and no later bytes.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{PipeReader, Read};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use millstream::{CancelToken, Command, ErrorKind, FlushPolicy, LendPages, Stdout, Writer, WriterBuilder};

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

fn builder() -> WriterBuilder {
    Writer::builder().lend_pages(LendPages::ConsumerCopies)
}

/// Returns bytes that depend on their position: no two pieces of 8 bytes are equal, so that a block that is overwritten
/// too early is detected.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64 / 8 + 1).flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes()).take(len).collect()
}

/// Reads in pieces of any size, and sleeps occasionally.
fn read_slowly(mut pipe: PipeReader, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let (mut all, mut piece) = (Vec::new(), vec![0; 2 * MIB]);
    loop {
        if random.usize(..8) == 0 {
            thread::sleep(Duration::from_micros(random.u64(..3000)));
        }
        let most = [1, 100, PAGE, PAGE + 1, 100_000, 2 * MIB][random.usize(..6)];
        match pipe.read(&mut piece[..1 + random.usize(..most)]).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&piece[..count]),
        }
    }
}

#[test]
fn a_slow_reader_reads_the_written_bytes() {
    let bytes = pattern(6 * MIB);
    for capacity in [PAGE, 3 * PAGE + 1, 64 << 10, 256 << 10, MIB, 2 * MIB + 5] {
        for policy in [FlushPolicy::WhenFull, FlushPolicy::Line] {
            for seed in 1..4 {
                let (reader, pipe) = std::io::pipe().unwrap();
                let reading = thread::spawn(move || read_slowly(reader, seed));
                let mut writer = builder().capacity(capacity).flush_policy(policy).fd(pipe).unwrap();
                let (mut random, mut rest) = (Rng::with_seed(seed + 100), &bytes[..]);
                while !rest.is_empty() {
                    // Some records are longer than the buffer, and are passed to the sink directly or make it grow.
                    let most = [10, 1000, PAGE, 2 * capacity][random.usize(..4)];
                    let (record, after) = rest.split_at((1 + random.usize(..most)).min(rest.len()));
                    match random.usize(..3) {
                        0 => writer.write(record).unwrap(),
                        _ => {
                            writer.space(record.len()).unwrap()[..record.len()].copy_from_slice(record);
                            writer.commit(record.len()).unwrap();
                        }
                    }
                    if random.usize(..300) == 0 {
                        writer.flush().unwrap();
                    }
                    rest = after;
                }
                assert_eq!(writer.close().unwrap().written, bytes.len() as u64);
                assert!(reading.join().unwrap() == bytes, "{capacity} {policy:?} {seed}: other bytes arrived");
            }
        }
    }
}

#[test]
fn lengths_around_a_page_a_block_and_the_pipe() {
    let all = pattern(2 * MIB + 2);
    for edge in [0, PAGE, 64 << 10, 256 << 10, MIB, MIB + (256 << 10), 2 * MIB] {
        for len in [edge.saturating_sub(1), edge, edge + 1] {
            let (reader, pipe) = std::io::pipe().unwrap();
            let reading = thread::spawn(move || read_slowly(reader, 7));
            let mut writer = builder().fd(pipe).unwrap();
            all[..len].chunks(1001).for_each(|record| writer.write(record).unwrap());
            writer.close().unwrap();
            assert!(reading.join().unwrap() == all[..len], "{len} bytes");
        }
    }
}

/// The writer does not wait for the reader, and the memory is reused in the meantime.
#[test]
fn lent_pages_outlive_the_writer() {
    let bytes = pattern(1_000_000);
    for close in [true, false] {
        let (mut reader, pipe) = std::io::pipe().unwrap();
        let mut writer = builder().fd(pipe).unwrap();
        bytes.chunks(1000).for_each(|record| writer.write(record).unwrap());
        if close {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        let others: Vec<Vec<u8>> = (0..40).map(|_| vec![0xff; 256 << 10]).collect();
        let mut arrived = Vec::new();
        reader.read_to_end(&mut arrived).unwrap();
        assert!(arrived == bytes, "other bytes arrived");
        drop(others);
    }
}

#[test]
fn pages_are_lent_and_not_copied() {
    let (mut reader, pipe) = std::io::pipe().unwrap();
    let mut writer = builder().capacity(64 << 10).fd(pipe).unwrap();
    writer.write(&[b'1'; 10]).unwrap();
    writer.flush().unwrap();
    let space = writer.space(64 << 10).unwrap();
    space.fill(b'2');
    let address = space.as_mut_ptr() as usize;
    writer.commit(64 << 10).unwrap();
    writer.flush().unwrap();
    let next = writer.space(1).unwrap().as_mut_ptr() as usize;
    assert_ne!(address, next, "the pipe still refers to the block");
    let mut arrived = vec![0; 10 + (64 << 10)];
    reader.read_exact(&mut arrived).unwrap();
    // At this point the block has been read, and the writer can reuse it.
    writer.space(64 << 10).unwrap().fill(b'3');
    writer.commit(64 << 10).unwrap();
    writer.flush().unwrap();
    assert_eq!(writer.space(1).unwrap().as_mut_ptr() as usize, address);
}

#[test]
fn a_closed_reader_is_a_broken_pipe() {
    let (mut reader, pipe) = std::io::pipe().unwrap();
    let reading = thread::spawn(move || reader.read_exact(&mut vec![0; 3 * MIB]));
    let mut writer = builder().fd(pipe).unwrap();
    let bytes = pattern(MIB);
    let error = (0..1000).find_map(|_| bytes.chunks(1000).find_map(|record| writer.write(record).err())).unwrap();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(error.written().unwrap() >= 3 * MIB as u64);
    reading.join().unwrap().unwrap();
}

#[test]
fn a_token_ends_a_wait_without_loss() {
    let (reader, pipe) = std::io::pipe().unwrap();
    let token = CancelToken::new().unwrap();
    let mut writer = builder().cancel(&token).fd(pipe).unwrap();
    let bytes = pattern(4 * MIB);
    let canceller = token.clone();
    let cancelling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        canceller.cancel();
    });
    let error = bytes.chunks(1000).find_map(|record| writer.write(record).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    cancelling.join().unwrap();
    assert_eq!(writer.try_close().unwrap_err().kind(), ErrorKind::Cancelled);
    token.reset();
    let reading = thread::spawn(move || read_slowly(reader, 3));
    let accepted = writer.try_close().unwrap().bytes as usize;
    assert!(reading.join().unwrap() == bytes[..accepted]);
}

#[test]
fn a_command_that_copies_gets_every_byte() {
    let (mut reader, pipe) = std::io::pipe().unwrap();
    let reading = thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).map(|_| all)
    });
    let bytes = pattern(5 * MIB);
    let mut writer =
        builder().command(Command::new(["dd", "bs=100000", "status=none"]).stdout(Stdout::Fd(pipe.into()))).unwrap();
    bytes.chunks(999).for_each(|record| writer.write(record).unwrap());
    writer.close().unwrap();
    assert!(reading.join().unwrap().unwrap() == bytes);
}

#[test]
fn other_files_than_pipes_are_written_normally() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let bytes = pattern(3 * MIB);
    let mut writer = builder().path(&path).unwrap();
    bytes.chunks(999).for_each(|record| writer.write(record).unwrap());
    writer.close().unwrap();
    assert!(fs::read(&path).unwrap() == bytes);
}
