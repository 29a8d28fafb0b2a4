//! Sorted object ids: the question and the answer of `missing`, the request of `fetch`.

use super::{Cursor, FrameKind, HEAD_BYTES, PackError, encode_head};
use crate::ostree::{OBJECT_ID_BYTES, ObjectId};

/// Most ids in a frame: 33 MB of them. Whoever has more asks several times.
pub const IDS_MAX: usize = 1_000_000;

/// Length in bytes of a frame of `count` ids.
pub const fn ids_frame_bytes(count: usize) -> usize {
    HEAD_BYTES + 4 + count * OBJECT_ID_BYTES
}

/// Writes a frame of ids.
///
/// # Errors
/// [`PackError::Order`] unless they ascend strictly, [`PackError::TooMany`] above [`IDS_MAX`].
pub fn encode_ids(ids: &[ObjectId]) -> Result<Vec<u8>, PackError> {
    if ids.len() > IDS_MAX {
        return Err(PackError::TooMany { max: IDS_MAX as u64 });
    }
    if !ids.is_sorted_by(|a, b| a < b) {
        return Err(PackError::Order);
    }
    let mut frame = Vec::with_capacity(ids_frame_bytes(ids.len()));
    frame.extend_from_slice(&encode_head(FrameKind::Ids));
    let count = u32::try_from(ids.len()).expect("invariant: below IDS_MAX");
    frame.extend_from_slice(&count.to_be_bytes());
    for id in ids {
        frame.extend_from_slice(&id.to_bytes());
    }
    Ok(frame)
}

/// Reads a complete frame of ids.
///
/// # Errors
/// [`PackError`] for anything but a frame of at most [`IDS_MAX`] ids that ascend strictly.
pub fn decode_ids(frame: &[u8]) -> Result<Vec<ObjectId>, PackError> {
    let mut cursor = Cursor::open(frame, FrameKind::Ids)?;
    let count = u32::from_be_bytes(cursor.array()?) as usize;
    if count > IDS_MAX {
        return Err(PackError::TooMany { max: IDS_MAX as u64 });
    }
    // Taken in one piece before anything is reserved for it: a lying count costs nothing.
    let records = cursor.bytes(count * OBJECT_ID_BYTES)?;
    cursor.end()?;
    let mut ids = Vec::with_capacity(count);
    for record in records.chunks_exact(OBJECT_ID_BYTES) {
        let record = record.try_into().expect("invariant: chunks of this length");
        let id = ObjectId::from_bytes(record)?;
        if ids.last().is_some_and(|last| *last >= id) {
            return Err(PackError::Order);
        }
        ids.push(id);
    }
    Ok(ids)
}
