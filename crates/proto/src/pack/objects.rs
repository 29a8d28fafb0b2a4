//! A pack: objects one after the other, as a stream that neither side holds.

use bytes::{Buf, Bytes, BytesMut};

use super::{FrameKind, HEAD_BYTES, PackError, check_head, encode_head};
use crate::ostree::{OBJECT_ID_BYTES, ObjectId};

/// Length in bytes of what precedes an object's bytes: tag, id, length.
pub const OBJECT_HEAD_BYTES: usize = 1 + OBJECT_ID_BYTES + 8;
/// Length in bytes of a pack's end: tag, count.
pub const PACK_END_BYTES: usize = 5;
const MISSING_BYTES: usize = 1 + OBJECT_ID_BYTES;

const TAG_END: u8 = 0;
const TAG_OBJECT: u8 = 1;
const TAG_MISSING: u8 = 2;

/// How much a pack may ask of its reader.
#[derive(Debug, Clone, Copy)]
pub struct PackLimits {
    /// Longest object in bytes.
    pub object_bytes_max: u64,
    /// Most objects in a pack.
    pub objects_max: u32,
    /// Longest pack in bytes.
    pub pack_bytes_max: u64,
}

impl Default for PackLimits {
    /// 64 GiB for an object and for a pack, ten million objects.
    fn default() -> Self {
        Self { object_bytes_max: 1 << 36, objects_max: 10_000_000, pack_bytes_max: 1 << 36 }
    }
}

/// Writes the frames around the objects' bytes, which the caller sends itself.
#[derive(Debug, Clone, Default)]
pub struct PackEncoder {
    objects: u32,
}

impl PackEncoder {
    /// A pack, and the bytes it starts with.
    pub fn new() -> (Self, [u8; HEAD_BYTES]) {
        (Self::default(), encode_head(FrameKind::Objects))
    }

    /// What precedes an object's bytes, of which exactly `bytes` must follow.
    pub fn object(&mut self, id: &ObjectId, bytes: u64) -> [u8; OBJECT_HEAD_BYTES] {
        self.objects += 1;
        let mut head = [TAG_OBJECT; OBJECT_HEAD_BYTES];
        head[1..=OBJECT_ID_BYTES].copy_from_slice(&id.to_bytes());
        head[1 + OBJECT_ID_BYTES..].copy_from_slice(&bytes.to_be_bytes());
        head
    }

    /// Says that an object that belongs here is not there. It is not counted as an object.
    pub fn missing(&self, id: &ObjectId) -> [u8; MISSING_BYTES] {
        let mut record = [TAG_MISSING; MISSING_BYTES];
        record[1..].copy_from_slice(&id.to_bytes());
        record
    }

    /// The bytes a pack ends with.
    pub fn end(self) -> [u8; PACK_END_BYTES] {
        let [a, b, c, d] = self.objects.to_be_bytes();
        [TAG_END, a, b, c, d]
    }

    /// Number of objects so far.
    pub fn objects(&self) -> u32 {
        self.objects
    }
}

/// What comes next in a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackEvent {
    /// An object starts; its bytes follow as [`Data`](Self::Data).
    Object {
        /// Which one.
        id: ObjectId,
        /// Its length in bytes.
        bytes: u64,
    },
    /// Bytes of the current object, never empty.
    Data(Bytes),
    /// The current object is complete.
    ObjectEnd,
    /// The sender does not have this object.
    Missing(ObjectId),
    /// The pack is complete.
    End,
}

/// Reads a pack from pieces of any length without copying objects' bytes.
///
/// Give it bytes with [`push`](Self::push), then call [`next`](Self::next) until it has nothing
/// more. It holds at most one record's head beyond what was pushed.
#[derive(Debug)]
pub struct PackDecoder {
    limits: PackLimits,
    /// A head that came in pieces.
    head: BytesMut,
    input: Bytes,
    taken: u64,
    objects: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Record,
    Object { left: u64 },
    Ended,
}

impl PackDecoder {
    /// Ready for the first byte.
    pub fn new(limits: PackLimits) -> Self {
        Self {
            limits,
            head: BytesMut::with_capacity(OBJECT_HEAD_BYTES),
            input: Bytes::new(),
            taken: 0,
            objects: 0,
            state: State::Start,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`PackError::TooMany`] when the pack grows too long.
    ///
    /// # Panics
    /// When [`next`](Self::next) still had something: events would overtake each other.
    pub fn push(&mut self, input: Bytes) -> Result<(), PackError> {
        assert!(self.input.is_empty(), "next() must be called until it returns None");
        self.taken += input.len() as u64;
        let max = self.limits.pack_bytes_max;
        if self.taken > max {
            return Err(PackError::TooMany { max });
        }
        self.input = input;
        Ok(())
    }

    /// The next event; `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`PackError`]; the pack cannot be read further.
    #[expect(clippy::should_implement_trait, reason = "not an iterator: push() makes it go on")]
    pub fn next(&mut self) -> Result<Option<PackEvent>, PackError> {
        match self.state {
            State::Start => {
                let Some(head) = self.collect::<HEAD_BYTES>() else { return Ok(None) };
                check_head(&head, FrameKind::Objects)?;
                self.state = State::Record;
                self.next()
            }
            State::Record => self.record(),
            State::Object { left: 0 } => {
                self.state = State::Record;
                Ok(Some(PackEvent::ObjectEnd))
            }
            State::Object { left } => {
                if self.input.is_empty() {
                    return Ok(None);
                }
                let available = self.input.len();
                let count = usize::try_from(left).map_or(available, |left| left.min(available));
                self.state = State::Object { left: left - count as u64 };
                Ok(Some(PackEvent::Data(self.input.split_to(count))))
            }
            State::Ended if self.input.is_empty() => Ok(None),
            State::Ended => Err(PackError::TrailingBytes),
        }
    }

    fn record(&mut self) -> Result<Option<PackEvent>, PackError> {
        let Some(&tag) = self.head.first().or_else(|| self.input.first()) else {
            return Ok(None);
        };
        match tag {
            TAG_OBJECT => {
                let Some(head) = self.collect::<OBJECT_HEAD_BYTES>() else { return Ok(None) };
                self.object(&head).map(Some)
            }
            TAG_MISSING => {
                let Some(record) = self.collect::<MISSING_BYTES>() else { return Ok(None) };
                Ok(Some(PackEvent::Missing(id(&record[1..])?)))
            }
            TAG_END => {
                let Some(end) = self.collect::<PACK_END_BYTES>() else { return Ok(None) };
                let count = end[1..].try_into().expect("invariant: four bytes are left");
                let stated = u32::from_be_bytes(count);
                if stated != self.objects {
                    return Err(PackError::Count { stated, seen: self.objects });
                }
                self.state = State::Ended;
                Ok(Some(PackEvent::End))
            }
            tag => Err(PackError::Record { tag }),
        }
    }

    fn object(&mut self, head: &[u8; OBJECT_HEAD_BYTES]) -> Result<PackEvent, PackError> {
        let id = id(&head[1..=OBJECT_ID_BYTES])?;
        let length = head[1 + OBJECT_ID_BYTES..].try_into().expect("invariant: eight are left");
        let bytes = u64::from_be_bytes(length);
        let max = self.limits.object_bytes_max;
        if bytes > max {
            return Err(PackError::ObjectTooLong { id, bytes, max });
        }
        if self.objects >= self.limits.objects_max {
            return Err(PackError::TooMany { max: u64::from(self.limits.objects_max) });
        }
        self.objects += 1;
        self.state = State::Object { left: bytes };
        Ok(PackEvent::Object { id, bytes })
    }

    /// `N` bytes when there are as many, else keeps what there is.
    fn collect<const N: usize>(&mut self) -> Option<[u8; N]> {
        let count = (N - self.head.len()).min(self.input.len());
        self.head.extend_from_slice(&self.input[..count]);
        self.input.advance(count);
        if self.head.len() < N {
            return None;
        }
        let head = self.head[..].try_into().expect("invariant: N bytes were collected");
        self.head.clear();
        Some(head)
    }

    /// Says that there are no more bytes.
    ///
    /// # Errors
    /// [`PackError::Truncated`] unless the end was seen.
    pub fn finish(&self) -> Result<(), PackError> {
        if self.state == State::Ended { Ok(()) } else { Err(PackError::Truncated) }
    }
}

fn id(bytes: &[u8]) -> Result<ObjectId, PackError> {
    let bytes = bytes.try_into().map_err(|_| PackError::Truncated)?;
    Ok(ObjectId::from_bytes(bytes)?)
}

#[cfg(test)]
mod tests;
