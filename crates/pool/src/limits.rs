//! Named limits of the pool.

use std::time::Duration;

/// Connections to one origin unless asked otherwise: what browsers use on HTTP/1.1 and what
/// servers expect from one client.
pub const CONNECTIONS_PER_ORIGIN_DEFAULT: usize = 6;

/// Connections in all unless asked otherwise; a plan over many origins stays below common
/// limits on open files.
pub const CONNECTIONS_IN_ALL_DEFAULT: usize = 128;

/// How long an unused connection is kept. Servers close theirs after 5 to 120 s; one that was
/// closed meanwhile is noticed and replaced.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// Streams on one HTTP/2 connection even where the server allows more: bounds memory.
pub const STREAMS_PER_CONNECTION_MAX: usize = 256;

/// Protocol errors on HTTP/2 connections, with no success between, after which an origin is
/// spoken to in HTTP/1.1.
pub const HTTP2_STRIKES_MAX: u32 = 3;

/// How long a lowered cap holds before one more connection is tried.
pub const CAP_RECOVERY: Duration = Duration::from_secs(30);

/// Limits of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections to one origin, both lanes together.
    pub connections_per_origin: usize,
    /// Connections to all origins together.
    pub connections_in_all: usize,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_per_origin: CONNECTIONS_PER_ORIGIN_DEFAULT,
            connections_in_all: CONNECTIONS_IN_ALL_DEFAULT,
            idle_timeout: IDLE_TIMEOUT_DEFAULT,
        }
    }
}
