//! How much one client may hold.

use std::time::Duration;

/// Longest read answered in one piece when the client accepts several, in bytes.
pub const READ_PART_BYTES_MAX: u32 = 1 << 20;

/// Bounds of one client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Requests that may be under way or waiting to be sent.
    pub requests_max: u32,
    /// Bytes of payload of these requests. One larger request may run alone.
    pub payload_bytes_max: u32,
    /// Time for the handshake.
    pub handshake_time_max: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            requests_max: 128,
            payload_bytes_max: 2 << 20,
            handshake_time_max: Duration::from_secs(30),
        }
    }
}
