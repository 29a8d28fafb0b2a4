//! Writes objects and refs to an archive repository.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_proto::ostree::{Checksum, ObjectId, ObjectVerifier, RefName, VerifyLimits};

use super::error::FileResult as _;
use super::{Mode, Repo, RepoError};

/// Makes temporary names differ within the process.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

impl Repo {
    /// Starts an object. Nothing of it is seen until [`Writing::finish`].
    ///
    /// # Errors
    /// [`RepoError::NotAnArchive`] when the repository stores files in another form.
    pub fn write(&self, id: ObjectId) -> Result<Writing, RepoError> {
        if self.mode != Mode::Archive {
            return Err(RepoError::NotAnArchive { path: self.path.clone() });
        }
        let temporary = Temporary::create(self)?;
        let verifier = ObjectVerifier::new(id, VerifyLimits::default());
        Ok(Writing { id, temporary, verifier, path: self.object_path(&id) })
    }

    /// Points a branch at a commit.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn set_ref(&self, name: &RefName, commit: &Checksum) -> Result<(), RepoError> {
        let path = self.path.join(name.path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).on("make", parent)?;
        }
        let mut temporary = Temporary::create(self)?;
        let text = format!("{commit}\n");
        temporary.file.write_all(text.as_bytes()).on("write", &temporary.path)?;
        temporary.file.sync_data().on("sync", &temporary.path)?;
        temporary.rename(&path)
    }

    /// Marks a commit as partly pulled, before its commit object is written.
    ///
    /// # Errors
    /// When the mark cannot be written.
    pub fn set_partial(&self, commit: &Checksum) -> Result<(), RepoError> {
        let path = self.partial_path(commit);
        // libostree writes `f` for a commit it found incomplete and nothing while it pulls.
        File::create(&path).on("create", &path)?;
        Ok(())
    }

    /// Takes the mark away: all of the commit is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn clear_partial(&self, commit: &Checksum) -> Result<(), RepoError> {
        let path = self.partial_path(commit);
        super::error::missing_as_none(fs::remove_file(&path)).on("remove", &path)?;
        Ok(())
    }

    /// Makes what was written survive a power cut.
    ///
    /// # Errors
    /// When the file system says that it does not.
    pub fn sync(&self) -> Result<(), RepoError> {
        let directory = File::open(&self.path).on("open", &self.path)?;
        rustix::fs::syncfs(&directory).map_err(std::io::Error::from).on("sync", &self.path)
    }
}

/// An object on its way into a repository: hashed as it is written. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct Writing {
    id: ObjectId,
    temporary: Temporary,
    verifier: ObjectVerifier,
    path: PathBuf,
}

impl Writing {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`RepoError::Corrupt`] as soon as they cannot be the object's, or a file error.
    pub fn push(&mut self, data: &[u8]) -> Result<(), RepoError> {
        self.verifier.push(data).map_err(|error| RepoError::corrupt(self.id, error))?;
        self.temporary.file.write_all(data).on("write", &self.temporary.path)
    }

    /// Gives the object its name when it is what its name promises. Returns the bytes of a
    /// metadata object, and nothing for a file object.
    ///
    /// # Errors
    /// [`RepoError::Corrupt`] when it is not.
    pub fn finish(self) -> Result<Vec<u8>, RepoError> {
        let data = self.verifier.finish().map_err(|error| RepoError::corrupt(self.id, error))?;
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).on("make", parent)?;
        }
        self.temporary.rename(&self.path)?;
        Ok(data)
    }
}

#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    fn create(repo: &Repo) -> Result<Self, RepoError> {
        let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-{}-{number}", std::process::id());
        let path = repo.path.join("tmp").join(name);
        let file = File::create(&path).on("create", &path)?;
        Ok(Self { path, file, renamed: false })
    }

    fn rename(mut self, path: &Path) -> Result<(), RepoError> {
        fs::rename(&self.path, path).on("rename", path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Left behind it costs space in tmp/ and nothing else.
            let _ = fs::remove_file(&self.path);
        }
    }
}
