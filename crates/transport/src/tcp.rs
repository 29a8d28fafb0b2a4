//! TCP connections: names become addresses, and the addresses race (Happy Eyeballs, RFC 8305).

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::Error;
use crate::settings::{AddressFamily, AddressPolicy};

/// Pause before the next address is tried beside those still connecting (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Addresses tried at most for one connection; a host with more is found by its first ones.
const ATTEMPTS_MAX: usize = 16;

/// Pause between keep-alive probes once the first went unanswered.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Connects to `host`, a name or an address without brackets.
///
/// Fixed addresses of the policy go before the resolver. The first connection made wins; the
/// other attempts are dropped. Nagle's delay is off, since requests are written whole.
///
/// # Errors
/// [`Error::Resolve`] when the name has no address of the families allowed, [`Error::Connect`]
/// with the address that failed last when none answers. There is no time-out here: the caller
/// has one over the whole of dialling, and `resolved` tells it that the addresses are known.
pub(crate) async fn dial(
    host: &str,
    port: u16,
    addresses: &AddressPolicy,
    keepalive: Option<Duration>,
    resolved: impl FnOnce(),
) -> Result<TcpStream, Error> {
    let candidates = resolve(host, port, addresses).await?;
    resolved();
    let stream = race(candidates, ATTEMPT_DELAY).await.map_err(|(address, source)| {
        let target =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Error::Connect { target, address, source }
    })?;
    stream.set_nodelay(true)?;
    if let Some(time) = keepalive {
        let probes = TcpKeepalive::new().with_time(time).with_interval(KEEPALIVE_INTERVAL);
        SockRef::from(&stream).set_tcp_keepalive(&probes)?;
    }
    Ok(stream)
}

/// The addresses to try, best first; never empty.
async fn resolve(host: &str, port: u16, policy: &AddressPolicy) -> Result<Vec<SocketAddr>, Error> {
    let fail = |source| Error::Resolve { host: host.to_owned(), source };
    let found: Vec<SocketAddr> = match overridden(host, port, policy) {
        Some(addresses) => addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect(),
        None => match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => tokio::net::lookup_host((host, port)).await.map_err(fail)?.collect(),
        },
    };
    let candidates = interleave(found, policy.family);
    if candidates.is_empty() {
        let reason = match policy.family {
            AddressFamily::Any => "it has no address",
            AddressFamily::V4 => "it has no IPv4 address",
            AddressFamily::V6 => "it has no IPv6 address",
        };
        return Err(fail(io::Error::new(io::ErrorKind::AddrNotAvailable, reason)));
    }
    Ok(candidates)
}

fn overridden<'a>(host: &str, port: u16, policy: &'a AddressPolicy) -> Option<&'a [IpAddr]> {
    policy
        .overrides
        .iter()
        .find(|entry| entry.port == port && entry.host.eq_ignore_ascii_case(host))
        .map(|entry| entry.addresses.as_slice())
}

/// Keeps the families allowed and lets them alternate, the resolver's first family first, each
/// in the resolver's order (RFC 8305 §4).
fn interleave(found: Vec<SocketAddr>, family: AddressFamily) -> Vec<SocketAddr> {
    let mut unique: Vec<SocketAddr> = Vec::with_capacity(found.len());
    for address in found {
        let allowed = match family {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        };
        if allowed && !unique.contains(&address) {
            unique.push(address);
        }
    }
    let Some(first_is_v6) = unique.first().map(SocketAddr::is_ipv6) else { return unique };
    let (mut preferred, mut other): (Vec<_>, Vec<_>) =
        unique.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut ordered = Vec::with_capacity(preferred.len() + other.len());
    preferred.reverse();
    other.reverse();
    while !(preferred.is_empty() && other.is_empty()) {
        ordered.extend(preferred.pop());
        ordered.extend(other.pop());
    }
    ordered.truncate(ATTEMPTS_MAX);
    ordered
}

/// Starts the attempts one after another, `delay` apart or at once when one fails, and takes the
/// first connection made. `candidates` is not empty.
async fn race(
    candidates: Vec<SocketAddr>,
    delay: Duration,
) -> Result<TcpStream, (SocketAddr, io::Error)> {
    let mut waiting = candidates.into_iter();
    // Dropping the set cancels what still connects.
    let mut attempts = JoinSet::new();
    let mut start_next = |attempts: &mut JoinSet<_>| {
        if let Some(address) = waiting.next() {
            attempts.spawn(async move {
                TcpStream::connect(address).await.map_err(|error| (address, error))
            });
        }
        (Instant::now() + delay, waiting.len() > 0)
    };
    let (mut due, mut more) = start_next(&mut attempts);
    loop {
        tokio::select! {
            joined = attempts.join_next() => match joined {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(failed))) => {
                    if !more && attempts.is_empty() {
                        return Err(failed);
                    }
                    if more {
                        (due, more) = start_next(&mut attempts);
                    }
                }
                // An attempt neither panics nor is aborted while the set lives.
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                None => unreachable!("an attempt is running or the race has ended"),
            },
            () = tokio::time::sleep_until(due), if more => {
                (due, more) = start_next(&mut attempts);
            }
        }
    }
}
