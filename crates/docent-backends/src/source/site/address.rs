//! Decides which network addresses a crawl may connect to.
//!
//! Names are resolved only here, and connections go to the addresses that were checked, so that a name cannot
//! resolve to another address between the check and the request.
//!
//! Invariant: unless private addresses are allowed, no connection is opened to one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// How far a crawl may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The public internet.
    Public,
    /// Also this machine and private networks.
    Everything,
    /// Only this address.
    #[cfg(test)]
    Only(IpAddr),
}

/// A name or an address is in a private network.
#[derive(Debug, Clone, Copy, Error)]
#[error("it leads to a private address")]
pub struct PrivateAddress;

impl Reach {
    /// Whether a connection to this address is allowed.
    pub fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Everything => true,
            #[cfg(test)]
            Self::Only(only) => address == only,
        }
    }

    /// Checks a literal IP address in a URL; names are checked when they are resolved.
    pub fn check(self, url: &Url) -> Result<(), PrivateAddress> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) if !self.allows(address) => Err(PrivateAddress),
            _ => Ok(()),
        }
    }
}

/// Resolves names and rejects those that point into a private network.
#[derive(Debug)]
pub struct CheckedResolver {
    /// How far it may reach.
    pub reach: Reach,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // A name with both private and public addresses is rejected altogether.
            if found.iter().any(|address| !reach.allows(address.ip())) {
                return Err(PrivateAddress.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether an address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        // "This network", carrier-grade NAT, protocol assignments, benchmarks, multicast, reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 224;
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Embedded IPv4 addresses are checked as such.
    let inside = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => address != Ipv6Addr::LOCALHOST && inside(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inside(high, low),
        [0x2002, high, low, ..] => inside(high, low),
        // Teredo and other protocol assignments, and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_recognized_in_every_notation() {
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.7",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:0a00:0001::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn private_addresses_in_urls_are_rejected_in_every_notation() {
        for url in ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]:80/"] {
            assert!(Reach::Public.check(&Url::parse(url).unwrap()).is_err(), "{url}");
        }
        assert!(Reach::Public.check(&Url::parse("https://example.org/").unwrap()).is_ok());
    }
}
