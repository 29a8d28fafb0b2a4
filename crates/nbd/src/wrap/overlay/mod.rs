//! Copy-on-write: takes writes in a file of its own and leaves the image below as it is.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};

use crate::content::{Content, FileSlice, Piece, blocking};
use crate::error::Error;
use crate::export::{Export, Extent, Verb, Writable, Zeroing, push_extent};
use crate::file::file_extents;

mod bitmap;
mod range_lock;
mod store;

#[cfg(test)]
mod tests;

use bitmap::Bitmap;
use range_lock::RangeLock;
pub use store::OverlayError;
use store::Store;

/// Zeroes written in one call where the file system cannot make them itself, in bytes.
const ZERO_BYTES: usize = 1 << 20;
/// Most extents told at once.
const EXTENTS_MAX: usize = 4096;

/// An export that takes writes, over one that need not.
#[derive(Debug)]
pub struct Overlay {
    base: Arc<dyn Export>,
    store: Store,
    present: Mutex<Bitmap>,
    writing: RangeLock,
    flushing: tokio::sync::Mutex<()>,
}

impl Overlay {
    /// An overlay that is gone when it is dropped. Blocks.
    ///
    /// # Errors
    /// [`OverlayError::File`] when no temporary file can be made.
    pub fn temporary(base: Arc<dyn Export>) -> Result<Self, OverlayError> {
        let opened = Store::temporary(base.size())?;
        Ok(Self::new(base, opened))
    }

    /// The overlay in the file at `path`, which is made when missing. What was flushed to it is
    /// there again after any crash. Blocks.
    ///
    /// # Errors
    /// [`OverlayError`] when it cannot be used over `base`.
    pub fn open(base: Arc<dyn Export>, path: &Path) -> Result<Self, OverlayError> {
        let opened = Store::open(path, base.size(), base.identity())?;
        Ok(Self::new(base, opened))
    }

    fn new(base: Arc<dyn Export>, (store, present): (Store, Bitmap)) -> Self {
        let present = Mutex::new(present);
        Self { base, store, present, writing: RangeLock::default(), flushing: Default::default() }
    }

    fn present(&self) -> MutexGuard<'_, Bitmap> {
        // The bitmap is whole between any two statements that can panic.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks that a range of bytes touches.
    fn blocks(&self, offset: u64, length: u64) -> Range<u64> {
        offset / self.store.block_bytes..(offset + length).div_ceil(self.store.block_bytes)
    }

    /// Parts of a range of bytes, and whether each is here (else it is the base's).
    fn parts(&self, offset: u64, length: u64) -> Vec<(Range<u64>, bool)> {
        let blocks = self.blocks(offset, length);
        let present = self.present();
        let (mut at, mut parts) = (blocks.start, Vec::new());
        while at < blocks.end && parts.len() < EXTENTS_MAX {
            let run = present.run(at..blocks.end);
            let start = (run.blocks.start * self.store.block_bytes).max(offset);
            let end = (run.blocks.end * self.store.block_bytes).min(offset + length);
            parts.push((start..end, run.present));
            at = run.blocks.end;
        }
        parts
    }

    fn slice(&self, part: &Range<u64>) -> Piece {
        Piece::File(FileSlice {
            file: Arc::clone(&self.store.file),
            offset: self.store.data_at + part.start,
            length: part.end - part.start,
        })
    }

    async fn read_parts(&self, offset: u64, length: u32) -> Result<Content, Error> {
        let mut parts = self.parts(offset, length.into());
        // What the bound on parts left out is read in further rounds.
        let mut content = Content::with_capacity(parts.len());
        loop {
            let end = parts.last().map_or(offset, |(part, _)| part.end);
            let reads = parts.iter().map(|(part, here)| -> BoxFuture<'_, _> {
                if *here {
                    Box::pin(std::future::ready(Ok(Content::from(self.slice(part)))))
                } else {
                    self.base.read(part.start, (part.end - part.start) as u32)
                }
            });
            for part in try_join_all(reads).await? {
                content.append(part);
            }
            let left = offset + u64::from(length) - end;
            if left == 0 {
                return Ok(content);
            }
            parts = self.parts(end, left);
        }
    }

    async fn extents_of(&self, offset: u64, length: u64) -> Result<Vec<Extent>, Error> {
        let mut extents = Vec::new();
        for (part, here) in self.parts(offset, length) {
            let wanted = part.end - part.start;
            let found = if here {
                self.own_extents(part).await?
            } else {
                self.base.extents(part.start, wanted).await?
            };
            let mut left = wanted;
            for extent in found {
                let length = extent.length.min(left);
                left -= length;
                push_extent(&mut extents, Extent { length, ..extent });
            }
            if left > 0 || extents.len() >= EXTENTS_MAX {
                // The client asks again from here.
                break;
            }
        }
        Ok(extents)
    }

    async fn own_extents(&self, part: Range<u64>) -> Result<Vec<Extent>, Error> {
        let file = Arc::clone(&self.store.file);
        let (at, length) = (self.store.data_at + part.start, part.end - part.start);
        blocking(move || {
            file_extents(&file.file, at, length, at + length)
                .map_err(|error| Error::local(&file.name, error.into()))
        })
        .await
    }

    /// Brings what surrounds a range in its first and last block here from the base, so that
    /// these blocks can be marked as present. The range must be held.
    async fn complete_edges(&self, offset: u64, length: u64) -> Result<(), Error> {
        for (start, end) in self.missing_edges(offset, length) {
            let bytes = self.base.read(start, (end - start) as u32).await?.into_bytes().await?;
            self.store_bytes(start, bytes).await?;
        }
        Ok(())
    }

    /// The bytes before and after a range that [`complete_edges`](Self::complete_edges) brings.
    fn missing_edges(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
        let block_bytes = self.store.block_bytes;
        let blocks = self.blocks(offset, length);
        let end = offset + length;
        let last = blocks.end - 1;
        let block_end = (blocks.end * block_bytes).min(self.base.size());
        let present = self.present();
        let first_edge =
            (!present.has(blocks.start)).then_some((blocks.start * block_bytes, offset));
        let last_edge = (!present.has(last)).then_some((end, block_end));
        drop(present);
        [first_edge, last_edge].into_iter().flatten().filter(|(start, end)| start < end)
    }

    async fn store_bytes(&self, offset: u64, bytes: Bytes) -> Result<(), Error> {
        let (file, at) = (Arc::clone(&self.store.file), self.store.data_at + offset);
        blocking(move || {
            file.file.write_all_at(&bytes, at).map_err(|error| Error::local(&file.name, error))
        })
        .await
    }

    async fn write_bytes(&self, offset: u64, bytes: Bytes) -> Result<(), Error> {
        let length = bytes.len() as u64;
        let blocks = self.blocks(offset, length);
        let _held = self.writing.hold(blocks.clone()).await;
        self.complete_edges(offset, length).await?;
        self.store_bytes(offset, bytes).await?;
        self.present().set(blocks);
        Ok(())
    }

    async fn write_zeroes(&self, offset: u64, length: u64, how: Zeroing) -> Result<(), Error> {
        let blocks = self.blocks(offset, length);
        let _held = self.writing.hold(blocks.clone()).await;
        if how.only_fast && self.missing_edges(offset, length).next().is_some() {
            return Err(Error::NotFast);
        }
        self.complete_edges(offset, length).await?;
        let (file, at) = (Arc::clone(&self.store.file), self.store.data_at + offset);
        blocking(move || {
            let failed = |error| Error::local(&file.name, error);
            if Store::zero(&file.file, at, length, how.may_unmap).map_err(failed)? {
                return Ok(());
            }
            if how.only_fast {
                return Err(Error::NotFast);
            }
            let zeroes = vec![0; ZERO_BYTES.min(length as usize)];
            let mut done = 0;
            while done < length {
                let now = zeroes.len().min((length - done) as usize);
                file.file.write_all_at(&zeroes[..now], at + done).map_err(failed)?;
                done += now as u64;
            }
            Ok(())
        })
        .await?;
        self.present().set(blocks);
        Ok(())
    }

    async fn persist(&self) -> Result<(), Error> {
        if !self.store.durable {
            return Ok(());
        }
        // One at a time: a flush must not pass one that has taken its pages but not written them.
        let _turn = self.flushing.lock().await;
        let pages = self.present().take_dirty();
        let numbers: Vec<u64> = pages.iter().map(|(number, _)| *number).collect();
        let file = Arc::clone(&self.store.file);
        let persisted = blocking(move || {
            Store::persist(&file.file, &pages).map_err(|error| Error::local(&file.name, error))
        })
        .await;
        if persisted.is_err() {
            self.present().put_back(numbers);
        }
        persisted
    }
}

impl Export for Overlay {
    fn size(&self) -> u64 {
        self.base.size()
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        Box::pin(self.read_parts(offset, length))
    }

    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        Box::pin(self.extents_of(offset, length))
    }

    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        self.base.prefetch(offset, length)
    }

    fn writable(&self) -> Option<&dyn Writable> {
        Some(self)
    }

    fn preferred_block_bytes(&self) -> u32 {
        self.store.block_bytes as u32
    }
}

impl Writable for Overlay {
    fn write(&self, offset: u64, bytes: Bytes) -> Verb<'_, ()> {
        Box::pin(self.write_bytes(offset, bytes))
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> Verb<'_, ()> {
        Box::pin(self.write_zeroes(offset, length, how))
    }

    fn flush(&self) -> Verb<'_, ()> {
        Box::pin(self.persist())
    }
}
