//! What client and server agreed on by the end of the handshake.

use super::constants::PAYLOAD_BYTES_DEFAULT;
use super::flags::TransmissionFlags;

/// How replies are framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplyStyle {
    /// One header, then all bytes of a read. Nothing was negotiated.
    #[default]
    Simple,
    /// Chunks with 32-bit lengths (`NBD_OPT_STRUCTURED_REPLY`).
    Structured,
    /// Chunks with 64-bit lengths, and requests likewise (`NBD_OPT_EXTENDED_HEADERS`).
    Extended,
}

/// Size constraints of an export, in bytes ("Size constraints").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of this power of two.
    pub minimum: u32,
    /// Aligned requests of this size are efficient; a power of two, 512 at least.
    pub preferred: u32,
    /// Longest payload in either direction.
    pub payload_max: u32,
}

impl Default for BlockSizes {
    /// What a client may assume of a server that says nothing.
    fn default() -> Self {
        Self { minimum: 1, preferred: 4096, payload_max: PAYLOAD_BYTES_DEFAULT }
    }
}

/// The result of a handshake: how to frame replies, and what to hold requests against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Export name as the client wrote it; empty for the default export.
    pub export: String,
    /// Export size in bytes, as told to the client.
    pub size: u64,
    /// Transmission flags, as told to the client.
    pub flags: TransmissionFlags,
    /// Size constraints of the export.
    pub block_sizes: BlockSizes,
    /// Framing of replies and requests.
    pub style: ReplyStyle,
    /// Whether the client chose `base:allocation` for this export.
    pub allocation: bool,
}

impl Agreement {
    /// Identifier of the `base:allocation` context in replies.
    pub const ALLOCATION_ID: u32 = 1;
}
