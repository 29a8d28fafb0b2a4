//! Local repositories, in every mode that can be pushed from.

mod config;
mod error;
mod read;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use config::Mode;
pub use error::RepoError;
pub use read::{Packed, StoredObject};
use trunkline_proto::ostree::{Checksum, ObjectId, ObjectKind, RefName, Storage};
pub use write::Writing;

use error::{FileResult as _, missing_as_none};

/// A repository on this machine. Calls block.
#[derive(Debug, Clone)]
pub struct Repo {
    path: PathBuf,
    mode: Mode,
    compression_level: u32,
}

impl Repo {
    /// Opens a repository.
    ///
    /// # Errors
    /// [`RepoError::NotARepository`] when it has no config or objects, [`RepoError::Mode`] when its
    /// mode is not known.
    pub fn open(path: &Path) -> Result<Self, RepoError> {
        let config_path = path.join("config");
        let text = missing_as_none(fs::read_to_string(&config_path)).on("read", &config_path)?;
        let is_there = path.join("objects").is_dir() && path.join("refs").is_dir();
        let Some(text) = text.filter(|_| is_there) else {
            return Err(RepoError::NotARepository { path: path.to_owned() });
        };
        let config = config::Config::parse(&text);
        let mode = config.mode.as_deref().and_then(Mode::from_name).ok_or_else(|| {
            RepoError::Mode { path: path.to_owned(), mode: config.mode.clone().unwrap_or_default() }
        })?;
        let path = fs::canonicalize(path).on("find", path)?;
        Ok(Self { path, mode, compression_level: config.compression_level })
    }

    /// Opens a repository, which is made in archive mode when the directory is not there or empty.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it cannot be made.
    pub fn open_or_create(path: &Path) -> Result<Self, RepoError> {
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_empty {
            for directory in [
                "objects",
                "refs/heads",
                "refs/remotes",
                "refs/mirrors",
                "tmp",
                "state",
                "extensions",
            ] {
                let path = path.join(directory);
                fs::create_dir_all(&path).on("make", &path)?;
            }
            let config = path.join("config");
            fs::write(&config, "[core]\nrepo_version=1\nmode=archive-z2\n").on("write", &config)?;
        }
        Self::open(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it stores files.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn storage(&self) -> Storage {
        match self.mode {
            Mode::Archive => Storage::Archive,
            _ => Storage::Bare,
        }
    }

    /// The file an object is stored in, whether or not it is there.
    pub fn object_path(&self, id: &ObjectId) -> PathBuf {
        self.path.join("objects").join(id.path(self.storage()))
    }

    /// Whether an object is there.
    ///
    /// # Errors
    /// When the file system cannot say.
    pub fn has(&self, id: &ObjectId) -> Result<bool, RepoError> {
        let path = self.object_path(id);
        Ok(missing_as_none(fs::symlink_metadata(&path)).on("look at", &path)?.is_some())
    }

    /// Where a branch points: `refs/heads/<name>`, else a remote's branch given as `remote:name`.
    ///
    /// # Errors
    /// [`RepoError::RefDamaged`] when the file holds no checksum.
    pub fn resolve(&self, name: &RefName) -> Result<Option<Checksum>, RepoError> {
        let path = self.path.join(name.path());
        let Some(text) = missing_as_none(fs::read(&path)).on("read", &path)? else {
            return Ok(None);
        };
        Checksum::from_hex(text.trim_ascii_end())
            .map(Some)
            .map_err(|_| RepoError::RefDamaged { name: name.clone() })
    }

    /// Whether a commit was only partly pulled (`state/<commit>.commitpartial`).
    pub fn is_partial(&self, commit: &Checksum) -> bool {
        self.partial_path(commit).exists()
    }

    fn partial_path(&self, commit: &Checksum) -> PathBuf {
        self.path.join("state").join(format!("{commit}.commitpartial"))
    }

    /// The bytes of a metadata object, verified by its name where it has a hash; `None` when it is
    /// not there.
    ///
    /// # Errors
    /// [`RepoError::Corrupt`] when it hashes to another name.
    pub fn read_metadata(&self, id: &ObjectId) -> Result<Option<Vec<u8>>, RepoError> {
        let path = self.object_path(id);
        let Some(data) = missing_as_none(fs::read(&path)).on("read", &path)? else {
            return Ok(None);
        };
        if id.kind.is_hashed_metadata() && Checksum::of(&data) != id.checksum {
            return Err(RepoError::corrupt(*id, "its content hashes to another name"));
        }
        Ok(Some(data))
    }

    /// The detached metadata of a commit, such as signatures.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_commitmeta(&self, commit: &Checksum) -> Result<Option<Vec<u8>>, RepoError> {
        self.read_metadata(&ObjectId::new(*commit, ObjectKind::CommitMeta))
    }
}

#[cfg(test)]
mod tests;
