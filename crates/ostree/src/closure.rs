//! What a commit of a local repository needs.

use trunkline_proto::ostree::{
    Checksum, Closure, ClosureError, ClosureLimits, ObjectId, ObjectKind,
};

use crate::repo::{Repo, RepoError};

/// A walk cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// An object is broken, or there are too many.
    #[error(transparent)]
    Closure(#[from] ClosureError),
    /// An object cannot be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Walks commits of a local repository one after the other, finding each object once.
#[derive(Debug)]
pub struct LocalWalk<'a> {
    repo: &'a Repo,
    closure: Closure,
}

impl<'a> LocalWalk<'a> {
    /// A walk that has found nothing yet.
    pub fn new(repo: &'a Repo) -> Self {
        Self { repo, closure: Closure::new(ClosureLimits::default()) }
    }

    /// Walks a commit and up to `parents_max` generations before it; parents that are not there end
    /// the line. Returns what was not found before: the commit first, each dirtree before what it
    /// names.
    ///
    /// # Errors
    /// [`WalkError`] when a commit or dirtree that is needed is missing or broken.
    pub fn commit(
        &mut self,
        commit: Checksum,
        parents_max: u32,
    ) -> Result<Vec<ObjectId>, WalkError> {
        let mut found = Vec::new();
        let mut absent = Vec::new();
        self.closure.want(commit, parents_max, &mut found)?;
        while let Some(id) = self.closure.next() {
            match self.repo.read_metadata(&id)? {
                Some(data) => self.closure.feed(id, &data, &mut found)?,
                None if self.closure.is_optional(id) => absent.push(id),
                None => return Err(RepoError::Missing { id }.into()),
            }
        }
        found.retain(|id| !absent.contains(id));
        Ok(found)
    }

    /// Walks a commit if all of its metadata is here, so that nothing of it is found later.
    /// Returns whether it was.
    ///
    /// # Errors
    /// [`WalkError`] when an object that is here is broken.
    pub fn forget(&mut self, commit: Checksum) -> Result<bool, WalkError> {
        let id = ObjectId::new(commit, ObjectKind::Commit);
        if !self.repo.has(&id)? || self.repo.is_partial(&commit) {
            return Ok(false);
        }
        self.commit(commit, 0)?;
        Ok(true)
    }
}

/// Everything a commit needs; see [`LocalWalk::commit`].
///
/// # Errors
/// [`WalkError`] when a commit or dirtree that is needed is missing or broken.
pub fn of(repo: &Repo, commit: Checksum, parents_max: u32) -> Result<Vec<ObjectId>, WalkError> {
    LocalWalk::new(repo).commit(commit, parents_max)
}
