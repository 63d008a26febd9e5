//! Connections as sinks: TCP and Unix sockets.
//!
//! Of a connection we know only that the system took the bytes, never that the peer read them.

use std::fmt;
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::connect;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::fd::{FdSink, Handle};
use crate::sink::{Limits, Opened};

/// Connects to a TCP address.
pub(crate) fn tcp(address: impl ToSocketAddrs + fmt::Display, limits: &Limits) -> Result<Opened> {
    let name = format!("tcp:{address}");
    let connection = connect::tcp(address, &limits.wait()).map_err(|error| error.with_name(&name))?;
    // The writer collects small records itself; Nagle's algorithm would only hold back the end of each flush. Where
    // it cannot be switched off, the bytes arrive all the same.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&connection, true);
    open(connection, name, limits)
}

/// Connects to a Unix stream socket.
pub(crate) fn unix(path: &Path, limits: &Limits) -> Result<Opened> {
    let name = format!("unix:{}", path.display());
    match UnixStream::connect(path) {
        Ok(connection) => open(connection.into(), name, limits),
        Err(error) => Err(Error::new(ErrorKind::OpenFailed).with_name(name).with_io(error)),
    }
}

fn open(connection: OwnedFd, name: String, limits: &Limits) -> Result<Opened> {
    let (sink, medium) = FdSink::new(Handle::Owned(connection), limits.wait())?;
    Ok(Opened::new(sink, name, medium))
}
