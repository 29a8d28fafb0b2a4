//! Counters: reuse is the promise, so it is shown.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one origin since the pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections opened, both lanes.
    pub connections: u64,
    /// The most connections that were open at one moment.
    pub connections_peak: u64,
    /// TLS handshakes with certificates and signatures.
    pub handshakes_full: u64,
    /// TLS handshakes by a ticket of an earlier session.
    pub handshakes_resumed: u64,
    /// Attempts to connect that failed.
    pub dials_failed: u64,
    /// Requests sent, retries included.
    pub requests: u64,
    /// Bytes received, heads included.
    pub bytes_received: u64,
    /// Bytes sent, heads included.
    pub bytes_sent: u64,
}

impl Stats {
    /// The sum over two origins; the peak is the larger sum of peaks, an upper bound.
    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            connections_peak: self.connections_peak + other.connections_peak,
            handshakes_full: self.handshakes_full + other.handshakes_full,
            handshakes_resumed: self.handshakes_resumed + other.handshakes_resumed,
            dials_failed: self.dials_failed + other.dials_failed,
            requests: self.requests + other.requests,
            bytes_received: self.bytes_received + other.bytes_received,
            bytes_sent: self.bytes_sent + other.bytes_sent,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) connections_peak: AtomicU64,
    pub(crate) handshakes_full: AtomicU64,
    pub(crate) handshakes_resumed: AtomicU64,
    pub(crate) dials_failed: AtomicU64,
    pub(crate) requests: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, bytes_received: u64, bytes_sent: u64) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            connections: get(&self.connections),
            connections_peak: get(&self.connections_peak),
            handshakes_full: get(&self.handshakes_full),
            handshakes_resumed: get(&self.handshakes_resumed),
            dials_failed: get(&self.dials_failed),
            requests: get(&self.requests),
            bytes_received,
            bytes_sent,
        }
    }
}
