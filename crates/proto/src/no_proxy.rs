//! NO_PROXY lists: which hosts are reached without the proxy.
//!
//! There is no standard; the forms understood are those of curl, wget and Go together: a host
//! name (its subdomains too), `.suffix` or `*.suffix` (the same), an address, a CIDR block, any of
//! these with `:port`, and `*` for everything. IPv6 addresses may stand in brackets, and need them
//! before a port.

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
    /// Reads a list separated by commas or blanks. Entries that make no sense match nothing: a
    /// variable set for another program must not stop this one.
    pub fn parse(text: &str) -> Self {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        Self { rules: entries.filter(|entry| !entry.is_empty()).filter_map(rule).collect() }
    }

    /// Whether a host is reached directly. The host is a name or an address as it stands in a URL,
    /// with or without brackets; names are not resolved.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = address(&host);
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
    let width = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let Some((network, bits)) = entry.split_once('/') else {
        return match address(entry) {
            Some(address) => Some(Hosts::Network { address, prefix_bits: width(address) }),
            None => domain(entry),
        };
    };
    // Not canonical as a single address is: the number counts the bits of what is written.
    let address = without_brackets(network).parse().ok()?;
    let prefix_bits = bits.parse().ok()?;
    (prefix_bits <= width(address)).then_some(Hosts::Network { address, prefix_bits })
}

/// An address, without its zone (`%eth0`); an IPv4 address in IPv6 clothes is an IPv4 address.
fn address(text: &str) -> Option<IpAddr> {
    let bare = without_brackets(text);
    let bare = bare.split_once('%').map_or(bare, |(address, _)| address);
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn without_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
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
        assert!(direct("::ffff:127.0.0.1", "127.0.0.1"));
        assert!(direct("[fe80::]/10\r\n", "[fe80::7%25eth0]"));
        assert!(direct("::/0", "[2001:db8::1]"));
        assert!(!direct("::/0", "10.0.0.1"));
        assert!(!direct("3.4", "1.2.3.4"));
        assert!(!direct("example", "10.0.0.1"));
    }

    #[test]
    fn a_port_narrows_an_entry() {
        let list = NoProxy::parse("internal.example:8443,[::1]:80,10.0.0.0/8:81");
        assert!(list.matches("internal.example", 8443));
        assert!(!list.matches("internal.example", 443));
        assert!(list.matches("::1", 80));
        assert!(!list.matches("::1", 81));
        assert!(list.matches("10.1.1.1", 81));
        assert!(
            NoProxy::parse("*:80").matches("h", 80) && !NoProxy::parse("*:80").matches("h", 81)
        );
    }

    #[test]
    fn nonsense_matches_nothing() {
        for list in
            ["", ",,", "/8", "10.0.0.0/99", "a:b:c", "http://h/", "h:http", "h:99999", ".", "[h]"]
        {
            assert!(!direct(list, "h"), "{list}");
        }
    }

    proptest! {
        #[test]
        fn no_list_panics(list in ".*", host in ".*", port: u16) {
            NoProxy::parse(&list).matches(&host, port);
        }

        #[test]
        fn an_address_matches_itself_and_its_blocks(host: IpAddr, bits in 0u8..=32, port: u16) {
            let bracketed = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
            for entry in [format!("{host}"), bracketed.clone(), format!("{bracketed}:{port}")] {
                prop_assert!(NoProxy::parse(&entry).matches(&host.to_string(), port), "{}", entry);
            }
            // Mapped addresses count as IPv4, so that a block written in IPv6 does not hold them.
            if host.to_canonical() == host {
                let list = format!("{host}/{bits}");
                prop_assert!(NoProxy::parse(&list).matches(&bracketed, port), "{}", list);
            }
        }
    }
}
