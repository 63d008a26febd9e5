//! Connections as sinks: TCP and Unix sockets.
//!
//! Of a connection we know only that the system took the bytes, never that the peer read them. Looking up a name
//! and connecting cannot be interrupted by a cancel token; a stall timeout limits connecting by TCP.

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::sink::fd::{FdSink, Handle};
use crate::sink::{Limits, Opened};

/// Connects to a TCP address.
pub(crate) fn tcp(addr: impl ToSocketAddrs + fmt::Display, limits: &Limits) -> Result<Opened> {
    let name = format!("tcp:{addr}");
    let stream = connect(&addr, limits.stall)
        // The writer collects small records itself; Nagle's algorithm would hold back the end of each flush.
        .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
        .map_err(|error| Error::new(ErrorKind::OpenFailed).with_name(&name).with_io(error))?;
    let (sink, medium) = FdSink::new(Handle::Owned(stream.into()), limits.wait())?;
    Ok(Opened::new(sink, name, medium))
}

fn connect(addr: &impl ToSocketAddrs, limit: Option<Duration>) -> io::Result<TcpStream> {
    let Some(limit) = limit else {
        return TcpStream::connect(addr);
    };
    let mut result = Err(io::Error::new(io::ErrorKind::InvalidInput, "the name has no address"));
    for addr in addr.to_socket_addrs()? {
        result = TcpStream::connect_timeout(&addr, limit);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Connects to a Unix stream socket.
pub(crate) fn unix(path: &Path, limits: &Limits) -> Result<Opened> {
    let name = format!("unix:{}", path.display());
    let stream =
        UnixStream::connect(path).map_err(|error| Error::new(ErrorKind::OpenFailed).with_name(&name).with_io(error))?;
    let (sink, medium) = FdSink::new(Handle::Owned(stream.into()), limits.wait())?;
    Ok(Opened::new(sink, name, medium))
}
