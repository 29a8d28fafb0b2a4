//! The file behind an overlay.
//!
//! Layout: a header of 4 KiB (fixed when the file is made, with a checksum), the bitmap, then the
//! image's bytes at their own offsets, sparse. A block's bit is written only after its bytes are
//! durable, and bits are only ever set. So whatever moment a crash picks, each block is either
//! wholly the base's or has all that was flushed; a torn page of bits is some mix of old and new
//! bits, each of which is true.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, BufMut};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::bitmap::{Bitmap, PAGE_BYTES};
use crate::content::NamedFile;

const MAGIC: &[u8; 8] = b"TRUNKOVL";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 4096;
const CHECKSUM_BYTES: usize = 32;
const IDENTITY_BYTES_MAX: usize = 3072;
/// Smallest block, in bytes; larger ones keep the bitmap within its limit.
const BLOCK_BYTES_MIN: u64 = 4096;
/// Largest bitmap, in bytes: held in memory.
const BITMAP_BYTES_MAX: u64 = 8 << 20;
/// The data area starts at a multiple of this, so that its pages are the image's.
const DATA_ALIGN_BYTES: u64 = 1 << 16;

/// Why an overlay cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OverlayError {
    /// The file could not be made, read or written.
    #[error("overlay `{}`: {source}", path.display())]
    File {
        /// The overlay.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process uses it.
    #[error("overlay `{}` is in use by another process", path.display())]
    InUse {
        /// The overlay.
        path: PathBuf,
    },
    /// The file is not an overlay, or its header is damaged.
    #[error("`{}` is no overlay, or it is damaged; it was left as it is", path.display())]
    NotAnOverlay {
        /// The file.
        path: PathBuf,
    },
    /// It was made over another image, or another version of this one.
    #[error("overlay `{}` was made over {made_over}, not over {is}", path.display())]
    OtherBase {
        /// The overlay.
        path: PathBuf,
        /// The image it belongs to.
        made_over: String,
        /// The image it was to be used over.
        is: String,
    },
    /// Nothing tells versions of the image apart.
    #[error("nothing tells whether the image changed between runs; use a temporary overlay")]
    NoIdentity,
}

/// An open overlay file.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) file: Arc<NamedFile>,
    pub(super) block_bytes: u64,
    /// Where the image's byte zero lies in the file.
    pub(super) data_at: u64,
    /// A temporary file holds nothing that a crash could leave behind.
    pub(super) durable: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Header {
    size: u64,
    block_bytes: u64,
    identity: String,
}

impl Header {
    fn new(size: u64, identity: String) -> Self {
        let mut block_bytes = BLOCK_BYTES_MIN;
        while size.div_ceil(block_bytes) > BITMAP_BYTES_MAX * 8 {
            block_bytes *= 2;
        }
        Self { size, block_bytes, identity }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.put_slice(MAGIC);
        bytes.put_u32_le(VERSION);
        bytes.put_u32_le(self.identity.len() as u32);
        bytes.put_u64_le(self.size);
        bytes.put_u64_le(self.block_bytes);
        bytes.put_slice(self.identity.as_bytes());
        bytes.resize(HEADER_BYTES - CHECKSUM_BYTES, 0);
        let checksum = Sha256::digest(&bytes);
        bytes.put_slice(&checksum);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let (mut fields, checksum) = bytes.split_at(HEADER_BYTES - CHECKSUM_BYTES);
        if Sha256::digest(fields)[..] != *checksum || !fields.starts_with(MAGIC) {
            return None;
        }
        fields.advance(MAGIC.len());
        let (version, length) = (fields.get_u32_le(), fields.get_u32_le() as usize);
        let (size, block_bytes) = (fields.get_u64_le(), fields.get_u64_le());
        let identity = std::str::from_utf8(fields.get(..length)?).ok()?.to_owned();
        let header = Self::new(size, identity);
        (version == VERSION && header.block_bytes == block_bytes).then_some(header)
    }

    fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block_bytes)
    }

    fn data_at(&self) -> u64 {
        let end = HEADER_BYTES as u64 + Bitmap::bytes(self.blocks());
        end.next_multiple_of(DATA_ALIGN_BYTES.max(self.block_bytes))
    }
}

impl Store {
    /// A store that goes when it is closed, in `folder` or where the system keeps such files.
    pub(super) fn temporary(size: u64) -> Result<(Self, Bitmap), OverlayError> {
        let path = std::env::temp_dir();
        let header = Header::new(size, String::new());
        let made = tempfile::tempfile().and_then(|file| {
            file.set_len(header.data_at() + size)?;
            Ok(file)
        });
        let file = made.map_err(|source| OverlayError::File { path, source })?;
        Ok((Self::new(file, "the temporary overlay", &header, false), Bitmap::new(header.blocks())))
    }

    /// Opens the store at `path`, or makes it.
    pub(super) fn open(
        path: &Path,
        size: u64,
        identity: Option<String>,
    ) -> Result<(Self, Bitmap), OverlayError> {
        let identity = identity.filter(|identity| identity.len() <= IDENTITY_BYTES_MAX);
        let identity = identity.ok_or(OverlayError::NoIdentity)?;
        let wanted = Header::new(size, identity);
        let failed = |source| OverlayError::File { path: path.to_owned(), source };
        if !path.try_exists().map_err(failed)? {
            create(path, &wanted).map_err(failed)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(OverlayError::InUse { path: path.to_owned() }),
            locked => locked.map_err(|errno| failed(errno.into()))?,
        }
        let header = read_header(&file).map_err(failed)?;
        let header = header.ok_or_else(|| OverlayError::NotAnOverlay { path: path.to_owned() })?;
        if header != wanted {
            return Err(OverlayError::OtherBase {
                path: path.to_owned(),
                made_over: header.identity,
                is: wanted.identity,
            });
        }
        let mut bits = vec![0; Bitmap::bytes(header.blocks()) as usize];
        file.read_exact_at(&mut bits, HEADER_BYTES as u64).map_err(failed)?;
        let name = path.display().to_string();
        Ok((Self::new(file, &name, &header, true), Bitmap::from_bytes(&bits)))
    }

    fn new(file: File, name: &str, header: &Header, durable: bool) -> Self {
        let file = Arc::new(NamedFile { file, name: name.into() });
        Self { file, block_bytes: header.block_bytes, data_at: header.data_at(), durable }
    }

    /// Makes data durable, then the bits that vouch for it. Blocks.
    pub(super) fn persist(file: &File, pages: &[(u64, Vec<u8>)]) -> io::Result<()> {
        file.sync_data()?;
        if pages.is_empty() {
            return Ok(());
        }
        for (number, page) in pages {
            file.write_all_at(page, HEADER_BYTES as u64 + number * PAGE_BYTES as u64)?;
        }
        file.sync_data()
    }

    /// Makes a range of the file zeroes; false when the file system cannot do it by itself.
    pub(super) fn zero(file: &File, at: u64, length: u64, may_unmap: bool) -> io::Result<bool> {
        let how = if may_unmap { FallocateFlags::PUNCH_HOLE } else { FallocateFlags::ZERO_RANGE };
        match fallocate(file, how | FallocateFlags::KEEP_SIZE, at, length) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes an empty overlay beside its final name, so that half a one is never found there.
fn create(path: &Path, header: &Header) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let new = tempfile::NamedTempFile::new_in(folder)?;
    let file = new.as_file();
    file.write_all_at(&header.encode(), 0)?;
    file.set_len(header.data_at() + header.size)?;
    file.sync_all()?;
    new.persist_noclobber(path)?;
    File::open(folder)?.sync_all()
}

fn read_header(file: &File) -> io::Result<Option<Header>> {
    let mut bytes = [0; HEADER_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(Header::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
