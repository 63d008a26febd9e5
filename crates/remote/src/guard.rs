//! Refuses the addresses where clouds keep the credentials of a machine: a URL, a redirect or a name of the domain name
//! system may lead there without the user's intention.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// A refused address.
#[derive(Debug)]
pub(crate) struct Refused(IpAddr);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the link-local address {}, where clouds keep credentials", self.0)
    }
}

impl std::error::Error for Refused {}

/// Checks the address, if the URL contains one instead of a name.
pub(crate) fn check(url: &Url) -> Result<(), Refused> {
    match url.host() {
        Some(Host::Ipv4(address)) => check_address(address.into()),
        Some(Host::Ipv6(address)) => check_address(address.into()),
        _ => Ok(()),
    }
}

fn check_address(address: IpAddr) -> Result<(), Refused> {
    // Alibaba's metadata service is not at a link-local address.
    let is_local = |v4: Ipv4Addr| v4.is_link_local() || v4 == Ipv4Addr::new(100, 100, 100, 200);
    let is_refused = match address {
        IpAddr::V4(v4) => is_local(v4),
        IpAddr::V6(v6) => {
            // Amazon's metadata service has an address in the range of private networks.
            let amazon = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
            v6.is_unicast_link_local() || v6 == amazon || v6.to_ipv4().is_some_and(is_local)
        }
    };
    if is_refused { Err(Refused(address)) } else { Ok(()) }
}

/// Resolves names as the system does, and refuses names that lead to a refused address.
pub(crate) struct Guarded;

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port is replaced by the URL's.
            Ok(checked(tokio::net::lookup_host((name.as_str(), 0)).await?.collect())?)
        })
    }
}

/// Returns the addresses of a name, unless one of them is refused.
fn checked(found: Vec<SocketAddr>) -> Result<Addrs, Refused> {
    found.iter().try_for_each(|address| check_address(address.ip()))?;
    Ok(Box::new(found.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::runtime;

    #[test]
    fn metadata_services_are_refused_however_they_are_written() {
        for host in [
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "[fe80::1]",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[fd00:ec2::254]",
            "100.100.100.200",
        ] {
            assert!(check(&Url::parse(&format!("http://{host}/")).unwrap()).is_err(), "{host}");
        }
        for host in ["127.0.0.1", "10.0.0.1", "[::1]", "example.org", "192.168.0.1"] {
            assert!(check(&Url::parse(&format!("http://{host}/")).unwrap()).is_ok(), "{host}");
        }
    }

    #[test]
    fn names_that_lead_to_metadata_services_are_refused() {
        let found = |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
        let harmless = found(&["192.0.2.1:0", "[2001:db8::1]:0"]);
        assert_eq!(checked(harmless.clone()).ok().map(Iterator::collect), Some(harmless));
        for addresses in [
            &["169.254.169.254:0"][..],
            &["192.0.2.1:0", "169.254.169.254:0"],
            &["[2001:db8::1]:0", "[fd00:ec2::254]:0"],
            &["[::ffff:169.254.169.254]:0", "192.0.2.1:0"],
        ] {
            assert!(checked(found(addresses)).is_err(), "{addresses:?}");
        }
        // The system resolves a number as it resolves a name.
        let resolve = |name: &str| runtime().unwrap().block_on(Guarded.resolve(name.parse().unwrap()));
        let error = resolve("169.254.169.254").err().unwrap();
        assert!(error.is::<Refused>(), "{error}");
        assert!(resolve("127.0.0.1").is_ok());
    }
}
