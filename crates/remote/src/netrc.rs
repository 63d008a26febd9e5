//! The user and the password of a web server from the file `.netrc`.

use std::path::PathBuf;

use millstream_core::error::{Error, ErrorKind, Result};
use netrc_rs::Netrc;
use url::Url;

/// Adds the user and the password of the URL's host, or of `default`, if the file has them.
pub(crate) fn add_login(url: &mut Url) -> Result<()> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".netrc"));
    let path = std::env::var_os("NETRC").map(PathBuf::from).or_else(home).unwrap_or_default();
    let text = std::fs::read_to_string(&path).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    let entries: String =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    // Messages of the parser may contain a password.
    let file = Netrc::parse(entries, false).map_err(|_| invalid(format!("{}, which is invalid", path.display())))?;
    let find = |host: Option<&str>| file.machines.iter().find(|machine| machine.name.as_deref() == host);
    if let Some(machine) = url.host_str().and_then(|host| find(Some(host))).or_else(|| find(None)) {
        // Only URLs without a host have no user.
        let _ = url.set_username(machine.login.as_deref().unwrap_or_default());
        let _ = url.set_password(machine.password.as_deref());
    }
    Ok(())
}

fn invalid(found: String) -> Error {
    Error::new(ErrorKind::InvalidOption)
        .with_found(found)
        .with_expected("a file with `machine HOST login USER password PASSWORD`, without quotes")
}
