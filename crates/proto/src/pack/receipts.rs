//! What became of each object of a pack.

use super::{Cursor, FrameKind, PackError, encode_head};
use crate::ostree::{OBJECT_ID_BYTES, ObjectId};

/// Longest text of a receipt in bytes; longer ones are cut when written.
pub const DETAIL_BYTES_MAX: usize = 1024;

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Verified and stored.
    Stored = 0,
    /// Stored by somebody before; not changed.
    Present = 1,
    /// Not what its name promises; do not send it again.
    Corrupt = 2,
    /// Larger than the server takes, or of a kind it does not take; do not send it again.
    Refused = 3,
    /// The server could not store it just now; send it again.
    Failed = 4,
}

impl Status {
    fn from_number(number: u8) -> Result<Self, PackError> {
        [Self::Stored, Self::Present, Self::Corrupt, Self::Refused, Self::Failed]
            .into_iter()
            .find(|status| *status as u8 == number)
            .ok_or(PackError::Status { status: number })
    }

    /// Whether the server has the object now.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Stored | Self::Present)
    }
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The object.
    pub id: ObjectId,
    /// What became of it.
    pub status: Status,
    /// For people; empty when there is nothing to say.
    pub detail: String,
}

/// Writes a frame of receipts, in the order given.
pub fn encode_receipts(receipts: &[Receipt]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(12 + receipts.len() * (OBJECT_ID_BYTES + 3));
    frame.extend_from_slice(&encode_head(FrameKind::Receipts));
    let count = u32::try_from(receipts.len()).expect("invariant: a pack counts objects in 32 bits");
    frame.extend_from_slice(&count.to_be_bytes());
    for receipt in receipts {
        let mut end = receipt.detail.len().min(DETAIL_BYTES_MAX);
        while !receipt.detail.is_char_boundary(end) {
            end -= 1;
        }
        let detail = &receipt.detail.as_bytes()[..end];
        frame.extend_from_slice(&receipt.id.to_bytes());
        frame.push(receipt.status as u8);
        let length = u16::try_from(detail.len()).expect("invariant: DETAIL_BYTES_MAX fits");
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(detail);
    }
    frame
}

/// Reads a complete frame of receipts.
///
/// # Errors
/// [`PackError`] for anything but such a frame.
pub fn decode_receipts(frame: &[u8]) -> Result<Vec<Receipt>, PackError> {
    let mut cursor = Cursor::open(frame, FrameKind::Receipts)?;
    let count = u32::from_be_bytes(cursor.array()?);
    let mut receipts = Vec::new();
    for _ in 0..count {
        let id = ObjectId::from_bytes(&cursor.array()?)?;
        let [status] = cursor.array()?;
        let status = Status::from_number(status)?;
        let length = usize::from(u16::from_be_bytes(cursor.array()?));
        if length > DETAIL_BYTES_MAX {
            return Err(PackError::TooMany { max: DETAIL_BYTES_MAX as u64 });
        }
        let detail = str::from_utf8(cursor.bytes(length)?).map_err(|_| PackError::Utf8)?;
        receipts.push(Receipt { id, status, detail: detail.to_owned() });
    }
    cursor.end()?;
    Ok(receipts)
}
