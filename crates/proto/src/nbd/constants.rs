//! Numbers of the NBD protocol ("Values" and the message layouts of the specification).
//!
//! All integers travel in network byte order.

/// TCP port that IANA assigned to NBD.
pub const PORT: u16 = 10_809;

/// First word a newstyle server sends: `NBDMAGIC`.
pub const SERVER_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of the greeting, and the start of each option a client sends: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Start of each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Start of a compact request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Start of an extended request.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Start of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of a structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Start of an extended reply chunk.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Handshake flag of both sides: fixed newstyle negotiation.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of both sides: no 124 zero bytes after `NBD_OPT_EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;
/// Zero bytes that end the answer to `NBD_OPT_EXPORT_NAME` unless both sides agreed otherwise.
pub const EXPORT_NAME_PADDING_BYTES: usize = 124;

/// Longest string (export name, description, query, error text), in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// Payload every client may send or ask for without being told so, in bytes.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1 << 25;
/// Largest read that a server must be able to answer in one chunk, in bytes.
pub const UNFRAGMENTED_BYTES_MIN: u32 = 1 << 16;
/// Most extents in one block status chunk.
pub const DESCRIPTORS_MAX: usize = 1 << 20;

/// Bytes of a compact request header.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an extended request header.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// Bytes of an option header: magic, number, length.
pub const OPTION_HEADER_BYTES: usize = 16;

/// Name of the one metadata context that the specification defines.
pub const CONTEXT_ALLOCATION: &str = "base:allocation";

/// Options of the handshake (`NBD_OPT_*`).
pub mod option {
    /// Enter transmission; cannot report an error.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Upgrade to TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and enter transmission.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the metadata contexts of an export.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Use extended headers.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Reply types of the handshake (`NBD_REP_*`).
pub mod rep {
    /// Accepted, or the end of a list.
    pub const ACK: u32 = 1;
    /// One export of a list.
    pub const SERVER: u32 = 2;
    /// One fact about an export.
    pub const INFO: u32 = 3;
    /// One metadata context.
    pub const META_CONTEXT: u32 = 4;

    const ERROR: u32 = 1 << 31;
    /// The option is not known here.
    pub const ERR_UNSUP: u32 = ERROR + 1;
    /// The server's settings forbid the option.
    pub const ERR_POLICY: u32 = ERROR + 2;
    /// The option makes no sense as sent.
    pub const ERR_INVALID: u32 = ERROR + 3;
    /// TLS must be started first.
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    /// The server is about to stop.
    pub const ERR_SHUTDOWN: u32 = ERROR + 7;
    /// The client must ask for block sizes first.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR + 8;
    /// The option, or its answer, is too large.
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
    /// Extended headers are agreed and cannot be left.
    pub const ERR_EXT_HEADER_REQD: u32 = ERROR + 10;
}

/// Information types of `NBD_REP_INFO` (`NBD_INFO_*`).
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Canonical name.
    pub const NAME: u16 = 1;
    /// Text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, preferred and largest transfer.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands of the transmission phase (`NBD_CMD_*`).
pub mod command {
    /// Read bytes.
    pub const READ: u16 = 0;
    /// Write bytes.
    pub const WRITE: u16 = 1;
    /// End the session after all outstanding requests.
    pub const DISC: u16 = 2;
    /// Make finished writes durable.
    pub const FLUSH: u16 = 3;
    /// Forget bytes.
    pub const TRIM: u16 = 4;
    /// Prepare for a read.
    pub const CACHE: u16 = 5;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Describe extents.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Chunk types of structured and extended replies (`NBD_REPLY_TYPE_*`).
pub mod chunk {
    /// Nothing but the end.
    pub const NONE: u16 = 0;
    /// Bytes at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents with 32-bit lengths.
    pub const BLOCK_STATUS: u16 = 5;
    /// Extents with 64-bit lengths.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// The request failed.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// The request failed at an offset.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// Flag of the last chunk of a reply (`NBD_REPLY_FLAG_DONE`).
pub const REPLY_FLAG_DONE: u16 = 1 << 0;
