//! Pull: from a server into a local archive.
//!
//! A server with packs walks the tree itself and sends what lacks as one stream; from any other,
//! objects are fetched many at a time as they are discovered. Either way each object is verified as
//! it is written, the commit is marked as partial until all of it is there, and the ref moves last.

use std::sync::Mutex;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use trunkline_proto::ostree::{Checksum, Closure, ClosureLimits, ObjectId, ObjectKind, RefName};
use trunkline_proto::pack::{IDS_MAX, PackDecoder, PackError, PackEvent, PackLimits, Want};
use trunkline_transfer::Answer;

use crate::closure::{LocalWalk, WalkError};
use crate::remote::{Capabilities, Remote, RemoteError};
use crate::repo::{Repo, RepoError, Writing};
use crate::tree::{Tree, TreeError};

/// Pieces of a stream that may wait for the disk.
const PIECES_AHEAD_MAX: usize = 16;
/// How often what a stream did not bring is asked for; each time must bring something.
const ROUNDS_MAX: usize = 100;

/// What to pull, and how.
#[derive(Debug, Clone)]
pub struct Pull {
    /// The ref to follow; its local namesake is moved at the end.
    pub name: Option<RefName>,
    /// The commit; `None` for where the ref points.
    pub commit: Option<Checksum>,
    /// How many generations of parents to pull as well.
    pub parents_max: u32,
    /// Requests in flight at a time on a plain server.
    pub jobs: usize,
    /// Treat the server as a plain one even when it speaks packs.
    pub plain: bool,
}

/// What a pull did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pulled {
    /// The commit, 64 digits.
    pub commit: String,
    /// Whether packs were used.
    pub packs: bool,
    /// Objects written.
    pub objects: u64,
    /// Bytes of the objects written.
    pub bytes: u64,
}

/// A pull did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The server lacks something that the commit needs, or has it corrupt.
    #[error("the server lacks {missing} objects of {commit} or has them corrupt, such as {first}")]
    Incomplete {
        /// The commit.
        commit: Checksum,
        /// How many.
        missing: usize,
        /// One of them.
        first: ObjectId,
    },
    /// Neither a ref nor a commit was given, or the ref is not on the server.
    #[error("the server has no ref `{0}`")]
    NoSuchRef(RefName),
    /// Neither a ref nor a commit was given.
    #[error("give a ref or a commit to pull")]
    NothingAsked,
    /// The stream breaks the protocol.
    #[error("the server's stream breaks the pack protocol: {0}")]
    Pack(#[from] PackError),
    /// The server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The local repository.
    #[error(transparent)]
    Local(#[from] WalkError),
    /// Single objects.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A thread of ours ended early.
    #[error("a worker failed: {0}")]
    Worker(#[from] JoinError),
}

impl From<RepoError> for PullError {
    fn from(error: RepoError) -> Self {
        Self::Local(error.into())
    }
}

/// Pulls.
///
/// # Errors
/// [`PullError`]; what was written until then stays, and the next pull goes on from there.
pub async fn pull(repo: &Repo, remote: &Remote, pull: &Pull) -> Result<Pulled, PullError> {
    let capabilities = match pull.plain {
        true => None,
        false => remote.capabilities(pull.name.as_ref()).await?,
    };
    let commit = target(remote, pull, capabilities.as_ref()).await?;
    let mut pulled =
        Pulled { commit: commit.to_hex(), packs: capabilities.is_some(), objects: 0, bytes: 0 };
    if !is_complete(repo, commit, pull.parents_max).await? {
        let pulling = Pulling { repo, remote, pull, commit, written: Mutex::default() };
        if capabilities.is_some() {
            pulling.by_packs().await?;
        } else {
            let tree = Tree { remote, target: Some(repo), jobs: pull.jobs };
            let report = tree.walk(commit, pull.parents_max).await?;
            if let Some((first, _)) = report.faults.first() {
                let missing = report.faults.len();
                return Err(PullError::Incomplete { commit, missing, first: *first });
            }
            pulling.count(report.objects_written, report.bytes);
        }
        pulling.finish().await?;
        (pulled.objects, pulled.bytes) =
            pulling.written.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    if let Some(name) = &pull.name {
        repo.set_ref(name, &commit)?;
    }
    Ok(pulled)
}

async fn target(
    remote: &Remote,
    pull: &Pull,
    capabilities: Option<&Capabilities>,
) -> Result<Checksum, PullError> {
    if let Some(commit) = pull.commit {
        return Ok(commit);
    }
    let name = pull.name.as_ref().ok_or(PullError::NothingAsked)?;
    let commit = match capabilities {
        Some(capabilities) => capabilities.commit,
        None => remote.read_ref(name).await?,
    };
    commit.ok_or_else(|| PullError::NoSuchRef(name.clone()))
}

/// Whether nothing is left to do. A commit that is there and not marked was whole once; with
/// parents asked for, all is looked at.
async fn is_complete(repo: &Repo, commit: Checksum, parents_max: u32) -> Result<bool, PullError> {
    let id = ObjectId::new(commit, ObjectKind::Commit);
    if !repo.has(&id)? || repo.is_partial(&commit) || parents_max > 0 {
        return Ok(false);
    }
    let repo = repo.clone();
    Ok(tokio::task::spawn_blocking(move || missing(&repo, commit, 0)).await??.is_empty())
}

/// What a commit needs and the repository lacks, as far as what is there tells.
fn missing(repo: &Repo, commit: Checksum, parents_max: u32) -> Result<Vec<ObjectId>, WalkError> {
    let mut closure = Closure::new(ClosureLimits::default());
    let mut found = Vec::new();
    let mut missing = Vec::new();
    closure.want(commit, parents_max, &mut found)?;
    loop {
        for id in found.drain(..) {
            let walked = matches!(id.kind, ObjectKind::Commit | ObjectKind::DirTree);
            if !walked && !repo.has(&id)? {
                missing.push(id);
            }
        }
        let Some(id) = closure.next() else { break };
        match repo.read_metadata(&id) {
            Ok(Some(data)) => closure.feed(id, &data, &mut found)?,
            // What is corrupt here is fetched anew, and replaced.
            Ok(None) | Err(RepoError::Corrupt { .. }) => {
                if !closure.is_optional(id) {
                    missing.push(id);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    missing.sort_unstable();
    Ok(missing)
}

struct Pulling<'a> {
    repo: &'a Repo,
    remote: &'a Remote,
    pull: &'a Pull,
    commit: Checksum,
    /// Objects and bytes.
    written: Mutex<(u64, u64)>,
}

impl Pulling<'_> {
    fn count(&self, objects: u64, bytes: u64) {
        let mut written = self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        written.0 += objects;
        written.1 += bytes;
    }

    async fn by_packs(&self) -> Result<(), PullError> {
        let id = ObjectId::new(self.commit, ObjectKind::Commit);
        if !self.repo.has(&id)? {
            let mut haves = Vec::new();
            if let Some(have) =
                self.pull.name.as_ref().map(|name| self.repo.resolve(name)).transpose()?.flatten()
                && is_complete(self.repo, have, 0).await?
            {
                haves.push(have);
            }
            let parents_max = self.pull.parents_max;
            let want = Want { wants: vec![self.commit], haves, parents_max, commitmeta: true };
            let answer = self.remote.open_closure(&want).await?;
            self.receive(answer).await?;
        }
        for _ in 0..ROUNDS_MAX {
            let mut missing = self.missing().await?;
            if missing.is_empty() {
                return Ok(());
            }
            missing.truncate(IDS_MAX);
            let answer = self.remote.open_fetch(&missing).await?;
            if self.receive(answer).await? == 0 {
                break;
            }
        }
        self.incomplete().await
    }

    async fn missing(&self) -> Result<Vec<ObjectId>, PullError> {
        let (repo, commit, parents_max) = (self.repo.clone(), self.commit, self.pull.parents_max);
        Ok(tokio::task::spawn_blocking(move || missing(&repo, commit, parents_max)).await??)
    }

    async fn incomplete(&self) -> Result<(), PullError> {
        let missing = self.missing().await?;
        match missing.first() {
            None => Ok(()),
            Some(first) => {
                let (commit, first) = (self.commit, *first);
                Err(PullError::Incomplete { commit, missing: missing.len(), first })
            }
        }
    }

    /// Writes a stream of objects; returns how many. A stream that is cut is no error: what it did
    /// not bring is asked for next.
    async fn receive(&self, mut answer: Answer) -> Result<u64, PullError> {
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD_MAX);
        let repo = self.repo.clone();
        let worker = tokio::task::spawn_blocking(move || Unpacking::new(&repo).run(receiver));
        loop {
            match answer.chunk().await {
                Ok(Some(piece)) => {
                    if sender.send(piece).await.is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "a stream of objects was cut");
                    break;
                }
            }
        }
        drop(sender);
        let (objects, bytes) = worker.await??;
        self.count(objects, bytes);
        Ok(objects)
    }

    /// All is there: says so, and makes it last.
    async fn finish(&self) -> Result<(), PullError> {
        self.incomplete().await?;
        let (repo, commit, parents_max) = (self.repo.clone(), self.commit, self.pull.parents_max);
        let work = move || -> Result<(), WalkError> {
            repo.sync()?;
            for id in LocalWalk::new(&repo).commit(commit, parents_max)? {
                if id.kind == ObjectKind::Commit {
                    repo.clear_partial(&id.checksum)?;
                }
            }
            Ok(())
        };
        Ok(tokio::task::spawn_blocking(work).await??)
    }
}

/// Takes a stream apart on its thread.
struct Unpacking<'a> {
    repo: &'a Repo,
    current: Option<Writing>,
    objects: u64,
    bytes: u64,
}

impl<'a> Unpacking<'a> {
    fn new(repo: &'a Repo) -> Self {
        Self { repo, current: None, objects: 0, bytes: 0 }
    }

    fn run(mut self, mut pieces: mpsc::Receiver<Bytes>) -> Result<(u64, u64), PullError> {
        let mut decoder = PackDecoder::new(PackLimits::default());
        while let Some(piece) = pieces.blocking_recv() {
            decoder.push(piece)?;
            while let Some(event) = decoder.next()? {
                match event {
                    PackEvent::Object { id, bytes } => self.start(id, bytes)?,
                    PackEvent::Data(data) => self.data(&data)?,
                    PackEvent::ObjectEnd => self.end()?,
                    PackEvent::Missing(_) | PackEvent::End => {}
                }
            }
        }
        Ok((self.objects, self.bytes))
    }

    fn start(&mut self, id: ObjectId, bytes: u64) -> Result<(), PullError> {
        let wanted = match id.kind {
            ObjectKind::TombstoneCommit | ObjectKind::PayloadLink => false,
            // Those may have changed under the same name, or be damaged here; they are few.
            ObjectKind::CommitMeta | ObjectKind::Commit | ObjectKind::DirTree => true,
            _ => !self.repo.has(&id)?,
        };
        if id.kind == ObjectKind::Commit {
            self.repo.set_partial(&id.checksum)?;
        }
        self.current = if wanted { Some(self.repo.write(id)?) } else { None };
        self.bytes += if wanted { bytes } else { 0 };
        Ok(())
    }

    fn data(&mut self, data: &[u8]) -> Result<(), PullError> {
        match self.current.as_mut().map(|writing| writing.push(data)) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(error)) => self.give_up(error),
        }
    }

    fn end(&mut self) -> Result<(), PullError> {
        match self.current.take().map(Writing::finish) {
            None => Ok(()),
            Some(Ok(_)) => {
                self.objects += 1;
                Ok(())
            }
            Some(Err(error)) => self.give_up(error),
        }
    }

    /// A corrupt object is left out, and missed at the end; a disk that fails ends the pull.
    fn give_up(&mut self, error: RepoError) -> Result<(), PullError> {
        self.current = None;
        match error {
            RepoError::Corrupt { id, reason } => {
                tracing::warn!(%id, reason, "the server sent a corrupt object");
                Ok(())
            }
            error => Err(error.into()),
        }
    }
}
