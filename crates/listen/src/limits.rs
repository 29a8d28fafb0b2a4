//! What one server takes on, with a named default for each bound.

use std::time::Duration;

/// Connections served at once unless set otherwise: well under the usual 1,024 descriptors, with
/// room for the files a session opens.
pub const CONNECTIONS_MAX_DEFAULT: usize = 512;
/// How long a client may take over the TLS handshake, and over each request's head (which, on a
/// connection kept alive, includes the wait for the next request).
pub const HEADER_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// The largest request head: a URL, cookies and a token fit many times over.
pub const HEADER_BYTES_MAX_DEFAULT: usize = 64 << 10;
/// The largest request body unless set otherwise; a service of large bodies sets its own.
pub const BODY_BYTES_MAX_DEFAULT: u64 = 64 << 20;
/// HTTP/2 streams at once per connection (RFC 9113, section 6.5.2, advises no less than 100).
pub const H2_STREAMS_MAX_DEFAULT: u32 = 256;
/// HTTP/2 flow-control window per stream: a round trip of 100 ms at 80 Mbit/s.
pub const H2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// HTTP/2 flow-control window per connection.
pub const H2_CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// How often an HTTP/2 connection is probed, so that a client that vanished is noticed.
pub const H2_PING_INTERVAL: Duration = Duration::from_secs(60);
/// How long the answer to a probe may take.
pub const H2_PING_TIMEOUT: Duration = Duration::from_secs(30);

/// The bounds of a [`Server`](crate::Server).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections served at once; further ones wait, all but a few in the system's queue.
    pub connections_max: usize,
    /// Time for the TLS handshake, and for each request's head.
    pub header_timeout: Duration,
    /// Bytes of a request's head (HTTP/1.1: at least 8 KiB).
    pub header_bytes_max: usize,
    /// Bytes of a request's body; a longer one is answered 413 or fails while it is read.
    pub body_bytes_max: u64,
    /// HTTP/2 streams at once per connection.
    pub h2_streams_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX_DEFAULT,
            header_timeout: HEADER_TIMEOUT_DEFAULT,
            header_bytes_max: HEADER_BYTES_MAX_DEFAULT,
            body_bytes_max: BODY_BYTES_MAX_DEFAULT,
            h2_streams_max: H2_STREAMS_MAX_DEFAULT,
        }
    }
}
