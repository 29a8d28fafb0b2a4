//! Batches of OSTree objects in one body: which are wanted, the objects, what became of each.
//!
//! The frames are described byte by byte in `docs/protocol-pack.md`; this file is their only
//! reader and writer. Integers are big-endian. Every frame starts with the same eight bytes
//! ([`HEAD_BYTES`]), so that a frame of another version or kind is refused before anything in it is
//! believed, and says how many records it has, so that a frame cut short is never taken for a short
//! one.

mod error;
mod ids;
mod objects;
mod receipts;
mod want;

pub use error::PackError;
pub use ids::{IDS_MAX, decode_ids, encode_ids, ids_frame_bytes};
pub use objects::{
    OBJECT_HEAD_BYTES, PACK_END_BYTES, PackDecoder, PackEncoder, PackEvent, PackLimits,
};
pub use receipts::{DETAIL_BYTES_MAX, Receipt, Status, decode_receipts, encode_receipts};
pub use want::{COMMITS_MAX, Want};

/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"TLPK";
/// Version of the frames this crate speaks.
pub const VERSION: u8 = 1;
/// Length in bytes of what every frame starts with: magic, version, kind, two zero bytes.
pub const HEAD_BYTES: usize = 8;
/// The media type of all frames.
pub const MEDIA_TYPE: &str = "application/vnd.trunkline.pack";

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Sorted object ids.
    Ids = 1,
    /// Objects, one after the other.
    Objects = 2,
    /// What became of objects.
    Receipts = 3,
    /// Commits wanted and commits had.
    Want = 4,
}

/// The eight bytes a frame of this kind starts with.
pub fn encode_head(kind: FrameKind) -> [u8; HEAD_BYTES] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, VERSION, kind as u8, 0, 0]
}

/// Checks a frame's first bytes.
fn check_head(head: &[u8; HEAD_BYTES], kind: FrameKind) -> Result<(), PackError> {
    if head[..4] != MAGIC {
        return Err(PackError::Magic);
    }
    if head[4] != VERSION {
        return Err(PackError::Version { version: head[4] });
    }
    if head[5] != kind as u8 || head[6..] != [0, 0] {
        return Err(PackError::Kind { kind: head[5] });
    }
    Ok(())
}

/// Takes fields off the front of a complete frame.
#[derive(Debug)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// A cursor behind the head of a frame of this kind.
    fn open(data: &'a [u8], kind: FrameKind) -> Result<Self, PackError> {
        let mut cursor = Self(data);
        check_head(&cursor.array()?, kind)?;
        Ok(cursor)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], PackError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(PackError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackError> {
        self.bytes(N).map(|bytes| bytes.try_into().expect("invariant: N bytes were taken"))
    }

    fn end(&self) -> Result<(), PackError> {
        if self.0.is_empty() { Ok(()) } else { Err(PackError::TrailingBytes) }
    }
}
