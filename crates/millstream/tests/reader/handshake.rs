//! A producer that waits for an answer to each line never stalls: data that has arrived is always delivered.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use millstream::frame::{Fixed, Lines};
use millstream::{Command, Reader};

use crate::deadline::within_seconds;
use crate::every_way::{Mode, every_mode};

const ROUNDS: usize = 300;

/// Prints line k + 1 only after it has read the answer to line k.
const PRODUCER: &str = r#"
i=0
while [ $i -lt "$0" ]; do
    echo "line $i"
    read -r answer || exit 4
    [ "$answer" = "answer $i" ] || exit 5
    i=$((i + 1))
done"#;

/// The same producer, as a thread on any stream.
fn produce(mut stream: impl Read + Write) {
    for i in 0..ROUNDS {
        stream.write_all(format!("line {i}\n").as_bytes()).unwrap();
        let expected = format!("answer {i}\n");
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, expected.as_bytes());
    }
}

/// The ways in which the consumer takes a line.
#[derive(Clone, Copy, Debug)]
enum Take {
    Line,
    Batch,
    Fill,
    Std,
}

const EVERY_TAKE: [Take; 4] = [Take::Line, Take::Batch, Take::Fill, Take::Std];

/// Takes all lines and answers each. If the reader held one back, both sides would wait indefinitely.
fn answer_each(reader: &mut Reader, take: Take, answers: &mut impl Write) {
    for i in 0..ROUNDS {
        let expected = format!("line {i}\n");
        match take {
            Take::Line => assert_eq!(reader.next_line().unwrap().unwrap(), expected.trim_end().as_bytes()),
            Take::Batch => {
                let batch = reader.next_batch(&mut Lines::new()).unwrap().unwrap();
                assert_eq!((batch.len(), batch.bytes()), (1, expected.as_bytes()));
            }
            Take::Fill => {
                while reader.buffer().len() < expected.len() {
                    assert!(reader.fill().unwrap() > 0);
                }
                assert_eq!(reader.buffer(), expected.as_bytes());
                reader.consume(expected.len());
            }
            Take::Std => {
                let mut line = String::new();
                std::io::BufRead::read_line(reader, &mut line).unwrap();
                assert_eq!(line, expected);
            }
        }
        answers.write_all(format!("answer {i}\n").as_bytes()).unwrap();
    }
    assert_eq!(reader.next_line().unwrap(), None);
}

fn every_case(case: impl Fn(Mode, Take) + Send + Copy + 'static) {
    for mode in every_mode() {
        for take in EVERY_TAKE {
            within_seconds(60, move || case(mode, take));
        }
    }
}

#[test]
fn of_a_command() {
    every_case(|mode, take| {
        let (stdin, mut answers) = std::io::pipe().unwrap();
        let command = Command::new(["sh", "-c", PRODUCER, &ROUNDS.to_string()]);
        let command = command.stdin(std::fs::File::from(OwnedFd::from(stdin)));
        let mut reader = mode.builder().command(command).unwrap();
        answer_each(&mut reader, take, &mut answers);
    });
}

#[test]
fn of_a_socket_pair() {
    every_case(|mode, take| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let producer = thread::spawn(move || produce(theirs));
        let mut reader = mode.builder().borrow_fd(&ours).unwrap();
        answer_each(&mut reader, take, &mut &ours);
        producer.join().unwrap();
    });
}

#[test]
fn of_a_tcp_connection() {
    every_case(|mode, take| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // The answers use another connection: this reader's connection is only read.
        let (mut answers, read_answers) = UnixStream::pair().unwrap();
        let producer = thread::spawn(move || {
            let (connection, _) = listener.accept().unwrap();
            connection.set_nodelay(true).unwrap();
            produce(TwoWay(read_answers, connection));
        });
        let mut reader = mode.builder().tcp(address).unwrap();
        answer_each(&mut reader, take, &mut answers);
        producer.join().unwrap();
    });
}

/// Reads one stream, writes another.
struct TwoWay<R, W>(R, W);

impl<R: Read, W> Read for TwoWay<R, W> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buf)
    }
}

impl<R, W: Write> Write for TwoWay<R, W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.1.write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.1.flush()
    }
}

/// The answers as they arrive, for a callback that has a line only after the answer to the previous one.
struct Answers(std::sync::mpsc::Sender<Vec<u8>>);

impl Write for Answers {
    fn write(&mut self, answer: &[u8]) -> std::io::Result<usize> {
        self.0.send(answer.to_vec()).unwrap();
        Ok(answer.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the next line's bytes, after waiting for the answer to the previous line.
fn line_after_answer(next: &mut usize, answers: &Receiver<Vec<u8>>, space: &mut [u8]) -> usize {
    if *next > 0 {
        assert_eq!(answers.recv().unwrap(), format!("answer {}\n", *next - 1).as_bytes());
    }
    if *next == ROUNDS {
        return 0;
    }
    let line = format!("line {next}\n");
    space[..line.len()].copy_from_slice(line.as_bytes());
    *next += 1;
    line.len()
}

#[test]
fn of_a_callback() {
    every_case(|mode, take| {
        let (send, answers) = channel();
        let mut next = 0;
        let callback = move |space: &mut [u8]| Ok(line_after_answer(&mut next, &answers, space));
        let mut reader = mode.builder().callback(callback).unwrap();
        answer_each(&mut reader, take, &mut Answers(send));
    });
}

#[test]
fn of_any_read() {
    struct Lines(usize, Receiver<Vec<u8>>);
    impl Read for Lines {
        fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
            Ok(line_after_answer(&mut self.0, &self.1, space))
        }
    }
    every_case(|mode, take| {
        let (send, answers) = channel();
        let mut reader = mode.builder().from_read(Lines(0, answers)).unwrap();
        answer_each(&mut reader, take, &mut Answers(send));
    });
}

/// Records with a length prefix are delivered as soon as their last byte has arrived: the reader does not wait for
/// any further byte.
#[test]
fn of_records_without_delimiters() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let producer = thread::spawn(move || {
                for i in 0..ROUNDS as u32 {
                    theirs.write_all(&i.to_le_bytes()).unwrap();
                    theirs.read_exact(&mut [0]).unwrap();
                }
            });
            let mut reader = mode.builder().borrow_fd(&ours).unwrap();
            let mut four = Fixed::new(4).unwrap();
            for i in 0..ROUNDS as u32 {
                assert_eq!(reader.next_frame(&mut four).unwrap().unwrap(), i.to_le_bytes());
                ours.write_all(b"!").unwrap();
            }
            assert_eq!(reader.next_frame(&mut four).unwrap(), None);
            producer.join().unwrap();
        });
    }
}

/// `fill` returns the available bytes, even if they are not a complete record.
#[test]
fn of_bytes_that_are_no_record_yet() {
    for mode in every_mode() {
        within_seconds(60, move || {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let producer = thread::spawn(move || {
                for _ in 0..ROUNDS {
                    theirs.write_all(b"x").unwrap();
                    theirs.read_exact(&mut [0]).unwrap();
                }
            });
            let mut reader = mode.builder().borrow_fd(&ours).unwrap();
            for unread in 1..=ROUNDS {
                assert_eq!(reader.fill().unwrap(), 1);
                assert_eq!(reader.buffer().len(), unread);
                ours.write_all(b"!").unwrap();
            }
            producer.join().unwrap();
            assert_eq!(reader.fill().unwrap(), 0);
            assert_eq!(reader.buffer(), vec![b'x'; ROUNDS]);
        });
    }
}
