//! The files behind a cache.
//!
//! One folder for each image, named by a hash of the image's identity, with the blocks at their
//! own offsets in a sparse file and an index with a checksum for each block. Nothing is flushed:
//! whatever a crash leaves behind, a block whose bytes do not fit its checksum is not there.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Start of an index file; another version is another cache.
const MAGIC: &[u8; 16] = b"TRUNKLINE CACHE1";
/// Smallest block, in bytes; larger images have larger ones.
const BLOCK_BYTES_MIN: u64 = 64 << 10;
/// Most blocks of an image: the index is held in memory.
const BLOCKS_MAX: u64 = 1 << 20;
const DIGEST_BYTES: usize = 16;

/// Why a cache cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The folder or a file in it could not be used.
    #[error("cache `{}`: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has this image's part of the cache.
    #[error("the cache of this image in `{}` is in use by another process", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing tells versions of the image apart.
    #[error("nothing tells whether the image changed between runs, so it cannot be cached")]
    NoIdentity,
}

type BlockDigest = [u8; DIGEST_BYTES];

/// The blocks of one image that are here.
#[derive(Debug)]
pub(super) struct Store {
    data: File,
    index: File,
    key: [u8; 32],
    pub(super) block_bytes: u64,
    size: u64,
    blocks_max: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slots: Vec<Slot>,
    present: u64,
    /// Where the search for a block to give up goes on.
    hand: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// All zeroes when the block is not here.
    digest: BlockDigest,
    /// Read since the hand last passed.
    used: bool,
}

impl Slot {
    fn is_present(&self) -> bool {
        self.digest != BlockDigest::default()
    }
}

impl Store {
    /// Opens the part of the cache in `folder` that belongs to `identity`. Blocks.
    pub(super) fn open(
        folder: &Path,
        bytes_max: u64,
        size: u64,
        identity: &str,
    ) -> Result<Self, CacheError> {
        let key: [u8; 32] = Sha256::digest(identity).into();
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let own = folder.join(name);
        let failed = |source| CacheError::File { path: own.clone(), source };
        fs::create_dir_all(&own).map_err(failed)?;
        let open = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(own.join(name)).map_err(failed)
        };
        let (index, data) = (open("index")?, open("blocks")?);
        match flock(&index, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(CacheError::InUse { path: own }),
            locked => locked.map_err(|errno| failed(errno.into()))?,
        }
        // The date tells other runs which image was used last.
        index.set_modified(SystemTime::now()).map_err(failed)?;
        let others = trim_others(folder, &own, bytes_max / 2).map_err(failed)?;

        let mut block_bytes = BLOCK_BYTES_MIN;
        while size.div_ceil(block_bytes) > BLOCKS_MAX {
            block_bytes *= 2;
        }
        let slots = read_index(&index, size.div_ceil(block_bytes) as usize).map_err(failed)?;
        data.set_len(size).map_err(failed)?;
        let present = slots.iter().filter(|slot| slot.is_present()).count() as u64;
        let blocks_max = bytes_max.saturating_sub(others) / block_bytes;
        let state = Mutex::new(State { slots, present, hand: 0 });
        Ok(Self { data, index, key, block_bytes, size, blocks_max, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many blocks from `block` on, up to `end`, are all here or all missing, and which.
    pub(super) fn run(&self, block: u64, end: u64) -> (u64, bool) {
        let state = self.state();
        let here = state.slots[block as usize].is_present();
        let slots = &state.slots[block as usize..end as usize];
        let length = slots.iter().take_while(|slot| slot.is_present() == here).count();
        (length as u64, here)
    }

    fn block_length(&self, block: u64) -> u64 {
        self.block_bytes.min(self.size - block * self.block_bytes)
    }

    fn digest(&self, block: u64, bytes: &[u8]) -> BlockDigest {
        let whole = Sha256::new()
            .chain_update(self.key)
            .chain_update(block.to_le_bytes())
            .chain_update(bytes)
            .finalize();
        let mut digest = BlockDigest::default();
        digest.copy_from_slice(&whole[..DIGEST_BYTES]);
        digest
    }

    /// Reads `count` blocks; `None` when one of them is not, or no longer, what it should be.
    /// Blocks the thread.
    pub(super) fn load(&self, block: u64, count: u64) -> Option<Vec<u8>> {
        let length = (block..block + count).map(|block| self.block_length(block)).sum::<u64>();
        let mut bytes = vec![0; length as usize];
        let read = self.data.read_exact_at(&mut bytes, block * self.block_bytes);
        for (block, bytes) in (block..).zip(bytes.chunks(self.block_bytes as usize)) {
            let digest = self.digest(block, bytes);
            let mut state = self.state();
            let slot = &mut state.slots[block as usize];
            if read.is_err() || slot.digest != digest {
                // Torn by a crash, damaged, or given up a moment ago.
                if slot.is_present() {
                    *slot = Slot::default();
                    state.present -= 1;
                }
                return None;
            }
            slot.used = true;
        }
        Some(bytes)
    }

    /// Keeps the blocks in `bytes`, of which the first is `block`. A failure leaves them out.
    /// Blocks the thread.
    pub(super) fn keep(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        for (block, bytes) in (block..).zip(bytes.chunks(self.block_bytes as usize)) {
            if self.blocks_max == 0 {
                return Ok(());
            }
            while let Some(old) = self.surplus() {
                self.give_up(old)?;
            }
            self.data.write_all_at(bytes, block * self.block_bytes)?;
            let digest = self.digest(block, bytes);
            self.index.write_all_at(&digest, index_offset(block))?;
            let mut state = self.state();
            let slot = &mut state.slots[block as usize];
            let is_new = !slot.is_present();
            *slot = Slot { digest, used: true };
            state.present += u64::from(is_new);
        }
        Ok(())
    }

    /// A block that has to go before another may come: one that was not read for a while.
    fn surplus(&self) -> Option<u64> {
        let mut state = self.state();
        if state.present < self.blocks_max {
            return None;
        }
        // The second round finds one for certain, since the first clears all marks.
        for _ in 0..state.slots.len() * 2 {
            let at = state.hand;
            state.hand = (at + 1) % state.slots.len();
            let slot = &mut state.slots[at];
            if slot.is_present() && !std::mem::take(&mut slot.used) {
                *slot = Slot::default();
                state.present -= 1;
                return Some(at as u64);
            }
        }
        None
    }

    fn give_up(&self, block: u64) -> io::Result<()> {
        self.index.write_all_at(&BlockDigest::default(), index_offset(block))?;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.data, how, block * self.block_bytes, self.block_length(block)) {
            // Where files have no holes the space is used again at least.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn index_offset(block: u64) -> u64 {
    MAGIC.len() as u64 + block * DIGEST_BYTES as u64
}

/// Reads an index; one that is new or not understood becomes an empty one.
fn read_index(index: &File, blocks: usize) -> io::Result<Vec<Slot>> {
    let length = MAGIC.len() + blocks * DIGEST_BYTES;
    let mut bytes = vec![0; length];
    let read = match index.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        read => read.is_ok(),
    };
    let (magic, digests) = bytes.split_at(MAGIC.len());
    if !read || magic != MAGIC {
        index.set_len(0)?;
        index.set_len(length as u64)?;
        index.write_all_at(MAGIC, 0)?;
        return Ok(vec![Slot::default(); blocks]);
    }
    let (digests, _) = digests.as_chunks::<DIGEST_BYTES>();
    Ok(digests.iter().map(|digest| Slot { digest: *digest, used: false }).collect())
}

/// Removes other images, the longest unused first, until they take `bytes_max` at most; returns
/// what is left of them. Those in use stay.
fn trim_others(folder: &Path, own: &Path, bytes_max: u64) -> io::Result<u64> {
    let mut others = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let (index, blocks) = (path.join("index"), path.join("blocks"));
        let (Ok(index_meta), Ok(blocks_meta)) = (index.metadata(), blocks.metadata()) else {
            continue;
        };
        if path != own {
            others.push((index_meta.modified()?, path, blocks_meta.blocks() * 512));
        }
    }
    others.sort_unstable();
    let mut total: u64 = others.iter().map(|(.., bytes)| bytes).sum();
    for (_, path, bytes) in others {
        if total <= bytes_max {
            break;
        }
        let index = File::open(path.join("index"))?;
        if flock(&index, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_file(path.join("blocks"))?;
            fs::remove_file(path.join("index"))?;
            // Something of the user's in it would keep it, rightly.
            let _ = fs::remove_dir(&path);
            total -= bytes;
        }
    }
    Ok(total)
}
