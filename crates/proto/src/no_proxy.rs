//! NO_PROXY lists: which hosts are reached without the proxy.
//!
//! There is no standard; the forms understood are those of curl, wget and Go together: a host
//! name (its subdomains too), `.suffix`, an address, a CIDR block, any of these with `:port`,
//! and `*` for everything.

use std::convert::Infallible;
use std::net::IpAddr;
use std::str::FromStr;

/// A parsed list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// The name itself and everything under it, lower case, without a leading dot.
    Domain(String),
    Network {
        address: IpAddr,
        prefix_bits: u8,
    },
}

impl NoProxy {
    /// Reads a list separated by commas or blanks. Entries that make no sense match nothing.
    pub fn parse(text: &str) -> Self {
        let entries = text.split([',', ' ', '\t', '\n']).filter(|entry| !entry.is_empty());
        Self { rules: entries.filter_map(rule).collect() }
    }

    /// Whether a host is reached directly. The host may be a name or an address, without
    /// brackets.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        self.rules.iter().any(|rule| {
            rule.port.is_none_or(|only| only == port)
                && match &rule.hosts {
                    Hosts::All => true,
                    Hosts::Domain(domain) => address.is_none() && is_within(&host, domain),
                    Hosts::Network { address: network, prefix_bits } => {
                        address.is_some_and(|address| contains(*network, *prefix_bits, address))
                    }
                }
        })
    }
}

impl FromStr for NoProxy {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::parse(text))
    }
}

fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn rule(entry: &str) -> Option<Rule> {
    if let Some(hosts) = hosts(entry) {
        return Some(Rule { hosts, port: None });
    }
    let (host, port) = entry.rsplit_once(':')?;
    Some(Rule { hosts: hosts(host)?, port: Some(port.parse().ok()?) })
}

fn hosts(entry: &str) -> Option<Hosts> {
    if entry == "*" {
        return Some(Hosts::All);
    }
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    let (address, bits) = match bare.split_once('/') {
        Some((address, bits)) => (address.parse::<IpAddr>().ok()?, Some(bits.parse::<u8>().ok()?)),
        None => match bare.parse::<IpAddr>() {
            Ok(address) => (address, None),
            Err(_) => return domain(entry),
        },
    };
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = bits.unwrap_or(width);
    (prefix_bits <= width).then_some(Hosts::Network { address, prefix_bits })
}

fn domain(entry: &str) -> Option<Hosts> {
    let name = entry.strip_prefix('*').unwrap_or(entry);
    let name = name.trim_matches('.').to_ascii_lowercase();
    let is_name = !name.is_empty() && !name.contains([':', '/', '[', ']', '*']);
    is_name.then_some(Hosts::Domain(name))
}

fn contains(network: IpAddr, prefix_bits: u8, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let shift = 32 - u32::from(prefix_bits);
            let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
            u32::from(network) & mask == u32::from(address) & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let shift = 128 - u32::from(prefix_bits);
            let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
            u128::from(network) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn direct(list: &str, host: &str) -> bool {
        NoProxy::parse(list).matches(host, 443)
    }

    #[test]
    fn every_form_of_an_entry() {
        assert!(direct("*", "anything.example"));
        assert!(direct("internal.example", "internal.example"));
        assert!(direct("internal.example", "a.INTERNAL.example."));
        assert!(!direct("internal.example", "notinternal.example"));
        assert!(direct(".corp.example", "a.corp.example"));
        assert!(direct(".corp.example", "corp.example"));
        assert!(direct("*.corp.example", "a.corp.example"));
        assert!(direct("10.0.0.1", "10.0.0.1"));
        assert!(direct("10.0.0.0/8, 192.168.0.0/16", "192.168.7.7"));
        assert!(!direct("10.0.0.0/8", "11.0.0.1"));
        assert!(direct("0.0.0.0/0", "8.8.8.8"));
        assert!(direct("[::1],fe80::/10", "fe80::7"));
        assert!(direct("::1", "::1"));
        assert!(direct("localhost 127.0.0.1", "127.0.0.1"));
        assert!(direct("127.0.0.1", "::ffff:127.0.0.1"));
    }

    #[test]
    fn a_port_narrows_an_entry() {
        let list = NoProxy::parse("internal.example:8443,[::1]:80,10.0.0.0/8:81");
        assert!(list.matches("internal.example", 8443));
        assert!(!list.matches("internal.example", 443));
        assert!(list.matches("::1", 80));
        assert!(!list.matches("::1", 81));
        assert!(list.matches("10.1.1.1", 81));
    }

    #[test]
    fn nonsense_matches_nothing() {
        for list in ["", ",,", "/8", "10.0.0.0/99", "a:b:c", "http://h/"] {
            assert!(!direct(list, "h"), "{list}");
        }
    }

    proptest! {
        #[test]
        fn no_list_panics(list in ".*", host in ".*", port: u16) {
            NoProxy::parse(&list).matches(&host, port);
        }
    }
}
