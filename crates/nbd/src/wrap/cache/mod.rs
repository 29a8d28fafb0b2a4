//! Keeps blocks of an image on disk, across runs, within a bound.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::content::{Content, Piece, blocking};
use crate::error::Error;
use crate::export::{Export, Extent, Verb};

mod store;

#[cfg(test)]
mod tests;

pub use store::CacheError;
use store::Store;

/// Space on disk for all images unless set otherwise, in bytes.
pub const CACHE_BYTES_DEFAULT: u64 = 10 << 30;
/// Fetches that may wait to be written to the cache; further ones are not kept.
const WRITES_MAX: usize = 16;

/// What a [`Cache`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Bytes that came from disk.
    pub hit_bytes: u64,
    /// Bytes that had to be fetched.
    pub miss_bytes: u64,
}

/// An export whose blocks are kept on disk once they were read.
#[derive(Debug)]
pub struct Cache {
    inner: Arc<dyn Export>,
    store: Arc<Store>,
    writes: Arc<Semaphore>,
    hit_bytes: AtomicU64,
    miss_bytes: AtomicU64,
}

impl Cache {
    /// A cache of `inner` in `folder`, which takes `bytes_max` on disk for all its images.
    /// Blocks.
    ///
    /// # Errors
    /// [`CacheError`] when the folder cannot be used, or nothing tells versions of the image
    /// apart.
    pub fn open(inner: Arc<dyn Export>, folder: &Path, bytes_max: u64) -> Result<Self, CacheError> {
        let identity = inner.identity().ok_or(CacheError::NoIdentity)?;
        let store = Arc::new(Store::open(folder, bytes_max, inner.size(), &identity)?);
        let writes = Arc::new(Semaphore::new(WRITES_MAX));
        let (hit_bytes, miss_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { inner, store, writes, hit_bytes, miss_bytes })
    }

    /// The counters now.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            hit_bytes: self.hit_bytes.load(Relaxed),
            miss_bytes: self.miss_bytes.load(Relaxed),
        }
    }

    async fn assemble(&self, offset: u64, length: u64) -> Result<Content, Error> {
        let block_bytes = self.store.block_bytes;
        let (mut block, end) = (offset / block_bytes, (offset + length).div_ceil(block_bytes));
        let mut content = Content::with_capacity(2);
        while block < end {
            let (count, here) = self.store.run(block, end);
            let start = block * block_bytes;
            let kept = if here { self.load(block, count).await? } else { None };
            let counter = if kept.is_some() { &self.hit_bytes } else { &self.miss_bytes };
            let bytes = match kept {
                Some(bytes) => bytes,
                None => self.fetch(block, count).await?,
            };
            counter.fetch_add(bytes.len() as u64, Relaxed);
            let from = offset.max(start) - start;
            let to = (offset + length).min(start + bytes.len() as u64) - start;
            content.push(Piece::Bytes(bytes.slice(from as usize..to as usize)));
            block += count;
        }
        Ok(content)
    }

    async fn load(&self, block: u64, count: u64) -> Result<Option<Bytes>, Error> {
        let store = Arc::clone(&self.store);
        blocking(move || Ok(store.load(block, count).map(Bytes::from))).await
    }

    /// Fetches whole blocks and keeps them.
    async fn fetch(&self, block: u64, count: u64) -> Result<Bytes, Error> {
        let start = block * self.store.block_bytes;
        let length = (count * self.store.block_bytes).min(self.size() - start);
        let bytes = self.inner.read(start, length as u32).await?.into_bytes().await?;
        if let Ok(turn) = Arc::clone(&self.writes).try_acquire_owned() {
            let (store, bytes) = (Arc::clone(&self.store), bytes.clone());
            // The reader need not wait for the disk.
            tokio::task::spawn_blocking(move || {
                if let Err(error) = store.keep(block, &bytes) {
                    tracing::warn!(%error, "a block could not be cached");
                }
                drop(turn);
            });
        }
        Ok(bytes)
    }
}

impl Export for Cache {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        Box::pin(self.assemble(offset, length.into()))
    }

    fn extents(&self, offset: u64, length: u64) -> Verb<'_, Vec<Extent>> {
        self.inner.extents(offset, length)
    }

    fn prefetch(&self, offset: u64, length: u64) -> Verb<'_, ()> {
        self.inner.prefetch(offset, length)
    }

    fn preferred_block_bytes(&self) -> u32 {
        self.store.block_bytes as u32
    }

    fn identity(&self) -> Option<String> {
        self.inner.identity()
    }
}
