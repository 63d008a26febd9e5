//! Connections as sinks: TCP and Unix sockets.
//!
//! During writing it is only known that the kernel has accepted the bytes. Closing waits until the peer confirms that
//! it has read them: see [`linger`](crate::os::sink::linger).

use std::fmt;
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::error::Result;
use crate::os::connect;
use crate::os::sink::fd::{FdSink, Handle};
use crate::sink::{Limits, Opened};

/// Connects to a TCP address.
pub(crate) fn tcp(address: impl ToSocketAddrs + fmt::Display, limits: &Limits) -> Result<Opened> {
    let name = format!("tcp:{address}");
    let connection = connect::tcp(address, &limits.wait()).map_err(|error| error.with_name(&name))?;
    // The writer collects small records itself; Nagle's algorithm would only delay the end of each flush. If it cannot
    // be disabled, the bytes arrive anyway.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&connection, true);
    open(connection, name, limits)
}

/// Connects to a Unix stream socket.
pub(crate) fn unix(path: &Path, limits: &Limits) -> Result<Opened> {
    let name = format!("unix:{}", path.display());
    let connection = connect::unix(path, &limits.wait()).map_err(|error| error.with_name(&name))?;
    open(connection, name, limits)
}

fn open(connection: OwnedFd, name: String, limits: &Limits) -> Result<Opened> {
    let (sink, medium) = FdSink::new(Handle::Owned(connection), limits.wait())?;
    let sink = sink.ending_connection(limits).map_err(|error| error.with_name(&name))?;
    Ok(Opened::new(sink, name, medium))
}
