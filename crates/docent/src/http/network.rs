//! The address that counts as one client, for connections and for rate limits alike.
//!
//! Invariant: a client cannot get more addresses than its provider gave it networks.

use std::net::{IpAddr, Ipv6Addr};

/// The address that identifies a client. An IPv6 client controls its whole /64 network, so that is one
/// client.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}
