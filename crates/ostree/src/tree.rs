//! Walks a tree on a server that has nothing but single objects, many at a time.

use std::collections::VecDeque;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::task::JoinError;
use trunkline_proto::ostree::{
    Checksum, Closure, ClosureError, ClosureLimits, ObjectId, ObjectKind, ObjectVerifier,
    VerifyError, VerifyLimits,
};
use trunkline_transfer::{Piece, SteadyAnswer};

use crate::remote::{Remote, RemoteError};
use crate::repo::{Repo, RepoError, Writing};

/// Bytes of an object that are collected before they are handed to the disk.
const BLOCK_BYTES: usize = 1 << 20;

/// A walk cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The closure is too large.
    #[error(transparent)]
    Closure(#[from] ClosureError),
    /// The server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The local repository.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// A thread of ours ended early.
    #[error("a worker failed: {0}")]
    Worker(#[from] JoinError),
}

/// Fetches everything a commit needs, or only looks at it.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) remote: &'a Remote,
    /// Where objects are written; `None` only verifies them.
    pub(crate) target: Option<&'a Repo>,
    /// Requests in flight at a time.
    pub(crate) jobs: usize,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct TreeReport {
    pub(crate) objects: u64,
    pub(crate) objects_written: u64,
    pub(crate) bytes: u64,
    /// What is not there (`None`), or corrupt.
    pub(crate) faults: Vec<(ObjectId, Option<String>)>,
}

enum Outcome {
    /// There already; with its bytes when the walk needs them.
    Present(Vec<u8>),
    /// Sound, of this length; with its bytes when it is metadata.
    Fetched(u64, Vec<u8>),
    Missing,
    Corrupt(String),
}

impl Tree<'_> {
    pub(crate) async fn walk(
        &self,
        commit: Checksum,
        parents_max: u32,
    ) -> Result<TreeReport, TreeError> {
        let mut closure = Closure::new(ClosureLimits::default());
        let mut report = TreeReport::default();
        let mut found = Vec::new();
        let mut waiting = VecDeque::new();
        let mut flights = FuturesUnordered::new();
        closure.want(commit, parents_max, &mut found)?;
        loop {
            for id in found.drain(..) {
                match id.kind {
                    ObjectKind::Commit => {
                        waiting.push_front(id);
                        waiting.push_back(ObjectId::new(id.checksum, ObjectKind::CommitMeta));
                    }
                    // Trees first: they are what keeps the line full later.
                    ObjectKind::DirTree => waiting.push_front(id),
                    _ => waiting.push_back(id),
                }
            }
            // Whatever is found is fetched anyway, so the walk's own list is of no use.
            while closure.next().is_some() {}
            while flights.len() < self.jobs.max(1) {
                let Some(id) = waiting.pop_front() else { break };
                flights.push(async move { (id, self.one(id).await) });
            }
            let Some((id, outcome)) = flights.next().await else { return Ok(report) };
            let optional = id.kind == ObjectKind::CommitMeta || closure.is_optional(id);
            let outcome = outcome?;
            if !(optional && matches!(outcome, Outcome::Missing)) {
                report.objects += 1;
            }
            match outcome {
                Outcome::Present(data) => closure.feed(id, &data, &mut found)?,
                Outcome::Fetched(bytes, data) => {
                    report.objects_written += 1;
                    report.bytes += bytes;
                    closure.feed(id, &data, &mut found)?;
                }
                Outcome::Missing if optional => {}
                Outcome::Missing => report.faults.push((id, None)),
                Outcome::Corrupt(reason) => report.faults.push((id, Some(reason))),
            }
        }
    }

    async fn one(&self, id: ObjectId) -> Result<Outcome, TreeError> {
        if let Some(repo) = self.target.filter(|_| id.kind != ObjectKind::CommitMeta) {
            match repo.has(&id)? {
                true if matches!(id.kind, ObjectKind::Commit | ObjectKind::DirTree) => {
                    match repo.read_metadata(&id) {
                        Ok(Some(data)) => return Ok(Outcome::Present(data)),
                        Ok(None) | Err(RepoError::Corrupt { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                true => return Ok(Outcome::Present(Vec::new())),
                false => {}
            }
            if id.kind == ObjectKind::Commit {
                repo.set_partial(&id.checksum)?;
            }
        }
        match self.remote.open_object(&id).await? {
            Some(answer) => self.receive(id, answer).await,
            None => Ok(Outcome::Missing),
        }
    }

    fn sink(&self, id: ObjectId) -> Result<Sink, TreeError> {
        Ok(match self.target {
            Some(repo) => Sink::Write(Box::new(repo.write(id)?)),
            None => Sink::Verify(id, Box::new(ObjectVerifier::new(id, VerifyLimits::default()))),
        })
    }

    /// Reads a body to its end.
    async fn receive(&self, id: ObjectId, mut answer: SteadyAnswer) -> Result<Outcome, TreeError> {
        let mut sink = Some(self.sink(id)?);
        let mut bytes = 0;
        let mut block = Vec::new();
        loop {
            let ended = match answer.next().await.map_err(RemoteError::from)? {
                Piece::Data(data) => {
                    bytes += data.len() as u64;
                    block.extend_from_slice(&data);
                    if block.len() < BLOCK_BYTES {
                        continue;
                    }
                    false
                }
                Piece::Restart => {
                    sink = Some(self.sink(id)?);
                    bytes = 0;
                    block.clear();
                    continue;
                }
                Piece::End => true,
            };
            let piece = std::mem::take(&mut block);
            let taken = sink.take().expect("invariant: put back after each piece");
            let work = move || taken.take(&piece, ended);
            match tokio::task::spawn_blocking(work).await? {
                Ok(Taken::More(back)) => sink = Some(back),
                Ok(Taken::Done(data)) => return Ok(Outcome::Fetched(bytes, data)),
                Err(RepoError::Corrupt { reason, .. }) => return Ok(Outcome::Corrupt(reason)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

enum Sink {
    Write(Box<Writing>),
    Verify(ObjectId, Box<ObjectVerifier>),
}

enum Taken {
    More(Sink),
    Done(Vec<u8>),
}

impl Sink {
    fn take(self, piece: &[u8], ended: bool) -> Result<Taken, RepoError> {
        match self {
            Self::Write(mut writing) => {
                writing.push(piece)?;
                if ended {
                    return writing.finish().map(Taken::Done);
                }
                Ok(Taken::More(Self::Write(writing)))
            }
            Self::Verify(id, mut verifier) => {
                let corrupt = |error: VerifyError| RepoError::corrupt(id, error);
                verifier.push(piece).map_err(corrupt)?;
                if ended {
                    return verifier.finish().map(Taken::Done).map_err(corrupt);
                }
                Ok(Taken::More(Self::Verify(id, verifier)))
            }
        }
    }
}
