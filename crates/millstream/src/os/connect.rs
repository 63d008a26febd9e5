//! Connects by TCP or to a Unix socket; a token or a time limit can interrupt this.
//!
//! Connecting to a host that does not answer takes minutes. Connecting to a Unix socket with a full queue blocks until
//! the queue has space. The lookup of a name, which the C library does, cannot be interrupted.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Wait;

/// Connects to the first address that answers. Each address has the time that `wait` allows. The socket is non-blocking
/// if `wait` is needed, because its users poll.
///
/// # Errors
/// Returns [`ErrorKind::OpenFailed`], or the error that ended the wait.
pub(crate) fn tcp(address: impl ToSocketAddrs, wait: &Wait) -> Result<OwnedFd> {
    if !wait.is_needed() {
        return TcpStream::connect(address).map(OwnedFd::from).map_err(open_failed);
    }
    let mut last = open_failed(io::Error::new(io::ErrorKind::InvalidInput, "the name does not resolve to an address"));
    for address in address.to_socket_addrs().map_err(open_failed)? {
        last = match connect(address, wait) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => error,
        }
    }
    Err(last)
}

/// The interval between attempts to connect to a Unix socket whose queue is full. There is no descriptor to poll.
const QUEUE_PATIENCE: Duration = Duration::from_millis(10);

/// Connects to a Unix stream socket. The socket is non-blocking if `wait` is needed.
///
/// # Errors
/// Returns the errors of [`tcp`].
pub(crate) fn unix(path: &Path, wait: &Wait) -> Result<OwnedFd> {
    if !wait.is_needed() {
        return UnixStream::connect(path).map(OwnedFd::from).map_err(open_failed);
    }
    let address = SocketAddrUnix::new(path).map_err(open_failed)?;
    let start = Instant::now();
    loop {
        let socket = new_socket(AddressFamily::UNIX).map_err(open_failed)?;
        match rustix::net::connect(&socket, &address) {
            Err(Errno::AGAIN) => {
                wait.expired(start)?;
                wait.sleep(QUEUE_PATIENCE)?;
            }
            Err(Errno::INTR) => wait.check()?,
            result => return result.map(|()| socket).map_err(open_failed),
        }
    }
}

fn open_failed(error: impl Into<io::Error>) -> Error {
    Error::new(ErrorKind::OpenFailed).with_io(error.into())
}

fn connect(address: SocketAddr, wait: &Wait) -> Result<OwnedFd> {
    let socket = new_socket(family(address)).map_err(open_failed)?;
    match rustix::net::connect(&socket, &address) {
        // The connection attempt continues whether or not the call was interrupted. When it completes, the socket is
        // writable and has the result.
        Err(Errno::INPROGRESS | Errno::INTR) => {
            wait.writable(socket.as_fd())?;
            sockopt::socket_error(&socket).and_then(|result| result).map_err(open_failed)?;
        }
        result => result.map_err(open_failed)?,
    }
    Ok(socket)
}

fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Creates a non-blocking socket that commands do not inherit.
#[cfg(not(target_vendor = "apple"))]
fn new_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    use rustix::net::SocketFlags;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Creates the same kind of socket on operating systems where this takes several steps. A command that another thread
/// starts between these steps inherits the socket.
#[cfg(target_vendor = "apple")]
fn new_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::cancel::CancelToken;
    use std::net::TcpListener;

    #[test]
    fn it_connects_or_reports_the_reason() {
        // No other test uses this address, so no other process listens on the port after this one.
        let listener = TcpListener::bind("127.0.0.96:0").unwrap();
        let address = listener.local_addr().unwrap();
        let wait = Wait::new(Some(CancelToken::new().unwrap()), None);
        tcp(address, &wait).unwrap();
        tcp(address, &Wait::default()).unwrap();
        drop(listener);
        for wait in [wait, Wait::default()] {
            let error = tcp(address, &wait).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OpenFailed);
            assert_eq!(error.errno(), Some(Errno::CONNREFUSED.raw_os_error()));
            assert_eq!(tcp("no port", &wait).unwrap_err().kind(), ErrorKind::OpenFailed);
        }
    }

    /// A listener that accepts no connection: once its queue is full, connecting waits.
    #[test]
    fn connecting_to_a_silent_host_can_be_interrupted() {
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
        let limited = Wait::new(None, Some(Duration::from_millis(200)));
        let mut waiting = Vec::new();
        let error = loop {
            match tcp(address, &limited) {
                Ok(socket) => waiting.push(socket),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100, "the queue of a listener that never accepts should fill up");
        };
        assert_eq!(error.kind(), ErrorKind::Stalled);

        let token = CancelToken::new().unwrap();
        token.cancel();
        let error = tcp(address, &Wait::new(Some(token), None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[cfg(target_os = "linux")] // other systems refuse if the queue is full
    #[test]
    fn connecting_to_a_socket_whose_queue_is_full_can_be_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let limited = Wait::new(None, Some(Duration::from_millis(50)));
        let mut waiting = Vec::new();
        let error = loop {
            match unix(&path, &limited) {
                Ok(socket) => waiting.push(socket),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100, "the queue should fill up");
        };
        assert_eq!(error.kind(), ErrorKind::Stalled);
        let token = CancelToken::new().unwrap();
        let canceller = token.clone();
        let cancelling = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            canceller.cancel();
        });
        assert_eq!(unix(&path, &Wait::new(Some(token), None)).unwrap_err().kind(), ErrorKind::Cancelled);
        cancelling.join().unwrap();
        assert_eq!(unix(Path::new("/nowhere"), &limited).unwrap_err().kind(), ErrorKind::OpenFailed);
    }
}
