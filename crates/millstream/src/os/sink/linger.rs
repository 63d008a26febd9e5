//! Ends a connection: the writing side is shut down, and the peer confirms that it has read all bytes by closing its
//! own side.
//!
//! close(2) alone is not enough. If the peer has sent data that was not read, the kernel sends a reset, and the peer
//! loses bytes that write(2) has accepted. So data from the peer is read and discarded until its end. A reset is an
//! error, and so is a peer that does not close in time.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketType, recv, shutdown, sockopt};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;

/// The maximum number of bytes that are discarded at a time.
const PIECE: usize = 16 << 10;

/// The number of pieces that are discarded without waiting: a peer that keeps sending must not block the caller.
const MOST_PIECES: usize = 1024;

/// The state of ending a connection.
pub(crate) struct Linger {
    /// The time that the peer may take. With zero, the sink does not wait, and receipt is not confirmed.
    limit: Duration,
    /// The writing side has been shut down.
    has_ended: bool,
    /// The time at which the wait for the peer's end began. It is kept across calls that a token interrupts.
    since: Option<Instant>,
}

impl Linger {
    pub(crate) fn new(limit: Duration) -> Linger {
        Linger { limit, has_ended: false, since: None }
    }

    /// Ends the connection and waits for the peer's end. After an error the call may be repeated.
    pub(crate) fn close(&mut self, socket: BorrowedFd<'_>, wait: &Wait) -> Result<()> {
        if !self.has_ended {
            self.shut_down(socket).map_err(reset)?;
            self.has_ended = true;
        }
        if self.limit.is_zero() {
            for _ in 0..MOST_PIECES {
                match discard(socket) {
                    Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(reset(error)),
                }
            }
            return Ok(());
        }
        let start = *self.since.get_or_insert_with(Instant::now);
        loop {
            let left = self.limit.saturating_sub(start.elapsed());
            if left.is_zero() || !wait.poll(Some((socket, PollFlags::IN)), Some(left))? {
                self.since = None;
                return Err(self.unconfirmed());
            }
            match discard(socket) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(reset(error)),
            }
        }
    }

    fn shut_down(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        // An error that the peer caused before the shutdown is more informative than the shutdown's own.
        sockopt::socket_error(socket)??;
        match shutdown(socket, Shutdown::Write) {
            // On some operating systems, a connection that the peer has closed normally is no longer connected.
            Err(Errno::NOTCONN) if cfg!(target_vendor = "apple") => Ok(()),
            Err(Errno::NOTCONN) => Err(Errno::CONNRESET),
            done => done,
        }
    }

    fn unconfirmed(&self) -> Error {
        Error::new(ErrorKind::Stalled)
            .with_found(format!(
                "a connection that the peer has not closed {} s after this side",
                self.limit.as_secs_f64()
            ))
            .with_expected("the peer to read everything and then close, which confirms that it arrived")
    }
}

/// Returns whether a descriptor is a connection whose end the peer can see and confirm.
pub(crate) fn is_connection(fd: impl AsFd) -> bool {
    matches!(sockopt::socket_type(fd), Ok(SocketType::STREAM | SocketType::SEQPACKET))
}

/// Reads the data that has arrived, without waiting, and returns its length: 0 at the peer's end.
fn discard(socket: BorrowedFd<'_>) -> Result<usize, Errno> {
    recv(socket, &mut [0; PIECE][..], RecvFlags::DONTWAIT).map(|(_, len)| len)
}

fn reset(error: Errno) -> Error {
    Error::from_io(error.into()).with_expected("the peer to read everything and then close")
}
