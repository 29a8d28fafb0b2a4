//! Buffers that are used again, so that the system need not clear fresh pages for each fetch.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Most bytes of idle buffers that one pool keeps.
const IDLE_BYTES_MAX: usize = 8 << 20;
/// Buffers under this size are left to the allocator, which keeps such pages itself.
const POOLED_BYTES_MIN: usize = 64 << 10;

/// Hands out buffers and takes them back when the last reader of their bytes is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    idle: Arc<Mutex<Idle>>,
}

#[derive(Debug, Default)]
struct Idle {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// A buffer to be filled; its former content may show.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    home: Buffers,
}

impl Buffers {
    /// A buffer of `length` bytes.
    pub(crate) fn take(&self, length: usize) -> Buffer {
        let mut bytes = Vec::new();
        if length >= POOLED_BYTES_MIN {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = idle.buffers.iter().rposition(|idle| idle.len() >= length) {
                bytes = idle.buffers.swap_remove(at);
                idle.bytes -= bytes.len();
            }
        }
        if bytes.len() < length {
            bytes = vec![0; length];
        }
        Buffer { bytes, length, home: self.clone() }
    }
}

impl Buffer {
    /// The part to fill.
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// The filled bytes, to share. The buffer comes home with the last of them.
    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut idle = self.home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() >= POOLED_BYTES_MIN && idle.bytes + bytes.len() <= IDLE_BYTES_MAX {
            idle.bytes += bytes.len();
            idle.buffers.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_home_with_the_last_of_its_bytes() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(POOLED_BYTES_MIN * 2);
        buffer.as_mut().fill(7);
        let address = buffer.as_ref().as_ptr();
        let bytes = buffer.freeze();
        let part = bytes.slice(5..10);
        drop(bytes);
        assert_ne!(buffers.take(POOLED_BYTES_MIN).as_ref().as_ptr(), address);
        drop(part);
        let again = buffers.take(POOLED_BYTES_MIN + 1);
        assert_eq!(
            (again.as_ref().as_ptr(), again.as_ref().len()),
            (address, POOLED_BYTES_MIN + 1)
        );
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let buffers = Buffers::default();
        let many: Vec<_> = (0..40).map(|_| buffers.take(1 << 20)).collect();
        drop(many);
        assert_eq!(buffers.idle.lock().unwrap().bytes, IDLE_BYTES_MAX);
    }
}
