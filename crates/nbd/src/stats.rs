//! Counters of what was served.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters shared by all sessions of a server. Each only grows.
#[derive(Debug, Default)]
pub struct ServeStats {
    pub(crate) clients: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) other_requests: AtomicU64,
    pub(crate) failed_requests: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeCounts {
    /// Clients that entered transmission.
    pub clients: u64,
    /// Read requests.
    pub reads: u64,
    /// Bytes asked for by them.
    pub read_bytes: u64,
    /// Write requests, zeroing and trimming included.
    pub writes: u64,
    /// Bytes of payload of writes.
    pub written_bytes: u64,
    /// All other requests.
    pub other_requests: u64,
    /// Requests answered with an error.
    pub failed_requests: u64,
}

impl ServeStats {
    /// The counters now.
    pub fn counts(&self) -> ServeCounts {
        ServeCounts {
            clients: self.clients.load(Relaxed),
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            other_requests: self.other_requests.load(Relaxed),
            failed_requests: self.failed_requests.load(Relaxed),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Relaxed);
}
