//! Reads objects for sending: whatever the mode, what comes out is what an archive stores.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{lgetxattr, llistxattr};
use trunkline_proto::ostree::{
    BareUserMeta, FileHeader, FilezEncoder, ObjectId, ObjectKind, ObjectVerifier, VerifyLimits,
    Xattrs,
};

use super::error::{FileResult as _, missing_as_none};
use super::{Mode, Repo, RepoError};

/// How much of a file is read at once.
const BLOCK_BYTES: usize = 64 * 1024;
/// Longest target of a symbolic link in bytes (PATH_MAX).
const TARGET_BYTES_MAX: u64 = 4096;
/// Longest list and value of extended attributes in bytes (XATTR_LIST_MAX, XATTR_SIZE_MAX).
const XATTR_BYTES_MAX: usize = 64 * 1024;
const BARE_USER_XATTR: &str = "user.ostreemeta";

/// An object as a server stores it.
#[derive(Debug)]
pub struct StoredObject {
    /// Which one.
    pub id: ObjectId,
    /// Its bytes: in memory, or in the file at this path, which is stored in this very form.
    pub bytes: Packed,
}

/// Where an object's bytes are.
#[derive(Debug)]
pub enum Packed {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file of this length, to be read when it is sent.
    File(std::path::PathBuf, u64),
}

impl Packed {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(data) => data.len() as u64,
            Self::File(_, bytes) => *bytes,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Repo {
    /// Hashes an object; for a file object of an archive what is hashed is its content.
    ///
    /// # Errors
    /// [`RepoError::Missing`] or [`RepoError::Corrupt`].
    pub fn verify(&self, id: &ObjectId) -> Result<(), RepoError> {
        if self.mode != Mode::Archive && id.kind == ObjectKind::File {
            return self.encode(id, 0, &mut |_| Ok(()));
        }
        let path = self.object_path(id);
        let file = missing_as_none(File::open(&path)).on("open", &path)?;
        let mut file = file.ok_or(RepoError::Missing { id: *id })?;
        let mut verifier = ObjectVerifier::new(*id, VerifyLimits::default());
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let count = file.read(&mut block).on("read", &path)?;
            if count == 0 {
                break;
            }
            verifier.push(&block[..count]).map_err(|error| RepoError::corrupt(*id, error))?;
        }
        verifier.finish().map_err(|error| RepoError::corrupt(*id, error))?;
        Ok(())
    }

    /// Reads an object for sending. Those of at most `memory_bytes_max` bytes come in memory, and
    /// are verified there when `verify` is set; a longer one is verified in its file, or packed
    /// into a temporary one when the repository stores files in another form.
    ///
    /// # Errors
    /// [`RepoError::Missing`] or [`RepoError::Corrupt`].
    pub fn read_for_sending(
        &self,
        id: &ObjectId,
        memory_bytes_max: u64,
        verify: bool,
    ) -> Result<StoredObject, RepoError> {
        if self.mode != Mode::Archive && id.kind == ObjectKind::File {
            return self.pack(id, memory_bytes_max);
        }
        let path = self.object_path(id);
        let file = missing_as_none(File::open(&path)).on("open", &path)?;
        let mut file = file.ok_or(RepoError::Missing { id: *id })?;
        let bytes = file.metadata().on("look at", &path)?.len();
        if bytes > memory_bytes_max {
            if verify {
                self.verify(id)?;
            }
            return Ok(StoredObject { id: *id, bytes: Packed::File(path, bytes) });
        }
        let mut data = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        file.read_to_end(&mut data).on("read", &path)?;
        if verify {
            let mut verifier = ObjectVerifier::new(*id, VerifyLimits::default());
            let verified = verifier.push(&data).and_then(|()| verifier.finish());
            verified.map_err(|error| RepoError::corrupt(*id, error))?;
        }
        Ok(StoredObject { id: *id, bytes: Packed::Memory(data) })
    }

    fn pack(&self, id: &ObjectId, memory_bytes_max: u64) -> Result<StoredObject, RepoError> {
        let path = self.object_path(id);
        let metadata = missing_as_none(fs::symlink_metadata(&path)).on("look at", &path)?;
        let metadata = metadata.ok_or(RepoError::Missing { id: *id })?;
        if metadata.len() <= memory_bytes_max {
            let mut data = Vec::new();
            self.encode(id, self.compression_level, &mut |piece| {
                data.extend_from_slice(piece);
                Ok(())
            })?;
            return Ok(StoredObject { id: *id, bytes: Packed::Memory(data) });
        }
        let packed = self.temporary_path(id);
        let mut file = File::create(&packed).on("create", &packed)?;
        let mut bytes = 0;
        let written = self.encode(id, self.compression_level, &mut |piece| {
            bytes += piece.len() as u64;
            io::Write::write_all(&mut file, piece)
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&packed);
            return Err(error);
        }
        Ok(StoredObject { id: *id, bytes: Packed::File(packed, bytes) })
    }

    /// Where a long object of a bare repository is packed; removed by
    /// [`forget_packed`](Self::forget_packed).
    fn temporary_path(&self, id: &ObjectId) -> std::path::PathBuf {
        let process = std::process::id();
        self.path.join("tmp").join(format!("trunkline-{process}-{}.filez", id.checksum))
    }

    /// Removes what [`read_for_sending`](Self::read_for_sending) packed for this object.
    pub fn forget_packed(&self, id: &ObjectId) {
        if self.mode != Mode::Archive && id.kind == ObjectKind::File {
            // Left behind it costs space in tmp/ and nothing else.
            let _ = fs::remove_file(self.temporary_path(id));
        }
    }

    /// Makes the `.filez` of a file of a bare repository, and checks its name.
    fn encode(
        &self,
        id: &ObjectId,
        level: u32,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), RepoError> {
        let path = self.object_path(id);
        let metadata = missing_as_none(fs::symlink_metadata(&path)).on("look at", &path)?;
        let metadata = metadata.ok_or(RepoError::Missing { id: *id })?;
        let header = self.header(id, &path, &metadata)?;
        let mut failed = None;
        let mut write = |piece: &[u8]| {
            if failed.is_none() {
                failed = sink(piece).err();
            }
        };
        let mut encoder = FilezEncoder::new(&header, metadata.len(), level, &mut write);
        if header.is_regular() {
            let mut file = File::open(&path).on("open", &path)?;
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                let count = file.read(&mut block).on("read", &path)?;
                if count == 0 {
                    break;
                }
                let pushed = encoder.push(&block[..count], &mut write);
                pushed.map_err(|error| RepoError::corrupt(*id, error))?;
            }
        }
        let name = encoder.finish(&mut write).map_err(|error| RepoError::corrupt(*id, error))?;
        if let Some(error) = failed {
            return Err(error).on("write a packed copy of", &path);
        }
        if name != id.checksum {
            return Err(RepoError::corrupt(*id, format!("its content hashes to {name}")));
        }
        Ok(())
    }

    fn header(
        &self,
        id: &ObjectId,
        path: &Path,
        metadata: &fs::Metadata,
    ) -> Result<FileHeader, RepoError> {
        let target = |path: &Path| -> Result<String, RepoError> {
            let target = fs::read_link(path).on("read", path)?;
            String::from_utf8(target.into_os_string().into_vec())
                .map_err(|_| RepoError::corrupt(*id, "a link's target is not UTF-8"))
        };
        match self.mode {
            Mode::BareUser => {
                let meta =
                    xattr(path, BARE_USER_XATTR.as_bytes()).on("read attributes of", path)?;
                let meta =
                    BareUserMeta::parse(&meta).map_err(|error| RepoError::corrupt(*id, error))?;
                let mut target = String::new();
                if meta.is_symlink() {
                    let file = File::open(path).on("open", path)?;
                    file.take(TARGET_BYTES_MAX).read_to_string(&mut target).on("read", path)?;
                }
                meta.into_header(target.trim_end_matches('\0'))
                    .map_err(|error| RepoError::corrupt(*id, error))
            }
            Mode::BareUserOnly if metadata.is_symlink() => {
                Ok(FileHeader::symlink(0, 0, target(path)?))
            }
            Mode::BareUserOnly => Ok(FileHeader::regular(0, 0, metadata.mode())),
            Mode::Bare | Mode::Archive => {
                let (uid, gid) = (metadata.uid(), metadata.gid());
                let mut header = if metadata.is_symlink() {
                    FileHeader::symlink(uid, gid, target(path)?)
                } else {
                    FileHeader::regular(uid, gid, metadata.mode())
                };
                header.xattrs = all_xattrs(path).on("read attributes of", path)?;
                Ok(header)
            }
        }
    }
}

fn xattr(path: &Path, name: &[u8]) -> io::Result<Vec<u8>> {
    let mut value = vec![0; XATTR_BYTES_MAX];
    let bytes = lgetxattr(path, name, &mut value)?;
    value.truncate(bytes);
    Ok(value)
}

fn all_xattrs(path: &Path) -> io::Result<Xattrs> {
    let mut names = vec![0; XATTR_BYTES_MAX];
    let bytes = match llistxattr(path, &mut names) {
        Ok(bytes) => bytes,
        // A file system without attributes has none.
        Err(rustix::io::Errno::NOTSUP) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut pairs = Vec::new();
    for name in names[..bytes].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        pairs.push((name.to_vec(), xattr(path, name)?));
    }
    Ok(Xattrs::from_pairs(pairs))
}
