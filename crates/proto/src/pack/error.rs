//! What can be wrong with a frame.

use crate::ostree::{ObjectId, ObjectIdError};

/// The frame breaks the protocol, or a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A record's count differs from what the frame states.
    #[error("{stated} objects are stated, {seen} were sent")]
    Count {
        /// What the end record states.
        stated: u32,
        /// How many there were.
        seen: u32,
    },
    /// An id names no object.
    #[error(transparent)]
    Id(#[from] ObjectIdError),
    /// A frame of another kind.
    #[error("a frame of kind {kind} is not expected here")]
    Kind {
        /// The kind byte.
        kind: u8,
    },
    /// Not one of our frames at all.
    #[error("not a Trunkline frame")]
    Magic,
    /// One object is longer than allowed.
    #[error("{id} has {bytes} bytes, {max} are allowed")]
    ObjectTooLong {
        /// The object.
        id: ObjectId,
        /// Its stated length in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// Ids must ascend strictly.
    #[error("ids do not ascend")]
    Order,
    /// A record of a kind this version has not.
    #[error("unknown record {tag}")]
    Record {
        /// The tag byte.
        tag: u8,
    },
    /// A status of a kind this version has not.
    #[error("unknown status {status}")]
    Status {
        /// The status byte.
        status: u8,
    },
    /// More records, or more bytes in all, than allowed.
    #[error("more than {max} records or bytes")]
    TooMany {
        /// The limit.
        max: u64,
    },
    /// Bytes after the end.
    #[error("bytes follow the end of the frame")]
    TrailingBytes,
    /// The frame was cut short.
    #[error("the frame ends early")]
    Truncated,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    Utf8,
    /// A version this crate does not speak.
    #[error("version {version} of the frame is not known here")]
    Version {
        /// The version byte.
        version: u8,
    },
}
