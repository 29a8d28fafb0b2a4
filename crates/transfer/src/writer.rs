//! Writes a body to a file, hashing on the way: on the blocking pool, one block behind the
//! network, or in place.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;
use trunkline_proto::digest::{Digest, Hasher};

/// Bytes gathered before they are handed to the blocking pool. Small, since every transfer in
/// flight may hold as much twice.
const BLOCK_BYTES: usize = 64 * 1024;

/// Appends chunks to a file from a given offset.
#[derive(Debug)]
pub(crate) struct Writer {
    file: Arc<File>,
    /// Bytes written or being written.
    offset: u64,
    /// A device or pipe has no offsets.
    is_device: bool,
    /// Write by the thread that receives (see `Files::write_in_place`).
    in_place: bool,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    hasher: Option<Hasher>,
    writing: Option<JoinHandle<io::Result<Option<Hasher>>>>,
}

impl Writer {
    pub(crate) fn new(
        file: Arc<File>,
        offset: u64,
        hasher: Option<Hasher>,
        in_place: bool,
    ) -> Self {
        Self {
            file,
            offset,
            is_device: false,
            // A digest costs more than the hand-over: it belongs on another core.
            in_place: in_place && hasher.is_none(),
            pending: Vec::new(),
            pending_bytes: 0,
            hasher,
            writing: None,
        }
    }

    pub(crate) fn device(file: Arc<File>, hasher: Option<Hasher>) -> Self {
        Self { is_device: true, ..Self::new(file, 0, hasher, false) }
    }

    /// Bytes taken so far, the offset included.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.pending_bytes as u64
    }

    /// Takes a chunk; waits only when the disk is a whole block behind.
    pub(crate) async fn push(&mut self, chunk: Bytes) -> io::Result<()> {
        self.pending_bytes += chunk.len();
        self.pending.push(chunk);
        if self.pending_bytes >= BLOCK_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Waits until everything taken is in the file.
    pub(crate) async fn settle(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.wait().await
    }

    /// The digest of everything written, once settled.
    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.hasher.take().map(Hasher::finish)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.wait().await?;
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut chunks = std::mem::take(&mut self.pending);
        let (offset, is_device) = (self.offset, self.is_device);
        self.offset += self.pending_bytes as u64;
        self.pending_bytes = 0;
        if self.in_place {
            write_chunks(&self.file, &chunks, offset, is_device)?;
            chunks.clear();
            self.pending = chunks;
            return Ok(());
        }
        let (file, mut hasher) = (Arc::clone(&self.file), self.hasher.take());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            if let Some(hasher) = &mut hasher {
                chunks.iter().for_each(|chunk| hasher.update(chunk));
            }
            write_chunks(&file, &chunks, offset, is_device)?;
            Ok(hasher)
        }));
        Ok(())
    }

    async fn wait(&mut self) -> io::Result<()> {
        if let Some(writing) = self.writing.take() {
            self.hasher = writing.await.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

fn write_chunks(
    mut file: &File,
    chunks: &[Bytes],
    mut offset: u64,
    is_device: bool,
) -> io::Result<()> {
    for chunk in chunks {
        if is_device {
            file.write_all(chunk)?;
        } else {
            write_at(file, chunk, offset)?;
        }
        offset += chunk.len() as u64;
    }
    Ok(())
}

/// Writes all of `bytes` at an offset, leaving the file's cursor alone.
#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes all of `bytes` at an offset.
#[cfg(windows)]
pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
