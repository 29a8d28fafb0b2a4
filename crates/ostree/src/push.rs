//! Push: from a local repository to a server.
//!
//! What the server lacks is learnt from where its ref points, when that commit is here too; else
//! from a list of what is missing; else, on a plain Treehub, by HEAD. Commits go last and the ref
//! after them, so that a push cut short at any moment leaves no commit without its tree.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use trunkline_proto::ostree::{Checksum, DirTree, ObjectId, ObjectKind, RefName};
use trunkline_proto::pack::{IDS_MAX, PackEncoder, Receipt, Status};
use trunkline_transfer::Payload;

use crate::closure::{LocalWalk, WalkError};
use crate::remote::{Capabilities, Remote, RemoteError};
use crate::repo::{Packed, Repo, RepoError};

/// Requests in flight unless the user says otherwise.
pub const JOBS_DEFAULT: usize = 100;
/// Longest pack in bytes, whatever a server advises: packs are held in memory.
const PACK_BYTES_MAX: u64 = 16 << 20;
/// Shortest pack in bytes that is worth a request of its own while others are in flight.
const PACK_BYTES_MIN: u64 = 1 << 20;
/// Longer objects are sent on their own, straight from their file.
pub(crate) const PACKED_OBJECT_BYTES_MAX: u64 = 4 << 20;
/// Packs in flight. Each waits for the server's disk at its end; the others fill the line.
pub(crate) const PACKS_IN_FLIGHT: usize = 4;
/// Packs made ahead of those in flight.
const PACKS_AHEAD_MAX: usize = 2;
/// On a plain server, larger objects are asked for before they are sent.
const UNASKED_BYTES_MAX: u64 = 16 << 10;
/// How often objects are sent again that the server could not store.
const ROUNDS_MAX: usize = 3;

/// What to push, and how.
#[derive(Debug, Clone)]
pub struct Push {
    /// The commit.
    pub commit: Checksum,
    /// The ref to point at it; `None` leaves refs alone.
    pub name: Option<RefName>,
    /// Requests in flight at a time on a plain server.
    pub jobs: usize,
    /// Only say what would be done; nothing is written, refs included.
    pub dry_run: bool,
    /// Hash every object before it is sent.
    pub verify: bool,
    /// Ask for every object, even those of a commit that the server has.
    pub walk: bool,
    /// Replace objects that the server has and that are corrupt there (servers with packs).
    pub repair: bool,
    /// Move the ref even when the commit does not follow the present one.
    pub force: bool,
    /// Treat the server as a plain Treehub even when it speaks packs.
    pub plain: bool,
}

/// What a push did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pushed {
    /// Whether packs were used.
    pub packs: bool,
    /// Objects looked at: those that the server was not known to have.
    pub objects: u64,
    /// HEAD requests.
    pub heads: u64,
    /// Objects sent.
    pub uploads: u64,
    /// Of those, how many the server had already.
    pub present: u64,
    /// Bytes of the objects sent.
    pub bytes: u64,
    /// Whether the ref was moved.
    pub ref_set: bool,
}

/// A push did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The server refuses an object for good.
    #[error("the server refuses {id}: {detail}")]
    Refused {
        /// The object.
        id: ObjectId,
        /// Why.
        detail: String,
    },
    /// The server says nothing of objects that were sent.
    #[error("the server gave no receipt for {objects} objects")]
    NoReceipt {
        /// How many.
        objects: usize,
    },
    /// The server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The local repository.
    #[error(transparent)]
    Local(#[from] WalkError),
    /// A thread of ours ended early.
    #[error("a worker failed: {0}")]
    Worker(#[from] JoinError),
}

impl From<RepoError> for PushError {
    fn from(error: RepoError) -> Self {
        Self::Local(error.into())
    }
}

#[derive(Debug, Default)]
struct Counts {
    heads: AtomicU64,
    uploads: AtomicU64,
    present: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn sent(&self, bytes: u64, new: bool) {
        self.uploads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if !new {
            self.present.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Pushes.
///
/// # Errors
/// [`PushError`]; what was stored until then stays stored and is not sent again by the next push.
pub async fn push(repo: &Repo, remote: &Remote, push: &Push) -> Result<Pushed, PushError> {
    let capabilities = match push.plain {
        true => None,
        false => remote.capabilities(push.name.as_ref()).await?,
    };
    let pushing = Pushing { repo, remote, push, counts: Counts::default() };
    let objects = match &capabilities {
        Some(capabilities) => pushing.by_packs(capabilities).await?,
        None => pushing.one_by_one().await?,
    };
    let mut ref_set = false;
    if let Some(name) = push.name.as_ref().filter(|_| !push.dry_run) {
        let current = capabilities.as_ref().and_then(|capabilities| capabilities.commit);
        // Moving a ref makes the server look at the whole closure; where it points there already,
        // that was done, unless something was found to be missing since.
        if current != Some(push.commit) || objects > 0 {
            remote.set_ref(name, &push.commit, push.force).await?;
            ref_set = true;
        }
    }
    let counts = pushing.counts;
    Ok(Pushed {
        packs: capabilities.is_some(),
        objects,
        heads: counts.heads.into_inner(),
        uploads: counts.uploads.into_inner(),
        present: counts.present.into_inner(),
        bytes: counts.bytes.into_inner(),
        ref_set,
    })
}

struct Pushing<'a> {
    repo: &'a Repo,
    remote: &'a Remote,
    push: &'a Push,
    counts: Counts,
}

impl Pushing<'_> {
    /// What the commit needs beyond what the server's ref is known to need.
    async fn closure(&self, have: Option<Checksum>) -> Result<Vec<ObjectId>, PushError> {
        let (repo, commit) = (self.repo.clone(), self.push.commit);
        let have = have.filter(|_| !self.push.walk && !self.push.repair);
        let walk = move || -> Result<Vec<ObjectId>, WalkError> {
            if let Some(have) = have {
                let mut walk = LocalWalk::new(&repo);
                // A commit that is here only in part tells nothing; then all is looked at.
                if walk.forget(have).unwrap_or(false) {
                    return walk.commit(commit, 0);
                }
            }
            LocalWalk::new(&repo).commit(commit, 0)
        };
        Ok(tokio::task::spawn_blocking(walk).await??)
    }

    async fn has_closure(&self, have: Option<Checksum>) -> Result<bool, PushError> {
        let Some(have) = have.filter(|_| !self.push.walk && !self.push.repair) else {
            return Ok(false);
        };
        Ok(self.repo.has(&ObjectId::new(have, ObjectKind::Commit))?)
    }

    async fn by_packs(&self, server: &Capabilities) -> Result<u64, PushError> {
        if server.commit == Some(self.push.commit) && !self.push.walk && !self.push.repair {
            return Ok(0);
        }
        let mut ids = self.closure(server.commit).await?;
        ids.sort_unstable();
        if !self.has_closure(server.commit).await? && !self.push.repair {
            let mut missing = Vec::new();
            for part in ids.chunks(IDS_MAX) {
                missing.extend(self.remote.missing(part).await?);
            }
            ids = missing;
        }
        let objects = ids.len() as u64;
        if self.push.dry_run {
            return Ok(objects);
        }
        let (mut commits, rest): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| id.kind == ObjectKind::Commit);
        let pack_bytes = server.pack_bytes_advised.clamp(PACK_BYTES_MIN, PACK_BYTES_MAX);
        self.send_packs(rest, pack_bytes).await?;
        // Signatures may have been added since the commit was pushed, so they go each time.
        let meta = ObjectId::new(self.push.commit, ObjectKind::CommitMeta);
        if self.repo.has(&meta)? {
            commits.push(meta);
        }
        self.send_packs(commits, pack_bytes).await?;
        Ok(objects)
    }

    async fn send_packs(&self, ids: Vec<ObjectId>, pack_bytes: u64) -> Result<(), PushError> {
        let mut left = ids;
        for round in 0..ROUNDS_MAX {
            if left.is_empty() {
                return Ok(());
            }
            let last = round + 1 == ROUNDS_MAX;
            left = self.send_packs_once(left, pack_bytes, last).await?;
        }
        Err(PushError::NoReceipt { objects: left.len() })
    }

    /// Sends everything once; returns what the server could not store this time.
    async fn send_packs_once(
        &self,
        ids: Vec<ObjectId>,
        pack_bytes: u64,
        last_round: bool,
    ) -> Result<Vec<ObjectId>, PushError> {
        let (sender, packs) = mpsc::channel(PACKS_AHEAD_MAX);
        let (repo, verify) = (self.repo.clone(), self.push.verify);
        let reader = tokio::task::spawn_blocking(move || {
            let mut packer = Packer { repo: &repo, verify, pack_bytes, sender: &sender };
            if let Err(error) = packer.run(&ids) {
                let _ = sender.blocking_send(Err(error));
            }
        });
        let packs = stream::unfold(packs, |mut packs| async {
            packs.recv().await.map(|pack| (pack, packs))
        });
        let failed = packs
            .map(|item| async move {
                match item? {
                    Item::Pack(pack, ids) => self.send_pack(pack, ids, last_round).await,
                    Item::Single(id, packed) => {
                        let bytes = packed.len();
                        let sent =
                            self.remote.post_object(&id, payload(packed), self.push.repair).await;
                        self.repo.forget_packed(&id);
                        self.counts.sent(bytes, sent?);
                        Ok(Vec::new())
                    }
                }
            })
            .buffer_unordered(PACKS_IN_FLIGHT)
            .try_concat()
            .await;
        // On failure the channel is closed by now, and the reader ends at its next pack.
        reader.await?;
        failed
    }

    async fn send_pack(
        &self,
        pack: Bytes,
        ids: Vec<(ObjectId, u64)>,
        last_round: bool,
    ) -> Result<Vec<ObjectId>, PushError> {
        let receipts = self.remote.send_pack(pack, self.push.repair).await?;
        let mut by_id: HashMap<ObjectId, Receipt> =
            receipts.into_iter().map(|receipt| (receipt.id, receipt)).collect();
        let mut failed = Vec::new();
        for (id, bytes) in ids {
            match by_id.remove(&id) {
                Some(receipt) if receipt.status.is_success() => {
                    self.counts.sent(bytes, receipt.status == Status::Stored);
                }
                Some(Receipt { status: Status::Failed, .. }) | None if !last_round => {
                    failed.push(id);
                }
                Some(Receipt { detail, .. }) => return Err(PushError::Refused { id, detail }),
                None => return Err(PushError::NoReceipt { objects: 1 }),
            }
        }
        Ok(failed)
    }

    /// Treehub as everybody knows it: HEAD and POST of single objects.
    async fn one_by_one(&self) -> Result<u64, PushError> {
        let commit = ObjectId::new(self.push.commit, ObjectKind::Commit);
        let trusting = !self.push.walk && !self.push.repair;
        if trusting && self.head(&commit).await? {
            return Ok(0);
        }
        let have = match &self.push.name {
            Some(name) if trusting => self.remote.read_ref(name).await?,
            _ => None,
        };
        let ids = self.closure(have).await?;
        let must_be_missing = self.has_closure(have).await?;
        let ids = match must_be_missing {
            true => ids,
            false => self.without_present(ids).await?,
        };
        let objects = ids.len() as u64;
        if self.push.dry_run {
            return Ok(objects);
        }
        for level in self.levels(ids).await? {
            stream::iter(level)
                .map(Ok)
                .try_for_each_concurrent(self.push.jobs, |id| self.post(id))
                .await?;
        }
        Ok(objects)
    }

    async fn head(&self, id: &ObjectId) -> Result<bool, PushError> {
        self.counts.heads.fetch_add(1, Ordering::Relaxed);
        Ok(self.remote.has(id).await?)
    }

    /// Leaves out what the server has. Small files are not asked for: sending them costs as much as
    /// asking, and the server says so when it has them.
    async fn without_present(&self, ids: Vec<ObjectId>) -> Result<Vec<ObjectId>, PushError> {
        let ask_all = self.push.walk || self.push.dry_run || self.push.repair;
        let missing: Vec<Option<ObjectId>> = stream::iter(ids)
            .map(|id| async move {
                let is_small = || {
                    std::fs::symlink_metadata(self.repo.object_path(&id))
                        .is_ok_and(|metadata| metadata.len() <= UNASKED_BYTES_MAX)
                };
                if !ask_all && id.kind == ObjectKind::File && is_small() {
                    return Ok(Some(id));
                }
                let present = self.head(&id).await?;
                Ok::<_, PushError>((!present).then_some(id))
            })
            .buffered(self.push.jobs.max(1))
            .try_collect()
            .await?;
        Ok(missing.into_iter().flatten().collect())
    }

    /// Sorts what is to be sent so that each level needs only those before it.
    async fn levels(&self, ids: Vec<ObjectId>) -> Result<Vec<Vec<ObjectId>>, PushError> {
        let repo = self.repo.clone();
        let work = move || -> Result<Vec<Vec<ObjectId>>, WalkError> {
            let mut heights = HashMap::new();
            let wanted: HashSet<ObjectId> = ids.iter().copied().collect();
            let mut levels: Vec<Vec<ObjectId>> = vec![Vec::new()];
            let mut commits = Vec::new();
            for id in ids {
                let level = match id.kind {
                    ObjectKind::DirTree => height(&repo, id, &wanted, &mut heights)?,
                    ObjectKind::Commit => {
                        commits.push(id);
                        continue;
                    }
                    _ => 0,
                };
                if levels.len() <= level {
                    levels.resize_with(level + 1, Vec::new);
                }
                levels[level].push(id);
            }
            let metas = commits
                .iter()
                .map(|id| ObjectId::new(id.checksum, ObjectKind::CommitMeta))
                .filter_map(|id| repo.has(&id).map(|has| has.then_some(id)).transpose())
                .collect::<Result<Vec<_>, _>>()?;
            levels.push(metas);
            levels.push(commits);
            Ok(levels)
        };
        Ok(tokio::task::spawn_blocking(work).await??)
    }

    async fn post(&self, id: ObjectId) -> Result<(), PushError> {
        let (repo, verify) = (self.repo.clone(), self.push.verify);
        let read = move || repo.read_for_sending(&id, PACKED_OBJECT_BYTES_MAX, verify);
        let object = tokio::task::spawn_blocking(read).await??;
        let bytes = object.bytes.len();
        let sent = self.remote.post_object(&id, payload(object.bytes), false).await;
        self.repo.forget_packed(&id);
        self.counts.sent(bytes, sent?);
        Ok(())
    }
}

fn payload(packed: Packed) -> Payload {
    match packed {
        Packed::Memory(data) => Payload::Bytes(data.into()),
        Packed::File(path, _) => Payload::File(path),
    }
}

/// How many dirtrees to be sent lie one below the other, without recursion: a tree's depth is the
/// sender's choice, the stack's is not.
fn height(
    repo: &Repo,
    id: ObjectId,
    wanted: &HashSet<ObjectId>,
    heights: &mut HashMap<ObjectId, usize>,
) -> Result<usize, WalkError> {
    let mut open = vec![(id, None::<Vec<ObjectId>>)];
    while let Some((id, children)) = open.pop() {
        if heights.contains_key(&id) {
            continue;
        }
        let Some(children) = children else {
            let data = repo.read_metadata(&id)?.ok_or(RepoError::Missing { id })?;
            let tree = DirTree::parse(&data).map_err(|error| RepoError::corrupt(id, error))?;
            let children: Vec<_> = tree
                .directories()
                .map(|(_, directory)| ObjectId::new(directory.tree, ObjectKind::DirTree))
                .filter(|child| wanted.contains(child))
                .collect();
            let unknown: Vec<_> =
                children.iter().copied().filter(|child| !heights.contains_key(child)).collect();
            open.push((id, Some(children)));
            open.extend(unknown.into_iter().map(|child| (child, None)));
            continue;
        };
        let below = children.iter().filter_map(|child| heights.get(child)).max();
        heights.insert(id, below.map_or(1, |below| below + 1));
    }
    Ok(heights.get(&id).copied().unwrap_or(1))
}

enum Item {
    /// A pack, and what is in it with each object's length.
    Pack(Bytes, Vec<(ObjectId, u64)>),
    /// An object too long for a pack.
    Single(ObjectId, Packed),
}

/// Reads, verifies and packs objects on a thread of its own.
struct Packer<'a> {
    repo: &'a Repo,
    verify: bool,
    pack_bytes: u64,
    sender: &'a mpsc::Sender<Result<Item, PushError>>,
}

impl Packer<'_> {
    fn run(&mut self, ids: &[ObjectId]) -> Result<(), PushError> {
        let mut open = OpenPack::new();
        for id in ids {
            let object = self.repo.read_for_sending(id, PACKED_OBJECT_BYTES_MAX, self.verify)?;
            let going_on = match object.bytes {
                Packed::Memory(data) if data.len() as u64 <= PACKED_OBJECT_BYTES_MAX => {
                    open.add(id, &data);
                    if open.bytes.len() as u64 >= self.pack_bytes {
                        let full = std::mem::replace(&mut open, OpenPack::new());
                        self.hand_over(pack(full))
                    } else {
                        true
                    }
                }
                long => self.hand_over(Item::Single(*id, long)),
            };
            if !going_on {
                return Ok(());
            }
        }
        if !open.ids.is_empty() {
            self.hand_over(pack(open));
        }
        Ok(())
    }

    /// `false` when nobody wants more.
    fn hand_over(&self, item: Item) -> bool {
        self.sender.blocking_send(Ok(item)).is_ok()
    }
}

fn pack(full: OpenPack) -> Item {
    let (bytes, ids) = full.close();
    Item::Pack(bytes, ids)
}

/// A pack that is being filled.
pub(crate) struct OpenPack {
    encoder: PackEncoder,
    bytes: Vec<u8>,
    ids: Vec<(ObjectId, u64)>,
}

impl OpenPack {
    pub(crate) fn new() -> Self {
        let (encoder, head) = PackEncoder::new();
        Self { encoder, bytes: head.to_vec(), ids: Vec::new() }
    }

    /// Length in bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn add(&mut self, id: &ObjectId, data: &[u8]) {
        let bytes = data.len() as u64;
        self.bytes.extend_from_slice(&self.encoder.object(id, bytes));
        self.bytes.extend_from_slice(data);
        self.ids.push((*id, bytes));
    }

    /// The pack, and what is in it with each object's length.
    pub(crate) fn close(mut self) -> (Bytes, Vec<(ObjectId, u64)>) {
        self.bytes.extend_from_slice(&self.encoder.end());
        (self.bytes.into(), self.ids)
    }
}
