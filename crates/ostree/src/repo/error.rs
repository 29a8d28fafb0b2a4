//! What can be wrong with a local repository.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_proto::ostree::{ObjectId, RefName};

/// A repository cannot be used, or an object in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepoError {
    /// An object is not what its name promises.
    #[error("{id} is corrupt in the local repository: {reason}; run `ostree fsck` on it")]
    Corrupt {
        /// The object.
        id: ObjectId,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be used.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An object that a commit needs is not there.
    #[error("{id} is missing in the local repository")]
    Missing {
        /// The object.
        id: ObjectId,
    },
    /// A mode that this version does not read, or no mode at all.
    #[error("the repository `{}` has the unknown mode `{mode}`", path.display())]
    Mode {
        /// The repository.
        path: PathBuf,
        /// What its config says.
        mode: String,
    },
    /// Only archive repositories are written.
    #[error("`{}` is not an archive repository; objects are written to those only", path.display())]
    NotAnArchive {
        /// The repository.
        path: PathBuf,
    },
    /// The directory is no repository.
    #[error("`{}` is not an OSTree repository: config, objects/ or refs/ is missing", path.display())]
    NotARepository {
        /// The directory.
        path: PathBuf,
    },
    /// A ref's file holds no checksum.
    #[error("the ref `{name}` of the local repository holds no checksum")]
    RefDamaged {
        /// The ref.
        name: RefName,
    },
}

impl RepoError {
    #[expect(clippy::needless_pass_by_value, reason = "errors are handed in as they come")]
    pub(crate) fn corrupt(id: ObjectId, reason: impl ToString) -> Self {
        Self::Corrupt { id, reason: reason.to_string() }
    }
}

/// Says which file an error is about.
pub(super) trait FileResult<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RepoError>;
}

impl<T> FileResult<T> for io::Result<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RepoError> {
        self.map_err(|source| RepoError::File { action, path: path.to_owned(), source })
    }
}

/// A file that is not there is `None`, not an error.
pub(super) fn missing_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
