//! Sources with all kinds of difficult behaviour that the operating system allows: one byte at a time, interrupted
//! calls, non-blocking descriptors, and errors in the middle.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use millstream::{ErrorKind, Reader};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::alone::alone;
use crate::deadline::within_seconds;
use crate::every_way::{EVERY_PULL, EVERY_READ_AHEAD, Pull, drain, drain_whole, every_mode};
use crate::sample;

/// Returns small numbers that look random and are the same in each run (the high bits of an LCG).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// Delivers its bytes in small pieces between many interruptions.
struct Stormy {
    bytes: Vec<u8>,
    at: usize,
    largest_piece: usize,
    dice: Dice,
}

impl Stormy {
    fn new(bytes: Vec<u8>, largest_piece: usize) -> Stormy {
        Stormy { bytes, at: 0, largest_piece, dice: Dice(largest_piece as u64) }
    }
}

impl Read for Stormy {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if self.dice.roll(3) > 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left = &self.bytes[self.at..];
        let n = left.len().min(space.len()).min(1 + self.dice.roll(self.largest_piece));
        space[..n].copy_from_slice(&left[..n]);
        self.at += n;
        Ok(n)
    }
}

#[test]
fn interrupted_calls_and_small_pieces() {
    let data = sample::lines(20_000);
    for mode in every_mode() {
        for pull in EVERY_PULL {
            for largest_piece in [1, 2, 700] {
                let mut reader = mode.builder().from_read(Stormy::new(data.clone(), largest_piece)).unwrap();
                assert!(drain_whole(&mut reader, pull) == data, "{mode:?} {pull:?} {largest_piece}");
                let mut source = Stormy::new(data.clone(), largest_piece);
                let mut reader = mode.builder().callback(move |space| source.read(space)).unwrap();
                assert!(drain_whole(&mut reader, pull) == data, "{mode:?} {pull:?} {largest_piece}");
            }
        }
    }
}

/// A source that reports that it has no data yet is read again. No byte is lost, and such a report is not treated as
/// the end.
#[test]
fn a_read_that_would_block_is_asked_again() {
    let data = sample::lines(3_000);
    for mode in every_mode() {
        let bytes = data.clone();
        let received = within_seconds(60, move || {
            let (mut at, mut calls) = (0, 0);
            let source = move |space: &mut [u8]| {
                calls += 1;
                if calls % 4 != 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let n = (bytes.len() - at).min(space.len()).min(300);
                space[..n].copy_from_slice(&bytes[at..at + n]);
                at += n;
                Ok(n)
            };
            drain_whole(&mut mode.builder().callback(source).unwrap(), Pull::Frames)
        });
        assert!(received == data, "{mode:?}");
    }
}

#[test]
fn an_error_in_the_middle_comes_once_after_all_bytes() {
    let data = sample::lines(10_000);
    for mode in every_mode() {
        for pull in EVERY_PULL {
            let broken = data.clone();
            let mut at = 0;
            let source = move |space: &mut [u8]| {
                if at == broken.len() {
                    return Err(io::Error::from_raw_os_error(5));
                }
                let n = (broken.len() - at).min(space.len()).min(999);
                space[..n].copy_from_slice(&broken[at..at + n]);
                at += n;
                Ok(n)
            };
            let mut reader = mode.builder().name("broken".to_string()).callback(source).unwrap();
            let (bytes, error) = drain(&mut reader, pull);
            assert!(bytes == data, "{mode:?} {pull:?}: {} bytes", bytes.len());
            let error = error.unwrap();
            assert_eq!((error.kind(), error.errno()), (ErrorKind::Io, Some(5)), "{error}");
            assert_eq!((error.name(), error.offset()), (Some("broken"), Some(data.len() as u64)), "{error}");
        }
    }
}

/// A callback that reports more bytes than fit has a bug. It never results in an incorrect byte.
#[test]
fn a_callback_that_lies_about_its_length() {
    for mode in every_mode() {
        let outcome = within_seconds(60, move || {
            std::panic::catch_unwind(move || {
                let mut reader = mode.builder().callback(|space| Ok(space.len() + 1)).unwrap();
                reader.next_line().map(|line| line.map(<[u8]>::len))
            })
        });
        if let Ok(Ok(line)) = outcome {
            panic!("{mode:?}: {line:?}");
        }
    }
}

/// A source that panics on the reading thread: the consumer is notified, and does not wait indefinitely.
#[test]
fn a_source_that_panics() {
    for mode in every_mode() {
        let outcome = within_seconds(60, move || {
            std::panic::catch_unwind(move || {
                let source = |_: &mut [u8]| panic!("the source's own bug");
                mode.builder().callback(source).unwrap().next_line().map(|line| line.map(<[u8]>::to_vec))
            })
        });
        if let Ok(Ok(line)) = outcome {
            panic!("{mode:?}: {line:?}");
        }
    }
}

fn set_nonblocking(fd: &impl std::os::fd::AsFd) {
    fcntl_setfl(fd, fcntl_getfl(fd).unwrap() | OFlags::NONBLOCK).unwrap();
}

#[test]
fn a_descriptor_that_would_block_is_waited_for() {
    let data = sample::lines(300_000);
    for mode in every_mode() {
        for pull in [Pull::Fill, Pull::Frames] {
            let sent = data.clone();
            let received = within_seconds(60, move || {
                let (pipe, mut writer) = io::pipe().unwrap();
                set_nonblocking(&pipe);
                let writer = thread::spawn(move || {
                    let mut dice = Dice(1);
                    let mut rest = &sent[..];
                    while !rest.is_empty() {
                        let n = rest.len().min(1 + dice.roll(20_000));
                        writer.write_all(&rest[..n]).unwrap();
                        rest = &rest[n..];
                        if dice.roll(3) == 0 {
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                let received = drain_whole(&mut mode.builder().fd(pipe).unwrap(), pull);
                writer.join().unwrap();
                received
            });
            assert!(received == data, "{mode:?} {pull:?}");
        }
    }
}

/// Other processes may share a descriptor that the reader did not open, so its flags must not be changed.
#[test]
fn flags_of_a_descriptor_are_left_alone() {
    for read_ahead in EVERY_READ_AHEAD {
        for nonblocking in [false, true] {
            let (pipe, mut writer) = io::pipe().unwrap();
            if nonblocking {
                set_nonblocking(&pipe);
            }
            let before = fcntl_getfl(&pipe).unwrap();
            let mut reader = Reader::builder().read_ahead(read_ahead).borrow_fd(&pipe).unwrap();
            writer.write_all(b"x\n").unwrap();
            reader.next_line().unwrap();
            assert_eq!(fcntl_getfl(&pipe).unwrap(), before);
            drop(writer);
            assert_eq!(reader.next_line().unwrap(), None);
            assert_eq!(fcntl_getfl(&pipe).unwrap(), before);
        }
    }
}

/// A blocked call must not poll repeatedly.
#[test]
fn waiting_costs_no_processor_time() {
    alone("faulty_sources::waiting_costs_no_processor_time", &[], || {
        for mode in every_mode() {
            for nonblocking in [false, true] {
                let (pipe, mut writer) = io::pipe().unwrap();
                if nonblocking {
                    set_nonblocking(&pipe);
                }
                let writer = thread::spawn(move || {
                    for _ in 0..4 {
                        thread::sleep(Duration::from_millis(100));
                        writer.write_all(b"x\n").unwrap();
                    }
                });
                drain_whole(&mut mode.builder().fd(pipe).unwrap(), Pull::Frames);
                writer.join().unwrap();
            }
        }
        // The reader waits 12 times for 0.4 s; a busy loop would use nearly all of these 4.8 s.
        let used = processor_seconds();
        assert!(used < 1.5, "{used} s of processor time while waiting");
    });
}

/// Returns the processor time of this process so far, in seconds.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes that arrived before a connection broke are delivered before the error.
#[test]
fn a_connection_that_is_reset() {
    use std::net::{TcpListener, TcpStream};
    for mode in every_mode() {
        within_seconds(60, move || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut reader = mode.builder().tcp(listener.local_addr().unwrap()).unwrap();
            let (mut connection, _): (TcpStream, _) = listener.accept().unwrap();
            connection.write_all(b"all there is\n").unwrap();
            assert_eq!(reader.next_line().unwrap(), Some(&b"all there is"[..]));
            // With a linger time of zero, closing sends a reset instead of an orderly end.
            rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO)).unwrap();
            drop(connection);
            let error = reader.next_line().unwrap_err();
            assert_eq!(error.io().unwrap().kind(), io::ErrorKind::ConnectionReset, "{error}");
            assert_eq!(reader.next_line().unwrap(), None);
        });
    }
}

/// An error is not the end of a record: the part that it cut off can still be read, but is not a record.
#[test]
fn a_record_cut_off_by_an_error_is_none() {
    for mode in every_mode() {
        for read_line in [true, false] {
            let mut pieces = vec![Err(io::Error::other("unplugged")), Ok(&b"whole\ntorn"[..])];
            let mut reader = mode
                .builder()
                .callback(move |space| {
                    let piece = pieces.pop().unwrap_or(Ok(b""))?;
                    space[..piece.len()].copy_from_slice(piece);
                    Ok(piece.len())
                })
                .unwrap();
            let mut next = || {
                let record = match read_line {
                    true => reader.next_line(),
                    false => reader.next_frame(&mut millstream::frame::Lines::new()),
                };
                record.map(|record| record.map(<[u8]>::to_vec))
            };
            assert_eq!(next().unwrap(), Some(b"whole".to_vec()), "{mode:?}");
            assert_eq!(next().unwrap_err().kind(), ErrorKind::Io, "{mode:?}");
            assert_eq!(next().unwrap(), None, "{mode:?}");
            assert_eq!(reader.buffer(), b"torn", "{mode:?}");
        }
    }
}
